"""The worst-off rows in words: the tail is that of the CVaR, and the segments count it right."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise.metrics import cvar_loss
from counterpoise.runs.data import RunRows
from counterpoise.runs.segments import find_segments, tail_membership, why_no_segments

LOSSES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=30)


@given(losses=LOSSES, alpha=st.floats(0.01, 1), data=st.data())
def test_the_mean_loss_of_the_tail_is_the_cvar(losses, alpha, data):
    losses = np.array(losses)
    weights = np.array(data.draw(st.lists(st.integers(1, 4), min_size=losses.size, max_size=losses.size)), dtype=float)
    member = tail_membership(losses, alpha, weights)
    assert member.min() >= 0
    assert member.max() <= 1
    assert (member * weights).sum() == pytest.approx(alpha * weights.sum())
    assert np.average(losses, weights=member * weights) == pytest.approx(cvar_loss(losses, alpha, weights))


def rows(n_rows=2000):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, n_rows).astype(float)
    job = rng.choice(["clerk", "farmer"], n_rows)
    frame = pd.DataFrame({"age": age, "job": pd.Categorical(job)})
    frame.loc[:10, "age"] = np.nan
    return RunRows(frame, None, {"sex": rng.choice(["F", "M"], n_rows).astype(object)}, None, None)


def test_a_planted_segment_is_found_in_words_and_counts():
    part = rows()
    planted = ((part.X["age"] > 61) & (part.X["job"] == "farmer") & (part.groups["sex"] == "F")).to_numpy()
    losses = np.where(planted, 0.9, 0.1)
    worst = find_segments(part, losses, float(planted.mean()))[0]
    assert worst.n_rows == planted.sum()
    assert worst.share == pytest.approx(1)
    assert worst.part == pytest.approx(1)
    assert re.search(r"age above 61\.5", worst.text)
    assert "job is farmer" in worst.text or "job is not clerk" in worst.text
    assert "sex is F" in worst.text or "sex is not M" in worst.text
    assert worst.lift == pytest.approx(1 / planted.mean())
    assert not re.search(r"rows|%", worst.text)  # numbers have columns of their own


def test_rows_of_a_segment_are_counted_among_all_though_some_are_looked_at():
    """Of 400,000 rows half are looked at: as many as the segment has among those would be half of its rows."""
    is_young = np.arange(400_000) % 10 == 0
    part = RunRows(pd.DataFrame({"age": np.where(is_young, 20.0, 50.0)}), None, {}, None, None)
    (worst,) = find_segments(part, is_young.astype(float), 0.1)
    assert worst.n_rows == pytest.approx(40_000, rel=0.02)
    assert worst.part == pytest.approx(1)


def test_it_is_told_why_segments_are_not_looked_for():
    assert why_no_segments(2000, 1.0) == "alpha is 1, so there is no tail"
    assert why_no_segments(39, 0.1) == "39 rows are too few to find segments"
    assert why_no_segments(40, 0.1) == ""
    assert find_segments(rows(), np.linspace(0, 1, 2000), 1.0) == []


def test_numbers_too_large_for_trees_of_scikit_learn():
    part = rows()
    part.X["age"] *= 1e300
    worst = find_segments(part, (part.X["age"] > 61e300).to_numpy().astype(float), 0.2)
    assert all(one.n_rows > 0 for one in worst)


def test_equal_losses_have_no_worst_segment():
    assert find_segments(rows(), np.full(2000, 0.3), 0.1) == []
    assert find_segments(rows(30), np.linspace(0, 1, 30), 0.1) == []
