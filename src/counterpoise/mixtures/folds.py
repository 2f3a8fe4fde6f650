"""Strong models that tell scores of rows which they were not trained on: one for each fold of the rows.

A strong model is sure of the rows it has seen, so rules chosen on its scores there would not do what they promise on
others. Here the rows are split into folds, a model is trained on the rows outside of each, and scores those inside.
"""

from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold

from counterpoise._base.checks import check_count, is_frame
from counterpoise._base.shards import in_threads
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.learners.resampling import Resampled, fresh_copy, weight_argument
from counterpoise.mixtures.answers import Positive
from counterpoise.mixtures.pool import Pool
from counterpoise.mixtures.rows import n_rows, take_rows

Split = tuple[IntArray, IntArray]  # rows to train on, rows to score
_LEAST_FOLDS = 2
_PAIR = 2  # of rows
AUTO = "auto"
# Five folds and the mean log-odds of their models err less often than a model trained on all rows, and that less often
# than a model of a fold, and meet goals as well: docs/results/deciding_model shows on which sets and sizes.
_FOLDS = 5


def unheard(_title: str) -> None:
    """Tell nobody."""


class Training(NamedTuple):
    """What models are trained on."""

    titled: dict[str, Any]  # unfitted models by what messages call them
    X: Any
    labels: AnyArray
    weights: FloatArray | None
    positive: Positive
    n_jobs: int | None
    heard: Callable[[str], None]  # called with the name of each model that is trained

    def whole(self, titles: Iterable[str], seed: int) -> list[Any]:
        """Return some models trained on all rows."""
        every = np.arange(self.labels.size)
        return in_threads(_trained, ((self, title, every, seed) for title in titles), self.n_jobs)

    def crossed(self, splits: list[Split], seed: int) -> tuple[FloatArray, list[list[Any]]]:
        """Return the scores of the rows inside of each fold by models trained on the rows outside of it, and these.

        Scores have the shape (n_rows, n_models), of more than two classes (n_rows, n_models, n_classes). Of each model
        the ones of all folds are a list.
        """
        seeds = np.random.default_rng(seed).integers(2**31, size=len(splits)).tolist()
        tasks = [(title, split, one) for split, one in zip(splits, seeds, strict=True) for title in self.titled]
        found = in_threads(_crossed, ((self, *task) for task in tasks), self.n_jobs)
        n_models = len(self.titled)
        scores = np.empty((self.labels.size, n_models, *found[0][1].shape[1:]), order="F")
        for place, ((_, (_, inside), _), (_, told)) in enumerate(zip(tasks, found, strict=True)):
            scores[inside, place % n_models] = told
        return scores, [[model for model, _ in found[place::n_models]] for place in range(n_models)]


def _crossed(training: Training, title: str, split: Split, seed: int) -> tuple[Any, FloatArray]:
    """Return a model trained on some rows, and its scores of others."""
    outside, inside = split
    model = _trained(training, title, outside, seed)
    (member,) = Pool.of({title: model}, training.positive, None).members
    return model, member.ask(take_rows(training.X, inside))


def _trained(training: Training, title: str, rows: IntArray, seed: int) -> Any:
    every = rows.size == training.labels.size
    X, labels = (training.X, training.labels) if every else (take_rows(training.X, rows), training.labels[rows])
    weights = None if training.weights is None else training.weights[rows]
    model = trained_copy(training.titled[title], X, labels, weights, seed)
    training.heard(title)
    return model


def trained_copy(model: Any, X: Any, labels: AnyArray, weights: FloatArray | None, seed: int) -> Any:
    """Train a copy of a model; one that takes no weights is trained on rows drawn by them.

    Random states that are not set are set from the seed.
    """
    model = fresh_copy(model, seed, only_unset=True)
    if weights is None:
        return model.fit(X, labels)
    model = model if weight_argument(model) else Resampled(model, random_state=seed)
    return model.fit(X, labels, **{str(weight_argument(model)): weights})


def check_cv(cv: Any) -> None:
    """Refuse what names no folds, before rows are known."""
    if isinstance(cv, Integral):
        check_count(cv, "cv", _LEAST_FOLDS)
    elif isinstance(cv, str) and cv == AUTO:
        return
    elif isinstance(cv, str | bytes) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise TypeError(
            "cv must be 'auto', a number of folds, a splitter of scikit-learn, a list of pairs of rows to train on and "
            f"rows to score, or 'prefit' for models that are fitted; got {cv!r}."
        )


def splits_of(cv: Any, X: Any, labels: AnyArray, seed: int) -> list[Split]:
    """Return the rows outside and inside of each fold.

    Parameters
    ----------
    cv : int, "auto", splitter of scikit-learn, or iterable of pairs of arrays
        A number: so many folds, drawn at random with every class spread evenly over them. "auto": five,
        or as many as the rarest class has rows.
    X, labels : the rows
    seed : of folds that are drawn
    """
    check_cv(cv)
    if isinstance(cv, str):
        cv = _suitable_folds(labels)
    if isinstance(cv, Integral):
        return _even_splits(int(cv), labels, seed)
    found = cv.split(np.empty(n_rows(X)), labels) if hasattr(cv, "split") else cv
    splits = [_as_split(number, parts, labels.size) for number, parts in enumerate(found)]
    _check_splits(splits, labels)
    return splits


def _as_split(number: int, parts: Any, n_samples: int) -> Split:
    """Return what ``cv`` gives of a fold as the numbers of rows, after checking that they are some."""
    given = [np.asarray(part) for part in parts] if isinstance(parts, Iterable) else []
    if len(given) != _PAIR or any(part.size and part.dtype.kind not in "iu" for part in given):
        raise _no_split(number, f"is {parts!r:.60}", n_samples)
    outside, inside = (part.astype(np.int64) for part in given)
    both = np.append(outside, inside)
    far = both[(both < 0) | (both >= n_samples)]
    if far.size:
        raise _no_split(number, f"names the row {far[0]}", n_samples)
    return outside, inside


def _no_split(number: int, got: str, n_samples: int) -> ValueError:
    return ValueError(
        f"cv must list pairs of rows to train on and rows to score, by their numbers from 0 to {n_samples - 1}; fold "
        f"{number} {got}."
    )


def _suitable_folds(labels: AnyArray) -> int:
    """Return how many folds "auto" stands for: never more than the rarest class has rows."""
    rarest = int(np.unique(labels, return_counts=True)[1].min())
    return max(min(_FOLDS, rarest), _LEAST_FOLDS)


def averages_folds(cv: Any, scores: FloatArray, models: list[Any]) -> bool:
    """Tell whether models of folds decide together: with "auto", where their probabilities have finite log-odds."""
    has_probabilities = all(hasattr(model, "predict_proba") for model in models)
    return isinstance(cv, str) and has_probabilities and bool(scores.min() > 0 and scores.max() < 1)


def _even_splits(n_folds: int, labels: AnyArray, seed: int) -> list[Split]:
    classes, sizes = np.unique(labels, return_counts=True)
    rare = int(sizes.argmin())
    if sizes[rare] < n_folds:
        raise ValueError(
            f"cv={n_folds} needs at least {n_folds} rows of each class, one for each fold; class "
            f"{classes.tolist()[rare]!r} has {sizes[rare]} of {labels.size} samples. Give more rows"
            f"{', or a smaller cv' if sizes[rare] >= _LEAST_FOLDS else ''}."
        )
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.empty(labels.size), labels))


def _check_splits(splits: list[Split], labels: AnyArray) -> None:
    """Check that each row is scored once, by models that saw both classes and not the row."""
    if len(splits) < _LEAST_FOLDS:
        raise ValueError(f"cv must make at least {_LEAST_FOLDS} folds; got {len(splits)}.")
    times = np.bincount(np.concatenate([inside for _, inside in splits]), minlength=labels.size)
    odd = np.flatnonzero(times != 1)
    if odd.size:
        raise ValueError(
            f"cv must score each of the {labels.size} rows once, as KFold does; row {odd[0]} is scored "
            f"{times[odd[0]]} times. For rows to choose on that are no folds pass X_val and y_val."
        )
    for number, (outside, inside) in enumerate(splits):
        if np.intersect1d(outside, inside).size:
            raise ValueError(f"Fold {number} of cv scores rows that its models are trained on.")
        if np.unique(labels[outside]).size < 2:  # noqa: PLR2004 - classes
            raise ValueError(f"The rows outside of fold {number} of cv hold one class only; models need two.")


def texts_in(X: Any) -> list[str]:
    """Return the columns of a data frame that hold texts and are no categories."""
    if not is_frame(X) or not hasattr(X, "columns"):
        return []
    kinds = {str(name): str(X[name].dtype).lower() for name in X.columns}
    return [name for name, kind in kinds.items() if kind in ("object", "str", "string")]
