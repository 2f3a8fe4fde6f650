"""Less discriminatory alternatives: how much disparity other rules of the same models would have, at which performance.

One program over all thresholds of all models of a classifier gives, for each bound on the disparity, the best single
rule and a lower bound that is proven: no mixture of these rules within the bound performs better. So the search ends
with a statement about every alternative of that kind, not only about those that were tried. Rules are chosen on the
selection rows; held-out rows show how they and the incumbent differ on the population.
"""

import csv
import io
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import check_choice, check_confidence, check_count, check_number
from counterpoise._base.text import text_table
from counterpoise._base.types import ArrayLike
from counterpoise.auditing.paired import Estimate, estimate_value, paired_difference
from counterpoise.classifiers.goal import list_models
from counterpoise.goals import Goal, InfeasibleGoals, Rate, Table, defer_rate, error_rate, max_difference, parse_goal
from counterpoise.goals.binding import PreparedPredictions, prepare
from counterpoise.goals.expressions import WorstOf, make_goal, terms_of
from counterpoise.goals.terms import DEFAULT
from counterpoise.rules.cautions import Caution
from counterpoise.rules.families import ClassRules
from counterpoise.rules.options import as_groups
from counterpoise.rules.pool import named_models
from counterpoise.rules.tradeoff import tradeoff

INCUMBENT, RULE, OTHER = "incumbent", "rule", "other"  # kinds of alternatives
DEPLOYED = "deployed"
INCUMBENTS = {
    "plain": "the best model at its usual threshold",
    "rule": "the rule of the model",
    DEPLOYED: "the deployed model",
}
_HALVINGS = 7  # of the range of bounds between two rules
_GRID = 17  # bounds that are examined together, twice
_ROUNDING = 1e-9  # of shares: by so much two may differ and be equal


class Alternative(NamedTuple):
    """A rule, or another classifier, with its performance and disparity."""

    name: str
    kind: str  # "incumbent", "rule" or "other"
    bound: float  # on the disparity, where the rule was chosen; NaN where there was none
    rule: str  # in words; empty for another classifier
    chosen_performance: float  # on the selection rows; NaN where they were not decided about
    chosen_disparity: float
    lower: float  # proven: no mixture of these rules within the bound performs better on the selection rows
    performance: Estimate | None = None  # on held-out rows, as all that follow
    disparity: Estimate | None = None
    performance_change: Estimate | None = None  # beside the incumbent
    disparity_change: Estimate | None = None
    classifier: Any = None  # that decides by it, fitted: to predict with, to save

    @property
    def gap(self) -> float:
        """Return how far the rule is at most from the best mixture of such rules within its bound."""
        return self.chosen_performance - self.lower


@dataclass(frozen=True)
class Alternatives:
    """Alternatives to an incumbent; ``print`` shows those near it, ``as_csv`` and ``as_dict`` have all numbers.

    Attributes
    ----------
    points : tuple of Alternative
        The incumbent first, then rules from the least disparity to the largest, then other classifiers.
    disparity, performance : str
        What was measured. Smaller is better, but of a ratio a larger one.
    least_disparity : float
        Proven: on the selection rows no mixture of these rules within ``within`` of the incumbent's performance has
        less disparity (of a ratio: a larger one).
    by : tuple of str
        Columns that the rules use beside scores; empty where decisions are blind to groups.
    within : float
        How much worse than the incumbent an alternative may perform.
    confidence : float
        With which all intervals hold together.
    models : tuple of str
        Whose thresholds were searched.
    n_chosen, n_held_out : int
        Numbers of rows.
    infeasible : tuple of float
        Bounds that were tried and that no single rule meets.
    notes : tuple of str
        What must be known to read the numbers.
    """

    points: tuple[Alternative, ...]
    disparity: str
    performance: str
    least_disparity: float
    by: tuple[str, ...]
    within: float
    confidence: float
    models: tuple[str, ...]
    n_chosen: int
    n_held_out: int
    infeasible: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()
    is_ratio: bool = False
    searched: str = "thresholds"

    @property
    def incumbent(self) -> Alternative:
        """Return the incumbent."""
        return self.points[0]

    @property
    def near(self) -> tuple[Alternative, ...]:
        """Return the alternatives within ``within`` of the incumbent's performance that have less disparity.

        On the selection rows, or on the held-out rows where a classifier did not decide about the former.
        """
        sign = -1.0 if self.is_ratio else 1.0

        def is_near(one: Alternative) -> bool:
            values = [(each.chosen_performance, each.chosen_disparity) for each in (one, self.incumbent)]
            if any(math.isnan(value) for pair in values for value in pair):
                values = [(_value(each.performance), _value(each.disparity)) for each in (one, self.incumbent)]
            (performance, disparity), (usual, most) = values
            return performance <= usual + self.within + _ROUNDING and sign * disparity < sign * most

        return tuple(one for one in self.points[1:] if is_near(one))

    @property
    def certificate(self) -> str:
        """Return what is proven, and about which rules."""
        groups = f"with thresholds by {', '.join(self.by)}" if self.by else "blind to groups"
        rules = f"mixture of {self.searched} of {_listed(self.models)}, {groups},"
        beyond = "a larger" if self.is_ratio else "a smaller"
        text = (
            f"Proven on the {self.n_chosen:,} selection rows: for each rule, that no {rules} within its bound has less "
            f"{self.performance} than the lower bound beside it"
        )
        if math.isnan(self.least_disparity):
            return f"{text}. It says nothing about other models."
        return (
            f"{text}; and that none within {self.within:g} of the incumbent's {self.performance} has {beyond} "
            f"{self.disparity} than {self.least_disparity:.4f}. It says nothing about other models."
        )

    def table(self, *, every: bool = True) -> list[list[str]]:
        """Return heads and a line for each alternative, or for the incumbent and those near it."""
        heads = ["", f"{self.performance}", "disparity", "change", "change of disparity", "chosen at", "proven"]
        shown = self.points if every else (self.incumbent, *self.near)
        return [heads, *([one.name, *_cells(one)] for one in shown)]

    def __str__(self) -> str:
        lines = self.table(every=False)
        head = f"Disparity: {self.disparity}. Performance: {self.performance}, smaller is better."
        none = [] if self.near else [f"No alternative within {self.within:g} of it has less disparity."]
        return "\n".join([head, "", text_table(lines, "<" + ">" * 6), *none, "", self.certificate, *self.notes])

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "points"}
        near = {one.name for one in self.near}
        points = []
        for one in self.points:
            values = {
                name: value._asdict() if isinstance(value, Estimate) else value for name, value in one._asdict().items()
            }
            del values["classifier"]
            points.append(values | {"is_near": one.name in near})
        return plain | {"certificate": self.certificate, "points": points}

    def as_csv(self) -> str:
        """Return one line for each alternative."""
        stream = io.StringIO()
        flat = [dict(_flat(point)) for point in self.as_dict()["points"]]
        writer = csv.DictWriter(
            stream, list(dict.fromkeys(name for line in flat for name in line)), lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(flat)
        return stream.getvalue()


def alternatives(
    model: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    disparity: Any = None,
    incumbent: Any = "plain",
    others: Mapping[str, Any] | None = None,
    by: Any = (),
    within: float = 0.01,
    n_points: int = 9,
    confidence: float = 0.95,
    sensitive_features: Any = None,
    baseline: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    largest_weight: float | None = None,
) -> Alternatives:
    """Search for rules with less disparity between groups than an incumbent, at nearly its performance.

    Rules are single thresholds of the models of a classifier, and by default blind to groups: everybody with the same
    score gets the same decision. They are chosen on the selection rows of ``fit``; nothing is trained. The result is
    evidence, not a verdict: which alternatives exist, what they cost, and what is proven not to exist.

    Parameters
    ----------
    model : fitted GoalClassifier
        Whose models' thresholds are searched, all together. Its other goals are kept. Pass several models, and some
        that were trained inside goals, to search more rules.
    X, y : held-out rows and labels, optional
        Rows that no model was trained or chosen on. Without them there are no intervals.
    disparity : str or phrase, optional
        A column, for the largest difference of selection rates between its groups; or a phrase such as
        ``"min_ratio(selection_rate, by=sex)"`` or ``"max_difference(recall, by=sex)"``. Default: that of the first
        goal of the model that has one.
    incumbent : {"plain", "rule", "deployed"}, array or fitted classifier, default="plain"
        What alternatives are compared with: the best model at its usual threshold, the rule of ``model``, the
        predictions of the deployed model (``baseline``), another classifier, or decisions about the held-out rows.
    others : dict from names to fitted classifiers or arrays, optional
        Further alternatives, such as ``LPBoostClassifier(goals=...)``, which is trained inside goals; or their
        decisions about the held-out rows. Decisions that are drawn count with their probabilities.
    by : str, list of str or Groups, default=()
        Columns that rules may use beside scores. Many laws forbid that.
    within : float in [0, 1], default=0.01
        How much worse than the incumbent an alternative may perform.
    n_points : int, default=9
        Number of bounds on the disparity for which rules are sought.
    confidence : float in (0, 1), default=0.95
        With which all intervals hold together, whichever alternative is picked.
    sensitive_features, baseline, sample_weight, largest_weight
        Of the held-out rows, as for ``certify``.

    Returns
    -------
    Alternatives
        For each rule the performance and disparity on both sets of rows, and what is proven. Performance is what the
        model minimises: its error, its loss with deferral, or the rate that is its objective.

    Raises
    ------
    InfeasibleGoals
        If no rule of this kind meets the other goals of the model.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from counterpoise import GoalClassifier, alternatives
    >>> from counterpoise.datasets import loans
    >>> table, _ = loans(6000, random_state=0)
    >>> X, y, sex = table[["income", "amount", "late_payments"]], table["default"], table["sex"]
    >>> model = GoalClassifier(LogisticRegression(), pos_label="yes", random_state=0).fit(
    ...     X[:4000], y[:4000], sensitive_features={"sex": sex[:4000]}
    ... )
    >>> found = alternatives(model, X[4000:], y[4000:], disparity="sex", sensitive_features={"sex": sex[4000:]})
    >>> len(found.near), found.near[0].classifier.groups_.by
    (6, ())
    """
    columns: dict[str, Any] = {"sample_weight": sample_weight, "largest_weight": largest_weight}
    held_out = None
    if X is not None:
        table = Table(X, y, sensitive_features, baseline, **columns)
        held_out = MeasuredRows(X, table, {"sensitive_features": sensitive_features, "baseline": baseline})
    elif y is not None:
        raise ValueError("You passed y without X. Pass the held-out rows and their labels, or neither.")
    search = AlternativeSearch.of(model, disparity, by)
    return search_alternatives(search, held_out, incumbent, others or {}, within, n_points, confidence)


class MeasuredRows(NamedTuple):
    """Rows that no model was trained or chosen on."""

    X: Any  # as the classifier takes it
    table: Table  # what goals use
    inputs: dict[str, Any]  # what rules use beside X


class Chosen(NamedTuple):
    """What a classifier has on the selection rows; not numbers where it did not decide about them."""

    performance: float
    disparity: float


def search_alternatives(
    search: "AlternativeSearch",
    held_out: MeasuredRows | None,
    incumbent: Any,
    others: Mapping[str, Any],
    within: float,
    n_points: int,
    confidence: float,
) -> Alternatives:
    """Return the alternatives to an incumbent: see ``alternatives``."""
    check_number(within, "within", "[0, 1]", "performance lost")
    check_count(n_points, "n_points", 2)
    risk = 1.0 - check_confidence(confidence)
    compared = search.find_incumbent(incumbent, held_out)
    usual = search.measure(compared)
    rules, infeasible = search.frontier(n_points)
    least = math.nan
    if math.isfinite(usual.performance):
        rules |= search.cheapest(rules, usual.performance + within)
        least = search.least_disparity(rules, usual.performance + within)
    lowers = search.lower_bounds([*rules, *([usual.disparity] if math.isfinite(usual.disparity) else [])])

    title = INCUMBENTS[incumbent] if isinstance(incumbent, str) else "as passed"
    lower = lowers.get(usual.disparity, math.nan)
    points = [Alternative(f"incumbent: {title}", INCUMBENT, math.nan, search.rule_text(compared), *usual, lower)]
    deciders = [compared]
    for bound in search.tightest_first(rules):
        name = f"{search.words} {bound:.4f}"
        chosen = search.measure(rules[bound])
        points.append(Alternative(name, RULE, bound, search.rule_text(rules[bound]), *chosen, lowers[bound]))
        deciders.append(rules[bound])
    for name, other in others.items():
        points.append(Alternative(str(name), OTHER, math.nan, "", *search.measure(other), math.nan))
        deciders.append(other)
    if held_out is not None:
        points = search.measure_held_out(points, deciders, held_out, risk)
    classifiers = [one if hasattr(one, "predict") else None for one in deciders]
    points = [point._replace(classifier=one) for point, one in zip(points, classifiers, strict=True)]
    return Alternatives(
        tuple(points),
        str(search.goal.left),
        str(search.performance.left),
        least,
        search.by,
        float(within),
        float(confidence),
        search.names,
        len(search.rows.scores[DEFAULT]),
        0 if held_out is None else held_out.table.n_samples,
        infeasible,
        tuple(search.notes(held_out)),
        is_ratio=search.goal.sense == ">=",
        searched="the class rules that were tried" if isinstance(search.model.family_, ClassRules) else "thresholds",
    )


class AlternativeSearch(NamedTuple):
    """The rules of a classifier that minimise its performance, and a disparity to bound."""

    model: Any  # the classifier with blind rules and without the bound
    original: Any
    goal: Goal  # on the disparity
    performance: Goal
    by: tuple[str, ...]

    @classmethod
    def of(cls, model: Any, disparity: Any, by: Any) -> "AlternativeSearch":
        """Return the search among the thresholds of a classifier."""
        if not hasattr(model, "rules_") or not hasattr(model, "names_"):
            raise TypeError(
                f"model must be a fitted GoalClassifier, whose thresholds are searched; got {type(model).__name__}. "
                "Wrap fitted models, as in GoalClassifier(models, cv='prefit').fit(X, y) on rows that they were not "
                "trained on. A classifier that decides otherwise can be one of others."
            )
        goal, performance = _disparity_goal(model, disparity), make_goal(_performance_of(model), "<=", 1.0)
        kept = tuple(one for one in model.goals_ if one.with_confidence(None).with_bound(goal.bound) != goal)
        budget = {} if model.budget is None else {"budget": 1.0}
        options = {"by": by, "decision": "fixed", "confidence": None, **budget}
        with _no_cautions():
            base = model.rebalance(goals=kept, objective=performance.left, **options)
        return cls(base, model, goal, performance, as_groups(by).names)

    @property
    def rows(self) -> Any:
        """Return the scores of the selection rows."""
        return self.model.family_.selection_data

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the models."""
        pairs = named_models(list_models(self.original.estimator))
        return tuple(name or type(getattr(model, "estimator", model)).__name__ for name, model in pairs)

    @property
    def ideal(self) -> float:
        """Return the disparity of groups that are treated alike."""
        return 0.0 if self.goal.sense == "<=" else 1.0

    @property
    def words(self) -> str:
        """Return how a bound reads."""
        return "at most" if self.goal.sense == "<=" else "at least"

    @property
    def labels(self) -> dict[str, Any]:
        """Return the classes, the positive one and the label of deferred rows, as audits take them."""
        deferral = self.original.deferral
        defer_label = None if deferral is None else deferral.label
        return {"classes": self.model.classes_, "pos_label": self.original.pos_label, "defer_label": defer_label}

    def tightest_first(self, rules: Mapping[float, Any]) -> list[float]:
        """Return bounds in order."""
        return sorted(rules, key=lambda bound: self.goal.sign * bound)

    def find_incumbent(self, incumbent: Any, held_out: MeasuredRows | None) -> Any:
        """Return the classifier that a word stands for, or what was passed in its place."""
        if not isinstance(incumbent, str):
            return incumbent
        check_choice(incumbent, "incumbent", tuple(INCUMBENTS))
        if incumbent == DEPLOYED and (held_out is None or held_out.table.baseline is None):
            raise ValueError("incumbent='deployed' needs its predictions about the held-out rows: pass baseline.")
        if incumbent == DEPLOYED:
            return incumbent
        if incumbent == "rule":
            return self.original
        options: dict[str, Any] = {"by": (), "decision": "fixed", "confidence": None}
        if self.original.deferral is not None:
            options["deferral"] = "never"
        with _no_cautions():
            return self.original.rebalance(goals=(), alpha=1.0, **options)

    def measure(self, decider: Any) -> Chosen:
        """Return performance and disparity on the selection rows."""
        goals, table = (self.performance, self.goal), self.rows.answers.tables[DEFAULT]
        if self._is_own(decider):
            predictions = decider.family_.predictions(decider.chosen_rules())
            return Chosen(*(one.value for one in predictions.answers.checks(goals, decider.mixture_)))
        if isinstance(decider, str) and table.baseline is not None:
            prepared = prepare(table.baseline, table, kind="labels", **self.labels)
            return Chosen(*(one.evaluate_where_possible(prepared).value for one in goals))
        return Chosen(math.nan, math.nan)

    def _is_own(self, decider: Any) -> bool:
        """Return whether a classifier decides by rules of the same scores."""
        return hasattr(decider, "rules_") and decider.family_.selection_data.scores is self.rows.scores

    def best(self, bound: float) -> Any:
        """Return the best single rule within a bound on the disparity, or raise ``InfeasibleGoals``."""
        with _no_cautions():
            return self.model.rebalance(goals=(*self.model.goals_, self.goal.with_bound(bound)))

    def frontier(self, n_points: int) -> tuple[dict[float, Any], tuple[float, ...]]:
        """Return the best rule for each of some bounds, each once, and the bounds that no single rule meets."""
        rules: dict[float, Any] = {}
        infeasible = []
        if self.goal.is_ratio or isinstance(self.model.family_, ClassRules):  # whose range is not known beforehand
            bounds = np.linspace(self.ideal, self.measure(self.model).disparity, n_points)
        else:
            bounds = tradeoff(self.model, self.goal, n_points=n_points).bounds
        for bound in np.unique(bounds).tolist():
            try:
                rule = self.best(bound)
            except InfeasibleGoals:
                infeasible.append(bound)
                continue
            if all(str(rule.rules_) != str(other.rules_) for other in rules.values()):
                rules[bound] = rule
        return rules, tuple(infeasible)

    def cheapest(self, rules: dict[float, Any], most: float) -> dict[float, Any]:
        """Return the rule of the least disparity that performs no worse than ``most``; none where there is none."""
        order = self.tightest_first(rules)
        enough = [bound for bound in order if rules[bound].value_ <= most]
        if not enough or enough[0] == order[0]:
            return {}
        loose, tight, best = enough[0], order[order.index(enough[0]) - 1], {}
        for _ in range(_HALVINGS):
            middle = (loose + tight) / 2
            try:
                rule = self.best(middle)
            except InfeasibleGoals:
                tight = middle
                continue
            if rule.value_ <= most:
                loose, best = middle, {middle: rule}
            else:
                tight = middle
        return best

    def lower_bounds(self, bounds: list[float]) -> dict[float, float]:
        """Return for each bound the performance that no mixture of rules within it beats: proven."""
        return {point.bound: point.lower for point in tradeoff(self.model, self.goal, bounds)}

    def least_disparity(self, rules: dict[float, Any], most: float) -> float:
        """Return the disparity beyond which no mixture performs as well as ``most``: proven."""
        tight, loose = self.ideal, self.tightest_first(rules)[-1]
        for _ in range(2):
            grid = np.linspace(tight, loose, _GRID).tolist()
            lowers = self.lower_bounds(grid)
            excluded = [place for place, bound in enumerate(grid) if not lowers[bound] <= most]  # NaN: none meets it
            if not excluded:
                return math.nan
            tight, loose = grid[excluded[-1]], grid[min(excluded[-1] + 1, _GRID - 1)]
        return tight

    def rule_text(self, decider: Any) -> str:
        """Return the rules of a classifier in words; nothing for another."""
        if not self._is_own(decider):
            return ""
        rules = [(self.names[rule.model], str(rule), f"model {rule.model}") for rule in decider.rules_]
        return "; ".join(
            text.replace(number, name, 1) if number in text else f"{name}: {text}" for name, text, number in rules
        )

    def notes(self, held_out: MeasuredRows | None) -> Iterator[str]:
        """Yield what must be known to read the numbers."""
        if held_out is None:
            yield "There are no held-out rows: all numbers are of the rows that the rules were chosen on, and flatter."
        columns = {name for term in terms_of(self.goal) for name, _ in term.rows.conditions}
        known = [str(name) for name in getattr(self.original, "feature_names_in_", ())]
        seen = [name for name in known if name in columns]
        if seen and not self.by:
            yield f"{_listed(seen)} is a feature of the models: the thresholds are blind to it, the scores are not."

    def measure_held_out(
        self, points: list[Alternative], deciders: list[Any], held_out: MeasuredRows, risk: float
    ) -> list[Alternative]:
        """Return the alternatives with estimates and intervals on held-out rows, right together but for the risk."""
        rows = self.model.check_predict_input(held_out.X)
        outputs = self.model.pool().ask(rows, held_out.table.n_samples, None)
        known = [self._decide(decider, held_out, outputs) for decider in deciders]
        end = risk / (4 * len(points) - 2) / 2  # four intervals of each alternative, two of the incumbent, two ends
        goals, measured = (self.performance, self.goal), []
        for point, prepared in zip(points, known, strict=True):
            values: list[Estimate | None] = [estimate_value(goal, prepared, end) for goal in goals]
            if point.kind != INCUMBENT:
                values += [paired_difference(goal, prepared, known[0], end) for goal in goals]
            fields: dict[str, Any] = dict(zip(_MEASURED, values, strict=False))
            measured.append(point._replace(**fields))
        return measured

    def _decide(self, decider: Any, held_out: MeasuredRows, outputs: Any) -> PreparedPredictions:
        """Return the decisions of a classifier about the held-out rows, or those that were passed in its place."""
        X, table, inputs = held_out
        if self._is_own(decider):
            decisions = decider.decider().probabilities(decider.rows_to_decide(X, **inputs, outputs=outputs))
        elif isinstance(decider, str):
            decisions = table.baseline
        elif hasattr(decider, "decision_proba"):
            decisions = decider.decision_proba(X, **inputs)
        else:
            decisions = np.asarray(decider.predict(X) if hasattr(decider, "predict") else decider)
        if np.ndim(decisions) == 1:
            return prepare(decisions, table, kind="labels", **self.labels)
        n_answers = len(self.model.classes_) + (self.original.deferral is not None)
        decisions = np.pad(decisions, ((0, 0), (0, n_answers - decisions.shape[1])))  # who does not defer
        prepared = prepare(decisions, table, kind="probabilities", **self.labels)
        is_sure = bool(np.isin(decisions, (0.0, 1.0)).all())
        return prepared._replace(are_drawn=False) if is_sure else prepared


_MEASURED = ("performance", "disparity", "performance_change", "disparity_change")


@contextmanager
def _no_cautions() -> Iterator[None]:
    """Solve without warnings on margins and constant decisions, which many bounds of a frontier give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        yield


def _disparity_goal(model: Any, disparity: Any) -> Goal:
    """Return a goal on the disparity, whatever its bound."""
    if disparity is None:
        known: list[Goal] = [goal for goal in model.goals_ if isinstance(goal.left, WorstOf) and goal.left.sense]
        if not known:
            raise ValueError(
                "The model has no goal on a disparity. Pass disparity: a column of groups, as 'sex', or a phrase, as "
                "'min_ratio(selection_rate, by=sex)'."
            )
        return known[0].with_confidence(None)
    if isinstance(disparity, str):
        table = model.family_.selection_data.answers.tables[DEFAULT]
        if "(" not in disparity:
            if disparity not in table.columns:
                raise ValueError(
                    f"disparity must name a column of groups or be a phrase such as max_difference(recall, by=sex); "
                    f"got {disparity!r}. Columns of the selection rows: {', '.join(table.columns) or 'none'}."
                )
            return max_difference("selection_rate", by=disparity) <= 1.0
        for bound in ("<= 1", ">= 0"):
            with suppress(ValueError):
                goal = parse_goal(f"{disparity} {bound}")
                break
        else:
            goal = parse_goal(f"{disparity} <= 1")
    else:
        goal = disparity if isinstance(disparity, Goal) else make_goal(disparity, disparity.sense or "<=", 1.0)
    if not isinstance(goal.left, WorstOf) or not goal.left.sense or set(goal.datasets) != {DEFAULT}:
        raise ValueError(
            f"disparity must compare groups of the selection rows, as max_difference(recall, by=sex) or "
            f"min_ratio(selection_rate, by=sex); got {goal.left}."
        )
    return goal.with_confidence(None)


def _performance_of(model: Any) -> Rate:
    """Return what is minimised as a rate: the error where the objective is a risk, with the cost of deferred rows."""
    if isinstance(model.objective_, Rate):
        return model.objective_
    return error_rate() if model.deferral is None else error_rate() + model.deferral.loss * defer_rate()


def _value(estimate: Estimate | None) -> float:
    return math.nan if estimate is None else estimate.value


def _listed(names: Any) -> str:
    return ", ".join(names)


def _cells(one: Alternative) -> list[str]:
    """Return the cells of a table: estimates with intervals, or numbers of the selection rows where there are none."""
    held_out = [_interval(getattr(one, name)) for name in _MEASURED]
    chosen = f"{_number(one.chosen_performance)}, {_number(one.chosen_disparity)}"
    return [*held_out, chosen, _number(one.lower)]


def _interval(estimate: Estimate | None) -> str:
    if estimate is None or math.isnan(estimate.value):
        return "-"
    return f"{estimate.value:.4f} ({estimate.low:.4f} to {estimate.high:.4f})"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _flat(words: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield columns of a CSV file, those of an estimate by dotted names."""
    for name, value in words.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
