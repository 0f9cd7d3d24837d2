"""What the operator of a context costs: time and memory against n and S, beside plain references.

    python tests/benchmarks/operator_cost.py [--small]

Four tables. Counting against n, with the ratio to a reference that collects the n × S weights of
(9) and never counts. Counting and sampling as a stream, against n: the memory stays. The operator and its
spectrum against S, and for many chains at once beside a loop over chains. Times are the best of three.
Peaks are those of the arrays that NumPy allocates meanwhile.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import ictd


def seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def peak_megabytes(call: Callable[[], Any]) -> float:
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def slope(sizes: list[int], times: list[float]) -> float:
    """Of log time against log size, over the larger half, where constants have faded."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0])


def plain_operator(trajectory: ictd.Trajectory, scores: np.ndarray) -> np.ndarray:
    """M̂ by (20): the weights of all n positions, then a sum over the visits of each state."""
    S, sources = len(scores), trajectory.states[:-1]
    K = ictd.softmax_kernel(scores, sources)
    return np.stack([K[sources == t].sum(0) for t in range(S)], axis=-1)


def against_length(S: int, lengths: list[int], plain_up_to: int) -> None:
    rng = np.random.default_rng(0)
    scores = ictd.inner_product_scores(ictd.sphere_features(S, 10, rng))
    print(f"Operator of a context held in memory, S = {S}")
    print(f"{'n':>10} {'time':>10} {'peak':>9} {'plain time':>11} {'plain peak':>11} {'ratio':>7}")
    times = []
    for n in lengths:
        # Counting does not care where the states come from.
        trajectory = ictd.Trajectory(rng.integers(0, S, n + 1), rng.random(n))
        M = ictd.empirical_operator(trajectory, scores).M
        times.append(seconds(lambda t=trajectory: ictd.empirical_operator(t, scores)))
        peak = peak_megabytes(lambda t=trajectory: ictd.empirical_operator(t, scores))
        line = f"{n:10,} {times[-1]:8.4f} s {peak:6.1f} MB"
        if n <= plain_up_to:
            plain = seconds(lambda t=trajectory: plain_operator(t, scores))
            plain_peak = peak_megabytes(lambda t=trajectory: plain_operator(t, scores))
            assert np.abs(M - plain_operator(trajectory, scores)).max() < 1e-12
            line += f" {plain:9.4f} s {plain_peak:8.1f} MB {plain / times[-1]:6.0f}x"
        print(line, flush=True)
    print(f"time grows as n^{slope(lengths, times):.2f}\n")


def against_length_streamed(S: int, lengths: list[int]) -> None:
    rng = np.random.default_rng(0)
    chain = ictd.random_chain(S, 0.9, rng)
    print(f"A chain sampled and counted as a stream, S = {S}")
    print(f"{'n':>10} {'sampling':>10} {'counting':>10} {'peak at n/10':>13}")
    for n in lengths:
        begin = time.perf_counter()
        chunks = list(chain.stream(n, rng))
        sampling = time.perf_counter() - begin
        counting = seconds(lambda c=chunks: ictd.Counts.of_stream(c, S), repeats=1)
        del chunks
        # Tracing slows the sampler down a lot: a tenth of the length shows the peak just as well.
        part = max(n // 10, 1)
        peak = peak_megabytes(lambda m=part: ictd.Counts.of_stream(chain.stream(m, rng), S))
        print(f"{n:10,} {sampling:8.2f} s {counting:8.3f} s {peak:10.1f} MB", flush=True)
    print()


def figures(operator: ictd.KernelOperator) -> None:
    operator.contraction(0.9)
    operator.rate(0.9)
    operator.limit(0.9)
    operator.theorem_a_rate(0.9)


def against_states(sizes: list[int], n: int) -> None:
    rng = np.random.default_rng(0)
    print(
        f"Against S, n = {n:,}: the operator, ten layers, and its spectrum, limit and certificate"
    )
    print(f"{'S':>6} {'operator':>10} {'10 layers':>10} {'figures':>10}")
    build, layers, all_figures = [], [], []
    for S in sizes:
        scores = ictd.inner_product_scores(ictd.sphere_features(S, 10, rng))
        states = rng.integers(0, S, n + 1)
        counts = ictd.Counts.of(ictd.Trajectory(states, rng.random(n)), S)

        def made(counts=counts, scores=scores) -> ictd.KernelOperator:
            return ictd.empirical_operator(counts, scores)

        operator = made()
        build.append(seconds(made))
        layers.append(seconds(lambda op=operator: op.values(0.9, 10)))
        all_figures.append(seconds(lambda make=made: figures(make())))
        print(f"{S:6} {build[-1]:8.4f} s {layers[-1]:8.4f} s {all_figures[-1]:8.4f} s", flush=True)
    powers = ", ".join(f"S^{slope(sizes, times):.2f}" for times in (build, layers, all_figures))
    print(f"times grow as {powers}\n")


def against_chains(S: int, numbers: list[int]) -> None:
    rng = np.random.default_rng(0)
    print(f"Many chains at once, S = {S}: operator and figures, beside a loop over chains")
    print(f"{'chains':>8} {'at once':>10} {'loop':>10} {'ratio':>7}")
    for number in numbers:
        chains = ictd.boyan_chain(S, 0.9, rng, (number,))
        scores = ictd.inner_product_scores(ictd.sphere_features(S, 10, rng, (number,)))
        trajectory = chains.sample(100, rng)

        def together(t=trajectory, g=scores) -> None:
            figures(ictd.empirical_operator(t, g))

        def one_by_one(t=trajectory, g=scores) -> None:
            for states, rewards, score in zip(t.states, t.rewards, g, strict=True):
                figures(ictd.empirical_operator(ictd.Trajectory(states, rewards), score))

        at_once, loop = seconds(together), seconds(one_by_one, repeats=1)
        print(f"{number:8} {at_once:8.4f} s {loop:8.3f} s {loop / at_once:6.1f}x", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="seconds instead of a minute")
    small = parser.parse_args(arguments).small
    if small:
        against_length(10, [100, 1000, 10_000], plain_up_to=1000)
        against_length_streamed(10, [1000, 10_000])
        against_states([5, 10, 20], n=1000)
        against_chains(5, [1, 10])
    else:
        against_length(100, [10**k for k in range(3, 8)], plain_up_to=10**5)
        against_length_streamed(100, [10**k for k in range(4, 8)])
        against_states([10, 30, 100, 300, 1000], n=10**5)
        against_chains(10, [1, 10, 100, 1000])


if __name__ == "__main__":
    main()
