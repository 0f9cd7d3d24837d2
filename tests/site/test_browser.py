"""Every page of the built site in Chromium, with all other hosts blocked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser_checks import ACCEPTED
from site_checks import is_redirect, pages

pytestmark = pytest.mark.browser
LIGHT, DARK = "light, from a file", "dark, from a server"  # see VISITS in conftest.py
each_kind = pytest.mark.parametrize("kind", [LIGHT, DARK])


@each_kind
def test_as_it_is_read(visit, kind: str, shown: Path) -> None:
    assert visit(kind, shown).problems == []


@pytest.mark.axe
@each_kind
def test_with_axe(visit, kind: str, shown: Path) -> None:
    assert visit(kind, shown).axe == []


@pytest.mark.axe
@pytest.mark.parametrize("entry", range(len(ACCEPTED)), ids=lambda i: ACCEPTED[i].selector)
def test_what_is_accepted_of_axe_is_still_found(visit, entry: int) -> None:
    """A theme that has mended it would leave an exception that hides a fault of ours."""
    shown = [page for page in pages() if not is_redirect(page)]
    assert any(entry in visit(LIGHT, page).accepted for page in shown)


def test_on_paper(visit, shown: Path) -> None:
    assert visit(DARK, shown).paper == []


def test_a_dark_page_is_printed_in_light_colours_with_all_unfolded(browser, site: Path) -> None:
    """The page itself says what it looked like while it was printed; the rest only pretends to."""
    tab = browser.new_page()
    tab.add_init_script("localStorage.setItem('mode', 'dark'); localStorage.theme = 'dark';")
    tab.goto(max(pages(site), key=lambda page: page.read_text().count("<details")).as_uri())
    now = (
        "({theme: document.documentElement.dataset.theme,"
        " folded: document.querySelectorAll('article details:not([open]), .toggle-hidden').length})"
    )
    tab.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = {now}; }})")
    before = tab.evaluate(now)
    assert tab.pdf().startswith(b"%PDF")
    assert before["theme"] == "dark"
    assert before["folded"] > 0
    assert tab.evaluate("printed") == {"theme": "light", "folded": 0}
    assert tab.evaluate(now) == before
    tab.close()


@pytest.mark.parametrize("scheme", ["file", "http"])
def test_the_root_leads_to_the_landing_page(browser, server: str, site: Path, scheme: str) -> None:
    tab = browser.new_page()
    tab.goto((site / "index.html").as_uri() if scheme == "file" else f"{server}/")
    tab.wait_for_url("**/chapters/index.html")
    tab.close()


def test_search_finds_a_chapter(browser, server: str, site: Path) -> None:
    tab = browser.new_page()
    tab.route(lambda url: not url.startswith(server), lambda route: route.abort())
    tab.goto(f"{server}/search.html?q=softmax")
    found = tab.locator("#search-results a").first
    found.wait_for(timeout=10_000)
    assert re.search(r"chapters/\w+\.html", found.get_attribute("href") or "")
    tab.close()
