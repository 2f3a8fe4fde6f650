"""Rules chosen on labels that are known in part, against masses written out row by row."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import counterpoise as cp
from counterpoise.goals.partial_labels import best_factor

GOALS = ["recall >= 0.65", "false_positive_rate <= 0.45"]


def draw(rng, n_rows):
    X = rng.normal(size=(n_rows, 3))
    return X, (rng.random(n_rows) < 1 / (1 + np.exp(0.8 - 1.5 * X[:, 0] - X[:, 1]))).astype(int)


MODEL = LogisticRegression().fit(*draw(np.random.default_rng(0), 2000))


def fitted(X, y, **options):
    return cp.GoalClassifier(MODEL, goals=GOALS, cv="prefit", pos_label=1, **options).fit(X, y)


def masses_by_row(labels, proxy, propensity, factor):
    """Return the masses on class 0 and 1 as the formula has them."""
    masses = []
    for label, chance, known in zip(labels, proxy, propensity, strict=True):
        row = []
        for place, said in enumerate((1 - chance, chance)):
            mass = factor * said
            if label is not None:
                mass += ((label == place) - factor * said) / known
            row.append(mass)
        masses.append(row)
    return np.array(masses)


@pytest.mark.parametrize("proxy", [None, "score", "noise"])
def test_all_labels_known_are_those_labels_to_the_bit(proxy):
    rng = np.random.default_rng(1)
    X, y = draw(rng, 1500)
    says = {"score": MODEL.predict_proba(X)[:, 1], "noise": rng.random(len(y)), None: None}[proxy]
    plain, partial = fitted(X, y), fitted(X, cp.PartialLabels(y, says))
    assert partial.rules_ == plain.rules_
    assert partial.value_ == plain.value_
    assert partial.margins_ == plain.margins_
    assert partial.check_goals() == plain.check_goals()


def test_labels_alone_are_the_labelled_rows_alone():
    rng = np.random.default_rng(2)
    X, y = draw(rng, 4000)
    known = rng.random(4000) < 0.3
    labelled, partial = fitted(X[known], y[known]), fitted(X, cp.PartialLabels(np.where(known, y, np.nan)))
    assert partial.rules_ == labelled.rules_
    assert partial.margins_ == labelled.margins_


def test_masses_are_those_of_the_formula_and_cells_add_them_up():
    rng = np.random.default_rng(3)
    X, y = draw(rng, 3000)
    chance = np.where(X[:, 1] > 0, 0.6, 0.1)
    known = rng.random(3000) < chance
    proxy = MODEL.predict_proba(X)[:, 1]
    labels = cp.PartialLabels(np.where(known, y, np.nan), proxy, chance)
    masses = labels.masses(np.array([0, 1]), (proxy > 0.3)[:, None])
    unknown = ~known
    factors = masses[unknown, 1] / proxy[unknown]
    assert 0 < factors.min() <= factors.max() <= 1
    assert np.unique(factors.round(9)).size <= 5
    expected = [
        masses_by_row([label if is_known else None], [said], [pi], factor)[0]
        for label, is_known, said, pi, factor in zip(
            y[unknown], known[unknown], proxy[unknown], chance[unknown], factors, strict=True
        )
    ]
    assert np.allclose(masses[unknown], expected)
    per_row = masses[known]
    own = [
        min(
            np.abs(per_row[place] - masses_by_row([y[row]], [proxy[row]], [chance[row]], factor)[0]).max()
            for factor in np.unique(factors.round(12))
        )
        for place, row in enumerate(np.flatnonzero(known).tolist())
    ]
    assert max(own) < 1e-9
    model = fitted(X, labels, confidence=None)
    is_above = model.predict(X) == 1
    check = model.check_goals()
    with_scores = labels.masses(np.array([0, 1]), _regions(proxy))
    assert check[0].value == pytest.approx(with_scores[is_above, 1].sum() / with_scores[:, 1].sum())
    assert check[1].value == pytest.approx(with_scores[is_above, 0].sum() / with_scores[:, 0].sum())


def _regions(score):
    return np.column_stack([score > np.quantile(score, level / 10) for level in range(1, 10)]).astype(float)


def test_a_worthless_proxy_changes_nothing():
    rng, n_same = np.random.default_rng(4), 0
    for _ in range(20):
        X, y = draw(rng, 2000)
        known = rng.random(2000) < 0.15
        labels = np.where(known, y, np.nan)
        masses = [
            cp.PartialLabels(labels, proxy, 0.15).masses(np.array([0, 1]), _regions(X[:, 0]))
            for proxy in (None, rng.random(2000))
        ]
        n_same += np.array_equal(*masses)
    assert n_same >= 15


def test_the_factor_makes_the_variance_least():
    rng = np.random.default_rng(5)
    X, y = draw(rng, 500)
    proxy, chance, region = rng.beta(1 + 3 * y, 2), rng.uniform(0.05, 0.5, 500), (X[:, 0] > 0.2)[:, None].astype(float)
    hot, says = np.eye(2)[y], np.column_stack([1 - proxy, proxy])
    best = best_factor(hot, says, chance, region)

    def spread(factor):
        total = 0.0
        for place in (0, 1):
            share = np.average(region[:, 0], weights=hot[:, place] / chance)
            pull = (1 - chance) / chance**2 * (region[:, 0] - share) ** 2
            residual = (hot[:, place] - factor * says[:, place]) ** 2
            total += (pull * residual).sum() / (pull * hot[:, place]).sum()
        return total

    grid = np.linspace(0, 1, 1001)
    assert best == pytest.approx(grid[np.argmin([spread(factor) for factor in grid])], abs=1e-3)


def test_standard_errors_are_those_of_new_draws():
    rng, values, errors = np.random.default_rng(6), [], []
    for _ in range(40):
        X, y = draw(rng, 3000)
        proxy = np.clip(MODEL.predict_proba(X)[:, 1] + rng.normal(size=3000) * 0.1, 0, 1)
        known = rng.random(3000) < 0.1
        labels = cp.PartialLabels(np.where(known, y, np.nan), proxy, 0.1)
        model = cp.GoalClassifier(MODEL, goals=["recall >= 0.5"], by=(), cv="prefit", pos_label=1).fit(X, labels)
        (margin,) = model.margins_
        (check,) = model.check_goals()
        bulk = draw(rng, 20000)
        true = model.check_goals(*bulk)[0].value
        values.append(check.value - true)
        errors.append(margin.standard_error)
    ratio = np.std(values) / np.mean(errors)
    assert 0.7 < ratio < 1.2


def test_rebalance_and_val_take_them_too():
    rng = np.random.default_rng(7)
    X, y = draw(rng, 4000)
    known = rng.random(3000) < 0.2
    labels = cp.PartialLabels(np.where(known, y[1000:], np.nan), MODEL.predict_proba(X[1000:])[:, 1])
    model = fitted(X[1000:], labels)
    again = fitted(X[:1000], y[:1000]).rebalance(X[1000:], labels)
    assert again.rules_ == model.rules_
    val = cp.GoalClassifier(LogisticRegression(), goals=GOALS, pos_label=1)
    val.fit(X[:1000], y[:1000], X_val=X[1000:], y_val=labels)
    assert len(val.margins_) == 2
    assert val.predict(X).shape == (4000,)


def test_persons_are_the_unit_of_chance():
    rng = np.random.default_rng(8)
    X, y = draw(rng, 1500)
    known = np.repeat(rng.random(1500) < 0.3, 2)
    X, y, persons = np.repeat(X, 2, axis=0), np.repeat(y, 2), np.repeat(np.arange(1500), 2)
    labels = cp.PartialLabels(np.where(known, y, np.nan), MODEL.predict_proba(X)[:, 1], 0.3)
    model = cp.GoalClassifier(MODEL, goals=GOALS, cv="prefit", pos_label=1)
    alone = model.fit(X, labels).margins_[0].standard_error
    together = model.fit(X, labels, ids=persons).margins_[0].standard_error
    assert together / alone == pytest.approx(np.sqrt(2), rel=0.15)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda X, y: cp.GoalClassifier(goals=GOALS).fit(X, y), "Models are trained on rows that have labels"),
        (lambda X, y: fitted(X, y, decision="sticky"), r"got decision='sticky'"),
        (lambda X, y: fitted(X, y, confidence=cp.Proof(0.9)), "got a Proof"),
        (lambda X, y: fitted(X, y, objective="f1_score"), "got the objective f1_score"),
        (lambda X, y: fitted(X, y, confidence=None).rebalance(decision="sticky"), "set decision='fixed'"),
        (lambda *_: cp.PartialLabels([None, np.nan]), "must hold some labels"),
        (lambda *_: cp.PartialLabels([1, None], [0.5]), "for each of the 2 rows"),
        (lambda *_: cp.PartialLabels([1, None], None, 1.5), "above 0 and at most 1; got 1.5"),
        (lambda X, y: fitted(X, cp.PartialLabels(y.filled * np.where(y.is_known, 1, np.nan), 7 * X[:, 0])), "proxy"),
    ],
)
def test_what_is_refused(fit, message):
    X, y = draw(np.random.default_rng(9), 300)
    labels = cp.PartialLabels(np.where(np.arange(300) % 2, y, np.nan), MODEL.predict_proba(X)[:, 1])
    with pytest.raises(ValueError, match=message):
        fit(X, labels)
