"""What stands around our estimators: metadata routing of scikit-learn, frames of every library, ``python -m``."""

import runpy
import sys
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterpoise as cp
from counterpoise.learners import HistogramTree

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[:200, :4].round(), Y[:200]
NAMES = list("abcd")
SEX = np.array(["F", "M"])[np.arange(200) % 2]
GOAL = "positive_rate(sex=F) >= 0.8 * positive_rate(sex=M)"
INSIDE_GOALS = {
    "GoalClassifier": cp.GoalClassifier(HistogramTree(3), goals=GOAL, cv=2, random_state=0, confidence=None),
    "ConstrainedClassifier": cp.ConstrainedClassifier(goals=GOAL, random_state=0),
    "LPBoostClassifier": cp.LPBoostClassifier(HistogramTree(2), n_estimators=3, goals=GOAL, random_state=0),
}
inside_goals = pytest.mark.parametrize("name", INSIDE_GOALS)


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


@cache
def fitted(name):
    return clone(INSIDE_GOALS[name]).fit(X, Y, sensitive_features={"sex": SEX})


def frame_of(library, columns):
    module = pytest.importorskip(library, reason="data frames")
    return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)


@pytest.mark.usefixtures("routing")
@inside_goals
def test_a_search_over_a_pipeline_routes_groups_and_weights_to_the_rows_of_each_fold(name):
    model = clone(INSIDE_GOALS[name])
    model.set_fit_request(sensitive_features=True, sample_weight=True)
    weighted = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    steps = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
    search = GridSearchCV(steps, {f"{name.lower()}__random_state": [0]}, scoring=weighted, cv=2, error_score="raise")
    search.fit(X, Y, sensitive_features=frame_of("pandas", {"sex": SEX}), sample_weight=np.ones(200))
    alone = clone(INSIDE_GOALS[name])
    alone.fit(StandardScaler().fit_transform(X), Y, np.ones(200), sensitive_features={"sex": SEX})
    assert_array_equal(search.best_estimator_.predict_proba(X), alone.predict_proba(StandardScaler().fit_transform(X)))


@pytest.mark.usefixtures("routing")
@inside_goals
def test_what_is_passed_must_be_asked_for(name):
    steps = make_pipeline(StandardScaler(), clone(INSIDE_GOALS[name]))
    with pytest.raises(ValueError, match=r"sensitive_features\] are passed but are not explicitly set as requested"):
        steps.fit(X, Y, sensitive_features={"sex": SEX})


@pytest.mark.usefixtures("routing")
def test_a_pipeline_routes_ids_and_groups_to_predict():
    model = cp.GoalClassifier(
        HistogramTree(3), goals=GOAL, by="sex", cv=2, decision="sticky", random_state=0, confidence=None
    )
    model.set_fit_request(sensitive_features=True)
    model.set_predict_request(sensitive_features=True, ids=True)
    groups, people = {"sex": SEX}, np.arange(200)
    steps = make_pipeline(StandardScaler(), model).fit(X, Y, sensitive_features=groups)
    rows = StandardScaler().fit_transform(X)
    fitted = steps[-1]
    expected = fitted.predict(rows, ids=people, sensitive_features=groups)
    assert_array_equal(steps.predict(X, ids=people, sensitive_features=groups), expected)
    assert_array_equal(steps.predict_proba(X), fitted.predict_proba(rows))  # which look at no groups


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@inside_goals
def test_frames_of_every_library_are_as_good_as_arrays(name, library):
    frame, groups = frame_of(library, dict(zip(NAMES, X.T, strict=True))), frame_of(library, {"sex": SEX})
    expected = fitted(name)
    found = clone(INSIDE_GOALS[name]).fit(frame, Y, sensitive_features=groups)
    assert_array_equal(found.predict(frame), expected.predict(X))
    assert_allclose(found.predict_proba(frame), expected.predict_proba(X), rtol=0, atol=1e-9)
    assert [check.value for check in found.check_goals(frame, Y, sensitive_features=groups)] == pytest.approx(
        [check.value for check in expected.check_goals(X, Y, sensitive_features={"sex": SEX})]
    )


COMMANDS = [
    *("demo", "init", "fit", "predict", "audit", "choose", "apply", "explore"),
    *("report", "goals", "data", "plan"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_runs_as_a_module(command, monkeypatch, capsys):
    pytest.importorskip("cyclopts", reason="the command line")
    monkeypatch.setattr(sys, "argv", ["counterpoise", command, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("counterpoise", run_name="__main__")
    assert ended.value.code == 0
    assert f"counterpoise {command}" in capsys.readouterr().out
