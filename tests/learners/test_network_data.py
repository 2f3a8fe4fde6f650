"""Rows of a network on their device: draws by weight, epochs, crops and flips, standardized inputs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

torch = pytest.importorskip("torch", reason="networks need torch")

from counterpoise.learners import _network_data as data  # noqa: E402 - only where torch is

CPU = data.find_place("cpu", "float32", compiles=False)
weight_vectors = st.lists(st.sampled_from([0.0, 0.5, 1.0, 7.0]), min_size=2, max_size=40).filter(
    lambda weights: sum(map(bool, weights)) > 1
)


@given(weight_vectors, st.integers(0, 2**31))
def test_rows_are_drawn_in_proportion_to_their_weights_and_those_without_never(weights, seed):
    weights = np.array(weights)
    n_draws = 4000
    drawn = data.Sampler.of(weights, "cpu").draw((n_draws // 8, 8), data.make_generator(seed, 0, "cpu"))
    counts = np.bincount(drawn.numpy().ravel(), minlength=weights.size)
    held = weights > 0
    assert counts[~held].sum() == 0
    assert chisquare(counts[held], n_draws * weights[held] / weights.sum()).pvalue > 1e-6


def test_the_upper_end_of_the_unit_interval_stops_at_the_last_row_of_weight(monkeypatch):
    monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.ones(shape, dtype=torch.float64))
    assert data.Sampler.of(np.array([1.0, 2.0, 0.0]), "cpu").draw((3,), None).tolist() == [1, 1, 1]


@given(st.integers(1, 50), st.integers(1, 4), st.integers(1, 20), st.integers(0, 99))
def test_each_epoch_holds_each_row_once_in_batches_of_one_size(n_rows, n_epochs, batch_size, seed):
    table = data.epochs(n_rows, n_epochs, batch_size, data.make_generator(seed, 0, "cpu"))
    assert table.shape == (-(-n_rows * n_epochs // batch_size), batch_size)
    for epoch in table.ravel()[: n_rows * n_epochs].view(n_epochs, n_rows):
        assert sorted(epoch.tolist()) == list(range(n_rows))


@given(st.integers(0, 2**31), st.integers(1, 7), st.integers(1, 7), st.sampled_from([np.uint8, np.float32]))
def test_crops_and_flips_are_those_of_a_plain_loop(seed, height, width, dtype):
    rng = np.random.default_rng(seed)
    images = rng.integers(1, 255, (5, height, width, 2)).astype(dtype)
    flips, downs, rights = rng.integers(2, size=5), rng.integers(9, size=5), rng.integers(9, size=5)
    moves = torch.from_numpy((flips * 9 + downs) * 9 + rights)
    found = data.crop_and_flip(torch.from_numpy(images), moves).numpy()
    for image, flip, down, right, moved in zip(images, flips, downs, rights, found, strict=True):
        part = np.pad(image, ((4, 4), (4, 4), (0, 0)))[down : down + height, right : right + width]
        np.testing.assert_array_equal(moved, part[:, ::-1] if flip else part)


@pytest.mark.parametrize("shape", [(50, 3), (20, 3, 4, 5), (20, 3, 7)])
def test_bytes_and_floats_reach_the_network_alike_standardized(shape):
    X = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    X[:, 1] = 7
    standard = data.standard_of(X)
    first, second = (next(data.Inputs(rows, standard, CPU).batches(99)).numpy() for rows in (X, X.astype(float)))
    np.testing.assert_allclose(first, second, atol=1e-5)
    assert first.shape == shape
    axes = (0, *range(2, X.ndim))
    np.testing.assert_allclose(first.mean(axis=axes), 0, atol=1e-5)
    np.testing.assert_allclose(first.std(axis=axes), [1, 0, 1], atol=1e-5)


@pytest.mark.parametrize("size", [1e-100, 1.23e23, 1e100])
def test_features_of_any_size_are_standardized(size):
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[:, 1] *= size
    X[:, 2] = size
    with pytest.raises(ValueError, match="features whose squares are finite"):
        data.standard_of(X * 1e200 if size > 1 else X * 1e300)
    rows = next(data.Inputs(X, data.standard_of(X), CPU).batches(99)).numpy()
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(rows.std(axis=0), [1, 1, 0], atol=1e-5)


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_a_feature_that_is_constant_in_training_has_no_unit_in_new_rows(unit):
    X, later = np.random.default_rng(0).normal(size=(2, 50, 2))
    X[:, 1] = 7.0
    plain, scaled = (
        next(data.Inputs(later * size, data.standard_of(X * size), CPU).batches(99)).numpy()
        for size in (np.ones(2), np.array([1.0, unit]))
    )
    np.testing.assert_allclose(scaled, plain, rtol=1e-5)


def test_rows_far_from_those_of_training_stay_finite():
    standard = data.standard_of(np.random.default_rng(0).normal(size=(50, 2)))
    rows = next(data.Inputs(np.array([[1e60, -1e308]]), standard, CPU).batches(1))
    assert torch.isfinite(torch.nn.Linear(2, 3)(rows)).all()
    assert rows[0, 0] > 1e9
    assert rows[0, 1] < -1e9


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_weights_of_any_size_are_drawn_alike(size):
    drawn = data.Sampler.of(np.full(4, size), "cpu").draw((4000,), data.make_generator(0, 0, "cpu"))
    assert chisquare(np.bincount(drawn.numpy(), minlength=4)).pvalue > 1e-6
