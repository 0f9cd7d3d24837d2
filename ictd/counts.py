"""What a context tells about a chain: visits, transitions and rewards, counted by state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ictd import _checks
from ictd._checks import FloatArray, IntArray
from ictd.mrp import Trajectory

# Transitions counted at once. The index arrays of a block then stay in the cache of a processor core.
_BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of one context, or of a batch of contexts, over S states.

    A state is a *source* at each of the times 0 … n−1; the last state S_n is no source. All updates
    of this library depend on a context only through these three arrays. Counts of parts add up:
    ``a + b`` are the counts of both, whoever took them, so a long trajectory can be cut into pieces that
    overlap in one state, and these counted on several machines.

    Attributes:
        visits: N(s), how often s is a source, shape (..., S).
        transitions: N₂(s, s′), how often s′ follows s, shape (..., S, S).
        reward_sums: sum of the rewards paid on leaving s, shape (..., S).
        last_state: S_n, where the context ended, shape (...); None for sums of counts, which need not
            be one path.

    Raises:
        ValueError: shapes that do not match, counts that are negative or not finite, visits that are not
            the row sums of the transitions, a last state that is none of the S.
    """

    visits: FloatArray
    transitions: FloatArray
    reward_sums: FloatArray
    last_state: IntArray | None = None

    def __post_init__(self) -> None:
        transitions = _checks.floats("transitions", self.transitions)
        S = _checks.square("transitions", transitions)
        batch = transitions.shape[:-2]
        visits = _checks.floats("visits", self.visits)
        reward_sums = _checks.floats("reward_sums", self.reward_sums)
        for name, array in (("visits", visits), ("reward_sums", reward_sums)):
            if array.shape != (*batch, S):
                raise ValueError(f"{name} must have shape {(*batch, S)}, got {array.shape}")
        if transitions.min() < 0:
            raise ValueError(f"transitions must be non-negative, got {transitions.min()}")
        if not np.allclose(visits, transitions.sum(-1), rtol=1e-9, atol=0):
            raise ValueError("visits must be the row sums of transitions, got other numbers")
        for name, array in (
            ("visits", visits),
            ("transitions", transitions),
            ("reward_sums", reward_sums),
        ):
            object.__setattr__(self, name, array)
        if self.last_state is not None:
            last = _checks.state_indices("last_state", self.last_state)
            if last.shape != batch:
                raise ValueError(f"last_state must have shape {batch}, got {last.shape}")
            _checks.states_below("last_state", last, S)
            object.__setattr__(self, "last_state", last)

    @classmethod
    def _counted(
        cls,
        visits: FloatArray,
        transitions: FloatArray,
        reward_sums: FloatArray,
        last_state: IntArray | None,
    ) -> Counts:
        """Counts that are right by construction: small contexts are counted often, and checks cost."""
        counts = object.__new__(cls)
        for name, array in (
            ("visits", visits),
            ("transitions", transitions),
            ("reward_sums", reward_sums),
            ("last_state", last_state),
        ):
            object.__setattr__(counts, name, array)
        return counts

    @property
    def n_states(self) -> int:
        """Number of states S."""
        return int(self.visits.shape[-1])

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading dimensions, () for a single context."""
        return self.visits.shape[:-1]

    @classmethod
    def of(cls, trajectory: Trajectory, n_states: int) -> Counts:
        """Count a trajectory in O(n) time, with O(S²) memory beside it.

        Args:
            trajectory: context or batch of contexts, states (..., n+1).
            n_states: S ≥ 1.

        Returns:
            The counts of each context, leading dimensions as those of the trajectory.

        Raises:
            ValueError: a state index is not below n_states, or n_states is no integer ≥ 1.
        """
        return cls.of_stream([trajectory], n_states)

    @classmethod
    def of_stream(cls, chunks: Iterable[Trajectory], n_states: int) -> Counts:
        """Count a trajectory that comes in chunks, in one pass; memory O(S²) beside one chunk.

        A chunk starts at the state where the one before it ended, so that neighbours share that state:
        (S₀, R₁, …, S_m), (S_m, R_{m+1}, …), … The result equals :meth:`of` of the whole trajectory to
        the last bit, however it is cut: rewards are added in the order of time.

        Args:
            chunks: trajectories with the same leading dimensions, at least one; an iterator will do.
            n_states: S ≥ 1.

        Returns:
            The counts of each context, leading dimensions as those of the chunks.

        Raises:
            ValueError: no chunk, something else than a trajectory, a chunk that does not continue the
                one before, a state index that is not below n_states.
        """
        S = _checks.integer("n_states", n_states, 1)
        tally: _Tally | None = None
        for trajectory in chunks:
            if not isinstance(trajectory, Trajectory):
                raise ValueError(
                    f"trajectory must be an ictd.Trajectory, got {type(trajectory).__name__}"
                )
            _checks.states_below("trajectory.states", trajectory.states, S)
            if tally is None:
                tally = _Tally(trajectory.states.shape[:-1], S)
            tally.add(trajectory)
        if tally is None:
            raise ValueError("chunks must hold at least one trajectory, got none")
        return tally.counts()

    def extended(self, trajectory: Trajectory) -> Counts:
        """Counts of the context continued by a trajectory that starts at ``last_state``.

        Args:
            trajectory: continuation, states (..., m+1), leading dimensions those of the counts.

        Returns:
            The counts of the whole context, with the last state of the trajectory.

        Raises:
            ValueError: the trajectory starts elsewhere, has other leading dimensions or unknown states,
                or these counts are a sum, of which nobody knows where it ended.
        """
        if self.last_state is None:
            raise ValueError(
                "counts must be those of one path to be extended, got a sum of counts without a last "
                "state; count the continuation by itself and add it"
            )
        more = Counts.of(trajectory, self.n_states)
        _check_continuation(trajectory.states, self.last_state)
        total = self + more
        return Counts._counted(total.visits, total.transitions, total.reward_sums, more.last_state)

    def __add__(self, other: Counts) -> Counts:
        """The counts of both; associative and commutative, exactly so for visits and transitions.

        Raises:
            ValueError: different numbers of states or leading dimensions.
        """
        if not isinstance(other, Counts):
            return NotImplemented
        if self.transitions.shape != other.transitions.shape:
            raise ValueError(
                "counts that are added must have the same leading dimensions and states, got "
                f"transitions {self.transitions.shape} and {other.transitions.shape}"
            )
        return Counts._counted(
            self.visits + other.visits,
            self.transitions + other.transitions,
            self.reward_sums + other.reward_sums,
            None,
        )

    def empirical_chain(self) -> tuple[FloatArray, FloatArray]:
        """The chain that the context describes.

        Returns:
            P̃, the shares of the successors of each source, shape (..., S, S), and r̃, the mean reward paid
            on leaving it, shape (..., S); both zero at a state that is no source.
        """
        # Such a state has no transitions and no rewards: 0/1 in place of 0/0.
        divisor = np.where(self.visits > 0, self.visits, 1.0)
        return self.transitions / divisor[..., None], self.reward_sums / divisor

    def td_error_sums(self, values: FloatArray, gamma: float) -> FloatArray:
        """Sum of the TD errors R + γ v(S′) − v(S) over the visits of each state.

        Args:
            values: v, shape (..., S).
            gamma: discount factor.

        Returns:
            Sums, shape (..., S). Nothing is checked, since the algorithms call this in each step.
        """
        bootstrap: FloatArray = (self.transitions @ values[..., None])[..., 0]
        return self.reward_sums + gamma * bootstrap - self.visits * values


class _Tally:
    """Running counts of a batch of contexts."""

    def __init__(self, batch: tuple[int, ...], S: int) -> None:
        chains = int(np.prod(batch))
        self.batch, self.S = batch, S
        self.first_cell = S * np.arange(chains)[:, None]
        # None until something is counted: most contexts are one block, which is then all there is.
        self.transitions: IntArray | None = None
        self.reward_sums: FloatArray | None = None
        self.last_state: IntArray | None = None

    def add(self, trajectory: Trajectory) -> None:
        if self.last_state is not None:
            _check_continuation(trajectory.states, self.last_state)
        chains, S = len(self.first_cell), self.S
        states = trajectory.states.reshape(chains, -1)
        rewards = trajectory.rewards.reshape(chains, -1)
        # A block costs the size of the tables too: with many chains or states it has to be longer.
        length = max(_BLOCK // chains, S * S)
        for start in range(0, trajectory.n, length):
            stop = min(start + length, trajectory.n)
            cell = self.first_cell + states[:, start:stop]
            pair = cell * S + states[:, start + 1 : stop + 1]
            self._add_block(cell.ravel(), pair.ravel(), rewards[:, start:stop].ravel())
        self.last_state = trajectory.states[..., -1].copy()

    def _add_block(self, cell: IntArray, pair: IntArray, rewards: FloatArray) -> None:
        n_cells = self.S * len(self.first_cell)
        transitions = np.bincount(pair, minlength=n_cells * self.S)
        if self.transitions is None or self.reward_sums is None:
            self.transitions = transitions.astype(np.int64, copy=False)
        else:
            self.transitions += transitions
            # The sums so far come first, so that the order of the additions is that of time.
            cell = np.concatenate([np.arange(n_cells), cell])
            rewards = np.concatenate([self.reward_sums, rewards])
        self.reward_sums = np.bincount(cell, rewards, minlength=n_cells).astype(
            np.float64, copy=False
        )

    def counts(self) -> Counts:
        assert self.transitions is not None
        assert self.reward_sums is not None
        transitions = self.transitions.reshape(*self.batch, self.S, self.S)
        return Counts._counted(
            transitions.sum(-1).astype(np.float64),
            transitions.astype(np.float64),
            self.reward_sums.reshape(*self.batch, self.S),
            self.last_state,
        )


def _check_continuation(states: IntArray, last_state: IntArray) -> None:
    first = states[..., 0]
    if first.shape != last_state.shape:
        raise ValueError(
            "trajectory must have the leading dimensions of what it continues, "
            f"{last_state.shape}, got {first.shape}"
        )
    if (first != last_state).any():
        where = first != last_state
        raise ValueError(
            f"trajectory must start at state {last_state[where][0]}, where the one before it ended, "
            f"got {first[where][0]}"
        )
