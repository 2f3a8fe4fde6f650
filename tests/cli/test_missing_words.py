"""Groups called NA, null, None, nan or nothing at all: every reader and every export decides the same."""

import hashlib
import json
import re
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.cli import main
from counterpoise.runs import RunSettings
from counterpoise.runs.data import load_data
from counterpoise.runs.rule_file import read_rules
from counterpoise.runs.tables import apply_rules, audit_table, choose_table, file_groups

KEY = "a key of this test"
N_TABLES, N_WHOLE = 300, 15
WORDS = ["NA", "null", "None", "nan", "NaN", "N/A", "NULL", "#N/A", "", None, "F", "true", "01", "1", " x"]
DAYS = [date(2026, 11, 3) + timedelta(days=number) for number in range(3)]
KINDS = {
    "words": WORDS,
    "words and numbers": ["1", "2.5", "NA", "nan", None],
    "whole numbers": [1, 2, None],
    "days": [*DAYS, None],
    "midnights": [*(datetime.combine(day, datetime.min.time()) for day in DAYS), None],
    "afternoons": [*(datetime.combine(day, datetime.min.time()) + timedelta(hours=14.5) for day in DAYS), None],
}


def typed(values, kind):
    """Return a column as pandas holds such values."""
    if kind == "whole numbers":
        return pd.array(values, dtype="Int64")
    return pd.Series(values, dtype="datetime64[ns]" if kind in {"midnights", "afternoons"} else object)


def told(value):
    """Return the text of a group, as the guide says."""
    if value is None or value == "":
        return "(missing)"
    if isinstance(value, datetime):
        return str(value).removesuffix(" 00:00:00")
    return str(value)


def random_table(rng):
    """Return rows of two group columns, the rules that know all their groups, and what the rules say of each row."""
    kinds, n_rows = ["words", str(rng.choice(list(KINDS)))], int(rng.integers(3, 9))
    columns = {
        name: [KINDS[kind][k] for k in rng.integers(0, len(KINDS[kind]), n_rows)]
        for name, kind in zip("gh", kinds, strict=True)
    }
    scores, ids = rng.random(n_rows).round(3).tolist(), [f"id {number}" for number in range(n_rows)]
    names = [f"g={told(g)}, h={told(h)}" for g, h in zip(*columns.values(), strict=True)]
    starts = ["0" * 16, "8" + "0" * 15]
    rules = [
        {
            "share": 0.5,
            "from": start,
            "score": "p",
            "thresholds": {name: float(rng.random()) for name in sorted(set(names))},
        }
        for start in starts
    ]
    words = {
        "format": "counterpoise rules 1",
        "positive": 1,
        "negative": 0,
        "by": ["g", "h"],
        "key": KEY,
        "rules": rules,
    }
    draws = [hashlib.sha256(f"{KEY}:{one}".encode()).hexdigest()[:16] >= starts[1] for one in ids]
    said = [int(p > rules[draw]["thresholds"][name]) for p, draw, name in zip(scores, draws, names, strict=True)]
    frame = pd.DataFrame(
        {"id": ids, **{name: typed(columns[name], kind) for name, kind in zip("gh", kinds, strict=True)}, "p": scores}
    )
    return frame, columns, words, said


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    return [random_table(rng) for _ in range(N_TABLES)]


@pytest.mark.slow
def test_apply_decides_the_same_from_csv_and_parquet(tables, tmp_path):
    """All of what it does on some, and on all what tells groups apart: the rest costs seconds, and is the same."""
    path, rules_path, said_path = (tmp_path / name for name in ("t", "rules.json", "said.csv"))
    for number, (frame, _, rules, said) in enumerate(tables):
        frame.to_csv(path.with_suffix(".csv"), index=False)
        frame.to_parquet(path.with_suffix(".parquet"), index=False)
        rules_path.write_text(json.dumps(rules))
        made, scores, people = read_rules(rules_path), {"p": frame["p"].to_numpy()}, frame["id"].tolist()
        for end in (".csv", ".parquet"):
            codes = file_groups(made, path.with_suffix(end), len(frame))
            assert made.decide(scores, codes, people).tolist() == said, (end, frame)
            if number < N_WHOLE:
                apply_rules(rules_path, path.with_suffix(end), said_path, ids="id")
                assert said_path.read_text().split("\n")[1:-1] == [
                    f"{one},{answer}" for one, answer in zip(people, said, strict=True)
                ]


def labelled(seed, kind="words", n_rows=120):
    """Return rows with a score, a label and a group of few values."""
    rng = np.random.default_rng(seed)
    values = [KINDS[kind][k] for k in rng.permutation(len(KINDS[kind]))[:3]]
    column = typed([values[k] for k in np.arange(n_rows) % len(values)], kind)
    score = rng.random(n_rows).round(4)
    truth = (rng.random(n_rows) < score).astype(int)
    return pd.DataFrame({"id": range(n_rows), "g": column, "p": score, "y": truth})


@pytest.mark.parametrize("kind", KINDS)
def test_choose_finds_the_same_rules_from_csv_from_parquet_and_in_python(kind, tmp_path):
    frame = labelled(7, kind)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    asked = {"target": "y", "scores": ["p"], "goals": ["positive_rate <= 0.4"], "by": ["g"], "key": KEY}
    asked["confidence"] = None
    found = {
        end: choose_table(tmp_path / f"t.{end}", tmp_path / f"{end}.json", **asked).rules for end in ("csv", "parquet")
    }
    assert found["csv"] == found["parquet"]
    assert set(found["csv"].groups) == {
        f"g={told(value)}" for value in frame["g"].astype(object).where(frame["g"].notna(), None)
    }
    model = cp.GoalClassifier(
        [frame["p"].to_numpy()],
        cv="prefit",
        decision="sticky",
        alpha=1.0,
        by="g",
        goals=asked["goals"],
        confidence=None,
    )
    model.fit(frame[["g"]], frame["y"])
    assert [rule.thresholds for rule in model.rules_] == [rule.thresholds for rule in found["csv"].rules]


def test_an_audit_by_such_groups_is_the_same_from_csv_and_parquet(tmp_path):
    frame = labelled(3).assign(
        g=np.array(["NA", "null", "", "nan"] * 30, dtype=object), said=lambda rows: (rows["p"] > 0.5).astype(int)
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    goals = [
        "recall(g=NA) >= 0.1",
        "max_difference(positive_rate, by=g) <= 0.9",
        "recall(g='(missing)') >= 0.1",
    ]
    for groups in ((), ("g",)):
        found = [
            audit_table(tmp_path / f"t.{end}", target="y", prediction="said", goals=goals, groups=groups).audit
            for end in ("csv", "parquet")
        ]
        assert str(found[0]) == str(found[1])


COMPARED = {
    "choose": "choose t.csv --target y --score p --by g --goal 'recall >= 0.1' -o r.json",
    "choose, of a group that only the report names": (
        "choose t.csv --target y --score p --groups g --goal 'recall >= 0.1' -o r.json"
    ),
    "apply": "apply rules.json t.csv --ids id -o said.csv",
    "audit": "audit t.csv --target y --prediction y --groups g --goal 'recall >= 0.1'",
    "audit, of a group that only a goal names": (
        "audit t.csv --target y --prediction y --goal 'recall(g=\"(missing)\") >= 0.1'"
    ),
    "fit": "fit goals.toml",
}


@pytest.mark.parametrize("case", COMPARED)
def test_the_text_that_stands_for_missing_values_is_refused_as_a_group(case, tmp_path, monkeypatch, capsys):
    frame = labelled(3).assign(g=["a", "(missing)", None] * 40)
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)
    rules = {"format": "counterpoise rules 1", "positive": 1, "negative": 0, "by": ["g"], "key": KEY}
    levels = {"g=a": 0.5, "g=(missing)": 0.5}
    rules["rules"] = [{"share": 1.0, "from": "0" * 16, "score": "p", "thresholds": levels}]
    Path("rules.json").write_text(json.dumps(rules))
    Path("goals.toml").write_text('[data]\nfiles = "t.csv"\ntarget = "y"\ngroups = ["g"]\n')
    assert main([part.strip("'") for part in re.findall(r"'[^']*'|\S+", COMPARED[case])]) == 2
    told = r"Column 'g' (of t.csv )?must not hold the text '\(missing\)', which stands for a missing value"
    assert re.search(told, capsys.readouterr().err)


def test_a_goals_file_may_say_that_the_text_stands_for_missing_values(tmp_path):
    labelled(3).assign(g=["a", "(missing)", None] * 40).to_csv(tmp_path / "t.csv", index=False)
    asked = {"files": "t.csv", "target": "y", "groups": ["g"], "missing": ["(missing)"]}
    part = load_data(RunSettings(data=asked, splits={"test": 0, "validation": 0}), tmp_path).splits["train"]
    assert part.groups["g"].tolist() == ["a", None, None] * 40


def test_a_feature_that_nothing_compares_may_hold_any_text():
    frame = labelled(3).assign(g=["a", "(missing)", None] * 40)
    model = cp.GoalClassifier(
        [frame["p"].to_numpy()],
        cv="prefit",
        decision="sticky",
        alpha=1.0,
        goals=["recall >= 0.1"],
        confidence=None,
    )
    assert model.fit(frame[["g"]], frame["y"]).check_goals()[0].holds
    with pytest.raises(ValueError, match=r"'g' must not hold the text '\(missing\)'.* first at position 1\. Put None"):
        model.set_params(goals=["every_group(recall, by=g) >= 0.1"]).fit(frame[["g"]], frame["y"])


NO_NUMBERS = {
    "a score": ("choose t.csv --target y --score p --by g --goal 'recall >= 0.1' -o r.json", "p", "NA"),
    "a score that is nan": ("choose t.csv --target y --score p --goal 'recall >= 0.1' -o r.json", "p", "nan"),
    "a weight": ("audit t.csv --target y --prediction y --weights p --goal 'recall >= 0.1'", "p", "NA"),
}


@pytest.mark.parametrize("case", NO_NUMBERS)
def test_a_word_in_the_place_of_a_number_is_named_with_its_row(case, tmp_path, monkeypatch, capsys):
    command, column, word = NO_NUMBERS[case]
    frame = labelled(3).astype({column: object})
    frame.loc[4, column] = word
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)
    assert main([part.strip("'") for part in re.findall(r"'[^']*'|\S+", command)]) == 2
    assert re.search(rf"Column 'p' of t.csv must hold .*; row 5 holds '{word}'", capsys.readouterr().err)


def test_ids_may_be_words_and_an_empty_one_is_none(tmp_path, monkeypatch, capsys):
    rules = {"format": "counterpoise rules 1", "positive": 1, "negative": 0, "by": [], "key": KEY}
    rules["rules"] = [{"share": 1.0, "from": "0" * 16, "score": "p", "thresholds": {"all": 0.5}}]
    (tmp_path / "rules.json").write_text(json.dumps(rules))
    monkeypatch.chdir(tmp_path)
    for end in ("csv", "parquet"):
        frame = pd.DataFrame({"id": ["NA", "null", "7"], "p": [0.1, 0.9, 0.9]})
        (frame.to_csv if end == "csv" else frame.to_parquet)(f"t.{end}", index=False)
        assert main(["apply", "rules.json", f"t.{end}", "--ids", "id", "-o", "said.csv", "--quiet"]) == 0
        assert Path("said.csv").read_text().split() == ["id,said", "NA,0", "null,1", "7,1"]
        frame["id"] = ["a", "", "b"]
        (frame.to_csv if end == "csv" else frame.to_parquet)(f"t.{end}", index=False)
        assert main(["apply", "rules.json", f"t.{end}", "--ids", "id", "-o", "said.csv", "--quiet"]) == 2
        assert "must hold an id in each row; row 2 has none" in capsys.readouterr().err


OPEN_QUOTES = {
    "in the last column": ('id,p,y,g\n1,0.5,1,a\n2,0.6,0,"b\n3,0.7,1,c\n4,0.7,0,c\n', 3),
    "before the last column": ('id,g,p,y\n1,a,0.5,1\n2,b,0.6,0\n3,"c,0.7,1\n4,c,0.7,0\n', 4),
    "closed by the next field in quotes": ('id,p,y,g\n1,0.5,1,"a\n2,0.6,0,"b"\n3,0.7,1,c\n', 2),
    "two of them": ('id,p,y,g\n1,0.5,1,a\n2,0.6,0,"b\n3,0.7,1,"c\n4,0.7,0,c\n', 3),
    "beside a quote within a field": ('id,p,y,g\n1,0.5,1,5" a\n2,0.6,0,"b\n3,0.7,1,c\n', 3),
    "in the header": ('id,p,y,"g\n1,0.5,1,a\n2,0.6,0,b\n', 1),
}


@pytest.mark.parametrize("case", OPEN_QUOTES)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_quote_that_is_not_closed_is_named_by_its_line(case, ends, tmp_path, monkeypatch, capsys):
    text, line = OPEN_QUOTES[case]
    (tmp_path / "t.csv").write_text(text.replace("\n", ends), newline="")
    monkeypatch.chdir(tmp_path)
    for command in (
        [
            "choose",
            "t.csv",
            "--target",
            "y",
            "--score",
            "p",
            "--by",
            "g",
            "--goal",
            "recall >= 0.1",
            "-o",
            "r.json",
        ],
        ["audit", "t.csv", "--target", "y", "--prediction", "y", "--goal", "recall(g=a) >= 0.1"],
        ["init", "t.csv", "--target", "y"],
    ):
        assert main(command) == 2
        assert f"Line {line} of t.csv opens a quote that is not closed" in capsys.readouterr().err
