"""Labelled rows with all that belongs to them: as methods take them, as models do, and beside what was kept."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import is_frame
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.goals import Table
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.pool import groups_of


class Given(NamedTuple):
    """Labelled rows with all that belongs to them, as the methods take them, and other datasets."""

    X: Any = None
    y: Any = None
    sensitive_features: Any = None
    baseline: Any = None
    sample_weight: ArrayLike | None = None
    largest_weight: float | None = None
    datasets: Mapping[str, Table] | None = None

    def check(self) -> None:
        """Check that rows and what belongs to them came together, or none of it."""
        if self.X is None and any(part is not None for part in (self.y, self.sample_weight, self.largest_weight)):
            raise ValueError("y or weights came without X; pass X and y together, or neither.")
        if self.X is not None and self.y is None:
            raise ValueError("X came without y; mixtures are chosen and checked on labelled rows.")

    def table(self, y: AnyArray) -> Table:
        """Return the rows with their labels as goals see them."""
        features = self.X if is_frame(self.X) else np.empty((len(y), 0))
        weights: dict[str, Any] = {"sample_weight": self.sample_weight, "largest_weight": self.largest_weight}
        return Table(features, y, self.sensitive_features, self.baseline, **weights)


class Labelled(NamedTuple):
    """Labelled rows as models take them, the places of their labels among the classes, weights and groups."""

    X: Any
    codes: IntArray
    sample_weight: FloatArray | None
    groups: IntArray | None
    table: Table  # the same rows as goals see them


def with_columns(kept: Any, given: Given) -> Any:
    """Return evidence with other sensitive features, or answers of the deployed model, for the labelled rows."""
    tables = kept.answers.tables
    names = ("sensitive_features", "baseline")
    parts = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    if given.sensitive_features is not None:
        kept = kept._replace(groups=groups_of(given.sensitive_features, tables[TRAIN].n_samples)[0])
    return kept._replace(answers=replace(kept.answers, tables={**tables, TRAIN: tables[TRAIN].replaced(**parts)}))
