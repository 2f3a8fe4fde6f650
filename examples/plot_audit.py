"""
Audit: a vendor's decisions
===========================

A vendor decides about loans for you. You have no model and no scores, only a table with the decisions, the outcomes
and the people. The contract has four limits. Which of them hold, and how surely?
"""

import matplotlib.pyplot as plt

import counterpoise as cp
from counterpoise.datasets import loans
from counterpoise.metrics import rate_table
from counterpoise.theory.confidence import rows_needed

# %%
# The table
# ---------
# Here 4,000 made-up loans, decided by a scorecard that this script never sees. Draw your rows by chance from all that
# were decided, one for each person, and do so before you look at any: the verdicts below rest on that.

table, _ = loans(4_000, random_state=0)
said, became, sex = table["last_year"], table["default"], table[["sex"]]
rates = ["negative_rate", "recall", "false_positive_rate", "error_rate"]
print(rate_table(said, became, sex, pos_label="yes", rates=rates))

# %%
# The contract
# ------------
# The positive answer is ``yes``, this loan will default, so that ``negative_rate`` is how often a loan is granted.

contract = {
    "errors: at most 30 %": "error_rate <= 0.3",
    "bad loans found: at least 65 %": "recall >= 0.65",
    "granted to women at least\n80 % as often as to men": ("negative_rate(sex=F) >= 0.8 * negative_rate(sex=M)"),
    "good loans refused: women at\nmost 5 points more than men": (
        "false_positive_rate(sex=F) <= false_positive_rate(sex=M) + 0.05"
    ),
}
audit = cp.audit(list(contract.values()), said, became, sensitive_features=sex, pos_label="yes")
print(audit)

# %%
# Each line has an interval, and with probability 0.95 all of them are right together. A limit *holds* if the whole
# interval is on its good side, *fails* if all of it is on the bad one, and is *undecided* otherwise: a vendor who is
# just inside on these rows has shown nothing, nor has one who is just outside been caught.

COLORS = {"holds": "#0a7d91", "fails": "#c2571a", "undecided": "#6b6b6b"}
figure, axes = plt.subplots(figsize=(8.2, 3.6), layout="constrained")
for place, one in enumerate(audit):
    inside = 1 if one.goal.sense == ">=" else -1  # so that what is allowed is always on the right
    ends = [100 * inside * (end - one.bound) for end in (one.low, one.estimate, one.high)]
    axes.plot(ends[::2], [place, place], color=COLORS[one.verdict], lw=4, solid_capstyle="butt")
    axes.plot(ends[1], place, "o", color=COLORS[one.verdict], ms=9)
    axes.annotate(
        one.verdict, (ends[1], place), (0, 9), textcoords="offset points", ha="center", color=COLORS[one.verdict]
    )
axes.axvspan(0, 100, color="#e3f1ee", lw=0)
axes.axvline(0, color="#3a6b60", lw=1.2)
axes.set(xlabel="percentage points inside the limit", xlim=(-10, 10), ylim=(3.6, -0.7))
axes.set_yticks(range(len(contract)), labels=list(contract))
axes.tick_params(left=False)
axes.spines[["top", "left", "right"]].set_visible(False)

# %%
# How many rows would it take?
# ----------------------------
# To show that a limit holds which does hold takes rows. That at most one in a hundred fails takes hundreds, even if
# not a single one does:

for share in (0.1, 0.01, 0.001):
    print(f"at most {100 * share:g} % fail: {rows_needed(share, confidence=0.95)} rows without a failure")

# %%
# What was undecided is decided by more rows of the same kind. Agree on their number first: to look again and again
# until a verdict suits spoils it.

more, _ = loans(40_000, random_state=1)
again = cp.audit(
    list(contract.values()), more["last_year"], more["default"], sensitive_features=more[["sex"]], pos_label="yes"
)
print(again)
print("signed off" if again.holds else "not signed off")

# %%
# The same from a shell, for the pipeline that receives the vendor's file: ``counterpoise audit answers.csv ...
# --strict``. It ends with an error unless every limit is shown to hold.

plt.show()
