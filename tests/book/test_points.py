"""Which runs a sweep consists of."""

from __future__ import annotations

import itertools
import json
import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ictd.book.parameters import ParameterError, parse
from ictd.book.points import LARGEST, Point, axis, make, rows_of

DECLARATION = parse(
    "gamma: float = 0.9  # discount factor, in [0, 1)\n"
    "n_states: int = 10  # states of the chain, in [3, 200]\n"
    "sizes: list[int] = [2, 3]  # sizes, each in [0, 9]\n"
    'features: str = "sphere"  # law of the features, one of sphere, uniform\n'
    "flag: bool = True  # whether to centre\n"
    "note: str = ''  # whatever\n"
    "seed: int = 0  # seed, in [0, 1000000]\n"
)


def values(points: list[Point], *names: str) -> list[Any]:
    return [tuple(point.parameters[name] for name in names) for point in points]


def problems(given: dict[str, Any], rows: list[dict[str, Any]] = []) -> tuple[str, ...]:  # noqa: B006
    with pytest.raises(ParameterError) as raised:
        make(DECLARATION, given, rows)
    return raised.value.problems


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("seed", "0:3", [0, 1, 2]),
        ("seed", "2:9:3", [2, 5, 8]),
        ("seed", "3:0:-1", [3, 2, 1]),
        ("seed", ["7", "0:2"], [7, 0, 1]),
        ("seed", 5, [5]),
        ("seed", np.int64(5), [5]),
        ("seed", np.array(5), [5]),
        ("seed", range(3), [0, 1, 2]),
        ("seed", np.arange(3, dtype=np.int32), [0, 1, 2]),
        ("seed", (0, 1.0, "2"), [0, 1, 2]),
        ("gamma", ["0.5", ".9", "1e-3"], [0.5, 0.9, 0.001]),
        ("gamma", np.linspace(0, 0.5, 3), [0.0, 0.25, 0.5]),
        ("gamma", [np.float32(0.5), 0], [0.5, 0.0]),
        ("gamma", "0:1", [0.0]),
        ("sizes", [2, 3], [[2, 3]]),
        ("sizes", np.array([2, 3]), [[2, 3]]),
        ("sizes", "[2, 3]", [[2, 3]]),
        ("sizes", "range(3)", [[0, 1, 2]]),
        ("sizes", [[2, 3], (4,), range(2)], [[2, 3], [4], [0, 1]]),
        ("sizes", np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        ("sizes", ["[2, 3]", "(4,)", "range(2)"], [[2, 3], [4], [0, 1]]),
        ("features", ["sphere", "uniform"], ["sphere", "uniform"]),
        ("flag", ["true", "no", False], [True, False, False]),
        ("note", ["0:3", "x"], ["0:3", "x"]),
    ],
)
def test_values_of_one_parameter(name, given, expected):
    found = axis(DECLARATION[name], given)
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]
    json.dumps(found)


def test_a_tensor_is_several_values():
    assert axis(DECLARATION["seed"], torch.arange(2)) == [0, 1]
    assert axis(DECLARATION["sizes"], torch.tensor([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert axis(DECLARATION["seed"], torch.tensor(3)) == [3]


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("gamma", ["0.5", "1.5"], "value 2: got '1.5', expected a number in [0, 1)"),
        ("gamma", "nan", "got 'nan'"),
        ("gamma", [], "got no value, expected at least one"),
        ("seed", "3:3", "'3:3' has no values"),
        ("seed", "0:3:0", "'0:3:0' has no values"),
        ("seed", f"0:{LARGEST + 1}", f"expected at most {LARGEST}"),
        ("seed", True, "got True, expected a whole number"),
        ("seed", "a:b", "got 'a:b'"),
        ("sizes", "2:4", "expected a list such as [2, 3]"),
        ("sizes", ["1", "2"], "expected lists, each as one text such as '[1, 2]'"),
        ("note", "a\udcff", "which is no Unicode text"),
        ("sizes", [[2], [99]], "value 2: item 0: got 99"),
        ("features", ["sphere", "round"], "value 2: got 'round', expected one of sphere, uniform"),
        ("flag", "maybe", "got 'maybe'"),
    ],
)
def test_a_value_that_is_not_accepted(name, given, said):
    (problem,) = problems({name: given})
    assert said in problem
    assert problem.startswith(f"{name}: ")
    assert DECLARATION[name].meaning in problem


def test_a_grid_has_every_combination_once_the_last_name_changing_fastest():
    points = make(DECLARATION, {"gamma": ["0.5", "0.9"], "seed": "0:3", "n_states": 5})
    assert values(points, "gamma", "seed", "n_states") == [
        (0.5, 0, 5), (0.5, 1, 5), (0.5, 2, 5), (0.9, 0, 5), (0.9, 1, 5), (0.9, 2, 5),
    ]  # fmt: skip
    assert all(point.parameters.keys() == DECLARATION.keys() for point in points)


def test_nothing_given_is_the_defaults():
    (point,) = make(DECLARATION, {})
    assert point.parameters == DECLARATION.defaults
    assert point.name.startswith("defaults-")


def test_a_point_that_is_given_twice_is_there_once():
    points = make(DECLARATION, {"gamma": ["0.5", ".5", 0.5], "seed": ["0:2", "1"]})
    assert values(points, "gamma", "seed") == [(0.5, 0), (0.5, 1)]


def test_rows_are_combined_with_the_grid():
    rows = [{"gamma": "0.5", "flag": "no"}, {"gamma": 0.7}]
    points = make(DECLARATION, {"seed": "0:2"}, rows)
    assert values(points, "gamma", "flag", "seed") == [
        (0.5, False, 0), (0.5, False, 1), (0.7, True, 0), (0.7, True, 1),
    ]  # fmt: skip


def test_everything_that_is_wrong_is_said_at_once():
    rows = [{"gama": 1}, {"seed": 1, "gamma": 2}]
    found = "\n".join(problems({"seed": "x", "n_state": 3}, rows))
    assert "n_state: no such parameter; did you mean n_states" in found
    assert "seed: got 'x'" in found
    assert "point 1: gama: no such parameter; did you mean gamma?" in found
    assert "point 2: gamma: got 2" in found


def test_a_name_is_given_for_all_points_or_for_each():
    assert "point 2: seed also given for all points" in problems(
        {"seed": 1}, [{"gamma": 0.5}, {"seed": 2}]
    )


def test_too_many_points_are_refused_before_they_are_made():
    (problem,) = problems({"seed": "0:1000", "n_states": range(3, 200), "gamma": ["0", "0.1"]})
    assert problem == f"394000 points; expected at most {LARGEST} in one sweep"


def test_many_wrong_rows_are_not_all_listed():
    assert len(problems({}, [{"gamma": 2}] * 1000)) < 30


# -------------------------------------------------------------------------------------------------- names


def test_a_name_says_what_was_asked_for_and_ends_with_a_hash_of_all_parameters():
    first, second = make(DECLARATION, {"gamma": 0.5, "sizes": "[2, 3]", "seed": "0:2"})
    assert first.name == f"gamma=0.5,sizes=2_3,seed=0-{first.hash}"
    assert first.hash != second.hash
    (other_way,) = make(DECLARATION, {"seed": 0, "gamma": "5e-1", "sizes": (2, 3), "n_states": 10})
    assert other_way.hash == first.hash


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=80), min_size=1, unique=True
    )
)
def test_names_are_folders_everywhere(texts):
    points = make(DECLARATION, {"note": texts})
    names = [point.name for point in points]
    allowed = set(string.ascii_letters + string.digits + ".,=_+-")
    assert all(set(name) <= allowed and len(name) <= 130 for name in names)
    # Some file systems take small and capital letters for the same.
    assert len({name.lower() for name in names}) == len(texts)


@given(
    st.lists(st.floats(0, 0.99), min_size=1, max_size=4), st.lists(st.integers(0, 50), min_size=1)
)
def test_points_are_the_product_without_repetitions(gammas, seeds):
    points = make(DECLARATION, {"gamma": gammas, "seed": seeds})
    expected = list(dict.fromkeys(itertools.product(gammas, seeds)))
    assert values(points, "gamma", "seed") == expected


# -------------------------------------------------------------------------------------------------- files

CSV = 'gamma, sizes ,flag\n0.5,"[2, 3]",no\n\n1e-3,"(4,)",true\n'
ROWS = [
    {"gamma": 0.5, "sizes": [2, 3], "flag": False},
    {"gamma": 0.001, "sizes": [4], "flag": True},
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.csv", CSV),
        ("p.CSV", "\ufeff" + CSV),
        (
            "p.yml",
            "- {gamma: 0.5, sizes: [2, 3], flag: no}\n- {gamma: 1e-3, sizes: [4], flag: yes}\n",
        ),
        ("p.json", json.dumps(ROWS)),
    ],
)
def test_a_file_of_points(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    points = make(DECLARATION, {}, rows_of(path))
    assert [point.hash for point in points] == [p.hash for p in make(DECLARATION, {}, ROWS)]
    assert values(points, "gamma", "sizes", "flag") == [(0.5, [2, 3], False), (0.001, [4], True)]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("p.csv", "gamma\n", "expected a line of names, then lines of values"),
        ("p.csv", "gamma,seed\n0.5,1\n0.5\n", "line 3: got ['0.5'], expected 2 values"),
        ("p.csv", "gamma,seed\n0.5,\n", "line 2: got ['0.5', '']"),
        ("p.csv", "gamma,gamma\n0.5,1\n", "two columns of the name 'gamma'"),
        ("p.csv", "gamma;seed\n0.5;1\n", "commas part the columns"),
        ("p.yml", "- {seed: 1, seed: 2}\n", "seed given twice"),
        ("p.yml", "gamma: 0.5\n", "expected a list of points"),
        ("p.yml", "[]", "expected a list of points"),
        ("p.yml", "[1]", "expected a list of points"),
        ("p.yml", "{", "not YAML"),
        ("p.yml", "x: 0x_", "not YAML"),
        ("p.yml", "[" * 5000, "not YAML"),
        ("p.txt", "gamma\n0.5\n", "a file of points ends in .csv, .yml, .yaml or .json"),
    ],
)
def test_a_file_that_is_no_file_of_points(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(ParameterError, match="p\\.") as raised:
        rows_of(tmp_path / name)
    assert said in str(raised.value)


@pytest.mark.parametrize("name", ["p.csv", "p.yml"])
def test_a_file_that_is_not_there(tmp_path: Path, name):
    with pytest.raises(ParameterError, match="No such file"):
        rows_of(tmp_path / name)


@pytest.mark.parametrize("rows", [{"gamma": 0.5}, 3, None])
def test_points_are_a_list(rows):
    with pytest.raises(ParameterError, match=r"points: got .*, expected a list of points"):
        make(DECLARATION, {}, rows)


@pytest.mark.parametrize("row", ["gamma", [1, 2], 3])
def test_a_point_is_a_mapping(row):
    with pytest.raises(ParameterError, match=r"point 2: got .*, expected NAME: VALUE pairs"):
        make(DECLARATION, {}, [{"gamma": 0.5}, row])
