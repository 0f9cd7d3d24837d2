"""What is measured of a run: diagonality, value errors, and the group's metrics."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from pretraining_cases import (
    configuration,
    each_variant,
    trajectories,
)

import ictd
from ictd import _metrics, _models, _tasks


def test_reading_the_construction_gives_the_algorithm_at_every_state() -> None:
    config = configuration(seeds=[5])
    metrics = _metrics.Metrics(config, _models.build(config))
    for task in range(config.eval_tasks):
        (trajectory,) = trajectories(metrics.context, 0, task)
        scores = ictd.inner_product_scores(metrics.context.features[0, task].numpy())
        values = ictd.weighted_softmax_td(trajectory, scores, config.gamma, config.n_layers)
        assert np.abs(metrics.construction[0, task].numpy() - values[-1]).max() < 1e-12


def test_reading_the_linear_construction_gives_linear_td() -> None:
    config = configuration(seeds=[5], attention="linear")
    metrics = _metrics.Metrics(config, _models.build(config))
    for task in range(config.eval_tasks):
        (trajectory,) = trajectories(metrics.context, 0, task)
        x = metrics.context.features[0, task].numpy()
        values = ictd.linear_td(trajectory, x, config.gamma, config.n_layers)
        assert np.abs(metrics.construction[0, task].numpy() - values[-1]).max() < 1e-12


def test_diagonality_is_that_of_the_operator() -> None:
    config = configuration(seeds=[2], initial_scale=1.0, eval_tasks=6)
    result = ictd.pretrain(dataclasses.replace(config, n_steps=0), progress=False)
    metrics = _metrics.Metrics(config, _models.build(config))
    weighted, mean, least, population = [], [], [], []
    tasks = _tasks.draw(config, (_tasks.EVALUATION,), 6, walks=1, length=7)
    for task in range(6):
        x = metrics.context.features[0, task].numpy()
        scores = x @ result.A[0].T @ x.T
        (trajectory,) = trajectories(metrics.context, 0, task)
        operator = ictd.empirical_operator(trajectory, scores)
        weighted.append(operator.visit_weighted_diagonality())
        mean.append(operator.state_mean_diagonality())
        least.append(np.diagonal(operator.M)[operator.visited].min())
        chain = ictd.MarkovRewardProcess(
            tasks.chains.transition[0, task], tasks.chains.reward[0, task], 0.8
        )
        population.append(ictd.population_operator(chain, scores).diagonality())
    expected = {
        "visit_weighted_diagonality": weighted,
        "state_mean_diagonality": mean,
        "minimum_diagonality": least,
        "population_diagonality": population,
    }
    for name, values in expected.items():
        assert abs(result.history[name][0, 0, 0] - np.mean(values)) < 1e-12
    assert result.threshold == 0.9


def test_value_errors_are_weighted_by_the_stationary_law() -> None:
    config = configuration(seeds=[2], n_steps=0)
    result = ictd.pretrain(config, progress=False)
    metrics = _metrics.Metrics(config, _models.build(config))
    tasks = _tasks.draw(config, (_tasks.EVALUATION,), 3, walks=1, length=7)
    own = {name: torch.from_numpy(p[0]) for name, p in result.parameters.items()}
    errors = []
    for task in range(3):
        (trajectory,) = trajectories(metrics.context, 0, task)
        x = metrics.context.features[0, task]
        v = ictd.state_pass(trajectory, x, own["A"], own["V"], config.gamma, config.n_layers)[-1]
        chain = ictd.MarkovRewardProcess(
            tasks.chains.transition[0, task], tasks.chains.reward[0, task], config.gamma
        )
        errors.append(np.sqrt(chain.stationary @ (v.numpy() - chain.value) ** 2))
    assert abs(result.history["value_error"][0, 0] - np.mean(errors)) < 1e-12


@each_variant
def test_metrics_of_the_group_at_the_linear_construction(variant: dict[str, object]) -> None:
    """VD is zero and the cosines are one exactly where the network is linear TD with the trained step."""
    config = configuration(**variant, seeds=[0])
    model = _models.build(config)
    metrics = _metrics.Metrics(config, model)
    if config.attention == "softmax":
        measured = metrics.measure(model.initial(0.1))
        assert measured["VD"] > 1e-6
        assert measured["SS"] < 0.99
        return
    td = _metrics.LinearTD(config, metrics.batch, updates=0)
    metrics.linear_td = td.weights()[:, :, 0].detach()
    d, layers = config.n_features, () if config.shared_layers else (config.n_layers,)
    network = ictd.LinearTransformer.td(d, config.n_layers)
    P, Q = network.P.detach(), network.Q.detach()
    if config.masked:
        P, Q = P[-1:, -1:], Q[:-1, :-1]
    measured = metrics.measure(
        {"P": P.expand(1, *layers, *P.shape), "Q": Q.expand(1, *layers, *Q.shape)}
    )
    assert measured["VD"] < 1e-20
    assert abs(measured["IWS"] - 1) < 1e-10
    assert abs(measured["SS"] - 1) < 1e-10
    assert measured["construction_error"] < 1e-10


def test_linear_td_with_step_one_is_the_library_s() -> None:
    config = configuration(seeds=[4])
    metrics = _metrics.Metrics(config, _models.build(config))
    weights = _metrics.LinearTD(config, metrics.batch, updates=0).weights().detach()
    for task in range(config.eval_tasks):
        x = metrics.batch.features[0, task].numpy()
        for w, trajectory in enumerate(trajectories(metrics.batch, 0, task)):
            expected = ictd.linear_td_weights(trajectory, x, config.gamma, config.n_layers)[-1]
            assert np.abs(weights[0, task, w].numpy() - expected).max() < 1e-12


def test_the_trained_step_of_linear_td_no_longer_moves() -> None:
    config = configuration(seeds=[0], features="uniform", eval_tasks=100, context_length=20)
    batch = _metrics.Metrics(config, _models.build(config)).batch
    slopes = []
    for updates in (0, 200):
        td = _metrics.LinearTD(config, batch, updates)
        (slope,) = torch.autograd.grad(td.losses().sum(), td.step)
        slopes.append(abs(float(slope[0])))
    assert slopes[1] < 1e-3 * slopes[0]
    assert float(td.step[0].detach()) != 1
