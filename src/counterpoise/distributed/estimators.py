"""Estimators on Dask collections: each wraps the estimator of one machine, and fits it where the rows are."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from counterpoise._base.checks import check_count
from counterpoise._base.shards import Shards
from counterpoise.boosting.adalpboost import AdaLPBoostClassifier
from counterpoise.boosting.lpboost import LPBoostClassifier
from counterpoise.distributed.asking import as_collection, is_lazy, lazily
from counterpoise.distributed.collections import Every, Rows, partitions_of
from counterpoise.distributed.dask_shards import DaskShards, Parts, as_client
from counterpoise.distributed.fitting import check, check_rows, decide_over, fit_over, mix_over, prepare
from counterpoise.distributed.training import train_over
from counterpoise.mixtures.draws import generator_of
from counterpoise.mixtures.goal import GoalClassifier, listed
from counterpoise.mixtures.mixture import MixtureClassifier
from counterpoise.mixtures.pool import named_models

_FOLDS = 5  # that cv="auto" stands for


@contextmanager
def shards_of(rows: Rows, client: Any, n_shards: int | None, only: Every | None = None) -> Iterator[Shards]:
    """Put rows, or some of each partition, into shards on the workers of a cluster, by default one on each worker."""
    client = as_client(client)
    n_held = max(1, len(client.nthreads())) if n_shards is None else n_shards
    with DaskShards(list(map(Parts, *partitions_of(rows, n_held, only))), client) as shards:
        yield shards


class OverDask(ClassifierMixin, BaseEstimator):
    """Base of the estimators on Dask collections.

    Attributes
    ----------
    local : estimator
        That of one machine. It has the parameters, and after ``fit`` all that was learned, which can be read here too.
    """

    kind: ClassVar[type]  # of the estimator of one machine

    def __init__(self, *given: Any, **params: Any) -> None:
        self.local = self.kind(*given, **params)

    def __init_subclass__(cls) -> None:
        """Show the parameters of the estimator of one machine."""
        cls.__signature__ = inspect.signature(cls.kind)  # type: ignore[attr-defined]

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

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether there is a mixture to decide by."""
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
        client: Any = None,
        n_shards: int | None = None,
    ) -> Self:
        """Fit on the workers of a Dask cluster.

        Parameters
        ----------
        X : dask DataFrame or Array, or path of Parquet files
            Features, numbers only. Files, a folder or a list of them, are read by the workers.
        y : dask Series or Array, or str
            Labels; or the name of a column of X, which then is no feature.
        sample_weight, baseline : dask Series or Array, or str, optional
            As for the estimator of one machine; or the names of columns of X, which then are no features.
        sensitive_features : dask DataFrame, Series or Array, or list of str, optional
            Columns that goals and groups speak of; or the names of columns of X, which then are no features. Numbers
            of many values must be cut into ranges first.
        features : list of str, optional
            Names of the columns of X that are features. Default: those that models were trained on, where they are
            fitted and know names, else all columns that are named nowhere else, ids of people among them.
        client : distributed.Client, optional
            Default: the present one.
        n_shards : int, optional
            How many shards the partitions are joined to. Default: one for each worker. It does not change the result.

        Returns
        -------
        self
        """
        self._fit_rows(Rows(X, y, sensitive_features, baseline, sample_weight, features), client, n_shards)
        return self

    def _fit_rows(self, rows: Rows, client: Any, n_shards: int | None) -> None:
        with shards_of(rows, client, n_shards) as shards:
            fit_over(self.local, shards)

    def rebalance(self, *given: Any, **changes: Any) -> Self:
        """Return a classifier with the same models and another mixture: as on one machine, which see."""
        other = type(self)(**self.get_params(deep=False))
        other.local = self.local.rebalance(*given, **changes)
        return other

    def score(self, X: Any, y: Any, sample_weight: Any = None, **more: Any) -> float:
        """Return the share of rows that are told their label, of a Dask collection or of rows in memory.

        Parameters
        ----------
        X, **more
            As for ``predict``.
        y, sample_weight
            As for ``fit``.
        """
        rows = as_collection(X)
        if not is_lazy(rows):
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
            What ``predict`` of one machine takes beside X: ``ids``, and of rules that look at them
            ``sensitive_features`` and ``baseline``.

        Returns
        -------
        dask Series or Array, or array for rows in memory
        """
        return lazily(self.to_local(), "predict", X, more)

    def predict_proba(self, X: Any, **more: Any) -> Any:
        """Return the class probabilities, as on one machine: lazily of a Dask collection, as for ``predict``."""
        return lazily(self.to_local(), "predict_proba", X, more)

    def decision_proba(self, X: Any, **more: Any) -> Any:
        """Return the probability of each decision: lazily of a Dask collection, as for ``predict``."""
        return lazily(self.to_local(), "decision_proba", X, more)


class DaskAdaLPBoostClassifier(OverDask):
    """``AdaLPBoostClassifier`` on Dask collections.

    The parameters are those of ``AdaLPBoostClassifier``. Rounds are judged on the rows they are trained on. Rows,
    losses and weights stay on the workers: a round sends histograms of the tree's nodes, and a few sums.

    Examples
    --------
    >>> from counterpoise.distributed import DaskAdaLPBoostClassifier
    >>> model = DaskAdaLPBoostClassifier(n_estimators=20, alpha=0.1)
    >>> model.fit(frame, "label", sensitive_features=["sex"])  # doctest: +SKIP
    """

    kind = AdaLPBoostClassifier


class DaskLPBoostClassifier(OverDask):
    """``LPBoostClassifier`` on Dask collections.

    The parameters are those of ``LPBoostClassifier``. Rounds train for the goals: a table of what answers cost in each
    group of rows that goals tell apart travels to the rows.

    Examples
    --------
    >>> from counterpoise.distributed import DaskLPBoostClassifier
    >>> model = DaskLPBoostClassifier(n_estimators=20, alpha=0.1)
    >>> model.fit("rows.parquet", "label")  # doctest: +SKIP
    """

    kind = LPBoostClassifier


class DaskMixtureClassifier(OverDask):
    """``MixtureClassifier`` on Dask collections.

    The parameters are those of ``MixtureClassifier``: models that are fitted, sent to the rows and asked there.

    Examples
    --------
    >>> from counterpoise.distributed import DaskMixtureClassifier
    >>> model = DaskMixtureClassifier(pool, alpha=0.1, goals=["recall(train) >= 0.9"])  # doctest: +SKIP
    >>> model.fit(frame, "label").predict(frame)  # doctest: +SKIP
    """

    kind = MixtureClassifier

    def _fit_rows(self, rows: Rows, client: Any, n_shards: int | None) -> None:
        rows = rows.seen_by([model for _, model in named_models(self.local.estimators)])
        with shards_of(rows, client, n_shards) as shards:
            mix_over(self.local, shards)


class DaskGoalClassifier(OverDask):
    """``GoalClassifier`` on Dask collections.

    The parameters are those of ``GoalClassifier``. Here ``cv=k`` chooses the rules on every k-th row of each partition,
    and trains the models on the others, once; ``"auto"`` is 5; ``cv="prefit"`` takes models that are fitted.
    An estimator of LightGBM for Dask is trained on all those rows, and is the default; any other on a sample of a
    million of them at most.

    Examples
    --------
    >>> from counterpoise.distributed import DaskGoalClassifier
    >>> model = DaskGoalClassifier(goals=["recall(train) >= 0.9"], by="sex")
    >>> model.fit(frame, "label", sensitive_features=["sex"]).rules_  # doctest: +SKIP
    """

    kind = GoalClassifier

    def _fit_rows(self, rows: Rows, client: Any, n_shards: int | None) -> None:
        local = self.local
        check(local)
        client = as_client(client)
        step = None if local.is_prefit else _FOLDS if local.cv == "auto" else check_count(local.cv, "cv", 2)
        only = None if step is None else Every(step)
        seed = int(generator_of(local.random_state).integers(2**31))
        named = named_models(_models(local.estimator, seed))
        models = [model for _, model in named]
        seen = rows.seen_by(models) if step is None else rows  # a copy is trained on all features
        with shards_of(seen, client, n_shards, only) as shards:
            found = prepare(shards)
            check_rows(local, found.cells)
            if step is not None:
                models = [train_over(model, rows, client, step, seed) for model in models]
            decide_over(local, found, [(name, model) for (name, _), model in zip(named, models, strict=True)])


def _models(estimator: Any, seed: int) -> list[Any]:
    """Return the models to train, or those that are fitted."""
    if estimator is None:
        from lightgbm import DaskLGBMClassifier  # noqa: PLC0415 - optional

        return [DaskLGBMClassifier(random_state=seed, verbose=-1)]
    return list(listed(estimator))
