"""Boost for the tail: AdaLPBoost on scikit-learn's handwritten digits, in a few seconds.

A hundred small trees are boosted on part of the digits. Their mixture is chosen on other digits, once for each alpha,
without training anything again; and all curves are measured on digits that nothing has seen. Plain training (ERM) is
the first tree.
"""

import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from counterpoise import AdaLPBoostClassifier
from counterpoise.datasets import split_rows
from counterpoise.metrics import cvar_loss
from counterpoise.pool import zero_one_losses

N_MODELS = 100
ALPHAS = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0])
FIGURE = Path("demo-output") / "tail_of_the_digits.png"


def measure(model, losses):
    """Return the test CVaR against alpha of plain training, of the average and of the mixture for each alpha."""
    first, average = np.eye(1, N_MODELS)[0], np.full(N_MODELS, 1 / N_MODELS)
    optimal = [model.rebalance(alpha=alpha).mixture_ for alpha in ALPHAS]
    return {
        "plain (ERM)": [cvar_loss(losses, alpha, mixture=first) for alpha in ALPHAS],
        "average": [cvar_loss(losses, alpha, mixture=average) for alpha in ALPHAS],
        "AdaLPBoost": [cvar_loss(losses, alpha, mixture=mix) for alpha, mix in zip(ALPHAS, optimal, strict=True)],
    }


def draw(curves, path):
    """Write the curves as a figure."""
    import matplotlib as mpl  # noqa: PLC0415 - only the figure needs it

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for (name, curve), style in zip(curves.items(), ["o--", "s:", "D-"], strict=True):
        axes.plot(ALPHAS, curve, style, label=name, markersize=5)
    axes.set(xlabel="alpha: the worst-off fraction of the test digits", ylabel="share misread there (CVaR)")
    axes.set(ylim=(0, 1.03), title=f"{N_MODELS} boosted trees on handwritten digits")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main():
    """Fit, print the table and write the figure."""
    X, y = load_digits(return_X_y=True)
    train, chosen, test = split_rows(y, (0.4, 0.3, 0.3), seed=0)
    start = time.perf_counter()
    model = AdaLPBoostClassifier(n_estimators=N_MODELS, alpha=0.1, random_state=0)
    model.fit(X[train], y[train], X_val=X[chosen], y_val=y[chosen])
    print(f"{N_MODELS} trees boosted on {len(train)} digits in {time.perf_counter() - start:.1f} s.")
    start = time.perf_counter()
    curves = measure(model, zero_one_losses(model.estimators_, X[test], y[test], model.classes_, None))
    print(
        f"Mixtures for {len(ALPHAS)} alphas, chosen and measured in {time.perf_counter() - start:.2f} s: no training.\n"
    )
    print(f"Share of misread digits among the worst-off fraction alpha of {len(test)} test digits (CVaR):\n")
    print("alpha  " + "  ".join(f"{name:>12}" for name in curves))
    for place, alpha in enumerate(ALPHAS):
        print(f"{alpha:5.2f}  " + "  ".join(f"{curve[place]:12.3f}" for curve in curves.values()))
    draw(curves, FIGURE)
    print(f"\nFigure: {FIGURE}")


if __name__ == "__main__":
    main()
