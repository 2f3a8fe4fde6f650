"""Risks in a goals file: what is written is minimised and told, and what cannot be read is refused in a sentence."""

import numpy as np
import pytest

from counterpoise.cli import main
from counterpoise.runs import open_run
from counterpoise.theory.risks import CVaR, EmpiricalLikelihood, Mean, WorstGroup
from tests.tiers import slow

BOOSTED = 'name = "adalpboost"\nparameters.n_estimators = 8'
OBJECTIVE = 'name = "adalpboost"\n[method.parameters]\nn_estimators = 4\nobjective = "{}"'


@pytest.fixture
def fit(goals_file):
    """Return a function that writes an objective into a goals file and runs ``counterpoise fit`` on it."""

    def fit(text, method=OBJECTIVE):
        path = goals_file(replace={BOOSTED: method.format(text)})
        return main(["fit", str(path), "--quiet"]), path.with_suffix("")

    return fit


@pytest.mark.parametrize(
    ("text", "risk", "told"),
    [
        slow("EmpiricalLikelihood('calibrated')", EmpiricalLikelihood("calibrated"), "EmpiricalLikelihood"),
        ("WorstGroup('sex')", WorstGroup("sex"), "the share wrong in the worst group by sex"),
        slow("CVaR(0.4)", CVaR(0.4), "CVaR(alpha=0.4)"),
        slow("cvar", CVaR(0.2), "Least wrong for"),  # the alpha of the file
    ],
)
def test_a_risk_is_made_small_and_told(fit, text, risk, told):
    code, folder = fit(text)
    assert code == 0
    assert open_run(folder).model()[-1].objective_ == risk
    assert told in (folder / "report.html").read_text(encoding="utf-8").replace("&#39;", "'").replace("<wbr>", "")


BAD = {
    "case": ("cvar(0.1)", "line 11, method.parameters: Unknown risk 'cvar' in 'cvar(0.1)'. Did you mean 'CVaR'?"),
    "a word": ("worst-grup", "A risk reads like 'CVaR(0.1)' or '0.5 * Mean() + 0.5 * KL(0.1)'; got 'worst-grup'."),
    "no radius": ("KL()", "KL in 'KL()': missing 1 required positional argument: 'radius'."),
    "no column": ("WorstGroup(3)", "columns must be the name of a column, or a tuple of names; got 3."),
    "a rate": ("cover", "Unknown metric 'cover'. Did you mean 'coverage'?"),
    "a column": ("Mean() + WorstGroup('sez')", "uses the column 'sez'; got sex. Did you mean 'sex'? Columns of"),
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
        ('name = "constrained"', "objective must be a rate, as error_rate() is; got the risk 'CVaR(2)'."),
    ],
)
def test_every_method_checks_its_objective_first(fit, capsys, method, told):
    code, folder = fit("CVaR(2)", f'{method}\nparameters.objective = "{{}}"')
    assert code == 2
    assert told in capsys.readouterr().err
    assert not folder.exists()


@pytest.mark.slow
def test_a_run_is_rebalanced_for_another_objective_and_back_for_a_tail(fit, capsys):
    """What was minimised is in the model, the settings, the summary and the command that makes it again."""
    _, folder = fit("EmpiricalLikelihood('calibrated')")
    other, tail = folder.with_name("other"), folder.with_name("tail")
    assert main(["fit", "--from", str(folder), "-o", str(other), "--objective", "0.5 * Mean() + 0.5 * CVaR(0.1)"]) == 0
    said = capsys.readouterr().out
    run = open_run(other)
    assert run.model()[-1].objective_ == 0.5 * Mean() + 0.5 * CVaR(0.1)
    assert run.settings.method.parameters["objective"] == "0.5 * Mean() + 0.5 * CVaR(alpha=0.1)"
    assert f"minimised: 0.5 * Mean() + 0.5 * CVaR(alpha=0.1), {run.result().losses().objective:.4f}" in said
    assert main(["fit", "--from", str(other), "-o", str(tail), "--alpha", "0.4", "--quiet"]) == 0
    run = open_run(tail)
    assert run.model()[-1].objective_ == CVaR(0.4)
    assert "objective" not in run.settings.method.parameters
    assert np.isnan(run.result().losses().objective)
