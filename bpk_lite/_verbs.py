"""The verbs of the top level: safetensors' four, in its argument order, and `open`."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.pack import (
    ByteSource,
    LimitError,
    Limits,
    PlanError,
    Reader,
    ReadError,
    Tensor,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bpk_lite.pack import Progress

__all__ = ["load", "load_file", "open", "save", "save_file"]

_DEFAULT = Limits()


def save(
    tensors: Mapping[str, Any] | Iterable[Tensor],
    metadata: Mapping[str, str] | None = None,
    *,
    scalars: Mapping[str, Any] | None = None,
) -> bytes:
    """Return a pack as bytes.

    Args:
        tensors: name to array (numpy, ``__dlpack__``, ``__array__``) or `Tensor`, in write order.
        metadata: text to text.
        scalars: name to int, float, bool or `Scalar`.

    Raises:
        PlanError: something that a pack cannot hold; says which.
        ProviderError: from a deferred tensor.
    """
    return Writer(tensors, metadata=metadata, scalars=scalars).plan().into_bytes()


def save_file(
    tensors: Mapping[str, Any] | Iterable[Tensor],
    path: Any,
    metadata: Mapping[str, str] | None = None,
    *,
    scalars: Mapping[str, Any] | None = None,
    overwrite: bool = True,
    durable: bool = True,
    progress: Progress | None = None,
    digest: Any = None,
) -> str:
    """Write a pack to a file, atomically; return the path, with ``.bpk`` if it had no extension.

    Arguments as for `save` and `Plan.write_to_file`, which tells the errors too.
    """
    plan = Writer(tensors, metadata=metadata, scalars=scalars).plan()
    return plan.write_to_file(
        path, overwrite=overwrite, durable=durable, progress=progress, digest=digest
    )


def open(
    source: Any, *, limits: Limits = _DEFAULT, backend: Any = "auto", layout: Any = "aligned"
) -> Reader:
    """Open a pack lazily: a path, a buffer in memory, or a `ByteSource`.

    Args:
        source: what to open.
        limits: what to accept at most.
        backend: for paths, see `Reader.from_file`.
        layout: ``"unaligned"`` for the files of Burn 0.19; save what it gives to have a pack of
            today.

    Raises:
        FormatError: not a pack, or a broken one; the subclass says what.
        ReadError: a path that cannot be read.
        TypeError: none of these.
    """
    if isinstance(source, str) and "://" in source:
        raise ReadError(f"{source}: addresses cannot be opened by this release; download it first")
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        return Reader.from_file(source, limits=limits, backend=backend, layout=layout)
    if isinstance(source, ByteSource):
        return Reader.from_source(source, limits=limits, layout=layout)
    return Reader.from_bytes(source, limits=limits, layout=layout)


def load(
    buffer: Any,
    *,
    names: Iterable[str] | None = None,
    copy: bool = False,
    out: Mapping[str, np.ndarray[Any, Any]] | None = None,
    limits: Limits = _DEFAULT,
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a pack in memory: read-only views over `buffer`, nothing copied.

    Args:
        buffer: the pack, any contiguous buffer.
        names: names or globs (``"fc.*"``); only tensors that match one are loaded.
        copy: return writeable copies, which own their memory, instead.
        out: arrays to fill, by name, instead of making new ones; only these are loaded.
        limits: what to accept at most.

    Raises:
        FormatError: not a pack, or a broken one.
        TensorNotFound: a name without a glob, or a key of `out`, that the pack does not have.
        LimitError: copies would take more memory than ``limits.copies`` times the pack.
        PlanError: an array of `out` has another shape or dtype, or is read-only.
    """
    return _load(Reader.from_bytes(buffer, limits=limits), names, copy, out)


def load_file(
    path: Any,
    *,
    names: Iterable[str] | None = None,
    copy: bool = False,
    out: Mapping[str, np.ndarray[Any, Any]] | None = None,
    limits: Limits = _DEFAULT,
    backend: Any = "auto",
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a file: read-only views over the mapped file, nothing copied.

    The mapping lives as long as one of the arrays. Arguments and errors as for `load`, and
    `ReadError` from the file system.
    """
    with Reader.from_file(path, limits=limits, backend=backend) as pack:
        return _load(pack, names, copy, out)


def _load(
    pack: Reader,
    names: Iterable[str] | None,
    copy: bool,
    out: Mapping[str, np.ndarray[Any, Any]] | None,
) -> dict[str, np.ndarray[Any, Any]]:
    chosen = [pack[name] for name in (_matching(pack, names) if out is None else out)]
    if out is not None:
        for tensor in chosen:
            _check_fits(tensor, out[tensor.name])
        for tensor in chosen:
            out[tensor.name][...] = tensor.numpy()
        return dict(out)
    if not copy:
        return {tensor.name: tensor.numpy() for tensor in chosen}
    total = sum(tensor.nbytes for tensor in chosen)
    if total > pack.limits.copies * pack.nbytes:
        raise LimitError(
            f"{pack.source.name}: copies would take {total} bytes, {total // pack.nbytes} times "
            f"the pack, because tensors overlap; the limit is {pack.limits.copies} times"
        )
    return {tensor.name: np.array(tensor.numpy()) for tensor in chosen}


def _matching(pack: Reader, names: Iterable[str] | None) -> list[str]:
    if names is None:
        return list(pack)
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in pack and not any(char in name for char in "*?["):
            pack[name]  # raises TensorNotFound with close names
    return [
        name
        for name in pack
        if any(name == want or fnmatch.fnmatchcase(name, want) for want in wanted)
    ]


def _check_fits(tensor: Tensor, array: np.ndarray[Any, Any]) -> None:
    if array.shape != tensor.shape or array.dtype != tensor.dtype.numpy:
        raise PlanError(
            f"out[{tensor.name!r}] is {array.dtype} {list(array.shape)}, "
            f"the tensor is {tensor.dtype.numpy} {list(tensor.shape)}"
        )
    if not array.flags.writeable:
        raise PlanError(f"out[{tensor.name!r}] is read-only")
