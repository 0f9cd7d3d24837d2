"""Stand-ins for the packages that execute notebooks, which myst-nb imports and a page has no use for.

They take the process that makes a page half a second to import, a database among them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_PACKAGES = ("jupyter_cache", "nbclient")


def leave_out_what_executes() -> None:
    """Let these packages be imported without being read; for a process of our own that executes nothing."""
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder, Loader):
    """Makes modules whose every name is a class of its own, which others can derive from and catch."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in _PACKAGES:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        def stand_in(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            made = type(name, (Exception,), {})
            setattr(module, name, made)
            return made

        module.__getattr__ = stand_in  # type: ignore[method-assign]
