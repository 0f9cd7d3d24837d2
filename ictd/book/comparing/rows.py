"""The rows of a comparison, one a run, as Python values and as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..parameters import Value
from .runs import Result, Run
from .settings import SEED

Cell = Value | None


@dataclass(frozen=True)
class Rows:
    """What becomes a row.

    Attributes:
        runs: In their order.
        folders: The name of each in the table.
        parameters: The parameters that differ, without `seed`.
        results: The numbers and claims to show.
        versions: The version of each run; empty if there is one version only.
    """

    runs: Sequence[Run]
    folders: Sequence[str]
    parameters: Sequence[str]
    results: Sequence[Result]
    versions: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """The columns; a claim has two."""
        names = ["folder", *self._parameters(), *(["version"] if self.versions else [])]
        for kind, name in self.results:
            names.append(f"{kind}:{name}")
            if kind == "claim":
                names.append(f"passed:{name}")
        return names

    def __iter__(self) -> Iterator[list[Cell]]:
        parameters = self._parameters()
        for number, (run, folder) in enumerate(zip(self.runs, self.folders, strict=True)):
            row: list[Cell] = [folder, *(run.parameters.get(name) for name in parameters)]
            if self.versions:
                row.append(self.versions[number])
            for result in self.results:
                found = run.results.get(result)
                row.append(None if found is None else found.value)
                if result.kind == "claim":
                    row.append(None if found is None else found.passed)
            yield row

    def csv(self) -> str:
        """Exact numbers, `true` and `false`, lists as JSON; what a run lacks is empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.names)
        for row in self:
            writer.writerow(map(_csv_cell, row))
        return text.getvalue()

    def _parameters(self) -> list[str]:
        seeded = any(SEED in run.parameters for run in self.runs)
        return [*self.parameters, *([SEED] if seeded else [])]


def _csv_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool | list):
        return json.dumps(cell, ensure_ascii=False)
    return cell if isinstance(cell, str) else repr(cell)
