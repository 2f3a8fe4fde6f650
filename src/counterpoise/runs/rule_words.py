"""Rules in words, as a report shows them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from counterpoise.rules.class_scores.rules import SOFT, TierRule

_MOST_NAMED = 4  # classes, or groups, of a rule
_ALIKE = 0.02  # part by which weights may differ and still be shown as the same
_STEPS = ("first", "second", "third")


def rule_text(rule: Any, models: Sequence[str], classes: Sequence[Any] = (), groups: Sequence[str] = ()) -> str:
    """Return a rule in words, with the names of models, classes and the groups that it uses."""
    if isinstance(rule, TierRule):
        return f"{models[rule.model]}: {_tiers(rule, classes, groups)}"
    text = f"{models[rule.model]} above {_levels(rule.thresholds)}"
    return text if rule.lower is None else f"{text}; deferred above {_levels(rule.lower)}"


def _tiers(rule: TierRule, classes: Sequence[Any], groups: Sequence[str]) -> str:
    weights = [_weights(rule, group, classes) for group in range(len(rule.benefits))]
    left = ", or left to a person" if rule.defer_cost is not None else ""
    if not any(weights):
        return _class_text(rule, "") + left
    if len(set(weights)) == 1:
        return f"{_class_text(rule, 'weighted ')}{left}; weighted: {weights[0]}"
    named = [f"{name}: {one or 'all alike'}" for name, one in zip(groups, weights, strict=True)]
    more = [f"{len(named) - _MOST_NAMED} more groups"] if len(named) > _MOST_NAMED else []
    return f"{_class_text(rule, 'weighted ')}{left}; weighted for {'; '.join([*named[:_MOST_NAMED], *more])}"


def _class_text(rule: TierRule, weighted: str) -> str:
    if rule.layer == SOFT and rule.level > 0:
        return f"classes share a row by {weighted}probability, at most {1.0 - rule.level:.2g} each at first"
    step = "" if rule.layer <= 0 else f"{_STEPS[rule.layer] if rule.layer < len(_STEPS) else f'{rule.layer + 1}th'} "
    return f"the class of the {step}largest {weighted}probability"


def _weights(rule: TierRule, group: int, classes: Sequence[Any]) -> str:
    """Return how much the probability of each class counts beside that of the usual one, and what is added to it.

    The benefit of a class is taken apart into its own part and a rest. Those that differ most from the usual one come
    first; the text is empty where all are alike.
    """
    n_classes = rule.benefits.shape[1]
    benefits, own = rule.benefits[group][:, :n_classes], np.eye(n_classes, dtype=np.bool_)
    others = benefits.T[~own].reshape(n_classes, n_classes - 1)  # of each answer, where it is wrong
    rest = np.median(others, axis=1)
    weights = 1.0 / rule.alpha + benefits[own] - rest
    usual = float(np.median(weights))
    scale = usual if usual > 0 else 1.0
    times, added = weights / scale, (rest - np.median(rest)) / scale
    change = np.abs(times - 1.0) + np.abs(added)
    apart = [place for place in np.argsort(-change, kind="stable").tolist() if change[place] > _ALIKE]
    parts = []
    for place in apart[:_MOST_NAMED]:
        sign = "+" if added[place] > 0 else "\N{MINUS SIGN}"
        more = f" {sign} {abs(float(added[place])):.2f}" if abs(added[place]) > _ALIKE else ""
        parts.append(f"{classes[place]!s} \N{MULTIPLICATION SIGN} {float(times[place]):.2f}{more}")
    if len(apart) > _MOST_NAMED:
        parts.append(f"{len(apart) - _MOST_NAMED} more")
    if apart and len(apart) < len(classes):
        parts.append("others \N{MULTIPLICATION SIGN} 1")
    if (np.ptp(others, axis=1) > _ALIKE * scale).any():  # what an answer is worth differs between labels
        parts.append("single confusions have their own weights")
    return ", ".join(parts)


def _levels(levels: dict[str, float]) -> str:
    cuts = [f"{one:.4f}" if math.isfinite(one) else "everything" if one > 0 else "nothing" for one in levels.values()]
    return cuts[0] if len(cuts) == 1 else ", ".join(f"{one} ({name})" for name, one in zip(levels, cuts, strict=True))
