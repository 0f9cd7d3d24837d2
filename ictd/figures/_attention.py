"""Figures of linear and softmax attention: weights, entropy, errors against the layers, cost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ictd.figures._style import METHOD_COLOURS, band, grid, plain


def weight_panels(linear: ArrayLike, softmax: ArrayLike) -> Figure:
    """Weights that columns give to sources: signed ones on the left, those of a softmax on the right.

    Args:
        linear: weights [source, query], of either sign, shape (n, m).
        softmax: weights [source, query] in [0, 1], shape (n, m).
    """
    figure, axes = grid(1, 2, width=5.2, height=3.3)
    left, right = (np.asarray(weights) for weights in (linear, softmax))
    reach = max(float(np.abs(left).max()), np.finfo(float).tiny)
    panels = (
        (left, {"vmin": -reach, "vmax": reach, "cmap": "PuOr_r"}, "score divided by $n$"),
        (
            right,
            {"vmin": 0.0, "vmax": float(right.max()), "cmap": "cividis"},
            "softmax of the score",
        ),
    )
    for axis, (weights, scale, title) in zip(axes.flat, panels, strict=True):
        image = axis.imshow(weights, aspect="auto", **scale)
        source, query = np.indices(weights.shape)
        figure.record(panel=plain(title), source=source, query=query, weight=weights)
        axis.set(title=title, xlabel="query (position)", ylabel="source (position)")
        for direction in (axis.xaxis, axis.yaxis):
            direction.set_major_locator(MaxNLocator(integer=True, nbins=6))
        ticks = MaxNLocator(nbins=4)
        figure.colorbar(image, ax=axis, location="bottom", label="weight", ticks=ticks)
    return figure


def entropy_against_scale(scales: ArrayLike, entropies: ArrayLike) -> Figure:
    """Entropy of the softmax against the scale of the features: the mean, and all queries as a band.

    Args:
        scales: factors c ≥ 0 of the features, increasing, shape (m,).
        entropies: entropy of each query's weights in units of log n, shape (m, queries).
    """
    figure, axes = grid(1, 1, width=5.2, height=3.2)
    axis: Axes = axes[0, 0]
    c, H = np.asarray(scales, dtype=float), np.asarray(entropies)
    colour = METHOD_COLOURS["weighted softmax TD"]
    axis.plot(c, H.mean(1), color=colour, marker="o", markersize=4, label="mean over the queries")
    axis.fill_between(
        c, H.min(1), H.max(1), color=colour, alpha=0.15, linewidth=0, label="all queries"
    )
    figure.record(scale=c, mean=H.mean(1), smallest=H.min(1), largest=H.max(1))
    smallest = float(c[c > 0].min()) if (c > 0).any() else 1.0
    axis.set_xscale("symlog", base=2, linthresh=smallest)
    axis.set_xticks(c, [f"{scale:g}" for scale in c])
    axis.set(xlabel="scale $c$ of the features", ylabel=r"entropy / $\log\,n$", ylim=(-0.03, 1.05))
    axis.legend(frameon=False)
    return figure


def layer_errors(errors: Mapping[str, ArrayLike], ylabel: str) -> Figure:
    """Errors against the layers: the median over chains, with the band of the middle half.

    The axis ends at ten times the largest error without layers; what diverges leaves it.

    Args:
        errors: name in ``METHOD_COLOURS`` → errors, shape (chains, layers+1).
        ylabel: what the error is.
    """
    figure, axes = grid(1, 1, width=5.2, height=3.8)
    axis: Axes = axes[0, 0]
    styles = ("--", ":", "-.", "-")
    for index, (name, error) in enumerate(errors.items()):
        band(figure, axis, error, METHOD_COLOURS[name], name, styles[index % len(styles)])
    axis.set(xlabel="layers", ylabel=ylabel, yscale="log")
    start = max(float(np.max(np.asarray(error)[:, 0])) for error in errors.values())
    axis.set_ylim(top=10 * max(start, np.finfo(float).tiny))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure


def operation_counts(lengths: ArrayLike, counts: Mapping[str, ArrayLike]) -> Figure:
    """Operations of one layer against the length of the context, on logarithmic axes.

    Args:
        lengths: context lengths n, increasing, shape (m,).
        counts: name → operations, shape (m,), of linear attention, of the same with its scores formed
            first, and of softmax attention.
    """
    figure, axes = grid(1, 1, width=5.2, height=3.2)
    axis: Axes = axes[0, 0]
    linear, softmax = METHOD_COLOURS["linear TD"], METHOD_COLOURS["weighted softmax TD"]
    # Large hollow marks stay visible where two ways take nearly the same number of operations.
    looks = ((linear, "o", "-", 4), (linear, "^", "--", 9), (softmax, "s", "-", 4))
    for (name, count), (colour, marker, style, size) in zip(counts.items(), looks, strict=True):
        figure.record(series=name, context_length=lengths, operations=count)
        axis.plot(
            np.asarray(lengths),
            np.asarray(count),
            style,
            color=colour,
            marker=marker,
            markersize=size,
            markerfacecolor="none" if size > 4 else colour,
            label=name,
        )
    axis.set(
        xscale="log", yscale="log", xlabel="context length $n$", ylabel="operations of a layer"
    )
    axis.legend(frameon=False, fontsize="small")
    return figure
