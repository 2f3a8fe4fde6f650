"""A proof that goals hold on new rows: Learn then Test (Angelopoulos et al. 2021).

The selection rows are split. On one part rules are traced, from those with the largest margins to the cheapest one. On
the other, the test rows, each is tested in this order: for every goal with the exact bound of an audit, at the whole
risk, as a rule passes only if all of its goals do. The first rule that fails ends the sequence, and the one before it,
the cheapest that is proven, decides. Whatever the population, the probability that it misses a goal there is at most
one minus the confidence: that would take a pass of the first rule in the sequence that misses one.

Tests need independent rows that the deciding model was not trained on.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals, NoRows, Table
from counterpoise.goals.bound_goals import check_denominators
from counterpoise.goals.expressions import terms_of
from counterpoise.goals.population import GoalOutcome, measure_goal
from counterpoise.rules.choosing import PoolPredictions, Problem
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.margins import AT_THE_END, NO_MARGINS, Margins, most_rise, two_digits, why_no_margin
from counterpoise.rules.options import Proof
from counterpoise.rules.program import Choice

_TRACED = -3.0, 3.0  # margins of traced rules, in standard errors on the rows they are traced on, which may mislead
_PASSED = 3.0  # standard errors on the test rows with which a rule passes nearly always
_STEP = 0.15  # of the same, between one rule and the next
_POWER = 0.8  # with which the rule that is aimed at passes
_MOST_TESTED, _MOST_TESTED_OF_FOLDS = 0.9, 1 / 3  # part of the selection rows
_LEAST_ROWS = 10  # of either part
_MORE = 1.5  # times as many rows as were not enough, at least


class GoalProof(NamedTuple):
    """What test rows prove about goals on new rows."""

    confidence: float
    n_rows: int  # test rows, which the choice did not use
    values: tuple[float, ...]  # of the goals on the test rows; empty where nothing is proven
    rows_needed: int | None = None  # where nothing is proven: about how many selection rows a proof would take
    reason: str = ""  # why nothing is proven, where more rows are not the answer

    @property
    def is_proven(self) -> bool:
        """Return whether all goals are proven to hold together."""
        return bool(self.values)

    def __str__(self) -> str:
        if self.is_proven:
            return (
                f"Exact tests on {self.n_rows:,} rows, which the choice did not use, prove that the goals hold "
                f"together on new rows with a confidence of {self.confidence:g}."
            )
        why = (
            f"because {self.reason}" if self.reason else f"as no rule passes on the {self.n_rows:,} rows kept for tests"
        )
        return f"Nothing is proven about the goals on new rows, {why}."

    def unless_costly(self, value: float, best: float) -> "GoalProof":
        """Return the same, or no proof where the rule costs so much more than the best one that it is nearly trivial.

        The cost does not depend on the test rows alone, and giving up a proof breaks no promise.
        """
        if value <= best + most_rise(best):
            return self
        cause = f"rules that pass are nearly trivial: they raise the objective from {best:.4g} to {value:.4g}"
        return self._replace(values=(), reason=cause)


class SplitRows(NamedTuple):
    """The rows of each dataset to trace rules on, and those to test them on."""

    traced: Mapping[str, IntArray]
    tested: Mapping[str, IntArray]


def share_to_test(n_goals: int, *, of_folds: bool = False) -> float:
    """Return the part of the selection rows to test on, at which rules pass with the least margin.

    A rule passes at a margin of ``(z(confidence) + z(power)) / sqrt(share)`` standard errors of all rows. Goals whose
    margins were balanced on the other part are out of balance by about half the range of as many normal numbers,
    divided by ``sqrt(1 - share)``. The sum is least where the derivatives are equal. Of rows that are also trained on
    a third is taken at most.

    Examples
    --------
    >>> from counterpoise.rules.proving import share_to_test
    >>> [round(share_to_test(n_goals), 2) for n_goals in (1, 2, 5)]
    [0.9, 0.71, 0.6]
    """
    share = min(1.0 / (1.0 + (_imbalance(n_goals) / float(ndtri(0.9) + ndtri(_POWER))) ** (2 / 3)), _MOST_TESTED)
    return float(min(share, _MOST_TESTED_OF_FOLDS) if of_folds else share)


def _imbalance(n_goals: int) -> float:
    """Return the median of the largest of so many normal numbers."""
    return float(ndtri(0.5 ** (1 / n_goals)))


def _targets(ratio: float) -> FloatArray:
    """Return the margins of the rules to trace, from large to small, on so many times the number of test rows."""
    unit = math.sqrt(ratio)  # a standard error on the test rows
    return np.asarray(np.arange(_TRACED[1] + _PASSED * unit, _TRACED[0], -_STEP * unit))


def split_rows(tables: Mapping[str, Table], test_rows: IntArray | None, share: float) -> SplitRows:
    """Return the rows to trace on and those to test on; lists, which are no samples, are not split."""
    rng, traced, tested = np.random.default_rng(0), {}, {}
    for name, table in tables.items():
        every = np.arange(table.n_samples)
        if not table.population:
            traced[name], tested[name] = every, every
            continue
        own = test_rows if name == TRAIN and test_rows is not None else None
        n_tested = round(min(share, 1.0 - _LEAST_ROWS / max(every.size, 1)) * every.size)
        own = rng.permutation(every)[: max(n_tested, 0)] if own is None else own
        tested[name], traced[name] = np.sort(own), np.setdiff1d(every, own)
    return SplitRows(traced, tested)


Chosen = tuple[Choice, Margins]


def prove_or_margin(
    family: Any,
    problem: Problem,
    groups: Any,
    plain: Choice,
    *,
    with_margins: Callable[[float], Chosen],
    with_proven: Callable[[Any], Chosen],
) -> tuple[Choice, Margins, Any]:
    """Return one rule that is proven, or else has margins, in the place of the best, the margins, and what is proven.

    Parameters
    ----------
    family, problem, groups
        As for ``prove``; the problem has a confidence, or a ``Proof``.
    plain : Choice
        The best rule without margins.
    with_margins : callable
        Given a confidence, the rule with margins and these.
    with_proven : callable
        Given what ``prove`` chose, the rule and how far it is inside of the goals.
    """
    if not isinstance(problem.confidence, Proof):
        assert problem.confidence is not None  # noqa: S101 - the caller checks it
        return *with_margins(problem.confidence), None
    level = problem.confidence.confidence
    chosen, proof = prove(family, problem, groups, level)
    if chosen is not None:
        choice, margins = with_proven(chosen)
        proof = proof.unless_costly(choice.value, plain.value)
        if proof.is_proven:
            return choice, margins._replace(confidence=level, limiting=None, proof=proof), chosen
    choice, margins = with_margins(level)
    n_goals = sum(margin.standard_error is not None for margin in margins.margins)
    if not proof.reason and n_goals:
        kept = family.selection_data
        n_rows, of_folds = kept.answers.tables[TRAIN].n_samples, kept.has_fold_scores
        needed = rows_for_proof(margins.most_slack, level, n_goals, n_rows, of_folds=of_folds)
        proof = proof._replace(rows_needed=needed)
    return choice, margins._replace(proof=proof), None


def prove(family: Any, problem: Problem, groups: Any, level: float) -> tuple[Any, GoalProof]:
    """Return the cheapest rule that is proven to meet all goals, None where there is none, and the proof.

    Parameters
    ----------
    family : ThresholdRules or ClassRules
        Its ``trace`` gives rules from safest to cheapest, its ``predictions`` what they decide.
    problem : Problem
    groups : RuleGroups
        Of rules.
    level : float
        The confidence.
    """
    kept = family.selection_data
    tables, risk = kept.answers.tables, 1.0 - level
    goals = [goal for goal in problem.goals if _is_of_population(goal, tables)]
    reason = _why_no_proof(goals, kept)
    if reason:
        return None, GoalProof(level, 0, (), reason=reason)
    parts = split_rows(tables, kept.test_rows, share_to_test(len(goals)))
    names = {name for goal in goals for name in goal.datasets if tables[name].population} | {TRAIN}
    n_rows, least = parts.tested[TRAIN].size, min(part[name].size for part in parts for name in names)
    best = None
    if least >= _LEAST_ROWS:
        try:
            targets = _targets(parts.traced[TRAIN].size / n_rows)
            traced = family.only(parts.traced).prepared(problem).trace(problem, groups, targets)
        except (InfeasibleGoals, NoRows):  # on fewer rows than all
            traced = []
        tests, n_parts = family.only(parts.tested), _count_parts(goals, family, traced)
        lists = tuple(goal for goal in problem.goals if goal not in goals)
        for chosen in traced:
            predictions = tests.predictions(chosen)
            if not all(check.holds for check in predictions.answers.checks(lists, np.ones(1))):
                continue  # a list is known: nothing is tested there
            if not all(GoalTest.of(goal, predictions, risk, n_parts[goal]).passes() for goal in goals):
                break
            best = chosen
    if best is None:
        return None, GoalProof(level, n_rows, ())
    checks = tests.predictions(best).answers.checks(problem.goals, np.ones(1))
    return best, GoalProof(level, n_rows, tuple(check.value for check in checks))


def _count_parts(goals: Sequence[Goal], family: Any, traced: Sequence[Any]) -> dict[Goal, int]:
    """Return of how many parts, such as groups, each goal consists on all rows: the test rows may lack some."""
    if not traced:
        return {}
    views = family.predictions(traced[0]).answers.views()
    return {goal: len(goal.parts(views)) for goal in goals}


class GoalTest(NamedTuple):
    """How a goal stands on test rows: all of its parts must be inside of its bound, each at the whole risk."""

    goal: Goal
    outcomes: Sequence[GoalOutcome]  # of the parts; empty where some have no rows
    risk: float

    @classmethod
    def of(cls, goal: Goal, predictions: PoolPredictions, risk: float, n_parts: int) -> "GoalTest":
        """Return how a goal stands on rows that are decided by one rule; a confidence of its own may lower the risk."""
        answers, own = predictions.answers, risk if goal.confidence is None else min(risk, 1.0 - goal.confidence)
        views, shares = answers.views(), {name: answers.shares(name, np.ones(1)) for name in goal.datasets}
        try:
            parts = goal.parts(views)
            check_denominators(parts, views)
            if len(parts) < n_parts:
                return cls(goal, [], own)
            return cls(goal, [measure_goal(part, views, shares) for part in parts], own)
        except NoRows:
            return cls(goal, [], own)

    def passes(self) -> bool:
        """Return whether the goal holds on the population: quick bounds are right, and exact ones are tighter."""
        return bool(self.outcomes) and all(
            self._is_inside(getattr(one.quick_bounds(self.risk), self._end))
            or self._is_inside(one.end(self.risk, self._end))
            for one in self.outcomes
        )

    @property
    def _end(self) -> str:
        return "high" if self.goal.sense == "<=" else "low"

    def _is_inside(self, end: float) -> bool:
        return end <= self.goal.bound if self.goal.sense == "<=" else end >= self.goal.bound


def no_margins(problem: Problem) -> Margins:
    """Return why a mixture has neither margins nor a proof."""
    if not isinstance(problem.confidence, Proof):
        return NO_MARGINS
    reason = "proofs and margins are for decision='fixed', one rule"
    return NO_MARGINS._replace(reason=reason, proof=GoalProof(problem.confidence.confidence, 0, (), reason=reason))


def rows_for_proof(least: float, confidence: float, n_goals: int, n_rows: int, *, of_folds: bool = False) -> int | None:
    """Return about how many selection rows a proof takes, to two digits.

    ``least`` is by how many standard errors, on ``n_rows``, all goals can be met at once; None where they cannot.

    Examples
    --------
    >>> from counterpoise.rules.proving import rows_for_proof
    >>> rows_for_proof(1.5, 0.9, n_goals=1, n_rows=1000)
    2300
    """
    if not 0 < least < math.inf:
        return None
    share = share_to_test(n_goals, of_folds=of_folds)
    margin = float(ndtri(confidence) + ndtri(_POWER)) / math.sqrt(share) + _imbalance(n_goals) / math.sqrt(1.0 - share)
    return two_digits(n_rows * max((margin / least) ** 2, _MORE))  # as many as there are were not enough


def _is_of_population(goal: Goal, tables: Mapping[str, Table]) -> bool:
    return any(tables[name].population for name in goal.datasets)


def _why_no_proof(goals: Sequence[Goal], kept: Any) -> str:
    """Return why no number of rows gives a proof; an empty text where there may be one."""
    if not goals:
        return "the goals are about lists of rows and no samples"
    if getattr(kept, "n_rows", None) is not None:
        return "a model fitted over shards keeps sums of rows, and tests need the rows: pass X and y to choose on"
    if kept.persons is not None and np.unique(kept.persons).size < kept.persons.size:
        return "tests need independent rows, and some persons have several: pass one row for each"
    if kept.has_fold_scores and kept.test_rows is None:
        return (
            "the deciding model was trained on all selection rows: fit with confidence=Proof(...), which keeps some "
            "for tests, or pass X and y of other rows"
        )
    tables = kept.answers.tables
    unlimited = [
        name
        for name in dict.fromkeys(name for goal in goals for name in goal.datasets)
        if tables[name].population and tables[name].largest_weight is None and np.ptp(tables[name].weights()) > 0
    ]
    if unlimited:
        return f"the weights of {unlimited[0]} differ: pass largest_weight, the most that a row can weigh"
    at_the_end = next((goal for goal in goals if why_no_margin(goal) == AT_THE_END), None)
    known = _why_no_proof_of_amounts(goals, tables)
    return known if at_the_end is None else f"no rule can be inside of the bound of {at_the_end}"


def _why_no_proof_of_amounts(goals: Sequence[Goal], tables: Mapping[str, Table]) -> str:
    total = next((goal for goal in goals if goal.is_total), None)
    if total is not None:
        return f"{total} is on a total, which depends on how many rows there are: bound a mean, as cost is"
    for goal in goals:
        for rows in (count.rows for term in terms_of(goal) for count in term.row_counts()):
            limits = tables[rows.name].largest_value
            is_limited = rows.value in limits if isinstance(limits, dict) else limits is not None
            if rows.value is not None and tables[rows.name].population and not is_limited:
                return f"the amounts of {rows.value} differ: pass largest_value, the most that a row can have"
    return ""
