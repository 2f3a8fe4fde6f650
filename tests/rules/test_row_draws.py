"""Draws by row: the same for the same row, whatever holds it and with whatever noise it was computed."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from counterpoise import ConstrainedClassifier, MixtureClassifier
from tests.inside import drawn_numbers, keyed_draws


def in_batches(ask, rows, size):
    return np.concatenate([ask(rows[start : start + size]) for start in range(0, len(rows), size)])


@pytest.mark.parametrize("power", [-1000, -40, 40, 900])
def test_goals_are_met_by_the_draws_in_any_unit(power):
    """In one absolute cell all rows would share a draw: all people get the same model, and a goal is met by none."""
    rng = np.random.default_rng(9)
    rows = np.ldexp(rng.normal(size=(3000, 3)), power)
    labels = (rows[:, 0] + np.ldexp(rng.normal(size=3000), power) > 0).astype(int)
    model = MixtureClassifier([zeros, ones], goals=["recall >= 0.6"], alpha=1.0, random_state=0).fit(rows, labels)
    (check,) = model.check_goals()
    assert model.predict(rows)[labels == 1].mean() == pytest.approx(check.value, abs=0.05)


@given(st.floats(1e-300, 1e300), st.integers(-20, 20))
def test_a_number_counts_by_24_digits_of_its_own(number, power):
    rows = np.array([[number], [number * (1 + 2.0**-53)], [number * (1 + 2.0**-20)]]) * 2.0**power
    first, noisy, other = keyed_draws().by_row(rows)
    rounded = np.rint(np.ldexp(np.frexp(rows[:, 0])[0], 24))
    assert (first == noisy) == (rounded[0] == rounded[1])
    assert first != other


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e12])
def test_noise_of_the_last_bits_draws_anew_for_hardly_any_row(size):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(20_000, 4)) * size
    noisy = rows * (1 + rng.uniform(-1e-15, 1e-15, rows.shape))
    assert (keyed_draws().by_row(noisy) != keyed_draws().by_row(rows)).sum() <= 2
    assert len(set(keyed_draws().by_row(rows))) == len(rows)


def test_missing_infinite_and_mixed_values_are_values():
    odd = pd.DataFrame({"a": [np.nan, np.inf, -np.inf, 1e300], "b": [None, "x", 2.5, True]})
    odd["c"] = pd.to_datetime(["2020-01-01", None, "2020-01-02", "2020-01-03"])
    assert len(set(keyed_draws().by_row(odd))) == 4


def test_hundreds_of_rows_that_hash_alike_raise_a_warning_that_asks_for_ids():
    rows = np.repeat([[1.0, 2.0], [3.0, 4.0]], [250, 20], axis=0)
    with pytest.warns(UserWarning, match="250 of 270 rows are the same up to rounding.* Pass ids"):
        keyed_draws().by_row(rows)
    assert len(set(keyed_draws().by_id(range(270), 270))) == 270


def same_rows():
    """Yield the same rows in every form that can hold them."""
    polars, rng = pytest.importorskip("polars", reason="frames of polars"), np.random.default_rng(2)
    floats = np.round(rng.normal(size=(300, 3)), 3) * [1, 100, 1]
    floats[:, 2] = rng.integers(0, 2, 300)
    singles = pd.DataFrame(floats, columns=list("abc"))
    yield floats
    yield floats.astype(np.float32)
    yield np.asfortranarray(floats)
    yield floats.astype(object)
    yield sp.csr_matrix(floats)
    yield sp.csr_array(floats.astype(np.float32))
    yield singles
    yield singles.astype({"a": np.float32, "c": bool})
    yield singles.astype({"c": "Int64"})
    yield singles.astype({"a": "float64[pyarrow]", "c": "uint8[pyarrow]"})
    yield singles.astype({"c": "category"})
    yield polars.from_pandas(singles).with_columns(polars.col("c").cast(polars.Int16))
    yield polars.from_pandas(singles).to_arrow()


def test_the_same_row_draws_the_same_in_any_type():
    draws, expected = None, None
    for rows in same_rows():
        draws = draws or keyed_draws()
        expected = draws.by_row(rows) if expected is None else expected
        np.testing.assert_array_equal(draws.by_row(rows), expected)
    assert len(set(expected)) == 300


def test_sparse_rows_may_say_a_value_in_parts_and_are_left_as_they_are():
    parts = sp.csr_array((np.array([0.5, 1.0, 2.0, 0.25]), np.array([1, 1, 0, 2]), np.array([0, 2, 4])), shape=(2, 3))
    before = (parts.data.copy(), parts.indices.copy())
    draws = keyed_draws()
    np.testing.assert_array_equal(draws.by_row(parts), draws.by_row(np.array([[0, 1.5, 0], [2, 0, 0.25]])))
    np.testing.assert_array_equal(before, (parts.data, parts.indices))


def zeros(X):
    return np.zeros(X.shape[0], dtype=int)


def ones(X):
    return np.ones(X.shape[0], dtype=int)


def test_a_mixture_draws_independently_of_the_models_inside_it():
    """With the same seed both would take the same numbers: who drew the inner mixture drew its first models too."""
    rng = np.random.default_rng(6)
    rows, labels = rng.normal(size=(4000, 2)), np.arange(4000) % 2
    inner = MixtureClassifier([zeros, ones], alpha=1.0, random_state=0).fit(rows, labels)
    inner.mixture_ = np.array([0.5, 0.5])
    middle = MixtureClassifier([make_pipeline(inner), zeros], alpha=1.0, random_state=0).fit(rows, labels)
    outer = MixtureClassifier([middle, inner], alpha=1.0, random_state=0).fit(rows, labels)
    numbers = [drawn_numbers(model, rows) for model in (inner, middle, outer)]
    assert np.abs(np.corrcoef(numbers) - np.eye(3)).max() < 4 / np.sqrt(4000)


def test_scores_that_cancel_out_are_zero_in_any_batch():
    """The score of each row is zero but for rounding, which depends on the batch."""
    rng = np.random.default_rng(7)
    rows = np.column_stack([rng.integers(1, 9, (400, 20)) / 10, np.zeros((400, 1))])
    model = ConstrainedClassifier().fit(rows, np.arange(400) % 2)
    model.coef_ = np.append(np.tile([0.1, -0.1], 10), 1.0)[None]
    model.intercept_ = np.zeros(1)
    rows[:, 1:20:2] = rng.permuted(rows[:, 0:20:2], axis=1)
    whole = model.predict(rows)
    assert set(whole) == {0}
    for size in (1, 3, 50):
        np.testing.assert_array_equal(in_batches(model.predict, rows, size), whole)
