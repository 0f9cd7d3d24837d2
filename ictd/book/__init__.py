"""The machinery of the book: it checks parameters, runs chapters and makes the site.

A chapter imports `Chapter` alone. Everything here is quick to import; what executes and renders
loads in processes of its own.
"""

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
