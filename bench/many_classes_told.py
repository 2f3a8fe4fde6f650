"""What models say in ``many_classes.py``: trained on folds and on all rows, and kept where a folder is given."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, train_test_split

COVERTYPE_ROWS, N_FOLDS, TESTED = 40_000, 5, 0.25
Rows = tuple[np.ndarray, np.ndarray]


class Told(NamedTuple):
    """Probabilities, and the classes of the rows."""

    chosen: np.ndarray  # (n_rows, n_classes): of rows that the model of a fold was not trained on
    chosen_y: np.ndarray
    tested: np.ndarray  # (n_folds, n_tested, n_classes): by the model of each fold
    plain: np.ndarray  # (n_tested, n_classes): by one model trained on all rows but the tested
    tested_y: np.ndarray


class Source(NamedTuple):
    """Where rows come from, and the floors that the recall of every class is raised to, the second with confidence."""

    rows: Any
    floor: float
    sure: float


def _digits(_seed: int) -> Rows:
    return load_digits(return_X_y=True)


def _segments(_seed: int) -> Rows:
    from counterpoise.datasets import load_dataset  # noqa: PLC0415 - the other sets need none

    data = load_dataset("image-segment")
    return np.asarray(data.X, dtype=np.float64), np.asarray(data.y)


def _covertype(seed: int) -> Rows:
    from counterpoise.datasets import load_dataset  # noqa: PLC0415 - as above

    data = load_dataset("covertype")
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
    some, _ = train_test_split(np.arange(y.size), train_size=COVERTYPE_ROWS, stratify=y, random_state=seed)
    return X[some], y[some]


def _generated(seed: int) -> Rows:
    shape: dict[str, Any] = {"n_informative": 16, "n_redundant": 2, "n_classes": 26, "n_clusters_per_class": 1}
    return make_classification(16_000, 24, class_sep=1.6, flip_y=0.02, random_state=seed, **shape)


SOURCES = {
    "digits": Source(_digits, 0.95, 0.92),
    "image segmentation": Source(_segments, 0.95, 0.92),
    "covertype": Source(_covertype, 0.65, 0.6),
    "26 classes": Source(_generated, 0.8, 0.78),
}


def told_by(name: str, seed: int, folder: Path | None, n_jobs: int = 1) -> Told:
    """Return what trained models say, from a folder where it is there."""
    path = None if folder is None else folder / f"{name.replace(' ', '_')}_{seed}.npz"
    if path is not None and path.exists():
        with np.load(path) as kept:
            return Told(*(kept[part] for part in Told._fields))
    found = trained(*SOURCES[name].rows(seed), seed, n_jobs)
    if path is not None:
        np.savez_compressed(path, **found._asdict())
    return found


def trained(X: np.ndarray, y: np.ndarray, seed: int, n_jobs: int = 1) -> Told:
    """Train a model on each fold and one on all rows, and ask them about rows that they have not seen."""
    codes = np.unique(y, return_inverse=True)[1]
    split = partial(train_test_split, random_state=seed, test_size=TESTED)
    X, X_tested, y, y_tested = split(X, codes, stratify=codes)
    splits = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(X, y))
    parts = [*splits, (np.arange(y.size), np.arange(0))]
    models = Parallel(n_jobs=n_jobs)(delayed(_fitted)(X[outside], y[outside], seed) for outside, _ in parts)
    chosen = np.empty((y.size, codes.max() + 1), dtype=np.float32)
    for model, (_, inside) in zip(models, splits, strict=False):
        chosen[inside] = model.predict_proba(X[inside])
    said = np.array([model.predict_proba(X_tested) for model in models], dtype=np.float32)
    return Told(chosen, y, said[:-1], said[-1], y_tested)


def _fitted(X: np.ndarray, y: np.ndarray, seed: int) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(random_state=seed).fit(X, y)
