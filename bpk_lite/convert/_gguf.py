"""GGUF through the `gguf` package (extra ``gguf``), where its tensors are plain numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.convert._contents import Contents
from bpk_lite.pack import DependencyError, FormatError, Tensor
from bpk_lite.store import StoreError

if TYPE_CHECKING:
    from bpk_lite.pack import ByteSource

_PLAIN = frozenset({"F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"})


def open_gguf(opened: ByteSource, given: Any) -> Contents:
    """Open a GGUF file by its path. Quantized tensors are left out and noted.

    Shapes are numpy's, GGUF's reversed. Metadata that are text or numbers are kept as text.

    Raises:
        DependencyError: the ``gguf`` package is missing.
        StoreError: given as bytes.
        FormatError: what the package refuses.
    """
    opened.close()
    if not (isinstance(given, str) or hasattr(given, "__fspath__")):
        raise StoreError("GGUF is read from files only; give its path")
    try:
        import gguf
    except ImportError as error:
        raise DependencyError("reading GGUF needs: pip install 'bpk-lite[gguf]'") from error
    try:
        reader = gguf.GGUFReader(given)
    except Exception as error:  # the package lets its parser's errors through
        raise FormatError(f"{given}: no valid GGUF file: {error}") from error
    found = Contents("gguf", [])
    for one in reader.tensors:
        kind = one.tensor_type.name
        if kind not in _PLAIN:
            found.notes.append(f"{one.name!r} is left out: {kind} is quantized in GGUF's own way")
            continue
        shape = tuple(int(dim) for dim in reversed(one.shape))
        raw = np.asarray(one.data).reshape(-1).view(np.uint8)
        found.tensors.append(Tensor.from_bytes(one.name, kind, shape, raw))
    found.tensors.sort(key=lambda one: one.name)
    for key, part in reader.fields.items():
        value = part.contents()
        if isinstance(value, str | int | float) and not key.startswith("GGUF."):
            found.metadata[key] = str(value)
    return found
