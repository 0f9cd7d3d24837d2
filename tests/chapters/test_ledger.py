"""The book's ledger names claims, labels and tests that exist, and leaves out no claim of the paper."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from chapter_runs import CHAPTERS, ROOT

from ictd.book.claims import PAPER
from ictd.book.markdown import references
from ictd.book.notebook import Notebook, read, source
from ictd.book.project import Project
from ictd.book.statements import Statement, load

STATEMENTS = load(Project(ROOT))
each_statement = pytest.mark.parametrize("statement", STATEMENTS, ids=lambda one: one.id)


def chapter_of(name: str) -> Path:
    (chapter,) = [path for path in CHAPTERS if name in (path.stem, path.stem[:2])]
    return chapter


def claim_calls(notebook: Notebook) -> list[tuple[re.Pattern[str], str]]:
    """The claims in a chapter's code: a pattern of the id, and the source.

    An id may be made up in a loop, f"operations-{key}"; the source may use constants of the chapter.
    """
    code = [source(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    nodes = [node for text in code for node in ast.walk(ast.parse(text))]
    constants = {
        target.id: node.value.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def text_of(node: ast.expr, unknown: str | None = None) -> str:
        """The text of a literal; a formatted value is a constant's, else `unknown` if that is given."""
        if isinstance(node, ast.Constant):
            return str(node.value) if unknown is None else re.escape(str(node.value))
        if isinstance(node, ast.JoinedStr):
            return "".join(text_of(part, unknown) for part in node.values)
        if isinstance(node, ast.FormattedValue) and unknown is not None:
            return unknown
        if isinstance(node, ast.FormattedValue):
            return text_of(node.value)
        assert isinstance(node, ast.Name), ast.unparse(node)
        return str(constants[node.id])

    found = []
    for node in nodes:
        is_claim = isinstance(node, ast.Call) and ast.unparse(node.func) == "chapter.claim"
        if not is_claim:
            continue
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        id = node.args[0] if node.args else given["id"]
        origin = text_of(given["source"]) if "source" in given else "ours"
        found.append((re.compile(text_of(id, ".+")), origin))
    return found


def test_there_are_statements_of_each_kind() -> None:
    kinds = {
        name for one in STATEMENTS for name in ("claims", "not_checkable") if getattr(one, name)
    }
    assert kinds == {"claims", "not_checkable"}
    assert len({one.statement for one in STATEMENTS}) == len(STATEMENTS)


@each_statement
def test_the_claims_that_a_statement_names_are_made(statement: Statement) -> None:
    for name in statement.claims:
        chapter, _, id = name.partition("/")
        made = [pattern for pattern, _ in claim_calls(read(chapter_of(chapter)))]
        assert any(pattern.fullmatch(id) for pattern in made), name


@each_statement
def test_the_anchor_of_a_statement_is_in_its_chapter(statement: Statement) -> None:
    if statement.anchor:
        chapter, _, label = statement.anchor.partition("#")
        assert label in references(read(chapter_of(chapter)))


@each_statement
def test_the_tests_that_a_statement_names_are_there(statement: Statement) -> None:
    for name in statement.tests:
        file, _, function = name.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert function in functions, name
        assert function.startswith("test_")


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_every_claim_of_the_paper_is_in_a_statement(chapter: Path) -> None:
    named = {
        name.partition("/")[2]
        for statement in STATEMENTS
        for name in statement.claims
        if chapter_of(name.partition("/")[0]) == chapter
    }
    of_paper = [id for id, origin in claim_calls(read(chapter)) if origin.startswith(PAPER)]
    missing = [id.pattern for id in of_paper if not any(map(id.fullmatch, named))]
    assert missing == []


def test_claims_are_found_in_code() -> None:
    code = (
        'PAPER = "arXiv:2605.07333v2"\n'
        'chapter.claim("one", "s", 1, at_most=1, source=f"{PAPER}, Lemma 1")\n'
        'for key in "ab":\n    chapter.claim(f"x.{key}", "s", 1, at_most=1)\n'
        'other.claim("two", "s")'
    )
    (one, origin), (made_up, ours) = claim_calls({"cells": [{"cell_type": "code", "source": code}]})
    assert (one.pattern, origin, ours) == ("one", "arXiv:2605.07333v2, Lemma 1", "ours")
    assert made_up.fullmatch("x.a")
    assert not made_up.fullmatch("xya")
