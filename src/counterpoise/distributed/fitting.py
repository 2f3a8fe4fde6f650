"""Fitting the classifiers of one machine on rows in partitions: rows are counted, and rules chosen on the counts."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray
from counterpoise.classifiers.goal import GoalClassifier, list_models
from counterpoise.classifiers.mixture import MixtureClassifier
from counterpoise.distributed.lumps import SCORES, choose_rules_over
from counterpoise.distributed.partitions import Part, Partitions
from counterpoise.distributed.rows import (
    CELL,
    MASS,
    Cells,
    Lumps,
    TotalFacts,
    X,
    count_answers,
    find_cells,
    inspect_rows,
    lumps_of_all,
)
from counterpoise.goals import Goal, as_goals
from counterpoise.goals.tables import group_codes
from counterpoise.rules.cautions import check_problem
from counterpoise.rules.choosing import PoolPredictions, Problem
from counterpoise.rules.draws import generator_of, make_key
from counterpoise.rules.families import PooledModels
from counterpoise.rules.goal_rows import TRAIN, Answers, find_positive
from counterpoise.rules.options import as_groups
from counterpoise.rules.pool import ANSWERS, Pool, all_classes, failures, named_models, titled_models
from counterpoise.theory.risks import Risk, WorstGroup


def check_fits_counts(problem: Problem) -> None:
    """Refuse objectives that cannot be computed from counts of rows."""
    objective = problem.objective
    if isinstance(objective, Risk) and objective.tail_fraction is None and not isinstance(objective, WorstGroup):
        raise ValueError(
            f"Over Dask the objective must be a CVaR, WorstGroup, a rate or a ratio of rates; got {objective!r}, which "
            "needs all rows in one place."
        )


def check_confidences(goals: Sequence[Goal], facts: TotalFacts) -> None:
    """Refuse goals that carry a confidence on rows of different weights: their exact bounds need the rows."""
    for goal in goals:
        if goal.confidence is not None and not facts.are_equal:
            raise ValueError(
                "Over Dask a goal can carry a confidence only if all rows weigh the same; got sample_weight "
                f"beside {goal}. Leave out the weights or the confidence, or fit on one machine."
            )


def predictions_of(lumps: Lumps, cells: Cells, pool: Pool) -> PoolPredictions:
    """Return what a mixture is chosen on: counted rows, with what each model answers."""
    table, codes = cells.table_of(lumps), lumps.keys[:, 1:]
    groups = group_codes(table)[0] if table.sensitive_columns else None
    answers = Answers({}, {}, pool.positive).with_dataset(TRAIN, table, pool.positive.encode(codes))
    return PoolPredictions(failures(codes, cells.labels[lumps.keys[:, 0]]), table.weights(), groups, answers)


def check(model: Any) -> None:
    """Check the parameters of a model, and refuse those that are not taken over Dask."""
    model.check_parameters()
    if model.confidence is not None and not model.decides_by_scores and model.goals:
        raise ValueError(
            f"confidence={model.confidence!r} is not supported over Dask for {type(model).__name__}, whose margins "
            "need the rows: leave it at None, or fit it on one machine. GoalClassifier takes it over Dask."
        )
    check_fits_counts(model.problem_of_fit())


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
        raise ValueError(f"Over Dask, rules of scores need exactly two classes; got {len(facts.classes)}.")
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


def mix_over(model: Any, partitions: Partitions) -> Any:
    """Fit a classifier of fitted models to rows in partitions, and return it: its models are applied there.

    Parameters
    ----------
    model : MixtureClassifier, or GoalClassifier with ``cv="prefit"``
    partitions : Partitions
        Each holds ``"X"`` and ``"y"``, and may hold ``"columns"`` (a dict of arrays), ``"baseline"`` and
        ``"sample_weight"``.
    """
    check(model)
    pool_models = named_models(
        list(list_models(model.estimator)) if isinstance(model, GoalClassifier) else model.estimators
    )
    cells, _ = inspect_rows(partitions, partial(all_classes, models=titled_models(pool_models)))
    check_rows(model, cells)
    return decide_over(model, partitions, cells, pool_models)


def decide_over(model: Any, partitions: Partitions, cells: Cells, pool_models: list[tuple[str, Any]]) -> Any:
    """Choose the mixture, or the rules, of fitted models, given with their names."""
    facts = cells.facts
    pool = take_models(model, pool_models, facts.classes)
    model.n_features_in_ = facts.n_features
    if facts.names is not None:
        model.feature_names_in_ = facts.names
    model.learn_draws(make_key(model.random_state), generator_of(model.random_state))
    if pool.output == ANSWERS:
        predictions = predictions_of(lumps_of_all(partitions.map(count_answers, cells, pool.members)), cells, pool)
        model.solve_and_store(PooledModels(pool, predictions), model.problem_of_fit())
        return model
    if not pool.positive.is_binary:
        raise ValueError(f"Over Dask, rules of scores need exactly two classes; got {len(facts.classes)}.")
    scored = partitions.then(_score, cells, pool.members).persist()
    return choose_rules_over(model, pool, scored, cells)


def _score(part: Part, cells: Cells, members: list[Any]) -> Part:
    """Return what the choice of rules needs of a partition: scores, cells and weights."""
    numbers, mass = find_cells(part, cells)
    columns = [member.ask(part[X]) if mass.size else np.empty(0) for member in members]
    return {SCORES: np.column_stack(columns).astype(np.float64), CELL: numbers, MASS: mass}
