"""A disk that fails when it is told to, and knows what it would hold after a loss of power.

It stands in for `os` in the modules that write. Operations are carried out for real and written
down. `states` then tells what may be found after power was lost behind any of them: of data that
were not synced any part, in whole writes or torn ones; of changes to the folder that were not
synced any selection.
"""

from __future__ import annotations

import itertools
import os
import random
from dataclasses import dataclass, field

from bpk_lite.desktop import _atomic, _output, _write


@dataclass
class Inode:
    """A file: what is surely on the disk, and the writes that may be."""

    synced: bytes = b""
    writes: list = field(default_factory=list)

    def contents(self, randomly):
        """Return what the file may hold: all of its writes, none, some, torn ones."""
        choices = [self.writes, [], self.writes[:-1], self.writes[1:]]
        torn = [(at, data[: len(data) // 2]) for at, data in self.writes]
        picked = [one for one in self.writes if randomly.random() < 0.5]
        found = {bytes(self.synced)}
        for chosen in [*choices, torn, picked]:
            data = bytearray(self.synced)
            for at, piece in chosen:
                data.extend(bytes(max(0, at + len(piece) - len(data))))
                data[at : at + len(piece)] = piece
            found.add(bytes(data))
        return found


class Disk:
    """Use it as a context manager: until it ends, saves go through it.

    Attributes:
        trace: names of the operations so far.
    """

    def __init__(self, monkeypatch, folder, *, fail_at=None, error=None, short=False):
        self._folder, self._fail_at, self._error, self._short = folder, fail_at, error, short
        self.trace = []
        self._open = {}
        self._inodes = {}
        self._names = {}
        self._pending = []
        for name in os.listdir(folder):
            path = folder / name
            self._inodes[os.stat(path).st_ino] = Inode(path.read_bytes())
            self._names[name] = os.stat(path).st_ino
        for module in (_atomic, _output, _write):
            monkeypatch.setattr(module, "os", self)
        monkeypatch.setattr(_output, "_WRITEV", self.writev)

    def __getattr__(self, name):
        return getattr(os, name)  # what changes nothing

    def _step(self, name):
        self.trace.append(name)
        dead = isinstance(self._error, PowerLoss) and self._fail_at < len(self.trace)
        if dead or self._fail_at == len(self.trace) - 1:
            raise self._error

    def open(self, path, flags, mode=0o777):
        if not flags & os.O_CREAT:
            descriptor = os.open(path, flags)
            self._open[descriptor] = None  # the folder
            return descriptor
        self._step("open")
        descriptor = os.open(path, flags, mode)
        inode = os.fstat(descriptor).st_ino
        self._open[descriptor] = inode
        self._inodes[inode] = Inode()
        self._pending.append((os.path.basename(path), inode))
        return descriptor

    def posix_fallocate(self, descriptor, offset, size):
        self._step("posix_fallocate")
        os.posix_fallocate(descriptor, offset, size)
        self._inodes[self._open[descriptor]].writes.append((0, bytes(size)))

    def posix_fadvise(self, *arguments):
        self._step("posix_fadvise")
        os.posix_fadvise(*arguments)

    def writev(self, descriptor, buffers):
        return self.write(descriptor, b"".join(buffers))

    def write(self, descriptor, data):
        self._step("write")
        at = os.lseek(descriptor, 0, os.SEEK_CUR)
        data = bytes(data)
        if self._short:
            data = data[: max(1, len(data) // 3)]
        count = os.write(descriptor, data)
        self._inodes[self._open[descriptor]].writes.append((at, data[:count]))
        return count

    def fchmod(self, descriptor, mode):
        self._step("fchmod")
        os.fchmod(descriptor, mode)

    def fsync(self, descriptor):
        self._step("fsync")
        inode = self._open[descriptor]
        if inode is None:
            self._names = self._after(self._pending)
            self._pending = []
        else:
            path = f"/proc/self/fd/{descriptor}"
            with open(path, "rb") as file:
                self._inodes[inode] = Inode(file.read())

    def close(self, descriptor):
        inode = self._open.pop(descriptor)
        os.close(descriptor)  # even a failing close closes
        if inode is not None:
            self._step("close")

    def replace(self, source, target):
        self._step("replace")
        inode = os.stat(source).st_ino
        os.replace(source, target)
        self._pending.append((os.path.basename(target), inode))
        self._pending.append((os.path.basename(source), None))

    def link(self, source, target, **keywords):
        self._step("link")
        os.link(source, target, **keywords)
        self._pending.append((os.path.basename(target), os.stat(source).st_ino))

    def unlink(self, path):
        self._step("unlink")
        os.unlink(path)
        self._pending.append((os.path.basename(path), None))

    def _after(self, changes):
        names = dict(self._names)
        for name, inode in changes:
            if inode is None:
                names.pop(name, None)
            else:
                names[name] = inode
        return names

    def states(self, name, seed=0):
        """Yield what a file may hold if power is lost now: its bytes, or None if it is not there."""
        randomly = random.Random(seed)
        seen = set()
        for length in range(len(self._pending) + 1):
            for changes in itertools.combinations(self._pending, length):
                seen.add(self._after(changes).get(name))
        for inode in seen:
            if inode is None:
                yield None
            else:
                yield from self._inodes[inode].contents(randomly)


class PowerLoss(BaseException):
    """The machine is off: nothing runs any more, no cleaning up either."""
