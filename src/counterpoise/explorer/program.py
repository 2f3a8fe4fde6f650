"""What answers settings: a mixture with its proof, and what programs share that find them."""

from collections import OrderedDict
from typing import Any, NamedTuple, Protocol

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.explorer.setting import reach, shape
from counterpoise.goals import Goal, Rate
from counterpoise.goals.binding import Tally, Views, tally_rates
from counterpoise.goals.rows import Dataset, Linear
from counterpoise.mixtures.answers import Answers
from counterpoise.mixtures.choosing import Aim
from counterpoise.mixtures.game import Choice
from counterpoise.mixtures.goal_rows import GoalRows, TalliedGoals
from counterpoise.mixtures.scores.choosing import RuleChoice
from counterpoise.mixtures.scores.rules import CutRules
from counterpoise.theory.risks import Risk

DRAGGED, RELEASED = 3e-3, 1e-4  # gaps, as parts of ``scale_of``, that do while a value moves, and when it rests
_NO_PRICE = 1e-6  # part of the objective's scale that a goal costs over its whole range: far below the gaps above
_MOST_BOUND = 4  # sets of goals whose rows are kept: those of scores have an entry for each cut
_MOST_COUNTS = 100  # sets of rows that are counted before all are forgotten


class Unmet(Exception):  # noqa: N818 - named for what was found
    """No mixture was found that meets the goals; ``Program.explain`` tells which of them conflict."""


def scale_of(objective: Risk | Rate) -> float:
    """Return what gaps are parts of: 1 for a risk, as losses are from 0 to 1, and for a rate the size of its terms.

    Examples
    --------
    >>> from counterpoise.explorer.program import scale_of
    >>> from counterpoise.goals import error_rate
    >>> from counterpoise.theory.risks import CVaR
    >>> scale_of(CVaR(0.1)), scale_of(5000 * error_rate("train"))
    (1.0, 5000.0)
    """
    return objective.size if isinstance(objective, Rate) and objective.size > 0 else 1.0


def is_priced(price: float, goal: Goal, objective: Risk | Rate) -> bool:
    """Tell whether a goal costs anything: its price, over all that its bound can move, beside the objective's scale."""
    low, high = reach(goal)
    return price * (high - low) > _NO_PRICE * scale_of(objective)


class Solved(NamedTuple):
    """A mixture and what proves it."""

    models: IntArray  # the model of each member
    # (n_members, n_groups) where members are rules, those below which nobody is deferred behind them where rows may be
    thresholds: FloatArray | None  # None where members are the models
    mixture: FloatArray
    value: float
    lower: float
    prices: FloatArray  # of the goals
    cuts: IntArray | None = None  # of rules, (n_members, n_groups): what they are among all cuts
    cost: float = 0.0  # of deciding by few members, or by one without draws
    risk: Risk | None = None  # as it is bound to the rows, where it is no CVaR, worst group or rate

    @property
    def choice(self) -> Choice | RuleChoice:
        """Return the same as the library's classifiers take it."""
        if self.cuts is None:
            return Choice(self.mixture, self.value, self.value - self.lower, self.prices, self.cost)
        rules = CutRules(self.models, self.cuts)
        return RuleChoice(rules, self.mixture, self.value, self.lower, self.prices, self.cost, self.risk)


class Tallied(NamedTuple):
    """Rates of one mixture, as ``PreparedPredictions`` tells them, from what was counted for each of its members."""

    views: Views
    tally: Tally

    def value(self, rate: Linear) -> float:
        """Return the value of a rate whose classes are known."""
        return float(rate.constant + tally_rates([rate], self.views, self.tally).item())


class Program(Protocol):
    """What a session asks of its models."""

    def solve(self, aim: Aim, tol: float) -> Solved:
        """Return the best mixture, or raise ``Unmet``."""

    def explain(self, aim: Aim) -> Solved:
        """Return the best mixture where there is one after all, or raise ``InfeasibleGoals``, which takes a while."""

    def can_hold(self, goals: tuple[Goal, ...]) -> bool:
        """Tell whether some mixture meets goals."""

    def least_excess(self, goals: tuple[Goal, ...], place: int) -> float | None:
        """Return the least that a goal can be missed by where all others are met: negative where it can be tighter.

        None where another bound changes more than right sides; ``Unmet`` is raised where the others cannot be met.
        """

    def stored(self, model: Any) -> Solved:
        """Return the mixture that a fitted model has."""

    def tallied(self, solved: Solved) -> Tallied:
        """Return the rates of a mixture on the rows of choice, in expectation over its draws."""


class Known:
    """Goals as rows of a program, those of a few sets of goals kept: another bound changes right sides alone."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._begin()

    def _begin(self) -> None:
        self.views: Views = self._answers.views()
        self._tally = self._answers.counter(self.views)
        self._counted: set[tuple[Dataset, int]] = set()
        self._bound: OrderedDict[tuple[str, ...], GoalRows] = OrderedDict()

    def rows(self, goals: tuple[Goal, ...]) -> GoalRows | None:
        """Return goals as rows; None where there are none."""
        if not goals:
            return None
        if len(self._counted) > _MOST_COUNTS:
            self._begin()
        if any(goal.confidence is not None for goal in goals):  # their margins depend on all bounds together
            return TalliedGoals.of(goals, self.views).rows(self.count)
        name = tuple(shape(goal) for goal in goals)
        if name not in self._bound:
            self._bound[name] = TalliedGoals.of(goals, self.views).rows(self.count)
        self._bound.move_to_end(name)
        while len(self._bound) > _MOST_BOUND:
            self._bound.popitem(last=False)
        found = self._bound[name]
        for place, goal in enumerate(goals):
            if found.goals[place].bound != goal.bound:
                found = found.with_bound(place, goal.bound)
        return found

    def count(self, rows: Dataset, place: int) -> FloatArray:
        """Return the weight of the rows that each model, or cut, calls a class."""
        self._counted.add((rows, place))
        return self._tally(rows, place)
