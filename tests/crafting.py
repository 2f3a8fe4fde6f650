"""A saved model taken apart, changed, and put together again with all its checksums right."""

import hashlib
import io
import json
import zipfile

from sklearn.datasets import load_breast_cancer

import counterpoise as cp
from counterpoise.learners import HistogramTree
from counterpoise.persist import dumps

X, y = load_breast_cancer(return_X_y=True)
X, y = X[:200, :5], y[:200]
MODEL = cp.AdaLPBoostClassifier(HistogramTree(max_depth=2), n_estimators=3, random_state=0).fit(X, y)
WHOLE = dumps(MODEL)


def taken_apart(data):
    """Return manifest and members."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop("manifest.json")), members


def signed(entries, *, packing=zipfile.ZIP_STORED):
    """Return a zip of (name, content) pairs with the right checksum at its end."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for name, content in entries:
            archive.writestr(name, content)
        archive.comment = b"0" * 64
    body = stream.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def crafted(change, data=WHOLE, *, packing=zipfile.ZIP_STORED):
    """Return a file with all checksums right, after ``change(manifest, members)``."""
    manifest, members = taken_apart(data)
    result = change(manifest, members)
    manifest = manifest if result is None else result
    if isinstance(manifest, dict):
        manifest["members"] = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    text = manifest if isinstance(manifest, (str, bytes)) else json.dumps(manifest)
    return signed([("manifest.json", text), *members.items()], packing=packing)
