"""Execute one notebook with papermill, in a process of its own: `python -m ictd.book.execute`.

The first line of standard input is the job, as JSON; the end of the input tells this process that
the one that started it is gone. Events go to standard output, one JSON line each: `cell` with how
many cells of how many are done, and last `done` or `failed`. `ictd.book.runner` reads them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .notebook import leave_out_slow_grammar
from .usage import Usage

# A Unix socket's path has at most 107 bytes (103 on macOS), the digits of its port included.
_SOCKET_PATH = 90

_EXITED = {
    "ename": "SystemExit",
    "evalue": "a chapter must run to its end",
    "traceback": [],
}

Send = Callable[[dict[str, Any]], None]


def main() -> None:
    job = json.loads(sys.stdin.readline())
    send = _take_over_stdout()
    with tempfile.TemporaryDirectory(prefix="ictd-", ignore_cleanup_errors=True) as folder:
        threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
        os.environ["IPYTHONDIR"] = str(Path(folder) / "ipython")
        with Usage() as usage:
            outcome = _execute(job, _transport(Path(folder)), send)
        outcome.update(peak_memory=usage.peak_memory, cpu_seconds=usage.cpu_seconds)
    send(outcome)


def _take_over_stdout() -> Send:
    """Keep standard output for events; whatever else is printed goes to standard error."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(event: dict[str, Any]) -> None:
        events.write(json.dumps(event) + "\n")
        events.flush()

    return send


def _end_with_parent(folder: str) -> None:
    """End at once, and the kernel after us, when the process that started this one is gone."""
    sys.stdin.read()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _execute(job: dict[str, Any], transport: dict[str, str], send: Send) -> dict[str, Any]:
    leave_out_slow_grammar()
    import nbformat
    from papermill.exceptions import PapermillExecutionError
    from papermill.execute import execute_notebook
    from papermill.iorw import write_ipynb
    from traitlets.config import Config

    notebook, output = Path(job["notebook"]), Path(job["output"])
    cells: list[Any] = []
    current = 0

    def started(notebook: Any) -> None:
        cells.extend(notebook.cells)

    def cell_started(cell: Any, cell_index: int) -> None:
        nonlocal current
        current = cell_index
        send({"event": "cell", "done": cell_index, "cells": len(cells)})

    try:
        executed = execute_notebook(
            _escaped(notebook),
            _escaped(output),
            parameters=job["parameters"],
            kernel_name="python3",
            language="python",
            cwd=notebook.parent,
            progress_bar=False,
            execution_timeout=-1,
            config=Config(KernelManager=transport),
            on_notebook_start=started,
            on_cell_start=cell_started,
            iopub_timeout=60,
        )
        if (exited := _exited(cells)) is not None:
            return {"event": "failed", **_position(cells, exited), **_EXITED}
        for cell in executed.cells:
            if cell.cell_type == "code":
                cell.outputs = _settled(cell.outputs)
        executed.metadata.papermill.update(input_path=notebook.name, output_path=output.name)
        nbformat.validate(executed)
        write_ipynb(executed, str(output))
    except PapermillExecutionError as error:
        where = _position(cells, error.cell_index)
        what = {"ename": error.ename, "evalue": error.evalue, "traceback": error.traceback}
    except Exception as error:
        # No cell raised: the kernel died or could not start.
        where = _position(cells, current)
        what = {"ename": type(error).__name__, "evalue": str(error), "traceback": []}
    else:
        return {"event": "done"}
    return {"event": "failed", **where, **what}


def _exited(cells: list[Any]) -> int | None:
    """The first cell that ended the run by `sys.exit()`, which papermill takes for its end."""
    for index, cell in enumerate(cells):
        if any(output.get("ename") == "SystemExit" for output in cell.get("outputs", [])):
            return index
    return None


def _settled(outputs: list[Any]) -> list[Any]:
    """Outputs with each stretch of a stream in one piece, and overwritten progress lines gone.

    nbclient can do this, in a time that grows with the square of a line's length.
    """
    settled: list[Any] = []
    for output in outputs:
        if output.output_type == "stream" and settled and output.name == settled[-1].get("name"):
            settled[-1].text += output.text
        else:
            settled.append(output)
    for output in settled:
        if output.output_type == "stream":
            lines = output.text.replace("\r\n", "\n").split("\n")
            output.text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
    return settled


def _position(cells: list[Any], index: int) -> dict[str, Any]:
    """Where a cell is in the notebook as it was, that is without the injected parameters."""
    if not cells:
        return {"cell": None, "id": None}
    before = [cell for cell in cells[:index] if "injected-parameters" not in cell.metadata.tags]
    return {"cell": len(before) + 1, "id": cells[index].get("id")}


def _escaped(path: Path) -> str:
    """A path for papermill, which takes braces in one for the names of parameters."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _transport(folder: Path) -> dict[str, str]:
    """How to talk to the kernel: sockets that only this user can reach, where there are any."""
    address = str(folder / "kernel")
    if os.name == "posix" and len(os.fsencode(address)) <= _SOCKET_PATH:
        return {"transport": "ipc", "ip": address}
    return {}


if __name__ == "__main__":
    main()
