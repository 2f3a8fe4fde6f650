"""The rows of one fit: what models are trained on, what the mixture is chosen on, and what goals know of both."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.frames import is_frame
from counterpoise._base.types import AnyArray, ArrayLike, IntArray
from counterpoise.boosting.adaboost import AdaBoostClassifier
from counterpoise.boosting.checkpoint import Seeds, data_texts
from counterpoise.boosting.inputs import CheckedRows, check_predict_input, round_seed, split_rows, unequal
from counterpoise.boosting.inside import AnswerCosts
from counterpoise.boosting.learner import CrossFit, ModelFit, base_learner, folds_of, is_ensemble, planned_rounds
from counterpoise.boosting.rounds import History
from counterpoise.boosting.row_store import RowStore
from counterpoise.boosting.stopping import AUTO, stopping_of
from counterpoise.goals import Rate, Table
from counterpoise.goals.parsing import has_goals
from counterpoise.goals.tables import with_train
from counterpoise.rules.cautions import check_problem, warn_of_the_average
from counterpoise.rules.choosing import PoolPredictions, Problem, choose_mixture, groups_by, select
from counterpoise.rules.families import PooledModels, ThresholdRules
from counterpoise.rules.goal_rows import TRAIN, Answers, find_positive
from counterpoise.rules.pool import Pool, scoring_method, titled_models
from counterpoise.rules.rows import checked_features, n_rows, stack_rows
from counterpoise.rules.scores.table import ScoreTable
from counterpoise.theory.risks import RiskRows

DEPTH = 4  # of the default trees: the shallower, the more they differ from the strong model
_FOLDS = 5  # by default, where losses on rows that a model has seen are of no use
_STRONG = AdaBoostClassifier(n_estimators=300)
_BINARY = 2
# Rows from which rules of scores are chosen on those of folds: below, models trained on all rows differ from them.
_ROWS_FOR_SCORES = 20_000


class InputRows(NamedTuple):
    """Labelled rows as ``fit`` takes them, with the columns that goals may use."""

    X: Any
    y: Any
    sample_weight: ArrayLike | None = None
    sensitive_features: Any = None
    baseline: ArrayLike | None = None
    largest_weight: float | None = None
    table: Table | None = None

    def goal_table(self) -> Table:
        """Return what goals may use: a table, or columns (those of X where they have names) and a limit on weights."""
        n_samples = len(np.asarray(self.y))
        if self.table is not None:
            if self.table.n_samples != n_samples:
                raise ValueError(f"table must hold a row for each of the {n_samples} samples; got {self.table!r}.")
            return self.table.with_columns(self.sensitive_features, self.baseline)
        features = self.X if is_frame(self.X) else np.empty((n_samples, 0))
        limit = self.largest_weight
        weights = None if limit is None else self.sample_weight
        columns = self.sensitive_features, self.baseline
        return Table(features, None, *columns, sample_weight=weights, largest_weight=limit)


class FitData:
    """Rows to train on, those held out, and other datasets that goals use.

    Parameters
    ----------
    booster : classifier
        The booster whose parameters are used; it knows its classes.
    all_rows : CheckedRows
        The rows of ``inputs`` after they were checked.
    inputs, validation : InputRows
        The rows as ``fit`` is given them, and those on which the mixture is chosen, where there are some.
    datasets : dict from names to Table, optional
    seeds : Seeds
    """

    is_judged_by_folds = False

    def __init__(
        self,
        booster: Any,
        all_rows: CheckedRows,
        inputs: InputRows,
        validation: InputRows,
        datasets: Mapping[str, Table] | None,
        seeds: Seeds,
    ) -> None:
        learner, parts = base_learner(booster.estimator), (validation.X, validation.y, validation.sensitive_features)
        self.classes, self.n_jobs, self.columns = booster.classes_, booster.n_jobs, inputs.goal_table()
        self.positive = find_positive(booster.classes_, booster.pos_label)
        self.train, self.held_out = split_rows(booster, learner, all_rows, *parts, entropy=seeds.entropy)
        self.table = self.columns if validation.X is None else validation.goal_table()  # where the mixture is chosen
        self.datasets = with_train(None, datasets)  # others, as far as the mixture is chosen on them
        self.training_tables: dict[str, Table] = {}  # others, as far as models are trained on them
        self.check = partial(check_predict_input, booster, learner)  # features of others as the models take them
        self.purpose = "that models are trained on" if booster.trains_inside else "for the models to predict"
        self.costs: AnswerCosts | None = None
        # What models are trained on: below these the rows of other datasets, where they train for goals.
        self.rows, self.n_trained = self.train, self.train.codes.size
        self.groups, self.n_lightest = self.train.groups, float(1 / self.train.weights.min())
        self.store = RowStore(self.train.weights, planned_rounds(booster))

    @property
    def selection_rows(self) -> CheckedRows:
        """Return the rows on which the mixture is chosen."""
        return self.held_out or self.train

    def answers(self) -> Answers:
        """Return what goals know of the rows on which the mixture is chosen, before any model has answered."""
        rows = self.selection_rows
        places = np.arange(self.table.n_samples) if rows.places is None else rows.places
        table = self.table.part(places, self.classes[rows.codes], unequal(rows.weights))
        return Answers({TRAIN: table}, {}, self.positive)

    def features(self, name: str, table: Table) -> Any:
        """Return the features of another dataset as the models take them."""
        return checked_features(table.X, name, self.purpose, self.check)

    def check_problem(self, problem: Problem) -> None:
        """Refuse goals, objective and datasets that do not fit the rows, before any model is trained."""
        rows = self.selection_rows
        is_confident = any(goal.confidence is not None and TRAIN in goal.datasets for goal in problem.goals)
        if is_confident and self.table.largest_weight is None:  # goals on weights without a limit
            Table(None, rows.codes, sample_weight=rows.weights).heaviest(TRAIN)
        tables = with_train(self.answers().tables[TRAIN], self.datasets)
        for name, table in self.datasets.items():
            self.features(name, table)
        check_problem(problem, tables, self.positive, groups=rows.groups)

    def risk_rows(self, n_rounds: int) -> RiskRows:
        """Return what a risk may depend on: the effective size of the weighted sample, and groups."""
        train = self.train

        def codes(names: tuple[str, ...]) -> IntArray:
            return groups_by(names, self.columns, train.groups)[... if not names else train.places]

        return RiskRows(1.0 / float((train.weights**2).sum()), n_rounds, codes)

    def price_answers(self, problem: Problem, entropy: int) -> AnswerCosts:
        """Return what answers cost by the goals, and let models be trained on the rows of other datasets too.

        Where the mixture is chosen on other rows than those of training, as large a part of other datasets is for it:
        of a single row, the same.
        """
        train, rate = self.train, problem.objective if isinstance(problem.objective, Rate) else None
        own = self.columns.part(np.asarray(train.places), self.classes[train.codes], unequal(train.weights))
        names = dict.fromkeys(name for one in (*problem.goals, rate) if one is not None for name in one.datasets)
        self.training_tables = {name: self.datasets[name] for name in names if name in self.datasets}
        self.datasets = dict(self.datasets)
        if self.held_out is not None:
            n_held, generator = self.held_out.codes.size, np.random.default_rng(round_seed(entropy, 0))
            for name, table in self.training_tables.items():
                size = table.n_samples
                order = generator.permutation(size) if size > 1 else np.zeros(2, dtype=np.int64)
                n_aside = max(round(n_held / (n_held + train.codes.size) * size), 1)
                n_aside = min(n_aside, max(size - 1, 1))
                self.training_tables[name] = table.only(np.sort(order[n_aside:]))
                self.datasets[name] = table.only(np.sort(order[:n_aside]))
        features = {name: self.features(name, table) for name, table in self.training_tables.items()}
        ends = np.cumsum([train.codes.size, *map(n_rows, features.values())]).tolist()
        places = {name: slice(*ends[number : number + 2]) for number, name in enumerate(features)}
        places = {TRAIN: slice(0, ends[0]), **places}
        # Rows of others weigh nothing by themselves.
        more = (0, ends[-1] - ends[0])
        X = stack_rows([train.X, *features.values()])
        self.rows = CheckedRows(X, np.pad(train.codes, more), np.pad(train.weights, more), None)
        self.n_trained = ends[-1]
        answers = Answers({TRAIN: own, **self.training_tables}, {}, self.positive)

        def make_answers(codes: AnyArray) -> Answers:  # with a column for each model
            result = answers
            for name, place in places.items():
                result = result.with_dataset(name, answers.tables[name], self.positive.encode(codes[place]))
            return result

        self.costs = AnswerCosts(train.codes, places, answers, make_answers, problem)
        return self.costs

    def model_fit(self, booster: Any, learner: Any, seeds: Seeds) -> ModelFit:
        """Return the fit of the rounds' models: by default a strong one first; judged by folds if requested."""
        is_inside, is_default = self.costs is not None, booster.estimator is None
        if booster.confidence is not None and has_goals(booster.goals) and self.held_out is None:
            raise ValueError(
                f"confidence={booster.confidence!r} needs rows that no round has seen, to know how far goals hold on "
                "new ones: set stopping=Stopping(validation_fraction=0.3), or pass X_val and y_val."
            )
        self.scores, n_folds = booster.scores, stopping_of(booster).n_folds
        if n_folds == AUTO:
            is_strong = is_default or is_ensemble(booster.estimator)
            n_folds = _FOLDS if is_strong and self.held_out is None else None
        n_folds = None if n_folds is None else min(int(n_folds), self.n_trained)
        self.is_judged_by_folds = n_folds is not None
        if self.scores and not isinstance(self.scores, str):
            lack = self._lack_of_scores([base_learner(booster.estimator)])
            if lack:
                raise ValueError(f"scores=True mixes thresholds of scores, and {lack}")
        # Rules are chosen on scores of folds where those of models trained on all rows hardly differ.
        n_enough = _ROWS_FOR_SCORES if isinstance(self.scores, str) else 0
        is_binary = len(self.classes) == _BINARY
        are_scored = self.scores and is_binary and self.train.codes.size >= n_enough
        positive = self.positive if is_inside and are_scored and scoring_method(learner) else None
        learners = [_STRONG, learner] if is_default else [learner]  # a strong model in the first round
        random_seeds = partial(round_seed, seeds.entropy)
        folds = None if n_folds is None else folds_of(self.rows.codes, n_folds, np.random.default_rng(random_seeds(0)))
        fits = [CrossFit(one, self.rows, self.classes, random_seeds, folds, positive) for one in learners]
        keeps = is_inside or (self.is_judged_by_folds and not is_binary)  # of two classes the losses determine them
        costs = None if self.costs is None else self.costs.costs
        return ModelFit(fits, self.rows, self.train.codes.size, keeps_answers=keeps, costs=costs)

    def fingerprints(self) -> dict[str, str]:
        """Return a text for each part of the data that decides the rounds, for a checkpoint to compare."""
        tables = {} if self.costs is None else {TRAIN: self.columns, **self.training_tables}
        return data_texts(self.classes, self.train, self.held_out, tables)

    def least_value(self, history: History, problem: Problem) -> float:
        """Return the least risk of a mixture where it will be chosen, or raise ``InfeasibleGoals``."""
        predictions = self.predictions(history) if problem.goals else self._losses(history)
        return choose_mixture(select(predictions, problem), problem).value

    def _losses(self, history: History) -> PoolPredictions:
        losses = self.store.losses if self.held_out is None else np.array(history.held_out).T
        rows = self.selection_rows
        return PoolPredictions(losses, unequal(rows.weights), rows.groups, self.answers())

    def predictions(self, history: History, *, needs_answers: bool = True) -> PoolPredictions:
        """Return the losses of the models on the rows where the mixture is chosen, and answers on all datasets.

        ``needs_answers``: goals or a rate depend on the predictions.
        """
        positive, rows, own_answers = self.positive, self.selection_rows, self.store.answers
        predictions = self._losses(history)
        if self.costs is not None and self.held_out is None:
            return predictions._replace(answers=self.costs.make_answers(np.column_stack(own_answers)))
        pool = Pool(history.models, positive, self.n_jobs)
        own: Any = None
        if positive.is_binary:  # then losses determine predictions
            own = positive.bits_of_losses(predictions.losses, rows.codes)
        elif self.held_out is None and own_answers:
            own = np.column_stack(own_answers)
        elif own_answers or needs_answers or positive.place is not None:
            own = pool.ask(rows.X, rows.codes.size)
        answers = predictions.answers.with_dataset(TRAIN, predictions.answers.tables[TRAIN], own)
        for name, table in self.datasets.items():
            codes = pool.ask(self.features(name, table), table.n_samples)
            answers = answers.with_dataset(name, table, positive.encode(codes))
        return predictions._replace(answers=answers)

    def family(self, history: History, problem: Problem) -> PooledModels | ThresholdRules:
        """Return what the mixture is chosen among: rules of scores where they can be mixed, else the models."""
        held_out, rows, answers = self.held_out, self.selection_rows, self.answers()
        wants_rules = self.scores and not (isinstance(self.scores, str) and self.costs is None)
        is_scored = held_out is not None or len(history.scores) == history.n_rounds
        if not (wants_rules and is_scored) or self._lack_of_scores(history.models):
            return self.pooled_models(history, problem)
        pool = Pool.of(titled_models([("", model) for model in history.models]), self.positive, self.n_jobs)
        by_name: dict[str, Any] = {}
        if held_out is not None:
            by_name[TRAIN] = pool.ask(rows.X, rows.codes.size)
            for name, table in self.datasets.items():
                by_name[name] = pool.ask(self.features(name, table), table.n_samples, name)
                answers = answers.with_dataset(name, table, None)
        elif self.costs is not None:
            scores = np.column_stack(history.scores)
            answers, by_name = self.costs.answers, {name: scores[at] for name, at in self.costs.places.items()}
        usual = [member.usual(column) for member, column in zip(pool.members, by_name[TRAIN].T, strict=True)]
        return ThresholdRules(pool, ScoreTable(by_name, answers, unequal(rows.weights), rows.groups, np.array(usual)))

    def pooled_models(self, history: History, problem: Problem) -> PooledModels:
        """Return the models, whose answers are mixed."""
        needs_answers = bool(problem.goals) or isinstance(problem.objective, Rate)
        pool = Pool(history.models, self.positive, self.n_jobs)
        return PooledModels(pool, self.predictions(history, needs_answers=needs_answers))

    def solve_and_store(self, booster: Any, family: Any, problem: Problem) -> None:
        """Choose the best mixture, store it, and warn where tail and goals cost much beside the first model."""
        booster.solve_and_store(family, problem)
        if isinstance(family, PooledModels) and problem.mixture == "optimal":  # of rules the family warns
            selection = booster.selection_
            means = np.average(selection.losses, axis=0, weights=selection.sample_weight)
            warn_of_the_average(float(means @ booster.mixture_), float(means[0]), "its first model", problem)

    def _lack_of_scores(self, models: list[Any]) -> str:
        """Return why rules of models cannot be mixed; nothing where they can."""
        if len(self.classes) > _BINARY:
            return f"a threshold separates two classes; got {len(self.classes)}. Set scores=False."
        if self.held_out is None and (not self.is_judged_by_folds or self.costs is None):
            return (
                "chooses on rows that no model was trained on: set Stopping(validation_fraction=0.3), or pass X_val "
                "and y_val."
            )
        lacking = [model for model in models if scoring_method(model) is None]
        return f"{lacking[0]!r} has neither predict_proba nor decision_function. Set scores=False." if lacking else ""
