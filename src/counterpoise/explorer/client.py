"""One page at the other end: only its latest setting is solved, and an old answer never follows a newer one."""

from counterpoise.explorer.conversation import Conversation, Message, read_message, refusal
from counterpoise.explorer.log import Rate
from counterpoise.explorer.worker import Job, Send, Worker

PER_SECOND, BURST = 100.0, 200.0  # messages of one page, and how many may come at once
MOST_EXPORTS = 3  # of one page that wait at a time
TOO_MANY = f"Too many messages: a page may send at most {PER_SECOND:g} a second."


class Client:
    """Reads the messages of one page and lets the worker answer them.

    A setting takes the place of the one before that waits; a view that of the same view. Whatever is still under way
    for an older setting is given up. Exports, which take long, are solved in turn and written beside.
    """

    def __init__(self, conversation: Conversation, worker: Worker, writer: Worker, send: Send) -> None:
        self._conversation, self._worker, self._writer, self._send = conversation, worker, writer, send
        self._rate = Rate(PER_SECOND, BURST)
        self._waiting: dict[str, Job] = {}
        self._exports: list[Job] = []  # nothing makes them stale

    def hear(self, text: object) -> bool:
        """Take a message, and tell whether the page may go on; what is no message is refused at once."""
        if not self._rate.take():
            self._send(refusal(0, TOO_MANY))
            return False
        try:
            self._take(read_message(text))
        except (ValueError, TypeError) as error:
            self._send(refusal(0, error))
        return True

    def leave(self) -> None:
        """Give up whatever is under way."""
        for job in (*self._waiting.values(), *self._exports):
            job.cancel()

    def _take(self, message: Message) -> None:
        if message.type == "export":
            self._exports = [job for job in self._exports if not job.is_done]
            if len(self._exports) >= MOST_EXPORTS:
                self._send(refusal(message.seq, f"{MOST_EXPORTS} exports wait already: ask again when one is done."))
            else:
                self._exports.append(self._submitted(message, later=self._writer))
            return
        self._replace(message)
        self._waiting[_name(message)] = self._submitted(message)

    def _submitted(self, message: Message, later: Worker | None = None) -> Job:
        steps = self._conversation.replies(message)
        return self._worker.submit(steps, self._send, urgent=message.is_urgent, later=later)

    def _replace(self, message: Message) -> None:
        """Give up what a newer message makes stale: with another setting everything but exports."""
        stale = list(self._waiting) if message.type == "set" else [_name(message)]
        for name in stale:
            if name in self._waiting:
                self._waiting.pop(name).cancel()


def _name(message: Message) -> str:
    """Return what a newer message takes the place of: a conflict stands for its setting."""
    if message.type == "view":
        return f"view {message.words.get('view')}"
    return "set" if message.type == "conflict" else message.type
