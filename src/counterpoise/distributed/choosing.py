"""The choice of a mixture over shards: goals, means and groups from cells, a tail from the rows where they are."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from counterpoise._base.shards import Shards
from counterpoise._base.types import FloatArray
from counterpoise.distributed.rows import CellAnswers, Cells, Known, cell_losses
from counterpoise.goals import Goal, Rate
from counterpoise.goals.tables import group_codes
from counterpoise.rules.choosing import (
    Choice,
    PoolPredictions,
    Problem,
    Selection,
    choice_by_name,
    posed,
    select,
    within_budget,
    without_budget,
)
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.solvers.linear_program import MixtureSolution
from counterpoise.solvers.mixture import minimize_cvar_over
from counterpoise.solvers.tail import TailOracle
from counterpoise.theory.risks import CVaR, Mean, Risk, WorstGroup


def check_fits_shards(problem: Problem) -> None:
    """Refuse what cannot be found from sums over shards."""
    objective = problem.objective
    if not isinstance(objective, (Rate, WorstGroup)) and objective.tail_fraction is None:
        raise ValueError(
            f"Over shards the objective must be a CVaR, WorstGroup or a rate; got {objective!r}, which needs all rows "
            "in one place."
        )


def check_confidences(goals: Sequence[Goal], known: Known) -> None:
    """Refuse goals that carry a confidence on rows of different weights: counts tell nothing about those."""
    for goal in goals:
        if goal.confidence is not None and not known.are_equal:
            raise ValueError(
                f"Over shards goals carry a confidence where all rows weigh the same; got sample_weight beside {goal}. "
                "Leave the weights or the confidence out, or choose on one machine."
            )


def evidence_of(cells: Cells, answers: CellAnswers) -> PoolPredictions:
    """Return what a mixture is chosen on, with a row for each cell; losses are means of its rows."""
    table = answers.tables[TRAIN]
    groups = group_codes(table)[0] if table.sensitive_columns else None
    assert answers.said is not None  # noqa: S101 - made with them
    losses: Any = cell_losses(cells, answers.said)  # as for rows, but means
    return PoolPredictions(losses, table.weights(), groups, answers)


def choose_over(shards: Shards, evidence: PoolPredictions, problem: Problem) -> tuple[Selection, Choice]:
    """Choose the mixture, or raise ``InfeasibleGoals`` where none meets the goals."""
    selection = select(evidence, problem._replace(objective=Mean()) if _is_tail(problem) else problem)
    game = posed(within_budget(selection, problem), problem)

    def minimize(losses: Any, risk: Risk, sample_weight: Any, **limits: Any) -> MixtureSolution:  # noqa: ARG001
        assert risk.tail_fraction is not None  # noqa: S101 - as was asked
        return minimize_cvar_over(shards, risk.tail_fraction, **limits)

    solve: Callable[[], Choice] = game.solve
    value: Callable[[FloatArray], float] = game.value
    if _is_tail(problem):  # others are linear in the rows, or in the means of groups: cells tell all
        solve, value = partial(game.solve, minimize), partial(value_over, shards, problem)
    if problem.mixture == "optimal":
        return selection, without_budget(solve(), problem)
    return selection, choice_by_name(problem, selection.losses.shape[1], value)


def value_over(shards: Shards, problem: Problem, mixture: FloatArray) -> float:
    """Return the CVaR of a mixture on the rows of all shards."""
    assert problem.alpha is not None  # noqa: S101 - of a tail
    return TailOracle(shards, problem.alpha).value(mixture)


def _is_tail(problem: Problem) -> bool:
    return isinstance(problem.objective, CVaR) and problem.objective.alpha < 1
