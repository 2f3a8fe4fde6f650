"""
Three classes: cases for three desks
====================================

Complaints go to one of three desks: fraud, billing, other. Fraud is rare, and a model that is right as often as
possible misses much of it. Of each kind of case 75 % must arrive at the right desk, and the fraud desk can read at
most 12 % of all cases. Which decisions do that with the fewest errors?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import counterpoise as cp
from counterpoise.goals import cost

# %%
# The cases
# ---------
# They are made up: six in a hundred are fraud, thirty billing. Texts may be labels.

X, codes = make_classification(
    12_000, 12, n_informative=6, n_classes=3, weights=[0.06, 0.30, 0.64], class_sep=1.3, flip_y=0.02, random_state=1
)
y = np.array(["fraud", "billing", "other"])[codes]
X, X_new, y, y_new = train_test_split(X, y, train_size=4_000, random_state=0)

# %%
# The model as it is
# ------------------
# Without goals the class of the largest probability is the decision.

plain = cp.GoalClassifier(LogisticRegression(max_iter=1000), random_state=0).fit(X, y)
desks = ["fraud", "billing", "other"]
goals = ["every_class(recall) >= 0.75", "positive_rate(of=fraud) <= 0.12"]
print(cp.audit(goals, plain.predict(X_new), y_new))

# %%
# It finds too little of the fraud, because few cases are fraud and the model is seldom sure of it.
#
# Inside the goals
# ----------------
# Nothing is trained again. A rule of three classes weighs the probabilities, and takes the largest of the
# weighted ones; the weights are those that meet both goals with the fewest errors.

inside = plain.rebalance(goals=goals)
print(f"error as it was {plain.value_:.3f}, inside the goals {inside.value_:.3f}")
print(cp.audit(goals, inside.predict(X_new), y_new))

# %%
# What a mistake costs
# --------------------
# Where mistakes have prices, minimise these instead of errors: here fraud that is missed costs six times as much as any
# other case at a wrong desk. (What is not named costs nothing, so name all of them.)

prices = {(true, said): 6 if true == "fraud" else 1 for true in desks for said in desks if true != said}
dear = plain.rebalance(objective=cost(prices))
models = {"as it was": plain, "inside the goals": inside, "by cost": dear}

# %%
# What arrives where
# ------------------
# Of each kind of case, the share that arrives at the right desk, on cases that took no part in the choice.

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for place, (name, model) in enumerate(models.items()):
    decisions = model.predict(X_new)
    recalls = [np.mean(decisions[y_new == desk] == desk) for desk in desks]
    print(f"{name:17}", *(f"{desk} {recall:.2f}" for desk, recall in zip(desks, recalls, strict=True)))
    ax.bar(np.arange(3) + 0.27 * (place - 1), recalls, width=0.25, label=name)
ax.axhline(0.75, color="black", linestyle="--", linewidth=1)
ax.set(xticks=range(3), xticklabels=desks, ylabel="share that arrives", ylim=(0, 1))
ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
plt.show()

# %%
# More about rules of several classes, and what is proven of them, is in the guide, "Ten classes, one recall each".
