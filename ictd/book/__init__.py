"""The machinery of the book: it checks parameters, runs chapters and makes the site.

A chapter imports `Chapter` alone. Each name loads its module on first use, and what executes and renders
loads in processes of its own: these import little but what they are for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import Failure, Result, SweepResult, build, compare, run, sweep
    from .chapter import Chapter, ClaimFailed
    from .comparing import CompareError, Comparison
    from .errors import BookError
    from .parameters import ParameterError

__all__ = [
    "BookError",
    "Chapter",
    "ClaimFailed",
    "CompareError",
    "Comparison",
    "Failure",
    "ParameterError",
    "Result",
    "SweepResult",
    "build",
    "compare",
    "run",
    "sweep",
]

_MODULES = {
    "api": ("Failure", "Result", "SweepResult", "build", "compare", "run", "sweep"),
    "chapter": ("Chapter", "ClaimFailed"),
    "comparing": ("CompareError", "Comparison"),
    "errors": ("BookError",),
    "parameters": ("ParameterError",),
}
_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
