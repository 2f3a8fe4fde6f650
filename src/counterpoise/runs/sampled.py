"""Runs on rows that need not fit in memory: some train, all others choose and judge, read in parts.

A first pass draws the sample. With the models trained on it a second one writes down scores and cells, on which rules
are chosen, and a third counts the rows that are alike in all that a report shows of them: label, groups, decisions.
Nothing else of a row is kept.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from counterpoise._base.progress import Pace
from counterpoise._base.shards import Shard
from counterpoise._base.types import AnyArray
from counterpoise.distributed import rows as names_of
from counterpoise.distributed.counting import count_by_values, tabulate_counts
from counterpoise.distributed.files import choose_from_parts
from counterpoise.distributed.rows import Facts, Values
from counterpoise.rules.choosing import FIXED
from counterpoise.runs import data
from counterpoise.runs.decisions import decisions_to_count
from counterpoise.runs.errors import DataError
from counterpoise.runs.fitting import Work, train_pool
from counterpoise.runs.methods import GOALS, describe, make, models_of, tail_of
from counterpoise.runs.reading import column_names, count_rows, read_in_parts
from counterpoise.runs.results import TEST, TRAIN, VALIDATION
from counterpoise.runs.settings import MethodSettings, RunColumns, RunSettings


class Rest(NamedTuple):
    """The rows of files, each drawn into a split: the sample, those to choose on and those to test on.

    Those to choose on are given to ``choose_from_parts``.
    """

    settings: RunSettings
    files: list[Path]
    wanted: list[str]
    n_rows: int
    columns: RunColumns = RunColumns([], [])  # of the features, once the sample is read
    known: Sequence[Facts] = ()  # what the first pass found of each part to choose on

    def frames(self) -> Iterator[tuple[Path, Any, dict[str, AnyArray]]]:
        """Yield some rows at a time: the file, a frame, and which of its rows are in which split."""
        number, data_settings = 0, self.settings.data
        how: dict[str, Any] = {"missing": data_settings.missing, "values": data.compared_columns(self.settings)}
        test, sample = self.shares
        for path in self.files:
            for frame in read_in_parts(path, self.wanted, **how):
                chance = np.random.default_rng([self.settings.seed, number]).random(len(frame))
                codes = np.digitize(chance, [test, test + sample])
                splits = enumerate((TEST, TRAIN, VALIDATION))
                yield path, frame, {split: np.flatnonzero(codes == code) for code, split in splits}
                number += 1

    def parts(self) -> Iterator[dict[str, data.RunRows]]:
        """Yield some rows at a time by their splits."""
        for path, frame, places in self.frames():
            whole = data.part_of(frame, self.columns, self.settings, path)
            yield {split: whole.rows(own) for split, own in places.items()}

    @property
    def shares(self) -> tuple[float, float]:
        """Return which parts of the rows test, and are the sample."""
        test = self.settings.splits.test
        return data.SET_ASIDE if test is None else float(test), (self.settings.data.sample or 0) / self.n_rows

    @property
    def has_baseline(self) -> bool:
        """Tell whether the deployed model's predictions are there."""
        return self.settings.data.baseline is not None

    def facts(self) -> Iterator[Facts]:
        """Return what the first pass found of each part."""
        return iter(self.known)

    def whole(self) -> Iterator[Shard]:
        """Return the rows to choose on, one part after the other."""
        for number, parts in enumerate(self.parts()):
            yield _shard(number, parts[VALIDATION])


def _shard(number: int, part: data.RunRows) -> Shard:
    held = {names_of.X: part.X, names_of.Y: part.labels, names_of.COLUMNS: part.groups}
    return Shard(number, held | ({} if part.baseline is None else {names_of.BASELINE: part.baseline}))


def load_sample(settings: RunSettings, folder: Path) -> data.Data:
    """Read all rows once, keep the sample of them, and what must be known of the others."""
    files = [folder / name for name in settings.data.files]
    names = data.feature_names(column_names(files[0]), settings, files[0])
    rest = Rest(settings, files, data.wanted_columns(settings, names), sum(map(count_rows, files)))
    if not rest.n_rows:
        raise DataError(f"{rest.files[0]} must hold rows; there are none.")
    test, share = rest.shares
    if test + share >= 1:
        most = int(rest.n_rows * (1 - test))
        raise DataError(
            f"data.sample must leave rows to choose on: of {rest.n_rows} rows {test:.0%} test, so it must be below "
            f"{most}; got {settings.data.sample}. Without it all rows are read at once."
        )
    frames, labels = [], []
    for path, frame, places in rest.frames():
        labels.append(data.labels_of(frame, settings.data.target, path)[places[VALIDATION]])
        frames.append(frame.iloc[places[TRAIN]])
        for name in sorted(_texts_of(frame) ^ _texts_of(frames[0])):
            kind = "texts" if name in _texts_of(frame) else "numbers"
            raise DataError(
                f"Column {name!r} must be of one kind in all files; it holds {kind} in {path}, others in files before "
                "it. Correct the files."
            )
    sample = data.join_frames(frames, _texts_of(frames[0]))
    columns = data.find_columns(sample, names, settings.data)
    part = data.part_of(sample, columns, settings, files[0])
    classes = _check_classes(part, labels, settings, files[0])
    features, groups = tuple(columns.features), tuple(settings.data.groups)
    facts = [Facts(len(one), len(features), features, groups, np.unique(one), float(len(one)), 1.0) for one in labels]
    rest = rest._replace(columns=columns, known=facts)
    positive = data.positive_of(classes, settings.data.positive)
    return data.Data(files[0].stem, columns, classes, positive, {TRAIN: part}, {}, {}, rest=rest)


def _texts_of(frame: Any) -> set[str]:
    return {name for name in frame.columns if frame[name].dtype.name == "category"}


def _check_classes(sample: data.RunRows, others: list[AnyArray], settings: RunSettings, path: Path) -> AnyArray:
    """Return the classes, after checking that there are two, and that the sample shows both."""
    target, seen = settings.data.target, np.unique(sample.labels)
    every = np.concatenate([seen, *map(np.unique, others)])
    classes = data.check_classes(every, settings.data.positive, target, path)
    if len(classes) > 2:  # noqa: PLR2004
        raise DataError(f"data.sample is for two classes; column {target!r} holds {len(classes)}.")
    absent = set(classes.tolist()) - set(seen.tolist())
    if absent:
        raise DataError(
            f"data.sample must draw rows of every class; none of {len(sample)} has the label {min(absent, key=str)!r} "
            f"of column {target!r}. Draw more."
        )
    return classes


def fit_on_sample(work: Work) -> Any:
    """Train models on the sample, and choose the rules of their scores on all rows that are set aside for it."""
    models, chosen = models_of(work.settings.method), work.data.rest
    titles = [one.title or describe(one) for one in models]
    pool = list(zip(titles, train_pool(work, models, Pace(work.tell, len(models))), strict=True))
    method = MethodSettings(name=GOALS, parameters={**work.settings.method.parameters, "cv": "prefit"})
    options = {**tail_of(method, work.settings.alpha), "pos_label": work.pos_label, "goals": work.enforced}
    options["confidence"] = work.confidence
    chooser = make(method, seed=work.settings.seed, key=work.key, estimator=pool, **options)
    n_chosen = sum(one.n_rows for one in chosen.known)
    work.say(f"chooses the rules on {n_chosen} of {chosen.n_rows} rows, read in parts")
    spool = work.checkpoint / "spool"
    shutil.rmtree(spool, ignore_errors=True)  # what a fit that was killed left there
    spool.mkdir(parents=True)
    model = choose_from_parts(chooser, chosen, spool)
    if model.decision != FIXED:  # which comes from a search, and is not proven
        work.say(f"the choice is within {model.gap_:.2g} of the best of all thresholds, after {model.n_passes_} passes")
    return model


def counted_data(work: Work, model: Any) -> tuple[data.Data, data.RunRows | None]:
    """Return the rows of all splits, those that are alike once, with their predictions; and the drawn.

    The first are counted by the decision of each rule, and the same whatever the key of the draws. The other are the
    test rows by the drawn decisions; None where there are no test rows.
    """
    drawn: Counter[Values] = Counter()
    counts: dict[str, Counter[Values]] = {split: Counter() for split in (TRAIN, VALIDATION, TEST)}
    rest = work.data.rest
    for number, parts in enumerate(rest.parts()):
        for split, part in parts.items():
            if len(part):
                (by_each, decisions), shard = decisions_to_count(model, part, work.data.positive), _shard(number, part)
                counts[split].update(count_by_values(shard, *by_each))
                if split == TEST:
                    drawn.update(count_by_values(shard, decisions))
    splits = {split: _part(counted, rest) for split, counted in counts.items() if counted}
    by_draws = _part(drawn, rest) if drawn else None
    if by_draws is not None:
        by_draws = replace(by_draws, drawn=by_draws.predictions[0], predictions=())
    return work.data._replace(splits=splits, rest=None), by_draws


def _part(counts: Counter[Values], rest: Rest) -> data.RunRows:
    names = rest.settings.data.groups
    table, predictions = tabulate_counts(counts, names, has_baseline=rest.has_baseline)
    groups = {name: table.column(name) for name in names}
    whole = data.RunRows(pd.DataFrame(index=range(table.n_samples)), table.y, groups, None, table.baseline)
    return replace(whole, counts=table.counts, predictions=predictions)
