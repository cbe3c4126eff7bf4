"""The few calls in a pickle whose meaning is known; all others stay inert.

Rules S134, S135, S140, S141.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bpk_lite.pack import DType
from bpk_lite.store._errors import PickleError
from bpk_lite.store.pytorch._values import (
    Global,
    Opaque,
    StorageValue,
    TensorValue,
    Unsupported,
    short,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["call", "storage_reference"]

_U63 = 1 << 63
_STORAGES: dict[str, DType] = {
    "FloatStorage": DType.F32,
    "DoubleStorage": DType.F64,
    "HalfStorage": DType.F16,
    "BFloat16Storage": DType.BF16,
    "LongStorage": DType.I64,
    "IntStorage": DType.I32,
    "ShortStorage": DType.I16,
    "CharStorage": DType.I8,
    "ByteStorage": DType.U8,
    "BoolStorage": DType.BOOL,
}
_NAMED: dict[str, DType] = {
    "float32": DType.F32, "float": DType.F32, "float64": DType.F64, "double": DType.F64,
    "float16": DType.F16, "half": DType.F16, "bfloat16": DType.BF16, "int64": DType.I64,
    "long": DType.I64, "int32": DType.I32, "int": DType.I32, "int16": DType.I16, "short": DType.I16,
    "int8": DType.I8, "uint8": DType.U8, "uint16": DType.U16, "uint32": DType.U32,
    "uint64": DType.U64, "bool": DType.BOOL,
}  # fmt: skip


def call(function: Any, args: tuple[Any, ...]) -> Any:
    """Return what calling `function` would give: a value whose meaning is known, or an `Opaque`.

    Raises:
        PickleError: a known call with arguments that cannot be.
    """
    if not isinstance(function, Global):
        return Opaque(type_name(function), args)
    known = _KNOWN.get((function.module, function.name))
    return Opaque(str(function), args) if known is None else known(args)


def storage_reference(reference: Any) -> StorageValue:
    """Return the storage that a persistent id names (S134).

    Raises:
        PickleError: not a storage reference, or a view outside of it.
    """
    if not isinstance(reference, tuple) or len(reference) < 5 or reference[0] != "storage":
        raise PickleError(f"a persistent id is no storage reference: {short(reference)}")
    _, kind, key, _, count, *more = reference
    name = kind.name if isinstance(kind, Global) else str(kind).rpartition(".")[2]
    if not isinstance(kind, Global | str) or not isinstance(key, str | int) or not _size(count):
        raise PickleError(f"a storage reference is malformed: {short(reference)}")
    dtype = _STORAGES.get(name)
    untyped = name == "UntypedStorage"
    if dtype is None and not untyped and not name.endswith("Storage"):
        raise PickleError(f"{name!r} is no class of storages")
    view = more[0] if more else None
    offset, length = 0, count
    if view is not None:
        if (
            untyped
            or not isinstance(view, tuple)
            or len(view) != 3
            or not all(map(_size, view[1:]))
        ):
            raise PickleError(f"a view of storage {key!r} is malformed: {short(view)}")
        offset, length = view[1:]
        if offset + length > count:
            raise PickleError(
                f"a view of elements {offset} to {offset + length} lies outside of storage {key!r} "
                f"of {count}"
            )
    return StorageValue(str(key), dtype, count, offset, length, name)


def _size(value: Any) -> bool:
    return type(value) is int and 0 <= value < _U63


def _ordered(args: tuple[Any, ...]) -> dict[Any, Any]:
    """`collections.OrderedDict`: empty, or from a list of pairs."""
    if not args:
        return {}
    pairs = args[0]
    if isinstance(pairs, dict):
        return dict(pairs)
    try:
        return {key: value for key, value in pairs}  # noqa: C416  # pairs of any kind
    except (TypeError, ValueError) as error:
        raise PickleError(f"an OrderedDict is not made of pairs: {error}") from error


def _list(args: tuple[Any, ...]) -> list[Any]:
    """`set` and `frozenset`: their elements."""
    if len(args) > 1 or not all(isinstance(one, list | tuple) for one in args):
        raise PickleError(f"a set is made of a list, not of {short(args)}")
    return list(*args)


def _encoded(args: tuple[Any, ...]) -> Any:
    """`_codecs.encode`: how protocols up to 2 write bytes (S241)."""
    if len(args) == 2 and isinstance(args[0], str) and args[1] in ("latin1", "latin-1"):
        try:
            return args[0].encode("latin-1")
        except UnicodeEncodeError as error:
            raise PickleError(f"bytes are not written as latin-1: {error}") from error
    return Opaque("_codecs.encode", args)


def _tensor(args: tuple[Any, ...], least: int, dtype: Any = None, metadata: Any = None) -> Any:
    """Build a tensor of storage, offset, sizes and strides (S140, S141)."""
    if len(args) < least:
        raise PickleError(f"a tensor is made of {least} arguments or more, not {len(args)}")
    storage, offset, shape, strides = args[:4]
    if isinstance(storage, Unsupported):
        return storage
    if not isinstance(storage, StorageValue):
        raise PickleError(f"a tensor is made of a {type_name(storage)}, not of a storage")
    found = _element_type(storage, dtype)
    if isinstance(found, Unsupported):
        return found
    shape, strides = _dims(shape, "sizes"), _dims(strides, "strides")
    if not _size(offset) or len(shape) != len(strides):
        raise PickleError(
            f"a tensor of sizes {list(shape)} has strides {list(strides)} and offset "
            f"{short(offset)}"
        )
    size = found.itemsize
    assert size is not None
    # an untyped storage counts bytes, and so does its length
    count = storage.length if storage.dtype is not None else storage.length // size
    extent = offset
    if 0 not in shape:
        extent += sum((dim - 1) * step for dim, step in zip(shape, strides, strict=True)) + 1
    if extent > count:
        raise PickleError(
            f"a tensor of sizes {list(shape)} and strides {list(strides)} needs {extent} elements, "
            f"but storage {storage.key!r} declares {count}"
        )
    negated = isinstance(metadata, dict) and metadata.get("neg") is True
    return TensorValue(storage, found, storage.offset + offset, shape, strides, negated)


def _element_type(storage: StorageValue, dtype: Any) -> DType | Unsupported:
    if dtype is None:
        if storage.dtype is not None:
            return storage.dtype
        if storage.kind == "UntypedStorage":
            raise PickleError(f"a tensor of untyped storage {storage.key!r} names no element type")
        return Unsupported(f"elements of {storage.kind} have no type in Burn")
    name = dtype.name if isinstance(dtype, Global) else str(dtype)
    found = _NAMED.get(name)
    if found is None:
        return Unsupported(f"elements of torch.{name} have no type in Burn")
    if storage.dtype is not None and storage.dtype != found:
        raise PickleError(f"storage {storage.key!r} holds {storage.dtype}, the tensor says {found}")
    return found


def _dims(value: Any, what: str) -> tuple[int, ...]:
    if not isinstance(value, tuple | list) or not all(map(_size, value)):
        raise PickleError(f"the {what} of a tensor are {short(value)}, expected unsigned integers")
    return tuple(value)


def _parameter(args: tuple[Any, ...]) -> Any:
    """`torch.nn.Parameter` around a tensor; hooks and extra state play no role."""
    if not args:
        raise PickleError("a parameter is made of nothing")
    return args[0]


def _from_type(args: tuple[Any, ...]) -> Any:
    """`torch._tensor._rebuild_from_type_v2`: function, type, its arguments, state."""
    if len(args) < 3 or not isinstance(args[2], tuple):
        raise PickleError("a tensor of a subclass is made of function, type and arguments")
    made = call(args[0], args[2])
    return made if isinstance(made, TensorValue | Unsupported) else Opaque(type_name(args[1]), args)


_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): _ordered,
    ("_codecs", "encode"): _encoded,
    ("torch._utils", "_rebuild_tensor"): lambda args: _tensor(args, 4),
    ("torch._utils", "_rebuild_tensor_v2"): lambda args: _tensor(
        args, 6, metadata=args[6] if len(args) > 6 else None
    ),
    ("torch._utils", "_rebuild_tensor_v3"): lambda args: _tensor(
        args, 7, args[6] if len(args) > 6 else None, args[7] if len(args) > 7 else None
    ),
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter,
    ("torch._tensor", "_rebuild_from_type_v2"): _from_type,
    **{
        (module, name): _list
        for module in ("builtins", "__builtin__")
        for name in ("set", "frozenset")
    },
}
