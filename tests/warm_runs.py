"""Run a chapter's cells in a process that starts with everything imported.

Tests run chapters more than a hundred times, and a kernel takes seconds to start and to import torch.
Here a server that has imported what chapters use, and has run nothing, is forked for each run, and IPython
runs the cells there. What papermill and a kernel add is for the tests of ``ictd.book``.
"""

from __future__ import annotations

import base64
import contextlib
import io
import multiprocessing
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import nbformat

from ictd.book.notebook import joined

PRELOADED = (
    "IPython.core.interactiveshell",
    "ictd.book.api",
    "ictd.book.chapter",
    "ictd.figures",
    "ictd.pretrain",
    "matplotlib.backends.backend_agg",
    "torch.utils.flop_counter",
    "warm_runs",
)


class CellFailed(RuntimeError):
    """A cell raised an error."""


def shown(notebook: dict[str, Any]) -> list[Any]:
    """All that a reader sees of the outputs: texts, tables and pictures, but for measured times."""
    return [
        {kind: joined(data).strip() for kind, data in output.get("data", {}).items()}
        for cell in notebook["cells"]
        if "timing" not in cell["metadata"].get("tags", [])
        for output in cell.get("outputs", [])
        if output["output_type"] != "stream"
    ]


def run_cells(
    path: Path, parameters: dict[str, Any], unlike: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The notebook with the outputs of its code cells.

    Args:
        path: The notebook.
        parameters: Values that take the place of those declared.
        unlike: The same notebook, executed: the run ends after the first cell that shows something else.

    Raises:
        CellFailed: A cell raised an error; those after it were not run.
    """
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    context.set_forkserver_preload(list(PRELOADED))
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(sender, str(path), parameters, unlike))
    process.start()
    sender.close()
    try:
        notebook, error = receiver.recv()
    except EOFError:
        notebook, error = {}, "the process ended without a result"
    finally:
        process.join()
    if error is not None:
        raise CellFailed(f"{path}: {error}")
    return notebook


def _run(sender: Connection, path: str, *job: Any) -> None:
    try:
        sender.send((_executed(path, *job), None))
    except Exception:
        sender.send(({}, traceback.format_exc()))


def _executed(
    path: str, parameters: dict[str, Any], unlike: dict[str, Any] | None = None
) -> dict[str, Any]:
    from IPython.core.displayhook import CapturingDisplayHook
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    shell = InteractiveShell.instance(config=config)
    notebook = nbformat.read(path, as_version=4)
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        publisher = CapturingDisplayPublisher()
        shell.display_pub = publisher
        shell.display_trap.hook = CapturingDisplayHook(shell=shell, outputs=publisher.outputs)
        _cell(shell, cell.source)
        if "parameters" in cell.metadata.get("tags", []) and parameters:
            given = [f"{name} = {value!r}" for name, value in parameters.items()]
            _cell(shell, "\n".join(["# Parameters", *given]))
        cell.outputs = [
            {
                "output_type": "display_data",
                "data": {kind: _text(data) for kind, data in output["data"].items()},
                "metadata": output.get("metadata") or {},
            }
            for output in publisher.outputs
        ]
        if unlike and shown({"cells": [cell]}) != shown({"cells": [unlike["cells"][index]]}):
            break
    plain: dict[str, Any] = nbformat.from_dict(notebook)
    return plain


def _text(data: Any) -> Any:
    """Pictures as text, as a kernel sends them."""
    return base64.b64encode(data).decode() if isinstance(data, bytes) else data


def _cell(shell: Any, source: str) -> None:
    """Run a cell; streams, such as warnings of a chapter broken on purpose, are not looked at."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        result = shell.run_cell(source, store_history=True)
    result.raise_error()
