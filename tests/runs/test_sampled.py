"""Runs on rows that are read in parts: what the folder tells is what the model does on all rows."""

import os

import numpy as np
import pandas as pd
import pytest

from counterpoise.goals import InfeasibleGoals
from counterpoise.runs import DataError, GoalsFileError, fit_run, open_run, rebalance_run
from counterpoise.runs.places import CHECKPOINT

N_ROWS = 1500
GOALS = [
    "recall >= 0.6",
    "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.1",
    "churn <= 0.5",
]
TEXT = f"""
alpha = 0.5
goals = {GOALS}
[data]
files = ["a.parquet", "b.parquet"]
target = "paid"
drop = "weight"
baseline = "today"
groups = "sex"
sample = 300
[method]
models = [{{name = "tree"}}]
parameters = {{by = "sex", decision = "sticky"}}
"""


@pytest.fixture(scope="module")
def frame(loans):
    return loans(N_ROWS, seed=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, frame):
    """Return a folder with the rows in two files."""
    found = tmp_path_factory.mktemp("parts")
    frame[:1000].to_parquet(found / "a.parquet", row_group_size=300, index=False)
    frame[1000:].to_parquet(found / "b.parquet", index=False)
    frame[:1000].to_csv(found / "a.csv", index=False)
    return found


@pytest.fixture(scope="module")
def done(folder):
    (folder / "goals.toml").write_text(TEXT)
    return fit_run(folder / "goals.toml", output=folder / "run")


def _of(run, quantity, method="mixture", settings=None):
    table = run.results().where(quantity=quantity, method=method)
    return {row.split: row.value for row in table if settings in (None, row.settings)}


def test_every_row_is_in_one_split_and_about_as_many_as_asked_train(done):
    sizes = _of(done, "rows", "data")
    assert sum(sizes.values()) == N_ROWS
    assert abs(sizes["train"] - 300) < 60
    assert abs(sizes["test"] - 300) < 60


def test_errors_and_goals_of_all_splits_are_those_of_the_model_on_all_rows(done, frame):
    model, sizes = done.model(), _of(done, "rows", "data")
    rows = {"sensitive_features": frame[["sex"]], "baseline": frame.today}
    X = frame[["age", "income"]].assign(job=frame.job.astype("category"))[done.columns.features]
    lost = 1 - model.decision_proba(X, **rows)[np.arange(N_ROWS), (frame.paid == "yes").astype(int)]
    errors = _of(done, "error")
    np.testing.assert_allclose(sum(errors[split] * sizes[split] for split in sizes), lost.sum())
    yes, positives = model.decision_proba(X, **rows)[:, 1], _of(done, "goal rows", settings="goal 1")
    recalls, churns = (_of(done, "goal estimate", settings=f"goal {number}") for number in (1, 3))
    hits = sum(recalls[split] * positives[split] for split in sizes)
    np.testing.assert_allclose(hits, yes[frame.paid == "yes"].sum())
    changed = np.where(frame.today == "yes", 1 - yes, yes)
    np.testing.assert_allclose(sum(churns[split] * sizes[split] for split in sizes), changed.sum())


def test_goals_are_met_where_the_rules_were_chosen_and_the_choice_is_proven(done):
    assert all(check.holds for check in done.model().check_goals())
    assert done.model().gap_ <= 2e-4


@pytest.mark.slow
def test_one_rule_decides_about_all_rows_unless_draws_are_asked_for(folder, frame):
    text = TEXT.replace(', decision = "sticky"', "").replace("alpha = 0.5", "alpha = 1.0")
    (folder / "one.toml").write_text(text)
    run = fit_run(folder / "one.toml", output=folder / "one")
    model, sizes = run.model(), _of(run, "rows", "data")
    assert len(model.rules_) == 1
    assert len(run.drawn()) == 0
    X = frame[["age", "income"]].assign(job=frame.job.astype("category"))[run.columns.features]
    wrong = model.predict(X, sensitive_features=frame[["sex"]], baseline=frame.today) != frame.paid
    errors = _of(run, "error")
    np.testing.assert_allclose(sum(errors[split] * sizes[split] for split in sizes), wrong.sum())


def test_the_folder_is_as_of_any_run_and_nothing_of_the_rows_is_left_in_it(done):
    found = open_run(done.folder)
    assert found.summary().goals[0].verdict
    assert not (done.folder / CHECKPOINT).exists()
    assert "read in parts" in found.result().why["segments"]


def test_a_run_that_is_done_is_not_chosen_anew_from_counts(done, tmp_path):
    with pytest.raises(DataError, match="kept only counts of them"):
        rebalance_run(done, goals=["recall >= 0.5"], output=tmp_path / "other")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("a.parquet", "a.csv", "data.files: data.sample reads Parquet files in parts; got 'a.csv'"),
        ('drop = "weight"', 'weights = "weight"', "data.weights: data.sample reads the rows in parts, and takes none"),
        ('drop = "weight"', 'ids = "weight"', "data.ids: data.sample reads the rows in parts, and takes none"),
        ('by = "sex"', "cv = 3", "method.parameters.cv: data.sample reads"),
        ('by = "sex"', "deferral = { cost = 0.2 }", "no rule defers there yet"),
        ('by = "sex"', 'objective = "KL(0.1)"', r"method.parameters.objective: Over shards .* got KL\(radius=0.1\)"),
        ("[method]", '[splits]\nvalidation = 0.2\n[method]\nname = "goals"', "splits.validation: data.sample"),
        ("[method]", '[method]\nname = "pool"', 'data.sample is for the method "goals"'),
        ("sample = 300", "sample = 3", "data.sample: expected a number greater than or equal to 100; got 3"),
    ],
)
def test_what_is_not_taken_with_a_sample_is_refused(folder, old, new, message):
    assert old in TEXT
    (folder / "bad.toml").write_text(TEXT.replace(old, new))
    with pytest.raises(GoalsFileError, match=message):
        fit_run(folder / "bad.toml", output=folder / "bad")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "sample = 300",
            "sample = 1250",
            "must leave rows to choose on: of 1500 rows 20% test, so it must be below 1200",
        ),
        ("churn", "error_rate(age<=30)", "Unknown column 'age'.* must be named in data.groups"),
        ('target = "paid"', 'target = "job"', "must hold a label in each row"),
        ('"b.parquet"', '"c.parquet"', "'job' must be of one kind in all files; it holds numbers in .*c.parquet"),
        ('"b.parquet"', '"d.parquet"', "data.sample is for two classes; column 'paid' holds 3"),
        ('"b.parquet"', '"e.parquet"', "e.parquet cannot be read as Parquet"),
    ],
)
def test_rows_that_do_not_go_with_a_sample_are_refused_before_anything_is_trained(folder, frame, old, new, message):
    assert old in TEXT
    frame[1000:].assign(job=1.0).to_parquet(folder / "c.parquet", index=False)
    frame[1000:].assign(paid="perhaps").to_parquet(folder / "d.parquet", index=False)
    (folder / "e.parquet").write_bytes(b"PAR1 is not all that it takes")
    (folder / "bad.toml").write_text(TEXT.replace(old, new))
    with pytest.raises(DataError, match=message):
        fit_run(folder / "bad.toml", output=folder / "bad")


def test_files_that_do_not_fit_into_memory_together_are_refused_with_a_way_out(folder, monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda _name: 240)  # a machine of 57,600 bytes: enough for one of the files
    (folder / "whole.toml").write_text(TEXT.replace("sample = 300", ""))
    with pytest.raises(DataError, match=r"2 data files, .* have 1500 rows, of which 6 .* sample = 1000000 under"):
        fit_run(folder / "whole.toml", output=folder / "whole")


def test_a_class_that_the_sample_does_not_show_is_named(tmp_path):
    rare = pd.DataFrame({"x": np.arange(5000.0), "y": np.arange(5000) == 17})
    rare.to_parquet(tmp_path / "rare.parquet")
    (tmp_path / "goals.toml").write_text('[data]\nfiles = "rare.parquet"\ntarget = "y"\nsample = 100\n')
    with pytest.raises(DataError, match=r"must draw rows of every class; none of .* has the label True of column 'y'"):
        fit_run(tmp_path / "goals.toml")


def test_models_that_were_trained_are_kept_where_no_rules_meet_the_goals(folder):
    path = folder / "hard.toml"
    path.write_text(TEXT.replace("recall >= 0.6", "recall >= 0.99").replace("<= 0.5", "<= 0.01"))
    with pytest.raises(InfeasibleGoals, match="cannot hold"):
        fit_run(path, output=folder / "kept")
    left = [one.name for one in (folder / "kept" / CHECKPOINT).rglob("*") if one.is_file()]
    assert left == ["model-001.cp"]
