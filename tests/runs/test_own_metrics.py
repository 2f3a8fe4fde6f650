"""A metric that a user registers: known to goals, their text, tables, displays, runs, reports and the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from run_numbers import numbers

from counterpoise import certify
from counterpoise.cli import main
from counterpoise.displays import RateDisplay
from counterpoise.goals import (
    Dataset,
    Table,
    as_objective,
    error_rate,
    false_negative_rate,
    false_negatives,
    false_positive_rate,
    false_positives,
    forget_metric,
    negative_rate,
    parse_goal,
    positive_rate,
    recall,
    register_metric,
    true_negatives,
)
from counterpoise.metrics import rate_table
from counterpoise.persist import dumps, loads
from counterpoise.report.wording import number
from counterpoise.runs import open_run

FILE = """
from counterpoise.goals import false_negatives, false_positives, register_metric

@register_metric
def cost(rows):
    return 5 * false_negatives(rows) + false_positives(rows)
"""
GOALS = """
goals = ["cost <= 1.5"]
[data]
files = "loans.csv"
target = "paid"
positive = "yes"
groups = ["sex"]
[method]
name = "pool"
parameters = { objective = "cost" }
[[method.models]]
name = "stump"
[[method.models]]
name = "naive_bayes"
"""
SEX = {"sex": np.repeat(["F", "M"], 30)}


@pytest.fixture
def metrics():
    """Three metrics of a user's own: a sum, one of shares out of different rows with a constant, and a ratio."""
    own = {
        "cost": lambda rows: 5 * false_negatives(rows) + false_positives(rows),
        "balanced": lambda rows: 1 - (false_negative_rate(rows) + false_positive_rate(rows)) / 2,
        "clear": lambda rows: true_negatives(rows) / negative_rate(rows),
    }
    yield {name: register_metric(define, name=name) for name, define in own.items()}
    for name in own:
        forget_metric(name)


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    labels, said = rng.integers(0, 2, (2, 60))
    return Table(None, y=labels, sensitive_features=SEX), said


def by_counting(labels, said):
    wrong = 5 * np.mean((labels == 1) & (said == 0)) + np.mean((labels == 0) & (said == 1))
    balanced = (said[labels == 1].mean() + 1 - said[labels == 0].mean()) / 2
    return {"cost": wrong, "balanced": balanced, "clear": (labels[said == 0] == 0).mean()}


def test_a_goal_on_it_is_written_read_and_measured(metrics, people):
    table, said = people
    women = np.arange(60) < 30
    for name, value in by_counting(table.y[women], said[women]).items():
        goal = parse_goal(f"{name}(sex=F) >= 0.25")
        assert str(goal) == f"{name}(sex=F) >= 0.25"
        assert goal == (metrics[name](Dataset("train"), sex="F") >= 0.25)
        assert goal.left.value(said, table) == pytest.approx(value)
        assert loads(dumps(goal)) == goal
        assert str(goal) in str(certify(said, goal, y=table.y, sensitive_features=SEX))
    assert str(as_objective("cost")) == "cost"


def test_it_is_the_rate_that_defines_it(metrics):
    assert metrics["cost"]() == 5 * false_negatives() + false_positives()
    assert metrics["balanced"]("mail") == 1 - (false_negative_rate("mail") + false_positive_rate("mail")) / 2
    assert metrics["clear"]() == true_negatives() / negative_rate()


def test_tables_and_displays_have_it_by_group(metrics, people):
    table, said = people
    rows = rate_table(said, table.y, SEX)
    for row, kept in zip(rows, (slice(60), slice(30), slice(30, 60)), strict=True):
        expected = by_counting(table.y[kept], said[kept])
        assert {name: row.rates[name] for name in metrics} == pytest.approx(expected)
        assert row.cost == row.rates["cost"]
        assert (row.trials["cost"], row.trials["clear"]) == (None, np.sum(said[kept] == 0))
    display = RateDisplay.from_predictions(table.y, said, sensitive_features=SEX, rate="clear")
    assert display.rates == pytest.approx([row.clear for row in rows])
    assert (display.low < display.rates).all()


def test_a_metric_is_forgotten(people):
    register_metric(lambda rows: 2 * error_rate(rows), name="twice")
    forget_metric("twice")
    forget_metric("recall")  # which was not registered
    with pytest.raises(ValueError, match="Unknown metric 'twice'"):
        parse_goal("twice <= 1")
    assert "twice" not in rate_table(people[1], people[0].y)[0].rates
    assert parse_goal("recall >= 0.5") == (recall() >= 0.5)


def test_it_can_be_defined_anew(metrics):
    before = metrics["cost"]() <= 1
    register_metric(error_rate, name="cost")
    assert parse_goal("cost <= 1") == (error_rate() <= 1)
    assert before == (5 * false_negatives() + false_positives() <= 1)


@pytest.mark.parametrize(
    ("define", "name", "error", "text"),
    [
        (error_rate, "recall", ValueError, "must be a word that no metric has yet; got 'recall'"),
        (error_rate, "two words", ValueError, "must be a word"),
        (lambda rows: 2 * error_rate(rows), None, ValueError, "got '<lambda>'"),
        (lambda _rows: 0.5, "half", TypeError, "metric half must return a rate or a ratio.*got 0.5"),
        (lambda rows: positive_rate(rows, sex="F"), "women", ValueError, "it uses train, sex=F"),
        (lambda _rows: recall("mail"), "mailed", ValueError, "must use the rows that it is called with.*mail"),
    ],
)
def test_what_is_no_metric_is_refused(define, name, error, text):
    with pytest.raises(error, match=text):
        register_metric(define, name=name)


@pytest.mark.slow
def test_the_command_line_takes_it_from_a_file_that_its_user_names(tmp_path, capsys):
    rng = np.random.default_rng(0)
    income, sex = rng.normal(size=300), np.tile(["F", "M"], 150)
    paid = np.where(income + rng.normal(size=300) > 0, "yes", "no")
    pd.DataFrame({"income": income, "sex": sex, "paid": paid}).to_csv(tmp_path / "loans.csv", index=False)
    (tmp_path / "goals.toml").write_text(GOALS)
    (tmp_path / "own.py").write_text(FILE)
    assert main(["fit", str(tmp_path / "goals.toml")]) == 2
    assert "Unknown metric 'cost'" in capsys.readouterr().err
    try:
        assert main(["--import", str(tmp_path / "own.py"), "fit", str(tmp_path / "goals.toml"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["goals"][0]["goal"] == "cost <= 1.5"
    finally:
        forget_metric("cost")
    page = (tmp_path / "goals" / "report.html").read_text(encoding="utf-8")
    table = page.partition("Rates by group")[2].partition("</table>")[0]
    assert ">cost<" in table
    for row in numbers(open_run(tmp_path / "goals")).where(quantity="group cost"):
        assert f">{number(row.value)}</td>" in table  # no share of rows, though it may lie between 0 and 1
    assert "counterpoise --import FILE.py fit goals.toml" in page
    assert main(["report", str(tmp_path / "goals"), "--output", str(tmp_path / "again.html"), "--quiet"]) == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--import"], "--import needs the name of a Python file"),
        (["--import", "nowhere.py", "data", "list"], "there is no file nowhere.py"),
        (["data", "list", "--import", "broken.py"], "--import FILE.py must come before the command"),
        (
            ["--import", "broken.py", "data", "list"],
            "broken.py cannot be imported: ZeroDivisionError: division by zero",
        ),
    ],
)
def test_a_file_that_cannot_be_run_is_said_in_a_sentence(words, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("1 / 0")
    assert main(words) == 2
    assert text in capsys.readouterr().err
