"""Claims and numbers that a chapter records, and how they travel in its outputs.

A record is one JSON text in a cell's outputs, under a MIME type that the book's renderer takes
out of the page; so the executed notebook is the only place where it is stored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from . import notebook as nb
from .errors import BookError

MIME = "application/papermill.record/application/json"
PAPER = "arXiv:2605.07333"
_PREFIX = "application/papermill.record/"


@dataclass(frozen=True)
class Claim:
    """A statement that was checked: `value` against inclusive bounds."""

    id: str
    statement: str
    value: float
    at_most: float | None
    at_least: float | None
    source: str
    holds: bool | None

    @property
    def passed(self) -> bool:
        """Whether the value is a number within the bounds and `holds` is not false."""
        return (
            not math.isnan(self.value)
            and (self.at_most is None or self.value <= self.at_most)
            and (self.at_least is None or self.value >= self.at_least)
            and self.holds is not False
        )

    @property
    def bound(self) -> str:
        """The bounds in words."""
        words = []
        if self.at_least is not None:
            words.append(f"≥ {self.at_least:.4g}")
        if self.at_most is not None:
            words.append(f"≤ {self.at_most:.4g}")
        if self.holds is not None:
            words.append("holds")
        return ", ".join(words)

    @property
    def measured(self) -> str:
        """What was measured, in words."""
        words = f"{self.value:.4g}"
        return words if self.holds is None else f"{words}, {'yes' if self.holds else 'no'}"

    @property
    def origin(self) -> str:
        """Who makes the claim: "paper", "other" for another source, or "ours"."""
        if self.source == "ours":
            return "ours"
        return "paper" if self.source.startswith(PAPER) else "other"

    def record(self) -> dict[str, Any]:
        return {"kind": "claim", **asdict(self), "passed": self.passed}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Claim:
        """The claim of a record, as `collect` gives them."""
        values = {field.name: record[field.name] for field in fields(cls)}
        return cls(**{**values, "value": float(record["value"])})


@dataclass(frozen=True)
class Number:
    """A number that a run reports."""

    name: str
    value: int | float
    meaning: str

    def record(self) -> dict[str, Any]:
        return {"kind": "number", **asdict(self)}


def bundle(item: Claim | Number) -> tuple[dict[str, str], dict[str, Any]]:
    """The data and the metadata of the output that carries a record."""
    record = item.record()
    if not math.isfinite(record["value"]):
        record["value"] = str(record["value"])  # JSON has no nan
    name = f"{record['kind']}:{record.get('id') or record['name']}"
    metadata = {"scrapbook": {"name": name, "mime_prefix": _PREFIX}}
    return {MIME: json.dumps(record, ensure_ascii=False)}, metadata


def collect(notebook: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The claims and the numbers that an executed notebook recorded, in its order.

    Raises:
        BookError: If two cells record the same id.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for record in (record for cell in notebook["cells"] for record in _records(cell)):
        key = (record.pop("kind"), record.get("id") or record["name"])
        if key in found:
            raise BookError(f"the {key[0]} {key[1]!r} is recorded twice; its name must be unique")
        found[key] = record
    claims = [record for (kind, _), record in found.items() if kind == "claim"]
    numbers = [record for (kind, _), record in found.items() if kind == "number"]
    return claims, numbers


def claimed(cell: dict[str, Any]) -> list[str]:
    """The ids of the claims that an executed cell recorded."""
    return [record["id"] for record in _records(cell) if record["kind"] == "claim"]


def _records(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for output in cell.get("outputs", []):
        text = output.get("data", {}).get(MIME)
        if text is not None:
            yield json.loads(nb.joined(text))
