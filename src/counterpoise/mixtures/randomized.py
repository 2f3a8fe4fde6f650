"""The randomized classifier that a pool of models and a mixture make: draws, probabilities, another mixture."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from counterpoise._base.checks import check_alpha, check_mixture, check_sample_weight, is_frame
from counterpoise._base.secret import SecretParameter
from counterpoise._base.types import AnyArray, ArrayLike, ByteArray, FloatArray, IntArray
from counterpoise.goals import Goal, GoalCheck, Rate, Table, as_goals, as_objective
from counterpoise.goals.tables import with_train
from counterpoise.mixtures.answers import TRAIN, Answers
from counterpoise.mixtures.draws import draws_of, pick
from counterpoise.mixtures.game import Choice, Game, Selection, as_game
from counterpoise.mixtures.one_rule import DeterministicRule, best_rule
from counterpoise.mixtures.pool import (
    PooledClassifier,
    failures,
    group_codes,
    n_rows,
    pool_codes,
    predict_codes,
    take_rows,
)

DECISIONS = ("sticky", "sample", "vote")
CVAR, WORST_GROUP = "cvar", "worst-group"


class Weighed(NamedTuple):
    """Weights as given, and the most that a row of the population can weigh."""

    sample_weight: ArrayLike | None
    largest_weight: float | None = None


class Evidence(NamedTuple):
    """What a mixture is chosen on: losses of the models on labelled rows, and their answers on all datasets."""

    losses: ByteArray
    sample_weight: FloatArray | None
    groups: IntArray | None
    answers: Answers

    def _check_loaded(self) -> None:
        """Check what came from a file."""
        n_samples, n_models = self.losses.shape
        rows = [part for part in (self.sample_weight, self.groups) if part is not None]
        pools = [bits.n_models for bits in self.answers.positives.values()]
        if any(part.shape != (n_samples,) for part in rows) or any(pool != n_models for pool in pools):
            raise ValueError("the losses, weights, groups and answers are of different sizes")


class RandomizedClassifier(PooledClassifier):
    """What every classifier that mixes models shares: drawing, probabilities and the choice of another mixture.

    A subclass has parameters ``alpha``, ``decision``, ``goals``, ``key``, ``random_state``, ``n_jobs``; its ``fit``
    sets ``classes_``, ``estimators_``, ``_draws``, ``_generator`` and calls ``_settle``.
    """

    key = SecretParameter()
    _added_later: ClassVar = {"key": None}  # than some files of saved models

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
        checked = self._check_predict_input(X)
        if ids is not None and self.decision != "sticky":
            raise ValueError(f"ids are for decision='sticky'; this classifier has decision={self.decision!r}.")
        if self.decision == "vote":
            return np.asarray(self.classes_[self._shares(checked).argmax(axis=1)])
        return np.asarray(self.classes_[self._drawn_codes(checked, self._uniforms(X, checked, ids))])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability that a draw from the mixture says each class: the mixture itself.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._shares(self._check_predict_input(X))

    def staged_predict_proba(self, X: Any) -> Iterator[FloatArray]:
        """Yield ``predict_proba`` of the first model, the first two and so on, each with its own mixture.

        Goals hold at every stage; where the models so far cannot meet them, ``InfeasibleGoals`` is raised.
        """
        X = self._check_predict_input(X)
        votes = [predict_codes(model, X, self.classes_) for model in self._pool()]
        for n_models in range(1, len(votes) + 1):
            choice = self._choose(self.selection_.first(n_models), self.alpha_)
            yield _mixed(votes[:n_models], choice.mixture, len(self.classes_))

    def staged_predict(self, X: Any) -> Iterator[AnyArray]:
        """Yield the weighted vote of the first model, the first two and so on, each with its own mixture.

        Votes, not draws, so that the stages can be compared.
        """
        for shares in self.staged_predict_proba(X):
            yield self.classes_[shares.argmax(axis=1)]

    def rebalance(
        self,
        X: Any = None,
        y: Any = None,
        *,
        alpha: float | None = None,
        goals: Any = None,
        objective: Any = None,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
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
            Another tail fraction. Default: the present one.
        goals : goals or their texts, optional
            Other goals; ``()`` for none. Default: the present ones.
        objective : {"cvar", "worst-group"}, or a rate or its text, optional
            What is minimized. Default: as at present.
        sample_weight : array of shape (n_samples,), optional
            Weights of the given rows.
        sensitive_features : array, dict or data frame with a row for each sample, optional
            Columns that goals speak of. Without goals and objective: choose the mixture with the least loss on the
            worst of these groups; a small labelled set is enough.
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
        check_is_fitted(self)
        level = self.alpha_ if alpha is None else check_alpha(alpha)
        asked = self.goals_ if goals is None else as_goals(goals)
        aim = self._aim(objective, by_groups=sensitive_features is not None and not asked)
        evidence = self._evidence(X, y, Weighed(sample_weight, largest_weight), sensitive_features, datasets)
        evidence = evidence._replace(answers=evidence.answers.with_tables(tables or {}))
        other = copy.copy(self)
        given = {"alpha": alpha, "goals": goals, "objective": objective}
        params = self.get_params(deep=False)
        other.set_params(**{name: value for name, value in given.items() if value is not None and name in params})
        other._forget_mixture()  # noqa: SLF001 - of our own kind
        other._settle(evidence, level, asked, aim)  # noqa: SLF001 - of our own kind
        return other

    def check_goals(
        self,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
        datasets: Mapping[str, Table] | None = None,
    ) -> list[GoalCheck]:
        """Return how the goals stand in expectation over the draws, on the rows of ``fit`` or on others.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, datasets
            As for ``rebalance``: the data in place of ``train``, and other datasets by name.

        Returns
        -------
        list of GoalCheck
            One for each goal: its value, bound, violation and whether it holds.
        """
        check_is_fitted(self)
        evidence = self._evidence(X, y, Weighed(sample_weight), sensitive_features, datasets)
        return evidence.answers.checks(self.goals_, self.mixture_)

    def to_deterministic(
        self,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
        datasets: Mapping[str, Table] | None = None,
        largest_weight: float | None = None,
    ) -> DeterministicRule:
        """Return the best deterministic rule that the mixture leads to, with what it loses.

        Candidates are the mixture's weighted vote, for two classes at every threshold, and each single model. Best is
        the least risk among those that meet the goals, or, where none does, the least total violation; of rules with
        the same risk the one of least mean error, then a single model before a vote.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, datasets, largest_weight
            As for ``rebalance``: the rows on which the rule is chosen. Default: those of ``fit``.

        Returns
        -------
        DeterministicRule
            With ``predict``, and what it loses in the tail and in the goals.
        """
        check_is_fitted(self)
        evidence = self._evidence(X, y, Weighed(sample_weight, largest_weight), sensitive_features, datasets)
        selection = self._select_on(evidence, self.goals_, self.objective_)
        return best_rule(self, selection, evidence.answers)

    def _aim(self, objective: Any, *, by_groups: bool) -> str | Rate:
        if objective is None:
            return WORST_GROUP if by_groups else self.objective_
        return as_aim(objective)

    def _evidence(
        self, X: Any, y: Any, weighed: Weighed, sensitive_features: Any, datasets: Mapping[str, Table] | None
    ) -> Evidence:
        """Return what was kept from fit, with what is given in its place."""
        kept = self._kept
        if X is None:
            if any(part is not None for part in (y, *weighed)):
                raise ValueError("y or weights came without X; pass X and y together, or neither.")
            if sensitive_features is not None:
                kept = self._regrouped(kept, sensitive_features)
        elif y is None:
            raise ValueError("X came without y; mixtures are chosen and checked on labelled rows.")
        else:
            kept = self._asked_about(X, y, weighed, sensitive_features, kept.answers)
        return kept._replace(answers=self._with_datasets(kept.answers, datasets))

    def _regrouped(self, kept: Evidence, sensitive_features: Any) -> Evidence:
        groups, _ = group_codes(sensitive_features, len(kept.losses))
        return kept._replace(groups=groups, answers=kept.answers.with_columns(TRAIN, sensitive_features))

    def _asked_about(
        self, X: Any, y: Any, weighed: Weighed, sensitive_features: Any, answers: Answers, name: str | None = None
    ) -> Evidence:
        """Ask all models about labelled rows, which become the dataset ``train``; ``name`` is as for ``_ask``."""
        checked = self._check_predict_input(X)
        n_samples = n_rows(checked)
        codes = self._codes_of(y, n_samples)
        weight = check_sample_weight(weighed.sample_weight, n_samples)
        groups = None if sensitive_features is None else group_codes(sensitive_features, n_samples)[0]
        predicted = self._ask(checked, name)
        features = X if is_frame(X) else np.empty((n_samples, 0))
        table = Table(features, self.classes_[codes], sensitive_features, **weighed._asdict())
        bits = None if answers.positive is None else answers.positive.bits(predicted)
        return Evidence(failures(predicted, codes), weight, groups, answers.with_dataset(TRAIN, table, bits))

    def _with_datasets(self, answers: Answers, datasets: Mapping[str, Table] | None) -> Answers:
        """Ask all models about the rows of other datasets."""
        for name, table in with_train(None, datasets).items():
            answers = answers.with_dataset(name, *self._dataset_bits(name, table, answers))
        return answers

    def _dataset_bits(self, name: str, table: Table, answers: Answers) -> tuple[Table, Any]:
        if name == TRAIN:
            raise ValueError("The dataset 'train' is X and y themselves: give the others in datasets another name.")
        if answers.positive is None:
            raise ValueError(
                f"Goals on dataset {name!r} speak of a positive class, but there are {len(self.classes_)} classes: "
                "name it with pos_label."
            )
        return table, answers.positive.bits(self._dataset_codes(name, table))

    def _dataset_codes(self, name: str, table: Table) -> AnyArray:
        if table.X is None:
            raise ValueError(
                f"Dataset {name!r} needs features that the models can be asked about: pass X in its Table."
            )
        try:
            checked = self._check_predict_input(table.X)
        except ValueError as error:
            raise ValueError(f"Dataset {name!r}: {error}") from error
        return self._ask(checked, name)

    def _ask(self, X: Any, name: str | None) -> AnyArray:  # noqa: ARG002 - for subclasses
        """Return the class codes of all models on checked rows: those of a named dataset of ``fit``, or others."""
        return pool_codes(self._pool(), X, self.classes_, self.n_jobs)

    def _settle(self, evidence: Evidence, alpha: float, goals: tuple[Goal, ...], aim: "str | Rate") -> Choice:
        """Choose the mixture and keep what it was chosen on."""
        selection = self._select_on(evidence, goals, aim)
        choice = self._choose(selection, alpha)
        self.alpha_, self.goals_, self.objective_ = alpha, goals, aim
        self.selection_, self._kept = selection, evidence
        self.mixture_, self.value_, self.gap_, self.multipliers_, _ = choice
        self.n_models_ = int(np.count_nonzero(self.mixture_))
        return choice

    def _select_on(self, evidence: Evidence, goals: tuple[Goal, ...], aim: "str | Rate") -> Selection:
        answers = evidence.answers
        groups, rate = None, None
        if aim == WORST_GROUP:
            groups = evidence.groups
            if groups is None:
                raise ValueError("objective='worst-group' needs sensitive_features: the groups of the rows.")
        elif aim != CVAR:
            rate = answers.rate_row(aim)
        return Selection(evidence.losses, evidence.sample_weight, groups, answers.goal_rows(goals), rate)

    def _choose(self, selection: Selection, alpha: float) -> Choice:
        return self._game(selection, alpha).solve()

    def _game(self, selection: Selection, alpha: float) -> Game:
        """Return the problem whose solution is the best mixture."""
        return as_game(selection, alpha)

    def _check_loaded(self) -> None:
        """Check what came from a file."""
        if not hasattr(self, "classes_"):
            return  # not fitted
        if draws_of(self) is None:
            raise ValueError("it has no key to draw with")
        n_models = len(self.estimators_)
        check_mixture(self.mixture_, n_models)
        pools = {part.losses.shape[1] for part in (self._kept, self.selection_)}
        if self.classes_.ndim != 1 or pools != {n_models}:
            raise ValueError(f"the losses are not those of {n_models} models")

    def _forget_mixture(self) -> None:
        """Change the parameters that would keep another mixture from being the optimal one."""

    def _pool(self) -> Sequence[Any]:
        """Return what is asked for predictions: the models, or what stands for them."""
        return list(self.estimators_)

    def _uniforms(self, X: Any, checked: Any, ids: Any) -> FloatArray:
        if self.decision == "sample":
            return np.asarray(self._generator.random(n_rows(checked)))
        draws = draws_of(self)
        assert draws is not None  # noqa: S101 - it is fitted
        return draws.uniforms(X, checked, ids)

    def _drawn_codes(self, X: Any, uniforms: FloatArray) -> IntArray:
        """Ask of each model only the rows that drew it."""
        drawn, pool = pick(uniforms, self.mixture_), self._pool()
        codes = np.empty(drawn.size, dtype=np.int64)
        for place in np.unique(drawn).tolist():
            rows = np.flatnonzero(drawn == place)
            codes[rows] = predict_codes(pool[place], take_rows(X, rows), self.classes_)
        return codes

    def _shares(self, X: Any) -> FloatArray:
        active, pool = np.flatnonzero(self.mixture_).tolist(), self._pool()
        ask: Callable[..., Any] = delayed(predict_codes)
        votes = Parallel(n_jobs=self.n_jobs, prefer="threads")(ask(pool[place], X, self.classes_) for place in active)
        return _mixed(votes, self.mixture_[active], len(self.classes_))


def as_aim(objective: Any) -> "str | Rate":
    """Return what a mixture shall minimize: the CVaR, the worst group's loss, or a rate."""
    if objective is None:
        return CVAR
    if isinstance(objective, str) and objective in (CVAR, WORST_GROUP):
        return objective
    return as_objective(objective)


def _mixed(votes: Sequence[AnyArray], mixture: FloatArray, n_classes: int) -> FloatArray:
    shares = np.zeros((len(votes[0]), n_classes))
    rows = np.arange(len(shares))
    for codes, share in zip(votes, mixture.tolist(), strict=True):
        shares[rows, codes] += share
    return np.minimum(shares, 1.0, out=shares)  # sums of shares may end at 1 + 1e-16
