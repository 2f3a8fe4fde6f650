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


def anew(content, settings, folder, sources):
    (folder / "own.toml").write_bytes(content)
    return tomllib.loads(rewritten(folder / "own.toml", settings, sources=sources))


def test_only_what_may_be_chosen_anew_is_written_anew(tmp_path):
    content = b"""# why
seed = 0
output = "there"
goals = ["recall >= 0.70"]
[data]
files = ["a.csv", "b.csv"]
target = "y"
baseline_model = "old.cp"
[splits]
test_files = "c.csv"
[datasets.mail]
files = "mail.csv"
"""
    settings = RunSettings.model_validate(tomllib.loads(content.decode()))
    whole = anew(content, settings, tmp_path, tmp_path)
    method = settings.method.model_copy(update={"parameters": {"by": ["sex"]}})
    chosen = settings.model_copy(update={"alpha": 0.2, "method": method})
    other = anew(content, chosen, tmp_path, tmp_path)
    assert other == whole | {"alpha": 0.2, "method": {"parameters": {"by": ["sex"]}}}
    assert {key: whole[key] for key in ("seed", "goals")} == {"seed": 0, "goals": ["recall >= 0.70"]}
    assert (whole.keys(), whole["data"]["target"]) == ({"seed", "goals", "data", "splits", "datasets"}, "y")
    assert whole["data"]["files"] == [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    assert whole["data"]["baseline_model"] == str(tmp_path / "old.cp")
    assert whole["splits"]["test_files"] == str(tmp_path / "c.csv")
    assert whole["datasets"]["mail"]["files"] == str(tmp_path / "mail.csv")
    moved = anew(as_toml(whole).encode(), settings, tmp_path, tmp_path / "new")  # with its data
    assert moved["data"]["files"] == [str(tmp_path / "new" / "a.csv"), str(tmp_path / "new" / "b.csv")]
