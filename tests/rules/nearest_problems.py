"""Small problems of thresholds with goals on ratios that conflict, and linear programs over every rule written out."""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals

DEFERRED = -1
_SOLVED = 0  # of scipy's statuses


class Limit(NamedTuple):
    """A goal ``top / bottom <= bound`` or ``>= bound`` on each of all rules; a rate has the bottom 1."""

    left: str
    sense: str
    bound: float
    top: np.ndarray  # by rule
    bottom: np.ndarray

    @property
    def text(self):
        return f"{self.left} {self.sense} {self.bound!r}"

    @property
    def sign(self):
        return 1.0 if self.sense == "<=" else -1.0

    @property
    def row(self):
        """Return what must be at most 0 of a mixture of the rules."""
        return self.sign * (self.top - self.bound * self.bottom)


class Problem(NamedTuple):
    scores: np.ndarray  # (n_rows, n_models)
    y: np.ndarray
    sex: np.ndarray
    weights: np.ndarray | None
    by: bool
    defers: bool
    limits: list

    def fit(self, texts=None):
        """Fit rules of the scores inside the goals, or inside others."""
        model = cp.GoalClassifier(
            list(self.scores.T),
            cv="prefit",
            decision="sticky",
            alpha=1.0,
            goals=self.texts if texts is None else texts,
            by="sex" if self.by else (),
            deferral=cp.Deferral(0.3) if self.defers else None,
            random_state=0,
            confidence=None,
        )
        return model.fit(np.zeros((len(self.y), 1)), self.y, self.weights, sensitive_features={"sex": self.sex})

    def conflict(self, texts=None):
        """Return the error that the goals, or others, end in, or None where they are met."""
        try:
            self.fit(texts)
        except InfeasibleGoals as error:
            return error
        return None

    @property
    def texts(self):
        return [limit.text for limit in self.limits]

    def with_bound(self, place, bound):
        """Return the problem with another bound of one of its goals."""
        limits = [*self.limits]
        limits[place] = limits[place]._replace(bound=bound)
        return self._replace(limits=limits)


def every_rule(scores, groups, *, defers):
    """Return the answers of all rules, shape (n_rules, n_rows): each threshold or pair of each model and group."""
    answers = []
    for column in scores.T:
        by_group = []
        for group in np.unique(groups):
            own = column[groups == group]
            levels = [-np.inf, *np.unique(own)]
            pairs = [(low, high) for low, high in product(levels, levels) if low == high or (defers and low < high)]
            by_group.append([np.where(own > high, 1, np.where(own > low, DEFERRED, 0)) for low, high in pairs])
        for parts in product(*by_group):
            said = np.empty(len(column), dtype=int)
            for group, part in zip(np.unique(groups), parts, strict=True):
                said[groups == group] = part
            answers.append(said)
    return np.unique(answers, axis=0)


def _counts(said, y, weights):
    """Return what each metric counts of rules on some rows: top and bottom, both in parts of the rows."""
    share = weights / weights.sum()
    tp, fp = (said == 1) & (y == 1), (said == 1) & (y == 0)
    wrong = fp | ((said == 0) & (y == 1))
    decided, positive, one = said != DEFERRED, said == 1, np.ones(said.shape)
    found = {
        "defer_rate": (~decided, one),
        "positive_rate": (positive, one),
        "recall": (tp, np.broadcast_to(y == 1, said.shape)),
        "error_rate": (wrong, one),
        "precision": (tp, positive),
        "decided_error_rate": (wrong, decided),
        "decided_positive_rate": (positive, decided),
        "f1_score": (2.0 * tp, 2.0 * tp + wrong),
    }
    return {name: tuple(np.asarray(part @ share, dtype=float) for part in parts) for name, parts in found.items()}


RATIOS = {"decided_error_rate": "<=", "precision": ">=", "decided_positive_rate": ">=", "f1_score": ">="}
RATES = {"defer_rate": "<=", "positive_rate": ">=", "recall": ">=", "error_rate": "<="}


def random_rows(seed):
    """Return scores with ties, groups and weights, and what each metric counts of every rule on which rows."""
    rng = np.random.default_rng(seed)
    defers, by, n_models = seed % 4 != 0, bool(rng.integers(2)), int(rng.integers(1, 3))
    n_rows, n_levels = (20, 3) if by else (int(rng.integers(6, 11)), 10)  # a group needs ten rows
    y, sex = rng.integers(0, 2, n_rows), np.where(np.arange(n_rows) < n_rows // 2, "F", "M")
    y[:2], y[-2:] = [0, 1], [1, 0]
    ranks = np.argsort(np.argsort(rng.uniform(0.2, 1.0) * y[:, None] + rng.normal(size=(n_rows, n_models)), 0), 0)
    scores = np.floor(ranks * n_levels / n_rows)  # with ties
    weights = rng.integers(1, 5, n_rows).astype(float) if rng.integers(2) else None
    w = np.ones(n_rows) if weights is None else weights
    said = every_rule(scores, (sex == "M").astype(int) if by else np.zeros(n_rows, int), defers=defers)
    parts = {
        "": _counts(said, y, w),
        **{f", sex={one}": _counts(said[:, sex == one], y[sex == one], w[sex == one]) for one in "FM"},
    }
    return Problem(scores, y, sex, weights, by, defers, []), parts, rng


def random_problem(seed):
    """Return rows with goals of which one or two are on ratios, those first."""
    return next(random_problems(seed, 1))


def random_problems(seed, n_problems):
    """Yield the same rows with different goals."""
    problem, parts, rng = random_rows(seed)
    for _ in range(n_problems):
        yield problem._replace(limits=_random_limits(parts, rng, defers=problem.defers))


def _random_limits(parts, rng, *, defers):
    known = {name: sense for name, sense in RATIOS.items() if defers or "decided" not in name}
    ratios = rng.choice([*known], int(rng.integers(1, 3)), replace=False).tolist()
    names = [(name, str(rng.choice([*parts], p=[0.6, 0.2, 0.2]))) for name in ratios]
    if rng.random() < 0.8:  # what keeps the first from holding because nobody is decided about, or called positive
        names.append(
            ("defer_rate" if "decided" in ratios[0] else str(rng.choice(["positive_rate", "recall"])), names[0][1])
        )
    names.append((str(rng.choice([*RATES][0 if defers else 1 :])), str(rng.choice([*parts]))))
    limits = []
    for place, (name, where) in enumerate(dict.fromkeys(names)):
        usual = {**RATIOS, **RATES}[name]
        sense = usual if rng.random() < 0.85 or place == len(ratios) else {"<=": ">=", ">=": "<="}[usual]
        low = 0.02 if sense == "<=" else 0.5
        bound = round(float(rng.uniform(low, low + 0.45)), 2)
        limits.append(Limit(f"{name}(train{where})", sense, bound, *parts[where][name]))
    return limits


def random_rates(seed):
    """Return rows with five tight goals on rates: most need to be moved together."""
    problem, parts, rng = random_rows(seed)
    limits = {}
    for _ in range(5):
        name, where = str(rng.choice([*RATES][0 if problem.defers else 1 :])), str(rng.choice([*parts]))
        sense = str(rng.choice(["<=", ">="]))
        bound = round(float(rng.uniform(0.02, 0.3) if sense == "<=" else rng.uniform(0.6, 0.95)), 2)
        top, bottom = parts[where][name]
        limits[name, where, sense] = Limit(f"{name}(train{where})", sense, bound, top / bottom, np.ones(top.size))
    return problem._replace(limits=list(limits.values()))


def nearest_by_highs(problem, place):
    """Return the nearest bound of one goal beside the others over all mixtures of all rules; None where none is."""
    limit, others = problem.limits[place], [one for at, one in enumerate(problem.limits) if at != place]
    n_rules = limit.top.size
    # In the variables mixture / bottom and 1 / bottom the ratio is linear (Charnes and Cooper 1962).
    rows = np.array([np.append(one.row, 0.0) for one in others]).reshape(-1, n_rules + 1)
    equal = np.array([np.append(np.ones(n_rules), -1.0), np.append(limit.bottom, 0.0)])
    found = linprog(
        np.append(limit.sign * limit.top, 0.0),
        rows,
        np.zeros(len(others)),
        equal,
        [0.0, 1.0],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return limit.sign * found.fun if found.status == _SOLVED else None


def can_hold_by_highs(limits):
    """Return whether a mixture of all rules meets goals; a ratio without a denominator is met."""
    rows = np.array([limit.row for limit in limits])
    found = linprog(np.zeros(rows.shape[1]), rows, np.zeros(len(rows)), np.ones((1, rows.shape[1])), [1.0])
    return found.status == _SOLVED


def least_moves_by_highs(problem):
    """Return the least sum of moves of bounds on rates with which all goals hold, over all mixtures of all rules."""
    rows = np.array([limit.row for limit in problem.limits])
    n_limits, n_rules = rows.shape
    cost = np.append(np.zeros(n_rules), np.ones(n_limits))
    total = np.append(np.ones(n_rules), np.zeros(n_limits))[None]
    return linprog(cost, np.hstack([rows, -np.eye(n_limits)]), np.zeros(n_limits), total, [1.0]).fun


class Pool(NamedTuple):
    """Models that say 0 or 1 of each row."""

    said: np.ndarray  # (n_models, n_rows)
    y: np.ndarray
    weights: np.ndarray
    limits: list = ()

    def fit(self, texts):
        """Fit a mixture of the models inside goals."""
        model = cp.MixtureClassifier(list(self.said), alpha=1.0, goals=texts, random_state=0)
        return model.fit(np.zeros((len(self.y), 1)), self.y, self.weights)


def random_pool(seed):
    """Return models and goals that conflict, one of them on a ratio."""
    rng = np.random.default_rng(seed)
    n_rows, n_models = int(rng.integers(8, 30)), int(rng.integers(2, 7))
    y = np.arange(n_rows) % 2
    said = np.where(rng.random((n_models, n_rows)) < rng.uniform(0.1, 0.4), 1 - y, y)
    said[:, 1] = 1  # so that every model says yes of some row
    pool = Pool(said, y, rng.integers(1, 4, n_rows).astype(float))
    counts = _counts(said, y, pool.weights)
    name = ["precision", "f1_score"][seed % 2]
    limits = [
        Limit(name, ">=", 0.97, *counts[name]),
        Limit("recall", ">=", float(counts["recall"][0].mean() / counts["recall"][1][0]), *counts["recall"]),
        Limit("positive_rate", "<=", float(counts["positive_rate"][0].mean()), *counts["positive_rate"]),
    ]
    best = nearest_by_highs(pool._replace(limits=limits), 0)
    limits[0] = limits[0]._replace(bound=float(best + 0.03))
    return pool, limits
