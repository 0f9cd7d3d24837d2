"""Weighted softmax TD and the classical methods beside it, on a fixed context.

All methods read the same context (S₀, R₁, S₁, …, R_n, S_n) and update every value at once with the TD
errors of the old values. A context may be a batch; leading dimensions broadcast.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ictd import _checks
from ictd._checks import FloatArray
from ictd._iteration import StepSize, iterate, schedule, start_values
from ictd.counts import Counts
from ictd.kernels import check_scores, similarity_scores, visit_weights
from ictd.mrp import Trajectory


def weighted_softmax_td(
    trajectory: Trajectory,
    scores: Any,
    gamma: float,
    n_steps: int,
    step_size: StepSize = 1.0,
    initial: Any = None,
) -> FloatArray:
    """Weighted softmax TD, (8)–(9) of arXiv:2605.07333v2, for every state as a query.

    v_{t+1}(s) = v_t(s) + α_t Σ_k δ_k K(S_{k−1}, s), with δ_k = R_k + γ v_t(S_k) − v_t(S_{k−1}) and
    K(S_{k−1}, s) = exp g(s, S_{k−1}) / Σ_m exp g(s, S_{m−1}). A query that no source scores above −∞
    (0/0 in the formula) does not move.

    Args:
        trajectory: context with n ≥ 1 transitions, states (..., n+1).
        scores: g[query, source], any (..., S, S) array of finite numbers or −∞.
        gamma: discount factor in [0, 1).
        n_steps: number of updates, ≥ 0.
        step_size: α, a finite number, or a sequence α_0 … α_{n_steps−1}, or a function t ↦ α_t.
        initial: v_0, shape (S,) or (..., S); None means zero.

    Returns:
        Values v_0 … v_{n_steps}, shape (..., n_steps+1, S).

    Raises:
        ValueError: an argument is outside what is said above.
    """
    g = check_scores(scores)
    S = g.shape[-1]
    gamma = _checks.discount(gamma)
    alphas = schedule(step_size, n_steps)
    counts = Counts.of(trajectory, S)
    batch = _checks.broadcast(scores=g.shape[:-2], trajectory=trajectory.states.shape[:-1])
    v = start_values("initial", initial, S, batch)
    weights = visit_weights(g, counts.visits)

    def update(v: FloatArray) -> FloatArray:
        # Σ_k δ_k K(S_{k−1}, s), the visits of one source state taken together.
        direction: FloatArray = (weights @ counts.td_error_sums(v, gamma)[..., None])[..., 0]
        return direction

    return iterate(v, update, alphas)


def tabular_td(
    trajectory: Trajectory,
    n_states: int,
    gamma: float,
    n_steps: int,
    step_size: StepSize = 1.0,
    initial: Any = None,
) -> FloatArray:
    """Tabular TD on a context: each visited state moves by the mean TD error of its own visits.

    With step size 1 it is value iteration on the empirical chain. A state that is never a source keeps its
    start value. It is weighted softmax TD with the score log 1{s = t}.

    Args:
        trajectory: context with n ≥ 1 transitions, states (..., n+1).
        n_states: S ≥ 1.
        gamma: discount factor in [0, 1).
        n_steps: number of updates, ≥ 0.
        step_size: α, a finite number, or a sequence α_0 … α_{n_steps−1}, or a function t ↦ α_t.
        initial: v_0, shape (S,) or (..., S); None means zero.

    Returns:
        Values v_0 … v_{n_steps}, shape (..., n_steps+1, S).

    Raises:
        ValueError: an argument is outside what is said above.
    """
    S = _checks.integer("n_states", n_states, 1)
    exact_match = similarity_scores(np.eye(S))
    return weighted_softmax_td(trajectory, exact_match, gamma, n_steps, step_size, initial)


def linear_td_weights(
    trajectory: Trajectory,
    features: Any,
    gamma: float,
    n_steps: int,
    step_size: StepSize = 1.0,
    initial: Any = None,
) -> FloatArray:
    """Weights of batch linear TD.

    w ← w + (α/n) Σ_k δ_k x(S_{k−1}), with δ_k = R_k + γ⟨w, x(S_k)⟩ − ⟨w, x(S_{k−1})⟩.

    Args:
        trajectory: context with n ≥ 1 transitions, states (..., n+1).
        features: x, shape (..., S, d), finite.
        gamma: discount factor in [0, 1).
        n_steps: number of updates, ≥ 0.
        step_size: α, a finite number, or a sequence of n_steps numbers, or a function t ↦ α_t.
        initial: w_0, shape (d,) or (..., d); None means zero.

    Returns:
        Weights w_0 … w_{n_steps}, shape (..., n_steps+1, d).

    Raises:
        ValueError: an argument is outside what is said above.
    """
    x = _checks.features(features)
    S, d = x.shape[-2:]
    gamma = _checks.discount(gamma)
    alphas = schedule(step_size, n_steps)
    counts = Counts.of(trajectory, S)
    batch = _checks.broadcast(features=x.shape[:-2], trajectory=trajectory.states.shape[:-1])
    w = start_values("initial", initial, d, batch)
    x_transposed = np.swapaxes(x, -1, -2) / trajectory.n

    def update(w: FloatArray) -> FloatArray:
        errors = counts.td_error_sums((x @ w[..., None])[..., 0], gamma)
        direction: FloatArray = (x_transposed @ errors[..., None])[..., 0]
        return direction

    return iterate(w, update, alphas)


def linear_td(
    trajectory: Trajectory,
    features: Any,
    gamma: float,
    n_steps: int,
    step_size: StepSize = 1.0,
    initial: Any = None,
) -> FloatArray:
    """Values of batch linear TD: ⟨x(s), w_t⟩ of :func:`linear_td_weights` at every state.

    Args:
        trajectory: context with n ≥ 1 transitions, states (..., n+1).
        features: x, shape (..., S, d), finite.
        gamma: discount factor in [0, 1).
        n_steps: number of updates, ≥ 0.
        step_size: α, a finite number, or a sequence of n_steps numbers, or a function t ↦ α_t.
        initial: the weights w_0, shape (d,) or (..., d); None means zero.

    Returns:
        Values at t = 0 … n_steps, shape (..., n_steps+1, S).

    Raises:
        ValueError: an argument is outside what is said above.
    """
    weights = linear_td_weights(trajectory, features, gamma, n_steps, step_size, initial)
    return weights @ np.swapaxes(_checks.features(features), -1, -2)


def lstd(trajectory: Trajectory, features: Any, gamma: float) -> FloatArray:
    """Least-squares TD: the fixed point of batch linear TD, if it has exactly one.

    w solves Σ_k x(S_{k−1}) (x(S_{k−1}) − γ x(S_k))ᵀ w = Σ_k R_k x(S_{k−1}) (Bradtke and Barto, Machine
    Learning 22, 1996). Where the system is singular (a feature direction that the sources do not
    show) a least-squares solution is taken, which batch linear TD need not approach.

    Args:
        trajectory: context with n ≥ 1 transitions, states (..., n+1).
        features: x, shape (..., S, d), finite.
        gamma: discount factor in [0, 1).

    Returns:
        Values, shape (..., S).

    Raises:
        ValueError: an argument is outside what is said above.
    """
    x = _checks.features(features)
    gamma = _checks.discount(gamma)
    counts = Counts.of(trajectory, x.shape[-2])
    _checks.broadcast(features=x.shape[:-2], trajectory=trajectory.states.shape[:-1])
    # The values do not depend on the basis of the features. One that is orthonormal over the sources
    # keeps the digits that nearly dependent features would cost, or features of different scales.
    seen = counts.visits[..., None] > 0
    at_sources = np.where(seen, x, 0.0)
    scale = np.linalg.norm(at_sources, axis=-2, keepdims=True)
    scale = np.where(scale > 0, scale, 1.0)
    U, singular, Vt = np.linalg.svd(at_sources / scale, full_matrices=False)
    shown = singular > singular.max(-1, keepdims=True) * max(x.shape[-2:]) * np.finfo(float).eps
    inverse = np.divide(1.0, singular, out=np.zeros_like(singular), where=shown)
    U = U * shown[..., None, :]
    basis = np.where(seen, U, (x / scale) @ (np.swapaxes(Vt, -1, -2) * inverse[..., None, :]))
    # The systems of all visits of a state are taken together: Uᵀ(diag N − γN₂)B y = Uᵀ(reward sums).
    td_matrix = counts.visits[..., None] * np.eye(x.shape[-2]) - gamma * counts.transitions
    U_transposed = np.swapaxes(U, -1, -2)
    system = U_transposed @ td_matrix @ basis
    target = U_transposed @ counts.reward_sums[..., None]
    # rcond a little above rounding, so that an unseen direction counts as singular.
    values: FloatArray = (basis @ (np.linalg.pinv(system, rcond=1e-12) @ target))[..., 0]
    return values


def certainty_equivalence(trajectory: Trajectory, n_states: int, gamma: float) -> FloatArray:
    """True values of the empirical chain, (I − γP̃)⁻¹ r̃: where tabular TD from zero ends.

    P̃ and r̃ are the shares of transitions and the mean rewards of each source. A state that is no source
    has no transition; its value is 0.

    Args:
        trajectory: context with n ≥ 1 transitions, states (..., n+1).
        n_states: S ≥ 1.
        gamma: discount factor in [0, 1).

    Returns:
        Values, shape (..., S).

    Raises:
        ValueError: an argument is outside what is said above.
    """
    S = _checks.integer("n_states", n_states, 1)
    gamma = _checks.discount(gamma)
    counts = Counts.of(trajectory, S)
    # A row that counts nothing becomes the equation v(s) = 0.
    diagonal = np.where(counts.visits > 0, counts.visits, 1.0)[..., None] * np.eye(S)
    system = diagonal - gamma * counts.transitions
    values = np.linalg.solve(system, counts.reward_sums[..., None])[..., 0]
    return values.astype(np.float64)
