"""Every page of the built site, read from its files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from site_checks import (
    PROJECT,
    alt_problems,
    asset_problems,
    image_problems,
    link_problems,
    output_problems,
    pages,
    text_problems,
)

CHAPTERS = sorted((PROJECT / "chapters").glob("*.ipynb"))
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)


def toc_files() -> list[str]:
    toc = yaml.safe_load((PROJECT / "_toc.yml").read_text(encoding="utf-8"))
    entries = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    return [toc["root"], *(entry["file"] for entry in entries)]


def test_every_entry_of_the_toc_has_a_page(site: Path) -> None:
    missing = [name for name in toc_files() if not (site / f"{name}.html").is_file()]
    assert missing == []


@each_chapter
def test_a_chapter_has_the_number_that_it_is_run_by(chapter: Path, site: Path) -> None:
    page = (site / "chapters" / f"{chapter.stem}.html").read_text(encoding="utf-8")
    soup = BeautifulSoup(page, "html.parser")
    number = int(chapter.stem[:2])
    entry = soup.select_one(".bd-sidebar-primary a[href='#'], .bd-sidebar-primary .current > a")
    assert soup.select_one("article h1").get_text().startswith(f"{number}. ")
    assert entry.get_text().strip().startswith(f"{number}. ")
    captions = [tag.get_text() for tag in soup.select("article figcaption .caption-number")]
    assert captions
    assert all(text.startswith(f"Fig. {number}.") for text in captions), captions


def test_links_and_anchors_lead_somewhere(page: Path, site: Path) -> None:
    assert link_problems(page, site) == []


def test_everything_loaded_is_part_of_the_site(page: Path, site: Path) -> None:
    assert asset_problems(page) == []


def test_images_have_alt_text_and_are_drawn_once(page: Path, site: Path) -> None:
    assert image_problems(page) == []


def test_no_two_figures_have_the_same_alt_text(site: Path) -> None:
    assert alt_problems(pages(site)) == []


def test_no_raw_directive_or_tex_is_seen(page: Path, site: Path) -> None:
    assert text_problems(page) == []


def test_outputs_are_there_and_clean(page: Path, site: Path) -> None:
    assert output_problems(page, site) == []
