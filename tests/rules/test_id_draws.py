"""Draws by id: equal ids draw equally whatever their type, unequal ones do not, nonsense is refused."""

import datetime as dt
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from tests.inside import keyed_draws

NOON = dt.datetime(2020, 7, 1, 12, tzinfo=dt.UTC)


def draw(value):
    return keyed_draws().by_id([value], 1)[0]


EQUAL = {
    "whole numbers": [5, 5.0, True + 4, np.int8(5), np.uint64(5), np.float32(5), Decimal("5.00")],
    "truth values": [True, np.True_, 1, 1.0],
    "fractions": [2.5, np.float16(2.5), Decimal("2.50")],
    "a decimal and its float": [0.1, Decimal("0.1"), Decimal("0.100")],
    "long numbers": [10**30, Decimal("1e30"), Decimal("1000000000000000000000000000000.0")],
    "zeros": [0, -0.0, Decimal("-0.0"), False, np.float32(-0.0)],
    "texts": ["anna", np.str_("anna")],
    "UUIDs": [UUID(int=7), str(UUID(int=7))],
    "bytes": [b"ab", np.bytes_(b"ab")],
}


def test_equal_ids_draw_equally_and_kinds_are_apart():
    kinds = {name: {draw(value) for value in values} for name, values in EQUAL.items()}
    assert all(len(draws) == 1 for draws in kinds.values()), kinds
    assert len(set.union(*kinds.values())) == len(kinds)
    assert draw("5") != draw(5)
    assert draw(b"anna") != draw("anna")


def test_ids_of_many_digits_stay_apart():
    for values in ([Decimal(10**17 + k) for k in range(1000)], np.arange(1000, dtype=np.uint64) + np.uint64(2**63)):
        assert len(set(keyed_draws().by_id(values, 1000))) == 1000


def columns():
    """Yield columns of several libraries and the plain values that they hold."""
    arrow, polars = (pytest.importorskip(name, reason="columns of other libraries") for name in ("pyarrow", "polars"))
    whole, texts = [7, 2**60 + 1], ["a", "b"]
    yield from ((pd.Series(whole, dtype=kind), whole) for kind in ("Int64", "uint64", "category", "int64[pyarrow]"))
    yield from ((pd.Series(texts, dtype=kind), texts) for kind in ("category", "string", "object"))
    yield pd.Index(texts), texts
    yield arrow.array(texts, arrow.large_string()), texts
    yield arrow.array(texts).dictionary_encode(), texts
    yield arrow.array([Decimal(one) for one in whole], arrow.decimal128(30, 5)), whole
    yield polars.Series(whole, dtype=polars.UInt64), whole
    yield polars.Series(texts, dtype=polars.Categorical), texts
    yield polars.Series([Decimal(one) for one in whole]), whole


def test_columns_of_other_libraries_hold_plain_values():
    for ids, plain in columns():
        np.testing.assert_array_equal(keyed_draws().by_id(ids, 2), keyed_draws().by_id(plain, 2))


MISSING = [None, np.nan, float("nan"), pd.NA, pd.NaT, Decimal("NaN"), np.datetime64("NaT", "s"), ""]
NONSENSE = {
    "must not be missing.* at position 1": [*MISSING, np.float32("nan")],
    "must be finite.* at position 1": [np.inf, -np.inf, Decimal("Infinity"), np.float32(-np.inf)],
    "got an id of type .* at position 1": [[1], (1, 2), {"a": 1}, {1}, 1j, object(), slice(2), NOON],
}


@pytest.mark.parametrize(("text", "value"), [(text, value) for text, values in NONSENSE.items() for value in values])
def test_nonsense_is_refused_with_its_place(text, value):
    with pytest.raises(ValueError, match=text) as caught:
        keyed_draws().by_id([3, value], 2)
    assert "\n" not in str(caught.value)


def test_missing_ids_of_columns_are_refused():
    arrow = pytest.importorskip("pyarrow", reason="columns of Arrow")
    for ids in (pd.Series([1, None], dtype="Int64"), arrow.array([1, None]), np.ma.array([1, 2], mask=[False, True])):
        with pytest.raises(ValueError, match=r"must not be missing.* at position 1"):
            keyed_draws().by_id(ids, 2)
