"""Plain values written as TOML are read back as they were."""

import tomllib
from datetime import date

import pytest

from counterpoise.runs import RunSettings
from counterpoise.runs.goals_file import as_toml, rewritten

WORDS = [
    {},
    {"a": 1, "b": -2.5, "c": 1e-7, "d": 1e300, "e": float("inf"), "f": True, "g": False, "h": date(2026, 1, 2)},
    {"text": 'quotes " and \\ and \n and \x7f and \x1b and é', "two words": "a.b", "": 0, "ünï": 1},
    {"list": [1, [2, 3], ["x", {"in": "line", "and so on": [1]}]], "empty": [], "table": {}},
    {"table": {"sub": {"deep": {"x": 1}}, "y": 2}, "z": 3},
    {"many": [{"name": "a", "inner": [{"x": 1}, {"x": 2}]}, {"name": "b", "table": {"y": [1, 2]}}]},
    {"long": [f"recall(age<={age}) >= 0.5" for age in range(20, 60)]},
]


@pytest.mark.parametrize("words", WORDS)
def test_what_is_written_is_read_back(words):
    assert tomllib.loads(as_toml(words)) == words


def test_what_is_none_is_left_out():
    assert tomllib.loads(as_toml({"a": None, "b": [{"c": None, "d": 1}]})) == {"b": [{"d": 1}]}


def test_settings_are_written_as_a_goals_file_that_can_be_anywhere(tmp_path):
    content = b"""
output = "there"
goals = ["recall >= 0.70", { goal = "churn <= 0.2", confidence = 0.9 }]
[data]
files = ["a.csv", "b.csv"]
target = "y"
baseline_model = "old.cp"
[splits]
test_files = "c.csv"
[datasets.mail]
files = "mail.csv"
[method]
parameters = { by = ["sex"] }
"""
    settings = RunSettings.model_validate(tomllib.loads(content.decode()))
    words = tomllib.loads(rewritten(settings, sources=tmp_path))
    whole = [str(tmp_path / name) for name in ("a.csv", "b.csv", "old.cp", "c.csv", "mail.csv")]
    assert words["data"]["files"] == whole[:2]
    assert (words["data"]["baseline_model"], words["splits"]["test_files"]) == (whole[2], whole[3])
    assert words["datasets"]["mail"]["files"] == whole[4]
    assert "output" not in words
    again = RunSettings.model_validate(words)
    assert (again.goals, again.method, again.alpha) == (settings.goals, settings.method, settings.alpha)
