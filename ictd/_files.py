"""Writing a file so that a reader finds the old one or the new one, never a half."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

# The process's mask can only be read by setting it, and threads share it.
_mask_is_read = threading.Lock()


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a file aside; at the end of the block, if nothing was raised, it is renamed into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        as_usual(aside, 0o666)
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file aside and rename it into place."""
    with replacing(path) as stream:
        stream.write(content)


def as_usual(path: str | Path, mode: int) -> None:
    """Give what was made for this user alone the permissions that new files have here.

    Args:
        path: A file or a folder.
        mode: What new ones have before the process's mask, 0o666 for files, 0o777 for folders.
    """
    with _mask_is_read:
        mask = os.umask(0)
        os.umask(mask)
    os.chmod(path, mode & ~mask)
