"""The run of ten splits from before the shared scores were out of fold, judged by the rules of today.

There a model was fitted to 60 % of the rows to fit, and its scores of the other 40 % were those that all choose by,
ours included. Methods that train had all of these rows, and beside them stood ours trained in folds on the same.
"""

from papers.comparison.experiment import METHODS
from papers.comparison.methods import OURS_NAME, TRAINED
from papers.comparison.questions import GOALS
from papers.comparison.rows import Sizes
from papers.results import ResultsTable

FILE = "ten_splits.parquet"
SIZES = Sizes(2_000, 20_000, 20_000)
COMMIT = "67d2a93a"  # whose code made it
_NAMES = {"GoalClassifier, shared scores": OURS_NAME, OURS_NAME: TRAINED}


def as_today(rows: ResultsTable) -> ResultsTable:
    """Return the rows of methods that take part today, under the names of today, at bounds that ours has today."""
    found = []
    for row in rows:
        name = _NAMES.get(row.method, row.method)
        is_ours = name in (OURS_NAME, TRAINED)
        bounds = {f"bound={bound:g}" for bound in GOALS[row.learner].frontier} if row.learner in GOALS else None
        if (is_ours and bounds and row.settings and row.settings not in bounds) or name not in {*METHODS, TRAINED}:
            continue
        found.append(row._replace(method=name))
    return ResultsTable(tuple(found))
