"""What all boosters do with their input: check it once, weigh it, set part of it aside."""

import math
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from counterpoise._base.checks import check_choice, check_random_state, is_frame, refuse_texts
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.boosting.learner import base_learner, default_tree
from counterpoise.boosting.stopping import AUTO, Stopping, stopping_of
from counterpoise.goals import Table
from counterpoise.learners.resampling import may_take_missing
from counterpoise.mixtures.pool import PooledClassifier, n_rows, take_rows
from counterpoise.mixtures.rows import groups_of

_WEIGHTLESS = 1e-300  # part of the largest weight: nothing can be divided by what is lighter


class Rows(NamedTuple):
    """Checked samples: features as the learner wants them, class codes, weights on the simplex, groups."""

    X: Any
    codes: IntArray
    weights: FloatArray
    groups: IntArray | None
    places: IntArray | None = None  # of the samples among those given, where some were left out


class Booster(PooledClassifier):
    """A classifier that fits base models in rounds.

    A subclass has parameters ``estimator``, ``stopping`` and ``callbacks``, and sets ``_seeds`` before it splits.
    """

    default_stopping: ClassVar[Stopping] = Stopping()  # that stopping=None asks for
    _takes_auto_fraction: ClassVar[bool] = False  # of samples to hold out, by how many there are

    def stored_state(self) -> dict[str, Any]:
        """Return what ``save`` stores: no callbacks, which belong to one fit."""
        state: Any = self.__getstate__()
        return {**state, "callbacks": ()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learner = self._base_learner()
        tags.input_tags.sparse = get_tags(learner).input_tags.sparse
        tags.input_tags.allow_nan = may_take_missing(learner)
        tags.input_tags.three_d_array = get_tags(learner).input_tags.three_d_array  # or more, as images
        return tags

    def _base_learner(self) -> Any:
        return base_learner(self.estimator)

    def _learner_for(self, n_samples: int) -> Any:
        """Return the base learner for so many samples, on which the default one depends."""
        return default_tree(n_samples) if self.estimator is None else self._base_learner()

    def _input_dtype(self) -> str | None:
        return "numeric" if hasattr(self._base_learner(), "fit_codes") else None

    def _check_stopping(self) -> None:
        if stopping_of(self).validation_fraction == AUTO and not self._takes_auto_fraction:
            raise ValueError(
                f"validation_fraction='auto' is for DROBoostClassifier; {type(self).__name__} takes a number in "
                "(0, 1), or None to set no samples aside."
            )

    def _check_callbacks(self) -> None:
        given = self.callbacks
        if not isinstance(given, Iterable) or not all(map(callable, given)):
            raise TypeError(f"callbacks must be a sequence of functions of a Round, () for none; got {given!r}.")

    def _check_rows(self, X: Any, y: Any, sample_weight: Any, sensitive_features: Any) -> Rows:
        self._check_callbacks()
        X, y = self._check_training_input(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:  # noqa: PLR2004
            raise ValueError(
                f"y must hold at least two classes to tell apart; got one class only: {self.classes_.tolist()[0]!r}."
            )
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.max() > 0:
            raise ValueError("sample_weight must have at least one weight above zero; got zeros only.")
        weights = weights / weights.max()  # so that sums of weights of any size stay finite
        groups = None if sensitive_features is None else groups_of(sensitive_features, codes.size)[0]
        return self._weighted_rows(X, codes.astype(np.int64), weights, groups)

    def _check_training_input(self, X: Any, y: Any) -> tuple[Any, AnyArray]:
        if is_frame(X):  # left as it is: pipelines choose columns by name
            if self._input_dtype() == "numeric":
                refuse_texts(X, self)
            validate_data(self, X, skip_check_array=True)
            y = column_or_1d(y, warn=True)
            if len(y) != len(X):
                raise ValueError(f"y must hold one label for each of the {len(X)} rows of X; got {len(y)}.")
        else:
            tags = self.__sklearn_tags__().input_tags
            X, y = validate_data(
                self,
                X,
                y,
                accept_sparse="csr" if tags.sparse else False,
                dtype=self._input_dtype(),
                ensure_all_finite="allow-nan" if tags.allow_nan else True,
                allow_nd=tags.three_d_array,
            )
        check_classification_targets(y)
        return X, np.asarray(y)

    def _weighted_rows(self, X: Any, codes: IntArray, weights: FloatArray, groups: IntArray | None) -> Rows:
        """Leave out samples of weight zero, so that they cannot matter to any learner."""
        live = weights > _WEIGHTLESS
        if not live.all():
            X, codes, weights = take_rows(X, np.flatnonzero(live)), codes[live], weights[live]
            groups = None if groups is None else np.unique(groups[live], return_inverse=True)[1]
        lost = self._absent_class(codes)
        if lost is not None:
            raise ValueError(f"Every sample of the class {lost!r} has a weight of zero, or next to zero.")
        return Rows(X, codes, weights / weights.sum(), groups, np.flatnonzero(live))

    def _with_validation(
        self, rows: Rows, X_val: Any, y_val: Any, sensitive_features_val: Any
    ) -> tuple[Rows, Rows | None]:
        """Return the training rows, and those on which the mixture is chosen where they are others."""
        if X_val is not None or y_val is not None:
            if X_val is None or y_val is None:
                raise ValueError("X_val and y_val go together; got one of them only.")
            X_val = self._check_predict_input(X_val)
            codes = self._codes_of(y_val, n_rows(X_val))
            self._check_all_classes(codes, "y_val")
            groups = None
            if sensitive_features_val is not None:
                groups = groups_of(sensitive_features_val, codes.size)[0]
            elif self._mixes_groups():
                raise ValueError(
                    "X_val needs sensitive_features_val: the mixture is chosen for the worst of its groups."
                )
            return rows, Rows(X_val, codes, np.full(codes.size, 1 / codes.size), groups)
        fraction = self._fraction_aside(rows)
        return (rows, None) if fraction is None else self._split(rows, fraction)

    def _fraction_aside(self, rows: Rows) -> float | None:  # noqa: ARG002 - some choose it by the samples
        fraction = stopping_of(self).validation_fraction
        return None if fraction is None else float(fraction)

    def _split(self, rows: Rows, fraction: float) -> tuple[Rows, Rows]:
        counts = np.bincount(rows.codes)
        if counts.min() < 2:  # noqa: PLR2004
            rare = self.classes_.tolist()[counts.argmin()]
            raise ValueError(
                f"validation_fraction={fraction} needs two samples of each class at least, one for "
                f"either part; the class {rare!r} has one. Pass X_val and y_val instead."
            )
        n_aside = math.ceil(fraction * rows.codes.size)
        n_least = min(n_aside, rows.codes.size - n_aside)
        if n_least < len(self.classes_):
            raise ValueError(self._bad_split(rows, fraction, n_aside, "."))
        seed = int(self._seeds.generate_state(1)[0])
        parts = train_test_split(np.arange(rows.codes.size), test_size=n_aside, random_state=seed, stratify=rows.codes)
        for part, where in zip(parts, ("left to train on", "set aside"), strict=True):
            absent = self._absent_class(rows.codes[part])
            if absent is not None:
                lack = f": there is none of the class {absent!r} {where}."
                raise ValueError(self._bad_split(rows, fraction, n_aside, lack))
        return part_of(rows, parts[0]), part_of(rows, parts[1])

    def _bad_split(self, rows: Rows, fraction: float, n_aside: int, what: str) -> str:
        n_samples = rows.codes.size
        return (
            f"validation_fraction={fraction} of {n_samples} samples sets {n_aside} aside and leaves "
            f"{n_samples - n_aside}, but either part needs a sample of each of the {len(self.classes_)} classes{what} "
            "Choose another fraction, or pass X_val and y_val instead."
        )

    def _absent_class(self, codes: IntArray) -> Any:
        """Return a class of which there is no sample, None where there is one of each."""
        absent = np.setdiff1d(np.arange(len(self.classes_)), codes)
        return self.classes_.tolist()[absent[0]] if absent.size else None

    def _check_all_classes(self, codes: IntArray, name: str) -> None:
        absent = self._absent_class(codes)
        if absent is not None:
            raise ValueError(
                f"{name} must hold every class, or what is chosen on it would be chosen blindly for some; "
                f"it has no sample of the class {absent!r}."
            )

    def _mixes_groups(self) -> bool:
        return False

    def _round_seed(self, number: int) -> int:
        """Return the seed of a round, which does not depend on how many rounds there are."""
        return int(np.random.SeedSequence(self._seeds.entropy, spawn_key=(number,)).generate_state(1)[0]) >> 1


def is_word(value: Any, name: str, words: tuple[str, ...]) -> bool:
    """Tell whether a parameter that may be a number is one of the words, and refuse other words."""
    if isinstance(value, str):
        check_choice(value, f"{name}, where it is a word,", words)
    return isinstance(value, str)


def part_of(rows: Rows, part: AnyArray) -> Rows:
    """Return some of the rows, with weights that sum to 1 again."""
    weights = rows.weights[part]
    groups = None if rows.groups is None else np.unique(rows.groups[part], return_inverse=True)[1]
    places = part if rows.places is None else rows.places[part]
    return Rows(take_rows(rows.X, part), rows.codes[part], weights / weights.sum(), groups, places)


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Return seeds for rounds and splits: from the system if None, else determined by the random state."""
    check_random_state(random_state)
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31)))
    return np.random.SeedSequence(random_state)


def goal_table(
    X: Any,
    y: Any,
    sensitive_features: Any,
    table: Table | None,
    baseline: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    largest_weight: float | None = None,
) -> Table:
    """Return what goals may ask: a table, or columns, those of X where they have names, and a limit on weights."""
    if table is not None:
        if table.n_samples != len(np.asarray(y)):
            raise ValueError(f"table must hold a row for each of the {len(np.asarray(y))} samples; got {table!r}.")
        return table.beside(sensitive_features, baseline)
    features = X if is_frame(X) else np.empty((len(np.asarray(y)), 0))
    weights = None if largest_weight is None else sample_weight
    return Table(features, None, sensitive_features, baseline, sample_weight=weights, largest_weight=largest_weight)


def unequal(weights: AnyArray) -> AnyArray | None:
    """Return the weights, or None where all are the same."""
    return None if np.ptp(weights) == 0 else weights
