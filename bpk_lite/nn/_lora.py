"""Low-rank adapters on the weights of a module (R18, R90, R115).

The adapter belongs to the param, not to the layer: a layer asks its weight for the array to compute
with and gets ``base + scale * (a @ b)``, so every layer with a matrix can be adapted and none has
to know. The traversal meets the adapter right after its param, which gives Burn's paths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bpk_lite.nn._cast import bits_of, convert, live
from bpk_lite.nn._group import ParamGroup
from bpk_lite.nn._module import Module
from bpk_lite.nn._param import Param
from bpk_lite.nn._walk import named_params, walk
from bpk_lite.nn.init import DEFAULT, Zeros
from bpk_lite.pack import DType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Lora", "fold_lora", "lora"]

M = TypeVar("M", bound=Module)


class Lora(Module):
    """The adapter of one matrix ``[d_in, d_out]``; made by `lora`.

    Attributes:
        a: ``[d_in, rank]``, random at first.
        b: ``[rank, d_out]``, zeros at first, so that a fresh adapter changes nothing.
        scale: alpha / rank; a number, not stored (R18).
    """

    def __init__(self, shape: tuple[int, ...], rank: int, alpha: float, dtype: DType) -> None:
        d_in, d_out = shape
        self.a = Param((d_in, rank), DEFAULT, dtype=dtype, fans=(d_in, rank))
        self.b = Param((rank, d_out), Zeros(), dtype=dtype, fans=(rank, d_out))
        self.scale = alpha / rank

    def apply(self, base: NDArray[Any]) -> NDArray[Any]:
        """Return ``base + scale * (a @ b)``, in the wider of their dtypes."""
        product = self.a.operand() @ self.b.operand()
        product *= product.dtype.type(self.scale)
        out: NDArray[Any] = base + product
        return out

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return f"rank {self.a.shape[1]}, scale {self.scale:g}"


def lora(module: M, group: ParamGroup | None = None, *, rank: int, alpha: float) -> M:
    """Attach an adapter to each matrix of `group` and freeze every other param; return `module`.

    Adapters go to float params of rank 2, quantized ones included; their paths are
    ``<path>.lora.a`` and ``<path>.lora.b``. Save them alone with
    ``module.into_record_group(ParamGroup.predicate(".lora."))``.

    Args:
        module: changed in place.
        group: the params to adapt; all by default.
        rank: of the adapters, from 1.
        alpha: the adapters' weight; ``scale = alpha / rank``.

    Raises:
        ValueError: If `rank` is below 1 (R115), nothing in `group` can be adapted, or something
            there is adapted already. Nothing has changed then.
    """
    if rank < 1:
        raise ValueError(f"the rank of an adapter is an integer from 1, not {rank}")
    chosen = ParamGroup.all() if group is None else group
    params = named_params(module)
    targets = {
        id(param): (path, param)
        for path, param in params.items()
        if param.kind == "float" and len(param.shape) == 2 and chosen.matches(param.id, path)
    }
    adapted = [path for path, param in targets.values() if param.adapter is not None]
    if adapted:
        raise ValueError(f"these params have an adapter already, fold it in first: {adapted}")
    if not targets:
        raise ValueError(f"{chosen!r} holds no float param of rank 2")
    for param in params.values():
        param.require_grad = False
    for _, param in targets.values():
        dtype = DType.F32 if param.dtype.kind == "quantized" else param.dtype
        param.adapter = Lora(param.shape, rank, alpha, dtype)
    return module


def fold_lora(module: M) -> M:
    """Replace each adapted param by its effective weight, under its own id; return `module`.

    The weight is rounded to the param's dtype; a quantized one becomes F32. Params stay frozen:
    `Module.require_grad` thaws them.
    """
    for param in {id(leaf.param): leaf.param for leaf in walk(module)}.values():
        if param.adapter is None:
            continue
        dtype = DType.F32 if param.dtype.kind == "quantized" else param.dtype
        weight = np.ascontiguousarray(param.operand())
        computed = DType.of(weight)
        param.adapter = None
        param.value = live(convert(bits_of(weight, computed), computed, dtype), dtype)
    return module
