"""Run a chapter at many points: each once, in a folder of its own, on the workers that there are."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from . import baseline, cluster, machine, notebook, provenance, results, worker
from .errors import UsageError
from .files import locked, read_json, recover_folder, remove_folder, replace_folder
from .points import Point, make
from .progress import SweepProgress, duration, say
from .project import Project
from .provenance import digest
from .results import FolderTaken
from .runner import Plan, plan
from .worker import Done, Job

_ASIDE = ".new-"
_SHOWN_FAILURES = 10


@dataclass(frozen=True)
class Failure:
    """A point that did not run to its end.

    Attributes:
        point: Its parameters and name.
        folder: Holds the notebook as far as it came, `parameters.json`, `log.txt` and `error.txt`.
        problem: The chapter, the cell and the error; or how the worker was lost.
    """

    point: Point
    folder: Path
    problem: str


@dataclass(frozen=True)
class Swept:
    """What a sweep left.

    Attributes:
        folder: Holds one folder a point.
        finished: The folder of each point that has run to its end, in the order of the points.
        run_now: How many of the points were run now.
        failures: The other points.
    """

    folder: Path
    finished: dict[str, Path]
    run_now: int
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class Sweep:
    """A chapter, its points and the folder of their results; nothing has run yet."""

    planned: Plan
    points: Sequence[Point]
    folder: Path

    @property
    def name(self) -> str:
        return self.planned.chapter.stem


def prepare(
    project: Project,
    chapter: Path,
    given: Mapping[str, object],
    rows: Iterable[Mapping[str, object]] = (),
    folder: Path | None = None,
) -> Sweep:
    """Decide points and folder, by default one that the same points find again.

    Args:
        project: The book.
        chapter: The notebook.
        given: Values by name, see `points.make`.
        rows: Points that are each combined with the grid.
        folder: For the results.

    Raises:
        ParameterError: It lists everything that is wrong.
        FolderTaken: If the folder holds results of another chapter.
    """
    planned = plan(project, chapter)
    points = make(notebook.declaration(notebook.read(chapter)), given, rows)
    if folder is None:
        name = digest(sorted(point.hash for point in points))[:8]
        folder = Path.cwd() / "runs" / f"{chapter.stem}-sweep-{name}"
    one = next(folder.glob("*/results.json"), None)
    other = ((one and read_json(one)) or {}).get("chapter", chapter.stem)
    if other != chapter.stem:
        raise FolderTaken(f"{folder} holds results of {other}; choose another folder")
    return Sweep(planned, points, folder.resolve())


def unfinished(sweep: Sweep, *, force: bool = False) -> tuple[list[Point], list[str]]:
    """The points that have no results of the present code, and why those run again that have others.

    Args:
        sweep: Chapter, points and folder.
        force: All points, whatever there is.
    """
    if force:
        return list(sweep.points), ["asked to run again"]
    there = _folders(sweep.folder)
    left, changed, damaged = [], 0, 0
    for point in sweep.points:
        path, wanted = there.get(point.hash), key(sweep.planned, point)
        if path is not None:
            if results.is_of(path, wanted, point.parameters):
                continue
            found = results.key_of(path)
            changed += found not in (None, wanted)
            damaged += found == wanted or (found is None and (path / "results.json").exists())
        left.append(point)
    why = [f"{changed} run with other code or versions"] if changed else []
    return left, why + ([f"{damaged} damaged"] if damaged else [])


def run(
    sweep: Sweep,
    *,
    scheduler: Any = None,
    workers: int | None = None,
    force: bool = False,
    task: Callable[[Job], Done] = worker.run_point,
) -> Swept:
    """Run the points that are not finished.

    Args:
        sweep: Chapter, points and folder.
        scheduler: As `cluster.connect` takes it.
        workers: How many, on this machine; by default as many as its cores and memory allow.
        force: Run points again that are finished.
        task: What a worker does with a job.

    Raises:
        UsageError: The number of workers or the scheduler is none, or the folder cannot be written to.
        ClusterError: The scheduler cannot be used, or has been lost; what is finished stays.
    """
    if workers is not None and (type(workers) is not int or workers < 1):
        raise UsageError(f"workers: got {workers!r}, expected a whole number of at least 1")
    cluster.check(scheduler)
    results.make_folder(sweep.folder)

    def waiting() -> None:
        say(f"another sweep writes into {sweep.folder}; waiting for it to end")

    with locked(sweep.folder / ".lock", waiting):
        for path in sweep.folder.glob(f"{_ASIDE}*"):  # of a sweep that was killed
            remove_folder(path)
        left, why = unfinished(sweep, force=force)
        count = workers or machine.workers(len(left))
        _announce(sweep, len(left), why, None if scheduler is not None else count)
        failures = list(_run(sweep, left, scheduler, count, task)) if left else []
    there = _folders(sweep.folder)
    failed = {failure.point.hash for failure in failures}
    finished = {point.hash: there[point.hash] for point in sweep.points if point.hash not in failed}
    return Swept(sweep.folder, finished, len(left) - len(failures), tuple(failures))


def report(swept: Swept) -> None:
    """Say which points failed, and why."""
    for failure in swept.failures[:_SHOWN_FAILURES]:
        first = failure.problem.partition("\n")[0]
        say(f"failed: {failure.point.name}: {first}\n  more in {failure.folder / 'error.txt'}")
    more = len(swept.failures) - _SHOWN_FAILURES
    if more > 0:
        say(f"and {more} more failed; the folder of each has error.txt")


def _run(
    sweep: Sweep,
    points: Sequence[Point],
    scheduler: Any,
    workers: int,
    task: Callable[[Job], Done],
) -> Iterator[Failure]:

    def alone() -> None:
        say(f"{sweep.name}: the scheduler has no workers; waiting for some")

    there = _folders(sweep.folder)
    line = SweepProgress(sweep.name, len(points))
    try:
        with cluster.connect(scheduler, workers) as client, _stopping():
            named = {point.hash: point for point in points}
            for job, result in cluster.run(client, task, jobs(sweep, points), alone):
                point = named[digest(job.parameters)]
                done = _lost(point, result) if isinstance(result, Exception) else result
                target = there.get(point.hash, sweep.folder / point.name)
                _keep(done, target)
                if done.note:
                    say(done.note)
                if done.problem:
                    yield Failure(point, target, done.problem)
                line.update(failed=bool(done.problem))
    finally:
        line.close()


@contextlib.contextmanager
def _stopping() -> Iterator[None]:
    """End what runs in this process's workers when a sweep is left early, before these are closed.

    One that has come to its end has nothing running: what does is of another sweep in this process.
    """
    try:
        yield
    except BaseException:
        worker.stop_all()
        raise


def _announce(sweep: Sweep, left: int, why: Sequence[str], workers: int | None) -> None:
    total = len(sweep.points)
    text = [f"{sweep.name}: {total} {'point' if total == 1 else 'points'}"]
    if left < total:
        text.append(f"{total - left} finished before")
    text += why
    if left and workers is not None:
        text.append(f"{workers} side by side")
        recorded = baseline.seconds(sweep.planned.project)
        one = sweep.planned.expected(recorded).seconds
        if one is not None:
            seconds = one * -(-left // workers)
            text.append(f"expected about {duration(seconds)}, if each takes what one did")
    say("; ".join(text))


def jobs(sweep: Sweep, points: Iterable[Point]) -> Iterator[Job]:
    """The points as they travel to the workers."""
    planned = sweep.planned
    text = planned.chapter.read_text(encoding="utf-8")
    commit = provenance.commit(planned.project.root)
    beside = baseline.beside(planned, notebook.read(planned.chapter))
    for point in points:
        yield Job(
            str(planned.project.root),
            str(planned.chapter),
            text,
            point.parameters,
            planned.defaults,
            planned.parts_at(point.parameters),
            commit,
            beside,
        )


def _keep(done: Done, target: Path) -> None:
    """Put the folder of a point into its place, whole."""
    aside = target.with_name(f"{_ASIDE}{uuid4().hex}")
    for name, content in done.files.items():
        path = aside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    replace_folder(aside, target)


def _lost(point: Point, error: Exception) -> Done:
    """What is known of a point that no worker could finish."""
    problem = f"{type(error).__name__}: {error}"
    parameters = json.dumps(point.parameters, indent=2, ensure_ascii=False)
    files = {"error.txt": f"{problem}\n", "parameters.json": f"{parameters}\n"}
    return Done({name: text.encode() for name, text in files.items()}, problem)


def _folders(folder: Path) -> dict[str, Path]:
    """The folders of points by their hashes."""
    for path in folder.glob(".*-old"):
        recover_folder(path.with_name(path.name[1:].removesuffix("-old")))
    return {
        path.name.rpartition("-")[2]: path
        for path in sorted(folder.glob("[!.]*-*"))
        if path.is_dir()
    }


def key(planned: Plan, point: Point) -> str:
    """A hash of everything that decides the run of a point."""
    return digest(planned.parts_at(point.parameters))
