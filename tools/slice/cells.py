"""Rows of one score, counted once: by kind of row and by place of the score."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import FloatArray, IntArray

MOST_DISTINCT = 1 << 14  # values of a score up to which each has its own place
N_BINS = 1 << 12  # quantile bins of a score that has more
N_PARTS = 16  # into which a bin is split
_SAMPLE = 1 << 17  # rows that quantiles are taken from
_WHOLE = 2.0**52  # sums of whole numbers up to this are exact in any order


class Rows(NamedTuple):
    """Scored rows. A label is a mass on each class: 0 and 1 where it is known, any two numbers where it is not."""

    scores: FloatArray
    masses: FloatArray  # (n_rows, 2): weights times the mass on each class
    groups: IntArray  # whose thresholds decide
    columns: Mapping[str, IntArray] = {}  # that goals use
    amounts: Mapping[str, FloatArray] = {}
    persons: IntArray | None = None

    @classmethod
    def of(
        cls, scores: FloatArray, y: IntArray, groups: IntArray, weights: FloatArray | None = None, **more: Any
    ) -> Self:
        """Return rows whose labels are known."""
        weights = np.ones(len(y)) if weights is None else weights
        return cls(scores, np.where(y[:, None] == [0, 1], weights[:, None], 0.0), groups, **more)

    def only(self, rows: IntArray) -> Self:
        """Return some of the rows."""
        persons = None if self.persons is None else self.persons[rows]
        columns, amounts = (
            {name: values[rows] for name, values in part.items()} for part in (self.columns, self.amounts)
        )
        first = {"scores": self.scores[rows], "masses": self.masses[rows], "groups": self.groups[rows]}
        return self._replace(**first, columns=columns, amounts=amounts, persons=persons)

    @property
    def measures(self) -> list[FloatArray]:
        """Return what rows count with: their mass on each class, and that times each amount."""
        factors = [np.ones(1), *self.amounts.values()]
        return [self.masses[:, label] * factor for factor in factors for label in (0, 1)]


class Layout(NamedTuple):
    """What parts of the rows have to agree on before they are counted."""

    edges: FloatArray  # rising: a place is what lies above one and up to the next
    radices: tuple[int, ...]  # of the group and the columns: a kind is a number in these
    units: FloatArray  # of each measure: a power of two in which its values are whole numbers
    square_units: FloatArray  # the same of each product of two measures
    is_exact: bool  # whether each score has its own place

    @classmethod
    def of(cls, parts: Sequence[Rows], n_bins: int = N_BINS, most_distinct: int = MOST_DISTINCT) -> Self:
        """Return the layout of parts of the rows: from their values, maxima and numbers of rows, not from sums."""
        values = [distinct_scores(rows.scores, most_distinct) for rows in parts]
        together = np.unique(np.concatenate(values)) if all(own is not None for own in values) else None
        is_exact = together is not None and together.size <= most_distinct
        if not is_exact:
            step = max(1, sum(len(rows.scores) for rows in parts) // _SAMPLE)
            some = np.sort(np.concatenate([rows.scores[::step] for rows in parts]))
            together = np.unique(some[np.linspace(0, some.size - 1, n_bins + 1).astype(np.int64)[1:]])
        columns = [[rows.groups, *rows.columns.values()] for rows in parts]
        radices = tuple(1 + max(int(own[place].max()) for own in columns) for place in range(len(columns[0])))
        most = np.max([[np.abs(own).max() for own in rows.measures] for rows in parts], axis=0)
        units = _units(most, sum(len(rows.scores) for rows in parts))
        first, second = np.triu_indices(most.size)
        squares = _units(most[first] * most[second], sum(len(rows.scores) for rows in parts))
        return cls(np.asarray(together), radices, units, squares, is_exact)

    def refined(self, scores: FloatArray, places: IntArray) -> Self:
        """Return the layout with some places split at quantiles of the scores in them."""
        ends, more = np.concatenate([[-np.inf], self.edges, [np.inf]]), [self.edges]
        is_split = np.zeros(ends.size, dtype=bool)
        is_split[np.minimum(places, self.edges.size)] = True
        near = np.sort(
            np.concatenate([chunk[is_split[np.searchsorted(self.edges, chunk)]] for chunk in _chunks(scores)])
        )
        for place in np.flatnonzero(is_split).tolist():
            first, last = np.searchsorted(near, ends[[place, place + 1]], side="right")
            if last > first:
                more.append(near[np.linspace(first, last - 1, N_PARTS + 1).astype(np.int64)])
        return self._replace(edges=np.unique(np.concatenate(more)))


def distinct_scores(scores: FloatArray, most: int) -> FloatArray | None:
    """Return the different scores; None where they are many, which a few of them show."""
    if np.unique(scores[: 2 * most]).size > most:
        return None
    values = np.unique(scores)
    return values if values.size <= most else None


def _chunks(values: FloatArray) -> list[FloatArray]:
    return np.array_split(values, 1 + values.size // (1 << 20))


def _units(most: FloatArray, n_rows: int) -> FloatArray:
    """Return powers of two so coarse that sums of so many values up to the largest are exact."""
    return np.asarray(2.0 ** np.ceil(np.log2(np.maximum(most, 2.0**-500) * n_rows / _WHOLE)))


class Cells(NamedTuple):
    """Sums over the rows of each kind at each place, in whole numbers: those of parts of the rows add up."""

    layout: Layout
    sums: FloatArray  # (n_measures, n_kinds, n_places), by falling score
    products: FloatArray  # (n_pairs of measures, n_kinds, n_places)
    by_person: Any = None  # sparse, (n_persons, n_measures * n_kinds * n_places): for standard errors alone

    @classmethod
    def count(cls, rows: Rows, layout: Layout) -> Self:
        """Count rows: the only pass over them before they are decided."""
        n_places, n_kinds = layout.edges.size + 1, int(np.prod(layout.radices))
        kinds = np.ravel_multi_index((rows.groups, *rows.columns.values()), layout.radices)
        keys = kinds * n_places + (n_places - 1 - np.searchsorted(layout.edges, rows.scores))
        shape, measures = (n_kinds, n_places), rows.measures
        pairs = list(zip(*np.triu_indices(len(measures)), strict=True))
        sums = [_totals(keys, own, unit, shape) for own, unit in zip(measures, layout.units, strict=True)]
        products = [
            _totals(keys, measures[one] * measures[other], unit, shape)
            for (one, other), unit in zip(pairs, layout.square_units, strict=True)
        ]
        return cls(layout, np.array(sums), np.array(products), _by_person(rows, keys, measures, n_kinds * n_places))

    def __add__(self, other: Self) -> Self:
        """Return the cells of both parts of the rows; a person is in one of them."""
        import scipy.sparse as sp  # noqa: PLC0415 - slow to import

        by_person = None if self.by_person is None else sp.vstack([self.by_person, other.by_person]).tocsr()
        return self._replace(sums=self.sums + other.sums, products=self.products + other.products, by_person=by_person)

    @property
    def amounts(self) -> FloatArray:
        """Return the sums in units of the rows."""
        return self.sums * self.layout.units[:, None, None]

    @property
    def squares(self) -> FloatArray:
        """Return the products in units of the rows."""
        return self.products * self.layout.square_units[:, None, None]

    @property
    def kinds(self) -> IntArray:
        """Return group and columns of each kind."""
        return np.array(np.unravel_index(np.arange(self.sums.shape[1]), self.layout.radices))

    def resamples(self, n_resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield the sums of other samples of as many rows, or persons, drawn from the cells alone.

        A cell with sum W and sum of squares Q is like W^2 / Q equal rows: that many are drawn, by Poisson's law. Other
        measures follow by their regression on the first of their class, with the variance that is left.
        """
        if self.by_person is not None:
            chances = np.full(self.by_person.shape[0], 1 / self.by_person.shape[0])
            for _ in range(n_resamples):
                times = rng.multinomial(chances.size, chances)
                yield np.asarray(times @ self.by_person).reshape(self.sums.shape)
            return
        sums, squares, n_measures = self.amounts, self.squares, len(self.sums)
        number_of = {pair: number for number, pair in enumerate(zip(*np.triu_indices(n_measures), strict=True))}
        cells = [np.nonzero(own) for own in sums]  # those with rows
        for _ in range(n_resamples):
            drawn = np.zeros_like(sums)
            for measure, at in enumerate(cells):
                base, own, square = measure % 2, sums[measure][at], squares[number_of[measure, measure]][at]
                if base == measure:
                    unit = square / own
                    drawn[measure][at] = rng.poisson(own / unit) * unit
                    continue
                shared = squares[number_of[base, measure]][at]
                slope = shared / squares[number_of[base, base]][at]
                left = np.sqrt(np.maximum(square - slope * shared, 0.0))
                drawn[measure][at] = own + slope * (drawn[base][at] - sums[base][at]) + left * rng.normal(size=own.size)
            yield drawn


def _totals(keys: IntArray, values: FloatArray, unit: float, shape: tuple[int, int]) -> FloatArray:
    """Return exact sums of values, each rounded to a multiple of the unit, in that unit."""
    if not values.any():
        return np.zeros(shape)
    return np.bincount(keys, np.rint(values / unit), shape[0] * shape[1]).reshape(shape)


def _by_person(rows: Rows, keys: IntArray, measures: Sequence[FloatArray], size: int) -> Any:
    if rows.persons is None:
        return None
    import scipy.sparse as sp  # noqa: PLC0415 - slow to import

    _, persons = np.unique(rows.persons, return_inverse=True)
    where = np.tile(persons, len(measures)), np.concatenate([number * size + keys for number in range(len(measures))])
    table = sp.coo_array((np.concatenate(measures), where), shape=(persons.max() + 1, len(measures) * size)).tocsr()
    table.eliminate_zeros()
    return table
