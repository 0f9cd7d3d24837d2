"""Compare runs of a chapter: what differs between them, and what they found.

Runs are grouped into settings, whose parameters are equal but for `seed`, and every result is shown with
its spread over the seeds.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..._files import write_bytes
from ..errors import unknown
from ..files import write_text
from ..parameters import Value
from . import notes, plan, tables
from . import settings as grouping
from .rows import Cell, Rows
from .runs import CompareError, Result
from .search import Collected, collect
from .settings import SEED, VERSION, Setting

if TYPE_CHECKING:
    from ictd.figures import BookFigure

__all__ = ["CompareError", "Comparison", "Setting", "compare"]


def compare(
    folders: Sequence[str | Path] | str | Path,
    *,
    only: Sequence[str] = (),
    output: str | Path | None = None,
) -> Comparison:
    """Compare the runs of one chapter.

    Args:
        folders: Folders of results as `ictd run -o` and `ictd sweep` leave them, or folders above them;
            a run that is found twice counts once.
        only: Names of numbers and claims to show; all of them if it is empty.
        output: Where to write the comparison, if anywhere.

    Returns:
        The runs, grouped into settings, with tables and a figure.

    Raises:
        CompareError: A folder or a file cannot be read, there are no results, they are of two chapters, or
            `only` has a name that no run recorded.
    """
    given = [folders] if isinstance(folders, str | Path) else list(folders)
    made = Comparison(collect(given), [only] if isinstance(only, str) else only)
    if output is not None:
        made.write(output)
    return made


class Comparison:
    """Runs of one chapter side by side.

    Args:
        found: The runs.
        only: Names of the results to show; all of them if it is empty.

    Raises:
        CompareError: If `only` has a name that no run recorded.

    Attributes:
        chapter: Stem of the notebook.
        varied: The parameters that differ, without `seed`, in the order of the chapter; `code version` is
            the last of them if some runs differ in the code or the packages alone.
        fixed: The other parameters with their values, which all runs have in common.
        results: The numbers and claims that are shown, in the order of the chapter.
        settings: The groups of runs, in the order of their parameters' values.
        folder: The folder above all runs; the names of folders are relative to it.
        failed: Folders of runs that failed.
        unfinished: Folders of runs without results or an error.
        notes: Sentences on what was not compared, and on the versions of the code.
    """

    def __init__(self, found: Collected, only: Sequence[str] = ()) -> None:
        versions = grouping.version_names(found.runs)
        runs = grouping.in_order(grouping.with_versions(found.runs, versions))
        recorded = grouping.result_names(runs)
        self.chapter: str = runs[0].chapter
        self.varied: list[str] = grouping.varied(runs)
        self.fixed: dict[str, Value] = {
            name: value
            for name, value in runs[0].parameters.items()
            if name != SEED and name not in self.varied
        }
        self.results: list[Result] = _chosen(recorded, only)
        self._chosen = bool(only)
        self.settings: list[Setting] = grouping.settings(runs, recorded)
        self.folder = Path(_above(run.folder for run in runs))
        self.failed = self._relative(found.failed)
        self.unfinished = self._relative(found.unfinished)
        folders = self._relative(run.folder for run in runs)
        self.notes: list[str] = [
            *notes.left_out(self.failed, self.unfinished, found.repeated),
            *notes.contradictory([self._relative(pair) for pair in found.contradictions]),
            *notes.of_versions(runs, folders, versions),
        ]
        of_runs = [versions[run.version] for run in runs]
        told = len(versions) > 1 and VERSION not in self.varied
        self._rows = Rows(runs, folders, self.varied, self.results, of_runs if told else ())
        self._meanings = found.meanings

    @property
    def runs(self) -> list[dict[str, Cell]]:
        """A row a run, as in `compare.csv`: its folder, the parameters that differ, its results.

        The columns of results are `number:NAME`, `claim:ID` and `passed:ID`; None stands for what a run
        did not record.
        """
        return [dict(zip(self._rows.names, row, strict=True)) for row in self._rows]

    def table(self, width: int = 100, settings: int = 50) -> str:
        """The comparison as text for a terminal.

        Args:
            width: Characters in a line.
            settings: Most settings to show.
        """
        head = [f"{self._summary()}, below {self.folder}", *self.notes]
        head += notes.fixed(self.fixed)
        # A path or a name is not broken.
        wrapper = textwrap.TextWrapper(
            width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        lines = [wrapper.fill(line) for line in head]
        shown = tables.terminal(self.settings, self.varied, self.results, width, settings)
        return "\n\n".join(filter(None, ["\n".join(lines), shown])) + "\n"

    def markdown(self) -> str:
        """The comparison as a page of Markdown, without its figure."""
        said = [self._summary(), *self.notes, *notes.fixed(self.fixed)]
        meanings = [
            f"- {name} ({kind}): {self._meanings[Result(kind, name)]}"
            for kind, name in self.results
            if self._meanings[Result(kind, name)]
        ]
        parts = [
            f"# Comparison of runs of {self.chapter}",
            "\n".join(f"- {note}" for note in said),
            tables.as_markdown(self.settings, self.varied, self.results),
            "\n".join(["## What the results are", "", *meanings]) if meanings else "",
        ]
        return "\n\n".join(filter(None, parts)) + "\n"

    def __str__(self) -> str:
        return self.table()

    def _repr_markdown_(self) -> str:
        """What a notebook shows."""
        return self.markdown()

    def csv(self) -> str:
        """A line a run: its folder, the parameters that differ, the seed, its results."""
        return self._rows.csv()

    def figure(self) -> BookFigure | None:
        """The numbers, or the claims if there are none, against the parameter that was swept.

        Returns:
            The figure, which a notebook shows; None if there is nothing to draw (`figure_notes` says why).
        """
        from . import figure

        planned = self._plan()
        return None if isinstance(planned, str) else figure.draw(planned, self._summary())

    @property
    def figure_notes(self) -> list[str]:
        """Sentences on what the figure leaves out, or why there is none."""
        planned = self._plan()
        return [planned] if isinstance(planned, str) else list(planned.notes)

    def write(self, folder: str | Path) -> list[Path]:
        """Write `compare.csv`, `compare.md`, `compare.png` and `compare.svg`, each atomically.

        Args:
            folder: Where to; it is made if there is none.

        Returns:
            The files, without pictures if there is nothing to draw; older ones are then removed.

        Raises:
            CompareError: If the folder cannot be written to.
        """
        target = Path(folder).resolve()
        planned = self._plan()
        page = self.markdown()
        pictures: dict[str, bytes] = {}
        if isinstance(planned, str):
            page += f"\n{_sentence(planned)}\n"
        else:
            from . import figure

            pictures = figure.files(planned, self._summary())
            page += f"\n![{_alt(planned)}](compare.png)\n"
            page += "".join(f"\n{_sentence(note)}\n" for note in planned.notes)
        try:
            write_text(target / "compare.csv", self.csv())
            write_text(target / "compare.md", page)
            for kind in ("png", "svg"):
                if kind in pictures:
                    write_bytes(target / f"compare.{kind}", pictures[kind])
                else:
                    (target / f"compare.{kind}").unlink(missing_ok=True)
        except OSError as error:
            raise CompareError(f"{target}: it cannot be written to: {error.strerror}") from None
        return [target / f"compare.{kind}" for kind in ("csv", "md", *pictures)]

    def _plan(self) -> plan.Plan | str:
        return plan.make(self.settings, self.varied, self.results, self._chosen)

    def _summary(self) -> str:
        return notes.summary(self.chapter, self.settings)

    def _relative(self, folders: Iterable[str]) -> list[str]:
        return [Path(os.path.relpath(folder, self.folder)).as_posix() for folder in folders]


def _chosen(recorded: Sequence[Result], only: Sequence[str]) -> list[Result]:
    """The results with the given names; all of them if there are none."""
    names = list(dict.fromkeys(result.name for result in recorded))
    if problems := [unknown(name, names, "number or claim") for name in only if name not in names]:
        raise CompareError("\n  ".join(["only has names that no run recorded:", *problems]))
    return [result for result in recorded if not only or result.name in only]


def _above(folders: Iterable[str]) -> str:
    """The folder above all; the root of the first one if they are on several drives."""
    parents = [os.path.dirname(folder) for folder in folders]
    try:
        return os.path.commonpath(parents)
    except ValueError:
        return parents[0]


def _sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}."


def _alt(planned: plan.Plan) -> str:
    names = ", ".join(result.name for result in planned.panels)
    if planned.of_seeds:
        return f"The value at each seed of: {names}"
    return f"Against {planned.x}, with the spread over seeds: {names}"
