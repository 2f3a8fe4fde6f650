"""The rows and programs of a session: decisions and losses of a mixture, and the program for the columns of rules."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, ByteArray, FloatArray, IntArray
from counterpoise.explorer.disclosure import LEAST_ROWS, MOST_EXPLORED, group_codes, shown_groups, spread, values_of
from counterpoise.explorer.setting import number
from counterpoise.explorer.solving import BestMixture, MixtureProgram, ModelProgram, RulesProgram
from counterpoise.goals import Goal, Table
from counterpoise.goals.classes import check_defer_label
from counterpoise.goals.infeasible import round_safely
from counterpoise.metrics import cvar_curve, cvar_loss
from counterpoise.rules.choosing import FIXED, PoolPredictions
from counterpoise.rules.draws import pick
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.options import Deferral, as_groups
from counterpoise.rules.scores.table import DEFERRED, RuleGroups, ScoreTable, find_groups, rank
from counterpoise.solvers.rows import BitRows


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Held-out rows, as ``train``, and those of other datasets."""

    tables: dict[str, Table]
    answers: dict[str, AnyArray]  # by dataset: scores of all models, or which rows each calls positive
    uniforms: dict[str, FloatArray | None]  # by dataset: what draws are made with
    features: Any = None  # a frame, to say in words who is in the tail


@dataclass(frozen=True, eq=False)
class SessionParts:
    """All that a session holds in memory."""

    title: str
    estimator: Any  # that mixes models, fitted
    selection_data: PoolPredictions | ScoreTable
    held_out: HeldOutRows | None
    names: list[str]  # of the models
    confidence: float = 0.95  # of verdicts on goals that carry none
    original_bounds: dict[str, float] = field(default_factory=dict)  # of goals fitted with a margin, by their texts
    notes: tuple[str, ...] = ()


def why_no_margins(estimator: Any) -> str:
    """Return why the page chooses no margins for a model; an empty text where one rule of scores decides."""
    if not isinstance(estimator.family_.selection_data, ScoreTable):
        return "Margins are for one rule of scores, and this model mixes models."
    if estimator.decision != FIXED:
        return 'Margins are for one rule, and this model mixes rules. For margins, fit it with decision="fixed".'
    return ""


def aimed_goals(estimator: Any) -> tuple[Goal, ...]:
    """Return the goals of a model; with the bounds that it aims at, where the page cannot choose margins itself.

    A goal whose margin costs nothing is met by far: it keeps its bound.
    """
    if not why_no_margins(estimator):
        return tuple(estimator.goals_)
    margins = {margin.goal: margin for margin in estimator.margins_ if margin.expected is not None and margin.cost > 0}
    return tuple(
        goal.with_bound(round_safely(goal, margins[goal].value)) if goal in margins else goal
        for goal in estimator.goals_
    )


def original_bounds(estimator: Any) -> dict[str, float]:
    """Return the bounds of goals whose margins the page cannot choose itself, by the texts of what is aimed at."""
    pairs = zip(aimed_goals(estimator), estimator.goals_, strict=True)
    return {str(aim): goal.bound for aim, goal in pairs if aim.bound != goal.bound}


_HALF = 0.5


class Labels(NamedTuple):
    """The rows' labels, as positive or not, and their weights."""

    is_positive: BoolArray
    weights: FloatArray | None
    defer_cost: float = 0.0  # of a row that is not decided

    def losses(self, shares: "Shares") -> FloatArray:
        """Return the expected loss of each row from its probabilities of a positive decision and of deferral."""
        wrong = np.abs(shares.positive - self.is_positive)
        return wrong if shares.deferred is None else wrong + shares.deferred * (self.defer_cost - self.is_positive)


class Shares(NamedTuple):
    """The probability of a positive decision for each row over the draws, and that of deferral where rows may be."""

    positive: FloatArray
    deferred: FloatArray | None


class Loss(NamedTuple):
    """The mean loss, and the loss of the tail where there is one."""

    mean: float
    tail: float | None


class RowAnswers(NamedTuple):
    """The predictions of an audit: codes of decisions, or their probabilities where decisions are drawn."""

    answers: ByteArray | FloatArray
    are_drawn: bool

    @property
    def shares(self) -> Shares:
        """Return the probability of a positive decision for each row, and of deferral, where decisions are drawn."""
        if self.answers.ndim == 1:
            return Shares(np.asarray(self.answers, dtype=np.float64), None)
        return Shares(np.asarray(self.answers[:, 1]), np.asarray(self.answers[:, 2]))


class ExplorerRows:
    """Rows of a dataset with the outputs of all models, and how rules, or models, decide about them.

    Parameters
    ----------
    outputs : array of shape (n_rows, n_models)
        Scores, or whether each model predicts the positive class.
    groups : array of shape (n_rows,)
        As rules of scores use them.
    uniforms : array of shape (n_rows,), or None
        What decisions are drawn with; None where they are voted on.
    labels : Labels, or None
        Only labelled rows have losses.
    """

    def __init__(self, outputs: AnyArray, groups: IntArray, uniforms: FloatArray | None, labels: Labels | None) -> None:
        self.outputs, self.groups = np.asfortranarray(outputs), groups
        self._uniforms, self._labels = uniforms, labels
        self._last: tuple[BestMixture, Shares] | None = None  # of the last solution, which several panels ask for

    def shares(self, solution: BestMixture) -> Shares:
        """Return the probabilities of decisions about each row."""
        if self._last is None or self._last[0] is not solution:
            positive, deferred = np.zeros(self.groups.size), np.zeros(self.groups.size)
            for member in np.flatnonzero(solution.mixture).tolist():
                codes = self._decided_by(solution, member)
                positive += solution.mixture[member] * (codes == 1)
                if solution.defers:
                    deferred += solution.mixture[member] * (codes == DEFERRED)
            both = Shares(np.minimum(positive, 1.0), np.minimum(deferred, 1.0) if solution.defers else None)
            self._last = solution, both
        return self._last[1]

    def _decided_by(self, solution: BestMixture, member: int) -> ByteArray:
        """Return the decisions of one member of a mixture: 1 for positive, 2 for deferred."""
        output = self.outputs[:, int(solution.models[member])]
        if solution.thresholds is None:
            return output.view(np.uint8)
        upper, *lower = np.split(solution.thresholds[member], 1 + solution.defers)
        above = (output > upper[self.groups]).astype(np.uint8)
        return np.where(above, above, DEFERRED * (output > lower[0][self.groups])).astype(np.uint8) if lower else above

    def decide(self, solution: BestMixture) -> ByteArray:
        """Return 1 for rows that are decided positive, 2 for deferred ones: by the model's draws, or else by vote."""
        members = np.flatnonzero(solution.mixture).tolist()
        if len(members) == 1:
            return self._decided_by(solution, members[0])
        if self._uniforms is not None:
            drawn, answers = pick(self._uniforms, solution.mixture), np.empty(self.groups.size, dtype=np.uint8)
            for member in members:
                rows = drawn == member
                answers[rows] = self._decided_by(solution, member)[rows]
            return answers
        positive, deferred = self.shares(solution)
        if deferred is None:
            return (positive > _HALF).astype(np.uint8)
        shares = np.column_stack([1.0 - positive - deferred, positive, deferred])
        return np.asarray(shares.argmax(axis=1), dtype=np.uint8)

    def answers(self, solution: BestMixture) -> RowAnswers:
        """Return the predictions for an audit: probabilities where decisions are drawn, whatever the key."""
        if self._uniforms is None or np.count_nonzero(solution.mixture) == 1:
            return RowAnswers(self.decide(solution), are_drawn=False)
        positive, deferred = self.shares(solution)
        if deferred is None:
            return RowAnswers(positive, are_drawn=True)
        others = np.maximum(1.0 - positive - deferred, 0.0)
        return RowAnswers(np.column_stack([others, positive, deferred]), are_drawn=True)

    def losses(self, solution: BestMixture) -> FloatArray:
        """Return the expected loss of each row over the draws."""
        return self._labelled.losses(self.shares(solution))

    def loss(self, solution: BestMixture, alpha: float | None) -> Loss:
        """Return the expected loss over the draws."""
        losses, weights = self.losses(solution), self._labelled.weights
        mean = float(np.average(losses, weights=weights))
        if alpha is None or alpha == 1.0:
            return Loss(mean, None if alpha is None else mean)
        return Loss(mean, cvar_loss(losses, alpha, weights))

    def curve(self, solution: BestMixture, alphas: FloatArray) -> FloatArray:
        """Return the loss of the tail at each of many alphas."""
        return cvar_curve(self.losses(solution), alphas, self._labelled.weights)

    @property
    def _labelled(self) -> Labels:
        assert self._labels is not None  # noqa: S101 - losses are those of labelled rows
        return self._labels


_BINS = 25  # of a histogram
_PANELS = 6  # groups in histograms: the largest
_ALONE = np.ones(1)


class SessionState(NamedTuple):
    """The program, and the selection rows and held-out rows of each dataset."""

    program: MixtureProgram
    groups: tuple[str, ...]  # that rules distinguish; none where models are mixed
    selection: dict[str, ExplorerRows]
    held_out: dict[str, ExplorerRows]
    usual: BestMixture  # plain training: the first model by itself
    cache: dict[Any, Any]  # results that do not change

    def panels(self, parts: SessionParts, model: int) -> list[dict[str, Any]]:
        """Return histograms of a model's scores on the selection rows, by group and class; none without scores."""
        rows, data = self.selection[TRAIN], parts.selection_data
        if not isinstance(data, ScoreTable):
            return []
        if ("panels", model) not in self.cache:
            codes, names = rows.groups, list(self.groups)
            if len(names) == 1:
                codes, names = group_codes(data.answers.tables[TRAIN])
            scores = rows.outputs[:, model]
            self.cache["panels", model] = histograms(scores, data.is_positive, codes, names or ["all rows"])
        return self.cache["panels", model]  # type: ignore[no-any-return]

    def plain_mean(self, rows: str) -> float:
        """Return the mean loss of plain training on the selection rows or on held-out ones."""
        if rows not in self.cache:
            self.cache[rows] = getattr(self, rows)[TRAIN].loss(self.usual, None).mean
        return float(self.cache[rows])


def deferral_at(estimator: Any, cost: float | None) -> Deferral | None:
    """Return the ``Deferral`` of a cost, with the label that the estimator has for deferred rows."""
    if cost is None:
        return None
    own = estimator.deferral
    return Deferral(cost) if own is None else replace(own, cost=min(cost, 1.0 - own.error))


def state_of(parts: SessionParts, by: tuple[str, ...], defer: float | None = None) -> SessionState:
    """Return the rows and the program for rules that use some columns, and defer at a cost where there is one."""
    data, held_out = parts.selection_data, parts.held_out
    if isinstance(data, PoolPredictions):
        if defer is not None:
            raise ValueError("This model mixes predictions, so no row can be deferred. Leave defer empty.")
        return _of_models(data, held_out)
    estimator, groups = parts.estimator, groups_of(parts, by)
    deferral = deferral_at(estimator, defer)
    if deferral is not None:
        check_defer_label(deferral.label, estimator.classes_.tolist(), "label")
    data = data._replace(deferral=deferral)
    ranked = rank(data, groups)
    program = RulesProgram(
        ranked, keeps_default_threshold=estimator.keeps_default_threshold, decision=estimator.decision
    )
    selection = {
        name: ExplorerRows(data.scores[name], codes, None, _labels(data.answers.tables[name], data))
        for name, codes in ranked.codes.items()
    }
    later = {}
    if held_out is not None:
        for name, table in held_out.tables.items():
            codes, uniforms = groups.codes(table, f"The held-out rows of {name!r}"), held_out.uniforms[name]
            later[name] = ExplorerRows(held_out.answers[name], codes, uniforms, _labels(table, data))
    usual = np.full((1, len(groups.names) * (1 + (defer is not None))), float(data.usual[0]))
    alone = BestMixture(
        np.zeros(1, dtype=np.int64), usual, _ALONE, np.nan, np.nan, np.zeros(0), defers=(defer is not None)
    )
    return SessionState(program, groups.names, selection, later, alone, {})


def columns_of(parts: SessionParts) -> list[str]:
    """Return the columns that rules may use: sensitive columns of few values, and the baseline predictions."""
    if isinstance(parts.selection_data, PoolPredictions):
        return []
    tables = [rows.tables[TRAIN] for rows in (parts.selection_data.answers, parts.held_out) if rows is not None]
    few = [name for name in tables[0].sensitive_columns if 1 < len(values_of(tables[0], name) or ()) <= MOST_EXPLORED]
    few = [name for name in few if all(name in table.columns for table in tables)]
    if all(table.baseline is not None for table in tables):
        few.append("baseline")
    names = []
    for name in few:
        with suppress(ValueError):  # it makes no groups that rules can use
            groups_of(parts, (name,))
            names.append(name)
    return names


def check_columns(parts: SessionParts, by: tuple[str, ...], columns: Iterable[str]) -> None:
    """Refuse columns that are not offered, and columns that make groups with few rows, before computing anything."""
    if isinstance(parts.selection_data, PoolPredictions):
        if by:
            raise ValueError("This model mixes predictions, so its rules use no columns. Leave by empty.")
        return
    for name in by:
        if name not in columns:
            names = ", ".join(map(repr, columns)) or "none"
            raise ValueError(f"The rules cannot use {name[:40]!r} here. Columns that they can use: {names}.")
    groups_of(parts, by)


def groups_of(parts: SessionParts, by: tuple[str, ...]) -> RuleGroups:
    """Return the groups that columns make; errors about groups other than the model's do not name them."""
    own: RuleGroups = parts.estimator.groups_
    groups = own if by == own.by else _other_groups(parts, by)
    if len(groups.names) > MOST_EXPLORED:
        raise ValueError(
            f"{', '.join(by)} make {len(groups.names)} groups; at most {MOST_EXPLORED} can be explored. Choose fewer."
        )
    return groups


def _other_groups(parts: SessionParts, by: tuple[str, ...]) -> RuleGroups:
    tables, held_out = parts.selection_data.answers.tables, parts.held_out
    try:
        groups = find_groups(replace(as_groups(parts.estimator.by), names=by), tables[TRAIN])
        for table in (*tables.values(), *({} if held_out is None else held_out.tables).values()):
            groups.codes(table, "The rows")
    except ValueError as error:
        raise ValueError(
            f"The rules cannot use {' and '.join(by)} here: some group would have fewer than {LEAST_ROWS} rows, or "
            "exist in one dataset only. Choose other columns, or fewer."
        ) from error
    return groups


def _of_models(data: PoolPredictions, held_out: HeldOutRows | None) -> SessionState:
    def rows(table: Table, answers: AnyArray, uniforms: FloatArray | None) -> ExplorerRows:
        return ExplorerRows(answers, np.zeros(len(answers), dtype=np.int64), uniforms, _labels(table, data))

    selection = {
        name: rows(data.answers.tables[name], unpacked(bits), None) for name, bits in data.answers.positives.items()
    }
    later = {}
    if held_out is not None:
        later = {
            name: rows(held_out.tables[name], own, held_out.uniforms[name]) for name, own in held_out.answers.items()
        }
    n_models = data.losses.shape[1]
    alone = BestMixture(np.arange(n_models), None, np.eye(1, n_models)[0], np.nan, np.nan, np.zeros(0))
    return SessionState(ModelProgram(data), (), selection, later, alone, {})


def unpacked(bits: BitRows) -> BoolArray:
    """Return which rows each model calls positive, shape (n_rows, n_models)."""
    return np.unpackbits(bits.packed, axis=1, bitorder="little")[:, : bits.n_models].astype(np.bool_)


def _labels(table: Table, data: PoolPredictions | ScoreTable) -> Labels | None:
    positive = data.answers.positive.labels.positive
    cost = data.deferral.loss if isinstance(data, ScoreTable) and data.deferral else 0.0
    return None if table.y is None else Labels(np.asarray(table.y == positive), table.sample_weight, cost)


def histograms(scores: FloatArray, is_positive: AnyArray, codes: IntArray, names: list[str]) -> list[dict[str, Any]]:
    """Return how many rows of each class and group have which scores; small groups are left out, few evened out."""
    low, high = (0.0, 1.0) if scores.min() >= 0 and scores.max() <= 1 else (float(scores.min()), float(scores.max()))
    edges = np.linspace(low, high if high > low else low + 1.0, _BINS + 1)
    sizes = np.bincount(codes, minlength=len(names))
    largest = np.argsort(-sizes, kind="stable")[:_PANELS]
    panels = []
    for place in sorted(largest[np.array(shown_groups(sizes.tolist()), dtype=np.bool_)[largest]].tolist()):
        inside = codes == place
        positive, negative = (np.histogram(scores[inside & one], edges)[0] for one in (is_positive, ~is_positive))
        counts = {"positive": spread(positive), "negative": spread(negative)}
        panels.append({"group": names[place], "low": number(edges[0]), "high": number(edges[-1]), **counts})
    return panels
