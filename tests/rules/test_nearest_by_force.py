"""What is said of goals that one rule cannot meet, against a look at all rules of small tables."""

from itertools import combinations, product

import numpy as np
import pytest

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals, parse_goal
from tests.tiers import problems


def ratio(over, under):
    return over / under if under else None


NAMES = [
    *("recall >=", "precision >=", "positive_rate <=", "error_rate <="),
    *("max_difference(positive_rate, by=group) <=", "max_difference(recall, by=group) <="),
]


def value_of(name, said, y, group):
    """Return the left side of a goal; None where it is a ratio without a denominator, which meets any bound."""
    parts = [[said[(group == code) & is_in].mean() for code in range(2)] for is_in in (y >= 0, y == 1)]
    values = {
        "recall": (said * y).sum() / y.sum(),
        "precision": (said * y).sum() / said.sum() if said.any() else None,
        "positive_rate": said.mean(),
        "error_rate": (said != y).mean(),
        "max_difference(positive_rate, by=group)": abs(np.diff(parts[0])[0]),
        "max_difference(recall, by=group)": abs(np.diff(parts[1])[0]),
    }
    return values[name[:-3]]


def needs_of_rules(goals, scores, y, group, by):
    """Return by how much each bound must be looser for each rule, with no regard to the library."""
    levels = [-1.0, *np.unique(scores)]
    rows = []
    for thresholds in product(levels, repeat=2 if by else 1):
        said = (scores > np.resize(thresholds, 2)[group]).astype(int)
        values = [value_of(name, said, y, group) for name, _ in goals]
        rows.append(
            [
                0.0 if value is None else max(bound - value if name.endswith(">=") else value - bound, 0.0)
                for (name, bound), value in zip(goals, values, strict=True)
            ]
        )
    return np.where(np.array(rows).T < 1e-9, 0.0, np.array(rows).T)


def fit_to(goals, scores, y, group, by):
    model = cp.GoalClassifier([scores], cv="prefit", by=by, goals=goals, confidence=None)
    return model.fit(np.zeros((y.size, 1)), y, sensitive_features={"group": group})


@pytest.mark.parametrize("seed", problems(6, 24))
def test_conflict_nearest_bounds_and_shared_change_are_those_of_all_rules(seed):
    rng = np.random.default_rng(seed)
    by, n_rows = ["group"] if seed % 2 else [], 24
    scores, y, group = rng.choice([0.1, 0.3, 0.6, 0.9], n_rows), rng.integers(0, 2, n_rows), np.arange(n_rows) % 2
    y[:4] = [0, 0, 1, 1]
    names = rng.choice(NAMES, 4, replace=False)
    goals = [(name, float(rng.uniform(0.7, 0.95) if name.endswith(">=") else rng.uniform(0.02, 0.4))) for name in names]
    texts = [f"{name} {bound}" for name, bound in goals]
    needs = needs_of_rules(goals, scores, y, group, by)
    if (needs.sum(axis=0) == 0).any():
        fit_to(texts, scores, y, group, by)
        return
    with pytest.raises(InfeasibleGoals) as caught:
        fit_to(texts, scores, y, group, by)
    error = caught.value
    assert error.proven
    assert error.nearest_proven
    place = {str(goal): number for number, goal in enumerate(map(parse_goal, texts))}
    conflict = [place[str(goal)] for goal in error.conflict]
    assert needs[conflict].any(axis=0).all()
    for fewer in combinations(conflict, len(conflict) - 1):
        assert not needs[list(fewer)].any(axis=0).all()
    assert error.least_violation == pytest.approx(needs.sum(axis=0).min(), abs=1e-6)
    for goal, bound in error.nearest_bounds.items():
        own = place[str(goal)]
        others = np.delete(needs, own, axis=0).any(axis=0)
        assert abs(bound - goal.bound) == pytest.approx(needs[own, ~others].min(), abs=1e-6)
    if error.nearest_bounds and error.joint_bounds:
        largest = max(abs(bound - goal.bound) for goal, bound in error.joint_bounds.items())
        assert largest == pytest.approx(needs.max(axis=0).min(), abs=1e-3)
    assert error.ways_out
    for way in error.ways_out:
        by_text = {str(old): str(new) for old, new in way.items()}
        model = fit_to([by_text.get(str(parse_goal(text)), text) for text in texts], scores, y, group, by)
        assert all(check.holds for check in model.check_goals())
