"""One page at the other end: only its latest setting is solved, and an old answer never follows a newer one."""

import time
from collections.abc import Callable

from counterpoise.explorer.conversation import Conversation, Message, read_message, refusal
from counterpoise.explorer.worker import Cancel, Send, Worker

PER_SECOND, BURST = 100.0, 200.0  # messages of one page, and how many may come at once
_REPLACES = {"set": "set", "conflict": "set", "view": "view", "read": "read"}


class Rate:
    """A bucket of messages that fills as time goes by."""

    def __init__(self, per_second: float, burst: float, now: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._burst, self._now = per_second, burst, now
        self._left, self._last = burst, now()

    def take(self) -> bool:
        """Take one, and tell whether there was one."""
        now = self._now()
        self._left = min(self._left + (now - self._last) * self._per_second, self._burst)
        self._last = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Client:
    """Reads the messages of one page and lets the worker answer them.

    A setting takes the place of the one before that waits; a view that of the same view. Whatever is still under way
    for an older setting is given up.
    """

    def __init__(self, conversation: Conversation, worker: Worker, send: Send) -> None:
        self._conversation, self._worker, self._send = conversation, worker, send
        self._rate = Rate(PER_SECOND, BURST)
        self._waiting: dict[str, Cancel] = {}

    def hear(self, text: object) -> None:
        """Take a message; what is none is refused at once."""
        if not self._rate.take():
            self._send(refusal(0, f"Too many messages: at most {PER_SECOND:g} a second are answered. Slow down."))
            return
        try:
            message = read_message(text)
        except (ValueError, TypeError) as error:
            self._send(refusal(0, error))
            return
        self._replace(message)
        job = self._conversation.replies(message)
        self._waiting[self._name(message)] = self._worker.submit(job, self._send, urgent=message.is_urgent)

    def leave(self) -> None:
        """Give up whatever is under way."""
        for cancel in self._waiting.values():
            cancel.set()
        self._waiting.clear()

    def _replace(self, message: Message) -> None:
        """Give up what a newer message makes stale: with another setting everything but exports."""
        stale = [self._name(message)]
        if message.type == "set":
            stale = [name for name in self._waiting if not name.startswith("export")]
        for name in stale:
            if name in self._waiting and not name.startswith("export"):
                self._waiting.pop(name).set()

    def _name(self, message: Message) -> str:
        kind = _REPLACES.get(message.type, f"{message.type} {message.seq}")
        return f"view {message.words.get('view')}" if kind == "view" else kind
