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
        Of two classes, such as ``GoalClassifier``, ``MixtureClassifier`` or ``AdaLPBoostClassifier``; or a run folder.
    X, y : held-out rows and labels, optional
        That nobody fitted or chose on: verdicts and rates by group are of them.
    sensitive_features, baseline, sample_weight, largest_weight, datasets
        What belongs to these rows, as for ``Table``.
    confidence : float in (0, 1), default=0.95
        Of verdicts on goals that carry none.
    output : path, optional
        A folder that the page may export model files to. Default: none; ``widget.model()`` returns the model.

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
    from counterpoise.explorer.exports import Exporter  # noqa: PLC0415 - heavy: only where asked
    from counterpoise.explorer.source import session_of_model, session_of_run  # noqa: PLC0415 - as above

    if isinstance(model, (str, Path)):
        session = session_of_run(model)
    else:
        given: dict[str, Any] = {"sample_weight": sample_weight, "largest_weight": largest_weight}
        given |= {"sensitive_features": sensitive_features, "baseline": baseline, "datasets": datasets}
        session = session_of_model(model, X, y, confidence=confidence, **given)
    return ExplorerWidget(session, Exporter(session, output))
