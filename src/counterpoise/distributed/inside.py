"""Rounds inside goals over shards: the program of one machine, with cells in the place of rows.

Goals see of a row its cell alone, so the multipliers price answers by cell, and a small table of prices travels to the
rows. Mean losses, those of groups and rates are sums over cells as well. Only a tail weighs rows of one cell
differently: those weights stay in the shards, and the shards count them beside the prices.
"""

from typing import Any

import numpy as np

from counterpoise._base.shards import Shards
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.boosting.inputs import Rows
from counterpoise.boosting.inside import Objective, Program, Stage, objective_of
from counterpoise.boosting.rounds import History
from counterpoise.distributed.boosting import ELSEWHERE, ShardHistory, last_loss, weigh_by_failures
from counterpoise.distributed.rows import CellAnswers
from counterpoise.goals import Rate
from counterpoise.goals.tables import group_codes
from counterpoise.mixtures.answers import TRAIN, find_positive
from counterpoise.mixtures.choosing import ALPHA, Aim, groups_by
from counterpoise.solvers.linear_program import InfeasibleRows, MixtureSolution
from counterpoise.solvers.mixture import minimize_cvar_over
from counterpoise.solvers.rows import mass_unit
from counterpoise.solvers.tail import WEIGHTS
from counterpoise.theory.risks import CVaR, Risk, RiskRows


class CellStage(Stage):
    """Cells in the place of rows; of each a model tells shares of its rows every class, shape (n_cells, n_classes)."""

    __slots__ = ()

    def answered(self, said: AnyArray) -> CellAnswers:
        """Return what models say of the cells, given shares of shape (n_cells, n_models, n_classes)."""
        return CellAnswers(self.answers.tables, {}, self.positive, said=said)

    def _predicted(self, said: AnyArray) -> FloatArray:
        return np.asarray(said[:, self.positive.positive_place] if self.positive.is_binary else said.ravel())


def program_over(model: Any, aim: Aim, history: ShardHistory) -> Program:
    """Return the program of a booster inside goals, on the cells of the rows in shards."""
    cells, asked = history.cells, aim.objective
    rows = Rows(np.empty((len(cells.values), 0)), cells.labels, history.start, None)
    positive, rate = find_positive(model.classes_, model.pos_label), asked if isinstance(asked, Rate) else None
    stage = CellStage.of(rows, {}, {TRAIN: cells.table()}, positive, aim.goals, rate)
    history.shards.change(WEIGHTS, weigh_by_failures, np.zeros(1))  # cells tell all, until a tail weighs rows
    return Program(stage, _objective(stage, asked, bound_risk(aim, history), history.shards))


def bound_risk(aim: Aim, history: ShardHistory) -> Risk:
    """Return the risk that the rounds of a booster look at, on cells; of a rate the CVaR at the default alpha."""
    asked, table = aim.objective, history.cells.table()

    def codes(names: tuple[str, ...]) -> IntArray:
        return groups_by(names, table, group_codes(table)[0] if table.sensitive_columns else None)

    if isinstance(asked, Rate):
        return CVaR(ALPHA)
    bound: Risk = asked.bind(RiskRows(history.cells.known.n_rows, history.n_planned, codes))
    return bound


def _objective(stage: Stage, asked: Risk | Rate, risk: Risk, shards: Shards) -> Objective:
    if isinstance(asked, Rate) or risk.tail_fraction is None or risk.tail_fraction == 1:
        return objective_of(stage, asked, risk)
    return TailOver(shards, risk.tail_fraction)


class TailOver:
    """A CVaR of rows in shards, where the dual leaves their weights."""

    size = 1.0

    def __init__(self, shards: Shards, alpha: float) -> None:
        self.shards, self.alpha, self.n_models = shards, alpha, 0

    def add(self, said: AnyArray, losses: AnyArray) -> None:  # noqa: ARG002 - the shards know them
        """Count the models."""
        self.n_models += 1

    def solve(self, history: History, limits: dict[str, Any], tol: float) -> MixtureSolution:  # noqa: ARG002 - as above
        """Return the best mixture, or raise ``InfeasibleRows``: goals alone are priced then."""
        try:
            return minimize_cvar_over(self.shards, self.alpha, tol=tol, **limits)._replace(weights=ELSEWHERE)
        except InfeasibleRows:
            self.shards.change(WEIGHTS, weigh_by_failures, np.zeros(1))
            raise

    def costs(self, stage: Stage, found: MixtureSolution) -> FloatArray:
        """Return what answers cost by cell, beside what they cost by the weights of the rows."""
        return stage.costs(None, found.multipliers)

    def of_model(self, weights: FloatArray | None, said: AnyArray, losses: AnyArray) -> float:  # noqa: ARG002
        """Return the loss of the newest model under the weights of the rows, an exact sum."""
        return float(sum(self.shards.map(last_loss, self.n_models + 1))) * mass_unit(1.0)
