"""Edits of chapter 9, each with the claims that must fail in the chapter so broken.

The chapter runs other notebooks and is slow; edits that do not touch each other share a run.
"""

from collections.abc import Callable
from typing import Any

from chapter_runs import replaced


def together(*pairs: tuple[str, str]) -> Callable[[list[Any]], None]:
    """An edit of several pieces of code."""

    def edit(cells: list[Any]) -> None:
        for old, new in pairs:
            replaced(old, new)(cells)

    return edit


BROKEN: dict[str, tuple[Callable[[list[Any]], None], set[str]]] = {
    "accepted": (
        together(
            ('"ictd run 02 -p gama 0.5 -o no"', '"ictd run 02 -p gamma 0.5 --dry-run"'),
            ("--no-progress-bar -p gama 0.5", "--no-progress-bar -p gamma 2"),
            ("write_text(text.replace", "write_text('length: 201\\n' + text.replace"),
            ("after = finished()", "after = finished()\nafter.popitem()"),
        ),
        {"refused", "papermill", "same-key", "once"},
    ),
    "done-again": (
        together(
            ("done = shell(sweep)", 'done = shell(sweep + " --force")'),
            ('"length": 1,', '"length": 199,'),
            ("swept if r.parameters == last", "swept if r.parameters != last"),
            ('result.numbers["error"])\n', 'result.numbers["rate"])\n'),
            ('"length": 200, "gamma"', '"length": 201, "gamma"'),
            ("name, x in far.numbers", "name, x in again.results()[-1].numbers"),
        ),
        {"untouched", "same-point", "failed-alone", "compared", "found-again", "alike"},
    ),
    "other-point": (
        replaced("last = book.run(", "python['seed'] += 1\nlast = book.run("),
        {"same-key"},
    ),
}
