"""Modules, params and layers on numpy: enough to define and run a model anywhere.

A module is a plain Python class with fields. Its params have the paths, shapes and order that Burn
gives to the same struct, so a burnpack loads by path and saves in Burn's order. Layers compute in
the dtype of their input, for inference (records.md section 13).
"""

from bpk_lite.nn import functional, init
from bpk_lite.nn._activation import (
    Celu,
    Elu,
    Gelu,
    HardShrink,
    HardSigmoid,
    HardSwish,
    Hardtanh,
    LeakyRelu,
    LogSigmoid,
    Mish,
    Relu,
    Relu6,
    Selu,
    Shrink,
    Sigmoid,
    Silu,
    Softplus,
    SoftShrink,
    Softsign,
    Tanh,
    Tanhshrink,
    ThresholdedRelu,
)
from bpk_lite.nn._adaptive_pool import AdaptiveAvgPool1d, AdaptiveAvgPool2d
from bpk_lite.nn._attention import CrossAttention, MhaOutput, MultiHeadAttention
from bpk_lite.nn._batch_norm import BatchNorm
from bpk_lite.nn._bidirectional import BiGru, BiLstm, BiRnn
from bpk_lite.nn._conv import Conv1d, Conv2d, Conv3d
from bpk_lite.nn._conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from bpk_lite.nn._deform_conv import DeformConv2d
from bpk_lite.nn._dropout import Dropout
from bpk_lite.nn._embedding import Embedding
from bpk_lite.nn._encoding import PositionalEncoding, RotaryEncoding
from bpk_lite.nn._enums import Activation, Normalization
from bpk_lite.nn._form import IDENTITY, TRANSPOSED, SaveForm
from bpk_lite.nn._gate import GateController
from bpk_lite.nn._gated import PRelu, SwiGlu
from bpk_lite.nn._group import ParamGroup
from bpk_lite.nn._gru import Gru
from bpk_lite.nn._linear import Linear
from bpk_lite.nn._load import LoadReport, load_tensors
from bpk_lite.nn._lora import Lora, fold_lora, lora
from bpk_lite.nn._lstm import Lstm, LstmState
from bpk_lite.nn._module import Module, Variant
from bpk_lite.nn._norm import GroupNorm, InstanceNorm, LayerNorm, LocalResponseNorm, RmsNorm
from bpk_lite.nn._param import Param
from bpk_lite.nn._pixel_shuffle import PixelShuffle
from bpk_lite.nn._pool import AvgPool1d, AvgPool2d, MaxPool1d, MaxPool2d
from bpk_lite.nn._random import manual_seed
from bpk_lite.nn._rnn import Rnn
from bpk_lite.nn._save import into_record
from bpk_lite.nn._softmax import Glu, LogSoftmax, QuietSoftmax, Softmax, Softmin
from bpk_lite.nn._static import static_model
from bpk_lite.nn._transformer import (
    PositionWiseFeedForward,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from bpk_lite.nn.functional import gelu, log_softmax, relu, softmax

__all__ = [
    "IDENTITY",
    "TRANSPOSED",
    "Activation",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm",
    "BiGru",
    "BiLstm",
    "BiRnn",
    "Celu",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "CrossAttention",
    "DeformConv2d",
    "Dropout",
    "Elu",
    "Embedding",
    "GateController",
    "Gelu",
    "Glu",
    "GroupNorm",
    "Gru",
    "HardShrink",
    "HardSigmoid",
    "HardSwish",
    "Hardtanh",
    "InstanceNorm",
    "LayerNorm",
    "LeakyRelu",
    "Linear",
    "LoadReport",
    "LocalResponseNorm",
    "LogSigmoid",
    "LogSoftmax",
    "Lora",
    "Lstm",
    "LstmState",
    "MaxPool1d",
    "MaxPool2d",
    "MhaOutput",
    "Mish",
    "Module",
    "MultiHeadAttention",
    "Normalization",
    "PRelu",
    "Param",
    "ParamGroup",
    "PixelShuffle",
    "PositionWiseFeedForward",
    "PositionalEncoding",
    "QuietSoftmax",
    "Relu",
    "Relu6",
    "RmsNorm",
    "Rnn",
    "RotaryEncoding",
    "SaveForm",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Silu",
    "SoftShrink",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softsign",
    "SwiGlu",
    "Tanh",
    "Tanhshrink",
    "ThresholdedRelu",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "Variant",
    "fold_lora",
    "functional",
    "gelu",
    "init",
    "into_record",
    "load_tensors",
    "log_softmax",
    "lora",
    "manual_seed",
    "relu",
    "softmax",
    "static_model",
]
