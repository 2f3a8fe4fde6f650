"""One rule decides the same everywhere: in Python, in explanations, in SQL, in JavaScript and in ONNX."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import counterpoise as cp
from counterpoise.runs.rule_file import RuleFile, as_file_rules
from counterpoise.runs.rule_sql import rule_sql

pytestmark = pytest.mark.slow
N = 10_000


@pytest.fixture(scope="module", params=[None, cp.Deferral(0.2)], ids=["decides", "defers"])
def decided(request):
    """Return a fitted classifier, rows, their groups and its decisions."""
    rng = np.random.default_rng(0)
    X, sex = rng.normal(size=(N, 4)), rng.choice(["F", "M"], N)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * (sex == "M") + rng.normal(size=N) > 0.4).astype(int)
    goals = ["recall >= 0.8", "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.03"]
    model = cp.GoalClassifier(
        HistGradientBoostingClassifier(max_iter=20),
        goals=goals,
        by="sex",
        deferral=request.param,
        random_state=0,
        confidence=None,
    )
    model.fit(X[:3000], y[:3000], sensitive_features={"sex": sex[:3000]})
    return model, X, sex, model.predict(X, sensitive_features={"sex": sex})


@pytest.fixture(scope="module")
def rules(decided):
    """Return the rule as that of a file."""
    model = decided[0]
    label = None if model.deferral is None else model.deferral.label
    rules = as_file_rules(model.rules_, model.mixture_, ["p"], defers=label is not None)
    names = {"format": f"counterpoise rules {1 if label is None else 2}", "positive": 1, "negative": 0}
    return RuleFile(**names, deferred=label, by=["sex"], key="0123456789abcdef", rules=rules)


def table_of(decided):
    model, X, sex, _ = decided
    return pd.DataFrame({"id": range(N), "sex": sex, "p": model.predict_proba(X)[:, 1], "q": 0.0})


def test_explanations_decide_the_same(decided):
    model, X, sex, said = decided
    found = model.explain(X, sensitive_features={"sex": sex})
    assert [one.decision for one in found] == said.tolist()
    for one in found:
        above = one.score > one.threshold
        between = one.lower is not None and one.lower < one.score <= one.threshold
        assert one.decision == ("defer" if between else int(above))


def test_onnx_decides_the_same(decided):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from counterpoise.persist.onnx import to_onnx  # noqa: PLC0415 - needs what was asked for above

    model, X, sex, said = decided
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    groups = np.searchsorted(model.groups_.names, [f"sex={one}" for one in sex]).astype(np.int64)
    told = session.run(None, {"rows": X, "groups": groups})[0]
    expected = said[:, None].astype(str) == np.array(["0", "1"])
    near = np.abs([one.change for one in model.explain(X, sensitive_features={"sex": sex})]) < 1e-9
    assert near.mean() < 0.001
    np.testing.assert_array_equal(told[~near] > 0.5, expected[~near])


def test_sql_decides_the_same(decided, rules):
    with closing(sqlite3.connect(":memory:")) as base:
        table_of(decided).to_sql("loans", base, index=False)
        found = base.execute(f"SELECT {rule_sql(rules)} FROM loans ORDER BY id").fetchall()  # noqa: S608 - of this test
    assert [str(answer) for (answer,) in found] == decided[3].astype(str).tolist()
