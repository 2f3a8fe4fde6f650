"""A mixture of at most so many models: a short heuristic around the linear program, with the loss it costs.

To find the best k of m models is a combinatorial problem. Three candidates are tried: models are dropped by their share
of the mixture, half of the surplus at a time, each time solving anew; a corner of the linearized problem, which has at
most one model more than there are goals, filled up with the models of the largest shares; and the best single model.
"""

import numpy as np

from counterpoise._base.types import IntArray
from counterpoise.goals import InfeasibleGoals
from counterpoise.mixtures.choosing import Choice, Game
from counterpoise.solvers import solve_weights_lp


def choose_few(game: Game, max_models: int) -> Choice:
    """Return a mixture of at most ``max_models`` models, with its cost: how much more risk it has than the best of all.

    The gap of the choice is against the best mixture of all models.
    """
    best = game.solve()
    if np.count_nonzero(best.mixture) <= max_models:
        return best
    tried = (_dropped(game, best, max_models), _filled_corner(game, best, max_models), _single(game))
    found = [choice for choice in tried if choice is not None]
    if not found:
        n_goals = 0 if game.goals is None else len(game.goals.goals)
        raise ValueError(
            f"No mixture of at most {max_models} models was found that meets the goals; the best of all mixes "
            f"{np.count_nonzero(best.mixture)}. Allow more models: {n_goals + 1} are enough for {n_goals} goals."
        )
    chosen = min(found, key=lambda choice: choice.value)
    cost = max(chosen.value - best.value, 0.0)
    return chosen._replace(gap=chosen.value - (best.value - best.gap), cost=cost)


def _dropped(game: Game, best: Choice, max_models: int) -> Choice | None:
    choice: Choice | None = best
    while choice is not None and np.count_nonzero(choice.mixture) > max_models:
        by_share = np.argsort(-choice.mixture, kind="stable")
        n_kept = int(np.count_nonzero(choice.mixture))
        n_kept -= max(1, (n_kept - max_models) // 2)
        choice = _solved(game, np.sort(by_share[:n_kept]))
    return choice


def _filled_corner(game: Game, best: Choice, max_models: int) -> Choice | None:
    if game.goals is None:
        return None
    cost = game.single_values()[None]
    corner = solve_weights_lp(cost, 1.0, **game.goals.as_limits()).mixture > 0
    by_share = np.argsort(-(best.mixture + corner), kind="stable")  # those of the corner first
    return _solved(game, np.sort(by_share[:max_models])) if corner.sum() <= max_models else None


def _single(game: Game) -> Choice | None:
    meets = game.violations() == 0
    if not meets.any():
        return None
    values = np.where(meets, game.single_values(), np.inf)
    return _solved(game, np.array([values.argmin()]))


def _solved(game: Game, models: IntArray) -> Choice | None:
    """Return the best mixture of some models, as one of all; None where they cannot meet the goals."""
    try:
        found = game.only(models).solve()
    except InfeasibleGoals:
        return None
    mixture = np.zeros(game.losses.shape[1])
    mixture[models] = found.mixture
    return found._replace(mixture=mixture)
