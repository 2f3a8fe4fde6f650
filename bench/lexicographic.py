"""Lexicographic minimax over groups: the worst group's error, then the next one's, and so on.

Usage: python bench/lexicographic.py [--only NAME ...] [--splits N] [--resume] [--page] [--output FOLDER]

At most 6,000 rows train, as many choose, as many are new. Groups are sexes within races, the rare ones together.
Mixtures of thresholds of two models, scikit-learn's histogram boosting as it is and with weights by which all groups
count alike, minimise the worst group's error on the rows that choose; *seen* rules have a threshold for each group,
*unseen* ones have one for all.

- *worst group*: one linear program over 300 thresholds of each model; among the mixtures with the worst group's least
  error it stops at any, as ``GoalClassifier`` did before.
- *lexicographic*: more programs fix the errors of the groups that cannot get lower, and minimise the worst of the
  others, until all are fixed.
- *mean last*, the control: the least mean error among all mixtures with the worst group's least error.
- *plain* is the model alone, *GoalClassifier* what was built: ``objective=WorstGroup("group"), decision="sticky"``.

Rule, set before the run: lexicographic minimax helps on a set, with groups seen or unseen, where on new rows the error
of the second-worst group is below that of *worst group* by more than two standard errors over the splits, corrected for
overlap (Nadeau and Bengio 2003), while that of the worst is no higher by more than two. It is built where it helps on
at least two of the three sets; where *mean last* helps on as many, that is built in its place, as one more program and
no option (a clause that was added after a look at one split of COMPAS).
"""

import os
import statistics
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from scipy.optimize import linprog
from sklearn.ensemble import HistGradientBoostingClassifier

import counterpoise as cp
from counterpoise.datasets import load_dataset
from counterpoise.theory.risks import WorstGroup

sys.path.insert(0, str(Path(__file__).parent.parent))
from group_robustness import errors
from records import arguments, records_of

from papers.markdown import markdown_table

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "lexicographic"
NAMES = {"adult": 48_842, "acs-income": 665_800, "compas": 7_214}  # and their rows
COLUMNS = ("set", "seed", "groups", "method", "worst", "second", "mean", "new worst", "new second", "new mean")
PLAIN, WORST, LEXICOGRAPHIC, LAST, BUILT = "plain", "worst group", "lexicographic", "mean last", "GoalClassifier"
SETTINGS = ("unseen", "seen")
MOST_ROWS, N_CUTS, SLACK = 6_000, 300, 1e-7
RARE = 0.03  # of the rows


class Programs:
    """Mixtures of thresholds of models: the errors of the groups are linear in them.

    ``losses`` has a row for each group and a column for each threshold; groups that are seen have their own mixtures.
    """

    def __init__(self, scores: np.ndarray, y: np.ndarray, groups: np.ndarray, *, is_seen: bool) -> None:
        self.cuts = [np.unique(np.quantile(own, np.linspace(0, 1, N_CUTS))) - 1e-9 for own in scores.T]
        self.n_groups, self.is_seen = groups.max() + 1, is_seen
        wrong = self.decisions(scores) != y[:, None]
        means = np.array([wrong[groups == group].mean(axis=0) for group in range(self.n_groups)])
        self.losses = np.kron(np.eye(self.n_groups), np.ones(means.shape[1])) * means.ravel() if is_seen else means
        n_mixtures = self.n_groups if is_seen else 1
        self.sums = np.kron(np.eye(n_mixtures), np.ones(means.shape[1]))
        self.shares = np.bincount(groups) / groups.size

    def decisions(self, scores: np.ndarray) -> np.ndarray:
        """Return what each threshold decides about each row."""
        return np.hstack([own[:, None] > cuts for own, cuts in zip(scores.T, self.cuts, strict=True)]).astype(int)

    def chances(self, scores: np.ndarray, groups: np.ndarray, mixture: np.ndarray) -> np.ndarray:
        """Return the probability of a positive decision about each row."""
        parts = mixture.reshape(len(self.sums), -1)
        return (self.decisions(scores) * parts[groups if self.is_seen else np.zeros_like(groups)]).sum(axis=1)

    def least(self, cost: np.ndarray, most: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Minimise a cost plus a bound on the losses of free groups; return mixture, value and prices of the groups."""
        n_columns = self.losses.shape[1]
        rows = np.hstack([self.losses, -free[:, None].astype(float)])
        found = linprog(
            np.append(cost, float(free.any())),
            rows,
            np.where(free, 0.0, most),
            np.hstack([self.sums, np.zeros((len(self.sums), 1))]),
            np.ones(len(self.sums)),
            bounds=[(0, None)] * n_columns + [(0, 1)],
        )
        return found.x[:-1], float(found.x[-1]), -found.ineqlin.marginals

    def lexicographic(self) -> np.ndarray:
        """Return a mixture whose errors of groups, the worst first, are least one after the other."""
        free, most, none = np.ones(self.n_groups, dtype=bool), np.ones(self.n_groups), np.zeros(self.losses.shape[1])
        while free.any():
            mixture, value, prices = self.least(none, most, free)
            fixed = free & (prices > 1e-6)  # these cannot get lower
            most[fixed] = value + SLACK
            free &= ~fixed
        return mixture

    def worst_group(self) -> tuple[np.ndarray, float, np.ndarray]:
        """Return a mixture with the worst group's least error, this error, and prices."""
        every, none = np.ones(self.n_groups, dtype=bool), np.zeros(self.losses.shape[1])
        return self.least(none, np.ones(self.n_groups), every)

    def mean_last(self) -> np.ndarray:
        """Return the mixture of the least mean error with the worst group's least error."""
        most = np.full(self.n_groups, self.worst_group()[1] + SLACK)
        return self.least(self.shares @ self.losses, most, np.zeros(self.n_groups, dtype=bool))[0]


class Given:
    """A fitted model whose score is one column of the rows."""

    classes_ = np.array([0, 1])
    _estimator_type = "classifier"

    def __init__(self, place: int) -> None:
        self.place = place

    def fit(self, _X: Any, _y: Any) -> "Given":  # pragma: no cover - it is fitted
        """Learn nothing."""
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the column and what it leaves."""
        return np.column_stack([1.0 - X[:, self.place], X[:, self.place]])


def measured(name: str, seed: int) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a split: the errors of the worst groups, where rules were chosen and on new rows."""
    data = load_dataset(name)
    size = min(MOST_ROWS, len(data.y) // 3)
    some = np.random.default_rng(seed).permutation(len(data.y))[: 3 * size]
    sex, race = (np.asarray(data.sensitive[column])[some].astype(str) for column in ("sex", "race"))
    names, codes = np.unique(np.char.add(np.char.add(sex, " "), race), return_inverse=True)
    is_rare = np.bincount(codes) < RARE * some.size
    groups = np.unique(np.where(is_rare[codes], names.size, codes), return_inverse=True)[1]
    X, y = np.nan_to_num(np.asarray(data.X, dtype=float)[some], nan=-1.0), (data.y[some] == np.unique(data.y)[1])
    y, sizes = y.astype(int), np.bincount(groups[:size])
    train, chosen, new = (slice(place * size, (place + 1) * size) for place in range(3))
    model = HistGradientBoostingClassifier(max_iter=50, random_state=seed)
    scores = [
        model.fit(X[train], y[train], weights).predict_proba(X)[:, 1] for weights in (None, 1 / sizes[groups[train]])
    ]
    scores = np.column_stack(scores)
    for setting in SETTINGS:
        programs = Programs(scores[chosen], y[chosen], groups[chosen], is_seen=setting == "seen")
        options = {"cv": "prefit", "objective": WorstGroup("group"), "decision": "sticky", "confidence": None}
        rules = cp.GoalClassifier(
            [Given(0), Given(1)], **options, by="group" if programs.is_seen else (), random_state=0
        )
        rules.fit(scores[chosen], y[chosen], sensitive_features={"group": groups[chosen]})
        mixtures = {
            WORST: programs.worst_group()[0],
            LEXICOGRAPHIC: programs.lexicographic(),
            LAST: programs.mean_last(),
        }
        by_method = {PLAIN: (scores[:, 0] > 0.5).astype(float)}
        by_method[BUILT] = rules.decision_proba(scores, sensitive_features={"group": groups})[:, 1]
        by_method |= {method: programs.chances(scores, groups, one) for method, one in mixtures.items()}
        for method, chances in by_method.items():
            losses = np.abs(chances - y)
            numbers = [(*errors(losses[own], groups[own]), losses[own].mean()) for own in (chosen, new)]
            yield name, seed, setting, method, *(round(float(one), 5) for own in numbers for one in own)


def page(rows: list[dict[str, str]]) -> str:
    """Return the page, given all rows."""
    names = list(dict.fromkeys(row["set"] for row in rows))
    lines, helped = [], {(setting, method): [] for setting in SETTINGS for method in (LEXICOGRAPHIC, LAST)}
    for name in names:
        for setting in SETTINGS:
            own = [row for row in rows if row["set"] == name and row["groups"] == setting]
            base = [row for row in own if row["method"] == WORST]
            for method in (PLAIN, WORST, LEXICOGRAPHIC, LAST, BUILT):
                mine = [row for row in own if row["method"] == method]
                means = [f"{100 * statistics.mean(float(row[column]) for row in mine):.2f}" for column in COLUMNS[4:]]
                gains = {column: beside(mine, base, column, name) for column in ("new second", "new worst")}
                (second, spread), (worst, its_spread) = gains.values()
                if method in (LEXICOGRAPHIC, LAST) and second < -2 * spread and worst <= 2 * its_spread:
                    helped[setting, method].append(name)
                texts = [f"{100 * mean:+.2f} ± {100 * error:.2f}" for mean, error in gains.values()]
                lines.append([name, setting, method, *means, *(["", ""] if method == WORST else texts)])
    second = {(row[0], row[1], row[2]): float(row[7]) for row in lines}
    lower = sum(second[name, setting, LAST] < second[name, setting, PLAIN] for name in names for setting in SETTINGS)
    verdicts = [[setting, method, str(len(on)), ", ".join(on)] for (setting, method), on in helped.items()]
    built = []
    for setting in SETTINGS:
        least, last = (len(helped[setting, method]) for method in (LEXICOGRAPHIC, LAST))
        word = "not built" if least < 2 else "*mean last* is built" if last >= least else "built"
        built.append(f"{word} for groups that are {setting}")
    _, _, *paragraphs = (__doc__ or "").strip().split("\n\n")
    explained = "\n\n".join(paragraphs).replace("``", "`")
    heads = ["set", "groups", "method", *COLUMNS[4:], "new second beside worst group", "new worst beside it"]
    return (
        "# Lexicographic minimax over groups\n\n"
        "Made by `python bench/lexicographic.py`; every number is in `results.csv` beside this page.\n\n"
        f"{explained}\n\n"
        f"**Verdict**: {', '.join(built)}. On new rows the second-worst group's error of *mean last* is below that of "
        f"*plain* in {lower} of {len(names) * len(SETTINGS)} cases.\n\n"
        + markdown_table(["groups", "method", "sets on which it helps", ""], verdicts, n_words=2)
        + f"\n\nErrors in %, means of {len({row['seed'] for row in rows})} splits; the first three where rules were "
        "chosen, the others on new rows:\n\n" + markdown_table(heads, lines, n_words=3) + "\n"
    )


def beside(mine: list[dict[str, str]], base: list[dict[str, str]], column: str, name: str) -> tuple[float, float]:
    """Return the mean difference over splits and its standard error, where half as many rows are new as others are."""
    differences = [float(one[column]) - float(other[column]) for one, other in zip(mine, base, strict=True)]
    n = len(differences)
    used = min(1.0, 3 * MOST_ROWS / NAMES[name])  # the share of all rows that a split takes
    spread = statistics.stdev(differences) if n > 1 else float("inf")
    return statistics.mean(differences), spread * (1 / n + used / 2) ** 0.5


def main() -> None:
    """Measure what is not there yet, and write the page."""
    options = arguments(__doc__ or "", NAMES, 6, FOLDER).parse_args()
    records = records_of(options, COLUMNS, n_keys=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in [] if options.page else range(options.splits):
            for name in options.only:
                if not records.has(name, seed):
                    for row in list(measured(name, seed)):
                        records.add(*row)
    (options.output / "README.md").write_text(page(records.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
