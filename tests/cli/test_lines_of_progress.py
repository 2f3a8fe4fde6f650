"""Kernels that compile are told of, and work that tells nothing is not silent."""

import io
import threading

from counterpoise._base.progress import COMPILING, Words, lines_of_progress, report_compilation
from counterpoise.runs import RunProgress


class Heard(io.StringIO):
    """A stream that sets an event when some words were written."""

    def __init__(self, words):
        super().__init__()
        self.words, self.event = words, threading.Event()

    def write(self, text):
        written = super().write(text)
        if self.words in self.getvalue():
            self.event.set()
        return written


def test_work_that_tells_nothing_for_long_is_spoken_of(monkeypatch):
    heard = Heard("after round 3;")
    monkeypatch.setattr("sys.stdout", heard)
    with lines_of_progress(pause=0.01) as tell:
        tell(RunProgress(3, 9, "round 3", 1.0, 2.0))
        assert heard.event.wait(30.0)
    assert "after round 3; 0 s so far\n" in heard.getvalue()


def test_work_that_is_not_counted_is_named_as_what_is_going_on(monkeypatch):
    heard = Heard("measuring;")
    monkeypatch.setattr("sys.stdout", heard)
    with lines_of_progress(pause=0.01) as tell:
        tell(RunProgress(0, 0, "measuring", 125.0, 0.0))
        assert heard.event.wait(30.0)
    assert str(RunProgress(0, 0, "measuring", 125.0, 0.0)) == "measuring; 2 min 5 s so far"
    assert "after measuring" not in heard.getvalue()


def test_compilation_is_said_once_and_the_end_of_work_always(capsys):
    with lines_of_progress() as tell:
        for kernel in ("first", None, "second", "inside of it", None, None):
            report_compilation(kernel)
        tell(RunProgress(1, 2, "one", 1.0, 1.0))
        tell(RunProgress(2, 2, "two", 2.0, 0.0))
    assert capsys.readouterr().out == f"{COMPILING}\n2 of 2: two; 0 s so far\n"
    assert COMPILING == "compiling kernels, once"
    report_compilation("nobody listens any more")
    assert capsys.readouterr().out == ""


def test_the_words_go_back_to_the_part_when_all_is_compiled():
    words = Words()
    assert str(words) == "working"
    words.part = "tree 1"
    seen = []
    for kernel in ("outer", "inner", None, None):
        words.watch(kernel)
        seen.append(str(words))
    assert seen == [COMPILING] * 3 + ["tree 1"]
