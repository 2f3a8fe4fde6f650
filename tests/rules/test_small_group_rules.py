"""Goals that leave out small groups where models and rules are chosen: against written-out programs and every rule."""

from itertools import permutations

import numpy as np
import pytest
from written_out import Problem, _Maker, fitted, quoted, solved_by_highs

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals, NoRows
from tests.tiers import problems


class Maker(_Maker):
    """Makes goals on groups and classes with enough rows."""

    def large(self, masks):
        least = int(self.rng.integers(1, 14))
        return least, [one for one in masks if masks[one].sum() >= least]

    def positives(self, of):
        return {one: (self.columns["sex"] == one) & (self.y == of) for one in np.unique(self.columns["sex"])}

    def small_groups(self):
        of = self.any_class()
        masks = self.positives(of)
        least, kept = self.large(masks)
        values = [self.share(self.said == of, masks[one]) for one in kept]
        return self.limit(f"every_group(recall, of={quoted(of)}, by=sex, min_rows={least})", values, ">=")

    def small_pairs(self):
        of = self.any_class()
        masks = self.positives(of)
        least, kept = self.large(masks)
        values = [self.share(self.said == of, masks[one]) for one in kept]
        gaps = [one - other for one, other in permutations(values, 2)]
        return self.limit(f"max_difference(recall, of={quoted(of)}, by=sex, min_rows={least})", gaps, "<=")

    def small_classes(self):
        least, kept = self.large({of: self.y == of for of in self.classes})
        values = [self.share(self.said == of, self.y == of) for of in kept]
        return self.limit(f"every_class(recall, min_rows={least})", values, ">=")

    def small_average(self):
        least, kept = self.large({of: self.y == of for of in self.classes})
        values = [self.share(self.said == of, self.y == of) for of in kept]
        return self.limit(f"macro(recall, min_rows={least})", [np.mean(values, axis=0)], ">=")


KINDS = ["small_groups", "small_pairs", "small_classes", "small_average"]


def uneven_problem(seed):
    """Return a problem with groups and classes of unlike sizes, and one to three goals."""
    rng = np.random.default_rng(seed)
    n_classes, n_models, n_rows = int(rng.integers(2, 5)), int(rng.integers(2, 9)), 120
    classes = np.array(["ant", "bee", "New Zealand", "it's"])[:n_classes]
    y = rng.choice(classes, n_rows, p=np.array([8, 4, 2, 1])[:n_classes] / sum([8, 4, 2, 1][:n_classes]))
    sex = rng.choice(["F", "M", "X", "Y"], n_rows, p=[0.5, 0.3, 0.12, 0.08])
    y[: 4 * n_classes], sex[: 4 * n_classes] = np.tile(classes, 4), np.repeat(["F", "M", "X", "Y"], n_classes)
    said = rng.choice(classes, (n_rows, n_models))
    said = np.where(rng.random((n_rows, n_models)) < rng.uniform(0.2, 0.95, n_models), y[:, None], said)
    weights = rng.integers(1, 4, n_rows).astype(float) if rng.random() < 0.3 else None
    maker = Maker(rng, y, said, {"sex": sex, "age": np.full(n_rows, 30)}, weights)
    wanted = [KINDS[seed % len(KINDS)], *rng.choice([*KINDS, "confusion"], rng.integers(0, 3))]
    limits = []
    for kind in wanted:
        try:
            limits.append(getattr(maker, kind)())
        except ValueError:  # no group, or one alone, is large enough
            continue
    return Problem(y, said, maker.columns, weights, float(rng.uniform(0.1, 1.0)), None, None, limits)


@pytest.mark.parametrize("seed", problems())
def test_a_mixture_is_the_one_that_highs_finds_without_the_small_groups(seed):
    problem = uneven_problem(seed)
    if not problem.limits:
        return
    least = solved_by_highs(problem)
    if least is None:
        with pytest.raises(InfeasibleGoals) as caught:
            fitted(problem)
        assert caught.value.proven
        return
    model = fitted(problem)
    assert model.value_ == pytest.approx(least, abs=1e-6)
    for limit, check in zip(problem.limits, model.check_goals(), strict=True):
        assert (np.array(limit.rows) @ model.mixture_ <= np.array(limit.bounds) + 1e-9).all()
        assert check.holds


@pytest.mark.parametrize("seed", problems())
def test_one_threshold_is_the_best_of_all_for_the_groups_that_count(seed):
    rng = np.random.default_rng(seed)
    n_rows = 60
    sex = rng.choice(["F", "M", "X"], n_rows, p=[0.5, 0.35, 0.15])
    y = rng.integers(0, 2, n_rows)
    y[:6], sex[:6] = [0, 1, 0, 1, 0, 1], list("FFMMXX")
    score = np.round(np.clip(0.5 * y + rng.normal(size=n_rows) / 2, 0, 1), 2)
    least, bound = int(rng.integers(2, 14)), float(rng.uniform(0.0, 0.3))
    kept = [one for one in "FMX" if ((sex == one) & (y == 1)).sum() >= least]
    goal = f"max_difference(recall, by=sex, min_rows={least}) <= {bound!r}"
    options = {"goals": [goal, "recall >= 0.3"], "cv": "prefit", "alpha": None, "confidence": None}
    model = cp.GoalClassifier([score], **options)
    arguments = np.zeros((n_rows, 1)), y
    if len(kept) < 2:
        with pytest.raises(NoRows, match=r"leaves out all groups|or more"):
            model.fit(*arguments, sensitive_features={"sex": sex})
        return
    said = score[:, None] > np.append(-1.0, np.unique(score))
    recalls = np.array([said[(sex == one) & (y == 1)].mean(axis=0) for one in kept])
    is_met = (np.ptp(recalls, axis=0) <= bound + 1e-12) & (said[y == 1].mean(axis=0) >= 0.3 - 1e-12)
    errors = (said != (y == 1)[:, None]).mean(axis=0)
    if not is_met.any():
        with pytest.raises(InfeasibleGoals):
            model.fit(*arguments, sensitive_features={"sex": sex})
        return
    model.fit(*arguments, sensitive_features={"sex": sex})
    assert model.value_ == pytest.approx(errors[is_met].min(), abs=1e-9)
    assert len(model.check_goals()[0].left_out) == 3 - len(kept)
