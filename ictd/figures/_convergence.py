"""Figures of convergence: norms, errors by depth and by length, the limit law, thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ictd.figures._style import band, grid, plain, sequential_colours

_STYLES = ("-", "--", "-.", "-")
_MARKERS = ("o", "^", "s", "D")


def norms_against_bound(
    cases: Mapping[str, tuple[ArrayLike, ArrayLike]], shown: int = 400
) -> Figure:
    """Contraction norms against the bound on them, with the line where the two are equal.

    Args:
        cases: what was drawn → (bounds, norms), each of shape (m,); at most four.
        shown: most points drawn of each, the first ones.

    Raises:
        ValueError: there are more than four cases.
    """
    _at_most_four("cases", len(cases))
    figure, axes = grid(1, 1, width=5.2, height=3.8)
    axis: Axes = axes[0, 0]
    colours = sequential_colours(len(cases))
    low, high = 1.0, 1.0
    for (label, (bounds, norms)), colour, marker in zip(
        cases.items(), colours, _MARKERS, strict=False
    ):
        x, y = (np.asarray(numbers)[:shown] for numbers in (bounds, norms))
        axis.plot(
            x, y, marker, color=colour, markersize=3.5, alpha=0.6, markeredgewidth=0, label=label
        )
        figure.record(series=plain(label), bound=x, norm=y)
        low, high = np.min(y, initial=low), np.max(x, initial=high)
    axis.set_ylim(0.95 * low, axis.get_ylim()[1])
    axis.plot([low, high], [low, high], color="#000000", linewidth=1, label="norm = bound")
    axis.axhline(1.0, color="#555555", linestyle=":", linewidth=1.5, label="no contraction above")
    axis.set(xlabel="bound", ylabel=r"$\infty$-norm of a layer")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure


def errors_by_depth(
    curves: Mapping[str, ArrayLike],
    guides: Mapping[str, ArrayLike],
    ylabel: str,
    floor: float = 1e-13,
) -> Figure:
    """Errors against the layer: the median over the first axis, with the band of the middle half.

    Args:
        curves: label → errors, shape (chains, L+1); the labels stand for a growing number.
        guides: label → one curve to compare with, shape (L+1,).
        ylabel: what the error is.
        floor: the axis does not go below it.

    Raises:
        ValueError: there are more than four curves.
    """
    _at_most_four("curves", len(curves))
    figure, axes = grid(1, 1, width=5.2, height=4.2)
    axis: Axes = axes[0, 0]
    axis.set(xlabel="layer", ylabel=ylabel, yscale="log")
    colours = sequential_colours(len(curves))
    for (label, errors), colour, style in zip(curves.items(), colours, _STYLES, strict=False):
        band(figure, axis, errors, colour, label, style)
    bottom, top = axis.get_ylim()  # of the curves; a guide may leave it
    for (label, heights), colour in zip(guides.items(), cycle(("#D55E00", "#CC79A7"))):
        axis.plot(np.asarray(heights), ":", color=colour, linewidth=2, label=label)
        layers = np.arange(np.size(heights))
        figure.record(series=plain(label), iteration=layers, median=heights)
    axis.set_ylim(max(bottom, floor), top)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure


def floor_against_length(
    lengths: ArrayLike, errors: ArrayLike, predicted: ArrayLike, bound: ArrayLike
) -> Figure:
    """What depth leaves of the error, against the length of the context, on logarithmic axes.

    The median and the mean over the chains, with bands of the middle half and of the middle 90 %.

    Args:
        lengths: n, increasing, shape (m,).
        errors: of each chain at each length, shape (chains, m).
        predicted: median that the limit law gives, shape (m,).
        bound: median of the floor of Theorem 2, shape (m,); not drawn where it is not finite.
    """
    figure, axes = grid(1, 1, width=5.2, height=4.2)
    axis: Axes = axes[0, 0]
    n, errors = np.asarray(lengths), np.asarray(errors)
    lowest, low, middle, high, highest = np.percentile(errors, [5, 25, 50, 75, 95], axis=0)
    colour = "#0072B2"
    axis.fill_between(n, lowest, highest, color=colour, alpha=0.12, linewidth=0)
    axis.fill_between(n, low, high, color=colour, alpha=0.2, linewidth=0)
    axis.plot(n, middle, "o-", color=colour, markersize=4, label="median, bands of 50 and 90 %")
    mean = errors.mean(0)
    axis.plot(n, mean, "s--", color="#000000", markersize=4, label="mean")
    axis.plot(
        n, np.asarray(predicted), ":", color="#D55E00", linewidth=2, label="limit law, median"
    )
    if np.isfinite(np.asarray(bound)).all():
        axis.plot(n, np.asarray(bound), "-.", color="#CC79A7", label="floor of Theorem 2, median")
    figure.record(
        length=n, percentile_5=lowest, quartile_1=low, median=middle, quartile_3=high,
        percentile_95=highest, mean=mean, limit_law_median=predicted, theorem_2_floor_median=bound,
    )  # fmt: skip
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="transitions $n$ in the context",
        ylabel="error at infinite depth",
    )
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure


def covariance_panels(panels: Mapping[str, ArrayLike]) -> Figure:
    """Covariance matrices side by side on one scale, zero in white.

    Args:
        panels: title → matrix, shape (S, S).
    """
    figure, axes = grid(1, len(panels), width=5.2, height=2.8)
    largest = max(float(np.abs(np.asarray(matrix)).max()) for matrix in panels.values())
    image = None
    for axis, (title, matrix) in zip(axes[0], panels.items(), strict=True):
        scale = largest or 1.0
        image = axis.imshow(np.asarray(matrix), cmap="PuOr_r", vmin=-scale, vmax=scale)
        axis.set(title=title, xlabel="state")
        axis.locator_params(integer=True)
        row, column = np.indices(np.shape(matrix))
        figure.record(panel=plain(title), row=row, column=column, covariance=matrix)
    axes[0, 0].set_ylabel("state")
    if image is not None:
        figure.colorbar(image, ax=axes, label="covariance", shrink=0.8)
    return figure


def thresholds(gammas: ArrayLike, uniform: Mapping[int, ArrayLike], drawn: ArrayLike) -> Figure:
    """The sharpness that one-hot features need for Assumption 5.1, against the discount factor.

    Args:
        gammas: γ, increasing, shape (m,).
        uniform: number of states → threshold under the uniform law, shape (m,); at most four.
        drawn: thresholds of random chains, shape (chains, m): median, band of the middle 90 %.

    Raises:
        ValueError: there are more than four numbers of states.
    """
    _at_most_four("uniform", len(uniform))
    figure, axes = grid(1, 1, width=5.2, height=4.0)
    axis: Axes = axes[0, 0]
    gammas = np.asarray(gammas)
    low, middle, high = np.percentile(np.asarray(drawn), [5, 50, 95], axis=0)
    axis.fill_between(gammas, low, high, color="#0072B2", alpha=0.15, linewidth=0)
    label = "Boyan chains: median, middle 90 %"
    axis.plot(gammas, middle, color="#0072B2", linewidth=2.5, label=label)
    figure.record(
        series="Boyan chains", gamma=gammas, percentile_5=low, beta=middle, percentile_95=high
    )
    colours = sequential_colours(len(uniform))
    for (states, values), colour, style in zip(uniform.items(), colours, _STYLES, strict=False):
        label = rf"uniform law, $|\mathcal{{S}}|$ = {states}"
        axis.plot(gammas, np.asarray(values), linestyle=style, color=colour, label=label)
        figure.record(series=f"uniform, {states} states", gamma=gammas, beta=values)
    axis.set(xlabel=r"discount factor $\gamma$", ylabel=r"least $\beta$")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure


def _at_most_four(name: str, count: int) -> None:
    """Line styles and markers tell four apart."""
    if count > len(_STYLES):
        raise ValueError(f"{name} must be at most {len(_STYLES)} series, got {count}")
