"""Rounds inside goals: with a learner that finds the best model there is, they reach the optimum over its class."""

import re
import warnings
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from exact_stumps import BestStump
from hypothesis import given, settings
from hypothesis import strategies as st
from inside_problems import PARITY, Rows, boosted, make_people
from oracles import Problem, least_cvar, least_risk
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from counterpoise import LPBoostClassifier, Stopping, persist
from counterpoise.goals import InfeasibleGoals, Table
from counterpoise.learners import HistogramTree
from counterpoise.rules.cautions import CostlyDecisions
from counterpoise.solvers import minimize_cvar
from counterpoise.theory.risks import KL, Mean, WorstGroup
from tests.inside import kept_scores, kept_table

warnings.simplefilter("ignore", CostlyDecisions)
CLOSE = 2e-3  # rounds end where no model lowers the risk by 1e-3, of mixtures that are known to a part of that


def asked(rows, parity, recall, churn):
    """Return goals on several datasets as texts, and by hand as rows over all stumps with their bounds."""
    texts = [
        f"abs(positive_rate(sex=F) - positive_rate(sex=M)) <= {parity}",
        f"recall >= {recall}",
        f"churn(mail) <= {churn}",
    ]
    found = rows.share(rows.said == 1, rows.y == 1)
    changed = (rows.said[rows.mail] != rows.baseline[:, None]).mean(axis=0)
    return texts, np.array([rows.gap(), -rows.gap(), -found, changed]), np.array([parity, parity, -recall, churn])


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from([1.0, 0.6, 0.3]),
    parity=st.sampled_from([0.0, 0.05, 0.2]),
    recall=st.sampled_from([0.0, 0.5, 0.8]),
    churn=st.sampled_from([0.2, 0.4, 1.0]),
)
def test_an_exact_learner_reaches_the_optimum_over_its_class(seed, alpha, parity, recall, churn):
    rows = Rows(seed)
    texts, matrix, bounds = asked(rows, parity, recall, churn)
    best = least_cvar(Problem(rows.losses, alpha, rows.weight, matrix, bounds))
    if best is None:
        with pytest.raises(InfeasibleGoals, match="No classifier of this kind was found that meets"):
            rows.fit(goals=texts, alpha=alpha)
        return
    model = rows.fit(goals=texts, alpha=alpha)
    assert model.bound_if_learner_exact_ <= best + 1e-9
    assert best - 1e-9 <= model.value_ <= best + CLOSE
    assert all(check.holds for check in model.check_goals())


RISKS = {
    "mean": (Mean(), [(1.0, "cvar", 0.0)]),
    "ball": (KL(0.2), [(1.0, "kl", 0.2)]),
    "worst group": (WorstGroup("sex"), [(1.0, "worst-group", None)]),
    "sum": (0.5 * KL(0.05) + 0.5 * KL(0.3), [(0.5, "kl", 0.05), (0.5, "kl", 0.3)]),
}


@pytest.mark.parametrize("name", RISKS)
def test_any_risk_is_trained_for(name):
    objective, parts = RISKS[name]
    rows = Rows(7)
    texts, matrix, bounds = asked(rows, 0.1, 0.5, 0.6)
    best = least_risk(Problem(rows.losses, 1.0, rows.weight, matrix, bounds), parts, rows.sex)
    model = rows.fit(goals=texts, objective=objective)
    assert model.bound_if_learner_exact_ <= best + 1e-6
    assert best - 1e-6 <= model.value_ <= best + CLOSE


def test_a_rate_is_trained_for_inside_goals():
    rows = Rows(5)
    texts, matrix, bounds = asked(rows, 0.1, 0.6, 0.5)
    false = rows.share(rows.said == 1, rows.y == 0)
    best = least_cvar(Problem(false[None], 1.0, None, matrix, bounds))
    model = rows.fit(goals=texts, objective="false_positive_rate")
    assert model.bound_if_learner_exact_ <= best + 1e-9
    assert best - 1e-9 <= model.value_ <= best + CLOSE


@pytest.mark.parametrize("unit", [2.0**-12, 2.0**12])
def test_rounds_do_not_depend_on_the_unit_of_a_rate(unit):
    rows = Rows(5)
    texts = asked(rows, 0.1, 0.6, 0.5)[0]
    plain, other = (rows.fit(goals=texts, objective=f"{one!r} * false_positive_rate") for one in (1.0, unit))
    assert len(other.estimators_) == len(plain.estimators_)
    assert other.value_ == pytest.approx(unit * plain.value_)


@pytest.mark.parametrize("alpha", [1.0, 0.4])
def test_of_three_classes_every_answer_has_its_price(alpha):
    rows = Rows(11, n_classes=3)
    texts = ["recall(of=2) >= 0.7", "recall(of=0) >= 0.6", "churn(mail, of=1) <= 0.5"]
    recalls = [-rows.share(rows.said == label, rows.y == label) for label in (2, 0)]
    changed = ((rows.said[rows.mail] == 1) != (rows.baseline == 1)[:, None]).mean(axis=0)
    matrix, bounds = np.array([*recalls, changed]), np.array([-0.7, -0.6, 0.5])
    best = least_cvar(Problem(rows.losses, alpha, rows.weight, matrix, bounds))
    model = rows.fit(goals=texts, alpha=alpha)
    assert model.bound_if_learner_exact_ <= best + 1e-9
    assert best - 1e-9 <= model.value_ <= best + CLOSE
    assert all(check.holds for check in model.check_goals())


def test_goals_out_of_reach_end_early_with_the_mixture_that_is_nearest():
    rows, seen = Rows(3), []
    with pytest.raises(InfeasibleGoals, match=r"error_rate <= 0\.01") as caught:
        rows.fit(goals="error_rate <= 0.01", alpha=1.0, callbacks=[seen.append])
    assert len(seen) < 20
    assert all(done.standing.violation > 0 for done in seen)
    closest = caught.value.closest
    best = least_cvar(Problem(rows.losses, 1.0, rows.weight, None, None))
    assert closest.check_goals()[0].value == pytest.approx(best, abs=CLOSE)
    assert closest.predict(rows.X).shape == (len(rows.X),)


@pytest.fixture(scope="module")
def people():
    return make_people()


def test_rounds_tell_how_the_mixture_stands(people):
    seen = []
    model = boosted(people, callbacks=[seen.append])
    standing = [done.standing for done in seen]
    assert standing[0].violation > 0
    assert standing[0].value == np.inf
    assert seen[0].summary.startswith("goals missed by 0.")
    assert re.fullmatch(r"goals met, risk 0\.\d+, bound 0\.\d+", seen[-1].summary)
    feasible = [one for one in standing if one.violation == 0]
    assert len(feasible) > 1
    assert all(later.value <= before.value + 1e-9 for before, later in pairwise(feasible))
    assert all(later.bound >= before.bound for before, later in pairwise(standing))
    assert standing[-1].bound == model.bound_if_learner_exact_
    assert feasible[-1].value == pytest.approx(model.value_, abs=1e-3)
    n_rows, n_classes = len(people[0]), 2
    assert seen[1].weights.shape == (n_classes, n_rows)  # what each answer costs


def test_rounds_without_goals_are_as_before(people):
    """Their weights are the dual of the risk, and the newest model's loss under them bounds the optimum."""
    seen = []
    model = boosted(people, goals=(), alpha=0.4, callbacks=[seen.append])
    assert all(done.standing is None for done in seen)
    losses = model.selection_.losses
    for number, done in enumerate(seen[1:], start=1):
        np.testing.assert_allclose(done.weights, minimize_cvar(losses[:, :number], 0.4).weights, atol=1e-12)
    assert model.bound_if_learner_exact_ == max(done.weighted_loss for done in seen)


def test_where_rows_are_held_out_thresholds_of_all_models_are_mixed(people, tmp_path):
    X, _, sex = people
    model = boosted(people, stopping=Stopping(validation_fraction=0.4))
    answers = boosted(people, stopping=Stopping(validation_fraction=0.4), scores=False)
    assert [one.tree_.labels.tolist() for one in model.estimators_] == [
        one.tree_.labels.tolist() for one in answers.estimators_
    ]
    assert not hasattr(answers, "rules_")
    assert len(model.mixture_) == len(model.rules_)
    assert model.value_ <= answers.value_ + 1e-4  # a model's own answer is one of its thresholds
    assert model.check_goals()[0].holds
    shares = model.decision_proba(X)[:, 1]
    by_hand = sum(
        share * (model.estimators_[rule.model].predict_proba(X)[:, 1] > rule.thresholds["all"])
        for share, rule in zip(model.mixture_, model.rules_, strict=True)
    )
    np.testing.assert_allclose(shares, by_hand, atol=1e-12)
    told = sum(
        share * model.estimators_[rule.model].predict_proba(X)
        for share, rule in zip(model.mixture_, model.rules_, strict=True)
    )
    np.testing.assert_allclose(model.predict_proba(X), told, atol=1e-12)
    looser = model.rebalance(goals=["demographic_parity_difference(by=sex) <= 0.2"])
    assert looser.value_ <= model.value_ + 1e-4
    assert looser.estimators_ is model.estimators_
    persist.save(model, tmp_path / "model.cp")
    np.testing.assert_array_equal(persist.load(tmp_path / "model.cp").predict(X), model.predict(X))
    moved = model.rebalance(X[:400], people[1][:400], sensitive_features={"sex": sex[:400]})
    assert moved.check_goals()[0].holds


def test_a_fit_again_forgets_the_rules_of_before(people):
    model = boosted(people, stopping=Stopping(validation_fraction=0.4))
    model.set_params(stopping=Stopping()).fit(people[0], people[1], sensitive_features={"sex": people[2]})
    assert not hasattr(model, "rules_")
    assert len(model.mixture_) == len(model.estimators_)


def test_other_datasets_are_set_aside_too(people):
    X, y, _ = people
    mail = Table(X[:300] + 0.05, baseline=y[:300], sensitive_features={"kind": np.tile(["a", "b"], 150)})
    goals = [PARITY, "churn(mail, kind=a) <= 0.3"]
    model = boosted(people, {"datasets": {"mail": mail}}, goals=goals, stopping=Stopping(validation_fraction=0.4))
    assert kept_table(model, "mail").n_samples == 120
    assert all(check.holds for check in model.check_goals())
    whole = boosted(people, {"datasets": {"mail": mail}}, goals=goals)
    assert kept_table(whole, "mail").n_samples == 300
    given = {"X_val": X[:500], "y_val": y[:500], "sensitive_features_val": {"sex": people[2][:500]}}
    chosen = boosted(people, {"datasets": {"mail": mail}, **given}, goals=goals)
    assert kept_table(chosen, "mail").n_samples == round(300 * 500 / 1700)
    one = {"datasets": {"mail": Table(np.zeros((1, 6)))}}
    alone = boosted(
        people, one, goals="coverage(mail) <= 0.9", stopping=Stopping(validation_fraction=0.3), n_estimators=2
    )
    assert kept_table(alone, "mail").n_samples == 1


def test_more_rounds_after_rules_were_mixed_ask_the_models_about_other_datasets(people):
    X, y, _ = people
    settings = {
        "goals": ["positive_rate(mail) <= 0.5"],
        "stopping": Stopping(patience=4, validation_fraction=0.3),
        "n_estimators": 3,
    }
    model = LPBoostClassifier(HistogramTree(3), alpha=1.0, random_state=0, **settings)
    model.fit(X, y, datasets={"mail": Table(X[:200])})
    before = len(model.estimators_)
    assert model.rules_
    assert len(model.fit_more(1).estimators_) == before + 1
    assert model.check_goals()[0].holds


def test_folds_judge_rows_of_all_datasets_by_models_that_did_not_see_them(people):
    X, y, _ = people
    mail = Table(X[:300] + 0.05, baseline=y[:300])
    learner = DecisionTreeClassifier(random_state=0)  # without a limit it has no error on what it saw
    model = LPBoostClassifier(
        learner, stopping=Stopping(n_folds=3), n_estimators=4, alpha=1.0, goals="churn(mail) <= 0.4", random_state=0
    )
    model.fit(X, y, datasets={"mail": mail})
    seen_by = model.estimators_[0].predict(X) != y
    assert not seen_by.any()
    assert model.selection_.losses[:, 0].mean() > 0.1
    judged = model.family_.selection_data.answers.shares("mail", np.eye(len(model.estimators_))[1])
    assert (judged != (model.estimators_[1].predict(mail.X) == "yes")).any()


@pytest.mark.parametrize("kind", ["pandas", "sparse", "polars"])
def test_rows_of_any_kind_are_trained_on_together(people, kind):
    X, y, sex = people
    frames = {
        "pandas": lambda rows: pd.DataFrame(rows, columns=list("abcdef")).astype({"a": "float32"}),
        "sparse": csr_array,
        "polars": lambda rows: pl.DataFrame(rows, schema=list("abcdef")),
    }
    mail = Table(frames[kind](X[:200]), baseline=y[:200])
    model = LPBoostClassifier(HistogramTree(3), n_estimators=4, alpha=1.0, goals="churn(mail) <= 0.2", random_state=0)
    model.fit(frames[kind](X), y, sensitive_features={"sex": sex}, datasets={"mail": mail})
    plain = LPBoostClassifier(HistogramTree(3), n_estimators=4, alpha=1.0, goals="churn(mail) <= 0.2", random_state=0)
    plain.fit(X, y, sensitive_features={"sex": sex}, datasets={"mail": Table(X[:200], baseline=y[:200])})
    if kind != "pandas":  # whose first column is rounded
        np.testing.assert_array_equal(model.predict_proba(frames[kind](X)), plain.predict_proba(X))
    assert model.check_goals()[0].holds


BAD = {
    "scores": ({"scores": "yes"}, {}, ValueError, "scores, where it is a word, must be one of 'auto'; got 'yes'"),
    "scores, number": ({"scores": 3}, {}, TypeError, "scores must be True, False or 'auto'; got 3"),
    "no scores": (
        {"scores": True, "stopping": Stopping(validation_fraction=0.3), "estimator": BestStump()},
        {},
        ValueError,
        "BestStump.* has neither predict_proba nor decision_function",
    ),
    "scores of training rows": ({"scores": True}, {}, ValueError, "rows that no model was trained on: set Stopping"),
    "no features": (
        {"goals": "churn(mail) <= 0.3"},
        {"datasets": {"mail": Table(None, baseline=["yes", "no"])}},
        ValueError,
        "Dataset 'mail' needs features that models are trained on",
    ),
    "other features": (
        {"goals": "coverage(mail) <= 0.9"},
        {"datasets": {"mail": Table(np.zeros((4, 3)))}},
        ValueError,
        "Dataset 'mail': X has 3 features, but .* is expecting 6",
    ),
    "unknown dataset": ({"goals": "churn(post) <= 0.1"}, {}, ValueError, "Unknown dataset 'post'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_clear_sentence(name, people):
    params, given, kind, text = BAD[name]
    with pytest.raises(kind, match=text):
        boosted(people, given, **params)


def test_scores_of_more_than_two_classes_are_refused():
    X, y = load_iris(return_X_y=True)
    model = LPBoostClassifier(HistogramTree(2), n_estimators=2, scores=True, stopping=Stopping(validation_fraction=0.3))
    with pytest.raises(ValueError, match="a threshold separates two classes; got 3"):
        model.fit(X, y)


def test_a_target_ends_the_rounds_inside_the_goals(people):
    whole = boosted(people, n_estimators=30)
    target = 1 - whole.value_ - 0.005
    early = boosted(people, n_estimators=30, target=target)
    assert len(early.estimators_) < len(whole.estimators_)
    assert 1 - early.value_ > target - 1e-3
    assert early.check_goals()[0].holds


def test_patience_counts_from_where_goals_can_be_met(people):
    seen = []
    boosted(people, stopping=Stopping(patience=1), alpha=0.4, n_estimators=30, callbacks=[seen.append])
    assert len(seen) < 30
    assert seen[-1].standing.violation == 0


def test_rules_are_chosen_on_scores_of_folds_too(people, tmp_path):
    X, y, _ = people
    mail = {"mail": Table(X[:300] + 0.05, baseline=y[:300])}
    settings = {"goals": [PARITY, "churn(mail) <= 0.35"], "stopping": Stopping(n_folds=3), "n_estimators": 4}
    answers = boosted(people, {"datasets": mail}, **settings)
    assert not hasattr(answers, "rules_")  # of so few rows folds score otherwise than models of all of them
    model = boosted(people, {"datasets": mail}, **settings, scores=True)
    assert len(model.mixture_) == len(model.rules_)
    assert model.value_ <= answers.value_ + 1e-4
    assert all(check.holds for check in model.check_goals())
    scores, judged = kept_scores(model)[:, 0], model.estimators_[0].predict_proba(X)[:, 1]
    assert (scores != judged).any()
    assert np.corrcoef(scores, judged)[0, 1] > 0.7

    def stop(done):
        if done.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        boosted(people, {"datasets": mail}, **settings, scores=True, checkpoint=tmp_path, callbacks=[stop])
    resumed = boosted(people, {"datasets": mail}, **settings, scores=True, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.predict_proba(X), model.predict_proba(X))


class Listening(DecisionTreeClassifier):
    """A stump that keeps the labels it was fitted to."""

    heard: ClassVar = []

    def fit(self, X, y, sample_weight=None):
        self.heard.append(np.unique(np.asarray(y)[sample_weight > 0]).tolist())
        return super().fit(X, y, sample_weight=sample_weight)


def test_where_goals_are_missed_models_still_learn_what_no_goal_is_about():
    """A stump says two of three classes; fitted to the missed goal alone, the next would say the third of all rows."""
    X, y = load_iris(return_X_y=True)
    Listening.heard.clear()
    model = LPBoostClassifier(
        Listening(max_depth=1),
        n_estimators=4,
        alpha=1.0,
        goals=["recall(of=2) >= 0.4"],
        stopping=Stopping(n_folds=None),
    ).fit(X, y)
    assert model.estimators_[0].predict(X).tolist().count(2) == 0
    assert Listening.heard[1] == [0, 1, 2]
