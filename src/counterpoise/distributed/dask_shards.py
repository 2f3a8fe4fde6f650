"""Shards on the workers of a Dask cluster, an actor each.

An actor stays on its worker. Dask neither copies it nor writes it to disk, and it answers in one hop where this process
can reach the worker. It dies with its worker: the shard is then rebuilt on another worker, from its source and the
changes so far, and the call is repeated. Dask itself computes lost partitions again.

Dask sends calls to an actor through the scheduler unless the client was made with ``direct_to_workers=True``. A round
makes a dozen calls and gets histograms back. So ``Calls`` finds out which workers can be reached directly, and uses the
scheduler only for the others.
"""

import asyncio
import pkgutil
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, NamedTuple, Self, TypeVar

from counterpoise import __version__
from counterpoise._base.shards import (
    ChangeLog,
    Shard,
    Source,
    Step,
    TaskFailure,
    apply_steps,
    capture_errors,
    limit_threads,
    rebuild_shard,
    unwrap,
)

_SOON = 3.0  # seconds in which a worker that can be reached answers, busy as it may be


class Calls:
    """Questions of one client."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._is_near: dict[str, bool] = {}

    def ask(self, actor: Any, method: str, *args: Any) -> Future[Any]:
        """Ask an actor, and return at once; the result raises ``OSError`` where its worker is gone."""
        return asyncio.run_coroutine_threadsafe(self._send(actor, method, args), self._client.loop.asyncio_loop)

    def reach(self, addresses: Iterable[str]) -> None:
        """Find out which workers can be reached from here, all at once."""
        new = [address for address in addresses if address not in self._is_near]
        if self._client.direct_to_workers:
            self._is_near |= dict.fromkeys(new, True)
        elif new:
            self._is_near |= dict(zip(new, self._client.sync(self._check_workers, new), strict=True))

    async def _check_workers(self, addresses: list[str]) -> list[bool]:
        workers = (await self._client.scheduler.identity())["workers"]
        return await asyncio.gather(*(self._is_reached(one, workers.get(one, {}).get("id")) for one in addresses))

    async def _is_reached(self, address: str, name: Any) -> bool:
        """Return whether the worker of that name answers: in another network the address may be someone else's."""
        with suppress(Exception):
            return bool((await asyncio.wait_for(self._client.rpc(address).identity(), _SOON))["id"] == name)
        return False

    async def _send(self, actor: Any, method: str, args: tuple[Any, ...]) -> Any:
        from distributed.actor import ProxyRPC  # noqa: PLC0415 - optional
        from distributed.protocol import to_serialize  # noqa: PLC0415

        address = _address_of(actor)
        is_near = self._is_near.get(address, False)
        worker = self._client.rpc(address) if is_near else ProxyRPC(self._client.scheduler, address)
        payload = [to_serialize(one) for one in args]
        reply = await worker.actor_execute(function=method, actor=actor.key, args=payload, kwargs={})
        if reply["status"] != "OK":
            raise reply["exception"]
        return reply["result"]


Result = TypeVar("Result")

_TRIES = 3  # times that a shard is made for one question: what kills its worker each time would do so forever
_GLANCE = 2.0  # seconds after which we look whether a worker that does not answer is still there


class Parts(NamedTuple):
    """A source whose rows are partitions of Dask collections, which the workers compute or hold."""

    make: Callable[[list[Any]], dict[str, Any]]  # of the partitions as they are on the worker
    partitions: list[Any]  # delayed


class DaskShards:
    """Shards on the workers of a Dask cluster.

    Parameters
    ----------
    sources : sequence of callables or of Parts
        Each makes what a shard holds, on a worker.
    client : distributed.Client, optional
        Default: the present one.
    patience : float, optional
        Seconds to wait for a worker where there is none: clusters take a while to start, and to replace what they lost.
        Default: Dask's ``distributed.comm.timeouts.connect``.

    Examples
    --------
    >>> from functools import partial
    >>> from distributed import Client
    >>> from counterpoise.distributed.dask_shards import DaskShards
    >>> client = Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
    >>> with DaskShards([partial(dict, rows=3), partial(dict, rows=4)], client) as shards:
    ...     shards.map(len)
    [1, 1]
    >>> client.shutdown()
    """

    is_here = False

    def __init__(self, sources: Sequence[Source | Parts], client: Any = None, *, patience: float | None = None) -> None:
        self._client = as_client(client)
        if patience is None:  # the seconds that Dask waits for what it connects to
            from dask import config  # noqa: PLC0415 - optional
            from dask.utils import parse_timedelta  # noqa: PLC0415

            patience = float(parse_timedelta(config.get("distributed.comm.timeouts.connect")))
        self._patience = patience
        self.n_shards = len(sources)
        self._sources = [one if isinstance(one, Parts) else Parts(partial(_make_alone, one), []) for one in sources]
        self._changes = ChangeLog()
        self._hosts: dict[int, _Home] = {}
        self._pending: dict[int, list[Step]] = {}  # that a shard runs before the next call
        self._compatible_workers: set[str] = set()
        self._calls = Calls(self._client)
        self.map(_do_nothing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def homes(self) -> list[str]:
        """Return the address of the worker of each shard."""
        return [self._hosts[number].address for number in range(self.n_shards)]

    def map(self, function: Callable[..., Result], *args: Any, light: bool = False) -> list[Result]:  # noqa: ARG002
        """Call all shards at once; those that are lost are rebuilt and called again."""
        answers: dict[int, Any] = {}
        losses: Counter[int] = Counter()
        missing = list(range(self.n_shards))
        while missing:
            self._make([number for number in missing if number not in self._hosts])
            answers |= self._ask(missing, function, args)
            missing = [number for number in missing if number not in answers]
            losses.update(missing)
            for number, n_lost in losses.items():
                if n_lost >= _TRIES:
                    raise RuntimeError(
                        f"Shard {number} was lost {n_lost} times while it ran {function.__name__}, the last time with "
                        f"{self._why!r}: its worker may need more memory than it has. Use more workers, or larger "
                        "ones, and more partitions."
                    )
        return [unwrap(answers[number]) for number in range(self.n_shards)]

    def change(self, key: Hashable, function: Callable[..., Result], *args: Any) -> list[Result]:
        """Map, and remember it for shards that must be made again."""
        results = self.map(function, *args)
        self._changes.add(key, function, args)
        return results

    def queue_change(self, key: Hashable, function: Callable[..., object], *args: Any) -> None:
        """Remember a change, and send it with the next question."""
        self._changes.add(key, function, args)
        for steps in self._pending.values():
            steps.append((function, args))

    def forget(self, key: Hashable) -> None:
        """Remember a change no more."""
        self._changes.forget(key)

    def close(self) -> None:
        """Let go of the shards; the cluster stays."""
        self._hosts.clear()

    def _make(self, numbers: Sequence[int]) -> None:
        """Make shards on workers; one that is lost on the way is missing afterwards."""
        if not numbers:
            return
        homes, steps = self._homes(numbers), self._changes.steps()
        submissions = {}
        for number in numbers:  # on its worker, after its rows
            where, source = {"workers": [homes[number]], "allow_other_workers": True}, self._sources[number]
            rows = self._client.compute(source.partitions, **where)
            host = self._client.submit(_Host, number, source.make, rows, steps, actor=True, pure=False, **where)
            submissions[number] = rows, host
        for number, (rows, future) in submissions.items():
            # Dask never moves what was meant for a worker that left while there was no other, so we do not wait for it.
            has_left = partial(self._has_left, homes[number])
            self._require_rows(number, rows, has_left)
            actor = self._wait_for(future.result, has_left)
            if isinstance(actor, _Lost):
                self._why = actor.error
                for one in (future, *rows):
                    one.release()
            else:
                self._hosts[number] = _Home(future, actor)
                self._pending[number] = []  # all that was left was done in the making

    def _require_rows(self, number: int, rows: Sequence[Any], has_left: Callable[[], bool]) -> None:
        """Say which rows could not be computed, where it was not for the loss of a worker."""
        from distributed import wait  # noqa: PLC0415 - optional

        self._wait_for(partial(wait, rows), has_left)
        for row in rows:
            if row.status == "error":
                error = row.exception()
                error.add_note(
                    f"This happened to the rows of shard {number}, which Dask computes from the collections."
                )
                raise error

    def _ask(self, numbers: Sequence[int], function: Callable[..., Any], args: tuple[Any, ...]) -> dict[int, Any]:
        """Return the answers of the shards that are not lost."""
        homes = {number: self._hosts[number] for number in numbers if number in self._hosts}
        self._calls.reach(home.address for home in homes.values())
        calls = {
            number: self._calls.ask(home.actor, "answer", [*self._pending[number], (function, args)])
            for number, home in homes.items()
        }
        self._pending |= {number: [] for number in homes}
        answers = {
            number: self._wait_for(call.result, partial(self._is_gone, homes[number])) for number, call in calls.items()
        }
        for number, answer in answers.items():
            if isinstance(answer, _Lost):
                self._why = answer.error
                del self._hosts[number]
        return {number: answer for number, answer in answers.items() if not isinstance(answer, _Lost)}

    def _is_gone(self, home: "_Home") -> bool:
        return home.future.status != "finished" or self._has_left(home.address)

    def _has_left(self, address: str) -> bool:
        return address not in self._client.nthreads()

    def _wait_for(self, result: Callable[..., Any], is_gone: Callable[[], bool]) -> Any:
        """Wait for a result as long as it can come."""
        while True:
            try:
                return result(timeout=_GLANCE)
            except TimeoutError as error:
                require_open(self._client)
                if is_gone():
                    return _Lost(error.with_traceback(None))
                self._require_workers()
            except Exception as error:  # noqa: BLE001 - errors of functions come as answers: this one is Dask's
                require_open(self._client)
                return _Lost(error.with_traceback(None))  # through which it would hold the arguments

    _why: Exception | None = None  # the last shard was lost

    def _homes(self, numbers: Sequence[int]) -> dict[int, str]:
        """Choose a worker for each shard: that which holds its rows, or else one with the fewest shards."""
        workers = self._require_workers()
        load = Counter(home.address for home in self._hosts.values())
        homes = {}
        for number in numbers:
            futures = _find_futures(self._sources[number].partitions)
            whose = self._client.who_has(futures).values() if futures else ()
            counts = Counter(who for one in whose for who in one)
            holder = max(counts, key=counts.__getitem__, default="")
            homes[number] = holder if holder in workers else min(workers, key=lambda one: load[one])
            load[homes[number]] += 1
        self._require_package(homes.values())
        return homes

    def _require_workers(self) -> list[str]:
        """Return the addresses of the workers, the first of which may have to be waited for."""
        end = monotonic() + self._patience
        while not (workers := sorted(self._client.nthreads())):
            if monotonic() > end:
                raise RuntimeError(
                    f"The Dask cluster at {self._client.scheduler.address} has no workers, and none joined within "
                    f"{self._patience:g} seconds. Start some, for example with cluster.scale(2), and read the logs "
                    "of workers that ended."
                )
            with suppress(TimeoutError):
                self._client.wait_for_workers(1, timeout=min(_GLANCE, self._patience))
        return workers

    def _require_package(self, workers: Iterable[str]) -> None:
        """Check that workers have this package in this version."""
        new = sorted(set(workers) - self._compatible_workers)
        if not new:
            return
        versions = self._client.run(pkgutil.resolve_name, "counterpoise:__version__", workers=new, on_error="return")
        for address, version in versions.items():
            if isinstance(version, OSError):  # it is gone, which others notice
                continue
            if version != __version__:
                if isinstance(version, ModuleNotFoundError):
                    has = f"does not have the package {version.name!r}"
                elif isinstance(version, Exception):
                    has = f"cannot import counterpoise ({type(version).__name__}: {version})"
                else:
                    has = f"has counterpoise {version}"
                raise RuntimeError(
                    f"The Dask worker {address} {has}; this process has counterpoise {__version__}. Install the same "
                    f'version on all workers: pip install "counterpoise[dask]=={__version__}" where they start.'
                )
            self._compatible_workers.add(address)


class _Home(NamedTuple):
    """Where a shard lives."""

    future: Any  # keeps the actor alive
    actor: Any

    @property
    def address(self) -> str:
        return _address_of(self.actor)


class _Lost(NamedTuple):
    """In the place of an answer: the worker is gone."""

    error: Exception


def _address_of(actor: Any) -> str:
    return str(actor._address)  # noqa: SLF001 - there is no other name for it


def _make_alone(source: Source, _rows: list[Any]) -> dict[str, Any]:
    """Return what a shard holds that is made of no partitions."""
    return source()


class _Host:
    """A shard on its worker."""

    def __init__(
        self, number: int, make: Callable[[list[Any]], dict[str, Any]], rows: list[Any], steps: list[Step]
    ) -> None:
        from distributed import get_worker  # noqa: PLC0415 - optional

        self._n_threads = int(get_worker().state.nthreads)
        # An actor that cannot be made leaves no word why: the error waits for the first question.
        self._shard = self._run(rebuild_shard, number, partial(make, rows), steps)

    def answer(self, steps: list[Step]) -> Any:
        """Return the result of the last of some functions, or the error of one."""
        return self._shard if isinstance(self._shard, TaskFailure) else self._run(apply_steps, self._shard, steps)

    def _run(self, function: Callable[..., Any], *args: Any) -> Any:
        with limit_threads(self._n_threads):
            return capture_errors(function, *args)


def _find_futures(partitions: list[Any]) -> list[Any]:
    """Return the futures that delayed partitions need: the graph of each may hold those of all."""
    from dask.optimization import cull  # noqa: PLC0415 - optional
    from distributed import futures_of  # noqa: PLC0415

    if not futures_of(partitions[:1]):
        return []
    graphs = [cull(dict(part.__dask_graph__()), part.__dask_keys__())[0] for part in partitions]
    return [future for graph in graphs for future in futures_of(list(graph.values()))]


def _do_nothing(_shard: Shard) -> None:
    """Return nothing: a call that only needs the shard to exist."""


def as_client(client: Any) -> Any:
    """Return the client that is given, or the present one; refuse one that cannot be used."""
    from distributed import Client, default_client  # noqa: PLC0415 - optional

    if client is None:
        try:
            client = default_client()
        except ValueError:
            raise ValueError(
                "client=None uses the current Dask client, and there is none. Make one, for this machine with `from "
                "distributed import Client; client = Client(threads_per_worker=1)`, or pass one."
            ) from None
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, or None for the present one; got {client!r}.")
    if client.asynchronous:
        raise TypeError(
            "client must not be asynchronous: fit waits for its workers. Pass Client(..., asynchronous=False)."
        )
    require_open(client)
    return client


def require_open(client: Any) -> None:
    """Refuse a client that is closed, or has lost its scheduler."""
    if client.status not in ("running", "connecting"):
        raise RuntimeError(
            f"The Dask client is {client.status}: its cluster was shut down, or cannot be reached. Make a new "
            "Client; a fit with a checkpoint continues from it."
        )
