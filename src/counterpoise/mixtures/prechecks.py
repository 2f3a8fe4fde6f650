"""Checks of goals, objective and groups that need no model, made before one is trained or asked."""

from collections.abc import Mapping
from typing import Any

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import Rate, Table
from counterpoise.goals.binding import Views
from counterpoise.goals.bound import check_asked, check_contradictions, check_reach
from counterpoise.mixtures.answers import TRAIN, Positive
from counterpoise.mixtures.choosing import Aim, groups_by
from counterpoise.mixtures.options import as_groups
from counterpoise.mixtures.scores.table import find_groups
from counterpoise.theory.risks import RiskRows


def check_problem(
    aim: Aim,
    tables: Mapping[str, Table],
    positive: Positive,
    *,
    groups: IntArray | None = None,
    by: Any = (),
    counts: FloatArray | None = None,
    trains: bool = True,
) -> None:
    """Refuse goals, an objective or groups that do not fit the rows, whatever the models will say about them.

    Parameters
    ----------
    aim : Aim
        Goals and objective; their texts are parsed already.
    tables : dict from names to Table
        The rows on which the mixture is chosen, as ``train``, and the other datasets.
    positive : Positive
        The classes.
    groups : array of shape (n_samples,), optional
        The group of each row of ``train`` by all sensitive features.
    by : str, list of str or Groups
        Columns that rules look at, and what to do about small groups.
    counts : array of shape (n_samples,), optional
        How many rows each row of ``train`` stands for. Default: itself.
    trains : bool, default=True
        Whether models would be trained: a bound beyond what any rate can reach, and two that contradict each other,
        are then refused here. Otherwise the choice among the models refuses them, and says which bound they can meet.
    """
    check_reach(aim.goals, trains=trains)
    deferred = None if aim.deferral is None else True  # whatever the answer is called
    objective, train = aim.objective, tables[TRAIN]
    views = Views(tables, positive._replace(deferred=deferred).labels)
    check_asked(aim.goals, views, objective if isinstance(objective, Rate) else None)
    if trains:
        check_contradictions(aim.goals, views)
    if not isinstance(objective, Rate):
        objective.bind(RiskRows(train.n_samples, 1, lambda names: groups_by(names, train, groups)))
    find_groups(as_groups(by), train, counts).codes_of_each(tables)
