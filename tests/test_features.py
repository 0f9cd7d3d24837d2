"""State features."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, no_batch_or_batches, seeds

import ictd

RANDOM = [ictd.uniform_features, ictd.sphere_features]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("S", [1, 2, 7])
def test_one_hot_features_tell_states_apart(S: int) -> None:
    x = ictd.one_hot_features(S)
    for s in range(S):
        assert [x[s, i] for i in range(S)] == [float(i == s) for i in range(S)]


@pytest.mark.parametrize("draw", RANDOM)
@given(S=st.integers(1, 8), d=st.integers(1, 6), batch=no_batch_or_batches, seed=seeds)
@examples(20)
def test_random_features(draw, S: int, d: int, batch: tuple[int, ...], seed: int) -> None:
    x = draw(S, d, rng(seed), batch)
    assert x.shape == (*batch, S, d)
    assert x.dtype == np.float64
    assert np.abs(x).max() <= 1 + 1e-15
    np.testing.assert_array_equal(x, draw(S, d, rng(seed), batch))
    assert (x != draw(S, d, rng(seed + 1), batch)).any() or (draw is RANDOM[1] and d == 1)
    if draw is ictd.sphere_features:
        np.testing.assert_allclose((x**2).sum(-1), 1, rtol=1e-12)
    elif x.size > 1:
        assert len(np.unique(x)) == x.size


@pytest.mark.parametrize(("draw", "variance"), [(RANDOM[0], 1 / 3), (RANDOM[1], 1 / 4)])
def test_no_direction_is_preferred(draw, variance: float) -> None:
    # Entries lie in [−1, 1]; by Hoeffding, a mean over 40,000 is off by .024 with probability < 1e-4.
    x = draw(4, 4, rng(1), (10_000,)).reshape(-1, 4)
    np.testing.assert_allclose(x.mean(0), 0, atol=0.024)
    np.testing.assert_allclose(x.T @ x / len(x), variance * np.eye(4), atol=0.024)


def test_on_the_sphere_of_one_dimension_features_are_signs() -> None:
    assert set(ictd.sphere_features(50, 1, rng())[:, 0]) == {-1.0, 1.0}


def test_uniform_features_fill_the_cube() -> None:
    x = np.sort(ictd.uniform_features(10_000, 1, rng())[:, 0])
    np.testing.assert_allclose(x, np.linspace(-1, 1, 10_000), atol=0.05)


@pytest.mark.parametrize("width", [0.1, 0.5, 3])
@pytest.mark.parametrize(("S", "d"), [(1, 1), (1, 3), (4, 1), (5, 3), (3, 5)])
def test_radial_basis_features_are_bumps(S: int, d: int, width: float) -> None:
    x = ictd.radial_basis_features(S, d, width)
    assert x.shape == (S, d)
    for s in range(S):
        for c in range(d):
            position = s / (S - 1) if S > 1 else 0.5
            centre = c / (d - 1) if d > 1 else 0.5
            expected = math.exp(-((position - centre) ** 2) / (2 * width**2))
            assert x[s, c] == pytest.approx(expected, rel=1e-12)


def test_the_narrowest_bumps_tell_positions_apart() -> None:
    np.testing.assert_array_equal(
        ictd.radial_basis_features(3, 2, 1e-300), [[1, 0], [0, 0], [0, 1]]
    )


@pytest.mark.parametrize("draw", RANDOM)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_states": 0}, r"^n_states must be an integer ≥ 1, got 0"),
        ({"n_states": 2.0}, r"^n_states must be an integer ≥ 1, got 2\.0"),
        ({"n_features": 0}, r"^n_features must be an integer ≥ 1, got 0"),
        ({"n_features": "3"}, r"^n_features must be an integer ≥ 1, got '3'"),
        ({"batch": 3}, r"^batch must be a tuple of integers ≥ 1, got 3"),
        ({"batch": (0,)}, r"^each entry of batch must be an integer ≥ 1, got 0"),
        ({"rng": 0}, r"^rng must be a numpy\.random\.Generator .* got 0"),
        (
            {"rng": np.random.RandomState(0)},
            r"^rng must be a numpy\.random\.Generator .* got Random",
        ),
    ],
)
def test_wrong_random_features_are_refused(draw, wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw(**{"n_states": 3, "n_features": 2, "rng": rng(), **wrong})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 2, 1.0), r"^n_states must be an integer ≥ 1, got 0"),
        ((3, 0, 1.0), r"^n_features must be an integer ≥ 1, got 0"),
        ((3, 2, 0), r"^width must be .*> 0, got 0"),
        ((3, 2, -1.0), r"^width must be .* got -1\.0"),
        ((3, 2, np.nan), r"^width must be .* got nan"),
        ((3, 2, np.inf), r"^width must be .* got inf"),
        ((3, 2, "wide"), r"^width must be .* got 'wide'"),
        ((3, 2, True), r"^width must be .* got True"),
    ],
)
def test_wrong_radial_basis_features_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.radial_basis_features(*arguments)


@pytest.mark.parametrize("n_states", [0, -1, 2.5, True, None])
def test_wrong_one_hot_features_are_refused(n_states) -> None:
    with pytest.raises(ValueError, match=rf"^n_states must be an integer ≥ 1, got {n_states}"):
        ictd.one_hot_features(n_states)
