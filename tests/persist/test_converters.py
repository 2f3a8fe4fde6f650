"""Where the general converters are wrong on double precision, our own code writes the graph; elsewhere they do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
onnxmltools = pytest.importorskip("onnxmltools", reason="onnxmltools is not installed")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from onnxmltools.convert.common.data_types import FloatTensorType  # noqa: E402 - where it is
from skl2onnx.common.data_types import DoubleTensorType  # noqa: E402 - as above

import counterpoise as cp  # noqa: E402 - as above
from counterpoise.persist.onnx import to_onnx  # noqa: E402 - as above

X, Y = load_breast_cancer(return_X_y=True)
X = X[:, :8]
FLOWERS = load_iris(return_X_y=True)
AMOUNTS = 1e8 + np.round(20 * np.random.default_rng(0).normal(size=(2000, 1)))  # which single precision confuses


def answers(graph, rows):
    """Return the last output of a graph, a matrix of probabilities."""
    session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: rows})[-1]


def by_skl2onnx(model, n_features):
    kinds, versions = [("rows", DoubleTensorType([None, n_features]))], {"": 19, "ai.onnx.ml": 3}
    return skl2onnx.convert_sklearn(model, None, kinds, target_opset=versions, options={"zipmap": False})


def by_onnxmltools(model, n_features):
    kinds = [("rows", FloatTensorType([None, n_features]))]
    return onnxmltools.convert_lightgbm(model, "model", kinds, target_opset=15, zipmap=False)


def lightgbm():
    library = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    return library.LGBMClassifier(n_estimators=15, verbose=-1, n_jobs=1)


WRONG = {  # the converter, the model, its rows and labels
    "a forest": (by_skl2onnx, lambda: RandomForestClassifier(8, random_state=0), *FLOWERS),
    "a discriminant": (by_skl2onnx, LinearDiscriminantAnalysis, X[:300], Y[:300]),
    "LightGBM": (by_onnxmltools, lightgbm, AMOUNTS, (AMOUNTS[:, 0] > 1e8).astype(int)),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # of LightGBM
@pytest.mark.parametrize("name", WRONG)
def test_our_graph_agrees_where_the_converter_is_wrong(name):
    convert, make, rows, labels = WRONG[name]
    model = make().fit(rows, labels)
    expected = model.predict_proba(rows)
    assert_allclose(answers(to_onnx(model, rows), rows), expected, rtol=0, atol=1e-9)
    graph = convert(model, rows.shape[1])
    converted = answers(graph, rows.astype(np.float32) if convert is by_onnxmltools else rows)
    assert np.abs(converted - expected).max() > 0.01


FAILING = {
    "a tree": (DecisionTreeClassifier(max_depth=4), "does not match expected type"),
    "histogram boosting": (HistGradientBoostingClassifier(max_iter=4), "Unable to create node"),
    "an imputer": (make_pipeline(SimpleImputer(), GaussianNB()), "Could not find an implementation for Imputer"),
}


@pytest.mark.parametrize("name", FAILING)
def test_our_graph_agrees_where_the_converter_fails(name):
    model, message = FAILING[name]
    model.fit(X, Y)
    assert_allclose(answers(to_onnx(model, X), X), model.predict_proba(X), rtol=0, atol=1e-9)
    with pytest.raises(Exception, match=message):
        answers(by_skl2onnx(model, X.shape[1]), X)


def test_scores_of_ridge_are_ours_as_the_converter_has_none():
    model = RidgeClassifier().fit(X, Y)
    graph = to_onnx(cp.MixtureClassifier([model]).fit(X, Y), X)
    assert_allclose(answers(graph, X).argmax(axis=1), model.predict(X))
    with pytest.raises(NotImplementedError, match="is not supported with double"):
        by_skl2onnx(model, X.shape[1])
