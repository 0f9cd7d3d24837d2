"""The tables of a comparison, for a terminal and as Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .. import markdown
from ..parameters import Value
from .runs import Result
from .settings import Setting, Spread, canonical

_VALUE = 24  # characters of a parameter's value
_FAILED = 3  # ids of failed claims in a cell on a terminal
_RESULTS = 6  # results in a table of Markdown
_TITLES = {"number": "Numbers", "claim": "Claims"}
_GAP = "  "


@dataclass(frozen=True)
class Column:
    """What stands above, and a cell for each row."""

    head: str
    cells: Sequence[str]


_Columns = Sequence[Column]


@dataclass(frozen=True)
class Table:
    """Columns side by side; where they do not fit, the keys are repeated at the left of each piece."""

    title: str
    keys: _Columns
    columns: _Columns

    def __len__(self) -> int:
        """How many columns; there are none of the settings if all there is is a run without claims."""
        return len(self.keys) + len(self.columns)

    def pieces(self, fits: Callable[[_Columns, _Columns], bool]) -> Iterator[list[Column]]:
        """The keys with as many columns as fit beside them, at least one."""
        piece: list[Column] = []
        for column in self.columns:
            if piece and not fits(self.keys, [*piece, column]):
                yield [*self.keys, *piece]
                piece = []
            piece.append(column)
        if piece or self.keys:
            yield [*self.keys, *piece]


def terminal(
    settings: Sequence[Setting],
    names: Sequence[str],
    results: Sequence[Result],
    width: int,
    rows: int,
) -> str:
    """The tables in lines of text.

    Args:
        settings: What is compared.
        names: The parameters that differ.
        results: What to show.
        width: Most characters in a line; one wide column may need more.
        rows: Most settings to show.
    """
    first = settings[:rows]
    # What is the same is so for all settings, not for those that are shown.
    same = _same(settings, results)
    keys = parameter_columns(first, names)
    numbers = [Column("#", [str(k + 1) for k in range(len(first))])]
    wide = _width(keys) > width // 2
    of_settings = setting_columns(first, _FAILED)
    tables = [Table("Settings", [*numbers, *keys] if wide else keys, of_settings)]
    tables += _result_tables(first, results, same, numbers if wide else keys)
    parts = []
    for table in filter(len, tables):
        pieces = table.pieces(lambda keys, columns: _width([*keys, *columns]) <= width)
        texts = ["\n".join(_lines(piece)) for piece in pieces]
        parts.append("\n".join([table.title, "\n\n".join(texts)]))
    if len(first) < len(settings):
        parts.append(f"{len(settings) - len(first)} more settings are not shown here")
    return "\n\n".join(parts)


def as_markdown(
    settings: Sequence[Setting], names: Sequence[str], results: Sequence[Result]
) -> str:
    """The tables as Markdown, each of at most six results beside the parameters that differ."""
    keys = parameter_columns(settings, names)
    tables = [Table("Settings", keys, setting_columns(settings))]
    tables += _result_tables(settings, results, _same(settings, results), keys)
    parts = []
    for table in filter(len, tables):
        parts.append(f"## {table.title}")
        for piece in table.pieces(lambda _, columns: len(columns) <= _RESULTS):
            rows = list(zip(*(column.cells for column in piece), strict=True))
            parts.append(markdown.table([column.head for column in piece], rows))
    return "\n\n".join(parts)


def parameter_columns(settings: Sequence[Setting], names: Iterable[str]) -> list[Column]:
    """The values of some parameters, shortened where they stay distinct."""
    columns = []
    for name in names:
        values = [setting.parameters.get(name) for setting in settings]
        texts = distinct_texts(values)
        columns.append(Column(name, [texts[canonical(value)] for value in values]))
    return columns


def distinct_texts(values: Iterable[Value | None]) -> dict[str, str]:
    """The canonical text of each value to one for readers, which is short if no two become the same."""
    distinct = {canonical(value): value for value in values}
    short = {key: shortened(value) for key, value in distinct.items()}
    if len(set(short.values())) == len(short):
        return short
    return {key: "–" if value is None else key for key, value in distinct.items()}


def shortened(value: Value | None) -> str:
    """A value in few characters: six digits, the ends of a long list, the start of a long text."""
    if value is None:
        return "–"
    if isinstance(value, list):
        items = [shortened(item) for item in value]
        whole = f"[{', '.join(items)}]"
        if len(whole) <= _VALUE or len(items) < 4:
            return whole
        return f"[{items[0]}, {items[1]}, …, {items[-1]}] ({len(items)})"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"


def setting_columns(settings: Sequence[Setting], most_failed: int | None = None) -> list[Column]:
    """What belongs to a setting beside its parameters: seeds, claims that passed, claims that failed."""
    columns = []
    if any(setting.seeds for setting in settings):
        columns.append(Column("seeds", [ranges(setting.seeds) for setting in settings]))
    # A seed that was run twice, and nothing says that it is the same run.
    if any(len(s.runs) != max(1, len({*map(canonical, s.seeds)})) for s in settings):
        columns.append(Column("runs", [str(len(setting.runs)) for setting in settings]))
    if any(setting.claims for setting in settings):
        passed, failed = [], []
        for claims in (setting.claims for setting in settings):
            bad = {name: spread for name, spread in claims.items() if spread.failed}
            passed.append(f"{len(claims) - len(bad)} of {len(claims)}")
            failed.append(_failed(bad, most_failed))
        columns.append(Column("claims passed", passed))
        columns.append(Column("failed", failed))
    return columns


def _failed(claims: dict[str, Spread], most: int | None) -> str:
    words = [
        f"{name} ({spread.failed} of {spread.count})" if spread.count > 1 else name
        for name, spread in claims.items()
    ]
    if most is not None and len(words) > most:
        words[most:] = [f"{len(words) - most} more"]
    return ", ".join(words) or "none"


def ranges(values: Iterable[Value]) -> str:
    """Values, each once, with whole numbers that follow each other as `0–3`."""
    spans: list[tuple[Value, Value]] = []
    for value in dict.fromkeys(values):
        if spans and isinstance(value, int) and spans[-1][1] == value - 1:
            spans[-1] = (spans[-1][0], value)
        else:
            spans.append((value, value))
    words = []
    for first, last in spans:
        words.append(str(first) if first == last else f"{first}–{last}")
    return ", ".join(words)


def _same(settings: Sequence[Setting], results: Iterable[Result]) -> list[Result]:
    """The results that differ between no settings."""

    def key(spread: Spread) -> tuple[str, ...]:
        exact = (spread.median, spread.smallest, spread.largest)
        return str(spread), *map(repr, exact)

    return [r for r in results if len({key(setting.spreads[r]) for setting in settings}) == 1]


def _result_tables(
    settings: Sequence[Setting],
    results: Sequence[Result],
    same: Sequence[Result],
    keys: _Columns,
) -> Iterator[Table]:
    for kind, title in _TITLES.items():
        columns = [
            Column(result.name, [str(setting.spreads[result]) for setting in settings])
            for result in results
            if result.kind == kind and result not in same
        ]
        if columns:
            yield Table(title, keys, columns)
    if same:
        title = "The same in every setting" if len(settings) > 1 else "Results"
        which = [Column("result", [result.name for result in same])]
        if len({result.kind for result in same}) > 1:
            which.append(Column("kind", [result.kind for result in same]))
        values = [str(settings[0].spreads[result]) for result in same]
        yield Table(title, which, [Column("value", values)])


def _width(columns: _Columns) -> int:
    return sum(map(_column_width, columns)) + len(_GAP) * (len(columns) - 1)


def _column_width(column: Column) -> int:
    return max(map(len, (column.head, *column.cells)))


def _lines(columns: _Columns) -> list[str]:
    """Columns set to the left, a rule below their heads."""
    widths = [_column_width(column) for column in columns]
    rows = [
        [column.head for column in columns],
        ["─" * width for width in widths],
        *zip(*(column.cells for column in columns), strict=True),
    ]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
