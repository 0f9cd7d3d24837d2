"""What `make installs` decides: Pythons, versions, built files, status. Nothing is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import built_files
import install_environments
import installs
import pytest
from built_files import ROOT
from install_environments import Failed, Wanted
from packaging.requirements import Requirement

VERSION = install_environments.PROJECT["version"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel and sdist of the project."""
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def of(built: Path, pattern: str) -> dict[str, bytes]:
    (path,) = built.glob(pattern)
    return built_files.contents(path)


# ---------------------------------------------------------------------------------------- wheel and sdist


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    assert built_files.problems_of_wheel(of(built, "*.whl"), VERSION) == []


def test_the_sdist_holds_the_package_with_its_tests_and_nothing_else(built: Path) -> None:
    files = of(built, "*.tar.gz")
    assert built_files.problems_of_sdist(files) == []
    assert {"tests/test_td.py", "tests/conftest.py", "ictd/py.typed", "LICENSE"} <= set(files)
    assert not [name for name in files if "chapters/" in name or "__pycache__" in name]


def test_the_sdist_builds_into_the_same_wheel(built: Path, tmp_path: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    for name, data in built_files.contents(sdist).items():
        path = tmp_path / "ictd-source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    source = tmp_path / "ictd-source"
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=source, capture_output=True, check=True)
    assert built_files.differences(of(built, "*.whl"), of(tmp_path, "*.whl")) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda files: files.pop("ictd/book/page/page.css"), "missing: ictd/book/page/page.css"),
        (lambda files: files.pop("ictd/py.typed"), "missing: ictd/py.typed"),
        (lambda files: files.update({"tests/test_td.py": b""}), "not expected: tests/test_td.py"),
        (
            lambda files: files.update({f"ictd-{VERSION}.dist-info/entry_points.txt": b""}),
            "the command ictd is not declared",
        ),
        (
            lambda files: files.update(
                {
                    name: text.replace(b"Requires-Dist: numpy", b"")
                    for name, text in files.items()
                    if name.endswith("METADATA")
                }
            ),
            "METADATA has no line that begins with 'Requires-Dist: numpy'",
        ),
    ],
)
def test_what_is_wrong_in_a_wheel_is_said(
    built: Path, change: Callable[[dict[str, bytes]], object], problem: str
) -> None:
    files = of(built, "*.whl")
    change(files)
    assert built_files.problems_of_wheel(files, VERSION) == [problem]


# ---------------------------------------------------------------------------------------- what is tried


def test_supported_pythons_are_those_of_pyproject() -> None:
    assert install_environments.supported() == ["3.10", "3.11", "3.12", "3.13", "3.14"]


def test_classifiers_name_supported_pythons() -> None:
    named = [
        line.rpartition(" :: ")[2]
        for line in install_environments.PROJECT["classifiers"]
        if line.startswith("Programming Language :: Python :: 3.")
    ]
    assert named
    assert set(named) <= set(install_environments.supported())


@pytest.mark.parametrize(
    ("bound", "versions", "lowest", "newest"),
    [
        (">=1.26", ["1.9", "1.26.4", "1.26.0", "2.10.0", "2.9.1"], "1.26.0", "2.10.0"),
        (">=1.26", ["2.1.0"], "2.1.0", "2.1.0"),
        (">=2.4.1", ["2.4.0+cpu"], None, None),
        (">=2.4.1", ["2.13.0+cpu"], "2.13.0+cpu", "2.13.0+cpu"),
    ],
)
def test_lowest_and_newest_of_what_there_is(bound, versions, lowest, newest) -> None:
    requirement = Requirement(f"x{bound}")
    assert install_environments.choose(requirement, versions, "lowest") == lowest
    assert install_environments.choose(requirement, versions, "newest") == newest


@pytest.mark.parametrize("cuda", [True, False])
def test_a_cuda_build_of_torch_is_never_chosen(monkeypatch, cuda: bool) -> None:
    """On Linux an index that nobody named has them, under versions that do not say so."""
    there = ["2.4.1", "2.13.0", "2.13.0+cpu", "2.13.0+cu130", "2.14.0"]
    monkeypatch.setattr(install_environments, "available", lambda *asked: there)
    monkeypatch.setattr(install_environments, "DEFAULT_TORCH_IS_CUDA", cuda)
    assert install_environments.torch_versions([], None) == (["2.13.0+cpu"] if cuda else there)
    assert install_environments.torch_versions([], "an index of CPU builds") == there


def test_versions_are_read_from_what_pip_says(monkeypatch) -> None:
    said = "numpy (2.10.0)\nAvailable versions: 2.10.0, 2.9.1, 1.26.0\n  INSTALLED: 2.9.1\n"
    asked = []
    monkeypatch.setattr(install_environments, "run", lambda command: asked.append(command) or said)
    assert install_environments.available(["pip"], "numpy", "I") == ["1.26.0", "2.9.1", "2.10.0"]
    assert asked == [
        ["pip", "index", "versions", "--only-binary", ":all:", "--index-url", "I", "numpy"]
    ]

    def none(command: list[str]) -> str:
        raise Failed("ERROR: No matching distribution found for torch")

    monkeypatch.setattr(install_environments, "run", none)
    assert install_environments.available(["pip"], "torch") == []


posix = pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")


def python(folder: Path, version: str, status: int = 0) -> Path:
    """A program that says it is some Python, or fails as a shim does."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"python{version}"
    path.write_text(f"#!/bin/sh\necho {version}\nexit {status}\n")
    path.chmod(0o755)
    return path


@posix
def test_pythons_are_found_on_the_path_and_of_pyenv(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("HOME", str(tmp_path))
    python(tmp_path / "bin", "3.12", status=1)
    here = {
        "3.12": python(tmp_path / "pyenv/versions/3.12.1/bin", "3.12"),
        "3.14": python(tmp_path / "bin", "3.14"),
    }
    python(tmp_path / "bin", "3.9")
    found = install_environments.find_pythons()
    assert {version: found.get(version) for version in here} == here
    assert "3.9" not in found


@posix
def test_a_python_that_is_named_goes_first_or_is_an_error(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    python(tmp_path / "bin", "3.14")
    named = python(tmp_path / "elsewhere", "3.14")
    assert install_environments.find_pythons([str(named)])["3.14"] == named
    with pytest.raises(Failed, match=r"is Python 3\.9; supported: 3\.10, "):
        install_environments.find_pythons([str(python(tmp_path, "3.9"))])
    with pytest.raises(Failed, match=r"^--python no/such/python: "):
        install_environments.find_pythons(["no/such/python"])


# -------------------------------------------------------------------------------------------- the command


@pytest.fixture
def pretended(monkeypatch, tmp_path: Path) -> dict[str, str]:
    """Every environment passes, except those whose problem is set here, by "3.11 lowest" and so on."""
    problems: dict[str, str] = {}
    torch = {"3.10": None, "3.11": "2.13.0+cpu"}

    def planned(version: str, program: Path, folder: Path, index: str | None) -> list[Wanted]:
        return [Wanted(version, which, "2.1.0", torch[version]) for which in installs.WHICH]

    def tried(wanted: Wanted, *rest: object) -> installs.Tried:
        problem = problems.get(f"{wanted.python} {wanted.which}", "")
        return installs.Tried(wanted, None, "9 passed", 0.1, problem)

    there = {version: Path(f"python{version}") for version in torch}
    monkeypatch.setattr(installs, "find_pythons", lambda given: there)
    monkeypatch.setattr(installs, "build", lambda folder: (tmp_path, tmp_path))
    monkeypatch.setattr(installs, "plan", planned)
    monkeypatch.setattr(installs, "try_it", tried)
    return problems


def test_the_table_says_what_was_tried_and_what_was_not(pretended, capsys) -> None:
    assert installs.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split("  ") for line in lines if line.startswith("3.1")]
    assert [[cell.strip() for cell in row if cell] for row in rows] == [
        ["3.10", "lowest", "2.1.0", "not tried here", "9 passed", "0.10 s", "passed"],
        ["3.10", "newest", "2.1.0", "not tried here", "9 passed", "0.10 s", "passed"],
        ["3.11", "lowest", "2.1.0", "2.13.0+cpu", "9 passed", "0.10 s", "passed"],
        ["3.11", "newest", "2.1.0", "2.13.0+cpu", "9 passed", "0.10 s", "passed"],
    ]
    assert "Python 3.14: not found here, not tried" in lines


def test_one_failure_fails_all_and_is_said(pretended, capsys) -> None:
    pretended["3.10 newest"] = "numpy is broken"
    assert installs.main([]) == 1
    said = capsys.readouterr()
    assert said.out.count("FAILED") == 1
    assert "FAILED: Python 3.10, newest: numpy is broken" in said.err


def test_what_is_required_and_not_there_fails(pretended, capsys) -> None:
    assert installs.main(["--require", "3.10", "3.14"]) == 1
    assert "FAILED: no Python 3.14 was found" in capsys.readouterr().err
    assert installs.main(["--only", "3.14"]) == 1
    assert installs.main(["--require", "3.10", "3.11"]) == 0
    assert installs.main(["--only", "3.11", "--require-torch"]) == 0
    assert installs.main(["--require-torch"]) == 1
    assert "no build of torch without CUDA" in capsys.readouterr().err


def test_a_slow_import_fails() -> None:
    class Slow:
        def seconds_of_import(self, tries: int) -> float:
            return installs.LIMIT + 0.01

    tried = installs.Tried(Wanted("3.11", "lowest", "2.1.0", None), Slow())
    installs._time_imports([tried])
    assert tried.problem == "import ictd takes 0.31 s; it may take 0.3"


def test_the_check_of_an_installed_library_passes_here_and_knows_where_it_is(tmp_path) -> None:
    """Of the library of these tests, which lies beside them."""
    command = [sys.executable, str(ROOT / "tests/install_smoke.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([*command, str(ROOT)], **run, check=False)
    assert done.returncode == 0, done.stderr
    assert '"torch": "2' in done.stdout
    done = subprocess.run([*command, str(tmp_path)], **run, check=False)
    assert "not below" in done.stderr
