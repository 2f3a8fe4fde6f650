"""What to do about goals that are missed, or cannot hold: what the guides recommend, tried before it is offered."""

import json
import warnings
from collections.abc import Iterator
from typing import Any

from counterpoise.goals import InfeasibleGoals
from counterpoise.rules.cautions import Caution
from counterpoise.rules.options import as_groups
from counterpoise.rules.scores.table import BASELINE
from counterpoise.runs import methods
from counterpoise.runs.evaluate import Evaluation, error_and_deferral
from counterpoise.runs.fitting import Work, choose_rules
from counterpoise.runs.result import RunResult
from counterpoise.runs.results import MIXTURE
from counterpoise.runs.settings import RunSettings


def columns_to_try(settings: RunSettings) -> list[list[str]]:
    """Return further columns that decisions could use: for churn the deployed model's, and the groups."""
    now = list(as_groups(methods.as_values(settings.method.parameters).get("by", ())).names)
    data, choices = settings.data, []
    is_deployed = data.baseline is not None or data.baseline_model is not None
    if is_deployed and BASELINE not in now and any("churn" in one.goal for one in settings.goals):
        choices.append([*now, BASELINE])
    if set(data.groups) - set(now):
        choices.append(list(dict.fromkeys([*now, *data.groups])))
    return choices


def try_columns(work: Work, model: Any) -> Iterator[tuple[list[str], Evaluation]]:
    """Yield columns that decisions may use, with the run that is then chosen inside the goals, where these can hold."""
    if work.settings.method.name != methods.GOALS or not work.enforced:
        return
    for names in columns_to_try(work.settings):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Caution)
            try:
                chosen = choose_rules(work, model, by=names)
            except (InfeasibleGoals, ValueError):
                continue
        yield names, Evaluation.of(work.settings, work.data, chosen, work.goals)


def ways_to_hold(work: Work, model: Any) -> Iterator[str]:
    """Yield what meets goals that cannot hold as decisions are made now; what was not tried is marked so."""
    method, split = work.settings.method, work.data.chosen_on
    if method.name != methods.GOALS:
        return
    for names, run in try_columns(work, model) if model is not None else ():
        wrong = error_and_deferral(run, MIXTURE, run.on(split).losses[MIXTURE], split)["error"]
        yield (
            f"If decisions may use these columns, they meet the goals: by = {json.dumps(names)} in "
            f"[method.parameters], tried, with {wrong:.1%} wrong on the {split} rows."
        )
    if not method.models:
        pair = 'models = [{ name = "gradient_boosting" }, { name = "logistic" }]'
        yield f"Not tried, as it takes training: another model beside it, {pair} in [method]."
    yield 'Not tried, as it takes training: models that are trained for the goals, method.name = "lpboost".'


def ways_to_meet(work: Work, model: Any, run_result: RunResult) -> list[str]:
    """Return what meets, on the rows that count, all goals that a run misses there."""
    judged, sentences = run_result.judged, []
    if not any(goal.on(judged).violation > 0 for goal in run_result.goals):
        return []
    for names, run in try_columns(work, model):
        audit = run.audit(judged)
        if audit is not None and all(row.violation == 0 for row in audit):
            wrong = error_and_deferral(run, MIXTURE, run.on(judged).losses[MIXTURE], judged)["error"]
            options = " ".join(f"--by {name}" for name in names)
            sentences.append(
                f"If decisions may use {' and '.join(names)}, all goals are met on the {judged} rows, with "
                f"{wrong:.1%} wrong: counterpoise fit --from RUN -o NEW {options}, to be audited on fresh rows."
            )
    return sentences
