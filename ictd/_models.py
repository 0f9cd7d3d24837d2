"""The models that are pretrained, each as one tensor program for all seeds.

A model maps parameters, stacked over seeds, and windows to the values that the networks give the queries.
The literal networks are those of :mod:`ictd.transformer`. What is here has the same values and gradients,
where it can in fewer operations:

- masked softmax attention: over states instead of positions, as :func:`ictd.state_pass` does it, and with
  scores that all windows of a walk share, O(L S²) a window;
- linear attention: on the moments of the columns, O(n d²) a window for them and O(d³) a layer;
- softmax attention without masks, which sees all rows of Z: layer by layer as it is written, O(n² d).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ictd._checks import FloatArray
from ictd._config import PretrainConfig
from ictd._tasks import INITIAL, Batch, to_torch
from ictd.transformer import LinearTransformer, SoftmaxTransformer

# Each a tensor (seeds, …), or (seeds, L, …) where the layers have parameters of their own.
Parameters = dict[str, Tensor]


def build(config: PretrainConfig) -> Model:
    """The model of a configuration."""
    if config.attention == "linear":
        return Linear(config)
    return MaskedSoftmax(config) if config.masked else FreeSoftmax(config)


class Model(ABC):
    """What the training loop, the metrics and the result ask of a model."""

    def __init__(self, config: PretrainConfig) -> None:
        self.config = config
        self.gamma, self.d = config.gamma, config.n_features
        self.looped, self.n_layers = config.shared_layers, config.n_layers

    @property
    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each parameter in one layer, in the order in which they are drawn."""

    @abstractmethod
    def values(self, parameters: Parameters, batch: Batch) -> Tensor:
        """Values of the windows' queries, shape (seeds, tasks, windows)."""

    @abstractmethod
    def read(self, parameters: Parameters, batch: Batch, queries: Tensor) -> Tensor:
        """What the networks say of further queries, on the first window of each task.

        A query stands in a column of its own that is no source, beside that of S_n, so that the context
        stays as it is and the value depends on the query's features alone.

        Args:
            parameters: as for ``values``.
            batch: windows.
            queries: features, shape (seeds, tasks, Q, d).

        Returns:
            Values, shape (seeds, tasks, Q).
        """

    @abstractmethod
    def scores(self, parameters: Parameters, batch: Batch) -> Tensor | None:
        """g[query, source] of the states in each layer, shape (seeds, tasks, layers, S, S).

        One layer where all have the same, or where only the first is a function of the states; None
        where no softmax is taken.
        """

    @abstractmethod
    def network(self, parameters: Parameters) -> SoftmaxTransformer | LinearTransformer:
        """The literal network of one seed, from its parameters without the axis of the seeds."""

    def initial(self, scale: float) -> Parameters:
        """Parameters with entries N(0, scale²), from each seed's own stream."""
        layers = () if self.looped else (self.n_layers,)
        drawn: dict[str, list[FloatArray]] = {name: [] for name in self.shapes}
        for seed in self.config.seeds:
            rng = np.random.default_rng([seed, INITIAL])
            for name, shape in self.shapes.items():
                drawn[name].append(rng.normal(scale=scale, size=(*layers, *shape)))
        return {name: to_torch(self.config, np.stack(all)) for name, all in drawn.items()}

    def by_layer(self, parameter: Tensor) -> list[Tensor]:
        """The parameter of each layer, shape (seeds, …)."""
        return [parameter] * self.n_layers if self.looped else list(parameter.unbind(1))


class MaskedSoftmax(Model):
    """V is (a, b, c), the entries of row d+3 on rows d+1, d+2, d+3; A is its feature block."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"V": (3,), "A": (self.d, self.d)}

    def values(self, parameters: Parameters, batch: Batch) -> Tensor:
        g = self.scores(parameters, batch)
        # With E = exp(g − max) over all states, a window that has not visited the states that E is large
        # at could underflow to 0/0. A seed with such scores is computed window by window instead; the
        # others are not touched by that, to the last bit.
        spread = (g.amax(-1) - g.amin(-1)).detach().flatten(1).amax(-1)
        wide = spread > (80.0 if g.dtype == torch.float32 else 700.0)
        if not wide.any():
            return self._values(parameters["V"], g, batch, _shared_weights)
        result = g.new_empty(*batch.queries.shape)
        for rows, weights in ((~wide, _shared_weights), (wide, _window_weights)):
            index = rows.nonzero()[:, 0]
            part = replace(
                batch,
                features=batch.features[index],
                rewards=batch.rewards[index],
                states=batch.states[index],
            )
            values = self._values(parameters["V"][index], g[index], part, weights)
            result = result.index_copy(0, index, values)
        return result

    def read(self, parameters: Parameters, batch: Batch, queries: Tensor) -> Tensor:
        first = batch.first_window()
        g = self.scores(parameters, first)
        _, sums = self._pass(parameters["V"], g, first, _window_weights)
        visits, _ = first.counts()
        to_queries = self._scores(parameters["A"], queries, first.features)
        read = queries.new_zeros(())
        if self.looped:
            sums = [torch.stack(sums).sum(0)]
        for layer, errors in enumerate(sums):
            read = read + _window_weights(to_queries[:, :, layer], visits)(errors)
        return read[..., 0, :]

    def scores(self, parameters: Parameters, batch: Batch) -> Tensor:
        return self._scores(parameters["A"], batch.features, batch.features)

    def _scores(self, A: Tensor, queries: Tensor, sources: Tensor) -> Tensor:
        """x(s′)ᵀ A x(s) as [query, source], with an axis of layers behind that of the tasks."""
        A = (A[:, None] if self.looped else A)[:, None]
        return queries[:, :, None] @ A.mT @ sources[:, :, None].mT

    def network(self, parameters: Parameters) -> SoftmaxTransformer:
        V, A = parameters["V"], parameters["A"]
        A = torch.nn.functional.pad(A, (0, 3, 0, 3))
        row = torch.nn.functional.pad(V, (self.d, 0))
        V = torch.nn.functional.pad(row[..., None, :], (0, 0, self.d + 2, 0))
        return SoftmaxTransformer(A, V, self.gamma, self.n_layers if self.looped else None)

    def _values(self, V: Tensor, g: Tensor, batch: Batch, weights: _Weights) -> Tensor:
        states, _ = self._pass(V, g, batch, weights)
        return states.gather(-1, batch.queries[..., None])[..., 0]

    def _pass(
        self, V: Tensor, g: Tensor, batch: Batch, weights: _Weights
    ) -> tuple[Tensor, list[Tensor]]:
        """v_L of all states (seeds, tasks, windows, S), and what each layer sums by source.

        A layer is v ← v + (1/Z) E (a N⊙r + b γ N₂v + c N⊙v): the sums are what E is applied to.
        """
        visits, transitions = batch.counts()
        rewards = visits * batch.rewards[:, :, None]
        kernels = [weights(layer, visits) for layer in g.unbind(2)]
        v, sums = rewards.new_zeros(()), []
        for layer, entries in enumerate(self.by_layer(V)):
            a, b, c = entries[:, :, None, None, None].unbind(1)
            error = a * rewards
            if layer:
                error = error + b * self.gamma * _apply(transitions, v) + c * (visits * v)
            sums.append(error)
            v = v + kernels[0 if self.looped else layer](error)
        return v, sums


# From scores (seeds, tasks, Q, S) and visits (seeds, tasks, windows, S): a function that takes sums by
# source to their weighted sums by query, with the weights exp g / Σ N exp g.
_Weights = Callable[[Tensor, Tensor], Callable[[Tensor], Tensor]]


def _shared_weights(g: Tensor, visits: Tensor) -> Callable[[Tensor], Tensor]:
    """One matrix exp g for all windows."""
    E = (g - g.detach().amax(-1, keepdim=True)).exp().mT
    Z = visits @ E
    return lambda sums: (sums @ E) / Z


def _window_weights(g: Tensor, visits: Tensor) -> Callable[[Tensor], Tensor]:
    """A softmax for each window, over what it visits: right for scores of any size."""
    logits = g[:, :, None] + visits.log()[..., None, :]
    weights = torch.softmax(logits, -1) / visits.clamp(min=1)[..., None, :]
    return lambda sums: _apply(weights, sums)


class FreeSoftmax(Model):
    """All of V and A are free."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        m = self.d + 3
        return {"V": (m, m), "A": (m, m)}

    def values(self, parameters: Parameters, batch: Batch) -> Tensor:
        return self._current(parameters, _prompts(batch), batch.n)[..., batch.n]

    def read(self, parameters: Parameters, batch: Batch, queries: Tensor) -> Tensor:
        Z = _prompts(batch.first_window())[:, :, 0]
        columns = torch.nn.functional.pad(queries, (0, 3)).mT
        return self._current(parameters, torch.cat([Z, columns], -1), batch.n)[..., batch.n + 1 :]

    def scores(self, parameters: Parameters, batch: Batch) -> Tensor:
        # The column of a state in the prompt; after the first layer it is no function of the state.
        columns = torch.cat([batch.features, batch.rewards[..., None]], -1)
        columns = torch.nn.functional.pad(columns, (0, 2))[:, :, None]
        return columns @ self.by_layer(parameters["A"])[0][:, None, None].mT @ columns.mT

    def network(self, parameters: Parameters) -> SoftmaxTransformer:
        layers = self.n_layers if self.looped else None
        return SoftmaxTransformer(parameters["A"], parameters["V"], self.gamma, layers)

    def _current(self, parameters: Parameters, Z: Tensor, n: int) -> Tensor:
        """The last row of Z_L; the first n columns are sources, those behind the next are queries only."""
        d = self.d
        batch_axes = (1,) * (Z.ndim - 3)
        for V, A in zip(*(self.by_layer(parameters[name]) for name in ("V", "A")), strict=True):
            V, A = (matrix.reshape(-1, *batch_axes, d + 3, d + 3) for matrix in (V, A))
            sources = Z[..., :n]
            weights = torch.softmax(sources.mT @ A @ Z, dim=-2)
            H = Z + V @ (sources @ weights)
            target = self.gamma * H[..., d + 2 :, 1 : n + 1]
            target = torch.nn.functional.pad(target, (0, Z.shape[-1] - n))
            Z = torch.cat([H[..., : d + 1, :], target, H[..., d + 2 :, :]], -2)
        return Z[..., -1, :]


class Linear(Model):
    """P and Q of linear attention; masked, P has its last entry alone and Q its block of features."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        d, m = self.d, 2 * self.d + 1
        return (
            {"P": (1, 1), "Q": (2 * d, 2 * d)} if self.config.masked else {"P": (m, m), "Q": (m, m)}
        )

    def values(self, parameters: Parameters, batch: Batch) -> Tensor:
        columns = self._columns(batch)
        queries = states_features(batch.features, batch.queries)
        return self._read(parameters, columns, queries[..., None, :])[..., 0]

    def read(self, parameters: Parameters, batch: Batch, queries: Tensor) -> Tensor:
        columns = self._columns(batch.first_window())
        return self._read(parameters, columns, queries[:, :, None])[:, :, 0]

    def scores(self, parameters: Parameters, batch: Batch) -> None:
        return None

    def network(self, parameters: Parameters) -> LinearTransformer:
        P, Q = self._full(parameters)
        return LinearTransformer(P, Q, self.n_layers if self.looped else None)

    def _full(self, parameters: Parameters) -> tuple[Tensor, Tensor]:
        P, Q = parameters["P"], parameters["Q"]
        if self.config.masked:
            P = torch.nn.functional.pad(P, (2 * self.d, 0, 2 * self.d, 0))
            Q = torch.nn.functional.pad(Q, (0, 1, 0, 1))
        return P, Q

    def _columns(self, batch: Batch) -> Tensor:
        """The context columns [x(S_{k−1}); γ x(S_k); R_k], shape (seeds, tasks, windows, m, n)."""
        x = states_features(batch.features, batch.states)
        rewards = batch.rewards.gather(-1, batch.states.flatten(2)[..., :-1])
        columns = torch.cat([x[..., :-1, :], self.gamma * x[..., 1:, :], rewards[..., None]], -1)
        return columns.unfold(2, batch.n, 1)

    def _read(self, parameters: Parameters, columns: Tensor, queries: Tensor) -> Tensor:
        """Values of queries (seeds, tasks, windows, Q, d) on each window.

        A layer is Z ← T Z, T = I + P G Q, with the moments G = C Cᵀ/n of the context columns C, and so
        G ← T G Tᵀ. The last two of these products are never formed, only applied to the queries: for few
        queries that takes less. Products with P and Q are taken of all windows of a seed at once.
        """
        layers = list(
            zip(*(self.by_layer(matrix) for matrix in self._full(parameters)), strict=True)
        )
        moments = [_product(columns, columns.mT) / columns.shape[-1]]
        for P, Q in layers[: max(self.n_layers - 3, 0)]:
            G = moments[-1]
            # With H = G Q G Qᵀ G, T G Tᵀ is G + Y + Yᵀ, Y = (G Qᵀ G + P H/2) Pᵀ.
            half = _product(_times(G, Q.mT), G)
            H = _product(_times(G, Q), half)
            Y = _times(half + _times(H, P.mT).mT / 2, P.mT)
            moments.append(G + Y + Y.mT)

        def applied(layer: int, rows: Tensor) -> Tensor:
            """G of a layer times each of the rows (…, Q, m)."""
            if layer < len(moments):
                return _product(rows, moments[layer])
            P, Q = layers[layer - 1]
            rows = rows + _times(applied(layer - 1, _times(rows, P)), Q)
            rows = applied(layer - 1, rows)
            return rows + _times(applied(layer - 1, _times(rows, Q.mT)), P.mT)

        z = torch.nn.functional.pad(queries, (0, self.d + 1))
        for layer, (P, Q) in enumerate(layers):
            z = z + _times(applied(layer, _times(z, Q.mT)), P.mT)
        return -z[..., -1]


def _apply(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector[..., None])[..., 0]


def _times(tensor: Tensor, matrix: Tensor) -> Tensor:
    """The tensor (seeds, …, m) times a matrix (seeds, m, m) of its seed, as one product a seed."""
    return _product(tensor.flatten(1, -2), matrix).view_as(tensor)


class _Product(torch.autograd.Function):
    """A product of many small matrices by NumPy, where that is several times faster than torch's."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return _by_numpy(a, b)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        needs_a, needs_b = ctx.needs_input_grad
        return (
            _by_numpy(gradient, b.mT) if needs_a else None,
            _by_numpy(a.mT, gradient) if needs_b else None,
        )


def _product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b, the leading dimensions equal."""
    if a.device.type != "cpu":
        return a @ b
    product: Tensor = _Product.apply(a, b)  # type: ignore[no-untyped-call]
    return product


def _by_numpy(a: Tensor, b: Tensor) -> Tensor:
    with np.errstate(all="ignore"):  # a seed that diverges is seen by its loss
        return torch.from_numpy(np.matmul(a.detach().numpy(), b.detach().numpy()))


def states_features(features: Tensor, states: Tensor) -> Tensor:
    """Features of states (seeds, tasks, k), shape (seeds, tasks, k, d)."""
    return features.gather(2, states[..., None].expand(*states.shape, features.shape[-1]))


def _prompts(batch: Batch) -> Tensor:
    """Z₀ of each window, shape (seeds, tasks, windows, d+3, n+1)."""
    x = states_features(batch.features, batch.states)
    rewards = batch.rewards.gather(-1, batch.states)[..., None]
    columns = torch.nn.functional.pad(torch.cat([x, rewards], -1), (0, 2))
    Z = columns.unfold(2, batch.n + 1, 1).clone()
    Z[..., -3, -1] = 0
    return Z
