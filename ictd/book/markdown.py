"""Markdown that is made, not written: tables, marked places of pages, references to labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from . import notebook as nb
from .errors import BookError

_PLACE = re.compile(r"^% ictd build: *(?P<name>\S+) *\n.*?^% end *$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"^% (ictd build:.*|end *)$", re.MULTILINE)

_EQUATION = re.compile(r"\$\$ *\(([^)\s]+)\)|\\label\{([^}]+)\}")
_PROOF = re.compile(r"^[:`]{3,}\{prf:\w+\}[^\n]*\n(?::\w+:[^\n]*\n)*?:label: *(\S+)", re.MULTILINE)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table of Markdown cells.

    Args:
        header: The names of the columns.
        rows: Cells, as many in each row as there are columns.
        right: Indices of the columns whose cells are set to the right.
    """
    rule = ["--:" if column in right else ":--" for column in range(len(header))]
    return "\n".join(f"| {' | '.join(map(cell, row))} |" for row in (header, rule, *rows))


def cell(text: str) -> str:
    """Markdown as it stands in a cell: in one line, and no bar in it ends the cell."""
    return " ".join(text.replace("|", "\\|").split())


def fill(text: str, parts: Mapping[str, str], where: str) -> str:
    """Put parts into the places that a page marks for them.

    A place begins with a line `% ictd build: NAME` and ends with a line `% end`. What stands between
    them is what a reader sees where nothing is filled in.

    Raises:
        BookError: If a place asks for a part that there is not, or has no end.
    """

    def part(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in parts:
            known = ", ".join(sorted(parts))
            raise BookError(f"{where}: there is no part {name!r} to fill in; there are: {known}")
        return parts[name]

    pieces = _PLACE.split(text)
    for outside in pieces[::2]:
        if mark := _MARK.search(outside):
            raise BookError(f"{where}: {mark[0]!r} has no counterpart")
    return _PLACE.sub(part, text)


def references(notebook: nb.Notebook) -> dict[str, str]:
    """Label of an equation, a theorem or a figure of a chapter to the reference that shows its number."""
    found = {}
    for one in notebook["cells"]:
        if one["cell_type"] == "markdown":
            text = nb.source(one)
            for pair in _EQUATION.findall(text):
                label = next(filter(None, pair))
                found[label] = f"{{eq}}`{label}`"
            found |= {label: f"{{prf:ref}}`{label}`" for label in _PROOF.findall(text)}
        elif label := one.get("metadata", {}).get("mystnb", {}).get("figure", {}).get("name"):
            found[label] = f"{{numref}}`{label}`"
    return found
