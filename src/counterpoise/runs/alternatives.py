"""Less discriminatory alternatives to what a run decides, or to the deployed model, on the run's own test rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counterpoise.classifiers.alternatives import (
    DEPLOYED,
    Alternatives,
    AlternativeSearch,
    MeasuredRows,
    search_alternatives,
)
from counterpoise.goals.expressions import WorstOf
from counterpoise.runs.decisions import decide_rows, decision_inputs, final_estimator, has_rules, seen_by_last
from counterpoise.runs.errors import DataError
from counterpoise.runs.folder import Run, open_run
from counterpoise.runs.results import MIXTURE, TEST
from counterpoise.runs.use import own_data


def alternatives_run(
    run: Run,
    *,
    disparity: str | None = None,
    incumbent: str | None = None,
    others: Sequence[str | Path] = (),
    by: Any = (),
    within: float = 0.01,
    n_points: int = 9,
    confidence: float = 0.95,
) -> Alternatives:
    """Search for less discriminatory alternatives among all thresholds of all models of a run.

    Parameters
    ----------
    run : Run
        Of a method that chooses rules of scores.
    disparity : str, optional
        A column of groups, or a phrase. Default: that of the first goal that has one, else the first column of groups.
    incumbent : {"plain", "rule", "deployed"}, optional
        Default: the deployed model where the run knows its predictions, else the best model at its usual threshold.
    others : sequence of paths
        Folders of further runs on the same data, such as those of models trained inside goals.
    by, within, n_points, confidence
        As for ``counterpoise.alternatives``.

    Returns
    -------
    Alternatives
        Without test rows there are no intervals, and a note says so.

    Raises
    ------
    DataError
        If the run does not choose among thresholds, or another run has other test rows.
    """
    model = run.waiting_model()
    if not has_rules(model):
        raise DataError(
            f"Alternatives are searched among thresholds of scores, and the method {run.settings.method.name!r} has "
            'none. Fit a run with method.name = "goals"; this one can be beside it, with --other.'
        )
    data, estimator = own_data(run), final_estimator(model)
    part = data.splits.get(TEST)
    if disparity is None and not any(isinstance(goal.left, WorstOf) and goal.left.sense for goal in estimator.goals_):
        columns = list(run.settings.data.groups)
        if not columns:
            raise DataError(
                "The goals of this run compare no groups, and data.groups names none. Pass --disparity: a column of "
                "groups, as sex, or a phrase, as 'min_ratio(selection_rate, by=sex)'."
            )
        disparity = columns[0]
    search = AlternativeSearch.of(estimator, disparity, by)
    if part is None:
        chosen = "plain" if incumbent is None else incumbent
        return search_alternatives(search, None, chosen, {}, within, n_points, confidence)
    chosen = (DEPLOYED if part.baseline is not None else "plain") if incumbent is None else incumbent
    held_out = MeasuredRows(seen_by_last(model, part.X), part.table(), decision_inputs(part))
    decisions = {Path(place).name: _decisions_of(open_run(place), part) for place in others}
    return search_alternatives(search, held_out, chosen, decisions, within, n_points, confidence)


def _decisions_of(run: Run, part: Any) -> Any:
    """Return what another run decides about its test rows, which must be the same."""
    data = own_data(run)
    own = data.splits.get(TEST)
    if own is None or len(own) != len(part) or (own.labels != part.labels).any() or not own.X.equals(part.X):
        raise DataError(
            f"The run in {run.folder} has other test rows. Fit it on the same data files, with the same seed, splits "
            "and columns."
        )
    return decide_rows(run.waiting_model(), data, TEST).by[MIXTURE].probabilities
