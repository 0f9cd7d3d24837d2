"""Figures of weighted softmax TD: kernels, limits, errors against the iteration."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ictd.figures._style import METHOD_COLOURS, band, grid, plain, sequential_colours


def kernel_panels(kernels: Mapping[str, ArrayLike]) -> Figure:
    """Kernels side by side, one panel each, on a common scale from 0 to 1.

    Args:
        kernels: title → array [query state, source state] of weights, shape (S, S).
    """
    columns = min(len(kernels), 2)
    rows = -(-len(kernels) // columns)
    figure, axes = grid(rows, columns, width=2.6 * columns, height=2.35 * rows)
    image = None
    for axis, (title, kernel) in zip(axes.flat, kernels.items(), strict=False):
        image = axis.imshow(np.asarray(kernel), vmin=0, vmax=1, cmap="cividis")
        axis.set(title=title, xlabel="source state", ylabel="query state")
        axis.locator_params(integer=True)
        query, source = np.indices(np.shape(kernel))
        figure.record(panel=plain(title), query=query, source=source, weight=kernel)
    for axis in axes.flat[len(kernels) :]:
        axis.set_axis_off()
    if image is not None:
        figure.colorbar(image, ax=axes, label="weight", shrink=0.8)
    return figure


def error_curves(
    sharpness: Mapping[float, ArrayLike],
    methods: Mapping[str, ArrayLike],
    levels: Mapping[str, ArrayLike],
    ylabel: str,
) -> Figure:
    """Errors against the iteration: the median over chains, with the band of the middle half.

    Args:
        sharpness: β → errors of weighted softmax TD, shape (chains, iterations+1).
        methods: name in ``METHOD_COLOURS`` → errors of the same shape.
        levels: name in ``METHOD_COLOURS`` → errors that do not depend on the iteration, (chains,).
        ylabel: what the error is.
    """
    figure, axes = grid(1, 1, width=5.2, height=4.0)
    axis: Axes = axes[0, 0]
    for beta, colour in zip(sharpness, sequential_colours(len(sharpness)), strict=True):
        band(
            figure, axis, sharpness[beta], colour, rf"weighted softmax TD, $\beta$ = {beta:g}", "-"
        )
    for name, errors in methods.items():
        band(figure, axis, errors, METHOD_COLOURS[name], name, "--")
    for name, errors in levels.items():
        median = float(np.median(np.asarray(errors)))
        figure.record(series=name, median=median)
        axis.axhline(median, color=METHOD_COLOURS[name], linestyle=":", linewidth=1.5, label=name)
    axis.set(xlabel="iteration", ylabel=ylabel, yscale="log")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure


def limit_distances(
    betas: ArrayLike, to_mean: ArrayLike, to_tabular: ArrayLike, floor: float = 1e-16
) -> Figure:
    """Distance of weighted softmax TD from its two limits, against β, on logarithmic axes.

    Args:
        betas: β > 0, shape (m,).
        to_mean: distance from the limit β → 0, shape (m,).
        to_tabular: distance from tabular TD, shape (m,).
        floor: distances below it are drawn at it.
    """
    figure, axes = grid(1, 1, width=5.2, height=3.2)
    axis: Axes = axes[0, 0]
    curves = (
        (to_mean, "#0072B2", "o", r"to the limit $\beta\to 0$"),
        (to_tabular, "#000000", "s", "to tabular TD"),
    )
    for distance, colour, marker, label in curves:
        shown = np.maximum(np.asarray(distance), floor)
        axis.plot(np.asarray(betas), shown, color=colour, marker=marker, markersize=4, label=label)
        figure.record(series=plain(label), beta=betas, distance=distance)
    axis.set(xscale="log", yscale="log", xlabel=r"$\beta$", ylabel="largest distance of values")
    axis.legend(frameon=False)
    return figure


def interpolation(
    angles: ArrayLike, values: Mapping[float, ArrayLike], visited: ArrayLike, start: ArrayLike
) -> Figure:
    """Values over states on a circle arc, of which the context visits only some.

    Args:
        angles: position of each state in radians, increasing, shape (S,).
        values: β → values, shape (S,).
        visited: which states are sources, booleans, shape (S,).
        start: start values, shape (S,).
    """
    figure, axes = grid(1, 1, width=5.2, height=3.2)
    axis: Axes = axes[0, 0]
    angles, seen = np.asarray(angles), np.asarray(visited, dtype=bool)
    axis.plot(angles, np.asarray(start), color="#555555", linestyle=":", label="start values")
    figure.record(series="start values", angle=angles, value=start, is_source=seen)
    for beta, colour in zip(values, sequential_colours(len(values)), strict=True):
        v = np.asarray(values[beta])
        axis.plot(angles, v, color=colour, label=rf"$\beta$ = {beta:g}")
        axis.plot(angles[seen], v[seen], color=colour, marker="o", linestyle="none")
        figure.record(series=f"beta = {beta:g}", angle=angles, value=v, is_source=seen)
    axis.set(xlabel="angle of the state's feature (radians)", ylabel="value")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    return figure
