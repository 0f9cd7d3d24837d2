"""Run, sweep and compare chapters, and build the book, from Python; the command line calls the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import builder, comparing, results, running, sweeping
from .comparing import Comparison
from .parameters import Value
from .points import rows_of
from .project import find_chapter, find_project
from .runner import plan


@dataclass(frozen=True)
class Result:
    """What a run of a chapter gave.

    Attributes:
        folder: Holds `executed.ipynb` and `executed.html`, `parameters.json`, `results.json`, `log.txt` and
            the figures.
        parameters: The typed values of all parameters.
        claims: Each with id, statement, source, value, bounds and whether it passed.
        numbers: The recorded numbers by name.
        provenance: Versions, commit, start, machine, seconds, CPU seconds and peak memory (bytes); `key` is
            a hash of everything that decides the run.
    """

    folder: Path
    parameters: dict[str, Value]
    claims: list[dict[str, Any]]
    numbers: dict[str, float]
    provenance: dict[str, Any]

    @classmethod
    def read(cls, folder: str | Path) -> Result:
        """The results in a folder.

        Args:
            folder: As `ictd run -o` wrote it, or one point of a sweep.

        Returns:
            What the run gave.

        Raises:
            BookError: If the folder does not hold the results of a run that has ended.
        """
        found = results.read(Path(folder))
        numbers = {number["name"]: float(number["value"]) for number in found["numbers"]}
        claims, parameters = found["claims"], found["parameters"]
        return cls(Path(folder), parameters, claims, numbers, found["provenance"])


@dataclass(frozen=True)
class SweepResult:
    """What a sweep gave.

    Attributes:
        folder: Holds a folder of results for each point.
        finished: The folders of the points that ran to their ends, in the order of the points.
        run_now: How many of them were run by this call; the others were finished before.
        failures: What failed: parameters, folder and problem of each.
    """

    folder: Path
    finished: list[Path]
    run_now: int
    failures: list[Failure]

    def results(self) -> list[Result]:
        """Read what the finished points gave.

        Returns:
            One result a point, in the order of the points.
        """
        return [Result.read(folder) for folder in self.finished]


@dataclass(frozen=True)
class Failure:
    """A point of a sweep that did not run to its end.

    Attributes:
        parameters: The typed values of all its parameters.
        folder: Holds the notebook as far as it came, and `error.txt`.
        problem: Chapter, cell and error; or how its worker was lost.
    """

    parameters: dict[str, Value]
    folder: Path
    problem: str


def run(
    chapter: str | int | Path,
    parameters: Mapping[str, object] | None = None,
    *,
    output: str | Path | None = None,
    force: bool = False,
) -> Result:
    """Run a chapter, or take the stored run if nothing that it depends on has changed.

    Args:
        chapter: Number, name or path of the notebook.
        parameters: Values by name: Python or numpy values, or texts as on the command line.
        output: The folder for the results; by default `runs/CHAPTER-HASH` in the current one.
        force: Run it although there is a stored run, and replace what the folder holds of another one.

    Returns:
        Where the results are, and what was recorded.

    Raises:
        ParameterError: Before anything is executed.
        BookError: There is no such chapter, it did not run to its end, or the folder holds other results.
    """
    planned = plan(*find_chapter(chapter), parameters)
    return Result.read(running.run(planned, _path(output), force=force))


def sweep(
    chapter: str | int | Path,
    parameters: Mapping[str, object] | None = None,
    *,
    points: str | Path | Iterable[Mapping[str, object]] = (),
    output: str | Path | None = None,
    scheduler: Any = None,
    workers: int | None = None,
    force: bool = False,
) -> SweepResult:
    """Run a chapter at every point of a grid, or of a list, and leave a folder of results for each.

    A point whose results are there is not run again. One that fails does not stop the others.

    Args:
        chapter: Number, name or path of the notebook.
        parameters: By name one value, or several: a list, tuple, range, array or a text such as "0:30"
            (half-open). The grid has every combination. Where a parameter is a list itself, several values
            are a list of lists.
        points: Points that are each combined with the grid: mappings of names to values, or a CSV, YAML or
            JSON file of them.
        output: The folder for the results; by default one in `runs/` that the same points find again.
        scheduler: Address of a Dask scheduler, or a Dask client or cluster; by default workers on this
            machine.
        workers: How many points run side by side on this machine; by default as many as the cores and the
            memory that this process may use allow.
        force: Run points again that are finished.

    Returns:
        Where the results are, and what failed.

    Raises:
        ParameterError: Before anything is executed; it lists everything that is wrong.
        BookError: There is no such chapter, the folder holds results of another one, or the scheduler
            cannot be reached.
    """
    rows = rows_of(Path(points)) if isinstance(points, (str, Path)) else points
    prepared = sweeping.prepare(*find_chapter(chapter), parameters or {}, rows, _path(output))
    done = sweeping.run(prepared, scheduler=scheduler, workers=workers, force=force)
    failures = [Failure(f.point.parameters, f.folder, f.problem) for f in done.failures]
    return SweepResult(done.folder, list(done.finished.values()), done.run_now, failures)


def compare(
    folders: str | Path | Sequence[str | Path],
    *,
    only: Sequence[str] = (),
    output: str | Path | None = None,
) -> Comparison:
    """Put the results of runs side by side: what differs in the parameters, beside claims and numbers.

    Args:
        folders: Folders of results, or of sweeps, or folders around them.
        only: Names of the numbers and claims to show; by default all.
        output: A folder for the same as CSV, Markdown and a figure; by default nothing is written.

    Returns:
        The comparison, which a notebook shows as its tables.

    Raises:
        CompareError: There are no results, they are of several chapters, or a name is unknown.
    """
    several = [folders] if isinstance(folders, (str, Path)) else folders
    return comparing.compare(several, only=only, output=output)


def build(*, force: bool = False) -> Path:
    """Make the site of the book around the current folder.

    Args:
        force: Run every chapter and render the site although nothing has changed.

    Returns:
        Its `index.html`.

    Raises:
        BookError: A chapter failed, or the site cannot be rendered. The last good site is then as it was.
    """
    return builder.build_book(find_project(), force=force)


def _path(folder: str | Path | None) -> Path | None:
    return None if folder is None else Path(folder)
