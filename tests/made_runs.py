"""Folders of results that look like those of `ictd run`, written without running anything."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PACKAGES = {"numpy": "2.0", "torch": "2.3"}


def claim(name: str, value: float, passed: bool = True, **bounds: float) -> dict[str, Any]:
    return {
        "id": name,
        "statement": f"what {name} says",
        "value": value if math.isfinite(value) else str(value),
        "at_most": bounds.get("at_most"),
        "at_least": bounds.get("at_least"),
        "source": "ours",
        "holds": None,
        "passed": passed,
    }


def write_run(
    folder: Path,
    parameters: dict[str, Any],
    numbers: dict[str, float] | None = None,
    claims: Sequence[dict[str, Any]] = (),
    chapter: str = "06_toy",
    **provenance: Any,
) -> Path:
    """A folder as `ictd run -o` leaves it."""
    folder.mkdir(parents=True)
    (folder / "parameters.json").write_text(json.dumps(parameters))
    made = {
        "code": "aaaa",
        "ictd": "0.1.0",
        "python": "CPython 3.11.7",
        "packages": PACKAGES,
        "commit": None,
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "peak_memory": 1,
        **provenance,
    }
    made.setdefault("key", f"{made['code']} {made['packages']} {json.dumps(parameters)}")
    contents = {
        "chapter": chapter,
        "at_defaults": False,
        "claims": list(claims),
        "numbers": [
            {"name": n, "value": v if math.isfinite(v) else str(v), "meaning": f"meaning of {n}"}
            for n, v in (numbers or {}).items()
        ],
        "provenance": {name: value for name, value in made.items() if value != "left out"},
    }
    (folder / "results.json").write_text(json.dumps(contents))
    return folder
