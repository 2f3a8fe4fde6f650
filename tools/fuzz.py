"""Damaged and random files and texts for everything that reads what a stranger may have written.

Usage: python tools/fuzz.py [--seconds 600] [--seed 0] [--only model]

Each reader gets valid inputs of its own with some bytes or some words replaced, cut, doubled or joined with another,
and sometimes nothing but noise. Checksums of model files are made right again, so that the parts behind them are read.
What must hold: an input is read, or refused by a ``ValueError``, ``TypeError`` or ``OSError`` whose text is a sentence
of ours, within a second of processor time and a few hundred megabytes. Anything else ends the run with the number of
the input, which ``--only READER --first NUMBER --inputs 1`` with the same seed gives again.
"""

import argparse
import contextlib
import copy
import hashlib
import io
import json
import logging
import re
import resource
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterpoise as cp
from counterpoise import persist
from counterpoise.datasets import loans
from counterpoise.explorer import session_of_model
from counterpoise.explorer.conversation import UNFORESEEN, Conversation
from counterpoise.goals import parse_goal
from counterpoise.learners import HistogramTree
from counterpoise.report.contents import render, render_monitoring
from counterpoise.runs import fit_run, monitor_run, open_run
from counterpoise.runs.errors import RunFolderError
from counterpoise.runs.goals_file import parse_goals_file
from counterpoise.runs.result import read_result
from counterpoise.runs.rule_file import read_rules
from counterpoise.runs.summary import summary_text

MOST_SECONDS, MOST_GROWTH = 1.0, 400  # of processor time for one input; megabytes by which the process may grow
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|\w+|[<>=]=|[^\w\s]')
ODD = [
    *(
        "",
        "0",
        "-1",
        "2",
        "0.5",
        "1e308",
        "1e-320",
        "1e999",
        "NaN",
        "-Infinity",
        "nan",
        "inf",
        "9" * 5000,
        "true",
        "null",
    ),
    *("[]", "{}", "[[", "{}}", '""', '"\\ud800"', '"\\u0000"', '"<script>"', '"../../x"', "[" * 20_000, "(" * 20_000),
    *(
        '"' + "x" * 10_000 + '"',
        "(",
        ")",
        "<=",
        ">=",
        "/",
        "*",
        "-",
        ",",
        "=",
        ":",
        "\x00",
        "\ud800",
        "é",
        "\U0001d7dc",
        "\n",
        "#",
    ),
]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2.5, 1e308, 1e-320, 10**400, float("nan"), float("inf"), "", "x", "\ud800", "\x00"),
    *(
        [],
        {},
        [[]],
        [1, "a"],
        {"a": 1},
        "recall >= 0.5",
        1000 * "x",
        [None],
        [float("nan")],
        [[1.0], [2.0, 3.0]],
        2**53,
    ),
]
GOALS = [
    "recall >= 0.8",
    "max_difference(positive_rate, by=sex, within=job, min_rows=5) <= 0.05",
    "positive_rate(test, sex='F', age <= 33) >= 0.8 * positive_rate(test, sex='M') - 2 / 3",
    'cost({yes->no: 20, 1->2: -1e3}, group="a") <= 0.5',
    "every_group(precision, by=sex) >= 1e-3",
    "0.1 <= churn",
]
GOALS_FILE = """\
goals = ["recall >= 0.3", { goal = "positive_rate(sex=F) <= 0.9", confidence = 0.9 }]
seed = 1
[data]
files = ["loans.csv"]
target = "default"
positive = "yes"
groups = ["sex"]
[splits]
test = 0.25
[method]
models = [{ name = "logistic" }]
[method.parameters]
cv = 2
by = { names = ["sex"], unknown = "pool" }
"""
OTHER_GOALS_FILE = """\
goals = ["recall(value=amount) >= 0.3", "positive_rate(other, sex=F) <= 0.9"]
alpha = 0.1
confidence = "none"
[data]
files = ["loans.csv", "more.csv"]
target = "default"
amounts = ["amount"]
weights = "weight"
largest_weight = 9.5
largest_value = { amount = 1e6 }
delimiter = ";"
baseline = "deployed"
[splits]
validation = 0.2
[datasets.other]
files = ["other.csv"]
[method]
name = "goals"
[[method.models]]
name = "gradient_boosting"
parameters = { max_depth = 3 }
[method.parameters]
objective = "0.5 * Mean() + 0.5 * CVaR(0.1)"
decision = "sticky"
deferral = { cost = 0.2 }
"""
RULES = {
    "format": "counterpoise rules 2",
    "positive": "yes",
    "negative": "no",
    "deferred": "ask",
    "by": ["sex"],
    "key": "0123456789abcdef",
    "rules": [
        {"share": 0.5, "from": 16 * "0", "score": "score"}
        | {"thresholds": {"F": 0.4, "M": 0.5}, "lower": {"F": 0.1, "M": 0.5}},
        {"share": 0.5, "from": "8" + 15 * "0", "score": "score"}
        | {"thresholds": {"F": 1, "M": 0}, "lower": {"F": 0, "M": 0}},
    ],
}  # fmt: skip
SETTING = {"alpha": 0.6, "budget": None, "goals": [{"text": "recall >= 0.6", "bound": 0.5, "on": True}], "by": ["sex"]}
MESSAGES = [
    {"type": "set", "seq": 1, "setting": SETTING, "exact": False, "margins": [0.1]},
    {"type": "conflict", "seq": 2, "setting": SETTING | {"defer": 0.2}},
    {"type": "view", "seq": 3, "view": "curve", "setting": SETTING},
    {"type": "read", "seq": 4, "text": "recall(sex=F) >= 0.9", "setting": SETTING},
    {"type": "export", "seq": 5, "what": "goals", "setting": SETTING},
]


class Reader(NamedTuple):
    """What reads inputs, and inputs that it takes."""

    read: Callable[[bytes], Any]
    valid: list[bytes]
    change: Callable[[np.random.Generator, list[bytes]], bytes]
    most_seconds: float = MOST_SECONDS


def pick(rng: np.random.Generator, items: Any) -> Any:
    """Return one of some items."""
    return items[int(rng.integers(len(items)))]


def with_other_bytes(rng: np.random.Generator, valid: list[bytes]) -> bytes:
    """Return a valid input that is cut, or has bytes changed, removed, doubled or put in."""
    data = pick(rng, valid)
    for _ in range(min(int(rng.geometric(0.6)), 4)):
        start, end = sorted(rng.integers(len(data) + 1, size=2).tolist())
        end = min(end, start + int(rng.integers(1, 40)))
        other = pick(rng, valid)
        put = pick(rng, [b"", rng.bytes(end - start), 2 * data[start:end], other[start:end], bytes(8), b"\xff" * 8])
        data = data[:start] if rng.random() < 0.1 else data[:start] + put + data[end:]
    return data


def with_other_words(rng: np.random.Generator, valid: list[bytes]) -> bytes:
    """Return a valid text in which some words and signs are others."""
    text = pick(rng, valid).decode(errors="surrogateescape")
    for _ in range(min(int(rng.geometric(0.7)), 4)):
        places = list(TOKEN.finditer(text))
        if not places:
            break
        own, other = pick(rng, places), pick(rng, places).group()
        put = pick(rng, [pick(rng, ODD), pick(rng, ODD), other, f"{own.group()}{other}"])
        text = text[: own.start()] + put + text[own.end() :]
    return text.encode(errors="surrogatepass")


def with_other_values(rng: np.random.Generator, valid: list[bytes]) -> bytes:
    """Return a JSON text in which some values are others, doubled or gone."""
    words = json.loads(pick(rng, valid))
    for _ in range(min(int(rng.geometric(0.6)), 4)):
        places: list[tuple[Any, Any]] = []
        inside = [words]
        while inside:
            one = inside.pop()
            keys = list(one) if isinstance(one, dict) else range(min(len(one), 5))
            places += [(one, key) for key in keys]
            inside += [one[key] for key in keys if isinstance(one[key], (dict, list))]
        if not places:
            break
        holder, key = pick(rng, places)
        other, other_key = pick(rng, places)
        change = rng.integers(5)
        if change == 0:
            del holder[key]
        elif change == 1 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif change == 2:
            holder[key] = copy.deepcopy(other[other_key])
        else:
            holder[key] = copy.deepcopy(pick(rng, VALUES))
    return json.dumps(words).encode()


def changed_json(rng: np.random.Generator, valid: list[bytes]) -> bytes:
    """Return a JSON text with other values, or as any other text is changed."""
    return (with_other_values if rng.random() < 0.7 else changed_text)(rng, valid)


def changed_text(rng: np.random.Generator, valid: list[bytes]) -> bytes:
    """Return a text with other words, with other bytes, or of nothing but noise."""
    chance = rng.random()
    if chance < 0.02:
        return rng.bytes(int(rng.integers(200)))
    return (with_other_words if chance < 0.7 else with_other_bytes)(rng, valid)


def changed_state(rng: np.random.Generator, valid: list[bytes]) -> bytes:
    """Return a changed file of a monitor, most of them under a checksum that is right."""
    data = changed_json(rng, valid)
    if rng.random() < 0.1:
        return data
    try:
        words = json.loads(data)
        inner = json.dumps([words["lines"], words["state"]]).encode()
        return json.dumps({**words, "sha256": hashlib.sha256(inner).hexdigest()}).encode()
    except (ValueError, LookupError, TypeError, RecursionError):
        return data


def changed_model(rng: np.random.Generator, valid: list[bytes]) -> bytes:
    """Return a model file with other bytes, or with another manifest or array under checksums that are right."""
    if rng.random() < 0.3:
        body = with_other_bytes(rng, valid)[:-64]
        return body + (hashlib.sha256(body).hexdigest().encode() if rng.random() < 0.7 else b"0" * 64)
    with zipfile.ZipFile(io.BytesIO(pick(rng, valid))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = members.pop("manifest.json")
    if members and rng.random() < 0.3:
        name = pick(rng, sorted(members))
        known = hashlib.sha256(members[name]).hexdigest().encode()
        members[name] = with_other_bytes(rng, [members[name]])
        manifest = manifest.replace(known, hashlib.sha256(members[name]).hexdigest().encode())
    else:
        manifest = changed_json(rng, [manifest])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in {"manifest.json": manifest, **members}.items():
            archive.writestr(name, content)
        archive.comment = b"0" * 64
    body = stream.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def changed_checkpoint(rng: np.random.Generator, valid: list[bytes]) -> bytes:
    """Return another manifest, or another round, of a checkpoint that has one round."""
    data = pick(rng, valid)
    return changed_json(rng, [data]) if data.startswith(b"{") else changed_model(rng, [data])


def continue_fit(booster: Any, X: Any, y: Any, place: Path) -> Reader:
    """Return what continues a fit from a checkpoint whose manifest or round is another, under right fingerprints."""
    folder = place / "checkpoint"
    booster.set_params(checkpoint=folder).fit(X, y)
    first = folder / "round-00001.cp"
    manifest, payload = (folder / "manifest.json").read_bytes(), first.read_bytes().partition(b"\n")[2]

    def read(data: bytes) -> None:
        is_round = data.startswith(b"PK")
        words, kept = manifest if is_round else data, data if is_round else payload
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            own = json.loads(words)
            mark = own.pop("fingerprint", None) if isinstance(own, dict) else None
            if isinstance(mark, str):
                mark = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()
                words = json.dumps({**own, "fingerprint": mark}).encode()
                head = f"counterpoise-round {mark} {first.name} {hashlib.sha256(kept).hexdigest()}\n"
                first.write_bytes(head.encode() + kept)
        (folder / "manifest.json").write_bytes(words)
        for later in folder.glob("round-0000[2-9].cp"):
            later.unlink()
        booster.fit(X, y)

    return Reader(read, [manifest, payload], changed_checkpoint)


def read_model(data: bytes) -> None:
    """Load a model, and ask it where it is one."""
    model = persist.loads(data)
    with contextlib.suppress(Exception):  # a changed model may be of no use, and say so in Python's words
        model.predict(np.zeros((3, 2)))


def from_file(path: Path, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    """Return what writes bytes to a file and reads it."""

    def read_bytes(data: bytes) -> Any:
        path.write_bytes(data)
        return read(path)

    return read_bytes


def restore_monitor(data: bytes) -> None:
    """Restore a monitor, look at it, and count three rows."""
    try:
        state = json.loads(data)
    except (ValueError, RecursionError) as error:  # of the test, not of the library
        raise ValueError("This is no JSON, so that no monitor was asked.") from error
    monitor = cp.Monitor.restore(state)
    str(monitor.verdicts)
    ids, more = ["a", "b", "95"], {}
    if monitor.largest_weight is not None:
        more = {"sample_weight": [1.0, 0.5, 2.0], "baseline": [0, 1, 1]}
    features = {"sex": ["F", "M", "F"], "amount": [1.0, 2.0, 3.0]}
    monitor.update([0, 1, 1], [0, 1, None], sensitive_features=features, ids=ids, **more)
    monitor.update(None, [1, 0, 1], ids=ids)
    json.dumps(monitor.state(), allow_nan=False)


def readers(place: Path) -> dict[str, Reader]:
    """Return every reader with valid inputs; a run and models are made for them."""
    rng = np.random.default_rng(0)
    X, sex = rng.normal(size=(300, 2)), np.where(rng.random(300) < 0.5, "F", "M")
    y = (X[:, 0] + 0.5 * rng.normal(size=300) > 0.3).astype(int)
    ours = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    goal = cp.GoalClassifier(ours, goals=["recall >= 0.6"], by="sex", cv="prefit", random_state=0)
    goal.set_params(decision="sticky", alpha=0.6, confidence=None).fit(X, y, sensitive_features={"sex": sex})
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    boosted = cp.AdaLPBoostClassifier(HistogramTree(max_depth=2), n_estimators=3, random_state=0).fit(X, y)
    conversation = Conversation(session_of_model(goal, X, y, sensitive_features={"sex": sex}))
    (place / "goals.toml").write_text(GOALS_FILE)
    loans(300, random_state=0)[0].to_csv(place / "loans.csv", index=False)
    loans(200, random_state=1)[0].to_csv(place / "march.csv", index=False)
    run = fit_run(place / "goals.toml", output=place / "run")
    monitor_run(run, place / "march.csv")
    monitor = cp.Monitor(["recall >= 0.5", "max_difference(positive_rate, by=sex) <= 0.3"], classes=[0, 1])
    for start in range(0, 300, 100):
        part = slice(start, start + 100)
        monitor.update(
            y[part], [*y[part][:90], *[None] * 10], sensitive_features={"sex": sex[part]}, ids=np.arange(100)
        )

    weighted = cp.Monitor(
        ["recall(value=amount) >= 0.2", "min_ratio(positive_rate, by=sex) >= 0.5", "churn <= 0.9"],
        largest_weight=2.0,
        largest_value=9.0,
        groups={"sex": ["F", "M"]},
        defer_label=2,
        classes=[0, 1],
    )
    features = {"sex": sex[:100], "amount": np.abs(X[:100, 0])}
    weighted.update(
        *(y[:100], [*y[:90], *[None] * 10]),
        sensitive_features=features,
        sample_weight=1 + (y[:100] > 0),
        baseline=y[100:200],
        ids=np.arange(100),
    )
    goals_files = [GOALS_FILE.encode(), OTHER_GOALS_FILE.encode()]

    def render_monitor(_path: Path) -> str:
        summary = monitor_run(run)
        return f"{summary}{render_monitoring(summary)}"

    def reply(data: bytes) -> None:
        words = json.loads(conversation.reply(data.decode(errors="surrogateescape")))
        if words["type"] == "refused":
            if words["message"] == UNFORESEEN:
                raise RuntimeError(UNFORESEEN)
            raise ValueError(words["message"])

    folder, state = run.folder, "monitor.json"
    text, plain = changed_text, changed_json
    return {
        "goal": Reader(lambda data: parse_goal(data.decode(errors="surrogateescape")), [*map(str.encode, GOALS)], text),
        "goals file": Reader(lambda data: parse_goals_file(data, Path("goals.toml")), goals_files, text),
        "rules file": Reader(from_file(place / "rules.json", read_rules), [json.dumps(RULES).encode()], plain),
        "model": Reader(read_model, [*map(persist.dumps, (goal, boosted, ours, forest))], changed_model),
        "checkpoint": continue_fit(boosted, X, y, place),
        "result": Reader(
            from_file(place / "result.json", lambda path: summary_text(read_result(path))),
            [(folder / "result.json").read_bytes()],
            plain,
        ),
        "report": Reader(
            from_file(place / "result.json", lambda path: render(read_result(path))),
            [(folder / "result.json").read_bytes()],
            plain,
            6.0,  # a page takes one
        ),
        "settings": Reader(
            from_file(folder / "settings.json", lambda _path: open_run(folder)),
            [(folder / "settings.json").read_bytes()],
            plain,
        ),
        "monitor file": Reader(
            from_file(folder / state, render_monitor), [(folder / state).read_bytes()], changed_state
        ),
        "monitor": Reader(restore_monitor, [json.dumps(one.state()).encode() for one in (monitor, weighted)], plain),
        "message": Reader(reply, [json.dumps(one).encode() for one in MESSAGES], plain),
    }


def is_sentence(error: Exception) -> bool:
    """Tell whether an error is a refusal: of a kind that callers expect, with a sentence that is not Python's own."""
    words = str(error)
    is_ours = type(error).__module__.startswith("counterpoise") or len(words.split()) > 3
    return (
        isinstance(error, (ValueError, TypeError, RunFolderError))
        and is_ours
        and words.rstrip().endswith((".", "^", "?"))
    )


def outcome(reader: Reader, data: bytes, most_seconds: float) -> str:
    """Return "read" or "refused", or else what is wrong, in words."""
    start, size = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = "read"
    try:
        reader.read(data)
    except Exception as error:  # noqa: BLE001 - the question is which
        said = "refused" if is_sentence(error) else f"{type(error).__name__}: {str(error)[:300]}"
    seconds = time.process_time() - start
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - size) / 1024
    if seconds > most_seconds:
        return f"took {seconds:.1f} seconds ({said})"
    return f"took {growth:.0f} megabytes ({said})" if growth > MOST_GROWTH else said


def input_of(reader: Reader, seed: int, number: int) -> bytes:
    """Return the input of a number."""
    return reader.change(np.random.default_rng([seed, number]), reader.valid)


def fuzz(reader: Reader, seed: int, numbers: range, most_seconds: float) -> tuple[Counter[str], dict[int, str]]:
    """Return how many inputs were read and refused, and what was wrong with others, by number."""
    counts, wrong = Counter[str](), dict[int, str]()
    for number in numbers:
        said = outcome(reader, input_of(reader, seed, number), most_seconds)
        counts[said if said in ("read", "refused") else "wrong"] += 1
        if said not in ("read", "refused"):
            wrong[number] = said
    return counts, wrong


def main() -> int:
    """Run and print; return 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one reader")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--inputs", type=int, default=sys.maxsize, help="most inputs of each reader")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    total, wrong = {}, 0
    with tempfile.TemporaryDirectory() as place:
        every = readers(Path(place))
        chosen = {name: one for name, one in every.items() if options.only in (None, name)}
        for name, one in chosen.items():  # unchanged inputs are read, and the first call compiles
            if any(outcome(one, data, np.inf) != "read" for data in one.valid):
                parser.error(f"{name} refuses what it should read")
        end = time.process_time() + options.seconds
        for start in range(options.first, options.first + options.inputs, 50):
            for name, one in chosen.items():
                numbers = range(start, min(start + 50, options.first + options.inputs))
                counts, found = fuzz(one, options.seed, numbers, one.most_seconds)
                total[name] = total.get(name, Counter()) + counts
                wrong += len(found)
                for number, said in found.items():
                    print(f"{name} {number}: {said}", flush=True)
                if time.process_time() > end:
                    break
            if time.process_time() > end:
                break
    for name, counts in total.items():
        print(f"{name:13}{counts['read']:8,} read {counts['refused']:8,} refused {counts['wrong']:6,} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
