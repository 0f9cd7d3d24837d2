"""The operator of weighted softmax TD: M̂ and P̂ of a context, M_π of a chain.

With M[query, source] the weight that a query puts on *all* visits of a source, P the transition matrix
between states and r the rewards, a layer is v ← v + α M (r + γPv − v) = (I − αB) v + α M r with
B = M (I − γP): (20)–(22) of arXiv:2605.07333v2, whatever the length of the context. Arrays may carry
leading batch dimensions, and everything here is computed for all chains of a batch at once.
"""

from __future__ import annotations

from typing import Any

from ictd import _checks
from ictd._kernel_operator import KernelOperator
from ictd.counts import Counts
from ictd.kernels import check_scores
from ictd.mrp import MarkovRewardProcess, Trajectory


def empirical_operator(
    trajectory: Trajectory | Counts, scores: Any, n_states: int | None = None
) -> KernelOperator:
    """M̂ and P̂ = M̂P̃ of (20), from a context or from its counts: O(n) once, then O(S³) whatever n is.

    A source is visited if the context leaves it. An unvisited state t has a zero column in M̂, a zero row
    in P̃ and the reward 0: no update reads its value, unless the context ends there. An unvisited query has
    a row of M̂ like any other. A query that no visited source scores above −∞ has a zero row.

    Args:
        trajectory: context with states (..., n+1), or ``Counts`` of contexts, sums of counts included.
        scores: g[query, source], any (..., S, S) array of finite numbers or −∞.
        n_states: S; None means the size of the scores.

    Returns:
        The operator of each context, leading dimensions those of contexts and scores together.

    Raises:
        ValueError: an argument is outside what is said above, n_states is not the size of the scores, or
            counts are empty.
    """
    g = check_scores(scores)
    S = g.shape[-1]
    if n_states is not None and _checks.integer("n_states", n_states, 1) != S:
        raise ValueError(f"n_states must be {S}, the size of scores {g.shape}, got {n_states}")
    if isinstance(trajectory, Counts):
        counts = trajectory
        if counts.n_states != S:
            raise ValueError(
                f"trajectory must hold counts of {S} states, the size of scores {g.shape}, "
                f"got {counts.n_states}"
            )
    else:
        counts = Counts.of(trajectory, S)
    if not (counts.visits.sum(-1) > 0).all():
        raise ValueError("trajectory must hold at least one transition in each context, got none")
    return KernelOperator(g, counts.visits, *counts.empirical_chain())


def population_operator(mrp: MarkovRewardProcess, scores: Any, law: Any = None) -> KernelOperator:
    """M_π and M_πP_π of (22): where M̂ and P̂ of a context go as it grows.

    Args:
        mrp: a chain, or a batch of chains.
        scores: g[query, source], any (..., S, S) array of finite numbers or −∞.
        law: distribution of the sources, shape (S,) or (..., S). None means the stationary law, which an
            irreducible chain has, periodic or not; another law makes learning off-policy.

    Returns:
        The operator of each chain, leading dimensions those of chains, scores and law together.

    Raises:
        ValueError: a chain is reducible and law is None, the law is no distribution, or the scores are
            not as said above.
    """
    if not isinstance(mrp, MarkovRewardProcess):
        raise ValueError(f"mrp must be an ictd.MarkovRewardProcess, got {type(mrp).__name__}")
    g = check_scores(scores)
    if g.shape[-1] != mrp.n_states:
        raise ValueError(
            f"scores must have shape (..., {mrp.n_states}, {mrp.n_states}), got {g.shape}"
        )
    if law is None:
        return KernelOperator(g, mrp.stationary, mrp.transition, mrp.reward)
    mu = _checks.floats("law", law)
    if mu.ndim < 1 or mu.shape[-1] != mrp.n_states:
        raise ValueError(f"law must have shape (..., {mrp.n_states}), got {mu.shape}")
    _checks.distributions("law", mu)
    return KernelOperator(g, mu, mrp.transition, mrp.reward)
