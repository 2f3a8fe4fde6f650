"""Partitions of rows as Dask computes them: functions run where the rows are, and return something small.

Dask uses the scheduler that you chose: threads, processes or a cluster. What a worker loses is computed again.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from counterpoise._base.threads import limit_threads

Result = TypeVar("Result")
Part = dict[str, Any]  # what is known of the rows of one partition, by name


class Partitions(NamedTuple):
    """Delayed partitions of rows.

    Examples
    --------
    >>> from dask import delayed
    >>> from counterpoise.distributed.partitions import Partitions
    >>> Partitions([delayed([1, 2]), delayed([3])]).map(len)
    [2, 1]
    """

    tasks: Sequence[Any]

    def then(self, function: Callable[..., Any], *arguments: Any) -> "Partitions":
        """Return what a function makes of each partition, not computed yet."""
        from dask import delayed  # noqa: PLC0415 - optional

        shared = delayed(arguments, traverse=False, pure=False)  # sent once
        step = delayed(_apply, pure=False)
        return Partitions([step(function, task, shared) for task in self.tasks])

    def map(self, function: Callable[..., Result], *arguments: Any) -> list[Result]:
        """Return ``function(part, *arguments)`` of each partition, in their order."""
        from dask import compute  # noqa: PLC0415 - optional

        return list(compute(*self.then(function, *arguments).tasks))

    def persist(self) -> "Partitions":
        """Return the same partitions, computed once and kept where they are."""
        from dask import persist  # noqa: PLC0415 - optional

        return Partitions(persist(*self.tasks))

    def array(self, sizes: Sequence[int], dtype: Any, n_columns: int | None = None) -> Any:
        """Return arrays, of so many rows each, as one Dask Array."""
        import dask.array as da  # noqa: PLC0415 - optional

        more = () if n_columns is None else (n_columns,)
        parts = [da.from_delayed(task, (size, *more), dtype) for task, size in zip(self.tasks, sizes, strict=True)]
        return da.concatenate(parts)


def _apply(function: Callable[..., Result], part: Any, arguments: tuple[Any, ...]) -> Result:
    with limit_threads(1):  # partitions run side by side
        return function(part, *arguments)
