"""A table of loans with scores, and the rules that are chosen on it."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.cli import main

N = 10_000
KEY = "a key of this test"
GOALS = ["recall >= 0.8", "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.02"]


def loans(n_rows=N):
    """Return rows with two scores, the old answers and what is true."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], n_rows)
    truth = rng.normal(size=n_rows) + 0.5 * (sex == "M")
    paid = (rng.random(n_rows) < 1 / (1 + np.exp(1 - 2 * truth))).astype(int)
    p, q = (1 / (1 + np.exp(-(truth + noise * rng.normal(size=n_rows)))) for noise in (0.7, 0.8))
    old = (truth + rng.normal(size=n_rows) > 1).astype(int)
    return pd.DataFrame({"id": np.arange(n_rows) + 7, "sex": sex, "p": p, "q": q, "old": old, "paid": paid})


CHOOSE = ["choose", "loans.csv", "--target", "paid", "--score", "p", "--score", "q", "--by", "sex", "--key", KEY]
CHOOSE += ["--decision", "sticky", "--confidence", "none"]
CHOOSE += [word for goal in GOALS for word in ("--goal", goal)]
DEFER = ["--goal", "defer_rate <= 0.1", "--defer-cost", "0.1", "--alpha", "0.5", "--budget", "0.05"]


def make_folder(folder):
    """Write a table, rules chosen on it and decisions by them, and return the folder."""
    loans().to_csv(folder / "loans.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*CHOOSE, "-o", "rules.json", "--report", "rules.html", "--quiet"]) == 0
        assert main(["apply", "rules.json", "loans.csv", "--ids", "id", "-o", "said.csv", "--quiet"]) == 0
    return folder
