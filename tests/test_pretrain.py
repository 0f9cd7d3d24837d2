"""Pretraining: the literal network's values, gradients and steps; protocols, seeds, divergence, metrics."""

from __future__ import annotations

import dataclasses
import importlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, seeds

import ictd
from ictd import _metrics, _models, _tasks

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


# -------------------------------------------------------------------- the literal network, window by window


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
    """Values (tasks, windows) of the queries, layer by layer through the literal network's own layers.

    The modules copy their matrices, which would cut the gradient, so their ``layer`` runs on ours.
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


@each_variant
@each_protocol
@pytest.mark.parametrize("loss", ["td", "mc", "true"])
def test_losses_and_gradients_are_the_literal_network_s(
    variant: dict[str, object], protocol: str, loss: str
) -> None:
    # Linear attention forms moments of columns only in more than three layers.
    depth = 5 if variant["attention"] == "linear" else 3
    config = configuration(**variant, protocol=protocol, loss=loss, n_layers=depth)
    model, parameters = drawn_parameters(config, 0.3)
    batch = _tasks.Schedule(config).batch(7)
    losses = pretraining.losses(model, parameters, batch)
    gradients = torch.autograd.grad(losses.sum(), list(parameters.values()))
    for seed in range(2):
        own = {name: p[seed].detach().requires_grad_() for name, p in parameters.items()}
        expected = literal_loss(config, own, batch, seed)
        assert relative(losses[seed], expected) < 1e-10
        for fast, slow in zip(
            gradients, torch.autograd.grad(expected, list(own.values())), strict=True
        ):
            assert relative(fast[seed], slow) < 1e-10


@examples(25)
@given(
    seed=seeds,
    n_states=st.integers(3, 7),
    d=st.integers(1, 4),
    n=st.integers(1, 12),
    L=st.integers(1, 4),
    gamma=st.sampled_from([0.0, 0.5, 0.95]),
    scale=st.sampled_from([0.1, 1.0, 3.0]),
    variant=st.sampled_from(VARIANTS[:4]),
    chain=st.sampled_from(["boyan", "loop", "random"]),
)
def test_a_step_is_a_step_of_the_literal_network(
    seed: int,
    n_states: int,
    d: int,
    n: int,
    L: int,
    gamma: float,
    scale: float,
    variant: dict[str, object],
    chain: str,
) -> None:
    """One step of Adam, with weight decay, from the literal network's loss."""
    config = configuration(
        **variant,
        n_states=n_states,
        n_features=d,
        context_length=n,
        n_layers=L,
        gamma=gamma,
        chain=chain,
        features="uniform",
        seeds=[seed],
        batch_size=2,
        initial_scale=scale,
        weight_decay=0.1,
        n_steps=1,
        eval_every=1,
        eval_tasks=1,
    )
    own = {name: p[0].requires_grad_() for name, p in _models.build(config).initial(scale).items()}
    adam = torch.optim.Adam(own.values(), lr=config.learning_rate, weight_decay=0.1)
    literal_loss(config, own, _tasks.Schedule(config).batch(0), 0).backward()
    adam.step()
    trained = ictd.pretrain(config, progress=False).parameters
    for name, p in own.items():
        # Adam divides by the gradient's size: where it is rounding alone, its sign is.
        clear = p.grad.abs() > 1e-9
        difference = np.abs(trained[name][0] - p.detach().numpy())[clear.numpy()]
        assert difference.max(initial=0.0) < 1e-8


@pytest.mark.parametrize("variant", VARIANTS[:2], ids=["shared", "separate"])
@pytest.mark.parametrize("scale", [3.0, 1e4])
def test_scores_of_any_size_pass_and_do_not_touch_other_seeds(
    variant: dict[str, object], scale: float
) -> None:
    config = configuration(**variant, seeds=(0, 1, 2), features="uniform", context_length=3)
    model, parameters = drawn_parameters(config)
    batch = _tasks.Schedule(config).batch(0)
    before = model.values(parameters, batch).detach()
    with torch.no_grad():
        parameters["A"][1] *= scale * 100
    wide = model.values(parameters, batch)
    assert torch.equal(wide[0], before[0])
    assert torch.equal(wide[2], before[2])
    own = {name: p[1].detach() for name, p in parameters.items()}
    assert relative(wide[1], literal_values(config, own, batch, 1)) < 1e-10
    assert torch.isfinite(torch.autograd.grad(wide.sum(), parameters["A"])[0]).all()


# ------------------------------------------------------------------------------------------ reading queries


@each_variant
def test_reading_a_state_is_the_value_that_a_context_ending_there_gives(
    variant: dict[str, object],
) -> None:
    config = configuration(**variant)
    model, parameters = drawn_parameters(config)
    batch = _tasks.Schedule(config).batch(0).first_window()
    read = model.read(parameters, batch, batch.features)
    at_query = read.gather(-1, batch.queries)
    assert relative(at_query, model.values(parameters, batch)) < 1e-12


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


# ------------------------------------------------------------------------------------------------ protocols


def test_fresh_tasks_at_each_step() -> None:
    schedule = _tasks.Schedule(configuration())
    first, second = schedule.batch(0), schedule.batch(1)
    assert first.features.shape == (2, 4, 5, 3)
    assert first.states.shape == (2, 4, 8)
    assert first.windows == 2
    seen = torch.cat([first.rewards, second.rewards], 1).flatten(0, 1)
    assert len(torch.unique(seen, dim=0)) == len(seen)


def test_the_window_protocol_walks_five_times_through_each_chain() -> None:
    config = configuration(protocol="window", batch_size=7)
    schedule = _tasks.Schedule(config)
    batches = [schedule.batch(step) for step in range(45)]  # past the end of a block
    for step, batch in enumerate(batches):
        assert batch.features.shape[:2] == (2, 1)
        assert batch.windows == 8  # seven errors take eight windows
        assert torch.equal(batch.rewards, batches[step - step % 5].rewards)
        assert torch.equal(batch.features, batches[step - step % 5].features)
    rewards = torch.stack([batch.rewards[0, 0] for batch in batches[::5]])
    assert len(torch.unique(rewards, dim=0)) == 9
    walks = torch.stack([batch.states[0, 0] for batch in batches[:5]])
    assert len(torch.unique(walks, dim=0)) == 5


@pytest.mark.parametrize("chain", ["boyan", "loop", "random"])
@each_protocol
def test_walks_follow_the_edges_and_start_by_the_start_law(chain: str, protocol: str) -> None:
    config = configuration(chain=chain, protocol=protocol, n_states=4, batch_size=3)
    tasks = _tasks.draw(config, (1, 0), 500, walks=2, length=5)
    assert tasks.states.shape == (2, 500, 2, 6)
    left, entered = tasks.states[..., :-1], tasks.states[..., 1:]
    s, t = np.indices((2, 500))
    taken = tasks.chains.transition[s[..., None, None], t[..., None, None], left, entered]
    assert taken.min() > 0
    share = np.bincount(tasks.states[..., 0].ravel(), minlength=4) / 2000
    assert np.abs(share - tasks.chains.initial.mean((0, 1))).max() < 0.05


def test_features_are_of_the_family_that_was_asked_for() -> None:
    drawn = {
        kind: _tasks.draw(
            configuration(features=kind, n_features=5), (1, 0), 40, walks=1, length=2
        ).features
        for kind in ("sphere", "uniform", "one-hot")
    }
    assert np.allclose(np.linalg.norm(drawn["sphere"], axis=-1), 1)
    assert 0.99 < np.abs(drawn["uniform"]).max() <= 1
    assert np.array_equal(drawn["one-hot"], np.broadcast_to(np.eye(5), (2, 40, 5, 5)))


def test_monte_carlo_targets_are_discounted_rewards_after_the_query() -> None:
    config = configuration(loss="mc", protocol="window")
    schedule = _tasks.Schedule(config)
    batch = schedule.batch(3)
    H = _tasks.return_horizon(config.gamma)
    assert config.gamma**H <= 1e-4 < config.gamma ** (H - 1)
    tasks = _tasks.draw(config, (1, 0), 8, walks=5, length=config.context_length + 4 + H)
    states, reward = tasks.states[0, 0, 3], tasks.chains.reward[0, 0]
    for w in range(4):
        ahead = states[config.context_length + w :][:H]
        expected = sum(config.gamma**i * reward[s] for i, s in enumerate(ahead))
        assert abs(float(batch.targets[0, 0, w]) - expected) < 1e-12
        assert int(batch.queries[0, 0, w]) == ahead[0]


def test_monte_carlo_targets_have_the_true_values_as_means() -> None:
    config = configuration(loss="mc", gamma=0.5, context_length=1, seeds=[0])
    tasks = _tasks.draw(config, (1, 0), 1, walks=40_000, length=20)
    rewards = tasks.chains.reward[0, 0][tasks.states[0, 0]]
    found = _tasks.returns(rewards, 0.5, _tasks.return_horizon(0.5))[:, 0]
    start = tasks.states[0, 0, :, 0]
    for state in range(5):
        sample = found[start == state]
        error = sample.mean() - tasks.chains.value[0, 0, state]
        assert abs(error) < 5 * sample.std() / np.sqrt(len(sample)) + 2e-4


def test_true_targets_are_the_true_values() -> None:
    config = configuration(loss="true")
    batch = _tasks.Schedule(config).batch(0)
    tasks = _tasks.draw(config, (1, 0), 1024, walks=1, length=7)
    expected = np.take_along_axis(tasks.chains.value[:, :4], batch.queries.numpy(), -1)
    assert np.abs(batch.targets.numpy() - expected).max() < 1e-12


def test_counts_are_those_of_each_window() -> None:
    batch = _tasks.Schedule(configuration(protocol="window", batch_size=9)).batch(0)
    visits, transitions = batch.counts()
    for w, trajectory in enumerate(trajectories(batch, 1, 0)):
        counts = ictd.Counts.of(trajectory, 5)
        assert np.array_equal(visits[1, 0, w].numpy(), counts.visits)
        assert np.array_equal(transitions[1, 0, w].numpy(), counts.transitions)


# ---------------------------------------------------------------------------------------------------- seeds


@each_protocol
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_a_seed_does_not_depend_on_the_others(protocol: str, dtype: str, attention: str) -> None:
    fields = {"protocol": protocol, "dtype": dtype, "attention": attention, "n_steps": 25}
    together = train(**fields, seeds=(4, 0, 9, 2, 7))
    for place, seed in ((0, 4), (2, 9)):
        alone = train(**fields, seeds=[seed])
        for name, values in alone.parameters.items():
            assert np.array_equal(values[0], together.parameters[name][place])
        for name, values in alone.history.items():
            if name != "step":
                assert np.allclose(values[:, 0], together.history[name][:, place], rtol=1e-5)


def test_seeds_start_from_their_own_streams() -> None:
    result = train(n_steps=0, seeds=40, n_features=10)
    entries = result.A.ravel()
    assert abs(entries.std() - 0.1) < 0.005
    assert len(np.unique(entries)) == entries.size
    assert np.array_equal(train(n_steps=0, seeds=[17], n_features=10).A[0], result.A[17])


def test_a_second_run_gives_the_same_bits() -> None:
    first, second = train(protocol="window"), train(protocol="window")
    for name, values in first.history.items():
        assert np.array_equal(values, second.history[name], equal_nan=True)
    assert np.array_equal(first.A, second.A)


# --------------------------------------------------------------------------------------------- what emerges


def test_the_signs_of_td_emerge_and_attention_grows_more_diagonal() -> None:
    result = ictd.pretrain(
        ictd.PretrainConfig(n_steps=300, eval_every=100, context_length=60, n_layers=6, seeds=3),
        progress=False,
    )
    assert (np.sign(result.V) == [1, 1, -1]).all()
    seen = result.history["visit_weighted_diagonality"]
    assert (seen[-1] > seen[0] + 0.1).all()
    assert (result.history["value_error"][-1] < 0.6 * result.history["value_error"][0]).all()
    assert result.history["step"].tolist() == [0, 100, 200, 300]


@pytest.mark.parametrize("loss", ["td", "mc", "true"])
@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_every_loss_lowers_the_value_error(loss: str, attention: str) -> None:
    result = train(
        loss=loss, attention=attention, n_steps=200, learning_rate=0.01, gamma=0.5, eval_tasks=32
    )
    errors = result.history["value_error"]
    assert (errors[-1] < 0.9 * errors[0]).all()


# -------------------------------------------------------------------------------------------------- metrics


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


# ----------------------------------------------------------------------------------------------- divergence


@pytest.mark.parametrize("protocol", ["fresh", "window"])
def test_a_seed_that_diverges_stops_and_the_others_go_on(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"protocol": protocol, "n_steps": 9, "seeds": (1, 2, 3)}
    sound = train(**fields)
    right = pretraining.losses

    def one_breaks(model: object, parameters: object, batch: _tasks.Batch) -> torch.Tensor:
        loss = right(model, parameters, batch)
        calls.append(loss)
        # The loss of the evaluation before the first step comes first.
        return loss * torch.tensor([1.0, np.inf, 1.0]) if len(calls) == 6 else loss

    calls: list[torch.Tensor] = []
    monkeypatch.setattr(pretraining, "losses", one_breaks)
    with pytest.warns(RuntimeWarning, match=r"seed 2 stopped at step 4"):
        result = train(**fields)
    assert result.stopped == {2: 4}
    monkeypatch.setattr(pretraining, "losses", right)
    assert np.array_equal(result.A[1], train(**{**fields, "n_steps": 4}).A[1])
    for place in (0, 2):
        assert np.array_equal(result.A[place], sound.A[place])
    assert np.isfinite(result.history["loss"][:, [0, 2]]).all()
    assert np.isfinite(result.history["loss"][:2, 1]).all()
    assert np.isnan(result.history["loss"][2:, 1]).all()


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_a_learning_rate_far_too_high_ends_the_run_with_finite_parameters(attention: str) -> None:
    with pytest.warns(RuntimeWarning, match="stopped at step") as warned:
        result = train(
            attention=attention,
            learning_rate=1e30,
            n_steps=500,
            dtype="float32",
            seeds=2,
        )
    assert len(warned) == 2
    assert set(result.stopped) == {0, 1}
    assert max(result.stopped.values()) < 500
    assert all(np.isfinite(values).all() for values in result.parameters.values())


# ------------------------------------------------------------------------------------ configuration, result


BAD = {
    "n_states": [2, 0, 5.0, True, "5"],
    "n_features": [0],
    "context_length": [0],
    "n_layers": [0],
    "gamma": [1.0, -0.1, float("nan"), "0.5"],
    "features": ["onehot", None, 3],
    "chain": ["ring"],
    "n_steps": [-1],
    "batch_size": [0],
    "learning_rate": [0.0, -1.0, float("inf"), "fast"],
    "weight_decay": [-1e-6],
    "seeds": [(), 0, (1, 1), (-1,), (2**32,), (0.5,), "12", True, None],
    "attention": ["hard"],
    "masked": [1, None],
    "shared_layers": ["yes"],
    "loss": ["sarsa"],
    "protocol": ["slide"],
    "eval_every": [0],
    "checkpoint_dir": [3.5],
    "device": ["abacus", 3.5],
    "dtype": ["float16", torch.float16, np.float32],
    "initial_scale": [-0.1],
    "eval_tasks": [0],
    "checkpoint_every": [0],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_bad_fields_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be"):
        ictd.PretrainConfig(**{name: value})


def test_every_field_is_tried() -> None:
    assert set(BAD) == {field.name for field in dataclasses.fields(ictd.PretrainConfig)}


def test_smallest_chains_and_one_hot_features_are_refused_by_name() -> None:
    assert ictd.PretrainConfig(chain="random", n_states=1).n_states == 1
    with pytest.raises(ValueError, match="n_states must be an integer ≥ 2, got 1"):
        ictd.PretrainConfig(chain="loop", n_states=1)
    with pytest.raises(ValueError, match="n_features must be n_states, 5, for one-hot"):
        ictd.PretrainConfig(features="one-hot", n_features=4)


def test_fields_take_the_types_that_users_have() -> None:
    config = ictd.PretrainConfig(seeds=np.arange(3), dtype=torch.float64, n_states=np.int64(6))
    assert config.seeds == (0, 1, 2)
    assert config.dtype == "float64"
    assert config.torch_dtype is torch.float64
    assert ictd.PretrainConfig(seeds=3).seeds == (0, 1, 2)
    assert ictd.PretrainConfig(seeds=[3]).seeds == (3,)


def test_pretrain_takes_a_configuration_alone() -> None:
    with pytest.raises(ValueError, match=r"config must be an ictd\.PretrainConfig, got dict"):
        ictd.pretrain({"n_states": 5})


@each_variant
def test_the_network_of_a_seed_is_the_one_that_was_trained(variant: dict[str, object]) -> None:
    result = train(**variant)
    config = result.config
    own = {name: torch.from_numpy(p) for name, p in result.parameters.items()}
    batch = _tasks.Schedule(config).batch(0)
    values = _models.build(config).values(own, batch)
    network = result.network(8)
    for w, trajectory in enumerate(trajectories(batch, 1, 2)):
        x = batch.features[1, 2]
        if config.attention == "softmax":
            value = ictd.read_values(network(ictd.prompt(trajectory, x)))[-1]
        else:
            value = ictd.read_linear_value(network(ictd.linear_prompt(trajectory, x, config.gamma)))
        assert relative(value.detach(), values[1, 2, w]) < 1e-10
    with pytest.raises(ValueError, match=r"seed must be one of \(3, 8\), got 0"):
        result.network(0)


def test_shapes_of_the_parameters() -> None:
    d = 3
    assert train(n_steps=0).V.shape == (2, 3)
    assert train(n_steps=0).A.shape == (2, d, d)
    assert train(n_steps=0, shared_layers=False).A.shape == (2, 3, d, d)
    assert train(n_steps=0, masked=False).V.shape == (2, d + 3, d + 3)
    linear = train(n_steps=0, attention="linear")
    assert linear.P.shape == (2, 1, 1)
    assert linear.Q.shape == (2, 2 * d, 2 * d)
    with pytest.raises(AttributeError, match="linear attention has no V, only P, Q"):
        linear.V  # noqa: B018
    assert train(n_steps=0, attention="linear", masked=False).P.shape == (2, 2 * d + 1, 2 * d + 1)


def test_masked_entries_stay_zero_and_free_ones_move() -> None:
    masked = train().network(3)
    d = 3
    V, A = masked.V.detach().numpy(), masked.A.detach().numpy()
    free_V, free_A = np.zeros_like(V, bool), np.zeros_like(A, bool)
    free_V[d + 2, d:] = free_A[:d, :d] = True
    assert (V[~free_V] == 0).all()
    assert (A[~free_A] == 0).all()
    assert (V[free_V] != 0).all()
    assert (A[free_A] != 0).all()
    before, after = train(masked=False, n_steps=0), train(masked=False)
    target_row = d + 1  # the shift erases it, so it has no gradient
    moved = before.V != after.V
    assert not moved[:, target_row].any()
    assert np.delete(moved, target_row, 1).all()


def test_history_has_an_evaluation_before_the_first_and_after_the_last_step() -> None:
    result = train(n_steps=7, eval_every=3)
    assert result.history["step"].tolist() == [0, 3, 6, 7]
    for name, values in result.history.items():
        assert values.shape[0] == 4
        if name != "step":
            assert values.shape[1] == 2
    assert np.array_equal(result.history["A"][-1], result.A)
    for place, steps in enumerate((0, 3, 6)):
        assert np.array_equal(result.history["A"][place], train(n_steps=steps).A)
    assert train(n_steps=7, shared_layers=False).history["V"].shape == (4, 2, 3, 3)
    separate = train(n_steps=1, shared_layers=False).history["population_diagonality"]
    assert separate.shape == (2, 2, 3)


def test_the_recorded_loss_is_the_mean_since_the_evaluation_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[np.ndarray] = []
    right = pretraining.losses

    def recorded(*arguments: object) -> torch.Tensor:
        loss = right(*arguments)
        seen.append(loss.detach().numpy().copy())
        return loss

    monkeypatch.setattr(pretraining, "losses", recorded)
    result = train(n_steps=5, eval_every=3)
    loss = result.history["loss"]
    assert np.allclose(loss[0], seen[0])
    assert np.allclose(seen[0], seen[1])
    assert np.allclose(loss[1], np.mean(seen[1:4], axis=0))
    assert np.allclose(loss[2], np.mean(seen[4:6], axis=0))


def test_a_bar_shows_loss_and_rate_where_it_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ictd.pretrain(configuration(), progress=True)
    shown = capsys.readouterr().err
    assert "pretraining: 100%" in shown
    assert "loss=" in shown or "step/s" in shown
    ictd.pretrain(configuration(), progress=False)
    assert capsys.readouterr().err == ""


def test_names_stay_functions_when_their_modules_are_loaded() -> None:
    importlib.import_module("ictd.pretrain")
    importlib.import_module("ictd.neu")
    assert callable(ictd.pretrain)
    assert callable(ictd.neu)
