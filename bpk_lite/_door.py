"""The one door from the lower layers to files, to PyTorch, and to what notebooks show (design.md).

`Reader.from_file`, `Plan.write_to_file` and their like exist wherever a file system does, so that a
user types one import. They call `desktop`, which imports `bpk_lite.desktop` by name when first
asked. Nothing else in the portable layers knows that files exist. `_repr_html_` reaches up to
`bpk_lite.inspect` the same way.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["desktop", "inspector", "torch_bridge"]


def desktop() -> Any:
    """Return the module `bpk_lite.desktop`, imported at the first call."""
    return importlib.import_module("bpk_lite.desktop")


def inspector() -> Any:
    """Return the module `bpk_lite.inspect`, imported at the first call."""
    return importlib.import_module("bpk_lite.inspect")


def torch_bridge() -> Any:
    """Return the module `bpk_lite.torch`, imported at the first call."""
    return importlib.import_module("bpk_lite.torch")
