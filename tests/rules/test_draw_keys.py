"""The key of the draws: given, from the seed or from the system, kept by copies and files, and never shown."""

import json
import pickle
import re

import numpy as np
import pytest
from sklearn import set_config
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from counterpoise import (
    AdaLPBoostClassifier,
    ConstrainedClassifier,
    Draws,
    LPBoostClassifier,
    MixtureClassifier,
    load,
    save,
)
from counterpoise.learners import Stump
from tests.inside import drawn_numbers, key_of

KEY = b"an open secret of tests only...."
KEYED = Draws(KEY)
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(120, 3)), np.arange(120) % 2
STUMP = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, Y)
MODELS = {
    "AdaLPBoostClassifier": AdaLPBoostClassifier(Stump(), n_estimators=5, alpha=0.5),
    "LPBoostClassifier": LPBoostClassifier(Stump(), n_estimators=5, alpha=0.5),
    "MixtureClassifier": MixtureClassifier([STUMP, STUMP.predict]),
    "ConstrainedClassifier": ConstrainedClassifier(decision="ramp"),
}
each_model = pytest.mark.parametrize("name", MODELS)


def fitted(name, **settings):
    return clone(MODELS[name]).set_params(**settings).fit(X, Y)


def numbers(model):
    return drawn_numbers(model, X).tolist()


@each_model
def test_the_key_decides_the_draws_and_the_seed_does_not(name):
    given = fitted(name, decision=KEYED, random_state=0)
    assert numbers(given) == numbers(fitted(name, decision=KEYED))
    assert numbers(given) == numbers(fitted(name, decision=KEYED, random_state=1))
    assert numbers(given) != numbers(fitted(name, random_state=0))
    np.testing.assert_array_equal(given.predict(X), fitted(name, decision=KEYED, random_state=0).predict(X))


@each_model
def test_without_a_key_the_seed_repeats_the_draws_and_without_a_seed_the_system_draws(name):
    assert numbers(fitted(name, random_state=3)) == numbers(fitted(name, random_state=3))
    assert numbers(fitted(name)) != numbers(fitted(name))


def test_a_key_does_not_change_what_a_random_state_trains():
    def mixture(**settings):
        return fitted("AdaLPBoostClassifier", random_state=np.random.RandomState(5), **settings).mixture_

    np.testing.assert_array_equal(mixture(), mixture(decision=KEYED))


@each_model
def test_copies_keep_the_key(name, tmp_path):
    model = fitted(name, decision=KEYED)
    assert clone(model).decision == pickle.loads(pickle.dumps(model)).decision == model.get_params()["decision"]  # noqa: S301
    assert clone(model).decision.key == KEY
    assert numbers(pickle.loads(pickle.dumps(model))) == numbers(model)  # noqa: S301
    if name != "MixtureClassifier":  # which holds a function here
        save(model, tmp_path / "model.cp")
        loaded = load(tmp_path / "model.cp")
        assert (loaded.decision, numbers(loaded)) == (KEYED, numbers(model))


def shown(model):
    """Return all texts in which scikit-learn and Python show a model."""
    around = make_pipeline(StandardScaler(), model)
    for one in (model, around, clone(around), AdaLPBoostClassifier(model)):
        yield from (repr(one), str(one), one._repr_html_(), str(one.get_params()), str(vars(one)), f"{one!s:>5}")


@each_model
def test_the_key_is_never_shown(name):
    model = clone(MODELS[name])
    model.decision = KEYED
    for one in (model, model.set_params(decision=KEYED), model.fit(X, Y)):
        for text in shown(one):
            assert KEY.decode() not in text
            assert KEY.hex() not in text
            assert repr(KEY)[2:-1] not in text
    set_config(print_changed_only=False)
    try:
        assert "key=<hidden>" in repr(model)
    finally:
        set_config(print_changed_only=True)


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (b"short secret", ValueError, "key must have 16 to 64 bytes, .* got 12"),
        (b"long secret " * 6, ValueError, "key must have 16 to 64 bytes, .* got 72"),
        ("a secret that is a text", TypeError, "key must be bytes, .* got str"),
        (0, TypeError, "key must be bytes, .* got int"),
        (None, TypeError, "key must be bytes, .* got NoneType"),
        (bytearray(KEY), TypeError, "key must be bytes, .* got bytearray"),
    ],
)
def test_what_is_no_key_is_refused_without_showing_it(key, error, text):
    with pytest.raises(error, match=text) as caught:
        Draws(key)
    assert not re.search("secret", str(caught.value).replace("secrets.token_bytes", ""))


def test_a_checkpoint_holds_the_key_that_the_system_drew_and_no_other(tmp_path):
    drawn = fitted("AdaLPBoostClassifier", checkpoint=tmp_path / "drawn")
    given = fitted("AdaLPBoostClassifier", checkpoint=tmp_path / "given", decision=KEYED)
    again = fitted("AdaLPBoostClassifier", checkpoint=tmp_path / "drawn")
    assert numbers(again) == numbers(drawn)
    assert numbers(fitted("AdaLPBoostClassifier", checkpoint=tmp_path / "drawn", decision=KEYED)) == numbers(given)
    assert json.loads((tmp_path / "drawn" / "manifest.json").read_text())["seeds"]["key"] == key_of(drawn).hex()
    for path in (tmp_path / "given").iterdir():
        assert KEY not in path.read_bytes()
        assert KEY.hex().encode() not in path.read_bytes()
