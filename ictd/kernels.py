"""Score functions g and the kernels that the softmax makes of them.

Scores are arrays g[query, source]: ``scores[..., s, t]`` is g(s, t), how much query state s attends to
source state t. A score of −∞ is allowed and gives weight zero; NaN and +∞ are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ictd import _checks
from ictd._checks import FloatArray, IntArray


def inner_product_scores(features: Any, sharpness: float = 1.0) -> FloatArray:
    """g(s, t) = β⟨x(s), x(t)⟩, the score of the paper's construction at β = 1.

    Args:
        features: x, shape (..., S, d), finite.
        sharpness: β, any finite number.

    Returns:
        g[query, source], shape (..., S, S).

    Raises:
        ValueError: an argument is outside what is said above, or a score overflows.
    """
    x = _checks.features(features)
    beta = _checks.real("sharpness", sharpness)
    with np.errstate(over="ignore", invalid="ignore"):
        scores: FloatArray = beta * (x @ np.swapaxes(x, -1, -2))
    if not np.isfinite(scores).all():
        raise ValueError(
            f"features must have inner products that are finite, got entries up to {np.abs(x).max():g}"
        )
    return scores


def similarity_scores(kernel: Any) -> FloatArray:
    """g = log κ, the score of a similarity κ.

    The softmax of these scores gives the weights κ(s, S_{k−1}) / Σ_m κ(s, S_{m−1}), so weighted softmax
    TD becomes normalised non-parametric TD. ``similarity_scores(np.eye(S))`` gives tabular TD.

    Args:
        kernel: κ[query, source] ≥ 0, shape (..., S, S).

    Returns:
        g[query, source], shape (..., S, S); −∞ where κ is zero.

    Raises:
        ValueError: entries that are negative or not finite, or another shape.
    """
    kappa = _checks.floats("kernel", kernel)
    _checks.square("kernel", kappa)
    if kappa.min() < 0:
        raise ValueError(f"kernel must be non-negative, got {kappa.min()}")
    with np.errstate(divide="ignore"):
        return np.log(kappa)


def softmax_kernel(scores: Any, sources: Any) -> FloatArray:
    """K(S_{k−1}, s) of (9): for each query state s, a distribution over the n positions of the context.

    Args:
        scores: g[query, source], shape (..., S, S).
        sources: source states S₀ … S_{n−1}, shape (..., n).

    Returns:
        K[source, query], shape (..., n, S); columns sum to one, except that a query whose scores are all
        −∞ has a zero column.

    Raises:
        ValueError: scores that are NaN or +∞, sources that are no states, or other shapes.
    """
    g = check_scores(scores)
    states = _checks.state_indices("sources", sources)
    if states.ndim < 1 or states.size == 0:
        raise ValueError(f"sources must have shape (..., n) with n ≥ 1, got {states.shape}")
    S = g.shape[-1]
    _checks.states_below("sources", states, S)
    batch = _checks.broadcast(scores=g.shape[:-2], sources=states.shape[:-1])
    g = np.broadcast_to(g, (*batch, S, S))
    index: IntArray = np.broadcast_to(states[..., None, :], (*batch, S, states.shape[-1]))
    return np.swapaxes(_softmax(np.take_along_axis(g, index, axis=-1)), -1, -2)


def visit_weights(scores: Any, visits: Any) -> FloatArray:
    """Weight that query s puts on *one* visit of source t.

    This is K of (9) read by states instead of positions: exp g(s, t) / Σ_u N(u) exp g(s, u), zero where t
    has no visit and, for a query that no visited source scores above −∞, everywhere.

    Args:
        scores: g[query, source], shape (..., S, S).
        visits: N, shape (..., S), non-negative.

    Returns:
        Weights [query, source], shape (..., S, S); times N, the rows sum to one.

    Raises:
        ValueError: scores that are NaN or +∞, visits that are negative or of another shape.
    """
    g = check_scores(scores)
    visits = _checks.floats("visits", visits)
    if visits.ndim < 1 or visits.shape[-1] != g.shape[-1]:
        raise ValueError(f"visits must have shape (..., {g.shape[-1]}), got {visits.shape}")
    if visits.min() < 0:
        raise ValueError(f"visits must be non-negative, got {visits.min()}")
    _checks.broadcast(scores=g.shape[:-2], visits=visits.shape[:-1])
    # Unvisited sources must not set the maximum: at scores of ±1e4 the visited ones would underflow.
    g = np.where(visits[..., None, :] > 0, g, -np.inf)
    return _softmax(g, visits[..., None, :])


def check_scores(scores: Any) -> FloatArray:
    """Scores as float64 of shape (..., S, S); NaN and +∞ raise ValueError."""
    g = _checks.numeric("scores", scores)
    _checks.square("scores", g)
    if np.isnan(g).any() or (g == np.inf).any():
        raise ValueError("scores must be finite or −inf, got NaN or +inf")
    return g


def _softmax(g: FloatArray, multiplicity: FloatArray | float = 1.0) -> FloatArray:
    """exp g / Σ multiplicity · exp g along the last axis; zero where every g is −∞."""
    top = g.max(-1, keepdims=True)
    weights = np.exp(g - np.where(np.isfinite(top), top, 0.0))
    total = (multiplicity * weights).sum(-1, keepdims=True)
    normalised: FloatArray = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return normalised
