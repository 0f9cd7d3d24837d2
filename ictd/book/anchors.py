"""A Sphinx extension: Markdown links lead to entries of the API reference.

MyST lets a link name a heading of another page, `[text](page.md#heading)`, and warns if it is not there.
With this, `[text](api.md#ictd.state_pass)` is as good, and a name that the page does not document is a
warning too. Such a link is one in plain Jupyter as well, where a role would show raw.
"""

from __future__ import annotations

from typing import Any

from sphinx.addnodes import desc_signature
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx for each name in its list of extensions."""
    app.connect("doctree-read", _add_anchors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _add_anchors(app: Sphinx, doctree: Any) -> None:
    # Where MyST keeps the headings of a page: anchor to (line, id, text of a link without one).
    anchors = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for signature in doctree.findall(desc_signature):
        for name in signature["ids"]:
            anchors.setdefault(name, (signature.line, name, name))
