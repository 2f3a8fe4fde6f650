"""Labelled rows in shards: what each holds, and what must be alike in all of them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import check_sample_weight, is_frame
from counterpoise._base.shards import Shard, Shards
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.solvers.rows import whole_masses

# Names in a shard: features, labels, columns that goals and rules may look at, answers of the deployed model, weights;
# then the labels as codes, and what each row weighs as whole numbers.
X, Y, COLUMNS, BASELINE, SAMPLE_WEIGHT = "X", "y", "columns", "baseline", "sample_weight"
CODES, MASS = "codes", "mass"
_SANE = 1e-200, 1e200  # sums of weights whose parts of 2**-53 are numbers of full precision
_MOST_CLASSES = 1000  # distinct labels: more are no classes


class Facts(NamedTuple):
    """What a shard tells about its rows."""

    n_rows: int
    n_features: int
    names: tuple[str, ...] | None  # of the features
    columns: tuple[str, ...]
    labels: AnyArray  # the different ones, sorted
    weight: float  # of all rows
    least_weight: float
    are_equal: bool = True  # all rows weigh 1


class Known(NamedTuple):
    """What is known of the rows of all shards."""

    sizes: AnyArray  # rows of each shard
    n_features: int
    names: AnyArray | None
    columns: tuple[str, ...]
    classes: AnyArray
    total: float  # mass of all rows, a whole number
    least: float  # positive mass of a row
    are_equal: bool  # masses are numbers of rows

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return int(self.sizes.sum())

    def weighed(self, mass: FloatArray) -> dict[str, Any]:
        """Return masses of rows that are alike as a table takes them: where all weigh the same, as numbers of rows."""
        return {"counts" if self.are_equal else "sample_weight": mass}


def facts_of(shard: Shard) -> Facts:
    """Return what a shard tells about its rows."""
    features, labels = shard[X], np.asarray(shard[Y])
    if labels.shape != (len(features),):
        raise ValueError(
            f"y must hold one label for each of the {len(features)} rows of X in shard {shard.number}; got shape "
            f"{labels.shape}. Collections must be cut at the same rows."
        )
    weights = _weights(shard)
    names = tuple(map(str, features.columns)) if is_frame(features) else None
    live = weights[weights > 0]
    return Facts(
        len(features),
        int(features.shape[1]),
        names,
        tuple(shard.get(COLUMNS) or ()),
        np.unique(labels),
        float(weights.sum()),
        float(live.min(initial=np.inf)),
        bool((weights == 1).all()),
    )


def _weights(shard: Shard) -> FloatArray:
    n_rows, given = len(shard[X]), shard.get(SAMPLE_WEIGHT)
    if given is None:
        return np.ones(n_rows)
    weights = np.asarray(given)
    if weights.dtype.kind not in "biuf":
        raise ValueError(f"sample_weight must hold numbers; got {weights.dtype} in shard {shard.number}.")
    weights = weights.astype(np.float64)
    if n_rows and weights.any():  # those of one shard may all be zero
        check_sample_weight(weights, n_rows)
    return weights


def encode(shard: Shard, classes: AnyArray, total: float | None) -> tuple[float, float]:
    """Leave codes of labels and masses in the shard, and return the sum of the masses and the least of them."""
    shard[CODES] = np.searchsorted(classes, np.asarray(shard[Y])).astype(np.uint16)
    weights = _weights(shard)
    shard[MASS] = weights if total is None else whole_masses(weights, total)
    live = shard[MASS][shard[MASS] > 0]
    return float(shard[MASS].sum()), float(live.min(initial=np.inf))


def know(shards: Shards, all_classes: Callable[[AnyArray], AnyArray] | None = None) -> Known:
    """Look at the rows of all shards, say where they differ, and encode labels and weights.

    ``all_classes`` returns the classes, given those of the labels: models may know more.
    """
    found = shards.map(facts_of)
    classes, total = agreed(found)
    classes = classes if all_classes is None else all_classes(classes)
    masses = shards.change("encode", encode, classes, total)
    return known_of(found, classes, masses)


def agreed(found: Sequence[Facts]) -> tuple[AnyArray, float | None]:
    """Return the classes and the weight of all rows, None where all weigh the same, after a look at what differs."""
    require_alike([one.names for one in found], "the features")
    require_alike([one.n_features for one in found], "the number of features")
    require_alike([one.columns for one in found], "the columns of sensitive_features")
    classes, weight = classes_in(found), sum(one.weight for one in found)
    if not weight > 0:
        raise ValueError("sample_weight must have at least one entry above zero; got zeros only.")
    if not _SANE[0] < weight < _SANE[1]:
        raise ValueError(f"sample_weight must sum to a number that can be divided; got {weight:g}. Scale it.")
    return classes, None if all(one.are_equal for one in found) else weight


def known_of(found: Sequence[Facts], classes: AnyArray, masses: Sequence[tuple[float, float]]) -> Known:
    """Return what is known of all rows, given the sum and the least of the masses in each part of them."""
    names = None if found[0].names is None else np.array(found[0].names, dtype=object)
    sizes = np.array([one.n_rows for one in found])
    whole, least = sum(mass for mass, _ in masses), min(least for _, least in masses)
    are_equal = all(one.are_equal for one in found)
    return Known(sizes, found[0].n_features, names, found[0].columns, classes, whole, least, are_equal)


def require_alike(told: Sequence[Any], what: str) -> None:
    """Refuse parts of the rows that differ in something."""
    for number, one in enumerate(told):
        if one != told[0]:
            raise ValueError(
                f"All partitions must have the same columns; {what} of shard 0 are {_shown(told[0])}, those of shard "
                f"{number} are {_shown(one)}. Read them with one schema, or name the columns to take."
            )


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def classes_in(found: Sequence[Facts]) -> AnyArray:
    """Return the labels of all rows, sorted."""
    kinds = {one.labels.dtype.kind for one in found if one.n_rows}
    try:
        classes = np.unique(np.concatenate([one.labels for one in found if one.n_rows]))
    except ValueError as error:
        raise ValueError("There are no rows in any partition: a fit needs some of each class.") from error
    if len(kinds & set("OSU")) > 0 and kinds & set("biuf"):
        raise ValueError(f"y must hold labels of one type in all partitions; got {classes.tolist()!r}.")
    if not 1 < len(classes) <= _MOST_CLASSES:
        raise ValueError(
            f"y must hold two classes or more, and at most {_MOST_CLASSES}; got {len(classes)} different labels in "
            f"{len(found)} shard(s){f', {classes.tolist()[0]!r} alone' if len(classes) == 1 else ''}."
        )
    return classes
