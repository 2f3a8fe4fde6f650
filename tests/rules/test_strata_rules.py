"""Goals inside strata where rules are chosen: against every threshold, and against all mixtures by HiGHS."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals, NoRows
from tests.tiers import problems


def problem(seed):
    """Return scores with ties, labels, groups, strata and a goal with all its comparisons written out for each rule."""
    rng = np.random.default_rng(seed)
    n_rows, has_groups = 60, bool(seed % 2)
    sex, job = rng.choice(["F", "M", "X"], n_rows, p=[0.5, 0.4, 0.1]), rng.choice(["NA", "cook", "true"], n_rows)
    sex = np.where(sex == "X", "M", sex) if has_groups else sex
    y = rng.integers(0, 2, n_rows)
    y[:4], sex[:4], job[:4] = [0, 1, 0, 1], list("FFMM"), "cook"
    score = np.round(np.clip(0.4 * y + 0.2 * (sex == "F") + rng.normal(size=n_rows) / 3, 0, 1), 1 if has_groups else 2)
    levels = np.append(-1.0, np.unique(score))
    if has_groups:
        rules = np.array(list(product(levels, levels)))
        said = score[:, None] > np.where((sex == "F")[:, None], rules[:, 0], rules[:, 1])
    else:
        said = score[:, None] > levels
    return rng, y, {"sex": sex, "job": job}, score, said, has_groups


def comparisons(y, columns, said, *, least, recall, average):
    """Return the differences of every pair of groups, one row for each, one column for each rule."""
    masks = {}
    for job in np.unique(columns["job"]):
        own = {sex: (columns["job"] == job) & (columns["sex"] == sex) & ((y == 1) if recall else True) for sex in "FMX"}
        masks[job] = {sex: mask for sex, mask in own.items() if mask.sum() >= max(least, 1)}
    masks = {job: own for job, own in masks.items() if len(own) > 1}
    rows = []
    for one, other in product("FMX", "FMX"):
        common = [own for own in masks.values() if one in own and other in own and one != other]
        gaps = [said[own[one]].mean(axis=0) - said[own[other]].mean(axis=0) for own in common]
        sizes = [sum(mask.sum() for mask in own.values()) for own in common]
        rows += [np.average(gaps, axis=0, weights=sizes)] if average and gaps else [] if average else gaps
    return np.array(rows)


@pytest.mark.parametrize("seed", problems())
def test_the_rule_is_the_best_of_all_thresholds_and_the_mixture_that_of_highs(seed):
    rng, y, columns, score, said, has_groups = problem(seed)
    least, recall, average = int(rng.integers(0, 4)), bool(rng.integers(2)), bool(rng.integers(2))
    bound = float(rng.uniform(0.0, 0.4))
    words = f"{', average=True' if average else ''}{f', min_rows={least}' if least else ''}"
    goal = f"max_difference({'recall' if recall else 'positive_rate'}, by=sex, within=job{words}) <= {bound!r}"
    options = {"goals": [goal, "recall >= 0.4"], "cv": "prefit", "confidence": None}
    options |= {"by": "sex"} if has_groups else {}
    rows = comparisons(y, columns, said, least=least, recall=recall, average=average)
    arguments = {"X": np.zeros((len(y), 1)), "y": y, "sensitive_features": columns}
    model = cp.GoalClassifier([score], **options)
    if not len(rows):
        with pytest.raises(NoRows, match="no stratum has two groups"):
            model.fit(**arguments)
        return
    errors = (said != (y == 1)[:, None]).mean(axis=0)
    limits = np.vstack([rows, -said[y == 1].mean(axis=0)])
    bounds = np.append(np.full(len(rows), bound), -0.4)
    is_met = (limits <= bounds[:, None] + 1e-12).all(axis=0)
    if is_met.any():
        model.fit(**arguments)
        assert model.value_ == pytest.approx(errors[is_met].min(), abs=1e-9)
        assert model.check_goals()[0].holds
    else:
        with pytest.raises(InfeasibleGoals):
            model.fit(**arguments)
    program = linprog(errors, limits, bounds, np.ones((1, errors.size)), 1.0, method="highs")
    mixed = cp.GoalClassifier([score], **options, decision="sticky")
    if program.status == 2:
        with pytest.raises(InfeasibleGoals):
            mixed.fit(**arguments)
    else:
        mixed.fit(**arguments)
        assert mixed.value_ == pytest.approx(program.fun, abs=2e-4)
