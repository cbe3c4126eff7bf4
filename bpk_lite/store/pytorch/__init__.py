"""PyTorch checkpoints, read without PyTorch and without running anything in them (store.md 9)."""

from bpk_lite.store.pytorch._plain import (
    UnsupportedValue,
    load_config,
    plain_values,
    read_pickle_data,
)
from bpk_lite.store.pytorch._reader import CheckpointInfo, PytorchReader
from bpk_lite.store.pytorch._writer import state_dict_plan

__all__ = [
    "CheckpointInfo",
    "PytorchReader",
    "UnsupportedValue",
    "load_config",
    "plain_values",
    "read_pickle_data",
    "state_dict_plan",
]
