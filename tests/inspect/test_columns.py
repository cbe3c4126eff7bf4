"""Columns hold what the rows of a summary say, in flat buffers."""

from __future__ import annotations

import json

import numpy as np
import pytest

import bpk_lite as bpk
from bpk_lite.inspect import Row, columns, summarize

SIZES = {"dtype": 1, "shape": 4, "nbytes": 8, "offset": 8, "param_id": 8, "has_param_id": 1}


@pytest.fixture
def summary():
    """A pack with names of all kinds, two types, three shapes, one of them twice, and ids."""
    tensors = [
        bpk.Tensor.from_array("größe\n", np.zeros((2, 3), "f4"), param_id=2**64 - 1),
        bpk.Tensor.from_array("a", np.zeros(4, "i8"), param_id=0),
        bpk.Tensor.from_array("b", np.zeros((2, 3), "f4")),
        bpk.Tensor.from_array("scalar", np.float32(1)),
    ]
    return summarize(bpk.Reader.from_bytes(bpk.Writer(tensors).plan().into_bytes()))


def test_each_row_can_be_read_back_from_the_columns(summary):
    """Names, codes with their tables, lengths, offsets and ids, in the order of the rows."""
    made = columns(summary)
    names = json.loads(made.names)

    found = [
        Row(
            names[at],
            made.dtypes[made.dtype[at]],
            made.shapes[made.shape[at]],
            int(made.nbytes[at]),
            int(made.offset[at]),
            int(made.param_id[at]) if made.has_param_id[at] else None,
        )
        for at in range(made.count)
    ]

    assert list(summary.rows) == found


def test_buffers_are_flat_bytes_whose_lengths_follow_from_the_count(summary):
    """Any transport can carry them, and the other side can check them (H2)."""
    made = columns(summary)
    names, *rest = made.buffers()

    assert made.names == bytes(names)
    assert [size * made.count for size in SIZES.values()] == [len(buffer) for buffer in rest]
    assert {("B", 1)} == {(buffer.format, buffer.ndim) for buffer in rest}


def test_totals_come_from_the_columns(summary):
    """Elements by the distinct shapes; shares by type, largest first."""
    made = columns(summary)

    assert summary.elements == made.elements == 17
    assert [("F32", 3, 52), ("I64", 1, 32)] == made.shares


def test_what_lies_in_no_file_has_no_offset():
    """NaN, which is no place."""
    assert np.isnan(columns(summarize({"a": np.ones(1, "f4")})).offset).all()


def test_nothing_is_a_table_of_nothing():
    """No rows, no types, no shapes."""
    made = columns([])

    assert (0, (), (), b"[]", 0, []) == (
        made.count, made.dtypes, made.shapes, made.names, made.elements, made.shares,
    )  # fmt: skip


def test_more_types_than_a_code_can_tell_share_the_last_one():
    """A file may name any number of quantization schemes; 255 are told apart."""
    rows = [Row(str(at), f"type {at}", (1,), 4, 0, None) for at in range(300)]
    made = columns(rows)

    assert 256 == len(made.dtypes)
    assert ("type 254", "other types", "other types") == tuple(
        made.dtypes[made.dtype[at]] for at in (254, 255, 299)
    )


def test_dimensions_that_json_readers_round_come_as_text_too():
    """A double cannot hold 2^63 + 1; the text can."""
    header = columns([Row("a", "F32", (0, 2**63 + 1), 0, 0, None)]).header()

    assert [f"0 × {2**63 + 1}"] == header["shape_texts"]
    json.dumps(header, allow_nan=False)
