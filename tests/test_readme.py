"""What the README says works as it stands there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines()]


@pytest.mark.parametrize("code", blocks("python"))
def test_python_examples_run(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "README.md", "exec"), {})
    assert float(capsys.readouterr().out) < 100


def test_the_python_example_is_short() -> None:
    (code,) = blocks("python")
    assert len([line for line in code.splitlines() if line and "import" not in line]) <= 6


def test_the_first_commands_are_those_of_ci() -> None:
    assert blocks("sh")[0].split("\n")[:2] == ["make book", "make test"]
    ci = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert re.search(r"^make book", ci, re.MULTILINE)
    assert re.search(r"make test", ci, re.MULTILINE)


def test_make_targets_that_are_named_exist() -> None:
    named = set(re.findall(r"`?make ([a-z]+)", README))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"book", "test", "site"} <= named
    assert named <= set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def test_the_way_without_make_is_that_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in ("-m ictd build", "-m pytest", "-r requirements.txt"):
        assert command in makefile
        assert any(command in line for line in COMMANDS)
        assert command in blocks("powershell")[0]


def declared_by(chapter: str) -> set[str]:
    import json

    (path,) = (ROOT / "chapters").glob(f"{chapter[:2]}_*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    (cell,) = [c for c in cells if "parameters" in c["metadata"].get("tags", [])]
    return {
        n.target.id for n in ast.parse("".join(cell["source"])).body if isinstance(n, ast.AnnAssign)
    }


RUNS = [line for line in COMMANDS if line.startswith(("ictd run", "papermill "))]


@pytest.mark.parametrize("command", RUNS)
def test_runs_name_parameters_that_exist(command: str) -> None:
    chapter = re.search(r"\b(\d\d)", command)
    assert chapter
    named = re.findall(r"-p (\S+) \S+", command)
    assert set(named) <= declared_by(chapter[1])


def test_files_that_are_named_exist() -> None:
    named = re.findall(r"chapters/\S+\.ipynb", README) + re.findall(
        r"^\| `([^`]+)`", README, re.MULTILINE
    )
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).exists()] == []
