"""Numbers that nobody need ask for: how good scores are, who is on which side, and what deferring rows would buy."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals, parse_goal
from counterpoise.goals.values import combined
from counterpoise.metrics import cvar_loss
from counterpoise.mixtures.cautions import Caution
from counterpoise.runs.evaluator import AskedRules, RunEvaluator, final_estimator, has_class_rules, has_rules
from counterpoise.runs.results import (
    BOUGHT,
    CALIBRATION,
    CALLED,
    CONFUSION,
    DECIDED_ERROR,
    DEFER_RATE,
    DEPLOYED,
    FIRST,
    MIXTURE,
    SCORES,
    called,
    of_class,
)

_BINS = 25  # of a histogram
_TENTHS = 10  # of the rows, in a table of calibration
_MOST_GROUPS = 6  # in histograms: the largest


class Number(NamedTuple):
    """One number of the results table."""

    method: str
    quantity: str
    split: str
    value: float
    settings: str = ""


class ScoreGroup(NamedTuple):
    """A group whose scores are shown, with its thresholds."""

    text: str
    rows: BoolArray
    group: str  # of the rules; none where they tell no groups apart, and all have one threshold


def decision_numbers(judge: RunEvaluator, split: str) -> Iterator[Number]:
    """Yield how many rows of each class a method calls positive, expected where it draws; of no positive class none."""
    positive, part = judge.data.positive, judge.data.splits[split]
    labels, counts = part.labels, np.ones(len(part)) if part.counts is None else part.counts
    for method in (MIXTURE, FIRST, DEPLOYED) if positive is not None else ():
        shares = judge.shares(method, split)
        if shares is None:
            continue
        place = judge.data.classes.tolist().index(positive)
        called = shares[:, place]
        other = np.delete(shares[:, : len(judge.data.classes)], place, axis=1).sum(axis=1)
        is_positive = labels == positive
        cells = {"true positives": (called, is_positive), "false positives": (called, ~is_positive)}
        cells |= {"false negatives": (other, is_positive), "true negatives": (other, ~is_positive)}
        if judge.deferral is not None:
            left = shares[:, -1]
            cells |= {"deferred positives": (left, is_positive), "deferred negatives": (left, ~is_positive)}
        for name, (told, rows) in cells.items():
            yield Number(method, CONFUSION + name, split, float(counts[rows] @ told[rows]))


def class_texts(judge: RunEvaluator) -> dict[str, Any]:
    """Return what classes are called, where there are more than two."""
    if not _are_many(judge):
        return {}
    labels = enumerate(judge.data.classes.tolist())
    return {"classes": [{"name": of_class(place), "text": str(label)} for place, label in labels]}


def class_numbers(judge: RunEvaluator, split: str) -> Iterator[Number]:
    """Yield how many rows of each class a method calls which, expected where it draws, of more than two classes."""
    for method in (MIXTURE, FIRST, DEPLOYED) if _are_many(judge) else ():
        shares = judge.shares(method, split)
        if shares is None:
            continue
        labels, n_classes = (
            np.searchsorted(judge.data.classes, judge.data.splits[split].labels),
            len(judge.data.classes),
        )
        counts = np.zeros((n_classes, shares.shape[1]))
        np.add.at(counts, labels, shares)
        for label, answer in np.argwhere(counts > 0).tolist():
            settings = called(label, answer if answer < n_classes else None)
            yield Number(method, CALLED, split, float(counts[label, answer]), settings)


def _are_many(judge: RunEvaluator) -> bool:
    return len(judge.data.classes) > 2  # noqa: PLR2004 - of two the positive one tells all


def score_numbers(judge: RunEvaluator, split: str) -> Iterator[Number]:
    """Yield how well the first model's scores rank and fit the rows of a split, where rules of scores decide."""
    asked = judge.asked
    if not isinstance(asked, AskedRules) or has_class_rules(judge.model):
        return
    scores = asked.scored(split).scores[:, 0]
    part = judge.data.splits[split]
    is_positive, mass = part.labels == judge.data.positive, np.ones(len(part)) if part.mass is None else part.mass
    if not mass[is_positive].any() or not mass[~is_positive].any():
        return
    yield Number(FIRST, "auc", split, float(roc_auc_score(is_positive, scores, sample_weight=mass)))
    if scores.min() < 0 or scores.max() > 1:  # no probabilities
        return
    yield Number(FIRST, "brier score", split, float(np.average((scores - is_positive) ** 2, weights=mass)))
    for number, rows in enumerate(np.array_split(np.argsort(scores, kind="stable"), _TENTHS), start=1):
        if mass[rows].any():
            for name, values in (("score", scores), ("share", is_positive)):
                mean = float(np.average(values[rows], weights=mass[rows]))
                yield Number(FIRST, CALIBRATION + name, split, mean, f"tenth {number}")


def histogram(judge: RunEvaluator) -> tuple[list[Number], list[dict[str, Any]]]:
    """Return histograms of the scores that rules were chosen on, by group and class, and words with thresholds."""
    asked, split = judge.asked, judge.data.chosen_on
    if not isinstance(asked, AskedRules) or has_class_rules(judge.model) or split not in judge.data.splits:
        return [], []
    rows, told, _, _ = asked.scored(split)
    weights = np.bincount([rule.model for rule in judge.estimator.rules_], judge.estimator.mixture_)
    model = int(weights.argmax())
    scores, is_positive = told[:, model], judge.data.splits[split].labels == judge.data.positive
    edges = _edges(scores)
    numbers: list[Number] = []
    words = []
    for place, panel in enumerate(_panels(judge, rows.groups), start=1):
        name = f"panel {place}"
        words.append({"name": name, "text": panel.text, "low": float(edges[0]), "high": float(edges[-1])})
        words[-1]["rules"] = [
            found
            for rule, share in zip(judge.estimator.rules_, judge.estimator.mixture_.tolist(), strict=True)
            if rule.model == model and share > 0 and (found := _cut(rule, panel.group, share, edges))
        ]
        for kind, chosen in (("positive", is_positive), ("negative", ~is_positive)):
            counts, _ = np.histogram(scores[panel.rows & chosen], edges)
            numbers += [
                Number(name, SCORES + kind, split, float(count), f"bin {number}")
                for number, count in enumerate(counts.tolist(), start=1)
            ]
    return numbers, words


def _cut(rule: Any, group: str, share: float, edges: FloatArray) -> dict[str, float]:
    """Return where a rule cuts the scores of a group, and where it begins to defer; nothing where it cuts nothing."""
    ends = [rule.thresholds[group], (rule.lower or rule.thresholds)[group]]
    if ends[0] == ends[1]:
        return {"threshold": ends[0], "share": share} if np.isfinite(ends[0]) else {}
    upper, lower = np.clip(ends, edges[0], edges[-1]).tolist()  # all above, or all below, is an interval too
    return {"threshold": upper, "lower": lower, "share": share}


def _edges(scores: FloatArray) -> FloatArray:
    low, high = (0.0, 1.0) if scores.min() >= 0 and scores.max() <= 1 else (float(scores.min()), float(scores.max()))
    return np.linspace(low, high if high > low else low + 1.0, _BINS + 1)


def _panels(judge: RunEvaluator, codes: IntArray) -> list[ScoreGroup]:
    """Return the groups that rules tell apart; where they tell none, those that the run names, largest first."""
    groups = judge.estimator.groups_
    if groups.by:
        found = [ScoreGroup(name, codes == place, name) for place, name in enumerate(groups.names)]
    else:
        part = judge.data.splits[judge.data.chosen_on]
        levels: AnyArray = np.zeros(len(part), dtype=np.int64)
        names = ["all rows"]
        if part.groups:
            table = part.table()
            levels, names = combined({name: table.levels(name) for name in part.groups}, len(part))
        found = [ScoreGroup(name, levels == place, groups.names[0]) for place, name in enumerate(names)]
    largest = sorted(found, key=lambda panel: -np.count_nonzero(panel.rows))[:_MOST_GROUPS]
    return [panel for panel in found if any(panel is one for one in largest)]


_RATES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)  # of a curve


def error_and_deferral(judge: RunEvaluator, method: str, split: str, losses: FloatArray) -> dict[str, float]:
    """Return how many rows are decided wrongly, deferred, and wrong among the decided, given the losses of all."""
    weights, deferred = judge.data.splits[split].mass, judge.deferred(method, split)
    mean = float(np.average(losses, weights=weights))
    if deferred is None or judge.deferral is None:
        return {"error": mean}
    left = float(np.average(deferred, weights=weights))
    error = max(mean - judge.deferral.cost * left, 0.0)
    decided = {DECIDED_ERROR: error / (1.0 - left)} if left < 1 else {}
    return {"error": error, DEFER_RATE: left, **decided}


def deferral_curve(judge: RunEvaluator, splits: list[str]) -> Iterator[Number]:
    """Yield what the best mixtures that defer at most so many rows do on some splits; nothing is trained.

    The tail is that of the settings. Goals on the rate of all deferred rows make room for those of the curve.
    """
    if judge.deferral is None or not has_rules(judge.model):
        return
    for rate in _rates(judge):
        chosen = _limited(judge, rate)
        for split in splits if chosen is not None else ():
            for name, value in _numbers(chosen, split).items():
                yield Number(MIXTURE, BOUGHT + name, split, value, f"rate={rate!r}")


def _numbers(judge: Any, split: str) -> dict[str, float]:
    losses, weights = judge.row_losses(split)[MIXTURE], judge.data.splits[split].mass
    tail = cvar_loss(losses, float(judge.settings.alpha), weights)
    return {"tail": tail, **error_and_deferral(judge, MIXTURE, split, losses)}


def _limited(judge: RunEvaluator, rate: float) -> RunEvaluator | None:
    """Return what judges the best mixture that defers at most so many rows; None where there is none."""
    limit, model = _limit(rate), final_estimator(judge.model)
    goals = [goal for goal in model.goals_ if goal.with_confidence(None).with_bound(rate) != limit]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        try:
            chosen = model.rebalance(goals=[*goals, limit])
        except InfeasibleGoals:
            return None
    return RunEvaluator(judge.settings, judge.data, chosen, ())


def _limit(rate: float) -> Goal:
    return parse_goal(f"defer_rate(train) <= {rate!r}")


def _rates(judge: RunEvaluator) -> list[float]:
    """Return the rates of a curve, the bound that was asked for among them."""
    goals = [goal.with_confidence(None) for goal in judge.estimator.goals_]
    asked = [goal.bound for goal in goals if goal == _limit(float(goal.bound))]
    return sorted({*_RATES, *map(float, asked)})
