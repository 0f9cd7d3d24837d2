"""Runs grouped by their parameters: what differs, and how results spread over seeds."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ..parameters import Value
from .runs import Measured, Result, Run, Version

SEED = "seed"
#: Stands beside the parameters where runs differ in their version alone; no parameter has such a name.
VERSION = "code version"

_T = TypeVar("_T", str, Result)


@dataclass(frozen=True)
class Spread:
    """A result over the seeds of one setting.

    Attributes:
        runs: How many runs the setting has.
        count: How many of them have the result.
        not_finite: How many of these are nan or infinite; the others make the next three.
        median: nan if there is nothing finite; of a single run, its value whatever it is.
        smallest: nan if there is nothing finite.
        largest: nan if there is nothing finite.
        passed: How many passed, None if the result is a number.
        at_most: Median of the upper bounds, None if there are none.
        at_least: Median of the lower bounds, None if there are none.
    """

    runs: int
    count: int
    not_finite: int
    median: float
    smallest: float
    largest: float
    passed: int | None
    at_most: float | None
    at_least: float | None

    @classmethod
    def of(cls, found: Sequence[Measured | None]) -> Spread:
        """The spread over runs; None stands for a run without the result."""
        measured = [one for one in found if one is not None]
        finite = [one.value for one in measured if math.isfinite(one.value)]
        passed = [one.passed for one in measured if one.passed is not None]
        shown = finite or ([measured[0].value] if len(measured) == 1 else [])
        return cls(
            runs=len(found),
            count=len(measured),
            not_finite=len(measured) - len(finite),
            median=statistics.median(shown) if shown else math.nan,
            smallest=min(finite, default=math.nan),
            largest=max(finite, default=math.nan),
            passed=sum(passed) if passed else None,
            at_most=_median([one.at_most for one in measured]),
            at_least=_median([one.at_least for one in measured]),
        )

    @property
    def failed(self) -> int:
        """How many runs failed the claim; 0 for a number."""
        return 0 if self.passed is None else self.count - self.passed

    def __str__(self) -> str:
        """Such as `0.87 [0.79, 0.91], passed 3 of 4`; numbers with four digits."""
        if self.count == 0:
            return "–"
        words = []
        if self.count == 1 or self.not_finite < self.count:
            words.append(f"{self.median:.4g}")
            if self.smallest < self.largest:
                words[0] += f" [{self.smallest:.4g}, {self.largest:.4g}]"
        if self.not_finite and self.count > 1:
            words.append(f"{self.not_finite} of {self.count} not finite")
        if self.passed is not None:
            words.append(self._passed())
        if self.count < self.runs:
            words.append(f"in {self.count} of {self.runs} runs")
        return ", ".join(words)

    def _passed(self) -> str:
        if not self.failed:
            return "passed"
        return "FAILED" if self.count == 1 else f"passed {self.passed} of {self.count}"


@dataclass(frozen=True)
class Setting:
    """Runs whose parameters are equal but for `seed`.

    Attributes:
        parameters: Name to value, without `seed`.
        seeds: Of each run, in increasing order; empty if the chapter has no parameter `seed`.
        runs: In the order of their seeds.
        spreads: Every result of the comparison.
    """

    parameters: dict[str, Value]
    seeds: tuple[Value, ...]
    runs: tuple[Run, ...]
    spreads: dict[Result, Spread]

    @property
    def claims(self) -> dict[str, Spread]:
        """The claims that any of its runs made, by their ids."""
        return {
            result.name: spread
            for result, spread in self.spreads.items()
            if result.kind == "claim" and spread.count
        }


def parameter_names(runs: Iterable[Run]) -> list[str]:
    """The parameters of all runs, in the order of their declaration."""
    return _merged(tuple(run.parameters) for run in runs)


def result_names(runs: Iterable[Run]) -> list[Result]:
    """The results of all runs: numbers, then claims, in the order of the chapter."""
    merged = _merged(tuple(run.results) for run in runs)
    return sorted(merged, key=lambda result: result.kind != "number")


def varied(runs: Sequence[Run]) -> list[str]:
    """The parameters but `seed` that have more than one value, or are missing in some runs."""
    return [name for name in parameter_names(runs) if name != SEED and len(_values(runs, name)) > 1]


def in_order(runs: Sequence[Run]) -> list[Run]:
    """Runs by the values of their parameters, the seed last."""
    names = sorted(parameter_names(runs), key=lambda name: name == SEED)
    return sorted(
        runs,
        key=lambda run: ([order_key(run.parameters.get(name)) for name in names], run.folder),
    )


def settings(runs: Iterable[Run], results: Sequence[Result]) -> list[Setting]:
    """Group runs, which are in order, into settings."""
    groups: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        groups[_setting(run)].append(run)
    return [
        Setting(
            parameters={k: v for k, v in group[0].parameters.items() if k != SEED},
            seeds=tuple(run.parameters[SEED] for run in group if SEED in run.parameters),
            runs=tuple(group),
            spreads={r: Spread.of([run.results.get(r) for run in group]) for r in results},
        )
        for group in groups.values()
    ]


def version_names(runs: Iterable[Run]) -> dict[Version, str]:
    """A short name for each version, v1 for that of the run which started first."""
    first: dict[Version, tuple[str, str]] = {}
    for run in runs:
        begun = (run.started, repr(run.version))
        first[run.version] = min(first.get(run.version, begun), begun)
    return {version: f"v{k + 1}" for k, version in enumerate(sorted(first, key=first.__getitem__))}


def with_versions(runs: Sequence[Run], names: dict[Version, str]) -> list[Run]:
    """The runs, their version beside their parameters if some differ in nothing else.

    Otherwise a seed would count twice: before and after an edit of the code.
    """
    made: defaultdict[tuple[str, str], set[Version]] = defaultdict(set)
    for run in runs:
        made[_setting(run), canonical(run.parameters.get(SEED))].add(run.version)
    if all(len(versions) == 1 for versions in made.values()):
        return list(runs)
    return [
        replace(run, parameters={**run.parameters, VERSION: names[run.version]}) for run in runs
    ]


def canonical(value: Value | None) -> str:
    """A text that is the same for equal values; missing ones are `null`."""
    return json.dumps(value, ensure_ascii=False)


def _setting(run: Run) -> str:
    return json.dumps([(k, v) for k, v in sorted(run.parameters.items()) if k != SEED])


def _values(runs: Iterable[Run], name: str) -> set[str]:
    return {canonical(run.parameters.get(name)) for run in runs}


def order_key(value: Value | None) -> tuple[int, object]:
    """A key that sorts missing values, then numbers, texts and lists."""
    if value is None:
        return 0, 0
    if isinstance(value, list):
        return 3, [order_key(item) for item in value]
    return (2, value) if isinstance(value, str) else (1, value)


def _merged(orders: Iterable[tuple[_T, ...]]) -> list[_T]:
    """One order of several, the longest first; it does not depend on the order of the runs."""
    distinct = sorted(Counter(orders), key=lambda order: (-len(order), order))
    return list(dict.fromkeys(name for order in distinct for name in order))


def _median(bounds: Iterable[float | None]) -> float | None:
    given = [bound for bound in bounds if bound is not None]
    return statistics.median(given) if given else None
