"""Transform tensors on their way between layouts and precisions (S193 to S213).

An adapter sees one tensor and where in a module it belongs. Transformations are lazy: dtype, shape
and length are known at once, the elements are moved or rounded when somebody asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bpk_lite.pack import DType, Tensor
from bpk_lite.store._losses import cast

__all__ = [
    "Adapter",
    "BurnToPyTorchAdapter",
    "Context",
    "FloatCastAdapter",
    "HalfPrecisionAdapter",
    "IdentityAdapter",
    "PyTorchToBurnAdapter",
]

_NORMS = frozenset({"Struct:BatchNorm", "Struct:LayerNorm", "Struct:GroupNorm", "Struct:RmsNorm"})
_TO_BURN = {"weight": "gamma", "bias": "beta"}
_TO_TORCH = {"gamma": "weight", "beta": "bias"}
_HALF = (
    "Linear", "Embedding", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
    "ConvTranspose3d", "DeformConv2d", "LayerNorm", "GroupNorm", "InstanceNorm", "RmsNorm", "PRelu",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Context:
    """Where in a module a tensor belongs.

    Attributes:
        containers: what owns each level of its path: ``"Struct:Net"``, ``"Vec"``, ``"Enum:Block"``.
    """

    containers: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The container path (S4)."""
        return ".".join(self.containers)

    @property
    def module_type(self) -> str | None:
        """The innermost struct or enum, or None (S5)."""
        return next(
            (one for one in reversed(self.containers) if one.startswith(("Struct:", "Enum:"))), None
        )


class Adapter:
    """Changes nothing. The base of all adapters."""

    def adapt(self, tensor: Tensor, context: Context) -> Tensor:
        """Return the tensor as it should be on the other side."""
        return tensor

    def alternative_name(self, name: str, context: Context) -> str | None:
        """Return another last segment under which a param may be found, or None (S21)."""
        return None

    def without_layout(self) -> Adapter:
        """Return what is left of it where both sides have PyTorch's layout (S10); itself if all."""
        return self

    def chain(self, second: Adapter) -> Adapter:
        """Return the adapter that does this one's work, then that of `second` (S212)."""
        return _Chain(self, second)


class IdentityAdapter(Adapter):
    """Changes nothing (S211)."""


@dataclass(frozen=True, slots=True)
class _Chain(Adapter):
    first: Adapter
    second: Adapter

    def adapt(self, tensor: Tensor, context: Context) -> Tensor:
        return self.second.adapt(self.first.adapt(tensor, context), context)

    def alternative_name(self, name: str, context: Context) -> str | None:
        other = self.first.alternative_name(name, context)
        if other is None:
            return self.second.alternative_name(name, context)
        return self.second.alternative_name(other, context) or other

    def without_layout(self) -> Adapter:
        first, second = self.first.without_layout(), self.second.without_layout()
        if first is self.first and second is self.second:
            return self
        return first.chain(second)


class _LayoutAdapter(Adapter):
    def without_layout(self) -> Adapter:
        return IdentityAdapter()


class PyTorchToBurnAdapter(_LayoutAdapter):
    """PyTorch's layout to Burn's: linear weights transposed, norms renamed (S194 to S202)."""

    def adapt(self, tensor: Tensor, context: Context) -> Tensor:
        """Return the tensor in Burn's layout."""
        return _renamed(_transposed(tensor, context), context, _TO_BURN)

    def alternative_name(self, name: str, context: Context) -> str | None:
        """Offer ``weight`` for ``gamma`` and ``bias`` for ``beta`` in norms (S202)."""
        return _TO_TORCH.get(name) if context.module_type in _NORMS else None


class BurnToPyTorchAdapter(_LayoutAdapter):
    """Burn's layout to PyTorch's: linear weights transposed, norms renamed."""

    def adapt(self, tensor: Tensor, context: Context) -> Tensor:
        """Return the tensor in PyTorch's layout."""
        return _renamed(_transposed(tensor, context), context, _TO_TORCH)

    def alternative_name(self, name: str, context: Context) -> str | None:
        """Offer ``gamma`` for ``weight`` and ``beta`` for ``bias`` in norms."""
        return _TO_BURN.get(name) if context.module_type in _NORMS else None


@dataclass(frozen=True)
class HalfPrecisionAdapter(Adapter):
    """F32 to F16 and F16 to F32, in modules whose type is listed (S204 to S209).

    Values that become infinite or 0 are counted in a logged warning, see `CastLosses`. BatchNorm is
    not listed by default, because small running variances become 0.

    Attributes:
        modules: types, as ``"Struct:Linear"``.
    """

    modules: frozenset[str] = field(
        default_factory=lambda: frozenset(f"Struct:{name}" for name in _HALF)
    )

    def adapt(self, tensor: Tensor, context: Context) -> Tensor:
        """Return the tensor in the other of the two precisions, if its module is listed."""
        other = {DType.F32: DType.F16, DType.F16: DType.F32}.get(tensor.dtype)
        if other is None or context.module_type not in self.modules:
            return tensor
        return cast(tensor, other)

    def with_module(self, name: str) -> HalfPrecisionAdapter:
        """Return an adapter that converts a type more: ``"BatchNorm"``, ``"Enum:Block"``."""
        return HalfPrecisionAdapter(self.modules | {_qualified(name)})

    def without_module(self, name: str) -> HalfPrecisionAdapter:
        """Return an adapter that leaves a type alone. Raises ValueError if it does already."""
        if _qualified(name) not in self.modules:
            raise ValueError(f"{name!r} is not among {', '.join(sorted(self.modules))}")
        return HalfPrecisionAdapter(self.modules - {_qualified(name)})


@dataclass(frozen=True)
class FloatCastAdapter(Adapter):
    """Every float to one dtype, in any module (S210). Losses are logged, see `CastLosses`.

    Attributes:
        dtype: the target.

    Raises:
        ValueError: it is no float dtype.
    """

    dtype: DType

    def __post_init__(self) -> None:
        if self.dtype.kind != "float":
            raise ValueError(f"the target of a cast must be a float dtype, not {self.dtype}")

    @classmethod
    def to(cls, dtype: DType | str) -> FloatCastAdapter:
        """Return the adapter for a dtype or its name."""
        return cls(DType.parse(dtype))

    def adapt(self, tensor: Tensor, context: Context) -> Tensor:
        """Return the tensor cast, if it is a float of another dtype."""
        if tensor.dtype.kind != "float" or tensor.dtype == self.dtype:
            return tensor
        return cast(tensor, self.dtype)


def _qualified(name: str) -> str:
    return name if ":" in name else f"Struct:{name}"


def _renamed(tensor: Tensor, context: Context, names: dict[str, str]) -> Tensor:
    """Rename the last segment of a norm's param (S197)."""
    prefix, dot, last = tensor.name.rpartition(".")
    if context.module_type not in _NORMS or last not in names:
        return tensor
    return tensor.replace(name=prefix + dot + names[last])


def _transposed(tensor: Tensor, context: Context) -> Tensor:
    """Transpose the weight of a linear layer, of any element type but quantized (S195, S196)."""
    size = tensor.dtype.itemsize
    if (
        context.module_type != "Struct:Linear"
        or tensor.name.rpartition(".")[2] != "weight"
        or tensor.ndim != 2
        or size is None
    ):
        return tensor
    rows, columns = tensor.shape

    def provider() -> np.ndarray[Any, Any]:
        raw = np.frombuffer(tensor.buffer(), np.dtype(f"<u{size}")).reshape(rows, columns)
        return np.ascontiguousarray(raw.T)

    return Tensor.deferred(
        tensor.name, tensor.dtype, (columns, rows), provider, param_id=tensor.param_id
    )
