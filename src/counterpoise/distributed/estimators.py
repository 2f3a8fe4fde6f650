"""Estimators on Dask collections: the boosters of one machine, fitted where the rows are."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

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
from counterpoise.mixtures.answers import find_positive
from counterpoise.mixtures.draws import generator_of
from counterpoise.mixtures.goal import GoalClassifier, listed
from counterpoise.mixtures.mixture import MixtureClassifier
from counterpoise.mixtures.pool import named_models, titled_models


@contextmanager
def shards_of(rows: Rows, client: Any, n_shards: int | None, only: Every | None = None) -> Iterator[Shards]:
    """Put rows, or some of each partition, into shards on the workers of a cluster, by default one on each worker."""
    client = as_client(client)
    n_held = max(1, len(client.nthreads())) if n_shards is None else n_shards
    with DaskShards(list(map(Parts, *partitions_of(rows, n_held, only))), client) as shards:
        yield shards


_FOLDS = 5  # that cv="auto" stands for


class OverDask:
    """What the estimators on Dask collections share."""

    _twin: ClassVar[type]

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
            fit_over(self, shards)

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
        check_is_fitted(self, "mixture_")
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        twin = self._twin(**params)
        twin.__dict__.update(copy.copy(self.__dict__))
        return twin

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


class DaskAdaLPBoostClassifier(OverDask, AdaLPBoostClassifier):  # type: ignore[misc]  # other rows are taken
    """``AdaLPBoostClassifier`` on Dask collections.

    The parameters are those of ``AdaLPBoostClassifier``. Rounds are judged on the rows they are trained on. Rows,
    losses and weights stay on the workers: a round sends histograms of the tree's nodes, and a few sums.

    Examples
    --------
    >>> from counterpoise.distributed import DaskAdaLPBoostClassifier
    >>> model = DaskAdaLPBoostClassifier(n_estimators=20, alpha=0.1)
    >>> model.fit(frame, "label", sensitive_features=["sex"])  # doctest: +SKIP
    """

    _twin = AdaLPBoostClassifier


class DaskLPBoostClassifier(OverDask, LPBoostClassifier):  # type: ignore[misc]  # other rows are taken
    """``LPBoostClassifier`` on Dask collections.

    The parameters are those of ``LPBoostClassifier``. Rounds train for the goals: a table of what answers cost in each
    group of rows that goals tell apart travels to the rows.

    Examples
    --------
    >>> from counterpoise.distributed import DaskLPBoostClassifier
    >>> model = DaskLPBoostClassifier(n_estimators=20, alpha=0.1)
    >>> model.fit("rows.parquet", "label")  # doctest: +SKIP
    """

    _twin = LPBoostClassifier


class DaskMixtureClassifier(OverDask, MixtureClassifier):  # type: ignore[misc]  # other rows are taken
    """``MixtureClassifier`` on Dask collections.

    The parameters are those of ``MixtureClassifier``: models that are fitted, sent to the rows and asked there.

    Examples
    --------
    >>> from counterpoise.distributed import DaskMixtureClassifier
    >>> model = DaskMixtureClassifier(pool, alpha=0.1, goals=["recall(train) >= 0.9"])  # doctest: +SKIP
    >>> model.fit(frame, "label").predict(frame)  # doctest: +SKIP
    """

    _twin = MixtureClassifier

    def _fit_rows(self, rows: Rows, client: Any, n_shards: int | None) -> None:
        rows = rows.seen_by([model for _, model in named_models(self.estimators)])
        with shards_of(rows, client, n_shards) as shards:
            mix_over(self, shards)


class DaskGoalClassifier(OverDask, GoalClassifier):  # type: ignore[misc]  # other rows are taken
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

    _twin = GoalClassifier

    def _fit_rows(self, rows: Rows, client: Any, n_shards: int | None) -> None:
        check(self)
        client = as_client(client)
        step = None if self._is_prefit else _FOLDS if self.cv == "auto" else check_count(self.cv, "cv", 2)
        only = None if step is None else Every(step)
        seed = int(generator_of(self.random_state).integers(2**31))
        named = named_models(self._listed(seed))
        models = [model for _, model in named]
        seen = rows.seen_by(models) if step is None else rows  # a copy is trained on all features
        with shards_of(seen, client, n_shards, only) as shards:
            found = prepare(shards)
            check_rows(self, found.cells)
            if step is not None:
                models = [train_over(model, rows, client, step, seed) for model in models]
            self._forget_choice()
            self.classes_, self.names_ = found.cells.known.classes, [name for name, _ in named]
            self._let_decide(models, titled_models(named), find_positive(self.classes_, self.pos_label))
            decide_over(self, found)

    def _listed(self, seed: int) -> list[Any]:
        if self.estimator is None:
            from lightgbm import DaskLGBMClassifier  # noqa: PLC0415 - optional

            return [DaskLGBMClassifier(random_state=seed, verbose=-1)]
        return list(listed(self.estimator))
