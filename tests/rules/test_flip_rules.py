"""Goals on flips where rules are chosen: against every threshold, all mixtures by HiGHS, and with scores of folds."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals, Table
from tests.tiers import problems


def problem(seed):
    """Return labels, regions, scores of rows and twins with ties, and what every rule decides about both."""
    rng = np.random.default_rng(seed)
    n_rows, by_region = 50, bool(seed % 2)
    region, y = rng.choice(["N", "S"], n_rows), rng.integers(0, 2, n_rows)
    y[:4], region[:4] = [0, 1, 0, 1], list("NNSS")
    digits = 1 if by_region else 2
    score = np.round(np.clip(0.5 * y + rng.normal(size=n_rows) / 3, 0, 1), digits)
    twin = np.where(
        rng.random(n_rows) < 0.3, score, np.round(np.clip(score + rng.normal(size=n_rows) / 5, 0, 1), digits)
    )
    levels = np.append(-1.0, np.unique([score, twin]))
    rules = np.array(list(product(levels, levels))) if by_region else np.column_stack([levels, levels])
    limits = np.where((region == "N")[:, None], rules[:, 0], rules[:, 1])
    return rng, y, region, score, twin, score[:, None] > limits, twin[:, None] > limits, by_region


@pytest.mark.parametrize("seed", problems())
def test_the_rule_is_the_best_of_all_thresholds_and_the_mixture_that_of_highs(seed):
    rng, y, region, score, twin, said, other, by_region = problem(seed)
    weights = rng.integers(1, 4, y.size).astype(float) if rng.integers(2) else None
    most, least = float(rng.uniform(0.0, 0.25)), float(rng.uniform(0.3, 0.9))
    flips = np.average(said != other, axis=0, weights=weights)
    recall = np.average(said[y == 1], axis=0, weights=None if weights is None else weights[y == 1])
    errors = np.average(said != (y == 1)[:, None], axis=0, weights=weights)
    goals = [f"flip_rate(twin=swapped) <= {most!r}", f"recall >= {least!r}"]
    if rng.integers(2):
        goals[0] = f"every_group(flip_rate, by=region, twin=swapped) <= {most!r}"
        masks = [region == one for one in "NS"]
        some = [None if weights is None else weights[mask] for mask in masks]
        own = [np.average((said != other)[mask], 0, one) for mask, one in zip(masks, some, strict=True)]
    else:
        own = [flips]
    # Scores of rows and twins are known to a model that looks them up.
    model = {"cv": "prefit", "confidence": None, "goals": goals, **({"by": "region"} if by_region else {})}
    features, changed = score[:, None], twin[:, None]
    arguments = {"X": features, "y": y, "sample_weight": weights, "sensitive_features": {"region": region}}
    arguments["datasets"] = {"swapped": Table(changed, None, {"region": region})}
    limits, bounds = np.vstack([*own, -recall]), np.append(np.full(len(own), most), -least)
    is_met = (limits <= bounds[:, None] + 1e-12).all(axis=0)
    one = cp.GoalClassifier([lambda X: X[:, 0]], **model)
    if is_met.any():
        one.fit(**arguments)
        assert one.value_ == pytest.approx(errors[is_met].min(), abs=1e-9)
        assert all(check.holds for check in one.check_goals())
        decided = [one.predict(part, sensitive_features={"region": region}) for part in (features, changed)]
        worst = max(own_flips(decided, region, weights, goals[0]))
        assert one.check_goals()[0].value == pytest.approx(worst, abs=1e-9)
    else:
        with pytest.raises(InfeasibleGoals):
            one.fit(**arguments)
    program = linprog(errors, limits, bounds, np.ones((1, errors.size)), 1.0, method="highs")
    mixed = cp.GoalClassifier([lambda X: X[:, 0]], decision="sticky", **model)
    if program.status == 2:
        with pytest.raises(InfeasibleGoals):
            mixed.fit(**arguments)
    else:
        mixed.fit(**arguments)
        assert mixed.value_ == pytest.approx(program.fun, abs=2e-4)
        assert all(check.holds for check in mixed.check_goals())


def own_flips(decided, region, weights, goal):
    """Return the share of decisions that differ, of all rows or in each region."""
    parts = ["N", "S"] if "every_group" in goal else [None]
    masks = [np.ones(region.size, bool) if part is None else region == part for part in parts]
    differ = decided[0] != decided[1]
    return [np.average(differ[mask], weights=None if weights is None else weights[mask]) for mask in masks]


@pytest.fixture(scope="module")
def loans():
    rng = np.random.default_rng(0)
    n_rows = 3000
    sex = rng.integers(0, 2, n_rows)
    X = np.column_stack([rng.normal(size=(n_rows, 2)), sex])
    y = (X[:, 0] + 0.5 * sex + rng.normal(size=n_rows) > 0.4).astype(int)
    changed = X.copy()
    changed[:, 2] = 1 - sex
    return X, y, sex, changed


def test_twins_are_scored_by_the_models_of_folds_that_scored_the_rows(loans):
    X, y, _, _ = loans
    model = cp.GoalClassifier(LogisticRegression(C=0.01), goals=["flip_rate(twin=same) <= 0.01"], confidence=None)
    model.fit(X, y, datasets={"same": Table(X)})
    (check,) = model.check_goals()
    assert check.value == 0.0  # other models would differ near the threshold
    assert np.array_equal(model.family_.selection_data.scores["train"], model.family_.selection_data.scores["same"])


def test_what_flips_cannot_be_chosen_for_is_said_before_anything_is_trained(loans):
    X, y, sex, changed = loans
    goal = "flip_rate(twin=swapped) <= 0.05"
    twins = {"swapped": Table(changed, None, {"sex": 1 - sex})}
    with pytest.raises(ValueError, match="by=sex gives 3000 rows of 'train' another threshold than their twins"):
        cp.GoalClassifier(None, goals=goal, by="sex").fit(X, y, sensitive_features={"sex": sex}, datasets=twins)
    with pytest.raises(ValueError, match=r"flip_rate is for two classes, .* here rows may be deferred"):
        cp.GoalClassifier(None, goals=goal, deferral=cp.Deferral(0.2)).fit(X, y, datasets=twins)
    with pytest.raises(ValueError, match=r"flip_rate is for two classes, .* here are more"):
        cp.GoalClassifier(None, goals=goal).fit(X, y + (X[:, 1] > 1), datasets={"swapped": Table(changed)})
    with pytest.raises(ValueError, match="Unknown dataset 'swapped'"):
        cp.GoalClassifier(None, goals=goal).fit(X, y)
    with pytest.raises(ValueError, match="got 10 rows beside 3000"):
        cp.GoalClassifier(None, goals=goal).fit(X, y, datasets={"swapped": Table(changed[:10])})
    for booster in (cp.LPBoostClassifier(goals=goal, alpha=0.5), cp.ConstrainedClassifier(goals=goal)):
        with pytest.raises(ValueError, match=r"no model can be trained for it. Choose among rules or models instead"):
            booster.fit(X, y, datasets={"swapped": Table(changed)})
