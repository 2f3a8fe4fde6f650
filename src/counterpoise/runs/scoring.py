"""Numbers that nobody need ask for: how good scores are, who is on which side, and what deferring rows would buy."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals, parse_goal
from counterpoise.goals.tables import combine_groups
from counterpoise.metrics import cvar_loss
from counterpoise.rules.cautions import Caution
from counterpoise.runs import results
from counterpoise.runs.evaluator import AskedRules, RunEvaluator, has_class_rules, has_rules

_PAIR = 2  # classes, of which the positive one tells all
_BINS = 25  # of a histogram
_TENTHS = 10  # of the rows, in a table of calibration
_MOST_GROUPS = 6  # in histograms: the largest


def decision_numbers(judge: RunEvaluator, split: str) -> Iterator[results.ResultRow]:
    """Yield how many rows of each class a method calls positive, expected where it draws; of no positive class none."""
    positive, part, classes = judge.data.positive, judge.data.splits[split], judge.data.classes.tolist()
    if positive is None:
        return
    place, is_positive = classes.index(positive), part.labels == positive
    counts = np.ones(len(part)) if part.counts is None else part.counts
    for method, shares in judge.all_shares(split).items():
        said = shares[:, place]
        other = np.delete(shares[:, : len(classes)], place, axis=1).sum(axis=1)
        cells = {"true positives": (said, is_positive), "false positives": (said, ~is_positive)}
        cells |= {"false negatives": (other, is_positive), "true negatives": (other, ~is_positive)}
        if judge.deferral is not None:
            left = shares[:, -1]
            cells |= {"deferred positives": (left, is_positive), "deferred negatives": (left, ~is_positive)}
        for name, (told, rows) in cells.items():
            yield judge.row(method, results.CONFUSION + name, split, counts[rows] @ told[rows])


def class_texts(judge: RunEvaluator) -> dict[str, Any]:
    """Return what classes are called, where there are more than two."""
    if len(judge.data.classes) <= _PAIR:
        return {}
    labels = enumerate(judge.data.classes.tolist())
    return {"classes": [{"name": results.of_class(place), "text": str(label)} for place, label in labels]}


def class_numbers(judge: RunEvaluator, split: str) -> Iterator[results.ResultRow]:
    """Yield how many rows of each class a method calls which, expected where it draws, of more than two classes."""
    n_classes = len(judge.data.classes)
    labels = np.searchsorted(judge.data.classes, judge.data.splits[split].labels)
    for method, shares in judge.all_shares(split).items() if n_classes > _PAIR else ():
        counts = np.zeros((n_classes, shares.shape[1]))
        np.add.at(counts, labels, shares)
        for label, answer in np.argwhere(counts > 0).tolist():
            settings = results.called(label, answer if answer < n_classes else None)
            yield judge.row(method, results.CALLED, split, counts[label, answer], settings)


def score_numbers(judge: RunEvaluator, split: str) -> Iterator[results.ResultRow]:
    """Yield how well the first model's scores rank and fit the rows of a split, where rules of scores decide."""
    asked = judge.asked
    if not isinstance(asked, AskedRules) or has_class_rules(judge.model):
        return
    scores = asked.scored(split)[1][:, 0]
    part = judge.data.splits[split]
    is_positive, mass = part.labels == judge.data.positive, np.ones(len(part)) if part.mass is None else part.mass
    if not mass[is_positive].any() or not mass[~is_positive].any():
        return
    yield judge.row(results.FIRST, "auc", split, roc_auc_score(is_positive, scores, sample_weight=mass))
    if scores.min() < 0 or scores.max() > 1:  # no probabilities
        return
    yield judge.row(results.FIRST, "brier score", split, np.average((scores - is_positive) ** 2, weights=mass))
    for number, rows in enumerate(np.array_split(np.argsort(scores, kind="stable"), _TENTHS), start=1):
        if mass[rows].any():
            for name, values in (("score", scores), ("share", is_positive)):
                mean = np.average(values[rows], weights=mass[rows])
                yield judge.row(results.FIRST, results.CALIBRATION + name, split, mean, f"tenth {number}")


def histogram(judge: RunEvaluator) -> tuple[list[results.ResultRow], list[dict[str, Any]]]:
    """Return histograms of the scores that rules were chosen on, by group and class, and words with thresholds."""
    asked, split = judge.asked, judge.data.chosen_on
    if not isinstance(asked, AskedRules) or has_class_rules(judge.model) or split not in judge.data.splits:
        return [], []
    rows, told = asked.scored(split)
    weights = np.bincount([rule.model for rule in judge.estimator.rules_], judge.estimator.mixture_)
    model = int(weights.argmax())
    scores, is_positive = told[:, model], judge.data.splits[split].labels == judge.data.positive
    # probabilities have the whole range from 0 to 1
    low, high = (0.0, 1.0) if scores.min() >= 0 and scores.max() <= 1 else (float(scores.min()), float(scores.max()))
    edges = np.linspace(low, high if high > low else low + 1.0, _BINS + 1)
    shares = zip(judge.estimator.rules_, judge.estimator.mixture_.tolist(), strict=True)
    used = [(rule, share) for rule, share in shares if rule.model == model and share > 0]
    numbers: list[results.ResultRow] = []
    words = []
    for place, (text, inside, group) in enumerate(_groups_shown(judge, rows.groups), start=1):
        name = f"panel {place}"
        cuts = [found for rule, share in used if (found := _cut(rule, group, share, edges))]
        words.append({"name": name, "text": text, "low": float(edges[0]), "high": float(edges[-1]), "rules": cuts})
        for kind, chosen in (("positive", is_positive), ("negative", ~is_positive)):
            counts, _ = np.histogram(scores[inside & chosen], edges)
            numbers += [
                judge.row(name, results.SCORES + kind, split, count, f"bin {number}")
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


def _groups_shown(judge: RunEvaluator, codes: IntArray) -> list[tuple[str, BoolArray, str]]:
    """Return the largest groups that rules tell apart, or else those that the run names: text, rows, group of rules."""
    groups, part = judge.estimator.groups_, judge.data.splits[judge.data.chosen_on]
    names = list(groups.names)
    if not groups.by:
        codes, names = np.zeros(len(part), dtype=np.int64), ["all rows"]
        if part.groups:
            table = part.table()
            codes, names = combine_groups({name: table.levels(name) for name in part.groups}, len(part))
    sizes = np.array([np.count_nonzero(codes == place) for place in range(len(names))])
    largest = sorted(np.argsort(-sizes, kind="stable")[:_MOST_GROUPS].tolist())
    return [(names[place], codes == place, names[place] if groups.by else groups.names[0]) for place in largest]


_RATES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)  # of a curve


def error_and_deferral(judge: RunEvaluator, method: str, split: str, losses: FloatArray) -> dict[str, float]:
    """Return how many rows are decided wrongly, deferred, and wrong among the decided, given the losses of all."""
    weights, deferred = judge.data.splits[split].mass, judge.deferred(method, split)
    mean = float(np.average(losses, weights=weights))
    if deferred is None or judge.deferral is None:
        return {"error": mean}
    left = float(np.average(deferred, weights=weights))
    error = max(mean - judge.deferral.cost * left, 0.0)
    decided = {results.DECIDED_ERROR: error / (1.0 - left)} if left < 1 else {}
    return {"error": error, results.DEFER_RATE: left, **decided}


def deferral_curve(judge: RunEvaluator, splits: list[str]) -> Iterator[results.ResultRow]:
    """Yield what the best mixtures that defer at most so many rows do on some splits; nothing is trained.

    The tail is that of the settings. Goals on the rate of all deferred rows make room for those of the curve.
    """
    if judge.deferral is None or not has_rules(judge.model):
        return
    model = judge.estimator

    def limit(rate: float) -> Goal:
        return parse_goal(f"defer_rate(train) <= {rate!r}")

    asked = [float(goal.bound) for goal in model.goals_ if goal.with_confidence(None) == limit(float(goal.bound))]
    for rate in sorted({*_RATES, *asked}):
        goals = [goal for goal in model.goals_ if goal.with_confidence(None).with_bound(rate) != limit(rate)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Caution)
            try:
                chosen = RunEvaluator(judge.settings, judge.data, model.rebalance(goals=[*goals, limit(rate)]), ())
            except InfeasibleGoals:
                continue
        for split in splits:
            losses = chosen.row_losses(split)[results.MIXTURE]
            tail = cvar_loss(losses, float(judge.settings.alpha), judge.data.splits[split].mass)
            for name, value in {"tail": tail, **error_and_deferral(chosen, results.MIXTURE, split, losses)}.items():
                yield judge.row(results.MIXTURE, results.BOUGHT + name, split, value, f"rate={rate!r}")
