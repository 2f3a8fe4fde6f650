"""Worst cases of goals on rows of which some labels are missing, as of applicants for loans who were refused.

Rates that need no missing label are estimated as always. Of any other rate the missing labels may be anything: the
least and the most that the rows can have bound it, whatever the true labels are (Manski 1989).
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray
from counterpoise.goals.binding import Views
from counterpoise.goals.catalogue import needs
from counterpoise.goals.expressions import Goal, Rate, Ratio, Searched
from counterpoise.goals.kinds import are_disjoint
from counterpoise.goals.population import GoalOutcome, measure_goal
from counterpoise.goals.terms import DEFAULT, Dataset, NoRows

_MOST_KINDS = 10  # of rows without a label: every choice of their labels is tried


class WorstCaseOutcome(NamedTuple):
    """What a goal bounds, at the labels that make it least and at those that make it most."""

    least: GoalOutcome
    most: GoalOutcome

    @property
    def estimate(self) -> float:
        """Return the value on the rows, NaN where it depends on missing labels."""
        low, high = self.least.estimate, self.most.estimate
        return high if low == high else np.nan

    def end(self, risk: float, end: str) -> float:
        """Return one end of the bounds on the population's value, whatever the labels."""
        return (self.most if end == "high" else self.least).end(risk, end)

    def counts(self) -> list[tuple[Dataset, int]]:
        """Return the numbers of rows that the bounds rest on."""
        return self.most.counts()


def measure_worst_case(
    goal: Goal, views: Views, predictions: Mapping[str, FloatArray], labelled: BoolArray
) -> GoalOutcome | WorstCaseOutcome:
    """Return how one part of a goal stands on rows of which some labels are missing.

    A rate is ``top / bottom``, two sums over rows. Rows of the same groups and the same decision change both in the
    same proportion, so that at the least and at the most value all of them have the same label. It is enough to try
    each label for each kind of rows. That holds where every row counts in one fraction; other goals are refused.
    """
    if isinstance(goal.left, Searched):
        raise NoRows("it compares groups in a way that needs all labels: audit the rate of each group by itself")
    left: Any = goal.left
    rates = [left.numerator, left.denominator] if isinstance(left, Ratio) else [left - Rate(0.0, goal.right.terms)]
    if not any(needs(rate, "label") for rate in rates):
        return measure_goal(goal, views, predictions)
    counts = [count for rate in rates for count in rate.row_counts if count.rows.name == DEFAULT]
    needing = [count for count in counts if (count.rows.label, count.out_of.label) != (None, None)]
    fractions = dict.fromkeys(count.out_of for count in needing)
    subsets = [replace(rows, label=None).normalized for rows in fractions]
    is_one_fraction = all(rows.label is None for rows in fractions)
    has_one_amount = len({rows.value for count in counts for rows in (count.rows, count.out_of)}) == 1
    if not has_one_amount or not (is_one_fraction or all(are_disjoint(*pair) for pair in combinations(subsets, 2))):
        raise NoRows(
            "its rates may be largest at different labels of the same rows, whose labels are missing: audit each "
            "rate by itself"
        )
    narrowed = {replace(rows, label=None).normalized for count in needing for rows in (count.rows, count.out_of)}
    is_counted = np.zeros((labelled.size, len(narrowed)), dtype=np.int64)
    for column, rows in enumerate(narrowed):
        is_counted[views.rows(rows)[0], column] = 1
    decisions = predictions[DEFAULT] if predictions[DEFAULT].ndim == 1 else predictions[DEFAULT].argmax(axis=1)
    changing = np.flatnonzero(~labelled & is_counted.any(axis=1))
    kinds, kind_of_row = np.unique(np.column_stack([decisions, is_counted])[changing], axis=0, return_inverse=True)
    if len(kinds) > _MOST_KINDS:
        raise NoRows("it counts too many groups of rows without labels: audit the rate of each group by itself")
    outcomes = []
    for labels in product([0, 1], repeat=len(kinds)):
        codes = views.codes(DEFAULT, "y").copy()
        codes[changing] = np.array(labels, dtype=np.int64)[kind_of_row.ravel()]
        table = views.table(DEFAULT).with_parts(y=np.array(views.classes.labels, dtype=object)[codes])
        try:
            outcomes.append(measure_goal(goal, Views({**views.tables, DEFAULT: table}, views.classes), predictions))
        except NoRows as error:
            reason = error
    defined = [outcome for outcome in outcomes if not np.isnan(outcome.estimate)]
    if not defined:
        raise NoRows("whatever the missing labels are, it divides 0 by 0") if outcomes else reason
    return WorstCaseOutcome(*(choose(defined, key=lambda outcome: outcome.estimate) for choose in (min, max)))
