"""The worst group's error: objectives, weights and mixtures for groups, beside what others do.

Usage: python bench/group_robustness.py [--only NAME ...] [--splits N] [--resume] [--page] [--output FOLDER]

Half of the rows train, a quarter chooses, a quarter is new. No method sees the group of a new row unless its line says
so. *plain* is scikit-learn's histogram boosting. *reweighted* weighs the training rows so that all groups count alike;
*just train twice* trains again with more weight on the rows that a weak first model gets wrong, and needs no groups in
training (Liu et al. 2021); *last layer* retrains the last layer of a network on choice rows of equal groups (Kirichenko
et al. 2023). *boosted for groups* is ``AdaLPBoostClassifier(reweigh="groups")``, the weights of Group DRO; *DORO* is
``AdaLPBoostClassifier(alpha=0.2, outlier_fraction=0.05)``, which knows no groups (Zhai et al. 2021). *worst group* is
``GoalClassifier(objective=WorstGroup("group"), decision="sticky")`` of the plain model, *reweighted, worst group* of
the reweighted one; *with groups* lets its rules see the group, unless it holds the label. *few labels* is *worst group*
with the groups of a tenth of the choice rows.

Rule, set before the run: a method lowers the worst group's error on a set where its mean difference to *plain* over the
splits is below zero by more than two standard errors, corrected for splits that overlap (Nadeau and Bengio 2003). It is
recommended where it does so on most sets and nowhere raises it. The control is a fair coin, which errs in 50 % of every
group: *of these a coin's* are the sets where the worst group is then wrong in 49 % or more.
"""

import os
import statistics
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

import counterpoise as cp
from counterpoise.theory.risks import WorstGroup

sys.path.insert(0, str(Path(__file__).parent.parent))
from grouped_sets import SETS
from records import arguments, records_of

from papers.markdown import markdown_table

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "group_robustness"
COLUMNS = ("set", "seed", "method", "worst group", "second", "all rows")
PLAIN = "plain"
COIN = 49.0  # %: from there on the worst group is served no better than by a coin
UPWEIGHTS = (3.0, 10.0, 30.0)  # of rows that a first model gets wrong; the best one for the groups of the choice rows


class Split:
    """A split of a set, and what each method does with it: the probability of a wrong decision for each new row."""

    def __init__(self, name: str, seed: int) -> None:
        self.X, self.y, self.groups = SETS[name](seed)
        self.seed, rows = seed, np.arange(len(self.y))
        self.train, rest = train_test_split(rows, test_size=0.5, random_state=seed, stratify=self.groups)
        own = self.groups[rest]
        self.chosen, self.new = train_test_split(rest, test_size=0.5, random_state=seed, stratify=own)

    def strong(self, sample_weight: np.ndarray | None = None, max_iter: int = 100) -> HistGradientBoostingClassifier:
        """Return the strong model."""
        model = HistGradientBoostingClassifier(max_iter=max_iter, random_state=self.seed)
        return model.fit(self.X[self.train], self.y[self.train], sample_weight)

    def equal_weights(self, rows: np.ndarray) -> np.ndarray:
        """Return weights of rows by which all groups count alike."""
        sizes = np.bincount(self.groups[rows])
        return rows.size / np.count_nonzero(sizes) / sizes[self.groups[rows]]

    def wrong(self, chances: np.ndarray) -> np.ndarray:
        """Return the probability of a wrong decision for each new row, given those of the classes."""
        return 1.0 - chances[np.arange(self.new.size), self.y[self.new]]

    def answers(self, model: Any) -> np.ndarray:
        """Return which new rows a model gets wrong."""
        return (model.predict(self.X[self.new]) != self.y[self.new]).astype(float)

    def mixed(self, model: Any, rows: np.ndarray | None = None, by: str | tuple[str, ...] = ()) -> np.ndarray:
        """Return the losses of the mixture of thresholds that is best for the worst group."""
        rows = self.chosen if rows is None else rows
        options = {"cv": "prefit", "objective": WorstGroup("group"), "decision": "sticky", "confidence": None, "by": by}
        rules = cp.GoalClassifier(model, random_state=0, **options)
        rules.fit(self.X[rows], self.y[rows], sensitive_features={"group": self.groups[rows]})
        columns = {"group": self.groups[self.new]}
        return self.wrong(rules.decision_proba(self.X[self.new], sensitive_features=columns))

    def twice(self) -> np.ndarray:
        """Return the losses of just train twice, with the weight that is best for the groups of the choice rows."""
        missed = self.strong(max_iter=10).predict(self.X[self.train]) != self.y[self.train]
        models = [self.strong(np.where(missed, weight, 1.0)) for weight in UPWEIGHTS]
        truth, groups = self.y[self.chosen], self.groups[self.chosen]
        return self.answers(min(models, key=lambda one: errors(one.predict(self.X[self.chosen]) != truth, groups)[0]))

    def last_layer(self) -> np.ndarray:
        """Return the losses of a network whose last layer is trained again on choice rows of equal groups."""
        scaler = StandardScaler().fit(self.X[self.train])
        net = MLPClassifier((32,), max_iter=30, early_stopping=True, random_state=self.seed)
        net.fit(scaler.transform(self.X[self.train]), self.y[self.train])

        def hidden(rows: np.ndarray) -> np.ndarray:
            return np.maximum(scaler.transform(self.X[rows]) @ net.coefs_[0] + net.intercepts_[0], 0.0)

        last = LogisticRegression(max_iter=500)
        last.fit(hidden(self.chosen), self.y[self.chosen], self.equal_weights(self.chosen))
        return (last.predict(hidden(self.new)) != self.y[self.new]).astype(float)

    def boosted(self, **options: Any) -> np.ndarray:
        """Return the losses of AdaLPBoost."""
        model = cp.AdaLPBoostClassifier(random_state=self.seed, **options)
        model.fit(self.X[self.train], self.y[self.train], sensitive_features={"group": self.groups[self.train]})
        return self.wrong(model.decision_proba(self.X[self.new]))


def measured(name: str, seed: int) -> list[tuple[object, ...]]:
    """Return the rows of a split: what each method comes to on new rows."""
    split = Split(name, seed)
    plain, reweighted = split.strong(), split.strong(split.equal_weights(split.train))
    few = np.random.default_rng(seed).choice(split.chosen, split.chosen.size // 10, replace=False)
    losses = {
        PLAIN: split.answers(plain),
        "reweighted": split.answers(reweighted),
        "just train twice": split.twice(),
        "last layer": split.last_layer(),
        "boosted for groups": split.boosted(reweigh="groups"),
        "DORO": split.boosted(alpha=0.2, outlier_fraction=0.05),
        "worst group": split.mixed(plain),
        "reweighted, worst group": split.mixed(reweighted),
        "few labels": split.mixed(plain, few),
    }
    if not name.startswith("spurious"):  # where the label is a part of the group
        losses["worst group, with groups"] = split.mixed(plain, by="group")
    groups = split.groups[split.new]
    numbers = {method: (*errors(own, groups), float(own.mean())) for method, own in losses.items()}
    return [(name, seed, method, *(round(one, 5) for one in own)) for method, own in numbers.items()]


def errors(losses: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
    """Return the mean losses of the worst and the second-worst group."""
    means = sorted(float(losses[groups == group].mean()) for group in np.unique(groups))
    return means[-1], means[-2]


def page(rows: list[dict[str, str]]) -> str:
    """Return the page, given all rows."""
    names, methods = dict.fromkeys(row["set"] for row in rows), list(dict.fromkeys(row["method"] for row in rows))
    lines, found = [], {method: [] for method in methods}
    for name in names:
        for method in methods:
            own = {row["seed"]: row for row in rows if row["set"] == name and row["method"] == method}
            if not own:
                continue
            plain = {row["seed"]: row for row in rows if row["set"] == name and row["method"] == PLAIN}
            gains = [float(own[seed]["worst group"]) - float(plain[seed]["worst group"]) for seed in own]
            mean, error = corrected(gains)
            word = "" if method == PLAIN else "lower" if mean < -2 * error else "higher" if mean > 2 * error else "same"
            values = [100 * statistics.mean(float(row[column]) for row in own.values()) for column in COLUMNS[3:]]
            found[method].append((word, values[0] >= COIN))
            beside = "" if method == PLAIN else f"{100 * mean:+.2f} ± {100 * error:.2f}"
            lines.append([name, method, *(f"{value:.2f}" for value in values), beside, word])
    verdicts = []
    for method in methods[1:]:
        words = [word for word, _ in found[method]]
        lower, higher = words.count("lower"), words.count("higher")
        word = "recommended" if lower > len(names) / 2 and not higher else "not recommended"
        verdicts.append([method, str(lower), str(found[method].count(("lower", True))), str(higher), word])
    _, _, *paragraphs = (__doc__ or "").strip().split("\n\n")
    explained = "\n\n".join(paragraphs).replace("``", "`")
    return (
        "# The worst group\n\n"
        "Made by `python bench/group_robustness.py`; every number is in `results.csv` beside this page.\n\n"
        f"{explained}\n\n## Verdicts\n\n"
        + markdown_table(["method", "sets where lower", "of these a coin's", "higher", "verdict"], verdicts, n_words=1)
        + "\n\n## Errors on new rows\n\n"
        f"In %, means of {len({row['seed'] for row in rows})} splits; expected errors where decisions are drawn.\n\n"
        + markdown_table(["set", "method", "worst group", "second", "all rows", "beside plain", ""], lines, n_words=2)
        + "\n"
    )


def corrected(differences: list[float]) -> tuple[float, float]:
    """Return the mean over splits, and its standard error where half as many rows are new as train and choose."""
    n = len(differences)
    if n < 2:
        return differences[0], float("inf")
    return statistics.mean(differences), statistics.stdev(differences) * (1 / n + 1 / 3) ** 0.5


def main() -> None:
    """Measure what is not there yet, and write the page."""
    options = arguments(__doc__ or "", SETS, 5, FOLDER).parse_args()
    records = records_of(options, COLUMNS, n_keys=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in [] if options.page else range(options.splits):
            for name in options.only:
                if not records.has(name, seed, PLAIN):
                    for row in measured(name, seed):
                        records.add(*row)
    (options.output / "README.md").write_text(page(records.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
