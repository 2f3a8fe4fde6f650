"""Goals that hold with equality: what rounding leaves of equal rates binds nothing. The oracle counts in fractions."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise import ConstrainedClassifier, MixtureClassifier
from counterpoise.goals import InfeasibleGoals, Table, parse_goal
from counterpoise.goals.rates import METRICS, RATIOS
from counterpoise.solvers.rows import exact_parts, exact_sum

EPSILON = Fraction(1, 10**14)


def some_rows(rows, y, baseline, sex):
    """Return which rows a dataset of a goal means."""
    found = np.ones(len(y), bool)
    for _, text in rows.conditions:
        found &= sex == text
    for wanted, part in ((rows.label, y), (rows.baseline, baseline)):
        if wanted is not None:
            found &= (part == 1) == wanted
    return found


def exact_excess(goal, predicted, y, baseline, sex, weights):
    """Return by how much predictions exceed a goal, multiplied through, as a fraction."""
    total = Fraction(goal.linear.constant)
    for coefficient, positive, rows, out_of, _ in goal.linear.row_counts:
        counted = some_rows(rows, y, baseline, sex) & ((predicted == 1) == positive)
        whole = sum(weights[some_rows(out_of, y, baseline, sex)])
        total += Fraction(coefficient) * sum(weights[counted], Fraction(0)) / whole
    return total


def exact_optimum(excess, errors):
    """Return the least error of a mixture that meets one or two opposite goals: one model, or two with one tight."""
    n_models = len(errors)
    found = [errors[i] for i in range(n_models) if all(row[i] <= EPSILON for row in excess)]
    for i, j in product(range(n_models), repeat=2):
        for tight in excess:
            if tight[i] <= 0 < tight[j]:
                share = tight[j] / (tight[j] - tight[i])
                if all(row[i] * share + row[j] * (1 - share) <= EPSILON for row in excess):
                    found.append(errors[i] * share + errors[j] * (1 - share))
    return min(found, default=None)


def problem(seed):
    """Return models, labels, baseline, groups and weights: groups of 1 to 40 rows, models perfect, constant, random."""
    rng = np.random.default_rng(seed)
    sizes = dict(zip(product("FM", (0, 1)), rng.integers(2, 41, 4).tolist(), strict=True))
    sex = np.concatenate([[group] * size for (group, _), size in sizes.items()])
    y = np.concatenate([[label] * size for (_, label), size in sizes.items()])
    baseline = rng.integers(0, 2, len(y))
    starts = np.cumsum([0, *sizes.values()])
    baseline[starts[:-1]], baseline[starts[:-1] + 1] = 0, 1  # each cell has both
    weights = (np.ones(len(y)), rng.choice([0.1, 1 / 3, 2.5, 7.0], len(y)), np.full(len(y), 0.1))[seed % 3]
    noisy = np.where(rng.random(len(y)) < 0.8, y, 1 - y)
    models = [y, 1 - y, 0 * y, 0 * y + 1, rng.integers(0, 2, len(y)), noisy, baseline]
    chosen = [models[place] for place in rng.choice(len(models), int(rng.integers(1, 5)), replace=False)]
    return chosen, y, baseline, sex, weights


def tied_goals(metric, seed, value):
    """Return goals between two groups, or with a bound that the first model has to the last bit."""
    one, other = f"{metric}(mail, sex=F)", f"{metric}(mail, sex=M)"
    if metric in RATIOS:
        return [f"{one} {'<=' if seed % 2 else '>='} {value(one)!r}"]
    choices = [
        [f"{one} <= {other}"],
        [f"{one} >= {other}"],
        [f"{one} <= {other}", f"{other} <= {one}"],
        [f"{one} <= {value(one)!r}", f"{one} >= {value(one)!r}"],
        [f"2 * {one} <= 0.7 * {one} + 1.3 * {other}"],
    ]
    return choices[seed % len(choices)]


@pytest.mark.slow
@pytest.mark.parametrize("metric", sorted({*METRICS, *RATIOS} - {"defer_rate"}))  # models that exist defer nothing
def test_ties_are_never_infeasible_and_cost_nothing(metric):
    for seed in range(6):
        models, y, baseline, sex, weights = problem(seed)
        table = Table(np.zeros((len(y), 1)), y, {"sex": sex}, baseline, sample_weight=weights)

        def value(text, models=models, table=table):
            return float(np.nan_to_num(parse_goal(f"{text} <= 0").left.value(models[0], {"mail": table}), posinf=1.0))

        goals = [parse_goal(text) for text in tied_goals(metric, seed, value)]
        parts = np.array([Fraction(float(weight)) for weight in weights])
        excess = [[exact_excess(goal, model, y, baseline, sex, parts) for model in models] for goal in goals]
        errors = [sum(parts[model != y], Fraction(0)) / sum(parts) for model in models]
        best = exact_optimum(excess, errors)
        mixture = MixtureClassifier([{"train": model, "mail": model} for model in models], alpha=1.0, goals=goals)
        if best is None:
            continue
        mixture.fit(table.X, y, weights, datasets={"mail": table})
        assert mixture.value_ <= float(best) + 1e-9, (metric, seed)
        assert all(check.holds for check in mixture.check_goals())


def test_the_goal_of_a_perfect_model_costs_nothing():
    y, sex = np.array([1] * 8 + [0] * 4), np.array(["F"] * 2 + ["M"] * 6 + ["F", "M"] * 2)
    goals, groups = ["recall(sex=F) <= recall(sex=M)"], {"sensitive_features": {"sex": sex}}
    found = MixtureClassifier([y, 0 * y], alpha=1.0, goals=goals).fit(np.zeros((12, 1)), y, **groups)
    assert found.mixture_.tolist() == [1, 0]
    assert MixtureClassifier([y], goals=goals).fit(np.zeros((12, 1)), y, **groups).mixture_.tolist() == [1]


@pytest.mark.parametrize("missed", [1e-12, 1e-10, 9e-10])
def test_goals_that_are_missed_by_rounding_are_met(missed):
    y = np.array([0, 1, 1, 1])
    goals = [f"recall >= {1 + missed!r}", "error_rate <= 0"]
    assert MixtureClassifier([y, 1 - y], alpha=0.5, goals=goals).fit(np.zeros((4, 1)), y).mixture_.tolist() == [1, 0]
    with pytest.raises(InfeasibleGoals, match="This goal cannot hold: recall"):
        MixtureClassifier([y, 1 - y], goals=["recall >= 1.00001"]).fit(np.zeros((4, 1)), y)


def test_a_goal_that_any_constant_prediction_ties_leaves_the_most_even_start():
    rng = np.random.default_rng(0)
    y, sex = np.tile([0, 1], 35), np.repeat(["F", "M"], [21, 49])
    goals = ["positive_rate(sex=F) <= positive_rate(sex=M)"]
    model = ConstrainedClassifier(goals=goals, decision="ramp").fit(
        rng.normal(size=(70, 3)) + y[:, None], y, sensitive_features={"sex": sex}
    )
    assert model.history_[-1].violation <= 1e-9


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=60), st.randoms())
def test_sums_of_weights_are_exact_in_any_order(weights, random):
    array = np.array(weights)
    total = exact_sum(array)
    random.shuffle(weights)
    assert exact_sum(np.array(weights)) == total
    assert abs(Fraction(total) - sum(map(Fraction, weights))) <= sum(map(Fraction, weights)) * Fraction(1, 2**52)
    for part in exact_parts(array):
        steps = np.cumsum(part)
        assert all(
            Fraction(after) - Fraction(before) == Fraction(one)
            for (before, after), one in zip(pairwise(np.append(0.0, steps).tolist()), part.tolist(), strict=True)
        )
