"""`ictd run`, `ictd.book.run` and plain papermill, on a toy chapter."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from ictd.book import BookError, cli, commands, run, runner
from ictd.book.project import find_chapter

BAD = {
    "gamma": ["nan", "inf", "1", "-1", "-1e-3", "high"],
    "n_states": ["2", "2.5", "-inf", "true"],
    "n_layers": ["0"],
    "betas": ["[]", "[nan]", "0"],
    "features": ["round"],
    "flag": ["maybe"],
}


@pytest.fixture(scope="module")
def first_run(shared_toy, tmp_path_factory):
    """The results of a run with other parameters, started from another folder."""
    folder = tmp_path_factory.mktemp("results") / "with a space"
    values = [
        "-p",
        "gamma",
        "1e-1",
        "-p",
        "flag",
        "false",
        "-p",
        "sizes",
        "(0,1)",
        "-p",
        "n_states",
        "1e1",
    ]
    values += ["-y", "betas: [1e-3, 2]", "-o", folder]
    chapter = shared_toy.root / "chapters" / "01_toy.ipynb"
    out, err = shared_toy.ictd("run", chapter, *values, cwd=folder.parent)
    return folder, out, err


def stream(folder: Path) -> str:
    """The text that the cells of an executed notebook printed."""
    cells = json.loads((folder / "executed.ipynb").read_text())["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "".join("".join(output["text"]) for output in outputs if "text" in output)


def test_a_run_uses_the_typed_values(first_run):
    folder, out, _ = first_run
    assert str(folder) in out
    assert "stream-of-output 1.0 False [0, 1]" in stream(folder)
    parameters = json.loads((folder / "parameters.json").read_text())
    assert parameters == {
        "gamma": 0.1,
        "n_states": 10,
        "n_layers": 2,
        "betas": [0.001, 2.0],
        "sizes": [0, 1],
        "features": "sphere",
        "flag": False,
        "seed": 0,
    }


def test_a_run_says_how_it_was_made(first_run):
    results = json.loads((first_run[0] / "results.json").read_text())
    assert [claim["id"] for claim in results["claims"]] == ["bound", "sign"]
    assert all(claim["passed"] for claim in results["claims"])
    assert results["numbers"] == [
        {"name": "product", "value": 1.0, "meaning": "the factor times the states"}
    ]
    assert results["at_defaults"] is False
    made = results["provenance"]
    assert made["packages"]["numpy"] == np.__version__
    assert made["python"].endswith(sys.version.split()[0])
    assert made["commit"] == "not under git"
    assert made["started"].endswith("+00:00")
    assert 0 < made["seconds"] < 240
    assert 1 < made["cpu_seconds"] < 240
    assert " GB of memory" in made["machine"]
    # A kernel alone is about 70 MB.
    assert 50e6 < made["peak_memory"] < 1.5e9


def test_the_executed_notebook_names_no_folder_of_this_machine(first_run, shared_toy):
    text = (first_run[0] / "executed.ipynb").read_text()
    assert str(shared_toy.root.parent) not in text


def test_the_kernel_says_nothing_of_its_own(first_run, shared_toy):
    logs = list(shared_toy.root.glob("_build/runs/01_toy/*/log.txt"))
    assert logs
    assert all("TCP" not in log.read_text() for log in logs)


def test_progress_that_overwrites_itself_is_one_line(first_run):
    assert stream(first_run[0]).count("frame") == 1


def test_the_expected_time_comes_first_and_the_stored_run_is_used(first_run, shared_toy):
    _, _, err = first_run
    assert "not known yet" in err.splitlines()[0]
    assert "done in" in err.splitlines()[1]
    chapter = shared_toy.root / "chapters" / "01_toy.ipynb"
    values = {"gamma": 0.1, "flag": False, "sizes": (0, 1), "betas": np.array([1e-3, 2])}
    (shared_toy.root / "v.yml").write_text("gamma: 1e-1\nflag: no\nsizes: [0, 1]\nbetas: [1e-3, 2]")
    out, err = shared_toy.ictd("run", "1", "-f", "v.yml")
    assert "its stored run, which is used" in err
    folder = Path(out.removeprefix("results: ").strip())
    assert folder.parent == shared_toy.root / "runs"
    assert folder.name.startswith("01_toy-")
    assert stream(folder) == stream(first_run[0])
    planned = runner.plan(find_chapter(chapter)[0], chapter, values)
    assert planned.parameters == json.loads((folder / "parameters.json").read_text())


def given(words: list[str]) -> dict[str, Any]:
    """The parameters of a command as it reads them."""
    values, rest = cli.split_values(words)
    return commands.given(cli.parser().parse_args(rest, argparse.Namespace(values=values)))


@pytest.mark.parametrize("way", ["-p", "-y", "-f"])
def test_a_float_is_the_same_by_every_way_in(way, tmp_path):
    file = tmp_path / "x.yml"
    file.write_text("gamma: 1e-3\n")
    words = {"-p": ["-p", "gamma", "1e-3"], "-y": ["-y", "gamma: 1e-3"], "-f": ["-f", str(file)]}
    assert float(given(["run", "1", *words[way]])["gamma"]) == 1e-3


def test_later_ways_in_go_before_earlier_ones(tmp_path):
    file = tmp_path / "x.yml"
    file.write_text("a: 1\nb: 1\nc: 1\nday: 2020-01-01\n")
    words = ["run", "1", "-p", "a", "-3", "-y", "{a: 2, b: 2}", "-f", str(file)]
    assert given(words) == {"a": "-3", "b": 2, "c": 1, "day": "2020-01-01"}


def test_bad_parameters_are_refused_before_papermill_or_torch_is_loaded(shared_toy):
    for number in range(max(map(len, BAD.values()))):
        values = {name: texts[number] for name, texts in BAD.items() if number < len(texts)}
        words = [word for name, text in values.items() for word in ("-p", name, text)]
        _, err = shared_toy.ictd(
            "run", "1", "-p", "gama", "0.5", *words, status=2, options=["-X", "importtime"]
        )
        for name, text in values.items():
            (line,) = [line for line in err.splitlines() if line.startswith(f"  {name}: ")]
            assert text.strip("[]") in line
            assert "expected" in line
        assert "gama: no such parameter; did you mean gamma?" in err
        imported = set(re.findall(r"\| +(\w+)$", err, re.MULTILINE))
        assert "numpy" in imported
        assert not imported & {"papermill", "torch", "nbclient", "nbformat", "IPython"}


def test_plain_papermill_refuses_an_unknown_name(shared_toy, tmp_path):
    printed = shared_toy.papermill(
        "chapters/01_toy.ipynb", tmp_path / "o.ipynb", "-p", "gama", "0.5", status=1
    )
    assert "gama: no such parameter; did you mean gamma?" in printed
    outputs = json.loads((tmp_path / "o.ipynb").read_text())["cells"]
    assert not any("stream-of-output" in str(cell.get("outputs")) for cell in outputs)


def test_plain_papermill_takes_the_same_values(shared_toy, tmp_path):
    words = ["-p", "sizes", "[0, 1]", "-p", "flag", "false", "-y", "gamma: 1e-1"]
    shared_toy.papermill("chapters/01_toy.ipynb", tmp_path / "executed.ipynb", *words)
    assert "stream-of-output 1.0 False [0, 1]" in stream(tmp_path)


def test_plain_papermill_lists_every_parameter(shared_toy):
    listed = shared_toy.papermill("--help-notebook", "chapters/01_toy.ipynb")
    for name in ("gamma: float", "betas: list[float]", "features: str", "flag: bool", "seed: int"):
        assert name in listed
    assert "discount factor, in [0, 1)" in listed


def test_help_lists_the_parameters_of_a_chapter(shared_toy):
    out, _ = shared_toy.ictd("run", "01_toy", "--help")
    assert "gamma: float (default 0.9)\n      discount factor; a number in [0, 1)" in out
    assert "each a whole number in [0, 9]" in out
    assert "-p NAME VALUE" in out


@pytest.mark.parametrize("name", ["3", "01_to", "nowhere.ipynb", "01_toy.md"])
def test_an_unknown_chapter_is_answered_with_the_chapters(shared_toy, name):
    _, err = shared_toy.ictd("run", name, status=2)
    assert f"no chapter '{name}'; the chapters are: 01_toy" in err


def test_a_command_that_is_not_accepted_has_status_2(shared_toy):
    assert "usage" in shared_toy.ictd("run", status=2)[0]
    assert "nowhere.yml" in shared_toy.ictd("run", "1", "-f", "nowhere.yml", status=2)[1]
    assert "NAME: VALUE" in shared_toy.ictd("run", "1", "-y", "[1, 2]", status=2)[1]
    assert "not YAML" in shared_toy.ictd("run", "1", "-y", "{", status=2)[1]
    assert "-p" in shared_toy.ictd("run", "1", "-p", "gamma", status=2)[1]


def test_a_failed_claim_at_other_parameters_is_said_and_the_run_goes_on(shared_toy, tmp_path):
    _, err = shared_toy.ictd("run", "1", "-p", "gamma", "0.99", "-o", tmp_path)
    assert "claim failed: bound: measured 0.99" in err
    results = json.loads((tmp_path / "results.json").read_text())
    assert [claim["passed"] for claim in results["claims"]] == [False, True]


@pytest.fixture
def own_toy(toy, monkeypatch):
    """A toy book whose runs, also those of this process, use its own library."""
    monkeypatch.setattr(runner, "PACKAGE", toy.library / "ictd")
    monkeypatch.chdir(toy.root)
    return toy


def test_from_python_values_of_numpy_are_taken(own_toy):
    own_toy.add("01_toy", "chapter.number('twice', 2 * gamma, 'twice')")
    result = run("1", {"gamma": np.float32(0.5)}, output="results")
    assert result.parameters == {"gamma": 0.5}
    assert result.numbers == {"twice": 1.0}
    assert result.folder == own_toy.root / "results"
    assert {path.name for path in result.folder.iterdir()} == (
        {"executed.html", "executed.ipynb", "log.txt", "parameters.json", "results.json"}
    )


def test_the_kernel_does_not_depend_on_the_reader_s_settings(own_toy, tmp_path, monkeypatch):
    """A notebook saved under a private kernel runs, and so it does where python3 is something
    else, or where temporary paths are too long for sockets; figures are shown all the same."""
    path = own_toy.add(
        "01_toy",
        "import os\n\nimport ictd\n\nprint(ictd.__file__, os.getcwd())\n"
        "print(os.environ['OMP_NUM_THREADS'], os.environ['MPLBACKEND'])",
    )
    path.write_text(path.read_text().replace('"name": "python3"', '"name": "my-private-kernel"'))
    kernel = tmp_path / "home" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    spec = {"argv": ["/nonexistent/python"], "display_name": "x", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(kernel.parents[1]))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("PYTHONSTARTUP", "/nonexistent.py")
    monkeypatch.setenv("TMPDIR", str(long))
    out, _ = own_toy.ictd("run", "1")
    printed = stream(Path(out.removeprefix("results: ").strip()))
    module = own_toy.library / "ictd" / "__init__.py"
    assert f"{module} {own_toy.root / 'chapters'}\n1 module://matplotlib_inline" in printed


def test_a_failing_cell_is_named_and_the_notebook_kept(own_toy):
    own_toy.add("01_toy", "print('fine')", "def f():\n    return 1 / 0\n\n\nf()")
    # The cell that papermill injects does not count.
    _, err = own_toy.ictd("run", "1", "-p", "gamma", "0.5", status=1)
    assert "01_toy failed in cell 5 (id cell-4): ZeroDivisionError: division by zero" in err
    assert "return 1 / 0" in err
    assert "\x1b" not in err
    kept = Path(err.rsplit("the notebook as far as it came: ")[1].strip())
    assert "fine" in stream(kept.parent)
    assert kept.parent.parent == own_toy.root / "runs"
    assert {path.name for path in kept.parent.iterdir()} == (
        {"error.txt", "executed.ipynb", "log.txt", "parameters.json"}
    )
    assert "ZeroDivisionError" in (kept.parent / "error.txt").read_text()
    assert json.loads((kept.parent / "parameters.json").read_text()) == {"gamma": 0.5}


def test_an_id_that_two_cells_claim_fails_the_run(own_toy):
    claim = "chapter.claim('it', 'it is small', gamma, at_most=1)"
    own_toy.add("01_toy", claim, claim)
    assert "the claim 'it' is recorded twice" in own_toy.ictd("run", "1", status=1)[1]


def test_a_kernel_that_dies_is_named(own_toy):
    own_toy.add("01_toy", "import os", "os._exit(3)")
    _, err = own_toy.ictd("run", "1", status=1)
    assert "01_toy failed in cell 5 (id cell-4): DeadKernelError" in err


def test_a_source_that_changes_while_the_chapter_runs_is_noticed(own_toy):
    edit = "import ictd, pathlib\n\npathlib.Path(ictd.__file__).with_name('x.py').write_text('')"
    own_toy.add("01_toy", edit)
    assert "ictd/x.py changed while it ran" in own_toy.ictd("run", "1", status=1)[1]


def test_an_interrupted_run_ends_its_kernel_and_leaves_nothing(own_toy, until):
    pid = own_toy.root / "pid"
    note = f"import os, pathlib, time\n\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))"
    own_toy.add("01_toy", note, "time.sleep(600)")
    process = subprocess.Popen(
        [sys.executable, "-m", "ictd", "run", "1"],
        cwd=own_toy.root,
        env=own_toy.environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: pid.exists() and pid.read_text())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in err
    until(lambda: not psutil.pid_exists(int(pid.read_text())))
    assert not list(own_toy.root.glob("_build/runs/01_toy/.new-*"))


@pytest.mark.parametrize("code", ["import sys\nsys.exit()", "raise SystemExit(0)"])
def test_a_chapter_that_exits_early_has_failed(toy, code):
    toy.add("01_toy", "print('before')", code, "print('after')")
    _, err = toy.ictd("run", "01", status=1)
    assert re.search(r"01_toy failed in cell 5 \(id cell-4\): SystemExit", err)


def test_one_long_line_costs_no_time(toy):
    toy.with_pages().add("01_toy", "print('x' * 10**6)", "print('\\rone', end='')\nprint('\\rtwo')")
    toy.ictd("run", "01", "-o", "results")
    text = stream(toy.root / "results")
    assert text.startswith("x" * 10**6)
    assert text.endswith("two\n")
    assert "one" not in text


@pytest.mark.parametrize("damage", ["cut", "removed", "other"])
def test_a_damaged_stored_run_is_run_again(toy, damage):
    toy.add("01_toy", "print('whole')")
    toy.ictd("run", "01", "-o", "first")
    (stored,) = (toy.root / "_build" / "runs" / "01_toy").glob("*/executed.ipynb")
    if damage == "cut":
        stored.write_bytes(stored.read_bytes()[:100])
    elif damage == "removed":
        stored.unlink()
    else:
        (stored.parent / "run.json").write_text('{"format": 2}')
    _, err = toy.ictd("run", "01", "-o", "second")
    assert "stored run, which is used" not in err
    assert "whole" in stream(toy.root / "second")


def test_a_readers_settings_of_matplotlib_and_python_do_not_reach_the_kernel(toy, monkeypatch):
    toy.add("01_toy", "import os, sys\nprint(sys.flags.optimize, os.environ['MATPLOTLIBRC'])")
    monkeypatch.setenv("MATPLOTLIBRC", str(toy.root / "matplotlibrc"))
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    toy.ictd("run", "01", "-o", "results")
    assert stream(toy.root / "results").strip() == f"0 {os.devnull}"


def test_a_folder_that_cannot_be_made_is_refused_before_the_run(toy):
    toy.add("01_toy", "print('never')")
    (toy.root / "file").write_text("")
    _, err = toy.ictd("run", "01", "-o", "file", status=2)
    assert "file: File exists" in err
    assert "expected" not in err


def test_results_have_the_permissions_of_new_files(toy):
    toy.add("01_toy", "print(1)")
    toy.ictd("run", "01", "-o", "results")
    (toy.root / "plain").write_text("")
    mode = (toy.root / "plain").stat().st_mode
    assert (toy.root / "results" / "results.json").stat().st_mode == mode


def test_parameters_are_no_option_of_build(toy):
    toy.add("01_toy", "print(1)")
    _, err = toy.ictd("build", "-p", "gamma", "0.5", status=2)
    assert "unrecognized arguments: -p gamma 0.5" in err


# ------------------------------------------------------------------------------- the folder of results


def test_the_folder_has_all_that_a_reader_needs(first_run):
    folder, _, _ = first_run
    assert {path.name for path in folder.iterdir()} == {
        "executed.html", "executed.ipynb", "figures", "log.txt", "parameters.json", "results.json",
    }  # fmt: skip
    assert {path.name for path in (folder / "figures").iterdir()} == {"01-cell-6.png"}
    log = (folder / "log.txt").read_text()
    assert "chapter: 01_toy" in log
    assert '"gamma": 0.1' in log
    assert re.search(r"took: [\d.]+ s, CPU time [\d.]+ s, peak memory \d+ MB", log)
    assert "claims: 2 pass, 0 fail" in log


def test_a_key_is_of_everything_and_a_code_of_all_but_the_parameters(shared_toy, tmp_path):
    made = []
    for name, gamma in (("a", "0.3"), ("b", "0.4")):
        shared_toy.ictd("run", "1", "-p", "gamma", gamma, "-o", tmp_path / name)
        made.append(json.loads((tmp_path / name / "results.json").read_text())["provenance"])
    assert made[0]["key"] != made[1]["key"]
    assert made[0]["code"] == made[1]["code"]


def test_the_page_shows_the_defaults_beside_yours(toy, tmp_path):
    toy.with_pages().add("01_toy")
    toy.ictd("run", "1", "-o", tmp_path / "defaults")
    toy.ictd("run", "1", "-p", "gamma", "0.123", "-o", tmp_path / "mine")
    page = (tmp_path / "mine" / "executed.html").read_text()
    for text in ("0.123", "0.9", "1.23", "9", "on this machine", "How this page was made"):
        assert text in page, text
    assert "value-of-a-cell" in page
    assert "<script" not in page


def test_results_of_another_run_are_not_replaced_unasked(shared_toy, tmp_path):
    folder = tmp_path / "results"
    shared_toy.ictd("run", "1", "-p", "gamma", "0.31", "-o", folder)
    (folder / "note.txt").write_text("of the reader")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    _, err = shared_toy.ictd("run", "1", "-p", "gamma", "0.32", "-o", folder, status=2)
    assert f"{folder} holds a run with gamma 0.31; choose another folder" in err
    _, err = shared_toy.ictd("run", "1", "-p", "gamma", "0.31", "-o", folder)
    assert "nothing has changed since the run whose results are there" in err
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    _, err = shared_toy.ictd("run", "1", "-p", "gamma", "0.32", "-o", folder, "--force")
    assert json.loads((folder / "parameters.json").read_text())["gamma"] == 0.32
    assert (folder / "note.txt").read_text() == "of the reader"


def test_what_would_run_and_why(toy):
    toy.add("01_toy", "print(1)")
    out, _ = toy.ictd("run", "1", "--dry-run")
    assert out == "01_toy: would run; its time is not known yet (no stored run)\n"
    assert not (toy.root / "runs").exists()
    toy.ictd("run", "1")
    out, _ = toy.ictd("run", "1", "--dry-run")
    assert out == "01_toy: nothing has changed since its stored run, which would be used\n"
    out, _ = toy.ictd("run", "1", "-p", "gamma", "0.5", "--dry-run")
    assert re.fullmatch(
        r"01_toy: would run; expected about \d+ s, if these values cost what others did "
        r"\(gamma changed\)\n",
        out,
    )
    (toy.library / "ictd" / "probe.py").write_text("CONSTANT = 8\n")
    out, _ = toy.ictd("run", "1", "--dry-run")
    assert re.search(r"expected about \d+ s \(ictd/probe\.py changed\)", out)


def test_a_run_that_fails_takes_the_place_of_older_results_with_its_error(toy):
    toy.add("01_toy", "print(1)")
    toy.ictd("run", "1", "-o", "results")
    toy.add("01_toy", "1 / 0")
    toy.ictd("run", "1", "-o", "results", status=1)
    assert {path.name for path in (toy.root / "results").iterdir()} == (
        {"error.txt", "executed.ipynb", "log.txt", "parameters.json"}
    )


def test_a_page_that_cannot_be_made_does_not_cost_the_results(own_toy, monkeypatch, capsys):
    def broken(*_):
        raise BookError("there is no renderer")

    own_toy.add("01_toy", "print(1)")
    monkeypatch.setattr("ictd.book.page.render", broken)
    folder = run("1", output="results").folder
    assert "no page was made of the executed notebook: there is no renderer" in (
        capsys.readouterr().err
    )
    assert (folder / "results.json").is_file()
    assert not (folder / "executed.html").exists()


def test_a_notebook_that_names_no_kernel_and_no_language_runs(toy):
    path = toy.with_pages().add("01_toy", "print('it runs')")
    path.write_text(json.dumps({**json.loads(path.read_text()), "metadata": {}}))
    toy.ictd("run", "1", "-o", "results")
    assert "it runs" in stream(toy.root / "results")


@pytest.mark.parametrize("missing", ["psutil", "yaml", "pydantic"])
def test_without_what_the_book_needs_the_command_says_what_to_install(missing):
    code = (
        f"import sys; sys.modules[{missing!r}] = None; "
        "from ictd.book.entry import main; sys.argv = ['ictd', 'run', '02', '--dry-run']; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"needs {missing}" in line
    assert "pip install '.[book]'" in line
