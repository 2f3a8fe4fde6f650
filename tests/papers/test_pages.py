"""The pages of results hold what the stored tables say, and each page has a command that works."""

import re
from pathlib import Path

import pytest

from counterpoise.datasets import DataNotAvailable
from papers.__main__ import MODULES, experiment, main
from papers.experiments import STORED, filled, marks

ROOT = Path(__file__).parents[2]
PAGES = sorted(STORED.glob("*.md"))
BY_HAND = "benchmarks"  # bench/run.py renews this one
# One quick experiment of each page; those of the papers run on the smallest set.
QUICK = {
    "promises": "audits",
    "rows": "margins",
    "comparison": "ratios",
    "tails": "defaults",
    "README": "published",
    "boosted_cvar": "boosted-cvar-images",
    "vadaboost": "vadaboost",
    "dro_boosting": "dro-boosting",
    "dataset_constraints": "ramp-threshold",
    "training_inside_goals": "unseen-groups",
    "more_tasks": "deferral",
    "jobs": "jobs",
}
pytestmark = pytest.mark.skipif(not (STORED / "tables").exists(), reason="needs the stored tables")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_the_pages_hold_what_the_stored_table_says(name):
    blocks = experiment(name).blocks(experiment(name).rows())
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert filled(text, name, blocks) == text, f"{page.name}: python -m papers {name} --page -o docs/results"


def test_every_mark_is_of_an_experiment_and_every_experiment_is_on_a_page():
    named = {name for page in PAGES for name, _ in marks(page.read_text(encoding="utf-8"))}
    assert named - {BY_HAND} == set(MODULES)


def test_pages_tables_and_words_stay_few():
    sizes = [path.stat().st_size for path in STORED.rglob("*") if path.is_file()]
    assert sum(sizes) <= 3e6
    assert len(PAGES) <= 16
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in PAGES) <= 20_000


def test_every_page_but_settled_ones_has_a_quick_command():
    without = {"index", "what_did_not_help", "benchmarks"}
    assert set(QUICK) == {page.stem for page in PAGES} - without


@pytest.mark.slow
@pytest.mark.parametrize("page", QUICK)
def test_a_quick_command_of_each_page_works(page, tmp_path, capsys):
    name = QUICK[page]
    try:
        assert main([name, "--quick", "--output", str(tmp_path)]) == 0
    except (DataNotAvailable, ModuleNotFoundError) as error:
        pytest.skip(str(error))
    assert f"{name}: " in capsys.readouterr().out


def test_a_figure_that_a_page_shows_is_there():
    for page in PAGES:
        for name in re.findall(r"\]\((figures/[\w.]+)\)", page.read_text(encoding="utf-8")):
            assert (STORED / name).exists(), f"{page.name} shows {name}"
