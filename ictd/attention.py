"""Softmax and linear attention in the paper's layout: columns are time, and column j is query j.

A prompt Z has shape (..., m, n+1). Attention weights are W[source, query]: column j of the softmax is the
distribution that query j puts over the sources ((1)–(4) of arXiv:2605.07333v2).
"""

from __future__ import annotations

import torch
from torch import Tensor

from ictd import _checks
from ictd._tensors import check_floating, check_matrix, check_prompt


def context_mask(
    n: int, dtype: torch.dtype = torch.float64, device: torch.device | str | None = None
) -> Tensor:
    """The mask M: zero, and −∞ in the last row, so that the last column of a prompt is never a source.

    Args:
        n: number of transitions, ≥ 1.
        dtype: a floating dtype.
        device: where the mask is made.

    Returns:
        M, shape (n+1, n+1), added to the scores [source, query].

    Raises:
        ValueError: n is no integer ≥ 1, or dtype no floating dtype.
    """
    size = _checks.integer("n", n, 1) + 1
    check_floating(dtype)
    mask = torch.zeros(size, size, dtype=dtype, device=device)
    mask[-1] = -torch.inf
    return mask


def softmax_attention(Z: Tensor, A: Tensor) -> Tensor:
    """K̃ = softmax(ZᵀAZ + M), taken per column.

    Columns sum to one and the last row is zero. There is no factor 1/n.

    Args:
        Z: prompt, shape (..., m, n+1), n ≥ 1, a floating dtype.
        A: shape (m, m) or (..., m, m), same dtype and device.

    Returns:
        K̃[source, query], shape (..., n+1, n+1).

    Raises:
        ValueError: shapes or dtypes that do not match, NaN or infinity.
    """
    check_prompt(Z)
    check_matrix("A", A, Z)
    return column_softmax(Z, A)


def linear_attention(Z: Tensor, P: Tensor, Q: Tensor) -> Tensor:
    """The update (1/n) P Z M (ZᵀQZ) of linear attention, M = diag(I_n, 0).

    The product is taken as P (Z M Zᵀ) Q Z, which costs O(n m²) where ZᵀQZ costs O(n² m): without the
    softmax, the product is associative.

    Args:
        Z: prompt, shape (..., m, n+1), n ≥ 1, a floating dtype.
        P, Q: shape (m, m) or (..., m, m), same dtype and device.

    Returns:
        What the layer adds to Z, shape (..., m, n+1).

    Raises:
        ValueError: shapes or dtypes that do not match, NaN or infinity.
    """
    check_prompt(Z)
    check_matrix("P", P, Z)
    check_matrix("Q", Q, Z)
    return linear_update(Z, P, Q)


def column_softmax(Z: Tensor, A: Tensor) -> Tensor:
    """:func:`softmax_attention` without its checks: values that diverge in a deep network pass."""
    scores = Z.mT @ A @ Z + context_mask(Z.shape[-1] - 1, Z.dtype, Z.device)
    return torch.softmax(scores, dim=-2)


def linear_update(Z: Tensor, P: Tensor, Q: Tensor) -> Tensor:
    """:func:`linear_attention` without its checks."""
    context = Z[..., :-1]
    moments = context @ context.mT / context.shape[-1]
    return P @ moments @ Q @ Z
