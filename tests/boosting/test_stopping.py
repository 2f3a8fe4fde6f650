"""``Stopping`` and ``Checkpoint`` as values, and how boosters take them."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

import counterpoise as cp
from counterpoise.boosting.stopping import stopping_of
from counterpoise.learners import Stump

X, Y = make_classification(300, 5, n_informative=3, flip_y=0.2, random_state=0)
VALUES = [
    cp.Stopping(),
    cp.Stopping(7),
    cp.Stopping(patience=3, validation_fraction=0.25),
    cp.Stopping(n_folds=None),
    cp.Stopping(validation_fraction="auto", n_folds=4),
    cp.Checkpoint("rounds"),
]
ADDITIVE = {
    cp.AdaBoostClassifier: None,
    cp.VadaBoostClassifier: 100,
    cp.EBBoostClassifier: 100,
    cp.RLPBoostClassifier: 100,
    cp.RQPBoostClassifier: 100,
    cp.DROBoostClassifier: 10,
}
MIXED = (cp.LPBoostClassifier, cp.AdaLPBoostClassifier)
OLD = ("patience", "validation_fraction", "n_folds")


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_equal_by_their_fields_and_survive_every_copy(value):
    others = [one for one in VALUES if one is not value]
    assert value not in others
    copies = [
        clone(value),
        copy.deepcopy(value),
        pickle.loads(pickle.dumps(value)),  # noqa: S301 - ours
        eval(repr(value), {"Stopping": cp.Stopping, "Checkpoint": cp.Checkpoint}),  # noqa: S307 - ours
        cp.persist.loads(cp.persist.dumps(value)),
    ]
    assert all(one == value and hash(one) == hash(value) for one in copies)
    assert len({value, *copies, *others}) == len(VALUES)


def test_values_cannot_be_changed():
    with pytest.raises(AttributeError, match="cannot assign to field 'patience'"):
        cp.Stopping().patience = 3
    with pytest.raises(AttributeError, match="cannot assign to field 'folder'"):
        cp.Checkpoint("here").folder = "there"


BAD = {
    "patience": ({"patience": 0}, ValueError, "patience must be at least 1; got 0"),
    "patience word": ({"patience": "long"}, TypeError, "patience must be a whole number of at least 1; got 'long'"),
    "fraction": (
        {"validation_fraction": 1.0},
        ValueError,
        r"validation_fraction must lie in \(0, 1\), or None to set no samples aside; got 1.0",
    ),
    "no fraction": ({"validation_fraction": 0}, ValueError, r"validation_fraction must lie in \(0, 1\).*got 0"),
    "fraction word": ({"validation_fraction": "some"}, ValueError, "fraction.*must be one of 'auto'; got 'some'"),
    "folds": ({"n_folds": 1}, ValueError, "n_folds must be at least 2; got 1"),
    "folds word": ({"n_folds": "five"}, ValueError, "n_folds, where it is a word, must be one of 'auto'; got 'five'"),
}


@pytest.mark.parametrize("case", BAD)
def test_values_out_of_range_are_refused_when_they_are_made(case):
    settings, kind, text = BAD[case]
    with pytest.raises(kind, match=text):
        cp.Stopping(**settings)


def test_what_came_from_a_file_is_checked():
    odd = cp.Stopping(3)
    vars(odd)["patience"] = -1
    written = cp.persist.dumps(odd)
    with pytest.raises(cp.persist.UnreadableModel, match="patience must be at least 1; got -1"):
        cp.persist.loads(written)


@pytest.mark.parametrize("booster", [*ADDITIVE, *MIXED])
def test_a_booster_keeps_its_values_through_clone_and_file(booster, tmp_path):
    stopping = cp.Stopping(patience=2, validation_fraction=0.3)
    model = booster(Stump(), n_estimators=4, stopping=stopping, random_state=0)
    assert clone(model).stopping == stopping
    model.fit(X, Y)
    cp.save(model, tmp_path / "model.cp")
    again = cp.load(tmp_path / "model.cp")
    assert again.get_params()["stopping"] == stopping
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("name", OLD)
@pytest.mark.parametrize("booster", [*ADDITIVE, *MIXED])
def test_single_parameters_are_fields_of_stopping_alone(booster, name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        booster(**{name: 3})


@pytest.mark.parametrize("booster", ADDITIVE)
def test_none_asks_for_the_default_of_a_booster_and_a_value_says_everything(booster):
    assert booster.default_stopping == cp.Stopping(patience=ADDITIVE[booster])
    assert stopping_of(booster()).patience == ADDITIVE[booster]
    assert stopping_of(booster(stopping=cp.Stopping(validation_fraction=0.2))).patience is None


@pytest.mark.parametrize("booster", ADDITIVE)
def test_an_additive_booster_refuses_folds(booster):
    with pytest.raises(ValueError, match=f"n_folds=5 is for LPBoost.*{booster.__name__} stops by held-out samples"):
        booster(stopping=cp.Stopping(n_folds=5)).fit(X, Y)


@pytest.mark.parametrize("booster", [*MIXED, cp.AdaBoostClassifier])
def test_a_fraction_by_size_is_for_dro_boosting_alone(booster):
    with pytest.raises(ValueError, match=r"fraction='auto' is for DROBoostClassifier; .* takes a number in \(0, 1\)"):
        booster(stopping=cp.Stopping(validation_fraction="auto")).fit(X, Y)


@pytest.mark.parametrize("booster", [cp.LPBoostClassifier, cp.VadaBoostClassifier])
def test_stopping_must_be_a_value(booster):
    with pytest.raises(TypeError, match=r"stopping must be a Stopping, .*or None for the default.*; got 10"):
        booster(stopping=10).fit(X, Y)


def test_a_checkpoint_is_a_folder_and_a_path_is_short_for_it(tmp_path):
    settings = {"n_estimators": 3, "random_state": 0}
    saved = cp.Checkpoint(tmp_path / "rounds")
    assert saved == cp.Checkpoint(str(tmp_path / "rounds"))
    assert saved.rounds_done() == 0
    whole = cp.AdaLPBoostClassifier(Stump(), checkpoint=saved, **settings).fit(X, Y)
    assert saved.rounds_done() == 3
    for short in (tmp_path / "rounds", str(tmp_path / "rounds")):
        again = cp.AdaLPBoostClassifier(Stump(), checkpoint=short, **settings).fit(X, Y)
        np.testing.assert_array_equal(again.mixture_, whole.mixture_)


@pytest.mark.parametrize("folder", [3, None, b"rounds"])
def test_the_folder_of_a_checkpoint_is_a_path(folder):
    with pytest.raises(TypeError, match=r"folder must be the path of a folder, as a text or a Path; got"):
        cp.Checkpoint(folder)


def test_a_model_with_a_checkpoint_can_be_saved(tmp_path):
    model = cp.AdaLPBoostClassifier(Stump(), n_estimators=2, checkpoint=cp.Checkpoint(tmp_path / "rounds"))
    cp.save(model.fit(X, Y), tmp_path / "model.cp")
    assert cp.load(tmp_path / "model.cp").checkpoint == cp.Checkpoint(Path(tmp_path) / "rounds")


@pytest.mark.parametrize(("booster", "most"), [*((one, 19) for one in MIXED), *((one, 13) for one in ADDITIVE)])
def test_constructors_stay_short(booster, most):
    names = set(booster().get_params(deep=False)) - {"key"}
    assert len(names) <= most
