"""Proofs over simulated populations: how often a rule that is proven misses a goal on the population.

Each population has its own base rates, groups and quality of scores, which are normal in each group and class, so what
a rule has on it is known without rows. Bounds are a little tighter than what the rule of least error has there, so that
the cheapest rule that passes is near them: the hardest place for a promise.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from counterpoise import GoalClassifier, Proof
from counterpoise.goals import Goal, InfeasibleGoals, Table, as_goals
from papers.comparison.peers import Column
from papers.tables import ResultRow

EXPERIMENT = "proof, simulated"
DATASET = "simulated"
CONFIDENCE = 0.9
N_ROWS = 800
_SPREAD = 40.0  # of scores, so that they lie between 0 and 1
DRAWS_IN_BLOCK = 100
DRAWS, PROVEN, VIOLATED = "draws", "proven", "violated"
GROUP = ("A", "B")
TIGHTER = 0.03  # by so much bounds are tighter than what the rule of least error has
_ROOM = 0.15  # by so much the cap of selection rates is wider beside a floor of recall
_LEAST_GAP = 0.03  # that a difference of groups is bounded by
KINDS: Mapping[str, tuple[str, ...]] = {
    "recall": ("recall >= {recall}",),
    "precision": ("precision >= {precision}",),
    "selection rate": ("positive_rate <= {positive_rate}",),
    "false positive rate": ("false_positive_rate <= {false_positive_rate}",),
    "churn": ("churn <= {churn}",),
    "difference of selection rates": ("max_difference(positive_rate, by=group) <= {parity}",),
    "difference of recalls": ("max_difference(recall, by=group) <= {opportunity}",),
    "ratio of selection rates": ("positive_rate(group=A) - 0.8 * positive_rate(group=B) >= {ratio}",),
    "three together": (
        "recall >= {recall}",
        "positive_rate <= {room}",
        "max_difference(positive_rate, by=group) <= {parity}",
    ),
}
_FLOORS = ("recall", "precision", "ratio")


class Population(NamedTuple):
    """Two groups of two classes with normal scores of variance 1."""

    share: float  # of group B
    rates: tuple[float, float]  # of positives, by group
    means: tuple[tuple[float, float], tuple[float, float]]  # of scores, by group and class
    deployed: float  # the threshold of the deployed model

    @classmethod
    def draw(cls, rng: np.random.Generator) -> "Population":
        """Return a population at random."""
        quality, shift = rng.uniform(0.8, 2.5), rng.uniform(-0.5, 0.5)
        means = ((0.0, quality), (shift, shift + quality * rng.uniform(0.8, 1.2)))
        rates = (float(rng.uniform(0.15, 0.6)), float(rng.uniform(0.15, 0.6)))
        return cls(float(rng.uniform(0.25, 0.6)), rates, means, float(rng.uniform(0.3, 1.2) * quality))

    def cells(self, thresholds: tuple[float, float]) -> tuple[np.ndarray, Table]:
        """Return decisions and labels of all kinds of rows, with their parts of the population as weights."""
        rows = []
        for group, threshold in enumerate(thresholds):
            for label in (0, 1):
                mass = (self.share if group else 1 - self.share) * abs(1 - label - self.rates[group])
                above = [float(ndtr(self.means[group][label] - one)) for one in (threshold, self.deployed)]
                both, either = min(above), max(above)
                rows += [(group, label, 1, 1, mass * both), (group, label, 0, 0, mass * (1 - either))]
                decided = int(above[0] > above[1])
                rows.append((group, label, decided, 1 - decided, mass * (either - both)))
        codes, labels, decisions, deployed = (
            np.array(part, dtype=np.int64) for part in list(zip(*rows, strict=True))[:4]
        )
        weights = np.array([row[4] for row in rows])
        kept = weights > 0
        columns = {"group": np.array(GROUP)[codes[kept]]}
        return decisions[kept], Table(None, labels[kept], columns, deployed[kept], sample_weight=weights[kept])

    def sample(self, n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, Table]:
        """Return scores and rows."""
        codes = (rng.random(n_rows) < self.share).astype(np.int64)
        labels = (rng.random(n_rows) < np.array(self.rates)[codes]).astype(np.int64)
        scores = np.array(self.means)[codes, labels] + rng.normal(size=n_rows)
        deployed = (scores > self.deployed).astype(np.int64)
        return scores, Table(None, labels, {"group": np.array(GROUP)[codes]}, deployed)

    def goals(self, texts: tuple[str, ...]) -> tuple[Goal, ...]:
        """Return goals whose bounds are near what the threshold of least error has."""
        grid = np.linspace(-3.0, 5.0, 161)
        groups = zip((1 - self.share, self.share), self.rates, self.means, strict=True)
        errors = sum(
            part * (rate * ndtr(grid - own[1]) + (1 - rate) * ndtr(own[0] - grid)) for part, rate, own in groups
        )
        at = float(grid[int(np.argmin(errors))])
        decisions, table = self.cells((at, at))
        names = {
            "recall": "recall", "precision": "precision", "positive_rate": "positive_rate", "churn": "churn",
            "false_positive_rate": "false_positive_rate", "parity": "max_difference(positive_rate, by=group)",
            "opportunity": "max_difference(recall, by=group)",
            "ratio": "positive_rate(group=A) - 0.8 * positive_rate(group=B)",
        }  # fmt: skip
        values = {}
        for name, metric in names.items():
            (goal,) = as_goals([f"{metric} <= 0.5"])
            value = float(goal.evaluate(decisions, table).value)
            tighter = value + TIGHTER if name in _FLOORS else max(value - TIGHTER, _LEAST_GAP)
            values[name] = round(tighter, 4)
        values["room"] = values["positive_rate"] + TIGHTER + _ROOM
        return as_goals([text.format(**values) for text in texts])


class Block(NamedTuple):
    """Some populations, for one kind of goals."""

    dataset: str
    learner: str  # the kind
    seed: int
    experiment: str = EXPERIMENT

    def __str__(self) -> str:
        return f"simulated populations {self.seed * DRAWS_IN_BLOCK + 1} and more, {self.learner}"


def wanted(n_blocks: int) -> list[Block]:
    """Return the blocks of populations."""
    return [Block(DATASET, kind, seed) for seed in range(n_blocks) for kind in KINDS]


def measure(block: Block) -> list[ResultRow]:
    """Return in how many populations goals are proven, and of these in how many one is missed."""
    proven = violated = 0
    for draw in range(DRAWS_IN_BLOCK):
        is_proven, is_met = run_draw(block.learner, block.seed * DRAWS_IN_BLOCK + draw)
        proven, violated = proven + is_proven, violated + (is_proven and not is_met)
    counts = {DRAWS: DRAWS_IN_BLOCK, PROVEN: proven, VIOLATED: violated}
    return [
        ResultRow(EXPERIMENT, DATASET, block.learner, "proof", block.seed, None, name, "", float(count))
        for name, count in counts.items()
    ]


def run_draw(kind: str, seed: int) -> tuple[bool, bool]:
    """Return whether goals are proven by rows of a population, and whether they hold on it."""
    rng = np.random.default_rng((seed, sorted(KINDS).index(kind)))
    known = Population.draw(rng)
    goals = known.goals(KINDS[kind])
    scores, table = known.sample(N_ROWS, rng)
    by = ("group",) if any("group" in str(goal) for goal in goals) else ()
    model: Any = GoalClassifier(
        [Column()], cv="prefit", goals=goals, by=by, confidence=Proof(CONFIDENCE), random_state=0
    )
    spread = scores[:, None] / _SPREAD + 1 / 2  # Column takes them for probabilities; only their order counts
    try:
        model.fit(spread, table.y, sensitive_features={"group": table.column("group")}, baseline=table.baseline)
    except InfeasibleGoals:
        return False, True
    if not model.proof_.is_proven:
        return False, True
    levels = {name: _SPREAD * (level - 1 / 2) for name, level in model.rules_[0].thresholds.items()}
    first, second = (levels.get(f"group={name}", levels.get("all", np.inf)) for name in GROUP)
    decisions, population = known.cells((first, second))
    return True, all(goal.evaluate(decisions, population).holds for goal in goals)
