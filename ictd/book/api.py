"""Run a chapter and build the book from Python; the command line calls the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import builder, results
from .parameters import Value
from .project import find_chapter, find_project
from .runner import Execution, plan


@dataclass(frozen=True)
class Result:
    """What a run of a chapter gave.

    Attributes:
        folder: Holds `executed.ipynb`, `parameters.json` and `results.json`.
        parameters: The typed values of all parameters.
        claims: Each with id, statement, source, value, bounds and whether it passed.
        numbers: The recorded numbers by name.
    """

    folder: Path
    parameters: dict[str, Value]
    claims: list[dict[str, Any]]
    numbers: dict[str, float]


def run(
    chapter: str | Path,
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
        force: Run it although there is a stored run.

    Returns:
        Where the results are, and what was recorded.

    Raises:
        ParameterError: Before anything is executed.
        BookError: There is no such chapter, or it did not run to its end.
    """
    planned = plan(*find_chapter(chapter), parameters)
    found = None if force else planned.store.find(planned.parts)
    done = found or Execution(planned).run()
    folder = Path(output).resolve() if output is not None else results.default_folder(done)
    results.write(done, folder)
    numbers = {number["name"]: float(number["value"]) for number in done.info["numbers"]}
    return Result(folder, planned.parameters, done.info["claims"], numbers)


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
