"""The folder of results that `ictd run` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import figure_files, notebook
from .cache import StoredRun
from .files import write_json, write_text
from .provenance import digest

_PROVENANCE = ("ictd", "python", "packages", "commit", "started", "seconds", "peak_memory")


def default_folder(run: StoredRun) -> Path:
    """Where results go unless somebody says: named after the chapter and its parameters."""
    name = f"{run.info['chapter']}-{digest(run.info['parameters'])[:8]}"
    return Path.cwd() / "runs" / name


def contents(run: StoredRun) -> dict[str, Any]:
    """What `results.json` says; peak memory is in bytes."""
    info = run.info
    return {
        "chapter": info["chapter"],
        "at_defaults": info["at_defaults"],
        "claims": info["claims"],
        "numbers": info["numbers"],
        "provenance": {name: info[name] for name in _PROVENANCE},
    }


def write(run: StoredRun, folder: Path) -> None:
    """Write `executed.ipynb`, `parameters.json`, `figures/` and, last, `results.json`, each atomically."""
    write_text(folder / "executed.ipynb", run.notebook.read_text(encoding="utf-8"))
    write_json(folder / "parameters.json", run.info["parameters"])
    figure_files.write(notebook.read(run.notebook), run.info["chapter"], folder / "figures")
    write_json(folder / "results.json", contents(run))
