"""A graph of ONNX gives the probability of each decision, and what is not supported is refused."""

import json
from functools import cache

import numpy as np
import pytest
import two_groups
from estimators import CASES, TrainedMixture, unfitted
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import counterpoise as cp
from counterpoise.classifiers.folds import AveragedClassifier
from counterpoise.learners import HistogramTree
from counterpoise.persist import UnstorableModel

pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from counterpoise.persist.onnx import to_onnx  # noqa: E402 - where onnx is
from tests.tiers import some_fast  # noqa: E402

X, CODES = load_breast_cancer(return_X_y=True)
X, Y = X[:300, :8], np.array(["bad", "good"])[CODES[:300]]
FLOWERS = load_iris(return_X_y=True)
TABLES = {"two classes": (X, Y), "three classes": FLOWERS}
HOLES = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
MODELS = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "random tree": ExtraTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(8, random_state=0),
    "random forest": ExtraTreesClassifier(8, random_state=0),
    "boosted": HistGradientBoostingClassifier(max_iter=8),
    "ours": HistogramTree(4),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "twice scaled": make_pipeline(
        "passthrough", StandardScaler(with_std=False), StandardScaler(with_mean=False), LogisticRegression()
    ),
}
UNWRITTEN = {  # estimators of the common list that have no form
    "DROBoostClassifier, regressor": "a DROBoostClassifier with loss='squared' is not supported; you can export",
    "ConstrainedClassifier, rbf": "a ConstrainedClassifier with the kernel 'rbf' is not supported; you can export",
    "Resampled": "a Resampled of counterpoise is not supported; you can export trees of counterpoise",
    "NetworkLearner": "a NetworkLearner of counterpoise is not supported; you can export trees of",
}


def told(model, rows, **others):
    """Return what the runtime makes of a model's graph."""
    graph = to_onnx(model, None if others else rows)
    session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"rows": np.asarray(rows, dtype=np.float64), **others})[0]


def decided(model, rows, **others):
    """Return the probability that each class is the decision, or, of models without ``decision_proba``, is true."""
    name = "decision_proba" if hasattr(model, "decision_proba") else "predict_proba"
    return getattr(model, name)(rows, **others)[:, : len(model.classes_)]


@cache
def pool(table):
    """Return fitted models of all kinds that can be members of a mixture."""
    rows, labels = TABLES[table]
    members = [
        *(clone(MODELS[name]) for name in ("tree", "forest", "boosted", "ours", "logistic")),
        make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
        RidgeClassifier(),
        Perceptron(random_state=0),
        cp.AdaBoostClassifier(n_estimators=3),
        cp.AdaLPBoostClassifier(n_estimators=3, decision="vote", random_state=0),
    ]
    return [model.fit(rows[::2], labels[::2]) for model in members]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", some_fast([name for name in CASES if name not in UNWRITTEN], 6))
def test_every_estimator_that_can_be_written_agrees(name, table):
    rows, labels = TABLES[table]
    try:
        model = unfitted(name).fit(rows[::2], labels[::2])
    except ValueError as error:
        assert "Only binary classification is supported" in str(error)  # noqa: PT017 - fit says so, not to_onnx
        return
    model = model.chosen_ if isinstance(model, TrainedMixture) else model
    if table == "three classes" and hasattr(model, "rules_"):
        with pytest.raises(UnstorableModel, match="rules of more than two classes are not supported; you can export"):
            to_onnx(model)
        return
    assert_allclose(told(model, rows), decided(model, rows), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in UNWRITTEN if name in CASES])
def test_an_estimator_without_a_form_is_refused_with_what_has_one(name):
    model = unfitted(name).fit(X[:100], Y[:100])
    with pytest.raises(UnstorableModel, match=f"^This {type(model).__name__} cannot be exported to ONNX: .*") as caught:
        to_onnx(model)
    assert UNWRITTEN[name] in str(caught.value)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", MODELS)
def test_models_of_scikit_learn_agree(name, table):
    rows, labels = TABLES[table]
    model = MODELS[name].fit(rows[::2], labels[::2])
    assert_allclose(told(model, rows), model.predict_proba(rows), rtol=0, atol=1e-6)


@pytest.mark.parametrize("decision", ["fixed", "ramp"])
def test_a_moved_threshold_decides_alone_and_in_a_mixture(decision):
    model, rows, labels = two_groups.fitted().set_params(decision=decision), two_groups.X, two_groups.Y
    assert model.threshold_ != 0
    assert_allclose(told(model, rows), decided(model, rows), rtol=0, atol=1e-6)
    scored = cp.GoalClassifier([model], cv="prefit", decision="sticky", alpha=0.1, random_state=0).fit(rows, labels)
    assert_allclose(told(scored, rows), decided(scored, rows), rtol=0, atol=1e-6)
    if decision == "fixed":
        mixture = cp.MixtureClassifier([model], random_state=0).fit(rows, labels)
        assert_allclose(told(mixture, rows), decided(mixture, rows), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["tree", "forest", "boosted", "ours"])
def test_missing_values_go_the_same_way(name):
    model = MODELS[name].fit(HOLES[::2], Y[::2])
    assert_allclose(told(model, HOLES), model.predict_proba(HOLES), rtol=0, atol=1e-6)
    full = MODELS[name].fit(X, Y)  # which saw none: they go to the heavier side
    assert_allclose(told(full, HOLES), full.predict_proba(HOLES), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["tree", "boosted", "ours"])
def test_rows_on_a_threshold_and_next_to_it_agree(name):
    model = MODELS[name].fit(X, Y)
    edges = np.linspace(X.min(axis=0), X.max(axis=0), 200).astype(np.float32).astype(np.float64)
    for rows in (edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)):
        assert_allclose(told(model, rows), model.predict_proba(rows), rtol=0, atol=1e-6)


@pytest.mark.parametrize("has_missing", [False, True])
def test_categories_agree_known_or_not(has_missing):
    codes = np.random.default_rng(1).integers(0, 40, size=(300, 2)).astype(np.float64)
    labels = (codes[:, 0] % 3 == 0) ^ (codes[:, 1] < 9)
    rows = np.where(np.random.default_rng(2).random(codes.shape) < 0.1, np.nan, codes) if has_missing else codes
    model = HistogramTree(6, categorical_features=[0, 1]).fit(rows, labels)
    others = np.concatenate([rows, codes + 30, codes - 25, np.full((1, 2), np.nan), [[254, 255], [300, 1e9]]])
    assert_allclose(told(model, others), model.predict_proba(others), rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_a_mixture_of_all_kinds_agrees(table):
    rows, labels = TABLES[table]
    models = pool(table)
    mixture = cp.MixtureClassifier(models, random_state=0).fit(rows[1::2], labels[1::2])
    mixture.mixture_ = np.full(len(models), 1 / len(models))  # so that none is left out
    assert_allclose(told(mixture, rows), decided(mixture, rows), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "settings", [{}, {"pos_label": "bad"}, {"deferral": cp.Deferral(0.1)}, {"decision": "fixed", "alpha": 1.0}], ids=str
)
def test_rules_of_scores_agree(settings):
    models = pool("two classes")
    settings = {"alpha": 0.3, "decision": "sticky"} | settings
    mixture = cp.GoalClassifier(models, cv="prefit", random_state=0, **settings, confidence=None).fit(X[1::2], Y[1::2])
    assert_allclose(told(mixture, X), decided(mixture, X), rtol=0, atol=1e-6)


def test_models_of_folds_that_are_sure_of_different_classes_are_averaged():
    halves = [clone(MODELS["random tree"]).fit(X[part::2], Y[part::2]) for part in (0, 1)]
    model, shares = AveragedClassifier(halves), np.array([one.predict_proba(X)[:, 0] for one in halves])
    assert ((shares == 0).any(axis=0) & (shares == 1).any(axis=0)).any()
    assert_allclose(told(model, X), model.predict_proba(X), rtol=0, atol=1e-6)


def test_thresholds_of_groups_are_found_by_their_places():
    sex = np.where(np.arange(len(X)) % 3, "F", "M")
    model = cp.GoalClassifier(
        MODELS["boosted"], by="sex", cv=2, random_state=0, goals=["recall(sex=F) >= 0.97"], confidence=None
    )
    model.fit(X, Y, sensitive_features={"sex": sex})
    names = json.loads({entry.key: entry.value for entry in to_onnx(model).metadata_props}["groups"])
    places = np.array([names.index(f"sex={one}") for one in sex])
    expected = decided(model, X, sensitive_features={"sex": sex})
    assert_allclose(told(model, X, groups=places), expected, rtol=0, atol=1e-6)


def test_votes_that_deny_every_class_leave_probabilities():
    rows, labels = FLOWERS
    model = cp.AdaBoostClassifier(HistogramTree(2), n_estimators=3).fit(rows, labels)
    for ensemble in model.ensembles_:
        ensemble.votes[:] *= 1e4
    assert_allclose(told(model, rows), model.predict_proba(rows), rtol=0, atol=1e-6)


REFUSED = {
    "a part without a form": (
        lambda: cp.MixtureClassifier([KNeighborsClassifier().fit(X, Y)]).fit(X, Y),
        r"This MixtureClassifier cannot be exported to ONNX: a KNeighborsClassifier of sklearn is not supported",
    ),
    "draws inside": (
        lambda: cp.MixtureClassifier([cp.AdaLPBoostClassifier(n_estimators=2, random_state=0).fit(X, Y)]).fit(X, Y),
        r"AdaLPBoostClassifier that draws its decisions, and ONNX models cannot draw: set decision='vote' in it",
    ),
    "categories of scikit-learn": (
        lambda: HistGradientBoostingClassifier(max_iter=2, categorical_features=[0]).fit(X.round() % 9, Y),
        r"a HistGradientBoostingClassifier with categorical features is not supported; you can export",
    ),
    "no probabilities": (lambda: LinearSVC().fit(X / 1000, Y), r"a LinearSVC has no probabilities: you can export"),
    "not fitted": (HistogramTree, r"This HistogramTree is not fitted: call fit before to_onnx\."),
    "stored answers": (
        lambda: cp.MixtureClassifier([Y]).fit(X, Y),
        r"a ndarray of numpy is not supported; you can",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_form_is_refused_with_what_has(case):
    make, text = REFUSED[case]
    with pytest.raises(UnstorableModel, match=text):
        to_onnx(make())
