"""The column of ids of a data file, told by what it says: a CSV file has no types, a Parquet file has many.

So that a person gets the same answer from either, a text that reads as a plain number, a date or a time is one. What no
number is written as, such as ``007``, stays a text.
"""

import re
from datetime import time
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from counterpoise.runs.errors import check_columns
from counterpoise.runs.reading import column_names, read_column

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_FLOAT = re.compile(r"-?[0-9](\.[0-9]+)?e[+-][0-9]{2,3}")  # as floats are written that are large or small
_DAY, _CLOCK = r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
_MOMENT = re.compile(rf"{_DAY}([ T]{_CLOCK}(Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?")
_TIME = re.compile(_CLOCK)
_TRUTHS = {"True": True, "true": True, "False": False, "false": False}
_LONGEST = 3000  # characters of what may be a number


class Ids(NamedTuple):
    """The ids of a file: as they stand, to be written again, and as the values that people are told apart by."""

    written: Any
    told: list[Any]


def read_ids(path: Path, name: str) -> Ids:
    """Return a column of ids."""
    check_columns([name], column_names(path), path, "ids: ")
    return _told(read_column(path, name))


def value_of(key: Any) -> Any:
    """Return an id by its value: ``12`` in a CSV file is the number that a Parquet file holds, ``012`` is a text.

    Examples
    --------
    >>> from counterpoise.runs.ids import value_of
    >>> value_of("12"), value_of("012"), value_of("2.50"), value_of("2026-11-03")
    (12, '012', Decimal('2.50'), Timestamp('2026-11-03 00:00:00'))
    """
    if isinstance(key, bytes):  # older files keep texts as bytes
        key = _decoded(key)
    if not isinstance(key, str) or len(key) > _LONGEST:
        return key
    if _NUMBER.fullmatch(key):
        return Decimal(key) if "." in key else int(key)
    if _FLOAT.fullmatch(key):
        return float(key)
    if _MOMENT.fullmatch(key) or _TIME.fullmatch(key):
        return _time_of(key)
    return _TRUTHS.get(key, key)


def _decoded(key: bytes) -> str | bytes:
    try:
        return key.decode()
    except UnicodeDecodeError:
        return key


def _time_of(text: str) -> Any:
    import pandas as pd  # noqa: PLC0415 - heavy, and optional

    try:
        return time.fromisoformat(text) if _TIME.fullmatch(text) else pd.Timestamp(text)
    except ValueError:  # such as a thirteenth month
        return text


def _told(column: Any) -> Ids:
    import pandas as pd  # noqa: PLC0415 - heavy, and optional
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_float32(column.type) or pa.types.is_float16(column.type):  # as written: 0.1, not 0.10000000149
        numbers = column.to_numpy()
        return Ids(numbers, [float(str(number)) for number in numbers])
    values = column.to_pylist()
    if isinstance(column.type, pa.BaseExtensionType):  # such as UUIDs, which pandas does not know
        return Ids([str(value) for value in values], values)
    return Ids(column.to_pandas(types_mapper=pd.ArrowDtype), [value_of(value) for value in values])
