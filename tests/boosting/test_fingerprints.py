"""Texts of settings and data are equal exactly where what they stand for is."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from counterpoise.boosting.checkpoint import data_texts, setting_texts
from counterpoise.boosting.inputs import CheckedRows

KINDS = ("f8", "f4", "u1", "i4", "?", "U3", "O")


def text_of(values):
    """Return the text of features."""
    n_samples = values.shape[0]
    rows = CheckedRows(values, np.zeros(n_samples, dtype=np.int64), np.full(n_samples, 1 / n_samples), None)
    return data_texts(np.array([0, 1]), rows, None)["X"]


@given(seed=st.integers(0, 1000), kind=st.sampled_from(KINDS), shape=st.sampled_from([(5, 3), (40, 1), (4, 2, 3)]))
def test_one_other_value_gives_another_text(seed, kind, shape):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2, shape).astype(kind)
    text = text_of(values)
    changed = values.copy()
    place = tuple(rng.integers(0, size) for size in shape)
    changed[place] = np.asarray(1 - int(values[place] in {1, "1"})).astype(kind)
    assert text_of(changed) != text
    assert text_of(values.copy()) == text
    assert text_of(np.asfortranarray(values)) == text
    assert text_of(values[..., ::-1]) == text_of(values[..., ::-1].copy())


def test_large_arrays_which_are_hashed_in_blocks_are_told_by_all_their_values_in_any_layout():
    values = np.arange(4_200_000.0).reshape(600_000, 7)  # 34 megabytes
    text = text_of(values)
    assert text_of(np.asfortranarray(values)) == text
    values[-1, -1] += 1
    assert text_of(values) != text


def test_shape_and_type_count():
    values = np.zeros((4, 6))
    texts = {text_of(values), text_of(values.reshape(6, 4)), text_of(values.astype("f4")), text_of(values.view("i8"))}
    assert len(texts) == 4


def test_texts_that_run_together_are_told_apart():
    assert text_of(np.array([["ab", "c"]], dtype=object)) != text_of(np.array([["a", "bc"]], dtype=object))
    assert text_of(np.array([["1"]], dtype=object)) != text_of(np.array([[1]], dtype=object))


def test_sparse_matrices_are_told_by_their_entries():
    values = sp.random(30, 5, 0.3, format="csr", random_state=0)
    other = values.copy()
    other.data[3] += 1
    moved = values.copy()
    moved.indices[3] = (moved.indices[3] + 1) % 5
    assert text_of(values) == text_of(values.tocsc()).replace("csc", "csr")
    assert len({text_of(values), text_of(other), text_of(moved)}) == 3


def test_data_frames_are_told_by_names_types_and_values():
    pandas = pytest.importorskip("pandas", reason="data frames")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": ["x", None], "c": pandas.Categorical(["u", "v"])})
    others = [
        frame.rename(columns={"a": "z"}),
        frame[["b", "a", "c"]],
        frame.assign(a=[1.0, 3.0]),
        frame.assign(a=[1, 2]),
        frame.assign(b=["x", "y"]),
        frame.assign(c=["u", "v"]),
        frame.assign(c=pandas.Categorical(["u", "v"], categories=["v", "u"])),
        frame.assign(c=pandas.Categorical(["v", "u"])),
    ]
    assert text_of(frame) == text_of(frame.copy())
    assert len({text_of(other) for other in [frame, *others]}) == 9


def test_categories_of_polars_are_told_by_their_names_and_order():
    polars = pytest.importorskip("polars", reason="data frames of polars")
    frames = [
        polars.DataFrame({"c": polars.Series(values, dtype=kind)})
        for values in (["u", "v"], ["v", "u"])
        for kind in (polars.Categorical, polars.Enum(["u", "v"]), polars.Enum(["v", "u"]))
    ]
    assert text_of(frames[0]) == text_of(frames[0].clone())
    assert len({text_of(frame) for frame in frames}) == 6


class Plain:
    def __init__(self, number):
        self.number = number


def settings(depth=3, **changes):
    tree = DecisionTreeClassifier(max_depth=depth, class_weight={0: 1.0, 1: 2.0})
    score = functools.partial(f_classif)
    steps = make_pipeline(StandardScaler(), SelectKBest(score, k=2), tree)
    return {
        "alpha": 0.1,
        "estimator": steps,
        "set": {"b", "a"},
        "plain": Plain(1),
        "kind": LogisticRegression,
    } | changes


@pytest.mark.parametrize(
    "other",
    [
        settings(depth=4),
        settings(alpha=0.2),
        settings(alpha="0.1"),
        settings(set={"a"}),
        settings(plain=Plain(2)),
        settings(kind=DecisionTreeClassifier),
        settings(extra=None),
        settings(array=np.arange(3)),
        settings(tuple=(1, [2, None])),
    ],
)
def test_another_setting_gives_another_text(other):
    assert setting_texts(other) != setting_texts(settings())
    assert setting_texts(settings()) == setting_texts(settings())


def test_what_does_not_change_the_models_does_not_count():
    one = LogisticRegression(n_jobs=1, verbose=0, random_state=0)
    two = LogisticRegression(n_jobs=2, verbose=1, random_state=np.random.RandomState(1))
    assert setting_texts({"estimator": one}) == setting_texts({"estimator": two})
    assert setting_texts({"alpha": np.float64(0.1)}) == setting_texts({"alpha": 0.1})


def test_a_cycle_ends():
    loop = Plain(None)
    loop.number = loop
    assert len(setting_texts({"loop": loop})["loop"]) < 1000


def test_texts_have_neither_addresses_nor_the_order_of_hashes():
    """Both are others in every process."""
    texts = setting_texts({"set": {"b", "a", "c"}, "dict": {"z": 1, "y": 2}, "plain": Plain(object()), "f": f_classif})
    assert texts["set"] == "{'a', 'b', 'c'}"
    assert texts["dict"] == "{'y': 2, 'z': 1}"
    assert texts["plain"] == f"{__name__}.Plain(number=<object object>)"
    assert texts["f"] == "sklearn.feature_selection._univariate_selection.f_classif"
