"""Scores in, rules out: choose, apply, SQL, JavaScript, and the audit of anybody's answers."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from loan_tables import CHOOSE, DEFER, GOALS, KEY, loans

import counterpoise as cp
from counterpoise.cli import main
from counterpoise.goals import Table

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "rules_anywhere.md"


@pytest.fixture
def fitted(made):
    """Return the folder of which ``here`` is a copy."""
    return made


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """Return a folder with a table, rules that defer, and decisions; nobody writes there."""
    folder = tmp_path_factory.mktemp("left")
    loans().to_csv(folder / "loans.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*CHOOSE, *DEFER, "-o", "rules.json", "--report", "rules.html", "--quiet"]) == 0
        assert main(["apply", "rules.json", "loans.csv", "--ids", "id", "-o", "said.csv", "--quiet"]) == 0
    return folder


@pytest.fixture(params=["made", pytest.param("left", marks=pytest.mark.slow)])
def decided(request):
    """Return a folder with rules and decisions, of those that decide about everybody and of those that defer."""
    return request.getfixturevalue(request.param)


def block(language):
    """Return the one block of code of a language in the guide."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return found


def read_said(made):
    return pd.read_csv(made / "said.csv")


def test_the_rules_are_those_of_the_mixture_of_all_thresholds(made):
    frame, rules = loans(), json.loads((made / "rules.json").read_text())
    model = cp.GoalClassifier(
        [frame["p"].to_numpy(), frame["q"].to_numpy()],
        cv="prefit",
        decision="sticky",
        alpha=1.0,
        by="sex",
        goals=GOALS,
        confidence=None,
    ).fit(frame[["sex"]], frame["paid"])
    assert [one["thresholds"] for one in rules["rules"]] == [rule.thresholds for rule in model.rules_]
    assert [one["score"] for one in rules["rules"]] == [["p", "q"][rule.model] for rule in model.rules_]
    np.testing.assert_allclose([one["share"] for one in rules["rules"]], model.mixture_)
    starts = [int(one["from"], 16) / 16**16 for one in rules["rules"]]
    np.testing.assert_allclose(starts, np.cumsum([0, *model.mixture_[:-1]]), atol=1e-15)


def test_decisions_meet_the_goals_up_to_the_luck_of_the_draws(made):
    said, frame = read_said(made), loans()
    assert said["id"].tolist() == frame["id"].tolist()
    assert said["said"][frame["paid"] == 1].mean() == pytest.approx(0.8, abs=0.01)
    rates = said["said"].groupby(frame["sex"]).mean()
    assert abs(rates["F"] - rates["M"]) < 0.035


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript_gives_the_same_answers(decided):
    code = block("js") + (
        "const fs = require('node:fs');\n"
        "const rules = JSON.parse(fs.readFileSync('rules.json', 'utf8'));\n"
        "const [head, ...lines] = fs.readFileSync('loans.csv', 'utf8').trim().split('\\n');\n"
        "const names = head.split(',');\n"
        "for (const line of lines) {\n"
        "  const row = Object.fromEntries(line.split(',').map((cell, place) => [names[place], cell]));\n"
        "  console.log(`${row.id},${decide(rules, row, row.id)}`);\n"
        "}\n"
    )
    done = subprocess.run([shutil.which("node"), "-e", code], cwd=decided, capture_output=True, text=True, check=True)
    assert done.stdout == (decided / "said.csv").read_text().split("\n", 1)[1]


def finite(levels):
    """Return thresholds as JSON has them."""
    return {name: float(np.clip(level, -sys.float_info.max, sys.float_info.max)) for name, level in levels.items()}


@pytest.mark.slow
def test_rules_that_defer_are_those_of_the_mixture_of_all_intervals(left):
    frame, rules = loans(), json.loads((left / "rules.json").read_text())
    columns = [frame["p"].to_numpy(), frame["q"].to_numpy()]
    asked = {"goals": [*GOALS, DEFER[1]], "deferral": cp.Deferral(0.1), "alpha": 0.5, "budget": 0.05, "by": "sex"}
    model = cp.GoalClassifier(columns, cv="prefit", decision="sticky", **asked, confidence=None).fit(
        frame[["sex"]], frame["paid"]
    )
    assert (rules["format"], rules["deferred"]) == ("counterpoise rules 2", "defer")
    assert [(one["thresholds"], one["lower"]) for one in rules["rules"]] == [
        (finite(rule.thresholds), finite(rule.lower or rule.thresholds)) for rule in model.rules_
    ]
    assert set(read_said(left)["said"]) == {"0", "1", "defer"}
    assert (read_said(left)["said"] == "defer").mean() == pytest.approx(0.1, abs=0.01)
    page = (left / "rules.html").read_text(encoding="utf-8")
    assert "Deferred train rows by group" in page
    assert "of the train rows are left to a person" in page


def test_an_audit_knows_deferred_rows_by_their_label(left, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame, said = loans(), read_said(left)["said"]
    frame.assign(said=said).to_csv("said.csv", index=False)
    goals = ["--goal", "defer_rate(sex=F) <= 0.2", "--goal", "decided_error_rate <= 0.4"]
    asked = ["audit", "said.csv", "--target", "paid", "--prediction", "said", "--groups", "sex", *goals]
    assert main([*asked, "--defer-label", "defer", "--report", "page.html", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["goals"][0]["estimate"] == (said[frame["sex"] == "F"] == "defer").mean()
    decides = said != "defer"
    wrong = said[decides].astype(int) != frame["paid"][decides]
    assert found["goals"][1]["estimate"] == pytest.approx(wrong.mean(), abs=1e-12)
    assert "Deferred test rows by group" in Path("page.html").read_text(encoding="utf-8")
    assert main(asked) == 2
    assert "must be classes of column 'paid', 0, 1; got 'defer'. If it stands for" in capsys.readouterr().err


@pytest.mark.slow
def test_parquet_and_one_fixed_rule_and_rules_that_look_at_the_old_answer(here, capsys):
    loans().to_parquet("loans.parquet", index=False)
    assert main(["apply", "rules.json", "loans.parquet", "--ids", "id", "-o", "said.parquet"]) == 0
    found = pd.read_parquet("said.parquet")
    assert found["said"].tolist() == read_said(here)["said"].tolist()
    fixed = ["choose", "loans.csv", "--target", "paid", "--score", "p", "--goal", GOALS[0], "--decision", "fixed"]
    assert main([*fixed, "-o", "fixed.json"]) == 0
    rules = json.loads(Path("fixed.json").read_text())
    assert [one["share"] for one in rules["rules"]] == [1.0]
    assert list(rules["rules"][0]["thresholds"]) == ["all"]
    assert len(rules["key"]) == 32
    kept = ["--baseline", "old", "--by", "baseline", "--goal", "churn <= 0.1", "-o", "kept.json"]
    capsys.readouterr()
    assert main(["choose", "loans.csv", "--target", "paid", "--score", "p", *kept, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert json.loads(Path("kept.json").read_text())["by"] == ["old"]
    assert told["goals"][0]["holds"]
    assert set(told["rules"][0]["thresholds"]) == {"old=0", "old=1"}


@pytest.mark.usefixtures("here")
def test_labels_that_are_true_and_false_come_back_as_such():
    frame = loans(600)
    frame.assign(paid=frame["paid"] == 1).to_csv("truths.csv", index=False)
    asked = ["--target", "paid", "--score", "p", "--goal", "recall >= 0.8", "--key", KEY]
    assert main(["choose", "truths.csv", *asked, "-o", "truths.json", "--quiet"]) == 0
    assert main(["apply", "truths.json", "truths.csv", "--ids", "id", "-o", "truths_said.csv", "--quiet"]) == 0
    said = pd.read_csv("truths_said.csv")["said"]
    assert said.dtype == np.bool_
    assert said[frame["paid"] == 1].mean() == pytest.approx(0.8, abs=0.08)


@pytest.mark.usefixtures("here")
def test_a_column_named_baseline_is_the_one_that_by_means(capsys):
    loans(600).rename(columns={"sex": "baseline"}).to_csv("named.csv", index=False)
    asked = ["--target", "paid", "--score", "p", "--by", "baseline", "--goal", "recall >= 0.8"]
    code = main(["choose", "named.csv", *asked, "-o", "named.json", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == 0
    assert set(told["rules"][0]["thresholds"]) == {"baseline=F", "baseline=M"}


@pytest.mark.usefixtures("here")
def test_the_largest_weight_of_the_population_widens_a_margin(capsys):
    frame = loans(2000).assign(weight=np.random.default_rng(1).choice([1.0, 2.0], 2000))
    frame.to_csv("weighted.csv", index=False)
    goal = "recall >= 0.8 with confidence 0.9"
    asked = ["choose", "weighted.csv", "--target", "paid", "--score", "p", "--weights", "weight", "--goal", goal]
    found = []
    for largest in ("2", "20"):
        assert main([*asked, "--largest-weight", largest, "-o", "weighted.json", "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["goals"][0]["value"])
    assert 0.8 < found[0] < found[1]


@pytest.mark.usefixtures("here")
def test_nobody_and_everybody_are_plain_numbers():
    goal = "positive_rate(sex=F) <= 0"
    assert main([*CHOOSE[:-4], "--goal", goal, "-o", "none.json", "--quiet"]) == 0
    assert "Infinity" not in Path("none.json").read_text()
    assert main(["apply", "none.json", "loans.csv", "--ids", "id", "-o", "none.csv", "--quiet"]) == 0
    assert pd.read_csv("none.csv")["said"][loans()["sex"] == "F"].sum() == 0


def test_the_page_tells_rules_goals_and_groups(made):
    page = (made / "rules.html").read_text(encoding="utf-8")
    for words in ("rule 1", "above sex=F", "sex=M", "columns of <code>loans.csv</code>", "recall &gt;= 0.8"):
        assert words in page


@pytest.fixture
def audited(here):
    """Return a small table with labels as texts, answers, groups and what the old model says."""
    frame = loans(2000)
    words = frame.assign(said=(frame["p"] > 0.5) * 1)
    for name in ("paid", "said", "old"):
        words[name] = np.where(words[name] == 1, "yes", "no")
    words.to_csv(here / "words.csv", index=False)
    return words


AUDIT = ["audit", "words.csv", "--target", "paid", "--prediction", "said", "--groups", "sex", "--baseline", "old"]


def test_an_audit_is_that_of_the_library_and_writes_a_page(audited, capsys):
    goals = ["recall(sex=F) >= 0.5", "churn <= 0.5", "recall(p>=0.9) >= 0.99"]
    words = [word for goal in goals for word in ("--goal", goal)]
    assert main([*AUDIT, *words, "--report", "audit.html", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    table = Table(audited, audited["paid"], None, audited["old"])
    expected = cp.audit(goals, audited["said"], table)
    assert [row["low"] for row in told["goals"]] == pytest.approx([row.low for row in expected])
    assert told["holds"] == expected.holds
    page = Path("audit.html").read_text(encoding="utf-8")
    assert "Audit of a classifier on words" in page
    assert "sex=F" in page


def test_an_audit_of_a_group_without_positives_says_so_on_every_page(audited, capsys):
    audited.assign(paid=np.where(audited["sex"] == "F", "no", audited["paid"])).to_csv("words.csv", index=False)
    goals = ["--goal", "every_group(recall, by=sex) >= 0.5", "--goal", "error_rate <= 0.9"]
    why = "dataset 'train' restricted to sex=F and labelled positive is empty"
    assert main([*AUDIT, *goals, "--report", "audit.html"]) == 0
    assert why in capsys.readouterr().out
    assert why.replace("'", "&#39;") in Path("audit.html").read_text(encoding="utf-8")
    assert main([*AUDIT, *goals, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["goals"]
    assert [row["verdict"] for row in told] == ["undecided", "holds"]
    assert why in told[0]["note"]
    assert main([*AUDIT, *goals, "--strict"]) == 1


@pytest.mark.parametrize("words", [["1", "01", "2"], ["true", "True", "false"]])
def test_groups_that_are_written_differently_stay_apart_in_csv_as_in_parquet(tmp_path, capsys, words):
    rows = {"group": np.repeat(words, 60), "said": np.repeat([1, 0, 1], 60), "paid": np.tile([0, 1], 90)}
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    pd.DataFrame(rows).to_parquet(tmp_path / "rows.parquet")
    told = []
    for name in ("rows.csv", "rows.parquet"):
        goal = ["--goal", "max_difference(positive_rate, by=group) <= 0.3", "--groups", "group", "--json"]
        assert main(["audit", str(tmp_path / name), "--target", "paid", "--prediction", "said", *goal]) == 0
        told.append(json.loads(capsys.readouterr().out)["goals"])
    assert told[0] == told[1]
    assert told[0][0]["verdict"] == "fails"


def test_old_answers_that_are_no_class_are_refused(audited, capsys):
    audited.assign(old=np.where(audited["old"] == "no", "n/a", "yes")).to_csv("words.csv", index=False)
    assert main([*AUDIT, "--goal", "churn <= 0.9"]) == 2
    assert (
        "column 'old' of words.csv must be classes of column 'paid', 'no', 'yes'; got 'n/a'" in capsys.readouterr().err
    )


@pytest.mark.usefixtures("audited")
def test_strict_makes_a_gate(capsys):
    assert main([*AUDIT, "--goal", "recall >= 0.5", "--strict"]) == 0
    assert "holds" in capsys.readouterr().out
    assert main([*AUDIT, "--goal", "recall >= 0.99", "--strict"]) == 1
    assert "fails" in capsys.readouterr().out
    assert main([*AUDIT, "--goal", "recall >= 0.5", "--positive", "no", "--confidence", "0.9"]) == 0
    assert "confidence 0.9" in capsys.readouterr().out


def test_labels_alone_take_columns_and_a_table_has_its_own():
    found = cp.audit("churn <= 0.9", [0, 1] * 50, [0, 1] * 50, baseline=[1, 1] * 50, sample_weight=np.ones(100))
    assert found[0].estimate == 0.5
    with pytest.raises(ValueError, match=r"beside a Table\. Pass them to the Table itself"):
        cp.audit("recall >= 0.5", [0, 1], Table(None, [0, 1]), baseline=[0, 1])


@pytest.mark.usefixtures("here")
def test_advice_of_a_command_is_in_its_own_words(capsys):
    words = ["choose", "loans.csv", "--target", "paid", "--score", "p", "--goal", "recall >= 0.5", "-o", "new.json"]
    assert main([*words, "--alpha", "0.5"]) == 2
    assert "Set --decision sticky, which mixes rules, or --alpha 1.0, " in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_goals_that_cannot_hold_end_with_code_1(capsys):
    goals = ["--goal", "recall >= 0.9", "--goal", "positive_rate <= 0.1"]
    assert main(["choose", "loans.csv", "--target", "paid", "--score", "p", *goals, "-o", "new.json"]) == 1
    told = capsys.readouterr().err
    assert "No single rule meets recall >= 0.9 and positive_rate <= 0.1" in told
    assert "No mixture of rules meets them either." in told
    assert not Path("new.json").exists()
    assert "A way out, as options:" in told
    mixed = ["choose", "loans.csv", "--target", "paid", "--score", "p", "--decision", "sticky", "--confidence", "none"]
    ways = re.split("^Or", told.partition("A way out")[2], flags=re.MULTILINE)
    kept = []
    for number, way in enumerate(ways):  # as printed: no goal is lost
        options = re.findall(r'^    --goal "([^"]*)"', way, re.MULTILINE)
        kept.append(len(set(options) & set(goals)))
        assert {option.split()[0] for option in options} == {"recall", "positive_rate"}
        assert main([*mixed, *(word for option in options for word in ("--goal", option)), "-o", str(number)]) == 0
    assert sorted(kept) == [0, *[1] * (len(ways) - 1)]  # in one way both give a little
