"""The first code cell of a chapter, which installs the library where Colab opened the notebook.

Elsewhere the cell does nothing, and the book's pages leave it out. A notebook on Colab has no way to know
where it came from, so the cell itself names the project's address; `ictd colab` writes it. It installs a
clone, since a chapter may run others.
"""

from __future__ import annotations

import json
from pathlib import Path

from . import address
from . import notebook as nb
from .files import write_text
from .project import Project

_ID = "colab"
# What a chapter needs of the library's extras. One that imports what runs chapters needs all of it.
_EXTRA = "chapters"
_EXTRA_TO_RUN = "book"
_RUNS = {"nbformat", "papermill"}
_SOURCE = """\
# @title On Colab this installs the book's library; elsewhere it does nothing.
import importlib.util
import os
import subprocess
import sys

repository = "{repository}"
branch = "{branch}"
missing = importlib.util.find_spec("ictd") is None
if "google.colab" in sys.modules and missing:
    if not repository:
        raise RuntimeError(
            "This copy of the notebook does not know where its project "
            "is published. Set `repository` in this cell and run it again."
        )
    if not os.path.isdir("ictd-book"):
        clone = ["git", "clone", "--quiet", "--depth", "1"]
        clone += ["--branch", branch, repository, "ictd-book"]
        subprocess.run(clone, check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    library = "./ictd-book[{extra}]"
    subprocess.run([*pip, "--editable", library], check=True)
    # This Python started before.
    sys.path.insert(0, os.path.abspath("ictd-book"))"""


def source(notebook: nb.Notebook, found: address.Address | None) -> str:
    """The code of the cell.

    Args:
        notebook: The chapter.
        found: Where the project is published; only a declared address is written into the chapters.
    """
    known = found if found is not None and found.declared else address.Address("", "main", True)
    extra = _EXTRA_TO_RUN if _RUNS & nb.imports(notebook) else _EXTRA
    return _SOURCE.format(repository=known.url, branch=known.branch, extra=extra)


def write(project: Project) -> list[Path]:
    """Bring the cell of every chapter up to date, and return the chapters that changed."""
    found = address.find(project.root)
    changed = []
    for path in project.chapters():
        before = path.read_text(encoding="utf-8")
        notebook = nb.read(path)
        cells = [cell for cell in notebook["cells"] if nb.COLAB not in nb.tags(cell)]
        cell = nb.code_cell(_ID, source(notebook, found), [nb.COLAB, "remove-cell"])
        # Jupyter and Colab fold its code.
        cell["metadata"] |= {"cellView": "form", "jupyter": {"source_hidden": True}}
        # The title stays first, as the page's.
        text = json.dumps(
            {**notebook, "cells": [cells[0], cell, *cells[1:]]}, ensure_ascii=False, indent=1
        )
        if text + "\n" != before:
            write_text(path, text + "\n")
            changed.append(path)
    return changed
