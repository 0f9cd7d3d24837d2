"""`ictd.book.compare`: what it reads, how it groups, its tables and files, on folders made here."""

from __future__ import annotations

import csv
import io
import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import PACKAGES, claim, write_run

from ictd.book.comparing import CompareError, Comparison, compare
from ictd.book.comparing.runs import Measured, Result
from ictd.book.comparing.settings import Spread
from ictd.book.comparing.tables import ranges, shortened
from ictd.book.errors import BookError


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Two γ by three seeds; the error is 10γ + seed, and a claim fails at γ = 0.9 and seed 2."""
    for number, (gamma, seed) in enumerate(product((0.9, 0.5), (2, 0, 1))):
        write_run(
            tmp_path / "sweep" / f"point-{number}",
            {"gamma": gamma, "n_states": 5, "betas": [0.0, 1.0], "seed": seed},
            {"error": 10 * gamma + seed, "size": 7},
            [
                claim("bound", 0.1 * seed, passed=(gamma, seed) != (0.9, 2), at_most=0.15),
                claim("exact", 0.0, at_most=0.0),
            ],
        )
    return tmp_path / "sweep"


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


# What is read


def test_runs_are_found_below_a_folder_at_any_depth_but_not_in_hidden_ones(tmp_path: Path) -> None:
    for number, place in enumerate(("a", "b/c/d", "a/nested", ".hidden/e", "b/.f")):
        write_run(tmp_path / place, {"seed": number}, {"x": 1.0})
    found = compare([tmp_path])
    assert [row["folder"] for row in found.runs] == ["a", "b/c/d", "a/nested"]
    assert found.folder == tmp_path.resolve()


def test_a_folder_of_results_is_taken_itself(sweep: Path) -> None:
    for given_folder in (sweep / "point-1", str(sweep / "point-1")):
        (row,) = compare([given_folder]).runs
        assert row["folder"] == "point-1"
        assert compare(given_folder).runs == [row]


def test_a_run_that_is_found_twice_counts_once(sweep: Path) -> None:
    once = compare([sweep])
    assert once.notes == []
    # Nested folders, in both orders, and a link.
    (sweep.parent / "link").symlink_to(sweep, target_is_directory=True)
    for folders in ([sweep, sweep / "point-1"], [sweep / "point-1", sweep.parent], [sweep] * 2):
        again = compare(folders)
        assert again.runs == once.runs
        assert again.notes == []


def test_the_same_run_in_two_folders_counts_once(sweep: Path) -> None:
    parameters = json.loads((sweep / "point-0" / "parameters.json").read_text())
    once = compare([sweep])
    numbers = {"error": 11.0, "size": 7}
    bound = [claim("bound", 0.2, passed=False, at_most=0.15), claim("exact", 0.0, at_most=0.0)]
    write_run(sweep / "z", parameters, numbers, bound, started="2027-01-01", seconds=9.0)
    for folders in ([sweep], [sweep / "z", sweep]):
        found = compare(folders)
        assert found.runs == once.runs
        assert found.notes == ["counted once: 1 further folder holds a run of another folder"]


def test_one_key_with_other_parameters_is_another_run(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_run(tmp_path / str(seed), {"seed": seed}, {"x": 1.0}, key="one")
    assert len(compare([tmp_path]).runs) == 2


def test_one_run_with_two_results_is_reported(tmp_path: Path) -> None:
    for number in range(3):
        write_run(tmp_path / str(number), {"seed": 0}, {"x": number})
    write_run(tmp_path / "3", {"seed": 0}, {"x": 0})
    found = compare([tmp_path / name for name in "2130"])
    assert [row["number:x"] for row in found.runs] == [0]
    assert [note[:41] for note in found.notes[1:]] == [
        "1 has other results than 0, which counts,",
        "2 has other results than 0, which counts,",
    ]


def test_results_without_a_key_are_the_same_run_if_they_are_copies(tmp_path: Path) -> None:
    old = {"key": "left out", "code": "left out"}
    for name, started in (("a", "1"), ("b", "1"), ("c", "2")):
        write_run(tmp_path / name, {"seed": 0}, {"x": 1.0}, started=started, **old)
    found = compare([tmp_path])
    assert [row["folder"] for row in found.runs] == ["a", "c"]
    # Nothing says that the third is the first: the table tells of both.
    assert "0      2" in found.table()


def test_failed_and_unfinished_runs_are_counted(sweep: Path) -> None:
    for name in ("f1", "f2", "u1", "u2", "u3", "u4"):
        (sweep / name).mkdir()
        (sweep / name / "parameters.json").write_text("{}")
    for name in ("f1", "f2"):
        (sweep / name / "error.txt").write_text("ValueError")
    found = compare([sweep])
    assert len(found.runs) == 6
    assert found.failed == ["f1", "f2"]
    assert found.unfinished == ["u1", "u2", "u3", "u4"]
    for text in (found.table(), found.markdown()):
        assert "not compared: 2 failed runs (f1, f2)" in text
        assert "not compared: 4 unfinished runs (u1, u2, u3 and 1 more)" in text


def test_a_run_that_failed_first_and_then_succeeded_is_read(sweep: Path) -> None:
    (sweep / "point-0" / "error.txt").write_text("an earlier try")
    assert compare([sweep]).failed == []


# Errors


def test_without_results_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "failed").mkdir()
    (tmp_path / "failed" / "error.txt").write_text("x")
    with pytest.raises(CompareError, match=r"no results in .*; runs found: 1 failed"):
        compare([tmp_path])
    with pytest.raises(CompareError, match="no results in no folder"):
        compare([])
    assert issubclass(CompareError, BookError)


def test_a_folder_that_is_none_is_an_error(sweep: Path) -> None:
    with pytest.raises(CompareError, match="missing: there is no such folder"):
        compare([sweep, sweep / "missing"])
    with pytest.raises(CompareError, match=r"results\.json: it is not a folder"):
        compare([sweep / "point-0" / "results.json"])


def test_runs_of_two_chapters_are_an_error_that_names_both(sweep: Path) -> None:
    write_run(sweep / "other", {"seed": 0}, chapter="02_other")
    with pytest.raises(CompareError, match=r"two chapters: .*") as caught:
        compare([sweep])
    assert "06_toy" in str(caught.value)
    assert "02_other" in str(caught.value)
    assert str(sweep / "other") in str(caught.value)


GOOD: dict[str, Any] = {"chapter": "06_toy", "claims": [], "numbers": [], "provenance": {}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"chapter": "06_toy", "cla',
        "[]",
        b"\xff\xfe",
        json.dumps({**GOOD, "chapter": None}),
        json.dumps({**GOOD, "claims": {}}),
        json.dumps({**GOOD, "claims": ["x"]}),
        json.dumps({**GOOD, "claims": [{"id": "x", "value": 1.0}]}),
        json.dumps({**GOOD, "claims": [{**claim("x", 1.0), "at_most": "low"}]}),
        json.dumps({**GOOD, "numbers": [{"name": "x", "value": "high"}]}),
        json.dumps({**GOOD, "numbers": [{"name": "x", "value": True}]}),
        json.dumps({**GOOD, "numbers": [{"name": "x", "value": [1]}]}),
        json.dumps({**GOOD, "numbers": [{"name": "x", "value": 10**400}]}),
        json.dumps({**GOOD, "provenance": None}),
    ],
)
def test_a_damaged_file_is_named(sweep: Path, text: str | bytes) -> None:
    path = sweep / "point-3" / "results.json"
    path.write_text(json.dumps(GOOD))
    compare([sweep])  # the file is good but for what is put in below
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CompareError, match="damaged") as caught:
        compare([sweep])
    assert str(caught.value).startswith(str(path.resolve()))


def test_damaged_or_missing_parameters_are_named(sweep: Path) -> None:
    path = sweep / "point-3" / "parameters.json"
    for text in ("{", "[]", '{"gamma": null}', '{"gamma": [[1]]}'):
        path.write_text(text)
        with pytest.raises(CompareError, match=r"parameters\.json: it is damaged"):
            compare([sweep])
    path.unlink()
    with pytest.raises(CompareError, match=r"point-3.parameters\.json: it cannot be read"):
        compare([sweep])


def test_only_refuses_unknown_names_with_the_nearest(sweep: Path) -> None:
    with pytest.raises(
        CompareError, match=r"bounds: no such number or claim; did you mean bound\?"
    ):
        compare([sweep], only=["error", "bounds"])
    with pytest.raises(CompareError, match=r"zzz: .*none of the names \(all: error, size, bound"):
        compare([sweep], only=["zzz"])


# Settings


def test_settings_are_equal_parameters_but_for_the_seed(sweep: Path) -> None:
    found = compare([sweep])
    assert found.chapter == "06_toy"
    assert found.varied == ["gamma"]
    assert found.fixed == {"n_states": 5, "betas": [0.0, 1.0]}
    assert [setting.parameters["gamma"] for setting in found.settings] == [0.5, 0.9]
    assert [setting.seeds for setting in found.settings] == [(0, 1, 2)] * 2
    assert [run.parameters["seed"] for run in found.settings[1].runs] == [0, 1, 2]
    assert "seed" not in found.settings[0].parameters


def test_results_spread_over_seeds(sweep: Path) -> None:
    (low, high) = compare([sweep]).settings
    error = high.spreads[Result("number", "error")]
    assert (error.median, error.smallest, error.largest) == (10, 9, 11)
    assert str(error) == "10 [9, 11]"
    assert str(high.spreads[Result("claim", "bound")]) == "0.1 [0, 0.2], passed 2 of 3"
    assert str(low.spreads[Result("claim", "bound")]) == "0.1 [0, 0.2], passed"
    assert str(low.spreads[Result("number", "size")]) == "7"


def measured(*values: float | None, passed: bool | None = None) -> list[Measured | None]:
    return [None if value is None else Measured(value, passed) for value in values]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (measured(0.123456), "0.1235"),
        (measured(123456), "1.235e+05"),
        (measured(math.inf), "inf"),
        (measured(math.nan), "nan"),
        (measured(1.0, math.nan, 3.0, math.inf), "2 [1, 3], 2 of 4 not finite"),
        (measured(math.nan, math.nan), "2 of 2 not finite"),
        (measured(1.0, None, 2.0), "1.5 [1, 2], in 2 of 3 runs"),
        (measured(None, 2.0), "2, in 1 of 2 runs"),
        (measured(None, None), "–"),
        (measured(1.0, 1.0, passed=True), "1, passed"),
        (measured(1.0, 1.0, passed=False), "1, passed 0 of 2"),
        (measured(1.0, passed=False), "1, FAILED"),
        (measured(math.nan, None, passed=False), "nan, FAILED, in 1 of 2 runs"),
    ],
)
def test_the_text_of_a_spread(found: list[Measured | None], text: str) -> None:
    assert str(Spread.of(found)) == text


@given(st.lists(st.floats(-1e300, 1e300) | st.integers(-(10**9), 10**9), min_size=1, max_size=12))
def test_medians_and_ranges_are_those_of_numpy(values: list[float]) -> None:
    with_others = measured(*values, math.nan, math.inf, None)
    for found in (measured(*values), with_others):
        spread = Spread.of(found)
        assert spread.median == np.median(values)
        assert (spread.smallest, spread.largest) == (np.min(values), np.max(values))
    assert (spread.runs, spread.count, spread.not_finite) == (
        len(values) + 3,
        len(values) + 2,
        2,
    )


def test_a_chapter_without_a_seed_has_plain_values(tmp_path: Path) -> None:
    for n in (1, 2):
        write_run(tmp_path / str(n), {"n": n}, {"x": n / 3})
    found = compare([tmp_path])
    assert found.settings[0].seeds == ()
    assert "seeds" not in found.table()
    assert "0.6667" in found.table()
    assert rows_of(found.csv())[0] == ["folder", "n", "number:x"]


def test_settings_are_in_the_order_of_their_values_not_of_their_texts(tmp_path: Path) -> None:
    lists = [[2.0], [10.0], [2.0, 1.0]]
    for number, (n, betas) in enumerate(product((10, 9, 100), lists)):
        write_run(tmp_path / str(number), {"n": n, "betas": betas, "seed": 0}, {"x": number})
    found = compare([tmp_path])
    order = [(s.parameters["n"], s.parameters["betas"]) for s in found.settings]
    assert order == list(product((9, 10, 100), ([2.0], [2.0, 1.0], [10.0])))


def test_the_seed_does_not_order_settings(tmp_path: Path) -> None:
    for seed, n in ((0, 3), (1, 2), (2, 1)):
        write_run(tmp_path / str(n), {"seed": seed, "n": n}, {"x": n})
    assert [setting.parameters["n"] for setting in compare([tmp_path]).settings] == [1, 2, 3]


def test_names_are_in_the_order_of_the_chapter(tmp_path: Path) -> None:
    """That of the run that has most of them; what it lacks comes after, whatever is read first."""
    write_run(tmp_path / "a", {"z": 1}, {"q": 1}, [claim("old", 1)])
    write_run(tmp_path / "b", {"z": 2, "b": 1, "a": 1}, {"z": 1, "a": 1}, [claim("c", 1)])
    write_run(tmp_path / "c", {"b": 2, "z": 2}, {"q": 1, "z": 1})
    for folders in ("abc", "cba"):
        found = compare([tmp_path / name for name in folders])
        assert found.varied == ["z", "b", "a"]
        assert [name for _, name in found.results] == ["z", "a", "q", "c", "old"]


def test_a_parameter_that_some_runs_lack_differs(tmp_path: Path) -> None:
    write_run(tmp_path / "old", {"seed": 0}, {"x": 1.0}, code="old")
    write_run(tmp_path / "new", {"alpha": 1.0, "seed": 0}, {"x": 2.0}, code="new")
    found = compare([tmp_path])
    assert found.varied == ["alpha"]
    assert [setting.parameters.get("alpha") for setting in found.settings] == [None, 1.0]
    assert rows_of(found.csv())[1][:2] == ["old", ""]
    assert "–" in found.table()


def test_a_result_that_some_runs_lack_is_counted(tmp_path: Path) -> None:
    write_run(tmp_path / "0", {"seed": 0}, {"x": 1.0}, [claim("c", 1.0)])
    write_run(tmp_path / "1", {"seed": 1}, {"x": 1.0, "y": 2.0})
    found = compare([tmp_path])
    assert found.results == [("number", "x"), ("number", "y"), ("claim", "c")]
    assert "1, passed, in 1 of 2 runs" in found.table()
    assert rows_of(found.csv())[1:] == [
        ["0", "0", "1.0", "", "1.0", "true"],
        ["1", "1", "1.0", "2.0", "", ""],
    ]


# Versions


def test_versions_of_one_sweep_are_compared_and_noted(tmp_path: Path) -> None:
    for seed in range(5):
        newer = {"code": "b", "packages": {**PACKAGES, "torch": "2.4"}, "started": "2026-02-01"}
        write_run(tmp_path / str(seed), {"seed": seed}, {"x": seed}, **(newer if seed > 1 else {}))
    found = compare([tmp_path])
    assert found.varied == []
    assert len(found.settings[0].runs) == 5
    assert found.notes == [
        "the runs are of 2 versions of the code or the packages; 2 runs of v1, which ran first",
        "3 runs of v2 (2, 3, 4): torch 2.4 instead of 2.3",
    ]
    assert all(note.replace(" ", "") in "".join(found.table(60).split()) for note in found.notes)
    assert [row["version"] for row in found.runs] == ["v1", "v1", "v2", "v2", "v2"]
    assert rows_of(found.csv())[0] == ["folder", "seed", "version", "number:x"]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"code": "b"}, "other code of the chapter or of the library"),
        ({"code": "b", "ictd": "0.2.0"}, "ictd 0.2.0 instead of 0.1.0"),
        ({"python": "CPython 3.12"}, "Python CPython 3.12 instead of CPython 3.11.7"),
        ({"packages": {"numpy": "2.0", "x": "1"}},
         "torch missing instead of 2.3, x 1 instead of missing"),
        ({"code": "left out"}, "a hash of the code was recorded for only one of them"),
    ],
)  # fmt: skip
def test_a_note_says_in_what_versions_differ(
    tmp_path: Path, other: dict[str, Any], words: str
) -> None:
    write_run(tmp_path / "a", {"seed": 0}, {"x": 1.0})
    write_run(tmp_path / "b", {"seed": 1}, {"x": 1.0}, **{"started": "2027-01-01", **other})
    assert compare([tmp_path]).notes[1] == f"1 run of v2 (b): {words}"


def test_runs_that_differ_in_their_version_alone_are_side_by_side(tmp_path: Path) -> None:
    for seed, (code, started) in product((0, 1), (("new", "2026-03"), ("old", "2026-02"))):
        x = {"x": seed + (10.0 if code == "new" else 0.0)}
        write_run(tmp_path / f"{code}{seed}", {"seed": seed}, x, code=code, started=started)
    found = compare([tmp_path])
    assert found.varied == ["code version"]
    assert [str(s.spreads[Result("number", "x")]) for s in found.settings] == [
        "0.5 [0, 1]",
        "10.5 [10, 11]",
    ]
    assert [s.parameters["code version"] for s in found.settings] == ["v1", "v2"]
    assert rows_of(found.csv())[0] == ["folder", "code version", "seed", "number:x"]


# Tables


def test_the_table_says_what_is_compared(sweep: Path) -> None:
    text = compare([sweep]).table()
    head = " ".join(text.partition("the same")[0].split())
    assert head == f"06_toy: 6 runs, 2 settings, 3 seeds, below {sweep.resolve()}"
    assert "the same in all runs: n_states 5, betas [0, 1]" in text
    blocks = [block.splitlines() for block in text.split("\n\n")]
    cells = [[line.split("  ") for line in block] for block in blocks]
    settings = [[cell.strip() for cell in row if cell.strip()] for row in cells[1]]
    assert settings[1] == ["gamma", "seeds", "claims passed", "failed"]
    assert settings[3:] == [
        ["0.5", "0–2", "2 of 2", "none"],
        ["0.9", "0–2", "1 of 2", "bound (1 of 3)"],
    ]
    assert blocks[2][0] == "Numbers"
    assert blocks[2][1].split() == ["gamma", "error"]
    assert blocks[3][0] == "Claims"
    assert blocks[3][1].split() == ["gamma", "bound"]


def test_what_is_the_same_in_every_setting_is_a_line_and_not_a_column(sweep: Path) -> None:
    last = compare([sweep]).table().split("\n\n")[-1].splitlines()
    assert last[0] == "The same in every setting"
    assert [line.split("  ", 1)[0] for line in last[3:]] == ["size", "exact"]
    assert last[3].split() == ["size", "number", "7"]
    assert last[4].split(None, 2) == ["exact", "claim", "0, passed"]


def test_what_differs_below_the_digits_shown_is_a_column(tmp_path: Path) -> None:
    for n in (1, 2):
        write_run(tmp_path / str(n), {"n": n}, {"x": 1 + 1e-9 * n})
    assert "The same" not in compare([tmp_path]).table()


def wide(tmp_path: Path, results: int = 20, settings: int = 3) -> Comparison:
    for n in range(settings):
        numbers = {f"number-{k}": 0.123456 * n + k for k in range(results)}
        write_run(tmp_path / str(n), {"n_states": n, "seed": 0}, numbers)
    return compare([tmp_path])


@pytest.mark.parametrize("width", [40, 80, 200])
def test_blocks_fit_the_width_and_repeat_the_parameters(tmp_path: Path, width: int) -> None:
    found = wide(tmp_path)
    text = found.table(width).partition("Numbers")[2]
    blocks = [block.strip("\n").splitlines() for block in text.split("\n\n")]
    shown = [block[0].split() for block in blocks]
    assert all(names[0] == "n_states" for names in shown)
    assert [n for names in shown for n in names[1:]] == [f"number-{k}" for k in range(20)]
    assert max(len(line) for block in blocks for line in block) <= width
    # As many as fit: the first of the next block would not.
    for block, following in zip(blocks, shown[1:], strict=False):
        assert len(block[0]) + 2 + len(following[1]) > width
    assert all([line.split()[0] for line in block[2:]] == ["0", "1", "2"] for block in blocks)


def test_wide_parameters_are_replaced_by_numbers_of_settings(tmp_path: Path) -> None:
    for n in range(2):
        parameters = {f"a_long_parameter_name_{k}": n for k in range(4)}
        write_run(tmp_path / str(n), parameters, {"x": n})
    text = compare([tmp_path]).table(80)
    settings, numbers = (block.splitlines() for block in text.split("\n\n")[1:])
    assert settings[1].split()[:2] == ["#", "a_long_parameter_name_0"]
    assert [line.split() for line in numbers[1:]] == [
        ["#", "x"],
        ["─", "─"],
        ["1", "0"],
        ["2", "1"],
    ]


def test_many_settings_are_cut_on_a_terminal_only(tmp_path: Path) -> None:
    found = wide(tmp_path, results=1, settings=60)
    assert "10 more settings are not shown here" in found.table()
    assert (
        len(found.table(settings=60).splitlines()) == len(found.table().splitlines()) + 2 * 10 - 2
    )
    assert found.markdown().count("\n| 5") == 2 * 11


def test_many_failed_claims_are_cut_on_a_terminal_only(tmp_path: Path) -> None:
    write_run(tmp_path / "a", {"seed": 0}, {}, [claim(f"c{k}", k, passed=False) for k in range(5)])
    found = compare([tmp_path])
    assert "0 of 5         c0, c1, c2, 2 more" in found.table()
    assert "| 0 of 5 | c0, c1, c2, c3, c4 |" in found.markdown()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.30000000000000004, "0.3"),
        (12345678, "12345678"),
        (True, "true"),
        ("x" * 30, "x" * 23 + "…"),
        ([1.0, 2.5], "[1, 2.5]"),
        (list(range(100)), "[0, 1, …, 99] (100)"),
        (None, "–"),
    ],
)
def test_values_are_shortened(value: Any, text: str) -> None:
    assert shortened(value) == text


def test_values_are_not_shortened_to_the_same_text(tmp_path: Path) -> None:
    for n in range(2):
        betas = [0.0] * 5 + [float(n)] + [0.0] * 5
        write_run(tmp_path / str(n), {"betas": betas, "seed": 0}, {"x": n})
    text = compare([tmp_path]).markdown()
    assert "| [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0" in text


@pytest.mark.parametrize(
    ("seeds", "text"),
    [([0, 1, 2, 5, 7, 8], "0–2, 5, 7–8"), ([3, 3], "3"), ([], ""), ([-1, 0], "-1–0")],
)
def test_seeds_are_shown_as_ranges(seeds: list[int], text: str) -> None:
    assert ranges(seeds) == text


def test_markdown_has_six_results_a_table(tmp_path: Path) -> None:
    text = wide(tmp_path).markdown()
    assert text.startswith(
        "# Comparison of runs of 06_toy\n\n- 06_toy: 3 runs, 3 settings, 1 seed\n"
    )
    heads = [line for line in text.splitlines() if line.startswith("| n_states")][1:]
    assert [head.count("number-") for head in heads] == [6, 6, 6, 2]
    assert text.count("## Numbers") == 1
    assert "- number-3 (number): meaning of number-3" in text
    assert str(tmp_path) not in text


def test_a_meaning_that_differs_between_runs_is_left_out(sweep: Path) -> None:
    path = sweep / "point-2" / "results.json"
    path.write_text(path.read_text().replace("meaning of error", "something else"))
    text = compare([sweep]).markdown()
    assert "(number): meaning of size" in text
    assert "error (number)" not in text


def test_a_run_without_claims_or_parameters_has_no_empty_table(tmp_path: Path) -> None:
    write_run(tmp_path / "a", {}, {"x": 1.0})
    found = compare([tmp_path])
    assert "Settings" not in found.table()
    assert "the same" not in found.table()
    assert "Settings" not in found.markdown()
    assert "Results" in found.table()


def test_only_shows_what_was_asked_for(sweep: Path) -> None:
    found = compare([sweep], only=["bound"])
    assert found.results == [("claim", "bound")]
    assert rows_of(found.csv())[0] == ["folder", "gamma", "seed", "claim:bound", "passed:bound"]
    for text in (found.table(), found.markdown()):
        assert "error" not in text
        assert "exact" not in text
        assert "1 of 2" in text  # the settings still say how their runs went
    assert compare([sweep], only="bound").results == found.results


def test_a_number_and_a_claim_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for n in (1, 2):
        write_run(tmp_path / str(n), {"n": n}, {"slope": n}, [claim("slope", -n)])
    found = compare([tmp_path], only=["slope"])
    assert rows_of(found.csv())[1] == ["1", "1", "1", "-1", "true"]
    assert found.runs[0] == {
        "folder": "1",
        "n": 1,
        "number:slope": 1,
        "claim:slope": -1,
        "passed:slope": True,
    }


# Files


def test_csv_has_a_row_a_run_with_exact_values(tmp_path: Path) -> None:
    write_run(
        tmp_path / "a, b",
        {"rate": 0.1, "flag": True, "betas": [0.0, 1.0], "name": "x", "seed": 3},
        {"x": 0.1 + 0.2, "y": math.nan, "z": 10**20},
        [claim("c", -math.inf, passed=False)],
    )
    write_run(
        tmp_path / "c",
        {"rate": 0.2, "flag": False, "betas": [1.0], "name": "y", "seed": 3},
        {"x": 1.0, "y": 1.0, "z": 1},
        [claim("c", 1.0)],
    )
    head, first, _ = rows_of(compare([tmp_path]).csv())
    assert head[:6] == ["folder", "rate", "flag", "betas", "name", "seed"]
    assert head[6:] == ["number:x", "number:y", "number:z", "claim:c", "passed:c"]
    assert first[:6] == ["a, b", "0.1", "true", "[0.0, 1.0]", "x", "3"]
    assert first[6:] == ["0.30000000000000004", "nan", str(10**20), "-inf", "false"]


def test_the_files_are_the_same_bytes_whatever_the_order_of_the_folders(sweep: Path) -> None:
    points = sorted(sweep.iterdir())
    texts = set()
    for folders in ([sweep], points, points[::-1], [points[3], sweep]):
        found = compare(folders)
        texts.add((found.csv(), found.markdown(), found.table()))
    assert len(texts) == 1


def test_the_files_do_not_depend_on_where_the_runs_are(
    sweep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = compare([sweep])
    before = here.csv(), here.markdown()
    moved = sweep.rename(sweep.with_name("moved"))
    monkeypatch.chdir(moved)
    there = compare(["."])
    assert (there.csv(), there.markdown()) == before


def test_write_leaves_four_files(sweep: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder"
    found = compare([sweep], output=target)
    assert sorted(path.name for path in target.iterdir()) == [
        "compare.csv",
        "compare.md",
        "compare.png",
        "compare.svg",
    ]
    assert (target / "compare.csv").read_text(encoding="utf-8") == found.csv()
    page = (target / "compare.md").read_text(encoding="utf-8")
    assert page.startswith(found.markdown())
    assert "![Against gamma, with the spread over seeds: error, size](compare.png)" in page
    assert (target / "compare.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (target / "compare.svg").read_bytes()


def test_without_a_figure_there_is_a_sentence_and_no_older_picture(
    sweep: Path, tmp_path: Path
) -> None:
    compare([sweep], output=tmp_path / "out")
    written = compare([sweep / "point-0"]).write(tmp_path / "out")
    assert sorted(written) == sorted((tmp_path / "out").resolve().iterdir())
    assert [path.suffix for path in written] == [".csv", ".md"]
    assert "There is no figure, since nothing differs" in written[1].read_text(encoding="utf-8")


def test_an_output_in_the_place_of_a_file_is_named(sweep: Path) -> None:
    path = sweep / "point-0" / "results.json"
    with pytest.raises(CompareError, match=r"results\.json: it cannot be written to"):
        compare([sweep], output=path)


def test_reading_many_runs_keeps_little_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version, a name and the like are one object for all runs."""
    for seed in range(20):
        write_run(tmp_path / str(seed), {"gamma": 0.5, "seed": seed}, {"x": seed})
    runs = compare([tmp_path]).settings[0].runs
    assert len({id(run.version) for run in runs}) == 1
    assert len({id(name) for run in runs for name in run.parameters}) == 2
    assert len({id(result) for run in runs for result in run.results}) == 1


def test_a_notebook_and_print_show_the_tables(sweep: Path) -> None:
    made = compare(sweep)
    assert str(made) == made.table()
    assert made._repr_markdown_() == made.markdown()
