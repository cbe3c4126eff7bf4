"""How bytes leave torch and come back: when the writer gets there, in windows of 8 MiB (C99)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import bpk_lite.torch as bt
from bpk_lite.pack import WINDOW
from bpk_lite.records import ModuleRecord
from bpk_lite.torch import _transfer


@pytest.fixture
def device(monkeypatch):
    """Pretend that all memory is a device's, and count what is staged on the host."""
    staged = []
    buffer = _transfer.staging_buffer

    def counting(nbytes):
        staged.append(nbytes)
        return buffer(nbytes)

    monkeypatch.setattr(_transfer, "needs_staging", lambda _tensor: True)
    monkeypatch.setattr(_transfer, "staging_buffer", counting)
    return staged


def pieces(record):
    """Return the sizes of what the writer gets, per tensor, and check their content."""
    return {
        name: [piece.nbytes for piece in tensor.pieces()] for name, tensor in record.tensors.items()
    }


def test_nothing_is_fetched_before_the_writer_asks(device):
    """A record of a module on a device costs no host memory until it is saved."""
    record = bt.into_record(nn.Linear(1024, 4096))
    record.plan()
    assert [] == device
    record.into_bytes()
    assert device


def test_a_save_holds_one_window_of_host_memory(device):
    """A weight of 20 MiB comes in windows of 8 MiB through one buffer, transposed or not."""
    module = nn.ModuleDict({"a": nn.Linear(1280, 4096), "b": nn.Embedding(1280, 4096)})
    sizes = pieces(bt.into_record(module))
    for name in ("a.weight", "b.weight"):
        assert 20 << 20 == sum(sizes[name])
        assert max(sizes[name]) <= WINDOW
        assert len(sizes[name]) == 3
    assert max(device) <= WINDOW
    assert len(device) == 3  # one for each tensor


def test_what_goes_through_windows_is_what_was_there(device):
    """Bytes are the same as without a device, out and in, for layouts that windows cut oddly."""
    module = nn.ModuleDict(
        {
            "tall": nn.Linear(3, 1_000_003, bias=False),
            "wide": nn.Linear(1_000_003, 3, bias=False),
            "norm": nn.BatchNorm1d(5),
            "small": nn.Linear(4, 4).bfloat16(),
        }
    )
    record = ModuleRecord.from_bytes(bt.into_record(module).into_bytes())
    assert np.array_equal(module["tall"].weight.detach().numpy().T, record["tall.weight"].numpy())
    assert np.array_equal(module["wide"].weight.detach().numpy().T, record["wide.weight"].numpy())
    before = {name: value.clone() for name, value in module.state_dict().items()}
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    bt.load_record(module, record)
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


@pytest.mark.parametrize("shape", [(200, 130), (64, 64), (1, 300), (65, 63)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_transposed_weights_of_any_size_go_and_come_back(shape, dtype):
    """The blocks in which a matrix is transposed make up the whole, both ways."""
    module, other = (nn.Linear(*shape, bias=False, dtype=dtype) for _ in range(2))
    record = ModuleRecord.from_bytes(bt.into_record(module).into_bytes())
    assert torch.equal(module.weight.t(), torch.from_dlpack(record["weight"]))
    bt.load_record(other, record)
    assert torch.equal(module.weight, other.weight)


def test_bools_are_made_0_or_1_on_the_way_to_a_device(device):
    """A stored 2 is true there too (R29)."""
    from bpk_lite.pack import DType, Tensor

    target = torch.zeros(3, dtype=torch.bool)
    _transfer.fill(target, Tensor.from_bytes("flag", DType.BOOL, (3,), bytes([0, 2, 1])))
    assert [0, 1, 1] == target.view(torch.uint8).tolist()


def test_a_contiguous_tensor_on_the_cpu_is_written_from_its_own_memory():
    """No copy before the writer's: the piece is a view of the parameter."""
    module = nn.Embedding(3, 4)
    (piece,) = bt.into_record(module)["weight"].pieces()
    values = np.frombuffer(piece, "<f4")
    module.weight.data[0, 0] = 42
    assert 42 == values[0]


def test_a_type_that_burn_lacks_is_refused_by_name():
    """Complex parameters have no element type in a pack."""
    module = nn.Module()
    module.w = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    with pytest.raises(TypeError, match=r"w is torch.complex64"):
        bt.into_record(module)
