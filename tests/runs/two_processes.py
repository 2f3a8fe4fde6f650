"""Two fits on one folder, stopped wherever files change. A program that forks them, as what takes long is the import.

``python two_processes.py FOLDER EVERY`` has one newcomer meet the fit at a third of the places where it changes a file,
each kind of fit at other ones, and kills it at every EVERY-th; with 1 all newcomers do both, at all of them. It prints
how often.
"""

import gc
import json
import os
import signal
import socket
import sys
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

from counterpoise.cli import sentence
from counterpoise.persist import watch_changes
from counterpoise.rules.draws import draws_of
from counterpoise.runs import RunFolderError, fit_run, open_run, rebalance_run
from counterpoise.runs.decisions import final_estimator
from counterpoise.runs.places import DONE, KEY, SETTINGS

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.run_numbers import numbers

DATA = 'alpha = 0.5\n[data]\nfiles = "t.csv"\ntarget = "y"\n[method]\n'
BOOST = DATA + 'name = "adalpboost"\nlearner = {name = "stump"}\nparameters = {n_estimators = 2}\n'
GOALS = {
    "boost": BOOST,
    "other alpha": BOOST.replace("0.5", "0.9"),  # of which the rounds are the same
    "other rounds": BOOST.replace("n_estimators = 2", "n_estimators = 3"),
    "pool": DATA + 'name = "pool"\n[[method.models]]\nname = "naive_bayes"\n[[method.models]]\nname = "stump"\n',
}
KINDS = (*GOALS, "rebalance")  # the last: of the run "boost", for another alpha
MET = ("boost", "pool", "rebalance")
FITTED, DONE_ALREADY, BAD_INPUT = "fitted", "done already", 2
ENDED = "ended"


class Child:
    """A fit in a process of its own, which stops before each change of a file until it may go on."""

    def __init__(self, work, kind, folder):
        self.kind = kind
        self._socket, inner = socket.socketpair()
        self._process = os.fork()
        if not self._process:
            try:
                talk(inner, end=fit(work, kind, folder, inner), modules=sorted(sys.modules))
            finally:
                os._exit(0)
        inner.close()
        self._lines = self._socket.makefile("r")
        self._hear()

    def _hear(self):
        said = json.loads(self._lines.readline())
        self.at, self.end, self.modules = said.get("at", ENDED), said.get("end"), said.get("modules", ())
        if self.at == ENDED:
            os.waitpid(self._process, 0)

    def step(self):
        """Let it go on to the next place, and return which that is."""
        self._socket.sendall(b".")
        self._hear()
        return self.at

    def run(self):
        """Let it go on to its end, and return what came of it: a word or an exit code, and a sentence."""
        while self.at != ENDED:
            self.step()
        return self.end

    def kill(self):
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)


def talk(inner, **words):
    inner.sendall((json.dumps(words) + "\n").encode())


def fit(work, kind, folder, inner):
    """Fit, or choose the mixture of a run anew, and return how that ended."""
    said = []

    def wait(what, path):
        talk(inner, at=f"{what} {path.name}")
        if not inner.recv(1):
            os._exit(1)  # nobody is there any more

    with watch_changes(wait):
        try:
            if kind == "rebalance":
                rebalance_run(open_run(work / "alone boost"), alpha=0.7, output=folder)
            else:
                fit_run(work / f"{kind}.toml", output=folder, on_event=said.append)
        except Exception as error:  # noqa: BLE001 - as the command line has it
            return [BAD_INPUT, sentence(error)]
    return [DONE_ALREADY if "is done already" in "".join(said) else FITTED, ""]


def alone(work, kind):
    """Fit in a folder that nobody else knows, and return the places where the fit stops."""
    child = Child(work, kind, work / f"alone {kind}")
    places = [child.at]
    while child.step() != ENDED:
        places.append(child.at)
    assert child.end == [FITTED, ""], child.end
    for name in child.modules:  # those that come after need not load them again
        with suppress(Exception):
            import_module(name)
    return places


def content(folder):
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def facts(folder, rows):
    """Return what must be the same in two runs of the same settings: all but times."""
    model = open_run(folder).model()
    measured = {str(row.run): row.value for row in numbers(open_run(folder))}
    files = {name: (folder / name).read_bytes() for name in ("goals.toml", DONE)}
    fingerprint = json.loads((folder / SETTINGS).read_text())["fingerprint"]
    assert draws_of(final_estimator(model)).key.hex() == (folder / KEY).read_text().strip()
    names = sorted(path.name for path in folder.iterdir())
    return files, fingerprint, names, measured, model.predict_proba(rows).tolist()


def is_whole(folder):
    """Tell whether a reader finds a whole run; else a sentence says so."""
    try:
        open_run(folder).result()
    except RunFolderError as error:
        words = str(error)
    else:
        return True
    assert any(known in words for known in ("is not finished", "There is no run folder", "is not a run folder")), words
    return False


class Trial:
    """What is tried with one kind of fit."""

    def __init__(self, work, every):
        self.work, self.every, self.count = work, every, Counter()
        self.rows = pd.read_csv(work / "t.csv")[["a", "b"]]
        self.places = {kind: alone(work, kind) for kind in KINDS}
        self.right = {kind: facts(work / f"alone {kind}", self.rows) for kind in KINDS}

    def some(self, number):
        """Return who comes at a place: all, or one, and in turn another."""
        return KINDS if self.every == 1 else (KINDS[number % len(KINDS)],)

    def is_met(self, number, kind):
        """Tell whether anyone comes at a place."""
        return self.every == 1 or number % len(MET) == MET.index(kind)

    def is_right(self, folder, kind):
        assert facts(folder, self.rows) == self.right[kind], (folder, kind)

    def meet(self, kind):
        """Let newcomers, some of whom looked before the fit began, meet it at each of its places."""
        folder = self.work / f"{kind} met"
        places = range(len(self.places[kind]))
        early = {
            number: [Child(self.work, one, folder) for one in self.some(number)]
            for number in places
            if self.is_met(number, kind) and (self.every == 1 or number % 2)
        }
        assert all(child.at.startswith("lock") for those in early.values() for child in those)
        first = Child(self.work, kind, folder)
        for number in places:
            first.step()
            before, whole = content(folder), is_whole(folder)
            for child in early.get(number, ()):
                if first.at == ENDED:
                    self.is_told(child, folder, kind)
                else:
                    self.is_refused(child, folder)
            if self.is_met(number, kind) and (self.every == 1 or number not in early):
                for one in self.some(number):
                    (self.is_told if whole else self.is_refused)(Child(self.work, one, folder), folder, kind)
            assert content(folder) == before, (first.at, kind)
        assert first.end == [FITTED, ""], first.end
        self.is_right(folder, kind)

    def is_refused(self, child, folder, _kind=None):
        """Check that a newcomer is refused while another writes."""
        code, words = child.run()
        assert code == BAD_INPUT, (child.kind, code, words)
        assert f"is writing to the run folder {folder}" in words, words
        self.count["refused"] += 1

    def is_told(self, child, folder, kind):
        """Check that a newcomer to a whole run hears that it is done, or that it is another."""
        code, words = child.run()
        same = child.kind == kind
        assert code == ((FITTED if kind == "rebalance" else DONE_ALREADY) if same else BAD_INPUT), (code, words)
        assert same or f"{folder} holds a run with other settings or data" in words, words
        self.count["told"] += 1

    def kill(self, kind):
        """Kill the fit at its places: the next process ends with a right run, or finds one that is whole."""
        for number, place in list(enumerate(self.places[kind]))[:: self.every]:
            for newcomer in self.some(number // self.every):
                folder = self.work / f"{kind} {number} {newcomer}"
                first = Child(self.work, kind, folder)
                for _ in range(number):
                    first.step()
                assert first.at == place, (first.at, place)
                first.kill()
                child = Child(self.work, newcomer, folder)
                if (folder / DONE).exists():
                    self.is_told(child, folder, kind)
                else:
                    assert child.run() == [FITTED, ""], (place, newcomer, child.end)
                    self.is_right(folder, newcomer)
                self.count["killed"] += 1


def main(work, every):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    said = np.where(x[:, 0] + rng.normal(size=80) > 0, "yes", "no")
    pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": said}).to_csv(work / "t.csv", index=False)
    for kind, text in GOALS.items():
        (work / f"{kind}.toml").write_text(text)
    trial = Trial(work, every)
    sentence(RunFolderError("what it needs is loaded once"))
    gc.freeze()  # else its passes over all that was loaded copy the memory of every child
    for kind in MET:
        trial.meet(kind)
        trial.kill(kind)
    places = {kind: len(places) for kind, places in trial.places.items()}
    sys.stdout.write(json.dumps({"places": places, **trial.count}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
