"""The class that :mod:`ictd.operator` makes: a softmax kernel on a chain, and what it decides."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ictd import _checks
from ictd._checks import BoolArray, ComplexArray, FloatArray, IntArray
from ictd._iteration import StepSize, iterate, schedule, start_values
from ictd._moving import STILL, Moving
from ictd._reversible import Reversible
from ictd.kernels import visit_weights


class KernelOperator:
    """A softmax kernel on a chain; made by :func:`empirical_operator` and :func:`population_operator`.

    Every method that takes γ takes any γ in [0, 1); step sizes α are finite numbers. The *moving
    directions* are the values that a layer can change, the range of M: its dimension is ``rank``. It is S
    where all states are visited and M is not singular. States without visits, features that coincide and
    equal rows of the scores make it smaller; B is zero on as many dimensions, whatever the depth.

    Args:
        scores: g[query, source], shape (..., S, S).
        visits: visit counts N of a context, or the law μ of a population, shape (..., S).
        transition: P̃ of a context (zero rows at unvisited states), or P, shape (..., S, S).
        rewards: mean reward paid on leaving a state (0 where there is no visit), or r, shape (..., S).

    Attributes:
        scores, visits, transition, rewards: the arguments, with common leading dimensions.
        M: weight of source t in the update of query s as [s, t], shape (..., S, S); rows sum to one,
            except the zero rows of queries without a source.

    Raises:
        ValueError: leading dimensions that do not broadcast.
    """

    def __init__(
        self, scores: FloatArray, visits: FloatArray, transition: FloatArray, rewards: FloatArray
    ) -> None:
        batch = _checks.broadcast(scores=scores.shape[:-2], context=transition.shape[:-2])
        batch = _checks.broadcast(scores_and_context=batch, visits=visits.shape[:-1])
        S = scores.shape[-1]
        self.scores: FloatArray = np.broadcast_to(scores, (*batch, S, S))
        self.visits: FloatArray = np.broadcast_to(visits, (*batch, S))
        self.transition: FloatArray = np.broadcast_to(transition, (*batch, S, S))
        self.rewards: FloatArray = np.broadcast_to(rewards, (*batch, S))
        self.M: FloatArray = visit_weights(scores, visits) * visits[..., None, :]
        if self.M.shape[:-2] != batch:
            self.M = np.array(np.broadcast_to(self.M, (*batch, S, S)))

    @property
    def n_states(self) -> int:
        """Number of states S."""
        return int(self.M.shape[-1])

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading dimensions, () for a single chain."""
        return self.M.shape[:-2]

    def __repr__(self) -> str:
        shown = f", batch={self.batch}" if self.batch else ""
        return f"KernelOperator(n_states={self.n_states}{shown})"

    @cached_property
    def P(self) -> FloatArray:
        """M̂P̃ = P̂ of (20), or M_πP_π, the weight of next states as [query, next], shape (..., S, S)."""
        product: FloatArray = self.M @ self.transition
        return product

    @property
    def visited(self) -> BoolArray:
        """Which states are sources, shape (..., S)."""
        return self.visits > 0

    # --- Assumption 5.1: the diagonal of the kernel -------------------------------------------------

    @cached_property
    def _diagonal(self) -> FloatArray:
        return np.diagonal(self.M, axis1=-2, axis2=-1)

    def diagonality(self) -> FloatArray:
        """min_s M(s, s), the figure of Assumption 5.1; 0 if a state is unvisited. Shape (...)."""
        smallest: FloatArray = self._diagonal.min(-1)
        return smallest

    def state_mean_diagonality(self) -> FloatArray:
        """Mean of M(s, s) over the visited states, each counted once; shape (...)."""
        mean: FloatArray = self._diagonal.sum(-1) / self.visited.sum(-1)
        return mean

    def visit_weighted_diagonality(self) -> FloatArray:
        """Mean of M(s, s) over the visits: over the sources of a context, or under μ; shape (...)."""
        mean: FloatArray = (self.visits * self._diagonal).sum(-1) / self.visits.sum(-1)
        return mean

    def margin(self, gamma: float) -> FloatArray:
        """C = min_s M(s, s) − (1 + γ)/2; Assumption 5.1 holds where it is positive.

        Args:
            gamma: discount factor in [0, 1).

        Returns:
            C, shape (...).

        Raises:
            ValueError: gamma is outside [0, 1).
        """
        return self.diagonality() - (1 + _checks.discount(gamma)) / 2

    def contraction(self, gamma: float, step_size: float = 1.0) -> FloatArray:
        """‖I − αM + αγMP‖_∞, the contraction of a layer in the largest norm.

        A missing state makes it at least 1 for α ≥ 0: it does not see that such a state does no harm.

        Args:
            gamma: discount factor in [0, 1).
            step_size: α, a finite number.

        Returns:
            The norm, shape (...).

        Raises:
            ValueError: gamma is outside [0, 1), or step_size is not finite.
        """
        gamma, alpha = _checks.discount(gamma), _checks.real("step_size", step_size)
        layer = np.eye(self.n_states) - alpha * (self.M - gamma * self.P)
        norm: FloatArray = np.abs(layer).sum(-1).max(-1)
        return norm

    def bound(self, gamma: float, step_size: float = 1.0) -> FloatArray:
        """The paper's bound on :meth:`contraction`: 2(1 − min_s M(s, s)) + γ at α = 1.

        With a step size, `max_s |1 − αM(s, s)| + |α|(1 − M(s, s)) + |α|γ`, which is 1 − 2αC for
        0 < α ≤ 1. It is 2 + γ at α = 1 if a state is unvisited.

        Args:
            gamma: discount factor in [0, 1).
            step_size: α, a finite number.

        Returns:
            The bound, shape (...).

        Raises:
            ValueError: gamma is outside [0, 1), or step_size is not finite.
        """
        gamma, alpha = _checks.discount(gamma), _checks.real("step_size", step_size)
        m = self._diagonal
        bound: FloatArray = (np.abs(1 - alpha * m) + abs(alpha) * (1 - m + gamma)).max(-1)
        return bound

    # --- The spectrum -------------------------------------------------------------------------------

    @cached_property
    def moving(self) -> Moving:
        """The moving directions, their dimension ``rank`` and what the layers do on them."""
        return Moving(self.M)

    @property
    def rank(self) -> IntArray:
        """Number of moving directions; those slower than 1e-12 a layer are not counted. Shape (...)."""
        return self.moving.rank

    def eigenvalues(self, gamma: float) -> ComplexArray:
        """Eigenvalues of B = M(I − γP), by falling modulus.

        The first ``rank`` belong to the moving directions, the others are exactly 0.

        Args:
            gamma: discount factor in [0, 1).

        Returns:
            Complex eigenvalues, shape (..., S).

        Raises:
            ValueError: gamma is outside [0, 1).
        """
        return self.moving.eigenvalues(self._bellman(gamma))

    def spectral_radius(self, gamma: float, step_size: float = 1.0) -> FloatArray:
        """ρ(I − αB) on all states.

        It is at least 1 if ``rank`` < S, as a direction that does not move has the eigenvalue 1; see
        :meth:`rate`.

        Args:
            gamma: discount factor in [0, 1).
            step_size: α, a finite number.

        Returns:
            The spectral radius, shape (...).

        Raises:
            ValueError: gamma is outside [0, 1), or step_size is not finite.
        """
        alpha = _checks.real("step_size", step_size)
        radius: FloatArray = np.abs(1 - alpha * self.eigenvalues(gamma)).max(-1)
        return radius

    def rate(self, gamma: float, step_size: float = 1.0) -> FloatArray:
        """ρ(I − αB) on the moving directions alone.

        The iteration converges from every start exactly where this is below 1, and the error falls
        asymptotically by this factor a layer.

        Args:
            gamma: discount factor in [0, 1).
            step_size: α, a finite number.

        Returns:
            The rate, shape (...); 0 if nothing moves.

        Raises:
            ValueError: gamma is outside [0, 1), or step_size is not finite.
        """
        alpha = _checks.real("step_size", step_size)
        factors = np.abs(1 - alpha * self.eigenvalues(gamma))
        slowest: FloatArray = np.where(self.moving.mask, factors, 0.0).max(-1)
        return slowest

    def largest_step(self, gamma: float) -> FloatArray:
        """The α̅ for which the iteration converges exactly for 0 < α < α̅.

        It is the least `2 Re λ/|λ|²` over the eigenvalues λ of the moving directions.

        Args:
            gamma: discount factor in [0, 1).

        Returns:
            α̅, shape (...). 0 if no step size converges, as some λ has Re λ ≤ 0; inf if nothing moves, so
            that every step size will do.

        Raises:
            ValueError: gamma is outside [0, 1).
        """
        values = self.eigenvalues(gamma)
        size = np.abs(values) ** 2
        steps = np.divide(2 * values.real, size, out=np.zeros_like(size), where=size > 0)
        smallest: FloatArray = np.where(self.moving.mask, steps, np.inf).min(-1)
        return np.maximum(smallest, 0.0)

    # --- Where the depth goes -----------------------------------------------------------------------

    def values(
        self,
        gamma: float,
        n_layers: int,
        step_size: StepSize = 1.0,
        initial: Any = None,
    ) -> FloatArray:
        """The values v_0 … v_L of all states, in O(S²) a layer.

        On a context these are :func:`ictd.weighted_softmax_td`, to rounding.

        Args:
            gamma: discount factor in [0, 1).
            n_layers: L ≥ 0.
            step_size: α, a finite number, or a sequence α_0 … α_{L−1}, or a function l ↦ α_l.
            initial: v_0, shape (S,) or (..., S); None means zero.

        Returns:
            Values v_0 … v_L, shape (..., L+1, S).

        Raises:
            ValueError: an argument is outside what is said above.
        """
        gamma = _checks.discount(gamma)
        alphas = schedule(step_size, _checks.integer("n_layers", n_layers, 0))
        start = start_values("initial", initial, self.n_states, self.batch)

        def update(v: FloatArray) -> FloatArray:
            error = self.rewards + gamma * _apply(self.transition, v) - v
            return _apply(self.M, error)

        return iterate(start, update, alphas)

    def fixed_point(self, gamma: float) -> FloatArray:
        """Certainty-equivalent values (I − γP)⁻¹ r, with the value 0 at unvisited states.

        No update moves it, whatever the kernel. On a context it is :func:`ictd.certainty_equivalence`; of
        a population, v_π. If the context ends in a visited state, its values at visited states depend on
        nothing else, and v at unvisited states may be anything. If it ends in an unvisited one, other
        values there give other fixed points; :meth:`limit` says which one the depth finds.

        Args:
            gamma: discount factor in [0, 1).

        Returns:
            Values, shape (..., S).

        Raises:
            ValueError: gamma is outside [0, 1).
        """
        visited = self.visited
        # The row of an unvisited state becomes the equation v(s) = 0.
        bellman = np.where(visited[..., None], self._bellman(gamma), np.eye(self.n_states))
        rewards = np.where(visited, self.rewards, 0.0)
        return np.linalg.solve(bellman, rewards[..., None])[..., 0].astype(np.float64)

    def limit(self, gamma: float, initial: Any = None) -> FloatArray:
        """Where the layers go from v_0, in closed form, at visited and unvisited states.

        It is the one fixed point that differs from v_0 by moving directions only, and the limit for
        every α for which :meth:`rate` is below 1; it does not depend on α otherwise. Where no
        α converges (:meth:`largest_step` is 0) it is a fixed point that the layers move away from.

        - All states visited and M not singular: :meth:`fixed_point`, whatever the kernel and v_0.
        - The last state visited: the same at the visited states; the others are interpolated with
          :meth:`interpolation_weights`. The kernel decides those.
        - The last state unvisited: the kernel decides all values.
        - Features that coincide: LSTD on the classes of equal features, from v_0 = 0.

        Args:
            gamma: discount factor in [0, 1).
            initial: v_0, shape (S,) or (..., S); None means zero.

        Returns:
            Values, shape (..., S); NaN for a chain where there is no such point, or a whole line of them.

        Raises:
            ValueError: an argument is outside what is said above.
        """
        start = start_values("initial", initial, self.n_states, self.batch)
        bellman = self._bellman(gamma)
        error = self.rewards - _apply(bellman, start)
        return start + self.moving.displacement(bellman, error)

    def interpolation_weights(self) -> FloatArray:
        """W with v_l(s) − v_0(s) = Σ_t W(s, t) (v_l(t) − v_0(t)) over the visited t, at every depth l.

        Shape (..., S, S), [state, visited state]; columns of unvisited states are zero. Visited rows are
        the identity if M is not singular on them, and unvisited rows M_{uV} M_{VV}⁻¹: weights of either
        sign. NaN in the rows of unvisited states that the visited ones do not determine, which no
        positive definite exp g brings about.
        """
        return self.moving.interpolation(self.visited)

    # --- Beyond Assumption 5.1: Theorem A -----------------------------------------------------------

    @cached_property
    def reversible(self) -> Reversible:
        """M as a reversible kernel; needs scores whose exponential is symmetric, positive semidefinite.

        Raises:
            ValueError: the scores are not of that kind.
        """
        return Reversible(self.scores, self.visits, self.transition, STILL)

    def nu(self, gamma: float) -> FloatArray:
        """ν = γ λ_max of the symmetric part of D^{1/2} P D^{−1/2}, D = diag(w), w = μZ.

        Below 1 it certifies convergence for 0 < α < 2/(1 + ν).

        Args:
            gamma: discount factor in [0, 1).

        Returns:
            ν, shape (...); inf if the context ends in an unvisited state and γ > 0, since then there is no
            certificate.

        Raises:
            ValueError: gamma is outside [0, 1), or exp g is not symmetric and positive semidefinite on the
                visited states.
        """
        return _discounted(gamma, self.reversible.numerical_radius)

    def nu_bound(self, gamma: float) -> FloatArray:
        """γ √(max_s (wᵀP)(s)/w(s)) ≥ ν, without an eigenvalue.

        Args:
            gamma: discount factor in [0, 1).

        Returns:
            The bound on ν, shape (...).

        Raises:
            ValueError: gamma is outside [0, 1), or exp g is not symmetric and positive semidefinite on the
                visited states.
        """
        return _discounted(gamma, self.reversible.norm_bound)

    def nu_bound_of_normalisers(self, gamma: float) -> FloatArray:
        """γ √(Z_max/Z_min · max_s (μP)(s)/μ(s)) ≥ :meth:`nu_bound`.

        The second factor is 1 under the stationary law, where features with ‖x‖ ≤ R make this at most
        γ e^{R²}. It is not 1 for a context, unless it ends where it started: (NP̃)(S_n) is N(S_n) + 1.

        Args:
            gamma: discount factor in [0, 1).

        Returns:
            The bound on ν, shape (...).

        Raises:
            ValueError: gamma is outside [0, 1), or exp g is not symmetric and positive semidefinite on the
                visited states.
        """
        return _discounted(gamma, self.reversible.normaliser_bound)

    def theorem_a_rate(self, gamma: float, step_size: float = 1.0) -> FloatArray:
        """The larger `|1 − αs| + |α|sν` of s = 1 and the smallest s > 0 in the spectrum of M.

        An upper bound on :meth:`rate` for every α; below 1 exactly if ν < 1 and 0 < α < 2/(1 + ν). At
        α = 1 it is then 1 − (1 − ν) s.

        Args:
            gamma: discount factor in [0, 1).
            step_size: α, a finite number.

        Returns:
            The rate, shape (...); inf where ν is, 0 if nothing moves.

        Raises:
            ValueError: gamma is outside [0, 1), step_size is not finite, or exp g is not symmetric and
                positive semidefinite on the visited states.
        """
        alpha, nu = _checks.real("step_size", step_size), self.nu(gamma)
        smallest = self.reversible.smallest_eigenvalue
        # Without the product 0 · inf of a zero step.
        spread = abs(alpha) * nu if alpha else np.zeros_like(nu)
        ends = [np.abs(1 - alpha * s) + s * spread for s in (np.ones_like(nu), smallest)]
        with np.errstate(invalid="ignore"):
            return np.where(smallest > 0, np.maximum(*ends), 0.0)[()]

    def _bellman(self, gamma: float) -> FloatArray:
        bellman: FloatArray = np.eye(self.n_states) - _checks.discount(gamma) * self.transition
        return bellman


def _apply(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    product: FloatArray = (matrix @ vector[..., None])[..., 0]
    return product


def _discounted(gamma: float, radius: FloatArray) -> FloatArray:
    """γ · radius; 0 at γ = 0 even where the radius is infinite, as no update then reads a next value."""
    gamma = _checks.discount(gamma)
    return gamma * radius if gamma else np.zeros_like(radius)[()]
