"""What a reader can turn, in which steps, and the one chain that all settings are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import ictd

#: Name of a control and the values it takes, in the order of the page.
GRID: dict[str, list[float]] = {
    "gamma": [0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99],
    "beta": [0, 1, 2, 4, 8, 16, 32, 64],
    "n": [5, 10, 20, 50, 100, 300, 1000, 10000],
    "depth": list(range(81)),
}
DEFAULT: dict[str, float] = {"gamma": 0.9, "beta": 8, "n": 100, "depth": 20}
#: Symbol and name of each control.
LABELS = {
    "gamma": ("γ", "discount factor"),
    "beta": ("β", "kernel sharpness"),
    "n": ("n", "context length"),
    "depth": ("L", "depth"),
}

N_STATES, N_FEATURES = 6, 3
#: Of chain, features and context. Chosen: this chain shows every outcome of the three conditions, which
#: few do.
SEED = 281


def draw(gamma: float) -> tuple[ictd.MarkovRewardProcess, Any, ictd.Trajectory]:
    """The chain with a discount factor, the features and the longest context.

    Args:
        gamma: γ in [0, 1).

    Returns:
        Chain, features of shape (S, d), context; but for the chain's γ the same for every γ.
    """
    rng = np.random.default_rng(SEED)
    chain = ictd.boyan_chain(N_STATES, gamma, rng)
    features = ictd.sphere_features(N_STATES, N_FEATURES, rng)
    return chain, features, chain.sample(int(GRID["n"][-1]), rng)


def first(context: ictd.Trajectory, n: int) -> ictd.Trajectory:
    """The first n transitions of a context."""
    return ictd.Trajectory(context.states[: n + 1], context.rewards[:n])


def parse(text: str) -> dict[str, float]:
    """Read a setting such as ``gamma=0.9&beta=8``; what it leaves out is at its default.

    Args:
        text: Pairs of a control's name and one of its values, joined by ``&``.

    Returns:
        The value of every control.

    Raises:
        ValueError: If a control is unknown or comes twice, or a value is none of its steps.
    """
    given: dict[str, float] = {}
    for pair in text.split("&"):
        name, _, value = pair.partition("=")
        if name not in GRID or name in given:
            known = ", ".join(GRID)
            raise ValueError(
                f"a setting names each of {known} at most once, got {pair!r} in {text!r}"
            )
        found = [step for step in GRID[name] if f"{step:g}" == value]
        if not found:
            steps = ", ".join(f"{step:g}" for step in GRID[name])
            raise ValueError(f"{name} must be one of {steps}, got {value!r}")
        given[name] = found[0]
    return {**DEFAULT, **given}


def address(setting: Mapping[str, float]) -> str:
    """A setting as :func:`parse` reads it, with every control."""
    return "&".join(f"{name}={setting[name]:g}" for name in GRID)


def index(setting: Mapping[str, float]) -> tuple[int, int, int, int]:
    """The places of the values of γ, β, n and depth in their grids."""
    i, j, k, depth = (GRID[name].index(setting[name]) for name in GRID)
    return i, j, k, depth
