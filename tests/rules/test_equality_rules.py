"""Equalities where models, thresholds and rules are chosen: against written-out programs and a look at every rule."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from written_out import Limit, Problem, _Maker, fitted, quoted, solved_by_highs

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals, parse_goal
from counterpoise.rules.choosing import as_problem
from counterpoise.rules.scores.fixed import search_fixed
from tests.rules import score_problems
from tests.tiers import problems


class Maker(_Maker):
    """Makes equalities on one set of rows."""

    def band(self, values):
        target = float(np.clip(self.rng.uniform(values.min() - 0.03, values.max() + 0.03), 0.0, 1.0))
        return target, float(self.rng.choice([0.0, 0.005, 0.05]))

    def equality(self):
        (where, mask), of = self.condition(), self.any_class()
        metric = self.rng.choice(["recall", "positive_rate", "false_positive_rate"])
        values = self.value(metric, of, mask)
        target, tolerance = self.band(values)
        text = f"{metric}(of={quoted(of)}{where}) == {target!r} +- {tolerance!r}"
        return Limit(text, [values, -values], [target + tolerance, tolerance - target])

    def equal_ratio(self):
        of, (where, mask) = self.any_class(), self.condition()
        top, bottom = self.share((self.said == of) & (self.y == of)[:, None], mask), self.share(self.said == of, mask)
        target, tolerance = float(self.rng.uniform(0.3, 0.9)), 0.05
        rows = [top - (target + tolerance) * bottom, (target - tolerance) * bottom - top]
        return Limit(f"precision(of={quoted(of)}{where}) == {target!r} +- {tolerance}", rows, [0.0, 0.0])

    def equal_groups(self):
        of = self.any_class()
        values = np.array(self.by_groups("recall", of))
        target, tolerance = float(values.mean()), float(self.rng.choice([0.05, 0.15]))
        text = f"every_group(recall, of={quoted(of)}, by=sex) == {target!r} +- {tolerance!r}"
        return Limit(text, [*values, *-values], len(values) * [target + tolerance] + len(values) * [tolerance - target])

    def equal_rates(self):
        of = self.any_class()
        one, other = self.by_groups("positive_rate", of)[:2]
        text = " == ".join(f"positive_rate(of={quoted(of)}, sex={value})" for value in "FM")
        return Limit(f"{text} +- 0.02", [one - other, other - one], [0.02, 0.02])


KINDS = ["equality", "equal_ratio", "equal_groups", "equal_rates"]


def equality_problem(seed):
    """Return a problem of 2 to 4 classes with one to three goals, the first an equality."""
    rng = np.random.default_rng(seed)
    n_classes, n_models, n_groups = rng.integers(2, 5), rng.integers(2, 9), rng.integers(2, 4)
    classes = np.array(["ant", "bee", "New Zealand", "it's"])[:n_classes]
    sex = np.repeat(np.array(["F", "M", "X"])[:n_groups], 10 * n_classes)
    y = np.tile(np.repeat(classes, 10), n_groups)
    age = np.tile([18, 20, 25, 30, 33, 40, 45, 50, 58, 61], n_groups * n_classes)
    said = np.where(
        rng.random((len(y), n_models)) < rng.uniform(0.2, 0.95, n_models),
        y[:, None],
        rng.choice(classes, (len(y), n_models)),
    )
    weights = rng.integers(1, 4, len(y)).astype(float) if rng.random() < 0.3 else None
    maker = Maker(rng, y, said, {"sex": sex, "age": age}, weights)
    wanted = [KINDS[seed % len(KINDS)], *rng.choice([*KINDS, "error", "every_class"], rng.integers(0, 3))]
    limits = [getattr(maker, kind)() for kind in wanted]
    return Problem(y, said, maker.columns, weights, float(rng.uniform(0.1, 1.0)), None, None, limits)


@pytest.mark.parametrize("seed", problems())
def test_a_mixture_under_equalities_is_the_one_that_highs_finds(seed):
    problem = equality_problem(seed)
    for limit in problem.limits:
        assert parse_goal(str(parse_goal(limit.text))) == parse_goal(limit.text)
    least = solved_by_highs(problem)
    if least is None:
        with pytest.raises(InfeasibleGoals) as caught:
            fitted(problem)
        assert caught.value.proven
        for way in caught.value.ways_out:  # a tolerance that is enough
            goals = [way.get(parse_goal(limit.text), limit.text) for limit in problem.limits]
            fitted(problem._replace(limits=[Limit(str(goal), [], []) for goal in goals]))
        return
    model = fitted(problem)
    assert model.value_ == pytest.approx(least, abs=1e-6)
    assert model.multipliers_.shape == (len(problem.limits),)
    for limit, check in zip(problem.limits, model.check_goals(), strict=True):
        assert (np.array(limit.rows) @ model.mixture_ <= np.array(limit.bounds) + 1e-9).all()
        assert check.holds


@pytest.mark.parametrize("seed", problems())
def test_one_rule_of_scores_under_an_equality_is_the_best_of_every_rule(seed):
    problem = score_problems.random_problem(seed)
    rng = np.random.default_rng(1000 + seed)
    every = score_problems.every_rule(problem)["train"].astype(float)
    of_b, weights = problem.tables["train"].column("sex") == "b", problem.weights
    rates = [weights @ every / weights.sum(), (weights * of_b) @ every / (weights * of_b).sum()]
    is_second = int(rng.integers(2)) if (weights * of_b).sum() else 0
    target, tolerance = float(rng.choice(rates[is_second])), float(rng.choice([1e-9, 0.03, 0.1]))
    goal = f"positive_rate({'sex=b' if is_second else 'train'}) == {target!r} +- {tolerance!r}"
    problem = problem._replace(goals=[goal], objective="error_rate", budget=None)
    choice, ranked = score_problems.chosen(problem)
    aim = as_problem(None, problem.objective, problem.goals, default_alpha=1.0)
    fixed = search_fixed(ranked, aim, choice.rules, choice.mixture, choice.multipliers)
    errors = weights @ (every != (problem.y == 1)[:, None]) / weights.sum()
    is_met = np.abs(rates[is_second] - target) <= tolerance + 1e-12
    error = float(weights @ ranked.predictions_of(fixed.rule).losses[:, 0] / weights.sum())
    assert fixed.violation == pytest.approx(0.0, abs=1e-9)
    assert error == pytest.approx(errors[is_met].min(), abs=1e-9)


def rows(n_rows, n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    scores = (
        X[:, :1] * np.arange(n_classes)
        + 0.5 * X[:, 1:2] * np.arange(n_classes)[::-1] ** 2
        + rng.gumbel(size=(n_rows, n_classes))
    )
    return X, scores.argmax(axis=1)


def test_an_equality_has_no_margin_and_the_model_says_why():
    X, y = rows(1500)
    goals = ["selection_rate == 0.4 +- 0.01", "recall >= 0.45"]
    model = cp.GoalClassifier(LogisticRegression(), goals=goals, confidence=0.9).fit(X, y)
    equality, other = model.margins_
    assert equality.standard_error is None
    assert "no margin, as it is an equality: neither side of it is safe" in str(equality)
    assert other.standard_error > 0
    assert all(check.holds for check in model.check_goals())
    assert abs(model.predict(X).mean() - 0.4) < 0.05


def test_a_proof_tests_an_equality_on_both_sides():
    X, y = rows(4000)
    model = cp.GoalClassifier(
        LogisticRegression(), goals="selection_rate == 0.5 +- 0.1", confidence=cp.Proof(0.9), alpha=None
    )
    model.fit(X, y)
    assert model.proof_.is_proven
    assert model.proof_.values[0] < 0.1


def test_rules_of_several_classes_meet_an_equality():
    X, y = rows(1500, 3)
    model = cp.GoalClassifier(LogisticRegression(), goals="positive_rate(of=1) == 0.3 +- 0.02", confidence=None).fit(
        X, y
    )
    (check,) = model.check_goals()
    assert check.holds
    assert check.value <= 0.02 + 1e-9
