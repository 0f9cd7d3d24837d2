"""Weighted softmax TD, its special cases and limits, linear TD and LSTD."""

from __future__ import annotations

import math

import numpy as np
import pytest
import strategies as literal
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from strategies import (
    assert_close,
    batches,
    contexts,
    examples,
    feature_tables,
    gammas,
    reward_arrays,
    score_matrices,
    seeds,
    state_sequences,
)

import ictd

step_sizes = st.sampled_from([0.0, 1.0, 0.5, -0.25, 1.5])


def trajectory_of(context: literal.Context) -> ictd.Trajectory:
    return ictd.Trajectory(context.states, context.rewards)


def value_arrays(shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, shape, elements=st.floats(-100, 100))


# --- the algorithm ----------------------------------------------------------------------------------


@given(data=st.data(), context=contexts())
@examples(100)
def test_weighted_softmax_td_is_the_double_sum_of_the_paper(data, context) -> None:
    S, T = context.n_states, context.depth
    scores = data.draw(score_matrices((S, S)))
    initial = data.draw(st.none() | value_arrays((S,)))
    alpha = data.draw(step_sizes)
    values = ictd.weighted_softmax_td(
        trajectory_of(context), scores, context.gamma, T, alpha, initial
    )
    assert values.dtype == np.float64
    expected = literal.weighted_softmax_td(
        context.states, context.rewards, scores, context.gamma, [alpha] * T, initial
    )
    assert_close(values, expected, 1e-10, scale=context.scale)


@pytest.mark.parametrize(
    "schedule",
    [
        [0.5, 1.0, -0.25, 2.0],
        (0.5, 1, -0.25, 2),
        np.array([0.5, 1.0, -0.25, 2.0], dtype=np.float32),
        lambda t: [0.5, 1.0, -0.25, 2.0][t],
    ],
    ids=["list", "tuple", "array", "function"],
)
def test_a_step_size_may_be_a_schedule(schedule) -> None:
    trajectory = ictd.Trajectory([0, 1, 1, 2, 0], [1.0, -2.0, 0.5, 3.0])
    scores, x = np.diag([1.0, 2.0, 3.0]), np.array([[1.0, 0.5], [0.0, 1.0], [-1.0, 1.0]])
    context = trajectory.states, trajectory.rewards
    alphas = [0.5, 1.0, -0.25, 2.0]
    weighted = ictd.weighted_softmax_td(trajectory, scores, 0.9, 4, schedule)
    assert_close(weighted, literal.weighted_softmax_td(*context, scores, 0.9, alphas), 1e-13)
    weights = ictd.linear_td_weights(trajectory, x, 0.9, 4, schedule)
    assert_close(weights, literal.linear_td_weights(*context, x, 0.9, alphas), 1e-13)
    assert_close(ictd.linear_td(trajectory, x, 0.9, 4, schedule), weights @ x.T, 1e-13)
    tabular = ictd.tabular_td(trajectory, 3, 0.9, 4, schedule)
    exact_match = np.where(np.eye(3) > 0, 0.0, -np.inf)
    assert_close(tabular, literal.weighted_softmax_td(*context, exact_match, 0.9, alphas), 1e-13)


@pytest.mark.parametrize("number", [0.5, np.float32(0.5), np.array(0.5), np.float64(0.5)])
def test_a_step_size_may_be_any_kind_of_number(number) -> None:
    trajectory = ictd.Trajectory([0, 1, 0], [1.0, 2.0])
    values = ictd.weighted_softmax_td(trajectory, np.zeros((2, 2)), 0.0, 3, number)
    np.testing.assert_allclose(values[:, 0], 1.5 * (1 - 0.5 ** np.arange(4)))


def test_without_steps_the_start_comes_back() -> None:
    trajectory = ictd.Trajectory([0, 1, 0], [1.0, 2.0])
    start = [3.0, 4.0]
    for values in (
        ictd.weighted_softmax_td(trajectory, np.zeros((2, 2)), 0.9, 0, initial=start),
        ictd.tabular_td(trajectory, 2, 0.9, 0, initial=start),
        ictd.linear_td_weights(trajectory, np.eye(2), 0.9, 0, initial=start),
        ictd.linear_td(trajectory, np.eye(2), 0.9, 0, initial=start),
        ictd.weighted_softmax_td(trajectory, np.zeros((2, 2)), 0.9, 0, lambda t: 1 / 0, start),
        ictd.weighted_softmax_td(trajectory, np.zeros((2, 2)), 0.9, 0, [], start),
    ):
        np.testing.assert_array_equal(values, [start])


@given(data=st.data(), S=st.integers(1, 5), n=st.integers(1, 8), batch=batches, gamma=gammas)
@examples(60)
def test_a_batch_gives_what_its_members_give(data, S: int, n: int, batch, gamma: float) -> None:
    one_trajectory, one_score, one_start = (data.draw(st.booleans()) for _ in range(3))
    if one_trajectory and one_score:
        one_score = False
    states = data.draw(state_sequences(S, n, () if one_trajectory else batch))
    rewards = data.draw(reward_arrays((*states.shape[:-1], n)))
    scores = data.draw(score_matrices((*(() if one_score else batch), S, S)))
    x = data.draw(feature_tables((*(() if one_score else batch), S, 2))) / 100
    start = data.draw(value_arrays((*(() if one_start else batch), S)))
    start_weights = data.draw(value_arrays((*(() if one_start else batch), 2)))
    trajectory = ictd.Trajectory(states, rewards)
    together = {
        "weighted": ictd.weighted_softmax_td(trajectory, scores, gamma, 3, 0.5, start),
        "linear weights": ictd.linear_td_weights(trajectory, x, gamma, 3, 0.5, start_weights),
        "linear": ictd.linear_td(trajectory, x, gamma, 3, 0.5, start_weights),
    }
    assert together["weighted"].shape == (*batch, 4, S)
    assert together["linear weights"].shape == (*batch, 4, 2)

    def member(array: np.ndarray, index: tuple[int, ...], core: int) -> np.ndarray:
        return array if array.ndim == core else array[index]

    for index in np.ndindex(*batch):
        one = ictd.Trajectory(member(states, index, 1), member(rewards, index, 1))
        w = member(start_weights, index, 1)
        alone = {
            "weighted": ictd.weighted_softmax_td(
                one, member(scores, index, 2), gamma, 3, 0.5, member(start, index, 1)
            ),
            "linear weights": ictd.linear_td_weights(one, member(x, index, 2), gamma, 3, 0.5, w),
            "linear": ictd.linear_td(one, member(x, index, 2), gamma, 3, 0.5, w),
        }
        for name, values in alone.items():
            assert_close(together[name][index], values, 1e-12, scale=np.abs(rewards).max())


@given(seed=seeds, batch=batches)
@examples(20)
def test_tabular_td_and_lstd_of_a_batch(seed: int, batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    trajectory = ictd.random_chain(3, 0.9, rng, batch).sample(40, rng)
    x = ictd.sphere_features(3, 2, rng, batch)
    tabular = ictd.tabular_td(trajectory, 3, 0.9, 5, 0.5)
    least_squares = ictd.lstd(trajectory, x, 0.9)
    shared = ictd.lstd(trajectory, np.eye(3), 0.9)
    assert tabular.shape == (*batch, 6, 3)
    assert least_squares.shape == shared.shape == (*batch, 3)
    for index in np.ndindex(*batch):
        one = ictd.Trajectory(trajectory.states[index], trajectory.rewards[index])
        assert_close(tabular[index], ictd.tabular_td(one, 3, 0.9, 5, 0.5), 1e-12)
        assert_close(least_squares[index], ictd.lstd(one, x[index], 0.9), 1e-9)
        assert_close(shared[index], ictd.lstd(one, np.eye(3), 0.9), 1e-9)


@pytest.mark.parametrize("top", [1e4, -1e4])
def test_scores_of_ten_thousand_give_finite_and_right_values(top: float) -> None:
    # State 2 is the query that no transition leaves; its scores must not drown the others.
    states, rewards = np.array([0, 1, 0, 0, 2]), np.array([1.0, -2.0, 3.0, 0.25])
    scores = np.array([[top, top - 1, 2e4], [-top, top, 2e4], [top, top + 0.5, -2e4]])
    values = ictd.weighted_softmax_td(ictd.Trajectory(states, rewards), scores, 0.9, 6)
    expected = literal.weighted_softmax_td(states, rewards, scores, 0.9, [1.0] * 6)
    assert np.isfinite(values).all()
    assert_close(values, expected, 1e-12)
    # By hand: state 0 weighs its three visits with 1 and the visit of state 1 with 1/e.
    first = (1.0 + 3.0 + 0.25 - 2.0 / math.e) / (3 + 1 / math.e)
    assert values[1, 0] == pytest.approx(first, rel=1e-12)


def test_one_update_by_hand() -> None:
    # S = 0, 1, 0, 2 with R = 1, 2, 3 and g(s, t) = log(1 + s + t): weights 1:2:1, 2:3:2, 3:4:3.
    trajectory = ictd.Trajectory([0, 1, 0, 2], [1.0, 2.0, 3.0])
    scores = np.log([[1, 2, 3], [2, 3, 4], [3, 4, 5]])
    start = [1.0, -1.0, 2.0]
    # δ = 1 + ½·(−1) − 1, 2 + ½·1 + 1, 3 + ½·2 − 1
    delta = np.array([-0.5, 3.5, 3.0])
    K = np.array([[1, 2, 1], [2, 3, 2], [3, 4, 3]]) / [[4], [7], [10]]
    values = ictd.weighted_softmax_td(trajectory, scores, 0.5, 1, 0.1, start)
    np.testing.assert_allclose(values, [start, start + 0.1 * K @ delta], rtol=1e-14)


# --- special cases ----------------------------------------------------------------------------------


@given(context=contexts(), data=st.data())
@examples(60)
def test_tabular_td_moves_each_state_by_the_mean_td_error_of_its_visits(context, data) -> None:
    S, states = context.n_states, context.states
    initial, alpha = data.draw(value_arrays((S,))), data.draw(step_sizes)
    trajectory = trajectory_of(context)
    values = ictd.tabular_td(trajectory, S, context.gamma, context.depth, alpha, initial)
    v = initial.copy()
    for t in range(context.depth + 1):
        assert_close(values[t], v, 1e-10, scale=max(context.scale, np.abs(values).max()))
        delta = np.array(literal.td_errors(states, context.rewards, v, context.gamma))
        # A state that is never a source has no mean: it does not move.
        v = np.array(
            [
                v[s] + alpha * delta[states[:-1] == s].mean() if s in states[:-1] else v[s]
                for s in range(S)
            ]
        )
    kernel = ictd.similarity_scores(np.eye(S))
    weighted = ictd.weighted_softmax_td(
        trajectory, kernel, context.gamma, context.depth, alpha, initial
    )
    np.testing.assert_array_equal(values, weighted)
    unvisited = np.setdiff1d(np.arange(S), states[:-1])
    assert (values[:, unvisited] == initial[unvisited]).all()


def empirical_chain(context: literal.Context) -> tuple[np.ndarray, np.ndarray]:
    """P̃ and the mean reward on leaving a state; every state has to be a source."""
    S = context.n_states
    P, r = np.zeros((S, S)), np.zeros(S)
    for s in range(S):
        visits = [k for k in range(context.n) if context.states[k] == s]
        for k in visits:
            P[s, context.states[k + 1]] += 1 / len(visits)
            r[s] += context.rewards[k] / len(visits)
    return P, r


@given(context=contexts(covering=True))
@examples(40)
def test_tabular_td_with_step_size_one_is_value_iteration_on_the_empirical_chain(context) -> None:
    P, r = empirical_chain(context)
    values = ictd.tabular_td(trajectory_of(context), context.n_states, context.gamma, 8)
    v = np.zeros(context.n_states)
    for iterate in values:
        assert_close(iterate, v, 1e-11, scale=10 * context.scale)
        v = r + context.gamma * P @ v


@given(data=st.data(), context=contexts(), sharpness=st.sampled_from([0.5, 1.0, 4.0]))
@examples(60)
def test_a_linear_kernel_with_a_constant_factor_is_linear_td(data, context, sharpness) -> None:
    # Features [1, ψ] with |ψ| ≤ 1 and mean zero over the sources, times √c: κ ≥ 0 and c(s) = c.
    psi = context.features - context.features[context.states[:-1]].mean(0)
    norm = np.linalg.norm(psi, axis=-1).max()
    assume(norm > 0)
    phi = np.column_stack([np.ones(context.n_states), psi / norm]) * math.sqrt(sharpness)
    kappa = phi @ phi.T
    kappa = np.where(kappa < 1e-14, 0.0, kappa)
    c = kappa[:, context.states[:-1]].mean(1)
    np.testing.assert_allclose(c, sharpness, rtol=1e-12)

    w0 = data.draw(value_arrays((phi.shape[1],)))
    alpha = data.draw(step_sizes)
    trajectory, gamma, T = trajectory_of(context), context.gamma, context.depth
    weighted = ictd.weighted_softmax_td(
        trajectory, ictd.similarity_scores(kappa), gamma, T, alpha, phi @ w0
    )
    linear = ictd.linear_td(trajectory, phi, gamma, T, alpha / sharpness, w0)
    assert_close(weighted, linear, 1e-9, scale=context.scale + np.abs(w0).max())


@given(context=contexts(), data=st.data())
@examples(60)
def test_a_linear_kernel_in_general_is_linear_td_with_values_divided_by_the_factor(
    context, data
) -> None:
    S, n = context.n_states, context.n
    weights = arrays(np.int64, (S, context.d), elements=st.integers(1, 16))
    phi = data.draw(weights) / 16
    alpha, gamma = data.draw(step_sizes), context.gamma
    kappa = literal.inner_products(phi)
    c = [sum(kappa[s, context.states[m]] for m in range(n)) / n for s in range(S)]
    w = np.zeros(context.d)
    values = ictd.weighted_softmax_td(
        trajectory_of(context), np.log(kappa), gamma, context.depth, alpha
    )
    for iterate in values:
        v = [phi[s] @ w / c[s] for s in range(S)]
        assert_close(iterate, v, 1e-9, scale=context.scale + np.abs(values).max())
        delta = literal.td_errors(context.states, context.rewards, v, gamma)
        w = w + alpha / n * sum(delta[k] * phi[context.states[k]] for k in range(n))


def test_a_linear_kernel_whose_factor_is_not_constant_is_not_linear_td() -> None:
    trajectory = ictd.Trajectory([0, 1, 0, 1, 1, 0], [1.0, 0.0, 1.0, 0.0, 0.0])
    phi = np.array([[1.0], [2.0]])
    kappa = phi @ phi.T
    c = kappa[:, trajectory.states[:-1]].mean(1)
    assert c[1] == 2 * c[0]
    weighted = ictd.weighted_softmax_td(trajectory, np.log(kappa), 0.9, 5)
    # One feature: linear TD keeps v(1) = 2 v(0), the normalised kernel moves both by the same.
    np.testing.assert_allclose(weighted[:, 0], weighted[:, 1], rtol=1e-12)
    for step in (1 / c[0], 1 / c[1], 1 / c.mean()):
        linear = ictd.linear_td(trajectory, phi, 0.9, 5, step)
        assert np.abs(linear[1:] - weighted[1:]).max(-1).min() > 0.05


@given(context=contexts())
@examples(40)
def test_a_flat_kernel_moves_all_states_by_the_same_mean_td_error(context) -> None:
    trajectory, gamma = trajectory_of(context), context.gamma
    x = context.features / 100
    flat = ictd.weighted_softmax_td(
        trajectory, ictd.inner_product_scores(x, 0.0), gamma, context.depth
    )
    v = np.zeros(context.n_states)
    for iterate in flat:
        assert_close(iterate, v, 1e-10, scale=context.scale)
        v = v + np.mean(literal.td_errors(context.states, context.rewards, v, gamma))
    nearly = ictd.weighted_softmax_td(
        trajectory, ictd.inner_product_scores(x, 1e-9), gamma, context.depth
    )
    assert_close(nearly, flat, 1e-5, scale=context.scale)


@given(context=contexts())
@examples(60)
def test_an_infinitely_sharp_kernel_takes_the_sources_of_largest_inner_product(context) -> None:
    S, sources = context.n_states, context.states[:-1]
    trajectory, gamma = trajectory_of(context), context.gamma
    # Different inner products are 2^-12 apart at least, so at β = 1e8 all but the largest weigh 0.
    sharp = ictd.weighted_softmax_td(
        trajectory, ictd.inner_product_scores(context.features, 1e8), gamma, context.depth
    )
    g = literal.inner_products(context.features)
    tied = [[k for k, t in enumerate(sources) if g[s, t] == g[s, sources].max()] for s in range(S)]
    v = np.zeros(S)
    for iterate in sharp:
        assert_close(iterate, v, 1e-10, scale=context.scale)
        delta = literal.td_errors(context.states, context.rewards, v, gamma)
        v = np.array([v[s] + np.mean([delta[k] for k in tied[s]]) for s in range(S)])


@given(seed=seeds, gamma=gammas)
@examples(40)
def test_an_infinitely_sharp_kernel_of_equal_norms_is_tabular(seed: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    x, n = ictd.sphere_features(6, 4, rng), 30
    scores = ictd.inner_product_scores(x, 1e12)
    states, rewards = rng.permutation(np.arange(n + 1) % 6), rng.normal(size=n)
    trajectory = ictd.Trajectory(states, rewards)
    assume(set(states[:-1]) == set(range(6)))
    sharp = ictd.weighted_softmax_td(trajectory, scores, gamma, 8)
    assert_close(sharp, ictd.tabular_td(trajectory, 6, gamma, 8), 1e-10)
    # A state without visits takes the TD errors of its nearest neighbour.
    hidden = ictd.Trajectory(np.append(states[:-1] % 5, 5), rewards)
    values = ictd.weighted_softmax_td(hidden, scores, gamma, 8)
    nearest = int(np.argmin(np.linalg.norm(x[:5] - x[5], axis=-1)))
    assert_close(values[:, 5], values[:, nearest], 1e-12)


def test_unequal_norms_spoil_the_limit() -> None:
    # State 1 is the hard maximum of every query, its own included: nothing tabular about state 0.
    trajectory = ictd.Trajectory([0, 1, 0, 1], [1.0, 5.0, 1.0])
    scores = ictd.inner_product_scores([[1.0, 0.0], [3.0, 0.0]], 1e6)
    np.testing.assert_allclose(ictd.weighted_softmax_td(trajectory, scores, 0.0, 1)[1], [5.0, 5.0])
    np.testing.assert_allclose(ictd.tabular_td(trajectory, 2, 0.0, 1)[1], [1.0, 5.0])


def test_an_unvisited_query_may_diverge_where_the_visited_states_converge() -> None:
    angles = np.array([0, 0.4, 2.4])
    x = np.column_stack([np.cos(angles), np.sin(angles)])
    trajectory = ictd.Trajectory([0, 1, 2], [1.0, -1.0])
    values = ictd.weighted_softmax_td(trajectory, x @ x.T, 0.9, 1000)
    np.testing.assert_allclose(values[[10, 100, 1000], 2], [-4.95, -200.5, -1.121e8], rtol=1e-3)


# --- invariances ------------------------------------------------------------------------------------


@given(data=st.data(), context=contexts())
@examples(60)
def test_invariances(data, context) -> None:
    S, gamma, T = context.n_states, context.gamma, context.depth
    states, rewards = context.states, context.rewards
    scores = data.draw(score_matrices((S, S)))
    values = ictd.weighted_softmax_td(ictd.Trajectory(states, rewards), scores, gamma, T)

    constant = data.draw(arrays(np.int64, (S, 1), elements=st.integers(-(10**4), 10**4)))
    same = ictd.weighted_softmax_td(trajectory_of(context), scores + constant, gamma, T)
    assert_close(same, values, 1e-11, scale=context.scale)

    # State s is now called label[s].
    label = np.array(data.draw(st.permutations(range(S))))
    named = np.empty_like(scores)
    named[np.ix_(label, label)] = scores
    renamed = ictd.weighted_softmax_td(ictd.Trajectory(label[states], rewards), named, gamma, T)
    assert_close(renamed[:, label], values, 1e-10, scale=context.scale)

    # Powers of two scale without rounding.
    scaled = ictd.weighted_softmax_td(ictd.Trajectory(states, -4 * rewards), scores, gamma, T)
    assert_close(scaled, -4 * values, 1e-14, scale=context.scale)

    # 1 − γ more in every reward and 1 more in every start value is 1 more in every value.
    moved = ictd.weighted_softmax_td(
        ictd.Trajectory(states, rewards + (1 - gamma)), scores, gamma, T, 1.0, np.ones(S)
    )
    assert_close(moved, values + 1, 1e-10, scale=context.scale + 1)


@given(data=st.data(), context=contexts(covering=True))
@examples(40)
def test_the_values_of_the_empirical_chain_do_not_move_under_any_kernel(data, context) -> None:
    P, r = empirical_chain(context)
    S, gamma = context.n_states, context.gamma
    v = np.linalg.solve(np.eye(S) - gamma * P, r)
    scores = data.draw(score_matrices((S, S)))
    values = ictd.weighted_softmax_td(trajectory_of(context), scores, gamma, 3, 0.5, v)
    assert_close(values, np.broadcast_to(v, (4, S)), 1e-11)


# --- linear TD and LSTD -----------------------------------------------------------------------------


@given(data=st.data(), context=contexts())
@examples(100)
def test_linear_td_is_the_sum_over_the_context(data, context) -> None:
    x = context.features / max(1.0, np.abs(context.features).max())
    initial = data.draw(st.none() | value_arrays((context.d,)))
    alpha = data.draw(step_sizes)
    arguments = (trajectory_of(context), x, context.gamma, context.depth, alpha, initial)
    expected = literal.linear_td_weights(
        context.states, context.rewards, x, context.gamma, [alpha] * context.depth, initial
    )
    assert_close(ictd.linear_td_weights(*arguments), expected, 1e-10, scale=context.scale)
    values = [[x[s] @ w for s in range(context.n_states)] for w in expected]
    assert_close(ictd.linear_td(*arguments), values, 1e-10, scale=context.scale)


def linear_td_direction(
    trajectory: ictd.Trajectory, x: np.ndarray, values: np.ndarray, gamma: float
) -> np.ndarray:
    """(1/n) Σ_k δ_k x(S_{k−1})."""
    delta = literal.td_errors(trajectory.states, trajectory.rewards, values, gamma)
    return sum(d * x[s] for d, s in zip(delta, trajectory.states, strict=False)) / trajectory.n


@given(seed=seeds, gamma=gammas, S=st.integers(2, 8), d=st.integers(1, 4))
@examples(60)
def test_linear_td_does_not_move_from_lstd(seed: int, gamma: float, S: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    x = ictd.uniform_features(S, d, rng)
    trajectory = ictd.random_chain(S, gamma, rng).sample(60, rng)
    source, following = x[trajectory.states[:-1]], x[trajectory.states[1:]]
    system = source.T @ (source - gamma * following)
    assume(np.linalg.cond(system) < 1e5)
    values = ictd.lstd(trajectory, x, gamma)
    direction = linear_td_direction(trajectory, x, values, gamma)
    assert np.abs(direction).max() < 1e-9 * (1 + np.abs(values).max())
    w = np.linalg.solve(system, source.T @ trajectory.rewards)
    assert_close(values, x @ w, 1e-8)
    stays = ictd.linear_td(trajectory, x, gamma, 3, 1.0, w)
    assert_close(stays, np.broadcast_to(x @ w, (4, S)), 1e-8)


@given(context=contexts(covering=True))
@examples(60)
def test_lstd_on_one_hot_features_is_the_value_of_the_empirical_chain(context) -> None:
    P, r = empirical_chain(context)
    S = context.n_states
    v = np.linalg.solve(np.eye(S) - context.gamma * P, r)
    values = ictd.lstd(trajectory_of(context), np.eye(S), context.gamma)
    assert_close(values, v, 1e-9)


@given(context=contexts())
@examples(60)
def test_certainty_equivalence_is_where_tabular_td_from_zero_ends(context) -> None:
    trajectory, gamma = trajectory_of(context), min(context.gamma, 0.9)
    values = ictd.certainty_equivalence(trajectory, context.n_states, gamma)
    ended = ictd.tabular_td(trajectory, context.n_states, gamma, 400)[-1]
    assert_close(values, ended, 1e-9 * max(1.0, abs(ended).max()))
    sources = {int(state) for state in trajectory.states[:-1]}
    for state in range(context.n_states):
        if state not in sources:
            assert values[state] == 0


def test_certainty_equivalence_of_a_batch_and_of_an_unvisited_last_state() -> None:
    # A → B with reward 1: B has no transition, so its value is 0 and that of A is 1.
    assert_close(
        ictd.certainty_equivalence(ictd.Trajectory([0, 1], [1.0]), 2, 0.9), [1.0, 0.0], 1e-15
    )
    both = ictd.Trajectory([[0, 1, 0], [1, 1, 0]], [[1.0, 2.0], [3.0, 4.0]])
    values = ictd.certainty_equivalence(both, 2, 0.5)
    for index in range(2):
        one = ictd.Trajectory(both.states[index], both.rewards[index])
        assert_close(values[index], ictd.certainty_equivalence(one, 2, 0.5), 1e-15)
    with pytest.raises(ValueError, match="gamma must be in"):
        ictd.certainty_equivalence(both, 2, 1.0)
    with pytest.raises(ValueError, match=r"0\.\.0"):
        ictd.certainty_equivalence(both, 1, 0.5)


def test_tabular_td_goes_to_lstd() -> None:
    rng = np.random.default_rng(0)
    trajectory = ictd.loop_chain(4, 0.9, rng).sample(60, rng)
    assert set(trajectory.states[:-1]) == {0, 1, 2, 3}
    tabular = ictd.tabular_td(trajectory, 4, 0.9, 400)[-1]
    assert_close(tabular, ictd.lstd(trajectory, np.eye(4), 0.9), 1e-12)
    kernel = ictd.weighted_softmax_td(trajectory, 4 * np.eye(4), 0.9, 4000)[-1]
    assert_close(kernel, tabular, 1e-12)


def test_lstd_takes_the_shortest_weights_where_the_context_shows_too_little() -> None:
    # Two features that never differ: the weight is shared out evenly.
    x = np.array([[1.0, 1.0], [2.0, 2.0], [1.0, -1.0]])
    trajectory = ictd.Trajectory([0, 1, 0, 1], [1.0, -1.0, 0.5])
    single = ictd.lstd(trajectory, x[:, :1], 0.9)
    values = ictd.lstd(trajectory, x, 0.9)
    np.testing.assert_allclose(values[:2], single[:2], rtol=1e-10)
    assert values[2] == pytest.approx(0, abs=1e-10)
    assert np.abs(linear_td_direction(trajectory, x, values, 0.9)).max() < 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_long_contexts_bring_lstd_to_the_true_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = ictd.boyan_chain(6, 0.8, rng)
    errors = [
        np.abs(ictd.lstd(chain.sample(n, rng), np.eye(6), 0.8) - chain.value).max()
        for n in (300, 300_000)
    ]
    assert errors[1] < 0.02
    assert errors[1] < errors[0]


# --- errors -----------------------------------------------------------------------------------------

TRAJECTORY = ictd.Trajectory([0, 1, 0], [1.0, 2.0])
BATCH = ictd.Trajectory([[0, 1, 0]] * 2, [[1.0, 2.0]] * 2)

METHODS = {
    "weighted": (ictd.weighted_softmax_td, {"scores": np.zeros((2, 2))}),
    "tabular": (ictd.tabular_td, {"n_states": 2}),
    "linear": (ictd.linear_td, {"features": np.eye(2)}),
    "linear weights": (ictd.linear_td_weights, {"features": np.eye(2)}),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trajectory": ([0, 1], [1.0])}, r"^trajectory must be an ictd\.Trajectory, got tuple"),
        (
            {"trajectory": ictd.Trajectory([0, 5], [1.0])},
            r"^trajectory\.states must be state indices in 0\.\.1 \(2 states\), got 5",
        ),
        ({"gamma": 1.0}, r"^gamma must be in \[0, 1\), got 1\.0"),
        ({"gamma": -0.5}, r"^gamma must be in \[0, 1\), got -0\.5"),
        ({"gamma": float("nan")}, r"^gamma must be in \[0, 1\), got nan"),
        ({"gamma": True}, r"^gamma must be a number in \[0, 1\), got True"),
        ({"gamma": "0.9"}, r"^gamma must be a number in \[0, 1\), got '0\.9'"),
        ({"n_steps": -1}, r"^n_steps must be an integer ≥ 0, got -1"),
        ({"n_steps": 2.0}, r"^n_steps must be an integer ≥ 0, got 2\.0"),
        ({"n_steps": True}, r"^n_steps must be an integer ≥ 0, got True"),
        ({"n_steps": None}, r"^n_steps must be an integer ≥ 0, got None"),
        ({"step_size": float("nan")}, r"^step_size must be finite, got nan"),
        ({"step_size": [1.0, float("inf"), 0.0]}, r"^step_size must be finite, got inf at index 1"),
        ({"step_size": [1.0, 1.0]}, r"^step_size must be .* n_steps = 3 numbers, got shape \(2,\)"),
        ({"step_size": lambda t: [1, 2]}, r"^step_size must be a number .* got shape \(3, 2\)"),
        ({"step_size": lambda t: -math.inf}, r"^step_size must be finite, got -inf at index 0"),
        ({"step_size": "1"}, r"^step_size must be an array of real numbers, got dtype <U1"),
        ({"step_size": True}, r"^step_size must be an array of real numbers, got dtype bool"),
        ({"initial": [0.0]}, r"^initial must have shape \(2,\), got \(1,\)"),
        ({"initial": [[0.0, 1.0]]}, r"^initial must have shape \(2,\), got \(1, 2\)"),
        ({"initial": 0.0}, r"^initial must have shape \(2,\), got \(\)"),
        ({"initial": [0.0, math.nan]}, r"^initial must be finite, got nan at index 1"),
        (
            {"trajectory": BATCH, "initial": np.zeros((3, 2))},
            r"^initial must have shape \(2,\) or \(2, 2\), got \(3, 2\)",
        ),
    ],
)
def test_wrong_arguments_are_refused(method: str, wrong: dict, message: str) -> None:
    function, own = METHODS[method]
    good = {"trajectory": TRAJECTORY, "gamma": 0.9, "n_steps": 3, **own}
    with pytest.raises(ValueError, match=message):
        function(**{**good, **wrong})


def test_batches_that_do_not_match_are_refused() -> None:
    message = r"^leading dimensions must broadcast, got {} \(3,\), trajectory \(2,\)"
    with pytest.raises(ValueError, match=message.format("scores")):
        ictd.weighted_softmax_td(BATCH, np.zeros((3, 2, 2)), 0.9, 1)
    for method in (ictd.linear_td, ictd.linear_td_weights):
        with pytest.raises(ValueError, match=message.format("features")):
            method(BATCH, np.zeros((3, 2, 2)), 0.9, 1)
    with pytest.raises(ValueError, match=message.format("features")):
        ictd.lstd(BATCH, np.zeros((3, 2, 2)), 0.9)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.zeros(2), r"^features must have shape \(\.\.\., S, d\), not empty, got \(2,\)"),
        (np.zeros((2, 0)), r"^features must have shape .* got \(2, 0\)"),
        ([[1.0], [math.nan]], r"^features must be finite, got nan at index \(1, 0\)"),
        ([["a"], ["b"]], r"^features must be an array of real numbers, got dtype <U1"),
        ([[1.0]], r"^trajectory\.states must be state indices in 0\.\.0 \(1 states\), got 1"),
    ],
)
def test_wrong_features_are_refused(features, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.linear_td(TRAJECTORY, features, 0.9, 1)
    with pytest.raises(ValueError, match=message):
        ictd.linear_td_weights(TRAJECTORY, features, 0.9, 1)
    with pytest.raises(ValueError, match=message):
        ictd.lstd(TRAJECTORY, features, 0.9)


def test_wrong_arguments_of_lstd_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^gamma must be in \[0, 1\), got 1\.0"):
        ictd.lstd(TRAJECTORY, np.eye(2), 1.0)
    with pytest.raises(ValueError, match=r"^trajectory must be an ictd\.Trajectory, got tuple"):
        ictd.lstd(([0, 1], [1.0]), np.eye(2), 0.9)


def test_wrong_numbers_of_states_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^n_states must be an integer ≥ 1, got 0"):
        ictd.tabular_td(TRAJECTORY, 0, 0.9, 1)
    with pytest.raises(ValueError, match=r"^n_states must be an integer ≥ 1, got 2\.0"):
        ictd.tabular_td(TRAJECTORY, 2.0, 0.9, 1)


@pytest.mark.parametrize(("S", "width"), [(10, 0.3), (20, 0.1)])
def test_lstd_keeps_its_digits_on_nearly_dependent_features(S: int, width: float) -> None:
    rng = np.random.default_rng(S)
    trajectory = ictd.random_chain(S, 0.9, rng).sample(5000, rng)
    x = ictd.radial_basis_features(S, S, width)
    assert np.linalg.cond(x) > 1e6
    values = ictd.certainty_equivalence(trajectory, S, 0.9)
    assert_close(ictd.lstd(trajectory, x, 0.9), values, 1e-10)
    # Nor do the units of a feature matter.
    x[:, 0] *= 1e-6
    x[:, 1] *= 1e7
    assert_close(ictd.lstd(trajectory, x, 0.9), values, 1e-10)


def test_tensors_that_numpy_cannot_read_are_refused() -> None:
    torch = pytest.importorskip("torch")
    scores = torch.zeros(2, 2, requires_grad=True)
    with pytest.raises(ValueError, match=r"^scores must be an array of numbers"):
        ictd.weighted_softmax_td(ictd.Trajectory([0, 1], [1.0]), scores, 0.9, 1)
