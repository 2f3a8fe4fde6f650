"""Mixtures, boosters and constrained classifiers under goals on any class, differences and conditions."""

import numpy as np
import pytest

from counterpoise import MixtureClassifier
from counterpoise.goals import InfeasibleGoals, parse_goal


def pool(seed=0, n=300, n_models=5):
    rng = np.random.default_rng(seed)
    y = rng.choice(list("abc"), n)
    said = [np.where(rng.random(n) < skill, y, rng.choice(list("abc"), n)) for skill in np.linspace(0.3, 0.9, n_models)]
    return y, said, {"sex": rng.choice(["F", "M"], n), "age": rng.normal(40, 10, n)}


def mixed(goals, **options):
    y, said, columns = pool()
    return MixtureClassifier(said, goals=goals, random_state=0, **options).fit(
        np.zeros((300, 1)), y, sensitive_features=columns
    )


def test_a_difference_has_one_price_which_is_what_its_bound_is_worth():
    text = "abs(recall(of=b, sex=F) - recall(of=b, sex=M)) <= "
    at, step = 0.02, 1e-4
    values = [mixed([f"{text}{bound!r}"], alpha=1.0).value_ for bound in (at - step, at + step)]
    model = mixed([f"{text}{at!r}"], alpha=1.0)
    assert model.multipliers_.shape == (1,)
    assert model.multipliers_[0] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-3)


@pytest.mark.parametrize("goal", ["every_class(recall) >= 0.99", "abs(positive_rate(of=a) - 0.9) <= 0.01"])
def test_the_nearest_bound_of_a_phrase_is_met_and_none_nearer(goal):
    with pytest.raises(InfeasibleGoals) as caught:
        mixed([goal, "error_rate <= 0.9"])
    ((named, bound),) = caught.value.nearest_bounds.items()
    assert caught.value.conflict == (named,) == (parse_goal(goal),)
    assert mixed([named.with_bound(bound)]).check_goals()[0].holds
    nearer = bound - 1e-5 if named.sense == "<=" else bound + 1e-5
    with pytest.raises(InfeasibleGoals):
        mixed([named.with_bound(nearer)])
