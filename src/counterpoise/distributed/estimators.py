"""Estimators on Dask collections: the boosters of one machine, fitted where the rows are."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np

from counterpoise._base.shards import Shards
from counterpoise.boosting.adalpboost import AdaLPBoostClassifier
from counterpoise.boosting.lpboost import LPBoostClassifier
from counterpoise.distributed.collections import Rows, partitions_of
from counterpoise.distributed.dask_shards import DaskShards
from counterpoise.distributed.fitting import fit_over


@contextmanager
def shards_of(rows: Rows, client: Any, n_shards: int | None) -> Iterator[Shards]:
    """Put rows into shards on the workers of a cluster, by default one on each worker."""
    try:
        from distributed import default_client  # noqa: PLC0415 - optional
    except ImportError as error:
        raise ImportError('Dask is not installed: pip install "counterpoise[dask]".') from error
    try:
        client = default_client() if client is None else client
    except ValueError:
        raise ValueError(
            "There is no Dask client: make one, as with client = dask.distributed.Client(), before fit, or pass it."
        ) from None
    n_workers = len(client.scheduler_info(n_workers=-1)["workers"])
    with DaskShards(client, *partitions_of(rows, n_shards or max(1, n_workers))) as shards:
        yield shards


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
        client : distributed.Client, optional
            Default: the present one.
        n_shards : int, optional
            How many shards the partitions are joined to. Default: one for each worker. It does not change the result.

        Returns
        -------
        self
        """
        given = Rows(X, y, sensitive_features, baseline, sample_weight)
        with shards_of(given, client, n_shards) as shards:
            self._fit_over(shards)
        return self

    def _fit_over(self, shards: Shards) -> None:
        fit_over(self, shards)

    def to_local(self) -> Any:
        """Return the fitted estimator of one machine that decides the same."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        twin = self._twin(**params)
        twin.__dict__.update(copy.copy(self.__dict__))
        return twin

    def predict(self, X: Any, **more: Any) -> Any:
        """Decide about every row: lazily, partition by partition, of a Dask collection."""
        return self._lazily("predict", X, more)

    def predict_proba(self, X: Any, **more: Any) -> Any:
        """Return the probability that a draw says each class: lazily of a Dask collection."""
        return self._lazily("predict_proba", X, more)

    def _lazily(self, method: str, X: Any, more: dict[str, Any]) -> Any:
        model = self.to_local()
        if not hasattr(X, "dask"):
            return getattr(model, method)(X, **more)
        many = method == "predict_proba"
        if hasattr(X, "map_blocks"):
            rows = X.rechunk({1: -1})
            shape: dict[str, Any] = {"chunks": (rows.chunks[0], (len(self.classes_),))} if many else {"drop_axis": 1}  # type: ignore[attr-defined]
            dtype = np.float64 if many else self.classes_.dtype  # type: ignore[attr-defined]
            return rows.map_blocks(_asked, model, method, more, dtype=dtype, **shape)
        return X.map_partitions(_asked_frame, model, method, more, meta=_meta(self.classes_, many))  # type: ignore[attr-defined]


def _asked(X: Any, model: Any, method: str, more: dict[str, Any]) -> Any:
    return getattr(model, method)(X, **more)


def _asked_frame(X: Any, model: Any, method: str, more: dict[str, Any]) -> Any:
    import pandas as pd  # noqa: PLC0415 - the rows are of it

    if not len(X):
        return _meta(model.classes_, method == "predict_proba")
    said = getattr(model, method)(X, **more)
    return pd.Series(said, X.index) if said.ndim == 1 else pd.DataFrame(said, X.index, list(model.classes_))


def _meta(classes: Any, many: bool) -> Any:
    import pandas as pd  # noqa: PLC0415 - as above

    if many:
        return pd.DataFrame({label: pd.Series(dtype=np.float64) for label in classes.tolist()})
    return pd.Series(pd.Series(classes[:0]).array, dtype=pd.Series(classes).dtype)


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

    The parameters are those of ``LPBoostClassifier``. Goals choose the mixture; rounds do not train for them.

    Examples
    --------
    >>> from counterpoise.distributed import DaskLPBoostClassifier
    >>> model = DaskLPBoostClassifier(n_estimators=20, alpha=0.1)
    >>> model.fit("rows.parquet", "label")  # doctest: +SKIP
    """

    _twin = LPBoostClassifier
