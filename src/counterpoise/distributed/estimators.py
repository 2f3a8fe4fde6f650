"""Estimators on Dask collections: each wraps the estimator of one machine, and fits it where the rows are."""

import copy
import inspect
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from counterpoise._base.checks import check_count
from counterpoise._base.types import AnyArray
from counterpoise.classifiers.folds import trained_copy
from counterpoise.classifiers.goal import GoalClassifier, list_models
from counterpoise.classifiers.mixture import MixtureClassifier
from counterpoise.distributed.collections import Every, RowCollections, is_column, is_path, partitions_of
from counterpoise.distributed.fitting import check, check_rows, decide_over, mix_over
from counterpoise.distributed.lightgbm import TrainingRows, is_lightgbm, lightgbm_over_dask, train_lightgbm
from counterpoise.distributed.partitions import Part
from counterpoise.distributed.rows import SAMPLE_WEIGHT, X, Y, inspect_rows
from counterpoise.learners.resampling import fresh_copy
from counterpoise.rules.draws import generator_of
from counterpoise.rules.families import answers_of
from counterpoise.rules.pool import named_models
from counterpoise.rules.rows import stack_rows

_MATRIX = 2


def lazily(model: Any, method: str, X: Any, more: dict[str, Any]) -> Any:
    """Return the result of a method of a local model: a collection where the rows are one."""
    options = {name: value for name, value in more.items() if value is not None}
    X = as_collection(X)
    if not hasattr(X, "dask"):
        return getattr(model, method)(X, **options)
    return (_of_array if hasattr(X, "chunks") else _of_frame)(model, method, X, options)


def as_collection(X: Any) -> Any:
    """Return rows in files as a Dask DataFrame; others as they are."""
    if not is_path(X):
        return X
    import dask.dataframe as dd  # noqa: PLC0415 - optional

    return dd.read_parquet(X)


def _answers(model: Any, method: str) -> AnyArray:
    """Return no rows of the answers, or of the columns of probabilities, as a form for others."""
    columns = _columns(model, method)
    return columns[:0] if method == "predict" else np.empty((0, len(columns)))


def _columns(model: Any, method: str) -> AnyArray:
    """Return what there are probabilities of: the classes, or all decisions, deferral among them."""
    return np.asarray(model.classes_ if method == "predict_proba" else answers_of(model.family_))


def _of_array(model: Any, method: str, X: Any, options: dict[str, Any]) -> Any:
    import dask.array as da  # noqa: PLC0415 - optional

    for name, value in options.items():
        if is_column(value):
            raise ValueError(f"{name} names the column {value!r}, but X has no column names. Pass a Dask array.")
    answers, rows = _answers(model, method), X.rechunk({1: -1})
    others = {name: one.to_dask_array() if hasattr(one, "to_dask_array") else one for name, one in options.items()}
    sizes = [one.numblocks[0] if hasattr(one, "chunks") else None for one in others.values()]
    _require_cut_alike(others, sizes, "blocks", rows.numblocks[0])
    axes = [part for one in others.values() for part in (one, "ik"[: one.ndim])]
    wide = {"new_axes": {"c": answers.shape[1]}} if answers.ndim == _MATRIX else {}
    return da.blockwise(
        _call_method,
        "ic"[: answers.ndim],
        rows,
        "ij",
        *axes,
        model=model,
        method=method,
        names=tuple(others),
        concatenate=True,
        align_arrays=False,  # blocks may be of unknown sizes
        dtype=answers.dtype,
        meta=answers,
        **wide,
    )


def _call_method(X: Any, *others: Any, model: Any, method: str, names: tuple[str, ...]) -> Any:
    return getattr(model, method)(X, **dict(zip(names, others, strict=True)))


def _of_frame(model: Any, method: str, X: Any, options: dict[str, Any]) -> Any:
    columns = {name: value for name, value in options.items() if is_column(value)}
    others = {name: value for name, value in options.items() if not is_column(value)}
    for name, value in columns.items():
        missing = [one for one in ([value] if isinstance(value, str) else value) if one not in X.columns]
        if missing:
            raise ValueError(
                f"{name} names the column {missing[0]!r}, which X does not have; its columns are "
                f"{', '.join(map(str, X.columns))}."
            )
    sizes = [getattr(one, "npartitions", None) for one in others.values()]
    _require_cut_alike(others, sizes, "partitions", X.npartitions)
    frames = [one.to_dask_dataframe() if hasattr(one, "chunks") else one for one in others.values()]
    form = _as_frame(_answers(model, method), None, model, method)
    args = (model, method, columns, tuple(others), *frames)
    return X.map_partitions(_call_on_frame, *args, meta=form, align_dataframes=False)


def _call_on_frame(X: Any, model: Any, method: str, columns: Any, names: Any, *others: Any) -> Any:
    if not len(X):
        return _as_frame(_answers(model, method), X.index, model, method)
    more = {name: X[value] for name, value in columns.items()} | dict(zip(names, others, strict=True))
    names_of_fit = getattr(model, "feature_names_in_", None)
    features = X if names_of_fit is None or not set(names_of_fit) <= set(X.columns) else X[list(names_of_fit)]
    return _as_frame(getattr(model, method)(features, **more), X.index, model, method)


def _as_frame(data: AnyArray, index: Any, model: Any, method: str) -> Any:
    import pandas as pd  # noqa: PLC0415 - the rows are of it

    return pd.Series(data, index) if method == "predict" else pd.DataFrame(data, index, list(_columns(model, method)))


def _require_cut_alike(others: dict[str, Any], sizes: list[int | None], what: str, n_parts: int) -> None:
    """Refuse collections that are not cut at the rows of X, given the number of parts of each."""
    for (name, one), size in zip(others.items(), sizes, strict=True):
        if size != n_parts:
            got = f"{one.npartitions} {what}" if hasattr(one, "npartitions") else type(one).__name__
            raise ValueError(
                f"{name} must be a Dask collection that is cut at the rows of X, with {n_parts} {what}; got {got}."
            )


_MOST_ROWS = 1_000_000  # that a model of one machine is trained on
_FOLDS = 5  # that cv="auto" stands for


def train_over(model: Any, rows: RowCollections, step: int, seed: int) -> Any:
    """Return a copy of a model trained on the rows of each partition but for every ``step``-th.

    Random states that are not set are set from the seed.
    """
    if is_lightgbm(model):
        training = TrainingRows.of(partitions_of(rows, Every(step, others=True)))
        weight = None if rows.sample_weight is None else training.column(SAMPLE_WEIGHT)
        return train_lightgbm(fresh_copy(model, seed, only_unset=True), training, weight)
    n_rows = sum(partitions_of(rows, Every(step, others=True)).map(_n_rows))
    parts = partitions_of(rows, Every(step, others=True, again=-(-n_rows // _MOST_ROWS))).map(_training_rows)
    X, y, weights = zip(*(part for part in parts if len(part[1])), strict=True)
    weight = None if weights[0] is None else np.concatenate(weights)
    return trained_copy(model, _stack(X), np.concatenate(y), weight, seed)


def _n_rows(part: Part) -> int:
    return len(part[X])


def _training_rows(part: Part) -> tuple[Any, AnyArray, Any]:
    return part[X], np.asarray(part[Y]), part.get(SAMPLE_WEIGHT)


def _stack(parts: Sequence[Any]) -> Any:
    if hasattr(parts[0], "iloc"):
        import pandas as pd  # noqa: PLC0415 - optional, and here already

        return pd.concat(parts, ignore_index=True)
    return stack_rows(list(parts))


class OverDask(ClassifierMixin, BaseEstimator):
    """Base of the estimators on Dask collections.

    Attributes
    ----------
    local : estimator
        That of one machine. It has the parameters, and after ``fit`` all that was learned, which can be read here too.
    """

    kind: ClassVar[type]  # of the estimator of one machine
    stored_fields: ClassVar[tuple[str, ...]] = ("local",)  # what a file of a model must hold

    def __init__(self, *args: Any, **params: Any) -> None:
        self.local = self.kind(*args, **params)

    def __init_subclass__(cls) -> None:
        """Show the parameters of the estimator of one machine."""
        cls.__signature__ = inspect.signature(cls.kind)

    def __getattr__(self, name: str) -> Any:
        if name == "local" or (name.startswith("__") and name.endswith("__")):  # not there yet: it is being copied
            raise AttributeError(name)
        return getattr(self.local, name)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the estimator of one machine."""
        return dict(self.local.get_params(deep))

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator of one machine."""
        self.local.set_params(**params)
        return self

    def __copy__(self) -> Self:
        """Return a copy with parameters of its own."""
        other = type(self).__new__(type(self))
        other.local = copy.copy(self.local)
        return other

    def __sklearn_clone__(self) -> Self:
        """Keep models that are fitted, as the estimator of one machine does."""
        other = type(self).__new__(type(self))
        other.local = clone(self.local)
        return other

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"Dask{self.local.__repr__(N_CHAR_MAX)}".replace("\n", "\n    ")

    def __sklearn_tags__(self) -> Any:
        return self.local.__sklearn_tags__()

    def stored_state(self) -> dict[str, Any]:
        """Return what ``save`` stores."""
        return {"local": self.local}

    def check_loaded(self) -> None:
        """Check what came from a file; the estimator of one machine checked itself."""
        if type(self.local) is not self.kind:
            raise ValueError(f"it must hold a {self.kind.__name__}, and holds a {type(self.local).__name__}")

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a mixture to decide by."""
        return hasattr(self.local, "mixture_")

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        sensitive_features: Any = None,
        baseline: Any = None,
        features: Any = None,
    ) -> Self:
        """Fit where the rows are, with the scheduler of Dask that is set, or the cluster of the present client.

        Parameters
        ----------
        X : dask DataFrame or Array, or path of Parquet files
            Features, numbers only. Files, a folder or a list of them, are read by the workers.
        y : dask Series or Array, or str
            Labels; or the name of a column of X, which then is no feature.
        sample_weight, baseline : dask Series or Array, or str, optional
            As for the estimator of one machine; or the names of columns of X, which then are no features.
        sensitive_features : dask DataFrame, Series or Array, or list of str, optional
            Columns that goals and groups use; or the names of columns of X, which then are no features. Numbers
            of many values must be cut into ranges first.
        features : list of str, optional
            Names of the columns of X that are features. Default: those that models were trained on, where they are
            fitted and know names, else all columns that are named nowhere else, ids of people among them.

        Returns
        -------
        self
        """
        self._fit_rows(RowCollections(X, y, sensitive_features, baseline, sample_weight, features))
        return self

    def _fit_rows(self, rows: RowCollections) -> None:
        raise NotImplementedError

    def rebalance(self, *args: Any, **changes: Any) -> Self:
        """Return a classifier with the same models and another mixture: as on one machine, which see."""
        other = type(self)(**self.get_params(deep=False))
        other.local = self.local.rebalance(*args, **changes)
        return other

    def score(self, X: Any, y: Any, sample_weight: Any = None, **more: Any) -> float:
        """Return the share of rows that are decided right, of a Dask collection or of rows in memory.

        Parameters
        ----------
        X, **more
            As for ``predict``.
        y, sample_weight
            As for ``fit``.
        """
        rows = as_collection(X)
        if not hasattr(rows, "dask"):
            return float(self.to_local().score(X, y, sample_weight=sample_weight, **more))
        labels, weights = (rows[one] if isinstance(one, str) else one for one in (y, sample_weight))
        right = (self.predict(rows, **more) == labels).astype(float)
        return float((right.mean() if weights is None else (right * weights).sum() / weights.sum()).compute())

    def to_local(self) -> Any:
        """Return the fitted estimator of one machine that decides the same."""
        check_is_fitted(self)
        return self.local

    def predict(self, X: Any, **more: Any) -> Any:
        """Decide about every row: lazily, partition by partition, of a Dask collection.

        Parameters
        ----------
        X : dask DataFrame or Array, or path of Parquet files; or rows in memory
            Columns of a data frame that are no features are passed over.
        **more : dask Series, DataFrame or Array, or names of columns of X
            Further arguments of ``predict`` on one machine: ``ids``, and for rules that use them
            ``sensitive_features`` and ``baseline``. ``top`` needs all rows at once: call ``to_local().predict``.

        Returns
        -------
        dask Series or Array, or array for rows in memory
        """
        if more.get("top") is not None:
            raise ValueError(
                "top compares all rows of a batch, and here partitions are decided one by one. Bring the rows into "
                "memory, as X.compute() does, and call to_local().predict(X, top=...)."
            )
        return lazily(self.to_local(), "predict", X, more)

    def predict_proba(self, X: Any, **more: Any) -> Any:
        """Return the class probabilities, as on one machine: lazily of a Dask collection, as for ``predict``."""
        return lazily(self.to_local(), "predict_proba", X, more)

    def decision_proba(self, X: Any, **more: Any) -> Any:
        """Return the probability of each decision: lazily of a Dask collection, as for ``predict``."""
        return lazily(self.to_local(), "decision_proba", X, more)


class DaskMixtureClassifier(OverDask):
    """``MixtureClassifier`` on Dask collections.

    The parameters are those of ``MixtureClassifier``: fitted models, which are sent to the workers and predict there.

    Examples
    --------
    >>> from counterpoise.distributed import DaskMixtureClassifier
    >>> model = DaskMixtureClassifier(pool, alpha=0.1, goals=["recall >= 0.9"])  # doctest: +SKIP
    >>> model.fit(frame, "label").predict(frame)  # doctest: +SKIP
    """

    kind = MixtureClassifier

    def _fit_rows(self, rows: RowCollections) -> None:
        rows = rows.with_features_of([model for _, model in named_models(self.local.estimators)])
        mix_over(self.local, partitions_of(rows))


class DaskGoalClassifier(OverDask):
    """``GoalClassifier`` on Dask collections.

    The parameters are those of ``GoalClassifier``. Here ``cv=k`` chooses the rules on every k-th row of each partition,
    and trains the models on the others, once; ``"auto"`` is 5; ``cv="prefit"`` takes models that are fitted.
    An estimator of LightGBM for Dask is trained on all those rows, and is the default; any other on a sample of a
    million of them at most.

    Examples
    --------
    >>> from counterpoise.distributed import DaskGoalClassifier
    >>> model = DaskGoalClassifier(goals=["recall >= 0.9"], by="sex")
    >>> model.fit(frame, "label", sensitive_features=["sex"]).rules_  # doctest: +SKIP
    """

    kind = GoalClassifier

    def _fit_rows(self, rows: RowCollections) -> None:
        local = self.local
        if local.is_prefit:
            models = [model for _, model in named_models(list(list_models(local.estimator)))]
            mix_over(local, partitions_of(rows.with_features_of(models)))
            return
        check(local)
        step = _FOLDS if local.cv == "auto" else check_count(local.cv, "cv", 2)
        seed = int(generator_of(local.random_state).integers(2**31))
        pool = [lightgbm_over_dask(seed)] if local.estimator is None else list(list_models(local.estimator))
        partitions = partitions_of(rows, Every(step))
        cells, _ = inspect_rows(partitions)
        check_rows(local, cells)
        trained = [(name, train_over(model, rows, step, seed)) for name, model in named_models(pool)]
        decide_over(local, partitions, cells, trained)
