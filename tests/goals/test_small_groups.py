"""Phrases that leave out small groups and classes: their language, values, audits, and words that are reserved."""

from itertools import combinations

import numpy as np
import pytest

from counterpoise import audit
from counterpoise.goals import (
    NoRows,
    Table,
    equalized_odds_difference,
    every_class,
    every_group,
    macro,
    max_difference,
    min_ratio,
    parse_goal,
    parse_rate,
    recall,
    validate_goals,
)

WRITTEN = {
    "max_difference(recall, by=sex, min_rows=50) <= 0.05": max_difference(recall, by="sex", min_rows=50) <= 0.05,
    "every_group(precision, by=sex, min_rows=5) >= 0.5": every_group("precision", by="sex", min_rows=5) >= 0.5,
    "every_class(recall, min_rows=5) >= 0.5": every_class(recall, min_rows=5) >= 0.5,
    "min_ratio(recall, mail, by=sex, min_rows=5) >= 0.5": min_ratio(recall, "mail", by="sex", min_rows=5) >= 0.5,
    "macro(recall, min_rows=7) >= 0.5": macro(recall, min_rows=7) >= 0.5,
    "equalized_odds_difference(by=sex, by=age, min_rows=3) <= 0.2": (
        equalized_odds_difference(by=["sex", "age"], min_rows=3) <= 0.2
    ),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_text_and_python_are_one_goal_which_prints(text):
    goal = parse_goal(text)
    assert goal == WRITTEN[text]
    assert str(goal) == text
    other = parse_goal(text.replace("min_rows=", "min_rows=1"))
    assert goal != other
    assert len({goal, other, parse_goal(text)}) == 2


WRONG = {
    "max_difference(recall, by=sex, min_rows=-1) <= 0.1": "min_rows must be a whole number.* got '-1'",
    "max_difference(recall, by=sex, min_rows=2.5) <= 0.1": "min_rows must be a whole number.* got '2.5'",
    "macro(recall, min_rows=many) >= 0.1": "min_rows must be a whole number.* got 'many'",
    "max_difference(recall, by=sex, min_rows=3, min_rows=4) <= 0.1": "min_rows must stand once in max_difference",
    "recall(min_rows=3) >= 0.1": "min_rows is a word of the language of goals, for the least number of rows",
    "recall(min_rows<=3) >= 0.1": "min_rows is a word of the language of goals",
    "recall(within=3) >= 0.1": "within is a word .* never a column: put the name of a column .* in quotes",
    "recall(3<=twin) >= 0.1": "twin is a word of the language of goals",
    "recall(average=3) >= 0.1": "average is a word of the language of goals",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_text_is_answered_in_a_sentence(text):
    with pytest.raises(ValueError, match=WRONG[text]):
        validate_goals(text)


@pytest.mark.parametrize("number", [-1, 2.5, True, "50", None])
def test_a_wrong_number_of_rows_is_refused(number):
    for make in (max_difference, macro):
        with pytest.raises(ValueError, match="min_rows must be a whole number, the least number of rows of a group"):
            make(recall, **({"by": "sex"} if make is max_difference else {}), min_rows=number)


def random_rows(seed):
    """Return labels of three classes, predictions, groups of unlike sizes and weights."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(60, 150))
    y = rng.choice(["a", "b", "c"], n_rows, p=[0.6, 0.3, 0.1])
    sex = rng.choice(["F", "M", "X", "Y"], n_rows, p=[0.45, 0.35, 0.12, 0.08])
    y[:12], sex[:12] = np.tile(["a", "b", "c"], 4), np.repeat(["F", "M", "X", "Y"], 3)
    said = np.where(rng.random(n_rows) < 0.6, y, rng.choice(["a", "b", "c"], n_rows))
    return y, said, sex, rng.integers(1, 4, n_rows).astype(float), int(rng.integers(1, 25))


@pytest.mark.parametrize("seed", range(20))
def test_values_are_those_of_the_groups_with_enough_rows(seed):
    y, said, sex, weights, least = random_rows(seed)
    table = Table(None, y, {"sex": sex}, sample_weight=weights)

    def share(mask):
        return np.average(said[mask] == "a", weights=weights[mask])

    recalls = {one: (y == "a") & (sex == one) for one in "FMXY"}
    numbers = {one: int(mask.sum()) for one, mask in recalls.items()}
    kept = [one for one in "FMXY" if numbers[one] >= least]
    phrases = {
        "every_group(recall, of=a, by=sex, min_rows={}) >= 0.5": lambda: min(share(recalls[one]) for one in kept),
        "max_difference(recall, of=a, by=sex, min_rows={}) <= 0.5": lambda: max(
            abs(share(recalls[one]) - share(recalls[other])) for one, other in combinations(kept, 2)
        ),
    }
    for text, value in phrases.items():
        goal = parse_goal(text.format(least))
        if len(kept) < (2 if "difference" in text else 1):
            with pytest.raises(NoRows, match=r"leaves out all groups: the largest has|with \d+ rows or more"):
                goal.evaluate(said, table)
            continue
        check = goal.evaluate(said, table)
        assert check.value == pytest.approx(value())
        small = [(one, n_rows) for one, n_rows in numbers.items() if one not in kept]
        assert check.left_out == tuple(f"sex={one} ({n} row{'s' if n > 1 else ''})" for one, n in small)
    sizes = {of: int((y == of).sum()) for of in "abc"}
    large = [of for of, size in sizes.items() if size >= least]
    mean = np.mean([np.average(said[y == of] == of, weights=weights[y == of]) for of in large])
    check = parse_goal(f"macro(recall, min_rows={least}) >= 0.5").evaluate(said, table)
    assert check.value == pytest.approx(mean)
    assert len(check.left_out) == 3 - len(large)


def test_audits_list_what_the_audited_rows_leave_out():
    y, sex = np.array([1] * 60 + [0] * 60 + [1] * 5 + [0] * 40), np.array(["F", "M"] * 60 + ["X"] * 45)
    said = np.where(np.arange(165) % 10 == 0, 1 - y, y)
    goals = ["max_difference(recall, by=sex, min_rows=6) <= 0.5", "max_difference(recall, by=sex, min_rows=31) <= 0.5"]
    rows = audit(goals, said, Table(None, y, {"sex": sex}))
    assert rows[0].left_out == ("sex=X (5 rows)",)
    assert rows[0].verdict == "holds"
    assert "min_rows=6) <= 0.5: left out: sex=X (5 rows)." in str(rows)
    assert rows[1].verdict == "undecided"
    assert "leaves out all groups: the largest has 30 rows. Set min_rows below 31" in rows[1].note


def test_a_class_and_a_column_called_of_stand_beside_each_other():
    rate = parse_rate("recall(of=1, 'of'=x)")
    assert rate == recall(of=1, **{"'of'": "x"}) == parse_rate(str(rate))
    assert rate.value([1, 0], Table(None, [1, 1], {"of": ["x", "y"]}), classes=[0, 1]) == 1.0
