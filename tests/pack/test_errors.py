"""Errors: one root, the builtin one would catch, and picklable."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from bpk_lite.pack import Reader, Tensor, Writer, _errors, looks_like
from tests.support import descriptor, pack_of

CLASSES = [getattr(_errors, name) for name in _errors.__all__]
BUILTINS = {
    "FormatError": ValueError, "TruncatedError": EOFError, "TensorNotFound": KeyError,
    "WriteError": OSError, "ReadError": OSError, "AlreadyExists": FileExistsError,
    "RecordError": ValueError, "PlanError": ValueError, "DependencyError": ImportError,
    "TensorBytesSizeMismatch": ValueError, "MetadataSerializationError": ValueError,
    "LimitError": ValueError, "TensorClosedError": ValueError,
}  # fmt: skip


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_is_a_bpk_error_and_pickles(cls):
    """Type and message survive pickling, and the message prints as it was given."""
    error = pickle.loads(pickle.dumps(cls("model.bpk: what, where")))
    assert isinstance(error, _errors.BpkError)
    assert (cls, "model.bpk: what, where") == (type(error), str(error))
    assert issubclass(cls, BUILTINS.get(cls.__name__, Exception))


def changed(place, byte):
    """Return a small pack with one byte replaced."""
    blob = bytearray(Writer({"w": np.ones(2, "<f4")}).plan().into_bytes())
    blob[place] = byte
    return bytes(blob)


def provided(size):
    return Writer([Tensor.deferred("w", "F32", (2,), lambda: bytes(size))]).plan().into_bytes()


KINDS = {
    "InvalidHeader": lambda: Reader.from_bytes(b"NRUB\x01"),
    "InvalidMagicNumber": lambda: Reader.from_bytes(changed(0, 0)),
    "InvalidVersion": lambda: Reader.from_bytes(changed(4, 2)),
    "MetadataSerializationError": lambda: Writer({}, metadata={"k": "\ud800"}).plan(),
    "MetadataDeserializationError": lambda: Reader.from_bytes(changed(10, 0xFF)),
    "TensorNotFound": lambda: Reader.from_bytes(provided(8))["v"],
    "TensorBytesSizeMismatch": lambda: provided(7),
    "ValidationError": lambda: Reader.from_bytes(pack_of({"w": descriptor(shape=(3,))}, bytes(8))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_burns_kinds_of_error_have_their_names(kind):
    """What Burn names so is named so; its printed labels are not imitated (C118, C119)."""
    with pytest.raises(_errors.BpkError) as caught:
        KINDS[kind]()
    assert kind == caught.type.__name__


@pytest.mark.desktop
def test_burns_errors_of_files_are_three_kinds(tmp_path):
    """Its ``IoError`` says here what could not be read or written (C118)."""
    plan = Writer({"w": np.ones(2, "<f4")}).plan()
    path = plan.write_to_file(tmp_path / "w")
    cases = [
        (_errors.ReadError, lambda: Reader.from_file(tmp_path / "none")),
        (_errors.WriteError, lambda: plan.write_to_file(tmp_path / "none" / "w")),
        (_errors.WriteError, lambda: plan.write_into(bytearray(plan.size - 1))),
        (_errors.AlreadyExists, lambda: plan.write_to_file(path, overwrite=False)),
    ]
    for error, use in cases:
        with pytest.raises(error) as caught:
            use()
        assert error is caught.type


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"\x1f\x8b\x08", ".mpk.gz"), (b"\x81\xa4item", "MessagePack"), (b"\xde\x00\x10", "MessagePack"),
        (b"PK\x03\x04", "zip archive"), (b"\x80\x02\x8a\x0a", "pickle"), (b"GGUF\x03", "GGUF"),
        (b"\x40\0\0\0\0\0\0\0{\"a\"", "SafeTensors"), (b"{\"item\"", "JSON"), (b"<!DOCTYPE html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1", "git lfs pull"), (b"BURN\x01", "big-endian"),
        (b"\x93NUMPY\x01", "numpy.load"), (b"\x89HDF\r\n", "HDF5"), (bytes(12), "all zeros"),
        (b"\x28\xb5\x2f\xfd", "zstd"), (b"\x01\x02\x03", ".bin record"),
        (b"a" * 257 + b"ustar", "tar archive"),
    ],
)  # fmt: skip
def test_foreign_files_are_recognised(head, words):
    """What the file looks like, and what to do (S228 to S233)."""
    assert words in looks_like(head, 10_000)


def test_an_empty_file_is_called_empty():
    """Nothing to look at is said so (bug A7)."""
    assert looks_like(b"", 0).startswith("an empty file")
