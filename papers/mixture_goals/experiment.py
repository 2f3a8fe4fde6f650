"""Twenty models, six goals: the best mixture on ACS Income, beside every single model.

Each split trains the pool of ``mixture_goals_pool`` on some rows, chooses the mixture on others, with the churn goal on
rows without labels, and measures on rows that neither step saw: the loss of the worst-off part, for several alphas, and
every goal. Beside it are all single models, the mixture whose goals carry a confidence, and the best deterministic rule
that the mixture leads to.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from counterpoise.classifiers.mixture import MixtureClassifier
from counterpoise.datasets import TableData, load_dataset
from counterpoise.goals import Table, as_goals, bind
from counterpoise.metrics import cvar_loss
from counterpoise.rules.tradeoff import tradeoff
from counterpoise.runs.results import ResultRow
from papers.arrays import AnyArray, FloatArray
from papers.mixture_goals.one_rule import DeterministicRule, to_deterministic
from papers.mixture_goals.pool import DEPLOYED, candidates

EXPERIMENT = "mixture-goals"
DATASETS = ("acs-income",)
ALPHAS = (0.1, 0.2, 0.3)
CONFIDENCE = 0.95
GOAL_TEXTS = (  # which are quantities of the stored table
    "positive_rate(train, sex=Female) >= 0.8 * positive_rate(train, sex=Male)",
    "recall(train, race='Black or African American') >= 0.75 * recall(train, race=White)",
    "recall(train, race='Some Other Race') >= 0.3",
    "positive_rate(train) >= 0.33",
    "positive_rate(train) <= 0.4",
    "churn(live) <= 0.13",
)
GOALS = as_goals(GOAL_TEXTS)
PRICED = GOALS[-1]  # whose frontier is drawn
PRICED_BOUNDS = tuple(np.linspace(0.06, 0.15, 19).round(3).tolist())
MIXTURE, CAREFUL, RULE = "mixture", "mixture, goals with confidence", "deterministic rule"
SINGLE, FRONTIER = "single model", "frontier"
POOL = "pool"  # in the place of a learner, for what is made of all models
CHOICE, TEST = "choice", "test"  # the rows that mixture and rule are chosen on, and the rows that no one saw
CVAR, ERROR, SHARE, SECONDS = "cvar", "error", "share", "processor seconds"
CATEGORIES = ("POBP", "OCCP", "RELP", "COW", "MAR", "sex", "race")
NUMBERS = ("SCHL", "WKHP", "AGEP")


class Sizes(NamedTuple):
    """Rows of each part of a split."""

    train: int = 40_000
    choice: int = 50_000
    live: int = 30_000  # without labels, for the churn
    test: int = 100_000


SIZES = Sizes()


class Split(NamedTuple):
    """One split of a data set."""

    dataset: str
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset}, split {self.seed + 1}"


class People(NamedTuple):
    """Rows as a data frame with category columns, among them ``sex`` and ``race``, and their labels."""

    X: Any
    y: AnyArray

    def split(self, seed: int, sizes: Sizes) -> "list[People]":
        """Return disjoint random parts."""
        rows = np.random.default_rng(seed).permutation(len(self.y))[: sum(sizes)]
        return [People(self.X.iloc[part], self.y[part]) for part in np.split(rows, np.cumsum(sizes)[:-1])]


class Number(NamedTuple):
    """One measured number."""

    learner: str  # a model of the pool, or the pool
    method: str
    alpha: float | None
    quantity: str
    split: str
    value: float
    settings: str = ""


class Seen(NamedTuple):
    """What classifiers do on some rows, a column for each."""

    losses: AnyArray  # (n_rows, n_models), zero or one
    misses: FloatArray  # (n_goals, n_models): by how much each goal is missed, negative where it is met

    def numbers(self, who: tuple[str, str, float | None], split: str, mixture: FloatArray) -> Iterator[Number]:
        """Yield tail losses, error and misses of a mixture of the models, at one alpha or at all."""
        learner, method, only = who
        for alpha in ALPHAS if only is None else (only,):
            yield Number(learner, method, alpha, CVAR, split, cvar_loss(self.losses, alpha, mixture=mixture))
        yield Number(learner, method, only, ERROR, split, cvar_loss(self.losses, 1.0, mixture=mixture))
        for text, miss in zip(GOAL_TEXTS, (self.misses @ mixture).tolist(), strict=True):
            yield Number(learner, method, only, text, split, miss)


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Split]:
    """Return the splits."""
    return [Split(name, seed) for name in datasets for seed in range(n_seeds)]


def measure(split: Split) -> list[ResultRow]:
    """Return all that is measured on one split."""
    started = time.process_time()
    numbers = list(run_split(_people(split.dataset), split.seed))
    numbers.append(Number(POOL, "all", None, SECONDS, "", time.process_time() - started))
    return [
        ResultRow(experiment=EXPERIMENT, dataset=split.dataset, seed=split.seed, **one._asdict()) for one in numbers
    ]


def run_split(people: People, seed: int, *, sizes: Sizes = SIZES) -> Iterator[Number]:
    """Train the pool, choose on some rows, and yield what is measured there and on others.

    Parameters
    ----------
    people : People
    seed : int
        Of the split and of the models.
    sizes : Sizes
    """
    train, choice, live, test = people.split(seed, sizes)
    pool = {one.name: one.fit(train.X, train.y) for one in candidates(CATEGORIES, NUMBERS, seed)}
    deployed = pool[DEPLOYED]
    unlabelled = Table(live.X, baseline=deployed.predict(live.X))
    tables = {"train": Table(choice.X, choice.y), "live": unlabelled}
    held_out = dict.fromkeys(tables, Table(test.X, test.y, baseline=deployed.predict(test.X)))
    seen = {CHOICE: _look(ask(pool, tables), tables), TEST: _look(ask(pool, held_out), held_out)}
    for place, name in enumerate(pool):
        for part, found in seen.items():
            yield from found.numbers((name, SINGLE, None), part, np.eye(len(pool))[place])
    mixture = MixtureClassifier(list(pool.items()), alpha=ALPHAS[0], goals=GOALS, random_state=seed)
    mixture.fit(choice.X, choice.y, datasets={"live": unlabelled})
    for alpha in ALPHAS:
        plain = mixture.rebalance(alpha=alpha)
        yield from _mixed(plain, seen)
        yield from _ruled(to_deterministic(plain), alpha, held_out)


def _mixed(plain: MixtureClassifier, seen: Mapping[str, Seen]) -> Iterator[Number]:
    """Yield what the mixture does, the one whose goals carry a confidence, and those along the frontier."""
    alpha = plain.alpha_
    assert alpha is not None  # noqa: S101 - a tail is minimised
    careful = plain.rebalance(goals=[goal.with_confidence(CONFIDENCE) for goal in GOALS])
    for method, model in ((MIXTURE, plain), (CAREFUL, careful)):
        for part, found in seen.items():
            yield from found.numbers((POOL, method, alpha), part, model.mixture_)
        for name, share in zip(model.names_, model.mixture_.tolist(), strict=True):
            yield Number(name, method, alpha, SHARE, CHOICE, share)
    for point in tradeoff(plain, PRICED, PRICED_BOUNDS):
        if point.mixture is not None:  # none is within the tightest bounds
            for part, found in seen.items():
                value = cvar_loss(found.losses, alpha, mixture=point.mixture)
                yield Number(POOL, FRONTIER, alpha, CVAR, part, value, f"bound={point.bound:g}")


def _ruled(rule: DeterministicRule, alpha: float, held_out: Mapping[str, Table]) -> Iterator[Number]:
    yield Number(POOL, RULE, alpha, CVAR, CHOICE, rule.value)
    for text, goal, check in zip(GOAL_TEXTS, GOALS, rule.checks, strict=True):
        miss = check.value - check.bound if goal.sense == "<=" else check.bound - check.value
        yield Number(POOL, RULE, alpha, text, CHOICE, miss)
    found = _look(ask({RULE: rule}, held_out), held_out)
    yield from found.numbers((POOL, RULE, alpha), TEST, np.ones(1))


def ask(pool: Mapping[str, Any], tables: Mapping[str, Table]) -> dict[str, AnyArray]:
    """Return what every model says about the rows of every table, a column for each model."""
    said: dict[int, AnyArray] = {}  # of each table once, however many names it has
    for table in tables.values():
        if id(table) not in said:
            said[id(table)] = np.column_stack([model.predict(table.X) for model in pool.values()]).astype(np.uint8)
    return {name: said[id(table)] for name, table in tables.items()}


def _look(said: Mapping[str, AnyArray], tables: Mapping[str, Table]) -> Seen:
    losses = (said["train"] != np.asarray(tables["train"].y)[:, None]).astype(np.uint8)
    return Seen(losses, bind(GOALS, dict(tables)).violations(said))


@cache
def _people(name: str) -> People:
    data: TableData = load_dataset(name)
    return as_people(data)


def as_people(data: TableData) -> People:
    """Return the rows as a data frame: codes as categories, and sex and race by name."""
    import pandas as pd  # noqa: PLC0415 - heavy, and optional

    columns = dict(zip(data.feature_names, np.asarray(data.X).T, strict=True)) | data.sensitive
    frame = pd.DataFrame({name: columns[name] for name in (*CATEGORIES, *NUMBERS)})
    return People(frame.astype(dict.fromkeys(CATEGORIES, "category")), data.y)
