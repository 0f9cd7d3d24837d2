"""The whole book as one PDF, printed by Chromium from the pages of the built site.

The book is printed twice: once to see on which pages the headings land, and again with these numbers in
its contents. The paper is A4; printed on Letter, the pages fit when they are made a little smaller.
"""

from __future__ import annotations

import datetime
import json
import posixpath
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from ..._files import write_bytes
from .. import offline, provenance
from ..builder import built_runs, built_site
from ..errors import BookError
from ..files import locked, write_text
from ..progress import say
from ..project import Project
from . import assemble, browser, front, places
from .browser import check

__all__ = ["check", "make"]

_FILES = ("print.css", "fit.js")
_MATHJAX = re.compile(r'<script defer="defer" src="([^"?]*tex-[^"?]*\.js)[^"]*"></script>')
_OPTIONS = re.compile(r"<script>window\.MathJax = (\{.*?\})</script>")
# Numbers in the contents could move what they number; then another print is needed.
_PRINTS = 3


def make(project: Project) -> Path:
    """Make `_build/book.pdf` of the built site, unless it is that of this site, and offer it there.

    Returns:
        Its path.

    Raises:
        BookError: If there is no built site, no Chromium, or something in the site cannot be printed.
            The last PDF is then as it was.
    """
    target = offline.pdf_path(project)
    with locked(project.build_folder / "lock"):
        offline.check(project)
        config = yaml.safe_load((project.root / "_config.yml").read_text(encoding="utf-8")) or {}
        facts = front.facts(project, config, built_runs(project))
        fingerprint = _fingerprint(project, facts)
        found = places.made(target)
        if found is not None and found.fingerprint == fingerprint:
            say("the PDF is up to date: nothing that it depends on has changed")
        else:
            _print(project, facts, fingerprint, target)
            found = places.made(target)
        if found is not None:
            offline.offer_pdf(project, target, found.pages)
    return target


def _fingerprint(project: Project, facts: front.Facts) -> str:
    """A hash of what decides the PDF; the site's own covers the sources and the tools."""
    files = [provenance.sha256(Path(__file__).with_name(name).read_bytes()) for name in _FILES]
    return provenance.digest([built_site(project), facts.title, facts.author, facts.rows, files])


def _print(project: Project, facts: front.Facts, fingerprint: str, target: Path) -> None:
    site = project.build_folder / "html"
    documents = [
        page.relative_to(project.root).with_suffix("").as_posix() for page in project.pages()
    ]
    say(f"putting {len(documents)} pages together")
    pages = assemble.paper_pages(site, documents, project.build_folder)
    document = project.build_folder / ".book-for-paper.html"
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    parts = _parts(project, dict(zip(project.pages(), pages, strict=True)))
    write_text(document, front.document(facts, date, pages, parts, _frame(site, documents)))
    listed = [h.anchor for page in pages for h in page.headings if h.level <= front.DEPTH]
    try:
        with browser.opened() as page:
            say("setting the formulas and fitting what is wide")
            loaded = browser.load(page, document)
            for what in loaded["wide"]:
                say(f"too wide for the paper: {what}")
            say(f"printing the book, with {loaded['formulas']} formulas")
            pdf = browser.printed(page, draft=True)
            for _ in range(_PRINTS - 1):
                numbers = places.numbers(pdf, listed)
                browser.number(page, numbers)
                say("printing it again, with the numbers of the pages in the contents")
                pdf = browser.printed(page)
                if places.numbers(pdf, listed) == numbers:
                    break
            else:
                raise BookError("the numbers in the contents move what they number")
    finally:
        document.unlink(missing_ok=True)
    pdf = places.with_metadata(
        pdf,
        title=facts.title,
        author=facts.author,
        fingerprint=fingerprint,
        too_wide=loaded["wide"],
    )
    write_bytes(target, pdf)


def _frame(site: Path, documents: Sequence[str]) -> dict[str, Any]:
    """Where the document finds what it loads, and MathJax's options, as the pages of the site have them."""
    style = Path(__file__).with_name("print.css").read_text(encoding="utf-8")
    frame = {"site": site.name, "script": "", "mathjax": {}, "style": style}
    for document in documents:
        text = (site / f"{document}.html").read_text(encoding="utf-8")
        if script := _MATHJAX.search(text):
            if urlsplit(script[1]).netloc:
                raise BookError(
                    f"the site loads MathJax from another host, {script[1]}, and a PDF is made without a "
                    "network: put MathJax into the book and name it in _config.yml as mathjax_path"
                )
            options = _OPTIONS.search(text)
            folder = posixpath.dirname(document)
            return frame | {
                "script": posixpath.normpath(posixpath.join(folder, script[1])),
                "mathjax": json.loads(options[1]) if options else {},
            }
    return frame


def _parts(project: Project, pages: dict[Path, assemble.PaperPage]) -> dict[str, str]:
    """The titles of the parts of the table of contents, by the anchor of the first page of each."""
    toc = yaml.safe_load((project.root / "_toc.yml").read_text(encoding="utf-8"))
    found = {}
    for part in toc.get("parts") or []:
        first: dict[str, Any] = next(iter(part.get("chapters") or []), {})
        for path, page in pages.items():
            name = path.relative_to(project.root).with_suffix("").as_posix()
            if part.get("caption") and first.get("file") in (name, f"{name}{path.suffix}"):
                found[page.anchor] = str(part["caption"])
    return found
