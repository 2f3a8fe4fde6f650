"""Small random problems over rules of scores, and the program written out over every threshold, solved by HiGHS."""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from counterpoise.goals import Table, as_goals, bind
from counterpoise.mixtures.answers import Answers, find_positive
from counterpoise.mixtures.choosing import as_aim
from counterpoise.mixtures.scores.choosing import choose_rules
from counterpoise.mixtures.scores.evidence import ScoreEvidence, rank
from counterpoise.mixtures.scores.groups import Groups
from counterpoise.solvers import minimize_risk
from counterpoise.theory.risks import KL, CVaR, EmpiricalLikelihood, Mean, WorstGroup

GOALS = (
    "positive_rate(train, sex=a) - positive_rate(train, sex=b) <= {0:.3f}",
    "recall(train) >= {1:.3f}",
    "precision(train) >= {2:.3f}",
    "false_positive_rate(train) <= {1:.3f}",
    "churn(mail) <= {0:.3f}",
    "positive_rate(mail) >= {0:.3f}",
    "error_rate(train, sex=b) <= {2:.3f}",
)
RISKS = (CVaR(0.1), CVaR(0.3), Mean(), CVaR(0.7), 0.5 * Mean() + 0.5 * CVaR(0.2), KL(0.2), EmpiricalLikelihood(0.1))
_SOLVED, _INFEASIBLE = 0, 2  # of scipy's statuses


class Problem(NamedTuple):
    """Scores, tables and groups by dataset, and what is asked."""

    scores: dict
    tables: dict
    groups: dict
    goals: list
    objective: object
    budget: float | None

    @property
    def y(self):
        return self.tables["train"].y

    @property
    def weights(self):
        return self.tables["train"].weights()


def random_problem(seed):
    """Return groups, goals, weights, ties and models drawn at random; some have no solution."""
    rng = np.random.default_rng(seed)
    sizes = {"train": int(rng.integers(8, 22)), "mail": int(rng.integers(4, 9))}
    n_models, by = int(rng.integers(1, 3)), bool(rng.integers(2))
    scores, tables, groups = {}, {}, {}
    for name, size in sizes.items():
        sex = rng.choice(["a", "b"], size)
        sex[:2], y = ["a", "b"], rng.integers(0, 2, size)
        y[:4] = [0, 1, 1, 0]
        noise = rng.normal(size=(size, n_models))
        scores[name] = np.round(0.8 * y[:, None] + noise, int(rng.integers(0, 2)))  # with ties
        weights = rng.integers(0, 4, size) + (np.arange(size) < 4) if rng.integers(2) else None
        baseline = rng.integers(0, 2, size)
        tables[name] = Table(None, y if name == "train" else None, {"sex": sex}, baseline, sample_weight=weights)
        groups[name] = (sex == "b").astype(int) if by else np.zeros(size, dtype=int)
    bounds = [*rng.uniform(0.0, 0.4, 1), *rng.uniform(0.2, 0.9, 2)]
    chosen = rng.choice(len(GOALS), int(rng.integers(0, 4)), replace=False)
    objective = [*RISKS, WorstGroup("sex"), "false_negative_rate(train)"][int(rng.integers(len(RISKS) + 2))]
    goals = [GOALS[place].format(*bounds) for place in chosen]
    return Problem(scores, tables, groups, goals, objective, [None, 0.05][int(rng.integers(2))])


def chosen(problem, tol=1e-7):
    """Return our choice, and the rows with their cuts."""
    answers = Answers(problem.tables, {}, find_positive(np.array([0, 1]), None))
    usual = np.full(problem.scores["train"].shape[1], 0.5)
    evidence = ScoreEvidence(problem.scores, answers, problem.tables["train"].sample_weight, None, usual)
    is_grouped = any(codes.any() for codes in problem.groups.values())
    groups = Groups(("sex",), ("sex=a", "sex=b")) if is_grouped else Groups((), ("all",))
    ranked = rank(evidence, groups)
    return choose_rules(ranked, as_aim(1.0, problem.objective, problem.goals, budget=problem.budget), tol), ranked


def every_rule(problem):
    """Return what every rule says on each dataset, a column for each: one threshold for each model and group."""
    said = {name: [] for name in problem.scores}
    n_groups = 1 + max(int(codes.max()) for codes in problem.groups.values())
    for model in range(problem.scores["train"].shape[1]):
        known = [
            np.concatenate([problem.scores[name][problem.groups[name] == group, model] for name in said])
            for group in range(n_groups)
        ]
        for thresholds in product(*([-np.inf, *np.unique(levels)] for levels in known)):
            for name, columns in said.items():
                columns.append(problem.scores[name][:, model] > np.array(thresholds)[problem.groups[name]])
    return {name: np.column_stack(columns) for name, columns in said.items()}


def written_out(problem):
    """Return the least value over all mixtures of every rule, or None where none keeps the goals."""
    said = every_rule(problem)
    losses = (said["train"] != (problem.y == 1)[:, None]).astype(float)
    mass = problem.weights / problem.weights.sum()
    rows, bounds = np.zeros((0, losses.shape[1])), np.zeros(0)
    if problem.goals:
        bound = bind(as_goals(problem.goals), problem.tables, classes=[0, 1])
        rows, bounds = bound.values({name: said[name].astype(float) for name in bound.weights}), bound.bounds
    if problem.budget is not None:
        least = _solved(mass @ losses, rows, bounds)
        if least is None:
            return None
        rows, bounds = np.vstack([rows, mass @ losses]), np.append(bounds, least + problem.budget)
    return _value(problem, losses, mass, rows, bounds)


def _value(problem, losses, mass, rows, bounds):
    objective = problem.objective
    if isinstance(objective, str):
        positive = problem.y == 1
        return _solved((mass * positive) @ losses / mass[positive].sum(), rows, bounds)
    if isinstance(objective, WorstGroup):
        sex = problem.tables["train"].column("sex")
        means = np.array([np.average(losses[sex == one], axis=0, weights=mass[sex == one]) for one in ("a", "b")])
        return _tail(means, np.full(len(means), 1 / len(means)), 1 / len(means), rows, bounds)
    if objective.tail_fraction is not None:
        return _tail(losses, mass, objective.tail_fraction, rows, bounds)
    if _solved(np.zeros(losses.shape[1]), rows, bounds) is None:
        return None
    return minimize_risk(losses, objective, sample_weight=mass, rows=rows, bounds=bounds, tol=2e-8).value


def _tail(losses, mass, alpha, rows, bounds):
    """``min over q, t, s >= 0 of t + mass @ s / alpha`` with ``losses @ q - t <= s``."""
    n_rows, n_rules = losses.shape
    cost = np.concatenate([np.zeros(n_rules), [1.0], mass / alpha])
    above = np.hstack([losses, -np.ones((n_rows, 1)), -np.eye(n_rows)])
    held = np.hstack([rows, np.zeros((len(rows), n_rows + 1))])
    return _solved(cost, np.vstack([above, held]), np.append(np.zeros(n_rows), bounds), n_rules)


def _solved(cost, rows, bounds, n_rules=None):
    """Return the least ``cost @ x`` with ``rows @ x <= bounds``, where the first entries of x are a mixture."""
    n_rules = len(cost) if n_rules is None else n_rules
    total = (np.arange(len(cost)) < n_rules).astype(float)[None]
    limits = [(None if place == n_rules else 0, None) for place in range(len(cost))]
    rows, bounds = (rows, bounds) if len(rows) else (None, None)
    found = linprog(cost, rows, bounds, total, [1.0], limits, method="highs")
    assert found.status in (_SOLVED, _INFEASIBLE), found.message
    return None if found.status == _INFEASIBLE else found.fun
