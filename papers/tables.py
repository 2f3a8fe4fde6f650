"""The results of all experiments: one long table, a row for each measured number, read and written here only.

The table is a file with fixed columns: Parquet, compressed with zstd, where its name ends in ``.parquet``, else CSV.
Numbers are written so that they read back equal. Figures and pages are functions of the table.
"""

import csv
import importlib
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from counterpoise.persist import write_atomically

__all__ = ["COLUMNS", "Average", "ResultRow", "ResultsTable", "append_rows", "read_rows", "summarize"]

_LEVEL = 0.95  # of the intervals
_SHOWN = 200  # characters of a line in a message
_PARQUET = ".parquet"
_ZSTD_LEVEL = 9  # a quarter smaller than the default; half a second for 50,000 rows
_BY = ("experiment", "dataset", "learner", "method", "alpha", "quantity", "split")


class ResultRow(NamedTuple):
    """One measured number, and all that says what it is."""

    experiment: str
    dataset: str
    learner: str
    method: str
    seed: int
    alpha: float | None  # None where the quantity has no tail fraction
    quantity: str
    split: str
    value: float
    settings: str = ""  # free text: whatever else must be known to run it again

    @property
    def run(self) -> tuple[Any, ...]:
        """Return everything but the value: two rows of one run measure the same thing twice."""
        return (*self[:8], self.settings)


@dataclass(frozen=True)
class ResultsTable:
    """Rows of results that can be narrowed down.

    Examples
    --------
    >>> from papers.tables import ResultRow, ResultsTable
    >>> rows = [ResultRow("demo", "digits", "tree", "erm", seed, None, "error", "test", 0.1 * seed) for seed in (1, 2)]
    >>> table = ResultsTable(tuple(rows))
    >>> len(table), [row.value for row in table.where(seed=2)]
    (2, [0.2])
    """

    rows: tuple[ResultRow, ...]

    def __iter__(self) -> Iterator[ResultRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, **wanted: Any) -> "ResultsTable":
        """Return the rows whose columns have the given values."""
        check_columns(wanted, "where")
        rows = (row for row in self.rows if all(getattr(row, key) == value for key, value in wanted.items()))
        return ResultsTable(tuple(rows))

    def latest(self) -> "ResultsTable":
        """Return the last row of each run, where an experiment was run again."""
        return ResultsTable(tuple({row.run: row for row in self.rows}.values()))


def check_columns(names: Iterable[str], argument: str) -> None:
    """Check that names are those of columns of the table."""
    columns = ResultRow._fields
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise ValueError(
            f"{argument} must name columns among {', '.join(columns)}; got {', '.join(map(repr, unknown))}."
        )


COLUMNS = ResultRow._fields
AnyRow: TypeAlias = ResultRow | Mapping[str, Any]


@dataclass(frozen=True)
class Average:
    """What the rows of one group say together; the spread is NaN where there is one row only."""

    group: dict[str, Any]
    mean: float
    standard_error: float
    low: float  # of the 95 % interval, by Student's t
    high: float
    count: int


def append_rows(path: str | Path, rows: Iterable[AnyRow]) -> None:
    """Add rows to the table at ``path``, which is made if there is none.

    The whole file is written anew and renamed, so a reader or an interrupt never meets half a row. Two processes must
    not append to one table at the same time: the slower would undo the faster.

    Parameters
    ----------
    path : path
        A file that has the columns of this table, or no file yet. It is Parquet where its name ends in ``.parquet``,
        else CSV.
    rows : iterable of ResultRow or mapping
        A mapping has the columns as keys; ``alpha`` and ``settings`` may be left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from papers.tables import append_rows, read_rows
    >>> row = {"experiment": "demo", "dataset": "digits", "learner": "tree", "method": "erm", "seed": 0,
    ...        "quantity": "error", "split": "test", "value": 0.1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     append_rows(Path(folder) / "results.parquet", [row])
    ...     append_rows(Path(folder) / "results.parquet", [row | {"seed": 1, "value": 0.2}])
    ...     [(row.seed, row.value) for row in read_rows(Path(folder) / "results.parquet")]
    [(0, 0.1), (1, 0.2)]
    """
    path = Path(path)
    new_rows = [_checked(row) for row in rows]
    if path.suffix == _PARQUET:
        old_rows = _read_parquet(path) if path.exists() else ()
        write_atomically(path, [_as_parquet([*old_rows, *new_rows])])
    else:
        write_atomically(path, [_existing(path) or _as_csv([COLUMNS]), _as_csv(new_rows)])


def read_rows(path: str | Path) -> ResultsTable:
    """Return the table at ``path``; see ``append_rows`` for an example.

    Parameters
    ----------
    path : path
        A file that ``append_rows`` wrote.

    Returns
    -------
    ResultsTable
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"path must be a results table; there is no file {path}. append_rows makes one.")
    if path.suffix == _PARQUET:
        return ResultsTable(_read_parquet(path))
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            lines = csv.reader(stream)
            _check_header(next(lines, []), path)
            return ResultsTable(tuple(_parsed(line, lines.line_num, path) for line in lines))
    except (csv.Error, UnicodeDecodeError) as error:  # a value without an end, say
        raise ValueError(
            f"{path} must be a results table, as append_rows writes it; it is no CSV ({error})."
        ) from error


def summarize(rows: Iterable[ResultRow], by: Sequence[str] = _BY) -> list[Average]:
    """Return the mean of each group with its standard error and 95 % interval (Student's t).

    Parameters
    ----------
    rows : iterable of ResultRow, or a ResultsTable
        No run may be in it twice: repeating a measurement with the same seed tells nothing new, but would narrow
        the interval.
    by : sequence of str
        The columns that tell groups apart; by default all but ``seed``, ``value`` and ``settings``.

    Returns
    -------
    list of Average
        In the order in which the groups first appear.

    Examples
    --------
    >>> from papers.tables import ResultRow, summarize
    >>> rows = [ResultRow("demo", "digits", "tree", "erm", k, None, "error", "test", 0.1 * k) for k in (1, 2, 3)]
    >>> found = summarize(rows, by=["method"])[0]
    >>> found.group, found.count, round(found.mean, 3), round(found.low, 3), round(found.high, 3)
    ({'method': 'erm'}, 3, 0.2, -0.048, 0.448)
    """
    check_columns(by, "by")
    groups: dict[tuple[Any, ...], list[float]] = {}
    seen: set[tuple[Any, ...]] = set()
    for row in rows:
        if row.run in seen:
            raise ValueError(
                f"rows must hold each run once; this one is there twice: {row._replace(value=math.nan)}. "
                "Keep the last of each with ResultsTable.latest()."
            )
        seen.add(row.run)
        groups.setdefault(tuple(getattr(row, column) for column in by), []).append(row.value)
    return [_average(dict(zip(by, key, strict=True)), values) for key, values in groups.items()]


def _average(group: dict[str, Any], values: list[float]) -> Average:
    from scipy.stats import t  # noqa: PLC0415 - heavy

    count = len(values)
    with np.errstate(invalid="ignore"):  # an infinite value has no spread, which NaN says
        mean = float(np.mean(values))
        error = float(np.std(values, ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    half = error * float(t.ppf((1.0 + _LEVEL) / 2.0, count - 1)) if count > 1 else math.nan
    return Average(group, mean, error, mean - half, mean + half, count)


def _as_parquet(rows: Sequence[ResultRow]) -> bytes:
    """Return rows as a Parquet file: text, whole numbers and floats, with a null where alpha is None."""
    arrow, parquet = _arrow()
    columns = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
    stream = io.BytesIO()
    parquet.write_table(
        arrow.table(columns, schema=_schema(arrow)), stream, compression="zstd", compression_level=_ZSTD_LEVEL
    )
    return stream.getvalue()


def _read_parquet(path: Path) -> tuple[ResultRow, ...]:
    """Return the rows of a Parquet file; refuse a file that is something else."""
    arrow, parquet = _arrow()
    try:
        table = parquet.ParquetFile(io.BytesIO(path.read_bytes())).read()
    except (arrow.ArrowException, OSError) as error:  # a file that is torn, or of another kind
        raise ValueError(
            f"{path} must be a results table, as append_rows writes it; it is no whole Parquet file ({error}). "
            "Use another path: the file is left as it is."
        ) from error
    _check_header(table.column_names, path)
    if not table.schema.equals(_schema(arrow)):
        raise ValueError(
            f"{path} must be a results table with these types of columns: {_types(_schema(arrow))}; "
            f"got {_types(table.schema)}. Use another path: the file is left as it is."
        )
    return tuple(map(ResultRow._make, zip(*(table[name].to_pylist() for name in COLUMNS), strict=True)))


def _arrow() -> tuple[Any, Any]:
    """Return pyarrow and its reader and writer of Parquet."""
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        message = 'A results table in Parquet needs pyarrow: pip install "counterpoise[data]".'
        raise ImportError(message) from error


def _schema(arrow: Any) -> Any:
    numbers = {"seed": arrow.int64(), "alpha": arrow.float64(), "value": arrow.float64()}
    return arrow.schema([(name, numbers.get(name, arrow.string())) for name in COLUMNS])


def _types(schema: Any) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _as_csv(rows: Iterable[Sequence[Any]]) -> bytes:
    """Return rows as CSV: None as an empty field, a float by repr, the shortest text that reads back equal."""
    stream = io.StringIO(newline="")
    plain = csv.writer(stream, lineterminator="\n")
    # The plain writer quotes only the line ending that it writes itself, but a reader takes a lone \r for one too.
    careful = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        has_return = any("\r" in cell for cell in row if isinstance(cell, str))
        (careful if has_return else plain).writerow(row)
    return stream.getvalue().encode("utf-8")


def _existing(path: Path) -> bytes:
    """Return the bytes of the table so far, or none; refuse a file that is something else."""
    if not path.exists() or path.stat().st_size == 0:
        return b""
    with path.open(encoding="utf-8", newline="", errors="replace") as stream:
        _check_header(next(csv.reader(stream), []), path)
    content = path.read_bytes()
    return content if content.endswith(b"\n") else content + b"\n"


def _check_header(header: Sequence[str], path: Path) -> None:
    if tuple(header) != COLUMNS:
        raise ValueError(
            f"{path} must be a results table, with the header {','.join(COLUMNS)}; "
            f"got {','.join(header)[:_SHOWN]!r}. Use another path: the file is left as it is."
        )


def _checked(row: AnyRow) -> ResultRow:
    """Return a row of plain values, with the types that its columns have."""
    if not isinstance(row, ResultRow):
        check_columns(row, "a row")
        missing = [name for name in COLUMNS if name not in row and name not in ("alpha", "settings")]
        if missing:
            raise ValueError(f"a row must have the columns {', '.join(COLUMNS)}; got one without {', '.join(missing)}.")
        row = ResultRow(**{"alpha": None} | dict(row))
    for name, (kind, words) in _WANTED.items():
        value = getattr(row, name)
        if isinstance(value, bool) or not isinstance(value, kind):
            raise TypeError(f"column {name} must hold {words}; got {value!r}.")
    alpha = None if row.alpha is None else float(row.alpha)
    return row._replace(seed=int(row.seed), alpha=alpha, value=float(row.value))


_WANTED: dict[str, tuple[Any, str]] = dict.fromkeys(COLUMNS, (str, "text")) | {
    "seed": (Integral, "a whole number"),
    "alpha": ((Real, type(None)), "a number, or None"),
    "value": (Real, "a number"),
}


def _parsed(line: Sequence[str], number: int, path: Path) -> ResultRow:
    try:
        texts: dict[str, Any] = dict(zip(COLUMNS, line, strict=True))
        alpha = float(texts["alpha"]) if texts["alpha"] else None
        return ResultRow(**texts | {"seed": int(texts["seed"]), "alpha": alpha, "value": float(texts["value"])})
    except ValueError as error:
        raise ValueError(
            f"{path}, line {number}: expected {len(COLUMNS)} values, with numbers for seed, alpha and value; "
            f"got {str(line)[:_SHOWN]}. Mend or delete that line."
        ) from error
