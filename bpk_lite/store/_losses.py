"""What a cast to a smaller float loses: finite values that become infinite, others that become 0.

Half precision ends at 65504 and at 6e-8, which running variances and epsilons do not respect
(tracel-ai/burn#4594). Nothing is refused: the count is reported, by a logged warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.nn._cast import convert, convert_tensor, stored_dtype
from bpk_lite.pack import DType, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CastLosses", "cast", "cast_losses"]

_CHUNK = 1 << 20
_WIDTHS = {"F64": 3, "F32": 2, "Flex32": 2, "BF16": 1, "F16": 0}


@dataclass(frozen=True, slots=True)
class CastLosses:
    """How many elements a cast changed beyond rounding.

    Attributes:
        infinite: finite ones that became infinite.
        zero: ones that became 0.
    """

    infinite: int = 0
    zero: int = 0

    def __str__(self) -> str:
        return f"{self.infinite:,} values became infinite, {self.zero:,} became 0"


def cast_losses(before: Tensor, after: Tensor) -> CastLosses:
    """Count what a cast lost. Reads both; takes little memory beside them.

    Args:
        before: of a float dtype.
        after: the same elements in another float dtype.

    Raises:
        ValueError: they are not of one shape, or no floats.
    """
    if before.shape != after.shape or {before.dtype.kind, after.dtype.kind} != {"float"}:
        raise ValueError(f"{before!r} and {after!r} are no two floats of one shape")
    old, new = _stored(before), _stored(after)
    infinite = zero = 0
    for start in range(0, old.size, _CHUNK):
        wide = convert(old[start : start + _CHUNK], before.dtype, DType.F64)
        back = convert(new[start : start + _CHUNK], after.dtype, DType.F64)
        infinite += int(np.count_nonzero(np.isinf(back) & np.isfinite(wide)))
        zero += int(np.count_nonzero((back == 0) & (wide != 0)))
    return CastLosses(infinite, zero)


def cast(tensor: Tensor, dtype: DType) -> Tensor:
    """Return a float tensor in another float dtype, lazily; losses are logged when it is made."""
    made = convert_tensor(tensor, dtype)
    if _WIDTHS[dtype.name] >= _WIDTHS[tensor.dtype.name]:
        return made

    def provider() -> memoryview:
        # read once: what makes the values may be dear, or good for one call only (C89)
        read = Tensor.from_bytes(tensor.name, tensor.dtype, tensor.shape, tensor.buffer())
        values = convert_tensor(read, dtype).buffer()
        losses = cast_losses(read, Tensor.from_bytes(read.name, dtype, read.shape, values))
        if losses != CastLosses():
            import logging  # loads threads, which nothing needs before this

            text = "%s, from %s to %s: %s"
            log = logging.getLogger("bpk_lite")
            log.warning(text, made.name, tensor.dtype, dtype, losses)
        return values

    return Tensor.deferred(made.name, dtype, made.shape, provider, param_id=made.param_id)


def _stored(tensor: Tensor) -> NDArray[Any]:
    return np.frombuffer(tensor.buffer(), stored_dtype(tensor.dtype))
