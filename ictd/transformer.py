"""The transformers whose forward pass is temporal-difference learning, matrix by matrix.

A prompt Z₀ has rows [X; R; 0; 0] and shape (d+3, n+1), columns in time: d feature rows, the reward row
d+1, the target memory d+2 and the current-value memory d+3 (arXiv:2605.07333v2, (10)). Two networks
compute weighted softmax TD in the last row of Z (Theorem 1) and are equal layer by layer (Lemma 1):
:class:`ictd.DualHeadTransformer`, with a second head for the target memory, and
:class:`ictd.SoftmaxTransformer`, one head followed by the temporal shift. :class:`ictd.LinearTransformer`
is the linear predecessor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from ictd import _checks
from ictd._tensors import check_floating, check_prompt, feature_table, kind
from ictd.attention import column_softmax, linear_update
from ictd.mrp import Trajectory


def prompt(trajectory: Trajectory, features: Any) -> Tensor:
    """The prompt Z₀ = [X; R; 0; 0] of (10).

    Column k+1 of X is x(S_k), k = 0..n; R = [R₁, …, R_n, 0].

    Args:
        trajectory: context with states (..., n+1).
        features: x, shape (S, d) or (..., S, d); a tensor, or an array that is turned into one. The
            result has its dtype and device (integers become float64).

    Returns:
        Z₀, shape (..., d+3, n+1).

    Raises:
        ValueError: a state out of range, features that are not finite or of another batch.
    """
    X = _gather(trajectory, features)
    rows = X.new_zeros(*X.shape[:-2], 3, X.shape[-1])
    rows[..., 0, :-1] = torch.as_tensor(trajectory.rewards).to(X)
    return torch.cat([X, rows], dim=-2)


def read_values(Z: Tensor) -> Tensor:
    """Current values of S₀ … S_n, the last row of Z.

    Args:
        Z: state of the network, shape (..., d+3, n+1).

    Returns:
        Values, shape (..., n+1); the last one is v(S_n).
    """
    return Z[..., -1, :]


def td_direction(d: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """u = [0_d, 1, 1, −1]: uᵀ z is reward + target − current value of a column z.

    Args:
        d: number of features, ≥ 1.
        dtype: a floating dtype.

    Returns:
        u, shape (d+3,).

    Raises:
        ValueError: an argument is outside what is said above.
    """
    check_floating(dtype)
    u = torch.zeros(_checks.integer("d", d, 1) + 3, dtype=dtype)
    u[d:] = torch.tensor([1.0, 1.0, -1.0], dtype=dtype)
    return u


def attention_matrix(d: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """A = diag(I_d, 0₃) of (12): scores are the inner products of the features.

    Args:
        d: number of features, ≥ 1.
        dtype: a floating dtype.

    Returns:
        A, shape (d+3, d+3).

    Raises:
        ValueError: d is no integer ≥ 1.
    """
    return torch.diag(torch.tensor([1.0] * _checks.integer("d", d, 1) + [0.0] * 3, dtype=dtype))


def current_value_matrix(d: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """V^cur = e_{d+3} uᵀ: writes the averaged TD error to the current-value row.

    Args:
        d: number of features, ≥ 1.
        dtype: a floating dtype.

    Returns:
        V^cur, shape (d+3, d+3).

    Raises:
        ValueError: an argument is outside what is said above.
    """
    u = td_direction(d, dtype)
    V = torch.zeros(d + 3, d + 3, dtype=dtype)
    V[d + 2] = u
    return V


def target_value_matrix(d: int, gamma: float, dtype: torch.dtype = torch.float64) -> Tensor:
    """V^tgt = γ e_{d+2} uᵀ: writes γ times the averaged TD error to the target row.

    Args:
        d: number of features, ≥ 1.
        gamma: discount factor in [0, 1).
        dtype: a floating dtype.

    Returns:
        V^tgt, shape (d+3, d+3).

    Raises:
        ValueError: an argument is outside what is said above.
    """
    row = _checks.discount(gamma) * td_direction(d, dtype)
    V = torch.zeros(d + 3, d + 3, dtype=dtype)
    V[d + 1] = row
    return V


def shift_matrix(
    n: int, dtype: torch.dtype = torch.float64, device: torch.device | str | None = None
) -> Tensor:
    """Π: column k of ZΠ is column k+1 of Z, and the last column is zero.

    Args:
        n: number of transitions, ≥ 1.
        dtype: a floating dtype.
        device: where the matrix is made.

    Returns:
        Π, shape (n+1, n+1).

    Raises:
        ValueError: n is no integer ≥ 1.
    """
    return torch.diag(torch.ones(_checks.integer("n", n, 1), dtype=dtype, device=device), -1)


def temporal_shift_matrices(
    d: int, gamma: float, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """U = I − e_{d+2}e_{d+2}ᵀ clears the target row, W = γ e_{d+2}e_{d+3}ᵀ refills it ((18)–(19)).

    Args:
        d: number of features, ≥ 1.
        gamma: discount factor in [0, 1).
        dtype: a floating dtype.

    Returns:
        U and W, each of shape (d+3, d+3).

    Raises:
        ValueError: an argument is outside what is said above.
    """
    check_floating(dtype)
    gamma = _checks.discount(gamma)
    U = torch.eye(_checks.integer("d", d, 1) + 3, dtype=dtype)
    U[d + 1, d + 1] = 0
    W = torch.zeros(d + 3, d + 3, dtype=dtype)
    W[d + 1, d + 2] = gamma
    return U, W


class _LayerStack(nn.Module, ABC):
    """Layers that map Z to Z, looped over one set of matrices or with a set for each layer."""

    n_layers: int

    def _register(self, n_layers: int | None, minimum_rows: int, **matrices: Tensor) -> None:
        """Check the matrices against each other and make them parameters."""
        first, reference = next(iter(matrices.items()))
        for name, matrix in matrices.items():
            if not isinstance(matrix, Tensor) or not matrix.is_floating_point():
                raise ValueError(f"{name} must be a tensor of a floating dtype, got {kind(matrix)}")
            if matrix.ndim not in (2, 3) or matrix.shape[-1] != matrix.shape[-2]:
                raise ValueError(
                    f"{name} must have shape (m, m) or (n_layers, m, m), got {tuple(matrix.shape)}"
                )
            if matrix.shape != reference.shape or matrix.dtype != reference.dtype:
                raise ValueError(
                    f"{name} must have the shape and dtype of {first}, {tuple(reference.shape)} "
                    f"{reference.dtype}, got {tuple(matrix.shape)} {matrix.dtype}"
                )
            if not torch.isfinite(matrix).all():
                raise ValueError(f"{name} must be finite, got NaN or infinity")
            self.register_parameter(name, nn.Parameter(matrix.detach().clone()))
        if reference.shape[-1] < minimum_rows:
            raise ValueError(
                f"{first} must have at least {minimum_rows} rows, got {reference.shape[-1]}"
            )
        self.looped = reference.ndim == 2
        self._rows = reference.shape[-1]
        if self.looped:
            if n_layers is None:
                raise ValueError(f"n_layers must be given where {first} is shared by all layers")
            self.n_layers = _checks.integer("n_layers", n_layers, 0)
        else:
            if n_layers not in (None, len(reference)):
                raise ValueError(
                    f"n_layers must be {len(reference)}, the layers of {first}, or None, "
                    f"got {n_layers!r}"
                )
            self.n_layers = len(reference)

    def extra_repr(self) -> str:
        """Shown by ``print``."""
        layers = "shared by all layers" if self.looped else "one set a layer"
        return f"n_layers={self.n_layers}, rows={self._rows}, {layers}"

    @property
    def _dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def _of_layer(self, name: str, layer: int) -> Tensor:
        matrix: Tensor = getattr(self, name)
        return matrix if self.looped else matrix[layer]

    @abstractmethod
    def layer(self, Z: Tensor, layer: int) -> Tensor:
        """Z_{l+1} from Z_l, for layer l = 0 … n_layers−1."""

    def forward(self, Z: Tensor) -> Tensor:
        """Z_L from Z₀.

        Args:
            Z: prompt, shape (..., m, n+1), leading batch dimensions allowed.

        Returns:
            Z_L, of the same shape.

        Raises:
            ValueError: Z has another number of rows, no context column, another dtype, NaN or infinity.
        """
        check_prompt(Z, self._rows, self._dtype)
        for layer in range(self.n_layers):
            Z = self.layer(Z, layer)
        return Z

    def layers(self, Z: Tensor) -> Tensor:
        """All of Z₀ … Z_L.

        Args:
            Z: prompt, shape (..., m, n+1), leading batch dimensions allowed.

        Returns:
            Stacked in front, shape (n_layers+1, ..., m, n+1).

        Raises:
            ValueError: as for ``forward``.
        """
        check_prompt(Z, self._rows, self._dtype)
        states = [Z]
        for layer in range(self.n_layers):
            states.append(self.layer(states[-1], layer))
        return torch.stack(states)


class DualHeadTransformer(_LayerStack):
    """Z_{l+1} = Z_l + V^cur Z_l K̃ + V^tgt Z_l K̃ Π with K̃ = softmax(Z_lᵀ A Z_l + M).

    Args:
        A, V_cur, V_tgt: shape (d+3, d+3), shared by all layers, or (n_layers, d+3, d+3).
        n_layers: number of layers ≥ 0; needed where the matrices are shared.

    Raises:
        ValueError: an argument is outside what is said above, or the matrices do not match.
    """

    A: Tensor
    V_cur: Tensor
    V_tgt: Tensor

    def __init__(
        self, A: Tensor, V_cur: Tensor, V_tgt: Tensor, n_layers: int | None = None
    ) -> None:
        super().__init__()
        self._register(n_layers, minimum_rows=4, A=A, V_cur=V_cur, V_tgt=V_tgt)

    @classmethod
    def td(
        cls, d: int, gamma: float, n_layers: int, dtype: torch.dtype = torch.float64
    ) -> DualHeadTransformer:
        """The constructed θ*: its l-th layer is the l-th step of weighted softmax TD from v₀ = 0.

        Args:
            d: number of features, ≥ 1.
            gamma: discount factor in [0, 1).
            n_layers: number of layers ≥ 0.
            dtype: a floating dtype.

        Returns:
            The network, one set of matrices shared by all layers.

        Raises:
            ValueError: an argument is outside what is said above.
        """
        return cls(
            attention_matrix(d, dtype),
            current_value_matrix(d, dtype),
            target_value_matrix(d, gamma, dtype),
            n_layers,
        )

    def layer(self, Z: Tensor, layer: int) -> Tensor:
        """One layer: both heads share K̃, the target head's output moves one column back in time.

        Args:
            Z: state of the network, shape (..., d+3, n+1).
            layer: number l of the layer, from 0.

        Returns:
            Z_{l+1}, of the same shape; nothing is checked.
        """
        attended = Z @ column_softmax(Z, self._of_layer("A", layer))
        shift = shift_matrix(Z.shape[-1] - 1, Z.dtype, Z.device)
        current = self._of_layer("V_cur", layer) @ attended
        target = self._of_layer("V_tgt", layer) @ attended @ shift
        return Z + current + target


class SoftmaxTransformer(_LayerStack):
    """One softmax head, then the temporal shift: H = Z_l + V Z_l K̃, Z_{l+1} = U H + W H Π.

    The shift has no parameters: U clears the target row and W refills it with γ times the new current
    values, moved one column back in time ((18)–(19)).

    Args:
        A, V: shape (d+3, d+3), shared by all layers, or (n_layers, d+3, d+3).
        gamma: discount factor in [0, 1) of the shift.
        n_layers: number of layers ≥ 0; needed where the matrices are shared.

    Raises:
        ValueError: an argument is outside what is said above, or the matrices do not match.
    """

    A: Tensor
    V: Tensor
    U: Tensor
    W: Tensor

    def __init__(self, A: Tensor, V: Tensor, gamma: float, n_layers: int | None = None) -> None:
        super().__init__()
        self._register(n_layers, minimum_rows=4, A=A, V=V)
        U, W = temporal_shift_matrices(self._rows - 3, gamma, A.dtype)
        self.register_buffer("U", U.to(A.device))
        self.register_buffer("W", W.to(A.device))

    @classmethod
    def td(
        cls, d: int, gamma: float, n_layers: int, dtype: torch.dtype = torch.float64
    ) -> SoftmaxTransformer:
        """The constructed θ*: its l-th layer is the l-th step of weighted softmax TD from v₀ = 0.

        Args:
            d: number of features, ≥ 1.
            gamma: discount factor in [0, 1).
            n_layers: number of layers ≥ 0.
            dtype: a floating dtype.

        Returns:
            The network, one set of matrices shared by all layers.

        Raises:
            ValueError: an argument is outside what is said above.
        """
        return cls(attention_matrix(d, dtype), current_value_matrix(d, dtype), gamma, n_layers)

    def layer(self, Z: Tensor, layer: int) -> Tensor:
        """One layer: attention updates the current values, the shift rewrites the target memory.

        Args:
            Z: state of the network, shape (..., d+3, n+1).
            layer: number l of the layer, from 0.

        Returns:
            Z_{l+1}, of the same shape; nothing is checked.
        """
        attended = Z @ column_softmax(Z, self._of_layer("A", layer))
        H = Z + self._of_layer("V", layer) @ attended
        return self.U @ H + self.W @ H @ shift_matrix(Z.shape[-1] - 1, Z.dtype, Z.device)


def linear_prompt(
    trajectory: Trajectory, features: Any, gamma: float, query: int | None = None
) -> Tensor:
    """The prompt of linear in-context TD (arXiv:2405.13861).

    Column k is [x(S_{k−1}); γ x(S_k); R_k] for k = 1..n; the last column is [x(q); 0; 0].

    Args:
        trajectory: context with states (..., n+1).
        features: x, shape (S, d) or (..., S, d), tensor or array.
        gamma: discount factor in [0, 1).
        query: state q, the same for the whole batch; None means S_n.

    Returns:
        Z₀, shape (..., 2d+1, n+1), in the dtype of the features.

    Raises:
        ValueError: an argument is outside what is said above.
    """
    gamma = _checks.discount(gamma)
    X = _gather(trajectory, features)
    d, n = X.shape[-2], trajectory.n
    Z = X.new_zeros(*X.shape[:-2], 2 * d + 1, n + 1)
    Z[..., :d, :] = X
    if query is not None:
        table = feature_table(features)
        Z[..., :d, -1] = table[..., _checks.integer("query", query, 0, table.shape[-2] - 1), :]
    Z[..., d : 2 * d, :-1] = gamma * X[..., 1:]
    Z[..., -1, :-1] = torch.as_tensor(trajectory.rewards).to(X)
    return Z


def read_linear_value(Z: Tensor) -> Tensor:
    """The value that linear in-context TD gives its query, −Z[2d+1, n+1].

    Args:
        Z: state of the network, shape (..., 2d+1, n+1).

    Returns:
        The value of the query, shape (...).
    """
    return -Z[..., -1, -1]


class LinearTransformer(_LayerStack):
    """Linear attention layers Z_{l+1} = Z_l + (1/n) P Z_l M (Z_lᵀ Q Z_l), M = diag(I_n, 0).

    Args:
        P, Q: shape (2d+1, 2d+1), shared by all layers, or (n_layers, 2d+1, 2d+1).
        n_layers: number of layers ≥ 0; needed where the matrices are shared.

    Raises:
        ValueError: an argument is outside what is said above, or the matrices do not match.
    """

    P: Tensor
    Q: Tensor

    def __init__(self, P: Tensor, Q: Tensor, n_layers: int | None = None) -> None:
        super().__init__()
        self._register(n_layers, minimum_rows=3, P=P, Q=Q)

    @classmethod
    def td(cls, d: int, n_layers: int, dtype: torch.dtype = torch.float64) -> LinearTransformer:
        """The construction of arXiv:2405.13861: batch linear TD with step size 1 from w₀ = 0.

        γ is part of the prompt. P has a single one, bottom right; Q has [[−I, I], [0, 0]] top left.

        Args:
            d: number of features, ≥ 1.
            n_layers: number of layers ≥ 0.
            dtype: a floating dtype.

        Returns:
            The network, one set of matrices shared by all layers.

        Raises:
            ValueError: an argument is outside what is said above.
        """
        _checks.integer("d", d, 1)
        P = torch.zeros(2 * d + 1, 2 * d + 1, dtype=dtype)
        P[-1, -1] = 1
        Q = torch.zeros_like(P)
        Q[:d, :d] = -torch.eye(d, dtype=dtype)
        Q[:d, d : 2 * d] = torch.eye(d, dtype=dtype)
        return cls(P, Q, n_layers)

    def layer(self, Z: Tensor, layer: int) -> Tensor:
        """One layer, in O(n d²).

        Args:
            Z: state of the network, shape (..., 2d+1, n+1).
            layer: number l of the layer, from 0.

        Returns:
            Z_{l+1}, of the same shape; nothing is checked.
        """
        return Z + linear_update(Z, self._of_layer("P", layer), self._of_layer("Q", layer))


def _gather(trajectory: Trajectory, features: Any) -> Tensor:
    """X = [x(S₀), …, x(S_n)], shape (..., d, n+1)."""
    if not isinstance(trajectory, Trajectory):
        raise ValueError(f"trajectory must be an ictd.Trajectory, got {type(trajectory).__name__}")
    table = feature_table(features)
    S, d = table.shape[-2:]
    _checks.states_below("trajectory.states", trajectory.states, S)
    states = torch.as_tensor(trajectory.states, device=table.device)
    batch = _checks.broadcast(features=tuple(table.shape[:-2]), trajectory=tuple(states.shape[:-1]))
    index = states[..., None].expand(*batch, states.shape[-1], d)
    gathered: Tensor = torch.gather(table.expand(*batch, S, d), -2, index).mT
    return gathered
