"""RLP-Boost and RQP-Boost: AdaBoost's models with votes chosen again by a program over their margins.

Raetsch, Onoda and Mueller, "Soft margins for AdaBoost", Machine Learning 42, 2001. AdaBoost works for the smallest
margins ``y f(x)``, which on noisy data are those of samples with wrong labels. Here its rounds only supply the models.
The votes come from a linear or a quadratic program in which samples may fall short of the margin at a cost C
(``solvers.soft_margin`` states both): the smaller C, the more of them are given up.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from counterpoise._base.checks import check_choice, check_positive
from counterpoise._base.types import AnyArray, ByteArray, FloatArray
from counterpoise.boosting.adaboost import AdaBoostStep
from counterpoise.boosting.additive import AdditiveBooster, Ensemble, HeldOut, Votes
from counterpoise.boosting.inputs import Rows
from counterpoise.boosting.rounds import Callback, Fit
from counterpoise.mixtures.pool import predict_codes
from counterpoise.solvers.soft_margin import (
    HingeSolution,
    SoftMarginSolution,
    check_edge_cost,
    hinge_path,
    soft_margin_path,
)

# What "auto" tries. The smallest 1/C of the margins count: noisy data want most of them, trees that fit all but a few
# samples want those few.
LINEAR_COSTS = (1.7, 2.5, 3.3, 5.0, 10.0, 20.0, 50.0, 100.0)
QUADRATIC_COSTS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_TOL = 1e-3  # gap of the programs: far below what a sample more or less changes

Solution = SoftMarginSolution | HingeSolution


class MarginBooster(AdditiveBooster):
    """AdaBoost, then a program for the votes; a subclass names the program and the costs that "auto" tries."""

    def _costs(self) -> tuple[float, ...]:
        raise NotImplementedError

    def _solve(self, margins: AnyArray, costs: Sequence[float], weights: FloatArray) -> Sequence[Solution]:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.C, str):
            check_choice(self.C, "C, where it is a word,", ("auto",))
        else:
            check_positive(self.C, "C")

    def _fit_ensembles(self, train: Rows, held_out: Rows | None) -> list[Ensemble]:
        if self.C == "auto" and held_out is None:
            raise ValueError("C='auto' needs samples to choose on: pass X_val and y_val, or set validation_fraction.")
        self.solutions_: list[Solution] = []
        self._chosen: list[float] = []
        ensembles = super()._fit_ensembles(train, held_out)
        self.C_: Any = self._chosen[0] if self.C != "auto" or len(self._chosen) == 1 else self._chosen
        return ensembles

    def _boost(self, fit: Fit, start: FloatArray, held_out: HeldOut | None) -> Votes:
        """Run AdaBoost, choose the votes again, and keep the models that have one."""
        losses: list[ByteArray] = []

        def recording(weights: FloatArray, number: int) -> tuple[Any, ByteArray]:
            model, wrong = fit(weights, number)
            losses.append(wrong)
            return model, wrong

        models, _ = self._run(recording, start, AdaBoostStep(), held_out)
        margins = 1 - 2 * np.column_stack(losses[: len(models)]).astype(np.int8)
        votes = self._choose(models, margins, start, held_out).votes
        kept = np.flatnonzero(votes)
        return [models[place] for place in kept], votes[kept]

    def _choose(self, models: list[Any], margins: AnyArray, start: FloatArray, held_out: HeldOut | None) -> Solution:
        """Return the solution at C, or at the smallest C of the grid with the least held-out error."""
        if self.C != "auto" or held_out is None:
            costs, best = [float(self.C)], 0
            tried = self._solve(margins, costs, start)
        else:
            costs = list(self._costs())
            tried = self._solve(margins, costs, start)
            best = int(np.argmin(_errors(models, tried, held_out)))
        self.solutions_.append(tried[best])
        self._chosen.append(costs[best])
        return tried[best]


def _errors(models: list[Any], tried: Sequence[Solution], held_out: HeldOut) -> FloatArray:
    """Return the held-out error of each solution."""
    codes = [predict_codes(model, held_out.X, held_out.classes) for model in models]
    sums = (2.0 * np.column_stack(codes) - 1.0) @ np.column_stack([found.votes for found in tried])
    return held_out.error_of(sums)


class RLPBoostClassifier(MarginBooster):
    """AdaBoost's models with the votes of the largest soft margin.

    The votes are non-negative, sum to 1, and make the mean of the smallest 1/C of the margins as large as possible.
    Many may be zero: those models are dropped. The votes are chosen together and have no order of rounds, so stage k
    of the ``staged_*`` methods is the first k models that are left, with their final votes.

    Parameters
    ----------
    estimator : classifier, optional
        Base learner: any scikit-learn classifier or pipeline. Default: ``HistogramTree(max_depth=6)``.
    C : float, at least 1, or "auto", default=10.0
        Cost of the mean shortfall from the margin. At 1 the one best model is left; from the number of samples on only
        the smallest margin counts. ``"auto"`` takes the one of a grid with the least error on held-out samples (the
        smallest on ties), and needs some. The paper's C, on the sum of the shortfalls, is this over the number of
        samples.
    n_estimators : int, default=500
        Largest number of rounds of AdaBoost.
    patience : int, optional, default=100
        Stop AdaBoost when its error on held-out samples has not dropped for so many rounds, and use the models up to
        its least. Without held-out samples all rounds are run.
    validation_fraction : float in (0, 1), optional
        Part of the samples that is held out, where ``fit`` is not given ``X_val`` and ``y_val``.
    random_state : int or RandomState, optional
        Fixes the models' seeds and the split.
    callbacks : sequence of callables, default=()
        Each is called with a ``Round`` of AdaBoost after it; a true result stops the rounds.

    Attributes
    ----------
    classes_, estimators_, votes_, ensembles_, n_features_in_, feature_names_in_
        As for ``AdaBoostClassifier``.
    C_ : float or list of float
        The C used; with more than two classes and ``"auto"``, that of each class.
    solutions_ : list of SoftMarginSolution
        For each ensemble what the solver returned: votes of all AdaBoost's models, sample weights, and the bounds.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from counterpoise import RLPBoostClassifier
    >>> from counterpoise.learners import Stump
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RLPBoostClassifier(Stump(), n_estimators=50).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.93), len(model.estimators_) < 50
    (True, True)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        C: float | str = 10.0,
        n_estimators: int = 500,
        patience: int | None = 100,
        validation_fraction: float | None = None,
        random_state: Any = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.estimator = estimator
        self.C = C
        self.n_estimators = n_estimators
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.callbacks = callbacks

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.C != "auto":
            check_edge_cost(float(self.C))

    def _costs(self) -> tuple[float, ...]:
        return LINEAR_COSTS

    def _solve(self, margins: AnyArray, costs: Sequence[float], weights: FloatArray) -> list[SoftMarginSolution]:
        return soft_margin_path(margins, costs, sample_weight=weights, tol=_TOL)


class RQPBoostClassifier(MarginBooster):
    """AdaBoost's models with the votes of a support vector machine.

    The votes are non-negative and minimize half their squared norm plus C times the mean hinge loss. Models without a
    vote are dropped; stage k of the ``staged_*`` methods is the first k that are left, with their final votes.

    Parameters
    ----------
    estimator, n_estimators, patience, validation_fraction, random_state, callbacks
        As for ``RLPBoostClassifier``.
    C : float > 0 or "auto", default=30.0
        Weight of the mean hinge loss. ``"auto"`` takes the one of a grid with the least error on held-out samples (the
        smallest on ties), and needs some. The paper's C, on the sum of the losses, is this over the number of samples.

    Attributes
    ----------
    classes_, estimators_, votes_, ensembles_, n_features_in_, feature_names_in_
        As for ``AdaBoostClassifier``.
    C_ : float or list of float
        The C used; with more than two classes and ``"auto"``, that of each class.
    solutions_ : list of HingeSolution
        For each ensemble what the solver returned: votes of all AdaBoost's models, multipliers of the samples, and the
        bounds.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from counterpoise import RQPBoostClassifier
    >>> from counterpoise.learners import Stump
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RQPBoostClassifier(Stump(), n_estimators=50).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.93)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        C: float | str = 30.0,
        n_estimators: int = 500,
        patience: int | None = 100,
        validation_fraction: float | None = None,
        random_state: Any = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.estimator = estimator
        self.C = C
        self.n_estimators = n_estimators
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.callbacks = callbacks

    def _costs(self) -> tuple[float, ...]:
        return QUADRATIC_COSTS

    def _solve(self, margins: AnyArray, costs: Sequence[float], weights: FloatArray) -> list[HingeSolution]:
        return hinge_path(margins, costs, sample_weight=weights, tol=_TOL)
