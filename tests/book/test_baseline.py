"""What stands beside the results of other parameters: a run here, else what was recorded with the book."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ictd.book import baseline, notebook, runner
from ictd.book.beside import Beside, Outcome
from ictd.book.cache import StoredRun
from ictd.book.project import Project

CLAIMS = [{"id": "c", "value": 1.0, "passed": True}]
NUMBERS = [{"name": "n", "value": 2.0, "meaning": "m"}]


@pytest.fixture
def chapter(toy, monkeypatch):
    monkeypatch.setattr(runner, "PACKAGE", toy.library / "ictd")
    return toy.add("01_toy", "print(1)")


def info(plan: runner.Plan, seconds: float, started: str) -> dict:
    return {
        "chapter": "01_toy", "parameters": plan.parameters, "claims": CLAIMS, "numbers": NUMBERS,
        "seconds": seconds, "started": started, "at_defaults": True, "parts": plan.parts,
    }  # fmt: skip


def test_nothing_is_known_at_first(chapter, toy):
    planned = runner.plan(Project(toy.root), chapter, {"gamma": 0.5})
    assert baseline.beside(planned, notebook.read(chapter)) == Beside(None, "")
    assert baseline.seconds(Project(toy.root)) == {}
    assert str(planned.expected({})) == "its time is not known yet"


def test_the_record_of_the_book_serves_until_there_is_a_run(chapter, toy):
    project, content = Project(toy.root), notebook.read(chapter)
    planned = runner.plan(project, chapter, {"gamma": 0.5})
    at_defaults = runner.plan(project, chapter)
    recorded = info(at_defaults, 3.0, "2026-01-02T03:04:05+00:00")
    baseline.record(project, [(content, StoredRun(Path("nowhere"), recorded))])
    found = baseline.beside(planned, content)
    assert found.default == Outcome({"gamma": 0.9}, CLAIMS, NUMBERS)
    assert found.which == "recorded with the book on 2026-01-02"
    assert planned.expected(baseline.seconds(project)).seconds == 3.0

    aside = planned.store.new_folder()
    (aside / "executed.ipynb").write_text("{}")
    planned.store.add(aside, info(at_defaults, 4.0, "2026-02-03T03:04:05+00:00"))
    assert baseline.beside(planned, content).which == "a run of 2026-02-03 on this machine"


def test_a_record_of_other_code_says_nothing(chapter, toy):
    project, content = Project(toy.root), notebook.read(chapter)
    planned = runner.plan(project, chapter)
    run = StoredRun(Path("nowhere"), info(planned, 3.0, "2026-01-02T03:04:05+00:00"))
    baseline.record(project, [(content, run)])
    changed = json.loads(json.dumps(content).replace("print(1)", "print(2)"))
    assert baseline.beside(planned, changed) == Beside(None, "")
