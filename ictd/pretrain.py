"""Multi-task TD pretraining of the transformers, many seeds in one tensor program.

Each step draws windows of random chains with random features, and moves the parameters of each network by
one step of Adam on the mean squared error of its values at the windows' queries S_n. The target of a TD
error, R_{n+1} + γ v_θ(Z′) with Z′ the window moved on by one transition, is held constant: a semi-gradient.
Two protocols say which windows: *fresh* tasks each step, or the *window* protocol of arXiv:2405.13861,
which walks five times through each chain and slides a window along each walk.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ictd import _models
from ictd._checkpoint import Checkpoint, CheckpointError
from ictd._checks import FloatArray
from ictd._config import PretrainConfig
from ictd._metrics import Metrics
from ictd._models import Parameters
from ictd._tasks import Batch, Schedule
from ictd.transformer import LinearTransformer, SoftmaxTransformer

__all__ = ["CheckpointError", "PretrainConfig", "PretrainResult", "pretrain"]


@dataclass(frozen=True, eq=False)
class PretrainResult:
    """Trained parameters and what was measured on the way.

    Attributes:
        config: the configuration.
        parameters: name → array, first axis the seeds; with layers of their own, second axis the layers.
        history: name → array, first axis the evaluations, second the seeds (NaN after a seed has stopped):

            - "step" alone has one axis: steps done;
            - "loss": mean loss of the steps since the evaluation before; at step 0 that of the first batch;
            - "V", "A", or "P", "Q": the parameters; "A_trace" and "A_off_diagonal", the trace and the norm
              of what is off the diagonal of the feature block of A;
            - "visit_weighted_diagonality", "state_mean_diagonality", "minimum_diagonality": of M̂ on the
              held-out contexts, over visited states; "population_diagonality": min_s M_π(s, s). All are
              means over the tasks, with an axis of layers at the end (one where all layers have the same
              kernel); compare them with ``threshold``;
            - "value_error" and "construction_error": root mean square, weighted by μ, of v_θ − v_π and of
              v_θ − v_{θ*}, θ* the construction, mean over tasks;
            - "VD", "IWS", "SS": the metrics of arXiv:2405.13861 beside linear TD with a trained step: the
              μ-weighted square of the difference of values, the cosine of the implicit weights, and the
              μ-weighted mean cosine of the gradients with respect to the query's features.
        stopped: seed → step at which its loss, gradient or parameters were not finite. Its parameters are
            those before that step.
        seconds: time of the steps of this call.
    """

    config: PretrainConfig
    parameters: dict[str, FloatArray]
    history: dict[str, FloatArray]
    stopped: dict[int, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def V(self) -> FloatArray:
        """(a, b, c) of each seed, shape (seeds, 3); unmasked (seeds, d+3, d+3)."""
        return self._parameter("V")

    @property
    def A(self) -> FloatArray:
        """The feature block of each seed, shape (seeds, d, d); unmasked (seeds, d+3, d+3)."""
        return self._parameter("A")

    @property
    def P(self) -> FloatArray:
        """P of linear attention, shape (seeds, 2d+1, 2d+1); masked its last entry, (seeds, 1, 1)."""
        return self._parameter("P")

    @property
    def Q(self) -> FloatArray:
        """Q of linear attention, shape (seeds, 2d+1, 2d+1); masked its block, (seeds, 2d, 2d)."""
        return self._parameter("Q")

    @property
    def threshold(self) -> float:
        """(1 + γ)/2, which Assumption 5.1 wants the least diagonal entry of M_π to exceed."""
        return (1 + self.config.gamma) / 2

    def network(self, seed: int) -> SoftmaxTransformer | LinearTransformer:
        """The trained network of a seed.

        Args:
            seed: one of ``config.seeds``.

        Returns:
            A literal network, in the dtype of the configuration.

        Raises:
            ValueError: there is no such seed.
        """
        if seed not in self.config.seeds:
            raise ValueError(f"seed must be one of {self.config.seeds}, got {seed!r}")
        index = self.config.seeds.index(seed)
        own = {
            name: torch.from_numpy(array[index].copy()) for name, array in self.parameters.items()
        }
        return _models.build(self.config).network(own)

    def _parameter(self, name: str) -> FloatArray:
        if name not in self.parameters:
            raise AttributeError(
                f"{self.config.attention} attention has no {name}, only {', '.join(self.parameters)}"
            )
        return self.parameters[name]


def pretrain(config: PretrainConfig, progress: bool | None = None) -> PretrainResult:
    """Pretrain a network for each seed.

    The numbers of a seed depend on the seed and the other fields of the configuration, not on the other
    seeds. With a checkpoint folder, a run that was killed goes on where the last checkpoint is, to the same
    bits as one that was not; a finished run is returned; one may be prolonged by a larger ``n_steps``.
    Ctrl-C saves a checkpoint and raises KeyboardInterrupt.

    Args:
        config: what is trained.
        progress: whether to show a bar with loss, steps a second and time left; None: on a terminal.

    Returns:
        The trained networks and their history.

    Raises:
        ValueError: config is no configuration.
        CheckpointError: the checkpoint is damaged, of another configuration or of something else.
        ImportError: a checkpoint without the package safetensors, or progress=True without tqdm.
    """
    if not isinstance(config, PretrainConfig):
        raise ValueError(f"config must be an ictd.PretrainConfig, got {type(config).__name__}")
    store = None if config.checkpoint_dir is None else Checkpoint(config)
    run = _Run(config)
    if store is not None and (state := store.load(run.state())) is not None:
        run.restore(state)
    return run.train(store, progress)


class _Run:
    """A pretraining run: what changes from step to step, and how."""

    def __init__(self, config: PretrainConfig) -> None:
        self.config = config
        self.model = _models.build(config)
        self.schedule = Schedule(config)
        self.metrics = Metrics(config, self.model)
        self.step = 0
        self.parameters: Parameters = {
            name: tensor.requires_grad_()
            for name, tensor in self.model.initial(config.initial_scale).items()
        }
        self.adam = torch.optim.Adam(
            self.parameters.values(),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )
        seeds = len(config.seeds)
        self.stopped = torch.full((seeds,), -1, dtype=torch.int64)
        self.loss_sum = torch.zeros(seeds, dtype=torch.float64)
        self.loss_count = 0
        self.history: dict[str, list[Any]] = {}

    # ------------------------------------------------------------------------------------ the loop

    def train(self, store: Checkpoint | None, progress: bool | None) -> PretrainResult:
        config, began = self.config, time.perf_counter()
        if self.step == 0 and not self.history:
            self._evaluate()
        with _bar(config.n_steps, self.step, progress) as bar, _interruptible() as interrupted:
            while self.step < config.n_steps and (self.stopped < 0).any():
                loss = self._advance()
                if bar is not None and bar.update():
                    alive = loss[self.stopped < 0]
                    bar.set_postfix(loss=f"{alive.mean():.3g}", refresh=False)
                done = self.step == config.n_steps
                if done or self.step % config.eval_every == 0:
                    self._evaluate()
                if store is not None and (
                    done or interrupted.is_set() or self.step % config.checkpoint_every == 0
                ):
                    store.save(self.state(), self.step)
                if interrupted.is_set():
                    raise KeyboardInterrupt
        if self.step < config.n_steps and store is not None:
            store.save(self.state(), self.step)
        return PretrainResult(
            config,
            {
                name: tensor.detach().cpu().numpy().copy()
                for name, tensor in self.parameters.items()
            },
            {name: np.stack(values) for name, values in self.history.items()},
            {
                seed: int(step)
                for seed, step in zip(config.seeds, self.stopped.tolist(), strict=True)
                if step >= 0
            },
            time.perf_counter() - began,
        )

    def _advance(self) -> Tensor:
        """One step of the optimiser for every seed that has not stopped; returns the losses."""
        before = {name: tensor.detach().clone() for name, tensor in self.parameters.items()}
        loss = losses(self.model, self.parameters, self.schedule.batch(self.step))
        self.adam.zero_grad()
        torch.autograd.backward(loss.sum())
        loss = loss.detach()
        fine = torch.isfinite(loss)
        for tensor in self.parameters.values():
            assert tensor.grad is not None
            fine &= torch.isfinite(tensor.grad).flatten(1).all(1)
        self.adam.step()
        for tensor in self.parameters.values():
            fine &= torch.isfinite(tensor.detach()).flatten(1).all(1)
        self._stop((~fine).cpu() & (self.stopped < 0), loss)
        if (self.stopped >= 0).any():
            gone = (self.stopped >= 0).to(loss.device)
            with torch.no_grad():
                for name, tensor in self.parameters.items():
                    tensor[gone] = before[name][gone]
        self.step += 1
        self.loss_sum += loss.double().cpu()
        self.loss_count += 1
        return loss.cpu()

    def _stop(self, now: Tensor, loss: Tensor) -> None:
        for index in now.nonzero()[:, 0].tolist():
            self.stopped[index] = self.step
            warnings.warn(
                f"seed {self.config.seeds[index]} stopped at step {self.step}: its loss is "
                f"{float(loss[index]):.3g} and its next parameters are not finite; those before this "
                "step are kept. A smaller learning_rate may help.",
                RuntimeWarning,
                stacklevel=4,
            )

    def _evaluate(self) -> None:
        """Add a row to the history."""
        if self.loss_count:
            loss = self.loss_sum / self.loss_count
        else:
            with torch.no_grad():
                first = losses(self.model, self.parameters, self.schedule.batch(self.step))
            loss = first.double().cpu()
        parameters = {name: tensor.detach() for name, tensor in self.parameters.items()}
        row = {"loss": loss.numpy().copy(), **self.metrics.measure(parameters)}
        for values in row.values():
            values[self.stopped.numpy() >= 0] = np.nan
        for name, values in {"step": np.array(self.step), **row}.items():
            self.history.setdefault(name, []).append(values)
        self.loss_sum.zero_()
        self.loss_count = 0

    # -------------------------------------------------------------------------------- its whole state

    def state(self) -> dict[str, Tensor]:
        """Everything that the steps to come depend on, but for the configuration."""
        state = {f"parameter.{name}": tensor.detach() for name, tensor in self.parameters.items()}
        for name, tensor in self.parameters.items():
            moments = self.adam.state.get(tensor) or {
                "exp_avg": torch.zeros_like(tensor),
                "exp_avg_sq": torch.zeros_like(tensor),
            }
            state[f"adam.mean.{name}"] = moments["exp_avg"]
            state[f"adam.square.{name}"] = moments["exp_avg_sq"]
        state["step"] = torch.tensor(self.step)
        state["stopped"] = self.stopped
        state["loss.sum"] = self.loss_sum
        state["loss.count"] = torch.tensor(self.loss_count)
        for name, values in self.history.items():
            state[f"history.{name}"] = torch.from_numpy(np.stack(values))
        return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Take over a state that fits the configuration."""
        self.step = int(state["step"])
        for name, tensor in self.parameters.items():
            with torch.no_grad():
                tensor.copy_(state[f"parameter.{name}"])
            if self.step:
                self.adam.state[tensor] = {
                    "step": torch.tensor(float(self.step)),
                    "exp_avg": state[f"adam.mean.{name}"].to(tensor),
                    "exp_avg_sq": state[f"adam.square.{name}"].to(tensor),
                }
        self.stopped = state["stopped"].clone()
        self.loss_sum = state["loss.sum"].clone()
        self.loss_count = int(state["loss.count"])
        self.history = {
            name.removeprefix("history."): list(tensor.numpy())
            for name, tensor in state.items()
            if name.startswith("history.")
        }


def losses(model: _models.Model, parameters: Parameters, batch: Batch) -> Tensor:
    """Mean squared error of each seed, shape (seeds,).

    Without targets, the errors are R_{n+1} + γ v(Z′) − v(Z) of neighbouring windows, v(Z′) held constant.
    """
    v = model.values(parameters, batch)
    if batch.targets is not None:
        return (batch.targets - v).square().mean((1, 2))
    rewards = batch.rewards.gather(-1, batch.queries[..., :-1])
    targets = rewards + model.gamma * v[..., 1:].detach()
    return (targets - v[..., :-1]).square().mean((1, 2))


@contextmanager
def _bar(n_steps: int, done: int, progress: bool | None) -> Iterator[Any]:
    """A progress bar on stderr, or None."""
    if not (sys.stderr.isatty() if progress is None else progress):
        yield None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        if progress:
            raise ImportError("progress=True needs the package tqdm: pip install tqdm") from None
        yield None
        return
    with tqdm(total=n_steps, initial=done, desc="pretraining", unit="step", mininterval=0.5) as bar:
        yield bar


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, so that a step is never cut in the middle; a second one cuts it."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event  # signals reach the main thread alone
        return

    def interrupt(*_: object) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)
