"""Three families of rules, each with what was kept of the selection rows: what can be decided, and what is best.

``PooledModels`` decide by the answers of models, ``ThresholdRules`` by scores, with a threshold for each group,
``ClassRules`` by the probabilities of more than two classes. All have one interface:

``prepared(problem)``
    the same family, ready for a problem;
``solve(problem)``
    the best mixture of its rules, a ``Solution``;
``rules(chosen)``
    the decisions of each rule about new rows, for a ``Decider``;
``predictions(chosen)``
    what rules say about all rows that were kept;
``stage(n_models, problem, selection)``
    the best mixture of the rules of the first models;
``compare(chosen, rows, ...)``, ``check_chosen(chosen, ...)``
    what the scores of rows were compared with, for explanations, and whether what came from a file fits;
``with_rows``, ``with_dataset``
    the same models on other rows.

Rules of scores also have ``usual``, the first model as it decides by itself. ``with_tables``, ``with_columns`` and
``answers_of`` are functions of any family.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.budget import advice
from counterpoise._base.checks import check_mixture
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.goals import InfeasibleGoals, Ratio, Table
from counterpoise.goals.classes import check_defer_label
from counterpoise.goals.disparity import WorstDisparity
from counterpoise.rules.choosing import (
    FIXED,
    PoolPredictions,
    Problem,
    Selection,
    choose_mixture,
    choose_or_nearest,
    refuse_in_mixtures,
    select,
    value_of,
)
from counterpoise.rules.class_scores.candidates import find_class_candidates, with_class_margins, with_proven_class_rule
from counterpoise.rules.class_scores.choosing import as_fixed, choose_class_rules, usual_rule
from counterpoise.rules.class_scores.rules import TierRule, argmax_rule
from counterpoise.rules.class_scores.table import CalibratedScores, Calibration, ClassTable, no_calibration
from counterpoise.rules.deciding import DecisionRows, RuleFunction, with_label
from counterpoise.rules.explaining import ScoreComparison, nearest_changes
from counterpoise.rules.goal_rows import TRAIN, Answers
from counterpoise.rules.margins import OF_DISPARITY, Margins
from counterpoise.rules.mixture_margins import needs_mixture_margins, solve_with_margins
from counterpoise.rules.pool import Pool, failures
from counterpoise.rules.program import Choice, NoMixture, choose
from counterpoise.rules.proving import prove_or_margin
from counterpoise.rules.ratios import solve_ratio
from counterpoise.rules.rows import LabelledData, groups_of, n_rows, person_numbers
from counterpoise.rules.scores.best_rule import best_fixed
from counterpoise.rules.scores.candidates import find_candidates, with_margins, with_proven, with_rules_between
from counterpoise.rules.scores.cuts import Rule
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.fixed import choose_one_rule, deciding_rules, no_rule
from counterpoise.rules.scores.table import DEFERRED, RankedScores, RuleGroups, ScoreTable, find_groups, rank
from counterpoise.theory.risks import CVaR, Risk

MODELS, THRESHOLDS = "all mixtures of the models", "all mixtures of all thresholds of all models"
ONE_RULE = "all single rules of all models"
_PAIR = 2


class ChosenRules(NamedTuple):
    """Rules, and what they need to decide."""

    rules: list[Any]
    groups: RuleGroups
    calibrations: tuple[Calibration, ...] = ()  # of each model, where there are more than two classes


class Solution(NamedTuple):
    """The best mixture of the rules of a family, with what proves it."""

    mixture: FloatArray
    value: float
    gap: float  # no mixture of what ``certificate`` says has less than value - gap
    multipliers: FloatArray  # of the goals
    selection: Selection
    chosen: ChosenRules | None = None  # None where models themselves are mixed
    certificate: str = MODELS
    cost: float = 0.0  # of one rule in the place of the best mixture, or of a limit on the number of models
    errors: tuple[float, float] | None = None  # mean loss of the mixture, and of the best model alone
    deferred: float = 0.0  # share of the selection rows
    constant: Any = None  # the one answer that all rows get, whatever their scores
    margins: Margins | None = None  # between the goals and what the selection rows show; None where none were requested


class PooledModels(NamedTuple):
    """The answers of models, as rules."""

    pool: Pool
    selection_data: PoolPredictions

    @classmethod
    def of(cls, pool: Pool, data: LabelledData, dataset: str | None = TRAIN) -> "PooledModels":
        """Ask models about labelled rows."""
        empty = PoolPredictions(np.empty((0, 0), dtype=np.uint8), None, None, Answers({}, {}, pool.positive))
        return cls(pool, empty).with_rows(data, dataset)

    def with_rows(self, data: LabelledData, dataset: str | None = None) -> "PooledModels":
        """Return the same models on other selection rows; stored predictions are looked up by the rows' name."""
        codes = self.pool.ask(data.X, data.codes.size, dataset)
        answers = self.selection_data.answers.with_dataset(TRAIN, data.table, self.pool.positive.encode(codes))
        return self._replace(
            selection_data=PoolPredictions(failures(codes, data.codes), data.sample_weight, data.groups, answers)
        )

    def with_dataset(self, name: str, table: Table, X: Any) -> "PooledModels":
        """Return the same models on the rows of another dataset too."""
        predictions = self.pool.positive.encode(self.pool.ask(X, table.n_samples, name))
        return self._replace(
            selection_data=self.selection_data._replace(
                answers=self.selection_data.answers.with_dataset(name, table, predictions)
            )
        )

    def only(self, places: Mapping[str, IntArray]) -> "PooledModels":
        """Return the same models on some of the rows of each dataset."""
        return self._replace(selection_data=self.selection_data.only(places))

    def prepared(self, problem: Problem) -> "PooledModels":  # noqa: ARG002 - as the others
        """Return the family unchanged: its predictions are stored."""
        return self

    def solve(self, problem: Problem, choice: Choice | None = None) -> Solution:
        """Return the best mixture, or that which was chosen; raise ``InfeasibleGoals`` where there is none."""
        refuse_in_mixtures(problem)
        if choice is None and isinstance(problem.objective, Ratio):
            return solve_ratio(self, problem)  # type: ignore[no-any-return]
        if choice is None and needs_mixture_margins(problem):
            return solve_with_margins(self, problem)  # type: ignore[no-any-return]
        selection = select(self.selection_data, problem)
        return self.solution(choice or choose_mixture(selection, problem), selection)

    def solution(self, choice: Choice, selection: Selection) -> Solution:
        """Return a mixture that was chosen, with what it was chosen on."""
        return Solution(choice.mixture, choice.value, choice.gap, choice.multipliers, selection, cost=choice.cost)

    def stage(self, n_models: int, problem: Problem, selection: Selection) -> Solution:
        """Return the best mixture of the first models, or that which misses the goals least."""
        first = selection.first(n_models)
        return self.solution(choose_or_nearest(first, problem), first)

    def rules(self, chosen: ChosenRules | None) -> tuple[list[RuleFunction], IntArray]:  # noqa: ARG002 - as the others
        """Return the predictions of each model for rows, and the places of the models."""
        places = range(len(self.pool.members))
        return [partial(_answer, place) for place in places], np.arange(len(places))

    def predictions(self, chosen: ChosenRules | None) -> PoolPredictions:  # noqa: ARG002 - as above
        """Return what the models say."""
        return self.selection_data

    def compare(self, chosen: ChosenRules | None, rows: DecisionRows, places: IntArray, n_used: int) -> ScoreComparison:  # noqa: ARG002
        """Return what the scores of rows are compared with: nothing."""
        return ScoreComparison.none(len(places), f"one of {n_used}")

    def check_chosen(self, chosen: ChosenRules | None, mixture: FloatArray, selection: Selection) -> None:  # noqa: ARG002
        """Check the values that were read from a file."""
        n_models = len(self.pool.members)
        check_mixture(mixture, n_models)
        if {part.losses.shape[1] for part in (self.selection_data, selection)} != {n_models}:
            raise ValueError(f"the losses are not those of {n_models} models")


def _answer(place: int, rows: DecisionRows) -> AnyArray:
    return rows.output_of(place)


def choose_rules(ranked: RankedScores, problem: Problem) -> Choice:
    """Return the best rules and their shares, or the best rule; raise ``InfeasibleGoals`` where none meet the goals."""
    if any(goal.compares_ratios for goal in problem.goals) or ranked.has_masses:
        return choose_one_rule(ranked, problem)
    is_explained = problem.decision != FIXED or problem.budget is not None  # by what mixtures can meet
    try:
        best = choose(CutFamily(ranked), problem._replace(explains=problem.explains and is_explained))
    except NoMixture as error:
        if not problem.explains:
            raise
        raise _no_rule_nor_mixture(ranked, problem, error) from None
    return deciding_rules(ranked, problem, best)


def _no_rule_nor_mixture(ranked: RankedScores, problem: Problem, error: NoMixture) -> InfeasibleGoals:
    """Return why no single rule meets the goals, where no mixture does either."""
    goals, proof = CutFamily(ranked).limits(problem.goals).goals, error.proof
    is_proven = error.proven and proof is not None
    members = range(len(problem.goals)) if goals is None or proof is None else goals.conflicting(proof)
    words = "meets them either" if is_proven else "that meets them was found either"
    explained = InfeasibleGoals([problem.goals[place] for place in members], np.nan, proven=is_proven)
    with advice():
        nearest, hints = best_fixed(ranked, problem), [f"No mixture of rules {words}."]
        explained = no_rule(ranked, problem, nearest, hints, members=members, proven=is_proven)
    return explained  # noqa: RET504 - where time is spent, the first one


class ThresholdRules(NamedTuple):
    """Rules of scores: a threshold for each group, or two between which rows are deferred."""

    pool: Pool
    selection_data: ScoreTable

    def with_rows(self, data: LabelledData, dataset: str | None = None) -> "ThresholdRules":
        """Return the same models on other selection rows; stored predictions are looked up by the rows' name."""
        return self._replace(selection_data=_with_rows(self, data, dataset))

    def with_dataset(self, name: str, table: Table, X: Any) -> "ThresholdRules":
        """Return the same models on the rows of another dataset too."""
        return self._replace(
            selection_data=self.selection_data.with_dataset(name, table, self.pool.ask(X, table.n_samples, name))
        )

    def prepared(self, problem: Problem) -> "ThresholdRules":
        """Return the same scores, with what deferring a row costs and is called."""
        if problem.deferral is not None:
            check_defer_label(problem.deferral.label, self.pool.positive.classes.tolist(), "label")
        return self._replace(selection_data=self.selection_data._replace(deferral=problem.deferral))

    def solve(self, problem: Problem, choice: Choice | None = None) -> Solution:
        """Return the best rules and their shares, or the solution of those that were chosen.

        Raise ``InfeasibleGoals`` where none meet the goals.
        """
        is_fixed = problem.decision == FIXED
        if self.selection_data.answers.tables[TRAIN].has_masses and not is_fixed:
            raise ValueError("Labels that are known in part choose one rule: set decision='fixed'.")
        refuse_in_mixtures(problem)
        if choice is None and isinstance(problem.objective, Ratio):
            return solve_ratio(self, problem)  # type: ignore[no-any-return]
        if problem.confidence is not None and any(isinstance(goal.left, WorstDisparity) for goal in problem.goals):
            return self.solve(problem._replace(confidence=None), choice)._replace(margins=OF_DISPARITY)
        if choice is None and needs_mixture_margins(problem):
            return solve_with_margins(self, problem)  # type: ignore[no-any-return]
        table = self.selection_data.answers.tables[TRAIN]
        ranked = rank(self.selection_data, find_groups(problem.by, table, self.selection_data.n_rows))
        choice = choice or choose_rules(ranked, problem)
        margins, proven = None, None
        if is_fixed and problem.confidence is not None and problem.goals:
            choice, margins, proven = self._with_margins(ranked, problem, choice)
        rules = proven or ranked.as_rules(choice.rules, are_usual=choice.is_usual)
        predictions = ranked.predictions_of(choice.rules)
        errors = None
        if isinstance(problem.objective, Risk):
            loss, usual = CutFamily(ranked).mean_losses(), ranked.usual_rules()
            edges = (usual.cuts % ranked.cuts.n_cuts).reshape(len(usual), -1, ranked.cuts.n_groups)
            usual = usual.only((edges[:, 0] == edges[:, -1]).all(axis=1))  # those that defer nothing
            errors = float(loss.of(choice.rules)[0] @ choice.mixture), float(loss.of(usual).min())
        deferred = 0.0
        if self.selection_data.deferral is not None:
            weights = table.weights()
            deferred = float(weights @ (predictions.answers.codes[TRAIN] == DEFERRED) @ choice.mixture / weights.sum())
        levels = self._levels([rule for rule, share in zip(rules, choice.mixture, strict=True) if share > 0])
        is_constant = problem.goals and np.isinf(levels).all() and np.ptp(np.sign(levels)) == 0
        return Solution(
            choice.mixture,
            choice.value,
            choice.value - choice.lower,
            choice.multipliers,
            select(predictions, problem)._replace(risk=choice.risk),
            ChosenRules(rules, ranked.groups),
            ONE_RULE if is_fixed else THRESHOLDS,
            choice.cost,
            errors,
            deferred,
            self.selection_data.answers.positive.labels[int(levels.flat[0] < 0)] if is_constant else None,
            margins,
        )

    def _with_margins(
        self, ranked: RankedScores, problem: Problem, plain: Choice
    ) -> tuple[Choice, Margins, list[Rule] | None]:
        """Return one rule that is proven, or else has margins, in the place of the best one, and the margins.

        Of a rule that is proven the very thresholds are returned that were tested.
        """
        margined = partial(with_margins, ranked, problem, plain)
        choice, margins, chosen = prove_or_margin(
            self,
            problem,
            ranked.groups,
            plain,
            with_margins=margined,
            with_proven=lambda chosen: with_proven(ranked, problem, plain, ranked.as_cuts(chosen.rules)),
        )
        return choice, margins, None if chosen is None else chosen.rules

    def margins_of(self, problem: Problem, chosen: ChosenRules) -> Margins:
        """Return how far one rule is inside of goals, or outside, on the selection rows, with standard errors."""
        ranked = rank(self.selection_data, chosen.groups)
        nothing = Choice(np.ones(1), 0.0, 0.0, np.empty(0))
        if isinstance(problem.objective, Ratio):  # which has no value in a program, and margins need none
            problem = problem._replace(objective=CVaR(1.0))
        return with_proven(ranked, problem, nothing, ranked.as_cuts(chosen.rules))[1]

    def only(self, places: Mapping[str, IntArray]) -> "ThresholdRules":
        """Return the same models on some of the rows of each dataset."""
        return self._replace(selection_data=self.selection_data.only(places))

    def trace(self, problem: Problem, groups: RuleGroups, targets: FloatArray) -> list[ChosenRules]:
        """Return the rules of least cost with margins of so many standard errors, in the order of the targets."""
        ranked = rank(self.selection_data, groups)
        plain = deciding_rules(ranked, problem, choose(CutFamily(ranked), problem))
        rules, candidates = find_candidates(ranked, problem, plain.rules, targets=targets)
        traced = ranked.as_rules(rules.only(np.array(candidates.trace(targets), dtype=np.int64)))
        return [ChosenRules([one], groups) for one in with_rules_between(traced, targets.size)]

    def _levels(self, rules: list[Rule]) -> FloatArray:
        """Return the thresholds of rules by group, and behind them the lower ones, where rules may defer."""
        levels = [rule.levels for rule in rules]
        return np.array(
            [upper if self.selection_data.deferral is None else [*upper, *lower] for upper, lower in levels]
        )

    def stage(self, n_models: int, problem: Problem, selection: Selection) -> Solution:  # noqa: ARG002 - as the others
        """Return the best rules of the first models."""
        return self._replace(selection_data=self.selection_data.first(n_models)).solve(problem)

    def rules(self, chosen: ChosenRules) -> tuple[list[RuleFunction], IntArray]:
        """Return the decisions of each rule about rows, and the place of its model."""
        place, rules = self.pool.positive.place, chosen.rules
        return [partial(_cut, rule, place) for rule in rules], np.array([rule.model for rule in rules])

    def usual(self, groups: RuleGroups) -> ChosenRules:
        """Return the first model at its usual threshold."""
        return ChosenRules([Rule(0, dict.fromkeys(groups.names, float(self.selection_data.usual[0])))], groups)

    def predictions(self, chosen: ChosenRules) -> PoolPredictions:
        """Return what rules say about all rows that were kept."""
        models = np.array([rule.model for rule in chosen.rules])
        codes = chosen.groups.codes_of_each(self.selection_data.answers.tables)
        return self.selection_data.predictions(models, self._levels(chosen.rules), codes)

    def compare(self, chosen: ChosenRules, rows: DecisionRows, places: IntArray, n_used: int) -> ScoreComparison:
        """Return what the scores of rows are compared with; nothing where several rules are mixed."""
        if len(chosen.rules) > 1:
            return ScoreComparison.none(len(places), f"one of {n_used}")
        (rule,) = chosen.rules
        scores = rows.output_of(rule.model)
        uppers, lowers = (np.array(one)[rows.groups] for one in rule.levels)
        groups = [chosen.groups.names[code] for code in rows.groups.tolist()]
        below = None if rule.lower is None else lowers
        return ScoreComparison(scores, uppers, below, nearest_changes(scores, uppers, below), groups, str(rule))

    def check_chosen(self, chosen: ChosenRules, mixture: FloatArray, selection: Selection) -> None:
        """Check the values that were read from a file."""
        n_scores, names = self.selection_data.usual.size, chosen.groups.names
        _check_rules(self.pool, chosen, mixture, selection, n_scores, "scores")
        if any(not 0 <= rule.model < n_scores or tuple(rule.thresholds) != names for rule in chosen.rules):
            raise ValueError(f"a rule is not of one of {n_scores} models with thresholds for {', '.join(names)}")


def _cut(rule: Rule, place: Any, rows: DecisionRows) -> IntArray:
    """Return the place of the class that a rule decides for each row; 2 where it defers."""
    scores = rows.output_of(rule.model)
    upper, lower = (np.array(levels)[rows.groups] if len(levels) > 1 else levels[0] for levels in rule.levels)
    is_above = scores > upper
    codes = np.asarray(np.where(is_above, place, 1 - place))
    if rule.lower is not None:
        codes[~is_above & (scores > lower)] = _PAIR
    return codes


class ClassRules(NamedTuple):
    """Rules of the probabilities of more than two classes."""

    pool: Pool
    selection_data: ClassTable

    def with_rows(self, data: LabelledData, dataset: str | None = None) -> "ClassRules":
        """Return the same models on other selection rows; stored predictions are looked up by the rows' name."""
        return self._replace(selection_data=_with_rows(self, data, dataset))

    def with_dataset(self, name: str, table: Table, X: Any) -> "ClassRules":
        """Return the same models on the rows of another dataset too."""
        return self._replace(
            selection_data=self.selection_data.with_dataset(name, table, self.pool.ask(X, table.n_samples, name))
        )

    def prepared(self, problem: Problem) -> "ClassRules":
        """Return the same, calibrated, with what deferring a row costs and is called."""
        if problem.deferral is not None:
            check_defer_label(problem.deferral.label, self.pool.positive.classes.tolist(), "label")
        return self._replace(selection_data=self.selection_data._replace(deferral=problem.deferral).with_calibrations())

    def solve(self, problem: Problem, choice: Choice | None = None) -> Solution:  # noqa: ARG002 - the explorer has none
        """Return the best rules of the search, with shares; raise ``InfeasibleGoals`` where none meet the goals."""
        if isinstance(problem.objective, Ratio):
            return solve_ratio(self, problem)  # type: ignore[no-any-return]
        if needs_mixture_margins(problem):
            return solve_with_margins(self, problem)  # type: ignore[no-any-return]
        kept = self.selection_data
        groups, calibrations = find_groups(problem.by, kept.answers.tables[TRAIN]), kept.calibrations or ()
        known = kept.calibrated_scores(groups, calibrations)
        best = choose_class_rules(known, problem)
        chosen = as_fixed(known, problem, best) if problem.decision == FIXED else best
        usual = usual_rule(known, problem) if problem.keeps_default_threshold else None
        if usual is not None:
            calibrations = (no_calibration(known.shape[1]),) * kept.n_models
            known = kept.calibrated_scores(groups, calibrations)
            chosen = chosen.only(usual, value_of(known.predictions_of([usual]), problem, np.ones(1)))
        margins = None
        if problem.confidence is not None and problem.goals:
            chosen, margins, proven = self._with_margins(known, problem, chosen)
            if proven is not None:
                calibrations = proven.calibrations
                known = kept.calibrated_scores(groups, calibrations)
        predictions = known.predictions_of(chosen.rules)
        errors = None
        if isinstance(problem.objective, Risk):
            likeliest = [argmax_rule(model, known.shape) for model in range(kept.n_models)]
            alone = min(float(kept.mass @ known.losses(known.answer_shares(rule)[TRAIN])) for rule in likeliest)
            errors = float(kept.mass @ predictions.losses @ chosen.mixture), alone
        return Solution(
            chosen.mixture,
            chosen.value,
            chosen.value - chosen.lower,
            chosen.multipliers,
            select(predictions, problem)._replace(risk=chosen.risk),
            ChosenRules(chosen.rules, groups, calibrations),
            chosen.covers,
            max(chosen.value - best.value, 0.0),
            errors,
            margins=margins,
        )

    def _with_margins(
        self, known: CalibratedScores, problem: Problem, plain: Choice
    ) -> tuple[Choice, Margins, ChosenRules | None]:
        """Return one rule that is proven, or else has margins, in the place of the best one, and the margins.

        A rule that is proven comes with the calibrations that it was tested with.
        """

        def with_proven_rule(chosen: ChosenRules) -> tuple[Choice, Margins]:
            tested = self.selection_data.calibrated_scores(known.groups, chosen.calibrations)
            return with_proven_class_rule(tested, problem, plain, chosen.rules[0])

        margined = partial(with_class_margins, known, problem, plain)
        return prove_or_margin(self, problem, known.groups, plain, with_margins=margined, with_proven=with_proven_rule)

    def only(self, places: Mapping[str, IntArray]) -> "ClassRules":
        """Return the same models on some of the rows of each dataset."""
        return self._replace(selection_data=self.selection_data.only(places))

    def trace(self, problem: Problem, groups: RuleGroups, targets: FloatArray) -> list[ChosenRules]:
        """Return the rules of least cost with margins of so many standard errors, in the order of the targets."""
        calibrations = self.selection_data.calibrations or ()
        known = self.selection_data.calibrated_scores(groups, calibrations)
        plain = as_fixed(known, problem, choose_class_rules(known, problem))
        rules, candidates = find_class_candidates(known, problem, plain)
        return [ChosenRules([rules[place]], groups, calibrations) for place in candidates.trace(targets)]

    def stage(self, n_models: int, problem: Problem, selection: Selection) -> Solution:  # noqa: ARG002 - as the others
        """Return the best rules of the first models."""
        return self._replace(selection_data=self.selection_data.first(n_models)).prepared(problem).solve(problem)

    def rules(self, chosen: ChosenRules) -> tuple[list[RuleFunction], IntArray]:
        """Return how likely each rule gives each answer about rows, and the place of the model that it asks."""
        says: list[RuleFunction] = [partial(_shares, rule, chosen.calibrations[rule.model]) for rule in chosen.rules]
        return says, np.array([rule.model for rule in chosen.rules])

    def usual(self, groups: RuleGroups) -> ChosenRules:
        """Return the likeliest class of the first model."""
        n_classes = len(self.pool.positive.classes)
        shape = (len(groups.names), n_classes, n_classes + (self.selection_data.deferral is not None))
        return ChosenRules([argmax_rule(0, shape)], groups, (no_calibration(n_classes),))

    def predictions(self, chosen: ChosenRules) -> PoolPredictions:
        """Return what rules say about all rows that were kept."""
        return self.selection_data.calibrated_scores(chosen.groups, chosen.calibrations).predictions_of(chosen.rules)

    def compare(self, chosen: ChosenRules, rows: DecisionRows, places: IntArray, n_used: int) -> ScoreComparison:  # noqa: ARG002
        """Return the weighted probability of each decision, and that of the class which comes next."""
        if len(chosen.rules) > 1 or chosen.rules[0].draws:
            return ScoreComparison.none(len(places), "rules that share rows among classes")
        (rule,) = chosen.rules
        proba = chosen.calibrations[rule.model](rows.output_of(rule.model))
        groups = [chosen.groups.names[code] for code in rows.groups.tolist()]
        weighed = rule.first_tier_benefits(proba, rows.groups) if hasattr(rule, "first_tier_benefits") else proba
        own = weighed[np.arange(len(places)), places]
        others = weighed.copy()
        others[np.arange(len(places)), places] = -np.inf
        following = others.max(axis=1)
        after = answers_of(self)[others.argmax(axis=1)].tolist()
        return ScoreComparison(own, following, None, following - own, groups, str(rule), after)

    def check_chosen(self, chosen: ChosenRules, mixture: FloatArray, selection: Selection) -> None:
        """Check the values that were read from a file."""
        n_scores, classes = self.selection_data.n_models, self.selection_data.positive.classes
        _check_rules(self.pool, chosen, mixture, selection, n_scores, "probabilities")
        if not np.array_equal(classes, self.pool.positive.classes) or len(chosen.calibrations) != n_scores:
            raise ValueError("the probabilities are of other classes or models")
        shape = (len(chosen.groups.names), len(classes), len(classes) + (self.selection_data.deferral is not None))
        if any(getattr(rule, "benefits", np.zeros(shape)).shape != shape for rule in chosen.rules):
            raise ValueError("a rule is of other groups or classes")
        if any(one.biases.shape != (len(classes),) for one in chosen.calibrations):
            raise ValueError("a calibration is of other classes")
        if any(not 0 <= rule.model < n_scores for rule in chosen.rules):
            raise ValueError(f"a rule is not of one of {n_scores} models")


Family = PooledModels | ThresholdRules | ClassRules


def _shares(rule: TierRule, calibration: Calibration, rows: DecisionRows) -> FloatArray:
    return rule.answers(calibration(rows.output_of(rule.model)), rows.groups)


def rules_of_scores(
    pool: Pool,
    data: LabelledData,
    scores: FloatArray,
    *,
    persons: IntArray | None = None,
    has_fold_scores: bool = False,
    spreads: FloatArray | None = None,
    test_rows: IntArray | None = None,
) -> ThresholdRules | ClassRules:
    """Return the rules of scores of the selection rows: thresholds of two classes, rules of probabilities of more.

    ``persons`` are those that rows are of, by number, where some have several; ``has_fold_scores`` says that models of
    folds scored the rows, and that another one decides; ``test_rows`` are those that it scored, kept for a proof.
    """
    nothing = Answers({}, {}, pool.positive)
    data, copies = data.with_masses(scores)
    scores, persons = scores[copies], persons_of_copies(data, copies, persons)
    if pool.positive.is_binary:
        usual = [member.usual(column) for member, column in zip(pool.members, scores.T, strict=True)]
        family: Any = ThresholdRules(pool, ScoreTable({}, nothing, None, None, np.array(usual), spreads=spreads))
    else:
        family = ClassRules(pool, ClassTable({}, nothing, None, None))
    kept = family.selection_data.with_dataset(TRAIN, data.table, scores)
    rows = {"sample_weight": data.sample_weight, "groups": data.groups, "persons": persons, "test_rows": test_rows}
    return family._replace(selection_data=kept._replace(has_fold_scores=has_fold_scores, **rows))  # type: ignore[no-any-return]


def persons_of_copies(data: LabelledData, copies: IntArray | slice, persons: IntArray | None) -> IntArray | None:
    """Return the person of each row; those that are there for several classes are of one person each."""
    if persons is None:
        return copies if data.table.has_masses else None  # type: ignore[return-value]
    return persons[copies]


def _with_rows(family: Any, data: LabelledData, dataset: str | None) -> Any:
    """Return the scores of other selection rows."""
    scores = family.pool.ask(data.X, n_rows(data.X), dataset)
    data, copies = data.with_masses(scores)
    kept = family.selection_data.with_dataset(TRAIN, data.table, scores[copies])
    persons = persons_of_copies(data, copies, None)
    rows = {"sample_weight": data.sample_weight, "groups": data.groups, "persons": persons, "has_fold_scores": False}
    rows |= {"spreads": None} if family.pool.positive.is_binary else {}
    return kept._replace(test_rows=None, **rows)


def with_scores(family: Any, scores: Mapping[str, FloatArray]) -> Any:
    """Return a family with other scores of some datasets, as models of folds gave them."""
    for name, own in scores.items():
        kept = family.selection_data
        kept = kept.with_dataset(name, kept.answers.tables[name], own)
        family = family._replace(selection_data=kept._replace(twins=(*kept.twins, name)))
    return family


def answers_of(family: Any) -> AnyArray:
    """Return the possible decisions: the classes, and deferral where rules defer."""
    deferral, classes = getattr(family.selection_data, "deferral", None), family.pool.positive.classes
    return np.asarray(classes if deferral is None else with_label(classes, deferral.label))


def with_tables(family: Any, tables: Mapping[str, Table]) -> Any:
    """Return a family with other tables for the same rows."""
    return family._replace(selection_data=family.selection_data.with_tables(tables)) if tables else family


def with_persons(family: Any, ids: Any) -> Any:
    """Return a family whose selection rows are those of persons, some of whom may have several."""
    kept = family.selection_data
    if kept.answers.tables[TRAIN].has_masses:
        raise ValueError("Rows of labels that are known in part cannot be joined by ids here: pass ids to fit.")
    return family._replace(
        selection_data=kept._replace(persons=person_numbers(ids, kept.answers.tables[TRAIN].n_samples))
    )


def with_columns(family: Any, sensitive_features: Any, baseline: Any) -> Any:
    """Return a family with other sensitive features, or answers of the deployed model, for the selection rows."""
    kept, parts = family.selection_data, {"sensitive_features": sensitive_features, "baseline": baseline}
    table = kept.answers.tables[TRAIN].with_parts(**{name: part for name, part in parts.items() if part is not None})
    if sensitive_features is not None:
        kept = kept._replace(groups=groups_of(sensitive_features, table.n_samples)[0])
    answers = replace(kept.answers, tables={**kept.answers.tables, TRAIN: table})
    return family._replace(selection_data=kept._replace(answers=answers))


def _check_rules(
    pool: Pool, chosen: ChosenRules, mixture: FloatArray, selection: Selection, n_scores: int, what: str
) -> None:
    """Check that rules of models have a share each, and that there are scores of all models."""
    n_models, n_rules = len(pool.members), len(chosen.rules)
    check_mixture(mixture, n_rules)
    if selection.losses.shape[1] != n_rules:
        raise ValueError(f"the losses are not those of {n_rules} rules")
    if n_models != n_scores:
        raise ValueError(f"the {what} are not those of {n_models} models")
