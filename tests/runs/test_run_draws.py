"""Draws of a run: a key of its own, kept and never told; ids of every type that a file can hold."""

import datetime as dt
import os
import re
import shutil
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from run_numbers import numbers

from counterpoise.report import write_report
from counterpoise.runs import (
    DataError,
    GoalsFileError,
    RunFolderError,
    audit_run,
    fit_run,
    open_run,
    predict_run,
    rebalance_run,
)
from counterpoise.runs.summary import summary_text
from counterpoise.runs.use import own_data
from tests.inside import key_of

pytestmark = pytest.mark.slow  # a run from end to end, of parts that have tests of their own

GOALS = """
alpha = 0.2
[data]
files = "{folder}/loans.csv"
target = "paid"
drop = ["today", "weight"]
groups = "sex"
[method]
name = "adalpboost"
parameters.n_estimators = 5
"""
POOL = """
[data]
files = "{folder}/loans.csv"
target = "paid"
columns = ["age", "income"]
[method]
name = "pool"
[[method.models]]
name = "adalpboost"
parameters = { n_estimators = 3 }
[[method.models]]
name = "adalpboost"
parameters = { n_estimators = 4 }
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory, loans_folder):
    folder = tmp_path_factory.mktemp("draws")
    (folder / "goals.toml").write_text(GOALS.replace("{folder}", str(loans_folder)))
    return fit_run(folder / "goals.toml")


def key_of_run(run):
    return key_of(run.model()[-1])


def test_every_run_has_a_key_of_its_own_whatever_its_seed(run, loans_folder, tmp_path):
    (tmp_path / "goals.toml").write_text(GOALS.replace("{folder}", str(loans_folder)))
    other = fit_run(tmp_path / "goals.toml")
    assert key_of_run(other) != key_of_run(run)
    assert bytes.fromhex((run.folder / "draws.key").read_text()) == key_of_run(run)
    np.testing.assert_array_equal(other.model()[-1].mixture_, run.model()[-1].mixture_)


@pytest.mark.skipif(os.name != "posix", reason="permissions of another kind")
def test_the_key_is_for_its_owner_alone(run):
    for name in ("draws.key", "model.cp"):  # which holds it too
        assert (run.folder / name).stat().st_mode & 0o777 == 0o600
    assert not (run.folder / "log.txt").stat().st_mode & 0o111


def test_the_key_is_in_no_other_file(run, tmp_path):
    write_report(run.folder, tmp_path / "report.html")
    told = [path for path in run.folder.rglob("*") if path.name not in ("draws.key", "model.cp")]
    key = key_of_run(run)
    for path in [*told, tmp_path / "report.html"]:
        assert key.hex() not in path.read_text(encoding="utf-8")
        assert repr(bytes(key)) not in path.read_text(encoding="utf-8")


def test_a_rebalanced_run_and_one_made_again_keep_the_key(run, loans_folder, tmp_path):
    other = rebalance_run(run, alpha=0.5, output=tmp_path / "milder")
    assert key_of_run(other) == key_of_run(run) == bytes.fromhex((other.folder / "draws.key").read_text())
    (tmp_path / "again").mkdir()
    shutil.copy(other.folder / "draws.key", tmp_path / "again")
    (tmp_path / "goals.toml").write_text(GOALS.replace("{folder}", str(loans_folder)).replace("= 5", "= 4"))
    assert key_of_run(fit_run(tmp_path / "goals.toml", output=tmp_path / "again")) == key_of_run(run)


@pytest.mark.slow
def test_models_of_a_pool_draw_with_secret_keys_too(loans_folder, tmp_path):
    (tmp_path / "goals.toml").write_text(POOL.replace("{folder}", str(loans_folder)))
    first, second = (fit_run(tmp_path / "goals.toml", output=tmp_path / name).model() for name in ("first", "second"))
    keys = [key_of(model) for model in (first, second)]
    keys += [inner[-1].draws_.key for model in (first, second) for inner in model.estimators_]
    assert len(set(keys)) == 6


@pytest.mark.parametrize("content", ["", "0123", "no digits", "5e" * 100])
def test_a_damaged_key_is_refused_and_not_shown(content, loans_folder, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "draws.key").write_text(content)
    (tmp_path / "goals.toml").write_text(GOALS.replace("{folder}", str(loans_folder)))
    with pytest.raises(RunFolderError, match=r"draws.key must hold 16 to 64 bytes") as caught:
        fit_run(tmp_path / "goals.toml", output=tmp_path / "run")
    assert not content or content not in str(caught.value)


def test_a_goals_file_holds_no_key(loans_folder, tmp_path):
    text = GOALS.replace("{folder}", str(loans_folder)) + 'parameters.key = "0123456789abcdef"\n'
    (tmp_path / "goals.toml").write_text(text)
    with pytest.raises(GoalsFileError, match="unknown parameter of adalpboost 'key'"):
        fit_run(tmp_path / "goals.toml")


N_ROWS = 12
DECIMALS = [Decimal(10**17 + k) / 100 for k in range(N_ROWS)]
TYPES = {
    **{f"whole {kind}": pa.array(range(N_ROWS), kind) for kind in (pa.int8(), pa.uint16(), pa.int32(), pa.int64())},
    "wide": pa.array([2**63 + k for k in range(N_ROWS)], pa.uint64()),
    **{f"float {kind.__name__}": pa.array(np.arange(N_ROWS, dtype=kind) / 4) for kind in (np.float16, np.float32)},
    "single": pa.array([k / 10 for k in range(N_ROWS)], pa.float32()),
    "double": pa.array([10.0 ** (3 * k) / 7 for k in range(N_ROWS)]),
    "decimal": pa.array(DECIMALS, pa.decimal128(20, 3)),
    "wide decimal": pa.array([Decimal(10**40 + k) for k in range(N_ROWS)], pa.decimal256(60, 0)),
    "truth": pa.array([k % 2 == 0 for k in range(N_ROWS)]),
    "text": pa.array([f"p {k}" for k in range(N_ROWS)]),
    "number text": pa.array([f"{k:03}" for k in range(N_ROWS)]),
    "large text": pa.array([f"p{k}" for k in range(N_ROWS)], pa.large_string()),
    "category": pa.array([f"p{k % 5}" for k in range(N_ROWS)]).dictionary_encode(),
    **({"UUID": pa.array([UUID(int=k).bytes for k in range(N_ROWS)], pa.uuid())} if hasattr(pa, "uuid") else {}),
}
NO_TEXT = {  # what a CSV file cannot say
    "bytes": pa.array([bytes([255, k]) for k in range(N_ROWS)]),
    "few bytes": pa.array([bytes([255, k]) for k in range(N_ROWS)], pa.binary(2)),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory, loans):
    """Return a folder with rows and a column of ids of each type, as Parquet, and as CSV where that can say it."""
    folder = tmp_path_factory.mktemp("ids")
    rows = pa.Table.from_pandas(loans(N_ROWS, seed=3).drop(columns="paid"))
    for name, column in {**TYPES, **NO_TEXT}.items():
        rows = rows.append_column(name, column)
    pq.write_table(rows, folder / "rows.parquet")
    names = [name for name in rows.column_names if name not in NO_TEXT]
    written = rows.select(names).to_pandas(types_mapper=pd.ArrowDtype)
    written["UUID"] = [str(UUID(int=k)) for k in range(N_ROWS)]
    written["single"] = written["single"].astype(np.float32)
    written.to_csv(folder / "rows.csv", index=False)
    return folder


def test_days_are_no_ids(run, table, tmp_path):
    days = pq.read_table(table / "rows.parquet").append_column("day", pa.array([dt.date(2026, 1, 1)] * N_ROWS))
    pq.write_table(days, tmp_path / "days.parquet")
    with pytest.raises(DataError, match=r"Column 'day' of .* cannot hold ids: .*convert others to texts.* type date"):
        predict_run(run, tmp_path / "days.parquet", tmp_path / "said.csv", ids="day")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TYPES, *NO_TEXT])
def test_ids_of_every_type_draw_by_their_values(name, run, table, tmp_path):
    drawn = []
    for end in ("parquet", "csv") if name in TYPES else ("parquet",):
        predict_run(run, table / f"rows.{end}", tmp_path / f"said.{end}", ids=name)
        said = pd.read_parquet(tmp_path / "said.parquet") if end == "parquet" else pd.read_csv(tmp_path / "said.csv")
        assert list(said.columns) == [name, "prediction"]
        drawn.append(said["prediction"].tolist())
    assert drawn == [drawn[0]] * len(drawn)


def test_ids_of_a_file_draw_as_those_of_the_library(run, table):
    from counterpoise.runs.use import read_ids  # noqa: PLC0415 - beside its one use

    draws = run.model()[-1].draws_
    plain = {"wide": np.array([2**63 + k for k in range(N_ROWS)], dtype=np.uint64), "decimal": DECIMALS}
    plain |= {"text": [f"p {k}" for k in range(N_ROWS)], "bytes": NO_TEXT["bytes"].to_pylist()}
    for name, ids in plain.items():
        told = read_ids(table / "rows.parquet", name)[1]
        np.testing.assert_array_equal(draws.by_id(told, N_ROWS), draws.by_id(ids, N_ROWS))
        assert len(set(draws.by_id(ids, N_ROWS))) == N_ROWS
    for name in TYPES:
        told = [draws.by_id(read_ids(table / f"rows.{end}", name)[1], N_ROWS) for end in ("csv", "parquet")]
        np.testing.assert_array_equal(*told)


def test_nested_and_missing_ids_of_a_file_are_refused(run, loans, tmp_path):
    rows = pa.Table.from_pandas(loans(2, seed=3))
    rows = rows.append_column("list", pa.array([[1], [2]])).append_column("some", pa.array([1, None]))
    pq.write_table(rows, tmp_path / "rows.parquet")
    for name, text in (("list", "got an id of type list at position 0"), ("some", "missing.* at position 1")):
        with pytest.raises(ValueError, match=text):
            predict_run(run, tmp_path / "rows.parquet", tmp_path / "said.csv", ids=name)
    assert not (tmp_path / "said.csv").exists()


def test_rows_of_a_run_draw_the_same_one_by_one_and_from_csv_and_parquet(run, loans, tmp_path):
    frame = loans(40, seed=8)
    answers = []
    for end, write in (("csv", frame.to_csv), ("parquet", frame.to_parquet)):
        write(tmp_path / f"rows.{end}", index=False)
        predict_run(run, tmp_path / f"rows.{end}", tmp_path / "said.csv")
        answers.append(pd.read_csv(tmp_path / "said.csv")["prediction"].tolist())
    model, rows = open_run(run.folder).model(), pd.read_parquet(tmp_path / "rows.parquet")
    answers.append([model.predict(rows.iloc[[place]]).tolist()[0] for place in range(40)])
    assert answers[0] == answers[1] == answers[2]


RUNS = {
    "a mixture of models": GOALS.replace("alpha = 0.2", 'alpha = 0.1\ngoals = ["recall >= 0.5"]'),
    "a mixture of rules, some of which defer": """
alpha = 0.3
confidence = "none"
goals = ["recall >= 0.5", "defer_rate <= 0.3"]
[data]
files = "{folder}/loans.csv"
target = "paid"
columns = ["age", "income"]
groups = "sex"
[method]
name = "goals"
models = [{ name = "logistic" }]
parameters = { cv = 2, decision = "sticky", deferral = { cost = 0.2 } }
""",
}


@pytest.fixture(scope="module", params=RUNS, ids=list(RUNS))
def twins(request, tmp_path_factory, loans_folder):
    """Return two runs of one goals file in two folders, with two keys."""
    folder = tmp_path_factory.mktemp("twins")
    (folder / "goals.toml").write_text(RUNS[request.param].replace("{folder}", str(loans_folder)))
    for number, name in enumerate(
        ("one", "other"), start=1
    ):  # keys of the system could happen to draw the same numbers
        (folder / name).mkdir()
        (folder / name / "draws.key").write_text(f"{bytes([number] * 32).hex()}\n")
    return [fit_run(folder / "goals.toml", output=folder / name) for name in ("one", "other")]


@pytest.mark.slow
def test_two_runs_of_one_goals_file_have_the_same_results_whatever_their_keys(twins):
    one, other = twins
    assert (one.folder / "draws.key").read_bytes() != (other.folder / "draws.key").read_bytes()
    assert numbers(one) == numbers(other)
    assert [str(row) for row in audit_run(one).audit] == [str(row) for row in audit_run(other).audit]


def test_the_drawn_decisions_are_told_apart_from_what_was_expected(twins):
    one, other = twins
    assert numbers(one, drawn=True) != numbers(other, drawn=True)
    drawn = {(row.quantity, row.settings): row.value for row in numbers(one, drawn=True)}
    part = own_data(one).splits["test"]
    said = one.model().predict(part.X)
    assert drawn["error", ""] == np.mean(said != part.y)
    assert drawn["goal estimate", "goal 1"] == np.mean(said[part.y == "yes"] == "yes")
    page = write_report(one.folder).read_text(encoding="utf-8")
    assert "Of the drawn decisions, test rows" in page
    assert "Another key gives other numbers" in page
    (one.folder / "report.html").unlink()


def test_the_tail_is_told_as_it_is_expected_and_once_it_is_drawn(twins):
    run = twins[0]
    values = {row.quantity: row.value for row in numbers(run).where(split="test", alpha=run.settings.alpha)}
    values |= {row.quantity: row.value for row in numbers(run).where(split="test", alpha=None, method="mixture")}
    wrong, left = values["error"], values.get("defer rate", 0.0)
    alpha = run.settings.alpha
    realised = (min(wrong, alpha) + 0.2 * min(max(alpha - wrong, 0), left)) / alpha
    assert run.result().losses().tail(run.settings.alpha).realised == pytest.approx(realised)
    assert run.result().losses().tail(run.settings.alpha).value < realised
    assert f"expected, {realised:.4f} once decisions are drawn" in summary_text(run.result())


@pytest.mark.slow
def test_decisions_without_draws_have_no_table_of_drawn_ones(loans_folder, tmp_path):
    text = RUNS["a mixture of rules, some of which defer"].replace(
        'decision = "sticky", deferral = { cost = 0.2 }', 'decision = "fixed"'
    )
    text = text.replace(', "defer_rate <= 0.3"', "").replace("alpha = 0.3", "alpha = 1.0")
    (tmp_path / "goals.toml").write_text(text.replace("{folder}", str(loans_folder)))
    run = fit_run(tmp_path / "goals.toml")
    assert len(numbers(run, drawn=True)) == 0
    assert not (run.folder / "draws.key").exists()
    assert len(numbers(run, drawn=True)) == 0
    assert np.isnan(run.result().losses().tail(run.settings.alpha).realised)
    (expected,), (drawn,) = audit_run(run).audit, audit_run(run, drawn=True).audit
    assert expected == drawn
    page = write_report(run.folder).read_text(encoding="utf-8").partition("<main>")[2]
    assert not re.search(r"\b(draws?|drawn|expectations?|expected)\b", page)
    assert "expected" not in summary_text(run.result())
    keys = []
    for name in ("one", "other"):
        mixed = rebalance_run(run, alpha=0.5, decision="sticky", output=tmp_path / name)
        keys.append((mixed.folder / "draws.key").read_text())
        assert key_of(mixed.model()) == bytes.fromhex(keys[-1])
    assert keys[0] != keys[1]  # drawn by the system, and not by the seed of the run
    again = rebalance_run(mixed, goals=["recall >= 0.6"], output=tmp_path / "again")
    assert (again.folder / "draws.key").read_text() == keys[1]
    fixed = rebalance_run(again, alpha=1.0, decision="fixed", output=tmp_path / "fixed")
    assert not (fixed.folder / "draws.key").exists()
