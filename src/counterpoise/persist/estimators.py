"""Models of scikit-learn and of other libraries inside ours, stored by skops: a list says which types may be built."""

import zipfile
from collections.abc import Sequence
from typing import Any

from counterpoise._base.lazy import import_optional
from counterpoise._base.text import short
from counterpoise.persist.container import UnreadableModel, UnstorableModel, check_inner_zip
from counterpoise.persist.trees import check_estimator

MEMBER = "models.skops"
_NEEDS_SKOPS = ', which needs skops: pip install "counterpoise[models]"'

# What skops does not trust by itself, and is inside of common models. Looked at: plain containers of arrays and
# numbers without code of the file's own; a partial is as safe as what it calls, which must be on the list too, as the
# check of arrays that histogram gradient boosting of categories holds. ``check_estimator`` checks the two kinds of
# trees, whose loops would follow any index.
TRUSTED = frozenset(
    {
        "functools.partial",
        "numpy.dtype",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.compose._column_transformer._RemainderColsList",  # before scikit-learn 1.7: a list of columns
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        "sklearn.utils.validation.check_array",
    }
)


def is_estimator(value: Any) -> bool:
    """Return whether a value is an estimator, fitted or not, which skops may know."""
    return hasattr(value, "get_params") and not isinstance(value, type)


def write_estimators(models: Sequence[Any], paths: Sequence[str], trusted: Sequence[str]) -> bytes:
    """Return models as one member; ``paths`` are their places in ours, for messages."""
    skops = import_optional("skops.io", UnstorableModel, f"{paths[0]} is a model of another library{_NEEDS_SKOPS}")
    try:
        data = bytes(skops.dumps(list(models), compression=zipfile.ZIP_DEFLATED))
        check_inner_zip(data)
        is_trusted = not _untrusted(skops, data, trusted)
    except Exception:  # noqa: BLE001 - skops raises what it meets; the model is identified below
        is_trusted = False
    if not is_trusted:
        for model, path in zip(models, paths, strict=True):
            _refuse_untrusted_model(skops, model, path, trusted)
    return data


def _untrusted(skops: Any, data: bytes, trusted: Sequence[str]) -> list[str]:
    return sorted(set(skops.get_untrusted_types(data=data)) - TRUSTED - set(trusted))


def _refuse_untrusted_model(skops: Any, model: Any, path: str, trusted: Sequence[str]) -> None:
    name = f"{type(model).__module__}.{type(model).__qualname__}"
    try:
        types = _untrusted(skops, skops.dumps(model), trusted)
    except Exception as error:  # skops raises what it meets
        raise UnstorableModel(f"{path} is of the type {name}, which skops cannot store ({short(error)})") from error
    if any(word.startswith("counterpoise.") for word in types):
        raise UnstorableModel(
            f"{path} is a {type(model).__name__} of scikit-learn with a model of counterpoise inside, and only a "
            "Pipeline of that kind can be stored: save the inner model itself, such as best_estimator_"
        )
    functions = [word for word in types if "<" in word]
    if functions:
        raise UnstorableModel(
            f"{path} holds the function {functions[0]}, which cannot be stored: use a named function of a module"
        )
    if types:
        raise UnstorableModel(
            f"{path} holds types that are not on the list of trusted types: {', '.join(types)}. If you trust them, "
            f"pass trusted={types!r} here and to cp.load"
        )


def read_estimators(data: bytes, trusted: Sequence[str]) -> list[Any]:
    """Return the models of the member."""
    skops = import_optional("skops.io", UnreadableModel, f"it holds models of scikit-learn{_NEEDS_SKOPS}")
    try:
        check_inner_zip(data)
        refuse_untrusted(_untrusted(skops, data, trusted))
        models = skops.loads(data, trusted=sorted(TRUSTED | set(trusted)))
        check_estimator(models)
    except UnreadableModel:
        raise
    except Exception as error:  # skops raises what it meets
        raise UnreadableModel(
            f"its models of scikit-learn are broken ({type(error).__name__}: {short(error)})"
        ) from error
    return list(models)


def refuse_untrusted(types: list[str]) -> None:
    """Refuse types that are not trusted, and name them."""
    if types:
        raise UnreadableModel(
            f"it holds types that are not on the list of trusted types: {', '.join(types)}. If you know who wrote "
            f"the file and trust them, pass trusted={types!r}"
        )
