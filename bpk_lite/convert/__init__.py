"""Weights from one file format to another: burnpack, SafeTensors, PyTorch, npz; and from GGUF.

Everything works on bytes; paths need a file system, and GGUF and sharded models need paths::

    with open_contents("net.pt") as source:
        convert(source, layout="pytorch-to-burn").plan.write_to_file("net.bpk")
"""

from bpk_lite.convert._contents import SCALARS_KEY, VALUES_KEY, Contents
from bpk_lite.convert._convert import Change, Conversion, convert, format_of
from bpk_lite.convert._open import open_contents
from bpk_lite.convert._types import MODULE_TYPES, module_types

__all__ = [
    "MODULE_TYPES",
    "SCALARS_KEY",
    "VALUES_KEY",
    "Change",
    "Contents",
    "Conversion",
    "convert",
    "format_of",
    "module_types",
    "open_contents",
]
