"""The stored training run of chapter 6 is what training gives: its first steps, run again."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chapter_runs import ROOT

import ictd
from ictd.book import stored
from ictd.book.project import Project

CHAPTER = "06_boyan_chain_experiments"
# Single precision on another machine may sum in another order, and training amplifies what that changes.
TOLERANCE = 2e-3


@cache
def rows_by_seed() -> dict[int, list[dict[str, float]]]:
    """The stored rows (a, b, c) of V, by seed in the order of the steps."""
    found = stored.load(Project(ROOT), CHAPTER)
    assert found is not None, "there is none; run: ictd store 06"
    (cell,) = [cell for cell in found.info["cells"] if cell["id"] == "row-figure"]
    assert cell["data"], "the rows are not among the stored data"
    rows: dict[int, list[dict[str, float]]] = {}
    with Path(found.folder / cell["data"]).open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            row = {name: float(line[name]) for name in ("step", "a", "b", "c")}
            rows.setdefault(int(line["seed"]), []).append(row)
    return rows


@cache
def parameters() -> dict[str, Any]:
    found = stored.load(Project(ROOT), CHAPTER)
    assert found is not None
    return found.info["parameters"]


def first_steps(seed: int, **changes: Any) -> np.ndarray:
    """V of a seed before training and after the steps of the first stored evaluation, (2, 3)."""
    given = parameters()
    names = (
        "gamma",
        "n_states",
        "n_features",
        "context_length",
        "n_layers",
        "batch_size",
        "learning_rate",
    )
    steps = int(rows_by_seed()[seed][1]["step"])
    fields = {name: given[name] for name in names}
    fields |= {"seeds": [seed], "n_steps": steps, "eval_every": steps} | changes
    result = ictd.pretrain(ictd.PretrainConfig(**fields), progress=False)
    return result.history["V"][:, 0]


def stored_steps(seed: int) -> np.ndarray:
    return np.array([[row[name] for name in "abc"] for row in rows_by_seed()[seed][:2]])


def test_every_seed_is_there_at_every_evaluation() -> None:
    given, rows = parameters(), rows_by_seed()
    assert len(rows) == given["n_seeds"] >= 30
    assert given["n_steps"] >= 3000
    steps = {tuple(row["step"] for row in of_seed) for of_seed in rows.values()}
    (common,) = steps
    assert common[0] == 0
    assert common[-1] == given["n_steps"]


@pytest.mark.parametrize("place", [0, -1])
def test_the_first_steps_of_a_seed_come_out_again(place: int) -> None:
    seed = list(rows_by_seed())[place]
    np.testing.assert_allclose(first_steps(seed), stored_steps(seed), atol=TOLERANCE)


def test_another_seed_or_learning_rate_is_noticed() -> None:
    first, second, *_ = rows_by_seed()
    there = stored_steps(first)
    assert np.abs(first_steps(second) - there).max() > 10 * TOLERANCE
    rate = 0.95 * parameters()["learning_rate"]
    assert np.abs(first_steps(first, learning_rate=rate) - there).max() > 2 * TOLERANCE
