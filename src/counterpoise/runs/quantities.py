"""The words of the results table of a run, each in one place: who is measured, on which rows, and what."""

from collections.abc import Iterable

from counterpoise.goals.audit import FAILS, HOLDS, UNDECIDED

TRAIN, VALIDATION, TEST = SPLITS = ("train", "validation", "test")
MIXTURE, FIRST, AVERAGE, DEPLOYED = "mixture", "first model", "average", "deployed model"
VERDICTS = {HOLDS: 1.0, UNDECIDED: 0.0, FAILS: -1.0}  # as the table has them, which holds numbers only
VERDICT_OF = {number: verdict for verdict, number in VERDICTS.items()}
# What was made small: the loss of the tail, of the worst group, another risk, a rate, or what the method does.
CVAR, WORST_GROUP, RISK, RATE, OWN = "cvar", "worst-group", "risk", "rate", "own"
DEFER_RATE, DECIDED_ERROR = "defer rate", "decided error"  # parts of the rows, and of those that are decided about
N_SAMPLES = "n_samples"  # among the quantities of a group
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
