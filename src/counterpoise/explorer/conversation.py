"""What is said between a page and a session, as JSON texts: the same over a socket, in a notebook and in tests.

    {"type": "set", "seq": 7, "setting": {...}, "exact": false}        -> {"type": "answer", "seq": 7, "kind": ...}
    {"type": "conflict", "seq": 7, "setting": {...}}                   -> {"type": "answer", "seq": 7, "kind": ...}
    {"type": "view", "seq": 7, "view": "curve", "setting": {...}}      -> {"type": "view", "seq": 7, "view": ..., ...}
    {"type": "read", "seq": 7, "text": "recall(train) >= 0.9", ...}    -> {"type": "read", "seq": 7, "goal": ...}
    {"type": "export", "seq": 7, "what": "goals", "setting": {...}}    -> {"type": "export", "seq": 7, ...}

What cannot be done is answered by ``{"type": "refused", "seq": 7, "message": ...}``, a sentence.
"""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from counterpoise._base.text import load_json
from counterpoise.explorer.description import describe
from counterpoise.explorer.exports import GOALS, Exporter
from counterpoise.explorer.log import LOG
from counterpoise.explorer.session import Session
from counterpoise.explorer.setting import Setting, check_bound, field_of, read_goal
from counterpoise.explorer.telling import spelled
from counterpoise.explorer.views import steps

MOST_BYTES = 65_536  # of a message
TYPES = ("set", "conflict", "view", "read", "export")
_SHOWN = 200  # characters of what is wrong with a JSON text
_MOST_TOLD = 2000  # characters of a refusal
_MOST_LOGGED = 120  # of them, in the log


class Message(NamedTuple):
    """What a page asks."""

    type: str
    seq: int
    words: dict[str, Any]

    @property
    def is_urgent(self) -> bool:
        """Tell whether someone waits with a finger on a slider."""
        return self.type in ("set", "read")


def read_message(text: Any) -> Message:
    """Return a message, or say in a sentence why it is none."""
    if not isinstance(text, str):
        raise TypeError("A message must be a text; got bytes.")
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise ValueError(f"A message must have at most {MOST_BYTES} bytes; got {len(text.encode(errors='replace'))}.")
    try:
        words = load_json(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"A message must be JSON; it cannot be read: {str(error)[:_SHOWN]}.") from error
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

    def hello(self) -> str:
        """Return what a page is told first."""
        return self._hello

    @cached_property
    def _hello(self) -> str:
        return _written({"type": "hello", **describe(self.session), "exports": self.exporter.kinds})

    def replies(self, message: Message) -> Iterator[str | None]:
        """Yield None after each step, and the reply in the end; never raise."""
        try:
            for found in self._steps(message):
                yield None if found is None else _written(found)
        except (ValueError, TypeError, OSError) as error:  # whose cause is known
            yield refusal(message.seq, error)
        except Exception:  # noqa: BLE001 - what nobody foresaw must not end the server
            LOG.exception("failed on a message of type %s", message.type)
            yield refusal(message.seq, "This could not be computed; the log of the server says why.")

    def reply(self, text: Any) -> str:
        """Return the reply to the text of a message."""
        try:
            message = read_message(text)
        except (ValueError, TypeError) as error:
            return refusal(0, error)
        return next(found for found in self.replies(message) if found is not None)

    def _steps(self, message: Message) -> Iterator[dict[str, Any] | None]:
        words, seq = message.words, message.seq
        if message.type == "read":
            beside = Setting.of(words["setting"]) if "setting" in words else self.session.start
            yield {"type": "read", "seq": seq, **self._read(words.get("text"), beside)}
            return
        setting = Setting.of(words.get("setting", {}))
        self.session.check(setting)
        if message.type == "set":
            exact = words.get("exact", False) is True
            yield {"type": "answer", "seq": seq, "exact": exact, **self.session.answer(setting, exact=exact)}
        elif message.type == "conflict":
            yield {"type": "answer", "seq": seq, "exact": True, **self.session.conflict(setting)}
        elif message.type == "export":
            if words.get("what") != GOALS:
                self.session.settled(setting)
            yield None  # the mixture is found: what writes it may be another thread
            yield {"type": "export", "seq": seq, **self.exporter.export(words.get("what"), setting)}
        else:
            view, options = words.get("view"), {name: words[name] for name in ("x", "y") if name in words}
            for found in steps(self.session, setting, str(view), **options):
                yield None if found is None else {"type": "view", "seq": seq, "view": view, **found}

    def _read(self, text: Any, beside: Setting) -> dict[str, Any]:
        """Return a goal as it is understood, after checking that it can be asked beside those of a setting."""
        goal = read_goal(text)
        check_bound(goal)
        self.session.check(beside.with_goal(goal))
        with self.session.lock:
            self.session.state(beside).program.can_hold((goal,))
        return {"goal": {"text": str(goal), "bound": goal.bound, "on": True, **spelled(goal)}}


def refusal(seq: int, why: Exception | str) -> str:
    """Return a refusal, and write it to the log; one that is about a field of the setting names it."""
    told = why if isinstance(why, str) else str(why)
    if isinstance(why, OSError) and why.strerror:
        told = f"The server cannot read or write {why.filename}: {why.strerror}."
    LOG.warning("refused: %s", told[:_MOST_LOGGED])
    field = {} if isinstance(why, str) else field_of(why)
    return _written({"type": "refused", "seq": seq, "message": told[:_MOST_TOLD], **field})


def _written(words: dict[str, Any]) -> str:
    return json.dumps(words, allow_nan=False, separators=(",", ":"))
