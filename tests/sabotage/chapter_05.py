"""Edits of chapter 5, each with the claims that must fail in the chapter so broken."""

from collections.abc import Callable
from typing import Any

from chapter_runs import after_check, replaced

# The network of a masked run has its row of V where the target memory is.
WRONG_ROW = """
import ictd._models
_network = ictd._models.MaskedSoftmax.network
def _shifted(self, parameters):
    network = _network(self, parameters)
    with torch.no_grad():
        network.V.copy_(network.V.roll(-1, 0))
    return network
ictd._models.MaskedSoftmax.network = _shifted
"""

# The library's estimate with the sign of the reward flipped.
WRONG_SIGN = """
_neu = ictd.neu
ictd.neu = lambda V, A, **setting: _neu(V * [-1, 1, 1], A, **setting)
"""

# The values of the empirical chain with γ off by one per cent.
WRONG_END = """
_end = ictd.certainty_equivalence
ictd.certainty_equivalence = lambda context, n_states, gamma: _end(context, n_states, 0.99 * gamma)
"""

BROKEN: dict[str, tuple[Callable[[list[Any]], None], set[str]]] = {
    "masks": (after_check(WRONG_ROW), {"masks"}),
    "sign": (
        after_check(WRONG_SIGN),
        {
            "literal",
            "zero",
            "deeper",
            "short-floor",
            "wrong-signs",
            "other-steps",
            "other-kernels",
            "flat-kernel",
            "falls-in-training",
        },
    ),
    "biased": (
        replaced("J = (total @ total - (g**2).sum()) / (N * (N - 1))", "J = total @ total / N**2"),
        {"naive-bias"},
    ),
    "overconfident": (replaced("return J, np.sqrt(4", "return J, 0.3 * np.sqrt(4"), {"coverage"}),
    "end": (after_check(WRONG_END), {"limit-gradient"}),
    "circle-long": (
        replaced("V_td, np.eye(2), n, L,", "V_td, np.eye(2), 100, L,"),
        {"order-short"},
    ),
    "circle-short": (
        replaced("V_td, np.eye(2), n, L,", "V_td, np.eye(2), 5, L,"),
        {"order-long"},
    ),
    "layers": (
        replaced('scale * A_td, n, L, "zero")', 'scale * A_td, n, L + 3, "zero")'),
        {"at-zero"},
    ),
}
