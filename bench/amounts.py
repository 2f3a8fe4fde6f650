"""Money and capacity: goals on amounts beside weights given by hand, so many checks a day, a million rows at once.

Usage: python bench/amounts.py [--only money days million] [--splits N] [--resume] [--page] [--output FOLDER]

money
    Credit default; a client's amount is the credit limit. The goal is to flag clients with 60 % of the money of those
    who default. By hand: LightGBM is trained with the amounts of those who default, times a factor, as sample weights,
    and decides at 0.5; the factor is the least of ``FACTORS`` that recalls 60 % on a fifth of the training rows. Ours:
    the same LightGBM without weights, ``recall(value=LIMIT_BAL) >= 0.6``, with and without margins, and the same beside
    a LightGBM with weights, of which the better one is chosen. It needs LightGBM.
days
    Made-up payments of three countries, of which 0.5 % are fraud. A model is fitted with
    ``min_ratio(selection_rate, by=country) >= 0.8``; then 60 of the 3,000 payments of each of 30 days are selected with
    ``top=60``, while the countries' shares of the payments change. Control: the 60 highest scores of the day.
    Rule: every day has exactly 60, and the ratio of selection rates is at least 0.8 wherever whole rows allow it, which
    is tried for all numbers of each country; where they do not, a caution says so.
million
    ``predict(X, top=50_000)`` for 1,000,000 rows of that model. Rule: 2 seconds of one processor at most; the clock
    also counts what else the machine does.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from counterpoise import GoalClassifier
from counterpoise.rules.cautions import MissedGoals

sys.path.insert(0, str(Path(__file__).parent.parent))
from records import arguments, records_of

from papers.datasets import load_dataset
from papers.markdown import markdown_table

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "amounts"
PARTS = ("money", "days", "million")
COLUMNS = ("part", "case", "split", "measure", "value")
GOAL, AMOUNT = 0.6, "LIMIT_BAL"
FACTORS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
MIDDLE = 3.0  # a factor that is not tuned
SETTINGS = {"n_estimators": 100, "num_leaves": 15, "learning_rate": 0.05, "n_jobs": 1, "verbose": -1}


def by_hand(X: Any, y: Any, amounts: Any, factor: float) -> LGBMClassifier:
    """Return LightGBM trained with amounts as weights of those who default."""
    weights = np.where(y == 1, factor * amounts / amounts.mean(), 1.0)
    return LGBMClassifier(**SETTINGS).fit(X, y, sample_weight=weights)


class WeightedLightGBM(LGBMClassifier):
    """LightGBM that weights those who default by their amounts."""

    def fit(self, X: Any, y: Any) -> "WeightedLightGBM":
        """Train with the amounts in X."""
        amounts = X[AMOUNT].to_numpy(dtype=np.float64)
        return super().fit(X, y, sample_weight=np.where(y == 1, MIDDLE * amounts / amounts.mean(), 1.0))


def recalled(decisions: Any, y: Any, amounts: Any) -> float:
    """Return the share of the money of those who default that is flagged."""
    return float((amounts * y * decisions).sum() / (amounts * y).sum())


def tuned_by_hand(X: Any, y: Any, amounts: Any, seed: int) -> LGBMClassifier:
    """Return the model of the least factor that recalls enough on rows set aside."""
    inside, outside = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed, stratify=y)
    for factor in FACTORS:
        model = by_hand(X.iloc[inside], y[inside], amounts[inside], factor)
        if recalled(model.predict(X.iloc[outside]), y[outside], amounts[outside]) >= GOAL:
            break
    return by_hand(X, y, amounts, factor)


def methods() -> dict[str, Callable[[Any, Any, Any, int], Any]]:
    """Return what recalls money, each a function of features, labels, amounts and a seed that returns a model."""
    goal = f"recall(value={AMOUNT}) >= {GOAL}"
    both = [("plain", LGBMClassifier(**SETTINGS)), ("weighted", WeightedLightGBM(**SETTINGS))]
    found: dict[str, Callable[[Any, Any, Any, int], Any]] = {
        "plain LightGBM": lambda X, y, _amounts, _seed: LGBMClassifier(**SETTINGS).fit(X, y),
        "amounts as weights": lambda X, y, amounts, _seed: by_hand(X, y, amounts, 1.0),
        "amounts as weights, factor tuned by hand": tuned_by_hand,
    }
    for name, models in (("plain LightGBM", LGBMClassifier(**SETTINGS)), ("plain and weighted LightGBM", both)):
        for words, level in (("goal without a margin", None), ("goal with confidence 0.9", 0.9)):
            found[f"{name}, {words}"] = lambda X, y, _amounts, seed, models=models, level=level: GoalClassifier(
                models, goals=[goal], confidence=level, random_state=seed
            ).fit(X, y)
    return found


def measure_money(seed: int) -> Iterator[tuple[str, str, float]]:
    """Yield the money recalled by each method, and its error, on test rows."""
    data = load_dataset("credit-default")
    X, y = pd.DataFrame(data.X, columns=data.feature_names), data.y
    amounts = X[AMOUNT].to_numpy(dtype=np.float64)
    train, test = train_test_split(np.arange(len(y)), test_size=0.5, random_state=seed, stratify=y)
    for name, fit in methods().items():
        started = time.perf_counter()
        model = fit(X.iloc[train], y[train], amounts[train], seed)
        yield name, "seconds", time.perf_counter() - started
        decisions = np.asarray(model.predict(X.iloc[test]))
        yield name, "money", recalled(decisions, y[test], amounts[test])
        yield name, "error", float((decisions != y[test]).mean())


N_DAYS, N_PAYMENTS, N_CHECKS, RATIO = 30, 3000, 60, 0.8
COUNTRIES = np.array(["A", "B", "C"])


def payments(rng: np.random.Generator, n_rows: int, shares: Any) -> tuple[Any, Any, Any]:
    """Return payments, which are fraud, and countries; scores are higher in some countries."""
    country = rng.choice(3, n_rows, p=shares)
    X = rng.normal(size=(n_rows, 3)) + 0.4 * country[:, None]
    is_fraud = rng.random(n_rows) < 1 / (1 + np.exp(7.6 - X @ [1.2, 0.8, 0.5]))
    return X, is_fraud.astype(int), {"country": COUNTRIES[country]}


def model_of_payments(rng: np.random.Generator) -> GoalClassifier:
    """Return a model of payments that selects of each country about as often as of any other."""
    X, y, columns = payments(rng, 40_000, [0.6, 0.3, 0.1])
    goal = f"min_ratio(selection_rate, by=country) >= {RATIO}"
    settings: dict[str, Any] = {"goals": [goal], "by": "country", "cv": 3, "confidence": None, "random_state": 0}
    return GoalClassifier(LogisticRegression(), **settings).fit(X, y, sensitive_features=columns)


def best_ratio(sizes: list[int]) -> float:
    """Return the largest ratio of selection rates that whole numbers of rows of three countries can have."""
    first, second = np.meshgrid(np.arange(N_CHECKS + 1), np.arange(N_CHECKS + 1))
    counts = np.stack([first, second, N_CHECKS - first - second]).reshape(3, -1)
    rates = counts[:, (counts >= 0).all(axis=0)] / np.array(sizes)[:, None]
    return float((rates.min(axis=0) / rates.max(axis=0)).max())


def measure_days(seed: int) -> Iterator[tuple[str, str, float]]:
    """Yield for every day how many payments are selected, the ratio of selection rates, and the fraud found."""
    rng = np.random.default_rng(seed)
    model = model_of_payments(rng)
    for day in range(N_DAYS):
        X, y, columns = payments(rng, N_PAYMENTS, rng.dirichlet([6, 3, 2]))
        ids = np.arange(N_PAYMENTS) + N_PAYMENTS * day
        plain = np.zeros(N_PAYMENTS, dtype=int)
        plain[np.argsort(-model.predict_proba(X)[:, 1])[:N_CHECKS]] = 1
        with warnings.catch_warnings(record=True) as cautions:
            warnings.simplefilter("always", MissedGoals)
            ours = model.predict(X, sensitive_features=columns, ids=ids, top=N_CHECKS)
        sizes = [int((columns["country"] == one).sum()) for one in COUNTRIES]
        for name, decisions in (("top=60 inside the goal", ours), ("the 60 highest scores", plain)):
            rates = [decisions[columns["country"] == one].mean() for one in COUNTRIES]
            yield name, "selected", float(decisions.sum())
            yield name, "ratio", min(rates) / max(rates)
            yield name, "best ratio", best_ratio(sizes)
            yield name, "cautioned", float(bool(cautions))
            yield name, "fraud", float((decisions * y).sum())
            yield name, "of", float(y.sum())


def measure_million(seed: int) -> Iterator[tuple[str, str, float]]:
    """Yield the seconds that decisions about a million rows take."""
    rng = np.random.default_rng(seed)
    model = model_of_payments(rng)
    X, _, columns = payments(rng, 1_000_000, [0.5, 0.3, 0.2])
    rounded, ids = X.round(1), np.arange(1_000_000)
    cases: dict[str, Callable[[], Any]] = {
        "predict, thresholds": lambda: model.predict(X, sensitive_features=columns),
        "predict, top=50,000": lambda: model.predict(X, sensitive_features=columns, top=50_000),
        "the same with ids and tied scores": lambda: model.predict(
            rounded, sensitive_features=columns, ids=ids, top=50_000
        ),
    }
    for name, run in cases.items():
        wall, own = time.perf_counter(), time.process_time()
        n_positive = int(np.sum(run()))
        yield name, "processor", time.process_time() - own
        yield name, "wall", time.perf_counter() - wall
        if "thresholds" not in name and n_positive != 50_000:
            raise RuntimeError(f"{name} selected {n_positive} rows.")


def page(rows: list[dict[str, str]]) -> str:
    """Return the page, given all rows."""
    table = pd.DataFrame(rows).astype({"value": float})

    def values(part: str, case: str, measure: str) -> np.ndarray:
        is_own = (table["part"] == part) & (table["case"] == case) & (table["measure"] == measure)
        return table.loc[is_own, "value"].to_numpy()

    def cases(part: str) -> list[str]:
        return list(dict.fromkeys(table.loc[table["part"] == part, "case"]))

    money, days, million = [], [], []
    for case in cases("money"):
        recalls, errors = values("money", case, "money"), values("money", case, "error")
        holds = f"{(recalls >= GOAL).sum()} of {recalls.size}"
        spread = f"{recalls.mean():.3f} ± {recalls.std():.3f}"
        money.append([case, spread, f"{errors.mean():.3f}", holds, f"{values('money', case, 'seconds').mean():.1f}"])
    for case in cases("days"):
        n_selected, ratios = values("days", case, "selected"), values("days", case, "ratio")
        found = values("days", case, "fraud").sum() / values("days", case, "of").sum()
        exact = f"{(n_selected == N_CHECKS).sum()} of {n_selected.size}"
        can = values("days", case, "best ratio") >= RATIO - 1e-9
        inside = f"{(ratios[can] >= RATIO - 1e-9).sum()} of {can.sum()}"
        said = f"{int(values('days', case, 'cautioned')[~can].sum())} of {(~can).sum()}" if "top" in case else ""
        days.append([case, exact, inside, said, f"{np.median(ratios):.3f}", f"{found:.3f}"])
    for case in cases("million"):
        seconds = (values("million", case, measure) for measure in ("processor", "wall"))
        million.append([case, *(f"{np.median(one):.2f} ({one.min():.2f} to {one.max():.2f})" for one in seconds)])
    about = {name.strip(): text for name, text in _sections()}
    return (
        "\n\n".join(
            [
                "# Money and capacity",
                "Made by `python bench/amounts.py`.",
                "## Money recalled, beside weights given by hand",
                f"{about['money']} Means over random halves, on test rows; behind ± the standard deviation.",
                markdown_table(["method", "money recalled", "error", "recalls 60 %", "seconds"], money),
                "## So many checks a day",
                f"{about['days']} Fraud found is a share of all.",
                markdown_table(
                    [
                        "method",
                        "days with 60",
                        "inside 0.8, where whole rows can be",
                        "cautioned where they cannot",
                        "median ratio",
                        "fraud found",
                    ],
                    days,
                ),
                "## A million rows",
                f"{about['million']} Medians, with the least and the largest.",
                markdown_table(["call", "seconds of the processor", "seconds on the clock"], million),
            ]
        )
        + "\n"
    )


def _sections() -> Iterator[tuple[str, str]]:
    """Yield the parts of this file's docstring, each with its text on one line."""
    for part in PARTS:
        text = (__doc__ or "").partition(f"\n{part}\n")[2]
        lines = text.splitlines()
        own = lines[: next((at for at, line in enumerate(lines) if not line.startswith("    ")), len(lines))]
        yield part, " ".join(line.strip() for line in own).replace("``", "`")


def main() -> None:
    """Measure what is not there yet, and write the page."""
    options = arguments((__doc__ or "").partition("\n")[0], PARTS, 10, FOLDER).parse_args()
    records = records_of(options, COLUMNS, n_keys=3)
    measures = {"money": measure_money, "days": measure_days, "million": measure_million}
    for part in [] if options.page else options.only:
        for split in range(options.splits):
            if not any(row["part"] == part and row["split"] == str(split) for row in records.rows):
                for case, measure, value in list(measures[part](split)):
                    records.add(part, case, split, measure, value)
    (options.output / "README.md").write_text(page(records.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
