"""One rule decides unless draws are surely better, and the usual threshold unless another rule is."""

import numpy as np
import pytest

import counterpoise as cp
from counterpoise.mixtures.choosing import as_aim
from counterpoise.mixtures.scores.choosing import choose_rules
from counterpoise.mixtures.scores.evidence import rank
from counterpoise.mixtures.scores.rules import at_usual
from counterpoise.mixtures.sure import Decider, is_surely_better

RECALL = "recall(train) >= 0.9"
FALSE_ALARMS = "false_positive_rate(train)"


def same(X):
    return X


def drawn(n_rows, seed=0):
    """Return probabilities, labels drawn by them, and a group that the probabilities favour."""
    rng = np.random.default_rng(seed)
    chances = rng.random(n_rows)
    group = np.where(rng.random(n_rows) < chances, "a", "b")
    return chances, (rng.random(n_rows) < chances).astype(int), group


def chosen(chances, y, group=None, **settings):
    columns = {} if group is None else {"sensitive_features": {"group": group}}
    return cp.GoalClassifier(same, cv="prefit", random_state=0, **settings).fit(chances, y, **columns)


def excess(model):
    """Return false alarms above those of one threshold with the same recall, where labels are drawn by chances."""
    cuts = np.array([rule.thresholds["all"] for rule in model.rules_])
    recall, alarms = model.mixture_ @ (1 - cuts**2), model.mixture_ @ (1 - cuts) ** 2
    return alarms - (1 - np.sqrt(1 - recall)) ** 2


def test_a_floor_of_one_threshold_is_met_by_one_rule_where_draws_follow_the_noise_of_the_rows():
    """Of probabilities no mixture is better than one threshold: what it gained by choice is lost elsewhere."""
    lost = []
    for seed in range(10):
        chances, y, _ = drawn(400, seed)
        asked = {"goals": [RECALL], "objective": FALSE_ALARMS}
        model, mixed = chosen(chances, y, **asked), chosen(chances, y, decision="sticky", **asked)
        assert model.check_goals()[0].holds
        assert len(mixed.rules_) == 2
        assert model.gap_ <= 1e-9, "the best single rule"
        assert len(model.rules_) == 1
        assert model.fixed_cost_ == pytest.approx(model.value_ - mixed.value_, abs=1e-9)
        lost.append((excess(model), excess(mixed)))
    one, two = np.mean(lost, axis=0)
    assert two > 0.003
    assert one < two / 5


def parity(bound):
    return f"demographic_parity_difference(train, by=group) <= {bound}"


def test_the_usual_threshold_stays_where_it_meets_the_goals_and_others_are_not_surely_better():
    chances, y, group = drawn(600, seed=3)
    loose = chosen(chances, y, group, goals=[parity(0.8)], by="group")
    (rule,) = loose.rules_
    assert list(rule.thresholds.values()) == pytest.approx([0.5, 0.5], abs=0.01)
    assert loose.gap_ > 0
    tuned = loose.set_params(decision="sticky").rebalance()
    assert tuned.gap_ <= 1e-4 < loose.gap_
    own = loose.check_goals()[0].value
    narrow = loose.set_params(decision="fixed").rebalance(goals=[parity(own + 0.01)])  # a standard error is 0.04
    assert narrow.rules_ != loose.rules_
    assert narrow.value_ <= loose.value_
    tight = loose.rebalance(goals=[parity(0.05)])
    assert tight.check_goals()[0].holds
    wrong = (chances > 0.5) != y
    shifted = chosen(chances**3, y, group, goals=[parity(0.8)], by="group")  # whose usual threshold is far off
    assert shifted.value_ == pytest.approx(wrong.mean(), abs=0.03)


def test_what_is_usual_must_meet_a_goal_by_a_standard_error():
    chances, y, _ = drawn(500)
    model = chosen(chances, y)
    ranked = rank(model._scored, model.groups_)
    usual = Decider(ranked.as_evidence(at_usual(ranked.cuts, ranked.evidence.usual)), np.ones(1))
    recall, n_positive = usual.shares("train")[y == 1].mean(), y.sum()
    least = recall - np.sqrt(recall * (1 - recall) / n_positive)
    for bound, is_met in ((least - 1e-4, True), (least + 1e-4, False)):
        assert usual.meets(as_aim(1.0, None, [f"recall(train) >= {bound}"])) == is_met


def test_the_noise_of_a_gain_is_that_of_objective_and_goals_at_their_prices():
    """The standard error is what the same difference varies by over rows that are drawn anew."""
    chances, y, _ = drawn(500, seed=3)
    model = chosen(chances, y, goals=[RECALL], objective=FALSE_ALARMS, decision="sticky")
    ranked, aim = rank(model._scored, model.groups_), model._aim()
    best = choose_rules(ranked, aim)
    mixed = best.mixture @ np.array([chances > rule.thresholds["all"] for rule in ranked.as_rules(best.rules)])
    rng, (price,) = np.random.default_rng(0), best.multipliers
    for cut in (0.1, 0.2, 0.3, 0.4):
        more = (chances > cut) - mixed
        gain = more[y == 0].mean()

        def lagrangian(rows, more=more):
            return more[rows][y[rows] == 0].mean() - price * more[rows][y[rows] == 1].mean()

        noise = np.std([lagrangian(rng.integers(500, size=500)) for _ in range(500)])
        alone = chosen(chances, y)
        alone.rules_ = [alone.rules_[0]._replace(thresholds={"all": cut})]
        simple = Decider(ranked.as_evidence(ranked.as_cuts(alone.rules_)), np.ones(1))
        told = is_surely_better(Decider(ranked.as_evidence(best.rules), best.mixture), simple, aim, best.row_prices)
        unused = price * more[y == 1].mean()
        spread = np.std([more[rows][y[rows] == 0].mean() for rows in rng.integers(500, size=(500, 500))])
        if min(abs(gain / noise - 2), abs(unused / spread - 2)) > 0.3:  # what 500 draws can tell
            assert told == (gain > 2 * noise or unused > 2 * spread)
