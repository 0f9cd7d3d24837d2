"""Install the library as its users do, with the lowest and the newest dependencies, and use it.

    python tests/installs.py [--require 3.10 3.13] [--only 3.11] [--torch-index ADDRESS]

Wheel and sdist are built in isolation and looked into. Then, for each supported Python that is here and for
the lowest and the newest dependencies that pyproject.toml allows and that have wheels for this Python, the
wheel is installed into a fresh environment and used from outside the project. Where PyTorch cannot be had
without CUDA, NumPy's part of the library is tried alone, and the table says so. Exit status 1 if anything
fails. Needs a network; pip is that of the Python that runs this.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import built_files
from install_environments import (
    PROJECT,
    ROOT,
    Environment,
    Failed,
    Wanted,
    available,
    choose,
    dependency,
    find_pythons,
    run,
    supported,
    torch_versions,
)

LIMIT = 0.3
TRIES = 7
# Tests that need nothing but what is installed, some seconds each.
OF_NUMPY = ("test_counts", "test_features", "test_kernels", "test_mrp", "test_td")
OF_TORCH = ("test_attention",)
WHICH = ("lowest", "newest")
NOT_TRIED = "not tried here"


@dataclass
class Tried:
    """One environment and what became of it: a row of the table."""

    wanted: Wanted
    environment: Environment | None = None
    tests: str = ""
    seconds: float = float("nan")
    problem: str = ""

    def row(self) -> tuple[str, ...]:
        one = self.wanted
        imported = "" if self.seconds != self.seconds else f"{self.seconds:.2f} s"
        outcome = "FAILED" if self.problem else "passed"
        return (
            one.python,
            one.which,
            one.numpy,
            one.torch or NOT_TRIED,
            self.tests,
            imported,
            outcome,
        )


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel that `pip wheel .` makes, and the sdist; both have to hold what they should.

    Raises:
        Failed: They do not, or the sdist builds into another wheel.
    """
    tools = Environment(Path(sys.executable), folder / "tools")
    run([*tools.pip, "install", "--quiet", "build", "pip"])
    run([tools.python, "-m", "build", "--outdir", folder / "built", ROOT])
    run([tools.python, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder / "wheel", ROOT])
    (sdist,), (from_sdist,) = (folder / "built").glob("*.tar.gz"), (folder / "built").glob("*.whl")
    (wheel,) = (folder / "wheel").glob("*.whl")
    files = built_files.contents(wheel)
    problems = built_files.problems_of_wheel(files, PROJECT["version"])
    problems += built_files.problems_of_sdist(built_files.contents(sdist))
    other = built_files.differences(files, built_files.contents(from_sdist))
    problems += [f"other in the wheel of the sdist: {name}" for name in other]
    if problems:
        raise Failed("\n".join(problems))
    return wheel, sdist


def plan(python: str, program: Path, folder: Path, index: str | None) -> list[Wanted]:
    """The environments to try of one Python."""
    pip = Environment(program, folder / f"look-{python}").pip
    numpy, torch = available(pip, "numpy"), torch_versions(pip, index)
    found = []
    for which in WHICH:
        version = choose(dependency("numpy"), numpy, which)
        if version is None:
            raise Failed(f"Python {python}: no wheel of {dependency('numpy')}")
        found.append(Wanted(python, which, version, choose(dependency("torch"), torch, which)))
    return found


def try_it(
    wanted: Wanted, program: Path, wheel: Path, sdist: Path, folder: Path, index: str | None
) -> Tried:
    """Install, use from outside the project, and run the tests that the sdist holds."""
    tried = Tried(wanted)
    place = folder / f"{wanted.python}-{wanted.which}"
    try:
        environment = Environment(program, place / "env")
        environment.install(wheel, wanted, index)
        smoke = ROOT / "tests" / "install_smoke.py"
        found = json.loads(run([environment.python, "-I", smoke, environment.folder], place))
        for name, version in (("numpy", wanted.numpy), ("torch", wanted.torch)):
            if found[name] != version:
                raise Failed(f"{name} {version} was installed, and {found[name]} is there")
        tried.tests = _tests(environment, sdist, place, with_torch=wanted.torch is not None)
        tried.environment = environment
    except Failed as error:
        tried.problem = str(error)
    return tried


def _tests(environment: Environment, sdist: Path, place: Path, *, with_torch: bool) -> str:
    """Run tests of the sdist without the sources beside them; what pytest says of it, in short."""
    shutil.unpack_archive(sdist, place)
    (unpacked,) = place.glob("ictd-*")
    shutil.rmtree(unpacked / "ictd")
    names = [f"tests/{name}.py" for name in (*OF_NUMPY, *(OF_TORCH if with_torch else ()))]
    command = [environment.python, "-I", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    said = run([*command, *names], unpacked)
    return re.sub(r" in .*", "", said.splitlines()[-1].strip("= "))


def table(rows: Sequence[Sequence[str]]) -> str:
    header = ("Python", "dependencies", "numpy", "torch", "tests", "import ictd", "")
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in [header, *rows]]
    return "\n".join(line.rstrip() for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    started = time.perf_counter()
    try:
        pythons = find_pythons(options.python)
        missing = [version for version in supported() if version not in pythons]
        if options.only:
            pythons = {v: program for v, program in pythons.items() if v in options.only}
        if absent := sorted({*options.require, *options.only} & {*missing}):
            raise Failed(f"no Python {', '.join(absent)} was found")
        with tempfile.TemporaryDirectory(prefix="ictd-installs-") as name:
            folder, index = Path(name), options.torch_index
            wheel, sdist = build(folder)
            print("wheel and sdist hold what they should; the sdist builds into the same wheel")
            with ThreadPoolExecutor(options.jobs) as pool:
                plans = pool.map(lambda item: plan(*item, folder, index), pythons.items())
                wanted = [one for planned in plans for one in planned]
                results = list(
                    pool.map(
                        lambda one: try_it(one, pythons[one.python], wheel, sdist, folder, index),
                        wanted,
                    )
                )
            _time_imports(results)
    except Failed as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    if options.require_torch:
        for one in results:
            if one.wanted.torch is None and not one.problem:
                one.problem = "--require-torch: no build of torch without CUDA was found"
    _say(results, missing)
    print(f"All of it took {time.perf_counter() - started:.0f} s.")
    for one in results:
        if one.problem:
            where = f"Python {one.wanted.python}, {one.wanted.which}"
            print(f"\nFAILED: {where}: {one.problem}", file=sys.stderr)
    return int(any(one.problem for one in results))


def _say(results: Sequence[Tried], missing: Sequence[str]) -> None:
    """The table, what was not tried, and what its words mean."""
    print(f"\n{table([one.row() for one in results])}\n")
    for version in missing:
        print(f"Python {version}: not found here, not tried")
    bounds = " and ".join(PROJECT["dependencies"])
    print(f"lowest: of {bounds}, the first with a wheel for that Python; torch without CUDA only.")
    print(
        f"import ictd: CPU time with NumPy, without the interpreter's start, best of {TRIES} fresh"
    )
    print(f"processes; the limit is {LIMIT} s.")


def _time_imports(results: Sequence[Tried]) -> None:
    """One after the other, so that they do not wait for each other."""
    for one in results:
        if one.environment is not None:
            one.seconds = one.environment.seconds_of_import(TRIES)
            if one.seconds >= LIMIT:
                one.problem = f"import ictd takes {one.seconds:.2f} s; it may take {LIMIT}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    versions = {"nargs": "+", "default": [], "choices": supported(), "metavar": "VERSION"}
    parser.add_argument(
        "--python", action="append", default=[], metavar="PROGRAM", help="a Python, wherever it is"
    )
    parser.add_argument("--require", **versions, help="fail if one of these is not found")
    parser.add_argument("--only", **versions, help="try these alone")
    parser.add_argument(
        "--torch-index",
        metavar="ADDRESS",
        default=os.environ.get("TORCH_INDEX") or None,
        help="an index of CPU builds of torch; else the variable TORCH_INDEX",
    )
    parser.add_argument(
        "--require-torch", action="store_true", help="fail where torch cannot be had without CUDA"
    )
    parser.add_argument("--jobs", type=int, default=2, help="environments at a time")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
