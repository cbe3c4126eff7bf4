"""Tensors whose data stay where they are, on a GPU or in a function, until a writer reaches them.

`deferred` takes what the libraries have: torch, CuPy and JAX on any device, anything else with
``__dlpack__``, numpy arrays and memory maps, tensors of an open pack, functions.
`Tensor.from_array`, and so `bpk_lite.save_file`, calls it for arrays that lie on a device.

Data come to the host a window of 8 MiB at a time, in row-major order, and a window is free before
the next is fetched. How a window is cut and fetched differs by library; that is all this module
knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite._door import torch_bridge
from bpk_lite.desktop._dlpack import host_bfloat16
from bpk_lite.pack import WINDOW, DType, PlanError, Tensor
from bpk_lite.pack._convert import lies_on_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["deferred"]

_NAMES = {
    "float64": DType.F64,
    "float32": DType.F32,
    "float16": DType.F16,
    "bfloat16": DType.BF16,
    "bool": DType.BOOL,
    **{f"int{bits}": DType.parse(f"I{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": DType.parse(f"U{bits}") for bits in (8, 16, 32, 64)},
}


def deferred(
    name: str,
    value: Any,
    *,
    dtype: DType | str | None = None,
    shape: Sequence[int] | None = None,
    param_id: int | None = None,
) -> Tensor:
    """Return a tensor over `value` that is read when a writer gets there. Copies nothing now.

    Args:
        name: name in the pack.
        value: a tensor of torch, CuPy, JAX or any library with ``__dlpack__``; a numpy array or
            memory map; a `Tensor`; or a function without arguments that returns a buffer, an array,
            or an iterator of them.
        dtype: element type; needed for a function, otherwise only for what `Tensor.from_array`
            says.
        shape: dimensions; needed for a function.
        param_id: identity of the parameter.

    Raises:
        PlanError: a function without `dtype` and `shape`; a shape that is not the value's.
        TypeError: none of these, or Burn has no such element type.
    """
    if isinstance(value, Tensor):
        return value.replace(name=name, param_id=param_id)
    if _is_of(value, "torch") and hasattr(value, "detach"):
        made: Tensor = torch_bridge().deferred_tensor(name, value, param_id=param_id)
    elif hasattr(value, "__dlpack__") and lies_on_device(value):
        found = _dtype_of(value)
        made = Tensor.deferred(
            name,
            found if dtype is None else dtype,
            tuple(map(int, value.shape)),
            lambda: _windows(value, found),
            param_id=param_id,
        )
    elif hasattr(value, "__dlpack__") or hasattr(value, "__array__"):
        made = Tensor.from_array(name, value, dtype=dtype, param_id=param_id)
    elif callable(value):
        if dtype is None or shape is None:
            raise PlanError(f"tensor {name!r} is made by a function: give its dtype and shape")
        return Tensor.deferred(name, dtype, shape, value, param_id=param_id)
    else:
        raise TypeError(
            f"tensor {name!r}: expected an array, a tensor or a function, not "
            f"{type(value).__name__}"
        )
    if shape is not None and tuple(shape) != made.shape:
        raise PlanError(f"tensor {name!r} has shape {list(made.shape)}, not {list(shape)}")
    return made


def _is_of(value: Any, library: str) -> bool:
    return type(value).__module__.partition(".")[0] == library


def _dtype_of(value: Any) -> DType:
    found = _NAMES.get(str(value.dtype).rpartition(".")[2])
    if found is None:
        raise TypeError(f"burnpack has no element type for {value.dtype}")
    return found


def _windows(value: Any, dtype: DType) -> Iterator[Any]:
    """Yield the elements in row-major order, a window at a time, in host memory."""
    count = int(np.prod(value.shape, dtype=object))
    step = max(1, WINDOW // (dtype.itemsize or 1))
    cut = _cutter(value, count, step)
    for start in range(0, count, step):
        yield _to_host(cut(start, min(step, count - start)), dtype)


def _cutter(value: Any, count: int, step: int) -> Callable[[int, int], Any]:
    """Return a function from a start and a length to these elements, still on the device."""
    if count <= step:
        return lambda _start, _length: value
    flat = value.reshape(-1)  # a view of what is contiguous, else a copy on the device
    if _is_of(value, "jax") or _is_of(value, "jaxlib"):
        from jax.lax import dynamic_slice_in_dim  # `flat[a:b]` would compile anew for each a

        return lambda start, length: dynamic_slice_in_dim(flat, start, length)
    return lambda start, length: flat[start : start + length]


def _to_host(part: Any, dtype: DType) -> Any:
    """Return elements of a device as an array in host memory."""
    if hasattr(part, "__cuda_array_interface__") and hasattr(part, "get"):
        return part.get()  # CuPy, and what follows it
    if _is_of(part, "jax") or _is_of(part, "jaxlib"):
        return np.asarray(part)
    if dtype == DType.BF16:
        return host_bfloat16(part)
    return np.from_dlpack(part, device="cpu")
