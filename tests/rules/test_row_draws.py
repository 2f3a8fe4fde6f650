"""Draws by row: the same for the same row, whatever holds it and with whatever noise it was computed."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler

from counterpoise import AdaLPBoostClassifier, ConstrainedClassifier, MixtureClassifier
from counterpoise.learners import Stump
from counterpoise.rules.draws import KeyedDraws, make_key
from tests.inside import drawn_numbers

KEY = make_key(0)
DIGITS, LABELS = load_digits(return_X_y=True)
TRANSFORMERS = {
    "PCA": PCA(10),
    "scaled PCA": make_pipeline(StandardScaler(), PCA(20)),
    "StandardScaler": StandardScaler(),
    "MinMaxScaler": MinMaxScaler(),
    "QuantileTransformer": QuantileTransformer(n_quantiles=100),
}


def in_batches(ask, rows, size):
    return np.concatenate([ask(rows[start : start + size]) for start in range(0, len(rows), size)])


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_answers_behind_a_transformer_do_not_depend_on_the_batch(name):
    """Sums of a BLAS differ in their last bits with the number of rows; hashed as they are, they would draw anew."""
    rows = DIGITS * np.linspace(0.1, 3, 64)
    booster = AdaLPBoostClassifier(Stump(), n_estimators=8, alpha=0.5, random_state=0)
    model = make_pipeline(TRANSFORMERS[name], booster).fit(rows[:1000], LABELS[:1000])
    whole = model.predict(rows)
    for size, n_rows in ((1, 40), (2, 100), (7, 200), (64, 1797), (1000, 1797)):
        np.testing.assert_array_equal(in_batches(model.predict, rows[:n_rows], size), whole[:n_rows])
    transformed = in_batches(model[:-1].transform, rows[:150], 1)  # one at a time, then asked together
    np.testing.assert_array_equal(booster.predict(transformed), whole[:150])


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.floats(-6, 7), st.floats(0, 3))
@settings(max_examples=30)
def test_noise_of_float64_sums_never_draws_anew(seed, n_columns, size, spread):
    """Columns of any scale and offset, with noise in the last bits of the largest number of each column."""
    rng = np.random.default_rng(seed)
    scales = 10.0 ** (size + spread * rng.normal(size=n_columns))
    rows = (rng.normal(size=(400, n_columns)) + rng.integers(-3, 4, n_columns)) * scales
    noise = 16 * np.finfo(float).eps * np.abs(rows).max(axis=0) * rng.uniform(-1, 1, rows.shape)
    draws = KeyedDraws.from_rows(KEY, rows)
    np.testing.assert_array_equal(draws.by_row(rows + noise), draws.by_row(rows))


@pytest.mark.parametrize("n_columns", [4, 10, 50])
def test_noise_of_float32_sums_hardly_ever_draws_anew(n_columns):
    """In cells of 1e-5 of the scale it would in a tenth of the rows of ten columns."""
    rng = np.random.default_rng(n_columns)
    rows = rng.normal(size=(20_000, n_columns)).astype(np.float32)
    draws = KeyedDraws.from_rows(KEY, rows)
    noisy = (rows + rng.uniform(-2e-7, 2e-7, rows.shape)).astype(np.float32)
    assert (draws.by_row(noisy) != draws.by_row(rows)).sum() <= 20
    assert len(set(draws.by_row(rows))) > 0.98 * len(rows)


@pytest.mark.parametrize("size", [1e9, 1e12])
def test_large_sums_that_are_nearly_whole_are_so_by_chance(size):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(5000, 4)) * size
    draws = KeyedDraws.from_rows(KEY, rows)
    noisy = rows * (1 + rng.uniform(-1e-15, 1e-15, rows.shape))
    np.testing.assert_array_equal(draws.by_row(noisy), draws.by_row(rows))


def columns_of_any_kind(rng, n_rows):
    """Return columns as people have them: measured, counted, priced, coded, rare, constant, spanning many orders."""
    kinds = [
        rng.normal(size=n_rows),
        rng.normal(size=n_rows).astype(np.float32).astype(float),
        rng.integers(0, 100, n_rows).astype(float),
        np.round(rng.lognormal(4, 1, n_rows), 2),
        10.0**9 + rng.integers(0, 10**8, n_rows),
        1.7e9 + rng.uniform(0, 1e6, n_rows),
        rng.integers(0, 2, n_rows).astype(float),
        np.where(rng.random(n_rows) < 0.9, 0.0, rng.exponential(size=n_rows)),
        rng.lognormal(0, 20, n_rows),
        np.full(n_rows, 0.3),
        np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows)),
        rng.uniform(1, 2, n_rows).astype(np.float32).astype(float),
        rng.integers(0, 8, n_rows) / 8,
    ]
    return np.column_stack([kinds[place] for place in rng.choice(len(kinds), int(rng.integers(1, 5)))])


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=300)
def test_the_unit_of_a_column_decides_nothing(seed):
    """Whichever columns are multiplied by a power of two, the same rows are different and get the same draws."""
    rng = np.random.default_rng(seed)
    rows = columns_of_any_kind(rng, int(rng.integers(2, 80)))
    with np.errstate(divide="ignore"):
        exponents = np.where(np.isfinite(rows) & (rows != 0), np.frexp(rows)[1], 0)
    powers = rng.integers(-1020 - exponents.min(axis=0), 1023 - exponents.max(axis=0), endpoint=True)
    powers = np.where(rng.random(powers.size) < 0.5, powers, rng.integers(-60, 61, powers.size))
    powers = np.clip(powers, -1020 - exponents.min(axis=0), 1023 - exponents.max(axis=0))
    scaled = np.ldexp(rows, powers)
    np.testing.assert_array_equal(np.ldexp(scaled, -powers), rows)  # nothing was lost
    expected = KeyedDraws.from_rows(KEY, rows).by_row(rows)
    np.testing.assert_array_equal(KeyedDraws.from_rows(KEY, scaled).by_row(scaled), expected)
    n_different = len({row.tobytes() for row in rows})
    assert len(set(expected)) >= 0.95 * n_different - 1


@pytest.mark.parametrize("power", [-1000, -40, 40, 900])
def test_goals_are_met_by_the_draws_in_any_unit(power):
    """In one absolute cell all rows would share a draw: all people get the same model, and a goal is met by none."""
    rng = np.random.default_rng(9)
    rows = np.ldexp(rng.normal(size=(3000, 3)), power)
    labels = (rows[:, 0] + np.ldexp(rng.normal(size=3000), power) > 0).astype(int)
    model = MixtureClassifier([zeros, ones], goals=["recall >= 0.6"], alpha=1.0, random_state=0).fit(rows, labels)
    (check,) = model.check_goals()
    assert model.predict(rows)[labels == 1].mean() == pytest.approx(check.value, abs=0.05)


def test_rows_that_a_float32_cannot_tell_apart_draw_apart():
    moments = 1.7e9 + np.arange(1000.0)[:, None] * 0.37  # seconds, in which a float32 has steps of 128
    assert n_draws(moments) >= 990
    assert n_draws(1.0 + moments * 1e-11) >= 990


def n_draws(rows):
    return len(set(KeyedDraws.from_rows(KEY, rows).by_row(rows)))


def test_account_numbers_and_dates_do_not_merge():
    numbers = 10**17 + np.arange(1000)
    for accounts in (numbers, numbers.astype(np.uint64) + 2**63, numbers.astype(object), (10**14 + np.arange(1000.0))):
        assert n_draws(accounts[:, None]) == 1000
        assert n_draws(pd.DataFrame({"account": accounts, "score": 0.5})) == 1000
        assert n_draws(pd.DataFrame({"account": accounts, "name": "x"})) == 1000
    seconds = 1.7e9 + np.arange(1000)
    assert n_draws(seconds[:, None]) == n_draws(seconds[:, None].astype("datetime64[s]")) == 1000


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_whole_number_is_one_value_in_every_type_that_holds_it(number):
    wholes = [np.array([[number]], dtype=object), np.array([[number]])]
    if int(float(number)) == number:
        wholes.append(np.array([[float(number)]]))
        if abs(number) < 2**40:
            wholes.append(np.array([[number + min(0.4, 1e-10 * max(1, abs(number)))]]))
    if abs(number) <= 2**24:
        wholes.append(np.array([[number]], dtype=np.float32))
    assert len({KeyedDraws(KEY).by_row(whole)[0] for whole in wholes}) == 1
    assert KeyedDraws(KEY).by_row(np.array([[number + 1]], dtype=object))[0] != KeyedDraws(KEY).by_row(wholes[0])[0]


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
        draws = draws or KeyedDraws.from_rows(KEY, rows)
        expected = draws.by_row(rows) if expected is None else expected
        np.testing.assert_array_equal(draws.by_row(rows), expected)
    assert len(set(expected)) == 300


def test_sparse_rows_may_say_a_value_in_parts_and_are_left_as_they_are():
    parts = sp.csr_array((np.array([0.5, 1.0, 2.0, 0.25]), np.array([1, 1, 0, 2]), np.array([0, 2, 4])), shape=(2, 3))
    before = (parts.data.copy(), parts.indices.copy())
    draws = KeyedDraws.from_rows(KEY, parts)
    np.testing.assert_array_equal(draws.by_row(parts), draws.by_row(np.array([[0, 1.5, 0], [2, 0, 0.25]])))
    np.testing.assert_array_equal(before, (parts.data, parts.indices))


def test_the_same_row_draws_the_same_from_csv_and_parquet(tmp_path):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.normal(size=500), "b": rng.integers(0, 9, 500), "c": rng.choice(["x", "y"], 500)})
    frame["d"] = rng.lognormal(8, 2, 500).astype(np.float32)
    frame.loc[::7, "a"] = np.nan
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    model = MixtureClassifier([zeros, ones], alpha=1.0, random_state=0).fit(frame, np.arange(500) % 2)
    expected = drawn_numbers(model, frame)
    for rows in (pd.read_csv(tmp_path / "rows.csv"), pd.read_parquet(tmp_path / "rows.parquet")):
        np.testing.assert_array_equal(drawn_numbers(model, rows), expected)


def zeros(X):
    return np.zeros(X.shape[0], dtype=int)


def ones(X):
    return np.ones(X.shape[0], dtype=int)


def test_odd_columns_have_a_scale_too():
    """Constant, missing, infinite, tiny, mixed: none moves the scales of others, and rows stay apart by the others."""
    rng = np.random.default_rng(4)
    plain = rng.normal(size=(200, 2))
    odd = np.column_stack([plain, np.full(200, 0.3), np.full(200, np.nan), np.full(200, np.inf), np.full(200, 1e-12)])
    odd[0, 0], odd[1, 1] = np.inf, 1e300
    assert n_draws(odd) >= 198
    texts = pd.DataFrame({"a": plain[:, 0], "b": [None, "x", 2.5, True] * 50, "c": pd.Timestamp("2020-01-01")})
    assert n_draws(texts) >= 198
    learned, among_odd = (KeyedDraws.from_rows(KEY, rows).grid.cells for rows in (plain, odd))
    np.testing.assert_array_equal(among_odd[:2] / among_odd[0], learned / learned[0])
    np.testing.assert_array_equal(KeyedDraws.from_rows(KEY, np.repeat(plain[::-1], 3, axis=0)).grid.cells, learned)
    np.testing.assert_array_equal(KeyedDraws.from_rows(KEY, plain, np.full(200, 0.1)).grid.cells, learned)


def test_a_step_of_the_scale_is_another_row_and_a_tiny_one_is_not():
    rows = np.random.default_rng(5).normal(size=(5000, 6))
    draws = KeyedDraws.from_rows(KEY, rows)
    first, tiny, large = (draws.by_row(rows + np.array([step, 0, 0, 0, 0, 0])) for step in (0.0, 1e-6, 0.5))
    assert (first != tiny).mean() < 1e-3
    assert abs(np.corrcoef(first, large)[0, 1]) < 4 / np.sqrt(5000)


@pytest.mark.parametrize("steps", [[StandardScaler()], [MinMaxScaler()], [StandardScaler(), PCA(4)]])
def test_the_same_row_as_float32_and_as_float64_draws_the_same_behind_a_scaler(steps):
    """Sums in float32 differ by 1e-7 of the scale: cells are as coarse as rows that stay apart allow."""
    rows = np.random.default_rng(8).normal(size=(20_000, 12)).astype(np.float32)
    model = make_pipeline(*steps, MixtureClassifier([zeros, ones], alpha=0.05, random_state=0))
    model.fit(rows[:1000].astype(float), np.arange(1000) % 2)
    np.testing.assert_array_equal(model.predict(rows), model.predict(rows.astype(float)))


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


def test_a_rebalanced_model_draws_as_before():
    model = AdaLPBoostClassifier(Stump(), n_estimators=5, random_state=0).fit(DIGITS, LABELS)
    other = model.rebalance(alpha=0.5)
    np.testing.assert_array_equal(drawn_numbers(other, DIGITS), drawn_numbers(model, DIGITS))


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
