"""What choose, apply and audit refuse: tables, files of rules and options that cannot be."""

import json
from pathlib import Path

import numpy as np
import pytest
from loan_tables import loans
from spoiled import without_start

from counterpoise.cli import main


@pytest.fixture
def fitted(made):
    """Return the folder of which ``here`` is a copy."""
    return made


def rules_with(**changes):
    """Return what changes the file of rules."""

    def spoil():
        words = json.loads(Path("rules.json").read_text())
        Path("rules.json").write_text(json.dumps(words | changes))

    return spoil


def with_rule(**changes):
    """Return what changes the last rule of the file."""

    def spoil():
        words = json.loads(Path("rules.json").read_text())
        words["rules"][-1] |= changes
        Path("rules.json").write_text(json.dumps(words))

    return spoil


def deferring(*, deferred="ask", lower=0.1):
    """Return what makes a file of one rule that defers, with some flaw."""

    def spoil():
        words = json.loads(Path("rules.json").read_text())
        (groups, start) = words["rules"][0]["thresholds"], "0" * 16
        lower_ones = dict.fromkeys(groups, lower) if isinstance(lower, float) else lower
        rule = {
            "share": 1.0,
            "from": start,
            "score": "p",
            "thresholds": dict.fromkeys(groups, 0.5),
            "lower": lower_ones,
        }
        changed = words | {"format": "counterpoise rules 2", "deferred": deferred, "rules": [rule]}
        Path("rules.json").write_text(json.dumps(changed))

    return spoil


def too_long():
    """Let the file of rules have a byte more than is read, none of which takes room on the disk."""
    with Path("rules.json").open("r+b") as stream:
        stream.truncate((1 << 26) + 1)


def twice(old, new):
    """Return what writes a key of the file of rules once more."""

    def spoil():
        text = Path("rules.json").read_text()
        assert old in text
        Path("rules.json").write_text(text.replace(old, f"{new}, {old}", 1))

    return spoil


def rewritten(change):
    """Return what changes the table."""

    def spoil():
        change(loans(200)).to_csv("loans.csv", index=False)

    return spoil


APPLY = "apply rules.json loans.csv --ids id -o new.csv"
CHOOSING = "choose loans.csv --target paid --score p -o new.json --goal"
REFUSED = {
    "no rules": ("apply nowhere.json loans.csv --ids id -o new.csv", "There is no file of rules nowhere.json", None),
    "another file": ("apply loans.csv loans.csv --ids id -o new.csv", "must be a JSON file of rules", None),
    "a key twice": (
        APPLY,
        "each key must occur once in an object; 'positive' occurs 2 times",
        twice('"positive": 1', '"positive": 0'),
    ),
    "a threshold twice": (
        APPLY,
        "each key must occur once in an object; 'sex=F' occurs 2 times",
        twice('"sex=F": ', '"sex=F": 0.9'),
    ),
    "another format": (APPLY, "format: input should be 'counterpoise rules 1'", rules_with(format="rules 9")),
    "short key": (APPLY, "key: string should have at least 16 characters; got 'short'", rules_with(key="short")),
    "no rules in it": (APPLY, "rules: list should have at least 1 item", rules_with(rules=[])),
    "rule without parts": (APPLY, "rules.0.share: field required", rules_with(rules=[{}])),
    "starts in large letters": (APPLY, "from: string should match", with_rule(**{"from": "CC" * 8})),
    "starts that fall": (APPLY, "from must start at 0 and rise", with_rule(**{"from": "0" * 16})),
    "a share of none": (APPLY, "each share must be the part of the draws", with_rule(share=0)),
    "a column twice": (APPLY, "by must name each column once", rules_with(by=["sex", "sex"])),
    "a text and a number": (APPLY, "two different labels of one kind", rules_with(positive="1")),
    "deferring called as a class": (APPLY, "must not be mistaken for a class", deferring(deferred="1")),
    "deferring without a label": (APPLY, "belong to the format of rules that defer", deferring(deferred=None)),
    "lower ones above": (APPLY, "rules.0: lower must have a threshold for each group", deferring(lower=0.6)),
    "groups of no columns": (APPLY, "there is one group, 'all'", rules_with(by=[])),
    "deferral goal without a cost": (
        CHOOSING + " defer_rate<=0.1",
        "uses deferred rows, but no row is deferred: set deferral",
        None,
    ),
    "cost of two errors": (
        CHOOSING + " defer_rate<=0.1 --defer-cost 2",
        "defer_cost must lie in [0, 1], the loss of a row that a person decides about; got 2",
        None,
    ),
    "label without a cost": (
        CHOOSING + " recall>=0.5 --defer-label ask",
        "which need a defer_cost; got 'ask' and no defer_cost",
        None,
    ),
    "deferred rows called as a class": (
        CHOOSING + " recall>=0.5 --defer-cost 0.1 --defer-label 1",
        "label must not be mistaken for a class; got '1' beside the class 1",
        None,
    ),
    "audited deferral called as a class": (
        "audit loans.csv --target paid --prediction old --goal recall>=0.5 --defer-label 0",
        "defer_label must not be mistaken for a class; got '0' beside the class 0",
        None,
    ),
    "no column of ids": (APPLY.replace("id ", "person "), "has no column 'person'", None),
    "no score": (APPLY, "has no column 'p'", rewritten(lambda frame: frame.drop(columns="p"))),
    "missing score": (
        APPLY,
        "finite score in each row; 1 of 200",
        rewritten(lambda frame: frame.assign(p=[None] + [0.5] * 199)),
    ),
    "texts as scores": (
        APPLY,
        "must hold scores, numbers; row 1 holds 'high', and 199 more are not numbers",
        rewritten(lambda frame: frame.assign(p="high")),
    ),
    "unknown group": (APPLY, "hold the group 'sex=X'", rewritten(lambda frame: frame.assign(sex="X"))),
    "missing id": (
        APPLY,
        "an id in each row; row 2 has none",
        rewritten(lambda frame: frame.assign(id=["a", None] * 100)),
    ),
    "ids called said": (
        APPLY.replace("id ", "said "),
        "must not be named 'said'",
        rewritten(lambda frame: frame.rename(columns={"id": "said"})),
    ),
    "decisions over the table": (APPLY.replace("new.csv", "loans.csv"), "is the data file itself", None),
    "no goal": (CHOOSING + " a", "Unknown metric 'a'", None),
    "unknown score": (
        CHOOSING.replace("p -o", "r -o") + " recall>=0.5",
        "--score: loans.csv has no column 'r'",
        None,
    ),
    "unknown target": (
        CHOOSING.replace("paid", "pays") + " recall>=0.5",
        "--target: loans.csv has no column",
        None,
    ),
    "unknown column of by": (CHOOSING + " recall>=0.5 --by sexx", "Did you mean 'sex'?", None),
    "another dataset": (CHOOSING + " recall(mail)>=0.5", "which are called 'train'; got 'mail'", None),
    "unknown positive": (
        CHOOSING + " recall>=0.5 --positive 2",
        "--positive must be a class of column 'paid'",
        None,
    ),
    "three classes": (
        CHOOSING + " recall>=0.5",
        "must hold two classes, which a threshold separates; it holds 3",
        rewritten(lambda frame: frame.assign(paid=np.arange(200) % 3)),
    ),
    "short key to choose": (CHOOSING + " recall>=0.5 --key short", "at least 16 characters", None),
    "answers of no class": (
        "audit loans.csv --target paid --prediction id --goal recall>=0.5",
        "must be classes of column 'paid', 0, 1; got",
        None,
    ),
    "report over the table": (
        "audit loans.csv --target paid --prediction old --goal recall>=0.5 --report loans.csv",
        "loans.csv is the data file itself; --report must name another file",
        None,
    ),
    "report over the rules": (
        CHOOSING + " recall>=0.5 --report ./new.json",
        "--report and --output must name two files; both name new.json",
        None,
    ),
    "report in no folder": (
        CHOOSING + " recall>=0.5 --report pages/new.html",
        "There is no folder pages for new.html",
        None,
    ),
    "rules of too many bytes": (APPLY, "rules.json cannot be read: it has 67108865 bytes", too_long),
    "limit without weights": (
        "audit loans.csv --target paid --prediction old --goal recall>=0.5 --largest-weight 3",
        "--largest-weight is for weighted rows",
        None,
    ),
    "unknown column in a goal": (
        "audit loans.csv --target paid --prediction old --goal recall(train,age=3)>=0.5",
        "Unknown column 'age'",
        None,
    ),
    "confidence of 2": (
        "audit loans.csv --target paid --prediction old --goal recall>=0.5 --confidence 2",
        "confidence must lie in (0, 1)",
        None,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_answered_in_one_sentence(case, here, capsys):
    command, text, spoil = REFUSED[case]
    if spoil is not None:
        spoil()
    before = sorted(path.name for path in here.iterdir())
    assert main(command.split()) == 2
    told = without_start(capsys.readouterr().err)
    assert text in told
    assert told.count("\n") == 1
    assert sorted(path.name for path in here.iterdir()) == before
