"""Rounds inside goals over shards: the program of one machine, with cells in the place of rows.

Goals see of a row its cell alone, so the multipliers price answers by cell, and a small table of prices travels to the
rows. Mean losses, those of groups and rates are sums over cells as well. Only a tail weighs rows of one cell
differently: those weights stay in the shards, and the shards count them beside the prices.
"""

from functools import partial
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.boosting.inputs import Rows
from counterpoise.boosting.inside import Program, Stage, solve_of
from counterpoise.boosting.rounds import History
from counterpoise.distributed.boosting import ShardHistory, last_loss, weigh_by_failures
from counterpoise.distributed.rows import CellAnswers
from counterpoise.goals import Rate
from counterpoise.goals.tables import group_codes
from counterpoise.rules.choosing import ALPHA, Problem, groups_by
from counterpoise.rules.goal_rows import TRAIN, find_positive
from counterpoise.solvers.linear_program import InfeasibleRows, MixtureSolution
from counterpoise.solvers.mixture import minimize_cvar_over
from counterpoise.solvers.rows import MASS_UNIT
from counterpoise.solvers.tail import WEIGHTS
from counterpoise.theory.risks import CVaR, Risk, RiskRows


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
    rows = Rows(np.empty((len(cells.values), 0)), cells.labels, history.start, None)
    positive, rate = find_positive(model.classes_, model.pos_label), asked if isinstance(asked, Rate) else None
    stage = CellStage.of(rows, {}, {TRAIN: cells.table()}, positive, problem.goals, rate)
    history.shards.change(WEIGHTS, weigh_by_failures, np.zeros(1))  # cells tell all, until a tail weighs rows
    risk = bound_risk(problem, history)
    if isinstance(asked, Rate):
        return Program(stage, solve_of(risk, len(cells.values)), asked.size)
    if risk.tail_fraction is None or risk.tail_fraction == 1:
        return Program(stage, solve_of(risk, len(cells.values)), risk.size)
    return Program(stage, partial(_solve_tail, risk.tail_fraction), 1.0, partial(_newest_loss, history))


def bound_risk(problem: Problem, history: ShardHistory) -> Risk:
    """Return the risk that the rounds of a booster look at, on cells; of a rate the CVaR at the default alpha."""
    asked, table = problem.objective, history.cells.table()

    def codes(names: tuple[str, ...]) -> IntArray:
        return groups_by(names, table, group_codes(table)[0] if table.sensitive_columns else None)

    if isinstance(asked, Rate):
        return CVaR(ALPHA)
    bound: Risk = asked.bind(RiskRows(history.cells.known.n_rows, history.n_planned, codes))
    return bound


def _solve_tail(alpha: float, history: History, limits: dict[str, Any], tol: float) -> tuple[MixtureSolution, None]:
    """Minimize a CVaR of rows in shards, where the dual leaves their weights; goals alone are priced otherwise."""
    assert isinstance(history, ShardHistory)  # noqa: S101 - of rows in shards
    try:
        return minimize_cvar_over(history.shards, alpha, tol=tol, **limits), None
    except InfeasibleRows:
        history.shards.change(WEIGHTS, weigh_by_failures, np.zeros(1))
        raise


def _newest_loss(history: ShardHistory) -> float:
    """Return the loss of the newest model under the weights of the rows, an exact sum."""
    return float(sum(history.shards.map(last_loss, history.n_rounds))) * MASS_UNIT
