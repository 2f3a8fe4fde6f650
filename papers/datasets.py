"""The data sets of the papers and benchmarks: those of the library, and recipes for others, which it does not carry."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.datasets import TableData
from counterpoise.datasets.columns import (
    Category,
    Columns,
    GroupColumn,
    Recipe,
    as_category,
    as_integer_labels,
    from_sparse_rows,
    read_csv,
    stack,
)
from counterpoise.datasets.fetch import from_publisher, openml, read_sparse_rows
from counterpoise.datasets.recipes import RECIPES as LIBRARY_RECIPES
from counterpoise.datasets.recipes import load_from

_GITHUB = "https://raw.githubusercontent.com"
_WINES = f"{_GITHUB}/jbrownlee/Datasets/d20fcb6402ae34e653d4513b00f39257bb37ed7f"
_ADBENCH = f"{_GITHUB}/Minqi824/ADBench/3dac8221081e190f157d78e93bfa8867f90d0965/adbench/datasets/Classical"
_WEB_PAGES = f"{_GITHUB}/unc-optimization/AccSPD/d2f1f2c961e3401032649544445bb24ab63ab1c5/data"

_N_MNIST_TRAIN = 60_000  # OpenML keeps MNIST in one table, training part first
_W8A_FEATURES = 300
_RINGNORM_SCALE = 1000.0  # the file keeps thousandths as integers
WINE_COLUMNS = (
    *("fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides", "free sulfur dioxide"),
    *("total sulfur dioxide", "density", "pH", "sulphates", "alcohol"),
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


def _thousandths(columns: Columns) -> Columns:
    return {name: column if name == "y" else np.asarray(column) / _RINGNORM_SCALE for name, column in columns.items()}


def _read_wine(paths: list[Path]) -> Columns:
    """Read the red and the white wines."""
    tables = []
    for path, color in zip(paths, ("red", "white"), strict=True):
        table = read_csv(path, (*WINE_COLUMNS, "y"))
        tables.append(table | {"color": as_category([color] * len(np.asarray(table["y"])))})
    return stack(tables)


def _read_donors(paths: list[Path]) -> Columns:
    """Read ADBench's matrix; its columns have no names."""
    with np.load(paths[0], allow_pickle=False) as arrays:
        X, y = arrays["X"], arrays["y"]
    return {f"f{at}": X[:, at] for at in range(X.shape[1])} | {"y": y}


def _read_w8a(paths: list[Path]) -> Columns:
    """Read LIBSVM's training file."""
    return {"n_features": np.array(_W8A_FEATURES)} | read_sparse_rows(paths[0], _W8A_FEATURES)


def _fetch_mnist(cache: Path) -> Columns:
    """Fetch OpenML's MNIST and cut it into the official parts."""
    table = openml(554)(cache)
    labels = table.pop("y")
    if not isinstance(labels, Category):
        raise TypeError(f"OpenML table 554 must have digits as labels; got {type(labels).__name__}.")
    X = np.column_stack([np.asarray(column) for column in table.values()]).astype(np.uint8)
    y = np.array(labels.names, dtype=np.int64)[labels.codes]
    train, test = slice(None, _N_MNIST_TRAIN), slice(_N_MNIST_TRAIN, None)
    return {"X_train": X[train], "y_train": y[train], "X_test": X[test], "y_test": y[test]}


def _from_images(name: str, recipe: Recipe, arrays: Columns) -> TableData:
    """Flatten the images of both parts into rows of bytes."""
    images = np.concatenate([np.asarray(arrays["X_train"]), np.asarray(arrays["X_test"])])
    labels = [as_integer_labels(arrays["y_train"]), as_integer_labels(arrays["y_test"])]
    X: Any = images.reshape(len(images), -1)
    return TableData(
        name=name,
        X=X,
        y=np.concatenate(labels),
        feature_names=[f"pixel{at}" for at in range(X.shape[1])],
        categorical=np.zeros(X.shape[1], dtype=bool),
        sensitive={},
        split=np.repeat(["train", "test"], [len(part) for part in labels]),
        description=recipe.description,
    )


RECIPES = {
    "census-income": Recipe(
        file="census_income_kdd.parquet",
        sha256="c79ee69b2b79be624bd035d234e5081a14a6bb5fadddd3ca08d326266f22a94e",
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
        sha256="84afb36315a429f5b2e2d488a801752daddc920b37466bf81a2c1920f794d2e8",
        description="Spam in e-mail (UCI): 57 word, character and capital-run statistics; y 1 for spam.",
        classes={0: 2788, 1: 1813},
        fetch=openml(44),
    ),
    "musk2": Recipe(
        file="musk2.parquet",
        sha256="49fc79685e7f0e22b3e33ec02307c231d25e51d72b14b5e2ebbf747331109dbd",
        description=(
            "Musk, version 2 (UCI): 166 shape features of each conformation; y 1 for musk. Conformations of one "
            "molecule are not independent: sensitive molecule says which belong together."
        ),
        classes={0: 5581, 1: 1017},
        drop=("molecule_name", "conformation_name"),
        sensitive={"molecule": GroupColumn("molecule_name")},
        fetch=openml(1116, _MUSK_COLUMNS),
    ),
    "wine-quality": Recipe(
        file="wine_quality.parquet",
        sha256="e769850f3fc9bcb1a633ce8f6d2f91e907061c8551a817273706998c59dba93d",
        description=(
            "Quality of red and white vinho verde, graded 3 to 9 (UCI): 11 measurements, the reds first. The "
            "color is no feature, but a group."
        ),
        classes={3: 30, 4: 216, 5: 2138, 6: 2836, 7: 1079, 8: 193, 9: 5},
        drop=("color",),
        sensitive={"color": GroupColumn("color")},
        fetch=from_publisher(
            {
                f"{_WINES}/winequality-red.csv": "c9614512e980f1cbd221c796daa97f00c4898c3cd1716863abac60f6cd1a522e",
                f"{_WINES}/winequality-white.csv": "659d419fff887f225bf977d20520bb64a64cae203e460087f809721d4430ba27",
            },
            _read_wine,
        ),
    ),
    "abalone": Recipe(
        file="abalone.parquet",
        sha256="36d971378e63d151b7fd312eedd174e0c0428f0879b2e9e28ddf8195685f7ceb",
        description=(
            "Rings of abalones, 1 to 29 (UCI): sex (F 0, I 1, M 2) and seven measurements. The usual binary "
            "task is 9 rings or fewer (2,096 rows) against more (2,081)."
        ),
        classes=dict(zip((*range(1, 28), 29), _ABALONE_RINGS, strict=True)),
        fetch=openml(183, _ABALONE_COLUMNS),
    ),
    "mushrooms": Recipe(
        file="mushrooms.parquet",
        sha256="1c8986c151f9837f3215999131b7b9a3c6caa22481d5bc1152a7a7fce9b2c418",
        description=(
            "Edible (0) and poisonous (1) mushrooms (UCI): 22 columns of letters as codes in sorted order, the "
            "2,480 missing stalk-roots as NaN."
        ),
        classes={0: 4208, 1: 3916},
        fetch=openml(24),
    ),
    "image-segment": Recipe(
        file="image_segment.parquet",
        sha256="8b7ae49523876cc39c92717ac949a1c3bc23335b41e1952b431e74a5f9ca4da2",
        description=(
            "Pixels of outdoor images in seven classes (UCI): brickface 0, cement 1, foliage 2, grass 3, path "
            "4, sky 5, window 6; 19 measurements. The official split (210 and 2,100 rows) is in the file of a "
            "data folder only."
        ),
        classes=dict.fromkeys(range(7), 330),
        has_split=True,
        fetch=openml(36, _SEGMENT_COLUMNS),
    ),
    "splice": Recipe(
        file="splice.parquet",
        sha256="f9e2326ea5f74982a46e17da0b9dae90dc0d0a1d5370d266439a6403efe81aad",
        description=(
            "Splice junctions in DNA (UCI): 60 letters as codes in sorted order, ambiguity letters kept; y EI "
            "0, IE 1, neither 2. The usual binary task is junction (0, 1) against neither."
        ),
        classes={0: 767, 1: 768, 2: 1655},
        fetch=openml(46, _SPLICE_COLUMNS),
    ),
    "breast-cancer-wisconsin": Recipe(
        file="wisc_breast_cancer.parquet",
        sha256="a8f374d3104017ab6fd4963453b3ec4ca9478e41eab3300cadfdbffda711b570",
        description=(
            "Wisconsin breast cancer, the cytology set of 1992 (UCI original): nine grades from 1 to 10, 16 "
            "missing bare_nuclei as NaN; y 1 for malignant."
        ),
        classes={0: 458, 1: 241},
        drop=("id",),
        fetch=openml(15, _CYTOLOGY_COLUMNS),
    ),
    "twonorm": Recipe(
        file="twonorm.parquet",
        sha256="740ccd9ef18a190b400d0a5afc3557b9ae8ab9bbbcc30ad1b62ef7ae443cbd04",
        description="DELVE's draw of 7,400 rows from Breiman's twonorm, 20 features.",
        classes={0: 3703, 1: 3697},
        hint="counterpoise.datasets.twonorm draws as many rows of the same distribution as you like.",
    ),
    "ringnorm": Recipe(
        file="ringnorm.parquet",
        sha256="76009fb5737bf8ade5e0b960b46793eb7c222a6494e8945f4d292e7f48ab14ea",
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
        sha256="0c47d6a8cda12855e36176e40d6c9d0185bae5cbfd2cff9d34b74400e3b33304",
        description="Platt's web pages as LIBSVM's 300 keyword indicators: CSR rows of ones; y -1 or 1.",
        classes={-1: 48270, 1: 1479},
        build=from_sparse_rows,
        fetch=from_publisher(
            {f"{_WEB_PAGES}/w8a": "b464b4f6ce6a5d9e181ffc793e19a04751036273722312398ef7673705014902"}, _read_w8a
        ),
    ),
    "donors": Recipe(
        file="donors.parquet",
        sha256="896b585c3954a5277cf356559705407547c618da56524df05281759044c5caa1",
        description=(
            "Exciting projects of DonorsChoose (KDD Cup 2014) as ADBench prepares them: 10 columns scaled to "
            "[0, 1], without names; y 1 for the rare exciting ones."
        ),
        classes={0: 582616, 1: 36710},
        fetch=from_publisher(
            {f"{_ADBENCH}/11_donors.npz": "5824ec854465f2763b4bfe3da1ae9f25ed5433b5c6e265d42e37da4f82a58679"},
            _read_donors,
        ),
    ),
    "mnist": Recipe(
        file="mnist.npz",
        sha256="9621549210676b1e20be7daaa21d4b4730acb32631089c4c08b48990c3b0ab78",
        description="Handwritten digits (LeCun, Cortes): 28 x 28 images as 784 bytes; y 0 to 9; the official split.",
        classes=dict(enumerate((6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958))),
        has_split=True,
        build=_from_images,
        fetch=_fetch_mnist,
    ),
}


def load_dataset(name: str, *, folder: str | os.PathLike[str] | None = None) -> TableData:
    """Return a data set by its name, found or fetched as ``counterpoise.datasets.load_dataset`` does.

    Parameters
    ----------
    name : str
        One of ``RECIPES``, or a name that the library knows.
    folder : path, optional
        A folder with data files, looked into first.

    Examples
    --------
    >>> from papers.datasets import load_dataset
    >>> load_dataset("spambase")  # doctest: +SKIP
    TableData('spambase': 4601 rows, 57 features, classes 0 (2788), 1 (1813))
    """
    return load_from(LIBRARY_RECIPES | RECIPES, name, folder)
