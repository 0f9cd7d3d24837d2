"""State features: arrays of shape (..., S, d) whose row s is x(s)."""

from __future__ import annotations

import numpy as np

from ictd import _checks
from ictd._checks import FloatArray


def one_hot_features(n_states: int) -> FloatArray:
    """One-hot features, x(s) = e_s.

    Args:
        n_states: S ≥ 1.

    Returns:
        The identity, shape (S, S).

    Raises:
        ValueError: n_states is no integer ≥ 1.
    """
    return np.eye(_checks.integer("n_states", n_states, 1))


def uniform_features(
    n_states: int, n_features: int, rng: np.random.Generator, batch: tuple[int, ...] = ()
) -> FloatArray:
    """Independent features with entries U[−1, 1].

    Args:
        n_states: S ≥ 1.
        n_features: d ≥ 1.
        rng: a ``numpy.random.Generator``.
        batch: leading dimensions.

    Returns:
        Features, shape (..., S, d) with the leading dimensions of ``batch``.

    Raises:
        ValueError: an argument is outside what is said above.
    """
    return _checks.generator(rng).uniform(-1, 1, _shape(n_states, n_features, batch))


def sphere_features(
    n_states: int, n_features: int, rng: np.random.Generator, batch: tuple[int, ...] = ()
) -> FloatArray:
    """Independent features, uniform on the unit sphere of R^d.

    Args:
        n_states: S ≥ 1.
        n_features: d ≥ 1 (in one dimension the sphere is {−1, 1}, so states share features).
        rng: a ``numpy.random.Generator``.
        batch: leading dimensions.

    Returns:
        Features, shape (..., S, d) with the leading dimensions of ``batch``.

    Raises:
        ValueError: an argument is outside what is said above.
    """
    normal = _checks.generator(rng).normal(size=_shape(n_states, n_features, batch))
    unit: FloatArray = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    return unit


def radial_basis_features(n_states: int, n_features: int, width: float) -> FloatArray:
    """Gaussian bumps over states laid out on [0, 1].

    State s sits at s/(S−1), centre c at c/(d−1) (a single one at 1/2), and
    x_c(s) = exp(−(position − centre)²/(2 width²)).

    Args:
        n_states: S ≥ 1.
        n_features: d ≥ 1 centres.
        width: standard deviation of a bump, > 0, in units of the interval.

    Returns:
        Features in [0, 1], shape (S, d).

    Raises:
        ValueError: an argument is outside what is said above.
    """
    S, d = _shape(n_states, n_features, ())
    if not _checks.real("width", width) > 0:
        raise ValueError(f"width must be a finite number > 0, got {width!r}")
    position, centre = (np.linspace(0, 1, size) if size > 1 else np.array([0.5]) for size in (S, d))
    with np.errstate(over="ignore"):
        bumps: FloatArray = np.exp(-(((position[:, None] - centre) / width) ** 2) / 2)
    return bumps


def _shape(n_states: int, n_features: int, batch: tuple[int, ...]) -> tuple[int, ...]:
    return (
        *_checks.batch_shape(batch),
        _checks.integer("n_states", n_states, 1),
        _checks.integer("n_features", n_features, 1),
    )
