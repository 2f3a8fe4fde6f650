"""Crafted models of scikit-learn that would make compiled loops go astray, and copies of models that wait."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp
from counterpoise.persist import UnreadableModel, dumps, loads
from counterpoise.persist.models import load_lazily

LETTERS = np.array([["a", "x"], ["b", "y"], ["c", "z"]] * 10, dtype=object)
Y = np.array([0, 1, 0] * 10)


@pytest.mark.parametrize("outs", [[10**12, 6 - 10**12], [3], [2, 4], [-1, 7]])
def test_columns_of_categories_that_are_not_there_are_refused(outs):
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(LETTERS, Y)
    assert np.array_equal(loads(dumps(model)).predict(LETTERS), model.predict(LETTERS))
    model[0]._n_features_outs = outs
    with pytest.raises(UnreadableModel):
        loads(dumps(model))


def test_rare_categories_are_mapped_inside_of_what_there_is():
    model = make_pipeline(OneHotEncoder(min_frequency=11), LogisticRegression()).fit(LETTERS, Y)
    assert np.array_equal(loads(dumps(model)).predict_proba(LETTERS), model.predict_proba(LETTERS))
    model[0]._default_to_infrequent_mappings[0] = np.array([0, 0, 10**9])
    with pytest.raises(UnreadableModel):
        loads(dumps(model))


def test_a_model_that_waits_is_copied_and_sent_as_itself(tmp_path):
    X = np.arange(60.0).reshape(30, 2)
    trees = [DecisionTreeClassifier(max_depth=depth).fit(X, Y) for depth in (1, 2)]
    cp.save(cp.MixtureClassifier(trees, random_state=0).fit(X, Y), tmp_path / "m.cp")
    mixture = load_lazily(tmp_path / "m.cp")
    waiting, expected = mixture.estimators_[0], trees[0].predict(X)
    for copied in (copy.copy(waiting), copy.deepcopy(waiting), pickle.loads(pickle.dumps(waiting))):  # noqa: S301 - our own
        assert np.array_equal(copied.predict(X), expected)
    assert np.array_equal(copy.deepcopy(mixture).predict(X), mixture.predict(X))
