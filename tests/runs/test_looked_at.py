"""Rules that look at a column when they decide, which the models need not see."""

import numpy as np
import pandas as pd
import pytest
from run_numbers import numbers

from counterpoise.runs import DataError, audit_run, fit_run, predict_run

pytestmark = pytest.mark.slow  # a run from end to end, of parts that have tests of their own

BY_SEX = """
alpha = 1.0
goals = ["abs(recall(sex=F) - recall(sex=M)) <= 0.05"]
[data]
files = "{folder}/loans.csv"
target = "paid"
drop = ["weight"]
baseline = "today"
groups = "sex"
use_groups_as_features = false
[method]
name = "goals"
parameters = {cv = 2, decision = "fixed", by = ["sex", "baseline"]}
[[method.models]]
name = "logistic"
"""


@pytest.fixture(scope="module", params=["fixed", "sticky"])
def run(request, tmp_path_factory, loans_folder):
    """Return a finished run, which decides by one rule or by a mixture of rules."""
    path = tmp_path_factory.mktemp("by") / "goals.toml"
    text = BY_SEX.replace("{folder}", str(loans_folder)).replace('"fixed"', f'"{request.param}"')
    path.write_text(text, encoding="utf-8")
    return fit_run(path)


@pytest.mark.slow
def test_rules_look_at_a_group_that_is_no_feature(run, loans_folder, tmp_path):
    """The model never sees the column; every answer and every measure of the run is by thresholds of groups."""
    assert run.columns.features == ["age", "income", "job"]
    assert predict_run(run, loans_folder / "more.csv", tmp_path / "said.csv", probabilities=True) == 200
    model, rows = run.model(), pd.read_csv(loans_folder / "more.csv")
    assert set(model.groups_.names) >= {"sex=F, baseline=yes", "sex=M, baseline=no"}
    features = rows[["age", "income", "job"]].astype({"job": "category"})
    looked_at = {"sensitive_features": rows[["sex"]], "baseline": rows["today"]}
    said = model.predict(features, **looked_at)
    written = pd.read_csv(tmp_path / "said.csv")
    assert written["prediction"].tolist() == said.tolist()
    np.testing.assert_allclose(written["probability yes"], model.predict_proba(features)[:, 1], atol=1e-6)
    errors = (model.decision_proba(features, **looked_at)[:, 1] - (rows["paid"] == "yes")).abs()
    assert audit_run(run, loans_folder / "more.csv").result.losses().error == pytest.approx(errors.mean())
    assert len(audit_run(run, loans_folder / "more.csv").audit) == 1


def test_the_table_tells_the_share_and_error_of_each_rule(run):
    """Shares are those of the rules, and with them the errors make that of the mixture."""
    table = numbers(run)
    rules = [row for row in table if row.method.startswith("model ")]
    shares, errors = (np.array([row.value for row in rules if row.quantity == name]) for name in ("share", "error"))
    np.testing.assert_allclose(shares, run.model().mixture_)
    mixed = table.where(method="mixture", quantity="error", split="test")
    assert shares @ errors == pytest.approx(next(iter(mixed)).value)
    words = run.result().rules
    assert len(words) == shares.size
    assert "(sex=F, baseline=no)" in words[0].description


def test_rows_without_a_column_that_rules_look_at_are_refused(run, loans_folder, tmp_path):
    """The file is named, and the column."""
    rows = pd.read_csv(loans_folder / "more.csv")
    for column in ("sex", "today"):
        rows.drop(columns=column).to_csv(tmp_path / "less.csv", index=False)
        text = f"less.csv must have the column '{column}', which the rules of this run use"
        with pytest.raises(DataError, match=text):
            predict_run(run, tmp_path / "less.csv", tmp_path / "said.csv")
        with pytest.raises(DataError, match=text):
            audit_run(run, tmp_path / "less.csv")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (
            'by = ["sex", ',
            'by = ["sexx", ',
            r"by: .* need the column 'sexx', which the rules use.* Did you mean 'sex'\?",
        ),
        ('baseline = "today"', "", "by: .* need baseline, the predictions of the deployed model: the rules use them"),
    ],
)
def test_columns_that_are_not_there_are_refused_before_anything_is_trained(goals_file, tmp_path, old, new, text):
    """No run folder is written."""
    with pytest.raises(DataError, match=text):
        fit_run(goals_file(BY_SEX, replace={old: new}))
    assert [path.name for path in tmp_path.iterdir()] == ["goals.toml"]
