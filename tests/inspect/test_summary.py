"""The one summary behind every face (S223)."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bpk_lite.convert import Contents
from bpk_lite.inspect import columns, summarize, tree, verify
from bpk_lite.pack import BytesSource, DType, QuantScheme, Reader, Tensor, Writer
from bpk_lite.records import ModuleRecord
from tests.support import descriptor, pack_of

PLAN = Writer(
    [
        Tensor.from_array("net.10.weight", np.ones((2, 3), "<f4"), param_id=7),
        Tensor.from_array("net.2.weight", np.ones(4, "<f4")),
        Tensor.from_array("net", np.ones(2, "u1")),
        Tensor.from_array("mask", np.ones(5, bool)),
    ],
    metadata={"task": "mnist"},
    scalars={"step": 3, "nan": float("nan")},
).plan()


def test_a_summary_tells_the_facts_of_a_pack():
    """Header, sizes, metadata, scalars, and a row per tensor with its absolute offset."""
    pack = Reader.from_bytes(PLAN.into_bytes())
    summary = summarize(pack)
    assert (1, PLAN.size, 4, 17, 47) == (
        summary.version, summary.size, len(summary.rows), summary.elements, summary.tensor_bytes,
    )  # fmt: skip
    assert ["mask", "net", "net.10.weight", "net.2.weight"] == [row.name for row in summary.rows]
    row = summary.rows[2]
    assert ("F32", (2, 3), 24, 7, 6) == (
        row.dtype, row.shape, row.nbytes, row.param_id, row.elements,
    )  # fmt: skip
    data = PLAN.into_bytes()[row.offset : row.offset + row.nbytes]
    assert np.ones(6, "<f4").tobytes() == data
    assert {"F32": (2, 40), "Bool(Native)": (1, 5), "U8": (1, 2)} == summary.dtypes


def test_a_summary_is_json():
    """The dict form survives strict JSON, NaN as text."""
    found = summarize(Reader.from_bytes(PLAN.into_bytes())).to_dict()
    assert found == json.loads(json.dumps(found, allow_nan=False)) | {"tensors": found["tensors"]}
    assert {"nan": ["Float", "nan"], "step": ["UInt", 3]} == found["scalars"]
    assert {"tensors": 4, "elements": 17, "bytes": 47} == {
        key: found["totals"][key] for key in ("tensors", "elements", "bytes")
    }


def test_a_summary_reads_no_tensor_data():
    """Nothing behind the metadata is asked of the source."""

    class Guarded(BytesSource):
        opened = False

        def read_at(self, offset, length):
            assert not self.opened or offset + length <= len(PLAN.header)
            return super().read_at(offset, length)

    source = Guarded(PLAN.into_bytes())
    pack = Reader.from_source(source)
    source.opened = True
    assert 4 == len(summarize(pack).rows)


def test_the_tree_groups_by_component_and_counts_in_numeric_order():
    """2 comes before 10; a path may be a tensor and a group; counts and bytes add up."""
    root = tree(summarize(Reader.from_bytes(PLAN.into_bytes())).rows)
    assert (["mask", "net"], 4, 47) == (list(root.children), root.tensors, root.nbytes)
    net = root.children["net"]
    assert (["2", "10"], 3, (2,)) == (list(net.children), net.tensors, net.row.shape)
    assert 16 == net.children["2"].children["weight"].nbytes


def test_a_path_of_a_million_components_is_no_problem():
    """Beyond 64 levels the rest of a path is one component; nothing nests deeper (bug B2)."""
    blob = (
        Writer({"a." * 1_000_000 + "z": np.ones(1), "a." * 63 + "z": np.ones(1)})
        .plan()
        .into_bytes()
    )
    node = tree(summarize(Reader.from_bytes(blob)).rows)
    for _ in range(63):
        (node,) = node.children.values()
    assert [1_999_875, 1] == sorted((len(label) for label in node.children), reverse=True)


def test_padding_is_what_holds_nothing():
    """Gaps for alignment and what follows the end; bytes that two tensors share count once."""
    pack = Reader.from_bytes(PLAN.into_bytes())
    summary = summarize(pack)
    assert PLAN.size - 10 - pack.header.metadata_size - 47 == summary.padding
    assert summary.padding / PLAN.size == summary.padding_share
    tensors = {
        "a": descriptor("U8", (300,), (0, 300)), "b": descriptor("U8", (200,), (200, 400)),
        "c": descriptor("U8", (9,), (10, 19)), "d": descriptor("U8", (1,), (299, 300)),
    }  # fmt: skip
    blob = pack_of(tensors, bytes(1000))
    pack = Reader.from_bytes(blob)
    assert len(blob) - 10 - pack.header.metadata_size - 400 == summarize(pack).padding


def test_warnings_come_along():
    """What `verify` finds without reading data, as objects and as JSON."""
    pack = Reader.from_bytes(pack_of({"a": descriptor("U8", (1,), (5, 6))}, bytes(6)))
    summary = summarize(pack)
    assert ["misaligned", "gap"] == [finding.code for finding in summary.warnings]
    assert summary.warnings == tuple(verify(pack, data=False))
    assert ["a", "a"] == [found["tensor"] for found in summary.to_dict()["warnings"]]
    assert "misaligned: 'a' starts at 5" in str(summary)


def test_parameters_are_counted_by_dtype_and_branch():
    """Elements, not bytes: what people mean by the size of a model."""
    summary = summarize(Reader.from_bytes(PLAN.into_bytes()))
    assert {"F32": 10, "Bool(Native)": 5, "U8": 2} == summary.parameters
    assert (17, 12) == (summary.tree().elements, summary.tree().children["net"].elements)
    assert {"tensors": 2, "bytes": 40, "elements": 10} == summary.to_dict()["totals"]["dtypes"][
        "F32"
    ]


def test_a_record_has_a_summary():
    """Without a header, of the same rows but for their places."""
    pack = Reader.from_bytes(PLAN.into_bytes())
    found, right = summarize(ModuleRecord.from_pack(pack)), summarize(pack)
    assert ("ModuleRecord", "", None, None, None, None, None, None) == (
        found.name, found.format, found.size, found.version, found.metadata_size, found.data_start,
        found.padding, found.padding_share,
    )  # fmt: skip
    assert [row._replace(offset=None) for row in right.rows] == list(found.rows)
    assert (right.kind, right.metadata, right.scalars) == (
        found.kind,
        found.metadata,
        found.scalars,
    )


def test_other_formats_have_a_summary():
    """By name, with their format and with what could not be taken over."""
    tensors = [Tensor.from_array("b", np.ones(2)), Tensor.from_array("a", np.ones(3))]
    held = Contents("npz", tensors, notes=["'c' is left out"])
    found = summarize(held, name="x.npz")
    assert ("x.npz", "npz", ("'c' is left out",)) == (found.name, found.format, found.notes)
    assert ["a", "b"] == [row.name for row in found.rows]
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()
    assert "x.npz\ntensors of no record\nnpz\n2 tensors, 5 elements, 40 B" in str(found)


def test_arrays_by_name_have_a_summary():
    """A dict of arrays, or of tensors under other names."""
    found = summarize({"w": np.ones((2, 3), "f4"), "v": Tensor.from_array("u", np.ones(1))})
    assert [("v", (1,)), ("w", (2, 3))] == [(row.name, row.shape) for row in found.rows]
    with pytest.raises(TypeError, match="not list"):
        summarize([1])


def test_rows_are_in_byte_order_whatever_the_order_of_the_data():
    """Offsets are those of the data."""
    blob = Writer({"b": np.ones(2, "u1"), "a": np.ones(3, "u1")}).plan().into_bytes()
    pack = Reader.from_bytes(blob)
    rows = summarize(pack).rows
    assert [("a", 3, 256), ("b", 2, 0)] == [
        (row.name, row.nbytes, row.offset - pack.header.data_start) for row in rows
    ]


def test_every_dtype_is_named_as_the_metadata_have_it():
    """Quantized schemes too, each with its own text."""
    schemes = [
        QuantScheme("Q8S", "Native", tensor="F32"),
        QuantScheme("Q4F", "PackedU32", tensor="F16"),
    ]
    tensors = [
        Tensor.from_bytes(f"q{i}", DType.quantized(scheme), (8,), bytes(scheme.layout((8,))[2]))
        for i, scheme in enumerate(schemes)
    ]
    rows = summarize(Reader.from_bytes(Writer(tensors).plan().into_bytes())).rows
    assert [f"QFloat({scheme})" for scheme in schemes] == [row.dtype for row in rows]


class Counted(BytesSource):
    """A source that counts what is read of it."""

    def __init__(self, buffer):
        super().__init__(buffer)
        self.reads, self.bytes = 0, 0

    def read_at(self, offset, length):
        self.reads += 1
        self.bytes += length
        return super().read_at(offset, length)


def test_ten_thousand_tensors_are_listed_by_two_reads():
    """Header and metadata, whatever is listed: rows, tree, columns, HTML (H4)."""
    tensors = [
        Tensor.from_bytes(f"layer.{i}.weight", "U8", (256,), bytes(256)) for i in range(10_000)
    ]
    source = Counted(Writer(tensors).plan().into_bytes())
    with Reader.from_source(source) as pack:
        summary = summarize(pack)
        assert 10_000 == len(summary.rows) == len(summary.to_dict()["tensors"])
        assert 10_000 == tree(summary.rows).tensors == columns(summary).count
        assert "10,000" in pack._repr_html_()
    assert source.reads == 2
    assert source.bytes <= 1024 + pack.header.metadata_size
