"""What pretraining costs, beside the code that one would write first.

    python tests/benchmarks/pretraining_cost.py [--small] [--store]

The sliding-window protocol of arXiv:2405.13861: d = 4, |S| = 10, n = 30, L = 3, γ = 0.9, 64 windows a step,
five steps a chain, 4,000 chains, so 20,000 steps; 30 seeds at once. Beside it, for a single seed:

- vectorised: the literal network, one n × n attention matrix a window, all windows of a step in one batch;
- by window: the same, one window after the other.

All three draw chains and walks, step Adam, and hold the next value constant. Times are medians of single
steps, after the first ones, on one thread: the tensors are too small for more. Then: what the steps spend
their time on, and how far they are from what the arithmetic alone would take. ``--store`` writes the
results, and what machine they are of, to pretraining_cost.json.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

import ictd

pretraining = importlib.import_module("ictd.pretrain")

PROTOCOL: dict[str, Any] = {
    "n_states": 10,
    "n_features": 4,
    "context_length": 30,
    "n_layers": 3,
    "gamma": 0.9,
    "features": "uniform",
    "protocol": "window",
    "batch_size": 64,
    "learning_rate": 1e-3,
    "weight_decay": 1e-6,
    "eval_every": 100,
    "n_steps": 20_000,
}
MODELS = {"softmax": {}, "linear": {"attention": "linear", "masked": False}}
RESULTS = Path(__file__).with_suffix(".json")


def milliseconds(step: Callable[[], Any], warm: int, repeats: int) -> float:
    """Median over single steps."""
    for _ in range(warm):
        step()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return 1e3 * float(np.median(times))


class Plain:
    """One seed, with the library's networks and nothing else of it."""

    def __init__(self, model: str, one_by_one: bool) -> None:
        self.model, self.one_by_one = model, one_by_one
        self.rng = np.random.default_rng(0)
        d, m = 4, 7 if model == "softmax" else 9
        first, second = (
            torch.from_numpy(self.rng.normal(scale=0.1, size=(m, m))).float() for _ in range(2)
        )
        if model == "softmax":
            A = torch.zeros(m, m)
            A[:d, :d] = first[:d, :d]
            V = torch.zeros(m, m)
            V[d + 2, d:] = second[d + 2, d:]
            self.network: torch.nn.Module = ictd.SoftmaxTransformer(A, V, 0.9, 3)
            self.masks = [(A != 0).float(), (V != 0).float()]
        else:
            self.network = ictd.LinearTransformer(first, second, 3)
            self.masks = [torch.ones(m, m)] * 2
        self.adam = torch.optim.Adam(self.network.parameters(), lr=1e-3, weight_decay=1e-6)
        self.done = 0

    def step(self) -> None:
        if self.done % 5 == 0:
            self.chain = ictd.boyan_chain(10, 0.9, self.rng)
            self.x = ictd.uniform_features(10, 4, self.rng).astype(np.float32)
        self.done += 1
        walk = self.chain.sample(30 + 64, self.rng)
        starts = range(65)
        windows = np.stack([walk.states[w : w + 31] for w in starts])
        rewards = np.stack([walk.rewards[w : w + 30] for w in starts])
        if self.one_by_one:
            v = torch.stack([self.values(windows[w], rewards[w]) for w in starts])
        else:
            v = self.values(windows, rewards)
        r = torch.from_numpy(walk.rewards[30:]).float()
        loss = (r + 0.9 * v[1:].detach() - v[:-1]).square().mean()
        self.adam.zero_grad()
        loss.backward()
        for parameter, mask in zip(self.network.parameters(), self.masks, strict=True):
            parameter.grad *= mask
        self.adam.step()

    def values(self, states: np.ndarray, rewards: np.ndarray) -> torch.Tensor:
        context = ictd.Trajectory(states, rewards)
        if self.model == "softmax":
            return self.network(ictd.prompt(context, self.x))[..., -1, -1]
        return -self.network(ictd.linear_prompt(context, self.x, 0.9))[..., -1, -1]


def measure(model: str, seeds: int, repeats: int) -> dict[str, float]:
    """Milliseconds a step of ours, for all seeds together and for one, and of both plain codes."""
    run = {
        k: pretraining._Run(ictd.PretrainConfig(**PROTOCOL, **MODELS[model], seeds=k))
        for k in (seeds, 1)
    }
    step = {k: milliseconds(run[k]._advance, 10, repeats) for k in run}
    # The steps that draw a block of tasks come up once in 40: their share is counted apart.
    schedule = run[seeds].schedule
    drawing = milliseconds(lambda: schedule._draw(0), 1, 3) / schedule.block_steps
    evaluation = milliseconds(run[seeds]._evaluate, 1, 3) / PROTOCOL["eval_every"]
    vectorised = milliseconds(Plain(model, False).step, 2, max(repeats // 10, 3))
    by_window = milliseconds(Plain(model, True).step, 1, max(repeats // 50, 2))
    ours = step[seeds] + drawing
    total = PROTOCOL["n_steps"] * (ours + evaluation) / 1e3
    return {
        "seeds": seeds,
        "step_ms": step[seeds],
        "drawing_ms": drawing,
        "evaluation_ms": evaluation,
        "one_seed_step_ms": step[1],
        "vectorised_step_ms": vectorised,
        "by_window_step_ms": by_window,
        "whole_protocol_s": total,
        "per_seed_s": total / seeds,
        "times_vectorised": vectorised * seeds / ours,
        "times_by_window": by_window * seeds / ours,
    }


def profile(model: str, seeds: int) -> dict[str, float]:
    """Shares of the time of a step by kind of operation, and the arithmetic of its products."""
    run = pretraining._Run(ictd.PretrainConfig(**PROTOCOL, **MODELS[model], seeds=seeds))
    for _ in range(3):
        run._advance()
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(10):
            run._advance()
    events = profiler.key_averages()
    total = sum(event.self_cpu_time_total for event in events)
    kinds = {"products": ("bmm", "_Product"), "counting": ("cumsum", "scatter"), "Adam": ("Adam",)}
    shares = {
        kind: sum(
            event.self_cpu_time_total
            for event in events
            if any(name in event.key for name in names)
        )
        / total
        for kind, names in kinds.items()
    }
    shares["other"] = 1 - sum(shares.values())
    return shares


def arithmetic(model: str, seeds: int) -> dict[str, float]:
    """Operations of the matrix products of a step, and the time they would take at full speed."""
    config = ictd.PretrainConfig(**PROTOCOL, **MODELS[model], seeds=seeds)
    run = pretraining._Run(config)
    models = importlib.import_module("ictd._models")
    by_numpy = models._by_numpy
    models._by_numpy = torch.matmul  # to be seen by the counter
    try:
        with FlopCounterMode(display=False) as counter:
            run._advance()
    finally:
        models._by_numpy = by_numpy
    operations = counter.get_total_flops()
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    rate = 2 * 1024**3 / (milliseconds(lambda: a @ b, 3, 10) / 1e3)
    return {"operations": operations, "at_full_speed_ms": 1e3 * operations / rate, "rate": rate}


def machine() -> dict[str, Any]:
    """What the figures are of."""
    names = {
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    }
    return {
        "processor": ", ".join(sorted(names)),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "ictd": ictd.__version__,
        "system": f"{platform.system()} {platform.machine()}",
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="seconds instead of a minute")
    parser.add_argument("--store", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    seeds, repeats = (3, 10) if options.small else (30, 200)
    results: dict[str, Any] = {"machine": machine(), "protocol": PROTOCOL}
    for model in MODELS:
        found = measure(model, seeds, repeats) | {"shares": profile(model, seeds)}
        found["arithmetic"] = arithmetic(model, seeds)
        results[model] = found
        print(f"{model}, {seeds} seeds:")
        print(f"  a step                 {found['step_ms']:8.2f} ms")
        print(f"  drawing, a step        {found['drawing_ms']:8.2f} ms")
        print(f"  evaluation, a step     {found['evaluation_ms']:8.2f} ms")
        print(f"  a step of one seed     {found['one_seed_step_ms']:8.2f} ms")
        print(f"  vectorised, one seed   {found['vectorised_step_ms']:8.2f} ms")
        print(f"  by window, one seed    {found['by_window_step_ms']:8.2f} ms")
        print(f"  the whole protocol     {found['whole_protocol_s']:8.1f} s")
        print(f"  that is, a seed        {found['per_seed_s']:8.2f} s")
        print(f"  vectorised / ours      {found['times_vectorised']:8.0f}x a seed")
        print(f"  by window / ours       {found['times_by_window']:8.0f}x a seed")
        shares = ", ".join(f"{kind} {share:.0%}" for kind, share in found["shares"].items())
        print(f"  time of a step:        {shares}")
        bare = found["arithmetic"]
        print(
            f"  products of a step:    {bare['operations'] / 1e6:.1f} million operations, "
            f"{bare['at_full_speed_ms']:.2f} ms at {bare['rate'] / 1e9:.0f} GFlop/s\n",
            flush=True,
        )
    if options.store:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
