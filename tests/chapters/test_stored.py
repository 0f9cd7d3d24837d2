"""Results at full scale are those of the chapter as it is."""

from pathlib import Path

import pytest
import yaml
from chapter_runs import CHAPTERS, ROOT, declared

from ictd.book import stored
from ictd.book.notebook import read
from ictd.book.project import Project
from ictd.book.trials import code_hash, recorded

PROJECT = Project(ROOT)
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)


def full_scale(chapter: Path) -> stored.FullScale:
    found = stored.load(PROJECT, chapter.stem)
    assert found is not None, f"there is none; run: ictd store {chapter.stem[:2]}"
    return found


@each_chapter
def test_it_is_of_the_present_parameters_and_code(chapter: Path) -> None:
    info, again = full_scale(chapter).info, f"run: ictd store {chapter.stem[:2]}"
    path = chapter.parent / "params" / f"{chapter.stem[:2]}_paper.yml"
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert info["parameters"] == declared(chapter).check(given), again
    assert info["code"] == code_hash(read(chapter)), again


@each_chapter
def test_all_claims_of_the_chapter_hold_there(chapter: Path) -> None:
    claims = full_scale(chapter).info["claims"]
    tried = recorded(PROJECT, chapter.stem, read(chapter))
    assert tried is not None
    assert {claim["id"] for claim in claims} == set(tried.held)
    assert [claim["id"] for claim in claims if not claim["passed"]] == []


@each_chapter
def test_it_is_small_and_has_a_figure(chapter: Path) -> None:
    files = [path for path in full_scale(chapter).folder.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1_000_000
    assert any(path.suffix == ".png" for path in files)
