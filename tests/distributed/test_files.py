"""Rows in files: rules are those of one machine with all rows in memory."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from counterpoise import MixtureClassifier
from counterpoise.distributed.files import choose_from_files, require_room

RNG = np.random.default_rng(4)
N_ROWS = 3000
FRAME = pd.DataFrame(RNG.normal(size=(N_ROWS, 3)), columns=["a", "b", "c"])
FRAME["sex"] = np.where(RNG.random(N_ROWS) < 0.4, "F", "M")
FRAME["weight"] = RNG.integers(1, 4, N_ROWS)
FRAME["label"] = np.where(FRAME.a + (FRAME.sex == "F") * FRAME.b + RNG.normal(size=N_ROWS) > 0, "yes", "no")
FEATURES = FRAME[["a", "b", "c"]]
SCORER = LogisticRegression().fit(FEATURES[:300], FRAME.label[:300])
PARITY = "abs(positive_rate(train, sex=F) - positive_rate(train, sex=M)) <= 0.02"


@pytest.fixture
def folder(tmp_path):
    for number, first in enumerate(range(0, N_ROWS, 1100)):
        FRAME[first : first + 1100].to_parquet(tmp_path / f"{number}.parquet", row_group_size=400)
    return tmp_path


@pytest.mark.parametrize("weighs", [False, True])
def test_rules_chosen_from_files_are_those_of_rows_in_memory(folder, weighs):
    settings = {"scores": True, "alpha": 0.5, "goals": [PARITY], "by": "sex", "random_state": 0}
    frame, features = (folder, "weight") if weighs else (folder, None)
    names = ["sex"] if weighs else ["sex", "weight"]
    model = choose_from_files(
        MixtureClassifier([SCORER], **settings), frame, "label", sensitive_features=names, sample_weight=features
    )
    weights = FRAME.weight if weighs else None
    twin = MixtureClassifier([SCORER], **settings)
    twin.fit(FEATURES, FRAME.label, weights, sensitive_features=FRAME[names])
    np.testing.assert_allclose(model.value_, twin.value_, atol=2e-4)
    assert model.check_goals(FEATURES, FRAME.label, sample_weight=weights, sensitive_features=FRAME[names])[0].holds
    assert model.predict(FEATURES, sensitive_features=FRAME[names]).shape == (N_ROWS,)


def test_models_that_only_answer_are_refused(folder):
    with pytest.raises(ValueError, match="set scores=True"):
        choose_from_files(MixtureClassifier([SCORER]), folder, "label")


def test_a_column_that_is_not_in_the_files_is_named(folder):
    with pytest.raises(ValueError, match="with the column 'age'"):
        choose_from_files(MixtureClassifier([SCORER], scores=True), folder, "age")


def test_more_than_the_disk_has_room_for_is_refused_before_it_is_written(tmp_path):
    with pytest.raises(OSError, match=r"scores and cells of all rows take 1.07e\+09 GiB, and .* GiB are free"):
        require_room(tmp_path, 1 << 60)
