"""The settings of a network learner, checked. This file does not need torch."""

from numbers import Integral
from typing import Any, NamedTuple

from counterpoise._base.checks import check_choice, check_count, check_fraction, check_number, check_positive

CROP_FLIP = "crop-flip"
_PRECISIONS = ("auto", "float32", "bfloat16")


class Settings(NamedTuple):
    """How a network is trained and predicts: the checked parameters of a ``NetworkLearner``."""

    n_iterations: int
    warmup_epochs: int
    warmup_learning_rate: float
    warmup_decay_at: tuple[int, ...]
    batch_size: int
    learning_rate: float
    momentum: float
    nesterov: bool
    weight_decay: float
    decay_at: tuple[int, ...]
    decay_factor: float
    augment: str | None
    device: str
    precision: str
    compile: bool | str
    predict_batch_size: int

    def rate(self, iteration: int) -> float:
        """Return the learning rate of an iteration, counted from 0."""
        return self.learning_rate * self.decay_factor ** sum(iteration >= place for place in self.decay_at)

    def warmup_rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch of the warm-up, counted from 0."""
        return self.warmup_learning_rate * self.decay_factor ** sum(epoch >= place for place in self.warmup_decay_at)


def check_settings(learner: Any) -> Settings:
    """Return the settings of a learner after checking each of them."""
    learning_rate, warmup_rate = check_positive(learner.learning_rate, "learning_rate"), learner.warmup_learning_rate
    nesterov, momentum = learner.nesterov, check_fraction(learner.momentum, "momentum")
    if not isinstance(nesterov, bool) or (nesterov and momentum == 0):
        raise ValueError(
            f"nesterov must be False, or True with a momentum above 0; got {nesterov!r} with {momentum!r}."
        )
    return Settings(
        check_count(learner.n_iterations, "n_iterations"),
        check_count(learner.warmup_epochs, "warmup_epochs", 0),
        learning_rate if warmup_rate is None else check_positive(warmup_rate, "warmup_learning_rate, where not None,"),
        _check_places(learner.warmup_decay_at, "warmup_decay_at", "epochs", "(60, 80)"),
        check_count(learner.batch_size, "batch_size"),
        learning_rate,
        momentum,
        nesterov,
        check_number(learner.weight_decay, "weight_decay", "[0, inf)"),
        _check_places(learner.decay_at, "decay_at", "iterations", "(2000, 4000)"),
        check_positive(learner.decay_factor, "decay_factor"),
        None if learner.augment is None else check_choice(learner.augment, "augment, where not None,", (CROP_FLIP,)),
        _check_device(learner.device),
        check_choice(learner.precision, "precision", _PRECISIONS),
        _check_compile(learner.compile),
        check_count(learner.predict_batch_size, "predict_batch_size"),
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_places(values: Any, name: str, unit: str, example: str) -> tuple[int, ...]:
    """Return the iterations, or epochs, at which the learning rate falls."""
    places = tuple(values) if isinstance(values, (tuple, list)) or hasattr(values, "tolist") else (None,)
    if not all(map(_is_whole, places)) or list(places) != sorted(set(places)) or (places and places[0] < 1):
        raise ValueError(
            f"{name} must list {unit} of at least 1 in increasing order, as in {example}, or be (); got {values!r}."
        )
    return tuple(int(place) for place in places)


def _check_device(value: Any) -> str:
    name = str(value)  # a torch.device is as good as its name
    kind, _, index = name.partition(":")
    if name not in ("auto", "cpu") and (kind != "cuda" or not (index.isdecimal() or name == "cuda")):
        raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:0' and so on; got {value!r}.")
    return name


def _check_compile(value: Any) -> Any:
    if not isinstance(value, bool) and value != "auto":
        raise ValueError(f"compile must be 'auto', True or False; got {value!r}.")
    return value
