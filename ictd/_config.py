"""The configuration of a pretraining run, and the ranges of its fields."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ictd import _checks

_CHOICES = {
    "features": ("sphere", "uniform", "one-hot"),
    "chain": ("boyan", "loop", "random"),
    "attention": ("softmax", "linear"),
    "loss": ("td", "mc", "true"),
    "protocol": ("fresh", "window"),
    "dtype": ("float32", "float64"),
}
_MINIMUM_STATES = {"boyan": 3, "loop": 2, "random": 1}


@dataclass(frozen=True)
class PretrainConfig:
    """What is trained, on which tasks, and how.

    Attributes:
        n_states: S of the chains, ≥ 3 (Boyan), ≥ 2 (loop), ≥ 1 (random).
        n_features: d ≥ 1; S for one-hot features.
        context_length: n ≥ 1 transitions of a window.
        n_layers: L ≥ 1.
        gamma: discount factor in [0, 1).
        features: "sphere" (unit sphere), "uniform" (U[−1, 1]) or "one-hot".
        chain: "boyan", "loop" or "random", the families of :mod:`ictd.mrp`.
        n_steps: steps of the optimiser, ≥ 0. With the window protocol, five for each chain.
        batch_size: squared errors averaged in a step, ≥ 1: tasks (fresh) or windows of a walk (window).
        learning_rate: of Adam, > 0.
        weight_decay: of Adam, ≥ 0, added to the gradient.
        seeds: distinct integers in [0, 2³²), one network for each; an integer k stands for 0 … k−1.
        attention: "softmax" with the temporal shift, or "linear".
        masked: softmax: V is free in row d+3 on rows d+1, d+2, d+3, and A in its feature block. Linear:
            P in its last entry and Q in its 2d × 2d block. Else all entries are free.
        shared_layers: whether the layers share their parameters.
        loss: "td"; "mc" learns discounted sums of the rewards after S_n, cut where γ^H ≤ 1e-4; "true"
            learns v_π(S_n).
        protocol: "fresh" or "window".
        eval_every: steps between evaluations, ≥ 1; there is one before the first and after the last step.
        checkpoint_dir: folder of the checkpoint, or None for none.
        device: of torch, one that it has here.
        dtype: "float32" or "float64", or torch's.
        initial_scale: standard deviation of the entries at the start, ≥ 0.
        eval_tasks: held-out tasks of each evaluation and seed, ≥ 1.
        checkpoint_every: steps between checkpoints, ≥ 1.

    Raises:
        ValueError: a field is outside what is said above; the message names it.
    """

    n_states: int = 5
    n_features: int = 10
    context_length: int = 100
    n_layers: int = 10
    gamma: float = 0.5
    features: str = "sphere"
    chain: str = "boyan"
    n_steps: int = 1500
    batch_size: int = 64
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    seeds: Any = (0,)
    attention: str = "softmax"
    masked: bool = True
    shared_layers: bool = True
    loss: str = "td"
    protocol: str = "fresh"
    eval_every: int = 50
    checkpoint_dir: Any = None
    device: str = "cpu"
    dtype: Any = "float32"
    initial_scale: float = 0.1
    eval_tasks: int = 32
    checkpoint_every: int = 500

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if name == "dtype" and isinstance(value, torch.dtype):
                value = str(value).removeprefix("torch.")
            if not isinstance(value, str) or value not in choices:
                shown = ", ".join(repr(choice) for choice in choices)
                raise ValueError(f"{name} must be one of {shown}, got {getattr(self, name)!r}")
            self._set(name, value)
        minimum = {"n_states": _MINIMUM_STATES[self.chain], "n_steps": 0}
        for name in (
            "n_states",
            "n_features",
            "context_length",
            "n_layers",
            "n_steps",
            "batch_size",
            "eval_every",
            "eval_tasks",
            "checkpoint_every",
        ):
            self._set(name, _checks.integer(name, getattr(self, name), minimum.get(name, 1)))
        if self.features == "one-hot" and self.n_features != self.n_states:
            raise ValueError(
                f"n_features must be n_states, {self.n_states}, for one-hot features, "
                f"got {self.n_features}"
            )
        self._set("gamma", _checks.discount(self.gamma))
        for name in ("learning_rate", "weight_decay", "initial_scale"):
            self._set(name, _checks.real(name, getattr(self, name), 0.0))
        if self.learning_rate == 0:
            raise ValueError("learning_rate must be > 0, got 0.0")
        for name in ("masked", "shared_layers"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")
            self._set(name, bool(getattr(self, name)))
        self._set("seeds", _seeds(self.seeds))
        self._set("device", _device(self.device))
        if self.checkpoint_dir is not None:
            try:
                self._set("checkpoint_dir", str(Path(self.checkpoint_dir)))
            except TypeError:
                raise ValueError(
                    f"checkpoint_dir must be a path or None, got {self.checkpoint_dir!r}"
                ) from None

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype as torch knows it."""
        return torch.float32 if self.dtype == "float32" else torch.float64

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain data, for JSON."""
        return {**asdict(self), "seeds": list(self.seeds)}

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


def _device(value: Any) -> str:
    """The name of a device that tensors can be made on and read from."""
    try:
        device = torch.device(value)
        torch.zeros(1, device=device).cpu()
    # A build of torch without CUDA answers with a failed assertion.
    except (RuntimeError, TypeError, AssertionError):
        kinds = [kind for kind in ("cuda", "xpu", "mps") if hasattr(torch, kind)]
        counts = {kind: getattr(torch, kind).device_count() for kind in kinds}
        found = [f"{kind}:{index}" for kind, count in counts.items() for index in range(count)]
        raise ValueError(
            f"device must be a device that torch has here, {', '.join(['cpu', *found])}, got {value!r}"
        ) from None
    return str(device)


def _seeds(value: Any) -> tuple[int, ...]:
    expected = "distinct integers in [0, 2³²), or their number"
    try:
        if isinstance(value, (bool, np.bool_, str)):
            raise ValueError
        if isinstance(value, (int, np.integer)):
            seeds = tuple(range(_checks.integer("seeds", value, 1)))
        else:
            seeds = tuple(_checks.integer("seeds", seed, 0, 2**32 - 1) for seed in value)
    except (TypeError, ValueError):
        raise ValueError(f"seeds must be {expected}, got {value!r}") from None
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError(f"seeds must be {expected}, got {value!r}")
    return seeds
