"""How many people a draw decides about, before and after a mixture with fewer drawn rows is looked for.

Usage: python bench/drawn_people.py [--only NAME ...] [--splits N] [--resume] [--page] [--output FOLDER]

A pool of 30 trees of depth 4, each on other weights of the training rows, is mixed for a tail. *Before* is the mixture
that the solver returns, within its gap of 0.0001 of the best; *after* is that of ``MixtureClassifier``, which looks for
one with fewer drawn rows at no more risk. A row is drawn where the draw decides whether the decision is right.

Rule, set before the run: it helps on a set if, summed over its splits and tails, fewer selection rows are drawn and the
risk of no mixture is higher than before. New rows are the control: there fewer must be drawn too. The steps that look
for such a mixture were written after a look at Adult; nothing was chosen on the other five sets.
"""

import os
import statistics
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp

sys.path.insert(0, str(Path(__file__).parent.parent))
from records import arguments, records_of
from stability import SETS

from papers.markdown import markdown_table

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "drawn_people"
NAMES = ("adult", "acs income", "compas", "credit default", "census income", "covertype")
ALPHAS = (0.05, 0.1, 0.3, 1.0)
N_MODELS, MOST_ROWS = 30, 10_000
COLUMNS = (
    "set", "seed", "alpha", "rows", "risk before", "risk after",
    "drawn before", "drawn after", "new before", "new after", "seconds before", "seconds after",
)  # fmt: skip


def measured(name: str, seed: int) -> list[tuple[object, ...]]:
    """Return the rows of a split: risk and drawn share, on selection rows and new ones, of both mixtures."""
    X, y = SETS[name]()
    X, y = np.nan_to_num(np.asarray(X, dtype=float), nan=-1.0), (np.asarray(y) > 0).astype(int)
    rng = np.random.default_rng(seed)
    some = rng.permutation(len(X))[:MOST_ROWS]
    train, rest, labels, other = train_test_split(X[some], y[some], test_size=2 / 3, random_state=seed)
    chosen, new, on_chosen, _ = train_test_split(rest, other, test_size=0.5, random_state=seed)
    pool = []
    for place in range(N_MODELS):
        tree = DecisionTreeClassifier(max_depth=4, max_features=0.3, random_state=place)
        pool.append(tree.fit(train, labels, sample_weight=rng.dirichlet(np.full(len(train), 0.5)) * len(train)))
    rows = []
    for alpha in ALPHAS:
        numbers = {}
        for when, decision in (("before", "vote"), ("after", "sticky")):  # votes draw nothing, and are left as they are
            model = cp.MixtureClassifier(pool, alpha=alpha, decision=decision, random_state=seed).fit(chosen, on_chosen)
            begin = time.process_time()
            model.rebalance(alpha=alpha)
            seconds = time.process_time() - begin
            answers = np.column_stack([one.predict(new) for one in np.array(pool)[model.mixture_ > 0]])
            drawn = np.ptp(answers, axis=1) > 0
            numbers[when] = (model.value_, model.drawn_share_, drawn.mean(), seconds)
        pairs = zip(numbers["before"], numbers["after"], strict=True)
        rows.append((name, seed, alpha, len(chosen), *(round(float(one), 6) for pair in pairs for one in pair)))
    return rows


def page(rows: list[dict[str, str]]) -> str:
    """Return the page, given all rows."""
    lines, verdicts = [], []
    for name in dict.fromkeys(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        total = {column: sum(float(row[column]) for row in own) for column in COLUMNS[6:10]}
        worst = max(float(row["risk after"]) - float(row["risk before"]) for row in own)
        falls = all(total[f"{rows} after"] < total[f"{rows} before"] for rows in ("drawn", "new"))
        helps = falls and worst <= 1e-6
        verdicts.append([name, f"{worst:+.6f}", "helps" if helps else "does not help"])
        for alpha in ALPHAS:
            cell = [row for row in own if float(row["alpha"]) == alpha]
            means = [statistics.mean(float(row[column]) for row in cell) for column in COLUMNS[6:]]
            lines.append(
                [name, f"{alpha:g}", *(f"{100 * one:.1f}" for one in means[:4]), *(f"{one:.2f}" for one in means[4:])]
            )
    heads = ["set", "alpha", *(column + (", %" if "seconds" not in column else "") for column in COLUMNS[6:])]
    _, _, *paragraphs = (__doc__ or "").strip().split("\n\n")
    explained = "\n\n".join(paragraphs).replace("``", "`")
    return (
        "# How many people a draw decides about\n\n"
        f"Made by `python bench/drawn_people.py`; every number is in `results.csv` beside this page.\n\n{explained}\n\n"
        "Mixtures of the thresholds of one score are left as they are: between the outer thresholds of a group every\n"
        "row is drawn, and on Adult no mixture with as little risk had its thresholds nearer to one another.\n\n"
        "## Verdicts\n\n"
        + markdown_table(["set", "largest change of the risk", "verdict"], verdicts, n_words=1)
        + f"\n\n## Shares\n\nMeans of {len({row['seed'] for row in rows})} splits; *new* are rows that chose nothing, "
        "seconds of processor time of a `rebalance`.\n\n" + markdown_table(heads, lines, n_words=1) + "\n"
    )


def main() -> None:
    """Measure what is not there yet, and write the page."""
    options = arguments(__doc__ or "", NAMES, 3, FOLDER).parse_args()
    records = records_of(options, COLUMNS, n_keys=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in [] if options.page else options.only:
            for seed in range(options.splits):
                if not records.has(name, seed, ALPHAS[-1]):
                    for row in measured(name, seed):
                        records.add(*row)
    (options.output / "README.md").write_text(page(records.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
