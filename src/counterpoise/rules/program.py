"""The program that chooses a mixture: minimise a risk or a rate over all mixtures of a family's rules, within limits.

Every loss and every rate of a randomized classifier is linear in its mixture, so the best mixture of a pool of rules is
a convex program. Its dual, weights of the rows and multipliers of the limits, prices every rule of the family. If the
cheapest rule costs no less than those of the pool, the mixture is the best of *all* rules, and the least cost is a
proven lower bound; if it costs less, it joins the pool. If the pool cannot meet the limits, the multipliers that prove
this are priced instead (Farkas): they lead to a rule that helps, or the proof holds for all rules.

``generate_columns`` is that loop. A family has these methods:

``start(objective)``, ``join(rules, more)``
    the rules to start with, and rules together with others;
``optimum(program, tol, rules)``
    the best mixture, by a ``Search`` of the family or, where all rules are known, by one solve;
``explain(program, error)``
    the conflicting goals, where no mixture meets all;
``limits(goals)``, ``add_budget(limits, most)``
    goals as rows of the program, and the same with a budget of mean loss;
``goals_of``, ``at_bound``, ``carry_over``, ``excess``, ``matrix``
    for paths of bounds, and for the tightest and loosest bounds;
``rate_objective``, ``mean_losses``, ``row_losses``, ``bind``, ``group_codes``, ``mass``
    for ``build_objective``.

Families are ``choosing.ModelFamily``, ``scores.family.CutFamily`` and ``class_scores.family.ClassFamily``.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from counterpoise._base.budget import advice, check_budget
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.goals import InfeasibleGoals, Rate, Ratio
from counterpoise.solvers import minimize_cvar, minimize_risk
from counterpoise.solvers.linear_program import InfeasibleRows, MixtureSolution
from counterpoise.theory.risks import CVaR, Mean, Risk, WorstGroup

TOL = 1e-4  # the gap that is good enough, in parts of the losses' unit
EXACT = 1e-7  # gap of the least mean loss from which a budget is counted: of errors, which count 1
_MAX_ROUNDS = 1000
_SHARE = 1e-10  # of the mixture, below which a rule is never drawn in practice: rounding of the solver


class Objective(NamedTuple):
    """The objective ``shift + risk(losses @ mixture)``, which is minimised."""

    losses: Any  # of rules, in the form of the family
    risk: Risk
    shift: float = 0.0  # not included in values and lower bounds of a solution


class Optimum(NamedTuple):
    """The best mixture, and its rules."""

    rules: Any
    solution: Any  # a ``MixtureSolution`` or what has the same fields; its lower bound is over all rules


class Choice(NamedTuple):
    """A chosen mixture, with its certificate."""

    mixture: FloatArray
    value: float
    lower: float  # no mixture of the rules that ``covers`` names has less; NaN where no bound was computed
    multipliers: FloatArray  # of the goals: how fast the risk falls as a bound is relaxed
    rules: Any = None  # None where models themselves are mixed
    cost: float = 0.0  # of one rule in the place of the best mixture, or of a limit on the number of models
    risk: Risk | None = None  # bound to the rows, where it is no CVaR, worst group or rate
    is_usual: bool = False  # whether it is a model at its usual threshold
    covers: str = ""  # the rules that ``lower`` is about

    @property
    def gap(self) -> float:
        """Return ``value - lower``, without the rounding of equals."""
        return max(self.value - self.lower, 0.0)

    def only(self, rule: Any, value: float) -> "Choice":
        """Return the choice of one rule in the place of the mixture."""
        return self._replace(rules=[rule], mixture=np.ones(1), value=value, lower=min(self.lower, value))


def drop_slivers(mixture: FloatArray) -> FloatArray:
    """Return a mixture without shares so small that they are rounding."""
    mixture = np.where(mixture > _SHARE, mixture, 0.0)
    return np.asarray(mixture / mixture.sum())


def excess_of(mixture: FloatArray, rows: FloatArray, bounds: FloatArray, row_scale: FloatArray) -> float:
    """Return the largest part of its scale by which a goal is missed."""
    return float(((rows @ mixture - bounds) / row_scale).max())


class NoMixture(Exception):  # noqa: N818 - named for what is the case
    """No mixture of any rules meets the limits: the proof, and the rules that it uses."""

    def __init__(self, proof: InfeasibleRows | None, rules: Any, *, proven: bool = True) -> None:
        self.proof, self.rules, self.proven = proof, rules, proven  # not proven: a search ended before its end
        super().__init__("no mixture of rules meets the limits" if proof is None else str(proof))


class Search(Protocol):
    """The steps of column generation: the best mixture of a pool, and rules that cost less."""

    def master(self, pool: Any) -> Any:
        """Return the best mixture of a pool with its dual, or raise ``InfeasibleRows``."""

    def price(self, pool: Any, solution: Any) -> tuple[Any, float]:
        """Return the pool with rules that cost less, None where there are none; and a lower bound over all rules."""

    def price_proof(self, pool: Any, error: InfeasibleRows) -> Any:
        """Return the pool with rules that refute a proof of infeasibility, None where there are none."""

    def goes_on(self, gap: float, *, grows: bool) -> bool:
        """Return whether another round may help, with a stricter master where the pool does not grow."""


def generate_columns(search: Search, pool: Any, tol: float) -> tuple[Any, Any, float]:
    """Return the pool, the best mixture of it, and a lower bound over all rules, or raise ``NoMixture``."""
    lower = -np.inf
    for _ in range(_MAX_ROUNDS):
        check_budget()
        try:
            solution = search.master(pool)
        except InfeasibleRows as error:
            more = search.price_proof(pool, error)
            if more is None:  # the proof that the pool cannot meet the limits holds for all rules
                raise NoMixture(error, pool) from error
            pool = more
            continue
        more, bound = search.price(pool, solution)
        lower = max(lower, bound)
        gap = solution.value - lower
        if gap <= tol or not search.goes_on(gap, grows=more is not None):
            return pool, solution, lower
        pool = pool if more is None else more
    raise RuntimeError(f"The solver did not reach the best mixture in {_MAX_ROUNDS} rounds; please report this.")


class Program(NamedTuple):
    """``min over mixtures of all rules of a family of shift + risk(losses @ mixture)`` within limits."""

    family: Any
    objective: Objective
    limits: Any = None  # as ``family.limits`` returns them

    def solve(self, tol: float = TOL, start: Any = None, *, explains: bool = False) -> Optimum:
        """Return the best mixture, or raise ``NoMixture`` where none meets the limits.

        Parameters
        ----------
        tol : float
            The gap between value and lower bound that is good enough, in units of the losses.
        start : rules, optional
            Rules to start with beside those of the family, such as those of another solve.
        explains : bool
            Whether to raise ``InfeasibleGoals`` in place of ``NoMixture``: finding the conflicting goals takes a while.
        """
        try:
            rules = self.family.start(self.objective)
            rules = rules if start is None else self.family.join(rules, start)
            return self.family.optimum(self, tol, rules)  # type: ignore[no-any-return]
        except NoMixture as error:
            if explains:
                raise self._explain(error) from None
            raise

    def _explain(self, error: NoMixture) -> InfeasibleGoals:
        """Return which goals conflict, all that took part where time is spent."""
        goals, proof = self.family.goals_of(self.limits), error.proof
        members = goals.goals if proof is None else [goals.goals[place] for place in goals.conflicting(proof)]
        explained = InfeasibleGoals(members, np.nan, proven=error.proven and proof is not None)
        with advice():
            explained = self.family.explain(self, error)
        return explained  # type: ignore[no-any-return]  # noqa: RET504 - where time is spent, the first one


def solve_master(
    losses: AnyArray, risk: Risk, sample_weight: FloatArray | None, limits: dict[str, Any], tol: float, **how: Any
) -> MixtureSolution:
    """Return the mixture of known rules with the least risk within limits, or raise ``InfeasibleRows``."""
    fraction = risk.tail_fraction
    if fraction is not None:
        return minimize_cvar(losses, fraction, sample_weight=sample_weight, tol=tol, **limits, **how)
    how.pop("method", None)  # there is only one
    return minimize_risk(losses, risk, sample_weight=sample_weight, tol=tol, **limits, **how)


def build_objective(family: Any, objective: Risk | Rate | Ratio) -> Objective:
    """Return an objective for the rules of a family: a rate, the mean loss, that of the worst group, or a risk."""
    objective = refuse_ratio(objective)
    if isinstance(objective, Rate):
        return family.rate_objective(objective)  # type: ignore[no-any-return]
    if isinstance(objective, WorstGroup):  # a tail of one group is the worst group
        codes = family.group_codes(objective.names)
        n_groups = np.unique(codes[family.mass > 0]).size
        return Objective(family.mean_losses(codes), CVaR(1 / n_groups))
    if objective.tail_fraction == 1.0:
        return mean_objective(family)
    risk = family.bind(objective)
    return Objective(family.row_losses(risk), risk)


def refuse_ratio(objective: Risk | Rate | Ratio) -> Risk | Rate:
    """Return an objective that a program can have, after refusing ratios: those are solved by several programs."""
    if isinstance(objective, Ratio):
        raise TypeError(
            f"The objective {objective} is a ratio, and this needs one that is linear in the mixture: pass a rate or a "
            "risk as objective, such as error_rate."
        )
    return objective


def mean_objective(family: Any) -> Objective:
    """Return the mean loss as objective."""
    return Objective(family.mean_losses(), Mean())


def build_program(family: Any, objective: Risk | Rate | Ratio, limits: Any) -> Program:
    """Return the program of an objective within limits."""
    return Program(family, build_objective(family, objective), limits)


def with_budget(
    family: Any, limits: Any, budget: float | None, start: Any = None, *, explains: bool = True
) -> tuple[Any, Any]:
    """Return limits with a budget above the least mean loss within them, and rules that meet it."""
    if budget is None:
        return limits, start
    least = Program(family, mean_objective(family), limits).solve(EXACT, start, explains=explains)
    return family.add_budget(limits, least.solution.value + budget), least.rules


def choose(family: Any, problem: Any, tol: float | None = None) -> Choice:
    """Return the best mixture of a family's rules for a problem, or raise ``InfeasibleGoals``, or ``NoMixture``."""
    limits, start = with_budget(family, family.limits(problem.goals), problem.budget, explains=problem.explains)
    program = build_program(family, problem.objective, limits)
    optimum = program.solve(problem.tol if tol is None else tol, start, explains=problem.explains)
    return family.choice(program, optimum)  # type: ignore[no-any-return]
