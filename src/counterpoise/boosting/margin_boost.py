"""RLP-Boost and RQP-Boost: AdaBoost's models with votes chosen again by a program over their margins.

Raetsch, Onoda and Mueller, "Soft margins for AdaBoost", Machine Learning 42, 2001. AdaBoost works for the smallest
margins ``y f(x)``, which on noisy data are those of samples with wrong labels. Here its rounds only supply the models.
The votes come from a linear or a quadratic program in which samples may fall short of the margin at a cost C
(``solvers.soft_margin`` states both): the smaller C, the more of them are given up.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from counterpoise._base.checks import check_positive
from counterpoise._base.types import AnyArray
from counterpoise.boosting.adaboost import AdaBoostStep, prepare
from counterpoise.boosting.additive import AdditiveClassifier, BoostResult, model_values, one_or_all
from counterpoise.boosting.inputs import CheckedRows, is_word
from counterpoise.boosting.rounds import Callback
from counterpoise.boosting.stopping import Stopping
from counterpoise.solvers.soft_margin import (
    HingeSolution,
    SoftMarginSolution,
    check_edge_cost,
    hinge_path,
    soft_margin_path,
)

# What "auto" tries. The smallest 1/C of the margins count: noisy data want most of them, trees that fit all but a few
# samples want those few.
LINEAR_COSTS = (1.7, 2.062, 2.5, 2.872, 3.3, 4.062, 5.0, 7.071, 10.0, 14.142, 20.0, 31.623, 50.0, 70.711, 100.0)
QUADRATIC_COSTS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_MARGINS_PER_ERROR = 1.5  # that count by default: those of noise, about as many as one model errs on, and some
_ENOUGH = 20  # models beside which one without error is luck; where it comes early, it is the answer
_LARGEST = 1e12  # cost of a margin: beyond it the rest of the program is lost to rounding
_TOL = 1e-7  # gap of the programs, for margins between -1 and 1: votes that others can compute again, at a third more

Solution = SoftMarginSolution | HingeSolution


def check_cost(C: Any) -> None:
    """Check a cost that may be ``"auto"``."""
    if not is_word(C, "C", ("auto",)) and check_positive(C, "C") > _LARGEST:
        raise ValueError(f"C must be at most {_LARGEST:g}: no solver can distinguish larger ones; got {C!r}.")


def boost_and_vote_again(
    booster: Any,
    rows: tuple[CheckedRows, CheckedRows | None, AnyArray, int],
    solve: Callable[..., Sequence[Solution]],
    grid: Sequence[float],
) -> BoostResult:
    """Choose the votes of AdaBoost's models again, and keep the models that have one; ``rows`` are as for ``_boost``.

    Of several costs it takes the first with the least held-out error.
    """
    fit, held_out, rate = prepare(booster, *rows, "C")
    start = rows[0].weights
    run: BoostResult = booster.run_rounds(fit, AdaBoostStep(learning_rate=rate), start, held_out)
    if booster.C is None:
        wrong = max(float(start @ run.losses[:, 0]), float(start.min()))
        costs: Sequence[float] = (max(1.0, 1.0 / (_MARGINS_PER_ERROR * wrong)),)
    else:
        costs = grid if booster.C == "auto" else (float(booster.C),)
    if run.losses.shape[1] > _ENOUGH and not run.losses[:, -1].any():
        # A model without error ended the rounds. Its margins are the largest there can be: it would be left alone.
        run = run._replace(models=run.models[:-1], votes=run.votes[:-1], losses=run.losses[:, :-1])
    margins = np.ascontiguousarray(1 - 2 * run.losses.view(np.int8))
    solutions = solve(margins, costs, sample_weight=start, tol=_TOL)
    best = 0
    if held_out is not None and len(solutions) > 1:
        values = np.column_stack([model_values(model, held_out.X, held_out.classes) for model in run.models])
        best = int(np.argmin(held_out.loss(values @ np.column_stack([one.votes for one in solutions]))))
    votes = solutions[best].votes
    places = np.flatnonzero(votes)
    models = [run.models[place] for place in places]
    return run._replace(models=models, votes=votes[places], details=(costs[best], solutions[best]))


class RLPBoostClassifier(AdditiveClassifier):
    """AdaBoost's models with the votes of the largest soft margin.

    RLP-Boost of Tables 1 and 2 of Shivaswamy and Jebara 2011, after Raetsch, Onoda and Mueller 2001;
    ``**RLPBoostClassifier.as_printed`` are the settings of its experiments.

    The votes are non-negative, sum to 1, and make the mean of the smallest 1/C of the margins as large as possible.
    Many may be zero: those models are dropped. The votes are chosen together and have no order of rounds, so stage k
    of the ``staged_*`` methods is the first k models that are left, with their final votes.

    Parameters
    ----------
    estimator : classifier, optional
        Base learner: any scikit-learn classifier or pipeline. Default: a ``HistogramTree`` of depth 6 with leaves of
        at least 20 samples, or of an eighth of fewer than 160.
    C : float, at least 1, "auto" or None, default=None
        Cost of the mean shortfall from the margin. At 1 the one best model is left; from the number of samples on only
        the smallest margin counts. None counts half as many margins again as the first model gets samples wrong: those
        of noise, and some. ``"auto"`` takes the one of a grid with the least error on held-out samples (the
        smallest on ties), and needs some. The paper's C, on the sum of the shortfalls, is this over the number of
        samples.
    n_estimators : int, default=500
        Largest number of rounds of AdaBoost.
    learning_rate : float in (0, 1], optional
        Part of AdaBoost's steps that its rounds go, as for ``AdaBoostClassifier``.
    stopping : Stopping, optional
        When to stop the rounds of AdaBoost, by the error on held-out samples: see ``Stopping``. The models up to its
        least are used. Default: ``Stopping(patience=100)``, which runs all rounds where ``fit`` is given no ``X_val``
        and ``y_val``.
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

    default_stopping = Stopping(patience=100)
    #: Settings of the experiments of Shivaswamy and Jebara 2011: the models of AdaBoost with whole steps, until the
    #: held-out error has not fallen for 100 rounds.
    as_printed: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"learning_rate": 1.0, "stopping": Stopping(patience=100)}
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        C: float | str | None = None,
        n_estimators: int = 500,
        learning_rate: float | None = None,
        stopping: Stopping | None = None,
        random_state: Any = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.estimator = estimator
        self.C = C
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.stopping = stopping
        self.random_state = random_state
        self.callbacks = callbacks

    def _check_own_parameters(self) -> None:
        if self.C is not None:
            check_cost(self.C)
            if not isinstance(self.C, str):
                check_edge_cost(float(self.C))

    def _boost(self, train: CheckedRows, held_out: CheckedRows | None, classes: AnyArray, entropy: int) -> BoostResult:
        return boost_and_vote_again(self, (train, held_out, classes, entropy), soft_margin_path, LINEAR_COSTS)

    def _store_details(self, details: list[Any]) -> None:
        self.C_ = one_or_all([C for C, _ in details], is_given=self.C is not None and self.C != "auto")
        self.solutions_: list[SoftMarginSolution] = [solution for _, solution in details]


class RQPBoostClassifier(AdditiveClassifier):
    """AdaBoost's models with the votes of a support vector machine.

    RQP-Boost of Tables 1 and 2 of Shivaswamy and Jebara 2011, after Raetsch, Onoda and Mueller 2001;
    ``**RQPBoostClassifier.as_printed`` are the settings of its experiments.

    The votes are non-negative and minimize half their squared norm plus C times the mean hinge loss. Models without a
    vote are dropped; stage k of the ``staged_*`` methods is the first k that are left, with their final votes.

    Parameters
    ----------
    estimator, n_estimators, learning_rate, stopping, random_state, callbacks
        As for ``RLPBoostClassifier``.
    C : float > 0 or "auto", default=3.0
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

    default_stopping = Stopping(patience=100)
    #: Settings of the experiments of Shivaswamy and Jebara 2011: the models of AdaBoost with whole steps, until the
    #: held-out error has not fallen for 100 rounds.
    as_printed: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"learning_rate": 1.0, "stopping": Stopping(patience=100)}
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        C: float | str = 3.0,
        n_estimators: int = 500,
        learning_rate: float | None = None,
        stopping: Stopping | None = None,
        random_state: Any = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.estimator = estimator
        self.C = C
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.stopping = stopping
        self.random_state = random_state
        self.callbacks = callbacks

    def _check_own_parameters(self) -> None:
        check_cost(self.C)

    def _boost(self, train: CheckedRows, held_out: CheckedRows | None, classes: AnyArray, entropy: int) -> BoostResult:
        return boost_and_vote_again(self, (train, held_out, classes, entropy), hinge_path, QUADRATIC_COSTS)

    def _store_details(self, details: list[Any]) -> None:
        self.C_ = one_or_all([C for C, _ in details], is_given=self.C != "auto")
        self.solutions_: list[HingeSolution] = [solution for _, solution in details]
