"""Rows that do not fit into memory: read once from Parquet, stored as scores and cells in memory-mapped files.

To choose decision rules, only the score and the cell of each row are needed. One pass reads the rows in parts, scores
them and writes both down. The passes that choose the rules then read 12 bytes a row.
"""

import errno
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

import numpy as np

from counterpoise._base.frames import take_rows
from counterpoise._base.shards import LocalShards, Shard, available_cpus
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.classifiers.goal import GoalClassifier, list_models
from counterpoise.distributed.collections import (
    Load,
    RowCollections,
    checked_features,
    column_names,
    is_path,
    parquet_parts,
    stamp_of,
)
from counterpoise.distributed.fitting import PreparedShards, check, decide_over, take_models
from counterpoise.distributed.lumps import SCORES
from counterpoise.distributed.rows import (
    BASELINE,
    CELL,
    CODES,
    MASS,
    Cells,
    Facts,
    Values,
    X,
    check_facts,
    check_few_cells,
    code_cells,
    encode,
    facts_of,
    in_order,
    merge_facts,
)
from counterpoise.learners.binning import sample_places
from counterpoise.rules.pool import named_models
from counterpoise.rules.rows import stack_rows

_GIB = 1 << 30
_CHUNK = 1 << 20  # rows whose cells are numbered anew at once


def choose_from_files(
    model: Any,
    files: Any,
    y: str,
    *,
    sensitive_features: str | Sequence[str] | None = None,
    baseline: str | None = None,
    sample_weight: str | None = None,
    features: Sequence[str] | None = None,
    folder: str | Path | None = None,
) -> Any:
    """Choose the rules of models that are fitted on rows in Parquet files, however many, and return the classifier.

    Parameters
    ----------
    model : GoalClassifier with ``cv="prefit"``
        Of models that are fitted, on a sample perhaps.
    files : path, or list of paths
        Parquet files, or folders of them; a row group at a time is in memory.
    y, baseline, sample_weight : str
        Names of columns, which are no features.
    sensitive_features : str or list of str, optional
        Names of columns that goals and ``by`` use, which are no features.
    features : list of str, optional
        Names of the columns that the models use. Default: those that they were trained on, where they know names,
        else all that are named nowhere else.
    folder : path, optional
        Where scores and cells are kept while rules are chosen, 12 bytes a row and model. Default: one of the system.

    Returns
    -------
    model
        Fitted: ``gap_``, mostly below 2e-4, bounds how far the rules are from the best of all thresholds.

    Examples
    --------
    >>> from counterpoise.distributed.files import choose_from_files
    >>> choose_from_files(model, "rows/", "label", sensitive_features=["sex"])  # doctest: +SKIP
    """
    if not isinstance(model, GoalClassifier):
        raise TypeError(f"Only a GoalClassifier can be fitted on rows in files; got {type(model).__name__}.")
    names = [sensitive_features] if isinstance(sensitive_features, str) else sensitive_features
    names = None if names is None else list(names)
    if not is_path(files):
        raise TypeError(f"files must be the path of Parquet files, or a list of paths; got {type(files).__name__}.")
    if not model.is_prefit:
        raise ValueError(
            "No model is trained on rows in files, because they are read in parts. Train a model on a sample, and "
            f"pass GoalClassifier(model, cv='prefit'); got cv={model.cv!r}."
        )
    models = [one for _, one in named_models(list(list_models(model.estimator)))]
    rows = RowCollections(files, y, names, baseline, sample_weight, features).with_features_of(models)
    load = Load(rows.names_by_role(), takes_texts=True, features=checked_features(rows.features))
    groups = _Groups(parquet_parts(files), load)
    before = groups.stamps()
    try:
        return choose_from_parts(model, groups, folder)
    finally:  # an error of any kind may come of it too
        after = groups.stamps()
        changed_paths = [path for path, stamp in before.items() if after[path] != stamp]
        if changed_paths:
            raise ValueError(
                f"{changed_paths[0]} changed while it was read, so the rules match neither version of it. Fit again "
                "when nothing writes to it."
            )


class RowParts(Protocol):
    """Rows that are read some at a time, as often as wanted."""

    @property
    def has_baseline(self) -> bool: ...
    def facts(self) -> Iterator[Facts]:
        """Yield the facts of each part."""

    def whole(self) -> Iterator[Shard]:
        """Return one part after the other."""


def choose_from_parts(model: Any, parts: RowParts, folder: str | Path | None = None) -> Any:
    """Fit a ``GoalClassifier`` of fitted models to rows that are read in parts, and return it."""
    check(model)
    named_pool, facts = named_models(list(list_models(model.estimator))), list(parts.facts())
    classes, weight = check_facts(facts)
    members = take_models(model, named_pool, classes).members
    with TemporaryDirectory(dir=folder) as place:
        spool = _Spool(Path(place), sum(one.n_rows for one in facts), len(members), weighs=weight is not None)
        masses = [spool.add(part, members, classes, weight) for part in parts.whole()]
        all_facts = merge_facts(facts, classes, masses)
        cells = Cells(*spool.sort_cells(), all_facts, parts.has_baseline)
        check_few_cells(len(cells.values), all_facts)
        with LocalShards(spool.sources()) as shards:
            return decide_over(model, PreparedShards(shards, cells, stack_rows(spool.sample)), named_pool)


class _Groups(NamedTuple):
    """Row groups of Parquet files, and what makes a shard of some."""

    groups: list[tuple[str, int]]
    load: Load

    @property
    def has_baseline(self) -> bool:
        """Return whether a column holds the baseline predictions."""
        return self.load.names_by_role.get(BASELINE) is not None

    def stamps(self) -> dict[str, Any]:
        """Return the size of each file and when it was changed last."""
        return {path: stamp_of(path) for path in sorted({path for path, _ in self.groups})}

    def whole(self) -> Iterator[Shard]:
        """Return the rows of one group after the other."""
        for number, group in enumerate(self.groups):
            yield Shard(number, self.load([(number, {X: group})]))

    def facts(self) -> Iterator[Facts]:
        """Yield the facts of each group; of the features only the names are read."""
        for number, group in enumerate(self.groups):
            names = tuple(self.load.features_in(column_names(group[0])))
            part = Shard(number, replace(self.load, features=None)([(number, {X: (*group, self.load.names)})]))
            yield facts_of(part)._replace(names=names, n_features=len(names))


def require_room(folder: Path, n_bytes: int) -> None:
    """Refuse to write so much where it does not fit: a file mapped into memory on a full disk ends the process."""
    free = disk_usage(folder).free
    if n_bytes > free:
        reason = f"scores and cells of all rows take {n_bytes / _GIB:.3g} GiB, and {free / _GIB:.3g} GiB are free"
        raise OSError(errno.ENOSPC, reason, str(folder))


class _Spool:
    """Files of scores, cells and masses, mapped into memory."""

    def __init__(self, folder: Path, n_rows: int, n_models: int, *, weighs: bool) -> None:
        self.n_rows, self.n_written = n_rows, 0
        require_room(folder, n_rows * (8 * n_models + 4 + 8 * weighs))
        self.scores = np.memmap(folder / SCORES, np.float64, "w+", shape=(n_rows, n_models))
        self.cells = np.memmap(folder / CELL, np.int32, "w+", shape=(n_rows,))
        # Rows that weigh the same need no room for it.
        ones: AnyArray = np.broadcast_to(np.ones(1), (n_rows,))
        self.mass = np.memmap(folder / MASS, np.float64, "w+", shape=(n_rows,)) if weighs else ones
        self.numbers: dict[Values, int] = {}  # of cells, in the order in which they were met
        self.sample: list[Any] = []
        self._sample_places = sample_places(n_rows)

    def add(self, part: Shard, members: Sequence[Any], classes: AnyArray, weight: float | None) -> tuple[float, float]:
        """Write some rows down, and return the sum and the least of their masses."""
        masses = encode(part, classes, weight)
        place = slice(self.n_written, self.n_written + len(part[CODES]))
        self.n_written = place.stop
        if place.start == place.stop:
            return masses
        self.scores[place] = np.column_stack([member.ask(part[X]) for member in members])
        numbers, values = code_cells(part)
        own = np.array([self.numbers.setdefault(value, len(self.numbers)) for value in values])
        self.cells[place] = own[numbers]
        if isinstance(self.mass, np.memmap):
            self.mass[place] = part[MASS]
        places = np.arange(place.start, place.stop) if self._sample_places is None else self._sample_places
        inside = places[(places >= place.start) & (places < place.stop)]
        self.sample.append(take_rows(part[X], inside - place.start))
        return masses

    def sort_cells(self) -> tuple[list[Values], FloatArray, FloatArray]:
        """Return the cells in their order, their masses and sizes, and write down what number each row's then has."""
        values = sorted(self.numbers, key=in_order)
        new = np.empty(len(values), dtype=np.int32)
        new[[self.numbers[value] for value in values]] = np.arange(len(values))
        mass, n_rows = np.zeros(len(values)), np.zeros(len(values))
        for start in range(0, self.n_rows, _CHUNK):
            place = slice(start, start + _CHUNK)
            self.cells[place] = new[self.cells[place]]
            mass += np.bincount(self.cells[place], self.mass[place], len(values))
            n_rows += np.bincount(self.cells[place], minlength=len(values))
        return values, mass, n_rows

    def sources(self) -> list[Any]:
        """Return a shard for each thread."""
        n_shards = min(available_cpus(), max(1, self.n_rows // _CHUNK))
        edges = [self.n_rows * number // n_shards for number in range(n_shards + 1)]
        arrays: dict[str, AnyArray] = {SCORES: self.scores, CELL: self.cells, MASS: self.mass}
        return [partial(dict, {name: all_[slice(*pair)] for name, all_ in arrays.items()}) for pair in pairwise(edges)]
