"""The statements of the paper, as `chapters/statements.yml` lists them.

Each names the claims and the tests that check it, or says why nothing does. What was measured is
not here: it comes from the runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from .errors import BookError
from .project import Project

_FORMS = {
    "id": ("small letters, digits and hyphens", re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")),
    "claims": ("CHAPTER/CLAIM, such as 02/theorem-1", re.compile(r"[^/\s]+/[^/\s]+")),
    "tests": ("FILE::FUNCTION, such as tests/test_td.py::test_x", re.compile(r"\S+\.py::\w+")),
    "anchor": ("CHAPTER#LABEL, such as 02#def-wstd", re.compile(r"[^#\s]+#[^#\s]+")),
}
_REQUIRED = ("id", "statement", "where")
_ONE_OF = ("claims", "open", "not_checkable")
_LISTS = ("claims", "tests")
_KNOWN = (*_REQUIRED, *_ONE_OF, "tests", "anchor")


class StatementError(BookError):
    """The statements cannot be read; the message lists what is wrong with which."""


@dataclass(frozen=True)
class Statement:
    """A statement of the paper.

    Attributes:
        id: Unique among the statements.
        statement: What is stated, Markdown.
        where: Its place in the paper: equation, theorem or section.
        claims: The claims that check it, CHAPTER/CLAIM.
        tests: Tests of the repository, FILE::FUNCTION.
        anchor: Where the book treats it, CHAPTER#LABEL.
        open: Why nothing checks it yet.
        not_checkable: Why nothing can check it.
    """

    id: str
    statement: str
    where: str
    claims: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    anchor: str | None = None
    open: str | None = None
    not_checkable: str | None = None


def load(project: Project) -> list[Statement]:
    """The statements of a project, none if it has no file of them.

    Raises:
        StatementError: If they are not well formed.
    """
    path = project.root / "chapters" / "statements.yml"
    if not path.is_file():
        return []
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StatementError(f"{path}: not YAML: {error}") from None
    if not isinstance(entries, list):
        raise StatementError(f"{path}: expected a list of statements")
    problems, seen = [], set()
    for place, entry in enumerate(entries, 1):
        id = entry.get("id") if isinstance(entry, dict) else None
        name = repr(id) if isinstance(id, str) else f"number {place}"
        problems += [f"statement {name}: {problem}" for problem in _problems(entry)]
        if isinstance(id, str) and id in seen:
            problems.append(f"statement {name}: its id is used twice")
        seen.add(str(id))
    if problems:
        raise StatementError("\n  ".join([f"{path}:", *problems]))
    return [_statement(entry) for entry in entries]


def _statement(entry: dict[str, Any]) -> Statement:
    lists = {name: tuple(entry[name]) for name in _LISTS if name in entry}
    return Statement(**(entry | lists))


def _problems(entry: Any) -> list[str]:
    """What is wrong with one entry of the file, in words."""
    if not isinstance(entry, dict):
        return [f"got {entry!r}, expected names and values"]
    problems = [
        f"it has {name!r}, which is none of {', '.join(_KNOWN)}"
        for name in entry
        if name not in _KNOWN
    ]
    problems += [f"it has no {name!r}" for name in _REQUIRED if name not in entry]
    given = [name for name in _ONE_OF if name in entry]
    if len(given) != 1:
        problems.append(f"expected exactly one of {', '.join(_ONE_OF)}; got {len(given)} of them")
    if "claims" in entry:
        problems += [f"claims need {k!r} too" for k in ("tests", "anchor") if k not in entry]
    for name in (name for name in _KNOWN if name in entry):
        problems += _value_problems(name, entry[name])
    return problems


def _value_problems(name: str, value: Any) -> list[str]:
    if name in _LISTS and not (isinstance(value, list) and value):
        return [f"{name}: got {value!r}, expected a list of at least one"]
    words, pattern = _FORMS.get(name, ("text", re.compile(r".*\S.*", re.DOTALL)))
    return [
        f"{name}: got {item!r}, expected {words}"
        for item in (value if name in _LISTS else [value])
        if not (isinstance(item, str) and pattern.fullmatch(item))
    ]
