"""Satisfying Real-world Goals with Dataset Constraints (Goh, Cotter, Gupta, Friedlander, NIPS 2016): Figures 2 and 3.

*Fairness*, on a9a: the least error subject to ``positive_rate(women) >= kappa * positive_rate(men)``, for a range of
kappa, against the covariance constraint of Zafar et al. for a range of c, the support vector machine without goals, the
same with its bias shifted, and fairlearn's exponentiated gradient. Repeat 0 is the official split; the others are
random splits of all rows into as many for training and testing. All linear methods run at the paper's regularization,
1/n, at which ours fits the training rows more closely than it can keep on test rows, and at 0.001; at 1/n also without
a bias, as in the paper.

*Churn*: the paper's data are private, so income in the American Community Survey stands for them. The deployed model
is a logistic regression on a small old sample. Of the three datasets ``train`` is labelled and chosen by active
sampling (rows that the deployed model is unsure of are drawn more often), ``fresh`` is labelled and drawn at random,
``live`` is drawn at random and has no labels. Errors on ``train`` plus false positives on ``fresh`` are minimized;
recall on ``fresh`` must not be below that of the deployed model, nor churn on ``live`` above a target. Classifiers are
linear in random Fourier features.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from counterpoise.classifiers.constrained import ConstrainedClassifier
from counterpoise.datasets import TableData, load_dataset
from counterpoise.goals import InfeasibleGoals, Table, churn, error_rate, false_positives, positive_rate, recall
from papers.arrays import AnyArray, BoolArray, FloatArray, IntArray
from papers.dataset_constraints.baselines import (
    Probabilities,
    exponentiated_gradient,
    plain_svm,
    shift_bias,
    zafar_svm,
)
from papers.tables import ResultRow

EXPERIMENT = "dataset-constraints"
FAIRNESS, CHURN = "a9a", "acs-income"
DATASETS = (FAIRNESS, CHURN)
THRESHOLDED, RANDOMIZED = "ours, thresholded", "ours, randomized"
ZAFAR, SVM, SHIFTED, REDUCTION = "Zafar et al.", "SVM", "SVM, bias shifted", "fairlearn"
DEPLOYED, NEAREST = "deployed", "nearest churn"

WEAK, STRONG, PEER = "linear, regularization 1/n", "linear, regularization 0.001", "logistic regression"
NO_BIAS = "linear without a bias, regularization 1/n"


class Linear(NamedTuple):
    """How a linear classifier is regularized, and whether it has a bias."""

    strength: float | None  # None: 1/n, as in the paper
    has_bias: bool = True


LINEARS = {WEAK: Linear(None), STRONG: Linear(1e-3), NO_BIAS: Linear(None, has_bias=False)}
KAPPAS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
REDUCTION_RATIOS = (0.4, 0.6, 0.8, 1.0)
COVARIANCES = (0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.005)

TARGETS = (0.03, 0.04, 0.05, 0.06, 0.08, 0.1)
REGULARIZATIONS = (1e-6, 1e-5, 1e-4)  # tried for the support vector machine
REGULARIZATION = 1e-5  # of all other fits
CHURN_SEEDS = 10  # as in the paper
N_OLD = 2_000  # rows of the deployed model
SIZES = {"train": 20_000, "fresh": 8_000, "live": 10_000}  # for training, and as many for testing
CANDIDATES = 3  # for each row that active sampling takes
N_FOURIER, GAMMA = 1_000, 0.03
MAJORIZATIONS = 5  # as in the paper


CHURN_LEARNER = "linear"  # in random features
_EVEN = 0.5  # probability of a score of 0


class Part(NamedTuple):
    """One of the two experiments, what is trained in it, and the seed of its splits."""

    dataset: str
    learner: str
    seed: int

    def __str__(self) -> str:
        name = "fairness" if self.dataset == FAIRNESS else "churn"
        return f"{name} on {self.dataset}, {self.learner}, repeat {self.seed}"


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Part]:
    """Return the repeats with other splits, of churn 10 at most."""
    learners = {FAIRNESS: (*LINEARS, PEER), CHURN: (CHURN_LEARNER,)}
    if FAIRNESS in datasets and find_spec("fairlearn") is None:
        learners[FAIRNESS] = tuple(LINEARS)
    counts = {FAIRNESS: n_seeds, CHURN: min(n_seeds, CHURN_SEEDS)}
    parts = (
        Part(name, learner, seed) for name in datasets for learner in learners[name] for seed in range(counts[name])
    )
    return sorted(parts, key=lambda part: part.seed)


def measure(part: Part) -> list[ResultRow]:
    """Return all measurements of one repeat, and the processor time that it took."""
    started = time.process_time()
    rows = list(measure_churn(part.seed) if part.dataset == CHURN else measure_fairness(part.seed, part.learner))
    seconds = time.process_time() - started
    return [*rows, _row(part.dataset, "all", part.seed, "processor seconds", "train", seconds, learner=part.learner)]


@cache
def _loaded(name: str) -> TableData:
    return load_dataset(name)


def measure_fairness(seed: int, learner: str) -> Iterator[ResultRow]:
    """Yield errors and ratios of the positive rates, women over men, on one split."""
    parts = fairness_split(_loaded(FAIRNESS), seed)
    train = parts["train"]
    for method, settings, decide in _peer(train) if learner == PEER else _linear_methods(train, LINEARS[learner]):
        yield from fairness_rows(parts, decide, learner, method, seed, settings)


def fairness_rows(
    parts: dict[str, TableData], decide: Probabilities, learner: str, method: str, seed: int, settings: str
) -> Iterator[ResultRow]:
    """Yield the error and the ratio of the positive rates of one classifier, on the rows of each part."""
    for split, part in parts.items():
        found = decide(part.X)
        women = part.sensitive["sex"] == "Female"
        men_rate = float(found[~women].mean())
        ratio = float(found[women].mean()) / men_rate if men_rate > 0 else np.nan
        for quantity, value in {"error": float(_errors(found, part.y > 0).mean()), "ratio": ratio}.items():
            yield _row(FAIRNESS, method, seed, quantity, split, value, settings, learner)


def fairness_split(data: TableData, seed: int) -> dict[str, TableData]:
    """Return the training and the test part: the official ones for seed 0, else random ones of the same sizes."""
    if seed == 0:
        return {"train": data.part("train"), "test": data.part("test")}
    rows = np.random.default_rng(seed).permutation(len(data.y))
    n_train = data.part("train").X.shape[0]
    return {"train": data.take(rows[:n_train]), "test": data.take(rows[n_train:])}


def _peer(train: TableData) -> Iterator[tuple[str, str, Probabilities]]:
    for ratio in REDUCTION_RATIOS:
        decide = exponentiated_gradient(train.X, train.y > 0, train.sensitive["sex"] == "Male", ratio=ratio)
        yield REDUCTION, f"ratio={ratio:g}", decide


def _linear_methods(train: TableData, linear: Linear) -> Iterator[tuple[str, str, Probabilities]]:
    """Yield method, settings and the fitted function from rows to probabilities of the positive class."""
    strength = 1.0 / len(train.y) if linear.strength is None else linear.strength
    positive, men = train.y > 0, train.sensitive["sex"] == "Male"
    plain = plain_svm(train.X, positive, regularization=strength, fit_bias=linear.has_bias)
    yield SVM, "", plain.above(0.0)
    scores, table = plain(train.X), Table(None, train.y, train.sensitive)
    for kappa in KAPPAS:
        goal = positive_rate(sex="Female") >= kappa * positive_rate(sex="Male")
        settings: dict[str, Any] = {"regularization": strength, "fit_intercept": linear.has_bias}
        model = ConstrainedClassifier(goals=goal, decision="ramp", **settings)
        model.fit(train.X, train.y, sensitive_features=train.sensitive)
        for method, decide in _decisions(model):
            yield method, f"kappa={kappa:g}", decide
        if linear.has_bias:
            yield SHIFTED, f"kappa={kappa:g}", plain.above(shift_bias(scores, table, goal))
    for c in COVARIANCES:
        found = zafar_svm(train.X, positive, men, c=c, regularization=strength, fit_bias=linear.has_bias)
        yield ZAFAR, f"c={c:g}", found.above(0.0)


class Sample(NamedTuple):
    """Rows of one dataset: features, labels, and the deployed model's predictions."""

    X: AnyArray
    y: AnyArray
    baseline: AnyArray


def measure_churn(seed: int) -> Iterator[ResultRow]:
    """Yield error on the two labelled datasets, recall on the random one, and churn, on training and test rows."""
    samples = churn_samples(_loaded(CHURN), seed)
    for split, part in samples.items():
        deployed = churn_rates(part, {name: sample.baseline for name, sample in part.items()})
        for quantity in ("error", "recall"):
            yield _row(CHURN, DEPLOYED, seed, quantity, split, deployed[quantity])
    train = samples["train"]
    wanted = float(train["fresh"].baseline[train["fresh"].y == 1].mean())
    for strength in REGULARIZATIONS:
        shifted = shifted_svm(train, wanted, strength)
        yield from _churn_rows(SHIFTED, seed, samples, shifted, f"regularization={strength:g}")
    for target in TARGETS:
        settings, low_churn = f"target={target:g}", churn("live") <= target
        try:
            model = constrained(train, [recall("fresh") >= wanted, low_churn])
        except InfeasibleGoals as error:
            yield _row(CHURN, NEAREST, seed, "churn", "train", error.nearest_bounds.get(low_churn, np.nan), settings)
            continue
        for method, decide in _decisions(model):
            yield from _churn_rows(method, seed, samples, decide, settings)


def churn_samples(data: TableData, seed: int, *, width: float = GAMMA) -> dict[str, dict[str, Sample]]:
    """Return the three datasets by name, for training and for testing; ``width`` is the gamma of the features."""
    from sklearn.kernel_approximation import RBFSampler  # noqa: PLC0415 - heavy, and only here
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    rng = np.random.default_rng(seed)
    sizes = {"old": N_OLD, **{name: 2 * size for name, size in SIZES.items()}}
    drawn = sizes | {"train": CANDIDATES * sizes["train"]}
    chosen = rng.permutation(len(data.y))[: sum(drawn.values())]
    rows = dict(zip(drawn, np.split(chosen, np.cumsum(list(drawn.values()))[:-1]), strict=True))
    columns = _columns(data, rows["old"])
    deployed = LogisticRegression(max_iter=1000).fit(columns(rows["old"]), data.y[rows["old"]])
    rows["train"] = _unsure(deployed.predict_proba(columns(rows["train"])), rows["train"], sizes["train"], rng)
    fourier = RBFSampler(gamma=width, n_components=N_FOURIER, random_state=seed).fit(columns(rows["old"]))

    def sample(part: IntArray) -> Sample:
        plain = columns(part)
        return Sample(fourier.transform(plain).astype(np.float32), data.y[part], deployed.predict(plain))

    halves = {name: np.split(rows[name], 2) for name in SIZES}
    return {
        split: {name: sample(half[place]) for name, half in halves.items()}
        for place, split in enumerate(("train", "test"))
    }


def _columns(data: TableData, old: IntArray) -> Callable[[IntArray], AnyArray]:
    """Return rows as numbers of similar sizes, by what was known when the deployed model was trained."""
    from sklearn.compose import make_column_transformer  # noqa: PLC0415 - heavy, and only here
    from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: PLC0415

    codes, numbers = np.flatnonzero(data.categorical), np.flatnonzero(~data.categorical)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    transform = make_column_transformer((StandardScaler(), numbers), (encoder, codes)).fit(data.X[old]).transform
    return lambda rows: np.asarray(transform(data.X[rows]))


def _unsure(probabilities: FloatArray, rows: IntArray, size: int, rng: np.random.Generator) -> IntArray:
    """Draw rows without replacement, in proportion to the variance of the label that the deployed model expects."""
    variance = probabilities.prod(axis=1)
    return np.asarray(rng.choice(rows, size, replace=False, p=variance / variance.sum()))


def constrained(train: dict[str, Sample], goals: Sequence[Any]) -> ConstrainedClassifier:
    """Return the classifier of least errors on ``train`` plus false positives on ``fresh``, inside the goals."""
    n_train, n_fresh = len(train["train"].y), len(train["fresh"].y)
    counts = n_train * error_rate("train") + n_fresh * false_positives("fresh")
    model = ConstrainedClassifier(
        objective=counts / (n_train + n_fresh),
        goals=goals,
        regularization=REGULARIZATION,
        max_majorizations=MAJORIZATIONS,
        decision="ramp",
    )
    others = {
        "fresh": Table(train["fresh"].X, train["fresh"].y),
        "live": Table(train["live"].X, baseline=train["live"].baseline),
    }
    return model.fit(train["train"].X, train["train"].y, datasets=others)


def shifted_svm(train: dict[str, Sample], wanted: float, regularization: float) -> Probabilities:
    """Return the support vector machine on both labelled datasets, its bias shifted to the recall on ``fresh``."""
    X, y = (np.concatenate([getattr(train[name], field) for name in ("train", "fresh")]) for field in ("X", "y"))
    plain = plain_svm(X, y == 1, regularization=regularization)
    fresh = Table(None, train["fresh"].y)
    return plain.above(shift_bias(plain(train["fresh"].X), fresh, recall() >= wanted, objective=false_positives()))


def _decisions(model: ConstrainedClassifier) -> Iterator[tuple[str, Probabilities]]:
    """Yield both decisions of a classifier as functions from rows to probabilities of the positive class.

    The paper decides by the sign of the score that was trained; our own ``decision="fixed"`` moves the threshold.
    """
    yield THRESHOLDED, lambda rows: (model.predict_proba(rows)[:, 1] > _EVEN).astype(np.float64)
    yield RANDOMIZED, lambda rows: model.predict_proba(rows)[:, 1]


def _churn_rows(
    method: str, seed: int, samples: dict[str, dict[str, Sample]], decide: Probabilities, settings: str
) -> Iterator[ResultRow]:
    for split, part in samples.items():
        found = {name: decide(sample.X) for name, sample in part.items()}
        for quantity, value in churn_rates(part, found).items():
            yield _row(CHURN, method, seed, quantity, split, value, settings)


def churn_rates(part: dict[str, Sample], found: dict[str, AnyArray]) -> dict[str, float]:
    """Return what Figure 3 shows, and the recall, given the probabilities of positive predictions."""
    errors = [_errors(found[name], part[name].y == 1) for name in ("train", "fresh")]
    return {
        "error": float(np.concatenate(errors).mean()),
        "recall": float(found["fresh"][part["fresh"].y == 1].mean()),
        "churn": float(_errors(found["live"], part["live"].baseline == 1).mean()),
    }


def _errors(found: AnyArray, positive: BoolArray) -> FloatArray:
    """Return the probability that each prediction is not the given one."""
    return np.where(positive, 1.0 - found, found)


def _row(
    dataset: str,
    method: str,
    seed: int,
    quantity: str,
    split: str,
    value: float,
    settings: str = "",
    learner: str = CHURN_LEARNER,
) -> ResultRow:
    return ResultRow(EXPERIMENT, dataset, learner, method, seed, None, quantity, split, float(value), settings)
