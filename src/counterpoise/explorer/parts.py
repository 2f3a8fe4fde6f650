"""What a session is made of: fitted models with what they said, and rows that nobody chose on."""

from dataclasses import dataclass, field
from typing import Any

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.goals import Table
from counterpoise.mixtures.choosing import Evidence
from counterpoise.mixtures.scores.evidence import ScoreEvidence


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that nobody fitted or chose on, as ``train``, and those of other datasets."""

    tables: dict[str, Table]
    said: dict[str, AnyArray]  # by dataset: scores of all models, or which rows each calls positive
    uniforms: dict[str, FloatArray | None]  # by dataset: what draws are made with
    features: Any = None  # a frame, to say in words who is in the tail


@dataclass(frozen=True, eq=False)
class Parts:
    """All that a session holds in memory."""

    title: str
    estimator: Any  # that mixes models, fitted
    evidence: Evidence | ScoreEvidence
    held_out: HeldOut | None
    names: list[str]  # of the models
    confidence: float = 0.95  # of verdicts on goals that carry none
    bounds_asked: dict[str, float] = field(default_factory=dict)  # by the text of a goal: where it was aimed elsewhere
    notes: tuple[str, ...] = ()
