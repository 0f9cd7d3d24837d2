"""The docstrings of the public names are a reference: each argument, the result, the errors."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ictd

HEADING = re.compile(r"^(Args|Attributes|Returns|Raises):$")


def sections(documented: Any) -> dict[str, list[str]]:
    """The lines below each heading of a docstring; before the first one, below an empty name."""
    found: dict[str, list[str]] = {"": []}
    lines = found[""]
    for line in (inspect.getdoc(documented) or "").splitlines():
        if heading := HEADING.match(line):
            assert heading[1] not in found, f"two sections {heading[1]}"
            lines = found[heading[1]] = []
        else:
            lines.append(line)
    return found


def described(lines: list[str]) -> list[str]:
    """The names that a section of a docstring describes, each of them in so many words."""
    found = [re.match(r" {4}(\w[\w, ]*): (.+)", line) for line in lines]
    return [name for match in found if match for name in match[1].split(", ")]


def functions() -> dict[str, Callable[..., Any]]:
    return {n: f for n in ictd.__all__ if inspect.isfunction(f := getattr(ictd, n))}


def classes() -> dict[str, type]:
    """All but the exceptions, whose arguments are their messages."""
    found = {n: c for n in ictd.__all__ if inspect.isclass(c := getattr(ictd, n))}
    return {n: c for n, c in found.items() if not issubclass(c, Exception)}


def methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods that the library defines, bound where they belong to the class."""
    for name, cls in classes().items():
        for attribute in dir(cls):
            method = getattr(cls, attribute)
            if inspect.isroutine(method) and not attribute.startswith("_"):
                module = getattr(method, "__module__", None) or ""
                if module.split(".")[0] == "ictd" and attribute != "extra_repr":
                    yield f"{name}.{attribute}", method


CALLABLES = {**functions(), **dict(methods())}


def arguments(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def test_every_public_name_is_a_function_or_a_class() -> None:
    exceptions = {"CheckpointError"}
    assert {*functions(), *classes()} == set(ictd.__all__) - exceptions
    assert all(issubclass(getattr(ictd, name), ValueError) for name in exceptions)
    assert {"Counts.of", "MarkovRewardProcess.sample", "SoftmaxTransformer.td"} <= set(CALLABLES)


@pytest.mark.parametrize("name", [*CALLABLES, *classes()])
def test_the_summary_is_one_line(name: str) -> None:
    documented = CALLABLES.get(name) or getattr(ictd, name)
    summary, *more = sections(documented)[""]
    assert re.search(r"[.:]$", summary), summary
    assert not more or more[0] == "", "an empty line follows the summary"


@pytest.mark.parametrize("name", CALLABLES)
def test_every_argument_is_described_in_its_order(name: str) -> None:
    function = CALLABLES[name]
    assert described(sections(function).get("Args", [])) == arguments(function)


@pytest.mark.parametrize("name", classes())
def test_every_argument_of_a_class_is_described(name: str) -> None:
    cls = classes()[name]
    found = sections(cls)
    if dataclasses.is_dataclass(cls):
        wanted = [field.name for field in dataclasses.fields(cls)]
        assert described(found["Attributes"]) == wanted
    else:
        assert described(found["Args"]) == arguments(cls)


@pytest.mark.parametrize("name", [n for n, f in CALLABLES.items() if arguments(f)])
def test_the_result_is_described(name: str) -> None:
    (first, *_) = sections(CALLABLES[name])["Returns"]
    assert re.match(r" {4}\S", first)


def refuses(function: Callable[..., Any]) -> bool:
    """Whether the function refuses arguments that are nothing that it could use."""
    parameters = inspect.signature(function).parameters.values()
    by_name = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    by_place = [name for name in arguments(function) if name not in by_name]
    try:
        function(*(object() for _ in by_place), **{name: object() for name in by_name})
    except ValueError:
        return True
    except Exception:
        return False
    return False


CHECKED = {
    name: function
    for name, function in {**functions(), **classes(), **CALLABLES}.items()
    if (inspect.isclass(function) or inspect.ismethod(function) or name in functions())
    and arguments(function)
    and refuses(function)
}


def test_most_functions_check_their_arguments() -> None:
    unchecked = {name for name in functions() if arguments(functions()[name])} - set(CHECKED)
    # What takes the result of another function, or a chain, which has checked its own arrays.
    results = {"read_values", "read_linear_value"}
    assert unchecked == results | {"hitting_times", "limit_covariance"}


@pytest.mark.parametrize("name", CHECKED)
def test_errors_are_described_where_arguments_are_checked(name: str) -> None:
    (first, *_) = described(sections(CHECKED[name])["Raises"])
    assert first == "ValueError"


@pytest.mark.parametrize("name", CALLABLES)
def test_a_result_has_no_colon_that_reads_as_its_type(name: str) -> None:
    """In a Google docstring, what stands before a colon in the first line of Returns is a type."""
    lines = sections(CALLABLES[name]).get("Returns", [""])
    assert ":" not in lines[0]
