"""Options of classifiers that belong together, each a value: frozen, comparable, cloneable and storable."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from counterpoise._base.checks import check_choice, check_confidence, check_count, check_number
from counterpoise.goals.classes import check_defer_label
from counterpoise.rules.draws import check_key

STICKY = "sticky"  # decisions by a draw that is fixed for each row or id
UNKNOWN = ("refuse", "pool")  # what to do about groups that have no threshold of their own


@dataclass(frozen=True)
class Deferral:
    """Permission for rules to leave rows to a person instead of deciding.

    Parameters
    ----------
    cost : float in [0, 1]
        The loss of a row that is deferred; an error costs 1.
    label : text or number, default="defer"
        What ``predict`` returns for deferred rows; no class may have this label.
    error : float in [0, 1 - cost], default=0
        How often the person decides wrongly. Goals count the classifier's own decisions; to count the person's errors
        in one, write ``error_rate + 0.05 * defer_rate <= 0.1``.

    Attributes
    ----------
    loss : float
        What a deferred row adds to the loss: ``cost + error``.

    Examples
    --------
    >>> from counterpoise import Deferral, GoalClassifier
    >>> GoalClassifier(deferral=Deferral(0.2)).deferral
    Deferral(cost=0.2, label='defer', error=0.0)
    >>> Deferral(0.2, error=0.05).loss
    0.25
    """

    cost: float
    label: Any = "defer"
    error: float = 0.0

    def __post_init__(self) -> None:
        cost = check_number(self.cost, "cost of Deferral", "[0, 1]", "the loss of a row that a person decides about")
        object.__setattr__(self, "cost", cost)
        error = check_number(self.error, "error of Deferral", "[0, 1]", "how often a person decides wrongly")
        if cost + error > 1:
            raise ValueError(
                "cost + error of Deferral, the loss of a deferred row, must be at most 1, the loss of an error; got "
                f"{cost:g} + {error:g}."
            )
        object.__setattr__(self, "error", error)
        check_defer_label(self.label, (), "label")

    @property
    def loss(self) -> float:
        """Return the loss of a deferred row: its cost, and an error with the person's probability of one."""
        return self.cost + self.error


@dataclass(frozen=True)
class Proof:
    """A proof that all goals hold together on new rows, in the place of a confidence that is reached about.

    Parameters
    ----------
    confidence : float in (0, 1), default=0.9
        The probability with which the goals hold, at least, whatever the population and the number of rows.

    Examples
    --------
    >>> from counterpoise import GoalClassifier, Proof
    >>> GoalClassifier(goals=["recall >= 0.7"], confidence=Proof(0.9)).confidence
    Proof(confidence=0.9)
    """

    confidence: float = 0.9

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence", check_confidence(self.confidence, "confidence of Proof"))


@dataclass(frozen=True)
class Draws:
    """Decisions by a draw that is the same for each row or id, as ``decision="sticky"``, with a key of your own.

    Parameters
    ----------
    key : bytes
        Secret of the draws, 16 to 64 bytes, as ``secrets.token_bytes(32)`` makes them; never shown. Without it nobody
        can compute a draw; two classifiers with the same key make the same draws.

    Examples
    --------
    >>> from counterpoise import Draws, MixtureClassifier
    >>> MixtureClassifier([], decision=Draws(b"0123456789abcdef")).decision
    Draws(key=<hidden>)
    """

    key: bytes

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", check_key(self.key))


def kind_of_decision(decision: Any) -> Any:
    """Return the word for how decisions are made: "sticky" for draws with a key."""
    if isinstance(decision, bytes):  # a message about words would show it
        raise TypeError("decision must be a word, or Draws(key); got the key itself. Write decision=Draws(key).")
    return STICKY if isinstance(decision, Draws) else decision


@dataclass(frozen=True)
class Groups:
    """Columns that rules may use: each combination of their values has a threshold of its own.

    Parameters
    ----------
    names : str or list of str
        Columns of ``sensitive_features``, of X where it is a data frame, or the word ``"baseline"``, which stands for
        the predictions of the deployed model.
    unknown : {"refuse", "pool"}, default="refuse"
        What to do about groups that have few rows in ``fit``, or none: raise an error, or decide about all of them by
        one threshold. It is their own, or, where ``fit`` saw none of them, the one that selects as many rows as the
        rule does.
    min_rows : int, default=10
        A group with fewer labelled rows has no threshold of its own.

    Examples
    --------
    >>> from counterpoise import GoalClassifier, Groups
    >>> GoalClassifier(by=Groups("region", unknown="pool", min_rows=50)).by
    Groups(names=('region',), unknown='pool', min_rows=50)
    """

    names: Any
    unknown: str = "refuse"
    min_rows: int = 10

    def __post_init__(self) -> None:
        by = self.names
        names = (by,) if isinstance(by, str) or not isinstance(by, Iterable) else tuple(by)
        if not all(isinstance(name, str) for name in names):
            raise TypeError(
                f"by must be the name of a column that rules may use, a list of names, or Groups; got {by!r}. The "
                "word 'baseline' stands for the predictions of the deployed model."
            )
        if len(set(names)) < len(names):
            raise ValueError(f"by names a column twice: {', '.join(names)}.")
        object.__setattr__(self, "names", names)
        check_choice(self.unknown, "unknown of Groups", UNKNOWN)
        object.__setattr__(self, "min_rows", check_count(self.min_rows, "min_rows of Groups"))


def as_groups(by: Any) -> Groups:
    """Return the columns that ``by`` names, and what to do about small groups of them."""
    return by if isinstance(by, Groups) else Groups(() if by is None else by)
