"""When a booster stops, the samples that it is judged on until then, and the warning if there is nothing to boost."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from counterpoise._base.checks import check_choice, check_count, check_number, warn_caller
from counterpoise.rules.cautions import Caution

AUTO = "auto"


@dataclass(frozen=True)
class Stopping:
    """When a booster stops, and which samples decide it: the parameter ``stopping`` of every booster.

    Fields that you leave out have the defaults below, not those of the booster. The default of a
    booster is its ``default_stopping``; ``stopping=None`` selects it. ``Stopping()`` never stops early.

    Parameters
    ----------
    patience : int >= 1, optional
        Stop when so many rounds in a row have brought no improvement. Additive boosters use the loss on held-out
        samples and keep the rounds up to its least; ``LPBoostClassifier`` and ``AdaLPBoostClassifier`` use the risk
        of the best mixture where it is chosen, which must fall by 0.001. Default: run all rounds.
    validation_fraction : float in (0, 1) or "auto", optional
        Part of the samples that no model is trained on, where ``fit`` is not given ``X_val`` and ``y_val``: additive
        boosters stop by them, the others choose the mixture on them. ``"auto"`` is for ``DROBoostClassifier``, and
        holds out a fifth of 500 samples or more, else none. Default: none.
    n_folds : int >= 2, "auto" or None, default="auto"
        For ``LPBoostClassifier`` and ``AdaLPBoostClassifier``; additive boosters refuse it. Judge every round, and
        choose the mixture, by models of the same learner that did not see the samples of each fold; those that decide
        are trained on all samples. None judges models by the samples they are trained on, where strong ones make no
        error. ``"auto"`` is 5 where there are no held-out samples and the learner is the default or an ensemble itself,
        else None.

    Raises
    ------
    TypeError, ValueError
        If a value is out of its range.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from counterpoise import AdaBoostClassifier, Stopping, VadaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> stopping = Stopping(patience=5, validation_fraction=0.3)
    >>> model = AdaBoostClassifier(stopping=stopping, random_state=0).fit(X, y)
    >>> len(model.estimators_) < model.n_estimators
    True

    The default of a booster, and none:

    >>> VadaBoostClassifier.default_stopping
    Stopping(patience=100, validation_fraction=None, n_folds='auto')
    >>> Stopping()
    Stopping(patience=None, validation_fraction=None, n_folds='auto')
    """

    patience: int | None = None
    _: KW_ONLY
    validation_fraction: float | str | None = None
    n_folds: int | str | None = AUTO

    def __post_init__(self) -> None:
        if self.patience is not None:
            check_count(self.patience, "patience")
        if isinstance(self.validation_fraction, str):
            check_choice(self.validation_fraction, "validation_fraction, where it is a word,", (AUTO,))
        elif self.validation_fraction is not None:
            check_number(self.validation_fraction, "validation_fraction", "(0, 1)", "or None to set no samples aside")
        if isinstance(self.n_folds, str):
            check_choice(self.n_folds, "n_folds, where it is a word,", (AUTO,))
        elif self.n_folds is not None:
            check_count(self.n_folds, "n_folds", 2)

    def __sklearn_clone__(self) -> Self:
        """Return the value itself: it never changes."""
        return self

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        self.__post_init__()


def stopping_of(booster: Any) -> Stopping:
    """Return when a booster stops: its parameter, or its default.

    Examples
    --------
    >>> from counterpoise import DROBoostClassifier, Stopping
    >>> from counterpoise.boosting.stopping import stopping_of
    >>> stopping_of(DROBoostClassifier()).patience, stopping_of(DROBoostClassifier(stopping=Stopping())).patience
    (10, None)
    """
    stopping = booster.stopping
    if stopping is None:
        default: Stopping = booster.default_stopping
        return default
    if not isinstance(stopping, Stopping):
        raise TypeError(
            f"stopping must be a Stopping, such as Stopping(patience=10), or None for the default of "
            f"{type(booster).__name__}, {booster.default_stopping!r}; got {stopping!r}."
        )
    return stopping


def check_stopping(booster: Any, *, takes_auto: bool = False, takes_folds: bool = False) -> None:
    """Refuse a ``stopping`` that a booster has no use for, and callbacks that are no functions."""
    stopping, name = stopping_of(booster), type(booster).__name__
    if stopping.validation_fraction == AUTO and not takes_auto:
        raise ValueError(
            f"validation_fraction='auto' is for DROBoostClassifier; {name} takes a number in (0, 1), or None to set no "
            "samples aside."
        )
    if stopping.n_folds != AUTO and not takes_folds:
        raise ValueError(
            f"n_folds={stopping.n_folds!r} is for LPBoostClassifier and AdaLPBoostClassifier, which judge rounds by "
            f"folds; {name} stops by held-out samples. Leave n_folds at 'auto', and set validation_fraction or pass "
            "X_val and y_val."
        )
    if not isinstance(booster.callbacks, Iterable) or not all(map(callable, booster.callbacks)):
        raise TypeError(
            f"callbacks must be a sequence of functions of a Round, () for none; got {booster.callbacks!r}."
        )


class NothingToLearn(Caution):
    """The base learner makes no error on the rows that it is fitted on, so boosting ends early."""


def warn_of_no_errors(n_models: int, other_way: str = "") -> None:
    """Warn that the base learner makes no error, so there is nothing to boost."""
    warn_caller(
        "The base learner makes no error on the rows that it is fitted on, so all rows get the same weight, and "
        f"boosting ended with {n_models} model{'s' if n_models > 1 else ''}. Use a weaker learner, for example with "
        f"a larger min_samples_leaf or a smaller max_depth{other_way}.",
        NothingToLearn,
    )
