"""No input makes anything but a `BpkError` come out of the reader."""

from __future__ import annotations

import random

import pytest

from bpk_lite.inspect import summarize, verify
from bpk_lite.pack import BpkError, PlanError, Reader
from tests.conformance.test_container import PACKS
from tests.support import rewritten

BASES = [blob for path in PACKS if len(blob := path.read_bytes()) < 6000]
HEADS = bytes.fromhex(
    "00171819 1a1b1c1f 20373b5f 60787b7f 80989b9f a0b8bbbf c0d8dbf4 f5f6f7f8 f9fafbff"
)
COUNT = 60_000


def mutated(rng: random.Random) -> bytes:
    """Return a real pack with one to four things changed, mostly in header and metadata."""
    blob = bytearray(rng.choice(BASES))
    end = 10 + int.from_bytes(blob[6:10], "little")
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(min(end, len(blob))) if rng.random() < 0.9 else rng.randrange(len(blob))
        match rng.randrange(8):
            case 0:
                blob[at] ^= 1 << rng.randrange(8)
            case 1:
                blob[at] = rng.choice(HEADS)
            case 2:
                blob[at : at + 8] = rng.randbytes(8)
            case 3:
                del blob[at : at + rng.randint(1, 9)]
            case 4:
                blob[at:at] = rng.randbytes(rng.randint(1, 9))
            case 5:
                other = rng.choice(BASES)
                start = rng.randrange(len(other))
                blob[at : at + 20] = other[start : start + 20]
            case 6:
                del blob[at:]
            case 7:
                blob[at : at + 9] = b"\x1b" + rng.choice(
                    [b"\xff" * 8, b"\x80" + bytes(7), b"\x7f" + b"\xff" * 7, bytes(7) + b"\x08"]
                )
        if not blob:
            blob += b"\0"
    if rng.random() < 0.7:  # a right size of the metadata gets mutations past the first check
        blob[6:10] = max(0, min(end, len(blob)) - 10).to_bytes(4, "little")
    return bytes(blob)


def exercise(blob: bytes) -> bool:
    """Open a pack and use all of it; return whether it opened."""
    try:
        pack = Reader.from_bytes(blob)
    except BpkError:
        return False
    repr(pack), summarize(pack).to_dict(), verify(pack)
    for tensor in pack.values():
        assert tensor.nbytes == tensor.buffer().nbytes
        try:
            tensor.numpy()
            tensor[:1]
        except (BpkError, IndexError):
            pass  # opaque, odd booleans, shapes numpy cannot have; a rank of 0 has no rows
    try:
        again = Reader.from_bytes(rewritten(pack))
    except PlanError:
        return True
    assert list(pack) == list(again)
    return True


@pytest.mark.parametrize("seed", range(6))
def test_mutated_packs_open_or_fail_with_our_error(seed):
    """Of 60 000 mutated packs each opens and is usable, or raises a `BpkError`."""
    rng = random.Random(seed)
    opened = sum(exercise(mutated(rng)) for _ in range(COUNT // 6))
    assert COUNT // 6 * 0.05 < opened < COUNT // 6 * 0.9  # both outcomes are tried
