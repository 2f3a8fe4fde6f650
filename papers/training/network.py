"""A network trained inside goals on COMPAS, beside the same network trained plainly and its thresholds.

The goals are differences of two rates between two races. It needs PyTorch.
"""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from counterpoise import GoalClassifier, LPBoostClassifier
from counterpoise.datasets import load_dataset, split_rows
from counterpoise.goals import InfeasibleGoals
from counterpoise.learners import NetworkLearner, networks
from papers.arrays import AnyArray
from papers.experiments import Blocks, Experiment, long_rows, with_error
from papers.markdown import markdown_table
from papers.tables import ResultRow, ResultsTable

NAME = "network-inside-goals"
RACES = ("African-American", "Caucasian")
RATES = {"recall": 1, "false_positive_rate": 0}  # and the label of the rows that each is about
BOUNDS = (0.05, 0.02)


class Part(NamedTuple):
    """A bound on a split."""

    settings: str
    seed: int
    experiment: str = NAME


class Rows(NamedTuple):
    """Rows, labels, and the group of each."""

    X: AnyArray
    y: AnyArray
    race: AnyArray | None = None

    def take(self, rows: AnyArray) -> "Rows":
        """Return some of the rows."""
        return Rows(self.X[rows], self.y[rows], None if self.race is None else self.race[rows])


class Parts(NamedTuple):
    """Rows to train on, to choose on and to test on."""

    train: Rows
    chosen: Rows
    test: Rows


def compas_parts(seed: int) -> Parts:
    """Return COMPAS, the two large groups alone: 40 % to train on, 30 % to choose on, 30 % to test on."""
    data = load_dataset("compas")
    race = np.asarray(data.sensitive["race"]).astype(str)
    kept = np.flatnonzero(np.isin(race, RACES))
    whole = Rows(np.asarray(data.X)[kept], np.asarray(data.y).astype(int)[kept], race[kept])
    return Parts(*(whole.take(rows) for rows in split_rows(whole.y, (0.4, 0.3, 0.3), seed=seed)))


def differences(part: Rows, chances: AnyArray) -> dict[str, float]:
    """Return how much larger each rate is in the first group."""
    found = {}
    for name, label in RATES.items():
        rates = [chances[(part.y == label) & (part.race == race)].mean() for race in RACES]
        found[name] = float(rates[0] - rates[1])
    return found


def compas_goals(bound: float) -> list[str]:
    """Return both rates within a bound of each other."""
    first, second = (f"train, race='{race}'" for race in RACES)
    return [f"abs({rate}({first}) - {rate}({second})) <= {bound}" for rate in RATES]


def compas_learner() -> NetworkLearner:
    """Return the network that everyone uses."""
    steps = 600
    module = networks.Perceptron((32, 32))
    how: dict[str, Any] = {"n_iterations": steps, "decay_at": (steps * 2 // 3,), "batch_size": 128, "warmup_epochs": 5}
    return NetworkLearner(module, **how, learning_rate=0.05, weight_decay=1e-4, device="cpu", random_state=0)


def compas_methods(parts: Parts, bound: float) -> Iterator[tuple[str, Any]]:
    """Yield fitted models: the network alone, its thresholds under the goals, and networks trained inside them."""
    train, chosen, _ = parts
    plain = compas_learner().fit(train.X, train.y)
    yield "plain training", plain
    settings: dict[str, Any] = {"alpha": 1.0, "goals": compas_goals(bound), "budget": None, "random_state": 0}
    groups = {"sensitive_features": {"race": chosen.race}}
    for name, by in (("one threshold", ()), ("thresholds by race", ("race",))):
        mixed = GoalClassifier([plain], cv="prefit", decision="sticky", by=by, **settings, confidence=None)
        yield f"plain training, {name} under goals", fitted(mixed, chosen.X, chosen.y, **groups)
    held_out = {"X_val": chosen.X, "y_val": chosen.y, "sensitive_features_val": {"race": chosen.race}}
    for name, scores in (("answers", False), ("thresholds", True)):
        learner, n_models = compas_learner(), 20
        inside = LPBoostClassifier(learner, n_estimators=n_models, scores=scores, **settings)
        groups = {"sensitive_features": {"race": train.race}}
        yield f"inside goals, {name}", fitted(inside, train.X, train.y, **groups, **held_out)


def fitted(model: Any, *rows: Any, **given: Any) -> Any:
    """Return the fitted model; where goals cannot be met, the one that misses them least."""
    try:
        return model.fit(*rows, **given)
    except InfeasibleGoals as error:
        return error.closest


def chances_of(model: Any, part: Rows) -> AnyArray:
    """Return the chance that each row is called positive: a network says the likelier class, a mixture draws."""
    if isinstance(model, NetworkLearner):
        return np.asarray(model.predict(part.X), dtype=float)
    groups = {"sensitive_features": {"race": part.race}} if getattr(model, "by", ()) else {}
    return np.asarray(model.decision_proba(part.X, **groups)[:, 1])


def wanted(_datasets: Sequence[str], n_seeds: int) -> list[Part]:
    """Return all bounds and splits; none where PyTorch is not installed."""
    seeds = range(n_seeds if find_spec("torch") is not None else 0)
    return [Part(f"bound={bound:g}", seed) for seed in seeds for bound in BOUNDS]


def measure(part: Part) -> list[ResultRow]:
    """Return the differences of rates and the errors of all methods."""
    parts, rows = compas_parts(part.seed), []
    for name, model in compas_methods(parts, float(part.settings.removeprefix("bound="))):
        found: dict[str, float] = {}
        for where, chosen in (("chosen", parts.chosen), ("test", parts.test)):
            said = chances_of(model, chosen)
            found |= {f"{where}_{rate}": gap for rate, gap in differences(chosen, said).items()}
            found[f"{where}_error"] = float(np.abs(said - chosen.y).mean())
        rows += long_rows(NAME, "compas", name, part.seed, found, settings=part.settings)
    return rows


def blocks(rows: ResultsTable) -> Blocks:
    """Return differences and errors on test rows."""
    lines = []
    for bound in BOUNDS:
        for method in dict.fromkeys(row.method for row in rows):
            own = rows.where(method=method, settings=f"bound={bound:g}")
            cells = [np.array([row.value for row in own.where(quantity=f"test_{what}")]) for what in (*RATES, "error")]
            if len(own):
                lines.append([f"{bound:g}", method, *(with_error(cell) for cell in cells)])
    heads = ["bound", "method", "difference of recalls", "of false positive rates", "error"]
    return {"table": markdown_table(heads, lines, n_words=2)}


EXPERIMENT = Experiment(NAME, "a network trained inside goals", wanted, measure, blocks, ("compas",), 10)
