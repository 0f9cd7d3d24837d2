"""Figures on convergence without a diagonal kernel: eigenvalues, conditions, certificates, divergence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ictd.figures._style import BookFigure, grid, plain

# Colour and line style of a condition, the same in every panel.
_CONDITIONS = (("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", ":"), ("#000000", "-."))


def eigenvalue_discs(factors: ArrayLike, shifts: ArrayLike) -> Figure:
    """Two clouds of complex numbers, each with the unit circle: the data hold them side by side.

    Args:
        factors: eigenvalues 1 − λ of I − B, complex, shape (m,).
        shifts: ζ/ν of the same eigenvectors, complex, shape (m,).
    """
    figure, axes = grid(1, 2, width=5.2, height=2.9)
    turn = np.exp(2j * np.pi * np.linspace(0, 1, 200))
    factors, shifts = np.asarray(factors), np.asarray(shifts)
    panels = ((factors, r"$1-\lambda$", "#0072B2"), (shifts, r"$\zeta/\nu$", "#D55E00"))
    for axis, (points, title, colour) in zip(axes.flat, panels, strict=True):
        axis.plot(turn.real, turn.imag, color="#000000", linewidth=1)
        axis.plot(points.real, points.imag, ".", color=colour, markersize=2, alpha=0.5)
        axis.set(title=title, xlabel="real part", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        axis.set_aspect("equal")
    axes[0, 0].set_ylabel("imaginary part")
    figure.record(
        factor_real=factors.real,
        factor_imag=factors.imag,
        shift_real=shifts.real,
        shift_imag=shifts.imag,
    )
    return figure


def condition_thresholds(
    betas: ArrayLike, panels: Mapping[str, Mapping[str, ArrayLike]], gammas: ArrayLike
) -> Figure:
    """Up to which γ each condition holds, against β: median over chains, band of the middle half.

    Args:
        betas: β, increasing, shape (m,).
        panels: title → condition → largest γ at which it holds, shape (m, chains), up to four conditions.
        gammas: values of γ that are marked by thin lines.
    """
    figure, axes = grid(len(panels), 1, width=5.2, height=2.3 * len(panels) + 0.6)
    for axis, (title, conditions) in zip(axes.flat, panels.items(), strict=True):
        for gamma in np.atleast_1d(np.asarray(gammas)):
            axis.axhline(gamma, color="#BBBBBB", linewidth=0.6, zorder=0)
        for (label, thresholds), (colour, style) in zip(
            conditions.items(), _CONDITIONS[: len(conditions)], strict=True
        ):
            low, middle, high = np.percentile(np.asarray(thresholds), [25, 50, 75], axis=1)
            axis.plot(betas, middle, style, color=colour, label=label)
            axis.fill_between(betas, low, high, color=colour, alpha=0.15, linewidth=0)
            figure.record(
                panel=plain(title),
                condition=plain(label),
                beta=betas,
                quartile_1=low,
                median=middle,
                quartile_3=high,
            )
        axis.set(title=title, ylabel=r"holds for $\gamma$ below", ylim=(-0.03, 1.03))
    axes[-1, 0].set_xlabel(r"$\beta$")
    _legend_below(figure, axes[0, 0], columns=3)
    return figure


def certified_shares(
    lengths: ArrayLike, shares: Mapping[str, ArrayLike], distances: ArrayLike
) -> Figure:
    """Shares of contexts with a property, and how far ν̂ is from ν, against the length of the context.

    Args:
        lengths: n, increasing, shape (m,).
        shares: property → share of the contexts, shape (m,), up to four properties.
        distances: `|ν̂ − ν|/ν`, inf without a certificate, shape (m, contexts).
    """
    figure, axes = grid(2, 1, width=5.2, height=4.6)
    top, bottom = axes[0, 0], axes[1, 0]
    markers = "osv^"
    for (label, share), (colour, style), marker in zip(
        shares.items(), _CONDITIONS[: len(shares)], markers[: len(shares)], strict=True
    ):
        top.plot(
            lengths, share, style, color=colour, marker=marker, markersize=3.5, label=plain(label)
        )
        figure.record(series=plain(label), n=lengths, share=share)
    top.set(xscale="log", ylabel="share of contexts", ylim=(-0.03, 1.03))
    low, middle, high = np.percentile(
        np.asarray(distances), [25, 50, 75], axis=1, method="inverted_cdf"
    )
    bottom.plot(lengths, middle, color="#0072B2", marker="o", markersize=3.5)
    known = np.isfinite(high)
    n = np.asarray(lengths)
    bottom.fill_between(n[known], low[known], high[known], color="#0072B2", alpha=0.15, linewidth=0)
    # At γ = 0 both are zero, and a logarithmic axis has nothing to show.
    scale = "log" if (middle > 0).any() else "linear"
    bottom.set(xscale="log", yscale=scale, xlabel="$n$", ylabel=r"$|\hat\nu-\nu|\,/\,\nu$")
    figure.record(
        series="relative distance", n=lengths, quartile_1=low, median=middle, quartile_3=high
    )
    _legend_below(figure, top, columns=2)
    return figure


def rates_against_step(
    steps: ArrayLike,
    exact: Mapping[str, ArrayLike],
    bounds: Mapping[str, ArrayLike],
    largest: Mapping[str, float],
) -> Figure:
    """The rate of single chains against the step size, with Theorem A's bound and the largest step.

    Args:
        steps: α > 0, increasing, shape (m,).
        exact: chain → ρ(I − αB), shape (m,), up to four chains.
        bounds: chain → Theorem A's rate, shape (m,).
        largest: chain → largest stable step size.
    """
    figure, axes = grid(1, 1, width=5.2, height=3.6)
    axis: Axes = axes[0, 0]
    axis.axhline(1, color="#555555", linewidth=0.8)
    for (label, rates), (colour, _), marker in zip(
        exact.items(), _CONDITIONS[: len(exact)], "osv^"[: len(exact)], strict=True
    ):
        axis.plot(steps, rates, "-", color=colour, label=label)
        axis.plot(steps, bounds[label], "--", color=colour, linewidth=1)
        axis.plot([largest[label]], [1.0], marker, color=colour, markersize=6)
        figure.record(chain=plain(label), step=steps, rate=rates, theorem_a=bounds[label])
        figure.record(chain=plain(label), largest_step=largest[label])
    lowest = min(float(np.min(np.asarray(rates))) for rates in exact.values())
    axis.set(xscale="log", xlabel=r"$\alpha$", ylabel="factor a layer", ylim=(lowest - 0.02, 1.1))
    axis.set_xlim(np.min(np.asarray(steps)), np.max(np.asarray(steps)))
    _legend_below(figure, axis, columns=2)
    return figure


def growing_errors(panels: Mapping[str, Mapping[str, ArrayLike]], ylabel: str) -> Figure:
    """Errors against the layer, a panel for each example, on a logarithmic axis.

    Args:
        panels: title → series → error of layers 0, 1, 2, …, up to four series.
        ylabel: what the error is.
    """
    figure, axes = grid(len(panels), 1, width=5.2, height=2.3 * len(panels) + 0.6)
    for axis, (title, series) in zip(axes.flat, panels.items(), strict=True):
        for (label, errors), (colour, style) in zip(
            series.items(), _CONDITIONS[: len(series)], strict=True
        ):
            errors = np.asarray(errors)
            # A few hundred points show all that there is to see.
            layers = np.unique(np.linspace(0, len(errors) - 1, 300).astype(int))
            axis.plot(layers, errors[layers], style, color=colour, label=label)
            figure.record(
                panel=plain(title), series=plain(label), layer=layers, error=errors[layers]
            )
        axis.set(title=title, ylabel=ylabel, yscale="log", ylim=(1e-10, None))
    axes[-1, 0].set_xlabel("layer")
    _legend_below(figure, axes[0, 0], columns=2)
    return figure


def _legend_below(figure: BookFigure, axis: Axes, columns: int) -> None:
    """One legend for all panels, from the first."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize="small",
    )
