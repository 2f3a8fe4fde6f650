"""Bad input of every kind: one sentence, the right exit code, and everything on disk as it was."""

import shutil

import pytest
from spoiled import (
    FIT,
    PREDICT,
    Case,
    altered,
    assert_refused,
    changed,
    folder,
    full,
    goals,
    gone,
    read_only,
    table,
    written,
)

from counterpoise.cli import main

GOAL = '"recall >= 0.5"'
CASES = {
    # the goals file
    "no goals file": Case("fit nowhere.toml", "There is no goals file nowhere.toml"),
    "a folder as goals file": Case("fit run", "run must be a goals file (TOML); it is a folder"),
    "no TOML": Case(FIT, "goals.toml must be TOML", goals("alpha = 0.2", "alpha 0.2")),
    "empty goals file": Case(FIT, "data is missing", written("goals.toml", "")),
    "goals file not UTF-8": Case(FIT, "must be UTF-8 text", written("goals.toml", b"\xff\xfe")),
    "unknown key": Case(FIT, "Did you mean 'alpha'?", goals("alpha", "alpa")),
    "alpha 0": Case(FIT, "alpha: expected greater than 0; got 0", goals("alpha = 0.2", "alpha = 0")),
    "alpha 2": Case(FIT, "less than or equal to 1; got 2", goals("alpha = 0.2", "alpha = 2")),
    "alpha as a word": Case(FIT, "alpha: expected a number; got 'much'", goals("alpha = 0.2", 'alpha = "much"')),
    "confidence above 1": Case(FIT, "less than 1; got 1.5", goals("alpha", "confidence = 1.5\nalpha")),
    "unknown method": Case(FIT, "Did you mean 'adalpboost'?", goals('"adalpboost"', '"adalpbost"')),
    "unknown parameter": Case(FIT, "Did you mean 'n_estimators'?", goals("n_estimators", "n_estimator")),
    "bad value of a parameter": Case(FIT, "n_estimators", goals("n_estimators = 5", "n_estimators = 0")),
    "typo in a metric": Case(FIT, "Did you mean 'recall'?", goals(GOAL, '"recal(train) >= 0.5"')),
    "goal that cannot be read": Case(FIT, "expected ')'", goals(GOAL, '"recall(train >= 0.5"')),
    "unknown dataset": Case(FIT, "unknown dataset 'trian'", goals(GOAL, '"recall(trian) >= 0.5"')),
    "unknown group column": Case(FIT, "data.groups", goals('groups = "size"', 'groups = "sex"')),
    "unknown group": Case(FIT, "huge", goals("size=large", "size=huge")),
    "wrong target": Case(FIT, "Did you mean 'diagnosis'?", goals('"diagnosis"', '"diagnose"')),
    "wrong positive class": Case(FIT, "data.positive must be a class", goals("[data]", '[data]\npositive = "ill"')),
    "target among the groups": Case(FIT, "beside the target", goals('groups = "size"', 'groups = "diagnosis"')),
    "splits that leave nothing": Case(
        FIT, "leave rows to train on", goals("[method]\n", "[splits]\ntest = 0.6\nvalidation = 0.5\n[method]\n")
    ),
    # data
    "no data file": Case(FIT, "There is no data file tumours.csv", gone("tumours.csv")),
    "a folder as data": Case(FIT, "it is a folder", goals('"tumours.csv"', '"run"')),
    "empty CSV": Case(FIT, "tumours.csv must be a CSV or Parquet file; it is empty", written("tumours.csv", "")),
    "header only": Case(FIT, "it has a header only", table(lambda frame: frame.iloc[:0])),
    "constant target": Case(FIT, "at least two classes", table(lambda frame: frame.assign(diagnosis="benign"))),
    "missing labels": Case(FIT, "must hold a label in each row; 569", table(lambda frame: frame.assign(diagnosis=""))),
    "duplicate columns": Case(
        FIT, "must have each column once", written("tumours.csv", "x,x,size,diagnosis\n1,2,small,benign\n")
    ),
    "not UTF-8": Case(
        FIT,
        "must be UTF-8 text",
        written("tumours.csv", b"x,size,diagnosis\n1,gro\xdf,benign\n2,small,malignant\n"),
    ),
    "header not UTF-8": Case(
        FIT, "must be UTF-8 text", written("tumours.csv", b"gr\xf6\xdfe,size,diagnosis\n1,large,benign\n")
    ),
    "ragged CSV": Case(
        FIT, "cannot be read as CSV", written("tumours.csv", "x,size,diagnosis\n1,small,benign\n2,large\n")
    ),
    "infinite numbers": Case(FIT, "finite numbers", table(lambda frame: frame.assign(**{"worst area": float("inf")}))),
    "only a target": Case(FIT, "must have a feature column", table(lambda frame: frame[["size", "diagnosis"]])),
    "too few rows": Case(FIT, "rows", table(lambda frame: frame.iloc[[0, -1]])),
    "torn Parquet": Case(
        "init tumours.parquet --target diagnosis -o new.toml",
        "cannot be read as Parquet",
        changed("tumours.parquet", lambda content: content[: len(content) // 2]),
    ),
    "CSV called Parquet": Case(
        "init new.parquet --target x -o new.toml", "cannot be read as Parquet", written("new.parquet", "x,y\n1,2\n")
    ),
    # init
    "init without a table": Case("init nowhere.csv --target x -o new.toml", "There is no data file nowhere.csv"),
    "init with a wrong target": Case("init tumours.csv --target x -o new.toml", "has no column 'x'"),
    "init with an unknown group": Case(
        "init tumours.csv --target diagnosis --groups sizes -o new.toml", "Did you mean 'size'?"
    ),
    "init with groups in one text": Case(
        "init tumours.csv --target diagnosis --groups size,diagnosis -o new.toml",
        "give the option once for each of 'size', 'diagnosis'",
    ),
    "init over a file": Case("init tumours.csv --target diagnosis", "goals.toml exists already"),
    "init into no folder": Case(
        "init tumours.csv --target diagnosis -o none/goals.toml", "There is no folder none for goals.toml"
    ),
    "init on only a target": Case(
        "init one.csv --target y -o new.toml", "must have a feature column", written("one.csv", "y\na\nb\n")
    ),
    "init with a target of fractions": Case(
        ["init", "tumours.csv", "--target", "mean radius", "-o", "new.toml"],
        "must hold classes; row 1 holds the fraction",
    ),
    # the run folder
    "no run folder": Case("audit nowhere tumours.csv", "There is no run folder nowhere"),
    "a file as run folder": Case("audit goals.toml tumours.csv", "There is no run folder goals.toml"),
    "a foreign folder": Case("audit other tumours.csv", "other is not a run folder", folder("other")),
    "a foreign folder to fit in": Case("fit goals.toml -o .", "must be new or empty"),
    "a file to fit in": Case("fit goals.toml -o tumours.csv", "there is a file of that name"),
    "a run that is not whole": Case("audit run", "is not finished", gone("run/done.json")),
    "another run's folder": Case(
        "fit goals.toml -o run", "holds a run with other settings", goals("alpha = 0.2", "alpha = 0.3")
    ),
    "no model": Case(PREDICT, "lacks model.cp", gone("run/model.cp")),
    "empty model": Case(PREDICT, "run/model.cp cannot be loaded", written("run/model.cp", b"")),
    "truncated model": Case(
        PREDICT, "run/model.cp cannot be loaded", changed("run/model.cp", lambda content: content[:-100])
    ),
    "altered model": Case(PREDICT, "run/model.cp cannot be loaded", changed("run/model.cp", altered)),
    "foreign model": Case(PREDICT, "run/model.cp cannot be loaded", written("run/model.cp", "PK\x03\x04")),
    "damaged settings": Case(PREDICT, "run/settings.json cannot be read", written("run/settings.json", "{")),
    "settings of something else": Case(PREDICT, "run/settings.json is damaged", written("run/settings.json", "{}")),
    "damaged result": Case("fit goals.toml -o run", "run/result.json must hold", written("run/result.json", "{")),
    "result of something else": Case("fit goals.toml -o run", "of the format", written("run/result.json", "{}")),
    "empty result": Case("fit goals.toml -o run", "result", written("run/result.json", "")),
    "report without results": Case("report run", "lacks result.json", gone("run/result.json")),
    "report of damaged results": Case("report run", "result.json", written("run/result.json", "a,b\n1,2\n")),
    "report of a list": Case("report run", "got 'list'", written("run/result.json", "[]")),
    # rows to predict, to measure and to audit
    "predict without a column": Case(
        "predict run less.csv -o said.csv", "less.csv has no column 'mean radius'", written("less.csv", "size\nlarge\n")
    ),
    "predict on texts for numbers": Case(
        PREDICT, "must hold numbers as in training", table(lambda frame: frame.assign(**{"mean radius": "wide"}))
    ),
    "predict into no folder": Case("predict run tumours.csv -o none/said.csv", "There is no folder none"),
    "explorer of no run": Case("report nowhere --interactive", "There is no run folder nowhere. Make one with"),
    "predict into a folder": Case("predict run tumours.csv -o run", "run is a folder"),
    "predict over its own data": Case("predict run tumours.csv -o tumours.csv", "is the data file itself"),
    "predict with unknown ids": Case(
        f"{PREDICT} --ids name", "ids: tumours.csv has no column 'name'. It has: 'mean radius'"
    ),
    "audit without labels": Case(
        "audit run tumours.csv", "has no column 'diagnosis'", table(lambda frame: frame.drop(columns="diagnosis"))
    ),
    "audit with other labels": Case(
        "audit run tumours.csv", "it holds 'unclear'", table(lambda frame: frame.assign(diagnosis="unclear"))
    ),
    "audit without the group": Case("audit run tumours.csv", "size", table(lambda frame: frame.drop(columns="size"))),
    "audit with an unknown dataset": Case(
        ["audit", "run", "--goal", "recall(trian) >= 0.1"], "Unknown dataset 'trian' in the goal"
    ),
    "audit with an unknown group": Case(["audit", "run", "--goal", "recall(size=huge) >= 0.1"], "huge"),
    "audit with an unknown column": Case(["audit", "run", "--goal", "recall(sex=F) >= 0.1"], "sex"),
    "audit churn without a deployed model": Case(["audit", "run", "--goal", "churn <= 0.1"], "baseline"),
    "audit nothing": Case(["audit", "run", "--goal", ""], "found the end of the text."),
    "audit with a typo": Case(["audit", "run", "--goal", "recal(train) >= 0.1"], "Did you mean 'recall'?"),
    "audit with half a goal": Case(["audit", "run", "--goal", "recall(train >= 0.1"], "In: recall(train >= 0.1"),
    "audit with too much confidence": Case("audit run --confidence 1.5", "confidence must lie in (0, 1)"),
    "audit on changed data": Case("audit run", "have changed", table(lambda frame: frame.iloc[:-1])),
    "audit without the data": Case("audit run", "There is no data file tumours.csv", gone("tumours.csv")),
    # another mixture
    "fit --from with alpha 0": Case("fit --from run -o new --alpha 0", "alpha must lie in (0, 1]"),
    "fit --from with a word for alpha": Case("fit --from run -o new --alpha much", "--alpha"),
    "fit --from into the run itself": Case("fit --from run -o run --alpha 0.5", "holds a run with other settings"),
    "fit --from without the data": Case("fit --from run -o new", "There is no data file", gone("tumours.csv")),
    "fit --from to an unknown dataset": Case(
        ["fit", "--from", "run", "-o", "new", "--goal", "recall(mail) >= 0.1"], "Unknown dataset 'mail'"
    ),
    "fit --from to an unknown group": Case(
        ["fit", "--from", "run", "-o", "new", "--goal", "recall(size=huge) >= 0.1"], "huge"
    ),
    "fit --from to the impossible": Case(
        ["fit", "--from", "run", "-o", "new", "--goal", "recall >= 0.9", "--goal", "positive_rate <= 0.1"],
        "cannot hold",
        code=1,
    ),
    "report into no folder": Case("report run -o none/page.html", "There is no folder none for page.html"),
    "report of no run": Case("report nowhere", "There is no run folder nowhere"),
    # the disk
    "full disk in init": Case("init tumours.csv --target diagnosis -o new.toml", "No space left", full),
    "full disk in fit": Case(FIT, "No space left", full),
    "full disk in predict": Case(PREDICT, "said.csv cannot be written: No space left", full),
    "full disk in rebalance": Case("fit --from run -o new --alpha 0.5", "No space left", full),
    "full disk in report": Case("report run", "report.html cannot be written: No space left", full),
    "read-only place for init": Case("init tumours.csv --target diagnosis -o new.toml", "Permission denied", read_only),
    "read-only place for fit": Case(FIT, "Permission denied", read_only),
    "read-only place for predictions": Case(PREDICT, "said.csv cannot be written: Permission denied", read_only),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_bad_input_is_one_sentence_and_leaves_everything_as_it_was(case, here, monkeypatch, capsys):
    assert_refused(case, here, monkeypatch, capsys)


def test_a_run_folder_copied_away_from_its_data_says_so(here, tmp_path, monkeypatch, capsys):
    (tmp_path / "far").mkdir()
    shutil.copytree(here / "run", tmp_path / "far" / "run")
    monkeypatch.chdir(tmp_path / "far")
    assert main(["audit", "run"]) == 2
    assert "There is no data file tumours.csv" in capsys.readouterr().err
    assert main(["audit", "run", str(here / "tumours.csv")]) == 0
