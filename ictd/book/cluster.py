"""Dask for sweeps: workers here or behind a scheduler, and jobs given to them a few at a time."""

from __future__ import annotations

import contextlib
import logging
import pickle
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import BookError, UsageError

if TYPE_CHECKING:
    from distributed import Client

#: So many jobs wait at the scheduler even where it has few workers yet: one that grows by itself
#: looks at how much there is to do.
LEAST_WAITING = 32
_CONNECT_SECONDS = 10
_LOOK_AGAIN_SECONDS = 1.0
_POLL_SECONDS = 0.01
_ALONE_SECONDS = 5.0
_ALONE_AGAIN_SECONDS = 60.0

In = TypeVar("In")
Out = TypeVar("Out")


_ADDRESS = re.compile(r"(\w+://)?(\[[^\]]+\]|[^:/\[\]]+):\d+/?")
_SCHEMES = ("", "tcp://", "tls://", "ws://", "wss://", "ucx://")


class ClusterError(BookError):
    """The scheduler cannot be reached, or has been lost."""


def check(scheduler: Any) -> None:
    """Refuse what is no scheduler, before anything is done.

    Raises:
        UsageError: It is no address, and neither a client nor a cluster of Dask.
    """
    if scheduler is None:
        return
    if isinstance(scheduler, str):
        found = _ADDRESS.fullmatch(scheduler)
        accepted = found is not None and (found[1] or "") in _SCHEMES
    else:
        accepted = hasattr(scheduler, "scheduler_info")
    if not accepted:
        raise UsageError(
            f"scheduler: got {scheduler!r}, expected an address such as tcp://10.0.0.1:8786, or a Dask "
            "client or cluster"
        )


@contextlib.contextmanager
def connect(scheduler: Any, workers: int) -> Iterator[Client]:
    """A client of some workers.

    Args:
        scheduler: Address of a scheduler, such as "tcp://10.0.0.1:8786"; a Dask client or cluster; or None
            for workers in this process. A worker has one thread, and the chapter that it runs a process of
            its own.
        workers: How many, where they are made here.

    Raises:
        ClusterError: No scheduler answers at the address.
    """
    from distributed import Client, LocalCluster, Security

    # That a scheduler is lost is said by us.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)

    if isinstance(scheduler, Client):
        yield scheduler
    elif scheduler is None:
        # A chapter's own process holds its memory, and no worker needs to be watched for it.
        with (
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=False,
                memory_limit=None,
                dashboard_address="127.0.0.1:0",
                silence_logs="CRITICAL",
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
    else:
        context = Security().get_connection_args("client").get("ssl_context")
        if str(scheduler).startswith("tls:") and context is None:
            raise ClusterError(
                f"{scheduler} needs certificates, and Dask's configuration names none: set "
                "distributed.comm.tls.ca-file and distributed.comm.tls.client"
            )
        try:
            client = Client(scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, ImportError, RuntimeError, TypeError) as error:
            raise ClusterError(f"no scheduler can be used at {scheduler}: {error}") from None
        with client:
            yield client


def run(
    client: Client,
    function: Callable[[In], Out],
    jobs: Iterable[In],
    alone: Callable[[], None] = lambda: None,
) -> Iterator[tuple[In, Out | Exception]]:
    """Run jobs on the workers and give each back with its result, in the order in which they end.

    The scheduler is given a few jobs more than its workers can run, and results are fetched as they come:
    it does not matter how many jobs there are. A worker that dies gives its jobs back to the others.

    Args:
        client: As `connect` gives it.
        function: Importable on the workers, and the jobs too.
        jobs: Consumed as workers get free.
        alone: Called when jobs wait and there have been no workers for some time.

    Yields:
        A job, and what the function returned, or the exception if it raised or its workers died.

    Raises:
        ClusterError: The scheduler has been lost.
    """
    from concurrent.futures import CancelledError

    from distributed import as_completed

    waiting = iter(jobs)
    given: dict[Any, In] = {}
    coming = as_completed(loop=client.loop)
    room = _Room(client, alone)

    def give() -> None:
        while len(given) < room.jobs():
            try:
                job = next(waiting)
            except StopIteration:
                return
            future = client.submit(pickle.loads, pickle.dumps(_Call(function, job)), pure=False)
            given[future.key] = job
            coming.add(future)

    give()
    while given:
        while not coming.has_ready():
            time.sleep(_POLL_SECONDS)
            room.look()
        future = next(coming)
        job = given.pop(future.key)
        result: Out | Exception
        try:
            result = future.result()
        except CancelledError:
            raise ClusterError("the scheduler has been lost; what is finished is stored") from None
        except Exception as error:
            result = error
        future.release()
        give()
        yield job, result


class _Call:
    """A call that is made where its pickle is read.

    So a worker that cannot import the function answers with the error. If the task itself were the
    function, it would be the connection to the worker that breaks, and the worker would be lost.
    """

    def __init__(self, function: Callable[[In], Any], job: In) -> None:
        self._call = (function, (job,))

    def __reduce__(self) -> Any:
        return self._call


class _Room:
    """How many jobs the scheduler may hold, by the workers that it has now."""

    def __init__(self, client: Client, alone: Callable[[], None]) -> None:
        self._client = client
        self._alone = alone
        self._jobs = LEAST_WAITING
        self._next_look = self._last_seen = time.monotonic()

    def jobs(self) -> int:
        self.look()
        return self._jobs

    def look(self) -> None:
        """Count the workers, if that was not done just before."""
        now = time.monotonic()
        if now < self._next_look or self._client.status != "running":
            return
        self._next_look = now + _LOOK_AGAIN_SECONDS
        threads = sum(self._client.nthreads().values())
        self._jobs = max(LEAST_WAITING, 2 * threads)
        if threads:
            self._last_seen = now
        elif now - self._last_seen > _ALONE_SECONDS:
            self._last_seen = now + _ALONE_AGAIN_SECONDS
            self._alone()
