"""Other thresholds for a run whose goals fail: chosen on recent labelled rows, and near those of the deployed rule.

A change plan limits how far they may be. That few decisions change is a goal on churn. That a threshold moves by at
most so much is one too: all rows whose score is further from the threshold than that keep their decision.
"""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.auditing.audit import FAILS
from counterpoise.auditing.verdicts import Verdicts
from counterpoise.goals import Goal, InfeasibleGoals, parse_goal
from counterpoise.goals.binding import prepare
from counterpoise.goals.checks import GoalCheck
from counterpoise.goals.classes import where_equal
from counterpoise.rules.families import ThresholdRules
from counterpoise.runs.data import RunRows, positive_of, read_part
from counterpoise.runs.decisions import (
    decision_inputs,
    deferral_of,
    final_estimator,
    has_class_rules,
    has_rules,
    is_drawn,
    seen_by_last,
)
from counterpoise.runs.errors import DataError, listed
from counterpoise.runs.fit import ignore_event, program
from counterpoise.runs.fitting import Work, inside_goals, report_cautions
from counterpoise.runs.folder import Run
from counterpoise.runs.monitoring import MonitorSummary, describe_others
from counterpoise.runs.rebalanced import require_mixture, write_chosen
from counterpoise.runs.results import VALIDATION
from counterpoise.runs.settings import ChangePlan, SplitSettings
from counterpoise.runs.use import rule_inputs

_DEPLOYED, _FAR = "rows_of_change_plan", "far_rows_of_change_plan"  # datasets on which its limits are goals
_DEFERRED = "_deferred"  # behind their names: those of the rows that the deployed rule defers
_WITHOUT = "decides by no rule of scores", "draws its decisions"
_PART = 0.5  # of a row: fewer may change
_PAIR = 2


class Proposal(NamedTuple):
    """Other thresholds for a run whose goals fail, or why there are none; ``print`` shows them."""

    run: Run | None  # the new one
    thresholds: dict[str, tuple[float, float]]  # by group: of the deployed rule, and of the new one
    churn: float | None = None  # part of the recent rows about which they decide differently
    reason: str = ""  # why there is no new run
    remark: str = ""  # that decisions were watched which are not those of the rule
    nearest: tuple[str, ...] = ()  # what could be met instead, where no rule within the plan meets the goals

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        thresholds = {name: {"deployed": old, "proposed": new} for name, (old, new) in self.thresholds.items()}
        folder = None if self.run is None else self.run.folder
        return self._asdict() | {"run": folder, "thresholds": thresholds, "nearest": list(self.nearest)}

    def __str__(self) -> str:
        remarks = [self.remark] if self.remark else []
        if self.run is None:
            return "\n".join([f"proposal: none. {self.reason}", *(f"    {one}" for one in (*self.nearest, *remarks))])
        heads = [f"proposal: {self.run.folder}, which changes {self.churn:.2%} of the decisions about the recent rows"]
        moves = (f"    {name}: {old:.4g} -> {new:.4g}" for name, (old, new) in self.thresholds.items())
        return "\n".join([*heads, *moves, *(f"    {one}" for one in remarks)])


def propose_run(
    run: Run,
    summary: MonitorSummary,
    data_path: str | Path | None,
    *,
    output: str | Path,
    max_move: float | None = None,
    churn: float | None = None,
    on_event: Callable[[str], None] = ignore_event,
) -> Proposal:
    """Choose thresholds again on recent labelled rows where a goal fails, within the change plan of the run.

    Parameters
    ----------
    run : Run
        The deployed run, which stays as it is. Its data files must be where they were.
    summary : MonitorSummary
        From ``monitor_run``: where no goal fails nothing is proposed.
    data_path : path or None
        A CSV or Parquet file with the columns of the run and a label in each row.
    output : path
        The new run folder, whose validation rows are those of the file.
    max_move : float, optional
        By how much the threshold of a group may move. Default: ``change_plan.max_move`` of the goals file.
    churn : float in (0, 1], optional
        The part of the decisions that may change. Default: ``change_plan.churn``.
    on_event : callable
        Called with lines for people.

    Returns
    -------
    Proposal
        Without a run where no goal fails, where the rule of the run meets on the recent rows what decisions of others
        have failed, or where no rule within the plan meets the goals.
    """
    if not summary.fails:
        return Proposal(None, {}, reason=_why_none(summary.verdicts))
    if data_path is None:
        raise ValueError(
            "A proposal needs recent labelled rows: pass a batch that has labels, or a file with --recent."
        )
    remark = describe_others(summary.lines)
    if remark:
        part = read_part([Path(data_path)], run.columns, run.settings)
        failing = [one.goal for one in summary.verdicts if one.verdict == FAILS]
        if all(check.holds for check in _checks(run, part, Path(data_path), failing)):
            texts = " and ".join(str(goal.with_confidence(None)) for goal in failing)
            reason = (
                f"On the recent rows the rule of the run meets {texts}: other thresholds would not mend what fails."
            )
            return Proposal(None, {}, reason=reason, remark=remark)
    given = {name: value for name, value in (("max_move", max_move), ("churn", churn)) if value is not None}
    plan = ChangePlan.model_validate(run.settings.change_plan.model_dump() | given)
    rows = os.path.relpath(Path(data_path).resolve(), run.sources.resolve())
    changes = {"splits": SplitSettings(test=0, validation_files=[rows]), "change_plan": plan}

    def choose(work: Work) -> Any:
        model = run.waiting_model()
        require_mixture(model, run.settings)
        deployed = Deployed.of(model, work.data.splits[VALIDATION])
        with report_cautions(work.warn):
            return deployed.rebalance(work, plan)

    words = [*program(), "monitor", run.folder.name, "--propose", Path(output).name, "--recent", Path(rows).name]
    words += [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", repr(value))]
    try:
        made = write_chosen(run, changes, choose, output, on_event, command=shlex.join(words))
    except InfeasibleGoals as error:
        hints = tuple(getattr(error, "__notes__", ()))
        together = " and ".join(_in_words(goal, plan) for goal in error.conflict)
        reason = f"On the recent rows no {error.kind} meets {together}."
        return Proposal(None, {}, reason=reason, remark=remark, nearest=(*_nearest(error, plan), *hints))
    return _compare(run, made, Path(data_path))._replace(remark=remark)


def _why_none(verdicts: Verdicts) -> str:
    """Return that no goal fails, and which are undecided although a change was noticed."""
    noticed = [str(one.goal.with_confidence(None)) for one in verdicts if one.changed_at is not None]
    though = f" yet, although a violation of {' and of '.join(noticed)} was noticed: the verdicts are about all rows"
    return f"No goal fails{though if noticed else ''}."


def _checks(run: Run, part: RunRows, path: Path, goals: Sequence[Goal]) -> list[GoalCheck]:
    """Return how goals stand on labelled rows by the decisions of a run."""
    model, deferral = run.waiting_model(), deferral_of(run.waiting_model())
    classes = np.asarray(final_estimator(model).classes_)
    options = {"classes": classes, "pos_label": positive_of(classes, run.settings.data.positive)}
    options["defer_label"] = None if deferral is None else deferral.label
    decisions = np.asarray(model.predict(part.X, **rule_inputs(run, model, part, path)))
    prepared = prepare(decisions, part.table(), kind="labels", **options)
    return [goal.evaluate_where_possible(prepared) for goal in goals]


def _compare(run: Run, made: Run, path: Path) -> Proposal:
    """Return a new run with what it decides otherwise than the deployed one about the rows of a file."""
    part = read_part([path], run.columns, run.settings, labelled=False)
    models = run.waiting_model(), made.waiting_model()
    before, after = (model.predict(part.X, **rule_inputs(run, model, part, path)) for model in models)
    return Proposal(made, _thresholds(*map(final_estimator, models)), float(np.mean(before != after)))


def _thresholds(deployed: Any, chosen: Any) -> dict[str, tuple[float, float]]:
    """Return the thresholds of two rules of the same score by group; none where they are no such rules."""
    if not all(hasattr(one, "rules_") and isinstance(one.family_, ThresholdRules) for one in (deployed, chosen)):
        return {}
    rules = [*deployed.rules_, *chosen.rules_]
    if len(rules) > _PAIR or rules[0].model != rules[1].model:
        return {}
    ends = zip(*(rule.levels for rule in rules), strict=True)  # upper ones, then lower ones
    defers = rules[0].lower is not None
    names = [
        [f"{name}, {where}" if defers else name for name in rules[0].thresholds]
        for where in ("positive above", "negative below")
    ]
    return {
        name: (old, new)
        for own, pair in zip(names, ends, strict=True)
        for name, old, new in zip(own, *pair, strict=True)
    }


def _limit_of(goal: Goal) -> str:
    """Return of which limit of a plan a goal is; an empty text for a goal of the run."""
    return next((name for name in (_FAR, _DEPLOYED) if goal.datasets[0].startswith(name)), "")


def _in_words(goal: Goal, plan: ChangePlan) -> str:
    words = {_DEPLOYED: f"change_plan.churn = {plan.churn}", _FAR: f"change_plan.max_move = {plan.max_move}"}
    return words.get(_limit_of(goal), str(goal.with_confidence(None)))


def _nearest(error: InfeasibleGoals, plan: ChangePlan) -> Iterator[str]:
    """Yield what can be met instead, one of them at a time; a move of thresholds is no bound that can be set so."""
    for way in error.ways_out:
        if any(_limit_of(goal) == _FAR for goal in way):
            continue
        yield "what can be met: " + " and ".join(
            f"change_plan.churn = {(plan.churn or 0.0) + new.bound - old.bound:g}"
            if _limit_of(old)
            else f"{new} in place of {old}"
            for old, new in way.items()
        )


class Deployed(NamedTuple):
    """The deployed model, and what it decides about recent labelled rows."""

    model: Any
    part: RunRows
    decisions: AnyArray

    @classmethod
    def of(cls, model: Any, part: RunRows) -> "Deployed":
        """Decide about recent rows."""
        inputs = decision_inputs(part) if has_rules(model) else {}
        return cls(model, part, np.asarray(model.predict(part.X, **inputs)))

    def rebalance(self, work: Work, plan: ChangePlan) -> Any:
        """Return the model with the best rule on the recent rows that meets the goals within a plan."""
        limits, rows = self._limits(plan)
        limited = work._replace(goals=(*work.goals, *limits), data=work.data._replace(extra=work.data.extra | rows))
        try:
            chosen = self._choose(limited)
        except InfeasibleGoals as error:
            with suppress(InfeasibleGoals):
                if limits:
                    error.add_note(self._describe_free(self._choose(work)))
            raise
        self._check_groups(chosen)
        if plan.max_move is not None:
            self._keep_near(final_estimator(chosen), plan.max_move)
        return chosen

    def _choose(self, work: Work) -> Any:
        part = self.part
        columns: dict[str, Any] = {"sensitive_features": part.groups or None, "baseline": part.baseline}
        columns["ids"] = part.ids
        columns |= {"sample_weight": part.weights, "largest_weight": part.largest_weight}
        columns |= {"largest_value": part.largest_value}
        return inside_goals(work, self.model, X=seen_by_last(self.model, part.X), y=part.y, **columns)

    def _limits(self, plan: ChangePlan) -> tuple[list[Goal], dict[str, RunRows]]:
        """Return the limits of a plan as goals, and the rows that they are about by name of dataset."""
        limits: list[Goal] = []
        rows: dict[str, RunRows] = {}
        if plan == ChangePlan():
            return limits, rows
        if not has_rules(self.model) or is_drawn(self.model):
            raise ValueError(
                f"A change plan limits how far one rule may move; this run {_WITHOUT[has_rules(self.model)]}. Propose "
                "without --max-move and --churn: the proposal says what part of the decisions it changes."
            )
        if plan.churn is not None:
            limits.append(self._limit_changes(_DEPLOYED, self.part, self.decisions, plan.churn, rows))
        far = (
            np.zeros(0, dtype=np.int64) if plan.max_move is None else np.flatnonzero(self._distances() > plan.max_move)
        )
        if far.size:
            part = replace(self.part.rows(far), weights=None, population=False)
            limits.append(self._limit_changes(_FAR, part, self.decisions[far], _PART / far.size, rows))
        return limits, rows

    def _limit_changes(
        self, name: str, part: RunRows, decisions: AnyArray, most: float, rows: dict[str, RunRows]
    ) -> Goal:
        """Return the goal that few decisions about some rows change, which it adds to the rows by name.

        Where rows are deferred, those that were decided and those that were deferred are two datasets.
        """
        deferral = deferral_of(self.model)
        known = replace(part, y=None, baseline=decisions)
        if deferral is None:
            rows[name] = known
            return parse_goal(f"churn({name}) <= {most!r}")
        is_deferred, terms = where_equal(decisions, deferral.label), []
        masses = np.ones(len(part)) if part.weights is None else part.weights
        for kind, places in (("", ~is_deferred), (_DEFERRED, is_deferred)):
            if not places.any():
                continue
            own, share = name + kind, float(masses[places].sum() / masses.sum())
            rows[own] = known.rows(np.flatnonzero(places))
            if kind:
                rows[own] = replace(rows[own], baseline=None)
            terms.append(
                f"{share!r} * " + (f"(1 - defer_rate({own}))" if kind else f"(churn({own}) + defer_rate({own}))")
            )
        return parse_goal(f"{' + '.join(terms)} <= {most!r}")

    def _distances(self) -> FloatArray:
        """Return how far the score of each row is from the nearest threshold of its group."""
        estimator = final_estimator(self.model)
        if has_class_rules(self.model):
            raise ValueError("max_move limits thresholds, and rules of more than two classes have none. Use churn.")
        rows, rule = estimator.rows_to_decide(self.part.X, **decision_inputs(self.part)), estimator.rules_[0]
        scores = rows.output_of(rule.model)
        return np.asarray(np.min([np.abs(scores - np.array(ends)[rows.groups]) for ends in rule.levels], axis=0))

    def _check_groups(self, chosen: Any) -> None:
        """Refuse rows on which a group of the deployed rule gets no threshold of its own."""
        if not has_rules(chosen):
            return
        known = [set(final_estimator(model).groups_.names) for model in (self.model, chosen)]
        missing = sorted(known[0] - known[1])
        if missing:
            raise DataError(
                f"The recent rows hold too few rows of {listed(missing)} to choose the thresholds of these groups. "
                "Pass more rows with --recent."
            )

    def _keep_near(self, chosen: Any, most: float) -> None:
        """Move thresholds no further than they may: between the scores of two rows any level decides the same."""
        if not _thresholds(final_estimator(self.model), chosen):
            return
        rule, old = chosen.rules_[0], final_estimator(self.model).rules_[0]
        near = [
            dict(zip(rule.thresholds, np.clip(new, np.array(own) - most, np.array(own) + most).tolist(), strict=True))
            for new, own in zip(rule.levels, old.levels, strict=True)
        ]
        chosen.rules_ = [rule._replace(thresholds=near[0], lower=None if rule.lower is None else near[1])]

    def _describe_free(self, free: Any) -> str:
        """Return how far the best rule without a plan is from the deployed one."""
        moves = _thresholds(final_estimator(self.model), final_estimator(free)).values()
        after = free.predict(self.part.X, **decision_inputs(self.part))
        far = f", with thresholds that move by up to {max(abs(new - old) for old, new in moves):.4g}" if moves else ""
        changed = float(np.mean(after != self.decisions))
        return f"without a change plan: a rule that changes {changed:.2%} of the decisions{far}"
