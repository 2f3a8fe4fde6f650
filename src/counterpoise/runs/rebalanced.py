"""Choosing another mixture of a finished run: another run of the same models, which trains nothing."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from counterpoise._base.checks import check_alpha, check_confidence, check_number
from counterpoise.classifiers.base import NEVER
from counterpoise.goals.bound_goals import validate_goals
from counterpoise.rules.choosing import as_problem
from counterpoise.rules.draws import make_key, require_draws
from counterpoise.rules.options import STICKY, Draws, as_groups, kind_of_decision
from counterpoise.runs.decisions import final_estimator, mixes
from counterpoise.runs.fit import ignore_event, program
from counterpoise.runs.fitting import Work, inside_goals, report_cautions
from counterpoise.runs.folder import Run, Writer, fingerprint, keep_key, read_json
from counterpoise.runs.goals_file import goals_of, rewritten
from counterpoise.runs.methods import GOALS as SCORED
from counterpoise.runs.methods import as_values, defers
from counterpoise.runs.places import CHECKPOINT, KEY, SETTINGS
from counterpoise.runs.settings import GoalSettings, RunSettings, data_files
from counterpoise.runs.steps import check_goals, finish
from counterpoise.runs.use import known_goals, own_data


def rebalance_run(
    run: Run,
    *,
    alpha: float | None = None,
    objective: str | None = None,
    goals: Any = None,
    budget: float | None = None,
    by: Sequence[str] | None = None,
    defer_cost: float | str | None = None,
    decision: str | None = None,
    confidence: float | str | None = None,
    proof: bool | None = None,
    output: str | Path,
    on_event: Callable[[str], None] = ignore_event,
) -> Run:
    """Choose another mixture of a run's models, for another tail, objective or goals; nothing is trained.

    Parameters
    ----------
    run : Run
        Of a method that mixes models. Its data files must be where they were.
    alpha : float in (0, 1], optional
        Another tail; short for the objective ``CVaR(alpha)``.
    objective : str, optional
        The text of a risk or a rate. Default: as before, unless alpha is given.
    goals : goals or their texts, optional
        They replace those of the run.
    budget : float in [0, 1], optional
        The most that the mean loss may be above the least that is possible under the goals; 1 for no limit.
    by : sequence of str, optional
        For rules of scores: other columns that they may use.
    defer_cost : float in [0, 1] or "never", optional
        Another loss of a row that is deferred, or that none is. Default: as before.
    decision : {"fixed", "sticky", "sample", "vote"}, optional
        Another way to decide; a tail (``alpha`` below 1) needs a mixture. Default: as before.
    confidence : float in (0, 1) or "none", optional
        Another probability with which the goals hold together on new rows, or no margins. Default: as before.
    proof : bool, optional
        Whether exact tests prove that, on rows that are kept for them. Default: as before.
    output : path
        The new run folder.
    on_event : callable
        Called with lines for people, such as which goal keeps the confidence out of reach.

    Returns
    -------
    Run
        The new one.
    """
    others: dict[str, Any] = {"budget": budget, "by": None if by is None else list(by)}
    others |= {"defer_cost": defer_cost, "decision": decision}
    others = {name: value for name, value in others.items() if value is not None}
    margins: dict[str, Any] = {"confidence": confidence, "proof": proof}
    changes = changed(run.settings, alpha=alpha, objective=objective, goals=goals, **margins, **others)
    if changes.get("confidence", run.settings.confidence) == "none" and changes.get("proof", run.settings.proof):
        raise ValueError("A proof needs a confidence; got proof with confidence 'none'. Pass a number such as 0.9.")

    def choose(work: Work) -> Any:
        model = run.waiting_model()
        require_mixture(model, run.settings)
        with report_cautions(work.warn):
            if others.get("decision") == STICKY and not (run.folder / KEY).exists():
                others["decision"] = Draws(make_key(None))  # that of a run without draws follows from its seed
            if "defer_cost" in others:
                del others["defer_cost"]
                others["deferral"] = as_values(work.settings.method.parameters).get("deferral", NEVER)
            return inside_goals(work, model, alpha=changes.get("alpha"), objective=objective, **others)

    return write_chosen(run, changes, choose, output, on_event)


def require_mixture(model: Any, settings: RunSettings) -> None:
    """Refuse a model that is no mixture."""
    if not mixes(model):
        raise ValueError(f"The method {settings.method.name!r} has no mixture to choose again.")


def changed(
    settings: RunSettings,
    *,
    alpha: float | None = None,
    objective: str | None = None,
    goals: Any = None,
    confidence: float | str | None = None,
    proof: bool | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Return the fields of settings that ask for something else, with arguments as for ``rebalance_run``."""
    changes: dict[str, Any] = {} if alpha is None else {"alpha": check_alpha(alpha)}
    method, cost = settings.method, others.pop("defer_cost", None)
    parameters = dict(method.parameters)
    if alpha is not None or objective is not None:  # without the latter the tail is the objective
        parameters.pop("objective", None)
    if objective is not None:
        parameters["objective"] = str(as_problem(None, objective, ()).objective)
    parameters |= others
    if cost is not None:
        if method.name != SCORED:
            name = f"the method {method.name!r} has none to defer between"
            raise ValueError(f"defer_cost is for rules of scores; {name}.")
        before = parameters.pop("deferral", {})
        if cost != NEVER:
            meaning = f"the loss of a row that a person decides about, or {NEVER!r}"
            own = {"cost": check_number(cost, "defer_cost", "[0, 1]", meaning)}
            parameters["deferral"] = {**before, **own}
    is_changed = alpha is not None or objective is not None or bool(others) or cost is not None
    method = method.model_copy(update={"parameters": parameters}) if is_changed else method
    if goals is not None:
        texts = [(str(goal.with_confidence(None)), goal.confidence) for goal in known_goals(goals, settings)]
        changes["goals"] = [GoalSettings(goal=text, confidence=own) for text, own in texts]
    if confidence is not None:
        changes["confidence"] = confidence if confidence == "none" else check_confidence(confidence)
    if proof is not None:
        changes["proof"] = proof
    return changes if method is settings.method else changes | {"method": method}


def write_chosen(
    run: Run,
    changes: dict[str, Any],
    choose: Callable[[Work], Any],
    output: str | Path,
    on_event: Callable[[str], None] = ignore_event,
) -> Run:
    """Write a run of the same models with another mixture, and its result.

    Parameters
    ----------
    run : Run
        Whose models they are. Its data files must be where they were.
    changes : dict
        The fields of the run's settings that are others, from ``changed``.
    choose : callable
        Called with the work to do, it returns the whole model with its mixture.
    output : path
        The new run folder.
    on_event : callable
        Called with lines for people.

    Returns
    -------
    Run
        The new one.
    """
    settings = run.settings.model_copy(update=changes)
    validate_goals(goals_of(settings), defers=defers(settings.method))
    content = rewritten(settings, sources=run.sources).encode()
    origin = str(read_json(run.folder / SETTINGS)["fingerprint"])
    fingerprints = fingerprint(settings, data_files(settings, run.sources), origin=origin)
    writer = Writer(Path(output))
    with writer.claim(fingerprints) as is_to_do:
        if is_to_do:
            data = own_data(run, settings)
            goals = check_goals(settings, data)
            checkpoint = writer.folder / CHECKPOINT
            work = Work(settings, data, goals, checkpoint, ignore_event, on_event, writer.save_model, [])
            model = choose(work)
            writer.begin(content, settings, data.columns, fingerprints, run.sources)
            writer.log(f"mixture of {run.folder.name} chosen again")
            if kind_of_decision(final_estimator(model).decision) == STICKY:
                keep_key(writer.folder, require_draws(final_estimator(model)).key)
            writer.save_model(model)
            command = command_for(run, settings, changes, writer.folder)
            finish(work, writer, fingerprints, model, [command])
    return Run(writer.folder, settings)


def command_for(run: Run, settings: RunSettings, changes: dict[str, Any], folder: Path) -> str:
    """Return what a user would type to choose this mixture: an option for each change."""
    words = [*program(), "fit", "--from", run.folder.name, "--output", folder.name]
    before, now = run.settings.method.parameters, settings.method.parameters
    if "alpha" in changes:
        words += ["--alpha", repr(settings.alpha)]
    if "objective" in now and "method" in changes:
        words += ["--objective", str(now["objective"])]
    if now.get("budget") != before.get("budget"):
        words += ["--budget", repr(now["budget"])]
    if now.get("by") != before.get("by"):
        words += [word for name in as_groups(as_values(now)["by"]).names or ("",) for word in ("--by", name)]
    if now.get("deferral") != before.get("deferral"):
        words += ["--defer-cost", repr(now["deferral"]["cost"]) if "deferral" in now else NEVER]
    if now.get("decision") != before.get("decision"):
        words += ["--decision", str(now["decision"])]
    if "confidence" in changes:
        words += ["--confidence", str(settings.confidence)]
    if "proof" in changes:
        words += ["--proof" if settings.proof else "--no-proof"]
    if "goals" in changes:
        words += [word for goal in goals_of(settings) for word in ("--goal", str(goal))]
    return shlex.join(words)
