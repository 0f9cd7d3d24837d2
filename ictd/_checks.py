"""Argument checks shared by the library: every error names the argument, what came, what was expected."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ComplexArray = NDArray[np.complex128]


def integer(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """An integer in [minimum, maximum]; booleans and floats are refused."""
    expected = f"an integer ≥ {minimum}" + ("" if maximum is None else f" and ≤ {maximum}")
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    number = int(value)
    if number < minimum or (maximum is not None and number > maximum):
        raise ValueError(f"{name} must be {expected}, got {number}")
    return number


def real(name: str, value: Any, minimum: float = -np.inf) -> float:
    """A finite real number ≥ minimum."""
    expected = "a finite number"
    if np.isfinite(minimum):
        expected += f" ≥ {minimum:g}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    number = float(value)
    if not np.isfinite(number) or number < minimum:
        raise ValueError(f"{name} must be {expected}, got {number!r}")
    return number


def discount(value: Any) -> float:
    """The discount factor gamma, in [0, 1)."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise ValueError(f"gamma must be a number in [0, 1), got {value!r}")
    gamma = float(value)
    if not 0 <= gamma < 1:
        raise ValueError(f"gamma must be in [0, 1), got {gamma!r}")
    return gamma


def generator(rng: Any) -> np.random.Generator:
    """A NumPy random generator; seeds and the global state are refused."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(
            f"rng must be a numpy.random.Generator (numpy.random.default_rng(seed)), got {rng!r}"
        )
    return rng


def batch_shape(value: Any) -> tuple[int, ...]:
    """A tuple of leading dimensions, each ≥ 1."""
    if not isinstance(value, tuple):
        raise ValueError(f"batch must be a tuple of integers ≥ 1, got {value!r}")
    return tuple(integer("each entry of batch", size, 1) for size in value)


def floats(name: str, value: Any) -> FloatArray:
    """A numeric array as float64, with no NaN and no infinity."""
    array = numeric(name, value)
    bad = ~np.isfinite(array)
    if bad.any():
        raise ValueError(f"{name} must be finite, got {array[bad][0]} at index {_first_index(bad)}")
    return array


def numeric(name: str, value: Any) -> FloatArray:
    """A real numeric array as float64 (NaN and infinities pass)."""
    array = _array(name, value)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be an array of real numbers, got dtype {array.dtype}")
    return array.astype(np.float64)


def state_indices(name: str, value: Any) -> IntArray:
    """An array of integers ≥ 0 as int64."""
    array = _array(name, value)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be an array of integers, got dtype {array.dtype}")
    # The upper bound keeps an unsigned index from wrapping around.
    if array.size and not (array.min() >= 0 and array.max() <= np.iinfo(np.int64).max):
        wrong = array.min() if array.min() < 0 else array.max()
        raise ValueError(f"{name} must be state indices ≥ 0, got {wrong}")
    return array.astype(np.int64)


def states_below(name: str, states: IntArray, n_states: int) -> None:
    """Every state index is below n_states."""
    if states.max() >= n_states:
        raise ValueError(
            f"{name} must be state indices in 0..{n_states - 1} ({n_states} states), "
            f"got {states.max()}"
        )


def distributions(name: str, array: FloatArray) -> None:
    """The last axis holds probabilities: non-negative, sums equal to one to 1e-9."""
    if array.size and array.min() < 0:
        raise ValueError(
            f"{name} must be non-negative, got {array.min()} at index {_first_index(array < 0)}"
        )
    total = array.sum(-1)
    bad = np.abs(total - 1) > 1e-9
    if bad.any():
        raise ValueError(
            f"{name} must sum to 1 along the last axis, got the sum {total[bad][0]:.12g} "
            f"at index {_first_index(bad)}"
        )


def square(name: str, array: FloatArray, symbol: str = "S") -> int:
    """The last two axes are equal and no axis is empty; returns their size."""
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or 0 in array.shape:
        raise ValueError(
            f"{name} must have shape (..., {symbol}, {symbol}), not empty, got {array.shape}"
        )
    return int(array.shape[-1])


def features(value: Any) -> FloatArray:
    """Features as float64 of shape (..., S, d), finite and not empty."""
    x = floats("features", value)
    if x.ndim < 2 or 0 in x.shape:
        raise ValueError(f"features must have shape (..., S, d), not empty, got {x.shape}")
    return x


def broadcast(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common leading dimensions of the named arguments."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError as error:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"leading dimensions must broadcast, got {listed}") from error


def _array(name: str, value: Any) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of numbers, got a ragged sequence") from error
    except (TypeError, RuntimeError) as error:
        # A tensor that NumPy cannot read: it requires a gradient, say.
        raise ValueError(f"{name} must be an array of numbers: {error}") from error


def _first_index(mask: NDArray[np.bool_]) -> tuple[int, ...] | int:
    index = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(mask)))
    return index[0] if len(index) == 1 else index
