"""The best deterministic rule that a mixture leads to, and what it loses.

A deterministic classifier has a tail risk of ``min(1, error / alpha)`` (Proposition 1 of Zhai et al. 2021), and its
rates move in steps, so a single model that meets the goals does not gain on the mixture. A weighted vote may: it is no
mixture of the models, and can be right where most of them are. Where one rule for all is required, this finds the best
among the vote at up to 64 thresholds and the single models, and says what it costs or gains.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.goals import GoalCheck
from counterpoise.mixtures.answers import TRAIN, Answers
from counterpoise.mixtures.game import Game, Selection
from counterpoise.mixtures.pool import predict_codes
from counterpoise.solvers.rows import BitRows, pack

_MAX_THRESHOLDS = 64  # of the vote; where shares take more values, these are spread evenly over the rows
_ROOM = 1e-9  # shares of the mixture closer than this are the same: sums of them depend on their order
_SAME = 9  # digits to which two risks, errors or violations are the same


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


class _Candidate(NamedTuple):
    """A rule as it is ranked, less being better, and its place among those of its kind."""

    rank: tuple[float, float, float]  # violation, risk, mean error; rounded
    value: float  # the risk
    place: int


def best_rule(source: Any, selection: Selection, answers: Answers) -> DeterministicRule:
    """Return the rule of least violation, then least risk, then least mean error, and of equals the simpler.

    Where every rule has a risk of 1, as at an alpha below all errors, the mean error is what still tells them apart. A
    single model is simpler than a vote, and a vote the simpler the nearer its threshold is to one half.
    """
    mixture, n_models = source.mixture_, selection.n_models
    game = source._game(selection, source.alpha_)  # noqa: SLF001 - of our own kind
    best = _best(game, selection, np.arange(n_models))
    found: dict[str, Any] = {"kind": "single", "threshold": None, "model": best.place}
    if answers.positive is not None and len(source.classes_) == 2:  # noqa: PLR2004 - a threshold tells two classes apart
        thresholds = _thresholds(answers, mixture)
        votes = _votes(answers, mixture, thresholds)
        voting = _voting_selection(selection, votes, source)
        vote = _best(source._game(voting, source.alpha_), voting, np.abs(thresholds - 0.5))  # noqa: SLF001 - as above
        if vote.rank < best.rank:
            best, answers, n_models = vote, votes, thresholds.size
            found = {"kind": "vote", "threshold": float(thresholds[vote.place]), "model": None}
    return DeterministicRule(
        **found,
        classes_=source.classes_,
        value=best.value,
        mixture_value=game.value(mixture),
        checks=tuple(answers.checks(source.goals_, np.eye(1, n_models, best.place)[0])),
        source=source,
    )


def _best(game: Game, selection: Selection, oddness: AnyArray) -> _Candidate:
    """Return the best of the rules that the columns of the losses stand for; of equals the least odd."""
    values = game.single_values()
    errors = np.average(selection.losses, axis=0, weights=selection.sample_weight)
    ranks = np.column_stack([game.violations(), values, errors]).round(_SAME)
    place = int(np.lexsort((oddness, *ranks.T[::-1]))[0])
    violation, risk, error = ranks[place].tolist()
    return _Candidate((violation, risk, error), float(values[place]), place)


def _thresholds(answers: Answers, mixture: FloatArray) -> FloatArray:
    """Return thresholds between the shares of the mixture that say yes to a row of any dataset.

    Each lies in the middle of a gap, so that shares added up in another order fall on the same side of it. Where there
    is no gap it is one half, less what rounding may take from it.
    """
    shares = {name: np.sort(_shares(bits, mixture)) for name, bits in answers.positives.items()}
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


def _voting_selection(selection: Selection, votes: Answers, source: Any) -> Selection:
    assert votes.positive is not None  # noqa: S101 - there are votes
    bits = votes.positives[TRAIN]
    said = np.unpackbits(bits.packed, axis=1, bitorder="little", count=bits.n_models)
    is_positive = votes.tables[TRAIN].y == votes.positive.labels[1]
    losses = said ^ is_positive[:, None].astype(np.uint8)
    aim = source.objective_
    rate = None if selection.rate is None else votes.rate_row(aim)
    return selection._replace(losses=losses, goals=votes.goal_rows(source.goals_), rate=rate)
