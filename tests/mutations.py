"""Break the library on purpose, one line at a time, and see the tests fail.

    python tests/mutations.py [--list] [NAME ...]

Each mutation replaces one piece of source text in a copy of ``ictd`` in a temporary folder, and the tests
named beside it run there; the working tree is never touched. Exit status 1 if a mutant survives, breaks
the test run itself, or has a text that is not found exactly once. Each test that caught one has to pass on
the copy without a mutation.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from warm_tests import run_pytest

ROOT = Path(__file__).resolve().parents[1]
AT_ONCE = 2

# What the copy's test run needs instead of the project's own conftest.py: proof that the copy is what is
# tested, few examples, and no search for the smallest one.
CONFTEST = """\
from pathlib import Path

import hypothesis
import ictd

assert Path(ictd.__file__).resolve().parents[1] == Path(__file__).resolve().parents[1], ictd.__file__
hypothesis.settings.register_profile(
    "mutations",
    max_examples=12,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
hypothesis.settings.load_profile("mutations")
"""


@dataclass(frozen=True)
class Mutation:
    """One change of ictd/MODULE.py; `tests` are the stems of the files that must catch it."""

    name: str
    module: str
    before: str
    after: str
    tests: tuple[str, ...] = ()

    @property
    def test_files(self) -> tuple[str, ...]:
        return tuple(f"tests/test_{stem}.py" for stem in self.tests or (self.module,))


MUTATIONS = [
    # The construction: u, A, U, W, Π, the mask, the prompt.
    Mutation("u-sign-of-target", "transformer", "[1.0, 1.0, -1.0]", "[1.0, -1.0, -1.0]"),
    Mutation("u-sign-of-current", "transformer", "[1.0, 1.0, -1.0]", "[1.0, 1.0, 1.0]"),
    Mutation("a-reads-the-reward", "transformer", "+ [0.0] * 3,", "+ [1.0, 0.0, 0.0],"),
    Mutation("a-reads-the-memories", "transformer", "+ [0.0] * 3,", "+ [0.0, 1.0, 1.0],"),
    Mutation(
        "target-head-gamma-twice",
        "transformer",
        "row = _checks.discount(gamma) *",
        "row = _checks.discount(gamma) ** 2 *",
    ),
    Mutation(
        "shift-gamma-twice", "transformer", "W[d + 1, d + 2] = gamma", "W[d + 1, d + 2] = gamma**2"
    ),
    Mutation(
        "shift-gamma-dropped", "transformer", "W[d + 1, d + 2] = gamma", "W[d + 1, d + 2] = 1"
    ),
    Mutation("u-does-not-clear", "transformer", "U[d + 1, d + 1] = 0", "U[d + 1, d + 1] = 1"),
    Mutation("pi-the-other-way", "transformer", "device=device), -1)", "device=device), 1)"),
    Mutation(
        "mask-dropped",
        "attention",
        "mask[-1] = -torch.inf",
        "mask[-1] = 0",
        ("attention", "transformer"),
    ),
    Mutation(
        "mask-on-the-query-column", "attention", "mask[-1] = -torch.inf", "mask[:, -1] = -torch.inf"
    ),
    Mutation("rewards-one-late", "transformer", "rows[..., 0, :-1] =", "rows[..., 0, 1:] ="),
    Mutation("read-the-target-row", "transformer", "return Z[..., -1, :]", "return Z[..., -2, :]"),
    # The layers.
    Mutation(
        "softmax-over-queries",
        "attention",
        "torch.softmax(scores, dim=-2)",
        "torch.softmax(scores, dim=-1)",
    ),
    Mutation(
        "softmax-times-one-over-n",
        "attention",
        "return torch.softmax(scores, dim=-2)",
        "return torch.softmax(scores, dim=-2) / (Z.shape[-1] - 1)",
    ),
    Mutation(
        "softmax-without-gradient",
        "attention",
        "return torch.softmax(scores, dim=-2)",
        "return torch.softmax(scores.detach(), dim=-2)",
    ),
    Mutation(
        "a-transposed",
        "attention",
        "scores = Z.mT @ A @ Z",
        "scores = Z.mT @ A.mT @ Z",
        ("attention", "transformer"),
    ),
    Mutation(
        "shift-refills-old-values",
        "transformer",
        "self.U @ H + self.W @ H @",
        "self.U @ H + self.W @ Z @",
    ),
    Mutation("dual-head-without-shift", "transformer", "@ attended @ shift", "@ attended"),
    Mutation(
        "dual-head-target-with-current-row",
        "transformer",
        'target = self._of_layer("V_tgt", layer)',
        'target = self._of_layer("V_cur", layer)',
    ),
    Mutation(
        "residual-dropped", "transformer", "return Z + current + target", "return current + target"
    ),
    Mutation("first-layer-everywhere", "transformer", "else matrix[layer]", "else matrix[0]"),
    # The linear transformer.
    Mutation(
        "linear-readout-sign", "transformer", "return -Z[..., -1, -1]", "return Z[..., -1, -1]"
    ),
    Mutation("linear-q-sign", "transformer", "= -torch.eye(d,", "= torch.eye(d,"),
    Mutation("linear-prompt-without-gamma", "transformer", "= gamma * X[..., 1:]", "= X[..., 1:]"),
    Mutation(
        "linear-prompt-shifted", "transformer", "= gamma * X[..., 1:]", "= gamma * X[..., :-1]"
    ),
    Mutation("p-and-q-swapped", "attention", "P @ moments @ Q @ Z", "Q @ moments @ P @ Z"),
    Mutation("q-transposed", "attention", "P @ moments @ Q @ Z", "P @ moments @ Q.mT @ Z"),
    Mutation(
        "linear-query-as-source",
        "attention",
        "context = Z[..., :-1]",
        "context = Z",
        ("attention", "transformer"),
    ),
    Mutation("linear-attention-without-one-over-n", "attention", " / context.shape[-1]", ""),
    # The pass over states.
    Mutation(
        "state-pass-counts-a-visit-once",
        "statewise",
        "torch.from_numpy(counts.visits).log()",
        "torch.from_numpy(counts.visits).sign().log()",
    ),
    Mutation(
        "state-pass-attends-to-unvisited-states",
        "statewise",
        "torch.from_numpy(counts.visits).log()",
        "torch.from_numpy(counts.visits).clamp(min=1).log()",
    ),
    Mutation("state-pass-a-transposed", "statewise", "@ A.mT @", "@ A @"),
    Mutation(
        "state-pass-softmax-over-queries",
        "statewise",
        "log_visits[..., None, None, :], dim=-1)",
        "log_visits[..., None, None, :], dim=-2)",
    ),
    Mutation(
        "state-pass-without-gradient-to-the-scores",
        "statewise",
        "torch.softmax(scores +",
        "torch.softmax(scores.detach() +",
    ),
    Mutation("state-pass-without-gamma", "statewise", "+ b * gamma * following", "+ b * following"),
    Mutation("state-pass-reward-and-target-swapped", "statewise", "a, b, c = V", "b, a, c = V"),
    Mutation("state-pass-target-and-current-swapped", "statewise", "a, b, c = V", "a, c, b = V"),
    Mutation(
        "state-pass-sums-of-rewards",
        "counts",
        "self.reward_sums / divisor",
        "self.reward_sums",
        ("statewise",),
    ),
    Mutation(
        "state-pass-counts-of-successors",
        "counts",
        "self.transitions / divisor[..., None]",
        "self.transitions",
        ("statewise",),
    ),
    Mutation(
        "state-pass-reversed-chain",
        "statewise",
        "following = (successors @",
        "following = (successors.mT @",
    ),
    Mutation(
        "state-pass-first-layer-everywhere",
        "statewise",
        "index = 0 if looped else layer",
        "index = 0",
    ),
    Mutation("state-pass-residual-dropped", "statewise", "v = v + (M[", "v = (M["),
    Mutation("state-pass-start-dropped", "statewise", "iterates = [v]", "iterates = []"),
    Mutation(
        "state-pass-layers-in-front",
        "statewise",
        "torch.stack(iterates, dim=-2)",
        "torch.stack(iterates, dim=0)",
    ),
    Mutation("state-pass-other-dtypes-pass", "statewise", " or value.dtype != x.dtype:", ":"),
    Mutation(
        "state-pass-layers-may-differ", "statewise", "if A.shape[-3] != V.shape[-2]:", "if False:"
    ),
    # Kernels and counts.
    Mutation(
        "maximum-over-unvisited",
        "kernels",
        "return _softmax(g, visits[..., None, :])",
        "return _softmax(check_scores(scores), visits[..., None, :]) * np.isfinite(g)",
        ("kernels", "td"),
    ),
    Mutation("no-maximum-subtracted", "kernels", "np.where(np.isfinite(top), top, 0.0)", "0.0"),
    Mutation(
        "visits-counted-once", "kernels", "(multiplicity * weights).sum", "weights.sum", ("td",)
    ),
    Mutation(
        "all-minus-infinity-weighs-one",
        "kernels",
        "out=np.zeros_like",
        "out=np.ones_like",
        ("kernels",),
    ),
    Mutation(
        "unvisited-state-moves",
        "kernels",
        "out=np.zeros_like(weights), where=total > 0)",
        "out=np.full_like(weights, 1 / weights.shape[-1]), where=total > 0)",
        ("td",),
    ),
    Mutation("sharpness-ignored", "kernels", "= beta * (x @", "= 1.0 * (x @"),
    Mutation(
        "transitions-transposed",
        "counts",
        "self.transitions.reshape(*self.batch, self.S, self.S)",
        "self.transitions.reshape(*self.batch, self.S, self.S).swapaxes(-1, -2)",
    ),
    Mutation(
        "source-and-next-swapped",
        "counts",
        "cell = self.first_cell + states[:, start:stop]",
        "cell = self.first_cell + states[:, start + 1 : stop + 1]",
    ),
    Mutation("td-error-without-gamma", "counts", "+ gamma * bootstrap", "+ bootstrap"),
    Mutation("td-error-counts-a-visit-once", "counts", "- self.visits * values", "- values"),
    Mutation("streams-need-not-join", "counts", "if (first != last_state).any():", "if False:"),
    Mutation(
        "chunks-added-out-of-order",
        "counts",
        "np.concatenate([np.arange(n_cells), cell])",
        "np.concatenate([np.arange(n_cells) * 0, cell])",
    ),
    Mutation("blocks-of-everything", "counts", "_BLOCK = 1 << 17", "_BLOCK = 1 << 40"),
    Mutation(
        "sum-without-the-rewards-of-one",
        "counts",
        "self.reward_sums + other.reward_sums,",
        "self.reward_sums,",
    ),
    Mutation(
        "last-block-cut-short",
        "counts",
        "stop = min(start + length, trajectory.n)",
        "stop = min(start + length, trajectory.n - (start > 0))",
    ),
    # The operator.
    Mutation(
        "kernel-counts-a-visit-once",
        "_kernel_operator",
        "visit_weights(scores, visits) * visits[..., None, :]",
        "visit_weights(scores, visits)",
        ("operator",),
    ),
    Mutation(
        "next-states-before-the-kernel",
        "_kernel_operator",
        "self.M @ self.transition",
        "self.transition @ self.M",
        ("operator",),
    ),
    Mutation(
        "population-by-the-start-law",
        "operator",
        "KernelOperator(g, mrp.stationary, mrp",
        "KernelOperator(g, mrp.initial, mrp",
    ),
    Mutation(
        "reward-sums-for-means",
        "counts",
        "self.reward_sums / divisor",
        "self.reward_sums",
        ("operator",),
    ),
    Mutation(
        "contraction-by-columns",
        "_kernel_operator",
        "np.abs(layer).sum(-1).max(-1)",
        "np.abs(layer).sum(-2).max(-1)",
        ("operator",),
    ),
    Mutation(
        "contraction-without-gamma",
        "_kernel_operator",
        "alpha * (self.M - gamma * self.P)",
        "alpha * (self.M - self.P)",
        ("operator",),
    ),
    Mutation(
        "bound-without-a-two",
        "_kernel_operator",
        "abs(alpha) * (1 - m + gamma)",
        "abs(alpha) * gamma",
        ("operator",),
    ),
    Mutation(
        "margin-of-another-assumption",
        "_kernel_operator",
        "self.diagonality() - (1 + _checks.discount(gamma)) / 2",
        "self.diagonality() - _checks.discount(gamma) / 2",
        ("operator",),
    ),
    Mutation(
        "mean-diagonality-over-all-states",
        "_kernel_operator",
        "self._diagonal.sum(-1) / self.visited.sum(-1)",
        "self._diagonal.mean(-1)",
        ("operator",),
    ),
    Mutation(
        "rate-with-what-does-not-move",
        "_kernel_operator",
        "np.where(self.moving.mask, factors, 0.0)",
        "factors",
        ("operator",),
    ),
    Mutation(
        "half-the-largest-step",
        "_kernel_operator",
        "np.divide(2 * values.real, size",
        "np.divide(values.real, size",
        ("operator",),
    ),
    Mutation(
        "largest-step-of-the-modulus",
        "_kernel_operator",
        "np.divide(2 * values.real, size",
        "np.divide(2 * np.abs(values), size",
        ("operator",),
    ),
    Mutation(
        "values-with-the-step-on-the-reward-only",
        "_kernel_operator",
        "self.rewards + gamma * _apply(self.transition, v) - v",
        "self.rewards + gamma * _apply(self.transition, v) - v / 2",
        ("operator",),
    ),
    Mutation(
        "fixed-point-reads-unvisited-rewards",
        "_kernel_operator",
        "np.where(visited[..., None], self._bellman(gamma), np.eye(self.n_states))",
        "np.where(visited[..., None, :], self._bellman(gamma), np.eye(self.n_states))",
        ("operator",),
    ),
    Mutation(
        "limit-forgets-the-start",
        "_kernel_operator",
        "error = self.rewards - _apply(bellman, start)",
        "error = self.rewards - start",
        ("operator",),
    ),
    Mutation(
        "eigenvalues-without-the-singular-values",
        "_moving",
        "self.sigma[..., None] * (self.Wt @ bellman @ self.U)",
        "self.Wt @ bellman @ self.U",
        ("operator",),
    ),
    Mutation("equal-features-move", "_moving", "STILL = 1e-12", "STILL = 1e-30", ("operator",)),
    Mutation(
        "small-directions-do-not-move", "_moving", "STILL = 1e-12", "STILL = 1e-2", ("operator",)
    ),
    Mutation(
        "singular-batches-raise",
        "_moving",
        "singular = np.linalg.cond(system) > 1e14",
        "singular = np.linalg.cond(system) < 0",
        ("operator",),
    ),
    # Theorem A and its certificates.
    Mutation(
        "weights-without-the-normaliser",
        "_reversible",
        "self.log_w: FloatArray = self.log_visits + log_Z",
        "self.log_w: FloatArray = self.log_visits + 0 * log_Z",
        ("theorem_a",),
    ),
    Mutation(
        "norm-for-the-numerical-radius",
        "_reversible",
        "self._ratios(self.log_w, 0.5)",
        "self._ratios(self.log_w, 1.0)",
        ("theorem_a",),
    ),
    Mutation(
        "symmetric-part-doubled",
        "_reversible",
        "np.swapaxes(similar, -1, -2)) / 2)",
        "np.swapaxes(similar, -1, -2)))",
        ("theorem_a",),
    ),
    Mutation(
        "cheap-bound-by-rows",
        "_reversible",
        "self._ratios(self.log_w, 1.0).sum(-2)",
        "self._ratios(self.log_w, 1.0).sum(-1)",
        ("theorem_a",),
    ),
    Mutation(
        "flow-forgotten",
        "_reversible",
        "np.exp(largest - smallest) * flow",
        "np.exp(largest - smallest)",
        ("theorem_a",),
    ),
    Mutation(
        "asymmetric-scores-pass",
        "_reversible",
        "if not np.isclose(scores, mirrored, rtol=0, atol=1e-12 * (1 + largest)).all():",
        "if False:",
        ("theorem_a",),
    ),
    Mutation(
        "theorem-a-at-one-end-only",
        "_kernel_operator",
        "for s in (np.ones_like(nu), smallest)]",
        "for s in (smallest, smallest)]",
        ("theorem_a",),
    ),
    Mutation(
        "theorem-a-without-the-step",
        "_kernel_operator",
        "spread = abs(alpha) * nu if alpha",
        "spread = nu if alpha",
        ("theorem_a",),
    ),
    # Theorem 2 and the limit law.
    Mutation(
        "eta-without-the-margin", "bounds", "1 - mrp.gamma**2 + C, out", "1 - mrp.gamma**2, out"
    ),
    Mutation("half-the-required-length", "bounds", "np.ceil(2 * (", "np.ceil(("),
    Mutation("two-sides-forgotten", "bounds", "np.log(4 * self", "np.log(2 * self"),
    Mutation("floor-off-by-two", "bounds", "floor = 2 * self.gamma", "floor = self.gamma"),
    Mutation("floor-with-all-visits", "bounds", "(2 * (1 - self.eta) * n", "(2 * n"),
    Mutation(
        "hitting-times-of-the-start", "bounds", "[..., None, :] - F) / mu", "[..., None] - F) / mu"
    ),
    Mutation(
        "covariance-with-one-gamma", "bounds", "root = mrp.gamma * K", "root = mrp.gamma**0.5 * K"
    ),
    Mutation(
        "covariance-of-second-moments",
        "bounds",
        "(v[..., None, :] - mean) ** 2",
        "v[..., None, :] ** 2",
    ),
    Mutation(
        "covariance-without-the-share",
        "bounds",
        "np.sqrt(variance / mrp.stationary)",
        "np.sqrt(variance)",
    ),
    # TD on a context.
    Mutation(
        "query-and-source-swapped",
        "td",
        "visit_weights(g, counts",
        "visit_weights(np.swapaxes(g, -1, -2), counts",
    ),
    Mutation(
        "mean-instead-of-sum",
        "td",
        "(weights @ counts.td_error_sums(v, gamma)[..., None])",
        "(weights @ counts.td_error_sums(v, gamma)[..., None] / trajectory.n)",
    ),
    Mutation(
        "step-size-ignored",
        "_iteration",
        "iterates[t] + alpha * update",
        "iterates[t] + update",
        ("td",),
    ),
    Mutation(
        "step-size-twice",
        "_iteration",
        "iterates[t] + alpha * update",
        "iterates[t] + alpha**2 * update",
        ("td",),
    ),
    Mutation(
        "schedule-one-late", "_iteration", "step_size(t) for t", "step_size(t + 1) for t", ("td",)
    ),
    Mutation("start-ignored", "_iteration", "iterates[0] = start", "iterates[0] = 0", ("td",)),
    Mutation(
        "linear-td-without-one-over-n",
        "td",
        "swapaxes(x, -1, -2) / trajectory.n",
        "swapaxes(x, -1, -2)",
    ),
    Mutation(
        "lstd-without-gamma",
        "td",
        "np.eye(x.shape[-2]) - gamma * counts.transitions",
        "np.eye(x.shape[-2]) - counts.transitions",
    ),
    Mutation(
        "certainty-equivalence-without-gamma",
        "td",
        "system = diagonal - gamma * counts.transitions",
        "system = diagonal - counts.transitions",
    ),
    Mutation(
        "certainty-equivalence-of-the-reversed-chain",
        "td",
        "np.linalg.solve(system, counts.reward_sums[..., None])",
        "np.linalg.solve(np.swapaxes(system, -1, -2), counts.reward_sums[..., None])",
    ),
    # Chains and sampling.
    Mutation(
        "value-of-the-reversed-chain",
        "mrp",
        "self.gamma * self.transition",
        "self.gamma * self.transition.swapaxes(-1, -2)",
    ),
    Mutation(
        "stationary-law-of-the-transpose",
        "mrp",
        "A = self.transition.copy()",
        "A = self.transition.swapaxes(-1, -2).copy()",
    ),
    Mutation("reducible-chains-pass", "mrp", "if not reach.all():", "if False:"),
    Mutation(
        "paths-too-short", "mrp", "max(S - 1, 1).bit_length()", "max(S - 1, 1).bit_length() - 1"
    ),
    Mutation(
        "reward-of-the-state-entered",
        "mrp",
        "states[..., :-1], axis=-1)",
        "states[..., 1:], axis=-1)",
    ),
    Mutation("bisect-left", "mrp", "import bisect_right", "import bisect_left as bisect_right"),
    Mutation(
        "together-at-the-edge", "mrp", "states[t - 1]] <= draws[t]", "states[t - 1]] < draws[t]"
    ),
    Mutation(
        "rounding-left-over", "mrp", "np.where(total >= total[..., -1:], 1.0, total)", "total"
    ),
    Mutation(
        "stream-starts-anew",
        "mrp",
        "following = _walk(rows[chains, last], rows, uniforms)",
        "following = _walk(start, rows, uniforms)",
    ),
    Mutation(
        "start-law-ignored",
        "mrp",
        "_cumulative(self.initial).reshape",
        "_cumulative(np.ones((*self.batch, S)) / S).reshape",
    ),
    Mutation(
        "boyan-last-row", "mrp", "P[..., S - 1, :] = _random_law", "P[..., S - 2, :] = _random_law"
    ),
    Mutation(
        "boyan-one-step-only", "mrp", "P[..., i, i + 2] = 1 - forward", "P[..., i, i + 1] = 1"
    ),
    Mutation("loop-without-the-cycle", "mrp", "kept[..., i, (i + 1) % S] = True", "pass"),
    Mutation("loop-with-self-loops", "mrp", "kept[..., i, i] = False", "pass"),
    # Features, checks, import.
    Mutation(
        "sphere-not-normalised", "features", " / np.linalg.norm(normal, axis=-1, keepdims=True)", ""
    ),
    Mutation(
        "gamma-one-allowed",
        "_checks",
        "if not 0 <= gamma < 1:",
        "if not 0 <= gamma <= 1:",
        ("mrp", "td"),
    ),
    Mutation(
        "rows-may-sum-to-anything",
        "_checks",
        "np.abs(total - 1) > 1e-9",
        "np.abs(total - 1) > 1",
        ("mrp",),
    ),
    Mutation(
        "torch-on-import",
        "kernels",
        "import numpy as np\n",
        "import numpy as np\nimport torch  # noqa\n",
        ("import",),
    ),
    # Pretraining: the targets, the protocols, the models, what is kept of it.
    Mutation(
        "pretrain-gradient-of-the-target",
        "pretrain",
        "model.gamma * v[..., 1:].detach()",
        "model.gamma * v[..., 1:]",
        ("models",),
    ),
    Mutation(
        "pretrain-reward-of-the-next-state",
        "pretrain",
        "batch.queries[..., :-1])\n    targets",
        "batch.queries[..., 1:])\n    targets",
        ("models",),
    ),
    Mutation(
        "pretrain-a-stopped-seed-moves",
        "pretrain",
        "tensor[gone] = before[name][gone]",
        "tensor[gone] = tensor[gone]",
    ),
    Mutation(
        "pretrain-loss-never-reset",
        "pretrain",
        "        self.loss_sum.zero_()\n",
        "",
        ("pretrain",),
    ),
    Mutation(
        "pretrain-seeds-share-a-stream",
        "_tasks",
        "np.random.default_rng([seed, *key])",
        "np.random.default_rng([seed // 2, *key])",
        ("tasks",),
    ),
    Mutation("pretrain-four-walks", "_tasks", "WALKS = 5", "WALKS = 4", ("tasks",)),
    Mutation(
        "pretrain-transitions-never-leave",
        "_tasks",
        "-one.expand(leaves.shape)",
        "0 * one.expand(leaves.shape)",
        ("tasks",),
    ),
    Mutation(
        "pretrain-returns-undiscounted",
        "_tasks",
        "windows @ gamma ** np.arange(horizon)",
        "windows @ gamma ** (0 * np.arange(horizon))",
        ("tasks",),
    ),
    Mutation(
        "pretrain-target-without-gamma",
        "_models",
        "b * self.gamma * _apply",
        "b * _apply",
        ("models",),
    ),
    Mutation(
        "pretrain-a-transposed",
        "_models",
        "queries[:, :, None] @ A.mT @",
        "queries[:, :, None] @ A @",
        ("models",),
    ),
    Mutation("pretrain-no-wide-scores", "_models", "else 700.0)", "else 7e9)", ("models",)),
    Mutation(
        "pretrain-moments-of-a-layer",
        "_models",
        "_times(H, P.mT).mT / 2",
        "_times(H, P.mT).mT",
        ("models",),
    ),
    Mutation(
        "pretrain-query-is-a-source",
        "_models",
        "sources = Z[..., :n]",
        "sources = Z[..., : n + 1]",
        ("models",),
    ),
    Mutation(
        "pretrain-errors-without-the-law",
        "_metrics",
        "(mu * error.square()).sum(-1).sqrt()",
        "error.square().mean(-1).sqrt()",
        ("metrics",),
    ),
    Mutation(
        "pretrain-minimum-over-all-states",
        "_metrics",
        "torch.where(seen, own, 1.0).amin",
        "own.amin",
        ("metrics",),
    ),
    Mutation(
        "checkpoint-without-moments",
        "pretrain",
        'state[f"adam.square.{name}"] = moments["exp_avg_sq"]',
        'state[f"adam.square.{name}"] = moments["exp_avg"]',
        ("checkpoint",),
    ),
    Mutation(
        "checkpoint-digest-unread",
        "_checkpoint",
        'header.get("digest") != _digest(state)',
        "False",
        ("checkpoint",),
    ),
    Mutation(
        "checkpoint-seeds-unread",
        "_checkpoint",
        '_FREE = {"n_steps",',
        '_FREE = {"seeds", "n_steps",',
        ("checkpoint",),
    ),
    Mutation(
        "checkpoint-in-place",
        "_files",
        'handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")',
        "aside, handle = path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)",
        ("checkpoint",),
    ),
    Mutation(
        "checkpoint-for-this-user-alone",
        "_files",
        "as_usual(aside, 0o666)",
        "pass",
        ("checkpoint",),
    ),
    Mutation("neu-biased", "neu", "(total @ total - np.trace(outer))", "(total @ total)"),
    Mutation("neu-half-variance", "neu", "4 * along / N", "2 * along / N"),
    Mutation(
        "neu-gradient-of-the-next-window",
        "neu",
        "autograd.grad(v[:, 0].sum()",
        "autograd.grad(v[:, 1].sum()",
    ),
]


def copy_of_the_library(folder: Path, mutation: Mutation | None, test_files: Iterable[str]) -> None:
    """The package, the tests and the pytest settings in a folder of their own, mutated."""
    shutil.copytree(ROOT / "ictd", folder / "ictd", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "tests").mkdir()
    for file in ("tests/strategies.py", "tests/pretraining_cases.py", *test_files):
        shutil.copy(ROOT / file, folder / file)
    (folder / "tests" / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    if mutation is not None:
        path = folder / "ictd" / f"{mutation.module}.py"
        source = path.read_text(encoding="utf-8")
        path.write_text(source.replace(mutation.before, mutation.after), encoding="utf-8")


def run_tests(
    mutation: Mutation | None, test_files: tuple[str, ...], tests: Iterable[str] = ()
) -> tuple[str, str]:
    """("passed" | "failed" | "broken", first failing test or end of the output).

    `tests` are those of the files to run; all of them if there are none.
    """
    with tempfile.TemporaryDirectory(prefix="ictd-mutation-") as name:
        folder = Path(name)
        copy_of_the_library(folder, mutation, test_files)
        arguments = ["-x", "-q", "-p", "no:cacheprovider", *(tests or test_files)]
        status, output = run_pytest(folder, arguments)
    if status == 0:
        return "passed", ""
    failed = re.search(r"^FAILED tests/(.+?)(?: - .*)?$", output, flags=re.MULTILINE)
    if status == 1 and failed:
        return "failed", failed[1]
    return "broken", f"exit status {status}\n{output[-2000:]}"


def texts_that_do_not_match(mutations: list[Mutation]) -> Iterator[str]:
    for mutation in mutations:
        source = (ROOT / "ictd" / f"{mutation.module}.py").read_text(encoding="utf-8")
        found = source.count(mutation.before)
        if found != 1:
            yield (
                f"{mutation.name}: {mutation.before!r} is in ictd/{mutation.module}.py "
                f"{found} times, once is wanted"
            )


def unmutated_copy_passes(tests: Iterable[str]) -> bool:
    """Whether the tests, FILE.py::FUNCTION, pass where nothing is wrong."""
    of_files: dict[str, list[str]] = {}
    for test in sorted(tests):
        of_files.setdefault(f"tests/{test.partition('::')[0]}", []).append(f"tests/{test}")
    print(
        f"These tests on the copy without a mutation: {sum(map(len, of_files.values()))}",
        flush=True,
    )
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(
            pool.map(lambda item: run_tests(None, (item[0],), item[1]), of_files.items())
        )
    for file, (outcome, detail) in zip(of_files, results, strict=True):
        if outcome != "passed":
            print(f"{file} {outcome} without any mutation: {detail}")
    return all(outcome == "passed" for outcome, _ in results)


def try_mutations(mutations: list[Mutation]) -> tuple[list[str], set[str]]:
    """Run every mutant, a line of progress each.

    Returns:
        The names of those that were not caught, and the tests that caught the others.
    """
    width = max(len(mutation.name) for mutation in mutations)

    def attempt(mutation: Mutation) -> tuple[str, str, float]:
        begin = time.perf_counter()
        return *run_tests(mutation, mutation.test_files), time.perf_counter() - begin

    missed, catchers = [], set()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for number, (mutation, (outcome, detail, seconds)) in enumerate(
            zip(mutations, pool.map(attempt, mutations), strict=True), start=1
        ):
            word = {"passed": "SURVIVED", "failed": "caught", "broken": "BROKEN"}[outcome]
            detail = detail or f"no test of {', '.join(mutation.test_files)} noticed"
            print(
                f"[{number:2}/{len(mutations)}] {word:8}  {mutation.name:{width}}  "
                f"{seconds:5.1f} s  {detail}",
                flush=True,
            )
            if outcome == "failed":
                catchers.add(detail.partition("[")[0])
            else:
                missed.append(mutation.name)
    return missed, catchers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutations to try; all by default")
    parser.add_argument("--list", action="store_true", help="list the mutations and stop")
    options = parser.parse_args()

    known = {mutation.name: mutation for mutation in MUTATIONS}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no mutation is called {', '.join(unknown)}; --list shows them")
    chosen = [known[name] for name in options.names] or MUTATIONS
    if options.list:
        for mutation in chosen:
            print(
                f"{mutation.name}: ictd/{mutation.module}.py, {mutation.before!r} -> {mutation.after!r}"
            )
        return 0

    begin = time.perf_counter()
    mismatches = list(texts_that_do_not_match(chosen))
    if mismatches:
        print("\n".join(mismatches))
        return 1
    missed, catchers = try_mutations(chosen)
    sound = unmutated_copy_passes(catchers)
    caught = len(chosen) - len(missed)
    print(f"{caught} of {len(chosen)} mutations caught in {time.perf_counter() - begin:.0f} s")
    if missed:
        print(f"not caught: {', '.join(missed)}")
    return 0 if sound and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
