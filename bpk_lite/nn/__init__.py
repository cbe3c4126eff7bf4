"""Modules, params and layers on numpy: enough to define and run a model anywhere.

A module is a plain Python class with fields. Its params have the paths, shapes and order that Burn
gives to the same struct, so a burnpack loads by path and saves in Burn's order. Layers compute in
the dtype of their input, for inference (records.md section 13).
"""

from bpk_lite.nn import functional, init
from bpk_lite.nn._activation import Gelu, Relu
from bpk_lite.nn._batch_norm import BatchNorm
from bpk_lite.nn._conv import Conv2d
from bpk_lite.nn._dropout import Dropout
from bpk_lite.nn._form import IDENTITY, TRANSPOSED, SaveForm
from bpk_lite.nn._linear import Linear
from bpk_lite.nn._load import LoadReport
from bpk_lite.nn._module import Module, Variant
from bpk_lite.nn._param import Param
from bpk_lite.nn._pool import MaxPool2d
from bpk_lite.nn._random import manual_seed
from bpk_lite.nn._static import static_model
from bpk_lite.nn.functional import gelu, log_softmax, relu, softmax

__all__ = [
    "IDENTITY",
    "TRANSPOSED",
    "BatchNorm",
    "Conv2d",
    "Dropout",
    "Gelu",
    "Linear",
    "LoadReport",
    "MaxPool2d",
    "Module",
    "Param",
    "Relu",
    "SaveForm",
    "Variant",
    "functional",
    "gelu",
    "init",
    "log_softmax",
    "manual_seed",
    "relu",
    "softmax",
    "static_model",
]
