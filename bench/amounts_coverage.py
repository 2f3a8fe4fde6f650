"""How often audits of goals on amounts, equalities and phrases without small groups are wrong: run it for the table.

As ``audit_coverage.py``, with two classes, amounts in two columns, two groups and a column of regions of which one is
too small to count. In one column a hundredth of the rows has nearly all of the money.
"""

import sys
from pathlib import Path

import numpy as np
from audit_coverage import N_PEOPLE, People, explained, table_of

LIMIT = 3000.0  # the largest amount
N_REMOTE = 20  # people of the region that is left out
LEFT = (
    ("recall in money", "recall(value=amount)", ">="),
    ("recall in rare money", "recall(value=rare)", ">="),
    ("precision in money", "precision(value=amount)", ">="),
    ("selection in money, one group", "positive_rate(sex=F, value=amount)", "<="),
    ("difference in money", "max_difference(recall, by=sex, value=amount)", "<="),
    ("least ratio in money", "min_ratio(positive_rate, by=sex, value=amount)", ">="),
    ("cost of amounts", "cost({1->0: amount, 0->1: 50})", "<="),
    ("cost of rare amounts", "cost({1->0: rare, 0->1: 5})", "<="),
    ("mean profit", "cost({1->1: profit, 0->1: profit})", ">="),
    ("equality", "positive_rate == 0.4", "+-"),
    ("equality of a ratio", "precision == 0.7", "+-"),
    ("equality of two groups", "recall(sex=F) == recall(sex=M)", "+-"),
    ("equality of every group", "every_group(recall, by=sex) == 0.8", "+-"),
    ("equality in money", "recall(value=amount) == 0.7", "+-"),
    ("difference without small groups", "max_difference(error_rate, by=region, min_rows=30)", "<="),
    ("every group but small ones", "every_group(recall, by=region, min_rows=30)", ">="),
    ("money without small groups", "max_difference(recall, by=region, value=amount, min_rows=30)", "<="),
)


def population(n_people: int = N_PEOPLE) -> People:
    """Return people with amounts; large ones of one group are decided about less well."""
    rng = np.random.default_rng(0)
    sex, region = rng.choice(["F", "M"], n_people, p=[0.4, 0.6]), rng.choice(["east", "north", "west"], n_people)
    region[:N_REMOTE] = "remote"
    y = (rng.random(n_people) < 0.4).astype(int)
    amount = np.minimum(rng.lognormal(5, 1, n_people), LIMIT)
    rare = np.where(rng.random(n_people) < 0.01, LIMIT, 10.0)
    skill = 0.85 - 0.1 * (sex == "F") - 0.1 * (amount > 300) - 0.3 * (rare == LIMIT) - 0.05 * (region == "west")
    decided = np.where(rng.random(n_people) < skill, y, 1 - y)
    profit = np.where(y == 1, amount, -amount)
    columns = {"sex": sex, "region": region, "amount": amount, "rare": rare, "profit": profit}
    return People(y, decided, columns, largest_value=LIMIT)


def main(output: str = "docs/results/confidence/amounts.md") -> None:
    """Measure all goals and write the table."""
    what = "two classes, two groups, amounts of at most 3,000 and four regions"
    how = explained("python bench/amounts_coverage.py", what)
    title = "# Audits of goals on amounts, equalities and phrases without small groups\n\n"
    Path(output).write_text(title + how + table_of(population(), LEFT))


if __name__ == "__main__":
    main(*sys.argv[1:])
