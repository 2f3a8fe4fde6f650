"""Checks of a problem before any model is trained, and warnings about a fit with an unexpected result.

Checks of goals, objective and groups need no model. Cautions are warnings about a fit that succeeded.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from counterpoise._base.checks import warn_caller
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.goals import Rate, Ratio, Table
from counterpoise.goals.binding import Views
from counterpoise.goals.bound_goals import check_contradictions, check_goal_data, check_goal_ranges, refuse_compared
from counterpoise.goals.classes import is_positive_word
from counterpoise.goals.expressions import terms_of
from counterpoise.goals.rates import WorstRate
from counterpoise.goals.terms import Pairs, Term
from counterpoise.rules.choosing import Problem, groups_by, refuse_in_mixtures
from counterpoise.rules.goal_rows import TRAIN, Positive
from counterpoise.rules.margins import OF_FOLDS, Margins, two_digits
from counterpoise.rules.options import Proof, as_groups
from counterpoise.rules.proving import GoalProof
from counterpoise.rules.scores.table import check_groups_of_twins, find_groups
from counterpoise.theory.risks import RiskRows

_PAIR = 2  # classes
# Metrics that are the same whichever of two classes is called positive, unless their rows are those of one class.
_OF_BOTH_CLASSES = {
    *("error_rate", "accuracy", "correct", "balanced_accuracy", "cost", "defer_rate", "churn", "flip_rate"),
    *("win_rate", "loss_rate", "wins_minus_losses"),
}
_NEARLY_ALL = 0.5  # part of the rows that may be deferred before a warning
_FAR = 0.1  # part of the rows by which decisions may err more often than a model alone before a warning
_USUAL_MIN_ROWS = 100  # of a group that a goal is about
_IN_FILES = ' ("none" in a goals file and on the command line)'


def check_problem(
    problem: Problem,
    tables: Mapping[str, Table],
    positive: Positive,
    *,
    groups: IntArray | None = None,
    by: Any = (),
    counts: FloatArray | None = None,
    trains: bool = True,
) -> None:
    """Refuse goals, an objective or groups that do not fit the rows, whatever the models predict.

    Parameters
    ----------
    problem : Problem
        Goals and objective; their texts are parsed already.
    tables : dict from names to Table
        The rows on which the mixture is chosen, as ``train``, and the other datasets.
    positive : Positive
        The classes.
    groups : array of shape (n_samples,), optional
        The group of each row of ``train`` by all sensitive features.
    by : str, list of str or Groups
        Columns that rules use, and what to do about small groups.
    counts : array of shape (n_samples,), optional
        How many rows each row of ``train`` stands for. Default: itself.
    trains : bool, default=True
        Whether models would be trained: a bound beyond what any rate can reach, and two that contradict each other,
        are then refused here. Otherwise the choice among the models refuses them, and says which bound they can meet.
    """
    check_goal_ranges(problem.goals, trains=trains)
    if not positive.is_binary:
        refuse_compared(problem.goals, "A classifier of more than two classes")
    refuse_in_mixtures(problem)
    deferred = None if problem.deferral is None else True  # whatever the answer is called
    objective, train = problem.objective, tables[TRAIN]
    views = Views(tables, positive._replace(deferred=deferred).labels)
    check_goal_data(problem.goals, views, objective if isinstance(objective, Rate | Ratio) else None)
    if trains:
        check_contradictions(problem.goals, views)
    if not isinstance(objective, Rate | Ratio):
        objective.bind(RiskRows(train.n_samples, 1, lambda names: groups_by(names, train, groups)))
    codes = find_groups(as_groups(by), train, counts).codes_of_each(tables)
    for pairs in {name for goal in problem.goals for name in goal.counted_datasets if isinstance(name, Pairs)}:
        check_groups_of_twins(pairs, codes, as_groups(by).names)


class Caution(UserWarning):
    """Base class of the warnings of classifiers."""


class CostlyDecisions(Caution):
    """The decisions are wrong far more often than those of a model alone: the price of the goals or of the tail."""


class ConstantDecisions(Caution):
    """The decision is the same for all rows, or nearly all rows are deferred."""


class ConfidenceNotReached(Caution):
    """Goals are met on the selection rows, but not with the requested confidence on new rows."""


class MissedGoals(Caution):
    """Decisions miss goals on the rows that they were trained on."""


class UnnamedPositive(Caution):
    """Goals use a positive class, and ``pos_label`` names none."""


def warn_of_the_positive_class(goals: Iterable[Any], objective: Any, classes: AnyArray, pos_label: Any) -> None:
    """Warn if goals or an objective refer to a positive class that only the order of two texts decides."""
    labels = classes.tolist()
    if pos_label is not None or len(labels) != _PAIR or not isinstance(labels[1], str) or is_positive_word(labels[1]):
        return
    rates = [*goals, *([objective] if isinstance(objective, Rate | Ratio) else [])]
    if not any(_depends_on_positive(term) for rate in rates for term in terms_of(rate)):
        return
    warn_caller(
        "The goals or the objective refer to a positive class, and you did not name it. counterpoise takes "
        f"{labels[1]!r}, because it "
        f"sorts after {labels[0]!r}. Set pos_label={labels[0]!r} or pos_label={labels[1]!r}.",
        UnnamedPositive,
    )


def _depends_on_positive(term: Term) -> bool:
    """Return whether a rate would be another one if the other of two classes were the positive one."""
    if term.rows.of is not None:  # it names its class
        return False
    is_part = term.rows.label is not None or term.rows.baseline is not None
    return is_part or term.metric.name not in _OF_BOTH_CLASSES


def warn_of_a_constant(decision: str, error: float, constant_error: float) -> None:
    """Warn that all training rows get the same decision."""
    warn_caller(
        f"The decisions meet the goals only because they are constant: {decision} for every row. That counts as a "
        f"miss. {_beside_constant(error, constant_error)} Relax the goals, add features, or lower regularization.",
        ConstantDecisions,
    )


def warn_of_missed_goals(missed: Iterable[str], error: float, constant_error: float, *, has_offset: bool) -> None:
    """Warn that decisions miss goals that the ramp rates meet, and by how much."""
    other = "relax the goals, or add features" if has_offset else "set fit_intercept=True, or relax the goals"
    warn_caller(
        "The ramp rates meet the goals on the training rows, but the decisions of every threshold that was tried "
        f"miss them: {'; '.join(missed)}. {_beside_constant(error, constant_error)} Set decision='ramp', whose draws "
        f"meet the goals in expectation, {other}.",
        MissedGoals,
    )


def _beside_constant(error: float, constant_error: float) -> str:
    return f"On the training rows {error:.2%} of the decisions are wrong, of the best constant {constant_error:.2%}."


def warn_of_one_answer(deferred: float, constant: Any) -> None:
    """Warn that most rows are deferred, or that all rows get one class whatever their scores."""
    if deferred >= _NEARLY_ALL:
        warn_caller(
            f"The rules defer {deferred:.1%} of the rows, because that has the least loss with this cost of deferral "
            "and these goals. Raise the cost, relax the goals, or limit deferral with a goal such as "
            "defer_rate <= 0.1.",
            ConstantDecisions,
        )
    if constant is not None:
        warn_caller(
            f"The rules decide {constant!r} for every row, whatever its score, and so meet the goals. Check the "
            "positive class, which must have the higher scores: set pos_label (positive on the command line).",
            ConstantDecisions,
        )


def warn_of_margins(margins: Margins | None, confidence: float | Proof | None, *, has_folds: bool) -> None:
    """Warn that goals may fail on new rows more often than requested: which one, and what would help."""
    if margins is not None and margins.proof is not None and not margins.proof.is_proven and not margins.reason:
        _warn_of_no_proof(margins.proof)
    if margins is None or margins.confidence is not None:
        return
    if margins.reason:
        warn_caller(
            f"confidence={confidence} is not used: {margins.reason}. The decisions meet the goals on the selection "
            "rows, but each may fail on new rows about half of the time. For no margins set "
            f"confidence=None{_IN_FILES}.",
            ConfidenceNotReached,
        )
        return
    if margins.limiting is None:  # lists of rows, and goals with a confidence of their own: nothing was requested
        return
    confidence = confidence.confidence if isinstance(confidence, Proof) else confidence
    needed = ""
    if margins.rows_needed is not None:
        needed = f" If rates stay as here, {margins.rows_needed} would be enough."
    if margins.set_aside:
        warn_caller(_left_out(margins, confidence), ConfidenceNotReached)
        return
    shifted = next((margin for margin in margins.margins if margin.has_large_shift), None)
    if shifted is not None:  # which more rows of this kind do not cure as they cure chance
        needed = (
            " Scores of the deciding model have another spread than those of the models that scored these rows, which "
            f"moves {shifted.goal} by about {shifted.shift:.2g} towards its bound. Choose on other rows (X_val and "
            "y_val), or regularise the model."
        )
    goal = f" The goal {margins.limiting} limits the confidence."
    folds = _other_folds(margins) if has_folds else ""
    warn_caller(
        f"The decisions meet the goals on the selection rows, but not with a confidence of {confidence} on new rows"
        f"{_how_near(margins)}. The rule that comes closest was chosen; on these rows its objective is "
        f"{margins.cost:.4g} above that of the best rule without margins.{goal}{needed}{folds} Relax a "
        f"goal, pass more rows, lower the confidence, or set it to None{_IN_FILES}.",
        ConfidenceNotReached,
    )


def _left_out(margins: Margins, confidence: float | None) -> str:
    """Return for which rows there are no margins, and what would help."""
    missing = "; ".join(f"{goal} has no margin, as {group}" for goal, group in margins.set_aside)
    largest = max(group.n_rows for _, group in margins.set_aside)
    least = max(_USUAL_MIN_ROWS, two_digits(largest + 1))
    advice = "Relax the goal, or pass more of these rows"
    if any(isinstance(goal.left, WorstRate) for goal, _ in margins.set_aside):
        advice += f", or write min_rows={least} into goals over groups or classes, which leaves smaller ones out"
    others = " All other rows have a margin."
    if margins.share is not None:
        others = f" All other rows have a margin: they meet the goals with a probability of about {margins.share:.2f}."
    return (
        f"Not all goals can have a margin for a confidence of {confidence}: {missing}. No rule within reach is far "
        f"enough inside of the bound there. These rows meet it, but new rows may miss it.{others} {advice}."
    )


def _how_near(margins: Margins) -> str:
    if margins.few_rows is not None:
        return f", as {margins.few_rows}, or fewer that have most of the amounts or weights, which show too little"
    return "" if margins.share is None else f": they hold together with a probability of about {margins.share:.2f}"


def _other_folds(margins: Margins) -> str:
    """Return that other folds may reach the confidence, where it is missed by no more than they move it."""
    if margins.missed_by is None or margins.missed_by > OF_FOLDS:
        return ""
    return (
        " Another random_state, which draws other folds, may reach the confidence by chance: the goals hold no more "
        "surely then."
    )


def _warn_of_no_proof(proof: GoalProof) -> None:
    """Warn that no rule passed the tests, and what would help."""
    needed = f" A proof would take about {proof.rows_needed:,} selection rows." if proof.rows_needed else ""
    advice = "" if proof.reason else " Relax a goal, lower the confidence, or pass more rows."
    warn_caller(
        f"{proof} The rule is chosen with margins instead, for a confidence of {proof.confidence}.{needed}{advice}",
        ConfidenceNotReached,
    )


def warn_of_the_average(mixed: float, alone: float, whose: str, problem: Any) -> bool:
    """Warn if decisions are wrong far more often than those of a model alone, and return whether they are."""
    if mixed <= alone + _FAR:
        return False
    has_tail = getattr(problem.objective, "tail_fraction", None) != 1.0
    ways = [f"set budget={_FAR / 2}, which limits it"] if has_tail and problem.budget is None else []
    ways += ["set a larger alpha"] if has_tail else []
    ways += ["relax the goals"] if problem.goals else []
    price = " and ".join([*(["the tail"] if has_tail else []), *(["the goals"] if problem.goals else [])])
    warn_caller(
        f"On the selection rows the decisions are wrong for {mixed:.1%} of the rows, and those of {whose} alone for "
        f"{max(alone, 0.0):.1%}. The difference is the price of {price}. To lower it, {', or '.join(ways)}.",
        CostlyDecisions,
    )
    return True
