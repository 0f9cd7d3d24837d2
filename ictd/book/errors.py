"""The roots of the errors that the book's machinery raises, and what they say of a wrong name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BookError(RuntimeError):
    """Something about the book or this installation is wrong; the message says what to do."""


class UsageError(BookError):
    """Something that was asked for is not accepted; nothing has been run."""


def unknown(name: str, known: Iterable[str], what: str) -> str:
    """A sentence for a name that is none of the known ones, with the nearest of these."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "it is none of the names"
    return f"{name}: no such {what}; {hint} (all: {', '.join(known)})"
