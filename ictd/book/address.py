"""Where the project is published: the address that launch buttons, links to sources and Colab need.

One setting says it, `Repository` in `[project.urls]` of pyproject.toml: `https://github.com/OWNER/NAME`,
with `/tree/BRANCH` where the branch is not `main`. Without the setting, a git remote on a known forge does.
Without both there is no address, and what needs one is left out.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from .errors import BookError
from .provenance import git, is_repository

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SETTING = "Repository"
_BRANCH = "main"
# By https, with or without the branch, or by ssh in its two spellings.
_ADDRESS = re.compile(
    r"(?:https://|ssh://git@|git@)(?P<host>github\.com|gitlab\.com)[/:](?P<path>[\w.-]+/[\w.-]+?)"
    r"(?:\.git)?(?:/(?:-/)?tree/(?P<branch>[\w./-]+?))?/?"
)


@dataclass(frozen=True)
class Address:
    """A repository on a forge.

    Attributes:
        url: Its page, `https://HOST/OWNER/NAME`.
        branch: The branch whose files are linked to.
        declared: Whether the project's own setting says so, and not the git remote of one clone.
    """

    url: str
    branch: str
    declared: bool

    @property
    def on_github(self) -> bool:
        return self.url.startswith("https://github.com/")

    @property
    def files(self) -> str:
        """Where a file of the project can be read: this, and its path."""
        return f"{self.url}/blob/{self.branch}"


def find(folder: Path) -> Address | None:
    """The address of the project that a folder belongs to, or None.

    Args:
        folder: The project's root, or a folder below it.

    Raises:
        BookError: If the setting is there, and is not the address of a repository on a known forge.
    """
    folder = folder.resolve()
    for root in (folder, *folder.parents):
        if (root / "pyproject.toml").is_file():
            return _declared(root / "pyproject.toml") or _remote(root)
    return None


def _declared(path: Path) -> Address | None:
    urls = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {}).get("urls", {})
    text = str(urls.get(_SETTING, "")).strip()
    if not text:
        return None
    found = _parsed(text, _BRANCH, declared=True)
    if found is None:
        raise BookError(
            f"{path.name}: {_SETTING} in [project.urls] is {text!r}; "
            "expected https://github.com/OWNER/NAME, or the same on gitlab.com"
        )
    return found


def _remote(root: Path) -> Address | None:
    # Of a repository around the project, no path would be right.
    text = git(root, "remote", "get-url", "origin") if is_repository(root) else None
    if not text:
        return None
    head = git(root, "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    branch = head.partition("/")[2] if head else _BRANCH
    return _parsed(text, branch, declared=False)


def _parsed(text: str, branch: str, *, declared: bool) -> Address | None:
    found = _ADDRESS.fullmatch(text)
    if found is None:
        return None
    url = f"https://{found['host']}/{found['path']}"
    return Address(url, found["branch"] or branch, declared)
