"""CPU time and peak memory of a run are those of all its processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ictd.book import machine
from ictd.book.usage import Usage

# Each of two processes holds 60 MB and works, the second one below the first.
HOLD = """
import subprocess, sys, time
data = bytes(range(256)) * (60_000_000 // 256)
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], ""]) if sys.argv[1] else None
end = time.process_time() + 0.4
while time.process_time() < end:
    pass
time.sleep(0.4)
if child:
    sys.exit(child.wait())
"""
BLOCK = """
import subprocess, sys
from ictd.book.usage import Usage
with Usage(records=sys.argv[2] == "records", interval=0.05) as usage:
    subprocess.run([sys.executable, "-c", sys.argv[1], sys.argv[1]], check=True)
print(usage.cpu_seconds, usage.peak_memory)
"""


@pytest.mark.parametrize("how", ["records", "looks"])
def test_processes_below_those_started_are_counted(how: str) -> None:
    """In a process of its own, since the system's record is of all children that ever ended."""
    if how == "records" and sys.platform == "win32":
        pytest.skip("Windows keeps no record of children")
    command = [sys.executable, "-c", BLOCK, HOLD, how]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, memory = map(float, done.stdout.split())
    # Two times 0.4 s, the start of three interpreters, and the import of the library's machinery.
    assert 0.8 <= seconds < 30
    assert 120e6 < memory < 400e6


def test_the_record_of_a_large_process_counts_where_no_look_saw_it() -> None:
    if sys.platform == "win32":
        pytest.skip("Windows keeps no record of children")
    with Usage(interval=60) as usage:
        subprocess.run([sys.executable, "-c", "b'x' * 200_000_000"], check=True)
    assert usage.peak_memory > 200e6


def test_a_machine_is_described_by_what_a_run_depends_on(tmp_path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n")
    cores = machine.cores(tmp_path)
    words = machine.description(tmp_path)
    assert f"{cores} core" in words
    assert "of Some CPU @ 3 GHz, " in words
    assert words.endswith(" GB of memory")
    assert "model" not in machine.description(tmp_path / "nowhere")
