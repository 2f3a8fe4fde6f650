"""Models in MLflow: our own files, no pickle, the same answers for the same people in any batch."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterpoise as cp
from counterpoise.datasets import loans
from counterpoise.learners import HistogramTree, Stump
from counterpoise.persist import UnreadableModel, UnstorableModel
from counterpoise.runs import fit_run, log_run, predict_run

mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")

from counterpoise.persist.mlflow import load_model, log_model, save_model  # noqa: E402 - where MLflow is

FRAME, Y = load_breast_cancer(return_X_y=True, as_frame=True)
FRAME, Y = FRAME.iloc[:200, :4], np.array(["bad", "good"])[Y[:200]]
PERSON = np.array([f"p{place}" for place in range(200)])
SEX = np.array(["F", "M"])[np.arange(200) % 2]
MODEL = cp.AdaLPBoostClassifier(Stump(), n_estimators=4, mixture="average", random_state=0).fit(FRAME, Y)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Let MLflow keep its runs in a folder."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield
    mlflow.set_tracking_uri(before)


def in_batches(asked, rows, size=37):
    return np.concatenate([asked.predict(rows[start : start + size]) for start in range(0, len(rows), size)])


def test_without_mlflow_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    ways = {
        lambda: save_model(MODEL, tmp_path / "model"): UnstorableModel,
        lambda: log_model(MODEL, "m"): UnstorableModel,
    }
    for way, error in (ways | {lambda: load_model(str(tmp_path)): UnreadableModel}).items():
        with pytest.raises(error, match=r'with mlflow: pip install "counterpoise\[mlflow\]"'):
            way()


@pytest.mark.slow
@pytest.mark.usefixtures("runs")
def test_a_logged_model_comes_back_whole_and_is_asked_by_its_signature():
    rows = FRAME.assign(person=PERSON)
    with mlflow.start_run():
        uri = log_model(MODEL, "loans", ids="person", input_example=rows.head(3)).model_uri
    expected = MODEL.predict(FRAME, ids=PERSON)
    assert set(expected) == {"bad", "good"}
    again, asked = load_model(uri), mlflow.pyfunc.load_model(uri)
    assert_array_equal(again.predict(FRAME, ids=PERSON), expected)
    assert again.rebalance(alpha=0.5).alpha_ == 0.5
    assert_array_equal(in_batches(asked, rows), expected)
    assert asked.metadata.signature.inputs.input_names() == [*FRAME.columns, "person"]
    moved = rows.assign(**{FRAME.columns[0]: rows.iloc[:, 0] + 1e-3})  # another row of the same person
    same = np.array([model.predict(FRAME) for model in MODEL.estimators_]) == np.array(
        [model.predict(moved[FRAME.columns]) for model in MODEL.estimators_]
    )
    assert_array_equal(asked.predict(moved)[same.all(axis=0)], expected[same.all(axis=0)])
    with pytest.raises(mlflow.exceptions.MlflowException, match="person"):
        asked.predict(FRAME)


@pytest.mark.slow
def test_no_file_of_the_folder_is_a_pickle_and_its_model_is_ours(tmp_path):
    save_model(MODEL, tmp_path / "model", extra_pip_requirements=["lightgbm"])
    files = {path.relative_to(tmp_path / "model").as_posix() for path in (tmp_path / "model").rglob("*")}
    assert files == {"MLmodel", "conda.yaml", "data", "data/model.cp", "python_env.yaml", "requirements.txt"}
    assert_array_equal(cp.load(tmp_path / "model/data/model.cp").predict(FRAME), MODEL.predict(FRAME))
    required = (tmp_path / "model/requirements.txt").read_text().split()
    assert {f"counterpoise[mlflow]=={cp.__version__}", "lightgbm"} <= set(required)


def test_the_method_can_be_chosen_when_the_model_is_loaded(tmp_path):
    save_model(MODEL, tmp_path / "model")
    asked = mlflow.pyfunc.load_model(str(tmp_path / "model"), model_config={"method": "predict_proba"})
    assert_allclose(in_batches(asked, FRAME), MODEL.predict_proba(FRAME), rtol=0, atol=0)
    with pytest.raises(
        ValueError, match="method must be one of 'predict', 'predict_proba', 'decision_proba'; got 'fit'"
    ):
        mlflow.pyfunc.load_model(str(tmp_path / "model"), model_config={"method": "fit"}).predict(FRAME)


def test_rules_are_told_the_columns_that_they_look_at(tmp_path):
    model = cp.GoalClassifier(
        [HistogramTree(3).fit(FRAME, Y)],
        cv="prefit",
        decision="sticky",
        alpha=0.1,
        by=["sex", "baseline"],
        random_state=0,
    )
    said = np.roll(Y, 1)
    model.fit(FRAME, Y, sensitive_features={"sex": SEX}, baseline=said)
    columns = {"ids": "person", "sensitive_features": ["sex"], "baseline": "old"}
    save_model(model, tmp_path / "model", **columns)
    asked = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    rows = FRAME.assign(person=PERSON, sex=SEX, old=said)
    expected = model.predict(FRAME, ids=PERSON, sensitive_features={"sex": SEX}, baseline=said)
    assert_array_equal(in_batches(asked, rows), expected)
    with pytest.raises(
        ValueError, match="The model was saved with the column 'old', so the rows need it too: pass a data"
    ):
        asked.predict(rows.drop(columns="old"))


def test_categories_are_served_as_texts_and_restored(tmp_path):
    names = np.array(["baker", "cook", "smith"])[np.arange(200) % 3]
    rows = FRAME.iloc[:, :2].assign(job=pd.Categorical(names, ["smith", "cook", "baker"]))
    learner = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    labels = np.where((names == "cook") | (FRAME.iloc[:, 0] > 17), "good", "bad")
    model = cp.GoalClassifier(learner, cv=2, random_state=0, confidence=None).fit(rows, labels)
    save_model(model, tmp_path / "model", input_example=rows.head(3))
    asked, expected = mlflow.pyfunc.load_model(str(tmp_path / "model")), model.predict(rows)
    assert str(asked.metadata.signature.inputs.to_dict()[2]["type"]) == "string"
    texts = rows.astype({"job": str})
    assert_array_equal(in_batches(asked, texts), expected)  # of which some hold two of the categories
    assert_array_equal(np.concatenate([asked.predict(texts[place : place + 1]) for place in range(9)]), expected[:9])
    save_model(
        model,
        tmp_path / "polars",
        input_example=pl.from_pandas(rows.head(3)),
        categories={"job": ["smith", "cook", "baker"]},
    )
    assert_array_equal(mlflow.pyfunc.load_model(str(tmp_path / "polars")).predict(texts), expected)


@pytest.mark.slow
@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("is_drawn", [False, True])
def test_a_run_is_logged_with_one_call_and_decides_alike(tmp_path, is_drawn):
    table = loans(600, random_state=0)[0].assign(person=range(600))
    table.to_csv(tmp_path / "loans.csv", index=False)
    drawn, alpha = (', decision = "sticky"', "alpha = 0.5\n") if is_drawn else ("", "")
    (tmp_path / "goals.toml").write_text(
        f"""{alpha}goals = ["recall >= 0.6", "max_difference(positive_rate, by=sex) <= 0.2"]
        method = {{ models = [{{ name = "logistic" }}], parameters = {{ cv = 2, by = ["sex", "baseline"]{drawn} }} }}
        [data]
        files = "loans.csv"
        target = "default"
        positive = "yes"
        groups = ["sex"]
        baseline = "last_year"
        drop = ["person"]
        """
    )
    run, beside = fit_run(tmp_path / "goals.toml"), {"ids": "person"} if is_drawn else {}
    with mlflow.start_run() as active:
        uri = log_run(run, "loans", **beside).model_uri
    kept = mlflow.get_run(active.info.run_id).data
    assert kept.params["goal_1"] == "recall >= 0.6"
    assert kept.metrics == pytest.approx(run.result().metrics())
    files = {one.path for one in mlflow.artifacts.list_artifacts(run_id=active.info.run_id)}
    assert {"goals.toml", "result.json"} <= files
    assert not any("key" in one for one in files)
    predict_run(run, tmp_path / "loans.csv", tmp_path / "decisions.csv", **beside)
    asked = mlflow.pyfunc.load_model(uri)
    expected = pd.read_csv(tmp_path / "decisions.csv")["prediction"]
    assert expected.nunique() == 2
    assert_array_equal(in_batches(asked, table[asked.metadata.signature.inputs.input_names()]), expected)


def test_arrays_and_frames_reach_models_that_know_no_names(tmp_path):
    rows = FRAME.to_numpy()
    model = make_pipeline(StandardScaler(), cp.AdaLPBoostClassifier(Stump(), n_estimators=2, random_state=0))
    model.fit(rows, Y)
    save_model(model, tmp_path / "model", ids="person")
    asked = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    expected = model.predict(rows, ids=PERSON)
    assert_array_equal(in_batches(asked, FRAME.assign(person=PERSON)), expected)
    save_model(model, tmp_path / "plain", signature=mlflow.models.infer_signature(rows, expected))
    assert_array_equal(mlflow.pyfunc.load_model(str(tmp_path / "plain")).predict(rows), model.predict(rows))


REFUSED = {
    "ids": (
        lambda: (cp.AdaBoostClassifier(n_estimators=2).fit(FRAME, Y), {"ids": "person"}),
        "predict of this AdaBoostClassifier takes no ids: leave out ids='person'",
    ),
    "method": (
        lambda: (MODEL, {"method": "score"}),
        "method must be one of 'predict', 'predict_proba', 'decision_proba'; got 'score'",
    ),
    "not fitted": (lambda: (Stump(), {}), "This Stump is not fitted: call fit before save_model"),
    "a function": (
        lambda: (
            cp.MixtureClassifier([lambda rows: np.repeat("bad", len(rows)), Stump().fit(FRAME, Y)]).fit(FRAME, Y),
            {},
        ),
        r"estimators\[0\] is a function or callable",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_saved_is_refused_and_leaves_no_folder(case, tmp_path):
    make, text = REFUSED[case]
    model, settings = make()
    with pytest.raises((UnstorableModel, ValueError), match=text):
        save_model(model, tmp_path / "model", **settings)
    assert not (tmp_path / "model").exists()


def test_a_folder_of_another_flavour_is_refused(tmp_path):
    mlflow.models.Model(flavors={"other": {}}).save(tmp_path / "MLmodel")
    with pytest.raises(
        UnreadableModel, match=r"holds no counterpoise model; its flavours are other\. Load it with mlflow\.pyfu"
    ):
        load_model(str(tmp_path))


def test_an_altered_file_is_refused_by_both_ways(tmp_path):
    save_model(MODEL, tmp_path / "model")
    path = tmp_path / "model/data/model.cp"
    path.write_bytes(path.read_bytes()[:-50])
    for way in (load_model, mlflow.pyfunc.load_model):
        with pytest.raises(UnreadableModel, match="cannot be loaded as a model: it was cut short or altered"):
            way(str(tmp_path / "model"))
