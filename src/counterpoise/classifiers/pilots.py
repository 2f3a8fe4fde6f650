"""Pilots of plans: scores of some rows, or assumed ones, ready for the choice of rules as if there were more or fewer.

The rows of a pilot are spread over the scores of their neighbours of the same class and group, because many rows have
finer thresholds than the few of a pilot, and a smoother error. Class probabilities stay as they are.

Without a pilot, scores are assumed: normal in each class, so that one threshold has a recall and a false positive rate.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from counterpoise._base.checks import check_fraction, check_number
from counterpoise._base.types import FloatArray, IntArray
from counterpoise.classifiers.goal import GoalClassifier
from counterpoise.goals import GoalCheck
from counterpoise.rules.choosing import Problem
from counterpoise.rules.class_scores.candidates import find_class_candidates
from counterpoise.rules.class_scores.choosing import as_fixed, choose_class_rules
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.margins import Candidates
from counterpoise.rules.program import choose
from counterpoise.rules.scores.candidates import find_candidates
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.fixed import deciding_rules
from counterpoise.rules.scores.table import ScoreTable, find_groups, rank

# Neighbours on each side, in parts of the number of rows of a class and group to the power 0.8, as for densities.
_REACH = 0.1  # with 0.25 the classes of rare positives overlap more than they do, with none single pilots vary far more
_FINE = 40_000  # rows of a pilot after some were put between them: thresholds as fine as many rows have them
_LEAST_IN_CELL, _MOST_ASSUMED = 200, 200_000  # assumed rows: of each class in each group, and in all
_WHOLE = 1e-6  # shares of groups add up to one but for this


@dataclass(frozen=True)
class AssumedScores:
    """Assumptions about a model in the place of a pilot: scores that are normal in each class.

    The threshold 0 has the assumed recall and false positive rate, and others those of the binormal curve through them.

    Parameters
    ----------
    base_rate : float in (0, 1), or dict from values of a group to such numbers
        The share of positives.
    recall, false_positive_rate : float in (0, 1), or dict as above
        What the model has at one threshold; the recall must be above the false positive rate.
    groups : dict from columns to dicts from values to shares, default={}
        How large groups are, as in ``{"sex": {"F": 0.33, "M": 0.67}}``. Columns are independent of each other.

    Examples
    --------
    >>> import counterpoise as cp
    >>> groups = {"sex": {"F": 0.33, "M": 0.67}}
    >>> cp.AssumedScores(base_rate={"F": 0.1, "M": 0.3}, recall=0.7, false_positive_rate=0.1, groups=groups).recall
    0.7
    """

    base_rate: Any
    recall: Any
    false_positive_rate: Any
    groups: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, shares in self.groups.items():
            total = sum(check_fraction(share, f"groups[{name!r}][{value!r}]") for value, share in shares.items())
            if abs(total - 1.0) > _WHOLE:
                raise ValueError(f"The shares of groups[{name!r}] must add up to 1; got {dict(shares)}: {total:g}.")
        for values in self._cells():
            self._rates(values)

    def pilot(self) -> tuple[IntArray, FloatArray, dict[str, Any] | None]:
        """Return labels, scores and columns of rows that are as assumed, by quantiles: nothing is drawn."""
        cells = []
        for values in self._cells():
            share = float(np.prod([self.groups[name][value] for name, value in values.items()]))
            base, recall, alarms = self._rates(values)
            cells += [(values, 1, share * base, ndtri(recall)), (values, 0, share * (1.0 - base), ndtri(alarms))]
        n_rows = np.clip(_LEAST_IN_CELL / min(part for _, _, part, _ in cells), _FINE, _MOST_ASSUMED)
        labels, scores, columns = [], [], dict[str, list[str]]({name: [] for name in self.groups})
        for values, label, part, center in cells:
            size = max(round(n_rows * part), 1)
            labels.append(np.full(size, label))
            scores.append(center + ndtri((np.arange(size) + 0.5) / size))
            for name, value in values.items():
                columns[name] += [value] * size
        return np.concatenate(labels), np.concatenate(scores), columns or None

    def _cells(self) -> list[dict[str, str]]:
        """Return all combinations of values of the groups."""
        return [dict(zip(self.groups, values, strict=True)) for values in product(*self.groups.values())]

    def _rates(self, values: Mapping[str, str]) -> tuple[float, float, float]:
        """Return base rate, recall and false positive rate of a combination of values."""
        rates = []
        for name in ("base_rate", "recall", "false_positive_rate"):
            rate = getattr(self, name)
            if isinstance(rate, Mapping):
                own = next((column for column, shares in self.groups.items() if set(shares) == set(rate)), None)
                if own is None:
                    raise ValueError(
                        f"{name} must be a number, or have one for each value of one of the groups "
                        f"{ {column: list(shares) for column, shares in self.groups.items()} }; got {dict(rate)}."
                    )
                rate = rate[values[own]]
            rates.append(check_number(rate, name, "(0, 1)", "a share of rows"))
        if rates[1] <= rates[2]:
            raise ValueError(
                f"recall must be above false_positive_rate, as of a model that is better than chance; got {rates[1]:g} "
                f"and {rates[2]:g}."
            )
        return rates[0], rates[1], rates[2]


class Pilot(NamedTuple):
    """The rows that stand for the population, and the rules to choose among."""

    problem: Problem
    n_rows: int
    find: Callable[..., tuple[Any, Candidates]]  # for so many times the rows: the rules, and what they come to
    predict: Callable[[Any, int], Any]  # what a rule among them decides
    has_thresholds: bool
    is_fine: bool  # whether there are thresholds between most others

    @classmethod
    def of(cls, model: GoalClassifier, *, in_folds: bool) -> "Pilot":
        """Return the pilot of a classifier that was fitted without a confidence."""
        known, problem = model.family_.selection_data, model.problem()
        tables = known.answers.tables
        n_pilot, groups = tables[TRAIN].n_samples, find_groups(problem.by, tables[TRAIN])
        if not model.family_.pool.positive.is_binary:
            kept = known._replace(has_fold_scores=in_folds)
            scores = kept.calibrated_scores(groups, kept.calibrations or ())
            best = as_fixed(scores, problem, choose_class_rules(scores, problem))
            return cls(
                problem,
                n_pilot,
                partial(find_class_candidates, scores, problem, best),
                lambda rules, place: scores.predictions_of([rules[place]]),
                has_thresholds=False,
                is_fine=False,
            )
        codes = model.groups_.codes_of_each(tables)
        fine = spread_rows(known, codes, -(-_FINE // n_pilot))._replace(has_fold_scores=in_folds)
        train = fine.answers.tables[TRAIN]
        ranked = rank(fine, find_groups(problem.by, train))
        plain = deciding_rules(ranked, problem, choose(CutFamily(ranked), problem)).rules
        return cls(
            problem,
            train.n_samples,
            partial(find_candidates, ranked, problem, plain),
            lambda rules, place: ranked.predictions_of(rules.only(np.array([place]))),
            has_thresholds=True,
            is_fine=np.unique(known.scores[TRAIN]).size > n_pilot / 2,
        )

    def checks(self, rules: Any, place: int) -> list[GoalCheck]:
        """Return the values of the goals at a rule."""
        return self.predict(rules, place).answers.checks(self.problem.goals, np.ones(1))  # type: ignore[no-any-return]


def spread_rows(known: ScoreTable, codes: Mapping[str, IntArray], n_copies: int) -> ScoreTable:
    """Return scores with ``n_copies`` rows for each, spread evenly over those of its neighbours of its class and group.

    Scores that several rows share stay as they are: the model has no finer ones there. Lists stay too.
    """
    tables, scores, persons = dict(known.answers.tables), dict(known.scores), known.persons
    for name, table in known.answers.tables.items():
        if n_copies == 1 or not table.population:
            continue
        own = known.scores[name][:, 0]
        levels, inverse, counts = np.unique(own, return_inverse=True, return_counts=True)
        # In normal scores of the ranks, as the tails of plain scores would be moved outwards.
        normal = ndtri((np.cumsum(counts) - counts / 2) / own.size)
        x, at = normal[inverse.ravel()], (np.arange(n_copies) + 0.5) / n_copies
        labels = np.zeros(own.size) if table.y is None else (table.y == known.answers.positive.labels[1])
        spread = np.repeat(x[:, None], n_copies, axis=1)
        for cell in np.unique(2 * codes[name] + labels):
            rows = np.flatnonzero(2 * codes[name] + labels == cell)
            rows = rows[np.argsort(own[rows], kind="stable")]
            reach = max(round(_REACH * rows.size**0.8), 1)
            places = np.arange(rows.size)
            # As far to the left as to the right, so that the ends of the scores stay where they are.
            reaches = np.minimum(reach, np.minimum(places, rows.size - 1 - places))
            low, high = x[rows[places - reaches]], x[rows[places + reaches]]
            wide = low[:, None] + at * (high - low)[:, None]
            # With the mean and the deviation of before (Silverman and Young 1987): else classes would overlap more.
            scale = x[rows].std() / wide.std() if wide.std() > 0 else 1.0
            spread[rows] = x[rows].mean() + scale * (wide - wide.mean())
        is_tied = counts[inverse.ravel()] > 1
        spread = np.interp(np.where(is_tied[:, None], x[:, None], spread), normal, levels)
        places = np.repeat(np.arange(own.size), n_copies)
        tables[name], scores[name] = table.only(places), spread.reshape(-1, 1)
        if name == TRAIN and persons is not None:  # each copy of a person is another one
            persons = (persons[:, None] + np.arange(n_copies) * (persons.max() + 1)).ravel()
    weight = None if known.sample_weight is None else np.repeat(known.sample_weight, n_copies)
    groups = None if known.groups is None else np.repeat(known.groups, n_copies)
    answers = replace(known.answers, tables=tables)
    return known._replace(scores=scores, answers=answers, sample_weight=weight, groups=groups, persons=persons)
