"""Where the book is: its root, its pages, its chapters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import ictd

from .errors import BookError

PACKAGE = Path(ictd.__file__).resolve().parent
_SUFFIXES = (".ipynb", ".md", ".rst", ".txt")


class UnknownChapter(BookError):
    """No chapter has this name."""


@dataclass(frozen=True)
class Project:
    """A folder with `_toc.yml`, or one that only holds a notebook to run."""

    root: Path

    @property
    def build_folder(self) -> Path:
        return self.root / "_build"

    @property
    def runs_folder(self) -> Path:
        return self.build_folder / "runs"

    def pages(self) -> list[Path]:
        """The pages of the table of contents, in its order.

        Raises:
            BookError: If the table cannot be read or names a page that does not exist.
        """
        path = self.root / "_toc.yml"
        try:
            toc = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError) as error:
            raise BookError(f"the table of contents cannot be read: {error}") from None
        return [page for kind, name in _entries(toc) for page in self._page(kind, name)]

    def chapters(self) -> list[Path]:
        """The notebooks among the pages."""
        chapters = [page for page in self.pages() if page.suffix == ".ipynb"]
        stems = [chapter.stem for chapter in chapters]
        if twice := {stem for stem in stems if stems.count(stem) > 1}:
            raise BookError(f"two chapters of one name: {', '.join(sorted(twice))}")
        return chapters

    def _page(self, kind: str, name: str) -> list[Path]:
        if kind == "glob":
            return sorted(path for path in self.root.glob(name) if path.suffix in _SUFFIXES)
        path = self.root / name
        for candidate in (path, *(path.with_name(path.name + suffix) for suffix in _SUFFIXES)):
            if candidate.is_file():
                return [candidate]
        raise BookError(f"_toc.yml names {name!r}, but there is no such page in {self.root}")


def find_project(start: Path | None = None) -> Project:
    """The project around a folder (the current one by default), else the library's own.

    Raises:
        BookError: If there is none.
    """
    folder = (start or Path.cwd()).resolve()
    for root in (folder, *folder.parents, PACKAGE.parent):
        if (root / "_toc.yml").is_file() and (root / "chapters").is_dir():
            return Project(root)
    raise BookError(f"no book (_toc.yml and chapters/) in {folder} or above it")


def find_chapter(name: str | int | Path) -> tuple[Project, Path]:
    """A chapter by number ("2", "02"), by name ("02_weighted_softmax_td") or by path.

    Raises:
        UnknownChapter: Its message lists the chapters that there are.
    """
    path = Path(str(name))
    if path.suffix == ".ipynb" and path.is_file():
        path = path.resolve()
        try:
            return find_project(path.parent), path
        except BookError:
            return Project(path.parent), path
    try:
        project = find_project()
    except BookError as error:
        raise UnknownChapter(f"no notebook {name}, and {error}") from None
    chapters = project.chapters()
    found = [chapter for chapter in chapters if str(name) in names(chapter)]
    if len(found) != 1:
        known = ", ".join(chapter.stem for chapter in chapters)
        problem = "no chapter" if not found else "more than one chapter"
        raise UnknownChapter(f"{problem} {str(name)!r}; the chapters are: {known}")
    return project, found[0]


def names(chapter: Path) -> set[str]:
    """What a chapter may be called: its file's name, with and without suffix, and its number."""
    found = {chapter.stem, chapter.name}
    if number := re.match(r"\d+", chapter.stem):
        found |= {number[0], str(int(number[0]))}
    return found


def _entries(node: Any) -> Iterator[tuple[str, str]]:
    """The pages that a table of contents names, as (kind, name)."""
    if isinstance(node, list):
        for item in node:
            yield from _entries(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in ("root", "file", "glob") and isinstance(value, str):
                yield ("glob" if key == "glob" else "file"), value
            else:
                yield from _entries(value)
