"""
Which booster when
==================

The boosters of the library on real data: average error, and the loss of the worst-off part. Run it with ::

    COUNTERPOISE_DATA=folder python examples/which_booster.py

Draws the figure of docs/guide/voting.md and prints its numbers.
"""

import time
from pathlib import Path

import numpy as np

import counterpoise as cp
from counterpoise.datasets import load_dataset, split_rows
from counterpoise.learners import HistogramTree, Stump
from counterpoise.metrics import cvar_curve

ALPHAS = np.array([0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5])
FIGURE = Path(__file__).parent.parent / "docs" / "guide" / "choosing.png"
LODGEPOLE_PINE = 2


def boosters():
    """Return the boosters by name."""
    tree = HistogramTree(max_depth=4)
    return {
        "AdaBoost": cp.AdaBoostClassifier(tree, n_estimators=500, stopping=cp.Stopping(patience=100)),
        "VadaBoost": cp.VadaBoostClassifier(tree, n_estimators=500, penalty="auto"),
        "EBBoost (stumps)": cp.EBBoostClassifier(Stump(), n_estimators=500, penalty="auto"),
        "RLP-Boost": cp.RLPBoostClassifier(tree, C="auto"),
        "RQP-Boost": cp.RQPBoostClassifier(tree, C="auto"),
        "DRO-Boosting": cp.DROBoostClassifier(tree, n_estimators=500, learning_rate=0.1),
        "AdaLPBoost": cp.AdaLPBoostClassifier(HistogramTree(max_depth=12), n_estimators=200, eta=1.0, budget=None),
    }


def measure(model, X, y):
    """Return the average loss and the loss of the worst-off part at every alpha, in expectation for draws."""
    if not hasattr(model, "mixture_"):
        losses = (model.predict(X) != y).astype(float)
        return losses.mean(), cvar_curve(losses, ALPHAS)
    tails = []
    for alpha in ALPHAS:
        shares = model.rebalance(alpha=alpha).decision_proba(X)
        tails.append(cvar_curve(1.0 - shares[np.arange(len(y)), y], [alpha])[0])
    errors = 1.0 - model.rebalance(alpha=1.0).decision_proba(X)[np.arange(len(y)), y]
    return errors.mean(), np.array(tails)


def main():
    """Fit, print, draw."""
    data = load_dataset("covertype")
    rows = split_rows(data.y, (0.06, 0.94), seed=0)[0]
    X, y = data.X[rows], (data.y[rows] == LODGEPOLE_PINE).astype(int)
    train, valid, test = split_rows(y, (0.4, 0.2, 0.4), seed=0)
    found = {}
    for name, model in boosters().items():
        model.set_params(random_state=0)
        started = time.perf_counter()
        model.fit(X[train], y[train], X_val=X[valid], y_val=y[valid])
        seconds = time.perf_counter() - started
        found[name] = measure(model, X[test], y[test])
        print(f"{name:18} error {found[name][0]:.4f}  tails {found[name][1].round(3)}  {seconds:.1f} s")
    draw(found)


def draw(found):
    """Draw the average errors, and the loss of the worst-off part against its size."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - only the figure needs it

    figure = Figure(figsize=(9.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    colors = ["#1b7837" if name == "AdaLPBoost" else "#5e3c99" for name in found]
    bars = left.barh(list(found)[::-1], [error for error, _ in found.values()][::-1], color=colors[::-1], height=0.6)
    left.bar_label(bars, fmt="%.3f", padding=3, fontsize=8)
    left.set(
        xlabel="average test error (AdaLPBoost: mixture for alpha = 1)",
        xlim=(0, 1.15 * max(v[0] for v in found.values())),
    )
    best = min((name for name in found if name != "AdaLPBoost"), key=lambda name: found[name][0])
    right.plot(ALPHAS, found[best][1], "o--", color="#5e3c99", ms=4, label=f"{best}, the best of those that vote")
    right.plot(
        ALPHAS, found["AdaLPBoost"][1], "D-", color="#1b7837", ms=4, label="AdaLPBoost, a mixture for each alpha"
    )
    right.set(xlabel="alpha: the worst-off fraction", ylabel="test loss there (CVaR)", ylim=(0, 1.03))
    right.legend(frameon=False, fontsize=8)
    figure.savefig(FIGURE, dpi=120)


if __name__ == "__main__":
    main()
