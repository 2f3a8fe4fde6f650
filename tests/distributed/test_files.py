"""Rows in files: rules are those of one machine with all rows in memory."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from counterpoise import GoalClassifier, MixtureClassifier
from counterpoise.distributed.files import choose_from_files, require_room

RNG = np.random.default_rng(4)
N_ROWS = 3000
FRAME = pd.DataFrame(RNG.normal(size=(N_ROWS, 3)), columns=["a", "b", "c"])
FRAME["sex"] = np.where(RNG.random(N_ROWS) < 0.4, "F", "M")
FRAME["weight"] = RNG.integers(1, 4, N_ROWS)
FRAME["label"] = np.where(FRAME.a + (FRAME.sex == "F") * FRAME.b + RNG.normal(size=N_ROWS) > 0, "yes", "no")
FEATURES = FRAME[["a", "b", "c"]]
SCORER = LogisticRegression().fit(FEATURES[:300], FRAME.label[:300])
PARITY = "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.02"


@pytest.fixture
def folder(tmp_path):
    for number, first in enumerate(range(0, N_ROWS, 1100)):
        FRAME[first : first + 1100].to_parquet(tmp_path / f"{number}.parquet", row_group_size=400)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("weighs", [False, True])
def test_rules_chosen_from_files_are_those_of_rows_in_memory(folder, weighs):
    settings = {"cv": "prefit", "decision": "sticky", "alpha": 0.5, "goals": [PARITY], "by": "sex", "random_state": 0}
    frame, features = (folder, "weight") if weighs else (folder, None)
    names = ["sex"] if weighs else ["sex", "weight"]
    model = choose_from_files(
        GoalClassifier([SCORER], **settings, confidence=None),
        frame,
        "label",
        sensitive_features=names,
        sample_weight=features,
    )
    weights = FRAME.weight if weighs else None
    twin = GoalClassifier([SCORER], **settings, confidence=None)
    twin.fit(FEATURES, FRAME.label, weights, sensitive_features=FRAME[names])
    np.testing.assert_allclose(model.value_, twin.value_, atol=2e-4)
    assert model.check_goals(FEATURES, FRAME.label, sample_weight=weights, sensitive_features=FRAME[names])[0].holds
    assert model.predict(FEATURES, sensitive_features=FRAME[names]).shape == (N_ROWS,)


def test_models_that_only_answer_are_refused(folder):
    with pytest.raises(TypeError, match="Only a GoalClassifier can be fitted on rows in files; got MixtureClassifier"):
        choose_from_files(MixtureClassifier([SCORER]), folder, "label")


def test_a_column_that_is_not_in_the_files_is_named(folder):
    with pytest.raises(ValueError, match="You named the column 'age'"):
        choose_from_files(GoalClassifier([SCORER], cv="prefit", decision="sticky", alpha=0.1), folder, "age")


def test_more_than_the_disk_has_room_for_is_refused_before_it_is_written(tmp_path):
    with pytest.raises(OSError, match=r"scores and cells of all rows take 1.07e\+09 GiB, and .* GiB are free"):
        require_room(tmp_path, 1 << 60)


class _ByPlace:
    """A model that knows the names of its columns, and looks at their places alone."""

    classes_ = np.array(["no", "yes"])
    feature_names_in_ = np.array(["c", "a"], dtype=object)

    def predict_proba(self, X):
        assert X.shape[1] == 2
        up = 1 / (1 + np.exp(-np.asarray(X)[:, 1]))
        return np.column_stack([1 - up, up])


def _up(X):
    return 1 / (1 + np.exp(-X["a"].to_numpy()))


def test_models_see_the_columns_they_were_trained_on_in_their_order_and_no_others(folder):
    settings = {"cv": "prefit", "goals": ["recall >= 0.9"], "pos_label": "yes", "random_state": 0}
    model = choose_from_files(
        GoalClassifier(_ByPlace(), **settings, confidence=None), folder, "label", sensitive_features="sex"
    )
    twin = GoalClassifier(_ByPlace(), **settings, confidence=None).fit(FEATURES, FRAME.label)
    assert model.feature_names_in_.tolist() == ["c", "a"]  # neither the weight nor the other feature
    assert model.value_ == pytest.approx(twin.value_, abs=2e-4)
    rows = FRAME[["c", "a"]]
    assert (model.predict(rows) == twin.predict(FEATURES)).mean() > 0.99


def test_columns_that_are_features_can_be_named(folder):
    model = GoalClassifier([_up], cv="prefit", decision="sticky", alpha=0.1, pos_label="yes")
    assert choose_from_files(model, folder, "label", features=["a", "b"]).feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(TypeError, match="features must be a list of names"):
        choose_from_files(model, folder, "label", features="a")
    with pytest.raises(ValueError, match="You named the column 'z'"):
        choose_from_files(model, folder, "label", features=["a", "z"])


def test_models_are_not_trained_on_rows_in_files(folder):
    with pytest.raises(ValueError, match=r"GoalClassifier\(model, cv='prefit'\); got cv='auto'"):
        choose_from_files(GoalClassifier(SCORER), folder, "label")
    with pytest.raises(TypeError, match="files must be the path of Parquet files"):
        choose_from_files(GoalClassifier(SCORER, cv="prefit"), FRAME, "label")


@pytest.mark.parametrize("n_left", [1100, 50, 2000])
def test_files_that_change_while_they_are_read_are_refused(folder, n_left):
    class Changing(_ByPlace):
        def predict_proba(self, X):
            FRAME[:n_left].assign(label="no").to_parquet(folder / "1.parquet", row_group_size=400)
            return super().predict_proba(X)

    with pytest.raises(ValueError, match=r"1\.parquet changed while it was read"):
        choose_from_files(GoalClassifier(Changing(), cv="prefit", pos_label="yes"), folder, "label")


@pytest.mark.parametrize(
    ("weight", "message"),
    [(1e308, "neither tiny nor huge"), (1e-320, "neither tiny nor huge"), ("one", "must hold numbers")],
)
def test_weights_that_cannot_be_summed_are_refused(tmp_path, weight, message):
    FRAME.assign(weight=weight).to_parquet(tmp_path / "0.parquet")
    model = GoalClassifier([SCORER], cv="prefit", decision="sticky", alpha=0.1)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=f"sample_weight must {message}|{message}"):
        choose_from_files(model, tmp_path, "label", sample_weight="weight")


def test_groups_that_are_words_days_or_missing_are_those_of_rows_in_memory(tmp_path):
    frame = FRAME.assign(
        word=np.array(["NA", "nan", "", None, "null"], dtype=object)[np.arange(N_ROWS) % 5],
        day=pd.to_datetime(["2026-11-03", "2026-11-04", None])[np.arange(N_ROWS) % 3],
    )
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=400)
    settings = {"cv": "prefit", "decision": "sticky", "by": ["word", "day"], "random_state": 0}
    names = {"sensitive_features": ["word", "day", "sex", "weight"]}
    model = choose_from_files(GoalClassifier([SCORER], **settings, confidence=None), tmp_path, "label", **names)
    twin = GoalClassifier([SCORER], **settings, confidence=None).fit(
        FEATURES, FRAME.label, sensitive_features=frame[["word", "day"]]
    )
    assert model.groups_.names == twin.groups_.names
    assert "word=(missing), day=2026-11-03" in model.groups_.names
    np.testing.assert_allclose(model.value_, twin.value_, atol=2e-4)


def test_an_empty_label_in_a_file_is_missing(tmp_path):
    FRAME.assign(label=FRAME.label.where(FRAME.index != 7, "")).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=f"y must hold a label for each row; 1 of {N_ROWS} are missing"):
        choose_from_files(
            GoalClassifier([SCORER], cv="prefit", decision="sticky", alpha=0.1),
            tmp_path,
            "label",
            sensitive_features=["sex", "weight"],
        )
