"""Impact ratios of the decisions, or scores, in a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counterpoise.auditing.impact import ImpactRatios, impact_ratios
from counterpoise.runs.data import labels_of, weights_of
from counterpoise.runs.errors import DataError, as_data_error, check_columns, listed
from counterpoise.runs.reading import column_names, read_frame
from counterpoise.runs.tables import group_columns, score_column


def impact_of_table(
    path: str | Path,
    *,
    groups: Sequence[str],
    prediction: str | None = None,
    score: str | None = None,
    positive: str | None = None,
    weights: str | None = None,
    **options: Any,
) -> ImpactRatios:
    """Return the impact ratios of decisions, or scores, in a column of a table.

    Parameters
    ----------
    path : path
        A CSV or Parquet file with a row for each person.
    groups : sequence of str
        The columns whose values are categories, compared as the texts that they are in the file.
    prediction, score : str, optional
        The column of decisions, or that of scores: one of them.
    positive : str, optional
        The decision that selects; by default the second of two.
    weights : str, optional
        The column of sample weights.
    **options
        As for ``impact_ratios``.

    Returns
    -------
    ImpactRatios

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.datasets import loans
    >>> from counterpoise.runs.impact import impact_of_table
    >>> with tempfile.TemporaryDirectory() as place:
    ...     loans(2000, random_state=0)[0].to_csv(Path(place) / "loans.csv", index=False)
    ...     ratios = impact_of_table(Path(place) / "loans.csv", prediction="last_year", positive="no", groups=["sex"])
    >>> [(one.category, one.applicants, round(one.ratio, 3)) for one in ratios.ratios]
    [('F', 1007, 0.851), ('M', 993, 1.0)]
    """
    table = Path(path)
    if (prediction is None) == (score is None):
        raise ValueError("Impact ratios are of one column: pass --prediction with decisions, or --score with scores.")
    if not groups:
        raise ValueError("Impact ratios need --groups, the columns whose values are categories of people; got none.")
    known = column_names(table)
    wanted: dict[str, Sequence[str | None]] = {"--prediction": [prediction], "--score": [score], "--groups": groups}
    wanted["--weights"] = [weights]
    for option, names in wanted.items():
        check_columns([name for name in names if name is not None], known, table, f"{option}: ")
    columns = group_columns(table, tuple(dict.fromkeys(groups)))
    if weights is not None:
        options["sample_weight"] = weights_of(read_frame(table, [weights]), weights, table)
    with as_data_error(f"Impact ratios of {table}: "):
        if score is not None:
            scores = score_column(read_frame(table, [score], values=[score]), score, table)
            return impact_ratios(scores, columns, kind="scores", pos_label=positive, **options)
        name = str(prediction)
        decisions = labels_of(read_frame(table, [name], values=[name]), name, table)
        labels = {str(label): label for label in dict.fromkeys(decisions.tolist())}
        if positive is not None and positive not in labels and len(labels) > 1:
            raise DataError(
                f"--positive must be a decision in column {name!r} of {table}: {listed(labels, most=10)}; got "
                f"{positive!r}."
            )
        return impact_ratios(decisions, columns, pos_label=labels.get(str(positive), positive), **options)
