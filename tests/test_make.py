"""The Makefile, with a stand-in for .venv/bin/python that writes down how it is called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the Makefile is for Linux and macOS"
)

# Pretends to be Python: `-c` looks for a module (the file `found` is its answer), --report answers as pip's
# resolver does.
STAND_IN = """#!/bin/sh
echo "$*" >> calls
case "$*" in
  -c*) exit $(cat found) ;;
  *--report*) cat report.json ;;
  *"-r requirements.txt"*) exit $(cat status) ;;
esac
"""
WITH_CUDA = (
    '{"install": [{"metadata": {"name": "torch"}}, {"metadata": {"name": "nvidia-cublas"}}]}'
)
WITHOUT = '{"install": [{"metadata": {"name": "torch"}}]}'


class Project:
    """A copy of the files that make reads, in a folder with spaces in its path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".venv/bin").mkdir(parents=True)
        for name in ("Makefile", "requirements.txt", "pyproject.toml"):
            shutil.copy(ROOT / name, folder)
        self.write(".venv/bin/python", STAND_IN).chmod(0o755)
        self.write("report.json", WITHOUT)
        self.write("status", "0")
        self.write("found", "1")
        # A machine with an NVIDIA card would change what is said.
        (folder / "bin").mkdir()
        self.write("bin/nvidia-smi", "#!/bin/sh\nexit 1\n").chmod(0o755)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def make(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "calls").unlink(missing_ok=True)
        clean = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("MAKE", "MFLAGS", "PIP_", "PYTEST_", "TORCH_INDEX"))
        }
        clean["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{clean['PATH']}"
        command = ["make", *arguments]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=clean,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def touch(self, name: str) -> None:
        later = (self.folder / ".venv/.installed").stat().st_mtime + 10
        os.utime(self.folder / name, (later, later))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "a path with spaces" / "book")


def test_book_installs_then_builds(project: Project) -> None:
    done = project.make("book")
    assert done.returncode == 0, done.stderr
    assert "-m pip install --quiet -r requirements.txt" in project.calls
    assert project.calls[-1] == "-m ictd build"


def test_second_time_nothing_is_installed(project: Project) -> None:
    project.make("book")
    project.make("book")
    assert project.calls == ["-m ictd build"]


def test_tests_run_on_an_up_to_date_book(project: Project) -> None:
    project.make("install")
    project.make("test")
    assert project.calls == ["-m ictd build", "-m pytest"]


def test_site_is_packed_by_one_command(project: Project) -> None:
    project.make("install")
    project.make("site")
    assert project.calls == ["-m ictd site"]


def test_the_pdf_is_made_by_one_command_that_installs_what_prints(project: Project) -> None:
    project.make("install")
    project.make("pdf", "PIP_ARGS=-c pins.txt")
    assert project.calls[-2:] == ["-m pip install --quiet -c pins.txt -e .[pdf]", "-m ictd pdf"]
    project.write("found", "0")
    project.make("pdf")
    assert project.calls == ["-c import playwright, pypdf", "-m ictd pdf"]


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml"])
def test_changed_requirements_are_installed(project: Project, name: str) -> None:
    project.make("install")
    project.touch(name)
    project.make("book")
    assert any("-r requirements.txt" in call for call in project.calls)


def test_a_moved_folder_is_installed_again(project: Project) -> None:
    project.make("install")
    project.folder = project.folder.rename(project.folder.with_name("moved book"))
    project.make("book")
    assert any("-r requirements.txt" in call for call in project.calls)
    project.make("book")
    assert project.calls == ["-m ictd build"]


def test_a_failed_install_fails_and_is_taken_up_again(project: Project) -> None:
    project.write("status", "1")
    assert project.make("book").returncode != 0
    assert "-m ictd build" not in project.calls
    project.write("status", "0")
    assert project.make("book").returncode == 0
    assert any("-r requirements.txt" in call for call in project.calls)


def test_arguments_reach_pip(project: Project) -> None:
    project.make("book", "PIP_ARGS=-c pins.txt")
    assert "-m pip install --quiet -c pins.txt -r requirements.txt" in project.calls


def test_gigabytes_of_cuda_are_announced(project: Project) -> None:
    project.write("report.json", WITH_CUDA)
    done = project.make("book")
    assert done.returncode == 0
    assert "several gigabytes" in done.stdout
    assert "make book TORCH_INDEX=ADDRESS" in done.stdout
    # Said before the download, and not the reason for another one.
    assert done.stdout.index("several gigabytes") < done.stdout.index("Installing into .venv")
    assert sum("--dry-run" in call for call in project.calls) == 1


def test_nothing_is_announced_without_cuda_or_with_a_card(project: Project) -> None:
    assert "gigabytes" not in project.make("book").stdout
    project.write("report.json", WITH_CUDA)
    project.write("bin/nvidia-smi", "#!/bin/sh\nexit 0\n")
    project.touch("requirements.txt")
    assert "gigabytes" not in project.make("book").stdout


def test_torch_is_taken_from_the_given_index_first(project: Project) -> None:
    project.write("report.json", WITH_CUDA)
    done = project.make("book", "TORCH_INDEX=file:///some/index")
    calls = project.calls
    (torch,) = [call for call in calls if "--index-url" in call]
    assert torch == "-m pip install --index-url file:///some/index torch>=2.4.1,<2.14"
    assert calls.index(torch) < calls.index("-m pip install --quiet -r requirements.txt")
    assert "gigabytes" not in done.stdout


def test_an_old_or_missing_python_is_refused(project: Project) -> None:
    shutil.rmtree(project.folder / ".venv")
    done = project.make("book", "PYTHON=no-such-python")
    assert done.returncode != 0
    assert "Python 3.10 or newer is needed" in done.stdout
    project.write("bin/old-python", "#!/bin/sh\nexit 1\n").chmod(0o755)
    assert "Python 3.10 or newer is needed" in project.make("book", "PYTHON=old-python").stdout


def test_a_python_without_venv_is_refused_with_the_remedy(project: Project) -> None:
    shutil.rmtree(project.folder / ".venv")
    stand_in = '#!/bin/sh\ncase "$*" in *ensurepip*) exit 1 ;; esac\n'
    project.write("bin/bare-python", stand_in).chmod(0o755)
    done = project.make("book", "PYTHON=bare-python")
    assert done.returncode != 0
    assert "apt install python3-venv" in done.stdout


def test_help_is_the_default(project: Project) -> None:
    done = project.make()
    assert "make book" in done.stdout
    assert "make test" in done.stdout
    assert "make site" in done.stdout
    assert "make pdf" in done.stdout
    assert project.calls == []


def test_clean_keeps_what_the_reader_made(project: Project) -> None:
    for name in ("_build", "runs", "ictd", "tests"):
        (project.folder / name).mkdir()
    assert project.make("clean").returncode == 0
    left = {path.name for path in project.folder.iterdir()}
    assert {"runs", ".venv"} <= left
    assert "_build" not in left


def test_installs_are_tried_with_the_index_of_torch_and_other_arguments(project: Project) -> None:
    project.make("install")
    project.make("installs")
    assert project.calls == ["tests/installs.py"]
    project.make("installs", "TORCH_INDEX=file:///an/index", "INSTALLS_ARGS=--only 3.10")
    assert project.calls == ["tests/installs.py --torch-index file:///an/index --only 3.10"]
