"""The results table: reads back equal, refuses foreign files, and summarizes by the book."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from papers.tables import ResultRow, ResultsTable, append_rows, read_rows, summarize

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)  # any text that UTF-8 can hold
ROWS = st.lists(
    st.builds(
        ResultRow,
        experiment=TEXT,
        dataset=TEXT,
        learner=TEXT,
        method=TEXT,
        seed=st.integers(-(2**63), 2**63 - 1),
        alpha=st.none() | st.floats(allow_nan=False),
        quantity=TEXT,
        split=TEXT,
        value=st.floats(allow_nan=False),
        settings=TEXT,
    ),
    max_size=5,
)


NAMES = ("table.csv", "table.parquet")


def row(seed=0, value=0.5, **changes):
    first = ResultRow("demo", "digits", "tree", "erm", seed, 0.1, "cvar", "test", value)
    return first._replace(**changes)


@pytest.mark.parametrize("name", NAMES)
@given(before=ROWS, after=ROWS)
def test_what_is_written_reads_back_equal(name, before, after, tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / name
    append_rows(path, before)
    append_rows(path, after)
    assert read_rows(path) == ResultsTable(tuple(before + after))


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_any_library_become_plain(name, tmp_path):
    path = tmp_path / name
    append_rows(path, [row(seed=np.int64(3), alpha=np.float64(0.1), value=np.float32(0.25)), row(value=math.nan)])
    first, second = read_rows(path)
    assert (first.seed, first.alpha, first.value) == (3, 0.1, 0.25)
    assert math.isnan(second.value)
    assert b"np." not in path.read_bytes()


def test_a_mapping_may_leave_out_what_is_empty(tmp_path):
    path = tmp_path / "new" / "table.csv"
    append_rows(path, [{name: value for name, value in row()._asdict().items() if name not in ("alpha", "settings")}])
    assert read_rows(path).rows == (row(alpha=None),)


def test_a_missing_last_newline_is_mended(tmp_path):
    path = tmp_path / "table.csv"
    append_rows(path, [row()])
    path.write_text(path.read_text().rstrip("\n"))
    append_rows(path, [row(1)])
    assert [one.seed for one in read_rows(path)] == [0, 1]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_beside_the_table(name, tmp_path):
    append_rows(tmp_path / name, [row()])
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"\xff\xfe\x00PARQUET", b"experiment,dataset\n"])
def test_a_foreign_file_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"must be a results table, with the header experiment,dataset.*left as it is"):
        append_rows(path, [row()])
    assert path.read_bytes() == content


def test_reading_a_foreign_file_is_refused_too(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"must be a results table.*got 'a,b'"):
        read_rows(path)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*other.csv"):
        read_rows(tmp_path / "other.csv")


def test_a_foreign_parquet_file_is_refused_and_left_alone(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "table.parquet"
    append_rows(path, [row(alpha=None)])
    whole = path.read_bytes()
    texts = {name: ["1"] for name in ResultRow._fields}
    for table, message in (
        (arrow.table({"a": [1]}), r"with the header experiment,dataset.*got 'a'.*left as it is"),
        (arrow.table(texts), r"types of columns: .*seed int64.*got .*seed string.*left as it is"),
        (None, r"table\.parquet must be a results table.*no whole Parquet file.*left as it is"),
    ):
        if table is None:
            path.write_bytes(whole[: len(whole) // 2])
        else:
            parquet.write_table(table, path)
        content = path.read_bytes()
        with pytest.raises(ValueError, match=message):
            append_rows(path, [row()])
        with pytest.raises(ValueError, match=message):
            read_rows(path)
        assert path.read_bytes() == content


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'Parquet needs pyarrow: pip install "counterpoise\[data\]"'):
        append_rows(tmp_path / "table.parquet", [row()])


def test_a_table_that_is_no_text_is_refused_by_its_name(tmp_path):
    path = tmp_path / "table.csv"
    append_rows(path, [row()])
    path.write_bytes(path.read_bytes() + b"\xff\xfe")
    with pytest.raises(ValueError, match=r"table\.csv must be a results table, as append_rows writes it"):
        read_rows(path)


def test_a_broken_line_is_named(tmp_path):
    path = tmp_path / "table.csv"
    append_rows(path, [row()])
    path.write_text(path.read_text() + "demo,digits,tree,erm,one,,cvar,test,0.5,\n")
    with pytest.raises(ValueError, match=r"table.csv, line 3: expected 10 values.*'one'.*Mend or delete"):
        read_rows(path)


BAD_ROWS = {
    "seed": (row(seed=0.5), TypeError, "column seed must hold a whole number; got 0.5"),
    "value": (row(value="0.5"), TypeError, "column value must hold a number; got '0.5'"),
    "alpha": (row(alpha="all"), TypeError, "column alpha must hold a number, or None; got 'all'"),
    "text": (row(method=None), TypeError, "column method must hold text; got None"),
    "flag": (row(value=True), TypeError, "column value must hold a number; got True"),
    "unknown": ({"loss": 1}, ValueError, "a row must name columns among experiment.*got 'loss'"),
    "missing": ({"seed": 1}, ValueError, "got one without experiment, dataset"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_refused_before_anything_is_written(case, tmp_path):
    bad, error, text = BAD_ROWS[case]
    with pytest.raises(error, match=text):
        append_rows(tmp_path / "table.csv", [row(), bad])
    assert not (tmp_path / "table.csv").exists()


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=20))
def test_the_interval_is_students(values):
    (found,) = summarize([row(seed, value) for seed, value in enumerate(values)])
    assert found.mean == pytest.approx(np.mean(values), abs=1e-12)
    assert found.standard_error == pytest.approx(stats.sem(values), abs=1e-12)
    assert found.count == len(values)
    if found.standard_error > 1e-9:
        low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
        assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_groups_keep_their_order_and_apart():
    rows = [row(seed, seed, method=method) for method in ("zeta", "beta") for seed in range(3)]
    found = summarize(rows, by=["method", "alpha"])
    assert [one.group for one in found] == [{"method": "zeta", "alpha": 0.1}, {"method": "beta", "alpha": 0.1}]
    assert [one.mean for one in found] == [1.0, 1.0]


def test_one_row_has_no_spread():
    (found,) = summarize([row()])
    assert found.mean == 0.5
    assert math.isnan(found.standard_error)
    assert math.isnan(found.low)


def test_an_infinite_value_spoils_its_group_only():
    found = summarize([row(0, math.inf), row(1, 1.0)])[0]
    assert found.mean == math.inf
    assert math.isnan(found.standard_error)


def test_a_run_that_is_there_twice_would_narrow_the_interval():
    rows = [row(0, 0.1), row(0, 0.2)]
    with pytest.raises(ValueError, match=r"each run once.*method='erm', seed=0.*ResultsTable.latest"):
        summarize(rows)
    assert [one.value for one in ResultsTable(tuple(rows)).latest()] == [0.2]


def test_unknown_columns_list_the_known_ones():
    with pytest.raises(ValueError, match=r"by must name columns among experiment.*got 'methods'"):
        summarize([row()], by=["methods"])
    with pytest.raises(ValueError, match=r"where must name columns among.*got 'loss'"):
        ResultsTable(()).where(loss=1)
