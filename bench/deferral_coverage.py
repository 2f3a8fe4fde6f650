"""How often audits of goals on deferred rows are wrong: run this file to write the table.

As ``audit_coverage.py``, with two classes and a classifier that defers some people, one group more often than the
other and the hard cases most often. A deferred row is a third answer, in the denominators and neither right nor wrong.
"""

import sys
from pathlib import Path

import numpy as np
from audit_coverage import N_PEOPLE, People, explained, table_of

LEFT = (
    ("deferral", "defer_rate(train)", "<="),
    ("deferral of a group", "defer_rate(train, sex=F)", "<="),
    ("deferral of the positives", "defer_rate(train.positives)", "<="),
    ("deferral, group against group", "defer_rate(train, sex=F) - 1.2 * defer_rate(train, sex=M)", "<="),
    ("largest difference of deferral", "max_difference(defer_rate, train, by=sex)", "<="),
    ("error among the decided", "decided_error_rate(train)", "<="),
    ("positives among the decided of a group", "decided_positive_rate(train, sex=F)", ">="),
    ("recall, deferred rows are not found", "recall(train)", ">="),
    ("error, deferred rows are not wrong", "error_rate(train, sex=F)", "<="),
    ("negative predictions", "negative_rate(train)", ">="),
    ("precision", "precision(train)", ">="),
)
DEFERRED = "ask a person"


def population(n_people: int = N_PEOPLE) -> People:
    """Return people of two classes; who is hard to tell, or of one group, is deferred more often."""
    rng = np.random.default_rng(0)
    sex, hard = rng.choice(["F", "M"], n_people, p=[0.4, 0.6]), rng.random(n_people)
    y = rng.choice(["no", "yes"], n_people, p=[0.6, 0.4])
    other = np.where(y == "no", "yes", "no")
    said = np.where(rng.random(n_people) < 0.5 * hard**2, other, y)
    is_deferred = rng.random(n_people) < 0.25 * hard * np.where(sex == "F", 1.3, 1.0)
    return People(y, np.where(is_deferred, DEFERRED, said), {"sex": sex}, DEFERRED)


def main(output: str = "docs/results/confidence/deferral.md") -> None:
    """Measure all goals and write the table."""
    how = explained("python bench/deferral_coverage.py", "two classes and two groups, some deferred")
    Path(output).write_text("# Audits of goals on deferred rows\n\n" + how + table_of(population(), LEFT))


if __name__ == "__main__":
    main(*sys.argv[1:])
