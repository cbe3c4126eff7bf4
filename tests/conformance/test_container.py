"""The files and recorded answers of real Burn, read and written by ours. Portable."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from bpk_lite.inspect import verify
from bpk_lite.pack import DType, Header, Limits, Reader, Scalar, Tensor, Writer
from bpk_lite.pack._metadata import Metadata
from tests.support import raw_pack, rewritten, verdict

BURN = Path(__file__).parent.parent / "fixtures" / "burn"
PACKS = sorted(BURN.rglob("*.bpk"))
MANIFEST = json.loads((BURN / "container" / "manifest.json").read_text())
ROWS = [json.loads(line) for line in (BURN / "tolerance.jsonl").read_text().splitlines()]
FLOATS = [line.split("\t") for line in (BURN / "floats.tsv").read_text().splitlines()[1:]]


def test_all_fixtures_are_here():
    """The copied fixtures are complete: a lone clone tests as much as we do."""
    assert (223, 17, 288, 347) == (len(PACKS), len(MANIFEST), len(ROWS), len(FLOATS))


@pytest.mark.parametrize("path", PACKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_burns_packs_are_rewritten_byte_for_byte(path):
    """A pack that Burn wrote, read and written in its own data order, is the same file (C31)."""
    blob = path.read_bytes()
    assert blob == rewritten(Reader.from_bytes(blob))


def dtype_from_cbor(text):
    """Decode a dtype as the manifest has it, by way of a pack, as any reader does."""
    blob = b"\xa1\x67tensors\xa1\x61x\xa3\x65dtype" + bytes.fromhex(text)
    blob += b"\x65shape\x81\x00\x6cdata_offsets\x82\x00\x00"
    return Reader.from_bytes(raw_pack(blob))["x"].dtype


def scalar_of(kind, text):
    if kind == "Float":
        return Scalar(kind, struct.unpack(">d", bytes.fromhex(text.removeprefix("bits:")))[0])
    return Scalar(kind, text == "true" if kind == "Bool" else int(text))


@pytest.mark.parametrize("row", MANIFEST, ids=lambda row: row["file"])
def test_packs_hold_what_the_manifest_says(row):
    """Names, dtypes, shapes, ids, bytes, metadata and scalars are read exactly."""
    pack = Reader.from_bytes((BURN / "container" / row["file"]).read_bytes())
    expected = sorted(row["write_order_tensors"], key=lambda tensor: tensor["name"].encode())
    assert [tensor["name"] for tensor in expected] == list(pack)
    for want in expected:
        found = pack[want["name"]]
        assert want["data_hex"] == found.to_bytes().hex()
        assert (tuple(want["shape"]), dtype_from_cbor(want["dtype_cbor"])) == (
            found.shape,
            found.dtype,
        )
        assert want["param_id"] == (None if found.param_id is None else str(found.param_id))
    metadata = {
        key: "x" * 70_000 if row["file"] == "metadata.bpk" and key == "long" else value
        for key, value in row["metadata"].items()
    }
    assert metadata == pack.metadata
    assert {key: scalar_of(*value) for key, value in row["scalars"].items()} == pack.scalars


@pytest.mark.parametrize("row", MANIFEST, ids=lambda row: row["file"])
def test_packs_are_rebuilt_from_the_manifest(row):
    """The same content in the same write order gives Burn's file (C20 to C31, C90)."""
    path = BURN / "container" / row["file"]
    pack = Reader.from_bytes(path.read_bytes())
    tensors = [
        Tensor.from_bytes(
            tensor["name"],
            dtype_from_cbor(tensor["dtype_cbor"]),
            tensor["shape"],
            bytes.fromhex(tensor["data_hex"]),
            param_id=None if tensor["param_id"] is None else int(tensor["param_id"]),
        )
        for tensor in row["write_order_tensors"]
    ]
    plan = Writer(tensors, metadata=pack.metadata, scalars=pack.scalars).plan()
    assert path.read_bytes() == plan.into_bytes()
    assert row["size"] == plan.size


def check_tolerance(row, opener):
    """Assert that `opener` treats a row's pack as its `bpk_lite` column says."""
    blob = raw_pack(
        bytes.fromhex(row["metadata_hex"]),
        bytes(row["data_len"]),
        version=row["version"],
        padded=row["padded"],
    )
    found, (wanted, _, note) = verdict(blob, opener), row["bpk_lite"].partition("; ")
    if wanted.startswith("either"):
        if found == "accept":  # then the read is a correct one; the data are zeros
            with opener(blob) as pack:
                assert [bytes(t.nbytes) for t in pack.values()] == [
                    t.to_bytes() for t in pack.values()
                ]
        return
    assert wanted == ("accept" if found == "accept" else "reject"), found
    kind = row["reference"].partition("reject:")[2]
    if kind:
        with pytest.raises(Exception) as caught:
            opener(blob)
        assert kind in {cls.__name__ for cls in type(caught.value).__mro__}
    if note == "verify reports it":
        with opener(blob) as pack:
            assert verify(pack)
    elif note:
        with opener(blob) as pack:
            (tensor,) = pack.values()
            assert "unknown fields" in str(tensor.dtype)
            with pytest.raises(ValueError, match="unknown fields"):
                tensor.numpy()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["case"])
def test_odd_metadata_is_judged_as_decided(row):
    """Each of 288 odd packs opens or fails as decided, with an error of Burn's kind (C43 to C69)."""
    check_tolerance(row, Reader.from_bytes)
    check_tolerance(row, lambda blob: Reader.from_bytes(memoryview(bytearray(blob))))


@pytest.mark.parametrize(("bits", "cbor"), FLOATS)
def test_floats_are_written_as_burn_does(bits, cbor):
    """The narrowest float that keeps all 64 bits is written, and read back to them (C29, C30)."""
    value = struct.unpack(">d", bytes.fromhex(bits))[0]
    blob = Metadata.encode([], {}, {"x": Scalar("Float", value)})
    assert bytes.fromhex("6178" + cbor) == blob[blob.index(b"\x61x") :]
    parsed = Metadata.parse(
        blob, header=Header(len(blob)), size=512, source="test", limits=Limits()
    )
    assert bits == struct.pack(">d", parsed.scalars["x"].value).hex()


def test_every_dtype_constant_is_in_a_fixture():
    """The fixture of all dtypes covers every constant, so nothing above is left untried."""
    pack = Reader.from_bytes((BURN / "container" / "dtypes.bpk").read_bytes())
    constants = {value for value in vars(DType).values() if isinstance(value, DType)}
    assert constants == {tensor.dtype for tensor in pack.values()}
