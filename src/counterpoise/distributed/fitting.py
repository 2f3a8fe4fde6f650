"""Fitting the boosters of one machine on rows in shards."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.shards import Shard, Shards
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.boosting.checkpoint import opened
from counterpoise.boosting.inputs import round_seed
from counterpoise.boosting.inside import Program, places_in
from counterpoise.boosting.learner import base_learner, planned_rounds
from counterpoise.boosting.lpboost import AdaLPBoostClassifier, hedge_step
from counterpoise.boosting.rounds import Round, Rule, boost
from counterpoise.boosting.rules import dual_of
from counterpoise.boosting.run import DEPTH, draw_seeds, round_settings
from counterpoise.boosting.stopping import stopping_of
from counterpoise.classifiers.goal import GoalClassifier, listed
from counterpoise.classifiers.mixture import MixtureClassifier
from counterpoise.distributed.binning import sample_over
from counterpoise.distributed.boosting import (
    ELSEWHERE,
    ShardFit,
    ShardHistory,
    by_cell,
    dual_over,
    hedge_groups_over,
    hedge_over,
    take,
)
from counterpoise.distributed.choosing import check_confidences, check_fits_shards, choose_over, evidence_of
from counterpoise.distributed.inside import bound_risk, program_over
from counterpoise.distributed.lumps import SCORES, choose_rules_over
from counterpoise.distributed.rows import CODES, Cells, X, answers_of, find_cells, know
from counterpoise.distributed.watching import Watch
from counterpoise.goals import InfeasibleGoals, Rate, as_goals
from counterpoise.goals.advice import advised
from counterpoise.goals.tables import group_codes
from counterpoise.rules.cautions import check_problem
from counterpoise.rules.choosing import Problem
from counterpoise.rules.draws import generator_of, make_key
from counterpoise.rules.families import PooledModels
from counterpoise.rules.goal_rows import TRAIN, find_positive
from counterpoise.rules.options import as_groups
from counterpoise.rules.pool import ANSWERS, Pool, all_classes, named_models, titled_models

# What the boosters of one machine take and those over shards do not, and the value that asks for nothing.
_NOT_TAKEN = {
    "outlier_fraction": 0.0,
    "beta": None,
    "max_models": None,
}


class Prepared(NamedTuple):
    """Rows in shards, looked at once."""

    shards: Shards
    cells: Cells
    sample: Any  # of the features, as they are, from which bins and the scales of draws are learned


def prepare(shards: Shards, all_classes: Callable[[AnyArray], AnyArray] | None = None) -> Prepared:
    """Look at the rows of all shards, and tell them into cells; ``all_classes`` is as for ``know``."""
    known = know(shards, all_classes)
    return Prepared(shards, find_cells(shards, known), sample_over(shards))


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
    history = ShardHistory(shards, rows.cells, planned_rounds(model))
    learner, problem = base_learner(model.estimator, known.n_rows, max_depth=DEPTH), model.problem_of_fit()
    with opened(model.checkpoint) as saved:
        seeds = draw_seeds(model.random_state, saved)
        program = program_over(model, problem, history) if model.trains_inside else None
        rule, stage = (
            (_rule(model, rows, problem, history), None) if program is None else (program.price, program.stage)
        )
        fit = ShardFit(learner, history, partial(round_seed, seeds.entropy), rows.sample, stage)
        watch = Watch(model, problem, history, program, is_random=fit.is_random)
        settings = round_settings(model, learner, problem, seeds, **_found(model, problem, program))
        n_left = watch.resume(saved, settings, seeds, rows.sample)
        boost(fit, history, reweigh=rule, stop=watch, n_rounds=n_left)
    model.estimators_ = list(history.models)
    model.learn_draws(seeds.key, np.random.default_rng(seeds.entropy), rows.sample, None)
    model.weighted_losses_ = np.array(history.weighted_losses)
    return _inside(model, problem, rows, history, watch)


def check(model: Any) -> None:
    """Check the parameters of a model, and refuse those that are not taken over shards."""
    model.check_parameters()
    refuse_others(model)
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


def fitted_models(model: Any) -> list[Any]:
    """Return the models of a classifier that chooses among fitted ones."""
    if not model.is_prefit:
        raise ValueError(
            f"Rows in files are read in parts, and models are not trained on them: train on a sample, and pass "
            f"GoalClassifier(model, cv='prefit'); got cv={model.cv!r}."
        )
    return [one for _, one in named_models(list(listed(model.estimator)))]


def take_models(model: Any, named: list[tuple[str, Any]], classes: AnyArray) -> Pool:
    """Let fitted models decide, and return them, to be asked for scores or for answers."""
    model.forget_choice()
    model.classes_, model.names_ = classes, [name for name, _ in named]
    model.estimators_ = [one for _, one in named]
    tells = None if model.decides_by_scores else ANSWERS
    return Pool.of(titled_models(named), find_positive(classes, model.pos_label), model.n_jobs, tells)


def refuse_others(model: Any) -> None:
    """Refuse what a model of one machine takes and one over shards does not."""
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


def _found(model: Any, problem: Problem, program: Program | None) -> dict[str, Any]:
    """Return settings of the rounds that are not among the parameters, or not as they are given."""
    if isinstance(model, AdaLPBoostClassifier):
        return {"eta": model.eta_}
    model.beta_ = None  # none is taken
    goals = {"goals": [str(goal) for goal in problem.goals], "pos_label": model.pos_label}
    return {"beta": None, **({} if program is None else goals)}


def _rule(model: Any, rows: Prepared, problem: Problem, history: ShardHistory) -> Rule:
    known, n_rounds = rows.cells.known, history.n_planned
    if not isinstance(model, AdaLPBoostClassifier):
        risk = bound_risk(problem, history)
        return by_cell(dual_of(risk)) if risk.tail_fraction is None else dual_over(risk.tail_fraction)
    if model.reweigh == "samples":
        model.eta_ = hedge_step(model.eta, known.total / known.least, n_rounds)
        return hedge_over(model.eta_)
    table = rows.cells.table()
    if not table.sensitive_columns:
        raise ValueError("reweigh='groups' needs sensitive_features at fit: the groups to reweigh.")
    groups = group_codes(table)[0]
    model.eta_ = hedge_step(model.eta, groups.max() + 1, n_rounds)
    return hedge_groups_over(model.eta_, groups)


def _inside(model: Any, problem: Problem, rows: Prepared, history: ShardHistory, watch: Watch) -> Any:
    """Choose the mixture of rounds, and say what is known where it cannot meet the goals that they trained for."""
    try:
        pool = Pool(model.estimators_, find_positive(model.classes_, model.pos_label), model.n_jobs)
        _settled(model, rows, history, pool)
    except InfeasibleGoals as error:
        if watch.program is None:
            raise
        raise _not_found(error, problem, watch) from error
    if not isinstance(model, AdaLPBoostClassifier):
        model.bound_if_learner_exact_ = (
            _proven(model, problem, history) if watch.program is None else watch.program.bound
        )
    return model


def _proven(model: Any, problem: Problem, history: ShardHistory) -> float:
    """Return what no mixture of any models has less risk than, if the learner finds the best model there is."""
    if isinstance(problem.objective, Rate):
        return -np.inf  # the weights of the rounds are those of another problem
    return float(min(max(history.weighted_losses), model.value_))


def _not_found(error: InfeasibleGoals, problem: Problem, watch: Watch) -> InfeasibleGoals:
    """Return the same error as what it is, of the models that were trained: others of their kind are not ruled out."""
    assert watch.program is not None  # noqa: S101 - they trained for goals
    assert watch.program.goals is not None  # noqa: S101 - as above
    found = advised(watch.program.goals, places_in(error, problem), error.least_violation, proven=False)
    if not watch.is_over:
        n_rounds = watch.history.n_rounds
        found.add_note(f"All {n_rounds} rounds were used, and models still helped: raise n_estimators.")
    return found


def _settled(model: Any, rows: Prepared, history: ShardHistory, pool: Pool) -> Any:
    """Choose the mixture."""
    problem = model.problem_of_fit()
    evidence = evidence_of(rows.cells, answers_of(rows.cells, history.said, pool.positive))
    family = PooledModels(pool, evidence)
    model.keep(family, problem)
    selection, choice = choose_over(rows.shards, evidence, problem)
    model.store(problem, family.solution(choice, selection))
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


def decide_over(model: Any, rows: Prepared, named: list[tuple[str, Any]]) -> Any:
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
        return _settled(model, rows, history, pool)
    if not pool.positive.is_binary:
        raise ValueError(f"Rules of scores over shards are for two classes; got {len(known.classes)}.")
    shards.change(SCORES, _score, pool.members)
    ranges = np.array(shards.map(_ranges))
    ends = np.stack([ranges[:, 0].min(axis=0), ranges[:, 1].max(axis=0)], axis=1)
    usual = np.array([member.usual(own) for member, own in zip(pool.members, ends, strict=True)])
    return choose_rules_over(model, pool, shards, rows.cells, usual)


def _score(shard: Shard, members: list[Any]) -> None:
    if SCORES not in shard:
        n_rows = len(shard[CODES])
        columns = [member.ask(shard[X]) for member in members] if n_rows else [np.empty(0) for _ in members]
        shard[SCORES] = np.column_stack(columns)


def _ranges(shard: Shard) -> tuple[FloatArray, FloatArray]:
    scores = shard[SCORES]
    return scores.min(axis=0, initial=np.inf), scores.max(axis=0, initial=-np.inf)
