"""Boosters over shards: the same models, weights and mixture however the rows are cut, and those of one machine."""

from operator import itemgetter

import numpy as np
import pytest
from engines import COUNTS, cut, opened
from sklearn.linear_model import LogisticRegression

import counterpoise
from counterpoise import AdaLPBoostClassifier, GoalClassifier, LPBoostClassifier, MixtureClassifier, Stopping
from counterpoise.boosting.checkpoint import Checkpoint, UnusableCheckpoint
from counterpoise.distributed.fitting import fit_over, mix_over
from counterpoise.goals import InfeasibleGoals
from counterpoise.learners import HistogramTree, Stump
from tests.tiers import slow

RNG = np.random.default_rng(5)
N_ROWS = 403
X = RNG.normal(size=(N_ROWS, 3))
SEX = np.where(RNG.random(N_ROWS) < 0.4, "F", "M")
Y = np.where(X[:, 0] + (SEX == "F") * X[:, 1] + RNG.normal(size=N_ROWS) > 0, "yes", "no")
WEIGHTS = RNG.integers(1, 4, N_ROWS).astype(float)
PARITY = "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.02"
TREE = HistogramTree(2, min_samples_leaf=10)
FOLDS = {"stopping": Stopping(n_folds=None)}
GOALS = {"goals": [PARITY, "recall >= 0.75"], "n_estimators": 5, "random_state": 0, **FOLDS}

CASES = {
    "ada": AdaLPBoostClassifier(TREE, n_estimators=5, alpha=0.3, random_state=0, **FOLDS),
    "ada in goals": AdaLPBoostClassifier(Stump(), n_estimators=6, alpha=0.5, goals=[PARITY], random_state=0, **FOLDS),
    "ada by groups": AdaLPBoostClassifier(TREE, n_estimators=4, reweigh="groups", random_state=0, **FOLDS),
    "ada on average": AdaLPBoostClassifier(TREE, n_estimators=4, mixture="average", random_state=0, **FOLDS),
    "a rate": AdaLPBoostClassifier(TREE, n_estimators=4, objective="error_rate", budget=0.1, random_state=0),
    "lp": LPBoostClassifier(TREE, n_estimators=5, alpha=0.3, random_state=0, **FOLDS),
    "lp by groups": LPBoostClassifier(TREE, n_estimators=4, objective="WorstGroup('sex')", random_state=0, **FOLDS),
    "a tail inside": LPBoostClassifier(TREE, alpha=0.5, **GOALS),
    "a mean inside": LPBoostClassifier(TREE, alpha=1.0, **GOALS),
    "a rate inside": LPBoostClassifier(TREE, objective="false_positive_rate", **GOALS),
    "groups inside": LPBoostClassifier(TREE, objective="WorstGroup('sex')", **GOALS),
    "ada until it stalls": AdaLPBoostClassifier(
        TREE, n_estimators=9, alpha=0.5, stopping=Stopping(patience=1, n_folds=None), random_state=0
    ),
    "lp to a target": LPBoostClassifier(TREE, n_estimators=9, alpha=0.5, target=0.4, random_state=0, **FOLDS),
}


def _fitted(engine, n_shards, model, **more):
    with opened(engine, cut(n_shards, X=X, y=Y, sex=SEX, **more)) as shards:
        shards.change("columns", _name_columns)
        fitted = fit_over(model.__class__(**model.get_params(deep=False)), shards)
        return fitted, np.concatenate(shards.map(itemgetter("weights")))


def _name_columns(shard):
    shard["columns"] = {"sex": shard.pop("sex")}


@pytest.mark.parametrize(
    ("engine", "name"),
    [*(("threads", name) for name in CASES), slow("processes", "ada in goals"), slow("processes", "a tail inside")],
)
def test_models_weights_and_mixture_are_the_same_over_any_number_of_shards(engine, name):
    first, weights = _fitted("threads", 1, CASES[name], sample_weight=WEIGHTS)
    for n_shards in COUNTS[1:] if engine == "threads" else (2,):
        other, own = _fitted(engine, n_shards, CASES[name], sample_weight=WEIGHTS)
        for one, two in zip(first.estimators_, other.estimators_, strict=True):
            for part, its in zip(one.tree_, two.tree_, strict=True):
                np.testing.assert_array_equal(part, its)
        assert own.tolist() == weights.tolist()
        assert other.mixture_.tolist() == first.mixture_.tolist()
        assert other.weighted_losses_.tolist() == first.weighted_losses_.tolist()
        np.testing.assert_allclose(other.value_, first.value_, rtol=1e-12)
        assert other.predict(X).tolist() == first.predict(X).tolist()


AS_ONE = [
    *("ada", "ada in goals", "ada by groups", "ada on average", "ada until it stalls", "lp to a target"),
    *("lp by groups", "a mean inside", "a rate inside", "groups inside"),
]


@pytest.mark.parametrize("name", AS_ONE)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_they_are_those_of_one_machine(name, weights):
    model = CASES[name]
    more = {} if weights is None else {"sample_weight": weights}
    fitted, _ = _fitted("threads", 3, model, **more)
    twin = model.__class__(**model.get_params(deep=False)).fit(X, Y, sensitive_features={"sex": SEX}, **more)
    for one, two in zip(fitted.estimators_, twin.estimators_, strict=True):
        np.testing.assert_array_equal(one.tree_.feature, two.tree_.feature)
        np.testing.assert_allclose(one.tree_.threshold, two.tree_.threshold)
    np.testing.assert_allclose(fitted.value_, twin.value_, atol=2e-4)  # both within the solver's gap
    np.testing.assert_allclose(fitted.weighted_losses_, twin.weighted_losses_, atol=1e-9)
    assert fitted.predict_proba(X).shape == (N_ROWS, 2)


@pytest.mark.parametrize("name", ["a tail inside", "a mean inside"])
def test_rounds_inside_goals_prove_as_much_as_on_one_machine_and_tell_callbacks_how_they_stand(name):
    told = []
    params = CASES[name].get_params(deep=False) | {"n_estimators": 12, "budget": None, "callbacks": [told.append]}
    fitted, _ = _fitted("threads", 3, LPBoostClassifier(**params))
    twin = LPBoostClassifier(**params | {"callbacks": ()}).fit(X, Y, sensitive_features={"sex": SEX})
    assert all(check.holds for check in fitted.check_goals(X, Y, sensitive_features={"sex": SEX}))
    assert fitted.bound_if_learner_exact_ <= fitted.value_ + 1e-9
    np.testing.assert_allclose(fitted.value_, twin.value_, atol=5e-3)  # a tail has many duals, which lead elsewhere
    assert told[-1].standing.value == pytest.approx(fitted.value_, abs=1e-3)
    assert told[-1].standing.bound == pytest.approx(fitted.bound_if_learner_exact_, abs=1e-12)


def test_models_are_trained_that_goals_lack_and_the_learner_alone_does_not_make():
    params = CASES["a mean inside"].get_params(deep=False) | {"goals": ["recall >= 0.95"], "n_estimators": 8}
    alone = AdaLPBoostClassifier(
        TREE, alpha=1.0, goals=params["goals"], n_estimators=1, stopping=Stopping(n_folds=None), random_state=0
    )
    with pytest.raises(InfeasibleGoals):
        _fitted("threads", 2, alone)
    assert _fitted("threads", 2, LPBoostClassifier(**params))[0].check_goals()[0].holds


@pytest.mark.slow
@pytest.mark.parametrize("learner", [TREE, LogisticRegression()], ids=["tree", "sampled"])
def test_rounds_inside_goals_on_three_classes_are_the_same_over_shards(learner):
    labels = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.4, 0.4])
    model = LPBoostClassifier(learner, alpha=0.6, n_estimators=6, goals=["recall(of=1) >= 0.6"], random_state=0)

    def fitted(n_shards):
        with opened("threads", cut(n_shards, X=X, y=labels)) as shards:
            return fit_over(LPBoostClassifier(**model.get_params(deep=False)), shards)

    first = fitted(1)
    assert first.check_goals(X, labels)[0].holds
    for n_shards in COUNTS[1:]:
        assert fitted(n_shards).mixture_.tolist() == first.mixture_.tolist()


def test_goals_out_of_reach_of_the_learner_are_told_as_not_found():
    params = CASES["a tail inside"].get_params(deep=False) | {"n_estimators": 2}
    goals = ["recall >= 0.99", "false_positive_rate <= 0.01"]
    with pytest.raises(InfeasibleGoals, match="No classifier of this kind was found that meets") as caught:
        _fitted("threads", 2, LPBoostClassifier(**params | {"goals": goals}))
    assert "All 2 rounds were used, and models still helped: raise n_estimators." in caught.value.__notes__


def test_any_learner_is_fitted_to_rows_drawn_by_weight_the_same_over_shards():
    model = AdaLPBoostClassifier(LogisticRegression(), n_estimators=4, alpha=0.4, random_state=0)
    first, weights = _fitted("threads", 1, model, sample_weight=WEIGHTS)
    for n_shards in COUNTS[1:]:
        other, own = _fitted("threads", n_shards, model, sample_weight=WEIGHTS)
        assert own.tolist() == weights.tolist()
        assert other.mixture_.tolist() == first.mixture_.tolist()
        for one, two in zip(first.estimators_, other.estimators_, strict=True):
            assert one.coef_.tolist() == two.coef_.tolist()
    assert first.estimators_[0].score(X, Y) > 0.7


class Interrupted(Exception):  # noqa: N818 - named for what happened
    pass


def _interrupt(done):
    if done.number == 3:
        raise Interrupted


@pytest.mark.parametrize("model", [CASES["ada"], CASES["lp"], CASES["a tail inside"]], ids=["ada", "lp", "inside"])
def test_a_fit_goes_on_from_its_checkpoint_over_other_shards(model, tmp_path):
    whole, _ = _fitted("threads", 2, model)
    params = model.get_params(deep=False) | {"checkpoint": str(tmp_path / "rounds")}
    with pytest.raises(Interrupted):
        _fitted("threads", 2, model.__class__(**params | {"callbacks": [_interrupt]}))
    assert Checkpoint(tmp_path / "rounds").rounds_done() == 3
    numbers = []
    after, _ = _fitted(
        "threads", 4, model.__class__(**params | {"callbacks": [lambda done: numbers.append(done.number)]})
    )
    assert numbers == [4, 5]
    assert after.mixture_.tolist() == whole.mixture_.tolist()
    assert after.value_ == pytest.approx(whole.value_, rel=1e-12)
    with pytest.raises(UnusableCheckpoint, match=r"max_depth|estimator"):
        _fitted("threads", 2, model.__class__(**params | {"estimator": Stump()}))


def test_a_checkpoint_is_not_continued_with_other_rows_labels_groups_or_weights(tmp_path):
    """Each has the same number of rows and the same values as before."""
    params = CASES["lp by groups"].get_params(deep=False) | {"checkpoint": str(tmp_path / "rounds")}
    model = LPBoostClassifier(**params)
    data = {"X": X, "y": Y, "sex": SEX, "sample_weight": WEIGHTS}
    with pytest.raises(Interrupted):
        _fitted_to(data, LPBoostClassifier(**params | {"callbacks": [_interrupt]}))
    turned = np.where(np.arange(N_ROWS) < 20, np.where(Y == "yes", "no", "yes"), Y)
    others = {"X": X[::-1], "y": turned, "sex": np.roll(SEX, 1), "sample_weight": np.roll(WEIGHTS, 1)}
    for name, values in others.items():
        with pytest.raises(UnusableCheckpoint, match=r"other data|another"):
            _fitted_to(data | {name: values}, model)
    assert len(_fitted_to(data, model).estimators_) == model.n_estimators


def _fitted_to(data, model):
    with opened("threads", cut(2, **data)) as shards:
        shards.change("columns", _name_columns)
        return fit_over(model, shards)


def test_goals_hold_on_all_rows_and_are_told_from_cells_as_from_rows():
    fitted, _ = _fitted("threads", 4, CASES["ada in goals"])
    told = fitted.check_goals()[0]
    assert told.holds
    own = fitted.check_goals(X, Y, sensitive_features={"sex": SEX})[0]
    np.testing.assert_allclose(told.value, own.value, atol=1e-12)


def test_goals_that_cannot_hold_say_so():
    model = AdaLPBoostClassifier(
        Stump(),
        n_estimators=2,
        goals=["recall >= 1.0", "positive_rate <= 0.1"],
        stopping=Stopping(n_folds=None),
    )
    with pytest.raises(InfeasibleGoals, match="This goal cannot hold: positive_rate"):
        _fitted("threads", 2, model)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            AdaLPBoostClassifier(outlier_fraction=0.1),
            "outlier_fraction=0.1 is not supported over shards: leave it at 0.0",
        ),
        (LPBoostClassifier(beta=10.0), "beta=10.0 is not supported over shards"),
        (AdaLPBoostClassifier(objective="KL(0.3)"), "objective must be a CVaR, WorstGroup or a rate"),
        (AdaLPBoostClassifier(reweigh="groups"), "needs sensitive_features"),
    ],
)
def test_what_needs_all_rows_in_one_place_is_refused(model, message):
    with pytest.raises(ValueError, match=message), opened("threads", cut(2, X=X, y=Y)) as shards:
        fit_over(model, shards)


CONFIDENT = [
    "recall >= 0.7 with confidence 0.9",
    "positive_rate(sex=F) >= 0.6 * positive_rate(sex=M) with confidence 0.9",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (MixtureClassifier, {"alpha": 0.5}),
        (GoalClassifier, {"cv": "prefit", "decision": "sticky", "by": "sex"}),
        (GoalClassifier, {"cv": "prefit", "decision": "sticky", "alpha": 0.5}),
    ],
    ids=["said", "by group", "scores"],
)
def test_confidences_of_goals_ask_for_the_same_margins_as_rows_on_one_machine(kind, settings):
    pool = [HistogramTree(2).fit(X[first::3], Y[first::3]) for first in range(3)]
    model = kind(pool, goals=CONFIDENT, random_state=0, **settings)
    twin = kind(**model.get_params(deep=False)).fit(X, Y, sensitive_features={"sex": SEX})
    found = [_mixed(model, n_shards) for n_shards in COUNTS]
    assert all(one.mixture_.tolist() == found[0].mixture_.tolist() for one in found[1:])
    np.testing.assert_allclose(found[0].value_, twin.value_, atol=2e-4)
    for own, its in zip(found[0].check_goals(), twin.check_goals(), strict=True):
        assert own.holds
        assert own.value == pytest.approx(its.value, abs=2e-3)
    plain = kind(**model.get_params(deep=False) | {"goals": [goal[:-20] for goal in CONFIDENT]})
    assert _mixed(plain, 2).value_ <= found[0].value_ + 1e-4


def _mixed(model, n_shards):
    with opened("threads", cut(n_shards, X=X, y=Y, sex=SEX)) as shards:
        shards.change("columns", _name_columns)
        return mix_over(type(model)(**model.get_params(deep=False)), shards)


def test_models_may_know_classes_that_no_row_has_and_be_functions():
    labels = np.where(np.arange(N_ROWS) < 5, "also", Y)
    trees = [HistogramTree(depth).fit(X, labels) for depth in (1, 2)]
    model = MixtureClassifier([*trees, lambda rows: np.where(rows[:, 0] > 0, "yes", "no")], alpha=0.5, random_state=0)
    found, twin = _mixed(model, 3), MixtureClassifier(**model.get_params(deep=False)).fit(X, Y)
    assert found.classes_.tolist() == ["also", "no", "yes"]
    np.testing.assert_allclose(found.value_, twin.value_, atol=2e-4)
    np.testing.assert_allclose(found.predict_proba(X), twin.predict_proba(X), atol=0.05)


def test_rounds_train_for_goals_with_a_confidence_where_rows_weigh_the_same():
    params = CASES["a mean inside"].get_params(deep=False) | {"goals": CONFIDENT}
    fitted, _ = _fitted("threads", 3, LPBoostClassifier(**params))
    twin = LPBoostClassifier(**params).fit(X, Y, sensitive_features={"sex": SEX})
    assert fitted.check_goals() == twin.check_goals()
    equal, _ = _fitted("threads", 3, LPBoostClassifier(**params), sample_weight=np.ones(N_ROWS))
    assert equal.check_goals() == twin.check_goals()
    with pytest.raises(ValueError, match="confidence only if all rows weigh the same; got sample_weight beside recall"):
        _fitted("threads", 3, LPBoostClassifier(**params), sample_weight=WEIGHTS)


def test_weights_that_sum_to_the_number_of_rows_are_weights():
    weights = np.where(np.arange(N_ROWS) % 2 == 0, 1.9, 0.1)
    weights[-1] = N_ROWS - weights[:-1].sum()
    first, own = _fitted("threads", 1, CASES["ada"], sample_weight=weights)
    other, its = _fitted("threads", 4, CASES["ada"], sample_weight=weights)
    assert own.tolist() == its.tolist()
    assert first.mixture_.tolist() == other.mixture_.tolist()


def test_a_model_fitted_over_shards_is_saved_and_rebalanced_where_that_needs_no_rows(tmp_path):
    fitted, _ = _fitted("threads", 3, CASES["ada in goals"])
    counterpoise.save(fitted, tmp_path / "model")
    loaded = counterpoise.load(tmp_path / "model")
    assert loaded.predict(X).tolist() == fitted.predict(X).tolist()
    assert loaded.check_goals() == fitted.check_goals()
    whole = fitted.rebalance(X, Y, alpha=1.0, sensitive_features={"sex": SEX})
    np.testing.assert_allclose(fitted.rebalance(alpha=1.0).value_, whole.value_, atol=1e-6)
    with pytest.raises(ValueError, match=r"are not enough for CVaR\(alpha=0.2\). Pass X and y"):
        fitted.rebalance(alpha=0.2)
