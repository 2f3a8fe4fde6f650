"""Rules that ``choose`` writes: what it tells of them is the same whatever their key."""

import pytest

from counterpoise.runs.summary import summary_text
from counterpoise.runs.tables import choose_table
from tests.cli.loan_tables import GOALS, loans

DRAWN = {"alpha": 0.5, "decision": "sticky", "confidence": None}


@pytest.mark.slow
def test_what_is_told_of_chosen_rules_does_not_depend_on_their_key(tmp_path):
    loans(2000).to_csv(tmp_path / "loans.csv", index=False)
    asked = {"target": "paid", "scores": ["p"], "by": ["sex"], "goals": GOALS, **DRAWN}
    one, other = (choose_table(tmp_path / "loans.csv", tmp_path / f"{key}.json", key=key * 20, **asked) for key in "ab")
    assert len(one.rules.rules) > 1
    assert summary_text(one.answers.result) == summary_text(other.answers.result)
    assert one.answers.audit == other.answers.audit
    assert one.answers.result.drawn != other.answers.result.drawn
    for check, audit in zip(one.checks, one.answers.audit, strict=True):
        assert abs(check.value - audit.estimate) < 1e-9


@pytest.mark.slow
def test_the_positive_class_may_be_the_first_one(tmp_path):
    """What is told of drawn rules is told of the class that is positive, whatever it is called."""
    frame, told = loans(2000), {}
    for name, words in {"second": {0: "no", 1: "yes"}, "first": {0: "z", 1: "a"}}.items():
        frame.assign(paid=frame["paid"].map(words)).to_csv(tmp_path / "loans.csv", index=False)
        asked = {"target": "paid", "scores": ["p"], "by": ["sex"], "goals": GOALS, **DRAWN}
        asked["positive"] = words[1]
        found = choose_table(tmp_path / "loans.csv", tmp_path / f"{name}.json", key="k" * 20, **asked)
        assert len(found.rules.rules) > 1
        told[name] = [row.estimate for row in found.answers.audit]
    assert told["first"] == pytest.approx(told["second"], abs=1e-6)
