"""Risks as text: what is written is read back, and what cannot be read is refused in a short sentence."""

import math

import numpy as np
import pytest

from counterpoise.theory.risk_text import is_risk_text, parse_risk
from counterpoise.theory.risks import KL, CVaR, EmpiricalLikelihood, Mean, MeanVariance, WorstGroup

RISKS = [
    (1 / 3) * Mean() + (2 / 3) * CVaR(0.1),
    1234567 * Mean(),
    0.1 * (0.1 * Mean()),
    KL(0.1, confidence=0.95),
    EmpiricalLikelihood(0.1, degrees_of_freedom=2),
    KL(math.inf) + Mean(),
    CVaR(np.float32(0.3)),
    KL("calibrated", 0.95, np.int64(3)),
    MeanVariance(np.float64(0.5)),
    WorstGroup(("a 'b'", 'c"')),
    CVaR(1e-320),
]


@pytest.mark.parametrize("risk", RISKS, ids=repr)
def test_a_risk_is_read_back_from_its_text(risk):
    assert parse_risk(repr(risk)) == risk


def test_lines_may_be_broken():
    assert parse_risk("\n 0.5 * Mean()\n  + CVaR(0.1)\n") == 0.5 * Mean() + CVaR(0.1)


@pytest.mark.parametrize(
    "text",
    [
        "1" + "0" * 400 + " * Mean()",
        "CVaR(1" + "0" * 400 + ")",
        "'a' * Mean()",
        "True * Mean()",
        "[1] * Mean()",
        "CVaR(**{'a': 1})",
        "Mean().value",
        "[Mean() for _ in '1']",
        "__import__('os')",
        "Mean() + " * 30_000,
        "+".join(["Mean()"] * 3000),
        "(" * 5000,
        "Mean\0()",
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_risk_is_refused_in_a_short_sentence(text):
    with pytest.raises(ValueError, match=r"risk|alpha") as caught:
        parse_risk(text)
    assert len(str(caught.value)) < 700


def test_names_that_end_like_a_risk_are_no_risks():
    assert not is_risk_text("HarmonicMean(train)")
    assert is_risk_text("0.5 * Mean () + 0.5 * recall")
    assert not is_risk_text("x" * 300_000)  # each word is looked at once: hours otherwise
