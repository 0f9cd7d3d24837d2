"""The default beside what a run with other parameters gave."""

from __future__ import annotations

import pytest

from ictd.book.beside import Beside, Outcome, default_beside_yours


def claim(id: str, value: float | str, *, passed: bool = True, **changes) -> dict:
    record = {
        "id": id,
        "statement": f"what {id} says",
        "value": value,
        "at_most": 1.0,
        "at_least": None,
        "source": "ours",
        "holds": None,
        "passed": passed,
    }
    return record | changes


def number(name: str, value: float | str) -> dict:
    return {"name": name, "value": value, "meaning": f"the size of {name}"}


def shown(default: Outcome | None, yours: Outcome) -> str:
    return default_beside_yours(
        Beside(default, "a run of today on this machine"), yours, "04_convergence"
    )


def outcome(gamma: float = 0.9, claims: tuple = (), numbers: tuple = ()) -> Outcome:
    return Outcome({"gamma": gamma, "sizes": [1, 2]}, list(claims), list(numbers))


def rows(markdown: str) -> list[list[str]]:
    """The cells of the rows of all tables, headers and rules left out."""
    lines = markdown.splitlines()
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return [
        row
        for line, row, below in zip(lines, cells, [*lines[1:], ""], strict=True)
        if line.startswith("|") and not line.startswith("| :") and not below.startswith("| :")
    ]


def test_only_what_differs_is_shown() -> None:
    default = outcome(
        claims=(claim("same", 0.25), claim("moved", 0.5)),
        numbers=(number("n", 1), number("m", 2.0)),
    )
    yours = outcome(
        0.5,
        claims=(claim("same", 0.25), claim("moved", 0.75)),
        numbers=(number("n", 3), number("m", 2.0)),
    )
    text = shown(default, yours)
    assert "of a run of today on this machine" in text
    assert rows(text) == [
        ["`gamma`", "`0.9`", "`0.5`"],
        ["`n`", "the size of n", "1", "3"],
        ["`moved`", "what moved says", "≤ 1", "0.5 ✓", "0.75 ✓"],
    ]
    assert text.endswith("2 of 4 claims and numbers are the same in both runs.")
    assert text.index("`n`") < text.index("dropdown") < text.index("`moved`")


def test_failed_claims_come_first_and_are_marked() -> None:
    names = [f"c{index}" for index in range(20)]
    default = outcome(claims=tuple(claim(name, 0.1) for name in names))
    yours = outcome(
        0.99,
        claims=tuple(
            claim(name, 2.0 if name == "c9" else 0.2, passed=name != "c9") for name in names
        ),
    )
    text = shown(default, yours)
    assert rows(text)[1] == ["`c9`", "what c9 says", "≤ 1", "0.1 ✓", "2 ✗ failed"]
    assert text.index("1 claim failed") < text.index("`c9`") < text.index("dropdown")
    assert "0 of 20 claims and numbers are the same" in text


def test_a_claim_that_fails_is_shown_though_its_value_is_the_same() -> None:
    default = outcome(claims=(claim("it", 0.5),))
    yours = outcome(0.5, claims=(claim("it", 0.5, passed=False, at_most=0.4),))
    text = shown(default, yours)
    assert ["`it`", "what it says", "≤ 0.4 (default: ≤ 1)", "0.5 ✓", "0.5 ✗ failed"] in rows(text)
    assert "0 of 1 claims" in text


@pytest.mark.parametrize("count", [12, 13])
def test_a_long_table_is_folded(count: int) -> None:
    default = outcome(numbers=tuple(number(f"n{index}", 1.0) for index in range(count)))
    yours = outcome(0.5, numbers=tuple(number(f"n{index}", 2.0) for index in range(count)))
    text = shown(default, yours)
    assert f"{count} numbers with another value" in text
    assert (":class: dropdown" in text) == (count > 12)
    assert len(rows(text)) == count + 1


@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        (0.123456, 0.2, ["0.1235", "0.2"]),
        (1.00001, 1.00002, ["1.00001", "1.00002"]),
        (1.0, 1.0 + 2**-52, ["1", "1.0000000000000002"]),
        (100000, 200000, ["100000", "200000"]),
        (1e-12, "nan", ["1e-12", "nan"]),
        ("inf", "-inf", ["∞", "−∞"]),
        (0.0, -1.5e-7, ["0", "-1.5e-07"]),
    ],
)
def test_different_values_look_different(old, new, texts: list[str]) -> None:
    text = shown(outcome(numbers=(number("n", old),)), outcome(0.5, numbers=(number("n", new),)))
    assert rows(text)[1][2:] == texts


@pytest.mark.parametrize("value", ["nan", "inf", 0.1, 3])
def test_the_same_value_is_no_difference(value) -> None:
    both = (number("n", value),)
    text = shown(outcome(numbers=both), outcome(0.5, numbers=both))
    assert len(rows(text)) == 1
    assert "1 of 1 claims and numbers are the same" in text


def test_what_only_one_run_has_is_shown() -> None:
    default = outcome(claims=(claim("old", 0.5),), numbers=(number("gone", 2),))
    yours = outcome(0.5, claims=(claim("new", 0.5, holds=True),))
    assert rows(shown(default, yours))[1:] == [
        ["`gone`", "the size of gone", "2", "—"],
        ["`new`", "what new says", "≤ 1, holds", "—", "0.5, yes ✓"],
        ["`old`", "what old says", "≤ 1", "0.5 ✓", "—"],
    ]


def test_a_verdict_that_changes_is_a_difference() -> None:
    default = outcome(claims=(claim("it", 0.0, holds=True),))
    yours = outcome(0.5, claims=(claim("it", 0.0, holds=False, passed=False),))
    assert rows(shown(default, yours))[1][3:] == ["0, yes ✓", "0, no ✗ failed"]


def test_parameters_of_lists_and_new_ones_are_shown() -> None:
    default, yours = Outcome({"a": [1, 2], "b": 1}, [], []), Outcome({"a": [1], "c": "x"}, [], [])
    assert rows(shown(default, yours)) == [
        ["`a`", "`[1, 2]`", "`[1]`"],
        ["`c`", "—", "`'x'`"],
        ["`b`", "`1`", "—"],
    ]


def test_a_bar_in_a_statement_ends_no_cell() -> None:
    default = outcome(claims=(claim("it", 0.1, statement="$|x|$ is small"),))
    yours = outcome(0.5, claims=(claim("it", 0.2, statement="$|x|$ is small"),))
    assert r"$\|x\|$ is small" in shown(default, yours)


def test_at_the_defaults_there_is_one_line() -> None:
    text = shown(outcome(claims=(claim("it", 0.1),)), outcome(claims=(claim("it", 0.1),)))
    assert text == "All parameters have their default values: there is nothing to compare."


def test_without_a_run_at_the_defaults_it_says_how_to_make_one() -> None:
    text = shown(None, outcome(0.5, numbers=(number("n", 1),)))
    assert "`ictd run 04`" in text
    assert "|" not in text
    assert "`ictd run some_name`" in default_beside_yours(
        Beside(None, ""), outcome(0.5), "some_name"
    )
