"""Finite Markov reward processes, random families of them, and trajectories.

A Markov reward process (S, p, r, γ, p₀) starts at S₀ ~ p₀, moves by S_{t+1} ~ p(· | S_t) and pays
R_{t+1} = r(S_t), a deterministic reward of the state that is left (arXiv:2605.07333v2, section 2.2).
Every array may carry leading batch dimensions: one object then holds many chains of the same size.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ictd import _checks
from ictd._checks import FloatArray, IntArray

# From so many chains on they are walked side by side.
_MANY = 16


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A trajectory (S₀, R₁, S₁, …, R_n, S_n), or a batch of them.

    Attributes:
        states: state indices S₀ … S_n, shape (..., n+1), int64.
        rewards: R₁ … R_n, shape (..., n), float64; ``rewards[..., k]`` is paid on leaving
            ``states[..., k]``.

    Raises:
        ValueError: n = 0, shapes that do not match, negative or non-integer states, rewards that are
            not finite.
    """

    states: IntArray
    rewards: FloatArray

    def __post_init__(self) -> None:
        states = _checks.state_indices("states", self.states)
        rewards = _checks.floats("rewards", self.rewards)
        if states.ndim < 1 or states.shape[-1] < 2 or 0 in states.shape:
            raise ValueError(
                "states must have shape (..., n+1) with n ≥ 1 transitions and no empty batch, "
                f"got {states.shape}"
            )
        expected = (*states.shape[:-1], states.shape[-1] - 1)
        if rewards.shape != expected:
            raise ValueError(
                f"rewards must have shape {expected}, one for each transition of states "
                f"{states.shape}, got {rewards.shape}"
            )
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "rewards", rewards)

    @property
    def n(self) -> int:
        """Number of transitions."""
        return int(self.rewards.shape[-1])


class MarkovRewardProcess:
    """A finite Markov reward process, or a batch of them with one discount factor.

    Args:
        transition: P, shape (..., S, S); row s is the law p(· | s) of the next state.
        reward: r, shape (..., S) or (S,), finite.
        gamma: discount factor in [0, 1).
        initial: law p₀ of the start, shape (..., S) or (S,); None means uniform.

    Raises:
        ValueError: wrong shapes, rows or start law that are no distributions, NaN or infinity,
            gamma outside [0, 1).
    """

    def __init__(self, transition: Any, reward: Any, gamma: float, initial: Any = None) -> None:
        P = _checks.floats("transition", transition)
        S = _checks.square("transition", P)
        _checks.distributions("transition rows", P)
        batch = P.shape[:-2]
        self.transition: FloatArray = P
        self.reward: FloatArray = _per_state("reward", reward, S, batch)
        self.gamma = _checks.discount(gamma)
        if initial is None:
            initial = np.full(S, 1 / S)
        self.initial: FloatArray = _per_state("initial", initial, S, batch)
        _checks.distributions("initial", self.initial)

    @property
    def n_states(self) -> int:
        """Number of states S."""
        return int(self.transition.shape[-1])

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading dimensions, () for a single chain."""
        return self.transition.shape[:-2]

    def __repr__(self) -> str:
        shown = f", batch={self.batch}" if self.batch else ""
        return f"MarkovRewardProcess(n_states={self.n_states}, gamma={self.gamma:g}{shown})"

    @cached_property
    def value(self) -> FloatArray:
        """True values v_π = (I − γP)⁻¹ r, shape (..., S)."""
        bellman = np.eye(self.n_states) - self.gamma * self.transition
        solution = np.linalg.solve(bellman, self.reward[..., None])[..., 0]
        return solution.astype(np.float64)

    @cached_property
    def stationary(self) -> FloatArray:
        """The stationary law μ with μP = μ, shape (..., S).

        It is unique, and positive, exactly when the chain is irreducible; it is then also the
        long-run share of visits, whether or not the chain is periodic.

        Raises:
            ValueError: a chain is reducible; the message names two states.
        """
        S = self.n_states
        reach = _reachable(self.transition)
        if not reach.all():
            *chain, source, target = (int(axis[0]) for axis in np.nonzero(~reach))
            where = f" of chain {tuple(chain)}" if chain else ""
            raise ValueError(
                f"transition must be irreducible to have a unique stationary law: state {target}"
                f"{where} cannot be reached from state {source}"
            )
        # Elimination of the states from the last to the first (Grassmann, Taksar and Heyman, Operations
        # Research 33, 1985). Nothing is subtracted, so nearly reducible chains lose no digits.
        A = self.transition.copy()
        for k in range(S - 1, 0, -1):
            A[..., :k, k] /= A[..., k, :k].sum(-1)[..., None]
            A[..., :k, :k] += A[..., :k, k, None] * A[..., k, None, :k]
        mu = np.ones((*self.batch, S))
        for k in range(1, S):
            mu[..., k] = (mu[..., :k] * A[..., :k, k]).sum(-1)
        return _normalise(mu)

    def sample(self, n: int, rng: np.random.Generator) -> Trajectory:
        """Sample n transitions from each chain of the batch.

        The numbers drawn do not depend on how the work is vectorised: chain b of a batch uses the
        uniforms of its own row, in the order of time.

        Args:
            n: number of transitions, ≥ 1.
            rng: a ``numpy.random.Generator``.

        Returns:
            Trajectory with states (..., n+1) and rewards (..., n).

        Raises:
            ValueError: an argument is outside what is said above.
        """
        n = _checks.integer("n", n, 1)
        uniforms = _checks.generator(rng).random((*self.batch, n + 1)).reshape(-1, n + 1)
        S = self.n_states
        states = walk(self.initial.reshape(-1, S), self.transition.reshape(-1, S, S), uniforms)
        states = states.reshape(*self.batch, n + 1)
        rewards = np.take_along_axis(self.reward, states[..., :-1], axis=-1)
        return Trajectory(states, rewards)

    def stream(
        self, n: int, rng: np.random.Generator, chunk: int | None = None
    ) -> Iterator[Trajectory]:
        """Sample n transitions from each chain in chunks, so that memory does not grow with n.

        A chunk starts at the states where the one before it ended, as ``Counts.of_stream`` expects.
        Numbers are drawn in the order of time, for all chains of a batch at each time, so the
        trajectories do not depend on where they are cut. Those of a single chain are what
        ``sample(n, rng)`` draws from the same generator; those of a batch are others, of the same law.

        Args:
            n: number of transitions, ≥ 1.
            rng: a ``numpy.random.Generator``.
            chunk: transitions of a chunk, for each chain, ≥ 1; the last chunk may have fewer. None means
                2¹⁸ over all chains together, or 2²⁰ from 16 chains on, and at least 1.

        Returns:
            An iterator over trajectories with states (..., m+1) and rewards (..., m).

        Raises:
            ValueError: n, rng or chunk is not as above.
        """
        n = _checks.integer("n", n, 1)
        if chunk is None:
            chains = math.prod(self.batch)
            together = 1 << (18 if chains < _MANY else 20)
            chunk = max(together // max(chains, 1), 1)
        chunk = _checks.integer("chunk", chunk, 1)
        return self._stream(n, _checks.generator(rng), chunk)

    def _stream(self, n: int, rng: np.random.Generator, chunk: int) -> Iterator[Trajectory]:
        S = self.n_states
        rows = _cumulative(self.transition).reshape(-1, S, S)
        start = _cumulative(self.initial).reshape(-1, S)
        chains = np.arange(len(rows))
        states = _walk(start, rows, rng.random((1, len(rows))).T)
        for done in range(0, n, chunk):
            uniforms = rng.random((min(chunk, n - done), len(rows))).T
            last = states[:, -1]
            following = _walk(rows[chains, last], rows, uniforms)
            states = np.concatenate([last[:, None], following], axis=1)
            path = states.reshape(*self.batch, -1)
            rewards = np.take_along_axis(self.reward, path[..., :-1], axis=-1)
            yield Trajectory(path, rewards)


def boyan_chain(
    n_states: int, gamma: float, rng: np.random.Generator, batch: tuple[int, ...] = ()
) -> MarkovRewardProcess:
    """Random Boyan chains, the family that the pretraining experiments draw from.

    State i ≤ S−3 moves to i+1 with probability q_i ~ U(.01, .99), else to i+2; state S−2 moves to
    S−1; the last row and p₀ are U(.01, .99) weights, normalised; rewards are U[−1, 1]. Family and
    ranges follow arXiv:2405.13861; the chain goes back to Boyan (Machine Learning 49, 2002).

    Args:
        n_states: S ≥ 3.
        gamma: discount factor in [0, 1).
        rng: a ``numpy.random.Generator``.
        batch: leading dimensions of the batch of chains.

    Returns:
        The chains, with transition (..., S, S), the leading dimensions those of ``batch``.

    Raises:
        ValueError: an argument is outside what is said above.
    """
    S, batch = _family(n_states, 3, gamma, rng, batch)
    P = np.zeros((*batch, S, S))
    i = np.arange(S - 2)
    forward = rng.uniform(0.01, 0.99, (*batch, S - 2))
    P[..., i, i + 1] = forward
    P[..., i, i + 2] = 1 - forward
    P[..., S - 2, S - 1] = 1
    P[..., S - 1, :] = _random_law(S, rng, batch)
    return _with_random_reward(P, gamma, rng)


def loop_chain(
    n_states: int, gamma: float, rng: np.random.Generator, batch: tuple[int, ...] = ()
) -> MarkovRewardProcess:
    """Random loop chains: a cycle with random chords.

    The edge i → i+1 (cyclic) is always there, any other i → j with j ≠ i is kept with probability
    1/2; kept edges weigh U(.01, .99) and rows are normalised. p₀ and rewards are drawn as for
    :func:`boyan_chain`. The chain is irreducible. Follows arXiv:2405.13861.

    Args:
        n_states: S ≥ 2.
        gamma: discount factor in [0, 1).
        rng: a ``numpy.random.Generator``.
        batch: leading dimensions of the batch of chains.

    Returns:
        The chains, with transition (..., S, S), the leading dimensions those of ``batch``.

    Raises:
        ValueError: an argument is outside what is said above.
    """
    S, batch = _family(n_states, 2, gamma, rng, batch)
    i = np.arange(S)
    kept = rng.uniform(0.01, 0.99, (*batch, S, S)) > 0.5
    kept[..., i, i] = False
    kept[..., i, (i + 1) % S] = True
    weights = np.where(kept, rng.uniform(0.01, 0.99, (*batch, S, S)), 0.0)
    return _with_random_reward(_normalise(weights), gamma, rng)


def random_chain(
    n_states: int, gamma: float, rng: np.random.Generator, batch: tuple[int, ...] = ()
) -> MarkovRewardProcess:
    """Random ergodic chains: every row is U(.01, .99) weights, normalised; all entries are positive.

    p₀ and rewards are drawn as for :func:`boyan_chain`.

    Args:
        n_states: S ≥ 1.
        gamma: discount factor in [0, 1).
        rng: a ``numpy.random.Generator``.
        batch: leading dimensions of the batch of chains.

    Returns:
        The chains, with transition (..., S, S), the leading dimensions those of ``batch``.

    Raises:
        ValueError: an argument is outside what is said above.
    """
    S, batch = _family(n_states, 1, gamma, rng, batch)
    return _with_random_reward(_random_law(S, rng, (*batch, S)), gamma, rng)


def _family(
    n_states: int, minimum: int, gamma: float, rng: np.random.Generator, batch: tuple[int, ...]
) -> tuple[int, tuple[int, ...]]:
    _checks.discount(gamma)
    _checks.generator(rng)
    return _checks.integer("n_states", n_states, minimum), _checks.batch_shape(batch)


def _random_law(S: int, rng: np.random.Generator, batch: tuple[int, ...]) -> FloatArray:
    return _normalise(rng.uniform(0.01, 0.99, (*batch, S)))


def _normalise(weights: FloatArray) -> FloatArray:
    law: FloatArray = weights / weights.sum(-1, keepdims=True)
    return law


def _with_random_reward(
    transition: FloatArray, gamma: float, rng: np.random.Generator
) -> MarkovRewardProcess:
    *batch, _, S = transition.shape
    initial = _random_law(S, rng, tuple(batch))
    reward = rng.uniform(-1, 1, (*batch, S))
    return MarkovRewardProcess(transition, reward, gamma, initial)


def _per_state(name: str, value: Any, S: int, batch: tuple[int, ...]) -> FloatArray:
    array = _checks.floats(name, value)
    if array.shape not in {(S,), (*batch, S)}:
        wanted = f"({S},)" + (f" or {(*batch, S)}" if batch else "")
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    return np.array(np.broadcast_to(array, (*batch, S)))


def _reachable(transition: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    S = transition.shape[-1]
    reach = (transition > 0) | np.eye(S, dtype=bool)
    # Each squaring doubles the length of the paths that count.
    for _ in range(max(S - 1, 1).bit_length()):
        reach = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
    return reach


def _cumulative(law: FloatArray) -> FloatArray:
    """Cumulative sums; exactly 1 from the last state of positive probability on."""
    total = law.cumsum(-1)
    return np.where(total >= total[..., -1:], 1.0, total)


def walk(initial: FloatArray, transition: FloatArray, uniforms: FloatArray) -> IntArray:
    """Walks by inversion of the cumulative laws, a number in [0, 1) for each state.

    Args:
        initial: laws of the start, shape (chains, S).
        transition: transition matrices, shape (chains, S, S).
        uniforms: shape (chains, length), in the order of time.

    Returns:
        States, shape (chains, length); chain b depends on its own row of each argument alone. Nothing is
        checked.
    """
    return _walk(_cumulative(initial), _cumulative(transition), uniforms)


def _walk(start: FloatArray, rows: FloatArray, uniforms: FloatArray) -> IntArray:
    """States (chains, m) from the laws of the first, (chains, S), and of the next; (chains, m) numbers."""
    # Both ways invert the same cumulative laws; a Python loop wins for a handful of chains.
    walk = _walk_each if len(rows) < _MANY else _walk_together
    return walk(start, rows, uniforms)


def _walk_each(start: FloatArray, rows: FloatArray, uniforms: FloatArray) -> IntArray:
    states = np.empty(uniforms.shape, dtype=np.int64)
    for b, draws in enumerate(uniforms.tolist()):
        cumulative = rows[b].tolist()
        state = bisect_right(start[b].tolist(), draws[0])
        path = [state]
        for u in draws[1:]:
            state = bisect_right(cumulative[state], u)
            path.append(state)
        states[b] = path
    return states


def _walk_together(start: FloatArray, rows: FloatArray, uniforms: FloatArray) -> IntArray:
    chains = np.arange(len(rows))
    draws = np.ascontiguousarray(uniforms.T)[:, :, None]
    states = np.empty(uniforms.shape[::-1], dtype=np.int64)
    states[0] = (start <= draws[0]).sum(-1)
    for t in range(1, len(draws)):
        states[t] = (rows[chains, states[t - 1]] <= draws[t]).sum(-1)
    return np.ascontiguousarray(states.T)
