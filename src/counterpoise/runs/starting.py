"""A commented goals file to start from, written by looking at the data."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise.goals.classes import says_yes
from counterpoise.goals.wording import text_of, written_name, written_value
from counterpoise.runs.cautions import heard_words
from counterpoise.runs.data import labels_of, reads_as_number
from counterpoise.runs.errors import DataError, RunFolderError, check_columns, listed, oddest
from counterpoise.runs.folder import write_output
from counterpoise.runs.goals_file import in_toml
from counterpoise.runs.reading import Written, column_names, guessed, how_written, is_parquet, read_usable, written_as

_DAY = re.compile(r"\s*(\d{1,2}([/.-])\d{1,2}\2\d{2,4}|\d{4}([/.-])\d{1,2}\3\d{1,2})([T ].*)?")
_MOST_ODD, _ODD_PART = 3, 0.05  # different texts, and part of the rows, among numbers
_RARE = 20  # rows of a class
_FEW = 12  # different whole numbers that may be codes of categories
_UNIQUE = 0.9  # share of different texts from which a column is a name or a number of a person
_LOOKED_AT = 100_000  # rows at most
_SEED = 0  # of the choice among more
_PAIR = 2  # classes
_SHOWN = 10  # names of columns in a message
_ODD_TEXTS = ("?", "-", "unknown", "Unknown", "missing", "n/a")  # that may stand for a missing value


_WEIGHTS = ("weight", "weights", "sample_weight", "sample_weights", "fnlwgt", "pwgtp")
_DEPLOYED = "    # what the deployed model predicts, for goals such as churn(train) <= 0.03"


class Guess(NamedTuple):
    """Something that the starting file takes for granted, and how to change it."""

    about: str
    taken: str
    change: str

    def __str__(self) -> str:
        return f"{self.about}: {self.taken}\n    to change it: {self.change}"


class StartingFile(NamedTuple):
    """A goals file to start from, and every guess that it rests on."""

    text: str
    guesses: tuple[Guess, ...]


def starting_file(
    data_path: str | Path,
    target: str,
    *,
    groups: Sequence[str] = (),
    baseline: str | None = None,
    beside: str | Path | None = None,
) -> str:
    r"""Return a goals file for a table, with comments that say what was seen and what can be set.

    Parameters
    ----------
    data_path : path
        A CSV or Parquet file.
    target : str
        The column to predict.
    groups : sequence of str
        Columns that goals speak of.
    baseline : str, optional
        The column with the predictions of the deployed model. It is never guessed.
    beside : path, optional
        The folder where the goals file will lie; it names the data from there. Default: the folder of the data.

    Returns
    -------
    str
        TOML, which ``read_goals_file`` reads.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.runs import starting_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "loans.csv"
    ...     _ = path.write_text("age,sex,paid\n31,F,yes\n45,M,no\n52,F,no\n")
    ...     text = starting_file(path, "paid", groups=["sex"])
    >>> [line for line in text.splitlines() if line.startswith(("files", "target", "groups"))]
    ['files = "loans.csv"', 'target = "paid"', 'groups = ["sex"]']
    """
    return start_from(data_path, target, groups=groups, baseline=baseline, beside=beside).text


def start_from(
    data_path: str | Path,
    target: str,
    *,
    groups: Sequence[str] = (),
    baseline: str | None = None,
    beside: str | Path | None = None,
) -> StartingFile:
    """Return a goals file for a table, as ``starting_file`` does, with the guesses that it rests on."""
    path = Path(data_path)
    written = guessed(path) if path.is_file() and not is_parquet(path) else Written()
    roles = _Roles(target, tuple(groups), baseline)
    with written_as(written):
        guesses = [
            Guess(f"{key} of the file", repr(value), f"{key} under [data], or --{key}")
            for key, value in written._asdict().items()
            if value is not None
        ]
        return _starting_file(path, roles, Path(beside) if beside is not None else path.parent, guesses)


class _Roles(NamedTuple):
    """The columns that the user named."""

    target: str
    groups: tuple[str, ...]
    baseline: str | None

    @property
    def all(self) -> tuple[str, ...]:
        return (self.target, *self.groups, *(() if self.baseline is None else (self.baseline,)))


def _starting_file(path: Path, roles: _Roles, beside: Path, guesses: list[Guess]) -> StartingFile:
    known, (target, groups, baseline) = column_names(path), roles
    for option, names in (("target", [target]), ("groups", groups), ("baseline", roles.all[1 + len(groups) :])):
        check_columns(names, known, path, f"--{option}: ")
    if baseline is not None and baseline in (target, *groups):
        raise DataError(f"--baseline must name a column that is neither the target nor a group; got {baseline!r}.")
    with heard_words() as heard:
        frame, refused = read_usable(path, known, values=roles.all)
        if len(frame) > _LOOKED_AT:  # from all over the file, which may be sorted by class, or go round
            frame = frame.iloc[np.sort(np.random.default_rng(_SEED).choice(len(frame), _LOOKED_AT, replace=False))]
        if target in refused:
            raise DataError(f"Column {target!r} of {path} must hold classes; it holds neither numbers nor texts.")
        labels = labels_of(frame, target, path)
    guesses += [
        Guess("words among numbers", text.partition(" Leave ")[0], "write other fields, or set missing under [data]")
        for text in heard
    ]
    classes = np.unique(labels)
    if len(classes) < 2:  # noqa: PLR2004
        raise DataError(f"Column {target!r} of {path} must hold at least two classes; got {classes.tolist()!r} only.")
    features = [name for name in frame.columns if name not in roles.all]
    if not features:
        raise DataError(f"{path} must have a column to learn from beside the target and the groups; it has none.")
    if baseline is not None:
        _check_answers(frame, baseline, classes, path)
    source = os.path.relpath(path, beside)
    lines = [*_top(path, frame, classes, target, groups), "", "[data]", f"files = {in_toml(source)}"]
    lines += [f"{key} = {in_toml(value)}" for key, value in how_written()._asdict().items() if value is not None]
    lines += [
        *_roles(frame, roles, classes, guesses),
        *_columns(frame, features, refused, guesses),
        *_method(groups, are_many=len(classes) > _PAIR),
    ]
    return StartingFile("\n".join(lines) + "\n", tuple(guesses))


def _check_answers(frame: Any, baseline: str, classes: Any, path: Path) -> None:
    """Check that the column of the deployed model holds classes of the target."""
    foreign = set(labels_of(frame, baseline, path).tolist()) - set(classes.tolist())
    if foreign:
        raise DataError(
            f"--baseline: column {baseline!r} of {path} must hold predictions, each one of the classes "
            f"{listed(classes.tolist(), most=10)}; it holds {oddest(foreign, classes.tolist())!r}."
        )


def write_new(path: str | Path, text: str) -> None:
    """Write a goals file that does not exist yet."""
    path = Path(path)
    if path.exists():
        raise RunFolderError(f"{path} exists already and is left as it is. Name another with --output.")
    write_output(path, text.encode())


def _top(path: Path, frame: Any, classes: Any, target: str, groups: Sequence[str]) -> Iterator[str]:
    yield f"# Goals for {path.name}: {len(frame)} rows looked at, {len(frame.columns)} columns."
    yield "# Fit with: counterpoise fit THIS_FILE. All keys: docs/guide/goals_file.md."
    yield ""
    yield 'alpha = 1.0    # 1: the plain error counts; 0.1: that of the worst-off tenth, with decision = "sticky"'
    yield "seed = 0       # of splits and models; draws have a key of their own"
    yield '# output = "run"    # the run folder; default: the name of this file'
    yield ""
    yield "# What must hold, as text; train stands for the rows on which decisions are chosen. The test rows tell"
    yield "# with which confidence each holds. Take away the # of those you want, and set the numbers."
    yield "goals = ["
    suggested = _suggested_of_many(frame, target, groups) if len(classes) > _PAIR else _suggested(frame, groups)
    for goal in suggested:
        yield f"    # {in_toml(goal)},"
    yield "]"
    yield "room_for_audit = true    # meet them with room, so that test rows can show it, for at most 0.01 more error"
    if len(classes) > _PAIR:
        yield f"# {in_toml(target)} has {len(classes)} classes: goals name one by of=CLASS, or ask every_class(...)."


def _suggested_of_many(frame: Any, target: str, groups: Sequence[str]) -> Iterator[str]:
    """Yield goals on classes: all of them, and the rarest."""
    rarest = written_value(text_of(frame[target].value_counts().idxmin()))
    yield "every_class(recall, train) >= 0.7"
    yield f"recall(train, of={rarest}) >= 0.8"
    yield f"positive_rate(train, of={rarest}) <= 0.2"
    for name in groups:
        yield f"max_difference(error_rate, train, by={written_name(name)}) <= 0.05"


def _suggested(frame: Any, groups: Sequence[str]) -> Iterator[str]:
    yield "recall(train) >= 0.8"
    yield "false_positive_rate(train) <= 0.1"
    for name in groups:
        counts = frame[name].value_counts()
        if len(counts) < 2:  # noqa: PLR2004
            continue
        if len(counts) > 2:  # noqa: PLR2004
            yield f"min_ratio(positive_rate, train, by={written_name(name)}) >= 0.8"
            continue
        most, next_most = (
            f"positive_rate(train, {written_name(name)}={written_value(text_of(one))})" for one in counts.index[:2]
        )
        yield f"{next_most} >= 0.8 * {most}"


def _roles(frame: Any, roles: _Roles, classes: Any, guesses: list[Guess]) -> Iterator[str]:
    target, groups, baseline = roles
    counts = ", ".join(f"{label!r}: {int((frame[target] == label).sum())}" for label in classes.tolist()[:6])
    counts += " ..." if len(classes) > 6 else ""  # noqa: PLR2004
    kind = "texts" if frame[target].dtype.name == "category" else "whole numbers or truth values"
    told = f"{in_toml(target)} holds {len(classes)} classes, {kind} (rows looked at: {counts})"
    guesses.append(Guess("target", told, "--target COLUMN, or put its values into classes first"))
    yield f"target = {in_toml(target)}"
    yield f"# classes: {counts}"
    rarest = frame[target].value_counts().idxmin()
    if int((frame[target] == rarest).sum()) < _RARE:
        yield f"# {rarest!r} has so few rows that a split may hold none, which fit refuses: merge it."
    if len(classes) == 2:  # noqa: PLR2004
        positive = in_toml(_positive(frame[target], classes))
        guesses.append(Guess("positive class", positive, "positive under [data]"))
        yield f"positive = {positive}    # the class that goals such as recall speak of"
    if not groups:
        guesses.append(Guess("groups", "none, so that all columns are features", "--groups COLUMN"))
    yield f"groups = {in_toml(list(groups))}"
    yield "use_groups_as_features = false"
    weighing = next((name for name in frame.columns if str(name).lower() in _WEIGHTS), None)
    told = "sample weights, and with goals" if weighing is None else "by its name; as it stands it is a feature"
    is_number = weighing is not None and frame[weighing].dtype.kind in "iuf"
    heaviest = float(f"{1.05 * frame[weighing].max():.2g}") if is_number else 20.0
    yield f"# weights = {in_toml(weighing or 'COLUMN')}     # {told}"
    yield f"# largest_weight = {heaviest:g}    # the most that a row of the population can weigh"
    if weighing is not None:
        guesses.append(Guess("weights", f"none; {in_toml(weighing)} is a feature", "weights under [data]"))
    answers = [name for name in _answer_columns(frame, target, classes, groups) if name != baseline]
    if baseline is not None:
        yield f"baseline = {in_toml(baseline)}{_DEPLOYED}"
    else:
        guesses.append(Guess("deployed model", "none, so that there are no goals on churn", "--baseline COLUMN"))
        yield f'# baseline = "COLUMN"{_DEPLOYED}'
    if answers:
        named = _first_names(answers)
        told = f"{named} are features; they may be predictions of a model, or the target under another name"
        guesses.append(Guess("columns with the classes of the target", told, "--baseline COLUMN, or drop under [data]"))
        yield f"# {named} hold the classes of the target. They are features: if one holds what the deployed model"
        yield "# predicts, name it above; if one is only known once the target is, add it to drop."


def _positive(column: Any, classes: Any) -> Any:
    """Return the second of two classes; of texts that say no yes the rarer one, which is mostly looked for."""
    first, second = classes.tolist()
    if not isinstance(second, str) or says_yes(second):
        return second
    return min(first, second, key=lambda label: int((column == label).sum()))


def _answer_columns(frame: Any, target: str, classes: Any, groups: Sequence[str]) -> list[str]:
    """Return the columns that hold the classes of the target and nothing else, as answers of a model do.

    Of many classes, which may be small numbers as any column holds them, answers are also right about more rows than
    the largest class has.
    """
    wanted, truth = set(classes.tolist()), frame[target].to_numpy()
    found = [
        name
        for name in frame.columns
        if name != target and name not in groups and set(frame[name].dropna().unique().tolist()) == wanted
    ]
    least = 0 if len(classes) == _PAIR else int(frame[target].value_counts().max())
    return [name for name in found if int((frame[name].to_numpy() == truth).sum()) >= least]


def _columns(frame: Any, features: Sequence[str], refused: Sequence[str], guesses: list[Guess]) -> Iterator[str]:
    """Yield what the columns look like, and which of them to leave out or to read otherwise."""
    is_text = {name: frame[name].dtype.name == "category" for name in features}
    spoiled = {name: odd for name in features if is_text[name] and (odd := _odd_texts(frame[name]))}
    is_name = {name: is_text[name] and name not in spoiled for name in features}
    dates = [name for name in features if is_text[name] and _are_dates(frame[name])]
    names = [name for name in features if is_name[name] and frame[name].nunique() > _UNIQUE * len(frame)]
    left_out = list(dict.fromkeys([*refused, *names, *dates]))
    whole = {name: frame[name].nunique() for name in features if frame[name].dtype.kind in "iu"}
    codes = [name for name, n_values in whole.items() if 2 < n_values <= _FEW]  # noqa: PLR2004
    ids = [name for name, n_values in whole.items() if n_values == len(frame)]
    absent = {text for name in features if is_text[name] for text in frame[name].cat.categories} & set(_ODD_TEXTS)
    absent = absent.union(*spoiled.values())
    missing = [name for name in features if frame[name].isna().any()]
    _tell_columns(guesses, drop=left_out, ids=ids, absent=sorted(absent), codes=codes)
    yield f"drop = {in_toml(left_out)}" + (
        "    # dates, no numbers or texts, or different in each row" if names or dates else ""
    )
    if ids:
        yield f"# different whole numbers in each row: {in_toml(ids)}. If they only number the rows, add them to drop."
    yield f"missing = {in_toml(sorted(absent))}    # texts that stand for a missing value"
    for name, texts in spoiled.items():
        first = (frame[name].astype(object) == texts[0]).to_numpy().argmax()
        where = int(frame.index[first]) + 1
        yield f"# {in_toml(name)} holds numbers but for {in_toml(texts)}, first in row {where}: taken for missing"
    if codes:
        yield f"# categorical = {in_toml(codes)}    # whole numbers of few values: codes of categories?"
    yield f"# {sum(is_text.values())} columns of texts, {len(features) - sum(is_text.values())} of numbers."
    if missing:
        yield f"# with missing values: {in_toml(missing)}"


def _tell_columns(
    guesses: list[Guess], *, drop: Sequence[str], ids: Sequence[str], absent: Sequence[str], codes: Sequence[str]
) -> None:
    """Add what was taken for granted about columns, where there is anything."""
    told = {
        "dropped columns": (drop, "dates, no numbers or texts, or different texts in each row", "drop under [data]"),
        "ids": (ids, "different whole numbers in each row, and features", "add those that only number rows to drop"),
        "missing values": (absent, "these texts", "missing under [data]"),
        "numbers of few values": (codes, "no codes of categories", "categorical under [data]"),
    }
    for about, (names, why, change) in told.items():
        if names:
            guesses.append(Guess(about, f"{_first_names(names)} ({why})", change))


def _first_names(names: Sequence[str]) -> str:
    """Return the names of columns, of many the first and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{in_toml(list(names[:_SHOWN]))}{more}"


def _are_dates(column: Any) -> bool:
    """Tell whether all texts of a column are days, as 22/11/2013, to which no two tables give the same categories."""
    texts = column.cat.categories
    return len(texts) > 0 and all(map(_DAY.fullmatch, texts))


def _odd_texts(column: Any) -> list[str]:
    """Return the few texts that keep a column from being one of numbers; none where it is one of texts."""
    odd = [text for text in column.cat.categories if not reads_as_number(text)]
    is_odd = column.isin(odd)
    few = len(odd) <= _MOST_ODD and int(is_odd.sum()) <= _ODD_PART * int(column.notna().sum())
    return odd if odd and few else []


def _method(groups: Sequence[str], *, are_many: bool) -> Iterator[str]:
    yield from ("", "[splits]    # of the rows: the rest trains")
    yield "test = 0.2          # the audit is made on these"
    yield '# column = "COLUMN" # or a column that says train, validation or test of each row'
    yield from ("", "[method]")
    rule = "class weights" if are_many else "a threshold"
    looked_at = in_toml(list(groups) or ["COLUMN"])
    yield 'name = "goals"    # a strong model, with decisions that meet the goals at the least error'
    yield '# models = [{ name = "gradient_boosting" }, { name = "logistic" }]    # whose scores; default: the first'
    yield '# name = "lpboost"    # instead: models trained for the goals, for all groups alike; draws decide (no by)'
    yield from ("", "[method.parameters]")
    yield f"# by = {looked_at}    # what decisions may look at, where that is allowed: {rule} for each group"
    yield "# deferral = { cost = 0.2 }    # leave hard cases to a person; each costs a fifth of an error"
    yield '# with it a goal can say how many: "defer_rate(train) <= 0.1"'
    yield '# decision = "sticky"    # with alpha below 1: a mixture of rules, of which one is drawn for each person'
    yield "# budget = 0.01    # and the most that the average error may rise for it"
