"""Principal reasons of the adverse decisions of a batch, most frequent first: from the explanations of its rows.

A reason is what the model can state exactly: on which side of the threshold the score is, by how much, and which
features moved it there. A feature lowered the score of a row where it added less to it than to those of the batch on
average. For each row these differences add up to the difference of its score from the average score, in the units in
which the model adds them up, such as log-odds. So they are exact for trees and linear models; for others there are
none.
"""

import csv
import io
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import check_count, value_range
from counterpoise._base.text import text_table
from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals.tables import Table, group_codes
from counterpoise.goals.terms import text_of
from counterpoise.rules.explaining import Explanation

__all__ = ["GroupReasons", "PrincipalReasons", "Reason", "principal_reasons"]

_ROUNDING = 1e-9  # part of the largest contribution, by which two may differ and be one
_HEADS = ("reason", "decisions", "share", "first", "mean change")
_EVERYBODY = "everybody"


class Reason(NamedTuple):
    """A feature among the principal reasons of some adverse decisions."""

    feature: str
    decisions: int  # of which it is a principal reason
    share: float  # of all adverse decisions about the group
    first: int  # decisions in which it moved the score most
    change: float  # what it added to the scores of these rows, less the average of the batch: their mean


class GroupReasons(NamedTuple):
    """The adverse decisions about a group of people, and their reasons, most frequent first."""

    group: str
    rows: int
    adverse: int  # rows with the adverse decision
    distance: tuple[float, float, float]  # least, median and most of their scores from the threshold
    reasons: tuple[Reason, ...]


class PrincipalReasons(NamedTuple):
    """The reasons of a batch, of everybody and of each group; ``print`` shows them."""

    decision: Any  # the adverse one
    groups: tuple[GroupReasons, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        parts = []
        for group in self.groups:
            decided = "with an adverse decision" if self.decision is None else f"decided {text_of(self.decision)}"
            head = f"{group.group}: {group.adverse} of {group.rows} {decided}"
            if group.adverse and math.isfinite(group.distance[2]):
                least, median, most = (f"{one:.4g}" for one in group.distance)
                head += f"; scores are {median} from the threshold in the median, {least} to {most}"
            lines = [
                [one.feature, str(one.decisions), f"{one.share:.1%}", str(one.first), f"{one.change:+.3g}"]
                for one in group.reasons
            ]
            parts.append("\n".join([head, *([text_table([_HEADS, *lines], "<>>>>")] if lines else [])]))
        return "\n\n".join([*parts, "\n".join(self.notes)])

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        groups = [one._asdict() | {"reasons": [each._asdict() for each in one.reasons]} for one in self.groups]
        return {"decision": self.decision, "groups": groups, "notes": list(self.notes)}

    def as_csv(self) -> str:
        """Return a CSV text, a line for each reason of each group."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["group", "rows", "adverse", *_HEADS])
        for group in self.groups:
            writer.writerows([group.group, group.rows, group.adverse, *one] for one in group.reasons)
        return text.getvalue()


def principal_reasons(
    explanations: Sequence[Explanation], sensitive_features: Any = None, *, adverse: Any = None, n_reasons: int = 4
) -> PrincipalReasons:
    """Return the principal reasons of the adverse decisions of a batch, most frequent first.

    Parameters
    ----------
    explanations : list of Explanation
        What ``explain`` returns for all rows of the batch, whatever was decided: a reason is a difference from their
        average. Decisions are of two classes, by thresholds of one score.
    sensitive_features : data frame, dict of arrays or array, optional
        Columns of the same rows, by whose values together the reasons are also listed. Default: by the group whose
        threshold applied.
    adverse : label, optional
        The decision that needs reasons. Default: the negative one, of scores that are not above the threshold. Name the
        positive one where that is adverse, as where the model predicts a default; reasons are then what raised the
        score.
    n_reasons : int >= 1, default=4
        How many features of each decision are principal reasons: at most so many, those that moved the score most.

    Returns
    -------
    PrincipalReasons
        ``print`` shows it; ``as_csv()`` and ``as_dict()`` return it.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import counterpoise as cp
    >>> from counterpoise.datasets import loans
    >>> people, default = loans(1000, random_state=0)
    >>> X = people[["income", "late_payments"]] / [1000, 1]
    >>> model = cp.GoalClassifier(LogisticRegression(), random_state=0).fit(X, people["default"])
    >>> print(cp.principal_reasons(model.explain(X), adverse="yes"))
    everybody: ...
    """
    check_count(n_reasons, "n_reasons")
    explanations = list(explanations)
    if not explanations:
        raise ValueError("principal_reasons needs the explanations of at least one row; got none.")
    scores, thresholds = (np.array([getattr(one, name) for one in explanations]) for name in ("score", "threshold"))
    if not np.isfinite(scores).all() or any(one.runner_up is not None for one in explanations):
        raise ValueError(
            "Principal reasons are for decisions of two classes by thresholds of one score, which these are not. Set "
            "decision='fixed', or read the explanation of each row."
        )
    lowers = np.array([one.threshold if one.lower is None else one.lower for one in explanations])
    is_above, is_adverse, sign = scores > thresholds, scores <= lowers, 1.0  # between both, a person decides
    decisions = list(dict.fromkeys(one.decision for one in explanations))
    if adverse is not None:
        is_adverse = np.array([one.decision == adverse for one in explanations], dtype=np.bool_)
        if not is_adverse.any():
            known = ", ".join(repr(np.asarray(one).item()) for one in decisions)
            raise ValueError(f"adverse must be one of the decisions {known}; got {adverse!r}.")
        sign = -1.0 if is_above[is_adverse].all() else 1.0
        if sign > 0 and not (scores <= lowers)[is_adverse].all():
            raise ValueError(f"adverse must be a decision that the model makes; {adverse!r} leaves it to a person.")
    elif is_adverse.any():
        adverse = explanations[int(is_adverse.argmax())].decision
    names, changes = _changes(explanations)
    found = []
    for name, rows in _groups(explanations, sensitive_features):
        chosen = rows[is_adverse[rows]]
        gaps = np.abs((lowers if sign > 0 else thresholds)[chosen] - scores[chosen])
        least, median, most = np.quantile(gaps, [0.0, 0.5, 1.0]).tolist() if chosen.size else [np.nan] * 3
        reasons = _reasons(names, sign * changes[chosen], n_reasons, sign)
        found.append(GroupReasons(name, rows.size, chosen.size, (least, median, most), reasons))
    return PrincipalReasons(
        adverse, tuple(found), _notes(names, len(scores), n_reasons, "less" if sign > 0 else "more")
    )


def _groups(explanations: Sequence[Explanation], features: Any) -> list[tuple[str, IntArray]]:
    """Return the rows of everybody, and of each group where there are several."""
    table = Table(None, None, [one.group for one in explanations] if features is None else features)
    if table.n_samples != len(explanations):
        raise ValueError(
            f"sensitive_features must have one row for each of the {len(explanations)} explanations; got "
            f"{table.n_samples}."
        )
    codes, names = group_codes(table)
    names = [one.removeprefix("group=") for one in names] if features is None else names
    each = [(name, np.flatnonzero(codes == code)) for code, name in enumerate(names)]
    return [(_EVERYBODY, np.arange(len(explanations))), *(each if len(each) > 1 else [])]


def _changes(explanations: Sequence[Explanation]) -> tuple[list[str], FloatArray]:
    """Return the features, and what each adds to the score of each row, less its average."""
    if not all(one.contributions for one in explanations):
        return [], np.zeros((len(explanations), 0))
    known = [one.contributions or {} for one in explanations]
    names = list(dict.fromkeys(name for one in known for name in one))
    values = np.array([[one.get(name, 0.0) for name in names] for one in known], dtype=np.float64)
    value_range(values, "contributions", differ=False)  # refuses NaN
    changes = values - values.mean(axis=0)
    changes[np.abs(changes) <= _ROUNDING * np.abs(values).max(initial=0.0)] = 0.0
    return names, changes


def _reasons(names: Sequence[str], changes: FloatArray, n_reasons: int, sign: float) -> tuple[Reason, ...]:
    """Return the reasons of some decisions, most frequent first; negative changes, with the sign, are for them."""
    order: IntArray = np.argsort(changes, axis=1, kind="stable")[:, :n_reasons]
    is_principal = np.zeros(changes.shape, dtype=np.bool_)
    np.put_along_axis(is_principal, order, values=True, axis=1)
    is_principal &= changes < 0
    is_first = is_principal & (np.arange(len(names)) == order[:, :1])
    found = [
        Reason(
            name,
            int(is_principal[:, place].sum()),
            float(is_principal[:, place].mean()),
            int(is_first[:, place].sum()),
            sign * float(changes[is_principal[:, place], place].mean()),
        )
        for place, name in enumerate(names)
        if is_principal[:, place].any()
    ]
    return tuple(sorted(found, key=lambda one: (-one.decisions, -one.first, -abs(one.change))))


def _notes(names: Sequence[str], n_rows: int, n_reasons: int, side: str) -> tuple[str, ...]:
    if not names:
        without = (
            "The only reason is the rule, on which side of the threshold the score is: what features add to it is "
            "known of LightGBM, XGBoost, CatBoost, scikit-learn's histogram gradient boosting and linear models. For "
            "others pass contributions to explain."
        )
        return (without,)
    what = (
        f"A reason is a feature that added {side} to the score than on average over these {n_rows} rows, in the units "
        f"in which the model adds them up; of each decision at most {n_reasons}, those of the largest difference."
    )
    limits = (
        "A reason says what moved the score of the model. It says neither what causes what nor what would change the "
        "decision."
    )
    return what, limits
