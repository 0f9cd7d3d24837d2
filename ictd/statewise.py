"""The network's forward pass over states instead of positions.

The attention matrix of the constructed network reads the features alone, so K̃ does not depend on the
values, and all visits of a state get the same weight. The n positions of a context can then be summed by
state: with the visit counts N, the weights that the queries put on all visits of a source together are the
matrix M̂ = softmax(g + log N) of (20) in arXiv:2605.07333v2, S × S whatever the length of the context.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ictd import _checks
from ictd._tensors import feature_table, kind
from ictd.counts import Counts
from ictd.mrp import Trajectory


def state_pass(
    trajectory: Trajectory,
    features: Any,
    A: Tensor,
    V: Tensor,
    gamma: float,
    n_layers: int | None = None,
) -> Tensor:
    """Values of all states after each layer of the masked :class:`ictd.SoftmaxTransformer`.

    Masked means: A is zero outside its feature block, V outside the last three entries (a, b, c) of its
    last row, the weights of reward, target and current value. With g(s, s′) = x(s′)ᵀ A x(s) for query s
    and source s′, visit counts N, empirical transitions P̃ and mean rewards r̃ by source, a layer is
    v ← v + M̂(a r̃ + b γ P̃v + c v). At S₀ … S_n these are the last row of Z_l, and the gradients with
    respect to A and V are the literal network's. Counting takes O(n). M̂ takes O(S² d + S d²), once where
    the layers share A, and the rest of a layer O(S²); a layer of the literal network takes O(n² d).

    Args:
        trajectory: context, states (..., n+1), n ≥ 1.
        features: x, shape (..., S, d), tensor or array.
        A: feature block, shape (..., d, d), or (..., n_layers, d, d) if n_layers is None.
        V: (a, b, c), shape (..., 3), or (..., n_layers, 3) if n_layers is None; (1, 1, −1) is TD.
        gamma: discount factor in [0, 1).
        n_layers: number of layers ≥ 0 that share A and V; None where each layer has its own.

    Returns:
        v_0 = 0, …, v_L, shape (..., L+1, S), in the dtype of the features.

    Raises:
        ValueError: an argument is outside what is said above, or of another dtype than the features.
    """
    x = feature_table(features)
    S, d = x.shape[-2:]
    looped = n_layers is not None
    A = _parameter("A", A, x, (d, d), looped)
    V = _parameter("V", V, x, (3,), looped)
    gamma = _checks.discount(gamma)
    depth = _depth(A, V) if n_layers is None else _checks.integer("n_layers", n_layers, 0)
    counts = Counts.of(trajectory, S)
    batch = _checks.broadcast(
        trajectory=counts.visits.shape[:-1],
        features=tuple(x.shape[:-2]),
        A=tuple(A.shape[:-3]),
        V=tuple(V.shape[:-2]),
    )
    # Large counts leave float64, in which they are taken, only as means and logarithms.
    successors, mean_rewards = (torch.from_numpy(means).to(x) for means in counts.empirical_chain())
    log_visits = torch.from_numpy(counts.visits).log().to(x)
    if not torch.isfinite(mean_rewards).all():
        raise ValueError(f"trajectory.rewards must be finite in {x.dtype}, got overflow")

    # With a layer axis of length one where the layers share A and V.
    scores = x[..., None, :, :] @ A.mT @ x[..., None, :, :].mT
    if not torch.isfinite(scores).all():
        raise ValueError(f"features and A must give finite scores, got overflow in {x.dtype}")
    M = torch.softmax(scores + log_visits[..., None, None, :], dim=-1)
    v = x.new_zeros(*batch, S)
    iterates = [v]
    for layer in range(depth):
        index = 0 if looped else layer
        a, b, c = V[..., index, :, None].unbind(-2)
        following = (successors @ v[..., None])[..., 0]
        error = a * mean_rewards + b * gamma * following + c * v
        v = v + (M[..., index, :, :] @ error[..., None])[..., 0]
        iterates.append(v)
    return torch.stack(iterates, dim=-2)


def _parameter(name: str, value: Any, x: Tensor, shape: tuple[int, ...], looped: bool) -> Tensor:
    """The parameter with a layer axis in front of its own shape."""
    if not isinstance(value, Tensor) or value.dtype != x.dtype:
        raise ValueError(
            f"{name} must be a tensor of the dtype of the features, {x.dtype}, got {kind(value)}"
        )
    wanted = ", ".join(str(size) for size in (() if looped else ("n_layers",)) + shape)
    if tuple(value.shape[-len(shape) :]) != shape or value.ndim < len(shape) + (not looped):
        raise ValueError(f"{name} must have shape (..., {wanted}), got {tuple(value.shape)}")
    if not torch.isfinite(value).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return value.unsqueeze(-len(shape) - 1) if looped else value


def _depth(A: Tensor, V: Tensor) -> int:
    if A.shape[-3] != V.shape[-2]:
        raise ValueError(
            "A and V must have the same number of layers where n_layers is None, "
            f"got {A.shape[-3]} and {V.shape[-2]}"
        )
    return A.shape[-3]
