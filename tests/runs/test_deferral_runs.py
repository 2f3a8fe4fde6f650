"""Rows that are left to a person, in a goals file, its run, what is made of it, and its report."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from run_numbers import numbers

from counterpoise.datasets import loans
from counterpoise.metrics import cvar_loss, rate_table
from counterpoise.report import write_report
from counterpoise.runs import (
    DataError,
    GoalsFileError,
    audit_run,
    fit_run,
    open_run,
    predict_run,
    read_goals_file,
    rebalance_run,
    starting_file,
)
from counterpoise.runs.data import load_data

pytestmark = pytest.mark.slow  # a run from end to end, of parts that have tests of their own

COST, ALPHA, N_ROWS = 0.2, 0.3, 1200
DEFERRAL = "deferral = { cost = 0.2 }"
FILE = """
alpha = 0.3
confidence = "none"
goals = ["defer_rate <= 0.1", "max_difference(defer_rate, by=sex) <= 0.02"]
[data]
files = "loans.csv"
target = "default"
positive = "yes"
groups = ["sex"]
baseline = "last_year"
[splits]
test = 0.4
[method]
name = "goals"
models = [{ name = "logistic" }]
[method.parameters]
cv = 3
by = "sex"
decision = "sticky"
deferral = { cost = 0.2 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table of loans and a run on it; nobody writes there."""
    folder = tmp_path_factory.mktemp("loans")
    loans(N_ROWS, random_state=0)[0].to_csv(folder / "loans.csv", index=False)
    (folder / "run.toml").write_text(FILE)
    fit_run(folder / "run.toml")
    return folder


@pytest.fixture(scope="module")
def run(folder):
    return open_run(folder / "run")


@pytest.fixture(scope="module")
def held_rows(run, folder):
    """Return the test rows, and how likely each answer is there."""
    part, model = load_data(run.settings, folder).splits["test"], run.model()
    shares = model.decision_proba(part.X, sensitive_features=part.groups, baseline=part.baseline)
    return part, shares


def one(run, quantity, method="mixture", split="test", settings="", alpha=None):
    (row,) = numbers(run).where(quantity=quantity, method=method, split=split, settings=settings, alpha=alpha)
    return row.value


def test_errors_deferrals_and_losses_are_those_of_the_shares(run, held_rows):
    part, shares = held_rows
    deferred = shares[:, 2]
    wrong = 1 - shares[np.arange(len(part.y)), (part.y == "yes").astype(int)] - deferred
    assert one(run, "error") == pytest.approx(wrong.mean(), abs=1e-12)
    assert one(run, "defer rate") == pytest.approx(deferred.mean(), abs=1e-12)
    assert one(run, "decided error") == pytest.approx(wrong.mean() / (1 - deferred.mean()), abs=1e-12)
    assert one(run, "cvar", alpha=ALPHA) == pytest.approx(cvar_loss(wrong + COST * deferred, ALPHA), abs=1e-12)
    assert one(run, "defer rate", "first model") == 0
    assert one(run, "defer rate", split="train") <= 0.1 + 1e-9
    assert [row.quantity for row in numbers(run) if row.quantity == "defer rate" and row.method == "average"] == []


def test_answers_are_counted_in_expectation_by_group_and_kind(run, held_rows):
    part, model = held_rows[0], run.model()
    chances = model.decision_proba(part.X, sensitive_features=part.groups, baseline=part.baseline)
    rates = ["defer_rate", "decided_error_rate", "error_rate", "churn"]
    told = {"pos_label": "yes", "defer_label": "defer", "baseline": part.baseline, "kind": "probabilities"}
    for place, row in enumerate(rate_table(chances[:, 1:], part.y, part.groups, rates=rates, **told)):
        for name, value in row.rates.items():
            assert one(run, f"group {name}", settings=f"group {place}") == pytest.approx(value, abs=1e-12)
    cells = {name: one(run, f"confusion {name}") for name in ("deferred positives", "deferred negatives")}
    assert cells["deferred positives"] == pytest.approx(chances[part.y == "yes", 2].sum())
    all_cells = [row.value for row in numbers(run).where(method="mixture") if row.quantity.startswith("confusion ")]
    assert sum(all_cells) == pytest.approx(len(part.y))
    assert one(run, "confusion deferred positives", "deployed model") == 0


def test_a_rule_errs_only_where_it_decides(run):
    model = run.model()
    errors = [one(run, "error", f"model {number}") for number in range(1, len(model.rules_) + 1)]
    assert one(run, "error") == pytest.approx(model.mixture_ @ errors, abs=1e-12)


def test_the_curve_is_that_of_a_goal_on_the_rate(run):
    points = [row for row in numbers(run) if row.quantity == "deferral tail" and row.split == "train"]
    limits = [float(row.settings.removeprefix("rate=")) for row in points]
    assert limits == sorted(limits)
    assert np.all(np.diff([row.value for row in points]) <= 1e-9)  # no budget: more deferral never hurts
    chosen = run.model().rebalance(goals=["defer_rate <= 0.05", "max_difference(defer_rate, by=sex) <= 0.02"])
    assert points[limits.index(0.05)].value == pytest.approx(chosen.value_, abs=2e-4)
    assert one(run, "deferral tail", split="train", settings="rate=0.1") == pytest.approx(run.model().value_, abs=2e-4)
    assert one(run, "deferral defer rate", split="train", settings="rate=0.0") == 0


def test_predictions_name_deferred_rows_beside_the_probabilities_of_the_model(run, folder, tmp_path):
    predict_run(run, folder / "loans.csv", tmp_path / "said.csv", probabilities=True)
    found = pd.read_csv(tmp_path / "said.csv")
    assert set(found["prediction"]) == {"no", "yes", "defer"}
    assert list(found.columns) == ["prediction", "probability no", "probability yes"]
    np.testing.assert_allclose(found["probability no"] + found["probability yes"], 1)
    is_deferred = found["prediction"] == "defer"
    assert found["probability yes"][is_deferred].min() > found["probability yes"].min()
    assert found["probability yes"][is_deferred].max() < found["probability yes"].max()


def test_an_audit_knows_who_is_deferred(run, folder, held_rows):
    found = audit_run(run, folder / "loans.csv")
    losses = found.result.losses()
    assert losses.defer_rate > 0
    assert f"deferred: {losses.defer_rate:.4f} of the rows; error {losses.decided_error:.4f} among the others" in str(
        found
    )
    part, model = held_rows[0], run.model()
    looked = {"sensitive_features": part.groups, "baseline": part.baseline}
    (audit,) = audit_run(run, goals=["defer_rate <= 0.2"]).audit
    assert audit.estimate == pytest.approx(model.decision_proba(part.X, **looked)[:, 2].mean())
    assert run.result().goals[0].on("test").estimate == audit.estimate
    (drawn,) = audit_run(run, goals=["defer_rate <= 0.2"], drawn=True).audit
    assert drawn.estimate == np.mean(model.predict(part.X, **looked) == "defer")
    assert (
        next(iter(numbers(run, drawn=True).where(quantity="goal estimate", settings="goal 1"))).value == drawn.estimate
    )


@pytest.mark.slow
def test_rebalance_takes_another_cost_or_none(run, tmp_path):
    dear = rebalance_run(run, defer_cost=0.9, output=tmp_path / "dear")
    assert one(dear, "defer rate") < one(run, "defer rate")
    assert dear.result().commands == ["counterpoise fit --from run --output dear --defer-cost 0.9"]
    assert open_run(dear.folder).settings.method.parameters["deferral"] == {"cost": 0.9}
    never = rebalance_run(dear, defer_cost="never", goals=["recall >= 0.4"], output=tmp_path / "never")
    assert "deferral" not in never.settings.method.parameters
    assert np.isnan(never.result().losses().defer_rate)
    assert all(rule.lower is None for rule in never.model().rules_)
    assert not re.search("deferr|left to a person", write_report(never.folder).read_text(encoding="utf-8"))
    with pytest.raises(ValueError, match=r"defer_rate <= 0.1 uses deferred rows, but no row is deferred"):
        rebalance_run(run, defer_cost="never", output=tmp_path / "wrong")
    with pytest.raises(TypeError, match=r"defer_cost must be a number in \[0, 1\], the loss of a row .* got 'often'"):
        rebalance_run(run, defer_cost="often", output=tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()


@pytest.mark.slow
def test_labels_that_are_numbers_are_written_beside_the_text(folder, tmp_path):
    frame = pd.read_csv(folder / "loans.csv")
    frame["default"] = (frame["default"] == "yes").astype(int)
    frame.drop(columns="last_year").to_csv(tmp_path / "loans.csv", index=False)
    text = FILE.replace('positive = "yes"\n', "").replace('baseline = "last_year"\n', "")
    text = text.replace('confidence = "none"\n', "")
    changed = text.replace("alpha = 0.3\n", "").replace("{ cost = 0.2 }", '{ cost = 0.2, label = "ask" }')
    (tmp_path / "run.toml").write_text(changed)
    run = fit_run(tmp_path / "run.toml")
    predict_run(run, tmp_path / "loans.csv", tmp_path / "said.parquet", probabilities=True)
    predict_run(run, tmp_path / "loans.csv", tmp_path / "said.csv", probabilities=True)
    found = pd.read_parquet(tmp_path / "said.parquet")
    assert set(found["prediction"]) == {"0", "1", "ask"}
    assert found["prediction"].tolist() == pd.read_csv(tmp_path / "said.csv")["prediction"].tolist()
    assert [margin.value < margin.bound for margin in run.model().margins_] == [True, True]  # of the mixture
    losses = one(run, "error") + COST * one(run, "defer rate")
    assert one(run, "cvar", alpha=1.0) == pytest.approx(losses, abs=1e-12)


@pytest.mark.slow
def test_one_rule_defers_too_and_without_draws(folder, tmp_path):
    text = FILE.replace('decision = "sticky"\n', "").replace("alpha = 0.3", "alpha = 1.0")
    text = text.replace('"loans.csv"', json.dumps(str(folder / "loans.csv")))
    (tmp_path / "one.toml").write_text(text)
    run = fit_run(tmp_path / "one.toml")
    part = load_data(run.settings, tmp_path).splits["test"]
    assert 0 < one(run, "defer rate", split="train") <= 0.1 + 1e-9
    said = run.model().predict(part.X, sensitive_features=part.groups, baseline=part.baseline)
    lost = np.where(said == "defer", COST, said != part.y)
    assert one(run, "cvar", alpha=1.0) == pytest.approx(lost.mean(), abs=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (DEFERRAL, "", r"goals\[1\]: expected a goal .* uses deferred rows, but no row is deferred"),
        (DEFERRAL, "deferral = { cost = 1.5 }", r"cost of Deferral must lie in \[0, 1\], the loss of a row"),
        (DEFERRAL, 'deferral = { cost = "x" }', r"method.parameters: cost of Deferral must be a number in \[0, 1\]"),
        (DEFERRAL, 'deferral = { label = "ask" }', "deferral must have the key 'cost'; got {'label': 'ask'}"),
        (DEFERRAL, 'deferral = { cost = 0.2, label = ["a"] }', "label .*must be a text or a number"),
        (DEFERRAL, "deferral = { cots = 0.2 }", "deferral: unknown key 'cots'. Did you mean 'cost'"),
        (DEFERRAL, "deferral = 0.2", r"deferral is a table, as in deferral = \{ cost = 0.2 \}; got 0.2"),
        ('name = "goals"\nmodels = [{ name = "logistic" }]', 'name = "lpboost"', "unknown parameter of lpboost"),
        (
            "max_difference(defer_rate, by=sex) <= 0.02",
            "decided_error_rate(sex=F) <= decided_error_rate(sex=M)",
            "among the decided|not linear",
        ),
    ],
)  # fmt: skip
def test_wrong_uses_are_refused_before_anything_is_read(old, new, message, tmp_path):
    assert old in FILE
    (tmp_path / "goals.toml").write_text(FILE.replace(old, new))
    with pytest.raises(GoalsFileError, match=message):
        read_goals_file(tmp_path / "goals.toml")


@pytest.mark.parametrize("label", ["yes", " No "])
def test_a_label_that_could_be_taken_for_a_class_is_refused_before_training(label, folder, tmp_path):
    text = FILE.replace(DEFERRAL, f'deferral = {{ cost = 0.2, label = "{label}" }}')
    (tmp_path / "goals.toml").write_text(text.replace('"loans.csv"', json.dumps(str(folder / "loans.csv"))))
    with pytest.raises(DataError, match=r"method\.parameters\.deferral: label must not be mistaken for a class"):
        fit_run(tmp_path / "goals.toml")
    assert not (tmp_path / "goals" / "model.cp").exists()


def test_the_first_file_of_a_user_names_deferral(folder):
    text = starting_file(folder / "loans.csv", "default", groups=["sex"])
    (line,) = [line for line in text.splitlines() if "deferral" in line]
    (folder / "first.toml").write_text(text.replace(line, line.removeprefix("# ")))
    assert read_goals_file(folder / "first.toml").method.parameters["deferral"] == {"cost": 0.2}


def test_the_page_tells_who_is_deferred_and_what_it_buys(run, tmp_path):
    page = (
        write_report(run.folder, tmp_path / "page.html").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    )
    left, decided = one(run, "defer rate"), one(run, "decided error")
    assert f"{100 * left:.1f} % of the test rows are left to a person" in page
    assert f"decides {100 * decided:.1f} % of the others wrongly" in page
    assert "a deferred row counts as 0.2 of a wrong one" in page
    assert "Deferred test rows by group" in page
    assert "Best mixtures for other limits, on the test rows" in page
    tail = one(run, "deferral tail", settings="rate=0.05")
    assert re.search(rf"<th scope=\"row\">5\.0 %</th>\s*<td[^>]*>[^<]*</td>\s*<td[^>]*>{100 * tail:.1f} %</td>", page)
    assert "deferred positives" in page
    assert "score; shaded: deferred" in page
    assert "; deferred above" in page
