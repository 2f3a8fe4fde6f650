"""Every number about a fitted run, as rows of the results table, and the words that belong to them."""

import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.goals import Goal, Rate, Ratio, Table
from counterpoise.goals.audit import Audit, audit
from counterpoise.metrics import cvar_curve, rate_table
from counterpoise.mixtures.pool import failures, pool_codes
from counterpoise.mixtures.tradeoff import TradeoffPoint, tradeoff
from counterpoise.runs.data import Data, Part
from counterpoise.runs.fitting import last_step, mixes, seen_by_last
from counterpoise.runs.methods import METHODS, describe, kind_of
from counterpoise.runs.objectives import aim_of, aim_words, worst_group_loss
from counterpoise.runs.quantities import (
    AVERAGE,
    CVAR,
    DEPLOYED,
    FIRST,
    MIXTURE,
    N_SAMPLES,
    OWN,
    TEST,
    VERDICTS,
    WORST_GROUP,
    of_goal,
    of_group,
    rates_in,
    trials_of_group,
)
from counterpoise.runs.results import ResultRow
from counterpoise.runs.segments import find_segments, why_no_segments
from counterpoise.runs.settings import MethodSettings, RunSettings

_ALPHAS = (*np.geomspace(0.01, 1.0, 30), 0.05, 0.1, 0.2, 0.5)  # a smooth curve, and round numbers to quote
_POINTS = 21  # of a frontier
_FRONTIER_TOL = 1e-4  # gap of its points: a figure shows no less
_RATIO_RANGE = 0.1  # on either side of a ratio's bound, whose range is not known beforehand
_ROUNDING = 1e-9  # by which an estimate may seem outside its bound: sums over rows are not exact


class Measured(NamedTuple):
    """Rows of the results table, and texts by kind."""

    rows: list[ResultRow]
    texts: dict[str, Any]


class Judge:
    """Measures a model on the rows of a run."""

    def __init__(
        self, settings: RunSettings, data: Data, model: Any, goals: tuple[Goal, ...], plain: Any = None
    ) -> None:
        self.settings, self.data, self.model, self.goals, self.plain = settings, data, model, goals, plain
        self.alphas = np.unique([*_ALPHAS, float(settings.alpha)])
        self.alphas[-1] = 1.0
        self.aim = aim_of(model)
        self._decided: dict[str, AnyArray] = {}
        self._asked: tuple[str, AnyArray] | None = None  # the split whose losses were found last, by all models

    def row(self, method: str, quantity: str, split: str, value: float, **more: Any) -> ResultRow:
        """Return one number."""
        learner = self.settings.method.learner.name if self.settings.method.learner else ""
        alpha, words = more.get("alpha"), more.get("settings", "")
        seed = self.settings.seed
        return ResultRow("run", self.data.name, learner, method, seed, alpha, quantity, split, float(value), words)

    def everything(self, seconds: float) -> Measured:
        """Return all rows and texts of a run, given how long its fit took."""
        judged = TEST if TEST in self.data.splits else self.data.chosen_on
        started = time.monotonic()
        self.decisions(judged)
        predict_seconds = time.monotonic() - started
        rows = [self.row("data", "columns", "", len(self.data.columns.features))]
        for split in self.data.splits:
            rows += [*self.data_rows(split), *self.loss_rows(split), *self.objective_rows(split)]
            rows += self.goal_rows(split)
        segments, words = self.segment_rows(judged)
        rows += [*self.group_rows(judged), *self.frontier_rows(), *self.share_rows(judged), *segments]
        rows += [self.row("fit", "seconds", "", seconds), self.row("predict", "seconds", judged, predict_seconds)]
        return Measured(rows, self.texts(judged) | {"segments": words, "why": self.reasons(rows, judged)})

    def decisions(self, split: str) -> AnyArray:
        """Return what the model decides about a split or an extra dataset, asked once."""
        if split not in self._decided:
            part = {**self.data.splits, **self.data.extra}[split]
            self._decided[split] = np.asarray(self.model.predict(part.X))
        return self._decided[split]

    def data_rows(self, split: str) -> Iterator[ResultRow]:
        """Yield how many rows a split has, and of which classes."""
        labels = self.data.splits[split].labels
        yield self.row("data", "rows", split, len(labels))
        for label in self.data.classes:
            yield self.row("data", "class share", split, float(np.mean(labels == label)), settings=str(label))

    def row_losses(self, split: str) -> dict[str, FloatArray]:
        """Return for each method the probability that it errs on each row of a split."""
        part = self.data.splits[split]
        found = {MIXTURE: (self.decisions(split) != part.labels).astype(np.float64)}
        if mixes(self.model):
            losses, mixture = self._model_losses(split)
            if last_step(self.model).decision != "vote":
                found[MIXTURE] = _expected(losses, mixture)
            found |= {FIRST: losses[:, 0].astype(np.float64), AVERAGE: losses.mean(axis=1)}
        elif self.plain is not None:
            found[FIRST] = (np.asarray(self.plain.predict(part.X)) != part.labels).astype(np.float64)
        return found

    def loss_rows(self, split: str) -> Iterator[ResultRow]:
        """Yield the error and the CVaR at many tail fractions, by method."""
        weights = self.data.splits[split].weights
        for method, losses in self.row_losses(split).items():
            yield self.row(method, "error", split, float(np.average(losses, weights=weights)))
            values = cvar_curve(losses, self.alphas, weights)
            for alpha, value in zip(self.alphas.tolist(), values.tolist(), strict=True):
                yield self.row(method, "cvar", split, value, alpha=alpha)

    def audit(self, split: str, goals: Iterable[Goal], first: Any = None) -> Audit:
        """Return the audit of the decisions, or of another model's, with a split in the place of ``train``."""
        parts = self._datasets(split)
        said = {
            name: self.decisions(split if name == "train" else name) if first is None else np.asarray(first(part.X))
            for name, part in parts.items()
        }
        tables = self._tables(parts)
        if not self._is_binary:
            said = {name: labels == self.data.positive for name, labels in said.items()}
        asked = {name for goal in goals for name in goal.datasets}
        return audit(
            list(goals),
            {name: labels for name, labels in said.items() if name in asked},
            {name: table for name, table in tables.items() if name in asked},
            confidence=self.settings.confidence,
            pos_label=self._pos_label,
        )

    def objective_rows(self, split: str) -> Iterator[ResultRow]:
        """Yield what was made small, where it is a rate or the worst group's loss, in expectation over the draws."""
        if self.aim == WORST_GROUP:
            part = self.data.splits[split]
            found = self.row_losses(split)
            if part.baseline is not None:
                found[DEPLOYED] = (part.baseline != part.labels).astype(np.float64)
            for method in (MIXTURE, FIRST, DEPLOYED):
                if method in found:
                    yield self.row(method, "objective", split, worst_group_loss(found[method], part))
        if not isinstance(self.aim, Rate):
            return
        parts = {name: part for name, part in self._datasets(split).items() if name in self.aim.datasets}
        for method in (MIXTURE, FIRST, DEPLOYED):
            said = {name: self._positive_shares(method, split if name == "train" else name) for name in parts}
            if any(shares is None for shares in said.values()):
                continue
            with suppress(ValueError):  # a rate has no value on a split that lacks the rows it is out of
                value = self.aim.expected_value(said, self._tables(parts), pos_label=self._pos_label)
                yield self.row(method, "objective", split, value)

    def goal_rows(self, split: str, unasked: Collection[str] = ()) -> Iterator[ResultRow]:
        """Yield how each goal stands on a split, but for some by name, for the model and for plain training."""
        numbered = {f"goal {number}": goal for number, goal in enumerate(self.goals, start=1)}
        asked = {name: goal for name, goal in numbered.items() if name not in unasked}
        if not asked:
            return
        for goal, found in zip(asked, self.audit(split, asked.values()), strict=True):
            parts = {name: getattr(found, name) for name in ("estimate", "low", "high", "bound", "margin")}
            parts |= {"verdict": VERDICTS[found.verdict], "violation": _violation(found)}
            parts["rows"] = sum(count for _, count in found.counts)
            for name, value in parts.items():
                yield self.row(MIXTURE, of_goal(name), split, value, settings=goal)
        first = self._first_model()
        if first is None:
            return
        for goal, found in zip(asked, self.audit(split, asked.values(), first), strict=True):
            for name, value in (("estimate", found.estimate), ("violation", _violation(found))):
                yield self.row(FIRST, of_goal(name), split, value, settings=goal)

    def group_rows(self, split: str) -> Iterator[ResultRow]:
        """Yield the rates of every group, and out of how many rows each is."""
        for place, found in enumerate(self._rates(split)):
            values = {of_group(N_SAMPLES): found.n_samples}
            values |= {of_group(rate): value for rate, value in found.rates.items() if not np.isnan(value)}
            values |= {trials_of_group(rate): count for rate, count in found.trials.items() if count}
            for name, value in values.items():
                yield self.row(MIXTURE, name, split, value, settings=f"group {place}")

    def frontier_rows(self) -> Iterator[ResultRow]:
        """Yield the least of what was made small for many bounds of each goal; alpha where it is the tail's loss."""
        if not mixes(self.model):
            return
        estimator = last_step(self.model)
        alpha = estimator.alpha_ if self.aim == CVAR else None
        for number, goal in enumerate(estimator.goals_, start=1):
            for bound, point in sorted(_frontier(estimator, goal).items()):
                where = {"alpha": alpha, "settings": f"goal {number} bound={bound!r}"}
                for name in ("value", "lower"):
                    yield self.row(MIXTURE, f"frontier {name}", self.data.chosen_on, getattr(point, name), **where)

    def segment_rows(self, split: str) -> tuple[list[ResultRow], list[dict[str, str]]]:
        """Return which segments of a split the tail is made of: their numbers, and their words."""
        alpha, part = float(self.settings.alpha), self.data.splits[split]
        segments = find_segments(part, self.row_losses(split)[MIXTURE], alpha)
        rows = []
        for number, one in enumerate(segments, start=1):
            where = {"settings": f"segment {number}", "alpha": alpha}
            parts = {"tail share of segment": one.share, "tail part": one.part, "segment rows": one.n_rows}
            parts["tail lift"] = one.lift
            rows += [self.row(MIXTURE, name, split, value, **where) for name, value in parts.items()]
        return rows, _named("segment", (one.text for one in segments))

    def share_rows(self, split: str) -> Iterator[ResultRow]:
        """Yield the share of each model in the mixture and its error."""
        if not mixes(self.model):
            return
        losses, mixture = self._model_losses(split)
        for number, share in enumerate(mixture.tolist(), start=1):
            yield self.row(f"model {number}", "share", "", share)
            yield self.row(f"model {number}", "error", split, float(losses[:, number - 1].mean()))

    def texts(self, judged: str) -> dict[str, Any]:
        """Return the words that belong to the rows."""
        data = self.data
        counts = ", ".join(f"{len(part)} {name}" for name, part in data.splits.items())
        positive = "" if data.positive is None else f", positive class {data.positive}"
        kinds = {"numeric": len(data.columns.numeric), "categorical": len(data.columns.categorical)}
        goals = [
            {
                "name": f"goal {number}",
                "text": str(goal.with_confidence(None)),
                "confidence": self.settings.confidence if goal.confidence is None else goal.confidence,
            }
            for number, goal in enumerate(self.goals, start=1)
        ]
        return {
            "goals": goals,
            "groups": _named("group", (found.group for found in self._rates(judged)), start=0),
            "models": self._model_texts(),
            "method": _method_text(self.settings.method),
            "objective": aim_words(self.aim),
            "met_on": self._met_on(),
            "data": [
                f"{data.name}: {counts} rows; target {self.settings.data.target}{positive}.",
                f"Features: {' and '.join(f'{count} {kind}' for kind, count in kinds.items() if count)}.",
                *_weight_words(self.settings),
            ],
        }

    def reasons(self, rows: Iterable[ResultRow], judged: str) -> dict[str, str]:
        """Return for each part of a report that has no rows why it has none."""
        known, found = {row.quantity for row in rows}, {}
        if not rates_in(known):
            several = f"there are {len(self.data.classes)} classes"
            found["groups"] = f"{several}, and data.positive names none of them as the positive one"
        if "frontier value" not in known:
            found["frontier"] = self._why_no_frontier()
        if "tail part" not in known:
            none_stands_out = "no segment that a few conditions describe has notably more of them than the other rows"
            why = why_no_segments(len(self.data.splits[judged]), float(self.settings.alpha))
            found["segments"] = why or none_stands_out
        return found

    def _why_no_frontier(self) -> str:
        if not self.goals:
            return "no goals were asked for"
        if not mixes(self.model):
            return "it needs a mixture, whose models can be weighed anew for another bound without training"
        if not last_step(self.model).goals_:
            return "the goals are judged only; the mixture was chosen without them"
        return "no mixture of these models meets the bounds tried"

    def _met_on(self) -> str:
        """Return the split on which the draws meet the goals by construction, nothing where there is none."""
        estimator = last_step(self.model)
        inside = mixes(self.model) and estimator.goals_ and estimator.decision != "vote"
        return self.data.chosen_on if inside and self.aim != OWN else ""

    def _model_texts(self) -> list[dict[str, str]]:
        estimator, asked = last_step(self.model), self.settings.method
        if not mixes(self.model):
            return []
        if asked.models:
            words = [(one.title or kind_of(one).title, describe(one)) for one in asked.models]
        else:
            learner = describe(asked.learner) if asked.learner else "histogram tree"
            words = [(f"round {number}", learner) for number in range(1, len(estimator.estimators_) + 1)]
        return [
            {"name": f"model {number}", "title": title, "description": text}
            for number, (title, text) in enumerate(words, start=1)
        ]

    def _model_losses(self, split: str) -> tuple[AnyArray, FloatArray]:
        """Return where each model errs on a split, and the mixture."""
        estimator, part = last_step(self.model), self.data.splits[split]
        if self._asked is None or self._asked[0] != split:
            pool = estimator._pool().members  # noqa: SLF001 - of our own kind
            codes = pool_codes(pool, seen_by_last(self.model, part.X), estimator.classes_, estimator.n_jobs)
            self._asked = split, failures(codes, np.searchsorted(estimator.classes_, part.labels))
        return self._asked[1], estimator.mixture_

    @property
    def _is_binary(self) -> bool:
        return len(self.data.classes) == 2  # noqa: PLR2004

    @property
    def _pos_label(self) -> Any:
        return self.data.positive if self._is_binary else True

    def _datasets(self, split: str) -> dict[str, Part]:
        """Return what goals call their datasets, with a split in the place of ``train``."""
        return {"train": self.data.splits[split], **self.data.extra}

    def _tables(self, parts: dict[str, Part]) -> dict[str, Table]:
        return {
            name: (part if self._is_binary else part.of_two(self.data.positive)).table() for name, part in parts.items()
        }

    def _positive_shares(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a method says the positive class of each row; None where it says nothing about them."""
        part, positive = {**self.data.splits, **self.data.extra}[name], self.data.positive
        if method == DEPLOYED:
            said = part.baseline
        elif method == FIRST:
            first = self._first_model()
            said = None if first is None else np.asarray(first(part.X))
        elif mixes(self.model) and last_step(self.model).decision != "vote":
            place = last_step(self.model).classes_.tolist().index(positive)
            return np.asarray(self.model.predict_proba(part.X)[:, place])
        else:
            said = self.decisions(name)
        return None if said is None else (said == positive).astype(np.float64)

    def _first_model(self) -> Any:
        if not mixes(self.model):
            return None if self.plain is None else self.plain.predict
        estimator = last_step(self.model)
        first = estimator.estimators_[0]
        return lambda frame: first.predict(seen_by_last(self.model, frame))

    def _rates(self, split: str) -> Any:
        part, positive = self.data.splits[split], self.data.positive
        if positive is None:
            return ()
        said, y, baseline = (
            None if labels is None else labels == positive
            for labels in (self.decisions(split), part.labels, part.baseline)
        )
        assert said is not None  # noqa: S101 - decisions are there
        return rate_table(said, y, part.groups or None, baseline=baseline, sample_weight=part.weights, pos_label=True)


def _frontier(estimator: Any, goal: Goal) -> dict[float, TradeoffPoint]:
    """Return points by their bound, the goal's own among them."""
    options: dict[str, Any] = {"n_points": _POINTS, "tol": _FRONTIER_TOL}
    if isinstance(goal.left, Ratio):
        near = np.clip(goal.bound + np.linspace(-_RATIO_RANGE, _RATIO_RANGE, _POINTS), 0.0, None)
        points = [*tradeoff(estimator, goal, near, **options)]
    else:
        points = [*tradeoff(estimator, goal, **options), *tradeoff(estimator, goal, [goal.bound], **options)]
    return {point.bound: point for point in points if not np.isnan(point.value)}


def _method_text(asked: MethodSettings) -> str:
    """Return the method in words; its objective has its own."""
    title = METHODS[asked.name].title
    others = {name: value for name, value in asked.parameters.items() if name != "objective"}
    parameters = describe(asked.model_copy(update={"parameters": others})).removeprefix(title)
    models = f" of {len(asked.models)} models" if asked.models else ""
    learner = f", base learner: {describe(asked.learner)}" if asked.learner else ""
    return title + models + parameters + learner


def _weight_words(settings: RunSettings) -> Iterator[str]:
    """Yield what the verdicts on weighted rows rest on."""
    parts = {"": settings.data, **{f" of {name}": one for name, one in settings.datasets.items()}}
    for where, one in parts.items():
        if one.largest_weight is not None:
            most = f"none is taken to weigh more than {one.largest_weight:g}"
            yield f"Rows{where} are weighted by {settings.data.weights}; {most}."


def _expected(losses: AnyArray, mixture: FloatArray) -> FloatArray:
    total = np.zeros(len(losses))
    for model in np.flatnonzero(mixture):
        total += mixture[model] * losses[:, model]
    return np.minimum(total, 1.0)


def _violation(found: Any) -> float:
    outside = found.estimate - found.bound if found.goal.sense == "<=" else found.bound - found.estimate
    return float(outside) if outside > _ROUNDING else 0.0


def _named(kind: str, texts: Iterable[str], *, start: int = 1) -> list[dict[str, str]]:
    return [{"name": f"{kind} {number}", "text": text} for number, text in enumerate(texts, start=start)]
