"""Margins on the page: chosen as the library does, kept while a value moves, and carried by exports."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from counterpoise import GoalClassifier, Proof
from counterpoise.explorer import session_of_model
from tests.explorer.inside import Conversation, Exporter, show_view
from tests.explorer.sessions import CHOSEN, SEX, TEST, X, Y, fitted, session

GOALS = ["recall >= 0.6", "false_positive_rate <= 0.4"]
pytestmark = pytest.mark.filterwarnings("ignore::counterpoise.rules.cautions.Caution")


def model_with(confidence=0.9, goals=GOALS):
    model = GoalClassifier(
        fitted("score").estimators_[0], goals=goals, by="sex", cv="prefit", random_state=0, confidence=confidence
    )
    return model.fit(X[CHOSEN], Y[CHOSEN], sensitive_features={"sex": SEX[CHOSEN]})


def session_with(confidence=0.9, goals=GOALS):
    return session_of_model(model_with(confidence, goals), X[TEST], Y[TEST], sensitive_features={"sex": SEX[TEST]})


def moved(own, bound, **changes):
    """Return the start with another bound of the first goal."""
    first, *others = own.start.goals
    return replace(own.start, goals=(first._replace(goal=first.goal.with_bound(bound)), *others), **changes)


def kept_by_a_page(answer):
    return [None if one is None else one.get("margin") for one in answer["margins"]["goals"]]


def decisions(model):
    return model.predict(X[TEST], sensitive_features={"sex": SEX[TEST]})


def test_the_start_has_the_bounds_and_the_margins_of_the_model():
    own = session_with()
    model = own.parts.estimator
    assert own.start.confidence == 0.9
    assert own.start.active == model.goals_
    quick, exact = own.answer(own.start), own.answer(own.start, exact=True)
    assert quick["margins"]["goals"] == exact["margins"]["goals"]
    assert (quick["margins"]["price"], exact["margins"]["limits"]) == ("", "")
    for told, margin in zip(exact["margins"]["goals"], model.margins_, strict=True):
        assert (told["bound"], told["value"]) == pytest.approx((margin.bound, margin.value), rel=1e-5)
        assert (told["low"], told["high"]) == pytest.approx(margin.expected, rel=1e-5)
    assert exact["margins"]["price"] == "Margins cost nothing here."
    np.testing.assert_array_equal(decisions(Exporter(own).model(own.start)), decisions(model))


def test_the_price_is_what_the_loss_would_be_without_margins():
    own = session_with()
    with_margins, without = (own.answer(moved(own, 0.75, confidence=one), exact=True) for one in (0.9, None))
    cost = with_margins["value"] - without["value"]
    assert cost > 0
    (points,) = re.findall(r"^Margins cost ([\d.]+) points of error\.$", with_margins["margins"]["price"])
    assert float(points) == pytest.approx(100 * cost, rel=0.06)  # two digits
    assert without["margins"] is None
    deferring = moved(own, 0.75, defer=0.3)
    assert own.answer(deferring, exact=True)["margins"]["price"].endswith((" points of loss.", "nothing here."))


@pytest.mark.parametrize(("bound", "confidence"), [(0.65, 0.9), (0.7, 0.8), (0.6, 0.6), (0.7, None)])
def test_another_setting_has_the_rule_and_the_margins_of_the_library(bound, confidence):
    own = session_with()
    setting = moved(own, bound, confidence=confidence)
    answer, exported = own.answer(setting, exact=True), Exporter(own).model(setting)
    again = own.parts.estimator.rebalance(goals=setting.active, confidence=confidence)
    assert answer["value"] == pytest.approx(exported.value_, abs=1e-6)
    assert exported.value_ == pytest.approx(again.value_, abs=1e-9)
    assert (exported.confidence, exported.confidence_) == (confidence, again.confidence_)
    np.testing.assert_array_equal(decisions(exported), decisions(again))
    found = own.recent(setting)
    np.testing.assert_array_equal(decisions(exported), found.state.held_out["train"].decide(found.solution))
    values = [] if answer["margins"] is None else [one["value"] for one in answer["margins"]["goals"]]
    assert values == pytest.approx([margin.value for margin in exported.margins_], rel=1e-5)


def test_while_a_bound_moves_the_last_margins_are_kept():
    own = session_with()
    kept = kept_by_a_page(own.answer(own.start, exact=True))
    assert all(one > 0 for one in kept)
    answer = own.answer(moved(own, 0.65), kept=kept)
    assert answer["margins"]["is_kept"]
    assert answer["goals"][0]["choice"]["value"] >= 0.65 + kept[0] - 1e-6
    without = own.answer(moved(own, 0.65))  # a page that has none, as after a link
    assert without["goals"][0]["choice"]["value"] >= 0.65
    assert without["value"] <= answer["value"] + 1e-9
    large = own.answer(moved(own, 0.66), kept=[0.4, 0.4])
    assert (large["kind"], large["margins"]["is_too_much"]) == ("answer", True)


def test_a_goal_that_holds_by_far_keeps_no_more_than_its_margin():
    own = session_with(goals=["recall >= 0.2", GOALS[1]])
    loose, _ = own.answer(own.start, exact=True)["margins"]["goals"]
    assert loose["value"] - loose["bound"] > 0.2
    assert 0 < loose["margin"] < 0.15
    assert loose["cost"] == ""


def test_where_a_confidence_is_not_reached_a_sentence_says_what_limits_it():
    own = session_with()
    tightest = show_view(own, own.start, "ranges")["ranges"][0]["tightest"]
    answer = own.answer(moved(own, round(tightest - 0.02, 3), confidence=0.99), exact=True)
    limits = answer["margins"]["limits"]
    assert limits.startswith(
        "A confidence of 0.99 is not reached. The page shows the rule that comes closest. The goal "
    )
    assert limits.endswith("limits it. Relax a goal, or lower the confidence.") or "selection rows would be" in limits
    off = replace(own.start, goals=tuple(one._replace(on=False) for one in own.start.goals))
    assert own.answer(off, exact=True)["margins"]["limits"] == "No goal is on."
    none = session_with(goals=["recall >= 1"])
    told = none.answer(none.start, exact=True)["margins"]
    assert told["goals"][0]["note"].startswith("No margin: no rule can be inside of its bound")
    assert told["limits"] == "No goal has a margin here."


def test_goals_that_cannot_be_met_are_refused_as_without_margins():
    own = session_with()
    setting = moved(own, 0.99)
    assert own.answer(setting)["kind"] == own.answer(setting, exact=True)["kind"] == "unmet"
    assert [one["kind"] for one in own.answer_in_steps(setting)] == ["unmet"]
    assert own.conflict(setting)["kind"] == "infeasible"
    assert own.conflict(moved(own, 0.65))["margins"]["price"].startswith("Margins cost ")


def test_a_model_that_mixes_has_no_margins_and_the_page_says_why():
    for kind, why in (
        ("score", "this model mixes rules. For margins, fit it with decision="),
        ("pool", "mixes models."),
    ):
        own = session(kind)
        assert own.start.confidence is None
        assert why in json.loads(Conversation(own).hello)["why_no_margins"]
        asked = {"type": "set", "seq": 4, "setting": own.start.as_words() | {"confidence": 0.9}}
        refused = json.loads(Conversation(own).reply(json.dumps(asked)))
        assert (refused["type"], refused["field"], refused["seq"]) == ("refused", "confidence", 4)
        assert refused["message"].startswith("confidence must be null here; got 0.9. Margins are for one rule")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confidence": 1.5}, "confidence must lie in (0, 1)"),
        ({"confidence": "high"}, "confidence must be"),
        ({"margins": 0.1}, "margins must be a list of 2 numbers or nulls, one for each goal."),
        ({"margins": [0.1]}, "margins must be a list of 2 numbers or nulls, one for each goal."),
        ({"margins": [0.1, "wide"]}, "A margin must be"),
        ({"margins": [-0.1, None]}, "A margin must be"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_in_a_sentence(change, message):
    own = session_with()
    words = {"type": "set", "seq": 1, "setting": own.start.as_words()}
    words |= change if "margins" in change else {"setting": words["setting"] | change}
    refused = json.loads(Conversation(own).reply(json.dumps(words)))
    assert refused["type"] == "refused"
    assert message in refused["message"]


def test_a_page_says_that_what_is_moved_is_not_proven():
    own = session_with(Proof(0.8), goals=["recall >= 0.4", "false_positive_rate <= 0.6"])
    assert own.start.confidence == 0.8
    notes = json.loads(Conversation(own).hello)["notes"]
    assert notes[-1].startswith("This model was fitted with a proof. Whatever you move gets margins")
    proof = own.parts.estimator.proof_
    price = own.answer(own.start, exact=True)["margins"]["price"]
    assert price.startswith("The rule of this model is proven by exact tests.") == proof.is_proven
    exported = Exporter(own).model(moved(own, 0.5))
    assert (exported.confidence, exported.proof_) == (0.8, None)
