"""Edits of chapter 7, each with the claims that must fail in the chapter so broken."""

from collections.abc import Callable
from typing import Any

from chapter_runs import after_check, replaced

# Scores that prefer later states: exp g is no longer symmetric, the scores that are kept still are.
NOT_REVERSIBLE = """
_weights = ictd._kernel_operator.visit_weights
def _tilted(scores, visits):
    return _weights(scores + 0.7 * np.triu(np.ones(np.shape(scores)[-2:])), visits)
ictd._kernel_operator.visit_weights = _tilted
"""

# Weights of a query that do not sum to one.
NOT_NORMALISED = """
_weights = ictd._kernel_operator.visit_weights
def _less(scores, visits):
    return 0.9 * _weights(scores, visits)
ictd._kernel_operator.visit_weights = _less
"""

# Half the numerical radius, as if only the average of P and its transpose with half weights counted.
HALF_NU = """
_nu = ictd.KernelOperator.nu
ictd.KernelOperator.nu = lambda self, gamma: 0.5 * _nu(self, gamma)
"""

# The cheap tests without a part of what makes them bounds.
LOW_TESTS = """
_by_w, _by_Z = ictd.KernelOperator.nu_bound, ictd.KernelOperator.nu_bound_of_normalisers
ictd.KernelOperator.nu_bound = lambda self, gamma: 0.6 * _by_w(self, gamma)
ictd.KernelOperator.nu_bound_of_normalisers = lambda self, gamma: 0.9 * _by_Z(self, gamma)
"""

# Rates twice as large.
DOUBLE_RATE = """
_rate = ictd.KernelOperator.rate
ictd.KernelOperator.rate = lambda self, gamma, step_size=1.0: 2 * _rate(self, gamma, step_size)
"""

# A largest step that is positive everywhere and mostly too small.
SMALL_STEP = """
_step = ictd.KernelOperator.largest_step
ictd.KernelOperator.largest_step = lambda self, gamma: 0.4 * _step(self, gamma) + 0.01
"""

# Contexts read with a much sharper kernel, and ends computed with another discount factor or far off.
WRONG_CONTEXT = """
_operator = ictd.empirical_operator
ictd.empirical_operator = lambda trajectory, scores: _operator(trajectory, 9 * scores)
_fixed = ictd.KernelOperator.fixed_point
ictd.KernelOperator.fixed_point = lambda self, gamma: _fixed(self, 0.99 * gamma)
_ends = ictd.certainty_equivalence
ictd.certainty_equivalence = lambda *args: 10 + _ends(*args)
"""

# All features long, of different norms, and in the plane.
LONG_FEATURES = """
def _long(S, d, rng, batch=()):
    return 3 * rng.normal(size=(*batch, S, 2))
ictd.uniform_features = ictd.sphere_features = _long
"""

# Chains whose transition matrices are symmetric, but for the turning ones.
SYMMETRIC_CHAINS = """
def _symmetric(S, gamma, rng, batch=()):
    P = np.broadcast_to(0.5 * np.eye(S) + 0.5 / S, (*batch, S, S))
    return ictd.MarkovRewardProcess(P, np.zeros(S), gamma)
ictd.boyan_chain = ictd.loop_chain = _symmetric
ictd.random_chain = _symmetric
"""

BROKEN: dict[str, tuple[Callable[[list[Any]], None], set[str]]] = {
    "not-reversible": (
        after_check(NOT_REVERSIBLE),
        {"reversible", "theorem-a-factor", "one-hot-spectrum", "one-hot-rate", "equal-flow"},
    ),
    "not-normalised": (after_check(NOT_NORMALISED), {"one-minus-gamma", "two-states"}),
    "half-nu": (
        after_check(HALF_NU),
        {"theorem-a-shift", "theorem-a-rate", "theorem-a-coincide", "nu-form", "table-complement"},
    ),
    "low-tests": (after_check(LOW_TESTS), {"cheap-order", "certificate-flow"}),
    "double-rate": (
        after_check(DOUBLE_RATE),
        {
            "theorem-a-rate",
            "certificate",
            "one-hot-rate",
            "assumption-rate",
            "table-converges",
            "cycle-rate",
            "diverging",
            "norm",
            "rare-equal",
            "two-states-converge",
        },
    ),
    "small-step": (
        after_check(SMALL_STEP),
        {"step-edge", "step-theorem-a", "cycle-no-step", "near"},
    ),
    "wrong-context": (
        after_check(WRONG_CONTEXT),
        {"certificate-limit", "certificate-end", "theorem-2-beyond"},
    ),
    "long-features": (after_check(LONG_FEATURES), {"table-converges"}),
    "symmetric-chains": (after_check(SYMMETRIC_CHAINS), {"theorem-a-complex"}),
    "norms-kept": (
        replaced("    if equal:\n        x = x", "    if False:\n        x = x"),
        {"rare-equal", "equal-flow", "equal-trace", "three-states"},
    ),
    "norms-equal": (
        replaced("    if equal:\n        x = x", "    if True:\n        x = x"),
        {"not-rare-any"},
    ),
    "four-faster": (
        replaced('e, g = Decimal("1e-4")', 'e, g = Decimal("1e-2")'),
        {"four-no-step"},
    ),
    "four-apart": (
        replaced("[0.75, 0.0, 0.05, 0.25]", "[0.75, 0.0, 0.4, 1.2]"),
        {"four-residual", "four-slow", "diverging", "near"},
    ),
}
