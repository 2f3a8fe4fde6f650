"""Goals of a thousand terms are read as Python would add them up, and those that would take for ever are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise.goals import GoalSyntaxError, error_rate, parse_goal, positive_rate, recall

PARTS = [recall("train"), recall("mail"), error_rate("train"), positive_rate("train", sex="F"), 0.25, 3.0]
SIGNED = st.lists(
    st.tuples(st.sampled_from([1, -1]), st.sampled_from([1.0, 0.5, 3.0]), st.sampled_from(PARTS)), max_size=9
)


def written(signed):
    return "".join(f" {'+' if sign > 0 else '-'} {factor} * {part}" for sign, factor, part in signed)


@given(SIGNED, SIGNED)
def test_a_sum_is_what_adding_one_by_one_gives(left, right):
    text = f"recall{written(left)} <= 2 * recall(mail){written(right)}"
    sides = [recall("train"), 2 * recall("mail")]
    for at, signed in enumerate((left, right)):
        for sign, factor, part in signed:
            sides[at] = sides[at] + sign * (factor * part)
    try:
        expected = sides[0] <= sides[1]
    except ValueError:  # all of it cancels
        with pytest.raises(ValueError, match="does not cancel"):
            parse_goal(text)
    else:
        assert parse_goal(text) == expected


LONG = "+".join(f"recall(a{number})" for number in range(2500))
REFUSED = {
    "parentheses": "(" * 50_000,
    "signs": "-" * 50_000,
    "products of a sum": f"({LONG})" + "*1" * 20_000,
    "products in parentheses": "(" * 40 + LONG + "*1*1*1)" * 40,
    "sums in parentheses": "(" * 45 + LONG + "+1)" * 45,
    "numbers added to a ratio": f"({LONG}) / recall" + "+1" * 20_000,
    "letters": "recall >= 0.5" + " " * 100_000,
    "an unknown name": "x" * 90_000 + "(train) >= 0.5",
    "an unknown restriction": "recall(train." + "x" * 90_000 + ") >= 0.5",
    "a contradiction": "recall(train," + ",".join(f"c{number}=1" for number in range(9000)) + ",c5=2) >= 0.5",
    "a quote without an end": 'recall(a="' + '""' * 40_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("case", REFUSED)
def test_what_would_take_for_ever_is_refused_in_few_words(case):
    text = REFUSED[case] if ">=" in REFUSED[case] else f"{REFUSED[case]} >= 0.5"
    with pytest.raises(ValueError, match=r".") as caught:
        parse_goal(text)
    assert len(str(caught.value)) < 1000


def test_a_long_text_is_shown_around_the_place():
    with pytest.raises(GoalSyntaxError) as caught:
        parse_goal("recall + " * 100 + "? >= 0.5" + " " * 200)
    _, shown, mark = str(caught.value).splitlines()
    assert shown.strip().startswith("...")
    assert shown[mark.index("^")] == "?"
