"""Theorem 2 with its constants, and the limit law of the floor.

Both are about v_L − v_π, the values after L layers on a context of n transitions of an irreducible chain.
The paper (arXiv:2605.07333v2, Theorem 2) leaves its constants open; those here are this project's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ictd import _checks
from ictd._checks import FloatArray
from ictd.mrp import MarkovRewardProcess
from ictd.operator import population_operator


@dataclass(frozen=True, eq=False)
class Theorem2:
    """With probability ≥ 1 − δ, for all L at once, ‖v_L − v_π‖_∞ ≤ (1 − C)^L ‖v_0 − v_π‖_∞ + floor(n).

    It holds for a context of n ≥ required_n transitions from any start, if Assumption 5.1 does: C > 0.
    Arrays have the shape (...) of the batch.

    Attributes:
        gamma: γ of the chain.
        delta: δ, the probability left over.
        n_states: S.
        C: min_s M_π(s, s) − (1 + γ)/2.
        eta: η = C/(1 − γ² + C), how far visit counts may be off, as a share; NaN where C ≤ 0.
        hitting_time: t = max E_u[τ_s] over states u and s, in steps.
        span: max v_π − min v_π.
        smallest_share: min_s μ(s).
    """

    gamma: float
    delta: float
    n_states: int
    C: FloatArray
    eta: FloatArray
    hitting_time: FloatArray
    span: FloatArray
    smallest_share: FloatArray

    @property
    def required_n(self) -> FloatArray:
        """The smallest n ≥ 2t² log(4S/δ)/η² and ≥ 1; inf where Assumption 5.1 fails. Shape (...)."""
        n = np.ceil(2 * (self.hitting_time / self.eta) ** 2 * self._log(self.delta))
        return np.where(self.C > 0, np.maximum(n, 1.0), np.inf)[()]

    def floor(self, n: Any, delta: float | None = None) -> FloatArray:
        """2γ span/(1 − γ) · √(log(4S/δ)/(2(1 − η) n μ_min)), the floor of the error.

        The formula is evaluated for any n; what it says is proved for n ≥ ``required_n``.

        Args:
            n: numbers of transitions, ≥ 1, broadcast with the batch.
            delta: another δ in (0, 1); None means that of the object.

        Returns:
            The floor, shape of n and the batch together; inf where Assumption 5.1 fails.

        Raises:
            ValueError: n or delta is outside what is said above.
        """
        log = self._log(self.delta if delta is None else _probability(delta))
        n = _checks.floats("n", n)
        if n.size and n.min() < 1:
            raise ValueError(f"n must be ≥ 1, got {n.min():g}")
        deviation = np.sqrt(log / (2 * (1 - self.eta) * n * self.smallest_share))
        floor = 2 * self.gamma / (1 - self.gamma) * self.span * deviation
        return np.where(self.C > 0, floor, np.inf)[()]

    def _log(self, delta: float) -> float:
        return float(np.log(4 * self.n_states / delta))


def theorem_2(mrp: MarkovRewardProcess, scores: Any, delta: float) -> Theorem2:
    """The constants of Theorem 2 for a chain, or for each of a batch.

    Where they come from:

    1. h − Ph = 1_s − μ(s) has a solution of span μ(s) max_u E_u[τ_s], and N(s) − nμ(s) is h(S_0) − h(S_n)
       plus a martingale with differences in intervals of that length. Azuma's inequality gives
       `|N(s) − nμ(s)| ≤ ηnμ(s)` for all s at once with probability 1 − δ/2.
    2. Then M_π − M̂ ≤ 2ηM_π(1 − M_π)/(1 − η(2M_π − 1)) ≤ C/2 on the diagonal: a layer contracts by 1 − C.
    3. Its limit ṽ has ṽ − v_π = γ(I − γP̃)⁻¹(P̃ − P)v_π.
    4. Successors of a state are independent, and their means form a reversed martingale, so Hoeffding's
       inequality holds for all counts ≥ (1 − η)nμ(s) at once. It takes the other δ/2.

    Args:
        mrp: irreducible chains; periodic ones too.
        scores: g[query, source], shape (..., S, S), finite or −∞.
        delta: δ in (0, 1).

    Returns:
        The constants, arrays of shape (...), the leading dimensions of chains and scores together.

    Raises:
        ValueError: a chain is reducible, or an argument is not as said above.
    """
    delta = _probability(delta)
    operator = population_operator(mrp, scores)
    C = operator.margin(mrp.gamma)
    # C > 0 makes η at most 1/3; a NaN elsewhere keeps it from being used.
    eta = np.divide(C, 1 - mrp.gamma**2 + C, out=np.full_like(C, np.nan), where=C > 0)
    return Theorem2(
        gamma=mrp.gamma,
        delta=delta,
        n_states=mrp.n_states,
        C=C,
        eta=eta,
        hitting_time=np.broadcast_to(hitting_times(mrp).max((-2, -1)), C.shape),
        span=np.broadcast_to(np.ptp(mrp.value, axis=-1), C.shape),
        smallest_share=np.broadcast_to(mrp.stationary.min(-1), C.shape),
    )


def hitting_times(mrp: MarkovRewardProcess) -> FloatArray:
    """E_u[τ_s], the mean number of steps from u until s is first met.

    With the fundamental matrix F = (I − P + 1μᵀ)⁻¹ it is (F(s, s) − F(u, s))/μ(s).

    Args:
        mrp: irreducible chains; periodic ones too.

    Returns:
        Mean numbers of steps as [u, s], shape (..., S, S); 0 on the diagonal.

    Raises:
        ValueError: a chain is reducible.
    """
    mu = mrp.stationary
    F = np.linalg.inv(np.eye(mrp.n_states) - mrp.transition + mu[..., None, :])
    times: FloatArray = (np.diagonal(F, axis1=-2, axis2=-1)[..., None, :] - F) / mu[..., None, :]
    return times


def limit_covariance(mrp: MarkovRewardProcess) -> FloatArray:
    """Σ of √n(ṽ − v_π) → N(0, Σ), ṽ the limit of depth on a context of n transitions.

    Σ = γ² K diag(σ²/μ) Kᵀ with K = (I − γP)⁻¹ and σ²(s) the variance of v_π(S') after s, by the delta
    method from ṽ − v_π = γ(I − γP̃)⁻¹(P̃ − P)v_π. No kernel is in it.

    Args:
        mrp: irreducible chains; periodic ones too.

    Returns:
        Σ, symmetric and positive semidefinite, shape (..., S, S).

    Raises:
        ValueError: a chain is reducible.
    """
    P, v = mrp.transition, mrp.value
    mean = P @ v[..., None]
    variance = (P * (v[..., None, :] - mean) ** 2).sum(-1)
    K = np.linalg.inv(np.eye(mrp.n_states) - mrp.gamma * P)
    # A root of the diagonal on either side: the product is then symmetric and positive semidefinite.
    root = mrp.gamma * K * np.sqrt(variance / mrp.stationary)[..., None, :]
    covariance: FloatArray = root @ np.swapaxes(root, -1, -2)
    return covariance


def _probability(delta: float) -> float:
    value = _checks.real("delta", delta)
    if not 0 < value < 1:
        raise ValueError(f"delta must be in (0, 1), got {value!r}")
    return value
