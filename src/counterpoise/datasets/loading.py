"""Loading a data set by its name."""

import os
from typing import Any

import numpy as np

from counterpoise._base.text import did_you_mean
from counterpoise.datasets.columns import Columns, read_columns
from counterpoise.datasets.encode import Recipe
from counterpoise.datasets.files import ChecksumMismatch, Place, cache_folder, find_file, not_available, places
from counterpoise.datasets.recipes import RECIPES
from counterpoise.datasets.table import TableData


def dataset_names() -> list[str]:
    """Return the names that ``load_dataset`` knows.

    Examples
    --------
    >>> from counterpoise.datasets import dataset_names
    >>> len(dataset_names()), dataset_names()[:3]
    (20, ['compas', 'adult', 'covertype'])
    """
    return list(RECIPES)


def load_dataset(name: str, *, folder: str | os.PathLike[str] | None = None) -> TableData:
    """Return a data set by its name.

    Its file is looked for in ``folder``, then in the folder that the environment variable ``COUNTERPOISE_DATA`` names,
    then in the cache (``COUNTERPOISE_CACHE``, by default under the user's cache directory). What is found must have the
    checksum that the library knows. Otherwise the data are fetched from their public home and kept in the cache.

    Parameters
    ----------
    name : str
        One of ``dataset_names()``.
    folder : path, optional
        A folder with data files, looked into first.

    Returns
    -------
    TableData

    Raises
    ------
    DataNotAvailable
        If the file is in none of the folders and cannot be fetched.
    ChecksumMismatch
        If a file is not the one that the library knows.

    Examples
    --------
    >>> from counterpoise.datasets import load_dataset
    >>> load_dataset("adult")  # doctest: +SKIP
    TableData('adult': 48842 rows, 14 features, classes 0 (37155), 1 (11687), sensitive sex, race, ...)
    >>> load_dataset("adlut")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: name must be one of compas, adult, covertype, ... got 'adlut'. Did you mean 'adult'?
    """
    recipe = _recipe_of(name)
    looked_in = places(folder)
    path = find_file(recipe.file, looked_in)
    columns = _fetched(name, recipe, looked_in) if path is None else read_columns(path)
    data = recipe.build(name, recipe, columns)
    _check_classes(data, recipe)
    return data


def _recipe_of(name: Any) -> Recipe:
    if name in RECIPES:
        return RECIPES[name]
    hint = did_you_mean(str(name), dataset_names())
    raise ValueError(f"name must be one of {', '.join(dataset_names())}; got {name!r}.{hint}")


def _fetched(name: str, recipe: Recipe, looked_in: list[Place]) -> Columns:
    if recipe.fetch is None:
        raise not_available(name, recipe.file, looked_in, f"It cannot be fetched. {recipe.hint}")
    try:
        return recipe.fetch(cache_folder())
    except ChecksumMismatch:
        raise
    except Exception as error:  # whatever went wrong on the way, the user's question is the same
        reason = f"Fetching it failed: {type(error).__name__}: {str(error).rstrip('.')}."
        raise not_available(name, recipe.file, looked_in, reason) from error


def _check_classes(data: TableData, recipe: Recipe) -> None:
    """Refuse data whose labels are not the published ones: a source may have changed."""
    labels, counts = np.unique(data.y, return_counts=True)
    got = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    wanted = dict(recipe.classes)
    if got != wanted:
        raise ChecksumMismatch(
            f"data set {data.name!r} must have the published classes {_listed(wanted)}; got {_listed(got)}. "
            f"Its source has changed, or the cache {cache_folder()} holds another version: empty it and try again."
        )


def _listed(classes: dict[int, int]) -> str:
    return ", ".join(f"{label} ({count} rows)" for label, count in classes.items())
