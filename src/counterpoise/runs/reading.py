"""CSV and Parquet files as data frames: read by pyarrow, only the columns needed, pandas at the border.

Texts become categoricals, numbers stay as narrow as they are, a missing number is NaN. What is not a number, a text or
a truth value is refused.

One rule says what is missing, in every file: an empty field or text, null, None, NaN and NaT. The words NA, null, None
and nan are values like any others, but for one case: in a column of numbers of a CSV file, which R and others write
them to, they stand for missing numbers. RunColumns whose values are compared, labels and groups, are never read so.

Code that reads files says so once, ``with written_as(...)``; options of a command win over keys of a goals file.
"""

import codecs
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from counterpoise._base.checks import warn_caller
from counterpoise._base.text import short
from counterpoise.goals.terms import text_of
from counterpoise.persist.file_access import open_regular
from counterpoise.runs.errors import ColumnError, DataError, check_columns, listed, twice_in
from counterpoise.runs.places import check_data_file
from counterpoise.runs.settings import Written, how_written, is_parquet

SEPARATORS = (";", "\t", "|")  # beside commas
_FORMAT_BYTES = 1 << 16  # of a file, from which its format is guessed
_DECIMALS = re.compile(r"-?[0-9]+,[0-9]+")
_POINTS = re.compile(r"-?[0-9]+\.[0-9]+")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\[\s*[\[{]|\{\s*\"|\[\s*\])")
_HOW = "{key} under [data] of a goals file, or --{key} on the command line"


def refuse_other_kinds(path: Path) -> None:
    """Refuse a file that is not CSV in UTF-8, where its first bytes show what it is."""
    with open_regular(path) as stream:
        start = stream.read(64)
    if start.startswith(_UTF_16) and how_written().encoding is None:
        how = _HOW.format(key="encoding")
        raise DataError(f"{path} must be UTF-8 text; it is UTF-16. Say so with {how} (utf-16), or save it as UTF-8.")
    if path.suffix.lower() in {".json", ".jsonl", ".ndjson"} or _JSON.match(start):
        raise DataError(
            f"{path} must be a CSV or Parquet file; it holds JSON. Make a table of it first, as in "
            f"pandas.read_json({path.name!r}).to_parquet({path.stem + '.parquet'!r})."
        )
    if start.startswith(b"PK\x03\x04"):
        raise DataError(
            f"{path} must be a CSV or Parquet file; it is an Excel workbook or a zip file. Save the sheet as CSV first."
        )


def refuse_other_separators(path: Path, names: list[str] | None = None) -> None:
    """Say how to name what stands between columns, where nobody did and a header of one column shows it."""
    if how_written().delimiter is not None:
        return
    if names is None:  # the file cannot be read: its header as it stands
        with open_regular(path) as stream:
            line = stream.read(_LINE).decode(how_written().encoding or "utf-8", errors="replace").partition("\n")[0]
        names = [] if "," in line else [line]
    other = next((mark for mark in SEPARATORS if len(names) == 1 and mark in names[0]), None)
    if other is not None:
        how = _HOW.format(key="delimiter")
        raise DataError(
            f"{path} must have commas between columns; its header has {other!r}. Name it with {how}, or save the file "
            "with commas, or as Parquet."
        )


def guess_format(path: Path) -> Written:
    """Return how a CSV file seems to be written, by its first lines."""
    with open_regular(path) as stream:
        start = stream.read(_FORMAT_BYTES)
    encoding = how_written().encoding or ("utf-16" if start.startswith(_UTF_16) else None)
    header, *lines = start.decode(encoding or "utf-8", errors="replace").splitlines() or [""]
    counts = {mark: header.count(mark) for mark in (",", *SEPARATORS)}
    most = how_written().delimiter or max(counts, key=lambda mark: counts[mark])
    if most == "," or not counts.get(most, 1):
        return Written(encoding=encoding)
    cells = [cell.strip() for line in lines[:-1] for cell in line.split(most)]
    has_commas, has_points = (any(map(kind.fullmatch, cells)) for kind in (_DECIMALS, _POINTS))
    return Written(most, encoding, "," if has_commas and not has_points else None)


_CHUNK = 1 << 18  # bytes
_QUOTE = b'"'
_MOST = 1 << 30  # bytes that are read once more for the line of a quote
_SHOWN = 60  # characters of a line


def has_odd_quotes(path: Path) -> bool:
    """Tell whether the number of quotes in a file is odd, as it is where one of a pair is lacking."""
    count = 0
    with open_regular(path) as stream:
        while chunk := stream.read(_CHUNK):
            count += chunk.count(_QUOTE)
    return count % 2 == 1


def refuse_open_quotes(path: Path) -> None:
    """Say in which line a quote opens that is never closed, or only by that of another field; else do nothing."""
    with open_regular(path) as stream:
        content, is_cut = stream.read(_MOST), bool(stream.read(1))
    encoding = how_written().encoding
    # One byte is one character where no encoding is named: quotes, commas and ends of lines are the same in UTF-8.
    text = content.decode(encoding or "latin-1", errors="replace")
    place = _first_open_quote(text, how_written().delimiter or ",", is_cut=is_cut)
    if place is None:
        return
    line = text[text.rfind("\n", 0, place) + 1 : text.find("\n", place) % (len(text) + 1)].rstrip("\r")
    shown = line if encoding else line.encode("latin-1").decode(errors="replace")
    raise DataError(
        f"Line {text.count(chr(10), 0, place) + 1} of {path} opens a quote that is not closed, so that the lines "
        f"behind it count as part of one field: {short(shown, _SHOWN)!r}. Close it; a quote within a field in quotes "
        "is written twice."
    )


def _first_open_quote(text: str, delimiter: str, *, is_cut: bool) -> int | None:
    """Return the place of the first quote that begins a field over several lines and does not end it.

    A field is in quotes where its first character is one, and ends with the next that is not doubled. Behind that the
    next field or the next line must begin: where anything else stands there, the quote was to open another field.
    """
    ends = rf"{re.escape(delimiter)}\n\r"
    field = re.compile(
        rf'(?:\A(?:\ufeff|\u00ef\u00bb\u00bf)?|(?<=[{ends}]))"[^"]*(?:""[^"]*)*(?P<end>"?)(?P<rest>[^{ends}]?)'
    )
    for match in field.finditer(text):
        if match["rest"] and "\n" in match.group():
            return match.start()
        if not match["end"] and not is_cut:
            return match.start()
    return None


_TRUE, _FALSE = ("True", "TRUE", "true"), ("False", "FALSE", "false")  # as Arrow reads truth values in CSV files
NO_NUMBERS = ("NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A")  # missing where all others are numbers
_BLOCK = 1 << 24  # bytes of a CSV file from which types are inferred
_NO_COLUMN = re.compile(r"|__index_level_\d+__")  # the index that pandas writes beside the columns
_MOST_COLUMNS = 100_000  # each costs some fifty microseconds, however few its rows
_NUMBER = 8  # bytes
_GLANCE = 100  # rows
_ROWS, _BUFFER = 1 << 18, 1 << 20  # rows, and bytes of each column, read at once where rows are read in parts
_LINE = 1 << 14  # bytes of a header that are searched for the separator of columns
_ENCODED = (
    " Save the file as UTF-8, or name its encoding, such as latin-1, with encoding under [data] of a goals file, or "
    "--encoding on the command line."
)


class WordsAmongNumbers(UserWarning):
    """A column of a CSV file holds numbers, but for words such as NA."""


@contextmanager
def collect_warnings(kind: type[Warning]) -> Iterator[list[Warning | str]]:
    """Collect warnings of a kind instead of showing them; others are shown when the context ends."""
    collected: list[Warning | str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", kind)
        yield collected
    for one in caught:
        if issubclass(one.category, kind):
            collected.append(one.message)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def column_names(path: Path) -> list[str]:
    """Return the columns of a file that have a name, after checking that it is one that can be read."""
    names: list[str] = [name for name in _guarded(path, _names) if not _NO_COLUMN.fullmatch(name)]
    if not is_parquet(path):
        if any("\n" in name for name in names):
            refuse_open_quotes(path)
        refuse_other_separators(path, names)
    twice = twice_in(names)
    if twice is not None:
        raise DataError(f"{path} must have each column once; {twice!r} is there {names.count(twice)} times.")
    return names


def read_frame(
    path: Path,
    columns: Sequence[str],
    *,
    missing: Sequence[str] = (),
    texts: Collection[str] = (),
    values: Collection[str] = (),
) -> Any:
    """Return some columns of a file as a pandas data frame.

    Parameters
    ----------
    path : Path
        A Parquet file by its ending, else CSV with a header.
    columns : sequence of str
        Those wanted, in this order.
    missing : sequence of str
        Texts that stand for a missing value, beside empty ones.
    texts : collection of str
        Columns of texts: CSV has no types, and a few rows of ``01`` and ``02`` look like numbers.
    values : collection of str
        RunColumns whose values are compared, labels and groups: words such as NA, and dates, are values there.
    """
    check_columns(columns, column_names(path), path)
    return _frame(_table(path, columns, missing, texts, values), path, missing, {*texts, *values})


def _frame(
    table: Any, path: Path, missing: Sequence[str], values: Collection[str], refused: list[str] | None = None
) -> Any:
    """Return a table as a data frame; where ``refused`` is given, columns of dates, lists and the like go there."""
    absent, made = {"", *missing}, {}
    for name in table.column_names:
        try:
            made[name] = _as_column(table[name], name, path, absent, is_compared=name in values)
        except ColumnError:
            if refused is None:
                raise
            refused.append(name)
    return pd.DataFrame(made, copy=False)


def count_rows(path: Path) -> int:
    """Return how many rows a Parquet file says that it has."""
    return int(_guarded(path, pq.read_metadata).num_rows)


def require_memory(files: Sequence[Path], columns: Sequence[str]) -> None:
    """Refuse Parquet files whose rows, as they say themselves, take more than there is memory."""
    n_rows = sum(count_rows(path) for path in files if is_parquet(path))
    if n_rows * len(columns) * _NUMBER > _memory():
        one, several = f"{files[0]} says that it has", f"{len(files)} data files, {files[0]} the first, have"
        raise DataError(
            f"{one if len(files) == 1 else several} {n_rows} rows, of which {len(columns)} columns take more than the "
            "memory here. Use fewer columns or rows, or counterpoise.distributed over Dask."
        )


def read_usable(path: Path, columns: Sequence[str], *, values: Collection[str]) -> tuple[Any, list[str]]:
    """Return as a data frame those columns that hold numbers or texts, and the names of the others.

    ``values`` are columns whose values are compared, as for ``read_frame``.
    """
    refused: list[str] = []
    return _frame(_table(path, columns, (), (), values), path, (), values, refused), refused


def _table(
    path: Path, columns: Sequence[str], missing: Sequence[str], texts: Collection[str], values: Collection[str]
) -> Any:
    table = _guarded(path, lambda one: _read(one, list(columns), missing, frozenset(texts)))
    if table.num_rows == 0:
        raise DataError(f"{path} must hold rows; it has a header only.")
    if is_parquet(path):
        return table
    compared = [name for name in columns if name in values and name not in texts]
    lost = [name for name in compared if _has_lost_words(table[name]) or _may_have_merged(table[name])]
    if lost:
        again = _guarded(path, lambda one: _read(one, lost, missing, lost))
        for name in lost:
            if _has_lost_words(table[name]) or _n_values(again[name]) > _n_values(table[name]):
                table = table.set_column(columns.index(name), name, again[name])
    for place, name in enumerate(columns):
        if name not in texts and name not in values:
            table = table.set_column(place, name, _as_numbers(table[name], name, path))
    return table


def _has_lost_words(column: Any) -> bool:
    """Tell whether words of a CSV file were read as times, or as numbers that are none: ``nan``, and no empty field."""
    has_nan = pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py()
    return pa.types.is_temporal(column.type) or bool(has_nan)


def _may_have_merged(column: Any) -> bool:
    """Tell whether words of a CSV file that are not the same may have become one value, as 1 and 01, true and True."""
    return bool(pa.types.is_integer(column.type) or pa.types.is_boolean(column.type))


def _n_values(column: Any) -> int:
    return int(pc.count_distinct(column).as_py())


def _as_numbers(column: Any, name: str, path: Path) -> Any:
    """Return a column without words such as NA where all else are numbers, truth values or times; and warn of them."""
    if not pa.types.is_string(column.type):
        return column
    is_word = pc.is_in(column, value_set=pa.array(NO_NUMBERS))
    if not pc.any(is_word).as_py():
        return column
    rest = _of_one_type(pc.if_else(is_word, None, column))
    if rest is None:
        return column
    words = listed(pc.unique(pc.filter(column, is_word)).to_pylist())
    warn_caller(
        f"Column {name!r} of {path} holds numbers except {words} in {pc.sum(is_word).as_py()} of {len(column)} rows, "
        f"first in row {pc.index(is_word, True).as_py() + 1}: they count as missing numbers. Leave those fields empty, "
        "or name the words in data.missing of a goals file, to avoid this warning. If they are values of their own, "
        "name the column in data.categorical, or write the file as Parquet.",
        WordsAmongNumbers,
    )
    return rest


def _of_one_type(texts: Any) -> Any:
    """Return texts as the numbers, truth values or times that all of them are; None where they are none, or no text."""

    def as_truths(column: Any) -> Any:
        if not pc.all(pc.is_in(column.drop_null(), value_set=pa.array([*_TRUE, *_FALSE]))).as_py():
            raise pa.ArrowInvalid("others than truth values")
        return pc.if_else(pc.is_null(column), None, pc.is_in(column, value_set=pa.array(_TRUE)))

    def as_floats(column: Any) -> Any:
        column = pc.utf8_trim_whitespace(column)
        if how_written().decimal == ",":
            has_point = pc.match_substring(column, ".")
            column = pc.if_else(has_point, "no number", pc.replace_substring(column, ",", ".", max_replacements=1))
        return column.cast(pa.float64())

    if texts.null_count == len(texts):
        return None
    for convert in (as_truths, as_floats, lambda column: column.cast(pa.timestamp("ns"))):
        try:
            convert(texts.slice(0, _GLANCE))  # which shows most columns to be of another type, and the whole costs time
            return convert(texts)
        except pa.ArrowInvalid:
            continue
    return None


def read_column(path: Path, name: str) -> Any:
    """Return one column as Arrow holds it, with the type of a Parquet file; of a CSV file as texts."""
    column = _guarded(path, lambda one: _read(one, [name], (), (name,)))[name]
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return pc.if_else(pc.equal(column, ""), None, column) if is_text(column.type) else column


def _guarded(path: Path, read: Callable[[Path], Any]) -> Any:
    """Return what ``read`` returns; whatever goes wrong is raised as one sentence."""
    if path.is_dir():
        raise DataError(f"{path} must be a CSV or Parquet file; it is a folder.")
    check_data_file(path)
    if not path.is_file():
        raise DataError(f"{path} must be a CSV or Parquet file; it is a pipe or a device. Save its content first.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} must be a CSV or Parquet file; it is empty.")
    if not is_parquet(path):
        refuse_other_kinds(path)
    try:
        return read(path)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} must be {how_written().encoding or 'UTF-8'} text; its header is not.{_ENCODED}"
        ) from error
    except (pa.ArrowException, OSError) as error:
        kind = "Parquet" if is_parquet(path) else "CSV"
        reason = " ".join(str(error).split())[:300].rstrip(".")
        if kind == "CSV":
            refuse_open_quotes(path)
            refuse_other_separators(path)
        raise DataError(f"{path} cannot be read as {kind}: {reason}.") from error


def _names(path: Path) -> list[str]:
    if is_parquet(path):
        names = list(pq.read_schema(path).names)
        _check_width(path, len(names))
        return names

    with open_regular(path) as header:
        mark = (how_written().delimiter or ",").encode()
        _check_width(path, header.readline(_BLOCK).partition(b"\r")[0].count(mark) + 1)
    with csv.open_csv(path, **_csv_options()) as stream:
        return list(stream.schema.names)


def _csv_options() -> dict[str, Any]:
    """Return how pyarrow finds the cells of a CSV file."""
    written = how_written()
    return {
        "read_options": csv.ReadOptions(block_size=_BLOCK, encoding=written.encoding or "utf8"),
        "parse_options": csv.ParseOptions(delimiter=written.delimiter or ",", newlines_in_values=True),
    }


def _check_width(path: Path, n_columns: int) -> None:
    if n_columns > _MOST_COLUMNS:
        raise DataError(f"{path} must have at most {_MOST_COLUMNS} columns; it has {n_columns}.")


def _memory() -> float:
    """Return the bytes of memory that the machine has, where the system says it."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError):  # Windows has no such call
        return float("inf")


def _read(path: Path, columns: list[str], missing: Sequence[str], texts: Collection[str]) -> Any:
    if is_parquet(path):
        require_memory([path], columns)  # it may say in a few bytes what takes far more than there is memory
        schema = pq.read_schema(path)
        # A text that is there a million times is kept once.
        often = [name for name in columns if pa.types.is_string(schema.field(name).type)]
        return pq.read_table(path, columns=columns, partitioning=None, read_dictionary=often)

    convert = csv.ConvertOptions(
        include_columns=columns,
        column_types={name: pa.string() for name in columns if name in texts},
        null_values=["", *missing],
        strings_can_be_null=True,
        decimal_point=how_written().decimal or ".",
    )
    table = csv.read_csv(path, **_csv_options(), convert_options=convert)
    if has_odd_quotes(path):
        refuse_open_quotes(path)
    return table


def is_text(kind: Any) -> bool:
    """Tell whether a type of Arrow is one of texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _as_column(column: Any, name: str, path: Path, missing: set[str], *, is_compared: bool) -> Any:
    """Return one column: texts as a categorical, numbers as an array; days as texts where values are compared."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not is_parquet(path) and (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        raise DataError(f"{path} must be UTF-8 text; column {name!r} is not.{_ENCODED}")
    if is_text(kind):
        categorical = _as_categories(column, missing)
        if not is_parquet(path) and any("\n" in text for text in categorical.categories):
            refuse_open_quotes(path)
        return categorical
    if pa.types.is_dictionary(column.type):
        column = column.cast(kind)
    lacks_truths = pa.types.is_boolean(kind) and column.null_count
    is_day = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if is_compared and (is_day or lacks_truths):
        return _as_goal_texts(column)
    if pa.types.is_null(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif lacks_truths:
        column = column.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        first = "store days since a fixed day in its place" if is_day else "turn it into numbers first"
        raise ColumnError(
            f"Column {name!r} of {path} must hold numbers or texts; it holds {kind}. Name it in data.drop, or {first}."
        )
    return column.to_numpy()


def _as_categories(column: Any, missing: set[str]) -> Any:

    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    coded = column.unify_dictionaries().combine_chunks()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.chunk(0)
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    texts = pd.Index(coded.dictionary.to_pylist(), dtype=object)
    categorical = pd.Categorical.from_codes(codes, texts)
    absent = [text for text in texts if text in missing]
    categorical = categorical.remove_categories(absent) if absent else categorical
    return categorical.set_categories(sorted(categorical.categories))  # the same in any order of rows


def _as_goal_texts(column: Any) -> Any:
    """Return days and truth values as a categorical of the texts by which goals and rules know them."""
    coded = column.combine_chunks().dictionary_encode()
    texts = [text_of(value) for value in coded.dictionary.to_pylist()]
    place = {text: number for number, text in enumerate(sorted(set(texts)))}
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return pd.Categorical.from_codes(np.array([*(place[text] for text in texts), -1])[codes], list(place))
