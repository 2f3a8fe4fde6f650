"""
Digits: the images that a model always gets wrong
=================================================

A small forest reads handwritten digits and is wrong about one in twenty. Always the same ones: show it such an image
ten times, and it is wrong ten times. Boosting for the tail makes forests that are wrong about different images, and
draws one of them for each image.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier

import counterpoise as cp
from counterpoise.datasets import split_rows
from counterpoise.metrics import cvar_loss

# %%
# Plain training, and training for the tail
# -----------------------------------------
# ``alpha`` is the worst-off part of the images, whose loss is minimised. Take it near the error of the plain model:
# far above, a fixed model is as good as any mixture. The mixture is chosen on images that no forest was trained on.

X, y = load_digits(return_X_y=True)
train, choose, new = split_rows(y, (0.4, 0.3, 0.3), seed=0)
forest = ExtraTreesClassifier(10, max_depth=8, random_state=0)

plain = forest.fit(X[train], y[train])
boosted = cp.AdaLPBoostClassifier(forest, n_estimators=20, alpha=0.05, random_state=0)
boosted.fit(X[train], y[train], X_val=X[choose], y_val=y[choose])
print(f"{np.count_nonzero(boosted.mixture_)} of {len(boosted.estimators_)} forests decide")

# %%
# What it buys, and what it costs
# -------------------------------
# On images that were not seen. The loss of an image is the chance that it is read wrongly: 0 or 1 for the plain
# forest, and between for a mixture, whose decision is drawn (``decision_proba``).

right = boosted.decision_proba(X[new])[np.arange(len(new)), y[new]]
failed = plain.predict(X[new]) != y[new]
for name, losses in {"plain": failed.astype(float), "boosted": 1 - right}.items():
    tails = "   ".join(f"worst {100 * alpha:.0f} %: {cvar_loss(losses, alpha):.2f}" for alpha in (0.02, 0.05, 0.1))
    print(f"{name:8} error {losses.mean():.3f}   {tails}")

# %%
# The worst-off twentieth are read rightly one time in three, where they never were. The average pays for that, and
# from a tenth of the images on the plain forest is the better one. Whether that is worth it depends on what a reading
# is for: a postcode that is read again tomorrow, or a dose.

figure = plt.figure(figsize=(9.4, 3.8), layout="constrained")
left, side = figure.subfigures(1, 2, width_ratios=[1.25, 1])
axes = left.subplots()
plotted = {"plain forest": (plain, "#c2571a"), "mixture, boosted for the tail": (boosted, "#0a7d91")}
for name, (model, color) in plotted.items():
    cp.CVaRCurveDisplay.from_estimator(model, X[new], y[new], name=name, ax=axes, color=color, lw=2)
axes.axvline(0.05, color="#3a6b60", lw=1.2, ls="--")

side.suptitle("wrong for certain by the plain forest;\nbelow: chance that the mixture is right", fontsize=10)
for place, row in zip(side.subplots(3, 5).flat, np.flatnonzero(failed), strict=False):
    place.imshow(X[new][row].reshape(8, 8), cmap="gray_r")
    place.set_title(f"{100 * right[row]:.0f} %", fontsize=9, y=-0.35, color="#0a7d91")
    place.axis("off")

# %%
# Another alpha
# -------------
# Nothing is trained again for another part of the images, or for a cap on what the average may pay (``budget``):

for alpha, budget in ((0.02, 0.03), (0.05, 0.005), (0.1, 0.03)):
    other = boosted.rebalance(alpha=alpha, budget=budget)
    losses = 1 - other.decision_proba(X[new])[np.arange(len(new)), y[new]]
    tail = cvar_loss(losses, alpha)
    print(f"alpha {alpha}, budget {budget}: error {losses.mean():.3f}, worst {100 * alpha:.0f} %: {tail:.2f}")

# %%
# To take away: a tail needs draws, and the same image always gets the same one (``decision="sticky"``), so nobody can
# ask until the answer suits.
# With labels that are wrong a tail is of no use: they look exactly like hard images.

said, again = boosted.predict(X[new]), boosted.predict(X[new][::-1])[::-1]
print("the same answers when asked again, in another order:", bool((said == again).all()))

plt.show()
