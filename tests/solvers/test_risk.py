"""The mixture of least risk, for every risk: agreement with conic programs, certificates, refusals."""

# ruff: noqa: ARG002 - the risks here do not look at all that they are given

import math

import numpy as np
import pytest
from oracles import least_mean_variance, least_risk, random_problem
from scipy.linalg import circulant

from counterpoise.solvers import InfeasibleRows, minimize_cvar, minimize_risk
from counterpoise.theory.risks import (
    KL,
    ChiSquare,
    CVaR,
    EmpiricalLikelihood,
    Mean,
    MeanVariance,
    Risk,
    RiskRows,
    WorstCase,
    WorstGroup,
)

TAIL = -math.log(0.2)
RISKS = {
    "mean": (Mean(), [(1.0, "cvar", 0.0)]),
    "cvar": (CVaR(0.2), [(1.0, "cvar", TAIL)]),
    "empirical-likelihood": (EmpiricalLikelihood(0.1), [(1.0, "empirical-likelihood", 0.1)]),
    "kl": (KL(0.3), [(1.0, "kl", 0.3)]),
    "chi-square": (ChiSquare(0.2), [(1.0, "chi-square", 0.2)]),
    "worst group": (WorstGroup("sex"), [(1.0, "worst-group", None)]),
    "mean and tail": (0.5 * Mean() + 0.5 * CVaR(0.2), [(0.5, "cvar", 0.0), (0.5, "cvar", TAIL)]),
    "tail and group": (0.3 * CVaR(0.2) + 2.0 * WorstGroup("sex"), [(0.3, "cvar", TAIL), (2.0, "worst-group", None)]),
    "mean variance": (MeanVariance(0.6), None),
}
N_PROBLEMS = 6  # of each kind; 200 of each were tried, with the same outcome


def small_problem(seed):
    """Return a problem of at most 60 samples, real-valued or zero-one, and a group for each sample."""
    problem, rng = random_problem(seed), np.random.default_rng(seed)
    n_samples = min(len(problem.losses), 60)
    weight = problem.sample_weight
    if weight is not None:
        weight = weight[:n_samples].copy()
        weight[0] = 1.0
    losses = problem.losses[:n_samples].astype(float)
    return problem._replace(losses=losses - min(losses.min(), 0.0), sample_weight=weight), rng.integers(0, 4, n_samples)


def bound_to(risk, groups, n_models):
    return risk.bind(RiskRows(len(groups), n_models, lambda _: groups))


def assert_certified(found, problem, risk):
    """Recompute both bounds, and that the proof is below the risk at other mixtures."""
    losses = problem.losses
    assert found.mixture.min() >= 0
    assert found.mixture.sum() == pytest.approx(1, abs=1e-12)
    assert found.value == pytest.approx(risk.value(losses @ found.mixture, problem.sample_weight), abs=1e-9)
    slope, prices = found.weights @ losses, found.multipliers
    assert prices.min(initial=0) >= 0
    proven = (slope if problem.rows is None else slope + prices @ problem.rows).min() + found.offset
    proven -= 0 if problem.rows is None else prices @ problem.bounds
    assert found.lower == pytest.approx(proven, abs=1e-9)
    for mixture in np.random.default_rng(0).dirichlet(np.full(losses.shape[1], 0.3), size=5):
        value = risk.value(losses @ mixture, problem.sample_weight)
        assert slope @ mixture + found.offset <= value + 1e-9 * max(1, abs(value))
    if problem.rows is not None:
        assert (problem.rows @ found.mixture <= problem.bounds + 1e-9 * np.abs(problem.rows).max(axis=1)).all()


@pytest.mark.parametrize("name", RISKS)
def test_the_least_risk_is_that_of_the_conic_program(name):
    risk, parts = RISKS[name]
    for seed in range(N_PROBLEMS):
        problem, groups = small_problem(seed)
        bound = bound_to(risk, groups, problem.losses.shape[1])
        found = minimize_risk(problem.losses, bound, tol=1e-6, **problem.constraints)
        assert_certified(found, problem, bound)
        optimum = least_mean_variance(problem, 0.6) if parts is None else least_risk(problem, parts, groups)
        scale = max(1.0, abs(optimum))
        assert found.gap <= 1e-6 * scale, (name, seed)
        assert found.value == pytest.approx(optimum, abs=3e-6 * scale), (name, seed)


def test_a_risk_that_is_a_cvar_is_solved_as_one():
    losses = np.random.default_rng(0).random((3000, 12)) < 0.2
    fast, general = minimize_cvar(losses, 0.1), minimize_risk(losses, CVaR(0.1))
    np.testing.assert_array_equal(fast.mixture, general.mixture)
    summed = minimize_risk(losses, 0.5 * CVaR(0.1) + 0.5 * CVaR(0.1))
    assert summed.value == pytest.approx(fast.value, abs=2e-4)


def test_a_calibrated_ball_has_the_radius_of_its_rows():
    risk = EmpiricalLikelihood("calibrated", confidence=0.9)
    bound = bound_to(risk, np.zeros(1000, dtype=int), 31)
    assert bound.radius == pytest.approx(40.256 / 2000, rel=1e-4)  # the 90 % point of chi-square with 30 degrees
    with pytest.raises(ValueError, match="computes its radius from the rows at fit"):
        risk.value([1.0, 2.0])


class Median(Risk):
    def value(self, losses, sample_weight=None):
        return float(np.median(losses))

    def subgradient(self, losses, sample_weight=None):
        slope = np.zeros(len(losses))
        slope[np.argsort(losses)[len(losses) // 2]] = 1.0
        return slope


class HalfTheSlope(Risk):
    def value(self, losses, sample_weight=None):
        return float(np.mean(np.square(losses)))

    def subgradient(self, losses, sample_weight=None):
        return 5 * np.asarray(losses) / len(losses)


@pytest.mark.parametrize("risk", [Median(), HalfTheSlope()], ids=["not convex", "a slope that is none"])
def test_a_risk_that_is_not_convex_is_refused(risk):
    losses = np.random.default_rng(1).exponential(size=(301, 8))
    with pytest.raises(ValueError, match="risk must be convex in the losses, and its subgradient a slope"):
        minimize_risk(losses, risk)


class Broken(Risk):
    def __init__(self, value, subgradient):
        self.given = value, subgradient

    def value(self, losses, sample_weight=None):
        return self.given[0]

    def subgradient(self, losses, sample_weight=None):
        return self.given[1]


BAD = {
    "value": (Broken(math.nan, np.ones(3)), {}, "risk must have a finite value"),
    "slope": (Broken(1.0, np.ones(2)), {}, r"subgradient must have shape \(3,\)"),
    "tol": (KL(0.1), {"tol": 0}, "tol must be finite and above 0"),
    "rows": (KL(0.1), {"rows": [[1, 0]]}, "rows and bounds go together"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_clear_sentence(name):
    risk, given, text = BAD[name]
    with pytest.raises(ValueError, match=text):
        minimize_risk([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]], risk, **given)


def test_constraints_that_cannot_hold_are_refused():
    with pytest.raises(InfeasibleRows, match="No mixture satisfies"):
        minimize_risk([[0.0, 1.0]], KL(0.1), rows=[[1.0, 1.0]], bounds=[0.5])


class Flat(Risk):
    """A slope of zero ends the search at once."""

    def value(self, losses, sample_weight=None):
        return float(np.mean(np.square(losses)))

    def subgradient(self, losses, sample_weight=None):
        return np.zeros(len(losses))


def test_a_slope_that_ends_the_search_at_once_is_looked_at_again():
    losses = np.random.default_rng(1).exponential(size=(300, 8)) * np.linspace(0.2, 2, 8)
    with pytest.raises(ValueError, match="risk must be convex in the losses, and its subgradient a slope"):
        minimize_risk(losses, Flat())


@pytest.mark.slow
@pytest.mark.parametrize("risk", [KL(0.3), MeanVariance(0.5), 0.5 * Mean() + 0.5 * CVaR(0.3)], ids=repr)
def test_models_that_are_equal_at_the_uniform_mixture_but_for_rounding(risk):
    """Rows of circulant losses: every model has the same losses in another order."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 12))
        losses = circulant([rng.random(size), rng.random(size).round(1), (rng.random(size) < 0.4) * 1.0][seed % 3])
        first = np.eye(size)[0]
        for given in ({}, {"start": first}, {"rows": [first], "bounds": [0.0]}):
            assert -1e-9 <= minimize_risk(losses, risk, tol=1e-6, **given).gap <= 1e-6 + 1e-12


class WorthLess(WorstCase):
    """Its value is not the mean loss under its weights."""

    def value(self, losses, sample_weight=None):
        return float(np.mean(losses))

    def subgradient(self, losses, sample_weight=None):
        return np.eye(len(losses))[int(np.argmax(losses))]


class LessVariance(Risk):
    def value(self, losses, sample_weight=None):
        return -float(np.var(losses))

    def subgradient(self, losses, sample_weight=None):
        return -2 * (np.asarray(losses) - np.mean(losses)) / len(losses)


@pytest.mark.parametrize(
    ("risk", "losses"),
    [(WorthLess(), [[0, 1], [1, 1], [0, 0]]), (LessVariance(), [[0, 1], [1, 0]])],
    ids=["value", "bent"],
)
def test_no_value_is_returned_below_its_own_proof(risk, losses):
    with pytest.raises(ValueError, match="risk must be convex in the losses"):
        minimize_risk(losses, risk)


def test_the_worst_group_of_huge_losses():
    groups = np.array([0, 0, 1, 1])
    bound = bound_to(WorstGroup(), groups, 1)
    assert bound.value([1e308, 1e308, 1.7e308, 1.7e308]) == 1.7e308


@pytest.mark.parametrize("risk", [0.5, "CVaR(0.1)", None, CVaR])
def test_what_is_no_risk_is_refused(risk):
    with pytest.raises(ValueError, match="risk must have methods value and subgradient"):
        minimize_risk([[0, 1], [1, 0]], risk)
