"""Who decides in the end: the best mixture of rules, or one rule in its place where that is asked for or as good."""

from collections.abc import Iterator

import numpy as np

from counterpoise.goals import Goal, InfeasibleGoals, Rate
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.choosing import FIXED, Aim, Evidence, check_one_rule, value_of
from counterpoise.mixtures.no_rule import no_single_rule
from counterpoise.mixtures.options import Groups
from counterpoise.mixtures.scores.choosing import RuleChoice, mean_loss
from counterpoise.mixtures.scores.evidence import Ranked, rank
from counterpoise.mixtures.scores.fixed import Fixed, best_fixed, search_fixed
from counterpoise.mixtures.scores.groups import find_groups
from counterpoise.mixtures.scores.rules import CutRules, at_usual


def decided(ranked: Ranked, aim: Aim, best: RuleChoice, decision: str, *, prefers_usual: bool) -> RuleChoice:
    """Return the rules that decide, given the best mixture; with ``"fixed"`` it is one rule, whatever that costs.

    Where nothing but errors counts the best model decides at its usual threshold, which is the best for good
    probabilities: one that was tuned on some rows follows their noise.
    """
    counts_errors = not isinstance(aim.objective, Rate) and aim.objective.tail_fraction == 1.0
    if prefers_usual and counts_errors and not aim.goals and aim.deferral is None:
        alone = _best_usual(ranked)
        if alone is not None:
            return best.only(alone, value_of(ranked.as_evidence(alone), aim, np.ones(1)), is_usual=True)
    return _fixed(ranked, aim, best) if decision == FIXED else best


def _best_usual(ranked: Ranked) -> CutRules | None:
    """Return the model of the least error at its usual threshold; None where its scores have none.

    The usual threshold of scores that are no probabilities is 0. Where that is no better than to decide alike about
    everybody, they have another.
    """
    usual, evidence = at_usual(ranked.cuts, ranked.evidence.usual), ranked.evidence
    errors, positive = mean_loss(ranked).of(usual)[0], float(evidence.mass @ evidence.is_positive)
    best = int(errors.argmin())
    has_none = evidence.usual[best] == 0 and errors[best] >= min(positive, 1.0 - positive)
    return None if has_none else usual.only(np.array([best]))


def _fixed(ranked: Ranked, aim: Aim, best: RuleChoice) -> RuleChoice:
    """Return the best single rule that meets the goals, in the place of the best mixture of rules."""
    check_one_rule(aim.objective)
    found = search_fixed(ranked, aim, best.rules, best.mixture, best.multipliers)
    if found.violation > 0:
        mixed = f"A mixture of rules meets the goals, with a risk of {best.value:.4g}: set decision='sticky'."
        raise no_rule(ranked, aim, found, [mixed])
    value = value_of(ranked.as_evidence(found.rule), aim, np.ones(1))
    return best.only(found.rule, value)._replace(lower=min(max(found.lower, best.lower), value))


def no_rule(
    ranked: Ranked, aim: Aim, found: Fixed, hints: list[str], mixed: InfeasibleGoals | None = None
) -> InfeasibleGoals:
    """Return the error where no single rule meets the goals, given the one that misses them least.

    ``mixed`` is the same of mixtures of rules, where these cannot meet the goals either.
    """

    def find(goals: tuple[Goal, ...]) -> Evidence | None:
        other = best_fixed(ranked, aim._replace(goals=goals, budget=None), nearest=False)
        return None if other.violation > 0 else ranked.as_evidence(other.rule)

    hints = [*hints, *_by_group(ranked, aim)]
    proven = found.is_proven or (mixed is not None and mixed.proven)
    return no_single_rule(aim.goals, find, found.violation, mixed=mixed, hints=hints, proven=proven)


def _by_group(ranked: Ranked, aim: Aim) -> Iterator[str]:
    """Yield what a threshold for each group would do, where rules look at none and there are groups."""
    evidence = ranked.evidence
    names = evidence.answers.tables[TRAIN].sensitive_columns
    if ranked.groups.by or not names:
        return
    try:
        own = rank(evidence, find_groups(Groups(names), evidence.answers.tables[TRAIN], evidence.n_rows))
    except ValueError:  # groups with too few rows
        return
    found = best_fixed(own, aim._replace(budget=None), nearest=False)
    if found.violation <= 0:
        risk = value_of(own.as_evidence(found.rule), aim, np.ones(1))
        shown = repr(names[0] if len(names) == 1 else list(names))
        yield f"One rule with a threshold for each group meets them, with a risk of {risk:.4g}: set by={shown}."
