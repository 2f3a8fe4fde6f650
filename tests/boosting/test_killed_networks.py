"""Boosted networks survive SIGKILL: five kills at random moments, then the same losses, networks and mixture."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks")

# One process that forks the fits, before torch has started any thread: what takes long is the import.
SCRIPT = """
import hashlib, os, random, signal, sys
import numpy as np
from sklearn.datasets import load_digits
from counterpoise import AdaLPBoostClassifier, Stopping
from counterpoise.boosting.checkpoint import Checkpoint
from counterpoise.learners import NetworkLearner

folder, result = sys.argv[1:]
X, y = load_digits(return_X_y=True)
X, y = X[:300], y[:300]
network = NetworkLearner(n_iterations=20, warmup_epochs=1, batch_size=32, decay_at=(15,), device="cpu")

def fitted(checkpoint, callbacks=()):
    model = AdaLPBoostClassifier(network, n_estimators=24, alpha=0.2, eta=1.0, random_state=0,
                                 stopping=Stopping(validation_fraction=0.3), checkpoint=checkpoint, callbacks=callbacks)
    return model.fit(X, y)

def on_round(done):
    if done.number == aim:  # a timer of the child's own processor time ends it
        signal.setitimer(signal.ITIMER_PROF, moments.uniform(1e-6, 0.04))
    if done.number == aim + 1:  # at the latest
        os.kill(os.getpid(), signal.SIGKILL)

moments, n_killed = random.Random(0), 0
while n_killed < 5:
    aim = (Checkpoint(folder).rounds_done() if os.path.isdir(folder) else 0) + moments.randrange(1, 4)
    if not os.fork():
        fitted(folder, [on_round])
        os._exit(0)
    end = os.waitstatus_to_exitcode(os.wait()[1])
    assert end <= 0, "the fit failed"  # and would again and again
    n_killed += -end in (signal.SIGPROF, signal.SIGKILL)
bytes_of = lambda one: b"".join(one.state_[name].tobytes() for name in sorted(one.state_))
n_rounds = Checkpoint(folder).rounds_done()
for name, model in (("resumed", fitted(folder)), ("whole", fitted(None))):
    np.savez(f"{result}/{name}.npz", mixture=model.mixture_, losses=model.selection_.losses,
             weighted=model.weighted_losses_,
             networks=[hashlib.sha256(bytes_of(one)).hexdigest() for one in model.estimators_])
np.savez(f"{result}/kills.npz", n_killed=n_killed, n_rounds=n_rounds)
"""


def test_networks_killed_five_times_end_as_if_they_had_not_been(tmp_path):
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "checkpoint"), str(tmp_path)], check=True)
    with np.load(tmp_path / "kills.npz") as kills:
        assert int(kills["n_killed"]) == 5
        assert 5 <= int(kills["n_rounds"]) < 24
    with np.load(tmp_path / "resumed.npz") as resumed, np.load(tmp_path / "whole.npz") as whole:
        for name in whole.files:
            np.testing.assert_array_equal(resumed[name], whole[name], err_msg=name)
