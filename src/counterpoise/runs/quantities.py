"""The words of the results table of a run, each in one place: who is measured, on which rows, and what."""

from collections.abc import Iterable

from counterpoise.auditing.audit import FAILS, HOLDS, UNDECIDED

TRAIN, VALIDATION, TEST = SPLITS = ("train", "validation", "test")
MIXTURE, FIRST, AVERAGE, DEPLOYED = "mixture", "first model", "average", "deployed model"
VERDICTS = {HOLDS: 1.0, UNDECIDED: 0.0, FAILS: -1.0}  # as the table has them, which holds numbers only
VERDICT_OF = {number: verdict for verdict, number in VERDICTS.items()}
# What was made small: the loss of the tail, of the worst group, another risk, a rate, or what the method does.
CVAR, WORST_GROUP, RISK, RATE, OWN = "cvar", "worst-group", "risk", "rate", "own"
DEFER_RATE, DECIDED_ERROR = "defer rate", "decided error"  # parts of the rows, and of those that are decided about
REALISED = "realised cvar"  # of the losses once decisions are drawn, where "cvar" is that of the expected losses
N_SAMPLES = "n_samples"  # among the quantities of a group
CALLED = "called"  # how many rows of a class were called which
CONFUSION, CALIBRATION, SCORES, BOUGHT = (
    "confusion ",
    "calibration ",
    "scores ",
    "deferral ",
)  # how the names of some quantities begin


def of_goal(part: str) -> str:
    """Return the quantity of a goal: its estimate, low, high, bound, margin, verdict, violation or rows."""
    return f"goal {part}"


def of_group(rate: str) -> str:
    """Return the quantity of a group: a rate by its name, or ``n_samples``."""
    return f"group {rate}"


def trials_of_group(rate: str) -> str:
    """Return the quantity that says how many rows a rate of a group is a count out of; weighted rates have none."""
    return f"group {rate} rows"


def ends_of_group(rate: str) -> tuple[str, str]:
    """Return the quantities that are the ends of the interval of a group's expected rate."""
    return f"group {rate} low", f"group {rate} high"


def of_class(place: int) -> str:
    """Return the name of a class by its place, which the words of a run tell."""
    return f"class {place + 1}"


def called(label: int, answer: int | None) -> str:
    """Return which rows a count is of, by the places of their class and of the answer; None stands for a person."""
    return f"{of_class(label)} {'deferred' if answer is None else f'as {of_class(answer)}'}"


def places_called(text: str) -> tuple[int, int | None]:
    """Return the places that ``called`` wrote.

    Examples
    --------
    >>> from counterpoise.runs.quantities import called, places_called
    >>> places_called(called(2, 4)), places_called(called(2, None))
    ((2, 4), (2, None))
    """
    label, _, answer = text.removesuffix(" deferred").partition(" as ")
    return _place_of(label), _place_of(answer) if answer else None


def _place_of(name: str) -> int:
    return int(name.removeprefix("class ")) - 1


def rates_in(quantities: Iterable[str]) -> list[str]:
    """Return the rates of groups among quantities, in their order, whatever metrics are known here.

    Examples
    --------
    >>> from counterpoise.runs.quantities import rates_in
    >>> rates_in(["error", "group n_samples", "group recall", "group recall rows", "group cost", "group recall"])
    ['recall', 'cost']
    """
    words = [quantity.split() for quantity in dict.fromkeys(quantities)]
    return [word[1] for word in words if len(word) == 2 and word[0] == "group" and word[1] != N_SAMPLES]  # noqa: PLR2004
