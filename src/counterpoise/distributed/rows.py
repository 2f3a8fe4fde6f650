"""Labelled rows in partitions: what each holds, what must be the same in all of them, and the cells of the rows.

``inspect_rows`` collects facts about the rows of every partition, refuses partitions that differ in their columns, and
counts the cells.

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
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.distributed.partitions import Part, Partitions
from counterpoise.goals import Table
from counterpoise.goals.classes import as_labels
from counterpoise.goals.tables import find_levels
from counterpoise.rules.rows import stack_rows

# Names in a partition: its number, features, labels, columns that goals and rules may use, baseline predictions and
# weights of the rows; then the cell of each row, and what it weighs.
NUMBER, X, Y, COLUMNS, BASELINE, SAMPLE_WEIGHT = "number", "X", "y", "columns", "baseline", "sample_weight"
CELL, MASS = "cell", "mass"
_SAMPLED = 20_000  # rows from which the scales of draws are learned
_SANE = 1e-200, 1e200  # sums of weights whose parts are numbers of full precision
_DIGITS = 52  # binary digits of a float
_MOST_CLASSES = 1000  # distinct labels: more are no classes


class Facts(NamedTuple):
    """Facts about the rows of one partition, and its cells."""

    n_rows: int
    n_features: int
    names: tuple[str, ...] | None  # of the features
    columns: tuple[str, ...]
    labels: AnyArray  # the different ones, sorted
    weight: float  # of all rows
    heaviest: float
    are_equal: bool  # all rows weigh 1
    has_baseline: bool
    cells: "dict[Values, tuple[float, float]]"  # the weight and the number of the rows of each, by label
    sample: Any  # some of the rows


class TotalFacts(NamedTuple):
    """Facts about the rows of all partitions."""

    n_features: int
    names: AnyArray | None
    columns: tuple[str, ...]
    classes: AnyArray
    are_equal: bool  # masses are numbers of rows
    largest: float  # weight, rounded up to a power of two
    unit: float  # of weights: sums of whole multiples of it over all rows are exact

    def whole(self, weights: FloatArray) -> FloatArray:
        """Return weights in whole multiples of the unit, so that their sums do not depend on the partitions."""
        return np.asarray(np.rint(weights / self.unit) * self.unit)

    def squares(self, weights: FloatArray) -> FloatArray:
        """Return squares of weights, in whole multiples of a unit of their own."""
        return self.whole(weights**2 / self.largest) * self.largest


def facts_of(part: Part, n_sampled: int) -> Facts:
    """Return the facts about the rows of a partition."""
    features, labels, weights = part[X], np.asarray(part[Y]), row_weights(part)
    names = tuple(map(str, column_names(features))) if is_frame(features) else None
    numbers, values = code_cells(part, labels)
    masses = np.bincount(numbers, weights, len(values)), np.bincount(numbers, minlength=len(values))
    cells = dict(zip(values, zip(*(one.tolist() for one in masses), strict=True), strict=True))
    n_taken = min(n_sampled, len(features))
    places = np.unique(np.linspace(0, len(features) - 1, n_taken).round().astype(np.int64))
    sums = float(weights.sum()), float(weights.max(initial=0.0)), bool((weights == 1).all()), BASELINE in part
    columns, sample = tuple(part.get(COLUMNS) or ()), take_rows(features, places)
    return Facts(len(features), int(features.shape[1]), names, columns, np.unique(labels), *sums, cells, sample)


def row_weights(part: Part) -> FloatArray:
    """Return what each row of a partition weighs."""
    n_rows, raw_weights = len(part[X]), part.get(SAMPLE_WEIGHT)
    if raw_weights is None:
        return np.ones(n_rows)
    weights = np.asarray(raw_weights)
    if weights.dtype.kind not in "biuf":
        raise ValueError(f"sample_weight must hold numbers; got {weights.dtype} in partition {part[NUMBER]}.")
    weights = weights.astype(np.float64)
    if n_rows and weights.any():  # those of one partition may all be zero
        check_sample_weight(weights, n_rows)
    return weights


def inspect_rows(
    partitions: Partitions, all_classes: Callable[[AnyArray], AnyArray] | None = None
) -> "tuple[Cells, Any]":
    """Return the cells of all rows, and a sample of rows; refuse partitions that differ, and too many cells.

    ``all_classes`` returns the classes, given those of the labels: models may know more.
    """
    facts = partitions.map(facts_of, -(-_SAMPLED // len(partitions.tasks)))
    require_alike([one.names for one in facts], "the features")
    require_alike([one.n_features for one in facts], "the number of features")
    require_alike([one.columns for one in facts], "the columns of sensitive_features")
    classes, weight = classes_in(facts), sum(one.weight for one in facts)
    if not weight > 0:
        raise ValueError("sample_weight must have at least one entry above zero; got zeros only.")
    if not _SANE[0] < weight < _SANE[1]:
        raise ValueError(f"sample_weight must have a sum neither tiny nor huge; got {weight:g}. Scale it.")
    classes = classes if all_classes is None else all_classes(classes)
    names = None if facts[0].names is None else np.array(facts[0].names, dtype=object)
    are_equal = all(one.are_equal for one in facts)
    largest = 2.0 ** int(np.frexp(max(one.heaviest for one in facts))[1])
    unit = largest * 2.0 ** (sum(one.n_rows for one in facts).bit_length() - _DIGITS)
    whole = TotalFacts(facts[0].n_features, names, facts[0].columns, classes, are_equal, largest, unit)
    sums: dict[Values, FloatArray] = {}
    codes = {label: code for code, label in enumerate(classes.tolist())}
    for (label, *others), one in ((value, one) for part in facts for value, one in part.cells.items()):
        value = (codes[label], *others)
        sums[value] = sums.get(value, np.zeros(2)) + one
    if len(sums) > MOST_CELLS:
        raise ValueError(
            f"The columns {', '.join(whole.columns)} divide the rows into {len(sums)} different groups, more than "
            f"{MOST_CELLS}. Name only columns that goals or by use, and cut numbers into a few ranges first."
        )
    values = sorted(sums, key=in_order)
    mass, n_rows = np.array([sums[value] for value in values]).T
    cells = Cells(values, mass, n_rows, whole, any(one.has_baseline for one in facts))
    return cells, stack_rows([one.sample for one in facts if one.n_rows])


def require_alike(values: Sequence[Any], what: str) -> None:
    """Refuse partitions of the rows that differ in something."""
    for number, one in enumerate(values):
        if one != values[0]:
            texts = [", ".join(map(str, it)) or "none" if isinstance(it, tuple) else str(it) for it in (values[0], one)]
            raise ValueError(
                f"All partitions must have the same columns; {what} of partition 0 are {texts[0]}, those of "
                f"partition {number} are {texts[1]}. Read them with one schema, or name the columns to take."
            )


def classes_in(facts: Sequence[Facts]) -> AnyArray:
    """Return the labels of all rows, sorted."""
    kinds = {one.labels.dtype.kind for one in facts if one.n_rows}
    try:
        classes = np.unique(np.concatenate([one.labels for one in facts if one.n_rows]))
    except ValueError as error:
        raise ValueError("There are no rows in any partition: a fit needs some of each class.") from error
    if len(kinds & set("OSU")) > 0 and kinds & set("biuf"):
        raise ValueError(f"y must hold labels of one type in all partitions; got {classes.tolist()!r}.")
    if not 1 < len(classes) <= _MOST_CLASSES:
        raise ValueError(
            f"y must hold two classes or more, and at most {_MOST_CLASSES}; got {len(classes)} different labels in "
            f"{len(facts)} partition(s){f', {classes.tolist()[0]!r} alone' if len(classes) == 1 else ''}."
        )
    return classes


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
        return self._table(np.arange(len(self.values)), self.mass, self.n_rows)

    def table_of(self, lumps: "Lumps") -> Table:
        """Return lumps as a table of labelled rows that stand for many."""
        return self._table(lumps.keys[:, 0], lumps.mass, lumps.n_rows, lumps.squares)

    def _table(self, cells: IntArray, mass: FloatArray, n_rows: FloatArray, squares: FloatArray | None = None) -> Table:
        """Return a table with a row of some cells, given by number, for each number of rows and their weight."""
        _, baselines, *others = map(column_of, zip(*self.values, strict=True))
        columns = {name: values[cells] for name, values in zip(self.facts.columns, others, strict=True)} or None
        labels, baseline = self.facts.classes[self.labels[cells]], baselines[cells] if self.has_baseline else None
        if self.facts.are_equal:
            return Table(None, labels, columns, baseline, counts=mass).stand_for_many(n_rows)
        return Table(None, labels, columns, baseline, sample_weight=mass).stand_for_many(n_rows, squares)


def column_of(values: tuple[Hashable, ...]) -> AnyArray:
    """Return values as an array, of objects where some are missing."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column if None in values else as_labels(values)


def in_order(value: Values) -> tuple[Any, ...]:
    """Return what cells are sorted by, whatever their values are."""
    return tuple((type(one).__name__, str(one), one if isinstance(one, (int, float)) else 0) for one in value)


def code_cells(part: Part, labels: AnyArray, answers: Sequence[AnyArray] = ()) -> tuple[IntArray, list[Values]]:
    """Return which of the different combinations of labels, baseline, columns and answers each row has, and those."""
    import pandas as pd  # noqa: PLC0415 - it numbers the values of a million rows faster than sorting, or a loop

    baseline = part.get(BASELINE)
    columns = [labels, np.zeros(len(labels), dtype=np.int8) if baseline is None else baseline]
    columns = list(map(np.asarray, [*columns, *(part.get(COLUMNS) or {}).values(), *answers]))
    numbers, levels = np.zeros(len(labels), dtype=np.int64), list[tuple[list[Hashable], IntArray]]()
    for column in columns:
        if column.dtype.kind in "mM":  # as texts: their lists would be of nanoseconds
            values, own, _ = find_levels(column, "")
        else:
            own, found = pd.factorize(column)
            values = np.asarray(found).tolist()
        own = np.where(own < 0, len(values), own)  # missing ones come last, as None
        levels.append(([*values, None], own))
        numbers = pd.factorize(numbers * (len(values) + 1) + own)[0]
    firsts = np.flatnonzero(np.diff(np.maximum.accumulate(numbers), prepend=-1))  # the numbers are in order of these
    return numbers, [tuple(values[own[first]] for values, own in levels) for first in firsts.tolist()]


def find_cells(part: Part, cells: Cells) -> tuple[IntArray, FloatArray]:
    """Return the number of the cell of each row, and the weight of the row."""
    codes = np.searchsorted(cells.facts.classes, np.asarray(part[Y]))
    numbers, values = code_cells(part, codes)
    places = {value: place for place, value in enumerate(cells.values)}
    return np.array([places[value] for value in values], dtype=np.int64)[numbers], cells.facts.whole(row_weights(part))


_MOST_LUMPS = 4_000_000


class Lumps(NamedTuple):
    """Rows of one cell that no rule distinguishes, as models answer them alike or their scores share bins, counted."""

    keys: IntArray  # (n_lumps, 1 + n_models), sorted: the number of the cell, and the answer, or bin, of each model
    mass: FloatArray
    squares: FloatArray  # the sums of the squares of the weights of the rows
    n_rows: FloatArray
    lows: FloatArray  # (n_lumps, n_models): the least and the largest score; (n_lumps, 0) of answers
    highs: FloatArray

    @classmethod
    def of(cls, keys: IntArray, mass: FloatArray, facts: TotalFacts, scores: FloatArray | None = None) -> "Lumps":
        """Count rows, given the key, the weight and perhaps the scores of each."""
        scores = np.empty((mass.size, 0)) if scores is None else scores
        return cls(keys, mass, facts.squares(mass), np.ones(mass.size), scores, scores).merge()

    def merge(self) -> "Lumps":
        """Return the same with what has one key added up, sorted by keys."""
        import pandas as pd  # noqa: PLC0415 - it numbers the values of a million rows faster than sorting

        if not self.mass.size:
            return self
        numbers = self.keys[:, 0]
        for codes in self.keys.T[1:]:
            numbers = pd.factorize(numbers * (int(codes.max()) + 1) + codes)[0]
        order = np.argsort(numbers, kind="stable")
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        sums = [np.add.reduceat(values[order], starts) for values in (self.mass, self.squares, self.n_rows)]
        ends = np.minimum.reduceat(self.lows[order], starts), np.maximum.reduceat(self.highs[order], starts)
        keys = self.keys[order[starts]]
        sorted_keys = np.lexsort(keys.T[::-1])
        return Lumps(*(values[sorted_keys] for values in (keys, *sums, *ends)))


def join_lumps(parts: Sequence[Lumps]) -> Lumps:
    """Return the lumps of several parts of the rows."""
    return Lumps(*(np.concatenate(values) for values in zip(*parts, strict=True))).merge()


def lumps_of_all(parts: Sequence[Lumps]) -> Lumps:
    """Return the lumps of all partitions, and refuse too many."""
    lumps = join_lumps(parts)
    if lumps.mass.size > _MOST_LUMPS:
        raise ValueError(
            f"The columns and the models divide the rows into {lumps.mass.size} different kinds, more than "
            f"{_MOST_LUMPS}: too many to choose among in one place. Name fewer columns or models."
        )
    return lumps


def count_answers(part: Part, cells: Cells, members: Sequence[Any]) -> Lumps:
    """Return the rows of a partition by their cell and what each of some models answers."""
    numbers, mass = find_cells(part, cells)
    answers = [member.ask(part[X]) if mass.size else np.empty(0, dtype=np.int64) for member in members]
    return Lumps.of(np.column_stack([numbers, *answers]), mass, cells.facts)
