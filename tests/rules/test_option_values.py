"""Options that are values: how draws, groups and deferral are written, compared, copied and saved."""

import inspect
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression

import counterpoise as cp
from counterpoise import Deferral, Draws, Groups

KEY = b"an open secret of tests only...."
RNG = np.random.default_rng(7)
N = 400
REGION = np.where(np.arange(N) % 50 == 0, "islands", np.where(RNG.random(N) < 0.4, "north", "south"))  # 8 islanders
X = RNG.normal(size=(N, 2)) + 0.5 * (REGION == "north")[:, None]
Y = (X[:, 0] + RNG.normal(size=N) > 0.3).astype(int)
MODEL = LogisticRegression().fit(X[::2], Y[::2])
POOLED = Groups("region", unknown="pool")
GOALS = ["recall >= 0.6"]

# Each value written in two ways, and another one.
VALUES = {
    "draws": (Draws(KEY), Draws(key=KEY), Draws(KEY[::-1])),
    "groups": (Groups("sex"), Groups(["sex"], unknown="refuse", min_rows=10), Groups("sex", unknown="pool")),
    "groups of two columns": (Groups(["sex", "age"]), Groups(("sex", "age")), Groups(["age", "sex"])),
    "deferral": (Deferral(0.2), Deferral(cost=0.2, label="defer"), Deferral(0.2, "ask")),
}
each_value = pytest.mark.parametrize("name", VALUES)


def fitted(**settings):
    model = cp.GoalClassifier([MODEL], cv="prefit", goals=GOALS, random_state=0, **settings, confidence=None)
    return model.fit(X, Y, sensitive_features={"region": REGION})


@each_value
def test_values_that_say_the_same_are_equal_and_have_one_hash(name):
    value, same, other = VALUES[name]
    assert value == same
    assert hash(value) == hash(same)
    assert value != other
    assert len({value, same, other}) == 2


@each_value
def test_values_cannot_be_changed(name):
    value = VALUES[name][0]
    for field in vars(value):
        with pytest.raises(FrozenInstanceError):
            setattr(value, field, None)


def test_values_are_shown_as_they_are_written_and_the_key_is_hidden():
    assert repr(Groups("sex", unknown="pool")) == "Groups(names=('sex',), unknown='pool', min_rows=10)"
    assert repr(Draws(KEY)) == str(Draws(KEY)) == "Draws(key=<hidden>)"
    model = cp.GoalClassifier(decision=Draws(KEY), by=Groups("sex"))
    for text in (repr(model), str(model.get_params()), str(vars(model.decision)), f"{model.decision}"):
        assert KEY.decode() not in text
        assert KEY.hex() not in text


def test_a_saved_classifier_has_its_values_and_decides_the_same(tmp_path):
    values = {"decision": Draws(KEY), "by": POOLED, "deferral": Deferral(0.3, "ask")}
    model = fitted(**values)
    cp.save(model, tmp_path / "model.cp")
    again = cp.load(tmp_path / "model.cp")
    assert {name: getattr(again, name) for name in values} == values
    assert repr(again.decision) == "Draws(key=<hidden>)"
    given = {"sensitive_features": {"region": REGION}, "ids": np.arange(N)}
    np.testing.assert_array_equal(again.predict(X, **given), model.predict(X, **given))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Draws("a secret text of 24 char"), TypeError, r"key must be bytes, as secrets\.token_bytes.* got str"),
        (lambda: Draws(b"short secret"), ValueError, "key must have 16 to 64 bytes, .* got 12"),
        (lambda: Groups(3), TypeError, "by must be the name of a column .*, a list of names, or Groups; got 3"),
        (lambda: Groups(["sex", 3]), TypeError, "by must be the name of a column"),
        (lambda: Groups(["sex", "sex"]), ValueError, "by names a column twice: sex, sex"),
        (lambda: Groups("sex", unknown="merge"), ValueError, "one of 'refuse', 'pool'; got 'merge'"),
        (lambda: Groups("sex", min_rows=0), ValueError, "min_rows of Groups must be at least 1; got 0"),
        (lambda: Groups("sex", min_rows=2.5), TypeError, "min_rows of Groups must be a whole number"),
    ],
)
def test_what_is_no_value_is_refused_where_it_is_written(make, error, text):
    with pytest.raises(error, match=text) as caught:
        make()
    assert "secret text" not in str(caught.value)


@pytest.mark.parametrize(
    "model",
    [
        cp.GoalClassifier(LogisticRegression(), decision=KEY),
        cp.MixtureClassifier([MODEL], decision=KEY),
        cp.LPBoostClassifier(n_estimators=2, decision=KEY),
        cp.ConstrainedClassifier(decision=KEY),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_key_that_is_given_as_it_is_is_refused_and_not_shown(model):
    with pytest.raises(TypeError, match=r"decision must be a word, or Draws\(key\); got the key itself") as caught:
        model.fit(X, Y)
    assert KEY.decode() not in str(caught.value)


CLASSIFIERS = [
    one
    for one in (getattr(cp, name) for name in cp.__all__)
    if inspect.isclass(one) and issubclass(one, ClassifierMixin)
]
MOST = {cp.LPBoostClassifier: 19, cp.AdaLPBoostClassifier: 18}


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
def test_options_that_belong_together_are_one_value_so_that_parameters_stay_few(kind):
    assert len(inspect.signature(kind).parameters) <= MOST.get(kind, 13)
