"""Write a file that is laid out, atomically or in place."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from bpk_lite.desktop._atomic import ScratchFile, already_exists, write_error
from bpk_lite.desktop._output import write_layout
from bpk_lite.desktop._paths import AnyPath, writing_path
from bpk_lite.pack import PlanError

if TYPE_CHECKING:
    from pathlib import Path

    from bpk_lite.pack import Layout, Progress

__all__ = ["write_atomic", "write_in_place"]


def write_atomic(
    plan: Layout,
    path: AnyPath,
    *,
    overwrite: bool = True,
    extension: bool = True,
    durable: bool = True,
    progress: Progress | None = None,
    digest: Any = None,
) -> Path:
    """Write `plan` to a scratch sibling and publish it; see `Layout.write_to_file`."""
    destination = writing_path(path, extension=extension)
    if not overwrite and os.path.lexists(destination):
        raise already_exists(destination)
    with ScratchFile(destination) as scratch:
        scratch.reserve(plan.size)
        write_layout(
            plan,
            scratch.fileno(),
            scratch.path,
            early=durable,
            progress=progress,
            digest=digest,
        )
        scratch.commit(overwrite=overwrite, durable=durable)
    return destination


def write_in_place(
    plan: Layout,
    path: AnyPath,
    *,
    overwrite: bool = True,
    extension: bool = True,
    progress: Progress | None = None,
    digest: Any = None,
) -> Path:
    """Write `plan` straight into the destination; see `Layout.write_to_file_in_place`."""
    destination = writing_path(path, extension=extension)
    _refuse_own_source(plan, destination)
    try:
        descriptor = os.open(
            destination,
            os.O_WRONLY
            | os.O_CREAT
            | (os.O_TRUNC if overwrite else os.O_EXCL)
            | getattr(os, "O_BINARY", 0),
            0o666,
        )
    except FileExistsError as error:
        raise already_exists(destination) from error
    except OSError as error:
        raise write_error(destination, error) from error
    try:
        write_layout(plan, descriptor, destination, progress=progress, digest=digest)
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to report
            os.close(descriptor)
        raise
    try:
        os.close(descriptor)
    except OSError as error:
        raise write_error(destination, error) from error
    return destination


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
