"""Build the book: run what is not stored, stage, render, swap in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from . import baseline, machine, offline, provenance, site
from . import notebook as nb
from .cache import Store, StoredRun
from .errors import BookError
from .files import locked, read_json, recover_folder, write_json
from .parameters import ParameterError
from .progress import Progress, say
from .project import Project
from .runner import ChapterFailed, Execution, Plan, plan


class BuildFailed(BookError):
    """The site was not made; the message says which chapters failed and how."""


def build_book(project: Project, *, force: bool = False, record: bool = False) -> Path:
    """Make the site of a project and return its `index.html`.

    Args:
        project: The book.
        force: Run every chapter and render the site although nothing has changed.
        record: Write what the chapters give at their defaults to `chapters/defaults.json`.

    Raises:
        BuildFailed, SiteError, ParameterError: The last good site is then as it was.
    """
    site.check_renderer()

    def waiting() -> None:
        say("another build of this book is running; waiting for it to end")

    with locked(project.build_folder / "lock", waiting):
        recover_folder(project.build_folder / "html")
        plans = _plans(project)
        runs, fresh = _run_all(plans, baseline.seconds(project), force)
        if record:
            baseline.record(project, [(nb.read(chapter), run) for chapter, run in runs.items()])
        index = _make_site(project, runs, force)
        say(_table(runs.values(), fresh))
        for warning in _over_the_limits(runs.values()):
            say(warning)
    return index


def built_runs(project: Project) -> list[StoredRun]:
    """The runs that the last site was made of.

    Raises:
        BookError: If there is no site, or a run has been forgotten since.
    """
    book = read_json(_book_path(project))
    keys = book["runs"] if book else {}
    runs = [Store(project.runs_folder, chapter).load(key) for chapter, key in keys.items()]
    found = [run for run in runs if run is not None]
    if not found or len(found) != len(runs):
        raise BookError("there is no built book whose runs are stored; run: ictd build")
    return found


def built_site(project: Project) -> str:
    """The fingerprint of the last site.

    Raises:
        BookError: If there is no site.
    """
    book = read_json(_book_path(project))
    if not book or not (project.build_folder / "html" / "index.html").is_file():
        raise BookError("there is no built book; run: ictd build")
    return str(book["site"])


def _plans(project: Project) -> list[Plan]:
    plans, problems = [], []
    for chapter in project.chapters():
        try:
            plans.append(plan(project, chapter))
        except ParameterError as error:
            problems.append(f"{chapter.stem}: {error}")
    if problems:
        raise BuildFailed("\n".join(problems))
    return plans


def _run_all(
    plans: Sequence[Plan], recorded: dict[str, float], force: bool
) -> tuple[dict[Path, StoredRun], set[str]]:
    """The runs of all chapters, and the keys of those that were not stored before.

    If a chapter fails, the others still run to their ends.
    """
    stored = {} if force else {p.chapter: run for p in plans if (run := p.store.find(p.parts))}
    missing = [p for p in plans if p.chapter not in stored]
    fresh, failures = _run_missing(missing, recorded)
    if failures:
        raise BuildFailed("\n".join([*failures, "the last good site, if any, is as it was"]))
    runs = {p.chapter: (stored | fresh)[p.chapter] for p in plans}
    return runs, {run.key for run in fresh.values()}


def _run_missing(
    plans: Sequence[Plan], recorded: dict[str, float]
) -> tuple[dict[Path, StoredRun], list[str]]:
    """Run chapters side by side; return the finished runs and what failed."""
    finished: dict[Path, StoredRun] = {}
    failures: list[str] = []

    def run(execution: Execution) -> StoredRun:
        plan = execution.plan
        line = Progress(plan.chapter.stem, plan.expected(recorded), plan.why)
        try:
            done = execution.run(line.update)
        except Exception:
            line.finish("failed")
            raise
        line.finish(f"done in {done.info['seconds']:.1f} s")
        return done

    with ThreadPoolExecutor(machine.workers(len(plans))) as pool:
        futures = {pool.submit(run, execution): execution for execution in map(Execution, plans)}
        try:
            for future in as_completed(futures):
                try:
                    finished[futures[future].plan.chapter] = future.result()
                except ChapterFailed as error:
                    failures.append(str(error))
        except BaseException:
            for execution in futures.values():
                execution.stop()
            raise
    return finished, failures


def _make_site(project: Project, runs: dict[Path, StoredRun], force: bool) -> Path:
    """Stage and render, unless the last site is of the same."""
    staged = site.stage(project, runs)
    fingerprint = site.fingerprint(staged)
    book: Any = read_json(_book_path(project)) or {}
    index = project.build_folder / "html" / "index.html"
    if book.get("site") == fingerprint and index.is_file() and not force:
        say("the site is up to date: nothing that it depends on has changed")
    else:
        say("rendering the site")
        site.render(project, staged)
        offline.forget(project)
    keys = {run.info["chapter"]: run.key for run in runs.values()}
    write_json(_book_path(project), {"site": fingerprint, "runs": keys})
    return index


def _table(runs: Iterable[StoredRun], fresh: set[str]) -> str:
    rows = [("chapter", "time", "CPU time", "peak memory", "")]
    for run in runs:
        info = run.info
        when = "run now" if run.key in fresh else f"stored, of {info['started'][:10]}"
        figures = provenance.seconds(info), provenance.cpu(info), provenance.memory(info)
        rows.append((info["chapter"], *figures, when))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = []
    for chapter, *took, when in rows:
        right = [text.rjust(width) for text, width in zip(took, widths[1:], strict=False)]
        lines.append("  ".join([chapter.ljust(widths[0]), *right, when]).rstrip())
    return "\n".join(lines)


def _over_the_limits(runs: Iterable[StoredRun]) -> list[str]:
    """A line for each chapter that takes more than a chapter should, on this machine."""
    return [
        f"warning: {run.info['chapter']}: {what} {amount}"
        for run in runs
        for what, amount in provenance.over_limits(run.info).items()
    ]


def _book_path(project: Project) -> Path:
    return project.build_folder / "book.json"
