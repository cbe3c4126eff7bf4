"""The one summary behind every face (S223)."""

from __future__ import annotations

import json

import numpy as np

from bpk_lite.inspect import summarize, tree
from bpk_lite.pack import BytesSource, Reader, Tensor, Writer

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


def test_a_path_of_ten_thousand_components_is_no_problem():
    """The tree is built without recursion."""
    blob = Writer({"a." * 10_000 + "z": np.ones(1)}).plan().into_bytes()
    node = tree(summarize(Reader.from_bytes(blob)).rows)
    depth = 0
    while node.children:
        (node,) = node.children.values()
        depth += 1
    assert 10_001 == depth
