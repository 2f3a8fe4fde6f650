"""Networks by value: what ``NetworkLearner(module=...)`` calls to make one.

A factory is called with the shape of a row, a number of features or a tuple such as (3, 32, 32), and the number of
classes, and returns a ``torch.nn.Module``. These are the networks of Zhai et al. (NeurIPS 2021); any function of
yours with the same arguments does as well. They are plain values: printed, compared, copied and saved by their fields.
"""

import math
from dataclasses import dataclass
from typing import Any

from counterpoise._base.checks import check_count

Shape = int | tuple[int, ...]  # of a row: its features, or (channels, height, width)

_IMAGE = 3  # dimensions of a row: channels, height, width
_WIDE_STAGES = 6  # blocks of two convolutions in three groups
_WIDE_EXTRA = 4  # the first convolution, the last layer and the two that change the resolution


def _channels(shape: Shape, name: str) -> int:
    if isinstance(shape, int) or len(shape) != _IMAGE:
        raise ValueError(f"{name} is a network for images of shape (channels, height, width); got rows of {shape}.")
    return shape[0]


@dataclass(frozen=True)
class Perceptron:
    """Fully connected layers with ReLU between them; by default three, as the paper has for tables.

    Parameters
    ----------
    hidden : tuple of int, default=(64, 64)
        The widths of the hidden layers.

    Examples
    --------
    >>> from counterpoise.learners import NetworkLearner, networks
    >>> NetworkLearner(networks.Perceptron(hidden=(32,)))
    NetworkLearner(module=Perceptron(hidden=(32,)))
    """

    hidden: tuple[int, ...] = (64, 64)

    def __call__(self, shape: Shape, n_classes: int) -> Any:
        """Return a fresh network."""
        from counterpoise.learners._network_models import perceptron  # noqa: PLC0415 - torch loads on use

        if not isinstance(self.hidden, (tuple, list)):
            raise TypeError(f"hidden must list the widths of the layers, as in (64, 64); got {self.hidden!r}.")
        widths = [check_count(width, "hidden") for width in self.hidden]
        n_features = shape if isinstance(shape, int) else math.prod(shape)
        return perceptron([n_features, *widths, n_classes])


@dataclass(frozen=True)
class WideResNet:
    """The wide residual network of Zagoruyko and Komodakis (2016), with pre-activation; by default WRN-28-1.

    Parameters
    ----------
    depth : int, default=28
        The number of layers: 6 n + 4 for n blocks in each of three groups.
    width : int, default=1
        How many times 16, 32 and 64 channels the three groups have.

    Examples
    --------
    >>> from counterpoise.learners import networks
    >>> networks.WideResNet(depth=16) == networks.WideResNet(depth=16, width=1)
    True
    """

    depth: int = 28
    width: int = 1

    def __call__(self, shape: Shape, n_classes: int) -> Any:
        """Return a fresh network."""
        from counterpoise.learners._network_models import WideNetwork  # noqa: PLC0415 - torch loads on use

        depth, width = check_count(self.depth, "depth"), check_count(self.width, "width")
        n_blocks, rest = divmod(depth - _WIDE_EXTRA, _WIDE_STAGES)
        if n_blocks < 1 or rest:
            raise ValueError(f"depth must be 6 n + 4 for a whole n, such as 16, 28 or 40; got {depth}.")
        return WideNetwork(_channels(shape, "WideResNet"), n_classes, n_blocks, width)


@dataclass(frozen=True)
class ResNet18:
    """The residual network of 18 layers (He et al. 2016), with the 3 x 3 first convolution for small images.

    Parameters
    ----------
    width : int, default=64
        Channels of the first of its four stages; each has twice those of the one before.

    Examples
    --------
    >>> from counterpoise.learners import networks
    >>> networks.ResNet18(width=32)
    ResNet18(width=32)
    """

    width: int = 64

    def __call__(self, shape: Shape, n_classes: int) -> Any:
        """Return a fresh network."""
        from counterpoise.learners._network_models import ResidualNetwork  # noqa: PLC0415 - torch loads on use

        return ResidualNetwork(_channels(shape, "ResNet18"), n_classes, check_count(self.width, "width"))
