"""Weighted rows in a run: the goals file names the most that a row can weigh, or goals are refused before the fit."""

import json

import pytest
from run_numbers import numbers

from counterpoise.runs import DataError, GoalsFileError, audit_run, fit_run, read_goals_file

PLAIN = 'drop = ["today", "weight"]'
WEIGHTED = 'drop = ["today"]\nweights = "weight"'
LIMITED = f"{WEIGHTED}\nlargest_weight = 5"


@pytest.fixture(scope="module")
def run(tmp_path_factory, loans_folder):
    folder = tmp_path_factory.mktemp("weighted")
    text = (
        'goals = ["recall >= 0.5 with confidence 0.8", "coverage(mail) <= 0.9"]\n[data]\n'
        f'files = "{loans_folder}/loans.csv"\ntarget = "paid"\n{LIMITED}\n[datasets.mail]\n'
        f'files = "{loans_folder}/mail.csv"\nlabelled = false\nlargest_weight = 3\n'
        '[method]\nname = "adalpboost"\nparameters.n_estimators = 3\n'
    )
    (folder / "goals.toml").write_text(text)
    return fit_run(folder / "goals.toml")


def test_goals_on_weighted_rows_need_the_limit_before_anything_is_fitted(goals_file):
    path = goals_file(replace={PLAIN: WEIGHTED})
    told = r"The goal recall >= 0.5 cannot be measured on the train rows: Dataset 'train' needs largest_weight"
    with pytest.raises(DataError, match=told):
        fit_run(path)
    assert not (path.parent / "goals").exists()
    no_goals = read_goals_file(goals_file(replace={PLAIN: WEIGHTED, '"recall >= 0.5"': ""}))
    assert no_goals.data.largest_weight is None


def test_the_limit_is_in_the_audit_the_results_and_the_report(run):
    audit = audit_run(run).audit
    assert [row.largest_weights for row in audit] == [(("train", 5.0),), (("mail", 3.0),)]
    assert "no row of train weighs more than 5 and no row of mail weighs more than 3." in str(audit)
    assert [line for line in run.result().data.lines if "weighted" in line] == [
        "Rows are weighted by weight; the largest weight in the population is 5.",
        "Rows of mail are weighted by weight; the largest weight in the population is 3.",
    ]
    assert json.loads((run.folder / "settings.json").read_text())["data"]["largest_weight"] == 5


RULES = (
    '[method]\nmodels = [{ name = "logistic" }, { name = "naive_bayes" }]\n'
    'parameters = { cv = 2, decision = "sticky" }\n'
)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rounds", "rules"])
def test_the_errors_of_models_are_weighted_as_that_of_their_mixture_is(method, run, loans_folder, tmp_path):
    """The mixture draws them by their shares: its expected error is theirs, by their shares."""
    if method == "rules":
        goals = '"recall >= 0.8", "positive_rate <= 0.6"'
        data = f'[data]\nfiles = "{loans_folder}/loans.csv"\ntarget = "paid"\n{LIMITED}\n'
        (tmp_path / "goals.toml").write_text(f"goals = [{goals}]\nalpha = 0.5\n{data}{RULES}")
        run = fit_run(tmp_path / "goals.toml")
    found = numbers(run)
    shares = {row.method: row.value for row in found.where(quantity="share")}
    errors = {row.method: row.value for row in found.where(quantity="error", split="test") if row.method in shares}
    (error,) = found.where(quantity="error", split="test", method="mixture")
    assert sum(shares[name] * errors[name] for name in shares) == pytest.approx(error.value, abs=1e-9)


def test_another_limit_can_be_tried_on_a_finished_run(run, loans_folder):
    for path in (None, loans_folder / "more.csv"):
        near, far = (audit_run(run, path, largest_weight=most).audit for most in (3, 50))
        assert near[0].largest_weights == (("train", 3.0),)
        assert near[0].margin > far[0].margin
    with pytest.raises(ValueError, match="largest_weight must be finite and above 0"):
        audit_run(run, largest_weight=0)


def test_rows_heavier_than_the_limit_are_refused(run, loans, tmp_path):
    loans(50).assign(weight=range(50)).to_csv(tmp_path / "heavy.csv", index=False)
    told = r"Column 'weight' of .*heavy.csv must hold weights of at most 5 \(largest_weight\); row 50 holds 49\."
    with pytest.raises(DataError, match=told):
        audit_run(run, tmp_path / "heavy.csv")


def test_a_limit_without_weights_means_nothing(goals_file, loans_folder):
    path = goals_file(replace={PLAIN: f"{PLAIN}\nlargest_weight = 5"})
    with pytest.raises(GoalsFileError, match=r"goals.toml, line 8, data.largest_weight: expected data.weights too"):
        read_goals_file(path)
    mail = f'[datasets.mail]\nfiles = "{loans_folder}/mail.csv"\nlargest_weight = 5\n[method]'
    with pytest.raises(GoalsFileError, match=r"datasets.mail.largest_weight: expected data.weights too"):
        read_goals_file(goals_file(replace={"[method]": mail}))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("largest_wieght = 5", r"unknown key 'largest_wieght' in the table data. Did you mean 'largest_weight'\?"),
        ("largest_weight = 0", "data.largest_weight: expected greater than 0; got 0"),
        ("largest_weight = inf", "data.largest_weight: expected a finite number; got inf"),
    ],
)
def test_a_limit_that_is_none_is_told(goals_file, line, told):
    with pytest.raises(GoalsFileError, match=told):
        read_goals_file(goals_file(replace={PLAIN: f"{WEIGHTED}\n{line}"}))


def test_equal_weights_need_nothing(goals_file, loans, tmp_path):
    loans().assign(weight=0.3).to_csv(tmp_path / "loans.csv", index=False)
    head, method = 'goals = ["recall >= 0.5"]\n[data]\nfiles = "loans.csv"\ntarget = "paid"\n', "tree"
    found = []
    for name, columns in (("plain", PLAIN), ("same", WEIGHTED)):
        tail = f'\n[method]\nname = "{method}"\nenforce_goals = false\n[method.parameters]\nmax_depth = 3\n'
        found.append(audit_run(fit_run(goals_file(head + columns + tail, f"{name}.toml"))).audit)
    assert found[0] == found[1]


def test_the_trained_goals_use_the_limit_too(goals_file):
    """``constrained`` is fitted inside them, on weighted rows."""
    goals = {'"recall >= 0.5"': '"recall >= 0.5 with confidence 0.8"', PLAIN: LIMITED}
    method = {'[method]\nname = "adalpboost"\nparameters.n_estimators = 8': '[method]\nname = "constrained"'}
    model = fit_run(goals_file(replace=goals | method)).model()
    assert str(model[-1].goals_[0]) == "recall >= 0.5 with confidence 0.8"


def test_rows_of_a_file_without_the_weights_are_not_measured_as_if_all_weighed_the_same(run, loans, tmp_path):
    path = tmp_path / "plain.csv"
    loans(40, seed=5).drop(columns="weight").to_csv(path, index=False)
    with pytest.raises(DataError, match=r"plain\.csv has no column 'weight', which holds the weights of its rows"):
        audit_run(run, path)
