"""Classify a drawn digit with Burn's MNIST network, its weights embedded as a burnpack.

`classify` is all that a page needs: ink in, probabilities and a preview out.
"""

from mnist_demo._classify import Result, classify, model
from mnist_demo._net import Net
from mnist_demo._prepare import prepare

__all__ = ["Net", "Result", "classify", "model", "prepare"]
