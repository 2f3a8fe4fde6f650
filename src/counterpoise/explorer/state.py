"""The programs and rows of a session for the columns that rules look at: everything that depends on them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.explorer.few_rows import LEAST_ROWS, shown_groups, spread, told_values
from counterpoise.explorer.parts import HeldOut, Parts
from counterpoise.explorer.program import Program, Solved
from counterpoise.explorer.rates import MOST_GROUPS, group_codes
from counterpoise.explorer.solving import ModelProgram, RulesProgram
from counterpoise.explorer.told import AnsweredRows, Labels, ScoredRows, ToldRows
from counterpoise.explorer.words import number
from counterpoise.goals import Table
from counterpoise.goals.classes import check_defer_label
from counterpoise.mixtures.answers import TRAIN, bits_of
from counterpoise.mixtures.choosing import Evidence
from counterpoise.mixtures.options import Deferral, as_groups
from counterpoise.mixtures.scores.evidence import ScoreEvidence, rank
from counterpoise.mixtures.scores.groups import RuleGroups, find_groups

_BINS = 25  # of a histogram
_PANELS = 6  # groups in histograms: the largest
_ALONE = np.ones(1)


class State(NamedTuple):
    """What solves, and what a mixture says about the rows of choice and about held-out ones, by dataset."""

    program: Program
    groups: tuple[str, ...]  # that rules tell apart; none where models are mixed
    chosen_on: dict[str, ToldRows]
    held_out: dict[str, ToldRows]
    usual: Solved  # plain training: the first model by itself
    found: dict[Any, Any]  # what was found once

    def panels(self, parts: Parts, model: int) -> list[dict[str, Any]]:
        """Return histograms of a model's scores on the rows of choice, by group and class; none without scores."""
        if ("panels", model) not in self.found:
            self.found["panels", model] = self._histograms(parts, model)
        return self.found["panels", model]  # type: ignore[no-any-return]

    def plain_mean(self, rows: str) -> float:
        """Return the mean loss of plain training on the rows of choice or on held-out ones."""
        if rows not in self.found:
            self.found[rows] = getattr(self, rows)[TRAIN].loss(self.usual, None).mean
        return float(self.found[rows])

    def _histograms(self, parts: Parts, model: int) -> list[dict[str, Any]]:
        rows, given = self.chosen_on[TRAIN], parts.evidence
        if not isinstance(rows, ScoredRows) or not isinstance(given, ScoreEvidence):
            return []
        codes, names = rows.groups, list(self.groups)
        if len(names) == 1:
            codes, names = group_codes(given.answers.tables[TRAIN])
        return histograms(rows.scores[:, model], given.is_positive, codes, names or ["all rows"])


def deferral_at(estimator: Any, cost: float | None) -> Deferral | None:
    """Return that rows may be deferred at some cost, with the label that the estimator has for them."""
    if cost is None:
        return None
    own = estimator.deferral
    return Deferral(cost) if own is None else replace(own, cost=cost)


def state_of(parts: Parts, by: tuple[str, ...], defer: float | None = None) -> State:
    """Return what is needed for rules that look at some columns, and defer at a cost where one is given."""
    given, held = parts.evidence, parts.held_out
    if isinstance(given, Evidence):
        if defer is not None:
            raise ValueError("These models are mixed by what they say: no row is deferred. Leave defer empty.")
        return _of_models(given, held)
    estimator, groups = parts.estimator, groups_of(parts, by)
    deferral = deferral_at(estimator, defer)
    if deferral is not None:
        check_defer_label(deferral.label, estimator.classes_.tolist(), "label")
    given = given._replace(deferral=deferral)
    ranked = rank(given, groups)
    program = RulesProgram(ranked, prefers_usual=estimator._prefers_usual, decision=estimator.decision)  # noqa: SLF001 - of our own kind
    n_groups = len(groups.names)
    chosen_on: dict[str, ToldRows] = {
        name: ScoredRows(given.scores[name], codes, n_groups, None, _labels(given.answers.tables[name], given))
        for name, codes in ranked.codes.items()
    }
    later: dict[str, ToldRows] = {}
    if held is not None:
        for name, table in held.tables.items():
            codes, uniforms = groups.codes(table, f"The held-out rows of {name!r}"), held.uniforms[name]
            later[name] = ScoredRows(held.said[name], codes, n_groups, uniforms, _labels(table, given))
    usual = np.full((1, n_groups if defer is None else 2 * n_groups), float(given.usual[0]))
    alone = Solved(np.zeros(1, dtype=np.int64), usual, _ALONE, np.nan, np.nan, np.zeros(0))
    return State(program, groups.names, chosen_on, later, alone, {})


def columns_of(parts: Parts) -> list[str]:
    """Return the columns that rules may look at: the sensitive ones of few values, and the deployed model's answers."""
    if isinstance(parts.evidence, Evidence):
        return []
    tables = [parts.evidence.answers.tables[TRAIN], *([] if parts.held_out is None else [parts.held_out.tables[TRAIN]])]
    few = [name for name in tables[0].sensitive_columns if 1 < len(told_values(tables[0], name) or ()) <= MOST_GROUPS]
    few = [name for name in few if all(name in table.columns for table in tables)]
    if all(table.baseline is not None for table in tables):
        few.append("baseline")
    return [name for name in few if _makes_groups(parts, name)]


def _makes_groups(parts: Parts, name: str) -> bool:
    """Tell whether a column alone makes groups that rules can look at."""
    try:
        groups_of(parts, (name,))
    except ValueError:
        return False
    return True


def check_columns(parts: Parts, by: tuple[str, ...], offered: Iterable[str]) -> None:
    """Refuse columns that are not offered, and such as make groups with few rows, before anything is computed."""
    if isinstance(parts.evidence, Evidence):
        if by:
            raise ValueError("These models are mixed by what they say: no rules look at columns. Leave by empty.")
        return
    for name in by:
        if name not in offered:
            known = ", ".join(map(repr, offered)) or "none"
            raise ValueError(f"The rules cannot look at {name[:40]!r} here. Columns that they can look at: {known}.")
    groups_of(parts, by)


def groups_of(parts: Parts, by: tuple[str, ...]) -> RuleGroups:
    """Return the groups that columns make; what is wrong with others than the model's is said without their names."""
    own: RuleGroups = parts.estimator.groups_
    groups = own if by == own.by else _other_groups(parts, by)
    if len(groups.names) > MOST_GROUPS:
        raise ValueError(
            f"by makes {len(groups.names)} groups of {', '.join(by)}; at most {MOST_GROUPS} can be explored."
        )
    return groups


def _other_groups(parts: Parts, by: tuple[str, ...]) -> RuleGroups:
    tables, held = parts.evidence.answers.tables, parts.held_out
    try:
        groups = find_groups(replace(as_groups(parts.estimator.by), names=by), tables[TRAIN])
        for table in (*tables.values(), *({} if held is None else held.tables).values()):
            groups.codes(table, "The rows")
    except ValueError as error:
        raise ValueError(
            f"The rules cannot look at {' and '.join(by)} here: that makes a group with fewer than {LEAST_ROWS} rows, "
            "or one that some dataset has alone. Name other columns, or fewer."
        ) from error
    return groups


def _of_models(given: Evidence, held: HeldOut | None) -> State:
    tables = given.answers.tables
    chosen_on: dict[str, ToldRows] = {
        name: AnsweredRows(bits, None, _labels(tables[name], given)) for name, bits in given.answers.positives.items()
    }
    later: dict[str, ToldRows] = {}
    if held is not None:
        for name, said in held.said.items():
            later[name] = AnsweredRows(bits_of(said), held.uniforms[name], _labels(held.tables[name], given))
    n_models = given.losses.shape[1]
    alone = Solved(np.arange(n_models), None, np.eye(1, n_models)[0], np.nan, np.nan, np.zeros(0))
    return State(ModelProgram(given), (), chosen_on, later, alone, {})


def _labels(table: Table, given: Evidence | ScoreEvidence) -> Labels | None:
    positive = given.answers.positive.labels.positive
    cost = given.defer_cost or 0.0 if isinstance(given, ScoreEvidence) else 0.0
    return None if table.y is None else Labels(np.asarray(table.y == positive), table.sample_weight, cost)


def histograms(scores: FloatArray, is_positive: AnyArray, codes: IntArray, names: list[str]) -> list[dict[str, Any]]:
    """Return how many rows of each class and group have which scores; small groups are left out, few evened out."""
    low, high = (0.0, 1.0) if scores.min() >= 0 and scores.max() <= 1 else (float(scores.min()), float(scores.max()))
    edges = np.linspace(low, high if high > low else low + 1.0, _BINS + 1)
    sizes = np.bincount(codes, minlength=len(names))
    largest = np.argsort(-sizes, kind="stable")[:_PANELS]
    found = []
    for place in sorted(largest[np.array(shown_groups(sizes.tolist()), dtype=np.bool_)[largest]].tolist()):
        inside = codes == place
        positive, negative = (np.histogram(scores[inside & one], edges)[0] for one in (is_positive, ~is_positive))
        counts = {"positive": spread(positive), "negative": spread(negative)}
        found.append({"group": names[place], "low": number(edges[0]), "high": number(edges[-1]), **counts})
    return found
