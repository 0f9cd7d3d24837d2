"""Curves can be told apart by readers with protanopia or deuteranopia.

Colours are turned into those that such a reader sees (Machado, Oliveira and Fernandes, 2009: the matrices
of full severity, on linear RGB) and compared by their distance in CIE Lab, where about 2.3 is just
noticeable on large patches. Thin lines and small marks need far more; we ask for 20. Curves of closer
colours have to differ in their line or their marks.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from ictd import figures
from ictd.figures import METHOD_COLOURS

APART = 20.0
SEEN_WITH = {
    "full colour vision": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
# Pairs of methods whose colours alone do not do: wherever both are drawn, their lines differ.
BY_LINE_STYLE = {
    frozenset({"linear TD", "softmax in the linear layer"}),
    frozenset({"LSTD", "softmax, both signs flipped"}),
}


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE Lab of linear RGB with the primaries and the white (D65) of sRGB, shape (3,)."""
    to_xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    t = to_xyz @ np.clip(rgb, 0, 1) / to_xyz.sum(1)
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def seen(colour: object, vision: str) -> np.ndarray:
    c = np.array(to_rgb(colour))
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return lab(SEEN_WITH[vision] @ linear)


def distance(first: object, second: object) -> float:
    """The distance of two colours for the reader to whom they are closest."""
    return min(np.linalg.norm(seen(first, v) - seen(second, v)).item() for v in SEEN_WITH)


def alike(lines: list[Line2D]) -> list[tuple[str, str]]:
    """The pairs of curves that have close colours, and the same line and the same marks."""

    def look(line: Line2D) -> tuple[object, ...]:
        return line.get_linestyle(), line.get_marker(), line.get_markerfacecolor() == "none"

    return [
        (str(a.get_label()), str(b.get_label()))
        for a, b in combinations(lines, 2)
        if distance(a.get_color(), b.get_color()) < APART and look(a) == look(b)
    ]


def test_the_measure_knows_white_black_and_what_is_confused() -> None:
    assert lab(np.ones(3)) == pytest.approx([100, 0, 0], abs=1e-3)
    assert lab(np.zeros(3)) == pytest.approx([0, 0, 0], abs=1e-9)
    # Published values for the primary red of sRGB.
    assert lab(np.array([1.0, 0, 0])) == pytest.approx([53.24, 80.09, 67.20], abs=0.02)
    for matrix in SEEN_WITH.values():
        assert matrix.sum(1) == pytest.approx(np.ones(3), abs=1e-5)
    # A red and a green that differ for most readers and not for these.
    full = np.linalg.norm(
        seen("#b35900", "full colour vision") - seen("#738000", "full colour vision")
    )
    assert full > 40
    assert distance("#b35900", "#738000") < APART


def test_methods_are_told_apart_by_colour_or_line() -> None:
    close = {
        frozenset(pair)
        for pair in combinations(METHOD_COLOURS, 2)
        if distance(*(METHOD_COLOURS[name] for name in pair)) < APART
    }
    # Both ways: a pair that has become distinct has no place in the list.
    assert close == BY_LINE_STYLE


RNG = np.random.default_rng(0)
NETWORKS = (
    "linear TD",
    "softmax in the linear layer",
    "softmax, both signs flipped",
    "weighted softmax TD",
)


def errors() -> np.ndarray:
    return RNG.uniform(0.1, 1, (5, 8))


def drawn() -> dict[str, list[Line2D]]:
    """The curves of each figure, with as many of them as the book draws, or more."""
    x, y = np.arange(1, 9), RNG.uniform(0.1, 1, 8)
    methods = ("tabular TD", "linear TD")
    levels = {"LSTD": errors()[:, 0], "certainty equivalence": errors()[:, 0]}
    betas = (0.0, 1.0, 4.0, 16.0)
    made = {
        "error_curves": figures.error_curves(
            {beta: errors() for beta in betas},
            {name: errors() for name in methods},
            levels,
            "error",
        ),
        "norms_against_bound": figures.norms_against_bound(dict.fromkeys("abcd", (x, y))),
        "errors_by_depth": figures.errors_by_depth(
            {name: errors() for name in "abcd"}, {"e": y, "f": y}, "error"
        ),
        "floor_against_length": figures.floor_against_length(x, errors(), y, y),
        "thresholds": figures.thresholds(x, dict.fromkeys((2, 10, 100), y), errors()),
        "limit_distances": figures.limit_distances(x, y, y),
        "interpolation": figures.interpolation(x, dict.fromkeys(betas, y), x > 3, y),
        "layer_errors": figures.layer_errors({name: errors() for name in NETWORKS}, "error"),
        "operation_counts": figures.operation_counts(x, {"a": x, "b": x, "c": x}),
        "value_row_over_training": figures.value_row_over_training(
            x, RNG.normal(size=(8, 2, 3)), [0, 1]
        ),
        "attention_entries_over_training": figures.attention_entries_over_training(
            x, errors().T, errors().T
        ),
        "curves_over_training": figures.curves_over_training(
            {"one": (x, {name: errors().T for name in "abcd"})}, "share", {"one": 0.7}, "level"
        ),
        "method_errors": figures.method_errors(
            x,
            {
                name: errors()
                for name in (
                    "trained",
                    "weighted softmax TD",
                    "tabular TD",
                    "linear TD",
                    "LSTD",
                    "certainty equivalence",
                )
            },
            "n",
            "error",
            3,
        ),
        "deviations_by_layer": figures.deviations_by_layer(
            {name: errors() for name in "abcd"}, "d"
        ),
    }
    return {
        name: [
            line for line in figure.axes[0].get_lines() if not str(line.get_label()).startswith("_")
        ]
        for name, figure in made.items()
    }


DRAWN = drawn()


@pytest.mark.parametrize("name", DRAWN)
def test_the_curves_of_a_figure_are_told_apart(name: str) -> None:
    assert len(DRAWN[name]) > 1
    assert alike(DRAWN[name]) == []


def test_pairs_of_methods_told_apart_by_line_are_drawn_with_different_lines() -> None:
    for lines in DRAWN.values():
        styles = {str(line.get_label()): line.get_linestyle() for line in lines}
        for pair in BY_LINE_STYLE:
            both = [styles[name] for name in pair if name in styles]
            assert len(set(both)) == len(both), pair


def test_curves_that_look_alike_are_reported() -> None:
    close = [METHOD_COLOURS[name] for name in ("linear TD", "softmax in the linear layer")]
    lines = [Line2D([], [], color=colour, linestyle="-", label=colour) for colour in close]
    assert alike(lines) == [tuple(close)]
    lines[0].set_linestyle("--")
    assert alike(lines) == []
    lines[0].set(linestyle="-", marker="o")
    assert alike(lines) == []


@pytest.mark.parametrize("vision", SEEN_WITH)
def test_colours_of_increasing_numbers_get_lighter(vision: str) -> None:
    """Neighbours are told apart by the order of the legend, and that order is one of lightness."""
    for count in range(2, 7):
        lightness = [seen(colour, vision)[0] for colour in figures.sequential_colours(count)]
        assert (np.diff(lightness) > 8).all(), (count, lightness)
