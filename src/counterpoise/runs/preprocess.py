"""From a frame of numbers and categories to what a method takes: a scikit-learn ColumnTransformer."""

from typing import Any

import numpy as np

from counterpoise.runs.columns import Columns
from counterpoise.runs.methods import METHODS
from counterpoise.runs.settings import MethodSettings, ModelSettings, PreprocessingSettings

_ABSENT = -1  # the code of missing and unknown categories where a method takes no missing values


def wanted_features(asked: MethodSettings | ModelSettings) -> str:
    """Return which features a method wants: those of its base learner where one is named."""
    learner = getattr(asked, "learner", None)
    return METHODS[(learner or asked).name].features


def preprocessor(asked: PreprocessingSettings, columns: Columns, features: str, *, takes_missing: bool) -> Any:
    """Return an unfitted transformer of frames.

    Trees get categories as codes, numbers as they are and, where they can take them, missing values as NaN. Other
    methods get the median for a missing number, numbers of mean 0 and variance 1, and a column for each category; a
    missing category is one of its own.
    """
    from sklearn.compose import ColumnTransformer  # noqa: PLC0415 - heavy

    for_trees = features == "trees"
    keep = asked.missing == "keep" or (asked.missing in {"auto", "refuse"} and for_trees and takes_missing)
    scale = asked.numeric == "standardize" or (asked.numeric == "auto" and not for_trees)
    ordinal = asked.categorical == "ordinal" or (asked.categorical == "auto" and for_trees)
    steps: list[tuple[str, Any, list[str]]] = []
    if columns.categorical and asked.categorical != "drop":
        encoder = _ordinal(asked, keep=keep) if ordinal else _one_hot(asked)
        steps.append(("categories", encoder, columns.categorical))
    if columns.numeric:
        steps.append(("numbers", _numbers(keep=keep, scale=scale), columns.numeric))
    return ColumnTransformer(steps, sparse_threshold=0.0, verbose_feature_names_out=False)


def category_places(asked: PreprocessingSettings, columns: Columns, features: str) -> list[int]:
    """Return which of the transformed features are codes of categories, for trees that split them by subset."""
    coded = features == "trees" and asked.categorical in {"auto", "ordinal"} and asked.missing != "impute"
    return list(range(len(columns.categorical))) if coded else []


def _ordinal(asked: PreprocessingSettings, *, keep: bool) -> Any:
    from sklearn.preprocessing import OrdinalEncoder  # noqa: PLC0415

    absent = np.nan if keep else _ABSENT
    return OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=absent,
        encoded_missing_value=absent,
        max_categories=asked.max_categories,
        dtype=np.float32,
    )


def _one_hot(asked: PreprocessingSettings) -> Any:
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415

    return OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=asked.max_categories, sparse_output=False)


def _numbers(*, keep: bool, scale: bool) -> Any:
    from sklearn.impute import SimpleImputer  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    # one that does not scale still makes numbers of truth values, where "passthrough" would make objects of all columns
    scaler = StandardScaler() if scale else StandardScaler(copy=False, with_mean=False, with_std=False)
    return scaler if keep else make_pipeline(imputer, scaler)
