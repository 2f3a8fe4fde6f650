"""The numbers of runs and experiments as rows of one long table, and the words for deciders, splits and objectives."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

TRAIN, VALIDATION, TEST = SPLITS = ("train", "validation", "test")
MIXTURE, FIRST, AVERAGE, DEPLOYED = "mixture", "first model", "average", "deployed model"
VERDICTS = {"holds": 1.0, "undecided": 0.0, "fails": -1.0}  # as the table has them, which holds numbers only
# What was minimised: the loss of the tail, of the worst group, another risk, a rate, or what the method does.
CVAR, WORST_GROUP, RISK, RATE, OWN = "cvar", "worst-group", "risk", "rate", "own"
DEFER_RATE, DECIDED_ERROR = "defer rate", "decided error"  # parts of the rows, and of those that are decided about
REALISED = "realised cvar"  # of the losses once decisions are drawn, where "cvar" is that of the expected losses


class ResultRow(NamedTuple):
    """One measured number, and all that says what it is."""

    experiment: str
    dataset: str
    learner: str
    method: str
    seed: int
    alpha: float | None  # None where the quantity has no tail fraction
    quantity: str
    split: str
    value: float
    settings: str = ""  # free text: whatever else must be known to run it again

    @property
    def run(self) -> tuple[Any, ...]:
        """Return everything but the value: two rows of one run measure the same thing twice."""
        return (*self[:8], self.settings)


@dataclass(frozen=True)
class ResultsTable:
    """Rows of results that can be narrowed down.

    Examples
    --------
    >>> from counterpoise.runs.results import ResultRow, ResultsTable
    >>> rows = [ResultRow("demo", "digits", "tree", "erm", seed, None, "error", "test", 0.1 * seed) for seed in (1, 2)]
    >>> table = ResultsTable(tuple(rows))
    >>> len(table), [row.value for row in table.where(seed=2)]
    (2, [0.2])
    """

    rows: tuple[ResultRow, ...]

    def __iter__(self) -> Iterator[ResultRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, **wanted: Any) -> "ResultsTable":
        """Return the rows whose columns have the given values."""
        check_columns(wanted, "where")
        rows = (row for row in self.rows if all(getattr(row, key) == value for key, value in wanted.items()))
        return ResultsTable(tuple(rows))

    def latest(self) -> "ResultsTable":
        """Return the last row of each run, where an experiment was run again."""
        return ResultsTable(tuple({row.run: row for row in self.rows}.values()))


def check_columns(names: Iterable[str], argument: str) -> None:
    """Check that names are those of columns of the table."""
    columns = ResultRow._fields
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise ValueError(
            f"{argument} must name columns among {', '.join(columns)}; got {', '.join(map(repr, unknown))}."
        )
