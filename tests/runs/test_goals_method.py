"""The method ``goals`` of a goals file: strong models, rules chosen inside goals, margin for the audit."""

import re

import numpy as np
import pytest
from run_numbers import numbers
from sklearn.metrics import roc_auc_score

from counterpoise.cli import main
from counterpoise.datasets import loans
from counterpoise.goals import InfeasibleGoals
from counterpoise.report import write_report
from counterpoise.runs import DataError, fit_run, monitor_run, open_run, predict_run, rebalance_run, starting_file
from counterpoise.runs.data import load_data
from tests.inside import kept_scores, kept_table

N_ROWS = 1200
FILE = """
seed = 1
goals = [{goals}]
{more}
[data]
files = "loans.csv"
target = "default"
positive = "yes"
groups = ["sex"]
baseline = "last_year"
[splits]
test = 0.4
[method]
models = [{{ name = "logistic" }}, {{ name = "naive_bayes" }}]
parameters = {{ cv = 3{parameters} }}
"""
RECALL = '"recall >= 0.7"'
CHURN = '"churn <= 0.3"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table of loans."""
    folder = tmp_path_factory.mktemp("loans")
    loans(N_ROWS, random_state=0)[0].to_csv(folder / "loans.csv", index=False)
    return folder


@pytest.fixture
def fit(folder):
    """Return a function that writes a goals file and fits it, and keeps what is said."""

    def fit(name, goals=RECALL, more="", parameters="", replace=("", "")):
        text = FILE.format(goals=goals, more=more, parameters=parameters).replace(*replace)
        (folder / f"{name}.toml").write_text(text)
        said, told = [], []
        run = fit_run(folder / f"{name}.toml", on_event=said.append, tell=told.append)
        return run, said, told

    return fit


@pytest.fixture(scope="module")
def run(folder):
    """Return a run inside two goals, which may look at last year's answers."""
    text = FILE.format(goals=f"{RECALL}, {CHURN}", more="", parameters=', by = "baseline"')
    (folder / "run.toml").write_text(text)
    return fit_run(folder / "run.toml")


def one(run, quantity, method="mixture", split="train", settings=""):
    (row,) = numbers(run).where(quantity=quantity, method=method, split=split, settings=settings)
    return row.value


def test_goals_hold_on_scores_of_models_that_did_not_see_the_rows(run):
    model = run.model()
    assert all(check.holds for check in model.check_goals())
    assert len(model.estimators_) == 2
    scores, labels = kept_scores(model), kept_table(model).y
    groups = model.groups_.codes_of_each(model.family_.selection_data.answers.tables)["train"]
    lost = np.zeros(labels.size)
    for rule, share in zip(model.rules_, model.mixture_, strict=True):
        said = scores[:, rule.model] > np.array([*rule.thresholds.values()])[groups]
        lost += share * (said != (labels == "yes"))
    assert one(run, "error") == pytest.approx(lost.mean(), abs=1e-12)


def test_plain_training_is_the_first_model_at_its_usual_threshold(run, folder):
    model, frame = run.model(), loans(N_ROWS, random_state=0)[0]
    train = kept_scores(model)[:, 0] > 0.5
    labels = kept_table(model).y == "yes"
    assert one(run, "error", "first model") == pytest.approx((train != labels).mean(), abs=1e-12)
    part = load_data(run.settings, folder).splits["test"]  # rows that no model saw: the one of all others decides
    wrong = np.mean(model.estimators_[0].predict(part.X) != part.y)
    assert one(run, "error", "first model", "test") == pytest.approx(wrong, abs=1e-12)
    assert one(run, "error", "deployed model", "test") == np.mean(part.baseline != part.y)
    assert frame.shape == (N_ROWS, 11)


def test_the_table_of_results_has_answers_and_scores(run):
    labels = run.model().family_.selection_data.answers.tables["train"].y
    counts = [row.value for row in numbers(run) if row.quantity.startswith("scores ")]
    assert sum(counts) == labels.size  # both classes, in both groups
    cells = [
        one(run, f"confusion {a} {b}", split="test") for a in ("true", "false") for b in ("positives", "negatives")
    ]
    assert sum(cells) == one(run, "rows", "data", "test")
    assert 0.5 < one(run, "auc", "first model", "test") < 1


@pytest.mark.slow
def test_scores_are_judged_by_weighted_rows(fit, folder):
    weighed = 'drop = "last_year"\nweights = "age"\nlargest_weight = 120'
    run, _, _ = fit("weighed", replace=('baseline = "last_year"', weighed))
    part = load_data(run.settings, folder).splits["test"]
    scores, is_positive = run.model().rows_to_decide(part.X).output_of(0), part.y == "yes"
    expected = roc_auc_score(is_positive, scores, sample_weight=part.weights)
    assert one(run, "auc", "first model", "test") == pytest.approx(expected, abs=1e-12)
    assert expected != pytest.approx(roc_auc_score(is_positive, scores), abs=1e-6)
    expected = np.average((scores - is_positive) ** 2, weights=part.weights)
    assert one(run, "brier score", "first model", "test") == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
def test_other_goals_after_impossible_ones_train_nothing(fit):
    with pytest.raises(InfeasibleGoals, match="No single rule meets") as caught:
        fit("hard", f'{RECALL}, "coverage <= 0.1"')
    assert "The trained models are kept" in "".join(caught.value.__notes__)
    run, said, told = fit("hard", RECALL)
    assert said[0].startswith("resumes")
    assert {progress.part for progress in told} == {"choosing decision rules", "measuring"}
    assert run.model().value_ > 0
    others = {"choosing decision rules", "measuring"}
    told = [progress for progress in fit("fresh", RECALL)[2] if progress.part not in others]
    assert [progress.done for progress in told] == list(range(1, 21))
    folds = [f"fold {number} of 3" for number in (1, 2, 3)]
    rows = [*folds, *(f"{fold}, fewer rows" for fold in folds for _ in range(2)), "all rows"]
    expected = sorted(f"{model}, {part}" for model in ("logistic regression", "naive Bayes") for part in rows)
    assert sorted(progress.part.rpartition(" in ")[0] for progress in told) == expected


@pytest.mark.slow
def test_margins_for_new_rows_stand_in_the_result_and_the_report(fit):
    run, _, _ = fit("margins", '"recall >= 0.6"', "confidence = 0.8")
    result = run.result()
    (entry,) = result.goals
    assert result.confidence == 0.8
    assert entry.margin.value > 0.6
    assert entry.margin.low < entry.margin.value < entry.margin.high
    assert result.margin_cost >= 0
    assert [goal.bound for goal in run.model().goals_] == [0.6]
    page = write_report(run.folder).read_text(encoding="utf-8")
    assert f"Decisions aim at {entry.margin.value:.4f} on the rows they were chosen on" in page
    assert (
        "all goals together, with a confidence of 0.8 (reached by the margins; the audit is a separate check)" in page
    )
    again = rebalance_run(open_run(run.folder), goals=["recall >= 0.5"], output=run.folder.parent / "less")
    assert again.result().goals[0].margin.value > 0.5


@pytest.mark.slow
def test_without_a_confidence_goals_are_just_met(fit):
    run, _, _ = fit("plain", '"recall >= 0.6"', 'confidence = "none"')
    assert run.result().goals[0].margin is None
    assert np.isnan(run.result().margin_cost)
    assert run.model().margins_ == ()


@pytest.mark.slow
def test_a_confidence_that_is_out_of_reach_is_said_and_the_fit_goes_on(fit):
    run, said, _ = fit("part", '"recall >= 0.75", "false_positive_rate <= 0.3"', "confidence = 0.999")
    assert any("confidence of 0.999" in line for line in said)
    assert np.isnan(run.result().confidence)
    assert all(check.holds for check in run.model().check_goals())


def test_what_rules_may_not_look_at_is_refused_before_training(fit, folder):
    with pytest.raises(DataError, match=r"method.parameters.by: .*'sez'.*Did you mean 'sex'"):
        fit("by", parameters=', by = "sez"')
    assert not (folder / "by").exists()


def test_init_writes_what_fits_the_number_of_classes(folder):
    two, many = (starting_file(folder / "loans.csv", target, groups=["sex"]) for target in ("default", "job"))
    assert 'name = "goals"' in two
    assert '\n# baseline = "COLUMN"    # predictions of the deployed model' in two
    assert '# ["last_year"] hold the classes of the target. They are features' in two
    assert 'positive = "yes"    # the class that goals such as recall refer to' in two
    assert '# by = ["sex"]' in two
    assert 'name = "goals"' in many
    assert '# "every_class(recall) >= 0.7"' in many
    assert '# "max_difference(error_rate, by=sex, min_rows=100) <= 0.05"' in many
    assert "positive = " not in many
    assert "\nconfidence = 0.9    # with which they hold together on new rows" in two


def test_decisions_that_look_at_columns_read_them_from_the_file(run, folder):
    said = folder / "said.csv"
    assert predict_run(run, folder / "loans.csv", said) == N_ROWS
    assert set(said.read_text().split()[1:]) == {"yes", "no"}


@pytest.mark.slow
def test_lightgbm_trains_where_it_is_installed(fit):
    pytest.importorskip("lightgbm")
    trees = 'models = [{ name = "lightgbm", parameters = { n_estimators = 20, num_leaves = 7 } }]'
    run, _, _ = fit("lightgbm", replace=('models = [{ name = "logistic" }, { name = "naive_bayes" }]', trees))
    assert all(check.holds for check in open_run(run.folder).model().check_goals())


@pytest.mark.slow
def test_ways_beyond_the_thresholds_of_plain_models_work_as_printed(fit):
    parity = '"abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.01", "recall >= 0.7"'
    rate = ', "positive_rate <= 0.4"'
    with pytest.raises(InfeasibleGoals) as caught:
        fit("apart", parity + rate)
    (way,) = [note for note in caught.value.__notes__ if note.startswith("If decisions may use these columns")]
    (words,) = re.findall(r"by = \[.*?\]", way)
    assert fit("apart", parity + rate, parameters=f", {words}")[0].model().groups_.by == ("sex",)


@pytest.fixture(scope="module")
def tail(run, tmp_path_factory):
    """Return the mixture of the run chosen anew for a tail, within a budget that its first goal alone would use up."""
    asked = {"alpha": 0.5, "budget": 0.005, "decision": "sticky"}
    return rebalance_run(run, **asked, output=tmp_path_factory.mktemp("elsewhere") / "tail")


@pytest.mark.slow
def test_the_command_of_a_run_chosen_anew_says_all_that_was_asked(run, tail, tmp_path):
    told = ["counterpoise fit --from run --output tail --alpha 0.5 --budget 0.005 --decision sticky"]
    assert tail.result().commands == told
    other = tmp_path / "other"
    assert main(["fit", "--from", str(run.folder), "-o", str(other), "--by", "", "--budget", "0.25", "--quiet"]) == 0
    assert open_run(other).result().commands == ["counterpoise fit --from run --output other --budget 0.25 --by ''"]
    assert open_run(other).model().groups_.by == ()


@pytest.mark.slow
def test_the_report_of_a_budget_has_the_aimed_bound_and_says_what_the_goals_cost(tail):
    model = tail.model().rebalance(confidence=None)  # the frontier is without margins
    rows = [row for row in numbers(tail).where(quantity="frontier value") if row.settings.startswith("goal 1")]
    values = {float(row.settings.partition("bound=")[2]): row.value for row in rows}
    assert values[0.7] == pytest.approx(model.value_, abs=2e-4)
    without = [model.rebalance(goals=[goal]).value_ for goal in reversed(model.goals_)]
    assert values[min(values)] == pytest.approx(without[0], abs=2e-4)
    assert without[0] < without[1]
    text = " ".join(write_report(tail.folder).read_text(encoding="utf-8").split())
    least = f"{100 * without[0]:.1f} %"
    assert f"Goal 1 costs most: without it the share wrong of the worst-off 50 % could be {least}" in text
    assert "0.7000 (requested)" in text


@pytest.mark.slow
def test_the_goals_file_of_a_mixture_chosen_anew_fits_from_its_own_folder(tail):
    again = fit_run(tail.folder / "goals.toml")
    assert again.settings.method.parameters == tail.settings.method.parameters
    assert again.model().value_ == pytest.approx(tail.model().value_, abs=2e-4)


@pytest.mark.slow
def test_margins_of_a_run_count_persons(folder):
    frame = loans(400, random_state=0)[0]
    repeated = frame.loc[frame.index.repeat(5)].assign(person=np.repeat(np.arange(400), 5))
    repeated.to_csv(folder / "repeated.csv", index=False)
    text = FILE.format(goals=RECALL, more="", parameters="").replace("loans.csv", "repeated.csv")
    (folder / "persons.toml").write_text(text.replace("[splits]", 'ids = "person"\n[splits]'))
    (folder / "rows.toml").write_text(text.replace("[splits]", 'drop = "person"\n[splits]'))
    by_person, by_row = (fit_run(folder / f"{name}.toml") for name in ("persons", "rows"))
    model = by_person.model()
    kept = model.family_.selection_data
    assert np.bincount(kept.persons).tolist() == [5] * 240
    (own,), (other,) = model.margins_, by_row.model().margins_
    assert own.standard_error > 1.8 * other.standard_error  # five rows that are alike are one
    assert "Persons by person: 240 train, 160 test." in " ".join(by_person.result().data.lines)
    again = rebalance_run(by_person, goals=["recall >= 0.65"], output=folder / "persons again").model()
    np.testing.assert_array_equal(again.family_.selection_data.persons, kept.persons)
    assert again.margins_[0].standard_error > 1.8 * other.standard_error


@pytest.mark.slow
def test_a_run_with_a_goal_that_compares_ratios_is_saved_and_watched(folder):
    apart = "max_difference(precision, by=sex) <= 0.3"
    text = FILE.format(goals=f'{RECALL}, "{apart}"', more="", parameters=', by = ["sex"]')
    (folder / "ratios.toml").write_text(text.replace(', { name = "naive_bayes" }', ""))
    run = fit_run(folder / "ratios.toml")
    model = open_run(run.folder).model()  # saved, and read again
    assert [check.holds for check in model.check_goals()] == [True, True]
    assert [goal.text for goal in run.result().goals] == ["recall >= 0.7", apart]
    assert "compares ratios" in "".join(monitor_run(run, folder / "loans.csv").notes)
