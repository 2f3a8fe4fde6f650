"""A flavour of MLflow over our own model files: no pickle, the same answers for the same people.

The functions have the names that those of every flavour have: ``save_model``, ``log_model``, ``load_model``. What they
write is also a ``python_function``, so that ``mlflow.pyfunc.load_model``, ``mlflow models serve`` and Spark can ask it.

>>> import tempfile
>>> import counterpoise as cp
>>> import counterpoise.persist.mlflow
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True, as_frame=True)
>>> model = cp.AdaLPBoostClassifier(cp.learners.Stump(), n_estimators=5, random_state=0).fit(X, y)
>>> with tempfile.TemporaryDirectory() as folder:
...     cp.persist.mlflow.save_model(model, f"{folder}/flowers")
...     again = cp.persist.mlflow.load_model(f"{folder}/flowers")
>>> bool((again.predict(X) == model.predict(X)).all())
True
"""

import inspect
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from counterpoise import __version__
from counterpoise._base.checks import check_choice
from counterpoise._base.frames import CATEGORY, column_names, columns_of, is_frame, kind_of, select
from counterpoise._base.lazy import import_optional
from counterpoise.persist.container import UnreadableModel, UnstorableModel
from counterpoise.persist.models import load, refuse_unfitted, save

__all__ = ["load_model", "log_model", "save_model"]

FLAVOUR = "counterpoise"
_FILE = "model.cp"
_METHODS = ("predict", "predict_proba", "decision_proba")
_BESIDE = ("ids", "sensitive_features", "baseline")  # what a model may take beside the features
_ENVIRONMENTS = ("conda_env", "pip_requirements", "extra_pip_requirements")


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    method: str = "predict",
    ids: str | None = None,
    sensitive_features: Sequence[str] = (),
    baseline: str | None = None,
    input_example: Any = None,
    signature: Any = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    trusted: Sequence[str] = (),
    mlflow_model: Any = None,
    **settings: Any,
) -> None:
    """Write a fitted model as a folder of MLflow.

    Parameters
    ----------
    model : fitted estimator
        Anything that ``counterpoise.save`` can store.
    path : path
        The folder, which must not be there or be empty.
    method : {"predict", "predict_proba", "decision_proba"}, default="predict"
        The output of the ``python_function``, unless it is loaded with another:
        ``mlflow.pyfunc.load_model(..., model_config={"method": "predict_proba"})``.
    ids : str, optional
        The column that names the person, for models with ``decision="sticky"``: rows of one id are decided alike, in
        whatever batch they come. It is taken out before the model sees the row. Default: the row is its own id.
    sensitive_features : sequence of str, default=()
        Columns that the rules use (``by``); the model sees those that it was fitted on too.
    baseline : str, optional
        The column with the baseline predictions, where rules use them.
    input_example : data frame or array, optional
        Some rows, with the columns above; MLflow stores them, and takes the signature from them. Categories are texts
        there.
    signature : mlflow.models.ModelSignature, optional
        Default: as ``input_example`` shows.
    categories : dict of str to list, optional
        The categories of columns that the model was fitted on as categories: MLflow serves texts, which become
        categories again. Default: as ``input_example`` has them.
    trusted : sequence of str, default=()
        As for ``counterpoise.save``. A ``python_function`` trusts nothing in addition: ``load_model`` reads such files.
    mlflow_model : mlflow.models.Model, optional
        What to add to; ``log_model`` passes it.
    **settings
        For ``mlflow.pyfunc.save_model``: ``pip_requirements``, ``extra_pip_requirements``, ``metadata`` and the like.
        By default counterpoise and scikit-learn are required as they are here.

    Raises
    ------
    UnstorableModel
        If the model cannot be stored, takes nothing of what a column is named for, or mlflow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> import mlflow
    >>> import counterpoise as cp
    >>> from counterpoise.persist.mlflow import save_model
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = cp.AdaLPBoostClassifier(cp.learners.Stump(), n_estimators=5, random_state=0).fit(X, y)
    >>> rows = X.assign(person=[f"p{place}" for place in range(len(X))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/flowers", ids="person", input_example=rows.head(2))
    ...     served = mlflow.pyfunc.load_model(f"{folder}/flowers")
    >>> bool((served.predict(rows[50:70]) == model.predict(X, ids=rows["person"])[50:70]).all())
    True
    """
    mlflow = _mlflow(UnstorableModel)
    config: dict[str, Any] = {
        "method": method,
        "ids": ids,
        "sensitive_features": list(sensitive_features),
        "baseline": baseline,
    }
    input_example, shown = as_served(input_example)
    config["categories"] = {name: list(values) for name, values in (categories or shown).items()}
    server = _ServedModel(model, config)
    server.check()
    if signature is None and input_example is not None:
        signature = mlflow.models.infer_signature(input_example, server.predict(input_example))
    record = mlflow.models.Model() if mlflow_model is None else mlflow_model
    record.add_flavor(FLAVOUR, data=f"data/{_FILE}", counterpoise_version=__version__, model_class=type(model).__name__)
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / _FILE, trusted=trusted)
        mlflow.pyfunc.save_model(
            path,
            loader_module=__name__,
            data_path=str(Path(folder) / _FILE),
            mlflow_model=record,
            model_config=config,
            input_example=input_example,
            signature=signature,
            **_environment(settings),
        )


def log_model(model: Any, name: str, *, registered_model_name: str | None = None, **settings: Any) -> Any:
    """Write a fitted model to the active run of MLflow, or to a new one.

    Parameters
    ----------
    model : fitted estimator
        Anything that ``counterpoise.save`` can store.
    name : str
        What MLflow calls the model.
    registered_model_name : str, optional
        Where to register a new version, if anywhere.
    **settings
        As for ``save_model``.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Whose ``model_uri`` ``load_model`` and ``mlflow.pyfunc.load_model`` take.
    """
    here = sys.modules[__name__]
    registration = {"registered_model_name": registered_model_name}
    return _mlflow(UnstorableModel).models.Model.log(None, here, name=name, model=model, **registration, **settings)


def load_model(model_uri: str, *, dst_path: str | None = None, trusted: Sequence[str] = ()) -> Any:
    """Read a model that ``save_model`` or ``log_model`` wrote: the estimator itself. Nothing in its file is run.

    Parameters
    ----------
    model_uri : str
        A folder, or an address of MLflow such as ``models:/loans/3`` or ``runs:/<run>/loans``.
    dst_path : str, optional
        A folder to download to. Default: a temporary one.
    trusted : sequence of str, default=()
        As for ``counterpoise.load``.

    Returns
    -------
    fitted estimator
        As ``counterpoise.load`` returns it.

    Raises
    ------
    UnreadableModel
        If the folder has no model of counterpoise, or its file cannot be read.
    """
    mlflow = _mlflow(UnreadableModel)
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=str(model_uri), dst_path=dst_path))
    flavours = mlflow.models.Model.load(str(folder)).flavors
    if FLAVOUR not in flavours:
        raise UnreadableModel(
            f"{model_uri} holds no counterpoise model; its flavours are {', '.join(sorted(flavours)) or 'none'}. "
            "Load it with mlflow.pyfunc.load_model."
        )
    return load(folder / str(flavours[FLAVOUR]["data"]), trusted=trusted)


def as_served(rows: Any) -> tuple[Any, dict[str, list[Any]]]:
    """Return rows as MLflow takes them, frames of pandas with texts in place of categories, and the categories."""
    if not is_frame(rows):
        return rows, {}
    import narwhals.stable.v2 as nw  # noqa: PLC0415 - where frames are

    columns = [(str(name), column) for name, column in columns_of(rows) if kind_of(column) == CATEGORY]
    categories = {
        name: nw.from_native(column, series_only=True).cat.get_categories().to_list() for name, column in columns
    }
    return nw.from_native(rows, eager_only=True).to_pandas().astype(dict.fromkeys(categories, object)), categories


def _mlflow(kind: type[ValueError]) -> Any:
    return import_optional("mlflow", kind, 'Models are kept in MLflow with mlflow: pip install "counterpoise[mlflow]".')


def _load_pyfunc(path: str, model_config: Mapping[str, Any] | None = None) -> "_ServedModel":
    """Return the object that MLflow serves: MLflow calls this function by its name."""
    return _ServedModel(load(path), dict(model_config or {}))


class _ServedModel(NamedTuple):
    """A model, and the columns that it takes beside the features."""

    model: Any
    config: Mapping[str, Any]

    def check(self) -> None:
        """Check that the model takes these columns."""
        name = type(self.model).__name__
        refuse_unfitted(self.model, "save_model")
        method = check_choice(self.config["method"], "method", _METHODS)
        if not hasattr(self.model, method):
            raise UnstorableModel(f"A {name} has no {method}: choose another method.")
        refused = [argument for argument in self._columns() if argument not in self._accepted(method)]
        if refused:
            raise UnstorableModel(
                f"{method} of this {name} takes no {refused[0]}: leave out {refused[0]}={self.config[refused[0]]!r}."
            )

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:  # noqa: ARG002 - of MLflow
        """Return the output of the model for rows."""
        method = check_choice(self.config.get("method", "predict"), "method", _METHODS)
        columns = self._columns()
        beside = {
            argument: self._column(model_input, columns[argument])
            for argument in self._accepted(method)
            if argument in columns
        }
        return getattr(self.model, method)(self._features(model_input), **beside)

    def _columns(self) -> dict[str, Any]:
        return {argument: self.config[argument] for argument in _BESIDE if self.config.get(argument)}

    def _accepted(self, method: str) -> Sequence[str]:
        """Return what a method takes beside the features; a pipeline hands on whatever it is given."""
        parameters = inspect.signature(getattr(self.model, method)).parameters.values()
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            return _BESIDE
        return [parameter.name for parameter in parameters if parameter.name in _BESIDE]

    def _column(self, rows: Any, names: Any) -> Any:
        columns = [names] if isinstance(names, str) else list(names)
        missing = [name for name in columns if name not in getattr(rows, "columns", ())]
        if missing:
            raise ValueError(
                f"The model was saved with the column {missing[0]!r}, so the rows need it too: pass a data frame "
                f"that holds it; got {', '.join(map(str, getattr(rows, 'columns', ()))) or type(rows).__name__}."
            )
        return rows[names]

    def _features(self, rows: Any) -> Any:
        """Return the columns that the model was fitted on; as an array where it never saw their names."""
        if not is_frame(rows):
            return rows
        categories = self.config.get("categories") or {}
        if categories:
            from pandas import CategoricalDtype  # noqa: PLC0415 - MLflow serves its frames

            rows = rows.astype({name: CategoricalDtype(values) for name, values in categories.items() if name in rows})
        names = getattr(self.model, "feature_names_in_", None)
        if names is not None:
            return self._column(rows, list(names))
        beside = {name for names in self._columns().values() for name in ([names] if isinstance(names, str) else names)}
        return select(rows, [name for name in column_names(rows) if name not in beside]).to_numpy()


def _environment(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that list what must be installed to load the model."""
    if any(settings.get(name) is not None for name in _ENVIRONMENTS[:2]):
        return dict(settings)
    import sklearn  # noqa: PLC0415 - this file lies below scikit-learn

    usual = [f"counterpoise[mlflow]=={__version__}", f"scikit-learn=={sklearn.__version__}"]
    extra = settings.get("extra_pip_requirements") or []
    others = {name: value for name, value in settings.items() if name not in _ENVIRONMENTS}
    return {**others, "pip_requirements": [*usual, *extra]}
