"""Running many independent parts of an experiment: in parallel, resumable, with an estimate of the time left."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from counterpoise.runs import RunProgress, Tell
from counterpoise.runs.results import ResultRow, append_rows, read_rows

Part = TypeVar("Part")


@dataclass(frozen=True)
class Experiment:
    """Parts, which are named tuples of columns of the table, and what is measured of each; called, it runs those left.

    Parameters
    ----------
    wanted : callable
        Returns the parts for some data sets and a number of seeds, in order.
    measure : callable
        Does a part; must be picklable where ``n_jobs`` is not 1.
    datasets : tuple of str
        Those that are run unless others are asked for.
    n_seeds : int
        Repeats, as many as the paper has.
    n_jobs : int, default=1
        Processes, -1 for one a processor.
    """

    wanted: Callable[[Sequence[str], int], Sequence[Any]]
    measure: Callable[[Any], list[ResultRow]]
    datasets: tuple[str, ...]
    n_seeds: int
    n_jobs: int = 1

    def __call__(
        self,
        output: Path,
        *,
        n_seeds: int | None = None,
        datasets: Sequence[str] | None = None,
        n_jobs: int | None = None,
        tell: Tell = lambda _progress: None,
    ) -> Path:
        """Run what ``results.csv`` in the folder does not hold yet, and return its path.

        Rows are appended after every part, so a killed run goes on where it was. ``tell`` is told how far it is.
        """
        table = output / "results.csv"
        parts = self.wanted(datasets or self.datasets, n_seeds or self.n_seeds)
        left = unfinished(parts, table, parts[0]._fields)
        run_parts(left, self.measure, table, n_jobs=n_jobs or self.n_jobs, tell=tell)
        return table


def unfinished(
    parts: Sequence[Part],
    table: Path,
    columns: Sequence[str],
    key: Callable[[Part], tuple[Any, ...]] = tuple,  # type: ignore[assignment]  # parts are named tuples
) -> list[Part]:
    """Return the parts of which the table has no row.

    Parameters
    ----------
    parts : sequence
        All that is wanted.
    table : Path
        The results so far; there may be none yet.
    columns : sequence of str
        The columns that tell parts apart.
    key : callable
        Returns a part's values of these columns. By default a part is the tuple of them.

    Returns
    -------
    list
    """
    done = {tuple(getattr(row, name) for name in columns) for row in read_rows(table)} if table.exists() else set()
    return [part for part in parts if key(part) not in done]


def run_parts(
    parts: Sequence[Part],
    measure: Callable[[Part], list[ResultRow]],
    table: Path,
    *,
    n_jobs: int = 1,
    tell: Tell = lambda _progress: None,
) -> None:
    """Measure every part and append its rows to the table as soon as they are there.

    Parameters
    ----------
    parts : sequence
        What is to be done, in order; see ``unfinished``.
    measure : callable
        Does a part; must be picklable where ``n_jobs`` is not 1.
    table : Path
        Where the rows go.
    n_jobs : int, default=1
        Processes, -1 for one a processor.
    tell : callable
        Told after every part how far it is and how long the rest may take.
    """
    started = time.monotonic()
    for done, (part, rows) in enumerate(_measured(parts, measure, n_jobs), start=1):
        append_rows(table, rows)
        elapsed = time.monotonic() - started
        tell(RunProgress(done, len(parts), str(part), elapsed, elapsed / done * (len(parts) - done)))


def run_alone(reproduce: Callable[..., Path], results: str, arguments: Sequence[str]) -> int:
    """Run an experiment that has a table of its own beside its paper's, and say how far it is.

    Parameters
    ----------
    reproduce : callable
        Given a folder and ``tell``, it runs what the table there does not hold yet.
    results : str
        The folder of the paper under ``docs/results``, where the table is kept unless another folder is named.
    arguments : sequence of str
        Of the command line.
    """
    parser = argparse.ArgumentParser(description=sys.modules[reproduce.__module__].__doc__)
    parser.add_argument(
        "output", type=Path, nargs="?", default=Path("docs/results", results), help="folder of the table"
    )

    def tell(progress: RunProgress) -> None:
        sys.stderr.write(f"{progress}\n")

    reproduce(parser.parse_args(arguments).output, tell=tell)
    return 0


def _measured(
    parts: Sequence[Part], measure: Callable[[Part], list[ResultRow]], n_jobs: int
) -> Iterator[tuple[Part, list[ResultRow]]]:
    if n_jobs == 1:
        for part in parts:
            yield part, measure(part)
        return
    from joblib import Parallel, delayed, parallel_config  # noqa: PLC0415 - starts processes only where asked

    # Parts are the parallelism: threads inside them would only take processors from each other.
    with parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
        yield from Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs")(
            delayed(_with_part)(measure, part) for part in parts
        )


def _with_part(measure: Callable[[Any], list[ResultRow]], part: Any) -> tuple[Any, list[ResultRow]]:
    return part, measure(part)
