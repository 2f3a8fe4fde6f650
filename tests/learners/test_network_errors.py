"""What NetworkLearner refuses, each with one clear sentence."""

import sys

import numpy as np
import pytest
from tiny_networks import blobs

from counterpoise.learners import NetworkLearner, networks

torch = pytest.importorskip("torch", reason="networks need torch")


def tiny(**settings):
    """Return a learner that fits in milliseconds."""
    return NetworkLearner(
        networks.Perceptron((8,)), **({"n_iterations": 3, "decay_at": (), "device": "cpu"} | settings)
    )


BAD_SETTINGS = {
    "iterations": ({"n_iterations": 0}, "n_iterations must be at least 1; got 0"),
    "epochs": ({"warmup_epochs": -1}, "warmup_epochs must be at least 0; got -1"),
    "batch": ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
    "rate": ({"learning_rate": 0.0}, "learning_rate must be finite and above 0; got 0.0"),
    "momentum": ({"momentum": 1.0}, r"momentum must lie in \[0, 1\); got 1.0"),
    "momentum of Nesterov": ({"momentum": 0.0, "nesterov": True}, "nesterov must be False, or True with a momentum"),
    "weight decay": ({"weight_decay": -1}, "weight_decay must be finite and at least 0; got -1"),
    "falling places": ({"decay_at": (20, 10)}, r"decay_at must list iterations .* increasing.*got \(20, 10\)"),
    "equal places": ({"decay_at": (10, 10)}, "decay_at must list iterations"),
    "one place": ({"decay_at": 400}, "decay_at must list iterations.*got 400"),
    "rate of the warm-up": ({"warmup_learning_rate": -1.0}, "warmup_learning_rate, where not None, must be finite"),
    "places of the warm-up": ({"warmup_decay_at": (2, 1)}, r"warmup_decay_at must list epochs .*as in \(60, 80\)"),
    "decay_factor": ({"decay_factor": float("nan")}, "decay_factor must be finite and above 0; got nan"),
    "augment": ({"augment": "mixup"}, "augment, where not None, must be one of 'crop-flip'; got 'mixup'"),
    "augment of a table": ({"augment": "crop-flip"}, r"is for images of shape .*got X of shape \(120, 4\)"),
    "device": ({"device": "tpu"}, "device must be 'auto', 'cpu', 'cuda' or 'cuda:0' and so on; got 'tpu'"),
    "far device": ({"device": "cuda:99"}, "device='cuda:99' does not exist: torch sees"),
    "precision": ({"precision": "float16"}, "precision must be one of 'auto', 'float32', 'bfloat16'; got 'float16'"),
    "compile": ({"compile": "yes"}, "compile must be 'auto', True or False; got 'yes'"),
    "no output": ({"module": lambda *_: torch.nn.Flatten(0)}, r"a column for each of 3 classes.*it returned \(8,\)"),
    "wide output": ({"module": lambda n, _: torch.nn.Linear(n, 9)}, r"shape \(batch, 3\).*it returned \(2, 9\)"),
    "wrong input": ({"module": lambda _, k: torch.nn.Linear(99, k)}, r"fails on a batch of shape \(2, 4\)"),
    "nothing to train": ({"module": lambda *_: Fixed()}, "an empty parameter list"),
    "convolutions on a table": ({"module": networks.WideResNet()}, "WideResNet is a network for images of shape"),
    "two outputs": ({"module": lambda *_: Odd(lambda x: (x, x))}, "each of 3 classes.*it returned a tuple"),
    "own error": ({"module": lambda *_: Odd(lambda x: {}[x.ndim])}, r"fails on a batch of shape \(2, 4\): 2"),
    "state beside tensors": ({"module": lambda *_: Odd(lambda x: x[:, :3])}, "must keep its state in tensors: make it"),
    "divergence": ({"learning_rate": 1e30}, r"'1\.weight' is no longer so: training diverged\. Use a learning_rate"),
    "divergence of the warm-up": ({"warmup_learning_rate": 1e30}, "diverged.* and in the warm-up below 1e[+]30"),
    "odd depth": ({"module": networks.WideResNet(27)}, "depth must be 6 n [+] 4 for a whole n.*got 27"),
}


class Fixed(torch.nn.Module):
    def forward(self, x):
        return x[:, :3]


class Odd(torch.nn.Module):
    """A network that does anything, with a parameter and a state that is no tensor."""

    def __init__(self, answer):
        super().__init__()
        self.answer, self.layer = answer, torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.answer(x)

    def get_extra_state(self):
        return {"answer": 42}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_settings_get_one_clear_sentence(case):
    settings, text = BAD_SETTINGS[case]
    X, y, _ = blobs()
    with pytest.raises(ValueError, match=text):
        tiny().set_params(**settings).fit(X, y)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("wrn", "module must be a factory, called with the shape"),
        (lambda *_: "net", "returned str"),
        (networks.Perceptron, r"module must be a factory.*Perceptron'>, which fails.*Write networks\.Perceptron\(\)"),
        (torch.nn.Linear(4, 3), "module must be a factory.*got Linear"),
        (lambda: torch.nn.Linear(4, 3), "module must be a factory"),
        (networks.Perceptron(8), r"hidden must list the widths of the layers, as in \(64, 64\); got 8"),
    ],
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, when it loads its compiler
def test_a_step_that_cannot_be_compiled_is_refused(monkeypatch):
    def compiled(_function, **_how):
        def fail(*_arguments):
            raise torch._dynamo.exc.TorchDynamoException("InvalidCxxCompiler: none found\nand a page of advice")

        return fail

    monkeypatch.setattr(torch, "compile", compiled)
    X, y, _ = blobs()
    with pytest.raises(RuntimeError, match=r"compile=True needs .* none found Use compile=False\.$"):
        tiny(compile=True).fit(X, y)


BAD_ROWS = {
    "NaN in X": ({"X": [[0.0, 1], [1, np.nan], [2, 3]]}, "contains NaN"),
    "one class": ({"y": [1, 1, 1]}, "at least two classes; got one class only: 1\\.$"),
    "empty images": ({"X": np.empty((3, 1, 0, 4))}, r"rows with something in them; got .* \(3, 1, 0, 4\)"),
    "NaN weight": ({"sample_weight": [1, np.nan, 1]}, "sample_weight must be finite everywhere; got NaN"),
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
    with pytest.raises(ImportError, match=r'NetworkLearner needs torch.*pip install "counterpoise\[torch\]"'):
        tiny().fit(X, y)
