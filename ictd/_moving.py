"""The directions that a softmax kernel moves, and the iteration seen on them.

v ← v + αM(r + γPv − v) changes v within the range of M only, whatever α and the depth. With
M = U diag(σ) Wᵀ cut to σ > 0, v_l = v_0 + U c_l, and B = M(I − γP) acts as diag(σ) Wᵀ(I − γP)U on c.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ictd._checks import FloatArray

# A direction that one layer moves by less than this counts as still: it would take 1e12 layers, and
# rounding could not tell the sign of its eigenvalue.
STILL = 1e-12


class Moving:
    """The range of M, for every chain of a batch; what does not move is zero in U, σ and W.

    Args:
        M: kernel, shape (..., S, S), [query, source].
    """

    def __init__(self, M: FloatArray) -> None:
        U, sigma, Wt = np.linalg.svd(M)
        moves = sigma > STILL * sigma[..., :1]
        self.sigma: FloatArray = np.where(moves, sigma, 0.0)
        self.U: FloatArray = np.where(moves[..., None, :], U, 0.0)
        self.Wt: FloatArray = np.where(moves[..., None], Wt, 0.0)
        self.rank: NDArray[np.int64] = np.asarray(moves.sum(-1))
        # σ falls, so the moving directions come first.
        self.mask: NDArray[np.bool_] = moves

    def eigenvalues(self, bellman: FloatArray) -> NDArray[np.complex128]:
        """Eigenvalues of M · bellman by falling modulus, the last S − rank exactly 0; (..., S)."""
        on_range = self.sigma[..., None] * (self.Wt @ bellman @ self.U)
        values = np.linalg.eigvals(on_range).astype(np.complex128)
        order = np.argsort(-np.abs(values), axis=-1, kind="stable")
        return np.where(self.mask, np.take_along_axis(values, order, axis=-1), 0.0)

    def displacement(self, bellman: FloatArray, error: FloatArray) -> FloatArray:
        """The Uc with M(error − bellman Uc) = 0, shape (..., S); NaN where none or many solve it."""
        S = bellman.shape[-1]
        # σ drops out of the equation, and with it the small numbers. What is still gets c = 0.
        system = self.Wt @ bellman @ self.U + ~self.mask[..., None] * np.eye(S)
        singular = np.linalg.cond(system) > 1e14
        system = np.where(singular[..., None, None], np.eye(S), system)
        c = np.linalg.solve(system, self.Wt @ error[..., None])
        return np.where(singular[..., None], np.nan, (self.U @ c)[..., 0])

    def interpolation(self, visited: NDArray[np.bool_]) -> FloatArray:
        """W with Uc = W (Uc at visited states) for every c; NaN in rows that these do not determine."""
        at_visited = np.where(visited[..., None], self.U, 0.0)
        weights = self.U @ np.linalg.pinv(at_visited, rcond=STILL)
        determined = np.linalg.matrix_rank(at_visited, tol=STILL) == self.rank
        known = determined[..., None] | visited
        return np.where(known[..., None], weights, np.nan)
