"""
Dask: train and choose where the rows are
=========================================

The loans of ten years do not fit one machine. They lie in partitions on the workers of a Dask cluster, and that is
where models are trained, goals are counted and people are decided about. What travels are small tables of sums.
"""

import dask.dataframe as dd
import matplotlib.pyplot as plt
from distributed import Client
from sklearn.ensemble import HistGradientBoostingClassifier

import counterpoise as cp
from counterpoise.datasets import loans
from counterpoise.distributed import DaskGoalClassifier

# %%
# A cluster and a collection
# --------------------------
# Here two workers in this process and made-up rows. On yours: ``Client("tcp://scheduler:8786")``, and
# ``dd.read_parquet`` or simply the path of the files.

client = Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
FEATURES = ["age", "income", "savings", "amount", "months", "late_payments"]


def collection(n_rows, seed):
    """Return loans in six partitions: features, sex, and what became of them."""
    table, _ = loans(n_rows, random_state=seed)
    return dd.from_pandas(table[[*FEATURES, "sex", "default"]], npartitions=6)


rows, new = collection(20_000, seed=0), collection(8_000, seed=1)

# %%
# Choose on all rows
# ------------------
# A strong model is trained on what fits one machine, and its threshold is chosen on everything. The class takes what
# ``GoalClassifier`` takes; columns are named: what became of the loan, and the group that goals refer to. (Without
# ``cv="prefit"`` it trains too, by default with LightGBM's own distributed training.)

sample = rows.partitions[0].compute()
strong = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(sample[FEATURES], sample["default"])
goals = ["recall >= 0.7", "max_difference(false_positive_rate, by=sex) <= 0.04"]
asked = {"cv": "prefit", "goals": goals, "pos_label": "yes", "random_state": 0}

model = DaskGoalClassifier(strong, **asked).fit(rows.partitions[1:], "default", sensitive_features=["sex"])
print(model.rules_[0])

# %%
# Predictions are a collection too, computed partition by partition when they are asked for. Here for an audit:

said = model.predict(new)
known = new.compute()
print(cp.audit(goals, said.compute(), known["default"], sensitive_features=known[["sex"]], pos_label="yes"))

# %%
# Why on all rows? A threshold chosen on one partition meets the goals on that one. On other people they are missed by
# chance, and by less where there are more rows:


def recall_on_new(chosen):
    """Return the recall on new people of a model for one machine."""
    columns = {"sensitive_features": known[["sex"]]}
    return chosen.check_goals(known[FEATURES], known["default"], **columns)[0].value


on_one = []
for part in rows.partitions[1:].to_delayed():
    frame = part.compute()
    chosen = cp.GoalClassifier(strong, **asked)
    chosen.fit(frame[FEATURES], frame["default"], sensitive_features=frame[["sex"]])
    on_one.append(recall_on_new(chosen))
on_all = recall_on_new(model.to_local())

figure, axes = plt.subplots(figsize=(7.2, 2.6), layout="constrained")
axes.plot(on_one, [0] * len(on_one), "o", color="#c2571a", ms=9, alpha=0.8)
axes.plot([on_all], [1], "D", color="#0a7d91", ms=9)
axes.axvline(0.7, color="#3a6b60", lw=1.2, ls="--")
axes.annotate("asked for", (0.7, 1.5), (4, -10), textcoords="offset points", color="#3a6b60")
axes.set_yticks([0, 1], labels=["chosen on one\npartition, each", "chosen on all\nfive together"])
axes.set(xlabel="recall on new people", xlim=(0.67, 0.73), ylim=(-0.5, 1.5))

# %%
# To take away: ``to_local`` is a model for one machine, to be saved and served like any other.

served = model.to_local()
print(type(served).__name__, served.predict(sample[FEATURES].head(3)))
client.shutdown()

plt.show()
