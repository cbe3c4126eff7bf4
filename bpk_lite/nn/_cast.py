"""Conversion between element types, element by element as Burn does it (R28, R29).

numpy's casts differ from Burn's in places: they wrap integers that are out of range, turn NaN into
some integer, round binary64 to half precision in one step, and know no BF16. So each step is made
here, on arrays of *stored* elements (`DType.stored`, BF16 as its bits), and what Burn panics on is
a `ValueError` that says which element was the first.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bpk_lite.pack import DType, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["bits_of", "convert", "convert_tensor", "live", "stored_of", "widen"]

_BF16_BITS: Final = np.dtype("<u2")
# dtype -> integer type of its bits, number of mantissa bits
_FORMATS: Final[dict[str, tuple[np.dtype[Any], int]]] = {
    "F64": (np.dtype("<u8"), 52),
    "F32": (np.dtype("<u4"), 23),
    "Flex32": (np.dtype("<u4"), 23),
    "F16": (np.dtype("<u2"), 10),
    "BF16": (_BF16_BITS, 7),
}


def stored_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the numpy dtype that `convert` takes and gives for `dtype`."""
    return _BF16_BITS if dtype == DType.BF16 else dtype.stored


def bits_of(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Return a live array of `dtype` as `convert` wants it; a view unless it is big-endian."""
    held = array if array.dtype.byteorder != ">" else array.astype(array.dtype.newbyteorder("<"))
    if dtype.kind == "bool":
        held = held.view(np.uint8)
    return held.view(_BF16_BITS) if dtype == DType.BF16 else held


def live(stored: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Return an array of stored elements as a param holds it; booleans become numpy's.

    A boolean is what is not zero (R29), so bytes other than 0 and 1, which Burn loads verbatim, are
    true.
    """
    if dtype.kind == "bool":
        if stored.itemsize == 1 and (not stored.size or stored.max() <= 1):
            return stored.view(np.bool_)
        result: NDArray[Any] = stored != 0
        return result
    return stored.view(dtype.numpy) if dtype == DType.BF16 else stored


def widen(bits: NDArray[Any]) -> NDArray[np.float32]:
    """Return BF16 bits as float32, exactly. Copies."""
    return (bits.view(_BF16_BITS).astype("<u4") << np.uint32(16)).view("<f4")


def convert(stored: NDArray[Any], source: DType, target: DType) -> NDArray[Any]:
    """Return elements of dtype `source` as elements of dtype `target` (R29).

    The same dtype gives the array itself, whatever its bytes are.

    Raises:
        ValueError: quantized data on either side; an element that `target` cannot hold; a boolean
            stored as a byte other than 0 and 1, unless it becomes a boolean.
    """
    if source == target:
        return stored
    _check(source, target)
    raw = np.atleast_1d(stored)  # numpy turns what it computes from no dimensions into scalars
    out: NDArray[Any]
    with np.errstate(over="ignore", invalid="ignore"):  # infinity and NaN are results here
        values = widen(raw) if source == DType.BF16 else raw
        if source == DType.BOOL and target.kind != "bool":
            _refuse(raw, raw > 1, source, target)
        if target.kind == "bool":
            out = (values != 0).astype(target.stored)
        elif target.kind == "int":
            out = _integers(values, source, target)
        else:
            out = _floats(values, raw, source, target)
    return out.reshape(stored.shape)


def convert_tensor(tensor: Tensor, target: DType) -> Tensor:
    """Return `tensor` with its elements converted to `target`.

    Where no element can be refused nothing is read: the conversion happens when the data are used.

    Raises:
        ValueError: see `convert`.
    """
    source = tensor.dtype
    if source == target:
        return tensor
    _check(source, target)
    make = partial(_converted, tensor, target)
    if target.kind == "bool" or (target.kind == "float" and source != DType.BOOL):
        return Tensor.deferred(tensor.name, target, tensor.shape, make, param_id=tensor.param_id)
    return Tensor.from_bytes(tensor.name, target, tensor.shape, make(), param_id=tensor.param_id)


def stored_of(tensor: Tensor) -> NDArray[Any]:
    """Return the stored elements of a tensor, a read-only view."""
    return np.frombuffer(tensor.buffer(), stored_dtype(tensor.dtype)).reshape(tensor.shape)


def _converted(tensor: Tensor, target: DType) -> NDArray[Any]:
    return convert(stored_of(tensor), tensor.dtype, target)


def _integers(values: NDArray[Any], source: DType, target: DType) -> NDArray[Any]:
    """Truncate toward zero; refuse NaN, infinity and what is out of range."""
    kind = target.stored
    info = np.iinfo(kind)
    if values.dtype.kind == "f":
        whole = np.trunc(values.astype("<f8"))
        # The bound above the highest integer is a power of two, which a float holds exactly.
        _refuse(values, ~((whole >= info.min) & (whole < float(info.max + 1))), source, target)
        result: NDArray[Any] = whole.astype(kind)
        return result
    if values.size and not info.min <= int(values.min()) <= int(values.max()) <= info.max:
        # As Python's integers: numpy would compare signed and unsigned ones as floats.
        outside = [not info.min <= value <= info.max for value in values.ravel().tolist()]
        _refuse(values, np.reshape(outside, values.shape), source, target)
    return values.astype(kind)


def _floats(
    values: NDArray[Any], stored: NDArray[Any], source: DType, target: DType
) -> NDArray[Any]:
    """Round to nearest even, to half precision by way of binary32; NaN keeps its top bits."""
    if (
        source.kind == "float"
        and target.stored == source.stored
        and DType.BF16
        not in {
            source,
            target,
        }
    ):
        return stored  # Flex32 and F32
    if target == DType.F64:
        out = values.astype("<f8")
    elif target == DType.F16:
        out = values.astype("<f4").astype("<f2")
    elif target == DType.BF16:
        out = _round_bf16(values.astype("<f4"))
    else:
        out = values.astype("<f4")
    if source.kind == "float":
        nans = np.isnan(values)
        if nans.any():
            bits = out.view(_FORMATS[target.name][0])
            bits[nans] = _quiet(stored[nans], source, target)
    return out


def _round_bf16(values: NDArray[np.float32]) -> NDArray[Any]:
    """Return the BF16 bits nearest to each value, ties to even; NaN comes out as anything."""
    bits = values.view("<u4")
    rounding = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    result: NDArray[Any] = ((bits + rounding) >> np.uint32(16)).astype(_BF16_BITS)
    return result


def _quiet(nans: NDArray[Any], source: DType, target: DType) -> NDArray[Any]:
    """Return the bits of NaNs in another format: sign and top payload bits kept, quiet bit set.

    Made by hand because processors, and WebAssembly, disagree about payloads.
    """
    kind, fraction = _FORMATS[source.name]
    into, room = _FORMATS[target.name]
    bits = nans.view(kind).astype("<u8")
    top = 8 * into.itemsize - 1
    sign = bits >> np.uint64(8 * kind.itemsize - 1)
    payload = bits & np.uint64((1 << fraction) - 1)
    shift = np.uint64(abs(room - fraction))
    payload = payload << shift if room > fraction else payload >> shift
    quiet = (1 << top) - (1 << room) | 1 << (room - 1)  # the exponent all ones, the quiet bit
    return (sign << np.uint64(top) | payload | np.uint64(quiet)).astype(into)


def _check(source: DType, target: DType) -> None:
    if "quantized" in {source.kind, target.kind}:
        raise ValueError(f"{source} cannot be converted to {target}: quantized data have no cast")


def _refuse(values: NDArray[Any], bad: NDArray[Any], source: DType, target: DType) -> None:
    if bad.any():
        where = [int(index) for index in np.argwhere(bad)[0]]
        raise ValueError(
            f"{source} cannot be converted to {target}: element {where} is {values[bad][0]!s}"
        )
