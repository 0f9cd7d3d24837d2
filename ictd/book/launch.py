"""A Sphinx extension: buttons that open a chapter on Binder or Colab, and links to the sources.

They appear where the project has an address, see `address`, however the book is built. Colab is offered for
an address that the project declares: the first code cell of a chapter names it there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

from . import address
from .errors import BookError

_BINDER = "https://mybinder.org"
_COLAB = "https://colab.research.google.com"


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx for each name in its list of extensions."""
    app.connect("config-inited", _offer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def options(found: address.Address) -> dict[str, Any]:
    """The options of the theme that make the buttons and links of an address."""
    buttons = {"binderhub_url": _BINDER, "notebook_interface": "jupyterlab"}
    if found.on_github and found.declared:
        buttons["colab_url"] = _COLAB
    return {
        "repository_url": found.url,
        "repository_branch": found.branch,
        "path_to_docs": "",
        "use_repository_button": True,
        "use_source_button": True,
        "launch_buttons": buttons,
    }


def _offer(app: Sphinx, config: Config) -> None:
    try:
        found = address.find(Path(app.srcdir))
    except BookError as error:
        raise ConfigError(str(error)) from None
    if found is not None:
        config["html_theme_options"] |= options(found)
