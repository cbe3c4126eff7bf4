"""Quantization schemes: what the metadata says of a QFloat tensor, and its byte layout.

Rules C36 to C42, C73, C127, C128. The container keeps quantized bytes as they are. What can be
said about them without guessing is here: the length that the layout asks for, and the values of
`Native` stores (one byte a code). Packed stores stay opaque, because releases pack them
differently and no file tells which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import cbor2
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["QuantScheme"]

ScaleDType = Literal["F32", "F16", "BF16", "UE8M0", "UE4M3"]
StoreKind = Literal["Native", "PackedNative", "PackedU32"]

VALUE_BITS: dict[str, int] = {
    "Q8F": 8, "Q8S": 8, "E4M3": 8, "E5M2": 8, "Q4F": 4, "Q4S": 4, "E2M1": 4, "Q2F": 2, "Q2S": 2,
}  # fmt: skip
SCALE_SIZES: dict[str, int] = {"F32": 4, "F16": 2, "BF16": 2, "UE8M0": 1, "UE4M3": 1}
STORES = ("Native", "PackedNative", "PackedU32")
MODES = ("Symmetric", "Lookup")
MAX_BLOCK_RANK = 5


@dataclass(frozen=True, slots=True)
class QuantScheme:
    """How a quantized tensor is stored.

    Attributes:
        value: the code of an element: ``"Q8S"``, ``"Q4F"``, ``"E4M3"``, …
        store: ``"Native"`` (one byte a code), ``"PackedNative"`` or ``"PackedU32"``.
        packed_dim: for packed stores the packed dimension, counted from the innermost.
        mode: ``"Symmetric"`` or ``"Lookup"``.
        tensor: dtype of the scale of the whole tensor, or None.
        block: block size of the block level, outermost dimension first, or None.
        block_dtype: dtype of the block scales; None exactly when `block` is.
        storage: the five stored numbers of the block size, kept so that a foreign, non-canonical
            one is written back as it was (C69); made from `block` when not given.
        foreign: the whole scheme in CBOR when the file's had fields that this release does not
            know, as those of Burn before 0.22 have (C68). Such a tensor is opaque, and its scheme
            is written back as it was.
    """

    value: str
    store: StoreKind = "PackedU32"
    packed_dim: int | None = None
    mode: str = "Symmetric"
    tensor: str | None = None
    block: tuple[int, ...] | None = None
    block_dtype: str | None = None
    storage: tuple[int, ...] | None = None
    foreign: bytes | None = None

    def __post_init__(self) -> None:
        if self.value not in VALUE_BITS:
            raise ValueError(
                f"quantized value is one of {', '.join(VALUE_BITS)}, not {self.value!r}"
            )
        if self.store not in STORES:
            raise ValueError(f"quantized store is one of {', '.join(STORES)}, not {self.store!r}")
        if self.mode not in MODES:
            raise ValueError(f"quantized mode is one of {', '.join(MODES)}, not {self.mode!r}")
        if self.store == "Native":
            if self.packed_dim is not None:
                raise ValueError("a Native store has no packed dimension")
        elif self.packed_dim is None:
            object.__setattr__(self, "packed_dim", 0)
        for dtype in (self.tensor, self.block_dtype):
            if dtype is not None and dtype not in SCALE_SIZES:
                raise ValueError(f"scale dtype is one of {', '.join(SCALE_SIZES)}, not {dtype!r}")
        if (self.block is None) != (self.block_dtype is None):
            raise ValueError("a block size and a block scale dtype go together")
        if self.block is not None:
            self._check_block(self.block)

    def _check_block(self, block: tuple[int, ...]) -> None:
        if len(block) > MAX_BLOCK_RANK or not all(0 <= size <= 255 for size in block):
            raise ValueError(f"a block size has up to 5 numbers of 0 to 255, not {list(block)}")
        if self.storage is None:
            # C38: leading ones are dropped, unused slots hold 1.
            first = next((i for i, size in enumerate(block) if size != 1), len(block))
            block = block[first:]
            object.__setattr__(self, "block", block)
            object.__setattr__(self, "storage", block + (1,) * (MAX_BLOCK_RANK - len(block)))
        elif len(self.storage) != MAX_BLOCK_RANK or self.storage[: len(block)] != block:
            raise ValueError(
                f"storage {list(self.storage)} does not begin with block {list(block)}"
            )

    def to_cbor(self) -> dict[str, Any]:
        """Return the five-entry map of the metadata (C36), or the map as a foreign file had it."""
        if self.foreign is not None:
            return cast("dict[str, Any]", cbor2.loads(self.foreign))
        block = None
        if self.block is not None and self.storage is not None:
            size = {"storage": list(self.storage), "len": len(self.block)}
            block = {"size": size, "dtype": self.block_dtype}
        return {
            "value": self.value,
            "store": "Native" if self.store == "Native" else {self.store: self.packed_dim},
            "mode": self.mode,
            "tensor": self.tensor,
            "block": block,
        }

    @property
    def two_level(self) -> bool:
        """Whether blocks and the whole tensor both have scales; the latter is then F32 and last."""
        return self.block is not None and self.tensor is not None

    @property
    def scale_dtype(self) -> str:
        """Dtype of the (block) scales: the block level's, else the tensor level's, else F32."""
        return self.block_dtype or self.tensor or "F32"

    def layout(self, shape: Sequence[int]) -> tuple[int, int, int] | None:
        """Return the layout of a tensor of `shape` as (value bytes, number of scales, total bytes).

        None where the scheme cannot describe such a shape: a packed dimension outside the rank, a
        block of more dimensions than the tensor, a block size of 0. Python integers: no overflow.
        """
        values = self._value_bytes(shape)
        scales = self._scale_count(shape)
        if values is None or scales is None:
            return None
        total = values + scales * SCALE_SIZES[self.scale_dtype] + (4 if self.two_level else 0)
        return values, scales, total

    def _value_bytes(self, shape: Sequence[int]) -> int | None:
        bits = VALUE_BITS[self.value]
        count = math.prod(shape)
        if self.store == "Native":
            return count
        stored = 32 if self.store == "PackedU32" else bits * (2 if self.value == "E2M1" else 1)
        per_word = stored // bits
        rank = len(shape)
        if per_word > 1 and rank >= 1:
            assert self.packed_dim is not None
            if self.packed_dim >= rank:
                return None
            axis = rank - 1 - self.packed_dim
            lines = math.prod(shape[:axis]) * math.prod(shape[axis + 1 :])
            words = lines * -(-shape[axis] // per_word)
        else:
            words = -(-count // per_word)
        return words * -(-stored // 8)

    def _scale_count(self, shape: Sequence[int]) -> int | None:
        if self.block is None:
            return 1
        if len(self.block) > len(shape) or 0 in self.block:
            return None
        sizes = (1,) * (len(shape) - len(self.block)) + self.block
        return math.prod(-(-dim // size) for dim, size in zip(shape, sizes, strict=True))

    def opaque_reason(self, shape: Sequence[int], nbytes: int) -> str | None:
        """Say why the values of such a tensor cannot be told; None if they can (C128)."""
        if self.foreign is not None:
            return "its quantization scheme has unknown fields, as those of Burn before 0.22 have"
        if self.store != "Native":
            return f"a {self.store} store is packed differently by different releases of Burn"
        if self.mode != "Symmetric":
            return "a Lookup scheme stores no table of values"
        layout = self.layout(shape)
        if layout is None:
            return "its block does not fit its shape"
        if layout[2] != nbytes:
            return f"it holds {nbytes} bytes where its scheme asks for {layout[2]}"
        return None

    def dequantize(
        self, data: memoryview, shape: Sequence[int]
    ) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return the float32 values of a `Native` symmetric tensor: code x scale. Copies.

        `opaque_reason` must be None for it.
        """
        layout = self.layout(shape)
        assert layout is not None
        count, scales, _ = layout
        codes = _codes(np.frombuffer(data, np.uint8, count), self.value).reshape(shape)
        end = count + scales * SCALE_SIZES[self.scale_dtype]
        scale = _scales(np.frombuffer(data, np.uint8)[count:end], self.scale_dtype)
        if self.two_level:
            scale = scale * np.frombuffer(data, "<f4", 1, end)
        if self.block is None:
            return np.asarray(codes * scale[0], dtype=np.float32)
        sizes = (1,) * (len(shape) - len(self.block)) + self.block
        grid = scale.reshape([-(-dim // size) for dim, size in zip(shape, sizes, strict=True)])
        for axis, (dim, size) in enumerate(zip(shape, sizes, strict=True)):
            grid = grid.repeat(size, axis=axis).take(range(dim), axis=axis)
        return np.asarray(codes * grid, dtype=np.float32)

    def code_values(self) -> np.ndarray[Any, Any]:
        """Return what each of the 256 bytes means in a `Native` store, before it is scaled.

        Integers as int64, small floats as float64.
        """
        values = _codes(np.arange(256, dtype=np.uint8), self.value)
        return values.astype(np.float64 if self.value in _FLOAT_CODES else np.int64)

    def __str__(self) -> str:
        parts = [
            self.value,
            self.store if self.store == "Native" else f"{self.store}({self.packed_dim})",
        ]
        if self.mode != "Symmetric":
            parts.append(self.mode)
        if self.block is not None:
            parts.append(f"block {list(self.block)} {self.block_dtype}")
        if self.tensor is not None:
            parts.append(f"tensor {self.tensor}")
        if self.foreign is not None:
            parts.append("unknown fields")
        return ", ".join(parts)


def _small_floats(exponent_bits: int, mantissa_bits: int, kind: str) -> np.ndarray[Any, Any]:
    """Return the value of every code of a small float format (OCP 8-bit and 4-bit formats)."""
    codes = np.arange(1 << (1 + exponent_bits + mantissa_bits))
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    fraction = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    bias = (1 << (exponent_bits - 1)) - 1
    normal = (1 + fraction) * 2.0 ** (exponent - bias)
    value = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), normal)
    top = exponent == (1 << exponent_bits) - 1
    if kind == "ieee":
        value = np.where(top, np.where(fraction == 0, np.inf, np.nan), value)
    elif kind == "nan-only":  # E4M3: no infinities, all ones is NaN
        value = np.where(top & (fraction == (1 - 2.0**-mantissa_bits)), np.nan, value)
    signed: np.ndarray[Any, Any] = np.where(codes >> (exponent_bits + mantissa_bits), -value, value)
    return signed.astype(np.float32)


def _codes(raw: np.ndarray[Any, Any], value: str) -> np.ndarray[Any, Any]:
    if value in _FLOAT_CODES:
        # E2M1 has four bits, in a byte of its own under `Native`
        values: np.ndarray[Any, Any] = _small_floats(*_FLOAT_CODES[value])[
            raw & 0x0F if value == "E2M1" else raw
        ]
        return values
    return raw.view(np.int8).astype(np.float32)


_FLOAT_CODES = {"E4M3": (4, 3, "nan-only"), "E5M2": (5, 2, "ieee"), "E2M1": (2, 1, "finite")}


def _scales(raw: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Decode scales to float32 (C127)."""
    if dtype == "UE4M3":
        return _codes(raw & 0x7F, "E4M3")
    if dtype == "UE8M0":
        powers: np.ndarray[Any, Any] = np.exp2(raw.astype(np.float64) - 127)
        powers[raw == 255] = np.nan
        return powers.astype(np.float32)
    if dtype == "BF16":
        return (raw.view("<u2").astype("<u4") << np.uint32(16)).view("<f4")
    return raw.view("<f4" if dtype == "F32" else "<f2").astype(np.float32)
