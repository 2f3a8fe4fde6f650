"""Impact ratios: how often each category of people is selected, against the most selected category.

This is the layout of a bias audit under New York City's Local Law 144 (6 RCNY 5-300 to 5-304), which defines these
numbers and no mark to pass: so none is printed.

The interval beside a ratio is about the population: its rate of the category over the largest rate of all categories
there, which need not be the one that is most selected on these rows. Let ``a(p)`` and ``b(q)`` be exact one-sided
p-values of the rates p and q of two categories, on independent rows. Then ``a(p) b(q) <= k`` with a probability of at
most ``k (1 - log k)`` (Fisher's combination, which is conservative for counts), and the largest ``p / q`` of the pairs
above k is an upper bound on the ratio. A category's ratio is the least of its ratios to each of the others. So the
least of their lower bounds needs no correction, and the least of their upper bounds has a share of the risk for each.

With sample weights, or probabilities of being in a category, rates are weighted means with bounds by betting, L and U
(``counterpoise.theory.confidence``). One person may count in two categories, so independence is not used: a ratio is at
least ``L / U'`` and at most ``U / L'``, with U' and L' of the other category, but for the sum of their risks. Half of
the risk of an end is for the category, and half for the others, which share it where all their bounds must hold.

The tests compare a category with the most selected one of these rows. Which one that is depends on the rows too, so
Holm's correction is over all pairs of categories of a table, and not only over those shown.
"""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainccinv, gammaln

from counterpoise._base.checks import (
    EQUAL,
    as_numbers,
    check_choice,
    check_confidence,
    check_flag,
    check_largest_weight,
    check_number,
    check_sample_weight,
    value_range,
)
from counterpoise._base.text import text_table
from counterpoise._base.types import ArrayLike, BoolArray, FloatArray, IntArray
from counterpoise.goals.classes import as_labels, find_classes
from counterpoise.goals.tables import MISSING, Table, count_missing
from counterpoise.goals.terms import text_of
from counterpoise.theory.confidence import Bounds, weighted_mean_bounds

__all__ = ["ImpactRatio", "ImpactRatios", "impact_ratios"]

_KINDS = ("decisions", "scores")
_CELLS = 64  # of p-values, in which a pair of rates is looked for
_MOST_CATEGORIES = 100  # of one table: more are measurements, and not categories of people
_MOST_COLUMNS = 4  # of which all intersections are shown: 15 tables
_FAR = 12.0  # standard deviations beyond an outcome, after which others add nothing to its tail
_SAME = 1e-7  # by which logarithms of probabilities may differ and be one
_MOST_LOG = 1.0  # more likely outcomes are in no tail
_UNKNOWN = "(unknown)"
_WHOLE = 100  # sums of weights from here on are shown with one decimal
_HEADS = ("category", "applicants", "selected", "rate", "ratio", "low", "high", "deviations", "fisher", "holm")


class ImpactRatio(NamedTuple):
    """How often one category of people is selected, and the tests beside it."""

    table: str  # the column, or columns, whose values make the categories
    category: str
    applicants: float  # how many people, or the sum of their weights
    selected: float
    rate: float  # selection rate, or scoring rate
    ratio: float  # to the rate of the most selected category; NaN where there is none
    low: float  # the population's ratio to its most selected category is above
    high: float  # and below, both together with the confidence
    deviations: float  # by how many standard deviations the rate is above that of the most selected category
    fisher: float  # two-sided p-value of Fisher's exact test against the most selected category
    holm: float  # the same, corrected for all pairs of categories of the table
    note: str = ""  # why there is no ratio, or what else to know

    @property
    def texts(self) -> dict[str, str]:
        """Return the cells of a table, by column."""
        numbers = {name: f"{getattr(self, name):.4f}" for name in ("rate", "ratio", "low", "high")}
        numbers |= {"deviations": f"{self.deviations:+.2f}", "fisher": f"{self.fisher:.2g}", "holm": f"{self.holm:.2g}"}
        numbers = {name: "-" if math.isnan(getattr(self, name)) else text for name, text in numbers.items()}
        sums = {name: _amount_text(getattr(self, name)) for name in ("applicants", "selected")}
        return {"category": self.category, **sums, **numbers}


class ImpactRatios(NamedTuple):
    """The categories of all tables, and what must be known to read them; ``print`` shows every ratio."""

    ratios: tuple[ImpactRatio, ...]
    kind: str  # "decisions" or "scores"
    confidence: float
    notes: tuple[str, ...]

    @property
    def tables(self) -> dict[str, list[ImpactRatio]]:
        """Return the ratios of each table, by the columns that make its categories."""
        names = dict.fromkeys(one.table for one in self.ratios)
        return {name: [one for one in self.ratios if one.table == name] for name in names}

    @property
    def rate_name(self) -> str:
        """Return what the law calls the rates."""
        return "scoring rate" if self.kind == "scores" else "selection rate"

    def heads(self) -> list[str]:
        """Return the heads of a table."""
        names = {"selected": "above median" if self.kind == "scores" else "selected", "rate": self.rate_name}
        names |= {"ratio": "impact ratio", "deviations": "std. deviations", "fisher": "Fisher p", "holm": "Holm p"}
        return [names.get(name, name) for name in _HEADS]

    def lines(self, table: str) -> list[list[str]]:
        """Return the cells of a table, a line for each category."""
        return [[one.texts[name] for name in _HEADS] for one in self.tables[table]]

    def remarks(self, table: str) -> list[str]:
        """Return what is to be known about categories of a table."""
        rows = self.tables[table]
        notes = dict.fromkeys(one.note for one in rows if one.note)
        return [f"{', '.join(one.category for one in rows if one.note == note)}: {note}." for note in notes]

    def __str__(self) -> str:
        parts = []
        for name in self.tables:
            cells = text_table([self.heads(), *self.lines(name)], "<" + ">" * (len(_HEADS) - 1))
            parts.append("\n".join([f"By {name}", cells, *self.remarks(name)]))
        return "\n\n".join([*parts, "\n".join(self.notes)])

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        ratios = [one._asdict() for one in self.ratios]
        return {"kind": self.kind, "confidence": self.confidence, "ratios": ratios, "notes": list(self.notes)}

    def as_csv(self) -> str:
        """Return a CSV text, a line for each category, with the columns of a bias audit first."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["table", *self.heads(), "note"])
        for one in self.ratios:
            cells = [getattr(one, name) for name in _HEADS]
            cells = ["" if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells]
            writer.writerow([one.table, *cells, one.note])
        return text.getvalue()


def impact_ratios(
    answers: ArrayLike,
    sensitive_features: Any,
    *,
    kind: str = "decisions",
    pos_label: Any = None,
    intersections: bool = True,
    unknown: Sequence[str] = (),
    min_share: float = 0.02,
    exclude_small: str | None = None,
    sample_weight: ArrayLike | None = None,
    largest_weight: float | None = None,
    confidence: float = 0.95,
) -> ImpactRatios:
    """Return selection rates and impact ratios by each column of people, and by their intersections.

    No mark decides whether a ratio passes: Local Law 144 defines none.

    Parameters
    ----------
    answers : array of shape (n_samples,)
        The decision about each person; or scores, with ``kind="scores"``.
    sensitive_features : data frame, dict of arrays or array
        The columns whose values are categories; a bare array is the column ``group``.
    kind : {"decisions", "scores"}, default="decisions"
        Of scores, a person counts as selected whose score is above the median of all rows, as the rules of Local Law
        144 define the scoring rate.
    pos_label : label, optional
        The decision that selects; by default the last of two sorted ones.
    intersections : bool, default=True
        Whether there are tables of every two or more columns together too.
    unknown : sequence of str, default=()
        Values that mean that the category is unknown, such as "not stated". Missing values always do. These people are
        counted apart.
    min_share : float in [0, 1), default=0.02
        Categories with a smaller share of the people whose category is known are listed as small.
    exclude_small : str, optional
        The reason why small categories are left out of the ratios: it is printed with their counts and rates. Default:
        they take part.
    sample_weight : array of shape (n_samples,), optional
        What each person counts. Applicants and selected are then sums of weights, the median of scores is weighted too,
        and there are no tests, which are about counts.
    largest_weight : float, optional
        The largest weight that a person of the population can have, known beforehand. Without it weights that differ
        give no intervals.
    confidence : float in (0, 1), default=0.95
        Of each interval by itself.

    Returns
    -------
    ImpactRatios
        ``print`` shows the tables; ``as_csv()`` and ``as_dict()`` return them. With a category's ``low`` and ``high``
        the population's ratio is bounded for any number of people, if these are independent draws from it. Of scores,
        the median is taken as given.

    Examples
    --------
    >>> from counterpoise import impact_ratios
    >>> hired = [1] * 40 + [0] * 60 + [1] * 30 + [0] * 70 + [1]
    >>> print(impact_ratios(hired, {"sex": ["M"] * 100 + ["F"] * 100 + [None]}))
    By sex
    category   applicants  selected  selection rate  impact ratio     low    high  std. deviations  Fisher p  Holm p
    F                 100        30          0.3000        0.7500  0.4622  1.0000            -1.48      0.18    0.18
    M                 100        40          0.4000        1.0000  0.8444  1.0000                -         -       -
    (unknown)           1         1          1.0000             -       -       -                -         -       -
    (unknown): not in the ratios.
    <BLANKLINE>
    The decision that selects is 1.
    Impact ratios are to the most selected category. Each interval holds with confidence 0.95, ...
    """
    check_choice(kind, "kind", _KINDS)
    confidence = check_confidence(confidence)
    min_share = check_number(min_share, "min_share", "[0, 1)", "a share of the people")
    if exclude_small is not None and (not isinstance(exclude_small, str) or not exclude_small.strip()):
        raise ValueError(
            f"exclude_small must be the reason why small categories are left out, in words; got {exclude_small!r}."
        )
    table = Table(None, None, sensitive_features)
    if not table.sensitive_columns:
        raise ValueError("impact_ratios needs at least one column of categories in sensitive_features; got none.")
    weights = check_sample_weight(sample_weight, table.n_samples)
    limit = _largest_weight(sample_weight, largest_weight)
    if weights is not None:
        weights = np.asarray(sample_weight, dtype=np.float64)
    hits, notes = _hits(answers, weights, table.n_samples, kind, pos_label)
    unknown_texts = frozenset({_UNKNOWN, MISSING, *map(text_of, [unknown] if isinstance(unknown, str) else unknown)})
    ratios: list[ImpactRatio] = []
    for columns in _tables(table.sensitive_columns, check_flag(intersections, "intersections")):
        people = _categories(table, columns, hits, weights, unknown_texts).without_zeros()
        ratios += _table_ratios(" and ".join(columns), people, limit, min_share, exclude_small, 1.0 - confidence)
    return ImpactRatios(tuple(ratios), kind, confidence, (*notes, *_reading(kind, confidence, limit, weights is None)))


def _largest_weight(sample_weight: ArrayLike | None, largest_weight: float | None) -> float | None:
    """Return the largest weight that there can be; None where weights differ and nothing is known about others."""
    if largest_weight is not None:
        return check_largest_weight(largest_weight, sample_weight)[0]
    if sample_weight is None:
        return 1.0
    weights = np.asarray(sample_weight, dtype=np.float64)
    return float(weights.max()) if weights.min() >= EQUAL * weights.max() else None


class _People(NamedTuple):
    """Who is selected, and the category of each person: -1 where it is unknown."""

    codes: IntArray
    names: list[str]
    hits: BoolArray
    weights: FloatArray | None  # None: each person counts once

    def without_zeros(self) -> "_People":
        """Return the people who count, and the categories that they are in."""
        if self.weights is None:
            return self
        counts = self.weights > 0
        present, codes = np.unique(self.codes[counts], return_inverse=True)
        codes = codes - np.count_nonzero(present < 0)  # so that the unknown ones, if any, stay -1
        names = [self.names[place] for place in present.tolist() if place >= 0]
        return _People(codes, names, self.hits[counts], self.weights[counts])

    def sums(self, of: BoolArray | None = None) -> list[Any]:
        """Return how many people there are, or their weight: of unknown category first, then of each."""
        parts = self.weights if of is None else of if self.weights is None else of * self.weights
        totals = np.bincount(self.codes + 1, parts, len(self.names) + 1)
        return list((totals.astype(np.int64) if self.weights is None else totals).tolist())


def _hits(
    answers: ArrayLike, weights: FloatArray | None, n_samples: int, kind: str, pos_label: Any
) -> tuple[BoolArray, list[str]]:
    """Return who is selected, and what that means where these are scores."""
    values = as_labels(answers)
    if values.shape != (n_samples,):
        raise ValueError(f"answers must hold one for each of the {n_samples} people; got shape {values.shape}.")
    n_missing = count_missing(values)
    if n_missing:
        raise ValueError(f"answers must say of each person what was decided; {n_missing} of {n_samples} are missing.")
    if kind == "scores":
        if pos_label is not None:
            raise ValueError(f"pos_label is for decisions; got {pos_label!r} with kind='scores'.")
        scores = as_numbers(values, "answers").astype(np.float64)
        value_range(scores, "answers", differ=False)  # refuses infinite ones
        order = np.argsort(scores)
        mass = np.cumsum(np.ones(n_samples) if weights is None else weights[order])
        middle = min(int(mass.searchsorted(mass[-1] / 2, side="right")), n_samples - 1)
        below, above = scores[order[[int(mass.searchsorted(mass[-1] / 2)), middle]]].tolist()
        median = below / 2 + above / 2  # of both middle ones, without overflow
        how = "" if weights is None else "weighted "
        note = (
            f"A person counts as selected whose score is above {median:g}, the {how}median of these {n_samples} scores."
        )
        n_equal = int((scores == median).sum())
        ties = [f"{n_equal} scores are equal to the median, and not above it."] if n_equal > 1 else []
        return np.asarray(values > below), [note, *ties]  # none lies between both
    classes = find_classes([values], pos_label=pos_label)
    if classes.positive is None:
        raise ValueError(
            f"Name the decision that selects with pos_label; got {len(classes.several)} decisions: "
            f"{', '.join(map(repr, classes.several[:10]))}."
        )
    selects = np.asarray(classes.positive).item()
    return np.asarray(values == classes.positive, dtype=np.bool_), [f"The decision that selects is {selects!r}."]


def _tables(columns: Sequence[str], intersections: bool) -> list[tuple[str, ...]]:
    """Return the columns of each table."""
    if intersections and len(columns) > _MOST_COLUMNS:
        raise ValueError(
            f"All intersections of {len(columns)} columns would be {2 ** len(columns) - 1} tables. Pass at most "
            f"{_MOST_COLUMNS} columns, or intersections=False."
        )
    sizes = range(1, len(columns) + 1) if intersections else [1]
    return [table for size in sizes for table in combinations(columns, size)]


def _categories(
    table: Table, columns: Sequence[str], hits: BoolArray, weights: FloatArray | None, unknown: frozenset[str]
) -> _People:
    """Return the people by categories."""
    codes = np.zeros(table.n_samples, dtype=np.int64)
    names, is_known = [""], np.ones(table.n_samples, dtype=np.bool_)
    for column in columns:
        levels = table.levels(column, are_compared=False)
        texts = ["", *levels.place]  # the first for the code -1
        is_known &= (levels.codes >= 0) & ~np.isin(levels.codes, [levels.place[one] for one in unknown & {*texts}])
        present, codes = np.unique(codes * len(texts) + levels.codes + 1, return_inverse=True)
        pairs = (divmod(place, len(texts)) for place in present.tolist())
        names = [" / ".join(filter(None, (names[first], texts[second]))) for first, second in pairs]
    kept, own = np.unique(codes[is_known], return_inverse=True)
    if kept.size > _MOST_CATEGORIES:
        raise ValueError(
            f"{' and '.join(map(repr, columns))} must hold categories of people, at most {_MOST_CATEGORIES}; there are "
            f"{kept.size}. Make ranges of a measurement, such as 18-39, leave the column out, or pass "
            "intersections=False."
        )
    if not kept.size:
        raise ValueError(f"No row has a known category of {' and '.join(map(repr, columns))}. Leave the column out.")
    codes = np.full(table.n_samples, -1)
    codes[is_known] = own
    return _People(codes, [names[place] for place in kept.tolist()], hits, weights)


def _table_ratios(
    table: str, people: _People, limit: float | None, min_share: float, reason: str | None, risk: float
) -> Iterator[ImpactRatio]:
    """Yield the ratio of each category of a table, and the count of people whose category is unknown."""
    names = people.names
    (n_unknown, *trials), (unknown_hits, *selected) = people.sums(), people.sums(people.hits)
    counts, successes = np.array(trials), np.array(selected)
    is_small = counts / counts.sum() < min_share
    takes_part = ~is_small if reason is not None else np.ones(len(names), dtype=np.bool_)
    kept = np.flatnonzero(takes_part)
    rates = successes / counts
    most = int(kept[rates[kept].argmax()]) if kept.size else -1
    tests = [(math.nan,) * 3] * kept.size
    if people.weights is None:
        bounds = _ratio_bounds(successes[kept], counts[kept], risk)
        tests = _pair_tests(successes[kept], counts[kept], int(np.searchsorted(kept, most)))
    elif limit is None:
        bounds = [(math.nan, math.nan)] * kept.size
    else:
        bounds = _weighted_bounds(people, kept, limit, risk)
    place = {category: row for row, category in enumerate(kept.tolist())}
    for category, name in enumerate(names):
        ratio, numbers, notes = math.nan, (math.nan,) * 5, []
        if is_small[category]:
            notes.append(f"below {100 * min_share:g}% of the people")
        if takes_part[category]:
            row = place[category]
            parts = selected[category] * trials[most], selected[most] * trials[category]
            ratio = parts[0] / parts[1] if parts[1] else math.nan
            numbers = (*bounds[row], *(tests[row] if category != most else (math.nan,) * 3))
        else:
            notes.append(f"left out of the ratios: {str(reason).strip().rstrip('.')}")
        rate = float(rates[category])
        yield ImpactRatio(table, name, trials[category], selected[category], rate, ratio, *numbers, "; ".join(notes))
    if n_unknown:
        rate = unknown_hits / n_unknown
        yield ImpactRatio(table, _UNKNOWN, n_unknown, unknown_hits, rate, *(math.nan,) * 6, "not in the ratios")


def _ratio_bounds(hits: IntArray, trials: IntArray, risk: float) -> list[tuple[float, float]]:
    """Return bounds on each category's share of the largest rate; each end fails with half of the risk at most."""
    n_categories = len(hits)
    if n_categories < 2:  # noqa: PLR2004 - with no other category
        return [(1.0, 1.0)] * n_categories
    low = 1.0 / _upper_quotients(hits, trials, risk / 2).T  # of category / other
    return _ends(low, _upper_quotients(hits, trials, risk / 2 / (n_categories - 1)))


def _weighted_bounds(people: _People, kept: IntArray, limit: float, risk: float) -> list[tuple[float, float]]:
    """Return the same bounds where people count with weights."""
    if kept.size < 2:  # noqa: PLR2004 - with no other category
        return [(1.0, 1.0)] * kept.size
    own: list[Bounds] = []
    others: list[Bounds] = []
    for category in kept.tolist():
        rows = people.codes == category
        sample = people.hits[rows], None if people.weights is None else people.weights[rows]
        for bounds, part in ((own, risk / 4), (others, risk / 4 / (kept.size - 1))):
            bounds.append(weighted_mean_bounds(*sample, confidence=1.0 - part, largest_weight=limit))
    (low, high), least = np.array(own).T, np.array(others)[:, 0]
    with np.errstate(divide="ignore"):
        return _ends(low[:, None] / high, high[:, None] / least)


def _ends(low: FloatArray, high: FloatArray) -> list[tuple[float, float]]:
    """Return the bounds on the least ratio of each category, given those on its ratio to each of the others."""
    itself = np.eye(len(low), dtype=np.bool_)
    low[itself] = high[itself] = np.inf
    ends = np.minimum(low.min(axis=1), 1.0), np.minimum(high.min(axis=1), 1.0)
    return list(zip(*(one.tolist() for one in ends), strict=True))


def _upper_quotients(hits: IntArray, trials: IntArray, risk: float) -> FloatArray:
    """Return an upper bound on the quotient of the shares of every two categories; infinite where there is none."""
    level = float(np.exp(brentq(lambda log: log + math.log1p(-log) - math.log(risk), math.log(risk) - 40.0, -1e-12)))
    # In a cell of p-values of the lower share it is at least at the cell's low end, and the other p-value above
    # level / (the cell's high end).
    cells = np.geomspace(level, 1.0, _CELLS + 1)
    most = _upper_shares(hits, trials, level / cells[1:])
    with np.errstate(divide="ignore"):
        return np.asarray(np.max(most[:, None] / (1.0 - _upper_shares(trials - hits, trials, cells[:-1])), axis=2))


def _upper_shares(hits: IntArray, trials: IntArray, risks: FloatArray) -> FloatArray:
    """Return the exact upper bound on the share of each category at each risk."""
    failures = np.maximum(trials - hits, 1)[:, None]
    return np.where((hits == trials)[:, None], 1.0, betainccinv(hits[:, None] + 1.0, failures, risks))


def _pair_tests(hits: IntArray, trials: IntArray, most: int) -> list[tuple[float, float, float]]:
    """Return standard deviations and p-values of Fisher's test, plain and corrected, against the most selected one."""
    if not len(hits):
        return []
    n_categories = len(hits)
    values = np.ones((n_categories, n_categories))
    pairs = list(combinations(range(n_categories), 2))
    for one, other in pairs:
        value = _fisher(int(hits[one]), int(trials[one]), int(hits[other]), int(trials[other]))
        values[one, other] = values[other, one] = value
    corrected = _holm(np.array([values[pair] for pair in pairs]))
    holm = np.ones_like(values)
    for (one, other), value in zip(pairs, corrected.tolist(), strict=True):
        holm[one, other] = holm[other, one] = value
    pooled = (hits + hits[most]) / (trials + trials[most])
    spread = np.sqrt(pooled * (1.0 - pooled) * (1.0 / trials + 1.0 / trials[most]))
    gaps = hits / trials - hits[most] / trials[most]
    deviations = np.divide(gaps, spread, out=np.zeros(n_categories), where=spread > 0)
    return list(zip(deviations.tolist(), values[:, most].tolist(), holm[:, most].tolist(), strict=True))


def _fisher(hits: int, trials: int, other_hits: int, other_trials: int) -> float:
    """Return the two-sided p-value of Fisher's exact test: of all outcomes that are at most as likely as this one."""
    total, both = hits + other_hits, trials + other_trials
    mean = trials * (total / both)
    spread = math.sqrt(mean * (1.0 - total / both) * other_trials / max(both - 1, 1))
    away = abs(hits - mean) + _FAR * spread + _FAR  # beyond which outcomes are far less likely than this one
    least, most = max(0, total - other_trials, math.floor(mean - away)), min(trials, total, math.ceil(mean + away))
    counts = np.arange(least, most + 1.0)
    logs = -(
        gammaln(counts + 1.0)
        + gammaln(trials - counts + 1.0)
        + gammaln(total - counts + 1.0)
        + gammaln(other_trials - total + counts + 1.0)
    )
    logs -= logs[hits - least]
    ways = np.exp(np.minimum(logs, _MOST_LOG))
    tail = float(ways[logs <= _SAME].sum())
    return min(tail * math.exp(-float(np.logaddexp.reduce(logs))), 1.0)


def _holm(values: FloatArray) -> FloatArray:
    """Return p-values corrected for their number (Holm 1979)."""
    order = np.argsort(values, kind="stable")
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)), 1.0)
    return corrected


def _amount_text(amount: float) -> str:
    """Return how many people, or the sum of their weights."""
    return f"{amount}" if isinstance(amount, int) else f"{amount:.1f}" if amount >= _WHOLE else f"{amount:.4g}"


def _reading(kind: str, confidence: float, limit: float | None, is_counted: bool) -> Iterator[str]:
    """Yield what must be known to read the tables."""
    if limit is None:
        yield (
            "Impact ratios are to the most selected category. They have no intervals, because the weights differ, and "
            "people who were not drawn may weigh more than these: pass largest_weight, the most that a person of the "
            "population can weigh."
        )
    else:
        yield (
            f"Impact ratios are to the most selected category. Each interval holds with confidence {confidence:g}, for "
            "the ratio to the most selected category of the population that these people were drawn from"
            + (", with the median as given." if kind == "scores" else ".")
        )
    yield (
        "Standard deviations (of the difference of two proportions) and Fisher's exact test are against the most "
        "selected category; Holm's correction is over all pairs of categories of a table."
        if is_counted
        else "Counts of people who count with weights, or with probabilities of their groups, are sums of these. They "
        "have no standard deviations and no Fisher's test, which are about counts of people."
    )
