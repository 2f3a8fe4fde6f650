"""A run reads its data by one rule of what is missing, and says what it makes of words among numbers."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.runs import audit_run, fit_run, predict_run

GOALS = """
goals = ["recall(g=NA) >= 0.1", "max_difference(error_rate, by=g) <= 0.9"]
[data]
files = "t.{end}"
target = "y"
positive = "yes"
groups = "g"
[method]
name = "pool"
[[method.models]]
name = "naive_bayes"
[[method.models]]
name = "tree"
parameters = {{max_depth = 2}}
"""


def people(n_rows=240):
    rng = np.random.default_rng(0)
    x = rng.normal(size=n_rows)
    frame = pd.DataFrame({"x": x, "age": rng.integers(20, 70, n_rows).astype(float)})
    frame.loc[::9, "age"] = None
    frame["g"] = np.array(["NA", "null", "", "nan"], dtype=object)[np.arange(n_rows) % 4]
    frame["job"] = np.array(["None", "clerk", None], dtype=object)[np.arange(n_rows) % 3]
    frame["y"] = np.where(x + rng.normal(size=n_rows) > 0, "yes", "no")
    return frame


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return a run of a CSV file with NA among numbers, and of a Parquet file of the same rows; and what was said."""
    found, events = {}, []
    folder = tmp_path_factory.mktemp("runs")
    people().to_csv(folder / "t.csv", index=False)
    people().to_parquet(folder / "t.parquet", index=False)
    text = (folder / "t.csv").read_text().splitlines()
    cells = [line.split(",") for line in text]
    rows = [[x, age or "NA", *rest] for x, age, *rest in cells]
    (folder / "t.csv").write_text("\n".join(map(",".join, rows)) + "\n")
    for end in ("csv", "parquet"):
        (folder / f"{end}.toml").write_text(GOALS.format(end=end))
        found[end] = fit_run(folder / f"{end}.toml", on_event=lambda text, end=end: events.append((end, text)))
    return folder, found, events


def test_fit_says_in_a_line_that_words_among_numbers_are_missing(runs):
    _, _, events = runs
    lines = [text for end, text in events if end == "csv" and "holds numbers except 'NA' in 27 of 240 rows" in text]
    assert len(lines) == 1
    assert "name the column in data.categorical" in lines[0]
    assert not any("holds numbers but" in text for end, text in events if end == "parquet")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::counterpoise.runs.reading.WordsAmongNumbers")
def test_predict_evaluate_and_certify_are_the_same_from_csv_and_parquet(runs, tmp_path):
    folder, found, _ = runs
    told = []
    for end, run in found.items():
        predict_run(run, folder / f"t.{end}", tmp_path / "said.csv", probabilities=True)
        shares = [line.split(",", 1)[1] for line in (tmp_path / "said.csv").read_text().splitlines()]
        goals = [str(row.goal) for row in audit_run(run, folder / f"t.{end}").audit]  # of answers that are drawn anew
        told.append((shares, audit_run(run, folder / f"t.{end}").result.losses().error, goals))
    assert told[0] == told[1]
    for run in found.values():
        groups = [entry.text for entry in run.result().groups]
        assert {f"g={name}" for name in ("(missing)", "NA", "nan", "null")} <= set(groups)
