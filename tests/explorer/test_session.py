"""A session answers a setting as the library does."""

import json
import re
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from counterpoise import GoalClassifier, MixtureClassifier, audit
from counterpoise.explorer import Setting, session_of_model
from counterpoise.metrics import cvar_loss, rate_table
from tests.explorer.inside import VIEWS, Conversation, Exporter, page_of, show_view
from tests.explorer.sessions import CHOSEN, GOALS, SEX, TEST, X, Y, fitted, session
from tests.tiers import slow

KINDS = ("score", "trained", "pool", "defer")
_DRAGGED, _RELEASED = 3e-3, 1e-4


def asked(kind, alpha=0.5, bound=0.6, budget=None, **changes):
    goals = [{"text": GOALS[1], "bound": bound}, {"text": GOALS[2], "on": kind != "pool"}]
    by = [] if kind == "pool" else ["sex"]
    defer = 0.2 if kind == "defer" else None
    if kind == "defer":
        goals[1] = {"text": "defer_rate <= 0.25"}
    return Setting.of({"alpha": alpha, "budget": budget, "goals": goals, "by": by, "defer": defer, **changes})


def rebalanced(kind, setting):
    by = {} if kind == "pool" else {"by": setting.by}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        budget = 1.0 if setting.budget is None else setting.budget
        return fitted(kind).rebalance(alpha=setting.alpha, goals=setting.active, budget=budget, **by)


@pytest.mark.parametrize("kind", [kind if kind == "score" else slow(kind) for kind in KINDS])
def test_a_path_of_settings_has_the_values_of_the_library(kind):
    """Whatever was asked before, value and lower bound enclose the optimum that ``rebalance`` finds."""
    own = session(kind)
    for alpha, bound, budget in [
        (0.5, 0.6, None),
        (0.3, 0.6, None),
        (0.8, 0.7, None),
        (0.5, 0.65, 0.02),
        (0.5, 0.82, 0.0),
        (1.0, 0.6, None),
    ]:
        setting = asked(kind, alpha, min(bound, 0.7) if kind == "pool" else bound, budget)
        library = rebalanced(kind, setting)
        for exact, tol in ((False, _DRAGGED), (True, _RELEASED)):
            told = own.answer(setting, exact=exact)
            assert told["kind"] == "answer"
            assert told["value"] - told["lower"] <= tol + 1e-6
            assert told["lower"] - 1e-5 <= library.value_ <= told["value"] + _RELEASED + 1e-5
            assert all(goal["choice"]["holds"] for goal in told["goals"] if goal["on"])


class ToldToAudit(NamedTuple):
    """What an exported model says of rows: decisions, or where they are drawn chances."""

    kind: str
    answers: Any
    by_group: Any  # as ``rate_table`` takes it


def told_to_audit(model, found, rows, decided, given, *, defers):
    if not found.state.held_out["train"].answers(found.solution).are_drawn:
        return ToldToAudit("labels", decided, decided)
    chances = model.decision_proba(rows, **given)
    return ToldToAudit("probabilities", chances, chances[:, 1:] if defers else chances[:, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_shown_of_held_out_rows_is_what_the_exported_model_does(kind):
    """Decisions, rates and verdicts are those of a model with the mixture that was solved."""
    own, setting = session(kind), asked(kind)
    told = own.answer(setting, exact=True)
    found = own.recent(setting)
    model = Exporter(own).model(setting)
    assert model.value_ == found.solution.value
    given = {} if kind == "pool" else {"sensitive_features": {"sex": SEX[TEST]}}
    decided = model.predict(X[TEST], **given)
    codes = {"0": 0, "1": 1, "defer": 2}
    np.testing.assert_array_equal(
        [codes[str(one)] for one in decided], found.state.held_out["train"].decide(found.solution)
    )
    shares = model.decision_proba(X[TEST], **given)
    losses = shares[np.arange(len(shares)), 1 - Y[TEST]] + 0.2 * (1.0 - shares[:, :2].sum(axis=1))
    assert told["losses"]["held_out"]["mean"] == pytest.approx(losses.mean(), abs=1e-5)
    assert told["losses"]["held_out"]["tail"] == pytest.approx(cvar_loss(losses, 0.5), abs=1e-5)
    label = {"defer_label": "defer"} if kind == "defer" else {}
    said = told_to_audit(model, found, X[TEST], decided, given, defers=kind == "defer")
    table = rate_table(said.by_group, Y[TEST], {"sex": SEX[TEST]}, kind=said.kind, **label)
    for row, mine in zip(table, told["rates"]["groups"], strict=True):
        assert mine["group"] == row.group
        assert {name: value[0] for name, value in mine["rates"].items()} == pytest.approx(
            {name: row.rates[name] for name in mine["rates"]}, abs=1e-5
        )
    # those that are off are audited on their own: the model's goals do not pay for them
    parts = [[one.goal for one in setting.goals if one.on is on] for on in (True, False)]
    given = {"sensitive_features": {"sex": SEX[TEST]}, **label}
    library = [one for goals in parts if goals for one in audit(goals, said.answers, Y[TEST], kind=said.kind, **given)]
    exact = show_view(own, setting, "verdicts")["verdicts"]
    for verdict, one, quick in zip(exact, library, told["goals"], strict=True):
        assert (verdict["verdict"], verdict["words"]) == (one.verdict, one.words)
        assert verdict["low"] == pytest.approx(one.low, abs=1e-5)
        assert quick["held_out"]["low"] <= verdict["low"] + 1e-6
        assert quick["held_out"]["estimate"] == pytest.approx(one.estimate, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_goals_that_conflict_are_named_with_bounds_that_can_be_met(kind):
    own = session(kind)
    setting = asked(kind, bound=0.99, goals=[{"text": GOALS[1], "bound": 0.99}, {"text": "positive_rate <= 0.3"}])
    assert own.answer(setting)["kind"] == "unmet"
    told = own.conflict(setting)
    assert told["kind"] == "infeasible"
    assert "cannot hold" in told["message"]
    assert told["ways"]
    for way in told["ways"]:
        bounds = {one["goal"]: one["bound"] for one in way}
        goals = [{"text": str(one.goal), "bound": bounds.get(str(one.goal))} for one in setting.goals]
        assert own.answer(asked(kind, goals=goals))["kind"] == "answer"


def test_a_frontier_is_of_any_two_quantities():
    own, setting = session(), asked("score")
    found = show_view(own, setting, "frontier", x=0, y=1)
    assert found["x"] == "recall"
    assert found["y"] == "false_positive_rate"
    assert found["points"][0][1] > found["points"][-1][1]  # less recall, fewer false alarms
    with pytest.raises(ValueError, match="A quantity is the place of a goal, 'error' or 'tail'; got 7"):
        show_view(own, setting, "frontier", x=7)
    with pytest.raises(ValueError, match="A frontier needs two different quantities"):
        show_view(own, setting, "frontier", x=1, y=1)


def test_models_that_cannot_be_explored_are_refused():
    with pytest.raises(TypeError, match="The explorer needs a fitted classifier that mixes models"):
        session_of_model(GoalClassifier())
    with pytest.raises(ValueError, match="You passed X without y"):
        session_of_model(fitted("score"), X[TEST])
    with pytest.raises(ValueError, match="You passed columns, weights or datasets of held-out rows without X"):
        session_of_model(fitted("score"), largest_weight=3.0)
    with pytest.raises(ValueError, match="This model mixes predictions"):
        session("pool").answer(asked("pool", by=["sex"]))


@pytest.mark.parametrize("kind", ["score", "pool"])
def test_goals_that_compare_ratios_are_refused_where_models_or_rules_are_mixed(kind):
    own = session(kind)
    for message in (
        {"type": "read", "text": "max_difference(precision, by=sex) <= 0.2"},
        {"type": "set", "setting": {"alpha": 0.5, "goals": [{"text": "max_difference(precision, by=sex) <= 0.2"}]}},
    ):
        told = json.loads(Conversation(own).reply(json.dumps({"seq": 1, **message})))
        assert told["type"] == "refused"
        assert "is for one rule of scores: fit a GoalClassifier with decision='fixed'" in told["message"]


def test_held_out_rows_that_lack_what_the_model_needs_are_refused_at_the_call():
    sex = {"sex": SEX[TEST]}
    with pytest.raises(ValueError, match=r"y of dataset 'train' holds the labels '\w+', '\w+', which are not among"):
        session_of_model(fitted("score"), X[TEST], np.where(Y[TEST], "yes", "no"), sensitive_features=sex)
    with pytest.raises(ValueError, match=r"Unknown column 'sex' in dataset 'train' .pass sensitive_features"):
        session_of_model(fitted("score"), X[TEST], Y[TEST])
    with pytest.raises(ValueError, match="The held-out rows of 'train' need the column 'sex', which the rules use"):
        session_of_model(fitted("defer"), X[TEST], Y[TEST])
    goal = MixtureClassifier(fitted("pool").estimators_, goals=["churn <= 0.5"], random_state=0)
    goal = goal.fit(X[CHOSEN], Y[CHOSEN], baseline=Y[CHOSEN])
    with pytest.raises(ValueError, match="Dataset 'train' needs the deployed model's predictions: pass baseline"):
        session_of_model(goal, X[TEST], Y[TEST])


def test_without_goals_plain_training_is_kept_and_how_far_it_is_from_the_best_is_said():
    own = session("trained")
    told = own.answer(Setting.of({"alpha": 1.0}), exact=True)
    (member,) = told["members"]
    assert member["thresholds"] == [pytest.approx(0.5, abs=0.01)]
    (more,) = re.findall(r"^There are no goals, .* which is within ([\d.]+) of the best", told["note"])
    assert float(more) == pytest.approx(told["value"] - told["lower"], abs=1e-3)
    with_goal = own.answer(Setting.of({"alpha": 1.0, "goals": [{"text": "recall >= 0.1"}]}), exact=True)
    assert with_goal["note"] == ""
    assert with_goal["value"] >= told["lower"] - _RELEASED


def session_of_one_rule():
    """Return a session of a model that decides by one rule."""
    model = GoalClassifier(
        fitted("score").estimators_[0], goals=GOALS[1:2], by="sex", cv="prefit", random_state=0, confidence=None
    )
    model = model.fit(X[CHOSEN], Y[CHOSEN], sensitive_features={"sex": SEX[CHOSEN]})
    return session_of_model(model, X[TEST], Y[TEST], sensitive_features={"sex": SEX[TEST]})


def test_a_model_of_one_rule_is_shown_and_exported_as_one_rule():
    setting = Setting.of({"alpha": 1.0, "by": ["sex"], "goals": [{"text": GOALS[1], "bound": 0.8}]})
    own = session_of_one_rule()
    for asked_for in (own.start, setting):
        told = own.answer(asked_for, exact=True)
        assert len(told["members"]) == 1
        exported, found = Exporter(own).model(asked_for), own.recent(asked_for)
        decided = exported.predict(X[TEST], sensitive_features={"sex": SEX[TEST]})
        np.testing.assert_array_equal(decided, found.state.held_out["train"].decide(found.solution))
    assert exported.fixed_cost_ >= 0


def test_while_a_bound_moves_the_page_shows_one_rule_of_a_coarse_search_and_then_the_best_one():
    own = session_of_one_rule()
    for bound in (0.75, 0.8, 0.85):
        setting = Setting.of({"alpha": 1.0, "by": ["sex"], "goals": [{"text": GOALS[1], "bound": bound}]})
        first, exact = own.answer(setting), own.answer(setting, exact=True)
        assert len(first["members"]) == 1
        assert first["lower"] is None
        assert first["goals"][0]["choice"]["holds"]
        assert exact["lower"] - 1e-9 <= exact["value"] <= first["value"] + 1e-9


def test_of_a_model_of_one_rule_no_tail_can_be_asked_for_and_all_else_is_shown():
    own = session_of_one_rule()
    with pytest.raises(ValueError, match=r"alpha must be 1 here; got 0.5. One rule.* decision='sticky'"):
        own.answer(replace(own.start, alpha=0.5))
    found = {view: show_view(own, own.start, view) for view in VIEWS}
    assert found["curve"]["best"] == []
    assert len(found["frontier"]["points"]) > 5
    asked_for = json.dumps({"type": "set", "seq": 1, "setting": {"alpha": 0.5}})
    told = json.loads(Conversation(own).reply(asked_for))
    assert (told["type"], told["field"]) == ("refused", "alpha")
    assert "decision='sticky'" in told["message"]
    kept = page_of(own)
    assert '"alpha":1.0' in kept
    assert '"alpha":0.' not in kept


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["score", "trained"])
def test_views_of_goals_that_cannot_be_met_are_answered(kind):
    own = session(kind)
    setting = asked(kind, goals=[{"text": GOALS[1], "bound": 0.99}, {"text": "positive_rate <= 0.3"}])
    found = {view: show_view(own, setting, view) for view in VIEWS}
    for view in ("curve", "verdicts"):
        assert found[view] == {"unmet": True, "why": "no mixture meets the goals"}
    assert found["frontier"]["points"] == []
    moved = show_view(own, setting, "frontier", x=0, y="error")  # of the goal that conflicts, beside the other one
    assert moved["points"]
    assert moved["here"] is None
    recall, positive = found["ranges"]["ranges"]  # each beside the other as it stands
    assert recall["tightest"] < 0.99
    assert positive["tightest"] > 0.3
