"""Boosting over shards: rows, bins, losses and weights stay where they are; each round sends a few sums.

A round sends the mass by number of failures, or cuts of the mixture problem, for the weights; histograms for the tree;
the tree back to the shards; and the mass of each cell that the tree assigns to each class.

Features are binned by edges from one sample of all rows, the same in every shard. Compiled loops pass over the rows of
a shard once and allocate no arrays on the way: Dask workers return memory as soon as it is free, and to allocate it
again costs more than these loops.

The loop is that of one machine: ``ShardRows`` is its store of rows, ``ShardFit`` fits its models. Goals, mean losses,
group means and rates are sums over cells. Only a tail weighs rows of one cell differently. Those weights stay in the
shards, which add them to the prices of a cell's predictions.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numba import float64, int64, types, uint8, uint16, void

from counterpoise._base.compiled import kernel
from counterpoise._base.frames import take_rows
from counterpoise._base.shards import Shard, Shards, total
from counterpoise._base.types import AnyArray, BoolArray, ByteArray, FloatArray, IntArray
from counterpoise.boosting.learner import RoundTarget, cost_target
from counterpoise.boosting.rounds import Fitted
from counterpoise.boosting.row_store import Minimize, RowStore, dual_weights, minimizer_of
from counterpoise.distributed.rows import CELL, CODES, MASS, Cells, X
from counterpoise.learners import HistogramTree, Resampled
from counterpoise.learners._growing import TARGET, GrownTree, Target, finish_growth, grow_over
from counterpoise.learners.binning import (
    BinnedFeatures,
    ValueFlags,
    as_floats,
    as_matrix,
    bin_part,
    check_categorical,
    find_edges,
    make_binned,
    sample_places,
)
from counterpoise.learners.resampling import fresh_copy
from counterpoise.rules.pool import predict_codes
from counterpoise.rules.rows import stack_rows
from counterpoise.solvers import minimize_risk
from counterpoise.solvers.linear_program import InfeasibleRows, MixtureSolution
from counterpoise.solvers.mixture import minimize_cvar_over
from counterpoise.solvers.rows import MASS_UNIT, BitRows, weighted_sum, whole_masses
from counterpoise.solvers.tail import TAIL, WEIGHTS, TailRows
from counterpoise.theory.risks import Risk

BINNED, _UNSETTLED = "binned", "bins"  # names in a shard


def _n_rows(shard: Shard) -> int:
    return int(shard[X].shape[0])


def rows_at(shard: Shard, places: IntArray, firsts: IntArray) -> Any:
    """Return those rows, of some numbered through all shards, that are here."""
    first = int(firsts[shard.number])
    inside = places[(places >= first) & (places < first + shard[X].shape[0])]
    return take_rows(shard[X], inside - first)


def sample_over(shards: Shards) -> Any:
    """Return the sample of rows that bins are computed from; it does not depend on the shards."""
    sizes = np.array(shards.map(_n_rows))
    places = sample_places(int(sizes.sum()))
    numbers = np.arange(sizes.sum()) if places is None else places
    parts = shards.map(rows_at, numbers, np.cumsum(sizes) - sizes)
    return stack_rows([part for part in parts if part.shape[0]])


def _bin(shard: Shard, edges: list[FloatArray], is_categorical: BoolArray) -> ValueFlags:
    if shard[X].shape[0]:
        shard[_UNSETTLED], flags = bin_part(as_matrix(shard[X], len(edges)), edges, is_categorical)
        return flags
    shard[_UNSETTLED] = np.empty((len(edges), 0), dtype=np.uint8)
    return ValueFlags(np.zeros(len(edges), dtype=np.uint8), np.zeros((len(edges), 256), dtype=np.bool_))


def _settle(
    shard: Shard, edges: list[FloatArray], is_categorical: BoolArray, flags: ValueFlags, names: AnyArray | None
) -> None:
    shard[BINNED] = make_binned(shard.pop(_UNSETTLED), edges, is_categorical, flags, names)
    del shard[X]  # trees use only the bins from here on


def bin_over(
    shards: Shards, learner: HistogramTree, sample: Any = None, names: AnyArray | None = None
) -> BinnedFeatures:
    """Bin the rows of all shards as ``learner.prepare`` does, and return the bins of no row, which show the layout.

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
    flags = reduce(ValueFlags.merge, shards.change("bin", _bin, edges, is_categorical))
    layout: tuple[Any, ...] = (edges, is_categorical, flags, names)
    shards.change("bins settled", _settle, *layout)
    return make_binned(np.empty((len(edges), 0), dtype=np.uint8), *layout)


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
def _record_answers(
    answers: AnyArray,
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
    for row in range(answers.size):
        is_wrong = int64(answers[row] != codes[row])  # no branches: processors guess half of them wrong
        sums[cells[row], answers[row]] += mass[row]
        totals[row] += is_wrong
        bits[row, place] |= is_wrong << shift


@kernel(float64(_codes, _codes, _masses))
def _wrong_weight(answers: AnyArray, codes: AnyArray, weights: FloatArray) -> float:
    """Return the weight of the rows whose answer differs from their code."""
    wrong = 0.0
    for row in range(answers.size):
        wrong += weights[row] * int64(answers[row] != codes[row])
    return wrong


# Names in a shard: failures of each row, which models fail on it, and what the model of a round is fitted to.
_TOTALS, _BITS, ROUND_TARGET = "totals", "bits", "round target"
MOST_SAMPLED = 1_000_000  # rows that a learner of one machine is given
ELSEWHERE = np.empty(0)  # in the place of weights that stay in the shards
NO_WEIGHTS = np.zeros(1)  # by number of failures: none


class ShardRows:
    """Rows in shards, where their weights and the failures of each stay: the ``RowStore`` of boosting over shards.

    Cells are the places. The answers of a model are the mass of each cell that it assigns to each class.

    Parameters
    ----------
    shards : Shards
    cells : Cells
    n_rounds : int
        Models to make room for.
    """

    def __init__(self, shards: Shards, cells: Cells, n_rounds: int) -> None:
        self.shards, self.cells, self.mass = shards, cells, cells.mass
        self.start = cells.mass / cells.facts.total
        self.answers: list[FloatArray] = []  # shape (n_cells, n_classes) each
        self.losses = np.empty((len(cells.values), 0))  # means in each cell
        shards.queue_change("no rounds", _no_rounds, n_rounds)
        shards.queue_change(WEIGHTS, weigh_by_failures, np.ones(1) / cells.facts.total)

    @property
    def failures(self) -> FloatArray:
        """Return the mass of each cell times the number of models that fail on its rows."""
        right = sum(self._right_mass(answers) for answers in self.answers)
        return np.asarray(len(self.answers) * self.mass - right)

    def _right_mass(self, answers: FloatArray) -> FloatArray:
        labels = self.cells.labels
        return np.asarray(answers[np.arange(labels.size), labels])

    def add(self, losses: ByteArray, answers: AnyArray | None) -> None:  # noqa: ARG002 - shards know where it fails
        """Record the answers of a round's model about the cells, from ``apply_model``."""
        assert answers is not None  # noqa: S101 - as ``apply_model`` returns it
        self.answers.append(answers)
        means = 1.0 - self._right_mass(answers) / np.where(self.mass > 0, self.mass, 1.0)
        self.losses = np.column_stack([self.losses, means])

    def mass_by_failures(self) -> FloatArray:
        """Return the mass of the rows by the number of models that fail on them."""
        return total(self.shards.map(_mass_by_failures, len(self.answers) + 1))

    def weigh_by_failures(self, table: FloatArray) -> FloatArray:
        """Leave weights by the number of models that fail on a row."""
        self.shards.queue_change(WEIGHTS, weigh_by_failures, table)
        return ELSEWHERE

    def weigh_by_place(self, table: FloatArray) -> FloatArray:
        """Leave weights by cell."""
        self.shards.queue_change(WEIGHTS, _weigh_by_cell, table)
        return ELSEWHERE

    def weigh_by_dual(self, risk: Risk, tol: float) -> FloatArray:
        """Leave the weights on which the mixture of least risk is worst."""
        if risk.tail_fraction is None:  # cells are enough, and their rows weigh the same
            weights = dual_weights(self, risk, tol)
            return self.weigh_by_place(np.divide(weights, self.mass, out=np.zeros(weights.size), where=self.mass > 0))
        minimize_cvar_over(self.shards, risk.tail_fraction, tol=tol)  # leaves them in the shards
        return ELSEWHERE

    def least_risk(self, risk: Risk) -> float:
        """Return the least risk of a mixture."""
        if risk.tail_fraction in (None, 1):
            return minimize_risk(self.losses, risk, sample_weight=self.start).value
        return minimize_cvar_over(self.shards, risk.tail_fraction).value

    def minimizer(self, risk: Risk) -> Minimize:
        """Return what minimizes a risk under limits; of a tail the dual weights of the rows stay in the shards."""
        self.shards.change(WEIGHTS, weigh_by_failures, NO_WEIGHTS)  # cells are enough, until a tail weighs rows
        alpha = risk.tail_fraction
        if alpha is None or alpha == 1:
            return minimizer_of(risk, self.mass.size)

        def minimize(_rows: RowStore, limits: dict[str, Any], tol: float) -> tuple[MixtureSolution, None]:
            try:
                return minimize_cvar_over(self.shards, alpha, tol=tol, **limits), None
            except InfeasibleRows:  # goals alone are priced
                self.shards.change(WEIGHTS, weigh_by_failures, NO_WEIGHTS)
                raise

        return minimize

    def newest_loss(self, weights: FloatArray | None) -> float:
        """Return the loss of the newest model under dual weights of cells, or those of the rows: an exact sum."""
        if weights is not None:
            return weighted_sum(weights, self.losses[:, -1])
        return float(sum(self.shards.map(_newest_loss, len(self.answers)))) * MASS_UNIT

    def are_all_alike(self) -> bool:
        """Tell nothing: to look would take another pass over the rows in every round."""
        return False


def _no_rounds(shard: Shard, n_rounds: int) -> None:
    n_rows = len(shard[CODES])
    shard[_TOTALS] = np.zeros(n_rows, dtype=np.uint16)
    shard[_BITS] = np.zeros((n_rows, -(-n_rounds // 8)), dtype=np.uint8)


def _mass_by_failures(shard: Shard, size: int) -> FloatArray:
    """Return the mass of the rows by the number of models that fail on them."""
    sums = np.zeros(size)
    _add_by(shard[_TOTALS], shard[MASS], sums)
    return sums


def weigh_by_failures(shard: Shard, table: FloatArray) -> None:
    """Weigh rows by the number of models that fail on them."""
    shard[WEIGHTS] = shard.buffer(WEIGHTS, len(shard[CODES]))
    _weigh(table, shard[_TOTALS], shard[MASS], shard[WEIGHTS])


def _weigh_by_cell(shard: Shard, table: FloatArray) -> None:
    """Weigh rows by their cell."""
    shard[WEIGHTS] = table[shard[CELL]] * shard[MASS]


class ShardFit:
    """Fit the model of a round to the weights that the rows have in their shards, and inside goals to costs of cells.

    Parameters
    ----------
    learner : classifier
    rows : ShardRows
    random_seeds : callable
        From the number of a round to its seed.
    sample : array or data frame
        From ``sample_over``.
    costs : callable, optional
        Inside goals: what each answer costs by weights of cells alone, shape (n_classes, n_cells).
    """

    prepared = None  # by the learner: bins stay in the shards

    def __init__(
        self,
        learner: Any,
        rows: ShardRows,
        random_seeds: Callable[[int], int],
        sample: Any,
        costs: Callable[[FloatArray], FloatArray] | None = None,
    ) -> None:
        self.learner, self.rows, self.random_seeds, self.costs = learner, rows, random_seeds, costs
        self.shards, self.facts = rows.shards, rows.cells.facts
        self.is_random = not isinstance(learner, HistogramTree)
        if not self.is_random:
            self.layout = bin_over(self.shards, learner, sample, self.facts.names)

    def __call__(self, weights: FloatArray, number: int) -> Fitted:
        """Return the model of a round, and the mass of each cell that it calls each class."""
        if self.costs is None:
            self.shards.queue_change(ROUND_TARGET, _aim_at_labels)
        elif not self._aim_at_costs(self.costs(weights) if weights.ndim == 1 else weights).any():
            self._aim_at_costs(self.costs(self.rows.start))  # all answers cost alike
        model, grown = (self._fit_to_sample(number), None) if self.is_random else self._grow_tree()
        answers, loss = apply_model(self.shards, self.rows.cells, model, number, grown)
        self.shards.forget(ROUND_TARGET)
        return Fitted(model, np.empty(0, dtype=np.uint8), answers=answers, weighted_loss=loss)

    def _aim_at_costs(self, costs: FloatArray) -> FloatArray:
        """Leave in every shard what its rows should be called, and return how much that matters."""
        mass = self.rows.mass
        by_mass = np.divide(costs, mass, out=np.zeros(costs.shape), where=mass > 0)
        # That all weights sum to: rows weigh 1 at most.
        most = (len(costs) - 1) * (1.0 + float(np.ptp(costs, axis=0).sum()))
        return np.array(self.shards.change(ROUND_TARGET, _aim_at_costs, by_mass, most))

    def _grow_tree(self) -> tuple[Any, GrownTree]:
        self.shards.queue_change(TARGET, _aim_tree)
        model = copy.copy(self.learner)
        grown = grow_over(self.shards, self.layout, len(self.facts.classes), model.growth_limits())
        self.shards.forget(TARGET)
        model.tree_ = grown.tree
        model.store_labels(self.facts.classes, self.facts.n_features, self.facts.names)
        return model, grown

    def _fit_to_sample(self, number: int) -> Any:
        """Fit any learner to rows drawn by weight: evenly along the rows, so that shards do not matter."""
        totals, seed = np.array(self.shards.map(_target_weight)), self.random_seeds(number)
        step = float(totals.sum()) / min(self.facts.n_rows, MOST_SAMPLED)
        first = float(np.random.default_rng(seed).random()) * step
        parts = self.shards.map(_draw_rows, np.cumsum(totals) - totals, first, step)
        rows, codes = stack_rows([part for part, _ in parts if len(part)]), np.concatenate([own for _, own in parts])
        model = fresh_copy(self.learner, seed)
        model = Resampled(model) if np.ptp(codes) == 0 else model  # many learners refuse one class alone
        return model.fit(rows, self.facts.classes[codes])


def _aim_at_labels(shard: Shard) -> None:
    """Leave the labels of the rows as the target, by their weights."""
    out = shard.buffer(ROUND_TARGET, len(shard[CODES]))
    shard[ROUND_TARGET] = RoundTarget(shard[CODES], whole_masses(shard[WEIGHTS], 1.0, out))


def _aim_at_costs(shard: Shard, by_mass: FloatArray, most: float) -> float:
    """Leave what is cheapest as the target, where answers cost by cell and by the rows' own weights."""
    costs = by_mass[:, shard[CELL]] * shard[MASS] + shard[WEIGHTS]
    own = shard[CODES], np.arange(len(shard[CODES]))
    costs[own] = by_mass[shard[CODES], shard[CELL]] * shard[MASS]
    codes, weights, rows = cost_target(costs)
    shard[ROUND_TARGET] = RoundTarget(codes.astype(np.uint16), whole_masses(weights, most), rows)
    return _target_weight(shard)


def _target_weight(shard: Shard) -> float:
    """Return how much the target matters."""
    return float(shard[ROUND_TARGET].weights.sum())


def _aim_tree(shard: Shard) -> None:
    codes, weights, rows = shard[ROUND_TARGET]
    binned = shard[BINNED]
    if rows is not None:
        binned = replace(binned, bins=np.ascontiguousarray(binned.bins[:, rows]))
    shard[TARGET] = Target(binned, codes, weights)


def _draw_rows(shard: Shard, firsts: FloatArray, first: float, step: float) -> tuple[Any, AnyArray]:
    """Return the rows at which the running sum of weights passes ``first`` and every ``step`` from there."""
    codes, weights, rows = shard[ROUND_TARGET]
    reach = firsts[shard.number] + np.cumsum(weights)
    n_passed = np.ceil((reach - first) / step).astype(np.int64)
    before = int(np.ceil((firsts[shard.number] - first) / step))
    places = np.repeat(np.arange(reach.size), np.diff(np.maximum(n_passed, 0), prepend=max(before, 0)))
    return take_rows(shard[X], places if rows is None else rows[places]), codes[places]


def apply_model(
    shards: Shards, cells: Cells, model: Any, number: int, grown: GrownTree | None = None
) -> tuple[FloatArray, float]:
    """Let the shards apply the model of a round to their rows.

    Returns the mass of each cell that it calls each class, and the part of the target that it gets wrong. Rows that
    grew a tree need not walk down it.
    """
    args = (model, number, cells.facts.classes, len(cells.values))
    parts = shards.change(("model", number), _take_in, *args, grown)
    answers, (wrong, weight) = total([part for part, _ in parts]), total([loss for _, loss in parts])
    return answers, float(wrong / weight) if weight else 0.0


def _take_in(
    shard: Shard, model: Any, number: int, classes: AnyArray, n_cells: int, grown: GrownTree | None
) -> tuple[FloatArray, tuple[float, float]]:
    """Note where a model fails, and return the mass of each cell that it calls each class, and what it gets wrong."""
    codes, answers, sums = shard[CODES], finish_growth(shard, grown), np.zeros((n_cells, len(classes)))
    if answers is None or len(answers) != len(codes):  # as where the target was of some rows alone
        rows = shard[BINNED] if BINNED in shard else shard[X]
        answers = (predict_codes(model, rows, classes) if len(codes) else np.empty(0)).astype(np.uint16)
    _record_answers(answers, codes, shard[CELL], shard[MASS], number - 1, shard[_TOTALS], shard[_BITS], sums)
    shard[TAIL] = TailRows(BitRows(shard[_BITS], number), shard[MASS])
    target = shard.pop(ROUND_TARGET, None)
    if target is None:  # the shard is made again, or the model was not fitted here
        return sums, (0.0, 0.0)
    target_answers = answers if target.rows is None else answers[target.rows]
    wrong = _wrong_weight(target_answers, target.codes.astype(np.uint16, copy=False), target.weights)
    return sums, (float(wrong), float(target.weights.sum()))


def _newest_loss(shard: Shard, number: int) -> float:
    """Return how much of the rows' present weights the model of the last round fails on, a whole number."""
    is_wrong = (shard[_BITS][:, (number - 1) >> 3] >> np.uint8((number - 1) & 7)) & 1
    return weighted_sum(whole_masses(shard[WEIGHTS], 1.0), is_wrong)
