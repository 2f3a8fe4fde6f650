"""Rounds inside goals survive SIGKILL: two kills at rounds that are on disk, then the same models and mixture."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# One process that forks the fits: what takes long is the import.
SCRIPT = """
import os, signal, sys
import numpy as np
from interrupted import MAIL, SEX, X, Y, lp
from counterpoise.boosting.checkpoint import Checkpoint

folder, result = sys.argv[1:]
GOALS = ["demographic_parity_difference(by=sex) <= 0.1", "churn(mail) <= 0.4"]

def fitted(checkpoint, callbacks=()):
    model = lp(goals=GOALS, checkpoint=checkpoint, callbacks=callbacks)
    return model.fit(X, Y, sensitive_features={"sex": SEX}, datasets={"mail": MAIL})

def on_round(done):
    if done.number == aim:
        os.kill(os.getpid(), signal.SIGKILL)

ends, on_disk = [], []
for aim in (2, 4):
    child = os.fork()
    if not child:
        fitted(folder, [on_round])
        os._exit(0)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    on_disk.append(Checkpoint(folder).rounds_done())
seen = []
for name, model in (("resumed", fitted(folder, [seen.append])), ("whole", fitted(None))):
    np.savez(f"{result}/{name}.npz", mixture=model.mixture_, chances=model.predict_proba(X), value=model.value_,
             bound=model.bound_if_learner_exact_, weighted=model.weighted_losses_, multipliers=model.multipliers_)
np.savez(f"{result}/kills.npz", ends=ends, on_disk=on_disk, first=seen[0].number)
"""


@pytest.mark.slow
def test_a_fit_that_is_killed_twice_ends_as_if_it_had_not_been(tmp_path):
    paths = [str(Path(__file__).parent), *filter(None, sys.path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "checkpoint"), str(tmp_path)]
    subprocess.run(command, check=True, env=environment)
    with np.load(tmp_path / "kills.npz") as kills:
        assert kills["ends"].tolist() == [-9, -9]
        assert kills["on_disk"].tolist() == [2, 4]
        assert int(kills["first"]) == 5
    with np.load(tmp_path / "resumed.npz") as resumed, np.load(tmp_path / "whole.npz") as whole:
        assert len(whole["mixture"]) > 4
        for name in whole.files:
            np.testing.assert_array_equal(resumed[name], whole[name], err_msg=name)
