"""The randomized classifier that a pool of models and a mixture make: draws, probabilities, another mixture."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from counterpoise._base.checks import check_mixture, check_sample_weight
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.goals import GoalCheck, Table
from counterpoise.goals.tables import with_train
from counterpoise.mixtures.answers import TRAIN, Answers, find_positive
from counterpoise.mixtures.cautions import warn_of_the_positive_class
from counterpoise.mixtures.choosing import (
    CVAR,
    WORST_GROUP,
    Aim,
    Evidence,
    as_aim,
    choose_mixture,
    choose_or_nearest,
    select,
)
from counterpoise.mixtures.draws import known_draws
from counterpoise.mixtures.explaining import HOW_DRAWN, Compared, Contribute, Explanation, explanations
from counterpoise.mixtures.game import Choice, Selection
from counterpoise.mixtures.labelled import Given, Labelled, with_columns
from counterpoise.mixtures.members import Mixture, Pool, shared
from counterpoise.mixtures.options import STICKY, kind_of_decision
from counterpoise.mixtures.pool import PooledClassifier, checked_features, failures, groups_of, n_rows, predict_codes
from counterpoise.mixtures.prechecks import check_problem
from counterpoise.theory.risks import Risk

DECISIONS = ("sticky", "sample", "vote")
DRAWN = (STICKY, "sample")
_CHOSEN = ("mixture_", "rules_", "groups_", "calibrations_", "certificate_", "fixed_cost_", "_scored", "_members")


class RandomizedClassifier(PooledClassifier):
    """What every classifier that mixes models shares: drawing, probabilities and the choice of another mixture.

    A subclass has parameters ``decision``, ``n_jobs`` and those that an ``Aim`` names; its ``fit`` sets
    ``classes_``, ``estimators_`` (``_members`` too, where others answer for them), ``_draws``, ``_generator`` and calls
    ``_settle`` with an aim.
    """

    deferral: Any = None  # where a subclass has no such parameter

    def predict(self, X: Any, ids: Any = None) -> AnyArray:
        """Decide about every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to decide about.
        ids : array-like of shape (n_samples,), optional
            One for each person, for ``decision="sticky"``: rows of the same id are decided by the same model,
            whatever else changed. Default: the row itself is its id.

        Returns
        -------
        array of shape (n_samples,)
            Class labels.
        """
        mixture, rows = self._asked(X)
        self._check_ids(ids)
        return mixture.decide(rows, X, ids)

    def _check_ids(self, ids: Any) -> None:
        if ids is not None and kind_of_decision(self.decision) != STICKY:
            raise ValueError(f"ids are for decision='sticky'; this classifier has decision={self.decision!r}.")

    def decision_proba(self, X: Any) -> FloatArray:
        """Return the probability of each decision, over the draws.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        mixture, rows = self._asked(X)
        return mixture.probabilities(rows)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class: where answers of models are mixed, that of the decision.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self.decision_proba(X)

    def explain(
        self, X: Any, ids: Any = None, *, contributions: Contribute | None = None, **looked_at: Any
    ) -> list[Explanation]:
        """Say why each row is decided as it is, one record for each.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        ids : array-like of shape (n_samples,), optional
            As for ``predict``.
        contributions : callable, optional
            Given a model and rows, it returns what each feature adds to the score: an array of shape (n_samples,
            n_features), or a dict for each row. Default: what models of LightGBM, XGBoost and CatBoost and linear
            models tell; of other models contributions are None.
        **looked_at
            ``sensitive_features`` and ``baseline``, where rules look at them, as for ``predict``.

        Returns
        -------
        list of Explanation
            With ``decision``, ``score``, ``threshold``, ``distance``, ``change``, ``group``, ``rule``, ``goals``,
            ``share``, ``draw`` and ``contributions``; ``print`` shows one in words.
        """
        decisions = self.predict(X, ids=ids, **looked_at)
        mixture, rows = self._asked(X, **looked_at)
        answers = mixture.pool.answers.tolist()
        places = np.array([answers.index(decision) for decision in decisions.tolist()], dtype=np.int64)
        kind = kind_of_decision(self.decision)
        priced = zip(self.goals_, np.abs(self.multipliers_), strict=False)
        return explanations(
            decisions,
            mixture.probabilities(rows)[np.arange(len(places)), places],
            self._compared(rows, places),
            goals={str(goal): float(price) for goal, price in priced if price > 0},
            draw=HOW_DRAWN.get(kind, "") if np.count_nonzero(self.mixture_) > 1 else "",
            contributions=self._contributed(X, places, contributions),
        )

    def _compared(self, rows: Any, places: IntArray) -> Compared:  # noqa: ARG002 - of rules
        """Return what the scores of rows are compared with: nothing where models are mixed."""
        return Compared.nothing(len(places), f"one of {np.count_nonzero(self.mixture_)}")

    def _contributed(self, X: Any, places: IntArray, given: Contribute | None) -> list[Any]:  # noqa: ARG002 - as above
        """Return what features add to the score of each row; None where no single score decides."""
        return [None] * len(places)

    def staged_decision_proba(self, X: Any) -> Iterator[FloatArray]:
        """Yield ``decision_proba`` of the first model, the first two and so on, each with its own mixture.

        Goals hold at every stage at which the models so far can meet them; before they are missed as little as can be.
        """
        mixture, rows = self._asked(X)
        votes, aim = [predict_codes(member, rows, self.classes_) for member in mixture.pool.members], self._aim()
        for n_models in range(1, len(votes) + 1):
            choice = choose_or_nearest(self.selection_.first(n_models), aim)
            yield shared(votes[:n_models], choice.mixture, len(self.classes_))

    def staged_predict(self, X: Any) -> Iterator[AnyArray]:
        """Yield the weighted vote of the first model, the first two and so on, each with its own mixture.

        Votes, not draws, so that the stages can be compared.
        """
        for shares in self.staged_decision_proba(X):
            yield self.classes_[shares.argmax(axis=1)]

    def rebalance(
        self,
        X: Any = None,
        y: Any = None,
        *,
        alpha: float | None = None,
        goals: Any = None,
        objective: Any = None,
        budget: float | None = None,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        datasets: Mapping[str, Table] | None = None,
        largest_weight: float | None = None,
        tables: Mapping[str, Table] | None = None,
    ) -> Self:
        """Return a classifier with the same models and another mixture; nothing is trained.

        Parameters
        ----------
        X, y : labelled rows to choose the mixture on, optional
            Default: those of ``fit``, whose predictions were kept, so that no model is even evaluated. They are the
            dataset ``train`` of goals.
        alpha : float in (0, 1], optional
            Short for ``objective=CVaR(alpha)``. Default: the present objective.
        goals : goals or their texts, optional
            Other goals; ``()`` for none. Default: the present ones.
        objective : risk or rate, or the text of one, optional
            What is minimized, in place of ``alpha``: pass one of them. Default: ``CVaR(alpha)`` where alpha is given,
            else as before.
        budget : float in [0, 1], optional
            The most that the mean loss may be above the least that is possible under the goals; 1 for no limit.
            Default: the present one.
        sample_weight : array of shape (n_samples,), optional
            Weights of the given rows.
        sensitive_features : array, dict or data frame with a row for each sample, optional
            Columns that goals speak of. Without goals, alpha and objective: choose the mixture with the least loss on
            the worst of these groups; a small labelled set is enough.
        baseline : array of shape (n_samples,), optional
            What the deployed model says about the rows, for churn, wins and losses.
        datasets : dict from names to Table, optional
            Other datasets that goals or objective speak of; those given before are known.
        largest_weight : float, optional
            The most that a row of the population can weigh, for goals that carry a confidence: as for ``Table``.
        tables : dict from names to Table, optional
            What goals and objective may ask about the rows of datasets, ``train`` among them, in the place of what is
            known: all columns of a data frame of which the models take a part, or the deployed model's answers.

        Returns
        -------
        fitted classifier
            Of the same kind, sharing ``estimators_``.

        Raises
        ------
        InfeasibleGoals
            Where no mixture meets the goals.
        """
        check_is_fitted(self, "goals_")  # goals that cannot hold leave what others are chosen on
        has_goals = bool(self.goals_ if goals is None else goals)
        if objective is None and alpha is None and sensitive_features is not None and not has_goals:
            objective = WORST_GROUP
        aim = self._aim(alpha, objective, goals, budget)._replace(mixture="optimal")
        rows = Given(X, y, sensitive_features, baseline, sample_weight, largest_weight, datasets)
        evidence = self._evidence(rows).with_tables(tables or {})
        given = {"alpha": alpha, "goals": goals, "objective": objective, "budget": budget, "mixture": "optimal"}
        params = self.get_params(deep=False)
        other = copy.copy(self)
        changed = {name: value for name, value in given.items() if value is not None}
        if alpha is not None and objective is None:
            changed["objective"] = None  # for which alpha is short
        if alpha is None and objective is not None and not (isinstance(objective, str) and objective == CVAR):
            changed["alpha"] = None  # which the objective replaces
        other.set_params(**{name: value for name, value in changed.items() if name in params})
        other._settle(evidence, aim)  # noqa: SLF001 - of our own kind
        return other

    def check_goals(
        self,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        datasets: Mapping[str, Table] | None = None,
    ) -> list[GoalCheck]:
        """Return how the goals stand in expectation over the draws, on the rows of ``fit`` or on others.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, baseline, datasets
            As for ``rebalance``: the data in place of ``train``, and other datasets by name.

        Returns
        -------
        list of GoalCheck
            One for each goal: its value, bound, violation and whether it holds.
        """
        check_is_fitted(self)
        given = Given(X, y, sensitive_features, baseline, sample_weight, None, datasets)
        return self._told(self._evidence(given)).answers.checks(self.goals_, self.mixture_)

    @property
    def risk_(self) -> Risk | None:
        """Return the risk that was minimized, with its groups and a calibrated radius filled in; None for a rate."""
        asked = self.selection_.risk or self.objective_
        return asked if isinstance(asked, Risk) else None

    def _told(self, evidence: Any) -> Evidence:
        """Return what each member of the mixture says, given what a mixture can be chosen on."""
        return evidence  # type: ignore[no-any-return]

    def _pool(self) -> Pool:
        return Pool(vars(self).get("_members", self.estimators_), self.classes_, self.n_jobs)

    def _asked(self, X: Any) -> tuple[Mixture, Any]:
        """Return who decides, and the rows checked."""
        check_is_fitted(self)
        rows = self._check_predict_input(X)
        return Mixture(self._pool(), self.mixture_, self._drawing()), rows

    def _drawing(self) -> Any:
        """Return what members are drawn with; None where they are not drawn."""
        if kind_of_decision(self.decision) == STICKY:
            return known_draws(self)
        return self._generator if self.decision == "sample" else None

    def _aim(
        self, alpha: float | None = None, objective: Any = None, goals: Any = None, budget: float | None = None
    ) -> Aim:
        """Return what is asked of the mixture; what is None is as at present."""
        return as_aim(
            alpha,
            self.objective_ if objective is None and alpha is None else objective,
            self.goals_ if goals is None else goals,
            default_alpha=self.alpha_,
            **self._limits() | ({} if budget is None else {"budget": budget}),
        )

    def _limits(self) -> dict[str, Any]:
        """Return what the parameters say about the mixtures to choose among."""
        return {name: value for name, value in vars(self).items() if name in Aim._field_defaults}

    def _settle(self, evidence: Evidence, aim: Aim, chosen: Any = None) -> None:
        """Choose the mixture, unless it is chosen already, and keep what it was chosen on."""
        selection = select(evidence, aim)
        self._keep_evidence(evidence, aim)
        self._settle_on(evidence, aim, selection, chosen or choose_mixture(selection, aim))

    def _forget_choice(self) -> None:
        """Forget what was chosen before: it is not of the models that come, nor met by them."""
        for name in _CHOSEN:
            self.__dict__.pop(name, None)

    def _keep_evidence(self, evidence: Any, aim: Aim) -> None:
        """Keep what a mixture will be chosen on: after goals that cannot hold ``rebalance`` needs no training."""
        self._keep_aim(aim)
        self._kept = evidence

    def _keep_aim(self, aim: Aim) -> None:
        warn_of_the_positive_class(aim.goals, self.classes_, self.pos_label)
        self.alpha_, self.goals_, self.objective_ = aim.alpha, aim.goals, aim.objective

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether there is a mixture to decide by."""
        return "mixture_" in vars(self)

    def _settle_on(self, evidence: Evidence, aim: Aim, selection: Selection, choice: Choice) -> None:
        self._keep_evidence(evidence, aim)
        self.selection_ = selection
        self.mixture_, self.value_, self.gap_, self.multipliers_, cost = choice
        self.n_models_ = int(np.count_nonzero(self.mixture_))
        if hasattr(self, "max_models"):
            self.max_models_cost_ = cost

    def _evidence(self, given: Given) -> Any:
        """Return what was kept from fit, with what is given in its place."""
        given.check()
        kept = self._evidence_of_fit()
        if given.X is not None:
            kept = self._asked_about(self._labelled(given), kept.answers)
        elif given.sensitive_features is not None or given.baseline is not None:
            kept = with_columns(kept, given)
        return self._joined(kept, given.datasets)

    def _evidence_of_fit(self) -> Any:
        """Return what was kept from fit."""
        return self._kept

    def _joined(self, kept: Any, datasets: Mapping[str, Table] | None) -> Any:
        """Return evidence with other datasets beside it."""
        return kept._replace(answers=self._with_datasets(kept.answers, datasets))

    def _asked_about(self, rows: Labelled, answers: Answers, name: str | None = None) -> Any:
        """Ask all models about labelled rows, which become the dataset ``train``; ``name`` is as for ``Pool.codes``."""
        predicted = self._pool().codes(rows.X, rows.codes.size, name)
        answers = answers.with_dataset(TRAIN, rows.table, answers.positive.said(predicted))
        return Evidence(failures(predicted, rows.codes), rows.sample_weight, rows.groups, answers)

    def _labelled(self, given: Given) -> Labelled:
        """Return labelled rows, checked."""
        checked = self._check_predict_input(given.X)
        n_samples = n_rows(checked)
        codes = self._codes_of(given.y, n_samples)
        weight = check_sample_weight(given.sample_weight, n_samples)
        groups = None if given.sensitive_features is None else groups_of(given.sensitive_features, n_samples)[0]
        return Labelled(checked, codes, weight, groups, given.table(self.classes_[codes]))

    def _check_problem(self, aim: Aim, rows: Labelled, datasets: Mapping[str, Table] | None, **told: Any) -> None:
        """Refuse what can be refused without a model: see ``check_problem``, to which ``told`` goes."""
        tables = with_train(rows.table, datasets)
        for name, table in tables.items():
            if name != TRAIN:
                self._checked_features(name, table)
        check_problem(aim, tables, find_positive(self.classes_, self.pos_label), groups=rows.groups, **told)

    def _with_datasets(
        self, answers: Answers, datasets: Mapping[str, Table] | None, pool: Pool | None = None
    ) -> Answers:
        """Ask all models, or those of a pool, about the rows of other datasets."""
        pool = self._pool() if pool is None else pool
        for name, table, X in self._other_rows(pool, answers, datasets):
            codes = pool.codes(X, table.n_samples, name)
            answers = answers.with_dataset(name, table, answers.positive.said(codes))
        return answers

    def _other_rows(
        self, pool: Any, answers: Answers, datasets: Mapping[str, Table] | None
    ) -> Iterator[tuple[str, Table, Any]]:
        """Yield datasets beside ``train`` with their rows, checked; None where none of a pool must be asked."""
        for name, table in with_train(answers.tables[TRAIN], datasets).items():
            if name != TRAIN:
                yield name, table, self._checked_features(name, table) if pool.needs_rows() else None

    def _checked_features(self, name: str, table: Table) -> Any:
        """Return the features of a dataset, checked."""
        return checked_features(table.X, name, self._use_of_features(), self._check_predict_input)

    def _use_of_features(self) -> str:
        """Return what the features of datasets are for, as messages say it."""
        return "that the models can be asked about"

    def check_loaded(self) -> None:
        """Check what came from a file."""
        if hasattr(self, "classes_"):  # it is fitted
            known_draws(self)
            self._check_loaded_members()

    def _check_loaded_members(self) -> None:
        n_models = len(self.estimators_)
        check_mixture(self.mixture_, n_models)
        pools = {part.losses.shape[1] for part in (self._kept, self.selection_)}
        if self.classes_.ndim != 1 or pools != {n_models}:
            raise ValueError(f"the losses are not those of {n_models} models")
        n_members = len(self._pool().members)
        if n_members != n_models:
            raise ValueError(f"it has {n_members} members for {n_models} models")
