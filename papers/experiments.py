"""The framework of all experiments: parts are measured into one long table, and a page has blocks made of it.

An experiment has a table ``tables/NAME.parquet`` below a folder, of which ``docs/results`` is the stored one. Pages in
that folder are written by hand, but for blocks between the marks ``<!-- NAME: title -->`` and ``<!-- end -->``: these
are functions of the table, and so are the figures. What a run does not change, it does not print.
"""

import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.persist import write_atomically
from counterpoise.persist.locks import FolderLock
from counterpoise.runs import ProgressCallback, RunProgress
from papers.arrays import FloatArray
from papers.tables import ResultRow, ResultsTable, append_rows, read_rows

STORED = Path(__file__).parents[1] / "docs" / "results"
TABLES, FIGURES = "tables", "figures"
_END = "<!-- end -->"
Blocks = Mapping[str, str]


def _always(_row: ResultRow) -> bool:
    return True


def _no_figures(_rows: ResultsTable) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class Experiment:
    """What is measured, on what, and what is made of it.

    Parameters
    ----------
    name : str
        As the command and the table have it.
    about : str
        The question, in a few words.
    parts : callable
        Returns the parts for some data sets and a number of seeds, in order: named tuples whose fields are columns of
        the table and tell parts apart.
    measure : callable
        Returns the rows of a part; must be picklable where several processes measure.
    blocks : callable
        Returns the blocks of the page by their titles, given the table.
    datasets : tuple of str
        Those that are measured unless others are asked for.
    n_seeds : int
        Repeats of a whole run.
    figures : callable, optional
        Returns figures of Matplotlib by the names of their files, given the table.
    is_final : callable
        Tells whether a row says that its part is done. By default every row does.
    quick : Experiment, optional
        The same in a minute or less. By default the first data set and one seed.

    Examples
    --------
    >>> import tempfile
    >>> from collections import namedtuple
    >>> from pathlib import Path
    >>> from papers.experiments import Experiment
    >>> from papers.tables import ResultRow
    >>> Part = namedtuple("Part", "dataset seed")
    >>> sums = Experiment(
    ...     "sums", "an example", lambda sets, n_seeds: [Part(name, s) for name in sets for s in range(n_seeds)],
    ...     lambda part: [ResultRow("sums", part.dataset, "", "sum", part.seed, None, "value", "", 2.0 * part.seed)],
    ...     lambda rows: {"mean": f"{sum(row.value for row in rows) / len(rows):g}"}, ("few",), n_seeds=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "page.md").write_text("The mean is <!-- sums: mean --> ? <!-- end -->.")
    ...     sums.run(Path(folder))
    ...     told = []
    ...     sums.run(Path(folder), n_seeds=3, tell=told.append)  # one part is left
    ...     blocks = sums.write(Path(folder))
    ...     print(len(told), blocks, Path(folder, "page.md").read_text())
    1 {'mean': '2'} The mean is <!-- sums: mean -->
    <BLANKLINE>
    2
    <BLANKLINE>
    <!-- end -->.
    """

    name: str
    about: str
    parts: Callable[[Sequence[str], int], Sequence[Any]]
    measure: Callable[[Any], Iterable[ResultRow]]
    blocks: Callable[[ResultsTable], Blocks]
    datasets: tuple[str, ...]
    n_seeds: int
    figures: Callable[[ResultsTable], Mapping[str, Any]] = _no_figures
    is_final: Callable[[ResultRow], bool] = field(default=_always, kw_only=True)
    quick: "Experiment | None" = field(default=None, kw_only=True)

    def quick_form(self) -> "Experiment":
        """Return the reduced form."""
        return self.quick or replace(self, datasets=self.datasets[:1], n_seeds=1)

    def table(self, folder: Path) -> Path:
        """Return where the table is."""
        return folder / TABLES / f"{self.name}.parquet"

    def rows(self, folder: Path = STORED) -> ResultsTable:
        """Return what was measured: the last row of each run."""
        table = self.table(folder)
        return read_rows(table).latest() if table.exists() else ResultsTable(())

    def run(
        self,
        folder: Path,
        *,
        n_seeds: int | None = None,
        datasets: Sequence[str] | None = None,
        n_jobs: int = 1,
        tell: ProgressCallback = lambda _progress: None,
    ) -> None:
        """Measure the parts that the table does not hold yet; ``tell`` is told how far it is.

        Rows are appended after every part, so that a killed run loses the parts in hand and goes on with the next.
        """
        table = self.table(folder)
        table.parent.mkdir(parents=True, exist_ok=True)
        with FolderLock(table.parent):  # two that append would lose rows of each other
            parts = self.parts(datasets or self.datasets, n_seeds or self.n_seeds)
            left = self._left(parts, read_rows(table) if table.exists() else ResultsTable(()))
            started = time.monotonic()
            for done, (part, rows) in enumerate(_measured(left, self.measure, n_jobs), start=1):
                append_rows(table, rows)
                elapsed = time.monotonic() - started
                tell(RunProgress(done, len(left), str(part), elapsed, elapsed / done * (len(left) - done)))

    def _left(self, parts: Sequence[Any], rows: ResultsTable) -> list[Any]:
        columns = parts[0]._fields if parts else ()
        done = {tuple(getattr(row, name) for name in columns) for row in rows if self.is_final(row)}
        return [part for part in parts if tuple(part) not in done]

    def write(self, folder: Path) -> Blocks:
        """Draw the figures, put the blocks between their marks in the pages of the folder, and return the blocks."""
        rows = self.rows(folder)
        if not len(rows) and self.parts(self.datasets, 1):  # an experiment without parts is made of other tables
            return {}
        for name, figure in self.figures(rows).items():
            save(figure, folder / FIGURES / name)
        blocks = self.blocks(rows)
        for page in sorted(folder.glob("*.md")):
            before = page.read_text(encoding="utf-8")
            after = filled(before, self.name, blocks)
            if after != before:
                write_atomically(page, [after.encode()])
        return blocks


def filled(page: str, name: str, blocks: Blocks) -> str:
    r"""Return the text of a page with the blocks of an experiment between their marks; blocks without a mark are left.

    Examples
    --------
    >>> from papers.experiments import filled
    >>> filled("<!-- sums: mean -->\nold\n<!-- end -->\n", "sums", {"mean": "new", "spread": "unused"})
    '<!-- sums: mean -->\n\nnew\n\n<!-- end -->\n'
    """
    for title, text in blocks.items():
        start = f"<!-- {name}: {title} -->"
        before, mark, after = page.partition(start)
        if mark:
            page = f"{before}{start}\n\n{text}\n\n{_END}{after.partition(_END)[2]}"
    return page


def marks(page: str) -> list[tuple[str, str]]:
    """Return the experiment and the title of each block of a page."""
    return re.findall(r"<!-- ([\w-]+): ([^>]+?) -->", page)


def _measured(
    parts: Sequence[Any], measure: Callable[[Any], Iterable[ResultRow]], n_jobs: int
) -> Iterator[tuple[Any, list[ResultRow]]]:
    if n_jobs == 1:
        for part in parts:
            yield _with_part(measure, part)
        return
    from joblib import Parallel, delayed, parallel_config  # noqa: PLC0415 - starts processes only where asked

    # Parts are the parallelism: threads inside them would only take processors from each other.
    with parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
        yield from Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs")(
            delayed(_with_part)(measure, part) for part in parts
        )


def _with_part(measure: Callable[[Any], Iterable[ResultRow]], part: Any) -> tuple[Any, list[ResultRow]]:
    with warnings.catch_warnings():  # thousands of fits: what they caution about is in the table
        warnings.simplefilter("ignore")
        return part, list(measure(part))


def long_rows(
    experiment: str, dataset: str, method: str, seed: int, quantities: Mapping[str, float], **columns: Any
) -> list[ResultRow]:
    """Return a row for each of several quantities; ``columns`` are learner, alpha, split and settings."""
    where = {"learner": "", "alpha": None, "split": "test"} | columns
    return [
        ResultRow(
            experiment=experiment, dataset=dataset, method=method, seed=seed, quantity=name, value=float(value), **where
        )
        for name, value in quantities.items()
    ]


def values(rows: Iterable[ResultRow], *columns: str) -> dict[tuple[Any, ...], FloatArray]:
    """Return the values of rows by the entries of some columns, in the order of the seeds.

    Examples
    --------
    >>> from papers.experiments import values
    >>> from papers.tables import ResultRow
    >>> rows = [ResultRow("demo", "digits", "", "erm", seed, None, "error", "test", seed / 2) for seed in (1, 0)]
    >>> values(rows, "dataset", "method")
    {('digits', 'erm'): array([0. , 0.5])}
    """
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in sorted(rows, key=lambda row: row.seed):
        found.setdefault(tuple(getattr(row, column) for column in columns), []).append(row.value)
    return {key: np.array(numbers) for key, numbers in found.items()}


def with_error(numbers: FloatArray, digits: int = 3, *, sign: str = "") -> str:
    """Return a mean with its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from papers.experiments import with_error
    >>> with_error(np.array([0.1, 0.2, 0.3])), with_error(np.array([0.1]), sign="+")
    ('0.200 ± 0.058', '+0.100')
    """
    mean = f"{numbers.mean():{sign}.{digits}f}"
    return mean if numbers.size == 1 else f"{mean} ± {numbers.std(ddof=1) / np.sqrt(numbers.size):.{digits}f}"


def panels(n_panels: int, *, size: tuple[float, float], n_columns: int = 4) -> tuple[Any, list[Any]]:
    """Return a figure and its panels, each of a size in inches, so many in a row."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional package

    n_columns = min(n_panels, n_columns)
    n_rows = -(-n_panels // n_columns)
    figure = Figure(figsize=(size[0] * n_columns, size[1] * n_rows), layout="constrained")
    axes = [figure.add_subplot(n_rows, n_columns, place + 1) for place in range(n_panels)]
    for axis in axes:
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Any, path: Path) -> None:
    """Write a figure so that the same numbers give the same file."""
    import matplotlib as mpl  # noqa: PLC0415 - an optional package

    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "the same file each time", "font.family": "sans-serif"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
