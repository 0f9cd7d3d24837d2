"""Counts of a context: visits, transitions, rewards."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

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


# --- parts of a context -----------------------------------------------------------------------------


def cut(states: np.ndarray, rewards: np.ndarray, places: list[int]) -> list[ictd.Trajectory]:
    """The context in chunks that overlap in one state."""
    n = rewards.shape[-1]
    edges = sorted({0, n, *(place for place in places if place < n)})
    return [ictd.Trajectory(states[..., a : b + 1], rewards[..., a:b]) for a, b in pairwise(edges)]


def assert_equal_counts(one: ictd.Counts, other: ictd.Counts) -> None:
    """To the last bit."""
    for name in ("visits", "transitions", "reward_sums"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


contexts_in_parts = st.lists(st.integers(1, 14), max_size=4)


@given(data=st.data(), S=st.integers(1, 6), n=st.integers(1, 15), batch=no_batch_or_batches)
@examples(60)
def test_a_stream_counts_what_the_whole_counts_to_the_last_bit(data, S, n, batch) -> None:
    states = data.draw(state_sequences(S, n, batch))
    rewards = data.draw(reward_arrays((*batch, n)))
    whole = ictd.Counts.of(ictd.Trajectory(states, rewards), S)
    chunks = cut(states, rewards, data.draw(contexts_in_parts))
    streamed = ictd.Counts.of_stream(iter(chunks), S)
    assert_equal_counts(streamed, whole)
    extended = ictd.Counts.of(chunks[0], S)
    for chunk in chunks[1:]:
        extended = extended.extended(chunk)
    for counts in (streamed, extended):
        np.testing.assert_array_equal(counts.visits, whole.visits)
        np.testing.assert_array_equal(counts.transitions, whole.transitions)
        np.testing.assert_array_equal(counts.last_state, states[..., -1])
        assert_close(counts.reward_sums, whole.reward_sums, 1e-12, n * np.abs(rewards).max())


@given(data=st.data(), S=st.integers(1, 6), batch=no_batch_or_batches)
@examples(60)
def test_counts_of_parts_add_up_in_any_order(data, S: int, batch: tuple[int, ...]) -> None:
    n = 12
    states = data.draw(state_sequences(S, n, batch))
    # Whole numbers, which add without rounding.
    rewards = data.draw(arrays(np.int64, (*batch, n), elements=st.integers(-100, 100)))
    a, b, c = (ictd.Counts.of(chunk, S) for chunk in cut(states, rewards, [3, 8]))
    whole = ictd.Counts.of(ictd.Trajectory(states, rewards), S)
    for total in ((a + b) + c, a + (b + c), (c + a) + b, b + (a + c)):
        assert_equal_counts(total, whole)
        assert total.last_state is None
        assert total.batch == batch
        assert total.n_states == S


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """A context longer than a block, of one chain and of many; sums are the same to the last bit."""
    rng = np.random.default_rng(0)
    for batch in ((), (3,)):
        states, rewards = rng.integers(0, 2, (*batch, 301)), rng.normal(size=(*batch, 300))
        whole = ictd.Counts.of(ictd.Trajectory(states, rewards), 2)
        monkeypatch.setattr("ictd.counts._BLOCK", 7)
        assert_equal_counts(ictd.Counts.of(ictd.Trajectory(states, rewards), 2), whole)
        monkeypatch.undo()
        for index in np.ndindex(*batch):
            for s in range(2):
                paid = rewards[index][states[index][:-1] == s]
                assert whole.reward_sums[index][s] == pytest.approx(paid.sum(), rel=1e-12)
                assert whole.visits[index][s] == len(paid)


def test_counting_takes_memory_for_a_block_and_not_for_the_context() -> None:
    trajectory = ictd.Trajectory(np.zeros(2_000_001, dtype=int), np.ones(2_000_000))
    tracemalloc.start()
    counts = ictd.Counts.of(trajectory, 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts.visits[0] == counts.reward_sums[0] == 2_000_000
    assert peak < 10e6 < trajectory.states.nbytes


def test_a_chunk_has_to_start_where_the_last_one_ended() -> None:
    first, second = ictd.Trajectory([0, 1, 2], [1, 1]), ictd.Trajectory([1, 2], [1])
    message = r"^trajectory must start at state 2, where the one before it ended, got 1"
    with pytest.raises(ValueError, match=message):
        ictd.Counts.of_stream([first, second], 3)
    with pytest.raises(ValueError, match=message):
        ictd.Counts.of(first, 3).extended(second)
    pair = ictd.Trajectory([[0, 1], [0, 2]], [[1], [1]])
    other = ictd.Trajectory([[1, 0], [0, 2]], [[1], [1]])
    with pytest.raises(ValueError, match=r"^trajectory must start at state 2, .* got 0"):
        ictd.Counts.of_stream([pair, other], 3)
    with pytest.raises(
        ValueError, match=r"^trajectory must have the leading dimensions .*\(2,\), got"
    ):
        ictd.Counts.of_stream([pair, second], 3)


def test_a_sum_has_no_end_to_continue_from() -> None:
    counts = ictd.Counts.of(ictd.Trajectory([0, 1], [1]), 2)
    with pytest.raises(ValueError, match=r"^counts must be those of one path to be extended"):
        (counts + counts).extended(ictd.Trajectory([1, 0], [1]))


def test_counts_that_do_not_match_are_refused() -> None:
    two, three = (ictd.Counts.of(ictd.Trajectory([0, 1], [1]), S) for S in (2, 3))
    with pytest.raises(ValueError, match=r"same leading dimensions and states, got .*2, 2.*3, 3"):
        two + three
    with pytest.raises(TypeError):
        two + 1
    with pytest.raises(ValueError, match=r"^chunks must hold at least one trajectory, got none"):
        ictd.Counts.of_stream([], 2)
    with pytest.raises(ValueError, match=r"^trajectory must be an ictd\.Trajectory, got int"):
        ictd.Counts.of_stream([0], 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [[0, 1], [0, 0]], [0, 0, 0]), r"^reward_sums must have shape \(2,\), got \(3,\)"),
        (([1], [[0, 1], [0, 0]], [0, 0]), r"^visits must have shape \(2,\), got \(1,\)"),
        (([1, 1], [[0, 1], [0, 0]], [0, 0]), r"^visits must be the row sums of transitions"),
        (([0, 0], [[-1, 1], [0, 0]], [0, 0]), r"^transitions must be non-negative, got -1"),
        (([1, 0], [[0, np.inf], [0, 0]], [0, 0]), r"^transitions must be finite"),
        (([1, 0], [0, 1], [0, 0]), r"^transitions must have shape \(\.\.\., S, S\)"),
        (([1, 0], [[0, 1], [0, 0]], [0, 0], 2), r"^last_state must be state indices in 0\.\.1"),
        (([1, 0], [[0, 1], [0, 0]], [0, 0], [1]), r"^last_state must have shape \(\), got \(1,\)"),
    ],
)
def test_arrays_that_are_no_counts_are_refused(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.Counts(*arguments)


def test_something_else_than_a_trajectory_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^trajectory must be an ictd\.Trajectory, got tuple"):
        ictd.Counts.of(([0, 1], [1.0]), 2)


def test_the_empirical_chain_is_shares_and_means() -> None:
    counts = ictd.Counts.of(ictd.Trajectory([0, 1, 0, 0, 2], [1.0, 5.0, 1.0, 4.0]), 3)
    shares, means = counts.empirical_chain()
    np.testing.assert_allclose(shares, [[1 / 3, 1 / 3, 1 / 3], [1, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(means, [2.0, 5.0, 0.0])
