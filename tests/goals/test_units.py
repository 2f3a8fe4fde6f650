"""Costs and bounds may be in any unit: nothing but the numbers themselves depends on it."""

import math

import numpy as np
import pytest

from counterpoise import audit
from counterpoise.goals import Dataset, Table, cost, parse_goal, positive_rate
from tests.tiers import some_fast

AMOUNTS = (0.0, 0.1, 0.2, 0.3, 1.0, 1e-13, 20.0, 1e6)  # equal, tiny beside large, and sums that are not exact


def sample_of(rng):
    """Return predictions and rows, some of them weighted, alike or all of one answer."""
    n_rows = int(rng.integers(8, 80))
    y, said = rng.integers(2, size=(2, n_rows))
    said = [said, 1 - y, y, np.ones(n_rows, dtype=int)][rng.integers(4)]
    group = np.where(
        np.arange(n_rows) < 4, ["a", "b"] * (n_rows // 2) + ["a"] * (n_rows % 2), rng.choice(["a", "b"], n_rows)
    )
    weighed = {"sample_weight": rng.integers(1, 4, n_rows), "largest_weight": 5} if rng.random() < 0.08 else {}
    return said, Table(None, y, {"g": group}, **weighed)


def goal_of(rng):
    """Return a function from a power of two to a goal of random form and costs in that unit."""
    paid = [float(rng.choice(AMOUNTS)) for _ in range(4)]
    paid[0] = paid[0] or 1.0
    bound = float(rng.choice([0.0, 0.05, 0.1, 0.3, 0.5, 1.0, 20.0])) * max(paid)
    form, sense = rng.choice(6, p=[0.3, 0.1, 0.25, 0.1, 0.2, 0.05]), rng.random() < 0.5  # sums of two take longest

    def made(power):
        amounts = [math.ldexp(amount, power) for amount in paid]
        one = cost("train", {"0->1": amounts[0], "1->0": amounts[1]})
        other = cost("train", {"0->1": amounts[2] or amounts[0], "1->0": amounts[3]})
        groups = [cost(Dataset("train").where(g=name), {"0->1": amounts[0], "1->0": amounts[1]}) for name in ("a", "b")]
        left = [
            one,
            groups[0] - groups[1],
            one + other - 0.5 * one,
            groups[0] + 0.3 * other,
            one / positive_rate("train"),
            abs(groups[0] - groups[1]),
        ][form]
        limit = math.ldexp(bound, power)
        return left <= limit if sense or form == 5 else left >= limit

    return made


@pytest.mark.parametrize("seed", some_fast(range(6)))
def test_a_power_of_two_on_costs_and_bound_changes_no_verdict_and_nothing_else(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        (said, table), made, power = sample_of(rng), goal_of(rng), int(rng.integers(-900, 901))
        (plain,), (scaled,) = (audit(made(unit), said, table, classes=[0, 1]) for unit in (0, power))
        assert scaled.verdict == plain.verdict
        for name in ("estimate", "low", "high", "margin"):
            expected = math.ldexp(getattr(plain, name), power)
            assert getattr(scaled, name) == pytest.approx(expected, rel=1e-12, abs=0.0, nan_ok=True)
        checks = [made(unit).evaluate(said, table, classes=[0, 1]) for unit in (0, power)]
        assert checks[0].holds == checks[1].holds
        assert checks[1].value == pytest.approx(math.ldexp(checks[0].value, power), rel=1e-12, abs=0.0, nan_ok=True)


def test_huge_costs_are_audited_or_refused_with_a_sentence():
    y = np.array([0, 1] * 200)
    said = np.where(np.arange(400) < 40, 1 - y, y)
    (plain,) = audit("cost({0->1: 1, 1->0: 2}) <= 0.3", said, y)
    (huge,) = audit("cost({0->1: 1e300, 1->0: 2e300}) <= 3e299", said, y)
    assert (huge.verdict, plain.verdict) == ("holds", "holds")
    assert huge.high == pytest.approx(1e300 * plain.high, rel=1e-12)
    assert len(str(parse_goal("cost({0->1: 1e306}) <= 1e306").evaluate(said, Table(None, y)))) < 100
    with pytest.raises(ValueError, match=r"numbers in the goal cost.* are too large to add up.* Divide its costs"):
        audit("cost({0->1: 1e308, 1->0: 1e308}) <= 1e307", said, y)
    with pytest.raises(ValueError, match="must be finite; got inf"):
        _ = 1e200 * cost("train", {"0->1": 1e200})
    with pytest.raises(ValueError, match=r"rounds to 0; got 1e-200 \* cost"):
        _ = 1e-200 * cost("train", {"0->1": 1e-200})
