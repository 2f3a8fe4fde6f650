"""What the boosters of randomized ensembles share: rounds, the choice of the mixture, going on later."""

import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from counterpoise._base.checks import check_choice, check_count, check_fraction
from counterpoise._base.types import AnyArray, ArrayLike, ByteArray, IntArray
from counterpoise.boosting.adaboost import AdaBoostClassifier
from counterpoise.boosting.checkpoint import CheckpointFolder, as_checkpoint, opened
from counterpoise.boosting.inputs import (
    Rows,
    check_callbacks,
    goal_table,
    held_out_rows,
    set_aside,
    training_rows,
    unequal,
)
from counterpoise.boosting.inside import InsideFit
from counterpoise.boosting.learner import RoundsFit, base_learner, is_ensemble, planned_rounds, rounds_fit
from counterpoise.boosting.resuming import Best, ResumingBooster, in_own_units
from counterpoise.boosting.rounds import History, Round, Rule
from counterpoise.boosting.rules import without_outliers
from counterpoise.boosting.stopping import AUTO, check_stopping, stopping_of, warn_of_no_errors
from counterpoise.goals import Rate, Table, as_goals
from counterpoise.goals.bound import asked_goals
from counterpoise.goals.tables import with_train
from counterpoise.goals.text import are_asked
from counterpoise.mixtures.answers import TRAIN, Answers, find_positive
from counterpoise.mixtures.base import DECISIONS
from counterpoise.mixtures.cautions import warn_of_the_average
from counterpoise.mixtures.choosing import (
    MIXTURES,
    WORST_GROUP,
    Aim,
    Evidence,
    Selection,
    as_aim,
    choose_mixture,
    select,
)
from counterpoise.mixtures.draws import KeyedDraws
from counterpoise.mixtures.options import key_of_decision, kind_of_decision
from counterpoise.mixtures.pool import Pool, pool_codes, predict_codes
from counterpoise.mixtures.prechecks import check_problem
from counterpoise.mixtures.randomized import RandomizedClassifier
from counterpoise.theory.risks import Mean

# What only ``fit_more`` needs: the samples and what refers to them.
_NOT_SAVED = frozenset(
    {
        "_drawn_key",
        "_history",
        "_fit_round",
        "_reweigh",
        "_risk",
        "_train",
        "_held_out",
        "_table",
        "_columns",
        "_datasets",
        "_stage",
        "_program",
    }
)
_FOLDS = 5  # by default, where the losses on rows that a model has seen would tell nothing
BUDGET = 0.03  # by default: what the tail may cost on average
_DEPTH = 4  # of the default trees: the shallower, the more they differ from the strong model
_STRONG = AdaBoostClassifier(n_estimators=300)


class BoostedMixture(ResumingBooster, RandomizedClassifier):
    """Base of the boosters; a subclass says how samples are reweighed (``_rule``)."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        datasets: Mapping[str, Table] | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features_val: Any = None,
        baseline_val: ArrayLike | None = None,
        largest_weight: float | None = None,
        table: Table | None = None,
        table_val: Table | None = None,
    ) -> Self:
        """Fit the base models and choose their mixture.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training samples. A data frame reaches the base learner as it is.
        y : array of shape (n_samples,)
            Labels of two or more classes, of any type.
        sample_weight : array of shape (n_samples,), optional
            Non-negative; only their ratios matter.
        sensitive_features : array or data frame with a row for each sample, optional
            The groups for ``reweigh="groups"``, and the columns that goals speak of.
        baseline : array of shape (n_samples,), optional
            What the deployed model says, for goals on churn, wins and losses.
        datasets : dict from names to Table, optional
            Other datasets that goals speak of.
        X_val, y_val : optional
            Labelled samples on which the mixture is chosen. Default: those that the ``validation_fraction`` of
            ``stopping`` sets aside, or the training samples. Goals call them ``train``: they are met where the mixture
            is chosen.
        sensitive_features_val, baseline_val : optional
            The groups of ``X_val`` and the columns that goals speak of there, and what the deployed model says of them.
        largest_weight : float, optional
            The most that a row of the population can weigh, for goals that carry a confidence: as for ``Table``.
        table, table_val : Table, optional
            What goals may ask about the rows of ``X`` and of ``X_val`` beside ``sensitive_features`` and ``baseline``:
            all columns of a data frame of which the models take a part. Labels and weights are those of ``fit``.

        Returns
        -------
        self

        Raises
        ------
        InfeasibleGoals
            Where no mixture of the models meets the goals.
        """
        self._check_parameters()
        check_callbacks(self.callbacks)
        learner = base_learner(self.estimator)
        self.classes_, rows = training_rows(self, learner, X, y, sample_weight, sensitive_features)
        with opened(self.checkpoint) as saved:
            self._draw_seeds(saved)
            train, held_out = rows, held_out_rows(self, learner, X_val, y_val, sensitive_features_val)
            if held_out is None:
                train, held_out = set_aside(rows, self.classes_, stopping_of(self), self._seeds)
            elif held_out.groups is None and self._mixes_groups():
                raise ValueError(
                    "X_val needs sensitive_features_val: the mixture is chosen for the worst of its groups."
                )
            self._columns = goal_table(X, y, sensitive_features, table, baseline, sample_weight, largest_weight)
            self._table = self._columns
            self._datasets = with_train(None, datasets)
            if X_val is not None:  # whose rows weigh the same
                self._table = goal_table(X_val, y_val, sensitive_features_val, table_val, baseline_val)
            self._check_weights(held_out or train)
            self._check_asked(held_out or train)
            self._start(train, held_out, saved)
            self._run_rounds(planned_rounds(self), saved)
        key = key_of_decision(self.decision) or self._drawn_key
        self._draws = KeyedDraws.learned(key, rows.X, rows.weights, self._history.models)
        self._mix()
        if self._repeats(self._history) and not self._history.totals.any() and self._n_folds is None:
            warn_of_no_errors(
                self._history.n_rounds,
                ", or set Stopping(n_folds=5): rounds are then judged on rows not fitted to",
            )
        return self

    def fit_more(self, n_estimators: int) -> Self:
        """Fit further base models to the same samples, and choose the mixture anew.

        Only in the process that fitted the classifier: the samples are referred to, not stored with a saved model.
        With ``eta="theory"`` or ``beta="theory"`` the value of the first fit is kept. With ``checkpoint`` these rounds
        too are saved, or restored where they were saved before.

        Parameters
        ----------
        n_estimators : int
            How many more.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        n_more = check_count(n_estimators, "n_estimators")
        if not hasattr(self, "_history"):
            raise ValueError(
                "fit_more needs the samples that the classifier was fitted on; one that was loaded, copied or "
                "rebalanced does not have them. Call it on the one that was fitted."
            )
        with opened(self.checkpoint) as saved:
            if saved is not None:
                saved.claim(self._run(), self._history.n_rounds)
            self._history.reserve(n_more)
            self._run_rounds(n_more, saved)
        return self._mix()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = BaseEstimator.__getstate__(self)
        state = {name: value for name, value in state.items() if name not in _NOT_SAVED}
        if isinstance(self.checkpoint, os.PathLike):  # a text can be saved anywhere
            state["checkpoint"] = os.fspath(self.checkpoint)
        return state

    def _rule(self, history: History, groups: IntArray | None) -> Rule:
        raise NotImplementedError

    def _should_stop(self, history: History) -> bool:  # noqa: ARG002 - for subclasses
        """Tell whether the rounds so far are enough, beside what callbacks and patience say."""
        return False

    def _check_parameters(self) -> None:
        self._aim_of_fit()
        if self.n_estimators is not None:
            check_count(self.n_estimators, "n_estimators")
        check_fraction(self.outlier_fraction, "outlier_fraction")
        check_choice(kind_of_decision(self.decision), "decision", DECISIONS)
        check_choice(self.mixture, "mixture", MIXTURES)
        if asked_goals(self.goals, trains=True, defers=False) and self.mixture != "optimal":
            raise ValueError(f"Goals need mixture='optimal', which is free to meet them; got mixture={self.mixture!r}.")
        if self.budget not in (None, BUDGET) and self.mixture != "optimal":  # the default has nothing to limit there
            raise ValueError(f"budget needs mixture='optimal', which is free to keep it; got mixture={self.mixture!r}.")
        check_stopping(self, takes_folds=True)
        as_checkpoint(self.checkpoint)

    def _check_weights(self, rows: Rows) -> None:
        """Refuse weights without a limit before the rounds, where goals on them carry a confidence."""
        is_confident = any(goal.confidence is not None and TRAIN in goal.datasets for goal in as_goals(self.goals))
        if is_confident and self._table.largest_weight is None:
            Table(None, rows.codes, sample_weight=rows.weights).heaviest(TRAIN)

    def _start(self, train: Rows, held_out: Rows | None, saved: CheckpointFolder | None) -> None:
        self._forget_choice()
        self._history = History(train.weights, planned_rounds(self))
        self._train, self._held_out = train, held_out
        self._best = Best(np.inf, 0)
        self._reweigh = without_outliers(self._rule(self._history, train.groups), float(self.outlier_fraction))
        if saved is not None:
            saved.claim(self._run())
        self._fit_round = self._fit_of_rounds(train, held_out)
        self.estimators_: list[Any] = []

    def _learner_for(self, n_samples: int) -> Any:
        return base_learner(self.estimator, n_samples, max_depth=_DEPTH)

    def _fit_of_rounds(self, train: Rows, held_out: Rows | None) -> RoundsFit | InsideFit:
        """Return what fits the rounds: by default a strong model first, then trees, judged on rows they did not see."""
        self._n_folds = self._folds_asked(train, held_out)
        first = _STRONG if self.estimator is None else None
        later = self._learner_for(train.codes.size)
        return rounds_fit(first, later, train, self.classes_, self._round_seed, self._n_folds)

    def _folds_asked(self, train: Rows, held_out: Rows | None) -> int | None:
        asked = stopping_of(self).n_folds
        if asked == AUTO:
            is_strong = self.estimator is None or is_ensemble(self.estimator)
            asked = _FOLDS if is_strong and held_out is None else None
        return None if asked is None else min(int(asked), train.codes.size)

    def _mix(self) -> Self:
        self._forget_choice()
        self.estimators_ = list(self._history.models)
        self.weighted_losses_ = np.array(self._history.weighted_losses)
        goals = as_goals(self.goals)
        aim = self._aim_of_fit()._replace(goals=goals)
        self._choose(aim)
        if self.mixture == "optimal" and not self._is_told():
            means = np.average(self._kept.losses, axis=0, weights=self._kept.sample_weight)
            mixed, alone = float(means @ self.mixture_), float(means[0])
            warn_of_the_average(mixed, alone, "its first model", aim)
        return self

    def _is_told(self) -> bool:
        """Tell whether what the mixture costs on average was said already."""
        return False

    def _choose(self, aim: Aim) -> None:
        """Choose the mixture of the rounds."""
        self._settle(self._evidence_of_rounds(), aim)

    def _aim_of_fit(self) -> Aim:
        """Return what the mixture is chosen for, goals left aside."""
        alpha, objective = (None, WORST_GROUP) if self._mixes_groups() else (self.alpha, self.objective)
        return as_aim(alpha, objective, (), **self._limits())

    def _after_round(self, done: Round, history: History, saved: CheckpointFolder | None) -> bool:
        done = done._replace(standing=self._watched(done))
        if self._held_out is not None:
            predicted = predict_codes(done.model, self._held_out.X, self.classes_)
            history.held_out.append((predicted != self._held_out.codes).view(np.uint8))
        is_last = self._has_stalled(done.number) or self._should_stop(history) or self._repeats(history)
        if saved is not None:  # before the callbacks: one that raises or stops has its round on disk
            self._save(done, is_last, saved)
        asked = [bool(callback(done)) for callback in self.callbacks]  # all of them are called
        return any(asked) or is_last

    def _has_stalled(self, number: int) -> bool:
        patience = stopping_of(self).patience
        if patience is None:
            return False
        self._best = self._best.after(self._value_so_far(), number)
        return bool(number - self._best.number >= patience)

    def _value_so_far(self) -> float:
        """Return the least risk of a mixture of the rounds so far, where it will be chosen, as a part of its size."""
        aim = in_own_units(self._aim_of_patience())
        return choose_mixture(self._select(aim), aim).value

    def _aim_of_patience(self) -> Aim:
        """Return what rounds are judged by, goals left aside."""
        aim = self._aim_of_fit()._replace(mixture="optimal", budget=None)  # with which fits may go on from these rounds
        return aim._replace(objective=Mean()) if isinstance(aim.objective, Rate) else aim

    def _select(self, aim: Aim) -> Selection:
        """Return what the mixture would be chosen on now, goals left aside: early rounds rarely meet them."""
        rows, losses = self._chosen_on()
        weights = unequal(rows.weights)
        return select(Evidence(losses, weights, rows.groups, self._asked_table(rows, weights)), aim)

    def _asked_table(self, rows: Rows, weights: AnyArray | None) -> Answers:
        places = np.arange(self._table.n_samples) if rows.places is None else rows.places
        table = self._table.part(places, self.classes_[rows.codes], weights)
        return Answers({TRAIN: table}, {}, find_positive(self.classes_, self.pos_label))

    def _asks_rates(self) -> bool:
        """Tell whether rates are asked for, which need what the models say and not only where they err."""
        return are_asked(self.goals) or isinstance(self._aim_of_fit().objective, Rate)

    def _check_asked(self, rows: Rows) -> None:
        """Refuse goals, objective and datasets that do not fit the rows before any model is trained."""
        answers = self._asked_table(rows, unequal(rows.weights))
        tables = with_train(answers.tables[TRAIN], self._datasets)
        for name, table in self._datasets.items():
            self._checked_features(name, table)
        check_problem(
            self._aim_of_fit()._replace(goals=as_goals(self.goals)), tables, answers.positive, groups=rows.groups
        )

    def _chosen_on(self) -> tuple[Rows, ByteArray]:
        if self._held_out is None:
            return self._train, self._history.losses
        return self._held_out, np.array(self._history.held_out).T

    def _evidence_of_rounds(self) -> Evidence:
        """Return the losses and answers of the models on the rows where the mixture is chosen, and on all datasets."""
        rows, losses = self._chosen_on()
        weights = unequal(rows.weights)
        answers = self._asked_table(rows, weights)
        positive = find_positive(self.classes_, self.pos_label)
        said: Any = None
        if positive.is_binary:  # then losses tell predictions
            said = positive.bits_of_losses(losses, rows.codes)
        elif self._history.said or positive.place is not None or self._asks_rates():
            said = self._said_of(rows)
        answers = answers.with_dataset(TRAIN, answers.tables[TRAIN], said)
        pool = Pool(self._history.models, self.classes_, self.n_jobs)  # and no rules of an earlier choice
        return Evidence(losses, weights, rows.groups, self._with_datasets(answers, self._datasets, pool))

    def _said_of(self, rows: Rows) -> AnyArray:
        """Return the class codes that the models say of the rows where the mixture is chosen."""
        if self._held_out is None and self._history.said:
            return np.column_stack(self._history.said)
        return pool_codes(self._history.models, rows.X, self.classes_, self.n_jobs)

    def _repeats(self, history: History) -> bool:
        """Tell whether the next round would only repeat a model: all samples fared alike, so they weigh as at first."""
        n_plain = 2 if self.estimator is None else 1  # the strong model, and one at the samples' own weights
        is_stuck = history.n_rounds >= n_plain and np.ptp(history.totals) == 0
        return bool(is_stuck and not self._fit_round.is_random)
