"""The best deterministic rule that a mixture leads to, and what it loses.

A deterministic classifier has a tail risk of ``min(1, error / alpha)`` (Proposition 1 of Zhai et al. 2021), and its
rates move in steps, so a single model that meets the goals does not gain on the mixture. A weighted vote may: it is no
mixture of the models, and can be right where most of them are. Where one rule for all is required, this finds the best
among the vote at up to 64 thresholds and the single models, and says what it costs or gains.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from counterpoise.goals import GoalCheck, Rate
from counterpoise.rules.choosing import (
    PoolPredictions,
    Problem,
    build_model_program,
    select,
    single_values,
    value_of_mixture,
    violations,
)
from counterpoise.rules.goal_rows import TRAIN, Answers, bits_of
from counterpoise.rules.program import Program
from papers.arrays import AnyArray, FloatArray

_MAX_THRESHOLDS = 64  # of the vote; where shares take more values, these are spread evenly over the rows
_ROOM = 1e-9  # shares of the mixture closer than this are the same: sums of them depend on their order
_SAME = 9  # digits to which two risks, errors or violations are the same, in parts of the size of a rate or a goal


@dataclass(frozen=True)
class DeterministicRule:
    """A deterministic rule made of a mixture, and what it loses against it.

    Attributes
    ----------
    kind : {"vote", "single"}
        The weighted vote, or one model.
    threshold : float or None
        Of the vote: the positive class is said where models with at least this share of the mixture say it.
    model : int or None
        Which model decides alone.
    classes_ : array
        Class labels.
    value, mixture_value : float
        Risk of the rule and of the mixture, on the rows where the rule was chosen.
    checks : tuple of GoalCheck
        How the rule stands to each goal of the mixture.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from counterpoise import MixtureClassifier
    >>> from papers.mixture_goals.one_rule import to_deterministic
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> pool = [DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X[:200], y[:200]) for depth in (1, 2)]
    >>> mixture = MixtureClassifier(pool, alpha=0.2, random_state=0).fit(X[200:], y[200:])
    >>> rule = to_deterministic(mixture)
    >>> rule.kind, abs(round(rule.loss, 6)), rule.predict(X[:2]).shape
    ('single', 0.0, (2,))
    """

    kind: str
    threshold: float | None
    model: int | None
    classes_: AnyArray
    value: float
    mixture_value: float
    checks: tuple[GoalCheck, ...]
    source: Any = field(repr=False)

    @property
    def loss(self) -> float:
        """Return how much more risk the rule has than the mixture; negative where it gains, as a vote may."""
        return self.value - self.mixture_value

    @property
    def violation(self) -> float:
        """Return the total by which the rule misses the goals."""
        return float(sum(check.violation for check in self.checks))

    def predict(self, X: Any) -> AnyArray:
        """Decide about every row, always the same way.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
            Class labels.
        """
        decider, rows = self.source.decider(), self.source.rows_to_decide(X)
        if self.kind == "single":
            codes = rows.output_of(self.model)
        else:
            place = rows.pool.positive.place
            codes = np.where(decider.probabilities(rows)[:, place] >= self.threshold, place, 1 - place)
        return np.asarray(self.classes_[codes])

    def __str__(self) -> str:
        rule = (
            f"model {self.model}" if self.kind == "single" else f"weighted vote at threshold {self.threshold or 0:.4g}"
        )
        lines = [f"{rule}: risk {self.value:.4g} against the mixture's {self.mixture_value:.4g} ({self.loss:+.4g})"]
        return "\n".join([*lines, *map(str, self.checks)])


def to_deterministic(model: Any) -> DeterministicRule:
    """Return the best deterministic rule that a fitted mixture of answers leads to, on the rows where it was chosen."""
    found = best_rule(model.mixture_, model.family_.selection_data, model.problem())
    return DeterministicRule(**found, classes_=model.classes_, source=model)


class _Candidate(NamedTuple):
    """A rule as it is ranked, less being better, and its place among those of its kind."""

    rank: tuple[float, float, float]  # violation, risk, mean error; rounded
    value: float  # the risk
    place: int


def best_rule(mixture: FloatArray, evidence: PoolPredictions, aim: Problem) -> dict[str, Any]:
    """Return the rule of least violation, then least risk, then least mean error, and of equals the simpler.

    Where every rule has a risk of 1, as at an alpha below all errors, the mean error is what still tells them apart. A
    single model is simpler than a vote, and a vote the simpler the nearer its threshold is to one half.

    Returns
    -------
    dict
        The fields of a ``DeterministicRule`` that are found here.
    """
    program = build_model_program(select(evidence, aim), aim)
    unit = aim.objective.size if isinstance(aim.objective, Rate) else 1.0  # of the risk: zero-one losses have none
    best, rules = _best(program, evidence, np.arange(mixture.size), unit), evidence
    found: dict[str, Any] = {"kind": "single", "threshold": None, "model": best.place}
    positive = evidence.answers.positive
    if positive.is_binary:  # a threshold tells two classes apart
        thresholds = _thresholds(evidence.answers, mixture)
        votes = _votes(evidence, mixture, thresholds)
        vote = _best(build_model_program(select(votes, aim), aim), votes, np.abs(thresholds - 0.5), unit)
        if vote.rank < best.rank:
            best, rules = vote, votes
            found = {"kind": "vote", "threshold": float(thresholds[vote.place]), "model": None}
    alone = np.eye(1, rules.losses.shape[1], best.place)[0]
    checks = tuple(rules.answers.checks(aim.goals, alone))
    return {
        **found,
        "value": best.value,
        "mixture_value": value_of_mixture(program.objective, mixture),
        "checks": checks,
    }


def _best(program: Program, evidence: PoolPredictions, oddness: AnyArray, unit: float) -> _Candidate:
    """Return the best of the rules that the columns of the losses stand for; of equals the least odd.

    Risks are compared in parts of ``unit``.
    """
    values = single_values(program.objective)
    errors = np.average(evidence.losses, axis=0, weights=evidence.sample_weight)
    ranks = np.column_stack([violations(program.limits, values.size), values / unit, errors]).round(_SAME)
    place = int(np.lexsort((oddness, *ranks.T[::-1]))[0])
    violation, risk, error = ranks[place].tolist()
    return _Candidate((violation, risk, error), float(values[place]), place)


def _thresholds(answers: Answers, mixture: FloatArray) -> FloatArray:
    """Return thresholds between the shares of the mixture that say yes to a row of any dataset.

    Each lies in the middle of a gap, so that shares added up in another order fall on the same side of it. Where there
    is no gap it is one half, less what rounding may take from it.
    """
    shares = {name: np.sort(answers.shares(name, mixture)) for name in answers.positives}
    known = np.unique(np.concatenate(list(shares.values())))
    places = np.flatnonzero(np.diff(known) > _ROOM)
    if places.size == 0:
        return np.array([0.5 - _ROOM])
    between = (known[places] + known[places + 1]) / 2
    if between.size <= _MAX_THRESHOLDS:
        return np.asarray(between)
    n_below = np.searchsorted(shares[TRAIN], between)
    wanted = np.linspace(n_below[0], n_below[-1], _MAX_THRESHOLDS)
    return np.asarray(between[np.unique(np.searchsorted(n_below, wanted))])


def _votes(evidence: PoolPredictions, mixture: FloatArray, thresholds: FloatArray) -> PoolPredictions:
    """Return what the votes at all thresholds say, as if each were a model."""
    answers = evidence.answers
    said = {name: answers.shares(name, mixture)[:, None] >= thresholds for name in answers.positives}
    is_positive = answers.tables[TRAIN].y == answers.positive.labels.positive
    votes = replace(answers, positives={name: bits_of(one) for name, one in said.items()})
    return evidence._replace(losses=(said[TRAIN] ^ is_positive[:, None]).view(np.uint8), answers=votes)
