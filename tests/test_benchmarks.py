"""The benchmark scripts run; what they measure is for a reader, and no test times it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent / "benchmarks"


def small(name: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, str(FOLDER / name), "--small"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def test_the_benchmark_of_the_operator_runs_at_a_small_size() -> None:
    done = small("operator_cost.py")
    assert re.search(r"^ +10,000 +\d+\.\d+ s +\d+\.\d MB$", done.stdout, re.MULTILINE)
    assert re.search(r"^ +1,000 .* +\d+x$", done.stdout, re.MULTILINE)
    assert re.search(r"^time grows as n\^-?\d+\.\d\d$", done.stdout, re.MULTILINE)
    assert re.search(r"^times grow as S\^-?\d+\.\d\d, S\^", done.stdout, re.MULTILINE)
    assert len(re.findall(r"^ +10 .*x$", done.stdout, re.MULTILINE)) == 1


def test_the_benchmark_of_pretraining_runs_at_a_small_size() -> None:
    done = small("pretraining_cost.py")
    for model in ("softmax", "linear"):
        assert f"{model}, 3 seeds:" in done.stdout
    assert len(re.findall(r"^  by window / ours +\d+x a seed$", done.stdout, re.MULTILINE)) == 2
    assert len(re.findall(r"^  time of a step: +products \d+%", done.stdout, re.MULTILINE)) == 2


def test_the_stored_figures_of_pretraining_say_what_machine_they_are_of() -> None:
    stored = json.loads((FOLDER / "pretraining_cost.json").read_text(encoding="utf-8"))
    assert {"processor", "cores", "threads", "torch", "numpy"} <= set(stored["machine"])
    assert stored["protocol"]["n_steps"] == 4000 * 5
    for model in ("softmax", "linear"):
        assert stored[model]["seeds"] == 30
        assert sum(stored[model]["shares"].values()) == pytest.approx(1)
