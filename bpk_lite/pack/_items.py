"""Items of decoded metadata into values. Each complaint says where, what was found and expected.

The paths in complaints are those of the file: ``tensors['fc.weight'].shape[1]``.
"""

from __future__ import annotations

from typing import Any, NoReturn, cast

import cbor2

from bpk_lite.pack._dtype import PLAIN_BY_NAME, DType
from bpk_lite.pack._errors import MetadataDeserializationError
from bpk_lite.pack._limits import U64_MAX
from bpk_lite.pack._quant import MAX_BLOCK_RANK, QuantScheme
from bpk_lite.pack._scalar import Scalar

__all__ = ["dictionary_of", "dtype_of", "require_fields", "scalar_of", "unsigned_of", "wrong"]


def dtype_of(where: str, raw: Any) -> DType:
    """Return the dtype that an item stands for (C34 to C36)."""
    if type(raw) is str:
        found = PLAIN_BY_NAME.get(raw)
        if found is not None:
            return found
    elif type(raw) is dict and len(raw) == 1:
        ((variant, payload),) = raw.items()
        if variant == "Bool" and payload in ("Native", "U8", "U32"):
            return DType("Bool", payload)
        if variant == "QFloat" and type(payload) is dict:
            return DType.quantized(_scheme(f"{where}.QFloat", payload))
    return wrong(where, raw, f"one of {', '.join(PLAIN_BY_NAME)}, a Bool with a store, or a QFloat")


def _scheme(where: str, raw: dict[Any, Any]) -> QuantScheme:
    require_fields(where, raw, ("value", "store", "mode"))
    kind: Any = raw["store"]
    packed_dim = None
    if type(raw["store"]) is dict and len(raw["store"]) == 1:
        ((kind, packed_dim),) = raw["store"].items()
        unsigned_of(f"{where}.store", packed_dim)
        if kind == "Native":
            wrong(f"{where}.store", raw["store"], "Native without a payload")
    elif kind != "Native":
        wrong(f"{where}.store", kind, "Native, or PackedNative or PackedU32 with a dimension")
    tensor, block = (_optional(raw, key) for key in ("tensor", "block"))
    sizes = storage = block_dtype = None
    if block is not None:
        if type(block) is not dict:
            wrong(f"{where}.block", block, "a map")
        require_fields(f"{where}.block", block, ("size", "dtype"))
        block_dtype = block["dtype"]
        sizes, storage = _block_size(f"{where}.block.size", block["size"])
    unknown = raw.keys() - {"value", "store", "mode", "tensor", "block"}
    try:
        return QuantScheme(
            raw["value"],
            kind,
            packed_dim,
            raw["mode"],
            tensor,
            sizes,
            block_dtype,
            storage,
            foreign=cbor2.dumps(raw) if unknown else None,
        )
    except (ValueError, TypeError) as error:
        raise MetadataDeserializationError(f"{where}: {error}") from error


def _block_size(where: str, raw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if type(raw) is not dict:
        wrong(where, raw, "a map")
    require_fields(where, raw, ("storage", "len"))
    storage, length = raw["storage"], raw["len"]
    if type(storage) is not list or len(storage) != MAX_BLOCK_RANK:
        wrong(f"{where}.storage", storage, "an array of five numbers")
    for item in (*storage, length):
        if unsigned_of(where, item) > 255:
            wrong(where, item, "0 to 255")
    if length > MAX_BLOCK_RANK:
        wrong(f"{where}.len", length, "0 to 5")
    return tuple(storage[:length]), tuple(storage)


def scalar_of(where: str, raw: Any) -> Scalar:
    """Return the scalar that an item stands for."""
    if type(raw) is not dict or len(raw) != 1:
        wrong(where, raw, "a map of one entry: Int, UInt, Float or Bool")
    ((kind, value),) = raw.items()
    try:
        return Scalar(kind, value)
    except (ValueError, TypeError) as error:
        raise MetadataDeserializationError(f"{where}: {error}") from error


def _optional(raw: dict[Any, Any], key: str) -> Any:
    """Return a field that may be absent, null or undefined (C47)."""
    value = raw.get(key)
    return None if value is cbor2.undefined else value


def unsigned_of(where: str, raw: Any) -> int:
    """Return an integer of 0 to 2^64 - 1."""
    if type(raw) is not int or not 0 <= raw <= U64_MAX:
        wrong(where, raw, "an integer of 0 to 2^64 - 1")
    return raw


def require_fields(where: str, raw: dict[Any, Any], required: tuple[str, ...]) -> None:
    """Check that a map has text for keys, and these among them."""
    _text_keys(where, raw)
    missing = [name for name in required if name not in raw]
    if missing:
        raise MetadataDeserializationError(f"{where}: no field {' and no field '.join(missing)}")


def dictionary_of(where: str, raw: Any) -> dict[str, Any]:
    """Return a map with text for keys."""
    if type(raw) is not dict:
        wrong(where, raw, "a map")
    _text_keys(where, raw)
    return cast("dict[str, Any]", raw)


def _text_keys(where: str, raw: dict[Any, Any]) -> None:
    if not set(map(type, raw)) <= {str}:
        key = next(key for key in raw if type(key) is not str)
        wrong(f"{where}: the key", key, "text")


def wrong(where: str, found: Any, expected: str) -> NoReturn:
    """Raise the error of an item that is not what it should be."""
    shown = repr(found)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    raise MetadataDeserializationError(f"{where} is {shown}, expected {expected}")
