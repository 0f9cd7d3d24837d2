"""Figures of pretraining: the value row, the attention matrix, diagonality, conditions, errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ictd.figures._style import METHOD_COLOURS, BookFigure, grid, plain

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
_STYLES = ("-", "--", "-.", ":")
# Curves over few points, told apart by their marks too.
_METHOD_LINES = {
    "trained": ("-", "o"),
    "weighted softmax TD": ("--", "s"),
    "tabular TD": ("-.", "^"),
    "linear TD": (":", "v"),
    "LSTD": ("-", "x"),
    "certainty equivalence": (":", None),
}


def value_row_over_training(steps: ArrayLike, rows: ArrayLike, seeds: Sequence[int]) -> Figure:
    """The row (a, b, c) of V over training: the median over the seeds, with the band of all seeds.

    Args:
        steps: steps of the evaluations, shape (evaluations,).
        rows: a, b and c, shape (evaluations, seeds, 3).
        seeds: the seed of each network, for the data.
    """
    figure, axes = grid(1, 1, width=5.2, height=3.6)
    axis: Axes = axes[0, 0]
    x, table = np.asarray(steps), np.asarray(rows)
    names = ("$a$, on the reward", "$b$, on the target", "$c$, on the current value")
    for place, name in enumerate(names):
        _spread(axis, x, table[..., place], _COLOURS[place], name, _STYLES[place])
    axis.axhline(0, color="#555555", linewidth=0.8)
    # Single precision is what training has; nine digits give it back exactly.
    a, b, c = (np.vectorize(lambda v: float(f"{v:.9g}"))(table[..., k]) for k in range(3))
    figure.record(step=x[:, None], seed=np.asarray(seeds), a=a, b=b, c=c)
    axis.set(xlabel="training step", ylabel="entry of the row")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure


def attention_matrices(matrices: Mapping[str, ArrayLike]) -> Figure:
    """Matrices side by side, one panel each, on a common scale with zero in its middle.

    Args:
        matrices: title → matrix of either sign, shape (d, d).
    """
    figure, axes = grid(1, len(matrices), width=5.2, height=2.9)
    largest = max(float(np.abs(np.asarray(matrix)).max()) for matrix in matrices.values())
    image: Any = None
    for axis, (title, matrix) in zip(axes[0], matrices.items(), strict=True):
        image = axis.imshow(np.asarray(matrix), vmin=-largest, vmax=largest, cmap="PuOr")
        axis.set_title(title, fontsize="medium")
        axis.set(xticks=[], yticks=[])
        row, column = np.indices(np.shape(matrix))
        figure.record(
            panel=plain(title), row=row, column=column, entry=np.round(np.asarray(matrix), 6)
        )
    figure.colorbar(image, ax=axes, label="entry", location="bottom", shrink=0.6)
    return figure


def attention_entries_over_training(
    steps: ArrayLike, diagonal: ArrayLike, off_diagonal: ArrayLike
) -> Figure:
    """Entries of A on and off its diagonal over training, with the band of all seeds.

    Args:
        steps: steps of the evaluations, shape (evaluations,).
        diagonal: mean of the diagonal entries, shape (evaluations, seeds).
        off_diagonal: root mean square of the others, shape (evaluations, seeds).
    """
    figure, axes = grid(1, 1, width=5.2, height=3.2)
    axis: Axes = axes[0, 0]
    x = np.asarray(steps)
    curves = (
        ("mean of the diagonal", diagonal),
        ("root mean square off the diagonal", off_diagonal),
    )
    for place, (name, values) in enumerate(curves):
        _spread(axis, x, values, _COLOURS[place], name, _STYLES[place])
        _record_spread(figure, name, x, values)
    axis.axhline(0, color="#555555", linewidth=0.8)
    axis.set(xlabel="training step", ylabel="entry of $A$")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    figure.legend(loc="outside lower center", ncols=1, frameon=False, fontsize="small")
    return figure


def curves_over_training(
    panels: Mapping[str, tuple[ArrayLike, Mapping[str, ArrayLike]]],
    ylabel: str,
    levels: Mapping[str, float] | None = None,
    level_name: str = "",
) -> Figure:
    """A panel a setting: up to four curves from 0 to 1 over training, with the band of all seeds.

    Args:
        panels: title → steps, shape (evaluations,), and name → values, shape (evaluations, seeds).
        ylabel: what the values are.
        levels: title → a level to compare with, or None for none.
        level_name: what the level is.
    """
    figure, axes = grid(len(panels), 1, width=5.2, height=2.1 * len(panels) + 0.9)
    for axis, (title, (steps, curves)) in zip(axes[:, 0], panels.items(), strict=True):
        first, x = axis is axes[0, 0], np.asarray(steps)
        for (name, values), colour, style in zip(curves.items(), _COLOURS, _STYLES, strict=False):
            _spread(axis, x, values, colour, name if first else None, style)
            _record_spread(figure, name, x, values, setting=plain(title))
        if levels is not None:
            label = level_name if first else None
            axis.axhline(
                levels[title], color="#000000", linewidth=1, linestyle=(0, (5, 1)), label=label
            )
            figure.record(setting=plain(title), series=plain(level_name), median=levels[title])
        axis.set(ylabel=ylabel, ylim=(-0.03, 1.03))
        axis.set_title(title, fontsize="medium")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axes[-1, 0].set_xlabel("training step")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure


def method_errors(
    x: ArrayLike,
    methods: Mapping[str, ArrayLike],
    xlabel: str,
    ylabel: str,
    mark: float,
    log_x: bool = False,
) -> Figure:
    """Errors of methods against a number: the median over the cases, with the band of the middle half.

    Args:
        x: depths or lengths, increasing, shape (k,).
        methods: name in ``METHOD_COLOURS`` → errors, shape (cases, k).
        xlabel: what the number is.
        ylabel: what the error is.
        mark: the number that the networks were trained at, drawn as a vertical line.
        log_x: whether the numbers are on a logarithmic axis.
    """
    figure, axes = grid(1, 1, width=5.2, height=4.0)
    axis: Axes = axes[0, 0]
    numbers = np.asarray(x)
    every = max(len(numbers) // 8, 1)
    for name, errors in methods.items():
        low, middle, high = np.percentile(np.asarray(errors), [25, 50, 75], axis=0)
        style, marker = _METHOD_LINES[name]
        axis.plot(
            numbers,
            middle,
            color=METHOD_COLOURS[name],
            linestyle=style,
            marker=marker,
            markersize=5,
            markevery=every,
            label=name,
        )
        axis.fill_between(numbers, low, high, color=METHOD_COLOURS[name], alpha=0.12, linewidth=0)
        figure.record(series=name, number=numbers, quartile_1=low, median=middle, quartile_3=high)
    axis.axvline(mark, color="#555555", linewidth=1, linestyle=(0, (1, 3)), label="trained at")
    axis.set(xlabel=xlabel, ylabel=ylabel, yscale="log")
    if log_x:
        axis.set_xscale("log")
    else:
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure


def _spread(
    axis: Axes, x: ArrayLike, values: ArrayLike, colour: str, label: str | None, style: str
) -> None:
    """The median over the seeds, and a band from the least to the largest."""
    table = np.asarray(values)
    axis.plot(np.asarray(x), np.median(table, 1), style, color=colour, label=label)
    axis.fill_between(
        np.asarray(x), table.min(1), table.max(1), color=colour, alpha=0.2, linewidth=0
    )


def _record_spread(
    figure: BookFigure, name: str, steps: ArrayLike, values: ArrayLike, **columns: Any
) -> None:
    table = np.asarray(values)
    figure.record(
        **columns,
        series=plain(name),
        step=steps,
        least=np.round(table.min(1), 6),
        median=np.round(np.median(table, 1), 6),
        largest=np.round(table.max(1), 6),
    )
