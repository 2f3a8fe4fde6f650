"""Which rows a rate is about: a named dataset, narrowed by columns, by label and by the baseline's prediction."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from counterpoise.goals.wording import text_of, written_name, written_value

DEFAULT = "train"  # the dataset that fit's own X and y are
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
    """

    name: str = DEFAULT
    conditions: tuple[tuple[str, str], ...] = ()  # (column, text of the value), sorted
    label: bool | None = None  # True: only rows labelled positive
    baseline: bool | None = None  # True: only rows that the baseline predicts positive

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"The name of a dataset must be a non-empty string; got {self.name!r}.")

    def where(self, /, **values: Any) -> "Dataset":
        """Return the rows on which each named column holds the given value.

        A column is looked for in ``sensitive_features``, then in X where it is a data frame. Values are compared as
        text, and as numbers where the column holds numbers: 1, 1.0 and "1" select the same rows.
        """
        found = dict(self.conditions)
        for column, value in values.items():
            text = _checked_text(column, value)
            if found.setdefault(column, text) != text:
                raise ValueError(
                    f"where({column}={value!r}) leaves no row, because {column} was {found[column]!r} already. "
                    "For rows of either value write two goals."
                )
        return replace(self, conditions=tuple(sorted(found.items())))

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
        columns = "".join(f", {written_name(name)}={written_value(value)}" for name, value in self.conditions)
        return f"{written_name(self.name)}{path}{columns}"

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
        label, is_labelled = _both(self.label, rows.label)
        baseline, is_predicted = _both(self.baseline, rows.baseline)
        return replace(rows, label=label, baseline=baseline) if is_labelled and is_predicted else None


class Counted(NamedTuple):
    """The weight of some rows with a positive (or negative) prediction, over the weight of other rows."""

    coefficient: float
    positive: bool  # what is counted: positive predictions, or negative ones
    rows: Dataset
    out_of: Dataset


def as_dataset(dataset: Any) -> Dataset:
    """Return a dataset, given itself or its name."""
    if isinstance(dataset, Dataset):
        return dataset
    if isinstance(dataset, str):
        return Dataset(dataset)
    raise TypeError(f"A rate speaks of a Dataset or of its name; got {dataset!r}. Data are bound later, by fit.")


def _both(wanted: bool | None, given: bool | None) -> tuple[bool | None, bool]:
    if wanted is None or given is None:
        return (given if wanted is None else wanted), True
    return given, wanted == given


def _checked_text(column: str, value: Any) -> str:
    if isinstance(value, list | tuple | set | dict | np.ndarray):
        raise TypeError(f"where({column}=...) takes one value; got {value!r}. For a list of values use by.")
    text = text_of(value)
    if not column or (text in _MISSING and not isinstance(value, str)):
        raise ValueError(f"where needs a column and a value; got {column!r}={value!r}. A missing value selects no row.")
    return text
