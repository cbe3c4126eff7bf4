"""Save 40 tensors of 64 MiB that providers make, and print what memory it took beyond the start.

``python memory_run.py PATH HOW``, with HOW one of ``streaming`` (a fresh window at a time),
``reusing`` (one window, overwritten), ``buffer`` (a whole tensor at once), and ``retaining`` (as
streaming, by a digest that keeps what it sees, as a leak would). Prints JSON: peaks in bytes by
tracemalloc and by the system, and the most provider's bytes that were alive at once.
"""

from __future__ import annotations

import json
import sys
import tracemalloc
import weakref
from pathlib import Path

import numpy as np

import bpk_lite as bpk

COUNT, SIZE, WINDOW = 40, 64 << 20, 8 << 20


class Host:
    """Makes arrays and counts the bytes of those that are alive."""

    alive = peak = 0

    def array(self, nbytes, value):
        made = np.full(nbytes, value, np.uint8)
        self.alive += nbytes
        self.peak = max(self.peak, self.alive)
        weakref.finalize(made, self._gone, nbytes)
        return made

    def _gone(self, nbytes):
        self.alive -= nbytes


class Keeper:
    """A digest that does what digests must not: it keeps the windows."""

    def __init__(self):
        self.kept = []

    def update(self, window):
        if len(self.kept) < 8:
            self.kept.append(window)


def provider(host, how, value):
    if how == "buffer":
        return lambda: host.array(SIZE, value)

    def windows():
        window = host.array(WINDOW, value) if how == "reusing" else None
        for _ in range(SIZE // WINDOW):
            if how == "reusing":
                window[:] = value
                yield window
            else:
                yield host.array(WINDOW, value)

    return windows


def resident():
    """Return the process's anonymous memory now, in bytes: the page cache does not count."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise AssertionError


def main(path, how):
    host = Host()
    tensors = [
        bpk.Tensor.deferred(f"t{i:02}", "U8", (SIZE,), provider(host, how, i)) for i in range(COUNT)
    ]
    bpk.save_file([bpk.Tensor.deferred("w", "U8", (32,), lambda: bytes(32))], path)  # imports
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts anew
    rss = resident()
    bpk.save_file(tensors, path, durable=False, digest=Keeper() if how == "retaining" else None)
    rss = resident() - rss
    traced = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    with bpk.open(path) as pack:
        for i in (0, 17, COUNT - 1):
            row = pack[f"t{i:02}"][-4:]
            assert [i] * 4 == row.tolist(), row
    print(json.dumps({"traced": traced, "rss": rss, "windows": host.peak}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
