"""Optimizers and learning-rate schedulers with Burn's state and arithmetic, in numpy.

``Adam(net, lr=1e-3)`` and its like make a `ModuleOptimizer` over the configuration of that name
with Burn's defaults, which are not all PyTorch's: epsilon is 1e-5 in Adam, AdamW, AdaGrad and
RMSProp, a momentum's dampening is 0.1, RMSProp has a momentum of 0.9, and clipping by norm is per
param.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bpk_lite.optim import lr
from bpk_lite.optim._adafactor import AdafactorConfig
from bpk_lite.optim._adam import AdamConfig, AdamWConfig, AdanConfig, LambConfig
from bpk_lite.optim._clipping import ClipNorm, ClipValue
from bpk_lite.optim._lbfgs import Lbfgs
from bpk_lite.optim._load import LoadReport
from bpk_lite.optim._muon import MuonConfig
from bpk_lite.optim._optimizer import ModuleOptimizer
from bpk_lite.optim._others import AdaGradConfig, LionConfig, RmsPropConfig
from bpk_lite.optim._sgd import Momentum, SgdConfig

if TYPE_CHECKING:
    from bpk_lite.nn import Module

__all__ = [
    "AdaGrad",
    "AdaGradConfig",
    "Adafactor",
    "AdafactorConfig",
    "Adam",
    "AdamConfig",
    "AdamW",
    "AdamWConfig",
    "Adan",
    "AdanConfig",
    "ClipNorm",
    "ClipValue",
    "Lamb",
    "LambConfig",
    "Lbfgs",
    "Lion",
    "LionConfig",
    "LoadReport",
    "ModuleOptimizer",
    "Momentum",
    "Muon",
    "MuonConfig",
    "RmsProp",
    "RmsPropConfig",
    "Sgd",
    "SgdConfig",
    "lr",
]


def Sgd(module: Module, lr: float | None = None, **config: Any) -> ModuleOptimizer:  # noqa: N802
    """Return an optimizer of `module` with a `SgdConfig`."""
    return ModuleOptimizer(module, SgdConfig(**config), lr)


def Adam(module: Module, lr: float | None = None, **config: Any) -> ModuleOptimizer:  # noqa: N802
    """Return an optimizer of `module` with an `AdamConfig`."""
    return ModuleOptimizer(module, AdamConfig(**config), lr)


def AdamW(module: Module, lr: float | None = None, **config: Any) -> ModuleOptimizer:  # noqa: N802
    """Return an optimizer of `module` with an `AdamWConfig`."""
    return ModuleOptimizer(module, AdamWConfig(**config), lr)


def Adan(module: Module, lr: float | None = None, **config: Any) -> ModuleOptimizer:  # noqa: N802
    """Return an optimizer of `module` with an `AdanConfig`."""
    return ModuleOptimizer(module, AdanConfig(**config), lr)


def AdaGrad(module: Module, lr: float | None = None, **config: Any) -> ModuleOptimizer:  # noqa: N802
    """Return an optimizer of `module` with an `AdaGradConfig`."""
    return ModuleOptimizer(module, AdaGradConfig(**config), lr)


def RmsProp(module: Module, lr: float | None = None, **config: Any) -> ModuleOptimizer:  # noqa: N802
    """Return an optimizer of `module` with a `RmsPropConfig`."""
    return ModuleOptimizer(module, RmsPropConfig(**config), lr)


def Adafactor(module: Module, lr: float | None = None, **config: Any) -> ModuleOptimizer:  # noqa: N802
    """Return an optimizer of `module` with an `AdafactorConfig`."""
    return ModuleOptimizer(module, AdafactorConfig(**config), lr)


def Lamb(module: Module, lr: float | None = None, **config: Any) -> ModuleOptimizer:  # noqa: N802
    """Return an optimizer of `module` with a `LambConfig`."""
    return ModuleOptimizer(module, LambConfig(**config), lr)


def Lion(module: Module, lr: float | None = None, **config: Any) -> ModuleOptimizer:  # noqa: N802
    """Return an optimizer of `module` with a `LionConfig`."""
    return ModuleOptimizer(module, LionConfig(**config), lr)


def Muon(module: Module, lr: float | None = None, **config: Any) -> ModuleOptimizer:  # noqa: N802
    """Return an optimizer of `module` with a `MuonConfig`, for params of two dimensions."""
    return ModuleOptimizer(module, MuonConfig(**config), lr)
