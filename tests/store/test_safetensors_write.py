"""Which element types SafeTensors takes from a store, against Burn's recorded answers (S97, S99)."""

from __future__ import annotations

import hashlib
import json

import pytest

from bpk_lite.store import PathFilter, SafetensorsStore, UnsupportedDType
from tests.store.test_safetensors import EXTENSION, ROWS
from tests.store.zoo import adapter, digest, module

WRITES = [row for row in ROWS if row["kind"] == "write"]
# Burn refuses both; U16 is a type of the format, and Flex32 is F32 there
WRITTEN_HERE = {"u16": "U16", "head.weight": "F32"}


@pytest.mark.parametrize("row", WRITES, ids=lambda row: f"{row['zoo']}-{row['path']}")
def test_one_param_is_written_as_recorded(row):
    """Type, shape, offsets and bytes in the header's entry, and what is read back."""
    made = module(row["zoo"], 1)
    given = {"to_adapter": adapter(row["options"][1])} if row["options"] else {}
    store = SafetensorsStore(filter=PathFilter(paths=[row["path"]]), **given)
    if row["zoo"] == "quant":
        with pytest.raises(UnsupportedDType, match=r"fc\.weight"):
            store.collect_from(made)
        return
    blob = store.collect_from(made)
    length = int.from_bytes(blob[:8], "little")
    entry = json.loads(blob[8 : 8 + length])[row["path"]]
    (read,) = store.get_all_tensors().values()
    if row["path"] in WRITTEN_HERE:
        assert "error" in row
        assert WRITTEN_HERE[row["path"]] == entry["dtype"] == str(read.dtype)
        assert "U16" in EXTENSION
        return
    assert row["entry"] == entry
    assert row["data_sha256"] == hashlib.sha256(blob[8 + length :]).hexdigest()
    assert [(t["name"], t["dtype"], t["shape"], t["sha256"]) for t in row["reread"]] == [
        (read.name, str(read.dtype), list(read.shape), digest(read))
    ]


def test_sizes_that_contradict_each_other_are_both_in_the_message():
    """Trailing and missing bytes (bug D7)."""
    blob = SafetensorsStore().collect_from(module("linear", 1))
    for changed, words in ((blob + b"xyz", "35.*32|32.*35"), (blob[:-3], "29.*32|32.*29")):
        with pytest.raises(ValueError, match=words):
            SafetensorsStore(changed).keys()
