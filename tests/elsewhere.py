"""Binder and Colab, as far as they can be tried without them: `python tests/elsewhere.py`.

Binder: repo2docker makes the Dockerfile; the packages of binder/environment.yml are installed into a fresh
environment by pip, from PyPI, binder/postBuild runs in a copy of the project, and a chapter runs in the
kernel that is there. What conda-forge gives instead of PyPI's torch is not tried.

Colab: a fresh environment with a part of what Colab brings, without `ictd`, where `google.colab` is loaded;
a chapter runs there, and its first cell installs the library from a copy of the project.

Where the variable TORCH_INDEX names a package index, torch comes from there, as in the Makefile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from install_environments import Failed

ROOT = Path(__file__).resolve().parent.parent
CHAPTER = "02_weighted_softmax_td"
# Needs more than others, and the other chapters beside it.
RUNNING = "09_running_it_yourself"
COLAB_BRINGS = ("numpy", "torch>=2.4.1,<2.14", "matplotlib", "ipykernel")
CUDA_PACKAGES = re.compile(r"^(nvidia|cuda)\b", re.MULTILINE)


def run(command: Sequence[str | Path], **options: Any) -> str:
    """Run a command and return its output; `Failed` with all of it if it fails."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env | options.pop("env", {}),
        **options,
    )
    if done.returncode:
        raise Failed(f"{shlex.join(map(str, command))}\n{done.stdout[-4000:]}")
    return done.stdout


def expect(condition: object, what: str) -> None:
    if not condition:
        raise Failed(what)


def environment(folder: Path, packages: Sequence[str], pip: Sequence[str]) -> Path:
    """A fresh environment with some packages; the folder of its programs."""
    run([sys.executable, "-m", "venv", folder])
    programs = folder / "bin"
    run([programs / "python", "-m", "pip", "install", "-q", "--upgrade", *pip, "pip"])
    install = [programs / "python", "-m", "pip", "install", "-q"]
    index = os.environ.get("TORCH_INDEX")
    if index and (torch := [name for name in packages if name.startswith("torch")]):
        run([*install, "--index-url", index, *pip, *torch])
    run([*install, *pip, *packages])
    return programs


def project_copy(folder: Path) -> Path:
    """The project as git would take it now, as a repository of its own."""
    listed = run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    git = [
        "git",
        "-c",
        "user.name=n",
        "-c",
        "user.email=n@example.org",
        "-c",
        "init.defaultBranch=main",
    ]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "a copy"]):
        run([*git, *words], cwd=folder)
    return folder


def run_chapter(chapter: str, notebook: Path, python: Path, scratch: Path) -> str:
    """Run a chapter with its quick parameters in the kernel of an environment; what it showed."""
    spec = scratch / "share/jupyter/kernels/python3"
    spec.mkdir(parents=True)
    command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    text = {"argv": command, "display_name": "Python 3", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(text), encoding="utf-8")
    executed = scratch / "executed.ipynb"
    quick = ROOT / "chapters/params" / f"{chapter[:2]}_quick.yml"
    words = [notebook, executed, "-f", quick, "--no-progress-bar", "--cwd", scratch]
    run([sys.executable, "-m", "papermill", *words], env={"JUPYTER_PATH": str(spec.parents[1])})
    return executed.read_text(encoding="utf-8")


def dockerfile(scratch: Path, copy: Path, pip: Sequence[str]) -> None:
    """repo2docker takes environment.yml and postBuild from binder/, and the Python that is asked for."""
    programs = environment(scratch / "repo2docker", ["jupyter-repo2docker"], pip)
    made = run([programs / "jupyter-repo2docker", "--no-build", "--debug", copy], cwd=scratch)
    expect("env update" in made and '--file "binder/environment.yml"' in made, f"no conda:\n{made}")
    expect("RUN ./binder/postBuild" in made, f"postBuild is not run:\n{made}")
    expect(re.search(r"^Building conda environment for python=3\.11$", made, re.MULTILINE), made)


def binder_set() -> tuple[str, list[str]]:
    """The Python of binder/environment.yml, and its packages under their names on PyPI."""
    asked = yaml.safe_load((ROOT / "binder/environment.yml").read_text(encoding="utf-8"))
    python, packages = "", []
    for entry in asked["dependencies"]:
        if isinstance(entry, dict):
            packages += entry["pip"]
        elif entry.startswith("python="):
            python = entry.partition("=")[2]
        elif entry != "pip":
            packages.append(entry.replace("pytorch-cpu", "torch"))
    return python, packages


def binder(scratch: Path, copy: Path, pip: Sequence[str]) -> None:
    """The set of Binder installs and works, postBuild makes `ictd` importable, and no CUDA comes along."""
    python, packages = binder_set()
    here = ".".join(map(str, sys.version_info[:2]))
    expect(python == here, f"Binder has Python {python}, this is {here}")
    programs = environment(scratch / "binder", packages, pip)
    path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    run([copy / "binder/postBuild"], cwd=copy, env=path)
    run([programs / "python", "-m", "pip", "check"])
    installed = run([programs / "python", "-m", "pip", "list", "--format=freeze"])
    expect(not CUDA_PACKAGES.search(installed), f"CUDA was installed:\n{installed}")
    extensions = run([programs / "jupyter", "labextension", "list"], env=path)
    expect(re.search(r"jupyterlab-myst v\S+ \S*enabled\S* \S*OK", extensions), extensions)
    with tempfile.TemporaryDirectory() as folder:
        notebook = copy / f"chapters/{CHAPTER}.ipynb"
        shown = run_chapter(CHAPTER, notebook, programs / "python", Path(folder))
    expect("✓" in shown, "the chapter ran in Binder's set and checked nothing")


def colab(scratch: Path, copy: Path, pip: Sequence[str], chapter: str = CHAPTER) -> None:
    """Where Colab's module is loaded and `ictd` is not there, the first cell of a chapter installs it."""
    folder = scratch / f"colab-{chapter[:2]}"
    programs = environment(folder, COLAB_BRINGS, pip)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "google/colab").mkdir(parents=True)
    (packages / "google/colab/__init__.py").touch()
    (packages / "colab.pth").write_text("import google.colab\n", encoding="utf-8")
    text = (copy / f"chapters/{chapter}.ipynb").read_text(encoding="utf-8")
    for name, value in (("repository", copy.as_uri()), ("branch", "main")):
        text, places = re.subn(rf'{name} = \\"[^"]*\\"', rf'{name} = \\"{value}\\"', text)
        expect(places == 1, f"the chapter has no place for the {name} of the project")
    opened = folder / "content"
    opened.mkdir()
    notebook = opened / "opened.ipynb"
    notebook.write_text(text, encoding="utf-8")
    shown = run_chapter(chapter, notebook, programs / "python", opened)
    expect("✓" in shown, "the chapter ran as on Colab and checked nothing")
    found = run([programs / "python", "-c", "import ictd; print(ictd.__file__)"], cwd=scratch)
    expect(str(opened) in found, f"ictd was not installed, but is {found}")


def colab_running(scratch: Path, copy: Path, pip: Sequence[str]) -> None:
    """The same with the chapter that runs others."""
    colab(scratch, copy, pip, RUNNING)


TRIALS: dict[str, Callable[[Path, Path, Sequence[str]], None]] = {
    "dockerfile": dockerfile,
    "binder": binder,
    "colab": colab,
    "colab-running": colab_running,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Try what Binder and Colab would do.")
    parser.add_argument("only", nargs="*", choices=[*TRIALS, []], help="all, unless named")
    parser.add_argument("--pip", default="", metavar='"ARGS"', help="more arguments for pip")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        copy = project_copy(scratch / "project")
        for name in options.only or TRIALS:
            started = time.monotonic()
            try:
                TRIALS[name](scratch, copy, shlex.split(options.pip))
            except Failed as error:
                print(f"FAILED  {name}: {error}", flush=True)
                return 1
            print(f"passed  {name}, in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
