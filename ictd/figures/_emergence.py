"""Figures of emergence: the pretraining loss over settings and parameters, and along a training run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ictd.figures._style import BookFigure, grid, plain, sequential_colours

_MARKERS = ("o", "s", "^", "D", "v", "P")
# Standard errors on either side of an interval of 95 %.
_WIDTH = 1.96


def neu_curves(
    x: ArrayLike,
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    xlabel: str,
    logarithmic: bool = False,
) -> Figure:
    """Estimates of J on a logarithmic axis, with intervals; where one reaches zero, its upper end alone.

    Args:
        x: where the estimates are, increasing, shape (k,).
        curves: name → estimates of J and their standard errors, each of shape (k,).
        xlabel: what x is.
        logarithmic: whether the axis of x is logarithmic.
    """
    figure, axes = grid(1, 1, width=5.2, height=3.9)
    axis: Axes = axes[0, 0]
    for number, (name, (values, errors)) in enumerate(curves.items()):
        colour = sequential_colours(len(curves))[number]
        _estimates(
            figure, axis, x, values, errors, colour, _MARKERS[number % len(_MARKERS)], name, xlabel
        )
    axis.set(xlabel=xlabel, ylabel=r"$J_{L,n}$", yscale="log")
    if logarithmic:
        axis.set_xscale("log")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure


def neu_training(steps: ArrayLike, J: ArrayLike, errors: ArrayLike, loss: ArrayLike) -> Figure:
    """J along training runs, one curve for each seed, above the training loss.

    Args:
        steps: steps done, shape (k,).
        J: estimates, shape (k, seeds).
        errors: their standard errors, of the same shape.
        loss: mean training loss, of the same shape.
    """
    figure, axes = grid(2, 1, width=5.2, height=5.0)
    upper, lower = axes[:, 0]
    values, error, training = (np.asarray(array) for array in (J, errors, loss))
    for number, colour in enumerate(sequential_colours(values.shape[1])):
        _estimates(
            figure,
            upper,
            steps,
            values[:, number],
            error[:, number],
            colour,
            _MARKERS[number % len(_MARKERS)],
            f"network {number}",
            "step",
        )
        lower.plot(np.asarray(steps), training[:, number], color=colour)
        figure.record(series=f"network {number}", step=steps, loss=training[:, number])
    upper.set(ylabel=r"$J_{L,n}$", yscale="log")
    lower.set(xlabel="step", ylabel="training loss", ylim=(0, None))
    return figure


def _estimates(
    figure: BookFigure,
    axis: Axes,
    x: ArrayLike,
    values: ArrayLike,
    errors: ArrayLike,
    colour: object,
    marker: str,
    name: str,
    xlabel: str,
) -> None:
    place, value, half = np.asarray(x), np.asarray(values), _WIDTH * np.asarray(errors)
    columns: dict[str, ArrayLike] = {
        "series": plain(name),
        plain(xlabel): place,
        "J": value,
        "low": value - half,
        "high": value + half,
    }
    figure.record(**columns)
    with np.errstate(invalid="ignore"):
        clear = value - half > 0
    axis.plot(
        place, np.where(clear, value, np.nan), color=colour, marker=marker, markersize=4, label=name
    )
    axis.vlines(
        place[clear], (value - half)[clear], (value + half)[clear], color=colour, linewidth=1
    )
    # An arrow down from the upper end: J is below it, as far as one can tell.
    end = (value + half)[~clear]
    axis.errorbar(
        place[~clear], end, yerr=0.4 * end, uplims=True, color=colour, linestyle="none", marker="_"
    )
