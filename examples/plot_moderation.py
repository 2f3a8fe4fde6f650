"""
Moderation: cases that must never pass again
============================================

People can read 15 % of the posts, and a model says which. It should find as much of what is harmful as that allows.
And some posts have been in the newspapers: threats, politely worded, that yesterday's model let through. Not one of
these may pass again.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals, Table

# %%
# Posts
# -----
# Two detectors score each post. They are made up here: harmful posts are mostly abusive, and three in a thousand are
# threats, which hardly are.


def posts(n_rows, seed, shares=(0.88, 0.117, 0.003)):
    """Return scores of harmless posts, abuse and threats in these shares, and whether each is harmful."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n_rows, p=shares)
    centre = np.array([[0.0, 0.0], [1.6, 0.2], [0.5, 3.0]])
    scores = centre[kind] + rng.normal(0, 0.6, (n_rows, 2))
    return pd.DataFrame(scores, columns=["abuse", "threat"]), (kind > 0).astype(int)


X, y = posts(5_000, seed=0)
stream, _ = posts(5_000, seed=1)  # what is written today: nobody has labelled it
cases, harmful = posts(40, seed=2, shares=(0, 0, 1))  # those from the newspapers

# %%
# Goals on three tables
# ---------------------
# Goals may refer to any table by its name, passed in ``datasets``; without one they are about the rows of ``fit``. A
# coverage needs no labels. The share of harmful posts that pass is minimised.

tables = {"stream": Table(stream), "cases": Table(cases, harmful)}
wanted = {"objective": "false_negative_rate", "random_state": 0}
coverage, never_again = "coverage(stream) <= 0.15", "correct(cases) >= 1"

scored = cp.GoalClassifier(LogisticRegression(), goals=coverage, **wanted).fit(X, y, datasets=tables)
try:
    scored.rebalance(goals=[coverage, never_again])
except InfeasibleGoals as conflict:
    print(conflict)

# %%
# No threshold of this model will do: it ranks threats behind posts that are merely rude. The message says how far one
# can get by cutting elsewhere. To get further, a model must be trained for the goals.
#
# Trained inside the goals
# ------------------------

rude = cp.ConstrainedClassifier(goals=coverage, **wanted).fit(X, y, datasets=tables)
safe = cp.ConstrainedClassifier(goals=[coverage, never_again], **wanted).fit(X, y, datasets=tables)

figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
axes.scatter(*X[y == 0].to_numpy().T, s=5, color="#c9c9c9", label="harmless")
axes.scatter(*X[y == 1].to_numpy().T, s=7, color="#5f5f5f", label="harmful")
axes.scatter(*cases.to_numpy().T, s=28, marker="D", color="#c2571a", label="the cases")
along = np.array([-2.5, 4.0])
for model, color, style, name in ((rude, "#c2571a", "--", "coverage alone"), (safe, "#0a7d91", "-", "and the cases")):
    (abuse, threat), shift = model.coef_[0], model.intercept_[0]
    axes.plot(along, -(shift + abuse * along) / threat, style, color=color, lw=2, label=f"read what is above: {name}")
axes.set(
    xlabel="score of the detector of abuse", ylabel="score of the detector of threats", xlim=along, ylim=(-2.2, 5.6)
)
axes.legend(frameon=False, fontsize=9, loc="upper right")

# %%
# The line turns. What that costs, on posts of tomorrow, and on threats that nobody has seen:

new, truth = posts(40_000, seed=3)
threats, _ = posts(2_000, seed=4, shares=(0, 0, 1))
for name, model in {"coverage alone": rude, "and the cases": safe}.items():
    said = model.predict(new)
    print(
        f"{name:15} read {said.mean():.3f}   harmful posts found {said[truth == 1].mean():.3f}   "
        f"cases found {model.predict(cases).mean():.2f}   other threats found {model.predict(threats).mean():.3f}"
    )

# %%
# Not one of the cases passes, and hardly a threat of their kind; the price is a part of the ordinary abuse. The
# figure shows whose price it is: one case lies among harmless posts, and the line runs through it. Look at such a
# case before you insist on it. The share that is read is a little above 15 %, as it may be by chance where a bound
# was met exactly on 5,000 posts. And "never again" is a promise about these forty. Held-out rows show how many of the
# other threats are found:

print(cp.audit("recall >= 0.95", safe.predict(threats), np.ones(len(threats)), classes=[0, 1]))

plt.show()
