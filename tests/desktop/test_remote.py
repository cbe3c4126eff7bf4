"""Packs behind addresses: few requests, no more bytes than needed, one version only."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys

import fsspec
import numpy as np
import pytest

import bpk_lite as bpk
from bpk_lite.convert import open_contents
from bpk_lite.desktop import RemoteSource
from bpk_lite.pack import DependencyError, LimitError, Limits, ReadError, TensorClosedError
from tests.desktop.web import serving

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def web(tmp_path):
    with serving(tmp_path) as server:
        yield server


@pytest.fixture
def pack(web):
    """A pack of 8 MiB on the server: 40 small tensors behind 4 large ones."""
    rng = np.random.default_rng(5)
    tensors = {f"big.{i}": rng.standard_normal((512, 1024), dtype="<f4") for i in range(4)}
    tensors |= {f"small.{i:02}": np.full(100, i, "<f4") for i in range(40)}
    bpk.save_file(tensors, web.folder / "m.bpk", {"task": "mnist"}, scalars={"step": 7})
    return tensors


def test_the_metadata_come_by_one_request(web, pack):
    """And a tensor, or a part of it, by one more."""
    with bpk.open(web.address + "m.bpk") as remote:
        assert ("mnist", 7, 44) == (
            remote.metadata["task"],
            remote.scalars["step"].value,
            len(remote),
        )
        assert [("GET", "/m.bpk", "bytes=0-131071")] == web.requests
        assert 128 * KIB == web.sent
        web.forget()
        assert np.array_equal(pack["big.2"], remote["big.2"].numpy())
        assert (1, 2 * MIB) == (len(web.requests), web.sent)
        web.forget()
        assert np.array_equal(pack["big.3"][10:12], remote["big.3"][10:12])
        assert (1, 2 * 4096) == (len(web.requests), web.sent)
        assert web.address + "m.bpk" == remote.source.name


def test_long_metadata_take_a_second_request(web):
    """Of exactly what the first did not bring."""
    tensors = [bpk.Tensor.from_bytes(f"{i:05}" * 10, "U8", (1,), b"x") for i in range(5000)]
    bpk.save_file(tensors, web.folder / "m.bpk")
    with bpk.open(web.address + "m.bpk") as remote:
        assert 5000 == len(remote)
        assert 2 == len(web.requests)
        assert 10 + remote.header.metadata_size == web.sent


def test_neighbours_share_a_request(web, pack):
    """40 small tensors come by one request, large ones by one each, all exact."""
    found = bpk.load_file(web.address + "m.bpk", names=["small.*"])
    assert all(np.array_equal(pack[name], array) for name, array in found.items())
    assert 40 == len(found)
    assert 2 == len(web.requests)
    assert web.sent < 128 * KIB + 40 * 512
    web.forget()
    found = bpk.load_file(web.address + "m.bpk")
    assert all(np.array_equal(pack[name], found[name]) for name in pack)
    assert len(web.requests) <= 3
    assert not found["small.00"].flags.writeable
    web.forget()
    out = {"small.03": np.zeros(100, "<f4"), "big.0": np.zeros((512, 1024), "<f4")}
    bpk.load_file(web.address + "m.bpk", out=out)
    assert all(np.array_equal(pack[name], out[name]) for name in out)


def test_far_apart_tensors_do_not_share_a_request(web, pack):
    """What lies between them is not transferred."""
    bpk.load_file(web.address + "m.bpk", names=["big.1", "small.39"])
    assert 3 == len(web.requests)
    assert web.sent < 128 * KIB + 2 * MIB + 4 * KIB


def test_a_gibibyte_is_inspected_for_a_few_kilobytes(web):
    """`bpk inspect https://…`: under 200 kB in at most two requests."""
    size = 64 * MIB
    plan = bpk.Writer(
        [bpk.Tensor.deferred(f"layer.{i}.weight", "F32", (size // 4,), bytes) for i in range(16)]
    ).plan()
    with (web.folder / "big.bpk").open("wb") as file:
        file.write(plan.header)
        file.truncate(plan.size)
    assert plan.size > 1 << 30
    done = subprocess.run(
        [sys.executable, "-c", "from bpk_lite.cli import main; main()", "inspect", "--json", web.address + "big.bpk"],
        capture_output=True, text=True, check=False, cwd=os.path.dirname(os.path.dirname(bpk.__file__)),
    )  # fmt: skip
    assert (0, "") == (done.returncode, done.stderr)
    assert 16 == json.loads(done.stdout)["totals"]["tensors"]
    assert len(web.requests) <= 2
    assert web.sent < 200_000


def test_other_formats_are_opened_by_ranges_too(web):
    """SafeTensors and PyTorch, through the converter's door."""
    import torch

    torch.save({"w": torch.arange(500_000.0)}, web.folder / "m.pt")
    blob = json.dumps({"w": {"dtype": "U8", "shape": [MIB], "data_offsets": [0, MIB]}}).encode()
    data = bytes(range(256)) * 4 * KIB
    (web.folder / "m.safetensors").write_bytes(len(blob).to_bytes(8, "little") + blob + data)
    with open_contents(web.address + "m.safetensors") as found:
        assert web.sent < 200 * KIB
        assert data == found.tensors[0].to_bytes()
    with open_contents(web.address + "m.pt") as found:
        assert 499_999 == found.tensors[0].numpy()[-1]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("ignores ranges", r"gives the whole file \(67108864 bytes\) when a part is asked for"),
        ("no place", "gave a range without its place: None"),
        ("wrong place", "gave a range without its place: 'bytes 1-131071"),
        ("compresses", r"compresses ranges \(gzip\)"),
        ("hangs up", "cannot read http"),
    ],
)
def test_a_server_that_misbehaves_is_named(web, pack, fault, message):
    """Nothing that is not the wanted range is taken for it, and no whole file comes over."""
    web.fault = fault
    os.truncate(web.folder / "m.bpk", 64 * MIB)
    with pytest.raises(ReadError, match=message) as caught:
        bpk.open(web.address + "m.bpk")
    assert web.address + "m.bpk" in str(caught.value)
    assert web.sent < 16 * MIB  # what the system had taken from the server when we hung up


def test_records_and_stores_read_addresses_and_nothing_writes_to_them(web):
    """Wherever a path is read; a save says what to do, and makes no folder of that name."""
    import torch

    from bpk_lite.records import ModuleRecord
    from bpk_lite.store import BurnpackStore, PytorchStore

    ModuleRecord([bpk.Tensor.from_array("w", np.ones(3, "<f4"), param_id=7)]).save(
        web.folder / "net"
    )
    torch.save({"w": torch.ones(3)}, web.folder / "net.pt")
    assert 1 == ModuleRecord.load(web.address + "net.bpk").tensors["w"].numpy()[0]
    assert ["w"] == list(BurnpackStore(web.address + "net.bpk").keys())
    assert 1 == PytorchStore(web.address + "net.pt").get_tensor("w").numpy()[0]
    with pytest.raises(bpk.WriteError, match="is an address; save a file and put it there"):
        bpk.save_file({"w": np.ones(3)}, web.address + "new.bpk")


def test_a_small_file_may_come_whole(web):
    """A server without ranges is fine as long as the file is no larger than the first part."""
    bpk.save_file({"w": np.arange(9)}, web.folder / "m.bpk")
    web.fault = "ignores ranges"
    with bpk.open(web.address + "m.bpk") as remote:
        assert 8 == remote["w"].numpy()[-1]


def test_a_file_that_changes_meanwhile_is_an_error(web, pack):
    """Its version is compared at each request: never bytes of two files in one array."""
    with bpk.open(web.address + "m.bpk") as remote:
        bpk.save_file({name: array + 1 for name, array in pack.items()}, web.folder / "m.bpk")
        with pytest.raises(ReadError, match="was changed while it was open"):
            remote["big.1"].numpy()


def test_errors_are_typed_and_keep_secrets(web, pack):
    """A missing file, a dead server, an unknown scheme; queries and passwords are not shown."""
    host = web.address.removeprefix("http://")
    with pytest.raises(ReadError, match="404") as caught:
        bpk.open(f"http://user:hidden@{host}none.bpk?token=secret")
    assert "secret" not in str(caught.value)
    assert "hidden" not in str(caught.value)
    with pytest.raises(ReadError, match=r"cannot read http://127\.0\.0\.1:1/x\.bpk"):
        bpk.open("http://127.0.0.1:1/x.bpk")
    with pytest.raises(ReadError, match="Protocol not known: nonsense"):
        bpk.open("nonsense://x")
    with pytest.raises(LimitError, match="the limit is 1000 for a file"):
        bpk.open(web.address + "m.bpk", limits=Limits(file_bytes=1000))
    with bpk.open(f"{web.address}m.bpk?token=secret") as remote:
        assert web.address + "m.bpk" == remote.source.name
        tensor = remote["big.3"]
    with pytest.raises(TensorClosedError):
        tensor.numpy()


def test_missing_packages_are_named(monkeypatch):
    """Without fsspec, and for a scheme whose package is not there."""
    with pytest.raises(DependencyError, match=r"gcsfs.*pip install 'bpk-lite\[remote\]'"):
        bpk.open("gs://bucket/m.bpk")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(DependencyError, match=r"pip install 'bpk-lite\[remote\]'"):
        bpk.open("https://example.org/m.bpk")


def test_redirects_are_followed(web, pack):
    """Files of hubs and releases are found behind some."""
    with bpk.open(web.address + "moved/m.bpk") as remote:
        assert np.array_equal(pack["big.1"], remote["big.1"].numpy())


def test_an_empty_file_is_a_bad_header(web):
    """As it is on disk (A7)."""
    (web.folder / "m.bpk").write_bytes(b"")
    with pytest.raises(bpk.InvalidHeader):
        bpk.open(web.address + "m.bpk")


def test_a_cache_keeps_what_was_read(web, pack, tmp_path):
    """The second time nothing but the head comes; other blocks still do; a new version is new."""
    cache = tmp_path / "cache"
    for turn in range(2):
        with bpk.open(web.address + "m.bpk", cache=cache) as remote:
            assert np.array_equal(pack["big.2"], remote["big.2"].numpy())
        assert (128 * KIB + 3 * MIB if turn == 0 else 128 * KIB) == web.sent
        web.forget()
    with bpk.open(web.address + "m.bpk", cache=cache) as remote:
        assert np.array_equal(pack["big.0"], remote["big.0"].numpy())
        assert np.array_equal(pack["small.39"], remote["small.39"].numpy())
    bpk.save_file({name: array + 1 for name, array in pack.items()}, web.folder / "m.bpk")
    found = bpk.load_file(web.address + "m.bpk", cache=cache)
    assert all(np.array_equal(pack[name] + 1, found[name]) for name in pack)
    assert [] == [name for name in os.listdir(cache) if name.endswith(".tmp")]


def test_tensors_travel_by_address_and_range(web, pack):
    """To a data loader's worker; not once the file has changed."""
    with bpk.open(web.address + "m.bpk") as remote:
        pickled = pickle.dumps(remote["big.2"])
    assert len(pickled) < 1000
    web.forget()
    tensor = pickle.loads(pickled)
    assert isinstance(tensor.source, RemoteSource)
    assert np.array_equal(pack["big.2"][3:5], tensor[3:5])
    assert web.sent < 200 * KIB
    bpk.save_file({"w": np.zeros(3)}, web.folder / "m.bpk")
    with pytest.raises(ReadError, match="was changed since it was pickled"):
        pickle.loads(pickled)


def test_file_systems_of_fsspec_are_read(pack, web):
    """Here one in memory; and a file:// address."""
    system = fsspec.filesystem("memory")
    system.pipe_file("/m.bpk", (web.folder / "m.bpk").read_bytes())
    for address in ("memory://m.bpk", f"file://{web.folder / 'm.bpk'}"):
        found = bpk.load_file(address)
        assert all(np.array_equal(pack[name], found[name]) for name in pack)
    system.rm("/m.bpk")
    with pytest.raises(ReadError, match=r"cannot read memory://m\.bpk: no such file"):
        bpk.open("memory://m.bpk")


@pytest.fixture
def bucket(monkeypatch):
    """An S3 of our own with one bucket."""
    import boto3
    from moto.server import ThreadedMotoServer

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    client = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket="models")
    yield client, {"endpoint_url": endpoint}
    client.close()
    server.stop()


def test_an_object_of_s3_is_read_by_ranges(bucket, pack, web):
    """Its size, then as over http."""
    client, options = bucket
    client.upload_file(str(web.folder / "m.bpk"), "models", "run/m.bpk")
    with bpk.open("s3://models/run/m.bpk", storage_options=options) as remote:
        assert "mnist" == remote.metadata["task"]
        assert np.array_equal(pack["big.1"][5], remote["big.1"][5])
        assert np.array_equal(pack["small.20"], remote["small.20"].numpy())
    with pytest.raises(ReadError, match=r"cannot read s3://models/none\.bpk: no such file"):
        bpk.open("s3://models/none.bpk", storage_options=options)
