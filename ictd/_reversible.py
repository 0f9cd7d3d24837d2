"""Softmax kernels of a positive semidefinite G = exp g as reversible chains: what Theorem A needs of them.

With sources of law μ and Z = Gμ, M(s, t) = G(s, t) μ(t)/Z(s) fulfils w(s) M(s, t) = w(t) M(t, s) for
w = μZ. So M is self-adjoint in L²(w), and its spectrum lies in [0, 1].
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ictd._checks import FloatArray


class Reversible:
    """Quantities of Theorem A; all have the shape (...) of the batch.

    Args:
        scores: g, shape (..., S, S).
        visits: μ or visit counts, shape (..., S); only ratios matter.
        transition: P, shape (..., S, S).
        still: eigenvalues of M below this count as zero.

    Raises:
        ValueError: exp g is not symmetric and positive semidefinite on the visited states.
    """

    def __init__(
        self, scores: FloatArray, visits: FloatArray, transition: FloatArray, still: float
    ) -> None:
        mirrored = np.swapaxes(scores, -1, -2)
        largest = np.abs(scores, where=np.isfinite(scores), out=np.zeros(scores.shape)).max()
        # Inner products may be summed in another order on the other side of the diagonal.
        if not np.isclose(scores, mirrored, rtol=0, atol=1e-12 * (1 + largest)).all():
            raise ValueError("scores must be symmetric, g(s, t) = g(t, s), got others")
        self.transition, self.still = transition, still
        with np.errstate(divide="ignore"):
            self.log_visits: FloatArray = np.log(visits)
        # log Z, and log w = log μ + log Z; −∞ at states without visits or without a source.
        terms = scores + self.log_visits[..., None, :]
        top = terms.max(-1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            log_Z = top[..., 0] + np.log(np.exp(terms - top).sum(-1))
        self.log_Z: FloatArray = log_Z
        self.log_w: FloatArray = self.log_visits + log_Z
        # D^{1/2} M D^{−1/2}, symmetric, with the eigenvalues of M.
        self.counted = np.isfinite(self.log_w)
        with np.errstate(invalid="ignore"):
            half = np.where(self.counted, (self.log_visits - log_Z) / 2, -np.inf)
        symmetric = np.exp(scores + half[..., None] + half[..., None, :])
        self.spectrum: FloatArray = np.linalg.eigvalsh(symmetric)
        # The exponential turns the rounding of a large score into a relative error.
        if (self.spectrum < -1e-9 - 1e-14 * largest).any():
            raise ValueError(
                "scores must make exp g positive semidefinite on the visited states, got a kernel "
                f"with the eigenvalue {self.spectrum.min():.3g}"
            )

    @cached_property
    def smallest_eigenvalue(self) -> FloatArray:
        """The smallest eigenvalue of M that is not zero; 0 if all are."""
        smallest = np.where(self.spectrum > self.still, self.spectrum, np.inf).min(-1)
        return np.where(np.isfinite(smallest), smallest, 0.0)[()]

    @cached_property
    def numerical_radius(self) -> FloatArray:
        """λ_max of the symmetric part of D^{1/2} P D^{−1/2}; inf if a state without weight is entered."""
        similar = self._ratios(self.log_w, 0.5)
        finite = np.asarray(np.isfinite(similar).all((-2, -1)))
        similar = np.where(finite[..., None, None], similar, 0.0)
        top = np.linalg.eigvalsh((similar + np.swapaxes(similar, -1, -2)) / 2)[..., -1]
        return np.where(finite, top, np.inf)[()]

    @cached_property
    def norm_bound(self) -> FloatArray:
        """√(max_t (wᵀP)(t)/w(t)), at least the norm of P in L²(w)."""
        largest: FloatArray = self._ratios(self.log_w, 1.0).sum(-2).max(-1)
        return np.sqrt(largest)

    @cached_property
    def normaliser_bound(self) -> FloatArray:
        """√(Z_max/Z_min · max_t (μP)(t)/μ(t)), at least :attr:`norm_bound`."""
        visited = np.isfinite(self.log_visits)
        largest = np.where(visited, self.log_Z, -np.inf).max(-1)
        smallest = np.where(visited, self.log_Z, np.inf).min(-1)
        flow = self._ratios(self.log_visits, 1.0).sum(-2).max(-1)
        weighty = self.counted.any(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(weighty, np.sqrt(np.exp(largest - smallest) * flow), 0.0)[()]

    def _ratios(self, log_weights: FloatArray, power: float) -> FloatArray:
        """P(s, t) (w(s)/w(t))^power over the s of positive weight; inf where w(t) is 0 or far too small."""
        used = self.counted[..., None] & (self.transition > 0)
        with np.errstate(over="ignore", invalid="ignore"):
            exponent = power * (log_weights[..., None] - log_weights[..., None, :])
            return np.where(used, self.transition * np.exp(np.where(used, exponent, 0.0)), 0.0)
