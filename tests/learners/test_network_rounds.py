"""NetworkLearner in boosting: one warm-up for all rounds, seeds, images."""

import numpy as np
import pytest
from sklearn.base import clone
from tiny_networks import blobs, digit_images, same_state, tiny

from counterpoise import AdaBoostClassifier, AdaLPBoostClassifier, Stopping
from counterpoise.boosting.inputs import round_seed
from counterpoise.learners import HistogramTree

torch = pytest.importorskip("torch", reason="networks need torch")


def test_all_rounds_start_from_one_warm_up():
    X, codes, classes = blobs()
    prepared = tiny(random_state=7).prepare(X)
    assert prepared.shared is None
    tiny(random_state=1).fit_codes(prepared, codes, classes, np.ones(120))
    warm = prepared.shared
    tiny(random_state=2).fit_codes(prepared, codes, classes, np.arange(120.0))
    assert prepared.shared is warm
    resumed = tiny(random_state=99).prepare(X)  # the seed of a warm-up that is given does not matter
    resumed.shared = {name: value.copy() for name, value in warm.items()}
    first, second = tiny(random_state=3), tiny(random_state=3)
    np.testing.assert_array_equal(
        first.fit_codes(prepared, codes, classes, np.ones(120)), second.fit_codes(resumed, codes, classes, np.ones(120))
    )
    assert same_state(first.state_, second.state_)


class Noisy(torch.nn.Module):
    """A network that draws random numbers whenever it is asked, the trial before training included."""

    def __init__(self, n_features, n_classes):
        super().__init__()
        self.layer = torch.nn.Linear(n_features, n_classes)

    def forward(self, x):
        return self.layer(x + torch.randn_like(x))


def test_a_round_draws_the_same_whether_it_is_the_first_of_its_process():
    X, codes, classes = blobs()
    learner = tiny(n_iterations=5, decay_at=()).set_params(module=Noisy)
    first, later, resumed = (clone(learner).set_params(random_state=seed) for seed in (1, 2, 2))
    prepared, elsewhere = learner.prepare(X), learner.prepare(X)
    first.fit_codes(prepared, codes, classes, np.ones(120))
    later.fit_codes(prepared, codes, classes, np.ones(120))
    elsewhere.shared = prepared.shared
    resumed.fit_codes(elsewhere, codes, classes, np.ones(120))
    assert same_state(later.state_, resumed.state_)


def test_boosting_uses_the_fast_protocol_and_its_seeds():
    X, y, classes = blobs()
    model, again = (AdaLPBoostClassifier(tiny(), n_estimators=3, random_state=5).fit(X, y) for _ in range(2))
    assert all(
        same_state(*pair) for pair in zip(*([m.state_ for m in b.estimators_] for b in (model, again)), strict=True)
    )
    prepared = tiny(random_state=round_seed(5, 0)).prepare(X)
    learner = tiny(random_state=round_seed(5, 1))
    predicted = learner.fit_codes(prepared, y, classes, np.full(120, 1 / 120))
    assert same_state(learner.state_, model.estimators_[0].state_)
    np.testing.assert_array_equal(predicted, model.estimators_[0].predict(X))


def test_more_rounds_do_not_change_the_first():
    X, y, _ = blobs()
    few, many = (AdaLPBoostClassifier(tiny(), n_estimators=n, eta=1.0, random_state=5).fit(X, y) for n in (1, 2))
    assert same_state(few.estimators_[0].state_, many.estimators_[0].state_)


def test_boosting_by_votes_takes_networks():
    X, y, _ = blobs()
    assert AdaBoostClassifier(tiny(), n_estimators=2, random_state=0).fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize("n_axes", [3, 4])
def test_images_reach_the_networks_of_a_booster(n_axes):
    X, y = digit_images(300)
    X = X if n_axes == 4 else X[:, 0]
    learner = tiny(n_iterations=80, warmup_epochs=1)
    model = AdaLPBoostClassifier(
        learner, n_estimators=2, stopping=Stopping(validation_fraction=0.2), random_state=0
    ).fit(X, y)
    assert model.estimators_[0].input_shape_ == X.shape[1:]
    assert (model.predict(X) == y).mean() > 0.8
    with pytest.raises(ValueError, match=r"rows of shape|columns, as at fit"):
        model.predict(X[..., :5])


def test_other_boosters_still_refuse_images():
    X, y = digit_images(60)
    with pytest.raises(ValueError, match="dim 4"):
        AdaLPBoostClassifier(HistogramTree(), n_estimators=1).fit(X, y)
