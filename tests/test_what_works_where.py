"""What works where: each kind of goal and option, with each way to choose rules. The guide shows the same table.

Each cell works, and every goal has the value that a count by rows finds; or it is refused by an error that names a fact.
"""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp
from counterpoise.distributed import DaskGoalClassifier
from counterpoise.explorer import session_of_model
from counterpoise.explorer.conversation import Exporter
from counterpoise.goals import Table
from counterpoise.theory.risks import WorstGroup

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "what_works_where.md"
RNG = np.random.default_rng(7)
N_TRAINED, N = 200, 240
SEX = RNG.choice(["F", "M"], N_TRAINED + N)
X = RNG.normal(size=(N_TRAINED + N, 2)).round(1) + 0.3 * (SEX == "M")[:, None]
SCORE = X[:, 0] + 0.7 * X[:, 1] + RNG.normal(size=N_TRAINED + N)
ROWS, SEX = X[N_TRAINED:], SEX[N_TRAINED:]
REGION, AMOUNT = RNG.choice(["east", "north", "south"], N), RNG.integers(1, 50, N).astype(float)
PERSON, WEIGHT = np.arange(N) // 2, RNG.integers(1, 4, N).astype(float)
OLDER = RNG.random(N) < 0.5
COLUMNS = {"sex": SEX, "region": REGION, "amount": AMOUNT, "age": np.where(OLDER, 50, 30)}
TWINS = Table(ROWS + [0.4, 0.0], sensitive_features={"sex": SEX})
MAIL = Table(ROWS[:150] - 0.2, sensitive_features={"sex": SEX[:150]})


class Labelled(NamedTuple):
    """Fitted models, labels of the selection rows, and what the deployed model decides about these."""

    models: list[Any]
    y: np.ndarray
    baseline: np.ndarray


def labelled(y):
    """Return models of the first rows, and the labels of the others."""
    weights = [None] if y.max() > 1 else [None, {1: 0.4}, {1: 0.6}, {1: 2.0}, {1: 4.0}]
    models = [
        DecisionTreeClassifier(max_depth=3, random_state=0),
        *(LogisticRegression(class_weight=weight) for weight in weights),
    ]
    models = [model.fit(X[:N_TRAINED], y[:N_TRAINED]) for model in models]
    return Labelled(models, y[N_TRAINED:], models[0].predict(ROWS + 0.2))


TWO, THREE = labelled((SCORE > 0.3).astype(int)), labelled(np.digitize(SCORE, [-0.5, 0.6]))


class Decided(NamedTuple):
    """Decisions about the selection rows as probabilities, and what is known of these rows."""

    shares: np.ndarray  # (n_rows, n_classes), with deferral one more
    y: np.ndarray
    baseline: np.ndarray
    weight: np.ndarray
    of_datasets: dict[str, np.ndarray]  # decisions about the rows of other datasets

    @property
    def positive(self):
        """Return how likely the positive class is, the last one."""
        return self.shares[:, self.y.max()]

    def called(self, label):
        """Return how likely each row gets the label that is given for it."""
        return np.take_along_axis(self.shares, np.broadcast_to(label, self.y.shape)[:, None], axis=1)[:, 0]

    def mean(self, values, where=True):
        weight = self.weight * where
        return (weight * values).sum() / weight.sum()

    def selection(self, where=True):
        return self.mean(self.positive, where)

    def recall(self, where=True, of=None):
        label = self.y.max() if of is None else of
        return self.mean(self.called(label), (self.y == label) & where)

    def precision(self, where=True):
        return self.mean(self.positive * (self.y == self.y.max()), where) / self.mean(self.positive, where)

    def alike(self, labels):
        """Return how likely decisions are positive where these labels are, and negative where they are negative."""
        return np.where(labels == self.y.max(), self.positive, 1.0 - self.positive)

    def wins_less_losses(self):
        """Return how often decisions are right where the deployed model errs, less the reverse."""
        right, was_right = self.alike(self.y), (self.baseline == self.y.max()) == (self.y == self.y.max())
        return self.mean(right * ~was_right) - self.mean((1.0 - right) * was_right)


def groups(rate, column=REGION):
    """Return a rate in each group."""
    return [rate(column == name) for name in np.unique(column)]


class Case(NamedTuple):
    """A row of the matrix: goals, settings and what else ``fit`` takes, and where that is refused by which fact."""

    goals: list[str]
    values: Callable[[Decided], list[float]]  # of the goals, by the formula of a textbook
    settings: dict[str, Any] = {}
    columns: dict[str, Any] = {}  # "baseline" stands for that of the problem
    refused: dict[str, str] = {}


ONE, DRAWN, SEVERAL, CLASSES, MODELS, DASK, EXPLORER = PLACES = (
    "one rule of a score",
    "drawn rules of a score",
    "several scores",
    "three classes",
    "mixture of models",
    "Dask",
    "explorer",
)
CASES = {
    "a rate": Case(["recall >= 0.7"], lambda rows: [rows.recall()]),
    "rows by a condition": Case(["recall(age >= 40) >= 0.7"], lambda rows: [rows.recall(OLDER)]),
    "a sum of rates": Case(
        ["recall - 0.5 * positive_rate >= 0.5"], lambda rows: [rows.recall() - 0.5 * rows.selection()]
    ),
    "rates of two groups": Case(
        ["positive_rate(sex=F) >= 0.8 * positive_rate(sex=M)"], lambda rows: [rows.selection(SEX == "F")]
    ),
    "an equality": Case(["positive_rate == 0.4 +- 0.02"], lambda rows: [abs(rows.selection() - 0.4)]),
    "a ratio": Case(["precision >= 0.75"], lambda rows: [rows.precision()]),
    "every group": Case(["every_group(recall, by=region) >= 0.6"], lambda rows: [min(groups(rows.recall))]),
    "largest difference of groups": Case(
        ["max_difference(positive_rate, by=region) <= 0.1"], lambda rows: [np.ptp(groups(rows.selection))]
    ),
    "least ratio of groups": Case(
        ["min_ratio(positive_rate, by=region) >= 0.8"],
        lambda rows: [min(groups(rows.selection)) / max(groups(rows.selection))],
    ),
    "difference within strata, averaged": Case(
        ["max_difference(positive_rate, by=region, within=sex, average=True) <= 0.1"],
        lambda rows: [within_strata(rows)],
    ),
    "ratios of groups compared": Case(
        ["max_difference(precision, by=sex) <= 0.05"], lambda rows: [np.ptp(groups(rows.precision, SEX))]
    ),
    "conditional disparity": Case(
        ["conditional_disparity(by=sex, within=age) <= 0.2"], lambda rows: [disparity(rows)]
    ),
    "every class": Case(
        ["every_class(recall) >= 0.4"], lambda rows: [min(rows.recall(of=label) for label in np.unique(rows.y))]
    ),
    "mean over classes": Case(
        ["macro(recall) >= 0.5"], lambda rows: [np.mean([rows.recall(of=label) for label in np.unique(rows.y)])]
    ),
    "costs of errors": Case(
        ["cost({0->1: 2, 1->0: 3}) <= 1"],
        lambda rows: [rows.mean(2 * (rows.y == 0) * rows.shares[:, 1] + 3 * (rows.y == 1) * rows.shares[:, 0])],
    ),
    "amounts": Case(
        ["recall(value=amount) >= 0.7", "total(value=amount) <= 5000"],
        lambda rows: [
            rows.mean(rows.positive * AMOUNT, rows.y == rows.y.max()) / rows.mean(AMOUNT, rows.y == rows.y.max()),
            (rows.positive * AMOUNT).sum(),
        ],
    ),
    "weights": Case(["recall >= 0.7"], lambda rows: [rows.recall()], columns={"sample_weight": WEIGHT}),
    "the deployed model": Case(
        ["churn <= 0.2", "wins_minus_losses >= 0"],
        lambda rows: [rows.mean(1.0 - rows.alike(rows.baseline)), rows.wins_less_losses()],
        columns={"baseline": "baseline"},
    ),
    "rules by the deployed model": Case(
        ["churn <= 0.2"],
        lambda rows: [rows.mean(1.0 - rows.alike(rows.baseline))],
        settings={"by": ["baseline"]},
        columns={"baseline": "baseline"},
    ),
    "twins": Case(
        ["flip_rate(twin=swapped) <= 0.15"],
        lambda rows: [rows.mean(1.0 - (rows.shares * rows.of_datasets["swapped"]).sum(axis=1))],
        columns={"datasets": {"swapped": TWINS}},
    ),
    "another dataset": Case(
        ["positive_rate(mail) <= 0.3"],
        lambda rows: [rows.of_datasets["mail"][:, rows.y.max()].mean()],
        columns={"datasets": {"mail": MAIL}},
    ),
    "deferral": Case(
        ["defer_rate <= 0.2", "recall >= 0.6"],
        lambda rows: [rows.mean(rows.shares[:, -1]), rows.recall()],
        settings={"deferral": cp.Deferral(0.2)},
    ),
    "a tail": Case(["recall >= 0.6"], lambda rows: [rows.recall()], settings={"alpha": 0.5, "decision": "sticky"}),
    "a budget": Case(
        ["recall >= 0.6"], lambda rows: [rows.recall()], settings={"alpha": 0.5, "budget": 0.02, "decision": "sticky"}
    ),
    "a rate as objective": Case(
        ["recall >= 0.7"], lambda rows: [rows.recall()], settings={"objective": "false_positive_rate"}
    ),
    "a ratio as objective": Case(
        ["positive_rate <= 0.4"], lambda rows: [rows.selection()], settings={"objective": "f1_score"}
    ),
    "the worst group as objective": Case(
        ["recall >= 0.6"], lambda rows: [rows.recall()], settings={"objective": WorstGroup("sex")}
    ),
    "confidence": Case(["recall >= 0.6"], lambda rows: [rows.recall()], settings={"confidence": 0.9}),
    "confidence, rows of persons": Case(
        ["recall >= 0.6"], lambda rows: [rows.recall()], settings={"confidence": 0.9}, columns={"ids": PERSON}
    ),
    "a goal's own confidence": Case(["recall >= 0.6 with confidence 0.9"], lambda rows: [rows.recall()]),
    "a proof": Case(["recall >= 0.5"], lambda rows: [None], settings={"confidence": cp.Proof(0.8)}),
}


def within_strata(rows):
    """Return the largest difference of two regions, whose rates are averaged over the sexes by their rows."""
    rates = np.array([groups(lambda where, sex=sex: rows.selection(where & (SEX == sex))) for sex in "FM"])
    return np.ptp(np.average(rates, axis=0, weights=[(SEX == sex).sum() for sex in "FM"]))


def disparity(rows):
    """Return the largest share of a sex among the rejected of an age less that among the accepted, averaged."""

    def share(sex, where):
        return rows.mean(SEX == sex, where * (1 - rows.positive)) - rows.mean(SEX == sex, where * rows.positive)

    shares = [[share(sex, OLDER), share(sex, ~OLDER)] for sex in "FM"]
    return max(np.average(shares, axis=1, weights=[OLDER.sum(), (~OLDER).sum()]))


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("dask.distributed")
    settings = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


def fitted(case, place):
    """Return a model of a place of the matrix, with the labels that it was chosen on."""
    models, y, baseline = THREE if place == CLASSES else TWO
    settings = {"goals": case.goals, "confidence": None, "random_state": 0} | case.settings
    columns = {name: baseline if name == "baseline" else values for name, values in case.columns.items()}
    if place == MODELS:
        model = cp.MixtureClassifier(models, **{"alpha": 1.0 if "objective" not in settings else None} | settings)
        return model.fit(ROWS, y, sensitive_features=COLUMNS, **columns)
    settings = {"cv": "prefit", "by": "sex"} | settings
    if place == DASK:
        return over_dask(DaskGoalClassifier(models[1], **settings), y, columns)
    if place == CLASSES:
        settings["pos_label"] = 2
    if place in {ONE, DRAWN}:
        settings["decision"] = "fixed" if place == ONE else "sticky"
    model = cp.GoalClassifier(models[:2] if place == SEVERAL else models[1], **settings)
    model.fit(ROWS, y, sensitive_features=COLUMNS, **columns)
    if place == EXPLORER:
        session = session_of_model(model)
        answer = session.answer(session.start, exact=True)
        assert answer["kind"] == "answer", answer
        return Exporter(session).model(session.start)
    return model


def over_dask(model, y, columns):
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(ROWS, columns=["f0", "f1"]).assign(**COLUMNS, y=y)
    for name in ("baseline", "sample_weight"):
        if name in columns:
            frame[name] = columns[name]
            columns[name] = name
    parts = dd.from_pandas(frame, npartitions=2)
    model.fit(parts, "y", sensitive_features=list(COLUMNS), features=["f0", "f1"], **columns)
    return model.to_local()


def decided(model, case, place):
    """Return what a model decides about all rows."""
    _, y, baseline = THREE if place == CLASSES else TWO
    options = {"baseline": baseline} if "baseline" in np.atleast_1d(case.settings.get("by", ())) else {}
    by = {} if place == MODELS else {"sensitive_features": COLUMNS}
    shares = model.decision_proba(ROWS, **by, **options)
    datasets = case.columns.get("datasets", {})
    of_datasets = {
        name: model.decision_proba(table.X, **by and {"sensitive_features": table.sensitive_features})
        for name, table in datasets.items()
    }
    return Decided(shares, y, baseline, case.columns.get("sample_weight", np.ones(N)), of_datasets)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", CASES)
def test_each_cell_works_or_is_refused_by_a_fact(name, place):
    case = CASES[name]
    refusal = case.refused.get(place)
    with pytest.raises((ValueError, TypeError), match=refusal) if refusal else nullcontext():
        model = fitted(case, place)
    if refusal:
        return
    for check, value in zip(model.check_goals(), case.values(decided(model, case, place)), strict=True):
        assert check.holds
        assert value is None or check.value == pytest.approx(value, abs=1e-9)
