"""`ictd sweep` and `ictd.book.sweep` on toy chapters: every point once, whatever happens."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest

from ictd.book import BookError, ParameterError, cli, commands, points, runner, sweep, sweeping
from ictd.book.files import locked
from ictd.book.project import find_chapter

DECLARATION = (
    "gamma: float = 0.9  # discount factor, in [0, 1)\n"
    "sizes: list[int] = [2, 3]  # sizes, each in [0, 9]\n"
    "flag: bool = True  # whether to centre\n"
    "seed: int = 0  # seed, in [0, 100]"
)
CHECK = "from ictd.book import Chapter\n\nchapter = Chapter()"
NUMBER = "chapter.number('drawn', gamma + chapter.rng('draw').random(), 'gamma and a draw')"
CLAIM = "chapter.claim('small', 'the factor is small', gamma, at_most=0.95)"
HEAD = [("markdown", "# Title"), ("parameters", DECLARATION), CHECK, NUMBER, CLAIM]
FILES = {"executed.ipynb", "executed.html", "parameters.json", "results.json", "log.txt"}
# Leaves the number of its process in a file named after the point, then takes its time.
SLOW = (
    "import os, pathlib, time\n\n"
    "pathlib.Path({folder!r}, str(seed)).write_text(str(os.getpid()))\ntime.sleep(1.5)"
)


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """What tells whether a finished point was touched, by its folder's name."""
    return {
        path.parent.name: (path.parent.stat().st_ino, path.stat().st_mtime_ns)
        for path in folder.glob("[!.]*/results.json")
    }


def parameters(folder: Path) -> list[tuple[float, int]]:
    found = [json.loads(path.read_text()) for path in folder.glob("[!.]*/parameters.json")]
    return sorted((one["gamma"], one["seed"]) for one in found)


def start(toy, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ictd", *words],
        cwd=toy.root,
        env=toy.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def slow(toy, tmp_path):
    """A toy chapter that takes its time, and the folder where its runs leave their numbers."""
    pids = tmp_path / "pids"
    pids.mkdir()
    toy.write("01_toy", [*HEAD, SLOW.format(folder=str(pids))])
    return toy, pids


def gone(pids: Path) -> bool:
    numbers = [int(path.read_text() or 0) for path in pids.iterdir()]
    return not any(psutil.pid_exists(number) for number in numbers)


@pytest.fixture(scope="module")
def first_sweep(make_toy, tmp_path_factory):
    """A sweep over four points of which one fails; what was printed, and the folder."""
    toy = make_toy("sweep")
    bad = "if gamma < 0.3 and seed == 1:\n    raise ValueError('a bad point')"
    toy.write("01_toy", [*HEAD, bad])
    folder = tmp_path_factory.mktemp("swept") / "with a space"
    words = ["-p", "gamma", "0.2", "5e-1", "-p", "seed", "0:2", "-o", str(folder)]
    return toy, folder, words, *toy.ictd("sweep", "1", *words, status=1)


def test_one_folder_a_point_each_as_a_run_leaves_it(first_sweep):
    _, folder, _, out, _ = first_sweep
    assert f"results: {folder}" in out
    assert parameters(folder) == [(0.2, 0), (0.2, 1), (0.5, 0), (0.5, 1)]
    names = sorted(path.name.rpartition("-")[0] for path in folder.glob("[!.]*"))
    assert names == ["gamma=0.2,seed=0", "gamma=0.2,seed=1", "gamma=0.5,seed=0", "gamma=0.5,seed=1"]
    for path in folder.glob("gamma=0.5*"):
        assert {file.name for file in path.iterdir()} == FILES
        results = json.loads((path / "results.json").read_text())
        assert [number["name"] for number in results["numbers"]] == ["drawn"]
        assert [claim["id"] for claim in results["claims"]] == ["small"]
    drawn = {
        json.loads(p.read_text())["numbers"][0]["value"] for p in folder.glob("*/results.json")
    }
    assert len(drawn) == 3


def test_a_failing_point_does_not_stop_the_others_and_is_reported(first_sweep):
    _, folder, _, _, err = first_sweep
    assert "4 points; 2 side by side" in err or "4 points; 1 side by side" in err
    assert re.search(r"3 done, 1 failed, 0 left$", err, re.MULTILINE)
    assert "failed: gamma=0.2,seed=1-" in err
    assert "01_toy failed in cell 6 (id cell-5): ValueError: a bad point" in err
    (failed,) = folder.glob("gamma=0.2,seed=1-*")
    assert {file.name for file in failed.iterdir()} == (
        {"executed.ipynb", "parameters.json", "log.txt", "error.txt"}
    )
    assert "a bad point" in (failed / "error.txt").read_text()
    assert "'drawn'" in (failed / "executed.ipynb").read_text()


def test_the_same_command_runs_what_is_left_alone(first_sweep):
    toy, folder, words, _, _ = first_sweep
    before = state(folder)
    _, err = toy.ictd("sweep", "1", *words, "--dry-run")
    assert "1 of 4 points would run" in err
    _, err = toy.ictd("sweep", "1", *words, status=1)
    assert "4 points; 3 finished before; 1 side by side" in err
    assert "0 done, 1 failed, 0 left" in err
    assert state(folder) == before
    # A larger grid finds the points that it shares with the first one.
    out, err = toy.ictd("sweep", "1", "-p", "seed", "0:3", "-p", "gamma", ".2", "1e-1", ".5",
                        "-o", folder, "--dry-run")  # fmt: skip
    assert "6 of 9 points would run" in err
    assert len(out.splitlines()) == 6
    assert state(folder) == before


def test_points_run_again_when_the_chapter_has_changed(toy):
    toy.write("01_toy", HEAD)
    words = ["sweep", "1", "-p", "seed", "0", "1", "-o", "swept"]
    toy.ictd(*words)
    before = state(toy.root / "swept")
    toy.write("01_toy", [*HEAD, "1 + 1"])
    _, err = toy.ictd(*words)
    assert "2 points; 2 run with other code or versions" in err
    after = state(toy.root / "swept")
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    _, err = toy.ictd(*words, "--force", "--dry-run")
    assert "2 of 2 points would run; asked to run again" in err


# ---------------------------------------------------------------------------------- what may happen to it


def test_a_worker_that_is_killed_is_survived(slow, dask, until):
    toy, pids = slow
    workers = [dask.worker(library=toy.library) for _ in range(2)]
    words = ["-p", "gamma", "0.2", "-p", "seed", "0:6", "-o", "swept"]
    process = start(toy, "sweep", "1", *words, "--scheduler", dask.address)
    swept = toy.root / "swept"
    until(lambda: state(swept) and len(list(pids.iterdir())) >= 3)
    os.kill(workers[0].pid, signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert parameters(swept) == [(0.2, seed) for seed in range(6)]
    assert len(state(swept)) == 6
    assert "6 done, 0 failed, 0 left" in err
    assert workers[1].poll() is None
    until(lambda: gone(pids))


def test_a_sweep_that_is_killed_goes_on_where_it_was(slow, until):
    toy, pids = slow
    words = ["sweep", "1", "-p", "seed", "0:5", "-o", "swept", "--workers", "2"]
    process = start(toy, *words)
    swept = toy.root / "swept"
    until(lambda: len(state(swept)) >= 2 and len(list(pids.iterdir())) >= 3)
    process.kill()
    process.communicate()
    before = state(swept)
    assert 2 <= len(before) < 5
    # What runs for it ends too.
    until(lambda: gone(pids))
    # A folder that was half-written is not taken for a result.
    half = swept / ".new-0123"
    half.mkdir()
    (half / "results.json").write_text("{")
    _, err = toy.ictd(*words)
    assert f"5 points; {len(before)} finished before" in err
    after = state(swept)
    assert {name: after[name] for name in before} == before
    assert parameters(swept) == [(0.9, seed) for seed in range(5)]
    assert not list(swept.glob(".new-*"))


def test_an_interrupted_sweep_ends_its_kernels(slow, until):
    toy, pids = slow
    process = start(toy, "sweep", "1", "-p", "seed", "0:20", "-o", "swept", "--workers", "2")
    until(lambda: len(list(pids.iterdir())) >= 3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted; what is finished is stored" in err
    assert "Traceback" not in err
    until(lambda: gone(pids))
    assert len(state(toy.root / "swept")) < 20


def test_a_worker_with_other_software_is_refused(toy, dask, tmp_path):
    toy.write("01_toy", HEAD)
    other = toy.copy(tmp_path / "other")
    td = other.library / "ictd" / "td.py"
    td.write_text(f"{td.read_text()}\n# something else\n")
    worker = dask.worker(library=other.library)
    words = ["-p", "seed", "0:2", "-o", "swept", "--scheduler", dask.address]
    _, err = toy.ictd("sweep", "1", *words, status=1)
    assert "has not the software of the one that asks: ictd/td.py changed" in err
    assert "0 done, 2 failed, 0 left" in err
    worker.kill()
    # One that cannot import the library at all says so, and lives.
    td.write_text("raise ModuleNotFoundError('nothing here')\n")
    worker = dask.worker(library=other.library)
    _, err = toy.ictd("sweep", "1", *words, status=1)
    assert "ModuleNotFoundError: nothing here" in err
    assert worker.poll() is None


def test_a_sweep_without_workers_says_that_it_waits(toy, dask):
    toy.write("01_toy", HEAD)
    words = ["-p", "seed", "0", "-o", "swept", "--scheduler", dask.address]
    process = start(toy, "sweep", "1", *words)
    assert "1 point" in process.stderr.readline()
    assert "the scheduler has no workers; waiting for some" in process.stderr.readline()
    dask.worker(library=toy.library)
    process.communicate(timeout=120)
    assert process.returncode == 0


def test_a_worker_without_the_book_s_folder_runs_the_notebook_that_it_is_sent(
    toy, tmp_path, monkeypatch
):
    toy.write("01_toy", HEAD)
    monkeypatch.setattr(runner, "PACKAGE", toy.library / "ictd")
    monkeypatch.chdir(toy.root)
    prepared = sweeping.prepare(*find_chapter("1"), {"seed": 1})
    (job,) = sweeping.jobs(prepared, prepared.points)
    moved = tmp_path / "moved"
    toy.root.rename(moved)
    monkeypatch.chdir(moved)
    done = sweeping.worker.run_point(job)
    assert done.problem == ""
    assert done.files.keys() >= FILES


def test_a_stopped_sweep_ends_what_runs_for_it_on_another_machine(slow, dask, until):
    toy, pids = slow
    worker = dask.worker(library=toy.library)
    words = ["-p", "seed", "0:9", "-o", "swept", "--scheduler", dask.address]
    toy.write("01_toy", [*HEAD, SLOW.format(folder=str(pids)), "time.sleep(600)"])
    process = start(toy, "sweep", "1", *words)
    until(lambda: list(pids.iterdir()) and next(pids.iterdir()).read_text())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    until(lambda: gone(pids))
    assert worker.poll() is None


def test_a_second_interrupt_ends_at_once(slow, until):
    toy, pids = slow
    toy.write("01_toy", [*HEAD, SLOW.format(folder=str(pids)), "time.sleep(600)"])
    process = start(toy, "sweep", "1", "-p", "seed", "0:9", "-o", "swept")
    until(lambda: list(pids.iterdir()) and next(pids.iterdir()).read_text())
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err
    until(lambda: gone(pids))


def test_a_claim_that_fails_at_the_defaults_is_one_point_s_result(toy):
    toy.write("01_toy", [*HEAD, "chapter.claim('false', 'one is two', 1, at_least=2)"])
    _, err = toy.ictd("sweep", "1", "-p", "gamma", "0.5", "0.9", "-o", "swept")
    assert "2 done, 0 failed" in err
    out, _ = toy.ictd("compare", "swept", "--only", "false")
    assert "The same in every setting" in out
    assert "1, FAILED" in out
    assert "ClaimFailed: false" in toy.ictd("run", "1", status=1)[1]


@pytest.mark.parametrize("damage", ["parameters", "cut", "notebook"])
def test_a_damaged_point_is_run_again(toy, damage):
    toy.write("01_toy", HEAD)
    words = ["sweep", "1", "-p", "seed", "0", "1", "-o", "swept"]
    toy.ictd(*words)
    (folder,) = (toy.root / "swept").glob("seed=1-*")
    if damage == "parameters":
        (folder / "parameters.json").write_text('{"gamma": 0.5}')
    elif damage == "cut":
        (folder / "results.json").write_text("{")
    else:
        (folder / "executed.ipynb").unlink()
    _, err = toy.ictd(*words)
    assert "2 points; 1 finished before; 1 damaged; 1 side by side" in err
    assert "1 done, 0 failed" in err
    assert json.loads((folder / "parameters.json").read_text())["seed"] == 1


def test_what_is_read_no_further_is_no_error(first_sweep):
    toy = first_sweep[0]
    words = [sys.executable, "-m", "ictd", "sweep", "1", "-p", "seed", "0:100", "--dry-run"]
    process = subprocess.Popen(
        words, cwd=toy.root, env=toy.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait()


def test_two_sweeps_into_one_folder_take_turns(toy, until):
    toy.write("01_toy", HEAD)
    folder = toy.root / "swept"
    with locked(folder / ".lock"):
        process = start(toy, "sweep", "1", "-p", "seed", "0", "-o", "swept")
        line = process.stderr.readline()
        assert "another sweep writes into" in line
    process.communicate(timeout=60)
    assert process.returncode == 0


# -------------------------------------------------------------------------------------- what is refused


def test_bad_points_are_refused_before_anything_is_loaded(first_sweep):
    toy = first_sweep[0]
    words = ["-p", "gama", "0.5", "-p", "gamma", "0.5", "nan", "-p", "seed", "3:3"]
    _, err = toy.ictd("sweep", "1", *words, status=2, options=["-X", "importtime"])
    assert "gama: no such parameter; did you mean gamma?" in err
    assert "gamma: value 2: got 'nan', expected a number in [0, 1) (discount factor)" in err
    assert "seed: '3:3' has no values" in err
    imported = set(re.findall(r"\| +(\w+)$", err, re.MULTILINE))
    assert "numpy" in imported
    assert not imported & {"papermill", "torch", "distributed", "dask", "matplotlib", "sphinx"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--points", "nowhere.csv"], "nowhere.csv"),
        (["--workers", "0"], "workers: got 0, expected a whole number of at least 1"),
        (["-p", "seed"], "-p"),
        (["-o", "01_toy.ipynb/x"], "Not a directory"),
        (["-p", "seed", "0", "-p", "seed", "1"], "-p seed: given twice"),
        (["-y", "{seed: 1, seed: 2}"], "seed given twice"),
        (["--scheduler", "foo"], "scheduler: got 'foo', expected an address such as tcp://"),
    ],
)
def test_a_command_that_is_not_accepted_has_status_2(first_sweep, words, said):
    toy = first_sweep[0]
    _, err = toy.ictd("sweep", "1", *words, status=2, cwd=toy.root / "chapters")
    assert said in err


def test_a_scheduler_that_does_not_answer_is_an_error(first_sweep, tmp_path):
    words = ["-p", "seed", "0", "-o", str(tmp_path), "--scheduler", "tcp://no-such-host.invalid:1"]
    _, err = first_sweep[0].ictd("sweep", "1", *words, status=1)
    assert "no scheduler can be used at tcp://no-such-host.invalid:1" in err


def test_results_of_two_chapters_do_not_share_a_folder(first_sweep, tmp_path):
    toy, folder, *_ = first_sweep
    lone = tmp_path / "02_other.ipynb"
    lone.write_text((toy.root / "chapters" / "01_toy.ipynb").read_text())
    _, err = toy.ictd("sweep", lone, "-p", "seed", "0:2", "-o", folder, status=2)
    assert "holds results of 01_toy; choose another folder" in err


def test_help_lists_the_parameters(first_sweep):
    out, _ = first_sweep[0].ictd("sweep", "1", "--help")
    assert "gamma: float (default 0.9)" in out
    assert "--scheduler ADDRESS" in out


# ------------------------------------------------------------------------------------------ the ways in


def given(*words: str) -> dict[str, object]:
    values, rest = cli.split_values(["sweep", "1", *words])
    return commands.given(cli.parser().parse_args(rest, argparse.Namespace(values=values)))


def test_every_way_in_gives_the_same_values_and_the_same_key(first_sweep, tmp_path, monkeypatch):
    toy = first_sweep[0]
    monkeypatch.chdir(toy.root)
    project, chapter = find_chapter("1")
    text = "{gamma: 1e-3, sizes: [0, 1], flag: no, seed: 3}"
    (tmp_path / "x.yml").write_text(text)
    (tmp_path / "points.yml").write_text(f"[{text}]")
    (tmp_path / "points.csv").write_text('gamma,sizes,flag,seed\n1e-3,"[0, 1]",no,3\n')
    pairs = [
        "-p",
        "gamma",
        "1e-3",
        "-p",
        "sizes",
        "[0, 1]",
        "-p",
        "flag",
        "false",
        "-p",
        "seed",
        "3",
    ]
    python = {"gamma": np.float64(1e-3), "sizes": range(2), "flag": np.False_, "seed": np.int8(3)}
    ways = {
        "-p": given(*pairs),
        "-y": given("-y", text),
        "-f": given("-f", str(tmp_path / "x.yml")),
        "Python": python,
        "Python, other types": {**python, "sizes": (0, 1), "gamma": np.array([1e-3])[0]},
    }
    planned = {way: runner.plan(project, chapter, values) for way, values in ways.items()}
    keys = {way: sweeping.digest(plan.parts) for way, plan in planned.items()}
    swept = [({**ways[way]}, ()) for way in ways]
    swept += [({}, points.rows_of(tmp_path / name)) for name in ("points.yml", "points.csv")]
    for values, rows in swept:
        prepared = sweeping.prepare(project, chapter, values, rows)
        (point,) = prepared.points
        keys[f"swept {len(keys)}"] = sweeping.key(prepared.planned, point)
    assert len(keys) == len(ways) + len(swept)
    assert set(keys.values()) == {keys["-p"]}
    for plan in planned.values():
        assert plan.parameters == {"gamma": 0.001, "sizes": [0, 1], "flag": False, "seed": 3}
        assert [type(value) for value in plan.parameters.values()] == [float, list, bool, int]


@pytest.mark.parametrize(("text", "seeds"), [("010", [10]), ("1:4", [1, 2, 3]), ("0:3", [0, 1, 2])])
def test_numbers_of_another_base_are_the_same_by_every_way_in(
    first_sweep, monkeypatch, text, seeds
):
    """YAML reads 010 as 8, and 1:30 as 90."""
    monkeypatch.chdir(first_sweep[0].root)
    for words in (["-p", "seed", text], ["-y", f"seed: {text}"], ["-y", f"seed: [{text}]"]):
        prepared = sweeping.prepare(*find_chapter(1), given(*words))
        assert [point.parameters["seed"] for point in prepared.points] == seeds, words


def test_the_words_after_a_name_are_its_values_up_to_the_next_option():
    words = ["sweep", "04", "-p", "a", "-1e-3", "2", "-p", "b", "0:3", "-o", "DIR", "--force"]
    assert cli.split_values(words) == (
        [("a", ["-1e-3", "2"]), ("b", ["0:3"])],
        ["sweep", "04", "-o", "DIR", "--force"],
    )
    words = ["run", "-p", "a", "-1", "04", "-p", "b", "[0, 1]"]
    assert cli.split_values(words) == ([("a", ["-1"]), ("b", ["[0, 1]"])], ["run", "04"])


def test_an_equals_sign_between_name_and_value_is_refused_with_what_to_write(capsys):
    for command in ("run", "sweep"):
        assert cli.main([command, "1", "-p", "gamma=0.5", "-p", "seed", "3"]) == 2
        assert "expected -p NAME VALUE, as in -p gamma 0.5" in capsys.readouterr().err


def test_from_python(toy, monkeypatch):
    toy.write("01_toy", HEAD)
    monkeypatch.setattr(runner, "PACKAGE", toy.library / "ictd")
    monkeypatch.chdir(toy.root)
    swept = sweep("1", {"gamma": np.array([0.2, 0.5]), "sizes": (1, 2), "seed": range(1)})
    assert swept.folder.parent == toy.root / "runs"
    assert (swept.run_now, swept.failures) == (2, [])
    first, second = swept.results()
    assert [first.parameters["gamma"], second.parameters["gamma"]] == [0.2, 0.5]
    assert first.parameters["sizes"] == [1, 2]
    assert second.numbers["drawn"] - first.numbers["drawn"] == pytest.approx(0.3)
    assert first.claims[0]["passed"]
    again = sweep("1", {"gamma": [0.5, 0.2], "sizes": [[1, 2]], "seed": 0})
    assert (again.folder, again.run_now) == (swept.folder, 0)
    assert again.finished == swept.finished[::-1]
    with pytest.raises(ParameterError, match="gama"):
        sweep("1", {"gama": 1})
    with pytest.raises(BookError, match=r"workers: got 2\.0"):
        sweep("1", {"gamma": 0.1}, workers=2.0)


def test_a_sweep_that_ends_leaves_another_of_the_same_process_alone(toy, monkeypatch, until):
    toy.write("01_toy", HEAD)
    started = toy.root / "started"
    wait = f"import pathlib, time\n\npathlib.Path({str(started)!r}).touch()\ntime.sleep(8)"
    toy.write("02_slow", [*HEAD, wait])
    monkeypatch.setattr(runner, "PACKAGE", toy.library / "ictd")
    monkeypatch.chdir(toy.root)
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(sweep, "2", {"seed": 1}, workers=1)
        until(started.exists)
        assert sweep("1", {"seed": 1}, workers=1).run_now == 1
        assert not slow.done()
        assert slow.result().failures == []
