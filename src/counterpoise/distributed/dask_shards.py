"""Shards on the workers of a Dask cluster: an actor holds each.

An actor is lost with its worker. Its shard is then made again on another one, from its source and the changes so far.
"""

from asyncio import CancelledError
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Self, TypeVar

from counterpoise._base.cpus import threads_limited
from counterpoise._base.shards import Failed, Remembered, Shard, made_again, required, tried

Result = TypeVar("Result")
Load = Callable[[list[Any]], dict[str, Any]]  # makes what a shard holds of its partitions

_LOST = (OSError, RuntimeError, CancelledError)  # what Dask says of an actor whose worker is gone
_TRIES = 5  # times that a shard is made again for one question


class DaskShards:
    """Shards on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    loads : sequence of callables
        Each makes what a shard holds, given its partitions.
    partitions : sequence of lists of delayed objects
        Those of each shard.
    """

    is_here = False

    def __init__(self, client: Any, loads: Sequence[Load], partitions: Sequence[list[Any]]) -> None:
        self._client, self._loads, self._partitions = client, loads, partitions
        self.n_shards, self._remembered = len(loads), Remembered()
        self._require_workers()
        self._require_package()
        started = [self._start(number) for number in range(self.n_shards)]
        self._actors = [self._ready(number, actor) for number, actor in enumerate(started)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(self, function: Callable[..., Result], *given: Any, light: bool = False) -> list[Result]:  # noqa: ARG002
        """Ask all actors, then wait for all."""
        asked = [_asked(actor, function, given) for actor in self._actors]
        answers = [self._answer(number, one, function, given) for number, one in enumerate(asked)]
        return [required(answer) for answer in answers]

    def change(self, key: Hashable, function: Callable[..., Result], *given: Any) -> list[Result]:
        """Map, and remember it for shards that must be made again."""
        found = self.map(function, *given)
        self._remembered.add(key, function, given)
        return found

    def forget(self, key: Hashable) -> None:
        """Remember a change no more."""
        self._remembered.forget(key)

    def close(self) -> None:
        """Let the actors go."""
        self._actors = []

    def _start(self, number: int) -> Any:
        """Ask a worker to make a shard; its partitions are computed where they are needed, and not kept beside it."""
        workers = sorted(self._client.scheduler_info(n_workers=-1)["workers"])
        parts = self._client.compute(self._partitions[number])
        return self._client.submit(
            _Actor,
            number,
            self._loads[number],
            parts,
            self._remembered.steps(),
            actor=True,
            pure=False,
            workers=[workers[number % len(workers)]] if workers else None,
            allow_other_workers=True,
        )

    def _ready(self, number: int, started: Any) -> Any:
        """Return an actor, with its shard made, as often as it takes."""
        for _ in range(_TRIES):
            actor = _waited(started)
            answer = None if actor is None else _waited(_asked(actor, None, ()))
            if answer is not None:
                required(answer)
                return actor
            self._require_workers()
            started = self._start(number)
        raise RuntimeError(
            f"Shard {number} could not be made in {_TRIES} tries: its workers were lost each time. They may need more "
            "memory than they have: use more partitions and more workers, or look at the logs of the workers."
        )

    def _answer(self, number: int, asked: Any, function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        for _ in range(_TRIES):
            answer = _waited(asked)
            if answer is not None:
                return answer.value if isinstance(answer, _Answer) else answer
            self._require_workers()
            self._actors[number] = self._ready(number, self._start(number))
            asked = _asked(self._actors[number], function, given)
        raise RuntimeError(
            f"The worker of shard {number} was lost {_TRIES} times while it ran {function.__name__}. It may need more "
            "memory than it has: use more partitions and more workers, or look at the logs of the workers."
        )

    def _require_workers(self) -> None:
        from dask import config  # noqa: PLC0415 - optional
        from distributed import TimeoutError as NoWorker  # noqa: PLC0415

        patience = config.get("distributed.comm.timeouts.connect")
        try:
            self._client.wait_for_workers(1, timeout=patience)
        except (NoWorker, TimeoutError):
            raise RuntimeError(
                f"The Dask cluster {self._client.scheduler.address} has no workers, and none came in {patience}. Start "
                "some, as with cluster.scale(2), and fit again."
            ) from None

    def _require_package(self) -> None:
        missing = [worker for worker, is_there in self._client.run(_PROBE, on_error="ignore").items() if not is_there]
        if missing:
            raise RuntimeError(
                f"The Dask worker {missing[0]} cannot import counterpoise ({len(missing)} of the workers cannot): "
                "install the same version of counterpoise on all workers as here."
            )


def _written_out() -> Callable[[], bool]:
    """Return a function that travels by its code and not by the name of this package, which may not be there."""
    space: dict[str, Any] = {}
    source = "def probe():\n    try:\n        import counterpoise\n    except ImportError:\n        return False\n"
    exec(source + "    return True\n", space)  # noqa: S102 - as written here
    return space["probe"]  # type: ignore[no-any-return]


_PROBE = _written_out()


class _Answer:
    """An answer, which may be None, beside none at all."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Actor:
    """A shard on a worker."""

    def __init__(self, number: int, load: Load, parts: list[Any], steps: list[Any]) -> None:
        self._number, self._limit = number, _own_threads()
        # An actor that cannot be made leaves no word why: the error waits for the first question.
        self._shard: Any = tried(self._made, load, parts, steps)

    def _made(self, load: Load, parts: list[Any], steps: list[Any]) -> Shard:
        with threads_limited(self._limit):
            return made_again(self._number, lambda: load(parts), steps)

    def call(self, function: Callable[..., Any] | None, given: tuple[Any, ...]) -> Any:
        if isinstance(self._shard, Failed) or function is None:
            return self._shard if isinstance(self._shard, Failed) else _Answer(None)
        with threads_limited(self._limit):
            answer = tried(function, self._shard, *given)
        return answer if isinstance(answer, Failed) else _Answer(answer)


def _own_threads() -> int:
    from distributed import get_worker  # noqa: PLC0415 - optional

    return int(get_worker().state.nthreads)


def _asked(actor: Any, function: Callable[..., Any] | None, given: tuple[Any, ...]) -> Any:
    """Put a question to an actor; None where it is lost."""
    try:
        return actor.call(function, given)
    except _LOST:
        return None


def _waited(asked: Any) -> Any:
    """Return what comes of something asked; None where the worker is lost. Errors of functions come as answers."""
    try:
        return None if asked is None else asked.result()
    except _LOST:
        return None
