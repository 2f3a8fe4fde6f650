"""Settings as text: read back as they were, and refused in a sentence."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise.explorer import Setting

TEXTS = st.sampled_from(["recall >= 0.9", "positive_rate(sex='<b>') <= 0.3", "precision >= 0.5"])
GOAL = st.fixed_dictionaries({"text": TEXTS, "bound": st.floats(0.01, 0.99), "on": st.booleans()})


@given(st.none() | st.floats(0.01, 1.0), st.none() | st.floats(0, 1), st.lists(GOAL, max_size=4))
def test_a_setting_is_read_back_as_it_was(alpha, budget, goals):
    setting = Setting.of({"alpha": alpha, "budget": budget, "goals": goals, "by": ["sex"]})
    assert Setting.read(setting.to_json()) == setting
    assert [one.goal.bound for one in setting.goals] == [one["bound"] for one in goals]


def test_goals_are_read_without_a_dataset():
    texts = ["recall >= 0.9", "max_difference(selection_rate, by=sex) <= 0.1", "tpr(sex=F) >= 0.5"]
    read = Setting.read(json.dumps({"goals": [{"text": text} for text in texts]}))
    assert [str(one.goal) for one in read.goals] == [
        "recall >= 0.9",
        "max_difference(positive_rate, by=sex) <= 0.1",
        "recall(sex=F) >= 0.5",
    ]
    assert Setting.read(read.to_json()) == read


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "A setting must be an object with alpha, budget, goals, by, defer, confidence; got list"),
        ({"alpha": 2}, "alpha must lie in .0, 1., the fraction"),
        ({"alpha": "x"}, "alpha must be a number"),
        ({"budget": -1}, "budget must lie in .0, 1., mean loss"),
        ({"beta": 1}, "A setting has the fields alpha, budget, goals, by, defer, confidence; got 'beta'"),
        ({"goals": "recall"}, "goals must be a list of objects with a text; got str"),
        ({"goals": [{"text": "recal(train) >= 0.9"}]}, "Unknown metric 'recal'. Did you mean 'recall'"),
        ({"goals": [{"text": "selction_rate >= 0.9"}]}, "Did you mean 'selection_rate'"),
        ({"goals": [{"text": 3}]}, "A goal's text must be a string"),
        ({"goals": [{"text": "recall >= 0.9", "on": 1}]}, "on must be true or false; got 1"),
        ({"goals": [{"text": "recall >= 0.9", "bound": None}, {}]}, "A goal's text must be a string"),
        ({"goals": [{"text": "x" * 3000}]}, "A goal's text must have at most 2000 characters here; got 3000"),
        ({"goals": [{"text": "recall >= 0.9"}] * 51}, "At most 20 goals can be explored together; got 51"),
        ({"goals": [{"text": "recall <= 80"}]}, "always holds"),
        ({"goals": [{"text": "recall >= 1.5"}]}, "The bound of recall must lie in .0, 1., .* got 1.5"),
        ({"goals": [{"text": "recall >= 0.9", "bound": 7}]}, "The bound of recall must lie in .0, 1."),
        ({"goals": None}, "goals must be a list of objects with a text; got NoneType"),
        ({"by": "sex"}, "by must be a list of names of columns; got str"),
        ({"by": ["a", "b", "c", "d"]}, "Rules can use at most 3 columns here; got 4"),
    ],
)
def test_what_is_no_setting_is_refused_in_a_sentence(words, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Setting.read(json.dumps(words))


def test_what_is_no_json_is_refused():
    with pytest.raises(ValueError, match="A setting must be JSON"):
        Setting.read("{")
    with pytest.raises(ValueError, match="each key must occur once in an object; 'alpha' occurs 2 times"):
        Setting.read('{"alpha": 0.1, "alpha": 0.9}')
    with pytest.raises(ValueError, match="A setting must be JSON"):
        Setting.read("[" * 100_000)
