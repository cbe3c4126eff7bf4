"""Files: mapped and plain sources, atomic and in-place writes, checkpoints, the real machine.

The portable layers reach this package through `bpk_lite._door` only. Everything here works on a
plain file system, Pyodide's included, where mapping fails and plain reads take over. Checkpoints
and addresses are imported when they are first named, since opening a file needs none of them.
"""

import importlib
from typing import TYPE_CHECKING, Any

from bpk_lite.desktop import providers
from bpk_lite.desktop._atomic import ScratchFile
from bpk_lite.desktop._dlpack import export_bfloat16, import_bfloat16
from bpk_lite.desktop._hasher import hasher
from bpk_lite.desktop._paths import beside, reading_path, writing_path
from bpk_lite.desktop._sources import FileSource, MmapSource, open_source
from bpk_lite.desktop._write import write_atomic, write_in_place

if TYPE_CHECKING:
    from bpk_lite.desktop._checkpoint import (
        Checkpoint,
        Checkpointer,
        CheckpointError,
        FileCheckpointer,
        NoCheckpoint,
    )
    from bpk_lite.desktop._checkpoint_async import AsyncCheckpointer
    from bpk_lite.desktop._checkpoint_keep import (
        Composed,
        Delete,
        KeepLastN,
        Metric,
        Save,
        Strategy,
        default_strategy,
    )
    from bpk_lite.desktop._checkpoint_unit import Checkpoints, Restored
    from bpk_lite.desktop._remote import RemoteSource, open_remote

__all__ = [
    "AsyncCheckpointer",
    "Checkpoint",
    "CheckpointError",
    "Checkpointer",
    "Checkpoints",
    "Composed",
    "Delete",
    "FileCheckpointer",
    "FileSource",
    "KeepLastN",
    "Metric",
    "MmapSource",
    "NoCheckpoint",
    "RemoteSource",
    "Restored",
    "Save",
    "ScratchFile",
    "Strategy",
    "beside",
    "default_strategy",
    "export_bfloat16",
    "hasher",
    "import_bfloat16",
    "open_remote",
    "open_source",
    "providers",
    "reading_path",
    "write_atomic",
    "write_in_place",
    "writing_path",
]

_LATER = {
    "_checkpoint": (
        "Checkpoint",
        "CheckpointError",
        "Checkpointer",
        "FileCheckpointer",
        "NoCheckpoint",
    ),
    "_checkpoint_async": ("AsyncCheckpointer",),
    "_checkpoint_keep": (
        "Composed",
        "Delete",
        "KeepLastN",
        "Metric",
        "Save",
        "Strategy",
        "default_strategy",
    ),
    "_checkpoint_unit": ("Checkpoints", "Restored"),
    "_remote": ("RemoteSource", "open_remote"),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import what belongs to checkpoints or addresses when it is first named."""
    if name in _HOME:
        return getattr(importlib.import_module(f"bpk_lite.desktop.{_HOME[name]}"), name)
    raise AttributeError(f"module 'bpk_lite.desktop' has no attribute {name!r}")
