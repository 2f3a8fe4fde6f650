"""Conditional disparity as a goal: one rule against every rule, and refusals."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals
from tests.tiers import problems


def problem(seed):
    """Return scores, labels, columns, weights, the bound and goals beside it, and every rule's decisions."""
    rng = np.random.default_rng(seed)
    n_rows, n_strata = int(rng.integers(20, 60)), int(rng.integers(1, 4))
    y, sex = rng.integers(0, 2, n_rows), rng.choice(["NA", "1.0", "x"][: 2 + seed % 2], n_rows)
    job = rng.choice(["None", "1", ""][:n_strata], n_rows)
    y[:4], sex[:4], job[:4] = [0, 1, 0, 1], ["NA", "NA", "1.0", "1.0"], "None"
    score = np.round(0.4 * y + 0.3 * (sex == "NA") + 0.4 * rng.normal(size=n_rows), 1)
    levels = np.append(-99.0, np.unique(score))
    by_sex = len(set(sex)) == 2 and seed % 4 < 2
    rules = np.array(list(product(levels, levels)) if by_sex else [(one, one) for one in levels])
    said = score[:, None] > np.where((sex == "NA")[:, None], rules[:, 0], rules[:, 1])
    weights = rng.integers(1, 4, n_rows).astype(float) if rng.integers(2) else np.ones(n_rows)
    least = float(np.round(rng.uniform(0.2, 0.8), 2)) if rng.integers(2) else 0.0
    return score, y, {"sex": sex, "job": job}, weights, float(np.round(rng.uniform(0, 0.25), 3)), least, by_sex, said


def largest_disparity(said, columns, weights):
    """Return the largest disparity of a group, in exact fractions."""
    sums = {}
    for sex, job, one, weight in zip(columns["sex"], columns["job"], said.tolist(), weights.tolist(), strict=True):
        for group in (sex, None):
            cell = sums.setdefault((job, group), [Fraction(0), Fraction(0)])
            cell[one] += Fraction(weight)
    whole, values = Fraction(weights.sum()), {}
    for (job, group), own in sums.items():
        every = sums[job, None]
        one = own[0] / every[0] - own[1] / every[1] if group is not None and all(every) else Fraction(0)
        values[group] = values.get(group, 0) + one * sum(every) / whole
    return float(max(values.values()))


def fitted(seed):
    score, y, columns, weights, bound, least, by_sex, _ = problem(seed)
    goals = [f"conditional_disparity(by=sex, within=job) <= {bound}", *([f"recall >= {least}"] if least else [])]
    by = cp.Groups("sex", min_rows=1) if by_sex else ()
    options = {"cv": "prefit", "confidence": None, "by": by, "goals": goals}
    model = cp.GoalClassifier([lambda X: X[:, 0]], **options)
    return model.fit(score[:, None], y, sample_weight=weights, sensitive_features=columns)


@pytest.mark.parametrize("seed", problems(2, 2))
def test_the_rule_is_the_best_of_every_rule(seed):
    _, y, columns, weights, bound, least, _, said = problem(seed)
    errors, recall = np.average(said != (y == 1)[:, None], axis=0, weights=weights), weights[y == 1] @ said[y == 1]
    disparity = np.array([largest_disparity(one, columns, weights) for one in said.T.astype(int)])
    meets = (disparity <= bound + 1e-9) & (recall >= least * weights[y == 1].sum() - 1e-9)
    if not meets.any():
        with pytest.raises(InfeasibleGoals):
            fitted(seed)
        return
    model = fitted(seed)
    assert model.value_ == pytest.approx(errors[meets].min(), abs=1e-9 + model.gap_)
    assert model.gap_ <= 1e-3
    check = model.check_goals()[0]
    assert check.holds
    decided = model.predict(problem(seed)[0][:, None], sensitive_features=columns)
    assert check.value == pytest.approx(largest_disparity(decided, columns, weights), abs=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_strata_that_are_treated_alike_meet_any_bound(seed):
    """All are accepted where nothing else meets the goals: a point beside which no rule does."""
    rng = np.random.default_rng(seed)
    sex, job = np.array(["NA", "None"])[rng.integers(0, 2, 18)], np.arange(18) % 3
    y, score = np.arange(18) % 2, np.round(rng.normal(size=18) + 0.5 * (sex == "NA"), 1)
    score[np.argmin(score + 9 * (y == 0))] = -9.0  # a positive one
    goals = ["conditional_disparity(by=sex, within=job) <= 0", "recall >= 1"]
    model = cp.GoalClassifier([lambda X: X[:, 0]], cv="prefit", confidence=None, goals=goals)
    model.fit(score[:, None], y, sensitive_features={"sex": sex, "job": job})
    assert model.value_ == 0.5
    assert model.predict(score[:, None], sensitive_features={"sex": sex, "job": job}).all()


def people(n_rows=600, n_strata=2):
    rng = np.random.default_rng(0)
    sex, job = rng.choice(["F", "M"], n_rows), rng.integers(0, n_strata, n_rows)
    X = rng.normal(size=(n_rows, 2)) + 0.5 * (sex == "M")[:, None]
    y = (X[:, 0] + rng.normal(size=n_rows) > 0.3).astype(int)
    return X, y, {"sex": sex, "job": job}


GOAL = "conditional_disparity(by=sex, within=job) <= 0.03"


def fit(goal=GOAL, classifier=cp.GoalClassifier, n_strata=2, **options):
    X, y, columns = people(60, n_strata)
    return classifier(goals=goal, **options).fit(X, y, sensitive_features=columns)


WRONG = [
    (lambda: fit(classifier=cp.LPBoostClassifier), r"A booster needs goals that are linear.* or bound max_difference"),
    (lambda: fit(classifier=cp.ConstrainedClassifier), r"which is not linear.* Here bound max_difference\(selection"),
    (lambda: fit(f"{GOAL} with confidence 0.9"), "leave its confidence out"),
    (lambda: fit("conditional_disparity(by=sex, within=job) >= 0.1"), "can be bounded with <= only"),
    (lambda: fit("conditional_disparity(by=sex, within=job) <= 1.5"), "always holds: its left side lies from 0 to 1"),
    (lambda: fit("conditional_disparity(by=sex) <= 0.1"), "needs the column of its strata, as in .* got no within=job"),
    (lambda: fit("conditional_disparity(within=job) <= 0.1"), "needs the column of its groups"),
    (lambda: fit("conditional_disparity(by=sex, within=sex) <= 0.1"), "in one of them; got 'sex' in both"),
    (lambda: fit("conditional_disparity(by=sex, within=town) <= 0.1"), "town"),
    (lambda: fit("conditional_disparity(by=sex, within=job, average=1) <= 0.1"), "average is a word of the language"),
    (lambda: fit("conditional_disparity(by=sex, within=job, min_rows=9) <= 0.1"), "min_rows is a word of the language"),
    (lambda: fit("conditional_disparity(by=sex, within=job, value=size) <= 1"), "of whatever label and amount"),
    (lambda: fit("conditional_disparity(train.positives, by=sex, within=job) <= 1"), "of whatever label and amount"),
    (lambda: fit("conditional_disparity(job=1, by=sex, within=town) + 1 <= 2"), "is the worst of several rates"),
    (lambda: fit("conditional_disparity(sex=F, by=sex, within=job) <= 0.1"), "no row, because sex was 'F' already"),
    (lambda: fit("conditional_disparity(recall, by=sex, within=job) <= 0.1"), "recall"),
]


@pytest.mark.parametrize(("use", "words"), WRONG)
def test_wrong_uses_are_answered_in_a_sentence(use, words):
    with pytest.raises((TypeError, ValueError), match=words):
        use()
