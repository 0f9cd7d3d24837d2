"""What Binder and the public CI are told agrees with the project."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
BINDER = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text(encoding="utf-8"))
# Packages of requirements.txt that only the tests import, and what only an older Python needs.
NOT_ON_BINDER = {"pytest", "hypothesis", "beautifulsoup4", "hatchling", "tomli"}


def asked(lines: list[str]) -> dict[str, str]:
    """Package to its bounds."""
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(r.name): str(r.specifier) for r in found}


def of_requirements() -> dict[str, str]:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return asked([line for line in lines if line and not line.startswith(("#", "-"))])


def of_binder() -> tuple[dict[str, str], dict[str, str]]:
    """What conda-forge gives, and what pip does."""
    conda = [entry for entry in BINDER["dependencies"] if isinstance(entry, str)]
    (by_pip,) = [entry["pip"] for entry in BINDER["dependencies"] if isinstance(entry, dict)]
    plain = [entry for entry in conda if entry != "pip" and not entry.startswith("python=")]
    return asked(plain), asked(by_pip)


def test_binder_has_what_the_book_requires_and_jupyterlab() -> None:
    conda, by_pip = of_binder()
    assert set(conda) == {"numpy", "pytorch-cpu"}
    # PyPI's torch is a CUDA build of gigabytes, and kills the image.
    assert "torch" not in by_pip
    expected = {n: bounds for n, bounds in of_requirements().items() if n not in NOT_ON_BINDER}
    found = {("torch" if n == "pytorch-cpu" else n): b for n, b in {**conda, **by_pip}.items()}
    extra = {name: bounds for name, bounds in found.items() if name not in expected}
    assert {name: found[name] for name in expected} == expected
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert extra == asked(pyproject["project"]["optional-dependencies"]["lab"])


def test_binder_has_a_fixed_python_and_no_other_channel() -> None:
    pythons = [entry for entry in BINDER["dependencies"] if str(entry).startswith("python=")]
    assert [re.fullmatch(r"python=3\.\d+", entry) is not None for entry in pythons] == [True]
    assert BINDER["channels"] == ["conda-forge", "nodefaults"]


def test_binder_installs_the_project_itself() -> None:
    """An environment.yml keeps repo2docker from doing so."""
    script = ROOT / "binder" / "postBuild"
    assert os.access(script, os.X_OK)
    (install,) = re.findall(r"^python -m pip install .*$", script.read_text("utf-8"), re.MULTILINE)
    assert install.endswith("--no-deps --editable .")


def steps(path: Path) -> list[dict]:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_only_call_the_project_s_own_scripts(path: Path) -> None:
    commands = [step["run"] for step in steps(path) if "run" in step]
    own = [c for c in commands if not c.startswith("git config --global --add safe.directory")]
    assert own
    for command in own:
        if found := re.fullmatch(r'make (\w+)(?: [A-Z_]+="[\w .-]+")?', command):
            assert re.search(rf"^{found[1]}:", MAKEFILE, re.MULTILINE), command
        else:
            found = re.fullmatch(r"bash ([\w./-]+)", command)
            assert found, command
            assert (ROOT / found[1]).is_file(), command


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_have_a_version_and_no_more_rights_than_they_need(path: Path) -> None:
    for step in steps(path):
        assert "run" in step or re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]), step
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    wider = {
        name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job
    }
    assert set(wider) <= {"publish"}


def test_only_main_is_published_and_only_after_the_checks() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/book.yml").read_text("utf-8"))["jobs"]
    assert "github.ref == 'refs/heads/main'" in jobs["publish"]["if"]
    assert jobs["publish"]["needs"] == "check"
    steps = jobs["check"]["steps"]
    (upload,) = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    # The names that actions/deploy-pages looks for.
    assert upload["with"] == {"name": "github-pages", "path": "_build/artifact.tar"}
    names = [step.get("run") for step in steps]
    assert names.index("bash .ci/run") < names.index("bash .ci/pages") < steps.index(upload)


def test_the_site_is_packed_with_its_zip_and_its_pdf_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "pages").write_bytes((ROOT / ".ci" / "pages").read_bytes())
    site = tmp_path / "_build" / "html"
    (site / "chapters").mkdir(parents=True)
    names = ["index.html", "chapters/index.html", "ictd-book.zip", "ictd-book.pdf"]
    for name in names:
        assert subprocess.run(["bash", tmp_path / ".ci/pages"], capture_output=True).returncode == 1
        (site / name).write_text(name)
    subprocess.run(["bash", tmp_path / ".ci/pages"], check=True)
    with tarfile.open(tmp_path / "_build" / "artifact.tar") as archive:
        found = {name.removeprefix("./") for name in archive.getnames()}
    assert set(names) <= found


def test_links_and_newest_versions_are_checked_every_week() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text("utf-8"))
    # YAML reads the key `on` as true.
    assert len(workflow[True]["schedule"]) == 1
    assert workflow["jobs"]["newest"]["env"]["ICTD_PINS"] == ""
    assert "ICTD_PINS--c .ci/constraints.txt" in (ROOT / ".ci/run").read_text("utf-8")
    assert "bash .ci/links" in [step.get("run") for step in workflow["jobs"]["links"]["steps"]]
