"""What a context tells about a chain: visits, transitions and rewards, counted by state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ictd import _checks
from ictd._checks import FloatArray
from ictd.mrp import Trajectory


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of one context, or of a batch of contexts, over S states.

    A state is a *source* at each of the times 0 … n−1; the last state S_n is no source. All updates
    of this library depend on a context only through these three arrays.

    Attributes:
        visits: N(s), how often s is a source, shape (..., S).
        transitions: N₂(s, s′), how often s′ follows s, shape (..., S, S).
        reward_sums: sum of the rewards paid on leaving s, shape (..., S).
    """

    visits: FloatArray
    transitions: FloatArray
    reward_sums: FloatArray

    @classmethod
    def of(cls, trajectory: Trajectory, n_states: int) -> Counts:
        """Count a trajectory in O(n) time.

        Args:
            trajectory: context or batch of contexts, states (..., n+1).
            n_states: S ≥ 1.

        Returns:
            The counts of each context, leading dimensions as those of the trajectory.

        Raises:
            ValueError: a state index is not below n_states, or n_states is no integer ≥ 1.
        """
        if not isinstance(trajectory, Trajectory):
            raise ValueError(
                f"trajectory must be an ictd.Trajectory, got {type(trajectory).__name__}"
            )
        S = _checks.integer("n_states", n_states, 1)
        states = trajectory.states
        _checks.states_below("trajectory.states", states, S)
        batch = states.shape[:-1]
        chains = int(np.prod(batch))
        source = states[..., :-1].reshape(chains, -1)
        cell = (np.arange(chains)[:, None] * S + source).ravel()
        pair = cell * S + states[..., 1:].ravel()
        transitions = np.bincount(pair, minlength=chains * S * S).reshape(*batch, S, S)
        reward_sums = np.bincount(cell, trajectory.rewards.ravel(), minlength=chains * S)
        return cls(
            transitions.sum(-1).astype(np.float64),
            transitions.astype(np.float64),
            reward_sums.reshape(*batch, S).astype(np.float64),
        )

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
