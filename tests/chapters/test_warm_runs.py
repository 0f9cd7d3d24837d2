"""Where the runs of the tests of chapters end."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat import v4
from warm_runs import CellFailed, run_cells, shown

CELLS = ["a, b = 1, 2", "a", "b", "assert b < 4\nb"]


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    cells = [v4.new_code_cell(text) for text in CELLS]
    cells[0].metadata["tags"] = ["parameters"]
    path = tmp_path / "some.ipynb"
    nbformat.write(v4.new_notebook(cells=cells), path)
    return path


def texts(executed: dict) -> list[str]:
    return [output["text/plain"] for output in shown(executed)]


def test_a_run_ends_where_it_first_shows_something_else(notebook: Path) -> None:
    before = run_cells(notebook, {})
    assert texts(before) == ["1", "2", "2"]
    assert texts(run_cells(notebook, {"b": 5}, before)) == ["1", "5"]
    assert texts(run_cells(notebook, {"b": 2}, before)) == ["1", "2", "2"]


def test_a_cell_that_fails_ends_the_run(notebook: Path) -> None:
    with pytest.raises(CellFailed, match="AssertionError"):
        run_cells(notebook, {"b": 5})
