"""Resampled: draws by weight, keeps classes that were not drawn."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from counterpoise.learners import Resampled


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it was fitted to; takes no sample weights."""

    def fit(self, X, y):
        self.X_, self.y_, self.classes_ = X, y, np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def three_blobs():
    X, y = make_blobs(90, centers=3, random_state=0)
    return X, np.array(["ash", "birch", "cedar"])[y]


def test_rows_are_drawn_in_proportion_to_their_weights():
    X, y = np.arange(4.0).reshape(-1, 1), np.array([0, 1, 0, 1])
    weights = [1.0, 2.0, 0.0, 5.0]
    drawn = Resampled(Recorder(), n_draws=80_000, random_state=0).fit(X, y, weights).estimator_.X_
    shares = np.bincount(drawn.ravel().astype(int), minlength=4) / 80_000
    np.testing.assert_allclose(shares, [1 / 8, 2 / 8, 0, 5 / 8], atol=0.01)


def test_as_many_rows_are_drawn_as_there_are_unless_told():
    X, y = three_blobs()
    assert len(Resampled(Recorder(), random_state=0).fit(X, y).estimator_.y_) == 90
    assert len(Resampled(Recorder(), n_draws=7, random_state=0).fit(X, y).estimator_.y_) == 7


def test_the_draw_depends_on_the_seed_alone():
    X, y = three_blobs()
    first, again, other = (
        Resampled(Recorder(), random_state=seed).fit(X, y, np.arange(90)).estimator_.X_ for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_class_that_was_not_drawn_has_probability_zero():
    X, y = three_blobs()
    model = Resampled(KNeighborsClassifier(), random_state=0).fit(X, y, (y != "birch").astype(float))
    shares = model.predict_proba(X)
    assert model.classes_.tolist() == ["ash", "birch", "cedar"]
    assert shares.shape == (90, 3)
    assert (shares[:, 1] == 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert set(model.predict(X)) == {"ash", "cedar"}


def test_a_single_class_drawn_is_always_predicted():
    X, y = three_blobs()
    model = Resampled(LinearSVC(), random_state=0).fit(X, y, (y == "cedar").astype(float))
    assert set(model.predict(X)) == {"cedar"}
    assert model.estimator_ is None
    model = Resampled(KNeighborsClassifier(), random_state=0).fit(X, y, (y == "birch").astype(float))
    np.testing.assert_array_equal(model.predict_proba(X[:2]), [[0, 1, 0], [0, 1, 0]])


def test_probabilities_are_offered_where_the_estimator_has_them():
    X, y = three_blobs()
    assert hasattr(Resampled(KNeighborsClassifier()), "predict_proba")
    assert not hasattr(Resampled(LinearSVC()), "predict_proba")
    assert not hasattr(Resampled(LinearSVC(), random_state=0).fit(X, y), "predict_proba")


def test_sparse_rows_are_the_same_as_dense_ones():
    X, y = three_blobs()
    dense = Resampled(DecisionTreeClassifier(random_state=0), random_state=0).fit(X, y)
    sparse = clone(dense).fit(csr_array(X), y)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(csr_array(X)))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_reach_the_estimator_as_they_are(library):
    X, y = three_blobs()
    frame = pytest.importorskip(library).DataFrame({"height": X[:, 0], "girth": X[:, 1]})
    chosen = make_column_transformer((StandardScaler(), ["girth"]))
    model = Resampled(make_pipeline(chosen, KNeighborsClassifier()), random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["height", "girth"]
    assert model.predict_proba(frame).shape == (90, 3)


BAD = {
    "no draws": (ValueError, {"n_draws": 0}, None, "n_draws must be at least 1; got 0"),
    "half a draw": (TypeError, {"n_draws": 0.5}, None, "n_draws must be a whole number of at least 1; got 0.5"),
    "negative weight": (ValueError, {}, [1, -1, 1], "sample_weight must not be negative; got a weight of -1.0"),
    "no weight": (ValueError, {}, [0, 0, 0], "sample_weight must have at least one weight above zero"),
    "too few weights": (ValueError, {}, [1, 1], r"sample_weight must have shape \(3,\).*got shape \(2,\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    error, settings, weights, text = BAD[case]
    with pytest.raises(error, match=text):
        Resampled(Recorder(), **settings).fit(np.eye(3), [0, 1, 0], weights)
