"""What all boosters do with their input: check it once, weigh it, set part of it aside, draw seeds."""

import math
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    check_array,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from counterpoise._base.checks import check_choice, check_random_state, refuse_texts
from counterpoise._base.frames import as_array, is_frame, take_rows
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.boosting.stopping import AUTO, Stopping, stopping_of
from counterpoise.learners.resampling import may_take_missing
from counterpoise.rules.rows import groups_of, label_codes, n_rows

AUTO_FRACTION = 0.2  # that validation_fraction="auto" holds out ...
_ENOUGH, _ENOUGH_OF_A_CLASS = 500, 10  # ... where there are so many samples
_WEIGHTLESS = 1e-300  # part of the largest weight: nothing can be divided by what is lighter


class CheckedRows(NamedTuple):
    """Checked samples: features as the learner wants them, class codes, weights on the simplex, groups."""

    X: Any
    codes: IntArray
    weights: FloatArray
    groups: IntArray | None
    places: IntArray | None = None  # of the samples among those given, where some were left out

    def only(self, part: AnyArray) -> "CheckedRows":
        """Return some of the rows, with weights that sum to 1 again."""
        weights = self.weights[part]
        groups = None if self.groups is None else np.unique(self.groups[part], return_inverse=True)[1]
        places = part if self.places is None else self.places[part]
        return CheckedRows(take_rows(self.X, part), self.codes[part], weights / weights.sum(), groups, places)


def set_learner_tags(tags: Any, learner: Any) -> Any:
    """Let a booster take the input that its base learner takes, and return its tags."""
    own = get_tags(learner).input_tags
    tags.input_tags.sparse, tags.input_tags.three_d_array = own.sparse, own.three_d_array  # or more, as images
    tags.input_tags.allow_nan = may_take_missing(learner)
    return tags


def _ways_to_check(estimator: Any, learner: Any) -> dict[str, Any]:
    """Return how arrays are checked: those for our own learners must hold numbers, others see to it themselves."""
    tags = get_tags(estimator).input_tags
    return {
        "accept_sparse": "csr" if tags.sparse else False,
        "dtype": "numeric" if hasattr(learner, "fit_codes") else None,
        "ensure_all_finite": "allow-nan" if tags.allow_nan else True,
        "allow_nd": tags.three_d_array,
    }


def training_rows(
    estimator: Any, learner: Any, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None
) -> tuple[AnyArray, CheckedRows]:
    """Return the classes, and the rows to train on after checking them; the estimator learns its features' names.

    Samples of weight zero are left out, so that they cannot matter to any learner. A data frame is left as it is:
    pipelines choose columns by name.
    """
    if is_frame(X):
        if hasattr(learner, "fit_codes"):
            refuse_texts(X, estimator)
        validate_data(estimator, X, skip_check_array=True)
        y = column_or_1d(as_array(y), warn=True)
        if len(y) != len(X):
            raise ValueError(f"y must hold one label for each of the {len(X)} rows of X; got {len(y)}.")
    else:
        X, y = validate_data(estimator, X, y, **_ways_to_check(estimator, learner))
    check_classification_targets(y)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) < 2:  # noqa: PLR2004
        only = classes.tolist()[0]
        raise ValueError(f"y must hold at least two classes; got one class only: {only!r}.")
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.max() > 0:
        raise ValueError("sample_weight must have at least one weight above zero; got zeros only.")
    weights = weights / weights.max()  # so that sums of weights of any size stay finite
    groups = None if sensitive_features is None else groups_of(sensitive_features, codes.size)[0]
    live = weights > _WEIGHTLESS
    if not live.all():
        X, codes, weights = take_rows(X, np.flatnonzero(live)), codes[live], weights[live]
        groups = None if groups is None else np.unique(groups[live], return_inverse=True)[1]
    lost = _absent_class(codes, classes)
    if lost is not None:
        raise ValueError(f"All samples of the class {lost!r} have weights of about 0. Raise them, or drop the class.")
    return classes, CheckedRows(X, codes.astype(np.int64), weights / weights.sum(), groups, np.flatnonzero(live))


def check_predict_input(estimator: Any, learner: Any, X: Any) -> Any:
    """Return rows to decide about as the models take them, after comparing them with those of ``fit``."""
    check_is_fitted(estimator, "classes_")
    _check_feature_names(estimator, X, reset=False)
    if not is_frame(X) or hasattr(learner, "fit_codes"):
        X = check_array(X, estimator=estimator, **_ways_to_check(estimator, learner))
    _check_n_features(estimator, X, reset=False)
    return X


def split_rows(
    estimator: Any, learner: Any, rows: CheckedRows, X_val: Any, y_val: Any, sensitive: Any = None, *, entropy: int
) -> tuple[CheckedRows, CheckedRows | None]:
    """Return the rows to train on and the held-out rows, which were passed or are set aside by ``stopping``."""
    if X_val is None and y_val is None:
        return _set_aside(rows, estimator.classes_, stopping_of(estimator), entropy)
    if X_val is None or y_val is None:
        raise ValueError("X_val and y_val go together; got one of them only.")
    X, classes = check_predict_input(estimator, learner, X_val), estimator.classes_
    codes = label_codes(y_val, n_rows(X), classes)
    absent = _absent_class(codes, classes)
    if absent is not None:
        raise ValueError(
            f"y_val must hold samples of every class; it has none of the class {absent!r}. Add some, or leave X_val "
            "and y_val out."
        )
    groups = None if sensitive is None else groups_of(sensitive, codes.size)[0]
    return rows, CheckedRows(X, codes, np.full(codes.size, 1 / codes.size), groups)


def _set_aside(
    rows: CheckedRows, classes: AnyArray, stopping: Stopping, entropy: int
) -> tuple[CheckedRows, CheckedRows | None]:
    """Return the rows to train on, and those that ``stopping`` holds out, where it does."""
    fraction, n_samples, counts = stopping.validation_fraction, rows.codes.size, np.bincount(rows.codes)
    if fraction == AUTO:
        is_enough = n_samples >= _ENOUGH and counts.min() >= _ENOUGH_OF_A_CLASS
        fraction = AUTO_FRACTION if is_enough and stopping.patience is not None else None
    if fraction is None:
        return rows, None
    fraction = float(fraction)
    if counts.min() < 2:  # noqa: PLR2004
        raise ValueError(
            f"validation_fraction={fraction} needs two samples of each class at least, one for "
            f"either part; the class {classes.tolist()[counts.argmin()]!r} has one. Pass X_val and y_val instead."
        )
    n_aside = math.ceil(fraction * n_samples)
    lack = "." if min(n_aside, n_samples - n_aside) < len(classes) else ""
    if not lack:
        seed = int(np.random.SeedSequence(entropy).generate_state(1)[0])
        parts = train_test_split(np.arange(n_samples), test_size=n_aside, random_state=seed, stratify=rows.codes)
        for part, where in zip(parts, ("left to train on", "set aside"), strict=True):
            absent = _absent_class(rows.codes[part], classes)
            if absent is not None and not lack:
                lack = f": there is none of the class {absent!r} {where}."
    if lack:
        raise ValueError(
            f"validation_fraction={fraction} of {n_samples} samples sets {n_aside} aside and leaves "
            f"{n_samples - n_aside}, but either part needs a sample of each of the {len(classes)} classes{lack} "
            "Choose another fraction, or pass X_val and y_val instead."
        )
    return rows.only(parts[0]), rows.only(parts[1])


def _absent_class(codes: IntArray, classes: AnyArray) -> Any:
    """Return a class of which there is no sample, None where there is one of each."""
    absent = np.setdiff1d(np.arange(len(classes)), codes)
    return classes.tolist()[absent[0]] if absent.size else None


def is_word(value: Any, name: str, words: tuple[str, ...]) -> bool:
    """Return whether a parameter that may be a number is one of the words, and refuse other words."""
    if isinstance(value, str):
        check_choice(value, f"{name}, where it is a word,", words)
    return isinstance(value, str)


def draw_entropy(random_state: Any) -> int:
    """Return what the seeds of rounds and splits come from: the system if None, else the random state."""
    check_random_state(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return int(cast("int", np.random.SeedSequence(random_state).entropy))


def round_seed(entropy: int, number: int) -> int:
    """Return the seed of a round, which does not depend on how many rounds there are."""
    return int(np.random.SeedSequence(entropy, spawn_key=(number,)).generate_state(1)[0]) >> 1


def unequal(weights: AnyArray) -> AnyArray | None:
    """Return the weights, or None where all are the same."""
    return None if np.ptp(weights) == 0 else weights
