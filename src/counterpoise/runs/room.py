"""Room for the audit: goals that are met so much better than asked that the test rows can show them to hold.

Decisions that meet a bound exactly where they were chosen are as likely above it as below on other rows, and no audit
can tell. Here the bound is moved by what the audit's interval takes, and by what chance takes on both sets of rows, as
far as that costs little.
"""

import math
import warnings
from typing import Any

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.auditing.audit import tightened
from counterpoise.goals import Goal, as_goals
from counterpoise.goals.infeasible import InfeasibleGoals
from counterpoise.runs.errors import short
from counterpoise.runs.fitted import last_step, mixes
from counterpoise.runs.fitting import Work, inside_goals
from counterpoise.runs.judging import Judge
from counterpoise.runs.quantities import MIXTURE, TEST, TRAIN

_PRICE = 0.01  # of what is made small: the most that room may cost where nobody says how much
_HALVINGS = 4  # of the room, where not all of it can be had
_MISSED = 0.1  # the chance that the test rows do not show what is so


def with_room(work: Work, model: Any) -> Any:
    """Return the mixture chosen anew with room for the audit; as it is where none is asked for, or there is none.

    Where all the room that the audit takes would cost more than it may, as much is left as it may cost.
    """
    asked = work.settings.room_for_audit
    if not asked or not work.enforced or TEST not in work.data.splits or not mixes(model):
        return model
    aims = _aimed(work, model)
    most = _costs(model) + (_PRICE if asked is True else float(asked))
    chosen, part = _try(work, model, aims, 1.0, most), 1.0
    if chosen is None:
        chosen, part = _halved(work, model, aims, most)
        work.say(f"leaves {part:.0%} of the room that the audit takes: more cannot be had, or costs too much")
    return chosen


def _costs(model: Any) -> FloatArray:
    """Return what room may raise: what is made small, and where a budget limits it, the mean loss on all rows.

    A budget is counted above the least mean loss under the goals, which goals with room may raise as they like.
    """
    estimator = last_step(model)
    if getattr(estimator, "budget", None) is None:
        return np.array([estimator.value_])
    chosen_on = estimator.selection_
    mean = np.average(chosen_on.losses, axis=0, weights=chosen_on.sample_weight) @ estimator.mixture_
    return np.array([estimator.value_, mean])


def _halved(work: Work, model: Any, aims: list[Goal], most: FloatArray) -> tuple[Any, float]:
    """Return the mixture with the most room that there is at the price, and which part of the room that is."""
    chosen, least, too_much = model, 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (least + too_much) / 2
        found = _try(work, model, aims, middle, most)
        least, too_much = (least, middle) if found is None else (middle, too_much)
        chosen = chosen if found is None else found
    return chosen, least


def _try(work: Work, model: Any, aims: list[Goal], part: float, most: FloatArray) -> Any:
    """Return the mixture chosen with a part of the room; None where there is none that costs at most so much."""
    goals = [
        goal.with_bound(goal.bound + part * (aim.bound - goal.bound))
        for goal, aim in zip(as_goals(work.enforced), aims, strict=True)
    ]
    with warnings.catch_warnings(record=True) as heard:  # of what is not taken there is nothing to warn
        warnings.simplefilter("always")
        try:
            found = inside_goals(work._replace(goals=tuple(goals)), model)
        except InfeasibleGoals:
            return None
    if not (_costs(found) <= most).all():
        return None
    for one in heard:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return found


def _aimed(work: Work, model: Any) -> list[Goal]:
    """Return the goals that leave room, given a model that meets them as they stand."""
    data, judge = work.data, Judge(work.settings, work.data, model, work.goals)
    part = data.splits[data.chosen_on]
    n_shown = _rows_to_show(len(part), len(data.splits[TEST]), work)
    some = np.random.default_rng(work.settings.seed).permutation(len(part))[:n_shown]
    tables = {TRAIN: part.rows(some).table(), **{name: one.table() for name, one in data.extra.items()}}
    named = {TRAIN: data.chosen_on} | {name: name for name in data.extra}
    is_drawn = judge.draws(MIXTURE, named.values())
    said = {name: (judge.shares if is_drawn else judge.says)(MIXTURE, place) for name, place in named.items()}
    said[TRAIN] = np.asarray(said[TRAIN])[some]
    found = []
    for goal in as_goals(work.enforced):
        names = goal.datasets
        try:
            found.append(
                tightened(
                    goal,
                    {name: tables[name] for name in names},
                    predictions={name: said[name] for name in names},
                    confidence=work.settings.confidence if goal.confidence is None else None,
                    n_goals=len(work.goals),
                    kind="probabilities" if is_drawn else "labels",
                    **judge.classes,
                )
            )
        except ValueError as error:
            work.say(f"no room can be left for the audit of {short(goal)}, which is met as it stands: {error}")
            found.append(goal)
    return found


def _rows_to_show(n_chosen_on: int, n_test: int, work: Work) -> int:
    """Return on how few rows an audit would be as hard to pass as it is on the test rows, with chance counted in."""
    from scipy.stats import norm  # noqa: PLC0415 - heavy

    n_goals = len(work.goals)
    luck = norm.isf(_MISSED / n_goals) / norm.isf((1.0 - work.settings.confidence) / n_goals)
    width: float = 1.0 / math.sqrt(n_test) + luck * math.sqrt(1.0 / n_chosen_on + 1.0 / n_test)
    return max(1, min(n_chosen_on, round(width**-2)))
