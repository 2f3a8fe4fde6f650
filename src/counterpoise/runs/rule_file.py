"""Rules of scores as a plain JSON file, which any language can read and apply.

One rule decides about a person, drawn by the first 16 hexadecimal digits of SHA-256 of the text ``key:id``: the last
rule whose ``from`` is not above them, compared as texts. The rule decides for the positive class where the person's
score is above the threshold of their group. A rule with lower thresholds decides ``deferred`` about a person who is
above the lower one only. The group is named by the columns of ``by``, as in ``sex=F, region=north``, or is
``all``; no threshold is infinite, as JSON has no such numbers.
"""

import hashlib
import json
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.text import short
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.goals.classes import check_defer_label
from counterpoise.rules.deciding import with_label
from counterpoise.rules.scores.cuts import Rule
from counterpoise.rules.scores.table import ALL
from counterpoise.runs.errors import DataError, load_json_file

FORMAT = "counterpoise rules 1"
DEFERRING = "counterpoise rules 2"  # which a program that knows of no deferral must not take for the other
_DIGITS = 16  # of the hash that draw
_MOST_BYTES = 1 << 26
_KEYS = {"format": str, "positive": object, "negative": object, "by": list, "key": str, "rules": list}
_PARTS = {"share": (int, float), "from": str, "score": str, "thresholds": dict}
_OF_DEFERRAL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    FORMAT: ({}, {}),
    DEFERRING: ({"deferred": object}, {"lower": dict}),
}  # further words of the file, and of each rule
_FEWEST = 16  # characters of a key: fewer could be guessed
_START = re.compile(f"[0-9a-f]{{{_DIGITS}}}")
_NO_CHARACTER = re.compile("[\ud800-\udfff]")  # halves of characters, which have no hash
_ROUNDED = 1e-3  # of all people: shares in a file that is written by hand have three decimals


class FileRule(NamedTuple):
    """One rule of a file."""

    share: float
    start: str  # ``from`` in the file: the least digits that draw it
    score: str  # the column
    thresholds: dict[str, float]  # by group
    lower: dict[str, float] | None = None  # where scores begin that are deferred

    def __str__(self) -> str:
        text = f"{self.score} above {_format_levels(self.thresholds)}"
        return text if self.lower is None else f"{text}; deferred above {_format_levels(self.lower)}"

    def decide(self, scores: FloatArray, groups: IntArray) -> IntArray:
        """Return 1 for the positive class, 0 for the negative one and 2 for deferred rows; groups are places."""
        upper = np.array([*self.thresholds.values()])[groups]
        lower = upper if self.lower is None else np.array([self.lower[name] for name in self.thresholds])[groups]
        return np.where(scores > upper, 1, np.where(scores > lower, 2, 0))


class RuleFile(NamedTuple):
    """Rules with how they are drawn, and the labels of their decisions."""

    positive: Any
    negative: Any
    by: tuple[str, ...]
    key: str
    rules: tuple[FileRule, ...]
    deferred: Any = None  # the label of deferred rows; None where there are none

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
        first, second = (0, 1) if self.negative < self.positive else (1, 0)
        return np.minimum(chances[:, [first, second, *range(2, chances.shape[1])]], 1.0)

    def as_json(self, **words: Any) -> str:
        """Return the text of a file, with further words that nobody needs to apply it."""
        rules = [
            {"share": one.share, "from": one.start, "score": one.score, "thresholds": one.thresholds}
            | ({} if self.deferred is None else {"lower": one.lower or one.thresholds})
            for one in self.rules
        ]
        parts = {"format": FORMAT, "positive": self.positive, "negative": self.negative}
        if self.deferred is not None:
            parts |= {"format": DEFERRING, "deferred": self.deferred}
        parts |= {"by": list(self.by), "key": self.key}
        return json.dumps({**parts, "rules": rules, **words}, indent=2, allow_nan=False) + "\n"


def as_file_rules(rules: Sequence[Rule], shares: FloatArray, scores: Sequence[str]) -> tuple[FileRule, ...]:
    """Return the rules of a mixture as those of a file, in their order."""
    edges = np.concatenate([[0.0], np.cumsum(shares)[:-1]])
    starts = [f"{min(round(edge * 16**_DIGITS), 16**_DIGITS - 1):0{_DIGITS}x}" for edge in edges.tolist()]
    parts = zip(rules, shares.tolist(), starts, strict=True)
    file_rules = [
        FileRule(share, start, scores[rule.model], _finite(rule.thresholds), rule.lower and _finite(rule.lower))
        for rule, share, start in parts
    ]
    return tuple(one for one, after in zip(file_rules, [*starts[1:], ""], strict=True) if one.start != after)


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
    kind = words.get("format") if isinstance(words, dict) else None
    if not isinstance(kind, str) or kind not in _OF_DEFERRAL:
        got = short(kind) if isinstance(words, dict) else type(words).__name__
        raise DataError(f"{path} must be a file of rules, of the format {FORMAT!r} or {DEFERRING!r}; got {got!r}.")
    further = _OF_DEFERRAL[kind]
    _check_words(words, _KEYS | further[0], str(path))
    for number, rule in enumerate(words["rules"], start=1):
        if not isinstance(rule, dict):
            raise DataError(f"Rule {number} of {path} must be an object; got {short(rule)}.")
        _check_words(rule, _PARTS | further[1], f"Rule {number} of {path}")
    rules = tuple(FileRule(*map(rule.get, (*_PARTS, "lower"))) for rule in words["rules"])
    named = words["positive"], words["negative"], tuple(words["by"]), words["key"]
    rule_file = RuleFile(*named, rules, words.get("deferred"))
    _check_rules(rule_file, path)
    return rule_file


def _check_words(words: Mapping[str, Any], wanted: Mapping[str, Any], where: str) -> None:
    for name, kind in wanted.items():
        is_odd = isinstance(words.get(name), bool) and kind is not object  # which labels may be
        if name not in words or not isinstance(words[name], kind) or is_odd:
            got = short(repr(words[name])) if name in words else "nothing"
            raise DataError(f"{where} must have {name!r}, as counterpoise choose writes it; got {got}.")


def _check_rules(file: RuleFile, path: Path) -> None:
    """Check what the types of the words do not show."""
    starts, groups = [rule.start for rule in file.rules], [tuple(rule.thresholds) for rule in file.rules]
    numbers = [
        level for rule in file.rules for level in (rule.share, *rule.thresholds.values(), *(rule.lower or {}).values())
    ]
    problems = {
        "at least one rule": not file.rules,
        "names of columns in by, each once": not all(isinstance(name, str) for name in file.by)
        or len(set(file.by)) < len(file.by),
        f"a key of at least {_FEWEST} characters": len(file.key) < _FEWEST or _NO_CHARACTER.search(file.key),
        "two different labels": file.positive == file.negative or not _are_labels(file.positive, file.negative),
        "the same groups in every rule": len(set(groups)) > 1 or not all(groups),
        f"the one group {ALL!r}, as by names no columns": not file.by and set(groups) != {(ALL,)},
        "finite numbers as shares and thresholds": not all(_is_finite(number) for number in numbers),
        "a label of deferred rows that is no class": _is_class(file),
        "lower thresholds for the same groups": any(
            set(rule.lower or groups[0]) != set(groups[0]) for rule in file.rules
        ),
        "lower thresholds that are not above the others": any(
            _is_finite(low) and _is_finite(rule.thresholds.get(name)) and low > rule.thresholds[name]
            for rule in file.rules
            for name, low in (rule.lower or {}).items()
        ),
        f"rules that start at 0 and rise, by {_DIGITS} hexadecimal digits in small letters": (
            starts[:1] != ["0" * _DIGITS]
            or not all(map(_START.fullmatch, starts))
            or any(second <= first for first, second in pairwise(starts))
        ),
    }
    missing = next((what for what, is_wrong in problems.items() if is_wrong), None)
    if missing is None:  # a reader would believe the share, and people get that of the draws
        edges = [*(int(start, 16) for start in starts), 16**_DIGITS]
        drawn = [(end - start) / 16**_DIGITS for start, end in pairwise(edges)]
        if any(abs(rule.share - part) > _ROUNDED for rule, part in zip(file.rules, drawn, strict=True)):
            missing = "shares that are the parts of the draws from one start to the next"
    if missing is not None:
        raise DataError(f"{path} must have {missing}; it does not. Write it again with counterpoise choose.")


def _is_class(file: RuleFile) -> bool:
    """Tell whether the label of deferred rows could be taken for a class."""
    try:
        check_defer_label(file.deferred, (file.positive, file.negative) if file.deferred is not None else ())
    except (TypeError, ValueError):
        return file.deferred is not None or any(rule.lower for rule in file.rules)
    return False


def _are_labels(*labels: Any) -> bool:
    """Tell whether labels are texts, or all numbers."""
    return all(isinstance(label, str) and label for label in labels) or all(
        isinstance(label, bool) or _is_finite(label) for label in labels
    )


def _is_finite(number: Any) -> bool:
    return isinstance(number, (int, float)) and not isinstance(number, bool) and abs(number) <= sys.float_info.max
