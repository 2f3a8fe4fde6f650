"""Training models of other libraries on Dask collections: their own distributed training, or a sample."""

from typing import Any

import numpy as np
from sklearn.base import clone

from counterpoise.distributed.collections import Every, Load, Rows, partitions_of
from counterpoise.distributed.rows import SAMPLE_WEIGHT, X, Y
from counterpoise.learners.resampling import weight_argument

_MOST_ROWS = 1_000_000  # that a model of one machine is trained on


def train_over(model: Any, rows: Rows, client: Any, step: int) -> Any:
    """Return a model trained on the rows of each partition but for every ``step``-th."""
    model = clone(model)
    if type(model).__module__.startswith("lightgbm.dask"):
        return _by_lightgbm(model, rows, client, step)
    loads, partitions = partitions_of(rows, 1 << 30, Every(step, others=True))
    from dask import delayed  # noqa: PLC0415 - optional

    lengths = [delayed(_n_rows)(load, parts) for load, parts in zip(loads, partitions, strict=True)]
    again = -(-sum(client.gather(client.compute(lengths))) // _MOST_ROWS)
    loads, partitions = partitions_of(rows, 1 << 30, Every(step, others=True, again=again))
    found = client.gather(client.compute([delayed(load)(parts) for load, parts in zip(loads, partitions, strict=True)]))
    return _fitted(model, Load({}).joined([one for one in found if len(one[X])]))


def _n_rows(load: Load, parts: list[Any]) -> int:
    return len(load(parts)[X])


def _fitted(model: Any, rows: dict[str, Any]) -> Any:
    weights, argument = rows.get(SAMPLE_WEIGHT), weight_argument(model)
    return model.fit(rows[X], np.asarray(rows[Y]), **({} if weights is None or not argument else {argument: weights}))


def _by_lightgbm(model: Any, rows: Rows, client: Any, step: int) -> Any:
    """Train by LightGBM's own distributed training; its trees may depend on the workers."""
    import dask.dataframe as dd  # noqa: PLC0415 - optional
    from dask import delayed  # noqa: PLC0415

    loads, partitions = partitions_of(rows, 1 << 30, Every(step, others=True))
    loaded = [delayed(_framed)(load, parts) for load, parts in zip(loads, partitions, strict=True)]
    frame = dd.from_delayed(loaded, verify_meta=False)
    features = [name for name in frame.columns if name not in (Y, SAMPLE_WEIGHT)]
    given = {"sample_weight": frame[SAMPLE_WEIGHT]} if SAMPLE_WEIGHT in frame.columns else {}
    return model.set_params(client=client).fit(frame[features], frame[Y], **given).to_local()


def _framed(load: Load, parts: list[Any]) -> Any:
    import pandas as pd  # noqa: PLC0415 - optional

    held = load(parts)
    frame = held[X] if hasattr(held[X], "columns") else pd.DataFrame(np.asarray(held[X])).rename(columns=str)
    return frame.assign(**{role: np.asarray(held[role]) for role in (Y, SAMPLE_WEIGHT) if role in held})
