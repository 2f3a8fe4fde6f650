"""Tables of many classes: those recognized least, and the largest confusions, where each against each is too much."""

import pytest
from run_folders import result_of
from run_numbers import ResultRow

from counterpoise.report.rates import class_recalls, confusions, worst_class

N_CLASSES = 50


def record(n_classes, left_out=None):
    """Return a record in which the class ``n`` has n + 1 rows called right and one called the class before it."""
    rows = [("error", "", 0.1)]
    for place in range(n_classes):
        rows.append(("called", f"class {place + 1} as class {place + 1}", place + 1.0))
        rows.append(("called", f"class {place + 1} as class {(place - 1) % n_classes + 1}", 1.0))
    names = [{"name": f"class {place + 1}", "text": f"<{place}>"} for place in range(n_classes)]
    rows = [one for one in rows if not (left_out and one[1].startswith(left_out))]
    told = [ResultRow("run", "d", "", "mixture", 0, None, quantity, "test", value, of) for quantity, of, value in rows]
    return result_of(tuple(told), {"classes": names}, {}, {})


def test_few_classes_are_told_in_their_order_each_against_each():
    few = record(3)
    assert [row[:3] for row in class_recalls(few).rows] == [
        ["<0>", "2", "50.0\N{NO-BREAK SPACE}%"],
        ["<1>", "3", "66.7\N{NO-BREAK SPACE}%"],
        ["<2>", "4", "75.0\N{NO-BREAK SPACE}%"],
    ]
    assert confusions(few).rows[2] == ["<2>", "\N{EN DASH}", "1", "3"]
    assert worst_class(few) == "The class recognized least often is <0>, with 50.0\N{NO-BREAK SPACE}% of its rows."


def test_of_many_classes_the_worst_are_told():
    many = record(N_CLASSES)
    table = class_recalls(many)
    assert [row[0] for row in table.rows] == [f"<{place}>" for place in range(40)]
    assert "the 40 of 50 recognized least" in table.name
    largest = confusions(many)
    assert len(largest.rows) == 20
    assert largest.rows[1] == ["<1> called <0>", "1", "33.3\N{NO-BREAK SPACE}%"]


def test_a_class_without_rows_is_not_among_those_recognized_least():
    told = record(N_CLASSES, left_out="class 3 ")
    assert [row[0] for row in class_recalls(told).rows] == [f"<{place}>" for place in range(41) if place != 2]


@pytest.mark.parametrize("table", [class_recalls, confusions])
def test_where_classes_were_not_counted_there_is_no_table(table):
    empty = result_of((), {}, {}, {})
    assert table(empty) is None
    assert worst_class(empty) == ""
