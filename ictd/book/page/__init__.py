"""An executed chapter as one HTML file that needs no other: no script, no network, no book around it."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from string import Template
from typing import Any

import yaml

from .. import figure_files
from .. import notebook as nb
from ..errors import BookError
from ..project import PACKAGE, Project
from . import elsewhere
from .tidy import tidy

#: The folder of the figures as files, beside the page.
FIGURES = "figures"
_ROOT = "table-of-contents"
# The process ends long before there is enough garbage to look for.
_BUILD = "import gc; gc.disable(); from ictd.book.page.build import main; main()"
_HEADING = re.compile(r"\s*(# [^\n]*|[^\n]+\n=+[ \t]*)(?:\n|\Z)")
_CITED = re.compile(r"\{cite(?::\w+)?\}`")
_BIBLIOGRAPHY = (
    '<h2 id="references">References</h2>\n\n```{bibliography}\n:filter: docname in docnames\n```'
)
# Options of the book that decide what its text means.
_OPTIONS = ("myst_", "nb_", "numfig", "math_", "bibtex_", "proof_", "exercise_")
_ALSO = ("language", "mathjax3_config")
_SYNTAX = ["amsmath", "colon_fence", "deflist", "dollarmath", "substitution", "tasklist"]
_EXTENSIONS = [
    "myst_nb",
    "sphinx_proof",
    "sphinx_exercise",
    "sphinx_design",
    "ictd.book.numbering",
    "ictd.book.page.build",
    "ictd.book.page.maths",
    "ictd.book.page.references",
]
_PAGE = Template("""\
<!DOCTYPE html>
<html lang="$language">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="$policy">
<title>$title</title>
<link rel="icon" href="data:,">
<style>
$style</style>
</head>
<body>
<main>
<article>
$body
</article>
</main>
</body>
</html>
""")
# Whatever the output of a cell holds, the page loads nothing.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:"


def render(project: Project, content: nb.Notebook, chapter: str, head: str = "") -> str:
    """The HTML page of an executed chapter.

    Its figures are in it; the links below them lead to `figures/…` beside it, where
    `figure_files.write` puts the files. What the chapter refers to elsewhere in the book is named
    and not linked.

    Args:
        project: The book that the chapter is of, or the folder of a notebook that is of none.
        content: The executed notebook.
        chapter: The chapter's name, such as `04_convergence`.
        head: Markdown (MyST) without headings, shown after the title.

    Raises:
        BookError: If there is no page; the message says why.
    """
    source = _source(project, chapter)
    document = source.relative_to(project.root).with_suffix("").as_posix()
    config = _config(project)
    with tempfile.TemporaryDirectory(prefix="ictd-page-") as name:
        folder = Path(name) / "source"
        place = folder / f"{document}.ipynb"
        place.parent.mkdir(parents=True)
        options = _options(project, config, folder)
        options["page_folder"] = str(project.root)
        options["page_elsewhere"] = elsewhere.names(project, document)
        cited = "sphinxcontrib.bibtex" in options["extensions"]
        shown = figure_files.with_links(content, chapter, FIGURES)
        text = json.dumps(_with_head(shown, chapter, head, cited), ensure_ascii=False)
        place.write_text(text, encoding="utf-8")
        numbered = "   :numbered:\n" if elsewhere.is_numbered(project, document) else ""
        toctree = f"Contents\n========\n\n.. toctree::\n{numbered}\n   {document}\n"
        (folder / f"{_ROOT}.rst").write_text(toctree, encoding="utf-8")
        made = _build({"folder": str(folder), "document": document, "options": options})
    return _PAGE.substitute(
        language=html.escape(str(options.get("language", "en"))),
        policy=_POLICY,
        title=html.escape(_title(made["title"], config)),
        style=(Path(__file__).parent / "page.css").read_text(encoding="utf-8"),
        body=_with_contents(tidy(made["body"]), tidy(made["contents"])),
    )


def _source(project: Project, chapter: str) -> Path:
    """The notebook that the chapter is written in, or where it would be in a folder that is no book."""
    if (project.root / "_toc.yml").is_file():
        for path in project.chapters():
            if path.stem == chapter:
                return path
    return project.root / f"{chapter}.ipynb"


def _config(project: Project) -> dict[str, Any]:
    try:
        text = (project.root / "_config.yml").read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BookError(f"the book's configuration cannot be read: {error}") from None
    return config if isinstance(config, dict) else {}


def _options(project: Project, config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The options for Sphinx: those of the book that decide what the text means, and our own.

    The files of the bibliography are copied to the folder.
    """
    given = {**(config.get("parse") or {}), **((config.get("sphinx") or {}).get("config") or {})}
    options = {k: v for k, v in given.items() if k.startswith(_OPTIONS) or k in _ALSO}
    options.setdefault("myst_enable_extensions", _SYNTAX)
    options.setdefault("nb_render_markdown_format", "myst")
    extensions = list(_EXTENSIONS)
    sources = []
    for name in config.get("bibtex_bibfiles") or []:
        if (project.root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(project.root / name, folder / name)
            sources.append(name)
    if sources:
        extensions.append("sphinxcontrib.bibtex")
        options["bibtex_bibfiles"] = sources
    return options | {
        "extensions": extensions,
        "root_doc": _ROOT,
        "nb_execution_mode": "off",
        # A run's streams are merged already, and this takes a time that grows with the square of a line.
        "nb_merge_streams": False,
        "html_theme": "basic",
        "html_permalinks": False,
        "html_math_renderer": "mathml",
        "page_files": FIGURES,
    }


def _with_head(notebook: nb.Notebook, chapter: str, head: str, cited: bool) -> nb.Notebook:
    """A copy with the head right after the title, and what is cited at its end."""
    cells: list[nb.Cell] = list(notebook["cells"])
    first = nb.source(cells[0]) if cells and cells[0]["cell_type"] == "markdown" else ""
    if found := _HEADING.match(first):
        title, rest = found[1], first[found.end() :]
        cells[0] = {**cells[0], "source": rest}
    else:
        title = f"# {chapter}"
    before = [nb.markdown_cell(notebook, "page-title", title)]
    if head:
        before.append(nb.markdown_cell(notebook, "page-head", head))
    text = "\n".join(map(nb.source, cells))
    after = []
    if cited and _CITED.search(f"{head}\n{text}") and "{bibliography}" not in text:
        after.append(nb.markdown_cell(notebook, "page-references", _BIBLIOGRAPHY))
    return {**notebook, "cells": [*before, *cells, *after]}


def _build(job: dict[str, Any]) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", _BUILD],
        input=json.dumps(job),
        capture_output=True,
        # With -c, Python looks for modules in the current folder first.
        cwd=PACKAGE.parent,
        encoding="utf-8",
        errors="replace",
        # One order of sets: the same notebook is the same page.
        env=os.environ | {"PYTHONUTF8": "1", "NO_COLOR": "1", "PYTHONHASHSEED": "0"},
    )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = lines[-1].strip() if lines else f"it ended with status {done.returncode}"
        advice = "; pip install -r requirements.txt" if "No module named" in done.stderr else ""
        raise BookError(f"Sphinx made no page: {reason}{advice}")
    parts: dict[str, str] = json.loads(done.stdout)
    return parts


def _title(title: str, config: dict[str, Any]) -> str:
    """The title of the page, and of the book, as text."""
    plain = html.unescape(re.sub(r"<[^>]*>", "", title))
    return " — ".join(filter(None, [plain, str(config.get("title") or "")]))


def _with_contents(body: str, contents: str) -> str:
    """The body with a folded list of its sections after the title."""
    if not contents:
        return body
    title, end, rest = body.partition("</h1>")
    folded = f'<details class="contents"><summary>Contents</summary>\n{contents}</details>'
    return f"{title}{end}\n{folded}\n{rest.lstrip()}"
