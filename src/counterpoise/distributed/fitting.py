"""Fitting the classifiers of one machine on rows in shards: rows are counted there, and rules are chosen on counts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.shards import Shard, Shards
from counterpoise._base.types import AnyArray
from counterpoise.classifiers.goal import GoalClassifier, list_models
from counterpoise.classifiers.mixture import MixtureClassifier
from counterpoise.distributed.lumps import SCORES, choose_rules_over, ranges_over
from counterpoise.distributed.rows import (
    CODES,
    Cells,
    CountedAnswers,
    TotalFacts,
    X,
    count_answers,
    find_cells,
    inspect_rows,
    sample_over,
)
from counterpoise.goals import Goal, Ratio, as_goals
from counterpoise.goals.bound_goals import refuse_compared
from counterpoise.goals.tables import group_codes
from counterpoise.rules.cautions import check_problem
from counterpoise.rules.choosing import PoolPredictions, Problem
from counterpoise.rules.draws import generator_of, make_key
from counterpoise.rules.families import PooledModels
from counterpoise.rules.goal_rows import TRAIN, Answers, Positive, find_positive
from counterpoise.rules.options import as_groups
from counterpoise.rules.pool import ANSWERS, Pool, all_classes, failures, named_models, titled_models
from counterpoise.theory.risks import Risk, WorstGroup


def check_fits_shards(problem: Problem) -> None:
    """Refuse objectives and goals that cannot be computed from sums over shards."""
    refuse_compared(problem.goals, "A model over shards")
    objective = problem.objective
    needs_rows = (
        isinstance(objective, Risk) and objective.tail_fraction is None and not isinstance(objective, WorstGroup)
    )
    if isinstance(objective, Ratio) or needs_rows:
        raise ValueError(
            f"Over shards the objective must be a CVaR, WorstGroup or a rate; got {objective!r}, which needs all rows "
            "in one place."
        )


def check_confidences(goals: Sequence[Goal], facts: TotalFacts) -> None:
    """Refuse goals that carry a confidence on rows of different weights: counts say nothing about those."""
    for goal in goals:
        if goal.confidence is not None and not facts.are_equal:
            raise ValueError(
                "Over shards a goal can carry a confidence only if all rows weigh the same; got sample_weight "
                f"beside {goal}. Leave out the weights or the confidence, or fit on one machine."
            )
        if goal.is_total and not facts.are_equal:
            raise ValueError(
                f"Over shards a total needs rows that weigh the same; got sample_weight beside {goal}. Multiply the "
                "amounts by the weights and leave these out, bound a mean as cost is, or fit on one machine."
            )


def predictions_of(counted: CountedAnswers, cells: Cells, positive: Positive) -> PoolPredictions:
    """Return what a mixture is chosen on: counted rows, with what each model answers."""
    table = cells.table_of(counted.cells, counted.mass, counted.n_rows)
    groups = group_codes(table)[0] if table.sensitive_columns else None
    answers = Answers({}, {}, positive).with_dataset(TRAIN, table, positive.encode(counted.codes))
    return PoolPredictions(failures(counted.codes, cells.labels[counted.cells]), table.weights(), groups, answers)


class PreparedShards(NamedTuple):
    """Rows in shards, with their cells and a sample."""

    shards: Shards
    cells: Cells
    sample: Any  # of the features, as they are, from which bins and the scales of draws are learned


def prepare(shards: Shards, all_classes: Callable[[AnyArray], AnyArray] | None = None) -> PreparedShards:
    """Inspect the rows of all shards, and divide them into cells; ``all_classes`` is as for ``inspect_rows``."""
    facts = inspect_rows(shards, all_classes)
    return PreparedShards(shards, find_cells(shards, facts), sample_over(shards))


def check(model: Any) -> None:
    """Check the parameters of a model, and refuse those that are not taken over shards."""
    model.check_parameters()
    if model.confidence is not None and not model.decides_by_scores and model.goals:
        raise ValueError(
            f"confidence={model.confidence!r} is not supported over shards for {type(model).__name__}, whose margins "
            "need the rows: leave it at None, or fit it on one machine. GoalClassifier takes it over shards."
        )
    check_fits_shards(model.problem_of_fit())
    if getattr(model, "deferral", None) is not None:
        raise ValueError(f"deferral={model.deferral!r} is not supported over shards. Set it to None.")


def check_rows(model: Any, cells: Cells) -> None:
    """Refuse goals, an objective or groups that do not fit the rows, before a model is trained on them or applied."""
    facts, table = cells.facts, cells.table()
    goals, positive = as_goals(model.goals), find_positive(facts.classes, model.pos_label)
    check_confidences(goals, facts)
    groups = group_codes(table)[0] if table.sensitive_columns else None
    by = as_groups(getattr(model, "by", ()))
    if table.counts is None:  # the number of rows of a group is known later, with the scores
        by = replace(by, unknown="pool")
    if isinstance(model, GoalClassifier) and not positive.is_binary:
        raise ValueError(f"Over shards, rules of scores need exactly two classes; got {len(facts.classes)}.")
    problem = model.problem_of_fit()
    is_trained = not isinstance(model, MixtureClassifier)
    check_problem(problem, {TRAIN: table}, positive, groups=groups, counts=table.counts, trains=is_trained, by=by)


def take_models(model: Any, pool_models: list[tuple[str, Any]], classes: AnyArray) -> Pool:
    """Let fitted models decide, and return them as a pool of scores or of answers."""
    model.forget_choice()
    model.classes_, model.names_ = classes, [name for name, _ in pool_models]
    model.estimators_ = [one for _, one in pool_models]
    output = None if model.decides_by_scores else ANSWERS
    return Pool.of(titled_models(pool_models), find_positive(classes, model.pos_label), model.n_jobs, output)


def mix_over(model: Any, shards: Shards) -> Any:
    """Fit a classifier of fitted models to rows in shards, and return it: its models are applied where the rows are.

    Parameters
    ----------
    model : MixtureClassifier, or GoalClassifier with ``cv="prefit"``
    shards : Shards
        Each holds ``"X"`` and ``"y"``, and may hold ``"columns"`` (a dict of arrays), ``"baseline"`` and
        ``"sample_weight"``; or, where ``model`` has stored columns of scores in the place of models, each holds
        ``"scores"`` of shape (n_rows, n_models).
    """
    check(model)
    pool_models = named_models(
        list(list_models(model.estimator)) if isinstance(model, GoalClassifier) else model.estimators
    )
    rows = prepare(shards, partial(all_classes, models=titled_models(pool_models)))
    check_rows(model, rows.cells)
    return decide_over(model, rows, pool_models)


def decide_over(model: Any, rows: PreparedShards, pool_models: list[tuple[str, Any]]) -> Any:
    """Choose the mixture, or the rules, of fitted models, given with their names."""
    facts, shards = rows.cells.facts, rows.shards
    pool = take_models(model, pool_models, facts.classes)
    check_confidences(as_goals(model.goals), facts)
    model.n_features_in_ = facts.n_features
    if facts.names is not None:
        model.feature_names_in_ = facts.names
    key = make_key(model.random_state)
    model.learn_draws(key, generator_of(model.random_state), rows.sample, None)
    if pool.output == ANSWERS:
        counted = count_answers(shards, pool.members)
        predictions = predictions_of(counted, rows.cells, pool.positive)
        model.solve_and_store(PooledModels(pool, predictions), model.problem_of_fit())
        return model
    if not pool.positive.is_binary:
        raise ValueError(f"Over shards, rules of scores need exactly two classes; got {len(facts.classes)}.")
    shards.change(SCORES, _score, pool.members)
    usual = np.array([member.usual(own) for member, own in zip(pool.members, ranges_over(shards), strict=True)])
    return choose_rules_over(model, pool, shards, rows.cells, usual)


def _score(shard: Shard, members: list[Any]) -> None:
    if SCORES not in shard:
        n_rows = len(shard[CODES])
        columns = [member.ask(shard[X]) for member in members] if n_rows else [np.empty(0) for _ in members]
        shard[SCORES] = np.column_stack(columns)
