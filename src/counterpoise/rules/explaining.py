"""Explanations of decisions: the score, the threshold, the goals behind it, and what would change the decision.

There is one record for each row. Contributions of features come from the model itself: LightGBM, XGBoost and CatBoost
compute them, those of scikit-learn's histogram gradient boosting are along the paths of its trees, and a linear model's
are its weights times the features. For other models the caller passes a function.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.goals.terms import text_of
from counterpoise.rules.path_contributions import path_contributions

_SHOWN = 5  # contributions in words
_LONG_NUMBER = re.compile(r"\d+\.\d{5,}")  # such as a bound with an audit margin; ``goals`` has all its digits
HOW_DRAWN = {"sticky": "by a secret key and the row or its id, the same every time", "sample": "afresh each time"}


@dataclass(frozen=True)
class GoalEffect:
    """What one goal does to a rule.

    Attributes
    ----------
    cost : float
        By how much the objective would be better without the goal. Where several rules are mixed: how fast it would
        fall if the goal were relaxed.
    changed : float or None
        The share of the selection rows that would be decided otherwise without the goal; None where rules are mixed.
    threshold : float or None
        Without the goal, the threshold of the row's group; None where there is none.
    """

    cost: float
    changed: float | None = None
    threshold: float | None = None


@dataclass(frozen=True)
class Explanation:
    """Why one row was decided as it was.

    Attributes
    ----------
    decision : label
        What ``predict`` returns.
    score : float
        The score that was compared: of the positive class, or, of more than two classes, the weighted probability of
        the decision.
    threshold : float
        The threshold of the row's group; of more than two classes the weighted probability
        of the class that comes next; not a number where decisions are drawn.
    lower : float or None
        Where rows may be deferred: the threshold below which the decision is negative. Between both a row is deferred.
    distance : float
        The score less the threshold.
    change : float
        The way from the score to the nearest threshold beyond which the decision is another one. Upwards the score must
        go farther than that, as a score on a threshold is not above it. Infinite where there is none.
    group : str
        The group whose threshold applied, such as "sex=F"; "all" where there is one threshold.
    rule : str
        The rule in words.
    goals : dict from str to GoalEffect
        All goals that move the rule, those that move most decisions first, with what would be otherwise without each.
        Empty where no goal binds.
    share : float
        How likely the decision was: 1 unless decisions are drawn.
    draw : str
        How the decision was drawn; empty where it was not.
    contributions : dict from str to float, or None
        What each feature adds to the score of the model, in log-odds where the model has them; None where they are not
        known.
    runner_up : label or None
        Of more than two classes: the class that comes next.
    """

    decision: Any
    score: float
    threshold: float
    lower: float | None
    distance: float
    change: float
    group: str
    rule: str
    goals: Mapping[str, GoalEffect]
    share: float = 1.0
    draw: str = ""
    contributions: Mapping[str, float] | None = None
    runner_up: Any = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON: what is not finite is None."""
        fields = asdict(self)
        return {name: _plain(value) for name, value in fields.items()}

    def __str__(self) -> str:
        lines = [f"Decision: {text_of(self.decision)}"]
        if self.draw:
            lines.append(f"Drawn with a probability of {self.share:.4g}: {self.draw}")
        if math.isfinite(self.score):
            lines.append(self._comparison_text())
        if self.goals:
            texts = [_LONG_NUMBER.sub(lambda match: f"{float(match[0]):.4g}", goal) for goal in self.goals]
            does = [self._effect_text(one) for one in self.goals.values()]
            told = "; ".join(f"{goal} {effect}" for goal, effect in zip(texts, does, strict=True))
            lines.append(f"Goals that set the {'threshold' if self.runner_up is None else 'weights'}: {told}")
        if math.isfinite(self.change):
            lines.append(f"{self._change_text()} would change the decision.")
        if self.contributions:
            largest = sorted(self.contributions.items(), key=lambda one: -abs(one[1]))[:_SHOWN]
            parts = ", ".join(f"{name} {value:+.3g}" for name, value in largest)
            lines.append(f"Largest contributions: {parts}")
        return "\n".join(lines)

    def _change_text(self) -> str:
        """Return which scores change the decision: those above an upper threshold, or not above a lower one."""
        if self.runner_up is not None:
            return f"A weighted probability that is lower by more than {-self.change:.4g}"
        if self.change >= 0:
            return f"A score that is higher by more than {self.change:.4g}"
        return f"A score that is lower by {-self.change:.4g} or more"

    def _effect_text(self, effect: GoalEffect) -> str:
        """Return what a goal does to the threshold of this row, and to how many decisions."""
        if effect.changed is None:
            return f"(price {effect.cost:.3g})"
        others = f"without it {effect.changed:.1%} of the selection rows are decided otherwise"
        if effect.threshold is None or not math.isfinite(self.threshold):
            return f"({others})"
        if effect.threshold == self.threshold:
            return f"moves it in other groups only ({others})"
        if not math.isfinite(effect.threshold):
            return f"(without it all of {self.group} get one decision; {others})"
        return (
            f"{'raises' if effect.threshold < self.threshold else 'lowers'} it from {effect.threshold:.4g} ({others})"
        )

    def _comparison_text(self) -> str:
        score, whose = f"{self.score:.4g}", "" if self.group == "all" else f" of the group {self.group}"
        if self.runner_up is not None:
            next_one = f"the next class, {text_of(self.runner_up)}, has {self.threshold:.4g}"
            return f"Weighted probability {score}{whose}; {next_one}"
        if not math.isfinite(self.threshold):
            return f"Score {score}, which does not matter: the rule makes the same decision for every row{whose}"
        if self.lower is not None and self.score <= self.threshold:
            if self.score > self.lower:
                return f"Score {score}, between {self.lower:.4g} and {self.threshold:.4g}{whose}: deferred"
            return f"Score {score}, not above the lower threshold {self.lower:.4g}{whose}"
        return (
            f"Score {score}, {'above' if self.distance > 0 else 'not above'} the threshold {self.threshold:.4g}{whose}"
        )


def _plain(value: Any) -> Any:
    """Return a value of a record for JSON."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


Contribute = Callable[[Any, Any], Any]  # of a model and rows: an array (n_rows, n_features), or a dict for each row


def contributions_of(model: Any, X: Any, places: IntArray | None, function: Contribute | None = None) -> list[Any]:
    """Return what each feature adds to the score of each row, a dict for each; None where they are not known.

    Parameters
    ----------
    model : fitted classifier or pipeline
    X : rows, as the model takes them
    places : array of shape (n_rows,) or None
        Of more than two classes, to the score of which of them features add; None for the second of two.
    function : callable, optional
        Computes contributions from the model and rows, in place of the model itself; it returns an array or dicts.
    """
    n_rows = int(X.shape[0])
    result = function(model, X) if function is not None else _by_class(model, X, places)
    if result is None:
        return [None] * n_rows
    if isinstance(result, Sequence) and all(isinstance(one, Mapping) for one in result):
        return list(result)
    values = np.asarray(result, dtype=np.float64)
    if values.ndim != 2 or len(values) != n_rows:  # noqa: PLR2004 - rows and features
        raise ValueError(
            f"contributions must return an array of shape ({n_rows}, n_features), or a dict for each row; got shape "
            f"{values.shape}."
        )
    names = _feature_names(model, X, values.shape[1])
    return [dict(zip(names, row.tolist(), strict=True)) for row in values]


def _by_class(model: Any, X: Any, places: IntArray | None) -> FloatArray | None:
    """Return the contributions of features to the score of one class for each row."""
    if places is None:
        return _own_contributions(model, X, None)
    total: FloatArray | None = None
    for place in np.unique(places).tolist():
        part = _own_contributions(model, X, place)
        if part is None or place >= len(model.classes_):  # models have no score of deferral
            return None
        total = np.zeros_like(part) if total is None else total
        total[places == place] = part[places == place]
    return total


def _own_contributions(model: Any, X: Any, place: int | None) -> FloatArray | None:
    """Return the contributions that a model of a known kind computes, without the constant; None for other models."""
    if hasattr(model, "models"):  # of folds: their log-odds are averaged, and so is what features add to them
        parts = [_own_contributions(one, X, place) for one in model.models]
        known = [part for part in parts if part is not None]
        return np.mean(known, axis=0) if len(known) == len(parts) else None
    if hasattr(model, "steps"):
        return _own_contributions(model.steps[-1][1], model[:-1].transform(X) if len(model.steps) > 1 else X, place)
    contributions = _boosted_contributions(model, X)
    if contributions is not None:
        return _of_class(contributions, len(model.classes_), place)
    if not hasattr(model, "coef_"):
        return None
    rows = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=np.float64)
    weights = np.atleast_2d(model.coef_)
    return np.asarray(rows * weights[place if place is not None and len(weights) > 1 else 0])


def _boosted_contributions(model: Any, X: Any) -> FloatArray | None:
    """Return the contributions to the scores of boosted trees: n_features + 1 columns, or as many for each class."""
    library = type(model).__module__.split(".", maxsplit=1)[0]
    if library == "lightgbm":
        shap = model.predict(X, pred_contrib=True)
    elif library == "xgboost":
        import xgboost  # noqa: PLC0415 - the model is of it

        shap = model.get_booster().predict(xgboost.DMatrix(X, enable_categorical=True), pred_contribs=True)
    elif library == "catboost":
        import catboost  # noqa: PLC0415 - the model is of it

        shap = model.get_feature_importance(catboost.Pool(X), type="ShapValues")
    elif type(model).__name__ == "HistGradientBoostingClassifier" and library == "sklearn":
        shap = path_contributions(model, X)
    else:
        return None
    return np.asarray(shap.toarray() if hasattr(shap, "toarray") else shap).reshape(int(X.shape[0]), -1)


def _of_class(contributions: FloatArray, n_classes: int, place: int | None) -> FloatArray:
    """Return the contributions to the score of one class, given those of all, each with its constant at the end."""
    if n_classes <= 2 or place is None:  # noqa: PLR2004 - two classes share one score
        return np.asarray(contributions[:, :-1])
    width = contributions.shape[1] // n_classes
    return np.asarray(contributions[:, place * width : (place + 1) * width - 1])


def _feature_names(model: Any, X: Any, n_features: int) -> list[str]:
    """Return the names of the features; numbered ones where they are not known."""
    inner = getattr(model, "models", [model])[0]
    if hasattr(inner, "steps") and len(inner.steps) > 1:
        try:
            names = [str(name) for name in inner[:-1].get_feature_names_out()]
        except (AttributeError, ValueError, TypeError):
            names = []
    else:
        columns = getattr(X, "columns", None)
        own = getattr(inner, "feature_names_in_", None)
        names = [str(name) for name in (columns if columns is not None else own if own is not None else ())]
    return names if len(names) == n_features else [f"feature {place}" for place in range(n_features)]


class ScoreComparison(NamedTuple):
    """The scores of rows and what they were compared with, an entry for each row."""

    scores: FloatArray
    thresholds: FloatArray
    lowers: FloatArray | None  # where rows may be deferred
    changes: FloatArray  # of the score, that change the decision
    groups: list[str]
    rule: str
    runners_up: Sequence[Any] | None = None  # of more than two classes

    @classmethod
    def none(cls, n_rows: int, rule: str) -> Self:
        """Return an empty comparison, for decisions by several rules or models."""
        unknown = np.full(n_rows, np.nan)
        return cls(unknown, unknown, None, np.full(n_rows, np.inf), ["all"] * n_rows, rule)


def explanations(
    decisions: AnyArray,
    chances: FloatArray,
    comparison: ScoreComparison,
    *,
    goals: Sequence[Mapping[str, GoalEffect]],
    draw: str,
    contributions: Sequence[Any],
) -> list[Explanation]:
    """Return a record for each row."""
    return [
        Explanation(
            decision=decision,
            score=float(comparison.scores[row]),
            threshold=float(comparison.thresholds[row]),
            lower=None if comparison.lowers is None else float(comparison.lowers[row]),
            distance=float(comparison.scores[row] - comparison.thresholds[row]),
            change=float(comparison.changes[row]),
            group=comparison.groups[row],
            rule=comparison.rule,
            goals=goals[row],
            share=float(chances[row]),
            draw=draw,
            contributions=contributions[row],
            runner_up=None if comparison.runners_up is None else comparison.runners_up[row],
        )
        for row, decision in enumerate(decisions)
    ]


def nearest_changes(scores: FloatArray, uppers: FloatArray, lowers: FloatArray | None) -> FloatArray:
    """Return the way from each score to the nearest threshold beyond which the decision is another one.

    Above the upper threshold that is the way down to it, below the lower one the way up; between both, where a row is
    deferred, the shorter of both ways. Infinite where no threshold is finite.
    """
    down, up = uppers - scores, (uppers if lowers is None else lowers) - scores
    between = np.where(np.abs(down) <= np.abs(up), down, up)
    is_above, is_below = scores > uppers, scores <= (uppers if lowers is None else lowers)
    changes = np.where(is_above, down, np.where(is_below, up, between))
    return np.where(np.isfinite(changes), changes, np.inf)
