"""Random problems with goals of every kind, and the same problems as linear programs written out by hand for HiGHS."""

from itertools import permutations
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from counterpoise import MixtureClassifier

NAMES = ["ant", "bee", "cat", "dog", "New Zealand", "fox", "it's", "0"]


class Limit(NamedTuple):
    """A goal as text, and the rows ``row @ mixture <= bound`` that it stands for."""

    text: str
    rows: list
    bounds: list


class Problem(NamedTuple):
    y: np.ndarray
    said: np.ndarray  # (n_samples, n_models) labels
    columns: dict
    weights: np.ndarray | None
    alpha: float
    objective: str | None
    price: np.ndarray | None  # the objective as a row on the models, where it is a rate
    limits: list


def quoted(label):
    return "'" + str(label).replace("'", "''") + "'"


class _Maker:
    """Makes goals on one set of rows."""

    def __init__(self, rng, y, said, columns, weights):
        self.rng, self.y, self.said, self.columns = rng, y, said, columns
        self.w = np.ones(len(y)) if weights is None else weights
        self.classes = np.unique(y)

    def share(self, hits, mask):
        """Return the weighted share of hits, one column for each model, among some rows."""
        return (self.w[mask] @ hits[mask]) / self.w[mask].sum()

    def value(self, metric, of, mask):
        """Return a rate of each model, given the class it is about and the rows."""
        is_it, says_it = self.y == of, self.said == of
        wrong = self.said != self.y[:, None]
        return {
            "recall": lambda: self.share(says_it, mask & is_it),
            "false_positive_rate": lambda: self.share(says_it, mask & ~is_it),
            "positive_rate": lambda: self.share(says_it, mask),
            "error_rate": lambda: self.share(wrong, mask),
        }[metric]()

    def any_class(self):
        return self.rng.choice(self.classes)

    def condition(self):
        """Return the text of a condition and the rows that meet it."""
        age, sex = self.columns["age"], self.columns["sex"]
        low, high = np.sort(self.rng.choice(np.unique(age), 2, replace=False))  # some row has each of them
        value = self.rng.choice(np.unique(sex))
        return [
            ("", np.ones(len(age), bool)),
            (f", age<={high}", age <= high),
            (f", {low}<=age<{high}", (age >= low) & (age < high)),
            (f", {low} < age, sex={value}", (age > low) & (sex == value)),
            (f", sex={value}", sex == value),
        ][self.rng.integers(5)]

    def bound(self, values, sense):
        """Return a bound near what the models reach, often exactly what one of them does."""
        low, high = float(values.min()), float(values.max())
        if self.rng.random() < 0.3:
            return float(self.rng.choice(values))
        reach = 0.25 * (high - low) + 0.01
        bound = (
            self.rng.uniform(low - 0.3 * reach, high + reach)
            if sense == "<="
            else self.rng.uniform(low - reach, high + 0.3 * reach)
        )
        return float(np.clip(bound, 0.0, max(high, 1.0)))

    def limit(self, left, members, sense):
        """Return a goal on the worst of some rates."""
        values = np.array(members)
        bound = self.bound(values.max(axis=0) if sense == "<=" else values.min(axis=0), sense)
        sign = 1.0 if sense == "<=" else -1.0
        return Limit(f"{left} {sense} {bound!r}", [sign * row for row in values], [sign * bound] * len(values))

    def on_a_class(self):
        (where, mask), of = self.condition(), self.any_class()
        metric, sense = [("recall", ">="), ("positive_rate", "<="), ("false_positive_rate", "<=")][self.rng.integers(3)]
        return self.limit(f"{metric}(of={quoted(of)}{where})", [self.value(metric, of, mask)], sense)

    def error(self):
        where, mask = self.condition()
        return self.limit(f"error_rate(train{where})", [self.value("error_rate", None, mask)], "<=")

    def precision(self):
        of, (where, mask) = self.any_class(), self.condition()
        top = self.share((self.said == of) & (self.y == of)[:, None], mask)
        bottom = self.share(self.said == of, mask)
        bound = float(self.rng.uniform(0.3, 0.95))
        return Limit(f"precision(of={quoted(of)}{where}) >= {bound!r}", [bound * bottom - top], [0.0])

    def confusion(self):
        of, called = self.rng.choice(self.classes, 2, replace=False)
        rate = self.share(self.said == called, self.y == of)
        return self.limit(f"confusion(of={quoted(of)}, called={quoted(called)})", [rate], "<=")

    def macro(self):
        where, mask = self.condition()
        rate = np.mean([self.value("recall", of, mask) for of in self.classes], axis=0)
        return self.limit(f"macro(recall, train{where})", [rate], ">=")

    def every_class(self):
        where, mask = self.condition()
        return self.limit(
            f"every_class(recall, train{where})", [self.value("recall", of, mask) for of in self.classes], ">="
        )

    def absolute(self):
        metric, of = self.rng.choice(["recall", "false_positive_rate", "positive_rate"]), self.any_class()
        one, other = self.rng.permutation(np.unique(self.columns["sex"]))[:2]
        values = [self.value(metric, of, self.columns["sex"] == value) for value in (one, other)]
        text = " - ".join(f"{metric}(of={quoted(of)}, sex={value})" for value in (one, other))
        gap = values[0] - values[1]
        return self.limit(f"abs({text})", [gap, -gap], "<=")

    def by_groups(self, metric, of):
        return [self.value(metric, of, self.columns["sex"] == value) for value in np.unique(self.columns["sex"])]

    def difference(self):
        metric, of = self.rng.choice(["recall", "positive_rate", "error_rate"]), self.any_class()
        where = "" if metric == "error_rate" else f", of={quoted(of)}"
        gaps = [one - other for one, other in permutations(self.by_groups(metric, of), 2)]
        return self.limit(f"max_difference({metric}, train{where}, by=sex)", gaps, "<=")

    def odds(self):
        of = self.any_class()
        gaps = [
            one - other
            for name in ("recall", "false_positive_rate")
            for one, other in permutations(self.by_groups(name, of), 2)
        ]
        return self.limit(f"equalized_odds_difference(of={quoted(of)}, by=sex)", gaps, "<=")

    def ratio(self):
        of, bound = self.any_class(), float(self.rng.uniform(0.3, 1.0))
        rows = [bound * other - one for one, other in permutations(self.by_groups("positive_rate", of), 2)]
        return Limit(f"min_ratio(positive_rate, of={quoted(of)}, by=sex) >= {bound!r}", rows, [0.0] * len(rows))

    def cost(self):
        text, price = self.costs()
        return self.limit(text, [price], "<=")

    def costs(self):
        """Return the text of an average cost, and what it is for each model."""
        pairs = {
            tuple(self.rng.choice(self.classes, 2, replace=False)): int(self.rng.integers(1, 20)) for _ in range(3)
        }
        price = sum(
            amount * self.share((self.said == called) & (self.y == label)[:, None], np.ones(len(self.y), bool))
            for (label, called), amount in pairs.items()
        )
        written = ", ".join(f"{quoted(label)}->{quoted(called)}: {amount}" for (label, called), amount in pairs.items())
        return f"cost({{{written}}})", price


KINDS = [
    "on_a_class",
    "error",
    "precision",
    "confusion",
    "macro",
    "every_class",
    "absolute",
    "difference",
    "odds",
    "ratio",
    "cost",
]


def random_problem(seed):
    """Return a problem of 2 to 8 classes with one to five goals."""
    rng = np.random.default_rng(seed)
    n_classes, n_models, n_groups = rng.integers(2, 9), rng.integers(2, 9), rng.integers(2, 4)
    classes = rng.permutation(NAMES)[:n_classes]
    sex = np.repeat(np.array(["F", "M", "X"])[:n_groups], 10 * n_classes)
    y = np.tile(np.repeat(classes, 10), n_groups)  # ten rows of every class in every group
    age = np.tile([18, 20, 25, 30, 33, 40, 45, 50, 58, 61], n_groups * n_classes)
    skill = rng.uniform(0.2, 0.95, n_models)
    said = np.where(rng.random((len(y), n_models)) < skill, y[:, None], rng.choice(classes, (len(y), n_models)))
    weights = rng.integers(1, 4, len(y)).astype(float) if rng.random() < 0.3 else None
    maker = _Maker(rng, y, said, {"sex": sex, "age": age}, weights)
    wanted = [KINDS[seed % len(KINDS)], *rng.choice(KINDS, rng.integers(0, 5))]
    limits = [getattr(maker, kind)() for kind in wanted]
    objective, price = maker.costs() if rng.random() < 0.3 else (None, None)
    return Problem(y, said, maker.columns, weights, float(rng.uniform(0.05, 1.0)), objective, price, limits)


def solved_by_highs(problem):
    """Return the least risk and a mixture of it, or None where no mixture meets the goals."""
    losses = (problem.said != problem.y[:, None]).astype(float)
    n_rows, n_models = losses.shape
    w = np.ones(n_rows) if problem.weights is None else problem.weights
    rows = np.vstack([row for limit in problem.limits for row in limit.rows])
    bounds = np.concatenate([limit.bounds for limit in problem.limits])
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    if problem.price is not None:
        found = linprog(problem.price, rows, bounds, np.ones((1, n_models)), [1.0], options=options)
        return None if found.status == 2 else found.fun
    # mixture, threshold, excess of each row over it
    cost = np.concatenate([np.zeros(n_models), [1.0], w / (problem.alpha * w.sum())])
    above = np.hstack([losses, -np.ones((n_rows, 1)), -np.eye(n_rows)])
    A = np.vstack([above, np.hstack([rows, np.zeros((len(rows), 1 + n_rows))])])
    total = np.concatenate([np.ones(n_models), np.zeros(1 + n_rows)])[None]
    limits = [(0, None)] * n_models + [(None, None)] + [(0, None)] * n_rows
    found = linprog(cost, A, np.concatenate([np.zeros(n_rows), bounds]), total, [1.0], bounds=limits, options=options)
    return None if found.status == 2 else found.fun


def fitted(problem):
    """Return the mixture that the library chooses."""
    goals = [limit.text for limit in problem.limits]
    tail = {"alpha": problem.alpha} if problem.objective is None else {"objective": problem.objective}
    model = MixtureClassifier(list(problem.said.T), goals=goals, **tail)
    X = np.zeros((len(problem.y), 1))
    return model.fit(X, problem.y, problem.weights, sensitive_features=problem.columns)
