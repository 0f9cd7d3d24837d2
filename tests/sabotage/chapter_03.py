"""Edits of chapter 3, each with the claims that must fail in the chapter so broken."""

from collections.abc import Callable
from typing import Any

from chapter_runs import after_check, replaced

# The algorithm with γ off by one per cent.
WRONG_GAMMA = """
_right = ictd.weighted_softmax_td
def _wrong(trajectory, scores, gamma, *args, **kwargs):
    return _right(trajectory, scores, 0.99 * gamma, *args, **kwargs)
ictd.weighted_softmax_td = _wrong
"""

# The dual head with another discount factor.
WRONG_DUAL = """
_td = ictd.DualHeadTransformer.td
ictd.DualHeadTransformer.td = lambda d, gamma, n_layers: _td(d, 0.99 * gamma, n_layers)
"""

# The temporal shift with another discount factor.
WRONG_SHIFT = """
_shift_td = ictd.SoftmaxTransformer.td
ictd.SoftmaxTransformer.td = lambda d, gamma, n_layers: _shift_td(d, 0.99 * gamma, n_layers)
"""

# Rows of the attention matrix sum to one, not columns.
ROWS_NORMALISED = """
def _rows(Z, A):
    last = torch.zeros(Z.shape[-1], 1).index_fill(0, torch.tensor(Z.shape[-1] - 1), 1)
    return torch.softmax(Z.mT @ A @ Z, dim=-1) * (1 - last)
ictd.transformer.column_softmax = _rows
"""

# The shift does not clear the target row, which then has a gradient.
NOT_CLEARED = """
_matrices = ictd.temporal_shift_matrices
def _uncleared(d, gamma, dtype=torch.float64):
    return torch.eye(d + 3, dtype=dtype), _matrices(d, gamma, dtype)[1]
ictd.temporal_shift_matrices = ictd.transformer.temporal_shift_matrices = _uncleared
"""

# The library's pass over states with γ off by one per cent.
WRONG_STATES = """
_pass = ictd.state_pass
ictd.state_pass = lambda context, x, A, V, gamma: _pass(context, x, A, V, 0.99 * gamma)
"""

# The library's pass over states looks at each pair of positions.
SLOW_STATES = """
_fast = ictd.state_pass
def _slow(context, *args):
    ones = torch.ones(context.n, 1)
    ones @ ones.T
    return _fast(context, *args)
ictd.state_pass = _slow
"""

BROKEN: dict[str, tuple[Callable[[list[Any]], None], set[str]]] = {
    "gamma": (after_check(WRONG_GAMMA), {"theorem-1-cases", "no-mask"}),
    "dual": (after_check(WRONG_DUAL), {"walk", "theorem-1-cases", "lemma-1"}),
    "shift": (after_check(WRONG_SHIFT), {"theorem-1-cases", "lemma-1"}),
    "rows": (after_check(ROWS_NORMALISED), {"walk", "theorem-1-cases"}),
    "not-cleared": (after_check(NOT_CLEARED), {"lemma-1", "lemma-1-scope", "lemma-1-gradient"}),
    "small-target-row": (
        replaced("V[:, d + 1] *= target_row", "V[:, d + 1] *= 0.01"),
        {"lemma-1-scope"},
    ),
    "no-target-row": (
        replaced("V[:, d + 1] *= target_row", "V[:, d + 1] *= 0"),
        {"lemma-1-outside"},
    ),
    "mask-kept": (
        replaced('if part in ("mask", "columns"):', 'if part == "columns":'),
        {"no-mask", "parts-needed"},
    ),
    "shift-kept": (replaced('if part == "shift":', "if False:"), {"no-shift", "parts-needed"}),
    "counts-ignored": (
        replaced("torch.softmax(g + N.log(), dim=1)", "torch.softmax(g, dim=1)"),
        {"states-values", "states-gradients"},
    ),
    "states-gamma": (after_check(WRONG_STATES), {"states-values", "states-gradients"}),
    "gradient-cut": (
        replaced("v = v + M_hat @ (a", "v = v.detach() + M_hat @ (a"),
        {"states-gradients"},
    ),
    "slow": (after_check(SLOW_STATES), {"states-cost"}),
}
