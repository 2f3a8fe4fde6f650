"""Graphs of real pipelines decide as the models do, on 10,000 rows; what is not converted rightly is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

import counterpoise as cp
from counterpoise.persist import UnstorableModel

converters = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from counterpoise.persist.onnx import to_onnx  # noqa: E402 - where onnx is
from tests.tiers import some_fast  # noqa: E402 - as above

TRAINED, ASKED = 2_000, 10_000
NUMBERS, TEXTS = ["amount", "age", "income"], ["job", "home"]


def loans(n_rows, seed):
    """Return applicants: amounts that single precision confuses, gaps, texts, some of them rare or missing."""
    rng = np.random.default_rng(seed)
    job = rng.choice(["cook", "smith", "baker", "diver"], n_rows, p=[0.4, 0.3, 0.29, 0.01])
    frame = pd.DataFrame(
        {
            "amount": 1e8 + np.round(20 * rng.normal(size=n_rows)),
            "age": rng.integers(18, 90, n_rows),
            "income": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows).round(2)),
            "job": job,
            "home": np.where(rng.random(n_rows) < 0.1, None, rng.choice(["own", "rent"], n_rows)),
            "sex": rng.choice(["F", "M"], n_rows),
        }
    )
    log_odds = (frame.amount - 1e8) / 20 + frame.income.fillna(-1) + (job == "cook") - (frame.age > 60)
    return frame, np.where(log_odds + rng.logistic(size=n_rows) > 0, "paid", "defaulted")


def lightgbm(**settings):
    library = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    return library.LGBMClassifier(n_estimators=15, verbose=-1, n_jobs=1, **settings)


def xgboost():
    library = pytest.importorskip("xgboost", reason="xgboost is large, and not installed")
    return library.XGBClassifier(n_estimators=15, n_jobs=1)


def catboost():
    library = pytest.importorskip("catboost", reason="catboost is large, and not installed")
    return library.CatBoostClassifier(iterations=15, verbose=0, allow_writing_files=False, thread_count=1)


def one_hot(**settings):
    return OneHotEncoder(sparse_output=False, **{"handle_unknown": "ignore"} | settings)


def encoded(model, numbers="passthrough", texts=None):
    columns = make_column_transformer((numbers, NUMBERS), (one_hot() if texts is None else texts, TEXTS))
    return make_pipeline(columns, model)


def filled(*after, **settings):
    return make_pipeline(SimpleImputer(**settings), *after)


def ordinal():
    return OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)


ALL = [*NUMBERS, *TEXTS]
PIPELINES = {  # models, and the columns that they see
    "LightGBM, numbers": (lightgbm, NUMBERS),
    "LightGBM, categories": (lightgbm, ALL),
    "LightGBM, encoded": (lambda: encoded(lightgbm()), ALL),
    "logistic": (lambda: encoded(LogisticRegression(), filled(StandardScaler())), ALL),
    "texts imputed": (
        lambda: encoded(
            LogisticRegression(),
            filled(MinMaxScaler(), strategy="median", add_indicator=True),
            filled(one_hot(drop="first"), strategy="most_frequent"),
        ),
        ALL,
    ),
    "ordinal codes": (
        lambda: encoded(HistGradientBoostingClassifier(max_iter=10), texts=filled(ordinal(), strategy="most_frequent")),
        ALL,
    ),
    "forest": (lambda: encoded(RandomForestClassifier(10, max_depth=6), filled(RobustScaler())), ALL),
    "naive Bayes": (lambda: make_pipeline(SimpleImputer(), StandardScaler(), PCA(2), GaussianNB()), NUMBERS),
    "discriminant": (lambda: make_pipeline(SimpleImputer(), StandardScaler(), LinearDiscriminantAnalysis()), NUMBERS),
    "AdaBoost of ours": (lambda: encoded(cp.AdaBoostClassifier(n_estimators=10)), ALL),
    "two models": (lambda: [encoded(LogisticRegression(), filled(StandardScaler())), encoded(lightgbm())], ALL),
    "XGBoost, numbers": (xgboost, NUMBERS),
    "XGBoost, encoded": (lambda: encoded(xgboost()), ALL),
    "CatBoost, encoded": (lambda: encoded(catboost()), ALL),
}


def decisions(graph, feed, **others):
    """Return the labels that a graph decides, where exactly one column is 1."""
    session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    (shares,) = session.run(None, {**feed, **others})
    assert set(np.unique(shares)) <= {0.0, 1.0}
    classes = json.loads({entry.key: entry.value for entry in graph.metadata_props}["classes"])
    return np.array(classes)[shares.argmax(axis=1)]


def feed_of(frame):
    """Return columns as an application would pass them: doubles, and texts, of which the empty one is missing."""
    return {
        name: np.array([[one if isinstance(one, str) else ""] for one in frame[name]], dtype=object)
        if name in TEXTS
        else frame[[name]].to_numpy(np.float64)
        for name in frame
    }


@pytest.mark.parametrize("name", some_fast(PIPELINES, 4))
def test_decisions_are_equal_on_ten_thousand_rows(name):
    make, columns = PIPELINES[name]
    train, labels = loans(TRAINED, seed=0)
    new, _ = loans(ASKED, seed=1)
    model = cp.GoalClassifier(make(), goals=["recall >= 0.8"], by="sex", cv=2, random_state=0, confidence=None)
    kinds = train[columns].astype(dict.fromkeys(TEXTS, "category") if name.endswith("categories") else {})
    model.fit(kinds, labels, sensitive_features=train[["sex"]])
    rows = new[columns].astype({one: kind for one, kind in kinds.dtypes.items() if kind.name == "category"})
    graph = to_onnx(model, rows[:1000], sensitive_features=new[["sex"]][:1000])
    groups = {"groups": (new.sex == "M").to_numpy(np.int64)}
    expected = model.predict(rows, sensitive_features=new[["sex"]])
    assert 0.1 < np.mean(expected == "paid") < 0.9
    np.testing.assert_array_equal(decisions(graph, feed_of(new[columns]), **groups), expected)


def fitted(steps, columns=None):
    train, labels = loans(200, seed=0)
    columns = ALL if columns is None else columns
    return make_pipeline(*steps, LogisticRegression()).fit(train[columns], labels), train[columns]


def columns_with(numbers="passthrough", texts=None):
    return make_column_transformer((numbers, ["age", "amount"]), (one_hot() if texts is None else texts, TEXTS))


REFUSED = {
    "a step without a converter": (
        lambda: fitted([columns_with(PowerTransformer())]),
        r"in 'powertransformer' of a ColumnTransformer, the step PowerTransformer .*; the steps that can be exported",
    ),
    "settings that a converter refuses": (
        lambda: fitted([columns_with(texts=one_hot(max_categories=2))]),
        r"the OneHotEncoder cannot be converted \(Infrequent categories are not implemented.*Change its settings",
    ),
    "texts without rows": (
        lambda: (fitted([columns_with()])[0], None),
        r"in 'onehotencoder' of a ColumnTransformer, the step OneHotEncoder encodes texts: pass X, a data frame of",
    ),
    "a search": (
        lambda: (GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}, cv=2).fit(*load_iris(return_X_y=True)), None),
        "a GridSearchCV is a search: export its best_estimator_",
    ),
    "no rows to check on": (
        lambda: (fitted([SimpleImputer(), StandardScaler()], NUMBERS)[0], None),
        r"other libraries convert its StandardScaler, not all versions rightly: pass X, some thousand rows",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_converted_rightly_is_refused_with_its_step_and_a_way_out(case):
    make, text = REFUSED[case]
    with pytest.raises(UnstorableModel, match=text):
        to_onnx(*make())


def test_a_converter_that_is_wrong_is_found_on_the_rows(monkeypatch):
    model, rows = fitted([SimpleImputer(), StandardScaler()], NUMBERS)
    other, convert = StandardScaler().fit(rows.fillna(0) * 1.01), converters.convert_sklearn
    monkeypatch.setattr(
        converters, "convert_sklearn", lambda _, *settings, **others: convert(other, *settings, **others)
    )
    text = (
        r"differs from it in 200 of 200 rows, by up to .* what other libraries convert: StandardScaler\. Do that step"
    )
    with pytest.raises(UnstorableModel, match=text):
        to_onnx(model, rows)
