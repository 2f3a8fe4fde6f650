"""Class probabilities of the models on the rows of every dataset, calibrated on the selection rows.

Calibration has one temperature and a bias for each class: ``p ** (1 / temperature) * exp(bias)``, scaled to sum to 1.
These are the fewest numbers that correct a model that is too sure, or one trained to predict rare classes too often. A
calibration is used only where it predicts held-out rows better.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.goals import Table
from counterpoise.goals.binding import Tally, Views
from counterpoise.goals.terms import Dataset
from counterpoise.rules.choosing import PoolPredictions
from counterpoise.rules.class_scores.rules import TierRule
from counterpoise.rules.goal_rows import TRAIN, Answers, Positive
from counterpoise.rules.options import Deferral
from counterpoise.rules.scores.table import RuleGroups, only_rows

_LEAST = 1e-9  # a probability below this counts as this: a class that never occurred is not impossible
_N_FOLDS = 3
_MOST_ROWS = 8_000  # enough for so few numbers
_SURELY = 1.0  # standard errors by which held-out rows must be predicted better
_PULL = 1e-3  # towards no change, in units of the mean loss: a class without rows has no bias of its own


class Calibration(NamedTuple):
    """A temperature and biases that correct the class probabilities of a model."""

    temperature: float
    biases: FloatArray

    def __call__(self, probabilities: FloatArray) -> FloatArray:
        """Return the probabilities of rows, summing to one.

        Examples
        --------
        >>> import numpy as np
        >>> from counterpoise.rules.class_scores.table import Calibration
        >>> Calibration(2.0, np.zeros(2))(np.array([[0.9, 0.1]])).round(3).tolist()
        [[0.75, 0.25]]
        """
        if self.is_none:
            return probabilities
        return _softmax(_logs(probabilities) / self.temperature + self.biases)

    @property
    def is_none(self) -> bool:
        """Return whether it changes nothing."""
        return self.temperature == 1.0 and not self.biases.any()

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        if type(self.temperature) is not float or not self.temperature > 0 or not np.isfinite(self.biases).all():
            raise ValueError("its temperature or biases are out of range")


def no_calibration(n_classes: int) -> Calibration:
    """Return the calibration that changes nothing."""
    return Calibration(1.0, np.zeros(n_classes))


def fit_calibration(probabilities: FloatArray, codes: IntArray, mass: FloatArray) -> Calibration:
    """Return the calibration of least log loss on rows, or none where that predicts held-out rows no better.

    Parameters
    ----------
    probabilities : array of shape (n_rows, n_classes)
    codes : array of shape (n_rows,)
        The class of each row.
    mass : array of shape (n_rows,)
        Weights of the rows.
    """
    nothing, rows = no_calibration(probabilities.shape[1]), np.flatnonzero(mass > 0)
    if rows.size > _MOST_ROWS:
        rows = np.random.default_rng(0).permutation(rows)[:_MOST_ROWS]
    logs, codes, mass = _logs(probabilities[rows]), codes[rows], mass[rows]
    folds = np.random.default_rng(rows.size).permutation(rows.size) % _N_FOLDS
    gains = np.zeros(rows.size)
    for fold in range(_N_FOLDS):
        inside = folds == fold
        if not (0 < inside.sum() < rows.size):
            return nothing
        calibration = _minimize_log_loss(logs[~inside], codes[~inside], mass[~inside])
        losses = [_row_losses(logs[inside], codes[inside], one) for one in (nothing, calibration)]
        gains[inside] = losses[0] - losses[1]
    mean = np.average(gains, weights=mass)
    error = np.sqrt(mass**2 @ (gains - mean) ** 2) / mass.sum()
    return _minimize_log_loss(logs, codes, mass) if mean > _SURELY * error else nothing


def _minimize_log_loss(logs: FloatArray, codes: IntArray, mass: FloatArray) -> Calibration:
    """Return the calibration of least weighted log loss."""
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to import

    n_classes, share = logs.shape[1], mass / mass.sum()
    truth = np.zeros(logs.shape)
    truth[np.arange(len(codes)), codes] = share

    def loss(point: FloatArray) -> tuple[float, FloatArray]:
        raw = logs * point[0] + point[1:]
        probabilities = _softmax(raw)
        excess = probabilities * share[:, None] - truth
        value = -float((truth * np.log(np.maximum(probabilities, _LEAST))).sum())
        change = point - start
        slope = np.append((excess * logs).sum(), excess.sum(axis=0))
        return value + _PULL * float(change @ change), slope + 2 * _PULL * change

    start = np.append(1.0, np.zeros(n_classes))
    bounds: list[Any] = [(0.05, 20.0), *[(-10.0, 10.0)] * n_classes]
    solution = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 50})
    return Calibration(float(1.0 / solution.x[0]), np.asarray(solution.x[1:], dtype=np.float64))


def _row_losses(logs: FloatArray, codes: IntArray, one: Calibration) -> FloatArray:
    probabilities = _softmax(logs / one.temperature + one.biases)
    return np.asarray(-np.log(np.maximum(probabilities[np.arange(len(codes)), codes], _LEAST)))


def _logs(probabilities: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(probabilities, _LEAST)))


def _softmax(raw: FloatArray) -> FloatArray:
    powers = np.exp(raw - raw.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


_TABLE = 3  # dimensions: rows, models, classes
_ROUNDING = 1e-9  # by which shares may exceed 1


class ClassTable(NamedTuple):
    """Probabilities on the selection rows, the dataset ``train``, and on the rows of other datasets."""

    scores: dict[str, FloatArray]  # by dataset, (n_rows, n_models, n_classes), before calibration; train first
    answers: Answers  # the tables, without predictions
    sample_weight: FloatArray | None
    groups: IntArray | None  # of all sensitive features, for WorstGroup
    deferral: Deferral | None = None  # where rows may be deferred
    calibrations: tuple[Calibration, ...] | None = None  # of each model, once computed
    persons: IntArray | None = None  # the number of the person that each labelled row is of; None: each is another
    has_fold_scores: bool = False  # whether models of folds scored the labelled rows, and another one decides
    test_rows: IntArray | None = None  # labelled rows kept for a proof, which no model was trained on; None: any

    @property
    def positive(self) -> Positive:
        """Return the classes, with the label of deferral."""
        return self.answers.positive._replace(deferred=None if self.deferral is None else self.deferral.label)

    @property
    def codes(self) -> IntArray:
        """Return the class of each labelled row."""
        labels = self.answers.tables[TRAIN].y
        assert labels is not None  # noqa: S101 - selection rows are labelled
        return np.searchsorted(self.positive.classes, labels)

    @property
    def mass(self) -> FloatArray:
        """Return the weights of the labelled rows, of sum 1."""
        weights = self.answers.tables[TRAIN].weights()
        return np.asarray(weights / weights.sum())

    @property
    def n_models(self) -> int:
        """Return the number of models."""
        return int(self.scores[TRAIN].shape[1])

    def with_tables(self, tables: Mapping[str, Table]) -> Self:
        """Return the same probabilities with other tables for the same rows."""
        sizes = {name: len(part) for name, part in self.scores.items()}
        calibrations = None if TRAIN in tables else self.calibrations
        return self._replace(answers=self.answers.with_tables(tables, sizes), calibrations=calibrations)

    def with_dataset(self, name: str, table: Table, scores: FloatArray) -> Self:
        """Return the same probabilities with those of another dataset."""
        answers, calibrations = (
            self.answers.with_dataset(name, table, None),
            None if name == TRAIN else self.calibrations,
        )
        return self._replace(scores={**self.scores, name: scores}, answers=answers, calibrations=calibrations)

    def only(self, places: Mapping[str, IntArray]) -> Self:
        """Return some of the rows of each dataset, without calibrations: those would know the others."""
        return only_rows(self, places)._replace(calibrations=None)  # type: ignore[no-any-return]

    def first(self, n_models: int) -> Self:
        """Return the same rows with the probabilities of the first models only."""
        scores = {name: part[:, :n_models] for name, part in self.scores.items()}
        calibrations = None if self.calibrations is None else self.calibrations[:n_models]
        return self._replace(scores=scores, calibrations=calibrations)

    def with_calibrations(self) -> Self:
        """Return the same table with a calibration of each model on the selection rows."""
        if self.calibrations is not None:
            return self
        probabilities = self.scores[TRAIN].swapaxes(0, 1)
        return self._replace(calibrations=tuple(fit_calibration(one, self.codes, self.mass) for one in probabilities))

    def calibrated_scores(self, groups: RuleGroups, calibrations: tuple[Calibration, ...]) -> "CalibratedScores":
        """Return the calibrated probabilities, with the group of each row."""
        probabilities = {
            name: np.stack([one(part[:, model]) for model, one in enumerate(calibrations)])
            for name, part in self.scores.items()
        }
        n_classes, cost = len(self.positive.classes), None if self.deferral is None else self.deferral.loss
        shape = (len(groups.names), n_classes, n_classes + (cost is not None))
        codes = groups.codes_of_each(self.answers.tables)
        return CalibratedScores(self, groups, codes, probabilities, self.codes, self.mass, shape, cost)

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        if self.calibrations is not None and len(self.calibrations) != self.n_models:
            raise ValueError("its calibrations are not those of its models")
        if TRAIN not in self.scores or self.answers.positive.is_binary:
            raise ValueError("it lacks the probabilities of labelled rows of more than two classes")
        rows = [part for part in (self.sample_weight, self.groups, self.persons) if part is not None]
        if any(part.shape != (len(self.scores[TRAIN]),) for part in rows):
            raise ValueError("the weights and groups are not those of the probabilities")
        n_classes = len(self.positive.classes)
        for name, part in self.scores.items():
            shape = (self.answers.tables[name].n_samples, self.n_models, n_classes)
            if part.ndim != _TABLE or part.shape != shape or part.dtype != np.float64:
                raise ValueError(f"the probabilities on dataset {name!r} are of another shape")
            if not (np.isfinite(part).all() and (part >= 0).all()):
                raise ValueError(f"the probabilities on dataset {name!r} are none")


@dataclass(frozen=True)
class CalibratedScores:
    """Calibrated probabilities and groups of all rows, and often used arrays of the selection rows."""

    table: ClassTable
    groups: RuleGroups
    codes: dict[str, IntArray]  # the group of each row, by dataset
    probabilities: dict[str, FloatArray]  # by dataset, (n_models, n_rows, n_classes)
    labels: IntArray  # the class of each labelled row
    mass: FloatArray  # the weights of the labelled rows, of sum 1
    shape: tuple[int, int, int]  # of tensors by group, label and answer: a class, or deferral
    defer_cost: float | None  # the loss of a deferred row; None where no row is deferred

    def answer_shares(self, rule: TierRule) -> dict[str, FloatArray]:
        """Return the probability of each answer by a rule, for the rows of each dataset."""
        return {name: rule.answers(part[rule.model], self.codes[name]) for name, part in self.probabilities.items()}

    def losses(self, shares: FloatArray) -> FloatArray:
        """Return the loss of each selection row: the probability of an error, and the cost of deferral."""
        losses = 1.0 - shares[np.arange(len(shares)), self.labels]
        return np.asarray(losses if self.defer_cost is None else losses - (1.0 - self.defer_cost) * shares[:, -1])

    def answers(self, answers: list[dict[str, FloatArray]]) -> "SoftAnswers":
        """Return the answers of rules in the form that goals are evaluated on."""
        shares = {name: np.stack([one[name] for one in answers], axis=1) for name in self.probabilities}
        return SoftAnswers(self.table.answers.tables, {}, self.table.positive, shares_of_each=shares)

    def predictions_of(self, rules: list[TierRule]) -> PoolPredictions:
        """Return the predictions of rules on all datasets, as if each were a model."""
        answers = [self.answer_shares(rule) for rule in rules]
        losses: AnyArray = np.column_stack([self.losses(one[TRAIN]) for one in answers])
        return PoolPredictions(losses, self.table.sample_weight, self.table.groups, self.answers(answers))

    def label_answers(self) -> "LabelAnswers":
        """Return the artificial members whose counts turn goals into tensors."""
        return LabelAnswers(self.table.answers.tables, {}, self.table.positive, scores=self)

    def label_mass(self) -> FloatArray:
        """Return what the labelled rows of each group and label weigh, of sum 1, shape (n_groups, n_classes)."""
        mass = np.zeros(self.shape[:2])
        np.add.at(mass, (self.codes[TRAIN], self.labels), self.mass)
        return mass


@dataclass(frozen=True)
class SoftAnswers(Answers):
    """Answers of members that each draw: the probability of each class for each row."""

    shares_of_each: dict[str, FloatArray] = field(default_factory=dict)  # (n_rows, n_members, n_answers)

    @property
    def sizes(self) -> dict[str, int]:
        """Return the number of rows of each dataset."""
        return {name: len(part) for name, part in self.shares_of_each.items()}

    @property
    def pool_sizes(self) -> set[int]:
        """Return how many members the answers are of."""
        return {part.shape[1] for part in self.shares_of_each.values()}

    def counter(self, views: Views) -> Tally:
        """Return a function that sums the weight of the rows that each member predicts as a class, with a cache."""

        @cache
        def count(rows: Dataset, place: int) -> FloatArray:
            places, weights = views.rows(rows)
            return np.asarray(weights @ self.shares_of_each[rows.name][places, :, place])

        return count

    def shares(self, name: str, mixture: FloatArray) -> FloatArray:
        """Return the probability of each class under a mixture of the members, for each row of a dataset."""
        return np.asarray(np.einsum("imk,m->ik", self.shares_of_each[name], mixture))

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        for name, part in self.shares_of_each.items():
            if part.ndim != _TABLE or len(part) != self.tables[name].n_samples or part.dtype != np.float64:
                raise ValueError(f"the answers on dataset {name!r} are of another shape")
            if not ((part >= 0) & (part <= 1 + _ROUNDING)).all():
                raise ValueError(f"the answers on dataset {name!r} are no shares")


@dataclass(frozen=True)
class LabelAnswers(Answers):
    """Answers as if for each group, label and answer a member gave that answer there and none elsewhere.

    The last member gives none at all. Goals on these members are tensors by group, label and answer.
    """

    scores: CalibratedScores | None = None

    def counter(self, views: Views) -> Tally:
        """Return a function that sums the weight of the rows of each group and label, for one answer, with a cache."""
        scores = self.scores
        assert scores is not None  # noqa: S101 - made of rows
        shape, chances = scores.shape, {}  # of labels: 1 for the label of a labelled row, else its probability
        for name, probabilities in scores.probabilities.items():
            labels, n_classes = self.tables[name].y, shape[1]
            if labels is None:
                chances[name] = probabilities.mean(axis=0)
            else:
                own = np.searchsorted(self.positive.classes, labels)
                chances[name] = np.eye(n_classes)[np.minimum(own, n_classes - 1)]  # goals refuse other labels

        @cache
        def count(rows: Dataset, place: int) -> FloatArray:
            places, weights = views.rows(rows)
            sums, own = np.zeros(shape), weights[:, None] * chances[rows.name][places]
            np.add.at(sums[:, :, place], scores.codes[rows.name][places], own)
            return np.append(sums.ravel(), 0.0)

        return count
