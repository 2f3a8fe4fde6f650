"""Nothing is told that so few rows are behind that it would tell about single ones."""

import json

import numpy as np
import pytest

from counterpoise import MixtureClassifier
from counterpoise.explorer import Setting, session_of_model
from counterpoise.explorer.conversation import Conversation
from counterpoise.explorer.disclosure import DisclosureGuard, GroupRates, shown_groups, spread
from counterpoise.explorer.pages import page_of
from counterpoise.explorer.views import show_view
from counterpoise.goals import Table, parse_goal
from counterpoise.goals.classes import Classes
from counterpoise.metrics import rate_table
from tests.explorer.sessions import CHOSEN, TEST, X, Y, fitted, session

N_ROWS = 400
RNG = np.random.default_rng(0)
AGE = np.round(np.sort(RNG.uniform(20, 70, N_ROWS)), 2)
LABELS = RNG.integers(0, 2, N_ROWS)


def table(n_tiny=5, n_rows=N_ROWS):
    group = np.where(np.arange(n_rows) % 2, "a", "b").astype(object)
    group[:n_tiny] = "tiny"
    columns = {"age": AGE[:n_rows], "group": group, "half": np.where(np.arange(n_rows) % 3, "x", "y")}
    return Table(None, LABELS[:n_rows], columns)


def few(own=(), held_out=None):
    return DisclosureGuard({"train": table()}, {} if held_out is None else {"train": held_out}, Classes(0, 1), own)


@pytest.mark.parametrize(
    "text",
    [
        "recall >= 0.5",
        "positive_rate(half=x) >= 0.8 * positive_rate(half=y)",
        "max_difference(recall, by=half) <= 0.2",
        "precision(30<=age<50) >= 0.5",
        f"positive_rate(age<={AGE[9]}) >= 0.5",
        f"positive_rate(age>{AGE[9]}) >= 0.5",
        "recall(group=a, half=x) >= 0.5",
    ],
)
def test_goals_on_enough_rows_are_asked(text):
    few(held_out=table(0)).check(parse_goal(text))


@pytest.mark.parametrize(
    "text",
    [
        f"positive_rate(age={AGE[0]}) >= 0.1",
        "positive_rate(age=1000) >= 0.1",
        f"positive_rate(age<={AGE[8]}) >= 0.1",
        f"positive_rate(age>{AGE[8]}) >= 0.1",
        f"positive_rate(age>{AGE[0]}) >= 0.1",
        "positive_rate(age<=1) >= 0.1",
        f"recall(age<={AGE[11]}) >= 0.1",
        f"abs(recall - recall({AGE[50]}<=age<={AGE[52]})) <= 0.1",
        f"precision(age<={AGE[3]}) >= 0.1",
        f"positive_rate(half=x, age<={AGE[-9]}) >= 0.1",
        f"positive_rate(half=x, {AGE[9]}<=age) >= 0.1",
        "error_rate(group=tiny) <= 0.9",
        "max_difference(positive_rate, by=group) <= 0.9",
        "every_group(positive_rate, by=group) <= 0.9",
        f"every_group(positive_rate, age<={AGE[12]}, by=half) <= 0.9",
    ],
)
def test_goals_on_few_rows_or_all_but_few_are_refused_and_the_same_for_none(text):
    with pytest.raises(ValueError, match=r"ewer than 10 rows of (dataset 'train'|its datasets)") as caught:
        few().check(parse_goal(text))
    told = str(caught.value).replace(text.replace("0.1", "").replace("0.9", ""), "")
    assert not any(str(value) in told for value in AGE if str(value) not in text)
    assert "tiny" not in told or "tiny" in text


@pytest.mark.parametrize("metric", ["recall", "true_positives", "false_positive_rate", "false_positives"])
def test_few_rows_of_a_class_are_told_neither_alone_nor_by_what_is_left(metric):
    labels = np.zeros(N_ROWS, dtype=int)
    labels[:9] = 1
    own = DisclosureGuard({"train": Table(None, labels)}, {}, Classes(0, 1), ())
    own.check(parse_goal("error_rate <= 0.5"))
    with pytest.raises(ValueError, match="is about fewer than 10 rows of its datasets, or leaves out fewer"):
        own.check(parse_goal(f"{metric} <= 0.5"))


def test_values_are_listed_where_each_has_enough_rows():
    with pytest.raises(ValueError, match=r"have group=c\. Values of more rows: '[ab]', '[ab]'\.$"):
        few().check(parse_goal("recall(group=c) >= 0.5"))
    with pytest.raises(ValueError, match=rf"The column has {np.unique(AGE).size} values: too many to list\.$"):
        few().check(parse_goal("recall(age=33.333) >= 0.5"))
    with pytest.raises(ValueError, match=rf"'age' has {np.unique(AGE).size} values: too many to be groups\."):
        few().check(parse_goal("max_difference(recall, by=age) <= 0.5"))


def test_held_out_rows_count_too_and_those_that_cannot_answer_do_not():
    goal = parse_goal("positive_rate(group=a) >= 0.5")
    few(held_out=Table(None, LABELS)).check(goal)
    with pytest.raises(ValueError, match="rows of the held-out rows of"):
        few(held_out=table(0, 15)).check(goal)
    with pytest.raises(ValueError, match="Unknown column 'hair'"):
        few().check(parse_goal("recall(hair=red) >= 0.5"))
    with pytest.raises(ValueError, match="Unknown class 'cat'"):
        few().check(parse_goal("recall(of=cat) >= 0.5"))


def test_goals_of_the_model_stay_whatever_their_bound_without_their_numbers():
    goal = parse_goal("error_rate(group=tiny) <= 0.9")
    own = few(own=[goal])
    own.check(goal.with_bound(0.3))
    assert own.why(goal)


@pytest.fixture(scope="module")
def tiny():
    """Return a session whose model has a goal on nine rows."""
    group = np.where(np.arange(len(Y)) % 2, "a", "b").astype(object)
    group[CHOSEN.start : CHOSEN.start + 9] = group[TEST.start : TEST.start + 9] = "tiny"
    goals = ["recall >= 0.6", "error_rate(group=tiny) <= 0.9"]
    pool = MixtureClassifier(fitted("pool").estimators_, alpha=0.6, goals=goals, random_state=0)
    pool = pool.fit(X[CHOSEN], Y[CHOSEN], sensitive_features={"group": group[CHOSEN]})
    return session_of_model(pool, X[TEST], Y[TEST], sensitive_features={"group": group[TEST]})


def test_what_a_page_is_told_of_a_small_goal_has_no_number(tiny):
    told = tiny.answer(tiny.start, exact=True)
    recall, small = told["goals"]
    assert recall["choice"]["holds"]
    assert recall["held_out"]["rows"] > 50
    assert small["choice"] == {"note": "fewer than 10 rows"}
    assert small["held_out"] == {"verdict": "not asked", "note": "fewer than 10 rows"}
    assert small["price"] is None
    assert show_view(tiny, tiny.start, "verdicts")["verdicts"][1] == small["held_out"]
    assert [one["place"] for one in show_view(tiny, tiny.start, "ranges")["ranges"]] == [0]
    with pytest.raises(
        ValueError, match="is computed on fewer than 10 rows, so the explorer does not show its frontier"
    ):
        show_view(tiny, tiny.start, "frontier", x=1)
    assert [one["group"] for one in told["rates"]["groups"]] in (["all", "group=a"], ["all", "group=b"])


def test_a_file_has_no_number_of_a_small_goal(tiny):
    kept = json.loads(page_of(tiny).split('id="explorer-data">')[1].split("</script>")[0])
    assert {json.dumps(one["goals"][1]["held_out"]) for one in kept["answers"] if one["kind"] == "answer"} == {
        '{"verdict": "not asked", "note": "fewer than 10 rows"}'
    }


def test_ratios_out_of_few_rows_have_no_number():
    explored = session("defer")
    goals = ["positive_rate <= 0.015", "precision >= 0.01", "decided_error_rate <= 1"]
    asked = Setting.of({"alpha": 1.0, "goals": [{"text": text} for text in goals], "by": ["sex"], "defer": 0.3})
    told = explored.answer(asked, exact=True)
    assert told["goals"][1]["choice"] == {"note": "fewer than 10 rows", "holds": True}
    assert told["goals"][1]["held_out"] == {"verdict": "not asked", "note": "fewer than 10 rows"}
    assert told["goals"][2]["held_out"]["rows"] > 50
    with pytest.raises(ValueError, match="the explorer does not show its frontier"):
        show_view(explored, asked, "frontier", x=1)


def test_a_tail_has_ten_rows():
    explored = session()
    assert explored.least_alpha == pytest.approx(10 / 400)
    with pytest.raises(ValueError, match=r"alpha must be at least .* A tail of fewer than 10 rows would reveal"):
        explored.check(Setting(alpha=0.02))
    assert min(show_view(explored, explored.start, "curve")["alphas"]) >= 0.025


def test_a_goal_on_deferred_rows_says_what_to_do_on_the_page():
    talk = Conversation(session())
    asked = {"type": "read", "text": "defer_rate <= 0.1", "setting": {"alpha": 0.5}}
    told = json.loads(talk.reply(json.dumps(asked)))
    assert told["message"].endswith("no row is deferred. Allow deferral under Details, then add it.")
    asked["setting"] |= {"defer": 0.2}
    assert json.loads(talk.reply(json.dumps(asked)))["goal"]["text"] == asked["text"]


def test_rules_look_only_at_what_is_offered():
    talk = Conversation(session())
    setting = {"alpha": 0.5, "by": ["age"]}
    for message in ({"type": "set"}, {"type": "export", "what": "goals"}, {"type": "view", "view": "curve"}):
        told = json.loads(talk.reply(json.dumps({**message, "setting": setting})))
        assert told["message"] == "The rules cannot use 'age' here. Columns that they can use: 'sex'."
        assert told["field"] == "by"


def test_no_small_rest_is_left_of_what_all_rows_have():
    assert shown_groups([100, 9, 50, 11]) == [True, False, True, False]
    assert shown_groups([100, 9]) == [False, False]
    assert shown_groups([100, 0, 50]) == [True, False, True]
    groups = {"group": table(5).column("group")}
    said = RNG.integers(0, 2, N_ROWS).astype(np.uint8)
    rates = GroupRates(Table(None, LABELS, groups), Classes(0, 1)).of_decisions(said)
    whole = {row.group: row for row in rate_table(said, LABELS, groups)}
    assert [one["group"] for one in rates] == ["all", "group=a"]
    for one in rates:
        assert one["rates"]["recall"][0] == pytest.approx(whole[one["group"]].rates["recall"], abs=1e-5)


def test_rates_of_few_rows_are_hidden_in_groups_that_are_large():
    labels = np.zeros(100, dtype=int)
    labels[[0, 2, 4]] = 1  # three positives, all of group a
    labels[1::4] = 1
    rows = Table(None, labels, {"group": np.where(np.arange(100) % 2, "b", "a")})
    all_rows, *groups = GroupRates(rows, Classes(0, 1)).of_decisions(labels.astype(np.uint8))
    assert all_rows["rates"]["recall"][0] == 1.0
    assert [one["rates"]["recall"] for one in groups] == [None, None]  # that of b and that of all would tell that of a
    assert all(one["rates"]["positive_rate"] for one in groups)
    assert [one["rates"]["false_positive_rate"] for one in groups] == [None, None]  # with others it would tell recalls


def test_cells_of_histograms_stand_for_enough_rows_and_keep_their_sum():
    counts = RNG.poisson(4, 25)
    found = spread(counts)
    assert sum(found) == pytest.approx(counts.sum())
    values, sizes = np.unique(found, return_counts=True)
    assert all(value * size >= 10 or value == 0 for value, size in zip(values, sizes, strict=True))
