"""Other libraries' arrays into numpy arrays whose bytes can be written."""

from __future__ import annotations

from typing import Any

import numpy as np

from bpk_lite._door import desktop
from bpk_lite.pack._dtype import DType

__all__ = ["as_array", "lies_on_device", "stored_array"]

_HOST = (1, 3, 11, 13)  # kDLCPU, and host memory that CUDA or ROCm pinned or manages


def as_array(value: Any) -> tuple[np.ndarray[Any, Any], DType]:
    """Return `value` as a numpy array and its dtype, without a copy where it lies in CPU memory.

    numpy arrays and scalars as they are, then ``__dlpack__``, then ``__array__``. bfloat16, which
    numpy's DLPack refuses, comes as its bits. A tensor that records gradients is detached first.

    Raises:
        TypeError: none of these, or Burn has no such element type.
        BufferError: the memory belongs to a device, or the library refuses.
    """
    if not isinstance(value, np.ndarray | np.generic) and hasattr(value, "__dlpack__"):
        value = value.detach() if hasattr(value, "detach") else value
        if "bfloat16" in str(getattr(value, "dtype", "")):
            return desktop().import_bfloat16(value), DType.BF16
        try:
            value = np.from_dlpack(value)
        except (BufferError, TypeError, RuntimeError, ValueError):
            if not hasattr(value, "__array__"):
                raise
    if not hasattr(value, "__array__"):
        raise TypeError(
            f"expected an array (numpy, __dlpack__ or __array__) or a bpk_lite.Tensor, "
            f"not {type(value).__name__}"
        )
    array = np.asarray(value)
    return array, DType.of(array)


def lies_on_device(value: Any) -> bool:
    """Whether an array's memory is not the host's, by its ``__dlpack_device__``.

    One that is spread over several devices cannot say where it is, and is taken for such.
    """
    if isinstance(value, np.ndarray | np.generic) or not hasattr(value, "__dlpack_device__"):
        return False
    try:
        kind, _ = value.__dlpack_device__()
    except (BufferError, RuntimeError, ValueError, TypeError):
        return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")
    return int(kind) not in _HOST


def stored_array(values: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Return `values` as an array whose bytes are those of `dtype`. A view wherever possible.

    Raises:
        TypeError: the elements are not of `dtype`; casting is the caller's decision.
    """
    stored, found = dtype.stored, values.dtype
    if dtype.kind == "bool" and found.kind == "b":
        return values.view(np.uint8) if stored.itemsize == 1 else values.astype(stored)
    bits = dtype == DType.BF16 and found.kind == "u" and found.itemsize == 2
    if dtype.kind == "quantized" or not (bits or found.newbyteorder("<") == stored):
        raise TypeError(
            f"an array of {found} cannot be stored as {dtype} as it is; cast it first, "
            "or give the bytes to Tensor.from_bytes"
        )
    return values
