"""Audits: which goals hold on the population, shown by held-out rows, and with what confidence.

Any classifier can be audited; nothing is trained. What is proven, and how, is in ``theory.confidence`` and
``goals.population``: verdicts on all goals are right together with the requested confidence, whatever the
population, if the rows are independent draws from it and the classifier was fixed before anyone saw them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import check_choice, check_confidence, check_count
from counterpoise._base.text import text_table
from counterpoise._base.types import AnyArray, ArrayLike, BoolArray
from counterpoise.auditing.missing_labels import WorstCaseOutcome, measure_worst_case
from counterpoise.auditing.partial_labels import MassRows
from counterpoise.goals.binding import (
    NEEDED_BY,
    PreparedPredictions,
    Views,
    name_in_errors,
    no_rows_reason,
    predict_dataset,
    prepare,
)
from counterpoise.goals.bound_goals import check_denominators, risk_of_each
from counterpoise.goals.classes import as_labels, distinct_labels, find_classes, known_labels
from counterpoise.goals.expressions import Goal, terms_of
from counterpoise.goals.parsing import as_goals
from counterpoise.goals.partial_labels import PartialLabels
from counterpoise.goals.population import GoalOutcome, measure_goal, shortage, tighten_goal
from counterpoise.goals.tables import NoLargestValue, Table, as_tables, table_of, with_train
from counterpoise.goals.terms import DEFAULT, NoRows, UnknownValue
from counterpoise.theory.confidence import Bounds

__all__ = ["Audit", "GoalAudit", "audit", "certify", "tighten"]

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"  # the verdicts
_CONFIDENCE = 0.95
_PLAIN = 0.01, 1e6  # sizes of what a goal bounds that four decimals show well
_KINDS = ("labels", "probabilities")  # of predictions
_HIDDEN = "it depends on missing labels; low and high hold whatever these are"
_UNDEFINED = "on these rows it divides 0 by 0, so there is no estimate; low and high are of the population"
_ROUNDING = 1e-9  # part of the bound, or of the goal's scale, by which sums that are not exact may seem outside of it


class GoalAudit(NamedTuple):
    """What held-out rows show about one goal."""

    goal: Goal  # with the confidence it was audited at
    estimate: float  # of the left side less the rates on the right, on the rows themselves
    low: float  # the population's value is above
    high: float  # and below; each end fails with the goal's share of the risk at most
    bound: float  # the number on the right side
    margin: float  # how far inside the bound the population surely is; negative where it may be outside
    verdict: str  # "holds", "fails" or "undecided"
    counts: tuple[tuple[str, int], ...]  # the rows that each rate is out of; of a ratio, those that count
    note: str  # which rows are missing, or why no predictions on these rows could have decided it
    largest_weights: tuple[tuple[str, float], ...] = ()  # that rows of each weighted dataset are taken to have
    worst: str = ""  # of several rates the one that the estimate is of
    left_out: tuple[str, ...] = ()  # groups or classes with fewer rows than min_rows asks for
    largest_values: tuple[tuple[str, float], ...] = ()  # that amounts of each column are taken to have at most

    @property
    def has_estimate(self) -> bool:
        """Return whether the rows hold some that each rate of the goal counts.

        Then there is an estimate, unless ``note`` says that labels are missing, or that a ratio divides 0 by 0.
        """
        return bool(self.counts)

    @property
    def violation(self) -> float:
        """Return by how much the estimate is outside the bound; 0 where it is inside, up to rounding.

        Not a number where there is no estimate.
        """
        outside = self.goal.sign * (self.estimate - self.bound)
        return 0.0 if outside <= _ROUNDING * max(self.goal.scale, abs(self.bound)) else float(outside)

    @property
    def words(self) -> str:
        """Return the verdict as pages and tables show it."""
        return verdict_words(self.verdict, self.violation)

    @property
    def texts(self) -> dict[str, str]:
        """Return the cells of a table, by column."""
        form = ".4f" if _PLAIN[0] <= self.goal.scale <= _PLAIN[1] else ".4g"
        values = {name: getattr(self, name) for name in ("estimate", "low", "high", "bound", "margin")}
        numbers = {name: f"{value:{form}}" if math.isfinite(value) else "-" for name, value in values.items()}
        counts = ", ".join(str(count) for _, count in self.counts)
        return {"goal": str(self.goal.with_confidence(None)), **numbers, "verdict": self.words, "rows": counts}


def verdict_words(verdict: str, violation: float) -> str:
    """Return a verdict; of an undecided goal also on which side of its bound the estimate is.

    Examples
    --------
    >>> from counterpoise.auditing.audit import verdict_words
    >>> verdict_words("holds", 0.0), verdict_words("undecided", 0.0), verdict_words("undecided", 0.02)
    ('holds', 'undecided, inside', 'undecided, outside')
    """
    if verdict != UNDECIDED or math.isnan(violation):
        return verdict
    return f"{UNDECIDED}, {'inside' if violation == 0 else 'outside'}"


class Audit(tuple[GoalAudit, ...]):
    """One ``GoalAudit`` for each goal; ``print`` shows a table."""

    __slots__ = ()

    @property
    def holds(self) -> bool:
        """Return whether every goal is shown to hold."""
        return all(row.verdict == HOLDS for row in self)

    @property
    def confidence(self) -> float:
        """Return the probability with which all verdicts are right together, at least."""
        return 1.0 - sum(risk_of_each([row.goal for row in self]))

    @property
    def promise(self) -> str:
        """Return how surely the verdicts are right, and where rows are weighted, if what."""
        limits = dict.fromkeys(limit for row in self for limit in row.largest_weights)
        conditions = [f"no row of {name} weighs more than {most:g}" for name, most in limits]
        amounts = dict.fromkeys(limit for row in self for limit in row.largest_values)
        conditions += [f"no amount in {column} is above {most:g} in size" for column, most in amounts]
        condition = " and ".join(conditions)
        surely = f"All verdicts are right together with confidence {self.confidence:.4g}"
        scope = ", for the groups and classes in these rows" if any(row.worst for row in self) else ""
        if not condition:
            return f"{surely}{scope}."
        return f"{surely}{scope}, if {condition}." if scope else f"{surely} if {condition}."

    def __str__(self) -> str:
        return self.as_text(["goal", "estimate", "low", "high", "bound", "margin", "verdict", "rows"])

    def as_text(self, columns: Sequence[str], remarks: Sequence[str] = ()) -> str:
        """Return a table of these columns of ``GoalAudit.texts``, and below it what must be known to read it."""
        lines = [[row.texts[name] for name in columns] for row in self]
        sides = "".join("<" if name in {"goal", "verdict"} else ">" for name in columns)
        notes = [f"{row.texts['goal']}: the estimate is of {row.worst}." for row in self if row.worst]
        notes += [f"{row.texts['goal']}: left out: {', '.join(row.left_out)}." for row in self if row.left_out]
        notes += [f"{row.texts['goal']}: {row.note}." for row in self if row.note]
        return "\n".join([text_table([columns, *lines], sides), *notes, *remarks, self.promise])


def certify(
    model: Any,
    goals: Any,
    X: Any = None,
    y: Any = None,
    *,
    sensitive_features: Any = None,
    baseline: ArrayLike | None = None,
    datasets: Mapping[str, Table] | None = None,
    confidence: float | None = None,
    sample_weight: ArrayLike | None = None,
    largest_weight: float | None = None,
    largest_value: float | Mapping[str, float] | None = None,
    pos_label: Any = None,
    defer_label: Any = None,
    classes: ArrayLike | None = None,
) -> Audit:
    """Audit a classifier on rows that it was not fitted or chosen on.

    Parameters
    ----------
    model : fitted classifier, callable, array, or dict of arrays by dataset
        Anything with ``predict``, a function from X to labels, or the predicted labels themselves. A ``predict`` that
        takes ``sensitive_features`` gets them too, at the end of a pipeline and inside of a search as well. A
        randomized classifier is audited by the decisions it makes.
    goals : goals or their texts
        A goal may carry its own confidence: ``goal.with_confidence(0.99)``.
    X, y : held-out rows and labels, or PartialLabels, optional
        They become the dataset ``train``. X is not needed if you pass predictions, nor y if no goal needs
        labels.
    sensitive_features : data frame, dict of arrays or array, optional
        Columns that goals use; a bare array is the column ``group``.
    baseline : array of shape (n_samples,), optional
        The predictions of the deployed model for the rows X, for churn, wins and losses.
    datasets : dict from names to Table, optional
        Held-out rows of other datasets that goals use.
    confidence : float in (0, 1), optional
        For goals that carry none; default 0.95.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights of the rows X; rates are then weighted, on the population too.
    largest_weight : float, optional
        The largest weight that a row of the population can have, in the units of ``sample_weight``, known before the
        rows were drawn. Needed unless all weights are equal; the verdicts are right for every population that keeps to
        it.
    largest_value : float or dict from columns to floats, optional
        The same for the amounts that goals count, as ``recall(value=amount)`` does: the largest amount that a row of
        the population can have.
    pos_label : label, optional
        The positive class; by default the model's own ``pos_label``, else the last of the sorted classes.
    defer_label : label, optional
        What predictions hold for rows that are deferred to a person; by default the model's own, where it defers.
    classes : array of labels, optional
        All classes, where y does not hold each of them; by default the model's ``classes_``. A prediction that is
        neither among them, nor in y of any dataset, nor the ``defer_label`` is refused, because it could be neither
        right nor wrong.

    Returns
    -------
    Audit
        For each goal: estimate, interval, bound, margin, verdict and counts. With m goals each has an m-th of its risk,
        so that all verdicts are right together with the least of the confidences. A verdict is wrong only if it states
        that a goal holds that does not, or the reverse, and for one population only one of these can happen: so each
        end of the interval may have the whole risk of the goal. A goal on rows of which there are none, as the recall
        of a group without positives, is undecided, and its ``note`` says why; one on several groups fails where
        another group shows it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from counterpoise import certify
    >>> from counterpoise.datasets import split_three_ways
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> parts = split_three_ways(len(y), seed=0)
    >>> model = GaussianNB().fit(X[parts.train], y[parts.train])
    >>> rows = parts.certify
    >>> print(certify(model, ["recall >= 0.9", "precision >= 0.95"], X[rows], y[rows]))
    goal               estimate     low    high   bound   margin  verdict             rows
    recall >= 0.9        0.9765  0.9176  0.9971  0.9000   0.0176  holds                 85
    precision >= 0.95    0.9022  0.8224  0.9543  0.9500  -0.1276  undecided, outside    92
    All verdicts are right together with confidence 0.95.
    """
    weights: dict[str, Any] = {"sample_weight": sample_weight, "largest_weight": largest_weight}
    weights["largest_value"] = largest_value
    partial = y if isinstance(y, PartialLabels) else None
    if partial is not None:
        X, y = np.empty((len(partial), 0)) if X is None else X, None
    has_rows = any(part is not None for part in (X, y, sensitive_features, baseline, *weights.values()))
    tables = with_train(Table(X, y, sensitive_features, baseline, **weights) if has_rows else None, datasets)
    if not tables:
        raise ValueError("An audit needs held-out rows: pass X and y, or datasets; got neither.")
    all_goals = as_goals(goals)
    names = dict.fromkeys(name for goal in all_goals for name in goal.datasets)
    predictions = {name: predict_dataset(model, name, table_of(tables, name)) for name in names}
    last = deciding_model(model)
    positive = getattr(last, "pos_label", None) if pos_label is None else pos_label
    if classes is None:
        classes = classes_of_model(last, *(table.y for table in tables.values()))
    options = {"pos_label": positive, "classes": classes, "defer_label": defer_label_of(last, defer_label)}
    if partial is not None:
        if datasets is not None:
            raise ValueError("PartialLabels are audited on one dataset; got others beside it. Audit them apart.")
        return audit_partial(all_goals, predictions[DEFAULT], partial, tables[DEFAULT], confidence, options)
    return audit(all_goals, predictions, tables, confidence=confidence, **options)


def defer_label_of(model: Any, label: Any) -> Any:
    """Return the label of deferred rows: the given one, else that of the model, None where it defers none."""
    deferral = getattr(model, "deferral", None)
    return deferral.label if label is None and deferral is not None else label


def deciding_model(model: Any) -> Any:
    """Return what decides: the last step of a pipeline, the best candidate of a search."""
    while hasattr(model, "best_estimator_") or hasattr(model, "steps"):
        best = getattr(model, "best_estimator_", None)
        model = model.steps[-1][1] if best is None else best
    return model


def classes_of_model(model: Any, *labels: AnyArray | None) -> AnyArray | None:
    """Return the classes of a model and of labels; None where the model names none."""
    classes: Any = getattr(model, "classes_", None)
    return distinct_labels([as_labels(classes), *labels]) if np.ndim(classes) == 1 and len(classes) else None


def audit(
    goals: Any,
    predictions: Any,
    data: Any,
    *,
    sensitive_features: Any = None,
    baseline: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    largest_weight: float | None = None,
    largest_value: float | Mapping[str, float] | None = None,
    labelled: ArrayLike | None = None,
    confidence: float | None = None,
    pos_label: Any = None,
    classes: ArrayLike | None = None,
    defer_label: Any = None,
    kind: str = "labels",
) -> Audit:
    """Audit predicted labels; ``certify`` does so for a model.

    Parameters
    ----------
    goals : goals or their texts
    predictions : array of labels, or a dict of them by dataset
        With ``kind="probabilities"`` the probability of each decision, as ``decision_proba`` of a classifier that draws
        returns it.
    data : array of true labels, PartialLabels, Table, or dict of Tables by dataset
        Held-out rows: the classifier was neither fitted nor chosen on them. An array, or a single table, is the dataset
        ``train``. With ``PartialLabels`` chance decides whose label is known, and rates of all rows are bounded.
    sensitive_features, baseline, sample_weight, largest_weight, largest_value
        Columns, baseline predictions and weights of the rows, where ``data`` is an array of labels; as for ``Table``.
    labelled : array of bool of shape (n_samples,), optional
        Of which rows the label is known, where ``data`` is an array of labels of two classes, as of loans that were
        granted, and no chance decides that; what the others hold is not read. A rate that depends on missing labels has
        no estimate, and its interval holds whatever they are. It is then wide: that is all that such rows can show.
    confidence, pos_label
        As for ``certify``.
    defer_label : label, optional
        What predictions hold for rows that are deferred to a person.
    classes : array of labels, optional
        All classes, where y may lack some of them. A prediction that is neither among them, nor in y of any
        dataset, nor the ``defer_label`` is refused, because it could be neither right nor wrong.
    kind : {"labels", "probabilities"}, default="labels"
        The kind of the predictions. Labels are audited as decisions. Probabilities are audited by their expected
        rates over the draws, which do not depend on the key.

    Returns
    -------
    Audit
        As from ``certify``.

    Examples
    --------
    >>> from counterpoise.auditing.audit import audit
    >>> from counterpoise.goals import Table
    >>> result = audit("recall >= 0.8", [0, 1] * 100, Table(None, y=[0, 1] * 100))
    >>> result.holds, round(result[0].low, 3)
    (True, 0.97)
    >>> decisions, labels, sex = [0, 1, 1, 1] * 100, [0, 1, 0, 1] * 100, ["F", "M"] * 200
    >>> print(audit("false_positive_rate(sex=F) <= 0.6", decisions, labels, sensitive_features={"sex": sex}))
    goal                               estimate     low    high   bound  margin  verdict  rows
    false_positive_rate(sex=F) <= 0.6    0.5000  0.4396  0.5604  0.6000  0.0396  holds     200
    All verdicts are right together with confidence 0.95.

    Of the people who were refused nobody knows the label. The selection rate needs none, and the recall may be anything
    between two numbers:

    >>> granted = [False, True, True, True] * 100
    >>> print(audit(["selection_rate <= 0.8", "recall >= 0.7"], decisions, labels, labelled=granted))
    goal                  estimate     low    high   bound   margin  verdict    rows
    positive_rate <= 0.8    0.7500  0.7046  0.7917  0.8000   0.0083  holds       400
    recall >= 0.7                -  0.6102  1.0000  0.7000  -0.0898  undecided   200
    recall >= 0.7: it depends on missing labels; low and high hold whatever these are.
    All verdicts are right together with confidence 0.95.
    """
    options: dict[str, Any] = {"pos_label": pos_label, "classes": classes, "defer_label": defer_label}
    if isinstance(data, PartialLabels):
        _check_partial(predictions, labelled, kind)
        table = Table(np.empty((len(data), 0)), None, sensitive_features, baseline, sample_weight=sample_weight)
        return audit_partial(goals, predictions, data, table, confidence, options)
    all_goals = add_confidence(goals, confidence)
    weights: dict[str, Any] = {"sample_weight": sample_weight, "largest_weight": largest_weight}
    weights["largest_value"] = largest_value
    if labelled is not None:
        data, known = _with_filled_labels(all_goals, data, labelled, kind)
    if not isinstance(data, (Table, Mapping)):
        data = Table(None, data, sensitive_features, baseline, **weights)
    elif any(part is not None for part in (sensitive_features, baseline, *weights.values())):
        raise ValueError("You passed columns or weights beside a Table. Pass them to the Table itself.")
    if not all_goals:
        raise ValueError("An audit needs at least one goal, as in recall >= 0.9; got none.")
    check_choice(kind, "kind", _KINDS)
    prepared = prepare(predictions, data, kind=kind, **options)
    if labelled is None:
        return audit_predictions(all_goals, prepared)
    classes = prepared.views.classes
    if classes.several:
        raise ValueError(f"labelled is for two classes; there are {len(classes.several)}. Audit one against the rest.")
    if None in classes.labels:
        raise ValueError("The known labels and the predictions are all of one class. Name both with classes=[0, 1].")

    def measure(part: Goal, views: Views, chances: Any, **_options: Any) -> GoalOutcome | WorstCaseOutcome:
        return measure_worst_case(part, views, chances, known)

    return audit_predictions(all_goals, prepared, measure=measure)


def _check_partial(predictions: Any, labelled: Any, kind: str) -> None:
    """Refuse what does not go with labels that are known in part."""
    if labelled is not None or isinstance(predictions, Mapping) or kind != "labels":
        raise ValueError(
            "PartialLabels say what is labelled, and are for predicted labels of one dataset; got labelled, a dict of "
            "predictions, or probabilities beside them."
        )


def audit_partial(
    goals: Any,
    predictions: Any,
    labels: PartialLabels,
    table: Table,
    confidence: float | None,
    options: Mapping[str, Any],
) -> Audit:
    """Audit predicted labels on rows whose labels are known in part; the table has what else belongs to them.

    Rows that were labelled alone, each with the same probability, are a sample of all: they are audited as such.
    """
    if table.sample_weight is not None:
        raise ValueError("PartialLabels are audited without sample_weight. Leave the weights out.")
    is_alone = labels.proxy is None and np.ptp(labels.propensity) == 0
    if is_alone or labels.is_complete:
        known = np.flatnonzero(labels.is_known)
        own = table.part(known, labels.labels, None)
        return audit(goals, as_labels(predictions)[known], own, confidence=confidence, **options)
    rows = MassRows.of(labels, predictions, table, options)
    return audit_predictions(add_confidence(goals, confidence), rows.prepared, measure=rows.measure)


def _with_filled_labels(goals: Sequence[Goal], data: Any, labelled: ArrayLike, kind: str) -> tuple[AnyArray, BoolArray]:
    """Return labels with a known one in the place of those that are missing, and which are known."""
    if data is None or isinstance(data, (Table, Mapping)) or kind != "labels":
        raise ValueError(
            "labelled needs an array of labels as data, and predicted labels. Pass y itself, with sensitive_features, "
            "baseline and sample_weight beside it."
        )
    labels, known = np.array(as_labels(data)), np.asarray(labelled)
    if known.shape != labels.shape or not np.isin(known, (0, 1)).all() or not known.any():
        raise ValueError(
            f"labelled must be an array of True and False that says which of the {len(labels)} labels are known, "
            f"some of them; got shape {known.shape}, type {known.dtype}."
        )
    for goal in goals:
        least = getattr(goal.left, "min_rows", 0) or max(term.metric.min_rows for term in terms_of(goal))
        if least or getattr(goal.left, "within", ()):
            raise ValueError(
                f"{goal} leaves out groups by their number of labels, some of which are missing. Leave min_rows and "
                "within out, or write a goal for each group."
            )
    known = known.astype(np.bool_)
    labels[~known] = labels[known][0]
    if labels.dtype.kind == "f" and not (labels % 1).any():
        labels = labels.astype(np.int64)  # whole numbers became floats by a missing one among them
    return labels, known


def audit_predictions(
    goals: Sequence[Goal],
    prepared: PreparedPredictions,
    *,
    quick: bool = False,
    needs_limits: bool = True,
    measure: Any = measure_goal,
) -> Audit:
    """Audit labels that were checked already, against goals that carry a confidence.

    Where it is ``quick``, the bounds of sums of rates are right and wider than they need be: exact ones take a while.
    A goal on rows of which there are none, as the recall of a group without positives, is undecided, and its note says
    why; the others have their verdicts. So is one on amounts without a ``largest_value``, unless it ``needs_limits``.
    ``measure`` returns what rows show about one part of a goal.
    """

    def audit_one(goal: Goal, risk: float) -> GoalAudit:
        try:
            return _audit_goal(goal, prepared, risk, quick=quick, measure=measure)
        except NoLargestValue as error:
            if needs_limits:
                raise
            note = str(error).partition(NEEDED_BY)[0].rstrip(".")
        check = goal.evaluate_where_possible(prepared)
        ends: tuple[float, float] = -math.inf, math.inf
        counts = tuple((name, prepared.views.table(name).n_samples) for name in goal.datasets)
        return GoalAudit(goal, check.value, *ends, goal.bound, -math.inf, UNDECIDED, counts, note, worst=check.worst)

    return Audit(audit_one(goal, risk) for goal, risk in zip(goals, risk_of_each(goals), strict=True))


def tighten(
    goal: Goal | str,
    data: Any,
    *,
    predictions: Any = None,
    confidence: float | None = None,
    n_goals: int = 1,
    pos_label: Any = None,
    defer_label: Any = None,
    classes: ArrayLike | None = None,
    kind: str = "labels",
) -> Goal:
    """Return the goal that a classifier must meet on the rows of an audit to pass it.

    Fit or choose inside this goal, then audit. For a plain rate the bound is exact: the audit says "holds" where, and
    only where, the tightened goal is met on its rows; for a ratio such as precision too, if as many rows count in it as
    for the predictions given. For weighted rows it is so if failures fall on heavy and on light rows alike. A goal on
    several rates depends on each of them: its bound is moved by the margin that the predictions would need, and is a
    plan.

    Parameters
    ----------
    goal : goal or its text
    data : Table, or dict of Tables by dataset
        The rows of the audit, or others of the same number: labels and groups give the counts.
    predictions : array of labels, or dict of them by dataset, optional
        Of a classifier like the one wanted. By default half of the rows are taken to be predicted positive, the
        widest case for a rate.
    confidence : float in (0, 1), optional
        For a goal that carries none; default 0.95.
    n_goals : int, default=1
        How many goals the audit has: each gets its part of the risk.
    pos_label : label, optional
        The positive class; by default the last of the sorted classes.
    defer_label : label, optional
        What predictions hold for rows that are deferred; without predictions anything, where some will be.
    classes, kind
        As for ``audit``.

    Returns
    -------
    Goal
        With another bound, and no confidence.

    Raises
    ------
    ValueError
        If there are too few rows for any classifier to pass; the message says how many it takes.

    Examples
    --------
    >>> from counterpoise.auditing.audit import tighten
    >>> from counterpoise.goals import Table
    >>> rows = Table(None, y=[0, 1] * 500)
    >>> print(tighten("recall >= 0.9", rows))
    recall >= 0.924
    """
    all_goals, n_goals = add_confidence(goal, confidence), check_count(n_goals, "n_goals")
    if len(all_goals) != 1:
        raise ValueError(f"tighten takes one goal; got {len(all_goals)}. Call it for each, with n_goals their number.")
    target, risk = all_goals[0], risk_of_each(all_goals * n_goals)[0]
    if predictions is None:
        tables = as_tables(data)
        labels = known_labels((table.y for table in tables.values()), classes)
        known = find_classes([labels], pos_label=pos_label)._replace(deferred=defer_label)
        views, chances, are_drawn = Views(tables, known), None, False
    else:
        options: dict[str, Any] = {"pos_label": pos_label, "classes": classes, "defer_label": defer_label}
        views, chances, are_drawn = prepare(predictions, data, kind=check_choice(kind, "kind", _KINDS), **options)
    parts = [(part, measure_goal(part, views, chances, are_drawn=are_drawn)) for part in target.parts(views)]
    bounds = [tighten_goal(part, outcome, risk).bound for part, outcome in parts]
    return target.with_bound(min(bounds) if target.sense == "<=" else max(bounds)).with_confidence(None)


def add_confidence(goals: Any, confidence: float | None) -> list[Goal]:
    """Return the goals, those that carry no confidence with the given one."""
    level = _CONFIDENCE if confidence is None else check_confidence(confidence)
    return [goal if goal.confidence is not None else goal.with_confidence(level) for goal in as_goals(goals)]


def _audit_goal(
    goal: Goal, prepared: PreparedPredictions, risk: float, *, quick: bool = False, measure: Any = measure_goal
) -> GoalAudit:
    """Return what rows show about a goal.

    A goal that is missed is missed in some part: to show that it holds, each part may take the whole
    risk. To show that it fails one part is enough, which may happen by chance: each takes its share of the risk.
    A part on rows of which there are none may be anything: the goal cannot be shown to hold, only to fail.
    """
    views, chances, are_drawn = prepared
    if goal.is_total:
        return _audit_total(goal, prepared)
    outcomes: list[tuple[int, Goal, GoalOutcome | WorstCaseOutcome]] = []
    reasons: list[str] = []
    parts: tuple[Goal, ...] = ()
    with _note_missing_rows(goal, reasons):
        parts = goal.parts(views)
    for place, part in enumerate(parts):
        with _note_missing_rows(part, reasons):
            check_denominators([part], views)
            outcomes.append((place, part, measure(part, views, chances, are_drawn=are_drawn)))
    bounds = _worst(goal, [one for _, _, one in outcomes], risk, len(parts), _quick_ends() if quick else _exact_end)
    if reasons:
        bounds = bounds._replace(high=math.inf) if goal.sense == "<=" else bounds._replace(low=-math.inf)
    estimates = [(place, one.estimate) for place, _, one in outcomes if not np.isnan(one.estimate)] or [(0, np.nan)]
    worst, estimate = (max if goal.sense == "<=" else min)(estimates, key=lambda one: one[1])
    margin = goal.bound - bounds.high if goal.sense == "<=" else bounds.low - goal.bound
    fails = bounds.low > goal.bound if goal.sense == "<=" else bounds.high < goal.bound
    verdict = HOLDS if margin >= 0 else FAILS if fails else UNDECIDED
    if reasons and not (outcomes and fails):
        return GoalAudit(goal, math.nan, -math.inf, math.inf, goal.bound, -math.inf, UNDECIDED, (), reasons[0])
    left_out = goal.left_out(views)
    counts = dict.fromkeys((str(rows), count) for _, _, one in outcomes for rows, count in one.counts())
    hidden = any(isinstance(one, WorstCaseOutcome) and math.isnan(one.estimate) for _, _, one in outcomes)
    if hidden:
        estimate = math.nan
        reasons.append(_HIDDEN)
    plain = [(part, one) for _, part, one in outcomes if isinstance(one, GoalOutcome)]
    short = (shortage(part, one, risk) for part, one in plain if verdict == UNDECIDED and not quick)
    limits = ((name, prepared.views.table(name).largest_weight) for name in goal.datasets)
    largest = tuple((name, most) for name, most in limits if most is not None)
    undefined = _UNDEFINED if math.isnan(estimate) else ""
    note = next(filter(None, (*reasons, *short, undefined)), "")
    at = "" if hidden else goal.worst_part(worst, estimate, views)
    amounts = {column: views.table(name).largest_amount(column, name) for name, column in _valued(parts)}
    row = GoalAudit(goal, estimate, *bounds, goal.bound, margin, verdict, tuple(counts), note, largest, at, left_out)
    return row._replace(largest_values=tuple(amounts.items()))


def _valued(parts: Sequence[Goal]) -> Iterator[tuple[str, str]]:
    """Yield datasets and the columns of amounts that their rows count with."""
    for part in parts:
        for rows in (count.rows for term in terms_of(part) for count in term.row_counts()):
            if rows.value is not None:
                yield rows.name, rows.value


def _audit_total(goal: Goal, prepared: PreparedPredictions) -> GoalAudit:
    """Return what rows show about a goal on a total: a fact about these rows, without an interval."""
    check = goal.evaluate_where_possible(prepared)
    if math.isnan(check.value):
        return GoalAudit(goal, math.nan, -math.inf, math.inf, goal.bound, -math.inf, UNDECIDED, (), check.note)
    inside = goal.sign * (check.bound - check.value)
    counts = tuple((name, prepared.views.table(name).n_samples) for name in goal.datasets)
    verdict, note = HOLDS if check.holds else FAILS, "a total is about these rows and says nothing about others"
    value = check.value
    return GoalAudit(goal, value, value, value, check.bound, inside, verdict, counts, note, worst=check.worst)


@contextmanager
def _note_missing_rows(asking: Goal, reasons: list[str]) -> Iterator[None]:
    """Note why a rate has no value on the rows. An unknown value may be a typing error, and is raised."""
    try:
        with name_in_errors(asking):
            yield
    except UnknownValue:
        raise
    except NoRows as error:
        reasons.append(no_rows_reason(error))


def _worst(
    goal: Goal,
    outcomes: Sequence[GoalOutcome | WorstCaseOutcome],
    risk: float,
    n_parts: int,
    end: Callable[[Any, float, str], float],
) -> Bounds:
    """Return bounds on the worst part: towards the goal's bound each part takes the whole risk, else its share."""
    worst = max if goal.sense == "<=" else min
    share = risk / max(n_parts, 1)
    at_low, at_high = (share, risk) if goal.sense == "<=" else (risk, share)
    low = worst((end(one, at_low, "low") for one in outcomes), default=-np.inf)
    high = worst((end(one, at_high, "high") for one in outcomes), default=np.inf)
    return Bounds(max(low, goal.left.least), min(high, goal.left.most))


def _exact_end(outcome: Any, risk: float, which: str) -> float:
    return float(outcome.end(risk, which))


def _quick_ends() -> Callable[[GoalOutcome, float, str], float]:
    """Return a function for one end of quick bounds, both of which are computed together."""
    known: dict[tuple[int, float], Bounds] = {}

    def end(outcome: GoalOutcome, risk: float, which: str) -> float:
        name = id(outcome), risk
        if name not in known:
            known[name] = outcome.quick_bounds(risk)
        return float(getattr(known[name], which))

    return end
