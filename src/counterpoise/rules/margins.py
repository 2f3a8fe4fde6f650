"""Goals that hold for new people: the choice of one rule with margins between the goals and what the rows show.

A rule that just meets its goals on the selection rows misses one of them on new rows about half of the time, and more
often where several goals bind. With the slack of a goal in parts of its standard error, ``z``, the risk of a rule is
the sum over goals of ``Phi(-z)``, to which distant goals add nothing, and the rule of least cost for a target ``t`` is
the cheapest with a risk of at most ``Phi(-t)``. Which target is needed is found from the rows:

1. The choice is optimistic: of many rules the one is chosen whose goals look met. The same choice on resamples of the
   rows, judged on all of them, tells by how much (a bootstrap; Efron 1983).
2. Goals fail together: with the correlation of their influence values, the probability that all hold is that of a
   normal vector below ``z - optimism``.

The least target at which that probability reaches the confidence is taken. Where none does, the rule with the largest
one is, and nothing is promised. All of this is asymptotic.

What counts of the rows are sums over cells: rows that all candidate rules treat alike and that the goals count alike.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from counterpoise._base.types import BoolArray, ByteArray, FloatArray, IntArray
from counterpoise.goals import Goal
from counterpoise.goals.binding import Views
from counterpoise.goals.bound_goals import GoalLimits, goal_range
from counterpoise.goals.terms import DEFAULT, Dataset, Linear, RowCount

N_RESAMPLES = 60
TARGETS = np.arange(-0.5, 3.0001, 0.125)  # of which the least that is enough is taken
_MOST_OPTIMISM = 3.0  # standard errors
_N_DRAWS = 4096  # of the normal vector: a power of two
_FAR = 8.0  # standard errors beyond which a goal cannot fail by chance
_TINY = 1e-12
_TWO_SIDED = 1.96  # standard errors on both sides of what is expected of new rows
_ALLOWED = 1e-9  # by which a goal may be missed: rounding
_UNMET = 1e3  # added to the risk of rules that miss a goal on the rows: they come last
_MOST_DOUBLINGS = 10
_MOST_RULES = 2000  # whose choice is repeated on resamples
_MOST_COST = 0.5  # part of the way to the best constant answer that margins may cost


class Rules(NamedTuple):
    """Candidate rules, and what each answers about cells of rows that all of them treat alike."""

    answers: ByteArray  # (n_cells, n_rules): codes of classes, and behind them of deferral
    cells: Mapping[str, IntArray]  # by dataset: the cell of each row

    def only(self, places: IntArray) -> "Rules":
        """Return some of the rules."""
        return self._replace(answers=self.answers[:, places])


class PartMargin(NamedTuple):
    """The margin of the limit of a goal that needs the largest one; None where a goal has no margin."""

    goal: int  # its place
    slack: float | None  # between the limit and what the rule has on the selection rows
    standard_error: float | None
    optimism: float | None  # of the choice
    cost: float  # what the objective would gain without this margin


class SafeRule(NamedTuple):
    """The rule that was chosen so that goals hold on new rows."""

    place: int  # among the candidates
    confidence: float | None  # that was reached; None where it was not
    margins: tuple[PartMargin, ...]
    cost: float  # of all margins: how much more of the objective than the best rule without
    limiting: int | None  # the place of the goal that is the least sure to hold
    rows_needed: int | None  # where the confidence was not reached: about how many rows would be enough
    is_costly: bool = False  # whether it was not reached because it costs too much


class Margin(NamedTuple):
    """What lies between the bound of a goal and what is aimed at, so that the goal holds on new rows."""

    goal: Goal
    bound: float  # that is asked for
    value: float  # that is aimed at: on the selection rows
    standard_error: float | None  # of the value on as many new rows; None where the goal has no margin
    optimism: float | None  # by how much the choice makes the value look better
    cost: float  # what the objective would gain without this margin
    reason: str = ""  # why the goal has no margin

    def __str__(self) -> str:
        name = str(self.goal.left)
        if self.standard_error is None:
            return f"{name}: {self.bound:.4g} asked, {self.value:.4g} aimed at; no margin, as {self.reason}"
        ends = goal_range(self.goal)
        low, high = (float(np.clip(self.value + side * _TWO_SIDED * self.standard_error, *ends)) for side in (-1, 1))
        return f"{name}: {self.bound:.4g} asked, {self.value:.4g} aimed at, {low:.4g} to {high:.4g} expected"


class Margins(NamedTuple):
    """The margins of all goals, and whether they are enough."""

    confidence: float | None  # that was reached; None where it was not
    margins: tuple[Margin, ...]
    cost: float  # how much more of the objective the rule has than the best one without margins
    limiting: Goal | None  # the goal that is the least sure to hold
    rows_needed: int | None  # where the confidence was not reached: about how many rows would be enough
    is_costly: bool = False  # whether it was not reached because it costs too much
    reason: str = ""  # why there are none


NO_MARGINS = Margins(None, (), 0.0, None, None, reason="margins are for decision='fixed' and two classes")


class Part(NamedTuple):
    """One limit of a goal: a linear function of answers that must not be above zero."""

    linear: Linear
    goal: int | None  # its place; None: it is the budget
    is_random: bool  # whether it gets a margin


class RowCells:
    """The rows of a dataset that goals count, by the cell that rules treat alike and by what counts them."""

    def __init__(self, name: str, cells: IntArray, sets: Sequence[Dataset], views: Views) -> None:
        self.name, self.sets = name, sets
        table = views.tables[name]
        is_in = np.zeros((len(sets), table.n_samples), dtype=np.bool_)
        for place, rows in enumerate(sets):
            is_in[place, views.rows(rows)[0]] = True
        packed = np.packbits(is_in, axis=0).T
        kinds, of = np.unique(packed, axis=0, return_inverse=True)
        of = of.ravel()
        self.membership = np.unpackbits(kinds, axis=1)[:, : len(sets)].astype(np.float64)  # (n_kinds, n_sets)
        self.n_kinds, self.n_cells = len(kinds), int(cells.max(initial=-1)) + 1
        self.keys = cells.astype(np.int64) * self.n_kinds + of
        self.weights = table.weights()
        self.squares = (
            self.weights if table.counts is not None else self.weights**2
        )  # of rows, or of those they stand for
        self.are_equal = table.counts is not None or bool(np.ptp(self.weights) == 0)
        self.unit = 1.0 if table.counts is not None else float(self.weights[0])

    def sums(self, amounts: FloatArray, n_cells: int) -> FloatArray:
        """Return the sums of amounts of the rows, shape (n_cells, n_kinds)."""
        counted = np.bincount(self.keys, amounts, n_cells * self.n_kinds)
        return counted.astype(np.float64).reshape(n_cells, self.n_kinds)


class RuleTable:
    """What candidate rules come to in any linear function of their answers, on the rows and on resamples of them."""

    def __init__(self, rules: Rules, linear: Sequence[Linear], views: Views) -> None:
        self.rules, self.views, self.linear = rules, views, tuple(linear)
        self.counts = sorted({count for one in linear for count in one.row_counts}, key=repr)
        self.n_cells = len(rules.answers)
        self.place = {count: place for place, count in enumerate(self.counts)}
        by_name: dict[str, list[Dataset]] = {}
        for count in self.counts:
            for rows in (count.rows, count.out_of):
                own = by_name.setdefault(rows.name, [])
                if rows not in own:
                    own.append(rows)
        self.rows = {name: RowCells(name, rules.cells[name], sets, views) for name, sets in by_name.items()}
        self.kinds = [self._answer(count) for count in self.counts]
        self.indicators = {kind: kind.holds(rules.answers).astype(np.float64) for kind in set(self.kinds)}

    def _answer(self, count: RowCount) -> "_Kind":
        classes = self.views.classes
        place = -1 if count.positive is None else self.views.place(count.called)
        return _Kind(count.positive, place, -1 if classes.deferred is None else len(classes.labels))

    def only(self, places: IntArray) -> "RuleTable":
        """Return the same of some rules."""
        return RuleTable(self.rules.only(places), self.linear, self.views)

    def observed(self) -> dict[str, FloatArray]:
        """Return the sums of the rows as they are."""
        return {name: rows.sums(rows.weights, self.n_cells) for name, rows in self.rows.items()}

    def resamples(
        self, n_resamples: int, rng: np.random.Generator, fixed: set[str], persons: Mapping[str, IntArray]
    ) -> list[dict[str, FloatArray]]:
        """Return the sums of resamples of the rows; those of fixed datasets stay as they are.

        Where several rows are of one person, persons are drawn.
        """
        observed, found = self.observed(), []
        for _ in range(n_resamples):
            drawn = {}
            for name, rows in self.rows.items():
                if name in fixed:
                    drawn[name] = observed[name]
                elif name in persons:
                    codes = persons[name]
                    n_persons = int(codes.max()) + 1
                    times = np.bincount(rng.integers(0, n_persons, n_persons), minlength=n_persons)
                    drawn[name] = rows.sums(rows.weights * times[codes], self.n_cells)
                elif rows.are_equal:  # cells of equal rows are drawn as such
                    counts = np.rint(observed[name] / rows.unit)
                    total = int(counts.sum())
                    times = rng.multinomial(total, counts.ravel() / total).reshape(counts.shape)
                    drawn[name] = np.asarray(rows.unit * times, dtype=np.float64)
                else:
                    n_rows = rows.weights.size
                    times = np.bincount(rng.integers(0, n_rows, n_rows), minlength=n_rows)
                    drawn[name] = rows.sums(rows.weights * times, self.n_cells)
            found.append(drawn)
        return found

    def shares(self, sums: Mapping[str, FloatArray]) -> FloatArray:
        """Return for each count what it is out of its rows, for every rule, shape (n_counts, n_rules)."""
        found = np.empty((len(self.counts), self.rules.answers.shape[1]))
        for place, (count, kind) in enumerate(zip(self.counts, self.kinds, strict=True)):
            rows, own = self.rows[count.rows.name], sums[count.rows.name]
            out_of = self.rows[count.out_of.name]
            total = sums[count.out_of.name].sum(axis=0) @ out_of.membership[:, out_of.sets.index(count.out_of)]
            by_cell = own @ rows.membership[:, rows.sets.index(count.rows)]
            found[place] = (by_cell @ self.indicators[kind]) / total if total > 0 else 0.0
        return found

    def values(self, shares: FloatArray) -> FloatArray:
        """Return the linear functions of every rule, shape (n_functions, n_rules)."""
        found = np.empty((len(self.linear), shares.shape[1]))
        for place, one in enumerate(self.linear):
            weights = np.zeros(len(self.counts))
            for count in one.row_counts:
                weights[self.place[count]] += count.coefficient
            found[place] = one.constant + weights @ shares
        return found

    def influences(self, places: IntArray, shares: FloatArray, rule: int) -> dict[str, FloatArray]:
        """Return the influence of every row on some functions of one rule, by dataset (n_functions, n_rows)."""
        sums, found = self.observed(), {}
        for name, rows in self.rows.items():
            kinds, cells = rows.keys % rows.n_kinds, rows.keys // rows.n_kinds
            own = np.zeros((places.size, rows.keys.size))
            for number, place in enumerate(places.tolist()):
                for count in self.linear[place].row_counts:
                    if count.rows.name != name:
                        continue
                    total = float(sums[name].sum(axis=0) @ rows.membership[:, rows.sets.index(count.out_of)])
                    if total <= 0:
                        continue
                    at = self.place[count]
                    is_counted = self.indicators[self.kinds[at]][cells, rule]
                    is_in = rows.membership[kinds, rows.sets.index(count.rows)]
                    is_of = rows.membership[kinds, rows.sets.index(count.out_of)]
                    own[number] += count.coefficient * (is_in * is_counted - shares[at, rule] * is_of) / total
            found[name] = own * rows.weights
        return found

    def variances(self, places: IntArray, shares: FloatArray) -> FloatArray:
        """Return the variance of some functions for every rule, shape (n_functions, n_rules); none is zero.

        Shares are moved a little from 0 and 1, by half of a row of those that they are out of.
        """
        n_rules = shares.shape[1]
        found = np.zeros((places.size, n_rules))
        for name, rows in self.rows.items():
            squares = rows.sums(rows.squares, self.n_cells)
            sums = rows.sums(rows.weights, self.n_cells).sum(axis=0)
            n_answers = int(self.rules.answers.max(initial=1)) + 1
            by_answer = [
                squares.T @ (self.rules.answers == answer) for answer in range(n_answers)
            ]  # (n_kinds, n_rules)
            for number, place in enumerate(places.tolist()):
                own = [count for count in self.linear[place].row_counts if count.rows.name == name]
                if not own:
                    continue
                direct = np.zeros((n_answers, rows.n_kinds))  # what an answer adds to the influence of a row
                central = np.zeros((rows.n_kinds, n_rules))  # what is taken off
                floor = 0.0
                for count in own:
                    at = self.place[count]
                    is_in, is_of = (rows.membership[:, rows.sets.index(one)] for one in (count.rows, count.out_of))
                    total = float(sums @ is_of)
                    if total <= 0:
                        continue
                    for answer in range(n_answers):
                        direct[answer] += count.coefficient * is_in / total * bool(self.kinds[at].holds(answer))
                    central += (count.coefficient / total) * np.outer(is_of, shares[at])
                    n_rows = total**2 / max(float(squares.sum(axis=0) @ is_of), _TINY)
                    floor += count.coefficient**2 * 0.25 / (n_rows + 1.0) ** 2  # of a share of half a row
                total_variance = np.zeros(n_rules)
                for answer in range(n_answers):
                    total_variance += (by_answer[answer] * (direct[answer][:, None] - central) ** 2).sum(axis=0)
                found[number] += total_variance + 2.0 * floor
        return found


class _Kind(NamedTuple):
    """Which answers a count is about."""

    positive: bool | None  # the class, any other class, or None: deferral
    place: int  # the code of the class
    deferred: int  # that of deferral

    def holds(self, answers: Any) -> Any:
        """Tell of which answers it is."""
        if self.positive is None:
            return answers == self.deferred
        return answers == self.place if self.positive else (answers != self.place) & (answers != self.deferred)


class RuleRanking(NamedTuple):
    """What decides which rule is the best for a target."""

    cost: FloatArray  # (n_rules,)
    risk: FloatArray  # the sum of the probabilities that goals fail, as if the slack were that of new rows
    is_met: BoolArray  # whether all goals are met on the rows

    def best(self, targets: FloatArray) -> IntArray:
        """Return for each target the rule of least cost whose risk is small enough; else that of least risk."""
        risk = np.where(self.is_met, self.risk, self.risk + _UNMET)
        fallback = int(risk.argmin())
        order = np.lexsort((risk, self.cost))
        least = np.minimum.accumulate(risk[order])
        allowed = np.where(np.isneginf(targets), _UNMET / 2, ndtr(-targets))
        first = np.searchsorted(-least, -allowed)  # the first rule by cost that is safe enough
        return np.where(first < order.size, order[np.minimum(first, order.size - 1)], fallback)


def hold(
    table: RuleTable,
    parts: Sequence[Part],
    confidence: float,
    *,
    most_cost: float,
    fixed: frozenset[str] = frozenset(),
    persons: Mapping[str, IntArray] | None = None,
    seed: int = 0,
) -> SafeRule:
    """Choose the rule of least cost whose goals hold together on new rows with a probability of about ``confidence``.

    Parameters
    ----------
    table : RuleTable
        Of the parts of the goals, and behind them of what is minimised, the largest of which counts.
    parts : sequence of Part
        What each of the first functions of the table is.
    confidence : float in (0, 1)
    most_cost : float
        Rules that cost more count as out of reach.
    fixed : set of str
        Datasets that are lists of rows and no samples of people.
    persons : dict from dataset names to arrays, optional
        The person that each row is of, by number, where some have several.
    seed : int
        Of the resamples.
    """
    persons, rng = {} if persons is None else persons, np.random.default_rng(seed)
    is_random = np.array([part.is_random for part in parts])
    random = np.flatnonzero(is_random)
    table, kept = _near_the_frontier(table, len(parts), random, persons)
    shares = table.shares(table.observed())
    now, z, errors = judge(table, shares, len(parts), random, persons)
    places = now.best(TARGETS)
    gained = np.zeros((TARGETS.size, random.size))
    for sums in table.resamples(N_RESAMPLES, rng, set(fixed), persons):
        values = table.values(table.shares(sums))
        other = -values[random] / errors
        again = _rank_rules(values, len(parts), other).best(TARGETS)
        gained += (np.clip(other, -_FAR, _FAR) - np.clip(z, -_FAR, _FAR))[:, again].T
    optimism = np.clip(gained / N_RESAMPLES, 0.0, _MOST_OPTIMISM)
    draws = _draws(table, shares, random, int(now.best(np.array([ndtri(confidence)]))[0]), persons)
    within = z[:, places].T - optimism
    held = np.array([float((draws <= one).all(axis=1).mean()) for one in within])
    is_cheap = (now.cost[places] <= most_cost + _TINY) & now.is_met[places]
    plain = int(now.best(np.array([-np.inf]))[0])
    enough = np.flatnonzero((held >= confidence) & is_cheap)
    reached = enough.size > 0
    at = int(enough[0]) if reached else int(np.where(is_cheap, held, -1.0).argmax())
    place = int(places[at]) if reached or is_cheap[at] else plain
    margins = _margins(parts, random, now, z, errors, optimism[at], place, float(TARGETS[at]))
    least = within[at].argmin() if random.size else 0
    limiting = parts[random[least]].goal if random.size else None
    is_costly = not reached and bool(((held >= confidence) & now.is_met[places]).any())
    needed = None
    if not reached and not is_costly:
        needed = _rows_needed(z[:, places[-1]], optimism[at], draws, confidence, table)
    cost = float(now.cost[place] - now.cost[plain])
    level = confidence if reached else None
    return SafeRule(int(kept[place]), level, margins, max(cost, 0.0), limiting, needed, is_costly)


def _rank_rules(values: FloatArray, n_parts: int, z: FloatArray) -> RuleRanking:
    is_met = np.asarray((values[:n_parts] <= _ALLOWED).all(axis=0))
    return RuleRanking(values[n_parts:].max(axis=0), ndtr(-z).sum(axis=0), is_met)


def judge(
    table: RuleTable, shares: FloatArray, n_parts: int, random: IntArray, persons: Mapping[str, IntArray]
) -> tuple[RuleRanking, FloatArray, FloatArray]:
    """Return what decides about rules on all rows, the slack of goals in standard errors, and those."""
    values = table.values(shares)
    errors = np.sqrt(table.variances(random, shares))
    if persons:  # rows of a person are alike: how much that adds is found at one rule
        rule = int(_rank_rules(values, n_parts, -values[random] / errors).best(np.zeros(1))[0])
        influences = table.influences(random, shares, rule)
        by_person = sum(_covariance(own, persons.get(name)).diagonal() for name, own in influences.items())
        by_row = sum(_covariance(own, None).diagonal() for own in influences.values())
        factor = np.sqrt(np.divide(by_person, by_row, out=np.ones(random.size), where=np.asarray(by_row) > 0))
        errors = errors * factor[:, None]
    z = -values[random] / errors
    return _rank_rules(values, n_parts, z), z, errors


def _covariance(influences: FloatArray, persons: IntArray | None) -> FloatArray:
    """Return the covariance of functions, given the influence of every row on each."""
    if persons is not None:
        influences = np.array([np.bincount(persons, one) for one in influences])
    return np.asarray(influences @ influences.T)


def _near_the_frontier(
    table: RuleTable, n_parts: int, random: IntArray, persons: Mapping[str, IntArray]
) -> tuple[RuleTable, IntArray]:
    """Return the rules that cost little for their risk, and their places: those that a choice may lead to."""
    n_rules = table.rules.answers.shape[1]
    if n_rules <= _MOST_RULES:
        return table, np.arange(n_rules)
    now, _, _ = judge(table, table.shares(table.observed()), n_parts, random, persons)
    risk = np.where(now.is_met, now.risk, now.risk + _UNMET)
    order = np.lexsort((now.cost, risk))  # from the safest on
    frontier = np.minimum.accumulate(now.cost[order])
    excess = np.empty(n_rules)
    excess[order] = now.cost[order] - frontier
    kept = np.sort(np.argsort(excess, kind="stable")[:_MOST_RULES])
    return table.only(kept), kept


def _draws(
    table: RuleTable, shares: FloatArray, random: IntArray, rule: int, persons: Mapping[str, IntArray]
) -> FloatArray:
    """Return draws of a normal vector with the correlation of the goals' influence values at one rule."""
    covariance = np.zeros((random.size, random.size))
    for name, own in table.influences(random, shares, rule).items():
        covariance += _covariance(own, persons.get(name))
    scale = np.sqrt(np.maximum(covariance.diagonal(), _TINY**2))
    correlation = np.clip(covariance / np.outer(scale, scale), -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    points = qmc.Sobol(max(random.size, 1), seed=0).random(_N_DRAWS)[:, : random.size]
    return np.asarray(ndtri(np.clip(points, _TINY, 1 - _TINY)) @ root.T)


def _margins(
    parts: Sequence[Part],
    random: IntArray,
    now: RuleRanking,
    z: FloatArray,
    errors: FloatArray,
    optimism: FloatArray,
    place: int,
    target: float,
) -> tuple[PartMargin, ...]:
    """Return for each goal the part that needs the largest margin, and what that margin costs."""
    found = []
    for goal in dict.fromkeys(part.goal for part in parts if part.goal is not None):
        own = np.flatnonzero([parts[one].goal == goal for one in random])
        if not own.size:
            found.append(PartMargin(goal, None, None, None, 0.0))
            continue
        worst = own[(z[own, place] - optimism[own]).argmin()]
        others = np.setdiff1d(np.arange(random.size), own)
        without = now._replace(risk=ndtr(-z[others]).sum(axis=0))
        cost = max(float(now.cost[place] - now.cost[without.best(np.array([target]))[0]]), 0.0)
        error = float(errors[worst, place])
        found.append(PartMargin(goal, float(z[worst, place]) * error, error, float(optimism[worst]) * error, cost))
    return tuple(found)


def _rows_needed(
    z: FloatArray, optimism: FloatArray, draws: FloatArray, confidence: float, table: RuleTable
) -> int | None:
    """Return about how many labelled rows would be enough at the safest rule, to two digits; None where none are."""
    n_rows = table.views.tables[DEFAULT].n_samples if DEFAULT in table.views.tables else 0
    for factor in 2.0 ** np.arange(0.0, _MOST_DOUBLINGS, 0.25):
        if (draws <= np.sqrt(factor) * z - optimism).all(axis=1).mean() >= confidence:
            digits = 10 ** max(int(np.log10(max(factor * n_rows, 1.0))) - 1, 0)
            return int(np.ceil(factor * n_rows / digits) * digits)
    return None


def parts_of(goals: tuple[Goal, ...], views: Views) -> list[Part]:
    """Return the limits of goals, and which of them get a margin."""
    written, parts = GoalLimits.of(goals, views), []
    for part, owner in zip(written.targets, written.owners.tolist(), strict=True):
        names = {count.rows.name for count in part.linear.row_counts}
        is_list = any(not views.tables[name].population for name in names)
        parts.append(Part(part.linear, owner, not why_no_margin(goals[owner]) and not is_list))
    return parts


def why_no_margin(goal: Goal) -> str:
    """Return why a goal gets no margin whatever the rows are; an empty text where it gets one."""
    if goal.confidence is not None:
        return "it has a confidence of its own"
    low, high = goal_range(goal)
    if goal.bound <= low + _ALLOWED if goal.sense == "<=" else goal.bound >= high - _ALLOWED:
        return "no rule can be inside of its bound"
    return ""
