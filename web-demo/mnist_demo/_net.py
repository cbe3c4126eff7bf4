"""The network of Burn's MNIST examples, field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite import nn

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ConvBlock", "Net"]

MEAN = np.float32(0.1307)
DEVIATION = np.float32(0.3081)


class ConvBlock(nn.Module):
    """Convolution, batch norm, relu, and a max-pool that halves the image."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        self.conv = nn.Conv2d(in_channels, out_channels, 3)
        self.norm = nn.BatchNorm(out_channels)
        self.pool = nn.MaxPool2d(2)
        self.activation = nn.Relu()

    def forward(self, x: NDArray[Any]) -> NDArray[Any]:
        """Map ``[n, in_channels, h, w]`` to ``[n, out_channels, (h - 2) / 2, (w - 2) / 2]``."""
        return self.pool(self.activation(self.norm(self.conv(x))))


class Net(nn.Module):
    """Two convolution blocks and three linear layers; ten logits."""

    def __init__(self) -> None:
        self.conv1 = ConvBlock(1, 64)
        self.conv2 = ConvBlock(64, 64)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(1600, 128)
        self.fc2 = nn.Linear(128, 128)
        self.fc3 = nn.Linear(128, 10)
        self.activation = nn.Gelu()

    def forward(self, images: NDArray[Any]) -> NDArray[Any]:
        """Map images, uint8 ``[n, 28, 28]`` with ink 255, to logits, float32 ``[n, 10]``."""
        x = images[:, None].astype(np.float32)
        x = (x / np.float32(255) - MEAN) / DEVIATION
        x = self.conv2(self.conv1(x)).reshape(len(x), -1)
        x = self.dropout(self.activation(self.fc1(x)))
        x = self.dropout(self.activation(self.fc2(x)))
        return self.fc3(x)
