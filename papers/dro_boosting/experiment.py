"""DRO-Boosting (Blanchet, Zhang, Kang and Hu): Table 1, the path over rounds and radii, shift, Theorem 1's coverage.

*Credit default in Taiwan*, as the paper has it: 3,000 training and 27,000 test rows, trees of depth 5, 30 degrees of
freedom, confidence 0.9. The paper does not say how many rounds it ran, so the whole path is measured, for radii from
the calibrated one to 0.2, with whole steps (the paper's algorithm) and with a fifth of them (our default); beside them
our default fit, which holds out a fifth of the training rows, calibrates its radius on the others and stops by itself,
and AdaBoost after 50 rounds. The control of every gain is the same fit with radius 0, whose worst weights are the rows'
own: the same steps and stopping without robustness. LightGBM with its defaults is the plain model.

*Shift*: income in the American Community Survey. The file has neither state nor year, so regions are those of birth:
trained on people born in the Northeast, tested on all regions; once with clean labels and once with 10 % of the
training labels flipped.

*Coverage*: see ``dro_coverage``.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from counterpoise.boosting.adaboost import AdaBoostClassifier
from counterpoise.boosting.dro import DROBoostClassifier
from counterpoise.boosting.inputs import AUTO_FRACTION
from counterpoise.boosting.stopping import Stopping
from counterpoise.datasets import TableData, load_dataset, split_rows
from counterpoise.learners import HistogramTree
from counterpoise.theory.guarantees import calibrated_radius
from counterpoise.theory.losses import exponential
from papers.arrays import AnyArray, FloatArray
from papers.dro_boosting.coverage import DEGREES, N_SAMPLES, coverage
from papers.tables import ResultRow

EXPERIMENT = "dro-boosting"
CREDIT, SHIFT, SIMULATION = "credit-default", "acs-income", "simulation"
DATASETS = (CREDIT, SHIFT, SIMULATION)
N_TRAIN, DEPTH, DEGREES_OF_FREEDOM, CONFIDENCE, ADABOOST_ROUNDS = 3000, 5, 30, 0.9, 50
STEP = 0.2  # chosen on other sets: ``docs/results/what_did_not_help.md``
BY_A_FIFTH = Stopping(patience=10, validation_fraction="auto")
STOPPED: dict[str, Any] = {"n_estimators": 100, "learning_rate": STEP, "stopping": BY_A_FIFTH}
ROUND_COUNTS = (1, 2, 3, 5, 10, 20, 30, 50)
RADII = (0.0, round(calibrated_radius(N_TRAIN, CONFIDENCE, DEGREES_OF_FREEDOM), 4), 0.02, 0.05, 0.1, 0.2)
RATES = (1.0, STEP)
SHIFT_ROWS, SHIFT_NOISES, SHIFT_SEEDS = 10_000, (0.0, 0.1), 5
HOME = "Northeast"
REGIONS = {  # places of birth by the Census Bureau's regions, as codes of POBP
    "Northeast": (9, 23, 25, 33, 34, 36, 42, 44, 50),
    "Midwest": (17, 18, 19, 20, 26, 27, 29, 31, 38, 39, 46, 55),
    "South": (1, 5, 10, 11, 12, 13, 21, 22, 24, 28, 37, 40, 45, 47, 48, 51, 54),
    "West": (2, 4, 6, 8, 15, 16, 30, 32, 35, 41, 49, 53, 56),
}
ABROAD = "abroad or territories"
ADABOOST_ROW = f"path rounds={ADABOOST_ROUNDS}"  # settings of AdaBoost's row in Table 1
PATH_QUANTITIES = ("accuracy", "exponential loss")
DEFAULT = "default"  # settings of a fit that chose its rounds itself
DRO, CONTROL, PLAIN = "DRO-Boosting", "DRO-Boosting, radius 0", "LightGBM"


class Part(NamedTuple):
    """A data set and the seed of its split and models."""

    dataset: str
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset}, seed {self.seed}"


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Part]:
    """Return the splits: for the shift 5 at most, and one part for the simulation, which has its own repeats."""
    counts = {CREDIT: n_seeds, SHIFT: min(n_seeds, SHIFT_SEEDS), SIMULATION: 1}
    return [Part(name, seed) for name in datasets for seed in range(counts[name])]


def measure(part: Part) -> list[ResultRow]:
    """Return all measurements of one data set and seed."""
    measured: dict[str, Callable[[int], Iterator[ResultRow]]] = {CREDIT: credit, SHIFT: shift, SIMULATION: simulation}
    return list(measured[part.dataset](part.seed))


@cache
def _loaded(name: str) -> TableData:
    return load_dataset(name)


def credit(seed: int) -> Iterator[ResultRow]:
    """Yield Table 1 and the path over rounds and radii for one split."""
    data = _loaded(CREDIT)
    share = N_TRAIN / len(data.y)
    parts = dict(zip(("train", "test"), split_rows(data.y, (share, 1 - share), seed=seed), strict=True))
    X, y, tree = data.X[parts["train"]], data.y[parts["train"]], HistogramTree(max_depth=DEPTH)

    def rows(method: str, model: Any, settings: str) -> Iterator[ResultRow]:
        is_path = settings != DEFAULT
        for split, part in parts.items():
            scores = list(model.staged_decision_function(data.X[part]))
            for count in ROUND_COUNTS if is_path else (len(scores),):
                found = measures(scores[min(count, len(scores)) - 1], 2.0 * data.y[part] - 1.0)
                text = f"{settings} rounds={count}" if is_path else settings
                if is_path and text != ADABOOST_ROW:  # the path is shown by these two on test rows
                    found = {name: found[name] for name in PATH_QUANTITIES if split == "test"}
                for quantity, value in found.items():
                    yield _row(CREDIT, method, seed, quantity, split, value, text)

    ada = AdaBoostClassifier(tree, n_estimators=ADABOOST_ROUNDS).fit(X, y)
    yield from rows("AdaBoost", ada, "path")
    calibrated: dict[str, Any] = {"degrees_of_freedom": DEGREES_OF_FREEDOM, "radius_confidence": CONFIDENCE}
    for method, ball in ((DRO, calibrated), (CONTROL, {"radius": 0.0})):
        default = DROBoostClassifier(tree, random_state=seed, **ball, **STOPPED).fit(X, y)
        yield from rows(method, default, DEFAULT)
        yield _row(CREDIT, method, seed, "rounds", "train", len(default.votes_), DEFAULT)
    if (plain := plain_model(seed)) is not None:
        found = measures(
            plain.fit(X, y).predict_proba(data.X[parts["test"]])[:, 1] - 0.5, 2.0 * data.y[parts["test"]] - 1.0
        )
        yield _row(CREDIT, PLAIN, seed, "accuracy", "test", found["accuracy"], DEFAULT)
    for rate in RATES:
        for radius in RADII:
            model = DROBoostClassifier(
                tree, n_estimators=max(ROUND_COUNTS), radius=radius, learning_rate=rate, stopping=Stopping()
            ).fit(X, y)
            yield from rows(DRO, model, path_settings(radius, rate))


def default_radius(n_train: int) -> tuple[int, float]:
    """Return on how many of the training rows a default fit calibrates its radius, and that radius."""
    n_kept = n_train - math.ceil(AUTO_FRACTION * n_train)
    return n_kept, calibrated_radius(n_kept, CONFIDENCE, DEGREES_OF_FREEDOM)


def path_settings(radius: float, rate: float) -> str:
    """Return the settings under which a path is kept."""
    return f"radius={radius:g} rate={rate:g}"


def measures(scores: FloatArray, labels: FloatArray) -> dict[str, float]:
    """Return what Table 1 reports; it prints "False Negative Rate" and "True Positive Rate" for these two rates."""
    right, positive = (scores > 0) == (labels > 0), labels > 0
    return {
        "accuracy": float(right.mean()),
        "true positive rate": float(right[positive].mean()),
        "true negative rate": float(right[~positive].mean()),
        "exponential loss": float(exponential.value(labels * scores).mean()),
    }


def shift(seed: int) -> Iterator[ResultRow]:
    """Yield accuracies in all regions of models trained on one of them, with and without label noise."""
    data = _loaded(SHIFT)
    place = data.feature_names.index("POBP")
    regions = region_of(data.X[:, place])
    kept = np.arange(data.X.shape[1]) != place  # it names the region, and some values are never met in training
    X, categorical = data.X[:, kept], data.categorical[kept]
    rng = np.random.default_rng(seed)
    rows = {name: rng.permutation(np.flatnonzero(regions == name)) for name in (*REGIONS, ABROAD)}
    train, rows[HOME] = rows[HOME][:SHIFT_ROWS], rows[HOME][SHIFT_ROWS:]
    for noise in SHIFT_NOISES:
        y = np.where(rng.random(SHIFT_ROWS) < noise, 1 - data.y[train], data.y[train])
        for method, make in shift_methods(categorical, seed).items():
            model = make().fit(X[train], y)
            for region, places in rows.items():
                test = places[:SHIFT_ROWS]
                accuracy = float((model.predict(X[test]) == data.y[test]).mean())
                yield _row(SHIFT, method, seed, "accuracy", region, accuracy, f"noise={noise:g}")


def region_of(births: FloatArray) -> AnyArray:
    """Return the region of each place of birth."""
    regions = np.full(births.size, ABROAD, dtype=object)
    for name, codes in REGIONS.items():
        regions[np.isin(births, codes)] = name
    return regions


def shift_methods(categorical: AnyArray, seed: int) -> dict[str, Callable[[], Any]]:
    """Return the methods that are compared under shift, by name; LightGBM where it is installed."""
    from sklearn.compose import make_column_transformer  # noqa: PLC0415 - heavy, and only here
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: PLC0415

    codes, numbers = np.flatnonzero(categorical), np.flatnonzero(~np.asarray(categorical))
    tree = HistogramTree(max_depth=DEPTH, categorical_features=codes)
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), codes))
    methods: dict[str, Callable[[], Any]] = {
        DRO: lambda: DROBoostClassifier(tree, random_state=seed, **STOPPED),
        f"{DRO}, radius by CV": lambda: DROBoostClassifier(tree, radius="cv", random_state=seed, **STOPPED),
        CONTROL: lambda: DROBoostClassifier(tree, radius=0.0, random_state=seed, **STOPPED),
        "AdaBoost": lambda: AdaBoostClassifier(tree, n_estimators=ADABOOST_ROUNDS),
        "logistic regression": lambda: make_pipeline(columns, LogisticRegression(max_iter=1000)),
    }
    if find_spec("lightgbm") is not None:
        methods[PLAIN] = lambda: plain_model(seed)
    return methods


def plain_model(seed: int) -> Any:
    """Return LightGBM with trees of the same depth, and as many at most; None where it is not installed."""
    if find_spec("lightgbm") is None:
        return None
    from lightgbm import LGBMClassifier  # noqa: PLC0415 - optional

    return LGBMClassifier(max_depth=DEPTH, random_state=seed, verbose=-1)


def simulation(seed: int) -> Iterator[ResultRow]:
    """Yield ``2 n R_n`` for every repeat of the simulation, which is the same for every seed."""
    for repeat, value in enumerate(coverage()):
        settings = f"n={N_SAMPLES} degrees={DEGREES} repeat={repeat}"
        yield _row(SIMULATION, "Theorem 1", seed, "2nR", "train", float(value), settings)


def _row(dataset: str, method: str, seed: int, quantity: str, split: str, value: float, settings: str) -> ResultRow:
    learner = "linear" if dataset == SIMULATION else "tree"
    return ResultRow(EXPERIMENT, dataset, learner, method, seed, None, quantity, split, float(value), settings)
