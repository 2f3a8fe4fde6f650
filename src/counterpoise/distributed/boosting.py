"""Boosting over shards: rows, bins, losses and weights stay where they are; a few sums travel in a round.

Of a round travel: mass by number of failures, or cuts of the mixture problem, for the weights; histograms for the tree;
back the tree; and the mass of each cell that it tells each class.

Features are binned by edges from one sample of all rows, the same in every shard. Compiled loops take the rows of a
shard in one pass and without arrays on the way: workers of Dask give memory back as soon as it is free, and to ask for
it anew costs more than these loops.

Inside goals the program is that of one machine, with cells in the place of rows. Goals see of a row its cell alone, so
the multipliers price answers by cell, and a small table of prices travels to the rows. Mean losses, those of groups and
rates are sums over cells as well. Only a tail weighs rows of one cell differently: those weights stay in the shards,
and the shards count them beside the prices.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numba import float64, int64, types, uint8, uint16, void

from counterpoise._base.compiled import kernel
from counterpoise._base.shards import Shard, Shards, total
from counterpoise._base.types import AnyArray, BoolArray, ByteArray, FloatArray, IntArray
from counterpoise.boosting.inputs import CheckedRows
from counterpoise.boosting.inside import Program, Stage, solve_of, worth_of
from counterpoise.boosting.learner import Question
from counterpoise.boosting.rounds import Fitted, History, Rule
from counterpoise.boosting.rules import group_table, hedge_table
from counterpoise.distributed.rows import CELL, CODES, MASS, CellAnswers, Cells, X, cell_losses, shares_of
from counterpoise.goals import Rate
from counterpoise.goals.tables import group_codes
from counterpoise.learners import HistogramTree, Resampled
from counterpoise.learners._growing import TARGET, Grown, Target, ended, grow_over
from counterpoise.learners.binning import (
    BinnedFeatures,
    Seen,
    as_floats,
    as_matrix,
    bin_part,
    binned_by,
    check_categorical,
    find_edges,
    sample_places,
)
from counterpoise.learners.resampling import fresh_copy
from counterpoise.rules.choosing import ALPHA, Problem, groups_by
from counterpoise.rules.goal_rows import TRAIN, find_positive
from counterpoise.rules.pool import predict_codes
from counterpoise.rules.rows import stack_rows, take_rows
from counterpoise.solvers.linear_program import InfeasibleRows, MixtureSolution
from counterpoise.solvers.mixture import minimize_cvar_over
from counterpoise.solvers.rows import MASS_UNIT, BitRows, whole_masses
from counterpoise.solvers.tail import TAIL, WEIGHTS, TailRows
from counterpoise.theory.risks import CVaR, Risk, RiskRows

BINNED, _UNSETTLED = "binned", "bins"  # names in a shard


def _n_rows(shard: Shard) -> int:
    return int(shard[X].shape[0])


def rows_at(shard: Shard, places: IntArray, firsts: IntArray) -> Any:
    """Return those rows, of some numbered through all shards, that are here."""
    first = int(firsts[shard.number])
    inside = places[(places >= first) & (places < first + shard[X].shape[0])]
    return take_rows(shard[X], inside - first)


def sample_over(shards: Shards) -> Any:
    """Return the sample of rows from which bins are found, as they are: the same whatever the shards."""
    sizes = np.array(shards.map(_n_rows))
    places = sample_places(int(sizes.sum()))
    wanted = np.arange(sizes.sum()) if places is None else places
    parts = shards.map(rows_at, wanted, np.cumsum(sizes) - sizes)
    return stack_rows([part for part in parts if part.shape[0]])


def _bin(shard: Shard, edges: list[FloatArray], is_categorical: BoolArray) -> Seen:
    if shard[X].shape[0]:
        shard[_UNSETTLED], seen = bin_part(as_matrix(shard[X], len(edges)), edges, is_categorical)
        return seen
    shard[_UNSETTLED] = np.empty((len(edges), 0), dtype=np.uint8)
    return Seen(np.zeros(len(edges), dtype=np.uint8), np.zeros((len(edges), 256), dtype=np.bool_))


def _settle(
    shard: Shard, edges: list[FloatArray], is_categorical: BoolArray, seen: Seen, names: AnyArray | None
) -> None:
    shard[BINNED] = binned_by(shard.pop(_UNSETTLED), edges, is_categorical, seen, names)
    del shard[X]  # bins are all that trees look at from here on


def bin_over(
    shards: Shards, learner: HistogramTree, sample: Any = None, names: AnyArray | None = None
) -> BinnedFeatures:
    """Bin the rows of all shards as ``learner.prepare`` does, and return the bins of no row, which tell the layout.

    Parameters
    ----------
    shards : Shards
        Each holds a matrix by the name ``"X"``, and then in its place the bins by the name ``"binned"``.
    learner : HistogramTree
        Its ``max_bins`` and ``categorical_features``.
    sample : array or data frame, optional
        From ``sample_over``, where it is known.
    names : array, optional
        The names of the features.
    """
    sample = as_floats(as_matrix(sample_over(shards) if sample is None else sample))
    is_categorical = check_categorical(learner.categorical_features, sample.shape[1])
    edges = find_edges(sample, is_categorical, learner.max_bins)
    seen = reduce(Seen.beside, shards.change("bin", _bin, edges, is_categorical))
    told: tuple[Any, ...] = (edges, is_categorical, seen, names)
    shards.change("bins settled", _settle, *told)
    return binned_by(np.empty((len(edges), 0), dtype=np.uint8), *told)


_counts = uint16[::1]
_floats = float64[::1]
# What callers hand in may be read-only, mapped into memory from a file.
_codes = types.Array(uint16, 1, "C", readonly=True)
_cells = types.Array(int64, 1, "C", readonly=True)
_masses = types.Array(float64, 1, "C", readonly=True)


@kernel(void(_masses, _codes, _masses, _floats))
def _weigh(table: FloatArray, totals: AnyArray, mass: FloatArray, weights: FloatArray) -> None:
    """Write the weight of each row, its mass times what the table has for its number of failures, or at its end."""
    last = table.size - 1
    for row in range(totals.size):
        weights[row] = table[min(int64(totals[row]), last)] * mass[row]


@kernel(void(_codes, _masses, _floats))
def _add_by(totals: AnyArray, mass: FloatArray, sums: FloatArray) -> None:
    """Add the mass of each row to the sum of its number."""
    for row in range(totals.size):
        sums[totals[row]] += mass[row]


@kernel(void(_codes, _codes, _cells, _masses, int64, _counts, uint8[:, ::1], float64[:, ::1]))
def _note(
    said: AnyArray,
    codes: AnyArray,
    cells: IntArray,
    mass: FloatArray,
    number: int,
    totals: AnyArray,
    bits: ByteArray,
    sums: FloatArray,
) -> None:
    """Count and mark where the model of that number, from 0, fails, and add up the mass of each cell by answer."""
    place, shift = number >> 3, number & 7
    for row in range(said.size):
        is_wrong = int64(said[row] != codes[row])  # no branches: processors guess half of them wrong
        sums[cells[row], said[row]] += mass[row]
        totals[row] += is_wrong
        bits[row, place] |= is_wrong << shift


@kernel(float64(_codes, _codes, _masses))
def _wrong_weight(said: AnyArray, codes: AnyArray, weights: FloatArray) -> float:
    """Return the weight of the rows that are told something else than their code."""
    wrong = 0.0
    for row in range(said.size):
        wrong += weights[row] * int64(said[row] != codes[row])
    return wrong


# Names in a shard: failures of each row, which models fail on it, and what the model of a round is fitted to.
_TOTALS, _BITS, QUESTION = "totals", "bits", "question"
MOST_SAMPLED = 1_000_000  # rows that a learner of one machine is given
ELSEWHERE = np.empty(0)  # in the place of what stays in the shards


class ShardHistory(History):
    """The models so far; their losses and the rows' weights are in the shards."""

    def __init__(self, shards: Shards, cells: Cells, n_rounds: int) -> None:
        super().__init__(np.empty(0), n_rounds)
        self.shards, self.cells, self.n_planned = shards, cells, n_rounds
        self.start = cells.mass / cells.known.total  # of the cells
        shards.leave("no rounds", _no_rounds, n_rounds)
        shards.leave(WEIGHTS, weigh_by_failures, np.ones(1) / cells.known.total)

    @property
    def losses(self) -> Any:
        """Return the mean losses of all models in each cell, shape (n_cells, n_rounds)."""
        return cell_losses(self.cells, shares_of(self.cells, self.said))


def _no_rounds(shard: Shard, n_rounds: int) -> None:
    n_rows = len(shard[CODES])
    shard[_TOTALS] = np.zeros(n_rows, dtype=np.uint16)
    shard[_BITS] = np.zeros((n_rows, -(-n_rounds // 8)), dtype=np.uint8)


def mass_by_failures(shard: Shard, size: int) -> FloatArray:
    """Return the mass of the rows by the number of models that fail on them."""
    sums = np.zeros(size)
    _add_by(shard[_TOTALS], shard[MASS], sums)
    return sums


def weigh_by_failures(shard: Shard, table: FloatArray) -> None:
    """Weigh rows by the number of models that fail on them."""
    shard[WEIGHTS] = shard.room(WEIGHTS, len(shard[CODES]))
    _weigh(table, shard[_TOTALS], shard[MASS], shard[WEIGHTS])


def weigh_by_cell(shard: Shard, table: FloatArray) -> None:
    """Weigh rows by their cell."""
    shard[WEIGHTS] = table[shard[CELL]] * shard[MASS]


def weigh_rows(find: Callable[["ShardHistory"], FloatArray], weigh: Callable[[Shard, FloatArray], None]) -> Rule:
    """Leave in the shards weights by a table that ``find`` makes of the rounds: a rule."""

    def reweigh(history: History) -> FloatArray:
        assert isinstance(history, ShardHistory)  # noqa: S101 - of this file
        history.shards.leave(WEIGHTS, weigh, find(history))
        return ELSEWHERE

    return reweigh


def hedge_over(eta: float) -> Rule:
    """Weigh each row by ``exp(eta * its losses so far)``, as ``boosting.rules.hedge`` does."""

    def table(history: ShardHistory) -> FloatArray:
        return hedge_table(eta, total(history.shards.map(mass_by_failures, history.n_rounds + 1)))

    return weigh_rows(table, weigh_by_failures)


def hedge_groups_over(eta: float, groups: IntArray) -> Rule:
    """Weigh each group of cells by ``exp(eta * its average losses so far)``, as ``boosting.rules.hedge_groups``."""

    def table(history: ShardHistory) -> FloatArray:
        mass, labels = history.cells.mass, history.cells.labels
        right = sum(said[np.arange(len(labels)), labels] for said in history.said)
        failures = np.bincount(groups, history.n_rounds * mass - right)
        return group_table(eta, np.bincount(groups, mass), failures)[groups]

    return weigh_rows(table, weigh_by_cell)


def by_cell(rule: Rule) -> Rule:
    """Weigh cells as a rule of one machine weighs rows, and the rows of a cell alike."""

    def table(history: ShardHistory) -> FloatArray:
        mass = history.cells.mass
        return np.asarray(np.divide(rule(history), mass, out=np.zeros(mass.size), where=mass > 0))

    return weigh_rows(table, weigh_by_cell)


def dual_over(alpha: float, tol: float = 1e-4) -> Rule:
    """Take the dual weights of the mixture problem, as ``boosting.rules.dual_of`` does of a CVaR.

    ``tol`` is a gap of losses from 0 to 1, whatever the weights of the rows are.
    """

    def reweigh(history: History) -> FloatArray:
        assert isinstance(history, ShardHistory)  # noqa: S101 - of this file
        minimize_cvar_over(history.shards, alpha, tol=tol)  # leaves them in the shards
        return ELSEWHERE

    return reweigh


class ShardFit:
    """Fit the model of a round to the weights that the rows have in their shards, and inside goals to costs of cells.

    Parameters
    ----------
    stage : Stage, optional
        Inside goals: cells in the place of rows.
    """

    prepared = None  # by the learner: bins stay in the shards

    def __init__(
        self,
        learner: Any,
        history: ShardHistory,
        random_seeds: Callable[[int], int],
        sample: Any,
        stage: Stage | None = None,
    ) -> None:
        self.learner, self.history, self.random_seeds, self.stage = learner, history, random_seeds, stage
        self.shards, self.known = history.shards, history.cells.known
        self.is_random = not isinstance(learner, HistogramTree)
        if not self.is_random:
            self.layout = bin_over(self.shards, learner, sample, self.known.names)

    def __call__(self, weights: FloatArray, number: int) -> Fitted:
        """Return the model of a round, and the mass of each cell that it tells each class."""
        if self.stage is None:
            self.shards.leave(QUESTION, _ask_labels)
        elif not self._ask_costs(self.stage.costs(weights) if weights.ndim == 1 else weights).any():
            self._ask_costs(self.stage.costs(self.history.start))  # all answers cost alike
        model, grown = (self._sampled(number), None) if self.is_random else self._grown()
        said, loss = take(self.shards, self.history.cells, model, number, grown)
        self.shards.forget(QUESTION)
        return Fitted(model, np.empty(0, dtype=np.uint8), said=said, weighted_loss=loss)

    def _ask_costs(self, costs: FloatArray) -> FloatArray:
        """Let every shard know what its rows should be called, and return how much that matters."""
        mass = self.history.cells.mass
        by_mass = np.divide(costs, mass, out=np.zeros(costs.shape), where=mass > 0)
        # That all worths sum to: rows weigh 1 at most.
        most = (len(costs) - 1) * (1.0 + float(np.ptp(costs, axis=0).sum()))
        return np.array(self.shards.change(QUESTION, _ask_costs, by_mass, most))

    def _grown(self) -> tuple[Any, Grown]:
        self.shards.leave(TARGET, _aim)
        model = copy.copy(self.learner)
        grown = grow_over(self.shards, self.layout, len(self.known.classes), model.growth_limits())
        self.shards.forget(TARGET)
        model.tree_ = grown.tree
        model.keep_labels(self.known.classes, self.known.n_features, self.known.names)
        return model, grown

    def _sampled(self, number: int) -> Any:
        """Fit any learner to rows drawn by weight: evenly along the rows, so that shards do not matter."""
        totals, seed = np.array(self.shards.map(_asked_weight)), self.random_seeds(number)
        step = float(totals.sum()) / min(self.known.n_rows, MOST_SAMPLED)
        first = float(np.random.default_rng(seed).random()) * step
        found = self.shards.map(_drawn, np.cumsum(totals) - totals, first, step)
        rows, codes = stack_rows([part for part, _ in found if len(part)]), np.concatenate([own for _, own in found])
        model = fresh_copy(self.learner, seed)
        model = Resampled(model) if np.ptp(codes) == 0 else model  # many learners refuse one class alone
        return model.fit(rows, self.known.classes[codes])


def _ask_labels(shard: Shard) -> None:
    """Leave the question of what rows are called, by their weights."""
    out = shard.room(QUESTION, len(shard[CODES]))
    shard[QUESTION] = Question(shard[CODES], whole_masses(shard[WEIGHTS], 1.0, out))


def _asked_weight(shard: Shard) -> float:
    """Return how much what is asked matters."""
    return float(shard[QUESTION].weights.sum())


def _ask_costs(shard: Shard, by_mass: FloatArray, most: float) -> float:
    """Leave the question of what is cheapest, where answers cost by cell and by the rows' own weights."""
    costs = by_mass[:, shard[CELL]] * shard[MASS] + shard[WEIGHTS]
    own = shard[CODES], np.arange(len(shard[CODES]))
    costs[own] = by_mass[shard[CODES], shard[CELL]] * shard[MASS]
    asked = worth_of(costs)
    shard[QUESTION] = Question(asked.codes.astype(np.uint16), whole_masses(asked.weights, most), asked.rows)
    return _asked_weight(shard)


def _aim(shard: Shard) -> None:
    codes, weights, rows = shard[QUESTION]
    binned = shard[BINNED]
    if rows is not None:
        binned = replace(binned, bins=np.ascontiguousarray(binned.bins[:, rows]))
    shard[TARGET] = Target(binned, codes, weights)


def _drawn(shard: Shard, firsts: FloatArray, first: float, step: float) -> tuple[Any, AnyArray]:
    """Return the rows at which the running sum of weights passes ``first`` and every ``step`` from there."""
    codes, weights, rows = shard[QUESTION]
    reach = firsts[shard.number] + np.cumsum(weights)
    passed = np.ceil((reach - first) / step).astype(np.int64)
    before = int(np.ceil((firsts[shard.number] - first) / step))
    places = np.repeat(np.arange(reach.size), np.diff(np.maximum(passed, 0), prepend=max(before, 0)))
    return take_rows(shard[X], places if rows is None else rows[places]), codes[places]


def take(shards: Shards, cells: Cells, model: Any, number: int, grown: Grown | None = None) -> tuple[FloatArray, float]:
    """Let the shards ask the model of a round about their rows.

    Returns the mass of each cell that it tells each class, and the part of what was asked that it gets wrong. Rows that
    grew a tree need not walk down it.
    """
    given = (model, number, cells.known.classes, len(cells.values))
    parts = shards.change(("model", number), _take, *given, grown)
    said, (wrong, asked) = total([part for part, _ in parts]), total([loss for _, loss in parts])
    return said, float(wrong / asked) if asked else 0.0


def _take(
    shard: Shard, model: Any, number: int, classes: AnyArray, n_cells: int, grown: Grown | None
) -> tuple[FloatArray, tuple[float, float]]:
    """Note where a model fails, and return the mass of each cell that it tells each class, and what it gets wrong."""
    codes, said, sums = shard[CODES], ended(shard, grown), np.zeros((n_cells, len(classes)))
    if said is None or len(said) != len(codes):  # as where some rows alone were asked about
        rows = shard[BINNED] if BINNED in shard else shard[X]
        said = (predict_codes(model, rows, classes) if len(codes) else np.empty(0)).astype(np.uint16)
    _note(said, codes, shard[CELL], shard[MASS], number - 1, shard[_TOTALS], shard[_BITS], sums)
    shard[TAIL] = TailRows(BitRows(shard[_BITS], number), shard[MASS])
    asked = shard.pop(QUESTION, None)
    if asked is None:  # the shard is made again, and nobody asks what is wrong
        return sums, (0.0, 0.0)
    told = said if asked.rows is None else said[asked.rows]
    wrong = _wrong_weight(told, asked.codes.astype(np.uint16, copy=False), asked.weights)
    return sums, (float(wrong), float(asked.weights.sum()))


def last_loss(shard: Shard, number: int) -> float:
    """Return how much of the rows' present weights the model of the last round fails on, a whole number."""
    is_wrong = (shard[_BITS][:, (number - 1) >> 3] >> np.uint8((number - 1) & 7)) & 1
    return float(whole_masses(shard[WEIGHTS], 1.0) @ is_wrong)


class CellStage(Stage):
    """Cells in the place of rows; of each a model tells shares of its rows every class, shape (n_cells, n_classes)."""

    __slots__ = ()

    def answered(self, said: AnyArray) -> CellAnswers:
        """Return what models say of the cells, given shares of shape (n_cells, n_models, n_classes)."""
        return CellAnswers(self.answers.tables, {}, self.answers.positive, said=said)

    def _predicted(self, said: AnyArray) -> FloatArray:
        return np.asarray(said[:, self.answers.positive.place] if self.answers.positive.is_binary else said.ravel())


def program_over(model: Any, problem: Problem, history: ShardHistory) -> Program:
    """Return the program of a booster inside goals, on the cells of the rows in shards."""
    cells, asked = history.cells, problem.objective
    rows = CheckedRows(np.empty((len(cells.values), 0)), cells.labels, history.start, None)
    positive, rate = find_positive(model.classes_, model.pos_label), asked if isinstance(asked, Rate) else None
    stage = CellStage.of(rows, {}, {TRAIN: cells.table()}, positive, problem.goals, rate)
    history.shards.change(WEIGHTS, weigh_by_failures, np.zeros(1))  # cells tell all, until a tail weighs rows
    risk, alpha = bound_risk(problem, history), problem.alpha
    if alpha is None or alpha == 1:
        size = asked.size if isinstance(asked, Rate) else risk.size
        return Program(stage, solve_of(risk, len(cells.values)), size)

    def solve(_history: History, limits: dict[str, Any], tol: float) -> tuple[MixtureSolution, None]:
        try:
            return minimize_cvar_over(history.shards, alpha, tol=tol, **limits), None  # the weights are in the shards
        except InfeasibleRows:  # goals alone are priced
            history.shards.change(WEIGHTS, weigh_by_failures, np.zeros(1))
            raise

    def newest_loss() -> float:  # under the weights of the rows, an exact sum
        return float(sum(history.shards.map(last_loss, history.n_rounds))) * MASS_UNIT

    return Program(stage, solve, 1.0, newest_loss)


def bound_risk(problem: Problem, history: ShardHistory) -> Risk:
    """Return the risk that the rounds of a booster look at, on cells; of a rate the CVaR at the default alpha."""
    asked, table = problem.objective, history.cells.table()

    def codes(names: tuple[str, ...]) -> IntArray:
        return groups_by(names, table, group_codes(table)[0] if table.sensitive_columns else None)

    if isinstance(asked, Rate):
        return CVaR(ALPHA)
    bound: Risk = asked.bind(RiskRows(history.cells.known.n_rows, history.n_planned, codes))
    return bound
