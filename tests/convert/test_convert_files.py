"""Conversion on files, with the libraries that wrote or will read them."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from bpk_lite.convert import convert, open_contents
from bpk_lite.pack import Reader, ReadError
from bpk_lite.store import BurnpackStore, StoreError
from tests.convert.test_convert import TENSORS, pack, through
from tests.support import desktop_module

torch = desktop_module("torch")
safetensors = desktop_module("safetensors.torch")
tnn = torch.nn

pytestmark = pytest.mark.desktop

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool,
]  # fmt: skip


def saved(state):
    stream = io.BytesIO()
    torch.save(state, stream)
    return stream.getvalue()


def state():
    """Return a tensor of every element type, scalars and empty ones among them."""
    found = {
        f"{str(one).removeprefix('torch.')}": torch.arange(6).reshape(2, 3).to(one)
        for one in DTYPES
    }
    return found | {"scalar": torch.tensor(2.5), "empty": torch.zeros(3, 0)}


@pytest.mark.parametrize("mmap", [False, True])
def test_torch_loads_what_is_written(tmp_path, mmap):
    """`weights_only=True`, every element type, mapped and not."""
    wanted = state()
    out, made = through(through(saved(wanted), "burnpack")[0], "pytorch")
    path = tmp_path / "net.pt"
    with open_contents(through(saved(wanted), "burnpack")[0]) as source:
        convert(source, "pytorch").plan.write_to_file(path)
    assert path.read_bytes() == out
    found = torch.load(path, weights_only=True, mmap=mmap)
    assert list(found) == [change.new for change in made.changes]
    assert all(found[k].dtype == v.dtype and torch.equal(found[k], v) for k, v in wanted.items())
    assert all(found[k].stride() == v.stride() for k, v in wanted.items())


def test_entries_beyond_the_old_limits_of_zip(monkeypatch):
    """Lengths of 64 bits where a file is too long for 32; the limit is lowered to see it."""
    import zipfile

    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    blob = saved({"big": torch.arange(1000.0), "small": torch.ones(2)})
    with open_contents(blob) as source:
        plan = convert(source, "pytorch").plan
        out = plan.into_bytes()
    assert len(out) == plan.size
    with zipfile.ZipFile(io.BytesIO(out)) as archive:
        starts = [info.header_offset for info in archive.infolist()]
        assert archive.testzip() is None
        for info, start in zip(archive.infolist(), starts, strict=True):
            name, extra = (
                int.from_bytes(out[start + at : start + at + 2], "little") for at in (26, 28)
            )
            assert (start + 30 + name + extra) % 64 == 0, info.filename
    found = torch.load(io.BytesIO(out), weights_only=True)
    assert torch.equal(found["big"], torch.arange(1000.0))


def test_scalars_become_numbers_of_the_state_dict():
    from bpk_lite.pack import Writer

    blob = Writer(
        {"w": np.ones(2, "<f4")}, scalars={"a": 3, "b": -70000, "c": 0.5, "d": True, "e": 2**63}
    ).plan()
    out, _ = through(blob.into_bytes(), "pytorch")
    found = torch.load(io.BytesIO(out), weights_only=True)
    assert {k: v for k, v in found.items() if k != "w"} == {
        "a": 3,
        "b": -70000,
        "c": 0.5,
        "d": True,
        "e": 2**63,
    }
    assert type(found["d"]) is bool


def test_a_net_of_pytorch_goes_to_burn_and_back():
    """Through Burn's layout and file, the module computes the same."""
    torch.manual_seed(0)
    net = tnn.Sequential(
        tnn.Conv2d(1, 4, 3), tnn.BatchNorm2d(4), tnn.PReLU(), tnn.Flatten(), tnn.Linear(16, 16)
    )
    net(torch.randn(8, 1, 4, 4))
    blob, _ = through(saved(net.state_dict()), "burnpack", layout="pytorch-to-burn")
    other = tnn.Sequential(
        tnn.Conv2d(1, 4, 3), tnn.BatchNorm2d(4), tnn.PReLU(), tnn.Flatten(), tnn.Linear(16, 16)
    )
    BurnpackStore(blob).apply_to(other)
    x = torch.randn(2, 1, 4, 4)
    assert torch.equal(net.eval()(x), other.eval()(x))
    back, _ = through(blob, "pytorch", layout="burn-to-pytorch")
    assert all(
        torch.equal(net.state_dict()[k], v)
        for k, v in torch.load(io.BytesIO(back), weights_only=True).items()
    )


def test_a_sharded_model(tmp_path):
    """The index says which file has what; every shard is read beside it."""
    safetensors.save_file(
        {"a": torch.ones(2), "b": torch.zeros(3)}, tmp_path / "m-1.safetensors", {"format": "pt"}
    )
    safetensors.save_file(
        {"c": torch.full((2,), 7.0)}, tmp_path / "m-2.safetensors", {"format": "pt"}
    )
    index = tmp_path / "m.safetensors.index.json"
    places = {"a": "m-1.safetensors", "b": "m-1.safetensors", "c": "m-2.safetensors"}
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    with open_contents(index) as source:
        blob = convert(source).plan.into_bytes()
    found = Reader.from_bytes(blob)
    assert {name: found[name].numpy().tolist() for name in found} == {
        "a": [1, 1], "b": [0, 0, 0], "c": [7, 7],
    }  # fmt: skip
    index.write_text(json.dumps({"weight_map": {**places, "d": "m-2.safetensors"}}))
    with pytest.raises(ReadError, match="lack d"):
        open_contents(index)
    for bad in ("../m-1.safetensors", "", "..", "/etc/passwd"):
        index.write_text(json.dumps({"weight_map": {"a": bad}}))
        with pytest.raises(StoreError, match="no file beside the index"):
            open_contents(index)
    index.write_text(json.dumps({"weight_map": {"a": "gone.safetensors"}}))
    with pytest.raises(ReadError, match=r"gone\.safetensors"):
        open_contents(index)


def test_gguf(tmp_path):
    """Plain tensors come in numpy's order of dimensions; quantized ones are told."""
    import gguf

    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    full = np.arange(6, dtype=np.float32).reshape(2, 3)
    writer.add_tensor("w", full)
    writer.add_tensor("h", full.astype(np.float16))
    writer.add_tensor("q", gguf.quants.quantize(np.ones((2, 32), np.float32), gguf.GGMLQuantizationType.Q8_0),
                      raw_dtype=gguf.GGMLQuantizationType.Q8_0)  # fmt: skip
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with open_contents(path) as source:
        found = Reader.from_bytes(convert(source).plan.into_bytes())
        assert source.notes == ["'q' is left out: Q8_0 is quantized in GGUF's own way"]
    np.testing.assert_array_equal(found["w"].numpy(), full)
    assert str(found["h"].dtype) == "F16"
    assert found.metadata["general.name"] == "tiny"


def test_memory_stays_small(tmp_path):
    """A file of 64 MiB goes through windows: no tensor is held whole."""
    import tracemalloc

    path = tmp_path / "big.pt"
    torch.save({f"w{i}": torch.ones(2 << 20) for i in range(8)}, path)
    for old, new, to in (("big.pt", "a.bpk", "burnpack"), ("a.bpk", "a.safetensors", "safetensors"),
                         ("a.safetensors", "b.bpk", "burnpack"), ("b.bpk", "b.pt", "pytorch")):  # fmt: skip
        tracemalloc.start()
        with open_contents(tmp_path / old) as source:
            convert(source, to).plan.write_to_file(tmp_path / new, durable=False)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20 << 20, (old, new, peak)
    assert (tmp_path / "a.bpk").read_bytes() == (tmp_path / "b.bpk").read_bytes()


def test_safetensors_reads_what_is_written():
    """The library gives the same arrays."""
    out, _ = through(pack(), "safetensors")
    found = safetensors.load(out)
    assert {name: array.tolist() for name, array in found.items()} == {
        name: array.tolist() for name, array in TENSORS.items()
    }
