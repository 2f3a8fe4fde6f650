"""Models saved before draws had versions keep their answers.

``old_models`` holds two of them, fitted and saved by the library as it was then, and here is what they said then.
"""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from counterpoise import load, save

FOLDER = Path(__file__).parent / "old_models"
ROWS = np.random.default_rng(1).normal(size=(64, 3))
DAY = dt.datetime(2020, 1, 1)  # noqa: DTZ001 - without a zone on purpose
IDS = [
    *range(16),
    *(f"p{number}" for number in range(16)),
    *(Decimal(10**17 + number) for number in range(16)),
    *(DAY + dt.timedelta(hours=number) for number in range(8)),
    *(number / 3 for number in range(8)),
]
SAID = {  # by row, by row as float32, by id: a bit for each answer
    "boosted.cp": ("00940e4859a52088", "038010ef4928e4ec", "6217510200001517"),
    "ramp.cp": ("8430010808c1a104", "9030004a08c0210d", "1000000800000008"),
}


def bits(answers):
    return np.packbits(answers).tobytes().hex()


def answers(model):
    by_id = model.predict(np.zeros((64, 3)), ids=IDS)
    return bits(model.predict(ROWS)), bits(model.predict(ROWS.astype(np.float32))), bits(by_id)


@pytest.mark.parametrize("name", SAID)
def test_old_models_keep_their_answers(name, tmp_path):
    model = load(FOLDER / name)
    assert answers(model) == SAID[name]
    assert bits(model.predict(pd.DataFrame(ROWS))) == SAID[name][0]
    assert model.key is None
    save(model, tmp_path / name)
    assert answers(load(tmp_path / name)) == SAID[name]


def test_an_old_model_keeps_its_draws_when_it_is_rebalanced_and_gets_new_ones_when_it_is_fitted():
    model = load(FOLDER / "boosted.cp")
    same = model.rebalance(alpha=model.alpha_)
    np.testing.assert_array_equal(same.predict(ROWS), model.predict(ROWS))
    model.fit(ROWS, np.arange(64) % 2)
    assert model._draws.version == 2
    assert answers(model) != SAID["boosted.cp"]


def test_ids_of_a_file_are_read_for_an_old_run_as_they_were(tmp_path):
    """A text such as 2.5 was a text, and decimals were floats."""
    from counterpoise.mixtures.draws import draws_of  # noqa: PLC0415 - beside its one use
    from counterpoise.runs.ids import read_ids  # noqa: PLC0415

    draws = draws_of(load(FOLDER / "boosted.cp"))
    (tmp_path / "ids.csv").write_text("who\n12\n012\n2.5\n2020-01-01\n")
    assert read_ids(tmp_path / "ids.csv", "who", draws).told == [12, "012", "2.5", "2020-01-01"]
    pd.DataFrame({"who": [Decimal(10**17 + 1)]}).to_parquet(tmp_path / "ids.parquet")
    assert read_ids(tmp_path / "ids.parquet", "who", draws).told == [1e17]
