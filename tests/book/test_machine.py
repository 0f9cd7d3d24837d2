"""How many chapters run side by side."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from ictd.book import machine


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")


@pytest.fixture
def sixteen_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)


@pytest.mark.usefixtures("sixteen_cores")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 16),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/b/cpu.max": "max 100000"}, 16),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/b/cpu.max": "250000 100000"}, 2),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/cpu.max": "300000 100000"}, 3),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "50000 100000"}, 1),
        (
            {
                "proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/host/path",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "400000",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            4,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/x",
                "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000",
            },
            16,
        ),
    ],
)
def test_cores_follow_the_quota(tmp_path, files, expected):
    write(tmp_path, files)
    assert machine.cores(tmp_path) == expected


def test_cores_follow_the_affinity(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 7}, raising=False)
    assert machine.cores(tmp_path) == 3


@pytest.mark.parametrize(
    "files",
    [
        {
            "proc/self/cgroup": "0::/a",
            "sys/fs/cgroup/a/memory.max": "3000000",
            "sys/fs/cgroup/a/memory.current": "1000000",
        },
        {
            "proc/self/cgroup": "3:memory:/a",
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "3000000",
            "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "1000000",
        },
    ],
)
def test_memory_follows_the_limit(tmp_path, files):
    assert machine.memory(tmp_path) > 2000000
    write(tmp_path, files)
    assert machine.memory(tmp_path) == 2000000


def test_workers_follow_chapters_cores_and_memory(monkeypatch):
    def workers(chapters: int, cores: int, gigabytes: float) -> int:
        monkeypatch.setattr(machine, "cores", lambda: cores)
        monkeypatch.setattr(machine, "memory", lambda: int(gigabytes * 1e9))
        return machine.workers(chapters)

    assert workers(8, 4, 100) == 4
    assert workers(8, 4, 3.2) == 2
    assert workers(3, 4, 100) == 3
    assert workers(0, 4, 100) == 1
    assert workers(8, 4, 0.5) == 1


def test_this_machine_has_a_core_and_memory():
    assert 1 <= machine.cores() <= (os.cpu_count() or 1)
    assert 0 < machine.memory() <= psutil.virtual_memory().total
