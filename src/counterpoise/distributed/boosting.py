"""AdaLPBoost over Dask: models are trained by LightGBM's Dask learner, to weights that are Dask Arrays.

A round counts the weight of the rows by the number of models that fail on them, from which the next weights follow
(``boosting.rules.hedge``). After the last round rows of one cell that all models answer alike are counted together, and
the mixture is chosen on the counts.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.boosting.inputs import draw_entropy, round_seed
from counterpoise.boosting.learner import planned_rounds
from counterpoise.boosting.lpboost import AdaLPBoostClassifier
from counterpoise.boosting.rules import hedge_factors
from counterpoise.distributed.collections import RowCollections, partitions_of
from counterpoise.distributed.estimators import OverDask
from counterpoise.distributed.fitting import check, check_rows, predictions_of
from counterpoise.distributed.lightgbm import TrainingRows, is_lightgbm, lightgbm_over_dask, train_lightgbm
from counterpoise.distributed.partitions import Part
from counterpoise.distributed.rows import Cells, Lumps, TotalFacts, X, find_cells, inspect_rows, lumps_of_all
from counterpoise.learners.resampling import fresh_copy
from counterpoise.rules.draws import make_key
from counterpoise.rules.families import PooledModels
from counterpoise.rules.goal_rows import find_positive
from counterpoise.rules.pool import Pool, predict_codes
from counterpoise.theory.guarantees import hedge_eta

_ROUNDS = 10  # by default: the learner is an ensemble itself
# What is taken on one machine alone, and the value that asks for nothing.
_NOT_TAKEN = {"stopping": None, "outlier_fraction": 0.0, "reweigh": "samples", "callbacks": (), "checkpoint": None}


class DaskAdaLPBoostClassifier(OverDask):
    """``AdaLPBoostClassifier`` on Dask collections, whose models LightGBM trains over the cluster.

    The parameters are those of ``AdaLPBoostClassifier``; ``stopping``, ``outlier_fraction``, ``reweigh``, ``callbacks``
    and ``checkpoint`` must be left out. Rounds are judged, and the mixture is chosen, on the rows that models are
    trained on: give the learner few and small trees, and audit the goals on other rows.

    Parameters
    ----------
    estimator : lightgbm.DaskLGBMClassifier, optional
        Default: ``DaskLGBMClassifier()``.

    Examples
    --------
    >>> from counterpoise.distributed import DaskAdaLPBoostClassifier
    >>> model = DaskAdaLPBoostClassifier(n_estimators=5, alpha=0.1)
    >>> model.fit(frame, "label", sensitive_features=["sex"])  # doctest: +SKIP
    """

    kind = AdaLPBoostClassifier

    def _fit_rows(self, rows: RowCollections) -> None:
        import dask.array as da  # noqa: PLC0415 - optional

        booster = self.local
        entropy, key = draw_entropy(booster.random_state), make_key(booster.random_state)
        learner = lightgbm_over_dask(0) if booster.estimator is None else booster.estimator
        if not is_lightgbm(learner):
            raise TypeError(
                f"Over Dask the estimator must be a DaskLGBMClassifier of LightGBM, which takes Dask Arrays; got "
                f"{learner!r}. For a tail with other learners fit AdaLPBoostClassifier on one machine."
            )
        for name, nothing in _NOT_TAKEN.items():
            if getattr(booster, name) != nothing:
                raise ValueError(
                    f"{name}={getattr(booster, name)!r} is not supported over Dask: leave it at {nothing!r}, or fit "
                    "AdaLPBoostClassifier on one machine."
                )
        if booster.eta == "adaboost":
            raise ValueError("eta='adaboost' is not supported over Dask: use a number or 'theory'.")
        check(booster)
        partitions = partitions_of(rows)
        cells, _ = inspect_rows(partitions)
        check_rows(booster, cells)
        n_rounds = _ROUNDS if booster.estimator is None and booster.n_estimators is None else planned_rounds(booster)

        training = TrainingRows.of(partitions)
        counted = training.rows.then(_cells_of, cells)
        numbers, codes = (counted.then(_pick, place).array(training.sizes, np.int64) for place in (0, 1))
        mass = counted.then(_pick, 2).array(training.sizes, np.float64).persist()
        total, least = float(mass.sum().compute()), float(da.where(mass > 0, mass, np.inf).min().compute())
        is_theory = isinstance(booster.eta, str)
        booster.eta_ = hedge_eta(max(total / least, 2.0), n_rounds) if is_theory else float(booster.eta)
        start = (mass / total).persist()
        weights, failures, answers = start, (codes * 0).persist(), list[Any]()
        models, losses = list[Any](), list[float]()
        for number in range(1, n_rounds + 1):
            model = fresh_copy(learner, round_seed(entropy, number))
            # Weights of mean 1: regularized learners compare the weighted loss with their penalty.
            models.append(train_lightgbm(model, training, weights * len(codes)))
            answers.append(
                training.rows.then(_answers_of, models[-1], cells.facts.classes)
                .array(training.sizes, np.int64)
                .persist()
            )
            is_wrong = answers[-1] != codes
            losses.append(float((weights * is_wrong).sum().compute()))
            failures = (failures + is_wrong).persist()
            mass_by_failures = da.bincount(failures, weights=start, minlength=number + 1).compute()
            factors = hedge_factors(booster.eta_, mass_by_failures)
            weights = failures.map_blocks(_weigh, start, factors=factors, dtype=np.float64).persist()

        booster.forget_choice()
        facts = cells.facts
        booster.classes_, booster.n_features_in_ = facts.classes, facts.n_features
        if facts.names is not None:
            booster.feature_names_in_ = facts.names
        booster.estimators_, booster.weighted_losses_, booster.chosen_on_trained_ = models, np.array(losses), True
        booster.learn_draws(key, np.random.default_rng(entropy))
        pool = Pool(models, find_positive(facts.classes, booster.pos_label), booster.n_jobs)
        predictions = predictions_of(_count(numbers, answers, mass, facts), cells, pool)
        booster.solve_and_store(PooledModels(pool, predictions), booster.problem_of_fit())


def _cells_of(part: Part, cells: Cells) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return of each row the number of its cell, the code of its label and its weight."""
    numbers, mass = find_cells(part, cells)
    return numbers, cells.labels[numbers], mass


def _pick(columns: tuple[AnyArray, ...], place: int) -> AnyArray:
    return columns[place]


def _answers_of(part: Part, model: Any, classes: AnyArray) -> AnyArray:
    return predict_codes(model, part[X], classes)


def _weigh(failures: AnyArray, start: FloatArray, factors: FloatArray) -> FloatArray:
    return np.asarray(factors[failures] * start)


def _count(numbers: Any, answers: Sequence[Any], mass: Any, facts: TotalFacts) -> Lumps:
    """Return rows of one cell that all models answer alike, counted block by block."""
    from dask import compute, delayed  # noqa: PLC0415 - optional

    blocks = zip(*(column.to_delayed().ravel() for column in (numbers, mass, *answers)), strict=True)
    return lumps_of_all(compute(*(delayed(_count_block)(facts, *block) for block in blocks)))


def _count_block(facts: TotalFacts, numbers: AnyArray, mass: FloatArray, *answers: AnyArray) -> Lumps:
    return Lumps.of(np.column_stack([numbers, *answers]), mass, facts)
