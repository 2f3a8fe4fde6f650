"""Metrics have the names that scikit-learn and fairlearn users know, and the values that these libraries give."""

import pickle

import numpy as np
import pytest
from sklearn import metrics as sk

import counterpoise
from counterpoise import goals
from counterpoise.goals import Table, parse_goal, parse_rate, rates
from counterpoise.goals.rates import ALIASES, METRICS, OTHER_NAMES, RATIOS

RNG = np.random.default_rng(0)
N = 200
SEX = RNG.choice(["F", "M"], N)
LABELS = RNG.integers(0, 2, N)
PREDICTED = np.where(RNG.random(N) < 0.7, LABELS, 1 - LABELS)
BASELINE = np.where(RNG.random(N) < 0.8, LABELS, 1 - LABELS)
WEIGHTS = RNG.uniform(0.5, 2.0, N)


def by_fairlearn(which, numerator, denominator):
    """Return a rate as fairlearn computes it, from the normalized confusion matrix."""
    tn, fp, fn, tp = sk.confusion_matrix(*which[:2], sample_weight=which[3]).ravel()
    cells = {"tn": tn, "fp": fp, "fn": fn, "tp": tp}
    return sum(cells[one] for one in numerator.split()) / sum(cells[one] for one in denominator.split())


# Of labels, predictions, the baseline's predictions and weights.
FORMULAS = {
    "selection_rate": lambda *a: a[3][a[1] == 1].sum() / a[3].sum(),
    "error": lambda *a: a[3][a[1] != a[0]].sum() / a[3].sum(),
    "zero_one_loss": lambda *a: sk.zero_one_loss(a[0], a[1], sample_weight=a[3]),
    "accuracy_score": lambda *a: sk.accuracy_score(a[0], a[1], sample_weight=a[3]),
    "balanced_accuracy_score": lambda *a: sk.balanced_accuracy_score(a[0], a[1], sample_weight=a[3]),
    "true_positive_rate": lambda *a: by_fairlearn(a, "tp", "tp fn"),
    "tpr": lambda *a: by_fairlearn(a, "tp", "tp fn"),
    "sensitivity": lambda *a: by_fairlearn(a, "tp", "tp fn"),
    "hit_rate": lambda *a: by_fairlearn(a, "tp", "tp fn"),
    "recall_score": lambda *a: sk.recall_score(a[0], a[1], sample_weight=a[3]),
    "fnr": lambda *a: by_fairlearn(a, "fn", "tp fn"),
    "miss_rate": lambda *a: by_fairlearn(a, "fn", "tp fn"),
    "fpr": lambda *a: by_fairlearn(a, "fp", "fp tn"),
    "fall_out": lambda *a: by_fairlearn(a, "fp", "fp tn"),
    "false_alarm_rate": lambda *a: by_fairlearn(a, "fp", "fp tn"),
    "tnr": lambda *a: by_fairlearn(a, "tn", "fp tn"),
    "specificity": lambda *a: sk.recall_score(a[0], a[1], sample_weight=a[3], pos_label=0),
    "positive_predictive_value": lambda *a: by_fairlearn(a, "tp", "tp fp"),
    "ppv": lambda *a: by_fairlearn(a, "tp", "tp fp"),
    "precision_score": lambda *a: sk.precision_score(a[0], a[1], sample_weight=a[3]),
    "npv": lambda *a: sk.precision_score(a[0], a[1], sample_weight=a[3], pos_label=0),
    "fdr": lambda *a: by_fairlearn(a, "fp", "tp fp"),
    "f1": lambda *a: sk.f1_score(a[0], a[1], sample_weight=a[3]),
    "change_rate": lambda *a: a[3][a[1] != a[2]].sum() / a[3].sum(),
    "abstention_rate": lambda *_: 0.0,
}
NEW = {
    "balanced_accuracy": FORMULAS["balanced_accuracy_score"],
    "negative_predictive_value": FORMULAS["npv"],
    "false_discovery_rate": FORMULAS["fdr"],
    "jaccard_score": lambda *a: sk.jaccard_score(a[0], a[1], sample_weight=a[3]),
    "false_omission_rate": lambda *a: by_fairlearn(a, "fn", "tn fn"),
}


def test_every_alias_has_a_formula_here():
    assert set(FORMULAS) == set(ALIASES)


@pytest.mark.parametrize("name", [*FORMULAS, *NEW])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_alias_has_the_value_that_the_other_library_gives(name, weighted):
    weights = WEIGHTS if weighted else np.ones(N)
    table = Table(None, LABELS, {"sex": SEX}, BASELINE, sample_weight=weights)
    for rows, where in ((np.ones(N, bool), {}), (SEX == "F", {"sex": "F"})):
        expected = (FORMULAS | NEW)[name](LABELS[rows], PREDICTED[rows], BASELINE[rows], weights[rows])
        text = f"{name}(sex=F)" if where else name
        assert getattr(goals, name)(**where).value(PREDICTED, table) == pytest.approx(expected)
        assert parse_goal(f"{text} <= 0.5").left.value(PREDICTED, table) == pytest.approx(expected)


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_its_metric_and_prints_under_the_main_name(alias):
    name = ALIASES[alias]
    assert getattr(goals, alias) is getattr(rates, alias) is getattr(counterpoise.rates, name)
    assert alias in goals.__all__
    assert alias not in {*METRICS, *RATIOS}
    assert name in {*METRICS, *RATIOS}
    assert f"``{alias}``" in getattr(goals, name).__doc__
    for rows in ("mail", "mail, sex=F", "train.baseline_positives", "of=cat, 18<=age<25"):
        goal = parse_goal(f"{alias}({rows}) <= 0.5 with confidence 0.9")
        assert str(goal) == f"{name}({rows}) <= 0.5 with confidence 0.9"
        assert goal == parse_goal(str(goal)) == parse_goal(f"{name}({rows}) <= 0.5 with confidence 0.9")
        assert pickle.loads(pickle.dumps(goal)) == goal  # noqa: S301 - our own bytes
    phrase = parse_goal(f"every_group({alias}, by=sex) <= 0.5")
    assert str(phrase) == f"every_group({name}, by=sex) <= 0.5"
    for metric in (alias, getattr(goals, alias)):
        assert phrase == (goals.every_group(metric, by="sex") <= 0.5)
    if name in METRICS:
        assert str(parse_rate(f"macro({alias})")) == str(goals.macro(alias)) == f"macro({name})"


def test_the_guide_lists_every_alias_beside_its_metric(pytestconfig):
    page = (pytestconfig.rootpath / "docs" / "api" / "metrics.md").read_text(encoding="utf-8")
    for name, aliases in OTHER_NAMES.items():
        assert f"| `{name}` | {', '.join(f'`{alias}`' for alias in aliases)} |" in page


def test_balanced_accuracy_is_the_mean_of_the_recalls_of_all_classes():
    assert goals.balanced_accuracy() == 0.5 * goals.recall() + 0.5 * goals.true_negative_rate()
    y = RNG.choice(["cat", "dog", "fox"], N, p=[0.6, 0.3, 0.1])
    said = np.where(RNG.random(N) < 0.6, y, RNG.choice(["cat", "dog", "fox"], N))
    table = Table(None, y, {"sex": SEX}, sample_weight=WEIGHTS)
    expected = sk.balanced_accuracy_score(y, said, sample_weight=WEIGHTS)
    assert goals.balanced_accuracy().value(said, table) == pytest.approx(expected)
    assert goals.macro("recall").value(said, table) == pytest.approx(expected)
    women = sk.balanced_accuracy_score(y[SEX == "F"], said[SEX == "F"], sample_weight=WEIGHTS[SEX == "F"])
    assert goals.balanced_accuracy(sex="F").value(said, table) == pytest.approx(women)
    against_the_rest = sk.balanced_accuracy_score(y == "cat", said == "cat", sample_weight=WEIGHTS)
    assert goals.balanced_accuracy(of="cat").value(said, table) == pytest.approx(against_the_rest)
    assert goals.balanced_accuracy().value(said, table, pos_label="cat") == pytest.approx(against_the_rest)
    with pytest.raises(
        ValueError, match=r"is a mean over the classes, and train\.positives leaves out the rows of some"
    ):
        parse_goal("balanced_accuracy(train.positives) >= 0.5")
