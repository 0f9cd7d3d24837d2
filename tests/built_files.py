"""What the built wheel and sdist must hold, and nothing else."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Data that the package reads, besides its sources.
DATA = {
    "ictd/py.typed",
    "ictd/book/page/page.css",
    "ictd/book/pdf/fit.js",
    "ictd/book/pdf/print.css",
}
# Of the sdist's own: what is not the package and not a test of it.
BESIDE = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml"}
# hatchling adds these: the metadata, and the file by which it knew what to leave out.
ADDED = {"PKG-INFO", ".gitignore"}
# Tests of the book and of the project around the library, which read what is not in the sdist; their tools.
OF_THE_BOOK = (
    *(f"tests/{name}/" for name in ("benchmarks", "book", "chapters", "sabotage", "site")),
    *(
        f"tests/{name}"
        for name in ("built_files", "chapter_runs", "elsewhere", "install", "made_runs")
    ),
    *(
        f"tests/{name}"
        for name in ("mutations", "warm_", "test_benchmarks", "test_ci_steps", "test_citation")
    ),
    *(f"tests/test_{name}" for name in ("install", "make", "project", "publishing", "readme")),
    *(f"tests/test_{name}" for name in ("recipes", "reference_pages")),
)


def package_files() -> set[str]:
    """The files of the package in the working tree, as a wheel names them."""
    return DATA | {path.relative_to(ROOT).as_posix() for path in (ROOT / "ictd").rglob("*.py")}


def test_files() -> set[str]:
    """The tests that an sdist has."""
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.*")}
    return {
        name
        for name in found
        if name.endswith((".py", ".json")) and not name.startswith(OF_THE_BOOK)
    }


def contents(archive: Path) -> dict[str, bytes]:
    """The files of a wheel, or of an sdist without its top folder, by name."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    found = {}
    with tarfile.open(archive) as sdist:
        for member in sdist.getmembers():
            if member.isfile():
                file = sdist.extractfile(member)
                assert file is not None
                found[member.name.partition("/")[2]] = file.read()
    return found


def problems_of_wheel(files: Mapping[str, bytes], version: str) -> list[str]:
    """What is wrong with the contents of a wheel, in words."""
    info = f"ictd-{version}.dist-info"
    metadata = {
        f"{info}/{name}"
        for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    }
    problems = _missing_and_extra(set(files), package_files() | metadata)
    commands = files.get(f"{info}/entry_points.txt", b"").decode()
    if "ictd = ictd.book.entry:main" not in commands:
        problems.append("the command ictd is not declared")
    about = files.get(f"{info}/METADATA", b"").decode()
    for line in (f"Version: {version}", "Requires-Dist: numpy", "Requires-Dist: torch", "# In-"):
        if f"\n{line}" not in about:
            problems.append(f"METADATA has no line that begins with {line!r}")
    return problems


def problems_of_sdist(files: Mapping[str, bytes]) -> list[str]:
    """What is wrong with the contents of an sdist, in words."""
    return _missing_and_extra(set(files), package_files() | test_files() | BESIDE | ADDED)


def differences(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> list[str]:
    """The files in which two wheels differ."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def _missing_and_extra(there: set[str], expected: set[str]) -> list[str]:
    missing = [f"missing: {name}" for name in sorted(expected - there)]
    return missing + [f"not expected: {name}" for name in sorted(there - expected)]
