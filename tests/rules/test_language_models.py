"""Mixtures, boosters and constrained classifiers under goals on any class, differences and conditions."""

import numpy as np
import pandas as pd
import pytest

from counterpoise import AdaLPBoostClassifier, ConstrainedClassifier, MixtureClassifier, load, save, tradeoff
from counterpoise.goals import InfeasibleGoals, parse_goal
from counterpoise.learners import HistogramTree, Stump


class Untrained(Stump):
    """Must not be asked to learn anything."""

    def fit_codes(self, *_args, **_kwargs):
        raise AssertionError("a model was trained")

    fit = fit_codes


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("recall(sec=F) >= 0.5", "Unknown column 'sec'.*Did you mean 'sex'"),
        ("max_difference(recall, by=sec) <= 0.5", "Unknown column 'sec'"),
        ("recall(of=cow) >= 0.5", "Unknown class 'cow'"),
        ("recall >= 80", r"cannot hold: recall >= 80"),
        ("recall <= 80", "always holds: its left side lies from 0 to 1.*0.8 for 80 %"),
        ("cost({0->1: 20}) <= 30", "from 0 to 20"),
        ("max_difference(recall, by=sex) <= -0.1", "cannot hold"),
        ("positive_rate(sex=F) <= 0.1 with confidence 0.99", "cannot be certified here"),
    ],
)
def test_boosters_refuse_goals_before_they_train(goal, message):
    X, y = np.arange(8.0)[:, None], np.tile([0, 1], 4)
    with pytest.raises(ValueError, match=message):
        AdaLPBoostClassifier(Untrained(), n_estimators=2, goals=[goal]).fit(
            X, y, sensitive_features={"sex": list("FFFFMMMM")}
        )


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


def test_a_frontier_of_a_phrase_runs_from_the_tightest_bound_to_where_it_costs_nothing():
    model = mixed(["max_difference(recall, of=b, by=sex) <= 0.5"])
    found = tradeoff(model, model.goals_[0], n_points=5)
    values = [point.value for point in found]
    assert (np.diff(values) <= 1e-9).all()
    assert values[-1] == pytest.approx(mixed([]).value_, abs=1e-6)
    with pytest.raises(InfeasibleGoals):
        mixed([model.goals_[0].with_bound(found.bounds[0] - 1e-4)])


def test_a_saved_mixture_keeps_what_its_goals_ask_for(tmp_path):
    y, said, columns = pool()
    frame = pd.DataFrame(columns)  # its ages are all different
    goals = [
        "recall(of=c, age<=33) >= 0.5",
        "max_difference(error_rate, by=sex) <= 0.1",
        "cost({a->b: 3}) <= 2",
    ]
    model = MixtureClassifier(said, goals=goals).fit(frame, y)
    save(model, tmp_path / "model.cp")
    again = load(tmp_path / "model.cp")
    assert again.goals_ == model.goals_
    assert list(map(str, again.check_goals())) == list(map(str, model.check_goals()))
    assert again.rebalance(alpha=0.7).mixture_ == pytest.approx(model.rebalance(alpha=0.7).mixture_)


def test_boosters_of_several_classes_meet_goals_on_each():
    rng = np.random.default_rng(0)
    y = rng.choice(list("abc"), 300)
    X = rng.normal(size=(300, 2)) + np.column_stack([y == "a", y == "b"])
    model = AdaLPBoostClassifier(
        HistogramTree(), n_estimators=6, goals=["every_class(recall) >= 0.5", "error_rate() <= 0.4"]
    )
    assert [check.holds for check in model.fit(X, y).check_goals()] == [True, True]
    plain = AdaLPBoostClassifier(HistogramTree(), n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match=r"was fitted without goals, so it did not keep.*Pass X and y"):
        plain.rebalance(goals=["recall(of=a) >= 0.1"])
    assert plain.rebalance(X, y, goals=["recall(of=a) >= 0.1"]).check_goals()[0].holds


@pytest.mark.slow
def test_a_constrained_classifier_takes_what_two_classes_give_a_meaning():
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], 200)
    X, sex = rng.normal(size=(200, 2)) + (y == "yes")[:, None], rng.choice(["F", "M"], 200)
    goals = [
        "recall(of=no) >= 0.8",
        "max_difference(positive_rate, by=sex) <= 0.05",
        "cost({no->yes: 4}) <= 1",
    ]
    model = ConstrainedClassifier(goals=goals, decision="ramp").fit(X, y, sensitive_features={"sex": sex})
    assert model.multipliers_.shape == (3,)
    assert all(check.violation < 1e-6 for check in model.check_goals(X, y, sensitive_features={"sex": sex}))
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        ConstrainedClassifier(goals=["recall(of=a) >= 0.5"]).fit(X, np.resize(list("abc"), 200))
    tight = ["recall(of=no) >= 0.95", "abs(positive_rate(of=yes) - 0.9) <= 0.05"]
    with pytest.raises(InfeasibleGoals, match=r"recall\(of=no\) >= 0.95") as caught:
        ConstrainedClassifier(goals=tight).fit(X, y)
    assert len(caught.value.conflict) == 2
