"""Real Burn reads what we wrote, and finds what was written."""

from __future__ import annotations

import hashlib
import json
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpk_lite import testing as bt
from bpk_lite.pack import DType, QuantScheme, Reader, Scalar, Tensor, Writer

pytestmark = [pytest.mark.oracle, pytest.mark.desktop]

SCHEMES = (
    QuantScheme("Q8S", "Native"),
    QuantScheme("Q4F", "PackedU32", 1, tensor="F32", block=(4, 32), block_dtype="UE4M3"),
    QuantScheme("E2M1", "PackedNative", block=(1, 16), block_dtype="UE8M0"),
)
PLAIN = [value for value in vars(DType).values() if isinstance(value, DType)]


def scalar_text(scalar: Scalar) -> list[str]:
    if scalar.kind == "Float":
        return ["Float", "bits:" + struct.pack(">d", scalar.value).hex()]
    return [scalar.kind, str(scalar.value).lower()]


def assert_burn_reads(oracle, path, tensors, metadata=None, scalars=None):
    """Dump a file with real Burn and compare everything it says with what was written."""
    dump = oracle("oracle-pack", "dump", path)
    expected = [
        {
            "name": tensor.name,
            "shape": list(tensor.shape),
            "param_id": None if tensor.param_id is None else str(tensor.param_id),
            "length": tensor.nbytes,
            "sha256": hashlib.sha256(tensor.to_bytes()).hexdigest(),
        }
        for tensor in sorted(tensors, key=lambda tensor: tensor.name.encode())
    ]
    assert expected == [{key: row[key] for key in expected[0]} for row in dump["tensors"]]
    assert (metadata or {}) == dump["metadata"]
    assert {key: scalar_text(value) for key, value in (scalars or {}).items()} == dump["scalars"]
    assert oracle("oracle-pack", "dump", path, "--bytes")["tensors"] == dump["tensors"]
    again = path.with_name("again.bpk")
    assert oracle("oracle-pack", "rewrite", path, again)["identical"]
    again.unlink()


def test_burn_reads_every_dtype(oracle, tmp_path):
    """All thirteen plain dtypes, three boolean stores and quantized schemes arrive in Burn."""
    rng = np.random.default_rng(1)
    tensors = []
    for index, dtype in enumerate(PLAIN):
        values = rng.integers(0, 2, (2, 3)).astype(dtype.stored)
        tensors.append(
            Tensor.from_bytes(f"t.{dtype}", dtype, (2, 3), values.tobytes(), param_id=index)
        )
    tensors += [
        Tensor.from_bytes(str(scheme), DType.quantized(scheme), (2, 3), b"12345")
        for scheme in SCHEMES
    ]
    path = tmp_path / "dtypes.bpk"
    Writer(tensors).plan().write_to_file(path)
    assert_burn_reads(oracle, path, tensors)


@pytest.mark.parametrize("how", ["write_to_file", "write_to_file_in_place"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tensors=st.lists(bt.tensors(), min_size=1, max_size=6, unique_by=lambda tensor: tensor.name),
    metadata=bt.metadata(),
    scalars=st.dictionaries(bt.names(), bt.scalars(), max_size=4),
)
def test_burn_reads_any_pack(oracle, tmp_path, how, tensors, metadata, scalars):
    """Any names, shapes, ids, schemes, metadata and scalars arrive, from both ways to a file."""
    path = tmp_path / "any.bpk"
    plan = Writer(tensors, metadata=metadata, scalars=scalars).plan()
    getattr(plan, how)(path)
    assert plan.size == path.stat().st_size
    assert_burn_reads(oracle, path, tensors, metadata, scalars)


def test_burn_reads_deferred_and_strided_input(oracle, tmp_path):
    """Deferred tensors, in pieces or whole, and arrays of any layout arrive as their values."""
    base = np.arange(24, dtype=">f8").reshape(2, 3, 4)
    tensors = [
        Tensor.deferred("pieces", "F32", (3, 2), lambda: iter([b"\0" * 8, np.ones(4, "<f4")])),
        Tensor.deferred("whole", "I8", (3,), lambda: b"abc"),
        Tensor.from_array("strided", base[:, ::-1, ::2]),
        Tensor.from_array("fortran", np.asfortranarray(base)),
    ]
    path = tmp_path / "deferred.bpk"
    Writer(tensors).plan().write_to_file(path)
    assert_burn_reads(oracle, path, tensors)
    assert (base[:, ::-1, ::2] == Reader.from_file(path)["strided"].numpy()).all()


def test_burn_writes_the_same_file_from_the_same_description(oracle, tmp_path, fixtures):
    """Burn, given our content as a description, writes our file (deferred there, resident here)."""
    for row in json.loads((fixtures / "burn/container/manifest.json").read_text()):
        if row["file"] == "metadata.bpk":
            continue  # its `long` value is abbreviated in the manifest
        spec = tmp_path / "spec.json"
        spec.write_text(json.dumps(row))
        made = tmp_path / "made.bpk"
        oracle("oracle-pack", "make", spec, made, "--deferred")
        with Reader.from_file(made) as pack:
            plan = Writer(
                pack.tensors(order="data"), metadata=pack.metadata, scalars=pack.scalars
            ).plan()
            assert made.read_bytes() == plan.into_bytes()


def test_our_writers_file_is_burns_rewrite(oracle, fixtures, tmp_path):
    """For every pack that Burn wrote, real Burn finds our rewritten file identical to its own."""
    for path in sorted((fixtures / "burn" / "container").glob("*.bpk")):
        ours = tmp_path / path.name
        with Reader.from_file(path) as pack:
            Writer(
                pack.tensors(order="data"), metadata=pack.metadata, scalars=pack.scalars
            ).plan().write_to_file(ours)
        assert oracle("oracle-pack", "rewrite", ours, tmp_path / "again.bpk")["identical"]
