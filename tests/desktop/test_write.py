"""Atomic and in-place writes (C103 to C117, C130, C131; burn-pack's lazy_writer.rs; bugs A11, E7)."""

from __future__ import annotations

import errno
import os
import stat
import threading

import numpy as np
import pytest

import bpk_lite as bpk
from bpk_lite.desktop import ScratchFile, _atomic, _output
from bpk_lite.pack import (
    AlreadyExists,
    FormatError,
    PlanError,
    ProviderError,
    Reader,
    Tensor,
    WriteError,
    Writer,
)

PLAN = Writer({"w": np.arange(3, dtype="<f4")}).plan()


def failing(error):
    def provider():
        raise error

    return Writer(
        [Tensor.from_array("a", np.ones(1)), Tensor.deferred("b", "F32", (1,), provider)]
    ).plan()


def names(folder):
    return sorted(os.listdir(folder))


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.fixture(autouse=True)
def _umask():
    old = os.umask(0o022)
    yield
    os.umask(old)


@pytest.mark.parametrize("how", ["write_to_file", "write_to_file_in_place"])
def test_both_ways_write_the_plans_bytes(tmp_path, how):
    """The file is the plan, the path is returned, nothing else is left (C97, C103)."""
    written = getattr(PLAN, how)(tmp_path / "model")
    assert str(tmp_path / "model.bpk") == written
    assert PLAN.into_bytes() == (tmp_path / "model.bpk").read_bytes()
    assert (["model.bpk"], 0o644) == (names(tmp_path), mode_of(written))


def test_a_failing_provider_leaves_the_old_file_and_no_scratch(tmp_path):
    """C111: untouched destination, scratch removed, tensor named."""
    path = tmp_path / "model.bpk"
    path.write_bytes(b"old")
    with pytest.raises(ProviderError, match="'b'"):
        failing(RuntimeError("x")).write_to_file(path)
    assert (b"old", ["model.bpk"]) == (path.read_bytes(), names(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        failing(KeyboardInterrupt()).write_to_file(tmp_path / "new")
    assert ["model.bpk"] == names(tmp_path)


def test_a_plan_that_fails_creates_no_file(tmp_path):
    """Planning comes before the file is opened (C104)."""
    with pytest.raises(PlanError):
        bpk.save_file([Tensor.from_array("w", np.ones(1))] * 2, tmp_path / "model")
    assert [] == names(tmp_path)


def test_a_failure_in_place_leaves_a_truncated_file(tmp_path):
    """That is the price of writing in place (C107)."""
    path = tmp_path / "model.bpk"
    path.write_bytes(b"old" * 1000)
    with pytest.raises(ProviderError):
        failing(RuntimeError("x")).write_to_file_in_place(path)
    with pytest.raises(FormatError):
        bpk.open(path)
    assert path.stat().st_size < PLAN.size


@pytest.mark.parametrize("mode", [0o600, 0o444, 0o640, 0o755])
def test_the_mode_of_the_destination_is_carried_over(tmp_path, mode):
    """An existing regular file's bits are kept (C113), and the scratch file never has more."""
    path = tmp_path / "model.bpk"
    path.write_bytes(b"old")
    path.chmod(mode)
    seen = []

    def provider():
        (scratch,) = [name for name in names(tmp_path) if name != "model.bpk"]
        seen.append(mode_of(tmp_path / scratch))
        return b"abcd"

    Writer([Tensor.deferred("w", "F32", (1,), provider)]).plan().write_to_file(path)
    assert mode == mode_of(path)
    assert all(found & ~mode == 0 for found in seen)
    assert 1 == len(seen)


def test_the_destination_is_replaced_not_rewritten(tmp_path):
    """Other hard links keep the old content; a symlink becomes a file and its target stays (C113)."""
    target, link, hard = tmp_path / "target.bpk", tmp_path / "link.bpk", tmp_path / "hard.bpk"
    target.write_bytes(b"old")
    target.chmod(0o600)
    os.link(target, hard)
    link.symlink_to(target)
    PLAN.write_to_file(link)
    assert not link.is_symlink()
    assert (b"old", 0o644, 0o600) == (target.read_bytes(), mode_of(link), mode_of(target))
    PLAN.write_to_file(target)
    assert (b"old", 1) == (hard.read_bytes(), target.stat().st_nlink)


def test_writing_in_place_keeps_the_inode(tmp_path):
    """Links, mode and symlinks live on (C106)."""
    target, link = tmp_path / "target.bpk", tmp_path / "link.bpk"
    target.write_bytes(b"old" * 1000)
    target.chmod(0o600)
    link.symlink_to(target)
    before = target.stat().st_ino
    PLAN.write_to_file_in_place(link)
    assert link.is_symlink()
    assert (before, 0o600) == (target.stat().st_ino, mode_of(target))
    assert PLAN.into_bytes() == target.read_bytes()


@pytest.mark.parametrize("how", ["write_to_file", "write_to_file_in_place"])
@pytest.mark.parametrize("kind", ["file", "directory", "symlink", "dangling"])
def test_anything_existing_is_refused_before_a_provider_runs(tmp_path, how, kind):
    """Without overwriting, a file, directory or symlink of any kind counts as existing (C117)."""
    path = tmp_path / "model.bpk"
    other = tmp_path / "other"
    if kind == "directory":
        path.mkdir()
    elif kind == "file":
        path.write_bytes(b"old")
    else:
        if kind == "symlink":
            other.write_bytes(b"old")
        path.symlink_to(other)
    before = names(tmp_path)
    with pytest.raises(FileExistsError, match=r"model\.bpk exists already") as caught:
        getattr(failing(AssertionError("ran")), how)(tmp_path / "model", overwrite=False)
    assert AlreadyExists is caught.type
    assert before == names(tmp_path)


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    """The publishing step refuses without a race (C130)."""
    path = tmp_path / "model.bpk"

    def provider():
        path.write_bytes(b"theirs")
        return b"abcd"

    plan = Writer([Tensor.deferred("w", "F32", (1,), provider)]).plan()
    with pytest.raises(AlreadyExists):
        plan.write_to_file(path, overwrite=False)
    assert (b"theirs", ["model.bpk"]) == (path.read_bytes(), names(tmp_path))


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_is_published_without_overwriting(tmp_path, monkeypatch, links):
    """One link and the umask's mode, also on a file system without hard links (C130)."""
    if not links:

        def refuses(*_, **__):
            raise OSError(errno.EPERM, "no links here")

        monkeypatch.setattr(os, "link", refuses)
    path = tmp_path / "model.bpk"
    PLAN.write_to_file(path, overwrite=False)
    assert (1, 0o644, ["model.bpk"]) == (path.stat().st_nlink, mode_of(path), names(tmp_path))
    with pytest.raises(AlreadyExists):
        PLAN.write_to_file(path, overwrite=False)


def test_a_directory_as_destination_fails_and_leaves_no_scratch(tmp_path):
    """The rename's error names both paths (C115)."""
    (tmp_path / "model.bpk").mkdir()
    with pytest.raises(WriteError, match=r"cannot rename .*\.tmp to .*model\.bpk"):
        PLAN.write_to_file(tmp_path / "model")
    assert ["model.bpk"] == names(tmp_path)


@pytest.mark.parametrize("how", ["write_to_file", "write_to_file_in_place"])
def test_a_missing_folder_is_named(tmp_path, how):
    """File errors carry the path and the system's words (C116)."""
    with pytest.raises(WriteError, match=r"cannot write .*none/model\.bpk.*No such file"):
        getattr(PLAN, how)(tmp_path / "none" / "model")


def test_existing_scratch_names_are_passed_over(tmp_path, monkeypatch):
    """A file or symlink of a scratch name is not touched; the next number is tried (C109)."""
    monkeypatch.setattr(_atomic, "_counter", iter(range(10)))
    pid = os.getpid()
    (tmp_path / f"model.bpk.{pid}-0.tmp").write_bytes(b"theirs")
    (tmp_path / f"model.bpk.{pid}-1.tmp").symlink_to(tmp_path / "target")
    with ScratchFile(tmp_path / "model.bpk") as scratch:
        assert f"model.bpk.{pid}-2.tmp" == scratch.path.name
        scratch.write(b"new")
        scratch.commit()
    assert (b"new", b"theirs") == (
        (tmp_path / "model.bpk").read_bytes(),
        (tmp_path / f"model.bpk.{pid}-0.tmp").read_bytes(),
    )
    assert not (tmp_path / "target").exists()


def test_long_names_fit_with_their_scratch_suffix(tmp_path):
    """A name of 255 bytes, multi-byte letters included, can be saved (bug E7)."""
    for name in ("x" * 251 + ".bpk", "é" * 125 + "x.bpk"):
        assert 255 == len(os.fsencode(name))
        PLAN.write_to_file(tmp_path / name)
        assert PLAN.into_bytes() == (tmp_path / name).read_bytes()


def test_a_bare_relative_name_is_saved_in_the_working_directory(tmp_path, monkeypatch):
    """The directory of a bare name is `.` (C110)."""
    monkeypatch.chdir(tmp_path)
    assert "model.bpk" == PLAN.write_to_file("model")
    assert ["model.bpk"] == names(tmp_path)


def test_file_and_directory_are_synced_in_order(tmp_path, monkeypatch):
    """Fsync of the scratch file, rename, fsync of the folder (C110); none when not durable."""
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(
        os,
        "fsync",
        lambda fd: (
            calls.append("sync dir" if stat.S_ISDIR(os.fstat(fd).st_mode) else "sync file"),
            fsync(fd),
        ),
    )
    monkeypatch.setattr(os, "replace", lambda *a: (calls.append("rename"), replace(*a)))
    PLAN.write_to_file(tmp_path / "model")
    assert ["sync file", "rename", "sync dir"] == calls
    calls.clear()
    PLAN.write_to_file(tmp_path / "model", durable=False)
    assert ["rename"] == calls


def test_a_failed_sync_of_the_folder_says_that_the_file_was_saved(tmp_path, monkeypatch):
    """C112: the error does not hide that the save took place."""
    fsync = os.fsync

    def fails(fd):
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EIO, "disk on fire")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(WriteError, match="was saved, but its directory cannot be synced"):
        PLAN.write_to_file(tmp_path / "model")
    assert PLAN.into_bytes() == (tmp_path / "model.bpk").read_bytes()


@pytest.mark.parametrize("call", ["fsync", "fchmod", "replace"])
def test_any_failing_step_leaves_the_old_file(tmp_path, monkeypatch, call):
    """Sync, mode and rename: each failure keeps the destination and removes the scratch (C111)."""
    path = tmp_path / "model.bpk"
    path.write_bytes(b"old")

    def fails(*_):
        raise OSError(errno.EIO, "disk on fire")

    monkeypatch.setattr(os, call, fails)
    with pytest.raises(WriteError, match="disk on fire"):
        PLAN.write_to_file(path)
    assert (b"old", ["model.bpk"]) == (path.read_bytes(), names(tmp_path))


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    """A write that fails half way is the destination's error, not the provider's."""
    path = tmp_path / "model.bpk"
    path.write_bytes(b"old")

    def full(descriptor, buffers):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_output, "_WRITEV", full)
    with pytest.raises(WriteError, match="No space left"):
        PLAN.write_to_file(path)
    assert (b"old", ["model.bpk"]) == (path.read_bytes(), names(tmp_path))


@pytest.mark.parametrize("backend", ["mmap", "read"])
def test_writing_in_place_over_ones_own_source_is_refused(tmp_path, backend):
    """The tensors are still in the file that would be truncated (C108)."""
    path = tmp_path / "model.bpk"
    PLAN.write_to_file(path)
    os.link(path, tmp_path / "alias.bpk")
    with Reader.from_file(path, backend=backend) as pack:
        plan = Writer(pack.values()).plan()
        with pytest.raises(PlanError, match=r"tensor 'w' lies in .*alias\.bpk itself"):
            plan.write_to_file_in_place(tmp_path / "alias.bpk")
        assert PLAN.into_bytes() == path.read_bytes()
        plan.write_to_file(path)
    assert PLAN.into_bytes() == path.read_bytes()


def test_two_writers_of_one_path_never_mix(tmp_path):
    """One wins whole; a reader sees one of them (bug E10)."""
    path = tmp_path / "model.bpk"
    plans = [Writer({"w": np.full(50_000, i, "<f4")}).plan() for i in range(4)]
    wrong = []
    done = threading.Event()

    def write(plan):
        for _ in range(10):
            plan.write_to_file(path, durable=False)

    def read():
        while not done.is_set():
            values = bpk.load_file(path)["w"]
            if values.min() != values.max():
                wrong.append(values)

    plans[0].write_to_file(path)
    writers = [threading.Thread(target=write, args=(plan,)) for plan in plans]
    reader = threading.Thread(target=read)
    for thread in (*writers, reader):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert ([], ["model.bpk"]) == (wrong, names(tmp_path))


def test_a_scratch_file_that_is_not_committed_is_removed(tmp_path):
    """Left with an error, nothing stays (C131)."""
    with pytest.raises(ZeroDivisionError), ScratchFile(tmp_path / "x") as scratch:
        scratch.write(b"half")
        raise ZeroDivisionError
    assert [] == names(tmp_path)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system has no such hint")
def test_the_disk_begins_while_a_durable_save_goes_on(tmp_path, monkeypatch):
    """Each window is handed to the disk at once, in order; a refusal does not matter."""
    asked = []

    def advise(_descriptor, start, length, advice):
        asked.append((start, length))
        assert os.POSIX_FADV_DONTNEED == advice
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "posix_fadvise", advise)
    plan = Writer({name: np.ones(3 << 20, "<f4") for name in "abc"}).plan()
    plan.write_to_file(tmp_path / "a.bpk", durable=False)
    assert [] == asked
    plan.write_to_file(tmp_path / "a.bpk")
    assert plan.into_bytes() == (tmp_path / "a.bpk").read_bytes()
    ends = [start + length for start, length in asked]
    assert [0, *ends[:-1]] == [start for start, _ in asked]
    assert all(length >= 16 << 20 for _, length in asked)
    assert plan.size - ends[-1] < 16 << 20
