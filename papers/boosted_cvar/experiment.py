"""Boosted CVaR Classification (Zhai et al., NeurIPS 2021): the curves of Figures 1 to 4.

For each data set, learner and seed: T base models boosted with Hedge weights at the paper's eta = 1; then on test
samples, against alpha from 0.01 to 0.5, the CVaR zero-one loss of ERM (the first model), AdaBoost + Average, AdaLPBoost
(its mixture chosen on held-out samples, for each alpha) and Regularized LPBoost at beta = 100 (trained for each of
a few alphas); the average test loss; and the CVaR against the number of base models.

The paper prints figures and no numbers, so there are none to set beside ours: the pattern is what is compared. As in
the paper, the mixture on COMPAS is chosen on the training samples because the set is small.

Here are the tables, COMPAS with the network of the paper's Appendix B among them; ``networks`` has the images.
"""

import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from counterpoise.boosting.lpboost import AdaLPBoostClassifier, LPBoostClassifier
from counterpoise.datasets import load_dataset, split_rows
from counterpoise.metrics import cvar_loss
from counterpoise.rules.goal_rows import find_positive
from counterpoise.rules.pool import Pool, failures
from papers.arrays import AnyArray
from papers.boosted_cvar.curves import BETA, ERROR_ALPHAS, ETA, LP_ALPHAS, NAME, Losses, against_rounds, curves
from papers.tables import ResultRow

NETWORK = "network"


class Protocol(NamedTuple):
    """One data set with one learner."""

    dataset: str
    learner: str
    n_rounds: int
    parts: tuple[float, ...]  # train, validation, test; or train and test, the training samples validating
    max_rows: int | None = None
    lp_alphas: tuple[float, ...] = LP_ALPHAS

    @property
    def settings(self) -> str:
        """Return what else must be known to run it again."""
        rows = "all rows" if self.max_rows is None else f"{self.max_rows} rows"
        return f"T={self.n_rounds} eta={ETA:g} beta={BETA:g} parts={'/'.join(map(str, self.parts))} {rows}"


PROTOCOLS = (
    Protocol("compas", "shallow tree", 100, (0.7, 0.3)),
    Protocol("adult", "tree", 100, (0.5, 0.2, 0.3), lp_alphas=(0.1, 0.3)),
    Protocol("covertype", "tree", 100, (0.5, 0.2, 0.3), 100_000, lp_alphas=(0.1,)),
    Protocol("acs-income", "tree", 100, (0.5, 0.2, 0.3), 200_000, lp_alphas=()),
    Protocol("compas", "logistic", 100, (0.7, 0.3), lp_alphas=(0.1,)),
    Protocol("adult", "logistic", 50, (0.5, 0.2, 0.3), lp_alphas=()),
    Protocol("compas", "network", 100, (0.7, 0.3)),
)
IMAGE_SETS = ("cifar10", "cifar100")
DATASETS = (*dict.fromkeys(protocol.dataset for protocol in PROTOCOLS), *IMAGE_SETS)


class Repeat(NamedTuple):
    """A data set with a learner, and the seed of its split and models."""

    dataset: str
    learner: str
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset}, {self.learner}, seed {self.seed}"


def wanted(datasets: Sequence[str], n_seeds: int, protocols: tuple[Protocol, ...] = PROTOCOLS) -> list[Repeat]:
    """Return the repeats of the tables; the network's only where torch is installed."""
    has_torch = find_spec("torch") is not None
    chosen = [one for one in protocols if one.dataset in datasets and (has_torch or one.learner != NETWORK)]
    return [Repeat(one.dataset, one.learner, seed) for one in chosen for seed in range(n_seeds)]


def protocol_of(repeat: Repeat, protocols: tuple[Protocol, ...] = PROTOCOLS) -> Protocol:
    """Return the protocol of a repeat."""
    (protocol,) = (one for one in protocols if (one.dataset, one.learner) == repeat[:2])
    return protocol


def measure(repeat: Repeat, protocols: tuple[Protocol, ...] = PROTOCOLS) -> list[ResultRow]:
    """Return all measurements of one data set, learner and seed."""
    protocol = protocol_of(repeat, protocols)
    with warnings.catch_warnings():  # as in the paper, a learner stops after so many steps, converged or not
        warnings.filterwarnings("ignore", "lbfgs failed to converge")
        return list(run_once(protocol, load_dataset(protocol.dataset), repeat.seed))


def run_once(protocol: Protocol, data: Any, seed: int) -> Iterator[ResultRow]:
    """Yield all measurements of one data set, learner and seed."""
    parts = split_parts(protocol, data.y, seed)
    train, chosen, test = (parts[0], parts[-2], parts[-1])
    learner = make_learner(protocol.learner, data.categorical)
    X = as_features(protocol.learner, data, train)

    def fitted(model: Any) -> tuple[Any, Losses]:
        model.fit(X[train], data.y[train], X_val=X[chosen], y_val=data.y[chosen])
        codes = np.searchsorted(model.classes_, data.y[test])
        judged = failures(
            Pool(model.estimators_, find_positive(model.classes_, None), None).ask(X[test], len(X[test])), codes
        )
        return model, Losses(model.selection_.losses, judged)

    def row(method: str, alpha: float | None, quantity: str, value: float, extra: str = "") -> ResultRow:
        settings = " ".join(filter(None, [protocol.settings, extra]))
        return ResultRow(
            NAME,
            protocol.dataset,
            protocol.learner,
            method,
            seed,
            alpha,
            quantity,
            "test",
            float(value),
            settings,
        )

    boosted = AdaLPBoostClassifier(learner, n_estimators=protocol.n_rounds, eta=ETA, budget=None, random_state=seed)
    _, losses = fitted(boosted)
    for method, alpha, cvar, error in curves(losses):
        yield row(method, alpha, "cvar", cvar)
        if alpha in ERROR_ALPHAS:
            yield row(method, alpha, "error", error)
    for n_rounds, alpha, cvar in against_rounds(losses):
        yield row("AdaLPBoost", alpha, "cvar", cvar, extra=f"rounds={n_rounds}")
    for alpha in protocol.lp_alphas:
        regularized = LPBoostClassifier(
            learner, n_estimators=protocol.n_rounds, alpha=alpha, beta=BETA, budget=None, random_state=seed
        )
        model, losses = fitted(regularized)
        yield row("Regularized LPBoost", alpha, "cvar", cvar_loss(losses.judged_on, alpha, mixture=model.mixture_))


def split_parts(protocol: Protocol, y: AnyArray, seed: int) -> list[AnyArray]:
    """Return the rows of each part of a protocol."""
    rows = np.arange(len(y))
    if protocol.max_rows is not None and len(y) > protocol.max_rows:
        kept = protocol.max_rows / len(y)
        rows = split_rows(y, (kept, 1 - kept), seed=seed)[0]
    return [rows[part] for part in split_rows(y[rows], protocol.parts, seed=seed)]


def make_learner(name: str, categorical: AnyArray) -> Any:
    """Return the base learner of the given name for columns of which some hold category codes."""
    from counterpoise.learners import HistogramTree, NetworkLearner  # noqa: PLC0415 - heavy, and only here
    from counterpoise.learners.networks import Perceptron  # noqa: PLC0415

    codes = np.flatnonzero(categorical)
    if name == "tree":
        return HistogramTree(max_depth=10, min_samples_leaf=5, categorical_features=codes)
    if name == "shallow tree":  # where the mixture is chosen on the training samples, models must not fit them closely
        return HistogramTree(max_depth=4, min_samples_leaf=5, categorical_features=codes)
    if name == "logistic":
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
        from sklearn.pipeline import make_pipeline  # noqa: PLC0415

        return make_pipeline(_as_numbers(categorical), LogisticRegression(max_iter=300, tol=1e-3))
    if name == NETWORK:  # the schedule of Appendix B; the widths, which it does not give, from the authors' program
        return NetworkLearner(
            Perceptron((100, 100)),
            n_iterations=500,
            warmup_epochs=3,
            batch_size=128,
            learning_rate=0.01,
            decay_at=(400,),
            device="cpu",
        )
    raise ValueError(f"learner must be 'tree', 'shallow tree', 'logistic' or {NETWORK!r}; got {name!r}.")


def as_features(learner: str, data: Any, train: AnyArray) -> AnyArray:
    """Return the features as the learner wants them: for the network, whose warm-up all rounds share, as numbers."""
    if learner != NETWORK:
        return np.asarray(data.X)
    return np.asarray(
        _as_numbers(data.categorical, sparse_threshold=0.0).fit(data.X[train]).transform(data.X), dtype=np.float32
    )


def _as_numbers(categorical: AnyArray, sparse_threshold: float = 0.3) -> Any:
    """Return a transformer that standardizes numbers and writes category codes as zeros and ones."""
    from sklearn.compose import make_column_transformer  # noqa: PLC0415 - heavy, and only here
    from sklearn.impute import SimpleImputer  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: PLC0415

    return make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), np.flatnonzero(~np.asarray(categorical))),
        (OneHotEncoder(handle_unknown="ignore"), np.flatnonzero(categorical)),
        sparse_threshold=sparse_threshold,
    )
