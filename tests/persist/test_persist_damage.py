"""Files that are cut short, altered or no model at all: one sentence, whatever the bytes are."""

import hashlib
import json
import pickle
import struct
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from crafting import MODEL, WHOLE, X, crafted, signed, taken_apart
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoise.persist import UnreadableModel, loads

MANIFEST, MEMBERS = taken_apart(WHOLE)
ENTRIES = [("manifest.json", json.dumps(MANIFEST)), *MEMBERS.items()]


def unsigned_change(old, new):
    """Return the file with some bytes replaced and the checksum at its end right again."""
    body = WHOLE[:-64].replace(old, new)
    return body + hashlib.sha256(body).hexdigest().encode()


CONTAINERS = {
    "empty": (b"", "it is empty"),
    "text": (b"hello", "it was not written by cp.save"),
    "pickle": (pickle.dumps(MODEL), "perhaps a pickle, which could run any program"),
    "foreign zip": (signed([("a.txt", "hello")]), "it is a zip file, but cp.save did not write it"),
    "altered checksum": (WHOLE[:-1] + b"x", "it was cut short or altered"),
    "something behind": (WHOLE + b"x", "it was cut short or altered"),
    "something before": (b"x" + WHOLE, "it was not written by cp.save"),
    "two of a name": (None, "two of its members have the same name"),
    "a way out": (signed([*ENTRIES, ("../../evil", "x")]), "points out of the file"),
    "a way from the root": (signed([*ENTRIES, ("/etc/evil", "x")]), "points out of the file"),
    "a way by backslashes": (signed([*ENTRIES, ("..\\evil", "x")]), "points out of the file"),
    "a member that is not listed": (signed([*ENTRIES, ("more", "x")]), "differ from the list in its manifest"),
    "a member that is missing": (signed(ENTRIES[:-1]), "differ from the list in its manifest"),
    "an altered member": (signed([*ENTRIES[:-1], (ENTRIES[-1][0], b"x")]), "differ from the list in its manifest"),
    "many members": (signed([*ENTRIES, *((f"m{n}", "") for n in range(10_001))]), "more than any model needs"),
    "packed members": (signed(ENTRIES, packing=zipfile.ZIP_DEFLATED), "packed in a way that cp.save does not use"),
    "bomb": (signed([("manifest.json", "[" + " " * 10**7)], packing=zipfile.ZIP_DEFLATED), "unpack to far more"),
    "no directory": (unsigned_change(b"PK\x05\x06", b"PK\x05\x07"), "its directory of members is broken"),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_file_that_is_no_whole_container_is_refused(name):
    data, message = CONTAINERS[name]
    if data is None:
        with pytest.warns(UserWarning, match="Duplicate name"):
            data = signed([*ENTRIES, ENTRIES[-1]])
    with pytest.raises(UnreadableModel, match=f"The data cannot be loaded as a model: .*{message}"):
        loads(data)


def test_a_member_that_lies_about_its_size_is_refused():
    place = WHOLE.rindex(b"PK\x01\x02") + 24  # where the directory says how large the last member is
    body = WHOLE[:place] + struct.pack("<I", 2**31) + WHOLE[place + 4 : -64]
    with pytest.raises(UnreadableModel, match="would unpack to far more bytes than it has"):
        loads(body + hashlib.sha256(body).hexdigest().encode())


def loaded_or_none(data):
    """Return the model, or None where it is refused; any other error is one."""
    try:
        return loads(data)
    except UnreadableModel:
        return None


def resigned(data):
    body = data[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def altered(data, random):
    """Return the data cut, or with some bytes changed, removed or inserted."""
    place, kind = int(random.integers(len(data))), int(random.integers(4))
    if kind == 0:
        return data[:place]
    if kind == 1:
        return data[:place] + bytes([data[place] ^ (1 << int(random.integers(8)))]) + data[place + 1 :]
    if kind == 2:
        return data[:place] + data[place + int(random.integers(1, 20)) :]
    return data[:place] + random.bytes(int(random.integers(1, 20))) + data[place:]


@pytest.mark.parametrize("seed", range(4))
def test_damage_anywhere_is_refused(seed):
    random = np.random.default_rng(seed)
    for _ in range(200):
        with pytest.raises(UnreadableModel, match=r"^The data cannot be loaded as a model: [^\n]*\.$"):
            loads(altered(WHOLE, random))


@pytest.mark.parametrize("seed", range(4))
def test_damage_under_a_right_checksum_raises_nothing_else(seed):
    random = np.random.default_rng(seed)
    for _ in range(200):
        model = loaded_or_none(resigned(altered(WHOLE, random) + b"0" * 64))
        assert model is None or (model.predict_proba(X) == MODEL.predict_proba(X)).all()


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 200), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=120)
@given(st.data())
def test_whatever_a_node_says_nothing_else_is_raised(data):
    manifest, _ = taken_apart(WHOLE)
    node = data.draw(st.sampled_from(manifest["nodes"]))
    node[data.draw(st.integers(0, len(node) - 1))] = data.draw(JSON)
    model = loaded_or_none(crafted(lambda *_: manifest))
    # What is left may be of no use, and may say so in Python; it must not reach past an array.
    with suppress(ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        assert model is None or len(model.predict_proba(X)) == len(X)
