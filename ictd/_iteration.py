"""The loop that all methods share: v_{t+1} = v_t + α_t · direction(v_t), every iterate kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ictd import _checks
from ictd._checks import FloatArray

StepSize = float | Callable[[int], float] | Any


def iterate(
    start: FloatArray, update: Callable[[FloatArray], FloatArray], alphas: FloatArray
) -> FloatArray:
    """start and what follows it, v + α_t update(v) for each of the T alphas, shape (..., T+1, size)."""
    iterates = np.empty((len(alphas) + 1, *start.shape))
    iterates[0] = start
    for t, alpha in enumerate(alphas):
        iterates[t + 1] = iterates[t] + alpha * update(iterates[t])
    return np.ascontiguousarray(np.moveaxis(iterates, 0, -2))


def schedule(step_size: StepSize, n_steps: int) -> FloatArray:
    """α_0 … α_{n_steps−1} of a number, a sequence or a function of t."""
    n_steps = _checks.integer("n_steps", n_steps, 0)
    if callable(step_size):
        step_size = [step_size(t) for t in range(n_steps)]
    alphas = _checks.floats("step_size", step_size)
    if alphas.shape not in {(), (n_steps,)}:
        raise ValueError(
            f"step_size must be a number or a sequence of n_steps = {n_steps} numbers, "
            f"got shape {alphas.shape}"
        )
    return np.broadcast_to(alphas, (n_steps,))


def start_values(name: str, value: Any, size: int, batch: tuple[int, ...]) -> FloatArray:
    """A start of shape (size,) or (*batch, size) as (*batch, size); None means zero."""
    if value is None:
        return np.zeros((*batch, size))
    array = _checks.floats(name, value)
    if array.shape not in {(size,), (*batch, size)}:
        wanted = f"({size},)" + (f" or {(*batch, size)}" if batch else "")
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    return np.broadcast_to(array, (*batch, size))
