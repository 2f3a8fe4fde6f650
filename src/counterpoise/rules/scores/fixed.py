"""One rule without draws: the best threshold for each group, in the place of the best mixture of rules."""

from collections.abc import Iterator, Sequence

import numpy as np

from counterpoise._base.budget import advice
from counterpoise.goals import InfeasibleGoals
from counterpoise.rules.choosing import FIXED, Problem, check_one_rule, value_of
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.infeasible import no_single_rule
from counterpoise.rules.options import Groups
from counterpoise.rules.program import Choice, NoMixture
from counterpoise.rules.scores.best_rule import THOROUGH, FixedRule, best_fixed
from counterpoise.rules.scores.cuts import CutRules, rules_at
from counterpoise.rules.scores.family import CutFamily, with_least_mean
from counterpoise.rules.scores.table import RankedScores, find_groups, rank
from counterpoise.rules.scores.tried import TriedThresholds
from counterpoise.theory.risks import Risk, WorstGroup


def deciding_rules(ranked: RankedScores, problem: Problem, best: Choice) -> Choice:
    """Return the rules that decide, given the best mixture; with ``"fixed"`` it is one rule, whatever that costs.

    Where only errors count, the best model decides at its usual threshold, which is the best for good probabilities: a
    threshold tuned on some rows follows their noise.
    """
    if isinstance(problem.objective, WorstGroup):
        best = with_least_mean(CutFamily(ranked), problem, best)
    counts_errors = isinstance(problem.objective, Risk) and problem.objective.tail_fraction == 1.0
    is_plain = problem.keeps_default_threshold and counts_errors and not problem.goals and problem.deferral is None
    alone, lower = _best_usual(ranked) if is_plain else None, best.lower
    is_usual = alone is not None
    if alone is None:
        if problem.decision != FIXED:
            return best
        check_one_rule(problem.objective)
        best_rule = best_fixed(ranked, problem, best.rules.only(best.mixture > 0), THOROUGH)
        if best_rule.violation > 0 and not problem.explains:
            raise NoMixture(None, best_rule.rule, proven=best_rule.is_proven)
        if best_rule.violation > 0:
            mixed = f"A mixture of rules meets the goals, with an objective of {best.value:.4g}: set decision='sticky'."
            raise no_rule(ranked, problem, best_rule, [mixed])
        alone, lower = best_rule.rule, max(best_rule.lower, best.lower)
    value = value_of(ranked.predictions_of(alone), problem, np.ones(1))
    cost = best.cost + max(value - best.value, 0.0)  # the best mixture is known to its gap
    lower = lower if is_usual else min(lower, value)
    return Choice(np.ones(1), value, lower, best.multipliers, alone, cost, best.risk, is_usual)


def choose_one_rule(ranked: RankedScores, problem: Problem) -> Choice:
    """Return the best single rule inside of goals that compare ratios, for which no mixture is known."""
    check_one_rule(problem.objective)
    best, no_prices = best_fixed(ranked, problem, effort=THOROUGH), np.zeros(len(problem.goals))
    if best.violation > 0 and not problem.explains:
        raise NoMixture(None, best.rule, proven=best.is_proven)
    if best.violation > 0:
        raise no_rule(ranked, problem, best, [])
    value = value_of(ranked.predictions_of(best.rule), problem, np.ones(1))
    return Choice(np.ones(1), value, min(best.lower, value), no_prices, best.rule)


def _best_usual(ranked: RankedScores) -> CutRules | None:
    """Return the model of the least error at its usual threshold; None where its scores have none.

    The usual threshold of scores that are no probabilities is 0. Where that is no better than one constant
    decision, the scores have no usual threshold.
    """
    usual, positive = ranked.table.usual, float(ranked.mass @ ranked.is_positive)
    rules = rules_at(ranked.cuts, [(model, one, one) for model, one in enumerate(usual.tolist())])
    errors = CutFamily(ranked).mean_losses().of(rules)[0]
    best = int(errors.argmin())
    has_none = usual[best] == 0 and errors[best] >= min(positive, 1.0 - positive)
    return None if has_none else rules.only(np.array([best]))


def no_rule(
    ranked: RankedScores,
    problem: Problem,
    nearest: FixedRule,
    hints: list[str],
    *,
    members: Sequence[int] | None = None,
    proven: bool = False,
) -> InfeasibleGoals:
    """Return the error where no single rule meets the goals, given the one that misses them least.

    ``members`` are the places of goals that are known to conflict, where they are not all; ``proven`` says that it is
    proven that they do.
    """
    members = range(len(problem.goals)) if members is None else members
    tried = TriedThresholds(ranked, problem, nearest.rule)
    error = no_single_rule(tried, members, proven=proven or nearest.is_proven, hints=hints)
    with advice():
        error = error.replace(hints=[*error.hints, *_hint_of_groups(ranked, problem)])
    return error  # noqa: RET504 - where time is spent, the first one


def _hint_of_groups(ranked: RankedScores, problem: Problem) -> Iterator[str]:
    """Yield a hint that a threshold for each group would meet the goals, where rules use no groups and it would."""
    table = ranked.table.answers.tables[TRAIN]
    names = table.sensitive_columns
    if ranked.groups.by or not names:
        return
    try:
        own = rank(ranked.table, find_groups(Groups(names), table, ranked.table.n_rows))
    except ValueError:  # groups with too few rows
        return
    best = best_fixed(own, problem._replace(budget=None))
    if best.violation <= 0:
        risk = value_of(own.predictions_of(best.rule), problem, np.ones(1))
        by = repr(names[0] if len(names) == 1 else list(names))
        yield f"One rule with a threshold for each group meets them, with an objective of {risk:.4g}: set by={by}."
