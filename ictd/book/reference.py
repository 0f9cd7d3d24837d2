"""The parts of the book's reference pages that are made from the runs: ledger and status."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from . import claims, machine, markdown, notebook, provenance
from .cache import StoredRun
from .ledger import FAIL, NOT_CHECKABLE, OPEN, PASS, Checked, Ledger, Row
from .project import Project
from .statements import StatementError
from .stored import FullScale
from .stored_blocks import summary

MARKS = {PASS: "✓ pass", FAIL: "✗ fail", OPEN: "open", NOT_CHECKABLE: "not checkable"}


@dataclass(frozen=True)
class Page:
    """An executed chapter as it is staged.

    Attributes:
        document: Its place in the book without suffix, such as `chapters/02_weighted_softmax_td`.
        run: The run that it is of.
        content: The executed notebook.
        full_scale: The stored run of the chapter at full scale, if there is one.
    """

    document: str
    run: StoredRun
    content: notebook.Notebook
    full_scale: FullScale | None = None


def parts(
    project: Project, pages: Sequence[Page], ledger: Ledger, commit: str, url: str
) -> dict[str, str]:
    """Everything that a page can ask to be filled in: `statements`, `claims` and `chapters`.

    Args:
        project: The book.
        pages: The executed chapters.
        ledger: Statements and claims of the same runs.
        commit: The project's present commit, for runs whose changes have been committed since.
        url: Where files of the project can be read, without a slash at the end; empty if nowhere.

    Raises:
        StatementError: If a statement's anchor is not in its chapter.
    """
    return {
        "statements": _statements(pages, ledger, url),
        "claims": _claims(project, pages, ledger, url),
        "chapters": _chapters(pages, commit),
    }


def with_targets(content: notebook.Notebook, chapter: str) -> notebook.Notebook:
    """A copy of an executed chapter in which other pages can refer to the cell of each claim."""
    cells = []
    for cell in content["cells"]:
        if ids := claims.claimed(cell):
            text = "\n".join(f"({target(chapter, id)})=" for id in ids)
            cells.append(notebook.markdown_cell(content, target(chapter, ids[0]), text))
        cells.append(cell)
    return {**content, "cells": cells}


def target(chapter: str, claim: str) -> str:
    """The label of the cell that makes a claim."""
    return re.sub(r"[^a-z0-9]+", "-", f"claim-{chapter}-{claim}".lower()).strip("-")


# ------------------------------------------------------------------------------------------- the ledger


def _statements(pages: Sequence[Page], ledger: Ledger, url: str) -> str:
    if not ledger.rows:
        return "No statements are listed."
    references = {page.run.info["chapter"]: markdown.references(page.content) for page in pages}
    checked, others = [], []
    for row in ledger.rows:
        here, one = _anchor(row, references), row.statement
        tests = _lines(_file(test, url) for test in one.tests)
        if row.status in (PASS, FAIL):
            found = row.claims
            columns = (_lines(map(_link, found)), *_figures(found), tests)
            checked.append((one.statement, one.where, MARKS[row.status], here, *columns))
        else:
            why = f"{MARKS[row.status]}: {row.reason}"
            others.append((one.statement, one.where, why, here, tests))
    count = Counter(row.status for row in ledger.rows)
    summary = ", ".join(f"{count[status]} {words}" for status, words in _SUMMARY.items())
    text = [f"Of {len(ledger.rows)} statements, {summary}. {_AS_JSON}"]
    if checked:
        text += ["### Checked", _table("checked", _CHECKED, checked)]
    if others:
        text += ["### Open, or not checkable", _table("unchecked", _OTHERS, others)]
    return "\n\n".join(text)


_SUMMARY = {
    PASS: "are checked and hold",
    FAIL: "are checked and fail",
    OPEN: "are open",
    NOT_CHECKABLE: "cannot be checked",
}
_AS_JSON = 'The same as data: <a href="../claims.json">claims.json</a>.'
_MEASURED = ("bound", "measured", "other seeds")
_CHECKED = ("statement", "in the paper", "status", "here", "claims", *_MEASURED, "tests")
_OTHERS = ("statement", "in the paper", "status", "here", "tests")
_OWN = ("claim", "statement", "source", "status", *_MEASURED)


def _claims(project: Project, pages: Sequence[Page], ledger: Ledger, url: str) -> str:
    text = []
    for page in pages:
        chapter = page.run.info["chapter"]
        made = [one for one in ledger.beside_the_paper if one.chapter == chapter]
        if not made:
            continue
        text += [f"### {_title(page.content)}", _made_in(project, page, url)]
        rows = []
        for found in made:
            status = MARKS[PASS if found.claim.passed else FAIL]
            one = found.claim
            rows.append((_link(found), one.statement, one.source, status, *_figures([found])))
        text.append(_table("own", _OWN, rows))
    return "\n\n".join(text) or "No claims were made."


def _made_in(project: Project, page: Page, url: str) -> str:
    """The chapter, and where it is broken on purpose so that each of its claims is seen to fail."""
    name = f"tests/sabotage/chapter_{page.run.info['chapter'][:2]}.py"
    if not (project.root / name).is_file():
        return f"Made in {{doc}}`/{page.document}`."
    broken = f"a copy of {{doc}}`/{page.document}` that {_file(name, url)} breaks"
    return f"Each of these claims was seen to fail in {broken}."


def _anchor(row: Row, references: Mapping[str, Mapping[str, str]]) -> str:
    if row.anchor is None:
        return ""
    chapter, label = row.anchor
    if label not in references[chapter]:
        raise StatementError(
            f"statement {row.statement.id!r}: {chapter} has no equation, theorem or figure of the "
            f"label {label!r}"
        )
    return references[chapter][label]


def _link(found: Checked) -> str:
    id = found.record["id"]
    return f"{{ref}}`{id} <{target(found.chapter, id)}>`"


def _figures(found: Sequence[Checked]) -> tuple[str, str, str]:
    """Bound, measured value and other seeds of claims, a line for each."""
    seeds = ("–" if one.held is None else f"{one.held} of {one.of_seeds}" for one in found)
    bounds, values = (one.claim.bound for one in found), (one.claim.measured for one in found)
    return _lines(bounds), _lines(values), _lines(seeds)


def _lines(texts: Iterable[str]) -> str:
    return "<br>".join(texts)


def _file(name: str, url: str) -> str:
    """A file, or a test in one, with a link where the project can be read."""
    return f"[`{name}`]({url}/{name.partition('::')[0]})" if url else f"`{name}`"


# ------------------------------------------------------------------------------------- the status page


_RUN = (
    "claims that pass",
    "that fail",
    "run time",
    f"CPU time (limit {machine.CPU_PER_CHAPTER:.0f} s)",
    f"peak memory (limit {machine.MEMORY_PER_CHAPTER / 1e6:.0f} MB)",
)
_MADE = ("run on", "commit", "figures", "full scale")


def _chapters(pages: Sequence[Page], commit: str) -> str:
    rows = [
        (f"{{doc}}`/{page.document}`", *_status(page.run), *_made(page, commit)) for page in pages
    ]
    right = range(1, 1 + len(_RUN))
    table = _table("status", ("chapter", *_RUN, *_MADE), rows, right=right)
    return f"{_measured_on(pages)}\n\n{table}"


def _measured_on(pages: Sequence[Page]) -> str:
    """On what machines the runs were, and which of them took more than they should."""
    machines = sorted({page.run.info["machine"] for page in pages})
    text = [f"Measured on {'; and on '.join(machines)}."]
    for page in pages:
        for what in provenance.over_limits(page.run.info):
            text.append(f"{{doc}}`/{page.document}` takes more {what} than the limit.")
    return " ".join(text)


def _status(run: StoredRun) -> tuple[str, ...]:
    info = run.info
    passed, failed = map(str, provenance.verdicts(info))
    return passed, failed, provenance.seconds(info), provenance.cpu(info), provenance.memory(info)


def _made(page: Page, commit: str) -> tuple[str, ...]:
    info = page.run.info
    stored = sum(notebook.STORED in notebook.tags(cell) for cell in page.content["cells"])
    figures = "live" if not stored else f"live, and {stored} cells of stored results"
    made_at = provenance.shown_commit(info, commit)
    return provenance.when(info), made_at, figures, summary(page.full_scale)


def _title(content: notebook.Notebook) -> str:
    """The heading that an executed chapter begins with."""
    first = notebook.source(content["cells"][0]).strip().partition("\n")[0]
    return first.removeprefix("# ")


def _table(
    name: str, header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> str:
    """A table of a class of its own, by which the style sheet knows its columns."""
    return f"```{{table}}\n:class: made made-{name}\n{markdown.table(header, rows, right)}\n```"
