"""Fitting the classifiers of one machine on rows in shards.

A mixture is chosen by goals, means and groups from cells, and by a tail from the rows where they are. A checkpoint of
rounds holds the models: all else shards find again by asking them about their rows.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.shards import Shard, Shards
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.boosting.checkpoint import SavedRound, Seeds, opened
from counterpoise.boosting.inputs import round_seed
from counterpoise.boosting.inside import places_in
from counterpoise.boosting.learner import base_learner, planned_rounds
from counterpoise.boosting.lpboost import AdaLPBoostClassifier, LPBoostClassifier, hedge_step
from counterpoise.boosting.rounds import Round, Rule, Standing
from counterpoise.boosting.rules import dual_of
from counterpoise.boosting.run import DEPTH, RoundDriver, draw_seeds, in_own_units, problem_of_patience, round_settings
from counterpoise.boosting.stopping import stopping_of
from counterpoise.classifiers.goal import GoalClassifier, listed
from counterpoise.classifiers.mixture import MixtureClassifier
from counterpoise.distributed.boosting import (
    ELSEWHERE,
    ShardFit,
    ShardHistory,
    bound_risk,
    by_cell,
    dual_over,
    hedge_groups_over,
    hedge_over,
    program_over,
    sample_over,
    take,
)
from counterpoise.distributed.lumps import SCORES, choose_rules_over, ranges_over
from counterpoise.distributed.rows import CODES, CellAnswers, Cells, Known, X, cell_losses, find_cells, know, shares_of
from counterpoise.goals import Goal, InfeasibleGoals, Rate, as_goals
from counterpoise.goals.advice import advised
from counterpoise.goals.tables import group_codes
from counterpoise.learners.binning import as_floats, as_matrix
from counterpoise.rules.cautions import check_problem
from counterpoise.rules.choosing import (
    PoolPredictions,
    Problem,
    Selection,
    choice_by_name,
    choose_mixture,
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
from counterpoise.theory.risks import Mean, Risk, WorstGroup


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


def predictions_of(cells: Cells, said: list[FloatArray], positive: Positive) -> PoolPredictions:
    """Return what a mixture is chosen on, a row for each cell, given the masses that models tell each class."""
    table, shares = cells.table(), shares_of(cells, said)
    groups = group_codes(table)[0] if table.sensitive_columns else None
    losses: Any = cell_losses(cells, shares)  # as for rows, but means
    return PoolPredictions(losses, table.weights(), groups, CellAnswers({TRAIN: table}, {}, positive, said=shares))


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
    if alpha is None or alpha == 1:  # linear in the rows, or in the means of groups: cells tell all
        selection = select(evidence, problem)
        return selection, choose_mixture(selection, problem)
    selection = select(evidence, problem._replace(objective=Mean()))
    if problem.mixture != "optimal":
        return selection, choice_by_name(problem, selection.losses.shape[1], TailOracle(shards, alpha).value)
    return selection, choose_mixture(selection, problem, ShardLosses(shards))


# What the boosters of one machine take and those over shards do not, and the value that asks for nothing.
_NOT_TAKEN = {"outlier_fraction": 0.0, "beta": None, "max_models": None}


class PreparedShards(NamedTuple):
    """Rows in shards, looked at once."""

    shards: Shards
    cells: Cells
    sample: Any  # of the features, as they are, from which bins and the scales of draws are learned


def prepare(shards: Shards, all_classes: Callable[[AnyArray], AnyArray] | None = None) -> PreparedShards:
    """Look at the rows of all shards, and tell them into cells; ``all_classes`` is as for ``know``."""
    known = know(shards, all_classes)
    return PreparedShards(shards, find_cells(shards, known), sample_over(shards))


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
    known = rows.cells.known
    check_rows(model, rows.cells)
    model.classes_, model.n_features_in_ = known.classes, known.n_features
    if known.names is not None:
        model.feature_names_in_ = known.names
    model.forget_choice()
    problem = model.problem_of_fit()
    with opened(model.checkpoint) as saved:
        seeds = draw_seeds(model.random_state, saved)
        run = ShardRun(model, rows, problem, seeds)
        run.go_on(run.history.n_planned, saved, model.callbacks)
    history, program = run.history, run.program
    model.estimators_, model.weighted_losses_ = list(history.models), np.array(history.weighted_losses)
    model.learn_draws(seeds.key, np.random.default_rng(seeds.entropy), rows.sample, None)
    try:
        pool = Pool(model.estimators_, find_positive(known.classes, model.pos_label), model.n_jobs)
        _choose(model, rows, history, pool)
    except InfeasibleGoals as error:
        if program is None or program.goals is None:
            raise
        # What it is, of the models that were trained: others of their kind are not ruled out.
        found = advised(program.goals, places_in(error, problem), error.least_violation, proven=False)
        if not program.is_over(is_random=run.fit.is_random):
            found.add_note(f"All {history.n_rounds} rounds were used, and models still helped: raise n_estimators.")
        raise found from error
    if isinstance(model, LPBoostClassifier):
        proven = float(min(max(history.weighted_losses), model.value_))
        if isinstance(problem.objective, Rate):  # the weights of the rounds are those of another problem
            proven = -np.inf
        model.bound_if_learner_exact_ = proven if program is None else program.standing.bound
    return model


class ShardRun(RoundDriver):
    """The rounds of a booster over shards."""

    history: ShardHistory
    saves_answers = False

    def __init__(self, model: Any, rows: PreparedShards, problem: Problem, seeds: Seeds) -> None:
        self.model, self.rows, self.problem, self.seeds = model, rows, problem, seeds
        self.patience, self.target = stopping_of(model).patience, getattr(model, "target", None)
        self.history = history = ShardHistory(rows.shards, rows.cells, planned_rounds(model))
        stage, found = None, {}
        if model.trains_inside:
            self.program = program_over(model, problem, history)
            self.reweigh, stage = self.program.price, self.program.stage
            found = {"goals": [str(goal) for goal in problem.goals], "pos_label": model.pos_label}
        else:
            self.reweigh = _rule(model, problem, history)
        if isinstance(model, AdaLPBoostClassifier):
            found["eta"] = model.eta_
        else:
            model.beta_ = found["beta"] = None  # none is taken
        learner = base_learner(model.estimator, rows.cells.known.n_rows, max_depth=DEPTH)
        self.settings = round_settings(model, learner, problem, seeds, **found)
        self.fit = ShardFit(learner, history, partial(round_seed, seeds.entropy), rows.sample, stage)

    def data(self) -> dict[str, str]:
        """Return a text for each part of the data that decides the rounds: cells, and the sample of bins."""
        cells, sample = self.rows.cells, np.ascontiguousarray(as_floats(as_matrix(self.rows.sample)))
        return {
            "rows": str(cells.known.n_rows),
            "classes": repr(cells.known.classes.tolist()),
            "groups": hashlib.sha256(repr(cells.values).encode() + cells.mass.tobytes()).hexdigest(),
            "X": hashlib.sha256(sample.tobytes()).hexdigest(),
        }

    def restored(self, number: int, done: SavedRound) -> Round:
        """Return a round that was saved, with what its model tells cells."""
        said, _ = take(self.rows.shards, self.rows.cells, done.model, number)
        return Round(number, done.model, ELSEWHERE, done.losses, done.weighted_loss, said=said)

    def note(self, done: Round) -> Standing | None:
        """Take note of a round that was fitted or restored, and return how the mixture stands inside goals."""
        if self.program is None:
            return None
        shares = shares_of(self.rows.cells, [np.asarray(done.said)])
        self.program.add(shares[:, 0], cell_losses(self.rows.cells, shares)[:, 0])
        self.program.price(self.history)  # of which the next round then knows
        return self.program.standing

    def value_so_far(self) -> float:
        """Return the least risk of a mixture of the rounds so far, as a part of its size."""
        if self.program is not None:
            return self.program.standing.value / self.program.size
        return self._least(in_own_units(problem_of_patience(self.problem)))

    def least_risk(self) -> float:
        """Return the least risk that ``target`` is about, where rounds do not look at goals."""
        return self._least(problem_of_patience(self.problem))

    def _least(self, problem: Problem) -> float:
        cells, positive = self.rows.cells, find_positive(self.model.classes_, self.model.pos_label)
        return choose_over(self.rows.shards, predictions_of(cells, self.history.said, positive), problem)[1].value


def check(model: Any) -> None:
    """Check the parameters of a model, and refuse those that are not taken over shards."""
    model.check_parameters()
    if hasattr(model, "stopping") and stopping_of(model).validation_fraction is not None:
        raise ValueError(
            f"stopping={model.stopping!r} is not taken over shards: leave validation_fraction at None, or fit "
            f"{type(model).__name__} on one machine."
        )
    for name, nothing in _NOT_TAKEN.items():
        if getattr(model, name, nothing) != nothing:
            raise ValueError(
                f"{name}={getattr(model, name)!r} is not taken over shards: leave it at {nothing!r}, or fit "
                f"{type(model).__name__} on one machine."
            )
    check_fits_shards(model.problem_of_fit())
    if getattr(model, "deferral", None) is not None:
        raise ValueError(f"deferral={model.deferral!r} is not taken over shards: no rule defers there yet.")


def check_rows(model: Any, cells: Cells) -> None:
    """Refuse goals, an objective or groups that do not fit the rows, before a model is trained on them or asked."""
    known, table = cells.known, cells.table()
    goals, positive = as_goals(model.goals), find_positive(known.classes, model.pos_label)
    check_confidences(goals, known)
    groups = group_codes(table)[0] if table.sensitive_columns else None
    by = as_groups(getattr(model, "by", ()))
    if table.counts is None:  # how many rows a group has is told later, by the scores
        by = replace(by, unknown="pool")
    if isinstance(model, GoalClassifier) and not positive.is_binary:
        raise ValueError(f"Rules of scores over shards are for two classes; got {len(known.classes)}.")
    problem = model.problem_of_fit()
    is_trained = not isinstance(model, MixtureClassifier)
    check_problem(problem, {TRAIN: table}, positive, groups=groups, counts=table.counts, trains=is_trained, by=by)


def take_models(model: Any, named: list[tuple[str, Any]], classes: AnyArray) -> Pool:
    """Let fitted models decide, and return them, to be asked for scores or for answers."""
    model.forget_choice()
    model.classes_, model.names_ = classes, [name for name, _ in named]
    model.estimators_ = [one for _, one in named]
    tells = None if model.decides_by_scores else ANSWERS
    return Pool.of(titled_models(named), find_positive(classes, model.pos_label), model.n_jobs, tells)


def _rule(model: Any, problem: Problem, history: ShardHistory) -> Rule:
    """Return how rows are reweighed where rounds do not look at goals."""
    known, n_rounds = history.cells.known, history.n_planned
    if not isinstance(model, AdaLPBoostClassifier):
        risk = bound_risk(problem, history)
        return by_cell(dual_of(risk)) if risk.tail_fraction is None else dual_over(risk.tail_fraction)
    if model.reweigh == "samples":
        model.eta_ = hedge_step(model.eta, known.total / known.least, n_rounds)
        return hedge_over(model.eta_)
    table = history.cells.table()
    if not table.sensitive_columns:
        raise ValueError("reweigh='groups' needs sensitive_features at fit: the groups to reweigh.")
    groups = group_codes(table)[0]
    model.eta_ = hedge_step(model.eta, groups.max() + 1, n_rounds)
    return hedge_groups_over(model.eta_, groups)


def _choose(model: Any, rows: PreparedShards, history: ShardHistory, pool: Pool) -> Any:
    """Choose the mixture."""
    problem = model.problem_of_fit()
    evidence = predictions_of(rows.cells, history.said, pool.positive)
    family = PooledModels(pool, evidence)
    model.store_family(family, problem)
    selection, choice = choose_over(rows.shards, evidence, problem)
    model.store_solution(problem, family.solution(choice, selection))
    return model


def mix_over(model: Any, shards: Shards) -> Any:
    """Fit a classifier of fitted models to rows in shards, and return it: its models are asked where the rows are.

    Parameters
    ----------
    model : MixtureClassifier, or GoalClassifier with ``cv="prefit"``
    shards : Shards
        As for ``fit_over``; or, where ``model`` has stored columns of scores in the place of models, each holds
        ``"scores"`` of shape (n_rows, n_models).
    """
    check(model)
    named = named_models(list(listed(model.estimator)) if isinstance(model, GoalClassifier) else model.estimators)
    rows = prepare(shards, partial(all_classes, titled=titled_models(named)))
    check_rows(model, rows.cells)
    return decide_over(model, rows, named)


def decide_over(model: Any, rows: PreparedShards, named: list[tuple[str, Any]]) -> Any:
    """Choose the mixture, or the rules, of fitted models, given with their names."""
    known, shards = rows.cells.known, rows.shards
    pool = take_models(model, named, known.classes)
    check_confidences(as_goals(model.goals), known)
    model.n_features_in_ = known.n_features
    if known.names is not None:
        model.feature_names_in_ = known.names
    key = make_key(model.random_state)
    model.learn_draws(key, generator_of(model.random_state), rows.sample, None)
    if pool.tells == ANSWERS:
        history = ShardHistory(shards, rows.cells, len(model.estimators_))
        for number, (one, member) in enumerate(zip(model.estimators_, pool.members, strict=True), 1):
            said, loss = take(shards, rows.cells, member, number)
            history.append(Round(number, one, ELSEWHERE, np.empty(0, dtype=np.uint8), loss, said=said))
        return _choose(model, rows, history, pool)
    if not pool.positive.is_binary:
        raise ValueError(f"Rules of scores over shards are for two classes; got {len(known.classes)}.")
    shards.change(SCORES, _score, pool.members)
    usual = np.array([member.usual(own) for member, own in zip(pool.members, ranges_over(shards), strict=True)])
    return choose_rules_over(model, pool, shards, rows.cells, usual)


def _score(shard: Shard, members: list[Any]) -> None:
    if SCORES not in shard:
        n_rows = len(shard[CODES])
        columns = [member.ask(shard[X]) for member in members] if n_rows else [np.empty(0) for _ in members]
        shard[SCORES] = np.column_stack(columns)
