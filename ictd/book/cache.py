"""Stored runs: `_build/runs/CHAPTER/KEY/` holds `executed.ipynb` and `run.json`.

A run is written aside and renamed into place, so that a folder that is there is whole.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from .files import locked, read_json, recover_folder, remove_folder, replace_folder, write_json
from .provenance import changes, digest, sha256

FORMAT = 2
KEPT = 8


@dataclass(frozen=True)
class StoredRun:
    """A finished run in the cache.

    `info` is the contents of `run.json`: chapter, parameters, at_defaults, claims, numbers,
    started, seconds, cpu_seconds, peak_memory (bytes), machine, ictd, python, packages, commit and parts.
    """

    folder: Path
    info: dict[str, Any]

    @property
    def key(self) -> str:
        return self.folder.name

    @property
    def notebook(self) -> Path:
        return self.folder / "executed.ipynb"


class Store:
    """The stored runs of one chapter."""

    def __init__(self, runs_folder: Path, chapter: str) -> None:
        self.folder = runs_folder / chapter

    def find(self, parts: dict[str, Any]) -> StoredRun | None:
        """The run that these parts decide, if it is stored; it then counts as used now."""
        target = self.folder / digest(parts)
        with self._locked():
            recover_folder(target)
        run = self.load(target.name)
        if run is not None:
            os.utime(target)
        return run

    def load(self, key: str) -> StoredRun | None:
        """A run by its key, None if it is not there or not as it was stored."""
        folder = self.folder / key
        info = read_json(folder / "run.json")
        if not isinstance(info, dict) or info.get("format") != FORMAT:
            return None
        run = StoredRun(folder, info)
        whole = digest(info.get("parts")) == key and info.get("sha256") == _sha256(run.notebook)
        return run if whole else None

    def runs(self) -> list[StoredRun]:
        """All stored runs, the most recently used one first."""
        folders = [path for path in self.folder.glob("[0-9a-f]*") if path.is_dir()]
        folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        return [run for path in folders if (run := self.load(path.name))]

    def nearest(self, parts: dict[str, Any]) -> StoredRun | None:
        """The most recent run of the same parameters, else the most recent one."""
        runs = self.runs()
        same = [run for run in runs if run.info["parts"]["parameters"] == parts["parameters"]]
        return next(iter(same or runs), None)

    def why(self, parts: dict[str, Any]) -> str:
        """Why no stored run can be used, in words."""
        nearest = self.nearest(parts)
        if nearest is None:
            return "no stored run"
        return "; ".join(changes(nearest.info["parts"], parts)) or "asked to run again"

    def new_folder(self) -> Path:
        """An empty folder to execute in, which names this process."""
        self._clean()
        self.folder.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=self.folder, prefix=f".new-{os.getpid()}-"))

    def add(self, aside: Path, info: dict[str, Any]) -> StoredRun:
        """Store a finished run that was made in a `new_folder`; forget the oldest ones."""
        info = {"format": FORMAT, "sha256": _sha256(aside / "executed.ipynb"), **info}
        write_json(aside / "run.json", info)
        target = self.folder / digest(info["parts"])
        with self._locked():
            replace_folder(aside, target)
            self._forget()
        return StoredRun(target, info)

    def keep_failed(self, aside: Path) -> Path:
        """Keep a folder in which a run failed, in the place of the last such one."""
        target = self.folder / "last-failure"
        with self._locked():
            replace_folder(aside, target)
        return target

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self.folder / "lock")

    def _forget(self) -> None:
        """Remove old runs, but never the last one at the default parameters."""
        runs = self.runs()
        kept = runs[:KEPT]
        if not any(run.info["at_defaults"] for run in kept):
            kept += [run for run in runs if run.info["at_defaults"]][:1]
        for run in runs:
            if run not in kept:
                remove_folder(run.folder)

    def _clean(self) -> None:
        """Remove what processes that no longer exist have left half-made."""
        for path in self.folder.glob(".new-*"):
            if not psutil.pid_exists(int(path.name.split("-")[1])):
                remove_folder(path)


def _sha256(path: Path) -> str | None:
    try:
        return sha256(path.read_bytes())
    except OSError:
        return None
