"""A file that appears whole or not at all (C109 to C117, C130, C131).

The bytes go to a scratch sibling: same directory, exclusively created, never through a symlink.
A commit syncs it, gives it the destination's mode, renames it and syncs the directory. It is made
with the final mode from the start, so a private checkpoint is not readable by others while it is
written (Burn's is, C113). Dropped without commit, the scratch file is removed; a kill leaves it,
named so that one can tell: ``<name>.<pid>-<n>.tmp``.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from typing import TYPE_CHECKING, Any, Self

from bpk_lite.pack import AlreadyExists, BpkError, WriteError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ScratchFile", "already_exists", "sync_directory", "write_error"]

_counter = itertools.count()  # `next` on it is atomic
_NAME_MAX = 255
_DEFAULT_MODE = 0o666
_WORTH_RESERVING = 1 << 20  # bytes; a smaller file is written in one go


class ScratchFile:
    """A scratch file for a destination; a context manager that removes it unless committed.

    Attributes:
        destination: where `commit` will put it.
        path: where it is now.
    """

    __slots__ = ("_descriptor", "destination", "path")

    def __init__(self, destination: Path) -> None:
        self.destination = destination
        mode = _regular_mode(destination)
        while True:
            self.path = destination.with_name(_scratch_name(destination.name))
            try:
                self._descriptor: int | None = os.open(
                    self.path,
                    os.O_WRONLY
                    | os.O_CREAT
                    | os.O_EXCL
                    | getattr(os, "O_NOFOLLOW", 0)
                    | getattr(os, "O_BINARY", 0),
                    _DEFAULT_MODE if mode is None else mode & 0o777,
                )
            except FileExistsError:
                continue  # the next number, without limit (C109)
            except OSError as error:
                raise write_error(self.path, error) from error
            break

    def fileno(self) -> int:
        """Return the open descriptor. Raises ValueError once it is closed."""
        if self._descriptor is None:
            raise ValueError(f"{self.path} is closed")
        return self._descriptor

    def reserve(self, size: int) -> None:
        """Ask for `size` bytes of the disk in one run, so that a full one is known before any work.

        Raises:
            WriteError: the disk is full. That a system cannot reserve is no error.
        """
        if size < _WORTH_RESERVING or not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self.fileno(), 0, size)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise write_error(self.path, error) from error

    def write(self, data: Any) -> int:
        """Write all of `data` at the end. Raises WriteError."""
        view = memoryview(data)
        try:
            done = 0
            while done < view.nbytes:
                done += os.write(self.fileno(), view[done:])
        except OSError as error:
            raise write_error(self.path, error) from error
        return done

    def seal(self, *, durable: bool = True, mode: int | None = None) -> os.stat_result:
        """Sync and close the file, with `mode` if given; return what it is. Raises WriteError."""
        descriptor = self.fileno()
        try:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)
            if durable:
                os.fsync(descriptor)
            status = os.fstat(descriptor)
            self._descriptor = None
            os.close(descriptor)
        except OSError as error:
            raise write_error(self.path, error) from error
        return status

    def commit(self, *, overwrite: bool = True, durable: bool = True) -> None:
        """Sync, close and publish the file under the destination's name.

        Raises:
            AlreadyExists: `overwrite` is False and the destination exists.
            WriteError: the system refused. If only the sync of the directory failed, the message
                says that the file was saved (C112).
        """
        self.seal(durable=durable, mode=_regular_mode(self.destination) if overwrite else None)
        if overwrite:
            self._rename()
        else:
            self._link()
        if durable:
            sync_directory(self.destination)

    def _rename(self) -> None:
        try:
            os.replace(self.path, self.destination)
        except OSError as error:
            raise WriteError(
                f"cannot rename {self.path} to {self.destination}: {error.strerror}"
            ) from error

    def _link(self) -> None:
        try:
            os.link(self.path, self.destination, follow_symlinks=False)
        except FileExistsError as error:
            raise already_exists(self.destination) from error
        except (OSError, NotImplementedError, AttributeError):
            # no hard links on this file system: the best that is left is to look and rename (C130)
            if os.path.lexists(self.destination):
                raise already_exists(self.destination) from None
            self._rename()
            return
        try:
            os.unlink(self.path)
        except OSError as error:
            raise WriteError(
                f"{self.destination} was saved, but its scratch name {self.path} cannot be "
                f"removed: {error.strerror}"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            return
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None
        # a failed commit may have published it already; what is left under the scratch name goes
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def _scratch_name(name: str) -> str:
    """Return the next scratch name, with `name` cut so that the whole fits a directory entry."""
    suffix = f".{os.getpid()}-{next(_counter)}.tmp"
    room = _NAME_MAX - len(suffix)
    raw = os.fsencode(name)[:room]
    return os.fsdecode(raw) + suffix if len(raw) == room else name + suffix


def _regular_mode(path: Path) -> int | None:
    """Return the mode bits of an existing regular file, not following a symlink; else None."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return stat.S_IMODE(status.st_mode) if stat.S_ISREG(status.st_mode) else None


def sync_directory(destination: Path) -> None:
    if os.name != "posix":
        return
    try:
        descriptor = os.open(destination.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise WriteError(
            f"{destination} was saved, but its directory cannot be synced: {error.strerror}"
        ) from error


def already_exists(path: object) -> AlreadyExists:
    """Return the error for a destination that must not be replaced."""
    return AlreadyExists(f"{path} exists already; pass overwrite=True to replace it")


def write_error(path: object, error: OSError) -> BpkError:
    """Return the error for a failed system call on `path` (C116)."""
    return WriteError(f"cannot write {path}: {error.strerror or error}")
