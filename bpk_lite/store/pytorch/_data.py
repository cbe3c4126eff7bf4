"""The elements of a tensor, found in its storage by strides, gathered when asked for.

Rules S141 to S146.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bpk_lite.pack import WINDOW, FormatError
from bpk_lite.pack import Tensor as PackTensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bpk_lite.store.pytorch._values import TensorValue

__all__ = ["StorageBytes", "StridedData", "tensor_of"]


class StorageBytes(Protocol):
    """The bytes of one storage."""

    @property
    def big_endian(self) -> bool:
        """Whether multi-byte elements are stored in the other order."""
        ...

    def read(self, offset: int, length: int, *, whole: bool) -> memoryview:
        """Return a range of the bytes; `whole` asks for a check of the checksum.

        Raises:
            FormatError: the storage is missing, cut short or damaged.
        """
        ...


class StridedData:
    """The data of a tensor in a checkpoint. Contiguous ones are windows, others are gathered."""

    __slots__ = ("_name", "_storage", "_value")

    def __init__(self, name: str, value: TensorValue, storage: StorageBytes) -> None:
        self._name = name
        self._value = value
        self._storage = storage

    def read(self, offset: int, length: int) -> memoryview:
        """Return a range of the row-major bytes."""
        if self._direct:
            return self._window(offset, length)
        return memoryview(self._gathered().data).toreadonly()[offset : offset + length]

    def pieces(self) -> Iterator[memoryview]:
        """Yield the row-major bytes, in windows where the storage has them in that order."""
        size = self._value.dtype.itemsize
        assert size is not None
        total = math.prod(self._value.shape) * size
        if self._direct:
            for offset in range(0, total, WINDOW):
                yield self._window(offset, min(WINDOW, total - offset))
        elif total:
            yield memoryview(self._gathered().data).toreadonly()

    @property
    def _direct(self) -> bool:
        """Whether the bytes can be taken as they stand."""
        value = self._value
        return not (
            value.negated
            or value.dtype.kind == "bool"
            or (self._storage.big_endian and value.dtype.itemsize != 1)
        ) and _is_contiguous(value.shape, value.strides)

    def _window(self, offset: int, length: int) -> memoryview:
        size = self._value.dtype.itemsize
        assert size is not None
        nbytes = math.prod(self._value.shape) * size
        start = self._value.offset * size
        return self._read(start + offset, length, whole=(offset, length) == (0, nbytes))

    def _gathered(self) -> np.ndarray[Any, Any]:
        value = self._value
        if 0 in value.shape:
            return np.empty(0, np.uint8)
        dtype = value.dtype.stored
        extent = sum((n - 1) * s for n, s in zip(value.shape, value.strides, strict=True)) + 1
        raw = self._read(value.offset * dtype.itemsize, extent * dtype.itemsize, whole=True)
        code = np.dtype(f"u{dtype.itemsize}") if dtype.kind == "V" else dtype
        if self._storage.big_endian:
            code = code.newbyteorder(">")
        strides = [step * dtype.itemsize for step in value.strides]
        view = np.lib.stride_tricks.as_strided(
            np.frombuffer(raw, code), value.shape, strides, writeable=False
        )
        if value.dtype.kind == "bool":
            return np.ascontiguousarray(view != 0).view(np.uint8).reshape(-1)  # S145
        array = np.ascontiguousarray(view, dtype=code.newbyteorder("<")).reshape(-1)
        return _negative(array, value) if value.negated else array.view(np.uint8)

    def _read(self, offset: int, length: int, *, whole: bool) -> memoryview:
        storage = self._value.storage
        size = self._value.dtype.itemsize
        assert size is not None
        declared = storage.count * (size if storage.dtype is not None else 1)
        entire = whole and (offset, length) == (0, declared)
        try:
            return self._storage.read(offset, length, whole=entire)
        except FormatError as error:
            raise type(error)(f"tensor {self._name!r}: {error}") from error


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether strides are those of a row-major tensor; they do not matter for sizes up to 1."""
    expected = 1
    for size, step in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and step != expected:
            return False
        expected *= max(size, 1)
    return True


def _negative(array: np.ndarray[Any, Any], value: TensorValue) -> np.ndarray[Any, Any]:
    """Return the bytes of the negated values; floats by their sign bit, so bf16 needs no dtype."""
    if value.dtype.kind != "float":
        negated: np.ndarray[Any, Any] = np.negative(array)
        return negated.view(np.uint8)
    bits = array.view(f"<u{array.itemsize}")
    flipped: np.ndarray[Any, Any] = bits ^ bits.dtype.type(1 << (8 * array.itemsize - 1))
    return flipped.view(np.uint8)


def tensor_of(name: str, value: TensorValue, storage: StorageBytes) -> PackTensor:
    """Return the tensor of a checkpoint's value. Reads nothing."""
    size = value.dtype.itemsize
    assert size is not None
    nbytes = math.prod(value.shape) * size
    return PackTensor(name, value.dtype, value.shape, nbytes, StridedData(name, value, storage))
