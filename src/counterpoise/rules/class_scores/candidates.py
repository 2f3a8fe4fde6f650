"""Rules of class probabilities that margins are chosen among: one-answer rules at many prices of the goals.

At the prices of the goals each answer has a benefit, and the rule gives the answer of the largest. Prices are drawn
around those that meet the goals. Then the benefits of the rules of least cost for several targets are moved, one at a
time and by ever smaller steps.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from counterpoise._base.budget import check_budget
from counterpoise._base.types import FloatArray
from counterpoise.rules.choosing import Problem, value_of
from counterpoise.rules.class_scores.answers import ClassAnswers
from counterpoise.rules.class_scores.family import ClassFamily, Tier, mean_program, tier_rule
from counterpoise.rules.class_scores.rules import TierRule, argmax_rule
from counterpoise.rules.class_scores.table import CalibratedScores
from counterpoise.rules.margins import (
    Candidates,
    MarginProblem,
    Margins,
    describe_margins,
    follow_targets,
    margin_problem,
    most_cost,
)
from counterpoise.rules.program import Choice, Program, with_budget

_N_PRICES = 250
_PRICES = -2.0, 1.5  # powers of ten by which a goal's price is scaled
_PRICED = 0.7  # part of the goals that have a price at all
_MOVES = (0.4, 0.2, 0.1), (0.1, 0.05, 0.025), (0.03, 0.015, 0.007)  # of one benefit of a rule, in parts of the largest
_STEPS = np.linspace(0.0, 3.0, 7)  # targets whose rules are moved
_MOST_ANSWERS = 20_000_000  # rows times rules
_LEAST_RULES = 40


def with_class_margins(
    scores: CalibratedScores, problem: Problem, plain: Choice, confidence: float
) -> tuple[Choice, Margins]:
    """Return one rule whose goals hold on new rows in the place of the best one, and the margins of the goals."""
    rules, (table, inside) = find_class_candidates(scores, problem, plain, confidence=confidence)
    safe = follow_targets(table, inside).safe_rule(confidence)
    rule = rules[safe.place]
    predictions = scores.predictions_of([rule])
    margins = describe_margins(safe, predictions.answers.checks(problem.goals, np.ones(1)))
    return plain.only(rule, value_of(predictions, problem, np.ones(1))), margins


def with_proven_class_rule(
    scores: CalibratedScores, problem: Problem, plain: Choice, rule: TierRule
) -> tuple[Choice, Margins]:
    """Return a rule that is proven in the place of the best one, and how far it is inside of the goals."""
    predictions = scores.predictions_of([rule])
    choice = plain.only(rule, value_of(predictions, problem, np.ones(1)))
    inside = _margin_problem(scores, problem, rule, None)
    safe = Candidates(inside.table(as_rules(scores, [rule])), inside).at(max(choice.value - plain.value, 0.0))
    return choice, describe_margins(safe, predictions.answers.checks(problem.goals, np.ones(1)))


def find_class_candidates(
    scores: CalibratedScores, problem: Problem, plain: Choice, row_factor: float = 1.0, confidence: float | None = None
) -> tuple[list[TierRule], Candidates]:
    """Return the rules to choose among, given the best one without margins, and what they come to.

    With a ``row_factor`` that is on so many times the rows, and with a ``confidence`` without the margins that no rule
    has.
    """
    family, (best,) = ClassFamily(scores), plain.rules
    limits, _ = with_budget(family, family.limits(problem.goals), problem.budget)
    inside = _margin_problem(scores, problem, best, limits.budget)._replace(row_factor=row_factor)
    program, tier = mean_program(family, problem.objective, limits)
    rules = _at_prices(program, tier, best, plain.multipliers)
    n_rows = sum(len(part) for part in scores.codes.values())
    for moves in (*_MOVES, None):  # from far apart to near the rules of little cost and risk
        check_budget()
        rules = rules[: max(_LEAST_RULES, _MOST_ANSWERS // max(n_rows, 1))]
        table = inside.table(as_rules(scores, rules))
        now = inside.rank(table)
        cheap = np.flatnonzero(now.cost <= most_cost(inside, _constant_answers(scores), now))
        table, rules, now = table.only(cheap), [rules[place] for place in cheap.tolist()], now.only(cheap)
        if confidence is not None:
            hopeful = inside.without_hopeless(table, confidence)
            now, inside = (now, inside) if hopeful is inside else (hopeful.rank(table), hopeful)
        if moves is not None:
            near = [rules[place] for place in dict.fromkeys(now.best(_STEPS).tolist())]
            rules = [best, *near, *(other for rule in near for other in _moved(rule, scores.shape, moves))]
    return rules, Candidates(table, inside)


def _margin_problem(scores: CalibratedScores, problem: Problem, rule: TierRule, budget: float | None) -> MarginProblem:
    return margin_problem(
        problem,
        scores.answers([scores.answer_shares(rule)]).views(),
        defer_cost=scores.defer_cost,
        budget=budget,
        persons=scores.table.persons,
        has_fold_scores=scores.table.has_fold_scores,
    )


def as_rules(scores: CalibratedScores, rules: list[TierRule]) -> ClassAnswers:
    """Return what rules answer about each row."""
    codes = {name: np.empty((len(part), len(rules)), dtype=np.uint8) for name, part in scores.codes.items()}
    for place, rule in enumerate(rules):
        for name, shares in scores.answer_shares(rule).items():
            codes[name][:, place] = shares.argmax(axis=1)
    return ClassAnswers(codes, scores.shape[2])


def _constant_answers(scores: CalibratedScores) -> ClassAnswers:
    every = np.arange(scores.shape[2], dtype=np.uint8)[None]
    return ClassAnswers({name: np.repeat(every, len(part), axis=0) for name, part in scores.codes.items()}, every.size)


def _at_prices(program: Program, tier: Tier, best: TierRule, multipliers: FloatArray) -> list[TierRule]:
    """Return the cheapest rules at many prices of the goals; the first is the best one without margins."""
    limits, rng = program.limits, np.random.default_rng(0)
    prices = limits.prices(multipliers) / program.objective.losses.unit
    usual = np.where(prices > 0, prices, prices.max(initial=0.0) or 1.0 / limits.sizes)
    scales = 10.0 ** rng.uniform(*_PRICES, (_N_PRICES, prices.size)) * (rng.random((_N_PRICES, prices.size)) < _PRICED)
    benefits = [tier.benefits - np.tensordot(scale * usual, limits.tensors, axes=1) for scale in scales]
    likeliest = argmax_rule(best.model, program.family.scores.shape)
    return [best, likeliest, *(tier_rule(program, best.model, tier, one) for one in benefits)]


def _moved(rule: TierRule, shape: tuple[int, int, int], moves: Sequence[float]) -> Iterator[TierRule]:
    """Yield a rule with the benefit of one answer, or of one answer in one group, moved up and down."""
    size = float(np.abs(rule.benefits).max(initial=0.0)) or 1.0
    groups = [slice(None)] if shape[0] == 1 else [slice(None), *range(shape[0])]
    for group, answer, move in product(groups, range(shape[2]), moves):
        for sign in (-1.0, 1.0):
            benefits = rule.benefits.copy()
            benefits[group, :, answer] += sign * move * size
            yield rule._replace(benefits=benefits)
