"""One line of progress for each chapter: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import Any


def say(text: str) -> None:
    """Print a line for the user, above the bars if there are any."""
    if sys.stderr.isatty():
        from tqdm import tqdm

        tqdm.write(text, file=sys.stderr)
    else:
        # One write a line: chapters that run side by side speak from threads of their own.
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class Progress:
    """The line of one chapter, which begins with the expected time and why it runs."""

    def __init__(self, name: str, expected: float | None, why: str) -> None:
        time = (
            "its time is not known yet" if expected is None else f"expected about {expected:.0f} s"
        )
        self._name = name
        self._bar: Any = None
        say(f"{name}: {time} ({why})")
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(desc=name, unit="cell", leave=False)

    def update(self, done: int, cells: int) -> None:
        if self._bar is not None:
            self._bar.total = cells
            self._bar.update(done - self._bar.n)

    def finish(self, text: str) -> None:
        if self._bar is not None:
            self._bar.close()
        say(f"{self._name}: {text}")
