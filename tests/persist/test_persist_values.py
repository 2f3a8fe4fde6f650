"""The codec below models: plain values, arrays and random states come back as they were, others are refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from counterpoise.persist import UnstorableModel, dumps, loads

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(10**5000), max_value=10**5000),
    st.floats(),
    st.text(),
    st.binary(max_size=20),
)
KEYS = st.one_of(st.none(), st.integers(), st.text(), st.tuples(st.text(), st.booleans()))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner, inner), st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)


def same(first, second):
    """Tell whether two values are equal in type too, with NaN equal to itself and 0 different from -0."""
    if type(first) is not type(second):
        return False
    if isinstance(first, float):
        return (math.isnan(first) and math.isnan(second)) or repr(first) == repr(second)
    if isinstance(first, dict):
        return same(list(first.items()), list(second.items()))
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return first == second


@given(VALUES)
def test_plain_values_come_back_with_their_types(value):
    assert same(loads(dumps(value)), value)


ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
    np.arange(24).reshape(4, 6)[::2, ::3],
    np.array(3.5),
    np.empty((0, 4), dtype=np.float32),
    np.array(["ö", "bird"]),
    np.array(["a", None, 1, 2.5, float("nan"), True], dtype=object),
    np.array([], dtype=object),
    np.asfortranarray(np.arange(2000).reshape(2, -1) % 2 == 0),
    (np.arange(999) % 2).astype(np.uint8),
    np.array([2, 0], dtype=np.uint8),
    np.array([1, 2], dtype=">i4"),
    np.array(["2020-01-01"], dtype="datetime64[D]"),
    np.array([1 + 2j]),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_arrays_come_back_with_type_shape_and_order(array):
    found = loads(dumps({"array": array}))["array"]
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.flags.f_contiguous == (array.flags.f_contiguous or array.size <= max(array.shape, default=1))
    assert same(found.tolist(), array.tolist())


def test_numpy_scalars_and_random_states_come_back():
    generator, state = np.random.default_rng(3), np.random.RandomState(4)
    state.normal()
    seeds = np.random.SeedSequence([1, 2], spawn_key=(5,))
    values = (np.float32(1.5), np.bool_(True), np.str_("x"), generator, state, seeds)
    single, flag, word, other, again, sown = loads(dumps(values))
    assert (type(single), single, type(flag), type(word), word) == (np.float32, 1.5, np.bool_, np.str_, "x")
    assert_array_equal(other.random(5), generator.random(5))
    assert_array_equal(again.normal(size=5), state.normal(size=5))
    assert_array_equal(sown.generate_state(4), seeds.generate_state(4))


def test_shared_parts_stay_shared():
    part = [np.arange(3)]
    first, second = loads(dumps((part, {"again": part})))
    assert second["again"] is first


def test_what_holds_itself_is_refused():
    part = []
    part.append({"inner": part})
    with pytest.raises(UnstorableModel, match=r"\[0\]\['inner'\] is a part that holds itself"):
        dumps(part)


def test_deep_nesting_is_refused():
    part = []
    for _ in range(100_000):
        part = [part]
    with pytest.raises(UnstorableModel, match="nested too deeply"):
        dumps(part)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([object()]), "an array of objects with of the type builtins.object"),
        (np.zeros(2, dtype=[("a", "i4")]), "an array of type"),
        ({1, 2}, "of the type builtins.set, which cp.save does not know"),
        (np.random.Generator(np.random.Philox(1)), "a random generator of the kind Philox"),
    ],
)
def test_other_values_are_refused_by_type(value, message):
    with pytest.raises(UnstorableModel, match=message):
        dumps([value])
