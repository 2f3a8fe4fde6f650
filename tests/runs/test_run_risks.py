"""Risks in a goals file: what is written is made small and told, and what cannot be read is refused in a sentence."""

import pytest

from counterpoise.cli import main
from counterpoise.runs import open_run
from counterpoise.theory.risks import CVaR, EmpiricalLikelihood, WorstGroup

OBJECTIVE = {"n_estimators = 8": 'n_estimators = 4\nobjective = "{}"'}


@pytest.fixture
def fit(goals_file):
    """Return a function that writes an objective into a goals file and runs ``counterpoise fit`` on it."""

    def fit(text, **replace):
        path = goals_file(replace={old: new.format(text) for old, new in (OBJECTIVE | replace).items()})
        return main(["fit", str(path), "--quiet"]), path.with_suffix("")

    return fit


@pytest.mark.parametrize(
    ("text", "risk", "told"),
    [
        ("EmpiricalLikelihood('calibrated')", EmpiricalLikelihood("calibrated"), "EmpiricalLikelihood"),
        ("WorstGroup('sex')", WorstGroup("sex"), "the share wrong in the worst group by sex"),
        ("CVaR(0.4)", CVaR(0.4), "CVaR(alpha=0.4)"),
        ("cvar", CVaR(0.2), "Least wrong for"),  # the alpha of the file
    ],
)
def test_a_risk_is_made_small_and_told(fit, text, risk, told):
    code, folder = fit(text)
    assert code == 0
    assert open_run(folder).model()[-1].objective_ == risk
    assert told in (folder / "report.html").read_text(encoding="utf-8").replace("&#39;", "'").replace("<wbr>", "")


BAD = {
    "case": ("cvar(0.1)", "line 9, method.parameters: Unknown risk 'cvar' in 'cvar(0.1)'. Did you mean 'CVaR'?"),
    "a word": ("worst-grup", "A risk reads like 'CVaR(0.1)' or '0.5 * Mean() + 0.5 * KL(0.1)'; got 'worst-grup'."),
    "no radius": ("KL()", "KL in 'KL()': missing 1 required positional argument: 'radius'."),
    "no column": ("WorstGroup(3)", "columns must be the name of a column, or a tuple of names; got 3."),
    "a rate": ("cover(train)", "Unknown metric 'cover'. Did you mean 'coverage'?"),
    "a column": ("Mean() + WorstGroup('sez')", "speaks of the column 'sez'; got sex. Did you mean 'sex'? Columns of"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_risk_is_refused_before_anything_is_trained(fit, capsys, name):
    text, told = BAD[name]
    code, folder = fit(text)
    said = capsys.readouterr().err
    assert code == 2
    assert told in said
    assert said.count("\n") == 1
    assert not folder.exists()


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ('name = "pool"\nmodels = [{{name = "stump"}}]', "alpha must lie in (0, 1]"),
        ('name = "constrained"', "objective must be a rate, as error_rate(train) is; got the risk 'CVaR(2)'."),
    ],
)
def test_every_method_checks_its_objective_first(fit, capsys, method, told):
    changes = {
        "[method.parameters]": f"[method]\n{method}\n[method.parameters]",
        "n_estimators = 8": 'objective = "{}"',
    }
    code, folder = fit("CVaR(2)", **changes)
    assert code == 2
    assert told in capsys.readouterr().err
    assert not folder.exists()
