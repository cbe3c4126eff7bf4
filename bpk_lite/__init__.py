"""bpk_lite: the Python home of Burn's checkpoints.

Reads and writes burnpack (``.bpk``) files byte for byte as Burn does::

    import bpk_lite as bpk

    bpk.save_file({"fc.weight": weight}, "model.bpk", metadata={"task": "mnist"})
    tensors = bpk.load_file("model.bpk")  # views over the mapped file, nothing copied
    with bpk.open("model.bpk") as pack:  # lazily
        first_rows = pack["fc.weight"][:10]

Importing it costs nothing; the first name that is used brings numpy and cbor2, and nothing else.
No file is touched.
"""

import importlib
from typing import TYPE_CHECKING, Any

from bpk_lite._version import __version__ as __version__

if TYPE_CHECKING:
    from bpk_lite import convert, desktop, inspect, nn, optim, pack, records, store
    from bpk_lite._verbs import load, load_file, open, save, save_file
    from bpk_lite.pack import (
        AlreadyExists,
        BpkError,
        ByteSink,
        ByteSource,
        BytesSource,
        DependencyError,
        DType,
        Entry,
        FormatError,
        Header,
        InvalidHeader,
        InvalidMagicNumber,
        InvalidVersion,
        LimitError,
        Limits,
        MetadataDeserializationError,
        MetadataSerializationError,
        ParamId,
        Plan,
        PlanError,
        ProviderError,
        QuantScheme,
        Reader,
        ReadError,
        RecordError,
        Scalar,
        Tensor,
        TensorBytesSizeMismatch,
        TensorClosedError,
        TensorNotFound,
        TruncatedError,
        ValidationError,
        WriteError,
        Writer,
    )

__all__ = [
    "AlreadyExists",
    "BpkError",
    "ByteSink",
    "ByteSource",
    "BytesSource",
    "DType",
    "DependencyError",
    "Entry",
    "FormatError",
    "Header",
    "InvalidHeader",
    "InvalidMagicNumber",
    "InvalidVersion",
    "LimitError",
    "Limits",
    "MetadataDeserializationError",
    "MetadataSerializationError",
    "ParamId",
    "Plan",
    "PlanError",
    "ProviderError",
    "QuantScheme",
    "ReadError",
    "Reader",
    "RecordError",
    "Scalar",
    "Tensor",
    "TensorBytesSizeMismatch",
    "TensorClosedError",
    "TensorNotFound",
    "TruncatedError",
    "ValidationError",
    "WriteError",
    "Writer",
    "convert",
    "desktop",
    "inspect",
    "load",
    "load_file",
    "nn",
    "open",
    "optim",
    "pack",
    "records",
    "save",
    "save_file",
    "store",
]

_SUBMODULES = frozenset(
    {"convert", "desktop", "inspect", "nn", "optim", "pack", "records", "store"}
)
_VERBS = frozenset({"load", "load_file", "open", "save", "save_file"})


def __getattr__(name: str) -> Any:
    """Import what `name` needs when it is first named, and keep it."""
    if name in _SUBMODULES:
        return importlib.import_module(f"bpk_lite.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'bpk_lite' has no attribute {name!r}")
    home = importlib.import_module("bpk_lite._verbs" if name in _VERBS else "bpk_lite.pack")
    found = globals()[name] = getattr(home, name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
