"""Kernels that compile are told of, work that tells nothing is not silent, and warm-up compiles everything."""

import io
import json
import threading
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import counterpoise
from counterpoise._base.progress import COMPILING, Words, lines_of_progress, report_compilation
from counterpoise.cli import main, warming
from counterpoise.cli.warming import KERNEL_MODULES, Warmed, summary
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


def test_warm_up_knows_every_module_with_kernels():
    root = Path(counterpoise.__file__).parent
    sources = {path: path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    found = {
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path, text in sources.items()
        if "\n@kernel(" in text or "\n@kernel_family(" in text
    }
    assert found == set(KERNEL_MODULES)


def test_warm_up_names_every_kernel_and_where_it_is_kept(capsys):
    assert main(["warm-up", "--json"]) == 0
    kernels = json.loads(capsys.readouterr().out)["kernels"]
    assert {name.rpartition(".")[0] for name in (one["name"] for one in kernels)} == set(KERNEL_MODULES)
    assert not any(one["compiled"] for one in kernels), "the tests begin with all kernels compiled"
    assert main(["warm-up"]) == 0
    assert f"{len(kernels)} kernels: 0 compiled in 0 s, {len(kernels)} were there\nkept in " in capsys.readouterr().out


def test_warm_up_says_so_where_nothing_can_be_kept():
    made = [Warmed("solvers.one", 1.5, compiled=True, folder=None), Warmed("two", 0.0, compiled=False, folder=None)]
    assert summary(made) == "2 kernels: 1 compiled in 2 s, 1 were there\nkept nowhere: no folder can be written to"


def test_what_another_process_compiled_is_told_beside_what_this_one_did(monkeypatch):
    here = [Warmed("one", 2.0, compiled=True, folder=None), Warmed("two", 0.0, compiled=False, folder=None)]
    there = [Warmed("two", 3.0, compiled=True, folder=None), Warmed("one", 0.0, compiled=False, folder=None)]
    helper = Future()
    monkeypatch.setattr(warming, "_kernels", lambda: here)
    monkeypatch.setattr(warming, "_compile_kernel", lambda kernel: kernel)
    monkeypatch.setattr(warming, "_begin_at_the_end", lambda _until_done: helper)
    helper.set_result(there)
    said = []
    assert warming.compile_all(said.append) == [here[0], there[0]]
    assert said == ["  2.0 s  one", "  3.0 s  two"]
    helper = Future()
    helper.set_exception(BrokenProcessPool("killed"))
    assert warming.compile_all() == here


def test_where_there_can_be_no_other_process_this_one_compiles_all(monkeypatch):
    def refuse(*_):
        raise NotImplementedError("no semaphores here")

    here = [Warmed("one", 2.0, compiled=True, folder=None)] * 2
    monkeypatch.setattr(warming, "_kernels", lambda: here)
    monkeypatch.setattr(warming, "_compile_kernel", lambda kernel: kernel)
    monkeypatch.setattr(warming, "available_cpus", lambda: 2)
    monkeypatch.setattr(warming, "ProcessPoolExecutor", refuse)
    assert warming.compile_all() == here
