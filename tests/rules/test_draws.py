"""Sticky draws: the same for the same person, anywhere, and exact over many."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inside import keyed_draws

ROOT = Path(__file__).parents[2]


def test_the_hash_is_fixed_for_all_time_processes_and_machines():
    """These numbers must never change: models in use would change their decisions."""
    rows = np.array([[0.0, 1.0], [2.5, -3.0]])
    np.testing.assert_allclose(keyed_draws().by_row(rows), EXPECTED_ROWS, rtol=0, atol=0)
    np.testing.assert_allclose(keyed_draws().by_id([17, "anna"], 2), EXPECTED_IDS, rtol=0, atol=0)


EXPECTED_ROWS = [0.8482763339588352, 0.24024107755458635]
EXPECTED_IDS = [0.13449942560725558, 0.23333392359289784]


def test_another_process_draws_the_same():
    code = (
        "import numpy as np; from tests.inside import keyed_draws; "
        "print(keyed_draws().by_row(np.arange(12.0).reshape(4, 3)).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == str(keyed_draws().by_row(np.arange(12.0).reshape(4, 3)).tolist())


@given(st.integers(0, 1000), st.permutations(range(20)))
def test_order_and_company_do_not_matter(seed, order):
    rows = np.random.default_rng(seed).normal(size=(20, 3))
    whole = keyed_draws().by_row(rows)
    np.testing.assert_array_equal(keyed_draws().by_row(rows[order]), whole[order])
    np.testing.assert_array_equal(keyed_draws().by_row(rows[5:9]), whole[5:9])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32, np.float64, object])
def test_the_type_of_a_value_does_not_matter(dtype):
    rows = np.array([[0, 1, 1], [1, 0, 7]])
    np.testing.assert_array_equal(keyed_draws().by_row(rows.astype(dtype)), keyed_draws().by_row(rows))


def test_minus_zero_is_zero_and_all_missing_values_are_one():
    other_nan = np.array([0x7FF8000000000001], dtype=np.uint64).view(float)[0]
    rows = np.array([[0.0, np.nan], [-0.0, other_nan]])
    first, second = keyed_draws().by_row(rows)
    assert first == second
    with_none = np.array([[0.0, None], [0, np.nan]], dtype=object)
    np.testing.assert_array_equal(keyed_draws().by_row(with_none), [first, first])


def test_numbers_are_uniform():
    numbers = keyed_draws().by_row(np.arange(100_000.0)[:, None])
    counts = np.bincount((numbers * 20).astype(int), minlength=20)
    assert np.abs(counts - 5000).max() < 4 * np.sqrt(5000)
    assert numbers.min() >= 0
    assert numbers.max() < 1


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
        keyed_draws().by_id(ids, 2)
