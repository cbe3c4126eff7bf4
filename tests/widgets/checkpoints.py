"""Checkpoints for the widget's tests, and a source that counts what is read of it."""

from __future__ import annotations

from typing import Any

import numpy as np

import bpk_lite as bpk

HOSTILE = [
    "<img src=x onerror=window.ran=1>",
    "</script><script>window.ran=2</script>",
    "javascript:window.ran=3",
    "\u202eevil.\u202dorder",
    "zero\u200bwidth\ufeff",
    "line\nbreak\x00nul\x1b[31m",
    "${window.ran=4}{{window.ran=5}}",
    "\"quote's & ampersand;",
    "",
    ".",
    "..",
    "a" * 5000,
    ".".join("x" * 1000),
]


def network() -> dict[str, Any]:
    """Return the arrays of a small transformer, of several types and ranks."""
    random = np.random.default_rng(7)

    def normal(*shape: int, dtype: str = "f4") -> Any:
        return random.normal(0, 0.05, shape).astype(dtype)

    made: dict[str, Any] = {"embed.weight": normal(256, 64)}
    for layer in range(12):
        for name in "qkv":
            made[f"layers.{layer}.attention.{name}.weight"] = normal(64, 64)
            made[f"layers.{layer}.attention.{name}.bias"] = np.zeros(64, "f4")
        made[f"layers.{layer}.mlp.up.weight"] = normal(64, 128, dtype="f2")
        made[f"layers.{layer}.mlp.down.weight"] = normal(128, 64, dtype="f2")
    made["patch.weight"] = normal(16, 3, 8, 8)
    made["steps"] = np.arange(12, dtype="i8")
    made["mask"] = random.random((32, 32)) > 0.5
    made["temperature"] = np.float32(0.7)
    made["nothing"] = np.zeros((0, 3), "f4")
    broken = normal(64, 64)
    broken[3, 5], broken[10:12, 20] = np.nan, np.inf
    made["broken"] = broken
    return made


def pack(tensors: dict[str, Any], **keywords: Any) -> bytes:
    """Return a pack of arrays."""
    return bpk.save(tensors, **keywords)


class Counted:
    """A source of bytes that counts what is read of it."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.read = 0

    @property
    def size(self) -> int:
        return self._source.size

    @property
    def name(self) -> str:
        return self._source.name

    def read_at(self, offset: int, length: int) -> memoryview:
        self.read += length
        return self._source.read_at(offset, length)

    def close(self) -> None:
        self._source.close()


def sparse_pack(path: Any, count: int = 32, side: int = 4096) -> None:
    """Write a pack of `count` float32 matrices of zeros that takes no room on the disk."""
    shape = (side, side)
    tensors = [bpk.Tensor.deferred(f"layers.{i}.weight", "F32", shape, bytes) for i in range(count)]
    plan = bpk.Writer(tensors).plan()
    with path.open("wb") as file:
        file.write(plan.header)
        file.truncate(plan.size)
