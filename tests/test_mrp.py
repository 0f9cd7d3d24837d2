"""Chains, their values and stationary laws, and sampling."""

from __future__ import annotations

import math
import time
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from strategies import assert_close, batches, examples, gammas, no_batch_or_batches, seeds

import ictd
from ictd import mrp as private

FAMILIES = {"boyan": ictd.boyan_chain, "loop": ictd.loop_chain, "random": ictd.random_chain}
families = st.sampled_from(sorted(FAMILIES)).map(FAMILIES.get)

CYCLE = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
ABSORBING = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def single_chains(chain: ictd.MarkovRewardProcess) -> list[ictd.MarkovRewardProcess]:
    """Every chain of a batch as an object of its own."""
    S = chain.n_states
    return [
        ictd.MarkovRewardProcess(P, r, chain.gamma, start)
        for P, r, start in zip(
            chain.transition.reshape(-1, S, S),
            chain.reward.reshape(-1, S),
            chain.initial.reshape(-1, S),
            strict=True,
        )
    ]


def reachable(P: np.ndarray, source: int) -> set[int]:
    found, todo = {source}, [source]
    while todo:
        state = todo.pop()
        for following in range(len(P)):
            if P[state, following] > 0 and following not in found:
                found.add(following)
                todo.append(following)
    return found


# --- the object -------------------------------------------------------------------------------------


def test_a_chain_keeps_what_it_was_given() -> None:
    chain = ictd.MarkovRewardProcess([[0.5, 0.5], [1, 0]], [1, -2], 0.9, [0.25, 0.75])
    assert chain.n_states == 2
    assert chain.gamma == 0.9
    assert chain.batch == ()
    np.testing.assert_array_equal(chain.transition, [[0.5, 0.5], [1, 0]])
    np.testing.assert_array_equal(chain.reward, [1, -2])
    np.testing.assert_array_equal(chain.initial, [0.25, 0.75])
    assert {a.dtype for a in (chain.transition, chain.reward, chain.initial)} == {np.dtype(float)}
    assert repr(chain) == "MarkovRewardProcess(n_states=2, gamma=0.9)"


def test_the_start_is_uniform_by_default() -> None:
    np.testing.assert_allclose(ictd.MarkovRewardProcess(CYCLE, [0, 0, 0], 0).initial, 1 / 3)


def test_reward_and_start_law_are_shared_by_a_batch_or_given_for_each_chain() -> None:
    transition = np.broadcast_to(CYCLE, (2, 3, 3))
    shared = ictd.MarkovRewardProcess(transition, [1, 2, 3], 0.5, [1, 0, 0])
    assert shared.batch == (2,)
    assert repr(shared) == "MarkovRewardProcess(n_states=3, gamma=0.5, batch=(2,))"
    np.testing.assert_array_equal(shared.reward, [[1, 2, 3]] * 2)
    np.testing.assert_array_equal(shared.initial, [[1, 0, 0]] * 2)
    own = ictd.MarkovRewardProcess(transition, [[1, 2, 3], [4, 5, 6]], 0.5)
    np.testing.assert_array_equal(own.reward, [[1, 2, 3], [4, 5, 6]])


def test_a_chain_does_not_share_memory_with_its_arguments() -> None:
    P, r, start = np.eye(2), np.zeros(2), np.array([0.5, 0.5])
    chain = ictd.MarkovRewardProcess(P, r, 0.9, start)
    for given_array in (P, r, start):
        given_array[:] = 7
    np.testing.assert_array_equal(chain.transition, np.eye(2))
    np.testing.assert_array_equal(chain.reward, [0, 0])
    np.testing.assert_array_equal(chain.initial, [0.5, 0.5])


# --- families of chains -----------------------------------------------------------------------------


@given(S=st.integers(3, 9), batch=no_batch_or_batches, seed=seeds)
@examples(40)
def test_boyan_chains_move_one_or_two_ahead_and_restart_from_the_last_state(
    S: int, batch: tuple[int, ...], seed: int
) -> None:
    chain = ictd.boyan_chain(S, 0.9, rng(seed), batch)
    assert chain.transition.shape == (*batch, S, S)
    for P in chain.transition.reshape(-1, S, S):
        for i in range(S - 2):
            assert set(np.flatnonzero(P[i])) == {i + 1, i + 2}
            assert 0.01 <= P[i, i + 1] <= 0.99
        assert list(P[S - 2]) == [0] * (S - 1) + [1]
        assert_is_normalised_uniform(P[S - 1])


@given(S=st.integers(2, 9), batch=no_batch_or_batches, seed=seeds)
@examples(40)
def test_loop_chains_have_the_cycle_and_no_self_loop(
    S: int, batch: tuple[int, ...], seed: int
) -> None:
    chain = ictd.loop_chain(S, 0.9, rng(seed), batch)
    assert chain.transition.shape == (*batch, S, S)
    for P in chain.transition.reshape(-1, S, S):
        for i in range(S):
            assert P[i, i] == 0
            assert P[i, (i + 1) % S] > 0
            assert_is_normalised_uniform(P[i][P[i] > 0])


@given(S=st.integers(1, 9), batch=no_batch_or_batches, seed=seeds)
@examples(40)
def test_random_chains_can_go_everywhere(S: int, batch: tuple[int, ...], seed: int) -> None:
    chain = ictd.random_chain(S, 0.9, rng(seed), batch)
    assert chain.transition.shape == (*batch, S, S)
    for row in chain.transition.reshape(-1, S):
        assert_is_normalised_uniform(row)


def assert_is_normalised_uniform(law: np.ndarray) -> None:
    """Positive, sums to one, and no two weights further apart than .99 and .01."""
    assert abs(law.sum() - 1) < 1e-12
    assert law.min() > 0
    assert law.max() <= 99 * law.min() * (1 + 1e-9)


@given(family=families, S=st.integers(3, 9), batch=no_batch_or_batches, gamma=gammas, seed=seeds)
@examples(40)
def test_every_family_draws_irreducible_chains_rewards_and_start_laws(
    family, S: int, batch: tuple[int, ...], gamma: float, seed: int
) -> None:
    chain = family(S, gamma, rng(seed), batch)
    assert chain.gamma == gamma
    assert chain.batch == batch
    assert chain.reward.shape == chain.initial.shape == (*batch, S)
    assert np.abs(chain.reward).max() <= 1
    for start in chain.initial.reshape(-1, S):
        assert_is_normalised_uniform(start)
    for P in chain.transition.reshape(-1, S, S):
        assert all(reachable(P, s) == set(range(S)) for s in range(S))
    again = family(S, gamma, rng(seed), batch)
    for name in ("transition", "reward", "initial"):
        np.testing.assert_array_equal(getattr(chain, name), getattr(again, name))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_chains_of_a_batch_differ(name: str) -> None:
    chain = FAMILIES[name](6, 0.9, rng(), (50,))
    for array in (chain.transition, chain.reward, chain.initial):
        assert len(np.unique(array.reshape(50, -1), axis=0)) == 50


# Hoeffding: the mean of m numbers in [0, 1] is off by more than this with probability below 1e-9.
def deviation(m: int) -> float:
    return float(np.sqrt(np.log(2 / 1e-9) / (2 * m)))


def test_the_draws_are_uniform() -> None:
    boyan = ictd.boyan_chain(3, 0.9, rng(1), (20_000,))
    forward = boyan.transition[:, 0, 1]
    assert abs(forward.mean() - 0.5) < deviation(20_000)
    for share in (0.25, 0.5, 0.75):
        at = 0.01 + 0.98 * share
        assert abs((forward < at).mean() - share) < deviation(20_000)
        assert abs((boyan.reward[:, 0] < 2 * share - 1).mean() - share) < deviation(20_000)
    assert forward.min() < 0.011
    assert forward.max() > 0.989

    chords = ictd.loop_chain(4, 0.9, rng(2), (20_000,)).transition > 0
    for i in range(4):
        for j in {0, 1, 2, 3} - {i, (i + 1) % 4}:
            assert abs(chords[:, i, j].mean() - 0.5) < deviation(20_000)

    # Of two U(.01, .99) weights, one is more than three times the other on a triangle of this area.
    row = ictd.random_chain(2, 0.9, rng(3), (20_000,)).transition[:, 0]
    ratio = row[:, 0] / row[:, 1]
    assert abs((ratio > 1).mean() - 0.5) < deviation(20_000)
    assert abs((ratio > 3).mean() - 0.96 * 0.32 / 2 / 0.98**2) < deviation(20_000)


# --- values and stationary laws ---------------------------------------------------------------------


@given(family=families, S=st.integers(3, 8), batch=no_batch_or_batches, gamma=gammas, seed=seeds)
@examples(40)
def test_the_value_satisfies_the_bellman_equation(
    family, S: int, batch: tuple[int, ...], gamma: float, seed: int
) -> None:
    chain = family(S, gamma, rng(seed), batch)
    assert chain.value.shape == (*batch, S)
    values = chain.value.reshape(-1, S)
    for v, one in zip(values, single_chains(chain), strict=True):
        bellman = [
            one.reward[s] + gamma * sum(one.transition[s, t] * v[t] for t in range(S))
            for s in range(S)
        ]
        assert_close(v, bellman, 1e-10)
        assert_close(v, one.value, 1e-12)


def test_the_value_is_the_discounted_sum_of_rewards() -> None:
    chain = ictd.MarkovRewardProcess(CYCLE, [1, 2, 4], 0.5)
    # v₀ = 1 + 2/2 + 4/4 + v₀/8
    np.testing.assert_allclose(chain.value, np.array([24, 34, 40]) / 7)


@given(family=families, S=st.integers(3, 8), batch=no_batch_or_batches, seed=seeds)
@examples(40)
def test_the_stationary_law_does_not_move(
    family, S: int, batch: tuple[int, ...], seed: int
) -> None:
    chain = family(S, 0.9, rng(seed), batch)
    assert chain.stationary.shape == (*batch, S)
    for mu, one in zip(chain.stationary.reshape(-1, S), single_chains(chain), strict=True):
        moved = [sum(mu[s] * one.transition[s, t] for s in range(S)) for t in range(S)]
        assert_close(mu, moved, 1e-12)
        assert mu.sum() == pytest.approx(1, abs=1e-12)
        assert mu.min() > 0
        assert_close(mu, one.stationary, 1e-12)


@pytest.mark.parametrize(
    "transition",
    [
        CYCLE,
        [[0, 1], [1, 0]],
        # Period two with unequal shares.
        [[0, 0.9, 0.1], [1, 0, 0], [1, 0, 0]],
        [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.1, 0, 0.9]],
    ],
)
def test_the_stationary_law_is_the_share_of_visits_periodic_or_not(transition: list) -> None:
    P = np.array(transition, dtype=float)
    chain = ictd.MarkovRewardProcess(P, np.zeros(len(P)), 0.5)
    law, share, steps = np.eye(len(P))[0], np.zeros(len(P)), 6000
    for _ in range(steps):
        share += law / steps
        law = law @ P
    np.testing.assert_allclose(chain.stationary, share, atol=2e-3)


def test_the_stationary_law_of_one_state_is_one() -> None:
    np.testing.assert_array_equal(ictd.MarkovRewardProcess([[1]], [0], 0.5).stationary, [1])


@pytest.mark.parametrize("small", [1e-6, 1e-13, 1e-17, 1e-200])
def test_small_probabilities_do_not_spoil_the_stationary_law(small: float) -> None:
    chain = ictd.MarkovRewardProcess([[1 - small, small], [2 * small, 1 - 2 * small]], [0, 1], 0.9)
    np.testing.assert_allclose(chain.stationary, [2 / 3, 1 / 3], rtol=1e-12)


@pytest.mark.parametrize("transition", [ABSORBING, np.eye(2), [[1, 0], [0.5, 0.5]]])
def test_a_reducible_chain_has_no_stationary_law(transition: list) -> None:
    chain = ictd.MarkovRewardProcess(transition, np.zeros(len(transition)), 0.9)
    with pytest.raises(ValueError, match=r"^transition must be irreducible") as error:
        _ = chain.stationary
    # The message names two states, and it is right about them.
    words = str(error.value).split()
    target, source = int(words[words.index("state") + 1]), int(words[-1])
    assert target not in reachable(chain.transition, source)


def test_the_reducible_chain_of_a_batch_is_named() -> None:
    chain = ictd.MarkovRewardProcess([[CYCLE, CYCLE], [ABSORBING, CYCLE]], [0, 0, 0], 0.9)
    expected = r"state 0 of chain \(1, 0\) cannot be reached from state 1"
    with pytest.raises(ValueError, match=expected):
        _ = chain.stationary


def test_long_cycles_are_irreducible() -> None:
    for S in (2, 3, 16, 17, 33):
        cycle = np.roll(np.eye(S), 1, axis=1)
        chain = ictd.MarkovRewardProcess(cycle, np.zeros(S), 0.9)
        np.testing.assert_allclose(chain.stationary, 1 / S)
        cycle[S - 1] = np.eye(S)[S - 1]
        with pytest.raises(ValueError, match="state 0 cannot be reached from state 1"):
            _ = ictd.MarkovRewardProcess(cycle, np.zeros(S), 0.9).stationary


# --- sampling ---------------------------------------------------------------------------------------


@given(family=families, S=st.integers(3, 7), batch=no_batch_or_batches, seed=seeds)
@examples(30)
def test_a_sample_follows_the_edges_and_pays_the_state_that_is_left(
    family, S: int, batch: tuple[int, ...], seed: int
) -> None:
    chain = family(S, 0.9, rng(seed), batch)
    trajectory = chain.sample(20, rng(seed))
    assert trajectory.n == 20
    assert trajectory.states.shape == (*batch, 21)
    assert trajectory.states.dtype == np.int64
    assert trajectory.rewards.shape == (*batch, 20)
    assert trajectory.rewards.dtype == np.float64
    rows = zip(trajectory.states.reshape(-1, 21), trajectory.rewards.reshape(-1, 20), strict=True)
    for (states, rewards), one in zip(rows, single_chains(chain), strict=True):
        for k in range(20):
            assert one.transition[states[k], states[k + 1]] > 0
            assert rewards[k] == one.reward[states[k]]


@st.composite
def walks(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Laws of the start and of the moves, with zeros, sums of 1 ± 1e-12; and uniforms that hit edges."""
    B, S, n = draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(0, 12))
    weights = draw(arrays(np.int64, (B, S + 1, S), elements=st.integers(0, 4))).astype(float)
    # No law is zero everywhere.
    certain = draw(arrays(np.int64, (B, S + 1, 1), elements=st.integers(0, S - 1)))
    np.put_along_axis(weights, certain, 1.0, axis=-1)
    laws = weights / weights.sum(-1, keepdims=True)
    laws *= 1 + draw(st.sampled_from([0.0, 1e-12, -1e-12]))
    on_an_edge = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1 / 3, 1 - 2**-53])
    draws = arrays(np.float64, (B, n + 1), elements=on_an_edge | st.floats(0, 1, exclude_max=True))
    return laws[:, 0], laws[:, 1:], draw(draws)


@given(walk=walks())
@examples(100)
def test_both_walks_take_the_first_state_whose_cumulative_probability_exceeds_the_uniform(
    walk: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    start, rows, uniforms = walk
    cumulative = private._cumulative(start), private._cumulative(rows)
    each = private._walk_each(*cumulative, uniforms)
    together = private._walk_together(*cumulative, uniforms)
    assert each.dtype == together.dtype == np.int64
    np.testing.assert_array_equal(each, together)
    for b, path in enumerate(each):
        law = start[b]
        for u, state in zip(uniforms[b], path, strict=True):
            assert law[state] > 0
            assert state == inverted(law, u)
            law = rows[b, state]


def inverted(law: np.ndarray, u: float) -> int:
    """The least s with u < p(0) + … + p(s); the last possible state takes what rounding leaves over."""
    total = 0.0
    for state, probability in enumerate(law):
        total += probability
        if u < total:
            return state
    return int(np.flatnonzero(law)[-1])


@pytest.mark.parametrize("batch", [(40,), (5, 8), (2, 2, 10)])
def test_a_batch_and_its_chains_one_by_one_give_the_same_bits(batch: tuple[int, ...]) -> None:
    chain = ictd.boyan_chain(7, 0.9, rng(1), batch)
    together = chain.sample(30, rng(2))
    uniforms = rng(2)
    one_by_one = [one.sample(30, uniforms) for one in single_chains(chain)]
    states = np.array([trajectory.states for trajectory in one_by_one])
    rewards = np.array([trajectory.rewards for trajectory in one_by_one])
    np.testing.assert_array_equal(together.states.reshape(40, 31), states)
    np.testing.assert_array_equal(together.rewards.reshape(40, 30), rewards)


@pytest.mark.parametrize("size", [1, 15, 16, 17])
def test_same_seed_same_bits_and_a_generator_moves_on(size: int) -> None:
    chain = ictd.random_chain(5, 0.9, rng(1), (size,))
    first, again, generator = chain.sample(50, rng(3)), chain.sample(50, rng(3)), rng(3)
    np.testing.assert_array_equal(first.states, again.states)
    np.testing.assert_array_equal(first.states, chain.sample(50, generator).states)
    assert (chain.sample(50, generator).states != first.states).any()


@pytest.mark.parametrize("copies", [1, 20])
def test_the_frequencies_are_the_probabilities(copies: int) -> None:
    # Given that a state is entered k times, its successors are k independent draws: Hoeffding applies
    # to each of the S² frequencies at every count up to n, a union bound over 25 · 40,000 events.
    S, n = 5, 40_000 // copies
    one = ictd.loop_chain(S, 0.9, rng(4))
    chain = ictd.MarkovRewardProcess(np.broadcast_to(one.transition, (copies, S, S)), one.reward, 0)
    states = chain.sample(n, rng(5)).states
    seen = np.zeros((S, S))
    np.add.at(seen, (states[:, :-1], states[:, 1:]), 1)
    visits = seen.sum(-1, keepdims=True)
    assert visits.min() > 1000
    bound = np.sqrt(np.log(2 * 25 * 40_000 / 1e-6) / (2 * visits))
    assert (np.abs(seen / visits - one.transition) < bound).all()
    np.testing.assert_array_equal(seen > 0, one.transition > 0)


@pytest.mark.parametrize("size", [8, 30_000])
def test_the_start_follows_its_law(size: int) -> None:
    law = np.array([0.0, 0.1, 0.6, 0.0, 0.3])
    transition = np.broadcast_to(np.full((5, 5), 0.2), (size, 5, 5))
    chain = ictd.MarkovRewardProcess(transition, np.zeros(5), 0.9, law)
    generator = rng(6)
    starts = np.concatenate([chain.sample(1, generator).states[:, 0] for _ in range(4)])
    share = np.bincount(starts, minlength=5) / len(starts)
    assert (np.abs(share - law) < deviation(len(starts))).all()
    assert set(starts) <= {1, 2, 4}


def test_a_thousand_chains_are_faster_together_than_one_by_one() -> None:
    S, n = 10, 1000
    chain = ictd.boyan_chain(S, 0.9, rng(7), (1000,))

    def plain_loop(n_chains: int) -> None:
        generator = rng(8)
        cumulative = chain.transition.cumsum(-1)
        for b in range(n_chains):
            state = int(generator.integers(S))
            for u in generator.random(n):
                state = min(int(np.searchsorted(cumulative[b, state], u, side="right")), S - 1)

    def seconds(work, *arguments) -> float:
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            work(*arguments)
            times.append(time.perf_counter() - begin)
        return min(times)

    # Twenty chains in a plain loop take longer than a fifth of what a thousand take together.
    plain, together = seconds(plain_loop, 20) * 50, seconds(chain.sample, n, rng(8))
    assert plain > 5 * together


# --- errors -----------------------------------------------------------------------------------------


def test_a_trajectory_knows_its_length_and_its_types() -> None:
    trajectory = ictd.Trajectory([0, 1, 0], [1, 2])
    assert trajectory.n == 2
    assert trajectory.states.dtype == np.int64
    assert trajectory.rewards.dtype == np.float64
    assert ictd.Trajectory(np.zeros((4, 5, 3), dtype=np.uint8), np.zeros((4, 5, 2))).n == 2


@pytest.mark.parametrize(
    ("states", "rewards", "message"),
    [
        ([0], [], r"^states must have shape \(\.\.\., n\+1\) with n ≥ 1 .* got \(1,\)"),
        (np.zeros((3, 1), int), np.zeros((3, 0)), r"^states must have .* n ≥ 1 .* got \(3, 1\)"),
        (np.zeros((0, 3), int), np.zeros((0, 2)), r"^states must have .* got \(0, 3\)"),
        (3, [], r"^states must have shape .* got \(\)"),
        ([0, 1], [1, 2], r"^rewards must have shape \(1,\), .* got \(2,\)"),
        ([[0, 1], [1, 0]], [1], r"^rewards must have shape \(2, 1\), .* got \(1,\)"),
        ([0.0, 1.0], [1], r"^states must be an array of integers, got dtype float64"),
        ([True, False], [1], r"^states must be an array of integers, got dtype bool"),
        (["a", "b"], [1], r"^states must be an array of integers, got dtype <U1"),
        ([[0, 1], [0]], [[1], [1]], r"^states must be .* got a ragged sequence"),
        ([0, -1], [1], r"^states must be state indices ≥ 0, got -1"),
        ([0, 1], [np.nan], r"^rewards must be finite, got nan at index 0"),
        (
            [[0, 1], [1, 0]],
            [[1], [-np.inf]],
            r"^rewards must be finite, got -inf at index \(1, 0\)",
        ),
        ([0, 1], [1j], r"^rewards must be an array of real numbers, got dtype complex128"),
        ([0, 1], [None], r"^rewards must be an array of real numbers, got dtype object"),
        ([0, 1, 0], [[1], [1, 2]], r"^rewards must be an array of numbers, got a ragged sequence"),
    ],
)
def test_wrong_trajectories_are_refused(states, rewards, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.Trajectory(states, rewards)


GOOD = {"transition": CYCLE, "reward": [0, 1, 2], "gamma": 0.9}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"transition": np.eye(2, 3)}, r"^transition must have shape .*S, S\).* got \(2, 3\)"),
        ({"transition": [1.0]}, r"^transition must have shape .*S, S\).* got \(1,\)"),
        ({"transition": np.zeros((0, 0))}, r"^transition must have shape .* got \(0, 0\)"),
        ({"transition": [[1, 0], [0.5, 0.4]]}, r"^transition rows must sum to 1 .*0\.9.* index 1"),
        ({"transition": [[1, 0], [0.6, 0.5]]}, r"^transition rows must sum to 1 .*1\.1.* index 1"),
        ({"transition": [[1, 0], [1 + 1e-8, 0]]}, r"^transition rows must sum to 1 .* index 1"),
        (
            {"transition": [CYCLE, [[0, 1, 0], [0, 0, 1], [0.5, 0, 0]]]},
            r"^transition rows must sum to 1 .* got the sum .*0\.5.* at index \(1, 2\)",
        ),
        (
            {"transition": [[1.5, -0.5], [0, 1]]},
            r"^transition rows must be non-negative, got -0\.5 at index \(0, 1\)",
        ),
        ({"transition": [[np.nan, 1], [0, 1]]}, r"^transition must be finite, got nan at index"),
        ({"transition": [[np.inf, 1], [0, 1]]}, r"^transition must be finite, got inf at index"),
        ({"transition": [[1, 0], [1]]}, r"^transition must be an array of numbers, got a ragged"),
        ({"transition": "P"}, r"^transition must be an array of real numbers, got dtype <U1"),
        ({"reward": [1, 2]}, r"^reward must have shape \(3,\), got \(2,\)"),
        ({"reward": 1.0}, r"^reward must have shape \(3,\), got \(\)"),
        ({"reward": [[1, 2, 3]]}, r"^reward must have shape \(3,\), got \(1, 3\)"),
        (
            {"transition": [CYCLE, CYCLE], "reward": np.zeros((3, 3))},
            r"^reward must have shape \(3,\) or \(2, 3\), got \(3, 3\)",
        ),
        ({"reward": [1, 2, np.nan]}, r"^reward must be finite, got nan at index 2"),
        ({"initial": [1, 0]}, r"^initial must have shape \(3,\), got \(2,\)"),
        ({"initial": [0.5, 0.4, 0]}, r"^initial must sum to 1 .* got the sum .*0\.9"),
        ({"initial": [2, -1, 0]}, r"^initial must be non-negative, got -1\.0 at index 1"),
        ({"initial": [np.nan, 1, 0]}, r"^initial must be finite, got nan at index 0"),
        ({"gamma": 1}, r"^gamma must be in \[0, 1\), got 1\.0"),
        ({"gamma": -0.1}, r"^gamma must be in \[0, 1\), got -0\.1"),
        ({"gamma": np.nan}, r"^gamma must be in \[0, 1\), got nan"),
        ({"gamma": np.inf}, r"^gamma must be in \[0, 1\), got inf"),
        ({"gamma": False}, r"^gamma must be a number in \[0, 1\), got False"),
        ({"gamma": "0.9"}, r"^gamma must be a number in \[0, 1\), got '0\.9'"),
        ({"gamma": None}, r"^gamma must be a number in \[0, 1\), got None"),
        ({"gamma": [0.9]}, r"^gamma must be a number in \[0, 1\), got \[0\.9\]"),
    ],
)
def test_wrong_chains_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.MarkovRewardProcess(**{**GOOD, **wrong})


@pytest.mark.parametrize("gamma", [0, 0.5, np.float32(0.5), np.float64(0.999), 1 - 1e-12])
def test_numbers_of_any_kind_are_taken_for_gamma(gamma) -> None:
    assert ictd.MarkovRewardProcess(CYCLE, [0, 0, 0], gamma).gamma == float(gamma)


@pytest.mark.parametrize(
    ("n", "generator", "message"),
    [
        (0, rng(), r"^n must be an integer ≥ 1, got 0"),
        (-3, rng(), r"^n must be an integer ≥ 1, got -3"),
        (2.0, rng(), r"^n must be an integer ≥ 1, got 2\.0"),
        (True, rng(), r"^n must be an integer ≥ 1, got True"),
        (5, 0, r"^rng must be a numpy\.random\.Generator .* got 0"),
        (5, None, r"^rng must be a numpy\.random\.Generator .* got None"),
        (5, np.random, r"^rng must be a numpy\.random\.Generator .* got <module"),
    ],
)
def test_wrong_samples_are_refused(n, generator, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.MarkovRewardProcess(**GOOD).sample(n, generator)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_states": 0}, r"^n_states must be an integer ≥ \d, got 0"),
        ({"n_states": 5.0}, r"^n_states must be an integer ≥ \d, got 5\.0"),
        ({"n_states": True}, r"^n_states must be an integer ≥ \d, got True"),
        ({"gamma": 1.0}, r"^gamma must be in \[0, 1\), got 1\.0"),
        ({"rng": 0}, r"^rng must be a numpy\.random\.Generator .* got 0"),
        ({"batch": 3}, r"^batch must be a tuple of integers ≥ 1, got 3"),
        ({"batch": [3]}, r"^batch must be a tuple of integers ≥ 1, got \[3\]"),
        ({"batch": (2, 0)}, r"^each entry of batch must be an integer ≥ 1, got 0"),
    ],
)
def test_wrong_arguments_of_a_family_are_refused(name: str, wrong: dict, message: str) -> None:
    good = {"n_states": 5, "gamma": 0.9, "rng": rng(), "batch": (2,)}
    with pytest.raises(ValueError, match=message):
        FAMILIES[name](**{**good, **wrong})


@pytest.mark.parametrize(("name", "least"), [("boyan", 3), ("loop", 2), ("random", 1)])
def test_the_smallest_chain_of_a_family(name: str, least: int) -> None:
    assert FAMILIES[name](least, 0.9, rng()).n_states == least
    with pytest.raises(ValueError, match=rf"^n_states must be an integer ≥ {least}, got"):
        FAMILIES[name](least - 1, 0.9, rng())


@given(batch=batches, seed=seeds)
@examples(10)
def test_values_of_a_batch_are_computed_once(batch: tuple[int, ...], seed: int) -> None:
    chain = ictd.random_chain(4, 0.9, rng(seed), batch)
    assert chain.value is chain.value
    assert chain.stationary is chain.stationary


# --- streams ----------------------------------------------------------------------------------------


@given(
    seed=seeds, S=st.integers(3, 6), n=st.integers(1, 40), chunk=st.integers(1, 50), family=families
)
@examples(40)
def test_a_stream_is_the_sampled_trajectory_in_chunks(seed, S, n, chunk, family) -> None:
    chain = family(S, 0.9, rng(seed))
    whole, generator = chain.sample(n, rng(seed)), rng(seed)
    chunks = list(chain.stream(n, generator, chunk))
    assert [part.n for part in chunks] == [min(chunk, n - k) for k in range(0, n, chunk)]
    states = np.concatenate([part.states[:-1] for part in chunks] + [chunks[-1].states[-1:]])
    np.testing.assert_array_equal(states, whole.states)
    np.testing.assert_array_equal(np.concatenate([part.rewards for part in chunks]), whole.rewards)
    for before, after in pairwise(chunks):
        assert before.states[-1] == after.states[0]
    # The generator is left where sampling leaves it.
    other = rng(seed)
    chain.sample(n, other)
    assert generator.random() == other.random()


def test_a_stream_holds_one_chunk_at_a_time() -> None:
    chain = ictd.boyan_chain(4, 0.9, rng())
    tracemalloc.start()
    counts = ictd.Counts.of_stream(chain.stream(400_000, rng(), chunk=10_000), 4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts.visits.sum() == 400_000
    # A chunk is 10,000 states; the whole would be 400,000 of 8 bytes.
    assert peak < 2.5e6 < 400_000 * 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, rng()), r"^n must be an integer ≥ 1, got 0"),
        ((10, rng(), 0), r"^chunk must be an integer ≥ 1, got 0"),
        ((10, 3), r"^rng must be a numpy\.random\.Generator"),
    ],
)
def test_wrong_arguments_of_a_stream_are_refused_at_once(arguments, message: str) -> None:
    chain = ictd.MarkovRewardProcess(CYCLE, [1, 2, 3], 0.5)
    with pytest.raises(ValueError, match=message):
        chain.stream(*arguments)


@pytest.mark.parametrize("batch", [(1,), (2, 3), (17,)])
@pytest.mark.parametrize("chunk", [1, 7, 1000, None])
def test_a_batch_streams_each_chain_by_its_own_law(batch: tuple[int, ...], chunk) -> None:
    """Numbers in the order of time, one for each chain at each time, invert the chain's own laws."""
    S, n = 4, 60
    chains = ictd.boyan_chain(S, 0.9, rng(1), batch)
    parts = list(chains.stream(n, rng(2), chunk))
    assert [part.n for part in parts] == [min(chunk or n, n - k) for k in range(0, n, chunk or n)]
    draws = rng(2).random((n + 1, *batch))
    for index in np.ndindex(*batch):
        laws = chains.transition[index].cumsum(-1)
        path = [int((chains.initial[index].cumsum() <= draws[(0, *index)]).sum())]
        for t in range(1, n + 1):
            path.append(int((laws[path[-1]] <= draws[(t, *index)]).sum()))
        places = [part.states[index] for part in parts]
        assert np.concatenate([place[:-1] for place in places]).tolist() == path[:-1]
        assert [place[-1] for place in places][-1] == path[-1]
        for before, after in pairwise(places):
            assert before[-1] == after[0]
        rewards = np.concatenate([part.rewards[index] for part in parts])
        np.testing.assert_array_equal(rewards, chains.reward[index][path[:-1]])


@pytest.mark.parametrize(("batch", "largest"), [((), 1 << 18), ((15,), 1 << 18), ((64,), 1 << 20)])
def test_a_chunk_is_a_given_number_of_transitions_over_all_chains(batch, largest: int) -> None:
    chains = ictd.random_chain(2, 0.9, rng(), batch)
    first = next(chains.stream(1 << 20, rng()))
    assert first.n == largest // max(math.prod(batch), 1)


def test_a_batch_of_streams_holds_one_chunk_at_a_time() -> None:
    chains = ictd.boyan_chain(4, 0.9, rng(), (100,))
    tracemalloc.start()
    counts = ictd.Counts.of_stream(chains.stream(20_000, rng(), chunk=500), 4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (counts.visits.sum(-1) == 20_000).all()
    # A chunk is 50,000 states; the whole would be 2,000,000 of 8 bytes.
    assert peak < 6e6 < 2_000_000 * 8
