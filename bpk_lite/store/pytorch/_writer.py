"""A state dict as `torch.save` writes it, for ``torch.load(..., weights_only=True)``.

The pickle names two functions and the storage classes, nothing else. It is put together here from
opcodes, because Python's pickler asks for the real functions, and PyTorch need not be installed.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from bpk_lite.nn._cast import convert_tensor
from bpk_lite.pack import DType, PlanError
from bpk_lite.store._errors import NameCollision, UnsupportedDType
from bpk_lite.store._zip_plan import ZipEntry, ZipPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bpk_lite.pack import Tensor

__all__ = ["state_dict_plan"]

_STORAGES = {
    "F64": "DoubleStorage", "F32": "FloatStorage", "F16": "HalfStorage", "BF16": "BFloat16Storage",
    "I64": "LongStorage", "I32": "IntStorage", "I16": "ShortStorage", "I8": "CharStorage",
    "U8": "ByteStorage", "Bool": "BoolStorage",
}  # fmt: skip
# without a storage class of their own: an untyped storage, and the dtype beside it
_DTYPES = {"U64": "uint64", "U32": "uint32", "U16": "uint16"}
_MARK, _TUPLE, _REDUCE, _EMPTY_TUPLE, _FALSE = b"(", b"t", b"R", b")", b"\x89"
_PERSISTENT = b"Q"


def state_dict_plan(
    tensors: Iterable[Tensor], values: Mapping[str, bool | int | float] | None = None
) -> ZipPlan:
    """Lay out a PyTorch checkpoint: a dict from name to tensor, and to plain numbers.

    Args:
        tensors: in the order of the dict. Bools become bytes 0 and 1; parameter ids are lost.
        values: numbers to put beside them.

    Raises:
        UnsupportedDType: a quantized tensor.
        NameCollision: a number and a tensor of one name.
        PlanError: two tensors of one name.
    """
    kept: dict[str, Tensor] = {}
    for tensor in tensors:
        tensor.check()
        if tensor.name in kept:
            raise PlanError(f"two tensors are named {tensor.name!r}")
        kept[tensor.name] = _plain(tensor)
    for name in values or {}:
        if name in kept:
            raise NameCollision(f"a scalar and a tensor are both named {name!r}")
    body = [_text(name) + _tensor(key, one) for key, (name, one) in enumerate(kept.items())]
    body += [_text(name) + _number(value) for name, value in (values or {}).items()]
    pickle = b"\x80\x02}" + _MARK + b"".join(body) + b"u."
    return ZipPlan(
        [
            ZipEntry("archive/data.pkl", pickle),
            ZipEntry("archive/byteorder", b"little"),
            *(ZipEntry(f"archive/data/{key}", tensor=one) for key, one in enumerate(kept.values())),
            ZipEntry("archive/version", b"3\n"),
        ],
        kept.values(),
    )


def _plain(tensor: Tensor) -> Tensor:
    """Return a tensor in an element type of PyTorch."""
    if tensor.dtype.kind == "quantized":
        raise UnsupportedDType(
            f"tensor {tensor.name!r} is {tensor.dtype}: PyTorch has no such type; dequantize it"
        )
    if tensor.dtype.kind == "bool":
        return convert_tensor(tensor, DType.BOOL)
    return convert_tensor(tensor, DType.F32) if tensor.dtype.name == "Flex32" else tensor


def _tensor(key: int, tensor: Tensor) -> bytes:
    name = tensor.dtype.name
    typed = name in _STORAGES
    count = tensor.size if typed else tensor.nbytes
    strides, step = [], 1
    for dim in reversed(tensor.shape):
        strides.append(step)
        step *= max(dim, 1)
    storage = (
        _global("torch", _STORAGES[name]) if typed else _global("torch.storage", "UntypedStorage")
    )
    parts = [
        _tuple(_text("storage"), storage, _text(str(key)), _text("cpu"), _number(count)),
        _PERSISTENT,
        _number(0),
        _tuple(*map(_number, tensor.shape)),
        _tuple(*map(_number, reversed(strides))),
        _FALSE,
        _global("collections", "OrderedDict") + _EMPTY_TUPLE + _REDUCE,
    ]
    if not typed:
        parts.append(_global("torch", _DTYPES[name]))
    rebuild = _global("torch._utils", "_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3")
    return rebuild + _tuple(*parts) + _REDUCE


def _tuple(*parts: bytes) -> bytes:
    return _MARK + b"".join(parts) + _TUPLE


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _text(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    return b"X" + len(raw).to_bytes(4, "little") + raw


def _number(value: bool | float) -> bytes:
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if not isinstance(value, int):
        return b"G" + struct.pack(">d", value)
    if 0 <= value < 256:
        return b"K" + value.to_bytes(1, "little")
    raw = value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True)
    return b"\x8a" + len(raw).to_bytes(1, "little") + raw
