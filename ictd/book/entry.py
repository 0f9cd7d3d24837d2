"""The command `ictd` of an installation that may be without what the book needs."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command and return its exit status: 2, and what to install, where something is missing."""
    try:
        from .cli import main as run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "ictd":
            raise
        print(
            f"ictd: the command needs {error.name}, which comes with the extra 'book'; in the project's "
            "folder: pip install '.[book]'",
            file=sys.stderr,
        )
        return 2
    return run()
