"""What works where: each kind of goal and option, with each way to choose rules. The guide shows the same table.

Each cell works, and every goal has the value that a count by rows finds, or an error names what is refused.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from types import MappingProxyType
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
from tests.tiers import slow

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
TWINS = Table(np.add(ROWS, [0.4, 0.0]), sensitive_features={"sex": SEX})
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


NONE = MappingProxyType({})


class Case(NamedTuple):
    """A row of the matrix: goals, settings and what else ``fit`` takes, and where that is refused by which fact."""

    goals: list[str]
    values: Callable[[Decided], list[float]]  # of the goals, by the formula of a textbook
    settings: Mapping[str, Any] = NONE
    columns: Mapping[str, Any] = NONE  # "baseline" stands for that of the problem
    refused: Mapping[str, str] = NONE


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
        ["min_ratio(positive_rate, by=region) >= 0.7"],
        lambda rows: [min(groups(rows.selection)) / max(groups(rows.selection))],
    ),
    "difference within strata, averaged": Case(
        ["max_difference(positive_rate, by=region, within=sex, average=True) <= 0.1"],
        lambda rows: [within_strata(rows)],
    ),
    "ratios of groups compared": Case(
        ["max_difference(precision, by=sex) <= 0.15"],
        lambda rows: [np.ptp(groups(rows.precision, SEX))],
        refused={
            DRAWN: r"max_difference\(precision, by=sex\).* decision='fixed'",
            MODELS: r"max_difference\(precision, by=sex\).* decision='fixed'",
            CLASSES: r"more than two classes .*max_difference\(precision, by=sex\)",
        },
    ),
    "conditional disparity": Case(
        ["conditional_disparity(by=sex, within=age) <= 0.2"],
        lambda rows: [disparity(rows)],
        refused={
            DRAWN: r"conditional_disparity.* decision='fixed'",
            MODELS: r"conditional_disparity.* decision='fixed'",
            CLASSES: r"more than two classes .*conditional_disparity",
        },
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
        refused={MODELS: "'by'"},
    ),
    "twins": Case(
        ["flip_rate(twin=swapped) <= 0.15"],
        lambda rows: [rows.mean(1.0 - (rows.shares * rows.of_datasets["swapped"]).sum(axis=1))],
        columns={"datasets": {"swapped": TWINS}},
        refused={CLASSES: "flip_rate is for two classes", DASK: "'datasets'"},
    ),
    "another dataset": Case(
        ["positive_rate(mail) <= 0.3"],
        lambda rows: [rows.of_datasets["mail"][:, rows.y.max()].mean()],
        columns={"datasets": {"mail": MAIL}},
        refused={DASK: "'datasets'"},
    ),
    "deferral": Case(
        ["defer_rate <= 0.2", "recall >= 0.6"],
        lambda rows: [rows.mean(rows.shares[:, -1]), rows.recall()],
        settings={"deferral": cp.Deferral(0.2)},
        refused={MODELS: "'deferral'"},
    ),
    "a tail": Case(
        ["recall >= 0.6"],
        lambda rows: [rows.recall()],
        settings={"alpha": 0.5, "decision": "sticky"},
        refused={ONE: r"decision='fixed' .*alpha=0.5"},
    ),
    "a budget": Case(
        ["recall >= 0.6"],
        lambda rows: [rows.recall()],
        settings={"alpha": 0.5, "budget": 0.02, "decision": "sticky"},
        refused={ONE: r"decision='fixed' .*alpha=0.5"},
    ),
    "a rate as objective": Case(
        ["recall >= 0.7"], lambda rows: [rows.recall()], settings={"objective": "false_positive_rate"}
    ),
    "a ratio as objective": Case(
        ["positive_rate <= 0.4"],
        lambda rows: [rows.selection()],
        settings={"objective": "f1_score"},
        refused={EXPLORER: "f1_score"},
    ),
    "the worst group as objective": Case(
        ["recall >= 0.6"], lambda rows: [rows.recall()], settings={"objective": WorstGroup("sex")}
    ),
    "confidence": Case(["recall >= 0.6"], lambda rows: [rows.recall()], settings={"confidence": 0.9}),
    "confidence, rows of persons": Case(
        ["recall >= 0.6"],
        lambda rows: [rows.recall()],
        settings={"confidence": 0.9},
        columns={"ids": PERSON},
        refused={DASK: "'ids'"},
    ),
    "a goal's own confidence": Case(["recall >= 0.6 with confidence 0.9"], lambda rows: [rows.recall()]),
    "a proof": Case(["recall >= 0.5"], lambda _rows: [None], settings={"confidence": cp.Proof(0.8)}),
}


def within_strata(rows):
    """Return the largest difference of two regions, whose rates are averaged over the sexes by their rows."""
    rates = np.array([groups(lambda where, sex=sex: rows.selection(where & (sex == SEX))) for sex in "FM"])
    return np.ptp(np.average(rates, axis=0, weights=[(sex == SEX).sum() for sex in "FM"]))


def disparity(rows):
    """Return the largest share of a sex among the rejected of an age less that among the accepted, averaged."""

    def share(sex, where):
        return rows.mean(sex == SEX, where * (1 - rows.positive)) - rows.mean(sex == SEX, where * rows.positive)

    shares = [[share(sex, OLDER), share(sex, ~OLDER)] for sex in "FM"]
    return max(np.average(shares, axis=1, weights=[OLDER.sum(), (~OLDER).sum()]))


def as_table():
    """Return the matrix as the guide shows it."""
    lines = [f"| | {' | '.join(PLACES)} |", f"|---|{'---|' * len(PLACES)}"]
    for name, case in CASES.items():
        goals = "<br>".join(f"`{goal}`" for goal in case.goals)
        options = [f"`{option}={value!r}`" for option, value in case.settings.items() if option != "decision"]
        options += [f"`{option}=...`" for option in case.columns]
        answers = ["no" if place in case.refused else "yes" for place in PLACES]
        lines.append(f"| {name}: {', '.join([goals, *options])} | {' | '.join(answers)} |")
    return "\n".join(lines)


def test_the_guide_shows_this_table():
    assert as_table() in PAGE.read_text(encoding="utf-8")


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
    dask, dd = (pytest.importorskip(name) for name in ("dask", "dask.dataframe"))
    frame = pd.DataFrame(ROWS, columns=["f0", "f1"]).assign(**COLUMNS, y=y)
    names = [name for name in ("baseline", "sample_weight") if name in columns]
    parts = dd.from_pandas(frame.assign(**{name: columns[name] for name in names}), npartitions=2)
    columns |= {name: parts[name] for name in names}
    X = parts[["f0", "f1"]].to_dask_array(lengths=True)
    with dask.config.set(scheduler="synchronous"):
        model.fit(X, parts["y"], sensitive_features=parts[list(COLUMNS)], **columns)
    return model.to_local()


def decided(model, case, place):
    """Return what a model decides about all rows."""
    _, y, baseline = THREE if place == CLASSES else TWO
    options = {"baseline": baseline} if "baseline" in np.atleast_1d(case.settings.get("by", ())) else {}
    by = {} if place == MODELS else {"sensitive_features": COLUMNS}
    shares = model.decision_proba(ROWS, **by, **options)
    datasets = case.columns.get("datasets", {})
    of_datasets = {
        name: model.decision_proba(table.X, **by and {"sensitive_features": {"sex": SEX[: len(table.X)]}})
        for name, table in datasets.items()
    }
    return Decided(shares, y, baseline, case.columns.get("sample_weight", np.ones(N)), of_datasets)


SEARCHED = {("conditional disparity", place) for place in (ONE, SEVERAL)}  # by branch and bound
CELLS = [slow(*cell) if cell in SEARCHED else cell for cell in product(CASES, PLACES)]


@pytest.mark.parametrize(("name", "place"), CELLS)
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


# Bounds of their own, slow, or refused where decisions are drawn:
LEFT_OUT = {"a goal's own confidence", "rates of two groups", "conditional disparity", "ratios of groups compared"}
PLAIN = [name for name, case in CASES.items() if not case.settings and name not in LEFT_OUT]


@pytest.mark.parametrize("name", PLAIN)
def test_no_rule_that_meets_the_goals_errs_less_than_the_chosen_one_nor_than_a_mixture(name):
    case = CASES[name]
    model, drawn = fitted(case, ONE), fitted(case, DRAWN)
    known, goals = decided(model, case, ONE), model.check_goals()
    (rule,), rng, n_met = model.rules_, np.random.default_rng(0), 0
    score = model.predict_proba(ROWS)[:, 1]
    of_datasets = {data: model.predict_proba(table.X)[:, 1] for data, table in case.columns.get("datasets", {}).items()}
    chosen = [rule.thresholds[f"sex={sex}"] for sex in "FM"]
    levels = np.unique(score)
    near = [np.searchsorted(levels, threshold) + np.arange(-6, 6) for threshold in chosen]
    for _ in range(100):
        cuts = [
            levels[rng.choice(places) % levels.size] if rng.random() < 0.8 else rng.choice(levels) for places in near
        ]

        def decide(scores, sex, cuts=cuts):
            positive = (scores > np.where(sex == "F", *cuts)).astype(float)
            return np.stack([1.0 - positive, positive], axis=1)

        others = {data: decide(one, SEX[: len(one)]) for data, one in of_datasets.items()}
        rows = known._replace(shares=decide(score, SEX), of_datasets=others)
        with np.errstate(invalid="ignore"):  # a precision of nobody
            values = case.values(rows)
        if all(
            value <= one.bound if one.goal.sense == "<=" else value >= one.bound
            for value, one in zip(values, goals, strict=True)
        ):
            n_met += 1
            error = 1.0 - rows.mean(rows.called(rows.y))
            assert error >= model.value_ - model.gap_ - 1e-9
            assert error >= drawn.value_ - drawn.gap_ - 1e-9
    assert n_met
