"""Each claim of each chapter fails when what it claims is broken.

How a chapter is broken stands in tests/sabotage/chapter_NN.py, a module for each chapter.
"""

import importlib
from functools import cache
from pathlib import Path

import pytest
from chapter_runs import (
    CHAPTERS,
    as_it_is,
    edited,
    passed_claims,
    quick_parameters,
    side_by_side,
)
from warm_runs import CellFailed, run_cells

BROKEN = {
    chapter: importlib.import_module(f"sabotage.chapter_{chapter.stem[:2]}").BROKEN
    for chapter in CHAPTERS
}
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
each_sabotage = pytest.mark.parametrize(
    ("chapter", "name"),
    [(chapter, name) for chapter in CHAPTERS for name in BROKEN[chapter]],
    ids=lambda value: value.stem[:2] if isinstance(value, Path) else value,
)


@cache
def outcomes(chapter: Path, folder: Path) -> dict[str, dict[str, bool] | CellFailed]:
    """Claims of the chapter as it is, and of each broken copy: whether they passed."""
    quick, broken = quick_parameters(chapter), BROKEN[chapter]

    def claims(name: str) -> dict[str, bool] | CellFailed:
        try:
            if name not in broken:
                return passed_claims(as_it_is(chapter))
            copy = edited(chapter, folder / chapter.stem / name, *broken[name])
            return passed_claims(run_cells(copy, quick))
        except CellFailed as error:
            return error

    names = ["as it is", *broken]
    return dict(zip(names, side_by_side(claims, names), strict=True))


def passed(chapter: Path, name: str, folder: Path) -> dict[str, bool]:
    claims = outcomes(chapter, folder)[name]
    assert not isinstance(claims, CellFailed), claims
    return claims


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("claims")


@each_chapter
def test_all_claims_hold(chapter: Path, folder: Path) -> None:
    failed = [id for id, holds in passed(chapter, "as it is", folder).items() if not holds]
    assert failed == []


@each_sabotage
def test_broken_code_fails_its_claims(chapter: Path, name: str, folder: Path) -> None:
    survivors = {id for id in BROKEN[chapter][name][1] if passed(chapter, name, folder)[id]}
    assert survivors == set()


@each_chapter
def test_every_claim_is_broken_by_something(chapter: Path, folder: Path) -> None:
    covered = set().union(*(claims for _, claims in BROKEN[chapter].values()))
    assert set(passed(chapter, "as it is", folder)) == covered
