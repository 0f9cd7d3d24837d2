"""Checks of tensors shared by the modules that need PyTorch; ``_checks`` for arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ictd import _checks


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


def feature_table(features: Any) -> Tensor:
    """Features as a floating tensor of shape (..., S, d), finite and not empty."""
    if isinstance(features, Tensor):
        if features.is_complex():
            raise ValueError(f"features must be real, got {features.dtype}")
        table = features if features.is_floating_point() else features.to(torch.float64)
    else:
        table = torch.from_numpy(_checks.features(features))
        dtype = np.asarray(features).dtype
        if dtype.kind == "f" and dtype.itemsize <= 4:
            table = table.to(torch.float16 if dtype.itemsize == 2 else torch.float32)
    if table.ndim < 2 or 0 in table.shape:
        raise ValueError(
            f"features must have shape (..., S, d), not empty, got {tuple(table.shape)}"
        )
    if not torch.isfinite(table).all():
        raise ValueError("features must be finite, got NaN or infinity")
    return table
