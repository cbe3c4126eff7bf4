"""Make the demo's package and the MNIST fetcher importable, as the page's wheel does."""

import sys
from pathlib import Path

import numpy as np
import pytest

WEB_DEMO = Path(__file__).parents[2] / "web-demo"
if str(WEB_DEMO) not in sys.path:
    sys.path.insert(0, str(WEB_DEMO))


@pytest.fixture(scope="session")
def mnist():
    """The 10 000 test images and labels."""
    from mnist_data import load

    return load("test")


@pytest.fixture
def on_canvas():
    """Return a function that draws an image ten times as large somewhere on a 420x400 canvas."""

    def draw(image, top=60, left=100):
        canvas = np.zeros((400, 420), np.uint8)
        big = np.kron(image, np.ones((10, 10), np.uint8))
        canvas[top : top + big.shape[0], left : left + big.shape[1]] = big
        return canvas

    return draw
