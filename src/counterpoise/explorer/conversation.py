"""Messages between a page and a session, as JSON texts: the same over a socket, in a notebook and in tests.

    {"type": "set", "seq": 7, "setting": {...}, "exact": false, ...}   -> {"type": "answer", "seq": 7, "kind": ...}
    {"type": "conflict", "seq": 7, "setting": {...}}                   -> {"type": "answer", "seq": 7, "kind": ...}
    {"type": "view", "seq": 7, "view": "curve", "setting": {...}}      -> {"type": "view", "seq": 7, "view": ..., ...}
    {"type": "read", "seq": 7, "text": "recall >= 0.9", ...}    -> {"type": "read", "seq": 7, "goal": ...}
    {"type": "export", "seq": 7, "what": "goals", "setting": {...}}    -> {"type": "export", "seq": 7, ...}

A request that cannot be met is answered by ``{"type": "refused", "seq": 7, "message": ...}``, a sentence.

One thread computes for all pages. Settings that follow a slider come first, only the latest setting of a page is
solved, and an old answer never follows a newer one. A page asks for a first answer, which comes at once, then for the
exact one; a newer setting cancels what is computed for an older one, in the middle of a solve. While a value moves, a
page sends the last margins of its goals along with "set", and they are kept; where it rests, another thread computes
new ones. Exports (a goals file, a model,
or a run with a report) are of the mixture that the page shows: nothing is chosen again for them. A model holds the
scores and labels of its selection rows, and the key of its draws, so it is never sent to a page.
"""

import copy
import itertools
import json
import logging
import queue
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from counterpoise import persist
from counterpoise._base.budget import OutOfTime, TimeLimit, check_budget, within
from counterpoise._base.text import load_json, short
from counterpoise.classifiers.base import DRAWN
from counterpoise.explorer.disclosure import amounts_of, values_of
from counterpoise.explorer.margins import read_margins
from counterpoise.explorer.session import Session
from counterpoise.explorer.setting import MOST_COLUMNS, MOST_GOALS, Setting, check_bound, field_of, read_goal
from counterpoise.explorer.state import why_no_margins
from counterpoise.explorer.views import steps
from counterpoise.goals import Table
from counterpoise.goals.catalogue import catalogue
from counterpoise.goals.rates import ALIASES, COST, FORMS, METRICS, RATIOS, TOTAL
from counterpoise.goals.words import RESERVED
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.options import Proof, as_groups, kind_of_decision

LINES_PER_SECOND, LINES_AT_ONCE = 5.0, 200.0


class RateLimit:
    """A bucket that fills as time goes by."""

    def __init__(self, per_second: float, burst: float, now: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._burst, self._now = per_second, burst, now
        self._tokens, self._last = burst, now()

    def take(self) -> bool:
        """Take one, and return whether there was one."""
        now = self._now()
        self._tokens = min(self._tokens + (now - self._last) * self._per_second, self._burst)
        self._last = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class PlainLines(logging.Filter):
    """A log filter that limits the number of lines, counts those left out, and escapes terminal control characters."""

    def __init__(self, rate: RateLimit) -> None:
        super().__init__()
        self._rate, self._n_skipped = rate, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line passes, as plain text."""
        if not self._rate.take():
            self._n_skipped += 1
            return False
        before = f" ({self._n_skipped} lines before were left out)" if self._n_skipped else ""
        record.msg, record.args = f"{plain(record.getMessage())}{before}", None
        self._n_skipped = 0
        return True


def plain(text: str) -> str:
    r"""Return a text whose unprintable characters are escaped.

    Examples
    --------
    >>> from counterpoise.explorer.conversation import plain
    >>> print(plain("red \x1b[31m, next\nline"))
    red \x1b[31m, next\nline
    """
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


LOG = logging.getLogger("counterpoise.explorer")
LOG.addFilter(PlainLines(RateLimit(LINES_PER_SECOND, LINES_AT_ONCE)))


Steps = Iterator[str | None]
Send = Callable[[str], None]


class Job:
    """A task of the worker: whether it was cancelled, and whether it has ended."""

    def __init__(self, steps: Steps, send: Send, later: "Worker | None" = None) -> None:
        self.steps, self.send, self.later = steps, send, later
        self.budget, self.is_done = TimeLimit(), False

    def cancel(self) -> None:
        """End the present step soon, take no further one, and send nothing."""
        self.budget.cancel()

    def step(self) -> bool:
        """Take a step, and return whether there are more; the last value is sent."""
        reply: str | None = ""
        with suppress(OutOfTime), within(self.budget):
            check_budget()
            reply = next(self.steps, "")
        self.is_done = self.budget.is_spent or reply is not None
        if reply and not self.budget.is_spent:
            self.send(reply)
        return not self.is_done


_FIRST_OF_ALL = -1  # the priority of the word that ends a worker


class Worker:
    """Runs jobs step by step; an urgent one comes before the next step of any other.

    A job is an iterator whose last value is sent. One that was cancelled ends its step soon and takes no further one.
    """

    def __init__(self) -> None:
        self._jobs, self._numbers = queue.PriorityQueue[tuple[int, int, Job | None]](), itertools.count()
        self._thread = threading.Thread(target=self._run, name="counterpoise-explorer", daemon=True)
        self._thread.start()

    def submit(self, steps: Steps, send: Send, *, urgent: bool, later: "Worker | None" = None) -> Job:
        """Queue a job, and return it. With ``later``, another worker runs all its steps but the first."""
        job = Job(steps, send, later)
        self.push(0 if urgent else 1, job)
        return job

    def push(self, priority: int, job: Job) -> None:
        """Queue a job that another worker may have started."""
        self._jobs.put((priority, next(self._numbers), job))

    def close(self) -> None:
        """Let the current job end its step, and drop all others."""
        self._jobs.put((_FIRST_OF_ALL, 0, None))
        self._thread.join()

    def _run(self) -> None:
        while True:
            priority, _, job = self._jobs.get()
            if job is None:
                return
            if job.step():
                (job.later or self).push(priority, job)


class SolveWorkers(NamedTuple):
    """The threads of a server: for what pages wait for, for exports, and for margins."""

    main: Worker
    writer: Worker
    margins: Worker

    @classmethod
    def start(cls) -> "SolveWorkers":
        """Return new ones."""
        return cls(Worker(), Worker(), Worker())


def asset(name: str) -> bytes:
    """Return a file of the page."""
    return files("counterpoise.explorer").joinpath("assets", name).read_bytes()


def describe(session: Session) -> dict[str, Any]:
    """Return title, classes, metrics, datasets with their columns, and the setting that the model was chosen for."""
    parts = session.parts
    tables, rates = parts.selection_data.answers.tables, {*METRICS, *RATIOS, COST, TOTAL}
    is_proof = isinstance(getattr(parts.estimator, "confidence", None), Proof) and session.start.confidence is not None
    return {
        "title": parts.title,
        "kind": "rules" if session.has_scores else "models",
        "decision": kind_of_decision(parts.estimator.decision),
        "draws": parts.held_out is not None and kind_of_decision(parts.estimator.decision) in DRAWN,
        "models": len(parts.names),
        "classes": {"positive": str(session.classes.positive), "negative": str(session.classes.negative)},
        "start": _start(session),
        "file_bounds": parts.original_bounds,
        "objective": str(parts.estimator.objective_),
        "datasets": [_dataset(name, table) for name, table in tables.items()],
        "held_out": None if parts.held_out is None else parts.held_out.tables[TRAIN].n_samples,
        "today": session.rates.of_deployed(),
        "by": session.columns,
        "why_no_margins": why_no_margins(parts.estimator),
        "can_defer": session.has_scores,
        "metrics": [one._asdict() | {"is_ratio": one.name in RATIOS} for one in catalogue() if one.name in rates],
        "phrases": [one._asdict() | _form(one.name) for one in catalogue() if one.name in FORMS],
        "words": [*(one.name for one in catalogue() if one.name.isidentifier()), *ALIASES],
        "reserved": list(RESERVED),
        "notes": [*parts.notes, *([_PROOF] if is_proof else [])],
        "most": {"goals": MOST_GOALS, "by": MOST_COLUMNS},
        "least_alpha": session.least_alpha,
    }


def _start(session: Session) -> dict[str, Any]:
    """Return the setting that the model was fitted for, with both sides of each goal."""
    words = session.start.as_words()
    goals = zip(words["goals"], session.start.goals, strict=True)
    return words | {"goals": [own | session.describe_goal(one.goal) for own, one in goals]}


def _form(name: str) -> dict[str, Any]:
    """Return which parts of a kind of goal are free, and whether it compares rates, which then cannot be ratios."""
    form = FORMS[name]
    return {"sense": form.sense, "takes_metric": not form.metrics, "by": form.by, "compares": form.combine is not None}


def _dataset(name: str, table: Table) -> dict[str, Any]:
    values = {column: own for column in table.columns if (own := values_of(table, column)) is not None}
    has = {"labels": table.y is not None, "baseline": table.baseline is not None}
    return {"name": name, "rows": table.n_samples, **has, "columns": values, **amounts_of(table)}


_PROOF = "This model was fitted with a proof. Whatever you move gets margins of the same confidence, without a proof."
GOALS, MODEL, REPORT = "goals", "model", "report"
NO_CONFIDENCE = "none"  # in a goals file
_MOST = 1000  # files of one name


class Exporter:
    """Exports of a session whose model is not part of a run.

    Parameters
    ----------
    session : Session
    folder : path, optional
        The folder that models are written to. Default: no models are written.
    """

    def __init__(self, session: Session, folder: str | Path | None = None) -> None:
        self.session, self.folder = session, None if folder is None else Path(folder)

    @property
    def kinds(self) -> dict[str, Callable[[Setting], dict[str, str]]]:
        """Return the kinds of exports, each with the method that writes it."""
        kinds: dict[str, Callable[[Setting], dict[str, str]]] = {GOALS: self.goals_file}
        return kinds if self.folder is None else kinds | {MODEL: self.model_file}

    def export(self, what: Any, setting: Setting) -> dict[str, Any]:
        """Return the text of a goals file, or the path of the model or report that was written."""
        if not isinstance(what, str) or what not in self.kinds:
            raise ValueError(f"You can export {', '.join(self.kinds)} here; got {str(what)[:40]!r}.")
        return {"what": what, **self.kinds[what](setting)}

    def model(self, setting: Setting) -> Any:
        """Return the model whose mixture the page shows, with the pipeline steps before it."""
        return self._whole(self._choose(setting))

    def _choose(self, setting: Setting) -> Any:
        """Return the classifier whose mixture the page shows; for the model's own setting, the fitted model itself."""
        parts, result = self.session.parts, self.session.solve_exactly(setting)
        model = copy.copy(parts.estimator)
        if setting == self.session.start:
            return model
        params: dict[str, Any] = {"goals": setting.active, "budget": setting.budget, "mixture": "optimal"}
        params["confidence"] = setting.confidence
        if setting.alpha is not None:
            params |= {"alpha": setting.alpha, "objective": None}
        if self.session.has_scores:
            params |= {"by": setting.by, "deferral": result.problem.deferral}
        names = model.get_params(deep=False)
        model.set_params(**{name: value for name, value in params.items() if name in names})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the page shows what they are about
            decides = {"by": as_groups(model.by), "decision": kind_of_decision(model.decision)}
            family = model.family_._replace(selection_data=parts.selection_data)
            plain = result.solution.plain or result.solution  # to which the same margins are added
            model.solve_and_store(family, result.problem._replace(**decides), plain.choice)
        return model

    def goals_file(self, setting: Setting) -> dict[str, str]:
        """Return a setting as part of a goals file; you add the data and the models."""
        from counterpoise.runs.goals_file import as_toml  # noqa: PLC0415 - needs optional packages

        words: dict[str, Any] = {} if setting.alpha is None else {"alpha": setting.alpha}
        goals = [
            {"goal": str(goal.with_confidence(None)), "confidence": goal.confidence}
            for goal in self.session.goals_of_file(setting)
        ]
        options: dict[str, Any] = {"budget": setting.budget, "by": list(setting.by) or None}
        if setting.defer is not None:
            options["deferral"] = {"cost": setting.defer}
        if self.session.has_scores and not self.session.decides_by_one_rule:  # which a goals file takes for granted
            options["decision"] = kind_of_decision(self.session.parts.estimator.decision)
        if not why_no_margins(self.session.parts.estimator):
            words["confidence"] = NO_CONFIDENCE if setting.confidence is None else setting.confidence
        parameters = {name: value for name, value in options.items() if value is not None}
        method = {"method": {"parameters": parameters}} if parameters else {}
        return {"name": "goals.toml", "text": as_toml(words | {"goals": goals} | method)}

    def model_file(self, setting: Setting) -> dict[str, str]:
        """Write the classifier of a setting, and return its path."""
        model = self.model(setting)
        with self._fresh(".cp", lambda path: path.touch(exist_ok=False)) as path:
            persist.save(model, path)
        return {"path": str(path)}

    def _whole(self, model: Any) -> Any:
        """Return the model with the pipeline steps before it."""
        return model

    @contextmanager
    def _fresh(self, ending: str, make: Callable[[Path], None]) -> Iterator[Path]:
        """Yield a new path in the folder; it is created here, so that no other server can take it."""
        assert self.folder is not None  # noqa: S101 - else nothing is written
        self.folder.mkdir(parents=True, exist_ok=True)
        path = _make_path(self.folder, f"{self.session.parts.title}-explored", ending, make)
        try:
            yield path
        except BaseException:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            raise


def _make_path(folder: Path, name: str, ending: str, make: Callable[[Path], None]) -> Path:
    for number in range(1, _MOST):
        path = folder / f"{name}-{number}{ending}"
        with suppress(FileExistsError):
            make(path)
            return path
    raise ValueError(f"{folder} holds {_MOST - 1} exports already: move some away.")


MOST_BYTES = 65_536  # of a message
UNFORESEEN = "This could not be computed; the log of the server says why."
TYPES = ("set", "conflict", "view", "read", "export")
_MOST_SENT = 2000  # characters of a refusal
_MOST_LOGGED = 120  # of them, in the log


class Message(NamedTuple):
    """A request of a page."""

    type: str
    seq: int
    words: dict[str, Any]


def read_message(text: Any) -> Message:
    """Return a message, or raise an error that explains why it is none."""
    if not isinstance(text, str):
        raise TypeError("A message must be a text; got bytes.")
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise ValueError(f"A message must have at most {MOST_BYTES} bytes; got {len(text.encode(errors='replace'))}.")
    try:
        words = load_json(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"A message must be JSON; it cannot be read: {short(error)}.") from error
    if not isinstance(words, dict) or words.get("type") not in TYPES:
        raise ValueError(f"A message must be an object whose type is one of {', '.join(TYPES)}.")
    seq = words.pop("seq", 0)
    if not isinstance(seq, int) or isinstance(seq, bool):
        raise TypeError("seq must be a whole number, which the answer repeats.")
    return Message(words.pop("type"), seq, words)


class Conversation:
    """Answers the messages of pages about one session."""

    def __init__(self, session: Session, exporter: Exporter | None = None) -> None:
        self.session, self.exporter = session, exporter or Exporter(session)

    @cached_property
    def hello(self) -> str:
        """Return the first message to a page."""
        return as_json({"type": "hello", **describe(self.session), "exports": list(self.exporter.kinds)})

    def replies(self, message: Message) -> Iterator[str | None]:
        """Yield None after each step, and the reply in the end; never raise."""
        try:
            for words in self._steps(message):
                yield None if words is None else as_json(words)
        except OutOfTime:  # of a job that was cancelled
            raise
        except (ValueError, TypeError, OSError) as error:  # whose cause is known
            yield refusal(message.seq, error)
        except Exception:  # what nobody foresaw must not end the server
            LOG.exception("failed on a message of type %s", message.type)
            yield refusal(message.seq, UNFORESEEN)

    def reply(self, text: Any) -> str:
        """Return the reply to the text of a message."""
        try:
            message = read_message(text)
        except (ValueError, TypeError) as error:
            return refusal(0, error)
        return next(one for one in self.replies(message) if one is not None)

    def _steps(self, message: Message) -> Iterator[dict[str, Any] | None]:
        words, seq = message.words, message.seq
        if message.type == "read":
            beside = Setting.of(words["setting"]) if "setting" in words else self.session.start
            yield {"type": "read", "seq": seq, **self._read_goal(words.get("text"), beside)}
            return
        setting = Setting.of(words.get("setting", {}))
        self.session.check(setting)
        if message.type == "set":
            exact = words.get("exact", False) is True
            head = {"type": "answer", "seq": seq, "exact": exact}
            if exact:
                for answer in self.session.answer_in_steps(setting):
                    yield None if answer is None else head | answer
                return
            kept = read_margins(words["margins"], setting) if "margins" in words else ()
            yield head | self.session.answer(setting, kept=kept)
        elif message.type == "conflict":
            yield {"type": "answer", "seq": seq, "exact": True, **self.session.conflict(setting)}
        elif message.type == "export":
            if words.get("what") != GOALS:
                self.session.solve_exactly(setting)
            yield None  # the mixture is solved: another thread may write it
            yield {"type": "export", "seq": seq, **self.exporter.export(words.get("what"), setting)}
        else:
            view, options = words.get("view"), {name: words[name] for name in ("x", "y") if name in words}
            for result in steps(self.session, setting, str(view), **options):
                yield None if result is None else {"type": "view", "seq": seq, "view": view, **result}

    def _read_goal(self, text: Any, beside: Setting) -> dict[str, Any]:
        """Return the parsed goal, after checking that it can be added to the goals of a setting."""
        goal = read_goal(text)
        check_bound(goal)
        self.session.check(beside.with_goal(goal))
        with self.session.lock:
            self.session.state(beside).program.can_hold((goal,))
        return {"goal": {"text": str(goal), "bound": goal.bound, "on": True, **self.session.describe_goal(goal)}}


def refusal(seq: int, why: Exception | str) -> str:
    """Return a refusal, and write it to the log; one that is about a field of the setting names it."""
    text = why if isinstance(why, str) else str(why)
    if isinstance(why, OSError) and why.strerror:
        text = f"The server cannot read or write {why.filename}: {why.strerror}."
    LOG.warning("refused: %s", text[:_MOST_LOGGED])
    field = {} if isinstance(why, str) else field_of(why)
    return as_json({"type": "refused", "seq": seq, "message": short(text, _MOST_SENT), **field})


def as_json(words: dict[str, Any]) -> str:
    """Return plain values as a short JSON text."""
    return json.dumps(words, allow_nan=False, separators=(",", ":"))


PER_SECOND, BURST = 100.0, 200.0  # messages of one page, and how many may come at once
MOST_EXPORTS = 3  # of one page that wait at a time
TOO_MANY = f"Too many messages: a page may send at most {PER_SECOND:g} a second."


class Client:
    """Reads the messages of one page and lets the worker answer them.

    A new setting replaces an older one, and a new view the same view. Work for an older setting is cancelled.
    Exports take long: they are solved in turn, and another thread writes them. So do margins, which a third computes.
    """

    def __init__(self, conversation: Conversation, workers: SolveWorkers, send: Send) -> None:
        self._conversation, self._workers, self._send = conversation, workers, send
        self._rate = RateLimit(PER_SECOND, BURST)
        self._waiting: dict[str, Job] = {}
        self._exports: list[Job] = []  # nothing makes them stale

    def hear(self, text: object) -> bool:
        """Take a message, and return whether the page may continue; refuse at once what is not a message."""
        if not self._rate.take():
            self._send(refusal(0, TOO_MANY))
            return False
        try:
            self._take(read_message(text))
        except (ValueError, TypeError) as error:
            self._send(refusal(0, error))
        return True

    def leave(self) -> None:
        """Cancel all work for this page."""
        for job in (*self._waiting.values(), *self._exports):
            job.cancel()

    def _take(self, message: Message) -> None:
        is_export = message.type == "export"
        self._exports = [job for job in self._exports if not job.is_done]
        if is_export and len(self._exports) >= MOST_EXPORTS:
            self._send(refusal(message.seq, f"{MOST_EXPORTS} exports wait already: ask again when one is done."))
            return
        if not is_export:  # a newer message makes others stale: another setting all that is about the older one
            others = [name for name in self._waiting if name != "read"] if message.type == "set" else []
            for name in {*others, _name(message)} & set(self._waiting):
                self._waiting.pop(name).cancel()
        steps, workers = self._conversation.replies(message), self._workers
        later = workers.writer if is_export else workers.margins if message.type == "set" else None
        job = workers.main.submit(steps, self._send, urgent=message.type in ("set", "read"), later=later)
        if is_export:
            self._exports.append(job)
        else:
            self._waiting[_name(message)] = job


def _name(message: Message) -> str:
    """Return the kind of message that a newer one replaces; a conflict counts as its setting."""
    if message.type == "view":
        return f"view {message.words.get('view')}"
    return "set" if message.type == "conflict" else message.type
