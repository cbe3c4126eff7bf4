"""Element types (C34 to C42, C70)."""

from __future__ import annotations

import pickle
import struct

import numpy as np
import pytest
from hypothesis import given

from bpk_lite import testing as bt
from bpk_lite.pack import DType, QuantScheme, Reader, Tensor, Writer

SIZES = {
    "F64": 8, "F32": 4, "Flex32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1,
    "U64": 8, "U32": 4, "U16": 2, "U8": 1, "Bool(Native)": 1, "Bool(U8)": 1, "Bool(U32)": 4,
}  # fmt: skip


@pytest.mark.parametrize(("text", "size"), SIZES.items())
def test_each_dtype_has_its_size(text, size):
    """Bytes per element as C70 lists them; a name parses to the type that prints as it."""
    dtype = DType.parse(text)
    assert (text, size, size) == (str(dtype), dtype.itemsize, dtype.stored.itemsize)
    assert dtype is DType.parse(dtype)


@given(dtype=bt.dtypes())
def test_dtypes_are_values(dtype):
    """They survive pickling and a trip through a pack, and compare and hash by content."""
    assert dtype == pickle.loads(pickle.dumps(dtype))
    tensor = Tensor.from_bytes("x", dtype, (0,), b"")
    found = Reader.from_bytes(Writer([tensor]).plan().into_bytes())["x"].dtype
    assert (dtype, hash(dtype)) == (found, hash(found))


@pytest.mark.parametrize("bad", ["f32", "Bool(U64)", "QFloat", "", "F32 "])
def test_unknown_names_are_refused(bad):
    """Names are case-sensitive (C34); the error lists what there is."""
    with pytest.raises(ValueError, match="expected one of F64, F32"):
        DType.parse(bad)


@pytest.mark.parametrize(
    ("code", "dtype"),
    [("<f4", "F32"), (">f4", "F32"), ("=i8", "I64"), ("?", "Bool(Native)"), ("u1", "U8")],
)
def test_arrays_have_a_dtype_whatever_their_byte_order(code, dtype):
    """`DType.of` looks at kind and size alone."""
    assert dtype == str(DType.of(np.zeros(1, code)))


@pytest.mark.parametrize("code", ["c8", "U3", "S2", "O", "V4", "M8[s]"])
def test_arrays_that_burn_cannot_hold_are_refused(code):
    """Complex, text, objects, raw bytes and times have no element type; none is guessed (bug F2)."""
    with pytest.raises(TypeError, match="burnpack has no element type"):
        DType.of(np.zeros(1, code))


@pytest.mark.parametrize(
    ("name", "store", "scheme"),
    [("F32", "U8", None), ("Bool", None, None), ("QFloat", None, None), ("Bool", "U16", None)],
)
def test_half_described_dtypes_cannot_be_made(name, store, scheme):
    """A boolean needs a store, a quantized type a scheme, and others neither."""
    with pytest.raises(ValueError, match="no such dtype"):
        DType(name, store, scheme)


def test_bfloat16_values_are_exact_and_alike_at_every_entry_point():
    """BF16 widens exactly, from bytes and from arrays, with or without ml_dtypes."""
    values = np.array([1.5, -2.5, 3.5, np.inf], np.float32)
    bits = (values.view(np.uint32) >> 16).astype(np.uint16)
    made = Tensor.from_array("b", bits, dtype="BF16")
    read = Reader.from_bytes(Writer([made]).plan().into_bytes())["b"]
    assert values.tolist() == read.to_float32().tolist() == made.to_float32().tolist()
    assert DType.BF16.numpy == read.numpy().dtype
    assert bits.tolist() == read.numpy().view(np.uint16).tolist()
    assert (DType.BF16, bits.tobytes()) == (read.dtype, read.to_bytes())


def pack(*parts):
    return b"".join(parts)


def f32(*values):
    return struct.pack(f"<{len(values)}f", *values)


NATIVE = [
    # scheme, shape, bytes, values
    (QuantScheme("Q8S", "Native"), (3,), pack(b"\x01\xff\x7f", f32(0.5)), [0.5, -0.5, 63.5]),
    (
        QuantScheme("Q4S", "Native", block=(2,), block_dtype="F16"),
        (2, 3),
        pack(bytes([1, 2, 3, 4, 5, 6]), np.array([1, 10, 100, 0.5], "<f2").tobytes()),
        [[1, 2, 30], [400, 500, 3]],
    ),
    (
        QuantScheme("Q8S", "Native", tensor="F32", block=(4,), block_dtype="UE4M3"),
        (8,),
        pack(bytes([1] * 8), bytes([0x38, 0x40]), f32(3.0)),  # e4m3: 1.0 and 2.0
        [3] * 4 + [6] * 4,
    ),
    (
        QuantScheme("Q2F", "Native", block=(2,), block_dtype="UE8M0"),
        (4,),
        pack(b"\x01\xff\x00\x01", bytes([126, 128])),  # 2^-1 and 2^1 (C127)
        [0.5, -0.5, 0, 2],
    ),
    (
        QuantScheme("E4M3", "Native", tensor="BF16"),
        (3,),
        pack(bytes([0x38, 0xC0, 0x7E]), b"\x00\x40"),  # 1, -2, 448; scale 2
        [2, -4, 896],
    ),
    (
        QuantScheme("E5M2", "Native"),
        (3,),
        pack(bytes([0x3C, 0xC0, 0x7C]), f32(1)),
        [1, -2, np.inf],
    ),
    (QuantScheme("E2M1", "Native"), (3,), pack(bytes([2, 7, 9]), f32(2)), [2, 12, -1]),
    (QuantScheme("Q8S", "Native"), (), pack(b"\x05", f32(2)), 10),
    (QuantScheme("Q8S", "Native"), (0, 3), f32(2), np.empty((0, 3)).tolist()),
]


@pytest.mark.parametrize(("scheme", "shape", "data", "values"), NATIVE, ids=str)
def test_native_stores_are_dequantized(scheme, shape, data, values):
    """Values are code times scale, by block and by tensor (C73, C127)."""
    tensor = Tensor.from_bytes("q", DType.quantized(scheme), shape, data)
    assert np.float32 == tensor.numpy().dtype
    assert values == tensor.numpy().tolist()
    assert data == tensor.to_bytes()


@pytest.mark.parametrize(
    ("scheme", "data", "words"),
    [
        (QuantScheme("Q8S", "PackedU32", 0), bytes(8), "packed differently"),
        (QuantScheme("E2M1", "PackedNative", 0), bytes(8), "packed differently"),
        (QuantScheme("Q8S", "Native", mode="Lookup"), bytes(8), "no table"),
        (QuantScheme("Q8S", "Native"), bytes(9), "holds 9 bytes where its scheme asks for 8"),
        (
            QuantScheme("Q8S", "Native", block=(2, 2), block_dtype="F32"),
            bytes(8),
            "block does not fit",
        ),
    ],
)
def test_other_quantized_tensors_stay_opaque(scheme, data, words):
    """What cannot be told is said, and the bytes stay exact (C128)."""
    tensor = Tensor.from_bytes("q", DType.quantized(scheme), (4,), data)
    with pytest.raises(ValueError, match=words):
        tensor.numpy()
    assert data == bytes(tensor.buffer())


@pytest.mark.parametrize(
    ("scheme", "shape", "total"),
    [
        (QuantScheme("Q8S", "Native", tensor="F32", block=(4,), block_dtype="UE4M3"), (8,), 14),
        (QuantScheme("Q4S", "PackedU32", 0), (3, 3), 16),
        (QuantScheme("Q4S", "PackedU32", 0), (2, 5, 9), 84),
        (QuantScheme("Q4S", "PackedU32", 0), (4, 8), 20),
        (QuantScheme("Q8F", "PackedU32", 0), (3, 5), 28),
        (QuantScheme("Q8F", "PackedU32", 0), (2, 8), 20),
        (QuantScheme("Q4S", "PackedU32", 0), (2, 8), 12),
        (QuantScheme("E2M1", "PackedNative", 0), (2, 3), 8),
        (QuantScheme("Q8S", "PackedU32", 2), (3, 3), None),
        (QuantScheme("Q8S", "Native", block=(0,), block_dtype="F32"), (3,), None),
    ],
)
def test_the_layout_of_a_scheme_gives_its_length(scheme, shape, total):
    """C73's and C128's examples, per-line packing included."""
    layout = scheme.layout(shape)
    assert total == (layout and layout[2])


def test_block_sizes_are_canonical_when_made_here_and_kept_when_read():
    """Leading ones are dropped and unused slots hold 1 (C38); a foreign form is kept (C69)."""
    made = QuantScheme("Q8S", block=(1, 4, 32), block_dtype="F32")
    assert ((4, 32), (4, 32, 1, 1, 1)) == (made.block, made.storage)
    kept = QuantScheme("Q8S", block=(1, 32), block_dtype="F32", storage=(1, 32, 9, 9, 9))
    assert [1, 32, 9, 9, 9] == kept.to_cbor()["block"]["size"]["storage"]


def test_a_scheme_with_unknown_fields_is_written_back_as_it_was():
    """A scheme of Burn before 0.22 is opaque, and copying a pack does not relabel it (C68)."""
    import cbor2

    from tests.support import pack_of

    old = {
        "value": "Q8S",
        "param": "F32",
        "store": "Native",
        "level": "Tensor",
        "mode": "Symmetric",
    }
    blob = pack_of(
        {"q": {"dtype": {"QFloat": old}, "shape": [2], "data_offsets": [0, 6]}}, b"abcdef"
    )
    again = Writer(Reader.from_bytes(blob).values()).plan()
    assert cbor2.dumps(old) in again.header
    assert b"abcdef" == Reader.from_bytes(again.into_bytes())["q"].to_bytes()


@pytest.mark.parametrize(
    "fields",
    [
        {"value": "Q3S"}, {"store": "U32"}, {"mode": "Odd"}, {"tensor": "F64"}, {"block": (2,)},
        {"block": (256,), "block_dtype": "F32"}, {"block": (1,) * 6, "block_dtype": "F32"},
        {"store": "Native", "packed_dim": 0},
    ],
)  # fmt: skip
def test_impossible_schemes_cannot_be_made(fields):
    """Each wrong field is named."""
    with pytest.raises(ValueError, match=r"quantized|scale|block|packed"):
        QuantScheme(**{"value": "Q8S", **fields})
