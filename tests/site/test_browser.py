"""Every page of the built site in Chromium, with all other hosts blocked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from site_checks import browse, name_of

pytestmark = pytest.mark.browser


def test_from_a_file(browser, page: Path, site: Path) -> None:
    assert browse(browser, page.as_uri()) == []


def test_from_a_server(browser, server: str, page: Path, site: Path) -> None:
    assert browse(browser, f"{server}/{name_of(page)}", server=server) == []


def test_in_dark_mode(browser, page: Path, site: Path) -> None:
    assert browse(browser, page.as_uri(), mode="dark") == []


def test_on_a_phone(browser, page: Path, site: Path) -> None:
    assert browse(browser, page.as_uri(), width=360) == []


def test_search_finds_a_chapter(browser, server: str, site: Path) -> None:
    tab = browser.new_page()
    tab.route(lambda url: not url.startswith(server), lambda route: route.abort())
    tab.goto(f"{server}/search.html?q=softmax")
    found = tab.locator("#search-results a").first
    found.wait_for(timeout=10_000)
    assert re.search(r"chapters/\w+\.html", found.get_attribute("href") or "")
    tab.close()
