"""The explorer in a notebook: the page of the server, mounted by anywidget."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterpoise._base.types import ArrayLike
from counterpoise.goals import Table


def explore(
    model: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    sensitive_features: Any = None,
    baseline: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    largest_weight: float | None = None,
    datasets: Mapping[str, Table] | None = None,
    confidence: float = 0.95,
    output: str | Path | None = None,
) -> Any:
    """Explore a fitted model in a notebook: move the tail and the bounds of its goals, and watch the trade-off.

    Parameters
    ----------
    model : fitted classifier that mixes models or rules of scores
        Of two classes, such as ``GoalClassifier``, ``MixtureClassifier`` or ``AdaLPBoostClassifier``; or a run folder,
        whose own test rows and confidence are taken: pass nothing else with it but ``output``.
    X, y : held-out rows and labels, optional
        That nobody fitted or chose on: verdicts and rates by group are of them.
    sensitive_features, baseline, sample_weight, largest_weight, datasets
        What belongs to these rows, as for ``Table``.
    confidence : float in (0, 1), default=0.95
        Of verdicts on goals that carry none.
    output : path, optional
        A folder that the page may export model files to, and reports of a run. Default: none; ``widget.model()``
        returns the model.

    Returns
    -------
    widget
        Shown where a notebook shows the value of a cell, in Jupyter, marimo, Colab or VS Code. ``widget.setting`` is
        the setting at present, ``widget.model()`` the classifier that the library chooses for it.

    Examples
    --------
    In a notebook::

        decided = cp.GoalClassifier(goals=["recall(train) >= 0.9"]).fit(X_train, y_train)
        page = cp.explore(decided, X_test, y_test)
        page                # move alpha and the bounds
        page.model()        # the classifier of what the page shows
    """
    try:
        from counterpoise.explorer.mounted import ExplorerWidget  # noqa: PLC0415 - needs an optional package
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'In a notebook the explorer needs {error.name}, which is missing: pip install "counterpoise[notebook]"'
        ) from error
    given: dict[str, Any] = {"X": X, "y": y, "sensitive_features": sensitive_features, "baseline": baseline}
    given |= {"sample_weight": sample_weight, "largest_weight": largest_weight, "datasets": datasets}
    if isinstance(model, (str, Path)):
        return ExplorerWidget(_of_run(Path(model), output, given))
    from counterpoise.explorer.exports import Exporter  # noqa: PLC0415 - heavy: only where asked
    from counterpoise.explorer.source import session_of_model  # noqa: PLC0415 - as above

    return ExplorerWidget(Exporter(session_of_model(model, **given, confidence=confidence), output))


def _of_run(folder: Path, output: str | Path | None, given: Mapping[str, Any]) -> Any:
    """Return what exports of a run folder; its held-out rows are the run's own, and no others are taken."""
    from counterpoise.explorer.of_run import RunExporter, read_run  # noqa: PLC0415 - heavy, and needs optional packages
    from counterpoise.explorer.session import Session  # noqa: PLC0415 - as above
    from counterpoise.runs import open_run  # noqa: PLC0415 - as above

    beside = [name for name, value in given.items() if value is not None]
    if beside:
        raise ValueError(
            f"A run folder has test rows of its own, and is explored with these; got {', '.join(beside)} too. Pass the "
            f"folder alone, or the model in it: counterpoise.runs.open_run({str(folder)!r}).model()."
        )
    read = read_run(open_run(folder))
    return RunExporter(Session(read.parts), read, output)
