"""Loads into arrays, by threads, across processes and while others close (E1, E3; C84)."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import bpk_lite as bpk
from bpk_lite.desktop import _sources
from bpk_lite.pack import Limits, PlanError, Reader, ReadError, TensorClosedError

MIB = 1 << 20
BACKENDS = ["mmap", "read"]


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(3)
    tensors = {
        "big": rng.standard_normal((40, MIB // 4), dtype="<f4"),
        "half": rng.standard_normal(1001).astype("<f2"),
        "ids": np.arange(5, dtype="<u8").reshape(5, 1),
        "mask": np.array([True, False, True]),
        "none": np.zeros((0, 3), "<i2"),
        "one": np.array(7, "<i4"),
    }
    bpk.save_file(tensors, tmp_path / "m.bpk")
    return tmp_path / "m.bpk"


def values(path):
    with Reader.from_file(path, backend="read") as pack:
        return {name: np.array(tensor.numpy()) for name, tensor in pack.items()}


def same(expected, found):
    assert list(expected) == list(found)
    for name, array in expected.items():
        assert (array.dtype, array.shape) == (found[name].dtype, found[name].shape)
        assert np.array_equal(array, found[name])
    return True


@pytest.mark.parametrize("threads", [None, 1, 3])
@pytest.mark.parametrize("backend", ["auto", *BACKENDS])
def test_copies_are_the_same_however_they_are_read(path, backend, threads):
    """By one thread or several, mapped or not; they own their memory and may be written to."""
    found = bpk.load_file(path, copy=True, backend=backend, threads=threads)
    assert same(values(path), found)
    assert all(array.flags.writeable and array.flags.owndata for array in found.values())


@pytest.mark.parametrize("backend", BACKENDS)
def test_views_of_a_mapping_are_read_only_and_so_are_arrays_of_reads(path, backend):
    """Without copy=True nothing may be written to, whatever the file system can do."""
    found = bpk.load_file(path, backend=backend)
    assert same(values(path), found)
    assert not any(array.flags.writeable for array in found.values())


@pytest.mark.parametrize("backend", ["auto", *BACKENDS])
def test_given_arrays_are_filled_in_place(path, backend):
    """Contiguous ones straight from the file, others by a copy; no other tensor is read."""
    expected = values(path)
    out = {
        "big": np.zeros((40, MIB // 4), "<f4"),
        "ids": np.zeros((1, 5), "<u8").T,
        "half": np.zeros(2002, "<f2")[::2],
        "mask": np.zeros(3, bool),
        "one": np.zeros((), "<i4"),
        "none": np.zeros((0, 3), "<i2"),
    }
    held = dict(out)
    found = bpk.load_file(path, out=out, backend=backend)
    assert all(found[name] is held[name] for name in out)
    assert all(np.array_equal(expected[name], out[name]) for name in out)


@pytest.mark.parametrize("keywords", [{"copy": True}, {"out": None}], ids=["copy", "out"])
def test_no_second_copy_is_made(path, keywords):
    """40 MiB into arrays take 40 MiB, into given arrays nothing."""
    given = {"big": np.zeros((40, MIB // 4), "<f4")}
    if "out" in keywords:
        keywords = {"out": given}
    tracemalloc.start()
    found = bpk.load_file(path, **keywords)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 40 * MIB == found["big"].nbytes
    assert peak < (0 if "out" in keywords else 40 * MIB) + MIB


def test_large_reads_are_shared_by_threads_and_small_ones_are_not(path, monkeypatch):
    """Up to four for 32 MiB and more; as many as asked for otherwise."""
    used = []
    fill = _sources.FileSource._fill

    def watched(self, file, offset, view):
        used.append((threading.current_thread().name, view.nbytes))
        fill(self, file, offset, view)

    monkeypatch.setattr(_sources.FileSource, "_fill", watched)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    bpk.load_file(path, names=["half"], copy=True)
    here = threading.current_thread().name
    assert {here} == {name for name, _ in used}
    used.clear()
    bpk.load_file(path, names=["big"], copy=True)
    read = [(name, nbytes) for name, nbytes in used if name.startswith("bpk_lite reader")]
    assert 40 * MIB == sum(nbytes for _, nbytes in read)
    assert max(nbytes for _, nbytes in read) <= 4 * MIB
    used.clear()
    bpk.load_file(path, names=["big"], copy=True, threads=1)
    assert {here} == {name for name, _ in used}


def test_an_error_in_a_thread_is_the_loads_error(path):
    """A file that is truncated while it is read: typed, with both sizes."""
    with Reader.from_file(path, backend="read", threads=3) as pack:
        os.truncate(path, 20 * MIB)
        tensors = [pack["big"]]
        from bpk_lite.pack._tensor import read_tensors

        with pytest.raises(bpk.TruncatedError, match="shrank while it was open"):
            read_tensors([(t, memoryview(bytearray(t.nbytes))) for t in tensors])


def test_progress_of_a_load_reaches_its_size(path):
    """What it raises ends the load."""
    seen = []
    bpk.load_file(path, copy=True, progress=lambda *step: seen.append(step))
    total = sum(array.nbytes for array in values(path).values())
    assert ("one", total, total) == seen[-1]

    def cancel(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bpk.load_file(path, copy=True, progress=cancel)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("advise", ["normal", "sequential", "random", "willneed"])
def test_hints_change_nothing_but_speed(path, backend, advise):
    """Each is passed to the system; a wrong one is refused."""
    with bpk.open(path, backend=backend, advise=advise) as pack:
        assert 7 == pack["one"].numpy()
    with pytest.raises(ValueError, match=r"advise is 'normal', .* not 'fast'"):
        bpk.open(path, advise="fast")


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what it was told")
def test_a_hint_reaches_the_system(path, monkeypatch):
    """``madvise`` for a mapping, ``posix_fadvise`` for reads."""
    asked = []
    monkeypatch.setattr(os, "posix_fadvise", lambda *a: asked.append(a[1:]))
    with bpk.open(path, backend="read", advise="random"):
        assert [(0, 0, os.POSIX_FADV_RANDOM)] == asked
    with bpk.open(path, backend="mmap", advise="random"):
        flags, ours = "", False
        with open("/proc/self/smaps") as file:
            for line in file:
                ours = line.rstrip().endswith(str(path)) if "-" in line.split()[0] else ours
                if ours and line.startswith("VmFlags"):
                    flags = line
        assert " rr " in flags


def read_row(tensor):
    """What a data loader's worker does."""
    return os.getpid(), tensor.name, tensor[2, :3].tolist(), tensor.source is not None


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_tensors_go_to_workers_by_path_and_range(path, backend, method):
    """A pickle of a 40 MiB tensor has a few hundred bytes, and the worker reads what it needs."""
    with Reader.from_file(path, backend=backend) as pack:
        big = pack["big"]
        assert len(pickle.dumps(big)) < 1000
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(1, mp_context=context) as workers:
            pid, name, row, lazy = workers.submit(read_row, big).result()
        assert (True, "big", big[2, :3].tolist(), True) == (pid != os.getpid(), name, row, lazy)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_reader_travels_whole(path, backend):
    """Limits too; a copy is independent of the original."""
    with Reader.from_file(path, backend=backend, limits=Limits(tensors=10)) as pack:
        twin = pickle.loads(pickle.dumps(pack))
        other = copy.deepcopy(pack["one"])
    assert 10 == twin.limits.tensors
    assert same(values(path), {name: t.numpy() for name, t in twin.items()})
    twin.close()
    assert 7 == other.numpy()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_file_that_took_the_place_of_a_pickled_one_is_refused(path, backend):
    """Never a wrong answer: replaced, rewritten in place, or gone."""
    with Reader.from_file(path, backend=backend) as pack:
        pickled = pickle.dumps(pack["one"])
    bpk.save_file(values(path), path)
    with pytest.raises(ReadError, match=r"m\.bpk was changed or replaced since it was pickled"):
        pickle.loads(pickled)
    with Reader.from_file(path, backend=backend) as pack:
        pickled = pickle.dumps(pack["one"])
    os.utime(path, ns=(1, 1))
    with pytest.raises(ReadError, match="was changed or replaced"):
        pickle.loads(pickled)
    path.unlink()
    with pytest.raises(ReadError, match="No such file"):
        pickle.loads(pickled)


def test_tensors_in_memory_are_pickled_whole(path):
    """They have no path; a closed file cannot be pickled."""
    pack = Reader.from_bytes(path.read_bytes())
    assert 7 == pickle.loads(pickle.dumps(pack["one"])).numpy()
    assert 7 == pickle.loads(pickle.dumps(pack))["one"].numpy()
    for backend in BACKENDS:
        with Reader.from_file(path, backend=backend) as pack:
            tensor = pack["one"]
        with pytest.raises(TensorClosedError):
            pickle.dumps(tensor)


@pytest.mark.parametrize("backend", BACKENDS)
def test_closing_while_others_read_gives_the_data_or_a_typed_error(path, backend):
    """Never another file's bytes, though its descriptor may get the same number."""
    other = path.with_name("other")
    other.write_bytes(b"\xff" * (41 * MIB))
    expected = values(path)["half"]
    wrong, opened = [], []

    def read(pack, start):
        start.wait()
        try:
            while True:
                if not np.array_equal(expected, pack["half"].numpy()):
                    wrong.append("data")
        except TensorClosedError:
            pass
        except Exception as error:
            wrong.append(error)

    for _ in range(30):
        pack = Reader.from_file(path, backend=backend)
        start = threading.Barrier(4)
        threads = [threading.Thread(target=read, args=(pack, start)) for _ in range(3)]
        for thread in threads:
            thread.start()
        start.wait()
        pack.close()
        opened = [os.open(other, os.O_RDONLY) for _ in range(4)]
        for thread in threads:
            thread.join()
        for descriptor in opened:
            os.close(descriptor)
    assert [] == wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fork_reads_beside_its_parent(path, backend):
    """Both from one open file, whose position neither moves; closing in one is no matter."""
    code = (
        "import os, sys, numpy as np, bpk_lite as bpk\n"
        "pack = bpk.open(sys.argv[1], backend=sys.argv[2])\n"
        "child = os.fork()\n"
        "for _ in range(200):\n"
        "    assert (pack['ids'].numpy()[:, 0] == np.arange(5)).all()\n"
        "    assert pack['one'].numpy() == 7\n"
        "pack.close()\n"
        "if child == 0: os._exit(0)\n"
        "sys.exit(os.waitpid(child, 0)[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, path, backend],
        capture_output=True,
        text=True,
        check=False,
        cwd=os.path.dirname(os.path.dirname(bpk.__file__)),
    )
    assert (0, "") == (done.returncode, done.stderr)


def test_overlapping_tensors_are_not_copied_without_bound(tmp_path):
    """The budget of copies holds for arrays that reads fill too (A4)."""
    path = tmp_path / "bomb.bpk"
    path.write_bytes(overlapping(MIB, 8))
    assert 8 == len(bpk.load_file(path, backend="mmap"))
    for keywords in ({"backend": "read"}, {"copy": True}):
        with pytest.raises(bpk.LimitError, match="because tensors overlap"):
            bpk.load_file(path, **keywords)


def overlapping(size, count):
    """Return a pack whose tensors all lie over the same bytes."""
    import cbor2

    from bpk_lite.pack._header import aligned

    fields = {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}
    metadata = cbor2.dumps({"tensors": {str(i): fields for i in range(count)}})
    front = b"NRUB" + (1).to_bytes(2, "little") + len(metadata).to_bytes(4, "little") + metadata
    return front.ljust(aligned(len(front)), b"\0") + bytes(size)


def test_arrays_that_do_not_fit_are_refused_before_anything_is_read(path):
    """Shape, dtype, and what may not be written to."""
    frozen = np.zeros((), "<i4")
    frozen.flags.writeable = False
    for out, message in (
        ({"one": np.zeros(1, "<i4")}, r"out\['one'\] is int32 \[1\], the tensor is int32 \[\]"),
        ({"one": np.zeros((), "<i8")}, "is int64"),
        ({"one": frozen}, "is read-only"),
    ):
        with pytest.raises(PlanError, match=message):
            bpk.load_file(path, out=out)
