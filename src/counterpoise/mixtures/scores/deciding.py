"""Who decides in the end: the best mixture of rules, or one rule in its place where that is asked for or as good."""

import numpy as np

from counterpoise.goals import Rate
from counterpoise.goals.binding import bind_rates
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.choosing import AUTO, FIXED, Aim, check_fixed, value_of
from counterpoise.mixtures.goal_rows import TalliedGoals
from counterpoise.mixtures.scores.choosing import RuleChoice, mean_loss
from counterpoise.mixtures.scores.evidence import Ranked
from counterpoise.mixtures.scores.fixed import search_fixed
from counterpoise.mixtures.scores.rules import CutRules, at_usual
from counterpoise.mixtures.sure import SURELY, Decider, is_surely_better

# Standard errors by which draws at a corner of the curve of a score must be better than one threshold. Scores in a good
# order have no corners (Neyman and Pearson 1933): most are of the rows where the curve was drawn, and of very many the
# best is looked at.
_SURELY_A_CORNER = 4.0
_ALIKE = 1e-9  # costs, of the largest


def decided(ranked: Ranked, aim: Aim, best: RuleChoice, decision: str, *, prefers_usual: bool) -> RuleChoice:
    """Return the rules that decide, given the best mixture.

    With ``"fixed"`` it is one rule, whatever that costs, and with ``"auto"`` one unless the mixture is surely better.
    Where errors are what is made small, the usual threshold then stays unless it may miss the goals, or others are
    surely better: a threshold that was tuned on some rows follows their noise, and the usual one is the best for good
    probabilities. Draws that are asked for under goals are of the best mixture.
    """
    counts_errors = not isinstance(aim.objective, Rate) and aim.objective.tail_fraction == 1.0
    choice = best
    if decision == FIXED:
        choice = _fixed(ranked, aim, best)
    elif decision == AUTO and best.mixture.size > 1 and (counts_errors or isinstance(aim.objective, Rate)):
        found = search_fixed(ranked, aim, best.rules, best.mixture, best.multipliers)
        surely = _SURELY_A_CORNER if _is_a_corner(ranked, aim, best) else SURELY
        choice = best if found.violation > 0 else _unless_surely_better(ranked, aim, best, found.rule, surely=surely)
    if prefers_usual and counts_errors and (not aim.goals or decision in (FIXED, AUTO)):
        return _unless_usual(ranked, aim, choice)
    return choice


def _is_a_corner(ranked: Ranked, aim: Aim, best: RuleChoice) -> bool:
    """Tell whether draws are between thresholds of one score, and an answer costs the same for all rows of a class."""
    evidence, views = ranked.evidence, ranked.evidence.answers.views()
    if not ranked.cuts.n_models == ranked.cuts.n_groups == 1 or evidence.deferral is not None or not aim.goals:
        return False
    costs = [TalliedGoals.of(aim.goals, views).row_costs(best.row_prices)]
    if isinstance(aim.objective, Rate):
        costs.append(bind_rates([aim.objective.resolved(views)], views).row_weights(np.ones(1)))
    if any(set(part) != {TRAIN} for part in costs):
        return False
    counted = evidence.mass > 0
    each = np.sum([part[TRAIN][counted] for part in costs], axis=0) / evidence.mass[counted]
    classes = (each[evidence.is_positive[counted] == label] for label in (False, True))
    return all(np.ptp(own) <= _ALIKE * np.abs(each).max() for own in classes if own.size)


def _unless_usual(ranked: Ranked, aim: Aim, choice: RuleChoice) -> RuleChoice:
    """Return the best model at its usual threshold that meets the goals, unless there is none or it is surely worse."""
    usual = at_usual(ranked.cuts, ranked.evidence.usual, ranked.evidence.defer_cost)
    for place in np.argsort(mean_loss(ranked).of(usual)[0], kind="stable").tolist():
        alone = usual.only(np.array([place]))
        if Decider(ranked.as_evidence(alone), np.ones(1)).meets(aim, ranked.evidence.n_rows):
            return _unless_surely_better(ranked, aim, choice, alone, n_tuned=ranked.cuts.n_groups)
    return choice


def _unless_surely_better(
    ranked: Ranked, aim: Aim, best: RuleChoice, rule: CutRules, *, n_tuned: int = 1, surely: float = SURELY
) -> RuleChoice:
    """Return one rule in the place of the best, unless that is surely better."""
    alone = Decider(ranked.as_evidence(rule), np.ones(1))
    chosen = Decider(ranked.as_evidence(best.rules), best.mixture)
    n_rows = ranked.evidence.n_rows
    if is_surely_better(chosen, alone, aim, best.row_prices, n_rows, n_tuned=n_tuned, surely=surely):
        return best
    return best.only(rule, value_of(alone.evidence, aim, alone.mixture))


def _fixed(ranked: Ranked, aim: Aim, best: RuleChoice) -> RuleChoice:
    """Return a fixed rule that meets the goals in the place of the best mixture."""
    found = search_fixed(ranked, aim, best.rules, best.mixture, best.multipliers)
    alone = ranked.as_evidence(found.rule)
    check_fixed(alone, aim, found.violation, best.value, is_proven=found.is_proven)
    return best.only(found.rule, value_of(alone, aim, np.ones(1)))
