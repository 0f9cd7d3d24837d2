"""What a worker of a sweep does: run one point, and give back the files of its results.

Worker and asker may be on different machines: nothing but the job and the files passes between them, and
both must have the same software.
"""

from __future__ import annotations

import contextlib
import json
import platform
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import provenance, results
from .beside import Beside
from .cache import StoredRun
from .errors import BookError
from .parameters import Value
from .project import PACKAGE, Project
from .runner import ChapterFailed, Execution, Plan


@dataclass(frozen=True)
class Job:
    """One point of a sweep.

    Attributes:
        root: Of the book, where the asker has it.
        chapter: Path of the notebook there.
        text: The notebook.
        parameters: The values of all parameters.
        defaults: Those that the notebook declares.
        parts: Everything that decides the run.
        commit: The asker's, in words.
        beside: What the page shows beside the results.
    """

    root: str
    chapter: str
    text: str
    parameters: dict[str, Value]
    defaults: dict[str, Value]
    parts: dict[str, Any]
    commit: str
    beside: Beside


@dataclass(frozen=True)
class Done:
    """What a point gave.

    Attributes:
        files: The contents of the folder of results, by their places in it.
        problem: Why the chapter did not run to its end; empty if it did.
        note: What else the asker should know; often nothing.
    """

    files: dict[str, bytes]
    problem: str = ""
    note: str = ""


_LOOK_SECONDS = 0.5
_running: set[Execution] = set()
_lock = threading.Lock()


def run_point(job: Job) -> Done:
    """Run one point in folders of its own, which are gone afterwards.

    Raises:
        BookError: The software here is not that of the asker.
    """
    with tempfile.TemporaryDirectory(prefix="ictd-", ignore_cleanup_errors=True) as name:
        scratch = Path(name)
        planned = _plan(job, scratch)
        made, out = scratch / "run", scratch / "results"
        made.mkdir()
        try:
            with _listed(Execution(planned, go_on=True)) as execution, _wanted(execution):
                info = execution.into(made)
        except ChapterFailed as error:
            results.write_failed(planned, error, out)
            return Done(_files(out), error.problem)
        run = StoredRun(made, {**info, "commit": job.commit})
        note = results.write(planned.project, run, out, job.beside)
        return Done(_files(out), note=note)


def stop_all() -> None:
    """End the chapters that run in this process's workers."""
    with _lock:
        for execution in _running:
            execution.stop()


def _plan(job: Job, scratch: Path) -> Plan:
    """The job's plan, with the asker's own files where they are here too."""
    content = json.loads(job.text)
    here = provenance.run_parts(content, job.parameters, Path(job.chapter).parent)
    if found := provenance.changes(job.parts, here):
        raise BookError(
            f"the worker on {platform.node()} has not the software of the one that asks: "
            f"{'; '.join(found)}"
        )
    chapter, project = Path(job.chapter), Project(Path(job.root))
    if not (chapter.is_file() and chapter.read_text(encoding="utf-8") == job.text):
        chapter, project = scratch / chapter.name, Project(PACKAGE.parent)
        chapter.write_text(job.text, encoding="utf-8")
    return Plan(project, chapter, job.parameters, job.defaults, job.parts)


@contextlib.contextmanager
def _listed(execution: Execution) -> Iterator[Execution]:
    with _lock:
        _running.add(execution)
    try:
        yield execution
    finally:
        with _lock:
            _running.discard(execution)


@contextlib.contextmanager
def _wanted(execution: Execution) -> Iterator[None]:
    """End the chapter when nobody waits for it any more: the sweep was stopped, on another machine."""
    from distributed import get_worker

    try:
        worker = get_worker()
        key = worker.get_current_task()
    except (ValueError, AttributeError):  # not called by a worker
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_SECONDS):
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                execution.stop()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
