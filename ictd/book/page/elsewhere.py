"""What is in the rest of the book, as a page names it that stands alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from .. import markdown
from .. import notebook as nb
from ..errors import BookError
from ..project import Project

_KINDS = {"eq": "(an equation of {})", "numref": "a figure of {}", "prf:ref": "a statement of {}"}
# A labelled block with a title, such as a theorem or an exercise.
_BLOCK = re.compile(
    r"^[:`]{3,} *\{(?:prf:)?(?P<kind>\w+)(?:-start)?\} *(?P<title>[^\n]*)\n"
    r"(?::\w+:[^\n]*\n)*?:label: *(?P<label>\S+)",
    re.MULTILINE,
)
_TITLE = re.compile(r"^# +(.+?) *$", re.MULTILINE)
_NO_BLOCKS = ("solution", "math")


def names(project: Project, document: str) -> dict[str, str]:
    """What to call what is elsewhere, by its label, or by the place of a page in the book without suffix.

    Args:
        project: The book; a folder that is none has no names.
        document: Where the page's own chapter is in the book, without suffix.
    """
    found: dict[str, str] = {}
    for path in _pages(project):
        place = path.relative_to(project.root).with_suffix("").as_posix()
        if place == document:
            continue
        content = _content(path)
        texts = [nb.source(c) for c in content["cells"] if c["cell_type"] == "markdown"]
        title = _TITLE.search(texts[0]) if texts else None
        found[place] = title[1] if title else path.stem
        where = _where(path, found[place])
        for label, reference in markdown.references(content).items():
            kind = reference[1:].partition("}")[0]
            found[label] = _KINDS[kind].format(where)
        for block in (block for text in texts for block in _BLOCK.finditer(text)):
            if block["kind"] not in _NO_BLOCKS:
                called = f" “{block['title'].strip()}”" if block["title"].strip() else ""
                found[block["label"]] = f"{block['kind'].capitalize()}{called} of {where}"
    return found


def is_numbered(project: Project, document: str) -> bool:
    """Whether the book numbers the chapter, and by the number that its name begins with."""
    if not document.rpartition("/")[2][:1].isdigit():
        return False
    try:
        toc = yaml.safe_load((project.root / "_toc.yml").read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError):
        return False
    return _numbers(toc, document, False)


def _numbers(node: object, document: str, numbered: bool) -> bool:
    """Whether some part of a table of contents that is numbered has the document."""
    if isinstance(node, list):
        return any(_numbers(item, document, numbered) for item in node)
    if not isinstance(node, dict):
        return False
    options = {**(node.get("defaults") or {}), **(node.get("options") or {}), **node}
    numbered = bool(options.get("numbered", numbered))
    if numbered and str(node.get("file", "")).removesuffix(".ipynb") == document:
        return True
    return any(_numbers(value, document, numbered) for value in node.values())


def _pages(project: Project) -> Iterator[Path]:
    """The pages of the book that can be read; a page of its own does not fail for another one."""
    try:
        pages = project.pages()
    except BookError:
        return
    yield from (path for path in pages if path.suffix in (".ipynb", ".md"))


def _content(path: Path) -> nb.Notebook:
    if path.suffix == ".ipynb":
        try:
            return nb.read(path)
        except BookError:
            return {"cells": []}
    text = path.read_text(encoding="utf-8", errors="replace")
    return {"cells": [{"cell_type": "markdown", "source": text}]}


def _where(path: Path, title: str) -> str:
    number = re.match(r"\d+", path.stem)
    return f"chapter {int(number[0])}" if number else f"the page “{title}”"
