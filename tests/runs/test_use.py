"""A finished run in use: evaluate, predict, certify, rebalance; and the goals file to start from."""

import re

import numpy as np
import pandas as pd
import pytest
from run_numbers import numbers

from counterpoise.goals import InfeasibleGoals
from counterpoise.runs import (
    DataError,
    RunFolderError,
    audit_run,
    fit_run,
    open_run,
    predict_run,
    read_goals_file,
    rebalance_run,
    starting_file,
    write_new,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory, loans_folder):
    folder = tmp_path_factory.mktemp("use")
    (folder / "goals.toml").write_text(
        f'alpha = 0.2\ngoals = ["recall >= 0.5"]\n[data]\nfiles = "{loans_folder}/loans.csv"\ntarget = "paid"\n'
        'drop = ["weight", "today"]\ngroups = "sex"\n[method]\nname = "adalpboost"\nparameters.n_estimators = 8\n'
    )
    return fit_run(folder / "goals.toml")


def test_an_audit_measures_other_rows(run, loans_folder):
    found = audit_run(run, loans_folder / "more.csv")
    frame = pd.read_csv(loans_folder / "more.csv")
    said = predictions(run, loans_folder / "more.csv", loans_folder.parent / "evaluated.csv")["prediction"].to_numpy()
    assert found.rows == "more.csv"
    assert found.result.losses().error == pytest.approx((said != frame["paid"]).mean())
    assert found.audit[0].estimate == pytest.approx((said[frame["paid"] == "yes"] == "yes").mean())
    assert found.as_dict()["goals"][0]["goal"] == "recall >= 0.5"
    assert "loss of the worst 20 %" in str(found)


def predictions(run, data, output, **more):
    assert predict_run(run, data, output, **more) == len(pd.read_csv(data))
    return pd.read_parquet(output) if output.suffix == ".parquet" else pd.read_csv(output)


def test_predict_writes_a_row_for_each_and_sticks_to_its_answers(run, loans_folder, tmp_path):
    csv = predictions(run, loans_folder / "mail.csv", tmp_path / "said.csv")
    parquet = predictions(run, loans_folder / "mail.csv", tmp_path / "said.parquet", probabilities=True)
    assert csv["prediction"].tolist() == parquet["prediction"].tolist()
    np.testing.assert_allclose(parquet[["probability no", "probability yes"]].sum(axis=1), 1)
    ids = predictions(run, loans_folder / "mail.csv", tmp_path / "ids.csv", ids="age")
    assert list(ids.columns) == ["age", "prediction"]


def test_predict_refuses_other_columns_and_unknown_ids(run, loans_folder, tmp_path):
    frame = pd.read_csv(loans_folder / "mail.csv")
    frame.drop(columns="age").to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(DataError, match="has no column 'age'"):
        predict_run(run, tmp_path / "less.csv", tmp_path / "said.csv")
    frame.assign(age="old").to_csv(tmp_path / "texts.csv", index=False)
    with pytest.raises(DataError, match="must hold numbers as in training; row 1 holds 'old'"):
        predict_run(run, tmp_path / "texts.csv", tmp_path / "said.csv")
    with pytest.raises(DataError, match=r"ids: .*mail\.csv has no column 'name'\."):
        predict_run(run, loans_folder / "mail.csv", tmp_path / "said.csv", ids="name")
    assert not (tmp_path / "said.csv").exists()


def test_a_few_rows_get_the_answers_that_they_got_among_all(tmp_path, loans):
    """CSV has no types: the texts 01 and 02 must not become numbers where no other text is near."""
    frame = loans().assign(region=np.resize(["01", "02", "A3"], 600))[["age", "region", "paid"]]
    frame["paid"] = np.where(np.isin(frame["region"], ["01"]), frame["paid"], "no")
    frame.to_csv(tmp_path / "loans.csv", index=False)
    few = frame["region"] != "A3"
    frame[few].to_csv(tmp_path / "few.csv", index=False)
    (tmp_path / "goals.toml").write_text(
        'goals = []\n[data]\nfiles = "loans.csv"\ntarget = "paid"\n'
        '[method]\nname = "adalpboost"\nparameters.n_estimators = 3\n'
    )
    run = fit_run(tmp_path / "goals.toml")
    among_all, alone = (
        predictions(run, tmp_path / f"{name}.csv", tmp_path / f"{name}.parquet", probabilities=True)
        for name in ("loans", "few")
    )
    pd.testing.assert_frame_equal(among_all[few.to_numpy()].reset_index(drop=True), alone)


def test_ids_are_written_as_they_stand_and_known_by_their_value(run, loans, tmp_path):
    frame = loans(50, seed=3).assign(who=[f"{k:03}" for k in range(50)], number=range(50))
    frame.to_csv(tmp_path / "new.csv", index=False)
    frame.to_parquet(tmp_path / "new.parquet")
    by_text = predictions(run, tmp_path / "new.csv", tmp_path / "a.parquet", ids="who")
    assert by_text["who"].tolist() == frame["who"].tolist()
    answers = []
    for end in ("csv", "parquet"):
        predict_run(run, tmp_path / f"new.{end}", tmp_path / "said.csv", ids="number")
        answers.append((tmp_path / "said.csv").read_bytes())
    assert answers[0] == answers[1]
    said = run.model().predict(frame[run.columns.features], ids=frame["number"])
    assert pd.read_csv(tmp_path / "said.csv")["prediction"].tolist() == said.tolist()
    frame.rename(columns={"who": "prediction"}).to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(DataError, match=r"id column of .* must not be named 'prediction'"):
        predict_run(run, tmp_path / "new.csv", tmp_path / "b.csv", ids="prediction")


def test_goals_that_rows_cannot_answer_are_told_with_the_file(run, loans, tmp_path):
    loans().query("paid == 'no'").to_csv(tmp_path / "no.csv", index=False)
    found = audit_run(run, tmp_path / "no.csv").audit
    unanswered = [row for row in found if not row.has_estimate]
    assert unanswered
    assert all(row.verdict == "undecided" and row.note.startswith("There is no row") for row in unanswered)
    with pytest.raises(DataError, match=r"on the test rows: .* name data\.baseline"):
        audit_run(run, goals="churn <= 0.1")


def test_an_audit_refuses_a_deployed_model_that_says_something_else(loans, loans_folder, tmp_path):
    (tmp_path / "goals.toml").write_text(
        f'[data]\nfiles = "{loans_folder}/loans.csv"\ntarget = "paid"\nbaseline = "today"\n'
        '[method]\nname = "stump"\nenforce_goals = false\n'
    )
    loans(60, seed=5).assign(today="perhaps").to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(DataError, match=r"Column 'today' of .*new\.csv must hold the classes .* it holds 'perhaps'"):
        audit_run(fit_run(tmp_path / "goals.toml"), tmp_path / "new.csv")


def test_an_audit_refuses_rows_without_labels_or_with_others(run, loans_folder, tmp_path):
    with pytest.raises(DataError, match="has no column 'paid'"):
        audit_run(run, loans_folder / "mail.csv")
    pd.read_csv(loans_folder / "more.csv").assign(paid="perhaps").to_csv(tmp_path / "odd.csv", index=False)
    with pytest.raises(DataError, match=r"must hold the classes .* it holds 'perhaps'"):
        audit_run(run, tmp_path / "odd.csv")


def test_an_audit_is_of_the_runs_own_test_rows_or_others(run, loans_folder):
    own = audit_run(run).audit
    (row,) = numbers(run).where(quantity="goal low", method="mixture", split="test", settings="goal 1")
    assert own[0].low == pytest.approx(row.value)
    other = audit_run(run, loans_folder / "more.csv", confidence=0.8, goals=["recall(sex=F) >= 0.5"]).audit
    assert other.confidence == pytest.approx(0.8)
    assert str(other[0].goal.with_confidence(None)) == "recall(sex=F) >= 0.5"


def test_an_audit_without_goals_has_the_losses_and_says_how_to_set_goals(run):
    found = audit_run(run, goals=())
    assert found.result.losses().error == run.result().losses().error
    assert str(found).endswith("no goals are set: write them in the goals file, or pass them to fit --from RUN")


def test_rebalance_changes_the_mixture_and_trains_nothing(run, tmp_path):
    other = rebalance_run(run, alpha=0.05, goals=["recall >= 0.7"], output=tmp_path / "other")
    assert other == open_run(tmp_path / "other")
    assert (other.settings.alpha, other.settings.goals[0].goal) == (0.05, "recall >= 0.7")
    before, after = run.model()[-1], other.model()[-1]
    assert len(before.estimators_) == len(after.estimators_)
    assert not np.allclose(before.mixture_, after.mixture_)
    assert after.check_goals()[0].holds
    assert rebalance_run(run, alpha=0.05, goals=["recall >= 0.7"], output=tmp_path / "other") == other
    with pytest.raises(InfeasibleGoals, match="cannot hold"):
        rebalance_run(run, goals=["recall >= 0.99", "positive_rate <= 0.1"], output=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_model_without_a_mixture_has_none_to_change(goals_file, tmp_path):
    path = goals_file(
        replace={'[method]\nname = "adalpboost"\nparameters.n_estimators = 8': '[method]\nname = "constrained"'}
    )
    plain = fit_run(path)
    with pytest.raises(ValueError, match="'constrained' has no mixture"):
        rebalance_run(plain, alpha=0.5, output=tmp_path / "other")


@pytest.mark.slow
@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_the_starting_file_can_be_fitted_as_it_is(end, loans_folder, tmp_path):
    text = starting_file(loans_folder / f"loans.{end}", "paid", groups=["sex"], beside=tmp_path)
    write_new(tmp_path / "goals.toml", text)
    settings = read_goals_file(tmp_path / "goals.toml")
    assert (settings.data.target, settings.data.positive, settings.data.groups) == ("paid", "yes", ["sex"])
    assert fit_run(tmp_path / "goals.toml").result().losses().error < 0.5
    with_goals = text.replace('    # "', '    "')
    assert len(read_goals_file_text(with_goals, tmp_path).goals) == 3


def read_goals_file_text(text, folder):
    (folder / "other.toml").write_text(text)
    return read_goals_file(folder / "other.toml")


def test_the_starting_file_tells_what_it_saw(tmp_path):
    frame = pd.DataFrame(
        {"name": [f"person {k}" for k in range(40)], "job": ["clerk", "?"] * 20, "rooms": [1, 2, 3, 4] * 10}
    )
    frame["when"] = pd.Timestamp("2020-01-01")
    frame["y"] = [0, 1] * 20
    frame.to_parquet(tmp_path / "t.parquet")
    settings = read_goals_file_text(starting_file(tmp_path / "t.parquet", "y", beside=tmp_path), tmp_path)
    assert settings.data.drop == ["when", "name"]
    assert settings.data.missing == ["?"]
    assert settings.data.positive == 1
    assert '# categorical = ["rooms"]' in (tmp_path / "other.toml").read_text()


def test_the_starting_file_takes_odd_names_and_points_at_ids(tmp_path):
    """A line break in a name, as spreadsheets have them, must not end a comment."""
    odd = "income\n= [EUR]"
    frame = pd.DataFrame({"id": range(40), odd: [1.5, None] * 20, "kind\nof": [0, 1, 2, 3] * 10})
    frame.to_csv(tmp_path / "t.csv", index=False)
    text = starting_file(tmp_path / "t.csv", "kind\nof", beside=tmp_path)
    assert read_goals_file_text(text, tmp_path).data.target == "kind\nof"
    assert '# with missing values: ["income\\n= [EUR]"]' in text
    assert '# different whole numbers in each row: ["id"].' in text


@pytest.mark.slow
def test_the_starting_file_of_a_long_table_sorted_by_class_has_all_classes(tmp_path):
    """Its first rows are of one class, and what is odd in a column may be far below them."""
    frame = pd.DataFrame({"x": np.arange(150_000.0), "y": np.repeat(["no", "yes"], [120_000, 30_000])})
    frame["x"] = frame["x"].astype(object).where(frame.index // 100 != 1400, "none")
    frame.to_csv(tmp_path / "t.csv", index=False)
    text = starting_file(tmp_path / "t.csv", "y", beside=tmp_path)
    assert "100000 rows read" in text
    counts = re.search(r"# classes: 'no': (\d+), 'yes': (\d+)", text)
    assert [int(count) / 100_000 for count in counts.groups()] == pytest.approx([0.8, 0.2], abs=0.01)
    assert re.search(r"first in row 1400\d\d: taken as missing", text)


def test_the_one_sign_that_json_writes_and_toml_refuses_can_be_in_a_name(tmp_path):
    pd.DataFrame({"x": [1.5, 2.5] * 20, "a\x7fb": [0, 1] * 20}).to_parquet(tmp_path / "t.parquet")
    text = starting_file(tmp_path / "t.parquet", "a\x7fb", beside=tmp_path)
    assert read_goals_file_text(text, tmp_path).data.target == "a\x7fb"


def test_init_refuses_what_it_cannot_start_from(loans_folder, tmp_path):
    with pytest.raises(DataError, match=r"has no column 'payed'\. Did you mean 'paid'\?"):
        starting_file(loans_folder / "loans.csv", "payed")
    pd.DataFrame({"x": [1, 2], "y": [1, 1]}).to_csv(tmp_path / "one.csv", index=False)
    with pytest.raises(DataError, match="at least two classes"):
        starting_file(tmp_path / "one.csv", "y")
    write_new(tmp_path / "new.toml", "alpha = 0.1\n")
    with pytest.raises(RunFolderError, match="exists already and is not overwritten"):
        write_new(tmp_path / "new.toml", "other")
    assert (tmp_path / "new.toml").read_text() == "alpha = 0.1\n"


def test_goals_of_a_new_choice_keep_their_own_confidence(run, tmp_path):
    asked = rebalance_run(run, goals=["recall >= 0.4 with confidence 0.99"], output=tmp_path / "sure")
    plain = rebalance_run(run, goals=["recall >= 0.4"], output=tmp_path / "plain")
    assert [one.settings.goals[0].confidence for one in (asked, plain)] == [0.99, None]
    assert [audit_run(one).audit[0].goal.confidence for one in (asked, plain)] == [0.99, 0.95]
    assert asked.model()[-1].goals_[0].confidence == 0.99


def test_a_confidence_that_a_goal_carries_is_not_overruled(run):
    goals = ["recall >= 0.4 with confidence 0.99", "recall >= 0.3"]
    found = audit_run(run, goals=goals, confidence=0.8).audit
    assert [row.goal.confidence for row in found] == [0.99, 0.8]
