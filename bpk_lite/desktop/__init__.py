"""Files: mapped and plain sources, atomic and in-place writes, and what needs the real machine.

The portable layers reach this package through `bpk_lite._door` only. Everything here works on a
plain file system, Pyodide's included, where mapping fails and plain reads take over.
"""

from bpk_lite.desktop._atomic import ScratchFile
from bpk_lite.desktop._dlpack import export_bfloat16, import_bfloat16
from bpk_lite.desktop._paths import reading_path, writing_path
from bpk_lite.desktop._sources import FileSource, MmapSource, open_source
from bpk_lite.desktop._write import write_atomic, write_in_place

__all__ = [
    "FileSource",
    "MmapSource",
    "ScratchFile",
    "export_bfloat16",
    "import_bfloat16",
    "open_source",
    "reading_path",
    "write_atomic",
    "write_in_place",
    "writing_path",
]
