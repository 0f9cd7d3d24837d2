"""Writing files and folders so that a reader finds the old or the new, never a half."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from .._files import as_usual, write_bytes


def write_text(path: Path, text: str) -> None:
    """Write a file of text, UTF-8 with unix line ends, aside and rename it into place."""
    write_bytes(path, text.encode())


def write_json(path: Path, data: Any) -> None:
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """The contents of a JSON file, None if it is missing or not one."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def replace_folder(new: Path, target: Path) -> None:
    """Put a finished folder in the place of another one, which it removes."""
    old = _old(target)
    remove_folder(old)
    if target.exists():
        os.rename(target, old)
    as_usual(new, 0o777)
    os.rename(new, target)
    remove_folder(old)


def recover_folder(target: Path) -> None:
    """Undo a `replace_folder` that was killed between its two renames."""
    old = _old(target)
    if old.exists() and not target.exists():
        os.rename(old, target)


def remove_folder(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


def _old(target: Path) -> Path:
    return target.with_name(f".{target.name}-old")


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a lock between processes; it ends with its process, however that ends.

    Args:
        path: The lock file.
        waiting: Called once if another process holds the lock, before this one waits for it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as stream:
        if not _try_lock(stream):
            if waiting is not None:
                waiting()
            while not _try_lock(stream):
                time.sleep(0.1)
        yield


if sys.platform == "win32":
    import msvcrt

    def _try_lock(stream: IO[bytes]) -> bool:
        stream.seek(0)
        try:
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(stream: IO[bytes]) -> bool:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
