"""Splits: every row once, every class everywhere, right sizes, same seed same split."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise.datasets import split_rows, split_three_ways

PARTS = st.lists(st.integers(1, 20), min_size=1, max_size=5).map(lambda shares: [one / sum(shares) for one in shares])
COUNTS = st.lists(st.integers(5, 60), min_size=1, max_size=8)  # rows of each class; never fewer than parts


def labels_of(counts, seed):
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))


@given(COUNTS, PARTS, st.integers(0, 99), st.booleans())
def test_each_row_is_in_exactly_one_part(counts, parts, seed, stratify):
    y = labels_of(counts, seed)
    split = split_rows(y, parts, seed=seed, stratify=stratify)
    assert len(split) == len(parts)
    assert sorted(np.concatenate(split).tolist()) == list(range(len(y)))
    assert all(len(rows) > 0 and (np.diff(rows) > 0).all() for rows in split)


@given(COUNTS, PARTS, st.integers(0, 99))
def test_each_class_has_its_share_in_every_part(counts, parts, seed):
    y = labels_of(counts, seed)
    for fraction, rows in zip(parts, split_rows(y, parts, seed=seed), strict=True):
        for label, count in enumerate(counts):
            got = int((y[rows] == label).sum())
            assert got >= 1
            # Within one of the exact share, but for the single rows that parts with none are given.
            assert abs(got - fraction * count) < len(parts)


@given(st.integers(1, 40), st.integers(0, 99))
def test_many_small_classes_do_not_skew_the_sizes(n_classes, seed):
    """Rounded by itself, each class of 5 would give 3 rows to the first half."""
    y = np.repeat(np.arange(n_classes), 5)
    first, second = split_rows(y, (0.5, 0.5), seed=seed)
    assert abs(len(first) - len(second)) <= 1


@given(COUNTS, PARTS, st.integers(0, 99))
def test_the_seed_decides(counts, parts, seed):
    y = labels_of(counts, 0)
    again = zip(split_rows(y, parts, seed=seed), split_rows(y, parts, seed=seed), strict=True)
    assert all(one.tolist() == other.tolist() for one, other in again)


def test_another_seed_gives_another_split():
    y = np.zeros(1000)
    assert split_rows(y, (0.5, 0.5), seed=0)[0].tolist() != split_rows(y, (0.5, 0.5), seed=1)[0].tolist()


def test_labels_may_be_strings():
    y = ["a", "b"] * 10
    train, test = split_rows(y, (0.7, 0.3), seed=3)
    assert (len(train), len(test)) == (14, 6)


BAD = {
    "rare class": (
        lambda: split_rows(["a"] * 9 + ["b"], (0.5, 0.5), seed=0),
        ValueError,
        "at least 2 rows, one for each part; class 'b' has 1. Merge or drop.*stratify=False",
    ),
    "few rows": (
        lambda: split_rows([1, 2], (0.5, 0.25, 0.25), seed=0, stratify=False),
        ValueError,
        "at least one row for each of the 3 parts; got 2 rows",
    ),
    "sum": (lambda: split_rows([0, 1], (0.5, 0.2), seed=0), ValueError, r"sum to 1; got \(0.5, 0.2\) with sum 0.7"),
    "negative": (lambda: split_rows([0, 1], (1.5, -0.5), seed=0), ValueError, "fractions above 0"),
    "NaN": (lambda: split_rows([0, 1], (np.nan, 1.0), seed=0), ValueError, "fractions above 0"),
    "no parts": (lambda: split_rows([0, 1], (), seed=0), TypeError, r"parts must be a sequence of fractions.*got \(\)"),
    "words": (lambda: split_rows([0, 1], "half", seed=0), TypeError, "parts must be a sequence.*got 'half'"),
    "matrix": (lambda: split_rows([[0, 1]], (1.0,), seed=0), ValueError, r"one label for each row.*got shape \(1, 2\)"),
    "three parts of few rows": (
        lambda: split_three_ways(2, seed=0),
        ValueError,
        "n_rows must be at least 3; got 2",
    ),
    "no number of rows": (
        lambda: split_three_ways("many", seed=0),
        TypeError,
        "n_rows must be a whole number of at least 3; got 'many'",
    ),
    "one fraction": (lambda: split_three_ways(9, parts=0.5, seed=0), TypeError, "parts must be a sequence.*got 0.5"),
    "seed": (lambda: split_rows([0, 1], (1.0,), seed=None), TypeError, "seed must be a whole number.*got None"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, error, text = BAD[case]
    with pytest.raises(error, match=text):
        call()
