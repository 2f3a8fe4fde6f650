"""Models of LightGBM, XGBoost and CatBoost inside ours, each in the file format of its own library.

The two formats of text are checked before their library reads them. That of CatBoost is binary, and a crafted one can
do harm: it is read only where the caller trusts whoever wrote the file.
"""

import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise.persist.boosted_files import Shape, check_catboost, check_lightgbm, check_xgboost
from counterpoise.persist.errors import UnreadableModel
from counterpoise.persist.values import Form, ModelFile, Parts

_PAIR = 2


class Library(NamedTuple):
    """A library whose classifiers we store."""

    title: str
    package: str
    kind: str  # the class, of which subclasses are no part
    suffix: str  # of its files
    is_fitted: Callable[[Any], bool]
    write: Callable[[Any], bytes]
    learned: Callable[[Any], dict[str, Any]]  # what its file does not hold
    check: Callable[[bytes], Shape | None]
    read: Callable[[Any, bytes, dict[str, Any]], None]  # a file into an unfitted model
    left_out: tuple[str, ...] = ()  # parameters that are not stored

    def apart(self, model: Any) -> Parts:
        """Return the parameters, what was learned besides the trees, and the file, which is None before ``fit``."""
        params = {name: value for name, value in model.get_params(deep=False).items() if name not in self.left_out}
        if not self.is_fitted(model):
            return params, None, None
        content = self.write(model)
        try:
            self.check(content)
        except ValueError as error:
            raise TypeError(f"a model of {self.title} that cannot be stored: {error}") from error
        return params, self.learned(model), ModelFile(self.suffix, content)

    def together(self, params: Any, learned: Any, file: Any) -> Any:
        """Return the model."""
        model = self._class()(**params)
        if file is None:
            return model
        if not isinstance(file, ModelFile) or file.suffix != self.suffix:
            raise UnreadableModel(f"a model of {self.title} lacks its file")
        try:
            shape = self.check(file.content)
            self.read(model, file.content, learned)
            if shape is not None:
                _compare(model, shape)
        except Exception as error:  # every library raises its own
            raise UnreadableModel(f"its model of {self.title} is broken ({error})") from error
        return model

    def _class(self) -> Any:
        try:
            return getattr(import_module(self.package), self.kind)
        except ImportError as error:
            raise UnreadableModel(
                f"it holds a model of {self.title}, which needs {self.package}: pip install {self.package}"
            ) from error


def _compare(model: Any, shape: Shape) -> None:
    """Check that the restored model has the classes and features of its file."""
    n_classes = len(np.asarray(model.classes_))
    if shape.n_outputs != (1 if n_classes == _PAIR else n_classes):
        raise ValueError(f"its trees score {shape.n_outputs} classes, and {n_classes} are named")
    if int(model.n_features_in_) != shape.n_features:
        raise ValueError(f"its trees know {shape.n_features} features, and {model.n_features_in_} are named")


_LIGHTGBM_LEARNED = {"_best_iteration": int, "_fitted_with_feature_names": bool, "_objective": str}


def _lightgbm_learned(model: Any) -> dict[str, Any]:
    state = {name: value for name, value in vars(model).items() if name in _LIGHTGBM_LEARNED}
    return {"classes": model.classes_, "n_features": model.n_features_, "state": state}


def _lightgbm_read(model: Any, content: bytes, learned: dict[str, Any]) -> None:
    """Restore a model, whose labels LightGBM's own file does not hold."""
    from lightgbm import Booster  # noqa: PLC0415 - an optional package
    from sklearn.preprocessing import LabelEncoder  # noqa: PLC0415 - this file lies below scikit-learn

    classes, n_features, state = np.asarray(learned["classes"]), learned["n_features"], learned["state"]
    kinds = {name: type(value) for name, value in state.items()}
    if not kinds.items() <= _LIGHTGBM_LEARNED.items() or np.unique(classes).size != classes.size:
        raise ValueError("it was learned in an unknown way")
    encoder = LabelEncoder().fit(classes)
    vars(model).update(
        state,
        _Booster=Booster(model_str=content.decode()),
        _classes=classes,
        _class_map=dict(zip(classes, range(classes.size), strict=True)),
        _le=encoder,
        _n_classes=classes.size,
        _n_features=n_features,
        _n_features_in=n_features,
        fitted_=True,
    )


def _xgboost_write(model: Any) -> bytes:
    return bytes(model.get_booster().save_raw(raw_format="json"))


def _xgboost_read(model: Any, content: bytes, _learned: dict[str, Any]) -> None:
    given = vars(model).copy()
    model.load_model(bytearray(content))
    vars(model).update(given)  # it fills parameters that were left open with what was used


def _catboost_write(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:  # it writes to files only
        path = Path(folder) / "model.cbm"
        model.save_model(str(path), format="cbm")
        return path.read_bytes()


def _catboost_read(model: Any, content: bytes, _learned: dict[str, Any]) -> None:
    model.load_model(blob=content, format="cbm")


def _nothing(_model: Any) -> dict[str, Any]:
    return {}


_LIBRARIES = (
    Library(
        "LightGBM",
        "lightgbm",
        "LGBMClassifier",
        "lightgbm.txt",
        lambda model: hasattr(model, "fitted_"),
        lambda model: model.booster_.model_to_string(num_iteration=-1).encode(),
        _lightgbm_learned,
        check_lightgbm,
        _lightgbm_read,
    ),
    Library(
        "XGBoost",
        "xgboost",
        "XGBClassifier",
        "xgboost.json",
        lambda model: model.__sklearn_is_fitted__(),
        _xgboost_write,
        _nothing,
        check_xgboost,
        _xgboost_read,
        left_out=("callbacks",),
    ),
    Library(
        "CatBoost",
        "catboost",
        "CatBoostClassifier",
        "catboost.cbm",
        lambda model: model.is_fitted(),
        _catboost_write,
        _nothing,
        check_catboost,
        _catboost_read,
        left_out=("callback",),
    ),
)
UNCHECKED = {"CatBoost": "catboost.core.CatBoostClassifier"}  # the forms that need trust, and in whose name
BOOSTED = {library.title: Form(library.apart, library.together) for library in _LIBRARIES}


def boosted_form_of(value: Any) -> str | None:
    """Return the name of the library whose classifier a value is, or None."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    found = (one.title for one in _LIBRARIES if (one.package, one.kind) == (package, kind.__qualname__))
    return next(found, None)
