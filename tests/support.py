"""Helpers: packs made by hand, right or wrong, and modules that only the desktop has."""

from __future__ import annotations

import importlib
import struct
import sys

import cbor2
import pytest

from bpk_lite.pack import BpkError, Reader, Writer


def desktop_module(name: str):
    """Return a module that Pyodide lacks: its tests are skipped there, and fail elsewhere without it."""
    if sys.platform == "emscripten":
        pytest.skip(f"{name} is a desktop dependency", allow_module_level=True)
    return importlib.import_module(name)


def raw_pack(metadata: bytes, data: bytes = b"", *, version: int = 1, padded: bool = True) -> bytes:
    """Return a pack of any metadata bytes, without a check."""
    head = b"NRUB" + struct.pack("<HI", version, len(metadata)) + metadata
    return head + bytes(-len(head) % 256 if padded else 0) + data


def pack_of(tensors: dict, data: bytes = b"", **top) -> bytes:
    """Return a pack of given descriptors."""
    return raw_pack(cbor2.dumps({"tensors": tensors, **top}), data)


def descriptor(dtype="F32", shape=(2,), offsets=(0, 8), **more) -> dict:
    """Return a descriptor as CBOR's encoder takes it."""
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


def verdict(blob, opener=Reader.from_bytes) -> str:
    """Return ``"accept"`` or the class name of the error."""
    try:
        with opener(blob):
            return "accept"
    except BpkError as error:
        return type(error).__name__


def rewritten(pack: Reader) -> bytes:
    """Return a pack's content, written again in the order of its data."""
    tensors = pack.tensors(order="data")
    return Writer(tensors, metadata=pack.metadata, scalars=pack.scalars).plan().into_bytes()
