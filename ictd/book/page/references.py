"""A Sphinx extension: on a page that stands alone, what it refers to elsewhere is named, not linked."""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from docutils import nodes
from sphinx.addnodes import download_reference, pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import docname_join

_SCHEMES = ("http", "https", "mailto", "ftp")
# Before the first of those that resolve references, which have 5.
_FIRST = 4


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx for each name in its list of extensions."""
    app.add_config_value("page_elsewhere", {}, "env")
    app.add_config_value("page_files", "", "env")
    app.add_post_transform(_Name)
    app.connect("doctree-resolved", _drop_broken)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class _Name(SphinxPostTransform):
    """Put the name of what is elsewhere in the place of a reference to it."""

    default_priority = _FIRST

    def run(self, **kwargs: Any) -> None:
        elsewhere = self.config.page_elsewhere
        for node in list(self.document.findall(pending_xref)):
            key = _key(node, self.env.docname)
            if not _is_here(self.env, node, key):
                explicit = node.get("refexplicit") or node["reftype"] in ("myst", "any")
                name = "" if explicit and node.astext() else elsewhere.get(key, "")
                new = [nodes.Text(name)] if name else _content(node)
                node.replace_self(new)


def _key(node: pending_xref, document: str) -> str:
    """What a reference leads to: a label, or a page's place in the book without suffix."""
    target: str = node["reftarget"]
    if node["reftype"] == "doc":
        return docname_join(document, target)
    if node["reftype"] == "myst":
        path = target.partition("#")[0]
        if PurePosixPath(path).suffix in (".md", ".ipynb", ".rst"):
            return docname_join(document, os.path.splitext(path)[0])
    return target


def _is_here(env: BuildEnvironment, node: pending_xref, key: str) -> bool:
    """Whether a reference can be resolved on this page."""
    kind = node["reftype"]
    if node.get("refdomain") == "prf":
        return key in getattr(env, "proof_list", {})
    if kind == "eq":
        return key in env.get_domain("math").data["objects"]
    if kind in ("ref", "numref"):
        return key in env.get_domain("std").data["anonlabels"]
    if kind == "doc" or (kind == "myst" and key != node["reftarget"]):
        return key in env.all_docs
    return True


def _content(node: nodes.Element) -> list[nodes.Node]:
    """What a link shows, without the link and the look of one."""
    children = list(node.children)
    inner = children[0] if len(children) == 1 else None
    if isinstance(inner, (nodes.inline, nodes.literal)) and "xref" in inner["classes"]:
        return list(inner.children)
    return children


def _drop_broken(app: Sphinx, document: nodes.document, name: str) -> None:
    """Take away the links that lead nowhere on this page; what they show stays."""
    for download in list(document.findall(download_reference)):
        target = download["reftarget"]
        if target.startswith(f"{app.config.page_files}/"):
            link = nodes.reference("", "", *_content(download), refuri=target)
            download.replace_self(link)
        else:
            download.replace_self(_content(download))
    for link in list(document.findall(nodes.reference)):
        if not _leads(app, document, name, link) and link.parent is not None:
            link.replace_self(_content(link))


def _leads(app: Sphinx, document: nodes.document, name: str, link: nodes.reference) -> bool:
    if "refid" in link:
        return link["refid"] in document.ids
    parts = urlsplit(link.get("refuri", ""))
    if parts.scheme or parts.netloc:
        return parts.scheme in _SCHEMES
    if parts.path and parts.path.startswith(f"{app.config.page_files}/"):
        return True
    # A link to a place on the page itself may have the page's own name in it.
    itself = parts.path in ("", app.builder.get_target_uri(name).rpartition("/")[2])
    return itself and unquote(parts.fragment) in document.ids
