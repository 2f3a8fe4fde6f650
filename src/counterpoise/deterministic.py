"""The best deterministic rule that a mixture leads to, and what it loses.

A deterministic classifier has a tail risk of ``min(1, error / alpha)`` (Proposition 1 of Zhai et al. 2021), and its
rates move in steps, so a single model loses against the mixture. A weighted vote may also gain: it is no mixture of the
models, and can be right where most of them are. Where one rule for all is required, this finds the best among the vote
at each threshold and the single models, and says what it costs or gains.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise._types import AnyArray, FloatArray
from counterpoise.goal_rows import TRAIN, Answers
from counterpoise.goals import GoalCheck
from counterpoise.mixing import Game, Selection
from counterpoise.pool import predict_codes
from counterpoise.solvers.rows import BitRows, pack

if TYPE_CHECKING:
    from counterpoise.randomized import RandomizedClassifier

_MAX_THRESHOLDS = 64  # of the vote; where shares take more values, these are spread evenly over the rows
_SAME = 9  # digits to which two shares of the mixture are the same: sums of them are not exact


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
        """Return how much more risk the rule has than the mixture; negative where a vote gains."""
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
        source = self.source
        checked = source._check_predict_input(X)  # noqa: SLF001 - of our own kind
        if self.kind == "single":
            model = source._pool()[self.model]  # noqa: SLF001 - as above
            return np.asarray(self.classes_[predict_codes(model, checked, self.classes_)])
        positive = source._kept.answers.positive  # noqa: SLF001 - as above
        says_yes = source._shares(checked)[:, positive.place] >= self.threshold  # noqa: SLF001 - as above
        return np.asarray(self.classes_[np.where(says_yes, positive.place, 1 - positive.place)])

    def __str__(self) -> str:
        rule = f"model {self.model}" if self.kind == "single" else f"weighted vote at threshold {self.threshold:.4g}"
        lines = [f"{rule}: risk {self.value:.4g} against the mixture's {self.mixture_value:.4g} ({self.loss:+.4g})"]
        return "\n".join([*lines, *map(str, self.checks)])


def best_rule(source: "RandomizedClassifier", selection: Selection, answers: Answers) -> DeterministicRule:
    """Return the deterministic rule of least violation, then least risk; a vote before a single model."""
    goals, mixture = source.goals_, source.mixture_
    game = source._game(selection, source.alpha_)  # noqa: SLF001 - of our own kind
    singles = _ranked(game)
    found: dict[str, Any] = {"kind": "single", "threshold": None, "model": singles[2]}
    value, checks = singles[1], answers.checks(goals, np.eye(selection.n_models)[singles[2]])
    if answers.positive is not None and len(source.classes_) == 2:  # noqa: PLR2004 - a threshold tells two classes apart
        thresholds = _thresholds(answers.positives[TRAIN], mixture)
        votes = _votes(answers, mixture, thresholds)
        voting = _voting_selection(selection, votes, source)
        vote = _ranked(source._game(voting, source.alpha_))  # noqa: SLF001 - as above
        if vote <= (singles[0], singles[1], len(thresholds)):
            found = {"kind": "vote", "threshold": float(thresholds[vote[2]]), "model": None}
            value, checks = vote[1], votes.checks(goals, np.eye(len(thresholds))[vote[2]])
    return DeterministicRule(
        **found,
        classes_=source.classes_,
        value=value,
        mixture_value=game.value(mixture),
        checks=tuple(checks),
        source=source,
    )


def _ranked(game: Game) -> tuple[float, float, int]:
    """Return violation, risk and place of the best candidate."""
    violations, values = game.violations().round(_SAME), game.single_values()
    best = np.lexsort((values, violations))[0]
    return float(violations[best]), float(values[best]), int(best)


def _thresholds(bits: BitRows, mixture: FloatArray) -> FloatArray:
    """Return thresholds between the shares of the mixture that say yes to a row; one half where there is no other."""
    shares = np.unique(_shares(bits, mixture).round(_SAME))
    if shares.size < 2:  # noqa: PLR2004 - nothing between them
        return np.array([0.5])
    between = (shares[1:] + shares[:-1]) / 2
    if between.size > _MAX_THRESHOLDS:
        between = np.unique(np.quantile(_shares(bits, mixture), np.linspace(0, 1, _MAX_THRESHOLDS)))
    return between


def _shares(bits: BitRows, mixture: FloatArray) -> FloatArray:
    shares = np.empty(bits.n_rows)
    bits.scores(mixture, shares)
    return shares


def _votes(answers: Answers, mixture: FloatArray, thresholds: FloatArray) -> Answers:
    """Return the answers of the votes at all thresholds, as if each were a model."""
    positives = {}
    for name, bits in answers.positives.items():
        packed = pack(_shares(bits, mixture)[:, None] >= thresholds)
        assert packed is not None  # noqa: S101 - of booleans
        positives[name] = BitRows(packed, thresholds.size)
    return Answers(answers.tables, positives, answers.positive)


def _voting_selection(selection: Selection, votes: Answers, source: "RandomizedClassifier") -> Selection:
    assert votes.positive is not None  # noqa: S101 - there are votes
    bits = votes.positives[TRAIN]
    said = np.unpackbits(bits.packed, axis=1, bitorder="little", count=bits.n_models)
    is_positive = votes.tables[TRAIN].y == votes.positive.labels[1]
    losses = said ^ is_positive[:, None].astype(np.uint8)
    aim = source.objective_
    rate = None if selection.rate is None else votes.rate_row(aim)
    return selection._replace(losses=losses, goals=votes.goal_rows(source.goals_), rate=rate)
