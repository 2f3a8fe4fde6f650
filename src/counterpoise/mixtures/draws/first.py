"""The first scheme of the draws, for models that were saved with it: they keep their answers.

It hashes all bits of a number, so that rows computed in batches of another size draw anew, and ids through floats, so
that long decimals share draws. Nothing here may change.
"""

import hashlib
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray

_HASH_BYTES = 8
_CHUNK = 4096  # rows made dense and hashed at once


def row_messages(X: Any) -> Iterator[bytes]:
    """Yield every row as 64-bit codes of its values, little-endian."""
    for chunk in _dense_chunks(X):
        codes = _float_codes(chunk) if chunk.dtype.kind in "biuf" else _object_codes(chunk)
        yield from (row.tobytes() for row in np.ascontiguousarray(codes).astype("<u8", copy=False))


def id_message(value: Any) -> bytes:
    """Return the bytes of an id."""
    if isinstance(value, np.generic):
        value = value.item()
    if _is_missing(value):
        raise ValueError("ids must not be missing: a person without an id would share a draw with all such.")
    if isinstance(value, Integral):  # not through a float: large ids must stay apart
        return b"number " + str(int(value)).encode()
    if isinstance(value, (Real, Decimal)):
        number = float(value)
        return b"number " + (str(int(number)) if number.is_integer() else repr(number)).encode()
    return b"text " + str(value).encode()


def _dense_chunks(X: Any) -> Iterator[AnyArray]:
    for start in range(0, X.shape[0], _CHUNK):
        place = slice(start, start + _CHUNK)
        if hasattr(X, "toarray"):
            yield X[place].toarray()
        elif hasattr(X, "iloc"):
            yield X.iloc[place].to_numpy()
        else:
            yield np.asarray(X[place])


def _float_codes(values: AnyArray) -> AnyArray:
    """Return the bits of the values as float64, with one zero and one NaN."""
    floats = values.astype(np.float64) + 0.0  # -0.0 + 0.0 is 0.0
    floats[np.isnan(floats)] = np.nan
    return floats.view(np.uint64)


def _object_codes(values: AnyArray) -> AnyArray:
    """Return codes column by column: the bits of numbers, a hash of anything else."""
    codes = np.empty(values.shape, dtype=np.uint64)
    for column in range(values.shape[1]):
        known: dict[Any, int] = {}
        for row, value in enumerate(values[:, column]):
            if value not in known:
                known[value] = _code(value)
            codes[row, column] = known[value]
    return codes


def _code(value: Any) -> int:
    """Return the code of a value; equal values have equal codes, or it would matter which of them came first."""
    if _is_missing(value):
        value = math.nan
    if isinstance(value, (Real, Decimal, np.bool_)):
        return int(_float_codes(np.array([float(value)]))[0])
    digest = hashlib.blake2b(_text(value).encode(), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest, "little")


def _text(value: Any) -> str:
    """Return a text for what is no number, for times the same in any unit and time zone."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime):
        value = value if value.tzinfo is None else value.astimezone(UTC)
        value = value.isoformat(timespec="microseconds")
    return str(value)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # pandas, which need not be installed
        return True
    return isinstance(value, Real) and math.isnan(value)
