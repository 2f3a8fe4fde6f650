"""Models of folds, and their scores of rows that they were not trained on.

A strong model is too sure of the rows it was trained on, so rules chosen on its scores there would not do on other rows
what they promise. Here the rows are split into folds; a model is trained on the rows outside of each fold and scores
those inside. The models of the folds then decide together by the mean of their log-odds, where these are finite.
"""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from counterpoise._base.checks import check_count
from counterpoise._base.frames import TEXT, check_lightgbm_columns, columns_of, kind_of, take_rows
from counterpoise._base.threads import in_threads
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.classifiers.fit_params import (
    EarlyStopping,
    Params,
    fit_stopping_early,
    kept_rounds,
    needs_codes,
    params_of_rows,
    share_to_stop_on,
    with_coded_eval_set,
    with_rounds,
)
from counterpoise.learners.resampling import Resampled, fresh_copy, weight_argument
from counterpoise.rules.goal_rows import Positive
from counterpoise.rules.pool import Pool
from counterpoise.rules.scores.table import log_odds

Split = tuple[IntArray, IntArray]  # rows to train on, rows to score
AUTO = "auto"
# Five folds and the mean log-odds of their models err less often than a model trained on all rows, and that less often
# than a model of a fold, and meet goals as well: see docs/results/what_did_not_help.md.
_FOLDS = 5
_LEAST_FOLDS = 2
_PAIR = 2  # of rows
# The spread of scores is measured with two more models of each fold that lack a quarter of its rows: training takes up
# to 2.5 times as long. With more rows there is little left to measure.
_PARTS = 4
MOST_MEASURED = 3000  # rows
_MIDDLE = 0.16, 0.84  # quantiles of scores: a standard deviation on both sides
_LEAST_SHARED = 0.01  # of the variance of scores
_EXTRAPOLATED = 10.0  # times the part of the rows that is left: by one over the number of rows it would be 3
_LEAST = 2.0**-60  # a probability below this counts as this: its logarithm stays finite


class Training(NamedTuple):
    """The models to train, and the rows to train them on."""

    models: dict[str, Any]  # unfitted, by their titles in messages
    X: Any
    labels: AnyArray
    weights: FloatArray | None
    positive: Positive
    rows: IntArray  # to train on; others are kept for tests
    n_jobs: int | None
    report: Callable[[str, str], None]  # called with the title of each model that is trained, and on which rows
    twins: tuple[Any, ...] = ()  # the features of the same rows, changed
    params: Mapping[str, Params] = {}
    persons: IntArray | None = None  # of the rows, by number, where some have several
    in_time: bool = False  # whether the rows are in the order of time
    measures_spread: bool = False  # whether to measure how much wider the scores of the models that decide spread

    def train(
        self, cv: Any, splits: list[Split], seeds: Iterator[int]
    ) -> tuple[list[Any], list[FloatArray], FloatArray]:
        """Return the models that decide, scores of rows inside of folds by models trained outside of them, and spreads.

        Scores have the shape (n_rows, n_models), of more than two classes (n_rows, n_models, n_classes): those of the
        rows, then those of their twins by the same models; none where there are no folds. The models of the folds
        decide together with ``cv="auto"``, where their probabilities have finite log-odds; others are trained once
        more, on all of them. A spread is how many times as far the scores of a model that decides lie from their middle
        on new rows; 1 where it is not measured.
        """
        models: dict[str, Any] = {}
        spreads = np.ones(len(self.models))
        scores: list[FloatArray] = []
        rounds: dict[str, int] = {}  # of models that stopped early: the mean over the folds
        config = get_config()  # of scikit-learn: threads have their own
        if splits:
            by_fold = np.random.default_rng(next(seeds)).integers(2**31, size=len(splits)).tolist()
            names = [f"fold {number} of {len(splits)}" for number in range(1, len(splits) + 1)]
            folds = list(zip(splits, by_fold, names, strict=True))
            tasks = [(self, config, title, *fold) for fold in folds for title in self.models]
            results = in_threads(_train_one, tasks, self.n_jobs)
            shape = self.labels.size, len(self.models), *results[0][1][0].shape[1:]
            scores = [np.full(shape, np.nan, order="F") for _ in results[0][1]]
            for place, title in enumerate(self.models):
                own, column = results[place :: len(self.models)], scores[0][:, place]
                kept = [n_kept for n_kept in (kept_rounds(model) for model, _ in own) if n_kept]
                rounds[title] = round(sum(kept) / len(kept)) if kept else 0
                for (_, inside), (_, fold_scores) in zip(splits, own, strict=True):
                    for part, one in zip(scores, fold_scores, strict=True):
                        part[inside, place] = one
                has_probabilities = all(hasattr(model, "predict_proba") for model, _ in own)
                if isinstance(cv, str) and has_probabilities and np.nanmin(column) > 0 and np.nanmax(column) < 1:
                    models[title] = AveragedClassifier([model for model, _ in own])
            if self.measures_spread:
                for place, fewer in enumerate(self._scores_of_fewer_rows(config, folds)):
                    as_line = log_odds if hasattr(results[place][0], "predict_proba") else np.asarray
                    n_averaged = len(splits) if list(self.models)[place] in models else None
                    left = 1.0 - sum(outside.size for outside, _ in splits) / (len(splits) * self.rows.size)
                    spreads[place] = spread_of_decider(as_line(scores[0][:, place]), as_line(fewer), n_averaged, left)
        every, seed = (self.rows, None), next(seeds)
        titles = [title for title in self.models if title not in models]
        last = [(self, config, title, every, seed, "all rows", rounds.get(title, 0)) for title in titles]
        retrained = in_threads(_train_one, last, self.n_jobs)
        models |= {title: model for title, (model, _) in zip(titles, retrained, strict=True)}
        return [models[title] for title in self.models], scores, spreads

    def _scores_of_fewer_rows(
        self, config: dict[str, Any], folds: list[tuple[Split, int, str]]
    ) -> Iterator[FloatArray]:
        """Yield scores of each model, (n_rows, 2), by two models of each fold that lack different quarters of its rows.

        None where the models cannot be trained on so few rows.
        """
        tasks, n_models = [], len(self.models)
        for (outside, inside), seed, name in folds:
            persons, labels = None if self.persons is None else self.persons[outside], self.labels[outside]
            try:
                quarters = splits_of(_PARTS, labels, seed, persons)[:_PAIR]
            except ValueError:  # a class has too few rows
                return
            for kept, _ in quarters:
                split = outside[kept], inside
                tasks += [(self, config, title, split, seed, f"{name}, fewer rows") for title in self.models]
        try:
            results = in_threads(_train_one, tasks, self.n_jobs)
        except ValueError:  # of a model, as of QuadraticDiscriminantAnalysis with fewer rows of a class than columns
            return
        for place in range(n_models):
            scores = np.full((self.labels.size, _PAIR), np.nan)
            for number, (_, (fewer, *_)) in enumerate(results[place::n_models]):
                (_, inside), _, _ = folds[number // _PAIR]
                scores[inside, number % _PAIR] = fewer
            yield scores


def spread_of_decider(scores: FloatArray, fewer: FloatArray, n_folds: int | None, left: float) -> float:
    """Return how many times as far scores of the deciding model lie from their middle as those of folds, on new rows.

    Parameters
    ----------
    scores : array of shape (n_rows,)
        By the models of the folds, log-odds where they are probabilities; NaN where there are none.
    fewer : array of shape (n_rows, 2)
        By two models each that were trained on different three quarters of the rows outside of the fold.
    n_folds : int or None
        How many models decide by their mean; None: a model of all rows does.
    left : float
        The part of the rows that the models of the folds lack.

    Notes
    -----
    The mean of several models is narrower than each, the more so the less they have in common: as much as two models of
    fewer rows. The scores of a model of all rows are wider, or narrower, by what more rows change. This is
    extrapolated by one over the number of rows, and three times as far, because models that interpolate change faster
    the more rows they have. Where they are not wider, at most what models have in common is left.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.classifiers.folds import spread_of_decider
    >>> fewer = np.random.default_rng(0).normal(size=(1000, 2))  # two models that have nothing in common
    >>> round(spread_of_decider(fewer[:, 0], fewer, n_folds=5, left=0.2), 1)
    0.5
    """
    is_scored = np.isfinite(scores)
    both, width, single = fewer[is_scored], _width(scores[is_scored]), _width(fewer[is_scored].ravel())
    if min(width, single) <= 0:
        return 1.0
    correlation = np.clip(2.0 * (_width(both.mean(axis=1)) / single) ** 2 - 1.0, _LEAST_SHARED, 1.0)
    if n_folds is not None:
        return float(np.sqrt((1.0 + (n_folds - 1.0) * correlation) / n_folds))
    extrapolated = float((width / single) ** (_EXTRAPOLATED * left))
    return extrapolated if extrapolated > 1.0 else min(extrapolated, float(np.sqrt(correlation)))


def _width(scores: FloatArray) -> float:
    low, high = np.quantile(scores, _MIDDLE)
    return float(high - low)


def _train_one(
    training: Training,
    config: dict[str, Any],
    title: str,
    split: tuple[IntArray, IntArray | None],
    seed: int,
    name: str,
    n_rounds: int = 0,
) -> tuple[Any, Any]:
    """Return a model trained on some rows, and its scores of others and of their twins, where there are any.

    It stops early on a part of the rows that it is trained on where ``eval_set`` is such a part, unless the number of
    rounds is known.
    """
    outside, inside = split
    started = time.monotonic()
    every = outside.size == training.labels.size
    X, labels = (training.X, training.labels) if every else (take_rows(training.X, outside), training.labels[outside])
    weights = None if training.weights is None else training.weights[outside]
    unfitted, params = training.models[title], params_of_rows(training.X, training.params.get(title, {}), outside)
    share = share_to_stop_on(unfitted, params)
    stopping = None
    if share is not None and not n_rounds:
        persons = None if training.persons is None else training.persons[outside]
        stopping = EarlyStopping(share, persons, training.in_time).rows(labels, seed)
    elif share is not None:
        unfitted, params = with_rounds(clone(unfitted), params, n_rounds)
    with config_context(**config):
        model = trained_copy(unfitted, X, labels, weights, seed, params, stopping, training.positive.classes)
    training.report(title, f"{name} in {time.monotonic() - started:.1f} s")
    if inside is None:
        return model, None
    (member,) = Pool.of({title: model}, training.positive, None).members
    return model, [member.ask(take_rows(X, inside)) for X in (training.X, *training.twins)]


def trained_copy(
    model: Any,
    X: Any,
    labels: AnyArray,
    weights: FloatArray | None,
    seed: int,
    params: Params | None = None,
    stopping_rows: IntArray | None = None,
    classes: AnyArray | None = None,
) -> Any:
    """Train a copy of a model; one that takes no weights is trained on rows drawn by them.

    Random states that are not set are set from the seed. ``params`` are other arguments of ``fit``, ``stopping_rows``
    the rows to stop early on. Models that take codes alone get the places of labels among the sorted classes.
    """
    check_lightgbm_columns(model, X)
    model, params = fresh_copy(model, seed, only_unset=True), params or {}
    if needs_codes(model) or stopping_rows is not None:  # LightGBM compares its eval_y with codes
        classes = np.unique(labels) if classes is None else classes
        labels, params = np.searchsorted(classes, labels), with_coded_eval_set(model, params, classes)
    if stopping_rows is not None:
        return fit_stopping_early(model, X, labels, weights, params, stopping_rows)
    if weights is None:
        return model.fit(X, labels, **params)
    model = model if weight_argument(model) else Resampled(model, random_state=seed)
    return model.fit(X, labels, **{str(weight_argument(model)): weights}, **params)


def check_cv(cv: Any) -> None:
    """Raise an error if ``cv`` describes no folds; rows are not needed."""
    if isinstance(cv, Integral):
        check_count(cv, "cv", _LEAST_FOLDS)
    elif isinstance(cv, str) and cv == AUTO:
        return
    elif isinstance(cv, str | bytes) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise TypeError(
            "cv must be 'auto', a number of folds, a splitter of scikit-learn, a list of pairs of rows to train on and "
            f"rows to score, or 'prefit' for models that are fitted; got {cv!r}."
        )


def splits_of(cv: Any, labels: AnyArray, seed: int, persons: IntArray | None = None) -> list[Split]:
    """Return the rows outside and inside of each fold.

    Parameters
    ----------
    cv : int, "auto", splitter of scikit-learn, or iterable of pairs of arrays
        A number: so many folds, drawn at random with every class spread evenly over them. "auto": five,
        or as many as the rarest class has rows.
    labels : of the rows
    seed : of folds that are drawn
    persons : of the rows, by number, where some have several: folds keep them together
    """
    check_cv(cv)
    features = np.empty(labels.size)  # which splitters ignore
    if not isinstance(cv, str | Integral):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The groups parameter is ignored")  # such folds are checked below
            pairs = list(cv.split(features, labels, persons) if hasattr(cv, "split") else cv)
        splits = [_as_split(number, parts, labels.size) for number, parts in enumerate(pairs)]
        if persons is not None:
            _check_persons(splits, persons)
        return _checked_splits(splits, labels)
    classes, sizes = np.unique(labels, return_counts=True)
    rare = int(sizes.argmin())
    n_folds = max(min(_FOLDS, int(sizes[rare])), _LEAST_FOLDS) if isinstance(cv, str) else int(cv)
    if sizes[rare] < n_folds:
        raise ValueError(
            f"cv={n_folds} needs at least {n_folds} rows of each class, one for each fold; class "
            f"{classes.tolist()[rare]!r} has {sizes[rare]} of {labels.size} samples. Give more rows"
            f"{', or a smaller cv' if sizes[rare] >= _LEAST_FOLDS else ''}."
        )
    if persons is not None:
        return list(StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed).split(features, labels, persons))
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(features, labels))


def _check_persons(splits: list[Split], persons: IntArray) -> None:
    """Refuse folds that score a person by models trained on other rows of that person, unless those are earlier."""
    for number, (outside, inside) in enumerate(splits):
        is_later = bool(outside.size and inside.size and outside.max() < inside.min())
        if not is_later and np.intersect1d(persons[outside], persons[inside]).size:
            raise ValueError(
                f"Fold {number} of cv has rows of one person both inside and outside, so scores would be too good. "
                "Pass cv='auto', a number of folds, or a splitter that keeps groups together, such as GroupKFold."
            )


def _as_split(number: int, parts: Any, n_samples: int) -> Split:
    """Return one split of ``cv`` as arrays of row numbers, after checking them."""
    arrays, got = [np.asarray(part) for part in parts] if isinstance(parts, Iterable) else [], f"is {parts!r:.60}"
    if len(arrays) == _PAIR and all(not part.size or part.dtype.kind in "iu" for part in arrays):
        outside, inside = (part.astype(np.int64) for part in arrays)
        rows = np.append(outside, inside)
        far = rows[(rows < 0) | (rows >= n_samples)]
        if not far.size:
            return outside, inside
        got = f"names the row {far[0]}"
    raise ValueError(
        f"cv must list pairs of rows to train on and rows to score, by their numbers from 0 to {n_samples - 1}; fold "
        f"{number} {got}."
    )


def _checked_splits(splits: list[Split], labels: AnyArray) -> list[Split]:
    """Check that no row is scored twice, and each by models trained on both classes and not on the row."""
    if len(splits) < _LEAST_FOLDS:
        raise ValueError(f"cv must make at least {_LEAST_FOLDS} folds; got {len(splits)}.")
    times = np.bincount(np.concatenate([inside for _, inside in splits]), minlength=labels.size)
    twice, is_scored = np.flatnonzero(times > 1), times > 0
    if twice.size:
        raise ValueError(
            f"cv must score each of the {labels.size} rows at most once, as KFold and TimeSeriesSplit do; row "
            f"{twice[0]} is scored {times[twice[0]]} times. To choose on rows that are not folds, pass X_val and y_val."
        )
    lost = np.setdiff1d(labels, labels[is_scored])
    if lost.size:
        raise ValueError(
            f"cv scores {int(is_scored.sum())} of the {labels.size} rows, and none of class {lost.tolist()[0]!r}. "
            "Rules are chosen on scored rows of every class: pass more rows, or other folds."
        )
    for number, (outside, inside) in enumerate(splits):
        if np.intersect1d(outside, inside).size:
            raise ValueError(f"Fold {number} of cv scores rows that its models are trained on.")
        if np.unique(labels[outside]).size < 2:  # noqa: PLR2004 - classes
            raise ValueError(f"The rows outside of fold {number} of cv hold one class only; models need two.")
    return splits


def texts_in(X: Any) -> list[str]:
    """Return the columns of a data frame that hold texts and are no categories."""
    return [str(name) for name, column in columns_of(X) if kind_of(column) == TEXT]


class AveragedClassifier(ClassifierMixin, BaseEstimator):
    """Fitted classifiers that decide together, by the mean of their log-odds.

    ``GoalClassifier(cv="auto")`` makes one of the models of its folds. Each of them scored the rows that it was not
    trained on, and thresholds were chosen on those scores; their mean errs less often than any of them.

    Parameters
    ----------
    models : list of fitted classifiers
        Of the same classes, with ``predict_proba``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from counterpoise.classifiers.folds import AveragedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> halves = [LogisticRegression(max_iter=5000).fit(X[part::2], y[part::2]) for part in (0, 1)]
    >>> both = AveragedClassifier(halves)
    >>> both.predict_proba(X[:3]).shape, both.score(X, y) > 0.95
    ((3, 2), True)
    """

    stored_apart = ("models",)  # each model in a file of its own

    def __init__(self, models: Sequence[Any]) -> None:
        self.models = models

    @property
    def classes_(self) -> AnyArray:
        """Return the classes, which all models share."""
        return np.asarray(self.models[0].classes_)

    @property
    def n_features_in_(self) -> int:
        """Return the number of features."""
        return int(self.models[0].n_features_in_)

    @property
    def feature_names_in_(self) -> AnyArray:
        """Return the names of the features, where the models know them."""
        return np.asarray(self.models[0].feature_names_in_)

    @property
    def feature_importances_(self) -> FloatArray:
        """Return the mean of the models' importances of features, where they have them."""
        return np.asarray(np.mean([model.feature_importances_ for model in self.models], axis=0))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities whose log-odds are the means of those of the models.

        Parameters
        ----------
        X : rows, as the models take them

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        logs = np.mean([np.log(np.maximum(model.predict_proba(X), _LEAST)) for model in self.models], axis=0)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> AnyArray:
        """Return the likeliest class of each row.

        Parameters
        ----------
        X : rows, as the models take them

        Returns
        -------
        array of shape (n_samples,)
        """
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def __sklearn_is_fitted__(self) -> bool:
        """Return True: it consists of fitted models."""
        return True
