"""NetworkLearner: draws by weight, the same bits from the same seed, the paper's networks, models as values."""

import copy
import pickle
import shutil
import sysconfig
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from tiny_networks import blobs, digit_images, same_state, tiny

from counterpoise import AdaLPBoostClassifier
from counterpoise.learners import NetworkLearner, networks

torch = pytest.importorskip("torch", reason="networks need torch")

from counterpoise.learners import _network_data as data  # noqa: E402 - only where torch is
from counterpoise.learners import _network_training as training  # noqa: E402
from counterpoise.learners._network_settings import check_settings  # noqa: E402

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small convolutions wait longer for threads than they compute."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


# Training


def test_features_far_from_zero_and_of_any_scale_are_learned():
    X, y, _ = blobs()
    model = tiny().fit(X * [1e-6, 1, 1e6, 1] + [0, 1e9, 0, 0], y)
    assert model.score(X * [1e-6, 1, 1e6, 1] + [0, 1e9, 0, 0], y) > 0.95


@pytest.mark.parametrize(
    ("momentum", "nesterov", "n_steps", "batch_size"),
    [(0.9, False, 9, 32), (0.9, True, 9, 32), (0.0, False, 9, 32), (0.9, False, 1003, 8)],  # the last drawn in parts
)
def test_steps_are_those_of_plain_sgd(momentum, nesterov, n_steps, batch_size):
    """The oracle is a loop over the same batches with torch's unfused optimizer and its own schedule."""
    X, codes, _ = blobs()
    how = {"momentum": momentum, "nesterov": nesterov, "weight_decay": 0.01}
    learner = tiny(**how, decay_at=(3, 6), n_iterations=n_steps, batch_size=batch_size)
    settings, place = check_settings(learner), data.find_place("cpu", "float32", compiles=False)
    module = training.build(learner.module, (4,), 3)
    reference = copy.deepcopy(module)
    inputs = data.Inputs(X, data.standard_of(X), place)
    trainer = training.Trainer(inputs, module, 3, settings, place)
    weights = np.arange(120.0)
    first = trainer.state()
    for seed in (6, 5):  # a round leaves nothing behind
        trainer.start(first)
        trainer.train(data.TrainingTargets(codes, weights), data.make_generator(seed, 1, "cpu"))
    sampler, generator = data.Sampler.of(weights, "cpu"), data.make_generator(5, 1, "cpu")
    rows = torch.cat([sampler.draw((n, batch_size), generator) for n in ([1000, 3] if n_steps > 1000 else [n_steps])])
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.1, foreach=False, **how)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 6], gamma=0.1)
    for batch in rows:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(reference(inputs.values[batch]), torch.from_numpy(codes)[batch]).backward()
        optimizer.step()
        schedule.step()
    for name, value in reference.state_dict().items():
        np.testing.assert_allclose(trainer.state()[name], value.numpy(), atol=1e-6)


def test_the_warm_up_has_its_own_rate_that_falls_after_epochs():
    """The oracle is a loop over the same epochs with torch's unfused optimizer."""
    X, codes, _ = blobs(128)
    learner = tiny(warmup_epochs=5, warmup_learning_rate=0.2, warmup_decay_at=(2, 4), learning_rate=0.01)
    settings, place = check_settings(learner), data.find_place("cpu", "float32", compiles=False)
    module = training.build(learner.module, (4,), 3)
    reference = copy.deepcopy(module)
    inputs = data.Inputs(X, data.standard_of(X), place)
    trainer = training.Trainer(inputs, module, 3, settings, place)
    trainer.start(trainer.state())
    trainer.warm_up(data.TrainingTargets(codes, np.ones(128)), data.make_generator(5, 0, "cpu"))
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.2, momentum=0.9, foreach=False)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4], gamma=0.1)
    for rows in data.epochs(128, 5, 32, data.make_generator(5, 0, "cpu")).split(4):
        for batch in rows:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(reference(inputs.values[batch]), torch.from_numpy(codes)[batch])
            loss.backward()
            optimizer.step()
        schedule.step()
    for name, value in reference.state_dict().items():
        np.testing.assert_allclose(trainer.state()[name], value.numpy(), atol=1e-6)


def test_the_rate_of_the_warm_up_is_that_of_the_rounds_by_default():
    X, y, _ = blobs()
    assert same_state(tiny().fit(X, y).state_, tiny(warmup_learning_rate=0.1).fit(X, y).state_)
    assert not same_state(tiny().fit(X, y).state_, tiny(warmup_learning_rate=0.2).fit(X, y).state_)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, when it loads its compiler
@pytest.mark.skipif(
    shutil.which("g++") is None or not Path(sysconfig.get_paths()["include"], "Python.h").exists(),
    reason="torch.compile needs a C++ compiler and Python's headers",
)
def test_a_compiled_step_learns_as_a_plain_one_does():
    X, y, _ = blobs()
    plain, compiled = (tiny(compile=value).fit(X, y) for value in (False, True))
    for name, value in plain.state_.items():
        np.testing.assert_allclose(compiled.state_[name], value, atol=1e-4)


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
    longer = tiny(precision=precision, n_iterations=80).set_params(module=Unused).fit(X, y)
    np.testing.assert_array_equal(model.state_["idle.weight"], longer.state_["idle.weight"])
    assert model.score(X, y) > 0.9


class SkipsAtTimes(torch.nn.Module):
    """A network whose second layer is passed by in all steps but the first."""

    def __init__(self, n_features, n_classes):
        super().__init__()
        self.used, self.rare = torch.nn.Linear(n_features, n_classes), torch.nn.Linear(n_features, n_classes)
        self.register_buffer("n_steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.n_steps += self.training
        return self.used(x) + self.rare(x) if self.n_steps <= 1 else self.used(x)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_layer_that_a_step_passes_by_stays_as_it_is(precision):
    X, y, _ = blobs()
    once, often = (
        tiny(precision=precision, n_iterations=n, warmup_epochs=0, decay_at=())
        .set_params(module=SkipsAtTimes)
        .fit(X, y)
        for n in (1, 5)
    )
    np.testing.assert_array_equal(once.state_["rare.weight"], often.state_["rare.weight"])
    assert not np.array_equal(once.state_["used.weight"], often.state_["used.weight"])


class Double(torch.nn.Module):
    """A network that computes in float64, whatever comes in."""

    def __init__(self, n_features, n_classes):
        super().__init__()
        self.layer = torch.nn.Linear(n_features, n_classes).double()

    def forward(self, x):
        return self.layer(x.double())


def lazy(_shape, n_classes):
    return torch.nn.Sequential(
        torch.nn.LazyLinear(8), torch.nn.LazyBatchNorm1d(), torch.nn.ReLU(), torch.nn.LazyLinear(n_classes)
    )


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize("factory", [Double, lazy])
def test_networks_that_choose_their_precision_or_learn_their_shape_late_predict_as_trained(factory):
    X, codes, classes = blobs()
    model = tiny().set_params(module=factory)
    predicted = model.fit_codes(model.prepare(X), codes, classes, np.ones(120))
    np.testing.assert_array_equal(model.predict_codes(X), predicted)
    assert (predicted == codes).mean() > 0.9


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


def test_moved_images_are_learned_too():
    X, y = digit_images(150)
    X, y = X[y < 2], y[y < 2]
    first, second = (
        tiny(augment="crop-flip", n_iterations=20).set_params(module=networks.WideResNet(10)).fit(X, y)
        for _ in range(2)
    )
    assert same_state(first.state_, second.state_)
    assert not same_state(first.state_, clone(first).set_params(augment=None).fit(X, y).state_)


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


# CUDA


@needs_cuda
def test_a_compiled_step_on_cuda_learns_as_an_eager_one_does():
    X, y = digit_images(600)
    settings = {"n_iterations": 60, "warmup_epochs": 1, "device": "cuda", "augment": None}
    scores = [
        tiny(**settings, compile=compiled, precision=precision)
        .set_params(module=networks.WideResNet(10))
        .fit(X, y)
        .score(X, y)
        for compiled, precision in ((False, "float32"), (True, "float32"), (True, "bfloat16"))
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
