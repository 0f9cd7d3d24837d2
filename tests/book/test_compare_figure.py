"""The figure of a comparison: axes, lines and bands, by what matplotlib is told to draw."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from made_runs import claim, write_run
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D

from ictd.book.comparing import Comparison, compare

Results = Callable[[dict[str, Any]], Any]


def made(
    folder: Path, grid: dict[str, list[Any]], numbers: Results, claims: Results = lambda _: ()
) -> Comparison:
    """A comparison of runs at every point of a grid of parameters."""
    for number, values in enumerate(product(*grid.values())):
        point = dict(zip(grid, values, strict=True))
        write_run(folder / "runs" / str(number), point, numbers(point), claims(point))
    return compare([folder / "runs"])


def panels(found: Comparison) -> list[Axes]:
    figure = found.figure()
    assert figure is not None
    return figure.axes


def curves(axis: Axes) -> list[Line2D]:
    """The lines with markers: those of results, not of bounds."""
    return [line for line in axis.get_lines() if line.get_marker() != "None"]


def bounds(axis: Axes) -> list[Line2D]:
    return [line for line in axis.get_lines() if line.get_marker() == "None"]


def bands(axis: Axes) -> list[np.ndarray]:
    """The corners of each band."""
    kinds = [one for one in axis.collections if isinstance(one, PolyCollection)]
    return [band.get_paths()[0].vertices for band in kinds]


def legend(found: Comparison) -> list[str]:
    figure = found.figure()
    assert figure is not None
    return [text.get_text() for one in figure.legends for text in one.get_texts()]


SEEDS = [0, 1, 2]
GAMMAS = [0.5, 0.7, 0.9]


def test_a_number_is_drawn_against_what_was_swept_with_a_band_over_seeds(tmp_path: Path) -> None:
    found = made(
        tmp_path, {"gamma": GAMMAS, "n": [7], "seed": SEEDS},
        lambda p: {"error": p["gamma"] + p["seed"] ** 2},
    )  # fmt: skip
    (axis,) = panels(found)
    (line,) = curves(axis)
    np.testing.assert_allclose(line.get_xdata(), GAMMAS)
    np.testing.assert_allclose(line.get_ydata(), np.add(GAMMAS, 1))
    assert line.get_linestyle() == "-"
    (band,) = bands(axis)
    ends = {tuple(np.round(corner, 9)) for corner in band}
    assert ends >= {(g, round(g + extra, 9)) for g in GAMMAS for extra in (0, 4)}
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("gamma", "error")
    assert (axis.get_xscale(), axis.get_yscale()) == ("linear", "linear")
    assert legend(found) == []
    figure = found.figure()
    assert figure is not None
    title = " ".join(figure.get_suptitle().split())
    assert title == (
        "06_toy: 9 runs, 3 settings, 3 seeds medians over seeds, bands from smallest to largest"
    )


def test_there_is_a_line_for_each_of_the_other_parameters(tmp_path: Path) -> None:
    grid = {"n": [10, 9], "gamma": GAMMAS, "flag": [True, False], "seed": [0]}
    found = made(tmp_path, grid, lambda p: {"x": p["n"] + p["gamma"] + p["flag"]})
    (axis,) = panels(found)
    labels = ["n 9, flag false", "n 9, flag true", "n 10, flag false", "n 10, flag true"]
    assert [line.get_label() for line in curves(axis)] == labels
    assert legend(found) == labels
    for line, base in zip(curves(axis), (9, 10, 10, 11), strict=True):
        np.testing.assert_allclose(line.get_ydata(), np.add(GAMMAS, base))
    figure = found.figure()
    assert figure is not None
    assert "medians" not in figure.get_suptitle()  # one seed has no spread


@pytest.mark.parametrize(
    ("grid", "x"),
    [
        ({"a": [1, 2], "b": [1, 2, 3]}, "b"),
        ({"a": [1, 2], "b": [1.5, 2.5]}, "a"),  # a tie: the one that is declared first
        ({"a": ["p", "q", "r"], "b": [1, 2]}, "b"),  # numbers before texts
        ({"a": [True, False], "b": [[1], [2], [3]]}, "b"),  # neither is a number
        ({"n_seeds": [2, 4, 8], "seed": [0, 1, 2, 3]}, "n_seeds"),
    ],
)
def test_the_axis_is_the_numeric_parameter_with_most_values(
    tmp_path: Path, grid: dict[str, list[Any]], x: str
) -> None:
    (axis,) = panels(made(tmp_path, grid, lambda p: {"x": len(str(p))}))
    assert axis.get_xlabel() == x


@pytest.mark.parametrize(
    ("values", "scale"),
    [([1, 10, 100], "log"), ([1, 10, 99], "linear"), ([0, 10, 100], "linear"), ([-100, -1], "linear")],
)  # fmt: skip
def test_an_axis_of_two_decades_is_logarithmic(
    tmp_path: Path, values: list[int], scale: str
) -> None:
    (axis,) = panels(made(tmp_path / "x", {"n": values}, lambda _: {"x": 1}))
    assert axis.get_xscale() == scale
    (axis,) = panels(
        made(tmp_path / "y", {"n": [*range(len(values))]}, lambda p: {"x": values[p["n"]]})
    )
    assert axis.get_yscale() == scale


def test_the_range_over_seeds_counts_for_the_scale(tmp_path: Path) -> None:
    grid = {"n": [1, 2], "seed": [0, 1, 2]}
    (axis,) = panels(made(tmp_path, grid, lambda p: {"x": (0.01, 0.5, 1.0)[p["seed"]]}))
    assert axis.get_yscale() == "log"


def test_a_parameter_without_numbers_has_places_in_a_row(tmp_path: Path) -> None:
    grid = {"features": ["sphere", "one-hot"], "flag": [False, True], "seed": SEEDS}
    found = made(tmp_path, grid, lambda p: {"x": p["flag"] * 10 + p["seed"]})
    (axis,) = panels(found)
    assert [text.get_text() for text in axis.get_xticklabels()] == ["one-hot", "sphere"]
    assert legend(found) == ["flag false", "flag true"]
    for number, line in enumerate(curves(axis)):
        assert line.get_linestyle() == "None"
        np.testing.assert_allclose(line.get_xdata(), [0, 1], atol=0.1)
        np.testing.assert_allclose(line.get_ydata(), 10 * number + 1)
    first, second = (line.get_xdata()[0] for line in curves(axis))
    assert first < second  # side by side
    bars = [one for one in axis.collections if isinstance(one, LineCollection)]
    assert [[sorted(end[1] for end in bar) for bar in one.get_segments()] for one in bars] == [
        [[0, 2]] * 2,
        [[10, 12]] * 2,
    ]
    figure = found.figure()
    assert figure is not None
    assert "bars from smallest to largest" in " ".join(figure.get_suptitle().split())


def test_if_only_the_seed_differs_each_run_is_a_point(tmp_path: Path) -> None:
    grid = {"gamma": [0.5], "seed": [4, 2, 9]}
    found = made(
        tmp_path, grid, lambda p: {"x": p["seed"] ** 2, "y": math.nan if p["seed"] == 2 else 1.0}
    )
    one, two = panels(found)
    (line,) = curves(one)
    np.testing.assert_allclose(line.get_xdata(), [2, 4, 9])
    np.testing.assert_allclose(line.get_ydata(), [4, 16, 81])
    assert line.get_linestyle() == "None"
    assert (one.get_xlabel(), two.get_xlabel()) == ("seed", "seed")
    np.testing.assert_array_equal(curves(two)[0].get_ydata(), [np.nan, 1.0, 1.0])


def test_runs_that_differ_in_their_version_alone_are_drawn_beside_each_other(
    tmp_path: Path,
) -> None:
    for code in ("a", "b"):
        write_run(tmp_path / code, {"seed": 0}, {"x": 1.0}, code=code)
    (axis,) = panels(compare([tmp_path]))
    assert axis.get_xlabel() == "code version"
    assert [text.get_text() for text in axis.get_xticklabels()] == ["v1", "v2"]


# Which results


def test_a_number_and_a_claim_of_one_name_are_told_apart(tmp_path: Path) -> None:
    grid = {"n": [1, 2]}
    made(tmp_path, grid, lambda p: {"x": p["n"]}, lambda p: [claim("x", p["n"])])
    found = compare([tmp_path / "runs"], only=["x"])
    assert [axis.get_ylabel() for axis in panels(found)] == ["x (number)", "x (claim)"]


def test_numbers_are_drawn_and_without_them_claims(tmp_path: Path) -> None:
    def claims(p: dict[str, Any]) -> list[dict[str, Any]]:
        return [claim("c", p["n"]), claim("same", 1.0)]

    both = made(tmp_path / "a", {"n": [1, 2]}, lambda p: {"x": p["n"], "y": 1.0}, claims)
    assert [axis.get_ylabel() for axis in panels(both)] == ["x", "y"]
    without = made(tmp_path / "b", {"n": [1, 2]}, lambda _: {}, claims)
    assert [axis.get_ylabel() for axis in panels(without)] == ["c"]
    assert without.figure_notes == ["claims whose value is the same in all runs are not drawn"]
    chosen = compare([tmp_path / "a"], only=["same", "x"])
    assert [axis.get_ylabel() for axis in panels(chosen)] == ["x", "same"]
    alike = made(tmp_path / "c", {"n": [1, 2]}, lambda _: {}, lambda _: [claim("same", 1.0)])
    assert [axis.get_ylabel() for axis in panels(alike)] == ["same"]


def test_twelve_numbers_are_drawn_at_most(tmp_path: Path) -> None:
    found = made(tmp_path, {"n": [1, 2]}, lambda p: {f"x{k}": p["n"] for k in range(15)})
    figure = found.figure()
    assert figure is not None
    assert [axis.get_ylabel() for axis in figure.axes] == [f"x{k}" for k in range(12)]
    assert found.figure_notes == ["the first 12 of 15 numbers are drawn"]
    assert "the first 12 of 15 numbers are drawn" in " ".join(figure.get_suptitle().split())


def test_eight_lines_are_drawn_at_most_and_look_different(tmp_path: Path) -> None:
    found = made(tmp_path, {"m": [*range(10)], "n": [*range(15)]}, lambda p: {"x": p["m"]})
    (axis,) = panels(found)
    labels = [line.get_label() for line in curves(axis)]
    assert len(labels) == 8
    assert (labels[0], labels[-1]) == ("m 0", "m 9")
    assert legend(found) == labels
    assert found.figure_notes == ["8 of 10 lines are drawn, evenly chosen"]
    written = found.write(tmp_path / "out")[1].read_text(encoding="utf-8")
    assert written.endswith("\n8 of 10 lines are drawn, evenly chosen.\n")
    assert len({line.get_marker() for line in curves(axis)}) == 8
    assert len({line.get_color() for line in curves(axis)}) == 8
    styles = [line.get_linestyle() for line in curves(axis)]
    assert all(one != next_one for one, next_one in pairwise(styles))


def test_nothing_is_drawn_of_one_run_or_of_what_is_not_finite(tmp_path: Path) -> None:
    one = made(tmp_path / "a", {"n": [1], "seed": [0]}, lambda _: {"x": 1.0})
    assert one.figure() is None
    assert one.figure_notes == ["there is no figure, since nothing differs between the runs"]
    infinite = made(tmp_path / "b", {"n": [1, 2]}, lambda _: {"x": math.inf})
    assert infinite.figure() is None
    assert infinite.figure_notes == ["there is no figure, since no result has a finite value"]


def test_what_is_not_finite_is_a_gap_and_counted(tmp_path: Path) -> None:
    def numbers(p: dict[str, Any]) -> dict[str, float]:
        return {"x": math.inf if p["n"] == 2 or (p["n"], p["seed"]) == (3, 0) else p["seed"] + 1.0}

    (axis,) = panels(made(tmp_path, {"n": [1, 2, 3], "seed": [0, 1]}, numbers))
    np.testing.assert_array_equal(curves(axis)[0].get_ydata(), [1.5, np.nan, 2.0])
    assert [text.get_text() for text in axis.texts] == ["not finite: 3"]


def test_an_incomplete_grid_has_shorter_lines(tmp_path: Path) -> None:
    for number, (m, n) in enumerate(((1, 1), (1, 2), (1, 3), (2, 2))):
        write_run(tmp_path / str(number), {"m": m, "n": n}, {"x": m * n})
    (axis,) = panels(compare([tmp_path]))
    assert [list(line.get_xdata()) for line in curves(axis)] == [[1, 2, 3], [2]]


def test_lines_and_places_are_in_order_whatever_is_missing(tmp_path: Path) -> None:
    for number, (f, flag) in enumerate((("c", False), ("b", False), ("a", True), ("c", True))):
        write_run(tmp_path / "f" / str(number), {"f": f, "flag": flag}, {"x": 1})
    found = compare([tmp_path / "f"])
    (axis,) = panels(found)
    assert [text.get_text() for text in axis.get_xticklabels()] == ["a", "b", "c"]
    assert legend(found) == ["flag false", "flag true"]
    ends = [[round(x) for x in line.get_xdata()] for line in curves(axis)]
    assert ends == [[1, 2], [0, 2]]


# Bounds of claims


def bounded(folder: Path, values: Results, **limits: Results) -> Axes:
    def claims(p: dict[str, Any]) -> list[dict[str, Any]]:
        return [claim("c", values(p), **{name: of(p) for name, of in limits.items()})]

    (axis,) = panels(made(folder, {"n": [1, 2, 3]}, lambda _: {}, claims))
    return axis


def test_a_bound_is_a_thin_line(tmp_path: Path) -> None:
    axis = bounded(tmp_path, lambda p: p["n"] / 10, at_most=lambda _: 0.35, at_least=lambda _: 0.05)
    assert [line.get_ydata()[0] for line in bounds(axis)] == [0.35, 0.05]
    assert all(line.get_linewidth() < curves(axis)[0].get_linewidth() for line in bounds(axis))
    assert [text.get_text() for text in axis.figure.legends[0].get_texts()] == [
        "bound of the claim"
    ]
    assert axis.texts[:] == []


def test_a_bound_that_changes_is_a_curve(tmp_path: Path) -> None:
    axis = bounded(tmp_path, lambda p: p["n"], at_most=lambda p: 2 * p["n"])
    (line,) = bounds(axis)
    assert list(line.get_xdata()) == [1, 2, 3]
    assert list(line.get_ydata()) == [2, 4, 6]


def test_a_bound_that_changes_is_a_curve_of_the_colour_of_its_line(tmp_path: Path) -> None:
    def claims(p: dict[str, Any]) -> list[dict[str, Any]]:
        return [claim("c", p["n"], at_most=p["n"] + p["m"])]

    found = made(tmp_path, {"n": [1, 2, 3], "m": [1, 2]}, lambda _: {}, claims)
    (axis,) = panels(found)
    assert [list(line.get_ydata()) for line in bounds(axis)] == [[2, 3, 4], [3, 4, 5]]
    assert [line.get_color() for line in bounds(axis)] == [
        line.get_color() for line in curves(axis)
    ]
    assert legend(found) == ["m 1", "m 2", "bound of the claim"]


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"at_most": lambda _: 100.0}, "bound: ≤ 100"),
        ({"at_least": lambda _: -100.0}, "bound: ≥ -100"),
        ({"at_most": lambda p: 100.0 * p["n"]}, "bound: ≤ 100 … 300"),
    ],
)
def test_a_bound_far_away_is_written_so_that_the_values_keep_their_scale(
    tmp_path: Path, limits: dict[str, Results], text: str
) -> None:
    axis = bounded(tmp_path, lambda p: p["n"], **limits)
    assert bounds(axis) == []
    assert [one.get_text() for one in axis.texts] == [text]
    low, high = axis.get_ylim()
    assert low > 0
    assert high < 4


def test_on_a_logarithmic_axis_a_bound_of_zero_is_written(tmp_path: Path) -> None:
    axis = bounded(tmp_path, lambda p: 10.0 ** -p["n"], at_least=lambda _: 0.0)
    assert axis.get_yscale() == "log"
    assert [one.get_text() for one in axis.texts] == ["bound: ≥ 0"]


def test_numbers_have_no_bound(tmp_path: Path) -> None:
    (axis,) = panels(made(tmp_path, {"n": [1, 2]}, lambda p: {"x": p["n"]}))
    assert bounds(axis) == []


# The figure as a whole


def test_the_data_behind_the_figure_goes_with_it(tmp_path: Path) -> None:
    found = made(tmp_path, {"n": [1, 2], "m": [3, 4], "seed": SEEDS}, lambda p: {"x": p["seed"]})
    figure = found.figure()
    assert figure is not None
    head, *rows = csv.reader(io.StringIO(figure.csv()))
    assert head == ["result", "series", "n", "median", "smallest", "largest"]
    assert rows[0] == ["x", "m 3", "1.0", "1", "0", "2"]
    assert len(rows) == 4


def test_dollars_are_no_mathematics_and_settings_of_the_reader_do_not_matter(
    tmp_path: Path,
) -> None:
    found = made(tmp_path, {"f": ["a $x", "b $y$"], "g": [1, 2]}, lambda p: {"cost $^$": p["g"]})
    before = found.write(tmp_path / "a")
    with mpl.rc_context({"axes.facecolor": "black", "font.size": 30, "lines.linewidth": 9}):
        after = found.write(tmp_path / "b")
    assert [path.read_bytes() for path in before] == [path.read_bytes() for path in after]


@pytest.mark.parametrize("panels_drawn", [1, 2, 5, 12])
def test_nothing_is_cut_off_or_covered(tmp_path: Path, panels_drawn: int) -> None:
    names = [f"a-rather-long-name-of-a-number-{k}" for k in range(panels_drawn)]
    grid = {"n": [10, 20, 30], "distribution": ["uniform", "sphere", "one-hot"], "seed": [0, 1]}
    found = made(tmp_path, grid, lambda p: dict.fromkeys(names, p["n"] + p["seed"]))
    figure = found.figure()
    assert figure is not None
    assert len(figure.axes) == panels_drawn
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    texts = [figure._suptitle, *figure.legends, *(axis.yaxis.label for axis in figure.axes)]
    texts += [axis.xaxis.label for axis in figure.axes]
    boxes = [text.get_window_extent() for text in texts]
    for box in boxes:
        assert box.x0 >= 0
        assert box.y0 >= -1
        assert box.x1 <= width
        assert box.y1 <= height + 1
    shown = [box for box in boxes if box.width > 0]
    assert not any(a.overlaps(b) for k, a in enumerate(shown) for b in shown[:k])
    assert figure.get_size_inches()[0] <= 7
    assert all(axis.get_window_extent().width > 200 for axis in figure.axes)
