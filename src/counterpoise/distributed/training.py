"""Training models of other libraries on Dask collections: their own distributed training, or a sample."""

from typing import Any

import numpy as np

from counterpoise.distributed.collections import Every, Load, Rows, partitions_of
from counterpoise.distributed.rows import SAMPLE_WEIGHT, X, Y
from counterpoise.learners.resampling import fresh_copy
from counterpoise.mixtures.folds import trained_copy

_MOST_ROWS = 1_000_000  # that a model of one machine is trained on


def train_over(model: Any, rows: Rows, client: Any, step: int, seed: int) -> Any:
    """Return a copy of a model trained on the rows of each partition but for every ``step``-th.

    Random states that are not set are set from the seed.
    """
    if type(model).__module__.startswith("lightgbm.dask"):
        return _by_lightgbm(fresh_copy(model, seed, only_unset=True), rows, client, step)
    loads, partitions = partitions_of(rows, 1 << 30, Every(step, others=True))
    from dask import delayed  # noqa: PLC0415 - optional

    lengths = [delayed(_n_rows)(load, parts) for load, parts in zip(loads, partitions, strict=True)]
    again = -(-sum(client.gather(client.compute(lengths))) // _MOST_ROWS)
    loads, partitions = partitions_of(rows, 1 << 30, Every(step, others=True, again=again))
    found = client.gather(client.compute([delayed(load)(parts) for load, parts in zip(loads, partitions, strict=True)]))
    joined = Load({}).joined([one for one in found if len(one[X])])
    return trained_copy(model, joined[X], np.asarray(joined[Y]), joined.get(SAMPLE_WEIGHT), seed)


def _n_rows(load: Load, parts: list[Any]) -> int:
    return len(load(parts)[X])


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
