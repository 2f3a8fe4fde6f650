"""A fit that was interrupted at any moment and goes on ends as if it had not been."""

import shutil
import subprocess
import sys

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from interrupted import MAIL, SEX, VALIDATION, WEIGHTS, Interrupted, X, Y, ada, after, lp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from counterpoise import Stopping, persist
from counterpoise.boosting.callbacks import ProgressBar
from counterpoise.boosting.checkpoint import Checkpoint, UnusableCheckpoint
from counterpoise.goals import InfeasibleGoals, Table
from counterpoise.learners import HistogramTree, NetworkLearner
from counterpoise.theory.risks import KL
from tests.tiers import slow

INSIDE = {"sensitive_features": {"sex": SEX}, "datasets": {"mail": MAIL}}
VALIDATION_INSIDE = {**VALIDATION, "sensitive_features_val": {"sex": SEX[160:]}}
PARITY = "positive_rate(sex=F) >= 0.7 * positive_rate(sex=M)"
GOALS = [PARITY, "churn(mail) <= 0.3"]


def assert_same(one, other):
    """Compare all that is fitted, bit for bit."""
    rows = X[:, : one.n_features_in_]
    assert_same_models(one.estimators_, other.estimators_, rows)
    for name in ("weighted_losses_", "mixture_", "value_", "gap_", "multipliers_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.selection_.losses, other.selection_.losses)
    np.testing.assert_array_equal(one.predict(rows), other.predict(rows))


def assert_same_models(some, others, rows):
    for one, other in zip(some, others, strict=True):
        assert type(one) is type(other)
        np.testing.assert_array_equal(one.predict(rows), other.predict(rows))
        if isinstance(one, HistogramTree):
            assert joblib.hash(one) == joblib.hash(other)  # of all that it holds
        else:
            np.testing.assert_array_equal(one.predict_proba(rows), other.predict_proba(rows))


BOOSTERS = {
    "hedge": (ada(), {}),
    "hedge, eta given": (ada(eta=1.0), {}),
    "groups": (ada(reweigh="groups", alpha=None), {"sensitive_features": SEX}),
    "goals": (ada(goals=[PARITY]), {"sensitive_features": {"sex": SEX}}),
    "weights, some zero": (ada(), {"sample_weight": WEIGHTS}),
    "outliers": (ada(outlier_fraction=0.05), {}),
    "rows set aside": (ada(stopping=Stopping(validation_fraction=0.3)), {}),
    "validation rows": (ada(), VALIDATION),
    "validation rows in groups": (
        ada(reweigh="groups", alpha=None),
        {**VALIDATION, "sensitive_features": SEX, "sensitive_features_val": SEX[160:]},
    ),
    "patience": (ada(n_estimators=30, stopping=Stopping(patience=3, validation_fraction=0.3)), {}),
    "dual": (lp(), {}),
    "dual, target": (lp(n_estimators=30, target=0.5), {}),
    "dual, patience": (lp(n_estimators=30, stopping=Stopping(patience=3)), VALIDATION),
    "regularized": (lp(beta=60.0), {}),
    "regularized by theory": (lp(beta="theory"), {}),
    "regularized, outliers": (lp(beta=60.0, outlier_fraction=0.05), {}),
    "regularized, rows set aside": (lp(beta=60.0, stopping=Stopping(validation_fraction=0.3)), {}),
    "inside goals": (lp(goals=GOALS, alpha=1.0), INSIDE),
    "inside goals, tail": (lp(goals=GOALS, alpha=0.4, outlier_fraction=0.05), INSIDE),
    "inside goals, rows set aside": (lp(goals=GOALS, stopping=Stopping(validation_fraction=0.3)), INSIDE),
    "inside goals, folds": (lp(goals=GOALS, stopping=Stopping(n_folds=2), alpha=None, objective=KL(0.2)), INSIDE),
    "inside goals, target": (lp(goals=GOALS, alpha=0.2, n_estimators=30, target=0.45), INSIDE),
    "inside goals, patience": (
        lp(goals=GOALS, n_estimators=30, stopping=Stopping(patience=3)),
        {**INSIDE, **VALIDATION_INSIDE},
    ),
    "scikit-learn tree": (ada(DecisionTreeClassifier(max_depth=3, max_features=2)), {}),
    "scikit-learn pipeline": (ada(make_pipeline(StandardScaler(), LogisticRegression())), {}),
    "resampled": (ada(LinearDiscriminantAnalysis()), {}),
}


FAST = ("weights, some zero", "patience", "dual", "regularized", "inside goals", "inside goals, folds")


@pytest.mark.parametrize("case", [one if one in FAST else slow(one) for one in BOOSTERS])
def test_going_on_ends_as_if_never_interrupted(case, tmp_path):
    booster, data = BOOSTERS[case]
    whole = clone(booster).fit(X, Y, **data)
    for number in (1, min(4, len(whole.estimators_) - 1)):
        interrupted = clone(booster).set_params(checkpoint=tmp_path, callbacks=[after(number)])
        with pytest.raises(Interrupted):
            interrupted.fit(X, Y, **data)
        assert Checkpoint(tmp_path).rounds_done() == number
    numbers = []
    resumed = clone(booster).set_params(checkpoint=tmp_path, callbacks=[lambda done: numbers.append(done.number)])
    assert_same(resumed.fit(X, Y, **data), whole)
    assert numbers == list(range(number + 1, len(whole.estimators_) + 1))
    assert Checkpoint(tmp_path).rounds_done() == len(whole.estimators_)
    numbers.clear()
    assert_same(resumed.fit(X, Y, **data), whole)  # all of it is there: nothing is fitted
    assert numbers == []


def test_the_cases_that_stop_early_do_stop():
    for case in ("patience", "dual, target", "dual, patience", "inside goals, target", "inside goals, patience"):
        booster, data = BOOSTERS[case]
        assert 4 < len(clone(booster).fit(X, Y, **data).estimators_) < 30


@pytest.mark.parametrize("case", ["patience", "dual, patience"])
def test_patience_counts_the_rounds_before_the_interruption(case, tmp_path):
    booster, data = BOOSTERS[case]
    whole = clone(booster).fit(X, Y, **data)
    last_but_one = after(len(whole.estimators_) - 1)
    with pytest.raises(Interrupted):
        clone(booster).set_params(checkpoint=tmp_path, callbacks=[last_but_one]).fit(X, Y, **data)
    assert_same(clone(booster).set_params(checkpoint=tmp_path).fit(X, Y, **data), whole)


def test_what_rounds_inside_goals_depend_on_is_told(tmp_path):
    lp(goals=GOALS, checkpoint=tmp_path).fit(X, Y, **INSIDE)
    with pytest.raises(UnusableCheckpoint, match=r"other settings \(goals was .*churn\(mail\) <= 0\.3"):
        lp(goals=[PARITY], checkpoint=tmp_path).fit(X, Y, **INSIDE)
    other = {"mail": Table(MAIL.X, baseline=1 - MAIL.baseline)}
    with pytest.raises(UnusableCheckpoint, match=r"other data \(baseline of dataset mail was"):
        lp(goals=GOALS, checkpoint=tmp_path).fit(X, Y, **INSIDE | {"datasets": other})


def test_goals_out_of_reach_are_so_again_after_an_interruption(tmp_path):
    wanted = [*GOALS, "error_rate <= 0.01"]
    with pytest.raises(InfeasibleGoals) as whole:
        lp(goals=wanted, n_estimators=30).fit(X, Y, **INSIDE)
    with pytest.raises(Interrupted):
        lp(goals=wanted, n_estimators=30, checkpoint=tmp_path, callbacks=[after(2)]).fit(X, Y, **INSIDE)
    with pytest.raises(InfeasibleGoals) as resumed:
        lp(goals=wanted, n_estimators=30, checkpoint=tmp_path).fit(X, Y, **INSIDE)
    assert str(resumed.value) == str(whole.value)
    assert_same_models(resumed.value.closest.estimators_, whole.value.closest.estimators_, X)
    np.testing.assert_array_equal(resumed.value.closest.mixture_, whole.value.closest.mixture_)


def test_a_random_state_object_is_told_by_what_is_drawn_from_it(tmp_path):
    whole = ada(random_state=np.random.RandomState(3)).fit(X, Y)
    with pytest.raises(Interrupted):
        ada(random_state=np.random.RandomState(3), checkpoint=tmp_path, callbacks=[after(2)]).fit(X, Y)
    assert_same(ada(random_state=np.random.RandomState(3), checkpoint=tmp_path).fit(X, Y), whole)
    with pytest.raises(UnusableCheckpoint, match="random_state was"):
        ada(random_state=np.random.RandomState(4), checkpoint=tmp_path).fit(X, Y)


@pytest.mark.parametrize("settings", [{}, {"stopping": Stopping(validation_fraction=0.3)}])
def test_what_the_system_drew_is_drawn_again(settings, tmp_path):
    """Without random_state the seeds, the split and the key of the draws are those of the first fit."""
    settings |= {"random_state": None, "estimator": DecisionTreeClassifier(max_depth=2, max_features=1)}
    whole = ada(**settings, checkpoint=tmp_path / "whole").fit(X, Y)
    shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    for number in range(4, 8):
        (tmp_path / "killed" / f"round-{number:05}.cp").unlink()
    resumed = ada(**settings, checkpoint=tmp_path / "killed").fit(X, Y)
    assert_same(resumed, whole)
    again = ada(**settings).fit(X, Y)
    assert any((again.estimators_[i].predict(X) != whole.estimators_[i].predict(X)).any() for i in range(7))


def test_data_frames_sparse_matrices_and_more_classes_go_on(tmp_path):
    pandas = pytest.importorskip("pandas", reason="data frames")
    features, labels = load_iris(return_X_y=True)
    frame = pandas.DataFrame(features, columns=["a", "b", "c", "d"]).assign(e=pandas.Categorical(["x", "y"] * 75))
    steps = make_pipeline(StandardScaler().set_output(transform="default"), LogisticRegression(max_iter=500))
    for name, rows in (("frame", frame[["a", "b", "c", "d"]]), ("sparse", sp.csr_matrix(features))):
        booster = ada(steps if name == "frame" else DecisionTreeClassifier(max_depth=1), decision="vote")
        whole = clone(booster).fit(rows, labels)
        folder = tmp_path / name
        with pytest.raises(Interrupted):
            clone(booster).set_params(checkpoint=folder, callbacks=[after(2)]).fit(rows, labels)
        resumed = clone(booster).set_params(checkpoint=folder).fit(rows, labels)
        assert_same_models(resumed.estimators_, whole.estimators_, rows)
        np.testing.assert_array_equal(resumed.predict_proba(rows), whole.predict_proba(rows))


def test_more_rounds_are_those_of_a_longer_fit(tmp_path):
    ada(eta=1.0, n_estimators=3, checkpoint=tmp_path).fit(X, Y)
    assert_same(ada(eta=1.0, checkpoint=tmp_path).fit(X, Y), ada(eta=1.0).fit(X, Y))


def test_fewer_rounds_are_the_first_of_them(tmp_path):
    ada(eta=1.0, checkpoint=tmp_path).fit(X, Y)
    assert_same(ada(eta=1.0, n_estimators=3, checkpoint=tmp_path).fit(X, Y), ada(eta=1.0, n_estimators=3).fit(X, Y))
    assert Checkpoint(tmp_path).rounds_done() == 7


@pytest.mark.parametrize(
    "booster", [ada(n_estimators=3), lp(beta=60.0, n_estimators=3, stopping=Stopping(validation_fraction=0.3))]
)
def test_fit_more_is_saved_and_restored(booster, tmp_path):
    whole = clone(booster).fit(X, Y).fit_more(4)
    first = clone(booster).set_params(checkpoint=tmp_path).fit(X, Y)
    first.callbacks = [after(5)]
    with pytest.raises(Interrupted):
        first.fit_more(4)
    assert Checkpoint(tmp_path).rounds_done() == 5
    assert_same(clone(booster).set_params(checkpoint=tmp_path).fit(X, Y).fit_more(4), whole)
    assert Checkpoint(tmp_path).rounds_done() == 7


def test_fit_more_needs_the_rounds_before_it_in_the_folder(tmp_path):
    model = ada().fit(X, Y).set_params(checkpoint=tmp_path / "late")
    with pytest.raises(UnusableCheckpoint, match=r"holds 0 of the 7 rounds so far.*or set it to None"):
        model.fit_more(1)
    assert len(model.set_params(checkpoint=None).fit_more(1).estimators_) == 8


def test_goals_that_failed_can_be_others_on_the_same_rounds(tmp_path):
    columns = {"sensitive_features": {"sex": SEX}}
    with pytest.raises(InfeasibleGoals):
        ada(goals=["recall >= 0.99", "positive_rate <= 0.01"], checkpoint=tmp_path).fit(X, Y, **columns)
    model = ada(goals=[PARITY], checkpoint=tmp_path, callbacks=[after(7)], n_jobs=2).fit(X, Y, **columns)
    assert_same(model, ada(goals=[PARITY]).fit(X, Y, **columns))


def test_a_stop_by_a_callback_is_an_interruption(tmp_path):
    stopped = ada(checkpoint=tmp_path, callbacks=[lambda done: done.number == 3]).fit(X, Y)
    assert len(stopped.estimators_) == 3
    assert_same(ada(checkpoint=tmp_path).fit(X, Y), ada().fit(X, Y))


def test_a_saved_model_names_the_folder_as_text(tmp_path):
    model = ada(n_estimators=2, checkpoint=tmp_path).fit(X, Y)
    again = persist.loads(persist.dumps(model))
    assert again.checkpoint == str(tmp_path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_progress_bar_begins_after_the_rounds_that_are_restored(tmp_path):
    pytest.importorskip("rich", reason="the progress bar")
    with pytest.raises(Interrupted):
        ada(checkpoint=tmp_path, callbacks=[after(4)]).fit(X, Y)
    with ProgressBar(7) as bar:
        seen = []
        ada(checkpoint=tmp_path, callbacks=[lambda _: seen.append(bar.n_rounds), bar]).fit(X, Y)
        task = bar._progress.tasks[0]
    assert seen == [4, 5, 6]
    assert (bar.n_rounds, task.completed, task.total) == (7, 7, 7)
    assert task.description.startswith("round 7, loss 0.")
    with ProgressBar(7) as bar:
        ada(checkpoint=tmp_path, callbacks=[bar]).fit(X, Y)
        assert bar._progress.tasks[0].description == "restored 7 rounds"


class Warmed:
    """Binned rows, with what is learned once for all rounds."""

    def __init__(self, binned):
        self.binned, self.shared = binned, None


class WarmedTree(HistogramTree):
    """A tree that starts from what the first round drew, as a network does from its warm-up."""

    def __init__(self, *, max_depth=2, random_state=None):
        super().__init__(max_depth=max_depth)
        self.random_state = random_state

    def prepare(self, X):
        return Warmed(super().prepare(X))

    def fit_codes(self, prepared, codes, classes, weights):
        if prepared.shared is None:
            prepared.shared = {"tilt": np.random.default_rng(self.random_state).random(len(codes))}
        self.__class__ = HistogramTree  # which can be saved
        return self.fit_codes(prepared.binned, codes, classes, weights * prepared.shared["tilt"])


def test_what_the_learner_shares_between_rounds_is_restored(tmp_path):
    whole = ada(WarmedTree()).fit(X, Y)
    with pytest.raises(Interrupted):
        ada(WarmedTree(), checkpoint=tmp_path, callbacks=[after(2)]).fit(X, Y)
    written = (tmp_path / "shared.cp").stat().st_mtime_ns
    assert_same(ada(WarmedTree(), checkpoint=tmp_path).fit(X, Y), whole)
    assert (tmp_path / "shared.cp").stat().st_mtime_ns == written
    (tmp_path / "shared.cp").unlink()
    with pytest.raises(UnusableCheckpoint, match=r"lacks shared\.cp, from which its rounds were trained"):
        ada(WarmedTree(), checkpoint=tmp_path).fit(X, Y)


def test_what_was_shared_by_no_round_is_written_anew(tmp_path):
    """A kill between the two files leaves what the next fit, on a GPU, need not learn again bit for bit."""
    ada(WarmedTree(), checkpoint=tmp_path).fit(X, Y)
    shared = (tmp_path / "shared.cp").read_bytes()
    for path in tmp_path.glob("round-*.cp"):
        path.unlink()
    (tmp_path / "shared.cp").write_bytes(b"of another fit")
    assert_same(ada(WarmedTree(), checkpoint=tmp_path).fit(X, Y), ada(WarmedTree()).fit(X, Y))
    assert (tmp_path / "shared.cp").read_bytes() == shared


def test_networks_go_on_from_the_same_warm_up(tmp_path):
    pytest.importorskip("torch", reason="networks")
    network = NetworkLearner(n_iterations=5, warmup_epochs=1, batch_size=32, decay_at=(), device="cpu")
    whole = ada(network, n_estimators=4).fit(X, Y)
    with pytest.raises(Interrupted):
        ada(network, n_estimators=4, checkpoint=tmp_path, callbacks=[after(2)]).fit(X, Y)
    assert (tmp_path / "shared.cp").exists()
    resumed = ada(network, n_estimators=4, checkpoint=tmp_path).fit(X, Y)
    assert_same(resumed, whole)
    assert [joblib.hash(model.state_) for model in resumed.estimators_] == [
        joblib.hash(model.state_) for model in whole.estimators_
    ]


# One process that forks the fits: what takes long is the import. A timer of the child's own processor time ends it.
SCRIPT = """
import os, random, signal, sys, joblib, numpy as np
from sklearn.datasets import make_classification
from counterpoise import Checkpoint, LPBoostClassifier, Stopping
from counterpoise.learners import HistogramTree

folder, result = sys.argv[1:]
X, y = make_classification(240, 6, n_informative=4, flip_y=0.1, class_sep=0.7, random_state=0)
model = LPBoostClassifier(HistogramTree(max_depth=2), n_estimators=40, alpha=0.3, beta=60.0,
                          stopping=Stopping(validation_fraction=0.3), random_state=0, checkpoint=folder)

def end_soon():
    signal.setitimer(signal.ITIMER_PROF, moments.uniform(1e-6, 0.01))

def on_round(done):
    if done.number == aim:
        end_soon()
    if done.number == aim + 3:  # at the latest
        os.kill(os.getpid(), signal.SIGKILL)

moments, n_killed = random.Random(0), 0
while n_killed < 5:
    begun = Checkpoint(folder).rounds_done()
    aim = begun + moments.randrange(4)
    if not os.fork():
        if aim == begun:
            end_soon()
        model.set_params(callbacks=[on_round]).fit(X, y)
        os._exit(0)
    end = os.waitstatus_to_exitcode(os.wait()[1])
    assert end <= 0, "the fit failed"  # and would again and again
    n_killed += -end in (signal.SIGPROF, signal.SIGKILL)
n_rounds = Checkpoint(folder).rounds_done()
model.fit(X, y)
np.savez(result, mixture=model.mixture_, weighted=model.weighted_losses_, losses=model.selection_.losses,
         models=[joblib.hash(tree) for tree in model.estimators_], predicted=model.predict(X),
         n_killed=n_killed, n_rounds_then=n_rounds)
"""


@pytest.mark.slow
def test_a_fit_killed_again_and_again_ends_as_if_it_had_not_been(tmp_path):
    """Five kills at random moments: a random number of rounds after the last, somewhere in the next three."""
    result = tmp_path / "result.npz"
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "checkpoint"), str(result)], check=True)
    whole = lp(beta=60.0, stopping=Stopping(validation_fraction=0.3), n_estimators=40).fit(X, Y)
    with np.load(result) as found:
        np.testing.assert_array_equal(found["mixture"], whole.mixture_)
        np.testing.assert_array_equal(found["weighted"], whole.weighted_losses_)
        np.testing.assert_array_equal(found["losses"], whole.selection_.losses)
        np.testing.assert_array_equal(found["predicted"], whole.predict(X))
        assert found["models"].tolist() == [joblib.hash(model) for model in whole.estimators_]
        assert found["n_killed"] == 5
        assert 0 < found["n_rounds_then"] < 40
    assert Checkpoint(tmp_path / "checkpoint").rounds_done() == 40
