"""An address that was published keeps working."""

from __future__ import annotations

from pathlib import Path

import yaml
from site_checks import PROJECT, is_redirect, name_of, pages

PUBLISHED = [
    line
    for line in (Path(__file__).parent / "addresses.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
REDIRECTS = yaml.safe_load((PROJECT / "_config.yml").read_text(encoding="utf-8"))["sphinx"][
    "config"
]["redirects"]


def test_published_addresses_are_pages_or_lead_to_one(site: Path) -> None:
    """The links of the pages that only lead elsewhere are tested with all others."""
    missing = [address for address in PUBLISHED if not (site / address).is_file()]
    assert missing == [], "add them to `redirects` in _config.yml"


def test_pages_are_listed_once_they_are_published(site: Path) -> None:
    new = [name_of(page) for page in pages(site) if name_of(page) not in PUBLISHED]
    new = [name for name in new if name.startswith("chapters/")]
    assert new == [], "add them to tests/site/addresses.txt"


def overwritten(redirects: dict[str, str]) -> list[str]:
    """The pages in whose place one would stand that leads elsewhere; nothing else says so."""
    return [old for old in redirects if list(PROJECT.glob(f"{old}.*"))]


def test_no_page_is_overwritten_by_one_that_leads_elsewhere(site: Path) -> None:
    assert overwritten({"chapters/status": "ledger.html"}) == ["chapters/status"]
    assert overwritten(REDIRECTS) == []
    assert [old for old in REDIRECTS if not is_redirect(site / f"{old}.html")] == []
