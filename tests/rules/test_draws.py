"""Sticky draws: the same for the same person, anywhere, and exact over many."""

import subprocess
import sys
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from counterpoise.rules.draws import KeyedDraws, make_key, pick

KEY = bytes(range(32))


def test_the_hash_is_fixed_for_all_time_processes_and_machines():
    """These numbers must never change: models in use would change their decisions."""
    rows = np.array([[0.0, 1.0], [2.5, -3.0]])
    np.testing.assert_allclose(KeyedDraws(KEY).by_row(rows), EXPECTED_ROWS, rtol=0, atol=0)
    np.testing.assert_allclose(KeyedDraws(KEY).by_id([17, "anna"], 2), EXPECTED_IDS, rtol=0, atol=0)


EXPECTED_ROWS = [0.8482763339588352, 0.24024107755458635]
EXPECTED_IDS = [0.13449942560725558, 0.23333392359289784]


def test_another_process_draws_the_same():
    code = (
        "import numpy as np; from counterpoise.rules.draws import KeyedDraws; "
        "print(KeyedDraws(bytes(range(32))).by_row(np.arange(12.0).reshape(4, 3)).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(KeyedDraws(KEY).by_row(np.arange(12.0).reshape(4, 3)).tolist())


@given(st.integers(0, 1000), st.permutations(range(20)))
def test_order_and_company_do_not_matter(seed, order):
    rows = np.random.default_rng(seed).normal(size=(20, 3))
    whole = KeyedDraws(KEY).by_row(rows)
    np.testing.assert_array_equal(KeyedDraws(KEY).by_row(rows[order]), whole[order])
    np.testing.assert_array_equal(KeyedDraws(KEY).by_row(rows[5:9]), whole[5:9])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32, np.float64, object])
def test_the_type_of_a_value_does_not_matter(dtype):
    rows = np.array([[0, 1, 1], [1, 0, 7]])
    np.testing.assert_array_equal(KeyedDraws(KEY).by_row(rows.astype(dtype)), KeyedDraws(KEY).by_row(rows))


def test_dense_sparse_and_memory_layout_do_not_matter():
    rows = np.random.default_rng(0).poisson(0.5, size=(6000, 4)) + np.arange(6000.0)[:, None]
    rows[::3, 1] = 0
    expected = KeyedDraws(KEY).by_row(rows)
    np.testing.assert_array_equal(KeyedDraws(KEY).by_row(sp.csr_matrix(rows)), expected)
    np.testing.assert_array_equal(KeyedDraws(KEY).by_row(sp.csr_array(rows)), expected)
    np.testing.assert_array_equal(KeyedDraws(KEY).by_row(np.asfortranarray(rows)), expected)


def test_minus_zero_is_zero_and_all_missing_values_are_one():
    other_nan = np.array([0x7FF8000000000001], dtype=np.uint64).view(float)[0]
    rows = np.array([[0.0, np.nan], [-0.0, other_nan]])
    first, second = KeyedDraws(KEY).by_row(rows)
    assert first == second
    with_none = np.array([[0.0, None], [0, np.nan]], dtype=object)
    np.testing.assert_array_equal(KeyedDraws(KEY).by_row(with_none), [first, first])


def test_text_columns_count():
    rows = np.array([["a", 1], ["b", 1], ["a", 1.0]], dtype=object)
    first, second, third = KeyedDraws(KEY).by_row(rows)
    assert first == third
    assert first != second


def test_ids_are_values_too():
    first = KeyedDraws(KEY).by_id([1, 2, 2**60 + 1, "x"], 4)
    np.testing.assert_array_equal(KeyedDraws(KEY).by_id(np.array([1.0, 2.0]), 2), first[:2])
    np.testing.assert_array_equal(KeyedDraws(KEY).by_id(np.array([1, 2], dtype=np.int8), 2), first[:2])
    assert KeyedDraws(KEY).by_id([2**60], 1)[0] != first[2]
    assert KeyedDraws(KEY).by_id(["1"], 1)[0] != first[0]


def test_decimals_are_numbers():
    np.testing.assert_array_equal(
        KeyedDraws(KEY).by_id([Decimal(1), Decimal("2.5")], 2), KeyedDraws(KEY).by_id([1, 2.5], 2)
    )
    rows = np.array([[Decimal("1.0")], [Decimal("1.00")], [1]], dtype=object)
    np.testing.assert_array_equal(KeyedDraws(KEY).by_row(rows), KeyedDraws(KEY).by_row(np.ones((3, 1))))


def test_ids_of_arrow_are_values_too():
    arrow = pytest.importorskip("pyarrow", reason="columns of Arrow")
    for ids in ([7, 8, 9], ["a", "b", "c"]):
        expected = KeyedDraws(KEY).by_id(ids, 3)
        np.testing.assert_array_equal(KeyedDraws(KEY).by_id(arrow.array(ids), 3), expected)
        np.testing.assert_array_equal(KeyedDraws(KEY).by_id(arrow.chunked_array([ids]), 3), expected)


def test_another_key_draws_independently():
    rows = np.random.default_rng(1).normal(size=(5000, 2))
    first, second = KeyedDraws(KEY).by_row(rows), KeyedDraws(make_key(0)).by_row(rows)
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(5000)


def test_numbers_are_uniform():
    numbers = KeyedDraws(KEY).by_row(np.arange(100_000.0)[:, None])
    counts = np.bincount((numbers * 20).astype(int), minlength=20)
    assert np.abs(counts - 5000).max() < 4 * np.sqrt(5000)
    assert numbers.min() >= 0
    assert numbers.max() < 1


def test_keys_follow_the_random_state():
    assert make_key(3) == make_key(3) != make_key(4)
    assert make_key(None) != make_key(None)
    assert make_key(np.random.RandomState(3)) == make_key(3)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8).filter(any))
def test_only_models_with_a_share_are_drawn(shares):
    mixture = np.array(shares) / np.sum(shares)
    drawn = pick(np.linspace(0, 1 - 1e-16, 1000), mixture)
    assert (mixture[drawn] > 0).all()


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([1, 2, 3], "one id for each of the 2 rows of X; got 3"),
        ([1, None], "must not be missing"),
        ([1, np.nan], "must not be missing"),
        (np.array([[1], [2]]), r"ids must be one-dimensional.*got shape \(2, 1\). Pass a single column"),
        ("ab", "ids must be one-dimensional.*got str"),
        ({"a": 1, "b": 2}, "ids must be one-dimensional.*got dict"),
    ],
)
def test_bad_ids_get_one_clear_sentence(ids, text):
    with pytest.raises(ValueError, match=text):
        KeyedDraws(KEY).by_id(ids, 2)


@pytest.mark.parametrize(("state", "kind"), [(np.random.default_rng(0), TypeError), (-1, ValueError), ("a", TypeError)])
def test_what_is_no_random_state_gets_one_clear_sentence(state, kind):
    with pytest.raises(kind, match=r"random_state must be None, a whole number from 0 to .* or a RandomState; got "):
        make_key(state)
