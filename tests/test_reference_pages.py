"""The reference pages of the book and the links that chapters have to them, read from their sources."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import ictd

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"
NOTEBOOKS = sorted(CHAPTERS.glob("*.ipynb"))
each_chapter = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def prose_of(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


# --------------------------------------------------------------------------------------------- glossary


def glossary() -> dict[str, str]:
    """The definition of each term; a term that comes twice is an error here."""
    text = (CHAPTERS / "glossary.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```\{glossary\}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    entries = re.findall(r"^(\S.*)\n((?:  .+\n)+)", block, re.MULTILINE)
    assert "".join(f"{term}\n{body}\n" for term, body in entries).strip() == block.strip()
    terms = [term.casefold() for term, _ in entries]
    assert [term for term in terms if terms.count(term) > 1] == []
    return dict(entries)


def test_terms_are_unique_and_sorted() -> None:
    terms = list(glossary())
    assert 25 <= len(terms) <= 60
    assert terms == sorted(terms, key=str.casefold)


def test_each_term_is_defined_and_ends_with_where_it_is_introduced() -> None:
    for term, body in glossary().items():
        definition, link = re.fullmatch(
            r"(.*?)\s*(\[[^\]]+\]\([^)\s]+\))", body.strip(), re.DOTALL
        ).groups()
        sentences = re.findall(r"[.](?:\s|$)", definition)
        assert 1 <= len(sentences) <= 2, term
        assert definition.endswith("."), term
        page = re.search(r"\(([\w.]+)", link)[1]
        assert (CHAPTERS / page).is_file(), term


# ------------------------------------------------------------------------------------ links of chapters


@each_chapter
def test_the_first_section_points_to_the_notation(path: Path) -> None:
    _, first, *_ = re.split(r"^## ", prose_of(path), flags=re.MULTILINE)
    assert first.count("](notation.md)") == 1
    assert prose_of(path).count("](notation.md)") == 1


@each_chapter
def test_the_first_mention_of_a_library_name_is_a_link_to_the_reference(path: Path) -> None:
    """Not a role: it would show raw in plain Jupyter."""
    prose = prose_of(path)
    assert "{py:" not in prose
    mentions = re.findall(r"`ictd\.(\w+)[^`]*`(?:\]\(([^)]*)\))?", prose)
    assert mentions, "the chapter names what it uses"
    seen: set[str] = set()
    for name, target in mentions:
        first = name in ictd.__all__ and name not in seen
        if first or target:
            assert target == f"api.md#ictd.{name}", name
        seen.add(name)
