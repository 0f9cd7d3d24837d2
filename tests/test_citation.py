"""The paper is cited in the same words everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

import ictd

ROOT = Path(__file__).resolve().parent.parent
CFF = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def entries(text: str) -> dict[str, dict[str, str]]:
    """BibTeX key → fields, names in lower case, white space as single blanks."""
    found = {}
    for key, body in re.findall(r"@\w+\{(\w+),\n(.*?)\n\}", text, re.DOTALL):
        fields = re.findall(r"(\w+)\s*=\s*\{+(.*?)\}+(?:,\n|$)", body + "\n", re.DOTALL)
        found[key] = {name.lower(): " ".join(value.split()) for name, value in fields}
    return found


def test_the_citation_names_the_paper_and_this_version() -> None:
    cited = entries(ictd.citation())
    assert set(cited) == {"xie2026beyond", "ictd"}
    assert cited["ictd"]["version"] == ictd.__version__


def test_the_readme_and_the_bibliography_cite_the_same_paper() -> None:
    paper = entries(ictd.citation())["xie2026beyond"]
    assert paper["eprint"] == "2605.07333"
    assert len(paper["author"].split(" and ")) == 6
    for place in ("README.md", "chapters/references.bib"):
        there = entries((ROOT / place).read_text(encoding="utf-8"))["xie2026beyond"]
        assert {name: there[name] for name in paper} == paper, place


def test_the_citation_file_agrees() -> None:
    cited = entries(ictd.citation())
    paper, preferred = cited["xie2026beyond"], CFF["preferred-citation"]
    authors = [f"{a['family-names']}, {a['given-names']}" for a in preferred["authors"]]
    assert " and ".join(authors) == paper["author"]
    assert preferred["title"] == paper["title"]
    assert preferred["url"].endswith(paper["eprint"])
    assert str(preferred["year"]) == paper["year"]
    assert CFF["title"] == cited["ictd"]["title"]
    assert CFF["version"] == ictd.__version__
    assert set(CFF["license"]) == {"MIT", "CC-BY-4.0"}
    assert {"cff-version", "message", "authors"} <= set(CFF)


def test_the_changelog_knows_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (?:\[)?([\w.]+)", text, re.MULTILINE)
    assert headings
    assert headings[0] in ("Unreleased", ictd.__version__)
