"""Random inputs for the property-based tests, and the paper's formulas written out term by term.

The formulas use plain loops over k and j and no function of the library. Exponentials are taken in decimal
arithmetic, so that a score of ±1e4 is as exact as one of 0.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

gammas = st.sampled_from([0.0, 0.9, 0.999]) | st.floats(0, 0.999)
seeds = st.integers(0, 2**32 - 1)
batches = st.sampled_from([(1,), (3,), (2, 2)])
no_batch_or_batches = st.just(()) | batches


def examples(number: int) -> settings:
    """So many examples, or fewer where the profile says so, however long one takes."""
    return settings(max_examples=min(number, settings.default.max_examples), deadline=None)


@st.composite
def feature_tables(draw: st.DrawFn, shape: tuple[int, ...]) -> np.ndarray:
    """Features up to ±100, often identical. On a dyadic grid, inner products are exact in float64."""
    scale = draw(st.sampled_from([0.25, 1.0, 2.0, 100.0]))
    return draw(arrays(np.int64, shape, elements=st.integers(-16, 16))) * (scale / 16)


@st.composite
def score_matrices(draw: st.DrawFn, shape: tuple[int, ...], infinite: bool = True) -> np.ndarray:
    """Score matrices up to ±1e4 and, where wanted, −∞. On a dyadic grid, so that sums are exact."""
    scale = draw(st.sampled_from([0.0, 1.0, 16.0, 1e4]))
    grid = arrays(np.int64, shape, elements=st.integers(-64, 64))
    scores = draw(grid) * (scale / 64)
    if infinite:
        scores[draw(arrays(np.bool_, shape))] = -np.inf
    return scores


@st.composite
def state_sequences(
    draw: st.DrawFn,
    n_states: int,
    n: int,
    batch: tuple[int, ...] = (),
    may_be_unseen: bool = True,
) -> np.ndarray:
    """States S₀ … S_n; in about half of the draws the query S_n was never a source."""
    unseen = may_be_unseen and n_states > 1 and draw(st.booleans())
    sources = st.integers(0, n_states - 1 - unseen)
    states = draw(arrays(np.int64, (*batch, n + 1), elements=sources))
    if unseen:
        states[..., -1] = n_states - 1
    return states


@dataclass(frozen=True)
class Context:
    """One draw of everything that Theorem 1 speaks of."""

    states: np.ndarray
    rewards: np.ndarray
    features: np.ndarray
    gamma: float
    depth: int

    @property
    def n_states(self) -> int:
        return self.features.shape[-2]

    @property
    def d(self) -> int:
        return self.features.shape[-1]

    @property
    def n(self) -> int:
        return self.rewards.shape[-1]

    @property
    def scale(self) -> float:
        return float(np.abs(self.rewards).max())


@st.composite
def contexts(
    draw: st.DrawFn,
    batch: tuple[int, ...] = (),
    features_batch: tuple[int, ...] = (),
    covering: bool = False,
) -> Context:
    """S 1..8, d 1..6, n 1..25, depth 0..8; if covering, every state is a source."""
    S, d = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    n = draw(st.integers(S if covering else 1, 25))
    states = draw(state_sequences(S, n, batch, may_be_unseen=not covering))
    if covering:
        states[..., :S] = draw(st.permutations(range(S)))
    return Context(
        states=states,
        rewards=draw(reward_arrays((*batch, n))),
        features=draw(feature_tables((*features_batch, S, d))),
        gamma=draw(gammas),
        depth=draw(st.integers(0, 8)),
    )


def reward_arrays(shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    """Rewards of either sign, of the size of one or of a thousand."""
    return arrays(np.float64, shape, elements=st.floats(-1, 1) | st.floats(-1e3, 1e3))


@lru_cache(maxsize=100_000)
def exponential(score: float) -> Decimal:
    return Decimal(score).exp()


def softmax(scores: Sequence[float]) -> list[float]:
    """exp g_i / Σ_m exp g_m; all zero where every score is −∞."""
    weights = [exponential(float(score)) for score in scores]
    total = sum(weights)
    return [float(weight / total) if total else 0.0 for weight in weights]


def inner_products(features: np.ndarray) -> np.ndarray:
    """⟨x(s), x(t)⟩ as [s, t]."""
    S, d = features.shape
    scores = np.zeros((S, S))
    for s in range(S):
        for t in range(S):
            scores[s, t] = sum(float(features[s, i]) * float(features[t, i]) for i in range(d))
    return scores


def td_errors(
    states: np.ndarray, rewards: np.ndarray, values: Sequence[float], gamma: float
) -> list[float]:
    """δ_k = R_k + γ v(S_k) − v(S_{k−1}), k = 1 … n."""
    return [
        float(rewards[k - 1]) + gamma * values[states[k]] - values[states[k - 1]]
        for k in range(1, len(states))
    ]


def weighted_softmax_td(
    states: np.ndarray,
    rewards: np.ndarray,
    scores: np.ndarray,
    gamma: float,
    alphas: Sequence[float],
    initial: Any = None,
) -> np.ndarray:
    """(8)–(9) of arXiv:2605.07333v2 for every state as a query: v_0 … v_T, shape (T+1, S)."""
    S, n = len(scores), len(rewards)
    K = [softmax([scores[s, states[k - 1]] for k in range(1, n + 1)]) for s in range(S)]
    v = [0.0] * S if initial is None else [float(value) for value in initial]
    iterates = [v]
    for alpha in alphas:
        delta = td_errors(states, rewards, v, gamma)
        new = []
        for s in range(S):
            step = sum(delta[k - 1] * K[s][k - 1] for k in range(1, n + 1))
            new.append(v[s] + float(alpha) * step)
        v = new
        iterates.append(v)
    return np.array(iterates)


def linear_td_weights(
    states: np.ndarray,
    rewards: np.ndarray,
    features: np.ndarray,
    gamma: float,
    alphas: Sequence[float],
    initial: Any = None,
) -> np.ndarray:
    """w ← w + (α/n) Σ_k δ_k x(S_{k−1}): w_0 … w_T, shape (T+1, d)."""
    n, d = len(rewards), features.shape[1]
    w = np.zeros(d) if initial is None else np.array(initial, dtype=float)
    iterates = [w]
    for alpha in alphas:
        total = np.zeros(d)
        for k in range(1, n + 1):
            x, x_next = features[states[k - 1]], features[states[k]]
            total = total + (rewards[k - 1] + gamma * (w @ x_next) - w @ x) * x
        w = w + alpha / n * total
        iterates.append(w)
    return np.array(iterates)


def assert_close(actual: Any, expected: Any, tolerance: float, scale: float = 0.0) -> None:
    """Equal shapes, and equal to `tolerance` of the largest of the expected numbers and `scale`."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    largest = max(scale, np.abs(expected).max(initial=0.0))
    error = np.abs(actual - expected).max(initial=0.0)
    assert error <= tolerance * largest, f"error {error:.3g} at numbers of size {largest:.3g}"
