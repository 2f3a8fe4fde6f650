"""Fitting the classifiers of one machine on rows in shards.

Where goals, means and groups decide, the mixture is chosen on cells; where a tail does, on the rows in their shards. A
checkpoint of rounds holds the models alone: the shards compute everything else again from them.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.shards import Shard, Shards
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.boosting.checkpoint import SavedRound, Seeds
from counterpoise.boosting.inputs import CheckedRows, round_seed
from counterpoise.boosting.inside import AnswerCosts
from counterpoise.boosting.learner import planned_rounds
from counterpoise.boosting.rounds import History
from counterpoise.boosting.run import run_rounds
from counterpoise.boosting.stopping import stopping_of
from counterpoise.classifiers.goal import GoalClassifier, list_models
from counterpoise.classifiers.mixture import MixtureClassifier
from counterpoise.distributed.boosting import ShardFit, ShardRows, apply_model, sample_over
from counterpoise.distributed.lumps import SCORES, choose_rules_over, ranges_over
from counterpoise.distributed.rows import CODES, CellAnswers, Cells, TotalFacts, X, find_cells, inspect_rows
from counterpoise.goals import Goal, Ratio, as_goals
from counterpoise.goals.bound_goals import refuse_compared
from counterpoise.goals.tables import group_codes
from counterpoise.learners.binning import as_floats, as_matrix
from counterpoise.rules.cautions import check_problem
from counterpoise.rules.choosing import (
    PoolPredictions,
    Problem,
    Selection,
    choice_by_name,
    choose_mixture,
    groups_by,
    select,
)
from counterpoise.rules.draws import generator_of, make_key
from counterpoise.rules.families import PooledModels
from counterpoise.rules.goal_rows import TRAIN, Positive, find_positive
from counterpoise.rules.options import as_groups
from counterpoise.rules.pool import ANSWERS, Pool, all_classes, named_models, titled_models
from counterpoise.rules.program import Choice
from counterpoise.solvers.linear_program import MixtureSolution
from counterpoise.solvers.mixture import minimize_cvar_over
from counterpoise.solvers.tail import TailOracle
from counterpoise.theory.risks import Mean, Risk, RiskRows, WorstGroup


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


def predictions_of(rows: ShardRows, positive: Positive) -> PoolPredictions:
    """Return what a mixture is chosen on, a row for each cell."""
    cells = rows.cells
    table, mass = cells.table(), np.where(cells.mass > 0, cells.mass, 1.0)
    shares = np.stack(rows.answers, axis=1) / mass[:, None, None]
    groups = group_codes(table)[0] if table.sensitive_columns else None
    losses: Any = rows.losses  # as for rows, but means
    return PoolPredictions(
        losses, table.weights(), groups, CellAnswers({TRAIN: table}, {}, positive, class_shares=shares)
    )


class ShardLosses(NamedTuple):
    """Losses of all models in shards, for a tail."""

    shards: Shards

    def minimize(self, risk: Risk, limits: dict[str, Any], tol: float) -> MixtureSolution:
        """Return the mixture with the least CVaR within limits, or raise ``InfeasibleRows``."""
        assert risk.tail_fraction is not None  # noqa: S101 - a tail
        return minimize_cvar_over(self.shards, risk.tail_fraction, tol=tol, **limits)


def choose_over(shards: Shards, evidence: PoolPredictions, problem: Problem) -> tuple[Selection, Choice]:
    """Choose the mixture, or raise ``InfeasibleGoals`` where none meets the goals."""
    alpha = problem.alpha
    if alpha is None or alpha == 1:  # linear in the rows, or in the means of groups: cells are enough
        selection = select(evidence, problem)
        return selection, choose_mixture(selection, problem)
    selection = select(evidence, problem._replace(objective=Mean()))
    if problem.mixture != "optimal":
        return selection, choice_by_name(problem, selection.losses.shape[1], TailOracle(shards, alpha).value)
    return selection, choose_mixture(selection, problem, ShardLosses(shards))


# What the boosters of one machine take and those over shards do not, and the value that asks for nothing.
_NOT_TAKEN = {"outlier_fraction": 0.0, "beta": None, "max_models": None}


class PreparedShards(NamedTuple):
    """Rows in shards, with their cells and a sample."""

    shards: Shards
    cells: Cells
    sample: Any  # of the features, as they are, from which bins and the scales of draws are learned


def prepare(shards: Shards, all_classes: Callable[[AnyArray], AnyArray] | None = None) -> PreparedShards:
    """Inspect the rows of all shards, and divide them into cells; ``all_classes`` is as for ``inspect_rows``."""
    facts = inspect_rows(shards, all_classes)
    return PreparedShards(shards, find_cells(shards, facts), sample_over(shards))


def fit_over(model: Any, shards: Shards) -> Any:
    """Fit an ``AdaLPBoostClassifier`` or ``LPBoostClassifier`` to rows in shards, and return it.

    Parameters
    ----------
    model : classifier
        With its parameters. Trees and stumps of ours are the learners that grow over shards.
    shards : Shards
        Each holds ``"X"`` and ``"y"``, and may hold ``"columns"`` (a dict of arrays), ``"baseline"`` and
        ``"sample_weight"``.

    Returns
    -------
    model
        It holds its models and mixture, and of the rows only what goals see: their cells.
    """
    check(model)
    rows = prepare(shards)
    facts = rows.cells.facts
    model.classes_, model.n_features_in_ = facts.classes, facts.n_features
    if facts.names is not None:
        model.feature_names_in_ = facts.names
    data = ShardFitData(model, rows)
    model.mix(run_rounds(model, lambda _seeds: data, rows.sample, None))
    return model


class ShardFitData:
    """Rows in shards, as the boosters of one machine see the rows of a fit (``boosting.fit_data.FitData``)."""

    held_out: CheckedRows | None = None  # rounds are judged on the rows they are trained on
    is_judged_by_folds = False
    keeps_answers = False  # shards compute them again from the models

    def __init__(self, booster: Any, rows: PreparedShards) -> None:
        self.booster, self.cells, self._sample = booster, rows.cells, rows.sample
        facts = rows.cells.facts
        self.classes, self.n_trained, self.n_lightest = facts.classes, facts.n_rows, facts.total / facts.least
        self.positive = find_positive(self.classes, booster.pos_label)
        self.costs: AnswerCosts | None = None
        self.table = rows.cells.table()
        self.groups: IntArray | None = group_codes(self.table)[0] if self.table.sensitive_columns else None
        self.store = ShardRows(rows.shards, rows.cells, planned_rounds(booster))

    def check_problem(self, problem: Problem) -> None:  # noqa: ARG002 - the booster's own
        """Refuse goals, objective and groups that do not fit the rows, before any model is trained."""
        check_rows(self.booster, self.cells)

    def risk_rows(self, n_rounds: int) -> RiskRows:
        """Return what a risk may depend on: the number of rows, and groups of cells."""
        return RiskRows(self.n_trained, n_rounds, lambda names: groups_by(names, self.table, self.groups))

    def price_answers(self, problem: Problem, entropy: int) -> AnswerCosts:  # noqa: ARG002 - no rows are drawn
        """Return what answers about cells cost by the goals."""
        labels, mass = self.cells.labels, np.where(self.cells.mass > 0, self.cells.mass, 1.0)[:, None, None]

        def make_answers(masses: AnyArray) -> CellAnswers:  # shape (n_cells, n_models, n_classes)
            return CellAnswers({TRAIN: self.table}, {}, self.positive, class_shares=masses / mass)

        no_model = make_answers(np.empty((labels.size, 0, len(self.classes))))
        places = {TRAIN: slice(0, labels.size)}
        self.costs = AnswerCosts(labels, places, no_model, make_answers, problem)
        return self.costs

    def model_fit(self, booster: Any, learner: Any, seeds: Seeds) -> ShardFit:  # noqa: ARG002 - as on one machine
        """Return what fits the models of the rounds."""
        costs = None if self.costs is None else self.costs.costs
        return ShardFit(learner, self.store, partial(round_seed, seeds.entropy), self._sample, costs)

    def fingerprints(self) -> dict[str, str]:
        """Return a text for each part of the data that decides the rounds: cells, and the sample of bins."""
        cells, sample = self.cells, np.ascontiguousarray(as_floats(as_matrix(self._sample)))
        return {
            "rows": str(cells.facts.n_rows),
            "classes": repr(cells.facts.classes.tolist()),
            "groups": hashlib.sha256(repr(cells.values).encode() + cells.mass.tobytes()).hexdigest(),
            "X": hashlib.sha256(sample.tobytes()).hexdigest(),
        }

    def saved_answers(self, number: int, saved_round: SavedRound) -> FloatArray:
        """Let the shards apply the model of a saved round, and return its answers about cells."""
        return apply_model(self.store.shards, self.cells, saved_round.model, number)[0]

    def least_value(self, history: History, problem: Problem) -> float:  # noqa: ARG002 - the store knows
        """Return the least risk of a mixture, or raise ``InfeasibleGoals``."""
        return choose_over(self.store.shards, predictions_of(self.store, self.positive), problem)[1].value

    def family(self, history: History, problem: Problem) -> PooledModels:  # noqa: ARG002 - as on one machine
        """Return the models, whose answers are mixed."""
        pool = Pool(list(history.models), self.positive, self.booster.n_jobs)
        return PooledModels(pool, predictions_of(self.store, self.positive))

    def solve_and_store(self, booster: Any, family: Any, problem: Problem) -> None:
        """Choose the best mixture, and store it in the booster."""
        choose_and_store(booster, self.store.shards, family, problem)


def check(model: Any) -> None:
    """Check the parameters of a model, and refuse those that are not taken over shards."""
    model.check_parameters()
    if hasattr(model, "stopping") and stopping_of(model).validation_fraction is not None:
        raise ValueError(
            f"stopping={model.stopping!r} is not supported over shards: leave validation_fraction at None, or fit "
            f"{type(model).__name__} on one machine."
        )
    for name, nothing in _NOT_TAKEN.items():
        if getattr(model, name, nothing) != nothing:
            raise ValueError(
                f"{name}={getattr(model, name)!r} is not supported over shards: leave it at {nothing!r}, or fit "
                f"{type(model).__name__} on one machine."
            )
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


def choose_and_store(model: Any, shards: Shards, family: PooledModels, problem: Problem) -> None:
    """Choose the mixture of models that the shards have applied, and store it in a classifier."""
    model.store_family(family, problem)
    selection, choice = choose_over(shards, family.selection_data, problem)
    model.store_solution(problem, family.solution(choice, selection))


def mix_over(model: Any, shards: Shards) -> Any:
    """Fit a classifier of fitted models to rows in shards, and return it: its models are applied where the rows are.

    Parameters
    ----------
    model : MixtureClassifier, or GoalClassifier with ``cv="prefit"``
    shards : Shards
        As for ``fit_over``; or, where ``model`` has stored columns of scores in the place of models, each holds
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
        store = ShardRows(shards, rows.cells, len(model.estimators_))
        for number, member in enumerate(pool.members, 1):
            store.add(np.empty(0, dtype=np.uint8), apply_model(shards, rows.cells, member, number)[0])
        family = PooledModels(pool, predictions_of(store, pool.positive))
        choose_and_store(model, shards, family, model.problem_of_fit())
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
