"""Folders from which a fit cannot go on as if it had never been interrupted are refused, with what is wrong."""

import errno
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from interrupted import SEX, TREE, VALIDATION, WEIGHTS, Interrupted, X, Y, ada, after, lp
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from counterpoise import Stopping, persist
from counterpoise.boosting.checkpoint import Checkpoint, UnusableCheckpoint, _fingerprint, open_checkpoint
from counterpoise.learners import HistogramTree


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    folder = tmp_path_factory.mktemp("begun")
    booster = ada(checkpoint=folder, eta=1.0, callbacks=[after(3)])
    with pytest.raises(Interrupted):
        booster.fit(X, Y, WEIGHTS + 1, sensitive_features=SEX, **VALIDATION)
    return folder


@pytest.fixture
def folder(begun, tmp_path):
    return Path(shutil.copytree(begun, tmp_path / "copy"))


def go_on(folder, booster=None, **data):
    given = {"X": X, "y": Y, "sample_weight": WEIGHTS + 1, "sensitive_features": SEX, **VALIDATION}
    booster = ada(eta=1.0) if booster is None else booster
    return clone(booster).set_params(checkpoint=folder).fit(**given | data)


def swapped(array, value=None):
    changed = array.copy()
    changed[7] = changed[8] if value is None else value
    return changed


OTHER_SETTINGS = {
    "booster was counterpoise.AdaLPBoostClassifier and is .*LPBoost": lp(),
    r"alpha was 0\.3 and is 0\.4": ada(eta=1.0, alpha=0.4),
    r"eta was 1\.0 and is 2\.0": ada(eta=2.0),
    "eta was .*eta='theory' follows n_estimators: give the number itself": ada(),
    "random_state was 0 and is 1": ada(eta=1.0, random_state=1),
    "random_state was 0 and is None": ada(eta=1.0, random_state=None),
    r"outlier_fraction was 0\.0 and is 0\.1": ada(eta=1.0, outlier_fraction=0.1),
    "patience was None and is 3": ada(eta=1.0, stopping=Stopping(patience=3)),
    "reweigh was 'samples' and is 'groups'": ada(eta=1.0, reweigh="groups", alpha=None, estimator=TREE),
    "estimator__max_depth was 2 and is 3": ada(HistogramTree(max_depth=3), eta=1.0),
    "estimator was .*HistogramTree and is .*GaussianNB": ada(GaussianNB(), eta=1.0),
}


@pytest.mark.parametrize("match", OTHER_SETTINGS)
def test_other_settings_are_refused(match, folder):
    settings = {"sensitive_features_val": SEX[160:]} if "groups" in match else {}
    with pytest.raises(
        UnusableCheckpoint, match=f"belongs to a fit with other settings .*{match}.*choose another folder, or delete"
    ):
        go_on(folder, OTHER_SETTINGS[match], **settings)


OTHER_DATA = {
    r"X was float64 \(240, 6\) hash .* and is float64 \(240, 6\) hash": {"X": swapped(X)},
    r"X was float64 \(240, 6\) .* and is float32": {"X": X.astype(np.float32)},
    "y was int64": {"y": swapped(Y, 1 - Y[7])},
    "classes was int64": {"y": np.where(Y, "yes", "no"), "y_val": np.where(Y[160:], "yes", "no")},
    "sample_weight was float64": {"sample_weight": None},
    "sensitive_features was int64 .* and is absent": {"sensitive_features": None},
    "X held out was float64": {"X_val": swapped(X[160:])},
    "y held out was int64": {"y_val": swapped(Y[160:], 1 - Y[167])},
    "X held out was float64 .* and is absent": {"X_val": None, "y_val": None},
    "sensitive_features held out was absent": {"sensitive_features_val": SEX[160:]},
}


@pytest.mark.parametrize("match", OTHER_DATA)
def test_other_data_are_refused(match, folder):
    with pytest.raises(
        UnusableCheckpoint, match=f"belongs to a fit with other data .*{match}.*choose another folder, or delete"
    ):
        go_on(folder, **OTHER_DATA[match])


def rewritten(folder, **entries):
    """Change the manifest as someone would who knows the format."""
    manifest = json.loads((folder / "manifest.json").read_text()) | entries
    manifest.pop("fingerprint")
    manifest["fingerprint"] = _fingerprint(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def reround(folder, **values):
    """Change the first round likewise."""
    head, _, payload = (folder / "round-00001.cp").read_bytes().partition(b"\n")
    payload = persist.dumps({**persist.loads(payload), **values})
    digest = hashlib.sha256(payload).hexdigest().encode()
    (folder / "round-00001.cp").write_bytes(head.rpartition(b" ")[0] + b" " + digest + b"\n" + payload)


def flipped(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def truncated(path, size):
    path.write_bytes(path.read_bytes()[:size])


def twice(path):
    """Write a key once more, which other readers of JSON would take in the place of the one that is kept."""
    path.write_text('{"version": 0, ' + path.read_text()[1:])


DAMAGE = {
    r"round-00002\.cp, which is incomplete, altered": [
        lambda folder: truncated(folder / "round-00002.cp", -1),
        lambda folder: truncated(folder / "round-00002.cp", 40),
        lambda folder: truncated(folder / "round-00002.cp", 0),
        lambda folder: flipped(folder / "round-00002.cp", -100),
        lambda folder: flipped(folder / "round-00002.cp", 3),
        lambda folder: shutil.copy(folder / "round-00001.cp", folder / "round-00002.cp"),
    ],
    r"lacks round-00002\.cp but holds round-00003\.cp": [lambda folder: (folder / "round-00002.cp").unlink()],
    r"holds 'notes\.txt', which does not belong to a checkpoint": [
        lambda folder: (folder / "notes.txt").write_text("x")
    ],
    r"lacks manifest\.json, the record of the fit": [lambda folder: (folder / "manifest.json").unlink()],
    r"has a manifest\.json that is incomplete or does not belong to a checkpoint": [
        lambda folder: truncated(folder / "manifest.json", 50),
        lambda folder: (folder / "manifest.json").write_text("[]"),
        lambda folder: twice(folder / "manifest.json"),
        lambda folder: (folder / "manifest.json").write_text("[" * 100_000),
        lambda folder: rewritten(folder, version=float("inf")),
        lambda folder: rewritten(folder, format="other"),
    ],
    r"has a manifest\.json that was altered": [
        lambda folder: flipped(folder / "manifest.json", (folder / "manifest.json").read_bytes().index(b"0.3"))
    ],
    "has format 2, newer than the 1 known here.*: update counterpoise, choose": [
        lambda folder: rewritten(folder, version=2)
    ],
    "was started by counterpoise 9.9, but you have .*: install that version, choose": [
        lambda folder: rewritten(folder, library="9.9")
    ],
    r"round-00001\.cp, which is incomplete, altered or from another fit": [
        lambda folder: rewritten(folder, version=0)  # the fingerprint is now another
    ],
    r"is damaged \(manifest\.json": [
        lambda folder: rewritten(folder, note="x"),
        lambda folder: rewritten(folder, settings=5),
        lambda folder: rewritten(folder, data={"X": [1]}),
        lambda folder: rewritten(folder, seeds={"entropy": -1, "key": "0a"}),
    ],
    r"is damaged \(round-00001\.cp": [
        lambda folder: reround(folder, losses=(np.zeros(4, dtype=np.uint8), 2**53)),
        lambda folder: reround(folder, losses=240),
        lambda folder: reround(folder, memory=[]),
        lambda folder: reround(folder, best="x"),
    ],
    "is damaged in round 1": [lambda folder: reround(folder, losses=(np.zeros(1, dtype=np.uint8), 8))],
}


@pytest.mark.parametrize(("match", "damage"), [(match, one) for match, all_ in DAMAGE.items() for one in all_])
def test_a_damaged_folder_is_refused(match, damage, folder):
    damage(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(UnusableCheckpoint, match=f"The checkpoint .*{match}.*another folder, or delete"):
        go_on(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before  # nothing is made worse


def test_the_undamaged_folder_is_gone_on_from(folder):
    assert len(go_on(folder).estimators_) == 7


def test_a_foreign_folder_is_left_as_it_is(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(UnusableCheckpoint, match=r"holds 'thesis\.tex'"):
        ada(checkpoint=tmp_path).fit(X, Y)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(UnusableCheckpoint, match=r"checkpoint must be a folder; .*thesis\.tex is a file"):
        ada(checkpoint=tmp_path / "thesis.tex").fit(X, Y)
    with pytest.raises(UnusableCheckpoint, match=r"holds 'thesis\.tex'"):
        Checkpoint(tmp_path).rounds_done()


def test_what_a_kill_leaves_half_written_is_removed(folder):
    parts = [folder / ".round-00004.cp.x1y2.part", folder / ".manifest.json.abc.part", folder / ".shared.cp.q.part"]
    for part in parts:
        part.write_bytes(b"half")
    (folder / ".DS_Store").write_bytes(b"not ours")
    assert Checkpoint(folder).rounds_done() == 3
    go_on(folder)
    assert not any(part.exists() for part in parts)
    assert (folder / ".DS_Store").exists()


def test_fit_more_does_not_take_over_the_rounds_of_another_fit(tmp_path):
    first = ada(random_state=None, checkpoint=tmp_path).fit(X, Y)
    for path in tmp_path.iterdir():
        path.unlink()
    ada(random_state=None, checkpoint=tmp_path).fit(X, Y)
    with pytest.raises(UnusableCheckpoint, match="belongs to another fit, which has other random seeds"):
        first.fit_more(1)


def test_two_fits_cannot_write_to_one_folder(folder):
    with open_checkpoint(folder), pytest.raises(UnusableCheckpoint, match=r"Another fit \(process \d+\) is writing to"):
        go_on(folder)
    assert len(go_on(folder).estimators_) == 7


def test_a_folder_that_is_removed_during_the_fit_is_told_and_not_made_anew(tmp_path):
    folder = tmp_path / "gone"

    def remove(_progress):
        shutil.rmtree(folder)

    with pytest.raises(UnusableCheckpoint, match="gone was removed or moved while this fit was writing to it"):
        ada(checkpoint=folder, callbacks=[remove]).fit(X, Y)
    assert not folder.exists()


def test_a_full_disk_names_the_folder_and_the_fit_goes_on_when_there_is_room(folder):
    def full(_what, path):
        if path.name == "round-00004.cp":
            raise OSError(errno.ENOSPC, "No space left on device")

    message = r"The checkpoint .*copy .* round-00004\.cp .*No space left.* after round 3"
    with persist.watch_changes(full), pytest.raises(OSError, match=message):
        go_on(folder)
    assert len(go_on(folder).estimators_) == 7


def test_rounds_done_reads_how_far_a_folder_is(folder, tmp_path):
    assert Checkpoint(folder).rounds_done() == 3
    assert Checkpoint(str(tmp_path / "nowhere")).rounds_done() == 0
    assert not (tmp_path / "nowhere").exists()


class Stranger(DecisionTreeClassifier):
    pass


def test_a_model_that_cannot_be_saved_is_refused_in_the_first_round(tmp_path):
    rounds = []
    with pytest.raises(ValueError, match=r"A checkpoint cannot hold the model of round 1: .*Stranger.*checkpoint=None"):
        ada(Stranger(max_depth=2), checkpoint=tmp_path, callbacks=[rounds.append]).fit(X, Y)
    assert (rounds, Checkpoint(tmp_path).rounds_done()) == ([], 0)


def test_checkpoint_must_be_a_path():
    with pytest.raises(TypeError, match="checkpoint must be a Checkpoint, the path of its folder, or None; got 3"):
        ada(checkpoint=3).fit(X, Y)
