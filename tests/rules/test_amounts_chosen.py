"""Goals and objectives on amounts of rows against every threshold, tried one by one."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.base import BaseEstimator, ClassifierMixin

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals
from tests.tiers import problems, some_fast


class Score(ClassifierMixin, BaseEstimator):
    """Says the first column of X."""

    def fit(self, X, y):  # noqa: ARG002 - as all do
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class Rows:
    """Random rows with amounts, in any unit, and what any decisions come to there, counted by hand."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(22, 40))
        self.rng, self.n = rng, n
        self.y = np.resize([0, 1, 1, 0], n)[rng.permutation(n)]
        self.score = np.round(rng.normal(size=n) + 0.8 * self.y, 1)
        self.sex = np.resize(["F", "M"], n)[rng.permutation(n)]
        unit = 10.0 ** rng.integers(-3, 6)
        self.amount = unit * np.round(rng.lognormal(0, 1.5, n), 2)
        self.profit = np.where(self.y == 1, self.amount, -0.7 * self.amount)
        self.weight = rng.choice([0.5, 1.0, 3.0], n) if seed % 3 == 0 else None
        self.w = np.ones(n) if self.weight is None else self.weight
        self.X = self.score[:, None]
        self.columns = {"sex": self.sex, "amount": self.amount, "profit": self.profit}

    def goals(self):
        """Return texts of goals, each with a function from decisions to what must be at most zero."""
        rng, y, w, a = self.rng, self.y, self.w, self.amount
        women = self.sex == "F"
        mean = float((w * a).sum() / w.sum())
        most = float((w * np.maximum(self.profit, 0)).sum())
        share, low = float(rng.uniform(0.2, 0.95)), float(rng.uniform(0.0, 0.5))
        spent, earned = mean * float(rng.uniform(0.05, 0.6)), most * float(rng.uniform(-0.2, 1.0))

        def recall(d, rows):
            return (w * a * y * d)[rows].sum() / (w * a * y)[rows].sum()

        def paid(d):
            return (w * (a * y * (1 - d) + mean / 2 * (1 - y) * d)).sum() / w.sum()

        every = np.ones(self.n, dtype=bool)
        return {
            f"recall(value=amount) >= {share}": lambda d: share - recall(d, every),
            f"precision(value=amount) >= {share}": lambda d: (w * a * d * (share - y)).sum() / (w * a).sum(),
            f"cost({{1->0: amount, 0->1: {mean / 2}}}) <= {spent}": lambda d: (paid(d) - spent) / mean,
            f"total(value=profit) >= {earned}": lambda d: (earned - (w * self.profit * d).sum()) / most,
            f"total(sex=F, value=profit) >= {low * earned}": lambda d: (
                (low * earned - (w * self.profit * d)[women].sum()) / most
            ),
            f"max_difference(recall, by=sex, value=amount) <= {low}": lambda d: (
                abs(recall(d, women) - recall(d, ~women)) - low
            ),
            f"positive_rate(sex=F, value=amount) <= {share}": lambda d: (
                (w * a * d)[women].sum() / (w * a)[women].sum() - share
            ),
        }

    def goals_at_once(self):
        """Return the goals that are one linear limit each, made once."""
        if not hasattr(self, "_linear"):
            self._linear = {text: limit for text, limit in self.goals().items() if "max_difference" not in text}
        return self._linear

    def objective(self, text, d):
        if text is None:
            return (self.w * (d != self.y)).sum() / self.w.sum()
        return -(self.w * self.profit * d).sum()

    def decisions(self, by_sex):
        """Return the decisions of every rule."""
        cuts = [np.concatenate([[np.inf], np.unique(self.score[self.sex == one])[::-1]]) for one in "FM"]
        if not by_sex:
            cuts = [np.concatenate([[np.inf], np.unique(self.score)[::-1]])]
        for levels in product(*cuts):
            edge = levels[0] if not by_sex else np.where(self.sex == "F", levels[0], levels[1])
            yield (self.score >= edge).astype(float)


@pytest.mark.parametrize("seed", problems(8, 16))
def test_the_best_rule_is_that_of_trying_all(seed):
    rows = Rows(seed)
    goals = rows.goals()
    texts = rows.rng.choice(list(goals), size=int(rows.rng.integers(1, 4)), replace=False).tolist()
    objective, by_sex = (None if seed % 2 else "-1 * total(value=profit)"), bool(seed % 4 < 2)
    best = np.inf
    for d in rows.decisions(by_sex):
        if all(goals[text](d) <= 1e-9 for text in texts):
            best = min(best, rows.objective(objective, d))
    options = {"by": "sex"} if by_sex else {}
    model = cp.GoalClassifier(
        [Score().fit(rows.X, rows.y)], goals=texts, objective=objective, cv="prefit", confidence=None, **options
    )
    fit = {"sample_weight": rows.weight, "sensitive_features": rows.columns}
    if not np.isfinite(best):
        with pytest.raises(InfeasibleGoals):
            model.fit(rows.X, rows.y, **fit)
        return
    model.fit(rows.X, rows.y, **fit)
    decisions = model.predict(rows.X, sensitive_features=rows.columns if by_sex else None).astype(float)
    scale = np.abs(rows.w * rows.profit).sum() if objective else 1.0
    assert all(check.holds for check in model.check_goals())
    assert rows.objective(objective, decisions) == pytest.approx(best, abs=1e-9 * scale)
    assert model.value_ == pytest.approx(best, abs=1e-9 * scale)


GOALS = ["recall(value=amount) >= 0.7", "cost({1->0: amount, 0->1: 20}) <= 22", "total(value=profit) >= 10000"]


def held_on_new_rows(goal, seeds, n_rows=1500, confidence=0.9):
    """Return in how many samples the rule that is chosen with margins meets a goal on the population."""
    rng, n = np.random.default_rng(0), 40_000
    y = (rng.random(n) < 0.4).astype(int)
    score, amount = rng.normal(size=n) + 1.2 * y, rng.lognormal(4, 0.8, n)
    columns = {"amount": amount, "profit": np.where(y == 1, amount, -amount)}
    held = 0
    for seed in seeds:
        at = np.random.default_rng(seed).integers(0, n, n_rows)
        model = cp.GoalClassifier([Score().fit(None, y)], goals=[goal], cv="prefit", confidence=confidence)
        own = {name: values[at] for name, values in columns.items()}
        model.fit(score[at][:, None], y[at], sensitive_features=own)
        decided, share = model.predict(score[:, None]), n_rows / n
        if "recall" in goal:
            held += (amount * y * decided).sum() / (amount * y).sum() >= 0.7
        elif "cost" in goal:
            held += (amount * y * (1 - decided) + 20 * (1 - y) * decided).mean() <= 22
        else:
            held += share * (columns["profit"] * decided).sum() >= 10000
    return held


@pytest.mark.parametrize("goal", some_fast(GOALS))
def test_margins_of_amounts_make_goals_hold_on_the_population(goal):
    n_samples = 20
    assert held_on_new_rows(goal, range(n_samples)) >= n_samples * 0.9 - 3 * np.sqrt(n_samples * 0.09)


class Said(ClassifierMixin, BaseEstimator):
    """Says one column of X."""

    def __init__(self, place=0):
        self.place = place

    def fit(self, X, y):  # noqa: ARG002 - as all do
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[np.asarray(X)[:, self.place].astype(int)]


def written_out(rows, said, texts, objective):
    """Return the value of the best mixture of models by HiGHS, None where none meets the goals."""
    goals = rows.goals_at_once()
    matrix = np.array([[goals[text](d) for d in said.T] for text in texts])  # at most 0, linear in the mixture
    costs = np.array([rows.objective(objective, d) for d in said.T])
    scale = np.abs(costs).max()
    ones = np.ones((1, said.shape[1]))
    solution = linprog(costs / scale, matrix, np.zeros(len(texts)), ones, [1.0], method="highs")
    return solution.fun * scale if solution.status == 0 else None


@pytest.mark.parametrize("seed", problems(5, 15))
def test_the_best_mixture_is_that_of_a_program_written_out(seed):
    rows = Rows(seed + 1000)
    said = rows.rng.integers(0, 2, (rows.n, 5)).astype(float)
    said[:, 0] = np.where(rows.rng.random(rows.n) < 0.8, rows.y, 1 - rows.y)
    texts = rows.rng.choice(list(rows.goals_at_once()), size=2, replace=False).tolist()
    objective = None if seed % 2 else "-1 * total(value=profit)"
    best = written_out(rows, said, texts, objective)
    models = [Said(place).fit(said, rows.y) for place in range(said.shape[1])]
    settings = {"alpha": 1.0} if objective is None else {"objective": objective}
    model = cp.MixtureClassifier(models, goals=texts, **settings)
    fit = {"sample_weight": rows.weight, "sensitive_features": rows.columns}
    if best is None:
        with pytest.raises(InfeasibleGoals):
            model.fit(said, rows.y, **fit)
        return
    model.fit(said, rows.y, **fit)
    scale = np.abs(rows.w * rows.profit).sum() if objective else 1.0
    assert all(check.holds for check in model.check_goals())
    assert model.value_ == pytest.approx(best, abs=1e-6 * scale)
