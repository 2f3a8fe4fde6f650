"""Random sequences of public calls and commands on random tables, with invariants that must hold after each step.

Usage: python tools/fault_drill.py [--seconds 60] [--seed 0]

A *story* starts with a random table, model and goals, and takes random steps: choose again, save and load, pickle,
clone, move rows about, explain, audit, monitor in parts, write rules and apply them. One story in eight uses the
commands instead: fits that are killed, that meet a full disk or another process, reports and batches that come twice.

What must hold: decisions are equal after every round trip, row by row and in every order; goals hold on the selection
rows; an explanation names the decision; a batch counts once; a killed or failed command leaves what the next one can
use, and nothing that is half-written. An error is allowed where it is one of ours: a sentence with what to do. A
violation ends the drill with the seed of its story, which ``--seed`` with ``--stories 1`` plays again.
"""

import argparse
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals

GOALS = (
    "recall >= {high}",
    "false_positive_rate <= {middle}",
    "positive_rate <= {high}",
    "precision >= {middle}",
    "max_difference(positive_rate, by=group) <= {low}",
    "min_ratio(recall, by=group) >= {high}",
    "positive_rate(group=a) >= 0.7 * positive_rate(group=b)",
    "churn <= {middle}",
)
COMMANDS_EVERY = 8  # stories, of which one uses the commands, which take seconds each
GRACE = 300.0  # seconds after which a command hangs


class InvariantError(AssertionError):
    """Something that must hold does not."""


def must(holds: object, what: str) -> None:
    """Raise a violation unless something holds."""
    if not holds:
        raise InvariantError(what)


class Table:
    """A random table: numbers with ties and gaps, texts, groups, a deployed model, and labels of some type."""

    def __init__(self, rng: np.random.Generator) -> None:
        n = int(rng.integers(120, 500))
        numbers = rng.normal(size=(n, 3))
        numbers[:, 1] = rng.integers(0, 4, n)
        chance = 1 / (1 + np.exp(-1.5 * numbers[:, 0] - 0.5 * numbers[:, 1] + 1))
        self.group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.4, 0.1])
        labels = [[0, 1], ["no", "yes"], [False, True], [3, 7]][rng.integers(4)]
        self.y = np.array(labels)[(rng.uniform(size=n) < chance).astype(int)]
        self.baseline = np.where(rng.uniform(size=n) < 0.8, self.y, self.y[::-1])
        self.positive = labels[1]
        self.X = pd.DataFrame(numbers, columns=["x", "steps", "noise"]).assign(kind=rng.choice(["u", "v"], n))
        self.columns = {"sensitive_features": {"group": self.group}, "baseline": self.baseline}

    def rows(self, places: np.ndarray) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Return the features of some rows, with what decisions may need beside them."""
        columns = {"sensitive_features": {"group": self.group[places]}, "baseline": self.baseline[places]}
        return self.X.iloc[places], columns


def random_model(rng: np.random.Generator) -> Any:
    """Return a pipeline that is not fitted."""
    seed = int(rng.integers(1000))
    last = (
        LogisticRegression(),
        GaussianNB(),
        DecisionTreeClassifier(max_depth=3, random_state=seed),
        RandomForestClassifier(8, max_depth=3, random_state=seed),
        HistGradientBoostingClassifier(max_iter=8, random_state=seed),
    )[rng.integers(5)]
    encoded = make_column_transformer((OneHotEncoder(sparse_output=False), ["kind"]), remainder=StandardScaler())
    return make_pipeline(encoded, last)


def random_goals(rng: np.random.Generator) -> list[str]:
    """Return some goals with random bounds."""
    bounds = {"low": round(rng.uniform(0.05, 0.4), 3), "middle": round(rng.uniform(0.2, 0.7), 3)}
    bounds["high"] = round(rng.uniform(0.4, 0.9), 3)
    return [goal.format(**bounds) for goal in rng.choice(GOALS, rng.integers(0, 4), replace=False)]


class Story:
    """A model inside goals, and the steps that are taken with it."""

    def __init__(self, rng: np.random.Generator, folder: Path) -> None:
        self.rng, self.folder, self.table = rng, folder, Table(rng)
        options: dict[str, Any] = {
            "goals": random_goals(rng),
            "by": [(), cp.Groups("group", unknown="pool"), "baseline"][rng.integers(3)],
            "confidence": [None, 0.8][rng.integers(2)],
            "decision": ["fixed", "sticky", "vote"][rng.integers(3)],
            "deferral": [None, None, cp.Deferral(0.2)][rng.integers(3)],
            "cv": ["auto", 3][rng.integers(2)],
        }
        self.model = cp.GoalClassifier(random_model(rng), pos_label=self.table.positive, random_state=0, **options)
        self.places = np.arange(len(self.table.y))

    def start(self) -> bool:
        """Fit the model; return whether there is one inside the goals."""
        try:
            self.model.fit(self.table.X, self.table.y, **self.table.columns)
        except InfeasibleGoals as error:
            must(len(str(error)) > 20, "goals that conflict come without a sentence")
            self.model = self.model.rebalance(goals=[])  # of the models that are kept
        except ValueError as error:  # such as a group without rows that a goal or a rule needs
            must(len(str(error)) > 20, f"no sentence: {error}")
            return False
        self.decisions = self.decide(self.model)
        return True

    def decide(self, model: Any, places: np.ndarray | None = None) -> np.ndarray:
        """Return the decisions of a model about some rows."""
        X, columns = self.table.rows(self.places if places is None else places)
        return np.asarray(model.predict(X, **columns))

    def same(self, model: Any, after: str) -> None:
        """Check that a model decides as this one."""
        must((self.decide(model) == self.decisions).all(), f"decisions differ after {after}")

    def rebalance(self) -> None:
        """Choose again inside other goals."""
        try:
            self.model = self.model.rebalance(goals=random_goals(self.rng))
        except ValueError as error:  # goals that conflict, or that ask about rows that are not there
            must(len(str(error)) > 20, f"no sentence: {error}")
            return
        self.decisions = self.decide(self.model)

    def goals_hold(self) -> None:
        """Check the goals on the selection rows."""
        for check in self.model.check_goals():
            must(check.holds, f"{check} on the selection rows")

    def save(self) -> None:
        """Go through a file."""
        path = self.folder / "model.cp"
        cp.save(self.model, path)
        loaded = cp.load(path)
        self.same(loaded, "save and load")
        self.model = loaded

    def pickled(self) -> None:
        """Go through a pickle."""
        self.same(pickle.loads(pickle.dumps(self.model)), "pickling")  # noqa: S301 - our own

    def cloned(self) -> None:
        """Fit a clone on the same rows: it decides as the first fit does."""
        first = clone(self.model)
        try:
            one = first.fit(self.table.X, self.table.y, **self.table.columns)
            two = clone(first).fit(self.table.X, self.table.y, **self.table.columns)
        except ValueError:
            return
        must((self.decide(one) == self.decide(two)).all(), "two fits on the same rows decide differently")

    def moved_rows(self) -> None:
        """Decide about rows in another order, twice, and one at a time."""
        order = self.rng.permutation(self.places)
        must((self.decide(self.model, order) == self.decisions[order]).all(), "decisions depend on the order of rows")
        few = np.repeat(self.rng.choice(self.places, 3), 2)
        alone = np.concatenate([self.decide(self.model, few[[place]]) for place in range(few.size)])
        must((alone == self.decisions[few]).all(), "decisions depend on the other rows of a batch")

    def explained(self) -> None:
        """Check that explanations name the decisions."""
        X, columns = self.table.rows(self.places[:20])
        named = [one.decision for one in self.model.explain(X, **columns)]
        must(list(named) == list(self.decisions[:20]), "an explanation names another decision")

    def chances(self) -> None:
        """Check that decisions are possible ones."""
        X, columns = self.table.rows(self.places)
        chances = self.model.decision_proba(X, **columns)
        must(np.allclose(chances.sum(axis=1), 1.0), "probabilities of decisions do not add up to 1")
        classes = list(self.model.classes_)
        known = [place for place in self.places if self.decisions[place] in classes]
        given = chances[known, [classes.index(self.decisions[place]) for place in known]]
        must((given > 0).all(), "a decision has probability 0")

    def audited(self) -> None:
        """Audit the decisions: an estimate lies in its interval."""
        goals = [goal for goal in random_goals(self.rng) if "churn" not in goal] or ["recall >= 0.5"]
        defer = None if self.model.deferral is None else self.model.deferral.label
        options = {"pos_label": self.table.positive, "defer_label": defer, "classes": self.model.classes_}
        for one in cp.audit(
            goals, self.decisions, self.table.y, sensitive_features={"group": self.table.group}, **options
        ):
            is_inside = one.low <= one.estimate <= one.high or (np.isnan(one.estimate) and one.note)
            must(not one.has_estimate or is_inside, f"{one}: the estimate is outside")

    def monitored(self) -> None:
        """Watch the decisions in one batch and in parts: the same counts, and the same estimates."""
        defer = None if self.model.deferral is None else self.model.deferral.label
        options = {"classes": self.model.classes_, "pos_label": self.table.positive, "defer_label": defer}
        parts = np.array_split(self.places, int(self.rng.integers(2, 5)))
        whole, split = (cp.Monitor(["recall >= 0.5", "positive_rate <= 0.9"], **options) for _ in range(2))
        for monitor, batches in ((whole, [self.places]), (split, parts)):
            for rows in batches:
                monitor.update(self.decisions[rows], self.table.y[rows])
        for one, two in zip(whole.verdicts, split.verdicts, strict=True):
            must(np.isclose(one.estimate, two.estimate, equal_nan=True), "a monitor's estimate depends on its batches")

    def tell(self) -> int:
        """Take random steps and return how many."""
        if not self.start():
            return 0
        steps = (
            self.rebalance, self.goals_hold, self.save, self.pickled, self.cloned,
            self.moved_rows, self.explained, self.chances, self.audited, self.monitored,
        )  # fmt: skip
        taken = self.rng.integers(0, len(steps), int(self.rng.integers(3, 9)))
        for step in taken:
            steps[step]()
            TAKEN[steps[step].__name__] += 1
        return len(taken)


class CommandStory:
    """A run folder, and commands that are killed, meet a full disk, or one another."""

    def __init__(self, rng: np.random.Generator, folder: Path) -> None:
        self.rng, self.folder, table = rng, folder, Table(rng)
        data = table.X.assign(group=table.group, y=table.y)
        data.to_csv(folder / "rows.csv", index=False)
        data.sample(frac=0.3, random_state=0).to_csv(folder / "batch.csv", index=False)
        positive = json.dumps(str(table.positive)) if isinstance(table.positive, str) else str(table.positive).lower()
        (folder / "goals.toml").write_text(
            f'goals = ["positive_rate <= 0.9"]\nconfidence = "none"\n[data]\nfiles = "rows.csv"\ntarget = "y"\n'
            f'positive = {positive}\ngroups = ["group"]\n[method]\nname = "goals"\n'
            '[[method.models]]\nname = "naive_bayes"\n[[method.models]]\nname = "logistic"\n',
            encoding="utf-8",
        )

    def begin(self, *arguments: str, largest_file: int | None = None) -> subprocess.Popen[str]:
        """Start a command; a disk is full where a file would be larger than so many bytes."""

        def limit() -> None:
            if largest_file is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writing raises an error
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

        return subprocess.Popen(
            [sys.executable, "-m", "counterpoise", *arguments],
            cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit,  # noqa: PLW1509
        )  # fmt: skip

    def end(self, command: subprocess.Popen[str], *, may_fail: bool = False) -> str:
        """Wait for a command, and return what it printed."""
        out, errors = command.communicate(timeout=GRACE)
        must("Traceback" not in errors, f"{command.args} shows a traceback: {errors}")
        must(may_fail or command.returncode == 0, f"{command.args} fails: {errors or out}")
        return out

    def do(self, *arguments: str, **limits: Any) -> str:
        """Run a command to its end."""
        may_fail = "largest_file" in limits
        return self.end(self.begin(*arguments, **limits), may_fail=may_fail)

    def tell(self) -> int:
        """Kill and starve fits, then go on, and compare with a run that nothing disturbed."""
        for _ in range(int(self.rng.integers(0, 3))):
            command = self.begin("fit", "goals.toml", "-o", "run", "--quiet")
            time.sleep(float(self.rng.uniform(0.3, 6.0)))
            command.kill()
            command.communicate()
            TAKEN["killed fit"] += 1
        if self.rng.uniform() < 0.5:
            self.do("fit", "goals.toml", "-o", "run", "--quiet", largest_file=int(self.rng.integers(0, 40_000)))
            TAKEN["full disk"] += 1
        if self.rng.uniform() < 0.5:
            both = [self.begin("fit", "goals.toml", "-o", "run", "--quiet") for _ in range(2)]
            for command in both:
                self.end(command, may_fail=True)
            TAKEN["two at once"] += 1
        self.do("fit", "goals.toml", "-o", "run", "--quiet")
        self.do("fit", "goals.toml", "-o", "other", "--quiet")
        decisions = []
        for run in ("run", "other"):
            self.do("predict", run, "rows.csv", "-o", f"{run}.csv", "--quiet")
            decisions.append((self.folder / f"{run}.csv").read_bytes())
        must(decisions[0] == decisions[1], "a run that was disturbed decides differently")
        self.do("report", "run", "--quiet")
        first = self.do("monitor", "run", "batch.csv", "--json")
        monitors = [self.begin("monitor", "run", "batch.csv", "--json") for _ in range(2)]
        for command in monitors:
            must(json.loads(self.end(command))["goals"] == json.loads(first)["goals"], "a batch is counted twice")
        left = [path.name for path in self.folder.rglob("*") if path.name.endswith((".tmp", ".part", ".partial"))]
        must(not left, f"left behind: {', '.join(left)}")
        TAKEN["command story"] += 1
        return 7


TAKEN: Counter[str] = Counter()


def main() -> None:
    """Tell stories until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first story")
    parser.add_argument("--stories", type=int, default=sys.maxsize, help="at most so many")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    begin, n_steps, number = time.monotonic(), 0, options.seed
    while time.monotonic() - begin < options.seconds and number - options.seed < options.stories:
        rng = np.random.default_rng(number)
        kind = CommandStory if number % COMMANDS_EVERY == COMMANDS_EVERY - 1 and os.name == "posix" else Story
        with tempfile.TemporaryDirectory() as folder:
            try:
                n_steps += kind(rng, Path(folder)).tell()
            except Exception:  # noqa: BLE001 - whatever it is, the seed is needed
                traceback.print_exc()
                sys.exit(f"The story of seed {number} failed: python tools/fault_drill.py --seed {number} --stories 1")
        number += 1
    steps = ", ".join(f"{name} {count}" for name, count in sorted(TAKEN.items()))
    minutes, busy = (time.monotonic() - begin) / 60, sum(os.times()[:4]) / 60  # those of commands too
    took = f"{minutes:.1f} minutes, {busy:.1f} of processor time"
    print(f"{number - options.seed} stories, {n_steps} steps, {took}, no violation: {steps}")


if __name__ == "__main__":
    main()
