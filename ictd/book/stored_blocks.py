"""What a page shows of its chapter's stored run: a block below the title, and one below each cell.

Both are folded and say that they are stored, so that a reader takes them for no part of the page's own run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import figure_files, provenance, stored
from . import notebook as nb
from .figure_files import FigureFiles
from .parameters import Value

_COLONS = re.compile(r"^ *(:{3,})", re.MULTILINE)
# What a caption has beside its words: names of roles, goals of links, signs of maths and code.
_MARKUP = re.compile(r"\{\w+(?::\w+)?\}(?=`)|(?<=\])\([^)]*\)|[$`*\[\]\\{}]")


def with_blocks(
    content: nb.Notebook, full: stored.FullScale, live: Mapping[str, Value], commit: str
) -> nb.Notebook:
    """A copy of an executed chapter with what its full scale gave, below the title and below the cells.

    A cell that shows the same at full scale gets nothing.

    Args:
        content: The executed chapter.
        full: Its stored run.
        live: The parameters of the run that the page shows.
        commit: The project's present one.
    """
    kept = {entry["id"]: entry for entry in full.info["cells"]}
    figures = stored.figures_of(content)
    cells: list[nb.Cell] = []
    below = 0
    for place, cell in enumerate(content["cells"]):
        cells.append(cell)
        entry = kept.pop(cell.get("id", ""), None)
        if entry is None:
            continue
        figure = figures.get(place)
        if not _same(entry, stored.shown(cell, figure)):
            text = _block(entry, full, figure)
            cells.append(nb.markdown_cell(content, f"stored-{entry['id']}", text, ["full-scale"]))
            below += 1
    head = _head(full, live, full.changes(content), len(kept), below, commit)
    first = 1 if cells and cells[0]["cell_type"] == "markdown" else 0
    cells.insert(first, nb.markdown_cell(content, "full-scale", head, ["full-scale"]))
    return {**content, "cells": cells}


def summary(full: stored.FullScale | None) -> str:
    """When and in what time the full scale of a chapter was run, and whether claims failed, in words."""
    if full is None:
        return "none"
    failed = provenance.verdicts(full.info)[1]
    made = f"stored, of {full.info['started'][:10]}, {provenance.seconds(full.info)}"
    return f"{made}; {failed} failed" if failed else made


def _same(entry: Mapping[str, Any], shown: Mapping[str, Any]) -> bool:
    return all(entry[name] == shown[name] for name in ("markdown", "picture_sha256"))


def _head(
    full: stored.FullScale,
    live: Mapping[str, Value],
    changes: Sequence[str],
    lost: int,
    below: int,
    commit: str,
) -> str:
    """The block below the title: how the stored run was made, and what has changed since."""
    info = full.info
    changed = {k: v for k, v in info["parameters"].items() if k not in live or live[k] != v}
    passed, failed = provenance.verdicts(info)
    verdict = f"{passed} pass, {failed} fail"
    if failed:
        verdict += ": " + ", ".join(f"`{one['id']}`" for one in info["claims"] if not one["passed"])
    made_at = info["commit"]
    if not (changes or provenance.is_clean(made_at)) and provenance.is_clean(commit):
        made_at += f"; chapter and library were those of {commit}"
    lines = [
        "- Computed before this page was made, and stored",
        f"- Parameters other than the defaults: {provenance.assignments(changed) or 'none'}",
        f"- Claims: {verdict}",
        f"- Run on {provenance.when(info)}, in {provenance.seconds(info)}, "
        f"peak memory {provenance.memory(info)}",
        f"- {provenance.versions(info)}",
        f"- Commit: {made_at}",
        f"- To repeat it: `{info['command']}`",
    ]
    if below:
        lines.append("- What a cell showed is folded below it, unless it shows the same here")
    if changes:
        lines.append(f"- Changed since: {', '.join(changes)}")
    if lost:
        lines.append(f"- Cells that the chapter has no more: {lost}; they are not shown")
    return _admonition("At full scale", ["\n".join(lines)])


def _block(entry: Mapping[str, Any], full: stored.FullScale, figure: FigureFiles | None) -> str:
    """What a cell showed at full scale, folded."""
    parts = list(entry["markdown"])
    if entry["picture"]:
        folder = f"/chapters/stored/{full.folder.name}"
        alt = _alt(figure.caption if figure else "", full, entry["id"])
        options = [f":alt: {json.dumps(alt, ensure_ascii=False)}"]
        options += [f":width: {entry['width']}px"] if entry["width"] else []
        parts.append("\n".join([f":::{{image}} {folder}/{entry['picture']}", *options, ":::"]))
        files = [(kind, entry[kind]) for kind in ("picture", "data") if entry[kind]]
        parts.append(
            figure_files.links(
                {n.rpartition(".")[2]: f"{folder}/{n}" for _, n in files}, stored=True
            )
        )
    return _admonition("At full scale (stored)", parts)


def _alt(caption: str, full: stored.FullScale, id: str) -> str:
    """What a reader who does not see a stored figure is told: its caption in plain words."""
    words = " ".join(_MARKUP.sub("", caption).split()).rstrip(".")
    words = words or f"The figure of the cell {id} of {full.info['chapter']}"
    return f"{words}, at full scale, stored"


def _admonition(title: str, parts: Sequence[str]) -> str:
    """A folded block around pieces of Markdown, whatever fences they have."""
    # A comment between them keeps two lists apart.
    text = "\n\n%\n\n".join(parts)
    longest = max((len(found) for found in _COLONS.findall(text)), default=3)
    fence = ":" * (longest + 1)
    return f"{fence}{{admonition}} {title}\n:class: dropdown stored\n\n{text}\n{fence}"
