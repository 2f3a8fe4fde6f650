"""Runs of more than two classes: rules of class probabilities from the goals file to the report."""

import json

import numpy as np
import pandas as pd
import pytest
from run_numbers import numbers

from counterpoise.goals import InfeasibleGoals
from counterpoise.report import write_report
from counterpoise.report.rates import class_recalls, confusions
from counterpoise.rules.class_scores.rules import TierRule
from counterpoise.runs import (
    DataError,
    audit_run,
    fit_run,
    open_run,
    predict_run,
    rebalance_run,
    starting_file,
)
from counterpoise.runs.data import load_data
from counterpoise.runs.decisions import shares_rows
from counterpoise.runs.rule_words import rule_text

CLASSES = ["cat", "dog", "fox"]
FLOOR = '"every_class(recall) >= 0.5"'
FILE = """
alpha = {alpha}
goals = [{goals}]
{more}
[data]
files = "animals.csv"
target = "kind"
groups = ["sex"]
[splits]
test = 0.4
[method]
name = "goals"
models = [{{ name = "naive_bayes" }}]
parameters = {{ cv = 3{parameters} }}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table of three kinds of animals, of which one is rare and hard to tell."""
    path, rng = tmp_path_factory.mktemp("animals"), np.random.default_rng(0)
    kind = rng.choice(CLASSES, 500, p=[0.5, 0.35, 0.15])
    size = rng.normal(size=500) + 2 * (kind == "fox") + (kind == "dog")
    frame = pd.DataFrame({"size": size, "fur": rng.normal(size=500) + (kind == "cat"), "kind": kind})
    frame.assign(sex=rng.choice(["F", "M"], 500)).to_csv(path / "animals.csv", index=False)
    return path


@pytest.fixture
def fit(folder):
    """Return a function that writes a goals file, fits it, and returns the run and what was said and told."""

    def fit(name, goals=FLOOR, alpha=1.0, more="", parameters="", replace=("", "")):
        text = FILE.format(goals=goals, alpha=alpha, more=more, parameters=parameters).replace(*replace)
        (folder / f"{name}.toml").write_text(text)
        said, told = [], []
        run = fit_run(folder / f"{name}.toml", on_event=said.append, tell=told.append)
        return run, said, told

    return fit


@pytest.fixture(scope="module")
def run(folder):
    """Return a run inside a floor for every class, and a limit between groups."""
    goals = f'{FLOOR.replace("0.5", "0.6")}, "max_difference(error_rate, by=sex) <= 0.2"'
    (folder / "run.toml").write_text(FILE.format(goals=goals, alpha=1.0, more="", parameters=""))
    return fit_run(folder / "run.toml")


def one(run, quantity, method="mixture", split="test", settings=""):
    (row,) = numbers(run).where(quantity=quantity, method=method, split=split, settings=settings)
    return row.value


def counts(run, method="mixture"):
    """Return how many test rows of each class a method calls which."""
    found = np.zeros((3, 3))
    for row in numbers(run).where(quantity="called", method=method, split="test"):
        label, answer = (int(part) - 1 for part in row.settings.removeprefix("class ").split(" as class "))
        found[label, answer] = row.value
    return found


def test_goals_of_every_class_are_met_where_rules_were_chosen(run):
    model = run.model()
    assert all(check.holds for check in model.check_goals())
    said = model.family_.predictions(model.chosen_rules())
    said = np.einsum("imk,m->ik", said.answers.shares_of_each["train"], model.mixture_)
    wrong = 1 - said[np.arange(len(said)), model.family_.selection_data.codes]
    assert one(run, "error", split="train") == pytest.approx(wrong.mean(), abs=1e-9)


def test_numbers_of_other_rows_are_those_of_what_the_model_says(run, folder):
    model, part = run.model(), load_data(run.settings, folder).splits["test"]
    chances = model.decision_proba(part.X)
    right = chances[np.arange(len(part)), np.searchsorted(CLASSES, part.y)]
    assert one(run, "error") == pytest.approx(1 - right.mean(), abs=1e-9)
    np.testing.assert_allclose(counts(run), [chances[part.y == label].sum(axis=0) for label in CLASSES])
    plain = np.mean(model.estimators_[0].predict(part.X) != part.y)
    assert one(run, "error", "first model") == pytest.approx(plain, abs=1e-9)
    assert counts(run, "first model").sum() == len(part)
    groups = [one(run, "group error_rate", settings=f"group {place}") for place in range(3)]  # all, F, M
    wanted = [1 - right.mean(), *(1 - right[part.groups["sex"] == sex].mean() for sex in "FM")]
    assert groups == pytest.approx(wanted)


def test_errors_of_rules_add_up_to_that_of_the_mixture(run):
    rules = len(run.model().rules_)
    shares = [one(run, "share", f"model {number}", "") for number in range(1, rules + 1)]
    errors = [one(run, "error", f"model {number}") for number in range(1, rules + 1)]
    assert np.dot(shares, errors) == pytest.approx(one(run, "error"), abs=1e-9)


def test_looser_bounds_never_cost_more(run):
    rows = [row for row in numbers(run).where(quantity="frontier value") if row.settings.startswith("goal 1")]
    values = [row.value for row in sorted(rows, key=lambda row: float(row.settings.partition("=")[2]))]
    assert len(values) > 2
    assert (np.diff(values) >= -1e-3).all()


def test_words_and_page_tell_classes_and_no_thresholds(run):
    result = run.result()
    assert result.data.classes[2] == "fox"
    assert result.scores.panels == []
    assert result.certificate.startswith("mixtures of the pool of")
    assert result.rules[0].description.startswith("naive Bayes: ")
    assert not [row for row in numbers(run) if row.quantity.startswith(("scores ", "calibration ", "auc"))]
    page = write_report(run.folder).read_text(encoding="utf-8")
    for words in (
        "recall: plain training",
        "recall: mixture" if run.model().n_models_ > 1 else "recall: model",
        "The class recognized least often is",
        "What the rows of each class are called",
        "lower bound, of these rules",
    ):
        assert words in page
    assert "threshold" not in page


def test_a_run_is_measured_audited_and_applied(run, folder, tmp_path):
    found = audit_run(run, folder / "animals.csv").as_dict()
    assert found["goals"][0]["goal"] == "every_class(recall) >= 0.6"
    json.dumps(found)
    assert audit_run(run).audit[0].worst in {f"recall(of={kind})" for kind in CLASSES}
    assert predict_run(run, folder / "animals.csv", tmp_path / "said.csv", probabilities=True) == 500
    said = pd.read_csv(tmp_path / "said.csv")
    frame = pd.read_csv(folder / "animals.csv")
    assert (said["prediction"] == run.model().predict(frame[["size", "fur"]])).all()
    np.testing.assert_allclose(said[[f"probability {kind}" for kind in CLASSES]].sum(axis=1), 1.0)


@pytest.mark.slow
def test_another_choice_asks_no_model_and_may_defer(run, folder):
    kept = open_run(run.folder).pool_outputs()
    assert kept["test"].shape == (200, 1, 3)
    other = rebalance_run(
        run,
        alpha=1.0,
        goals=[FLOOR.strip('"'), "defer_rate <= 0.1"],
        defer_cost=0.2,
        confidence="none",
        output=folder / "deferring",
    )
    assert np.array_equal(other.pool_outputs()["test"], kept["test"])
    assert 0 < one(other, "defer rate", split="train") <= 0.1 + 1e-9
    deferred = [row.value for row in numbers(other).where(quantity="called") if row.settings.endswith("deferred")]
    assert sum(deferred) == pytest.approx(200 * one(other, "group defer_rate", settings="group 0"))
    record = other.result()
    assert class_recalls(record).columns[-1] == confusions(record).columns[-1] == "left to a person"


@pytest.mark.slow
def test_goals_that_were_not_met_leave_what_was_trained(fit):
    with pytest.raises(InfeasibleGoals, match="No single rule was found that meets"):
        fit("hard", '"every_class(recall) >= 0.9"')
    run, said, told = fit("hard")
    assert said[0].startswith("resumes")
    assert {progress.part for progress in told} == {"choosing decision rules", "measuring"}
    assert run.model().value_ > 0
    assert run.result().goals[0].margin.value > 0.5


@pytest.mark.slow
def test_a_rule_that_shares_rows_is_drawn_from(fit):
    sticky = ', decision = "sticky"'
    run, _, _ = fit("tail", '"error_rate <= 0.5"', alpha=0.3, parameters=sticky)
    record = run.result()
    assert record.shares_rows == any(map(shares_rows, run.model().rules_))
    assert record.is_mixture
    assert "two-tier rules" in record.certificate


def test_one_rule_without_draws(fit):
    run, _, _ = fit("fixed")
    assert run.result().shares_rows is False
    assert len(run.model().rules_) == 1
    assert counts(run).sum() == 200


@pytest.mark.slow
def test_rules_of_several_models_need_class_probabilities(fit):
    models = 'models = [{ name = "naive_bayes" }]'
    run, _, _ = fit("two", replace=(models, 'models = [{ name = "naive_bayes" }, { name = "logistic" }]'))
    assert all(check.holds for check in run.model().check_goals())
    assert run.pool_outputs()["test"].shape == (200, 2, 3)
    with pytest.raises(DataError, match=r"method.models\[2\]: support vector machine does not predict probabilities"):
        fit("svm", replace=(models, 'models = [{ name = "naive_bayes" }, { name = "svm" }]'))


def test_init_points_at_small_numbers_as_answers_only_where_they_are_often_right(tmp_path):
    rng = np.random.default_rng(0)
    digit = rng.integers(0, 4, 200)
    said = np.where(rng.random(200) < 0.7, digit, rng.integers(0, 4, 200))
    frame = pd.DataFrame({"ink": rng.integers(0, 4, 200), "x": rng.normal(size=200), "digit": digit})
    frame.to_csv(tmp_path / "plain.csv", index=False)
    assert "hold the classes" not in starting_file(tmp_path / "plain.csv", "digit")
    frame.assign(said=said).to_csv(tmp_path / "deployed.csv", index=False)
    assert '# ["said"] hold the classes of the target' in starting_file(tmp_path / "deployed.csv", "digit")


WEIGHED = np.diag([1.0, 1.0, 2.0, 1.0])[None]
ADDED = np.eye(4)[None] + np.array([0.0, 0.5, 0.0, 0.0])
FORBIDDEN = np.eye(4)[None] - 3.0 * np.eye(4)[[3, 0, 1, 2]][None]
GROUPS = np.concatenate([np.eye(4)[None], WEIGHED])
TOP = "the class of the largest weighted probability; weighted"
RULES = {
    "the class of the largest probability": TierRule(0, 0.0, np.inf, np.eye(4)[None]),
    f"{TOP}: c x 2.00, others x 1": TierRule(0, 0.0, np.inf, WEIGHED),
    f"{TOP}: b x 1.00 + 0.50, others x 1": TierRule(0, 0.0, np.inf, ADDED),
    "the class of the second largest probability": TierRule(0, 0.5, np.inf, np.eye(4)[None], layer=1),
    "classes share a row by probability, at most 0.5 each at first": TierRule(0, 0.5, 0.1, np.eye(4)[None]),
    f"{TOP}: single confusions have their own weights": TierRule(0, 0.0, np.inf, FORBIDDEN),
    f"{TOP} for sex=F: all alike; sex=M: c x 2.00, others x 1": TierRule(0, 0.0, np.inf, GROUPS),
}


@pytest.mark.parametrize("words", RULES)
def test_rules_of_class_probabilities_in_words(words):
    found = rule_text(RULES[words], ["trees"], "abcd", ["sex=F", "sex=M"])
    assert found.replace("\N{MULTIPLICATION SIGN}", "x") == f"trees: {words}"


def test_rules_that_share_rows_are_told_from_others():
    found = [shares_rows(rule) for rule in RULES.values()]
    assert found == [False, False, False, False, True, False, False]
