"""Softmax and linear attention in the paper's layout: columns are time, and column j is query j.

A prompt Z has shape (..., m, n+1). Attention weights are W[source, query]: column j of the softmax is the
distribution that query j puts over the sources ((1)–(4) of arXiv:2605.07333v2).
"""

from __future__ import annotations

import torch
from torch import Tensor

from ictd import _checks


def context_mask(
    n: int, dtype: torch.dtype = torch.float64, device: torch.device | str | None = None
) -> Tensor:
    """The mask M, shape (n+1, n+1): zero, and −∞ in the last row; the last column is never a source."""
    size = _checks.integer("n", n, 1) + 1
    check_floating(dtype)
    mask = torch.zeros(size, size, dtype=dtype, device=device)
    mask[-1] = -torch.inf
    return mask


def softmax_attention(Z: Tensor, A: Tensor) -> Tensor:
    """K̃ = softmax(ZᵀAZ + M), taken per column: shape (..., n+1, n+1), [source, query].

    Columns sum to one and the last row is zero. There is no factor 1/n.

    Args:
        Z: prompt, shape (..., m, n+1), n ≥ 1, a floating dtype.
        A: shape (m, m) or (..., m, m), same dtype and device.

    Raises:
        ValueError: shapes or dtypes that do not match.
    """
    check_prompt(Z)
    check_matrix("A", A, Z)
    return column_softmax(Z, A)


def linear_attention(Z: Tensor, P: Tensor, Q: Tensor) -> Tensor:
    """The update (1/n) P Z M (ZᵀQZ) of linear attention, M = diag(I_n, 0); shape (..., m, n+1).

    The product is taken as P (Z M Zᵀ) Q Z, which costs O(n m²) where ZᵀQZ costs O(n² m): without the
    softmax, the product is associative.

    Args:
        Z: prompt, shape (..., m, n+1), n ≥ 1, a floating dtype.
        P, Q: shape (m, m) or (..., m, m), same dtype and device.

    Raises:
        ValueError: shapes or dtypes that do not match.
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


def check_floating(dtype: torch.dtype) -> None:
    """The dtype is a floating dtype of torch, or ValueError."""
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating dtype, got {dtype}")


def check_prompt(Z: Tensor, rows: int | None = None, dtype: torch.dtype | None = None) -> None:
    """Z is a finite tensor of shape (..., rows, n+1), n ≥ 1, and of the dtype, or ValueError.

    Without ``rows`` any number of rows passes, without ``dtype`` any floating dtype.
    """
    if not isinstance(Z, Tensor) or not Z.is_floating_point() or Z.dtype != (dtype or Z.dtype):
        raise ValueError(f"Z must be a tensor of {dtype or 'a floating dtype'}, got {kind(Z)}")
    if Z.ndim < 2 or Z.shape[-2] != (rows or Z.shape[-2]) or Z.shape[-1] < 2:
        raise ValueError(
            f"Z must have shape (..., {rows or 'm'}, n+1) with n ≥ 1, got {tuple(Z.shape)}"
        )
    if not torch.isfinite(Z).all():
        raise ValueError("Z must be finite, got NaN or infinity")


def check_matrix(name: str, matrix: Tensor, Z: Tensor) -> None:
    """The matrix is finite, acts on the rows of Z and shares its dtype, or ValueError."""
    if not isinstance(matrix, Tensor) or matrix.dtype != Z.dtype:
        raise ValueError(
            f"{name} must be a tensor of the dtype of Z, {Z.dtype}, got {kind(matrix)}"
        )
    m = Z.shape[-2]
    if matrix.ndim < 2 or tuple(matrix.shape[-2:]) != (m, m):
        raise ValueError(f"{name} must have shape (..., {m}, {m}), got {tuple(matrix.shape)}")
    _checks.broadcast(**{name: tuple(matrix.shape[:-2]), "Z": tuple(Z.shape[:-2])})
    if not torch.isfinite(matrix).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")


def kind(value: object) -> str:
    """What an error says of a value that should have been a floating tensor."""
    return f"a tensor of {value.dtype}" if isinstance(value, Tensor) else f"{type(value).__name__}"
