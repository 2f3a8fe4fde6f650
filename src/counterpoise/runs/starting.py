"""A commented goals file to start from, with guesses from the data."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from counterpoise.goals.classes import is_positive_word
from counterpoise.goals.terms import format_name, format_value, text_of
from counterpoise.runs.data import labels_of, reads_as_number
from counterpoise.runs.errors import DataError, RunFolderError, check_columns, refuse_foreign
from counterpoise.runs.folder import write_output
from counterpoise.runs.goals_file import in_toml
from counterpoise.runs.reading import WordsAmongNumbers, collect_warnings, column_names, guess_format, read_usable
from counterpoise.runs.settings import Written, how_written, is_parquet, written_as

_DAY = re.compile(r"\s*(\d{1,2}([/.-])\d{1,2}\2\d{2,4}|\d{4}([/.-])\d{1,2}\3\d{1,2})([T ].*)?")
_MOST_ODD, _ODD_PART = 3, 0.05  # different texts, and part of the rows, among numbers
_RARE = 20  # rows of a class
_LARGE = 125  # rows of a group, of which a fifth is kept for tests
_FEW = 12  # different whole numbers that may be codes of categories
_UNIQUE = 0.9  # share of different texts from which a column is a name or a number of a person
_MOST_ROWS = 100_000  # rows at most
_SEED = 0  # of the choice among more
_PAIR = 2  # classes
_MOST_COUNTED = 6  # classes that are counted in words
_SHOWN = 10  # names of columns in a message
_ODD_TEXTS = ("?", "-", "unknown", "Unknown", "missing", "n/a")  # that may stand for a missing value
_WEIGHTS = re.compile(r"(.*[\W_])?(weights?|wgt)|fnlwgt|pwgtp", re.IGNORECASE)  # names such as "instance weight"


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
        Columns that goals use.
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
    data_path: str | Path, target: str, *, groups: Sequence[str], baseline: str | None, beside: str | Path | None
) -> StartingFile:
    """Return a goals file for a table, as ``starting_file`` does, with the guesses that it rests on."""
    path, beside = Path(data_path), Path(data_path).parent if beside is None else Path(beside)
    written = guess_format(path) if path.is_file() and not is_parquet(path) else Written()
    guesses = [
        Guess(f"{key} of the file", repr(value), f"{key} under [data], or --{key}")
        for key, value in written._asdict().items()
        if value is not None
    ]
    with written_as(written):
        seen = _look(path, target, tuple(groups), baseline, guesses)
        seen |= {"source": os.path.relpath(path, beside), "written": how_written()._asdict()}
    environment = Environment(
        loader=PackageLoader("counterpoise.runs", "."),
        autoescape=False,  # noqa: S701 - TOML, whose texts the filter writes
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["toml"] = in_toml
    return StartingFile(environment.get_template("starting.toml.jinja").render(seen), tuple(guesses))


def _look(
    path: Path, target: str, groups: tuple[str, ...], baseline: str | None, guesses: list[Guess]
) -> dict[str, Any]:
    """Return what is seen in a table, for the template, and add to the guesses."""
    known, others = column_names(path), () if baseline is None else (baseline,)
    for option, names in (("target", (target,)), ("groups", groups), ("baseline", others)):
        check_columns(names, known, path, f"--{option}: ")
    if baseline is not None and baseline in (target, *groups):
        raise DataError(f"--baseline must name a column that is neither the target nor a group; got {baseline!r}.")
    named = (target, *groups, *others)
    with collect_warnings(WordsAmongNumbers) as words:
        frame, refused = read_usable(path, known, values=named)
        if len(frame) > _MOST_ROWS:  # from all over the file, which may be sorted by class, or go round
            frame = frame.iloc[np.sort(np.random.default_rng(_SEED).choice(len(frame), _MOST_ROWS, replace=False))]
        if target in refused:
            raise DataError(f"Column {target!r} of {path} must hold classes; it holds neither numbers nor texts.")
        classes = np.unique(labels_of(frame, target, path)).tolist()
    if len(classes) < _PAIR:
        raise DataError(f"Column {target!r} of {path} must hold at least two classes; got {classes!r} only.")
    features = [name for name in frame.columns if name not in named]
    if not features:
        raise DataError(f"{path} must have a feature column beside the target and the groups; it has none.")
    if baseline is not None:
        must = f"--baseline: column {baseline!r} of {path} must hold predictions, each one of the classes"
        refuse_foreign(labels_of(frame, baseline, path).tolist(), classes, must, got="it holds")
    change = "write other fields, or set missing under [data]"
    guesses += [Guess("words among numbers", str(one).partition(" Leave ")[0], change) for one in words]
    seen = {"path": path, "frame": frame, "target": target, "groups": groups, "baseline": baseline}
    seen |= {"n_classes": len(classes), "goals": list(_suggest(frame, target, groups, are_many=len(classes) > _PAIR))}
    seen |= _look_at_roles(frame, target, groups, baseline, classes, guesses)
    return seen | _look_at_features(frame, features, refused, guesses)


def write_new(path: str | Path, text: str) -> None:
    """Write a goals file that does not exist yet."""
    path = Path(path)
    if path.exists():
        raise RunFolderError(f"{path} exists already and is not overwritten. Name another file with --output.")
    write_output(path, text.encode())


def _suggest(frame: Any, target: str, groups: Sequence[str], *, are_many: bool) -> Iterator[str]:
    """Yield goals to choose from: of many classes on all of them, and on the rarest."""
    if are_many:
        rarest = format_value(text_of(frame[target].value_counts().idxmin()))
        yield "every_class(recall) >= 0.7"
        yield f"recall(of={rarest}) >= 0.8"
        yield f"positive_rate(of={rarest}) <= 0.2"
        yield from (f"max_difference(error_rate, {_by(frame, name)}) <= 0.05" for name in groups)
        return
    yield "recall >= 0.8"
    yield "false_positive_rate <= 0.1"
    for name in groups:
        counts = frame[name].value_counts()
        if len(counts) > _PAIR:
            yield f"min_ratio(positive_rate, {_by(frame, name)}) >= 0.8"
        elif len(counts) == _PAIR:
            most, next_most = (
                f"positive_rate({format_name(name)}={format_value(text_of(one))})" for one in counts.index
            )
            yield f"{next_most} >= 0.8 * {most}"


def _by(frame: Any, name: str) -> str:
    """Return a column of a goal over groups, without small groups where there are two larger ones: they show little."""
    n_large = int((frame[name].value_counts() >= _LARGE).sum())
    return f"by={format_name(name)}" + ", min_rows=100" * (n_large >= _PAIR)


def _look_at_roles(
    frame: Any, target: str, groups: Sequence[str], baseline: str | None, classes: list[Any], guesses: list[Guess]
) -> dict[str, Any]:
    """Return what the template shows of columns with a role, and add the guesses about them."""
    sizes = {label: int((frame[target] == label).sum()) for label in classes}
    counts = ", ".join(f"{label!r}: {sizes[label]}" for label in classes[:_MOST_COUNTED])
    counts += " ..." if len(classes) > _MOST_COUNTED else ""
    kind = "texts" if frame[target].dtype.name == "category" else "whole numbers or truth values"
    text = f"{in_toml(target)} holds {len(classes)} classes, {kind} (rows read: {counts})"
    guesses.append(Guess("target", text, "--target COLUMN, or put its values into classes first"))
    rarest = frame[target].value_counts().idxmin()
    positive = _positive(sizes) if len(classes) == _PAIR else None
    if positive is not None:
        guesses.append(Guess("positive class", in_toml(positive), "positive under [data]"))
    if not groups:
        guesses.append(Guess("groups", "none, so that all columns are features", "--groups COLUMN"))
    weights = next((name for name in frame.columns if _WEIGHTS.fullmatch(str(name))), None)
    if weights is not None:
        guesses.append(Guess("weights", f"none; {in_toml(weights)} is a feature", "weights under [data]"))
    is_number = weights is not None and frame[weights].dtype.kind in "iuf"
    heaviest = float(f"{1.05 * frame[weights].max():.2g}") if is_number else 20.0
    if baseline is None:
        guesses.append(Guess("deployed model", "none, so that there are no goals on churn", "--baseline COLUMN"))
    answers = [name for name in _answer_columns(frame, target, classes, groups) if name != baseline]
    if answers:
        may_be = "they may be predictions of a model, or the target under another name"
        text = f"{_first_names(answers)} are features; {may_be}"
        guesses.append(Guess("columns with the classes of the target", text, "--baseline COLUMN, or drop under [data]"))
    return {
        "counts": counts,
        "rare": repr(rarest) if int((frame[target] == rarest).sum()) < _RARE else None,
        "positive": positive,
        "weights": weights,
        "heaviest": f"{heaviest:g}",
        "answers": _first_names(answers) if answers else "",
    }


def _positive(sizes: dict[Any, int]) -> Any:
    """Return the second of two classes; of texts that say no yes the rarer one, which is mostly looked for."""
    _, second = sizes
    says_yes = not isinstance(second, str) or is_positive_word(second)
    return second if says_yes else min(sizes, key=lambda label: sizes[label])


def _answer_columns(frame: Any, target: str, classes: list[Any], groups: Sequence[str]) -> list[str]:
    """Return the columns that hold the classes of the target and nothing else, as answers of a model do.

    Of many classes, which may be small numbers as any column holds them, answers are also right about more rows than
    the largest class has.
    """
    wanted, truth = set(classes), frame[target].to_numpy()
    columns = [
        name
        for name in frame.columns
        if name != target and name not in groups and set(frame[name].dropna().unique().tolist()) == wanted
    ]
    least = 0 if len(classes) == _PAIR else int(frame[target].value_counts().max())
    return [name for name in columns if int((frame[name].to_numpy() == truth).sum()) >= least]


def _look_at_features(
    frame: Any, features: Sequence[str], refused: Sequence[str], guesses: list[Guess]
) -> dict[str, Any]:
    """Return what the features look like, and which of them to leave out or to read otherwise; add to the guesses."""
    texts = [name for name in features if frame[name].dtype.name == "category"]
    spoiled = {name: odd for name in texts if (odd := _odd_texts(frame[name]))}
    # days, such as 22/11/2013, to which no two tables give the same categories
    days = [name for name in texts if len(known := frame[name].cat.categories) and all(map(_DAY.fullmatch, known))]
    names = [name for name in texts if name not in spoiled and frame[name].nunique() > _UNIQUE * len(frame)]
    whole = {name: frame[name].nunique() for name in features if frame[name].dtype.kind in "iu"}
    absent = {text for name in texts for text in frame[name].cat.categories} & set(_ODD_TEXTS)
    first = {name: (frame[name].astype(object) == odd[0]).to_numpy().argmax() for name, odd in spoiled.items()}
    seen: dict[str, Any] = {
        "drop": list(dict.fromkeys([*refused, *names, *days])),
        "has_texts_to_drop": bool(names or days),
        "ids": [name for name, n_values in whole.items() if n_values == len(frame)],
        "absent": sorted(absent.union(*spoiled.values())),
        "codes": [name for name, n_values in whole.items() if _PAIR < n_values <= _FEW],
        "spoiled": {name: (odd, int(frame.index[first[name]]) + 1) for name, odd in spoiled.items()},
        "n_texts": len(texts),
        "n_numbers": len(features) - len(texts),
        "missing": [name for name in features if frame[name].isna().any()],
    }
    possible_guesses = {
        "drop": ("dropped columns", "dates, no numbers or texts, or different texts in each row", "drop under [data]"),
        "ids": ("ids", "different whole numbers in each row, and features", "add those that only number rows to drop"),
        "absent": ("missing values", "these texts", "missing under [data]"),
        "codes": ("numbers of few values", "used as numbers, not as codes of categories", "categorical under [data]"),
    }
    for key, (about, why, change) in possible_guesses.items():
        if seen[key]:
            guesses.append(Guess(about, f"{_first_names(seen[key])} ({why})", change))
    return seen


def _first_names(names: Sequence[str]) -> str:
    """Return the names of columns, of many the first and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{in_toml(list(names[:_SHOWN]))}{more}"


def _odd_texts(column: Any) -> list[str]:
    """Return the few texts that keep a column from being one of numbers; none where it is one of texts."""
    odd = [text for text in column.cat.categories if not reads_as_number(text)]
    is_odd = column.isin(odd)
    few = len(odd) <= _MOST_ODD and int(is_odd.sum()) <= _ODD_PART * int(column.notna().sum())
    return odd if odd and few else []
