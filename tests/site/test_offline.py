"""The zip of the built site, unpacked as a reader does, and the link to it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from site_checks import alt_problems, file_problems, is_redirect, name_of, pages

from ictd.book import offline


@pytest.fixture(scope="module")
def unpacked(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip of the site, unpacked into a folder with a space in its path."""
    folder = tmp_path_factory.mktemp("offline") / "my downloads"
    offline.write_zip(site, site / "chapters/index.html", folder / "site.zip")
    with zipfile.ZipFile(folder / "site.zip") as archive:
        archive.extractall(folder)
    (made,) = [path for path in folder.iterdir() if path.name != "site.zip"]
    assert made.name == "ictd-book"
    return made


def test_every_page_is_there_and_whole(unpacked: Path, site: Path) -> None:
    assert [name_of(p, unpacked) for p in pages(unpacked)] == [
        name_of(p, site) for p in pages(site)
    ]
    problems = {name_of(p, unpacked): file_problems(p, unpacked) for p in pages(unpacked)}
    assert {name: found for name, found in problems.items() if found} == {}
    assert alt_problems(pages(unpacked)) == []


@pytest.mark.browser
def test_it_opens_by_a_click_on_its_index(browser, unpacked: Path) -> None:
    tab = browser.new_page()
    tab.goto((unpacked / "index.html").as_uri())
    tab.wait_for_url("**/chapters/index.html")
    assert tab.locator("article h1").count() == 1
    tab.close()


@pytest.mark.browser
@pytest.mark.parametrize("which", ["the landing page", "the largest page"])
def test_its_pages_need_no_network(reader, unpacked: Path, which: str) -> None:
    shown = [page for page in pages(unpacked) if not is_redirect(page)]
    largest = max(shown, key=lambda page: page.stat().st_size)
    page = unpacked / "chapters/index.html" if which == "the landing page" else largest
    assert reader().visit(page.as_uri()).problems == []


def test_the_link_stands_where_the_zip_is(site: Path, unpacked: Path) -> None:
    """`make site` has both, `make book` and the zip itself neither."""
    text = (site / "chapters/index.html").read_text(encoding="utf-8")
    assert (f"{offline.NAME}.zip" in text) == (site / f"{offline.NAME}.zip").is_file()
    assert 'class="offline-copy"' in text
    inside = (unpacked / "chapters/index.html").read_text(encoding="utf-8")
    assert '<div class="offline-copy"></div>' in inside
    assert list(unpacked.rglob("*.zip")) == []
