"""A validation file of a run that stands on its own: readable and checkable without this package, and without data.

    README.md, index.html, file.pdf    the same text: model, goals, data in numbers, audit, alternatives, what was tried
    report.html, alternatives.html     the pages of the run and of the search for alternatives
    result.json, audit.json, alternatives.json, alternatives.csv, tried.json, environment.json    every number
    goals.toml                         the goals file as it was read
    SHA256SUMS, verify.py              checksums of all other files, and ten lines that check them

Everything in it is computed from the run folder and the data files. No row of data is inside: decisions explained are
left out, and so are groups and segments of few rows. A value that few rows have is replaced wherever it would stand.
"""

import hashlib
import json
import math
import re
import secrets
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.text import plain_values
from counterpoise.classifiers.alternatives import Alternatives
from counterpoise.persist.file_access import read_file, step, write_atomically
from counterpoise.persist.locks import FolderInUse, FolderLock
from counterpoise.report.alternatives import alternatives_document, near_table
from counterpoise.report.alternatives import headline as alternatives_headline
from counterpoise.report.contents import render
from counterpoise.report.document import Document, Section, plain_line
from counterpoise.report.sections import PageTable
from counterpoise.report.wording import count, many, number, percent
from counterpoise.runs.alternatives import alternatives_run
from counterpoise.runs.data import Data
from counterpoise.runs.errors import RunFolderError
from counterpoise.runs.folder import Run, read_json
from counterpoise.runs.goals_file import read_bytes
from counterpoise.runs.places import ENVIRONMENT, GOALS, LOG, RESULT
from counterpoise.runs.result import RunResult
from counterpoise.runs.results import FIRST, MIXTURE
from counterpoise.runs.use import own_data

VERIFY = """\
import hashlib
import pathlib
import sys
folder, bad = pathlib.Path(__file__).parent, []
for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
    known, name = line.split("  ", 1)
    path = folder / name
    bad += [] if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == known else [name]
print("changed or missing: " + ", ".join(bad) if bad else "all files are as they were written")
sys.exit(bool(bad))
"""
SUMS, VERIFIER, README, PAGE, PDF = "SHA256SUMS", "verify.py", "README.md", "index.html", "file.pdf"
HIDDEN = "[value of few rows]"
FEW = 10  # rows: values, groups and segments of fewer are not shown
_SHORT = 3  # letters: shorter texts are too common to be told from others
_DIGITS = 3  # significant ones: numbers with fewer are too common, as 0.5 and 100
_MOST_VALUES = 100_000  # rare texts that are looked for
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
_MOST_LOG = 1 << 26  # bytes
_PATIENCE = 120  # seconds for a browser
_PART, _WHOLE = ".part", "whole"  # ending of a folder that is not done, and the folder in it that gets the name
_EVENT = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) (.*)$")
_TRIED = ("starts", "resumes", "stopped", "fitted", "mixture of", "done")  # beginnings of events that are shown


class Pack(NamedTuple):
    """The folder that was written, its files, and why some are missing."""

    folder: Path
    files: tuple[str, ...]
    missing: dict[str, str]


class _Contents(NamedTuple):
    """What a pack is made of."""

    result: RunResult
    goals: bytes
    tried: list[dict[str, str]]
    environment: dict[str, Any]
    found: Alternatives | None
    missing: dict[str, str]


def write_pack(run: Run, output: str | Path, *, disparity: str | None = None, within: float = 0.01) -> Pack:
    """Write the validation file of a run into a new folder.

    Parameters
    ----------
    run : Run
        Its data files must be where they were: the search for alternatives and the check that no value of few rows is
        shown read them.
    output : path
        A folder that does not exist yet, or is empty. It appears whole or not at all.
    disparity, within
        As for ``alternatives_run``.

    Returns
    -------
    Pack

    Raises
    ------
    RunFolderError
        If the folder holds something, or cannot be written.
    """
    folder = Path(output)
    _check_new(folder)
    data, missing, goals = own_data(run), dict[str, str](), read_bytes(run.folder / GOALS)
    found = _search(run, disparity, within, missing)
    values = RareValues.of(data, goals.decode("utf-8", errors="replace"))
    contents = _Contents(
        _without_rows(run.result(), values),
        goals,
        values.only_texts().hide(_events(run.folder / LOG)),  # its numbers are counts and bounds
        read_json(run.folder / ENVIRONMENT),
        found,
        values.only_texts().hide(missing),
    )
    files = _files(contents, run)
    _write_folder(folder, files)
    return Pack(folder, tuple(files), contents.missing)


def _check_new(folder: Path) -> None:
    """Refuse a folder that holds something, before any work is done for it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunFolderError(f"{folder} must be a new or empty folder; it is there and holds something. Name another.")
    if not folder.absolute().parent.is_dir():
        raise RunFolderError(f"There is no folder {folder.parent} for {folder.name}. Make it first, or name another.")


def _search(run: Run, disparity: str | None, within: float, missing: dict[str, str]) -> Alternatives | None:
    """Return the alternatives; where there are none, note why."""
    if disparity is None and not run.settings.data.groups:
        missing["alternatives"] = "The run names no groups (data.groups), so there is no disparity to search for."
        return None
    try:
        return alternatives_run(run, disparity=disparity, within=within)
    except (ValueError, TypeError) as error:
        missing["alternatives"] = f"No alternatives were searched: {error}"
        return None


class RareValues(NamedTuple):
    """Texts and numbers that few rows have, and that no output may show."""

    texts: tuple[str, ...]
    numbers: frozenset[str]

    @classmethod
    def of(cls, data: Data, known: str) -> "RareValues":
        """Return the rare values of the columns of a run; those that the goals file names are known anyway."""
        texts, numbers = set[str](), set[str]()
        for name, values in _columns(data):
            distinct, counts = np.unique(np.array([str(one) for one in values]), return_counts=True)
            rare = {one for one in distinct[counts < FEW].tolist() if one not in known and one != name}
            are_numbers = {one for one in rare if _NUMBER.fullmatch(one)}
            texts |= {one for one in rare - are_numbers if len(one) >= _SHORT}
            numbers |= {_plain(one) for one in are_numbers if len(_plain(one).strip("-0.").replace(".", "")) >= _DIGITS}
        return cls(tuple(sorted(texts, key=len, reverse=True)[:_MOST_VALUES]), frozenset(numbers))

    def only_texts(self) -> "RareValues":
        """Return the texts alone, for words whose numbers were computed."""
        return self._replace(numbers=frozenset())

    def hide(self, value: Any) -> Any:
        """Return words with what is rare replaced."""
        if isinstance(value, Mapping):
            return {self.hide(key): self.hide(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide(entry) for entry in value]
        if not isinstance(value, str):
            return value
        for text in self.texts:
            if text in value:
                value = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", HIDDEN, value)
        return _NUMBER.sub(lambda match: HIDDEN if _plain(match[0]) in self.numbers else match[0], value)


def _plain(text: str) -> str:
    """Return a number as it is looked up: 12.50 and 12.5 are one."""
    return f"{float(text):.12g}"


def _columns(data: Data) -> Iterator[tuple[str, Any]]:
    """Yield the columns of all rows that a run reads: features, groups, amounts and persons."""
    parts = [*data.splits.values(), *data.extra.values()]
    for part in parts:
        for name in part.X.columns:
            yield str(name), part.X[name].dropna().tolist()
        for columns in (part.groups, part.amounts):
            for name, values in columns.items():
                yield name, list(values)
        if part.ids is not None:
            yield "ids", list(part.ids)


def _without_rows(result: RunResult, values: RareValues) -> RunResult:
    """Return a result without explained decisions, and without groups and segments of few rows."""
    groups = [one for one in result.groups if not one.n_samples < FEW]
    segments = [one for one in result.segments if not one.rows < FEW]
    panels = [one for one in result.scores.panels if sum(one.positive) + sum(one.negative) >= FEW]
    scores = result.scores.model_copy(update={"panels": panels})
    update = {"examples": [], "groups": groups, "segments": segments, "scores": scores}
    kept = result.model_copy(update=update).model_dump(mode="json")
    hidden = values.hide({name: kept.pop(name) for name in ("groups", "segments", "warnings")})
    computed = values.only_texts().hide({name: kept.pop(name) for name in ("advice", "scores", "rules")})
    return RunResult.model_validate({**kept, **hidden, **computed})


def _events(path: Path) -> list[dict[str, str]]:
    """Return what was tried in a run folder: fits begun, stopped and done, with why goals could not be met."""
    events: list[dict[str, str]] = []
    content = read_file(path, _MOST_LOG) if path.is_file() else b""
    for line in content.decode(errors="replace").splitlines():
        match = _EVENT.match(line)
        if match:
            events.append({"time": match[1], "event": match[2]})
        elif events:
            events[-1]["event"] += f" {line.strip()}"
    return [one for one in events if one["event"].startswith(_TRIED)]


def _files(contents: _Contents, run: Run) -> dict[str, bytes]:
    """Return the content of each file by its name."""
    result, found = contents.result, contents.found
    words: dict[str, Any] = {
        RESULT: result.model_dump(mode="json"),
        "audit.json": {"split": result.judged, "goals": [_audit_words(one, result) for one in result.goals]},
        "tried.json": contents.tried,
        ENVIRONMENT: contents.environment,
    }
    files = {GOALS: contents.goals, "report.html": _encoded(render(result)), VERIFIER: VERIFY.encode()}
    if found is not None:
        words["alternatives.json"] = plain_values(found.as_dict())
        files["alternatives.csv"] = found.as_csv().encode()
        files["alternatives.html"] = _encoded(alternatives_document(found).html())
    files |= {name: _encoded(json.dumps(one, indent=1, ensure_ascii=False) + "\n") for name, one in words.items()}
    page = _encoded(_document(contents, run, [*files, README, PAGE, PDF]).html())
    pdf = _as_pdf(page)
    if pdf is None:
        contents.missing["pdf"] = "There is no PDF: Chromium was not found, or could not print. index.html is the same."
        page = _encoded(_document(contents, run, [*files, README, PAGE]).html())
    else:
        files[PDF] = pdf
    files |= {PAGE: page, README: _encoded(_model_card(_document(contents, run, [*files, README, PAGE])))}
    sums = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    return {**files, SUMS: sums.encode()}


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")


def _audit_words(goal: Any, result: RunResult) -> dict[str, Any]:
    standing = goal.on(result.judged).model_dump(mode="json")
    return {"goal": goal.text, "confidence": goal.confidence, **standing}


def _document(contents: _Contents, run: Run, names: Iterable[str]) -> Document:
    """Return the text of the file."""
    result, missing = contents.result, contents.missing
    sections = [
        *_model_sections(result),
        _goal_section(contents),
        _data_section(result),
        _alternative_section(contents),
        _tried_section(contents),
        *([Section("Warnings", result.warnings)] if result.warnings else []),
        _again_section(contents, run),
        Section(
            "What is in this folder",
            [
                "Each file has a checksum in SHA256SUMS. To check all of them: python verify.py.",
                *missing.values(),
                f"No row of data is inside. Values, groups and segments of fewer than {FEW} rows are left out.",
            ],
            [PageTable("Files", ["file", "content"], [[name, _ABOUT[name]] for name in sorted(names)])],
        ),
    ]
    held = [goal.on(result.judged).verdict for goal in result.goals]
    kinds = [f"{held.count(word)} {word}" for word in dict.fromkeys(held)]
    goals = (
        f"{many(len(held), 'goal')} on the {result.judged} rows: {', '.join(kinds)}." if held else "No goals were set."
    )
    lead = [goals, f"Made by counterpoise {result.versions.get('counterpoise', '')} from a run."]
    return Document(f"Validation file: {result.data.name or 'a classifier'}", lead, sections)


_ABOUT = {
    README: "this text, as a model card",
    PAGE: "this text, as a page",
    PDF: "this text, as PDF",
    "report.html": "the report of the run: goals, groups, the tail, the price of goals",
    "alternatives.html": "the report of the search for less discriminatory alternatives",
    RESULT: "every number of the run",
    "audit.json": "every goal on the rows that count",
    "alternatives.json": "every alternative",
    "alternatives.csv": "the same as a table",
    "tried.json": "fits begun, stopped and done, with goals that could not be met",
    ENVIRONMENT: "versions, platform and time",
    GOALS: "the goals file as it was read",
    VERIFIER: "checks the checksums",
}


def _model_sections(result: RunResult) -> Iterator[Section]:
    """Yield what decides, and how well."""
    rows = [[one.title, one.description, percent(one.share), percent(one.error)] for one in result.rules]
    rules = (
        [PageTable("Rules that decide", ["rule", "what it does", "share", "error"], rows, wide=(1,))] if rows else []
    )
    text = [result.method]
    if math.isfinite(result.confidence):
        text.append(f"Goals hold together on new rows with confidence {result.confidence:g}, about.")
    yield Section("The model", text, rules)
    splits = []
    for name, split in result.splits.items():
        errors = [percent(split.losses[who].error) if who in split.losses else "-" for who in result.deciders()]
        splits.append([name, count(split.rows), *errors])
    names = {FIRST: "plain training", MIXTURE: "this model"}
    heads = ["rows of", "number", *(names.get(who, who) for who in result.deciders())]
    yield Section("Errors", [], [PageTable("Share of rows decided wrongly", heads, splits)])


def _goal_section(contents: _Contents) -> Section:
    result = contents.result
    origin = result.checksums.get("origin")
    source = f"They are from goals.toml (SHA-256 {hashlib.sha256(contents.goals).hexdigest()})."
    text = [source, *([f"The models are those of the run with the fingerprint {origin}."] if origin else [])]
    rows = []
    for goal in result.goals:
        one = goal.on(result.judged)
        interval = f"{number(one.low)} to {number(one.high)}"
        rows.append([goal.text, number(one.bound), number(one.estimate), interval, one.verdict or "-", count(one.rows)])
    heads = ["goal", "bound", "estimate", "interval", "verdict", "rows"]
    if rows:
        text.append(
            f"Audited on the {result.judged} rows. A verdict is about the population, with the confidence of the goal: "
            f"{', '.join(dict.fromkeys(f'{goal.confidence:g}' for goal in result.goals))}. Bounds were set by the user."
        )
    table = [PageTable("Goals", heads, rows)] if rows else []
    return Section("Goals, and where they came from", text if rows else [*text, "It sets no goals."], table)


def _data_section(result: RunResult) -> Section:
    rows = [
        [name, count(split.rows), *(percent(share) for share in split.classes.values())]
        for name, split in result.splits.items()
    ]
    first = next(iter(result.splits.values()))
    heads = ["rows of", "number", *(f"class {label}" for label in first.classes)]
    groups = [[one.text, count(one.n_samples)] for one in result.groups]
    tables = [PageTable("Rows and classes", heads, rows)]
    tables += [PageTable(f"Groups of the {result.judged} rows", ["group", "rows"], groups)] if groups else []
    columns = [f"{kind}: {', '.join(names)}." for kind, names in result.data.columns.items() if names]
    return Section("Data", [*result.data.lines, *columns], tables)


def _alternative_section(contents: _Contents) -> Section:
    found = contents.found
    if found is None:
        return Section("Less discriminatory alternatives", [contents.missing["alternatives"]])
    text = [alternatives_headline(found), found.certificate, *found.notes]
    return Section("Less discriminatory alternatives", text, [near_table(found)])


def _tried_section(contents: _Contents) -> Section:
    result, found = contents.result, contents.found
    text = [*result.advice]
    if found is not None and found.infeasible:
        bounds = ", ".join(number(one) for one in found.infeasible)
        text.append(f"Bounds on {found.disparity} that no single rule meets beside the other goals: {bounds}.")
    rows = [[one["time"], one["event"]] for one in contents.tried]
    tables = [PageTable("From the log of the run folder", ["time", "event"], rows, wide=(1,))] if rows else []
    return Section("What was tried", text if rows or text else ["Nothing was recorded."], tables)


def _again_section(contents: _Contents, run: Run) -> Section:
    result = contents.result
    checks = [[name, digest] for name, digest in result.checksums.items()]
    versions = [[name, text] for name, text in contents.environment.items()]
    tables = [PageTable("SHA-256 of the data files, and the run's fingerprint", ["of", "checksum"], checks, wide=(1,))]
    tables.append(PageTable("Versions", ["package", "version"], versions))
    text = [f"Put goals.toml beside the data files and run these commands. The seed is {run.settings.seed}."]
    commands = [shlex.split(one) for one in result.commands]
    if commands and "fit" in commands[0]:  # of a goals file that had a name of its own, and is called goals.toml here
        first = commands[0][: commands[0].index("fit")]
        commands[0] = [*first, "fit", GOALS, "--output", run.folder.name]
    return Section("How to reproduce", text, tables, code="\n".join(map(shlex.join, commands)))


def _model_card(document: Document) -> str:
    """Return the document as a model card: that of skops where it is installed, else the same Markdown."""
    try:
        from skops.card import Card  # noqa: PLC0415 - optional
    except ImportError:
        return document.markdown()
    card = Card(None, template=None)
    for title, body in {
        plain_line(document.title): "\n\n".join(map(plain_line, document.lead)),
        **document.parts(),
    }.items():
        card.add(**{title.replace("/", " "): body}, folded=False)
    return str(card.render())


def _as_pdf(page: bytes) -> bytes | None:
    """Return the page as PDF by a browser without a window; None where there is none, or it fails."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        return None
    with tempfile.TemporaryDirectory() as place:
        source, target = Path(place) / PAGE, Path(place) / PDF
        source.write_bytes(page)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        options += [
            "--disable-component-update",
            "--disable-sync",
            "--disable-quic",
            f"--user-data-dir={place}/profile",
        ]
        options += ["--no-pdf-header-footer", f"--print-to-pdf={target}", source.as_uri()]
        try:
            subprocess.run([browser, *options], check=True, capture_output=True, timeout=_PATIENCE)
            return target.read_bytes()
        except (OSError, subprocess.SubprocessError):
            return None


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder beside its place, and rename it: nobody sees a part of it.

    Who writes there holds a lock, by which the next one knows what a killed process left.
    """
    folder = folder.absolute()
    part = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}{_PART}")
    for left in folder.parent.glob(f".{folder.name}.*{_PART}"):
        with suppress(FolderInUse, OSError):
            with FolderLock(left):
                pass
            shutil.rmtree(left, ignore_errors=True)
    try:
        with FolderLock(part):
            for name, content in files.items():
                write_atomically(part / _WHOLE / name, [content])
            step("rename", folder)
            (part / _WHOLE).rename(folder)  # also onto an empty folder
    except OSError as error:
        raise RunFolderError(f"{folder} cannot be written: {error.strerror or error}. Nothing was left.") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
