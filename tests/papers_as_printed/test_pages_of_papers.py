"""The pages of docs/papers: every item of each paper is there, and every name and file that they give exists."""

import re
from importlib import import_module
from inspect import getdoc, ismodule
from pathlib import Path

import pytest

import counterpoise as cp
from papers.__main__ import experiment

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "papers"

ITEMS = {
    "boosted_cvar": [
        *(f"Equation ({number})" for number in range(1, 10)),
        *(f"({number})" for number in range(10, 22)),
        *(f"Proposition {number}" for number in (1, 2, 3)),
        *("Assumption 1", "Theorem 4", "Theorem 5", "Algorithm 1", "Algorithm 2", "Appendix B"),
        *(f"Figure {number}" for number in (1, 2, 3, 4)),
    ],
    "vadaboost": [
        *(f"Equation ({number})" for number in range(1, 6)),
        *("(6)", "(8)", "Theorem 1", "Lemma 2", "Theorem 3", "Corollary 4", "Theorem 5"),
        *(f"Algorithm {number}" for number in (1, 2, 3)),
        *("Figure 1", "Figure 2", "Table 1", "Table 2", "RLP-Boost", "RQP-Boost"),
    ],
    "dro_boosting": [
        *(f"Equation ({number})" for number in range(1, 11)),
        *("(11)", "(12)", "Assumption 1", "Assumption 2", "Observation 1", "Assumption 3", "Assumptions 4 and 5"),
        *("Lemma 1", "Lemma 2", "Definition 1", "Proposition 1", "Corollary 1", "Corollary 2", "Remark 1", "Theorem 1"),
        *("Algorithm 1", "Figure 1", "Table 1"),
    ],
    "dataset_constraints": [
        *(f"Equation ({number})" for number in range(1, 11)),
        *("(11)", "(12)", "(13)", "(15)", "(16)", "(18)", "(19)"),
        *(f"Problem {number}" for number in (1, 2, 3)),
        *(f"Algorithm {number}" for number in (1, 2, 3)),
        *(f"Table {number}" for number in (1, 2, 3, 4)),
        *(f"Figure {number}" for number in (1, 2, 3)),
        *(f"Definition {number}" for number in (1, 2, 3, 4)),
        *(f"Lemma {number}" for number in range(1, 8)),
        *(f"Theorem {number}" for number in range(1, 6)),
        *("Corollary 1", "Appendix A", "Appendix B", "Appendix D", "Appendix F.3"),
    ],
}
ESTIMATORS = {
    "LPBoostClassifier": "Algorithm 1 of Zhai",
    "AdaLPBoostClassifier": "Algorithm 2 of Zhai",
    "AdaBoostClassifier": "Algorithm 1 of Shivaswamy",
    "VadaBoostClassifier": "Algorithm 2 of Shivaswamy",
    "EBBoostClassifier": "Algorithm 3 of Shivaswamy",
    "RLPBoostClassifier": "Tables 1 and 2 of Shivaswamy",
    "RQPBoostClassifier": "Tables 1 and 2 of Shivaswamy",
    "DROBoostClassifier": "Algorithm 1 of Blanchet",
    "ConstrainedClassifier": "Algorithm 1 of Goh",
}


def text_of(paper):
    return (PAGES / f"{paper}.md").read_text(encoding="utf-8")


def rows_of(paper):
    """Return the cells of the tables of items: item, what it is, name, file, what differs."""
    lines = [line for line in text_of(paper).splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if len(row) == 5 and row[0] != "item"]


def resolve(name):
    """Return what a dotted name stands for: a module, or what can be imported from one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            value = import_module(".".join(parts[:count]))
        except ModuleNotFoundError as error:
            if error.name not in {".".join(parts[: count - gone]) for gone in range(count)}:
                raise  # what the module itself imports
            continue
        for part in parts[count:]:
            value = getattr(value, part)
            assert not ismodule(value), f"{name} cannot be imported: the module is {value.__name__}"
        return value
    raise AssertionError(f"{name} is no module of ours")


def test_there_is_a_page_for_each_paper():
    assert {page.stem for page in PAGES.glob("*.md")} == {*ITEMS, "index"}


@pytest.mark.parametrize("paper", ITEMS)
def test_every_numbered_item_is_on_the_page_of_its_paper(paper):
    items = " ; ".join(row[0] for row in rows_of(paper))
    ranges = re.findall(r"\((\d+)\) to \((\d+)\)", items)
    items += "".join(f" ; ({number})" for low, high in ranges for number in range(int(low), int(high) + 1))
    missing = [item for item in ITEMS[paper] if not re.search(re.escape(item) + r"(?!\d)", items)]
    assert not missing


@pytest.mark.parametrize("paper", ITEMS)
def test_every_row_has_a_public_name_and_a_file_and_all_of_them_exist(paper):
    rows = rows_of(paper)
    assert len(rows) > 20
    for item, what, names, file, _ in rows:
        found = re.findall(r"`([^`]+)`", names)
        assert found, f"{item} has no name"
        assert what
        for name in found:
            assert name.startswith(("counterpoise.", "papers."))
            assert not any(part.startswith("_") for part in name.split("."))
            assert resolve(name) is not None
        (path,) = re.findall(r"`([^`]+)`", file)
        assert (ROOT / path).is_file(), f"{path} of {item} is no file"


@pytest.mark.parametrize("paper", ITEMS)
def test_other_names_of_the_text_exist(paper):
    for name in re.findall(r"`((?:counterpoise|papers)\.[\w.]+)`", text_of(paper)):
        assert resolve(name) is not None
    for path in re.findall(r"`((?:src|papers|tests)/[\w/.]+)`", text_of(paper)):
        assert (ROOT / path).exists()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_each_estimator_names_its_algorithm_and_has_the_papers_settings(name):
    estimator = getattr(cp, name)
    assert ESTIMATORS[name] in " ".join(getdoc(estimator).split())
    assert f"**{name}.as_printed" in getdoc(estimator)
    assert set(estimator.as_printed) <= set(estimator().get_params())
    assert name in "\n".join(page.read_text(encoding="utf-8") for page in PAGES.glob("*.md"))


def test_the_readme_leads_to_the_pages():
    assert "docs/papers/index.md" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("paper", ITEMS)
def test_the_page_names_the_command_that_reproduces_the_paper(paper):
    """Its study exists, and so do the data sets of the smaller run."""
    ((name, datasets),) = re.findall(r"`make reproduce PAPER=(\S+) ARGS='--seeds \d --datasets (\S+)'`", text_of(paper))
    assert f"`make reproduce PAPER={name}`" in text_of(paper)
    assert datasets in experiment(name).datasets
