"""A finished run in MLflow: its settings, numbers, report and model, with one call."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise._base.lazy import import_optional
from counterpoise.persist import UnstorableModel
from counterpoise.persist.mlflow import as_served, log_model
from counterpoise.rules.scores.table import BASELINE
from counterpoise.runs.data import read_part
from counterpoise.runs.decisions import final_estimator, has_rules
from counterpoise.runs.errors import DataError, check_columns
from counterpoise.runs.folder import Run
from counterpoise.runs.places import GOALS, RESULT
from counterpoise.runs.reading import column_names
from counterpoise.runs.settings import data_files, written_as
from counterpoise.runs.use import read_ids

_LONGEST = 500  # characters of a parameter that every store of MLflow keeps
_SHOWN = 5  # rows of an example


def log_run(
    run: Run,
    name: str = "model",
    *,
    ids: str | None = None,
    data_path: str | Path | None = None,
    store_example: bool = False,
    **settings: Any,
) -> Any:
    """Write a finished run to the active run of MLflow, or to a new one.

    Parameters
    ----------
    run : Run
        As ``fit_run`` or ``open_run`` returns it.
    name : str, default="model"
        What MLflow calls the model.
    ids : str, optional
        The column that names the person, where decisions are drawn: rows of one id are decided alike.
    data_path : path, optional
        A CSV or Parquet file with the columns of the run, from which the signature of the model is taken. Default: the
        run's own first data file.
    store_example : bool, default=False
        Store the first five rows of the file as the model's input example.
    **settings
        For ``log_model``: ``registered_model_name``, ``pip_requirements`` and the like.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Whose ``model_uri`` ``mlflow.pyfunc.load_model`` takes. It decides as ``predict_run`` does.

    Raises
    ------
    DataError
        If the file lacks a column that the rules use.

    Notes
    -----
    Logged are the text of the goals and the main settings as parameters, ``run.result().metrics()`` as metrics, and the
    goals file, ``result.json`` and the report as artifacts. The key of the draws is in the model's file alone.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mlflow
    >>> from counterpoise.datasets import loans
    >>> from counterpoise.runs import fit_run, log_run
    >>> folder = Path(tempfile.mkdtemp())
    >>> loans(600, random_state=0)[0].to_csv(folder / "loans.csv", index=False)
    >>> _ = (folder / "goals.toml").write_text('''
    ... goals = ["recall >= 0.6"]
    ... data = { files = "loans.csv", target = "default", positive = "yes" }
    ... method = { models = [{ name = "logistic" }], parameters = { cv = 2 } }
    ... ''')
    >>> run = fit_run(folder / "goals.toml")
    >>> mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")  # doctest: +SKIP
    >>> log_run(run, "loans").model_uri  # doctest: +SKIP
    'models:/m-1f2f...'
    """
    mlflow = import_optional(
        "mlflow", UnstorableModel, 'Runs are logged with mlflow: pip install "counterpoise[mlflow]".'
    )
    model = run.model()
    path = Path(data_path) if data_path is not None else data_files(run.settings, run.sources)[0]
    rows, beside = _rows_of(run, model, path, ids)
    example, categories = as_served(rows)
    if store_example:
        settings["input_example"] = rows
    signature = mlflow.models.infer_signature(example, np.asarray(final_estimator(model).classes_))
    with nullcontext() if mlflow.active_run() else mlflow.start_run():
        mlflow.log_params(_params(run))
        mlflow.log_metrics(run.result().metrics())
        for file in (run.folder / GOALS, run.folder / RESULT, run.report):
            if file.is_file():
                mlflow.log_artifact(str(file))
        return log_model(model, name, signature=signature, categories=categories, **beside, **settings)


def _params(run: Run) -> dict[str, str]:
    """Return the main settings of a run as parameters of MLflow."""
    kept = run.settings.model_dump(include={"seed", "alpha", "confidence"}, exclude_none=True)
    goals = {f"goal_{number}": one.text for number, one in enumerate(run.result().goals, start=1)}
    words = {"method": run.settings.method.name, "data": run.result().data.name, **kept, **goals}
    return {name: str(value)[:_LONGEST] for name, value in words.items()}


def _rows_of(run: Run, model: Any, path: Path, ids: str | None) -> tuple[Any, dict[str, Any]]:
    """Return the first rows of a file with all columns that decisions need, and which columns those are."""
    last, data = final_estimator(model), run.settings.data
    by = last.groups_.by if has_rules(model) else ()
    baseline, groups = (data.baseline if BASELINE in by else None), [name for name in by if name in data.groups]
    if BASELINE in by and baseline is None:
        raise DataError(
            "The rules of this run use the predictions of a model in a file: name a column that holds them as baseline "
            "in the goals file, and fit it again."
        )
    names = [*groups, *(one for one in (ids, baseline) if one is not None)]
    with written_as(data.written):
        check_columns(names, column_names(path), path, "")
    part = read_part([path], run.columns, run.settings, labelled=False)
    rows = part.X.head(_SHOWN)
    columns: dict[str, Any] = {name: np.asarray(part.groups[name])[:_SHOWN] for name in groups}
    if ids is not None:
        columns[ids] = read_ids(path, ids)[1][:_SHOWN]
    if baseline is not None:
        columns[baseline] = np.asarray(part.baseline)[:_SHOWN]
    beside = {"ids": ids, "sensitive_features": groups, "baseline": baseline}
    return rows.assign(**{name: values for name, values in columns.items() if name not in rows}), beside
