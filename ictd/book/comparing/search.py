"""The runs of a comparison: folders of results found below others and read one after the other."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .runs import PARAMETERS, RESULTS, CompareError, Result, Run, read

_ERROR = "error.txt"


@dataclass
class Collected:
    """What was found.

    Attributes:
        runs: Finished runs, each once.
        failed: Folders of runs that failed.
        unfinished: Folders without results or an error.
        repeated: Number of folders that hold a run that another one holds too.
        contradictions: Pairs of folders of one run, by its key, that do not hold the same results.
        meanings: What a result stands for; empty where the runs do not say the same.
    """

    runs: list[Run] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    repeated: int = 0
    contradictions: list[tuple[str, str]] = field(default_factory=list)
    meanings: dict[Result, str] = field(default_factory=dict)


def collect(folders: Iterable[str | Path]) -> Collected:
    """Read every run in or below some folders; of a file, what a comparison needs is kept.

    Raises:
        CompareError: A folder cannot be read, a file is damaged, there are no results, or they are of
            two chapters.
    """
    given = [os.fspath(folder) for folder in folders]
    found = Collected()
    same: defaultdict[str, list[Run]] = defaultdict(list)
    # Runs share what is the same in them: 10,000 files bring the same few names and versions.
    shared: dict[Any, Any] = {}
    for folder, names in _search(given):
        if RESULTS in names:
            run = read(Path(folder), shared, found.meanings)
            same[run.identity].append(run)
            _same_chapter(next(iter(same.values()))[0], run)
        else:
            (found.failed if _ERROR in names else found.unfinished).append(folder)
    if not same:
        raise CompareError(
            f"there are no results in {', '.join(given) or 'no folder'}{_but(found)}"
        )
    for runs in same.values():
        # Whatever the order of the folders, it is the same one that counts.
        kept, *others = sorted(runs, key=lambda run: run.folder)
        found.runs.append(kept)
        found.repeated += len(others)
        found.contradictions += [
            (kept.folder, other.folder)
            for other in others
            if repr(other.results) != repr(kept.results)
        ]
    found.contradictions.sort()
    found.failed.sort()
    found.unfinished.sort()
    return found


def _but(found: Collected) -> str:
    counts = [(len(found.failed), "failed"), (len(found.unfinished), "unfinished")]
    words = [f"{count} {what}" for count, what in counts if count]
    return f"; runs found: {', '.join(words)}" if words else ""


def _same_chapter(first: Run, run: Run) -> None:
    if first.chapter != run.chapter:
        both = " and ".join(f"{one.chapter} ({one.folder})" for one in (first, run))
        raise CompareError(f"these are runs of two chapters: {both}; compare those of one")


def _search(given: Iterable[str]) -> Iterator[tuple[str, set[str]]]:
    """Each results folder once, finished or not, with the names in it; hidden folders are skipped."""
    seen: set[str] = set()
    for root in given:
        if not os.path.isdir(root):
            what = "it is not a folder" if os.path.exists(root) else "there is no such folder"
            raise CompareError(f"{root}: {what}; expected a folder of results")
        left = [root]
        while left:
            folder = os.path.realpath(left.pop())
            if folder in seen:  # given twice, or reached through a link
                continue
            seen.add(folder)
            try:
                with os.scandir(folder) as entries:
                    below = {entry.name: entry.is_dir() for entry in entries}
            except OSError as error:
                raise CompareError(f"{folder}: it cannot be read: {error.strerror}") from None
            names = {name for name, is_folder in below.items() if not is_folder}
            if names & {RESULTS, PARAMETERS, _ERROR}:
                yield folder, names
            left += [
                os.path.join(folder, name)
                for name in sorted(below, reverse=True)
                if below[name] and not name.startswith(".")
            ]
