"""Saves by windows: order, release, memory, system calls, progress and digests (C89, C97, C99)."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest

import bpk_lite as bpk
from bpk_lite.desktop import _output, hasher
from bpk_lite.pack import DependencyError, ProviderError, Reader, Tensor, Writer
from tests.desktop import memory_run

MIB = 1 << 20
WINDOW = 8 * MIB
HOWS = ["write_to_file", "write_to_file_in_place"]


def window(value, nbytes=WINDOW):
    return np.full(nbytes, value, np.uint8)


def memory_of(how, tmp_path):
    """Run a save of 2.5 GiB in a process of its own."""
    done = subprocess.run(
        [sys.executable, memory_run.__file__, tmp_path / "big.bpk", how],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    (tmp_path / "big.bpk").unlink()
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="measures by /proc")
@pytest.mark.parametrize(
    ("how", "windows", "bound"),
    [
        ("streaming", WINDOW, 2 * WINDOW + 16 * MIB),
        ("reusing", WINDOW, 2 * WINDOW + 16 * MIB),
        ("buffer", 64 * MIB, (64 + 16) * MIB),
    ],
)
def test_a_save_holds_two_windows_or_one_tensor(how, windows, bound, tmp_path):
    """Of 40 tensors of 64 MiB, by Python's count, the system's, and the provider's own."""
    found = memory_of(how, tmp_path)
    assert windows == found["windows"]
    assert found["traced"] < bound
    assert found["rss"] < bound


@pytest.mark.skipif(sys.platform != "linux", reason="measures by /proc")
def test_the_measurement_notices_windows_that_are_kept(tmp_path):
    """With a digest that keeps eight windows all three counts break their bounds."""
    found = memory_of("retaining", tmp_path)
    assert found["windows"] > WINDOW
    assert found["traced"] > 2 * WINDOW + 16 * MIB
    assert found["rss"] > 2 * WINDOW + 16 * MIB


@pytest.mark.parametrize("how", HOWS)
def test_providers_are_called_once_each_in_order_and_released_before_the_next(how, tmp_path):
    """A window is gone when the next is asked for, across tensors too (C97)."""
    calls, held = [], []

    def make(name):
        def provider():
            calls.append(name)
            for _ in range(3):
                assert [] == [one for one in held if one() is not None]
                made = window(len(calls))
                held.append(weakref.ref(made))
                yield made
                del made

        return Tensor.deferred(name, "U8", (3 * WINDOW,), provider)

    def whole():
        calls.append("b")
        assert [] == [one for one in held if one() is not None]
        made = window(9, 2 * WINDOW)
        held.append(weakref.ref(made))
        return made

    tensors = [make("c"), Tensor.deferred("b", "U8", (2 * WINDOW,), whole), make("a")]
    plan = Writer(tensors).plan()
    assert [] == calls
    path = getattr(plan, how)(tmp_path / "m.bpk")
    assert ["c", "b", "a"] == calls
    with Reader.from_file(path) as pack:
        assert {"a": 3, "b": 9, "c": 1} == {name: int(t[-1]) for name, t in pack.items()}


def test_a_window_that_is_used_again_is_written_as_it_was(tmp_path):
    """A provider may reuse its memory at once: the second stage has its own (C99)."""

    def provider():
        buffer = bytearray(WINDOW)
        for value in range(12):
            buffer[:] = bytes([value]) * WINDOW
            yield memoryview(buffer)
        buffer[:] = b"x" * WINDOW

    bpk.save_file([Tensor.deferred("w", "U8", (12 * WINDOW,), provider)], tmp_path / "m.bpk")
    values = bpk.load_file(tmp_path / "m.bpk")["w"].reshape(12, WINDOW)
    assert list(range(12)) == values.min(1).tolist() == values.max(1).tolist()


def test_the_next_window_is_made_while_the_last_is_written(tmp_path, monkeypatch):
    """The write of a window ends only after the provider has begun with the next, and still ends."""
    begun = threading.Event()
    write = os.writev

    def slow(descriptor, buffers):
        if sum(buffer.nbytes for buffer in buffers) == WINDOW and not begun.is_set():
            assert begun.wait(30), "the provider waits for the disk"
        return write(descriptor, buffers)

    def provider():
        yield window(1)
        begun.set()
        yield window(2)

    monkeypatch.setattr(_output, "_WRITEV", slow)
    bpk.save_file([Tensor.deferred("w", "U8", (2 * WINDOW,), provider)], tmp_path / "m.bpk")
    assert 2 == bpk.load_file(tmp_path / "m.bpk")["w"][-1]


def test_an_error_of_the_disk_is_told_though_another_thread_met_it(tmp_path, monkeypatch):
    """It is the destination's, not the provider's; the provider is not asked to the end."""
    asked = []

    def provider():
        for number in range(50):
            asked.append(number)
            yield window(number)

    def full(descriptor, buffers):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_output, "_WRITEV", full)
    with pytest.raises(bpk.WriteError, match="No space left"):
        bpk.save_file([Tensor.deferred("w", "U8", (50 * WINDOW,), provider)], tmp_path / "m.bpk")
    assert len(asked) < 5
    assert [] == os.listdir(tmp_path)


def test_resident_data_are_not_copied(tmp_path):
    """A save of 64 MiB in memory allocates next to nothing."""
    plan = Writer({"w": np.ones((1024, 16384), "<f4"), "b": np.ones(100, "<f4")}).plan()
    plan.write_to_file(tmp_path / "m.bpk")
    tracemalloc.start()
    plan.write_to_file(tmp_path / "m.bpk", durable=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MIB


@pytest.mark.parametrize("deferred", [False, True])
def test_small_tensors_share_a_system_call(tmp_path, monkeypatch, deferred):
    """Ten thousand of them take a few dozen writes, not ten thousand."""
    calls = []
    write = os.writev
    monkeypatch.setattr(
        _output, "_WRITEV", lambda fd, buffers: calls.append(len(buffers)) or write(fd, buffers)
    )
    tensors = [
        Tensor.deferred(f"{i:05}", "U8", (4,), lambda i=i: i.to_bytes(4, "little"))
        if deferred
        else Tensor.from_bytes(f"{i:05}", "U8", (4,), i.to_bytes(4, "little"))
        for i in range(10_000)
    ]
    plan = Writer(tensors).plan()
    plan.write_to_file(tmp_path / "m.bpk")
    assert len(calls) < 50
    assert plan.into_bytes() == (tmp_path / "m.bpk").read_bytes()


@pytest.mark.parametrize("how", HOWS)
def test_progress_names_the_tensor_and_reaches_the_size(how, tmp_path):
    """It counts bytes of the file, never backwards, a window at a time, in the caller's thread."""
    seen = []

    def progress(name, done, total):
        seen.append((name, done, total, threading.get_ident()))

    plan = Writer(
        [
            Tensor.from_array("big", window(1, 3 * WINDOW)),
            Tensor.deferred("made", "U8", (2 * WINDOW,), lambda: [window(2), window(2)]),
            Tensor.from_array("small", np.ones(3)),
        ]
    ).plan()
    getattr(plan, how)(tmp_path / "m.bpk", progress=progress)
    assert ["big"] * 3 + ["made"] * 2 + ["small"] == [name for name, *_ in seen]
    done = [count for _, count, *_ in seen]
    assert sorted(done) == done
    assert plan.size == done[-1]
    assert max(np.diff(done)) <= WINDOW + 256
    assert {(plan.size, threading.get_ident())} == {one[2:] for one in seen}


def test_what_progress_raises_ends_the_save(tmp_path):
    """That is how a user cancels: the old file stays, nothing is left."""
    bpk.save_file({"w": np.ones(3)}, tmp_path / "m.bpk")
    before = (tmp_path / "m.bpk").read_bytes()

    class Cancelled(Exception):
        pass

    def progress(name, done, total):
        if done > total / 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        bpk.save_file({"w": window(1, 8 * WINDOW)}, tmp_path / "m.bpk", progress=progress)
    assert (before, ["m.bpk"]) == ((tmp_path / "m.bpk").read_bytes(), os.listdir(tmp_path))


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("deferred", [False, True])
def test_a_digest_sees_all_bytes_of_the_file(how, deferred, tmp_path):
    """What it has at the end is what one of the file would have."""
    arrays = {"a": window(1, 2 * WINDOW + 5), "b": np.arange(1000, dtype="<f4")}
    tensors = [
        Tensor.deferred(name, bpk.DType.of(array), array.shape, lambda array=array: array)
        if deferred
        else Tensor.from_array(name, array)
        for name, array in arrays.items()
    ]
    digest = hashlib.sha256()
    path = getattr(Writer(tensors).plan(), how)(tmp_path / "m.bpk", digest=digest)
    assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == digest.hexdigest()


def test_hasher_is_blake3_where_it_is_installed(monkeypatch):
    """And sha256 elsewhere; `name` says which."""
    import blake3

    assert ("blake3", blake3.blake3(b"x").hexdigest()) == (hasher().name, hasher(b"x").hexdigest())
    monkeypatch.setitem(sys.modules, "blake3", None)
    assert ("sha256", hashlib.sha256(b"x").hexdigest()) == (hasher().name, hasher(b"x").hexdigest())


def test_bars_follow_a_save(tmp_path):
    """Rich's on a terminal only, tqdm's anywhere."""
    import io

    from rich.console import Console

    from bpk_lite.desktop.progress import rich_progress, tqdm_progress

    tensors = {"[red]weight": window(1, 2 * WINDOW)}
    for terminal in (True, False):
        screen = io.StringIO()
        console = Console(file=screen, force_terminal=terminal, width=120)
        with rich_progress("saving", console=console) as progress:
            bpk.save_file(tensors, tmp_path / "m.bpk", progress=progress)
        shown = screen.getvalue()
        assert terminal == (
            "saving" in shown and "[red]weight" in shown and "16.8/16.8 MB" in shown
        )
        assert terminal or "" == shown.strip()
    screen = io.StringIO()
    with tqdm_progress("saving", file=screen, mininterval=0) as progress:
        bpk.save_file(tensors, tmp_path / "m.bpk", progress=progress)
    assert "saving: 100%" in screen.getvalue()


@pytest.mark.parametrize(("module", "bar"), [("rich", "rich_progress"), ("tqdm", "tqdm_progress")])
def test_a_missing_bar_says_how_to_get_it(module, bar, monkeypatch):
    """The typed error names the package."""
    from bpk_lite.desktop import progress

    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DependencyError, match=r"pip install"), getattr(progress, bar)():
        pass


def test_a_provider_that_fails_in_the_second_stage_is_named(tmp_path):
    """The window before it may still be on its way: nothing is published (A11)."""

    def provider():
        yield window(1)
        raise RuntimeError("the device is gone")

    with pytest.raises(ProviderError, match=r"'w' failed: RuntimeError: the device is gone"):
        bpk.save_file([Tensor.deferred("w", "U8", (2 * WINDOW,), provider)], tmp_path / "m.bpk")
    assert [] == os.listdir(tmp_path)


def test_a_wrong_length_is_found_before_the_surplus_is_written(tmp_path):
    """Too few bytes, too many: the tensor is named and the old file stays (C93)."""
    for count in (1, 3):
        tensor = Tensor.deferred("w", "U8", (2 * WINDOW,), lambda n=count: [window(1)] * n)
        with pytest.raises(bpk.TensorBytesSizeMismatch, match="'w'"):
            bpk.save_file([tensor], tmp_path / "m.bpk")
    assert [] == os.listdir(tmp_path)
