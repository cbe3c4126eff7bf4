"""Which module of torch is which of Burn's (S9, S10, R91).

===============================  =====================================================
torch                            Burn
===============================  =====================================================
Linear and subclasses            ``weight`` transposed to [in, out], ``bias``
Embedding                        ``weight``
convolutions, transposed too     ``weight``, ``bias``, as they are
BatchNorm, SyncBatchNorm         ``gamma``, ``beta``, ``running_mean``, ``running_var``
LayerNorm, GroupNorm             ``gamma``, ``beta``
InstanceNorm                     ``gamma``, ``beta`` if affine
RMSNorm                          ``gamma``
PReLU                            ``alpha``
LSTM, GRU, RNN of one layer      a gate for each block of rows, see `_recurrent`
MultiheadAttention               ``query``, ``key``, ``value``, ``output``, see `_attention`
===============================  =====================================================

"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["CLASSES", "Cut", "Rule", "rule_of"]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where in a module's own tensors a piece lies, relative to the module."""

    path: str
    attribute: str
    rows: tuple[int, int] | None = None
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """What a module of torch is in Burn."""

    cuts: tuple[Cut, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    children: Mapping[str, str] = field(default_factory=dict)


_Make: TypeAlias = "Callable[[nn.Module], Rule | str]"
"""Returns the rule, or the reason why Burn has no counterpart."""


def rule_of(module: nn.Module) -> Rule | str:
    for cls, make in _TABLE:
        if isinstance(module, cls):
            return make(module)
    home = type(module).__module__
    bare = (nn.Module, nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.ParameterList)
    if home.startswith("torch.") and type(module) not in (*bare, nn.ParameterDict):
        return f"Burn has no counterpart of {home}.{type(module).__qualname__}"
    return Rule()


def _named(**names: str) -> _Make:
    """Return a rule that renames tensors and leaves their layout."""
    rule = Rule(tuple(Cut(burn, attribute) for attribute, burn in names.items()))
    return lambda _module: rule


def _linear(_module: nn.Module) -> Rule:
    return Rule((Cut("weight", "weight", transposed=True), Cut("bias", "bias")))


def _batch_norm(_module: nn.Module) -> Rule:
    names = {
        "weight": "gamma",
        "bias": "beta",
        "running_mean": "running_mean",
        "running_var": "running_var",
    }
    return Rule(
        tuple(Cut(burn, attribute) for attribute, burn in names.items()),
        {"num_batches_tracked": "Burn's batch norm does not count batches"},
    )


def _layer_norm(module: nn.Module) -> Rule | str:
    assert isinstance(module, nn.LayerNorm)
    sizes = module.normalized_shape
    if len(sizes) != 1:
        return f"Burn's norm is over the last dimension, this one over {sizes}"
    return Rule((Cut("gamma", "weight"), Cut("beta", "bias")))


def _instance_norm(_module: nn.Module) -> Rule:
    return Rule(
        (Cut("gamma", "weight"), Cut("beta", "bias")),
        {"num_batches_tracked": "Burn's instance norm does not count batches"},
    )


_GATES: dict[str, dict[str, int]] = {
    # Burn's gates in the order of its file, each with its place among torch's blocks of rows
    "LSTM": {"input_gate": 0, "forget_gate": 1, "output_gate": 3, "cell_gate": 2},
    "GRU": {"update_gate": 1, "reset_gate": 0, "new_gate": 2},
    "RNN": {"gate": 0},
}


def _recurrent(module: nn.Module) -> Rule | str:
    """Cut the fused weights of one layer into Burn's gates (R91, R125).

    ``weight_ih_l0`` has the gates' input weights one below the other, [out, in] each. A
    bidirectional layer is Burn's BiLstm and so on, with ``forward`` and ``reverse``.
    """
    assert isinstance(module, nn.RNNBase)
    kind = next(name for name in _GATES if isinstance(module, getattr(nn, name)))
    if module.num_layers != 1 or module.proj_size != 0:
        return f"Burn's {kind} has one layer and no projection"
    hidden = module.hidden_size
    cuts: list[Cut] = []
    for prefix, suffix in (("forward.", ""), ("reverse.", "_reverse")):
        if suffix and not module.bidirectional:
            continue
        front = prefix if module.bidirectional else ""
        for gate, block in _GATES[kind].items():
            rows = (block * hidden, (block + 1) * hidden)
            for transform, end in (("input_transform", "ih"), ("hidden_transform", "hh")):
                at = f"{front}{gate}.{transform}"
                cuts.append(Cut(f"{at}.weight", f"weight_{end}_l0{suffix}", rows, True))
                cuts.append(Cut(f"{at}.bias", f"bias_{end}_l0{suffix}", rows))
    return Rule(tuple(cuts))


def _attention(module: nn.Module) -> Rule | str:
    """Cut the fused input weights into Burn's three linear layers (R91, R123)."""
    assert isinstance(module, nn.MultiheadAttention)
    if "in_proj_weight" not in dict(module.named_parameters(recurse=False)):
        return "Burn's attention has queries, keys and values of one size"
    if module.bias_k is not None:
        return "Burn's attention has no biases beside the sequence (add_bias_kv)"
    size = module.embed_dim
    cuts: list[Cut] = []
    for index, part in enumerate(("query", "key", "value")):
        rows = (index * size, (index + 1) * size)
        cuts.append(Cut(f"{part}.weight", "in_proj_weight", rows, True))
        cuts.append(Cut(f"{part}.bias", "in_proj_bias", rows))
    return Rule(tuple(cuts), children={"out_proj": "output"})


def _classes(*names: str) -> tuple[type[nn.Module], ...]:
    """Return those of torch's classes that this version has."""
    return tuple(getattr(nn, name) for name in names if hasattr(nn, name))


_TABLE: tuple[tuple[tuple[type[nn.Module], ...], _Make], ...] = (
    (_classes("Linear"), _linear),
    (_classes("Embedding"), _named(weight="weight")),
    (
        _classes(
            "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"
        ),
        _named(weight="weight", bias="bias"),
    ),
    (_classes("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"), _batch_norm),
    (_classes("LayerNorm"), _layer_norm),
    (_classes("GroupNorm"), _named(weight="gamma", bias="beta")),
    (_classes("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"), _instance_norm),
    (_classes("RMSNorm"), _named(weight="gamma")),
    (_classes("PReLU"), _named(weight="alpha")),
    (_classes("LSTM", "GRU", "RNN"), _recurrent),
    (_classes("MultiheadAttention"), _attention),
)

CLASSES: dict[str, tuple[type[nn.Module], ...]] = {
    "Linear": _classes("Linear"),
    "Embedding": _classes("Embedding"),
    "BatchNorm": _classes("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"),
    "InstanceNorm": _classes("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"),
    "RmsNorm": _classes("RMSNorm"),
    "PRelu": _classes("PReLU"),
    "Lstm": _classes("LSTM"),
    "Gru": _classes("GRU"),
    "Rnn": _classes("RNN"),
    "MultiHeadAttention": _classes("MultiheadAttention"),
}
