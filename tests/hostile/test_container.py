"""Hostile and odd containers (bugs.md section A)."""

from __future__ import annotations

import numpy as np
import pytest

import bpk_lite as bpk
from bpk_lite.inspect import summarize, verify
from bpk_lite.pack import LimitError, Limits, Reader, ValidationError, Writer
from tests.conformance.test_container import PACKS
from tests.support import descriptor, pack_of


@pytest.mark.parametrize(
    ("shape", "offsets", "needs"),
    [((4,), (0, 8), "16 bytes"), ((2**32, 2**32), (0, 8), "more than 64 bits"), ((1,), (0, 8), "4 bytes")],
)  # fmt: skip
def test_lengths_are_compared_with_shape_and_dtype(shape, offsets, needs):
    """Name, shape, dtype, found and expected bytes are in the error (bug A1)."""
    blob = pack_of({"fc.weight": descriptor(shape=shape, offsets=offsets)}, bytes(8))
    with pytest.raises(ValidationError, match=needs) as caught:
        Reader.from_bytes(blob)
    for part in ("'fc.weight'", "8 bytes", "F32", str(list(shape))):
        assert part in str(caught.value)


def test_an_overlap_bomb_costs_nothing_as_views_and_is_refused_as_copies():
    """Thousands of tensors over one range: views are free, copies have a budget (bug A4)."""
    size = 1 << 20
    count = 1000
    tensors = {f"t{i}": descriptor("U8", (size,), (0, size)) for i in range(count)}
    blob = pack_of(tensors, bytes(size))
    views = bpk.load(blob)
    assert count == len(views)
    assert all(np.shares_memory(view, np.frombuffer(blob, np.uint8)) for view in views.values())
    with pytest.raises(LimitError, match=r"copies would take 1048576000 bytes, \d+ times"):
        bpk.load(blob, copy=True)
    assert count == len(bpk.load(blob, copy=True, limits=Limits(copies=2000)))
    assert {"overlap"} == {finding.code for finding in verify(Reader.from_bytes(blob))}


def test_verify_reports_each_odd_thing():
    """Misalignment, gaps, padding, trailing bytes, shared ids and odd booleans (bugs A6, A14)."""
    tensors = {
        "a": descriptor("U8", (1,), (0, 1), param_id=7),
        "b": descriptor("U8", (1,), (5, 6), param_id=7),
        "c": descriptor({"Bool": "Native"}, (1,), (1024, 1025)),
        "d": descriptor("U8", (0,), (5, 5)),
    }
    data = bytearray(1030)
    data[3], data[1024] = 9, 7
    found = verify(Reader.from_bytes(pack_of(tensors, bytes(data))))
    assert {"misaligned", "gap", "padding", "trailing", "duplicate-id", "bool-value"} == {
        finding.code for finding in found
    }
    assert {"b", "d"} == {finding.tensor for finding in found if finding.code == "misaligned"}


def test_packs_of_burn_have_no_findings_but_true_ones():
    """Optimizer states share ids rightly; empty records, shared params and random masks are named."""
    odd = {
        path.stem: {finding.code for finding in found}
        for path in PACKS
        if (found := verify(Reader.from_bytes(path.read_bytes())))
    }
    empty = ["empty", "module_group_none", "module_hollow", "sched_composed_empty_0",
             "sched_composed_empty_5", "sched_constant_0", "sched_constant_5", "sched_number_0",
             "sched_number_5"]  # fmt: skip
    assert {
        **{stem: {"empty"} for stem in empty},
        "module_shared": {"duplicate-id"},
        "quantized": {"quantized-length"},  # made of random bytes
        "deferred_mixed": {"bool-value"},  # likewise
        "rewritten_view": {"bool-value"},
    } == odd


def test_zero_size_tensors_are_not_malformed():
    """Shape [0] with equal offsets is fine, and so is the empty pack it may make (bug A14)."""
    blob = Writer({"scaled_fp8": np.zeros(0, "u1"), "w": np.ones(3)}).plan().into_bytes()
    assert [] == verify(Reader.from_bytes(blob))


def test_an_empty_container_is_reported_as_such():
    """Zero tensors is not silently valid (bug A17)."""
    pack = Reader.from_bytes(Writer({}).plan().into_bytes())
    assert ["empty"] == [finding.code for finding in verify(pack)]
    assert 0 == summarize(pack).elements


NAMES = ["", "\0", "a\nb", "../../etc/passwd", "__metadata__", "<img src=x onerror=alert(1)>",
         "\u202eabc", "x" * 1_000_000, "ключ", "a.b..c."]  # fmt: skip


def test_odd_names_survive():
    """Odd but valid names round-trip; they are never paths (bug B10)."""
    arrays = {name: np.array([i], "<i4") for i, name in enumerate(NAMES)}
    found = bpk.load(bpk.save(arrays))
    assert {name: array.tolist() for name, array in arrays.items()} == {
        name: array.tolist() for name, array in found.items()
    }
