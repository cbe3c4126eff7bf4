"""State dicts to files and back, as they are (api.md; safetensors.torch's habits)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import bpk_lite as bpk
import bpk_lite.torch as bt
from bpk_lite.pack import (
    AlreadyExists,
    DType,
    FormatError,
    PlanError,
    QuantScheme,
    ReadError,
    Tensor,
)

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
          torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16, torch.uint8,
          torch.bool]  # fmt: skip


def equal(one, other):
    return one.dtype == other.dtype and torch.equal(
        one.contiguous().reshape(-1).view(torch.uint8),
        other.contiguous().reshape(-1).view(torch.uint8),
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_comes_back_in_any_layout(dtype, tmp_path):
    """Bits, dtypes and shapes are those that were saved, transposed and empty ones included."""
    start = (torch.arange(24) % 2).reshape(2, 3, 4).to(dtype)
    tensors = {"plain": start, "turned": start.permute(2, 0, 1), "one": start[0, 0, 1],
               "none": start[:0], "cut": start[:, ::2]}  # fmt: skip
    path = bt.save_file(tensors, tmp_path / "t", {"made": "here"})
    assert str(tmp_path / "t.bpk") == path
    found = bt.load_file(tmp_path / "t")
    assert sorted(tensors) == list(found)
    for name, tensor in tensors.items():
        assert tensor.shape == found[name].shape
        assert equal(tensor, found[name])
    with bpk.open(path) as pack:
        assert {"made": "here"} == dict(pack.metadata)
        assert list(tensors) == [tensor.name for tensor in pack.tensors(order="data")]


def test_a_state_dict_is_saved_under_its_own_names(tmp_path):
    """No rename, no transpose, and ``num_batches_tracked`` too: it loads with `load_state_dict`."""
    module, other = (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)) for _ in range(2))
    bt.save_file(module.state_dict(), tmp_path / "raw.bpk")
    other.load_state_dict(bt.load_file(tmp_path / "raw.bpk", device="cpu"))
    assert all(
        equal(value, other.state_dict()[name]) for name, value in module.state_dict().items()
    )


def test_what_is_loaded_may_be_written_to_without_reaching_the_file(tmp_path):
    """The mapping is private, and outlives a replacement of the file."""
    path = tmp_path / "w.bpk"
    bt.save_file({"w": torch.ones(3)}, path)
    before = path.read_bytes()
    found = bt.load_file(path)
    found["w"] += 1
    assert (before, [2, 2, 2]) == (path.read_bytes(), found["w"].tolist())
    again = bt.load_file(path)
    bt.save_file({"w": torch.zeros(3)}, path)
    assert [1, 1, 1] == again["w"].tolist()


def test_stored_bools_of_other_bytes_are_true(tmp_path):
    """Bool(U8) and Bool(U32) become torch's bool, which holds 0 and 1 only."""
    bpk.save_file(
        [Tensor.from_bytes("a", DType.BOOL_U8, (3,), bytes([0, 1, 2])),
         Tensor.from_bytes("b", DType.BOOL_U32, (2,), bytes([0, 1, 0, 0, 0, 0, 0, 0]))],
        tmp_path / "b.bpk",
    )  # fmt: skip
    found = bt.load_file(tmp_path / "b.bpk")
    assert ([0, 1, 1], [1, 0]) == (
        found["a"].view(torch.uint8).tolist(),
        found["b"].view(torch.uint8).tolist(),
    )


def test_a_mapping_that_fails_is_a_copy(tmp_path, monkeypatch):
    """Where the system cannot map, the file is read."""
    from bpk_lite.torch import _file

    def refuse(*_args, **_keywords):
        raise OSError("no mapping here")

    bt.save_file({"w": torch.ones(3)}, tmp_path / "w.bpk")
    monkeypatch.setattr(_file.mmap, "mmap", refuse)
    assert [1, 1, 1] == bt.load_file(tmp_path / "w.bpk")["w"].tolist()


def test_what_cannot_be_saved_is_refused_by_name(tmp_path):
    """No tensor, no data, no such type: the error names it, and no file appears."""
    for value in (
        {"a": 1},
        torch.ones(2, dtype=torch.complex64),
        torch.ones(2, device="meta"),
        torch.eye(2).to_sparse(),
    ):
        with pytest.raises(PlanError, match="'x'"):
            bt.save_file({"x": value}, tmp_path / "x")
    assert [] == list(tmp_path.iterdir())


def test_what_cannot_be_loaded_is_refused(tmp_path):
    """A missing file, a broken one, and quantized data each have their error."""
    with pytest.raises(ReadError, match=r"none\.bpk"):
        bt.load_file(tmp_path / "none")
    (tmp_path / "bad.bpk").write_bytes(b"x" * 400)
    with pytest.raises(FormatError, match=r"bad\.bpk"):
        bt.load_file(tmp_path / "bad.bpk")
    dtype = DType.quantized(QuantScheme("Q8S", "Native"))
    bpk.save_file([Tensor.from_bytes("q", dtype, (2,), bytes(6))], tmp_path / "q.bpk")
    with pytest.raises(TypeError, match="'q' is QFloat"):
        bt.load_file(tmp_path / "q.bpk")


def test_an_existing_file_is_kept_if_asked(tmp_path):
    """``overwrite=False`` refuses, as everywhere."""
    bt.save_file({"w": torch.ones(1)}, tmp_path / "w")
    with pytest.raises(AlreadyExists):
        bt.save_file({"w": torch.zeros(1)}, tmp_path / "w", overwrite=False)


def test_numpy_reads_what_torch_wrote(tmp_path):
    """The file is an ordinary pack."""
    bt.save_file({"w": torch.arange(6.0).reshape(2, 3).T}, tmp_path / "w")
    assert np.arange(6.0).reshape(2, 3).T.tolist() == bpk.load_file(tmp_path / "w")["w"].tolist()
