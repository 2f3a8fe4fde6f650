"""Money and capacity: goals on amounts beside weights given by hand, so many checks a day, a million rows at once.

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
    ``predict(X, top=N_TOP)`` for 1,000,000 rows of that model. Rule: 2 seconds of one processor at most; the clock
    also counts what else the machine does.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from counterpoise import GoalClassifier
from counterpoise.rules.cautions import MissedGoals
from papers.arrays import FloatArray
from papers.datasets import load_dataset
from papers.experiments import Blocks, Experiment
from papers.markdown import markdown_table
from papers.tables import ResultRow, ResultsTable

NAME = "amounts"
MONEY, DAYS, MILLION = PARTS = ("money", "days", "million")
GOAL, AMOUNT = 0.6, "LIMIT_BAL"
FACTORS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
MIDDLE = 3.0  # a factor that is not tuned
SETTINGS = {"n_estimators": 100, "num_leaves": 15, "learning_rate": 0.05, "n_jobs": 1, "verbose": -1}


def by_hand(X: Any, y: Any, amounts: Any, factor: float) -> Any:
    """Return LightGBM trained with amounts as weights of those who default."""
    weights = np.where(y == 1, factor * amounts / amounts.mean(), 1.0)
    return LGBMClassifier(**SETTINGS).fit(X, y, sample_weight=weights)


class WeightedLightGBM(LGBMClassifier):
    """LightGBM that weights those who default by their amounts."""

    def fit(self, X: Any, y: Any) -> Any:
        """Train with the amounts in X."""
        amounts = X[AMOUNT].to_numpy(dtype=np.float64)
        return super().fit(X, y, sample_weight=np.where(y == 1, MIDDLE * amounts / amounts.mean(), 1.0))


def recalled(decisions: Any, y: Any, amounts: Any) -> float:
    """Return the share of the money of those who default that is flagged."""
    return float((amounts * y * decisions).sum() / (amounts * y).sum())


def tuned_by_hand(X: Any, y: Any, amounts: Any, seed: int) -> Any:
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
            found[f"{name}, {words}"] = partial(_inside_goal, goal, models, level)
    return found


def _inside_goal(goal: str, models: Any, level: float | None, X: Any, y: Any, _amounts: Any, seed: int) -> Any:
    return GoalClassifier(models, goals=[goal], confidence=level, random_state=seed).fit(X, y)


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
N_TOP = 50_000
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
        "predict, top=50,000": lambda: model.predict(X, sensitive_features=columns, top=N_TOP),
        "the same with ids and tied scores": lambda: model.predict(
            rounded, sensitive_features=columns, ids=ids, top=N_TOP
        ),
    }
    for name, run in cases.items():
        wall, own = time.perf_counter(), time.process_time()
        n_positive = int(np.sum(run()))
        yield name, "processor", time.process_time() - own
        yield name, "wall", time.perf_counter() - wall
        if "thresholds" not in name and n_positive != N_TOP:
            raise RuntimeError(f"{name} selected {n_positive} rows.")


class Part(NamedTuple):
    """A repeat of a question."""

    dataset: str
    seed: int
    experiment: str = NAME


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Part]:
    """Return the repeats."""
    return [Part(name, seed) for name in datasets for seed in range(n_seeds)]


def measure(part: Part) -> Iterator[ResultRow]:
    """Yield what is measured; days are told apart by their number."""
    measured = {MONEY: measure_money, DAYS: measure_days, MILLION: measure_million}[part.dataset]
    counts: dict[tuple[str, str], int] = {}
    for case, quantity, value in measured(part.seed):
        day = counts.get((case, quantity), 0)
        counts[case, quantity] = day + 1
        settings = f"day={day}" if part.dataset == DAYS else ""
        yield ResultRow(NAME, part.dataset, "", case, part.seed, None, quantity, "test", float(value), settings)


def blocks(rows: ResultsTable) -> Blocks:
    """Return a table for each question."""

    def values(part: str, case: str, quantity: str) -> FloatArray:
        return np.array([row.value for row in rows.where(dataset=part, method=case, quantity=quantity)])

    def cases(part: str) -> list[str]:
        return list(dict.fromkeys(row.method for row in rows.where(dataset=part)))

    found: dict[str, str] = {}
    money, days = [], []
    for case in cases(MONEY):
        recalls, errors = values(MONEY, case, "money"), values(MONEY, case, "error")
        holds = f"{(recalls >= GOAL).sum()} of {recalls.size}"
        money.append([case, f"{recalls.mean():.3f} ± {recalls.std():.3f}", f"{errors.mean():.3f}", holds])
    for case in cases(DAYS):
        n_selected, ratios = values(DAYS, case, "selected"), values(DAYS, case, "ratio")
        can = values(DAYS, case, "best ratio") >= RATIO - 1e-9
        share = values(DAYS, case, "fraud").sum() / values(DAYS, case, "of").sum()
        counts = [
            f"{(n_selected == N_CHECKS).sum()} of {n_selected.size}",
            f"{(ratios[can] >= RATIO - 1e-9).sum()} of {can.sum()}",
        ]
        days.append([case, *counts, f"{np.median(ratios):.3f}", f"{share:.3f}"])
    million = [[case, f"{np.median(values(MILLION, case, 'processor')):.2f}"] for case in cases(MILLION)]
    if money:
        found["money"] = markdown_table(["method", "money recalled", "error", "recalls 60 %"], money)
    if days:
        heads = ["method", "days with 60", "inside 0.8, where whole rows can be", "median ratio", "fraud found"]
        found["days"] = markdown_table(heads, days)
    if million:
        found["million"] = markdown_table(["call", "seconds of the processor"], million)
    return found


EXPERIMENT = Experiment(NAME, "money and capacity", wanted, measure, blocks, PARTS, 10)
