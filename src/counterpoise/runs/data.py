"""The data of a run: files read, parts played, rows split, extra datasets and the deployed model's predictions."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from counterpoise import persist
from counterpoise._base.checks import warn_caller
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.datasets.table import split_rows
from counterpoise.goals import Table
from counterpoise.goals.classes import check_answers
from counterpoise.goals.tables import MISSING
from counterpoise.goals.terms import text_of
from counterpoise.runs.errors import DataError, as_data_error, check_columns, listed, oddest
from counterpoise.runs.methods import METHODS
from counterpoise.runs.reading import NO_NUMBERS, WordsAmongNumbers, column_names, read_frame, require_memory
from counterpoise.runs.results import TEST, TRAIN, VALIDATION
from counterpoise.runs.settings import DataSettings, RunColumns, RunSettings, how_written, written_as

_MOST_CLASSES = 1000


def feature_names(known: Sequence[str], settings: RunSettings, path: Path) -> list[str]:
    """Return which columns of a file are features: those that the settings name, or all with no other role."""
    data, split = settings.data, settings.splits.column
    keys = ("target", "weights", "ids", "baseline", "columns", "drop", "groups", "categorical", "amounts")
    for key, value in {**{f"data.{key}": getattr(data, key) for key in keys}, "splits.column": split}.items():
        check_columns([value] if isinstance(value, str) else value or [], known, path, f"{key}: ")
    others = {data.target, data.weights, data.ids, data.baseline, split, *data.drop, *data.amounts}
    if not data.use_groups_as_features and data.columns is None:
        others |= set(data.groups)
    names = [name for name in (data.columns or known) if name not in others]
    if not names:
        raise DataError(f"{path} must have a feature column beside the target; [data] leaves none.")
    return names


def find_columns(frame: Any, names: Sequence[str], data: DataSettings) -> RunColumns:
    """Return which features are categories: texts, and those that the goals file names."""
    texts = [name for name in frame.columns if frame[name].dtype.name == "category"]
    categories = {*texts, *data.categorical}
    numeric = [name for name in names if name not in categories]
    return RunColumns(numeric, [name for name in names if name in categories], texts)


def features_of(frame: Any, columns: RunColumns, path: Path) -> Any:
    """Return the features of a frame with the types that they had where the run was fitted."""
    made = {}
    for name in columns.numeric:
        if frame[name].dtype.name == "category":
            if frame[name].notna().any():
                raise DataError(f"Column {name!r} of {path} must hold numbers as in training; {odd_cell(frame[name])}.")
            made[name] = np.full(len(frame), np.nan)
        else:
            made[name] = frame[name].to_numpy()
            if made[name].dtype.kind == "f" and np.isinf(made[name]).any():
                row = int(np.isinf(made[name]).argmax()) + 1
                raise DataError(f"Column {name!r} of {path} must hold finite numbers; row {row} holds infinity.")
    for name in columns.categorical:
        made[name] = as_texts(frame[name])
    return pd.DataFrame(made, copy=False)


def odd_cell(column: Any) -> str:
    """Return which cell of a column of texts is no number, in words: the first, and how many there are."""
    is_odd = {text: not reads_as_number(text) for text in column.cat.categories}
    odd = np.flatnonzero([is_odd.get(text, False) for text in column])
    if not odd.size:  # such as numbers in quotes
        odd = np.flatnonzero(column.notna())
    more = f", and {odd.size - 1} more are not numbers" if odd.size > 1 else ""
    return f"row {odd[0] + 1} holds {column.iloc[odd[0]]!r}{more}"


def reads_as_number(text: str) -> bool:
    """Tell whether a text is a number, as the file is written; the word nan is none."""
    if how_written().decimal == ",":
        text = "no number" if "." in text else text.replace(",", ".")
    try:
        number = float(text)
    except ValueError:
        return False
    return "_" not in text and not math.isnan(number)


def as_texts(column: Any) -> Any:
    """Return a column as a categorical of texts, whether it held texts or numbers."""
    categorical = column.array if column.dtype.name == "category" else pd.Categorical(column.to_numpy())
    return categorical.rename_categories([text_of(value) for value in categorical.categories])


def labels_of(frame: Any, name: str, path: Path) -> AnyArray:
    """Return a column of labels: texts, whole numbers or truth values, none missing."""
    column = frame[name]
    n_missing = int(column.isna().sum())
    if n_missing:
        raise DataError(
            f"Column {name!r} of {path} must hold a label in each row; {n_missing} of {len(column)} are missing. "
            "Drop those rows first. Where labels are known for some rows only, all rows can be a dataset of the goals "
            "file with labelled = false, for goals that need no labels."
        )
    if column.dtype.name == "category":
        _warn_of_words(column, name, path)
        return np.asarray(column.to_numpy(), dtype=str)
    values = column.to_numpy()
    if values.dtype.kind == "f":
        fractions = np.flatnonzero(values != np.round(values))
        if fractions.size:
            where = f"row {fractions[0] + 1} holds the fraction {values[fractions[0]]:g}"
            raise DataError(
                f"Column {name!r} of {path} must hold classes; {where}. Group the values into classes first."
            )
        return np.asarray(values, dtype=np.int64)
    return np.asarray(values)


def _warn_of_words(column: Any, name: str, path: Path) -> None:
    """Say that a word such as NA is a class where all others are numbers: most who write it mean a missing label."""
    words = [text for text in column.cat.categories if text in NO_NUMBERS]
    others = [text for text in column.cat.categories if text not in NO_NUMBERS]
    if not words or not others or not all(map(reads_as_number, others)):
        return
    rows = np.flatnonzero(column.isin(words))
    warn_caller(
        f"Column {name!r} of {path} holds numbers except {listed(words)} in {rows.size} of {len(column)} rows, "
        f"first in row {rows[0] + 1}: the word counts as a class. Leave "
        "those rows out if it stands for a missing label.",
        WordsAmongNumbers,
    )


def check_classes(labels: AnyArray, positive: Any, name: str, path: Path) -> AnyArray:
    """Return the classes, after checking that there are at least two, and that the positive one is among them."""
    classes = np.unique(labels)
    if len(classes) < 2:  # noqa: PLR2004
        raise DataError(
            f"Column {name!r} of {path} must hold at least two classes; it holds {classes[0].item()!r} only."
        )
    if len(classes) > _MOST_CLASSES:
        raise DataError(
            f"Column {name!r} of {path} must hold classes; it has {len(classes)} different values, and at most "
            f"{_MOST_CLASSES} are supported. Choose another target, or group its values into a few classes first."
        )
    if positive is not None and positive not in classes.tolist():
        known = listed(classes.tolist(), most=10)
        raise DataError(f"data.positive must be a class of column {name!r}: {known}; got {positive!r}.")
    return classes


def weights_of(frame: Any, name: str, path: Path, largest: float | None = None) -> FloatArray:
    """Return the sample weights: numbers, none missing, negative or above the largest there can be, not all zero."""
    if frame[name].dtype.name == "category":
        raise DataError(f"Column {name!r} of {path} must hold weights, numbers of at least 0; {odd_cell(frame[name])}.")
    values = frame[name].to_numpy().astype(np.float64)
    if not np.isfinite(values).all():
        raise DataError(
            f"Column {name!r} of {path} must hold a finite weight in each row; row "
            f"{int((~np.isfinite(values)).argmax()) + 1} has none."
        )
    if values.min() < 0:
        raise DataError(
            f"Column {name!r} of {path} must hold weights of at least 0; row {values.argmin() + 1} holds "
            f"{values.min():g}."
        )
    if values.max() == 0:
        raise DataError(f"Column {name!r} of {path} must hold a weight above 0; got zeros only.")
    if largest is not None and values.max() > largest:
        raise DataError(
            f"Column {name!r} of {path} must hold weights of at most {largest:g} (largest_weight); row "
            f"{values.argmax() + 1} holds {values.max():g}. Set it to the most that a row of the population can weigh."
        )
    return np.asarray(values)


def ids_of(frame: Any, name: str, path: Path) -> AnyArray:
    """Return the person of each row: texts or whole numbers, none missing."""
    column = frame[name]
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise DataError(
            f"data.ids: column {name!r} of {path} must name the person of each row; {missing.size} of {len(column)} "
            f"have none, the first is row {missing[0] + 1}. Give each of them an id of its own, or drop those rows."
        )
    if column.dtype.name == "category":
        return np.asarray(column.to_numpy(), dtype=str)
    values = np.asarray(column.to_numpy())
    fractions = np.flatnonzero(values != np.round(values)) if values.dtype.kind == "f" else np.empty(0, dtype=np.int64)
    if fractions.size:
        raise DataError(
            f"data.ids: column {name!r} of {path} must hold ids, texts or whole numbers; row {fractions[0] + 1} holds "
            f"{values[fractions[0]]:g}."
        )
    return values


def groups_of(frame: Any, names: Sequence[str], path: Path) -> dict[str, AnyArray]:
    """Return the group columns as arrays; a missing text is None, and the text ``(missing)`` is refused."""
    return {name: _group(frame[name], name, path) for name in names if name in frame}


def _group(column: Any, name: str, path: Path) -> AnyArray:
    if column.dtype.name != "category":
        return np.asarray(column.to_numpy())
    if MISSING in column.cat.categories and (is_text := (column == MISSING).to_numpy()).any():
        raise DataError(
            f"Column {name!r} of {path} must not hold the text {MISSING!r}, which stands for a missing value in goals "
            f"and rules; row {is_text.argmax() + 1} does. Leave the field empty if the value is missing, or name the "
            "text in data.missing of a goals file; else write another text."
        )
    values = column.astype(object).to_numpy(copy=True)
    values[column.isna().to_numpy()] = None
    return np.asarray(values)


SET_ASIDE = 0.2  # of the rows, by default, to choose on and to test on


@dataclass(frozen=True, eq=False)
class RunRows:
    """Some rows: features as a frame, labels, groups, weights, the deployed model's predictions and persons."""

    X: Any
    y: AnyArray | None
    groups: dict[str, AnyArray]
    weights: FloatArray | None
    baseline: AnyArray | None
    largest_weight: float | None = None  # that a row of their population can have
    largest_value: float | dict[str, float] | None = None  # the same for amounts
    amounts: dict[str, AnyArray] = field(default_factory=dict)  # columns that goals count with, beside features
    population: bool = True  # whether they are a sample of people, and no list
    ids: AnyArray | None = None  # the person of each row; None: each is of another

    def __len__(self) -> int:
        return len(self.X)

    @property
    def labels(self) -> AnyArray:
        """Return the labels of labelled rows."""
        assert self.y is not None  # noqa: S101 - for labelled rows only
        return self.y

    def table(self, X: Any = None) -> Table:
        """Return the rows as goals see them, with other features for the models where given."""
        weighed: dict[str, Any] = {"sample_weight": self.weights, "largest_weight": self.largest_weight}
        weighed |= {"population": self.population, "largest_value": self.largest_value}
        columns = {**self.groups, **self.amounts} or None
        return Table(self.X if X is None else X, self.y, columns, self.baseline, **weighed)

    def rows(self, places: AnyArray) -> "RunRows":
        """Return some of the rows."""
        columns = (self.y, self.weights, self.baseline, self.ids)
        y, weights, baseline, ids = (None if one is None else one[places] for one in columns)
        groups, amounts = (
            {name: column[places] for name, column in one.items()} for one in (self.groups, self.amounts)
        )
        limits = self.largest_weight, self.largest_value
        part = RunRows(self.X.iloc[places], y, groups, weights, baseline, *limits, amounts, ids=ids)
        return replace(part, population=self.population)


class Data(NamedTuple):
    """All rows of a run."""

    name: str
    columns: RunColumns
    classes: AnyArray
    positive: Any  # None where there are more than two classes and none is named
    splits: dict[str, RunRows]  # train, and validation and test where there are such rows
    extra: dict[str, RunRows]
    pool_outputs: dict[str, AnyArray]  # by the names of these: predictions or scores of a pool's models, once computed
    deployed: Any = None  # the deployed model, where its file is named

    def part(self, name: str) -> RunRows:
        """Return the rows of a split or an extra dataset."""
        return {**self.splits, **self.extra}[name]

    @property
    def chosen_on(self) -> str:
        """Return the split on which a mixture is chosen."""
        return VALIDATION if VALIDATION in self.splits else TRAIN

    @property
    def judged(self) -> str:
        """Return the split that counts: the test rows, or where there are none those of the choice."""
        return TEST if TEST in self.splits else self.chosen_on


def load_data(settings: RunSettings, folder: Path) -> Data:
    """Read what the settings name, with paths relative to ``folder``, and split it."""
    data_settings = settings.data
    main = [folder / name for name in data_settings.files]
    with written_as(data_settings.written):
        names = feature_names(column_names(main[0]), settings, main[0])
        frame = _read_all(main, wanted_columns(settings, names), settings)
        columns = find_columns(frame, names, data_settings)
        whole = part_of(frame, columns, settings, main[0], largest_weight=data_settings.largest_weight)
        named = _named_rows(frame, settings.splits.column, main[0])
        del frame
        classes = check_classes(whole.labels, data_settings.positive, data_settings.target, main[0])
        splits = _split(whole, settings, named)
        for split in (VALIDATION, TEST):
            files = getattr(settings.splits, f"{split}_files")
            if files is not None:
                named_files = [folder / name for name in files]
                splits[split] = read_part(named_files, columns, settings, largest_weight=data_settings.largest_weight)
        if data_settings.ids is not None and VALIDATION in splits and splits[VALIDATION].ids is None:
            raise DataError(
                f"data.ids: the files of splits.validation_files have no column {data_settings.ids!r}. The rules are "
                "chosen on these rows, and the margins count persons: add the column, or leave out data.ids."
            )
        extra = extra_parts(settings, columns, folder)
    data = Data(main[0].stem, columns, classes, positive_of(classes, data_settings.positive), splits, extra, {})
    _check_labels(data, settings)
    return with_baseline_model(data, settings, folder)


def extra_parts(settings: RunSettings, columns: RunColumns, folder: Path) -> dict[str, RunRows]:
    """Read the further rows that goals can name."""
    parts = {}
    for name, one in settings.datasets.items():
        limit = settings.data.largest_weight if one.largest_weight is None else one.largest_weight
        files = [folder / file for file in one.files]
        part = read_part(files, columns, settings, labelled=one.labelled, largest_weight=limit)
        most = settings.data.largest_value if one.largest_value is None else one.largest_value
        parts[name] = replace(part, population=one.population, largest_value=most)
    return parts


def read_part(
    files: Sequence[Path],
    columns: RunColumns,
    settings: RunSettings,
    *,
    labelled: bool = True,
    largest_weight: float | None = None,
) -> RunRows:
    """Read further rows with the columns of a run; groups, weights and baseline where they are there."""
    data = settings.data
    with written_as(data.written):
        known = column_names(files[0])
        single = (data.weights, data.ids, data.baseline)
        optional = [name for name in (*data.groups, *data.amounts, *single) if name in known]
        wanted = dict.fromkeys([*columns.features, *optional, *([data.target] if labelled else [])])
        frame = _read_all(files, list(wanted), settings, columns.texts)
    return part_of(frame, columns, settings, files[0], labelled=labelled, largest_weight=largest_weight)


def wanted_columns(settings: RunSettings, features: Sequence[str]) -> list[str]:
    """Return the columns of a file that a run reads."""
    data = settings.data
    others = [data.target, *data.groups, *data.amounts, data.weights, data.ids, data.baseline, settings.splits.column]
    return list(dict.fromkeys([*features, *(name for name in others if name is not None)]))


def compared_columns(settings: RunSettings) -> set[str]:
    """Return the columns that are no features of numbers: in these NA is a value, or a fault where numbers must be."""
    data = settings.data
    single = (data.target, data.weights, data.ids, data.baseline, settings.splits.column)
    return {*data.groups, *data.categorical, *(name for name in single if name is not None)}


def _read_all(files: Sequence[Path], names: Sequence[str], settings: RunSettings, texts: Collection[str] = ()) -> Any:
    data = settings.data
    require_memory(files, names)
    how: dict[str, Any] = {"missing": data.missing, "values": compared_columns(settings)}
    frames = [read_frame(path, names, texts=texts, **how) for path in files]
    if len(frames) == 1:
        return frames[0]
    is_text = {name: [frame[name].dtype.name == "category" for frame in frames] for name in names}
    mixed = [name for name in names if any(is_text[name]) and not all(is_text[name])]
    for name in mixed:
        numbers = any(frame[name].dtype.name != "category" and frame[name].notna().any() for frame in frames)
        if numbers and name not in {*data.categorical, *data.groups, data.ids}:
            where = files[is_text[name].index(True)]
            raise DataError(
                f"Column {name!r} must be of one kind in all files; it holds texts in {where}, numbers in others. Name "
                "it in data.categorical if it holds categories, or correct the files."
            )
    if mixed:
        frames = [read_frame(path, names, texts=[*texts, *mixed], **how) for path in files]
    return join_frames(frames, {name for name in names if any(is_text[name])})


def join_frames(frames: Sequence[Any], texts: Collection[str]) -> Any:
    """Return the rows of frames together; columns of texts as categories of all of them."""
    merged = {}
    for name in frames[0].columns:
        columns = [frame[name] for frame in frames]
        if name in texts:
            pieces = [as_texts(one) for one in columns]
            known = sorted(set().union(*(one.categories for one in pieces)))
            merged[name] = union_categoricals([one.set_categories(known) for one in pieces])
        else:
            merged[name] = np.concatenate(columns)
    return pd.DataFrame(merged, copy=False)


def part_of(
    frame: Any,
    columns: RunColumns,
    settings: RunSettings,
    path: Path,
    *,
    labelled: bool = True,
    largest_weight: float | None = None,
) -> RunRows:
    """Return the rows of a frame by the parts that its columns play."""
    data = settings.data
    X = features_of(frame, columns, path)
    missing = X.isna().sum()
    if settings.preprocessing.missing == "refuse" and missing.any():
        name = missing.index[missing.to_numpy() > 0][0]
        raise DataError(
            f'preprocessing.missing = "refuse", but column {name!r} of {path} lacks {int(missing[name])} of {len(X)}.'
        )
    amounts = {name: frame[name].to_numpy() for name in data.amounts if name in frame}
    weights, ids, baseline = (name if name in frame else None for name in (data.weights, data.ids, data.baseline))
    labels, groups = labels_of(frame, data.target, path) if labelled else None, groups_of(frame, data.groups, path)
    mass = None if weights is None else weights_of(frame, weights, path, largest_weight)
    deployed = None if baseline is None else labels_of(frame, baseline, path)
    limits = None if weights is None else largest_weight, data.largest_value
    persons = None if ids is None else ids_of(frame, ids, path)
    return RunRows(X, labels, groups, mass, deployed, *limits, amounts, ids=persons)


def _named_rows(frame: Any, column: str | None, path: Path) -> dict[str, AnyArray]:
    """Return which rows a column puts into which split; without one all may train."""
    if column is None:
        return {TRAIN: np.arange(len(frame))}
    values = frame[column].astype(object)
    foreign = values[~values.isin((TRAIN, VALIDATION, TEST))]
    if len(foreign):
        got = "a missing value" if foreign.isna().iloc[0] else repr(foreign.iloc[0])
        raise DataError(f"splits.column: {column!r} of {path} must hold train, validation or test; it holds {got}.")
    rows_by_split = {split: np.flatnonzero(values == split) for split in (TRAIN, VALIDATION, TEST)}
    if not rows_by_split[TRAIN].size:
        raise DataError(f"splits.column: {column!r} of {path} must hold train in some rows; it holds it in no row.")
    return {split: rows for split, rows in rows_by_split.items() if rows.size}


def _split(whole: RunRows, settings: RunSettings, named: dict[str, AnyArray]) -> dict[str, RunRows]:
    """Split the rows that may train at random, whatever their labels: only so is each part a plain draw of them.

    All rows of a person go to the same part.
    """
    splits, rows = settings.splits, named[TRAIN]
    method = METHODS[settings.method.name]
    chooses = method.does == "mixes" and not method.crosses
    shares = {}
    for name, default in ((VALIDATION, SET_ASIDE if chooses else 0), (TEST, SET_ASIDE)):
        fraction, files = getattr(splits, name), getattr(splits, f"{name}_files")
        if name in named and not (fraction is None and files is None):
            raise DataError(f"splits.{name}: column {splits.column!r} has {name} rows already. Remove one of the two.")
        share = 0 if name in named or files is not None else default if fraction is None else float(fraction)
        if share > 0:
            shares[name] = share
    persons = np.arange(len(rows)) if whole.ids is None else np.unique(whole.ids[rows], return_inverse=True)[1]
    n_persons = int(persons.max(initial=-1)) + 1
    if shares and n_persons <= len(shares):
        what = "rows" if whole.ids is None else f"persons ({settings.data.ids})"
        raise DataError(f"The data must have {what} for {len(shares) + 1} splits; there are {n_persons}.")
    if shares:
        shares = {TRAIN: 1 - sum(shares.values()), **shares}
        places = split_rows(np.zeros(n_persons), list(shares.values()), seed=settings.seed, stratify=False)
        chosen = places if whole.ids is None else [np.flatnonzero(np.isin(persons, one)) for one in places]
        named = named | {name: rows[own] for name, own in zip(shares, chosen, strict=True)}
    elif len(rows) == len(whole):
        return {TRAIN: whole}  # not a copy of it
    return {name: whole.rows(named[name]) for name in (TRAIN, VALIDATION, TEST) if name in named}


def positive_of(classes: AnyArray, positive: Any) -> Any:
    """Return the class that goals call positive: the one named, or the second of two."""
    if positive is not None:
        return classes[classes.tolist().index(positive)]
    return classes[1] if len(classes) == 2 else None  # noqa: PLR2004


def _check_labels(data: Data, settings: RunSettings) -> None:
    """Check that all rows refer to the same classes, and that each is there to learn from and to choose on."""
    known = set(data.classes.tolist())
    for name, part in {**data.splits, **data.extra}.items():
        if part.weights is not None and not part.weights.any():
            raise DataError(f"data.weights: rows {name!r} must have a weight above 0; all {len(part)} have 0.")
        for what, labels in (("target", part.y), ("baseline", part.baseline)):
            foreign = set() if labels is None else set(np.unique(labels).tolist()) - known
            if foreign:
                raise DataError(
                    f"data.{what}: rows {name!r} hold the label {oddest(foreign, known)!r}, which is not among "
                    f"the classes {listed(data.classes.tolist(), most=10)}."
                )
    for name in (TRAIN, data.chosen_on):
        absent = known - set(np.unique(data.splits[name].labels).tolist())
        if absent:
            raise DataError(
                f"The rows {name!r} must hold every class of {settings.data.target!r}; of {len(data.splits[name])} "
                f"none is {min(absent, key=str)!r}. Use more rows, or merge that class with another."
            )


def with_baseline_model(data: Data, settings: RunSettings, folder: Path) -> Data:
    """Return the rows with the predictions of the deployed model, where the settings name its file."""
    name = settings.data.baseline_model
    if name is None:
        return data
    model = persist.load(folder / name)

    def add_baseline(part: RunRows) -> RunRows:
        try:
            baseline = np.asarray(model.predict(part.X))
        except Exception as error:  # whatever a foreign model raises
            raise DataError(f"data.baseline_model: {name} cannot predict these rows: {error}") from error
        if baseline.shape != (len(part),):
            raise DataError(f"data.baseline_model: {name} must predict one class a row; got shape {baseline.shape}.")
        known = listed(data.classes.tolist(), most=10)
        with as_data_error(f"data.baseline_model: {name} must predict one of {known} for a row: "):
            check_answers(baseline, data.classes.tolist(), f"predictions of {name}")
        return replace(part, baseline=baseline)

    splits = {key: add_baseline(part) for key, part in data.splits.items()}
    extra = {key: add_baseline(part) for key, part in data.extra.items()}
    return data._replace(splits=splits, extra=extra, deployed=model)
