"""Scores and the softmax kernels made of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from strategies import (
    assert_close,
    examples,
    feature_tables,
    inner_products,
    no_batch_or_batches,
    score_matrices,
    softmax,
)

import ictd

sizes = st.integers(1, 6)


@given(data=st.data(), S=sizes, d=sizes, batch=no_batch_or_batches)
@examples(30)
def test_inner_product_scores(data, S: int, d: int, batch: tuple[int, ...]) -> None:
    x = data.draw(feature_tables((*batch, S, d)))
    beta = data.draw(st.sampled_from([0.0, 1.0, -2.5, 1e4]))
    scores = ictd.inner_product_scores(x, beta)
    assert scores.shape == (*batch, S, S)
    for index in np.ndindex(*batch):
        assert_close(scores[index], beta * inner_products(x[index]), 1e-14)
    np.testing.assert_array_equal(ictd.inner_product_scores(x), ictd.inner_product_scores(x, 1))


@given(data=st.data(), S=sizes, n=st.integers(1, 12), batch=no_batch_or_batches)
@examples(60)
def test_the_kernel_is_the_softmax_over_the_positions_of_the_context(
    data, S: int, n: int, batch: tuple[int, ...]
) -> None:
    scores = data.draw(score_matrices((S, S)))
    sources = data.draw(arrays(np.int64, (*batch, n), elements=st.integers(0, S - 1)))
    K = ictd.softmax_kernel(scores, sources)
    assert K.shape == (*batch, n, S)
    for index in np.ndindex(*batch):
        for query in range(S):
            column = softmax([scores[query, source] for source in sources[index]])
            np.testing.assert_allclose(K[index][:, query], column, rtol=1e-12, atol=1e-300)
            attends = any(scores[query, source] > -np.inf for source in sources[index])
            assert K[index][:, query].sum() == pytest.approx(1.0 if attends else 0.0, abs=1e-12)


@given(data=st.data(), S=sizes, n=st.integers(1, 12), batch=no_batch_or_batches)
@examples(60)
def test_visit_weights_are_the_kernel_read_by_states(
    data, S: int, n: int, batch: tuple[int, ...]
) -> None:
    scores = data.draw(score_matrices((*batch, S, S)))
    sources = data.draw(arrays(np.int64, (n,), elements=st.integers(0, S - 1)))
    visits = np.bincount(sources, minlength=S)
    weights = ictd.visit_weights(scores, visits)
    assert weights.shape == (*batch, S, S)
    for index in np.ndindex(*batch):
        for query in range(S):
            column = softmax([scores[index][query, source] for source in sources])
            expected = np.zeros(S)
            expected[sources] = column
            np.testing.assert_allclose(weights[index][query], expected, rtol=1e-12, atol=1e-300)
    np.testing.assert_array_equal(weights[..., visits == 0], 0)


def test_each_dimension_of_the_batch_of_scores_meets_its_own_context() -> None:
    scores = np.random.default_rng(0).normal(size=(2, 1, 3, 3))
    sources = np.array([[0, 1, 1], [2, 2, 0], [1, 1, 1]])
    K = ictd.softmax_kernel(scores, sources)
    assert K.shape == (2, 3, 3, 3)
    for a in range(2):
        for b in range(3):
            np.testing.assert_array_equal(K[a, b], ictd.softmax_kernel(scores[a, 0], sources[b]))


@given(data=st.data(), S=sizes, n=st.integers(1, 12))
@examples(40)
def test_a_constant_added_to_the_scores_of_a_query_changes_nothing(data, S: int, n: int) -> None:
    scores = data.draw(score_matrices((S, S)))
    sources = data.draw(arrays(np.int64, (n,), elements=st.integers(0, S - 1)))
    constant = data.draw(arrays(np.int64, (S, 1), elements=st.integers(-(10**4), 10**4)))
    expected = ictd.softmax_kernel(scores, sources)
    np.testing.assert_allclose(
        ictd.softmax_kernel(scores + constant, sources), expected, rtol=1e-12
    )
    visits = np.bincount(sources, minlength=S)
    np.testing.assert_allclose(
        ictd.visit_weights(scores + constant, visits),
        ictd.visit_weights(scores, visits),
        rtol=1e-12,
    )


@pytest.mark.parametrize("top", [1e4, -1e4, 700, -700])
def test_huge_scores_are_exact(top: float) -> None:
    # State 2 has by far the largest score, and no visit.
    scores = np.array([[top, top - 1, 1e4], [top - 3, top, 2e4], [top, top, top]])
    e = np.exp(-np.arange(4.0))
    expected = np.array([[1, e[1], 0], [e[3], 1, 0], [1, 1, 0]])
    expected /= expected @ [[2], [1], [0]]
    np.testing.assert_allclose(ictd.visit_weights(scores, [2, 1, 0]), expected, rtol=1e-13)
    K = ictd.softmax_kernel(scores, [0, 1, 0])
    np.testing.assert_allclose(K, expected[:, [0, 1, 0]].T, rtol=1e-13)


def test_a_query_without_any_score_above_minus_infinity_has_no_weights() -> None:
    scores = np.array([[-np.inf, 3.0], [0.0, 0.0]])
    np.testing.assert_array_equal(ictd.softmax_kernel(scores, [0, 0]), [[0, 0.5], [0, 0.5]])
    np.testing.assert_array_equal(ictd.visit_weights(scores, [2, 0]), [[0, 0], [0.5, 0]])


@given(data=st.data(), S=sizes, n=st.integers(1, 12))
@examples(40)
def test_similarity_scores_give_the_normalised_kernel(data, S: int, n: int) -> None:
    kappa = data.draw(arrays(np.float64, (S, S), elements=st.just(0.0) | st.floats(1e-3, 1e3)))
    sources = data.draw(arrays(np.int64, (n,), elements=st.integers(0, S - 1)))
    K = ictd.softmax_kernel(ictd.similarity_scores(kappa), sources)
    for query in range(S):
        total = sum(kappa[query, source] for source in sources)
        for k, source in enumerate(sources):
            expected = kappa[query, source] / total if total else 0.0
            assert K[k, query] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("features", "sharpness", "message"),
    [
        ([1.0, 2.0], 1, r"^features must have shape \(\.\.\., S, d\), not empty, got \(2,\)"),
        (np.zeros((3, 0)), 1, r"^features must have shape .* got \(3, 0\)"),
        ([[np.nan]], 1, r"^features must be finite, got nan at index \(0, 0\)"),
        ([[np.inf]], 1, r"^features must be finite, got inf at index \(0, 0\)"),
        ([["a"]], 1, r"^features must be an array of real numbers, got dtype <U1"),
        ([[1.0], [1.0, 2.0]], 1, r"^features must be an array of numbers, got a ragged sequence"),
        ([[1e200]], 1, r"^features must have inner products that are finite, .* 1e\+200"),
        ([[1.0]], np.nan, r"^sharpness must be a finite number, got nan"),
        ([[1.0]], np.inf, r"^sharpness must be a finite number, got inf"),
        ([[1.0]], "1", r"^sharpness must be a finite number, got '1'"),
        ([[1.0]], True, r"^sharpness must be a finite number, got True"),
    ],
)
def test_wrong_inner_products_are_refused(features, sharpness, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.inner_product_scores(features, sharpness)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ([[1, 2], [-3, 4]], r"^kernel must be non-negative, got -3"),
        ([[1, 2]], r"^kernel must have shape .*S, S\).* got \(1, 2\)"),
        ([[np.nan]], r"^kernel must be finite, got nan at index \(0, 0\)"),
        ([[np.inf]], r"^kernel must be finite, got inf at index \(0, 0\)"),
    ],
)
def test_wrong_similarities_are_refused(kernel, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.similarity_scores(kernel)


WRONG_SCORES = [
    (np.zeros((2, 3)), r"^scores must have shape .*S, S\).* got \(2, 3\)"),
    (np.zeros(2), r"^scores must have shape .*S, S\).* got \(2,\)"),
    (np.zeros((0, 0)), r"^scores must have shape .* got \(0, 0\)"),
    ([[0, np.nan], [0, 0]], r"^scores must be finite or −inf, got NaN"),
    ([[0, np.inf], [0, 0]], r"^scores must be finite or −inf, got .*\+inf"),
    ([["a"]], r"^scores must be an array of real numbers, got dtype <U1"),
    ([[1j]], r"^scores must be an array of real numbers, got dtype complex128"),
]


@pytest.mark.parametrize(("scores", "message"), WRONG_SCORES)
def test_wrong_scores_are_refused(scores, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.softmax_kernel(scores, [0, 1])
    with pytest.raises(ValueError, match=message):
        ictd.visit_weights(scores, [1, 1])
    with pytest.raises(ValueError, match=message):
        ictd.weighted_softmax_td(ictd.Trajectory([0, 1], [1]), scores, 0.9, 1)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([0, 2], r"^sources must be state indices in 0\.\.1 \(2 states\), got 2"),
        ([0, -1], r"^sources must be state indices ≥ 0, got -1"),
        ([0.0, 1.0], r"^sources must be an array of integers, got dtype float64"),
        (np.zeros(0, int), r"^sources must have shape \(\.\.\., n\) with n ≥ 1, got \(0,\)"),
        (np.zeros((3, 0), int), r"^sources must have shape .* n ≥ 1, got \(3, 0\)"),
        (1, r"^sources must have shape .* got \(\)"),
    ],
)
def test_wrong_sources_are_refused(sources, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.softmax_kernel(np.zeros((2, 2)), sources)


@pytest.mark.parametrize(
    ("visits", "message"),
    [
        ([1, 2, 3], r"^visits must have shape \(\.\.\., 2\), got \(3,\)"),
        (1, r"^visits must have shape \(\.\.\., 2\), got \(\)"),
        ([1, -1], r"^visits must be non-negative, got -1"),
        ([1, np.nan], r"^visits must be finite, got nan at index 1"),
        (["a", "b"], r"^visits must be an array of real numbers, got dtype <U1"),
    ],
)
def test_wrong_visits_are_refused(visits, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.visit_weights(np.zeros((2, 2)), visits)


def test_batches_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^leading dimensions .* scores \(3,\), sources \(2,\)"):
        ictd.softmax_kernel(np.zeros((3, 2, 2)), np.zeros((2, 4), int))
    with pytest.raises(ValueError, match=r"^leading dimensions .* scores \(3,\), visits \(2,\)"):
        ictd.visit_weights(np.zeros((3, 2, 2)), np.ones((2, 2)))
