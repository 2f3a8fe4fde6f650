"""Every number about a fitted run, as one ``RunResult``."""

import math
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.auditing.audit import Audit, GoalAudit, add_confidence, audit_predictions
from counterpoise.goals import (
    Dataset,
    Goal,
    InfeasibleGoals,
    Rate,
    Ratio,
    Table,
    as_goals,
    as_objective,
    error_rate,
    parse_goal,
)
from counterpoise.goals.binding import prepare
from counterpoise.goals.rates import TABLE_METRICS, is_maximized
from counterpoise.goals.tables import combine_groups
from counterpoise.metrics import cvar_curve, cvar_loss, rate_table
from counterpoise.rules.cautions import Caution
from counterpoise.rules.choosing import FIXED, groups_by, row_count
from counterpoise.rules.options import Deferral
from counterpoise.rules.rows import groups_of
from counterpoise.rules.tradeoff import tradeoff
from counterpoise.runs import result, results
from counterpoise.runs.data import Data
from counterpoise.runs.decisions import (
    RowDecisions,
    decide_rows,
    decision_inputs,
    deferral_of,
    final_estimator,
    has_class_rules,
    has_rules,
    is_drawn,
    label_losses,
    mixes,
    seen_by_last,
    shares_rows,
    some_rows,
)
from counterpoise.runs.methods import GOALS, METHODS, describe, kind_of, models_of
from counterpoise.runs.results import DEPLOYED, FIRST, MIXTURE, TRAIN
from counterpoise.runs.rule_words import rule_text
from counterpoise.runs.segments import find_segments, why_no_segments
from counterpoise.runs.settings import MethodSettings, RunSettings
from counterpoise.theory.guarantees import cvar_upper_bound
from counterpoise.theory.risks import CVaR, Risk, RiskRows, WorstGroup

_ALPHAS = (*np.geomspace(0.01, 1.0, 30), 0.05, 0.1, 0.2, 0.5)  # a smooth curve, and round numbers to quote
_POINTS, _POINTS_OF_MANY = 21, 5  # of a frontier; fewer where rules must be found for each
_FRONTIER_TOL = 1e-4  # gap of its points, of losses from 0 to 1: a figure of four decimals shows no less
_NEAR = 0.1  # on either side of a bound, where the range of those that can be met is not known beforehand
_LIMITS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)  # on deferred rows
_BINS = 25  # of a histogram
_TENTHS = 10  # of the rows, in a table of calibration
_MOST_GROUPS = 6  # in histograms: the largest
_MOST_EXPLAINED = 200  # rows among which examples are looked for
_LONG = re.compile(r"\d+\.\d{5,}")  # number in a text
_DEFERRED = 2  # beside no and yes
_ROUNDING = 1e-9  # of a probability that is 1
_RISK = 0.05  # that the tail of new rows is above its bound


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A run with its model; the decisions about each dataset are computed once."""

    settings: RunSettings
    data: Data
    model: Any
    goals: tuple[Goal, ...]
    plain: Any = None
    deferral: Deferral | None = None
    known: dict[str, RowDecisions] = field(default_factory=dict)
    audits: dict[Any, Audit] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: RunSettings, data: Data, model: Any, goals: Any, plain: Any = None) -> "Evaluation":
        """Return the evaluation of a fitted model."""
        return cls(settings, data, model, tuple(as_goals(goals)), plain, deferral_of(model))

    def on(self, name: str) -> RowDecisions:
        """Return what is decided about the rows of a split or an extra dataset."""
        if name not in self.known:
            self.known[name] = decide_rows(self.model, self.data, name, self.plain)
        return self.known[name]

    @property
    def is_mixture(self) -> bool:
        """Tell whether the model is a mixture, of one rule or more."""
        return self.model is not None and mixes(self.model)

    @property
    def estimator(self) -> Any:
        """Return the estimator at the end of the model."""
        return final_estimator(self.model)

    @property
    def labels(self) -> dict[str, Any]:
        """Return the classes, the positive one and the label of deferred rows, as rates take them."""
        deferred = None if self.deferral is None else self.deferral.label
        return {"classes": self.data.classes, "pos_label": self.data.positive, "defer_label": deferred}

    def tables(self, names: Iterable[str], split: str) -> dict[str, Table]:
        """Return the datasets that goals name, with a split in the place of ``train``."""
        return {name: self.data.part(_place(name, split)).table() for name in names}

    def audit(
        self, split: str, goals: Iterable[Goal] | None = None, decider: str = MIXTURE, *, drawn: bool = False
    ) -> Audit | None:
        """Return the audit of a decider, with a split in the place of ``train``; None where it decides not all rows.

        It is in expectation over the draws, or of the drawn decisions: another key gives others. For the deciders that
        the model is compared with only the estimates count, and the intervals are quick ones.
        """
        goals = self.goals if goals is None else tuple(goals)
        names = dict.fromkeys(name for goal in goals for name in goal.datasets)
        decisions = {name: one for name in names if (one := self.on(_place(name, split)).by.get(decider)) is not None}
        if len(decisions) < len(names):
            return None
        is_random = not drawn and any(one.chances is not None for one in decisions.values())
        predictions = {name: one.probabilities if is_random else one.labels for name, one in decisions.items()}
        kind = "probabilities" if is_random else "labels"
        if (split, goals, decider, kind) not in self.audits:
            prepared = prepare(predictions, self.tables(names, split), kind=kind, **self.labels)
            levels = add_confidence(goals, self.settings.audit_confidence)
            self.audits[split, goals, decider, kind] = audit_predictions(
                levels, prepared, quick=decider != MIXTURE, needs_limits=False
            )
        return self.audits[split, goals, decider, kind]


def evaluate(run: Evaluation) -> result.RunResult:
    """Return the result of a run."""
    data, judged, settings = run.data, run.data.judged, run.settings
    splits = {split: split_result(run, split, with_objective=True) for split in data.splits}
    goals = goal_results(run, list(data.splits))
    goals = [goal.model_copy(update={"tradeoff": points}) for goal, points in zip(goals, _frontiers(run), strict=True)]
    segments = find_segments(data.splits[judged], run.on(judged).losses[MIXTURE], float(settings.alpha))
    is_random = is_drawn(run.model)
    # the split on which the draws meet the goals by construction, where there is one
    is_met = is_random or (run.is_mixture and run.estimator.decision == FIXED)
    aim = aim_of(run.model)
    deferral = None
    if run.deferral is not None:
        curve = list(_deferral_curve(run)) if has_rules(run.model) else []
        deferral = result.DeferralResult(cost=run.deferral.loss, label=str(run.deferral.label), curve=curve)
    run_result = result.RunResult(
        settings=settings.model_dump(mode="json"),
        data=_data_summary(run),
        chosen_on=data.chosen_on,
        met_on=data.chosen_on if is_met and run.estimator.goals_ and aim is not None else "",
        method=_method_text(settings.method),
        objective=_objective(run, aim),
        is_drawn=run.on(judged).by[MIXTURE].chances is not None,
        confidence=(getattr(run.estimator, "confidence_", None) or math.nan) if run.is_mixture else math.nan,
        probability=(getattr(run.estimator, "probability_", None) or math.nan) if run.is_mixture else math.nan,
        margin_cost=_margin_cost(run),
        proof_rows=_proof_rows(run),
        splits=splits,
        goals=goals,
        groups=group_results(run, judged),
        rules=_rules(run, judged),
        segments=[
            result.SegmentResult(text=one.text, rows=one.n_rows, share=one.share, part=one.part, lift=one.lift)
            for one in segments
        ],
        scores=_scores(run, judged),
        answers=answer_cells(run, judged),
        swaps=swap_results(run, judged),
        deferral=deferral,
        drawn=drawn_result(run, judged),
        examples=_examples(run, judged),
        **_class_rule_words(run),
    )
    return run_result.model_copy(update={"why": _reasons(run, run_result)})


def split_result(run: Evaluation, split: str, *, with_objective: bool = False) -> result.SplitResult:
    """Return rows, classes, errors, tails at many fractions and deferred rows of a split, by who decides."""
    part, decided = run.data.splits[split], run.on(split)
    alphas = np.unique([*_ALPHAS, float(run.settings.alpha)])
    alphas[-1] = 1.0
    objectives = _objectives(run, split) if with_objective else {}
    losses, mass = {}, part.weights
    for decider, lost in decided.losses.items():
        measures = error_and_deferral(run, decider, lost, split)
        tails = {"value": cvar_curve(lost, alphas, part.weights)}
        if decider == MIXTURE and decided.by[MIXTURE].chances is not None:
            # Once decisions are drawn each row is wrong, deferred or right. How many are is known before the draw:
            # without deferral the tail's loss is min(1, error / alpha), whatever the mixture.
            wrong, left = measures["error"], measures.get("defer_rate", 0.0)
            cost = 0.0 if run.deferral is None else run.deferral.loss
            tails["realised"] = cvar_curve([1.0, cost, 0.0], alphas, [wrong, left, max(1.0 - wrong - left, 0.0)])
        points = [dict(zip(("alpha", *tails), one, strict=True)) for one in zip(alphas, *tails.values(), strict=True)]
        measures["objective"] = objectives.get(decider, math.nan)
        at_alpha = next(one for one in points if one["alpha"] == float(run.settings.alpha))
        has_plain_rows = mass is None or np.ptp(mass) == 0
        if has_plain_rows and lost.min() >= 0 and lost.max() <= 1:
            at_alpha["high"] = cvar_upper_bound(lost, at_alpha["alpha"], delta=_RISK)
        losses[decider] = result.SplitLosses(**measures, tails=[result.TailLoss(**one) for one in points])
    shares = {str(one): np.mean(part.labels == one) for one in run.data.classes}
    return result.SplitResult(rows=len(part), classes=shares, losses=losses)  # type: ignore[arg-type]


def error_and_deferral(run: Evaluation, decider: str, losses: FloatArray, split: str) -> dict[str, float]:
    """Return how many rows are decided wrongly, deferred, and wrong among the decided, given the losses of all."""
    weights, decided = run.data.splits[split].weights, run.on(split).by.get(decider)
    mean = float(np.average(losses, weights=weights))
    if run.deferral is None or decided is None:
        return {"error": mean}
    left = float(np.average(decided.probabilities[:, -1], weights=weights))
    error = max(mean - run.deferral.loss * left, 0.0)
    return {"error": error, "defer_rate": left} | ({"decided_error": error / (1.0 - left)} if left < 1 else {})


def _objectives(run: Evaluation, split: str) -> dict[str, float]:
    """Return what was minimised, where it is a rate or a risk other than the tail, in expectation over the draws."""
    aim, deciders = aim_of(run.model), (MIXTURE, FIRST, DEPLOYED)
    if isinstance(aim, Rate | Ratio):
        values = {who: _expected(run, aim, who, split) for who in deciders}
        return {who: value for who, value in values.items() if value is not None}
    if not isinstance(aim, Risk) or _kind(run, aim) == results.CVAR:
        return {}
    part, chosen_on, losses = run.data.splits[split], run.estimator.selection_, run.on(split).losses
    codes = groups_of(part.groups, len(part))[0] if part.groups else None
    # a calibrated risk has the radius of the rows it was chosen on
    size = row_count(chosen_on), chosen_on.losses.shape[1]
    risk = aim.bind(RiskRows(*size, lambda names: groups_by(names, part.table(), codes)))
    return {who: risk.value(losses[who], part.weights) for who in deciders if who in losses}


def _expected(run: Evaluation, rate: Any, decider: str, split: str) -> float | None:
    """Return a rate in expectation over the draws; None where the decider or the rows have none."""
    decisions = {name: run.on(_place(name, split)).by.get(decider) for name in rate.datasets}
    shares = {name: one.probabilities for name, one in decisions.items() if one is not None}
    if len(shares) < len(decisions):
        return None
    try:
        return float(rate.at(prepare(shares, run.tables(shares, split), kind="probabilities", **run.labels)))
    except ValueError:  # a rate has no value on a split that lacks the rows it is out of
        return None


def goal_results(run: Evaluation, splits: list[str]) -> list[result.GoalResult]:
    """Return how each goal stands on some splits, and by the drawn decisions on the one that counts."""
    standings: list[dict[str, dict[str, result.SplitStanding]]] = [{split: {} for split in splits} for _ in run.goals]
    for split in splits if run.goals else ():
        for decider in (MIXTURE, FIRST, DEPLOYED):
            for standing, audit in zip(standings, run.audit(split, decider=decider) or (), strict=False):
                standing[split][decider] = _standing(audit, is_whole=decider == MIXTURE)
    by_draws: list[result.SplitStanding | None] = [None] * len(run.goals)
    judged = run.data.judged
    if run.goals and judged in splits and run.on(judged).by[MIXTURE].chances is not None:
        by_draws = [_standing(one) for one in run.audit(judged, drawn=True) or ()]
    margins: list[result.MarginResult | None] = [None] * len(run.goals)
    known = getattr(run.estimator, "margins_", ()) if run.model is not None else ()
    for place, margin in enumerate(known):
        low, high = margin.expected or (math.nan, math.nan)
        parts = {name: getattr(margin, name) for name in ("value", "standard_error", "optimism", "cost", "reason")}
        margins[place] = result.MarginResult(low=low, high=high, **parts)
    return [
        result.GoalResult(
            text=str(goal.with_confidence(None)),
            confidence=run.settings.audit_confidence if goal.confidence is None else goal.confidence,
            margin=margin,
            splits=by_split,  # type: ignore[arg-type]
            drawn=drawn_standing,
        )
        for goal, margin, by_split, drawn_standing in zip(run.goals, margins, standings, by_draws, strict=False)
    ]


def _standing(audit: GoalAudit, *, is_whole: bool = True) -> result.SplitStanding:
    if not is_whole:
        return result.SplitStanding(estimate=audit.estimate, violation=audit.violation)
    parts = ("estimate", "low", "high", "bound", "margin", "verdict", "violation")
    fields = {part: getattr(audit, part) for part in parts} | {"rows": sum(count for _, count in audit.counts)}
    note = audit.note if math.isnan(audit.estimate) else ""
    return result.SplitStanding(**fields, note=note, left_out=list(audit.left_out))


def drawn_result(run: Evaluation, split: str) -> result.DrawnResult | None:
    """Return the error and the tail of the drawn decisions, if any: with another key others are drawn."""
    chances = run.on(split).by[MIXTURE].chances
    if chances is None:
        return None
    decisions, part = run.on(split).by[MIXTURE].labels, run.data.splits[split]
    is_drawn_row = chances.max(axis=1) < 1.0 - _ROUNDING
    tail = cvar_loss(label_losses(decisions, part.labels, run.deferral), float(run.settings.alpha), part.weights)
    error, share = (np.average(rows, weights=part.weights) for rows in (decisions != part.labels, is_drawn_row))
    return result.DrawnResult(error=error, cvar=tail, share=share)


def group_results(run: Evaluation, split: str) -> list[result.GroupResult]:
    """Return the rates of all rows, of groups by each column and of their intersections, in expectation.

    Where no class is the positive one, there is only how often answers err.
    """
    positive, part, decided = run.data.positive, run.data.splits[split], run.on(split).by[MIXTURE]
    options: dict[str, Any] = {"sample_weight": part.weights, "pos_label": True}
    options["classes"] = [False, True]  # the rows may all be right
    own = part.labels if positive is None else np.full(len(part), positive)
    shares = decided.probabilities
    chances = shares[np.arange(len(own)), np.searchsorted(run.data.classes, own)]
    truth = np.ones(len(part), dtype=np.bool_) if positive is None else part.labels == positive
    if positive is None:
        options["rates"] = ["error_rate"]
    else:
        options["baseline"] = None if part.baseline is None else part.baseline == positive
    if run.deferral is not None:
        rates = ["defer_rate", "decided_error_rate", *options.get("rates", TABLE_METRICS)]
        options |= {"defer_label": _DEFERRED, "rates": rates}
    if decided.chances is not None:
        predictions = chances if run.deferral is None else np.column_stack([chances, shares[:, -1]])
        options["kind"] = "probabilities"
    else:
        predictions = chances > 0  # type: ignore[assignment]
        predictions = predictions if run.deferral is None else np.where(shares[:, -1] > 0, _DEFERRED, predictions)
    columns = [{name: values} for name, values in part.groups.items()] if len(part.groups) > 1 else []
    groups: dict[str, result.GroupResult] = {}
    for features in (*columns, part.groups or None):  # each column alone, then their intersections
        for one in rate_table(predictions, truth, features, **options):
            measured = {}
            for rate, value in one.rates.items():
                low, high = one.bounds.get(rate, (math.nan, math.nan))
                rows = one.trials.get(rate) or math.nan
                measured[rate] = result.GroupRate(value=value, rows=rows, low=low, high=high)
            groups[one.group] = result.GroupResult(text=one.group, n_samples=one.n_samples, rates=measured)
    return list(groups.values())


def answer_cells(run: Evaluation, split: str) -> dict[Any, list[result.AnswerCount]]:
    """Return how many rows of each class each decider gives which answer, expected where it draws."""
    part, n_classes = run.data.splits[split], len(run.data.classes)
    labels, cells = np.searchsorted(run.data.classes, part.labels), {}
    for decider, decided in run.on(split).by.items():
        shares = decided.probabilities
        counts = np.zeros((n_classes, shares.shape[1]))
        np.add.at(counts, labels, shares)
        cells[decider] = [
            result.AnswerCount(label=label, answer=answer if answer < n_classes else None, rows=counts[label, answer])
            for label, answer in np.argwhere(counts > 0).tolist()
        ]
    return cells


def swap_results(run: Evaluation, split: str) -> list[result.SwapResult]:
    """Return which rows the deployed model decides otherwise about, of all rows and of groups, expected over draws."""
    part, decided = run.data.splits[split], run.on(split).by
    if DEPLOYED not in decided or len(run.data.classes) > 2:  # noqa: PLR2004 - of many there are too many pairs
        return []
    before, truth = (np.searchsorted(run.data.classes, labels) for labels in (decided[DEPLOYED].labels, part.labels))
    shares, table = decided[MIXTURE].probabilities, part.table()
    groups = {"": np.ones(len(part), dtype=np.bool_)}
    for name in part.groups:
        codes, names = combine_groups({name: table.levels(name)}, len(part))
        groups |= {text: codes == place for place, text in enumerate(names)}
    swaps = []
    for old in (0, 1):
        for new in range(shares.shape[1]):
            moved = np.where(before == old, shares[:, new], 0.0)
            for group, inside in groups.items() if new != old and moved.any() else ():
                counts = {
                    "rows": moved[inside].sum(),
                    "right": moved[inside & (truth == new)].sum(),
                    "was_right": moved[inside & (truth == old)].sum(),
                }
                after = None if new == len(run.data.classes) else new
                swaps.append(result.SwapResult(before=old, after=after, group=group, **counts))
    return swaps


def _frontiers(run: Evaluation) -> Iterator[list[result.FrontierPoint]]:
    """Yield the least value of the objective for many bounds of each goal, its own among them."""
    estimator, is_of_many = run.estimator, run.is_mixture and has_class_rules(run.model)
    aimed = list(estimator.goals_) if run.is_mixture else []
    options: dict[str, Any] = {"n_points": _POINTS, "tol": _FRONTIER_TOL}
    is_linear = run.is_mixture and not isinstance(estimator.objective_, Ratio)
    for goal in aimed:
        if not is_linear or any(one.compares_ratios for one in aimed):  # a search for each bound, of seconds to minutes
            yield []
            continue
        if goal.is_ratio or is_of_many:
            n_points = _POINTS_OF_MANY if is_of_many else _POINTS
            near = np.clip(goal.bound + np.linspace(-_NEAR, _NEAR, n_points), 0.0, None)
            points = [*tradeoff(estimator, goal, near, **options)]
        else:
            points = [*tradeoff(estimator, goal, **options), *tradeoff(estimator, goal, [goal.bound], **options)]
        known = {point.bound: point for point in points if not np.isnan(point.value)}
        yield [
            result.FrontierPoint(bound=bound, value=known[bound].value, lower=known[bound].lower)
            for bound in sorted(known)
        ]
    for _ in run.goals[len(aimed) :]:
        yield []


def _rules(run: Evaluation, split: str) -> list[result.RuleResult]:
    """Return the models or rules of a mixture in words, with their shares and errors."""
    method = run.settings.method
    if not run.is_mixture:
        return []
    rounds = [f"round {number}" for number in range(1, len(run.estimator.estimators_) + 1)]
    models = [one.title or kind_of(one).title for one in models_of(method)] or rounds
    if has_rules(run.model):
        rules = run.estimator.rules_
        names = run.estimator.classes_.tolist(), run.estimator.groups_.names
        words = [(f"rule {number}", rule_text(rule, models, *names)) for number, rule in enumerate(rules, start=1)]
    elif method.models:
        words = list(zip(models, map(describe, method.models), strict=True))
    else:
        words = [(one, describe(method.learner) if method.learner else "histogram tree") for one in rounds]
    numbers = zip(words, run.estimator.mixture_.tolist(), run.on(split).member_errors, strict=True)
    return [
        result.RuleResult(title=title, description=text, share=share, error=error)
        for (title, text), share, error in numbers
    ]


def _scores(run: Evaluation, split: str) -> result.ScoreResult:
    """Return how well the first model's scores rank and fit the rows of a split, and their spread where rules cut."""
    decided, part = run.on(split), run.data.splits[split]
    if decided.scores is None or has_class_rules(run.model):
        return result.ScoreResult()
    panels = list(_score_panels(run))
    scores, is_positive = decided.scores[:, 0], part.labels == run.data.positive
    mass = np.ones(len(part)) if part.weights is None else part.weights
    if not mass[is_positive].any() or not mass[~is_positive].any():
        return result.ScoreResult(panels=panels)
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - heavy

    auc = roc_auc_score(is_positive, scores, sample_weight=mass)
    if scores.min() < 0 or scores.max() > 1:  # no probabilities
        return result.ScoreResult(auc=auc, panels=panels)
    tenths = []
    for rows in np.array_split(np.argsort(scores, kind="stable"), _TENTHS):
        if mass[rows].any():
            means = [np.average(values[rows], weights=mass[rows]) for values in (scores, is_positive)]
            tenths.append(result.ScoreTenth(score=means[0], share=means[1]))
    brier = np.average((scores - is_positive) ** 2, weights=mass)
    return result.ScoreResult(auc=auc, brier=brier, tenths=tenths, panels=panels)


def _score_panels(run: Evaluation) -> Iterator[result.ScorePanel]:
    """Yield histograms of the scores that rules were chosen on, by group and class, with the thresholds."""
    split = run.data.chosen_on
    if split not in run.data.splits:
        return
    decided, rules, shares = run.on(split), run.estimator.rules_, run.estimator.mixture_
    model = int(np.bincount([rule.model for rule in rules], shares).argmax())
    scores = decided.scores[:, model]  # type: ignore[index]  # rules have scores
    is_positive = run.data.splits[split].labels == run.data.positive
    # probabilities have the whole range from 0 to 1
    low, high = (0.0, 1.0) if scores.min() >= 0 and scores.max() <= 1 else (float(scores.min()), float(scores.max()))
    edges = np.linspace(low, high if high > low else low + 1.0, _BINS + 1)
    used = [(rule, share) for rule, share in zip(rules, shares.tolist(), strict=True) if share > 0]
    for text, inside, group in _groups_shown(run, decided.groups):  # type: ignore[arg-type]  # rules have groups
        cuts = [_cut(rule, group, share, edges) for rule, share in used if rule.model == model]
        counts = {
            kind: np.histogram(scores[inside & chosen], edges)[0].tolist()
            for kind, chosen in (("positive", is_positive), ("negative", ~is_positive))
        }
        histogram: dict[str, Any] = {"low": float(edges[0]), "high": float(edges[-1]), **counts}
        yield result.ScorePanel(text=text, **histogram, rules=[one for one in cuts if one is not None])


def _cut(rule: Any, group: str, share: float, edges: FloatArray) -> result.Cut | None:
    """Return where a rule cuts the scores of a group, and where it begins to defer; None where it cuts nothing."""
    ends = [rule.thresholds[group], (rule.lower or rule.thresholds)[group]]
    if ends[0] == ends[1]:
        return result.Cut(threshold=ends[0], share=share) if np.isfinite(ends[0]) else None
    upper, lower = np.clip(ends, edges[0], edges[-1]).tolist()  # all above, or all below, is an interval too
    return result.Cut(threshold=upper, lower=lower, share=share)


def _groups_shown(run: Evaluation, codes: IntArray) -> list[tuple[str, BoolArray, str]]:
    """Return the largest groups that rules use, or else those that the run names: text, rows, group of rules."""
    groups, part = run.estimator.groups_, run.data.splits[run.data.chosen_on]
    names = list(groups.names)
    if not groups.by:
        codes, names = np.zeros(len(part), dtype=np.int64), ["all rows"]
        if part.groups:
            table = part.table()
            codes, names = combine_groups({name: table.levels(name) for name in part.groups}, len(part))
    sizes = np.array([np.count_nonzero(codes == place) for place in range(len(names))])
    largest = sorted(np.argsort(-sizes, kind="stable")[:_MOST_GROUPS].tolist())
    return [(names[place], codes == place, names[place] if groups.by else groups.names[0]) for place in largest]


def _deferral_curve(run: Evaluation) -> Iterator[result.DeferralPoint]:
    """Yield what the best mixtures that defer at most so many rows do on some splits; nothing is trained.

    The tail is that of the settings. Goals on the rate of all deferred rows make room for those of the curve.
    """
    model, alpha = run.estimator, float(run.settings.alpha)

    def limit(rate: float) -> Goal:
        return parse_goal(f"defer_rate <= {rate!r}")

    goal_bounds = [float(goal.bound) for goal in model.goals_ if goal.with_confidence(None) == limit(float(goal.bound))]
    for rate in sorted({*_LIMITS, *goal_bounds}):
        goals = [goal for goal in model.goals_ if goal.with_confidence(None).with_bound(rate) != limit(rate)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Caution)
            try:
                chosen = Evaluation.of(run.settings, run.data, model.rebalance(goals=[*goals, limit(rate)]), ())
            except InfeasibleGoals:
                continue
        splits = {}
        for split in dict.fromkeys([run.data.chosen_on, run.data.judged]):
            losses = chosen.on(split).losses[MIXTURE]
            tail = cvar_loss(losses, alpha, run.data.splits[split].weights)
            splits[split] = result.DeferralLoss(tail=tail, **error_and_deferral(chosen, MIXTURE, losses, split))
        yield result.DeferralPoint(limit=rate, splits=splits)


def _examples(run: Evaluation, split: str) -> list[str]:
    """Return decisions of one rule in words: those farthest from the threshold on either side, and the nearest."""
    part = run.data.splits[split]
    if not has_rules(run.model) or len(run.estimator.rules_) > 1:
        return []
    rows = np.arange(min(len(part), _MOST_EXPLAINED))
    inputs = {name: some_rows(value, rows) for name, value in decision_inputs(part).items()}
    explanations = run.estimator.explain(seen_by_last(run.model, part.X.iloc[rows]), **inputs)
    order = sorted((one for one in explanations if np.isfinite(one.change)), key=lambda one: one.distance)
    shown = [order[-1], min(order, key=lambda one: abs(one.change)), order[0]] if order else []
    return list(dict.fromkeys(map(str, shown)))


def aim_of(model: Any) -> Risk | Rate | Ratio | None:
    """Return what a model was chosen or trained to minimise; None where that is the method's own."""
    estimator = final_estimator(model)
    if mixes(model):
        is_chosen = getattr(estimator, "mixture", "optimal") == "optimal"
        return estimator.problem().objective if is_chosen else None
    if hasattr(estimator, "objective_value_"):  # trained inside goals, for the error unless another rate is named
        return error_rate(Dataset("train")) if estimator.objective is None else as_objective(estimator.objective)
    return None


def _kind(run: Evaluation, aim: Risk | Rate | Ratio | None) -> str:
    """Return the kind of the objective, as the report distinguishes them."""
    if isinstance(aim, CVaR) and aim.alpha == run.settings.alpha:
        return results.CVAR
    kinds = {Rate: results.RATE, Ratio: results.RATE, WorstGroup: results.WORST_GROUP, Risk: results.RISK}
    return next((word for kind, word in kinds.items() if isinstance(aim, kind)), results.OWN)


def _objective(run: Evaluation, aim: Risk | Rate | Ratio | None) -> result.ObjectiveResult:
    kind = _kind(run, aim)
    # with the radius that was calibrated
    bound = run.estimator.risk_ if run.is_mixture and kind == results.RISK else aim
    text = _LONG.sub(lambda number: f"{float(number[0]):.4g}", str(bound))
    text = ", ".join(aim.names) if isinstance(aim, WorstGroup) else text
    has_text = kind in {results.RATE, results.RISK, results.WORST_GROUP}
    return result.ObjectiveResult(kind=kind, text=text if has_text else "")


def _margin_cost(run: Evaluation) -> float:
    """Return by how much the margins of the goals raise the objective; NaN where there are none."""
    if not run.is_mixture or not getattr(run.estimator, "margins_", None):
        return math.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        least = run.estimator.rebalance(confidence=None).value_
    sign = -1.0 if is_maximized(run.estimator.objective_) else 1.0
    return max(sign * float(run.estimator.value_ - least), 0.0)  # rules that are searched for, not proven, may be worse


def _proof_rows(run: Evaluation) -> int:
    """Return the number of rows on which exact tests prove the goals; 0 where nothing is proven."""
    proof = getattr(run.estimator, "proof_", None) if run.is_mixture else None
    return proof.n_rows if proof is not None and proof.is_proven else 0


def _class_rule_words(run: Evaluation) -> dict[str, Any]:
    """Return whether rules of class probabilities draw answers, and among which of them the mixture is the best."""
    if not has_class_rules(run.model):
        return {}
    chosen = zip(run.estimator.rules_, run.estimator.mixture_.tolist(), strict=True)
    are_shared = is_drawn(run.model) and any(shares_rows(rule) for rule, share in chosen if share > 0)
    return {"shares_rows": are_shared, "certificate": run.estimator.certificate_}


def _method_text(method: MethodSettings) -> str:
    """Return the method in words; its objective has its own."""
    title = METHODS[method.name].title
    others = {name: value for name, value in method.parameters.items() if name != "objective"}
    parameters = describe(method.model_copy(update={"parameters": others})).removeprefix(title)
    models = f" of {len(method.models)} models" if method.models else ""
    if method.name == GOALS:
        models = f": {', '.join(one.title or kind_of(one).title for one in models_of(method))}"
    learner = f", base learner: {describe(method.learner)}" if method.learner else ""
    return title + models + parameters + learner


def _data_summary(run: Evaluation) -> result.DataSummary:
    data, settings = run.data, run.settings
    kinds = {"numeric": len(data.columns.numeric), "categorical": len(data.columns.categorical)}
    lines = [f"Features: {' and '.join(f'{count} {kind}' for kind, count in kinds.items() if count)}."]
    parts = {"": settings.data, **{f" of {name}": one for name, one in settings.datasets.items()}}
    for where, one in parts.items():  # what the verdicts on weighted rows rest on
        if one.largest_weight is not None:
            most = f"the largest weight in the population is {one.largest_weight:g}"
            lines.append(f"Rows{where} are weighted by {settings.data.weights}; {most}.")
        if one.largest_value is not None:
            limits = one.largest_value if isinstance(one.largest_value, dict) else {"amounts": one.largest_value}
            most = " and ".join(f"{column} of at most {limit:g}" for column, limit in limits.items())
            lines.append(f"The population of the rows{where} is taken to have {most}.")
    persons = {name: part.ids for name, part in data.splits.items() if part.ids is not None}
    if persons:
        counts = ", ".join(f"{len(np.unique(ids))} {name}" for name, ids in persons.items())
        lines.append(
            f"Persons by {settings.data.ids}: {counts}. Margins count persons. Verdicts and intervals count rows: they "
            "are too sure where a person has several."
        )
    return data_summary(run, lines)


def data_summary(run: Evaluation, lines: Iterable[str] = ()) -> result.DataSummary:
    """Return what the data are: a sentence on the rows, the target and the classes, and further lines."""
    data, target = run.data, run.settings.data.target
    counts = [f"{len(part)} {name}" for name, part in data.splits.items()]
    rows = ", ".join(counts) if run.model is not None else counts[0].split()[0]
    positive = None if data.positive is None else str(data.positive)
    first = f"{data.name}: {rows} rows; target {target}{'' if positive is None else f', positive class {positive}'}."
    classes = [str(label) for label in data.classes.tolist()]
    features = {} if run.model is None else data.columns._asdict()
    return result.DataSummary(
        name=data.name, classes=classes, positive=positive, columns=features, lines=[first, *lines]
    )


def _reasons(run: Evaluation, run_result: result.RunResult) -> dict[str, str]:
    """Return for each part of a report that has no numbers why it has none."""
    why, part = {}, run.data.splits[run_result.judged]
    if not any(goal.tradeoff for goal in run_result.goals):
        why["frontier"] = "no mixture of these models meets any of the bounds tried"
        if not run.goals:
            why["frontier"] = "no goals were set"
        elif not run.is_mixture:
            why["frontier"] = "it needs a mixture, which can be chosen again for another bound without training"
        elif not run.estimator.goals_:
            why["frontier"] = "the goals are only audited; the mixture was chosen without them"
    if not run_result.segments:
        none_stands_out = "no segment that a few conditions describe has notably more of them than the other rows"
        why["segments"] = why_no_segments(len(part), float(run.settings.alpha)) or none_stands_out
    return why


def _place(name: str, split: str) -> str:
    return split if name == TRAIN else name
