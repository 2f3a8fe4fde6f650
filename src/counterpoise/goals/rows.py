"""Which rows a rate is about: a named dataset, narrowed by columns, by label and by the baseline's prediction."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from counterpoise.goals.levels import may_be_same
from counterpoise.goals.ranges import Range, merged_ranges, read_range
from counterpoise.goals.wording import text_of, written_name, written_value

DEFAULT = "train"  # the dataset that fit's own X and y are
EACH = ""  # in the place of a class: each of them, whose rates are then averaged
_MISSING = ("None", "nan", "NaT", "<NA>")


@dataclass(frozen=True)
class Dataset:
    """Rows named when a goal is written and bound to data later.

    Parameters
    ----------
    name : str
        The name under which the data are passed, as in ``datasets={"mail": Table(...)}``. The rows that an estimator
        is fitted on are called ``train``.

    Examples
    --------
    >>> from counterpoise.goals import Dataset
    >>> train = Dataset("train")
    >>> print(train.where(sex="F", age_band="18 to 24").positives)
    train.positives, age_band='18 to 24', sex=F
    >>> train.where(group=1) == train.where(group="1")
    True
    >>> print(train.where("18 <= age < 25", sex="F"))
    train, sex=F, 18<=age<25
    """

    name: str = DEFAULT
    conditions: tuple[tuple[str, str], ...] = ()  # (column, text of the value), sorted
    label: bool | None = None  # True: only rows labelled positive
    baseline: bool | None = None  # True: only rows that the baseline predicts positive
    ranges: tuple[Range, ...] = ()  # of numbers, one for a column, sorted
    of: str | None = None  # the text of the class that is called positive; None: the usual one

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"The name of a dataset must be a non-empty string; got {self.name!r}.")

    def where(self, /, *ranges: str, **values: Any) -> "Dataset":
        """Return the rows on which each named column holds the given value, and numbers lie in the given ranges.

        A column is looked for in ``sensitive_features``, then in X where it is a data frame. Values are compared as
        text, and as numbers where the column holds numbers: 1, 1.0 and "1" select the same rows. A range is a text:
        ``"age<=33"``, ``"18<=age<25"``, ``"income>50000"``.
        """
        found = dict(self.conditions)
        for column, value in values.items():
            text = _checked_text(column, value)
            if not may_be_same(found.setdefault(column, text), text):
                raise ValueError(
                    f"where({column}={value!r}) leaves no row, because {column} was {found[column]!r} already. "
                    "For rows of either value write two goals."
                )
        between = merged_ranges([*self.ranges, *map(read_range, ranges)])
        return replace(self, conditions=tuple(sorted(found.items())), ranges=between)

    def seen_as(self, of: Any) -> "Dataset":
        """Return the same rows, with a class that rates on them call positive."""
        text = _checked_text("of", of, is_class=True)
        if self.of not in {None, text}:
            raise ValueError(f"A rate speaks of one class; got of={text} beside of={self.of}.")
        return replace(self, of=text)

    @property
    def viewed(self) -> "Dataset":
        """Return the same rows in one form: where neither label nor baseline narrows them, no class matters."""
        return (
            self if self.of is None or self.label is not None or self.baseline is not None else replace(self, of=None)
        )

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Return the columns whose values are compared, as in sex=F; those of ranges are not."""
        return tuple(column for column, _ in self.conditions)

    def by(self, /, **values: Any) -> tuple["Dataset", ...]:
        """Return one dataset for each value, or for each combination of the values of several columns.

        Examples
        --------
        >>> from counterpoise.goals import Dataset
        >>> for group in Dataset("train").by(sex=["F", "M"]):
        ...     print(group)
        train, sex=F
        train, sex=M
        """
        for column, listed in values.items():
            if isinstance(listed, str) or not hasattr(listed, "__iter__"):
                raise TypeError(f"by({column}=...) takes a list of values; got {listed!r}. For one value use where.")
        return tuple(self.where(**dict(zip(values, chosen, strict=True))) for chosen in product(*values.values()))

    @property
    def positives(self) -> "Dataset":
        """Return the rows labelled positive."""
        return self._narrowed("label", is_positive=True)

    @property
    def negatives(self) -> "Dataset":
        """Return the rows labelled negative."""
        return self._narrowed("label", is_positive=False)

    @property
    def baseline_positives(self) -> "Dataset":
        """Return the rows that the baseline (the deployed model) predicts positive."""
        return self._narrowed("baseline", is_positive=True)

    @property
    def baseline_negatives(self) -> "Dataset":
        """Return the rows that the baseline (the deployed model) predicts negative."""
        return self._narrowed("baseline", is_positive=False)

    def _narrowed(self, part: str, *, is_positive: bool) -> "Dataset":
        narrower: Dataset = replace(self, **{part: is_positive})  # type: ignore[arg-type]
        if getattr(self, part) not in {None, is_positive}:
            raise ValueError(f"{self} has no row in common with {narrower}: it is the opposite.")
        return narrower

    def __str__(self) -> str:
        path = "".join(f".{word}" for word in self._restrictions())
        columns = [f"{written_name(name)}={written_value(value)}" for name, value in self.conditions]
        of = [] if self.of is None else [f"of={written_value(self.of) if self.of else 'each class'}"]
        return ", ".join([f"{written_name(self.name)}{path}", *of, *columns, *map(str, self.ranges)])

    def _restrictions(self) -> list[str]:
        parts = (("", self.label), ("baseline_", self.baseline))
        return [f"{of}{'positives' if sign else 'negatives'}" for of, sign in parts if sign is not None]


RESTRICTIONS = ("positives", "negatives", "baseline_positives", "baseline_negatives")  # as the text form names them


class Cell(NamedTuple):
    """A part of any dataset, by label and by the baseline's prediction; None where either will do."""

    label: bool | None = None
    baseline: bool | None = None

    def of(self, rows: Dataset) -> Dataset | None:
        """Return this part of the rows, or None where they have nothing in common."""
        return _part_of(self, rows)


@lru_cache(maxsize=4096)
def _part_of(cell: Cell, rows: Dataset) -> Dataset | None:
    label, is_labelled = _both(cell.label, rows.label)
    baseline, is_predicted = _both(cell.baseline, rows.baseline)
    return replace(rows, label=label, baseline=baseline).viewed if is_labelled and is_predicted else None


class Counted(NamedTuple):
    """The weight of some rows that are called a class (or are not), over the weight of other rows."""

    coefficient: float
    positive: bool | None  # what is counted: predictions of the class, of any other class, or None: deferred rows
    rows: Dataset
    out_of: Dataset
    called: str | None = None  # the class; None: the one that is usually positive


def as_dataset(dataset: Any) -> Dataset:
    """Return a dataset, given itself or its name."""
    if isinstance(dataset, Dataset):
        return dataset
    if isinstance(dataset, str):
        return Dataset(dataset)
    raise TypeError(f"A rate speaks of a Dataset or of its name; got {dataset!r}. Data are bound later, by fit.")


def rows_of(dataset: Any, ranges: Iterable[str], of: Any, where: dict[str, Any]) -> Dataset:
    """Return the rows that the arguments of a metric name."""
    rows = as_dataset(dataset).where(*ranges, **where)
    return rows if of is None else rows.seen_as(of)


def _both(wanted: bool | None, given: bool | None) -> tuple[bool | None, bool]:
    if wanted is None or given is None:
        return (given if wanted is None else wanted), True
    return given, wanted == given


def _checked_text(column: str, value: Any, *, is_class: bool = False) -> str:
    if column == "of" and not is_class:
        raise ValueError(
            f"of={value} names the class that a rate is about, as in recall(train, of=cat), and never a column: rename "
            "a column called 'of' to select rows by it."
        )
    if column in {"by", "called"}:
        raise ValueError(
            f"{column}={value} is a word of the language of goals, as in max_difference(recall, train, by=sex) and "
            f"confusion(train, of=cat, called=dog), and never a column: rename a column called {column!r}."
        )
    if isinstance(value, list | tuple | set | dict | np.ndarray):
        raise TypeError(f"where({column}=...) takes one value; got {value!r}. For a list of values use by.")
    text = text_of(value)
    if is_class and (not text or value is None):
        raise ValueError(f"of needs the name of a class, as in recall(train, of=cat); got {value!r}.")
    if not column or (text in _MISSING and not isinstance(value, str)):
        raise ValueError(f"where needs a column and a value; got {column!r}={value!r}. A missing value selects no row.")
    return text
