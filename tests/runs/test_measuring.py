"""What is measured of other objectives than the tail, and what is said where nothing is."""

import numpy as np
import pandas as pd
import pytest
from run_numbers import numbers

from counterpoise.report import write_report
from counterpoise.runs import fit_run, rebalance_run
from counterpoise.runs.data import load_data
from counterpoise.runs.result import ObjectiveResult
from counterpoise.runs.tables import audit_table

POOL = """
alpha = {alpha}
goals = ["recall >= 0.7", "precision >= 0.5"]
[data]
files = "{folder}/loans.csv"
target = "paid"
drop = ["weight"]
baseline = "today"
groups = "sex"
[method]
name = "pool"
{more}
[[method.models]]
name = "logistic"
[[method.models]]
name = "tree"
parameters = {{max_depth = 2}}
[[method.models]]
name = "naive_bayes"
"""


@pytest.fixture(scope="module")
def fit_pool(tmp_path_factory, loans_folder):
    """Return a function that fits a pool and returns the run and its data; equal runs are fitted once."""
    known = {}

    def fit(more="", alpha=1.0):
        if (more, alpha) not in known:
            path = tmp_path_factory.mktemp("pool") / "goals.toml"
            path.write_text(POOL.format(folder=loans_folder, more=more, alpha=alpha))
            run = fit_run(path)
            known[more, alpha] = run, load_data(run.settings, loans_folder)
        return known[more, alpha]

    return fit


def objective(run, method, split):
    (found,) = numbers(run).where(quantity="objective", method=method, split=split)
    return found.value


def test_a_rate_is_measured_on_every_split_for_all_who_decide(fit_pool):
    run, data = fit_pool('parameters = {objective = "false_positive_rate"}')
    model = run.model()
    for split, part in data.splits.items():
        said = model.predict_proba(part.X)[part.y == "no", 1].mean()
        first = (model.estimators_[0].predict(part.X) == "yes")[part.y == "no"].mean()
        today = (part.baseline == "yes")[part.y == "no"].mean()
        assert objective(run, "mixture", split) == pytest.approx(said)
        assert objective(run, "first model", split) == pytest.approx(first)
        assert objective(run, "deployed model", split) == pytest.approx(today)
    assert objective(run, "mixture", "validation") == pytest.approx(model.value_)
    result = run.result()
    assert result.objective == ObjectiveResult(kind="rate", text="false_positive_rate")
    assert result.method == "mixture of a pool of 3 models"
    assert result.why == {"segments": "alpha is 1, so there is no tail"}
    assert result.met_on == "validation"


@pytest.mark.parametrize("aim", ["false_positive_rate", "worst-group", "cvar"])
def test_the_frontier_is_that_of_the_objective_and_has_the_asked_bound(fit_pool, aim):
    run, _ = fit_pool(f'parameters = {{objective = "{aim}"}}')
    for goal, asked in (("goal 1", 0.7), ("goal 2", 0.5)):
        found = [row for row in numbers(run).where(quantity="frontier value") if row.settings.startswith(goal)]
        values = {float(row.settings.partition("bound=")[2]): row.value for row in found}
        assert len(values) == len(found) >= 2
        assert values[asked] == pytest.approx(run.model().value_, abs=2e-4)
        assert (np.diff([values[bound] for bound in sorted(values)]) >= -2e-4).all()  # at least: tighter to the right
        assert {row.alpha for row in found} == {1.0 if aim == "cvar" else None}
        assert {row.split for row in found} == {"validation"}


def test_the_worst_group_is_measured(fit_pool):
    run, data = fit_pool('parameters = {objective = "worst-group"}')
    model = run.model()
    for split, part in data.splits.items():
        wrong = 1 - model.predict_proba(part.X)[np.arange(len(part)), (part.y == "yes").astype(int)]
        groups = [part.groups["sex"] == sex for sex in "FM"]
        assert objective(run, "mixture", split) == pytest.approx(max(wrong[rows].mean() for rows in groups))
        today = max((part.baseline != part.y)[rows].mean() for rows in groups)
        assert objective(run, "deployed model", split) == pytest.approx(today)
    assert objective(run, "mixture", "validation") == pytest.approx(model.value_)
    assert run.result().objective == ObjectiveResult(kind="worst-group")


def test_the_tail_has_no_other_objective_and_is_measured_at_round_fractions(fit_pool):
    run, _ = fit_pool(alpha=0.15)
    assert len(numbers(run).where(quantity="objective")) == 0
    assert run.result().objective == ObjectiveResult(kind="cvar")
    alphas = {row.alpha for row in numbers(run).where(quantity="cvar")}
    assert {0.01, 0.05, 0.1, 0.15, 0.2, 0.5, 1.0} <= alphas


@pytest.mark.slow
def test_a_risk_is_measured_on_every_split_and_kept_where_only_the_goals_change(fit_pool, tmp_path):
    text = "0.5 * Mean() + 0.5 * WorstGroup('sex')"
    run, data = fit_pool(f'parameters = {{objective = "{text}"}}')
    other = rebalance_run(run, goals=["recall >= 0.6"], output=tmp_path / "other")
    for found in (run, other):
        text = "0.5 * Mean() + 0.5 * WorstGroup(columns='sex')"
        assert found.result().objective == ObjectiveResult(kind="risk", text=text)
        for split, part in data.splits.items():
            losses = 1 - found.model().predict_proba(part.X)[np.arange(len(part)), (part.y == "yes").astype(int)]
            worst = max(losses[part.groups["sex"] == sex].mean() for sex in ("F", "M"))
            assert objective(found, "mixture", split) == pytest.approx((losses.mean() + worst) / 2)
    assert "WorstGroup" in write_report(other.folder).read_text(encoding="utf-8")


def test_goals_that_are_judged_only_have_no_frontier(fit_pool):
    run, _ = fit_pool("enforce_goals = false")
    result = run.result()
    assert result.why["frontier"] == "the goals are only audited; the mixture was chosen without them"
    assert result.met_on == ""


def test_a_model_trained_inside_goals_has_its_rate(goals_file):
    path = goals_file(
        replace={'[method]\nname = "adalpboost"\nparameters.n_estimators = 8': '[method]\nname = "constrained"'}
    )
    run = fit_run(path)
    result, results = run.result(), numbers(run)
    assert result.objective == ObjectiveResult(kind="rate", text="error_rate")
    assert result.why["frontier"].startswith("it needs a mixture")
    for split in ("train", "test"):
        (error,) = results.where(quantity="error", method="mixture", split=split)
        assert objective(run, "mixture", split) == pytest.approx(error.value)
    assert len(results.where(quantity="objective", method="deployed model")) == 0


@pytest.mark.parametrize(
    "method",
    ['name = "adaboost"\nenforce_goals = false', 'name = "adalpboost"\nenforce_goals = false\n{mixture}'],
)
def test_what_is_not_chosen_has_an_aim_of_its_own(goals_file, method):
    parameters = "n_estimators = 4" + (', mixture = "average"' if "{mixture}" in method else "")
    method = method.replace("{mixture}", "") + f"\nparameters = {{ {parameters} }}"
    run = fit_run(
        goals_file(replace={'[method]\nname = "adalpboost"\nparameters.n_estimators = 8': f"[method]\n{method}"})
    )
    assert run.result().objective == ObjectiveResult(kind="own")
    assert run.result().met_on == ""
    assert len(numbers(run).where(quantity="objective")) == 0


def test_more_than_two_classes_have_errors_by_group_and_reasons_for_what_is_missing(tmp_path):
    from sklearn.datasets import load_iris  # noqa: PLC0415 - heavy

    X, y = load_iris(return_X_y=True, as_frame=True)
    X.assign(kind=np.array(["setosa", "versicolor", "virginica"])[y]).to_csv(tmp_path / "iris.csv", index=False)
    data = 'alpha = 0.1\n[data]\nfiles = "iris.csv"\ntarget = "kind"\n'
    text = data + '[method]\nname = "adalpboost"\nparameters.n_estimators = 4\n'
    (tmp_path / "iris.toml").write_text(text)
    run = fit_run(tmp_path / "iris.toml")
    result = run.result()
    (rate,) = numbers(run).where(quantity="group error_rate", settings="group 0", split="test")
    assert 0 <= rate.value < 1
    assert result.why == {
        "frontier": "no goals were set",
        "segments": "30 rows are too few to find segments",
    }
    assert result.data.lines == ["iris: 90 train, 30 validation, 30 test rows; target kind.", "Features: 4 numeric."]


@pytest.mark.parametrize("unit", ["1", "0.000000000001", "1000000000000"])
def test_a_goal_is_missed_in_any_unit_and_rounding_never_misses_it(unit, tmp_path):
    rows = pd.DataFrame({"y": [0, 1] * 30, "said": [0, 1, 1, 1, 1, 1] * 10})
    rows.to_csv(tmp_path / "t.csv", index=False)
    cost = f"{unit} * error_rate <= {float(unit) / 10:.20g}"
    equal = f"{unit} * error_rate <= {float(unit) / 3 * (1 - 1e-15):.20g}"
    found = audit_table(tmp_path / "t.csv", target="y", prediction="said", goals=[cost, equal])
    missed = [goal.on("test").violation for goal in found.result.goals]
    assert missed == pytest.approx([(1 / 3 - 0.1) * float(unit), 0.0], abs=0)


def test_rates_are_those_of_groups_by_each_column_and_of_their_intersections(tmp_path):
    table = pd.DataFrame(
        {"y": [0, 1] * 4, "said": [0, 1, 1, 1] * 2, "sex": list("FFMM") * 2, "age": ["old"] * 4 + ["young"] * 4}
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    found = audit_table(
        tmp_path / "t.csv", target="y", prediction="said", goals=["recall >= 0.5"], groups=("sex", "age")
    )
    rates = {group.text: group.rate("error_rate").value for group in found.result.groups}
    crossed = {f"sex={sex}, age={age}": error for sex, error in (("F", 0.0), ("M", 0.5)) for age in ("old", "young")}
    assert rates == {"all": 0.25, "sex=F": 0.0, "sex=M": 0.5, "age=old": 0.25, "age=young": 0.25} | crossed
