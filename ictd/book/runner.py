"""Run one chapter: from the store if nothing that it depends on has changed, else by papermill."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ictd

from . import claims, machine, notebook, provenance
from .cache import Store, StoredRun
from .chapter import GO_ON
from .errors import BookError
from .files import remove_folder
from .parameters import Declaration, Value
from .project import PACKAGE, Project

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# One thread of linear algebra: the same bits whatever runs beside the chapter.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Settings of the reader's shell that would change what a kernel shows.
_UNSET = ("MPLBACKEND", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONOPTIMIZE", "JPY_SESSION_NAME")
_TRACEBACK_LINES = 12

Progress = Callable[[int, int], None]


class ChapterFailed(BookError):
    """A chapter did not run to its end; the message names the chapter, the cell and the error.

    Attributes:
        problem: The message without the place of the notebook.
        folder: Where `executed.ipynb`, as far as it came, and `log.txt` are.
    """

    def __init__(self, problem: str, folder: Path) -> None:
        self.problem = problem
        self.folder = folder
        kept = f"the notebook as far as it came: {folder / 'executed.ipynb'}"
        super().__init__(f"{problem}\n  {kept}")


@dataclass(frozen=True)
class Expected:
    """How long a run may take.

    Attributes:
        seconds: Of an earlier run; None if there was none.
        alike: Whether that one had the same parameters.
    """

    seconds: float | None
    alike: bool = True

    def __str__(self) -> str:
        if self.seconds is None:
            return "its time is not known yet"
        cost = "" if self.alike else ", if these values cost what others did"
        return f"expected about {self.seconds:.0f} s{cost}"


@dataclass(frozen=True)
class Plan:
    """A chapter with accepted parameters, not yet run."""

    project: Project
    chapter: Path
    parameters: dict[str, Value]
    defaults: dict[str, Value]
    parts: dict[str, Any]

    @property
    def store(self) -> Store:
        return Store(self.project.runs_folder, self.chapter.stem)

    @property
    def at_defaults(self) -> bool:
        return self.parameters == self.defaults

    @property
    def changed_parameters(self) -> dict[str, Value]:
        return {k: v for k, v in self.parameters.items() if v != self.defaults[k]}

    def parts_at(self, parameters: dict[str, Value]) -> dict[str, Any]:
        """What decides the run of the same chapter at other parameters."""
        return {**self.parts, "parameters": parameters}

    @property
    def why(self) -> str:
        """Why no stored run can be used, in words."""
        return self.store.why(self.parts)

    def expected(self, recorded: Mapping[str, float]) -> Expected:
        """How long the last stored run took, else what is recorded for the chapter."""
        nearest = self.store.nearest(self.parts)
        if nearest is not None:
            return Expected(nearest.info["seconds"], nearest.info["parameters"] == self.parameters)
        return Expected(recorded.get(self.chapter.stem), self.at_defaults)


def plan(project: Project, chapter: Path, given: Mapping[str, object] | None = None) -> Plan:
    """Check the parameters of a chapter; nothing is executed or loaded for it.

    Raises:
        ParameterError: If the values, or the chapter's declaration of them, are not accepted.
    """
    content = notebook.read(chapter)
    declaration: Declaration = notebook.declaration(content)
    parameters = declaration.check(given or {})
    parts = provenance.run_parts(content, parameters, chapter.parent)
    return Plan(project, chapter, parameters, declaration.defaults, parts)


class Execution:
    """The process that executes a planned chapter, once.

    Args:
        plan: The chapter and its parameters.
        go_on: Whether a claim that fails at the default parameters is recorded as at any others and does
            not stop the chapter: in a sweep, the defaults are one point among others.
    """

    def __init__(self, plan: Plan, *, go_on: bool = False) -> None:
        self.plan = plan
        self._go_on = go_on
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def stop(self) -> None:
        """End the process and its kernel; `run` then raises ChapterFailed."""
        self._stopped = True
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def run(self, progress: Progress | None = None) -> StoredRun:
        """Execute the chapter and store the run.

        Args:
            progress: Called with how many cells are done, and of how many.

        Raises:
            ChapterFailed: The notebook as far as it came is kept, and the message says where.
        """
        store = self.plan.store
        aside = store.new_folder()
        try:
            return store.add(aside, self.into(aside, progress))
        except ChapterFailed as error:
            raise ChapterFailed(error.problem, store.keep_failed(aside)) from None
        finally:
            remove_folder(aside)

    def into(self, folder: Path, progress: Progress | None = None) -> dict[str, Any]:
        """Execute the chapter in a folder, which then holds `executed.ipynb` and `log.txt`.

        Args:
            folder: An empty folder.
            progress: Called with how many cells are done, and of how many.

        Returns:
            What a stored run says of itself, see `cache.StoredRun`.

        Raises:
            ChapterFailed: The folder holds the notebook as far as it came.
        """
        plan = self.plan
        commit = provenance.commit(plan.project.root)
        started = datetime.datetime.now(datetime.timezone.utc)
        clock = time.perf_counter()
        outcome = self._execute(folder, progress)
        seconds = time.perf_counter() - clock
        if problem := _problem(outcome) or self._inputs_changed():
            raise ChapterFailed(f"{plan.chapter.stem} failed{problem}", folder)
        try:
            made, numbers = claims.collect(notebook.read(folder / "executed.ipynb"))
        except BookError as error:
            raise ChapterFailed(f"{plan.chapter.stem} failed: {error}", folder) from None
        return {
            "chapter": plan.chapter.stem,
            "parameters": plan.parameters,
            "at_defaults": plan.at_defaults,
            "claims": made,
            "numbers": numbers,
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(seconds, 2),
            "cpu_seconds": round(outcome["cpu_seconds"], 2),
            "peak_memory": outcome["peak_memory"],
            "machine": machine.description(),
            "ictd": ictd.__version__,
            "python": plan.parts["python"],
            "packages": plan.parts["packages"],
            "commit": commit,
            "parts": plan.parts,
        }

    def _execute(self, folder: Path, progress: Progress | None) -> dict[str, Any]:
        """Run the process to its end and return its last event."""
        job = {
            "notebook": str(self.plan.chapter),
            "output": str(folder / "executed.ipynb"),
            "parameters": self.plan.changed_parameters,
        }
        outcome: dict[str, Any] = {"event": "ended", "cell": None, "id": None, "traceback": []}
        log_path = folder / "log.txt"
        with (
            log_path.open("w", encoding="utf-8") as log,
            subprocess.Popen(
                [sys.executable, "-m", "ictd.book.execute"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                # With -m, Python looks for modules in the current folder first.
                cwd=PACKAGE.parent,
                env=_environment() | ({GO_ON: "1"} if self._go_on else {}),
            ) as process,
        ):
            self._process = process
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(OSError, ValueError):  # it ended already, or was stopped
                process.stdin.write(json.dumps(job) + "\n")
                process.stdin.flush()
            if self._stopped:
                self.stop()
            for line in process.stdout:
                event = json.loads(line)
                if event["event"] != "cell":
                    outcome = event
                elif progress is not None:
                    progress(event["done"], event["cells"])
        if outcome["event"] == "ended":
            outcome["ename"] = "ProcessEnded"
            outcome["evalue"] = f"the process that ran it ended with status {process.returncode}"
            outcome["traceback"] = log_path.read_text("utf-8", "replace").splitlines()
        return outcome

    def _inputs_changed(self) -> str:
        """What was edited while the chapter ran, so that nobody knows what the run is of."""
        plan = self.plan
        now = provenance.run_parts(
            notebook.read(plan.chapter), plan.parameters, plan.chapter.parent
        )
        changes = "; ".join(provenance.changes(plan.parts, now))
        return f": {changes} while it ran; run it again" if changes else ""


def _problem(outcome: dict[str, Any]) -> str:
    """What the last event of an execution says went wrong: cell, error, end of the traceback."""
    if outcome["event"] == "done":
        return ""
    where = "" if outcome["cell"] is None else f" in cell {outcome['cell']} (id {outcome['id']})"
    lines = _ANSI.sub("", "\n".join(outcome["traceback"])).splitlines()[-_TRACEBACK_LINES:]
    error = _ANSI.sub("", f"{where}: {outcome['ename']}: {outcome['evalue']}")
    return "\n".join([error, *(f"    {line}" for line in lines)])


def _environment() -> dict[str, str]:
    """The environment of a kernel: this library, this Python's kernel, one thread."""
    environment = {k: v for k, v in os.environ.items() if k not in _UNSET}
    path = [str(PACKAGE.parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    # A kernel named python3 in the reader's home may be of another Python.
    environment["JUPYTER_PREFER_ENV_PATH"] = "1"
    # An empty file: figures look the same whatever the reader's own matplotlibrc says.
    environment["MATPLOTLIBRC"] = os.devnull
    return environment | dict.fromkeys(_ONE_THREAD, "1")
