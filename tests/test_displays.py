"""Displays: what is drawn is what was computed elsewhere, names are drawn as they are, and wrong input is refused."""

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp
from counterpoise.displays import CVaRCurveDisplay, RateDisplay, ResampleDisplay, TradeoffDisplay

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

ALPHAS = [0.05, 0.1, 0.25, 0.5, 1.0]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(600, 6, flip_y=0.2, random_state=0)
    return X, np.array(["no", "yes"])[y]


@pytest.fixture(scope="module")
def mixture(data):
    X, y = data
    return cp.AdaLPBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=8, alpha=0.2).fit(X, y)


def worst_mean(losses, alpha):
    """Average the worst losses one by one, the last with the fraction that is left."""
    left, total = alpha * len(losses), 0.0
    for loss in sorted(losses, reverse=True):
        total += min(1.0, left) * loss
        left -= min(1.0, left)
    return total / (alpha * len(losses))


def test_the_curve_of_a_deterministic_model_is_error_over_alpha(data):
    X, y = data
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    error = 1 - tree.score(X, y)
    display = CVaRCurveDisplay.from_estimator(tree, X, y, alphas=ALPHAS)
    np.testing.assert_allclose(display.line_.get_xdata(), ALPHAS)
    np.testing.assert_allclose(display.line_.get_ydata(), [min(1, error / alpha) for alpha in ALPHAS])
    same = CVaRCurveDisplay.from_predictions(y, tree.predict(X), alphas=ALPHAS, name="tree", ax=display.ax_)
    np.testing.assert_allclose(same.cvar, display.cvar)
    assert same.ax_ is display.ax_
    assert same.figure_ is display.ax_.figure
    assert [text.get_text() for text in same.ax_.get_legend().get_texts()] == ["DecisionTreeClassifier", "tree"]


def test_the_loss_of_a_mixture_is_its_probability_of_an_error(data, mixture):
    X, y = data
    wrong = np.column_stack([model.predict(X) != y for model in mixture.estimators_]) @ mixture.mixture_
    display = CVaRCurveDisplay.from_estimator(mixture, X, y, alphas=ALPHAS)
    np.testing.assert_allclose(display.cvar, [worst_mean(wrong, alpha) for alpha in ALPHAS])
    vote = cp.AdaLPBoostClassifier(**mixture.get_params(deep=False) | {"decision": "vote"}).fit(X, y)
    error = np.mean(vote.predict(X) != y)
    voted = CVaRCurveDisplay.from_estimator(vote, X, y, alphas=ALPHAS)
    np.testing.assert_allclose(voted.cvar, [min(1, error / alpha) for alpha in ALPHAS])


def test_a_mixture_is_found_inside_pipelines_and_searches(data, mixture):
    X, y = data
    inside = make_pipeline(StandardScaler(), mixture)
    search = GridSearchCV(inside, {"adalpboostclassifier__alpha": [0.2]}, cv=2).fit(X, y)
    display = CVaRCurveDisplay.from_estimator(search, X, y, alphas=[1.0])
    said = search.predict_proba(X)[np.arange(len(y)), np.searchsorted(search.classes_, y)]
    assert display.cvar[0] == pytest.approx(np.mean(1 - said))


def test_losses_take_weights_and_a_mixture():
    losses, weights = np.array([[0, 1], [1, 0], [1, 1]]), [1.0, 2.0, 0.0]
    display = CVaRCurveDisplay.from_losses(losses, alphas=[1.0], mixture=[0.25, 0.75], sample_weight=weights)
    assert display.cvar[0] == pytest.approx((0.75 + 2 * 0.25) / 3)
    assert len(CVaRCurveDisplay.from_losses([0.0, 1.0]).alphas) == 61
    assert display.ax_.get_legend() is None  # nothing has a name


@pytest.mark.parametrize("rate", ["positive_rate", "error_rate", "recall", "false_positive_rate", "precision"])
def test_rates_and_their_exact_intervals_by_group(rate):
    rng = np.random.default_rng(0)
    y, said, group = rng.integers(0, 2, (3, 200))
    everywhere = np.ones(200, bool)
    hits, trials = {
        "positive_rate": (said, everywhere),
        "error_rate": (y != said, everywhere),
        "recall": (said, y == 1),
        "false_positive_rate": (said, y == 0),
        "precision": (y, said == 1),
    }[rate]
    display = RateDisplay.from_predictions(y, said, sensitive_features=group, rate=rate, confidence=0.9)
    for place, part in enumerate([everywhere, group == 0, group == 1]):
        found = stats.binomtest(int(hits[trials & part].sum()), int((trials & part).sum()))
        interval = found.proportion_ci(0.9, method="exact")
        assert display.rates[place] == pytest.approx(found.statistic)
        assert (display.low[place], display.high[place]) == pytest.approx((interval.low, interval.high))
    drawn = display.line_.get_xydata()
    np.testing.assert_allclose(drawn, np.column_stack([display.rates, [0, 1, 2]]))
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["all", "group=0", "group=1"]
    assert display.ax_.get_xlabel() == rate.replace("_", " ")


def test_churn_needs_a_baseline_and_an_estimator_is_asked(data, mixture):
    X, y = data
    display = RateDisplay.from_estimator(
        mixture, X, sensitive_features=X[:, 0] > 0, rate="churn", baseline=np.where(y == "no", "yes", "no")
    )
    assert display.rates[0] == pytest.approx(np.mean(mixture.predict(X) == y))
    with pytest.raises(ValueError, match="rate='churn' needs baseline; got none"):
        RateDisplay.from_estimator(mixture, X, sensitive_features=X[:, 0] > 0, rate="churn")


def test_the_frontier_is_drawn_as_it_was_found(mixture):
    found = cp.tradeoff(mixture, "recall >= 0.7", n_points=4)
    display = TradeoffDisplay.from_estimator(mixture, "recall >= 0.7", n_points=4, name="ours")
    np.testing.assert_allclose(display.line_.get_xydata(), np.column_stack([found.bounds, found.values]))
    again = TradeoffDisplay.from_tradeoff(found, ax=display.ax_, color="k")
    assert again.line_.get_color() == "k"
    assert "recall >= b" in again.ax_.get_xlabel()
    assert [text.get_text() for text in again.ax_.get_legend().get_texts()] == ["ours"]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: CVaRCurveDisplay.from_predictions([0, 1], [0]), r"one length; got shapes \(2,\) and \(1,\)"),
        (lambda: CVaRCurveDisplay.from_losses([0, 1], alphas=[0.0]), r"alpha must lie in \(0, 1\]"),
        (lambda: RateDisplay.from_predictions([0], [0], sensitive_features=["a"], rate="f2"), "one of 'positive_rate'"),
        (
            lambda: RateDisplay.from_predictions(
                None, [0, 1], sensitive_features=[0, 1], rate="recall", classes=[0, 1]
            ),
            "needs y_true",
        ),
        (
            lambda: RateDisplay.from_predictions([0, 1], [0, 1], sensitive_features=[0, 1], confidence=95),
            "confidence must lie",
        ),
    ],
)
def test_wrong_arguments_are_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_a_classifier_that_draws_has_a_second_curve_of_what_is_realised():
    X, y = make_classification(300, 5, flip_y=0.3, random_state=0)
    model = cp.AdaLPBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=5, alpha=0.3, random_state=0)
    model.fit(X, y)
    display = CVaRCurveDisplay.from_estimator(model, X, y, alphas=[0.1, 0.5, 1.0], name="ours")
    error = (1 - model.predict_proba(X)[np.arange(300), y]).mean()
    assert display.realised == pytest.approx(np.minimum(1, error / np.array([0.1, 0.5, 1.0])))
    assert [line.get_label() for line in display.ax_.lines] == ["ours", "ours, once drawn"]
    voted = cp.AdaLPBoostClassifier(**model.get_params(deep=False) | {"decision": "vote"}).fit(X, y)
    assert CVaRCurveDisplay.from_estimator(voted, X, y).realised is None


def scored(n_rows=600):
    rng = np.random.default_rng(3)
    y = (rng.random(n_rows) < 0.4).astype(int)
    return (rng.normal(size=n_rows) + 1.5 * y)[:, None], y


def first_column(rows):
    return rows[:, 0]


def test_resamples_repeat_the_choice_on_the_rows_that_were_drawn():
    X, y = scored()
    options = {"cv": "prefit", "objective": "false_positive_rate", "goals": "recall >= 0.8", "confidence": None}
    model = cp.GoalClassifier(first_column, **options).fit(X, y)
    display = ResampleDisplay.from_estimator(model, n_resamples=5, random_state=7)
    rng = np.random.default_rng(7)
    for place in range(5):
        rows = rng.integers(0, len(y), len(y))
        again = cp.GoalClassifier(first_column, **options).fit(X[rows], y[rows])
        threshold = again.rules_[0].thresholds["all"]
        assert display.thresholds["all"][place] == threshold
        assert display.values["recall >= 0.8"][place] == pytest.approx((X[y == 1, 0] > threshold).mean())
    assert display.bounds == {"recall >= 0.8": 0.8}
    assert display.n_infeasible == 0


def test_resamples_show_thresholds_by_group_and_values_beside_bounds():
    X, y = scored()
    sex = {"sex": np.where(np.arange(len(y)) % 2, "F", "M")}
    model = cp.GoalClassifier(first_column, cv="prefit", goals=["recall >= 0.8", "positive_rate <= 0.6"], by="sex")
    model.fit(X, y, sensitive_features=sex)
    display = ResampleDisplay.from_estimator(model, n_resamples=4, random_state=0)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["sex=F", "sex=M"]
    display.plot(quantity="values")
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["recall >= 0.8", "positive_rate <= 0.6"]
    with pytest.raises(ValueError, match="quantity must be"):
        display.plot(quantity="errors")


def test_resamples_on_which_goals_cannot_be_met_are_counted():
    X, y = scored(200)
    tight = cp.GoalClassifier(first_column, cv="prefit", confidence=None, goals="recall >= 0.8").fit(X, y)
    least = tight.rebalance(objective="false_positive_rate").value_
    goals = ["recall >= 0.8", f"false_positive_rate <= {least}"]
    display = ResampleDisplay.from_estimator(tight.rebalance(goals=goals), n_resamples=20, random_state=0)
    assert 0 < display.n_infeasible < 20
    assert display.thresholds["all"].size == 20 - display.n_infeasible


def test_resamples_draw_persons_with_all_their_rows():
    X, y = scored(300)
    twice = np.repeat(np.arange(300), 2)
    options = {"cv": "prefit", "objective": "false_positive_rate", "goals": "recall >= 0.8", "confidence": None}
    once = cp.GoalClassifier(first_column, **options).fit(X, y)
    doubled = cp.GoalClassifier(first_column, **options).fit(X[twice], y[twice], ids=twice)
    displays = [ResampleDisplay.from_estimator(model, n_resamples=5, random_state=1) for model in (once, doubled)]
    assert displays[0].thresholds["all"].tolist() == displays[1].thresholds["all"].tolist()


def test_resamples_of_draws_are_refused(mixture):
    with pytest.raises(TypeError, match="pass a fitted GoalClassifier of two classes"):
        ResampleDisplay.from_estimator(mixture)
