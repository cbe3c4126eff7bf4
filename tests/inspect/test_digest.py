"""The digest names content: not its order, its layout or its format."""

from __future__ import annotations

import hashlib
import struct

import cbor2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpk_lite import testing
from bpk_lite.convert import Contents, convert, open_contents
from bpk_lite.inspect import digest, tensor_digest
from bpk_lite.pack import Reader, Scalar, Tensor, Writer
from bpk_lite.records import ModuleRecord
from tests.support import descriptor, pack_of


def u64(number):
    return struct.pack("<Q", number)


def text(value):
    return u64(len(value.encode())) + value.encode()


def by_the_book(tensors, scalars=None, metadata=None, algorithm="sha256"):
    """Return the digest as the documentation defines it, written a second time."""
    hashed = hashlib.new(algorithm, b"bpk_lite content 1\n" + u64(len(tensors)))
    for name, (dtype, shape, param_id, data) in sorted(
        tensors.items(), key=lambda x: x[0].encode()
    ):
        item = cbor2.dumps(dtype)
        blob = b"bpk_lite tensor 1\n" + u64(len(item)) + item + u64(len(shape))
        blob += b"".join(map(u64, shape)) + u64(len(data)) + data
        hashed.update(text(name) + (b"\0" if param_id is None else b"\1" + u64(param_id)))
        hashed.update(hashlib.new(algorithm, blob).digest())
    codes = {"Int": "<q", "UInt": "<Q", "Float": "<d", "Bool": "<Q"}
    hashed.update(u64(len(scalars or {})))
    for name, (kind, value) in sorted((scalars or {}).items()):
        hashed.update(text(name) + text(kind) + struct.pack(codes[kind], value))
    hashed.update(u64(len(metadata or {})))
    for key, value in sorted((metadata or {}).items()):
        hashed.update(text(key) + text(value))
    return hashed.hexdigest()


WEIGHT = np.arange(6, dtype="f4").reshape(2, 3)
MASK = np.array([True, False])


def tensors():
    return [Tensor.from_array("w", WEIGHT, param_id=7), Tensor.from_array("mask", MASK)]


SCALARS = {
    "step": Scalar("UInt", 3),
    "low": Scalar("Int", -1),
    "x": Scalar("Float", 0.5),
    "b": Scalar("Bool", True),
}
METADATA = {"task": "mnist", "ä": ""}
BOOK = {
    "w": ("F32", (2, 3), 7, WEIGHT.tobytes()),
    "mask": ({"Bool": "Native"}, (2,), None, b"\1\0"),
}


@pytest.mark.parametrize("algorithm", ["sha256", "blake2b", "sha3_256", "md5"])
def test_the_digest_is_what_the_documentation_says(algorithm):
    """Computed by hand, with each algorithm."""
    pack = Reader.from_bytes(
        Writer(tensors(), metadata=METADATA, scalars=SCALARS).plan().into_bytes()
    )
    scalars = {name: (one.kind, one.value) for name, one in SCALARS.items()}
    assert by_the_book(BOOK, scalars, METADATA, algorithm) == digest(pack, algorithm)
    book = {name: (dtype, shape, None, data) for name, (dtype, shape, _, data) in BOOK.items()}
    assert by_the_book(book, None, None, algorithm) == digest(pack, algorithm, tensors_only=True)


def test_a_tensors_digest_is_of_its_data_not_its_name():
    """The same weight under two names has one; another shape or dtype has another."""
    found = tensor_digest(Tensor.from_array("a", WEIGHT))
    assert found == tensor_digest(Tensor.from_array("b", WEIGHT, param_id=3))
    assert found != tensor_digest(Tensor.from_array("a", WEIGHT.reshape(3, 2)))
    assert found != tensor_digest(Tensor.from_bytes("a", "I32", (2, 3), WEIGHT))


def test_order_and_layout_do_not_matter():
    """The same content in another order, with gaps, from a record, a provider, or strided."""
    here = Reader.from_bytes(Writer(tensors(), metadata=METADATA).plan().into_bytes())
    there = Reader.from_bytes(
        Writer(tensors()[::-1], metadata=dict(reversed(METADATA.items()))).plan().into_bytes()
    )
    right = digest(here)
    assert right == digest(there) == digest(ModuleRecord.from_pack(here))
    gaps = pack_of(
        {"mask": descriptor({"Bool": "Native"}, (2,), (0, 2)), "w": descriptor("F32", (2, 3), (1000, 1024), param_id=7)},
        b"\1\0" + bytes(998) + WEIGHT.tobytes(), metadata=METADATA,
    )  # fmt: skip
    assert right == digest(Reader.from_bytes(gaps))
    lazy = Tensor.deferred("w", "F32", (2, 3), lambda: iter([WEIGHT[:1], WEIGHT[1:]]), param_id=7)
    strided = Tensor.from_array("w", np.asfortranarray(WEIGHT), param_id=7)
    for other in (lazy, strided):
        assert right == digest(ModuleRecord([other, tensors()[1]], metadata=METADATA))


def test_other_formats_have_the_same_digest_of_tensors():
    """A pack, the SafeTensors file and the npz made of it, and a mapping of arrays."""
    source = Contents("burnpack", tensors())
    right = digest(source, tensors_only=True)
    for form in ("safetensors", "npz"):
        blob = convert(source, form).plan.into_bytes()
        assert right == digest(open_contents(blob), tensors_only=True)
    assert (
        right
        == digest({"mask": MASK, "w": WEIGHT})
        == digest({"mask": MASK, "w": WEIGHT}, tensors_only=True)
    )


@given(
    st.lists(testing.tensors(), max_size=3, unique_by=lambda tensor: tensor.name),
    testing.metadata(), st.dictionaries(testing.names(), testing.scalars(), max_size=2), st.data(),
)  # fmt: skip
def test_every_part_counts(made, metadata, scalars, data):
    """Whatever is changed, the digest changes; and it survives any order of writing."""

    def of(made, metadata=metadata, scalars=scalars):
        return digest(
            Reader.from_bytes(Writer(made, metadata=metadata, scalars=scalars).plan().into_bytes())
        )

    right = of(made)
    assert right == of(data.draw(st.permutations(made)))
    assert right != of(made, metadata | {"a key of its own": ""})
    assert right != of(made, metadata, scalars | {"a key of its own": 1})
    assert right != of([*made, Tensor.from_array("a name of its own", np.zeros(0))])
    for i, tensor in enumerate(made):
        renamed = tensor.replace(name="a name of its own")
        other = tensor.replace(param_id=1 if tensor.param_id != 1 else 2)
        for changed in (renamed, other):
            assert right != of([*made[:i], changed, *made[i + 1 :]])


def test_lengths_keep_contents_apart():
    """What moves from a key into its value, or from one name into the next, is another content."""
    assert digest(ModuleRecord(metadata={"ab": "c"})) != digest(ModuleRecord(metadata={"a": "bc"}))
    one = {"a": np.zeros(0, "u1"), "ab": np.zeros(1, "u1")}
    other = {"a": np.zeros(1, "u1"), "ab": np.zeros(0, "u1")}
    assert digest(one) != digest(other)
    assert digest(ModuleRecord(scalars={"x": Scalar("Int", 1)})) != digest(
        ModuleRecord(scalars={"x": Scalar("UInt", 1)})
    )


def test_nothing_has_a_digest_too():
    """An empty pack: of known value, so that no release changes it unseen."""
    assert by_the_book({}) == digest(ModuleRecord())
    known = "4a56638f5b1f9be00595ad7b52d2423ac418cc83ba3add5e5fd4ec0dd1f7edf0"
    assert known == digest(ModuleRecord())


@pytest.mark.parametrize("algorithm", ["", "SHA256", "crc32", "shake_128"])
def test_an_algorithm_that_is_not_there_everywhere_is_refused(algorithm):
    """It says which are."""
    with pytest.raises(ValueError, match=r"algorithm is one of .*sha256"):
        digest({}, algorithm)


def test_progress_tells_bytes_of_the_whole_and_may_cancel():
    """In the order of the names; what it raises comes out."""
    held = {"b": np.zeros(10, "u1"), "a": np.zeros(5, "u1")}
    told = []
    digest(held, progress=lambda *step: told.append(step))
    assert [("a", 5, 15), ("b", 15, 15)] == told

    class Cancelled(Exception):
        pass

    def cancel(*_):
        raise Cancelled

    with pytest.raises(Cancelled):
        digest(held, progress=cancel)
