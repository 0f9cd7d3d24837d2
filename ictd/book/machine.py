"""What this process may use of the machine: cores and memory, quotas of containers included."""

from __future__ import annotations

import math
import os
import platform
from pathlib import Path

import psutil

# What a chapter may take at its defaults: bytes, which the tests hold it to, and seconds of CPU time; a
# build that finds more says so.
MEMORY_PER_CHAPTER = 1_500_000_000
CPU_PER_CHAPTER = 60.0


def workers(chapters: int) -> int:
    """How many chapters can run side by side, at least one."""
    return max(1, min(chapters, cores(), memory() // MEMORY_PER_CHAPTER))


def cores(root: Path = Path("/")) -> int:
    """Whole cores that this process may use: its affinity, and the CPU quota of its cgroup.

    `root` is where `proc` and `sys` are found.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    quotas = [math.floor(quota) for quota in _cpu_quotas(root)]
    return max(1, min([count, *quotas]))


def memory(root: Path = Path("/")) -> int:
    """Bytes that are free for this process, the limit of its cgroup included."""
    free = int(psutil.virtual_memory().available)
    return max(0, min([free, *_memory_limits(root)]))


def description(root: Path = Path("/")) -> str:
    """This machine in words: system, processor, the cores that this process may use, memory."""
    count, size = cores(root), round(psutil.virtual_memory().total / 1e9)
    processor = _processor(root) or platform.machine()
    used = f"{count} core{'' if count == 1 else 's'}"
    return f"{platform.system()}, {used} of {processor}, {size} GB of memory"


def _processor(root: Path) -> str:
    """The name of the processor where Linux tells it, else nothing."""
    for line in _read(root / "proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return ""


def _cpu_quotas(root: Path) -> list[float]:
    """The CPU quotas, in cores, of the cgroups (versions 1 and 2) that contain this process."""
    found = []
    for folder in _cgroups(root, "cpu"):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        if not quota:
            quota = _read(folder / "cpu.cfs_quota_us")
            period = _read(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period) > 0:
            found.append(int(quota) / int(period))
    return found


def _memory_limits(root: Path) -> list[int]:
    """What each cgroup that contains this process leaves of its memory limit."""
    found = []
    for folder in _cgroups(root, "memory"):
        limit = _read(folder / "memory.max") or _read(folder / "memory.limit_in_bytes")
        used = _read(folder / "memory.current") or _read(folder / "memory.usage_in_bytes")
        if limit.isdigit() and used.isdigit():
            found.append(int(limit) - int(used))
    return found


def _cgroups(root: Path, controller: str) -> list[Path]:
    """The folders of this process's cgroup and of those around it, for one controller."""
    folders = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if not names:
            mount = root / "sys/fs/cgroup"
        elif controller in names.split(","):
            mount = root / "sys/fs/cgroup" / controller
        else:
            continue
        # Inside a container the path may be the host's: then only the mount itself exists.
        folder = mount / path.lstrip("/")
        folders += [folder, *folder.parents[: len(folder.parts) - len(mount.parts)]]
    return folders


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
