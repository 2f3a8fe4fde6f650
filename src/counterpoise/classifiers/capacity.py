"""Capacity: exactly so many positive decisions in a batch, by the one rule of a fitted classifier."""

from dataclasses import replace
from typing import Any

import numpy as np

from counterpoise._base.checks import check_count
from counterpoise._base.frames import take_rows
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.rules.deciding import DecisionRows
from counterpoise.rules.draw_messages import id_values
from counterpoise.rules.draws import KeyedDraws, derived_key
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.ratios import with_linear_objective
from counterpoise.rules.rows import as_columns
from counterpoise.rules.scores.capacity import Batch, select_top
from counterpoise.rules.scores.cuts import Rule

_PAIR = 2


def decide_top(model: Any, rows: DecisionRows, original: Any, ids: Any, top: int) -> AnyArray:
    """Return the decisions of a fitted classifier about a batch, of which exactly ``top`` are positive.

    ``original`` are the rows before they were checked; ``ids`` break ties of scores, or else the rows themselves do.
    """
    rule = _only_rule(model)
    if check_count(top, "top", 0) > len(rows):
        raise ValueError(
            f"top must be at most the number of rows, {len(rows)}; got {top}. Pass a lower number, or more rows."
        )
    total = next((goal for goal in model.goals_ if goal.is_total and TRAIN in goal.datasets), None)
    if total is not None:
        raise ValueError(
            f"top cannot keep the goal {total}: a total is about the rows of fit, and a batch has others. Write the "
            "goal as a mean per row, with cost, or leave it out with rebalance(goals=...)."
        )
    draws: KeyedDraws = replace(model.draws_, key=derived_key(model.draws_.key, "top"))
    values = None if ids is None else id_values(ids, len(rows))

    def tie_numbers(tied: IntArray) -> FloatArray:
        if values is not None:
            return draws.by_id([values[row] for row in tied.tolist()], tied.size)
        return draws.uniforms(take_rows(original, tied), as_columns(rows.take(tied).X))

    batch = Batch(
        rows.output_of(rule.model), rows.groups, tie_numbers, "features up to rounding" if values is None else "id"
    )
    kept = model.family_.selection_data.of_model(rule.model)
    is_selected = select_top(kept, model.groups_, with_linear_objective(model, model.problem()), batch, top)
    place = model.family_.pool.positive.place
    return np.asarray(model.classes_[np.where(is_selected, place, 1 - place)])


def _only_rule(model: Any) -> Rule:
    """Return the rule that decides, by whose score rows are ordered; raise an error where there is no such rule."""
    if not model.decides_by_scores:
        raise ValueError(
            f"top selects the rows of the highest scores, and this {type(model).__name__} mixes predictions, which "
            "have no order. Use GoalClassifier(models, cv='prefit')."
        )
    if len(model.classes_) > _PAIR:
        raise ValueError(
            f"top is for two classes, of which one is selected; this classifier has {len(model.classes_)}: "
            f"{model.classes_.tolist()}. Fit one that tells the class to select from all others."
        )
    if model.family_.selection_data.deferral is not None:
        raise ValueError(
            "top decides about every row, and this classifier defers some. Call rebalance(deferral='never') first."
        )
    rules = [rule for rule, share in zip(model.rules_, model.mixture_, strict=True) if share > 0]
    if len(rules) > 1:
        raise ValueError(
            f"top selects rows by the score of one rule, and this classifier draws one of {len(rules)} rules for each "
            "row. Call rebalance(decision='fixed') first, with alpha=1.0 where it minimises a tail."
        )
    return rules[0]  # type: ignore[no-any-return]
