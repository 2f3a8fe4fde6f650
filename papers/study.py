"""A study: many independent parts measured into one long table, in parallel and resumable, and a page made of it."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterpoise.persist.locks import FolderLock
from counterpoise.runs import ProgressCallback, RunProgress
from papers.results import ResultRow, ResultsTable, append_rows, read_rows

TABLE, PAGE = "results.parquet", "README.md"


def _always(_row: ResultRow) -> bool:
    return True


@dataclass(frozen=True)
class Study:
    """What is measured, on what, and what is written of it.

    Parameters
    ----------
    name : str
        As the command and its default folder have it.
    about : str
        Whose experiments these are, in a few words.
    parts : callable
        Returns the parts for some data sets and a number of seeds, in order: named tuples whose fields are columns of
        the table and tell parts apart.
    measure : callable
        Returns the rows of a part; must be picklable where ``n_jobs`` is not 1.
    sections : callable
        Returns the paragraphs of the page, given the table and the folder, where it leaves its figures.
    datasets : tuple of str
        Those that are run unless others are asked for.
    n_seeds : int
        Repeats, as many as the paper has.
    n_jobs : int, default=1
        Processes, -1 for one a processor.
    is_final : callable
        Tells whether a row says that its part is done. By default every row does.
    quick : Study, optional
        The same in minutes, in a folder of its own.
    full_seeds : int, optional
        Repeats of a run that goes beyond ``n_seeds``.

    Examples
    --------
    >>> import tempfile
    >>> from collections import namedtuple
    >>> from pathlib import Path
    >>> from papers.results import ResultRow
    >>> from papers.study import Study
    >>> Part = namedtuple("Part", "dataset seed")
    >>> study = Study(
    ...     "sums", "an example", lambda datasets, n_seeds: [Part(one, s) for one in datasets for s in range(n_seeds)],
    ...     lambda part: [ResultRow("sums", part.dataset, "", "sum", part.seed, None, "value", "", 2.0 * part.seed)],
    ...     lambda rows, _folder: [f"# Sums of {len(rows)} parts"], ("few",), n_seeds=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = study.run(Path(folder))
    ...     told = []
    ...     _ = study.run(Path(folder), n_seeds=3, tell=told.append)  # one part is left
    ...     print(len(told), study.write(table).read_text(), end="")
    1 # Sums of 3 parts
    """

    name: str
    about: str
    parts: Callable[[Sequence[str], int], Sequence[Any]]
    measure: Callable[[Any], list[ResultRow]]
    sections: Callable[[ResultsTable, Path], Iterable[str]]
    datasets: tuple[str, ...]
    n_seeds: int
    n_jobs: int = 1
    is_final: Callable[[ResultRow], bool] = _always
    quick: "Study | None" = None
    full_seeds: int | None = None

    def run(
        self,
        folder: Path,
        *,
        n_seeds: int | None = None,
        datasets: Sequence[str] | None = None,
        n_jobs: int | None = None,
        tell: ProgressCallback = lambda _progress: None,
    ) -> Path:
        """Measure the parts that the table in the folder does not hold yet, and return the table's path.

        Rows are appended after every part, so a killed run loses the parts in hand. ``tell`` is told how far it is.
        """
        parts = self.parts(datasets or self.datasets, n_seeds or self.n_seeds)
        n_jobs = n_jobs or self.n_jobs
        return measure_left(parts, self.measure, folder / TABLE, n_jobs=n_jobs, is_final=self.is_final, tell=tell)

    def write(self, table: Path) -> Path:
        """Write the page beside the table, of the last row of each run, and return its path."""
        rows = read_rows(table).latest() if table.exists() else ResultsTable(())
        page = table.parent / PAGE
        page.write_text("\n\n".join(self.sections(rows, table.parent)) + "\n", encoding="utf-8")
        return page


def measure_left(
    parts: Sequence[Any],
    measure: Callable[[Any], list[ResultRow]],
    table: Path,
    *,
    n_jobs: int = 1,
    is_final: Callable[[ResultRow], bool] = _always,
    tell: ProgressCallback = lambda _progress: None,
) -> Path:
    """Measure the parts of which the table has no final row, append theirs, and return the table's path.

    Parameters
    ----------
    parts : sequence of named tuples
        In order; their fields are columns of the table.
    measure, n_jobs, is_final
        As those of ``Study``.
    table : Path
        There may be none yet.
    tell : callable
        Told after every part how far it is and how long the rest may take.
    """
    table.parent.mkdir(parents=True, exist_ok=True)
    with FolderLock(table.parent):  # two that append would lose rows of each other
        left = _unfinished(parts, table, is_final)
        started = time.monotonic()
        for done, (part, rows) in enumerate(_measured(left, measure, n_jobs), start=1):
            append_rows(table, rows)
            elapsed = time.monotonic() - started
            tell(RunProgress(done, len(left), str(part), elapsed, elapsed / done * (len(left) - done)))
    return table


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


def _unfinished(parts: Sequence[Any], table: Path, is_final: Callable[[ResultRow], bool]) -> list[Any]:
    if not table.exists() or not parts:
        return list(parts)
    columns = parts[0]._fields
    done = {tuple(getattr(row, name) for name in columns) for row in read_rows(table) if is_final(row)}
    return [part for part in parts if tuple(part) not in done]


def _measured(
    parts: Sequence[Any], measure: Callable[[Any], list[ResultRow]], n_jobs: int
) -> Iterator[tuple[Any, list[ResultRow]]]:
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
