"""Rules in words: thresholds of a score, or which class probabilities count how much."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.mixtures.class_scores.tiers import SOFT, RatioRule, TierRule

_MOST_NAMED = 4  # classes, or groups, of a rule
_ALIKE = 0.02  # part by which weights may differ and still be told as the same
_STEPS = ("first", "second", "third")


def rule_text(rule: Any, models: Sequence[str], classes: Sequence[Any] = (), groups: Sequence[str] = ()) -> str:
    """Return a rule in words, given what models, classes and the groups that it looks at are called."""
    if isinstance(rule, TierRule):
        return f"{models[rule.model]}: {_tiers(rule, classes, groups)}"
    if isinstance(rule, RatioRule):
        return f"{models[rule.model]}: {_ratios(rule)}"
    told = f"{models[rule.model]} above {_levels(rule.thresholds)}"
    return told if rule.lower is None else f"{told}; deferred above {_levels(rule.lower)}"


def shares_rows(rule: Any) -> bool:
    """Tell whether a rule gives a row to several classes, so that its answers are drawn."""
    if isinstance(rule, TierRule):
        return rule.layer == SOFT and (rule.level > 0 or rule.defer_cost is not None)
    return isinstance(rule, RatioRule) and bool(((rule.shares > 0) & (rule.shares < 1)).any())


class _Weights(NamedTuple):
    """How much the probability of each class counts beside that of the usual one, and what is added to it."""

    times: FloatArray
    added: FloatArray
    are_pairs_apart: bool  # what an answer is worth differs between labels that it is wrong about


def _tiers(rule: TierRule, classes: Sequence[Any], groups: Sequence[str]) -> str:
    told = [_counted(_weights(rule, group), classes) for group in range(len(rule.benefits))]
    left = ", or left to a person" if rule.defer_cost is not None else ""
    if not any(told):
        return _said(rule, "") + left
    if len(set(told)) == 1:
        return f"{_said(rule, 'weighted ')}{left}; weighted: {told[0]}"
    named = [f"{name}: {one or 'all alike'}" for name, one in zip(groups, told, strict=True)]
    more = [f"{len(named) - _MOST_NAMED} more groups"] if len(named) > _MOST_NAMED else []
    return f"{_said(rule, 'weighted ')}{left}; weighted for {'; '.join([*named[:_MOST_NAMED], *more])}"


def _said(rule: TierRule, weighted: str) -> str:
    if rule.layer == SOFT and rule.level > 0:
        return f"classes share a row by {weighted}probability, at most {1.0 - rule.level:.2g} each at first"
    step = "" if rule.layer <= 0 else f"{_STEPS[rule.layer] if rule.layer < len(_STEPS) else f'{rule.layer + 1}th'} "
    return f"the class of the {step}largest {weighted}probability"


def _weights(rule: TierRule, group: int) -> _Weights:
    """Return how a rule weighs probabilities: the benefit of a class is taken apart into its own part and a rest."""
    n_classes = rule.benefits.shape[1]
    benefits, own = rule.benefits[group][:, :n_classes], np.eye(n_classes, dtype=np.bool_)
    others = benefits.T[~own].reshape(n_classes, n_classes - 1)  # of each answer, where it is wrong
    added = np.median(others, axis=1)
    weights = 1.0 / rule.alpha + benefits[own] - added
    usual = float(np.median(weights))
    scale = usual if usual > 0 else 1.0
    apart = bool((np.ptp(others, axis=1) > _ALIKE * scale).any())
    return _Weights(weights / scale, (added - np.median(added)) / scale, apart)


def _counted(weights: _Weights, classes: Sequence[Any]) -> str:
    """Return the weights of classes, those that differ most from the usual one first; nothing where all are alike."""
    change = np.abs(weights.times - 1.0) + np.abs(weights.added)
    order = np.argsort(-change, kind="stable")
    apart = [place for place in order.tolist() if change[place] > _ALIKE]
    named = [_one(weights, place, classes) for place in apart[:_MOST_NAMED]]
    more = [f"{len(apart) - _MOST_NAMED} more"] if len(apart) > _MOST_NAMED else []
    alike = ["others \N{MULTIPLICATION SIGN} 1"] if named and len(apart) < len(classes) else []
    pairs = ["single confusions apart"] if weights.are_pairs_apart else []
    return ", ".join([*named, *more, *alike, *pairs])


def _one(weights: _Weights, place: int, classes: Sequence[Any]) -> str:
    added = float(weights.added[place])
    sign = "+" if added > 0 else "\N{MINUS SIGN}"
    more = f" {sign} {abs(added):.2f}" if abs(added) > _ALIKE else ""
    return f"{classes[place]!s} \N{MULTIPLICATION SIGN} {float(weights.times[place]):.2f}{more}"


def _ratios(rule: RatioRule) -> str:
    highest = float(rule.shares.max())
    if highest == 0:
        return "the likeliest class"
    return f"the likeliest class, or the second with a chance of up to {highest:.2g} where it is nearly as likely"


def _levels(levels: dict[str, float]) -> str:
    return ", ".join(_named_levels(levels))


def _named_levels(levels: dict[str, float]) -> Iterator[str]:
    for name, one in levels.items():
        yield _threshold(one) if len(levels) == 1 else f"{_threshold(one)} ({name})"


def _threshold(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "everything" if value > 0 else "nothing"
