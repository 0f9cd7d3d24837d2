"""The paper's statements, joined with what runs found, on made-up runs and in a toy book."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from site_checks import link_problems, text_problems

from ictd.book import ledger, markdown, reference, trials
from ictd.book import notebook as nb
from ictd.book.cache import StoredRun
from ictd.book.claims import MIME, Claim, Number, bundle, claimed
from ictd.book.errors import BookError
from ictd.book.project import Project
from ictd.book.statements import StatementError, load

CHECKED = {
    "id": "one",
    "statement": "It holds.",
    "where": "Theorem 1",
    "claims": ["02/good"],
    "tests": ["tests/test_td.py::test_x"],
    "anchor": "02#eq-x",
}
OPEN = {"id": "two", "statement": "It may hold.", "where": "(7)", "open": "to come"}
DEFINED = {"id": "three", "statement": "It is so.", "where": "(1)", "not_checkable": "a definition"}

TEXT = """\
# Title | with a bar

$$
x = y
$$ (eq-x)

:::{prf:theorem} It holds
:class: tip
:label: thm-x

Text.
:::

```{prf:lemma}
:label: lem-x
Text.
```

\\begin{equation}\\label{eq-y} x \\end{equation}
"""


def claim(id: str, value: float = 1.0, source: str = "ours", **more: Any) -> dict[str, Any]:
    """The record of a claim whose bound is at most one."""
    values = {"at_most": 1.0, "at_least": None, "holds": None, **more}
    record = Claim(id, f"what {id} says", value, source=source, **values).record()
    if value != value:
        record["value"] = "nan"
    del record["kind"]
    return record


def output(record: dict[str, Any]) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {MIME: json.dumps({"kind": "claim", **record})}}


class Book:
    """A project of files alone, whose chapters were run without running."""

    def __init__(self, root: Path) -> None:
        self.project = Project(root)
        self.root = root
        self.runs: list[StoredRun] = []
        (root / "chapters").mkdir()

    def state(self, *entries: Any) -> None:
        path = self.root / "chapters" / "statements.yml"
        path.write_text(yaml.safe_dump(list(entries), allow_unicode=True), encoding="utf-8")

    def run(self, chapter: str, *records: dict[str, Any], **info: Any) -> StoredRun:
        """A run that recorded these claims, all in one cell."""
        code = {"cell_type": "code", "source": "1", "metadata": {"mystnb": {}}}
        figure = {"figure": {"name": "fig-x", "caption": "c"}}
        cells = [
            {"cell_type": "markdown", "source": TEXT, "metadata": {}},
            {**code, "metadata": {"mystnb": figure}, "outputs": []},
            {**code, "outputs": [output(record) for record in records]},
        ]
        folder = self.root / "runs" / chapter
        folder.mkdir(parents=True)
        content = {"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}
        (folder / "executed.ipynb").write_text(json.dumps(content))
        made = {
            "chapter": chapter,
            "claims": list(records),
            "started": "2030-01-02T03:04:05+00:00",
            "seconds": 12.34,
            "cpu_seconds": 23.45,
            "peak_memory": 345_600_000,
            "machine": "Linux, 2 cores",
            "commit": "abc with uncommitted changes",
        }
        self.runs.append(StoredRun(folder, {**made, **info}))
        return self.runs[-1]

    def tried(self, run: StoredRun, seeds: int, **held: int) -> None:
        code = trials.code_hash(nb.read(run.notebook))
        found = {run.info["chapter"]: {"code": code, "seeds": seeds, "held": held}}
        (self.root / "chapters" / "trials.json").write_text(json.dumps(found))

    def ledger(self) -> ledger.Ledger:
        return ledger.make(self.project, self.runs)

    def parts(self, url: str = "", commit: str = "def") -> dict[str, str]:
        pages = [
            reference.Page(f"chapters/{run.info['chapter']}", run, nb.read(run.notebook))
            for run in self.runs
        ]
        return reference.parts(self.project, pages, self.ledger(), commit, url)


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path)


def rows(table: str) -> list[list[str]]:
    """The cells of all tables in a text, without their heads."""
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    cells = [re.split(r" ?(?<!\\)\| ?", line)[1:-1] for line in lines]
    heads = {i for i, line in enumerate(cells) if {*line} <= {":--", "--:"}}
    return [line for i, line in enumerate(cells) if i not in heads and i + 1 not in heads]


# ------------------------------------------------------------------------------------- the statements


def test_statements_are_read_in_their_order(book):
    assert load(book.project) == []
    book.state(CHECKED, OPEN, DEFINED)
    one, two, three = load(book.project)
    assert (one.id, one.claims, one.tests) == ("one", ("02/good",), ("tests/test_td.py::test_x",))
    assert (two.where, two.open, two.claims) == ("(7)", "to come", ())
    assert (three.not_checkable, three.open, three.anchor) == ("a definition", None, None)


def without(entry: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in names}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("text", "statement number 1: got 'text', expected names and values"),
        (without(OPEN, "id"), "statement number 1: it has no 'id'"),
        (without(OPEN, "where"), "statement 'two': it has no 'where'"),
        (
            without(OPEN, "open"),
            "'two': expected exactly one of claims, open, not_checkable; got 0",
        ),
        ({**CHECKED, "open": "why"}, "'one': expected exactly one of .* got 2"),
        (without(CHECKED, "tests"), "'one': claims need 'tests' too"),
        (without(CHECKED, "anchor"), "'one': claims need 'anchor' too"),
        ({**OPEN, "status": "pass"}, "'two': it has 'status', which is none of id, statement"),
        ({**OPEN, "id": "Two words"}, "'Two words': id: got 'Two words', expected small letters"),
        ({**OPEN, "where": 5.1}, "'two': where: got 5.1, expected text"),
        ({**OPEN, "open": " "}, "'two': open: got ' ', expected text"),
        ({**CHECKED, "claims": []}, r"'one': claims: got \[\], expected a list of at least one"),
        ({**CHECKED, "claims": "02/x"}, "'one': claims: got '02/x', expected a list"),
        ({**CHECKED, "claims": ["x"]}, "'one': claims: got 'x', expected CHAPTER/CLAIM"),
        ({**CHECKED, "tests": ["tests/a.py"]}, "'one': tests: .*, expected FILE::FUNCTION"),
        ({**CHECKED, "anchor": "eq-x"}, "'one': anchor: got 'eq-x', expected CHAPTER#LABEL"),
    ],
)
def test_malformed_statements_are_refused(book, entry, message):
    book.state(entry)
    with pytest.raises(StatementError, match=message):
        load(book.project)


def test_all_problems_are_told_at_once(book):
    book.state(OPEN, {**OPEN, "where": ""}, without(CHECKED, "tests"))
    with pytest.raises(StatementError) as error:
        load(book.project)
    problems = str(error.value).splitlines()
    assert problems[0].endswith("statements.yml:")
    assert [line.split(": ", 1)[1] for line in problems[1:]] == [
        "where: got '', expected text",
        "its id is used twice",
        "claims need 'tests' too",
    ]


@pytest.mark.parametrize(("text", "message"), [("a: [", "not YAML"), ("a: 1", "expected a list")])
def test_a_file_that_is_no_list_is_refused(book, text, message):
    (book.root / "chapters" / "statements.yml").write_text(text)
    with pytest.raises(StatementError, match=message):
        load(book.project)


# ------------------------------------------------------------------------------------------- the join


@pytest.mark.parametrize(
    ("named", "status", "reason", "found"),
    [
        (["02/good"], "pass", "", ["good"]),
        (["02_x/good", "2/edge"], "pass", "", ["good", "edge"]),
        (["02/good", "02/bad"], "fail", "", ["good", "bad"]),
        (["02/undefined"], "fail", "", ["undefined"]),
        (["02/good", "02/none"], "open", "this run makes no claim 02/none", ["good"]),
        (["02/bad", "02/none"], "fail", "", ["bad"]),
        (["04/good"], "open", "this run makes no claim 04/good", []),
    ],
)
def test_the_status_is_that_of_the_claims(book, named, status, reason, found):
    records = [
        claim("good"),
        claim("edge", 1.0),
        claim("bad", 1.1),
        claim("undefined", float("nan")),
    ]
    book.run("02_x", *records)
    book.run("03_y", claim("good", 2.0))
    book.state({**CHECKED, "claims": named})
    (row,) = book.ledger().rows
    assert (row.status, row.reason) == (status, reason)
    assert [(one.chapter, one.claim.id) for one in row.claims] == [("02_x", id) for id in found]


def test_open_and_not_checkable_keep_their_reasons(book):
    book.run("02_x", claim("bad", 2.0))
    book.state(OPEN, DEFINED)
    assert [(row.status, row.reason) for row in book.ledger().rows] == [
        ("open", "to come"),
        ("not checkable", "a definition"),
    ]


def test_a_number_that_two_chapters_have_names_neither(book):
    book.run("02_x", claim("good"))
    book.run("02_y", claim("good"))
    book.state(CHECKED, {**CHECKED, "id": "other", "claims": ["02_y/good"], "anchor": "02_y#eq-x"})
    unclear, clear = book.ledger().rows
    assert (unclear.status, unclear.anchor) == ("open", None)
    assert (clear.status, clear.anchor) == ("pass", ("02_y", "eq-x"))


def test_counts_of_other_seeds_belong_to_the_code_that_was_tried(book):
    run = book.run("02_x", claim("good"), claim("never"))
    book.tried(run, 20, good=19)
    assert [(one.held, one.of_seeds) for one in book.ledger().claims] == [(19, 20), (0, 20)]
    content = json.loads(run.notebook.read_text())
    content["cells"][1]["source"] = "2"
    run.notebook.write_text(json.dumps(content))
    assert [(one.held, one.of_seeds) for one in book.ledger().claims] == [(None, None)] * 2


def test_the_papers_claims_and_the_others_are_kept_apart(book):
    paper = "arXiv:2605.07333v2, Theorem 1"
    book.run(
        "02_x",
        claim("good", source=paper),
        claim("unnamed", source=paper),
        claim("other", source="arXiv:2405.13861"),
        claim("own"),
    )
    book.state(CHECKED)
    beside = book.ledger().beside_the_paper
    # A claim of the paper that no statement names is not lost.
    assert [one.claim.id for one in beside] == ["unnamed", "other", "own"]


def test_as_json(book):
    run = book.run("02_x", claim("good", float("nan"), holds=True))
    book.tried(run, 20, good=20)
    book.state(CHECKED, OPEN)
    data = json.loads(json.dumps(book.ledger().as_json(), allow_nan=False))
    assert data["paper"] == "arXiv:2605.07333"
    assert data["statements"] == [
        {
            "id": "one",
            "statement": "It holds.",
            "where": "Theorem 1",
            "status": "fail",
            "reason": None,
            "claims": ["02_x/good"],
            "tests": ["tests/test_td.py::test_x"],
            "anchor": {"chapter": "02_x", "label": "eq-x"},
        },
        {
            "id": "two",
            "statement": "It may hold.",
            "where": "(7)",
            "status": "open",
            "reason": "to come",
            "claims": [],
            "tests": [],
            "anchor": None,
        },
    ]
    (found,) = data["claims"]
    assert (found["chapter"], found["id"], found["value"]) == ("02_x", "good", "nan")
    assert (found["passed"], found["held"], found["of_seeds"]) == (False, 20, 20)


# ------------------------------------------------------------------------------------------- Markdown


def test_a_bar_or_a_line_break_does_not_end_a_cell():
    assert markdown.cell("the norm $|x|$\nof | x") == r"the norm $\|x\|$ of \| x"
    table = markdown.table(["a", "b"], [["x | y", "1"], ["", "2"]], right=[1])
    assert table.splitlines() == ["| a | b |", "| :-- | --: |", r"| x \| y | 1 |", "|  | 2 |"]


def test_marked_places_are_filled_and_nothing_else():
    text = "before\n\n% ictd build: one\nplain\n\ntext\n% end\n\n% a comment\n\n% ictd build: two\n% end\n"
    filled = markdown.fill(text, {"one": r"first \1", "two": "second", "three": ""}, "a.md")
    assert filled == "before\n\nfirst \\1\n\n% a comment\n\nsecond\n"
    assert markdown.fill("no places", {}, "a.md") == "no places"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("% ictd build: none\n% end\n", "a.md: there is no part 'none' to fill in; there are: one"),
        ("% ictd build: one\ntext\n", "a.md: '% ictd build: one' has no counterpart"),
        ("text\n% end\n", "a.md: '% end' has no counterpart"),
    ],
)
def test_wrong_places_are_refused(text, message):
    with pytest.raises(BookError, match=re.escape(message)):
        markdown.fill(text, {"one": ""}, "a.md")


def test_a_label_is_referred_to_by_its_kind(book):
    content = nb.read(book.run("02_x").notebook)
    assert markdown.references(content) == {
        "eq-x": "{eq}`eq-x`",
        "eq-y": "{eq}`eq-y`",
        "thm-x": "{prf:ref}`thm-x`",
        "lem-x": "{prf:ref}`lem-x`",
        "fig-x": "{numref}`fig-x`",
    }


def test_the_table_of_statements(book):
    run = book.run("02_x", claim("good", 0.5), claim("other", 0.25, holds=True))
    book.tried(run, 20, good=19, other=20)
    book.state(
        {**CHECKED, "claims": ["02/good", "02/other"]}, OPEN, {**DEFINED, "anchor": "02#thm-x"}
    )
    text = book.parts()["statements"]
    assert text.startswith(
        "Of 3 statements, 1 are checked and hold, 0 are checked and fail, 1 are open, "
        "1 cannot be checked."
    )
    assert '<a href="../claims.json">' in text
    checked, opened, defined = rows(text)
    assert checked == [
        "It holds.",
        "Theorem 1",
        "✓ pass",
        "{eq}`eq-x`",
        "{ref}`good <claim-02-x-good>`<br>{ref}`other <claim-02-x-other>`",
        "≤ 1<br>≤ 1, holds",
        "0.5<br>0.25, yes",
        "19 of 20<br>20 of 20",
        "`tests/test_td.py::test_x`",
    ]
    assert opened == ["It may hold.", "(7)", "open: to come", "", ""]
    assert defined == ["It is so.", "(1)", "not checkable: a definition", "{prf:ref}`thm-x`", ""]


def test_a_failed_statement_is_seen(book):
    book.run("02_x", claim("good", 2.0))
    book.state(CHECKED)
    (row,) = rows(book.parts()["statements"])
    assert (row[2], row[6], row[7]) == ("✗ fail", "2", "–")


def test_tests_are_links_where_the_project_can_be_read(book):
    book.run("02_x", claim("good"))
    book.state(CHECKED)
    (row,) = rows(book.parts("https://example.org/p/blob/main")["statements"])
    link = "[`tests/test_td.py::test_x`](https://example.org/p/blob/main/tests/test_td.py)"
    assert row[-1] == link


def test_an_anchor_that_its_chapter_lacks_is_refused(book):
    book.run("02_x", claim("good"))
    book.state({**CHECKED, "anchor": "02#eq-none"})
    with pytest.raises(StatementError, match=r"'one': 02_x has no equation, .* 'eq-none'"):
        book.parts()
    # A chapter that was not run has no page to lead to.
    book.state({**OPEN, "anchor": "07#eq-none"})
    assert rows(book.parts()["statements"])[0][3] == ""


def test_our_own_claims_are_grouped_by_chapter_and_name_what_breaks_them(book):
    book.run("02_x", claim("own", 0.5), claim("good", source="arXiv:2605.07333v2"))
    book.run("03_y", claim("other", 2.0, source="arXiv:1"))
    book.run("04_z")
    sabotage = book.root / "tests" / "sabotage"
    sabotage.mkdir(parents=True)
    (sabotage / "chapter_02.py").write_text("")
    book.state(CHECKED)
    text = book.parts()["claims"]
    first, second = text.split("### ")[1:]
    assert first.startswith("Title | with a bar\n")
    assert (
        "seen to fail in a copy of {doc}`/chapters/02_x` that `tests/sabotage/chapter_02.py`"
        in (first)
    )
    assert "Made in {doc}`/chapters/03_y`." in second
    assert rows(first) == [
        ["{ref}`own <claim-02-x-own>`", "what own says", "ours", "✓ pass", "≤ 1", "0.5", "–"]
    ]
    assert rows(second)[0][2:] == ["arXiv:1", "✗ fail", "≤ 1", "2", "–"]


def test_nothing_to_tell_is_told(book):
    assert book.parts()["statements"] == "No statements are listed."
    assert book.parts()["claims"] == "No claims were made."


def test_the_status_of_the_chapters(book):
    book.run("02_x", claim("good"), claim("bad", 2.0), claim("more"))
    stored = book.run("03_y", commit="123")
    content = json.loads(stored.notebook.read_text())
    content["cells"][1]["metadata"]["tags"] = ["stored"]
    stored.notebook.write_text(json.dumps(content))
    first, second = rows(book.parts()["chapters"])
    when = "2030-01-02 03:04:05 UTC"
    # What the run had not committed has been committed since.
    made = ("12.3 s", "23.4 s", "346 MB", when, "def", "live", "none")
    assert first == ["{doc}`/chapters/02_x`", "2", "1", *made]
    assert second[1:3] == ["0", "0"]
    assert second[-3:-1] == ["123", "live, and 1 cells of stored results"]


def test_the_status_says_where_it_was_measured_and_what_is_over_the_limits(book):
    book.run("02_x", cpu_seconds=59.0, peak_memory=1.4e9)
    text = book.parts()["chapters"]
    assert text.startswith("Measured on Linux, 2 cores.\n\n")
    assert "| CPU time (limit 60 s) | peak memory (limit 1500 MB) |" in text
    book.run("03_y", cpu_seconds=61.0, machine="Darwin, 8 cores")
    book.run("04_z", peak_memory=1.6e9)
    said, _, _ = book.parts()["chapters"].partition("\n\n")
    assert said == (
        "Measured on Darwin, 8 cores; and on Linux, 2 cores. "
        "{doc}`/chapters/03_y` takes more CPU time than the limit. "
        "{doc}`/chapters/04_z` takes more peak memory than the limit."
    )


def test_the_cell_of_a_claim_can_be_referred_to(book):
    run = book.run("02_x", claim("good"), claim("odd one"))
    content = nb.read(run.notebook)
    cells = reference.with_targets(content, "02_x")["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown", "code"]
    assert cells[2]["source"] == "(claim-02-x-good)=\n(claim-02-x-odd-one)="
    assert len(content["cells"]) == 3


def test_ids_of_claims_are_told_from_numbers():
    number = Number("x", 1, "one")
    both = {"outputs": [{"data": bundle(number)[0]}, output(claim("good"))]}
    assert claimed(both) == ["good"]
    assert claimed({"cell_type": "markdown", "source": ""}) == []


def test_a_claim_comes_back_from_its_record():
    made = Claim("x", "it holds", 0.5, 1.0, None, "ours", True)
    assert Claim.of(made.record()) == made
    assert [replace(made, source=s).origin for s in ("ours", "arXiv:2605.07333v2", "a book")] == [
        "ours",
        "paper",
        "other",
    ]


# ------------------------------------------------------------------------------------------ a toy book

LEDGER = """\
# Ledger

## Theirs

% ictd build: statements
Filled by `ictd build`.
% end

## Ours

% ictd build: claims
% end

% ictd build: chapters
% end
"""
EQUATION = ("markdown", "## Part\n\n$$\nx = y\n$$ (eq-x)")


def test_ledger_and_status_are_pages_of_the_built_site(toy):
    toy.add("01_toy")
    toy.add("02_x", EQUATION, "chapter.claim('good', 'the norm $|x|$ is small', 0.5, at_most=1)")
    chapters = toy.root / "chapters"
    statements = [
        {**CHECKED, "statement": "The norm $|x|$ is small, and 3 | 6."},
        {**OPEN, "open": "chapter 7 | 8 is to come"},
    ]
    (chapters / "statements.yml").write_text(yaml.safe_dump(statements))
    (chapters / "ledger.md").write_text(LEDGER)
    with (toy.root / "_toc.yml").open("a") as stream:
        stream.write("- file: chapters/ledger\n")
    toy.ictd("build")

    page = toy.root / "_build/html/chapters/ledger.html"
    html = page.read_text(encoding="utf-8")
    assert "Filled by" not in html
    assert html.count("<table") == 5  # checked, open, claims of two chapters, status
    assert link_problems(page, toy.root / "_build" / "html") == []
    assert text_problems(page) == []
    for link in (
        "02_x.html#equation-eq-x",
        "02_x.html#claim-02-x-good",
        "01_toy.html#claim-01-toy",
    ):
        assert f'href="{link}' in html
    assert "and 3 | 6." in html
    assert "chapter 7 | 8 is to come" in html

    served = json.loads((toy.root / "_build/html/claims.json").read_text(encoding="utf-8"))
    assert served == json.loads(toy.ictd("claims", "--json")[0])
    assert [row["status"] for row in served["statements"]] == ["pass", "open"]
    out, _ = toy.ictd("claims")
    assert re.search(r"^pass  one  \[Theorem 1\]\n +The norm .*\n +claims: 02_x good$", out, re.M)
    assert re.search(r"^open  two  \[\(7\)\]\n.*\n +chapter 7 \| 8 is to come$", out, re.M)
    assert re.search(r"^passed  02_x  good  \(ours\)\n.*\n +measured 0\.5; bound: ≤ 1$", out, re.M)

    assert "up to date" in toy.ictd("build")[1]
    (chapters / "statements.yml").write_text(yaml.safe_dump([OPEN]))
    _, err = toy.ictd("build")
    assert "rendering" in err
    assert "run now" not in err
    (chapters / "statements.yml").write_text("- id: 1")
    assert "statement number 1: it has no 'statement'" in toy.ictd("build", status=1)[1]
    assert "It may hold." in page.read_text(encoding="utf-8")
