"""The norm of the expected update, the pretraining loss J_{L,n} of arXiv:2605.07333v2, (26)–(27).

J(θ) = ‖E[(R_{n+1} + γ v_θ(Z′) − v_θ(Z)) ∇_θ v_θ(Z)]‖² for the masked softmax transformer: v_θ(Z) is its
value at the query S_n of a window Z, Z′ the window moved on by one transition, the expectation over
chains, features and walks, and θ the three entries of V with the feature block of A. The form is this
project's reading of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ictd import _checks, _models
from ictd._checks import FloatArray
from ictd._config import PretrainConfig
from ictd._tasks import NEU, Batch, draw, to_torch

# Tasks drawn at once: a fixed number, so that the chunk does not decide them.
_BLOCK = 1000
_QUANTILE = 1.959963984540054  # of the normal law, for an interval of 95 %
# Where updates are too large for their squares, infinity or NaN is the estimate, and needs no warning.
_OVERFLOW: dict[str, Any] = {"over": "ignore", "invalid": "ignore"}


@dataclass(frozen=True, eq=False)
class Neu:
    """An estimate of J from independent tasks.

    Attributes:
        value: the unbiased estimate, which may be negative where J is small.
        standard_error: its estimated standard error.
        n_tasks: N, number of tasks.
        update: mean update, shape (p,): the entries of V, then those of A.
    """

    value: float
    standard_error: float
    n_tasks: int
    update: FloatArray

    @property
    def interval(self) -> tuple[float, float]:
        """value ∓ 1.96 standard errors, 95 % where J is clearly above or at zero.

        Where J is about its standard error, an interval covered it in 86 % of trials with normal updates.
        """
        half = _QUANTILE * self.standard_error
        return self.value - half, self.value + half


def neu(
    V: Any,
    A: Any,
    *,
    n_states: int,
    context_length: int,
    n_layers: int,
    gamma: float,
    features: str = "sphere",
    chain: str = "boyan",
    n_tasks: int = 10_000,
    seed: int = 0,
    chunk: int = 1000,
    dtype: Any = "float64",
    device: str = "cpu",
) -> Neu:
    """Estimate J_{L,n}(θ) without bias, with its standard error.

    With the updates g_i of N independent tasks, (‖Σ g_i‖² − Σ ‖g_i‖²)/(N(N − 1)) has the mean J and the
    variance 4 mᵀΣm/N + 2 tr Σ²/(N(N − 1)). For m and Σ, mean and covariance of an update, their estimates
    are put, with max(m̂ᵀΣ̂m̂ − tr Σ̂²/N, 0) for mᵀΣm. It costs O(n + L S²) a task.

    Args:
        V: (a, b, c), shape (3,), or (L, 3) where each layer has its own; (1, 1, −1) is the construction.
        A: feature block, shape (d, d), or (L, d, d); the identity is the construction.
        n_states: S of the chains.
        context_length: n ≥ 1.
        n_layers: L ≥ 1.
        gamma: discount factor in [0, 1).
        features: "sphere", "uniform" or "one-hot".
        chain: "boyan", "loop" or "random".
        n_tasks: N ≥ 2.
        seed: of the tasks, in [0, 2³²); the same seed gives the same tasks for every θ, L and chunk.
        chunk: tasks computed at once, ≥ 1.
        dtype: "float32" or "float64".
        device: of torch, one that it has here.

    Returns:
        The estimate; infinite or NaN where values of tasks are.

    Raises:
        ValueError: an argument is outside what is said above.
    """
    V, A = _checks.floats("V", V), _checks.floats("A", A)
    if A.ndim not in (2, 3) or A.shape[-1] != A.shape[-2] or A.size == 0:
        raise ValueError(f"A must have shape (d, d) or (n_layers, d, d), got {A.shape}")
    shared = A.ndim == 2
    layers = () if shared else (_checks.integer("n_layers", n_layers, 1),)
    if V.shape != (*layers, 3) or A.shape[:-2] != layers:
        raise ValueError(
            "V and A must have shapes (3,) and (d, d), or (n_layers, 3) and (n_layers, d, d) with "
            f"n_layers = {n_layers}, got {V.shape} and {A.shape}"
        )
    N = _checks.integer("n_tasks", n_tasks, 2)
    chunk = _checks.integer("chunk", chunk, 1)
    seed = _checks.integer("seed", seed, 0, 2**32 - 1)
    config = PretrainConfig(
        n_states=n_states,
        n_features=A.shape[-1],
        context_length=context_length,
        n_layers=n_layers,
        gamma=gamma,
        features=features,
        chain=chain,
        seeds=[seed],
        shared_layers=shared,
        dtype=dtype,
        device=device,
    )
    p = V.size + A.size
    total, outer = np.zeros(p), np.zeros((p, p))
    for block in range(-(-N // _BLOCK)):
        tasks = draw(config, (NEU, block), _BLOCK, walks=1, length=context_length + 1)
        arrays = (tasks.features, tasks.chains.reward, tasks.states[:, :, 0])
        x, r, states = (to_torch(config, array)[0] for array in arrays)
        end = min(_BLOCK, N - block * _BLOCK)
        for start in range(0, end, chunk):
            part = slice(start, min(start + chunk, end))
            # A task takes the place of a seed: each has parameters of its own to be differentiated by.
            batch = Batch(x[part, None], r[part, None], states[part, None], context_length)
            g = _updates(config, V, A, batch).double().cpu().numpy()
            with np.errstate(**_OVERFLOW):
                total += g.sum(0)
                outer += g.T @ g
    return _estimate(total, outer, N)


def _updates(config: PretrainConfig, V: FloatArray, A: FloatArray, batch: Batch) -> Tensor:
    """The update of each task, shape (tasks, p)."""
    tasks = len(batch.features)
    parameters = {
        name: to_torch(config, matrix).expand(tasks, *matrix.shape).clone().requires_grad_()
        for name, matrix in (("V", V), ("A", A))
    }
    v = _models.build(config).values(parameters, batch)[:, 0]
    (gradient_V, gradient_A) = torch.autograd.grad(v[:, 0].sum(), list(parameters.values()))
    v = v.detach()
    reward = batch.rewards[:, 0].gather(-1, batch.queries[:, 0, :1])[:, 0]
    error = reward + config.gamma * v[:, 1] - v[:, 0]
    return error[:, None] * torch.cat([gradient_V.flatten(1), gradient_A.flatten(1)], 1)


@np.errstate(**_OVERFLOW)
def _estimate(total: FloatArray, outer: FloatArray, N: int) -> Neu:
    mean = total / N
    value = float((total @ total - np.trace(outer)) / (N * (N - 1)))
    covariance = (outer - N * np.outer(mean, mean)) / (N - 1)
    square = float((covariance**2).sum())
    along = max(float(mean @ covariance @ mean) - square / N, 0.0)
    variance = 4 * along / N + 2 * square / (N * (N - 1))
    return Neu(value, float(np.sqrt(variance)), N, mean)
