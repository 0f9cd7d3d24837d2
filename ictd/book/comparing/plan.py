"""What the figure of a comparison shows: which parameter is on the axis, which lines, which panels."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..parameters import Value
from .runs import Result
from .settings import SEED, Setting, canonical, order_key
from .tables import distinct_texts

MOST_LINES = 8
MOST_PANELS = 12


@dataclass(frozen=True)
class Line:
    """Settings that differ in the parameter on the axis alone, in the order of its values."""

    label: str
    settings: Sequence[Setting]


@dataclass(frozen=True)
class Plan:
    """What is drawn.

    Attributes:
        x: The parameter on the axis; `seed` if nothing else differs, and then each run is a point.
        numeric: Whether its values are numbers; else each has a place of its own, in their order.
        lines: A line for each combination of the other parameters that differ; one without a label if there
            are no others.
        panels: The results.
        notes: Sentences on what differs and is not drawn.
    """

    x: str
    numeric: bool
    lines: Sequence[Line]
    panels: Sequence[Result]
    notes: Sequence[str]

    @property
    def of_seeds(self) -> bool:
        return self.x == SEED

    def numbers(self, settings: Sequence[Setting]) -> list[float]:
        """Where on a numeric axis the points are: of each setting, or of each run if seeds are on it."""
        if self.of_seeds:
            values = [seed for setting in settings for seed in setting.seeds]
        else:
            values = [setting.parameters[self.x] for setting in settings]
        return [float(value) for value in values if not isinstance(value, list)]

    def categories(self) -> dict[str, str]:
        """The canonical text of each value on the axis, in their order, to what its tick says."""
        values = [s.parameters.get(self.x) for line in self.lines for s in line.settings]
        return distinct_texts(sorted(values, key=order_key))


def make(
    settings: Sequence[Setting], varied: Sequence[str], results: Sequence[Result], chosen: bool
) -> Plan | str:
    """Plan the figure, or say why there is none.

    Args:
        settings: The groups of runs, in order.
        varied: The parameters that differ, without `seed`.
        results: The results of the comparison.
        chosen: Whether somebody asked for these results; else claims are drawn if there are no numbers.
    """
    if not varied and len({canonical(seed) for seed in settings[0].seeds}) < 2:
        return "there is no figure, since nothing differs between the runs"
    panels, notes = _panels(settings, results, chosen)
    if not panels:
        return "there is no figure, since no result has a finite value"
    if not varied:
        return Plan(SEED, True, [Line("", settings)], panels, notes)
    numeric = [name for name in varied if all(_is_number(s.parameters.get(name)) for s in settings)]
    x = max(numeric or varied, key=lambda name: len(_distinct(settings, name)))
    lines = _lines(settings, [name for name in varied if name != x])
    if len(lines) > MOST_LINES:
        notes.append(f"{MOST_LINES} of {len(lines)} lines are drawn, evenly chosen")
        step = (len(lines) - 1) / (MOST_LINES - 1)
        lines = [lines[round(k * step)] for k in range(MOST_LINES)]
    return Plan(x, bool(numeric), lines, panels, notes)


def _panels(
    settings: Sequence[Setting], results: Sequence[Result], chosen: bool
) -> tuple[list[Result], list[str]]:
    """The results to draw, and what is said of those that are left out."""
    panels = [r for r in results if any(_is_finite(s, r) for s in settings)]
    notes = []
    if not chosen:
        numbers = [result for result in panels if result.kind == "number"]
        differ = [result for result in panels if not _constant(settings, result)]
        if not numbers and differ and len(differ) < len(panels):
            notes.append("claims whose value is the same in all runs are not drawn")
        panels = numbers or differ or panels
    if len(panels) > MOST_PANELS:
        kinds = {result.kind for result in panels}
        kind = f"{kinds.pop()}s" if len(kinds) == 1 else "results"
        notes.append(f"the first {MOST_PANELS} of {len(panels)} {kind} are drawn")
    return panels[:MOST_PANELS], notes


def _lines(settings: Sequence[Setting], others: Sequence[str]) -> list[Line]:
    groups: defaultdict[tuple[str, ...], list[Setting]] = defaultdict(list)
    for setting in settings:
        groups[tuple(canonical(setting.parameters.get(name)) for name in others)].append(setting)
    texts = {name: distinct_texts(s.parameters.get(name) for s in settings) for name in others}
    ordered = sorted(
        groups.values(),
        key=lambda group: [order_key(group[0].parameters.get(name)) for name in others],
    )
    return [
        Line(
            ", ".join(
                f"{name} {texts[name][canonical(group[0].parameters.get(name))]}" for name in others
            ),
            group,
        )
        for group in ordered
    ]


def _distinct(settings: Sequence[Setting], name: str) -> set[str]:
    return {canonical(setting.parameters.get(name)) for setting in settings}


def _is_number(value: Value | None) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_finite(setting: Setting, result: Result) -> bool:
    return math.isfinite(setting.spreads[result].smallest)


def _constant(settings: Sequence[Setting], result: Result) -> bool:
    spreads = [setting.spreads[result] for setting in settings]
    ends = {end for s in spreads for end in (s.smallest, s.largest) if math.isfinite(end)}
    return len(ends) < 2
