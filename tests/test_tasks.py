"""What a step trains on: chains, features, walks, windows and targets of both protocols."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pretraining_cases import (
    configuration,
    each_protocol,
    trajectories,
)

import ictd
from ictd import _tasks


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


def test_neighbouring_seeds_and_blocks_draw_different_tasks() -> None:
    config = configuration(seeds=(2, 3))
    drawn = [_tasks.draw(config, (1, block), 3, walks=1, length=2) for block in (0, 1)]
    rewards = np.concatenate([tasks.chains.reward.reshape(6, -1) for tasks in drawn])
    assert len(np.unique(rewards, axis=0)) == 12
