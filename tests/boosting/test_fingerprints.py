"""A fit goes on from a checkpoint exactly where its settings and data are those of the fit that began it."""

import numpy as np
import pytest
import scipy.sparse as sp
from interrupted import Interrupted, X, Y, ada, after
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from counterpoise.boosting.checkpoint import UnusableCheckpoint


def begin(folder, booster, features=X):
    booster.set_params(checkpoint=folder, callbacks=[after(2)])
    with pytest.raises(Interrupted):
        booster.fit(features, Y)


def go_on(folder, booster, features=X):
    return booster.set_params(checkpoint=folder).fit(features, Y)


def pipeline(**settings):
    return make_pipeline(StandardScaler(), RandomForestClassifier(3, **settings))


def test_settings_inside_of_a_pipeline_count_but_for_those_that_change_no_model(tmp_path):
    begin(tmp_path, ada(pipeline(n_jobs=1, random_state=0, class_weight={0: 1.0, 1: 2.0})))
    for other in ({"max_depth": 2}, {"class_weight": {0: 1.0, 1: 3.0}}, {"bootstrap": False}):
        settings = {"class_weight": {0: 1.0, 1: 2.0}} | other
        with pytest.raises(UnusableCheckpoint, match=r"other settings .*estimator__steps was"):
            go_on(tmp_path, ada(pipeline(**settings)))
    same = pipeline(n_jobs=2, random_state=np.random.RandomState(1), class_weight={1: 2.0, 0: 1.0})
    assert len(go_on(tmp_path, ada(same)).estimators_) == 7


def test_a_setting_that_no_other_process_has_is_refused(tmp_path):
    functions = {"log": lambda values: np.log1p(np.abs(values))}
    with pytest.raises(UnusableCheckpoint, match=r"able to compare the setting kw_args .*checkpoint=None"):
        ada(make_pipeline(FunctionTransformer(kw_args=functions), LogisticRegression()), checkpoint=tmp_path).fit(X, Y)


@pytest.mark.parametrize("as_given", [np.asfortranarray, lambda values: values[:, ::-1][:, ::-1], np.array])
def test_how_data_lie_in_memory_does_not_count(as_given, tmp_path):
    begin(tmp_path, ada())
    assert len(go_on(tmp_path, ada(), as_given(X)).estimators_) == 7


def test_every_entry_of_a_sparse_matrix_counts(tmp_path):
    sparse = sp.csr_array(np.where(X > 0.5, X, 0.0))
    begin(tmp_path, ada(), sparse)
    other, moved = sparse.copy(), sparse.copy()
    other.data[3] += 1
    moved.indices[3] = (moved.indices[3] + 1) % 6
    for features in (other, moved):
        with pytest.raises(UnusableCheckpoint, match=r"other data .X was float64"):
            go_on(tmp_path, ada(), features)
    assert len(go_on(tmp_path, ada(), sparse.copy()).estimators_) == 7


def test_names_types_and_values_of_a_data_frame_count(tmp_path):
    pandas = pytest.importorskip("pandas", reason="data frames")
    frame = pandas.DataFrame(X[:, :2], columns=["a", "b"]).assign(c=pandas.Categorical(["u", "v"] * 120))
    learner = make_pipeline(make_column_transformer((StandardScaler(), [0, 1])), LogisticRegression())
    begin(tmp_path, ada(learner), frame)
    others = [
        frame.rename(columns={"a": "z"}),
        frame[["b", "a", "c"]],
        frame.assign(a=frame["a"].where(frame.index != 7, 0.0)),
        frame.assign(a=frame["a"].astype("f4")),
        frame.assign(c=["u", "v"] * 120),
        frame.assign(c=pandas.Categorical(["u", "v"] * 120, categories=["v", "u"])),
        frame.assign(c=pandas.Categorical(["v", "u"] * 120)),
    ]
    for other in others:
        with pytest.raises(UnusableCheckpoint, match=r"other data .X was DataFrame"):
            go_on(tmp_path, ada(learner), other)
    assert len(go_on(tmp_path, ada(learner), frame.copy()).estimators_) == 7
