"""Data files: CSV and Parquet alike, splits that cover the rows once, and what is said about bad ones."""

import os
import re

import numpy as np
import pandas as pd
import pytest

from counterpoise.persist import save
from counterpoise.runs import DataError, RunSettings
from counterpoise.runs.data import load_data
from counterpoise.runs.fitting import preprocessor
from counterpoise.runs.reading import WordsAmongNumbers, column_names, read_frame


def settings(**data):
    more = {key: data.pop(key) for key in ("splits", "datasets", "method", "preprocessing", "goals") if key in data}
    return RunSettings(data={"files": "loans.csv", "target": "paid", **data}, **more)


def test_csv_and_parquet_give_the_same_frames(loans_folder, loans):
    names = list(loans(1).columns)
    csv, parquet = (read_frame(loans_folder / f"loans.{end}", names) for end in ("csv", "parquet"))
    pd.testing.assert_frame_equal(csv, parquet)
    expected = loans()
    assert csv["job"].isna().tolist() == expected["job"].isna().tolist()
    np.testing.assert_array_equal(csv["income"].to_numpy(), expected["income"].to_numpy())
    assert csv["job"].dtype.name == "category"
    assert csv["age"].dtype.kind == "i"


def test_splits_cover_each_row_once_and_ignore_labels(loans_folder, loans):
    data = load_data(settings(splits={"validation": 0.3, "test": 0.2}), loans_folder)
    assert {name: len(part) for name, part in data.splits.items()} == {"train": 300, "validation": 180, "test": 120}
    rows = pd.concat([part.X.assign(paid=part.y) for part in data.splits.values()])
    expected = loans()
    assert sorted(rows["age"].tolist()) == sorted(expected["age"].tolist())
    assert (rows["paid"] == "yes").sum() == (expected["paid"] == "yes").sum()
    assert data.positive == "yes"


def test_methods_that_choose_nothing_have_no_validation_rows(loans_folder):
    assert list(load_data(settings(method={"name": "logistic"}), loans_folder).splits) == ["train", "test"]


@pytest.mark.parametrize("prefix", ["", "person "])
def test_splits_keep_the_rows_of_a_person_together(loans, tmp_path, prefix):
    person = np.random.default_rng(0).permutation(np.arange(600) % 120)
    frame = loans().assign(person=[f"{prefix}{number}" for number in person])
    for name, rows in (("first", frame[:200]), ("second", frame[200:])):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    asked = settings(files=["first.csv", "second.csv"], ids="person", splits={"validation": 0.3, "test": 0.2})
    data = load_data(asked, tmp_path)
    persons = {name: set(part.ids.tolist()) for name, part in data.splits.items()}
    assert {name: len(ids) for name, ids in persons.items()} == {"train": 60, "validation": 36, "test": 24}
    assert len(set.union(*persons.values())) == 120
    assert sum(len(part) for part in data.splits.values()) == 600
    assert "person" not in data.columns.features
    part = data.splits["test"]
    ages = {str(one): sorted(rows["age"]) for one, rows in frame.groupby("person")}
    for one in persons["test"]:
        assert sorted(part.X["age"][part.ids == one]) == ages[str(one)]


def test_splits_from_files_and_extra_datasets(loans_folder):
    asked = settings(
        splits={"test_files": "more.csv", "validation": 0.5},
        datasets={"mail": {"files": "mail.csv", "labelled": False}},
        baseline="today",
        groups=["sex"],
        weights="weight",
    )
    data = load_data(asked, loans_folder)
    assert [len(part) for part in data.splits.values()] == [300, 300, 200]
    assert data.extra["mail"].y is None
    assert len(data.extra["mail"].baseline) == 100
    assert data.columns.features == ["age", "income", "job"]
    assert set(data.splits["test"].groups["sex"]) == {"F", "M"}


def test_several_files_are_one_table(loans_folder):
    data = load_data(settings(files=["loans.csv", "more.csv"], splits={"test": 0, "validation": 0}), loans_folder)
    assert len(data.splits["train"]) == 800


def table(folder, name, **columns):
    """Write a table of forty rows of two classes that has some more columns."""
    frame = pd.DataFrame({"age": range(40), "paid": ["no", "yes"] * 20} | columns)
    frame.to_parquet(folder / name) if name.endswith("parquet") else frame.to_csv(folder / name, index=False)


def test_texts_that_look_like_numbers_in_a_later_file_stay_texts(tmp_path):
    table(tmp_path, "loans.csv", region=["01", "A3"] * 20, paid=["1", "none"] * 20, wed=["true", "-"] * 20)
    table(tmp_path, "later.csv", region=["01", "02"] * 20, paid=["1"] * 40, wed=["true"] * 40)
    asked = settings(splits={"test_files": "later.csv", "validation": 0.2}, groups="wed", positive="1")
    data = load_data(asked, tmp_path)
    later = data.splits["test"]
    assert set(later.X["region"]) == {"01", "02"}
    assert set(later.labels) == {"1"}
    assert set(later.groups["wed"]) == {"true"}


def test_files_of_which_one_has_texts_and_one_numbers(tmp_path):
    table(tmp_path, "loans.csv", region=["01", "A3"] * 20)
    table(tmp_path, "digits.csv", region=["01", "02"] * 20)
    table(tmp_path, "numbers.parquet", region=[1, 2] * 20)
    table(tmp_path, "empty.csv", region=None)
    with pytest.raises(DataError, match=r"'region' must be of one kind in all files; .* Name it in data\.categorical"):
        load_data(settings(files=["loans.csv", "digits.csv"]), tmp_path)

    def regions(*files, **data):
        asked = settings(files=["loans.csv", *files], splits={"test": 0, "validation": 0}, **data)
        return load_data(asked, tmp_path).splits["train"].X["region"]

    assert set(regions("digits.csv", "numbers.parquet", categorical="region")) == {"01", "02", "1", "2", "A3"}
    assert set(regions("empty.csv").dropna()) == {"01", "A3"}
    assert regions("empty.csv").isna().sum() == 40


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_than_commas_are_named(separator, tmp_path):
    (tmp_path / "loans.csv").write_text("\ufeffage,paid\n1,yes\n".replace(",", separator), encoding="utf-8")
    with pytest.raises(
        DataError, match="must have commas between columns; its header has " + re.escape(repr(separator))
    ):
        load_data(settings(), tmp_path)


def test_an_index_that_pandas_wrote_is_no_column(loans, tmp_path):
    frame = loans().sample(frac=1, random_state=0)
    frame.to_csv(tmp_path / "loans.csv")
    frame.to_parquet(tmp_path / "loans.parquet")
    for end in ("csv", "parquet"):
        assert column_names(tmp_path / f"loans.{end}") == list(frame.columns)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "loans.csv")
    with pytest.raises(DataError, match=r"it is a pipe or a device\. Save its content first"):
        load_data(settings(), tmp_path)


@pytest.mark.slow
def test_texts_of_several_lines(tmp_path):
    """Also where they lie across the blocks of 16 megabytes in which a file is read."""
    note = "one\ntwo, three " * 32_000
    table(tmp_path, "loans.csv", note=[note] * 40)
    assert set(read_frame(tmp_path / "loans.csv", ["note", "paid"])["note"]) == {note}


def test_truth_values_beside_categories_are_numbers_for_trees(tmp_path):
    table(tmp_path, "loans.csv", wed=[True, False] * 20, job=["clerk", "farmer"] * 20)
    data = load_data(settings(), tmp_path)
    prepare = preprocessor(settings().preprocessing, data.columns, "trees", takes_missing=True)
    made = prepare.fit_transform(data.splits["train"].X)
    assert made.dtype.kind == "f"
    assert set(made[:, data.columns.features.index("wed") + 1 - len(data.columns.features)]) == {0, 1}


FOLDS = np.array(["train", "validation", "test", "train", "train"] * 8)


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_a_column_says_which_rows_are_which(end, tmp_path):
    table(tmp_path, f"loans.{end}", fold=pd.Categorical(FOLDS))
    data = load_data(settings(files=f"loans.{end}", splits={"column": "fold"}), tmp_path)
    assert data.columns.features == ["age"]
    for split, part in data.splits.items():
        assert part.X["age"].tolist() == np.flatnonzero(split == FOLDS).tolist()


def test_fractions_split_what_the_column_leaves_to_training(tmp_path):
    table(tmp_path, "loans.csv", fold=["train", "train", "train", "test"] * 10)
    data = load_data(settings(splits={"column": "fold", "validation": 0.5}), tmp_path)
    assert {name: len(part) for name, part in data.splits.items()} == {"train": 15, "validation": 15, "test": 10}
    assert set(data.splits["test"].X["age"] % 4) == {3}


BAD_FOLDS = {
    "another word": ({"fold": ["train", "dev"] * 20}, {}, "must hold train, validation or test; it holds 'dev'"),
    "numbers": ({"fold": [0, 1] * 20}, {}, "must hold train, validation or test; it holds 0"),
    "missing": ({"fold": ["train", None] * 20}, {}, "it holds a missing value"),
    "no training": ({"fold": ["test"] * 40}, {}, "must hold train in some rows; it holds it in no row"),
    "twice": ({"fold": FOLDS}, {"test": 0.2}, r"splits\.test: column 'fold' has test rows already"),
    "no column": ({"folds": FOLDS}, {}, r"splits\.column: .* has no column 'fold'\. Did you mean 'folds'"),
}


@pytest.mark.parametrize("case", BAD_FOLDS)
def test_a_column_of_splits_that_does_not_say_it_is_refused(case, tmp_path):
    columns, splits, words = BAD_FOLDS[case]
    table(tmp_path, "loans.csv", **columns)
    with pytest.raises(DataError, match=words):
        load_data(settings(splits={"column": "fold", **splits}), tmp_path)


def test_a_split_whose_weights_are_all_zero_is_refused(tmp_path):
    table(tmp_path, "loans.csv", fold=FOLDS, w=(FOLDS != "test").astype(int))
    with pytest.raises(DataError, match=r"data\.weights: rows 'test' must have a weight above 0; all 8 have 0"):
        load_data(settings(splits={"column": "fold"}, weights="w"), tmp_path)


def test_numbers_named_categorical_become_texts_and_missing_groups_a_group(tmp_path):
    pd.DataFrame({"code": [1, 2, 3, 1] * 5, "g": ["a", None] * 10, "x": range(20), "y": [0, 1] * 10}).to_csv(
        tmp_path / "t.csv", index=False
    )
    asked = RunSettings(
        data={"files": "t.csv", "target": "y", "categorical": "code", "groups": "g"},
        splits={"test": 0, "validation": 0},
    )
    part = load_data(asked, tmp_path).splits["train"]
    assert part.X["code"].cat.categories.tolist() == ["1", "2", "3"]
    assert set(part.groups["g"]) == {"a", None}


@pytest.mark.parametrize("features", ["trees", "scaled"])
def test_preprocessing_keeps_or_fills_what_is_missing(features, loans_folder):
    asked = settings(drop=["today", "weight"])
    data = load_data(asked, loans_folder)
    prepare = preprocessor(asked.preprocessing, data.columns, features, takes_missing=True)
    train = data.splits["train"].X
    made = prepare.fit_transform(train)
    assert np.isnan(made).any() == (features == "trees")
    if features == "scaled":
        np.testing.assert_allclose(made[:, -2:].std(axis=0), 1)
        assert made.shape[1] == 2 + 2 + 3 + 1  # numbers; sex; job and its missing values
    odd = train.head(1).assign(job=pd.Categorical(["astronaut"]))
    assert prepare.transform(odd).shape == (1, made.shape[1])


BAD_FILES = {
    b"": "it is empty",
    b"age,paid\n": "it has a header only",
    b"age,paid\n1,yes\n1,yes,no\n": "cannot be read as CSV: .*Expected 2 columns, got 3",
    b"age,paid,age\n1,yes,2\n": "'age' is there 2 times",
    "age,paid\n1,caf\xe9\n".encode("latin-1"): "must be UTF-8 text; column 'paid' is not",
    "\xe9,paid\n1,yes\n".encode("latin-1"): "must be UTF-8 text; its header is not",
    b"age,payed\n1,yes\n": "data.target: .* has no column 'paid'. Did you mean 'payed'?",
    b"paid\nyes\nno\n": "must have a feature column",
    b"age,paid\n1,yes\n2,yes\n3,yes\n": "must hold at least two classes; it holds 'yes' only",
    b"age,paid\n1,yes\n2,\n3,no\n": "must hold a label in each row; 1 of 3 are missing",
    b"age,paid\n1,0.5\n2,0.7\n": "must hold classes; row 1 holds the fraction 0.5",
    b"age,paid\n2020-01-01,yes\n2020-01-02,no\n": "it holds date32.* in data.drop, or store days since",
    b"age,paid\n1,yes\n2,no\n": "must hold every class of 'paid'; of 1 none is 'no'",
    b"age,paid\n" + b"1,yes\n" * 40 + b"2,no\n": "must hold every class of 'paid'",
    b"age,paid\ninf,yes\n2,no\n3,yes\n": "must hold finite numbers; row 1 holds infinity",
    b"\x00\x01\x02\xff" * 50: "must be UTF-8 text|cannot be read as CSV|has no column",
}


@pytest.mark.parametrize("content", BAD_FILES)
def test_a_bad_file_is_refused_in_one_sentence(content, tmp_path):
    (tmp_path / "loans.csv").write_bytes(content)
    with pytest.raises(DataError, match=BAD_FILES[content]) as caught:
        load_data(settings(), tmp_path)
    assert "\n" not in str(caught.value)


BAD_SETTINGS = {
    "missing file": ({"files": "none.csv"}, "There is no data file"),
    "folder": ({"files": "."}, "it is a folder"),
    "torn Parquet": ({"files": "torn.parquet"}, "cannot be read as Parquet"),
    "no Parquet": ({"files": "fake.parquet"}, "cannot be read as Parquet"),
    "group": ({"groups": "sexe"}, "data.groups: .* has no column 'sexe'. Did you mean 'sex'?"),
    "drop": ({"drop": "agee"}, "data.drop: .* no column 'agee'"),
    "columns": ({"columns": ["age", "incme"]}, "data.columns: .* Did you mean 'income'?"),
    "weights": ({"weights": "wait"}, "data.weights: .* no column 'wait'"),
    "text weights": ({"weights": "job"}, "must hold weights, numbers of at least 0; row .* holds '"),
    "missing weights": ({"weights": "income"}, "must hold a finite weight in each row"),
    "negative weights": ({"files": "weights.csv", "weights": "negative"}, "weights of at least 0; row 1 holds -1"),
    "zero weights": ({"files": "weights.csv", "weights": "zero"}, "must hold a weight above 0; got zeros only"),
    "ids": ({"ids": "ages"}, "data.ids: .* has no column 'ages'. Did you mean 'age'?"),
    "missing ids": ({"ids": "job"}, "data.ids: column 'job' .* must name the person of each row; .* an id of its own"),
    "fractions as ids": (
        {"files": "weights.csv", "ids": "part"},
        "data.ids: .* texts or whole numbers; row 1 holds 0.5",
    ),
    "ids of one person": (
        {"files": "weights.csv", "ids": "zero"},
        r"must have persons \(zero\) for 2 splits; there are 1",
    ),
    "held-out rows without ids": (
        {"ids": "person", "files": "persons.csv", "splits": {"validation_files": "loans.csv"}},
        "data.ids: the files of splits.validation_files have no column 'person'",
    ),
    "positive": ({"positive": "maybe"}, "data.positive must be a class of column 'paid': 'no', 'yes'; got 'maybe'"),
    "baseline": ({"baseline": "job"}, "must hold a label in each row"),
    "foreign baseline": ({"baseline": "sex"}, "data.baseline: rows 'train' hold the label 'F'"),
    "model": ({"baseline_model": "loans.csv"}, "loans.csv"),
    "no model": ({"baseline_model": "none.cp"}, "none.cp"),
    "other columns": ({"datasets": {"mail": {"files": "weights.csv"}}}, "weights.csv has no column 'weight'"),
    "unlabelled": ({"datasets": {"mail": {"files": "mail.csv"}}}, "mail.csv has no column 'paid'"),
    "text in numbers": ({"splits": {"test_files": "texts.csv"}}, "Column 'age' .* must hold numbers as in training"),
    "foreign label": ({"splits": {"test_files": "label.csv"}}, "rows 'test' hold the label 'perhaps'"),
    "missing values": ({"preprocessing": {"missing": "refuse"}}, 'missing = "refuse", but column'),
    "too many classes": ({"target": "id", "files": "ids.csv"}, "must hold classes; it has 1500 different values"),
}


@pytest.fixture(scope="module")
def bad_folder(tmp_path_factory, loans):
    folder = tmp_path_factory.mktemp("bad")
    frame = loans(60)
    frame.to_csv(folder / "loans.csv", index=False)
    frame.drop(columns="paid").to_csv(folder / "mail.csv", index=False)
    frame.assign(age="old").to_csv(folder / "texts.csv", index=False)
    frame.assign(paid="perhaps").to_csv(folder / "label.csv", index=False)
    frame[["age", "income", "paid"]].assign(negative=-1, zero=0, part=0.5).to_csv(folder / "weights.csv", index=False)
    frame.assign(person=frame.index // 3).to_csv(folder / "persons.csv", index=False)
    pd.DataFrame({"id": range(1500), "x": 1.0}).to_csv(folder / "ids.csv", index=False)
    frame.to_parquet(folder / "whole.parquet")
    content = (folder / "whole.parquet").read_bytes()
    (folder / "torn.parquet").write_bytes(content[: len(content) // 2])
    (folder / "fake.parquet").write_bytes(b"age,paid\n1,yes\n")
    return folder


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_settings_that_do_not_fit_the_data_are_refused_in_one_sentence(case, bad_folder):
    data, words = BAD_SETTINGS[case]
    with pytest.raises((DataError, ValueError), match=words) as caught:
        load_data(settings(**data), bad_folder)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_deployed_model_that_cannot_predict_these_rows(loans, tmp_path):
    from sklearn.dummy import DummyClassifier  # noqa: PLC0415

    frame = loans(60)
    frame.to_csv(tmp_path / "loans.csv", index=False)
    save(DummyClassifier(strategy="most_frequent").fit(frame, frame["sex"]), tmp_path / "other.cp")
    with pytest.raises(DataError, match=r"other\.cp must predict one of"):
        load_data(settings(baseline_model="other.cp"), tmp_path)
    frame.assign(paid=(frame["paid"] == "yes") * 1).to_csv(tmp_path / "loans.csv", index=False)
    texts = np.where(frame["paid"] == "yes", "1", "0")
    save(DummyClassifier(strategy="most_frequent").fit(frame, texts), tmp_path / "texts.cp")
    with pytest.raises(DataError, match=r"texts\.cp must predict one of 0, 1 .* '1' is not the class 1"):
        load_data(settings(baseline_model="texts.cp"), tmp_path)


WORDED = {
    "g": ["NA", "null", "nan", None] * 10,
    "code": ["1", "2", "NA", ""] * 10,
    "job": ["None", "clerk", "NULL", None] * 10,
    "wed": [True, None] * 20,
    "day": pd.to_datetime(["2026-11-03", "2026-11-04", None, "2026-11-05"] * 10),
}


def test_words_such_as_na_are_values_of_groups_labels_and_categories_in_either_kind_of_file(tmp_path):
    for end in ("csv", "parquet"):
        table(tmp_path, f"loans.{end}", paid=["NA", "nan"] * 20, **WORDED)
    asked = {"groups": ["g", "code", "wed", "day"], "splits": {"test": 0, "validation": 0}}
    csv, parquet = (
        load_data(settings(files=f"loans.{end}", **asked), tmp_path).splits["train"] for end in ("csv", "parquet")
    )
    assert set(csv.groups["g"]) == {"NA", "null", "nan", None}
    assert set(csv.groups["code"]) == {"1", "2", "NA", None}
    assert set(csv.groups["day"]) == {"2026-11-03", "2026-11-04", "2026-11-05", None}
    assert set(csv.X["job"].dropna()) == {"None", "clerk", "NULL"}
    assert set(csv.y) == {"NA", "nan"}
    pd.testing.assert_frame_equal(csv.X, parquet.X)
    assert csv.y.tolist() == parquet.y.tolist()
    for name in csv.groups:
        first, second = csv.table().levels(name), parquet.table().levels(name)
        assert list(first.place) == list(second.place)
        assert first.codes.tolist() == second.codes.tolist()


@pytest.mark.parametrize("words", [["1.5", "2.5", "NA", ""], ["TRUE", "FALSE", "NA", ""], ["7", "NA", "null", "nan"]])
def test_words_among_numbers_are_missing_numbers_and_a_warning_says_so(words, tmp_path):
    table(tmp_path, "loans.csv", income=words * 10)
    table(tmp_path, "empty.csv", income=["" if word in {"NA", "null", "nan"} else word for word in words] * 10)
    with pytest.warns(WordsAmongNumbers, match=r"Column 'income' of .* holds numbers except 'NA'.* in .* of 40 rows"):
        worded = read_frame(tmp_path / "loans.csv", ["income"])
    empty = read_frame(tmp_path / "empty.csv", ["income"])
    assert worded["income"].astype(float).tolist() == pytest.approx(empty["income"].astype(float).tolist(), nan_ok=True)
    assert read_frame(tmp_path / "loans.csv", ["income"], missing=["NA", "null", "nan"])["income"].dtype.kind == "f"
    assert read_frame(tmp_path / "loans.csv", ["income"], values=["income"])["income"].dtype.name == "category"


def test_days_beside_words_are_no_categories(tmp_path):
    table(tmp_path, "loans.csv", when=["2026-11-03", "NA"] * 20)
    with (
        pytest.warns(WordsAmongNumbers),
        pytest.raises(DataError, match=r"'when' .* it holds timestamp.* in data\.drop"),
    ):
        load_data(settings(), tmp_path)


def test_a_word_among_labels_that_are_numbers_is_a_class_and_a_warning_says_so(tmp_path):
    table(tmp_path, "loans.csv", paid=["0", "1", "1", "NA"] * 10)
    with pytest.warns(
        WordsAmongNumbers, match=r"numbers except 'NA' in 10 of 40 rows, first in row 4: the word counts as a class"
    ):
        assert load_data(settings(), tmp_path).classes.tolist() == ["0", "1", "NA"]
    table(tmp_path, "plain.csv", paid=["0", "1"] * 20)
    asked = settings(files="plain.csv", splits={"test_files": "loans.csv"})
    with (
        pytest.warns(WordsAmongNumbers),
        pytest.raises(DataError, match="rows 'test' hold the label 'NA', which is not"),
    ):
        load_data(asked, tmp_path)


def test_group_columns_with_a_word_in_one_file_are_texts_in_all(tmp_path):
    table(tmp_path, "loans.csv", code=["1", "2"] * 20)
    table(tmp_path, "more.csv", code=["1", "NA"] * 20)
    asked = settings(files=["loans.csv", "more.csv"], groups="code", splits={"test": 0, "validation": 0})
    assert set(load_data(asked, tmp_path).splits["train"].groups["code"]) == {"1", "2", "NA"}
