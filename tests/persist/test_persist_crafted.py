"""Files made to do harm, with all checksums right: refused in one sentence, nothing run, nothing read out of bounds."""

import hashlib
import io
import json
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from crafting import MODEL, X, crafted, y
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

import counterpoise as cp
from counterpoise.persist import UnreadableModel, UnstorableModel, dumps, load, loads
from tests.tiers import slow


def first_object(manifest, class_name, attribute):
    """Return the attributes and the node of the first object of a class that has the attribute."""
    place = next(
        at for at, (name, names) in enumerate(manifest["layouts"]) if name == class_name and attribute in names
    )
    return manifest["layouts"][place][1], next(node for node in manifest["nodes"] if node[:2] == ["object", place])


def changed_array(class_name, attribute, change):
    """Return a change that edits the values of an array, in place, wherever it lies."""

    def edit(manifest, members):
        names, node = first_object(manifest, class_name, attribute)
        (place,) = node[2 + names.index(attribute)]
        _, pack, start, _, *shape = manifest["nodes"][place]
        member = next(name for name in members if pack.strip("<|") in name)
        values = np.load(io.BytesIO(members[member]))
        change(values[start : start + int(np.prod(shape))])
        stream = io.BytesIO()
        np.save(stream, values)
        members[member] = stream.getvalue()

    return edit


def changed_child(class_name, attribute, value):
    """Return a change that puts something else where an attribute was."""

    def edit(manifest, _members):
        names, node = first_object(manifest, class_name, attribute)
        node[2 + names.index(attribute)] = value

    return edit


def renamed(old, new):
    def edit(manifest, _members):
        layout = next(layout for layout in manifest["layouts"] if layout[0] == old)
        layout[0] = new

    return edit


def without_attribute(class_name, attribute):
    def edit(manifest, _members):
        place = next(at for at, (name, _) in enumerate(manifest["layouts"]) if name == class_name)
        at = manifest["layouts"][place][1].index(attribute)
        del manifest["layouts"][place][1][at]
        for node in manifest["nodes"]:
            if node[:2] == ["object", place]:
                del node[2 + at]

    return edit


def another_attribute(name):
    def edit(manifest, _members):
        manifest["layouts"][0][1][0] = name

    return edit


def with_entries(**entries):
    return lambda manifest, _members: manifest.update(entries)


def node_of(*node):
    """Return a change that makes one node the whole value."""
    return with_entries(nodes=[list(node)], root=[0])


def with_member(name, content):
    def edit(manifest, members):
        members[name] = content
        return manifest

    return edit


def pickled_npy():
    stream = io.BytesIO()
    np.save(stream, np.array([{}], dtype=object), allow_pickle=True)
    return stream.getvalue()


def huge_npy():
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    return stream.getvalue()


def set_first(value):
    def change(values):
        values[0] = value

    return change


CRAFTED = {
    "newer format": (with_entries(format_version=7, library="9.9"), "format version 7.* counterpoise 9.9.*: upgrade"),
    "older format": (with_entries(format_version=5, library="0.1"), "format version 5.* 0.1.*: fit the model again"),
    "no format version": (with_entries(format_version="1"), "impossible format version '1'"),
    "another format": (with_entries(format="keras"), "its manifest has another format"),
    "manifest of a list": (lambda *_: [1], "its manifest has another format"),
    "manifest of no JSON": (lambda *_: "{", "its manifest is not valid JSON"),
    "manifest with NaN": (lambda *_: '{"format": NaN}', "its manifest is not valid JSON"),
    "deep nesting": (lambda *_: "[" * 200_000 + "]" * 200_000, "its manifest is not valid JSON"),
    "huge number": (lambda *_: '{"format": ' + "9" * 10_000 + "}", "its manifest is not valid JSON"),
    "no nodes": (with_entries(nodes=None), "lacks a list where one is expected"),
    "node of a dict": (with_entries(nodes=[{}]), "lacks a list where one is expected"),
    "node of nothing": (with_entries(nodes=[[]]), "unknown kind None"),
    "layouts of numbers": (with_entries(layouts=[1, 2]), "lacks a list where one is expected"),
    "layouts of three": (with_entries(layouts=[["Tree", [], 1]]), "describes a class in an unknown way"),
    "unknown kind": (node_of("eval", "1 + 1"), "unknown kind 'eval'"),
    "kind of a number": (node_of(3, "1 + 1"), "unknown kind 3"),
    "unknown form": (node_of("form", "os.system", "true"), "a part of the kind 'form'"),
    "missing part": (with_entries(root=[10**6]), "refers to part 1000000, which is not there"),
    "negative part": (with_entries(root=[-1]), "refers to part -1, which is not there"),
    "part by a dict": (with_entries(root={"a": 1}), "refers to a part in an unknown way"),
    "part by two places": (with_entries(root=[0, 1]), "refers to a part in an unknown way"),
    "cycle": (with_entries(nodes=[["list", [0]]], root=[0]), "refers to part 0, which is not there"),
    "later part": (with_entries(nodes=[["list", [1]], ["list"]], root=[0]), "refers to part 1, which is not there"),
    "unhashable key": (with_entries(nodes=[["list"], ["dict", [0], 1]], root=[1]), "a part of the kind 'dict'"),
    "half a pair": (node_of("dict", 1), "a part of the kind 'dict'"),
    "bad bytes": (node_of("bytes", "xyz"), "a part of the kind 'bytes'"),
    "bad float": (node_of("float", [1]), "a part of the kind 'float'"),
    "foreign without a member": (node_of("estimator", 0), "refers to part 0, which is not there"),
    "class outside of the table": (renamed("HistogramTree", "Popen"), "names the class 'Popen'"),
    "class with its module": (renamed("HistogramTree", "os.system"), "names the class 'os.system'"),
    "class of a number": (renamed("HistogramTree", 3), "names the class 3"),
    "impossible attribute": (another_attribute("__class__"), "names the impossible attribute '__class__'"),
    "another class of the table": (renamed("HistogramTree", "Goal"), "its Goal lacks"),
    "parameter missing": (without_attribute("AdaLPBoostClassifier", "alpha"), "its AdaLPBoostClassifier lacks alpha"),
    "no draws": (without_attribute("AdaLPBoostClassifier", "draws_"), "it has no key to draw with"),
    "fitted part missing": (without_attribute("AdaLPBoostClassifier", "mixture_"), "does not look like a fitted one"),
    "field missing": (without_attribute("Tree", "left"), "its Tree has unexpected parts"),
    "array outside": (node_of("array", "<f8", 10**9, "C", 5), "lies outside of the stored ones"),
    "array of negative size": (node_of("array", "<f8", 0, "C", -1), "described in an unknown way"),
    "array of unknown order": (node_of("array", "<f8", 0, "X", 1), "described in an unknown way"),
    "array of no member": (node_of("array", "<f2", 0, "C", 1), "which it does not hold"),
    "array of a path": (node_of("array", "../../x", 0, "C", 1), "which it does not hold"),
    "more bits than stored": (node_of("array", "bits", 0, "C |u1", 10**9), "lies outside of the stored ones"),
    "bits of floats": (node_of("array", "bits", 0, "C <f8", 8), "described in an unknown way"),
    "pickled array": (with_member("arrays/little-f8.npy", pickled_npy()), "which only pickle could read"),
    "array header that lies": (with_member("arrays/little-f8.npy", huge_npy()), "another size than its header gives"),
    "no array": (with_member("arrays/little-f8.npy", b"text"), "not an array of a known format"),
    "array of another type": (
        lambda manifest, members: with_member("arrays/little-f8.npy", members["arrays/little-i8.npy"])(
            manifest, members
        ),
        "a name for another type than it holds",
    ),
    "feature out of range": (changed_array("Tree", "feature", set_first(5)), "points outside of its nodes"),
    "child out of range": (changed_array("Tree", "left", set_first(10**6)), "points outside of its nodes"),
    "child that is its parent": (changed_array("Tree", "left", set_first(0)), "points outside of its nodes"),
    "class out of range": (changed_array("Tree", "labels", set_first(2)), "points outside of its nodes"),
    "table out of range": (changed_array("Tree", "table", set_first(0)), "points outside of its nodes"),
    "tree of another type": (changed_child("Tree", "threshold", "high"), "does not look like a fitted one"),
    "features of another number": (changed_child("HistogramTree", "n_features_in_", -1), "n_features_in_ must be"),
    "fewer features than used": (changed_child("HistogramTree", "n_features_in_", 1), "points outside of its nodes"),
    "mixture off the simplex": (
        changed_array("AdaLPBoostClassifier", "mixture_", set_first(0.9)),
        "mixture must be a distribution",
    ),
    "mixture of another length": (
        changed_child("AdaLPBoostClassifier", "mixture_", None),
        "does not look like a fitted one",
    ),
    "bits of another number of models": (changed_child("BitRows", "n_models", 99), "are not 200 rows of 99 models"),
    "bits of another number of rows": (changed_child("BitRows", "n_rows", 10**6), "rows of 3 models"),
    "table of another length": (changed_child("Table", "n_samples", 7), "a table of 7 rows"),
    "random state astray": (
        with_entries(
            nodes=[
                ["dict", "pos", 10**6],
                ["dict", "bit_generator", "MT19937", "state", [0]],
                ["form", "RandomState", [1]],
            ],
            root=[2],
        ),
        "a random state has an impossible position",
    ),
    "nesting by parts": (
        with_entries(nodes=[["list"], *(["tuple", [at]] for at in range(200))], root=[200]),
        "it is nested too deeply",
    ),
    "parts twice over and over": (
        with_entries(nodes=[["list"], *(["tuple", [at], [at]] for at in range(60))], root=[60]),
        "it is nested too deeply",
    ),
    "huge seeds": (
        with_entries(nodes=[["tuple"], ["form", "SeedSequence", 0, [0], 10**12, 0]], root=[1]),
        "a seed sequence has an impossible size",
    ),
    "seed of a million bits": (
        with_entries(nodes=[["tuple"], ["int", "f" * 250_000], ["form", "SeedSequence", [1], [0], 4, 0]], root=[2]),
        "a seed sequence of more than 1000 seeds, or of one above 4096 bits",
    ),
    "a million seeds": (
        with_entries(nodes=[["tuple", *range(10**6)], ["form", "SeedSequence", 0, [0], 4, 0]], root=[1]),
        "a seed sequence of more than 1000 seeds",
    ),
    "keys that collide": (
        node_of("dict", *(key for number in range(100_000) for key in (number * (2**61 - 1), 0))),
        "a dict has more than 2000 keys that are not strings",
    ),
}


@pytest.mark.parametrize("name", [slow(one) if one == "a million seeds" else one for one in CRAFTED])
def test_a_crafted_file_is_refused_with_one_sentence(name, tmp_path):
    change, message = CRAFTED[name]
    path = tmp_path / "model.cp"
    path.write_bytes(crafted(change))
    with pytest.raises(UnreadableModel, match=f"^{re.escape(str(path))} cannot be loaded as a model: .*{message}"):
        load(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("change", [node_of("list", 1), node_of("bytes", ""), with_entries(root=None)])
def test_a_value_that_is_no_model_is_refused(change, tmp_path):
    path = tmp_path / "model.cp"
    path.write_bytes(crafted(change))
    with pytest.raises(UnreadableModel, match=r"holds a \w+, which is not a fitted model\.$"):
        load(path)


def test_a_crafted_file_with_no_change_is_read():
    assert_array_equal(loads(crafted(lambda *_: None)).predict_proba(X), MODEL.predict_proba(X))


def test_a_matrix_that_points_outside_is_refused():
    model = cp.ConstrainedClassifier(kernel="rbf").fit(csr_array(X), y)
    whole = dumps(model)

    def astray(manifest, members):
        node = next(node for node in manifest["nodes"] if node[:2] == ["form", "sparse rows"])
        _, pack, start, *_ = manifest["nodes"][node[4][0]]
        member = next(name for name in members if pack.strip("<|") in name)
        values = np.load(io.BytesIO(members[member]))
        values[start] = 10**6
        stream = io.BytesIO()
        np.save(stream, values)
        members[member] = stream.getvalue()

    with pytest.raises(UnreadableModel, match=r"a part of the kind 'form' is malformed"):
        loads(crafted(astray, whole))


@pytest.mark.parametrize("value", [np.random.SeedSequence(2**5000), dict.fromkeys(range(3000))], ids=["seed", "keys"])
def test_what_could_not_be_read_is_not_written(value):
    with pytest.raises(UnstorableModel, match=r"cannot be stored: it is .*more than"):
        dumps(value)


def test_a_manifest_that_grows_beyond_all_models_is_refused():
    whole = crafted(lambda *_: '{"format": "counterpoise", "x": "' + "x" * 100_000 + '"}', packing=zipfile.ZIP_DEFLATED)
    with pytest.raises(
        UnreadableModel, match=r"its member 'manifest\.json' would unpack to far more bytes than it has"
    ):
        loads(whole)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_pipes_and_devices_are_refused(tmp_path):
    os.mkfifo(tmp_path / "model.cp")
    for path in (tmp_path / "model.cp", Path("/dev/zero")):
        with pytest.raises(UnreadableModel, match="cannot be read: it is a pipe or a device"):
            load(path)


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(UnreadableModel, match=r"There is no file .*model\.cp: check its name"):
        load(tmp_path / "model.cp")
    with pytest.raises(UnreadableModel, match="is a folder, not a model"):
        load(tmp_path)


def test_a_manifest_with_a_key_twice_is_refused():
    def edit(manifest, members):
        manifest["members"] = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
        return '{"nodes": [], ' + json.dumps(manifest)[1:]

    with pytest.raises(UnreadableModel, match="each key must occur once in an object; 'nodes' occurs 2 times"):
        loads(crafted(edit))
