"""Ledger and status of the built site say what its runs found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from site_checks import PROJECT

CHAPTERS = sorted((PROJECT / "chapters").glob("*.ipynb"))


@pytest.fixture
def data(site: Path) -> dict[str, Any]:
    return json.loads((site / "claims.json").read_text(encoding="utf-8"))


def text_of(site: Path, name: str) -> str:
    page = (site / "chapters" / f"{name}.html").read_text(encoding="utf-8")
    return BeautifulSoup(page, "html.parser").select_one("article").get_text(" ")


def test_every_statement_with_claims_is_decided(data: dict[str, Any]) -> None:
    """A statement is open for want of a chapter, not because a claim is misspelt or was not made."""
    decided = {row["id"] for row in data["statements"] if row["status"] in ("pass", "fail")}
    assert decided == {row["id"] for row in data["statements"] if row["claims"]}
    assert not [
        row["id"] for row in data["statements"] if "makes no claim" in (row["reason"] or "")
    ]


def test_every_claim_is_in_the_ledger_and_leads_to_its_cell(data, site: Path) -> None:
    page = (site / "chapters" / "ledger.html").read_text(encoding="utf-8")
    cells = BeautifulSoup(page, "html.parser").select("td a")
    links = {(a.get_text(), a["href"]) for a in cells}
    for claim in data["claims"]:
        target = f"{claim['chapter']}.html#claim-{claim['chapter'].replace('_', '-')}-{claim['id']}"
        assert (claim["id"], target) in links


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_the_cell_of_a_claim_shows_it(data: dict[str, Any], chapter: Path, site: Path) -> None:
    page = (site / "chapters" / f"{chapter.stem}.html").read_text(encoding="utf-8")
    soup = BeautifulSoup(page, "html.parser")
    for claim in (claim for claim in data["claims"] if claim["chapter"] == chapter.stem):
        place = soup.find(id=f"claim-{chapter.stem.replace('_', '-')}-{claim['id']}")
        # The cell itself, or a mark inside it where it makes more claims than one.
        cell = place if "cell" in place.get("class", []) else place.find_parent(class_="cell")
        assert f"{claim['id']}:" in cell.select_one(".cell_output").get_text()


def test_the_pages_are_filled(site: Path) -> None:
    for name in ("ledger", "status"):
        assert "are filled by" not in text_of(site, name)
        assert "is filled by" not in text_of(site, name)


def test_each_chapter_has_a_row_of_its_status_and_a_head(site: Path) -> None:
    status = BeautifulSoup(
        (site / "chapters" / "status.html").read_text(encoding="utf-8"), "html.parser"
    )
    rows = status.select("table.made-status tbody tr")
    assert [row.select_one("a")["href"] for row in rows] == [f"{c.stem}.html" for c in CHAPTERS]
    for chapter in CHAPTERS:
        text = text_of(site, chapter.stem)
        head = text.split("How this page was made", 1)[1][:1500]
        for part in ("Parameters", "seed", "Claims", "UTC", "peak memory", "numpy", "Commit"):
            assert part in head, (chapter.stem, part)


@pytest.mark.browser
def test_the_data_is_served_beside_the_ledger(browser, server: str) -> None:
    tab = browser.new_page()
    tab.goto(f"{server}/chapters/ledger.html")
    with tab.expect_response(f"{server}/claims.json") as answer:
        tab.get_by_role("link", name="claims.json").click()
    assert answer.value.status == 200
    tab.close()
