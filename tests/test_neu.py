"""J_{L,n}: the estimate is unbiased, its interval covers, its updates are the literal network's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pretraining_cases import full_matrices
from strategies import examples, seeds

import ictd
from ictd import _tasks
from ictd.neu import _estimate

TD = [1.0, 1.0, -1.0]
SETTING = {"n_states": 5, "context_length": 8, "n_layers": 3, "gamma": 0.5}


def estimate(V: object = TD, A: object = None, **fields: object) -> ictd.Neu:
    A = np.eye(4) if A is None else A
    return ictd.neu(V, A, **{**SETTING, "n_tasks": 400, **fields})


def literal_updates(
    V: np.ndarray, A: np.ndarray, n_tasks: int, seed: int, chain: str, features: str
) -> np.ndarray:
    """Updates task by task, through the literal network."""
    d, n, L, gamma = A.shape[-1], *(SETTING[k] for k in ("context_length", "n_layers", "gamma"))
    config = ictd.PretrainConfig(
        n_states=5,
        n_features=d,
        context_length=n,
        gamma=gamma,
        chain=chain,
        features=features,
        seeds=[seed],
        shared_layers=V.ndim == 1,
    )
    matrices = full_matrices(config, {"V": torch.from_numpy(V), "A": torch.from_numpy(A)})
    tasks = _tasks.draw(config, (_tasks.NEU, 0), 1000, walks=1, length=n + 1)
    updates = []
    for task in range(n_tasks):
        states, reward = tasks.states[0, task, 0], tasks.chains.reward[0, task]
        layers = L if config.shared_layers else None
        network = ictd.SoftmaxTransformer(matrices["A"], matrices["V"], gamma, layers)
        values = []
        for window in (states[:-1], states[1:]):
            trajectory = ictd.Trajectory(window, reward[window[:-1]])
            Z = network(ictd.prompt(trajectory, tasks.features[0, task]))
            values.append(Z[-1, -1])
        values[0].backward()
        error = reward[states[-2]] + gamma * values[1].item() - values[0].item()
        free_V = network.V.grad[..., d + 2, d:].flatten()
        free_A = network.A.grad[..., :d, :d].flatten()
        updates.append(error * torch.cat([free_V, free_A]).numpy())
    return np.stack(updates)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("chain", "features"), [("boyan", "sphere"), ("loop", "uniform")])
def test_it_is_the_estimate_from_the_literal_network_s_updates(
    shared: bool, chain: str, features: str
) -> None:
    rng = np.random.default_rng(0)
    layers = () if shared else (3,)
    V, A = rng.normal(size=(*layers, 3)), rng.normal(size=(*layers, 4, 4))
    found = estimate(V, A, n_tasks=30, seed=9, chain=chain, features=features)
    g = literal_updates(V, A, 30, 9, chain, features)
    total = g.sum(0)
    value = (total @ total - (g**2).sum()) / (30 * 29)
    assert abs(found.value - value) < 1e-10 * (g**2).sum()
    assert np.abs(found.update - g.mean(0)).max() < 1e-10 * np.abs(g).max()
    covariance = np.cov(g.T)
    along = max(g.mean(0) @ covariance @ g.mean(0) - (covariance**2).sum() / 30, 0)
    variance = 4 * along / 30 + 2 * (covariance**2).sum() / (30 * 29)
    assert abs(found.standard_error - np.sqrt(variance)) < 1e-10 * np.sqrt(variance)
    low, high = found.interval
    assert high - low == pytest.approx(2 * 1.959964 * found.standard_error)
    assert low + high == pytest.approx(2 * found.value)


@pytest.mark.parametrize(("length", "coverage"), [(0.0, 0.99), (0.3, 0.84), (1.0, 0.93)])
def test_the_estimate_is_unbiased_and_its_interval_covers(length: float, coverage: float) -> None:
    """Normal updates, of which J and the variance are known; worst where J is about its standard error."""
    rng = np.random.default_rng(1)
    p, N, trials = 6, 400, 2000
    mean = np.full(p, length / np.sqrt(p))
    root = rng.normal(size=(p, p)) / 2
    covered, values, errors = 0, [], []
    for _ in range(trials):
        g = mean + rng.normal(size=(N, p)) @ root
        found = _estimate(g.sum(0), g.T @ g, N)
        low, high = found.interval
        covered += low <= length**2 <= high
        values.append(found.value)
        errors.append(found.standard_error)
    assert abs(np.mean(values) - length**2) < 4 * np.std(values) / np.sqrt(trials)
    assert covered / trials > coverage
    if length == 1.0:
        assert np.mean(errors) == pytest.approx(np.std(values), rel=0.1)


@examples(15)
@given(seed=seeds, chunk=st.integers(1, 1200), n_tasks=st.integers(2, 1100))
def test_chunks_do_not_change_it(seed: int, chunk: int, n_tasks: int) -> None:
    whole = estimate(n_tasks=n_tasks, seed=seed, chunk=5000)
    parts = estimate(n_tasks=n_tasks, seed=seed, chunk=chunk if n_tasks < 200 else max(chunk, 100))
    assert parts.value == pytest.approx(whole.value, rel=1e-9, abs=1e-15)
    assert parts.standard_error == pytest.approx(whole.standard_error, rel=1e-9)


def test_at_zero_value_weights_it_has_a_closed_form() -> None:
    """At V = 0 the values are zero and J is L² ‖E[r(S_n) (M̂ r)(S_n)]‖², in the entry of the reward."""
    found = estimate([0, 0, 0], np.eye(4), n_tasks=1000, n_layers=4)
    config = ictd.PretrainConfig(n_states=5, n_features=4, context_length=8, gamma=0.5, seeds=[0])
    tasks = _tasks.draw(config, (_tasks.NEU, 0), 1000, walks=1, length=9)
    products = []
    for task in range(1000):
        states, r = tasks.states[0, task, 0], tasks.chains.reward[0, task]
        context = ictd.Trajectory(states[:-1], r[states[:-2]])
        scores = ictd.inner_product_scores(tasks.features[0, task])
        M = ictd.empirical_operator(context, scores).M
        products.append(r[states[-2]] * (M @ r)[states[-2]])
    assert found.update[0] == pytest.approx(4 * np.mean(products), rel=1e-9)
    assert np.abs(found.update[1:]).max() < 1e-15


def test_at_the_construction_it_falls_with_depth_and_then_to_zero() -> None:
    fields = {"context_length": 100, "n_tasks": 3000, "A": np.eye(10)}
    shallow, deep = (estimate(**fields, n_layers=L) for L in (1, 30))
    assert shallow.interval[0] > 5e-3
    assert deep.interval[1] < 2e-4
    wrong = estimate([1.0, -1.0, -1.0], **fields, n_layers=30)
    assert wrong.interval[0] > 1e-2


@pytest.mark.parametrize("a", [1e50, 1e120, 1e200])
def test_where_it_overflows_it_is_not_finite_and_nothing_is_warned_of(a: float) -> None:
    """Squares of the covariance, then of the updates, then the updates: any warning fails the test."""
    found = estimate([a, 1.0, -1.0])
    assert not np.isfinite(found.standard_error)
    assert np.isfinite(found.value) == (a == 1e50)


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"V": [1, 1]}, "V and A must have shapes"),
        ({"V": np.ones((3, 3))}, "V and A must have shapes"),
        ({"V": [1, np.nan, 1]}, "V must be finite"),
        ({"A": np.ones((2, 3))}, "A must have shape"),
        ({"A": np.ones((2, 4, 4)), "V": np.ones((2, 3))}, "n_layers = 3"),
        ({"n_tasks": 1}, "n_tasks must be an integer ≥ 2"),
        ({"chunk": 0}, "chunk must be an integer ≥ 1"),
        ({"n_layers": 0}, "n_layers must be an integer ≥ 1"),
        ({"gamma": 1.0}, "gamma must be in"),
        ({"seed": -1}, r"^seed must be an integer ≥ 0 and ≤ 4294967295, got -1"),
        ({"seed": 2**32}, "^seed must be"),
        ({"seed": (0, 1)}, "^seed must be"),
        (
            {"device": "cuda:99"},
            r"^device must be a device that torch has here, cpu.*, got 'cuda:99'",
        ),
        ({"features": "ring"}, "features must be one of"),
        ({"chain": "ring"}, "chain must be one of"),
        ({"features": "one-hot"}, "n_features must be n_states"),
        ({"dtype": "int8"}, "dtype must be one of"),
    ],
)
def test_bad_arguments_are_refused_by_name(fields: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        estimate(**fields)
