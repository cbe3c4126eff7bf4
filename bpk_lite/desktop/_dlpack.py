"""bfloat16 through DLPack, which numpy alone refuses.

numpy exports and imports ``uint16`` of the same bits. A DLPack capsule says its element type in one
byte of a C struct, so the capsule of the one is made the capsule of the other by changing that byte
(dlpack.h, versions 0.x and 1.x; little-endian 64-bit and 32-bit layouts).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

__all__ = ["export_bfloat16", "host_bfloat16", "import_bfloat16"]

_UINT = 1  # kDLUInt
_BFLOAT = 4  # kDLBfloat


class _Tensor(ctypes.Structure):
    """The beginning of ``DLTensor``, up to the element type."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """``DLManagedTensorVersioned``, which has the tensor last."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


def export_bfloat16(bits: np.ndarray[Any, Any], **keywords: Any) -> Any:
    """Return a DLPack capsule of bfloat16 over an array of its ``uint16`` bits. No copy."""
    capsule = bits.__dlpack__(**keywords)
    _retype(capsule, _BFLOAT)
    return capsule


def import_bfloat16(value: Any) -> np.ndarray[Any, Any]:
    """Return the ``uint16`` bits of another library's bfloat16 tensor on the CPU. No copy.

    Raises:
        BufferError: the tensor lies on another device, or the library refuses.
    """
    device, _ = value.__dlpack_device__()
    if device != 1:
        raise BufferError("the tensor does not lie in CPU memory; move it there first")
    return np.from_dlpack(_Bits(value))


def host_bfloat16(value: Any) -> np.ndarray[Any, Any]:
    """Return the ``uint16`` bits of a bfloat16 tensor on any device. Copied by its own library.

    Raises:
        BufferError: the library cannot hand it to the host.
    """
    return np.from_dlpack(_Bits(value), device="cpu")


class _Bits:
    """Another library's bfloat16 tensor, posing as one of uint16."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __dlpack__(self, **keywords: Any) -> Any:
        try:
            capsule = self._value.__dlpack__(**keywords)
        except TypeError:
            capsule = self._value.__dlpack__()  # a library older than DLPack 1.0
        _retype(capsule, _UINT)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _retype(capsule: Any, code: int) -> None:
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = (
        ctypes.c_void_p,
        [ctypes.py_object, ctypes.c_char_p],
    )
    name = name_of(capsule)
    address = pointer_of(capsule, name)
    if name == b"dltensor_versioned":
        tensor = _Versioned.from_address(address).tensor
    else:
        tensor = _Tensor.from_address(address)  # first in DLManagedTensor
    if tensor.bits != 16 or tensor.lanes != 1:
        raise BufferError(f"expected 16-bit elements, found {tensor.bits} x {tensor.lanes}")
    tensor.code = code
