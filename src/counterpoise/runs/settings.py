"""What a goals file can say: its tables and keys, with their defaults.

Every class is one table of the file. pydantic checks types and ranges; what depends on several keys, on methods or on
goals is checked in ``goals_file``.
"""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    WrapValidator,
)

from counterpoise._base.contexts import set_within
from counterpoise.runs.places import PARQUET

_DELIMITER = re.compile(r"[ -!#-~\t]")  # a printable sign of ASCII that is no quote
Label: TypeAlias = StrictStr | StrictInt | StrictFloat | StrictBool
Number: TypeAlias = StrictInt | StrictFloat
Name: TypeAlias = Annotated[StrictStr, Field(min_length=1, max_length=4096)]  # of a column or a file
Fraction: TypeAlias = Annotated[StrictFloat | StrictInt, Field(ge=0, lt=1)]
Confidence: TypeAlias = Annotated[StrictFloat, Field(gt=0, lt=1)]


# one name, or a list of them
Names: TypeAlias = Annotated[list[Name], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


class Written(NamedTuple):
    """How CSV files are written; None is the usual: commas, UTF-8, a decimal point."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None

    def check(self) -> "Written":
        """Return the same, after checking it."""
        if self.delimiter is not None and not _DELIMITER.fullmatch(self.delimiter):
            raise ValueError(f"delimiter must be one character, such as ';' or a tab; got {self.delimiter!r}.")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal must be '.' or ','; got {self.decimal!r}.")
        if self.decimal == "," and self.delimiter in (None, ","):
            raise ValueError("decimal = ',' needs another delimiter than a comma, such as ';'.")
        if self.encoding is not None:
            try:
                "text".encode(self.encoding)
            except (LookupError, UnicodeError):  # not known, or not one of texts
                raise ValueError(
                    f"encoding must be one that Python knows, such as 'latin-1'; got {self.encoding!r}."
                ) from None
        return self


_written: ContextVar[Written] = ContextVar("counterpoise_written", default=Written())  # noqa: B039 - never changed


def written_as(written: Written) -> AbstractContextManager[None]:
    """Read CSV files as they are written, until the context ends; what an outer context says wins."""
    outer = _written.get()
    own = (mine if theirs is None else theirs for mine, theirs in zip(written, outer, strict=True))
    return set_within(_written, Written(*own).check())


def how_written() -> Written:
    """Return how CSV files are written."""
    return _written.get()


def is_parquet(path: Path) -> bool:
    """Tell by its ending whether a file is a Parquet file."""
    return path.suffix.lower() in PARQUET


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Limit = Annotated[Number, Field(gt=0, allow_inf_nan=False)]


class _Weighed(_Table):
    # that a row of the population can have
    largest_weight: Limit | None = None
    largest_value: Limit | dict[Name, Limit] | None = None  # the same for amounts, of all columns or of each


class DataSettings(_Weighed):
    """The table ``data``: files, and what their columns are."""

    files: Annotated[Names, Field(min_length=1)]  # CSV or Parquet, of the same columns; relative to the goals file
    target: Name  # the column to predict
    positive: Label | None = None  # the class that goals call positive; default: the last of two
    columns: Names | None = None  # features; default: all columns that have no other part
    drop: Names = []  # columns not to use
    groups: Names = []  # columns by which goals and the report group rows
    use_groups_as_features: StrictBool = False
    amounts: Names = []  # columns of amounts that goals count with, and that are no features
    categorical: Names = []  # columns of numbers that are codes of categories
    weights: Name | None = None  # the column of sample weights
    ids: Name | None = None  # the column with the person of each row, where some have several
    missing: Names = []  # texts that stand for a missing value, beside empty ones
    baseline: Name | None = None  # the column with the deployed model's predictions
    baseline_model: Name | None = None  # or its model file
    delimiter: StrictStr | None = None  # between the columns of CSV files; default: a comma
    encoding: Name | None = None  # of CSV files; default: UTF-8
    decimal: Literal[".", ","] | None = None  # before the decimals of numbers in CSV files; default: a point

    @property
    def written(self) -> Written:
        """Return how CSV files are written."""
        return Written(self.delimiter, self.encoding, self.decimal)


class DatasetSettings(_Weighed):
    """A table ``datasets.NAME``: further rows that goals can name."""

    files: Annotated[Names, Field(min_length=1)]
    labelled: StrictBool = True
    population: StrictBool = True  # false: a list of rows, no sample of people, so goals on them get no margin


class SplitSettings(_Table):
    """The table ``splits``: which rows train, choose and test. What is not set aside trains."""

    column: Name | None = None  # that holds train, validation or test in each row
    validation: Fraction | None = None  # default: 0.2, or none where the method chooses nothing
    test: Fraction | None = None  # default: 0.2
    validation_files: Names | None = None  # in place of a fraction
    test_files: Names | None = None


class PreprocessingSettings(_Table):
    """The table ``preprocessing``; "auto" is what the method wants."""

    numeric: Literal["auto", "standardize", "as-is"] = "auto"
    categorical: Literal["auto", "ordinal", "one-hot", "drop"] = "auto"
    missing: Literal["auto", "keep", "impute", "refuse"] = "auto"
    max_categories: Annotated[StrictInt, Field(ge=2, le=255)] = 255  # of a column; rarer ones are one category


class ModelSettings(_Table):
    """A model by name, with the parameters of its class."""

    name: Name
    title: Name | None = None  # what the report calls it
    parameters: dict[str, Any] = {}


class MethodSettings(_Table):
    """The table ``method``."""

    name: Name = "goals"
    parameters: dict[str, Any] = {}
    learner: ModelSettings | None = None  # the base learner of a booster
    models: Annotated[list[ModelSettings], Field(max_length=1000)] = []  # of the methods "goals" and "pool"
    enforce_goals: StrictBool = True  # false: goals are audited only


class GoalSettings(_Table):
    """A goal as text, with how surely it must hold on the population."""

    goal: Annotated[StrictStr, Field(min_length=1)]
    confidence: Confidence | None = None


def _level_or_none(value: Any, check: Any) -> Any:
    """Let the word pass that stands for no confidence; of other values the check of numbers says what is wrong."""
    return value if value == "none" else check(value)


def _goal(value: Any) -> Any:
    return {"goal": value} if isinstance(value, str) else value


class RunSettings(_Table):
    """A whole goals file.

    Examples
    --------
    >>> from counterpoise.runs import RunSettings
    >>> settings = RunSettings(data={"files": "loans.csv", "target": "paid"}, goals=["recall >= 0.9"])
    >>> settings.alpha, settings.method.name, settings.goals[0].goal
    (1.0, 'goals', 'recall >= 0.9')
    """

    data: DataSettings
    datasets: Annotated[dict[str, DatasetSettings], Field(max_length=1000)] = {}
    splits: SplitSettings = SplitSettings()
    preprocessing: PreprocessingSettings = PreprocessingSettings()
    method: MethodSettings = MethodSettings()
    alpha: Annotated[Number, Field(gt=0, le=1)] = 1.0  # the worst-off fraction that counts
    goals: Annotated[list[Annotated[GoalSettings, BeforeValidator(_goal)]], Field(max_length=10_000)] = []
    # with which the goals hold together on new rows; "none": no margins
    confidence: Annotated[Confidence, WrapValidator(_level_or_none)] | Literal["none"] = 0.9
    proof: StrictBool = False  # whether exact tests on rows that are kept for them prove it
    audit_confidence: Confidence = 0.95  # for goals that carry none
    seed: Annotated[StrictInt, Field(ge=0, lt=2**32)] = 0
    output: Name | None = None  # the run folder; default: the goals file's name without its ending


class RunColumns(NamedTuple):
    """The features by their kind, in the order of the files, and all columns that held texts in training."""

    numeric: list[str]
    categorical: list[str]
    texts: Sequence[str] = ()  # the target and the groups too

    @property
    def features(self) -> list[str]:
        """Return the names of all features."""
        return [*self.numeric, *self.categorical]


def data_files(settings: RunSettings, folder: Path) -> list[Path]:
    """Return every file that a run reads, the deployed model's too."""
    names = [*settings.data.files, *(settings.splits.validation_files or []), *(settings.splits.test_files or [])]
    names += [name for one in settings.datasets.values() for name in one.files]
    if settings.data.baseline_model is not None:
        names.append(settings.data.baseline_model)
    return [folder / name for name in dict.fromkeys(names)]
