"""The CVaR as a measure, exact with the fractional sample, weighted, for mixtures; and rates by group."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracles import cvar_by_filling, random_decisions, rates_by_counting

from counterpoise.metrics import cvar_curve, cvar_loss, rate_table, realised_cvar

ALPHAS = st.floats(1e-6, 1.0)
LOSSES = arrays(float, st.integers(1, 60), elements=st.floats(-100, 100))


@given(st.integers(1, 500), st.floats(0, 1), ALPHAS)
def test_zero_one_losses_have_a_cvar_of_error_over_alpha(n_samples, error, alpha):
    """Proposition 1 of the 2021 paper, to machine precision: alpha n is never floored."""
    losses = np.arange(n_samples) < round(error * n_samples)
    expected = min(1.0, losses.mean() / alpha)
    assert cvar_loss(losses, alpha) == pytest.approx(expected, rel=4e-16, abs=1e-16)
    assert cvar_curve(losses, [alpha])[0] == pytest.approx(expected, rel=1e-13)


@given(LOSSES, ALPHAS, st.integers(0, 99))
def test_agrees_with_handing_out_the_mass(losses, alpha, seed):
    weight = np.random.default_rng(seed).exponential(size=losses.size)
    assert cvar_loss(losses, alpha) == pytest.approx(cvar_by_filling(losses, alpha), abs=1e-8)
    expected = cvar_by_filling(losses, alpha, weight)
    assert cvar_loss(losses, alpha, weight) == pytest.approx(expected, abs=1e-7)
    assert cvar_loss(losses, alpha, weight * 1e12) == pytest.approx(expected, abs=1e-7)


@given(LOSSES)
def test_the_curve_falls_from_the_worst_sample_to_the_average(losses):
    alphas = np.linspace(1e-3, 1.0, 40)
    curve = cvar_curve(losses, alphas)
    assert curve[0] <= losses.max() + 1e-9
    assert curve[-1] == pytest.approx(losses.mean(), abs=1e-9)
    assert (np.diff(curve) <= 1e-9).all()
    np.testing.assert_allclose(curve, [cvar_loss(losses, alpha) for alpha in alphas], atol=1e-9)


def test_the_curve_keeps_the_order_of_the_alphas():
    assert cvar_curve([0, 1, 2, 3], [1.0, 0.25, 0.5]).tolist() == [1.5, 3.0, 2.5]


def test_a_mixture_mixes_the_models_losses():
    losses = (np.random.default_rng(0).random((200_000, 3)) < 0.3).astype(np.uint8)
    mixture = [0.2, 0.3, 0.5]
    assert cvar_loss(losses, 0.1, mixture=mixture) == pytest.approx(cvar_loss(losses @ np.array(mixture), 0.1))


def test_a_zero_weight_removes_the_sample():
    assert cvar_loss([9.0, 1.0, 2.0], 0.5, [0, 1, 1]) == pytest.approx(cvar_loss([1.0, 2.0], 0.5))


def test_losses_of_1e300_do_not_overflow():
    assert cvar_loss([1e300, -1e300, 1e300], 0.5) == pytest.approx(1e300)


BAD = {
    "NaN": (lambda: cvar_loss([0.0, np.nan], 0.5), "losses must be finite everywhere; got NaN"),
    "negative alpha": (lambda: cvar_loss([0.0], -1), r"alpha must lie in \(0, 1\].*got -1"),
    "large alpha": (lambda: cvar_loss([0.0], 1.01), r"alpha must lie in \(0, 1\].*got 1.01"),
    "empty": (lambda: cvar_loss([], 0.5), r"at least one sample.*got shape \(0,\)"),
    "scalar": (lambda: cvar_loss(0.5, 0.5), r"losses must have shape \(n_samples,\) or.*got shape \(\)"),
    "no mixture": (lambda: cvar_loss(np.eye(3), 0.5), r"losses of shape \(3, 3\) need a mixture over the 3 models"),
    "mixture of a vector": (lambda: cvar_loss([0.1], 0.5, mixture=[1.0]), "mixture needs losses of shape"),
    "mixture too long": (
        lambda: cvar_loss(np.eye(3), 0.5, mixture=[0.5, 0.5]),
        r"mixture must have shape \(3,\).*got shape \(2,\)",
    ),
    "weights": (lambda: cvar_loss([0.1, 0.2], 0.5, [1.0]), r"sample_weight must have shape \(2,\).*got shape \(1,\)"),
    "NaN weight": (lambda: cvar_loss([0.1], 0.5, [np.nan]), "sample_weight must be finite everywhere; got NaN"),
    "alphas": (lambda: cvar_curve([0.1], [[0.5]]), r"alphas must be a non-empty.*got shape \(1, 1\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()


@given(st.integers(0, 10_000), st.booleans())
def test_the_rate_table_agrees_with_counting_in_every_group(seed, weighted):
    predicted, labels, baseline, sex, weight = random_decisions(seed, weighted=weighted)
    table = rate_table(predicted, labels, {"sex": sex}, baseline=baseline, sample_weight=weight)
    assert [row.group for row in table] == ["all", "sex=F", "sex=M"]
    for row in table:
        kept = np.ones(len(sex), dtype=bool) if row.group == "all" else sex == row.group[-1]
        expected = rates_by_counting(predicted[kept], labels[kept], baseline[kept], weight[kept])
        assert (row.n_samples, row.n_positives) == (kept.sum(), labels[kept].sum())
        for name in ("positive_rate", "error_rate", "recall", "false_positive_rate", "precision", "churn"):
            assert getattr(row, name) == pytest.approx(expected[name], nan_ok=True)


def test_the_rate_table_of_unlabelled_rows_has_what_can_be_known():
    table = rate_table(["no", "yes", "yes"], sensitive_features=["a", "b", None], classes=["no", "yes"])
    assert [(row.group, row.n_samples, row.positive_rate) for row in table] == [
        ("all", 3, pytest.approx(2 / 3)),
        ("group=(missing)", 1, 1.0),
        ("group=a", 1, 0.0),
        ("group=b", 1, 1.0),
    ]
    assert all(row.n_positives is None and np.isnan(row.recall) for row in table)
    header, *lines = str(table).split("\n")
    assert header.split() == ["group", "n_samples", "positive_rate"]
    assert lines[0].split() == ["all", "3", "0.6667"]


def test_groups_are_combinations_of_all_columns():
    table = rate_table([0, 1, 1], [0, 1, 0], {"sex": ["F", "M", "M"], "age": [30, 30, 40]})
    assert [row.group for row in table][1:] == ["sex=F, age=30", "sex=M, age=30", "sex=M, age=40"]
    assert np.isnan(table[1].recall)
    assert "-" in str(table).split("\n")[2].split()
    assert len(rate_table([0, 1], [0, 1])) == 1


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1)), st.floats(0.01, 1))
def test_the_realised_tail_is_that_of_a_deterministic_classifier_with_the_same_error(chances, alpha):
    realised = realised_cvar(chances, alpha)
    assert realised == pytest.approx(min(1, chances.mean() / alpha))
    assert realised >= cvar_loss(chances, alpha) - 1e-9  # spreading errors over draws can only help before the draw


def test_the_realised_tail_is_the_average_over_keys_of_what_they_draw():
    rng = np.random.default_rng(0)
    losses, mixture = rng.integers(0, 2, (400, 3)), np.array([0.5, 0.3, 0.2])
    drawn = [losses[np.arange(400), rng.choice(3, 400, p=mixture)] for _ in range(300)]
    tails = [cvar_loss(one, 0.9) for one in drawn]
    assert tails == pytest.approx([one.mean() / 0.9 for one in drawn])
    assert np.mean(tails) == pytest.approx(realised_cvar(losses, 0.9, mixture=mixture).item(), abs=0.01)


def test_only_probabilities_have_a_realised_tail():
    with pytest.raises(ValueError, match=r"losses must be probabilities of an error; got 0\.5 to 2"):
        realised_cvar([0.5, 2.0], 0.1)


def test_rates_of_chances_are_expectations_with_intervals_around_them():
    rng = np.random.default_rng(1)
    chances, y, sex = rng.choice([0.0, 0.4, 1.0], 500), rng.integers(0, 2, 500), rng.choice(["F", "M"], 500)
    for row in rate_table(chances, y, {"sex": sex}, kind="probabilities"):
        here = np.full(500, True) if row.group == "all" else sex == row.group[-1]
        wanted = {"positive_rate": chances[here].mean(), "recall": chances[here & (y == 1)].mean()}
        wanted["precision"] = (chances * y)[here].sum() / chances[here].sum()
        for name, value in wanted.items():
            low, high = row.bounds[name]
            assert row.rates[name] == pytest.approx(value)
            assert low < value < high
    with pytest.raises(ValueError, match="must hold the probability of the positive class"):
        rate_table(np.ones((3, 2)), [0, 1, 1], kind="probabilities")
