"""Rules of scores as a plain JSON file, which any language can read and apply.

One rule decides about a person, drawn by the first 16 hexadecimal digits of SHA-256 of the text ``key:id``: the last
rule whose ``from`` is not above them, compared as texts. The rule decides for the positive class where the person's
score is above the threshold of their group. A rule with lower thresholds decides ``deferred`` about a person who is
above the lower one only. The group is named by the columns of ``by``, as in ``sex=F, region=north``, or is
``all``; no threshold is infinite, as JSON has no such numbers.
"""

import hashlib
import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StrictBool, StrictStr, ValidationError, model_validator

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.goals.classes import check_defer_label
from counterpoise.rules.deciding import with_label
from counterpoise.rules.scores.cuts import Rule
from counterpoise.rules.scores.table import ALL
from counterpoise.runs.errors import DataError, first_fault, load_json_file

FORMAT: Final = "counterpoise rules 1"
DEFERRING: Final = "counterpoise rules 2"  # which a program that knows of no deferral must not take for the other
_DIGITS = 16  # of the hash that draw
_MOST_BYTES = 1 << 26
_FEWEST = 16  # characters of a key: fewer could be guessed
_ROUNDED = 1e-3  # of all people: shares in a file that is written by hand have three decimals
Label: TypeAlias = StrictBool | int | FiniteFloat | Annotated[StrictStr, Field(min_length=1)]
Thresholds: TypeAlias = Annotated[dict[str, FiniteFloat], Field(min_length=1)]


class FileRule(BaseModel):
    """One rule of a file."""

    model_config = ConfigDict(frozen=True, strict=True, validate_by_name=True)

    share: FiniteFloat
    start: Annotated[str, Field(alias="from", pattern=f"^[0-9a-f]{{{_DIGITS}}}$")]  # the least digits that draw it
    score: str  # the column
    thresholds: Thresholds  # by group
    lower: Thresholds | None = None  # where scores begin that are deferred

    @model_validator(mode="after")
    def _check_lower(self) -> Self:
        lower = self.lower or self.thresholds
        if set(lower) != set(self.thresholds) or any(lower[name] > self.thresholds[name] for name in lower):
            raise ValueError("lower must have a threshold for each group, none above the other one")
        return self

    def __str__(self) -> str:
        text = f"{self.score} above {_format_levels(self.thresholds)}"
        return text if self.lower is None else f"{text}; deferred above {_format_levels(self.lower)}"

    def decide(self, scores: FloatArray, groups: IntArray) -> IntArray:
        """Return 1 for the positive class, 0 for the negative one and 2 for deferred rows; groups are places."""
        upper = np.array([*self.thresholds.values()])[groups]
        lower = upper if self.lower is None else np.array([self.lower[name] for name in self.thresholds])[groups]
        return np.where(scores > upper, 1, np.where(scores > lower, 2, 0))


class RuleFile(BaseModel):
    """Rules with how they are drawn, and the labels of their decisions."""

    model_config = ConfigDict(frozen=True, strict=True)

    format: Literal["counterpoise rules 1", "counterpoise rules 2"] = FORMAT
    positive: Label
    negative: Label
    deferred: Label | None = None  # the label of deferred rows; None where there are none
    by: list[str]
    key: Annotated[str, Field(min_length=_FEWEST)]
    rules: Annotated[list[FileRule], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        starts, groups = [int(rule.start, 16) for rule in self.rules], set(self.groups)
        edges = [*starts, 16**_DIGITS]
        drawn = [(end - start) / 16**_DIGITS for start, end in pairwise(edges)]
        is_text = [isinstance(label, str) for label in (self.positive, self.negative)]
        defers = self.format == DEFERRING
        faults = {
            "positive and negative must be two different labels of one kind": self.positive == self.negative
            or is_text[0] != is_text[1],
            "by must name each column once": len(set(self.by)) < len(self.by),
            "every rule must have the same groups": any(set(rule.thresholds) != groups for rule in self.rules),
            f"without columns in by there is one group, {ALL!r}": not self.by and groups != {ALL},
            "deferred and lower belong to the format of rules that defer": defers != (self.deferred is not None)
            or any(defers != (rule.lower is not None) for rule in self.rules),
            "from must start at 0 and rise": starts[0] != 0 or min(drawn) <= 0,
            # a reader would believe the share, and people get that of the draws
            "each share must be the part of the draws from its start to the next": any(
                abs(rule.share - part) > _ROUNDED for rule, part in zip(self.rules, drawn, strict=True)
            ),
        }
        for fault, is_there in faults.items():
            if is_there:
                raise ValueError(fault)
        if self.deferred is not None:
            check_defer_label(self.deferred, (self.positive, self.negative), "deferred")
        return self

    @property
    def scores(self) -> list[str]:
        """Return the columns of scores that the rules use."""
        return list(dict.fromkeys(rule.score for rule in self.rules))

    @property
    def groups(self) -> list[str]:
        """Return the names of the groups that have thresholds."""
        return list(self.rules[0].thresholds)

    def draw(self, ids: Sequence[str]) -> IntArray:
        """Return which rule each person draws."""
        starts = [rule.start for rule in self.rules]
        digits = [hashlib.sha256(f"{self.key}:{one}".encode()).hexdigest()[:_DIGITS] for one in ids]
        return np.searchsorted(np.array(starts), np.array(digits), side="right") - 1

    def decide(self, scores: Mapping[str, FloatArray], groups: IntArray, ids: Sequence[str]) -> AnyArray:
        """Return the decision about each person; groups are places in ``groups``."""
        drawn, codes = self.draw(ids), np.zeros(len(ids), dtype=np.int64)
        for place, rule in enumerate(self.rules):
            rows = np.flatnonzero(drawn == place)
            codes[rows] = rule.decide(scores[rule.score][rows], groups[rows])
        answers = np.array([self.negative, self.positive])
        return np.asarray((answers if self.deferred is None else with_label(answers, self.deferred))[codes])

    def chances(self, scores: Mapping[str, FloatArray], groups: IntArray) -> FloatArray:
        """Return how likely each row gets each label, in the order of the labels, and is deferred."""
        chances = np.zeros((len(groups), 2 if self.deferred is None else 3))
        for rule in self.rules:
            chances[np.arange(len(groups)), rule.decide(scores[rule.score], groups)] += rule.share
        labels: Any = [self.negative, self.positive]
        order = [*np.argsort(labels).tolist(), *range(2, chances.shape[1])]
        return np.minimum(chances[:, order], 1.0)

    def as_json(self, **words: Any) -> str:
        """Return the text of a file, with further words that nobody needs to apply it."""
        parts = self.model_dump(by_alias=True, exclude_none=True)
        return json.dumps({**parts, **words}, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def as_file_rules(rules: Sequence[Rule], shares: FloatArray, scores: Sequence[str], *, defers: bool) -> list[FileRule]:
    """Return the rules of a mixture as those of a file, in their order."""
    edges = np.concatenate([[0.0], np.cumsum(shares)[:-1]])
    starts = [f"{min(round(edge * 16**_DIGITS), 16**_DIGITS - 1):0{_DIGITS}x}" for edge in edges.tolist()]
    file_rules = [
        FileRule(
            share=share,
            start=start,
            score=scores[rule.model],
            thresholds=_finite(rule.thresholds),
            lower=_finite(rule.lower or rule.thresholds) if defers else None,
        )
        for rule, share, start in zip(rules, shares.tolist(), starts, strict=True)
    ]
    return [one for one, after in zip(file_rules, [*starts[1:], ""], strict=True) if one.start != after]


def check_text_key(key: str | None) -> str:
    """Return a key after checking its length; without one, a key that the system draws."""
    if key is None:
        return secrets.token_hex(_FEWEST)
    if len(key) < _FEWEST:
        raise ValueError(f"key must have at least {_FEWEST} characters, or it could be guessed; got {len(key)}.")
    return key


def _finite(levels: Mapping[str, float]) -> dict[str, float]:
    most = sys.float_info.max
    return {name: float(np.clip(level, -most, most)) for name, level in levels.items()}


def _format_levels(levels: Mapping[str, float]) -> str:
    return ", ".join(f"{group}: {level:.6g}" for group, level in levels.items())


def read_rules(path: Path) -> RuleFile:
    """Read a file of rules, and check that it is one."""
    if not path.is_file():
        raise DataError(f"There is no file of rules {path}; counterpoise choose writes one.")
    wrong = "must be a JSON file of rules, as counterpoise choose writes it"
    words = load_json_file(path, _MOST_BYTES, DataError, wrong)
    try:
        return RuleFile.model_validate(words)
    except ValidationError as error:
        raise DataError(f"{path} {wrong}; {first_fault(error)}.") from error
