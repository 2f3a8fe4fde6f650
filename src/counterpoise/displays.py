"""Figures in the manner of scikit-learn's displays: the tail of a classifier, rates by group, the price of a goal.

Each display holds the numbers that it draws; ``plot`` draws them again, into other axes if wanted. matplotlib is loaded
when a figure is drawn. Names of groups and models are drawn as they are, never read as formulas.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from counterpoise._base.checks import check_alphas, check_choice, check_confidence, check_count, check_losses
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray
from counterpoise.auditing.audit import classes_of_model, deciding_model, defer_label_of
from counterpoise.goals.catalogue import needs
from counterpoise.goals.classes import as_labels, check_answers, known_labels, without_deferred
from counterpoise.goals.infeasible import InfeasibleGoals
from counterpoise.goals.rates import ALIASES, METRICS, RATIOS, make_metric
from counterpoise.goals.terms import DEFAULT, Dataset
from counterpoise.metrics import cvar_curve, rate_table, realised_cvar
from counterpoise.rules.families import ThresholdRules
from counterpoise.rules.options import kind_of_decision
from counterpoise.rules.tradeoff import Tradeoff, tradeoff
from counterpoise.theory.confidence import binomial_bounds

__all__ = ["CVaRCurveDisplay", "RateDisplay", "ResampleDisplay", "TradeoffDisplay", "count_bounds"]

_ALPHAS = np.geomspace(0.01, 1.0, 61)  # even steps on the logarithmic axis that is drawn
_DRAWN = ("sticky", "sample", "ramp")  # values of ``decision`` under which answers are drawn
_CONFIDENCE = 0.95
_COUNT = 1e-12  # part of the rows by which rate times rows may differ from the whole number that it is: rounding


class CVaRCurveDisplay:
    """The CVaR of a classifier's zero-one loss against the tail fraction alpha.

    The loss of a row is 0 or 1 for a deterministic classifier, and its curve is then ``min(1, error / alpha)``. For a
    classifier that draws its decisions (a mixture with ``decision="sticky"`` or ``"sample"``, a ramp) it is the
    probability of an error, from ``decision_proba``: the *expected* loss. A second, dotted curve then shows the
    *realised* loss, ``min(1, error / alpha)``: once decisions are drawn each row is right or wrong.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
        Tail fractions in (0, 1].
    cvar : array of shape (n_alphas,)
        Average loss over the worst-off fraction alpha.
    name : str, optional
        The curve's name in the legend.
    realised : array of shape (n_alphas,), optional
        The same once decisions are drawn, where they are.

    Attributes
    ----------
    ax_, figure_, line_ : matplotlib objects
        What was drawn last.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from counterpoise import AdaLPBoostClassifier, CVaRCurveDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> plain = GaussianNB().fit(X[:300], y[:300])
    >>> boosted = AdaLPBoostClassifier(n_estimators=10, alpha=0.1, random_state=0).fit(X[:300], y[:300])
    >>> display = CVaRCurveDisplay.from_estimator(plain, X[300:], y[300:])
    >>> other = CVaRCurveDisplay.from_estimator(boosted, X[300:], y[300:], ax=display.ax_)
    >>> [text.get_text() for text in other.ax_.get_legend().get_texts()]
    ['GaussianNB', 'AdaLPBoostClassifier', 'AdaLPBoostClassifier, once drawn']
    """

    def __init__(
        self, *, alphas: ArrayLike, cvar: ArrayLike, name: str | None = None, realised: ArrayLike | None = None
    ) -> None:
        self.alphas = alphas
        self.cvar = cvar
        self.name = name
        self.realised = realised

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of a fitted classifier on labelled rows.

        Parameters
        ----------
        estimator : fitted classifier
        X, y : rows and their labels
        sensitive_features, baseline : optional
            Columns and baseline predictions that the classifier's rules use.
        name : str, optional
            Default: the name of the class.
        **kwargs
            As for ``from_losses``.
        """
        title = type(estimator).__name__ if name is None else name
        columns = _prediction_arguments(estimator, {"sensitive_features": sensitive_features, "baseline": baseline})
        options = {"realised": _draws(estimator), "name": title, **kwargs}
        return cls.from_losses(_error_probabilities(estimator, X, y, columns), **options)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_pred: ArrayLike, *, classes: ArrayLike | None = None, **kwargs: Any
    ) -> Self:
        """Draw the curve of predicted labels; ``kwargs`` are those of ``from_losses``.

        A prediction that is neither in ``y_true`` nor among ``classes`` is refused.
        """
        return cls.from_losses(_wrong(as_labels(y_true), as_labels(y_pred), classes), **kwargs)

    @classmethod
    def from_losses(
        cls,
        losses: ArrayLike,
        *,
        alphas: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        mixture: ArrayLike | None = None,
        realised: bool = False,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of losses.

        Parameters
        ----------
        losses : array of shape (n_samples,) or (n_samples, n_models)
            One for each row; or one for each row and model, with the mixture of the models.
        alphas : array of tail fractions in (0, 1], optional
            Default: 61 from 0.01 to 1.
        sample_weight : array of shape (n_samples,), optional
            Non-negative; only their ratios matter.
        mixture : array of shape (n_models,), optional
        realised : bool, default=False
            Draw a second curve, of the losses once decisions are drawn, where losses are probabilities of an error.
        name : str, optional
            The curve's name in the legend.
        ax : matplotlib axes, optional
        **kwargs
            Passed to matplotlib's ``plot``.
        """
        levels = _ALPHAS if alphas is None else check_alphas(alphas)
        curve = cvar_curve(check_losses(losses, ndim=None), levels, sample_weight, mixture=mixture)
        realised_curve = realised_cvar(losses, levels, sample_weight, mixture=mixture) if realised else None
        return cls(alphas=levels, cvar=curve, name=name, realised=realised_curve).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curve into ``ax``, or into a new figure; ``kwargs`` go to matplotlib's ``plot``."""
        title = self.name if name is None else name
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        (self.line_,) = self.ax_.plot(self.alphas, self.cvar, **{"label": title} | kwargs)
        if self.realised is not None:
            label = "once drawn" if title is None else f"{title}, once drawn"
            self.ax_.plot(self.alphas, self.realised, ":", color=self.line_.get_color(), label=label)
        self.ax_.set(xscale="log", ylim=(0.0, 1.03))
        self.ax_.set_xlabel("worst-off fraction of the rows (alpha)")
        self.ax_.set_ylabel("CVaR of the zero-one loss")
        self.ax_.grid(visible=True, alpha=0.3)
        _legend(self.ax_)
        return self


class RateDisplay:
    """The rate of each group as a dot with its interval.

    Parameters
    ----------
    groups : list of str
        In the order in which they are drawn, from the top.
    rates, low, high : array of shape (n_groups,)
        NaN where a rate has no value, such as the recall of a group without positives, and where a rate has
        no interval.
    rate : str
        Name of the rate.

    Attributes
    ----------
    ax_, figure_, line_ : matplotlib objects
        What was drawn last; ``line_`` holds the dots.

    Examples
    --------
    >>> from counterpoise import RateDisplay
    >>> sex = {"sex": ["F"] * 40 + ["M"] * 60}
    >>> decisions, labels = [1] * 10 + [0] * 30 + [1] * 30 + [0] * 30, [0, 1] * 50
    >>> display = RateDisplay.from_predictions(labels, decisions, sensitive_features=sex)
    >>> for group, rate, low, high in zip(display.groups, display.rates, display.low, display.high):
    ...     print(f"{group:5} {rate:.3f} ({low:.3f} to {high:.3f})")
    all   0.400 (0.303 to 0.503)
    sex=F 0.250 (0.127 to 0.412)
    sex=M 0.500 (0.368 to 0.632)
    """

    def __init__(
        self, *, groups: Sequence[str], rates: ArrayLike, low: ArrayLike, high: ArrayLike, rate: str = "positive_rate"
    ) -> None:
        self.groups = groups
        self.rates = rates
        self.low = low
        self.high = high
        self.rate = rate

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike | None = None, **kwargs: Any) -> Self:
        """Draw the rates of the decisions that a fitted classifier makes.

        Parameters
        ----------
        estimator : fitted classifier
            A randomized one is shown by the decisions that it draws.
        X, y : rows and their labels
            Labels are needed for most rates, not for ``positive_rate`` and ``churn``.
        **kwargs
            As for ``from_predictions``, ``sensitive_features`` among them.
        """
        model = deciding_model(estimator)
        classes = classes_of_model(model, None if y is None else as_labels(y))
        options = {"classes": classes, "defer_label": defer_label_of(model, None)}
        return cls.from_predictions(
            y, estimator.predict(X, **_prediction_arguments(estimator, kwargs)), **{**options, **kwargs}
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | None,
        y_pred: ArrayLike,
        *,
        sensitive_features: Any,
        rate: str = "positive_rate",
        baseline: ArrayLike | None = None,
        confidence: float = _CONFIDENCE,
        pos_label: Any = None,
        defer_label: Any = None,
        classes: ArrayLike | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the rates of predicted labels.

        Parameters
        ----------
        y_true : array of shape (n_samples,) or None
        y_pred : array of shape (n_samples,)
        sensitive_features : data frame, dict of arrays, or array
            A group is a combination of the values of all columns.
        rate : str
            Name or alias of a metric of ``counterpoise.goals``, or of one that was registered.
        baseline : array of shape (n_samples,), optional
            The predictions of the deployed model, for churn.
        confidence : float in (0, 1), default=0.95
            The confidence of each interval by itself: exact (Clopper and Pearson).
        pos_label : label, optional
            The positive class; by default the last of the sorted classes.
        defer_label, classes : optional
            As for ``rate_table``; those of a classifier by default its own.
        ax : matplotlib axes, optional
        **kwargs
            Passed to matplotlib's ``errorbar``.
        """
        check_choice(rate, "rate", (*METRICS, *RATIOS, *ALIASES))
        named_by = {"pos_label": pos_label, "defer_label": defer_label, "classes": classes}
        table = rate_table(y_pred, y_true, sensitive_features, baseline=baseline, rates=[rate], **named_by)
        rates = [row.rates[rate] for row in table]
        if not np.isfinite(rates).any():
            is_compared = baseline is None and needs(make_metric(rate, Dataset()), "baseline")
            missing = "baseline" if is_compared else "y_true, with rows that count in it"
            raise ValueError(f"rate={rate!r} needs {missing}; got none for any group.")
        ends = (count_bounds(row.rates[rate], row.trials[rate], confidence=confidence) for row in table)
        low, high = np.array(list(ends)).T
        groups = [row.group for row in table]
        return cls(groups=groups, rates=np.array(rates), low=low, high=high, rate=rate).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the dots into ``ax``, or into a new figure; ``kwargs`` go to matplotlib's ``errorbar``."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        rates, places = np.asarray(self.rates, dtype=np.float64), np.arange(len(self.groups))
        reach = np.vstack([rates - np.asarray(self.low), np.asarray(self.high) - rates])
        style = {"fmt": "o", "capsize": 0, "label": name} | kwargs
        self.line_, *_ = self.ax_.errorbar(rates, places, xerr=np.clip(reach, 0.0, None), **style)
        self.ax_.set_yticks(places, labels=self.groups, parse_math=False)
        self.ax_.set_ylim(len(self.groups) - 0.5, -0.5)  # the first group on top
        self.ax_.set_xlabel(self.rate.replace("_", " "))
        self.ax_.grid(visible=True, axis="x", alpha=0.3)
        _legend(self.ax_)
        return self


class TradeoffDisplay:
    """The least risk of a mixture against the bound of one goal.

    Parameters
    ----------
    tradeoff : Tradeoff
        The frontier, from ``counterpoise.tradeoff``.
    name : str, optional
        The frontier's name in the legend.

    Attributes
    ----------
    ax_, figure_, line_ : matplotlib objects
        What was drawn last.

    Examples
    --------
    >>> from counterpoise import TradeoffDisplay
    >>> losses = [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> display = TradeoffDisplay.from_estimator(losses, [0, 1], [0.0, 0.25, 0.5, 0.75], alpha=0.5)
    >>> display.tradeoff.values.round(6).tolist()
    [1.0, 0.75, 0.5, 0.5]
    """

    def __init__(self, *, tradeoff: Tradeoff, name: str | None = None) -> None:
        self.tradeoff = tradeoff
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        goal: Any,
        bounds: ArrayLike | None = None,
        *,
        alpha: float | None = None,
        objective: Any = None,
        n_points: int = 50,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Find the frontier of a fitted mixture, as ``counterpoise.tradeoff`` does, and draw it."""
        curve = tradeoff(model, goal, bounds, alpha=alpha, objective=objective, n_points=n_points)
        return cls.from_tradeoff(curve, name=name, ax=ax, **kwargs)

    @classmethod
    def from_tradeoff(cls, tradeoff: Tradeoff, *, name: str | None = None, ax: Any = None, **kwargs: Any) -> Self:
        """Draw a frontier that ``tradeoff`` returned."""
        return cls(tradeoff=tradeoff, name=name).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the frontier into ``ax``, or into a new figure; ``kwargs`` go to matplotlib's ``plot``."""
        title = self.name if name is None else name
        self.ax_ = self.tradeoff.plot(_axes(ax), **{"label": title} | kwargs)
        self.figure_, self.line_ = self.ax_.figure, self.ax_.lines[-1]
        _legend(self.ax_)
        return self


class ResampleDisplay:
    """The thresholds, and the values of the goals, of the rules chosen on resamples of the selection rows.

    Parameters
    ----------
    thresholds : dict from groups to arrays of shape (n_chosen,)
        The upper threshold of each group, one for each resample whose goals can be met.
    values : dict from the texts of goals to arrays of shape (n_chosen,)
        The value of each goal on all selection rows, by the rule chosen on the resample.
    bounds : dict from the texts of goals to floats
    n_infeasible : int, default=0
        The resamples on which no rule meets the goals.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
        What was drawn last.

    Examples
    --------
    >>> from counterpoise import GoalClassifier, ResampleDisplay
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(max_iter=5000).fit(X[:200], y[:200])
    >>> decided = GoalClassifier(model, cv="prefit", goals="recall >= 0.95", objective="precision")
    >>> decided = decided.fit(X[200:], y[200:])
    >>> display = ResampleDisplay.from_estimator(decided, n_resamples=20, random_state=0)
    >>> display.thresholds["all"].shape, display.n_infeasible
    ((20,), 0)
    """

    def __init__(
        self,
        *,
        thresholds: Mapping[str, FloatArray],
        values: Mapping[str, FloatArray],
        bounds: Mapping[str, float],
        n_infeasible: int = 0,
    ) -> None:
        self.thresholds = thresholds
        self.values = values
        self.bounds = bounds
        self.n_infeasible = n_infeasible

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_resamples: int = 60, random_state: Any = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Choose one rule on each of several resamples of the stored scores, and draw the thresholds.

        Parameters
        ----------
        estimator : fitted GoalClassifier of two classes
            Or a pipeline or search that ends in one. The choice is that of its goals without margins; no model is
            trained. Where ``fit`` was given ``ids``, persons are drawn, with all their rows. Rows of other datasets
            stay as they are.
        n_resamples : int, default=60
        random_state : int, numpy Generator or None
        ax : matplotlib axes, optional
        **kwargs
            As for ``plot``.
        """
        model = deciding_model(estimator)
        family = getattr(model, "family_", None)
        if not isinstance(family, ThresholdRules) or len(model.rules_) > 1:
            raise TypeError(
                "ResampleDisplay shows one rule of thresholds: pass a fitted GoalClassifier of two classes with "
                f'decision="fixed"; got {type(model).__name__}.'
            )
        problem, rng = model.problem()._replace(confidence=None), np.random.default_rng(random_state)
        n_rows = family.selection_data.is_positive.size
        persons = family.selection_data.persons
        units = np.arange(n_rows) if persons is None else np.asarray(persons)
        order = np.argsort(units, kind="stable")
        rows_of_units = np.split(order, np.flatnonzero(np.diff(units[order])) + 1)
        all_rows = {name: np.arange(len(scores)) for name, scores in family.selection_data.scores.items()}
        chosen, checks = [], []
        for _ in range(check_count(n_resamples, "n_resamples")):
            drawn = rng.integers(0, len(rows_of_units), len(rows_of_units))
            rows = np.concatenate([rows_of_units[unit] for unit in drawn])
            try:
                rules: Any = family.only({**all_rows, DEFAULT: rows}).solve(problem).chosen
            except InfeasibleGoals:
                continue
            chosen.append(rules.rules[0])
            checks.append(family.predictions(rules).answers.checks(model.goals_, np.ones(1)))
        texts = [str(goal) for goal in model.goals_]
        groups = model.groups_.names
        return cls(
            thresholds={group: np.array([rule.thresholds.get(group, np.nan) for rule in chosen]) for group in groups},
            values={text: np.array([check[place].value for check in checks]) for place, text in enumerate(texts)},
            bounds={text: float(check.bound) for text, check in zip(texts, model.check_goals(), strict=True)},
            n_infeasible=n_resamples - len(chosen),
        ).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, quantity: str = "thresholds", **kwargs: Any) -> Self:
        """Draw a box for each group's threshold, or for each goal's value; ``kwargs`` go to matplotlib's ``boxplot``.

        ``quantity`` is ``"thresholds"`` or ``"values"``.
        """
        check_choice(quantity, "quantity", ("thresholds", "values"))
        shown = self.thresholds if quantity == "thresholds" else self.values
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        places = np.arange(len(shown))
        options = {"orientation": "horizontal", "positions": places, "manage_ticks": False} | kwargs
        self.ax_.boxplot([numbers[np.isfinite(numbers)] for numbers in shown.values()], **options)
        if quantity == "values":
            self.ax_.plot(list(self.bounds.values()), places, "|", markersize=20, label="bound")
        self.ax_.set_yticks(places, labels=list(shown), parse_math=False)
        self.ax_.set_ylim(len(shown) - 0.5, -0.5)  # the first on top
        self.ax_.set_xlabel("threshold" if quantity == "thresholds" else "value on all selection rows")
        self.ax_.grid(visible=True, axis="x", alpha=0.3)
        _legend(self.ax_)
        return self


def count_bounds(rate: float, n_trials: int | None, *, confidence: float = _CONFIDENCE) -> tuple[float, float]:
    """Return the two-sided interval of a rate that is a count out of ``n_trials``.

    Both ends are not a number where there is none: no rows, an unknown number of them, or a rate that is no count out
    of them, such as a weighted one.

    Examples
    --------
    >>> from counterpoise.displays import count_bounds
    >>> [round(end, 3) for end in count_bounds(0.25, 40)]
    [0.127, 0.412]
    >>> count_bounds(0.26, 40)
    (nan, nan)
    """
    level = (1.0 + check_confidence(confidence)) / 2.0
    if not n_trials or not np.isfinite(rate) or abs(rate * n_trials - round(rate * n_trials)) > _COUNT * n_trials:
        return np.nan, np.nan
    low, high = binomial_bounds(round(rate * n_trials), n_trials, confidence=level)
    return low, high


def _error_probabilities(estimator: Any, X: Any, y: ArrayLike, columns: dict[str, Any]) -> FloatArray:
    labels = np.asarray(y)
    if not _draws(estimator):
        model, predictions = deciding_model(estimator), as_labels(estimator.predict(X, **columns))
        return _wrong(labels, predictions, classes_of_model(model, labels), defer_label_of(model, None))
    predictions = _decision_shares(estimator, X, columns)[:, : len(estimator.classes_)]
    return np.asarray(1.0 - (predictions * (labels[:, None] == np.asarray(estimator.classes_))).sum(axis=1))


def _decision_shares(estimator: Any, X: Any, columns: dict[str, Any]) -> FloatArray:
    """Return the probability of each decision; pipelines and searches pass on to the classifier that decides."""
    if hasattr(estimator, "best_estimator_"):
        return _decision_shares(estimator.best_estimator_, X, columns)
    if hasattr(estimator, "steps"):
        before = estimator[:-1]
        return _decision_shares(estimator.steps[-1][1], before.transform(X) if before.steps else X, columns)
    return np.asarray(estimator.decision_proba(X, **columns))


def _draws(estimator: Any) -> bool:
    """Return whether a classifier draws its answers."""
    return kind_of_decision(getattr(deciding_model(estimator), "decision", None)) in _DRAWN


def _prediction_arguments(estimator: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the columns and baseline predictions that a classifier uses to decide; most use only X."""
    looks_at_groups = bool(getattr(getattr(deciding_model(estimator), "groups_", None), "by", ()))
    names = ("sensitive_features", "baseline") if looks_at_groups else ()
    return {name: arguments[name] for name in names if arguments.get(name) is not None}


def _wrong(labels: AnyArray, predictions: AnyArray, classes: ArrayLike | None, deferred: Any = None) -> FloatArray:
    if labels.ndim != 1 or labels.shape != predictions.shape:
        shapes = f"{labels.shape} and {predictions.shape}"
        raise ValueError(f"Labels and predicted labels must be two vectors of one length; got shapes {shapes}.")
    known = known_labels([labels], classes)
    check_answers(without_deferred(predictions, deferred), known.tolist(), "predictions")
    return np.asarray(labels != predictions, dtype=np.float64)


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # noqa: PLC0415 - heavy, and optional

    return plt.subplots(layout="constrained")[1]


def _legend(ax: Any) -> None:
    """Show a legend where something has a name."""
    if ax.get_legend_handles_labels()[1]:
        for text in ax.legend(frameon=False).get_texts():
            text.set_parse_math(False)
