"""What a run takes of the machine: CPU time and memory of a process and of all that it starts."""

from __future__ import annotations

import contextlib
import sys
import threading
from types import TracebackType

import psutil

# Seconds between two looks at the processes.
_INTERVAL = 0.5
_SHARED_IS_KNOWN = sys.platform == "linux"


class Usage:
    """CPU time and peak memory of this process and of all below it, while the block runs.

    A context manager. Memory is looked at twice a second and summed over the processes. Where the system
    tells what of it is shared with others (Linux), the largest share counts once: libraries that all map.
    Where the system keeps records of children that have ended, these give the CPU time, and the peak memory
    is at least that of the largest.

    Args:
        records: Whether to use the system's records; None means where there are any.
        interval: Seconds between two looks.

    Attributes:
        peak_memory: Bytes, once the block has ended.
        cpu_seconds: Since each process began, once the block has ended.
    """

    def __init__(self, records: bool | None = None, interval: float = _INTERVAL) -> None:
        self._records = sys.platform != "win32" if records is None else records
        self._interval = interval
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._cpu: dict[psutil.Process, float] = {}
        self.peak_memory = 0
        self.cpu_seconds = 0.0

    def __enter__(self) -> Usage:
        self._watcher.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._watcher.join()
        own = psutil.Process().cpu_times()
        self.cpu_seconds = own.user + own.system
        if self._records:
            seconds, largest = _ended_children()
            self.cpu_seconds += seconds
            self.peak_memory = max(self.peak_memory, largest)
        else:
            self.cpu_seconds += sum(self._cpu.values())

    def _watch(self) -> None:
        while not self._ended.wait(self._interval):
            with contextlib.suppress(psutil.Error):
                own = psutil.Process()
                below = map(self._look, own.children(recursive=True))
                private, shared = zip(_memory(own), *below, strict=True)
                self.peak_memory = max(self.peak_memory, sum(private) + max(shared))

    def _look(self, process: psutil.Process) -> tuple[int, int]:
        """The memory of a process as by `_memory`; nothing if it is gone."""
        try:
            if not self._records:
                times = process.cpu_times()
                self._cpu[process] = times.user + times.system
            return _memory(process)
        except psutil.Error:
            return 0, 0


def _memory(process: psutil.Process) -> tuple[int, int]:
    """Bytes of a process that are its own, and bytes that it shares with any other, of the run or not."""
    if _SHARED_IS_KNOWN:
        memory = process.memory_full_info()
        return int(memory.uss), int(memory.rss - memory.uss)
    return int(process.memory_info().rss), 0


def _ended_children() -> tuple[float, int]:
    """CPU seconds of all children that have ended, theirs included, and bytes of the largest one.

    On Linux the record of a child begins with the memory of the process that started it.
    """
    if sys.platform == "win32":
        raise NotImplementedError("Windows keeps no record of children that have ended")
    import resource

    made = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1 if sys.platform == "darwin" else 1024
    return made.ru_utime + made.ru_stime, made.ru_maxrss * unit
