"""The choice of a mixture: what it is chosen on, what is asked of it, and which one that leads to."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import check_alpha, check_number
from counterpoise._base.text import did_you_mean
from counterpoise._base.types import ByteArray, FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals, Rate, Ratio, Table, as_objective
from counterpoise.goals.bound import asked_goals
from counterpoise.goals.rates import METRICS, RATIOS
from counterpoise.goals.tables import group_codes
from counterpoise.goals.text import OWN_WORDS, refuse_deferral
from counterpoise.mixtures.answers import TRAIN, Answers
from counterpoise.mixtures.few_models import choose_few
from counterpoise.mixtures.game import Choice, Game, Selection, group_losses, outliers
from counterpoise.mixtures.goal_rows import goal_rows, linear_rate, mean_limit
from counterpoise.mixtures.options import Deferral, Groups
from counterpoise.theory.risk_text import is_nearly_risk_text, is_risk_text, parse_risk
from counterpoise.theory.risks import CVaR, Mean, Risk, RiskRows, WorstGroup

CVAR, WORST_GROUP = "cvar", "worst-group"
ALPHA = 0.1  # of mixtures, where neither alpha nor an objective is given
MIXTURES = ("optimal", "average", "first")
FIXED = "fixed"  # decisions by one rule of a score, without draws


class Evidence(NamedTuple):
    """What a mixture is chosen on: losses of the models on labelled rows, and their answers on all datasets."""

    losses: ByteArray
    sample_weight: FloatArray | None
    groups: IntArray | None
    answers: Answers

    def with_tables(self, tables: Mapping[str, Table]) -> "Evidence":
        """Return the same evidence with other tables for the same rows."""
        sizes = {TRAIN: len(self.losses)} | self.answers.sizes  # answers may not have been kept where nothing is asked
        return self._replace(answers=self.answers.with_tables(tables, sizes))

    def check_loaded(self) -> None:
        """Check what came from a file."""
        n_samples, n_models = self.losses.shape
        rows = [part for part in (self.sample_weight, self.groups) if part is not None]
        if any(part.shape != (n_samples,) for part in rows) or self.answers.pool_sizes - {n_models}:
            raise ValueError("the losses, weights, groups and answers are of different sizes")


class Aim(NamedTuple):
    """What is asked of a mixture; fields with a default are named as the parameters of classifiers that set them."""

    objective: Risk | Rate
    goals: tuple[Goal, ...]
    mixture: str = "optimal"  # or the average of all models, or the first alone (ERM)
    outlier_fraction: float = 0.0
    max_models: int | None = None
    budget: float | None = None  # of mean loss above the least that is possible under the goals
    deferral: Deferral | None = None  # of rows that a person decides about; None: there are none
    by: Groups = Groups(())  # columns that rules of scores look at
    decision: str = "sticky"  # "fixed" asks for one rule
    prefers_usual: bool = False  # thresholds, where nothing but errors counts

    @property
    def alpha(self) -> float | None:
        """Return the tail fraction, where a tail is what counts."""
        return self.objective.alpha if isinstance(self.objective, CVaR) else None

    @property
    def defer_cost(self) -> float | None:
        """Return the loss of a deferred row; None where every row is decided."""
        return None if self.deferral is None else self.deferral.cost


def as_aim(
    alpha: float | None, objective: Any, goals: Any, *, default_alpha: float | None = ALPHA, **limits: Any
) -> Aim:
    """Return what is asked of a mixture, after checking it.

    Without an objective it is the CVaR at alpha, and without both at ``default_alpha``; both together are refused.
    """
    aim = Aim(_risk_or_rate(alpha, objective, default_alpha), asked_goals(goals), **limits)
    if aim.budget is not None:
        check_number(aim.budget, "budget", "[0, 1]", "mean loss above the least possible")
    _check_deferral(aim)
    is_other = isinstance(aim.objective, Risk) and not isinstance(aim.objective, (CVaR, WorstGroup))
    if aim.outlier_fraction > 0 and is_other:
        raise ValueError(f"outlier_fraction is for a CVaR; with objective={aim.objective!r} it must be 0.")
    return aim


def _check_deferral(aim: Aim) -> None:
    """Check that nothing is asked about deferred rows where there are none."""
    if aim.deferral is not None and not isinstance(aim.deferral, Deferral):
        raise TypeError(
            "deferral must be None, or Deferral(cost) with the loss of a row that a person decides about, as in "
            f"Deferral(0.2); got {aim.deferral!r}."
        )
    if aim.deferral is None:
        refuse_deferral([*aim.goals, *([aim.objective] if isinstance(aim.objective, Rate) else [])])


def _risk_or_rate(alpha: float | None, objective: Any, default_alpha: float | None) -> Risk | Rate:
    if objective is None or (isinstance(objective, str) and objective == CVAR):
        return CVaR(check_alpha(default_alpha if alpha is None else alpha))
    if alpha is not None:
        raise ValueError(
            f"alpha={alpha!r} is short for objective=CVaR({alpha!r}), the loss of the worst-off part of the rows, and "
            f"objective={objective!r} is minimised in its place: pass one of them."
        )
    if isinstance(objective, Risk):
        return objective
    if isinstance(objective, str) and objective == WORST_GROUP:
        return WorstGroup()
    if isinstance(objective, str) and is_risk_text(objective):
        return parse_risk(objective)
    if isinstance(objective, type) or not (isinstance(objective, (str, Rate, Ratio))):
        hint = ": add parentheses" if isinstance(objective, type) else ""
        raise TypeError(
            "objective must be a risk such as CVaR(0.1), a rate such as error_rate(train), or the text of one; got "
            f"{objective!r}{hint}."
        )
    try:
        return as_objective(objective)
    except ValueError:
        if isinstance(objective, str) and is_nearly_risk_text(objective, [*METRICS, *RATIOS, *OWN_WORDS]):
            return parse_risk(objective)  # which says what is wrong with it
        raise


def select(evidence: Evidence, aim: Aim) -> Selection:
    """Return the rows with what is asked of mixtures on them."""
    losses, sample_weight, groups, answers = evidence
    if not answers.tells_tails:
        _require_means(aim.objective)
    table = answers.tables[TRAIN]
    asked = Selection(losses, sample_weight, None, goal_rows(answers, aim.goals))
    if isinstance(aim.objective, Rate):
        return asked._replace(rate=linear_rate(answers, aim.objective))
    if isinstance(aim.objective, WorstGroup):  # solved from the groups' losses alone
        return asked._replace(groups=groups_by(aim.objective.names, table, groups))
    if aim.objective.tail_fraction is not None:
        return asked
    rows = RiskRows(row_count(asked), losses.shape[1], lambda names: groups_by(names, table, groups))
    return asked._replace(risk=aim.objective.bind(rows))


def _require_means(objective: Risk | Rate) -> None:
    """Refuse a risk that is no mean, of all rows or of groups, where only means are known."""
    if isinstance(objective, Risk) and not isinstance(objective, WorstGroup) and objective.tail_fraction != 1.0:
        raise ValueError(
            f"Of rows in shards only the means of groups are kept, which do not tell {objective!r}: pass X and y to "
            "choose on, or fit again."
        )


def row_count(selection: Selection) -> float:
    """Return as how many rows of equal weight those of a selection count."""
    weight = selection.sample_weight
    return float(len(selection.losses) if weight is None else weight.sum() ** 2 / (weight**2).sum())


def groups_by(names: tuple[str, ...], table: Table, groups: IntArray | None) -> IntArray:
    """Return the group of every row by some columns, or by all that were given as groups."""
    for name in names:
        if name not in table.columns:
            known = ", ".join(table.columns) or "no columns"
            raise ValueError(
                f"An objective speaks of the column {name!r}; got {known}.{did_you_mean(name, table.columns)}"
            )
    if names:
        return group_codes(Table(np.empty((table.n_samples, 0)), None, {name: table.column(name) for name in names}))[0]
    if groups is None:
        raise ValueError("WorstGroup needs sensitive_features: the groups of the rows.")
    return groups


def within_budget(selection: Selection, aim: Aim) -> Selection:
    """Return the same with one more goal where there is a budget: on the mean loss, above the least under the rest."""
    if aim.budget is None:
        return selection
    game = least_mean(selection)
    row = mean_limit(game.losses[0], game.solve().value + aim.budget)
    return selection._replace(goals=row if selection.goals is None else selection.goals.joined(row))


def least_mean(selection: Selection) -> Game:
    """Return the problem of the least mean loss under the goals, from which a budget is counted."""
    means = np.average(selection.losses, axis=0, weights=selection.sample_weight)
    return Game(means[None], Mean(), None, selection.goals)


def without_budget(choice: Choice, aim: Aim) -> Choice:
    """Return the choice with the multipliers of the goals alone."""
    return choice._replace(multipliers=choice.multipliers[: len(aim.goals)])


def posed(selection: Selection, aim: Aim) -> Game:
    """Return the problem whose solution is the best mixture of all models."""
    losses, weight, goals = selection.losses, selection.sample_weight, selection.goals
    if selection.rate is not None:  # one row of losses, in the units of the rate
        return Game(selection.rate.row[None], Mean(), None, goals, selection.rate.constant)
    if selection.groups is not None:  # a tail of one group is the worst group
        by_group = group_losses(selection)
        return Game(by_group, CVaR(1 / len(by_group)), None, goals)
    if aim.outlier_fraction > 0:  # the rows with the highest average loss are left out (DORO, Zhai et al. 2021b)
        keep = ~outliers(losses.mean(axis=1), weight, aim.outlier_fraction)
        losses, weight = losses[keep], None if weight is None else weight[keep]
    risk = selection.risk or aim.objective
    assert isinstance(risk, Risk)  # noqa: S101 - a rate has its row
    return Game(losses, risk, weight, goals)


def value_of(evidence: Evidence, aim: Aim, mixture: FloatArray) -> float:
    """Return what a mixture comes to of what was to be made small."""
    return posed(select(evidence, aim), aim).value(mixture)


def check_one_rule(objective: Risk | Rate) -> None:
    """Refuse an objective that one rule cannot lower: it sees only how often the rule errs, not about whom."""
    if isinstance(objective, Rate | WorstGroup) or objective.tail_fraction == 1.0:
        return
    raise ValueError(
        f"decision='fixed' decides by one rule, which is right or wrong about each row: {objective!r} of its losses "
        "follows from its error alone, and no other rule of the same error has less. Set decision='sticky', which "
        "mixes rules, or alpha=1.0 for the least error."
    )


def choose_nearest(selection: Selection, aim: Aim) -> Choice:
    """Choose the mixture that misses the goals least, of those the one with the least risk; no budget limits it."""
    assert selection.goals is not None  # noqa: S101 - they cannot be met
    return posed(selection._replace(goals=selection.goals.nearest()), aim).solve()


def choose_or_nearest(selection: Selection, aim: Aim) -> Choice:
    """Choose the mixture, or that which misses the goals least where none meets them."""
    try:
        return choose_mixture(selection, aim)
    except InfeasibleGoals:
        return choose_nearest(selection, aim)


def choose_mixture(selection: Selection, aim: Aim) -> Choice:
    """Choose the mixture, or raise ``InfeasibleGoals`` where none meets the goals."""
    if aim.mixture != "optimal":  # which is free to keep no budget
        return choice_by_name(aim, selection.losses.shape[1], posed(selection, aim).value)
    game = posed(within_budget(selection, aim), aim)
    found = game.solve() if aim.max_models is None else choose_few(game, aim.max_models)
    return without_budget(found, aim)


def choice_by_name(aim: Aim, n_models: int, value: Callable[[FloatArray], float]) -> Choice:
    """Return the mixture that an aim names in the place of the best: the average of all models, or the first alone."""
    mixture = np.full(n_models, 1 / n_models) if aim.mixture == "average" else np.eye(1, n_models)[0]
    return Choice(mixture, value(mixture), np.nan, np.zeros(0))
