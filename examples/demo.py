"""Show what a mixture does for the tail: ten decision trees on scikit-learn's digits.

Each tree is fitted to a reweighting of the training digits that puts weight where the trees before it failed. The
mixture is chosen on digits held out for that, and all curves are measured on digits that nothing has seen.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from counterpoise.metrics import cvar_curve
from counterpoise.solvers import minimize_cvar

N_TREES = 10
ALPHAS = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0])
FIGURE = Path("demo-output") / "tail_of_a_pool.png"


def fit_pool(X, y):
    """Fit trees to weights that grow with the number of earlier trees that fail on a sample."""
    pool, failures = [], np.zeros(len(y))
    for seed in range(N_TREES):
        weights = np.exp(failures)
        tree = DecisionTreeClassifier(max_depth=8, random_state=seed)
        pool.append(tree.fit(X, y, sample_weight=weights / weights.sum()))
        failures += pool[-1].predict(X) != y
    return pool


def zero_one_losses(pool, X, y):
    """Return which tree fails on which sample."""
    return np.column_stack([tree.predict(X) != y for tree in pool])


def curves(chosen_on, measured_on):
    """Return the CVaR curves of the best tree, of the average and of the mixture that is optimal for each alpha."""
    best = np.eye(N_TREES)[chosen_on.mean(axis=0).argmin()]
    average = np.full(N_TREES, 1 / N_TREES)
    optimal = [minimize_cvar(chosen_on, alpha).mixture for alpha in ALPHAS]
    return {
        "best tree": cvar_curve(measured_on, ALPHAS, mixture=best),
        "average": cvar_curve(measured_on, ALPHAS, mixture=average),
        "optimal mixture": np.array(
            [cvar_curve(measured_on, [alpha], mixture=mix)[0] for alpha, mix in zip(ALPHAS, optimal, strict=True)]
        ),
    }


def draw(curves_by_name, path):
    """Write the curves as a figure."""
    import matplotlib as mpl  # noqa: PLC0415 - only the figure needs it

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for (name, curve), style in zip(curves_by_name.items(), ["o--", "s:", "D-"], strict=True):
        axes.plot(ALPHAS, curve, style, label=name, markersize=5)
    axes.set(xlabel="alpha: the worst fraction of the test digits", ylabel="average zero-one loss there (CVaR)")
    axes.set(ylim=(0, 1.03), title=f"The tail of {N_TREES} trees on handwritten digits")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)


def main():
    """Fit the pool, print the table and write the figure."""
    X, y = load_digits(return_X_y=True)
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=0.5, random_state=0, stratify=y)
    X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, train_size=0.5, random_state=0, stratify=y_rest)
    pool = fit_pool(X_train, y_train)
    found = curves(zero_one_losses(pool, X_val, y_val), zero_one_losses(pool, X_test, y_test))
    print(f"Average zero-one loss on the worst fraction alpha of {len(y_test)} test digits (CVaR):\n")
    print("alpha  " + "  ".join(f"{name:>15}" for name in found))
    for place, alpha in enumerate(ALPHAS):
        print(f"{alpha:5.2f}  " + "  ".join(f"{curve[place]:15.3f}" for curve in found.values()))
    draw(found, FIGURE)
    print(f"\nFigure: {FIGURE}")


if __name__ == "__main__":
    main()
