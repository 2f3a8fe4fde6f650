"""What every estimator promises beside scikit-learn's checks: on disk, with weights, frames, texts and bad input."""

import pickle

import numpy as np
import pytest
from estimators import CASES, ESTIMATORS, PLAIN, TrainedMixture, having, in_tiers, public_name, unfitted
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.utils import get_tags

import counterpoise as cp
from counterpoise import learners, persist
from counterpoise.persist.known_classes import CLASSES, known_class

pytestmark = pytest.mark.usefixtures("quick_default")

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[:150, :4].round(0), Y[:150]
WORDS = np.array(["bad", "good"])[Y]
FLOWERS = load_iris(as_frame=True).data
SPECIES = load_iris().target_names[load_iris().target]
LEARNERS = ("HistogramTree", "LeastErrorStump", "NetworkLearner", "Resampled", "Stump")  # they learn from one class too
FOREIGN = "DROBoostClassifier, regressor"  # scikit-learn's models are stored by skops, with numbers of its own

every = pytest.mark.parametrize("name", in_tiers(ESTIMATORS))


def takes_many_classes(name):
    return get_tags(ESTIMATORS[name]).classifier_tags.multi_class


CLASSIFIERS = [name for name in ESTIMATORS if public_name(name) not in LEARNERS]
every_classifier = pytest.mark.parametrize("name", in_tiers(CLASSIFIERS))


def classifiers(package):
    """Return the names of the public classes of a package that are fitted."""
    public = {name: getattr(package, name) for name in package.__all__}
    return {name for name, one in public.items() if isinstance(one, type) and hasattr(one, "fit")}


def outputs(model, rows):
    """Return all that a classifier says about some rows."""
    methods = ("predict", "predict_proba", "decision_function")
    return {method: getattr(model, method)(rows) for method in methods if hasattr(model, method)}


def assert_same(first, second, rows):
    one, other = outputs(first, rows), outputs(second, rows)
    assert one.keys() == other.keys()
    assert_array_equal(one.pop("predict"), other.pop("predict"))
    # Products of matrices, which a kernel takes, round otherwise where the rows lie otherwise in memory.
    tolerance = 1e-9 if getattr(first, "kernel", "linear") != "linear" else 0.0
    for method, values in one.items():
        assert_allclose(values, other[method], rtol=0, atol=tolerance, err_msg=method)


def fitted(name, *data):
    """Return a fitted estimator of the list; a mixture of models as users have it."""
    model = unfitted(name).fit(*data)
    return model.chosen_ if isinstance(model, TrainedMixture) else model


def test_every_public_classifier_is_on_the_list():
    public = {public_name(name) for name in ESTIMATORS} | {"NetworkLearner"}  # of an extra
    assert public == classifiers(cp) | classifiers(learners)
    assert public <= set(CLASSES)
    assert all(known_class(name).__name__ == name for name in CLASSES)


@every
def test_texts_are_answered_with_texts_and_the_same_after_saving_and_pickling(name, tmp_path):
    model = fitted(name, X, WORDS)
    assert set(model.predict(X)) <= {"bad", "good"}
    cp.save(model, tmp_path / "model.cp")
    loaded = cp.load(tmp_path / "model.cp")
    assert type(loaded) is type(model)
    assert_same(loaded, model, X)
    assert name == FOREIGN or persist.dumps(loaded) == persist.dumps(model)
    assert_same(pickle.loads(pickle.dumps(model)), model, X)  # noqa: S301 - our own bytes


@every
def test_the_same_seed_gives_the_same_model(name):
    first, second = fitted(name, X, Y), fitted(name, X, Y)
    assert_same(first, second, X)
    assert name == FOREIGN or persist.dumps(first) == persist.dumps(second)


@pytest.mark.parametrize("name", in_tiers(name for name in ESTIMATORS if takes_many_classes(name)))
def test_several_classes_and_feature_names_are_kept_on_disk(name):
    model = fitted(name, FLOWERS, SPECIES)
    loaded = persist.loads(persist.dumps(model))
    assert_same(model, loaded, FLOWERS)
    assert set(loaded.predict(FLOWERS)) <= set(SPECIES)
    assert_array_equal(loaded.feature_names_in_, FLOWERS.columns)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(FLOWERS.rename(columns=str.upper))


@pytest.mark.parametrize(
    "name", in_tiers(name for name, case in CASES.items() if not (case.repeats_differ or case.folds_differ))
)
def test_a_weight_and_so_many_repeated_rows_are_the_same(name):
    times = np.random.default_rng(4).integers(1, 4, size=len(Y))
    weighted = outputs(fitted(name, X, Y, times), X)
    repeated = outputs(fitted(name, np.repeat(X, times, axis=0), np.repeat(Y, times)), X)
    for method in weighted.keys() - {"predict"}:  # draws fall otherwise where the key is learned from other rows
        assert_allclose(weighted[method], repeated[method], atol=1e-7, err_msg=method)


@every_classifier
def test_one_class_is_refused(name):
    with pytest.raises(ValueError, match=r"at least two classes.*got one class only|y has 1 class: 0\.0"):
        unfitted(name).fit(X, np.zeros(150))


WEIGHTS = {
    "none": (np.zeros(150), "at least one weight above zero|zero"),
    "below zero": (np.where(Y, 1.0, -1.0), "must not be negative; got a weight of -1|Negative values in data passed"),
    "of other rows": (np.ones(149), "149|150"),
}


@pytest.mark.parametrize("case", WEIGHTS)
@every
def test_weights_that_cannot_be_are_refused(name, case):
    weights, text = WEIGHTS[case]
    with pytest.raises(ValueError, match=text):
        unfitted(name).fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize("name", [name for name in having("random_state") if name in PLAIN and name in CLASSIFIERS])
@pytest.mark.parametrize(
    ("state", "kind"),
    [(-1, ValueError), (2**32, ValueError), ("a", TypeError), ("7", TypeError), (np.random.MT19937(0), TypeError)],
)
def test_what_is_no_random_state_is_refused(name, state, kind):
    with pytest.raises(kind, match=r"random_state must be None, a whole number from 0 to .* or a RandomState; got "):
        unfitted(name, random_state=state).fit(X, Y)


@pytest.mark.parametrize("name", [name for name in having("callbacks") if name in PLAIN])
@pytest.mark.parametrize("callbacks", [None, print, "bar", [3]])
def test_what_are_no_callbacks_is_refused_before_the_first_round(name, callbacks):
    with pytest.raises(TypeError, match=r"callbacks must be a sequence of functions of a Round, \(\) for none; got "):
        unfitted(name, callbacks=callbacks).fit(X, Y)
