"""``python -m papers``: what it refuses, and where results go."""

import ast
from pathlib import Path

import pytest

import papers
from papers.__main__ import PAPERS, main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["vadabost"], "invalid choice: 'vadabost'"),
        (["confidence", "--seeds", "0"], "must be a whole number of at least 1; got '0'"),
        (["confidence", "--jobs", "0"], "must be a whole number of at least 1; got '0'"),
    ],
)
def test_a_slip_in_the_command_is_one_sentence(arguments, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert words in capsys.readouterr().err


def test_an_unknown_data_set_leaves_no_folder_behind(tmp_path):
    with pytest.raises(SystemExit, match="--datasets must be among acs-income, adult, "):
        main(["boosted-cvar", "--datasets", "compass", "--output", str(tmp_path / "new")])
    assert not (tmp_path / "new").exists()


def test_results_go_where_the_help_says(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("papers.confidence.experiment.reproduce", lambda folder, **_: folder / "table")
    monkeypatch.setattr("papers.confidence.page.write_page", lambda table: table)
    assert main(["confidence"]) == 0
    assert capsys.readouterr().out == "page: results/confidence/table\n"


def test_every_paper_has_what_the_command_calls():
    for paper in PAPERS.values():
        assert callable(paper.experiment.reproduce)
        assert callable(paper.page.write_page)
        assert paper.experiment.DATASETS


def test_the_papers_use_no_private_names():
    for file in Path(papers.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
            words = ".".join(filter(None, [module, *names])).split(".")
            assert not any(word.startswith("_") for word in words), f"{file.name} imports {words}"
