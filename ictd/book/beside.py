"""What a run with other parameters gave, beside what the chapter gives at its defaults."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import markdown
from .claims import Claim
from .parameters import Value

Record = Mapping[str, Any]

_DIGITS = 4
# No two different floats look the same with so many.
_ALL_DIGITS = 17
# Rows of a table that is not folded.
_LONGEST = 12
_ABSENT = "—"
_CLAIM_HEADER = ("id", "claim", "bound", "default", "yours")
_NUMBER_HEADER = ("number", "meaning", "default", "yours")


@dataclass(frozen=True)
class Outcome:
    """What a run gave, for comparison.

    Attributes:
        parameters: The values of all parameters.
        claims, numbers: Records as `results.json` has them; a value that is not finite is the text
            "nan", "inf" or "-inf".
    """

    parameters: Mapping[str, Value]
    claims: Sequence[Record]
    numbers: Sequence[Record]


@dataclass(frozen=True)
class Beside:
    """What stands beside the results of a run.

    Attributes:
        default: The outcome at the defaults, None if nobody knows it.
        which: Which run that is of, such as "a run of today on this machine".
    """

    default: Outcome | None
    which: str


def default_beside_yours(beside: Beside, yours: Outcome, chapter: str) -> str:
    """Markdown: the parameters, claims and numbers that differ, the default beside yours.

    Claims that fail come first, those that hold last and folded; many numbers are folded too.

    Args:
        beside: The outcome at the defaults.
        yours: The outcome of the run to compare.
        chapter: The chapter's name, such as `04_convergence`.
    """
    default = beside.default
    if default is None:
        return (
            "No run of this chapter at its default parameters is known, so that nothing stands beside "
            f"these results. `ictd run {_short(chapter)}` makes one; then run this one again."
        )
    if default.parameters == yours.parameters:
        return "All parameters have their default values: there is nothing to compare."
    claims = _claim_rows(default, yours)
    failed = [row for fails, row in claims if fails]
    others = [row for fails, row in claims if not fails]
    numbers = _number_rows(default, yours)
    parts = [
        f"**Default beside yours.** The default column is of {beside.which}.",
        markdown.table(("parameter", "default", "yours"), _parameter_rows(default, yours)),
    ]
    if failed:
        parts.append(f"**{_counted(failed, 'claim')} failed with your parameters**")
        parts.append(markdown.table(_CLAIM_HEADER, failed))
    if numbers:
        title = f"{_counted(numbers, 'number')} with another value"
        shown = markdown.table(_NUMBER_HEADER, numbers)
        parts.append(
            f"**{title}**\n\n{shown}" if len(numbers) <= _LONGEST else _folded(title, shown)
        )
    if others:
        # Most of them measure rounding errors, which differ in any two runs.
        title = f"{_counted(others, 'claim')} that hold, with another value"
        parts.append(_folded(title, markdown.table(_CLAIM_HEADER, others)))
    compared = [*_pairs("id", default.claims, yours.claims)]
    compared += _pairs("name", default.numbers, yours.numbers)
    if compared:
        same = sum(not _differ(*pair) for pair in compared)
        parts.append(f"{same} of {len(compared)} claims and numbers are the same in both runs.")
    return "\n\n".join(parts)


def _parameter_rows(default: Outcome, yours: Outcome) -> list[tuple[str, str, str]]:
    old, new = default.parameters, yours.parameters
    names = [name for name in {**new, **old} if old.get(name) != new.get(name)]
    return [(f"`{name}`", _value(old, name), _value(new, name)) for name in names]


def _value(parameters: Mapping[str, Value], name: str) -> str:
    return f"`{parameters[name]!r}`" if name in parameters else _ABSENT


def _claim_rows(default: Outcome, yours: Outcome) -> list[tuple[bool, tuple[str, ...]]]:
    """Whether it fails in the second run, and the row, of each claim that differs or fails there."""
    rows: list[tuple[bool, tuple[str, ...]]] = []
    for old, new in _pairs("id", default.claims, yours.claims):
        fails = new is not None and not new["passed"]
        if fails or _differ(old, new):
            record = new or old
            assert record is not None
            bound = _bounds(old, new)
            before, after = _texts(old, new)
            id = f"`{record['id']}`"
            row = (id, record["statement"], bound, before + _verdict(old), after + _verdict(new))
            rows.append((fails, row))
    return rows


def _number_rows(default: Outcome, yours: Outcome) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for old, new in _pairs("name", default.numbers, yours.numbers):
        record = new or old
        if _differ(old, new) and record is not None:
            rows.append((f"`{record['name']}`", record["meaning"], *_texts(old, new)))
    return rows


def _pairs(
    key: str, default: Sequence[Record], yours: Sequence[Record]
) -> Iterator[tuple[Record | None, Record | None]]:
    """Records of one name, in the order of the second run; None where a run has none."""
    old = {record[key]: record for record in default}
    new = {record[key]: record for record in yours}
    for name in {**new, **old}:
        yield old.get(name), new.get(name)


def _differ(old: Record | None, new: Record | None) -> bool:
    """Whether values or verdicts differ; not a number is the same as itself."""
    if old is None or new is None:
        return True
    a, b = float(old["value"]), float(new["value"])
    same = a == b or (math.isnan(a) and math.isnan(b))
    return not same or any(old.get(name) != new.get(name) for name in ("passed", "holds"))


def _texts(old: Record | None, new: Record | None) -> tuple[str, str]:
    """Both values in words, with as many digits as tell them apart."""
    values = [None if record is None else record["value"] for record in (old, new)]
    for digits in range(_DIGITS, _ALL_DIGITS + 1):
        before, after = (_text(value, digits) for value in values)
        if before != after:
            break
    return before, after


def _text(value: float | str | None, digits: int) -> str:
    if value is None:
        return _ABSENT
    if type(value) is int:
        return str(value)
    number = float(value)
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    return f"{number:.{digits}g}"


def _verdict(record: Record | None) -> str:
    if record is None:
        return ""
    held = "" if record["holds"] is None else f", {'yes' if record['holds'] else 'no'}"
    return f"{held} {'✓' if record['passed'] else '✗ failed'}"


def _bounds(old: Record | None, new: Record | None) -> str:
    """The bound of a claim; it may depend on the parameters, and is then that of both runs."""
    before, after = (None if record is None else Claim.of(record).bound for record in (old, new))
    if before and after and before != after:
        return f"{after} (default: {before})"
    return after or before or ""


def _folded(title: str, table: str) -> str:
    return f"```{{admonition}} {title}\n:class: dropdown\n\n{table}\n```"


def _counted(rows: Sequence[object], noun: str) -> str:
    return f"{len(rows)} {noun}" if len(rows) == 1 else f"{len(rows)} {noun}s"


def _short(chapter: str) -> str:
    """What a chapter is called on the command line."""
    number = chapter.partition("_")[0]
    return number if number.isdigit() else chapter
