"""The figures of an executed chapter as files: the picture as PNG and SVG, and the data as CSV."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .._files import write_bytes
from . import notebook as nb

_KINDS = {"image/png": "png", "image/svg+xml": "svg", "text/csv": "csv"}
# What the page itself does not show.
_BESIDE = ("image/svg+xml", "text/csv")


@dataclass(frozen=True)
class FigureFiles:
    """The files of one figure.

    Attributes:
        cell: Place of its cell in the notebook.
        name: Its label in the book, or the id of its cell.
        caption: Markdown, empty if it has none.
        alt: What a reader who does not see it is told.
        contents: Ending of a file's name ("png", "svg", "csv") to the file's bytes.
    """

    cell: int
    name: str
    caption: str
    alt: str
    contents: dict[str, bytes]

    def file_name(self, chapter: str, kind: str) -> str:
        """Such as 03-fig-parts.csv, for chapter 03_…."""
        return f"{chapter.partition('_')[0]}-{self.name}.{kind}"


def collect(notebook: nb.Notebook) -> Iterator[FigureFiles]:
    """The figures of an executed notebook, in its order."""
    for place, cell in enumerate(notebook["cells"]):
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" not in data:
                continue
            shown = cell["metadata"].get("mystnb", {})
            figure = shown.get("figure", {})
            yield FigureFiles(
                cell=place,
                name=figure.get("name") or cell.get("id") or f"cell-{place}",
                caption=figure.get("caption", ""),
                alt=shown.get("image", {}).get("alt", ""),
                contents={
                    _KINDS[mime]: _bytes(mime, data[mime]) for mime in _KINDS if mime in data
                },
            )


def write(notebook: nb.Notebook, chapter: str, folder: Path) -> None:
    """Write the figures of a chapter into a folder, which is made if there is a figure."""
    for figure in collect(notebook):
        folder.mkdir(parents=True, exist_ok=True)
        for kind, content in figure.contents.items():
            write_bytes(folder / figure.file_name(chapter, kind), content)


def with_links(notebook: nb.Notebook, chapter: str, folder: str) -> nb.Notebook:
    """A copy that shows each figure once and links its files, which are in ``folder``, below it."""
    notebook = copy.deepcopy(notebook)
    cells = notebook["cells"]
    for figure in reversed(list(collect(notebook))):
        for output in cells[figure.cell]["outputs"]:
            for mime in _BESIDE:
                output.get("data", {}).pop(mime, None)
        files = {kind: f"{folder}/{figure.file_name(chapter, kind)}" for kind in figure.contents}
        text = links(files, stored=nb.STORED in nb.tags(cells[figure.cell]))
        cell = nb.markdown_cell(notebook, f"files-{figure.cell}", text, ["figure-files"])
        cells.insert(figure.cell + 1, cell)
    return notebook


def links(files: Mapping[str, str], *, stored: bool) -> str:
    """The line below a figure: whether it is live or stored, and links to its files by their kinds."""
    which = "Stored" if stored else "Live"
    what = "figure and data" if "csv" in files else "figure"
    shown = ", ".join(f"{{download}}`{kind.upper()} <{file}>`" for kind, file in files.items())
    return f":::{{div}} figure-files\n{which} {what}: {shown}\n:::"


def parts(notebook: nb.Notebook, document: str, folder: str) -> dict[str, str]:
    """Each figure as a part that another page can ask for, by ``figure:CHAPTER/NAME``.

    Args:
        notebook: The executed chapter.
        document: Its place in the book without suffix, such as `chapters/02_weighted_softmax_td`.
        folder: Where the files of its figures are.
    """
    chapter = document.rpartition("/")[2]
    return {
        f"figure:{chapter}/{figure.name}": (
            f":::{{figure}} {folder}/{figure.file_name(chapter, 'png')}\n"
            f":alt: From a chapter: {figure.alt}\n:width: 520px\n\n"
            f"{figure.caption} From {{doc}}`/{document}`.\n:::"
        )
        for figure in collect(notebook)
    }


def _bytes(mime: str, content: str | list[str]) -> bytes:
    text = nb.joined(content)
    return base64.b64decode(text) if mime == "image/png" else text.encode()
