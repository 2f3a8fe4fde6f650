"""What the models of a pool said is kept in the run: another mixture of them reads and asks no model."""

import shutil

import numpy as np
import pytest
from crafting import crafted, taken_apart
from run_numbers import numbers as run_numbers

from counterpoise.persist import dumps, loads
from counterpoise.runs import audit_run, fit_run, open_run, rebalance_run

POOL = """
alpha = 0.3
goals = ["recall >= 0.5", "positive_rate(mail) <= 0.9"]
[data]
files = "{folder}/loans.csv"
target = "paid"
drop = "today"
weights = "weight"
largest_weight = 3
groups = "sex"
[datasets.mail]
files = "{folder}/mail.csv"
labelled = false
[method]
name = "pool"
models = [{name = "logistic"}, {name = "tree"}, {name = "tree", parameters = {max_depth = 2}}]
"""
RULES = POOL.replace('name = "pool"', 'name = "goals"\nparameters = {decision = "sticky"}')


@pytest.fixture(scope="module", params=[POOL, RULES], ids=["pool", "goals"])
def run(request, tmp_path_factory, loans_folder):
    path = tmp_path_factory.mktemp("kept") / "goals.toml"
    path.write_text(request.param.replace("{folder}", str(loans_folder)))
    return fit_run(path)


def numbers(run):
    return [row for row in run_numbers(run).rows if row.quantity != "seconds"]


def hollowed(run, folder):
    """Return the same run with nothing where its models were."""
    shutil.copytree(run.folder, folder)
    data = (folder / "model.cp").read_bytes()
    names = [name for name in taken_apart(data)[1] if name.startswith("parts/")]
    assert len(names) == len(run.model().estimators_)
    (folder / "model.cp").write_bytes(
        crafted(lambda _manifest, members: members.update(dict.fromkeys(names, b"PK")), data)
    )
    return open_run(folder)


@pytest.mark.slow
def test_models_that_are_gone_are_missed_only_where_they_must_decide(run, tmp_path):
    first = rebalance_run(run, alpha=0.6, output=tmp_path / "first")
    hollow = hollowed(run, tmp_path / "hollow")
    again = rebalance_run(hollow, alpha=0.6, output=tmp_path / "again")
    assert numbers(again) == numbers(first)
    assert audit_run(again).audit == audit_run(first).audit
    third = rebalance_run(again, alpha=0.6, goals=["recall >= 0.6"], output=tmp_path / "third")
    assert third.result().goals[0].text == "recall >= 0.6"
    with pytest.raises(ValueError, match=r"model\.cp cannot be loaded as a model: "):
        third.model()


@pytest.mark.slow
def test_where_kept_answers_are_damaged_the_models_are_asked_again(run, tmp_path):
    folder = shutil.copytree(run.folder, tmp_path / "run")
    kept = loads((folder / "pool_outputs.cp").read_bytes())
    name = next(iter(kept["outputs"]))
    others = {name: 1 - kept["outputs"][name]}
    odd = {name: np.full_like(kept["outputs"][name], 200)}
    first = rebalance_run(run, alpha=0.6, output=tmp_path / "first")
    spoiled = [
        b"damaged",
        *(dumps(one) for one in ({"run": "another", "outputs": others}, kept | {"outputs": {name: 5}})),
    ]
    if kept["outputs"][name].dtype.kind != "f":
        spoiled.append(dumps(kept | {"outputs": odd}))
    for number, content in enumerate(spoiled):
        (folder / "pool_outputs.cp").write_bytes(content)
        again = rebalance_run(open_run(folder), alpha=0.6, output=tmp_path / f"again {number}")
        assert numbers(again) == numbers(first)


@pytest.mark.slow
def test_the_bar_moves_while_a_pool_is_asked(loans_folder, tmp_path):
    told = []
    (tmp_path / "goals.toml").write_text(POOL.replace("{folder}", str(loans_folder)))
    fit_run(tmp_path / "goals.toml", tell=told.append)
    told = [progress for progress in told if progress.part != "choosing decision rules"]
    assert [progress.done for progress in told] == list(range(1, 22))
    assert {progress.total for progress in told} == {21}
    assert [progress.part for progress in told[2:4]] == [
        "decision tree with max_depth = 2",
        "predicting with each model of the pool",
    ]
