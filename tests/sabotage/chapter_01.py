"""Edits of chapter 1, each with the claims that must fail in the chapter so broken."""

from collections.abc import Callable
from typing import Any

from chapter_runs import after_check, replaced

# Prompts of linear in-context TD with γ off by one per cent.
WRONG_GAMMA = """
_right = ictd.linear_prompt
ictd.linear_prompt = lambda context, x, gamma, query=None: _right(
    context, x, 0.99 * gamma, query
)
"""

# Scores of the other sign.
FLIPPED_Q = """
_right = ictd.LinearTransformer.td
def _wrong(d, n_layers):
    network = _right(d, n_layers)
    network.Q *= -1
    return network
ictd.LinearTransformer.td = _wrong
"""

# A softmax in the linear network.
SOFTMAX_IN_LINEAR = """
ictd.LinearTransformer.layer = lambda self, Z, layer: (
    Z + self.P @ Z @ ictd.softmax_attention(Z, self.Q)
)
"""

# Softmax weights that sum to one over the queries of a source.
ROWS_NORMALISED = """
def _wrong(Z, A):
    weights = torch.softmax(Z.mT @ A @ Z, dim=-1)
    weights[..., -1, :] = 0
    return weights
ictd.softmax_attention = _wrong
"""

# The query is masked by multiplication, after the softmax.
MASKED_LATE = """
def _wrong(Z, A):
    weights = torch.softmax(Z.mT @ A @ Z, dim=-2)
    weights[..., -1, :] = 0
    return weights
ictd.softmax_attention = _wrong
"""

# Scores divided by n in the place of their softmax.
NO_SOFTMAX = """
def _wrong(Z, A):
    weights = Z.mT @ A @ Z / (Z.shape[-1] - 1)
    weights[..., -1, :] = 0
    return weights
ictd.softmax_attention = _wrong
"""

# Linear attention that forms all scores.
SCORES_FIRST = """
def _wrong(Z, P, Q):
    context = Z[..., :-1]
    return P @ (context @ (context.mT @ Q @ Z)) / context.shape[-1]
ictd.linear_attention = _wrong
"""

# Softmax attention that scores the sources alone.
SOURCES_ALONE = """
def _wrong(Z, A):
    weights = torch.softmax(Z[..., :-1].mT @ A @ Z, dim=-2)
    return torch.cat([weights, torch.zeros_like(weights[..., :1, :])], dim=-2)
ictd.softmax_attention = _wrong
"""

BROKEN: dict[str, tuple[Callable[[list[Any]], None], set[str]]] = {
    "gamma": (after_check(WRONG_GAMMA), {"linear-layers", "scale-is-step", "linear-splits"}),
    "flipped": (
        after_check(FLIPPED_Q),
        {"linear-layers", "scale-is-step", "linear-splits", "most-dissimilar"},
    ),
    "softmax-in-linear": (
        after_check(SOFTMAX_IN_LINEAR),
        {"linear-layers", "scale-is-step", "linear-in-query"},
    ),
    "step": (
        replaced("network.n_layers, c**2)", "network.n_layers, c)"),
        {"scale-is-step"},
    ),
    "sharpness": (
        replaced("beta * torch.eye", "1 / (1 + beta) * torch.eye"),
        {"entropy-falls", "entropy-slope"},
    ),
    "variance": (replaced("slope + beta * variance", "slope + variance"), {"entropy-slope"}),
    "rows": (
        after_check(ROWS_NORMALISED),
        {
            "entropy-slope",
            "most-dissimilar",
            "moves-are-means",
            "equal-rewards",
            "total-weight",
            "columns-blind-to-query",
        },
    ),
    "masked-late": (
        after_check(MASKED_LATE),
        {"equal-rewards", "total-weight", "columns-blind-to-query"},
    ),
    "no-softmax": (
        after_check(NO_SOFTMAX),
        {
            "softmax-does-not-split",
            "moves-are-means",
            "equal-rewards",
            "not-linear-in-query",
            "flipped-first-layer",
            "total-weight",
        },
    ),
    "scores-first": (after_check(SCORES_FIRST), {"operations"}),
    "sources-alone": (after_check(SOURCES_ALONE), {"operations"}),
    "order": (
        replaced("context @ (context.mT @ Q @ Z)", "context @ context.mT @ Q @ Z"),
        {"operations"},
    ),
    "query-counted": (replaced("/ context.shape[1]", "/ Z.shape[1]"), {"associative"}),
    "flipped-is-the-algorithm": (
        replaced(
            '"weighted softmax TD": algorithm,', '"weighted softmax TD": (algorithm := flipped),'
        ),
        {"flipped-differs"},
    ),
    "over-columns": (
        replaced("torch.softmax(Z.mT @ Q @ Z, dim=-1)", "ictd.softmax_attention(Z, Q)"),
        {"total-weight", "rows-see-the-query"},
    ),
}
