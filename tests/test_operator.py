"""The operator of a context and of a chain: what it is, where its iteration goes, and how fast."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import strategies as literal
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, mutually_broadcastable_shapes
from strategies import (
    assert_close,
    contexts,
    examples,
    gammas,
    score_matrices,
    seeds,
    softmax,
)

import ictd

step_sizes = st.sampled_from([1.0, 0.5, -0.25, 1.5, 0.0])
CYCLE = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


def trajectory_of(context: literal.Context) -> ictd.Trajectory:
    return ictd.Trajectory(context.states, context.rewards)


def value_arrays(S: int) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, (S,), elements=st.floats(-10, 10))


def dense_operators(states: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(20) term by term: the n weights of each query, summed by the state left and the state entered."""
    S, n = len(scores), len(states) - 1
    M, P = np.zeros((S, S)), np.zeros((S, S))
    for s in range(S):
        K = softmax([scores[s, states[k - 1]] for k in range(1, n + 1)])
        for k in range(1, n + 1):
            M[s, states[k - 1]] += K[k - 1]
            P[s, states[k]] += K[k - 1]
    return M, P


def iterates(operator: ictd.KernelOperator, gamma, depth, alpha, start) -> np.ndarray:
    """v + αM(r + γPv − v), a loop over layers of one chain."""
    v = np.array(start, dtype=float)
    for _ in range(depth):
        v = v + alpha * operator.M @ (operator.rewards + gamma * operator.transition @ v - v)
    return v


def sphere_operator(
    seed: int, S: int, gamma: float, n: int, d: int = 10, hidden: bool = False
) -> ictd.KernelOperator:
    """A context of a random chain whose sources are all states, or all but the last of S+1."""
    rng = np.random.default_rng(seed)
    chain = ictd.random_chain(S, gamma, rng)
    states = np.concatenate([np.arange(S), chain.sample(n, rng).states])
    rewards = chain.reward[states[:-1]]
    x = ictd.sphere_features(S + hidden, d, rng)
    return ictd.empirical_operator(ictd.Trajectory(states, rewards), x @ x.T)


# --- M̂ and P̂ ---------------------------------------------------------------------------------------


@given(data=st.data(), context=contexts())
@examples(100)
def test_it_is_the_sum_over_positions_of_the_paper(data, context) -> None:
    scores = data.draw(score_matrices((context.n_states,) * 2))
    operator = ictd.empirical_operator(trajectory_of(context), scores)
    M, P = dense_operators(context.states, scores)
    assert_close(operator.M, M, 1e-12)
    assert_close(operator.P, P, 1e-12)
    assert_close(operator.M @ operator.transition, P, 1e-12)
    assert operator.M.dtype == operator.P.dtype == np.float64


@given(data=st.data(), context=contexts(), cuts=st.lists(st.integers(1, 24), max_size=3))
@examples(60)
def test_a_stream_of_chunks_gives_the_dense_operator(data, context, cuts) -> None:
    scores = data.draw(score_matrices((context.n_states,) * 2))
    edges = sorted({0, context.n, *(cut for cut in cuts if cut < context.n)})
    chunks = (
        ictd.Trajectory(context.states[a : b + 1], context.rewards[a:b]) for a, b in pairwise(edges)
    )
    operator = ictd.empirical_operator(ictd.Counts.of_stream(chunks, context.n_states), scores)
    M, P = dense_operators(context.states, scores)
    assert_close(operator.M, M, 1e-12)
    assert_close(operator.P, P, 1e-12)


@given(data=st.data(), context=contexts())
@examples(60)
def test_rows_are_distributions_and_unvisited_columns_are_zero(data, context) -> None:
    scores = data.draw(score_matrices((context.n_states,) * 2))
    operator = ictd.empirical_operator(trajectory_of(context), scores)
    visited = np.isin(np.arange(context.n_states), context.states[:-1])
    np.testing.assert_array_equal(operator.visited, visited)
    has_a_source = np.isfinite(scores[:, visited]).any(1)
    assert operator.M.min() >= 0
    assert_close(operator.M.sum(-1), has_a_source.astype(float), 1e-12)
    assert_close(operator.P.sum(-1), has_a_source.astype(float), 1e-12)
    assert not operator.M[:, ~visited].any()
    assert not operator.transition[~visited].any()
    assert not operator.rewards[~visited].any()
    assert_close(operator.transition.sum(-1), visited.astype(float), 1e-12)


@pytest.mark.parametrize("top", [1e4, -1e4])
def test_scores_of_ten_thousand(top: float) -> None:
    """An unvisited source of the highest score takes nothing and drowns nothing."""
    scores = np.array([[top, top - 1, 2e4], [-top, top, 2e4], [top, top + 0.5, -2e4]])
    operator = ictd.empirical_operator(ictd.Trajectory([0, 1, 0, 0, 2], np.ones(4)), scores)
    M, P = dense_operators(np.array([0, 1, 0, 0, 2]), scores)
    assert np.isfinite(operator.M).all()
    assert_close(operator.M, M, 1e-12)
    assert_close(operator.P, P, 1e-12)
    assert operator.M[0, 0] == pytest.approx(3 / (3 + np.exp(-1)), rel=1e-12)
    for figure in (operator.contraction, operator.spectral_radius, operator.rate, operator.bound):
        assert np.isfinite(figure(0.9))
    assert np.isfinite(operator.limit(0.9)).all()


def test_n_states_may_be_said_and_has_to_be_right() -> None:
    trajectory, scores = ictd.Trajectory([0, 1, 0], [1, 2]), np.zeros((3, 3))
    said = ictd.empirical_operator(trajectory, scores, 3)
    np.testing.assert_array_equal(said.M, ictd.empirical_operator(trajectory, scores).M)
    assert repr(said) == "KernelOperator(n_states=3)"


@given(seed=seeds, scale=st.sampled_from([0.5, 2.0]))
@examples(30)
def test_scaling_the_features_by_a_is_a_sharpness_of_a_squared(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    x = ictd.uniform_features(5, 3, rng)
    trajectory = ictd.random_chain(5, 0.9, rng).sample(30, rng)
    one = ictd.empirical_operator(trajectory, ictd.inner_product_scores(scale * x))
    other = ictd.empirical_operator(trajectory, ictd.inner_product_scores(x, scale**2))
    assert_close(one.M, other.M, 1e-13)


@given(data=st.data(), context=contexts(), gamma=gammas)
@examples(60)
def test_new_names_of_the_states_change_nothing(data, context, gamma: float) -> None:
    S = context.n_states
    x = context.features / 100
    label = np.array(data.draw(st.permutations(range(S))))
    x_named, start = np.empty_like(x), data.draw(value_arrays(S))
    x_named[label] = x
    named_start = np.empty_like(start)
    named_start[label] = start
    one = ictd.empirical_operator(trajectory_of(context), ictd.inner_product_scores(x))
    other = ictd.empirical_operator(
        ictd.Trajectory(label[context.states], context.rewards), ictd.inner_product_scores(x_named)
    )
    assert_close(other.M[np.ix_(label, label)], one.M, 1e-12)
    assert_close(other.P[np.ix_(label, label)], one.P, 1e-12)
    for figure in ("diagonality", "state_mean_diagonality", "visit_weighted_diagonality"):
        assert_close(getattr(other, figure)(), getattr(one, figure)(), 1e-12)
    for figure in ("contraction", "bound", "margin"):
        assert_close(getattr(other, figure)(gamma), getattr(one, figure)(gamma), 1e-11, 1.0)
    values = other.values(gamma, 5, 1.0, named_start)[:, label]
    assert_close(values, one.values(gamma, 5, 1.0, start), 1e-10, context.scale)


# --- the population ---------------------------------------------------------------------------------


@given(seed=seeds, S=st.integers(1, 6))
@examples(30)
def test_the_population_operator_weighs_sources_by_the_stationary_law(seed: int, S: int) -> None:
    rng = np.random.default_rng(seed)
    chain, x = ictd.random_chain(S, 0.9, rng), ictd.uniform_features(S, 3, rng)
    operator = ictd.population_operator(chain, x @ x.T)
    mu, expected = chain.stationary, np.zeros((S, S))
    for s in range(S):
        weights = [mu[t] * np.exp(x[s] @ x[t]) for t in range(S)]
        expected[s] = weights / np.sum(weights)
    assert_close(operator.M, expected, 1e-13)
    assert_close(operator.P, expected @ chain.transition, 1e-13)
    np.testing.assert_array_equal(operator.rewards, chain.reward)
    np.testing.assert_array_equal(operator.visits, mu)
    other = rng.dirichlet(np.ones(S))
    off_policy = ictd.population_operator(chain, x @ x.T, law=other)
    np.testing.assert_array_equal(off_policy.visits, other)
    ratio = off_policy.M * mu / (operator.M * other)
    assert_close(ratio, np.broadcast_to(ratio[:, :1], (S, S)), 1e-10)


def test_long_contexts_approach_the_population_at_the_rate_of_the_root() -> None:
    rng = np.random.default_rng(0)
    chain = ictd.random_chain(4, 0.9, rng)
    x = ictd.sphere_features(4, 3, rng)
    population = ictd.population_operator(chain, x @ x.T)
    distance = []
    for n in (10**4, 10**6):
        off = [
            ictd.empirical_operator(ictd.Counts.of_stream(chain.stream(n, rng), 4), x @ x.T)
            for _ in range(8)
        ]
        distance.append(np.mean([np.abs(one.P - population.P).max() for one in off]))
        assert np.mean([np.abs(one.M - population.M).max() for one in off]) < 2 / np.sqrt(n)
    assert distance[0] < 2e-2
    assert 6 < distance[0] / distance[1] < 16


def test_periodic_chains_have_an_operator_and_reducible_ones_need_a_law() -> None:
    cycle = ictd.MarkovRewardProcess(CYCLE, [1, 2, 4], 0.5)
    operator = ictd.population_operator(cycle, 20 * np.eye(3))
    np.testing.assert_allclose(operator.fixed_point(0.5), cycle.value)
    np.testing.assert_allclose(operator.limit(0.5, [9, 9, 9]), cycle.value)
    assert operator.rate(0.5) == pytest.approx(0.5, abs=1e-8)
    absorbing = ictd.MarkovRewardProcess([[0.5, 0.5], [0, 1]], [1, 2], 0.5)
    with pytest.raises(ValueError, match=r"^transition must be irreducible"):
        ictd.population_operator(absorbing, np.eye(2))
    operator = ictd.population_operator(absorbing, np.eye(2), law=[0.5, 0.5])
    np.testing.assert_allclose(operator.limit(0.5), absorbing.value)


def test_a_law_may_leave_states_out() -> None:
    """They are no sources, as the unvisited states of a context; the chain may still pass there."""
    chain = ictd.MarkovRewardProcess([[0.5, 0.5, 0], [0.5, 0.25, 0.25], [1, 0, 0]], [1, 2, 4], 0.5)
    operator = ictd.population_operator(chain, np.eye(3), law=[0.5, 0.5, 0])
    assert not operator.M[:, 2].any()
    assert operator.rank == 2
    fixed = operator.fixed_point(0.5)
    block = np.eye(2) - 0.5 * chain.transition[:2, :2]
    np.testing.assert_allclose(fixed, [*np.linalg.solve(block, [1, 2]), 0])
    np.testing.assert_allclose(operator.values(0.5, 1, 1.0, fixed)[-1], fixed)
    start = np.array([1.0, -1, 3])
    deep = operator.values(0.5, 500, 1.0, start)[-1]
    np.testing.assert_allclose(operator.limit(0.5, start), deep)
    assert operator.nu(0.5) == np.inf


def test_a_context_of_a_reducible_chain_is_judged_by_what_it_visits() -> None:
    # State 2 absorbs; 0 and 1 were left before.
    trajectory = ictd.Trajectory([0, 1, 0, 2, 2, 2], [1.0, -1.0, 1.0, 3.0, 3.0])
    operator = ictd.empirical_operator(trajectory, ictd.similarity_scores(np.eye(3)))
    P = np.array([[0, 0.5, 0.5], [1, 0, 0], [0, 0, 1]])
    np.testing.assert_allclose(operator.transition, P)
    expected = np.linalg.solve(np.eye(3) - 0.9 * P, [1, -1, 3])
    np.testing.assert_allclose(operator.limit(0.9), expected)
    np.testing.assert_allclose(operator.fixed_point(0.9), expected)
    assert operator.rate(0.9) == pytest.approx(0.9)
    assert operator.largest_step(0.9) == pytest.approx(2 / (1 + 0.9 * np.sqrt(0.5)))


# --- layers -----------------------------------------------------------------------------------------


@given(data=st.data(), context=contexts(), alpha=step_sizes)
@examples(80)
def test_values_are_weighted_softmax_td_at_every_layer(data, context, alpha: float) -> None:
    S, gamma, L = context.n_states, context.gamma, context.depth
    scores = data.draw(score_matrices((S, S)))
    start = data.draw(st.none() | value_arrays(S))
    trajectory = trajectory_of(context)
    values = ictd.empirical_operator(trajectory, scores).values(gamma, L, alpha, start)
    expected = ictd.weighted_softmax_td(trajectory, scores, gamma, L, alpha, start)
    assert_close(values, expected, 1e-10, context.scale)


@given(context=contexts())
@examples(60)
def test_values_are_those_of_the_pass_over_states_and_of_the_literal_network(context) -> None:
    torch = pytest.importorskip("torch")
    gamma, L, x = context.gamma, context.depth, context.features
    trajectory = trajectory_of(context)
    operator = ictd.empirical_operator(trajectory, ictd.inner_product_scores(x))
    values = operator.values(gamma, L)
    eye, td = torch.eye(context.d).double(), torch.tensor([1.0, 1.0, -1.0]).double()
    scale = max(context.scale, 1e-290)
    assert_close(values, ictd.state_pass(trajectory, x, eye, td, gamma, L), 1e-10, scale)
    network = ictd.SoftmaxTransformer.td(context.d, gamma, L)
    layers = ictd.read_values(network.layers(ictd.prompt(trajectory, x)))
    expected = layers.movedim(0, -2).detach()
    assert_close(values[:, context.states], expected, 1e-10, scale)


def test_a_step_size_may_be_a_schedule() -> None:
    trajectory = ictd.Trajectory([0, 1, 1, 2, 0], [1.0, -2.0, 0.5, 3.0])
    scores, alphas = np.diag([1.0, 2.0, 3.0]), [0.5, 1.0, -0.25]
    values = ictd.empirical_operator(trajectory, scores).values(0.9, 3, alphas)
    assert_close(values, ictd.weighted_softmax_td(trajectory, scores, 0.9, 3, alphas), 1e-13)


# --- Assumption 5.1 ---------------------------------------------------------------------------------


@given(data=st.data(), context=contexts(), alpha=step_sizes, gamma=gammas)
@examples(80)
def test_the_contraction_is_the_largest_row_sum_and_the_bound_is_above_it(
    data, context, alpha: float, gamma: float
) -> None:
    S = context.n_states
    operator = ictd.empirical_operator(
        trajectory_of(context), data.draw(score_matrices((S, S), infinite=False))
    )
    M, P = dense_operators(context.states, operator.scores)
    rows = [
        sum(abs((s == t) - alpha * M[s, t] + alpha * gamma * P[s, t]) for t in range(S))
        for s in range(S)
    ]
    assert operator.contraction(gamma, alpha) == pytest.approx(max(rows), rel=1e-12)
    assert operator.contraction(gamma, alpha) <= operator.bound(gamma, alpha) * (1 + 1e-12)
    paper = 2 * (1 - min(M[s, s] for s in range(S))) + gamma
    assert operator.bound(gamma) == pytest.approx(paper, rel=1e-12)
    margin = operator.margin(gamma)
    assert margin == pytest.approx(operator.diagonality() - (1 + gamma) / 2, abs=1e-14)
    assert operator.bound(gamma) == pytest.approx(1 - 2 * margin, abs=1e-12)
    if 0 <= alpha <= 1:
        assert operator.bound(gamma, alpha) == pytest.approx(1 - 2 * alpha * margin, abs=1e-12)
    if len(set(context.states[:-1])) < S:
        assert operator.bound(gamma) == pytest.approx(2 + gamma, rel=1e-12)


def test_the_bound_is_reached() -> None:
    """Two states that always swap, with a kernel of the diagonal m: rows |1 − m| + |γm| + …"""
    trajectory = ictd.Trajectory([0, 1, 0, 1, 0], np.ones(4))
    operator = ictd.empirical_operator(trajectory, 3 * np.eye(2))
    m = operator.diagonality()
    # P̂(s, s) = 1 − m and P̂(s, t) = m: |1 − m + γ(1 − m)| + |γm − (1 − m)|.
    expected = (1 - m) * 1.9 + abs(0.9 * m - (1 - m))
    assert operator.contraction(0.9) == pytest.approx(expected, rel=1e-14)
    # Without the next states nothing is lost.
    assert operator.contraction(0.0) == pytest.approx(operator.bound(0.0), rel=1e-14)


@given(context=contexts(), data=st.data())
@examples(60)
def test_three_figures_of_diagonality(context, data) -> None:
    S = context.n_states
    scores = data.draw(score_matrices((S, S)))
    operator = ictd.empirical_operator(trajectory_of(context), scores)
    M, _ = dense_operators(context.states, scores)
    sources = context.states[:-1]
    assert operator.diagonality() == pytest.approx(min(M[s, s] for s in range(S)), abs=1e-12)
    over_columns = np.mean([M[s, s] for s in sources])
    assert operator.visit_weighted_diagonality() == pytest.approx(over_columns, abs=1e-12)
    over_states = np.mean([M[s, s] for s in sorted(set(sources))])
    assert operator.state_mean_diagonality() == pytest.approx(over_states, abs=1e-12)


def test_the_figures_of_diagonality_differ() -> None:
    trajectory = ictd.Trajectory([0, 0, 0, 1, 2], np.ones(4))
    operator = ictd.empirical_operator(trajectory, np.zeros((3, 3)))
    assert operator.diagonality() == 0
    assert operator.state_mean_diagonality() == pytest.approx(1 / 2)
    assert operator.visit_weighted_diagonality() == pytest.approx((3 * 0.75 + 0.25) / 4)


# --- spectra ----------------------------------------------------------------------------------------


@given(seed=seeds, S=st.integers(1, 7), gamma=gammas, alpha=step_sizes)
@examples(60)
def test_the_spectrum_is_that_of_the_matrix(seed: int, S: int, gamma: float, alpha: float) -> None:
    operator = sphere_operator(seed, S, gamma, 40)
    B = operator.M @ (np.eye(S) - gamma * operator.transition)
    expected = np.linalg.eigvals(B)
    found = operator.eigenvalues(gamma)
    assert found.dtype == np.complex128
    assert (np.diff(np.abs(found)) <= 1e-12).all()
    # As multisets: the characteristic polynomials agree.
    assert_close(np.poly(found), np.poly(expected), 1e-9)
    radius = np.abs(np.linalg.eigvals(np.eye(S) - alpha * B)).max()
    assert operator.rank == S
    assert operator.spectral_radius(gamma, alpha) == pytest.approx(radius, abs=1e-7)
    assert operator.rate(gamma, alpha) == operator.spectral_radius(gamma, alpha)


@given(seed=seeds, S=st.integers(2, 6), gamma=gammas)
@examples(40)
def test_convergence_changes_at_the_largest_step(seed: int, S: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    trajectory = ictd.random_chain(S, gamma, rng).sample(25, rng)
    operator = ictd.empirical_operator(trajectory, rng.normal(size=(S, S)) * 2)
    step = operator.largest_step(gamma)
    assert step >= 0
    if step == 0:
        assert min(operator.rate(gamma, alpha) for alpha in (1e-3, 0.1, 1.0)) >= 1 - 1e-9
    elif step < np.inf:
        assert operator.rate(gamma, step * 0.999) < 1
        assert operator.rate(gamma, step * 0.5) < 1
        assert operator.rate(gamma, step) == pytest.approx(1, abs=1e-9)
        assert operator.rate(gamma, step * 1.001) > 1


def test_what_does_not_move_has_the_eigenvalue_zero() -> None:
    """Unvisited states, and features that coincide."""
    trajectory = ictd.Trajectory([0, 1, 0, 1, 1, 0], np.ones(5))
    operator = ictd.empirical_operator(trajectory, np.eye(4))
    assert operator.rank == 2
    values = operator.eigenvalues(0.9)
    assert (values[2:] == 0).all()
    block = operator.M[:2, :2] @ (np.eye(2) - 0.9 * operator.transition[:2, :2])
    np.testing.assert_allclose(np.sort(values[:2].real), np.sort(np.linalg.eigvals(block)))
    assert operator.spectral_radius(0.9) == 1
    assert operator.rate(0.9) == pytest.approx(np.abs(1 - np.linalg.eigvals(block)).max())

    equal = ictd.empirical_operator(trajectory, np.zeros((2, 2)))
    assert equal.rank == 1
    assert equal.spectral_radius(0.9) == 1
    assert equal.rate(0.9) == pytest.approx(0.9)
    assert equal.largest_step(0.9) == pytest.approx(20)


def test_slow_directions_move() -> None:
    """Features close to each other: M is nearly singular, and its slow directions count in full."""
    rng = np.random.default_rng(0)
    chain = ictd.random_chain(4, 0.9, rng)
    x = np.array([[0.0], [0.1], [0.3], [0.6]])
    states = np.concatenate([np.arange(4), chain.sample(40, rng).states])
    trajectory = ictd.Trajectory(states, chain.reward[states[:-1]])
    operator = ictd.empirical_operator(trajectory, x @ x.T)
    assert operator.rank == 4
    slowest = np.linalg.svd(operator.M)[1][-1]
    assert 1e-9 < slowest < 1e-5
    assert_close(operator.limit(0.9), operator.fixed_point(0.9), 1e-10)
    determinant = np.linalg.det(operator.M @ (np.eye(4) - 0.9 * operator.transition))
    assert np.prod(operator.eigenvalues(0.9)).real == pytest.approx(determinant, rel=1e-6)
    assert 0 < 1 - operator.rate(0.9) < 1e-5
    # An exact copy of a feature does not.
    copy = ictd.empirical_operator(trajectory, np.outer(x[[0, 1, 3, 3]], x[[0, 1, 3, 3]]))
    assert copy.rank == 3


def test_conventions_where_nothing_moves() -> None:
    trajectory = ictd.Trajectory([0, 1, 0], [1.0, 2.0])
    operator = ictd.empirical_operator(trajectory, np.full((2, 2), -np.inf))
    assert operator.rank == 0
    assert operator.rate(0.9) == 0
    assert operator.spectral_radius(0.9) == 1
    assert operator.largest_step(0.9) == np.inf
    assert operator.nu(0.9) == operator.nu_bound(0.9) == operator.theorem_a_rate(0.9) == 0
    assert operator.nu_bound_of_normalisers(0.9) == 0
    np.testing.assert_array_equal(operator.limit(0.9, [3, 4]), [3, 4])


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("beta", [0.5, 2.0, 8.0])
def test_the_spectrum_of_scaled_one_hot_features_under_a_uniform_law(gamma, beta) -> None:
    """{1 − γ} and m(1 − γp_i), m = (e^β − 1)/(S + e^β − 1), p_i the other eigenvalues of P."""
    S = 6
    rng = np.random.default_rng(0)
    # Mixtures of permutations leave the uniform law alone.
    P = sum(w * np.eye(S)[rng.permutation(S)] for w in rng.dirichlet(np.ones(4)))
    chain = ictd.MarkovRewardProcess(P, np.zeros(S), gamma)
    operator = ictd.population_operator(chain, beta * np.eye(S))
    m = (np.exp(beta) - 1) / (S + np.exp(beta) - 1)
    p = np.linalg.eigvals(P)
    others = np.delete(p, np.argmin(np.abs(p - 1)))
    expected = np.append(m * (1 - gamma * others), 1 - gamma)
    assert_close(np.poly(operator.eigenvalues(gamma)), np.poly(expected), 1e-10)
    radius = np.abs(1 - 0.7 * expected).max()
    assert operator.spectral_radius(gamma, 0.7) == pytest.approx(radius, abs=1e-9)


# --- where the depth goes ---------------------------------------------------------------------------


@given(data=st.data(), context=contexts(), alpha=step_sizes)
@examples(80)
def test_the_fixed_point_is_certainty_equivalence_and_does_not_move(data, context, alpha) -> None:
    S, gamma = context.n_states, min(context.gamma, 0.99)
    scores = data.draw(score_matrices((S, S)))
    operator = ictd.empirical_operator(trajectory_of(context), scores)
    fixed = operator.fixed_point(gamma)
    expected = ictd.certainty_equivalence(trajectory_of(context), S, gamma)
    assert_close(fixed, expected, 1e-11, context.scale)
    assert not fixed[~operator.visited].any()
    moved = operator.values(gamma, 1, alpha, fixed)[-1]
    assert_close(moved, fixed, 1e-9, context.scale)


@given(seed=seeds, S=st.integers(2, 5), beta=st.sampled_from([1.0, 4.0, 9.0]))
@examples(40)
def test_depth_goes_to_certainty_equivalence_whatever_the_kernel(seed, S, beta) -> None:
    gamma = 0.8
    rng = np.random.default_rng(seed)
    chain = ictd.random_chain(S, gamma, rng)
    states = np.concatenate([np.arange(S), chain.sample(20, rng).states])
    trajectory = ictd.Trajectory(states, chain.reward[states[:-1]])
    # Any scores with a strong enough diagonal converge; symmetric or not.
    scores = rng.normal(size=(S, S)) + beta * np.eye(S)
    operator = ictd.empirical_operator(trajectory, scores)
    assume(operator.rate(gamma) < 0.97)
    start = rng.normal(size=S)
    deep = operator.values(gamma, 2000, 1.0, start)[-1]
    assert_close(deep, ictd.certainty_equivalence(trajectory, S, gamma), 1e-10)
    assert_close(operator.limit(gamma, start), deep, 1e-10)
    assert_close(operator.limit(gamma), deep, 1e-10)


@given(seed=seeds, hidden=st.integers(1, 3), ends_unvisited=st.booleans())
@examples(60)
def test_the_limit_is_where_deep_iterations_go_with_unvisited_states(
    seed: int, hidden: int, ends_unvisited: bool
) -> None:
    gamma, V = 0.7, 4
    rng = np.random.default_rng(seed)
    states = np.append(rng.permutation(np.arange(16) % V), V if ends_unvisited else 1)
    trajectory = ictd.Trajectory(states, rng.normal(size=16))
    x = ictd.sphere_features(V + hidden, 6, rng)
    operator = ictd.empirical_operator(trajectory, 4 * x @ x.T)
    assume(operator.rate(gamma) < 0.98)
    assert operator.rank == V
    start = rng.normal(size=V + hidden)
    for alpha in (1.0, 0.6):
        deep = iterates(operator, gamma, 4000, alpha, start)
        assert_close(operator.limit(gamma, start), deep, 1e-9)
    fixed = operator.fixed_point(gamma)
    if not ends_unvisited:
        assert_close(deep[:V], fixed[:V], 1e-9)
    else:
        # The value of the unvisited end is not that of the convention of fixed_point.
        assert np.abs(deep[:V] - fixed[:V]).max() > 1e-6


@given(seed=seeds, depth=st.integers(0, 7), ends_unvisited=st.booleans())
@examples(60)
def test_unvisited_states_are_interpolated_at_every_depth(seed, depth, ends_unvisited) -> None:
    rng = np.random.default_rng(seed)
    V, S = 4, 7
    states = np.append(rng.permutation(np.arange(12) % V), V if ends_unvisited else 1)
    x = ictd.sphere_features(S, 6, rng)
    g = x @ x.T
    operator = ictd.empirical_operator(ictd.Trajectory(states, rng.normal(size=12)), g)
    W = operator.interpolation_weights()
    start = rng.normal(size=S)
    change = operator.values(0.9, depth, 1.0, start)[-1] - start
    assert_close(W @ change, change, 1e-10, 1.0)
    # The formula in E and Z: v(u) − v₀(u) = E(u,V) E_VV⁻¹ [Z (v − v₀)]_V / Z(u).
    E, N = np.exp(g), np.bincount(states[:-1], minlength=S)
    Z = E @ N
    unvisited = E[V:, :V] @ np.linalg.inv(E[:V, :V]) * Z[:V] / Z[V:, None]
    assert_close(W[V:, :V], unvisited, 1e-9)
    assert_close(W[:V, :V], np.eye(V), 1e-10)
    assert not W[:, V:].any()


def test_an_end_that_is_never_left_may_diverge_for_every_step() -> None:
    angles = np.array([0, 0.4, 2.4])
    x = np.column_stack([np.cos(angles), np.sin(angles)])
    operator = ictd.empirical_operator(ictd.Trajectory([0, 1, 2], [1.0, -1.0]), x @ x.T)
    values = operator.values(0.9, 1000)
    np.testing.assert_allclose(values[[10, 100, 1000], 2], [-4.95, -200.5, -1.121e8], rtol=1e-3)
    assert operator.largest_step(0.9) == 0
    assert operator.rate(0.9) > 1
    growth = (values[1000, 2] / values[900, 2]) ** 0.01
    assert operator.rate(0.9) == pytest.approx(growth, rel=1e-3)
    limit = operator.limit(0.9)
    np.testing.assert_allclose(operator.values(0.9, 1, 1.0, limit)[-1], limit, rtol=1e-10)


@given(seed=seeds)
@examples(30)
def test_features_that_coincide_go_to_lstd_on_the_classes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes = np.array([0, 1, 1, 2, 2, 0])
    x = ictd.sphere_features(3, 5, rng)[classes]
    chain = ictd.random_chain(6, 0.8, rng)
    states = np.concatenate([rng.permutation(6), chain.sample(30, rng).states])
    trajectory = ictd.Trajectory(states, rng.normal(size=len(states) - 1))
    operator = ictd.empirical_operator(trajectory, 6 * x @ x.T)
    assert operator.rank == 3
    assume(operator.rate(0.8) < 0.97)
    indicator = np.eye(3)[classes]
    expected = ictd.lstd(trajectory, indicator, 0.8)
    assert_close(operator.limit(0.8), expected, 1e-9)
    assert_close(operator.values(0.8, 3000)[-1], expected, 1e-9)
    # From elsewhere, differences within a class stay.
    start = rng.normal(size=6)
    deep = operator.values(0.8, 3000, 1.0, start)[-1]
    assert_close(operator.limit(0.8, start), deep, 1e-9)
    assert_close((deep - start)[[0, 1, 3]], (deep - start)[[5, 2, 4]], 1e-9)


def test_visited_states_do_not_always_determine_the_others_without_a_gram_matrix() -> None:
    # Both visited queries look alike, the unvisited one tells the sources apart.
    scores = np.array([[0.0, 0, 0], [0, 0, 0], [3, 0, 0]])
    operator = ictd.empirical_operator(ictd.Trajectory([0, 1, 0, 1, 0], np.ones(4)), scores)
    W = operator.interpolation_weights()
    assert np.isnan(W[2]).all()
    assert np.isfinite(W[:2]).all()


def test_no_limit_where_the_moving_directions_have_none() -> None:
    """0 → 1 → end, with the weights (a, 1−a), (b, 1−b), (c, 1−c) on the sources 0 and 1.

    (I − γP̃)M has the determinant (1 − γ)(a − b − γ(b − c)): zero at γ = ½ for a = ¾, b = ½, c = 0.
    """
    scores = ictd.similarity_scores([[3, 1, 0], [1, 1, 0], [0, 1, 0]])
    one = ictd.Trajectory([0, 1, 2], [1.0, -1.0])
    operator = ictd.empirical_operator(one, scores)
    assert operator.rank == 2
    assert operator.rate(0.5) == pytest.approx(1, abs=1e-12)
    assert np.isnan(operator.limit(0.5)).all()
    steps = np.diff(operator.values(0.5, 200)[-3:], axis=0)
    assert np.abs(steps).min() > 0.01
    assert_close(steps[1], steps[0], 1e-9)
    # The other chains of a batch have their limits.
    both = ictd.empirical_operator(
        ictd.Trajectory([[0, 1, 2], [0, 1, 0]], [[1.0, -1.0]] * 2), scores
    )
    limits = both.limit(0.5)
    assert np.isnan(limits[0]).all()
    np.testing.assert_allclose(limits[1, :2], [1 / 1.5, -1 / 1.5])
    assert operator.largest_step(0.4) > 0
    assert operator.largest_step(0.6) == 0


def test_near_gamma_one() -> None:
    gamma = 1 - 1e-9
    operator = sphere_operator(3, 4, gamma, 60)
    fixed = operator.fixed_point(gamma)
    residual = fixed - operator.rewards - gamma * operator.transition @ fixed
    assert np.abs(residual).max() < 1e-6 * np.abs(fixed).max()
    assert_close(operator.limit(gamma), fixed, 1e-6)
    assert 1 - 1e-8 < operator.rate(gamma) < 1
    assert operator.rate(gamma) == pytest.approx(1 - 1e-9, abs=1e-12)


# --- batches ----------------------------------------------------------------------------------------

FIGURES = {
    "diagonality": (),
    "state_mean_diagonality": (),
    "visit_weighted_diagonality": (),
    "margin": (0.9,),
    "contraction": (0.9, 0.5),
    "bound": (0.9, 0.5),
    "spectral_radius": (0.9, 0.5),
    "rate": (0.9, 0.5),
    "largest_step": (0.9,),
    "fixed_point": (0.9,),
    "limit": (0.9,),
    "values": (0.9, 4, 0.5),
    "nu": (0.9,),
    "nu_bound": (0.9,),
    "nu_bound_of_normalisers": (0.9,),
    "theorem_a_rate": (0.9, 0.5),
    "interpolation_weights": (),
}


@given(seed=seeds, shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3))
@examples(40)
def test_leading_dimensions_broadcast_and_each_member_is_what_it_is_alone(seed, shapes) -> None:
    rng = np.random.default_rng(seed)
    batch, (of_chains, of_scores) = shapes.result_shape, shapes.input_shapes
    trajectory = ictd.boyan_chain(4, 0.9, rng, of_chains).sample(8, rng)
    x = ictd.sphere_features(4, 6, rng, of_scores)
    scores = ictd.inner_product_scores(x)
    together = ictd.empirical_operator(trajectory, scores)
    assert together.batch == batch
    for name in ("M", "P", "transition", "rewards", "visits", "scores", "rank"):
        assert getattr(together, name).shape[: len(batch)] == batch
    all_states = np.broadcast_to(trajectory.states, (*batch, 9))
    all_rewards = np.broadcast_to(trajectory.rewards, (*batch, 8))
    all_scores = np.broadcast_to(scores, (*batch, 4, 4))
    results = {name: getattr(together, name)(*args) for name, args in FIGURES.items()}
    for index in np.ndindex(*batch):
        alone = ictd.empirical_operator(
            ictd.Trajectory(all_states[index], all_rewards[index]), all_scores[index]
        )
        assert_close(together.M[index], alone.M, 1e-13)
        assert_close(together.P[index], alone.P, 1e-13)
        assert together.rank[index] == alone.rank
        for name, args in FIGURES.items():
            np.testing.assert_allclose(
                results[name][index],
                getattr(alone, name)(*args),
                rtol=1e-8,
                atol=1e-8,
                err_msg=name,
            )


def test_a_batch_of_chains_at_the_population() -> None:
    rng = np.random.default_rng(0)
    chains = ictd.boyan_chain(5, 0.9, rng, (2, 3))
    scores = ictd.inner_product_scores(ictd.sphere_features(5, 4, rng, (3,)))
    operator = ictd.population_operator(chains, scores)
    assert operator.batch == (2, 3)
    assert repr(operator) == "KernelOperator(n_states=5, batch=(2, 3))"
    assert_close(operator.limit(0.9), chains.value, 1e-8)
    assert_close(operator.fixed_point(0.9), chains.value, 1e-10)
    start = rng.normal(size=(2, 3, 5))
    assert operator.values(0.9, 7, initial=start).shape == (2, 3, 8, 5)


# --- errors -----------------------------------------------------------------------------------------

TRAJECTORY = ictd.Trajectory([0, 1, 0, 2], [1.0, 2.0, 3.0])
CHAIN = ictd.MarkovRewardProcess(CYCLE, [1, 2, 3], 0.9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TRAJECTORY, np.zeros((2, 2))), r"^trajectory\.states must be state indices in 0\.\.1"),
        (
            (TRAJECTORY, np.zeros((3, 3)), 4),
            r"^n_states must be 3, the size of scores \(3, 3\), got 4",
        ),
        ((TRAJECTORY, np.zeros((3, 3)), 3.0), r"^n_states must be an integer ≥ 1, got 3\.0"),
        ((TRAJECTORY, np.full((3, 3), np.nan)), r"^scores must be finite or −inf"),
        ((TRAJECTORY, np.zeros(3)), r"^scores must have shape \(\.\.\., S, S\)"),
        (([0, 1], np.zeros((3, 3))), r"^trajectory must be an ictd\.Trajectory, got list"),
        (
            (ictd.Counts.of(TRAJECTORY, 4), np.zeros((3, 3))),
            r"^trajectory must hold counts of 3 states, the size of scores \(3, 3\), got 4",
        ),
        (
            (ictd.Counts(np.zeros(3), np.zeros((3, 3)), np.zeros(3)), np.zeros((3, 3))),
            r"^trajectory must hold at least one transition in each context, got none",
        ),
        (
            (ictd.Trajectory([[0, 1], [1, 0]], [[1], [1]]), np.zeros((3, 2, 2))),
            r"^leading dimensions must broadcast, got scores \(3,\), context \(2,\)",
        ),
    ],
)
def test_wrong_arguments_of_the_empirical_operator(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.empirical_operator(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (TRAJECTORY, np.zeros((3, 3))),
            r"^mrp must be an ictd\.MarkovRewardProcess, got Trajectory",
        ),
        ((CHAIN, np.zeros((2, 2))), r"^scores must have shape \(\.\.\., 3, 3\), got \(2, 2\)"),
        ((CHAIN, np.zeros((3, 3)), [0.5, 0.5]), r"^law must have shape \(\.\.\., 3\), got \(2,\)"),
        ((CHAIN, np.zeros((3, 3)), [0.5, 0.6, 0]), r"^law must sum to 1"),
        ((CHAIN, np.zeros((3, 3)), 1.0), r"^law must have shape"),
    ],
)
def test_wrong_arguments_of_the_population_operator(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.population_operator(*arguments)


@pytest.mark.parametrize(
    "name",
    [name for name, arguments in FIGURES.items() if arguments] + ["eigenvalues"],
)
@pytest.mark.parametrize("gamma", [1.0, -0.1, float("nan"), True, "0.9", None])
def test_wrong_discount_factors_are_refused(name: str, gamma) -> None:
    operator = ictd.population_operator(CHAIN, np.eye(3))
    with pytest.raises(ValueError, match=r"^gamma must be .*\[0, 1\)"):
        getattr(operator, name)(gamma, *FIGURES.get(name, ())[1:])


@pytest.mark.parametrize(
    "name", ["contraction", "bound", "spectral_radius", "rate", "theorem_a_rate"]
)
@pytest.mark.parametrize("alpha", [float("inf"), float("nan"), True, "1", None, [1.0, 1.0]])
def test_wrong_step_sizes_are_refused(name: str, alpha) -> None:
    operator = ictd.population_operator(CHAIN, np.eye(3))
    with pytest.raises(ValueError, match=r"^step_size must be a finite number"):
        getattr(operator, name)(0.9, alpha)


def test_wrong_starts_and_depths_are_refused() -> None:
    operator = ictd.population_operator(CHAIN, np.eye(3))
    for call in (lambda v: operator.values(0.9, 2, 1.0, v), lambda v: operator.limit(0.9, v)):
        with pytest.raises(ValueError, match=r"^initial must have shape \(3,\), got \(2,\)"):
            call([1, 2])
        with pytest.raises(ValueError, match=r"^initial must be finite, got nan"):
            call([1, np.nan, 2])
    with pytest.raises(ValueError, match=r"^n_layers must be an integer ≥ 0, got -1"):
        operator.values(0.9, -1)
