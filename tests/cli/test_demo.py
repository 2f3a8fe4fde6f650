"""The demo: what it prints about new people is what these people get."""

from contextlib import nullcontext

import pytest

from counterpoise.cli import demo
from counterpoise.datasets import loans
from counterpoise.runs import open_run


@pytest.mark.slow
def test_the_demo_ends_with_what_new_people_get(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "_N_LOANS", 3000)
    monkeypatch.setattr(demo, "_N_TRUTH", 4000)
    said = []
    page, folder = demo.run_demo(tmp_path, said.append, lambda: nullcontext(lambda *_: None))
    assert page.exists()
    people, _ = loans(4000, random_state=1)
    refused = open_run(folder).model().predict(people, baseline=people["last_year"]) == "yes"
    found, changed = refused[people["default"] == "yes"].mean(), (refused != (people["last_year"] == "yes")).mean()
    recall, _, churn = [block.splitlines()[3] for block in said[-1].split(": at ")[1:]]
    assert f"{found:.1%}" in recall
    assert ("missed" in recall) == (found < 0.7)
    assert f"{changed:.1%}" in churn
    assert ("missed" in churn) == (changed > 0.22)
