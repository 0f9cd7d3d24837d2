"""ictd: in-context temporal-difference learning, as a softmax transformer does it.

Companion library of *Beyond Linear Attention: Softmax Transformers Implement In-Context Reinforcement
Learning* (arXiv:2605.07333). Importing it needs NumPy alone; the names that need PyTorch or matplotlib
load them on first use.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ictd._citation import citation
from ictd._kernel_operator import KernelOperator
from ictd.bounds import Theorem2, hitting_times, limit_covariance, theorem_2
from ictd.counts import Counts
from ictd.features import (
    one_hot_features,
    radial_basis_features,
    sphere_features,
    uniform_features,
)
from ictd.kernels import inner_product_scores, similarity_scores, softmax_kernel, visit_weights
from ictd.mrp import MarkovRewardProcess, Trajectory, boyan_chain, loop_chain, random_chain
from ictd.operator import empirical_operator, population_operator
from ictd.td import (
    certainty_equivalence,
    linear_td,
    linear_td_weights,
    lstd,
    tabular_td,
    weighted_softmax_td,
)

if TYPE_CHECKING:
    from ictd.attention import context_mask, linear_attention, softmax_attention
    from ictd.neu import Neu, neu
    from ictd.pretrain import CheckpointError, PretrainConfig, PretrainResult, pretrain
    from ictd.statewise import state_pass
    from ictd.transformer import (
        DualHeadTransformer,
        LinearTransformer,
        SoftmaxTransformer,
        attention_matrix,
        current_value_matrix,
        linear_prompt,
        prompt,
        read_linear_value,
        read_values,
        shift_matrix,
        target_value_matrix,
        td_direction,
        temporal_shift_matrices,
    )

__version__ = "0.1.0"

__all__ = [
    "CheckpointError",
    "Counts",
    "DualHeadTransformer",
    "KernelOperator",
    "LinearTransformer",
    "MarkovRewardProcess",
    "Neu",
    "PretrainConfig",
    "PretrainResult",
    "SoftmaxTransformer",
    "Theorem2",
    "Trajectory",
    "attention_matrix",
    "boyan_chain",
    "certainty_equivalence",
    "citation",
    "context_mask",
    "current_value_matrix",
    "empirical_operator",
    "hitting_times",
    "inner_product_scores",
    "limit_covariance",
    "linear_attention",
    "linear_prompt",
    "linear_td",
    "linear_td_weights",
    "loop_chain",
    "lstd",
    "neu",
    "one_hot_features",
    "population_operator",
    "pretrain",
    "prompt",
    "radial_basis_features",
    "random_chain",
    "read_linear_value",
    "read_values",
    "shift_matrix",
    "similarity_scores",
    "softmax_attention",
    "softmax_kernel",
    "sphere_features",
    "state_pass",
    "tabular_td",
    "target_value_matrix",
    "td_direction",
    "temporal_shift_matrices",
    "theorem_2",
    "uniform_features",
    "visit_weights",
    "weighted_softmax_td",
]

# Names that need PyTorch, by the module they live in.
_LAZY = {
    "attention": ("context_mask", "linear_attention", "softmax_attention"),
    "neu": ("Neu", "neu"),
    "pretrain": ("CheckpointError", "PretrainConfig", "PretrainResult", "pretrain"),
    "statewise": ("state_pass",),
    "transformer": (
        "DualHeadTransformer",
        "LinearTransformer",
        "SoftmaxTransformer",
        "attention_matrix",
        "current_value_matrix",
        "linear_prompt",
        "prompt",
        "read_linear_value",
        "read_values",
        "shift_matrix",
        "target_value_matrix",
        "td_direction",
        "temporal_shift_matrices",
    ),
}
_MODULE_OF = {name: module for module, names in _LAZY.items() for name in names}
_SUBMODULES = {"attention", "book", "figures", "statewise", "transformer"}


class _Package(ModuleType):
    """``ictd.pretrain`` and ``ictd.neu`` are functions, also once the modules of these names are loaded."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("neu", "pretrain") and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"ictd.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'ictd' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ictd.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
