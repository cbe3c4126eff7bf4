"""Planning and writing (C88 to C104; burn-pack's lazy_writer.rs, streaming_memory.rs)."""

from __future__ import annotations

import io
import weakref

import numpy as np
import pytest

from bpk_lite.pack import (
    WINDOW,
    DType,
    LimitError,
    Limits,
    MetadataSerializationError,
    PlanError,
    ProviderError,
    QuantScheme,
    Reader,
    Tensor,
    WriteError,
    Writer,
)


def counting(calls, name, data=b"abcd"):
    def provider():
        calls.append(name)
        return data

    return Tensor.deferred(name, "F32", (1,), provider)


def test_planning_calls_no_provider():
    """Size, entries and header are known before any data are (C91, C96)."""
    calls = []
    plan = Writer([counting(calls, "b"), counting(calls, "a")]).plan()
    assert ([], [("b", 0, 4), ("a", 256, 260)]) == (
        calls,
        [(entry.name, entry.start, entry.end) for entry in plan.entries],
    )
    assert plan.size == len(plan.header) + 260


def test_providers_run_once_each_in_write_order():
    """Not in the order of names, and once for every write (C98)."""
    calls = []
    plan = Writer([counting(calls, name) for name in ("c", "a", "b")]).plan()
    plan.into_bytes()
    assert ["c", "a", "b"] == calls
    plan.write_into(bytearray(plan.size))
    assert 6 == len(calls)


def test_deferred_and_resident_tensors_give_the_same_pack():
    """Readers cannot tell the difference (C89)."""
    resident = [Tensor.from_bytes(n, "F32", (1,), b"abcd") for n in ("b", "a")]
    deferred = [counting([], n) for n in ("b", "a")]
    assert Writer(resident).plan().into_bytes() == Writer(deferred).plan().into_bytes()


def test_each_tensors_data_are_freed_before_the_next_are_made():
    """At every provider call no earlier payload is alive."""
    alive: list[weakref.ref] = []
    counts = []

    class Payload(np.ndarray):
        pass

    def provider():
        counts.append(sum(ref() is not None for ref in alive))
        made = np.ones(1 << 16, "<f4").view(Payload)
        alive.append(weakref.ref(made))
        return made

    tensors = [Tensor.deferred(f"t{i}", "F32", (1 << 16,), provider) for i in range(5)]
    for write in (lambda p: p.into_bytes(), lambda p: p.write_to(io.BytesIO())):
        write(Writer(tensors).plan())
    assert [0] * 10 == counts


def test_worked_example_byte_for_byte():
    """Section 15.1's 516 bytes."""
    expected = bytes.fromhex(
        "4e525542 0100 9a000000 a3 67 74656e736f7273 a2 61 62 a3 65 6474797065 63 463332"
        "65 7368617065 8101 6c 646174615f6f666673657473 82 190100 190104 61 77 a4 65 6474797065"
        "63 463332 65 7368617065 820202 6c 646174615f6f666673657473 82 00 10 68 706172616d5f6964"
        "182a 68 6d65746164617461 a1 616b 6176 67 7363616c617273 a2 62 6c72 a1 65 466c6f6174"
        "fb3f50624dd2f1a9fc 64 73746570 a1 64 55496e74 03"
    ).ljust(256, b"\0")
    expected += np.arange(1, 5, dtype="<f4").tobytes().ljust(256, b"\0")
    expected += np.float32(0.5).tobytes()
    w = Tensor.from_array("w", np.arange(1, 5, dtype="<f4").reshape(2, 2), param_id=42)
    b = Tensor.from_array("b", np.array([0.5], "<f4"))
    plan = Writer([w, b], metadata={"k": "v"}, scalars={"step": 3, "lr": 0.001}).plan()
    assert expected == plan.into_bytes()


def test_padding_of_empty_tensors():
    """Section 15.2 and C16: a trailing empty tensor still gets its aligned start."""
    s, z = np.array(1.5, "<f4"), np.array([2.0], "<f4")
    plan = Writer({"s": s, "e": np.zeros((0, 3), "<f4"), "z": z}).plan()
    assert 516 == plan.size
    assert [(0, 4), (256, 256), (256, 260)] == [(e.start, e.end) for e in plan.entries]
    last = Writer({"s": s, "e": np.zeros(0, "<f4")}).plan()
    assert (512, 512) == (last.size, len(last.into_bytes()))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_tensors_keep_their_shape(shape):
    """Zeros in a shape are no error and no loss (bug A14)."""
    blob = Writer({"x": np.zeros(shape)}).plan().into_bytes()
    assert shape == Reader.from_bytes(blob)["x"].numpy().shape


def test_two_tensors_of_one_name_are_refused():
    """The name is in the error (C91)."""
    with pytest.raises(PlanError, match="two tensors are named 'w'"):
        Writer([Tensor.from_array("w", np.ones(1))] * 2).plan()


def test_a_mappings_keys_are_the_names():
    """A Tensor under another key is stored under the key."""
    tensor = Tensor.from_array("old", np.ones(1), param_id=5)
    assert [("new", 5)] == [(e.name, e.param_id) for e in Writer({"new": tensor}).plan().entries]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tensors": {3: np.ones(1)}}, "name is text"),
        ({"tensors": [np.ones(1)]}, "expected bpk_lite.Tensor values"),
        ({"tensors": {"c": np.ones(1, "c8")}}, "tensor 'c': burnpack has no element type"),
        ({"tensors": {}, "metadata": {"k": 3}}, "metadata is text to text"),
        ({"tensors": {}, "scalars": {"k": "3"}}, "scalar 'k': a scalar is an int"),
        ({"tensors": {}, "scalars": {3: 3}}, "a scalar's name is text"),
    ],
)
def test_what_a_pack_cannot_hold_is_named(arguments, words):
    """A caller's mistake is a PlanError, not a FormatError."""
    with pytest.raises(PlanError, match=words):
        Writer(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"tensors": {"\ud800": np.ones(1)}}, {"tensors": {}, "metadata": {"k": "\ud800"}}],
)
def test_text_that_utf8_cannot_hold_is_refused(arguments):
    """A lone surrogate in a name or value fails the plan (bug B10)."""
    with pytest.raises(MetadataSerializationError):
        Writer(**arguments).plan()


def test_a_plan_beyond_a_readers_limits_is_refused():
    """What we write, we read: count, metadata, tensor and file size (C94; bug A3)."""
    many = [Tensor.from_bytes(str(i), "U8", (0,), b"") for i in range(3)]
    huge = Tensor.deferred("huge", "U8", ((10 << 30) + 1,), lambda: b"")
    for writer, words in (
        (Writer(many, limits=Limits(tensors=2)), "3 tensors; the limit is 2"),
        (Writer({}, metadata={"k": "v" * 99}, limits=Limits(metadata=99)), "bytes of metadata"),
        (Writer([huge]), "'huge' has 10737418241 bytes; the limit is 10737418240"),
        (Writer(many, limits=Limits(file_bytes=10)), "bytes in all; the limit is 10"),
    ):
        with pytest.raises(LimitError, match=words):
            writer.plan()


def test_100_001_tensors_are_refused_before_anything_is_written():
    """The default limit is the reader's (bug A3's own trigger)."""
    one = Tensor.from_bytes("x", "U8", (0,), b"")
    with pytest.raises(LimitError, match="100001 tensors"):
        Writer([one] * 100_001).plan()


def test_quantized_lengths_are_exempt_from_the_plan_and_checked_while_writing():
    """C92 and C93: any declared length plans, but the provider must give exactly it."""
    dtype = DType.quantized(QuantScheme("Q8S", "Native"))
    good = Tensor.deferred("q", dtype, (4,), lambda: b"12345", nbytes=5)
    assert 5 == Reader.from_bytes(Writer([good]).plan().into_bytes())["q"].nbytes
    bad = Tensor.deferred("q", dtype, (4,), lambda: b"1234", nbytes=5)
    with pytest.raises(ProviderError, match="declares 5 bytes, its provider gave 4"):
        Writer([bad]).plan().into_bytes()


def test_writing_into_a_buffer():
    """Too short is refused untouched; the tail of a longer one is left alone (C102)."""
    plan = Writer({"w": np.ones(3, "<f4")}).plan()
    short = bytearray(b"\xff" * (plan.size - 1))
    with pytest.raises(WriteError, match=f"{plan.size - 1} bytes, needed {plan.size}"):
        plan.write_into(short)
    assert bytes(short) == b"\xff" * (plan.size - 1)
    long = bytearray(b"\xff" * (plan.size + 5))
    assert plan.size == plan.write_into(long)
    assert plan.into_bytes() + b"\xff" * 5 == bytes(long)
    with pytest.raises(TypeError, match="read-only"):
        plan.write_into(bytes(plan.size))


def test_resident_data_are_written_without_a_copy():
    """The buffers of a plan over contiguous arrays are the arrays' own memory."""
    array = np.ones(1000)
    parts = list(Writer({"w": array}).plan().buffers())
    assert any(
        np.shares_memory(np.frombuffer(part, np.uint8), array) for part in parts if part.nbytes
    )


def test_windows_of_a_source_are_written_8_mib_at_a_time():
    """A large tensor of another pack is never held whole (C99)."""
    blob = Writer({"w": np.zeros(WINDOW + 5, "u1")}).plan().into_bytes()
    sizes = [part.nbytes for part in Reader.from_bytes(blob)["w"].pieces()]
    assert [WINDOW, 5] == sizes
    again = Writer(Reader.from_bytes(blob).values()).plan()
    assert blob == again.into_bytes()


def test_a_provider_failure_names_the_tensor_and_keeps_its_cause():
    """C100, and interrupts are not wrapped."""
    boom = RuntimeError("device lost")

    def provider():
        raise boom

    plan = Writer([Tensor.deferred("fc.w", "F32", (1,), provider)]).plan()
    with pytest.raises(ProviderError, match=r"'fc\.w' failed: RuntimeError: device lost") as caught:
        plan.into_bytes()
    assert boom is caught.value.__cause__

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Writer([Tensor.deferred("w", "F32", (1,), interrupted)]).plan().into_bytes()
