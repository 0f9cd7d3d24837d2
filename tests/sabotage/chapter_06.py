"""Edits of chapter 6, each with the claims that must fail in the chapter so broken."""

from collections.abc import Callable
from typing import Any

from chapter_runs import after_check, replaced

# Training that does not move.
NO_TRAINING = """
from dataclasses import replace
_right = ictd.pretrain
ictd.pretrain = lambda config, **kwargs: _right(replace(config, learning_rate=1e-9), **kwargs)
"""

# Weights that shrink a little in every step, needed or not.
WEIGHT_DECAY = """
from dataclasses import replace
_right = ictd.pretrain
ictd.pretrain = lambda config, **kwargs: _right(replace(config, weight_decay=0.1), **kwargs)
"""

# Trained networks whose weight on the target has grown fourfold.
HEAVY_TARGET = """
_right = ictd.pretrain
def _wrong(config, **kwargs):
    result = _right(config, **kwargs)
    if "V" in result.parameters and config.masked:
        result.parameters["V"][..., 1] *= 4
    return result
ictd.pretrain = _wrong
"""

# The pass over states with γ off by one per cent.
WRONG_GAMMA = """
_right = ictd.state_pass
ictd.state_pass = lambda trajectory, x, A, V, gamma, n_layers=None: (
    _right(trajectory, x, A, V, 0.99 * gamma, n_layers)
)
"""

# A kernel whose rows sum to two.
DOUBLE_WEIGHTS = """
_right = ictd.population_operator
def _wrong(*args, **kwargs):
    operator = _right(*args, **kwargs)
    operator.M = 2 * operator.M
    return operator
ictd.population_operator = _wrong
"""

BROKEN: dict[str, tuple[Callable[[list[Any]], None], set[str]]] = {
    "no-training": (
        after_check(NO_TRAINING),
        {
            "signs",
            "cosine",
            "multiple-of-identity",
            "diagonality-grows",
            "all-figures-grow",
            "mean-above-threshold",
            "exact-reached",
            "theorem-a-reached",
            "exact-before-assumption",
            "faster",
            "learned",
            "below-constructed",
            "linear-above-softmax",
            "all-learn",
            "all-more-diagonal",
        },
    ),
    "weight-decay": (after_check(WEIGHT_DECAY), {"first-layer"}),
    "heavy-target": (after_check(HEAVY_TARGET), {"deeper"}),
    "gamma": (after_check(WRONG_GAMMA), {"literal", "row-meaning"}),
    "double-weights": (after_check(DOUBLE_WEIGHTS), {"constant-direction", "norm-bound"}),
    "lengths-reversed": (
        replaced("lengths = sorted(set(lengths))", "lengths = sorted(set(lengths))[::-1]"),
        {"longer"},
    ),
}
