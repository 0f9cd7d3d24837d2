"""Theorem 2 with its constants, hitting times, and the limit law of the floor."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_close, batches, examples, seeds

import ictd

CYCLE = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
FAMILIES = [ictd.boyan_chain, ictd.loop_chain, ictd.random_chain]
families = st.sampled_from(FAMILIES)


def one_hot_scores(S: int, beta: float) -> np.ndarray:
    return beta * np.eye(S)


# --- hitting times and step 1: the counts -----------------------------------------------------------


@given(family=families, S=st.integers(3, 7), seed=seeds)
@examples(40)
def test_hitting_times_solve_the_first_step_equations(family, S: int, seed: int) -> None:
    chain = family(S, 0.9, np.random.default_rng(seed))
    times = ictd.hitting_times(chain)
    for s in range(S):
        assert abs(times[s, s]) < 1e-12
        for u in range(S):
            if u != s:
                following = sum(chain.transition[u, t] * times[t, s] for t in range(S))
                assert times[u, s] == pytest.approx(1 + following, rel=1e-9)


def test_hitting_times_of_a_cycle() -> None:
    times = ictd.hitting_times(ictd.MarkovRewardProcess(CYCLE, [0, 0, 0], 0.9))
    np.testing.assert_allclose(times, [[0, 1, 2], [2, 0, 1], [1, 2, 0]], atol=1e-13)


@given(family=families, S=st.integers(3, 7), seed=seeds)
@examples(40)
def test_the_poisson_solution_of_a_state_spans_its_share_times_the_hitting_time(
    family, S: int, seed: int
) -> None:
    """h − Ph = 1_s − μ(s): the length of the intervals in Azuma's inequality."""
    chain = family(S, 0.9, np.random.default_rng(seed))
    mu = chain.stationary
    F = np.linalg.pinv(np.eye(S) - chain.transition)
    spans = mu * ictd.hitting_times(chain).max(0)
    for s in range(S):
        h = F @ (np.eye(S)[s] - mu[s])
        assert_close(h - chain.transition @ h, np.eye(S)[s] - mu[s], 1e-9)
        assert np.ptp(h) == pytest.approx(spans[s], rel=1e-8)


@given(
    hitting_time=st.floats(1, 1e4),
    S=st.integers(2, 1000),
    delta=st.floats(1e-12, 0.999),
    eta=st.floats(1e-6, 1 / 3),
)
def test_the_required_length_makes_azumas_exponent_large_enough(
    hitting_time: float, S: int, delta: float, eta: float
) -> None:
    """2(ηn − t)²/(nt²) ≥ log(4S/δ): the boundary term h(S_0) − h(S_n) costs one t of the ηn."""
    # Any C > 0 with this η: the object only carries it.
    one = ictd.Theorem2(0.5, delta, S, *map(np.float64, (0.1, eta, hitting_time, 1.0, 0.5)))
    n, log = one.required_n, math.log(4 * S / delta)
    assert n == max(1, math.ceil(2 * (hitting_time / eta) ** 2 * log))
    assert eta * n > hitting_time
    assert 2 * (eta * n - hitting_time) ** 2 / (n * hitting_time**2) >= log


# --- step 2: the diagonal ---------------------------------------------------------------------------


@given(gamma=st.floats(0, 0.999), share=st.floats(0.001, 1), m=st.floats(0, 1))
@examples(100)
def test_counts_off_by_eta_cost_half_the_margin_on_the_diagonal(gamma, share, m) -> None:
    """The worst case: this state seen too rarely, all others too often."""
    C = share * (1 - gamma) / 2
    eta = C / (1 - gamma**2 + C)
    m = (1 + gamma) / 2 + C + m * (1 - (1 + gamma) / 2 - C)
    worst = (1 - eta) * m / ((1 - eta) * m + (1 + eta) * (1 - m))
    loss = 2 * eta * m * (1 - m) / (1 - eta * (2 * m - 1))
    assert m - worst == pytest.approx(loss, abs=1e-12)
    assert loss <= C / 2 + 1e-15
    assert eta <= 1 / 3


@given(seed=seeds, gamma=st.sampled_from([0.0, 0.5, 0.9]))
@examples(40)
def test_any_counts_within_eta_leave_a_contraction_of_one_minus_c(seed: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    S = 5
    chain = ictd.random_chain(S, gamma, rng)
    scores = one_hot_scores(S, 8.0) + rng.normal(size=(S, S)) * 0.1
    theorem = ictd.theorem_2(chain, scores, 0.05)
    assert theorem.C > 0
    for _ in range(5):
        law = chain.stationary * (1 + theorem.eta * rng.choice([-1, 1], S))
        off = ictd.population_operator(chain, scores, law=law / law.sum())
        assert off.bound(gamma) <= 1 - theorem.C + 1e-12
        assert off.contraction(gamma) <= 1 - theorem.C + 1e-12


# --- the constants ----------------------------------------------------------------------------------


@given(family=families, seed=seeds, gamma=st.sampled_from([0.0, 0.5, 0.9]), batch=batches)
@examples(40)
def test_the_constants_are_their_formulas(family, seed, gamma: float, batch) -> None:
    rng = np.random.default_rng(seed)
    S, delta = 4, 0.1
    chain = family(S, gamma, rng, batch)
    scores = one_hot_scores(S, 6.0)
    theorem = ictd.theorem_2(chain, scores, delta)
    M = ictd.population_operator(chain, scores).M
    times = ictd.hitting_times(chain)
    n = np.array([10.0, 1e4, 1e7])
    floors = theorem.floor(n.reshape(-1, *[1] * len(batch)))
    assert floors.shape == (3, *batch)
    assert theorem.required_n.shape == batch
    for index in np.ndindex(*batch):
        C = min(M[index][s, s] for s in range(S)) - (1 + gamma) / 2
        assert theorem.C[index] == pytest.approx(C, abs=1e-12)
        assert theorem.hitting_time[index] == pytest.approx(times[index].max(), rel=1e-12)
        if C <= 0:
            assert np.isnan(theorem.eta[index])
            assert theorem.required_n[index] == np.inf
            assert (floors[(slice(None), *index)] == np.inf).all()
            continue
        eta = C / (1 - gamma**2 + C)
        assert theorem.eta[index] == pytest.approx(eta, rel=1e-10)
        log = math.log(4 * S / delta)
        required = 2 * times[index].max() ** 2 * log / eta**2
        assert required * (1 - 1e-9) <= theorem.required_n[index] <= required * (1 + 1e-9) + 1
        v = chain.value[index]
        for k in range(3):
            root = math.sqrt(log / (2 * (1 - eta) * n[k] * chain.stationary[index].min()))
            expected = 2 * gamma * (v.max() - v.min()) / (1 - gamma) * root
            assert floors[(k, *index)] == pytest.approx(expected, rel=1e-9)


def test_another_delta_moves_the_floor() -> None:
    chain = ictd.random_chain(3, 0.5, np.random.default_rng(0))
    theorem = ictd.theorem_2(chain, one_hot_scores(3, 6.0), 0.1)
    strict = ictd.theorem_2(chain, one_hot_scores(3, 6.0), 0.001)
    assert theorem.floor(100, delta=0.001) == strict.floor(100)
    assert strict.floor(100) > theorem.floor(100)
    assert strict.required_n > theorem.required_n
    assert theorem.floor(400) == pytest.approx(theorem.floor(100) / 2)


def test_one_state_needs_one_transition() -> None:
    chain = ictd.MarkovRewardProcess([[1.0]], [2.0], 0.9)
    theorem = ictd.theorem_2(chain, [[0.0]], 0.1)
    np.testing.assert_allclose(theorem.C, 0.05)
    assert theorem.required_n == 1
    assert theorem.floor(1) == 0


def test_no_context_of_the_required_length_violates_the_theorem() -> None:
    gamma, S, delta = 0.5, 3, 0.5
    rng = np.random.default_rng(0)
    looseness = []
    for seed in range(4):
        chain = ictd.random_chain(S, gamma, np.random.default_rng(seed))
        scores = one_hot_scores(S, 6.0)
        theorem = ictd.theorem_2(chain, scores, delta)
        n = int(theorem.required_n)
        assert 100 < n < 2e5
        for _ in range(5):
            counts = ictd.Counts.of_stream(chain.stream(n, rng), S)
            off = np.abs(counts.visits - n * chain.stationary)
            assert (off <= theorem.eta * n * chain.stationary).all()
            operator = ictd.empirical_operator(counts, scores)
            assert operator.contraction(gamma) <= 1 - theorem.C
            values = operator.values(gamma, 60, initial=rng.normal(size=S))
            error = np.abs(values - chain.value).max(-1)
            bound = (1 - theorem.C) ** np.arange(61) * error[0] + theorem.floor(n)
            assert (error <= bound).all()
            looseness.append(theorem.floor(n) / error[-1])
    assert 2 < np.median(looseness) < 1000


# --- the limit law ----------------------------------------------------------------------------------


def test_the_covariance_by_hand() -> None:
    """Two states, uniform rows (p, 1 − p): v = r + c, so K = I + γ/(1−γ) 1pᵀ and σ² is shared."""
    p, gamma = np.array([0.25, 0.75]), 0.5
    chain = ictd.MarkovRewardProcess([p, p], [1.0, 3.0], gamma)
    K = np.eye(2) + gamma / (1 - gamma) * np.outer(np.ones(2), p)
    variance = 4 * p[0] * p[1]
    expected = gamma**2 * K @ np.diag(variance / p) @ K.T
    np.testing.assert_allclose(ictd.limit_covariance(chain), expected, rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_covariance_is_that_of_sampled_limits(family) -> None:
    gamma, S, n, contexts = 0.9, 4, 4000, 1500
    rng = np.random.default_rng(1)
    chain = family(S, gamma, rng)
    many = ictd.MarkovRewardProcess(
        np.broadcast_to(chain.transition, (contexts, S, S)), chain.reward, gamma
    )
    counts = ictd.Counts.of(many.sample(n, rng), S)
    limits = ictd.empirical_operator(counts, np.eye(S)).fixed_point(gamma)
    sampled = n * np.cov(limits.T)
    expected = ictd.limit_covariance(chain)
    assert_close(expected, expected.T, 1e-15)
    # In the metric of the law itself; a sampled variance is off by √(2/1500) = 3.7 % in the mean.
    vectors = np.linalg.eigh(expected)[1]
    inside = np.diag(vectors.T @ sampled @ vectors) / np.diag(vectors.T @ expected @ vectors)
    kept = np.diag(vectors.T @ expected @ vectors) > 1e-12 * np.trace(expected)
    np.testing.assert_allclose(inside[kept], 1, atol=0.17)
    off = np.abs(sampled - expected) / np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert off.max() < 0.15


@given(seed=seeds, batch=batches)
@examples(20)
def test_a_batch_gives_what_its_members_give(seed: int, batch) -> None:
    chains = ictd.boyan_chain(4, 0.9, np.random.default_rng(seed), batch)
    covariance, times = ictd.limit_covariance(chains), ictd.hitting_times(chains)
    theorem = ictd.theorem_2(chains, one_hot_scores(4, 9.0), 0.1)
    for index in np.ndindex(*batch):
        one = ictd.MarkovRewardProcess(chains.transition[index], chains.reward[index], 0.9)
        assert_close(covariance[index], ictd.limit_covariance(one), 1e-10)
        assert_close(times[index], ictd.hitting_times(one), 1e-10)
        alone = ictd.theorem_2(one, one_hot_scores(4, 9.0), 0.1)
        for name in ("C", "eta", "hitting_time", "span", "smallest_share", "required_n"):
            np.testing.assert_allclose(getattr(theorem, name)[index], getattr(alone, name), 1e-9)


def test_scores_of_a_batch_on_one_chain() -> None:
    chain = ictd.random_chain(3, 0.5, np.random.default_rng(0))
    scores = np.array([one_hot_scores(3, beta) for beta in (0.0, 4.0, 8.0)])
    theorem = ictd.theorem_2(chain, scores, 0.1)
    assert theorem.C.shape == theorem.required_n.shape == theorem.floor(100).shape == (3,)
    assert theorem.required_n[0] == np.inf
    assert (np.diff(theorem.C) > 0).all()


# --- errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0, 1, 1.5, -0.1, float("nan"), "0.1", True])
def test_wrong_probabilities_are_refused(delta) -> None:
    chain = ictd.random_chain(3, 0.5, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"^delta must be "):
        ictd.theorem_2(chain, np.eye(3), delta)
    theorem = ictd.theorem_2(chain, np.eye(3), 0.1)
    with pytest.raises(ValueError, match=r"^delta must be "):
        theorem.floor(100, delta=delta)


@pytest.mark.parametrize("n", [0, [10, 0.5], float("inf"), "many"])
def test_wrong_lengths_are_refused(n) -> None:
    theorem = ictd.theorem_2(ictd.random_chain(3, 0.5, np.random.default_rng(0)), np.eye(3), 0.1)
    with pytest.raises(ValueError, match=r"^n must be "):
        theorem.floor(n)


@pytest.mark.parametrize(
    "call",
    [lambda c: ictd.theorem_2(c, np.eye(2), 0.1), ictd.hitting_times, ictd.limit_covariance],
)
def test_reducible_chains_are_refused(call) -> None:
    with pytest.raises(ValueError, match=r"^transition must be irreducible"):
        call(ictd.MarkovRewardProcess([[0.5, 0.5], [0, 1]], [1, 2], 0.5))
