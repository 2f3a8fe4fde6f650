"""Sticky draws: which model of a mixture decides about a person.

A randomized classifier that draws afresh can be queried until it says yes. A sticky one takes its random number from a
keyed hash of the row, or of an id: the same person always gets the same answer, in any batch, process or
machine, and without the key nobody can tell which. Over people the numbers are uniform, so the mixture is exact.

The hash sees values, not types: 1, 1.0, True and float32 1.0 are one value, a dense and a sparse row the same row.
"""

import hashlib
import math
import secrets
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from counterpoise._checks import check_random_state
from counterpoise._types import AnyArray, FloatArray, IntArray

_KEY_BYTES = 32
_HASH_BYTES = 8
_CHUNK = 4096  # rows made dense and hashed at once
_ROW, _ID = b"row", b"id"  # so that a row of one column and an id of the same value draw independently


def make_key(random_state: Any) -> bytes:
    """Return a secret key: fresh from the system if ``random_state`` is None, else determined by it."""
    check_random_state(random_state)
    if random_state is None:
        return secrets.token_bytes(_KEY_BYTES)
    if isinstance(random_state, np.random.RandomState):
        return bytes(random_state.bytes(_KEY_BYTES))
    return bytes(np.random.RandomState(random_state).bytes(_KEY_BYTES))


def pick(uniforms: FloatArray, mixture: FloatArray) -> IntArray:
    """Return for each number in [0, 1) the model whose share of the unit interval it falls into."""
    edges = np.cumsum(mixture)
    last = int(np.flatnonzero(mixture)[-1])  # rounding may leave the last edge just below 1
    return np.minimum(np.searchsorted(edges, uniforms, side="right"), last).astype(np.int64)


def row_uniforms(X: Any, key: bytes) -> FloatArray:
    """Return a number in [0, 1) for every row of an array, sparse matrix or data frame."""
    return _uniforms((row.tobytes() for row in _rows(X)), key, _ROW)


def id_uniforms(ids: Any, key: bytes, n_rows: int) -> FloatArray:
    """Return a number in [0, 1) for every id."""
    shape = getattr(ids, "shape", (n_rows,))
    if isinstance(ids, (str, bytes, Mapping)) or len(shape) != 1:
        got = f"shape {tuple(shape)}" if hasattr(ids, "shape") else type(ids).__name__
        raise ValueError(f"ids must be one-dimensional, one id for each row of X; got {got}. Pass a single column.")
    values = ids.to_pylist() if hasattr(ids, "to_pylist") else list(ids)  # those of Arrow are wrapped one by one
    if len(values) != n_rows:
        raise ValueError(f"ids must hold one id for each of the {n_rows} rows of X; got {len(values)}.")
    return _uniforms((_id_bytes(value) for value in values), key, _ID)


def _uniforms(messages: Iterator[bytes], key: bytes, kind: bytes) -> FloatArray:
    start = hashlib.blake2b(key=key, digest_size=_HASH_BYTES, person=kind)
    digests = bytearray()
    for message in messages:
        hasher = start.copy()
        hasher.update(message)
        digests += hasher.digest()
    # The top 53 bits: exactly the numbers that a float in [0, 1) can hold evenly.
    return (np.frombuffer(bytes(digests), dtype="<u8") >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _rows(X: Any) -> Iterator[AnyArray]:
    """Yield every row as 64-bit codes of its values, little-endian."""
    for chunk in _dense_chunks(X):
        codes = _float_codes(chunk) if chunk.dtype.kind in "biuf" else _object_codes(chunk)
        yield from np.ascontiguousarray(codes).astype("<u8", copy=False)


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


def _id_bytes(value: Any) -> bytes:
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
