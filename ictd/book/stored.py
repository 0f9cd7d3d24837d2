"""Runs of chapters at full scale, kept with the book in `chapters/stored/NN/`.

The folder is small and made by `ictd store NN`: `run.json` says how, with which claims, and what each code
cell showed as Markdown; the figures are beside it, as PNG of few colours and as CSV. `stored_blocks` shows
them on the pages.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._files import write_bytes
from . import figure_files, provenance, trials
from . import notebook as nb
from .cache import StoredRun
from .errors import BookError
from .figure_files import FigureFiles
from .files import (
    locked,
    read_json,
    recover_folder,
    remove_folder,
    replace_folder,
    write_json,
)
from .project import PACKAGE, Project
from .runner import Expected, Plan

FORMAT = 1
#: The packages whose versions decide what a run shows.
PACKAGES = ("numpy", "torch", "matplotlib", "papermill")
#: The data of a figure is kept if it has at most so many bytes.
LARGEST_CSV = 100_000
_COLOURS = 256
_OF_RUN = ("chapter", "parameters", "claims", "started", "seconds", "peak_memory", "ictd", "python")
_KEYS = {*_OF_RUN, "command", "packages", "commit", "code", "sources", "cells"}


@dataclass(frozen=True)
class FullScale:
    """A stored run of a chapter.

    Attributes:
        folder: Where it is.
        info: The contents of `run.json`: command, chapter, parameters, claims, started, seconds,
            peak_memory (bytes), ictd, python, packages, commit, code (hash of the code cells), sources
            (name to hash) and cells, each with id, markdown, picture, picture_sha256, width and data.
    """

    folder: Path
    info: dict[str, Any]

    def changes(self, content: nb.Notebook) -> list[str]:
        """What has changed since, in words: the code of the chapter, and sources of the library.

        Files that the library did not have then are left out: only one that has changed can use them.
        """
        found = [] if self.info["code"] == trials.code_hash(content) else ["the chapter's code"]
        now = _science(provenance.source_digests(PACKAGE))
        return found + [
            f"`{name}`"
            for name, old in _science(self.info["sources"]).items()
            if now.get(name) != old
        ]


def number(chapter: str) -> str:
    """What a chapter's files begin with: 03 for 03_transformer_construction."""
    return chapter.partition("_")[0]


def parameter_file(project: Project, chapter: Path) -> Path:
    """The file with the parameters of a chapter's full scale.

    Raises:
        BookError: There is none.
    """
    path = project.root / "chapters" / "params" / f"{number(chapter.stem)}_paper.yml"
    if not path.is_file():
        raise BookError(
            f"{chapter.stem} has no full scale: there is no {path.relative_to(project.root)}"
        )
    return path


def expected(planned: Plan) -> Expected:
    """How long the last run of the same parameters took, of those in the cache and the stored one."""
    nearest = planned.store.nearest(planned.parts)
    if nearest is not None and nearest.info["parameters"] == planned.parameters:
        return Expected(float(nearest.info["seconds"]))
    info = read_json(_folder(planned.project, planned.chapter.stem) / "run.json")
    same = isinstance(info, dict) and info.get("parameters") == planned.parameters
    return Expected(float(info["seconds"]) if same else None)


def write(project: Project, run: StoredRun) -> Path:
    """Keep a run with the book, in the place of the last one of its chapter; return the folder.

    Raises:
        BookError: If a cell shows more than one picture.
    """
    info, content = run.info, nb.read(run.notebook)
    target = _folder(project, info["chapter"])
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(project):
        for left in target.parent.glob(".new-*"):  # of a process that was killed
            remove_folder(left)
        aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=".new-"))
        try:
            packages = {name: info["packages"].get(name) for name in PACKAGES}
            record = {
                "format": FORMAT,
                "command": f"ictd store {number(info['chapter'])}",
                **{name: info[name] for name in _OF_RUN},
                "packages": packages,
                "commit": info["commit"],
                "code": trials.code_hash(_as_written(content)),
                "sources": _science(info["parts"]["sources"]),
                "cells": list(_cells(content, aside)),
            }
            write_json(aside / "run.json", record)
            replace_folder(aside, target)
        finally:
            remove_folder(aside)
    return target


def load(project: Project, chapter: str) -> FullScale | None:
    """The stored run of a chapter, None if it has none.

    Raises:
        BookError: If it is damaged.
    """
    folder = _folder(project, chapter)
    if not folder.parent.is_dir():
        return None
    with _locked(project):
        recover_folder(folder)
    if not folder.exists():
        return None
    where = folder.relative_to(project.root)
    mend = f"make it again: ictd store {number(chapter)}"
    info = read_json(folder / "run.json")
    if not isinstance(info, dict) or info.get("format") != FORMAT or not info.keys() >= _KEYS:
        raise BookError(f"{where}/run.json is damaged or of another version; {mend}")
    if info["chapter"] != chapter:
        raise BookError(f"{where}/run.json is of the chapter {info['chapter']}; {mend}")
    names = [cell[kind] for cell in info["cells"] for kind in ("picture", "data") if cell[kind]]
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise BookError(f"{where} has no {' and no '.join(missing)}; {mend}")
    return FullScale(folder, info)


def _folder(project: Project, chapter: str) -> Path:
    return project.root / "chapters" / "stored" / number(chapter)


def _locked(project: Project) -> AbstractContextManager[None]:
    return locked(project.build_folder / "stored.lock")


def _science(sources: dict[str, str]) -> dict[str, str]:
    """The hashes of the library's sources without the machinery of the book and its command."""
    machinery = (f"{PACKAGE.name}/book/", f"{PACKAGE.name}/__main__.py")
    return {name: hash for name, hash in sources.items() if not name.startswith(machinery)}


def _as_written(content: nb.Notebook) -> nb.Notebook:
    """An executed notebook without the cell that papermill puts its parameters into."""
    cells = [cell for cell in content["cells"] if "injected-parameters" not in nb.tags(cell)]
    return {**content, "cells": cells}


def is_kept(cell: nb.Cell) -> bool:
    """Whether what a cell shows is kept: no solution, no times of this machine, nothing stored before."""
    left_out = {"timing", nb.STORED, "injected-parameters"} & set(nb.tags(cell))
    code = cell["cell_type"] == "code" and "id" in cell
    return code and not left_out and not cell["id"].startswith("sol-")


def _cells(content: nb.Notebook, folder: Path) -> Iterator[dict[str, Any]]:
    """What each cell shows, for `run.json`; pictures and data are written into the folder."""
    figures = figures_of(content)
    for place, cell in enumerate(content["cells"]):
        if not is_kept(cell):
            continue
        entry = shown(cell, figures.get(place))
        if figure := figures.get(place):
            small = _small(figure.contents["png"])
            entry |= {"picture": f"{cell['id']}.png", "width": _width(cell)}
            write_bytes(folder / entry["picture"], small)
            data = figure.contents.get("csv", b"")
            if 0 < len(data) <= LARGEST_CSV:
                entry["data"] = f"{cell['id']}.csv"
                write_bytes(folder / entry["data"], data)
        if entry["markdown"] or entry["picture"]:
            yield entry


def shown(cell: nb.Cell, figure: FigureFiles | None) -> dict[str, Any]:
    """The id of a cell, its Markdown outputs, and a hash of its picture as the run made it."""
    outputs = (output.get("data", {}) for output in cell["outputs"])
    return {
        "id": cell["id"],
        "markdown": [
            nb.joined(data["text/markdown"]) for data in outputs if "text/markdown" in data
        ],
        "picture": None,
        "picture_sha256": figure and provenance.sha256(figure.contents["png"]),
        "width": None,
        "data": None,
    }


def figures_of(content: nb.Notebook) -> dict[int, FigureFiles]:
    """The figures of cells that are kept, by the places of the cells.

    Raises:
        BookError: If one of them shows more than one picture.
    """
    found: dict[int, FigureFiles] = {}
    for figure in figure_files.collect(content):
        if not is_kept(content["cells"][figure.cell]):
            continue
        if figure.cell in found:
            raise BookError(
                f"cell {figure.name} shows two pictures; a cell whose results are stored can have one"
            )
        found[figure.cell] = figure
    return found


def _width(cell: nb.Cell) -> int | None:
    """The width at which a cell shows its picture, in pixels; None if it does not say."""
    for output in cell["outputs"]:
        if "image/png" in output.get("data", {}):
            width = output.get("metadata", {}).get("image/png", {}).get("width")
            return int(width) if width else None
    return None


def _small(png: bytes) -> bytes:
    """A picture in a palette of few colours, on white."""
    # matplotlib depends on Pillow; only who makes figures comes here.
    from PIL import Image

    with Image.open(io.BytesIO(png)) as picture:
        layer = picture.convert("RGBA")
    opaque = Image.new("RGBA", layer.size, "white")
    opaque.alpha_composite(layer)
    few = opaque.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    made = io.BytesIO()
    few.save(made, format="PNG", optimize=True)
    return made.getvalue()
