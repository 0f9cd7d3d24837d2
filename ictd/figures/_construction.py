"""Figures of the constructed transformer: its memory rows, and deviations layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ictd.figures._style import grid, plain, sequential_colours

_SERIES = ("#000000", "#0072B2", "#009E73", "#E69F00")
_MARKERS = ("o", "s", "^", "D")


def memory_rows(memories: ArrayLike, rows: Sequence[str], columns: Sequence[str]) -> Figure:
    """The memory rows of a prompt after each layer, a panel a layer, numbers in the cells.

    Args:
        memories: values, shape (layers, rows, columns); the first panel is layer 0.
        rows: name of each row.
        columns: name of each column.
    """
    table = np.asarray(memories)
    figure, axes = grid(len(table), 1, width=5.2, height=1.15 * len(table) + 0.3)
    low, high = min(0.0, table.min()), max(table.max(), 1e-12)
    for layer, (axis, panel) in enumerate(zip(axes[:, 0], table, strict=True)):
        axis.imshow(panel, vmin=low, vmax=high, cmap="cividis", aspect="auto")
        for (row, column), value in np.ndenumerate(panel):
            bright = (value - low) / (high - low) > 0.5
            axis.text(
                column,
                row,
                f"{value:.3g}",
                color="black" if bright else "white",
                ha="center",
                va="center",
            )
        names = np.meshgrid(rows, [plain(name) for name in columns], indexing="ij")
        figure.record(layer=layer, row=names[0], column=names[1], value=panel)
        axis.set_yticks(range(len(rows)), rows)
        axis.set_xticks(range(len(columns)), columns if layer == len(table) - 1 else [])
        axis.set_title(f"after layer {layer}" if layer else "the prompt", fontsize="medium")
        axis.tick_params(length=0)
    return figure


def deviations_by_layer(
    deviations: Mapping[str, ArrayLike], ylabel: str, floor: float = 1e-17
) -> Figure:
    """Deviations against the layer: the largest over the trials, and a band down to their median.

    Args:
        deviations: name → deviations, at most four, shape (trials, layers+1); NaN where there is no such
            layer in a trial.
        ylabel: what the deviation is.
        floor: deviations below it are drawn at it.
    """
    figure, axes = grid(1, 1, width=4.2, height=4.2)
    axis: Axes = axes[0, 0]
    if len(deviations) > len(_SERIES):
        raise ValueError(f"deviations must be at most {len(_SERIES)} series, got {len(deviations)}")
    for (name, values), colour, marker in zip(deviations.items(), _SERIES, _MARKERS, strict=False):
        table = np.asarray(values)
        layers = np.arange(table.shape[1])
        largest, middle = np.full((2, len(layers)), np.nan)
        seen = ~np.isnan(table).all(0)
        largest[seen] = np.nanmax(table[:, seen], axis=0)
        middle[seen] = np.nanmedian(table[:, seen], axis=0)
        figure.record(series=name, layer=layers, median=middle, largest=largest)
        look = {"markersize": 4} if marker != "o" else {"markersize": 8, "markerfacecolor": "none"}
        top, bottom = np.maximum(largest, floor), np.maximum(middle, floor)
        axis.plot(layers, top, color=colour, marker=marker, label=name, **look)
        axis.fill_between(layers, bottom, top, color=colour, alpha=0.15, linewidth=0)
    axis.set(xlabel="layer", ylabel=ylabel, yscale="log")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    figure.legend(loc="outside lower center", ncols=1, frameon=False, fontsize="small")
    return figure


def forward_passes(network: ArrayLike, algorithm: ArrayLike, truth: ArrayLike) -> Figure:
    """Values of a few queries, layer by layer: a network's as marks, the algorithm's as lines.

    Args:
        network: the value that each layer of a network holds, shape (queries, layers+1).
        algorithm: the iterates of an algorithm, shape (queries, layers+1).
        truth: true values, shape (queries,).
    """
    figure, axes = grid(1, 1, width=5.2, height=3.8)
    axis: Axes = axes[0, 0]
    marks, lines, levels = (np.asarray(values) for values in (network, algorithm, truth))
    layers = np.arange(marks.shape[1])
    for query, colour in enumerate(sequential_colours(len(marks))):
        first = query == 0
        axis.plot(
            layers, lines[query], color=colour, label="weighted softmax TD" if first else None
        )
        axis.plot(
            layers,
            marks[query],
            color=colour,
            marker="o",
            markersize=4,
            markerfacecolor="none",
            linestyle="none",
            label="layers of the transformer" if first else None,
        )
        axis.axhline(
            levels[query],
            color=colour,
            linestyle=":",
            linewidth=1.2,
            label="true value" if first else None,
        )
        figure.record(
            query=query,
            layer=layers,
            transformer=marks[query],
            weighted_softmax_td=lines[query],
            true_value=levels[query],
        )
    axis.set(xlabel="layer, iteration", ylabel="value of the query")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    return figure
