"""Counts of a context: visits, transitions, rewards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from strategies import (
    assert_close,
    examples,
    gammas,
    no_batch_or_batches,
    reward_arrays,
    state_sequences,
    td_errors,
)

import ictd


@given(data=st.data(), S=st.integers(1, 6), n=st.integers(1, 15), batch=no_batch_or_batches)
@examples(60)
def test_counts_are_what_one_counts_by_hand(data, S: int, n: int, batch: tuple[int, ...]) -> None:
    states = data.draw(state_sequences(S, n, batch))
    rewards = data.draw(reward_arrays((*batch, n)))
    counts = ictd.Counts.of(ictd.Trajectory(states, rewards), S)
    assert counts.visits.shape == counts.reward_sums.shape == (*batch, S)
    assert counts.transitions.shape == (*batch, S, S)
    arrays_of_counts = (counts.visits, counts.transitions, counts.reward_sums)
    assert {array.dtype for array in arrays_of_counts} == {np.dtype(np.float64)}
    for index in np.ndindex(*batch):
        visits, transitions, sums = np.zeros(S), np.zeros((S, S)), np.zeros(S)
        for k in range(1, n + 1):
            left, entered = states[index][k - 1], states[index][k]
            visits[left] += 1
            transitions[left, entered] += 1
            sums[left] += rewards[index][k - 1]
        np.testing.assert_array_equal(counts.visits[index], visits)
        np.testing.assert_array_equal(counts.transitions[index], transitions)
        assert_close(counts.reward_sums[index], sums, 1e-12, scale=np.abs(rewards).max())


@given(data=st.data(), S=st.integers(1, 6), n=st.integers(1, 15), gamma=gammas)
@examples(60)
def test_td_error_sums_collect_the_td_errors_by_the_state_that_is_left(
    data, S: int, n: int, gamma: float
) -> None:
    states, rewards = data.draw(state_sequences(S, n)), data.draw(reward_arrays((n,)))
    values = data.draw(arrays(np.float64, (2, S), elements=st.floats(-10, 10)))
    counts = ictd.Counts.of(ictd.Trajectory([states] * 2, [rewards] * 2), S)
    sums = counts.td_error_sums(values, gamma)
    for b in range(2):
        expected = np.zeros(S)
        for k, delta in enumerate(td_errors(states, rewards, values[b], gamma)):
            expected[states[k]] += delta
        assert_close(sums[b], expected, 1e-12, scale=n * np.abs(rewards).max() + n * 20)


def test_the_last_state_is_no_source() -> None:
    counts = ictd.Counts.of(ictd.Trajectory([0, 2, 2, 1], [5, 6, 7]), 4)
    np.testing.assert_array_equal(counts.visits, [1, 0, 2, 0])
    np.testing.assert_array_equal(counts.reward_sums, [5, 0, 13, 0])
    np.testing.assert_array_equal(np.argwhere(counts.transitions), [[0, 2], [2, 1], [2, 2]])


@pytest.mark.parametrize(
    ("n_states", "message"),
    [
        (2, r"^trajectory\.states must be state indices in 0\.\.1 \(2 states\), got 2"),
        (0, r"^n_states must be an integer ≥ 1, got 0"),
        (3.0, r"^n_states must be an integer ≥ 1, got 3\.0"),
    ],
)
def test_wrong_counts_are_refused(n_states, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.Counts.of(ictd.Trajectory([0, 2, 1], [1, 1]), n_states)


def test_something_else_than_a_trajectory_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^trajectory must be an ictd\.Trajectory, got tuple"):
        ictd.Counts.of(([0, 1], [1.0]), 2)
