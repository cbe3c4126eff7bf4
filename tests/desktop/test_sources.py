"""Mapped and plain sources (C76, C84; bugs A7, E1, E3, E9)."""

from __future__ import annotations

import errno
import gc
import logging
import os
import threading

import numpy as np
import pytest

import bpk_lite as bpk
from bpk_lite.desktop import FileSource, MmapSource
from bpk_lite.desktop import _sources as sources_module
from bpk_lite.pack import (
    InvalidHeader,
    LimitError,
    Limits,
    Reader,
    ReadError,
    TensorClosedError,
    TruncatedError,
)

BACKENDS = ["mmap", "read"]


@pytest.fixture
def path(tmp_path):
    return bpk.save_file({"w": np.arange(1000, dtype="<f4")}, tmp_path / "model.bpk")


@pytest.mark.parametrize("backend", BACKENDS)
def test_both_backends_give_the_same_values(path, backend):
    """A mapping and plain reads differ in cost alone."""
    with Reader.from_file(path, backend=backend) as pack:
        assert {"mmap": MmapSource, "read": FileSource}[backend] is type(pack.source)
        assert list(range(10)) == pack["w"][:10].tolist()
        assert 499500 == pack["w"].numpy().sum()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_replaced_file_goes_on_giving_its_old_bytes(path, backend):
    """An atomic save under an open pack changes nothing for it (where Burn errs: C84)."""
    with Reader.from_file(path, backend=backend) as pack:
        bpk.save_file({"w": np.zeros(1000, "<f4")}, path)
        assert 499500 == pack["w"].numpy().sum()
    assert 0 == bpk.load_file(path)["w"].sum()


def test_saving_onto_the_file_one_has_loaded_from(path):
    """The written file is right and the views keep their values (bug D10's kind)."""
    views = bpk.load_file(path)
    bpk.save_file({"w": views["w"] * 2}, path)
    bpk.save_file(views | {"more": np.ones(3)}, path)
    assert 499500 == views["w"].sum() == bpk.load_file(path)["w"].sum()


def test_arrays_outlive_the_pack_and_the_mapping_goes_with_the_last(path):
    """Closing is safe with live views; without views nothing stays mapped (bug E1)."""

    def mapped():
        gc.collect()
        with open("/proc/self/maps") as maps:
            return any(str(path) in line for line in maps)

    with Reader.from_file(path) as pack:
        tensor = pack["w"]
        view = tensor.numpy()
    assert 499500 == view.sum()
    with pytest.raises(TensorClosedError):
        tensor.numpy()
    assert mapped()
    del view
    assert not mapped()
    with Reader.from_file(path):
        assert mapped()
    assert not mapped()


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_descriptor_stays_open(path, backend):
    """After close, and after a failed open, the process holds no file."""

    def open_files():
        return len(os.listdir("/proc/self/fd"))

    before = open_files()
    with Reader.from_file(path, backend=backend):
        pass
    with open(path, "r+b") as file:
        file.write(b"XXXX")
    with pytest.raises(bpk.InvalidMagicNumber):
        Reader.from_file(path, backend=backend)
    assert before == open_files()


def test_a_file_truncated_under_plain_reads_is_a_typed_error(path):
    """Never a wrong answer (bug E4); the error names the file and both sizes."""
    with Reader.from_file(path, backend="read") as pack:
        os.truncate(path, 600)
        with pytest.raises(TruncatedError, match=r"shrank while it was open: it had 4256 bytes"):
            pack["w"].numpy()


@pytest.mark.parametrize("code", [errno.ENODEV, errno.ENOMEM])
def test_where_mapping_fails_the_file_is_read(path, code, monkeypatch, caplog):
    """ENODEV and ENOMEM fall back with a logged reason; asked for, mapping is an error (bug E3)."""

    def fails(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(sources_module.mmap, "mmap", fails)
    caplog.set_level(logging.INFO, "bpk_lite")
    with Reader.from_file(path) as pack:
        assert 499500 == pack["w"].numpy().sum()
    assert os.strerror(code) in caplog.text
    with pytest.raises(ReadError, match=os.strerror(code)):
        Reader.from_file(path, backend="mmap")


@pytest.mark.parametrize("backend", ["auto", *BACKENDS])
def test_an_empty_file_is_a_bad_header_not_a_mapping_error(tmp_path, backend):
    """A 0-byte file is named as empty by every backend (bug A7)."""
    path = tmp_path / "empty.bpk"
    path.touch()
    with pytest.raises(InvalidHeader, match="an empty file"):
        Reader.from_file(path, backend=backend)


def test_errors_of_the_system_name_the_path(tmp_path):
    """Missing, a directory, and not permitted are ReadErrors, and OSErrors (C76)."""
    with pytest.raises(OSError, match=r"cannot read .*none\.bpk: No such file") as caught:
        bpk.open(tmp_path / "none")
    assert ReadError is caught.type
    (tmp_path / "dir.bpk").mkdir()
    with pytest.raises(ReadError, match=r"dir\.bpk.*directory"):
        bpk.open(tmp_path / "dir.bpk")
    with pytest.raises(ValueError, match="backend is"):
        Reader.from_file(tmp_path / "none", backend="magic")


def test_the_file_limit_holds_for_files_only(path):
    """A file beyond it is refused, the same bytes in memory are not (C78)."""
    with pytest.raises(LimitError, match="4256 bytes; the limit is 4255"):
        bpk.open(path, limits=Limits(file_bytes=4255))
    with open(path, "rb") as file:
        assert 1 == len(bpk.open(file.read(), limits=Limits(file_bytes=4255)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_may_read_at_once(path, backend):
    """Reads carry their own offset: many threads over one pack see right values."""
    wrong = []
    with Reader.from_file(path, backend=backend) as pack:

        def work(seed):
            rng = np.random.default_rng(seed)
            for start in rng.integers(0, 990, 200):
                found = pack["w"][start : start + 5].tolist()
                wrong.extend([start] * (found != list(range(start, start + 5))))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [] == wrong


def test_plain_reads_do_not_depend_on_preadv(path, monkeypatch):
    """Systems without preadv (Windows) seek and read under a lock."""
    monkeypatch.delattr(os, "preadv", raising=False)
    with Reader.from_file(path, backend="read") as pack:
        assert [5.0, 6.0] == pack["w"][5:7].tolist()
