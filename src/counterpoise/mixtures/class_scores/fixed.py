"""One rule of class probabilities without draws: a search over hard rules at many prices of the goals.

Each step of a two-tier rule is a rule that gives one answer, and with level 0 there is one step: the class of the
largest benefit. Such rules are tried at multiples of the mixture's prices, and at prices that rise where a goal is
missed and fall where it is kept with room. It is a search: what it does not find may exist.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals import Goal
from counterpoise.mixtures.choosing import Aim, Evidence, check_one_rule, value_of
from counterpoise.mixtures.class_scores.choosing import (
    Asked,
    ClassChoice,
    mean_loss,
    pose,
    within_budget,
)
from counterpoise.mixtures.class_scores.evidence import Known
from counterpoise.mixtures.class_scores.limits import Limits, limits_of
from counterpoise.mixtures.class_scores.program import ClassProgram, Columns, SumLosses
from counterpoise.mixtures.class_scores.tiers import ClassRule, TierRule, argmax_rule
from counterpoise.mixtures.no_rule import no_single_rule
from counterpoise.theory.risks import Mean

_PRICES = (0.0, 0.5, 1.0, 1.5, 2.0, 4.0)  # times the multipliers of the mixture
_N_STEPS = 80  # of prices that follow what is missed
_FIRST_STEP = 4.0  # price for a goal missed by one, falling with the steps
_AIM_INSIDE = 0.002  # part of a goal's unit by which its bound is tightened on the way: answers move in steps
_DIGITS = 11  # to which violations and objectives are compared, in parts of their units


class Fixed(NamedTuple):
    """The best rule that was found, and by how much it misses the limits in total."""

    rule: ClassRule
    violation: float


def search_fixed(known: Known, aim: Aim, rules: Sequence[ClassRule], multipliers: FloatArray) -> Fixed:
    """Return the rule of least violation, then least objective, that was found.

    A risk of zero-one losses that counts all rows alike grows with their mean, so that is what is minimized for every
    risk.
    """
    limits = limits_of(known, aim.goals)
    if aim.budget is not None:
        limits, _ = within_budget(known, limits, aim.budget)
    asked = pose(known, aim)
    if not isinstance(asked.losses, SumLosses) or not isinstance(asked.risk, Mean):
        asked = Asked(mean_loss(known), Mean())
    program = ClassProgram(known, asked.losses, asked.risk, limits)
    tried = _Tried(program)
    tried.look_at(list(_hard(known, rules)))
    if limits.has_any:
        for model in range(known.evidence.n_models):
            _follow(program, tried, model, _own_prices(limits, multipliers) / asked.losses.unit)
    return Fixed(tried.rule, tried.key[0])


def _hard(known: Known, rules: Sequence[ClassRule]) -> Iterator[ClassRule]:
    """Yield the likeliest class of each model, and each step of rules that draw."""
    for model in range(known.evidence.n_models):
        yield argmax_rule(model, known.shape)
    for rule in rules:
        if isinstance(rule, TierRule):
            yield from (rule._replace(layer=layer) for layer in range(rule.n_layers))


def _own_prices(limits: Limits, multipliers: FloatArray) -> FloatArray:
    """Return a price for each row of the limits, in their units, given those of the goals."""
    prices = np.zeros(len(limits.tensors))
    if limits.goals is not None:
        own = np.asarray(multipliers)[limits.places]
        prices[: own.size] = own * limits.goals.units
    return prices


class _Tried:
    """The best rule so far: of the least violation, then of the least objective."""

    def __init__(self, program: ClassProgram) -> None:
        self._program = program
        self.key: tuple[float, ...] = np.inf, np.inf
        self.rule: ClassRule = argmax_rule(0, program.known.shape)

    def look_at(self, rules: list[ClassRule]) -> Columns:
        """Try rules, and return what they come to."""
        columns = self._program.columns(rules)
        missed = np.zeros((0, len(rules))) if columns.rows is None else columns.rows.missed()
        for place, rule in enumerate(rules):
            key = tuple(round(float(one), _DIGITS) for one in (missed[:, place].sum(), columns.losses[:, place].max()))
            if key < self.key:
                self.key, self.rule = key, rule
        return columns


def _follow(program: ClassProgram, tried: _Tried, model: int, prices: FloatArray) -> None:
    """Try rules at multiples of prices, then at prices that follow what is missed."""
    own = np.ones(1)
    (tier,) = program.losses.tiers(program.risk, own, own)

    def rule(at: FloatArray) -> TierRule:
        benefits = tier.benefits - np.tensordot(at, program.limits.tensors, axes=1)
        return TierRule(model, 0.0, np.inf, benefits, defer_cost=program.known.defer_cost)

    tried.look_at([rule(factor * prices) for factor in _PRICES])
    at = prices
    for step in range(_N_STEPS):
        columns = tried.look_at([rule(at)])
        assert columns.rows is not None  # noqa: S101 - there are limits
        excess = columns.rows.rows[:, 0] - columns.rows.bounds + _AIM_INSIDE
        at = np.maximum(at + _FIRST_STEP / (1.0 + step) ** 0.5 * excess / program.limits.sizes, 0.0)


def as_fixed(known: Known, aim: Aim, best: ClassChoice) -> ClassChoice:
    """Return a rule without draws that meets the goals in the place of the best mixture."""
    check_one_rule(aim.objective)
    found = search_fixed(known, aim, best.rules, best.multipliers)
    alone = known.as_evidence([found.rule])
    if found.violation <= 0:
        return best.only(found.rule, value_of(alone, aim, np.ones(1)))

    def find(goals: tuple[Goal, ...]) -> Evidence | None:
        other = search_fixed(known, aim._replace(goals=goals, budget=None), best.rules, np.zeros(len(goals)))
        return None if other.violation > 0 else known.as_evidence([other.rule])

    mixed = f"A mixture of rules meets the goals, with a risk of {best.value:.4g}: set decision='sticky'."
    raise no_single_rule(aim.goals, find, found.violation, hints=[mixed])
