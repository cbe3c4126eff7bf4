"""The SafeTensors format against Burn's recorded answers (S87 to S99, S238; bugs D1 to D7)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpk_lite import testing as bt
from bpk_lite.pack import BpkError, DType, PlanError, QuantScheme, Tensor
from bpk_lite.store import SafetensorsFile, SafetensorsPlan, UnsupportedDType

FOLDER = Path(__file__).parent.parent / "fixtures" / "burn" / "store"
ROWS = [json.loads(line) for line in (FOLDER / "safetensors_dtype.jsonl").read_text().splitlines()]
READS = [row for row in ROWS if row["kind"] == "read"]
FILES = sorted((FOLDER / "files").glob("*.safetensors"))
# Read as an extension of Burn's list (S99): Burn refuses the whole file.
EXTENSION = {"U16", "mixed supported and unsupported"}


def listed(blob):
    with SafetensorsFile.from_bytes(blob) as file:
        return {
            name: (str(t.dtype), list(t.shape), hashlib.sha256(t.buffer()).hexdigest())
            for name, t in file.items()
        }


@pytest.mark.parametrize("row", READS, ids=lambda row: row["label"])
def test_files_are_read_or_refused_as_recorded(row):
    """Every accepted file gives the recorded tensors, every refused one a typed error."""
    blob = bytes.fromhex(row["hex"])
    if "tensors" in row:
        assert {t["name"]: (t["dtype"], t["shape"], t["sha256"]) for t in row["tensors"]} == listed(
            blob
        )
    elif row["label"] in EXTENSION:
        assert "U16" in {dtype for dtype, _, _ in listed(blob).values()}
    else:
        with pytest.raises(BpkError):
            listed(blob)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_burns_files_are_written_again_byte_for_byte(path):
    """But for the order of the metadata, which is random in Burn's files and sorted in ours (S78)."""
    blob = path.read_bytes()
    with SafetensorsFile.from_bytes(blob) as file:
        ours = SafetensorsPlan.of(file.values(), file.metadata).into_bytes()
    length = int.from_bytes(blob[:8], "little")
    theirs, found = (json.loads(b[8 : 8 + length]) for b in (blob, ours))
    assert (len(blob), blob[8 + length :]) == (len(ours), ours[8 + length :])
    assert theirs == found
    assert [name for name in theirs if name != "__metadata__"] == list(found)[1:]


@given(
    tensors=st.lists(bt.tensors(), max_size=5, unique_by=lambda tensor: tensor.name),
    metadata=st.none() | bt.metadata(),
)
def test_what_is_written_is_read(tensors, metadata):
    """Names, shapes and bytes survive; booleans of other stores become integers (S97, S98)."""
    kept = [t for t in tensors if t.dtype.kind != "quantized" and t.name != "__metadata__"]
    plan = SafetensorsPlan.of(kept, metadata)
    blob = plan.into_bytes()
    assert plan.size == len(blob)
    with SafetensorsFile.from_bytes(blob) as file:
        assert (metadata or {}) == file.metadata
        assert {t.name: (t.shape, t.to_bytes()) for t in kept} == {
            name: (t.shape, t.to_bytes()) for name, t in file.items()
        }
        assert SafetensorsPlan.of(file.values(), metadata).into_bytes() == blob


def test_reading_copies_nothing():
    """Tensors are views of the caller's buffer."""
    blob = SafetensorsPlan.of([Tensor.from_array("w", np.ones(4, "f4"))]).into_bytes()
    with SafetensorsFile.from_bytes(blob) as file:
        assert np.shares_memory(file["w"].numpy(), np.frombuffer(blob, np.uint8))


def test_types_that_burn_lacks_are_named_and_their_bytes_are_there():
    """float8 and complex tensors do not cost the rest of the file (bug D4)."""
    header = {
        "a": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]},
        "b": {"dtype": "F32", "shape": [1], "data_offsets": [2, 6]},
        "c": {"dtype": "F4", "shape": [4], "data_offsets": [6, 8]},
    }
    text = json.dumps(header).encode()
    blob = len(text).to_bytes(8, "little") + text + bytes(range(8))
    with SafetensorsFile.from_bytes(blob) as file:
        assert 1 == file["b"].size
        assert (b"\0\1", b"\6\7") == (bytes(file.buffer("a")), bytes(file.buffer("c")))
        with pytest.raises(UnsupportedDType, match="'a' is F8_E4M3"):
            file["a"]
        assert ["a", "b", "c"] == list(file)


def test_what_the_format_cannot_hold_is_refused_by_name():
    """Quantized tensors and repeated names (S97)."""
    scheme = DType.quantized(QuantScheme("Q8S", "Native"))
    with pytest.raises(UnsupportedDType, match=r"'q' is QFloat"):
        SafetensorsPlan.of([Tensor.from_bytes("q", scheme, (1,), b"12345")])
    with pytest.raises(PlanError, match="two tensors are named 'w'"):
        SafetensorsPlan.of([Tensor.from_array("w", np.ones(1))] * 2)


def test_metadata_are_sorted_so_that_files_are_reproducible():
    """The same content gives the same bytes, whatever the order it came in (bug D2)."""
    w = Tensor.from_array("w", np.ones(1))
    one = SafetensorsPlan.of([w], {"b": "2", "a": "1"}).into_bytes()
    assert one == SafetensorsPlan.of([w], {"a": "1", "b": "2"}).into_bytes()
