"""Checkpoints of pretraining: the same bits after any interruption; what does not fit is refused."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import ictd
from ictd import _checkpoint

FIELDS = {
    "n_features": 3,
    "context_length": 8,
    "n_layers": 3,
    "batch_size": 8,
    "n_steps": 60,
    "eval_every": 7,
    "eval_tasks": 4,
    "seeds": (2, 5),
    "checkpoint_every": 1,
}
FILE = "pretraining.safetensors"

# Trains in a process of its own and says so on each step.
PROGRAM = """
import importlib, json, sys
import ictd
pretraining = importlib.import_module("ictd.pretrain")
right = pretraining._Run._advance
def slow(self):
    print(self.step, flush=True)
    return right(self)
pretraining._Run._advance = slow
ictd.pretrain(ictd.PretrainConfig(**json.loads(sys.argv[1])), progress=False)
print("done", flush=True)
"""


def configuration(folder: Path | None = None, **fields: object) -> ictd.PretrainConfig:
    return ictd.PretrainConfig(**{**FIELDS, "checkpoint_dir": folder, **fields})


def train(folder: Path | None = None, **fields: object) -> ictd.PretrainResult:
    return ictd.pretrain(configuration(folder, **fields), progress=False)


def same(first: ictd.PretrainResult, second: ictd.PretrainResult) -> bool:
    """Parameters and history equal to the last bit."""
    pairs = [
        (first.parameters, second.parameters),
        (first.history, second.history),
    ]
    return first.stopped == second.stopped and all(
        a.keys() == b.keys() and all(np.array_equal(a[k], b[k], equal_nan=True) for k in a)
        for a, b in pairs
    )


def start(folder: Path, **fields: object) -> subprocess.Popen[str]:
    given = {**FIELDS, **fields, "checkpoint_dir": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps(given)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(ictd.__file__).parents[1],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def wait_for_step(process: subprocess.Popen[str], step: int) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == str(step):
            return
    raise AssertionError(f"the run ended before step {step}: {process.communicate()[1]}")


@pytest.fixture(scope="module")
def whole() -> ictd.PretrainResult:
    """A run that was not interrupted, in a process whose thread count is that of the others."""
    return train()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    train(folder, n_steps=10)
    return folder


# ---------------------------------------------------------------------------------------------- going on


@pytest.mark.parametrize("step", [3, 17])
def test_a_killed_run_goes_on_to_the_same_bits(
    step: int, tmp_path: Path, whole: ictd.PretrainResult
) -> None:
    process = start(tmp_path)
    wait_for_step(process, step)
    time.sleep(random.Random(step).uniform(0, 0.01))
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert int(load_file(tmp_path / FILE)["step"]) >= step - 1
    assert same(train(tmp_path), whole)


def test_a_run_stopped_at_any_step_goes_on_to_the_same_bits(
    tmp_path: Path, whole: ictd.PretrainResult
) -> None:
    """The file of each step, as a kill after it would leave it."""
    copies = tmp_path / "copies"
    kept = _checkpoint.Checkpoint.save

    def save_and_copy(
        self: _checkpoint.Checkpoint, state: dict[str, torch.Tensor], step: int
    ) -> None:
        kept(self, state, step)
        shutil.copytree(self.folder, copies / str(step))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_checkpoint.Checkpoint, "save", save_and_copy)
        assert same(train(tmp_path / "run"), whole)
    steps = sorted(int(folder.name) for folder in copies.iterdir())
    assert steps == list(range(1, 61))
    for step in (1, 6, 7, 8, 31, 59, 60):
        assert same(train(copies / str(step)), whole)


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol": "window"},
        {"attention": "linear"},
        {"masked": False, "n_layers": 2},
        {"shared_layers": False},
        {"loss": "mc", "weight_decay": 0.01},
    ],
)
def test_every_kind_of_run_goes_on_to_the_same_bits(
    fields: dict[str, object], tmp_path: Path
) -> None:
    fields = {"n_steps": 12, **fields}
    train(tmp_path, **{**fields, "n_steps": 7})
    assert same(train(tmp_path, **fields), train(**fields))


def test_ctrl_c_saves_the_step_that_it_was_in_and_leaves(
    tmp_path: Path, whole: ictd.PretrainResult
) -> None:
    process = start(tmp_path, checkpoint_every=1000)
    wait_for_step(process, 9)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert process.returncode not in (0, None)
    assert 10 <= int(load_file(tmp_path / FILE)["step"]) < 60
    assert same(train(tmp_path), whole)


def test_a_finished_run_is_returned_without_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = train(tmp_path, n_steps=5)
    pretraining = sys.modules["ictd.pretrain"]
    monkeypatch.setattr(pretraining._Run, "_advance", None)
    assert same(train(tmp_path, n_steps=5), first)


def test_a_run_may_be_prolonged(tmp_path: Path) -> None:
    train(tmp_path, n_steps=14)
    assert same(train(tmp_path, n_steps=20), train(n_steps=20))


def test_a_stopped_seed_stays_stopped(tmp_path: Path) -> None:
    fields = {"learning_rate": 1e30, "seeds": (0, 1), "n_steps": 400}
    with pytest.warns(RuntimeWarning, match="stopped at step"):
        first = train(tmp_path, **fields)
    again = train(tmp_path, **fields)  # no warning, no step
    assert same(again, first)
    assert set(again.stopped) == {0, 1}


def test_without_a_folder_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    train(n_steps=2)
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path, n_steps=4)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        train(tmp_path, n_steps=8)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_its_files_have_the_permissions_of_new_files(tmp_path: Path) -> None:
    for mask in (0o022, 0o027):
        before = os.umask(mask)
        try:
            train(tmp_path / str(mask), n_steps=1)
        finally:
            os.umask(before)
        for path in (tmp_path / str(mask)).iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_the_configuration_stands_beside_it_for_people(saved: Path) -> None:
    about = json.loads((saved / "pretraining.json").read_text(encoding="utf-8"))
    assert about["step"] == 10
    assert about["config"]["seeds"] == [2, 5]
    assert sorted(path.name for path in saved.iterdir()) == ["pretraining.json", FILE]


# -------------------------------------------------------------------------------------------------- refusal


def header_changed(**changes: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        from safetensors import safe_open

        with safe_open(path, "pt") as file:
            header = {**file.metadata(), **changes}
        save_file(load_file(path), path, header)

    return change


def tensors_changed(change: Callable[[dict[str, torch.Tensor]], None]) -> Callable[[Path], None]:
    """Other tensors under a right digest, as an older version might have written them."""

    def rewrite(path: Path) -> None:
        tensors = load_file(path)
        change(tensors)
        header_changed(digest=_checkpoint._digest(tensors))(path)
        from safetensors import safe_open

        with safe_open(path, "pt") as file:
            header = file.metadata()
        save_file(tensors, path, header)

    return rewrite


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(bytes(content))


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "truncated": (lambda p: p.write_bytes(p.read_bytes()[:-100]), "cannot be read"),
    "cut to the header": (lambda p: p.write_bytes(p.read_bytes()[:50]), "cannot be read"),
    "empty": (lambda p: p.write_bytes(b""), "cannot be read"),
    "a bit flipped": (flipped, "not those that were saved"),
    "text": (lambda p: p.write_text("something else"), "cannot be read"),
    "another safetensors file": (
        lambda p: save_file({"x": torch.ones(2)}, p),
        r"no checkpoint of ictd\.pretrain",
    ),
    "another format": (header_changed(format="ictd pretraining, 0"), "no checkpoint of ictd"),
    "no configuration": (header_changed(config="{"), "configuration cannot be read"),
    "a tensor missing": (
        tensors_changed(lambda t: t.pop("adam.mean.A")),
        "not those of this configuration",
    ),
    "a tensor of another shape": (
        tensors_changed(lambda t: t.update({"parameter.A": t["parameter.A"][:1].clone()})),
        "not those of this configuration",
    ),
    "a tensor of another dtype": (
        tensors_changed(lambda t: t.update({"parameter.A": t["parameter.A"].double()})),
        "not those of this configuration",
    ),
    "histories of different lengths": (
        tensors_changed(lambda t: t.update({"history.step": t["history.step"][:-1].clone()})),
        "not those of this configuration",
    ),
    "no history": (
        tensors_changed(lambda t: [t.pop(n) for n in list(t) if n.startswith("history.")]),
        "not those of this configuration",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_checkpoint_that_is_not_right_is_refused(
    damage: str, saved: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(saved, folder)
    break_it, why = DAMAGE[damage]
    break_it(folder / FILE)
    before = (folder / FILE).read_bytes()
    with pytest.raises(ictd.CheckpointError, match=why) as refused:
        train(folder, n_steps=10)
    assert str(folder / FILE) in str(refused.value)
    assert (folder / FILE).read_bytes() == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_states", 6),
        ("gamma", 0.6),
        ("seeds", (2, 6)),
        ("attention", "linear"),
        ("learning_rate", 0.02),
        ("dtype", "float64"),
        ("eval_every", 8),
        ("n_layers", 4),
    ],
)
def test_a_checkpoint_of_another_configuration_is_refused(
    field: str, value: object, saved: Path
) -> None:
    with pytest.raises(ictd.CheckpointError, match=f"another configuration: {field} = "):
        train(saved, **{"n_steps": 10, field: value})


def test_a_checkpoint_beyond_the_last_step_is_refused(saved: Path) -> None:
    with pytest.raises(ictd.CheckpointError, match="of step 10, beyond n_steps = 9"):
        train(saved, n_steps=9)


def test_a_folder_that_cannot_be_used_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    with pytest.raises(ictd.CheckpointError, match="checkpoint_dir"):
        train(tmp_path / "file")


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match="pip install safetensors"):
        train(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ImportError, match="pip install tqdm"):
        ictd.pretrain(configuration(n_steps=1), progress=True)
    ictd.pretrain(configuration(n_steps=1))  # nothing is asked for, nothing is missing
