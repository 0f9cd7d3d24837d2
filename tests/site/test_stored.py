"""Pages that `ictd build` made say of every figure whether it is live or stored; a plain build does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from site_checks import PROJECT, stored_problems

CHAPTERS = sorted((PROJECT / "chapters").glob("*.ipynb"))


def test_figures_are_said_to_be_live_or_stored(page: Path, site: Path) -> None:
    assert stored_problems(page) == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_shows_its_full_scale(chapter: Path, site: Path) -> None:
    page = (site / "chapters" / f"{chapter.stem}.html").read_text(encoding="utf-8")
    head, *below = BeautifulSoup(page, "html.parser").select("article .admonition.stored")
    for part in ("At full scale", "Claims", "UTC", "Commit", f"ictd store {chapter.stem[:2]}"):
        assert part in head.get_text(), part
    assert below
    assert any(box.select("img") for box in below)
