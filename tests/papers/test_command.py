"""``python -m papers``: what it refuses, and where results go."""

import ast
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import papers
from counterpoise.persist.locks import FolderLock
from papers.__main__ import COMPARISON, STUDIES, main
from papers.results import COLUMNS


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


def test_a_second_run_in_the_same_folder_is_one_sentence(tmp_path):
    with FolderLock(tmp_path), pytest.raises(SystemExit, match=r"Another process .* name another --output"):
        main(["vadaboost", "--output", str(tmp_path)])


def test_a_damaged_table_is_one_sentence_and_stays(tmp_path):
    table = tmp_path / "results.parquet"
    table.write_text("not,a,table\n1,2,3\n")
    with pytest.raises(SystemExit, match="must be a results table"):
        main(["vadaboost", "--output", str(tmp_path)])
    assert table.read_text() == "not,a,table\n1,2,3\n"


@pytest.mark.parametrize(("arguments", "folder"), [([], "comparison"), (["--quick"], "comparison-quick")])
def test_results_go_where_the_help_says(arguments, folder, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    small = replace(COMPARISON, parts=lambda *_: [], sections=lambda *_: ["nothing"])
    monkeypatch.setitem(STUDIES, "comparison", replace(small, quick=small))
    assert main(["comparison", *arguments]) == 0
    assert capsys.readouterr().out == f"page: results/{folder}/README.md\n"


def test_what_a_study_has_no_form_of_is_one_sentence():
    with pytest.raises(SystemExit, match="--quick is not of confidence: set --seeds and --datasets instead"):
        main(["confidence", "--quick"])
    with pytest.raises(SystemExit, match="--full is not of confidence"):
        main(["confidence", "--full"])


@pytest.mark.filterwarnings("ignore:.* is not installed")
@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_parts_whose_fields_are_columns(name):
    study = STUDIES[name]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*cannot be imported")  # peers that are left out
            parts = study.parts(study.datasets, 2)
    except ModuleNotFoundError as error:  # of a peer
        pytest.skip(str(error))
    assert len(set(parts)) == len(parts) > 0
    assert set(parts[0]._fields) <= set(COLUMNS)


@pytest.mark.slow
def test_the_papers_use_no_private_names():
    for file in Path(papers.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
            words = ".".join(filter(None, [module, *names])).split(".")
            assert not any(word.startswith("_") for word in words), f"{file.name} imports {words}"
