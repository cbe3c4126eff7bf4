"""PyTorch checkpoints, read without PyTorch and without running anything in them (store.md 9)."""

from bpk_lite.store.pytorch._reader import CheckpointInfo, PytorchReader

__all__ = ["CheckpointInfo", "PytorchReader"]
