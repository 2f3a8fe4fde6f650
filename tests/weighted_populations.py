"""Populations of weighted rows, finite and so known: what audits say of samples can be compared with the truth."""

from typing import NamedTuple

import numpy as np

from counterpoise import audit
from counterpoise.goals import Table, parse_goal

N_ROWS = 20_000


class People(NamedTuple):
    """Rows of a population, and the largest weight that an auditor takes them to have."""

    weights: np.ndarray
    y: np.ndarray
    group: np.ndarray
    decided: np.ndarray
    largest: float

    def drawn(self, rng, n_rows):
        """Return decisions and the table of independent draws."""
        rows = rng.integers(0, N_ROWS, size=n_rows)
        y, group, weights = self.y[rows], self.group[rows], self.weights[rows]
        return self.decided[rows], Table(None, y, group, sample_weight=weights, largest_weight=self.largest)

    def truth(self, text):
        """Return the left side less the rates on the right, on the whole population."""
        table = Table(None, self.y, self.group, sample_weight=self.weights)
        goal, check = parse_goal(text), parse_goal(text).evaluate(self.decided, table)
        return goal.bound + (check.value - check.bound)


RNG = np.random.default_rng(0)
GROUP = np.where(RNG.random(N_ROWS) < 0.6, "a", "b")
WRONG = RNG.random(N_ROWS) < np.where(GROUP == "a", 0.08, 0.13)
Y = (RNG.random(N_ROWS) < np.where(GROUP == "a", 0.5, 0.3)).astype(int)
HEAVY = RNG.random(N_ROWS) < 0.01
SELDOM = RNG.random(N_ROWS) < 0.02


def _people(weights, largest, wrong=WRONG):
    return People(np.minimum(weights, largest).astype(float), Y, GROUP, np.where(wrong, 1 - Y, Y), largest)


POPULATIONS = {
    "equal": _people(np.ones(N_ROWS), 1.0),
    "rare and heavy": _people(np.where(HEAVY, 20, 1), 20.0),
    "heavy, wrong and unseen": _people(np.where(HEAVY, 20, 1), 20.0, wrong=SELDOM | HEAVY),
    "lognormal": _people(RNG.lognormal(0.0, 0.8, N_ROWS), 10.0),
    "heavier where wrong": _people(RNG.random(N_ROWS) + 2.0 * WRONG, 3.0),
    "lighter where wrong": _people(RNG.random(N_ROWS) + 2.0 * ~WRONG, 3.0),
    "a third of zeros": _people(RNG.integers(0, 3, N_ROWS), 2.0),
    "by group": _people(np.where(GROUP == "a", 1, 5), 5.0),
    "Pareto": _people(1.0 + RNG.pareto(1.2, N_ROWS), 50.0),
    "frequencies": _people(RNG.geometric(0.3, N_ROWS), 12.0),
    "limit far above": _people(1.0 + RNG.random(N_ROWS), 40.0),
}
GOALS = {
    "one rate": "error_rate <= 0.1",
    "a group's rate": "recall(group=b) >= 0.8",
    "difference of two groups": "error_rate(group=b) <= error_rate(group=a) + 0.05",
    "ratio": "precision >= 0.85",
}


def wrong_ends(people, text, *, n_rows, confidence, seeds):
    """Return how many audits have too high a low end and too low a high end: then a verdict can be wrong."""
    truth, misses = people.truth(text), np.zeros(2)
    for seed in seeds:
        (row,) = audit(text, *people.drawn(np.random.default_rng(seed), n_rows), confidence=confidence)
        misses += [row.low > truth, row.high < truth]
    return misses
