"""NetworkLearner: draws by weight, one warm-up for all rounds, the same bits from the same seed, clear errors."""

import pickle
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from counterpoise import AdaBoostClassifier, AdaLPBoostClassifier
from counterpoise.learners import NetworkLearner, networks

torch = pytest.importorskip("torch", reason="networks need torch")

from counterpoise.learners import _network_data as data  # noqa: E402 - only where torch is
from counterpoise.learners import _network_training as training  # noqa: E402
from counterpoise.learners._network_settings import check_settings  # noqa: E402

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
RANDOM = "rows are drawn at random, so that a weight of 2 and a row given twice are the same on average only"
EXPECTED_FAILURES = {"check_sample_weight_equivalence_on_dense_data": RANDOM}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small convolutions wait longer for threads than they compute."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def tiny(**settings):
    """Return a learner that fits in milliseconds."""
    small = {"n_iterations": 40, "batch_size": 32, "learning_rate": 0.1, "decay_at": (30,), "device": "cpu"}
    return NetworkLearner(networks.Perceptron((8,)), **({"random_state": 0} | small | settings))


def blobs(n_samples=120, centers=3):
    X, codes = make_blobs(n_samples, centers=centers, n_features=4, random_state=0)
    return X, codes, np.arange(centers)


def digit_images(n_samples):
    """Return bytes of shape (n_samples, 1, 8, 8) and labels."""
    digits = load_digits()
    return (digits.images[:n_samples, None] * 15).astype(np.uint8), digits.target[:n_samples]


def same_state(first, second):
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


@parametrize_with_checks([tiny()], expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# Draws


weight_vectors = st.lists(st.sampled_from([0.0, 0.5, 1.0, 7.0]), min_size=2, max_size=40).filter(
    lambda weights: sum(map(bool, weights)) > 1
)


@given(weight_vectors, st.integers(0, 2**31))
def test_rows_are_drawn_in_proportion_to_their_weights_and_those_without_never(weights, seed):
    weights = np.array(weights)
    n_draws = 4000
    drawn = data.Sampler.of(weights, "cpu").draw((n_draws // 8, 8), data.make_generator(seed, 0, "cpu"))
    counts = np.bincount(drawn.numpy().ravel(), minlength=weights.size)
    held = weights > 0
    assert counts[~held].sum() == 0
    assert chisquare(counts[held], n_draws * weights[held] / weights.sum()).pvalue > 1e-6


def test_the_upper_end_of_the_unit_interval_stops_at_the_last_row_of_weight(monkeypatch):
    monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.ones(shape, dtype=torch.float64))
    assert data.Sampler.of(np.array([1.0, 2.0, 0.0]), "cpu").draw((3,), None).tolist() == [1, 1, 1]


@given(st.integers(1, 50), st.integers(1, 4), st.integers(1, 20), st.integers(0, 99))
def test_each_epoch_holds_each_row_once_in_batches_of_one_size(n_rows, n_epochs, batch_size, seed):
    tables = list(data.epochs(n_rows, n_epochs, batch_size, data.make_generator(seed, 0, "cpu")))
    assert all(table.shape[1] == batch_size for table in tables)
    stream = torch.cat([table.ravel() for table in tables])
    assert stream.numel() == -(-n_rows * n_epochs // batch_size) * batch_size
    for epoch in stream[: n_rows * n_epochs].view(n_epochs, n_rows):
        assert sorted(epoch.tolist()) == list(range(n_rows))


@given(st.integers(0, 2**31), st.integers(1, 7), st.integers(1, 7), st.sampled_from([np.uint8, np.float32]))
def test_crops_and_flips_are_those_of_a_plain_loop(seed, height, width, dtype):
    rng = np.random.default_rng(seed)
    images = rng.integers(1, 255, (5, height, width, 2)).astype(dtype)
    flips, downs, rights = rng.integers(2, size=5), rng.integers(9, size=5), rng.integers(9, size=5)
    moves = torch.from_numpy((flips * 9 + downs) * 9 + rights)
    places = data.move_places(height, width, "cpu")
    found = data.crop_and_flip(torch.from_numpy(images), moves, places).numpy()
    for image, flip, down, right, moved in zip(images, flips, downs, rights, found, strict=True):
        part = np.pad(image, ((4, 4), (4, 4), (0, 0)))[down : down + height, right : right + width]
        np.testing.assert_array_equal(moved, part[:, ::-1] if flip else part)


# Inputs


@pytest.mark.parametrize("shape", [(50, 3), (20, 3, 4, 5), (20, 3, 7)])
def test_bytes_and_floats_reach_the_network_alike_standardized(shape):
    X = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    X[:, 1] = 7
    standard = data.standard_of(X)
    first, second = (
        next(data.Inputs(rows, standard, "cpu", torch.float32).batches(99)).numpy() for rows in (X, X.astype(float))
    )
    np.testing.assert_allclose(first, second, atol=1e-5)
    assert first.shape == shape
    axes = (0, *range(2, X.ndim))
    np.testing.assert_allclose(first.mean(axis=axes), 0, atol=1e-5)
    np.testing.assert_allclose(first.std(axis=axes), [1, 0, 1], atol=1e-5)


def test_features_far_from_zero_and_of_any_scale_are_learned():
    X, y, _ = blobs()
    model = tiny().fit(X * [1e-6, 1, 1e6, 1] + [0, 1e9, 0, 0], y)
    assert model.score(X * [1e-6, 1, 1e6, 1] + [0, 1e9, 0, 0], y) > 0.95


# Training


@pytest.mark.parametrize("momentum", [0.9, 0.0])
def test_steps_are_those_of_plain_sgd(momentum):
    """The oracle is a loop over the same batches with torch's unfused optimizer and its own schedule."""
    X, codes, _ = blobs()
    learner = tiny(momentum=momentum, weight_decay=0.01, decay_at=(3, 6), n_iterations=9)
    settings = check_settings(learner)
    module = training.build(learner.module, (4,), 3)
    reference = training.build(learner.module, (4,), 3)
    inputs = data.Inputs(X, data.standard_of(X), "cpu", torch.float32)
    trainer = training.Trainer(inputs, module, 3, settings, training.find_place(settings))
    weights = np.arange(120.0)
    first = trainer.state()
    for seed in (6, 5):  # a round leaves nothing behind
        trainer.start(first, codes)
        trainer.train(weights, data.make_generator(seed, 1, "cpu"))
    rows = data.Sampler.of(weights, "cpu").draw((9, 32), data.make_generator(5, 1, "cpu"))
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.1, momentum=momentum, weight_decay=0.01, foreach=False)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 6], gamma=0.1)
    for batch in rows:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(reference(inputs.values[batch]), torch.from_numpy(codes)[batch]).backward()
        optimizer.step()
        schedule.step()
    for name, value in reference.state_dict().items():
        np.testing.assert_allclose(trainer.state()[name], value.numpy(), atol=1e-6)


def test_a_long_round_is_drawn_in_parts(monkeypatch):
    X, codes, classes = blobs()
    whole = tiny().fit(X, codes)
    monkeypatch.setattr(training, "_TABLE_DRAWS", 7 * 32)
    learner = tiny()
    in_parts = learner.fit_codes(learner.prepare(X), codes, classes, np.ones(120))
    assert (in_parts == codes).mean() > 0.95
    assert same_state(whole.state_, learner.state_)


def test_the_seed_alone_decides_and_torch_keeps_its_own():
    X, y, _ = blobs()
    before = torch.get_rng_state()
    first = tiny().fit(X, y)
    torch.testing.assert_close(torch.get_rng_state(), before)
    torch.manual_seed(123)
    again, other = tiny().fit(X, y), tiny(random_state=1).fit(X, y)
    torch.set_rng_state(before)
    assert same_state(first.state_, again.state_)
    assert not same_state(first.state_, other.state_)


def with_dropout(n_features, n_classes):
    return torch.nn.Sequential(torch.nn.Linear(n_features, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, n_classes))


def test_fits_in_threads_do_not_disturb_each_other():
    X, y, _ = blobs()
    alone = tiny().set_params(module=with_dropout).fit(X, y)
    models = [tiny().set_params(module=with_dropout) for _ in range(3)]
    threads = [threading.Thread(target=model.fit, args=(X, y)) for model in models]
    n_threads = torch.get_num_threads()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same_state(alone.state_, model.state_) for model in models)
    assert torch.get_num_threads() == n_threads


def test_only_rows_of_weight_are_learned():
    X, y, _ = blobs()
    model = tiny(warmup_epochs=0, n_iterations=80).fit(X, y, (y != 1).astype(float))
    assert model.classes_.tolist() == [0, 1, 2]
    assert set(model.predict(X)) == {0, 2}
    without = tiny(warmup_epochs=0, n_iterations=80).fit_codes(
        tiny().prepare(X), y, np.arange(3), np.where(y == 1, 0.0, 2.0)
    )
    assert set(without) == {0, 2}


def test_bfloat16_learns_as_float32_does_and_keeps_its_parameters_in_float32():
    X, y, _ = blobs(400)
    full, half = (tiny(precision=name, n_iterations=100).fit(X, y) for name in ("float32", "bfloat16"))
    assert abs(full.score(X, y) - half.score(X, y)) < 0.03
    assert not same_state(full.state_, half.state_)
    weights = half.state_["1.weight"]
    assert weights.dtype == np.float32
    rounded = torch.from_numpy(weights).bfloat16().float().numpy()
    assert not np.array_equal(weights, rounded)  # updates smaller than bfloat16 can hold are not lost


class Unused(torch.nn.Module):
    """A network of which a part gets no gradient."""

    def __init__(self, n_features, n_classes):
        super().__init__()
        self.used, self.idle = torch.nn.Linear(n_features, n_classes), torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.used(x)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_parameters_that_no_gradient_reaches_stay(precision):
    X, y, _ = blobs()
    model = tiny(precision=precision).set_params(module=Unused).fit(X, y)
    first = training.build(Unused, (4,), 3, seed=model._seed())
    np.testing.assert_allclose(model.state_["idle.weight"], first.idle.weight.detach().numpy(), atol=0.01)
    assert model.score(X, y) > 0.9


# Rounds


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


def test_boosting_uses_the_fast_protocol_and_its_seeds():
    X, y, classes = blobs()
    model, again = (AdaLPBoostClassifier(tiny(), n_estimators=3, random_state=5).fit(X, y) for _ in range(2))
    assert all(
        same_state(*pair) for pair in zip(*([m.state_ for m in b.estimators_] for b in (model, again)), strict=True)
    )
    prepared = tiny(random_state=model._round_seed(0)).prepare(X)
    learner = tiny(random_state=model._round_seed(1))
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
    model = AdaLPBoostClassifier(learner, n_estimators=2, validation_fraction=0.2, random_state=0).fit(X, y)
    assert model.estimators_[0].input_shape_ == X.shape[1:]
    assert (model.predict(X) == y).mean() > 0.8
    with pytest.raises(ValueError, match="rows of shape"):
        model.predict(X[..., :5])


def test_other_boosters_still_refuse_images():
    X, y = digit_images(60)
    with pytest.raises(ValueError, match="dim 4"):
        AdaLPBoostClassifier(n_estimators=1).fit(X, y)


# Networks


def n_parameters(factory, shape, n_classes):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in factory(shape, n_classes).parameters())


@pytest.mark.parametrize(
    ("factory", "n_classes", "expected"),
    [
        (networks.WideResNet(28, 1), 10, 369_498),
        (networks.WideResNet(28, 10), 100, 36_536_884),
        (networks.ResNet18(), 10, 11_173_962),
        (networks.Perceptron((64, 64)), 10, 3072 * 64 + 64 + 64 * 64 + 64 + 64 * 10 + 10),
    ],
)
def test_networks_have_the_published_sizes(factory, n_classes, expected):
    assert n_parameters(factory, (3, 32, 32), n_classes) == expected


@pytest.mark.parametrize("factory", [networks.WideResNet(10), networks.ResNet18(4)])
def test_convolutions_learn_images(factory):
    X, y = digit_images(150)
    X, y = X[y < 2], y[y < 2]
    learner = NetworkLearner(
        factory, n_iterations=25, batch_size=32, learning_rate=0.05, decay_at=(15,), device="cpu", random_state=0
    )
    prepared = learner.prepare(X)
    predicted = learner.fit_codes(prepared, y, np.arange(2), np.ones(len(y)))
    assert (predicted == y).mean() > 0.9
    np.testing.assert_array_equal(learner.predict_codes(X), predicted)
    assert not any("num_batches" in name for name in learner.state_)


def test_moved_images_are_learned_too():
    X, y = digit_images(150)
    X, y = X[y < 2], y[y < 2]
    first, second = (
        tiny(augment="crop-flip", n_iterations=20).set_params(module=networks.WideResNet(10)).fit(X, y)
        for _ in range(2)
    )
    assert same_state(first.state_, second.state_)
    assert not same_state(first.state_, clone(first).set_params(augment=None).fit(X, y).state_)


@pytest.mark.parametrize(
    ("machine", "n_threads", "expected"), [("aarch64", 2, 4), ("aarch64", 1, 1), ("aarch64", 3, 3), ("x86_64", 2, 2)]
)
def test_waiting_threads_sleep_on_arm_where_all_processors_are_used(machine, n_threads, expected, monkeypatch):
    monkeypatch.setattr(training.platform, "machine", lambda: machine)
    monkeypatch.setattr(training, "available_cpus", lambda: 2)
    place = training.find_place(check_settings(tiny()))
    torch.set_num_threads(n_threads)
    try:
        with training.on(place, small=False, trains=True):
            found = torch.get_num_threads()
        assert (found, torch.get_num_threads()) == (expected, n_threads)
        with training.on(place, small=False):
            assert torch.get_num_threads() == n_threads
    finally:
        torch.set_num_threads(1)


def test_convolutions_by_several_threads_are_the_same_bit_for_bit():
    X, y = digit_images(150)
    torch.set_num_threads(2)
    try:
        first, second = (
            tiny(n_iterations=6, warmup_epochs=0).set_params(module=networks.WideResNet(10)).fit(X, y) for _ in range(2)
        )
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert same_state(first.state_, second.state_)


# A fitted model as a value


def test_a_model_is_its_arrays():
    X, y, _ = blobs()
    model = tiny().fit(X, np.array(["ash", "birch", "cedar"])[y])
    shares = model.predict_proba(X)
    saved = pickle.dumps(model)
    assert b"torch" not in saved
    assert len(saved) < sum(value.nbytes for value in model.state_.values()) + 4000
    again = pickle.loads(saved)  # noqa: S301 - made above
    np.testing.assert_array_equal(again.predict_proba(X), shares)
    assert set(again.predict(X)) <= {"ash", "birch", "cedar"}
    for value in again.state_.values():
        value.flags.writeable = False  # as a memory map has it
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(again)).predict_proba(X), shares)  # noqa: S301


def test_a_model_fitted_again_forgets_the_old_network():
    X, y, _ = blobs()
    model = tiny().fit(X, y)
    assert model.score(X, y) > 0.95
    model.fit(X, (y + 1) % 3)
    assert model.score(X, (y + 1) % 3) > 0.95


def test_predictions_do_not_depend_on_the_batches_asked():
    X, y, _ = blobs()
    model = tiny().fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(model.set_params(predict_batch_size=7).predict_proba(X), shares, atol=1e-6)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_a_state_that_does_not_fit_is_refused():
    X, y, _ = blobs()
    model = tiny().fit(X, y)
    model.state_ = {name: value for name, value in model.state_.items() if name != "1.bias"}
    with pytest.raises(ValueError, match=r"does not hold all parameters.*1\.bias is missing"):
        model.predict(X)


# Errors

BAD_SETTINGS = {
    "iterations": ({"n_iterations": 0}, "n_iterations must be at least 1; got 0"),
    "epochs": ({"warmup_epochs": -1}, "warmup_epochs must be a whole number of at least 0; got -1"),
    "batch": ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
    "rate": ({"learning_rate": 0.0}, "learning_rate must be finite and above 0; got 0.0"),
    "momentum": ({"momentum": 1.0}, r"momentum must lie in \[0, 1\); got 1.0"),
    "weight decay": ({"weight_decay": -1}, "weight_decay must be a finite number of at least 0; got -1"),
    "falling places": ({"decay_at": (20, 10)}, r"decay_at must list iterations .* increasing.*got \(20, 10\)"),
    "equal places": ({"decay_at": (10, 10)}, "decay_at must list iterations"),
    "one place": ({"decay_at": 400}, "decay_at must list iterations.*got 400"),
    "decay": ({"decay": float("nan")}, "decay must be finite and above 0; got nan"),
    "augment": ({"augment": "mixup"}, "augment, where not None, must be one of 'crop-flip'; got 'mixup'"),
    "augment of a table": ({"augment": "crop-flip"}, r"is for images of shape .*got X of shape \(120, 4\)"),
    "device": ({"device": "tpu"}, "device must be 'auto', 'cpu', 'cuda' or 'cuda:0' and so on; got 'tpu'"),
    "far device": ({"device": "cuda:99"}, "device='cuda:99' does not exist: torch sees"),
    "precision": ({"precision": "float16"}, "precision must be one of 'auto', 'float32', 'bfloat16'; got 'float16'"),
    "capture": ({"capture": "yes"}, "capture must be 'auto', True or False; got 'yes'"),
    "capture on CPU": ({"capture": True}, "capture=True needs a CUDA device"),
    "no output": ({"module": lambda *_: torch.nn.Flatten(0)}, r"a column for each of 3 classes.*it returned \(8,\)"),
    "wide output": ({"module": lambda n, _: torch.nn.Linear(n, 9)}, r"shape \(batch, 3\).*it returned \(2, 9\)"),
    "wrong input": ({"module": lambda _, k: torch.nn.Linear(99, k)}, r"fails on a batch of shape \(2, 4\)"),
    "nothing to train": ({"module": lambda *_: Fixed()}, "has no parameters to train"),
    "convolutions on a table": ({"module": networks.WideResNet()}, "WideResNet is a network for images of shape"),
    "odd depth": ({"module": networks.WideResNet(27)}, "depth must be 6 n [+] 4 for a whole n.*got 27"),
}


class Fixed(torch.nn.Module):
    def forward(self, x):
        return x[:, :3]


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_settings_get_one_clear_sentence(case):
    settings, text = BAD_SETTINGS[case]
    X, y, _ = blobs()
    with pytest.raises(ValueError, match=text):
        tiny().set_params(**settings).fit(X, y)


@pytest.mark.parametrize(
    ("module", "text"),
    [("wrn", "module must be a factory, called with the shape"), (lambda *_: "net", "returned str")],
)
def test_what_makes_no_network_is_refused(module, text):
    X, y, _ = blobs()
    with pytest.raises(TypeError, match=text):
        tiny().set_params(module=module).fit(X, y)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none_is_refused():
    X, y, _ = blobs()
    with pytest.raises(ValueError, match="device='cuda' does not exist: torch sees 0 CUDA devices here"):
        tiny(device="cuda").fit(X, y)


BAD_ROWS = {
    "NaN in X": ({"X": [[0.0, 1], [1, np.nan], [2, 3]]}, "contains NaN"),
    "one class": ({"y": [1, 1, 1]}, "at least two classes to tell apart; got one class only"),
    "NaN weight": ({"sample_weight": [1, np.nan, 1]}, "sample_weight must be finite everywhere; found NaN"),
    "negative weight": ({"sample_weight": [1, -1, 1]}, "sample_weight must not be negative; got a weight of -1.0"),
    "no weight": ({"sample_weight": [0, 0, 0]}, "sample_weight must have at least one weight above zero"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_get_one_clear_sentence(case):
    rows, text = BAD_ROWS[case]
    with pytest.raises(ValueError, match=text):
        tiny().fit(**({"X": [[0.0, 1], [1, 2], [2, 3]], "y": [0, 1, 0]} | rows))


def test_codes_and_places_that_do_not_belong_are_refused():
    X, codes, classes = blobs()
    prepared = tiny().prepare(X)
    with pytest.raises(ValueError, match="codes must lie from 0 to 1; got 0 to 2"):
        tiny().fit_codes(prepared, codes, classes[:2], np.ones(120))
    with pytest.raises(ValueError, match="prepared for another device or precision"):
        tiny(precision="bfloat16").fit_codes(prepared, codes, classes, np.ones(120))


def test_without_torch_the_error_says_how_to_get_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("counterpoise.learners._network_")]:
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr(sys.modules["counterpoise.learners"], name.rsplit(".", 1)[1])
    monkeypatch.setitem(sys.modules, "torch", None)
    X, y, _ = blobs()
    with pytest.raises(ImportError, match=r"NetworkLearner needs torch.*pip install counterpoise\[torch\]"):
        tiny().fit(X, y)


# CUDA


@needs_cuda
def test_a_captured_step_learns_as_an_eager_one_does():
    X, y = digit_images(600)
    settings = {"n_iterations": 60, "warmup_epochs": 1, "device": "cuda", "augment": None}
    scores = [
        tiny(**settings, capture=capture, precision=precision)
        .set_params(module=networks.WideResNet(10))
        .fit(X, y)
        .score(X, y)
        for capture, precision in ((False, "float32"), (True, "float32"), (True, "bfloat16"))
    ]
    assert min(scores) > 0.9
    assert max(scores) - min(scores) < 0.05


@needs_cuda
def test_a_pool_of_models_holds_no_device_memory():
    X, y = digit_images(300)
    learner = tiny(device="cuda").set_params(module=networks.WideResNet(10))
    models = AdaLPBoostClassifier(learner, n_estimators=3, random_state=0).fit(X, y).estimators_
    models = pickle.loads(pickle.dumps(models))  # noqa: S301 - made above; without the rows of the fit
    torch.cuda.synchronize()
    models[0].predict(X)
    before = torch.cuda.memory_allocated()
    for model in models:
        model.predict(X)
    assert torch.cuda.memory_allocated() == before
