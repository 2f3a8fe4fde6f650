"""Every number that a page is told follows from the members of the mixture that it is told, and from weighted rows."""

import numpy as np
import pytest
from scipy import stats

from counterpoise import GoalClassifier, MixtureClassifier
from counterpoise.explorer import Setting, session_of_model
from tests.explorer.inside import show_view
from tests.explorer.sessions import CHOSEN, GOALS, SEX, TEST, X, Y, fitted

ALPHA = 0.5
RNG = np.random.default_rng(3)
WEIGHTS = {"choice": RNG.integers(1, 5, 400).astype(float), "held_out": RNG.integers(1, 5, 400).astype(float)}
ROWS = {"choice": CHOSEN, "held_out": TEST}
DEPLOYED = np.where(RNG.random(len(Y)) < 0.2, 1 - Y, Y)
CHURN = "churn <= 0.6"


@pytest.fixture(scope="module", params=["score", "pool"])
def told(request):
    """Return what a page is told of a setting: of rules by sex, or of models, chosen and judged on weighted rows."""
    kind, models = request.param, fitted("pool").estimators_
    settings = {"alpha": 0.6, "goals": [GOALS[1], CHURN], "random_state": 0}
    model = MixtureClassifier(models, **settings)
    if kind == "score":
        model = GoalClassifier(models[0], by="sex", cv="prefit", decision="sticky", **settings, confidence=None)
    parts = {
        rows: {
            "sensitive_features": {"sex": SEX[place]},
            "baseline": DEPLOYED[place],
            "sample_weight": WEIGHTS[rows],
        }
        for rows, place in ROWS.items()
    }
    model.fit(X[CHOSEN], Y[CHOSEN], **parts["choice"])
    own = session_of_model(model, X[TEST], Y[TEST], **parts["held_out"], largest_weight=4)
    goals = [{"text": GOALS[1], "bound": 0.65}, {"text": CHURN, "on": False}]
    setting = Setting.of({"alpha": ALPHA, "goals": goals, "by": ["sex"] if kind == "score" else []})
    return Told(own, setting, models, kind)


class Told:
    """An answer, and what its members say of rows, computed from what the page is told of them."""

    def __init__(self, own, setting, models, kind):
        self.own, self.setting, self.models, self.kind = own, setting, models, kind
        self.answer = own.answer(setting, exact=True)

    def chances(self, rows):
        """Return how likely each row is called positive."""
        place, found = ROWS[rows], np.zeros(400)
        for member in self.answer["members"]:
            found += member["share"] * self._says(member, X[place], SEX[place])
        return found

    def _says(self, member, rows, sex):
        if self.kind == "pool":
            return self.models[int(member["model"].rsplit(" ", 1)[1])].predict(rows)
        levels = {"nobody": np.inf, "everybody": -np.inf}
        thresholds = [levels.get(one, one) for one in member["thresholds"]]
        groups = [name.removeprefix("sex=") for name in self.answer["groups"]]
        own = np.array(thresholds)[[groups.index(one) for one in sex]]
        return self.models[0].predict_proba(rows)[:, 1] > own

    def plain(self, rows):
        """Return what plain training says: the first model."""
        return self.models[0].predict(X[ROWS[rows]])


def tail(losses, weights, alpha):
    """Return the mean loss of the worst-off part of the mass, row by row."""
    order, left, total = np.argsort(-losses), alpha * weights.sum(), 0.0
    for row in order:
        taken = min(left, weights[row])
        total, left = total + taken * losses[row], left - taken
    return total / (alpha * weights.sum())


@pytest.mark.parametrize("rows", ROWS)
def test_losses_are_those_of_the_weighted_rows(told, rows):
    labels, weights = Y[ROWS[rows]], WEIGHTS[rows]
    losses, plain = np.abs(told.chances(rows) - labels), (told.plain(rows) != labels).astype(float)
    assert told.answer["losses"][rows] == pytest.approx(
        {
            "mean": np.average(losses, weights=weights),
            "tail": tail(losses, weights, ALPHA),
            "plain_mean": np.average(plain, weights=weights),
            "plain_tail": tail(plain, weights, ALPHA),
        },
        abs=2e-5,
    )
    if rows == "choice":
        assert told.answer["value"] == pytest.approx(tail(losses, weights, ALPHA), abs=2e-5)
        assert told.answer["lower"] <= told.answer["value"]


def test_goals_stand_as_their_rates_do_on_both_kinds_of_rows(told):
    recall, churn = told.answer["goals"]
    for rows, name in (("choice", "value"), ("held_out", "estimate")):
        place, weights, chances = ROWS[rows], WEIGHTS[rows], told.chances(rows)
        positive, deployed = Y[place] == 1, DEPLOYED[place]
        found = np.average(chances[positive], weights=weights[positive])
        changed = np.average(np.where(deployed == 1, 1 - chances, chances), weights=weights)
        assert recall[rows][name] == pytest.approx(found, abs=2e-5)
        assert churn[rows][name] == pytest.approx(changed, abs=2e-5)
        if rows == "choice":
            assert recall[rows]["holds"]
            assert (recall[rows]["bound"], churn[rows]["bound"]) == (0.65, 0.6)
            assert churn[rows]["holds"] == (changed <= 0.6)
        else:
            assert recall[rows]["rows"] == positive.sum()
            assert recall[rows]["low"] < found < recall[rows]["high"]
    assert churn["price"] is None  # which is off
    assert recall["price"] >= 0


def test_rates_of_groups_are_weighted_and_of_their_own_rows(told):
    groups = told.answer["rates"]["groups"]
    assert told.answer["rates"]["rows"] == "held_out"
    assert [one["group"] for one in groups] == ["all", "sex=F", "sex=M"]
    chances, labels, weights = told.chances("held_out"), Y[TEST], WEIGHTS["held_out"]
    for one in groups:
        inside = np.ones(400, bool) if one["group"] == "all" else SEX[TEST] == one["group"][-1]
        assert one["rows"] == inside.sum()
        rows = {
            "positive_rate": (chances, inside),
            "error_rate": (np.abs(chances - labels), inside),
            "recall": (chances, inside & (labels == 1)),
            "false_positive_rate": (chances, inside & (labels == 0)),
            "churn": (np.abs(chances - DEPLOYED[TEST]), inside),
        }
        for name, (values, chosen) in rows.items():
            assert one["rates"][name] == [
                pytest.approx(np.average(values[chosen], weights=weights[chosen]), abs=2e-5),
                None,  # weighted rates have no interval
                None,
            ]
        called = weights * chances * inside
        assert one["rates"]["precision"][0] == pytest.approx(called @ labels / called.sum(), abs=2e-5)


def test_curves_are_of_the_held_out_rows(told):
    found, labels, weights = show_view(told.own, told.setting, "curve"), Y[TEST], WEIGHTS["held_out"]
    lines = {"mixture": np.abs(told.chances("held_out") - labels), "plain": (told.plain("held_out") != labels) * 1.0}
    assert found["rows"] == "held_out"
    assert found["alphas"][-1] == 1.0
    for name, losses in lines.items():
        expected = [tail(losses, weights, alpha) for alpha in found["alphas"]]
        np.testing.assert_allclose(found[name], expected, atol=2e-5)
    on_rows = dict(zip(found["alphas"], found["mixture"], strict=True))
    assert on_rows[1.0] == pytest.approx(told.answer["losses"]["held_out"]["mean"], abs=2e-5)


def test_a_frontier_passes_where_the_setting_is(told):
    found = show_view(told.own, told.setting, "frontier", x=0, y="tail")
    recall, losses = told.answer["goals"][0]["choice"]["value"], told.answer["losses"]["choice"]
    assert found["here"] == [pytest.approx(recall, abs=2e-5), pytest.approx(losses["tail"], abs=2e-5)]
    bounds, values = np.array(found["points"]).T
    assert len(bounds) == 10
    assert np.all(np.diff(bounds) < 0)  # from the tightest on
    assert np.interp(0.65, bounds[::-1], values[::-1]) == pytest.approx(losses["tail"], abs=6e-3)
    error = show_view(told.own, told.setting, "frontier", x=0, y="error")
    mean = {rows: told.answer["losses"][rows]["mean"] for rows in ROWS}
    assert error["here"][1] == pytest.approx(mean["choice"], abs=2e-5)
    assert min(value for _, value in error["points"]) <= mean["choice"] + 1e-9


@pytest.mark.parametrize("by", [["sex"], []], ids=str)
def test_histograms_count_the_scores_of_the_rows_of_choice(told, by):
    """By group, whether rules look at it or not."""
    if told.kind == "pool":
        assert told.answer["panels"]["groups"] == []
        return
    panels = told.own.answer(Setting.of(told.setting.as_words() | {"by": by}))["panels"]["groups"]
    scores, labels, sex = told.models[0].predict_proba(X[CHOSEN])[:, 1], Y[CHOSEN], SEX[CHOSEN]
    assert [panel["group"] for panel in panels] == ["sex=F", "sex=M"]
    for panel in panels:
        assert (panel["low"], panel["high"]) == (0.0, 1.0)
        for kind, label in (("positive", 1), ("negative", 0)):
            chosen = scores[(sex == panel["group"][-1]) & (labels == label)]
            counts, _ = np.histogram(chosen, 25, (0, 1))
            assert sum(panel[kind]) == pytest.approx(len(chosen))
            np.testing.assert_allclose(np.cumsum(panel[kind]), np.cumsum(counts), atol=10)


@pytest.mark.parametrize("decision", ["fixed", "sticky"])
def test_intervals_of_rates_are_those_of_counts_or_of_chances(decision):
    model = GoalClassifier(
        fitted("pool").estimators_[0],
        goals=[GOALS[1]],
        alpha=0.6 if decision == "sticky" else None,
        cv="prefit",
        decision=decision,
        random_state=0,
        confidence=None,
    ).fit(X[CHOSEN], Y[CHOSEN])
    own = session_of_model(model, X[TEST], Y[TEST], sensitive_features={"sex": SEX[TEST]})
    told = Told(own, own.start, fitted("pool").estimators_, "score")
    told.answer["groups"] = ["F", "M"]
    told.answer["members"] = [one | {"thresholds": one["thresholds"] * 2} for one in told.answer["members"]]
    chances = told.chances("held_out")
    for one in told.answer["rates"]["groups"]:
        inside = np.ones(400, bool) if one["group"] == "all" else SEX[TEST] == one["group"][-1]
        for name, chosen in (("recall", inside & (Y[TEST] == 1)), ("positive_rate", inside)):
            value, low, high = one["rates"][name]
            assert value == pytest.approx(chances[chosen].mean(), abs=2e-5)
            if len(told.answer["members"]) == 1:
                n_called = round(chances[chosen].sum())
                exact = stats.binomtest(n_called, int(chosen.sum())).proportion_ci(0.95, method="exact")
                assert (low, high) == pytest.approx((exact.low, exact.high), abs=2e-5)
            else:
                assert 0 <= low < value < high <= 1
