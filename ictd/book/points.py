"""The points of a sweep: which parameters each run has, and the name of its folder."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .parameter_files import read_yaml
from .parameters import Declaration, Parameter, ParameterError, Value
from .provenance import digest

#: A sweep has at most so many points.
LARGEST = 100_000
_HEADING = "these points are not accepted"
# `a:b` and `a:b:c`, half-open as Python's range.
_SLICE = re.compile(r"\s*([+-]?\d+)\s*:\s*([+-]?\d+)\s*(?::\s*([+-]?\d+)\s*)?")
# What a folder's name may have everywhere.
_UNUSUAL = re.compile(r"[^A-Za-z0-9.+-]+")
_LONGEST = 24


@dataclass(frozen=True)
class Point:
    """One run of a sweep.

    Attributes:
        parameters: The typed values of all parameters.
        name: Of its folder: what was asked for, then a hash of all parameters.
    """

    parameters: dict[str, Value]
    name: str

    @property
    def hash(self) -> str:
        """The end of the name, which tells the parameters apart by itself."""
        return self.name.rpartition("-")[2]


def make(
    declaration: Declaration, given: Mapping[str, object], rows: Iterable[Mapping[str, object]] = ()
) -> list[Point]:
    """The points of a grid, or of rows that are each combined with a grid.

    Args:
        declaration: The parameters of the chapter.
        given: Values by name, one or several of each: see `axis`.
        rows: Points as they stand in a file, one value of each name.

    Returns:
        Every point once, in the order of the rows and then of the grid, whose last name changes fastest.

    Raises:
        ParameterError: It lists all that is wrong: unknown names, values, names given twice, too many
            points.
    """
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise ParameterError(_HEADING, [f"points: got {rows!r}, expected a list of points"])
    rows = list(rows)
    if wrong := [number for number, row in enumerate(rows, 1) if not isinstance(row, Mapping)]:
        what = f"point {wrong[0]}: got {rows[wrong[0] - 1]!r}, expected NAME: VALUE pairs"
        raise ParameterError(_HEADING, [what])
    problems = declaration.unknown(given)
    axes: dict[str, list[Value]] = {}
    for name in (name for name in given if name in declaration):
        try:
            axes[name] = axis(declaration[name], given[name])
        except ValueError as error:
            problems.append(f"{name}: {error} ({declaration[name].meaning})")
    lines: list[dict[str, Value]] = []
    for number, row in enumerate(rows, start=1):
        problems += [f"point {number}: {text}" for text in declaration.unknown(row)]
        if twice := sorted(axes.keys() & row.keys()):
            problems.append(f"point {number}: {', '.join(twice)} also given for all points")
        typed = {}
        for name in (name for name in row if name in declaration):
            try:
                typed[name] = declaration[name].coerce(row[name])
            except ValueError as error:
                problems.append(f"point {number}: {name}: {error} ({declaration[name].meaning})")
        lines.append(typed)
        if len(problems) > 20:
            problems.append("and maybe more")
            break
    count = max(1, len(rows)) * math.prod(len(values) for values in axes.values())
    if count > LARGEST:
        problems.append(f"{count} points; expected at most {LARGEST} in one sweep")
    if problems:
        raise ParameterError(_HEADING, problems)
    return _points(declaration, lines or [{}], axes)


def _points(
    declaration: Declaration,
    lines: Sequence[Mapping[str, Value]],
    axes: Mapping[str, Sequence[Value]],
) -> list[Point]:
    found: dict[str, Point] = {}
    for line in lines:
        for values in itertools.product(*axes.values()):
            asked = {**line, **dict(zip(axes, values, strict=True))}
            parameters = {**declaration.defaults, **asked}
            key = digest(parameters)
            found.setdefault(key, Point(parameters, f"{_title(asked)}-{key}"))
    return list(found.values())


def axis(parameter: Parameter, given: object) -> list[Value]:
    """The values of one parameter in a sweep.

    A single value stands for itself. Several are a list, a tuple, a range or an array; for a number also
    the text `a:b` or `a:b:c`, half-open as Python's range. Where the parameter is a list itself, several
    are a list of lists.

    Raises:
        ValueError: It says which value was wrong, and how.
    """
    if parameter.is_list:
        items = _several(given)
        if items is None or not any(_is_list(item) for item in items):
            if items is not None and any(isinstance(item, str) for item in items):
                raise ValueError(
                    f"got {given!r}, expected lists, each as one text such as '[1, 2]'"
                )
            return [parameter.coerce(given)]
    else:
        items = _several(given)
        if items is None:
            items = [given]
        if parameter.item_type in ("int", "float"):
            items = [value for item in items for value in _expanded(item)]
    if not items:
        raise ValueError("got no value, expected at least one")
    values: list[Value] = []
    for number, item in enumerate(items, start=1):
        try:
            values.append(parameter.coerce(item))
        except ValueError as error:
            raise ValueError(f"value {number}: {error}" if len(items) > 1 else str(error)) from None
    return values


def rows_of(path: Path) -> list[dict[str, object]]:
    """The points in a file: the lines of a CSV with names in the first, or a YAML or JSON list of mappings.

    Raises:
        ParameterError: If the file cannot be read, or is none of these.
    """
    if path.suffix.lower() == ".csv":
        return _csv_rows(path)
    if path.suffix.lower() not in (".yml", ".yaml", ".json"):
        raise ParameterError(
            _HEADING, [f"{path}: a file of points ends in .csv, .yml, .yaml or .json"]
        )
    data = read_yaml(path)
    if not isinstance(data, list) or not data or not all(isinstance(row, dict) for row in data):
        raise ParameterError(
            _HEADING, [f"{path}: expected a list of points, each as NAME: VALUE pairs"]
        )
    return [{str(name): value for name, value in row.items()} for row in data]


def _csv_rows(path: Path) -> list[dict[str, object]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(_HEADING, [f"{path}: {error}"]) from None
    reader = csv.reader(io.StringIO(text), skipinitialspace=True)
    lines = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    if len(lines) < 2:
        raise ParameterError(_HEADING, [f"{path}: expected a line of names, then lines of values"])
    names = [name.strip() for name in lines[0][1]]
    if len(names) == 1 and re.search(r"[;\t]", names[0]):
        raise ParameterError(
            _HEADING, [f"{path}: {names[0]!r} is one name; commas part the columns"]
        )
    problems = [f"{path}: two columns of the name {name!r}" for name in _twice(names)]
    for number, row in lines[1:]:
        if len(row) != len(names) or not all(cell.strip() for cell in row):
            problems.append(
                f"{path}, line {number}: got {row}, expected {len(names)} values as there are names"
            )
    if problems:
        raise ParameterError(_HEADING, problems[:20])
    return [dict(zip(names, row, strict=True)) for _, row in lines[1:]]


def _twice(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _several(given: object) -> list[Any] | None:
    """The items of what holds several values, None for a single one."""
    if getattr(given, "ndim", 0) > 0 and hasattr(given, "tolist"):  # of numpy or torch
        return list(given.tolist())
    return list(given) if isinstance(given, (list, tuple, range)) else None


def _is_list(item: object) -> bool:
    """Whether an item is a list by itself, or the text of one."""
    text = item.strip() if isinstance(item, str) else ""
    return text.startswith(("[", "(", "range")) or _several(item) is not None


def _expanded(item: object) -> list[Any]:
    """The numbers of the text `a:b`, else the item itself."""
    found = _SLICE.fullmatch(item) if isinstance(item, str) else None
    if found is None:
        return [item]
    start, stop, step = int(found[1]), int(found[2]), int(found[3] or 1)
    values = range(start, stop, step) if step else range(0)
    if not values:
        raise ValueError(f"{item!r} has no values; a:b goes from a up to b − 1")
    if len(values) > LARGEST:
        raise ValueError(f"{item!r} has {len(values)} values; expected at most {LARGEST}")
    return list(values)


def _title(asked: Mapping[str, Value]) -> str:
    """The values that were asked for, as the name of a folder has them."""
    parts = [f"{name}={_short(value)}" for name, value in asked.items()]
    title = ",".join(parts)
    while len(title) > 100:
        parts.pop()
        title = ",".join([*parts, "more"])
    return title or "defaults"


def _short(value: Value) -> str:
    text = _UNUSUAL.sub("_", str(value).replace(" ", "")).strip("_")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}_"
