"""Of the mixtures with no more risk, one that draws for fewer rows."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

from counterpoise import MixtureClassifier
from counterpoise.metrics import cvar_loss
from counterpoise.rules.choosing import Problem, Selection, build_model_program, solve_program
from counterpoise.rules.fewest_draws import drawn_rows, with_fewest_draws
from counterpoise.theory.risks import KL, CVaR


def choices(losses, risk, sample_weight=None):
    program = build_model_program(Selection(losses, sample_weight, None), Problem(risk, ()))
    plain = solve_program(program)
    return plain, with_fewest_draws(program, plain)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("risk", [CVaR(0.1), CVaR(0.4), CVaR(1.0)], ids=repr)
def test_no_more_risk_and_no_more_drawn_rows(seed, risk):
    rng = np.random.default_rng(seed)
    hard = rng.uniform(0, 0.6, (80, 1))
    losses = (rng.uniform(size=(80, 8)) < hard).astype(np.uint8)
    losses = np.hstack([losses, losses[:, :2]])  # models that are equal
    weight = rng.integers(0, 3, 80).astype(float) if seed % 2 else None
    plain, few = choices(losses, risk, weight)
    assert cvar_loss(losses, risk.alpha, weight, mixture=few.mixture) <= plain.value + 1e-9
    assert few.value == pytest.approx(cvar_loss(losses, risk.alpha, weight, mixture=few.mixture), abs=1e-12)
    mass = np.ones(80) if weight is None else weight
    assert mass @ drawn_rows(losses, few.mixture) <= mass @ drawn_rows(losses, plain.mixture)
    assert few.lower <= few.value + 1e-12


def test_shares_that_lower_no_risk_are_given_up():
    losses = np.zeros((100, 3), dtype=np.uint8)
    losses[:10, 0] = losses[5:15, 1] = losses[:10, 2] = 1
    losses[50:60, 1], losses[10:15, 1] = 1, 0  # the second is worse; the first and third are equal
    program = build_model_program(Selection(losses, None, None), Problem(CVaR(1.0), ()))
    start = solve_program(program)._replace(mixture=np.array([0.5, 0.0, 0.5]))
    assert not drawn_rows(losses, start.mixture).any()
    mixed = start._replace(mixture=np.array([0.6, 0.4, 0.0]))
    few = with_fewest_draws(program, mixed)
    assert drawn_rows(losses, mixed.mixture).sum() == 15
    assert drawn_rows(losses, few.mixture).sum() == 0
    assert few.value == 0.1


def test_any_convex_risk_has_cuts():
    rng = np.random.default_rng(0)
    losses = (rng.uniform(size=(60, 6)) < 0.3).astype(np.uint8)
    plain, few = choices(losses, KL(0.1))
    assert KL(0.1).value(losses @ few.mixture) <= plain.value + 1e-9


def test_a_classifier_draws_for_fewer_rows_and_keeps_its_goals():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 4))
    y = (X @ [1, -1, 0.5, 0] + rng.normal(size=600) > 0).astype(int)
    pool = [
        DecisionTreeClassifier(max_depth=2, max_features=1, random_state=s).fit(X[:200], y[:200]) for s in range(15)
    ]
    pool.append(DummyClassifier(strategy="constant", constant=1).fit(X[:200], y[:200]))
    options = {"alpha": 0.3, "goals": ["recall >= 0.8"], "random_state": 0}
    drawn = MixtureClassifier(pool, **options).fit(X[200:], y[200:])
    voted = MixtureClassifier(pool, decision="vote", **options).fit(X[200:], y[200:])  # whose rows are not drawn
    assert drawn.value_ <= voted.value_ + 1e-9
    assert drawn.check_goals()[0].holds
    assert drawn.drawn_share_ <= voted.drawn_share_
    chances = drawn.decision_proba(X[200:])[:, 1]
    assert drawn.drawn_share_ == np.mean((chances > 0) & (chances < 1))
