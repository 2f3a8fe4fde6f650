"""Every number about a fitted run, as rows of the results table, and the words that belong to them."""

import math
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from counterpoise.auditing.audit import GoalAudit
from counterpoise.goals import Goal, Rate
from counterpoise.metrics import RateTable, cvar_curve, cvar_loss
from counterpoise.rules.cautions import Caution
from counterpoise.rules.choosing import FIXED
from counterpoise.rules.class_scores.rules import SOFT, RatioRule, TierRule
from counterpoise.rules.tradeoff import TradeoffPoint, tradeoff
from counterpoise.runs import results, scoring
from counterpoise.runs.evaluator import (
    RunEvaluator,
    has_class_rules,
    has_rules,
    looked_at,
    seen_by_last,
    shares_rows,
    some_rows,
)
from counterpoise.runs.methods import GOALS, METHODS, describe, kind_of, models_of
from counterpoise.runs.segments import find_segments, why_no_segments
from counterpoise.runs.settings import MethodSettings, RunSettings
from counterpoise.theory.risks import CVaR, Risk, WorstGroup

_MOST_NAMED = 4  # classes, or groups, of a rule
_ALIKE = 0.02  # part by which weights may differ and still be told as the same
_STEPS = ("first", "second", "third")


def rule_text(rule: Any, models: Sequence[str], classes: Sequence[Any] = (), groups: Sequence[str] = ()) -> str:
    """Return a rule in words, given what models, classes and the groups that it looks at are called."""
    if isinstance(rule, TierRule):
        return f"{models[rule.model]}: {_tiers(rule, classes, groups)}"
    if isinstance(rule, RatioRule):
        highest = float(rule.shares.max())
        second = f", or the second with a chance of up to {highest:.2g} where it is nearly as likely" if highest else ""
        return f"{models[rule.model]}: the likeliest class{second}"
    told = f"{models[rule.model]} above {_levels(rule.thresholds)}"
    return told if rule.lower is None else f"{told}; deferred above {_levels(rule.lower)}"


def _tiers(rule: TierRule, classes: Sequence[Any], groups: Sequence[str]) -> str:
    told = [_weights(rule, group, classes) for group in range(len(rule.benefits))]
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


def _weights(rule: TierRule, group: int, classes: Sequence[Any]) -> str:
    """Return how much the probability of each class counts beside that of the usual one, and what is added to it.

    The benefit of a class is taken apart into its own part and a rest. Those that differ most from the usual one come
    first; nothing is said where all are alike.
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
    told = []
    for place in apart[:_MOST_NAMED]:
        sign = "+" if added[place] > 0 else "\N{MINUS SIGN}"
        more = f" {sign} {abs(float(added[place])):.2f}" if abs(added[place]) > _ALIKE else ""
        told.append(f"{classes[place]!s} \N{MULTIPLICATION SIGN} {float(times[place]):.2f}{more}")
    if len(apart) > _MOST_NAMED:
        told.append(f"{len(apart) - _MOST_NAMED} more")
    if apart and len(apart) < len(classes):
        told.append("others \N{MULTIPLICATION SIGN} 1")
    if (np.ptp(others, axis=1) > _ALIKE * scale).any():  # what an answer is worth differs between labels
        told.append("single confusions apart")
    return ", ".join(told)


def _levels(levels: dict[str, float]) -> str:
    told = [f"{one:.4f}" if math.isfinite(one) else "everything" if one > 0 else "nothing" for one in levels.values()]
    return told[0] if len(told) == 1 else ", ".join(f"{one} ({name})" for name, one in zip(levels, told, strict=True))


_MOST_EXPLAINED = 200  # rows among which examples are looked for
_ALPHAS = (*np.geomspace(0.01, 1.0, 30), 0.05, 0.1, 0.2, 0.5)  # a smooth curve, and round numbers to quote
_LONG = re.compile(r"\d+\.\d{5,}")  # number in a text
_POINTS, _POINTS_OF_MANY = 21, 5  # of a frontier; fewer where rules must be found for each
_FRONTIER_TOL = 1e-4  # gap of its points, of losses from 0 to 1: a figure of four decimals shows no less
_NEAR = 0.1  # on either side of a bound, where the range of those that can be met is not known beforehand
_COUNTED = "the rows were read in parts, and only counts of them were kept"


class Measured(NamedTuple):
    """Rows of the results table, and texts by kind."""

    rows: list[results.ResultRow]
    texts: dict[str, Any]
    drawn: list[results.ResultRow] = []  # noqa: RUF012 - of the drawn decisions, which depend on the key of the draws


def measure_all(judge: RunEvaluator, drawn: RunEvaluator | None = None) -> Measured:
    """Return all rows and texts of a run; ``drawn`` judges the drawn decisions, where other rows tell them."""
    data, judged = judge.data, judge.data.judged
    rows = [judge.row("data", "columns", "", len(data.columns.features))]
    for split in data.splits:
        rows += [*_data_rows(judge, split), *loss_rows(judge, split), *_objective_rows(judge, split)]
        rows += goal_rows(judge, split)
    segments, words = _segment_rows(judge, judged)
    bars, panels = scoring.histogram(judge)
    rates = judge.rates(judged)
    rows += [*_group_rows(judge, judged, rates), *_frontier_rows(judge), *_share_rows(judge, judged), *segments]
    for numbers in (scoring.decision_numbers, scoring.class_numbers, scoring.score_numbers):
        rows += numbers(judge, judged)
    rows += bars
    rows += scoring.deferral_curve(judge, list(dict.fromkeys([data.chosen_on, judged])))
    texts = {"segments": words, "scores": panels, "why": _reasons(judge, rows, judged)}
    texts["examples"] = _examples(judge, judged)
    return Measured(rows, _texts(judge, rates) | texts, list(rows_of_drawn(judge, judged, drawn or judge)))


def _examples(judge: RunEvaluator, split: str) -> list[str]:
    """Return decisions of one rule in words: those farthest from the threshold on either side, and the nearest."""
    part = judge.data.splits[split]
    if not has_rules(judge.model) or len(judge.estimator.rules_) > 1 or part.counts is not None:
        return []
    rows = np.arange(min(len(part), _MOST_EXPLAINED))
    given = {name: some_rows(value, rows) for name, value in looked_at(part).items()}
    found = judge.estimator.explain(seen_by_last(judge.model, part.X.iloc[rows]), **given)
    order = sorted((one for one in found if np.isfinite(one.change)), key=lambda one: one.distance)
    shown = [order[-1], min(order, key=lambda one: abs(one.change)), order[0]] if order else []
    return list(dict.fromkeys(map(str, shown)))


def rows_of_drawn(judge: RunEvaluator, split: str, drawn: RunEvaluator) -> Iterator[results.ResultRow]:
    """Yield the error, the tail and the goals of the drawn decisions, if any: with another key others are drawn."""
    if not judge.draws(results.MIXTURE, [split]):
        return
    said, part = drawn.decisions(split), drawn.data.splits[split]
    losses, alpha = drawn.lost(said, split), float(judge.settings.alpha)
    yield judge.row(results.MIXTURE, "error", split, np.average(said != part.labels, weights=part.mass))
    yield judge.row(results.MIXTURE, "cvar", split, cvar_loss(losses, alpha, part.mass), alpha=alpha)
    if not judge.goals:
        return
    for number, found in enumerate(drawn.audit_drawn(split, judge.goals), start=1):
        for name, value in _standing(found).items():
            yield judge.row(results.MIXTURE, results.of_goal(name), split, value, settings=f"goal {number}")


def measure_answers(judge: RunEvaluator, split: str, words: dict[str, Any], shares: Sequence[float] = ()) -> Measured:
    """Return all rows and texts about answers of which nothing else is known, but the shares of rules that gave them.

    ``words`` are further texts, such as those of the rules.
    """
    rates = judge.rates(split)
    rows = [*_data_rows(judge, split), *loss_rows(judge, split), *goal_rows(judge, split)]
    rows += _group_rows(judge, split, rates)
    rows += [judge.row(f"model {number}", "share", "", share) for number, share in enumerate(shares, start=1)]
    rows += [*scoring.decision_numbers(judge, split), *scoring.class_numbers(judge, split)]
    data = judge.data
    positive = "" if data.positive is None else f", positive class {data.positive}"
    reasons = {"frontier": "the answers came without a model that could be cut at another threshold"}
    texts = {
        "goals": _goal_texts(judge),
        "groups": _named("group", (found.group for found in rates), start=0),
        "objective": {"kind": results.OWN},
        **_deferral_text(judge),
        **scoring.class_texts(judge),
        "data": [f"{data.name}: {data.splits[split].n_rows} rows; target {judge.settings.data.target}{positive}."],
        "why": reasons | {"segments": "the answers came without the tail that counts"},
    }
    return Measured(rows, texts | words, list(rows_of_drawn(judge, split, judge)))


def _data_rows(judge: RunEvaluator, split: str) -> Iterator[results.ResultRow]:
    """Yield how many rows a split has, and of which classes."""
    part = judge.data.splits[split]
    yield judge.row("data", "rows", split, part.n_rows)
    for label in judge.data.classes:
        yield judge.row("data", "class share", split, np.average(part.labels == label, weights=part.counts), str(label))


def loss_rows(judge: RunEvaluator, split: str) -> Iterator[results.ResultRow]:
    """Yield the error, the CVaR of the loss at many tail fractions and the share of deferred rows, by method."""
    weights = judge.data.splits[split].mass
    alphas = np.unique([*_ALPHAS, float(judge.settings.alpha)])
    alphas[-1] = 1.0
    for method, losses in judge.row_losses(split).items():
        told = scoring.error_and_deferral(judge, method, split, losses)
        for quantity, value in told.items():
            yield judge.row(method, quantity, split, value)
        tails = {"cvar": cvar_curve(losses, alphas, weights)}
        if method == results.MIXTURE and judge.draws(method, [split]):
            # Once decisions are drawn each row is wrong, deferred or right. How many are is known before the draw:
            # without deferral the tail's loss is min(1, error / alpha), whatever the mixture.
            wrong, left = told["error"], told.get(results.DEFER_RATE, 0.0)
            cost = 0.0 if judge.deferral is None else judge.deferral.cost
            tails[results.REALISED] = cvar_curve([1.0, cost, 0.0], alphas, [wrong, left, max(1.0 - wrong - left, 0.0)])
        for quantity, values in tails.items():
            for alpha, value in zip(alphas.tolist(), values.tolist(), strict=True):
                yield judge.row(method, quantity, split, value, alpha=alpha)


def _objective_rows(judge: RunEvaluator, split: str) -> Iterator[results.ResultRow]:
    """Yield what was made small, where it is a rate or the worst group's loss, in expectation over the draws."""
    methods = (results.MIXTURE, results.FIRST, results.DEPLOYED)
    values: dict[str, float | None] = {}
    if isinstance(judge.problem, Rate):
        values = {method: judge.expected_objective(judge.problem, method, split) for method in methods}
    elif isinstance(judge.problem, Risk) and _kind(judge) != results.CVAR:
        found = judge.row_losses(split)
        values = {
            method: judge.risk_value(judge.problem, found[method], split) for method in methods if method in found
        }
    for method, value in values.items():
        if value is not None:
            yield judge.row(method, "objective", split, value)


def _kind(judge: RunEvaluator) -> str:
    """Return which kind of thing was made small, as the report tells them apart."""
    problem = judge.problem
    if isinstance(problem, CVaR) and problem.alpha == judge.settings.alpha:
        return results.CVAR
    kinds = {Rate: results.RATE, WorstGroup: results.WORST_GROUP, Risk: results.RISK}
    return next((word for kind, word in kinds.items() if isinstance(problem, kind)), results.OWN)


def goal_rows(judge: RunEvaluator, split: str, unasked: Collection[str] = ()) -> Iterator[results.ResultRow]:
    """Yield how each goal stands on a split, but for some by name, for the model and those it is compared with."""
    numbered = {f"goal {number}": goal for number, goal in enumerate(judge.goals, start=1)}
    asked = {name: goal for name, goal in numbered.items() if name not in unasked}
    for method in (results.MIXTURE, results.FIRST, results.DEPLOYED):
        if not asked or not judge.can_say(method, split, asked.values()):
            continue
        for name, found in zip(asked, judge.audit(split, asked.values(), method), strict=True):
            for part, value in _standing(found).items():
                if method == results.MIXTURE or part in {"estimate", "violation"}:
                    yield judge.row(method, results.of_goal(part), split, value, settings=name)


def _standing(found: GoalAudit) -> dict[str, float]:
    """Return the numbers of a goal."""
    return {
        **{part: getattr(found, part) for part in ("estimate", "low", "high", "bound", "margin")},
        "verdict": results.VERDICTS[found.verdict],
        "violation": found.violation,
        "rows": sum(count for _, count in found.counts),
    }


def _group_rows(judge: RunEvaluator, split: str, rates: RateTable) -> Iterator[results.ResultRow]:
    """Yield the rates of every group, and out of how many rows each is."""
    for place, found in enumerate(rates):
        values: dict[str, float] = {results.of_group(results.N_SAMPLES): found.n_samples}
        values |= {results.of_group(rate): value for rate, value in found.rates.items() if not np.isnan(value)}
        values |= {results.trials_of_group(rate): count for rate, count in found.trials.items() if count}
        for rate, ends in found.bounds.items():
            values |= {results.ends_of_group(rate)[side]: end for side, end in enumerate(ends) if not np.isnan(end)}
        for name, value in values.items():
            yield judge.row(results.MIXTURE, name, split, value, settings=f"group {place}")


def _frontier_rows(judge: RunEvaluator) -> Iterator[results.ResultRow]:
    """Yield the least of what was made small for many bounds of each goal; alpha where it is the tail's loss."""
    if not judge.is_mixture:
        return
    alpha = judge.estimator.alpha_ if _kind(judge) == results.CVAR else None
    for number, goal in enumerate(judge.estimator.goals_, start=1):
        for bound, point in sorted(_frontier(judge, goal).items()):
            where: dict[str, Any] = {"alpha": alpha, "settings": f"goal {number} bound={bound!r}"}
            for name in ("value", "lower"):
                quantity = f"frontier {name}"
                yield judge.row(results.MIXTURE, quantity, judge.data.chosen_on, getattr(point, name), **where)


def _frontier(judge: RunEvaluator, goal: Goal) -> dict[float, TradeoffPoint]:
    """Return points by their bound, the goal's own among them."""
    options: dict[str, Any] = {"n_points": _POINTS, "tol": _FRONTIER_TOL}
    estimator, is_of_many = judge.estimator, has_class_rules(judge.model)
    if goal.is_ratio or is_of_many:
        n_points = _POINTS_OF_MANY if is_of_many else _POINTS
        near = np.clip(goal.bound + np.linspace(-_NEAR, _NEAR, n_points), 0.0, None)
        points = [*tradeoff(estimator, goal, near, **options)]
    else:
        points = [*tradeoff(estimator, goal, **options), *tradeoff(estimator, goal, [goal.bound], **options)]
    return {point.bound: point for point in points if not np.isnan(point.value)}


def _segment_rows(judge: RunEvaluator, split: str) -> tuple[list[results.ResultRow], list[dict[str, str]]]:
    """Return which segments of a split the tail is made of: their numbers, and their words."""
    alpha = float(judge.settings.alpha)
    segments = find_segments(judge.data.splits[split], judge.row_losses(split)[results.MIXTURE], alpha)
    rows = []
    for number, one in enumerate(segments, start=1):
        parts = {"tail share of segment": one.share, "tail part": one.part, "segment rows": one.n_rows}
        for name, value in (parts | {"tail lift": one.lift}).items():
            rows.append(judge.row(results.MIXTURE, name, split, value, settings=f"segment {number}", alpha=alpha))
    return rows, _named("segment", (one.text for one in segments))


def _share_rows(judge: RunEvaluator, split: str) -> Iterator[results.ResultRow]:
    """Yield the share of each model, or rule, in the mixture and its error."""
    if not judge.is_mixture:
        return
    shares, errors = judge.estimator.mixture_.tolist(), judge.asked.member_errors(split)
    for number, (share, error) in enumerate(zip(shares, errors, strict=True), start=1):
        yield judge.row(f"model {number}", "share", "", share)
        yield judge.row(f"model {number}", "error", split, error)


def _texts(judge: RunEvaluator, rates: RateTable) -> dict[str, Any]:
    """Return the words that belong to the rows."""
    data, settings = judge.data, judge.settings
    counts = ", ".join(f"{part.n_rows} {name}" for name, part in data.splits.items())
    positive = "" if data.positive is None else f", positive class {data.positive}"
    kinds = {"numeric": len(data.columns.numeric), "categorical": len(data.columns.categorical)}
    # the split on which the draws meet the goals by construction, where there is one
    is_met = judge.is_drawn or (judge.is_mixture and judge.estimator.decision == FIXED)
    met_on = data.chosen_on if is_met and judge.estimator.goals_ and judge.problem is not None else ""
    return {
        "goals": _goal_texts(judge),
        "groups": _named("group", (found.group for found in rates), start=0),
        "models": _model_texts(judge),
        "method": _method_text(settings.method),
        "objective": _objective_text(judge),
        **_deferral_text(judge),
        **scoring.class_texts(judge),
        **_rule_texts(judge),
        "met_on": met_on,
        "room_cost": _room_cost(judge),
        "data": [
            f"{data.name}: {counts} rows; target {settings.data.target}{positive}.",
            f"Features: {' and '.join(f'{count} {kind}' for kind, count in kinds.items() if count)}.",
            *_weight_words(settings),
        ],
    }


def _room_cost(judge: RunEvaluator) -> float | None:
    """Return by how much room for the audit raises what is made small; None where there is none."""
    if not judge.is_mixture or not any(entry["aimed"] is not None for entry in _goal_texts(judge)):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        as_asked = judge.estimator.rebalance(goals=judge.goals)
    return max(float(judge.estimator.value_ - as_asked.value_), 0.0)  # rules that are found, not proven, may be worse


def _goal_texts(judge: RunEvaluator) -> list[dict[str, Any]]:
    aimed = getattr(judge.estimator, "goals_", ())
    return [
        {
            "name": f"goal {number}",
            "text": str(goal.with_confidence(None)),
            "confidence": judge.settings.confidence if goal.confidence is None else goal.confidence,
            "aimed": problem.bound if problem is not None and problem.bound != goal.bound else None,
            **_unanswered(judge, number - 1),
        }
        for number, (goal, problem) in enumerate(zip_longest(judge.goals, aimed[: len(judge.goals)]), start=1)
    ]


def _unanswered(judge: RunEvaluator, place: int) -> dict[str, dict[str, str]]:
    """Return by split why its rows cannot answer a goal, where some cannot."""
    splits = [split for split in judge.data.splits if judge.can_say(results.MIXTURE, split, judge.goals)]
    found = {split: judge.audit(split, judge.goals)[place] for split in splits}
    notes = {split: one.note for split, one in found.items() if not one.has_estimate}
    return {"unanswered": notes} if notes else {}


def _objective_text(judge: RunEvaluator) -> dict[str, str]:
    kind, problem = _kind(judge), judge.problem
    # with the radius that was calibrated
    bound = judge.estimator.risk_ if judge.is_mixture and kind == results.RISK else problem
    written = _LONG.sub(lambda number: f"{float(number[0]):.4g}", str(bound))
    text = ", ".join(problem.names) if isinstance(problem, WorstGroup) else written
    is_told = text and kind in {results.RATE, results.RISK, results.WORST_GROUP}
    return {"kind": kind} | ({"text": text} if is_told else {})


def _deferral_text(judge: RunEvaluator) -> dict[str, Any]:
    """Return what a deferred row costs and is called, where some are."""
    found = judge.deferral
    return {} if found is None else {"deferral": {"cost": found.cost, "label": str(found.label)}}


def _model_texts(judge: RunEvaluator) -> list[dict[str, str]]:
    asked = judge.settings.method
    if not judge.is_mixture:
        return []
    rounds = [f"round {number}" for number in range(1, len(judge.estimator.estimators_) + 1)]
    models = [one.title or kind_of(one).title for one in models_of(asked)] or rounds
    if has_rules(judge.model):
        rules = judge.estimator.rules_
        names = judge.estimator.classes_.tolist(), judge.estimator.groups_.names
        words = [(f"rule {number}", rule_text(rule, models, *names)) for number, rule in enumerate(rules, start=1)]
    elif asked.models:
        words = list(zip(models, map(describe, asked.models), strict=True))
    else:
        learner = describe(asked.learner) if asked.learner else "histogram tree"
        words = [(one, learner) for one in rounds]
    return [
        {"name": f"model {number}", "title": title, "description": text}
        for number, (title, text) in enumerate(words, start=1)
    ]


def _rule_texts(judge: RunEvaluator) -> dict[str, Any]:
    """Return whether rules of class probabilities draw answers, and among which of them the mixture is the best."""
    if not has_class_rules(judge.model):
        return {}
    chosen = zip(judge.estimator.rules_, judge.estimator.mixture_.tolist(), strict=True)
    are_shared = judge.is_drawn and any(shares_rows(rule) for rule, share in chosen if share > 0)
    return {"shares_rows": are_shared, "certificate": judge.estimator.certificate_}


def _method_text(asked: MethodSettings) -> str:
    """Return the method in words; its objective has its own."""
    title = METHODS[asked.name].title
    others = {name: value for name, value in asked.parameters.items() if name != "objective"}
    parameters = describe(asked.model_copy(update={"parameters": others})).removeprefix(title)
    models = f" of {len(asked.models)} models" if asked.models else ""
    if asked.name == GOALS:
        models = f": {', '.join(one.title or kind_of(one).title for one in models_of(asked))}"
    learner = f", base learner: {describe(asked.learner)}" if asked.learner else ""
    return title + models + parameters + learner


def _weight_words(settings: RunSettings) -> Iterator[str]:
    """Yield what the verdicts on weighted rows rest on."""
    parts = {"": settings.data, **{f" of {name}": one for name, one in settings.datasets.items()}}
    for where, one in parts.items():
        if one.largest_weight is not None:
            most = f"none is taken to weigh more than {one.largest_weight:g}"
            yield f"Rows{where} are weighted by {settings.data.weights}; {most}."


def _reasons(judge: RunEvaluator, rows: Iterable[results.ResultRow], judged: str) -> dict[str, str]:
    """Return for each part of a report that has no rows why it has none."""
    known: set[str] = {row.quantity for row in rows}
    found: dict[str, str] = {}
    if "frontier value" not in known:
        found["frontier"] = _why_no_frontier(judge)
    if "tail part" not in known:
        none_stands_out = "no segment that a few conditions describe has notably more of them than the other rows"
        part = judge.data.splits[judged]
        why = why_no_segments(part.n_rows, float(judge.settings.alpha))
        found["segments"] = why or (none_stands_out if part.counts is None else _COUNTED)
    return found


def _why_no_frontier(judge: RunEvaluator) -> str:
    if not judge.goals:
        return "no goals were asked for"
    if not judge.is_mixture:
        return "it needs a mixture, whose models can be weighed anew for another bound without training"
    if not judge.estimator.goals_:
        return "the goals are judged only; the mixture was chosen without them"
    return "no mixture of these models meets the bounds tried"


def _named(kind: str, texts: Iterable[str], *, start: int = 1) -> list[dict[str, str]]:
    return [{"name": f"{kind} {number}", "text": text} for number, text in enumerate(texts, start=start)]
