"""Networks trained inside goals, beside the same network trained plainly: goals on held-out rows, and what they cost.

Usage: python bench/inside_goals_network.py compas|cifar10 [--data FOLDER] [--output FOLDER] [--seeds N] [--rehearse]

``compas``: a small network on the CPU. The goals are differences of two rates between two races.
``cifar10``: WRN-28-1 on CUDA. The goals are the recalls of all classes, the objective is the tail at alpha 0.1.
``--rehearse`` does it with few rows and steps, on any machine, to see that it runs.
"""

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise import GoalClassifier, LPBoostClassifier, Stopping
from counterpoise.datasets import load_dataset, split_rows
from counterpoise.datasets.folders import data_folders
from counterpoise.goals import InfeasibleGoals
from counterpoise.learners import NetworkLearner, networks
from counterpoise.metrics import cvar_loss

sys.path.insert(0, str(Path(__file__).parent.parent))
from papers.boosted_cvar.images import load_images

RACES = ("African-American", "Caucasian")
RATES = {"recall": 1, "false_positive_rate": 0}  # and the label of the rows that each is about
RECALL, ALPHA = 0.85, 0.1


class Part(NamedTuple):
    """Rows, labels, and the group of each."""

    X: np.ndarray
    y: np.ndarray
    race: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> "Part":
        """Return some of the rows."""
        return Part(self.X[rows], self.y[rows], None if self.race is None else self.race[rows])


class Parts(NamedTuple):
    """Rows to train on, to choose on and to test on."""

    train: Part
    chosen: Part
    test: Part


@dataclass
class Table:
    """Lines of results, written as they come."""

    path: Path | None
    lines: list[dict[str, Any]]

    def add(self, **line: Any) -> None:
        """Print a line, and write all of them."""
        print(", ".join(f"{name} {_shown(value)}" for name, value in line.items()), flush=True)
        self.lines.append(line)
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(name for one in self.lines for name in one)))
            writer.writeheader()
            writer.writerows({name: _shown(value) for name, value in one.items()} for one in self.lines)


def _shown(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def compas_parts(seed: int) -> Parts:
    """Return COMPAS, the two large groups alone: 40 % to train on, 30 % to choose on, 30 % to test on."""
    data = load_dataset("compas")
    race = np.asarray(data.sensitive["race"]).astype(str)
    kept = np.flatnonzero(np.isin(race, RACES))
    whole = Part(np.asarray(data.X)[kept], np.asarray(data.y).astype(int)[kept], race[kept])
    return Parts(*(whole.take(rows) for rows in split_rows(whole.y, (0.4, 0.3, 0.3), seed=seed)))


def differences(part: Part, chances: np.ndarray) -> dict[str, float]:
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


def compas_learner(*, rehearse: bool) -> NetworkLearner:
    """Return the network that everyone uses."""
    steps = 60 if rehearse else 600
    module = networks.Perceptron((32, 32))
    how = {"n_iterations": steps, "decay_at": (steps * 2 // 3,), "batch_size": 128, "warmup_epochs": 5}
    return NetworkLearner(module, **how, learning_rate=0.05, weight_decay=1e-4, device="cpu", random_state=0)


def compas_methods(parts: Parts, bound: float, *, rehearse: bool) -> Iterator[tuple[str, Any]]:
    """Yield fitted models: the network alone, its thresholds under the goals, and networks trained inside them."""
    train, chosen, _ = parts
    plain = compas_learner(rehearse=rehearse).fit(train.X, train.y)
    yield "plain training", plain
    settings: dict[str, Any] = {"alpha": 1.0, "goals": compas_goals(bound), "budget": None, "random_state": 0}
    groups = {"sensitive_features": {"race": chosen.race}}
    for name, by in (("one threshold", ()), ("thresholds by race", ("race",))):
        mixed = GoalClassifier([plain], cv="prefit", decision="sticky", by=by, **settings, confidence=None)
        yield f"plain training, {name} under goals", fitted(mixed, chosen.X, chosen.y, **groups)
    held_out = {"X_val": chosen.X, "y_val": chosen.y, "sensitive_features_val": {"race": chosen.race}}
    for name, scores in (("answers", False), ("thresholds", True)):
        learner, n_models = compas_learner(rehearse=rehearse), 3 if rehearse else 20
        inside = LPBoostClassifier(learner, n_estimators=n_models, scores=scores, **settings)
        groups = {"sensitive_features": {"race": train.race}}
        yield f"inside goals, {name}", fitted(inside, train.X, train.y, **groups, **held_out)


def fitted(model: Any, *rows: Any, **given: Any) -> Any:
    """Return the fitted model; where goals cannot be met, the one that misses them least."""
    try:
        return model.fit(*rows, **given)
    except InfeasibleGoals as error:
        print(error, flush=True)
        if error.closest is None:
            raise
        return error.closest


def chances_of(model: Any, part: Part) -> np.ndarray:
    """Return the chance that each row is called positive: a network says the likelier class, a mixture draws."""
    if isinstance(model, NetworkLearner):
        return np.asarray(model.predict(part.X), dtype=float)
    groups = {"sensitive_features": {"race": part.race}} if getattr(model, "by", ()) else {}
    return np.asarray(model.decision_proba(part.X, **groups)[:, 1])


def run_compas(table: Table, *, n_seeds: int, rehearse: bool) -> None:
    """Compare on several splits, with the goals as they are and with a margin for new rows."""
    for seed in range(n_seeds):
        parts = compas_parts(seed)
        for bound in (0.05, 0.02):
            start = time.perf_counter()
            for name, model in compas_methods(parts, bound, rehearse=rehearse):
                seconds, n_models = time.perf_counter() - start, len(getattr(model, "estimators_", [model]))
                line: dict[str, Any] = {"split": seed, "asked": bound, "method": name, "models": n_models}
                for where, part in (("chosen", parts.chosen), ("test", parts.test)):
                    said = chances_of(model, part)
                    line |= {f"{where}_{rate}": gap for rate, gap in differences(part, said).items()}
                    line[f"{where}_error"] = float(np.abs(said - part.y).mean())
                table.add(**line, seconds=round(seconds, 1))
                start = time.perf_counter()


def cifar_parts(folder: Path | None, *, rehearse: bool) -> Parts:
    """Return CIFAR-10: 40,000 images to train on, 10,000 to choose on, the official test images."""
    if rehearse and folder is None:
        return _digits()
    data = load_images("cifar10", data_folders(folder))
    given, test = np.flatnonzero(~data.is_test), np.flatnonzero(data.is_test)
    train, chosen = (given[rows] for rows in split_rows(data.y[given], (0.8, 0.2), seed=0))
    whole = Part(data.X, data.y)
    if rehearse:
        train, chosen, test = train[:600], chosen[:300], test[:300]
    return Parts(*(whole.take(rows) for rows in (train, chosen, test)))


def _digits() -> Parts:
    """Return images of 8 x 8 in place of CIFAR-10."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 - to rehearse

    digits = load_digits()
    whole = Part((digits.images[:, None] * 15).astype(np.uint8).repeat(3, axis=1), digits.target)
    return Parts(*(whole.take(rows) for rows in split_rows(whole.y, (0.5, 0.25, 0.25), seed=0)))


def cifar_learner(n_iterations: int, *, rehearse: bool) -> NetworkLearner:
    """Return WRN-28-1 with a warm-up of 40 epochs, and so many steps of a round that refines it."""
    module = networks.Perceptron((32,)) if rehearse else networks.WideResNet(28, 1)
    steps = 20 if rehearse else n_iterations
    return NetworkLearner(
        module,
        n_iterations=steps,
        decay_at=(steps // 2, steps * 4 // 5),
        learning_rate=0.02,
        warmup_epochs=3 if rehearse else 40,
        warmup_learning_rate=0.1,
        warmup_decay_at=(2,) if rehearse else (24, 34),
        batch_size=128,
        weight_decay=5e-4,
        augment="crop-flip",
        random_state=0,
    )


class Deadline:
    """Ends rounds before so many seconds are over."""

    def __init__(self, seconds: float) -> None:
        self.started, self.seconds, self.last = time.monotonic(), seconds, 0.0

    def __call__(self, done: Any) -> bool:
        """Tell of a round, and whether another might take too long."""
        now = time.monotonic() - self.started
        standing = done.standing
        print(
            f"round {done.number}: {now:.0f} s, weighted loss {done.weighted_loss:.3f}, value {standing.value:.4f}, "
            f"violation {standing.violation:.4f}, bound {standing.bound:.4f}",
            flush=True,
        )
        took, self.last = now - self.last, now
        return now + 1.25 * took > self.seconds


def judged(parts: Parts, chances: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return least recall, error and tail loss on the rows to choose on and on the test rows."""
    line: dict[str, Any] = {}
    for where in ("chosen", "test"):
        part: Part = getattr(parts, where)
        right = chances[where][np.arange(len(part.y)), part.y]
        recalls = [float(right[part.y == label].mean()) for label in range(10)]
        tail = cvar_loss(1 - right, ALPHA)
        line |= {f"{where}_least_recall": min(recalls), f"{where}_error": float(1 - right.mean())}
        line |= {f"{where}_tail": float(tail), f"{where}_recalls": " ".join(f"{one:.3f}" for one in recalls)}
    return line


def recalls(least: float) -> list[str]:
    """Return the goals: so large a recall of every class."""
    return [f"recall(train, of={label}) >= {least}" for label in range(10)]


def run_cifar(table: Table, parts: Parts, asked: argparse.Namespace) -> None:
    """Train inside the recalls of all classes, and compare with the first network, which is trained plainly.

    A network knows its training rows: there the goals have a margin. The mixture is chosen on other rows, without one.
    """
    start = time.perf_counter()
    model = LPBoostClassifier(
        cifar_learner(asked.iterations, rehearse=asked.rehearse),
        n_estimators=4 if asked.rehearse else 300,
        alpha=asked.alpha,
        goals=recalls(asked.margin),
        stopping=Stopping(n_folds=None),
        budget=None,
        random_state=0,
        callbacks=[Deadline(asked.seconds)],
    )
    model = fitted(model, parts.train.X, parts.train.y)
    told = {"rounds_at": asked.alpha, "trained_for": asked.margin, "models": len(model.estimators_)}
    add = partial(table.add, **told, seconds=round(time.perf_counter() - start, 1))
    hard = {
        where: np.stack([np.eye(10)[one.predict_codes(getattr(parts, where).X)] for one in model.estimators_])
        for where in ("chosen", "test")
    }

    def judge(name: str, mixture: np.ndarray) -> None:
        mixed = {where: np.tensordot(mixture, found, axes=1) for where, found in hard.items()}
        add(method=name, **judged(parts, mixed))

    judge("plain training: the first network", np.eye(len(model.estimators_))[0])
    for alpha in (ALPHA, 1.0):
        for goals in (recalls(RECALL), recalls(RECALL + 0.01), recalls(RECALL + 0.02), []):
            name = f"inside goals, alpha {alpha}: {goals[0] if goals else 'no goals'}"
            try:
                chosen = model.rebalance(parts.chosen.X, parts.chosen.y, alpha=alpha, goals=goals)
            except InfeasibleGoals as error:
                print(name, error, flush=True)
            else:
                judge(name, chosen.mixture_)


def main() -> None:
    """Run the part that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["compas", "cifar10"])
    parser.add_argument("--data", type=Path, help="folder of CIFAR-10")
    parser.add_argument("--output", type=Path, help="folder that gets the table")
    parser.add_argument("--seeds", type=int, default=10, help="splits of COMPAS")
    parser.add_argument("--iterations", type=int, default=1500, help="steps of a round on CIFAR-10")
    parser.add_argument("--alpha", type=float, default=1.0, help="tail that the rounds on CIFAR-10 train for")
    parser.add_argument("--margin", type=float, default=0.93, help="recall that the rounds on CIFAR-10 train for")
    parser.add_argument("--seconds", type=float, default=500.0, help="for the rounds on CIFAR-10")
    parser.add_argument("--rehearse", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    name = asked.part if asked.part == "compas" else f"cifar10_alpha_{asked.alpha:g}"
    table = Table(None if asked.output is None else asked.output / f"{name}.csv", [])
    if asked.part == "compas":
        run_compas(table, n_seeds=asked.seeds, rehearse=asked.rehearse)
    else:
        run_cifar(table, cifar_parts(asked.data, rehearse=asked.rehearse), asked)


if __name__ == "__main__":
    main()
