"""State dicts to files and back, as they are: safetensors.torch's habits."""

from __future__ import annotations

import math
import mmap
from typing import TYPE_CHECKING, Any

import torch

from bpk_lite.desktop import reading_path
from bpk_lite.pack import DType, PlanError, Reader, ReadError, Writer
from bpk_lite.torch._transfer import deferred_tensor, fill, torch_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bpk_lite.pack import Progress, Tensor

__all__ = ["load_file", "save_file"]


def save_file(
    tensors: Mapping[str, torch.Tensor],
    filename: Any,
    metadata: Mapping[str, str] | None = None,
    *,
    overwrite: bool = True,
    durable: bool = True,
    progress: Progress | None = None,
) -> str:
    """Write tensors to a file, atomically, under their names and in their layout.

    Tensors may be of any stride and on any device; one on a GPU comes over in windows of 8 MiB when
    the writer reaches it. Tensors that share memory are each written in full.

    Args:
        tensors: name to tensor, such as ``module.state_dict()``, in write order.
        filename: the file; ``.bpk`` is appended if it has no extension.
        metadata: text to text.
        overwrite: replace an existing file.
        durable: sync.
        progress: called as ``progress(name, done_bytes, total_bytes)`` after each window.

    Returns:
        The path that was written.

    Raises:
        PlanError: a value that is no dense tensor, or of a type that Burn lacks; says which.
        WriteError, AlreadyExists: from the file system.
    """
    made: list[Tensor] = []
    for name, value in tensors.items():
        if not isinstance(value, torch.Tensor):
            raise PlanError(f"{name!r} is no tensor but {type(value).__name__}")
        made.append(deferred_tensor(name, value))
    plan = Writer(made, metadata=metadata).plan()
    return plan.write_to_file(filename, overwrite=overwrite, durable=durable, progress=progress)


def load_file(filename: Any, device: str | torch.device = "cpu") -> dict[str, torch.Tensor]:
    """Return the tensors of a file, by name in ascending order.

    On the CPU they are views of a private mapping: nothing is read before it is used, and what is
    written to them stays in memory and never reaches the file. A file that is replaced meanwhile
    goes on giving its old content; one that is truncated makes the system end the process.

    Args:
        filename: the file.
        device: where the tensors shall lie.

    Raises:
        ReadError: the file cannot be read.
        FormatError: it is not a pack, or a broken one.
        TypeError: a quantized tensor, which has no type in torch.
    """
    path = reading_path(filename)
    memory = _mapped(path)
    with Reader.from_bytes(memory, name=str(path)) as pack:
        start = pack.header.data_start
        found = {}
        for entry in pack.entries():
            if entry.dtype.kind == "quantized":
                raise TypeError(
                    f"{path}: tensor {entry.name!r} is {entry.dtype}, which torch does not have; "
                    "bpk_lite.load_file gives its values"
                )
            found[entry.name] = _view(memory, start + entry.start, entry, pack[entry.name])
    place = torch.device(device)
    return {name: _moved(found[name], place) for name in sorted(found, key=str.encode)}


def _mapped(path: Path) -> Any:
    """Return the file's bytes, writeable: a private mapping, or a copy where none can be made."""
    try:
        with path.open("rb") as file:
            try:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            except (OSError, ValueError):
                return bytearray(file.read())
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror}") from error


def _view(memory: Any, offset: int, entry: Any, tensor: Tensor) -> torch.Tensor:
    count, dtype = math.prod(entry.shape), torch_dtype(entry.dtype)
    if count == 0:
        return torch.empty(entry.shape, dtype=dtype)
    if entry.dtype.kind == "bool":
        values = torch.empty(entry.shape, dtype=dtype)
        fill(values, tensor)  # a bool other than 0 and 1 misbehaves in torch
        return values
    size = DType.parse(entry.dtype).itemsize or 1
    if offset % size:
        values = torch.empty(entry.shape, dtype=dtype)
        fill(values, tensor)  # an old file, whose tensors are not aligned
        return values
    flat = torch.frombuffer(memory, dtype=dtype, count=count, offset=offset)
    return flat.view(entry.shape)


def _moved(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return tensor if device.type == "cpu" else tensor.to(device)
