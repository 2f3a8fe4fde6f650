"""Boosters whose rounds look at the goals: the stage they train on, when they end, what is chosen at the end."""

import copy
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from counterpoise._base.types import IntArray
from counterpoise.boosting.base import BoostedMixture
from counterpoise.boosting.inputs import Rows, is_word, unequal
from counterpoise.boosting.inside import AnyRisk, GroupMeans, InsideFit, Objective, OfRate, Program, Stage, Tail
from counterpoise.boosting.learner import RoundsFit, ask_scores, base_learner
from counterpoise.boosting.resuming import in_own_units
from counterpoise.boosting.rounds import History, Rule, Standing
from counterpoise.goals import InfeasibleGoals, Rate, Table, as_goals
from counterpoise.goals.advice import advised
from counterpoise.goals.tables import with_train
from counterpoise.goals.text import are_asked
from counterpoise.mixtures.answers import TRAIN, Answers, Positive, find_positive
from counterpoise.mixtures.choosing import Aim, Evidence, choose_mixture, choose_nearest, select
from counterpoise.mixtures.pool import titled_models
from counterpoise.mixtures.scored import RuleClassifier
from counterpoise.mixtures.scores.asking import Scorer, scorer
from counterpoise.mixtures.scores.table import ScoreEvidence
from counterpoise.theory.risks import Risk, WorstOfGroups

_AUTO = "auto"
_BINARY = 2
# Rows from which rules of scores are chosen on those of folds: below, models trained on all rows differ from them.
_ROWS_FOR_SCORES = 20_000


class InsideGoals(BoostedMixture, RuleClassifier):
    """Base of a booster that trains inside goals where it has some (``_trains_inside``).

    Where the rows that the mixture is chosen on are others than those of training, and models score, it mixes the rules
    of their scores: every threshold of every model.
    """

    by = ()  # one threshold for all
    _stage: Stage
    _program: Program

    @property
    def _trains_inside(self) -> bool:
        """Tell whether rounds look at the goals."""
        return are_asked(self.goals)  # asked for in every round

    def _rule_inside(self, risk: Risk) -> Rule:
        """Return the rule that prices answers by the dual of the program with goals."""
        asked = self._aim_of_fit().objective
        self._stage = self._staged(asked if isinstance(asked, Rate) else None)
        self._program = Program(self._stage, objective_of(self._stage, asked, risk))
        return self._program.price

    def _staged(self, rate: Rate | None) -> Stage:
        train, goals = self._train, as_goals(self.goals)
        own = self._columns.part(np.asarray(train.places), self.classes_[train.codes], unequal(train.weights))
        tables = with_train(own, self._datasets)
        names = dict.fromkeys(name for asked in (*goals, rate) if asked is not None for name in asked.datasets)
        spoken = {name: tables[name] for name in names if name in tables and name != TRAIN}
        self._trained = self._set_aside(spoken)
        features = {name: self._checked_features(name, table) for name, table in self._trained.items()}
        return Stage.of(train, features, {TRAIN: own, **self._trained}, self._positive(), goals, rate)

    def _use_of_features(self) -> str:
        return "that models are trained on" if self._trains_inside else super()._use_of_features()

    def _set_aside(self, tables: dict[str, Table]) -> dict[str, Table]:
        """Return what is trained on of other datasets: where others choose, as large a part of these is for them."""
        if self._held_out is None:
            return tables
        sizes, generator = (
            (self._held_out.codes.size, self._train.codes.size),
            np.random.default_rng(self._round_seed(0)),
        )
        trained = {}
        for name, table in tables.items():
            chosen, others = _split(table, sizes[0] / sum(sizes), generator)
            trained[name], self._datasets[name] = table.only(others), table.only(chosen)
        return trained

    def _trained_tables(self) -> dict[str, Table]:
        return {TRAIN: self._columns, **self._trained} if self._trains_inside else {}

    def _round_settings(self, learner: Any) -> dict[str, Any]:
        settings = super()._round_settings(learner)
        if not self._trains_inside:
            return settings
        return {**settings, "goals": [str(goal) for goal in as_goals(self.goals)], "pos_label": self.pos_label}

    def _fit_of_rounds(self, train: Rows, held_out: Rows | None) -> RoundsFit | InsideFit:
        fit = super()._fit_of_rounds(self._stage.rows if self._trains_inside else train, held_out)
        self._check_scores()
        if not self._trains_inside:
            return fit
        assert not isinstance(fit, InsideFit)  # noqa: S101 - of the learner
        if (
            self._wants_scores_of_folds(train.codes.size)
            and Scorer("", base_learner(self.estimator), self._positive()).method
        ):
            ask_scores(fit, self._positive())
        return InsideFit(fit, self._stage)

    def _wants_scores_of_folds(self, n_rows: int) -> bool:
        """Tell whether rules are chosen on scores of folds: where those of models trained on all rows hardly differ."""
        if self._n_folds is None or len(self.classes_) > _BINARY:
            return False
        return n_rows >= _ROWS_FOR_SCORES if isinstance(self.scores, str) else bool(self.scores)

    def _watched(self, done: Any) -> Standing | None:
        if not self._trains_inside:
            return super()._watched(done)
        self._program.add(done.said, done.losses)
        self._reweigh(self._history)  # solves the program, of which the next round then knows
        return self._program.standing

    def _is_over_inside(self, target: float | None) -> bool:
        """Tell whether the target is reached inside the goals, or the learner finds no model that helps."""
        standing = self._program.standing
        is_reached = target is not None and standing.violation == 0 and 1 - standing.value > target
        return is_reached or self._program.is_over(is_random=self._fit_round.is_random)

    def _repeats(self, history: History) -> bool:
        return not self._trains_inside and super()._repeats(history)

    def _value_so_far(self) -> float:
        if not self._trains_inside:
            return super()._value_so_far()
        if self._held_out is None:
            return self._program.standing.value / self._program.objective.size
        aim = in_own_units(self._aim_of_fit()._replace(goals=as_goals(self.goals), budget=None))
        try:
            return choose_mixture(select(self._evidence_of_rounds(), aim), aim).value / aim.objective.size
        except InfeasibleGoals:
            return np.inf

    def _evidence_of_rounds(self) -> Evidence:
        if not self._trains_inside or self._held_out is not None:
            return super()._evidence_of_rounds()
        return self._stage.evidence(np.column_stack(self._history.said), self._history.losses)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_word(self.scores, "scores", (_AUTO,)) and not isinstance(self.scores, (bool, np.bool_)):
            raise TypeError(f"scores must be True, False or {_AUTO!r}; got {self.scores!r}.")

    def _check_score_parameters(self) -> None:
        """Check nothing: thresholds look at no columns, and all decisions will do."""

    def _mixes_rules(self) -> bool:
        return self._has_rules

    def _is_told(self) -> bool:
        return self._has_rules

    def _choose(self, aim: Aim) -> None:
        try:
            if self._can_mix_rules():
                self._settle(self._scores_of_rounds(), aim)
            else:
                super()._choose(aim)
        except InfeasibleGoals as error:
            if not self._trains_inside:
                raise
            raise self._not_found(error, aim) from error

    def _can_mix_rules(self) -> bool:
        """Tell whether rules are to be mixed and can be."""
        if not self.scores or (isinstance(self.scores, str) and not self._trains_inside):
            return False
        is_scored = self._held_out is not None or len(self._history.scores) == len(self.estimators_)
        return is_scored and not self._lack_of_scores(self.estimators_)

    def _check_scores(self) -> None:
        """Refuse rules that are asked for and cannot be mixed, before any model is trained."""
        is_asked = self.scores and not isinstance(self.scores, str)
        problem = self._lack_of_scores([base_learner(self.estimator)]) if is_asked else ""
        if problem:
            raise ValueError(f"scores=True mixes thresholds of scores, and {problem}")

    def _lack_of_scores(self, models: list[Any]) -> str:
        """Return why rules of models cannot be mixed; nothing where they can."""
        if len(self.classes_) > _BINARY:
            return f"a threshold tells two classes apart; got {len(self.classes_)}. Set scores=False."
        if self._held_out is None and (self._n_folds is None or not self._trains_inside):
            return (
                "chooses on rows that no model was trained on: set Stopping(validation_fraction=0.3), or pass X_val "
                "and y_val."
            )
        lacking = [model for model in models if Scorer("", model, self._positive()).method is None]
        return f"{lacking[0]!r} has neither predict_proba nor decision_function. Set scores=False." if lacking else ""

    def _scores_of_rounds(self) -> ScoreEvidence:
        """Return the scores of the models on the rows where rules are chosen, and on all datasets."""
        rows, positive = self._held_out, self._positive()
        titled = titled_models([("", model) for model in self.estimators_])
        self._members = [scorer(title, model, positive) for title, model in titled.items()]
        if rows is None:
            scores, own = np.column_stack(self._history.scores), unequal(self._train.weights)
            kept = self._no_evidence(self._stage.answers, scores)._replace(sample_weight=own, groups=self._train.groups)
            by_name = {name: scores[place] for name, place in self._stage.places.items()}
            told: ScoreEvidence = kept._replace(scores=by_name)
            return told
        weights, scores = unequal(rows.weights), self._scores_of(rows.X, rows.codes.size, None)
        table = self._asked_table(rows, weights).tables[TRAIN]
        found = self._no_evidence(Answers({}, {}, positive), scores).with_dataset(TRAIN, table, scores)
        joined: ScoreEvidence = self._joined(found._replace(sample_weight=weights, groups=rows.groups), self._datasets)
        return joined

    def _positive(self) -> Positive:
        return find_positive(self.classes_, self.pos_label)

    def _not_found(self, error: InfeasibleGoals, aim: Aim) -> InfeasibleGoals:
        """Return the same error as what it is, of the models that were trained: others of their kind are not ruled out.

        All goals that take part are named, as a goal that none of these models meets may be met by others alone.
        """
        aim = aim._replace(budget=None)
        places = places_in(error, aim)
        if self._can_mix_rules():
            named, offered = [aim.goals[place] for place in places], (error.joint_bounds, error.held_by)
            found = InfeasibleGoals(named, error.least_violation, error.nearest_bounds, False, *offered)
        else:
            goals = select(self._evidence_of_rounds(), aim).goals
            assert goals is not None  # noqa: S101 - they were missed
            found = advised(goals, places, error.least_violation, proven=False)
        found.closest = self._closest(found, aim)
        found.least_violation = sum(check.violation for check in found.closest.check_goals())
        for note in self._notes_on(found.closest):
            found.add_note(note)
        return found

    def _closest(self, error: InfeasibleGoals, aim: Aim) -> Self:
        """Return the classifier that meets the nearest of the bounds that are offered, with the goals as they were."""
        self._forget_choice()  # that failed
        if not error.ways_out:
            evidence, other = self._evidence_of_rounds(), copy.copy(self)
            selection = select(evidence, aim)
            other._settle_on(evidence, aim, selection, choose_nearest(selection, aim))  # noqa: SLF001 - of our own kind
            return other
        way = min(error.ways_out, key=lambda one: sum(abs(old.bound - new.bound) for old, new in one.items()))
        known = self._scores_of_rounds() if self._can_mix_rules() else self._evidence_of_rounds()
        other = copy.copy(self)
        other._settle(known, aim._replace(goals=tuple(way.get(goal, goal) for goal in aim.goals)))  # noqa: SLF001
        other.goals_ = aim.goals
        return other

    def _notes_on(self, closest: Self) -> Iterator[str]:
        """Yield what the classifier that misses the goals least does, and whether more rounds may do better."""
        missed = [str(check) for check in closest.check_goals() if not check.holds]
        yield f"The nearest mixture of the {len(closest.estimators_)} models that were trained: {'; '.join(missed)}."
        if not self._program.is_over(is_random=self._fit_round.is_random):
            yield f"All {self._history.n_rounds} rounds were used, and models still helped: raise n_estimators."


def objective_of(stage: Stage, asked: Risk | Rate, risk: Risk) -> Objective:
    """Return what is minimized over mixtures on the rows of a stage: a rate, or a risk that is bound to them."""
    if isinstance(asked, Rate):
        return OfRate(stage, asked.size)
    if isinstance(risk, WorstOfGroups):
        return GroupMeans(risk.codes)
    if risk.tail_fraction is None:
        return AnyRisk(risk)
    n_labelled = stage.labelled.codes.size
    return Tail(risk.tail_fraction) if risk.tail_fraction < 1 else GroupMeans(np.zeros(n_labelled, dtype=np.int64))


def places_in(error: InfeasibleGoals, aim: Aim) -> list[int]:
    """Return the places of all goals that take part in a conflict."""
    part = {*error.conflict, *(goal for held in error.held_by.values() for goal in held)}
    return [place for place, goal in enumerate(aim.goals) if goal in part]


def _split(table: Table, fraction: float, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return places of rows to choose on, a fraction of them, and of the others; one row alone serves both."""
    if table.n_samples == 1:
        return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    order = generator.permutation(table.n_samples)
    n_aside = min(max(round(fraction * table.n_samples), 1), table.n_samples - 1)
    return np.sort(order[:n_aside]), np.sort(order[n_aside:])
