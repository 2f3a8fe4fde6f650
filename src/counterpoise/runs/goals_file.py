"""Reading a goals file: TOML, checked by pydantic, with errors that say where, what was wanted and what was got."""

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from counterpoise._base.text import did_you_mean
from counterpoise.goals import Goal, GoalSyntaxError, UnknownName, parse_goal
from counterpoise.goals.bound import asked_goals
from counterpoise.persist.files import read_file
from counterpoise.runs.errors import GoalsFileError, listed, short, twice_in
from counterpoise.runs.methods import DEPLOYED, GOALS, METHODS, Found, check_method, defers
from counterpoise.runs.quantities import CVAR, SPLITS, TRAIN
from counterpoise.runs.sample_faults import sample_faults
from counterpoise.runs.settings import MethodSettings, RunSettings, SplitSettings
from counterpoise.runs.toml_shape import too_deep

_SHOWN = 60  # characters of a value in a message
_MOST_BITS = 64  # of a whole number: those of TOML
_MOST_BYTES = 1 << 20  # of a goals file: room for the names of 50,000 columns


def read_goals_file(path: str | Path) -> RunSettings:
    r"""Read and check a goals file.

    Parameters
    ----------
    path : path
        A TOML file; ``docs/guide/goals_file.md`` has all keys.

    Returns
    -------
    RunSettings

    Raises
    ------
    GoalsFileError
        With the file, the line or key, what was expected, what was got, and the nearest key for a typo.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.runs import read_goals_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "goals.toml"
    ...     _ = path.write_text('seed = 2\n[data]\nfiles = "loans.csv"\ntarget = "paid"\n')
    ...     read_goals_file(path).seed
    2
    """
    return parse_goals_file(read_bytes(path), Path(path))


def read_bytes(path: str | Path) -> bytes:
    """Return the bytes of a goals file."""
    path = Path(path)
    if path.is_dir():
        raise GoalsFileError(f"{path} must be a goals file (TOML); it is a folder.")
    if not path.exists():
        raise GoalsFileError(f"There is no goals file {path}. Write one with: counterpoise init DATA --target COLUMN.")
    try:
        return read_file(path, _MOST_BYTES)
    except OSError as error:
        raise GoalsFileError(f"{path} cannot be read: {error.strerror}.") from error


def parse_goals_file(content: bytes, path: Path) -> RunSettings:
    """Check the content of a goals file, which errors call ``path``."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise GoalsFileError(f"{path} must be UTF-8 text; byte {error.start} is not.") from error
    deep = too_deep(text)
    if deep:
        raise GoalsFileError(f"{path}, {deep}.")
    try:
        given: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GoalsFileError(f"{path} must be TOML: {error}.") from error
    except ValueError:  # of Python, for a number of thousands of digits
        given = 1 << _MOST_BITS
    if _has_long_number(given):
        raise GoalsFileError(f"{path} must be TOML: a whole number has at most {_MOST_BITS} bits.")
    try:
        settings = RunSettings.model_validate(given)
    except ValidationError as error:
        raise GoalsFileError(_words(error, text, path)) from error
    for key, message in _faults(settings):
        raise GoalsFileError(f"{path}{_line(text, key)}, {_dotted(key)}: {message}")
    return settings


def _has_long_number(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_long_number, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and value.bit_length() > _MOST_BITS


def goals_of(settings: RunSettings) -> tuple[Goal, ...]:
    """Return the goals that settings ask for, each with the confidence it carries."""
    goals = []
    for asked in settings.goals:
        goal = parse_goal(asked.goal)
        goals.append(goal if asked.confidence is None else goal.with_confidence(asked.confidence))
    return tuple(goals)


def _faults(settings: RunSettings) -> Found:
    """Yield what is wrong with keys that depend on each other, or on what methods and goals there are."""
    method = settings.method
    yield from _data_faults(settings)
    yield from _written_faults(settings)
    yield from _file_faults(settings)
    yield from _split_faults(settings.splits)
    yield from sample_faults(settings)
    yield from ((("method", *key), message) for key, message in check_method(method))
    yield from _one_rule_faults(settings)
    if settings.goals and method.enforce_goals:
        yield from _goal_method_faults(method)
    for name in settings.datasets:
        if name in SPLITS:
            yield ("datasets", name), f"a dataset must not be called {name!r}: those are rows of data."
    for number, asked in enumerate(settings.goals):
        yield from _goal_faults(asked.goal, {TRAIN, *settings.datasets}, ("goals", number), defers=defers(method))


def _one_rule_faults(settings: RunSettings) -> Found:
    """Yield that one rule cannot make a tail small; what is wrong with an objective is told with the parameters."""
    parameters = settings.method.parameters
    is_tail = settings.alpha < 1 and parameters.get("objective", CVAR) == CVAR
    if settings.method.name == GOALS and is_tail and parameters.get("decision", "fixed") == "fixed":
        message = (
            "one rule decides, which is right or wrong about each row: the loss of its tail follows from its error "
            'alone. Set decision = "sticky" in [method.parameters], which mixes rules, or alpha = 1.0 for the least '
            f"error; got {settings.alpha:g}."
        )
        yield ("alpha",), message


def _goal_method_faults(method: MethodSettings) -> Found:
    if METHODS[method.name].does == "plain":
        others = 'Use "goals", with it among method.models, or set enforce_goals = false to audit it only.'
        yield ("method", "name"), f"{method.name} cannot be fitted inside goals. {others}"
    mixture = method.parameters.get("mixture", "optimal")
    if mixture != "optimal":
        yield ("method", "parameters", "mixture"), f"goals need 'optimal', which can meet them; got {mixture!r}."


def _data_faults(settings: RunSettings) -> Found:
    data, split = settings.data, settings.splits.column
    if data.baseline is not None and data.baseline_model is not None:
        yield ("data", "baseline_model"), "expected baseline or baseline_model; got both."
    limits: list[tuple[tuple[str, ...], float | None]] = [(("data",), data.largest_weight)]
    limits += [(("datasets", name), one.largest_weight) for name, one in settings.datasets.items()]
    for table, limit in limits:
        if limit is not None and data.weights is None:
            message = "expected data.weights too, the column whose weights it limits; got a limit alone."
            yield (*table, "largest_weight"), message
    if split in (data.target, *(data.columns or ())):
        yield ("splits", "column"), f"expected a column that is no feature and not the target; got {split!r}."
    for key in ("columns", "groups", "drop", "categorical"):
        names = getattr(data, key) or []
        if data.target in names:
            yield ("data", key), f"expected columns beside the target; got the target {data.target!r}."
        twice = twice_in(names)
        if twice is not None:
            yield ("data", key), f"expected each column once; got {twice!r} twice."
    for number, model in enumerate(settings.method.models):
        if model.name == DEPLOYED and data.baseline_model is None:
            message = f"{DEPLOYED!r} is the model in the file that data.baseline_model names; it names none."
            yield ("method", "models", number), message


def _written_faults(settings: RunSettings) -> Found:
    try:
        settings.data.written.check()
    except ValueError as error:
        key, _, words = str(error).partition(" ")
        yield ("data", key), f"it {words}"


def _file_faults(settings: RunSettings) -> Found:
    lists: dict[tuple[str, ...], list[str]] = {("data", "files"): settings.data.files}
    lists |= {("splits", key): getattr(settings.splits, key) or [] for key in ("validation_files", "test_files")}
    lists |= {("datasets", name, "files"): one.files for name, one in settings.datasets.items()}
    for key, files in lists.items():
        twice = twice_in(files)
        if twice is not None:
            yield key, f"expected each file once; got {twice!r} twice."


def _split_faults(splits: SplitSettings) -> Found:
    for name in ("validation", "test"):
        if getattr(splits, name) is not None and getattr(splits, f"{name}_files") is not None:
            yield ("splits", name), f"expected a fraction or {name}_files; got both."
    total = (splits.validation or 0) + (splits.test or 0)
    if total >= 1:
        yield ("splits",), f"validation and test must leave rows to train on; together they are {total:g}."


def _goal_faults(text: str, known: Iterable[str], key: Sequence[Any], *, defers: bool) -> Found:
    try:
        (goal,) = asked_goals(text, trains=True, defers=defers)
    except (GoalSyntaxError, UnknownName, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]  # what follows points into the text
        yield key, f"expected a goal such as recall(train) >= 0.9; got {_shown(text)}. {reason}"
        return
    for name in goal.datasets:
        if name not in known:
            hint, names = did_you_mean(name, known), listed(sorted(known))
            yield key, f"unknown dataset {_shown(name)} in the goal {short(goal, _SHOWN)}.{hint} Known: {names}."


def _words(error: ValidationError, text: str, path: Path) -> str:
    """Return the first error of pydantic in our words; errors on keys that do not exist come first."""
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    key = tuple(part for part in first["loc"] if not _is_branch(part))
    where = f"{path}{_line(text, key)}"
    if first["type"] == "extra_forbidden":
        known = _known_keys(key[:-1])
        table = f"the table {_dotted(key[:-1])}" if len(key) > 1 else "a goals file"
        hint = did_you_mean(str(key[-1]), known)
        return f"{where}: unknown key {_shown(key[-1])} in {table}.{hint} Known: {', '.join(known)}."
    if first["type"] == "missing":
        return f"{where}: {_dotted(key)} is missing; expected {_wanted(key)}."
    kinds = {one["type"] for one in error.errors() if one["loc"][: len(key)] == first["loc"][: len(key)]}
    expected = "a number" if kinds == {"int_type", "float_type"} else _expected(first)
    return f"{where}, {_dotted(key)}: expected {expected}; got {_shown(first['input'])}."


def _is_branch(part: Any) -> bool:
    """Tell whether a part of a location names a member of a union, which users never wrote."""
    return isinstance(part, str) and (part in {"str", "int", "float", "bool"} or "[" in part)


def _expected(error: Any) -> str:
    if str(error["type"]).endswith("too_short"):
        return "at least one entry or character"
    if str(error["type"]).endswith("too_long"):
        unit = "characters" if str(error["type"]).startswith("string") else "entries"
        return f"at most {error['ctx']['max_length']} {unit}"
    words = str(error["msg"]).removeprefix("Input should be ").removeprefix("Value error, ")
    simple = {"a valid string": "text", "a valid integer": "a whole number", "a valid number": "a number"}
    simple |= {"a valid boolean": "true or false", "a valid list": "a list", "a valid dictionary": "a table"}
    if "instance of" in words:
        return "a table"
    if words.startswith(("less", "greater")):
        return f"a number {words}"
    return simple.get(words, words[:1].lower() + words[1:])


def _wanted(key: Sequence[Any]) -> str:
    return {"files": "a CSV or Parquet file", "target": "the column to predict", "data": "a table [data]"}.get(
        str(key[-1]), "a value"
    )


def _known_keys(key: Sequence[Any]) -> list[str]:
    """Return the keys of the table at ``key``."""
    table: Any = RunSettings
    for part in key:
        fields = table.model_fields if isinstance(table, type) and issubclass(table, BaseModel) else {}
        if isinstance(part, str) and part in fields:
            table = _inner_model(fields[part].annotation)
    return list(table.model_fields)


def _inner_model(annotation: Any) -> Any:
    """Return the table class inside an annotation such as ``list[ModelSettings]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_inner_model(part) for part in get_args(annotation))
    return next((one for one in found if one is not None), None)


def _line(text: str, key: Sequence[Any]) -> str:
    """Return where a key is written, as well as it can be found."""
    names = [str(part) for part in key if isinstance(part, str)]
    if not names:
        return ""
    header, table = ".".join(names[:-1]), ""
    for number, line in enumerate(text.splitlines(), start=1):
        opened, bracket, _ = line.strip().partition("]")
        before, equals, _ = line.partition("=")
        if bracket and opened.startswith("[") and "=" not in opened:
            table = opened.strip("[ \t").replace('"', "")
            if table == ".".join(names):
                return f", line {number}"
        elif equals and table == header and before.strip().strip("\"'") == names[-1]:
            return f", line {number}"
    return ""


def _dotted(key: Sequence[Any]) -> str:
    parts = [f"[{part + 1}]" if isinstance(part, int) else f".{short(part, _SHOWN)}" for part in key]
    return "".join(parts).removeprefix(".")


def _shown(value: Any) -> str:
    return short(repr(value), _SHOWN)
