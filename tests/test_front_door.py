"""The front door needs no compiler: it works in a process in which importing numba, llvmlite and daqp fails."""

import os
import subprocess
import sys

import pytest

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""
COMPILERS = {"numba", "llvmlite", "daqp"}
PYTHON = {"numba", "llvmlite", "daqp", "filelock", "pandas"}

RULES = """
import numpy as np
from pathlib import Path
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Perceptron
import counterpoise as cp

X, y = make_classification(1200, 6, n_informative=4, flip_y=0.1, random_state=0)
rng = np.random.default_rng(0)
columns = {"sensitive_features": {"sex": np.where(rng.random(1200) < 0.4, "F", "M")}}
how = {"cv": 2, "random_state": 0}
recall, parity = "recall >= 0.6", "max_difference(selection_rate, by=sex) <= 0.2"

plain = cp.GoalClassifier(LogisticRegression(), goals=[recall, "selection_rate <= 0.7"], **how).fit(X, y)
groups = cp.GoalClassifier(LogisticRegression(), goals=[recall, parity], by="sex", **how).fit(X, y, **columns)
deferral = cp.GoalClassifier(LogisticRegression(), goals=recall, deferral=cp.Deferral(cost=0.2), **how).fit(X, y)
proof = cp.GoalClassifier(LogisticRegression(), goals=recall, confidence=cp.Proof(0.9), **how).fit(X, y)
cp.GoalClassifier([LogisticRegression(), Perceptron()], goals=recall, **how).fit(X, y, sample_weight=rng.random(1200))
money = cp.GoalClassifier(LogisticRegression(), goals="cost({0->1: 1, 1->0: 5}) <= 1.0", **how)
money.fit(X, y, ids=np.arange(1200) // 2)
drawn = cp.GoalClassifier(LogisticRegression(), goals=recall, decision="sticky", **how).fit(X, y)
drawn.predict(X[:5], ids=range(5))
try:
    cp.GoalClassifier(LogisticRegression(), goals=["recall >= 0.99", "selection_rate <= 0.1"], **how).fit(X, y)
except cp.goals.InfeasibleGoals as error:
    print("nearest bounds" in str(error))
plain.rebalance(goals="recall >= 0.7")
plain.explain(X[:2])
cp.tradeoff(plain, "recall >= 0.5")
cp.alternatives(groups)
for name, model in {"plain": plain, "groups": groups, "deferral": deferral, "proof": proof}.items():
    cp.save(model, Path(folder) / name)
    again = cp.load(Path(folder) / name)
    given = columns if name == "groups" else {}
    print(np.array_equal(again.predict(X, **given), model.predict(X, **given)))
"""
CLASSES = """
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
import counterpoise as cp

X, y = make_classification(1200, 8, n_informative=6, n_classes=3, random_state=0)
how = {"cv": 2, "random_state": 0}
plain = cp.GoalClassifier(LogisticRegression(), goals="recall(of=1) >= 0.5", **how).fit(X, y)
print(sorted(set(plain.predict(X).tolist())))
deferral = cp.GoalClassifier(LogisticRegression(), goals="recall(of=0) >= 0.4", deferral=cp.Deferral(cost=0.3), **how)
deferral.fit(X, y).predict(X)
try:
    cp.GoalClassifier(LogisticRegression(), goals=["recall(of=0) >= 0.99", "recall(of=1) >= 0.99"], **how).fit(X, y)
except cp.goals.InfeasibleGoals as error:
    print("least total violation" in str(error))
"""
MEASURES = """
import numpy as np
import counterpoise as cp

rng = np.random.default_rng(0)
y, decisions, sex = rng.integers(0, 2, 600), rng.integers(0, 2, 600), np.where(rng.random(600) < 0.5, "F", "M")
print("holds" in str(cp.audit(["recall >= 0.3"], y, decisions)))
cp.impact_ratios(decisions, sensitive_features={"sex": sex})
cp.plan("recall >= 0.6", scores=cp.AssumedScores(base_rate=0.3, recall=0.8, false_positive_rate=0.2))
cp.Monitor("recall >= 0.3").update(decisions, y)
cp.metrics.cvar_loss((y != decisions).astype(float), 0.5)
"""
SENTENCES = """
import counterpoise as cp
from sklearn.linear_model import LogisticRegression

class Untrained(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        raise AssertionError("trained before the packages were asked for")

def sentence(call):
    try:
        call()
    except ModuleNotFoundError as error:
        print(error)

sentence(lambda: cp.ConstrainedClassifier)
sentence(lambda: cp.LPBoostClassifier)
tail = cp.GoalClassifier(Untrained(), goals="recall >= 0.5", alpha=0.1, decision="sticky")
sentence(lambda: tail.fit([[0.0], [1.0]] * 50, [0, 1] * 50))
"""

COMMANDS = """
import contextlib, io
import numpy as np
from counterpoise.cli import main
from counterpoise.datasets import loans
from counterpoise.explorer import session_of_run

frame = loans(3000, random_state=0)[0]
outcomes = (frame["default"] == "yes").to_numpy()
frame["p"], frame["id"] = 0.3 * outcomes + 0.7 * np.random.default_rng(0).random(3000), range(3000)
frame.to_csv("loans.csv", index=False)

def call(*words):
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()) as wrong:
        status = main([*words])
    if status:
        print(*words, said.getvalue(), wrong.getvalue())

call("init", "loans.csv", "--target", "default", "--groups", "sex", "-o", "init.toml")
with open("goals.toml", "w") as file:
    file.write('''
goals = ["recall >= 0.5", "false_positive_rate <= 0.5"]
[data]
files = "loans.csv"
target = "default"
drop = ["p", "id"]
[method]
name = "goals"
models = [{name = "logistic"}]
''')
call("fit", "goals.toml", "-o", "run", "--quiet")
call("explain", "run", "loans.csv")
call("predict", "run", "loans.csv", "-o", "predicted.csv")
call("audit", "run")
call("report", "run")
call("goals", "recall >= 0.8")
call("data", "list")
assumed = ["--base-rate", "0.3", "--recall", "0.8", "--false-positive-rate", "0.1"]
call("plan", "--goal", "recall >= 0.7", *assumed, "--rows", "300")
scores = ["--target", "default", "--score", "p", "--positive", "yes"]
call("choose", "loans.csv", *scores, "--goal", "recall >= 0.6", "--by", "sex", "-o", "rules.json", "--quiet")
call("apply", "rules.json", "loans.csv", "--ids", "id", "-o", "decisions.csv", "--quiet")
session = session_of_run("run")
print(session.answer(session.start)["kind"])
"""


def run(code, blocked, folder):
    """Return what code prints in a process in which some packages cannot be imported."""
    code = f"{BLOCK.format(blocked=blocked)}\nfolder = {str(folder)!r}\n{code}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"MPLBACKEND": "agg"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_rules_of_two_classes_are_chosen_explained_and_kept(tmp_path):
    assert run(RULES, PYTHON, tmp_path) == ["True"] * 5


def test_rules_of_many_classes_are_chosen(tmp_path):
    assert run(CLASSES, PYTHON, tmp_path) == ["[0, 1, 2]", "True"]


def test_decisions_are_audited_planned_and_watched(tmp_path):
    assert run(MEASURES, PYTHON, tmp_path) == ["True"]


def test_what_needs_a_compiler_says_what_to_install_before_anything_is_trained(tmp_path):
    lines = run(SENTENCES, PYTHON, tmp_path)
    assert len(lines) == 3
    assert all('pip install "counterpoise[boosting]"' in line for line in lines)


@pytest.mark.slow
def test_commands_and_the_explorer_work_on_a_run(tmp_path):
    assert run(COMMANDS, COMPILERS, tmp_path) == ["answer"]
