"""
Monitoring: a goal that must keep holding
=========================================

A scorecard decides about loans. At its release it found at least 55 % of the loans that would default. Every month it
decides about 1,500 more loans. From the seventh month on, the women who apply default more often than before, for
reasons that the scorecard does not see. How soon does the monitor notice, and when does it say that this began?
"""

import matplotlib.pyplot as plt
import numpy as np

import counterpoise as cp
from counterpoise.datasets import loans

# %%
# A year of loans
# ---------------
# All are made up. In the last six months three in ten of the women who would have paid default.

rng = np.random.default_rng(0)
goals = ["recall >= 0.55", "false_positive_rate <= 0.3", "selection_rate <= 0.4"]
monitor = cp.Monitor(goals, classes=["no", "yes"], pos_label="yes")
history = []
for month in range(1, 13):
    table, _ = loans(1_500, random_state=month)
    became, sex = table["default"].to_numpy(), table["sex"].to_numpy()
    if month > 6:
        became = np.where((sex == "F") & (rng.random(1_500) < 0.3), "yes", became)
    history.append(monitor.update(table["last_year"], became, time=f"month {month}"))
print(monitor.verdicts)

# %%
# All verdicts at all times are right together with probability 0.95: you may look every month, and act when a goal
# fails. They are about all rows since the start, and a goal that held for half a year takes long to fail. A second
# watch looks for changes: it notices this one, and ``since`` estimates when it began.
#
# Three goals over time
# ---------------------
# The band of each goal narrows as rows come. A goal holds once its band is on the allowed side of the bound.

figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
months = np.arange(1, 13)
for place, ax in enumerate(axes):
    verdicts = [month[place] for month in history]
    low, high = (np.clip([getattr(one, end) for one in verdicts], 0, 1) for end in ("low", "high"))
    ax.fill_between(months, low, high, alpha=0.25, linewidth=0)
    ax.plot(months, [one.estimate for one in verdicts])
    ax.axhline(verdicts[-1].bound, color="black", linestyle="--", linewidth=1)
    ax.set(title=f"{goals[place]}: {verdicts[-1].verdict}", xlabel="month", ylim=(0, 1))
    ax.title.set_fontsize("medium")
plt.show()

# %%
# From the command line ``counterpoise monitor RUN BATCH`` does this for a run, keeps a log and a page. Where a goal
# fails, ``model.rebalance`` on recent rows chooses other thresholds.
