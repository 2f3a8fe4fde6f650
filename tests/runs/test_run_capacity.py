"""``counterpoise predict --top``: exactly so many positive decisions in a table."""

import json

import numpy as np
import pandas as pd
import pytest

from counterpoise.cli import main
from counterpoise.datasets import loans
from counterpoise.runs import open_run, predict_run

pytestmark = pytest.mark.slow  # a run from end to end, of parts that have tests of their own

FILE = """
seed = 1
goals = ["max_difference(selection_rate, by=sex) <= 0.03", "selection_rate <= 0.4"]
[data]
files = "loans.csv"
target = "default"
positive = "yes"
groups = ["sex"]
drop = ["last_year"]
[splits]
test = 0.2
[method]
models = [{ name = "logistic" }]
parameters = { cv = 3, by = "sex" }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a run, and a table of new people with their numbers."""
    folder = tmp_path_factory.mktemp("capacity")
    frame = loans(3000, random_state=0)[0]
    frame[:2000].to_csv(folder / "loans.csv", index=False)
    frame[2000:].assign(person=np.arange(1000) + 5000).to_csv(folder / "new.csv", index=False)
    (folder / "goals.toml").write_text(FILE)
    assert main(["fit", str(folder / "goals.toml"), "-o", str(folder / "run"), "--quiet"]) == 0
    return folder


def test_exactly_so_many_rows_are_decided_positive(folder, tmp_path):
    run = open_run(folder / "run")
    for top in (0, 77, 400):
        assert predict_run(run, folder / "new.csv", tmp_path / "top.csv", top=top, ids="person") == 1000
        frame = pd.read_csv(tmp_path / "top.csv")
        assert list(frame) == ["person", "prediction"]
        assert (frame["prediction"] == "yes").sum() == top
    sexes = pd.read_csv(folder / "new.csv")["sex"]
    rates = (frame["prediction"] == "yes").groupby(sexes).mean()
    assert abs(rates.iloc[0] - rates.iloc[1]) <= 0.03 + 0.005


def test_the_order_of_the_table_does_not_matter(folder, tmp_path):
    mixed = pd.read_csv(folder / "new.csv").sample(frac=1.0, random_state=0)
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    words = ["--top", "123", "--ids", "person", "--quiet"]
    for name, table in (("one.csv", folder / "new.csv"), ("other.csv", tmp_path / "mixed.csv")):
        assert main(["predict", str(folder / "run"), str(table), "-o", str(tmp_path / name), *words]) == 0
    one, other = (pd.read_csv(tmp_path / name).set_index("person")["prediction"] for name in ("one.csv", "other.csv"))
    assert (one == "yes").sum() == 123
    assert other.sort_index().equals(one.sort_index())


@pytest.mark.parametrize(
    ("top", "words"),
    [
        ("1001", "top must be at most the number of rows, 1000; got 1001."),
        ("-3", "top must be at least 0; got -3."),
        ("1.5", "write a whole number of at least 0, as in --top 500; got '1.5'."),
    ],
)
def test_a_number_that_cannot_be_met_is_refused(folder, tmp_path, capsys, top, words):
    output = tmp_path / "top.csv"
    assert main(["predict", str(folder / "run"), str(folder / "new.csv"), "-o", str(output), "--top", top]) == 2
    assert words in capsys.readouterr().err
    assert not output.exists()


def test_goals_that_cannot_hold_name_the_nearest_number(folder, tmp_path, capsys):
    words = ["-o", str(tmp_path / "top.csv"), "--top", "500", "--json"]
    assert main(["predict", str(folder / "run"), str(folder / "new.csv"), *words]) == 1
    shown = capsys.readouterr()
    assert "No choice of 500 of the 1000 rows meets positive_rate <= 0.4." in shown.err
    assert json.loads(shown.out)["infeasible"]["nearest_top"] == 400
