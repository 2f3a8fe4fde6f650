"""What a goals file cannot ask for where rows are read in parts."""

from pathlib import Path
from typing import Any

from counterpoise.runs.methods import GOALS, Found, defers
from counterpoise.runs.reading import is_parquet
from counterpoise.runs.settings import RunSettings

_WHY = "data.sample reads the rows in parts, and takes none"


def sample_faults(settings: RunSettings) -> Found:
    """Yield what does not go with ``data.sample``."""
    data, splits, method = settings.data, settings.splits, settings.method
    if data.sample is None:
        return
    csv = next((name for name in data.files if not is_parquet(Path(name))), None)
    if csv is not None:
        yield ("data", "files"), f"data.sample reads Parquet files in parts; got {csv!r}. Write it as Parquet first."
    if method.name != GOALS:
        yield ("method", "name"), f'data.sample is for the method "goals", rules of scores; got {method.name!r}.'
    asked: dict[tuple[str, ...], Any] = {("data", key): getattr(data, key) for key in ("weights", "baseline_model")}
    names = ("column", "validation", "validation_files", "test_files")
    asked |= {("splits", key): getattr(splits, key) for key in names}
    asked |= {("datasets",): settings.datasets or None, ("room_for_audit",): settings.room_for_audit or None}
    asked |= {("method", "parameters", "cv"): method.parameters.get("cv")}
    for key, value in asked.items():
        if value is not None:
            yield key, f"{_WHY}: leave it out; got {value!r}."
    if defers(method):
        yield ("method", "parameters", "deferral"), f"{_WHY}: no rule defers there yet."
    yield from _objective_faults(settings)
    for number, goal in enumerate(settings.goals):
        if goal.confidence is not None and method.enforce_goals:
            message = "data.sample takes goals without a confidence; leave it out: the test rows audit the goal."
            yield ("goals", number), message


def _objective_faults(settings: RunSettings) -> Found:
    from counterpoise.distributed.choosing import check_aim  # noqa: PLC0415 - only where rows are read in parts
    from counterpoise.mixtures.choosing import as_aim  # noqa: PLC0415

    try:
        check_aim(as_aim(None, settings.method.parameters.get("objective"), (), default_alpha=settings.alpha))
    except (TypeError, ValueError) as error:
        yield ("method", "parameters", "objective"), str(error)
