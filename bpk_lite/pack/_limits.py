"""What a reader accepts at most, and a writer too: a pack that we write, we read (C78, C94)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]

U64_MAX = (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Upper bounds, all inclusive. The defaults are those of Burn 0.22.1 (C78).

    Attributes:
        metadata: bytes of CBOR metadata.
        tensors: number of tensors.
        tensor_bytes: bytes of one tensor.
        file_bytes: bytes of a whole file; not applied to packs in memory.
        depth: nesting of the CBOR.
        copies: how many times the pack's own size `load(copy=True)` may fill with copies. Ranges
            may overlap, so a small file can describe many large tensors; views of them cost
            nothing, copies would.
    """

    metadata: int = 100 << 20
    tensors: int = 100_000
    tensor_bytes: int = 10 << 30
    file_bytes: int = 100 << 30
    depth: int = 128
    copies: int = 4


DEFAULT_LIMITS = Limits()
