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
    Tensor,
    Writer,
)
from bpk_lite.pack._tensor import read_tensors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bpk_lite.pack import Progress

__all__ = ["load", "load_file", "open", "save", "save_file"]

_DEFAULT = Limits()
_PORTION = 64 << 20  # bytes that are asked for at once


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
    source: Any,
    *,
    limits: Limits = _DEFAULT,
    backend: Any = "auto",
    layout: Any = "aligned",
    advise: Any = None,
    threads: int | None = None,
    cache: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Reader:
    """Open a pack lazily: a path, an address, a buffer in memory, or a `ByteSource`.

    Args:
        source: what to open.
        limits: what to accept at most.
        backend: for paths, see `Reader.from_file`.
        layout: ``"unaligned"`` for the files of Burn 0.19; save what it gives to have a pack of
            today.
        advise: for paths, see `Reader.from_file`.
        threads: for paths, see `Reader.from_file`.
        cache: for addresses, see `Reader.from_url`.
        storage_options: for addresses, see `Reader.from_url`.

    Raises:
        FormatError: not a pack, or a broken one; the subclass says what.
        ReadError: a path that cannot be read.
        TypeError: none of these.
    """
    if isinstance(source, str) and "://" in source:
        return Reader.from_url(
            source, limits=limits, layout=layout, cache=cache, storage_options=storage_options
        )
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        return Reader.from_file(
            source, limits=limits, backend=backend, layout=layout, advise=advise, threads=threads
        )
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
    progress: Progress | None = None,
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a pack in memory: read-only views over `buffer`, nothing copied.

    Args:
        buffer: the pack, any contiguous buffer.
        names: names or globs (``"fc.*"``); only tensors that match one are loaded.
        copy: return writeable copies, which own their memory, instead.
        out: arrays to fill, by name, instead of making new ones; only these are loaded.
        limits: what to accept at most.
        progress: called as ``progress(name, done_bytes, total_bytes)`` while data are copied. What
            it raises ends the load; arrays of `out` are then filled in part.

    Raises:
        FormatError: not a pack, or a broken one.
        TensorNotFound: a name without a glob, or a key of `out`, that the pack does not have.
        LimitError: copies would take more memory than ``limits.copies`` times the pack.
        PlanError: an array of `out` has another shape or dtype, or is read-only.
    """
    return _load(Reader.from_bytes(buffer, limits=limits), names, copy, out, progress)


def load_file(
    path: Any,
    *,
    names: Iterable[str] | None = None,
    copy: bool = False,
    out: Mapping[str, np.ndarray[Any, Any]] | None = None,
    limits: Limits = _DEFAULT,
    backend: Any = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
    cache: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a file: read-only views over the mapped file, nothing copied.

    `path` may be an address too; neighbouring tensors then share a request.

    The mapping lives as long as one of the arrays. Where the file is not mapped, the arrays own
    their memory and are filled by one pass of large reads. Arguments and errors as for `load`,
    `backend` and `threads` as for `Reader.from_file`, `cache` and `storage_options` as for
    `Reader.from_url`, and `ReadError` from the file system.
    """
    if (copy or out is not None) and backend == "auto":
        backend = "read"  # straight into the arrays; through a mapping it would take page faults
    with open(
        path,
        limits=limits,
        backend=backend,
        threads=threads,
        cache=cache,
        storage_options=storage_options,
    ) as pack:
        return _load(pack, names, copy, out, progress)


def _load(
    pack: Reader,
    names: Iterable[str] | None,
    copy: bool,
    out: Mapping[str, np.ndarray[Any, Any]] | None,
    progress: Progress | None,
) -> dict[str, np.ndarray[Any, Any]]:
    if out is not None:
        chosen = [pack[name] for name in out]
        for tensor in chosen:
            _check_fits(tensor, out[tensor.name])
        _fill(chosen, out, progress)
        return dict(out)
    if not copy and hasattr(pack.source, "view"):
        if names is None:
            return pack.arrays()
        return {name: pack[name].numpy() for name in _matching(pack, names)}
    chosen = [pack[name] for name in _matching(pack, names)]
    total = sum(tensor.nbytes for tensor in chosen)
    if total > pack.limits.copies * pack.nbytes:
        raise LimitError(
            f"{pack.source.name}: copies would take {total} bytes, {total // pack.nbytes} times "
            f"the pack, because tensors overlap; the limit is {pack.limits.copies} times"
        )
    made = {tensor.name: _empty(tensor) for tensor in chosen}
    _fill(chosen, made, progress)
    for array in made.values():
        array.flags.writeable = copy
    return made


def _empty(tensor: Tensor) -> np.ndarray[Any, Any]:
    try:
        return np.empty(tensor.shape, tensor.dtype.numpy)
    except (ValueError, OverflowError):
        return np.array(tensor.numpy())  # which says what numpy cannot do


def _fill(
    chosen: list[Tensor],
    arrays: Mapping[str, np.ndarray[Any, Any]],
    progress: Progress | None,
) -> None:
    """Read the tensors into arrays that fit them, in portions, straight where possible."""
    total = sum(tensor.nbytes for tensor in chosen)
    done = waiting = 0
    straight: list[tuple[Tensor, memoryview]] = []
    for position, tensor in enumerate(chosen):
        array = arrays[tensor.name]
        if tensor.dtype.kind in ("float", "int") and array.flags.c_contiguous and array.nbytes:
            straight.append((tensor, memoryview(array.reshape(-1).view(np.uint8))))  # type: ignore[arg-type]
            waiting += tensor.nbytes
        else:
            array[...] = tensor.numpy()
            done += tensor.nbytes
        if waiting >= _PORTION or position == len(chosen) - 1:
            read_tensors(straight)
            done, waiting, straight = done + waiting, 0, []
            if progress is not None:
                progress(tensor.name, done, total)


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
