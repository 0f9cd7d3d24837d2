"""What is measured of a pretraining run, on tasks that it does not train on."""

from __future__ import annotations

import torch
from torch import Tensor

from ictd._checks import FloatArray
from ictd._config import PretrainConfig
from ictd._models import Linear, MaskedSoftmax, Model, Parameters, states_features
from ictd._tasks import EVALUATION, Batch, draw, to_torch
from ictd.transformer import LinearTransformer, td_direction

# The step of linear TD starts at one, and is trained so long on the held-out tasks.
_STEP_UPDATES, _STEP_RATE = 200, 0.02


class Metrics:
    """Held-out tasks of each seed, the same at each evaluation, and what does not change on them."""

    def __init__(self, config: PretrainConfig, model: Model) -> None:
        self.config, self.model = config, model
        n = config.context_length
        tasks = draw(config, (EVALUATION,), config.eval_tasks, walks=1, length=n + 1)
        self.batch = Batch(
            to_torch(config, tasks.features),
            to_torch(config, tasks.chains.reward),
            to_torch(config, tasks.states[:, :, 0]),
            n,
        )
        self.context = self.batch.first_window()
        self.law = to_torch(config, tasks.chains.stationary)
        self.true_values = to_torch(config, tasks.chains.value)
        visits, _ = self.context.counts()
        self.visits = visits[:, :, 0]
        self.construction = _construction(config, self.context)
        self.linear_td = LinearTD(config, self.batch).weights()[:, :, 0].detach()
        # Takes values to the weights w of least norm that make ⟨x, w⟩ closest to them under μ.
        root = self.law.sqrt()
        self.projection = (
            torch.linalg.pinv(root[..., None] * self.context.features) * root[..., None, :]
        )

    def measure(self, parameters: Parameters) -> dict[str, FloatArray]:
        """Name to values, first axis the seeds; :class:`ictd.PretrainResult` says what they are."""
        measured = dict(parameters)
        if "A" in parameters:
            d = self.config.n_features
            block = parameters["A"][..., :d, :d]
            diagonal = torch.diagonal(block, dim1=-2, dim2=-1)
            measured["A_trace"] = diagonal.sum(-1)
            measured["A_off_diagonal"] = (
                (block - torch.diag_embed(diagonal)).flatten(-2).norm(dim=-1)
            )
        measured |= self._diagonality(parameters) | self._values(parameters)
        # Copies: the parameters go on changing in place.
        return {
            name: value.detach().double().cpu().numpy().copy() for name, value in measured.items()
        }

    def _diagonality(self, parameters: Parameters) -> dict[str, Tensor]:
        scores = self.model.scores(parameters, self.context)
        if scores is None:
            return {}
        N, seen = self.visits[:, :, None], (self.visits > 0)[:, :, None]
        own = _diagonal(scores, N)
        population = _diagonal(scores, self.law[:, :, None])
        seen_own = torch.where(seen, own, 0.0)
        return {
            "visit_weighted_diagonality": (own * N).sum(-1).div(N.sum(-1)).mean(1),
            "state_mean_diagonality": seen_own.sum(-1).div(seen.sum(-1)).mean(1),
            "minimum_diagonality": torch.where(seen, own, 1.0).amin(-1).mean(1),
            "population_diagonality": population.amin(-1).mean(1),
        }

    def _values(self, parameters: Parameters) -> dict[str, Tensor]:
        x = self.context.features.clone().requires_grad_()
        with torch.enable_grad():
            values = self.model.read(parameters, self.context, x)
            (slopes,) = torch.autograd.grad(values.sum(), x)
        v, mu, x = values.detach(), self.law, self.context.features
        w = self.linear_td
        difference = v - (x @ w[..., None])[..., 0]
        return {
            "value_error": _rms(v - self.true_values, mu),
            "construction_error": _rms(v - self.construction, mu),
            "VD": (mu * difference.square()).sum(-1).mean(1),
            "IWS": _cosine((self.projection @ v[..., None])[..., 0], w).mean(1),
            "SS": (mu * _cosine(slopes, w[:, :, None])).sum(-1).mean(1),
        }


def _diagonal(scores: Tensor, weights: Tensor) -> Tensor:
    """Diagonal of softmax(scores + log weights), shape (seeds, tasks, layers, S)."""
    kernel = torch.softmax(scores + weights.log()[..., None, :], -1)
    return torch.diagonal(kernel, dim1=-2, dim2=-1)


def _rms(error: Tensor, mu: Tensor) -> Tensor:
    """Root mean square under μ, mean over tasks."""
    return (mu * error.square()).sum(-1).sqrt().mean(1)


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    return torch.nn.functional.cosine_similarity(a, b.expand_as(a), dim=-1)


def _construction(config: PretrainConfig, context: Batch) -> Tensor:
    """Values of the constructed network θ* on the contexts, shape (seeds, tasks, S)."""
    d, x = config.n_features, context.features
    layers = () if config.shared_layers else (config.n_layers,)
    model: Model
    if config.attention == "linear":
        network = LinearTransformer.td(d, config.n_layers)
        model, matrices = Linear(config), {"P": network.P, "Q": network.Q}
        if config.masked:
            matrices = {"P": network.P[-1:, -1:], "Q": network.Q[:-1, :-1]}
    else:
        model = MaskedSoftmax(config)
        matrices = {"V": td_direction(d)[d:], "A": torch.eye(d)}
    parameters = {
        name: matrix.detach().to(x).expand(len(x), *layers, *matrix.shape)
        for name, matrix in matrices.items()
    }
    return model.read(parameters, context, x)


class LinearTD:
    """L steps of batch linear TD on the windows of a batch, with a step size for each seed.

    It starts at one and is trained on the same windows by Adam on the TD errors at their queries, as the
    networks are.
    """

    def __init__(self, config: PretrainConfig, batch: Batch, updates: int = _STEP_UPDATES) -> None:
        x, n = batch.features[:, :, None], batch.n
        visits, transitions = batch.counts()
        self.gamma, self.n_layers = config.gamma, config.n_layers
        # Means over a window of R x and of x (x − γ x′)ᵀ.
        self.b = x.mT @ (visits * batch.rewards[:, :, None])[..., None] / n
        self.C = x.mT @ (visits[..., None] * x - self.gamma * transitions @ x) / n
        self.queries = states_features(batch.features, batch.queries)
        self.reward = batch.rewards.gather(-1, batch.queries[..., :1])[..., 0]
        self.step = torch.ones(len(x), dtype=x.dtype, device=x.device, requires_grad=True)
        adam = torch.optim.Adam([self.step], lr=_STEP_RATE)
        for _ in range(updates):
            adam.zero_grad()
            torch.autograd.backward(self.losses().sum())
            adam.step()

    def weights(self) -> Tensor:
        """w_L on each window, shape (seeds, tasks, windows, d)."""
        w = torch.zeros_like(self.b)
        for _ in range(self.n_layers):
            w = w + self.step[:, None, None, None, None] * (self.b - self.C @ w)
        return w[..., 0]

    def losses(self) -> Tensor:
        """Mean squared TD error of each seed, the target held constant, shape (seeds,)."""
        v = (self.queries * self.weights()).sum(-1)
        target = self.reward + self.gamma * v[..., 1].detach()
        return (target - v[..., 0]).square().mean(1)
