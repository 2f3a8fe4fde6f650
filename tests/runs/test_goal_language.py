"""Goals on any class, differences and conditions from a goals file to the report, and the table of all metrics."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from counterpoise.cli import main
from counterpoise.goals import forget_metric, recall, register_metric
from counterpoise.goals.catalogue import LEGEND, catalogue
from counterpoise.report import write_report
from counterpoise.runs import GoalsFileError, audit_run, fit_run, read_goals_file
from counterpoise.runs.goals_file import goals_of

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
GOALS = [
    "recall(of=fox, 0<=size<9) >= 0.3",
    "every_class(recall) >= 0.2",
    "max_difference(error_rate, by=sex) <= 0.5",
]
FILE = """goals = {goals}
[data]
files = "animals.csv"
target = "kind"
groups = "sex"
[method]
name = "{method}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("animals")
    rng = np.random.default_rng(0)
    kind = rng.choice(["cat", "dog", "fox"], 240)
    size = rng.normal(size=240) + 2 * (kind == "fox") + (kind == "dog")
    frame = pd.DataFrame({"size": size, "weight": rng.normal(size=240) + (kind == "cat"), "kind": kind})
    frame.assign(sex=rng.choice(["F", "M"], 240)).to_csv(path / "animals.csv", index=False)
    return path


@pytest.mark.slow
def test_goals_on_several_classes_are_met_judged_and_reported(folder):
    text = FILE.format(goals=GOALS, method="adalpboost") + "parameters = {n_estimators = 4}\n"
    (folder / "goals.toml").write_text(text)
    run = fit_run(folder / "goals.toml", output=folder / "run")
    assert [check.holds for check in run.model()[-1].check_goals()] == [True] * len(GOALS)
    assert [goal.text for goal in run.result().goals] == GOALS
    page = write_report(run.folder).read_text()
    for number, goal in enumerate(GOALS, start=1):
        assert f"goal {number}" in page
        assert goal.replace(">", "&gt;").replace("<", "&lt;") in page
    audit = audit_run(run, folder / "animals.csv").audit
    assert [str(row.goal.with_confidence(None)) for row in audit] == GOALS
    assert audit[1].worst in {f"recall(of={kind})" for kind in ("cat", "dog", "fox")}


def test_a_goals_file_and_the_command_line_take_goals_without_a_dataset(folder, capsys):
    short = ["recall(of=fox, 0<=size<9) >= 0.3", "every_class(tpr) >= 0.2", "max_difference(error, by=sex) <= 0.5"]
    (folder / "short.toml").write_text(FILE.format(goals=short, method="adalpboost"))
    assert [str(goal) for goal in goals_of(read_goals_file(folder / "short.toml"))] == GOALS
    assert main(["goals", *short, "zero_one_loss <= 0.3"]) == 0
    assert capsys.readouterr().out.splitlines() == [*GOALS, "error_rate <= 0.3"]
    assert main(["goals", "selction_rate <= 0.3"]) != 0
    assert "Did you mean 'selection_rate'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("recall(of=fox) >= 80", r"cannot hold: recall\(of=fox\) >= 80"),
        ("recall(5<=size<2) >= 0.8", "The range 5<=size<2 is empty"),
        ("recal >= 0.8", "Unknown metric 'recal'. Did you mean 'recall'"),
        ("flip_rate(twin=train2) <= 0.1", "compares them with twins, which are not split with them. Fit a GoalClass"),
        ("recall(trian) >= 0.8", "unknown dataset 'trian' in the goal .* Did you mean 'train'"),
    ],
)
def test_a_goals_file_refuses_what_cannot_be(folder, goal, message):
    (folder / "bad.toml").write_text(FILE.format(goals=[goal], method="adalpboost"))
    with pytest.raises(GoalsFileError, match=message):
        read_goals_file(folder / "bad.toml")


def test_the_guide_has_the_table_of_the_registry():
    lines = [f"| `{name}` | `{formula}` | {needs} | {meaning} |" for name, formula, needs, meaning in catalogue()]
    assert "\n".join(lines) in (GUIDE.parent / "api" / "metrics.md").read_text()


def test_the_command_line_lists_all_metrics_and_reads_goals(capsys):
    @register_metric
    def twice(rows):
        """Return twice the recall."""
        return 2 * recall(rows)

    try:
        assert main(["goals", "--list"]) == 0
        shown = capsys.readouterr().out
    finally:
        forget_metric("twice")
    assert LEGEND in shown
    for entry in catalogue():
        assert re.search(rf"^{entry.name} +{re.escape(entry.formula)}", shown, re.MULTILINE)
    assert re.search(r"^twice +2 #\[p=c, y=c\] / #\[y=c\] +labels +Return twice the recall", shown, re.MULTILINE)
    assert main(["goals", "recall( train , of = cat )>=.9"]) == 0
    assert capsys.readouterr().out == "recall(of=cat) >= 0.9\n"
    assert main(["goals", "recall >= 90"]) == 1
    assert "write 0.8 for 80 %" in capsys.readouterr().err
