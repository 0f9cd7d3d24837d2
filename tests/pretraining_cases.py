"""A small pretraining run, and the literal network, window by window, that it is compared with."""

from __future__ import annotations

import importlib

import pytest
import torch

import ictd
from ictd import _models, _tasks

pretraining = importlib.import_module("ictd.pretrain")

SMALL = {
    "n_states": 5,
    "n_features": 3,
    "context_length": 6,
    "n_layers": 3,
    "gamma": 0.8,
    "batch_size": 4,
    "n_steps": 6,
    "eval_every": 3,
    "eval_tasks": 3,
    "seeds": (3, 8),
    "dtype": "float64",
}
VARIANTS = [
    {"attention": attention, "masked": masked, "shared_layers": shared}
    for attention in ("softmax", "linear")
    for masked in (True, False)
    for shared in (True, False)
]
each_variant = pytest.mark.parametrize(
    "variant", VARIANTS, ids=lambda v: "-".join(f"{value}" for value in v.values())
)
each_protocol = pytest.mark.parametrize("protocol", ["fresh", "window"])


def configuration(**fields: object) -> ictd.PretrainConfig:
    return ictd.PretrainConfig(**{**SMALL, **fields})


def train(**fields: object) -> ictd.PretrainResult:
    return ictd.pretrain(configuration(**fields), progress=False)


def trajectories(batch: _tasks.Batch, seed: int, task: int) -> list[ictd.Trajectory]:
    states, rewards = batch.states[seed, task].numpy(), batch.rewards[seed, task].numpy()
    windows = [states[w : w + batch.n + 1] for w in range(batch.windows)]
    return [ictd.Trajectory(window, rewards[window[:-1]]) for window in windows]


def full_matrices(
    config: ictd.PretrainConfig, own: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """The network's matrices from its free entries, put in their places one by one."""
    d = config.n_features
    if not config.masked:
        return own
    layers = next(iter(own.values())).shape[: 0 if config.shared_layers else 1]
    if config.attention == "softmax":
        V, A = (torch.zeros(*layers, d + 3, d + 3, dtype=own["A"].dtype) for _ in range(2))
        for place, entry in enumerate((d, d + 1, d + 2)):
            V[..., d + 2, entry] = own["V"][..., place]
        A[..., :d, :d] = own["A"]
        return {"V": V, "A": A}
    P, Q = (torch.zeros(*layers, 2 * d + 1, 2 * d + 1, dtype=own["Q"].dtype) for _ in range(2))
    P[..., 2 * d, 2 * d] = own["P"][..., 0, 0]
    Q[..., : 2 * d, : 2 * d] = own["Q"]
    return {"P": P, "Q": Q}


def literal_values(
    config: ictd.PretrainConfig, own: dict[str, torch.Tensor], batch: _tasks.Batch, seed: int
) -> torch.Tensor:
    """Values (tasks, windows) of the queries, through the literal network.

    A module holds copies of its matrices, which would cut the gradient, so it is called with ours.
    """
    matrices = full_matrices(config, own)
    layers = config.n_layers if config.shared_layers else None
    plain = {name: matrix.detach() for name, matrix in matrices.items()}
    if config.attention == "softmax":
        network = ictd.SoftmaxTransformer(plain["A"], plain["V"], config.gamma, layers)
    else:
        network = ictd.LinearTransformer(plain["P"], plain["Q"], layers)
    rows = []
    for task in range(batch.features.shape[1]):
        x, row = batch.features[seed, task], []
        for trajectory in trajectories(batch, seed, task):
            if config.attention == "softmax":
                Z = ictd.prompt(trajectory, x)
            else:
                Z = ictd.linear_prompt(trajectory, x, config.gamma)
            Z = torch.func.functional_call(network, matrices, Z)
            row.append(Z[-1, -1] if config.attention == "softmax" else -Z[-1, -1])
        rows.append(torch.stack(row))
    return torch.stack(rows)


def literal_loss(
    config: ictd.PretrainConfig, own: dict[str, torch.Tensor], batch: _tasks.Batch, seed: int
) -> torch.Tensor:
    """The loss of one seed, written down error by error."""
    v = literal_values(config, own, batch, seed)
    total, count = torch.zeros((), dtype=v.dtype), 0
    for task in range(len(v)):
        ends = batch.states[seed, task, config.context_length :]
        for w in range(v.shape[1] if batch.targets is not None else v.shape[1] - 1):
            if batch.targets is not None:
                target = batch.targets[seed, task, w]
            else:
                reward = batch.rewards[seed, task, ends[w]]
                target = reward + config.gamma * v[task, w + 1].detach()
            total, count = total + (target - v[task, w]) ** 2, count + 1
    return total / count


def drawn_parameters(
    config: ictd.PretrainConfig, scale: float = 0.5
) -> tuple[_models.Model, dict[str, torch.Tensor]]:
    model = _models.build(config)
    parameters = {name: p.requires_grad_() for name, p in model.initial(scale).items()}
    return model, parameters


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(((a - b).abs().max() / b.abs().max().clamp(min=1e-3)).detach())
