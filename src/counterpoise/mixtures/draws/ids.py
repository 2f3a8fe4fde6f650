"""Ids as bytes: equal ids give equal bytes whatever type holds them, unequal ids do not, and nonsense is refused.

Kinds are apart: numbers (truth values among them), texts (UUIDs among them), bytes, times without a zone, instants,
times of day, spans. Numbers are told by all their digits; a float with a fraction by those of the shortest decimal that
reads as it, so that 0.1 is one id as a float, as a decimal and in a file of texts. Times are told by their distance
from 1970 in attoseconds, the least unit that numpy has; a date is its midnight, as for numpy.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any
from uuid import UUID

import numpy as np

_SECOND = 10**18  # in attoseconds
_MICROSECOND = 10**12
_UNITS = {"W": 604_800 * _SECOND, "D": 86_400 * _SECOND, "h": 3600 * _SECOND, "m": 60 * _SECOND}
_UNITS |= {unit: 10 ** (18 - 3 * place) for place, unit in enumerate(("s", "ms", "us", "ns", "ps", "fs", "as"))}
_MONTHS = {"Y": 12, "M": 1}  # of a span: they have no length in seconds
_MOST_DIGITS = 3600  # Python turns no whole number of many more into text
_MOST_BITS = int(_MOST_DIGITS * math.log2(10))
_LARGE = 2**1000  # what a float can hold, and a little less
_EPOCH, _FIRST_DAY = datetime(1970, 1, 1, tzinfo=UTC), date(1970, 1, 1)


class BadId(ValueError):  # noqa: N818 - reads as what it is
    """What is wrong with an id; its place is known elsewhere."""


def id_values(ids: Any, n_rows: int) -> list[Any]:
    """Return the ids as a list, after checking that there is one for each row."""
    shape = getattr(ids, "shape", (n_rows,))
    if isinstance(ids, (str, bytes, Mapping)) or len(shape) != 1:
        got = f"shape {tuple(shape)}" if hasattr(ids, "shape") else type(ids).__name__
        raise ValueError(f"ids must be one-dimensional, one id for each row of X; got {got}. Pass a single column.")
    values = _listed(ids)
    if len(values) != n_rows:
        raise ValueError(f"ids must hold one id for each of the {n_rows} rows of X; got {len(values)}.")
    return values


def _listed(ids: Any) -> list[Any]:
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "biufSU":  # times would lose their unit
        return list(ids.tolist())
    kind: Any = getattr(ids, "dtype", None)
    if hasattr(kind, "is_temporal") and kind.is_temporal():  # of polars, whose lists round to microseconds
        ids = ids.to_arrow()
    return list(ids.to_pylist() if hasattr(ids, "to_pylist") else ids)  # those of Arrow are wrapped one by one


def id_messages(values: list[Any]) -> Iterator[bytes]:
    """Yield every id as bytes."""
    for place, value in enumerate(values):
        try:
            yield id_message(value)
        except BadId as error:
            raise BadId(f"{error} at position {place}, counted from 0.") from None


def id_message(value: Any) -> bytes:
    """Return the bytes of an id."""
    if type(value) is int:  # the two usual kinds first
        return b"number " + _digits(value)
    if isinstance(value, str) and value:
        return b"text " + str(value).encode(errors="surrogatepass")
    if is_missing(value):
        raise BadId("ids must not be missing, or all without one would share a draw; one is")
    if is_number(value):
        return b"number " + _number(value)
    return _other(value)


def is_missing(value: Any) -> bool:
    """Tell whether a value is missing: None, NaN of any kind, NaT, pandas' NA and an empty text."""
    if (
        value is None or (isinstance(value, str) and not value) or type(value).__name__ in ("NAType", "NaTType")
    ):  # pandas need not be installed
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, Real) and math.isnan(value)


def is_number(value: Any) -> bool:
    """Tell whether a value is a real number or a truth value; numpy calls spans whole numbers, and they are not."""
    return isinstance(value, (Real, Decimal, np.bool_)) and not isinstance(value, np.timedelta64)


def _number(value: Any) -> bytes:
    """Return a number by what is written: its digits where it is whole, else those of a float or a decimal."""
    if isinstance(value, (Integral, np.bool_)):
        return _digits(int(value))
    if isinstance(value, Decimal) and value.is_finite() and abs(int(value.as_tuple().exponent)) > _MOST_DIGITS:
        raise _too_long()
    if not math.isfinite(value):
        raise BadId("ids must be finite; one is infinite")
    if isinstance(value, (float, np.floating)) and value == float(value):
        return _digits(int(value)) if float(value).is_integer() else repr(float(value)).encode()
    return _ratio(Fraction(value) if isinstance(value, Rational) else Fraction(*value.as_integer_ratio()))


def _ratio(value: Fraction) -> bytes:
    if value.denominator == 1:
        return _digits(value.numerator)
    nearest = repr(float(value)) if abs(value) < _LARGE else "0"
    if value == Fraction(nearest):  # such as 0.1, as which a float is written that is next to it
        return nearest.encode()
    return _digits(value.numerator) + b"/" + _digits(value.denominator)


def _digits(value: int) -> bytes:
    if value.bit_length() > _MOST_BITS:
        raise _too_long()
    return str(value).encode()


def _too_long() -> BadId:
    return BadId(f"ids must be numbers of at most {_MOST_DIGITS} digits; one is longer,")


def _other(value: Any) -> bytes:
    if isinstance(value, UUID):
        return b"text " + str(value).encode()
    if isinstance(value, (bytes, bytearray)):
        return b"bytes " + bytes(value)
    if isinstance(value, (date, time, timedelta, np.datetime64, np.timedelta64)):
        return time_message(value)
    raise BadId(f"ids must be numbers, texts, times or bytes (make a text of anything else); one is {_name(value)}")


def _name(value: Any) -> str:
    return f"of the type {type(value).__name__}"


def time_message(value: Any) -> bytes:
    """Return the bytes of a date, a time, an instant, a time of day or a span."""
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, date):
        return b"time %d" % ((value - _FIRST_DAY).days * _UNITS["D"])
    if isinstance(value, time):
        return _clock(value)
    if hasattr(value, "to_timedelta64"):  # of pandas, with nanoseconds
        value = value.to_timedelta64()
    if isinstance(value, timedelta):
        return b"span %d" % _attoseconds(value)
    unit, step = np.datetime_data(value.dtype)
    is_span = isinstance(value, np.timedelta64)
    if unit in _MONTHS and is_span:
        return b"span of months %d" % (int(value.view(np.int64)) * step * _MONTHS[unit])
    if unit in _MONTHS:
        value, unit, step = value.astype("datetime64[D]"), "D", 1
    if unit not in _UNITS:
        raise BadId("ids that are spans must have a unit; one has none")
    return (b"span %d" if is_span else b"time %d") % (int(value.view(np.int64)) * step * _UNITS[unit])


def _moment(value: datetime) -> bytes:
    kind = b"time %d" if value.utcoffset() is None else b"instant %d"
    if hasattr(value, "to_datetime64"):  # of pandas, with nanoseconds; in UTC where it has a zone
        _, _, count = time_message(value.to_datetime64()).partition(b" ")
        return kind % int(count)
    since = value.replace(tzinfo=UTC) if value.utcoffset() is None else value
    return kind % _attoseconds(since - _EPOCH)


def _clock(value: time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    count = seconds * _SECOND + value.microsecond * _MICROSECOND
    offset = value.utcoffset()
    return b"clock %d" % count if offset is None else b"clock of the world %d" % (count - _attoseconds(offset))


def _attoseconds(span: timedelta) -> int:
    return (span.days * 86_400 + span.seconds) * _SECOND + span.microseconds * _MICROSECOND
