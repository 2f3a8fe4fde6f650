"""Settings that were once looked at on test rows of the tables they stand in, chosen again where no table looks.

For each of them there are candidates, data sets or splits that no table of its page uses, and one rule, written before
anything was measured:

    The candidate of the least mean of what is held out, over sets and splits, is the choice. Where what the tables
    have is no further above it than one standard error of their difference, set by set and split by split, the two
    cannot be told apart, and the tables stand; else they are to be run again with the choice.

The bounds of the twenty models have no loss to be judged by. Theirs is: of bounds that are all moved by the same part,
the tightest that two of the twenty models meet on the selection rows of every split. No test row is looked at.

The schedule of the networks is chosen by validation accuracy alone, of those that were tried and that do not cost more
steps for a hundred networks than the one in use; its numbers are in ``schedules.csv`` of boosted CVaR.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split

from counterpoise import GoalClassifier
from counterpoise.boosting.dro import DROBoostClassifier
from counterpoise.boosting.margin_boost import QUADRATIC_COSTS
from counterpoise.classifiers.constrained import ConstrainedClassifier
from counterpoise.datasets import split_rows
from counterpoise.goals import InfeasibleGoals, Table, as_goals, bind, positive_rate
from counterpoise.learners import HistogramTree
from counterpoise.metrics import cvar_loss
from counterpoise.runs.results import ResultRow
from papers.arrays import FloatArray
from papers.constants.sets import drawn, loaded, with_sexes
from papers.dataset_constraints.experiment import GAMMA, REGULARIZATION, churn_rates, churn_samples, shifted_svm
from papers.dro_boosting.experiment import CONFIDENCE, DEGREES_OF_FREEDOM, DEPTH, N_TRAIN, STEP, STOPPED
from papers.mixture_goals.experiment import CATEGORIES, GOALS, NUMBERS, SIZES, as_people, ask
from papers.mixture_goals.pool import DEPLOYED, candidates
from papers.vadaboost.experiment import PARTS, forget, make_models

FIRST_SEED = 1_000  # of the splits, so that none is that of a table
N_SEEDS = 10
MOST_TESTED = 10_000
STEPS = (1.0, 0.5, 0.3, 0.2, 0.1, 0.05)
GRID_ROWS = 5_000
OF_STEP = "step of DRO-Boosting"
OF_LINEAR, OF_QUADRATIC = "costs of RLP-Boost", "costs of RQP-Boost"
OF_STRENGTH, OF_CHURN_STRENGTH, OF_WIDTH = (
    "regularization, fairness",
    "regularization, churn",
    "width of features, churn",
)
OF_MOVES = "standard errors, class rules"
OF_BOUNDS = "bounds of the twenty models"
STRENGTHS = (1e-4, 1e-3, 1e-2)
STRENGTH_ROWS = 20_000
KAPPAS = (0.5, 0.8, 1.0)
_EVEN = 0.5  # probability of a score of 0
CHURN_STRENGTHS, WIDTHS = (1e-6, 1e-5, 1e-4), (0.01, 0.03, 0.1)
TIGHTER = (-0.1, -0.05, 0.0, 0.05, 0.1)
MOVES = (0.0, 1.0, 2.0, 3.0)
CLASS_ROWS = 6_000
FLOOR, TAIL = "floor", "tail"  # what class rules are for
RAISED, TAILS, BUDGET = (0.03, 0.06), (0.05, 0.2), 0.02  # above the plain worst recall; parts; of average error
_MOVES = "counterpoise.rules.class_scores.family._SURE"
FEWEST = 2  # of the twenty models that must meet the bounds


class Part(NamedTuple):
    """A setting, and the rows and the split that its candidates are tried on."""

    experiment: str
    dataset: str
    learner: str
    seed: int

    def __str__(self) -> str:
        return f"{self.experiment}: {self.dataset}, {self.learner}, split {self.seed}"


Tried = Iterator[tuple[str, float]]  # candidates, and what is held out of them


class Constant(NamedTuple):
    """A setting to choose."""

    name: str
    candidates: tuple[str, ...]
    before: str  # what the tables had when it was chosen again
    now: str  # what they have
    quantity: str
    datasets: tuple[str, ...]
    measure: Callable[[Part], Tried]
    learners: tuple[str, ...] = ("tree",)
    n_seeds: int = N_SEEDS


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Part]:
    """Return the splits of all settings that use one of the data sets."""
    return [
        Part(one.name, dataset, learner, FIRST_SEED + seed)
        for one in CONSTANTS
        for seed in range(min(n_seeds, one.n_seeds))
        for dataset in one.datasets
        if dataset in datasets
        for learner in one.learners
    ]


def measure(part: Part) -> list[ResultRow]:
    """Return what every candidate comes to on one split."""
    one = next(constant for constant in CONSTANTS if constant.name == part.experiment)
    return [
        ResultRow(*part[:3], candidate, part.seed, None, one.quantity, "held out", float(value))
        for candidate, value in one.measure(part)
    ]


def _steps(part: Part) -> Tried:
    """Yield the error of DRO-Boosting as in its Table 1, with other steps."""
    X, y = drawn(part.dataset, N_TRAIN + MOST_TESTED, part.seed)
    n_train = min(N_TRAIN, len(y) // 2)
    tree = HistogramTree(max_depth=DEPTH)
    for step in STEPS:
        settings = STOPPED | {"learning_rate": step, "random_state": part.seed}
        model = DROBoostClassifier(
            tree, degrees_of_freedom=DEGREES_OF_FREEDOM, radius_confidence=CONFIDENCE, **settings
        )
        model.fit(X[:n_train], y[:n_train])
        yield f"{step:g}", float((model.predict(X[n_train:]) != y[n_train:]).mean())


def grids(costs: tuple[float, ...], beyond: tuple[tuple[float, ...], tuple[float, ...]]) -> dict[str, Any]:
    """Return every second of some costs, all, all and those beyond them, and all with those halfway between."""
    between = np.sqrt(np.multiply(costs[:-1], costs[1:])).round(3).tolist()
    return {
        "every second": costs[::2],
        "as it was": costs,
        "wider": (*beyond[0], *costs, *beyond[1]),
        "finer": tuple(sorted((*costs, *between))),
    }


FORMER_COSTS = 1.7, 2.5, 3.3, 5.0, 10.0, 20.0, 50.0, 100.0  # of RLP-Boost, before its finer ones were chosen
GRIDS = {
    "RLP-Boost": grids(FORMER_COSTS, ((1.2,), (200.0, 500.0))),
    "RQP-Boost": grids(QUADRATIC_COSTS, ((0.03, 0.1), (1000.0, 3000.0))),
}


def _grid(method: str) -> Callable[[Part], Tried]:
    def tried(part: Part) -> Tried:
        """Yield the test error where the cost is that of the least validation error in a grid, as in the tables."""
        forget()
        X, y = drawn(part.dataset, GRID_ROWS, part.seed)
        train, valid, test = split_rows(y, PARTS, seed=part.seed)
        for name, costs in GRIDS[method].items():
            plain = make_models(part.learner, part.seed)[method]
            model = type("Gridded", (type(plain),), {"_costs": costs})(**plain.get_params(deep=False))
            model.fit(X[train], y[train], X_val=X[valid], y_val=y[valid])
            yield name, float((model.predict(X[test]) != y[test]).mean())

    return tried


def _strengths(part: Part) -> Tried:
    """Yield the error plus what the goal is missed by, means over kappas, with other regularizations."""
    X, y, sexes = with_sexes(part.dataset, STRENGTH_ROWS, part.seed)
    half = len(y) // 2
    for strength in STRENGTHS:
        found = [_fairness(X, y, sexes, half, kappa, strength) for kappa in KAPPAS]
        yield f"{strength:g}", float(np.mean(found))


def _fairness(X: Any, y: Any, sexes: Any, half: int, kappa: float, strength: float) -> float:
    goal = positive_rate(sex="Female") >= kappa * positive_rate(sex="Male")
    model = ConstrainedClassifier(goals=goal, regularization=strength, decision="ramp")
    model.fit(X[:half], y[:half], sensitive_features={"sex": sexes[:half]})
    said = model.classes_[(model.predict_proba(X[half:])[:, 1] > _EVEN).astype(int)]  # by the sign, as in the paper
    women = sexes[half:] == "Female"
    missed = kappa * float(said[~women].mean()) - float(said[women].mean())
    return float((said != y[half:]).mean()) + max(0.0, missed)


def _churn(settings: dict[str, tuple[float, float]]) -> Callable[[Part], Tried]:
    def tried(part: Part) -> Tried:
        """Yield the error of the support vector machine, its bias shifted to the recall of the deployed model."""
        for name, (strength, width) in settings.items():
            train, test = (_churn_samples(part.seed, width)[split] for split in ("train", "test"))
            recalled = float(train["fresh"].baseline[train["fresh"].y == 1].mean())
            decide = shifted_svm(train, recalled, strength)
            yield name, churn_rates(test, {one: decide(sample.X) for one, sample in test.items()})["error"]

    return tried


def _moves(part: Part) -> Tried:
    """Yield the error plus what the floor is missed by, or the tail loss plus what the budget is missed by.

    Both are means over two levels of rules that are moved by labels where that saves so many standard errors.
    """
    X, y = drawn(part.dataset, CLASS_ROWS, part.seed)
    halves = partial(train_test_split, test_size=0.5, random_state=part.seed)
    X, X_rest, y, y_rest = halves(X, y, stratify=y)
    X_choose, X_test, y_choose, y_test = halves(X_rest, y_rest, stratify=y_rest)
    choose, test = (X_choose, y_choose), (X_test, y_test)
    model = HistGradientBoostingClassifier(random_state=part.seed).fit(X, y)
    for candidate in MOVES:
        with patch(_MOVES, candidate):
            levels = RAISED if part.learner == FLOOR else TAILS
            yield f"{candidate:g}", float(np.mean([_held_out(model, choose, test, part, level) for level in levels]))


def _held_out(model: Any, choose: Sequence[Any], test: Sequence[Any], part: Part, level: float) -> float:
    """Return what rules for one level come to on test rows, in expectation over their draws."""
    X, y = test
    wrong = (model.predict(X) != y).astype(float)
    if part.learner == TAIL:
        losses = _losses(model, choose, test, alpha=level, budget=BUDGET)
        return float(cvar_loss(losses, level)) + max(0.0, float(losses.mean() - wrong.mean()) - BUDGET)
    floor = round(recall_score(choose[1], model.predict(choose[0]), average=None).min() + level, 3)
    losses = _losses(model, choose, test, alpha=1.0, goals=[f"every_class(recall, train) >= {floor}"])
    worst = 1.0 - max(float(losses[y == one].mean()) for one in np.unique(y))
    return float(losses.mean() + max(0.0, floor - worst))


def _losses(model: Any, choose: Sequence[Any], test: Sequence[Any], **settings: Any) -> FloatArray:
    """Return the chance that each test row is decided wrongly by rules of the model's class probabilities.

    Where the floor is out of reach, whatever the candidate, the plain model decides.
    """
    rules = GoalClassifier(model, cv="prefit", decision="sticky", confidence=None, random_state=0, **settings)
    try:
        chances = rules.fit(*choose).decision_proba(test[0])
    except InfeasibleGoals:
        return np.asarray(model.predict(test[0]) != test[1], dtype=np.float64)
    return np.asarray(1.0 - chances[np.arange(len(test[1])), np.searchsorted(model.classes_, test[1])])


@lru_cache(maxsize=1)  # 300 MB
def _churn_samples(seed: int, width: float) -> Any:
    return churn_samples(loaded("acs-income"), seed, width=width)


def _bounds(part: Part) -> Tried:
    """Yield how many single models meet all goals on the selection rows, with bounds that are moved."""
    train, choice, live, _ = as_people(loaded(part.dataset)).split(part.seed, SIZES)
    pool = {one.name: one.fit(train.X, train.y) for one in candidates(CATEGORIES, NUMBERS, part.seed)}
    tables = {
        "train": Table(choice.X, choice.y),
        "live": Table(live.X, baseline=pool[DEPLOYED].predict(live.X)),
    }
    said = ask(pool, tables)
    for part_of in TIGHTER:
        misses = bind(moved_goals(part_of), tables).violations(said)
        yield f"{100 * part_of:+g} %", float((misses <= 0).all(axis=0).sum())


def moved_goals(part_of: float) -> Any:
    """Return the goals of the twenty models, every bound or ratio tighter by a part of it."""
    texts = []
    for goal in GOALS:
        left, sense, right = str(goal).partition(f" {goal.sense} ")
        number, times, rate = right.partition(" * ")
        bound = float(number) * (1.0 + part_of if goal.sense == ">=" else 1.0 - part_of)
        texts.append(f"{left}{sense}{bound:.6g}{times}{rate}")
    return as_goals(texts)


_FREE = ("compas", "credit-default", "covertype", "red wine", "mnist49", "mnist35", "tumours")
CONSTANTS = (
    Constant(
        *(OF_STEP, tuple(f"{step:g}" for step in STEPS), "0.1", f"{STEP:g}", "error"),
        *(("adult", "compas", "spambase", "covertype", "red wine"), _steps),
    ),
    *(
        Constant(name, tuple(GRIDS[method]), "as it was", now, "error", _FREE, _grid(method), ("stump", "cart"), 4)
        for name, method, now in ((OF_LINEAR, "RLP-Boost", "finer"), (OF_QUADRATIC, "RQP-Boost", "as it was"))
    ),
    Constant(
        *(OF_STRENGTH, tuple(f"{one:g}" for one in STRENGTHS), "0.001", "0.001", "error plus miss"),
        *(("compas", "credit-default", "census-income"), _strengths, ("linear",), 5),
    ),
    Constant(
        *(OF_CHURN_STRENGTH, tuple(f"{one:g}" for one in CHURN_STRENGTHS), "1e-05", f"{REGULARIZATION:g}", "error"),
        *(("acs-income",), _churn({f"{one:g}": (one, GAMMA) for one in CHURN_STRENGTHS}), ("linear",), 2),
    ),
    Constant(
        *(OF_WIDTH, tuple(f"{one:g}" for one in WIDTHS), "0.03", f"{GAMMA:g}", "error"),
        *(("acs-income",), _churn({f"{one:g}": (REGULARIZATION, one) for one in WIDTHS}), ("linear",), 2),
    ),
    Constant(
        *(OF_MOVES, tuple(f"{one:g}" for one in MOVES), "2", "1", "loss plus miss"),
        *(("wines", "abalone", "splice", "mnist", "12 classes"), _moves, (FLOOR, TAIL), 3),
    ),
    Constant(
        *(OF_BOUNDS, tuple(f"{100 * one:+g} %" for one in TIGHTER), "+0 %", "+0 %", "models that meet all goals"),
        *(("acs-income",), _bounds, ("pool",), 2),
    ),
)
DATASETS = tuple(dict.fromkeys(dataset for one in CONSTANTS for dataset in one.datasets))
