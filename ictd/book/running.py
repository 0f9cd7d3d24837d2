"""Run one chapter into a folder of results, and say what happens."""

from __future__ import annotations

from pathlib import Path

from . import baseline, notebook, provenance, results
from .cache import StoredRun
from .progress import Progress, say
from .provenance import digest
from .results import FolderTaken
from .runner import ChapterFailed, Execution, Expected, Plan


def run(planned: Plan, output: Path | None = None, *, force: bool = False) -> Path:
    """Run a chapter, or use the stored run if nothing that it depends on has changed.

    Args:
        planned: The chapter with its parameters.
        output: Folder of the results; by default `runs/CHAPTER-HASH` in the current one.
        force: Run it although there is a stored run, and replace what the folder holds of another one.

    Returns:
        The folder.

    Raises:
        FolderTaken: The folder holds the results of another run, or cannot be written to.
        ChapterFailed: The folder then has the notebook as far as it came, and `error.txt`.
    """
    folder = (output or results.default_folder(planned)).resolve()
    name = planned.chapter.stem
    other = results.of_other_run(folder, name, planned.parameters)
    if other and not force:
        raise FolderTaken(
            f"{folder} holds {other}; choose another folder, or --force to replace it"
        )
    results.make_folder(folder)
    if not force and results.is_of(folder, digest(planned.parts), planned.parameters):
        say(f"{name}: nothing has changed since the run whose results are there")
        return folder
    beside = baseline.beside(planned, notebook.read(planned.chapter))
    try:
        done = stored_or_run(planned, expected(planned), force=force)
    except ChapterFailed as error:
        results.write_failed(planned, error, folder)
        raise ChapterFailed(error.problem, folder) from None
    if problem := results.write(planned.project, done, folder, beside):
        say(problem)
    say_failed(done)
    return folder


def stored_or_run(planned: Plan, time: Expected, *, force: bool = False) -> StoredRun:
    """The stored run of a plan, else a new one, with a line of progress.

    Raises:
        ChapterFailed: See `Execution.run`.
    """
    name = planned.chapter.stem
    found = None if force else planned.store.find(planned.parts)
    if found is not None:
        say(f"{name}: nothing has changed since its stored run, which is used")
        return found
    line = Progress(name, time, planned.why)
    try:
        done = Execution(planned).run(line.update)
    except BaseException:
        line.finish("did not run to its end")
        raise
    took, cpu = provenance.seconds(done.info), provenance.cpu(done.info)
    line.finish(f"done in {took}, CPU time {cpu}, peak memory {provenance.memory(done.info)}")
    return done


def expected(planned: Plan) -> Expected:
    """How long a plan may take, by an earlier run or the times recorded with the book."""
    return planned.expected(baseline.seconds(planned.project))


def outlook(planned: Plan) -> str:
    """What running a plan would do, and why, in words."""
    if planned.store.find(planned.parts) is not None:
        return "nothing has changed since its stored run, which would be used"
    return f"would run; {expected(planned)} ({planned.why})"


def say_failed(run: StoredRun) -> None:
    """Say which claims of a run failed."""
    for claim in run.info["claims"]:
        if not claim["passed"]:
            value = float(claim["value"])
            say(f"claim failed: {claim['id']}: measured {value:.4g}: {claim['statement']}")
