"""The examples of goals files on real data, from Parquet and from CSV, where the data are at hand."""

import os
import re
from pathlib import Path

import pandas as pd
import pytest
from run_numbers import numbers

from counterpoise.runs import fit_run

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDER = Path(os.environ.get("COUNTERPOISE_DATA", "none"))
NAMES = ["adult", "credit_default_taiwan"]
pytestmark = pytest.mark.skipif(
    not all((FOLDER / f"{name}.parquet").exists() for name in NAMES), reason="COUNTERPOISE_DATA has no such files"
)
FEW_ROWS = 15000  # enough for the goal that carries a confidence


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_example_fits_from_parquet_and_from_csv_alike(name, tmp_path):
    """Missing values and texts are the same in both, so are all numbers but times."""
    frame = pd.read_parquet(FOLDER / f"{name}.parquet").head(FEW_ROWS)
    text = (EXAMPLES / f"{name}.toml").read_text()
    text = re.sub(r"n_estimators = \d+", "n_estimators = 4", text)
    found = {}
    for end in ("parquet", "csv"):
        (tmp_path / end / "run").mkdir(parents=True)
        (tmp_path / end / "run" / "draws.key").write_text("5e" * 32)  # the same decisions are drawn
        data = tmp_path / end / f"{name}.{end}"
        frame.to_parquet(data) if end == "parquet" else frame.to_csv(data, index=False)
        (tmp_path / end / "goals.toml").write_text(text.replace(".parquet", f".{end}"))
        run = fit_run(tmp_path / end / "goals.toml", output=tmp_path / end / "run")
        found[end] = {row.run: row.value for row in numbers(run) if row.quantity != "seconds"}
        violations = [goal.on("test").violation for goal in run.result().goals]
        assert len(violations) == 3
        assert max(violations) < 0.05
    assert found["csv"] == pytest.approx(found["parquet"])
