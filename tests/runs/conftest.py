"""A small table as users have it: texts, missing values, groups, weights, a deployed model's predictions."""

import numpy as np
import pandas as pd
import pytest
from hurried import hurried

from counterpoise.runs import evaluate

N_ROWS = 600


@pytest.fixture(scope="module", autouse=True)  # wider ones outlive this folder, and reach the tests of others
def _curves_of_few_points():
    """Compute curves at few points too: that takes much of the time of a run, for no test here."""
    with hurried(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate, "_POINTS", 5)
        patch.setattr(evaluate, "_LIMITS", (0.0, 0.05, 0.1))
        yield


def loans(n_rows=N_ROWS, seed=0):
    """Return a frame in which ``paid`` follows from the other columns but for noise."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n_rows)
    income = np.round(rng.lognormal(3, 0.5, n_rows), 2)
    job = rng.choice(["clerk", "farmer", "teacher"], n_rows, p=[0.5, 0.3, 0.2])
    sex = rng.choice(["F", "M"], n_rows)
    score = 0.05 * (age - 45) + 0.06 * (income - 20) + (job == "teacher") + 0.3 * (sex == "M")
    paid = np.where(score + rng.normal(0, 0.8, n_rows) > 0, "yes", "no")
    today = np.where(score + rng.normal(0, 1.0, n_rows) > 0, "yes", "no")
    frame = pd.DataFrame({"age": age, "income": income, "job": job, "sex": sex, "paid": paid, "today": today})
    frame["weight"] = rng.integers(1, 4, n_rows)
    frame.loc[rng.random(n_rows) < 0.1, "income"] = np.nan
    frame.loc[rng.random(n_rows) < 0.1, "job"] = None
    return frame


@pytest.fixture(scope="session", name="loans")
def loans_maker():
    """Return the function that makes such a table."""
    return loans


@pytest.fixture(scope="session")
def loans_folder(tmp_path_factory):
    """Return a folder with the table as CSV and as Parquet, and one of unlabelled rows; nobody writes there."""
    folder = tmp_path_factory.mktemp("loans")
    frame = loans()
    frame.to_csv(folder / "loans.csv", index=False)
    frame.to_parquet(folder / "loans.parquet", index=False)
    loans(200, seed=1).to_csv(folder / "more.csv", index=False)
    loans(100, seed=2).drop(columns="paid").to_csv(folder / "mail.csv", index=False)
    return folder


BASIC = """
alpha = 0.2
goals = ["recall >= 0.5"]
[data]
files = "{folder}/loans.csv"
target = "paid"
drop = ["today", "weight"]
groups = "sex"
[method]
name = "adalpboost"
parameters.n_estimators = 8
"""


@pytest.fixture
def goals_file(tmp_path, loans_folder):
    """Return a function that writes a goals file, the usual one or another, with replacements."""

    def write(text=BASIC, name="goals.toml", **changes):
        for old, new in changes.pop("replace", {}).items():
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / name
        path.write_text(text.replace("{folder}", str(loans_folder)), encoding="utf-8")
        return path

    return write
