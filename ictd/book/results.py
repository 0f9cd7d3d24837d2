"""The folder of results of one run, as `ictd run` and each point of `ictd sweep` leave it.

`executed.ipynb` and `executed.html`, `parameters.json`, `log.txt`, `figures/`, and, written last,
`results.json`: a folder without it is of a run that failed or was cut short. A failed one has `error.txt`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from . import figure_files, notebook, page, provenance
from .beside import Beside, Outcome, default_beside_yours
from .cache import StoredRun
from .errors import BookError, UsageError
from .files import read_json, remove_folder, write_json, write_text
from .parameters import Value
from .project import Project
from .provenance import digest
from .runner import ChapterFailed, Plan

_PROVENANCE = (
    "ictd",
    "python",
    "packages",
    "commit",
    "started",
    "seconds",
    "cpu_seconds",
    "peak_memory",
    "machine",
)
_RESULTS = "results.json"
_PARAMETERS = "parameters.json"
_ERROR = "error.txt"
_LOG = "log.txt"
_EXECUTED = "executed.ipynb"


class FolderTaken(UsageError):
    """The folder for the results holds others, or cannot be written to."""


def default_folder(planned: Plan) -> Path:
    """Where results go unless somebody says: named after the chapter and its parameters."""
    return Path.cwd() / "runs" / f"{planned.chapter.stem}-{digest(planned.parameters)[:8]}"


def contents(info: dict[str, Any]) -> dict[str, Any]:
    """What `results.json` says of a run.

    In `provenance`, times are in seconds and peak memory is in bytes; `key` is a hash of all that decides
    the run, and `code` one of the same without the parameters.
    """
    parts = info["parts"]
    code = {name: part for name, part in parts.items() if name != "parameters"}
    made = {name: info[name] for name in _PROVENANCE}
    return {
        "chapter": info["chapter"],
        "at_defaults": info["at_defaults"],
        "claims": info["claims"],
        "numbers": info["numbers"],
        "provenance": {**made, "key": digest(parts), "code": digest(code)},
    }


def make_folder(folder: Path) -> None:
    """Make a folder for results.

    Raises:
        FolderTaken: If it cannot be made or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderTaken(f"{folder}: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FolderTaken(f"{folder}: the folder cannot be written to")


def of_other_run(folder: Path, chapter: str, parameters: dict[str, Value]) -> str:
    """What else the folder holds the results of, in words; empty if nothing, or the same."""
    there = read_json(folder / _PARAMETERS)
    if not isinstance(there, dict):
        return ""
    results = read_json(folder / _RESULTS)
    if isinstance(results, dict) and results.get("chapter", chapter) != chapter:
        return f"a run of {results['chapter']}"
    names = [name for name in {**there, **parameters} if there.get(name) != parameters.get(name)]
    values = ", ".join(f"{name} {there.get(name)!r}" for name in names[:3])
    return f"a run with {values}" if values else ""


def is_of(folder: Path, key: str, parameters: dict[str, Value]) -> bool:
    """Whether a folder holds the whole results of the run that this key and these parameters decide."""
    same: bool = key_of(folder) == key and read_json(folder / _PARAMETERS) == parameters
    return same and (folder / _EXECUTED).is_file()


def key_of(folder: Path) -> str | None:
    """The key of the run whose results a folder holds, None if there are none that can be read."""
    results = read_json(folder / _RESULTS)
    made = results.get("provenance") if isinstance(results, dict) else None
    key = made.get("key") if isinstance(made, dict) else None
    return key if isinstance(key, str) else None


def read(folder: Path) -> dict[str, Any]:
    """What `results.json` says, and `parameters`.

    Raises:
        BookError: If the folder does not hold the results of a run that has ended.
    """
    found = read_json(folder / _RESULTS)
    parameters = read_json(folder / _PARAMETERS)
    if not isinstance(found, dict) or not isinstance(parameters, dict):
        name = _PARAMETERS if isinstance(found, dict) else _RESULTS
        raise BookError(f"{folder} holds no results of a run: {name} is missing or damaged")
    return {**found, "parameters": parameters}


def write(project: Project, run: StoredRun, folder: Path, beside: Beside) -> str:
    """Write the results of a run; return why there is no page of it, in words, or nothing.

    Args:
        project: The book that the chapter is of.
        run: The run, whose folder also has its `log.txt`.
        folder: Where the results go; what it holds of an earlier run is replaced.
        beside: What the page shows beside the results.
    """
    info, content = run.info, notebook.read(run.notebook)
    _clear(folder)
    write_json(folder / _PARAMETERS, info["parameters"])
    write_text(folder / _LOG, _log(info, run.folder / _LOG))
    write_text(folder / _EXECUTED, run.notebook.read_text(encoding="utf-8"))
    figure_files.write(content, info["chapter"], folder / "figures")
    problem = ""
    try:
        write_text(folder / "executed.html", _page(project, content, info, beside))
    except BookError as error:
        problem = f"{info['chapter']}: no page was made of the executed notebook: {error}"
    write_json(folder / _RESULTS, contents(info))
    return problem


def write_failed(planned: Plan, error: ChapterFailed, folder: Path) -> None:
    """Write what a failed run left: the notebook as far as it came, its parameters, log and error."""
    _clear(folder)
    write_json(folder / _PARAMETERS, planned.parameters)
    for name in (_EXECUTED, _LOG):
        if (error.folder / name).is_file():
            write_text(folder / name, (error.folder / name).read_text("utf-8", "replace"))
    write_text(folder / _ERROR, f"{error.problem}\n")


def _clear(folder: Path) -> None:
    """Take away what an earlier run left, the mark that it is whole first."""
    for name in (_RESULTS, _ERROR, "executed.html", _EXECUTED):
        (folder / name).unlink(missing_ok=True)
    remove_folder(folder / "figures")


def _log(info: dict[str, Any], printed: Path) -> str:
    """How a run was made, and what its process printed beside the notebook."""
    passed, failed = provenance.verdicts(info)
    lines = [
        f"chapter: {info['chapter']}",
        f"parameters: {json.dumps(info['parameters'], ensure_ascii=False)}",
        f"started: {provenance.when(info)}",
        f"took: {provenance.seconds(info)}, CPU time {provenance.cpu(info)}, "
        f"peak memory {provenance.memory(info)}",
        f"claims: {passed} pass, {failed} fail",
        f"made by: {provenance.versions(info)}",
        f"commit: {info['commit']}",
    ]
    try:
        text = printed.read_text("utf-8", "replace").strip()
    except OSError:
        text = ""
    return "\n".join([*lines, "", text or "the kernel printed nothing beside the notebook", ""])


def _page(
    project: Project, content: notebook.Notebook, info: dict[str, Any], beside: Beside
) -> str:
    yours = Outcome(info["parameters"], info["claims"], info["numbers"])
    chapter = info["chapter"]
    shown = default_beside_yours(beside, yours, chapter)
    head = f"{provenance.block(info, info['commit'])}\n\n{shown}"
    return page.render(project, content, chapter, head)
