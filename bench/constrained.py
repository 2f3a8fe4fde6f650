"""ConstrainedClassifier against fairlearn's ExponentiatedGradient, the 80 % rule on a9a; many goals; many rows."""

import time
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from harness import Benchmark
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from counterpoise import ConstrainedClassifier
from counterpoise.datasets import DataNotAvailable, TableData, load_dataset
from counterpoise.goals import Dataset, Table, eighty_percent_rule, recall

RULE = eighty_percent_rule(Dataset("train").by(sex=["Female", "Male"]))
SAME_ERROR = 0.01  # by which the two test errors may differ
FLOOR = "one pass over the rows for each support vector machine"


class Found(NamedTuple):
    """A classifier's error and its ratio of positive rates, women over men, on test rows."""

    error: float
    ratio: float
    n_machines: int = 0


@cache
def adult() -> tuple[TableData, TableData] | None:
    """Return the training and test rows of a9a, or None where there is no such file."""
    try:
        data = load_dataset("a9a")
    except DataNotAvailable:
        return None
    return data.part("train"), data.part("test")


def measured(probabilities: np.ndarray, rows: TableData, n_machines: int = 0) -> Found:
    """Return error and ratio of expected decisions."""
    women = rows.sensitive["sex"] == "Female"
    error = np.where(rows.y == 1, 1 - probabilities, probabilities).mean()
    return Found(float(error), float(probabilities[women].mean() / probabilities[~women].mean()), n_machines)


def ours(train: TableData, test: TableData) -> Found:
    """Fit inside the rule, decide by the sign of the score."""
    model = ConstrainedClassifier(goals=RULE).fit(train.X, train.y, sensitive_features=train.sensitive)
    n_machines = sum(step.n_machines for step in model.history_)
    return measured((model.predict(test.X) == 1).astype(float), test, n_machines)


def exponentiated_gradient(train: TableData, test: TableData) -> Found:
    """Fit fairlearn's reduction; it takes dense rows and labels 0 and 1 only."""
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient  # noqa: PLC0415 - optional

    model = ExponentiatedGradient(LogisticRegression(max_iter=1000), DemographicParity(ratio_bound=0.8))
    model.fit(train.X.toarray(), (train.y == 1).astype(int), sensitive_features=train.sensitive["sex"])
    return measured(model._pmf_predict(test.X.toarray())[:, 1], test)  # noqa: SLF001 - its mixture is not public


def passes(X: Any, n_machines: int) -> float:
    """Return the time of a product of the rows and a vector for each machine."""
    vector = np.ones(X.shape[1], dtype=X.dtype)
    start = time.process_time()
    for _ in range(n_machines):
        X @ vector
    return time.process_time() - start


def has_fairlearn() -> bool:
    """Tell whether the peer is installed, and say so where it is not."""
    try:
        import fairlearn  # noqa: F401, PLC0415 - optional
    except ImportError:
        print("ExponentiatedGradient is left out: fairlearn is not installed.")
        return False
    return True


def rule() -> Iterator[Benchmark]:
    """Yield the 80 % rule on a9a."""
    data = adult()
    if data is None:
        print("The 80 % rule is left out: a9a is not there.")
        return
    peer = partial(exponentiated_gradient, *data) if has_fairlearn() else None
    yield Benchmark(
        name="ConstrainedClassifier a9a, 80 % rule",
        size="32561 x 123",
        ours=partial(ours, *data),
        floor=lambda found: passes(data[0].X, found.n_machines),
        floor_means=FLOOR,
        peer_name="fairlearn ExponentiatedGradient" if peer else "",
        peer=peer,
        difference=compared,
        tolerance=SAME_ERROR,
    )


def compared(one: Found, other: Found) -> float:
    """Return the difference of the errors; print errors and ratios, which the harness has no room for."""
    print(f"test error and ratio: ours {one.error:.4f}, {one.ratio:.3f}; peer {other.error:.4f}, {other.ratio:.3f}")
    return abs(one.error - other.error)


def many_goals(n_datasets: int) -> Benchmark:
    """Time recall goals on as many small datasets beside the error on 30,000 rows; no peer has them."""
    rng = np.random.default_rng(0)
    X, y = make_classification(30_000, 20, n_informative=10, flip_y=0.1, class_sep=0.7, random_state=0)
    X /= X.std(axis=0)
    tables = {}
    for place in range(n_datasets):
        chosen = rng.choice(len(y), 200, replace=False)
        tables[f"country{place}"] = Table(X[chosen] + 0.3 * rng.normal(size=20), y[chosen])
    goals = [recall(name) >= 0.85 for name in tables]
    return Benchmark(
        name=f"ConstrainedClassifier, recall on {n_datasets} datasets",
        size=f"30000 x 20 and {n_datasets} x 200",
        ours=lambda: ConstrainedClassifier(goals=goals).fit(X, y, datasets=tables),
        floor=lambda model: passes(X, sum(step.n_machines for step in model.history_)),
        floor_means=FLOOR,
        repeats=1,
    )


def unlabelled(n_rows: int) -> Benchmark:
    """Time a coverage goal on many unlabelled rows beside the error on 20,000."""
    rng = np.random.default_rng(0)
    mail = rng.standard_normal((n_rows, 100), dtype=np.float32)
    X = rng.standard_normal((20_000, 100), dtype=np.float32)
    y = X[:, :30].sum(axis=1) / 5 + rng.standard_normal(20_000) > -0.5
    return Benchmark(
        name="ConstrainedClassifier, coverage of unlabelled rows",
        size=f"{n_rows} x 100",
        ours=lambda: ConstrainedClassifier(goals="coverage(mail) <= 0.3").fit(X, y, datasets={"mail": Table(mail)}),
        floor=lambda model: passes(mail, sum(step.n_machines for step in model.history_)),
        floor_means=FLOOR,
        repeats=1,
    )


def quick() -> Iterator[Benchmark]:
    """Yield what runs in about a minute."""
    yield from rule()
    yield many_goals(50)


def full() -> Iterator[Benchmark]:
    """Yield the sizes that the project promises."""
    yield from quick()
    yield unlabelled(1_000_000)
