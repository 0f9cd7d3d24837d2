"""Each figure draws what it is given, once, and carries its data."""

from __future__ import annotations

import csv
import io
import struct
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import pytest

from ictd import figures

RNG = np.random.default_rng(0)
CHAINS = RNG.uniform(0.1, 1, size=(7, 4))  # errors by chain and iteration
KERNEL = RNG.dirichlet(np.ones(3), size=3)
SIGNED = RNG.normal(size=(4, 5))
SEEDS = RNG.normal(size=(7, 2, 3)).astype(np.float32)  # rows by evaluation and seed
ANGLES = np.linspace(0, 3, 6)
COMPLEX = np.exp(1j * ANGLES)
# A context without a certificate is infinitely far, as are most at the first length.
UNCERTIFIED = np.where([[True], [False], [False], [False]], np.inf, CHAINS.T)
WITH_GAPS = np.where(np.arange(4) < np.array([[2], [4], [3], [4], [4]]), CHAINS[:5], np.nan)

FIGURES: dict[str, Callable[[], figures.BookFigure]] = {
    "kernel_panels": lambda: figures.kernel_panels(
        {r"$\beta$ = 1": KERNEL, "b": KERNEL, "c": KERNEL}
    ),
    "error_curves": lambda: figures.error_curves(
        {0.0: CHAINS, 2.0: CHAINS}, {"tabular TD": CHAINS}, {"LSTD": CHAINS[:, 0]}, "error"
    ),
    "limit_distances": lambda: figures.limit_distances(
        [0.1, 1.0, 10.0], [1.0, 2.0, 3.0], [3.0, 0.2, 0.0]
    ),
    "interpolation": lambda: figures.interpolation(
        ANGLES, {1.0: np.sin(ANGLES)}, ANGLES > 1, np.zeros(6)
    ),
    "weight_panels": lambda: figures.weight_panels(SIGNED, np.abs(SIGNED)),
    "entropy_against_scale": lambda: figures.entropy_against_scale(
        [0.0, 1.0, 2.0, 4.0], CHAINS[:4]
    ),
    "layer_errors": lambda: figures.layer_errors(
        {"linear TD": CHAINS, "weighted softmax TD": 0 * CHAINS}, "error"
    ),
    "operation_counts": lambda: figures.operation_counts(
        [8, 16], {"linear": [8, 16], "linear, scores first": [64, 256], "softmax": [65, 257]}
    ),
    "memory_rows": lambda: figures.memory_rows(
        SIGNED.reshape(2, 2, 5), ["target", "current"], [f"$S_{k}$" for k in range(5)]
    ),
    "deviations_by_layer": lambda: figures.deviations_by_layer(
        {"one": WITH_GAPS, "two": 0 * CHAINS}, "deviation"
    ),
    "norms_against_bound": lambda: figures.norms_against_bound(
        {"one": (CHAINS[0] + 1, CHAINS[1]), "two": (CHAINS[2] + 1, CHAINS[3])}, shown=3
    ),
    "errors_by_depth": lambda: figures.errors_by_depth(
        {"$n$ = 10": CHAINS, "$n$ = 20": CHAINS / 2}, {r"$\gamma^l$": 0.5 ** np.arange(4)}, "error"
    ),
    "floor_against_length": lambda: figures.floor_against_length(
        [10, 100, 1000, 10000], CHAINS, [4.0, 3.0, 2.0, 1.0], [np.inf, 8.0, 7.0, 6.0]
    ),
    "covariance_panels": lambda: figures.covariance_panels(
        {"limit law": SIGNED[:, :4], r"$\sigma$": -SIGNED[:, :4]}
    ),
    "thresholds": lambda: figures.thresholds(
        [0.0, 0.5, 0.9, 0.99], {2: [1.0, 2.0, 3.0, 4.0], 10: [2.0, 3.0, 4.0, 5.0]}, CHAINS
    ),
    "neu_curves": lambda: figures.neu_curves(
        [1, 3, 10], {"$n$ = 5": ([1.0, 0.1, -0.01], [0.1, 0.01, 0.02])}, "layers", logarithmic=True
    ),
    "neu_training": lambda: figures.neu_training(
        [0, 5, 9, 12, 20, 21, 30], CHAINS, 0.6 * CHAINS[:, ::-1], CHAINS
    ),
    "value_row_over_training": lambda: figures.value_row_over_training(
        [0, 5, 9, 12, 20, 30, 40], SEEDS, seeds=[7, 4294967295]
    ),
    "attention_matrices": lambda: figures.attention_matrices(
        {"before": SIGNED[:, :4], r"$\beta$, after": 2 * SIGNED[:, :4]}
    ),
    "attention_entries_over_training": lambda: figures.attention_entries_over_training(
        [0, 5, 9, 12, 20, 30, 40], CHAINS, -CHAINS
    ),
    "curves_over_training": lambda: figures.curves_over_training(
        {
            "one": ([0, 5, 9, 12, 20, 30, 40], {"a": CHAINS, "b": 0 * CHAINS}),
            "two": ([0, 1, 2, 3, 4, 5, 6], {"a": CHAINS / 2, "b": CHAINS}),
        },
        "share",
        {"one": 0.75, "two": 0.95},
        "threshold $(1 + γ)/2$",
    ),
    "method_errors": lambda: figures.method_errors(
        [10, 30, 100, 300], {"trained": CHAINS, "LSTD": CHAINS + 1}, "n", "error", 100, log_x=True
    ),
    "forward_passes": lambda: figures.forward_passes(SIGNED, SIGNED + 1, SIGNED[:, 0]),
    "eigenvalue_discs": lambda: figures.eigenvalue_discs(COMPLEX, 0.5 * COMPLEX),
    "condition_thresholds": lambda: figures.condition_thresholds(
        [1.0, 2.0, 4.0], {r"$\beta$ one": {"a": CHAINS[:3]}, "two": {"a": CHAINS[3:6]}}, [0.5]
    ),
    "certified_shares": lambda: figures.certified_shares(
        [10, 100, 1000, 5000], {"certified": CHAINS[0], "other": CHAINS[1]}, UNCERTIFIED
    ),
    "rates_against_step": lambda: figures.rates_against_step(
        [0.1, 0.5, 1.0, 2.0], {"x": CHAINS[0]}, {"x": 2 * CHAINS[0]}, {"x": 1.25}
    ),
    "growing_errors": lambda: figures.growing_errors(
        {"up": {"the chain": 1.01 ** np.arange(1000), "other": np.ones(7)}}, "error"
    ),
}

each_figure = pytest.mark.parametrize("name", FIGURES)


def rows(figure: figures.BookFigure) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(figure.csv())))


def column(figure: figures.BookFigure, name: str, **where: str) -> list[float]:
    """A column of the data, of the rows that have the given text in other columns."""
    chosen = [row for row in rows(figure) if all(row[k] == v for k, v in where.items())]
    return [float(row[name]) for row in chosen]


def test_every_figure_is_tried_here() -> None:
    functions = {
        name
        for name in figures.__all__
        if callable(getattr(figures, name)) and name not in ("BookFigure", "sequential_colours")
    }
    assert functions == set(FIGURES)


@each_figure
def test_a_figure_is_one_opaque_picture_of_the_page_s_width(name: str) -> None:
    data, metadata = FIGURES[name]()._repr_mimebundle_()
    assert set(data) == {"image/png", "image/svg+xml", "text/csv"}
    width, height = struct.unpack(">II", data["image/png"][16:24])
    shown = metadata["image/png"]
    assert abs(width - 2 * shown["width"]) <= 2
    assert abs(height - 2 * shown["height"]) <= 2
    assert shown["width"] <= 5.2 * 120
    root = ET.fromstring(data["image/svg+xml"])
    assert root.tag.endswith("svg")
    # The face is a white rectangle, not the page's own colour.
    assert "fill: #ffffff" in data["image/svg+xml"]


@each_figure
def test_the_same_figure_is_the_same_file(name: str) -> None:
    first, again = (FIGURES[name]()._repr_mimebundle_() for _ in range(2))
    assert first == again


@each_figure
def test_a_figure_carries_data_without_marks_of_mathematics(name: str) -> None:
    table = rows(FIGURES[name]())
    assert table
    text = " ".join([*table[0], *(value for row in table for value in row.values())])
    assert "$" not in text
    assert "\\" not in text


def test_records_of_other_columns_leave_gaps() -> None:
    figure = FIGURES["error_curves"]()
    (level,) = [row for row in rows(figure) if row["series"] == "LSTD"]
    assert float(level["median"]) == np.median(CHAINS[:, 0])
    assert level["iteration"] == ""
    assert column(figure, "median", series="tabular TD") == list(np.median(CHAINS, axis=0))
    assert column(figure, "quartile_3", series="weighted softmax TD, beta = 2") == list(
        np.quantile(CHAINS, 0.75, axis=0)
    )


def test_data_are_the_numbers_given() -> None:
    assert column(FIGURES["kernel_panels"](), "weight", panel="beta = 1") == list(KERNEL.ravel())
    weights = FIGURES["weight_panels"]()
    assert column(weights, "weight", panel="score divided by n") == list(SIGNED.ravel())
    assert column(weights, "query", panel="score divided by n") == [0, 1, 2, 3, 4] * 4
    assert column(FIGURES["memory_rows"](), "value", layer="1", row="current") == list(SIGNED[3])
    passes = FIGURES["forward_passes"]()
    assert column(passes, "transformer", query="2") == list(SIGNED[2])
    assert column(passes, "true_value", query="2") == [SIGNED[2, 0]] * 5
    # What is drawn at a floor keeps its own value in the data.
    assert column(FIGURES["limit_distances"](), "distance", series="to tabular TD")[-1] == 0
    deviations = FIGURES["deviations_by_layer"]()
    assert column(deviations, "largest", series="one") == list(np.nanmax(WITH_GAPS, axis=0))
    assert column(deviations, "largest", series="two") == [0.0] * 4
    assert column(FIGURES["operation_counts"](), "operations", series="softmax") == [65, 257]
    discs = FIGURES["eigenvalue_discs"]()
    assert column(discs, "factor_imag") == list(COMPLEX.imag)
    assert column(discs, "shift_real") == list(0.5 * COMPLEX.real)
    thresholds = FIGURES["condition_thresholds"]()
    assert column(thresholds, "quartile_3", panel="two", condition="a") == list(
        np.quantile(CHAINS[3:6], 0.75, axis=1)
    )
    assert column(thresholds, "beta", panel="beta one") == [1, 2, 4]
    certified = FIGURES["certified_shares"]()
    assert column(certified, "share", series="other") == list(CHAINS[1])
    # Quartiles are distances that occurred: nothing is interpolated towards infinity.
    middle = column(certified, "median", series="relative distance")
    assert middle == [np.inf, *np.sort(CHAINS, axis=0)[3, 1:]]
    steps = FIGURES["rates_against_step"]()
    (mark,) = [row["largest_step"] for row in rows(steps) if row["largest_step"]]
    assert float(mark) == 1.25
    drawn = [row for row in rows(steps) if row["step"]]
    assert [float(row["theorem_a"]) for row in drawn] == list(2 * CHAINS[0])
    growing = FIGURES["growing_errors"]()
    layers = column(growing, "layer", series="the chain")
    assert len(layers) == 300
    assert layers[-1] == 999
    assert column(growing, "error", series="the chain") == pytest.approx(
        [1.01**layer for layer in layers]
    )
    assert column(growing, "layer", series="other") == list(range(7))
    assert column(FIGURES["interpolation"](), "value", series="beta = 1") == list(np.sin(ANGLES))


def test_distances_of_zero_are_drawn_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = figures.certified_shares([10, 100], {"certified": np.ones(2)}, np.zeros((2, 5)))
        figure.canvas.draw()
    assert column(figure, "median", series="relative distance") == [0, 0]


def test_data_of_convergence_are_the_numbers_given() -> None:
    norms = FIGURES["norms_against_bound"]()
    assert column(norms, "bound", series="two") == list(CHAINS[2, :3] + 1)
    assert column(norms, "norm", series="two") == list(CHAINS[3, :3])
    depth = FIGURES["errors_by_depth"]()
    assert column(depth, "median", series="n = 20") == list(np.median(CHAINS / 2, axis=0))
    assert column(depth, "median", series="gamma^l") == [1, 0.5, 0.25, 0.125]
    floor = FIGURES["floor_against_length"]()
    assert column(floor, "percentile_95") == list(np.percentile(CHAINS, 95, axis=0))
    assert column(floor, "mean") == list(CHAINS.mean(0))
    assert column(floor, "limit_law_median") == [4, 3, 2, 1]
    assert column(floor, "theorem_2_floor_median") == [np.inf, 8, 7, 6]
    panels = FIGURES["covariance_panels"]()
    assert column(panels, "covariance", panel="sigma") == list(-SIGNED[:, :4].ravel())
    needed = FIGURES["thresholds"]()
    assert column(needed, "beta", series="Boyan chains") == list(np.median(CHAINS, axis=0))
    assert column(needed, "beta", series="uniform, 10 states") == [2, 3, 4, 5]


@pytest.mark.parametrize("bound", [[4.0, 3.0, 2.0, 1.0], [np.inf, 3.0, 2.0, 1.0]])
def test_a_floor_that_is_not_finite_is_not_drawn(bound: list[float]) -> None:
    figure = figures.floor_against_length([1, 2, 3, 4], CHAINS, [4, 3, 2, 1], bound)
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert ("floor of Theorem 2, median" in labels) == bool(np.isfinite(bound).all())


def test_guides_do_not_set_the_height_of_the_axis() -> None:
    without = figures.errors_by_depth({"a": CHAINS}, {}, "error")
    guided = figures.errors_by_depth({"a": CHAINS}, {"g": 1e-9 ** np.arange(4)}, "error")
    assert guided.axes[0].get_ylim() == without.axes[0].get_ylim()
    deep = figures.errors_by_depth({"a": 1e-30**CHAINS}, {}, "error", floor=1e-10)
    assert deep.axes[0].get_ylim()[0] == 1e-10


def test_no_series_is_left_out() -> None:
    many = dict.fromkeys(range(5), CHAINS)
    with pytest.raises(ValueError, match=r"^curves must be at most 4 series, got 5$"):
        figures.errors_by_depth(many, {}, "error")
    with pytest.raises(ValueError, match=r"^cases must be at most 4 series, got 5$"):
        figures.norms_against_bound(dict.fromkeys("abcde", (CHAINS[0], CHAINS[0])))
    with pytest.raises(ValueError, match=r"^uniform must be at most 4 series, got 5$"):
        figures.thresholds(range(4), many, CHAINS)
    with pytest.raises(ValueError, match=r"^deviations must be at most 4 series, got 5$"):
        figures.deviations_by_layer(dict.fromkeys("abcde", CHAINS), "deviation")


def test_layers_that_no_trial_has_are_gaps_and_nothing_is_warned_of() -> None:
    table = np.where(np.arange(4) < 2, CHAINS, np.nan)
    figure = figures.deviations_by_layer({"one": table}, "deviation")
    expected = [*CHAINS[:, :2].max(0), np.nan, np.nan]
    np.testing.assert_array_equal(column(figure, "largest", series="one"), expected)
    figure.savefig(io.BytesIO())


def test_columns_of_a_record_have_one_shape() -> None:
    figure = FIGURES["kernel_panels"]()
    with pytest.raises(ValueError, match="shape mismatch"):
        figure.record(x=[1, 2], y=[1, 2, 3])


def test_rows_over_training_are_recorded_by_seed_and_come_back_exactly() -> None:
    figure = FIGURES["value_row_over_training"]()
    assert column(figure, "step", seed="7") == [0, 5, 9, 12, 20, 30, 40]
    for place, name in enumerate("abc"):
        found = np.array(column(figure, name, seed="4294967295"), dtype=np.float32)
        assert (found == SEEDS[:, 1, place]).all()


def test_curves_over_training_are_the_median_and_the_extremes_of_the_seeds() -> None:
    figure = FIGURES["curves_over_training"]()
    for setting, scale in (("one", 1.0), ("two", 0.5)):
        where = {"setting": setting, "series": "a"}
        for name, reduce in (("least", np.min), ("median", np.median), ("largest", np.max)):
            expected = np.round(reduce(scale * CHAINS, axis=1), 6)
            assert column(figure, name, **where) == list(expected)
    assert column(figure, "median", series="threshold (1 + γ)/2") == [0.75, 0.95]
    without = figures.curves_over_training({"one": ([0, 1], {"a": CHAINS[:2]})}, "share")
    assert all(row["series"] == "a" for row in rows(without))


def test_matrices_share_a_scale_with_zero_in_its_middle() -> None:
    figure = FIGURES["attention_matrices"]()
    limits = {axis.images[0].get_clim() for axis in figure.axes if axis.images}
    largest = 2 * np.abs(SIGNED[:, :4]).max()
    assert limits == {(-largest, largest)}
    assert column(figure, "entry", panel="before") == list(np.round(SIGNED[:, :4], 6).ravel())


def test_errors_of_methods_are_quartiles_over_the_cases() -> None:
    figure = FIGURES["method_errors"]()
    assert column(figure, "number", series="LSTD") == [10, 30, 100, 300]
    assert column(figure, "median", series="trained") == list(np.median(CHAINS, axis=0))
    assert column(figure, "quartile_1", series="LSTD") == list(
        np.quantile(CHAINS + 1, 0.25, axis=0)
    )
    (axis,) = figure.axes
    assert axis.get_xscale() == "log"
    marks = [line for line in axis.get_lines() if line.get_label() == "trained at"]
    assert [line.get_xdata()[0] for line in marks] == [100]
