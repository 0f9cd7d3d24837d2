"""A Sphinx extension: a chapter has the number that its file's name begins with.

Sphinx counts chapters by their place in the table of contents. With this, `07_beyond.ipynb` is chapter 7
also where 05 and 06 are not there: in its title, in the sidebar, and in the numbers of its sections,
figures, equations, theorems and exercises. Pages without such a name keep the number that Sphinx gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector

# After Sphinx and the extensions that count in its place, which are called at 500.
_AFTER_SPHINX = 600


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx for each name in its list of extensions."""
    app.connect("env-get-updated", _renumber, priority=_AFTER_SPHINX)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _renumber(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Take the numbers from the names; return the pages on which something changed."""
    changed = []
    for page in list(env.toc_secnumbers):
        number = _number(page)
        if number is not None and _is_chapter(env, page):
            for part in _with_subpages(env, page):
                changed += [part] if _set(env, part, number) else []
    # Figures, equations and the like were counted by the old numbers of their sections.
    return changed + TocTreeCollector().assign_figure_numbers(env) if changed else []


def _number(page: str) -> int | None:
    """The number that a page's name begins with, such as 7 for chapters/07_beyond."""
    found = re.match(r"\d+", page.rpartition("/")[2])
    return int(found[0]) if found else None


def _is_chapter(env: BuildEnvironment, page: str) -> bool:
    """Whether a page is numbered, and not as a part of another one."""
    # The name of the title's anchor is empty. A page without a number has None there.
    return len(env.toc_secnumbers[page].get("") or ()) == 1


def _with_subpages(env: BuildEnvironment, page: str) -> Iterator[str]:
    """A chapter, and the numbered pages below it in the table of contents."""
    if page in env.toc_secnumbers:
        yield page
        for below in env.toctree_includes.get(page, []):
            yield from _with_subpages(env, below)


def _set(env: BuildEnvironment, page: str, number: int) -> bool:
    """Put the number of a chapter in the place of the first of each number; say if it was another."""
    old = env.toc_secnumbers[page]
    new = {anchor: (number, *found[1:]) if found else found for anchor, found in old.items()}
    if new == old:
        return False
    env.toc_secnumbers[page] = new
    for node in (env.titles[page], *env.tocs[page].findall(nodes.reference)):
        if node.get("secnumber"):
            node["secnumber"] = [number, *node["secnumber"][1:]]
    return True
