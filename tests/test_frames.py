"""Frames and columns of pandas, polars and pyarrow give equal decisions; models get the frame that they were given."""

import datetime as dt
from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterpoise as cp
from counterpoise._base.frames import as_array
from counterpoise.goals import Table
from counterpoise.learners import HistogramTree, Resampled
from counterpoise.runs.tables import choose_table

RNG = np.random.default_rng(0)
N = 240
SCORE, AGE = RNG.normal(size=N), RNG.integers(18, 80, N)
Y = (SCORE + RNG.normal(size=N) > 0).astype(int)
SEX = ["F" if one else "M" for one in RNG.random(N) < 0.5]
JOB = RNG.choice(["cook", "smith", "baker"], N).tolist()
JOB[7] = None
SOME = [None if row % 9 == 0 else int(age) for row, age in enumerate(AGE)]  # whole numbers, some missing
IS_NEW = [None if row % 11 == 0 else bool(age > 40) for row, age in enumerate(AGE)]
AMOUNTS = [Decimal(int(age)) / 4 for age in AGE]
BEFORE = (SCORE > 0.2).astype(int)
THREE = np.digitize(SCORE + RNG.normal(size=N) / 2, [-0.6, 0.6])
WORDS = np.array(["low", "mid", "top"])[THREE].tolist()
PARITY = "positive_rate(sex=F) >= 0.9 * positive_rate(sex=M)"
LIBRARIES = ["pandas", "polars", "pyarrow"]


def columns_in(library):
    """Return named columns, each of the type that a user of the library would have."""
    plain = {"score": SCORE, "age": AGE, "sex": SEX, "y": Y, "before": BEFORE, "three": THREE, "words": WORDS}
    plain |= {
        "ids": [f"p{row}" for row in range(N)],
        "weight": 1.0 + AGE / 80,
        "lost": np.where(AGE > 70, np.nan, SCORE),
    }
    if library == "pandas":
        kinds = {"job": "category", "some": "Int64", "is_new": "boolean", "amount": pd.ArrowDtype(pa.decimal128(9, 2))}
        values = {"job": JOB, "some": SOME, "is_new": IS_NEW, "amount": AMOUNTS}
        return {name: pd.Series(one, name=name) for name, one in plain.items()} | {
            name: pd.Series(values[name], dtype=kind, name=name) for name, kind in kinds.items()
        }
    if library == "polars":
        job = pl.Series(JOB, dtype=pl.Enum(["baker", "cook", "smith"]))
        own = {"job": job, "some": SOME, "is_new": IS_NEW, "amount": pl.Series(AMOUNTS, dtype=pl.Decimal(9, 2))}
        return {name: pl.Series(name, one) for name, one in (plain | own).items()}
    own = {"job": pa.array(JOB).dictionary_encode(), "some": SOME, "is_new": IS_NEW, "amount": AMOUNTS}
    return {
        name: pa.chunked_array([one if isinstance(one, pa.Array) else pa.array(one)])
        for name, one in (plain | own).items()
    }


class Data:
    """The rows in one library."""

    def __init__(self, library):
        self.library, self.columns = library, columns_in(library)

    def __getattr__(self, name):
        return self.columns[name]

    def frame(self, *names):
        made_by = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[self.library]
        return made_by({name: self.columns[name] for name in names})


@cache
def data_in(library):
    return Data(library)


def encoded(*names):
    """Return a pipeline that picks columns by name."""
    return make_pipeline(
        make_column_transformer((StandardScaler(), list(names or ["score", "age"]))), LogisticRegression()
    )


def goal_model(estimator=None, goals=PARITY, **settings):
    settings = {"cv": 2, "random_state": 0, "confidence": None} | settings
    return cp.GoalClassifier(encoded() if estimator is None else estimator, goals=goals, **settings)


def group_columns_of_the_frame(data):
    X = data.frame("score", "age", "sex")
    return goal_model(by="sex").fit(X, data.y).predict(X)


def groups_beside_the_frame(data):
    X, groups = data.frame("score", "age"), data.frame("sex")
    return goal_model(by="sex").fit(X, data.y, sensitive_features=groups).predict(X, sensitive_features=groups)


def a_column_as_the_group(data):
    X, goal = data.frame("score", "age"), "positive_rate(group=F) >= 0.9 * positive_rate(group=M)"
    return (
        goal_model(goals=goal, by="group")
        .fit(X, data.y, sensitive_features=data.sex)
        .predict(X, sensitive_features=data.sex)
    )


def categories_and_missing_values_in_a_tree(data):
    X = data.frame("score", "job", "some", "lost")
    model = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5, categorical_features="from_dtype")
    return goal_model(model, "recall >= 0.8").fit(X, data.y).predict_proba(X)


def categories_as_groups(data):
    X = data.frame("score", "age", "job", "is_new")
    goal = "positive_rate(job=cook, is_new=True) >= 0.8 * positive_rate(job=baker)"
    return goal_model(goals=goal, by=cp.Groups(["job", "is_new"], unknown="pool")).fit(X, data.y).predict(X)


def whole_numbers_with_missing_ones_in_a_condition(data):
    X = data.frame("score", "age", "some")
    return goal_model(goals="positive_rate(some<40) >= 0.6").fit(X, data.y).predict(X)


def churn(data):
    X = data.frame("score", "age")
    return goal_model(goals="churn <= 0.1").fit(X, data.y, baseline=data.before).predict(X)


def draws_by_id(data):
    X = data.frame("score", "age", "sex")
    return goal_model(decision="sticky", alpha=0.5).fit(X, data.y, ids=data.ids).predict(X, ids=data.ids)


def draws_by_row(data):
    X = data.frame("score", "age", "sex", "some", "job", "amount")
    return goal_model(decision="sticky", alpha=0.5).fit(X, data.y).predict(X)


def another_dataset(data):
    X = data.frame("score", "age", "sex")
    live = Table(data.frame("score", "age", "sex"), baseline=data.before)
    return goal_model(goals="churn(live, sex=F) <= 0.1").fit(X, data.y, datasets={"live": live}).predict(X)


def three_classes_as_texts(data):
    X = data.frame("score", "age", "sex")
    goal = "precision(of=top, sex=F) >= 0.5"
    return goal_model(goals=goal).fit(X, data.words).predict(X)


def deferral(data):
    X = data.frame("score", "age", "sex")
    return goal_model(goals="coverage >= 0.7", deferral=cp.Deferral(0.2)).fit(X, data.y).predict(X)


def weights_and_amounts(data):
    X = data.frame("score", "age", "amount")
    model = goal_model(None, "positive_rate(value=amount) >= 0.6")
    return model.fit(X, data.y, sample_weight=data.weight).predict(X)


def a_mixture_of_fitted_models(data):
    X = data.frame("score", "age", "sex")
    models = [encoded(*names).fit(X, data.y) for names in (["score"], ["age"], ["score", "age"])]
    mixture = cp.MixtureClassifier(models, alpha=0.5, goals=PARITY, random_state=0, confidence=None)
    return mixture.fit(X, data.y).predict(X)


def lpboost_inside_goals(data):
    X = data.frame("score", "age", "some")
    model = cp.LPBoostClassifier(HistogramTree(2), n_estimators=3, goals=PARITY, random_state=0, confidence=None)
    return model.fit(X, data.y, sensitive_features=data.frame("sex")).predict(X)


def adalpboost_of_pipelines(data):
    X = data.frame("age", "sex", "score")
    model = cp.AdaLPBoostClassifier(encoded(), n_estimators=3, random_state=0, confidence=None)
    return model.fit(X, data.y, X_val=X, y_val=data.y).predict(X)


def vadaboost(data):
    X = data.frame("score", "age")
    return cp.VadaBoostClassifier(n_estimators=5).fit(X, data.y).decision_function(X)


def resampled_pipelines(data):
    X = data.frame("score", "age", "sex")
    return Resampled(encoded(), random_state=0).fit(X, data.y, data.weight).predict(X)


def a_constrained_machine(data):
    X = data.frame("score", "age")
    model = cp.ConstrainedClassifier(goals=PARITY, random_state=0)
    return model.fit(X, data.y, sensitive_features=data.frame("sex")).predict(X)


def an_audit(data):
    goals = [PARITY, "churn <= 0.3"]
    found = cp.audit(goals, data.before, data.y, sensitive_features=data.frame("sex"), baseline=data.before)
    return [(one.estimate, one.low, one.high) for one in found]


def a_certificate(data):
    X = data.frame("score", "age", "sex")
    found = cp.certify(goal_model().fit(X, data.y), [PARITY], X, data.y)
    return [(one.estimate, one.low, one.high) for one in found]


def impact(data):
    found = cp.impact_ratios(data.before, data.frame("sex", "job", "is_new"))
    return [str(found)]


def monitoring(data):
    watch = cp.Monitor([PARITY], largest_weight=3.0)
    found = watch.update(
        data.before, data.y, sensitive_features=data.frame("sex"), ids=data.ids, sample_weight=data.weight
    )
    return [str(found)]


def explanations(data):
    X = data.frame("score", "age", "sex")
    found = goal_model(by="sex").fit(X, data.y).explain(X)
    return [str(one) for one in found[:5]]


def everyday_methods(data):
    X = data.frame("score", "age", "sex")
    model = goal_model().fit(X, data.y)
    checks = [one.value for one in model.check_goals(X, data.y)]
    return [model.score(X, data.y), *checks, *model.rebalance(goals=["recall >= 0.8"]).predict(X)]


def rules_for_a_file(data, folder):
    frame, path = data.frame("score", "sex", "y", "ids"), folder / f"{data.library}.parquet"
    if data.library == "pyarrow":
        pq.write_table(frame, path)
    else:
        (frame.to_parquet if data.library == "pandas" else frame.write_parquet)(path)
    output = folder / f"{data.library}.json"
    found = choose_table(
        path, output, target="y", scores=["score"], goals=[PARITY], groups=["sex"], ids="ids", confidence=None
    )
    return [one.value for one in found.checks], [str(rule) for rule in found.rules.rules]


CASES = [
    group_columns_of_the_frame,
    groups_beside_the_frame,
    a_column_as_the_group,
    categories_and_missing_values_in_a_tree,
    categories_as_groups,
    whole_numbers_with_missing_ones_in_a_condition,
    churn,
    draws_by_id,
    draws_by_row,
    another_dataset,
    three_classes_as_texts,
    deferral,
    weights_and_amounts,
    a_mixture_of_fitted_models,
    lpboost_inside_goals,
    adalpboost_of_pipelines,
    vadaboost,
    resampled_pipelines,
    a_constrained_machine,
    an_audit,
    a_certificate,
    impact,
    monitoring,
    explanations,
    everyday_methods,
]


@cache
def of_pandas(case):
    return case(data_in("pandas"))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_decisions_are_those_of_pandas(case, library):
    assert_array_equal(case(data_in(library)), of_pandas(case))


def test_rules_chosen_on_files_of_every_library_are_equal(tmp_path):
    found = [rules_for_a_file(data_in(library), tmp_path) for library in LIBRARIES]
    assert found[0] == found[1] == found[2]


class Onlooker(ClassifierMixin, BaseEstimator):
    """Keeps the frames that it is given."""

    def fit(self, X, y):
        self.classes_, self.trained_on = np.unique(y), X
        return self

    def predict_proba(self, X):
        self.asked_about = X
        share = as_array(X["lost"])
        share = 1 / (1 + np.exp(-np.nan_to_num(share)))
        return np.column_stack([1 - share, share])


@pytest.mark.parametrize("library", LIBRARIES)
def test_models_get_the_frame_that_was_given(library):
    X = data_in(library).frame("lost", "sex", "job", "age")
    model = cp.GoalClassifier(Onlooker(), random_state=0, confidence=None).fit(X, Y)
    model.predict(X)
    for inside in model.estimators_[0].models:
        trained, asked = inside.trained_on, inside.asked_about
        assert type(trained) is type(asked) is type(X)
        assert list(getattr(trained, "column_names", trained.columns)) == ["lost", "sex", "job", "age"]
        assert kinds_of(trained) == kinds_of(asked) == kinds_of(X)
        assert (len(trained), len(asked)) == (192, 240)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
@pytest.mark.parametrize("way", ["of fit", "of a booster", "of predict"])
def test_texts_at_which_lightgbm_ends_the_process_are_refused(way, library):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    model, X = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1), data_in(library).frame("score", "job")
    if way == "of predict":
        model.fit(data_in("pandas").frame("score", "job"), Y)
        model = cp.GoalClassifier(model, cv="prefit", confidence=None)
    elif way == "of fit":
        model = cp.GoalClassifier(model, cv=2, confidence=None)
    else:
        model = cp.LPBoostClassifier(model, n_estimators=2, confidence=None)
    with pytest.raises(
        (TypeError, ValueError), match=f"numbers alone from frames of {library}; the column 'job' holds"
    ):
        model.fit(X, Y)


def kinds_of(frame):
    return frame.schema if hasattr(frame, "schema") else frame.dtypes.to_dict()


LABELS = [
    pd.Series(Y, dtype="Int64"),
    pd.Series(Y == 1, dtype="boolean"),
    pd.Series(["yes" if one else "no" for one in Y], dtype="string"),
    pd.Series(["yes" if one else "no" for one in Y], dtype="category"),
    pl.Series(["yes" if one else "no" for one in Y], dtype=pl.Enum(["yes", "no"])),
    pa.array(["yes" if one else "no" for one in Y]).dictionary_encode(),
]


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: str(getattr(labels, "dtype", "arrow")).split("(")[0])
def test_labels_may_be_of_any_type(labels):
    X = np.column_stack([SCORE, AGE])
    model = cp.GoalClassifier(LogisticRegression(), goals="recall >= 0.7", cv=2, random_state=0, confidence=None)
    expected = model.fit(X, Y).predict(X) == 1
    assert_array_equal(model.fit(X, labels).predict(X) == model.classes_[1], expected)
    assert model.score(X, labels) == model.fit(X, Y).score(X, Y)


LARGE = 2**60 + 1
DAY = dt.date(2026, 11, 3)
COLUMNS = {
    "whole numbers": ([pd.Series([1, 2], dtype="Int64"), pl.Series([1, 2]), pa.array([1, 2])], np.array([1, 2])),
    "whole numbers, some missing": (
        [
            pd.Series([LARGE, None], dtype="Int64"),
            pl.Series([LARGE, None]),
            pa.array([LARGE, None]),
            pd.Series([LARGE, None], dtype="int64[pyarrow]"),
        ],
        np.array([LARGE, None], dtype=object),
    ),
    "truth values": (
        [pd.Series([True, False], dtype="boolean"), pl.Series([True, False]), pa.array([True, False])],
        np.array([True, False]),
    ),
    "truth values, some missing": (
        [pd.Series([True, None], dtype="boolean"), pl.Series([True, None]), pa.array([True, None])],
        np.array([True, None], dtype=object),
    ),
    "floats": (
        [pd.Series([0.5, None], dtype="Float64"), pl.Series([0.5, None]), pa.array([0.5, None])],
        np.array([0.5, np.nan]),
    ),
    "texts": (
        [
            pd.Series(["a", None]),
            pd.Series(["a", None], dtype="string"),
            pd.Series(["a", None], dtype=object),
            pl.Series(["a", None]),
            pa.array(["a", None]),
        ],
        np.array(["a", None], dtype=object),
    ),
    "categories": (
        [
            pd.Series(["a", None], dtype="category"),
            pl.Series(["a", None], dtype=pl.Categorical),
            pl.Series(["a", None], dtype=pl.Enum(["b", "a"])),
            pa.array(["a", None]).dictionary_encode(),
        ],
        np.array(["a", None], dtype=object),
    ),
    "decimals": (
        [
            pd.Series([Decimal("1.25"), None], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
            pl.Series([Decimal("1.25"), None]),
            pa.array([Decimal("1.25"), None]),
        ],
        np.array([1.25, np.nan]),
    ),
    "days": ([pl.Series([DAY]), pa.array([DAY])], np.array([DAY], dtype="datetime64[D]")),
    "nothing": ([pl.Series([None], dtype=pl.Null)], np.array([np.nan])),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_are_read_alike(kind):
    columns, expected = COLUMNS[kind]
    for column in columns:
        array = as_array(column)
        assert array.dtype.kind == expected.dtype.kind
        assert_array_equal(array, expected)
        if isinstance(column, pa.Array):
            assert_array_equal(as_array(pa.chunked_array([column])), expected)
