"""The parameters of a chapter: what its `parameters` cell declares, and the check of given values.

The cell is the single place of meaning and range. Each of its statements is an annotated
assignment of a literal with a comment on its last line::

    gamma: float = 0.9  # discount factor, in [0, 1)
    betas: list[float] = [0.0, 1.0]  # sharpness of the kernel, each in [0, 1000]
    features: str = "sphere"  # distribution of the features, one of sphere, uniform, one-hot
    flag: bool = True  # whether the rewards are centred

A number needs a range, text may have choices, and `∞` or `-∞` stands for no bound.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from .errors import unknown

Scalar = bool | int | float | str
Value = Scalar | list[bool] | list[int] | list[float] | list[str]

_SCALARS: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}
_ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "bool": TypeAdapter(bool),
    "int": TypeAdapter(int),
    "float": TypeAdapter(Annotated[float, Field(allow_inf_nan=False)]),
    "str": TypeAdapter(Annotated[str, Field(strict=True)]),
}
_TYPES = (*_SCALARS, *(f"list[{name}]" for name in _SCALARS))
_NOUNS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
}
_RANGE = re.compile(
    r"(?P<meaning>.*?),\s*(?P<each>each\s+)?in\s+"
    r"(?P<open>[\[(])\s*(?P<low>[^,\s]+)\s*,\s*(?P<high>[^,\s]+?)\s*(?P<close>[\])])"
)
_CHOICES = re.compile(r"(?P<meaning>.*?),\s*(?P<each>each\s+)?one of\s+(?P<choices>.+)")
_RANGE_CALL = re.compile(r"range\(\s*(-?\d+(?:\s*,\s*-?\d+){0,2})\s*\)")


class ParameterError(ValueError):
    """Parameters, or their declaration, that are not accepted.

    Attributes:
        problems: One sentence for each thing that is wrong.
    """

    def __init__(self, heading: str, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n  ".join([f"{heading}:", *self.problems]))


@dataclass(frozen=True)
class Range:
    """An interval of numbers, each end open or closed."""

    low: float
    high: float
    low_closed: bool
    high_closed: bool

    def __contains__(self, number: float) -> bool:
        above = number >= self.low if self.low_closed else number > self.low
        below = number <= self.high if self.high_closed else number < self.high
        return above and below

    def __str__(self) -> str:
        low = str(self.low).replace("inf", "∞")
        high = str(self.high).replace("inf", "∞")
        return f"{'[' if self.low_closed else '('}{low}, {high}{']' if self.high_closed else ')'}"


@dataclass(frozen=True)
class Parameter:
    """One declared parameter."""

    name: str
    type: str
    default: Value
    meaning: str
    range: Range | None = None
    choices: tuple[str, ...] = ()

    @property
    def item_type(self) -> str:
        """The type of the value, or of each item of a list."""
        return self.type.removeprefix("list[").removesuffix("]")

    @property
    def is_list(self) -> bool:
        return self.type.startswith("list[")

    @property
    def expected(self) -> str:
        """What one value (or one item) must be, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        noun = _NOUNS[self.item_type]
        return f"{noun} in {self.range}" if self.range else noun

    def coerce(self, value: object) -> Value:
        """Give `value` the declared type; ValueError says what was wrong with it."""
        value = _plain(value)
        if not self.is_list:
            return self._coerce_item(value)
        items = _items(value)
        if not items:
            what = "an empty list" if items is not None else repr(value)
            raise ValueError(f"got {what}, expected a list such as {self.default!r}")
        typed: list[Any] = []
        for index, item in enumerate(items):
            try:
                typed.append(self._coerce_item(_plain(item)))
            except ValueError as error:
                raise ValueError(f"item {index}: {error}") from None
        return typed

    def _coerce_item(self, value: object) -> Scalar:
        refused = ValueError(f"got {value!r}, expected {self.expected}")
        number = self.item_type in ("int", "float")
        literal = _literal(value) if self.item_type != "str" else value
        if isinstance(value, str) and not _is_unicode(value):
            raise ValueError(f"got {value!r}, which is no Unicode text")
        if number and isinstance(literal, (bool, bytes)):
            raise refused
        try:
            typed: Scalar = _ADAPTERS[self.item_type].validate_python(literal)
        except ValidationError:
            raise refused from None
        if self.range is not None and not (isinstance(typed, (int, float)) and typed in self.range):
            raise refused
        if self.choices and typed not in self.choices:
            raise refused
        return typed


class Declaration(dict[str, Parameter]):
    """The parameters of one chapter by name, in the order of the cell."""

    @property
    def defaults(self) -> dict[str, Value]:
        return {parameter.name: parameter.default for parameter in self.values()}

    def unknown(self, names: Iterable[str]) -> list[str]:
        """One sentence for each of the names that is not declared, with the nearest ones."""
        return [unknown(name, self, "parameter") for name in names if name not in self]

    def check(self, given: Mapping[str, object], unknown: Iterable[str] = ()) -> dict[str, Value]:
        """Check given values and return those of all parameters, typed.

        Args:
            given: Values by name; a parameter that is missing keeps its default.
            unknown: Further names that somebody tried to set.

        Raises:
            ParameterError: It lists every problem: unknown names, wrong types, values out of range.
        """
        problems = self.unknown([*given, *unknown])
        typed = self.defaults
        for name, parameter in self.items():
            if name in given:
                try:
                    typed[name] = parameter.coerce(given[name])
                except ValueError as error:
                    problems.append(f"{name}: {error} ({parameter.meaning})")
        if problems:
            raise ParameterError("these parameters are not accepted", problems)
        return typed


def parse(source: str) -> Declaration:
    """Read the source of a `parameters` cell.

    Raises:
        ParameterError: It lists every line that breaks the grammar of this module.
    """
    heading = "the parameters cell is not well formed"
    try:
        statements = ast.parse(source).body
        comments = _comments(source)
    except (SyntaxError, tokenize.TokenError) as error:
        raise ParameterError(heading, [f"it is not Python: {error}"]) from None
    declaration = Declaration()
    problems = []
    for statement in statements:
        try:
            parameter = _parse_statement(statement, comments, source)
            if parameter.name in declaration:
                raise ValueError(f"{parameter.name}: declared twice")
            declaration[parameter.name] = parameter
        except ValueError as error:
            problems.append(f"line {statement.lineno}: {error}")
    if not statements:
        problems.append("it declares nothing")
    if problems:
        raise ParameterError(heading, problems)
    return declaration


def is_declaration(source: str) -> bool:
    """Whether all statements of a cell are annotated assignments of literals."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return False
    return bool(body) and all(
        isinstance(node, ast.AnnAssign) and _is_literal(node.value) for node in body
    )


def assigned_names(source: str) -> list[str]:
    """The names that the top-level assignments of a cell set, in order."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a cell with IPython's own syntax, which papermill does not write
        return []
    names = []
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        names += [target.id for target in targets if isinstance(target, ast.Name)]
    return names


def _parse_statement(node: ast.stmt, comments: Mapping[int, str], source: str) -> Parameter:
    if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
        raise ValueError(f"expected NAME: TYPE = LITERAL  # MEANING, got {ast.unparse(node)!r}")
    name, type_name = node.target.id, ast.unparse(node.annotation)
    if type_name not in _TYPES:
        raise ValueError(f"{name}: the type {type_name} is none of {', '.join(_TYPES)}")
    if node.value is None or not _is_literal(node.value):
        raise ValueError(f"{name}: the default must be a literal")
    default = ast.literal_eval(node.value)
    comment = comments.get(node.end_lineno or node.lineno, "")
    if not comment:
        raise ValueError(f"{name}: no comment '# MEANING, in [a, b]' on its line")
    segment = ast.get_source_segment(source, node) or ""
    if f"{segment}{comment}".count("=") != 1:
        # papermill --help-notebook leaves out a line with two of them.
        raise ValueError(f"{name}: a second '=' on the line; write ≤, ≥ or [a, b) instead")
    parameter = _parse_comment(name, type_name, default, comment)
    _check_default(parameter)
    return parameter


def _parse_comment(name: str, type_name: str, default: Any, comment: str) -> Parameter:
    is_list = type_name.startswith("list[")
    match = _RANGE.fullmatch(comment) or _CHOICES.fullmatch(comment)
    if match and bool(match["each"]) != is_list:
        rule = "'each in …' or 'each one of …'" if is_list else "no 'each'"
        raise ValueError(f"{name}: a {type_name} takes {rule} in its comment")
    meaning = (match["meaning"] if match else comment).strip()
    if not meaning:
        raise ValueError(f"{name}: the comment gives no meaning before the range")
    item_type = type_name.removeprefix("list[").removesuffix("]")
    if item_type in ("int", "float"):
        if match is None or match.re is not _RANGE:
            raise ValueError(f"{name}: the comment must end with a range, ', in [a, b)'")
        return Parameter(name, type_name, default, meaning, range=_parse_range(name, match))
    if match is None:
        return Parameter(name, type_name, default, meaning)
    if item_type == "bool" or match.re is _RANGE:
        raise ValueError(f"{name}: a {type_name} takes no such range")
    choices = tuple(choice.strip() for choice in match["choices"].split(","))
    return Parameter(name, type_name, default, meaning, choices=choices)


def _parse_range(name: str, match: re.Match[str]) -> Range:
    low, high = _bound(name, match["low"]), _bound(name, match["high"])
    interval = Range(low, high, match["open"] == "[", match["close"] == "]")
    if low > high:
        raise ValueError(f"{name}: the range {interval} is empty")
    return interval


def _bound(name: str, text: str) -> float:
    text = text.replace("−", "-").replace("∞", "inf")
    try:
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    except ValueError:
        raise ValueError(f"{name}: {text!r} is no bound of a range") from None


def _check_default(parameter: Parameter) -> None:
    scalar = _SCALARS[parameter.item_type]
    items = parameter.default if parameter.is_list else [parameter.default]
    if not isinstance(items, list) or any(type(item) is not scalar for item in items):
        raise ValueError(
            f"{parameter.name}: the default {parameter.default!r} is no {parameter.type}"
        )
    try:
        parameter.coerce(parameter.default)
    except ValueError as error:
        raise ValueError(f"{parameter.name}: the default: {error}") from None


def _comments(source: str) -> dict[int, str]:
    """The text of each comment by its line."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]: token.string.lstrip("#").strip()
        for token in tokens
        if token.type == tokenize.COMMENT
    }


def _is_literal(node: ast.expr | None) -> bool:
    if node is None:
        return False
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def _plain(value: object) -> object:
    """A numpy or torch scalar or array as plain Python numbers."""
    tolist = getattr(value, "tolist", None)
    return tolist() if callable(tolist) else value


def _is_unicode(text: str) -> bool:
    """Whether a text can be written; the command line turns bytes that are no UTF-8 into others."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _literal(value: object) -> object:
    """The Python literal that a text spells, or the text itself."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        literal = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    # '1e2' is a whole number for an int; a quoted or nested text is none.
    return literal if isinstance(literal, (bool, int, float)) else text


def _items(value: object) -> list[object] | None:
    """The items of a list however it came: list, tuple, range, or the text of one of them."""
    if isinstance(value, str):
        text = value.strip()
        if call := _RANGE_CALL.fullmatch(text):
            arguments = [int(argument) for argument in call[1].split(",")]
            return list(range(*arguments)) if arguments[2:] != [0] else None
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    return list(value) if isinstance(value, (list, tuple, range)) else None
