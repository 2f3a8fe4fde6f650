"""Rows and ids as bytes, which draws hash: equal rows and ids give equal bytes, whatever their types.

A number of a row is rounded to 24 binary digits of its own, so that no unit of a column and no noise of the last bits
matters; a text counts as it is. Ids keep all their digits: numbers, texts (UUIDs among them) and bytes are apart.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import Any
from uuid import UUID

import numpy as np

from counterpoise._base.frames import as_array, as_list, columns_of, is_frame, take_rows
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.goals.terms import is_missing

_DIGITS = 24  # binary ones of a number, as a float32 has
_CODE = np.dtype("<u8")
_CHUNK = 1 << 18  # values handled at once


class BadId(ValueError):  # noqa: N818 - reads as what it is
    """What is wrong with an id; its place is known elsewhere."""


def row_messages(X: Any) -> Iterator[list[bytes]]:
    """Yield the rows of an array, sparse matrix or data frame as bytes, some at a time."""
    width = max(1, math.prod(X.shape[1:]))
    for start in range(0, X.shape[0], max(1, _CHUNK // width)):
        rows = take_rows(X, slice(start, start + max(1, _CHUNK // width)))
        if is_frame(rows):
            columns = [as_array(column) for _, column in columns_of(rows)]
        else:
            dense = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
            flat = dense.reshape(len(dense), -1)
            columns = [flat] if flat.dtype.kind in "biuf" else list(flat.T)
        codes = np.ascontiguousarray(np.column_stack([_codes(column) for column in columns]))
        yield codes.view(np.dtype((np.void, codes.shape[1] * _CODE.itemsize)))[:, 0].tolist()


def _codes(values: AnyArray) -> AnyArray:
    """Return 64 bits for each value: those of a rounded number, with one zero and one NaN, or a hash of a text."""
    if values.dtype.kind in "biuf":
        return _rounded(values.astype(np.float64)).view(_CODE)
    if values.dtype.kind == "M":  # in one unit; as nothing else a time is its text
        values = values.astype("datetime64[us]")
    listed = values.tolist()
    known = {value: _value_of(value) for value in {*listed}}
    numbers = [number if text is None else 0.0 for number, text in map(known.__getitem__, listed)]
    codes = _rounded(np.array(numbers, dtype=np.float64)).view(_CODE)
    texts = {value: _hash_of_text(text) for value, (_, text) in known.items() if text is not None}
    for place, value in enumerate(listed):
        if value in texts:
            codes[place] = texts[value]
    return codes


def _rounded(numbers: FloatArray) -> FloatArray:
    mantissas, exponents = np.frexp(numbers)
    rounded = np.ldexp(np.rint(np.ldexp(mantissas, _DIGITS)), exponents - _DIGITS)
    return np.where(np.isnan(rounded), np.nan, rounded + 0.0)  # -0.0 + 0.0 is 0.0


def _value_of(value: Any) -> tuple[float, str | None]:
    """Return an object as a number, missing ones as NaN, or as a text."""
    if is_missing(value):
        return math.nan, None
    return (float(value), None) if isinstance(value, Real | Decimal | np.bool_) else (0.0, str(value))


def _hash_of_text(text: str) -> int:
    message = text.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(message, digest_size=_CODE.itemsize).digest(), "little")


def id_values(ids: Any, n_rows: int) -> list[Any]:
    """Return ids as a list, after checking that there is one for each row."""
    shape: tuple[int, ...] = getattr(ids, "shape", (n_rows,))
    if isinstance(ids, (str, bytes, Mapping)) or len(shape) != 1:
        got = f"shape {tuple(shape)}" if hasattr(ids, "shape") else type(ids).__name__
        raise ValueError(f"ids must be one-dimensional, one id for each row of X; got {got}. Pass a single column.")
    values = as_list(ids)
    if len(values) != n_rows:
        raise ValueError(f"ids must hold one id for each of the {n_rows} rows of X; got {len(values)}.")
    return values


def id_messages(ids: Any, n_rows: int) -> Iterator[bytes]:
    """Yield every id as bytes, after checking that there is one for each row."""
    for place, value in enumerate(id_values(ids, n_rows)):
        try:
            yield _id_message(value)
        except BadId as error:
            raise BadId(f"{error} at position {place}, counted from 0.") from None


def _id_message(value: Any) -> bytes:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | UUID) and value:
        return b"text " + str(value).encode(errors="surrogatepass")
    if isinstance(value, bytes):
        return b"bytes " + value
    if isinstance(value, Integral):
        return b"number %d" % int(value)
    if is_missing(value):
        raise BadId("ids must not be missing, because all rows without an id would share a draw; an id is missing")
    if isinstance(value, float | Decimal):
        if not math.isfinite(value):
            raise BadId("ids must be finite; got an infinite id")
        if value == int(value):
            return b"number %d" % int(value)
        if isinstance(value, Decimal) and value != Decimal(repr(float(value))):  # it has more digits than a float
            return b"number " + format(value, "f").rstrip("0").encode()
        return b"number " + repr(float(value)).encode()
    raise BadId(
        f"ids must be numbers, texts or bytes (convert others to texts); got an id of type {type(value).__name__}"
    )
