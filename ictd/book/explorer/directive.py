"""The directive, the role, and what they put on a page."""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective, SphinxRole

import ictd

from ..._files import write_bytes
from . import figure, page, settings

# Builders whose pages are read in a browser one by one. Other results are for paper.
_LIVE = ("html", "dirhtml")
_ROLE = re.compile(r"(?P<text>.+?)\s*<(?P<setting>[^<>]*)>", re.DOTALL)
# Marks the node of the controls.
_CONTROLS = "explorer-controls"


class Explorer(SphinxDirective):
    """``{explorer}``, without arguments or content."""

    def run(self) -> list[nodes.Node]:
        # The page is read again when what its numbers come from changes.
        library = Path(ictd.__file__).parent
        for folder in (library, library / "figures", Path(__file__).parent):
            for source in folder.glob("*.py"):
                self.env.note_dependency(str(source))
        controls = nodes.raw("", page.controls(), format="html")
        controls[_CONTROLS] = True
        static = nodes.container("", classes=["explorer-static"])
        static += nodes.image(
            uri=self._figure(),
            alt=figure.alternative(),
            width=f"{figure.SHOWN_WIDTH}px",
            classes=["no-scaled-link"],
        )
        static += nodes.paragraph("", page.in_words())
        return [nodes.container("", controls, static, classes=["explorer"])]

    def _figure(self) -> str:
        """Write the figure beside Sphinx's own files; return its address from the root of the sources."""
        path = Path(self.env.doctreedir) / "explorer" / "explorer.png"
        write_bytes(path, figure.png())
        return "/" + Path(os.path.relpath(path, self.env.srcdir)).as_posix()


class Setting(SphinxRole):
    """``{setting}`words <gamma=0.9&beta=8>```: what is not named is at its default."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            found = _ROLE.fullmatch(self.text)
            if found is None:
                raise ValueError(f"a setting reads 'words <gamma=0.9&beta=8>', got {self.text!r}")
            address = settings.address(settings.parse(found["setting"]))
        except ValueError as error:
            message = self.inliner.reporter.error(str(error), line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        # Plain words, which the script makes a link: without it there is nothing to lead to.
        opening = f'<span class="explorer-setting" data-setting="{escape(address)}">'
        return [
            nodes.raw("", opening, format="html"),
            nodes.Text(found["text"]),
            nodes.raw("", "</span>", format="html"),
        ], []


class OnPaper(SphinxPostTransform):
    """Takes the controls out of what is no page of a site."""

    default_priority = 100

    def run(self, **_: Any) -> None:
        if self.app.builder.name not in _LIVE:
            for controls in _controls(self.document):
                controls.parent.remove(controls)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx for each name in its list of extensions."""
    app.add_directive("explorer", Explorer)
    app.add_role("setting", Setting())
    app.add_post_transform(OnPaper)
    app.connect("html-page-context", _add_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _controls(document: Any) -> list[Any]:
    return [raw for raw in document.findall(nodes.raw) if raw.get(_CONTROLS)]


def _add_files(app: Sphinx, name: str, template: str, context: Any, doctree: Any) -> None:
    """Load script and styles on the page that has the controls, and on no other."""
    if doctree is not None and _controls(doctree):
        app.add_js_file("explorer.js", loading_method="defer")
        app.add_css_file("explorer.css")
