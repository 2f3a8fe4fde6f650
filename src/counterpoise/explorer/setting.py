"""A setting of the explorer: tail, budget, goals that are on or off, columns that rules may use, and confidence."""

import json
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import count
from typing import Any, NamedTuple

from counterpoise._base.checks import check_alpha, check_confidence, check_number
from counterpoise._base.text import load_json, shown
from counterpoise.goals import Goal, parse_goal, validate_goals
from counterpoise.goals.ranges import goal_range
from counterpoise.rules.options import as_groups
from counterpoise.solvers.linear_program import FEASIBLE
from counterpoise.theory.confidence import Bounds

_DIGITS = 6


def number(value: Any) -> float | None:
    """Return a number with six digits; None for one that is not finite.

    Examples
    --------
    >>> from counterpoise.explorer.setting import number
    >>> number(1 / 3), number(float("nan"))
    (0.333333, None)
    """
    real = float(value)
    return float(f"{real:.{_DIGITS}g}") if math.isfinite(real) else None


def numbers(values: Any) -> list[float | None]:
    """Return numbers of a sequence."""
    return [number(value) for value in values]


def make_unique(names: Sequence[str]) -> list[str]:
    """Return names of which no two are the same: the second of one name is numbered, and those after it.

    Examples
    --------
    >>> from counterpoise.explorer.setting import make_unique
    >>> make_unique(["trees", "logistic", "trees"])
    ['trees', 'logistic', 'trees (2)']
    """
    unique: list[str] = []
    for name in names:
        candidates = (name if time == 1 else f"{name} ({time})" for time in count(1))
        unique.append(next(one for one in candidates if one not in unique))
    return unique


def threshold(value: float) -> float | str:
    """Return a threshold; a word for one that is above or below all scores."""
    if math.isinf(value):
        return "nobody" if value > 0 else "everybody"
    return number(value) or 0.0


class Recent(OrderedDict[Any, Any]):
    """Results that are stored by what they depend on: the last ones that were used."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __getitem__(self, name: Any) -> Any:
        """Return a result, which then is the last one used."""
        self.move_to_end(name)
        return super().__getitem__(name)

    def __setitem__(self, name: Any, result: Any) -> None:
        """Store a result in place of the one that was not used for longest."""
        super().__setitem__(name, result)
        if len(self) > self._most:
            self.popitem(last=False)


MOST_GOALS = 20
MOST_CHARACTERS = 2000  # of the text of a goal
MOST_COLUMNS = 3  # that rules may use together
_GOAL_FIELDS = ("text", "bound", "on")


class SettingGoal(NamedTuple):
    """A goal, and whether it counts."""

    goal: Goal
    on: bool = True


@dataclass(frozen=True)
class Setting:
    """Tail, budget, goals and columns that you choose on the page; settings with equal values are equal.

    Attributes
    ----------
    alpha : float in (0, 1], or None
        The tail; None for the objective that the model was chosen for, where that is no tail.
    budget : float in [0, 1], or None
        The most by which the average loss may exceed the least that the goals allow.
    goals : tuple of SettingGoal
    by : tuple of str
        Columns that rules may use.
    defer : float in [0, 1], or None
        The loss of a row that a rule leaves to a person; None: every row is decided.
    confidence : float in (0, 1), or None
        The probability with which all goals hold together on new rows; None: no margins.

    Examples
    --------
    >>> from counterpoise.explorer import Setting
    >>> setting = Setting.read('{"alpha": 0.3, "goals": [{"text": "recall >= 0.9", "bound": 0.85}]}')
    >>> [str(goal) for goal in setting.active]
    ['recall >= 0.85']
    >>> Setting.read(setting.to_json()) == setting
    True
    """

    alpha: float | None = None
    budget: float | None = None
    goals: tuple[SettingGoal, ...] = ()
    by: tuple[str, ...] = ()
    defer: float | None = None
    confidence: float | None = None

    @property
    def active(self) -> tuple[Goal, ...]:
        """Return the goals that count."""
        return tuple(one.goal for one in self.goals if one.on)

    @classmethod
    def read(cls, text: str) -> "Setting":
        """Read a setting from a JSON text."""
        try:
            words = load_json(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f'A setting must be JSON, as in {{"alpha": 0.3}}; it cannot be read: {error}.') from error
        return cls.of(words)

    @classmethod
    def of(cls, words: Any) -> "Setting":
        """Return the setting of plain values, checked."""
        _check_object(words, "A setting", tuple(_READ))
        fields = {}
        for field, value in words.items():
            with in_field(field):
                fields[field] = _READ[field](value)
        return cls(**fields)

    def with_goal(self, goal: Goal) -> "Setting":
        """Return the setting with one more goal."""
        return replace(self, goals=(*self.goals, SettingGoal(goal)))

    def as_words(self) -> dict[str, Any]:
        """Return the setting as plain values."""
        goals = [{"text": str(one.goal), "bound": one.goal.bound, "on": one.on} for one in self.goals]
        words = {"alpha": self.alpha, "budget": self.budget, "goals": goals, "by": list(self.by), "defer": self.defer}
        return words | {"confidence": self.confidence}

    def to_json(self) -> str:
        """Return the setting as a JSON text."""
        return json.dumps(self.as_words(), allow_nan=False)


@contextmanager
def in_field(field: str, place: int | None = None) -> Iterator[None]:
    """Add to an error the field of the setting, and the goal, that it is about; ``field_of`` returns it."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if not hasattr(error, "field"):
            error.field = {"field": field} | ({} if place is None else {"place": place})  # type: ignore[union-attr]
        raise


def field_of(error: Exception) -> dict[str, Any]:
    """Return the field of a setting that an error is about, so that the page can show it there."""
    return dict(getattr(error, "field", {}))


def _check_object(words: Any, name: str, fields: tuple[str, ...]) -> None:
    if not isinstance(words, Mapping):
        raise TypeError(f"{name} must be an object with {', '.join(fields)}; got {type(words).__name__}.")
    for field in words:
        if field not in fields:
            raise ValueError(f"{name} has the fields {', '.join(fields)}; got {shown(field)}.")


def _goals_of(values: Any) -> tuple[SettingGoal, ...]:
    if not isinstance(values, list):
        raise TypeError(f"goals must be a list of objects with a text; got {type(values).__name__}.")
    if len(values) > MOST_GOALS:
        raise ValueError(f"At most {MOST_GOALS} goals can be explored together; got {len(values)}.")
    goals = []
    for place, one in enumerate(values):
        with in_field("goals", place):
            goals.append(_goal_of(one))
    return tuple(goals)


def _goal_of(words: Any) -> SettingGoal:
    _check_object(words, "A goal", _GOAL_FIELDS)
    is_on, bound = words.get("on", True), words.get("bound")
    if not isinstance(is_on, bool):
        raise TypeError(f"on must be true or false; got {shown(is_on)}.")
    goal = read_goal(words.get("text"))
    if bound is not None:
        goal = goal.with_bound(check_number(bound, "The bound of a goal", "(-inf, inf)"))
    check_bound(goal)
    return SettingGoal(goal, is_on)


def check_bound(goal: Goal) -> None:
    """Refuse a bound that the quantity of a goal cannot have."""
    low, high = reach(goal)
    if low < goal.bound < high:
        return
    validate_goals(goal)  # it may ask for nothing
    if not low - FEASIBLE <= goal.bound <= high + FEASIBLE:
        check_number(goal.bound, f"The bound of {goal.left}", f"[{low:g}, {high:g}]", "between which it can be")


def goal_key(goal: Goal) -> str:
    """Return the text of a goal without its bound: goals that differ only in their bound share it."""
    return str(goal.with_bound(0.0))


def reach(goal: Goal) -> Bounds:
    """Return the range in which the bound of a goal can move, the same for all bounds, as far as it needs no data."""
    return _reach(goal.with_bound(0.0))


_reach = lru_cache(maxsize=1000)(goal_range)


def read_goal(text: Any) -> Goal:
    """Return the goal of a text of bounded length."""
    if not isinstance(text, str):
        raise TypeError(f"A goal's text must be a string, as in recall >= 0.9; got {shown(text)}.")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"A goal's text must have at most {MOST_CHARACTERS} characters here; got {len(text)}.")
    return _parse(text)


_parse = lru_cache(maxsize=512)(parse_goal)


def _columns_of(by: Any) -> tuple[str, ...]:
    if not isinstance(by, list):
        raise TypeError(f"by must be a list of names of columns; got {type(by).__name__}.")
    if len(by) > MOST_COLUMNS:
        raise ValueError(f"Rules can use at most {MOST_COLUMNS} columns here; got {len(by)}.")
    return as_groups(by).names  # type: ignore[no-any-return]


def _part_of(name: str, meaning: str, value: Any) -> float | None:
    return None if value is None else check_number(value, name, "[0, 1]", meaning)


_READ: dict[str, Callable[[Any], Any]] = {
    "alpha": lambda value: None if value is None else check_alpha(value),
    "budget": partial(_part_of, "budget", "mean loss above the least possible"),
    "goals": _goals_of,
    "by": _columns_of,
    "defer": partial(_part_of, "defer", "the loss of a deferred row"),
    "confidence": lambda value: None if value is None else check_confidence(value),
}
