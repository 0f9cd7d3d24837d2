"""The ledger: the paper's statements joined with what the runs of the book found.

Whether a statement holds, the bounds and the measured values come from the runs, and how often a
claim held at other seeds from the trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import claims, notebook, trials
from .cache import StoredRun
from .project import Project, names
from .statements import Statement, load

PASS, FAIL, OPEN, NOT_CHECKABLE = "pass", "fail", "open", "not checkable"
STATUSES = (PASS, FAIL, OPEN, NOT_CHECKABLE)


@dataclass(frozen=True)
class Checked:
    """A claim of a run.

    Attributes:
        chapter: The chapter's name.
        record: What the run recorded: the claim with its measured value.
        held: At how many other seeds it held; None if the chapter was not tried as it is now.
        of_seeds: At how many it was tried.
    """

    chapter: str
    record: dict[str, Any]
    held: int | None
    of_seeds: int | None

    @property
    def claim(self) -> claims.Claim:
        return claims.Claim.of(self.record)

    def as_json(self) -> dict[str, Any]:
        """The record of the claim with its chapter, and the counts if there are any."""
        tried = {} if self.held is None else {"held": self.held, "of_seeds": self.of_seeds}
        return {"chapter": self.chapter, **self.record, **tried}


@dataclass(frozen=True)
class Row:
    """A statement joined with the runs.

    Attributes:
        statement: The statement.
        status: One of `STATUSES`.
        reason: Why it is open or not checkable, else empty.
        claims: The claims of the runs that check it.
        anchor: The chapter's full name and the label, None if that chapter was not run.
    """

    statement: Statement
    status: str
    reason: str
    claims: tuple[Checked, ...]
    anchor: tuple[str, str] | None

    def as_json(self) -> dict[str, Any]:
        """The statement and its status; claims as CHAPTER/CLAIM with the chapter's full name."""
        one, anchor = self.statement, self.anchor
        return {
            "id": one.id,
            "statement": one.statement,
            "where": one.where,
            "status": self.status,
            "reason": self.reason or None,
            "claims": [f"{found.chapter}/{found.record['id']}" for found in self.claims],
            "tests": list(one.tests),
            "anchor": {"chapter": anchor[0], "label": anchor[1]} if anchor else None,
        }


@dataclass(frozen=True)
class Ledger:
    """The paper's statements with their status, and all claims of the runs."""

    rows: tuple[Row, ...]
    claims: tuple[Checked, ...]

    @property
    def beside_the_paper(self) -> list[Checked]:
        """The claims that are ours or of other papers, and any of the paper that no statement names."""
        named = [found for row in self.rows for found in row.claims]
        return [
            found for found in self.claims if found.claim.origin != "paper" or found not in named
        ]

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON data."""
        return {
            "paper": claims.PAPER,
            "statements": [row.as_json() for row in self.rows],
            "claims": [found.as_json() for found in self.claims],
        }


def make(project: Project, runs: Iterable[StoredRun]) -> Ledger:
    """Join the statements of a project with the claims of runs of its chapters.

    Raises:
        StatementError: If the statements are not well formed.
    """
    runs = list(runs)
    checked = tuple(found for run in runs for found in _checked(project, run))
    chapters = _chapters(run.info["chapter"] for run in runs)
    known = {(found.chapter, found.record["id"]): found for found in checked}
    rows = tuple(_row(statement, chapters, known) for statement in load(project))
    return Ledger(rows, checked)


def _checked(project: Project, run: StoredRun) -> list[Checked]:
    """The claims of a run, with how often they held at other seeds."""
    chapter = run.info["chapter"]
    tried = trials.recorded(project, chapter, notebook.read(run.notebook))
    found = []
    for record in run.info["claims"]:
        held = tried.held.get(record["id"], 0) if tried else None
        found.append(Checked(chapter, record, held, tried.seeds if tried else None))
    return found


def _chapters(stems: Iterable[str]) -> dict[str, str]:
    """What chapters may be called, by the file's name or by the number, to the full name."""
    found: dict[str, list[str]] = {}
    for stem in stems:
        for name in names(Path(f"{stem}.ipynb")):
            found.setdefault(name, []).append(stem)
    return {name: stems[0] for name, stems in found.items() if len(stems) == 1}


def _row(
    statement: Statement,
    chapters: Mapping[str, str],
    known: Mapping[tuple[str, str], Checked],
) -> Row:
    anchor = None
    if statement.anchor:
        chapter, label = statement.anchor.split("#")
        if chapter in chapters:
            anchor = (chapters[chapter], label)
    found, missing = [], []
    for name in statement.claims:
        chapter, id = name.split("/")
        claim = known.get((chapters.get(chapter, chapter), id))
        if claim is None:
            missing.append(name)
        else:
            found.append(claim)
    if statement.open:
        status, reason = OPEN, statement.open
    elif statement.not_checkable:
        status, reason = NOT_CHECKABLE, statement.not_checkable
    elif not all(claim.claim.passed for claim in found):
        status, reason = FAIL, ""
    elif missing:
        status, reason = OPEN, f"this run makes no claim {' or '.join(missing)}"
    else:
        status, reason = PASS, ""
    return Row(statement, status, reason, tuple(found), anchor)
