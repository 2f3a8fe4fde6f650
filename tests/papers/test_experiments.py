"""The framework: what is measured stays, what is left is measured, and pages hold what follows from the tables."""

from typing import NamedTuple

import pytest

from papers.experiments import Experiment, filled
from papers.tables import ResultRow, append_rows, read_rows


class Part(NamedTuple):
    dataset: str
    seed: int


def row(part, value=0.5):
    return ResultRow("demo", part.dataset, "tree", "erm", part.seed, None, "error", "test", value)


def demo(measure, **settings):
    def parts(datasets, n_seeds):
        return [Part(name, seed) for seed in range(n_seeds) for name in datasets]

    def blocks(rows):
        return {"values": ", ".join(f"{one.dataset} {one.seed}: {one.value}" for one in rows)}

    return Experiment("demo", "made up", parts, measure, blocks, ("a", "b"), 2, **settings)


def test_rows_of_finished_parts_stay_where_a_later_one_fails(tmp_path):
    def measure(part):
        if part == ("a", 1):
            raise ValueError("this part cannot be measured")
        return [row(part)]

    with pytest.raises(ValueError, match="this part"):
        demo(measure).run(tmp_path)
    assert [tuple(one)[1:5:3] for one in read_rows(tmp_path / "tables" / "demo.parquet")] == [("a", 0), ("b", 0)]
    asked = []
    demo(lambda part: asked.append(part) or [row(part)]).run(tmp_path)
    assert asked == [("a", 1), ("b", 1)]


def test_a_part_whose_rows_are_not_final_is_measured_again_and_the_page_has_its_last(tmp_path):
    (tmp_path / "page.md").write_text("By hand.\n<!-- demo: values -->\nold\n<!-- end -->\nBy hand too.\n")
    patient = demo(lambda part: [row(part, 1.0)], is_final=lambda one: one.value != 0.0)
    append_rows(patient.table(tmp_path), [row(Part("a", 0), 0.0), row(Part("b", 0), 0.25)])
    told = []
    patient.run(tmp_path, n_seeds=1, tell=told.append)
    assert len(told) == 1
    assert patient.write(tmp_path) == {"values": "a 0: 1.0, b 0: 0.25"}
    text = (tmp_path / "page.md").read_text()
    assert text == "By hand.\n<!-- demo: values -->\n\na 0: 1.0, b 0: 0.25\n\n<!-- end -->\nBy hand too.\n"


def test_the_quick_form_is_the_first_set_and_one_seed_unless_another_is_given():
    plain = demo(lambda part: [row(part)])
    assert plain.quick_form().parts(plain.quick_form().datasets, plain.quick_form().n_seeds) == [("a", 0)]
    assert demo(lambda part: [row(part)], quick=plain).quick_form() is plain


def test_blocks_of_other_experiments_and_titles_stay():
    page = "<!-- other: values -->\nold\n<!-- end -->\n<!-- demo: more -->\nold\n<!-- end -->"
    assert filled(page, "demo", {"values": "new"}) == page
