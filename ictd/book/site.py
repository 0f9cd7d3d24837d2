"""From executed chapters to the site: stage a copy of the book, render it, swap it in."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from . import address, figure_files, ledger, markdown, provenance, reference, stored, stored_blocks
from . import notebook as nb
from .cache import StoredRun
from .errors import BookError
from .files import remove_folder, replace_folder, write_json
from .project import PACKAGE, Project

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PROBLEM = re.compile(r"\b(WARNING|ERROR|CRITICAL|Error|Exception)\b")
_RENDER = "from jupyter_book.cli.main import main; main()"
_INSTALL = "pip install -r requirements.txt"
_CLAIMS = "claims.json"
# What is added to the name of a notebook as it is in the project, which the page offers for download; the
# name is none of a page to Sphinx.
_AS_WRITTEN = ".as-written"
# The places in `_config.yml` that name files of the book, relative to it.
_CONFIG_FILES = (
    ("logo",),
    ("bibtex_bibfiles",),
    ("html", "favicon"),
    ("sphinx", "config", "html_extra_path"),
    ("sphinx", "config", "html_static_path"),
    ("sphinx", "config", "templates_path"),
)
# Folder of the figures as files, beside the chapters of the staged book.
FIGURES = "figures"


class SiteError(BookError):
    """The site cannot be rendered; the message says why and what to do."""


def check_renderer() -> None:
    """Refuse a missing jupyter-book, and version 2, which cannot read this book."""
    try:
        version = metadata.version("jupyter-book")
    except metadata.PackageNotFoundError:
        raise SiteError(f"jupyter-book is not installed: {_INSTALL}") from None
    if int(version.split(".")[0]) >= 2:
        raise SiteError(
            f"jupyter-book {version} is installed, but this book is one of version 1: "
            f"{_INSTALL}, or pip install 'jupyter-book>=1.0.4,<2'"
        )


def stage(project: Project, runs: Mapping[Path, StoredRun]) -> Path:
    """Copy the book to `_build/executed`, with its chapters executed and execution off."""
    staged = project.build_folder / "executed"
    aside = project.build_folder / ".executed-new"
    remove_folder(aside)
    config = yaml.safe_load((project.root / "_config.yml").read_text(encoding="utf-8")) or {}
    files = [*_config_files(project.root, config), project.root / "chapters", *project.pages()]
    for path in (*files, project.root / "_toc.yml"):
        _copy(project.root, path, aside)
    for chapter in project.chapters():
        copy = aside / chapter.relative_to(project.root)
        shutil.copyfile(copy, copy.with_name(copy.name + _AS_WRITTEN))
    made = ledger.make(project, runs.values())
    write_json(aside / _CLAIMS, made.as_json())
    (aside / "_config.yml").write_text(
        yaml.safe_dump(_staged_config(config), allow_unicode=True), "utf-8"
    )
    commit = provenance.commit(project.root)
    figures = aside / "chapters" / FIGURES
    pages = [_page(project, chapter, run) for chapter, run in runs.items()]
    for page in pages:
        chapter, executed = page.run.info["chapter"], page.content
        figure_files.write(executed, chapter, figures)
        if page.full_scale:
            live = page.run.info["parameters"]
            executed = stored_blocks.with_blocks(executed, page.full_scale, live, commit)
        executed = figure_files.with_links(executed, chapter, f"/chapters/{FIGURES}")
        executed = reference.with_targets(executed, chapter)
        executed = with_provenance(executed, page.run.info, commit)
        text = json.dumps(executed, ensure_ascii=False, indent=1)
        (aside / f"{page.document}.ipynb").write_text(text, encoding="utf-8")
    found = address.find(project.root)
    parts = reference.parts(project, pages, made, commit, found.files if found else "")
    for page in pages:
        parts |= figure_files.parts(page.content, page.document, f"/chapters/{FIGURES}")
    for path in (path for path in project.pages() if path.suffix == ".md"):
        name = path.relative_to(project.root)
        text = markdown.fill(path.read_text(encoding="utf-8"), parts, str(name))
        (aside / name).write_text(text, encoding="utf-8")
    replace_folder(aside, staged)
    return staged


def with_provenance(notebook: nb.Notebook, info: dict[str, Any], commit: str) -> nb.Notebook:
    """A copy of an executed chapter that says, after its title, how it was made.

    `commit` is the project's present one, as `provenance.shown_commit` takes it.
    """
    text = provenance.block(info, provenance.shown_commit(info, commit))
    cell = nb.markdown_cell(notebook, "provenance", text, ["provenance"])
    cells = notebook["cells"]
    place = 1 if cells and cells[0]["cell_type"] == "markdown" else 0
    return {**notebook, "cells": [*cells[:place], cell, *cells[place:]]}


def fingerprint(staged: Path) -> str:
    """A hash of everything that decides the site: staged book, address, library, and tools."""
    files = {
        path.relative_to(staged).as_posix(): provenance.sha256(path.read_bytes())
        for path in sorted(staged.rglob("*"))
        if path.is_file()
    }
    where = str(address.find(staged))
    sources = provenance.source_digests(PACKAGE)
    return provenance.digest([files, where, sources, sys.version, provenance.tools()])


def render(project: Project, staged: Path) -> Path:
    """Render the staged book and put the site in the place of the last one.

    Raises:
        SiteError: On any warning. The last site is then as it was.
    """
    aside = project.build_folder / ".render"
    remove_folder(aside)
    options = ["--all", "-W", "-n", "--keep-going", "--path-output", str(aside)]
    done = subprocess.run(
        [sys.executable, "-c", _RENDER, "build", str(staged), *options],
        cwd=PACKAGE.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        env=os.environ | {"PYTHONUTF8": "1", "NO_COLOR": "1"},
    )
    text = _ANSI.sub("", done.stdout)
    log = project.build_folder / "render.log"
    log.write_text(text, encoding="utf-8")
    html = aside / "_build" / "html"
    if done.returncode != 0 or not (html / "index.html").is_file():
        lines = text.splitlines()
        shown = [line for line in lines if _PROBLEM.search(line)] or lines[-20:]
        problems = "\n".join(f"    {line}" for line in dict.fromkeys(shown))
        raise SiteError(f"the book was not rendered:\n{problems}\n  the whole log: {log}")
    for path in staged.rglob(f"*{_AS_WRITTEN}"):
        offered = html / "_sources" / path.relative_to(staged)
        shutil.copyfile(path, offered.with_name(offered.name.removesuffix(_AS_WRITTEN)))
    site = project.build_folder / "html"
    replace_folder(html, site)
    remove_folder(aside)
    return site


def _page(project: Project, chapter: Path, run: StoredRun) -> reference.Page:
    document = chapter.relative_to(project.root).with_suffix("").as_posix()
    full_scale = stored.load(project, chapter.stem)
    return reference.Page(document, run, nb.read(run.notebook), full_scale)


def _staged_config(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with execution off, and with the claims as a file of the site."""
    sphinx = config.get("sphinx") or {}
    options = sphinx.get("config") or {}
    extra = [*(options.get("html_extra_path") or []), _CLAIMS]
    return {
        **config,
        "execute": {**(config.get("execute") or {}), "execute_notebooks": "off"},
        "sphinx": {**sphinx, "config": {**options, "html_extra_path": extra}},
    }


def _config_files(root: Path, config: dict[str, Any]) -> list[Path]:
    """The files and folders that the configuration names."""
    found = []
    for keys in _CONFIG_FILES:
        value: Any = config
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        names = value if isinstance(value, list) else [value]
        found += [root / name for name in names if name and (root / name).exists()]
    return found


def _copy(root: Path, path: Path, target: Path) -> None:
    """Copy a file or folder of the book to the same place below another root."""
    place = target / path.relative_to(root)
    place.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        ignored = shutil.ignore_patterns(".*", "__pycache__", "*.pyc")
        shutil.copytree(path, place, ignore=ignored, dirs_exist_ok=True)
    else:
        shutil.copy2(path, place)
