"""Bring weights in, take weights out: Burn's stores, on bytes first (store.md)."""

from bpk_lite.store._errors import (
    ApplyError,
    NameCollision,
    PickleError,
    StoreError,
    UnsupportedDType,
)
from bpk_lite.store._filter import PathFilter
from bpk_lite.store._remap import KeyRemapper, map_indices_contiguous, map_indices_contiguous_except
from bpk_lite.store._result import ApplyIssue, ApplyResult
from bpk_lite.store._safetensors import SafetensorsEntry, SafetensorsFile, SafetensorsPlan
from bpk_lite.store.pytorch import CheckpointInfo, PytorchReader

__all__ = [
    "ApplyError",
    "ApplyIssue",
    "ApplyResult",
    "CheckpointInfo",
    "KeyRemapper",
    "NameCollision",
    "PathFilter",
    "PickleError",
    "PytorchReader",
    "SafetensorsEntry",
    "SafetensorsFile",
    "SafetensorsPlan",
    "StoreError",
    "UnsupportedDType",
    "map_indices_contiguous",
    "map_indices_contiguous_except",
]
