"""Bytes out of torch tensors when a writer reaches them, and into them when a record is loaded.

A tensor on a GPU stays there until the writer asks for it; then it comes in windows of 8 MiB,
through one pinned buffer that every window uses again. A transposed weight is made contiguous a
window at a time too, where it lies; on the CPU in blocks of a few rows, which stay in the cache (6
times as fast as at once). A contiguous tensor on the CPU is written from its own memory.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bpk_lite.nn._cast import convert_tensor
from bpk_lite.pack import WINDOW, DType, ParamId, PlanError, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

__all__ = ["deferred", "deferred_tensor", "dtype_of", "fill", "torch_dtype", "version_of"]

_TYPES: dict[DType, torch.dtype] = {
    DType.F64: torch.float64,
    DType.F32: torch.float32,
    DType.F16: torch.float16,
    DType.BF16: torch.bfloat16,
    DType.I64: torch.int64,
    DType.I32: torch.int32,
    DType.I16: torch.int16,
    DType.I8: torch.int8,
    DType.U64: torch.uint64,
    DType.U32: torch.uint32,
    DType.U16: torch.uint16,
    DType.U8: torch.uint8,
    DType.BOOL: torch.bool,
}
_BLOCK = 64  # rows of a matrix that are transposed at a time
_DTYPES = {theirs: ours for ours, theirs in _TYPES.items()}
# how elements that numpy lacks, or torch cannot hand to it, are viewed instead
_BITS = {torch.bfloat16: torch.int16, torch.bool: torch.uint8}


def dtype_of(tensor: torch.Tensor, name: str) -> DType:
    """Return the dtype that stores `tensor`.

    Raises:
        TypeError: Burn has no such element type.
    """
    found = _DTYPES.get(tensor.dtype)
    if found is None:
        raise TypeError(f"{name} is {tensor.dtype}, and burnpack has no such element type")
    return found


def torch_dtype(dtype: DType) -> torch.dtype:
    """Return torch's element type: float32 for quantized and Flex32, bool for every bool store."""
    if dtype.kind == "bool":
        return torch.bool
    return _TYPES.get(dtype, torch.float32)


def version_of(tensor: torch.Tensor) -> int | None:
    """Return how often `tensor` has been written to, or None where torch does not count."""
    try:
        return int(tensor._version)
    except (RuntimeError, AttributeError):
        return None  # made in inference mode


def deferred(
    name: str,
    dtype: DType,
    shape: tuple[int, ...],
    make: Callable[[], torch.Tensor],
    of: tuple[torch.Tensor, ...],
    param_id: ParamId | None = None,
) -> Tensor:
    """Return a tensor whose bytes are fetched when the writer gets there.

    Args:
        name: its name in the record.
        dtype: its element type; what `make` returns must have it.
        shape: its shape.
        make: returns the values, in any layout and on any device.
        of: what `make` reads. If one of them has been written to in the meantime, as by a step of
            an optimizer, the save fails: it would mix two moments of training.
        param_id: its id.
    """
    before = [version_of(tensor) for tensor in of]

    def provider() -> Iterator[NDArray[np.uint8]]:
        if before != [version_of(tensor) for tensor in of]:
            raise RuntimeError(
                "it was written to after the record was made; save first, or make the record "
                "with copy=True"
            )
        yield from windows(make())

    return Tensor.deferred(name, dtype, shape, provider, param_id=param_id)


def deferred_tensor(name: str, tensor: torch.Tensor, *, param_id: int | None = None) -> Tensor:
    """Return a tensor of a pack that reads a tensor of torch when the writer gets there.

    Args:
        name: its name.
        tensor: the values, of any stride, on any device. They must not be written to before.
        param_id: its id.

    Raises:
        PlanError: it is not dense, has no data, or is of a type that Burn lacks.
    """
    if tensor.layout != torch.strided or tensor.is_meta:
        raise PlanError(f"tensor {name!r} is {tensor.layout} on {tensor.device}, expected data")
    source = tensor.detach()
    try:
        dtype = dtype_of(source, repr(name))
    except TypeError as error:
        raise PlanError(str(error)) from error
    held = None if param_id is None else ParamId(param_id)
    return deferred(name, dtype, tuple(source.shape), lambda: source, (source,), held)


def windows(tensor: torch.Tensor) -> Iterator[NDArray[np.uint8]]:
    """Yield the bytes of a tensor, row-major. A piece is valid until the next is asked for."""
    values = tensor.detach().resolve_neg()
    if not needs_staging(values) and values.is_contiguous():
        yield _bytes(values).numpy()
        return
    staging: torch.Tensor | None = None
    for chunk in _chunks(values, WINDOW):
        size = chunk.numel() * chunk.element_size()
        if staging is None or staging.numel() < size:
            staging = staging_buffer(size)
        raw = staging[:size]
        if needs_staging(chunk):
            raw.copy_(_bytes(chunk.contiguous()))
        else:
            _copy_blocks(raw.view(chunk.dtype).view(chunk.shape), chunk)
        yield raw.numpy()


def fill(target: torch.Tensor, tensor: Tensor) -> None:
    """Write the values of `tensor` into `target`, of the same shape and any layout and device.

    Converts to the element type of `target` as R29 says. On the CPU the values are copied once.

    Raises:
        ValueError: a value has no place in that type.
        ReadError, TruncatedError, ProviderError: the values cannot be read.
    """
    wanted = _DTYPES[target.dtype]
    if tensor.dtype.kind == "quantized":
        tensor = Tensor.from_array(tensor.name, tensor.numpy(), dtype=DType.F32)
    source = convert_tensor(tensor, wanted)
    if not needs_staging(target):
        bits = _BITS.get(target.dtype)
        place = (target if bits is None else target.view(bits)).numpy()
        values = np.frombuffer(source.buffer(), place.dtype).reshape(place.shape)
        values = values != 0 if target.dtype == torch.bool else values
        if place.ndim != 2 or place.flags.c_contiguous:
            np.copyto(place, values)
            return
        for start in range(0, len(place), _BLOCK):
            np.copyto(place[start : start + _BLOCK], values[start : start + _BLOCK])
        return
    flat = torch.empty(math.prod(source.shape), dtype=target.dtype, device=target.device)
    raw, position = _bytes(flat), 0
    staging: torch.Tensor | None = None
    for piece in source.pieces():
        for start in range(0, piece.nbytes, WINDOW):
            part = np.frombuffer(piece[start : start + WINDOW], np.uint8)
            if target.dtype == torch.bool:
                part = (part != 0).view(np.uint8)
            if staging is None or staging.numel() < part.size:
                staging = staging_buffer(part.size)
            staging.numpy()[: part.size] = part
            raw[position : position + part.size].copy_(staging[: part.size])
            position += part.size
    target.copy_(flat.view(source.shape))


def needs_staging(tensor: torch.Tensor) -> bool:
    """Whether the tensor's memory is another device's."""
    return tensor.device.type != "cpu"


def staging_buffer(nbytes: int) -> torch.Tensor:
    """Return host memory to copy through, pinned where there is a GPU."""
    return torch.empty(nbytes, dtype=torch.uint8, pin_memory=torch.cuda.is_available())


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def _copy_blocks(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy `source` in blocks of columns, which are rows in memory where it is transposed."""
    if source.ndim != 2:
        target.copy_(source)
        return
    for start in range(0, source.shape[1], _BLOCK):
        target[:, start : start + _BLOCK].copy_(source[:, start : start + _BLOCK])


def _chunks(tensor: torch.Tensor, limit: int) -> Iterator[torch.Tensor]:
    """Yield parts of at most `limit` bytes that make up `tensor` in row-major order. No copy."""
    if tensor.numel() == 0:
        return
    size: Any = tensor.element_size()
    if tensor.is_contiguous():
        yield from torch.split(tensor.reshape(-1), max(1, limit // size))
        return
    row = tensor[0].numel() * size
    if row > limit:
        for each in tensor:
            yield from _chunks(each, limit)
    else:
        yield from torch.split(tensor, max(1, limit // row))
