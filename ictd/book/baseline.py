"""What the chapters give at their defaults, as it was recorded with the book in `chapters/defaults.json`.

The record tells a reader who has run nothing yet how long a chapter takes, and what stands beside the
results of other parameters.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import trials
from .beside import Beside, Outcome
from .cache import StoredRun
from .files import read_json, write_json
from .notebook import Notebook
from .project import Project
from .runner import Plan

_OUTCOME = ("parameters", "claims", "numbers")


def record(project: Project, runs: Iterable[tuple[Notebook, StoredRun]]) -> None:
    """Write what chapters gave, each as its notebook and its run at the defaults."""
    made = {
        run.info["chapter"]: {
            "code": trials.code_hash(content),
            "started": run.info["started"],
            "seconds": run.info["seconds"],
            **{name: run.info[name] for name in _OUTCOME},
        }
        for content, run in runs
    }
    write_json(_path(project), made)


def seconds(project: Project) -> dict[str, float]:
    """The recorded seconds of each chapter."""
    return {chapter: float(entry["seconds"]) for chapter, entry in _all(project).items()}


def beside(planned: Plan, content: Notebook) -> Beside:
    """What stands beside other results of a chapter: what it gives at its defaults.

    A stored run of the same code goes before the record, whose numbers may be of another machine.

    Args:
        planned: The chapter with any parameters.
        content: Its notebook.
    """
    if found := planned.store.find(planned.parts_at(planned.defaults)):
        return Beside(_of(found.info), f"a run of {found.info['started'][:10]} on this machine")
    entry = _all(planned.project).get(planned.chapter.stem)
    if entry and entry["code"] == trials.code_hash(content):
        return Beside(_of(entry), f"recorded with the book on {entry['started'][:10]}")
    return Beside(None, "")


def _of(entry: dict[str, Any]) -> Outcome:
    return Outcome(**{name: entry[name] for name in _OUTCOME})


def _all(project: Project) -> dict[str, Any]:
    found = read_json(_path(project))
    return found if isinstance(found, dict) else {}


def _path(project: Project) -> Path:
    return project.root / "chapters" / "defaults.json"
