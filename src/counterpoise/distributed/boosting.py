"""Boosting over shards: rows, bins, losses and weights stay where they are; a few sums travel in a round.

Of a round travel: mass by number of failures, or cuts of the mixture problem, for the weights; histograms for the tree;
back the tree; and the mass of each cell that it tells each class.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from counterpoise._base.shards import Shard, Shards, total
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.boosting.inside import Stage, worth_of
from counterpoise.boosting.learner import Question
from counterpoise.boosting.rounds import Fitted, History, Rule
from counterpoise.boosting.rules import group_table, hedge_table
from counterpoise.distributed import _kernels
from counterpoise.distributed.binning import BINNED, bin_over
from counterpoise.distributed.rows import CELL, CODES, MASS, Cells, X, cell_losses, shares_of
from counterpoise.learners import HistogramTree, Resampled
from counterpoise.learners._growing import TARGET, Grown, Target, ended, grow_over
from counterpoise.learners.resampling import fresh_copy
from counterpoise.rules.pool import predict_codes
from counterpoise.rules.rows import stack_rows, take_rows
from counterpoise.solvers.mixture import minimize_cvar_over
from counterpoise.solvers.rows import BitRows, whole_masses
from counterpoise.solvers.tail import TAIL, WEIGHTS, TailRows

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

    def failures(self) -> FloatArray:
        """Return the mass of the rows by the number of models that fail on them."""
        return total(self.shards.map(mass_by_failures, self.n_rounds + 1))

    def cell_failures(self) -> FloatArray:
        """Return the mean number of models that fail in each cell, by their masses."""
        labels = self.cells.labels
        right = sum(said[np.arange(len(labels)), labels] for said in self.said)
        return np.asarray(self.n_rounds * self.cells.mass - right)


def _no_rounds(shard: Shard, n_rounds: int) -> None:
    n_rows = len(shard[CODES])
    shard[_TOTALS] = np.zeros(n_rows, dtype=np.uint16)
    shard[_BITS] = np.zeros((n_rows, -(-n_rounds // 8)), dtype=np.uint8)


def mass_by_failures(shard: Shard, size: int) -> FloatArray:
    """Return the mass of the rows by the number of models that fail on them."""
    sums = np.zeros(size)
    _kernels.add_by(shard[_TOTALS], shard[MASS], sums)
    return sums


def weigh_by_failures(shard: Shard, table: FloatArray) -> None:
    """Weigh rows by the number of models that fail on them."""
    shard[WEIGHTS] = shard.room(WEIGHTS, len(shard[CODES]))
    _kernels.weigh(table, shard[_TOTALS], shard[MASS], shard[WEIGHTS])


def weigh_by_cell(shard: Shard, table: FloatArray) -> None:
    """Weigh rows by their cell."""
    shard[WEIGHTS] = table[shard[CELL]] * shard[MASS]


def hedge_over(eta: float) -> Rule:
    """Weigh each row by ``exp(eta * its losses so far)``, as ``boosting.rules.hedge`` does."""

    def reweigh(history: History) -> FloatArray:
        assert isinstance(history, ShardHistory)  # noqa: S101 - of this file
        history.shards.leave(WEIGHTS, weigh_by_failures, hedge_table(eta, history.failures()))
        return ELSEWHERE

    return reweigh


def hedge_groups_over(eta: float, groups: IntArray) -> Rule:
    """Weigh each group of cells by ``exp(eta * its average losses so far)``, as ``boosting.rules.hedge_groups``."""

    def reweigh(history: History) -> FloatArray:
        assert isinstance(history, ShardHistory)  # noqa: S101 - of this file
        prior = np.bincount(groups, history.cells.mass)
        failures = np.bincount(groups, history.cell_failures())
        history.shards.leave(WEIGHTS, weigh_by_cell, group_table(eta, prior, failures)[groups])
        return ELSEWHERE

    return reweigh


def by_cell(rule: Rule) -> Rule:
    """Weigh cells as a rule of one machine weighs rows, and the rows of a cell alike."""

    def reweigh(history: History) -> FloatArray:
        assert isinstance(history, ShardHistory)  # noqa: S101 - of this file
        mass = history.cells.mass
        table = np.divide(rule(history), mass, out=np.zeros(mass.size), where=mass > 0)
        history.shards.leave(WEIGHTS, weigh_by_cell, table)
        return ELSEWHERE

    return reweigh


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
        self.is_tree = isinstance(learner, HistogramTree)
        self.is_random = not self.is_tree
        if self.is_tree:
            self.layout = bin_over(self.shards, learner, sample, self.known.names)

    def __call__(self, weights: FloatArray, number: int) -> Fitted:
        """Return the model of a round, and the mass of each cell that it tells each class."""
        self._ask(weights)
        model, grown = self._grown() if self.is_tree else (self._sampled(number), None)
        said, loss = take(self.shards, self.history.cells, model, number, grown)
        self.shards.forget(QUESTION)
        return Fitted(model, np.empty(0, dtype=np.uint8), said=said, weighted_loss=loss)

    def _ask(self, weights: FloatArray) -> None:
        """Let every shard know what its rows should be called, and how much that matters."""
        if self.stage is None:
            self.shards.leave(QUESTION, _ask_labels)
        elif not self._ask_costs(self.stage.costs(weights) if weights.ndim == 1 else weights).any():
            self._ask_costs(self.stage.costs(self.history.start))  # all answers cost alike

    def _ask_costs(self, costs: FloatArray) -> FloatArray:
        mass = self.history.cells.mass
        by_mass = np.divide(costs, mass, out=np.zeros(costs.shape), where=mass > 0)
        most = (len(costs) - 1) * (
            1.0 + float(np.ptp(costs, axis=0).sum())
        )  # that all worths sum to: rows weigh 1 at most
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
    said, sums = _said(shard, model, classes, grown), np.zeros((n_cells, len(classes)))
    given = said, shard[CODES], shard[CELL], shard[MASS], number - 1
    _kernels.note(*given, shard[_TOTALS], shard[_BITS], sums)
    shard[TAIL] = TailRows(BitRows(shard[_BITS], number), shard[MASS])
    asked = shard.pop(QUESTION, None)  # none where the shard is made again, and nobody asks what is wrong
    return sums, (0.0, 0.0) if asked is None else _wrong(asked, said)


def _said(shard: Shard, model: Any, classes: AnyArray, grown: Grown | None) -> AnyArray:
    """Return the code of what a model says of each row."""
    told = ended(shard, grown)
    if told is not None and len(told) == len(shard[CODES]):  # not where some rows alone were asked about
        return told
    rows = shard[BINNED] if BINNED in shard else shard[X]
    n_rows = len(shard[CODES])
    return predict_codes(model, rows, classes).astype(np.uint16) if n_rows else np.empty(0, dtype=np.uint16)


def _wrong(asked: Question, said: AnyArray) -> tuple[float, float]:
    """Return how much of what was asked is wrong, and how much was asked."""
    told = said if asked.rows is None else said[asked.rows]
    codes = asked.codes.astype(np.uint16, copy=False)
    return float(_kernels.wrong_weight(told, codes, asked.weights)), float(asked.weights.sum())


def last_loss(shard: Shard, number: int) -> float:
    """Return how much of the rows' present weights the model of the last round fails on, a whole number."""
    is_wrong = (shard[_BITS][:, (number - 1) >> 3] >> np.uint8((number - 1) & 7)) & 1
    return float(whole_masses(shard[WEIGHTS], 1.0) @ is_wrong)
