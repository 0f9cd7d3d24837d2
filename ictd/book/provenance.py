"""What a run depends on, and what a page says about how it was made."""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from . import machine
from . import notebook as nb
from .errors import BookError
from .parameters import Value
from .project import PACKAGE

EXTRA = "book"
_SHOWN = ("numpy", "torch", "matplotlib")


def run_parts(notebook: nb.Notebook, parameters: dict[str, Value], folder: Path) -> dict[str, Any]:
    """What decides the result of a run: a chapter runs again when any of it changes.

    Files of data that a notebook reads are not among it.

    Args:
        notebook: The notebook.
        parameters: The values of all parameters.
        folder: Where it runs. If it imports a module from there, all of them are among the parts.
    """
    cells = [
        [cell["cell_type"], nb.source(cell), sorted(nb.tags(cell))] for cell in notebook["cells"]
    ]
    modules = _modules(notebook, folder)
    return {
        **({"modules": modules} if modules else {}),
        "notebook": digest(cells),
        "parameters": parameters,
        "sources": source_digests(PACKAGE),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": package_versions(),
    }


def _modules(notebook: nb.Notebook, folder: Path) -> dict[str, str]:
    """A hash of each module beside a notebook that imports one, and of the packages that it imports."""
    names = nb.imports(notebook)
    packages = [folder / name for name in names if (folder / name / "__init__.py").is_file()]
    if not packages and not any((folder / f"{name}.py").is_file() for name in names):
        return {}
    found = [*folder.glob("*.py"), *(path for one in packages for path in one.rglob("*.py"))]
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()) for path in sorted(found)
    }


def digest(data: Any) -> str:
    """A hash of JSON data."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def sha256(data: bytes) -> str:
    """A hash of bytes."""
    return hashlib.sha256(data).hexdigest()


def source_digests(package: Path) -> dict[str, str]:
    """A hash of each Python source of a package."""
    return {
        path.relative_to(package.parent).as_posix(): sha256(path.read_bytes())
        for path in sorted(package.rglob("*.py"))
    }


@functools.cache
def package_versions() -> dict[str, str]:
    """The installed versions of what the `ictd` distribution requires for the library and book.

    Raises:
        BookError: If `ictd` is not installed.
    """
    versions = {}
    try:
        requirements = [Requirement(text) for text in metadata.requires("ictd") or []]
    except metadata.PackageNotFoundError:
        raise BookError("ictd is not installed: pip install -r requirements.txt") from None
    for requirement in requirements:
        marker = requirement.marker
        if marker is None or marker.evaluate({"extra": EXTRA}):
            try:
                versions[requirement.name] = metadata.version(requirement.name)
            except metadata.PackageNotFoundError:
                versions[requirement.name] = "missing"
    return dict(sorted(versions.items()))


def tools() -> list[str]:
    """Name and version of all that the `ictd` distribution and the book need, directly or not."""
    found: dict[str, str] = {}
    left = [(f"ictd[{EXTRA}]", "")]
    seen = set()
    while left:
        text, extra = left.pop()
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        for wanted in ("", *requirement.extras):
            if (requirement.name, wanted) in seen:
                continue
            seen.add((requirement.name, wanted))
            try:
                distribution = metadata.distribution(requirement.name)
            except metadata.PackageNotFoundError:
                continue
            found[requirement.name] = distribution.version
            left += [(text, wanted) for text in distribution.requires or []]
    return sorted(f"{name} {version}" for name, version in found.items())


def over_limits(info: dict[str, Any]) -> dict[str, str]:
    """What a run took more of than a chapter should, with the amount and the limit in words."""
    found = {}
    if info["cpu_seconds"] > machine.CPU_PER_CHAPTER:
        found["CPU time"] = f"{cpu(info)}; a chapter should take {machine.CPU_PER_CHAPTER:.0f} s"
    if info["peak_memory"] > machine.MEMORY_PER_CHAPTER:
        limit = f"{machine.MEMORY_PER_CHAPTER / 1e6:.0f} MB"
        found["peak memory"] = f"{memory(info)}; a chapter should take {limit}"
    return found


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What differs between the parts of two runs, in words."""
    found = []
    if old["notebook"] != new["notebook"]:
        found.append("the notebook changed")
    if parameters := _differing(old["parameters"], new["parameters"]):
        found.append(f"{_some(parameters)} changed")
    if sources := _differing(old["sources"], new["sources"]):
        found.append(f"{_some(sources)} changed")
    if modules := _differing(old.get("modules", {}), new.get("modules", {})):
        found.append(f"{_some(modules)} changed")
    if old["python"] != new["python"]:
        found.append(f"{new['python']} instead of {old['python']}")
    if packages := _differing(old["packages"], new["packages"]):
        found.append(f"another version of {_some(packages)}")
    return found


def _some(names: list[str]) -> str:
    """Names in words, at most three of them."""
    if len(names) > 3:
        return f"{', '.join(names[:2])} and {len(names) - 2} more"
    return ", ".join(names)


def commit(root: Path) -> str:
    """The commit of a project in words, or that it is not under git."""
    if not is_repository(root):
        return "not under git"
    head = git(root, "rev-parse", "--short=10", "HEAD")
    if head is None:
        return "no commit yet"
    inputs = [name for name in ("ictd", "chapters", "_toc.yml") if (root / name).exists()]
    changed = git(root, "status", "--porcelain", "--", *inputs)
    return f"{head} with uncommitted changes" if changed else head


def is_repository(root: Path) -> bool:
    """Whether a folder is the top of a git repository, and not one inside another's."""
    top = git(root, "rev-parse", "--show-toplevel")
    return top is not None and Path(top).resolve() == root.resolve()


def shown_commit(info: dict[str, Any], commit: str) -> str:
    """The commit to show for a run.

    `commit` is the project's present one. It stands in for that of the run where that one had
    uncommitted changes and they have been committed since.
    """
    own: str = info["commit"]
    return own if is_clean(own) or not is_clean(commit) else commit


def verdicts(info: dict[str, Any]) -> tuple[int, int]:
    """How many claims of a run passed, and how many failed."""
    passed = sum(bool(claim["passed"]) for claim in info["claims"])
    return passed, len(info["claims"]) - passed


def when(info: dict[str, Any]) -> str:
    """When a run began, in words."""
    started: str = info["started"]
    return started.replace("T", " ").replace("+00:00", " UTC")


def seconds(info: dict[str, Any]) -> str:
    """How long a run took, in words."""
    return f"{info['seconds']:.1f} s"


def cpu(info: dict[str, Any]) -> str:
    """The CPU time of a run, in words."""
    return f"{info['cpu_seconds']:.1f} s"


def memory(info: dict[str, Any]) -> str:
    """The peak memory of a run, in words."""
    return f"{info['peak_memory'] / 1e6:.0f} MB"


def assignments(parameters: dict[str, Value]) -> str:
    """Parameters and their values in words, Markdown."""
    return ", ".join(f"`{name} = {value!r}`" for name, value in parameters.items())


def versions(info: dict[str, Any]) -> str:
    """The versions of what makes the numbers and the figures of a run, in words."""
    packages = info["packages"]
    shown = [f"{name} {packages[name]}" for name in _SHOWN if packages.get(name)]
    return ", ".join([info["python"], f"ictd {info['ictd']}", *shown])


def block(info: dict[str, Any], commit: str) -> str:
    """The folded block of a page that says how its run was made, Markdown."""
    passed, failed = verdicts(info)
    lines = [
        "```{admonition} How this page was made",
        ":class: dropdown",
        f"- Parameters: {assignments(info['parameters'])}",
        f"- Claims: {passed} pass, {failed} fail",
        f"- Run on {when(info)}, in {seconds(info)}, CPU time {cpu(info)}, peak memory {memory(info)}",
        f"- {versions(info)}",
        f"- Commit: {commit}",
        "```",
    ]
    return "\n".join(lines)


def is_clean(commit: str) -> bool:
    """Whether the text of `commit` is that of a commit alone, with nothing changed since."""
    return " " not in commit


def git(root: Path, *arguments: str) -> str | None:
    """What git answers in a folder, or None if it fails or is not there."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _differing(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
