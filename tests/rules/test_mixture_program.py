"""The mixture that is chosen: against the whole linear program, all pairs of models, and repeated rows."""

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

from counterpoise import MixtureClassifier
from counterpoise.goals import InfeasibleGoals


def least_cvar(losses, weights, alpha, rows, bounds):
    """Return the value of the whole linear program, a slack for each sample and a row for each goal, or None."""
    n_samples, n_models = losses.shape
    caps = weights / (alpha * weights.sum())
    over = np.hstack([losses, -np.ones((n_samples, 1)), -np.eye(n_samples)])
    limited = np.hstack([rows, np.zeros((len(rows), 1 + n_samples))])
    found = linprog(
        np.concatenate([np.zeros(n_models), [1.0], caps]),
        A_ub=np.vstack([over, limited]),
        b_ub=np.concatenate([np.zeros(n_samples), bounds]),
        A_eq=np.concatenate([np.ones(n_models), np.zeros(1 + n_samples)])[None],
        b_eq=[1.0],
        bounds=[(0, None)] * n_models + [(None, None)] + [(0, None)] * n_samples,
    )
    return found.fun if found.status == 0 else None


def rates_by_hand(predicted, y, sex, weights):
    """Return the rates of each model that the random goals refer to, counted one by one."""

    def share(part, whole):
        return (weights[:, None] * (part & whole[:, None])).sum(axis=0) / (weights * whole).sum()

    everyone = np.ones(len(y), bool)
    return {
        "recall": share(predicted == 1, y == 1),
        "false_positive_rate": share(predicted == 1, y == 0),
        "error_rate": share(predicted != y[:, None], everyone),
        "positive_rate(sex=F)": share(predicted == 1, sex == "F"),
        "positive_rate(sex=M)": share(predicted == 1, sex == "M"),
    }


def random_problem(seed):
    """Return a pool of stored predictions, labels, groups, weights, an alpha, and goals with their rows by hand."""
    rng = np.random.default_rng(seed)
    n_samples, n_models = int(rng.integers(8, 40)), int(rng.integers(1, 7))
    y = rng.permutation(np.arange(n_samples) % 2)
    sex = rng.permutation(np.where(np.arange(n_samples) % 3 == 0, "F", "M"))
    predicted = np.where(
        rng.random((n_samples, n_models)) < rng.uniform(0.05, 0.5, n_models), 1 - y[:, None], y[:, None]
    )
    weights = rng.choice([1.0, 2.0, 5.0], n_samples) if seed % 3 == 0 else np.ones(n_samples)
    rates = rates_by_hand(predicted, y, sex, weights)
    goals, rows, bounds = [], [], []
    for name in rng.choice(sorted(rates), int(rng.integers(0, 4)), replace=False):
        sign = rng.choice([-1.0, 1.0])
        # Around what the models do: some goals hold for all mixtures, some cut, some cannot hold.
        bound = float(np.round(rng.uniform(rates[name].min() - 0.02, rates[name].max() + 0.02), 3))
        goals.append(f"{name} {'<=' if sign > 0 else '>='} {bound}")
        rows.append(sign * rates[name])
        bounds.append(sign * bound)
    if seed % 4 == 0:
        goals.append("positive_rate(sex=F) >= 0.9 * positive_rate(sex=M)")
        rows.append(0.9 * rates["positive_rate(sex=M)"] - rates["positive_rate(sex=F)"])
        bounds.append(0.0)
    alpha = float(rng.choice([0.05, 0.1, 0.3, 0.7, 1.0]))
    limits = np.array(rows).reshape(-1, n_models), np.array(bounds)
    return predicted, y, sex, weights, alpha, goals, *limits


@pytest.mark.parametrize("block", range(3))
def test_the_value_is_that_of_the_whole_linear_program_and_goals_hold(block):
    """90 random pools, goals and alphas, the linear program written out here and solved by HiGHS."""
    n_infeasible = 0
    for seed in range(30 * block, 30 * block + 30):
        predicted, y, sex, weights, alpha, goals, rows, bounds = random_problem(seed)
        model = MixtureClassifier(list(predicted.T), alpha=alpha, goals=goals)
        expected = least_cvar((predicted != y[:, None]).astype(float), weights, alpha, rows, bounds)
        if expected is None:
            n_infeasible += 1
            with pytest.raises(InfeasibleGoals):
                model.fit(np.zeros((len(y), 1)), y, weights, sensitive_features={"sex": sex})
            continue
        model.fit(np.zeros((len(y), 1)), y, weights, sensitive_features={"sex": sex})
        assert model.value_ == pytest.approx(expected, abs=1e-7)
        assert model.mixture_.min() >= 0
        assert model.mixture_.sum() == pytest.approx(1)
        assert (rows @ model.mixture_ <= bounds + 1e-8).all()
        assert all(check.holds for check in model.check_goals())
    assert 2 <= n_infeasible <= 15


def test_one_model_is_the_best_single_one_that_meets_the_goals():
    predicted = np.array([[1, 0, 1], [1, 0, 1], [1, 1, 0], [0, 0, 0], [0, 0, 0]])
    y = np.array([1, 1, 1, 0, 0])
    model = MixtureClassifier(list(predicted.T), alpha=1.0, max_models=1, goals=["recall <= 0.7"])
    assert model.fit(predicted, y).mixture_.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="found no mixture of at most 1 models"):
        model.set_params(goals=["recall <= 0.5", "recall >= 0.5"]).fit(predicted, y)


def test_few_models_are_nearly_as_good_as_the_best_of_all_pairs():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 150)
    predicted = np.where(rng.random((150, 8)) < rng.beta(0.4, 1.2, (150, 1)), 1 - y[:, None], y[:, None])
    pairs = [list(predicted[:, [i, j]].T) for i in range(8) for j in range(i)]
    best = min(MixtureClassifier(pair, alpha=0.3).fit(predicted, y).value_ for pair in pairs)
    found = MixtureClassifier(list(predicted.T), alpha=0.3, max_models=2).fit(predicted, y)
    assert best - 1e-9 <= found.value_ <= best + 0.03


def test_sample_weights_are_repetitions():
    X, y = load_breast_cancer(return_X_y=True)
    pool = [DecisionTreeClassifier(max_depth=d, random_state=0).fit(X[:150], y[:150]) for d in (1, 2, 4)]
    times = np.random.default_rng(0).integers(1, 4, len(y))
    goals = ["false_positive_rate <= 0.1"]
    weighted = MixtureClassifier(pool, alpha=0.3, goals=goals).fit(X, y, times)
    repeated = MixtureClassifier(pool, alpha=0.3, goals=goals).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.value_ == pytest.approx(repeated.value_, abs=1e-8)
