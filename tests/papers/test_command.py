"""``python -m papers``: what it refuses, where results go, and that experiments are named once."""

import ast
from pathlib import Path

import pytest

import papers
from counterpoise.persist.locks import FolderLock
from papers.__main__ import MODULES, experiment, main
from papers.tables import COLUMNS


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["vadabost"], "invalid choice: 'vadabost'"),
        (["audits", "--seeds", "0"], "must be a whole number of at least 1; got '0'"),
        (["audits", "--jobs", "0"], "must be a whole number of at least 1; got '0'"),
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
    (tmp_path / "tables").mkdir()
    with FolderLock(tmp_path / "tables"), pytest.raises(SystemExit, match=r"Another process .* name another --output"):
        main(["audits", "--output", str(tmp_path)])


def test_a_damaged_table_is_one_sentence_and_stays(tmp_path):
    table = tmp_path / "tables" / "vadaboost.parquet"
    table.parent.mkdir()
    table.write_text("not,a,table\n1,2,3\n")
    with pytest.raises(SystemExit, match="must be a results table"):
        main(["vadaboost", "--output", str(tmp_path)])
    assert table.read_text() == "not,a,table\n1,2,3\n"


@pytest.mark.parametrize("name", MODULES)
def test_every_experiment_has_its_name_and_parts_whose_fields_are_columns(name):
    found = experiment(name)
    assert found.name == name
    parts = found.parts(found.datasets, 2)
    assert len(set(parts)) == len(parts)
    assert all(set(part._fields) <= set(COLUMNS) for part in parts[:1])
    quick = found.quick_form()
    assert len(quick.parts(quick.datasets, quick.n_seeds)) <= len(parts)


def test_the_papers_use_no_private_names():
    for file in Path(papers.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
            words = ".".join(filter(None, [module, *names])).split(".")
            assert not any(word.startswith("_") for word in words), f"{file.name} imports {words}"
