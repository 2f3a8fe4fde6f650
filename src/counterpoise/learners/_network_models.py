"""The networks behind ``networks``. This file needs torch."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

_FIRST_CHANNELS = 16  # of a wide network
_STAGES = 4  # of ResNet-18
_BLOCKS = 2  # in each


def perceptron(widths: Sequence[int]) -> nn.Module:
    """Return linear layers from each width to the next, with ReLU between them."""
    layers: list[nn.Module] = [nn.Flatten()]
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _convolution(n_in: int, n_out: int, size: int = 3, stride: int = 1) -> nn.Conv2d:
    """Return a convolution that keeps the resolution, or divides it by the stride."""
    layer = nn.Conv2d(n_in, n_out, size, stride=stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return layer


class _WideBlock(nn.Module):
    """``x + conv(relu(bn(conv(relu(bn(x))))))``; where sizes change, x is the first activation, convolved 1 x 1."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.first_norm, self.first = nn.BatchNorm2d(n_in), _convolution(n_in, n_out, stride=stride)
        self.second_norm, self.second = nn.BatchNorm2d(n_out), _convolution(n_out, n_out)
        self.shortcut = None if n_in == n_out and stride == 1 else _convolution(n_in, n_out, 1, stride)

    def forward(self, x: Any) -> Any:
        active = functional.relu(self.first_norm(x), inplace=True)
        inner = self.second(functional.relu(self.second_norm(self.first(active)), inplace=True))
        return inner + (x if self.shortcut is None else self.shortcut(active))


class WideNetwork(nn.Module):
    """WRN: a convolution, three groups of blocks at falling resolution, the mean over places, a linear layer."""

    def __init__(self, n_channels: int, n_classes: int, n_blocks: int, width: int) -> None:
        super().__init__()
        self.first = _convolution(n_channels, _FIRST_CHANNELS)
        blocks, n_in = [], _FIRST_CHANNELS
        for group in range(3):
            n_out = _FIRST_CHANNELS * 2**group * width
            for place in range(n_blocks):
                blocks.append(_WideBlock(n_in, n_out, stride=2 if group > 0 and place == 0 else 1))
                n_in = n_out
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(n_in)
        self.last = _linear(n_in, n_classes)

    def forward(self, x: Any) -> Any:
        x = functional.relu(self.norm(self.blocks(self.first(x))), inplace=True)
        return self.last(x.mean(dim=(2, 3)))


class _ResidualBlock(nn.Module):
    """``relu(x + bn(conv(relu(bn(conv(x))))))``; where sizes change, x goes through a 1 x 1 convolution and bn."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.first, self.first_norm = _convolution(n_in, n_out, stride=stride), nn.BatchNorm2d(n_out)
        self.second, self.second_norm = _convolution(n_out, n_out), nn.BatchNorm2d(n_out)
        self.shortcut = (
            nn.Identity()
            if n_in == n_out and stride == 1
            else nn.Sequential(_convolution(n_in, n_out, 1, stride), nn.BatchNorm2d(n_out))
        )

    def forward(self, x: Any) -> Any:
        inner = functional.relu(self.first_norm(self.first(x)), inplace=True)
        return functional.relu(self.second_norm(self.second(inner)) + self.shortcut(x), inplace=True)


class ResidualNetwork(nn.Module):
    """ResNet-18 for small images: no pooling before the first stage."""

    def __init__(self, n_channels: int, n_classes: int, width: int) -> None:
        super().__init__()
        self.first, self.norm = _convolution(n_channels, width), nn.BatchNorm2d(width)
        blocks, n_in = [], width
        for stage in range(_STAGES):
            n_out = width * 2**stage
            for place in range(_BLOCKS):
                blocks.append(_ResidualBlock(n_in, n_out, stride=2 if stage > 0 and place == 0 else 1))
                n_in = n_out
        self.blocks = nn.Sequential(*blocks)
        self.last = _linear(n_in, n_classes)

    def forward(self, x: Any) -> Any:
        x = functional.relu(self.norm(self.first(x)), inplace=True)
        return self.last(torch.mean(self.blocks(x), dim=(2, 3)))


def _linear(n_in: int, n_out: int) -> nn.Linear:
    layer = nn.Linear(n_in, n_out)
    nn.init.zeros_(layer.bias)
    return layer
