"""A pool of fitted models, the mixture of them that suits the tail, and the randomized classifier they make.

A randomized classifier draws one model for each person from its mixture. Every loss and every rate is then linear in
the mixture, so with the models' losses at hand the best mixture for any alpha is a small optimization and trains
nothing.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_array, check_is_fitted

from counterpoise._checks import check_alpha, check_sample_weight
from counterpoise._types import AnyArray, ArrayLike, BoolArray, ByteArray, FloatArray, IntArray
from counterpoise.draws import id_uniforms, pick, row_uniforms
from counterpoise.metrics import cvar_loss
from counterpoise.solvers import minimize_cvar

MIXTURES = ("optimal", "average", "first")
DECISIONS = ("sticky", "sample", "vote")
_SHARE = 1e-9  # of the mixture, below which a model is never drawn in practice: rounding of the solver


class Selection(NamedTuple):
    """The rows on which the mixture is chosen: the models' losses there, and what the rows weigh."""

    losses: ByteArray  # (n_samples, n_models), zero-one
    sample_weight: FloatArray | None
    groups: IntArray | None  # group code of each row where the worst group counts, else None

    def first(self, n_models: int) -> "Selection":
        """Return the same rows with the losses of the first models only."""
        return self._replace(losses=self.losses[:, :n_models])


class Choice(NamedTuple):
    """A mixture, and the risk it has on the rows where it was chosen."""

    mixture: FloatArray
    value: float
    gap: float  # no mixture has a risk below value - gap; not a number where none was sought


def choose_mixture(
    selection: Selection, *, alpha: float, kind: str = "optimal", outlier_fraction: float = 0.0
) -> Choice:
    """Choose the mixture: the optimal one, the average of all models, or the first model alone (ERM).

    The risk is the CVaR at ``alpha`` or, where the selection has groups, the loss of the worst group.
    """
    losses: AnyArray
    if selection.groups is None:
        losses, weight = _without_outliers(selection, outlier_fraction)
    else:  # a tail of one group is the worst group
        losses, weight = group_losses(selection), None
        alpha = 1 / len(losses)
    n_models = losses.shape[1]
    if kind == "optimal":
        found = minimize_cvar(losses, alpha, sample_weight=weight)
        return Choice(_cleaned(found.mixture), found.value, found.gap)
    mixture = np.full(n_models, 1 / n_models) if kind == "average" else np.eye(1, n_models)[0]
    return Choice(mixture, cvar_loss(losses, alpha, weight, mixture=mixture), np.nan)


def group_losses(selection: Selection) -> FloatArray:
    """Return the average loss of every model on every group, shape (n_groups, n_models)."""
    groups = selection.groups
    assert groups is not None  # noqa: S101 - callers checked
    weight = np.ones(groups.size) if selection.sample_weight is None else selection.sample_weight
    share = weight / np.bincount(groups, weight)[groups]
    columns = [np.bincount(groups, share * column) for column in selection.losses.T]
    return np.column_stack(columns)


def _without_outliers(selection: Selection, fraction: float) -> tuple[ByteArray, FloatArray | None]:
    """Drop the fraction of the rows with the highest average loss (DORO, Zhai et al. 2021b)."""
    losses, weight = selection.losses, selection.sample_weight
    if fraction == 0:
        return losses, weight
    keep = ~outliers(losses.mean(axis=1), weight, fraction)
    return losses[keep], None if weight is None else weight[keep]


def outliers(losses: AnyArray, sample_weight: FloatArray | None, fraction: float) -> BoolArray:
    """Return which samples have the highest losses, up to ``fraction`` of the weight; earlier rows first on ties."""
    weight = np.ones(losses.size) if sample_weight is None else sample_weight
    order = np.argsort(-losses, kind="stable")
    reached = np.cumsum(weight[order])
    is_outlier = np.zeros(losses.size, dtype=np.bool_)
    is_outlier[order[reached <= fraction * reached[-1] * (1 + 1e-12)]] = True
    return is_outlier


def _cleaned(mixture: FloatArray) -> FloatArray:
    mixture = np.where(mixture > _SHARE, mixture, 0.0)
    return np.asarray(mixture / mixture.sum())


def group_codes(sensitive_features: Any, n_samples: int) -> tuple[IntArray, list[str]]:
    """Return the group of each row and the groups' names, from an array, a data frame or a dict of columns."""
    columns = _columns(sensitive_features)
    for name, values in columns.items():
        if len(values) != n_samples:
            raise ValueError(
                f"sensitive_features must have one row for each of the {n_samples} samples; "
                f"column {name!r} has {len(values)}."
            )
    codes, names = np.zeros(n_samples, dtype=np.int64), [""]
    for name, values in columns.items():  # one column after another: rows are many, groups few
        levels, places = np.unique(values.astype(str), return_inverse=True)
        names = [f"{first}{', ' if first else ''}{name}={level}" for first in names for level in levels.tolist()]
        present, codes = np.unique(codes * len(levels) + places, return_inverse=True)
        names = [names[place] for place in present.tolist()]
    return codes.astype(np.int64), names


def _columns(sensitive_features: Any) -> dict[str, AnyArray]:
    if isinstance(sensitive_features, dict):
        return {str(name): np.asarray(values) for name, values in sensitive_features.items()}
    if hasattr(sensitive_features, "columns"):
        return {str(name): np.asarray(sensitive_features[name]) for name in sensitive_features.columns}
    array = np.asarray(sensitive_features)
    if array.ndim <= 1:
        return {"group": np.atleast_1d(array)}
    return {f"group{column}": array[:, column] for column in range(array.shape[1])}


def predict_codes(model: Any, X: Any, classes: AnyArray) -> IntArray:
    """Return the predictions of a model as places in ``classes``, which are sorted."""
    if hasattr(model, "predict_codes"):
        return np.asarray(model.predict_codes(X))
    labels = np.asarray(model.predict(X))
    if labels.shape != (n_rows(X),):
        raise ValueError(
            f"The base model {model!r} must predict one label for each of the {n_rows(X)} rows; "
            f"it returned shape {labels.shape}."
        )
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    unknown = classes[codes] != labels
    if unknown.any():
        raise ValueError(
            f"The base model {model!r} predicted the label {labels[unknown][0]!r}, which is not among the classes "
            f"{classes.tolist()} that it was trained on."
        )
    return codes.astype(np.int64)


def zero_one_losses(models: Sequence[Any], X: Any, codes: IntArray, classes: AnyArray, n_jobs: int | None) -> ByteArray:
    """Return which model fails on which row, one byte each, column by column in memory."""
    losses = np.empty((len(codes), len(models)), dtype=np.uint8, order="F")

    def fill(place: int) -> None:
        losses[:, place] = predict_codes(models[place], X, classes) != codes

    Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem")(delayed(fill)(place) for place in range(len(models)))
    return losses


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix, a data frame or binned features."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of an array, a sparse matrix or a data frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def is_frame(X: Any) -> bool:
    """Tell whether X is a data frame, which base pipelines may want as it is."""
    return hasattr(X, "columns")


class PooledClassifier(ClassifierMixin, BaseEstimator):
    """What every classifier made of other models shares: how it checks what it is given.

    Its ``fit`` sets ``classes_``.
    """

    def _codes_of(self, y: Any, n_samples: int) -> IntArray:
        labels = np.asarray(y)
        if labels.shape != (n_samples,):
            raise ValueError(
                f"y must have shape ({n_samples},), one label for each row of X; got shape {labels.shape}."
            )
        codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        unknown = self.classes_[codes] != labels
        if unknown.any():
            raise ValueError(
                f"y holds the label {labels[unknown][0]!r}, which is not among the classes {self.classes_.tolist()}."
            )
        return codes.astype(np.int64)

    def _input_dtype(self) -> str | None:
        """Return what arrays are converted to: None leaves them to the models."""
        return None

    def _check_predict_input(self, X: Any) -> Any:
        check_is_fitted(self)
        if is_frame(X):
            _check_feature_names(self, X, reset=False)
            _check_n_features(self, X, reset=False)
            return X
        _check_feature_names(self, X, reset=False)
        tags = self.__sklearn_tags__().input_tags
        X = check_array(
            X,
            accept_sparse="csr" if tags.sparse else False,
            dtype=self._input_dtype(),
            ensure_all_finite="allow-nan" if tags.allow_nan else True,
            estimator=self,
        )
        _check_n_features(self, X, reset=False)
        return X


class RandomizedClassifier(PooledClassifier):
    """What every classifier that mixes models shares: drawing, probabilities and the choice of another mixture.

    A subclass has parameters ``alpha``, ``decision``, ``mixture``, ``outlier_fraction``, ``random_state``, ``n_jobs``;
    its ``fit`` sets ``classes_``, ``estimators_`` and what ``_set_mixture`` needs.
    """

    def predict(self, X: Any, ids: Any = None) -> AnyArray:
        """Decide about every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to decide about.
        ids : array-like of shape (n_samples,), optional
            One for each person, for ``decision="sticky"``: rows of the same id are decided by the same model,
            whatever else changed. Default: the row itself is its id.

        Returns
        -------
        array of shape (n_samples,)
            Class labels.
        """
        X = self._check_predict_input(X)
        if ids is not None and self.decision != "sticky":
            raise ValueError(f"ids are for decision='sticky'; this classifier has decision={self.decision!r}.")
        if self.decision == "vote":
            return np.asarray(self.classes_[self._shares(X).argmax(axis=1)])
        return np.asarray(self.classes_[self._drawn_codes(X, self._uniforms(X, ids))])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability that a draw from the mixture says each class: the mixture itself.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._shares(self._check_predict_input(X))

    def staged_predict_proba(self, X: Any) -> Iterator[FloatArray]:
        """Yield ``predict_proba`` of the first model, the first two and so on, each with its own mixture."""
        X = self._check_predict_input(X)
        votes = [predict_codes(model, X, self.classes_) for model in self.estimators_]
        for n_models in range(1, len(votes) + 1):
            choice = self._choose(self.selection_.first(n_models), self.alpha_)
            yield _mixed(votes[:n_models], choice.mixture, len(self.classes_))

    def staged_predict(self, X: Any) -> Iterator[AnyArray]:
        """Yield the weighted vote of the first model, the first two and so on, each with its own mixture.

        Votes, not draws, so that the stages can be compared.
        """
        for shares in self.staged_predict_proba(X):
            yield self.classes_[shares.argmax(axis=1)]

    def rebalance(
        self,
        X: Any = None,
        y: Any = None,
        *,
        alpha: float | None = None,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
    ) -> Self:
        """Return a classifier with the same models and another mixture; nothing is trained.

        Parameters
        ----------
        X, y : labelled rows to choose the mixture on, optional
            Default: those of ``fit``, whose losses were kept, so that no model is even evaluated.
        alpha : float in (0, 1], optional
            Another tail fraction. Default: the present one.
        sample_weight : array of shape (n_samples,), optional
            Weights of the given rows.
        sensitive_features : array or data frame with a row for each sample, optional
            Choose the mixture with the least loss on the worst of these groups instead of the CVaR. A small labelled
            set is enough.

        Returns
        -------
        fitted classifier
            Of the same kind, sharing ``estimators_``.
        """
        check_is_fitted(self)
        level = self.alpha_ if alpha is None else check_alpha(alpha)
        selection = self._selection_for(X, y, sample_weight, sensitive_features)
        other = copy.copy(self)
        if alpha is not None:
            other.alpha = alpha
        other.mixture = "optimal"
        other._set_mixture(selection, level)  # noqa: SLF001 - of our own kind
        return other

    def _selection_for(self, X: Any, y: Any, sample_weight: Any, sensitive_features: Any) -> Selection:
        if X is None:
            selection = self.selection_
            if y is not None or sample_weight is not None:
                raise ValueError("rebalance got y or sample_weight without X; pass X and y together, or neither.")
        elif y is None:
            raise ValueError("rebalance got X without y; the mixture is chosen on labelled rows.")
        else:
            X = self._check_predict_input(X)
            codes = self._codes_of(y, n_rows(X))
            losses = zero_one_losses(self.estimators_, X, codes, self.classes_, self.n_jobs)
            selection = Selection(losses, check_sample_weight(sample_weight, n_rows(X)), None)
        if sensitive_features is None:
            return selection
        groups, _ = group_codes(sensitive_features, len(selection.losses))
        return selection._replace(groups=groups)

    def _choose(self, selection: Selection, alpha: float) -> Choice:
        return choose_mixture(selection, alpha=alpha, kind=self.mixture, outlier_fraction=self.outlier_fraction)

    def _set_mixture(self, selection: Selection, alpha: float) -> None:
        choice = self._choose(selection, alpha)
        self.alpha_, self.selection_ = alpha, selection
        self.mixture_, self.value_, self.gap_ = choice

    def _uniforms(self, X: Any, ids: Any) -> FloatArray:
        if self.decision == "sample":
            return np.asarray(self._generator.random(n_rows(X)))
        return row_uniforms(X, self._key) if ids is None else id_uniforms(ids, self._key, n_rows(X))

    def _drawn_codes(self, X: Any, uniforms: FloatArray) -> IntArray:
        """Ask of each model only the rows that drew it."""
        drawn = pick(uniforms, self.mixture_)
        codes = np.empty(drawn.size, dtype=np.int64)
        for place in np.unique(drawn).tolist():
            rows = np.flatnonzero(drawn == place)
            codes[rows] = predict_codes(self.estimators_[place], take_rows(X, rows), self.classes_)
        return codes

    def _shares(self, X: Any) -> FloatArray:
        active = np.flatnonzero(self.mixture_)
        ask: Callable[..., Any] = delayed(predict_codes)
        votes = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            ask(self.estimators_[place], X, self.classes_) for place in active
        )
        return _mixed(votes, self.mixture_[active], len(self.classes_))


def _mixed(votes: Sequence[AnyArray], mixture: FloatArray, n_classes: int) -> FloatArray:
    shares = np.zeros((len(votes[0]), n_classes))
    rows = np.arange(len(shares))
    for codes, share in zip(votes, mixture.tolist(), strict=True):
        shares[rows, codes] += share
    return shares
