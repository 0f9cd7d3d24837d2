"""Steps of .ci/run that run beside others."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

STEPS = Path(__file__).resolve().parents[1] / ".ci/steps.sh"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the checks run on Linux")

HEAD = """
set -euo pipefail
scratch=$PWD
. "$1"
trap end_all EXIT
good() { sleep 0.5; echo output of good; }
bad() { echo output of bad; false; echo never; }
long() { sleep 60 & echo $! >pid; wait; }
"""


def bash(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", HEAD + code, "bash", STEPS],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_its_output_comes_when_it_is_finished(tmp_path: Path) -> None:
    done = bash(tmp_path, "start good good; echo beside; finish good; echo after")
    assert done.stdout.splitlines() == ["beside", "output of good", "after"]
    assert done.returncode == 0


def test_its_failure_is_that_of_the_whole(tmp_path: Path) -> None:
    done = bash(tmp_path, "start good good; start bad bad; finish good; finish bad; echo after")
    assert done.stdout.splitlines() == ["output of good", "output of bad"]
    assert done.stderr == "FAILED: bad ended with status 1\n"
    assert done.returncode == 1


def test_it_is_ended_with_all_that_it_started_when_another_step_fails(tmp_path: Path) -> None:
    done = bash(tmp_path, "start long long; until [ -s pid ]; do sleep 0.05; done; false")
    assert done.returncode == 1
    status = Path("/proc", (tmp_path / "pid").read_text().strip(), "status")
    end = time.monotonic() + 20
    while status.exists() and "State:\tZ" not in status.read_text():
        assert time.monotonic() < end, "it still runs"
        time.sleep(0.05)
