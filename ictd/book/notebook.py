"""Reading a notebook file as plain JSON; nothing here executes or writes one."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import BookError
from .parameters import Declaration, ParameterError, parse

Cell = dict[str, Any]
Notebook = dict[str, Any]
#: The tag of a cell that shows what was computed beforehand, not in this run.
STORED = "stored"
#: The tag of the cell that installs the library on Colab.
COLAB = "colab"


def read(path: Path) -> Notebook:
    """Read a notebook; BookError if the file is none."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BookError(f"{path} is not a notebook: {error}") from None
    if not isinstance(notebook, dict) or "cells" not in notebook:
        raise BookError(f"{path} is not a notebook of format 4: it has no cells")
    return notebook


def joined(text: str | list[str]) -> str:
    """A text, which the format stores as one or as a list of lines."""
    return text if isinstance(text, str) else "".join(text)


def source(cell: Cell) -> str:
    """The text of a cell."""
    return joined(cell["source"])


def markdown_cell(notebook: Notebook, id: str, text: str, tags: Sequence[str] = ()) -> Cell:
    """A Markdown cell to put into a notebook; formats before 4.5 know no ids."""
    cell: Cell = {
        "cell_type": "markdown",
        "metadata": {"tags": list(tags)} if tags else {},
        "source": text,
    }
    return cell | ({"id": id} if notebook["nbformat_minor"] >= 5 else {})


def code_cell(id: str, text: str, tags: Sequence[str]) -> Cell:
    """A code cell to put into a notebook of format 4.5, not run yet."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": id,
        "metadata": {"tags": list(tags)},
        "outputs": [],
        "source": text.splitlines(keepends=True),
    }


def tags(cell: Cell) -> list[str]:
    return list(cell.get("metadata", {}).get("tags", []))


def declaration(notebook: Notebook) -> Declaration:
    """The parameters that a notebook declares.

    Raises:
        ParameterError: If it has not exactly one code cell tagged `parameters`, if that cell is not
            well formed, if a name is used before it is declared, or if the next code cell does not
            check them.
    """
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    tagged = [index for index, cell in enumerate(code) if "parameters" in tags(cell)]
    if len(tagged) != 1:
        raise ParameterError(
            "the notebook does not declare its parameters",
            [f"it has {len(tagged)} code cells tagged 'parameters'; expected exactly one"],
        )
    (index,) = tagged
    parameters = parse(source(code[index]))
    problems = []
    for cell in code[:index]:
        used = sorted(_names(source(cell)) & set(parameters))
        problems += [f"{name}: used before the cell that declares it" for name in used]
    following = [cell for cell in code[index + 1 :] if "injected-parameters" not in tags(cell)]
    if not following or "Chapter" not in _names(source(following[0])):
        problems.append("the code cell after the parameters must check them: chapter = Chapter()")
    if problems:
        raise ParameterError("the notebook does not declare its parameters well", problems)
    return parameters


def imports(notebook: Notebook) -> set[str]:
    """The top-level names of the modules that the code of a notebook imports."""
    found = set()
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            for node in _nodes(source(cell)):
                if isinstance(node, ast.Import):
                    found |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.partition(".")[0])
    return found


def _names(text: str) -> set[str]:
    """The names that a cell's code mentions."""
    return {node.id for node in _nodes(text) if isinstance(node, ast.Name)}


def _nodes(text: str) -> list[ast.AST]:
    """The syntax of a cell's code; lines of IPython's own are left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("%", "!"))]
    try:
        return list(ast.walk(ast.parse("\n".join(lines))))
    except SyntaxError:
        return []


def leave_out_slow_grammar() -> None:
    """Let jsonschema, which nbformat imports, do without grammars that take it a second to read.

    They are there where JupyterLab is installed, and no notebook needs them. Called before nbformat is
    imported, in a process of our own.
    """
    # Python takes None for a module that cannot be imported; the types of its library do not know that.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    sys.modules["rfc3986_validator"] = None  # type: ignore[assignment]
