"""A setting is one decision rule: what a page shows, the files it exports and the run it came from agree."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from run_numbers import numbers

from counterpoise import load
from counterpoise.explorer import Session, Setting
from counterpoise.runs import RunFolderError, audit_run, fit_run, open_run, read_goals_file
from tests.explorer.inside import RunExporter, final_estimator, own_data, read_run, show_view

GOALS = """# what the bank asks
seed = 3
confidence = "none"
goals = [
    "recall >= 0.60",    # of those who pay
    { goal = "false_positive_rate <= 0.3", confidence = 0.9 },
]
output = "elsewhere"
[data]
files = "people.csv"
target = "paid"
groups = ["sex"]
[splits]
test = 0.4
[method]
name = "goals"
parameters = { cv = 2, decision = "sticky" }
models = [{ name = "logistic", title = "a line" }]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bank")
    rng = np.random.default_rng(0)
    sex, income = rng.choice(["F", "M"], 1500), rng.normal(size=1500)
    paid = np.where(income + 0.4 * (sex == "M") + 0.7 * rng.normal(size=1500) > 0.2, "yes", "no")
    lines = [f"{a:.4f},{b},{c}" for a, b, c in zip(income, sex, paid, strict=True)]
    (folder / "people.csv").write_text("income,sex,paid\n" + "\n".join(lines) + "\n")
    (folder / "goals.toml").write_text(GOALS)
    fit_run(folder / "goals.toml", output=folder / "run")
    return folder


def explored(folder, output=None, run="run"):
    read = read_run(open_run(folder / run))
    session = Session(read.parts)
    return session, RunExporter(session, read, output or folder / "out")


def moved(session, place=0, by=0.05, **changes):
    """Return the setting of the run with one bound and other things moved, and a goal on a group added."""
    words = session.start.as_words() | {"alpha": 0.7} | changes
    words["goals"][place]["bound"] += by
    words["goals"].append({"text": "positive_rate(sex=F) >= 0.2"})
    return Setting.of(words)


def predicted(model, folder):
    part = own_data(open_run(folder / "run")).splits["test"]
    return model.predict(part.X)


def test_what_a_page_opens_with_is_the_model_of_the_run_as_its_report_tells_it(folder):
    session, _ = explored(folder)
    told = session.answer(session.start, exact=True)
    run = open_run(folder / "run")
    (error,) = numbers(run).where(method="mixture", quantity="error", split="test").rows
    assert told["losses"]["held_out"]["mean"] == pytest.approx(error.value, abs=1e-6)
    exact = show_view(session, session.start, "verdicts")["verdicts"]
    for verdict, audit in zip(exact, audit_run(run).audit, strict=True):
        assert (verdict["verdict"], verdict["rows"]) == (audit.verdict, sum(count for _, count in audit.counts))
        assert verdict["words"] == audit.words
        for name in ("estimate", "low", "high"):
            assert verdict[name] == pytest.approx(getattr(audit, name), abs=1e-6)


@pytest.mark.slow
def test_page_model_file_and_report_are_of_one_mixture(folder):
    session, exporter = explored(folder)
    setting = moved(session)
    told = session.answer(setting, exact=True)
    session.answer(moved(session, alpha=0.3), exact=True)  # whatever is asked in between
    found = session.recent(setting)
    decided = found.state.held_out["train"].decide(found.solution) == 1
    model = load(exporter.export("model", setting)["path"])
    report = Path(exporter.export("report", setting)["path"])
    run = open_run(report.parent)
    for one in (model, run.model()):
        assert final_estimator(one).value_ == found.solution.value
        np.testing.assert_array_equal(predicted(one, folder) == "yes", decided)
    exact = show_view(session, setting, "verdicts")["verdicts"]
    for verdict, audit in zip(exact, audit_run(run).audit, strict=True):
        assert verdict["estimate"] == pytest.approx(audit.estimate, abs=1e-6)
        assert verdict["verdict"] == audit.verdict
    assert told["goals"][0]["held_out"]["estimate"] == exact[0]["estimate"]
    read = read_goals_file(report.parent / "goals.toml")
    assert (read.alpha, read.goals) == (run.settings.alpha, run.settings.goals)
    assert [one.goal for one in read.goals][1:] == [
        "false_positive_rate <= 0.3",
        "positive_rate(sex=F) >= 0.2",
    ]


def test_the_goals_file_of_an_untouched_page_asks_for_the_run_itself(folder, tmp_path):
    session, exporter = explored(folder)
    text = exporter.export("goals", session.start)["text"]
    assert str(folder / "people.csv") in text
    (tmp_path / "goals.toml").write_text(text)
    before, read = read_goals_file(folder / "goals.toml"), read_goals_file(tmp_path / "goals.toml")
    whole = {"files": [str(folder / "people.csv")]}
    assert read == before.model_copy(update={"output": None, "data": before.data.model_copy(update=whole)})
    again = final_estimator(fit_run(tmp_path / "goals.toml", output=tmp_path / "again").model())
    own = session.parts.estimator
    assert again.goals_ == own.goals_
    np.testing.assert_array_equal(again.mixture_, own.mixture_)


def test_a_goals_file_has_the_bounds_that_were_moved_and_leaves_margins_to_the_fit(folder):
    session, exporter = explored(folder)
    setting = moved(session, 1, 0.01, budget=0.1)
    text = exporter.export("goals", setting)["text"]
    (folder / "moved.toml").write_text(text)
    read = read_goals_file(folder / "moved.toml")
    assert (read.seed, read.confidence, read.alpha, read.method.name) == (3, "none", 0.7, "goals")
    assert read.method.parameters == {"cv": 2, "decision": "sticky", "budget": 0.1}
    assert read.method.models[0].title == "a line"
    first, second, third = read.goals
    assert first.goal == "recall >= 0.6"
    assert second.goal == str(setting.goals[1].goal.with_confidence(None))
    assert (second.confidence, third.confidence) == (0.9, None)


def test_what_cannot_be_exported_is_said_in_a_sentence_and_leaves_nothing(folder, tmp_path):
    for name in ("run", "people.csv"):
        copied = shutil.copytree if (folder / name).is_dir() else shutil.copy
        copied(folder / name, tmp_path / name)
    session, exporter = explored(tmp_path)
    with (tmp_path / "people.csv").open("a") as stream:
        stream.write("1.0,F,yes\n")
    with pytest.raises(RunFolderError, match=r"The data files of the run in .* have changed since it was fitted"):
        exporter.export("report", session.start)
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").write_text("a file")
    with pytest.raises(FileExistsError, match="out"):
        exporter.export("model", session.start)
    with pytest.raises(ValueError, match="These goals cannot hold together"):
        exporter.export("model", moved(session, 0, by=0.99 - session.start.goals[0].goal.bound))
