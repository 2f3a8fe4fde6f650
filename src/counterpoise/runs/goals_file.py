"""A goals file: read as TOML, checked by pydantic, and rewritten for other goals.

Errors say where, what was expected and what was got.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from counterpoise._base.text import did_you_mean, short
from counterpoise.persist.file_access import read_file
from counterpoise.runs.errors import GoalsFileError, listed, twice_in
from counterpoise.runs.methods import DEPLOYED, GOALS, METHODS, Faults, check_method, defers
from counterpoise.runs.places import check_data_file, check_goals_path
from counterpoise.runs.results import CVAR, SPLITS, TRAIN
from counterpoise.runs.settings import DataSettings, MethodSettings, RunSettings, data_files

if TYPE_CHECKING:
    from counterpoise.goals import Goal

_MODEL = re.compile(r"\s*\[\[\s*method\s*\.\s*models\s*\]\]")
_MODELS = re.compile(r"^[ \t]*+(?:method\.)?models\s*=\s*\[", re.MULTILINE)
_ENTRY = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")


def line_of_model(text: str, place: int) -> str:
    r"""Return the line on which an entry of ``method.models`` begins, as messages say it; nothing where it is not seen.

    Examples
    --------
    >>> from counterpoise.runs.goals_file import line_of_model
    >>> line_of_model('[[method.models]]\nname = "tree"\n\n[[method.models]]\nname = "svm"\n', 1)
    ' (line 4)'
    >>> line_of_model('[method]\nmodels = [\n    { name = "tree" },\n    { name = "svm" },\n]\n', 1)
    ' (line 4)'
    """
    headers = [number for number, line in enumerate(text.splitlines(), start=1) if _MODEL.match(line)]
    if not headers:
        begin = _MODELS.search(text)
        starts = [] if begin is None else [one.start() for one in _ENTRY.finditer(text, begin.end())]
        headers = [text.count("\n", 0, start) + 1 for start in starts]
    return f" (line {headers[place]})" if place < len(headers) else ""


_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LONG = 80  # characters of a line with a list
_FILES = {"data": ("files", "baseline_model"), "splits": ("validation_files", "test_files")}  # keys that name files


def as_toml(words: Mapping[str, Any]) -> str:
    """Return plain values as TOML: values first, then tables, then lists of tables; what is None is left out.

    Examples
    --------
    >>> from counterpoise.runs.goals_file import as_toml
    >>> print(as_toml({"alpha": 0.3, "goals": [{"goal": "recall >= 0.9"}]}), end="")
    alpha = 0.3
    <BLANKLINE>
    [[goals]]
    goal = "recall >= 0.9"
    """
    return "\n".join(_lines(words, "")).lstrip("\n") + "\n"


def rewritten(settings: RunSettings, *, sources: Path) -> str:
    """Return a goals file that asks for settings.

    Data files are named by their whole paths, so that the file can be anywhere; the run folder is not named.

    Parameters
    ----------
    settings : RunSettings
    sources : path
        The folder that the settings name data files from.
    """
    words = settings.model_dump(mode="json", exclude_defaults=True, exclude={"output"})
    words["goals"] = [one["goal"] if set(one) == {"goal"} else one for one in words.get("goals", [])]
    tables: list[tuple[dict[str, Any], tuple[str, ...]]]
    tables = [(words.get(table, {}), keys) for table, keys in _FILES.items()]
    tables += [(table, ("files",)) for table in words.get("datasets", {}).values()]
    for table, keys in tables:
        for key in (key for key in keys if key in table):
            names = [table[key]] if isinstance(table[key], str) else table[key]
            paths = [str((sources / name).resolve()) for name in names]
            table[key] = paths[0] if len(paths) == 1 else paths
    return as_toml({name: value for name, value in words.items() if value != []})


def _lines(words: Mapping[str, Any], place: str) -> list[str]:
    lines, later = [], []
    for name, value in words.items():
        key = _key(name)
        if isinstance(value, Mapping):
            later += ["", f"[{place}{key}]", *_lines(value, f"{place}{key}.")]
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            later += [line for one in value for line in ("", f"[[{place}{key}]]", *_lines(one, f"{place}{key}."))]
        elif isinstance(value, list) and len(f"{key} = {in_toml(value)}") > _LONG:
            lines += [f"{key} = [", *(f"    {in_toml(one)}," for one in value), "]"]
        elif value is not None:
            lines.append(f"{key} = {in_toml(value)}")
    return lines + later


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else in_toml(name)


def in_toml(value: Any) -> str:
    """Return a value on one line; basic strings of TOML and of JSON are the same but for one character."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {in_toml(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(in_toml, value)) + "]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)  # of numbers, inf and nan among them, and of dates both languages have the same text


_SHOWN = 60  # characters of a value in a message
_MOST_BYTES = 1 << 20  # of a goals file: room for the names of 50,000 columns


def read_goals_file(path: str | Path) -> RunSettings:
    r"""Read and check a goals file.

    Parameters
    ----------
    path : path
        A TOML file; ``docs/api/goals_file.md`` has all keys.

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
    check_goals_path(path)
    try:
        return read_file(path, _MOST_BYTES)
    except OSError as error:
        raise GoalsFileError(f"{path} cannot be read: {error.strerror}.") from error


def parse_goals_file(content: bytes, path: Path) -> RunSettings:
    """Check the content of a goals file, which errors call ``path``."""
    settings = _settings_of(content, path)
    _refuse(_faults(settings), content, path)
    _refuse(((("method", *key), message) for key, message in check_method(settings.method)), content, path)
    return settings


def check_goals_file(path: Path) -> None:
    """Check all of a goals file that needs no code of models, and that its data files are there."""
    content = read_bytes(path)
    settings = _settings_of(content, path)
    for file in data_files(settings, path.parent):  # before what reads goals is loaded
        check_data_file(file)
    _refuse(_faults(settings), content, path)


def _refuse(faults: Faults, content: bytes, path: Path) -> None:
    for key, message in faults:
        raise GoalsFileError(f"{path}{_line(content.decode(), key)}, {_dotted(key)}: {message}")


def _settings_of(content: bytes, path: Path) -> RunSettings:
    """Return the content of a goals file, each key of which can be read; they need not go together."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise GoalsFileError(f"{path} must be UTF-8 text; byte {error.start} is not.") from error
    try:
        content_values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # the former for a number of thousands of digits too
        raise GoalsFileError(f"{path} must be TOML: {error}.") from error
    try:
        return RunSettings.model_validate(content_values)
    except ValidationError as error:
        raise GoalsFileError(_words(error, text, path)) from error


def goals_of(settings: RunSettings) -> "tuple[Goal, ...]":
    """Return the goals that settings ask for, each with the confidence it carries."""
    from counterpoise.goals import parse_goal  # noqa: PLC0415 - heavy: errors in other keys come first

    read = [(parse_goal(entry.goal), entry.confidence) for entry in settings.goals]
    return tuple(goal if level is None else goal.with_confidence(level) for goal, level in read)


def _faults(settings: RunSettings) -> Faults:
    """Yield what is wrong with keys that depend on each other, or on what methods and goals there are."""
    method = settings.method
    yield from _data_faults(settings)
    try:
        settings.data.written.check()
    except ValueError as error:
        key, _, words = str(error).partition(" ")
        yield ("data", key), f"it {words}"
    yield from _file_faults(settings)
    if method.name not in METHODS:
        return  # as check_method says
    yield from _one_rule_faults(settings)
    if settings.proof and settings.confidence == "none":
        yield ("proof",), 'a proof needs a confidence; got confidence = "none". Set a number such as 0.9.'
    if settings.proof and method.name != GOALS:
        yield ("proof",), f'a proof is of one rule of scores, of the method "goals"; got {method.name!r}. Leave it out.'
    if settings.goals and method.enforce_goals:
        yield from _goal_method_faults(method)
    for name in settings.datasets:
        if name in SPLITS:
            yield ("datasets", name), f"a dataset must not be called {name!r}: those are rows of data."
    for number, entry in enumerate(settings.goals):
        yield from _goal_faults(entry.goal, {TRAIN, *settings.datasets}, ("goals", number), defers=defers(method))


def _one_rule_faults(settings: RunSettings) -> Faults:
    """Yield that one rule cannot lower a tail; errors in an objective come with the parameters."""
    parameters = settings.method.parameters
    is_tail = settings.alpha < 1 and parameters.get("objective", CVAR) == CVAR
    if settings.method.name == GOALS and is_tail and parameters.get("decision", "fixed") == "fixed":
        message = (
            "one rule decides, which is right or wrong about each row: the loss of its tail follows from its error "
            'alone. Set decision = "sticky" in [method.parameters], which mixes rules, or alpha = 1.0 for the least '
            f"error; got {settings.alpha:g}."
        )
        yield ("alpha",), message


def _goal_method_faults(method: MethodSettings) -> Faults:
    if METHODS[method.name].does == "plain":
        others = 'Use "goals", with it among method.models, or set enforce_goals = false to audit it only.'
        yield ("method", "name"), f"{method.name} cannot be fitted inside goals. {others}"
    mixture = method.parameters.get("mixture", "optimal")
    if mixture != "optimal":
        yield ("method", "parameters", "mixture"), f"goals need 'optimal', which can meet them; got {mixture!r}."


def _data_faults(settings: RunSettings) -> Faults:
    data = settings.data
    if data.baseline is not None and data.baseline_model is not None:
        yield ("data", "baseline_model"), "expected baseline or baseline_model; got both."
    limits: list[tuple[tuple[str, ...], float | None]] = [(("data",), data.largest_weight)]
    limits += [(("datasets", name), one.largest_weight) for name, one in settings.datasets.items()]
    for table, limit in limits:
        if limit is not None and data.weights is None:
            message = "expected data.weights too, the column whose weights it limits; got a limit alone."
            yield (*table, "largest_weight"), message
    yield from _column_faults(data, settings.splits.column)
    for number, model in enumerate(settings.method.models):
        if model.name == DEPLOYED and data.baseline_model is None:
            message = f"{DEPLOYED!r} is the model in the file that data.baseline_model names; it names none."
            yield ("method", "models", number), message


def _column_faults(data: DataSettings, split: str | None) -> Faults:
    for place, name in ((("splits", "column"), split), (("data", "ids"), data.ids)):
        if name in (data.target, *(data.columns or ())):
            yield place, f"expected a column that is no feature and not the target; got {name!r}."
    for key in ("columns", "groups", "drop", "categorical", "amounts"):
        names = getattr(data, key) or []
        if data.target in names:
            yield ("data", key), f"expected columns beside the target; got the target {data.target!r}."
        twice = twice_in(names)
        if twice is not None:
            yield ("data", key), f"expected each column once; got {twice!r} twice."


def _file_faults(settings: RunSettings) -> Faults:
    lists: dict[tuple[str, ...], list[str]] = {("data", "files"): settings.data.files}
    lists |= {("splits", key): getattr(settings.splits, key) or [] for key in ("validation_files", "test_files")}
    lists |= {("datasets", name, "files"): one.files for name, one in settings.datasets.items()}
    for key, files in lists.items():
        twice = twice_in(files)
        if twice is not None:
            yield key, f"expected each file once; got {twice!r} twice."
    splits = settings.splits
    for name in ("validation", "test"):
        if getattr(splits, name) is not None and getattr(splits, f"{name}_files") is not None:
            yield ("splits", name), f"expected a fraction or {name}_files; got both."
    total = (splits.validation or 0) + (splits.test or 0)
    if total >= 1:
        yield ("splits",), f"validation and test must leave rows to train on; together they are {total:g}."


def _goal_faults(text: str, known: Iterable[str], key: Sequence[Any], *, defers: bool) -> Faults:
    from counterpoise.goals import validate_goals  # noqa: PLC0415 - as above

    try:
        (goal,) = validate_goals(text, trains=True, defers=defers)
    except (TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]  # what follows points into the text
        yield key, f"expected a goal such as recall >= 0.9; got {_quote(text)}. {reason}"
        return
    if set(goal.counted_datasets) - set(goal.datasets):
        message = (
            f"the rows of a goals file are split, and the goal {short(goal, _SHOWN)} compares them with twins, which "
            "are not split with them. Fit a GoalClassifier in Python, and pass the twins as datasets."
        )
        yield key, message
    for name in goal.datasets:
        if name not in known:
            hint, names = did_you_mean(name, known), listed(sorted(known))
            yield key, f"unknown dataset {_quote(name)} in the goal {short(goal, _SHOWN)}.{hint} Known: {names}."


def _words(error: ValidationError, text: str, path: Path) -> str:
    """Return the first error of pydantic in our words; errors on keys that do not exist come first."""
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    branches = ("str", "int", "float", "bool")  # members of a union, which users never wrote; others have a bracket
    key = tuple(part for part in first["loc"] if not (isinstance(part, str) and (part in branches or "[" in part)))
    where = f"{path}{_line(text, key)}"
    if first["type"] == "extra_forbidden":
        known = _known_keys(key[:-1])
        table = f"the table {_dotted(key[:-1])}" if len(key) > 1 else "a goals file"
        hint = did_you_mean(str(key[-1]), known)
        return f"{where}: unknown key {_quote(key[-1])} in {table}.{hint} Known: {', '.join(known)}."
    if first["type"] == "missing":
        wanted = {"files": "a CSV or Parquet file", "target": "the column to predict", "data": "a table [data]"}
        return f"{where}: {_dotted(key)} is missing; expected {wanted.get(str(key[-1]), 'a value')}."
    kinds = {one["type"] for one in error.errors() if one["loc"][: len(key)] == first["loc"][: len(key)]}
    is_number = kinds == {"int_type", "float_type"}
    expected = "a number" if is_number else str(first["msg"]).removeprefix("Input should be ")
    return f"{where}, {_dotted(key)}: expected {expected[:1].lower()}{expected[1:]}; got {_quote(first['input'])}."


def _known_keys(key: Sequence[Any]) -> list[str]:
    """Return the keys of the table at ``key``."""
    table: type[BaseModel] = RunSettings
    is_name = False  # whether the next part is the name of a dataset, and no key of ours
    for part in key:
        if isinstance(part, str) and part in table.model_fields and not is_name:
            annotation = table.model_fields[part].annotation
            table = _inner_model(annotation) or table
            is_name = get_origin(annotation) is dict
        else:
            is_name = False
    return list(table.model_fields)


def _inner_model(annotation: Any) -> Any:
    """Return the table class inside an annotation such as ``list[ModelSettings]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = (_inner_model(part) for part in get_args(annotation))
    return next((one for one in models if one is not None), None)


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


def _quote(value: Any) -> str:
    return short(repr(value), _SHOWN)
