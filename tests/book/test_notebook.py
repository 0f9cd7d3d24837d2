"""What a notebook must be to be a chapter; the book's own chapters are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import ictd
from ictd.book import ParameterError
from ictd.book import notebook as nb
from ictd.book.errors import BookError

ROOT = Path(ictd.__file__).resolve().parents[1]
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
DECLARATION = "gamma: float = 0.9  # discount factor, in [0, 1)"
CHECK = "from ictd.book import Chapter\n\nchapter = Chapter()"


def code(text: str | list[str], *tags: str) -> dict[str, Any]:
    return {"cell_type": "code", "source": text, "metadata": {"tags": list(tags)}}


def faults(path: Path) -> list[str]:
    """What is wrong with a chapter as it is stored."""
    notebook = nb.read(path)
    found = []
    try:
        nb.declaration(notebook)
    except ParameterError as error:
        found.append(str(error))
    if notebook["metadata"].get("kernelspec", {}).get("name") != "python3":
        found.append("the kernelspec is not python3")
    cells = notebook["cells"]
    if cells[0]["cell_type"] != "markdown" or not nb.source(cells[0]).startswith("# "):
        found.append("the first cell is no title")
    ids = [cell.get("id") for cell in cells]
    if None in ids or len(set(ids)) != len(ids):
        found.append("not every cell has an id of its own")
    elif not all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in ids):
        found.append("an id that the format does not allow")
    if any(cell.get("outputs") or cell.get("execution_count") for cell in cells):
        found.append("it has outputs")
    return found


def test_there_are_chapters():
    assert CHAPTERS


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_of_the_book_is_well_formed(path):
    assert faults(path) == []


def test_what_is_wrong_with_a_chapter_is_found(tmp_path):
    cells = [{**code("print(gamma)"), "id": "a", "outputs": ["x"]}, {**code(CHECK), "id": "a"}]
    path = tmp_path / "bad.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {"kernelspec": {"name": "mine"}}}))
    assert len(faults(path)) == 5


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_papermill_lists_every_parameter_of_a_chapter(path, shared_toy):
    listed = shared_toy.papermill("--help-notebook", path)
    for parameter in nb.declaration(nb.read(path)).values():
        assert f"{parameter.name}: {parameter.type} (default" in listed
        assert parameter.meaning in listed


def test_one_cell_declares_and_the_next_checks():
    cells = [code("import os"), code([DECLARATION + "\n", "# more"], "parameters"), code(CHECK)]
    assert list(nb.declaration({"cells": cells})) == ["gamma"]
    with_injected = [cells[1], code("# Parameters\ngamma = 0.5", "injected-parameters"), cells[2]]
    assert list(nb.declaration({"cells": with_injected})) == ["gamma"]


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ([code(DECLARATION), code(CHECK)], "0 code cells tagged"),
        ([code(DECLARATION, "parameters"), code("n: int", "parameters")], "2 code cells tagged"),
        ([code("print(gamma)"), code(DECLARATION, "parameters"), code(CHECK)], "used before"),
        ([code("%time gamma"), code("gamma = 1"), code(DECLARATION, "parameters")], "used before"),
        ([code(DECLARATION, "parameters"), code("print(1)"), code(CHECK)], "must check them"),
        ([code(DECLARATION, "parameters")], "must check them"),
        ([code("gamma = 0.9", "parameters"), code(CHECK)], "not well formed"),
    ],
)
def test_other_orders_are_refused(cells, problem):
    with pytest.raises(ParameterError, match=problem):
        nb.declaration({"cells": cells})


def test_a_file_that_is_no_notebook_is_refused(tmp_path):
    path = tmp_path / "x.ipynb"
    for text in ("not json", "[]", '{"worksheets": []}'):
        path.write_text(text)
        with pytest.raises(BookError, match="is not a notebook"):
            nb.read(path)
