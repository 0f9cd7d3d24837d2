"""Run pytest on a copy of the library, in a process that starts with everything else imported.

The mutations need pytest some 170 times, and each time it takes seconds to import torch and hypothesis.
Here a server that has imported them, and has run nothing, is forked for each run.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# What the tests of the science import that is not of this project.
PRELOADED = (
    "hypothesis.extra.numpy",
    "pytest",
    "safetensors.torch",
    "torch._functorch.apis",
    "torch.optim",
    "torch.utils.flop_counter",
)
STATUS = "status.txt"
ROOT = Path(__file__).resolve().parents[1]


def run_pytest(folder: Path, arguments: Sequence[str]) -> tuple[int, str]:
    """Exit status, which is below zero if a signal ended the process, and output of pytest.

    Args:
        folder: Holds `ictd` and `tests`, which are what is imported; output and status are kept in it.
        arguments: Of pytest.
    """
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    context.set_forkserver_preload(list(PRELOADED))
    output = folder / "output.txt"
    process = context.Process(target=_run, args=(str(folder), str(output), list(arguments)))
    process.start()
    process.join()
    text = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
    # Where several threads wait for processes, one may take the exit code that another reads as 255.
    status = folder / STATUS
    return int(status.read_text()) if status.exists() else process.exitcode, text


def _run(folder: str, output: str, arguments: list[str]) -> None:
    with open(output, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(folder)
    first = [folder, str(Path(folder) / "tests")]
    ours = [ROOT, ROOT / "tests"]
    sys.path[:] = [*first, *(path for path in sys.path if Path(path).resolve() not in ours)]
    # For the processes that tests start.
    os.environ.update(
        PYTHONPATH=os.pathsep.join(first),
        PYTHONDONTWRITEBYTECODE="1",
        PYTEST_ADDOPTS="",
        OMP_NUM_THREADS="1",
    )
    sys.dont_write_bytecode = True
    import pytest

    # Its own plugins were imported before it could look at them; that matters to tests of plugins alone.
    known = "ignore:Module already imported so cannot be rewritten"
    status = int(pytest.main(["-W", known, *arguments]))
    Path(folder, STATUS).write_text(str(status))
    sys.exit(status)
