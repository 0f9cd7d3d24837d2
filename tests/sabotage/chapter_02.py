"""Edits of chapter 2, each with the claims that must fail in the chapter so broken."""

from collections.abc import Callable
from typing import Any

from chapter_runs import after_check, replaced

# The library's iteration with γ off by one per cent.
WRONG_GAMMA = """
_right = ictd.td.weighted_softmax_td
def _wrong(trajectory, scores, gamma, *args, **kwargs):
    return _right(trajectory, scores, 0.99 * gamma, *args, **kwargs)
ictd.td.weighted_softmax_td = ictd.weighted_softmax_td = _wrong
"""

# Weights that sum to one over the queries of a source instead of the sources of a query.
ROWS_NORMALISED = """
_right = ictd.kernels.visit_weights
def _wrong(scores, visits):
    weights = _right(scores, visits)
    return weights / np.maximum(weights.sum(-2, keepdims=True), 1e-300)
ictd.td.visit_weights = ictd.visit_weights = _wrong
"""

# States that the context does not visit move half as far.
UNVISITED_HALVED = """
_right = ictd.kernels.visit_weights
def _wrong(scores, visits):
    return _right(scores, visits) * np.where(visits > 0, 1.0, 0.5)[..., :, None]
ictd.td.visit_weights = _wrong
"""

# The transformer with its temporal shift at another discount factor.
WRONG_SHIFT = """
_right = ictd.SoftmaxTransformer.td
ictd.SoftmaxTransformer.td = lambda d, gamma, n_layers: _right(d, 0.99 * gamma, n_layers)
"""

# Scores that grow with the square of β.
WRONG_SHARPNESS = """
_scores = ictd.inner_product_scores
ictd.inner_product_scores = lambda x, sharpness=1.0: _scores(x, sharpness**2)
"""

# A query that may not attend to its own state.
NOT_ITSELF = """
_scores = ictd.inner_product_scores
ictd.inner_product_scores = lambda x, sharpness=1.0: (
    _scores(x, sharpness) - 1e9 * np.eye(np.shape(x)[-2])
)
"""

# Negative squared distance: a nearest neighbour instead of a maximum inner product.
NEAREST_NEIGHBOUR = """
def _distances(x, sharpness=1.0):
    x = np.asarray(x)
    return -sharpness * ((x[..., :, None, :] - x[..., None, :, :]) ** 2).sum(-1)
ictd.inner_product_scores = _distances
"""

# All states look alike.
SAME_FEATURES = """
_sphere = ictd.sphere_features
ictd.sphere_features = lambda *args, **kwargs: 0 * _sphere(*args, **kwargs) + 1
"""

BROKEN: dict[str, tuple[Callable[[list[Any]], None], set[str]]] = {
    "gamma": (
        after_check(WRONG_GAMMA),
        {"literal", "by-hand", "tabular", "linear-constant", "linear-general", "flat", "theorem-1"},
    ),
    "rows": (after_check(ROWS_NORMALISED), {"literal", "by-hand", "theorem-1"}),
    "unvisited": (after_check(UNVISITED_HALVED), {"interpolation"}),
    "shift": (after_check(WRONG_SHIFT), {"theorem-1"}),
    "sharpness": (after_check(WRONG_SHARPNESS), {"flat-slope"}),
    "not-itself": (after_check(NOT_ITSELF), {"sharp"}),
    "nearest": (after_check(NEAREST_NEIGHBOUR), {"maximum-inner-product"}),
    "same-features": (after_check(SAME_FEATURES), {"softmax-below-linear"}),
    "constant-factor": (
        replaced("bent[state] *= 2", "bent[state] *= 1"),
        {"linear-counterexample"},
    ),
}
