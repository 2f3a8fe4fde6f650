"""KeyedDraws by id: equal ids draw equally whatever their type, unequal ones do not, nonsense is refused."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise.rules.draws import KeyedDraws, make_key

KEY = make_key(0)
NOON = dt.datetime(2020, 7, 1, 12, tzinfo=dt.UTC)
DAY = dt.datetime(2020, 7, 1)  # noqa: DTZ001 - without a zone on purpose


def draw(value):
    return KeyedDraws(KEY).by_id([value], 1)[0]


EQUAL = {
    "whole numbers": [5, 5.0, True + 4, np.int8(5), np.uint64(5), np.float32(5), np.longdouble(5), Decimal("5.00")],
    "truth values": [True, np.True_, 1, 1.0],
    "fractions": [2.5, np.float16(2.5), Decimal("2.50"), Fraction(5, 2), np.longdouble(2.5)],
    "a decimal and its float": [0.1, Decimal("0.1"), Decimal("0.100"), Fraction(1, 10)],
    "long numbers": [10**30, Decimal("1e30"), Decimal("1000000000000000000000000000000.0"), Fraction(10**30)],
    "zeros": [0, -0.0, Decimal("-0.0"), False, np.float32(-0.0)],
    "texts": ["anna", np.str_("anna")],
    "UUIDs": [UUID(int=7), str(UUID(int=7))],
    "bytes": [b"ab", bytearray(b"ab"), np.bytes_(b"ab")],
    "instants": [NOON, NOON.astimezone(ZoneInfo("Asia/Tokyo")), pd.Timestamp(NOON), pd.Timestamp(NOON).as_unit("s")],
    "days": [
        DAY,
        DAY.date(),
        pd.Timestamp(DAY),
        *(np.datetime64("2020-07-01", unit) for unit in ("M", "D", "s", "ns")),
    ],
    "spans": [dt.timedelta(days=1), pd.Timedelta(days=1), np.timedelta64(24, "h"), np.timedelta64(86400 * 10**6, "us")],
    "times of day": [dt.time(12, 30), dt.time(12, 30, 0, 0)],
}


def test_equal_ids_draw_equally_and_kinds_are_apart():
    kinds = {name: {draw(value) for value in values} for name, values in EQUAL.items()}
    assert all(len(draws) == 1 for draws in kinds.values()), kinds
    assert len(set.union(*kinds.values())) == len(kinds)
    assert draw("5") != draw(5)
    assert draw(b"anna") != draw("anna")
    assert draw(DAY) != draw(DAY.replace(tzinfo=dt.UTC))


numbers = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30, places=4),
    st.fractions(max_denominator=1000),
)


def written(number):
    """Return a number as it is written; a float with a fraction is but next to that."""
    return Fraction(repr(number)) if isinstance(number, float) and not number.is_integer() else Fraction(number)


@given(numbers, numbers)
def test_numbers_draw_by_what_is_written(first, second):
    for other in (second, written(first)):
        assert (draw(first) == draw(other)) == (written(first) == written(other))
        assert draw(other) == draw(written(other))


@given(st.datetimes(), st.timedeltas(-dt.timedelta(hours=14), dt.timedelta(hours=14)), st.datetimes())
def test_times_draw_by_the_moment(moment, offset, other):
    offset -= offset % dt.timedelta(seconds=1)
    moment = min(max(moment, dt.datetime(2, 1, 1)), dt.datetime(9998, 1, 1))  # noqa: DTZ001 - without a zone on purpose
    here = moment.replace(tzinfo=dt.timezone(offset))
    assert draw(here) == draw(here.astimezone(dt.UTC))
    assert draw(here) != draw(moment)
    assert draw(moment) == draw(np.datetime64(moment)) == draw(np.datetime64(moment, "us"))
    assert (draw(moment) == draw(other)) == (moment == other)


def test_ids_of_many_digits_stay_apart():
    for values in (
        [Decimal(10**17 + k) for k in range(1000)],
        [Decimal(10**17 + k) / 100 for k in range(1000)],  # where a float has steps of 0.125
        np.arange(1000, dtype=np.uint64) + np.uint64(2**63),
        pd.date_range("2020", periods=1000, freq="ns"),
        pd.Series(pd.date_range("2020", periods=1000, freq="ns", tz="Europe/Paris")),
    ):
        assert len(set(KeyedDraws(KEY).by_id(values, 1000))) == 1000


def columns():
    """Yield columns of several libraries and the plain values that they hold."""
    arrow, polars = (pytest.importorskip(name, reason="columns of other libraries") for name in ("pyarrow", "polars"))
    whole, texts, days = [7, 2**60 + 1], ["a", "b"], [dt.date(2020, 7, 1), dt.date(2021, 7, 1)]
    moments = [NOON, NOON + dt.timedelta(microseconds=1)]
    yield from ((pd.Series(whole, dtype=kind), whole) for kind in ("Int64", "uint64", "category", "int64[pyarrow]"))
    yield from ((pd.Series(texts, dtype=kind), texts) for kind in ("category", "string", "object"))
    yield pd.Index(texts), texts
    yield pd.Series(moments).dt.tz_convert("Asia/Tokyo"), moments
    yield arrow.array(texts, arrow.large_string()), texts
    yield arrow.array(texts).dictionary_encode(), texts
    yield arrow.array(moments, arrow.timestamp("us", "Europe/Paris")), moments
    yield arrow.array(days), days
    yield arrow.array([Decimal(one) for one in whole], arrow.decimal128(30, 5)), whole
    yield polars.Series(whole, dtype=polars.UInt64), whole
    yield polars.Series(texts, dtype=polars.Categorical), texts
    yield polars.Series(moments, dtype=polars.Datetime("ns", "Asia/Tokyo")), moments
    yield polars.Series([Decimal(one) for one in whole]), whole


def test_columns_of_other_libraries_hold_plain_values():
    for ids, plain in columns():
        np.testing.assert_array_equal(KeyedDraws(KEY).by_id(ids, 2), KeyedDraws(KEY).by_id(plain, 2))


def test_nanoseconds_of_polars_count():
    polars = pytest.importorskip("polars", reason="columns of polars")
    ids = polars.Series(range(1000)).cast(polars.Datetime("ns"))
    assert len(set(KeyedDraws(KEY).by_id(ids, 1000))) == 1000


MISSING = [None, np.nan, float("nan"), pd.NA, pd.NaT, Decimal("NaN"), Decimal("sNaN"), np.datetime64("NaT", "s"), ""]
NONSENSE = {
    "must not be missing.* at position 1": [*MISSING, np.timedelta64("NaT", "s"), np.float32("nan")],
    "must be finite.* at position 1": [np.inf, -np.inf, Decimal("Infinity"), np.float32(-np.inf)],
    "got an id of type .* at position 1": [[1], (1, 2), {"a": 1}, {1}, 1j, object(), np.array([1]), slice(2)],
    "of at most 3600 digits.* at position 1": [10**4000, Decimal("1e1000000"), Decimal("1e-1000000")],
}


@pytest.mark.parametrize(("text", "value"), [(text, value) for text, values in NONSENSE.items() for value in values])
def test_nonsense_is_refused_with_its_place(text, value):
    with pytest.raises(ValueError, match=text) as caught:
        KeyedDraws(KEY).by_id([3, value], 2)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning")  # from NumPy 2.5 on
def test_spans_of_time_need_a_unit():
    with pytest.raises(ValueError, match="must have a unit"):
        KeyedDraws(KEY).by_id([3, np.timedelta64(5)], 2)


def test_missing_ids_of_columns_are_refused():
    arrow = pytest.importorskip("pyarrow", reason="columns of Arrow")
    for ids in (pd.Series([1, None], dtype="Int64"), arrow.array([1, None]), np.ma.array([1, 2], mask=[False, True])):
        with pytest.raises(ValueError, match=r"must not be missing.* at position 1"):
            KeyedDraws(KEY).by_id(ids, 2)
