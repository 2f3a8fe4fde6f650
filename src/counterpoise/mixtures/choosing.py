"""The choice of a mixture: what it is chosen on, what is asked of it, and which one that leads to."""

from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import check_alpha
from counterpoise._base.types import ByteArray, FloatArray, IntArray
from counterpoise.goals import Goal, Rate, as_goals, as_objective
from counterpoise.mixtures.answers import Answers
from counterpoise.mixtures.few_models import choose_few
from counterpoise.mixtures.game import Choice, Game, Selection, group_losses, outliers
from counterpoise.mixtures.goal_rows import goal_rows, linear_rate

CVAR, WORST_GROUP = "cvar", "worst-group"
MIXTURES = ("optimal", "average", "first")


class Evidence(NamedTuple):
    """What a mixture is chosen on: losses of the models on labelled rows, and their answers on all datasets."""

    losses: ByteArray
    sample_weight: FloatArray | None
    groups: IntArray | None
    answers: Answers

    def _check_loaded(self) -> None:
        """Check what came from a file."""
        n_samples, n_models = self.losses.shape
        rows = [part for part in (self.sample_weight, self.groups) if part is not None]
        pools = [bits.n_models for bits in self.answers.positives.values()]
        if any(part.shape != (n_samples,) for part in rows) or any(pool != n_models for pool in pools):
            raise ValueError("the losses, weights, groups and answers are of different sizes")


class Aim(NamedTuple):
    """What is asked of a mixture; fields with a default are named as the parameters of classifiers that set them."""

    alpha: float
    objective: str | Rate  # the CVaR at alpha, the loss of the worst group, or a rate
    goals: tuple[Goal, ...]
    mixture: str = "optimal"  # or the average of all models, or the first alone (ERM)
    outlier_fraction: float = 0.0
    max_models: int | None = None


def as_aim(alpha: float, objective: Any, goals: Any, **limits: Any) -> Aim:
    """Return what is asked of a mixture, after checking it; an objective of None is the CVaR."""
    level, asked = check_alpha(alpha), as_goals(goals)
    if objective is None:
        objective = CVAR
    elif not (isinstance(objective, str) and objective in (CVAR, WORST_GROUP)):
        objective = as_objective(objective)
    return Aim(level, objective, asked, **limits)


def select(evidence: Evidence, aim: Aim) -> Selection:
    """Return the rows with what is asked of mixtures on them."""
    losses, sample_weight, groups, answers = evidence
    rate = None
    if aim.objective != WORST_GROUP:
        groups, rate = None, None if aim.objective == CVAR else linear_rate(answers, aim.objective)
    elif groups is None:
        raise ValueError("objective='worst-group' needs sensitive_features: the groups of the rows.")
    return Selection(losses, sample_weight, groups, goal_rows(answers, aim.goals), rate)


def posed(selection: Selection, aim: Aim) -> Game:
    """Return the problem whose solution is the best mixture of all models."""
    losses, weight, goals = selection.losses, selection.sample_weight, selection.goals
    if selection.rate is not None:  # one row of losses, in the units of the rate
        return Game(selection.rate.row[None], 1.0, None, goals, selection.rate.constant)
    if selection.groups is not None:  # a tail of one group is the worst group
        by_group = group_losses(selection)
        return Game(by_group, 1 / len(by_group), None, goals)
    if aim.outlier_fraction > 0:  # the rows with the highest average loss are left out (DORO, Zhai et al. 2021b)
        keep = ~outliers(losses.mean(axis=1), weight, aim.outlier_fraction)
        losses, weight = losses[keep], None if weight is None else weight[keep]
    return Game(losses, aim.alpha, weight, goals)


def choose_mixture(selection: Selection, aim: Aim) -> Choice:
    """Choose the mixture, or raise ``InfeasibleGoals`` where none meets the goals."""
    game = posed(selection, aim)
    if aim.max_models is not None:
        return choose_few(game, aim.max_models)
    if aim.mixture == "optimal":
        return game.solve()
    n_models = selection.losses.shape[1]
    mixture = np.full(n_models, 1 / n_models) if aim.mixture == "average" else np.eye(1, n_models)[0]
    return Choice(mixture, game.value(mixture), np.nan, np.zeros(0))
