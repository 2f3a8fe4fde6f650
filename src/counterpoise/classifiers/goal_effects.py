"""What each goal does to the decisions of a rule: the rule that the same scores would have without it."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from counterpoise.goals import Goal
from counterpoise.goals.rates import is_maximized
from counterpoise.rules.cautions import Caution
from counterpoise.rules.explaining import GoalEffect
from counterpoise.rules.goal_rows import TRAIN

_SAME = 1e-3  # of the selection rows: a rule that decides fewer otherwise is the same in all that matters


class Effect(NamedTuple):
    """What dropping a goal changes."""

    goal: Goal
    changed: float  # share of the selection rows that would be decided otherwise
    cost: float  # by how much the objective would be better
    rule: Any  # without the goal; None where several are mixed then

    def on(self, group: int) -> GoalEffect:
        """Return the effect for the rows of a group, given its place."""
        has_levels = hasattr(self.rule, "levels")
        return GoalEffect(self.cost, self.changed, float(self.rule.levels[0][group]) if has_levels else None)


# by classifier: its selection, effects
_KNOWN: "WeakKeyDictionary[Any, tuple[Any, list[Effect]]]" = WeakKeyDictionary()


def goal_effects(model: Any) -> list[Effect]:
    """Return the goals that move the one rule of a fitted classifier, those that move most decisions first.

    A goal moves it if without the goal the choice is another. Where no goal does so alone, because others ask for the
    same, goals are dropped as long as the choice stays, and the rest move it.
    """
    selection, effects = _KNOWN.get(model, (None, []))
    if selection is not model.selection_:
        effects = _find(model)
        _KNOWN[model] = model.selection_, effects
    return effects


def _find(model: Any) -> list[Effect]:
    goals = tuple(model.goals_)
    effects = [_drop(model, goals, goal) for goal in goals]
    if goals and not any(one.changed > _SAME for one in effects) and _drop(model, goals, *goals).changed > _SAME:
        for goal in goals:
            others = tuple(one for one in goals if one is not goal)
            if others and _drop(model, others).changed <= _SAME:
                goals = others
        effects = [_drop(model, goals, goal) for goal in goals]
    return sorted((one for one in effects if one.changed > _SAME), key=lambda one: -one.changed)


def _drop(model: Any, goals: Sequence[Goal], *dropped: Goal) -> Effect:
    """Return what it changes that some goals are dropped, beside the rule of the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        other = model.rebalance(goals=[goal for goal in goals if not any(goal is one for one in dropped)])
    rule = other.rules_[0] if len(other.rules_) == 1 else None  # without the goal a classifier that draws may mix rules
    table = model.family_.selection_data.answers.tables[TRAIN]
    ours, theirs = (
        one.family_.predictions(one.chosen_rules()).answers.shares(TRAIN, one.mixture_) for one in (model, other)
    )
    moved = np.abs(ours - theirs) if ours.ndim == 1 else np.abs(ours - theirs).sum(axis=1) / 2
    gain = model.value_ - other.value_
    cost = max(float(-gain if is_maximized(model.objective_) else gain), 0.0)
    return Effect(dropped[0] if dropped else goals[0], float(np.average(moved, weights=table.weights())), cost, rule)
