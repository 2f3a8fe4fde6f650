"""Rounds of boosters whose models are mixed: what they need, when they end, what the mixture is chosen on.

A ``BoostingRun`` holds the rows, the rule that reweighs them, what fits a model, and the rounds so far. It can be
interrupted: a checkpoint holds what decides the rounds and what is left of each, and a later fit goes on from there.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from counterpoise._base.checks import check_choice, check_count, check_fraction, is_frame
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray
from counterpoise.boosting.adaboost import AdaBoostClassifier
from counterpoise.boosting.checkpoint import (
    NOT_OF_ROUNDS,
    CheckpointFolder,
    RunRecord,
    SavedRound,
    Seeds,
    as_checkpoint,
    data_texts,
    opened,
    setting_texts,
)
from counterpoise.boosting.inputs import (
    CheckedRows,
    check_predict_input,
    draw_entropy,
    round_seed,
    split_rows,
    unequal,
)
from counterpoise.boosting.inside import InsideFit, Program, Stage
from counterpoise.boosting.learner import RoundsFit, base_learner, is_ensemble, planned_rounds, rounds_fit
from counterpoise.boosting.rounds import IMPROVEMENT, Callback, History, Round, Rule, Standing, boost
from counterpoise.boosting.rules import without_outliers
from counterpoise.boosting.stopping import AUTO, check_stopping, stopping_of, warn_of_no_errors
from counterpoise.classifiers.base import DECISIONS
from counterpoise.goals import InfeasibleGoals, Rate, Table
from counterpoise.goals.bound import asked_goals
from counterpoise.goals.tables import with_train
from counterpoise.rules.cautions import check_problem, warn_of_the_average
from counterpoise.rules.choosing import MIXTURES, PoolPredictions, Problem, Selection, choose_mixture, select
from counterpoise.rules.draws import make_key
from counterpoise.rules.families import PooledModels, Thresholds
from counterpoise.rules.goal_rows import TRAIN, Answers, Positive, find_positive
from counterpoise.rules.options import kind_of_decision
from counterpoise.rules.pool import Pool, predict_codes, scoring_method, titled_models
from counterpoise.rules.rows import checked_features
from counterpoise.rules.scores.table import ScoreTable
from counterpoise.solvers import minimize_risk
from counterpoise.theory.risks import Mean

BUDGET = 0.03  # by default: what the tail may cost on average
_FOLDS = 5  # by default, where the losses on rows that a model has seen would tell nothing
DEPTH = 4  # of the default trees: the shallower, the more they differ from the strong model
_STRONG = AdaBoostClassifier(n_estimators=300)
_BINARY = 2
# Rows from which rules of scores are chosen on those of folds: below, models trained on all rows differ from them.
_ROWS_FOR_SCORES = 20_000


class GivenRows(NamedTuple):
    """Labelled rows as ``fit`` is given them, with what goals may ask of them."""

    X: Any
    y: Any
    sample_weight: ArrayLike | None = None
    sensitive_features: Any = None
    baseline: ArrayLike | None = None
    largest_weight: float | None = None
    table: Table | None = None

    def goal_table(self) -> Table:
        """Return what goals may ask: a table, or columns, those of X where they have names, and a limit on weights."""
        n_samples = len(np.asarray(self.y))
        if self.table is not None:
            if self.table.n_samples != n_samples:
                raise ValueError(f"table must hold a row for each of the {n_samples} samples; got {self.table!r}.")
            return self.table.beside(self.sensitive_features, self.baseline)
        features = self.X if is_frame(self.X) else np.empty((n_samples, 0))
        limit = self.largest_weight
        weights = None if limit is None else self.sample_weight
        given = self.sensitive_features, self.baseline
        return Table(features, None, *given, sample_weight=weights, largest_weight=limit)


class BoostingRows(NamedTuple):
    """Rows to train on, those on which the mixture is chosen, and what goals know of them and of other datasets."""

    classes: AnyArray
    positive: Positive
    train: CheckedRows
    held_out: CheckedRows | None
    columns: Table  # of the rows that ``fit`` is given
    table: Table  # of those on which the mixture is chosen
    datasets: Mapping[str, Table]  # others, as far as the mixture is chosen on them
    check: Callable[[Any], Any]  # features of other datasets as the models take them
    purpose: str  # of those, as messages say it

    def answers(self) -> Answers:
        """Return what goals know of the rows on which the mixture is chosen, before any model has answered."""
        rows = self.held_out or self.train
        places = np.arange(self.table.n_samples) if rows.places is None else rows.places
        table = self.table.part(places, self.classes[rows.codes], unequal(rows.weights))
        return Answers({TRAIN: table}, {}, self.positive)

    def features(self, name: str, table: Table) -> Any:
        """Return the features of another dataset as the models take them."""
        return checked_features(table.X, name, self.purpose, self.check)

    def check_problem(self, problem: Problem) -> None:
        """Refuse goals, objective and datasets that do not fit the rows, before any model is trained."""
        rows = self.held_out or self.train
        is_confident = any(goal.confidence is not None and TRAIN in goal.datasets for goal in problem.goals)
        if is_confident and self.table.largest_weight is None:  # goals on weights without a limit
            Table(None, rows.codes, sample_weight=rows.weights).heaviest(TRAIN)
        tables = with_train(self.answers().tables[TRAIN], self.datasets)
        for name, table in self.datasets.items():
            self.features(name, table)
        check_problem(problem, tables, self.positive, groups=rows.groups)

    def staged(self, problem: Problem, entropy: int) -> "tuple[BoostingRows, Stage, dict[str, Table]]":
        """Return the stage that rounds inside goals train on, and what of other datasets is for them.

        Where the mixture is chosen on other rows than those of training, as large a part of other datasets is for it:
        of a single row, the same.
        """
        train, rate = self.train, problem.objective if isinstance(problem.objective, Rate) else None
        own = self.columns.part(np.asarray(train.places), self.classes[train.codes], unequal(train.weights))
        names = dict.fromkeys(name for asked in (*problem.goals, rate) if asked is not None for name in asked.datasets)
        trained, kept = {name: self.datasets[name] for name in names if name in self.datasets}, dict(self.datasets)
        if self.held_out is not None:
            n_held, generator = self.held_out.codes.size, np.random.default_rng(round_seed(entropy, 0))
            for name, table in trained.items():
                n_rows = table.n_samples
                order = generator.permutation(n_rows) if n_rows > 1 else np.zeros(2, dtype=np.int64)
                n_aside = max(round(n_held / (n_held + train.codes.size) * n_rows), 1)
                n_aside = min(n_aside, max(n_rows - 1, 1))
                trained[name] = table.only(np.sort(order[n_aside:]))
                kept[name] = table.only(np.sort(order[:n_aside]))
        features = {name: self.features(name, table) for name, table in trained.items()}
        stage = Stage.of(train, features, {TRAIN: own, **trained}, self.positive, problem.goals, rate)
        return self._replace(datasets=kept), stage, trained


def draw_seeds(random_state: Any, saved: CheckpointFolder | None) -> Seeds:
    """Return the seeds of a fit; where the system draws them and rounds are saved, those of these rounds."""
    if random_state is None and saved is not None and saved.seeds is not None:
        return saved.seeds
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
    if asked_goals(booster.goals, trains=True, defers=False) and not is_optimal:
        raise ValueError(f"Goals need mixture='optimal', which is free to meet them; {got}")
    if booster.budget not in (None, BUDGET) and not is_optimal:  # the default has nothing to limit there
        raise ValueError(f"budget needs mixture='optimal', which is free to keep it; {got}")
    check_stopping(booster, takes_folds=True)
    as_checkpoint(booster.checkpoint)


def round_settings(booster: Any, learner: Any, problem: Problem, seeds: Seeds, **found: Any) -> dict[str, Any]:
    """Return the settings that decide the rounds, with the learner as it is for the samples, and what was found."""
    params = booster.get_params(deep=False)
    return {
        "booster": type(booster),
        **{name: value for name, value in params.items() if name not in NOT_OF_ROUNDS},
        "estimator": learner,
        **asdict(stopping_of(booster)),
        "alpha": problem.alpha,
        "random_state": None if booster.random_state is None else seeds.entropy,
        **({} if booster.objective is None else {"objective": repr(booster.objective)}),
        **found,
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


class RoundDriver:
    """Rounds that are fitted, or taken from a checkpoint, until one is the last.

    A subclass sets the attributes, takes note of each round and knows what decides them.
    """

    fit: Any  # of a model to weights
    history: History
    reweigh: Rule
    problem: Problem  # what the mixture will be chosen for
    settings: dict[str, Any]  # that decide the rounds
    seeds: Seeds
    patience: int | None
    program: Program | None = None  # the mixture problem of the models so far, where rounds look at goals
    target: float | None = None  # for 1 minus the least risk
    best: tuple[float, int] = np.inf, 0  # the least risk so far, as a part of its size, and its round
    saves_answers: ClassVar[bool] = True  # with a round

    def data(self) -> dict[str, str]:
        """Return a text for each part of the data that decides the rounds, for a checkpoint to compare."""
        raise NotImplementedError

    def restored(self, number: int, done: SavedRound) -> Round:
        """Return a round that was saved."""
        known = done.model, self.history.start, done.losses, done.weighted_loss
        return Round(number, *known, said=done.said, scores=done.scores)

    def note(self, done: Round) -> Standing | None:
        """Take note of a round that was fitted or restored, and return how the mixture stands inside goals."""
        raise NotImplementedError

    def value_so_far(self) -> float:
        """Return the least risk of a mixture of the rounds so far, where it will be chosen, as a part of its size."""
        raise NotImplementedError

    def least_risk(self) -> float:
        """Return the least risk that ``target`` is about, where rounds do not look at goals."""
        raise NotImplementedError

    @property
    def repeats(self) -> bool:
        """Tell whether the next round would only repeat a model."""
        return False

    def go_on(self, n_rounds: int, saved: CheckpointFolder | None, callbacks: Sequence[Callback]) -> None:
        """Take up to ``n_rounds`` further rounds from the checkpoint, and fit the rest."""

        def stop(done: Round, _history: History) -> bool:
            done = done._replace(standing=self.note(done))
            is_last = self._is_last(done.number)
            if saved is not None:  # before the callbacks: one that raises or stops has its round on disk
                self._save(done, is_last, saved)
            asked = [bool(callback(done)) for callback in callbacks]  # all of them are called
            return any(asked) or is_last

        n_left = n_rounds if saved is None else self._restore(saved, n_rounds, callbacks)
        boost(self.fit, self.history, reweigh=self.reweigh, stop=stop, n_rounds=n_left)

    def _is_last(self, number: int) -> bool:
        """Tell whether patience is at its end, the target is reached, or another round would be of no use."""
        program = self.program
        if self.patience is not None:
            value = self.value_so_far()
            if value < self.best[0] - IMPROVEMENT or not np.isfinite(value):  # none has stalled before goals are met
                self.best = value, number
            if number - self.best[1] >= self.patience:
                return True
        if self.target is not None:
            least = self.least_risk() if program is None else program.standing.value
            if 1 - least > self.target:
                return True
        return self.repeats if program is None else program.is_over(is_random=self.fit.is_random)

    def _save(self, done: Round, is_last: bool, saved: CheckpointFolder) -> None:
        shared = getattr(self.fit.prepared, "shared", None)  # what the learner learned once for all rounds
        if shared is not None:
            saved.write_shared(shared)
        left = SavedRound(
            model=done.model,
            losses=done.losses,
            held_out=self.history.held_out[-1] if self.history.held_out else None,
            weighted_loss=done.weighted_loss,
            memory=self.history.memory,
            best=self.best,
            is_last=is_last,
            uses_shared=shared is not None,
            said=done.said if self.saves_answers else None,
            scores=done.scores,
        )
        saved.write(done.number, left)

    def _restore(self, saved: CheckpointFolder, n_rounds: int, callbacks: Sequence[Callback]) -> int:
        """Take up to ``n_rounds`` further rounds from the checkpoint, and return how many are left to fit."""
        history, is_last = self.history, False
        n_done, last = history.n_rounds, history.n_rounds + n_rounds
        is_drawn = self.settings["random_state"] is None  # by the system
        saved.claim(RunRecord(setting_texts(self.settings), self.data(), self.seeds if is_drawn else None), n_done)
        for number in range(n_done + 1, min(last, saved.n_rounds) + 1):
            done = saved.read(number)
            restored = self.restored(number, done)
            history.append(restored)
            history.memory, self.best, is_last = done.memory, done.best, done.is_last
            if done.held_out is not None:
                history.held_out.append(done.held_out)
            self.note(restored)
            if done.uses_shared and getattr(self.fit.prepared, "shared", None) is None:
                self.fit.prepared.shared = saved.read_shared()
            if is_last:
                break
        if history.n_rounds > n_done:
            for callback in callbacks:
                if hasattr(callback, "resume"):
                    callback.resume(history.n_rounds)
        return 0 if is_last else last - history.n_rounds


class BoostingRun(RoundDriver):
    """The rounds of a booster, and all that further ones need.

    Parameters
    ----------
    booster : classifier
        Whose parameters decide the rounds; it is not kept.
    rows : BoostingRows
    problem : Problem
        What the mixture will be chosen for.
    rule : Rule
        How rows are reweighed, or answers priced, after each round.
    seeds : Seeds
    found : dict
        Settings of the rounds that ``fit`` found, such as a step size.
    risk : Risk, optional
        That ``target`` is about, where rounds do not look at goals.
    program : Program, optional
        The mixture problem of the models so far, where rounds look at goals.
    trained : dict from names to Table
        What other rows than those of ``rows.train`` decide the rounds.
    """

    fit: RoundsFit | InsideFit

    def __init__(
        self,
        booster: Any,
        rows: BoostingRows,
        problem: Problem,
        rule: Rule,
        seeds: Seeds,
        found: Mapping[str, Any],
        *,
        risk: Any = None,
        target: float | None = None,
        program: Program | None = None,
        trained: Mapping[str, Table] | None = None,
    ) -> None:
        self.rows, self.problem, self.seeds, self.risk, self.target = rows, problem, seeds, risk, target
        self.program, self.trained, self.n_jobs = program, trained or {}, booster.n_jobs
        self.reweigh = without_outliers(rule, booster.outlier_fraction) if booster.outlier_fraction else rule
        self.history = History(rows.train.weights, planned_rounds(booster))
        stopping, n_samples = stopping_of(booster), (program.stage.rows if program else rows.train).codes.size
        self.patience = stopping.patience
        self.is_default = booster.estimator is None
        learner = base_learner(booster.estimator, n_samples, max_depth=DEPTH)
        self.settings = round_settings(booster, learner, problem, seeds, **found)
        asked = stopping.n_folds
        if asked == AUTO:
            is_strong = self.is_default or is_ensemble(booster.estimator)
            asked = _FOLDS if is_strong and rows.held_out is None else None
        self.n_folds = None if asked is None else min(int(asked), n_samples)
        self.scores = booster.scores
        if self.scores and not isinstance(self.scores, str):
            lack = self._lack_of_scores([base_learner(booster.estimator)])
            if lack:
                raise ValueError(f"scores=True mixes thresholds of scores, and {lack}")
        # Rules are chosen on scores of folds where those of models trained on all rows hardly differ.
        n_enough = _ROWS_FOR_SCORES if isinstance(self.scores, str) else 0
        are_scored = self.scores and len(rows.classes) == _BINARY and rows.train.codes.size >= n_enough
        positive = rows.positive if program and are_scored and scoring_method(learner) else None
        first = _STRONG if self.is_default else None  # a strong model in the first round
        fitted, random_seeds = program.stage.rows if program else rows.train, partial(round_seed, seeds.entropy)
        fit = rounds_fit(first, learner, fitted, rows.classes, random_seeds, self.n_folds, positive)
        self.fit = InsideFit(fit, program.stage) if program else fit

    def data(self) -> dict[str, str]:
        """Return a text for each part of the data that decides the rounds, for a checkpoint to compare."""
        tables = self.trained if self.program is None else {TRAIN: self.rows.columns, **self.trained}
        return data_texts(self.rows.classes, self.rows.train, self.rows.held_out, tables)

    def note(self, done: Round) -> Standing | None:
        """Take note of a round that was fitted or restored, and return how the mixture stands inside goals."""
        held_out, history = self.rows.held_out, self.history
        if held_out is not None and len(history.held_out) < history.n_rounds:  # it was fitted
            predicted = predict_codes(done.model, held_out.X, self.rows.classes)
            history.held_out.append((predicted != held_out.codes).view(np.uint8))
        if self.program is None:
            return None
        self.program.add(np.asarray(done.said), done.losses)
        self.reweigh(history)  # solves the program, of which the next round then knows
        return self.program.standing

    def least_risk(self) -> float:
        """Return the least risk that ``target`` is about, where rounds do not look at goals."""
        return minimize_risk(self.history.losses, self.risk, sample_weight=self.history.start).value

    @property
    def repeats(self) -> bool:
        """Tell whether the next round would only repeat a model: all samples fared alike, so they weigh as at first."""
        n_plain = 2 if self.is_default else 1  # the strong model, and one at the samples' own weights
        is_stuck = self.history.n_rounds >= n_plain and np.ptp(self.history.totals) == 0
        return bool(self.program is None and is_stuck and not self.fit.is_random)

    def warn_of_no_errors(self) -> None:
        """Say where the learner left nothing to boost."""
        if self.repeats and not self.history.totals.any() and self.n_folds is None:
            other = ", or set Stopping(n_folds=5): rounds are then judged on rows not fitted to"
            warn_of_no_errors(self.history.n_rounds, other)

    def value_so_far(self) -> float:
        """Return the least risk of a mixture of the rounds so far, where it will be chosen, as a part of its size."""
        if self.program is not None and self.rows.held_out is None:
            return self.program.standing.value / self.program.size
        is_plain = self.program is None
        problem = in_own_units(problem_of_patience(self.problem) if is_plain else self.problem._replace(budget=None))
        try:
            value = choose_mixture(select(self.predictions(with_answers=not is_plain), problem), problem).value
        except InfeasibleGoals:
            return np.inf
        return value if is_plain else value / problem.objective.size

    def predictions(self, *, with_answers: bool = True) -> PoolPredictions:
        """Return the losses of the models on the rows where the mixture is chosen, and answers on all datasets."""
        history, positive, held_out = self.history, self.rows.positive, self.rows.held_out
        rows, losses = (
            (self.rows.train, history.losses) if held_out is None else (held_out, np.array(history.held_out).T)
        )
        known = PoolPredictions(losses, unequal(rows.weights), rows.groups, self.rows.answers())
        if not with_answers:
            return known
        if self.program is not None and held_out is None:
            return known._replace(answers=self.program.stage.answered(np.column_stack(history.said)))
        pool = Pool(history.models, positive, self.n_jobs)
        is_asked = positive.place is not None or self.problem.goals or isinstance(self.problem.objective, Rate)
        said: Any = None
        if positive.is_binary:  # then losses tell predictions
            said = positive.bits_of_losses(losses, rows.codes)
        elif held_out is None and history.said:
            said = np.column_stack(history.said)
        elif history.said or is_asked:
            said = pool.ask(rows.X, rows.codes.size)
        answers = known.answers.with_dataset(TRAIN, known.answers.tables[TRAIN], said)
        for name, table in self.rows.datasets.items():
            codes = pool.ask(self.rows.features(name, table), table.n_samples)
            answers = answers.with_dataset(name, table, positive.said(codes))
        return known._replace(answers=answers)

    def family(self) -> PooledModels | Thresholds:
        """Return what the mixture is chosen among: rules of scores where they can be mixed, else the models."""
        history, held_out = self.history, self.rows.held_out
        is_asked = self.scores and not (isinstance(self.scores, str) and self.program is None)
        is_scored = held_out is not None or len(history.scores) == history.n_rounds
        if not (is_asked and is_scored) or self._lack_of_scores(history.models):
            return PooledModels(Pool(history.models, self.rows.positive, self.n_jobs), self.predictions())
        pool = Pool.of(titled_models([("", model) for model in history.models]), self.rows.positive, self.n_jobs)
        rows, answers = held_out or self.rows.train, self.rows.answers()
        by_name: dict[str, Any] = {}
        if held_out is not None:
            by_name[TRAIN] = pool.ask(rows.X, rows.codes.size)
            for name, table in self.rows.datasets.items():
                by_name[name] = pool.ask(self.rows.features(name, table), table.n_samples, name)
                answers = answers.with_dataset(name, table, None)
        elif self.program is not None:
            stage, scores = self.program.stage, np.column_stack(history.scores)
            answers, by_name = stage.answers, {name: scores[place] for name, place in stage.places.items()}
        usual = [member.usual(column) for member, column in zip(pool.members, by_name[TRAIN].T, strict=True)]
        return Thresholds(pool, ScoreTable(by_name, answers, unequal(rows.weights), rows.groups, np.array(usual)))

    def _lack_of_scores(self, models: list[Any]) -> str:
        """Return why rules of models cannot be mixed; nothing where they can."""
        if len(self.rows.classes) > _BINARY:
            return f"a threshold tells two classes apart; got {len(self.rows.classes)}. Set scores=False."
        if self.rows.held_out is None and (self.n_folds is None or self.program is None):
            return (
                "chooses on rows that no model was trained on: set Stopping(validation_fraction=0.3), or pass X_val "
                "and y_val."
            )
        lacking = [model for model in models if scoring_method(model) is None]
        return f"{lacking[0]!r} has neither predict_proba nor decision_function. Set scores=False." if lacking else ""


def boosting_rows(
    booster: Any, every: CheckedRows, given: GivenRows, validation: GivenRows, datasets: Any, seeds: Seeds
) -> BoostingRows:
    """Return the rows of a fit, split into those to train on and those held out, with what goals know of them.

    ``every`` are the rows of ``given`` after they were checked; the booster knows its classes.
    """
    learner, columns = base_learner(booster.estimator), given.goal_table()
    held = validation.X, validation.y, validation.sensitive_features
    return BoostingRows(
        booster.classes_,
        find_positive(booster.classes_, booster.pos_label),
        *split_rows(booster, learner, every, *held, entropy=seeds.entropy),
        columns,
        columns if validation.X is None else validation.goal_table(),
        with_train(None, datasets),
        partial(check_predict_input, booster, learner),
        "that models are trained on" if booster.trains_inside else "that the models can be asked about",
    )


def warn_of_mixing(selection: Selection, mixture: FloatArray, problem: Problem) -> None:
    """Say what the tail and the goals cost on average beside the first model."""
    if problem.mixture == "optimal":
        means = np.average(selection.losses, axis=0, weights=selection.sample_weight)
        warn_of_the_average(float(means @ mixture), float(means[0]), "its first model", problem)


def more_rounds(run: BoostingRun | None, n_rounds: int, checkpoint: Any, callbacks: Sequence[Callback]) -> None:
    """Run further rounds of a booster, in the process that fitted it; a checkpoint must have those before them."""
    n_more = check_count(n_rounds, "n_estimators")
    if run is None:
        raise ValueError(
            "fit_more needs the samples that the classifier was fitted on; one that was loaded, copied or "
            "rebalanced does not have them. Call it on the one that was fitted."
        )
    with opened(checkpoint) as saved:
        run.history.reserve(n_more)
        run.go_on(n_more, saved, callbacks)
