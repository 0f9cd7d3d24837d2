"""Jobs on Dask: bounded, whatever happens to the workers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from ictd.book import cluster, machine
from ictd.book.cluster import LEAST_WAITING, ClusterError
from ictd.book.errors import UsageError

MANY = 10_000


def payload(number: int) -> bytes:
    return number.to_bytes(4, "big") + bytes(20_000)


def refuse_odd(number: int) -> int:
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


def die(number: int) -> None:
    os._exit(7)


def test_ten_thousand_jobs_leave_scheduler_and_memory_as_they_are():
    """The scheduler never knows more than a few jobs, and answers between any two; results do not stay."""
    process = psutil.Process()
    known, memory, answered = [], [], 0
    with cluster.connect(None, 2) as client:
        scheduler = client.cluster.scheduler
        for ended, (number, result) in enumerate(cluster.run(client, payload, range(MANY))):
            assert result[:4] == number.to_bytes(4, "big")
            if ended % 250 == 0:
                known.append(len(scheduler.tasks))
                memory.append(process.memory_info().rss)
                answered += len(client.nthreads()) == 2
    assert ended == MANY - 1
    # What is released may still be on its way out.
    assert max(known) <= 3 * LEAST_WAITING
    assert answered == len(known)
    # All the results would be 200 MB.
    assert memory[-1] - memory[len(memory) // 4] < 40e6


def test_jobs_are_taken_as_workers_get_free():
    taken = []

    def jobs():
        for number in range(200):
            taken.append(number)
            yield number

    with cluster.connect(None, 1) as client:
        ended = cluster.run(client, refuse_odd, jobs())
        next(ended)
        assert len(taken) <= LEAST_WAITING + 1
        ended.close()


def test_a_job_that_raises_gives_its_error_back():
    with cluster.connect(None, 2) as client:
        ended = dict(cluster.run(client, refuse_odd, range(6)))
    assert [ended[number] for number in (0, 2, 4)] == [0, 2, 4]
    assert all(isinstance(ended[number], ValueError) for number in (1, 3, 5))


def test_no_jobs_end_at_once():
    with cluster.connect(None, 1) as client:
        assert list(cluster.run(client, refuse_odd, ())) == []


def test_a_local_worker_has_one_thread_and_shows_nothing_to_the_network():
    with cluster.connect(None, 3) as client:
        assert list(client.nthreads().values()) == [1, 1, 1]
        assert all(address.startswith("inproc:") for address in client.nthreads())


def test_a_client_and_a_cluster_of_the_caller_are_used_and_stay_open():
    from distributed import Client, LocalCluster

    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with LocalCluster(**options, dashboard_address="127.0.0.1:0") as own, Client(own) as client:
        with cluster.connect(client, 5) as used:
            assert used is client
        with cluster.connect(own, 5) as used:
            assert dict(cluster.run(used, refuse_odd, [2])) == {2: 2}
        assert client.submit(refuse_odd, 4).result() == 4


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "tcp://no-such-host.invalid:1"])
def test_a_scheduler_that_does_not_answer(address, monkeypatch):
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 1)
    with (
        pytest.raises(ClusterError, match="no scheduler can be used at"),
        cluster.connect(address, 1),
    ):
        pass


@pytest.mark.parametrize("scheduler", ["foo", "", "http://127.0.0.1:80", "tcp://host", 3])
def test_what_is_no_scheduler_is_refused(scheduler):
    with pytest.raises(UsageError, match=r"scheduler: got .*, expected an address such as"):
        cluster.check(scheduler)


@pytest.mark.parametrize(
    "scheduler", [None, "tcp://10.0.0.1:8786", "tls://[::1]:8786", "host:8786"]
)
def test_addresses(scheduler):
    cluster.check(scheduler)


def test_encryption_without_certificates_is_refused_at_once():
    with (
        pytest.raises(ClusterError, match="needs certificates"),
        cluster.connect("tls://127.0.0.1:8786", 1),
    ):
        pass


def test_as_many_workers_as_cores_and_memory_allow(monkeypatch):
    monkeypatch.setattr(machine, "cores", lambda: 6)
    monkeypatch.setattr(machine, "memory", lambda: 100e9)
    assert [machine.workers(n) for n in (1, 4, 50)] == [1, 4, 6]
    monkeypatch.setattr(machine, "memory", lambda: 3.1e9)
    assert machine.workers(50) == 2


def test_a_job_that_ends_every_worker_is_given_up(dask):
    dask.worker(nanny=True)
    with cluster.connect(dask.address, 0) as client:
        ((job, result),) = cluster.run(client, die, [1])
    assert (job, type(result).__name__) == (1, "KilledWorker")


def test_a_scheduler_that_is_lost_is_said(dask):
    dask.worker()
    with cluster.connect(dask.address, 0) as client:
        ended = cluster.run(client, time.sleep, [0, *[1] * 50])
        next(ended)
        dask.scheduler.kill()
        with pytest.raises(ClusterError, match="lost"):
            list(ended)


def test_dask_is_loaded_for_sweeps_alone():
    code = (
        "import sys, ictd.book, ictd.book.cli; print({'dask', 'distributed'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(cluster.__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "set()"
