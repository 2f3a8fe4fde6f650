"""Labelled rows in shards: what each shard holds, what must be the same in all of them, and the cells of the rows.

``inspect_rows`` collects facts about the rows of every shard, refuses shards that differ in their columns, and encodes
labels and weights in place.

A *cell* is the set of rows with the same label, the same baseline prediction and the same values in the columns that
goals and rules may use. No goal distinguishes two rows of one cell. So a table with one row for each cell, weighted by
the mass of its rows, gives the same rates as a table of all rows, whatever their number. The predictions of a model
enter as further columns: rows of one cell that all models answer alike are counted together (``count_answers``).
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import check_sample_weight
from counterpoise._base.frames import column_names, is_frame, take_rows
from counterpoise._base.shards import Shard, Shards, total
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.goals import Table
from counterpoise.goals.classes import as_labels
from counterpoise.goals.tables import find_levels
from counterpoise.learners.binning import sample_places
from counterpoise.rules.rows import stack_rows
from counterpoise.solvers.rows import whole_masses

# Names in a shard: features, labels, columns that goals and rules may use, baseline predictions, weights;
# then the labels as codes, and what each row weighs as whole numbers.
X, Y, COLUMNS, BASELINE, SAMPLE_WEIGHT = "X", "y", "columns", "baseline", "sample_weight"
CODES, MASS = "codes", "mass"
_SANE = 1e-200, 1e200  # sums of weights whose parts of 2**-53 are numbers of full precision
_MOST_CLASSES = 1000  # distinct labels: more are no classes


class Facts(NamedTuple):
    """Facts about the rows of one shard."""

    n_rows: int
    n_features: int
    names: tuple[str, ...] | None  # of the features
    columns: tuple[str, ...]
    labels: AnyArray  # the different ones, sorted
    weight: float  # of all rows
    least_weight: float
    are_equal: bool = True  # all rows weigh 1


class TotalFacts(NamedTuple):
    """Facts about the rows of all shards."""

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

    def table_weights(self, mass: FloatArray) -> dict[str, Any]:
        """Return masses of rows that are alike as a table takes them: where all weigh the same, as numbers of rows."""
        return {"counts" if self.are_equal else "sample_weight": mass}


def facts_of(shard: Shard) -> Facts:
    """Return the facts about the rows of a shard."""
    features, labels = shard[X], np.asarray(shard[Y])
    if labels.shape != (len(features),):
        raise ValueError(
            f"y must hold one label for each of the {len(features)} rows of X in shard {shard.number}; got shape "
            f"{labels.shape}. Collections must be cut at the same rows."
        )
    weights = _weights(shard)
    names = tuple(map(str, column_names(features))) if is_frame(features) else None
    live = weights[weights > 0]
    sums = float(weights.sum()), float(live.min(initial=np.inf)), bool((weights == 1).all())
    columns = tuple(shard.get(COLUMNS) or ())
    return Facts(len(features), int(features.shape[1]), names, columns, np.unique(labels), *sums)


def _weights(shard: Shard) -> FloatArray:
    n_rows, raw_weights = len(shard[X]), shard.get(SAMPLE_WEIGHT)
    if raw_weights is None:
        return np.ones(n_rows)
    weights = np.asarray(raw_weights)
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


def inspect_rows(shards: Shards, all_classes: Callable[[AnyArray], AnyArray] | None = None) -> TotalFacts:
    """Inspect the rows of all shards, refuse shards that differ, and encode labels and weights.

    ``all_classes`` returns the classes, given those of the labels: models may know more.
    """
    shard_facts = shards.map(facts_of)
    classes, total = check_facts(shard_facts)
    classes = classes if all_classes is None else all_classes(classes)
    masses = shards.change("encode", encode, classes, total)
    return merge_facts(shard_facts, classes, masses)


def check_facts(shard_facts: Sequence[Facts]) -> tuple[AnyArray, float | None]:
    """Return the classes and the weight of all rows, None where all weigh the same; refuse shards that differ."""
    require_alike([one.names for one in shard_facts], "the features")
    require_alike([one.n_features for one in shard_facts], "the number of features")
    require_alike([one.columns for one in shard_facts], "the columns of sensitive_features")
    classes, weight = classes_in(shard_facts), sum(one.weight for one in shard_facts)
    if not weight > 0:
        raise ValueError("sample_weight must have at least one entry above zero; got zeros only.")
    if not _SANE[0] < weight < _SANE[1]:
        raise ValueError(f"sample_weight must have a sum neither tiny nor huge; got {weight:g}. Scale it.")
    return classes, None if all(one.are_equal for one in shard_facts) else weight


def merge_facts(parts: Sequence[Facts], classes: AnyArray, masses: Sequence[tuple[float, float]]) -> TotalFacts:
    """Return the facts about all rows, from those of each part and the sum and the least of its masses."""
    names = None if parts[0].names is None else np.array(parts[0].names, dtype=object)
    sizes = np.array([one.n_rows for one in parts])
    whole, least = sum(mass for mass, _ in masses), min(least for _, least in masses)
    are_equal = all(one.are_equal for one in parts)
    return TotalFacts(sizes, parts[0].n_features, names, parts[0].columns, classes, whole, least, are_equal)


def require_alike(values: Sequence[Any], what: str) -> None:
    """Refuse parts of the rows that differ in something."""
    for number, one in enumerate(values):
        if one != values[0]:
            texts = [", ".join(map(str, it)) or "none" if isinstance(it, tuple) else str(it) for it in (values[0], one)]
            raise ValueError(
                f"All partitions must have the same columns; {what} of shard 0 are {texts[0]}, those of shard {number} "
                f"are {texts[1]}. Read them with one schema, or name the columns to take."
            )


def classes_in(shard_facts: Sequence[Facts]) -> AnyArray:
    """Return the labels of all rows, sorted."""
    kinds = {one.labels.dtype.kind for one in shard_facts if one.n_rows}
    try:
        classes = np.unique(np.concatenate([one.labels for one in shard_facts if one.n_rows]))
    except ValueError as error:
        raise ValueError("There are no rows in any partition: a fit needs some of each class.") from error
    if len(kinds & set("OSU")) > 0 and kinds & set("biuf"):
        raise ValueError(f"y must hold labels of one type in all partitions; got {classes.tolist()!r}.")
    if not 1 < len(classes) <= _MOST_CLASSES:
        raise ValueError(
            f"y must hold two classes or more, and at most {_MOST_CLASSES}; got {len(classes)} different labels in "
            f"{len(shard_facts)} shard(s){f', {classes.tolist()[0]!r} alone' if len(classes) == 1 else ''}."
        )
    return classes


CELL = "cell"  # the name in a shard of the cell of each row
_CODED = "coded"  # which of the shard's cells each row is in, for a while
MOST_CELLS = 100_000  # that a table of them is worth

Values = tuple[Hashable, ...]  # the code of the label, the answer of the deployed model, the columns


class Cells(NamedTuple):
    """The different cells, sorted, and what each weighs."""

    values: list[Values]
    mass: FloatArray
    n_rows: FloatArray  # how many rows each has
    facts: TotalFacts
    has_baseline: bool

    @property
    def labels(self) -> IntArray:
        """Return the code of each cell's label."""
        return np.array([value[0] for value in self.values], dtype=np.int64)

    def table(self) -> Table:
        """Return the cells as a table of labelled rows."""
        columns = dict(zip(self.facts.columns, list(zip(*self.values, strict=True))[2:], strict=True))
        baseline = as_labels([value[1] for value in self.values]) if self.has_baseline else None
        arrays = {name: column_of(values) for name, values in columns.items()} or None
        weights = self.facts.table_weights(self.mass)
        table = Table(None, self.facts.classes[self.labels], arrays, baseline, **weights)
        table.row_numbers = self.n_rows
        return table

    def table_of(self, numbers: IntArray, mass: FloatArray, n_rows: FloatArray) -> Table:
        """Return rows that were counted within cells as a table, given the number of the cell of each."""
        table = self.table()
        columns = {name: table.column(name)[numbers] for name in table.columns} or None
        labels, baseline = (None if one is None else one[numbers] for one in (table.y, table.baseline))
        counted = Table(None, labels, columns, baseline, **self.facts.table_weights(mass))
        counted.row_numbers = n_rows
        return counted


def column_of(values: tuple[Hashable, ...]) -> AnyArray:
    """Return values as an array, of objects where some are missing."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column if None in values else as_labels(values)


def find_cells(shards: Shards, facts: TotalFacts) -> Cells:
    """Divide the rows into cells, and leave the cell of each row in its shard."""
    parts = shards.map(_find_values)
    values = sorted(set().union(*(part for part, _ in parts)), key=in_order)
    check_few_cells(len(values), facts)
    mass, n_rows = total(shards.change(CELL, _number_cells, values))
    return Cells(values, mass, n_rows, facts, any(has_baseline for _, has_baseline in parts))


def in_order(value: Values) -> tuple[Any, ...]:
    """Return what cells are sorted by, whatever their values are."""
    return tuple((type(one).__name__, str(one), one if isinstance(one, (int, float)) else 0) for one in value)


def check_few_cells(n_cells: int, facts: TotalFacts) -> None:
    """Refuse columns that divide the rows into too many cells."""
    if n_cells > MOST_CELLS:
        raise ValueError(
            f"The columns {', '.join(facts.columns)} divide the rows into {n_cells} different groups, more than "
            f"{MOST_CELLS}. Name only columns that goals or by use, and cut numbers into a few ranges first."
        )


def code_cells(shard: Shard, labels: str = CODES, answers: Sequence[AnyArray] = ()) -> tuple[IntArray, list[Values]]:
    """Return which of the different combinations of labels, baseline, columns and answers each row has, and those."""
    import pandas as pd  # noqa: PLC0415 - it numbers the values of a million rows faster than sorting, or a loop

    baseline = shard.get(BASELINE)
    columns = [shard[labels], np.zeros(len(shard[labels]), dtype=np.int8) if baseline is None else baseline]
    parts = list(map(np.asarray, [*columns, *(shard.get(COLUMNS) or {}).values(), *answers]))
    numbers, levels = np.zeros(len(parts[0]), dtype=np.int64), list[tuple[list[Hashable], IntArray]]()
    for part in parts:
        if part.dtype.kind in "mM":  # as texts: their lists would be of nanoseconds
            values, own, _ = find_levels(part, "")
        else:
            own, found = pd.factorize(part)
            values = np.asarray(found).tolist()
        own = np.where(own < 0, len(values), own)  # missing ones come last, as None
        levels.append(([*values, None], own))
        numbers = pd.factorize(numbers * (len(values) + 1) + own)[0]
    firsts = np.flatnonzero(np.diff(np.maximum.accumulate(numbers), prepend=-1))  # the numbers are in order of these
    return numbers, [tuple(values[own[first]] for values, own in levels) for first in firsts.tolist()]


def _find_values(shard: Shard) -> tuple[set[Values], bool]:
    shard[_CODED] = code_cells(shard)  # for what comes next
    return set(shard[_CODED][1]), shard.get(BASELINE) is not None


def _number_cells(shard: Shard, values: list[Values]) -> FloatArray:
    """Leave the cell of each row in the shard, and return the mass of each cell and its number of rows."""
    place = {value: number for number, value in enumerate(values)}
    numbers, own_values = shard.pop(_CODED, None) or code_cells(shard)
    own = np.array([place[value] for value in own_values], dtype=np.int64)
    shard[CELL] = own[numbers] if len(own_values) else np.empty(0, dtype=np.int64)
    sums = [np.bincount(shard[CELL], weights, len(values)) for weights in (shard[MASS], None)]
    return np.array(sums, dtype=np.float64)


class CountedAnswers(NamedTuple):
    """Rows of one cell that models answer alike, with their number."""

    cells: IntArray  # (n_kinds,): the number of the cell
    codes: IntArray  # (n_kinds, n_models): the predicted class
    mass: FloatArray
    n_rows: FloatArray

    def merge(self) -> "CountedAnswers":
        """Return the same with what is alike added up, in an order of its own."""
        import pandas as pd  # noqa: PLC0415 - it numbers the values of a million rows faster than sorting

        numbers, n_codes = self.cells, int(self.codes.max(initial=0)) + 1
        for codes in self.codes.T:
            numbers = pd.factorize(numbers * n_codes + codes)[0]
        _, firsts, numbers = np.unique(numbers, return_index=True, return_inverse=True)
        sums = [np.bincount(numbers, weights, firsts.size) for weights in (self.mass, self.n_rows)]
        order = np.lexsort([*self.codes[firsts].T[::-1], self.cells[firsts]])
        return CountedAnswers(self.cells[firsts][order], self.codes[firsts][order], *(one[order] for one in sums))


_MOST_KINDS = 4_000_000  # of rows that are counted together


def count_answers(shards: Shards, members: Sequence[Any]) -> CountedAnswers:
    """Return the rows of all shards by their cell and what each of some models answers."""
    parts = shards.map(_count_answers, members)
    counted = CountedAnswers(*(np.concatenate(one) for one in zip(*parts, strict=True))).merge()
    if len(counted.mass) > _MOST_KINDS:
        raise ValueError(
            f"The groups and the answers of the models divide the rows into {len(counted.mass)} different kinds, more "
            f"than {_MOST_KINDS}: too many to choose among models in one place. Name fewer columns or models."
        )
    return counted


def _count_answers(shard: Shard, members: Sequence[Any]) -> CountedAnswers:
    n_rows = len(shard[CODES])
    columns = [member.ask(shard[X]) for member in members] if n_rows else [np.empty(0, dtype=np.uint8) for _ in members]
    return CountedAnswers(shard[CELL], np.column_stack(columns), shard[MASS], np.ones(n_rows)).merge()


def sample_over(shards: Shards) -> Any:
    """Return a sample of rows that does not depend on the shards, from which the scales of draws are learned."""
    sizes = np.array(shards.map(_n_rows))
    places = sample_places(int(sizes.sum()))
    numbers = np.arange(sizes.sum()) if places is None else places
    parts = shards.map(_rows_at, numbers, np.cumsum(sizes) - sizes)
    return stack_rows([part for part in parts if part.shape[0]])


def _n_rows(shard: Shard) -> int:
    return int(shard[X].shape[0])


def _rows_at(shard: Shard, places: IntArray, firsts: IntArray) -> Any:
    first = int(firsts[shard.number])
    inside = places[(places >= first) & (places < first + shard[X].shape[0])]
    return take_rows(shard[X], inside - first)
