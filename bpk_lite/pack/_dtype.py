"""Element types of burnpack tensors: thirteen plain ones, three booleans, and quantized schemes.

A `DType` is a value: it compares, hashes and pickles, and knows its CBOR form (C34 to C38), its
size (C70) and the numpy dtype that views its bytes. bf16 is the one that numpy lacks: it is
``ml_dtypes.bfloat16`` when that package can be imported and ``uint16`` otherwise, at every entry
point alike.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from bpk_lite.pack._quant import QuantScheme

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DType"]

Kind = Literal["float", "int", "bool", "quantized"]
BoolStore = Literal["Native", "U8", "U32"]

# name -> (kind, bytes per element, little-endian numpy dtype)
_PLAIN: dict[str, tuple[Kind, int, str]] = {
    "F64": ("float", 8, "<f8"),
    "F32": ("float", 4, "<f4"),
    "Flex32": ("float", 4, "<f4"),
    "F16": ("float", 2, "<f2"),
    "BF16": ("float", 2, "<u2"),
    "I64": ("int", 8, "<i8"),
    "I32": ("int", 4, "<i4"),
    "I16": ("int", 2, "<i2"),
    "I8": ("int", 1, "|i1"),
    "U64": ("int", 8, "<u8"),
    "U32": ("int", 4, "<u4"),
    "U16": ("int", 2, "<u2"),
    "U8": ("int", 1, "|u1"),
}
_BOOL_SIZES: dict[str, int] = {"Native": 1, "U8": 1, "U32": 4}


@functools.cache
def bfloat16() -> np.dtype[Any]:
    """Return the numpy dtype that views BF16: ``ml_dtypes.bfloat16``, or ``uint16`` without it."""
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype("<u2")
    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return found


@dataclass(frozen=True, slots=True)
class DType:
    """The element type of a tensor.

    Use the constants (`DType.F32`, `DType.BOOL`, …), `DType.of` for the type of an array,
    `DType.parse` for a name, and `DType.quantized` for a scheme.

    Attributes:
        name: ``"F32"``, ``"BF16"``, …, ``"Bool"`` or ``"QFloat"``, as in the file.
        store: how a boolean is stored, ``"Native"``, ``"U8"`` or ``"U32"``; None otherwise.
        scheme: how a quantized tensor is stored; None otherwise.
    """

    name: str
    store: BoolStore | None = None
    scheme: QuantScheme | None = None

    F64: ClassVar[DType]
    F32: ClassVar[DType]
    Flex32: ClassVar[DType]
    F16: ClassVar[DType]
    BF16: ClassVar[DType]
    I64: ClassVar[DType]
    I32: ClassVar[DType]
    I16: ClassVar[DType]
    I8: ClassVar[DType]
    U64: ClassVar[DType]
    U32: ClassVar[DType]
    U16: ClassVar[DType]
    U8: ClassVar[DType]
    BOOL: ClassVar[DType]
    BOOL_U8: ClassVar[DType]
    BOOL_U32: ClassVar[DType]

    def __post_init__(self) -> None:
        if self.name == "Bool":
            valid = self.store in _BOOL_SIZES and self.scheme is None
        elif self.name == "QFloat":
            valid = self.store is None and isinstance(self.scheme, QuantScheme)
        else:
            valid = self.name in _PLAIN and self.store is None and self.scheme is None
        if not valid:
            raise ValueError(
                f"no such dtype: name={self.name!r}, store={self.store!r}, scheme={self.scheme!r}; "
                f"expected one of {', '.join(_PLAIN)}, Bool with a store, or QFloat with a scheme"
            )

    @classmethod
    def quantized(cls, scheme: QuantScheme) -> DType:
        """Return the dtype of tensors quantized by `scheme`."""
        return cls("QFloat", scheme=scheme)

    @classmethod
    def parse(cls, text: str | DType) -> DType:
        """Return the dtype that `text` names: ``"F32"``, ``"Bool"``, ``"Bool(U8)"``.

        Raises:
            ValueError: no dtype has that name; quantized types have no short name.
        """
        if isinstance(text, DType):
            return text
        found = _BY_TEXT.get(text)
        if found is None:
            raise ValueError(f"unknown dtype {text!r}; expected one of {', '.join(_BY_TEXT)}")
        return found

    @classmethod
    def of(cls, array: Any) -> DType:
        """Return the dtype that stores `array` (anything with a ``dtype``, or a numpy dtype).

        Byte order does not matter. numpy's bool is ``Bool(Native)``.

        Raises:
            TypeError: Burn has no such element type (complex, text, float8, …).
        """
        dtype = np.dtype(getattr(array, "dtype", array))
        if dtype.kind == "V" or dtype.name == "bfloat16":
            found = cls.BF16 if dtype.name == "bfloat16" else None
        else:
            found = _BY_NUMPY.get((dtype.kind, dtype.itemsize))
        if found is None:
            raise TypeError(
                f"burnpack has no element type for numpy's {dtype.name}; "
                f"cast to one of {', '.join(_PLAIN)} or bool first"
            )
        return found

    @property
    def kind(self) -> Kind:
        """``"float"``, ``"int"``, ``"bool"`` or ``"quantized"``."""
        if self.name in _PLAIN:
            return _PLAIN[self.name][0]
        return "bool" if self.name == "Bool" else "quantized"

    @property
    def itemsize(self) -> int | None:
        """Bytes per element (C70); None for quantized types, whose bytes hold scales too (C73)."""
        if self.name in _PLAIN:
            return _PLAIN[self.name][1]
        return None if self.store is None else _BOOL_SIZES[self.store]

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype of `Tensor.numpy`: bool for every boolean store, float32 for quantized."""
        if self.name == "BF16":
            return bfloat16()
        if self.name in _PLAIN:
            return np.dtype(_PLAIN[self.name][2])
        return np.dtype(np.bool_ if self.name == "Bool" else np.float32)

    @property
    def stored(self) -> np.dtype[Any]:
        """The little-endian numpy dtype of the stored elements; bytes for quantized ones."""
        if self.name == "Bool":
            return np.dtype("<u4" if self.store == "U32" else "|u1")
        return np.dtype("|u1") if self.name == "QFloat" else self.numpy

    def to_cbor(self) -> Any:
        """Return the item that stands for this dtype in the metadata (C34 to C36)."""
        if self.store is not None:
            return {"Bool": self.store}
        return self.name if self.scheme is None else {"QFloat": self.scheme.to_cbor()}

    def __str__(self) -> str:
        inner = self.store if self.scheme is None else self.scheme
        return self.name if inner is None else f"{self.name}({inner})"

    def __repr__(self) -> str:
        return f"<DType {self}>"


def float32_from_bfloat16(array: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Widen BF16 (as ``uint16`` or ``ml_dtypes.bfloat16``) to float32, exactly. Copies."""
    return (array.view("<u2").astype("<u4") << np.uint32(16)).view("<f4")


for _name in _PLAIN:
    setattr(DType, _name, DType(_name))
DType.BOOL = DType("Bool", "Native")
DType.BOOL_U8 = DType("Bool", "U8")
DType.BOOL_U32 = DType("Bool", "U32")

PLAIN_BY_NAME: Mapping[str, DType] = {name: getattr(DType, name) for name in _PLAIN}
_BY_TEXT: dict[str, DType] = {
    **PLAIN_BY_NAME,
    "Bool": DType.BOOL,
    **{str(dtype): dtype for dtype in (DType.BOOL, DType.BOOL_U8, DType.BOOL_U32)},
}
_BY_NUMPY: dict[tuple[str, int], DType] = {
    (str(np.dtype(code).kind), size): getattr(DType, name)
    for name, (_, size, code) in _PLAIN.items()
    if name not in {"Flex32", "BF16"}
} | {("b", 1): DType.BOOL}
