"""What differs between two packs, and by how much."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpk_lite as bpk
from bpk_lite import testing
from bpk_lite.convert import Contents
from bpk_lite.inspect import diff, digest
from bpk_lite.pack import DType, PlanError, QuantScheme, Reader, Scalar, Tensor, Writer
from bpk_lite.records import ModuleRecord


def row(old, new, **options):
    """Return the one row of two arrays or tensors of one name."""
    (found,) = diff({"w": old}, {"w": new}, **options).rows
    return found


def test_names_are_paired_whatever_their_order():
    """Added, removed, other shapes, other dtypes, changed and same, in byte order of the names."""
    old = {
        "z": np.ones(2),
        "gone": np.ones(1),
        "shape": np.ones(3),
        "dtype": np.ones(3),
        "a": np.ones(4),
    }
    new = {
        "a": np.zeros(4),
        "new": np.ones(5, "f2"),
        "shape": np.ones((3, 1)),
        "dtype": np.ones(3, "f4"),
        "z": np.ones(2),
    }
    found = diff(old, new)
    assert [
        ("a", "changed"), ("dtype", "dtype"), ("gone", "removed"), ("new", "added"),
        ("shape", "shape"), ("z", "same"),
    ] == [(one.name, one.status) for one in found.rows]  # fmt: skip
    assert {
        "added": 1,
        "removed": 1,
        "shape": 1,
        "dtype": 1,
        "changed": 1,
        "unread": 0,
        "same": 1,
    } == found.counts
    assert (False, True) == (found.is_same, found.differs)
    gone, added = found.rows[2], found.rows[3]
    assert ("F64", (1,), None, None) == (
        gone.old_dtype,
        gone.old_shape,
        gone.new_dtype,
        gone.new_shape,
    )
    assert (None, None, "F16", (5,)) == (
        added.old_dtype,
        added.old_shape,
        added.new_dtype,
        added.new_shape,
    )
    assert ((3,), (3, 1)) == (found.rows[4].old_shape, found.rows[4].new_shape)


def test_changed_values_are_measured():
    """How many, the largest difference, absolute and relative, and the cosine: as numpy has them."""
    rng = np.random.default_rng(5)
    old = rng.standard_normal(200_000)
    new = old.copy()
    new[::7] += rng.standard_normal(new[::7].size)
    found = row(old, new)
    assert ("changed", 200_000, 28_572, 0) == (
        found.status, found.elements, found.differing, found.nonfinite,
    )  # fmt: skip
    gap = np.abs(old - new)
    assert (gap.max(), (gap / np.maximum(abs(old), abs(new))).max()) == (
        found.max_abs,
        found.max_rel,
    )
    cosine = old @ new / np.linalg.norm(old) / np.linalg.norm(new)
    assert found.cosine == pytest.approx(cosine, rel=1e-12)


def test_windows_that_agree_count_for_the_cosine():
    """Two pieces the same, NaN and infinity in them, one changed: as if it were one; small numbers too."""
    rng = np.random.default_rng(2)
    old = rng.standard_normal((3, 1000)) * 1e-5
    old[0, :2] = np.nan, np.inf
    new = old.copy()
    new[2] *= -0.5
    one, other = (
        Tensor.deferred("w", "F64", (3000,), lambda made=made: iter(made)) for made in (old, new)
    )
    found = row(one, other)
    assert ("changed", 1000, 0) == (found.status, found.differing, found.nonfinite)
    a, b = old.ravel()[2:], new.ravel()[2:]
    assert found.cosine == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), rel=1e-12)
    huge = np.array([1e200, 1.0])
    assert None is row(huge, huge * 2).cosine


@pytest.mark.parametrize("name", ["F64", "F32", "F16", "BF16"])
def test_nan_equals_nan_and_nothing_else(name):
    """NaN against NaN is no difference; NaN or infinity against a number is, and is counted apart."""
    old = np.array([np.nan, np.nan, np.inf, np.inf, 1, 2, -0.0], "f4")
    new = np.array([np.nan, 5.0, np.inf, -np.inf, 1, 3, 0.0], "f4")

    def make(values):
        if name == "BF16":
            return Tensor.from_array("w", (values.view("u4") >> 16).astype("u2"), dtype="BF16")
        return Tensor.from_array("w", values.astype(DType.parse(name).stored))

    found = row(make(old), make(new))
    assert ("changed", 3, 2, 1.0) == (found.status, found.differing, found.nonfinite, found.max_abs)
    assert found.cosine == pytest.approx(7 / np.sqrt(5 * 10))


def test_the_bits_decide_what_is_the_same():
    """Signs of zero and bits of NaN make a tensor changed, with no value that differs."""
    found = row(np.array([0.0, 1.0]), np.array([-0.0, 1.0]))
    assert ("changed", 0, 0.0) == (found.status, found.differing, found.max_abs)
    nans = np.array([0x7FC00000, 0x7FC00001], "u4").view("f4")
    found = row(nans[:1], nans[1:])
    assert ("changed", 0, None, None) == (
        found.status,
        found.differing,
        found.max_abs,
        found.cosine,
    )
    found = row(nans, nans)
    assert ("same", 0, 2) == (found.status, found.differing, found.elements)


def test_another_dtype_of_the_same_shape_is_compared_by_value():
    """float32 and what half precision makes of it, whatever the pieces they come in."""
    values = np.random.default_rng(1).standard_normal(300_001).astype("f4")
    half = values.astype("f2")
    found = row(values, half)
    assert ("dtype", "F32", "F16") == (found.status, found.old_dtype, found.new_dtype)
    assert float(np.abs(values - half.astype("f8")).max()) == found.max_abs
    assert 0.9999 < found.cosine < 1
    found = row(np.arange(5, dtype="i4"), np.arange(5, dtype="f8"))
    assert ("dtype", 0, 1.0) == (found.status, found.differing, round(found.cosine, 12))


@pytest.mark.parametrize("dtype", ["i8", "u8", "i1", "u4"])
def test_whole_numbers_are_compared_exactly(dtype):
    """Neighbours that float64 cannot tell apart differ by 1, and the two ends by all there is."""
    info = np.iinfo(dtype)
    old = np.array([info.max, info.min, 5], dtype)
    new = np.array([info.max - 1, info.max, 5], dtype)
    found = row(old, new)
    assert (2, float(info.max - info.min)) == (found.differing, found.max_abs)
    assert 1.0 == row(old[:1], new[:1]).max_abs


@pytest.mark.parametrize("dtype", [DType.BOOL, DType.BOOL_U8, DType.BOOL_U32], ids=str)
def test_booleans_are_compared_too(dtype):
    """By what is stored."""
    old, new = (
        Tensor.from_array("w", np.array(x), dtype=dtype) for x in ([True, False], [True, True])
    )
    assert ("changed", 1, 1.0) == (
        row(old, new).status,
        row(old, new).differing,
        row(old, new).max_abs,
    )


def test_quantized_tensors_are_compared_by_bits_and_by_value_where_it_can_be_told():
    """Native ones by value; of packed ones it is only known that they differ, and a note says so."""
    native = DType.quantized(QuantScheme("Q8S", "Native", tensor="F32"))
    packed = DType.quantized(QuantScheme("Q4S", "PackedU32", tensor="F32"))
    scale = np.float32(0.5).tobytes()
    one, other = (Tensor.from_bytes("w", native, (2,), data + scale) for data in (b"\1\2", b"\1\4"))
    assert ("changed", 1, 1.0) == (
        row(one, other).status,
        row(one, other).differing,
        row(one, other).max_abs,
    )
    first = Tensor.from_bytes("w", native, (2,), b"\7\2" + scale)
    assert (1, 3.0) == (row(one, first).differing, row(one, first).max_abs)
    assert "same" == row(one, one).status
    floats = Tensor.from_array("w", np.array([0.5, 1.0], "f4"))
    assert ("dtype", 0) == (row(floats, one).status, row(floats, one).differing)
    old, new = (Tensor.from_bytes("w", packed, (2,), data) for data in (bytes(8), b"\1" * 8))
    found = row(old, new)
    assert ("changed", None, True) == (found.status, found.differing, "PackedU32" in found.note)
    assert "same" == row(old, old).status
    shorter = Tensor.from_bytes("w", packed, (2,), bytes(7))
    assert "changed" == row(old, shorter).status


def test_too_many_quantized_elements_are_compared_by_bits(monkeypatch):
    """They would have to be made whole; a note says so."""
    monkeypatch.setattr("bpk_lite.inspect._compare._LARGEST_QUANTIZED", 1)
    native = DType.quantized(QuantScheme("Q8S", "Native", tensor="F32"))
    one, other = (Tensor.from_bytes("w", native, (2,), bytes(5) + data) for data in (b"\0", b"\1"))
    found = row(one, other)
    assert ("changed", None, True) == (found.status, found.differing, "too many" in found.note)
    assert "same" == row(one, one).status


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_a_tensor_of_no_elements_or_dimensions(shape):
    """It is the same, or changed, as any other."""
    assert "same" == row(np.ones(shape), np.ones(shape)).status
    assert ("dtype", None) == (
        row(np.ones((0, 2)), np.ones((0, 2), "f4")).status,
        row(np.ones((0, 2)), np.ones((0, 2), "f4")).cosine,
    )


@given(st.data())
def test_pieces_of_any_length_are_compared_element_by_element(data):
    """Both sides are cut anywhere, inside elements too, and the pieces' memory is used again."""
    values = np.arange(40, dtype="f4")
    changed = values.copy()
    changed[data.draw(st.integers(0, 39))] += 0.25

    def cut(array, dtype):
        blob = array.astype(dtype).tobytes()
        cuts = sorted(data.draw(st.lists(st.integers(0, len(blob)), max_size=6)))

        def provider():
            scratch = bytearray(len(blob))
            for start, stop in zip([0, *cuts], [*cuts, len(blob)], strict=True):
                scratch[: stop - start] = blob[start:stop]
                yield memoryview(scratch)[: stop - start]

        return Tensor.deferred("w", DType.of(np.dtype(dtype)), (40,), provider)

    dtype = data.draw(st.sampled_from(["f4", "f8", "f2"]))
    found = row(cut(values, "f4"), cut(changed, dtype))
    assert (1, 0.25) == (found.differing, found.max_abs)
    assert "same" == row(cut(values, dtype), cut(values, dtype)).status


def test_without_data_nothing_is_read():
    """Shapes, dtypes and names are compared; what agrees is unread, and not said to be the same."""

    def fail():
        raise AssertionError

    lazy = Tensor.deferred("w", "F32", (2,), fail)
    found = diff({"w": lazy, "d": lazy}, {"w": lazy, "d": np.ones(2)}, data=False)
    assert ["dtype", "unread"] == [one.status for one in found.rows]
    found = diff({"w": lazy}, {"w": lazy}, data=False)
    assert (False, False) == (found.is_same, found.differs)


def test_metadata_scalars_and_ids_count():
    """Each makes two packs differ; a scalar's kind does too, and NaN equals itself."""
    tensor = Tensor.from_array("w", np.ones(2), param_id=1)

    def pack(tensor=tensor, metadata=None, scalars=None):
        return Reader.from_bytes(
            Writer([tensor], metadata=metadata, scalars=scalars).plan().into_bytes()
        )

    assert diff(pack(), pack()).is_same
    found = diff(pack(metadata={"a": "1", "b": "2"}), pack(metadata={"b": "3", "c": ""}))
    assert {"a": ("1", None), "b": ("2", "3"), "c": (None, "")} == found.metadata
    found = diff(
        pack(scalars={"n": float("nan"), "x": Scalar("Int", 3), "y": 1}),
        pack(scalars={"n": float("nan"), "x": Scalar("UInt", 3)}),
    )
    assert {"x", "y"} == set(found.scalars)
    json.dumps(found.to_dict(), allow_nan=False)
    found = diff(pack(), pack(tensor.replace(param_id=2)))
    assert ("same", True, 1, 2) == (
        found.rows[0].status, found.rows[0].id_changed, found.rows[0].old_id, found.rows[0].new_id,
    )  # fmt: skip
    assert (False, True, True) == (found.is_same, found.differs, "id 1 → 2" in str(found))


def test_ids_do_not_count_against_a_format_without_any():
    """A SafeTensors file has none, and holds the same weights all the same."""
    tensor = Tensor.from_array("w", np.ones(2), param_id=1)
    foreign = Contents("safetensors", [tensor.replace()])
    foreign.tensors[0].param_id = None
    assert diff(ModuleRecord([tensor]), foreign).is_same


def test_what_two_files_are_is_told():
    """A module record against plain tensors."""
    found = diff(ModuleRecord([Tensor.from_array("w", np.ones(2), param_id=1)]), {"w": np.ones(2)})
    assert ("module record", "tensors of no record") == found.kinds
    assert "kind: module record → tensors of no record" in str(found)


PACKS = st.builds(
    lambda tensors, metadata, scalars: Writer(
        list({tensor.name: tensor for tensor in tensors}.values()), metadata=metadata, scalars=scalars
    ).plan().into_bytes(),
    st.lists(testing.tensors(st.sampled_from(["a", "b"])), max_size=2),
    st.dictionaries(st.just("k"), st.sampled_from(["", "x"]), max_size=1),
    st.dictionaries(st.just("s"), testing.scalars(), max_size=1),
)  # fmt: skip


@given(PACKS, PACKS)
def test_two_packs_are_the_same_exactly_if_their_digests_are(one, other):
    """Whatever is in them."""
    a, b = Reader.from_bytes(one), Reader.from_bytes(other)
    assert (digest(a) == digest(b)) == diff(a, b).is_same
    assert diff(a, Reader.from_bytes(one)).is_same
    json.dumps(diff(a, b).to_dict(), allow_nan=False)
    str(diff(a, b))


def test_the_text_form_names_what_differs():
    """A line each, names escaped, and the totals."""
    found = diff({"a\x1b": np.ones(2), "b": np.ones(1)}, {"a\x1b": np.zeros(2), "b": np.ones(1)})
    lines = str(found).splitlines()
    assert r"changed a\x1b: F64, [2], 2 of 2 elements differ, max abs 1, max rel 1" == lines[0]
    assert "1 changed, 1 same" == lines[-1]
    assert "no tensors" == str(diff({}, {}))
    metadata = diff(ModuleRecord(metadata={"k": "1"}), ModuleRecord(metadata={"l": "\n"}))
    assert ["metadata k: 1 → absent", r"metadata l: absent → \n"] == str(metadata).splitlines()[:2]


def test_progress_tells_bytes_of_the_whole_and_may_cancel():
    """Of tensors that are compared, in order; what it raises comes out."""
    old = {"a": np.ones(1000, "f4"), "b": np.ones(500, "f4"), "gone": np.ones(9)}
    new = {"a": np.ones(1000, "f4"), "b": np.zeros(500, "f8")}
    told = []
    diff(old, new, progress=lambda *step: told.append(step))
    assert [("a", 4000, 6000), ("b", 6000, 6000)] == told

    class Cancelled(Exception):
        pass

    def cancel(*_):
        raise Cancelled

    with pytest.raises(Cancelled):
        diff(old, new, progress=cancel)


def test_what_holds_no_tensors_is_refused():
    """With its type, and what is taken; two tensors of one name are refused too."""
    with pytest.raises(TypeError, match="not int"):
        diff(3, {})
    twice = Contents("npz", [Tensor.from_array("w", np.ones(1))] * 2)
    with pytest.raises(PlanError, match="two tensors are named 'w'"):
        diff(twice, {})


def test_a_record_and_the_pack_it_was_saved_to_are_the_same():
    """Records, packs and their bytes hold the same."""
    record = ModuleRecord([Tensor.from_array("w", np.arange(3.0), param_id=1)], metadata={"k": "v"})
    assert diff(record, bpk.Reader.from_bytes(record.into_bytes())).is_same
