"""The grammar of a parameters cell and the check of values, without a kernel."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ictd.book import ParameterError
from ictd.book.parameters import parse

CELL = """\
gamma: float = 0.9  # discount factor, in [0, 1)
step: float = 1.0  # step size, in (0, ∞)
n_states: int = 10  # states, in [3, 200]
betas: list[float] = [
    0.0,
    1.0,
]  # sharpness, each in [0, 1000]
sizes: list[int] = [2, 3]  # sizes, each in [-5, 9]
features: str = "sphere"  # distribution, one of sphere, uniform, one-hot
names: list[str] = ["a"]  # names, each one of a, b
flag: bool = True  # whether to do so
"""


def accept(name: str, value: object) -> object:
    return parse(CELL).check({name: value})[name]


def refuse(name: str, value: object) -> str:
    with pytest.raises(ParameterError) as caught:
        parse(CELL).check({name: value})
    (problem,) = caught.value.problems
    assert problem.startswith(f"{name}: ")
    return problem


def same(value: object, expected: object) -> bool:
    """Equal, and of the same types all the way down."""
    return repr(value) == repr(expected)


def test_the_cell_gives_names_types_defaults_meanings_and_ranges():
    declaration = parse(CELL)
    assert list(declaration) == (
        ["gamma", "step", "n_states", "betas", "sizes", "features", "names", "flag"]
    )
    assert declaration["gamma"].meaning == "discount factor"
    assert str(declaration["gamma"].range) == "[0, 1)"
    assert str(declaration["step"].range) == "(0, ∞)"
    assert declaration["features"].choices == ("sphere", "uniform", "one-hot")
    assert same(declaration.check({}), declaration.defaults)
    assert same(declaration.defaults["betas"], [0.0, 1.0])


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        # One float by every way in: -p and YAML's 1e-3 are text, Python's is a number.
        ("step", "1e-3", 0.001),
        ("step", 1e-3, 0.001),
        ("step", 2, 2.0),
        ("step", np.float32(0.5), 0.5),
        ("step", np.array(0.25), 0.25),
        ("step", torch.tensor(0.25), 0.25),
        ("n_states", "1e2", 100),
        ("n_states", 100.0, 100),
        ("n_states", " 12 ", 12),
        ("n_states", np.int64(12), 12),
        ("flag", "false", False),
        ("flag", "False", False),
        ("flag", "true", True),
        ("flag", 0, False),
        ("flag", np.bool_(False), False),
        ("betas", "[0, 1]", [0.0, 1.0]),
        ("betas", [0, "1e-3"], [0.0, 0.001]),
        ("betas", np.array([0.5, 1]), [0.5, 1.0]),
        ("betas", [np.float64(0.5)], [0.5]),
        ("sizes", "[0, 1]", [0, 1]),
        ("sizes", "0, 1", [0, 1]),
        ("sizes", [0, 1], [0, 1]),
        ("sizes", (0, 1), [0, 1]),
        ("sizes", "(0, 1)", [0, 1]),
        ("sizes", range(2), [0, 1]),
        ("sizes", "range(0, 2)", [0, 1]),
        ("sizes", "range(4, -2, -3)", [4, 1]),
        ("sizes", np.arange(2), [0, 1]),
        ("features", "one-hot", "one-hot"),
        ("names", '["a", "b"]', ["a", "b"]),
    ],
)
def test_values_are_taken_and_typed(name, value, expected):
    assert same(accept(name, value), expected)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("gamma", 1, "a number in [0, 1)"),
        ("gamma", "1", "a number in [0, 1)"),
        ("gamma", -1, "a number in [0, 1)"),
        ("gamma", math.nan, "a number in [0, 1)"),
        ("gamma", "nan", "a number in [0, 1)"),
        ("gamma", "inf", "a number in [0, 1)"),
        ("step", math.inf, "a number in (0, ∞)"),
        ("step", "1e999", "a number in (0, ∞)"),
        ("step", 0.0, "a number in (0, ∞)"),
        ("gamma", True, "a number in [0, 1)"),
        ("gamma", "True", "a number in [0, 1)"),
        ("step", True, "a number in (0, ∞)"),
        ("n_states", np.bool_(True), "a whole number in [3, 200]"),
        ("sizes", [True], "item 0: got True, expected a whole number in [-5, 9]"),
        ("gamma", None, "a number in [0, 1)"),
        ("gamma", "", "a number in [0, 1)"),
        ("gamma", [0.5], "a number in [0, 1)"),
        ("n_states", 2, "a whole number in [3, 200]"),
        ("n_states", "2.5", "a whole number in [3, 200]"),
        ("n_states", False, "a whole number in [3, 200]"),
        ("n_states", 10**40, "a whole number in [3, 200]"),
        ("flag", "maybe", "true or false"),
        ("flag", 2, "true or false"),
        ("betas", [], "a list such as [0.0, 1.0]"),
        ("betas", "[]", "a list such as [0.0, 1.0]"),
        ("betas", 1.0, "a list such as [0.0, 1.0]"),
        ("betas", "[0 1]", "a list such as [0.0, 1.0]"),
        ("betas", [0.0, math.nan], "item 1: got nan, expected a number in [0, 1000]"),
        ("betas", [[0.0]], "item 0: got [0.0], expected a number in [0, 1000]"),
        ("sizes", "range(0, 3, 0)", "a list such as [2, 3]"),
        ("sizes", [1.5], "item 0: got 1.5, expected a whole number in [-5, 9]"),
        ("features", "round", "one of sphere, uniform, one-hot"),
        ("features", 3, "one of sphere, uniform, one-hot"),
        ("names", ["c"], "item 0: got 'c', expected one of a, b"),
    ],
)
def test_values_are_refused_with_what_came_and_what_is_expected(name, value, expected):
    problem = refuse(name, value)
    assert expected in problem
    assert "got " in problem


def test_infinity_is_no_value_even_of_a_range_that_contains_it():
    declaration = parse("x: float = 1.0  # step size, in [0, ∞]")
    assert declaration.check({"x": 1e300}) == {"x": 1e300}
    with pytest.raises(ParameterError, match="got inf"):
        declaration.check({"x": math.inf})


def test_unknown_names_are_refused_with_the_nearest_ones():
    with pytest.raises(ParameterError, match=r"gama: no such parameter; did you mean gamma\?"):
        parse(CELL).check({"gama": 0.5})
    with pytest.raises(ParameterError, match=r"learning_rate: .*all: gamma, step, n_states"):
        parse(CELL).check({"learning_rate": 0.5})


def test_all_problems_are_reported_at_once():
    with pytest.raises(ParameterError) as caught:
        parse(CELL).check({"gamma": 1, "n_states": "x", "gama": 1, "betas": []})
    names = [problem.split(":")[0] for problem in caught.value.problems]
    assert sorted(names) == ["betas", "gama", "gamma", "n_states"]
    assert all(problem in str(caught.value) for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("gamma = 0.9  # discount, in [0, 1)", "expected NAME: TYPE = LITERAL"),
        ("import os", "expected NAME: TYPE = LITERAL"),
        ("gamma: float = 0.9", "no comment"),
        ("gamma: float = 0.9  # discount", "must end with a range"),
        ("gamma: float = 0.9  # in [0, 1)", "must end with a range"),
        ("gamma: float = 0.9  # , in [0, 1)", "no meaning"),
        ("gamma: float = 1.0  # discount, in [0, 1)", "the default: got 1.0"),
        ("gamma: float = 1  # discount, in [0, 1]", "the default 1 is no float"),
        ("n: int = True  # number, in [0, 1]", "the default True is no int"),
        ("gamma: float = 9 / 10  # discount, in [0, 1)", "must be a literal"),
        ("gamma: float  # discount, in [0, 1)", "must be a literal"),
        ("gamma: complex = 1j  # discount, in [0, 1)", "complex is none of"),
        ("gamma: float = 0.9  # discount, gamma=1 not allowed, in [0, 1)", "a second '='"),
        ("gamma: float = 0.9  # discount, in [0, one)", "'one' is no bound"),
        ("gamma: float = 0.9  # discount, in [1, 0]", "is empty"),
        ("gamma: float = 0.9  # discount, each in [0, 1]", "no 'each'"),
        ("b: list[float] = [0.9]  # sharpness, in [0, 1]", "'each in"),
        ("b: list[float] = []  # sharpness, each in [0, 1]", "an empty list"),
        ("b: list[float] = [0]  # sharpness, each in [0, 1]", "is no list"),
        ("f: str = 'x'  # kind, one of a, b", "the default: got 'x'"),
        ("f: str = 'x'  # kind, in [0, 1]", "takes no such range"),
        ("f: bool = True  # kind, one of a, b", "takes no such range"),
        ("a: bool = True  # one\na: bool = True  # two", "declared twice"),
        ("gamma: float = = 0.9", "not Python"),
        ("# nothing", "declares nothing"),
    ],
)
def test_a_cell_that_breaks_the_grammar_is_refused(line, problem):
    with pytest.raises(ParameterError, match=r"parameters cell is not well formed") as caught:
        parse(line)
    assert problem in str(caught.value)


def test_every_line_that_breaks_the_grammar_is_named():
    with pytest.raises(ParameterError) as caught:
        parse("a: float = 0.5\nb: bool = True  # fine\nc: int = 3  # number")
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["line 1", "line 3"]
