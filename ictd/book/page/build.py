"""Makes the parts of a page from an executed notebook, by Sphinx, in a process of its own.

The job is a JSON text on standard input, the parts are one on standard output::

    {"folder": …, "document": …, "options": …}  →  {"title": …, "contents": …, "body": …}

The folder holds the notebook, as DOCUMENT.ipynb, and the root of a table of contents with it. What Sphinx
makes besides goes beside that folder.
"""

from __future__ import annotations

import base64
import json
import mimetypes
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.util.docutils import docutils_namespace, patch_docutils
from sphinx.writers.html5 import HTML5Translator

from ..notebook import leave_out_slow_grammar
from .stand_ins import leave_out_what_executes


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx for each name in its list of extensions."""
    app.add_config_value("page_folder", "", "env")
    # Under the name of the builder it takes the place of: extensions ask for it.
    app.add_builder(PageBuilder, override=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Translator(HTML5Translator):
    """Writes pictures into the page."""

    def visit_image(self, node: nodes.image) -> None:
        data = _data(node["uri"], self.builder.srcdir, self.config.page_folder)
        if data:
            self.builder.images.pop(node["uri"], None)
            node["uri"] = data
            super().visit_image(node)
        else:
            self.body.append(self.encode(node.get("alt") or node["uri"]))

    def depart_image(self, node: nodes.image) -> None:
        if node["uri"].startswith("data:"):
            super().depart_image(node)


class PageBuilder(StandaloneHTMLBuilder):
    """Keeps the parts of the pages, by the names of the documents, and writes no files."""

    name = "html"
    search = False
    copysource = False
    download_support = False
    html_scaled_image_link = False  # it would lead to a file
    default_translator_class = Translator

    def init(self) -> None:
        super().init()
        self.pages: dict[str, dict[str, Any]] = {}

    def get_outdated_docs(self) -> Iterator[str]:
        yield from self.env.found_docs

    def handle_page(self, pagename: str, addctx: dict[str, Any], *_: Any, **__: Any) -> None:
        self.pages[pagename] = addctx

    def copy_assets(self) -> None:
        pass

    def finish(self) -> None:
        pass


def main() -> None:
    """Read a job and write the parts of its page."""
    leave_out_slow_grammar()
    leave_out_what_executes()
    # What extensions print is not the answer.
    answer, sys.stdout = sys.stdout, sys.stderr
    job = json.load(sys.stdin)
    json.dump(build(Path(job["folder"]), job["document"], job["options"]), answer)


def build(folder: Path, document: str, options: dict[str, Any]) -> dict[str, str]:
    """The title, the contents and the body of a page, HTML."""
    # Where docutils keeps roles and directives, nothing stays behind.
    with patch_docutils(), docutils_namespace():
        app = Sphinx(
            folder,
            None,
            # Not in the folder itself, where they would be sources.
            folder.with_name("made") / "html",
            folder.with_name("made") / "doctrees",
            "html",
            confoverrides=options,
            status=None,
            warning=sys.stderr,
            freshenv=True,
        )
        app.builder.build([document], method="specific")
        assert isinstance(app.builder, PageBuilder)
        made = app.builder.pages[document]
        contents = _contents(app.builder, document)
    return {"title": made["title"], "contents": contents, "body": made["body"]}


def _contents(builder: PageBuilder, document: str) -> str:
    """The list of the sections below the title, empty if there are none."""
    sections: nodes.Element = builder.env.tocs[document].deepcopy()
    if len(sections) == 1:  # the title
        below = list(sections[0].findall(nodes.bullet_list))[:1]
        if not below:
            return ""
        (sections,) = below
    for link in sections.findall(nodes.reference):
        link["refuri"] = link["anchorname"] or "#"
    return str(builder.render_partial(sections)["fragment"])


def _data(uri: str, *folders: str | Path) -> str:
    """A picture as a data URI, empty if it is not in one of the folders."""
    if uri.startswith("data:"):
        return uri
    kind = mimetypes.guess_type(uri)[0] or "image/png"
    for path in (Path(folder) / uri for folder in folders if folder):
        if path.is_file():
            return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
    return ""
