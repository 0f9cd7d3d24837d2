"""Pythons that are here, versions that can be had, and fresh environments of them; for `installs.py`.

Nothing is downloaded to find out what a version of PyTorch brings along: pip may fetch the whole wheel for
that, hundreds of megabytes, even when it is asked for a dry run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# The Pythons that exist; which of them are supported, pyproject.toml says.
KNOWN = [f"3.{minor}" for minor in range(9, 15)]
# PyTorch of the default index is a CUDA build of gigabytes on Linux, and a CPU build elsewhere.
DEFAULT_TORCH_IS_CUDA = sys.platform == "linux"
_CPU = "cpu"


class Failed(Exception):
    """A step did not succeed; the message is what it said."""


@dataclass(frozen=True)
class Wanted:
    """The versions of one environment.

    Attributes:
        python: Such as "3.11".
        which: "lowest" or "newest", the dependencies.
        numpy: A version.
        torch: A version, None where it cannot be had without CUDA.
    """

    python: str
    which: str
    numpy: str
    torch: str | None


def run(command: Sequence[str | Path], cwd: Path | None = None) -> str:
    """What a command prints.

    Raises:
        Failed: Its exit status is not 0.
    """
    # Only what is installed counts, and one thread: environments are tried side by side.
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**clean, "OMP_NUM_THREADS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = "\n".join([*done.stdout.splitlines(), *done.stderr.splitlines()][-25:])
        raise Failed(f"{' '.join(words)}\nended with status {done.returncode}:\n{said}")
    return done.stdout


# --------------------------------------------------------------------------------------------- Pythons


def supported() -> list[str]:
    """The Pythons that pyproject.toml allows, oldest first."""
    allowed = Requirement(f"python{PROJECT['requires-python']}").specifier
    return [version for version in KNOWN if allowed.contains(version)]


def find_pythons(given: Iterable[str] = ()) -> dict[str, Path]:
    """A program for each supported Python that is here, by version; those given go first."""
    found: dict[str, Path] = {}
    wanted = supported()
    for program in [*map(Path, given), *_candidates(wanted)]:
        # A place where no Python of that name is chosen, such as a shim of pyenv, answers with an error.
        try:
            version = run(
                [program, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
            )
        except (Failed, OSError) as error:
            if str(program) in given:
                raise Failed(f"--python {program}: {error}") from None
            continue
        if (version := version.strip()) in wanted:
            found.setdefault(version, program)
        elif str(program) in given:
            raise Failed(f"--python {program} is Python {version}; supported: {', '.join(wanted)}")
    return {version: found[version] for version in wanted if version in found}


def _candidates(versions: Sequence[str]) -> list[Path]:
    """Where Pythons usually are: on PATH, of pyenv and of uv, and this one."""
    on_path = [Path(folder) for folder in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    uv = Path.home() / ".local/share/uv/python"
    found: list[Path] = []
    for version in versions:
        folders = [*on_path, *pyenv.glob(f"{version}*/bin"), *uv.glob(f"cpython-{version}*/bin")]
        found += [folder / f"python{version}" for folder in folders]
    return [path for path in [*found, Path(sys.executable)] if path.is_file()]


# --------------------------------------------------------------------------------------------- versions


def dependency(name: str) -> Requirement:
    """What pyproject.toml says of a dependency of the library."""
    (found,) = [r for r in map(Requirement, PROJECT["dependencies"]) if r.name == name]
    return found


def available(pip: Sequence[str | Path], package: str, index: str | None = None) -> list[str]:
    """The versions of a package for which there is a wheel, oldest first; pre-releases left out."""
    where = ["--index-url", index] if index else []
    try:
        text = run([*pip, "index", "versions", "--only-binary", ":all:", *where, package])
    except Failed as error:
        if "No matching distribution" in str(error):
            return []
        raise
    (line,) = re.findall(r"^Available versions: (.*)$", text, re.MULTILINE)
    return sorted(re.split(r",\s*", line.strip()), key=Version)


def choose(requirement: Requirement, versions: Iterable[str], which: str) -> str | None:
    """The lowest or the newest of some versions that meets a requirement, None if none does."""
    allowed = [version for version in versions if requirement.specifier.contains(version)]
    allowed.sort(key=Version)
    return allowed[0 if which == "lowest" else -1] if allowed else None


def torch_versions(pip: Sequence[str | Path], index: str | None) -> list[str]:
    """The versions of PyTorch that come without CUDA.

    Of an index that somebody names, all. Of what pip finds by itself, on Linux those alone that say in
    their version that they are CPU builds.
    """
    versions = available(pip, "torch", index)
    if index is None and DEFAULT_TORCH_IS_CUDA:
        return [version for version in versions if Version(version).local == _CPU]
    return versions


# ------------------------------------------------------------------------------------------ environments


class Environment:
    """A fresh virtual environment, without pip of its own: that of this process installs into it."""

    def __init__(self, program: Path, folder: Path) -> None:
        run([program, "-m", "venv", "--without-pip", folder])
        self.folder = folder
        self.python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        self.pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", self.python]

    def install(self, wheel: Path, wanted: Wanted, index: str | None) -> None:
        """Install the library with exactly these versions, then what its tests need."""
        install = [*self.pip, "install", "--quiet", "--only-binary", ":all:"]
        if wanted.torch:
            where = ["--index-url", index] if index else []
            run([*install, *where, f"torch=={wanted.torch}"])
            run([*install, wheel, f"numpy=={wanted.numpy}"])
            run([*self.pip, "check"])
        else:
            run([*install, "--no-deps", wheel])
            run([*install, f"numpy=={wanted.numpy}"])
        run([*install, *PROJECT["optional-dependencies"]["test"]])

    def seconds_of_import(self, tries: int) -> float:
        """CPU seconds of the statement `import ictd`, the best of some fresh processes.

        The start of the interpreter is not in it, the import of NumPy is. By the clock it would be a
        measure of what else the machine does.
        """
        code = "import time; t = time.process_time(); import ictd; print(time.process_time() - t)"
        return min(float(run([self.python, "-I", "-c", code], self.folder)) for _ in range(tries))
