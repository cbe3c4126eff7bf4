"""Differential tests against the safetensors library, both directions (bug D5)."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bpk_lite.pack import BpkError, Tensor
from bpk_lite.store import SafetensorsFile, SafetensorsPlan
from tests.store.test_safetensors import FILES, READS
from tests.support import desktop_module

safetensors = desktop_module("safetensors")
desktop_module("safetensors.numpy")

pytestmark = pytest.mark.desktop

CODES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]


def test_the_library_reads_what_we_write(tmp_path):
    """Every dtype, empty and scalar tensors, odd names and metadata."""
    rng = np.random.default_rng(0)
    arrays = {f"t.{code}": rng.integers(0, 2, (2, 3)).astype(code) for code in CODES}
    arrays |= {"empty": np.zeros((0, 3), "f4"), "scalar": np.array(2.5), 'имя\n"': np.ones(2)}
    tensors = [Tensor.from_array(name, array) for name, array in arrays.items()]
    path = tmp_path / "ours.safetensors"
    SafetensorsPlan.of(tensors, {"k": "v"}).write_to_file(path, extension=False)
    found = safetensors.numpy.load_file(path)
    assert arrays.keys() == found.keys()
    assert all(np.array_equal(arrays[name], found[name]) for name in arrays)
    with safetensors.safe_open(path, "np") as file:
        assert {"k": "v"} == file.metadata()


def test_we_read_what_the_library_writes():
    """Content is equal, and our rewrite is its file where it has no metadata."""
    rng = np.random.default_rng(1)
    arrays = {f"t.{code}": rng.integers(0, 2, (3, 2)).astype(code) for code in CODES}
    blob = safetensors.numpy.save(arrays)
    with SafetensorsFile.from_bytes(blob) as file:
        assert all(np.array_equal(arrays[name], t.numpy()) for name, t in file.items())
        assert blob == SafetensorsPlan.of(file.values()).into_bytes()


def verdicts(blob):
    """Return whether the library and we accept a file."""
    try:
        SafetensorsFile.from_bytes(blob).close()
        ours = True
    except BpkError:
        ours = False
    try:
        safetensors.deserialize(blob)
        theirs = True
    except safetensors.SafetensorError:
        theirs = False
    return theirs, ours


def test_mutated_files_are_accepted_or_refused_alike():
    """12 000 mutated files: the same verdict as the library's, and only our errors."""
    rng = random.Random(7)
    bases = [path.read_bytes() for path in FILES] + [bytes.fromhex(row["hex"]) for row in READS]
    bases = [blob for blob in bases if 0 < len(blob) < 4000]
    both = [0, 0]
    for _ in range(12_000):
        blob = bytearray(rng.choice(bases))
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.randrange(len(blob))
            match rng.randrange(6):
                case 0:
                    blob[at] ^= 1 << rng.randrange(8)
                case 1:
                    blob[at] = rng.choice(b'0123456789[]{}",: \\u')
                case 2:
                    blob[at:at] = rng.choice([b"0", b" ", b'"', b"9" * 20, b"[", b"1e2", b"-"])
                case 3:
                    del blob[at : at + rng.randint(1, 4)]
                case 4:
                    blob[8:8] = b" "
                    blob[0] = (blob[0] + 1) % 256
                case 5:
                    blob += rng.randbytes(rng.randint(1, 3))
            if not blob:
                blob += b"\0"
        theirs, ours = verdicts(bytes(blob))
        assert theirs == ours, bytes(blob)
        both[ours] += 1
    assert min(both) > 100
