"""Mutated checkpoints: only our errors, in bounded time and memory (bugs C5, C15, C21)."""

from __future__ import annotations

import contextlib
import io
import random
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from bpk_lite.pack import BpkError
from bpk_lite.store import PytorchReader

FOLDER = Path(__file__).parent.parent / "fixtures" / "burn" / "store" / "pytorch"
BASES = [blob for path in sorted(FOLDER.glob("*.*")) if 0 < len(blob := path.read_bytes()) < 9000
         and path.suffix != ".jsonl"]  # fmt: skip
OPCODES = bytes(range(32, 127)) + bytes(range(0x80, 0x99))
COUNT = 12_000


def unzipped(blob):
    """Return the entries of a zip, or None for what is none."""
    try:
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, ValueError):
        return None


ZIPS = [entries for blob in BASES if (entries := unzipped(blob)) and any(
    name.endswith("data.pkl") for name in entries)]  # fmt: skip


def mutated(rng):
    """Return a mutated file, or a zip whose pickle alone is mutated, with a right checksum."""
    if rng.random() < 0.4:
        return mutated_bytes(rng, rng.choice(BASES))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in rng.choice(ZIPS).items():
            pickle = name.endswith("data.pkl")
            archive.writestr(name, mutated_bytes(rng, content) if pickle else content)
    return stream.getvalue()


def mutated_bytes(rng, base):
    blob = bytearray(base)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(blob))
        match rng.randrange(7):
            case 0:
                blob[at] ^= 1 << rng.randrange(8)
            case 1:
                blob[at] = rng.choice(OPCODES)
            case 2:
                blob[at : at + 4] = rng.choice([b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f"])
            case 3:
                del blob[at : at + rng.randint(1, 9)]
            case 4:
                blob[at:at] = bytes(rng.choice(OPCODES) for _ in range(rng.randint(1, 6)))
            case 5:
                other = rng.choice(BASES)
                start = rng.randrange(len(other))
                blob[at : at + 30] = other[start : start + 30]
            case 6:
                del blob[at:]
        if not blob:
            blob += b"\0"
    return bytes(blob)


@pytest.mark.parametrize("seed", range(4))
def test_mutated_checkpoints_open_or_fail_with_our_error(seed):
    """Of 12 000 mutated files each is read or is a `BpkError`, and none takes two seconds."""
    rng = random.Random(seed)
    opened = 0
    for _ in range(COUNT // 4):
        blob = mutated(rng)
        start = time.process_time()
        try:
            with PytorchReader.from_bytes(blob) as reader:
                opened += 1
                for name in [*reader, *reader.unsupported]:
                    try:
                        reader[name].buffer()
                    except BpkError:
                        continue
        except BpkError:
            pass
        assert time.process_time() - start < 2
    assert COUNT // 4 * 0.05 < opened < COUNT // 4 * 0.9


def bombs():
    """Yield small pickles that would be huge if values were copied."""
    double = b"\x80\x02" + b"]q\x00" + b"(h\x00h\x00tq\x00" * 60 + b"."
    yield "tuples of tuples", b"\x80\x02}X\x01\x00\x00\x00a" + double[2:-1] + b"s."
    yield "duplicates", b"\x80\x02}X\x01\x00\x00\x00a]" + b"2\x86" * 60 + b"s."
    yield "nested lists", b"\x80\x02}X\x01\x00\x00\x00a" + b"]" * 30_000 + b"a" * 29_999 + b"s."
    yield "nested tuples", b"\x80\x02}X\x01\x00\x00\x00aN" + b"\x85" * 50_000 + b"s."
    yield "tuple as key", b"\x80\x02}N" + b"2\x86" * 50 + b"Ns."


@pytest.mark.parametrize(("name", "blob"), list(bombs()))
def test_bombs_end_at_once_and_stay_small(name, blob):
    """Shared references are shared (bug C5): time and memory stay linear in the file."""
    start = time.process_time()
    read(blob)
    assert time.process_time() - start < 2
    tracemalloc.start()
    try:
        read(blob)
        assert tracemalloc.get_traced_memory()[1] < 400 * len(blob) + 4_000_000, name
    finally:
        tracemalloc.stop()


def read(blob):
    with contextlib.suppress(BpkError):
        PytorchReader.from_bytes(blob).close()
