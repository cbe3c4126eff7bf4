"""Bring weights in, take weights out: Burn's stores, on bytes first (store.md)."""

from bpk_lite.store._adapters import (
    Adapter,
    BurnToPyTorchAdapter,
    Context,
    FloatCastAdapter,
    HalfPrecisionAdapter,
    IdentityAdapter,
    PyTorchToBurnAdapter,
)
from bpk_lite.store._apply import apply, collect
from bpk_lite.store._base import Store, load_from, save_into
from bpk_lite.store._errors import (
    ApplyError,
    ConfigError,
    NameCollision,
    PickleError,
    StoreError,
    UnsupportedDType,
)
from bpk_lite.store._filter import PathFilter
from bpk_lite.store._losses import CastLosses, cast_losses
from bpk_lite.store._remap import KeyRemapper, map_indices_contiguous, map_indices_contiguous_except
from bpk_lite.store._result import ApplyIssue, ApplyResult
from bpk_lite.store._safetensors import SafetensorsEntry, SafetensorsFile, SafetensorsPlan
from bpk_lite.store._stores import BurnpackStore, PytorchStore, SafetensorsStore
from bpk_lite.store.pytorch import (
    CheckpointInfo,
    PytorchReader,
    UnsupportedValue,
    load_config,
    read_pickle_data,
)

__all__ = [
    "Adapter",
    "ApplyError",
    "ApplyIssue",
    "ApplyResult",
    "BurnToPyTorchAdapter",
    "BurnpackStore",
    "CastLosses",
    "CheckpointInfo",
    "ConfigError",
    "Context",
    "FloatCastAdapter",
    "HalfPrecisionAdapter",
    "IdentityAdapter",
    "KeyRemapper",
    "NameCollision",
    "PathFilter",
    "PickleError",
    "PyTorchToBurnAdapter",
    "PytorchReader",
    "PytorchStore",
    "SafetensorsEntry",
    "SafetensorsFile",
    "SafetensorsPlan",
    "SafetensorsStore",
    "Store",
    "StoreError",
    "UnsupportedDType",
    "UnsupportedValue",
    "apply",
    "cast_losses",
    "collect",
    "load_config",
    "load_from",
    "map_indices_contiguous",
    "map_indices_contiguous_except",
    "read_pickle_data",
    "save_into",
]
