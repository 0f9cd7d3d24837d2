"""What holds for every chapter: its parameters matter, to the numbers too, its parameter files work."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from chapter_runs import (
    CHAPTERS,
    another_value,
    as_it_is,
    declared,
    quick_parameters,
    side_by_side,
)
from warm_runs import run_cells, shown

from ictd.book import run
from ictd.book.claims import collect
from ictd.book.notebook import Notebook, read
from ictd.book.project import find_project
from ictd.book.trials import code_hash, recorded

# Its numbers are those of the notebooks that it runs.
WITHOUT_NUMBERS = "09_running_it_yourself"
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)


@cache
def runs(chapter: Path) -> dict[str | None, Notebook]:
    """The chapter at its quick parameters (None), and with another value of each one by its name.

    Where no test looks at numbers, the latter end where they first show something else.
    """
    quick = quick_parameters(chapter)
    parameters = declared(chapter)
    unlike = as_it_is(chapter) if chapter.stem == WITHOUT_NUMBERS else None

    def executed(name: str | None) -> Notebook:
        if name is None:
            return as_it_is(chapter)
        current = quick.get(name, parameters[name].default)
        values = {**quick, name: another_value(parameters[name], current)}
        return run_cells(chapter, values, unlike)

    names = [None, *parameters]
    return dict(zip(names, side_by_side(executed, names), strict=True))


@each_chapter
def test_every_parameter_changes_an_output(chapter: Path) -> None:
    before = shown(runs(chapter)[None])
    assert [name for name, run in runs(chapter).items() if name and shown(run) == before] == []


@pytest.mark.parametrize(
    "chapter",
    [path for path in CHAPTERS if path.stem != WITHOUT_NUMBERS],
    ids=lambda path: path.stem,
)
def test_numbers_are_recorded_and_depend_on_parameters(chapter: Path) -> None:
    of_runs = {name: collect(notebook)[1] for name, notebook in runs(chapter).items()}
    numbers = of_runs.pop(None)
    assert len(numbers) >= 4
    assert [n["name"] for n in numbers if not re.fullmatch("[a-z]+(-[a-z]+)*", n["name"])] == []
    meanings = [number["meaning"].strip() for number in numbers]
    assert len(set(meanings) - {""}) == len(numbers)
    elsewhere = [(n["name"], n["value"]) for found in of_runs.values() for n in found]
    constant = [
        number["name"]
        for number in numbers
        if all(value == number["value"] for name, value in elsewhere if name == number["name"])
    ]
    assert constant == []


@each_chapter
def test_a_second_run_shows_the_same(chapter: Path, tmp_path: Path) -> None:
    """One by `ictd run`, in a kernel, the other as the tests run chapters."""
    quick = quick_parameters(chapter)
    folder = run(chapter, quick, output=tmp_path / "run", force=True).folder
    assert shown(read(folder / "executed.ipynb")) == shown(as_it_is(chapter))


@each_chapter
@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_parameter_files_are_accepted(chapter: Path, scale: str) -> None:
    path = chapter.parent / "params" / f"{chapter.stem[:2]}_{scale}.yml"
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert values
    checked = declared(chapter).check(values)
    assert checked | values == checked


@each_chapter
def test_claims_were_tried_at_other_seeds(chapter: Path) -> None:
    trials = recorded(find_project(chapter.parent), chapter.stem, read(chapter))
    assert trials is not None, f"the code has changed since; run: ictd trials {chapter.stem[:2]}"
    assert trials.seeds >= 20
    assert min(trials.held.values()) >= 0.9 * trials.seeds


@each_chapter
def test_shared_parameter_names(chapter: Path) -> None:
    parameters = declared(chapter)
    shared = {"gamma": "float", "n_states": "int", "seed": "int"}
    assert {name: parameters[name].type for name in shared} == shared


@each_chapter
def test_what_it_gives_at_its_defaults_is_recorded(chapter: Path) -> None:
    """Readers see it beside their own results, and how long the chapter may take."""
    entry = json.loads((chapter.parent / "defaults.json").read_text(encoding="utf-8"))[chapter.stem]
    again = "the code has changed since; run: ictd build --record"
    assert entry["code"] == code_hash(read(chapter)), again
    assert entry["parameters"] == declared(chapter).defaults
    assert entry["seconds"] > 0
    tried = recorded(find_project(chapter.parent), chapter.stem, read(chapter))
    assert tried is not None
    assert [claim["id"] for claim in entry["claims"] if not claim["passed"]] == []
    assert {claim["id"] for claim in entry["claims"]} == set(tried.held)
