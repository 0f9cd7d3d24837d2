"""The built API reference has an entry for each public name, and nothing of a docstring shows raw."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

import ictd
import ictd.book
import ictd.figures

PUBLIC = {
    "ictd": ictd.__all__,
    "ictd.figures": ictd.figures.__all__,
    "ictd.book": ictd.book.__all__,
}


@pytest.fixture(scope="module")
def article(site: Path) -> Tag:
    text = (site / "chapters" / "api.html").read_text(encoding="utf-8")
    article = BeautifulSoup(text, "html.parser").select_one("article")
    assert article is not None
    return article


def entries(article: Tag) -> dict[str, Tag]:
    """The description of each entry by its anchor."""
    found = {}
    for signature in article.select("dt.sig[id]"):
        description = signature.find_next_sibling("dd")
        assert isinstance(description, Tag), signature["id"]
        found[str(signature["id"])] = description
    return found


def test_each_public_name_has_an_entry_and_no_other_name_has(article: Tag) -> None:
    members = {name for entry in entries(article).values() for name in entries(entry)}
    expected = {f"{module}.{name}" for module, names in PUBLIC.items() for name in names}
    assert set(entries(article)) - members == expected


def test_each_entry_says_something(article: Tag) -> None:
    for name, description in entries(article).items():
        first = description.find("p", recursive=False)
        assert first is not None, name
        assert len(first.get_text().split()) >= 2, name


def test_names_are_grouped_under_an_introduction(article: Tag) -> None:
    groups = [s for s in article.select("section") if s.find("dt", class_="sig")]
    titles = [s.h2.get_text() for s in groups if s.h2 and s.h2.parent is s]
    assert len(titles) == len(set(titles)) == 12
    for section in groups:
        if section.h2 is not None and section.h2.parent is section:
            introduction = section.h2.find_next_sibling()
            assert isinstance(introduction, Tag), section.h2
            assert introduction.name == "p", section.h2


# What a docstring or its markup leaves in the text if it is not understood.
LEFT_OVER = {
    "a backquote": r"`",
    "a role": r":(?:py:)?[a-z]+:[`\s]",
    "a heading of a docstring": r"\b(?:Args|Attributes|Returns|Raises|Yields):[ \t]*\n\s*\w+:",
    "strong text": r"\*\*\w[^*\n]*\*\*",
    "an alias of a type": r"\b(?:FloatArray|IntArray|BoolArray|ComplexArray|StepSize|NDArray|_ScalarT?)\b",
    "an exploded type": r"\bUnion\[|_SupportsArray|_NestedSequence|ForwardRef",
}


@pytest.mark.parametrize("what", LEFT_OVER)
def test_no_markup_of_a_docstring_shows(article: Tag, what: str) -> None:
    text = article.get_text()
    found = re.search(LEFT_OVER[what], text)
    assert found is None, text[max(0, found.start() - 60) : found.end() + 60]


def test_no_part_of_a_docstring_is_marked_as_wrong(article: Tag) -> None:
    assert article.select(".problematic, .system-message") == []


def test_types_of_the_library_are_links(article: Tag) -> None:
    """A parameter or result that is one of our classes leads to it."""
    ours = {name for name in ictd.__all__ if isinstance(getattr(ictd, name), type)}
    for parameter in article.select(".sig-param, .sig-return-typehint"):
        names = set(re.findall(r"\w+", parameter.get_text())) & ours
        linked = {a.get_text().strip() for a in parameter.select("a[href^='#ictd.']")}
        assert names <= linked, parameter.get_text()


@pytest.mark.browser
def test_the_contents_beside_the_page_are_an_index_of_names(browser, site: Path) -> None:
    tab = browser.new_page(viewport={"width": 1300, "height": 900})
    tab.goto((site / "chapters" / "api.html").as_uri())
    names = tab.locator(".page-toc a:has(code):visible")
    shown = {name.rstrip("()") for name in names.all_inner_texts()}
    assert shown == {name for names in PUBLIC.values() for name in names}
    tab.close()
