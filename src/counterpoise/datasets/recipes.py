"""The data sets by name: one recipe each, as data, and their loading.

Counts and columns are the published ones. Every description explains how the table is made from its source.
"""

import os

import numpy as np

from counterpoise._base.text import did_you_mean
from counterpoise.datasets import fetch
from counterpoise.datasets.columns import (
    Columns,
    GroupColumn,
    Recipe,
    as_strings,
    from_images,
    from_sparse_rows,
    read_columns,
)
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
_WINES = f"{_GITHUB}/jbrownlee/Datasets/d20fcb6402ae34e653d4513b00f39257bb37ed7f"
_COMPAS = f"{_GITHUB}/propublica/compas-analysis/bafff5da3f2e45eca6c2d5055faad269defd135a"
_ADBENCH = f"{_GITHUB}/Minqi824/ADBench/3dac8221081e190f157d78e93bfa8867f90d0965/adbench/datasets/Classical"
_WEB_PAGES = f"{_GITHUB}/unc-optimization/AccSPD/d2f1f2c961e3401032649544445bb24ab63ab1c5/data"
_LIBSVM = f"{_GITHUB}/dtera/fl_xgboost/0abd2e16afeea63f53ff249f4e0ad15a8e5d663c/data"

_COMPAS_FEATURES = (
    *("juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"),
    *("age", "c_charge_degree", "sex", "race"),
)
_RACE_CODES = {"Caucasian": 0, "African-American": 1}
_OTHER_RACE = 2
_RINGNORM_SCALE = 1000.0  # the file keeps thousandths as integers
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
_ABALONE_COLUMNS = (
    *("Sex", "Length", "Diameter", "Height"),
    *("Whole_weight", "Shucked_weight", "Viscera_weight", "Shell_weight"),
)
_ABALONE_RINGS = (
    *(1, 1, 15, 57, 115, 259, 391, 568, 689, 634, 487, 267, 203, 126),
    *(103, 67, 58, 42, 32, 26, 14, 6, 9, 2, 1, 1, 2, 1),
)
_SEGMENT_COLUMNS = (
    *("REGION-CENTROID-COL", "REGION-CENTROID-ROW", "REGION-PIXEL-COUNT"),
    *("SHORT-LINE-DENSITY-5", "SHORT-LINE-DENSITY-2", "VEDGE-MEAN", "VEDGE-SD", "HEDGE-MEAN", "HEDGE-SD"),
    *("INTENSITY-MEAN", "RAWRED-MEAN", "RAWBLUE-MEAN", "RAWGREEN-MEAN"),
    *("EXRED-MEAN", "EXBLUE-MEAN", "EXGREEN-MEAN", "VALUE-MEAN", "SATURATION-MEAN", "HUE-MEAN"),
)
_CYTOLOGY_COLUMNS = (
    *("clump_thickness", "cell_size_uniformity", "cell_shape_uniformity", "marginal_adhesion"),
    *("epithelial_cell_size", "bare_nuclei", "bland_chromatin", "normal_nucleoli", "mitoses"),
)
_SPLICE_COLUMNS = (*(f"pos-{at}" for at in range(30, 0, -1)), *(f"pos{at}" for at in range(1, 31)))
_MUSK_COLUMNS = ("molecule_name", "conformation_name", *(f"f{at}" for at in range(1, 167)))


def _three_races(columns: Columns) -> Columns:
    """Give race the three codes of the 2021 paper beside its names. No two rows are the same, so none is dropped."""
    codes = [_RACE_CODES.get(race, _OTHER_RACE) for race in as_strings(columns["race"]).tolist()]
    return columns | {"race": np.array(codes), "race_name": columns["race"]}


def _census_race_codes(columns: Columns) -> Columns:
    """Count races from 1 again, as the census does; the file counts them from 0."""
    return columns | {"RAC1P": np.asarray(columns["RAC1P"]) + 1}


def _thousandths(columns: Columns) -> Columns:
    return {name: column if name == "y" else np.asarray(column) / _RINGNORM_SCALE for name, column in columns.items()}


RECIPES = {
    "compas": Recipe(
        file="compas.parquet",
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
        fetch=fetch.from_publisher([f"{_COMPAS}/compas-scores-two-years.csv"], fetch.read_compas),
    ),
    "adult": Recipe(
        file="adult.parquet",
        description=(
            "Income above 50,000 dollars in the 1994 census (UCI Adult): all 14 columns, strings as codes in "
            "sorted order, '?' as NaN; y 1 for >50K; the official split."
        ),
        classes={0: 37155, 1: 11687},
        sensitive={"sex": GroupColumn("sex"), "race": GroupColumn("race")},
        has_split=True,
        fetch=fetch.from_publisher([f"{_UCI}/adult/adult.data", f"{_UCI}/adult/adult.test"], fetch.read_adult),
    ),
    "covertype": Recipe(
        file="covertype.parquet",
        description=(
            "Seven forest cover types (UCI): 10 measurements, then wilderness and soil as 0/1 columns; y 1 to 7."
        ),
        classes={1: 211840, 2: 283301, 3: 35754, 4: 2747, 5: 9493, 6: 17367, 7: 20510},
        fetch=fetch.covertype,
    ),
    "acs-income": Recipe(
        file="folktables_ACSIncome.parquet",
        description=(
            "Income above 50,000 dollars in the American Community Survey 2018 (folktables ACSIncome, all "
            "states): the 40 % of the rows that Aequitas publishes as its validation and test files. Columns "
            "keep the names and codes of the survey; COW, MAR, RELP, SEX and RAC1P are categorical, OCCP and "
            "POBP have too many codes for that and are plain numbers, SCHL is ordered. No official split."
        ),
        classes={0: 420286, 1: 245514},
        categorical=("COW", "MAR", "RELP", "SEX", "RAC1P"),
        sensitive={"sex": GroupColumn("SEX", {1: "Male", 2: "Female"}), "race": GroupColumn("RAC1P", _ACS_RACES)},
        prepare=_census_race_codes,
        hint="The rows come from the FolkTables files of github.com/dssg/aequitas.",
    ),
    "credit-default": Recipe(
        file="credit_default_taiwan.parquet",
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
        description=(
            "UCI Adult as LIBSVM's 123 indicator columns: CSR rows of ones; y -1 or 1; the official split. "
            "sensitive sex is read off column 72, the indicator of men."
        ),
        classes={-1: 37155, 1: 11687},
        has_split=True,
        build=from_sparse_rows,
        fetch=fetch.from_publisher([f"{_LIBSVM}/a9a", f"{_LIBSVM}/a9a.t"], fetch.read_a9a),
    ),
    "census-income": Recipe(
        file="census_income_kdd.parquet",
        description=(
            "Income of 50,000 dollars or more in the 1994 and 1995 population surveys (UCI Census-Income KDD): "
            "strings as codes in sorted order, '?' as NaN, the integer codes of industry, occupation, "
            "self-employment and veterans' benefits categorical; the column 'instance weight' is left out, as "
            "its publisher asks; the official split."
        ),
        classes={0: 280717, 1: 18568},
        drop=("instance weight",),
        categorical=(
            *("detailed industry recode", "detailed occupation recode"),
            *("own business or self employed", "veterans benefits"),
        ),
        sensitive={"sex": GroupColumn("sex"), "race": GroupColumn("race")},
        has_split=True,
        hint="The rows come from UCI's Census-Income (KDD) archive.",
    ),
    "spambase": Recipe(
        file="spambase.parquet",
        description="Spam in e-mail (UCI): 57 word, character and capital-run statistics; y 1 for spam.",
        classes={0: 2788, 1: 1813},
        fetch=fetch.openml(44),
    ),
    "musk2": Recipe(
        file="musk2.parquet",
        description=(
            "Musk, version 2 (UCI): 166 shape features of each conformation; y 1 for musk. Conformations of one "
            "molecule are not independent: sensitive molecule says which belong together."
        ),
        classes={0: 5581, 1: 1017},
        drop=("molecule_name", "conformation_name"),
        sensitive={"molecule": GroupColumn("molecule_name")},
        fetch=fetch.openml(1116, _MUSK_COLUMNS),
    ),
    "wine-quality": Recipe(
        file="wine_quality.parquet",
        description=(
            "Quality of red and white vinho verde, graded 3 to 9 (UCI): 11 measurements, the reds first. The "
            "color is no feature, but a group."
        ),
        classes={3: 30, 4: 216, 5: 2138, 6: 2836, 7: 1079, 8: 193, 9: 5},
        drop=("color",),
        sensitive={"color": GroupColumn("color")},
        fetch=fetch.from_publisher(
            [f"{_WINES}/winequality-red.csv", f"{_WINES}/winequality-white.csv"], fetch.read_wine
        ),
    ),
    "abalone": Recipe(
        file="abalone.parquet",
        description=(
            "Rings of abalones, 1 to 29 (UCI): sex (F 0, I 1, M 2) and seven measurements. The usual binary "
            "task is 9 rings or fewer (2,096 rows) against more (2,081)."
        ),
        classes=dict(zip((*range(1, 28), 29), _ABALONE_RINGS, strict=True)),
        fetch=fetch.openml(183, _ABALONE_COLUMNS),
    ),
    "mushrooms": Recipe(
        file="mushrooms.parquet",
        description=(
            "Edible (0) and poisonous (1) mushrooms (UCI): 22 columns of letters as codes in sorted order, the "
            "2,480 missing stalk-roots as NaN."
        ),
        classes={0: 4208, 1: 3916},
        fetch=fetch.openml(24),
    ),
    "image-segment": Recipe(
        file="image_segment.parquet",
        description=(
            "Pixels of outdoor images in seven classes (UCI): brickface 0, cement 1, foliage 2, grass 3, path "
            "4, sky 5, window 6; 19 measurements. The official split (210 and 2,100 rows) is in the file of a "
            "data folder only."
        ),
        classes=dict.fromkeys(range(7), 330),
        has_split=True,
        fetch=fetch.openml(36, _SEGMENT_COLUMNS),
    ),
    "splice": Recipe(
        file="splice.parquet",
        description=(
            "Splice junctions in DNA (UCI): 60 letters as codes in sorted order, ambiguity letters kept; y EI "
            "0, IE 1, neither 2. The usual binary task is junction (0, 1) against neither."
        ),
        classes={0: 767, 1: 768, 2: 1655},
        fetch=fetch.openml(46, _SPLICE_COLUMNS),
    ),
    "breast-cancer-wisconsin": Recipe(
        file="wisc_breast_cancer.parquet",
        description=(
            "Wisconsin breast cancer, the cytology set of 1992 (UCI original): nine grades from 1 to 10, 16 "
            "missing bare_nuclei as NaN; y 1 for malignant."
        ),
        classes={0: 458, 1: 241},
        drop=("id",),
        fetch=fetch.openml(15, _CYTOLOGY_COLUMNS),
    ),
    "twonorm": Recipe(
        file="twonorm.parquet",
        description="DELVE's draw of 7,400 rows from Breiman's twonorm, 20 features.",
        classes={0: 3703, 1: 3697},
        hint="counterpoise.datasets.twonorm draws as many rows of the same distribution as you like.",
    ),
    "ringnorm": Recipe(
        file="ringnorm.parquet",
        description=(
            "DELVE's draw of 7,400 rows from ringnorm, 20 features, in KEEL's copy, which keeps thousandths "
            "as integers (divided out here) and has lost their trailing zeros: about one value in ten is ten "
            "times too small, so this is not quite Breiman's distribution."
        ),
        classes={0: 3664, 1: 3736},
        prepare=_thousandths,
        hint="counterpoise.datasets.ringnorm draws as many rows of the same distribution as you like.",
    ),
    "w8a": Recipe(
        file="w8a.npz",
        description="Platt's web pages as LIBSVM's 300 keyword indicators: CSR rows of ones; y -1 or 1.",
        classes={-1: 48270, 1: 1479},
        build=from_sparse_rows,
        fetch=fetch.from_publisher([f"{_WEB_PAGES}/w8a"], fetch.read_w8a),
    ),
    "donors": Recipe(
        file="donors.parquet",
        description=(
            "Exciting projects of DonorsChoose (KDD Cup 2014) as ADBench prepares them: 10 columns scaled to "
            "[0, 1], without names; y 1 for the rare exciting ones."
        ),
        classes={0: 582616, 1: 36710},
        fetch=fetch.from_publisher([f"{_ADBENCH}/11_donors.npz"], fetch.read_donors),
    ),
    "mnist": Recipe(
        file="mnist.npz",
        description="Handwritten digits (LeCun, Cortes): 28 x 28 images as 784 bytes; y 0 to 9; the official split.",
        classes=dict(enumerate((6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958))),
        has_split=True,
        build=from_images,
        fetch=fetch.mnist,
    ),
}


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
    if name not in RECIPES:
        hint = did_you_mean(str(name), dataset_names())
        raise ValueError(f"name must be one of {', '.join(dataset_names())}; got {name!r}.{hint}")
    recipe = RECIPES[name]
    folders = data_folders(folder)
    path = find_file(recipe.file, folders)
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
