"""A proof that goals hold on new rows: Learn then Test (Angelopoulos et al. 2021).

The selection rows are split. On one part rules are traced, from those with the largest margins to the cheapest one. On
the other, the test rows, each is tested in this order: for every goal with the exact bound of an audit, at the whole
risk, as a rule passes only if all of its goals do. The first rule that fails ends the sequence, and the one before it,
the cheapest that is proven, decides. Whatever the population, the probability that it misses a goal there is at most
one minus the confidence: that would take a pass of the first rule in the sequence that misses one.

Tests need independent rows that the deciding model was not trained on.

Goals that the cheapest rule is far inside of take few test rows. Where the traced part shows that, test rows that were
not looked at yet are traced on instead.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals, NoRows, Table
from counterpoise.goals.bound_goals import check_denominators
from counterpoise.goals.expressions import terms_of
from counterpoise.goals.population import GoalOutcome, measure_goal
from counterpoise.goals.terms import rows_behind
from counterpoise.rules.choosing import Problem
from counterpoise.rules.goal_rows import TRAIN, Answers
from counterpoise.rules.margins import AT_THE_END, Margins, most_rise, two_digits, why_no_margin
from counterpoise.rules.options import Proof
from counterpoise.rules.program import Choice

_TRACED = -3.0, 3.0  # margins of traced rules, in standard errors on the rows they are traced on, which may mislead
_PASSED = 3.0  # standard errors on the test rows with which a rule passes nearly always
_STEP = 0.15  # of the same, between one rule and the next
_POWER = 0.8  # with which the rule that is aimed at passes
_MOST_TESTED, _MOST_TESTED_OF_FOLDS = 0.9, 1 / 3  # part of the selection rows
_LEAST_ROWS = 10  # of either part
# Where the cheapest rule passes by far on the rows that it was traced on, so many times these are enough to test on.
_TIMES_TRACED, _SURELY = 2.0, 0.1
_LEAST_SLACK = 1e-3  # standard errors: less would take millions of times the rows
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


def traced_targets(ratio: float) -> FloatArray:
    """Return the margins of the rules to trace, from large to small, on so many times the number of test rows."""
    unit = math.sqrt(ratio)  # a standard error on the test rows
    return np.asarray(np.arange(_TRACED[1] + _PASSED * unit, _TRACED[0], -_STEP * unit))


def split_rows(tables: Mapping[str, Table], test_rows: IntArray | None, share: float) -> SplitRows:
    """Return the rows to trace on and those to test on; lists, which are no samples, are not split.

    Datasets of as many rows are split alike: one may hold the twins of the other.
    """
    rng, traced, tested = np.random.default_rng(0), {}, {}
    alike: dict[int, IntArray] = {}  # rows to test on, by number of rows
    for name, table in tables.items():
        every = np.arange(table.n_samples)
        if not table.population:
            traced[name], tested[name] = every, every
            continue
        own = test_rows if name == TRAIN and test_rows is not None else alike.get(every.size)
        n_tested = round(min(share, 1.0 - _LEAST_ROWS / max(every.size, 1)) * every.size)
        own = rng.permutation(every)[: max(n_tested, 0)] if own is None else own
        alike[every.size] = own
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
        As for ``prove_rule``; the problem has a confidence, or a ``Proof``.
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
    chosen, proof = prove_rule(family, problem, groups, level)
    if chosen is not None:
        choice, margins = with_proven(chosen)
        proof = proof.unless_costly(choice.value, plain.value)
        if proof.is_proven:
            return choice, margins._replace(confidence=level, limiting=None, proof=proof), chosen
    choice, margins = with_margins(level)
    return choice, without_proof(margins, proof, family.selection_data), None


def without_proof(margins: Margins, proof: GoalProof, kept: Any) -> Margins:
    """Return margins in the place of a proof, with the number of rows that one would take."""
    n_goals = sum(margin.standard_error is not None for margin in margins.margins)
    if proof.reason or not n_goals:
        return margins._replace(proof=proof)
    n_rows, of_folds = kept.answers.tables[TRAIN].n_samples, kept.has_fold_scores
    needed = rows_for_proof(margins.most_slack, proof.confidence, n_goals, n_rows, of_folds=of_folds)
    return margins._replace(proof=proof._replace(rows_needed=needed))


def prove_rule(family: Any, problem: Problem, groups: Any, level: float) -> tuple[Any, GoalProof]:
    """Return the cheapest rule of a family that is proven to meet all goals, None where there is none, and the proof.

    The ``trace`` of the family gives rules from safest to cheapest; ``groups`` are those of rules.
    """

    def trace(part: Any, targets: FloatArray) -> list[Traced]:
        return [Traced(chosen) for chosen in part.trace(problem, groups, targets)]

    traced, proof = prove(family, problem, trace, level)
    return None if traced is None else traced.chosen, proof


class Traced(NamedTuple):
    """A rule, or a mixture of rules, that may be proven."""

    chosen: Any  # as ``predictions`` of its family takes it
    mixture: FloatArray = np.ones(1)
    solution: Any = None  # of the mixture, on the rows that it was traced on


def prove(
    family: Any,
    problem: Problem,
    trace: Callable[[Any, FloatArray], Iterable[Traced]],
    level: float,
    most_tested: float = _MOST_TESTED,
) -> tuple[Traced | None, GoalProof]:
    """Return the cheapest rule, or mixture, that is proven to meet all goals, None where there is none, and the proof.

    Parameters
    ----------
    family : PooledModels, ThresholdRules or ClassRules
        Its ``predictions`` say what rules decide.
    problem : Problem
    trace : callable
        Given the family on some of the rows, and margins in standard errors from large to small, it returns what is
        best with each.
    level : float
        The confidence.
    most_tested : float
        The largest part of the rows to test on.
    """
    kept = family.selection_data
    tables, risk = kept.answers.tables, 1.0 - level
    goals = goals_to_prove(problem.goals, kept)
    reason = why_no_proof(goals, kept)
    if reason:
        return None, GoalProof(level, 0, (), reason=reason)
    views = kept.answers.views()
    n_parts = {goal: len(goal.parts(views)) for goal in goals}  # such as groups: some of the rows may lack some

    def passes(one: Traced, tests: Any, risk: float) -> bool:
        answers = tests.predictions(one.chosen).answers
        return all(GoalTest.of(goal, answers, one.mixture, risk, n_parts[goal]).passes() for goal in goals)

    def trace_on(part: SplitRows) -> list[Traced]:
        targets = traced_targets(part.traced[TRAIN].size / max(part.tested[TRAIN].size, 1))
        try:
            return list(trace(family.only(part.traced).prepared(problem), targets))
        except (InfeasibleGoals, NoRows):  # on fewer rows than all
            return []

    names = {name for goal in goals for name in goal.datasets if tables[name].population} | {TRAIN}
    share = min(share_to_test(len(goals)), most_tested)
    parts = split_rows(tables, kept.test_rows, share)
    if min(part[name].size for part in parts for name in names) < _LEAST_ROWS:
        return None, GoalProof(level, parts.tested[TRAIN].size, ())
    traced, few = trace_on(parts), _TIMES_TRACED * (1.0 - share)
    may_move = kept.test_rows is None and few < share and bool(traced)
    if may_move and passes(traced[-1], family.only(parts.traced), _SURELY * risk):
        parts = split_rows(tables, None, few)  # the rows that are still tested on have decided nothing
        traced = trace_on(parts)
    n_rows, tests = parts.tested[TRAIN].size, family.only(parts.tested)
    lists = tuple(goal for goal in problem.goals if goal not in goals)  # which are known: nothing is tested there
    meets_lists = (one for one in traced if _meets(tests, one, lists))
    passed = list(takewhile(lambda one: passes(one, tests, risk), meets_lists))
    if not passed:
        return None, GoalProof(level, n_rows, ())
    best = passed[-1]
    checks = tests.predictions(best.chosen).answers.checks(problem.goals, best.mixture)
    return best, GoalProof(level, n_rows, tuple(check.value for check in checks))


def _meets(family: Any, one: Traced, goals: tuple[Goal, ...]) -> bool:
    checks = family.predictions(one.chosen).answers.checks(goals, one.mixture)
    return all(check.holds for check in checks)


class GoalTest(NamedTuple):
    """How a goal stands on test rows: all of its parts must be inside of its bound, each at the whole risk."""

    goal: Goal
    outcomes: Sequence[GoalOutcome]  # of the parts; empty where some have no rows
    risk: float

    @classmethod
    def of(cls, goal: Goal, answers: Answers, mixture: FloatArray, risk: float, n_parts: int) -> "GoalTest":
        """Return how a goal stands on rows that rules decide; a confidence of its own may lower the risk."""
        own, are_drawn = risk if goal.confidence is None else min(risk, 1.0 - goal.confidence), mixture.size > 1
        views = answers.views()
        shares = {name: np.clip(answers.shares(name, mixture), 0.0, 1.0) for name in goal.counted_datasets}
        try:
            parts = goal.parts(views)
            check_denominators(parts, views)
            if len(parts) < n_parts:
                return cls(goal, [], own)
            return cls(goal, [measure_goal(part, views, shares, are_drawn=are_drawn) for part in parts], own)
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


def rows_for_proof(least: float, confidence: float, n_goals: int, n_rows: int, *, of_folds: bool = False) -> int | None:
    """Return about how many selection rows a proof takes, to two digits.

    ``least`` is by how many standard errors, on ``n_rows``, all goals can be met at once; None where they cannot.

    Examples
    --------
    >>> from counterpoise.rules.proving import rows_for_proof
    >>> rows_for_proof(1.5, 0.9, n_goals=1, n_rows=1000)
    2300
    """
    if not _LEAST_SLACK < least < math.inf:
        return None
    share = share_to_test(n_goals, of_folds=of_folds)
    margin = float(ndtri(confidence) + ndtri(_POWER)) / math.sqrt(share) + _imbalance(n_goals) / math.sqrt(1.0 - share)
    return two_digits(n_rows * max((margin / least) ** 2, _MORE))  # as many as there are were not enough


def goals_to_prove(goals: Iterable[Goal], kept: Any) -> list[Goal]:
    """Return the goals that are about samples of a population."""
    tables = kept.answers.tables
    return [goal for goal in goals if any(tables[name].population for name in goal.datasets)]


def why_no_proof(goals: Sequence[Goal], kept: Any) -> str:
    """Return why no number of rows gives a proof; an empty text where there may be one."""
    if not goals:
        return "the goals are about lists of rows and no samples"
    if getattr(kept, "n_rows", None) is not None:
        return "a model fitted over Dask keeps counts of rows, and tests need the rows: pass X and y to choose on"
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
            table = tables[rows_behind(rows.name)]
            limits = table.largest_value
            is_limited = rows.value in limits if isinstance(limits, dict) else limits is not None
            if rows.value is not None and table.population and not is_limited:
                return f"the amounts of {rows.value} differ: pass largest_value, the most that a row can have"
    return ""
