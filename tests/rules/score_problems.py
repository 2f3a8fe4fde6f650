"""Small random problems over rules of scores, and the program written out over every threshold, solved by HiGHS."""

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog

from counterpoise.goals import InfeasibleGoals, Table, as_goals, bind
from counterpoise.rules.choosing import as_problem
from counterpoise.rules.goal_rows import Answers, find_positive
from counterpoise.rules.options import Deferral
from counterpoise.rules.program import choose
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.table import RuleGroups, ScoreTable, rank
from counterpoise.solvers import minimize_risk
from counterpoise.theory.risks import KL, CVaR, EmpiricalLikelihood, Mean, WorstGroup

GOALS = (
    "positive_rate(sex=a) - positive_rate(sex=b) <= {0:.3f}",
    "recall >= {1:.3f}",
    "precision >= {2:.3f}",
    "false_positive_rate <= {1:.3f}",
    "churn(mail) <= {0:.3f}",
    "positive_rate(mail) >= {0:.3f}",
    "error_rate(sex=b) <= {2:.3f}",
)
DEFER_GOALS = (
    *GOALS,
    "defer_rate <= {0:.3f}",
    "abs(defer_rate(sex=a) - defer_rate(sex=b)) <= {0:.3f}",
    "decided_error_rate <= {0:.3f}",
    "decided_positive_rate(mail) >= {2:.3f}",
    "defer_rate(mail) >= {0:.3f}",
    "negative_rate(sex=a) >= {0:.3f}",
    "false_negative_rate <= {0:.3f}",
)
DEFERRED = 2  # the code and the label of a deferred row
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
    defer_cost: float | None = None

    @property
    def y(self):
        return self.tables["train"].y

    @property
    def weights(self):
        return self.tables["train"].weights()


def deferral_of(problem):
    """Return what deferring a row costs in a problem; None where every row is decided."""
    return None if problem.defer_cost is None else Deferral(problem.defer_cost, DEFERRED)


def random_problem(seed, *, defers=False):
    """Return groups, goals, weights, ties and models drawn at random; some have no solution."""
    rng = np.random.default_rng(seed)
    sizes = {"train": int(rng.integers(8, 12 if defers else 22)), "mail": int(rng.integers(4, 6 if defers else 9))}
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
    known = DEFER_GOALS if defers else GOALS
    chosen = rng.choice(len(known), int(rng.integers(0, 4)), replace=False)
    risks = RISKS[:4] if defers else RISKS  # those that HiGHS can solve over all intervals, of which there are many
    objective = [*risks, WorstGroup("sex"), "false_negative_rate"][int(rng.integers(len(risks) + 2))]
    goals = [known[place].format(*bounds) for place in chosen]
    budget = [None, 0.05][int(rng.integers(2))]
    cost = float(rng.choice([0.0, 0.1, 0.25, 1 / 3, 0.5, 1.0])) if defers else None
    return Problem(scores, tables, groups, goals, objective, budget, cost)


def chosen(problem, tol=1e-7):
    """Return our choice, and the rows with their cuts."""
    ranked, limits = ranked_of(problem), {"budget": problem.budget, "deferral": deferral_of(problem)}
    aim = as_problem(None, problem.objective, problem.goals, default_alpha=1.0, **limits)
    return choose(CutFamily(ranked), aim, tol), ranked


def ranked_of(problem, names=("sex=a", "sex=b")):
    """Return the rows with their cuts; ``names`` are those of the groups."""
    answers = Answers(problem.tables, {}, find_positive(np.array([0, 1]), None))
    usual = np.full(problem.scores["train"].shape[1], 0.5)
    weights = problem.tables["train"].sample_weight
    evidence = ScoreTable(problem.scores, answers, weights, None, usual, deferral_of(problem))
    is_grouped = any(codes.any() for codes in problem.groups.values())
    groups = RuleGroups(("sex",), names) if is_grouped else RuleGroups((), ("all",))
    return rank(evidence, groups)


def every_rule(problem):
    """Return what every rule says on each dataset, a column for each: one threshold for each model and group.

    Where rows may be deferred there are two thresholds, and rules say 0, 1 or 2: deferred.
    """
    said = {name: [] for name in problem.scores}
    n_groups = 1 + max(int(codes.max()) for codes in problem.groups.values())
    for model in range(problem.scores["train"].shape[1]):
        known = [
            np.concatenate([problem.scores[name][problem.groups[name] == group, model] for name in said])
            for group in range(n_groups)
        ]
        levels = [[(level,) for level in [-np.inf, *np.unique(one)]] for one in known]
        if problem.defer_cost is not None:
            levels = [[(low, high) for (low,) in one for (high,) in one if low <= high] for one in levels]
        thresholds = np.array(list(product(*levels)))  # of every rule, by group
        for name, columns in said.items():
            own = thresholds[:, problem.groups[name]]
            columns.append(_answered(problem.scores[name][:, [model]] > own).T)
    return {name: np.hstack(columns) for name, columns in said.items()}


def _answered(above):
    """Return the answers of rules, given which rows are above the threshold, or above the lower and the upper one."""
    return above[..., 0] if above.shape[-1] == 1 else np.where(above[..., 1], 1, np.where(above[..., 0], DEFERRED, 0))


def losses_of(problem, said):
    """Return the loss of every rule on every labelled row."""
    wrong = (said != (problem.y == 1)[:, None]).astype(float)
    return wrong if problem.defer_cost is None else np.where(said == DEFERRED, problem.defer_cost, wrong)


def goal_rows_of(problem, said):
    """Return the goals as rows and bounds on every rule."""
    if not problem.goals:
        return np.zeros((0, said["train"].shape[1])), np.zeros(0)
    deferred = None if problem.defer_cost is None else DEFERRED
    bound = bind(as_goals(problem.goals), problem.tables, classes=[0, 1], defer_label=deferred)
    told = {name: one.astype(float) for name, one in said.items()}
    if deferred is not None:
        told = {name: np.stack([one == code for code in range(3)], axis=1).astype(float) for name, one in said.items()}
    told = {name: told[name].reshape(-1, said[name].shape[1]) for name in bound.weights}
    return bound.values(told), bound.bounds


def goal_scales_of(problem):
    """Return the scale of the goal that each of those rows is of."""
    goals = as_goals(problem.goals)
    deferred = None if problem.defer_cost is None else DEFERRED
    owners = bind(goals, problem.tables, classes=[0, 1], defer_label=deferred).owners if goals else []
    return np.array([goals[place].scale for place in owners])


def written_out(problem):
    """Return the least value over all mixtures of every rule, or None where none keeps the goals."""
    said = every_rule(problem)
    losses = losses_of(problem, said["train"])
    mass = problem.weights / problem.weights.sum()
    rows, bounds = goal_rows_of(problem, said)
    if problem.budget is not None:
        least = _solved(mass @ losses, rows, bounds)
        if least is None:
            return None
        rows, bounds = np.vstack([rows, mass @ losses]), np.append(bounds, least + problem.budget)
    return _value(problem, losses, said["train"], mass, rows, bounds)


def _value(problem, losses, said, mass, rows, bounds):
    objective = problem.objective
    if isinstance(objective, str):
        positive = problem.y == 1
        return _solved((mass * positive) @ (said == 0) / mass[positive].sum(), rows, bounds)
    if isinstance(objective, WorstGroup):
        sex = problem.tables["train"].column("sex")
        means = np.array([np.average(losses[sex == one], axis=0, weights=mass[sex == one]) for one in ("a", "b")])
        return _tail(means, np.full(len(means), 1 / len(means)), 1 / len(means), rows, bounds)
    if objective.tail_fraction is not None:
        return _tail(losses, mass, objective.tail_fraction, rows, bounds)
    if _solved(np.zeros(losses.shape[1]), rows, bounds) is None:
        return None
    return minimize_risk(losses, objective, sample_weight=mass, rows=rows, bounds=bounds, tol=2e-8).value


def proven(problem, tol):
    """Return our choice and the rows, after checks: value and bound enclose the optimum of the written-out program.

    Where that has none, goals conflict, those that are said to; then None.
    """
    best = written_out(problem)
    if best is None:
        with pytest.raises(InfeasibleGoals) as caught:
            chosen(problem)
        kept = problem._replace(goals=[str(goal) for goal in caught.value.conflict], budget=None)
        assert written_out(kept) is None, "the goals that are said to conflict do not"
        return None
    choice, ranked = chosen(problem, tol)
    assert choice.value == pytest.approx(best, abs=1e-6)
    assert choice.lower <= best + 1e-8
    assert choice.value - choice.lower <= 1e-6
    return choice, ranked


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
