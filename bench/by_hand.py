"""One requirement, three ways to meet it: GoalClassifier, a goals file, and thresholds tuned by hand.

Usage: python bench/by_hand.py [--only NAME ...] [--splits N] [--resume] [--page] [--output FOLDER]

Recall at least 0.8, false positive rates of women and men at most 0.05 apart, at most 5 % of last year's decisions
changed, and the error as low as that allows, all with the same LightGBM. Last year's model is the same LightGBM,
trained on rows of its own and cut, for each sex, where it kept the first two goals on others of them. ``--resume``
keeps the rows that the results hold already, ``--page`` only writes the page. Needs lightgbm and pandas. Everything
runs on one core.
"""

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
import pandas as pd
from by_hand_page import write_page
from by_hand_tuning import CHURN, DIFFERENCE, RECALL, Rows, best_cuts, decided
from lightgbm import LGBMClassifier
from records import arguments, records_of

import counterpoise as cp
from counterpoise.datasets import load_dataset
from counterpoise.goals import InfeasibleGoals

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "by_hand"
COLUMNS = ("set", "split", "way", "error", "recall", "difference", "churn")
N_KEYS = 3
SETS = {"Adult": ("adult", 10_000, 16_000), "credit default": ("credit-default", 6_000, 12_000)}
HELD_OUT = 0.3  # of the rows, to tune thresholds on by hand
FROM_A_FILE, FILE_SPLITS = "ours, a goals file", 3  # whose report takes most of the time
MARGIN = 0.01  # by which the cautious ask for more


GOALS_FILE = (Path(__file__).parent / "by_hand_goals.toml").read_text(encoding="utf-8")


class Rates(NamedTuple):
    """What answers come to."""

    error: float
    recall: float
    difference: float
    churn: float


Way = Callable[[Rows, Rows, int], np.ndarray]  # rows to learn and choose on, rows to decide about, a seed


def strong(seed: int) -> LGBMClassifier:
    """Return the model that everyone uses."""
    return LGBMClassifier(n_estimators=100, num_leaves=15, random_state=seed, n_jobs=1, verbose=-1)


def ours(
    rows: Rows, new: Rows, seed: int, by: Any = ("sex", "baseline"), margin: float = 0.0, decision: str = "sticky"
) -> np.ndarray:
    """State the goals: these are the ten lines."""
    goals = [
        f"recall(train) >= {RECALL + margin}",
        f"abs(false_positive_rate(train, sex=Female) - false_positive_rate(train, sex=Male)) <= {DIFFERENCE - margin}",
        f"churn(train) <= {CHURN - margin}",
    ]
    model = cp.GoalClassifier(strong(seed), goals=goals, by=by, decision=decision, random_state=seed, confidence=None)
    model.fit(rows.X, rows.y, sensitive_features={"sex": rows.sex}, baseline=rows.old)
    return model.predict(new.X, sensitive_features={"sex": new.sex}, baseline=new.old)


def by_hand(rows: Rows, new: Rows, seed: int, by: str = "sex", margin: float = 0.0, churn: float = CHURN) -> np.ndarray:
    """Train on 70 % of the rows, and take the thresholds with the least error inside the goals on the others."""
    n_choose = int(HELD_OUT * rows.y.size)
    choose, train = rows.take(slice(n_choose)), rows.take(slice(n_choose, None))
    model = strong(seed).fit(train.X, train.y)
    cuts = best_cuts(
        model.predict_proba(choose.X)[:, 1], choose, by, [RECALL + margin, DIFFERENCE - margin, churn - margin]
    )
    return decided(model, new, cuts)


def ours_by_sex(rows: Rows, new: Rows, seed: int) -> np.ndarray:
    """Let the rules look at the sex alone."""
    return ours(rows, new, seed, by="sex")


def ours_fixed(rows: Rows, new: Rows, seed: int) -> np.ndarray:
    """Draw nothing."""
    return ours(rows, new, seed, decision="fixed")


def ours_cautious(rows: Rows, new: Rows, seed: int) -> np.ndarray:
    """Ask for a little more."""
    return ours(rows, new, seed, margin=MARGIN)


def by_hand_alone(rows: Rows, new: Rows, seed: int) -> np.ndarray:
    """Tune one threshold for all."""
    return by_hand(rows, new, seed, by="")


def by_hand_with_baseline(rows: Rows, new: Rows, seed: int) -> np.ndarray:
    """Tune thresholds for each sex and answer of last year."""
    return by_hand(rows, new, seed, by="sex and baseline")


def by_hand_cautious(rows: Rows, new: Rows, seed: int) -> np.ndarray:
    """Ask for a little more."""
    return by_hand(rows, new, seed, by="sex and baseline", margin=MARGIN)


def plain(rows: Rows, new: Rows, seed: int) -> np.ndarray:
    """Train, and decide by the usual threshold."""
    return strong(seed).fit(rows.X, rows.y).predict(new.X)


def from_a_file(rows: Rows, new: Rows, seed: int) -> np.ndarray:
    """Write no Python: a goals file, and two commands."""
    with TemporaryDirectory() as folder:
        for name, part in (("this_year.csv", rows), ("new.csv", new)):
            columns = {f"x{place}": column for place, column in enumerate(part.X.T)}
            frame = pd.DataFrame({**columns, "sex": part.sex, "old": part.old, "y": part.y})
            frame.to_csv(Path(folder) / name, index=False)
        (Path(folder) / "goals.toml").write_text(f"seed = {seed}\n{GOALS_FILE}", encoding="utf-8")
        for words in (["fit", "goals.toml"], ["predict", "goals", "new.csv", "--output", "said.csv"]):
            done = run(
                [sys.executable, "-m", "counterpoise", *words], cwd=folder, check=False, capture_output=True, text=True
            )
            if "cannot hold" in done.stderr:
                raise InfeasibleGoals(done.stderr)
            done.check_returncode()
        return pd.read_csv(Path(folder) / "said.csv")["prediction"].to_numpy()


def last_year(_rows: Rows, new: Rows, _seed: int) -> np.ndarray:
    """Go on as before."""
    return new.old


WAYS: dict[str, Way] = {
    "LightGBM, usual threshold": plain,
    "last year's model": last_year,
    "by hand, one threshold": by_hand_alone,
    "by hand, by sex": by_hand,
    "by hand, by sex and baseline": by_hand_with_baseline,
    "by hand, by sex and baseline, margin 0.01": by_hand_cautious,
    "ours, by sex": ours_by_sex,
    "ours, by sex and baseline": ours,
    "ours, by sex and baseline, margin 0.01": ours_cautious,
    "ours, by sex and baseline, fixed": ours_fixed,
    FROM_A_FILE: from_a_file,
}


def parts_of(title: str, seed: int) -> tuple[Rows, Rows]:
    """Return this year's rows to learn from and others to judge by, with what last year's model says of both."""
    name, n_old, n_new = SETS[title]
    data = load_dataset(name)
    order = np.random.default_rng(seed).permutation(len(data.y))
    X, y, sex = np.asarray(data.X, dtype=float)[order], np.asarray(data.y)[order], data.sensitive["sex"][order]
    every = Rows(X, y, sex, np.zeros_like(y))
    every = every._replace(old=by_hand(every.take(slice(n_old)), every, seed, churn=1.0))
    return every.take(slice(n_old, n_old + n_new)), every.take(slice(n_old + n_new, None))


def rates_of(said: np.ndarray, rows: Rows) -> Rates:
    """Return error and the rates that the goals refer to."""
    alarms = [said[(rows.y == 0) & (rows.sex == sex)].mean() for sex in ("Female", "Male")]
    error, found, changed = (said != rows.y).mean(), said[rows.y == 1].mean(), (said != rows.old).mean()
    return Rates(float(error), float(found), float(abs(alarms[0] - alarms[1])), float(changed))


def measured(way: Way, rows: Rows, new: Rows, seed: int) -> tuple[float | None, ...]:
    """Return what a way comes to on new rows; nothing where it refuses."""
    try:
        return rates_of(np.asarray(way(rows, new, seed)), new)
    except InfeasibleGoals:
        return (None,) * len(Rates._fields)


def main() -> None:
    """Measure, and write the table and the page."""
    options = arguments(__doc__.splitlines()[0], SETS, 15, FOLDER).parse_args()
    warnings.simplefilter("ignore")
    records = records_of(options, COLUMNS, N_KEYS)
    for seed in range(0 if options.page else options.splits):
        for title in options.only:
            rows, new = parts_of(title, seed)
            for name, way in WAYS.items():
                if not records.has(title, seed, name) and (name != FROM_A_FILE or seed < FILE_SPLITS):
                    records.add(title, seed, name, *measured(way, rows, new, seed))
    write_page(options.output, records.rows)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
