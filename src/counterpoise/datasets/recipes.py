"""The data sets by name: one recipe each, as data, and their loading.

Counts and columns are the published ones. Every description explains how the table is made from its source. Sets
that only the papers and benchmarks use have their recipes in ``papers/datasets.py``.
"""

import os
from collections.abc import Mapping

import numpy as np

from counterpoise._base.text import did_you_mean
from counterpoise.datasets import fetch
from counterpoise.datasets.columns import Columns, GroupColumn, Recipe, as_strings, from_sparse_rows, read_columns
from counterpoise.datasets.folders import (
    ChecksumMismatch,
    DataFolder,
    cache_folder,
    data_folders,
    find_file,
    not_available,
)
from counterpoise.datasets.table import TableData

_GITHUB = "https://raw.githubusercontent.com"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_COMPAS = f"{_GITHUB}/propublica/compas-analysis/bafff5da3f2e45eca6c2d5055faad269defd135a/compas-scores-two-years.csv"
_LIBSVM = f"{_GITHUB}/dtera/fl_xgboost/0abd2e16afeea63f53ff249f4e0ad15a8e5d663c/data"

_COMPAS_FEATURES = (
    *("juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"),
    *("age", "c_charge_degree", "sex", "race"),
)
_RACE_CODES = {"Caucasian": 0, "African-American": 1}
_OTHER_RACE = 2
_ACS_RACES = {
    1: "White",
    2: "Black or African American",
    3: "American Indian",
    4: "Alaska Native",
    5: "American Indian or Alaska Native, tribe not specified or several",
    6: "Asian",
    7: "Native Hawaiian or Other Pacific Islander",
    8: "Some Other Race",
    9: "Two or More Races",
}
_CREDIT_COLUMNS = (
    *("LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", "PAY_0"),
    *(f"PAY_{month}" for month in range(2, 7)),
    *(f"BILL_AMT{month}" for month in range(1, 7)),
    *(f"PAY_AMT{month}" for month in range(1, 7)),
)


def _three_races(columns: Columns) -> Columns:
    """Give race the three codes of the 2021 paper beside its names. No two rows are the same, so none is dropped."""
    codes = [_RACE_CODES.get(race, _OTHER_RACE) for race in as_strings(columns["race"]).tolist()]
    return columns | {"race": np.array(codes), "race_name": columns["race"]}


RECIPES = {
    "compas": Recipe(
        file="compas.parquet",
        sha256="6c80f01073ad38a8cdb11c85d13fe1f3d906780126997eae24e77263e2df6a0b",
        description=(
            "Recidivism in Broward County (ProPublica 2016), as the 2021 paper on boosted CVaR classification "
            "prepares it: repeated rows dropped (no two rows share all of id, features and target, so all 7,214 "
            "stay); charge F 0, M 1; sex Female 0, Male 1; race Caucasian 0, African-American 1, all others 2; "
            "target is_recid. The paper's code then divides age by 10, merges races 1 and 2, and draws 30 % as "
            "test rows: those steps are left to you. sensitive race keeps the six names of the source."
        ),
        classes={0: 3743, 1: 3471},
        target="is_recid",
        features=_COMPAS_FEATURES,
        categorical=("race",),
        sensitive={"sex": GroupColumn("sex"), "race": GroupColumn("race_name")},
        prepare=_three_races,
        fetch=fetch.from_publisher(
            {_COMPAS: "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"}, fetch.read_compas
        ),
    ),
    "adult": Recipe(
        file="adult.parquet",
        sha256="0ccc3dffdb0c72c222940b2705f39def6f04f372cee7e5017c6a49693e00a3a5",
        description=(
            "Income above 50,000 dollars in the 1994 census (UCI Adult): all 14 columns, strings as codes in "
            "sorted order, '?' as NaN; y 1 for >50K; the official split."
        ),
        classes={0: 37155, 1: 11687},
        sensitive={"sex": GroupColumn("sex"), "race": GroupColumn("race")},
        has_split=True,
        fetch=fetch.from_publisher(
            {
                f"{_UCI}/adult/adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                f"{_UCI}/adult/adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            },
            fetch.read_adult,
        ),
    ),
    "covertype": Recipe(
        file="covertype.parquet",
        sha256="ca498e5f32fd6973494def64147cd3193a68350ae1e6614b18347b4d18d9fdf4",
        description=(
            "Seven forest cover types (UCI): 10 measurements, then wilderness and soil as 0/1 columns; y 1 to 7."
        ),
        classes={1: 211840, 2: 283301, 3: 35754, 4: 2747, 5: 9493, 6: 17367, 7: 20510},
        fetch=fetch.covertype,
    ),
    "acs-income": Recipe(
        file="folktables_ACSIncome.parquet",
        sha256="d2e8f28f33a83a6609e0b363ff9857291be71fa17568cdfc9a7c21df9968eb65",
        description=(
            "Income above 50,000 dollars in the American Community Survey 2018 (folktables ACSIncome, all "
            "states): the 40 % of the rows that Aequitas publishes as its validation and test files. Columns "
            "keep the names and codes of the survey; COW, MAR, RELP, SEX and RAC1P are categorical, OCCP and "
            "POBP have too many codes for that and are plain numbers, SCHL is ordered. No official split."
        ),
        classes={0: 420286, 1: 245514},
        categorical=("COW", "MAR", "RELP", "SEX", "RAC1P"),
        sensitive={"sex": GroupColumn("SEX", {1: "Male", 2: "Female"}), "race": GroupColumn("RAC1P", _ACS_RACES)},
        prepare=lambda columns: columns | {"RAC1P": np.asarray(columns["RAC1P"]) + 1},  # the census counts from 1
        hint="The rows come from the FolkTables files of github.com/dssg/aequitas.",
    ),
    "credit-default": Recipe(
        file="credit_default_taiwan.parquet",
        sha256="6880e2287d9726c4454710ee12cbca9b48c41b87485a6b777c95411296c50746",
        description=(
            "Default of credit card clients in Taiwan, 2005 (UCI 350): all 23 columns as numbers; SEX, "
            "EDUCATION and MARRIAGE are categorical codes, the PAY columns ordered delays; y 1 for default next "
            "month."
        ),
        classes={0: 23364, 1: 6636},
        categorical=("SEX", "EDUCATION", "MARRIAGE"),
        sensitive={"sex": GroupColumn("SEX", {1: "Male", 2: "Female"})},
        fetch=fetch.openml(42477, _CREDIT_COLUMNS),
    ),
    "a9a": Recipe(
        file="a9a.npz",
        sha256="50ec0e8bdd4e35823d1842837cbe2d2f24b1db8f6070e999e330db76ae5d50b0",
        description=(
            "UCI Adult as LIBSVM's 123 indicator columns: CSR rows of ones; y -1 or 1; the official split. "
            "sensitive sex is read off column 72, the indicator of men."
        ),
        classes={-1: 37155, 1: 11687},
        has_split=True,
        build=from_sparse_rows,
        fetch=fetch.from_publisher(
            {
                f"{_LIBSVM}/a9a": "7ba53cccb27e2e525f0fb173e1f446d49856e3fb007eb43be4ec6d0f5b3335ca",
                f"{_LIBSVM}/a9a.t": "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
            },
            fetch.read_a9a,
        ),
    ),
}


def dataset_names() -> list[str]:
    """Return the names that ``load_dataset`` knows.

    Examples
    --------
    >>> from counterpoise.datasets import dataset_names
    >>> len(dataset_names()), dataset_names()[:3]
    (6, ['compas', 'adult', 'covertype'])
    """
    return list(RECIPES)


def load_dataset(name: str, *, folder: str | os.PathLike[str] | None = None) -> TableData:
    """Return a data set by its name.

    The loader searches for its file in ``folder``, then in the folder that the environment variable
    ``COUNTERPOISE_DATA`` names, then in the cache (``COUNTERPOISE_CACHE``, by default under the user's cache
    directory). The file must have the checksum that the library knows. If there is none, the data are fetched from
    their public home and stored in the cache.

    Parameters
    ----------
    name : str
        One of ``dataset_names()``.
    folder : path, optional
        A folder with data files, searched first.

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
    return load_from(RECIPES, name, folder)


def load_from(recipes: Mapping[str, Recipe], name: str, folder: str | os.PathLike[str] | None = None) -> TableData:
    """Return the data set of one of the recipes, as ``load_dataset`` does of those of the library."""
    if name not in recipes:
        hint = did_you_mean(str(name), list(recipes))
        raise ValueError(f"name must be one of {', '.join(recipes)}; got {name!r}.{hint}")
    recipe, folders = recipes[name], data_folders(folder)
    path = find_file(recipe.file, recipe.sha256, folders)
    columns = _fetch(name, recipe, folders) if path is None else read_columns(path)
    data = recipe.build(name, recipe, columns)
    _check_classes(data, recipe)
    return data


def _fetch(name: str, recipe: Recipe, folders: list[DataFolder]) -> Columns:
    if recipe.fetch is None:
        raise not_available(name, recipe.file, folders, f"It cannot be fetched. {recipe.hint}")
    try:
        return recipe.fetch(cache_folder())
    except ChecksumMismatch:
        raise
    except Exception as error:  # whatever went wrong on the way, the user's question is the same
        reason = f"Fetching it failed: {type(error).__name__}: {str(error).rstrip('.')}."
        raise not_available(name, recipe.file, folders, reason) from error


def _check_classes(data: TableData, recipe: Recipe) -> None:
    """Refuse data whose labels are not the published ones: a source may have changed."""
    labels, counts = np.unique(data.y, return_counts=True)
    got = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    expected = dict(recipe.classes)
    if got != expected:
        raise ChecksumMismatch(
            f"data set {data.name!r} must have the published classes {_format(expected)}; got {_format(got)}. Its "
            f"source has changed, or the cache {cache_folder()} holds another version: empty the cache and try again."
        )


def _format(classes: dict[int, int]) -> str:
    return ", ".join(f"{label} ({count} rows)" for label, count in classes.items())
