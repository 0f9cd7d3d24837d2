"""Tasks to pretrain on: random chains, features and walks, drawn for many seeds at once.

All numbers of a seed come from generators that are made from the seed, a stream and the number of a block
of tasks. So they do not depend on which other seeds are drawn, and a block can be drawn again at any time
without a generator's state having been kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ictd import features
from ictd._checks import FloatArray, IntArray
from ictd._config import PretrainConfig
from ictd.mrp import MarkovRewardProcess, boyan_chain, loop_chain, random_chain, walk

CHAINS: dict[str, Callable[..., MarkovRewardProcess]] = {
    "boyan": boyan_chain,
    "loop": loop_chain,
    "random": random_chain,
}
FEATURES: dict[str, Callable[..., FloatArray]] = {
    "sphere": features.sphere_features,
    "uniform": features.uniform_features,
    "one-hot": lambda S, d, rng, batch: np.broadcast_to(np.eye(S, d), (*batch, S, d)),
}

# Streams of a seed.
INITIAL, TRAINING, EVALUATION, NEU = range(4)
# The sliding-window protocol walks so many times through a chain, from a new start each time.
WALKS = 5
# Tasks of a block and seed in the fresh protocol, chains in the other.
_FRESH_BLOCK, _WINDOW_BLOCK = 1024, 8
# A Monte-Carlo return is cut where γ^H has fallen below this.
_RETURN_TAIL = 1e-4


@dataclass(frozen=True)
class Batch:
    """Windows of n transitions, cut from walks on the tasks of each seed.

    Attributes:
        features: x, shape (seeds, tasks, S, d).
        rewards: r, shape (seeds, tasks, S).
        states: walks, shape (seeds, tasks, n + windows), integers; window w starts at state w and ends,
            in its query, at state n + w.
        n: transitions of a window.
        targets: what the values at the queries are to learn, shape (seeds, tasks, windows); None for TD,
            whose targets are the values of the next window.
    """

    features: Tensor
    rewards: Tensor
    states: Tensor
    n: int
    targets: Tensor | None = None

    @property
    def windows(self) -> int:
        """Number of windows of a walk."""
        return int(self.states.shape[-1]) - self.n

    @property
    def queries(self) -> Tensor:
        """The last state of each window, shape (seeds, tasks, windows)."""
        return self.states[..., self.n :]

    def first_window(self) -> Batch:
        """The first window of each task alone."""
        return replace(self, states=self.states[..., : self.n + 1], targets=None)

    def counts(self) -> tuple[Tensor, Tensor]:
        """Visits N (seeds, tasks, windows, S) and transitions N₂ (..., S, S) of each window."""
        S, n, W = self.features.shape[-2], self.n, self.windows
        pairs = self.states[..., :-1] * S + self.states[..., 1:]
        change = self.features.new_zeros(*pairs.shape[:-1], W, S * S)
        one = change.new_ones(())
        first = change[..., 0, :]
        first.scatter_add_(-1, pairs[..., :n], one.expand(pairs[..., :n].shape))
        # From one window to the next, a transition enters and one leaves.
        enters, leaves = pairs[..., n : n + W - 1, None], pairs[..., : W - 1, None]
        later = change[..., 1:, :]
        later.scatter_add_(-1, enters, one.expand(enters.shape))
        later.scatter_add_(-1, leaves, -one.expand(leaves.shape))
        transitions = change.cumsum(-2).reshape(*pairs.shape[:-1], W, S, S)
        return transitions.sum(-1), transitions


@dataclass(frozen=True)
class Tasks:
    """Chains with features and walks, one block of each seed.

    Attributes:
        chains: a batch (seeds, tasks) of chains.
        features: shape (seeds, tasks, S, d).
        states: shape (seeds, tasks, walks, length + 1).
    """

    chains: MarkovRewardProcess
    features: FloatArray
    states: IntArray


class Schedule:
    """Which tasks each step trains on, a function of the configuration, the seeds and the step alone."""

    def __init__(self, config: PretrainConfig) -> None:
        self.config = config
        self._block: int | None = None
        self._torch: dict[str, Tensor]
        self.fresh = config.protocol == "fresh"
        self.errors = 1 if self.fresh else config.batch_size
        self.horizon = 0 if config.loss != "mc" else return_horizon(config.gamma)
        self.block_steps = (
            max(_FRESH_BLOCK // config.batch_size, 1) if self.fresh else WALKS * _WINDOW_BLOCK
        )

    def batch(self, step: int) -> Batch:
        """The windows of a step, counted from 0."""
        block, place = divmod(step, self.block_steps)
        if block != self._block:
            self._draw(block)
        if self.fresh:
            B = self.config.batch_size
            tasks, walks = slice(place * B, (place + 1) * B), slice(0, 1)
        else:
            chain, number = divmod(place, WALKS)
            tasks, walks = slice(chain, chain + 1), slice(number, number + 1)
        data = self._torch
        targets = data.get("targets")
        return Batch(
            data["features"][:, tasks],
            data["rewards"][:, tasks],
            data["states"][:, tasks, walks].squeeze(2),
            self.config.context_length,
            None if targets is None else targets[:, tasks, walks].squeeze(2),
        )

    def _draw(self, block: int) -> None:
        config, n = self.config, self.config.context_length
        n_tasks = config.batch_size * self.block_steps if self.fresh else _WINDOW_BLOCK
        tasks = draw(
            config,
            (TRAINING, block),
            n_tasks,
            walks=1 if self.fresh else WALKS,
            length=n + self.errors + self.horizon,
        )
        last = n + self.errors + (config.loss == "td")
        arrays: dict[str, Any] = {
            "features": tasks.features,
            "rewards": tasks.chains.reward,
            "states": tasks.states[..., :last],
        }
        if config.loss == "true":
            arrays["targets"] = _at(tasks.chains.value, tasks.states[..., n:last])
        elif config.loss == "mc":
            rewards = _at(tasks.chains.reward, tasks.states[..., n:])
            arrays["targets"] = returns(rewards, config.gamma, self.horizon)[..., : self.errors]
        self._torch = {name: to_torch(config, array) for name, array in arrays.items()}
        self._block = block


def draw(
    config: PretrainConfig,
    key: tuple[int, ...],
    n_tasks: int,
    walks: int,
    length: int,
) -> Tasks:
    """Draw tasks for each seed: chains, then features, then the numbers that decide the walks."""
    S, d, gamma = config.n_states, config.n_features, config.gamma
    transition, reward, initial, x, uniforms = [], [], [], [], []
    for seed in config.seeds:
        rng = np.random.default_rng([seed, *key])
        chain = CHAINS[config.chain](S, gamma, rng, (n_tasks,))
        transition.append(chain.transition)
        reward.append(chain.reward)
        initial.append(chain.initial)
        x.append(FEATURES[config.features](S, d, rng, (n_tasks,)))
        uniforms.append(rng.random((n_tasks, walks, length + 1)))
    chains = MarkovRewardProcess(np.stack(transition), np.stack(reward), gamma, np.stack(initial))
    states = walk(
        np.repeat(chains.initial.reshape(-1, S), walks, 0),
        np.repeat(chains.transition.reshape(-1, S, S), walks, 0),
        np.stack(uniforms).reshape(-1, length + 1),
    )
    return Tasks(chains, np.stack(x), states.reshape(len(x), n_tasks, walks, length + 1))


def return_horizon(gamma: float) -> int:
    """Number of rewards in a Monte-Carlo return: the least H with γ^H ≤ 1e-4, at least 1."""
    return 1 if gamma == 0 else max(1, int(np.ceil(np.log(_RETURN_TAIL) / np.log(gamma))))


def returns(rewards: FloatArray, gamma: float, horizon: int) -> FloatArray:
    """Σ_{i<H} γ^i r_{k+i} for each k with H rewards ahead, along the last axis."""
    windows = np.lib.stride_tricks.sliding_window_view(rewards, horizon, axis=-1)
    sums: FloatArray = windows @ gamma ** np.arange(horizon)
    return sums


def to_torch(config: PretrainConfig, array: Any) -> Tensor:
    """The array on the device, numbers in the dtype of the configuration."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    dtype = config.torch_dtype if tensor.is_floating_point() else torch.int64
    return tensor.to(device=config.device, dtype=dtype)


def _at(values: FloatArray, states: IntArray) -> FloatArray:
    """Values (seeds, tasks, S) at states (seeds, tasks, walks, k)."""
    return np.take_along_axis(values[:, :, None], states, axis=-1)
