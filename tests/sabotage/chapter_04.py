"""Edits of chapter 4, each with the claims that must fail in the chapter so broken."""

from collections.abc import Callable
from typing import Any

from chapter_runs import after_check, replaced

# The library's iteration with γ off by one per cent, and a bound on the norm that is too small.
WRONG_GAMMA = """
_right_td = ictd.weighted_softmax_td
def _wrong_td(trajectory, scores, gamma, *args, **kwargs):
    return _right_td(trajectory, scores, 0.99 * gamma, *args, **kwargs)
ictd.weighted_softmax_td = _wrong_td

_right_bound = ictd.KernelOperator.bound
ictd.KernelOperator.bound = lambda self, *args: 0.9 * _right_bound(self, *args)
"""

# Weights that sum to one over the queries of a source instead of the sources of a query.
ROWS_NORMALISED = """
import ictd._kernel_operator
_right = ictd._kernel_operator.visit_weights
def _wrong(scores, visits):
    weights = _right(scores, visits)
    return weights / np.maximum(weights.sum(-2, keepdims=True), 1e-300)
ictd._kernel_operator.visit_weights = _wrong
"""

# True values at another discount factor.
WRONG_VALUES = """
def _wrong(chain):
    bellman = np.eye(chain.n_states) - 0.99 * chain.gamma * chain.transition
    return np.linalg.solve(bellman, chain.reward[..., None])[..., 0]
ictd.MarkovRewardProcess.value = property(_wrong)
"""

# A population in which all states are met equally often.
UNIFORM_LAW = """
_right = ictd.population_operator
def _wrong(chain, scores):
    return _right(chain, scores, law=np.full(chain.n_states, 1 / chain.n_states))
ictd.population_operator = _wrong
"""

# Contexts that do not grow.
NO_GROWTH = """
ictd.Counts.extended = lambda self, part: self
"""

# Norms that are too large, rates that are too small.
WRONG_NORMS = """
_right_norm = ictd.KernelOperator.contraction
ictd.KernelOperator.contraction = lambda self, *args: 1.5 * _right_norm(self, *args)
_right_rate = ictd.KernelOperator.rate
ictd.KernelOperator.rate = lambda self, *args: 0.95 * _right_rate(self, *args)
"""

# Chains that seem to mix fifty times faster than they do.
SHORT_HITTING_TIMES = """
_right = ictd.hitting_times
ictd.bounds.hitting_times = ictd.hitting_times = lambda chain: 0.02 * _right(chain)
"""

# The floor of Theorem 2 a thousand times too low.
LOW_FLOOR = """
_right = ictd.Theorem2.floor
ictd.Theorem2.floor = lambda self, *args: 0.001 * _right(self, *args)
"""

# A margin that promises a faster contraction than any kernel has.
WIDE_MARGIN = """
import dataclasses
_right = ictd.theorem_2
def _wrong(*args):
    theorem = _right(*args)
    return dataclasses.replace(theorem, C=3 * theorem.C)
ictd.theorem_2 = _wrong
"""

# Ends of the depth at another discount factor, and interpolation that shrinks.
WRONG_ENDS = """
_right_point = ictd.KernelOperator.fixed_point
ictd.KernelOperator.fixed_point = lambda self, gamma: _right_point(self, 0.99 * gamma)
_right_limit = ictd.KernelOperator.limit
ictd.KernelOperator.limit = lambda self, gamma: _right_limit(self, 0.99 * gamma)
_right_weights = ictd.KernelOperator.interpolation_weights
ictd.KernelOperator.interpolation_weights = lambda self: 0.9 * _right_weights(self)
"""

# Features that are one-hot, and long, in place of random ones.
LONG_ONE_HOT = """
ictd.uniform_features = lambda n_states, *_: 3 * np.eye(n_states)
"""


def both(*edits: Callable[[list[Any]], None]) -> Callable[[list[Any]], None]:
    """One edit after the other."""

    def edit(cells: list[Any]) -> None:
        for one in edits:
            one(cells)

    return edit


BROKEN: dict[str, tuple[Callable[[list[Any]], None], set[str]]] = {
    "gamma": (after_check(WRONG_GAMMA), {"affine-map", "norm-missing"}),
    "rows": (
        after_check(ROWS_NORMALISED),
        {
            "operator-definition",
            "operator-rows",
            "p-hat-factor",
            "network-layers",
            "constant-direction",
        },
    ),
    "values": (
        after_check(WRONG_VALUES),
        {"population-fixed-point", "floor-identity", "limit-law"},
    ),
    "law": (after_check(UNIFORM_LAW), {"population-limit", "one-hot-threshold"}),
    "growth": (after_check(NO_GROWTH), {"population-limit", "floor-slope"}),
    "norms": (
        after_check(WRONG_NORMS),
        {
            "norm-bound",
            "norm-population",
            "norm-context",
            "context-contracts",
            "depth-rate",
        },
    ),
    "hitting-times": (after_check(SHORT_HITTING_TIMES), {"poisson", "counts-near"}),
    "constants": (
        both(
            after_check(LOW_FLOOR),
            replaced("(1 + eta) * (1 - M)", "(1 - eta) * (1 - M)"),
            replaced("allowed = theorem.span", "allowed = 0.01 * theorem.span"),
        ),
        {"theorem-2", "counts-cost", "successors-near"},
    ),
    "margin": (after_check(WIDE_MARGIN), {"depth-bound", "context-contracts"}),
    "ends": (
        after_check(WRONG_ENDS),
        {"same-end", "unvisited-limit", "unvisited-depth", "last-state-unvisited"},
    ),
    "one-hot": (after_check(LONG_ONE_HOT), {"assumption-rare"}),
}
