"""A study: what is measured stays, what is left is measured, and the page is of the last row of each run."""

from typing import NamedTuple

import pytest

from papers.results import ResultRow, append_rows, read_rows
from papers.study import Study


class Part(NamedTuple):
    dataset: str
    seed: int


def row(part, value=0.5, quantity="error"):
    return ResultRow("demo", part.dataset, "tree", "erm", part.seed, None, quantity, "test", value)


def study(measure, **settings):
    def parts(datasets, n_seeds):
        return [Part(name, seed) for seed in range(n_seeds) for name in datasets]

    def sections(rows, _folder):
        return ["# Demo", *(f"{one.dataset} {one.seed}: {one.value}" for one in rows)]

    return Study("demo", "made up", parts, measure, sections, ("a", "b"), n_seeds=2, **settings)


def test_rows_of_finished_parts_stay_where_a_later_one_fails(tmp_path):
    def measure(part):
        if part == ("a", 1):
            raise ValueError("this part cannot be measured")
        return [row(part)]

    with pytest.raises(ValueError, match="this part"):
        study(measure).run(tmp_path)
    assert [tuple(one)[1:5:3] for one in read_rows(tmp_path / "results.parquet")] == [("a", 0), ("b", 0)]
    asked = []
    study(lambda part: asked.append(part) or [row(part)]).run(tmp_path)
    assert asked == [("a", 1), ("b", 1)]


def test_a_part_whose_rows_are_not_final_is_measured_again_and_the_page_has_its_last(tmp_path):
    patient = study(lambda part: [row(part, 1.0)], is_final=lambda one: one.value != 0.0)
    append_rows(tmp_path / "results.parquet", [row(Part("a", 0), 0.0), row(Part("b", 0), 0.25)])
    told = []
    table = patient.run(tmp_path, n_seeds=1, tell=told.append)
    assert len(told) == 1
    assert patient.write(table).read_text(encoding="utf-8") == "# Demo\n\na 0: 1.0\n\nb 0: 0.25\n"
