"""Neural networks as the learners of boosting.

Zhai, Dan, Suggala, Kolter, Ravikumar: Boosted CVaR Classification, NeurIPS 2021, section 4.1 and Appendix B. The
network is first warmed up by a few epochs of plain training, once for all rounds. Each round then starts from there and
trains for a fixed number of iterations on minibatches drawn with replacement by the weights::

    prepared = learner.prepare(X)
    for each round:
        predicted = clone(learner).fit_codes(prepared, codes, classes, weights)

torch loads when a learner is fitted or predicts, not before.
"""

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from counterpoise._base.checks import check_sample_weight
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.learners._network_settings import check_settings
from counterpoise.learners.networks import Perceptron
from counterpoise.learners.resampling import CodeLearner

if TYPE_CHECKING:
    from counterpoise.learners._network_training import PreparedRows

_SEEDS = 2**31 - 1
# Networks built from fitted learners, on the CPU: they share the memory of ``state_`` and are not saved.
_BUILT: "WeakKeyDictionary[NetworkLearner, tuple[dict[str, AnyArray], Any]]" = WeakKeyDictionary()


def _parts() -> tuple[Any, Any]:
    """Return the modules that need torch: of data and of training."""
    try:
        from counterpoise.learners import _network_data, _network_training  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            'NetworkLearner needs torch, which is not installed: pip install "counterpoise[torch]".'
        ) from error
    return _network_data, _network_training


class NetworkLearner(CodeLearner):
    """A neural network trained by SGD on minibatches drawn by weight, from a start that all rounds share.

    Features, or the channels of images, are finite numbers, standardized by mean and deviation of the training rows.
    Rows are features or of shape (channels, ...); arrays of uint8, such as images, stay bytes on the device.

    Parameters
    ----------
    module : callable, default=None
        A factory: called with the shape of a row, a number of features or a tuple such as (3, 32, 32), and the number
        of classes, it returns a ``torch.nn.Module`` that maps a batch to a column for each class. Those of
        ``counterpoise.learners.networks`` are saved with the model. Default: ``networks.Perceptron()``.
    n_iterations : int, default=500
        Steps of SGD in a fit, or in a round of boosting.
    warmup_epochs : int, default=3
        Epochs of training on all rows alike before; in boosting once for all rounds. 0 starts from random parameters.
    warmup_learning_rate : float > 0, default=None
        The first learning rate of the warm-up; None is ``learning_rate``.
    warmup_decay_at : tuple of int, default=()
        The epochs of the warm-up after which its learning rate is multiplied by ``decay_factor``.
    batch_size : int, default=128
        Rows in a step.
    learning_rate : float > 0, default=0.01
        The first learning rate of a fit or round.
    momentum : float in [0, 1), default=0.9
        The momentum; each fit or round starts from rest.
    nesterov : bool, default=False
        Nesterov's form of the momentum.
    weight_decay : float >= 0, default=0.0
        The penalty on the squares of the parameters, as torch counts it.
    decay_at : tuple of int, default=(400,)
        The iterations at which the learning rate is multiplied by ``decay_factor``.
    decay_factor : float > 0, default=0.1
        The factor.
    augment : {None, "crop-flip"}, default=None
        ``"crop-flip"`` pads images by 4 pixels, bytes by 0 and floats by their mean, takes a random part of their size
        and mirrors every other one.
    device : str, default="auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"auto"`` is the present CUDA device where there is one.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        What the network computes in; parameters are kept and updated in float32. ``"auto"`` is bfloat16 on CUDA.
    compile : {"auto", True, False}, default="auto"
        Whether ``torch.compile`` fuses the operations of a step, on CUDA as one graph that is replayed: up to a minute
        at the start that pays off over many steps of a deep network. ``"auto"`` does so on CUDA. It needs a C++
        compiler, and on CUDA triton.
    predict_batch_size : int, default=2048
        Rows that the network predicts at once.
    random_state : int, RandomState or None, default=None
        What the first parameters and all draws depend on. On the CPU an int gives the same network bit for bit.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    state_ : dict from names to arrays
        The parameters, in float32.
    input_shape_ : tuple of int
        The shape of a row.
    centre_, scale_ : arrays of shape (n_features,)
        Mean and deviation of the features, or channels, by which rows are standardized.
    n_features_in_ : int
        The number of features, or of channels.
    feature_names_in_ : array of shape (n_features,)
        The names of the features, where ``X`` had them.

    Notes
    -----
    Fits in several threads of one process wait for each other, so that none can take another's random numbers. Another
    number of torch's own threads may change the last bits of a result. With bfloat16 a network gets its batches in
    bfloat16, and layers compute in it where ``torch.autocast`` says that they bear it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from counterpoise.learners import NetworkLearner
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NetworkLearner(n_iterations=200, device="cpu", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    # Floats as they are, bytes as bytes, other numbers as floats; more axes than two for images.
    _border: ClassVar[dict[str, Any]] = {"dtype": [np.float64, np.float32, np.uint8], "allow_nd": True}

    def __init__(
        self,
        module: Any = None,
        *,
        n_iterations: int = 500,
        warmup_epochs: int = 3,
        warmup_learning_rate: float | None = None,
        warmup_decay_at: tuple[int, ...] = (),
        batch_size: int = 128,
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        decay_at: tuple[int, ...] = (400,),
        decay_factor: float = 0.1,
        augment: str | None = None,
        device: str = "auto",
        precision: str = "auto",
        compile: bool | str = "auto",  # noqa: A002 - as torch calls it
        predict_batch_size: int = 2048,
        random_state: Any = None,
    ) -> None:
        self.module = module
        self.n_iterations = n_iterations
        self.warmup_epochs = warmup_epochs
        self.warmup_learning_rate = warmup_learning_rate
        self.warmup_decay_at = warmup_decay_at
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.nesterov = nesterov
        self.weight_decay = weight_decay
        self.decay_at = decay_at
        self.decay_factor = decay_factor
        self.augment = augment
        self.device = device
        self.precision = precision
        self.compile = compile
        self.predict_batch_size = predict_batch_size
        self.random_state = random_state

    def prepare(self, X: Any) -> "PreparedRows":
        """Return ``X`` on the device, for ``fit_codes`` of this learner and of its clones.

        The warm-up will draw from the random state of this learner, whatever that of the clones.
        """
        rows: PreparedRows = super().prepare(X)
        return rows

    def _prepare(self, X: AnyArray) -> "PreparedRows":
        settings, names = check_settings(self), getattr(self, "feature_names_in_", None)
        rows: PreparedRows = _parts()[1].PreparedRows(X, settings, self._seed(), names)
        return rows

    def warm_up(self, prepared: "PreparedRows", codes: AnyArray, n_classes: int) -> None:
        """Warm the network up now, as the first ``fit_codes`` would, and keep the result as ``prepared.shared``."""
        targets = _parts()[0].TrainingTargets(codes, np.ones(len(codes)))
        prepared.warm_up(self._factory(), check_settings(self), targets, n_classes)

    def fit_codes(
        self,
        prepared: "PreparedRows",
        codes: AnyArray,
        classes: AnyArray,
        weights: FloatArray,
        rows: IntArray | None = None,
    ) -> AnyArray:
        """Train on rows that ``prepare`` returned, and return what the network predicts for all of them.

        The first call warms the network up, on all rows alike, and keeps the result as ``prepared.shared``. It learns
        ``prepared.warmup_codes`` there, or where that is None the codes of the call.

        Parameters and result are those of ``HistogramTree.fit_codes``. With ``rows`` the codes and weights are not of
        all rows in their order but of these, some of which may come several times, with other codes.
        """
        if len(classes) < 2:  # noqa: PLR2004
            only = classes.tolist()[0]
            raise ValueError(f"y must hold at least two classes; got one class only: {only!r}.")
        if codes.min() < 0 or codes.max() >= len(classes):
            raise ValueError(f"codes must lie from 0 to {len(classes) - 1}; got {codes.min()} to {codes.max()}.")
        check_sample_weight(weights, len(prepared.inputs) if rows is None else len(rows))
        factory, settings = self._factory(), check_settings(self)
        targets = _parts()[0].TrainingTargets(codes, weights, rows)
        self.state_, predicted = prepared.fit(factory, settings, targets, len(classes), self._seed())
        self.store_labels(classes, prepared.shape[0], prepared.feature_names)
        self.input_shape_, (self.centre_, self.scale_) = prepared.shape, prepared.standard
        return self._as_codes(predicted)

    def predict(self, X: Any) -> AnyArray:
        """Return the label of each row."""
        codes = self.predict_codes(X)
        return np.asarray(self.classes_[codes])

    def predict_codes(self, X: Any) -> AnyArray:
        """Return the place in ``classes_`` of each predicted label, as bytes if there are at most 256 classes."""
        return self._as_codes(np.concatenate([output.argmax(dim=1).cpu().numpy() for output in self._outputs(X)]))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the softmax of the network's output, of shape (n_samples, n_classes)."""
        return np.concatenate([output.double().softmax(dim=1).cpu().numpy() for output in self._outputs(X)])

    def _outputs(self, X: Any) -> Iterator[Any]:
        """Yield the network's output batch by batch."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **self._border)
        if X.shape[1:] != self.input_shape_:
            raise ValueError(f"X must have rows of shape {self.input_shape_}, as in fit; got {X.shape[1:]}.")
        data, training = _parts()
        settings = check_settings(self)
        place = data.find_place(settings.device, settings.precision, compiles=False)
        standard = data.Standard(self.centre_, self.scale_)
        network, place = training.in_double(self._network(training, place), place)
        size = settings.predict_batch_size
        for start in range(0, len(X), size):
            rows = data.Inputs(X[start : start + size], standard, place)
            with training.turn(place, 0):
                output = next(training.outputs(network, rows, place, size))
            yield output

    def _network(self, training: Any, place: Any) -> Any:
        """Return the network in its place; only that on the CPU is kept, so that a pool holds no device memory."""
        state, network = _BUILT.get(self, (None, None))
        if state is not self.state_:
            with training.turn(place, 0):
                network = training.build(self._factory(), self.input_shape_, len(self.classes_))
            _BUILT[self] = self.state_, training.with_state(network, self.state_)
        if place.device.type == "cpu":
            return network
        return training.to_place(copy.deepcopy(network), place, is_image=len(self.input_shape_) == 3)  # noqa: PLR2004

    def _factory(self) -> Any:
        return Perceptron() if self.module is None else self.module

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(_SEEDS))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags
