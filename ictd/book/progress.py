"""One line of progress for each chapter or sweep: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
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

    def __init__(self, name: str, expected: object, why: str) -> None:
        self._name = name
        self._bar: Any = None
        say(f"{name}: {expected} ({why})")
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


class SweepProgress:
    """The line of a sweep: how many points are done, failed and left, and how long the rest may take."""

    _SECONDS_BETWEEN_LINES = 10.0

    def __init__(self, name: str, points: int) -> None:
        self._name = name
        self._points = points
        self._done = self._failed = 0
        self._began = self._said = time.monotonic()
        self._bar: Any = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=points, desc=name, unit="point")

    def update(self, *, failed: bool) -> None:
        self._failed += failed
        self._done += not failed
        if self._bar is not None:
            self._bar.set_postfix(failed=self._failed, refresh=False)
            self._bar.update()
            return
        now = time.monotonic()
        ended = self._done + self._failed
        if ended == self._points or now - self._said >= self._SECONDS_BETWEEN_LINES:
            self._said = now
            left = self._points - ended
            rest = (now - self._began) / ended * left
            time_left = f", about {duration(rest)} left" if left else ""
            say(f"{self._name}: {self._done} done, {self._failed} failed, {left} left{time_left}")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def duration(seconds: float) -> str:
    """A time in words."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
