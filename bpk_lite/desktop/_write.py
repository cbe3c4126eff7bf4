"""Write a file that is laid out, atomically or in place."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from bpk_lite.desktop._atomic import ScratchFile, already_exists, write_error
from bpk_lite.desktop._paths import AnyPath, writing_path
from bpk_lite.pack import WINDOW, PlanError

if TYPE_CHECKING:
    from pathlib import Path

    from bpk_lite.pack import Layout

__all__ = ["write_atomic", "write_in_place"]


def write_atomic(
    plan: Layout,
    path: AnyPath,
    *,
    overwrite: bool = True,
    extension: bool = True,
    durable: bool = True,
) -> Path:
    """Write `plan` to a scratch sibling and publish it; see `Layout.write_to_file`."""
    destination = writing_path(path, extension=extension)
    if not overwrite and os.path.lexists(destination):
        raise already_exists(destination)
    with ScratchFile(destination) as scratch:
        _write(plan, scratch.file, scratch.path, early=durable)
        scratch.commit(overwrite=overwrite, durable=durable)
    return destination


def write_in_place(
    plan: Layout, path: AnyPath, *, overwrite: bool = True, extension: bool = True
) -> Path:
    """Write `plan` straight into the destination; see `Layout.write_to_file_in_place`."""
    destination = writing_path(path, extension=extension)
    _refuse_own_source(plan, destination)
    try:
        file = open(destination, "wb" if overwrite else "xb", buffering=1 << 20)  # noqa: SIM115
    except FileExistsError as error:
        raise already_exists(destination) from error
    except OSError as error:
        raise write_error(destination, error) from error
    try:
        _write(plan, file, destination)
    except BaseException:
        _close_quietly(file)
        raise
    try:
        file.close()
    except OSError as error:
        raise write_error(destination, error) from error
    return destination


def _write(plan: Layout, file: Any, path: Path, *, early: bool = False) -> None:
    """Write all buffers; tell a failing destination from a failing provider.

    With `early` the disk starts on each window while the next is made, so that the sync at the end
    has little left to wait for.
    """
    position = begun = 0
    for buffer in plan.buffers():
        try:
            file.write(buffer)
        except OSError as error:
            raise write_error(path, error) from error
        position += buffer.nbytes
        if early and position - begun >= WINDOW:
            _begin_writeback(file, begun, position - begun)
            begun = position
    try:
        file.flush()
    except OSError as error:
        raise write_error(path, error) from error


def _begin_writeback(file: Any, start: int, length: int) -> None:
    """Ask for a range to be written now. It stays cached: what is on its way is not dropped."""
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):  # a hint; the sync at the end is what counts
            os.posix_fadvise(file.fileno(), start, length, os.POSIX_FADV_DONTNEED)


def _close_quietly(file: Any) -> None:
    with contextlib.suppress(OSError):  # the first error is the one to report
        file.close()


def _refuse_own_source(plan: Layout, destination: Path) -> None:
    """Refuse to truncate a file that the plan's own tensors are still to be read from (C108)."""
    try:
        status = os.stat(destination)
    except OSError:
        return
    for tensor in plan.tensors:
        if getattr(tensor.source, "identity", None) == (status.st_dev, status.st_ino):
            raise PlanError(
                f"tensor {tensor.name!r} lies in {destination} itself, which writing in place "
                "would truncate before it is read; use write_to_file, or load copies first"
            )
