"""Rounds of boosters whose models are mixed: what they need, when they end, and how they go on after an interruption.

A ``BoostingRun`` holds the data of a fit, the rule that reweighs rows, what fits a model, and the rounds so far. It can
be interrupted: a checkpoint holds what decides the rounds and what is left of each, and a later fit goes on from there.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from counterpoise._base.checks import check_choice, check_count, check_fraction
from counterpoise.boosting.checkpoint import (
    NOT_OF_ROUNDS,
    CheckpointFolder,
    RunRecord,
    SavedRound,
    Seeds,
    UnusableCheckpoint,
    as_checkpoint,
    open_checkpoint,
    setting_texts,
)
from counterpoise.boosting.fit_data import DEPTH, FitData, InputRows
from counterpoise.boosting.inputs import draw_entropy, training_rows
from counterpoise.boosting.inside import RoundsProgram
from counterpoise.boosting.learner import base_learner, planned_rounds
from counterpoise.boosting.rounds import IMPROVEMENT, Callback, History, Round, Rule, Standing, boost
from counterpoise.boosting.rules import without_outliers
from counterpoise.boosting.stopping import check_stopping, stopping_of, warn_of_no_errors
from counterpoise.classifiers.base import DECISIONS
from counterpoise.goals import InfeasibleGoals, Rate, Ratio
from counterpoise.goals.bound_goals import refuse_compared, validate_goals
from counterpoise.rules.choosing import MIXTURES, Problem
from counterpoise.rules.draws import make_key
from counterpoise.rules.options import kind_of_decision
from counterpoise.rules.pool import predict_codes
from counterpoise.rules.program import NoMixture
from counterpoise.theory.risks import Mean

BUDGET = 0.03  # by default: what the tail may cost on average


def draw_seeds(random_state: Any, folder: CheckpointFolder | None) -> Seeds:
    """Return the seeds of a fit; where the system draws them and rounds are saved, those of these rounds."""
    if random_state is None and folder is not None and folder.seeds is not None:
        return folder.seeds
    key = make_key(random_state)  # before the entropy: a RandomState is drawn from twice
    return Seeds(draw_entropy(random_state), key)


def check_booster(booster: Any) -> None:
    """Check the parameters that all boosters whose models are mixed have, but for the problem."""
    if booster.n_estimators is not None:
        check_count(booster.n_estimators, "n_estimators")
    check_fraction(booster.outlier_fraction, "outlier_fraction")
    check_choice(kind_of_decision(booster.decision), "decision", DECISIONS)
    check_choice(booster.mixture, "mixture", MIXTURES)
    is_optimal, got = booster.mixture == "optimal", f"got mixture={booster.mixture!r}."
    objective = booster.problem_of_fit().objective
    if isinstance(objective, Ratio):
        raise TypeError(
            f"A booster trains rounds for a rate or a risk, and {objective} is a ratio. Leave objective out, and call "
            f"rebalance(objective={str(objective)!r}) once the models are trained."
        )
    goals = validate_goals(booster.goals, trains=True, defers=False)
    refuse_compared(goals, "A booster", "take one rule, by decision='fixed' of GoalClassifier")
    if goals and not is_optimal:
        raise ValueError(f"Goals need mixture='optimal', which chooses a mixture that meets them; {got}")
    if booster.budget not in (None, BUDGET) and not is_optimal:  # the default has nothing to limit there
        raise ValueError(f"budget needs mixture='optimal', which chooses a mixture that keeps it; {got}")
    check_stopping(booster, takes_folds=True)
    as_checkpoint(booster.checkpoint)


def round_settings(booster: Any, learner: Any, problem: Problem, seeds: Seeds, **extra: Any) -> dict[str, Any]:
    """Return the settings that decide the rounds, with the learner as it is for the samples, and what ``fit`` chose."""
    params = booster.get_params(deep=False)
    return {
        "booster": type(booster),
        **{name: value for name, value in params.items() if name not in NOT_OF_ROUNDS},
        "estimator": learner,
        **asdict(stopping_of(booster)),
        "alpha": problem.alpha,
        "random_state": None if booster.random_state is None else seeds.entropy,
        **({} if booster.objective is None else {"objective": repr(booster.objective)}),
        **extra,
    }


def state_to_store(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a booster as it is copied and saved: without the run, which refers to the samples."""
    state = {name: value for name, value in state.items() if name != "_run"}
    if isinstance(state["checkpoint"], os.PathLike):  # a text can be saved anywhere
        state["checkpoint"] = os.fspath(state["checkpoint"])
    return state


def in_own_units(problem: Problem) -> Problem:
    """Return a problem whose risk is divided by its size, so that what is a tolerance for one is one for all."""
    size = problem.objective.size
    if isinstance(problem.objective, Rate) or size == 1:
        return problem
    return problem._replace(objective=problem.objective * (1 / size))


def problem_of_patience(problem: Problem) -> Problem:
    """Return what rounds are judged by, goals left aside: early rounds rarely meet them."""
    problem = problem._replace(goals=(), mixture="optimal", budget=None)  # with which fits may go on from these rounds
    return problem._replace(objective=Mean()) if isinstance(problem.objective, Rate) else problem


class BoostingRun:
    """The rounds of a booster, and all that further ones need.

    Rounds are fitted, or taken from a checkpoint, until one is the last.

    Parameters
    ----------
    booster : classifier
        Whose parameters decide the rounds; it is not kept.
    data : FitData
        The rows.
    problem : Problem
        What the mixture will be chosen for.
    rule : Rule
        How rows are reweighed, or answers priced, after each round.
    seeds : Seeds
    settings : dict
        Of the rounds, as far as ``fit`` chose them, such as a step size.
    risk : Risk, optional
        The loss that ``target`` limits, where rounds do not use goals.
    target : float, optional
        For 1 minus the least risk.
    program : RoundsProgram, optional
        The mixture problem of the models so far, where rounds use goals.
    """

    def __init__(
        self,
        booster: Any,
        data: FitData,
        problem: Problem,
        rule: Rule,
        seeds: Seeds,
        settings: Mapping[str, Any],
        *,
        risk: Any = None,
        target: float | None = None,
        program: RoundsProgram | None = None,
    ) -> None:
        self.data, self.problem, self.seeds = data, problem, seeds
        self.risk, self.target, self.program = risk, target, program
        self.reweigh = without_outliers(rule, booster.outlier_fraction) if booster.outlier_fraction else rule
        self.history, self.patience = History(data.store), stopping_of(booster).patience
        self.best: tuple[float, int] = np.inf, 0  # the least risk so far, as a part of its size, and its round
        learner = base_learner(booster.estimator, data.n_trained, max_depth=DEPTH)
        self.settings = round_settings(booster, learner, problem, seeds, **settings)
        self.fit = data.model_fit(booster, learner, seeds)
        self.n_plain = 2 if booster.estimator is None else 1  # the strong model, and one at the samples' own weights

    def go_on(self, n_rounds: int, folder: CheckpointFolder | None, callbacks: Sequence[Callback]) -> None:
        """Take up to ``n_rounds`` further rounds from the checkpoint, and fit the rest."""

        def stop(latest: Round, _history: History) -> bool:
            latest = latest._replace(standing=self._take_in(latest))
            is_last = self._is_last(latest.number)
            if folder is not None:  # before the callbacks: one that raises or stops has its round on disk
                self._save(latest, is_last, folder)
            stops = [bool(callback(latest)) for callback in callbacks]  # all of them are called
            return any(stops) or is_last

        n_left = n_rounds if folder is None else self._restore(folder, n_rounds, callbacks)
        boost(self.fit, self.history, reweigh=self.reweigh, stop=stop, n_rounds=n_left)

    def _take_in(self, latest: Round) -> Standing | None:
        """Take in a round that was fitted or restored, and return how the mixture stands inside goals."""
        held_out, history = self.data.held_out, self.history
        if held_out is not None and len(history.held_out) < history.n_rounds:  # it was fitted
            answers = predict_codes(latest.model, held_out.X, self.data.classes)
            history.held_out.append((answers != held_out.codes).view(np.uint8))
        if self.program is None:
            return None
        self.program.add(np.asarray(latest.answers), history)
        self.reweigh(history)  # solves the program, of which the next round then knows
        return self.program.standing

    def _is_last(self, number: int) -> bool:
        """Return whether patience is at its end, the target is reached, or another round would be of no use."""
        program = self.program
        if self.patience is not None:
            value = self._value_so_far()
            if value < self.best[0] - IMPROVEMENT or not np.isfinite(value):  # none has stalled before goals are met
                self.best = value, number
            if number - self.best[1] >= self.patience:
                return True
        if self.target is not None:
            least = self.history.rows.least_risk(self.risk) if program is None else program.standing.value
            if 1 - least > self.target:
                return True
        return self.repeats if program is None else program.is_over(is_random=self.fit.is_random)

    def _value_so_far(self) -> float:
        """Return the least risk of a mixture of the rounds so far, where it will be chosen, as a part of its size."""
        program = self.program
        if program is None:
            return self.data.least_value(self.history, in_own_units(problem_of_patience(self.problem)))
        if self.data.held_out is None:
            return program.standing.value / program.size
        problem = in_own_units(self.problem._replace(budget=None, explains=False))
        try:
            return self.data.least_value(self.history, problem) / problem.objective.size
        except (InfeasibleGoals, NoMixture):
            return np.inf

    @property
    def repeats(self) -> bool:
        """Return whether the next round would repeat a model, because all samples have the same loss."""
        is_stuck = self.history.n_rounds >= self.n_plain and self.history.rows.are_all_alike()
        return self.program is None and is_stuck and not self.fit.is_random

    def warn_of_no_errors(self) -> None:
        """Say where the learner left nothing to boost, on the rows that it was fitted to."""
        if self.repeats and not self.history.rows.failures.any() and not self.data.is_judged_by_folds:
            other = ", or set Stopping(n_folds=5): rounds are then judged on rows not fitted to"
            warn_of_no_errors(self.history.n_rounds, other)

    def _save(self, latest: Round, is_last: bool, folder: CheckpointFolder) -> None:
        shared = getattr(self.fit.prepared, "shared", None)  # what the learner learned once for all rounds
        if shared is not None:
            folder.write_shared(shared)
        saved_round = SavedRound(
            model=latest.model,
            losses=latest.losses,
            held_out=self.history.held_out[-1] if self.history.held_out else None,
            weighted_loss=latest.weighted_loss,
            memory=self.history.memory,
            best=self.best,
            is_last=is_last,
            uses_shared=shared is not None,
            codes=latest.answers,
            scores=latest.scores,
        )
        folder.write(latest.number, saved_round)

    def _restore(self, folder: CheckpointFolder, n_rounds: int, callbacks: Sequence[Callback]) -> int:
        """Take up to ``n_rounds`` further rounds from the checkpoint, and return how many are left to fit."""
        history, is_last = self.history, False
        n_done, last = history.n_rounds, history.n_rounds + n_rounds
        is_drawn = self.settings["random_state"] is None  # by the system
        record = RunRecord(setting_texts(self.settings), self.data.fingerprints(), self.seeds if is_drawn else None)
        folder.claim(record, n_done)
        for number in range(n_done + 1, min(last, folder.n_rounds) + 1):
            saved_round = folder.read(number)
            values = saved_round.model, history.rows.start, saved_round.losses, saved_round.weighted_loss
            latest = Round(number, *values, answers=saved_round.codes, scores=saved_round.scores)
            try:
                history.append(latest)
            except ValueError as error:  # the fingerprint of the data is right, and the round has other rows
                raise UnusableCheckpoint(
                    f"The checkpoint {folder.folder} is damaged in round {number} ({error}): choose another folder, or "
                    "delete this one to begin anew."
                ) from error
            history.memory, self.best, is_last = saved_round.memory, saved_round.best, saved_round.is_last
            if saved_round.held_out is not None:
                history.held_out.append(saved_round.held_out)
            self._take_in(latest)
            if saved_round.uses_shared and getattr(self.fit.prepared, "shared", None) is None:
                self.fit.prepared.shared = folder.read_shared()
            if is_last:
                break
        if history.n_rounds > n_done:
            for callback in callbacks:
                if hasattr(callback, "resume"):
                    callback.resume(history.n_rounds)
        return 0 if is_last else last - history.n_rounds


def boost_rows(booster: Any, rows: InputRows, validation: InputRows, datasets: Any) -> BoostingRun:
    """Check the parameters and the rows of a fit on one machine, and fit the models of a booster to them."""
    booster.check_parameters()
    inputs = rows.X, rows.y, rows.sample_weight, rows.sensitive_features
    booster.classes_, all_rows = training_rows(booster, base_learner(booster.estimator), *inputs)
    problem = booster.problem_of_fit()
    with open_checkpoint(booster.checkpoint) as folder:
        seeds = draw_seeds(booster.random_state, folder)
        data = FitData(booster, all_rows, rows, validation, datasets, seeds)
        booster.check_data(data, problem)
        booster.forget_choice()
        run: BoostingRun = booster.new_run(data, problem, seeds)
        run.go_on(planned_rounds(booster), folder, booster.callbacks)
    booster.estimators_ = list(run.history.models)
    booster.learn_draws(seeds.key, np.random.default_rng(seeds.entropy))
    return run


def more_rounds(run: BoostingRun | None, n_rounds: int, checkpoint: Any, callbacks: Sequence[Callback]) -> BoostingRun:
    """Run further rounds of a booster, in the process that fitted it; a checkpoint must have those before them."""
    n_more = check_count(n_rounds, "n_estimators")
    if run is None:
        raise ValueError(
            "fit_more needs the samples that the classifier was fitted on. A classifier that was loaded, copied or "
            "rebalanced does not keep them: call fit_more on the classifier that you fitted."
        )
    with open_checkpoint(checkpoint) as folder:
        run.go_on(n_more, folder, callbacks)
    return run
