"""A run as a comparison sees it, read from its folder of results."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import BookError
from ..parameters import Value

RESULTS, PARAMETERS = "results.json", "parameters.json"
_NOT_FINITE = ("nan", "inf", "-inf")


class CompareError(BookError):
    """What was given cannot be compared; the message names the folder, the file or the name."""


class Result(NamedTuple):
    """What runs recorded under one name; `kind` is "number" or "claim"."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run found for a result; a number has no bounds and did not pass or fail."""

    value: int | float
    passed: bool | None = None
    at_most: float | None = None
    at_least: float | None = None


@dataclass(frozen=True)
class Version:
    """What decided a run beside its parameters.

    Attributes:
        code: Hash of the chapter, the library, the Python and the packages; None if it was not recorded.
        ictd: Version of the library.
        python: Name and version of the interpreter.
        packages: Name and version of each package.
    """

    code: str | None
    ictd: str
    python: str
    packages: tuple[tuple[str, str], ...]

    def beside(self, other: Version) -> str:
        """What is another one here than there, in words."""
        pairs = [("ictd", other.ictd, self.ictd), ("Python", other.python, self.python)]
        ours, theirs = dict(self.packages), dict(other.packages)
        pairs += [(p, theirs.get(p, ""), ours.get(p, "")) for p in sorted({*ours, *theirs})]
        words = [
            f"{name} {here or 'missing'} instead of {there or 'missing'}"
            for name, there, here in pairs
            if here != there
        ]
        if not words and self.code is not None and other.code is not None:
            words = ["other code of the chapter or of the library"]
        return ", ".join(words) or "a hash of the code was recorded for only one of them"


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run.

    Attributes:
        folder: Its results folder, absolute.
        chapter: Stem of the notebook.
        parameters: Name to value, in the order of their declaration.
        results: Its numbers, then its claims, each in the order of the chapter.
        version: The code and the packages that it ran with; one object for all runs of a version.
        started: When, as ISO text; empty if it was not recorded.
        identity: The same for every folder that holds this run.
    """

    folder: str
    chapter: str
    parameters: dict[str, Value]
    results: dict[Result, Measured]
    version: Version
    started: str
    identity: str


def read(folder: Path, shared: dict[Any, Any], meanings: dict[Result, str]) -> Run:
    """Read a finished run.

    Args:
        folder: Its results.
        shared: What runs have in common, one object of each; added to.
        meanings: What a result stands for, empty where runs do not say the same; added to.

    Raises:
        CompareError: A file cannot be read or is damaged; the message names it.
    """
    texts = {}
    for name in (PARAMETERS, RESULTS):
        try:
            texts[name] = (folder / name).read_bytes()
        except OSError as error:
            raise CompareError(f"{folder / name}: it cannot be read: {error.strerror}") from None
    path = folder / PARAMETERS
    try:
        parameters = _parameters(json.loads(texts[PARAMETERS]))
        path = folder / RESULTS
        contents = _of_type(json.loads(texts[RESULTS]), dict, "the file")
        chapter = _of_type(contents.get("chapter"), str, "'chapter'")
        results = _results(contents, shared, meanings)
        made = _of_type(contents.get("provenance"), dict, "'provenance'")
        packages = _of_type(made.get("packages", {}), dict, "'packages'")
    except (ValueError, OverflowError, RecursionError) as error:
        raise CompareError(f"{path}: it is damaged or not of `ictd run`: {error}") from None
    key, code = made.get("key"), made.get("code")
    version = Version(
        code=None if code is None else str(code),
        ictd=str(made.get("ictd", "")),
        python=str(made.get("python", "")),
        packages=tuple(sorted((str(name), str(v)) for name, v in packages.items())),
    )
    # Without a key, only a copy is known to be the same run.
    same = [str(key).encode()] if key is not None else [texts[RESULTS]]
    same.append(json.dumps(parameters, sort_keys=True).encode())
    return Run(
        folder=str(folder),
        chapter=sys.intern(chapter),
        parameters=parameters,
        results=results,
        version=shared.setdefault(version, version),
        started=str(made.get("started") or ""),
        identity=hashlib.sha256(b"\0".join(same)).hexdigest(),
    )


def _parameters(data: Any) -> dict[str, Value]:
    for name, value in _of_type(data, dict, "the file").items():
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, bool | int | float | str) for item in items):
            raise ValueError(f"parameter {name!r} is {value!r}, expected a number, text or a list")
    return {sys.intern(name): value for name, value in data.items()}


def _results(
    contents: dict[str, Any], shared: dict[Any, Any], meanings: dict[Result, str]
) -> dict[Result, Measured]:
    found: dict[Result, Measured] = {}
    for kind, name_of, meaning_of in (("number", "name", "meaning"), ("claim", "id", "statement")):
        for record in _of_type(contents.get(f"{kind}s"), list, f"'{kind}s'"):
            name = _of_type(_of_type(record, dict, f"a {kind}").get(name_of), str, f"a {name_of}")
            result = Result(kind, name)
            result = shared.setdefault(result, result)
            meaning = str(record.get(meaning_of) or "")
            if meanings.setdefault(result, meaning) != meaning:
                meanings[result] = ""
            value = _number(record.get("value"), name)
            if kind == "number":
                found[result] = Measured(value)
                continue
            passed = _of_type(record.get("passed"), bool, f"'passed' of {name!r}")
            low, high = (
                None if record.get(bound) is None else _number(record[bound], name)
                for bound in ("at_least", "at_most")
            )
            found[result] = Measured(value, passed, high, low)
    return found


def _of_type(value: Any, expected: type, what: str) -> Any:
    if not isinstance(value, expected):
        raise ValueError(f"{what} is {value!r:.60}, expected a {expected.__name__}")
    return value


def _number(value: object, name: str) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        float(value)  # refuses a whole number that is too large to be shown or drawn
        return value
    if value in _NOT_FINITE:
        return float(str(value))
    raise ValueError(f"{name!r} is {value!r}, expected a number")
