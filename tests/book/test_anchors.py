"""Markdown links lead to entries of a reference made by Sphinx, and a wrong name is seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ictd

ROOT = Path(ictd.__file__).resolve().parents[1]
REFERENCE = """\
# Reference

```{eval-rst}
.. py:function:: pkg.walk(steps)

   Walk.
```
"""


def build(folder: Path, extensions: list[str], link: str) -> subprocess.CompletedProcess[str]:
    """Render two pages, one with a link into the other, with every warning an error."""
    pages = folder / "pages"
    pages.mkdir()
    (pages / "conf.py").write_text(f"extensions = {extensions!r}\nroot_doc = 'api'\n", "utf-8")
    (pages / "api.md").write_text(REFERENCE, "utf-8")
    (pages / "other.md").write_text(
        f"---\norphan: true\n---\n# Other\n\n[`walk`]({link})\n", "utf-8"
    )
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-n", str(pages), str(folder / "html")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def test_a_link_to_an_entry_leads_there(tmp_path: Path) -> None:
    done = build(tmp_path, ["myst_parser", "ictd.book.anchors"], "api.md#pkg.walk")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "html" / "other.html").read_text(encoding="utf-8")
    assert 'href="api.html#pkg.walk"' in page


@pytest.mark.parametrize(
    ("extensions", "link"),
    [
        (["myst_parser", "ictd.book.anchors"], "api.md#pkg.run"),
        # Without the extension MyST knows headings alone; if this passes, it is no longer needed.
        (["myst_parser"], "api.md#pkg.walk"),
    ],
    ids=["no such entry", "without the extension"],
)
def test_a_link_to_nothing_is_a_warning(tmp_path: Path, extensions: list[str], link: str) -> None:
    done = build(tmp_path, extensions, link)
    assert done.returncode != 0
    assert "local id not found in doc 'api'" in done.stderr
