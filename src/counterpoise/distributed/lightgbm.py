"""LightGBM's own training over a Dask cluster."""

from collections.abc import Sequence
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray
from counterpoise.distributed.partitions import Part, Partitions
from counterpoise.distributed.rows import X, Y

_GLANCE = 1.0  # seconds after which we look whether all workers are still there


class TrainingRows(NamedTuple):
    """Rows that the cluster holds, as the collections that LightGBM takes."""

    rows: Partitions  # those that hold rows, persisted
    sizes: Sequence[int]
    features: Any  # dask DataFrame or Array
    labels: Any  # dask Array

    @classmethod
    def of(cls, partitions: Partitions) -> "TrainingRows":
        """Return rows to train on, after checking that each partition has rows of all classes."""
        kept = partitions.persist()
        labels = kept.map(_labels_of)
        tasks = [task for task, (size, _) in zip(kept.tasks, labels, strict=True) if size]
        rows, sizes = Partitions(tasks), [size for size, _ in labels if size]
        classes = set().union(*(found for _, found in labels))
        for number, (size, found) in enumerate(labels):
            if size and found != classes:
                raise ValueError(
                    "LightGBM trains over Dask only where each partition has rows of all classes; there are none of "
                    f"{min(classes - found)!r} in partition {number}. Shuffle the rows, or use fewer partitions."
                )
        parts = rows.then(_features_of)
        if hasattr(first := parts.tasks[0].compute(), "iloc"):
            import dask.dataframe as dd  # noqa: PLC0415 - optional

            features = dd.from_delayed(list(parts.tasks), meta=first.iloc[:0], verify_meta=False)
        else:
            features = parts.array(sizes, first.dtype, first.shape[1])
        return cls(rows, sizes, features, rows.then(_column_of, Y).array(sizes, np.asarray(sorted(classes)).dtype))

    def column(self, role: str) -> Any:
        """Return a role of the rows as a Dask Array of floats."""
        return self.rows.then(_column_of, role).array(self.sizes, np.float64)


def _labels_of(part: Part) -> tuple[int, set[Any]]:
    return len(part[Y]), set(np.unique(part[Y]).tolist())


def _features_of(part: Part) -> Any:
    return part[X]


def _column_of(part: Part, role: str) -> AnyArray:
    return np.asarray(part[role])


def is_lightgbm(model: Any) -> bool:
    """Return whether it is an estimator of LightGBM for Dask."""
    return type(model).__module__.startswith("lightgbm.dask")


def lightgbm_over_dask(seed: int) -> Any:
    """Return LightGBM's classifier for Dask."""
    from lightgbm import DaskLGBMClassifier  # noqa: PLC0415 - optional

    return DaskLGBMClassifier(random_state=seed, verbose=-1)


def train_lightgbm(model: Any, rows: TrainingRows, sample_weight: Any = None) -> Any:
    """Return the model for one machine that LightGBM trains over the cluster; its trees may depend on the workers.

    LightGBM does not recover a worker that is lost while it trains. It then fails or waits for ever, so it runs in a
    thread that is left alone where a worker is gone.
    """
    from distributed import default_client  # noqa: PLC0415 - optional

    try:
        client = model.client or default_client()
    except ValueError:
        raise ValueError(
            "LightGBM trains on a Dask cluster, and there is no client. Make one, for this machine with `from "
            "distributed import Client; client = Client(threads_per_worker=1)`."
        ) from None
    model.set_params(client=client)
    workers, outcomes = set(client.nthreads()), list[Any]()

    def train() -> None:
        try:
            outcomes.append(model.fit(rows.features, rows.labels, sample_weight=sample_weight).to_local())
        except Exception as error:  # noqa: BLE001 - raised where the result is used
            outcomes.append(error)

    thread = Thread(target=train, daemon=True)
    thread.start()
    while thread.is_alive() and workers <= set(client.nthreads()):
        thread.join(_GLANCE)
    failed = not outcomes or isinstance(outcomes[0], Exception)
    if failed:
        thread.join(_GLANCE)  # until the scheduler knows which workers are gone
    if failed and not workers <= set(client.nthreads()):
        raise RuntimeError(
            "A worker of the Dask cluster was lost while LightGBM trained, which it cannot go on without. Fit "
            "again; if it happens again, the worker needs more memory than it has: use more workers, or larger ones."
        ) from (outcomes[0] if outcomes else None)
    if failed:
        raise outcomes[0]
    return outcomes[0]
