"""Models on disk: what is loaded predicts as what was saved, and what cannot be stored is refused by name."""

import os
import pickle
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import counterpoise as cp
from counterpoise import learners, persist
from counterpoise.goals import Table, parse_goal
from counterpoise.learners import HistogramTree, Stump
from counterpoise.persist import UnreadableModel, UnstorableModel, dumps, write_atomically
from tests.inside import kept_table

needs_skops = pytest.mark.skipif(find_spec("skops") is None, reason="skops is not installed")
NUMBERS, CODES = load_breast_cancer(return_X_y=True)
NUMBERS, CODES = NUMBERS[:150, :8], CODES[:150]
WORDS = np.array(["bad", "good"])[CODES]
FLOWERS = load_iris(return_X_y=True)

SETTINGS = {
    "ramp": cp.ConstrainedClassifier(goals=["recall >= 0.5"], pos_label="bad", decision="ramp", random_state=0),
    "generator": cp.LPBoostClassifier(HistogramTree(), n_estimators=3, random_state=np.random.RandomState(0)),
    "names": cp.MixtureClassifier(
        [Stump().fit(NUMBERS, WORDS), ("tree", HistogramTree().fit(NUMBERS, WORDS))], random_state=0
    ),
    "categories": HistogramTree(categorical_features=[7]),
}


def round_trip(model, tmp_path, **settings):
    cp.save(model, tmp_path / "model.cp", **settings)
    return cp.load(tmp_path / "model.cp", **settings)


def assert_same(first, second, X):
    for method in ("predict", "predict_proba", "decision_function"):
        assert hasattr(first, method) == hasattr(second, method)
        if hasattr(first, method):
            assert_array_equal(getattr(first, method)(X), getattr(second, method)(X))


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_of_every_kind_are_kept(case, tmp_path):
    X = NUMBERS.copy()
    X[:, 7] = CODES + np.arange(150) % 3
    model = SETTINGS[case].fit(X, WORDS)
    loaded = round_trip(model, tmp_path)
    assert_same(model, loaded, X)
    assert persist.dumps(loaded) == persist.dumps(model)


def test_a_network_of_an_own_function_is_refused(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")

    def module(shape, n_classes):
        return learners.networks.Perceptron((4,))(shape, n_classes)

    model = learners.NetworkLearner(module, n_iterations=5, device="cpu", random_state=0).fit(*FLOWERS)
    with pytest.raises(UnstorableModel, match=r"NetworkLearner cannot be stored: module is a function .*module"):
        cp.save(model, tmp_path / "model.cp")


@pytest.fixture(scope="module")
def people():
    return {"sex": np.array(["F", "M"], dtype=object)[np.arange(150) % 2]}


GOALS = [
    "positive_rate(sex=F) >= 0.7 * positive_rate(sex=M)",
    "precision >= 0.5",
    "churn(mail) <= 0.9",
]


def test_a_loaded_mixture_can_be_rebalanced_and_checked_without_data(people, tmp_path):
    mail = Table(NUMBERS[:40], baseline=CODES[:40])
    model = cp.AdaLPBoostClassifier(HistogramTree(), n_estimators=6, goals=GOALS, random_state=0)
    model.fit(NUMBERS, CODES, sensitive_features=people, datasets={"mail": mail})
    loaded = round_trip(model, tmp_path)
    assert loaded.goals_ == model.goals_
    assert [str(check) for check in loaded.check_goals()] == [str(check) for check in model.check_goals()]
    for goals in (None, [parse_goal("recall(sex=M) >= 0.6")], ()):
        first, second = (one.rebalance(alpha=0.4, goals=goals) for one in (model, loaded))
        assert_array_equal(first.mixture_, second.mixture_)
        assert second.estimators_ is loaded.estimators_


@needs_skops
def test_goals_on_columns_of_a_data_frame_can_be_met_again_after_loading(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(NUMBERS, columns=list("abcdefgh")).assign(sex=["F", "M", None] * 50, one=1)
    goals = ["positive_rate(sex=F) >= 0.7 * positive_rate(sex=M)", "recall(one=1) >= 0.5"]
    pool = [make_pipeline(make_column_transformer(("passthrough", [name])), Stump()) for name in "abc"]
    model = cp.MixtureClassifier([one.fit(frame, CODES) for one in pool], goals=goals).fit(frame, CODES)
    loaded = round_trip(model, tmp_path)
    assert_same(model, loaded, frame)
    assert kept_table(loaded).columns == ["sex", "one"]  # and no measurements
    assert_array_equal(loaded.rebalance(alpha=0.3).mixture_, model.rebalance(alpha=0.3).mixture_)


def test_fit_more_after_loading_is_refused_as_after_pickling(tmp_path):
    loaded = round_trip(cp.AdaLPBoostClassifier(HistogramTree(), n_estimators=2).fit(NUMBERS, CODES), tmp_path)
    with pytest.raises(ValueError, match="fit_more needs the samples"):
        loaded.fit_more(2)


def test_fresh_draws_go_on_where_they_were(tmp_path):
    model = cp.AdaLPBoostClassifier(HistogramTree(), n_estimators=5, decision="sample", random_state=0).fit(
        NUMBERS, CODES
    )
    model.predict(NUMBERS)
    loaded = round_trip(model, tmp_path)
    assert_array_equal(loaded.predict(NUMBERS), model.predict(NUMBERS))


def test_callbacks_are_left_out(tmp_path):
    model = cp.AdaLPBoostClassifier(HistogramTree(), n_estimators=2, callbacks=[lambda _: False]).fit(NUMBERS, CODES)
    assert round_trip(model, tmp_path).callbacks == ()
    assert len(model.callbacks) == 1


def test_a_kernel_classifier_keeps_sparse_rows(tmp_path):
    model = cp.ConstrainedClassifier(kernel="rbf").fit(csr_array(NUMBERS), CODES)
    loaded = round_trip(model, tmp_path)
    assert isinstance(loaded.support_rows_, csr_array)
    assert_array_equal(loaded.decision_function(NUMBERS), model.decision_function(NUMBERS))


def test_models_are_stored_once_and_stay_shared(tmp_path):
    model = cp.MixtureClassifier([HistogramTree().fit(NUMBERS, CODES)] * 20).fit(NUMBERS, CODES)
    loaded = round_trip(model, tmp_path)
    assert all(one is loaded.estimators_[0] for one in loaded.estimators_ + loaded.estimators)


@needs_skops
def test_a_pipeline_around_ours_takes_raw_data_frames(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(NUMBERS[:, :3], columns=["a", "b", "c"]).assign(sex=["F", "M", "M"] * 50)
    columns = make_column_transformer((OneHotEncoder(), ["sex"]), remainder=StandardScaler())
    model = make_pipeline(columns, cp.AdaLPBoostClassifier(HistogramTree(), n_estimators=4, random_state=0)).fit(
        frame, WORDS
    )
    loaded = round_trip(model, tmp_path)
    assert_same(model, loaded, frame)
    assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)


class Own(GaussianNB):
    """A model of the user's own."""


@needs_skops
def test_a_type_that_is_not_trusted_is_refused_by_name_and_taken_when_named(tmp_path):
    path, name = tmp_path / "model.cp", f"{__name__}.Own"
    model = cp.MixtureClassifier([Own().fit(NUMBERS, CODES)], random_state=0).fit(NUMBERS, CODES)
    with pytest.raises(UnstorableModel, match=rf"estimators\[0\] holds types that are not on the list .*: {name}\."):
        cp.save(model, path)
    assert_same(model, round_trip(model, tmp_path, trusted=[name]), NUMBERS)
    with pytest.raises(UnreadableModel, match=rf"not on the list of trusted types: {name}\. If you know who wrote"):
        cp.load(path)


@needs_skops
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (cp.AdaLPBoostClassifier(HistogramTree()), "This AdaLPBoostClassifier is not fitted: call fit"),
        (cp.AdaLPBoostClassifier, "is not fitted"),
        ({"a": 1}, "This dict is not fitted"),
        (
            cp.MixtureClassifier([lambda X: CODES[: len(X)]]).fit(NUMBERS, CODES),
            r"estimators\[0\] is a function or callable \(<lambda>\), which no file can hold",
        ),
        (
            make_pipeline(FunctionTransformer(lambda X: X), Stump()).fit(NUMBERS, CODES),
            r"steps\[0\]\[1\] holds the function .*<lambda>, which cannot be stored",
        ),
        (
            BaggingClassifier(Stump(), 2).fit(NUMBERS, CODES),
            "a BaggingClassifier of scikit-learn with a model of counterpoise inside",
        ),
    ],
)
def test_what_cannot_be_stored_is_refused_and_leaves_no_file(model, message, tmp_path):
    with pytest.raises(UnstorableModel, match=message):
        cp.save(model, tmp_path / "model.cp")
    assert list(tmp_path.iterdir()) == []


def test_a_refused_model_leaves_the_older_file(tmp_path):
    model = Stump().fit(NUMBERS, CODES)
    cp.save(model, tmp_path / "model.cp")
    with pytest.raises(UnstorableModel, match="not fitted"):
        cp.save(Stump(), tmp_path / "model.cp")
    assert_same(cp.load(tmp_path / "model.cp"), model, NUMBERS)
    with pytest.raises(UnstorableModel, match=r"is a folder\. Pass the name of a file"):
        cp.save(model, tmp_path)


def test_a_file_is_no_larger_than_a_pickle():
    model = cp.AdaBoostClassifier(Stump(), n_estimators=50).fit(NUMBERS, CODES)
    assert len(dumps(model)) < len(pickle.dumps(model))


def test_a_failed_write_leaves_the_old_file_and_no_part(tmp_path):
    path = tmp_path / "kept.txt"
    write_atomically(path, [b"old"])

    def chunks():
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, chunks())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "kept.txt"
    write_atomically(path, [b"old"])
    path.chmod(0o640)
    write_atomically(path, [b"new"])
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_new_model_file_is_for_its_owner_alone_and_another_as_it_was(tmp_path):
    path = tmp_path / "model.cp"
    cp.save(Stump().fit([[0.0], [1.0]], [0, 1]), path)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    cp.save(Stump().fit([[0.0], [1.0]], [1, 0]), path)
    assert path.stat().st_mode & 0o777 == 0o644


def test_what_a_killed_process_left_is_removed_after_an_hour(tmp_path):
    path = tmp_path / "kept[1].txt"
    old, fresh, other = (tmp_path / name for name in (f".{path.name}.a.part", f".{path.name}.b.part", ".other.a.part"))
    for one in (old, fresh, other):
        one.write_bytes(b"half")
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))
    write_atomically(path, [b"whole"])
    assert sorted(tmp_path.iterdir()) == sorted([path, fresh, other])
